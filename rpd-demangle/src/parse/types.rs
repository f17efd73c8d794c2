//! Types and template arguments.

use super::Parser;
use crate::Dialect;
use crate::tables;
use crate::tree::{Indirection, Node, NodeId, Qualifier};

/// A qualifier with its operand, read before the type to which it applies.
type Qualification = (Qualifier, Option<NodeId>);

impl Parser<'_> {
    pub(super) fn ty(&mut self) -> Option<NodeId> {
        self.nested(Self::ty_here)
    }

    fn ty_here(&mut self) -> Option<NodeId> {
        if self.at_qualifier() {
            return self.qualified_type();
        }
        // Whether substitutions can refer to the type.
        let mut substitutable = true;
        let first = self.peek();
        let ty = match first {
            b'F' => self.function_type()?,
            b'A' => self.array_type()?,
            b'M' => {
                self.skip(1);
                let class = self.ty()?;
                let member = self.ty()?;
                self.add(Node::MemberPointer(class, member))?
            }
            b'T' => self.template_param_type()?,
            b'P' => self.indirect(Indirection::Pointer)?,
            b'R' => self.indirect(Indirection::Lvalue)?,
            b'O' => self.indirect(Indirection::Rvalue)?,
            b'C' => self.indirect(Indirection::Complex)?,
            b'G' => self.indirect(Indirection::Imaginary)?,
            b'U' => self.vendor_qualified()?,
            b'D' => {
                self.skip(1);
                let (ty, can) = self.type_of_two_letters()?;
                substitutable = can;
                ty
            }
            b'S' => match self.peek_second() {
                b'0'..=b'9' | b'A'..=b'Z' | b'_' => {
                    let ty = self.substitution(false)?;
                    // With arguments it is a new type, to which substitutions can refer; alone it is one that they
                    // refer to already.
                    if self.peek() == b'I' {
                        let arguments = self.template_args()?;
                        self.add(Node::Template(ty, arguments))?
                    } else {
                        substitutable = false;
                        ty
                    }
                }
                _ => {
                    let ty = self.name()?;
                    // An abbreviation such as `Ss` is a substitution already.
                    substitutable = !matches!(self.get(ty), Node::Abbreviated(_));
                    ty
                }
            },
            b'u' => {
                self.skip(1);
                let name = self.source_name()?;
                self.add(Node::VendorType(name))?
            }
            b'0'..=b'9' | b'N' | b'Z' => self.name()?,
            _ => {
                let builtin = tables::builtin(first)?;
                self.skip(1);
                // The ABI gives builtin types no number.
                substitutable = false;
                self.add(Node::Builtin(builtin))?
            }
        };
        if substitutable {
            self.substitutable(ty);
        }
        Some(ty)
    }

    /// Whether a qualifier of a type or of a function comes next.
    fn at_qualifier(&self) -> bool {
        match self.peek() {
            b'r' | b'V' | b'K' => true,
            // Types begin with `D` as well: the second letter decides.
            b'D' => matches!(self.peek_second(), b'x' | b'o' | b'O' | b'w'),
            _ => false,
        }
    }

    /// Reads qualifiers, the outermost first. `of_member`: they qualify the object of a member function.
    pub(super) fn qualifiers(&mut self, of_member: bool) -> Option<Vec<Qualification>> {
        let mut found = Vec::new();
        while self.at_qualifier() {
            let mut operand = None;
            let qualifier = match self.next() {
                b'r' => Qualifier::Restrict,
                b'V' => Qualifier::Volatile,
                b'K' => Qualifier::Const,
                _ => match self.next() {
                    b'x' => Qualifier::TransactionSafe,
                    b'o' => Qualifier::Noexcept,
                    b'O' => {
                        operand = Some(self.expression()?);
                        self.expect(b'E')?;
                        Qualifier::Noexcept
                    }
                    _ => {
                        operand = Some(self.parameters()?);
                        self.expect(b'E')?;
                        Qualifier::Throw
                    }
                },
            };
            found.push((qualifier, operand));
        }
        // Before a function type they qualify the object that the function is called on.
        if of_member || self.peek() == b'F' {
            for (qualifier, _) in &mut found {
                *qualifier = qualifier.for_function();
            }
        }
        Some(found)
    }

    /// The type `inner` with all of `qualifiers`.
    pub(super) fn qualify(
        &mut self,
        qualifiers: Vec<Qualification>,
        inner: NodeId,
    ) -> Option<NodeId> {
        let mut whole = inner;
        for (qualifier, operand) in qualifiers.into_iter().rev() {
            whole = self.add(Node::Qualified(qualifier, Some(whole), operand))?;
        }
        Some(whole)
    }

    fn qualified_type(&mut self) -> Option<NodeId> {
        let qualifiers = self.qualifiers(false)?;
        // The type of a function without its qualifiers is none that substitutions refer to.
        let inner = if self.peek() == b'F' {
            self.function_type()?
        } else {
            self.ty()?
        };
        let ty = match self.get(inner) {
            // `&` and `&&` stand behind the other qualifiers. As in the GNU C++ library, a substitution that named the
            // type without these has them from now on.
            Node::Qualified(
                reference @ (Qualifier::LvalueThis | Qualifier::RvalueThis),
                Some(function),
                operand,
            ) => {
                let qualified = self.qualify(qualifiers, function)?;
                let node = Node::Qualified(reference, Some(qualified), operand);
                self.tree.replace(inner, node);
                inner
            }
            _ => self.qualify(qualifiers, inner)?,
        };
        self.substitutable(ty);
        Some(ty)
    }

    fn indirect(&mut self, indirection: Indirection) -> Option<NodeId> {
        self.skip(1);
        let inner = self.ty()?;
        self.add(Node::Indirect(indirection, inner))
    }

    /// Reads `U <name> [<template-args>] <type>`.
    fn vendor_qualified(&mut self) -> Option<NodeId> {
        self.skip(1);
        let mut qualifier = self.source_name()?;
        if self.peek() == b'I' {
            let arguments = self.template_args()?;
            qualifier = self.add(Node::Template(qualifier, arguments))?;
        }
        let ty = self.ty()?;
        self.add(Node::VendorQualified(ty, qualifier))
    }

    /// Reads a type that begins with `D`; returns whether substitutions can refer to it, too.
    fn type_of_two_letters(&mut self) -> Option<(NodeId, bool)> {
        let code = self.next();
        Some(match code {
            b'T' | b't' => {
                let expression = self.expression()?;
                if self.next() != b'E' {
                    return None;
                }
                (self.add(Node::Decltype(expression))?, true)
            }
            b'p' => {
                let pattern = self.ty()?;
                (self.add(Node::Expansion(pattern))?, true)
            }
            b'v' => (self.vector_type()?, true),
            b'F' if self.dialect == Dialect::Any && self.at_sized_float() => {
                (self.sized_float()?, false)
            }
            b'F' => (self.fixed_point()?, false),
            b'B' | b'U' if self.dialect == Dialect::Any => {
                (self.sized_integer(code == b'U')?, false)
            }
            b'a' => (self.add(Node::Name(b"auto"))?, false),
            b'c' => (self.add(Node::Name(b"decltype(auto)"))?, false),
            _ => (self.add(Node::Builtin(tables::builtin_d(code)?))?, false),
        })
    }

    /// Whether `<digits> (_ | x | b)` comes next, behind `DF`. The GNU C++ library has known these types since version
    /// 13; earlier versions refused all but the last form, which they took for a type of fixed point.
    fn at_sized_float(&self) -> bool {
        let rest = &self.text[self.at..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        digits > 0 && matches!(rest.get(digits), Some(b'_' | b'x' | b'b'))
    }

    /// Reads a type such as `_Float16`, `_Float64x`, `std::bfloat16_t`, behind `DF`.
    fn sized_float(&mut self) -> Option<NodeId> {
        let bits = self.number();
        let suffix = match self.next() {
            b'_' => "",
            b'x' => "x",
            _ => return self.add(Node::Builtin(&tables::BFLOAT16)),
        };
        self.add(Node::SizedFloat(bits, suffix))
    }

    /// Reads `<digits> _` or `<expression> _`, behind `DB` or `DU`. The GNU C++ library refuses such types.
    fn sized_integer(&mut self, unsigned: bool) -> Option<NodeId> {
        let bits = match self.peek() {
            b'0'..=b'9' => {
                let digits = self.digits();
                self.add(Node::Name(digits))?
            }
            _ => self.expression()?,
        };
        self.expect(b'_')?;
        self.add(Node::SizedInteger(unsigned, bits))
    }

    /// Reads a type of fixed point, `[<digits>] <length> <digits> (s | n)`, behind `DF`.
    fn fixed_point(&mut self) -> Option<NodeId> {
        let accum = self.peek().is_ascii_digit();
        if accum {
            self.number();
        }
        let length = self.ty()?;
        self.number();
        let saturating = self.next() == b's';
        self.add(Node::FixedPoint {
            accum,
            length,
            saturating,
        })
    }

    /// Reads a vector type, `<elements> _ <type>`, behind `Dv`.
    fn vector_type(&mut self) -> Option<NodeId> {
        let elements = if self.take(b'_') {
            self.expression()?
        } else {
            let number = self.number();
            self.add(Node::Number(number))?
        };
        self.expect(b'_')?;
        let element = self.ty()?;
        self.add(Node::Vector(elements, element))
    }

    /// Reads `F [Y] <types> [<reference>] E`.
    fn function_type(&mut self) -> Option<NodeId> {
        self.nested(|parser| {
            parser.expect(b'F')?;
            // C linkage is not shown.
            parser.take(b'Y');
            let mut ty = parser.bare_function_type(true)?;
            let reference = match parser.peek() {
                b'R' => Some(Qualifier::LvalueThis),
                b'O' => Some(Qualifier::RvalueThis),
                _ => None,
            };
            if let Some(reference) = reference {
                parser.skip(1);
                ty = parser.add(Node::Qualified(reference, Some(ty), None))?;
            }
            parser.expect(b'E')?;
            Some(ty)
        })
    }

    /// Reads the return type of a function, if `returns` or the name says that it has one, and its parameters.
    pub(super) fn bare_function_type(&mut self, returns: bool) -> Option<NodeId> {
        let returns = self.take(b'J') || returns;
        let result = if returns { Some(self.ty()?) } else { None };
        let parameters = self.parameters()?;
        self.add(Node::Function(result, parameters))
    }

    /// The types of parameters; `void` alone is none.
    pub(super) fn parameters(&mut self) -> Option<NodeId> {
        let mut types = Vec::new();
        // `RE` and `OE` are the reference of the object of a member function.
        while !matches!(
            (self.peek(), self.peek_second()),
            (0 | b'E' | b'.', _) | (b'R' | b'O', b'E')
        ) {
            types.push(self.ty()?);
        }
        match types[..] {
            [] => None,
            [only] if self.is_void(only) => self.add(Node::Arguments(None, None)),
            _ => self.list(types, Node::Arguments),
        }
    }

    fn is_void(&self, ty: NodeId) -> bool {
        matches!(self.get(ty), Node::Builtin(builtin) if builtin.name == "void")
    }

    /// Makes a list of `parts`; without any, a list of no elements.
    pub(super) fn list(
        &mut self,
        parts: Vec<NodeId>,
        link: fn(Option<NodeId>, Option<NodeId>) -> Node<'static>,
    ) -> Option<NodeId> {
        let mut rest = None;
        for part in parts.into_iter().rev() {
            rest = Some(self.add(link(Some(part), rest))?);
        }
        match rest {
            None => self.add(link(None, None)),
            list => list,
        }
    }

    /// Reads `A [<bound>] _ <type>`.
    fn array_type(&mut self) -> Option<NodeId> {
        self.expect(b'A')?;
        let bound = match self.peek() {
            b'_' => None,
            b'0'..=b'9' => {
                let digits = self.digits();
                Some(self.add(Node::Name(digits))?)
            }
            _ => Some(self.expression()?),
        };
        self.expect(b'_')?;
        let element = self.ty()?;
        self.add(Node::Array(bound, element))
    }

    /// A template parameter as a type, with arguments if it is a template.
    fn template_param_type(&mut self) -> Option<NodeId> {
        let parameter = self.template_param()?;
        if self.peek() != b'I' {
            return Some(parameter);
        }
        if !self.in_conversion {
            self.substitutable(parameter);
            let arguments = self.template_args()?;
            return self.add(Node::Template(parameter, arguments));
        }
        // The arguments are those of the conversion operator, unless more follow.
        let (at, substitutions) = (self.at, self.substitutions.len());
        let arguments = self.template_args();
        if self.peek() == b'I' {
            self.substitutable(parameter);
            self.add(Node::Template(parameter, arguments?))
        } else {
            self.at = at;
            self.substitutions.truncate(substitutions);
            Some(parameter)
        }
    }

    /// Reads a template parameter, `T_` or `T<number>_`.
    pub(super) fn template_param(&mut self) -> Option<NodeId> {
        self.expect(b'T')?;
        let number = self.compact_number()?;
        self.add(Node::TemplateParam(number))
    }

    /// Reads `I <arguments> E`, or a pack, `J <arguments> E`.
    pub(super) fn template_args(&mut self) -> Option<NodeId> {
        if !self.take(b'I') {
            self.expect(b'J')?;
        }
        self.nested(Self::rest_of_template_args)
    }

    /// Reads template arguments and the `E` behind them.
    pub(super) fn rest_of_template_args(&mut self) -> Option<NodeId> {
        // A name in an argument is not that of a constructor behind the template.
        let last_name = self.last_name;
        let mut arguments = Vec::new();
        while !self.take(b'E') {
            arguments.push(self.template_arg()?);
        }
        self.last_name = last_name;
        self.list(arguments, Node::TemplateArguments)
    }

    pub(super) fn template_arg(&mut self) -> Option<NodeId> {
        match self.peek() {
            b'X' => {
                self.skip(1);
                let expression = self.expression()?;
                self.expect(b'E')?;
                Some(expression)
            }
            b'L' => self.primary_expression(),
            b'I' | b'J' => self.template_args(),
            _ => self.ty(),
        }
    }
}
