//! Types, whose text stands on both sides of the names and types that they modify.

use super::{Modifier, Printer, Refused, Result};
use crate::tree::{Indirection, Node, NodeId, Qualifier};

impl Printer<'_, '_> {
    pub(super) fn ty(&mut self, id: NodeId) -> Result {
        match self.get(id) {
            Node::Qualified(qualifier, inner, _) => self.qualified(id, qualifier, inner),
            Node::Indirect(indirection @ (Indirection::Lvalue | Indirection::Rvalue), inner) => {
                self.reference(id, indirection, inner)
            }
            Node::Indirect(_, inner)
            | Node::VendorQualified(inner, _)
            | Node::MemberPointer(_, inner)
            | Node::Vector(_, inner) => self.modified(id, inner),
            Node::Function(result, _) => self.function(id, result),
            Node::Array(_, element) => self.array(id, element),
            Node::FixedPoint {
                accum,
                length,
                saturating,
            } => {
                if saturating {
                    self.text(b"_Sat ")?;
                }
                if !matches!(self.get(length), Node::Builtin(builtin) if builtin.name == "int") {
                    self.node(length)?;
                    self.text(b" ")?;
                }
                self.text(if accum { b"_Accum" } else { b"_Fract" })
            }
            Node::SizedFloat(bits, suffix) => {
                self.text(b"_Float")?;
                self.number(bits.into())?;
                self.text(suffix.as_bytes())
            }
            Node::SizedInteger(unsigned, bits) => {
                self.text(if unsigned {
                    b"unsigned _BitInt("
                } else {
                    b"_BitInt("
                })?;
                self.node(bits)?;
                self.text(b")")
            }
            _ => Err(Refused),
        }
    }

    /// Adds a modifier inside all others.
    pub(super) fn push_modifier(&mut self, node: NodeId) {
        self.modifiers.push(Modifier {
            node,
            outer: self.innermost,
            scope: self.scope,
            written: false,
        });
        self.innermost = Some(self.modifiers.len() - 1);
    }

    /// Writes `inner`, and the modifier `id` in the place that `inner` has for it, otherwise behind it.
    fn modified(&mut self, id: NodeId, inner: NodeId) -> Result {
        let outer = self.innermost;
        self.push_modifier(id);
        let index = self.modifiers.len() - 1;
        self.node(inner)?;
        if !self.modifiers[index].written {
            self.modifier(id)?;
        }
        self.modifiers.truncate(index);
        self.innermost = outer;
        Ok(())
    }

    fn qualified(&mut self, id: NodeId, qualifier: Qualifier, inner: Option<NodeId>) -> Result {
        let inner = inner.ok_or(Refused)?;
        if !qualifier.of_function() {
            // An array hands its qualifiers to its elements, which may have the same ones.
            let mut next = self.innermost;
            while let Some(Modifier {
                node,
                outer,
                written,
                ..
            }) = next.map(|index| self.modifiers[index])
            {
                next = outer;
                match self.get(node) {
                    _ if written => {}
                    Node::Qualified(other, ..) if !other.of_function() => {
                        if other == qualifier {
                            return self.node(inner);
                        }
                    }
                    _ => break,
                }
            }
        }
        self.modified(id, inner)
    }

    /// Writes a reference. A reference to a reference is one reference, `&&` only if both are.
    fn reference(&mut self, id: NodeId, kind: Indirection, inner: NodeId) -> Result {
        let scope = self.scope;
        let mut referred = inner;
        if self.lambdas == 0
            && let Node::TemplateParam(number) = self.get(inner)
        {
            self.enter_saved_scope(id, inner);
            referred = self.argument(number)?;
        }
        let (modifier, inner) = match self.get(referred) {
            Node::Indirect(other, innermost) if other == Indirection::Lvalue || other == kind => {
                (referred, innermost)
            }
            Node::Indirect(Indirection::Rvalue, innermost) => (id, innermost),
            _ => (id, inner),
        };
        self.modified(modifier, inner)?;
        self.scope = scope;
        Ok(())
    }

    fn function(&mut self, id: NodeId, result: Option<NodeId>) -> Result {
        if let Some(result) = result {
            let outer = self.innermost;
            self.push_modifier(id);
            let index = self.modifiers.len() - 1;
            self.node(result)?;
            let written = self.modifiers[index].written;
            self.modifiers.truncate(index);
            self.innermost = outer;
            // A function that returns a pointer to a function is inside what it returns.
            if written {
                return Ok(());
            }
            self.text(b" ")?;
        }
        self.function_with(id, self.innermost)
    }

    /// Writes a function type without its return type, with `modifiers` in their places.
    fn function_with(&mut self, id: NodeId, modifiers: Option<usize>) -> Result {
        let Node::Function(_, parameters) = self.get(id) else {
            return Err(Refused);
        };
        let (mut parentheses, mut blank) = (false, false);
        let mut next = modifiers;
        while let Some(modifier) = next.map(|index| self.modifiers[index])
            && !modifier.written
            && !parentheses
        {
            next = modifier.outer;
            (parentheses, blank) = match self.get(modifier.node) {
                Node::Indirect(
                    Indirection::Pointer | Indirection::Lvalue | Indirection::Rvalue,
                    _,
                ) => (true, false),
                Node::Indirect(..) | Node::VendorQualified(..) | Node::MemberPointer(..) => {
                    (true, true)
                }
                Node::Qualified(qualifier, ..) if !qualifier.of_function() => (true, true),
                _ => (false, false),
            };
        }
        if parentheses {
            blank |= !matches!(self.last, b'(' | b'*');
            if blank && self.last != b' ' {
                self.text(b" ")?;
            }
            self.text(b"(")?;
        }
        let innermost = self.innermost.take();
        self.modifiers_from(modifiers, false)?;
        if parentheses {
            self.text(b")")?;
        }
        self.text(b"(")?;
        self.node(parameters)?;
        self.text(b")")?;
        self.modifiers_from(modifiers, true)?;
        self.innermost = innermost;
        Ok(())
    }

    fn array(&mut self, id: NodeId, element: NodeId) -> Result {
        /// Most qualifiers of an array, with the array itself; the GNU C++ library refuses more.
        const MAX_MODIFIERS: usize = 4;
        let outer = self.innermost;
        let base = self.modifiers.len();
        self.push_modifier(id);
        // A qualified array is an array of qualified elements.
        let mut next = outer;
        while let Some((index, modifier)) = next.map(|index| (index, self.modifiers[index]))
            && matches!(self.get(modifier.node), Node::Qualified(qualifier, ..) if !qualifier.of_function())
        {
            if !modifier.written {
                if self.modifiers.len() - base >= MAX_MODIFIERS {
                    return Err(Refused);
                }
                self.modifiers.push(Modifier {
                    outer: self.innermost,
                    ..modifier
                });
                self.innermost = Some(self.modifiers.len() - 1);
                self.modifiers[index].written = true;
            }
            next = modifier.outer;
        }
        self.node(element)?;
        self.innermost = outer;
        if !self.modifiers[base].written {
            for index in (base + 1..self.modifiers.len()).rev() {
                self.modifier(self.modifiers[index].node)?;
            }
            self.modifiers.truncate(base);
            self.array_with(id, outer)?;
        }
        self.modifiers.truncate(base);
        Ok(())
    }

    /// Writes the bound of an array, with `modifiers` before it.
    fn array_with(&mut self, id: NodeId, modifiers: Option<usize>) -> Result {
        let Node::Array(bound, _) = self.get(id) else {
            return Err(Refused);
        };
        let mut first = modifiers;
        while let Some(modifier) = first.map(|index| self.modifiers[index])
            && modifier.written
        {
            first = modifier.outer;
        }
        let first = first.map(|index| self.get(self.modifiers[index].node));
        let parentheses = first.is_some_and(|node| !matches!(node, Node::Array(..)));
        if parentheses {
            self.text(b" (")?;
        }
        self.modifiers_from(modifiers, false)?;
        if parentheses {
            self.text(b")")?;
        }
        if parentheses || first.is_none() {
            self.text(b" ")?;
        }
        self.text(b"[")?;
        if let Some(bound) = bound {
            self.node(bound)?;
        }
        self.text(b"]")
    }

    /// Writes the modifiers, from one outwards, that have not been written; those whose place is behind the parameters
    /// of a function only if `behind`.
    fn modifiers_from(&mut self, mut next: Option<usize>, behind: bool) -> Result {
        while let Some((index, modifier)) = next.map(|index| (index, self.modifiers[index])) {
            self.step()?;
            next = modifier.outer;
            let node = self.get(modifier.node);
            let stands_behind =
                matches!(node, Node::Qualified(qualifier, ..) if qualifier.of_function());
            if modifier.written || stands_behind && !behind {
                continue;
            }
            self.modifiers[index].written = true;
            let scope = std::mem::replace(&mut self.scope, modifier.scope);
            match node {
                // These write the modifiers outside of them where they belong.
                Node::Function(..) => {
                    self.function_with(modifier.node, next)?;
                    next = None;
                }
                Node::Array(..) => {
                    self.array_with(modifier.node, next)?;
                    next = None;
                }
                Node::Local(function, name) => {
                    let innermost = self.innermost.take();
                    self.node(function)?;
                    self.innermost = innermost;
                    self.text(b"::")?;
                    let name = self.without_default_argument(name)?;
                    let name = self.without_function_qualifiers(name)?;
                    self.node(name)?;
                    next = None;
                }
                _ => self.modifier(modifier.node)?,
            }
            self.scope = scope;
        }
        Ok(())
    }

    /// Writes the text of one modifier.
    pub(super) fn modifier(&mut self, id: NodeId) -> Result {
        match self.get(id) {
            Node::Qualified(qualifier, _, operand) => {
                self.text(match qualifier {
                    Qualifier::Restrict | Qualifier::RestrictThis => b" restrict",
                    Qualifier::Volatile | Qualifier::VolatileThis => b" volatile",
                    Qualifier::Const | Qualifier::ConstThis => b" const",
                    Qualifier::LvalueThis => b" &",
                    Qualifier::RvalueThis => b" &&",
                    Qualifier::TransactionSafe => b" transaction_safe",
                    Qualifier::Noexcept => b" noexcept",
                    Qualifier::Throw => b" throw",
                })?;
                let Some(operand) = operand else {
                    return Ok(());
                };
                self.text(b"(")?;
                self.node(operand)?;
                self.text(b")")
            }
            Node::Indirect(indirection, _) => self.text(match indirection {
                Indirection::Pointer => b"*",
                Indirection::Lvalue => b"&",
                Indirection::Rvalue => b"&&",
                Indirection::Complex => b" _Complex",
                Indirection::Imaginary => b" _Imaginary",
            }),
            Node::VendorQualified(_, qualifier) => {
                self.text(b" ")?;
                self.node(qualifier)
            }
            Node::MemberPointer(class, _) => {
                if self.last != b'(' {
                    self.text(b" ")?;
                }
                self.node(class)?;
                self.text(b"::*")
            }
            Node::Vector(elements, _) => {
                self.text(b" __vector(")?;
                self.node(elements)?;
                self.text(b")")
            }
            Node::Typed(name, _) => self.node(name),
            _ => self.node(id),
        }
    }
}
