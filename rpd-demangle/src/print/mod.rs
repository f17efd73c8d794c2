//! Printer: makes the text of a parsed name, in the spelling of the GNU C++ library.

mod expressions;
mod templates;
mod types;

use std::io::Write as _;

use crate::LONGEST_TEXT;
use crate::parse::Parsed;
use crate::tree::{Node, NodeId, Qualifier, Tree};

/// Deepest nesting of parts; the GNU C++ library refuses names with more.
const MAX_DEPTH: usize = 1024;

/// Number of times that parts may be visited or searched for packs, together. Bounds the time for names that refer to
/// their own parts again and again without any text.
const MAX_STEPS: u32 = 1 << 22;

/// Error for a name without a text: a fault shows only when it is written, or its text is too long.
#[derive(Debug)]
pub(crate) struct Refused;

type Result<T = ()> = std::result::Result<T, Refused>;

/// The text of a name.
pub(crate) fn print(parsed: &Parsed<'_>) -> Result<Vec<u8>> {
    let mut printer = Printer {
        tree: &parsed.tree,
        out: Vec::with_capacity(256),
        last: 0,
        steps: 0,
        path: Vec::new(),
        open: vec![0; parsed.tree.len()],
        modifiers: Vec::new(),
        innermost: None,
        scopes: Vec::new(),
        scope: None,
        saved_scopes: Vec::new(),
        template: None,
        pack_index: 0,
        lambdas: 0,
    };
    printer.node(parsed.root)?;
    Ok(printer.out)
}

/// A type or name whose text stands inside the text of another type: `*` of a pointer to a function stands inside the
/// text of the function's type.
#[derive(Debug, Clone, Copy)]
struct Modifier {
    node: NodeId,
    /// Index of the modifier outside of this one.
    outer: Option<usize>,
    /// Index of the scope whose template arguments the modifier's template parameters refer to.
    scope: Option<usize>,
    written: bool,
}

/// A template whose arguments template parameters refer to.
#[derive(Debug, Clone, Copy)]
struct Scope {
    template: NodeId,
    outer: Option<usize>,
}

struct Printer<'t, 'n> {
    tree: &'t Tree<'n>,
    out: Vec<u8>,
    /// The byte that was written last, also when it has been removed again.
    last: u8,
    steps: u32,
    /// The parts that are being written, the innermost last.
    path: Vec<NodeId>,
    /// Number of times that each part is being written at present.
    open: Vec<u8>,
    /// All modifiers of the parts that are being written; those of interest are linked from `innermost`.
    modifiers: Vec<Modifier>,
    innermost: Option<usize>,
    /// All scopes that were entered; those in effect are linked from `scope`.
    scopes: Vec<Scope>,
    scope: Option<usize>,
    /// References to template parameters, each with the scope in which it was written first.
    saved_scopes: Vec<(NodeId, Option<usize>)>,
    /// The innermost template that is being written.
    template: Option<NodeId>,
    /// The element of a pack that is being written, or `WHOLE_PACK`.
    pack_index: i32,
    /// Number of lambdas whose parameters are being written.
    lambdas: u32,
}

impl<'n> Printer<'_, 'n> {
    fn text(&mut self, text: &[u8]) -> Result {
        if self.out.len() + text.len() > LONGEST_TEXT {
            return Err(Refused);
        }
        if let Some(&last) = text.last() {
            self.last = last;
        }
        self.out.extend_from_slice(text);
        Ok(())
    }

    fn number(&mut self, number: i64) -> Result {
        // 20 digits and a sign at most.
        let mut digits = [0; 24];
        let mut rest = &mut digits[..];
        write!(rest, "{number}").map_err(|_| Refused)?;
        let unused = rest.len();
        let used = digits.len() - unused;
        self.text(&digits[..used])
    }

    fn get(&self, id: NodeId) -> Node<'n> {
        self.tree.get(id)
    }

    fn step(&mut self) -> Result {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return Err(Refused);
        }
        Ok(())
    }

    /// Writes a part. A part may contain itself once: a template argument that names the template's function.
    fn node(&mut self, id: NodeId) -> Result {
        self.step()?;
        if self.open[id.index()] > 1 || self.path.len() > MAX_DEPTH {
            return Err(Refused);
        }
        self.open[id.index()] += 1;
        self.path.push(id);
        let result = self.write(id);
        self.path.pop();
        self.open[id.index()] -= 1;
        result
    }

    fn write(&mut self, id: NodeId) -> Result {
        match self.get(id) {
            Node::Name(name) => self.text(name),
            Node::Abbreviated(name) => self.text(name.as_bytes()),
            Node::Builtin(builtin) => self.text(builtin.name.as_bytes()),
            Node::VendorType(name) | Node::Constructor(name) => self.node(name),
            Node::Destructor(name) => {
                self.text(b"~")?;
                self.node(name)
            }
            Node::Number(number) => self.number(number.into()),
            Node::Tagged(name, tag) => {
                self.node(name)?;
                self.text(b"[abi:")?;
                self.node(tag)?;
                self.text(b"]")
            }
            Node::Scoped(outer, inner) | Node::Local(outer, inner) => {
                self.node(outer)?;
                self.text(b"::")?;
                let inner = self.without_default_argument(inner)?;
                self.node(inner)
            }
            Node::Typed(name, ty) => self.typed(name, ty),
            Node::Template(name, arguments) => self.template(id, name, arguments),
            Node::TemplateParam(number) => self.template_param(number),
            // `fpT`, the object of a member function.
            Node::FunctionParam(0) => self.text(b"this"),
            Node::FunctionParam(number) => {
                self.text(b"{parm#")?;
                self.number(number.into())?;
                self.text(b"}")
            }
            Node::Prefixed(text, about) => {
                self.text(text.as_bytes())?;
                self.node(about)
            }
            Node::ConstructionVtable(base, class) => {
                self.text(b"construction vtable for ")?;
                self.node(base)?;
                self.text(b"-in-")?;
                self.node(class)
            }
            Node::ReferenceTemporary(name, number) => {
                self.text(b"reference temporary #")?;
                self.number(number.into())?;
                self.text(b" for ")?;
                self.node(name)
            }
            Node::Clone(function, suffix) => {
                self.node(function)?;
                self.text(b" [clone ")?;
                self.node(suffix)?;
                self.text(b"]")
            }
            Node::Lambda(parameters, number) => {
                self.text(b"{lambda(")?;
                // Template parameters within it are those of a generic lambda, which have no arguments.
                self.lambdas += 1;
                self.node(parameters)?;
                self.lambdas -= 1;
                self.text(b")#")?;
                // Names have numbers from 0, and texts from 1.
                self.number(i64::from(number) + 1)?;
                self.text(b"}")
            }
            Node::Unnamed(number) => {
                self.text(b"{unnamed type#")?;
                self.number(i64::from(number) + 1)?;
                self.text(b"}")
            }
            Node::Arguments(first, rest) | Node::TemplateArguments(first, rest) => {
                self.list(first, rest)
            }
            Node::Expansion(pattern) => self.expansion(pattern),
            Node::Qualified(..)
            | Node::Indirect(..)
            | Node::VendorQualified(..)
            | Node::Function(..)
            | Node::Array(..)
            | Node::MemberPointer(..)
            | Node::Vector(..)
            | Node::FixedPoint { .. }
            | Node::SizedFloat(..)
            | Node::SizedInteger(..) => self.ty(id),
            Node::Operator(_)
            | Node::VendorOperator(..)
            | Node::Conversion(_)
            | Node::Cast(_)
            | Node::Initializer(..)
            | Node::Nullary(_)
            | Node::Unary(..)
            | Node::Postfix(..)
            | Node::Binary(..)
            | Node::Trinary(..)
            | Node::VendorCall(..)
            | Node::Literal { .. }
            | Node::Decltype(_) => self.expression(id),
            // Only a local name has one.
            Node::DefaultArgument(..) => Err(Refused),
        }
    }

    /// Writes the default argument that contains a local name, if one does; returns the name itself.
    fn without_default_argument(&mut self, name: NodeId) -> Result<NodeId> {
        let Node::DefaultArgument(number, inner) = self.get(name) else {
            return Ok(name);
        };
        self.text(b"{default arg#")?;
        self.number(i64::from(number) + 1)?;
        self.text(b"}::")?;
        Ok(inner)
    }

    fn list(&mut self, first: Option<NodeId>, rest: Option<NodeId>) -> Result {
        if let Some(first) = first {
            self.node(first)?;
        }
        let Some(rest) = rest else {
            return Ok(());
        };
        self.text(b", ")?;
        let length = self.out.len();
        self.node(rest)?;
        // Only empty packs followed. `last` stays: the GNU C++ library then writes `>>` without a blank.
        if self.out.len() == length {
            self.out.truncate(length - 2);
        }
        Ok(())
    }

    /// Writes a name with its type. The name, and the qualifiers of a member function, are modifiers of the type, which
    /// has a place for them.
    fn typed(&mut self, name: NodeId, ty: NodeId) -> Result {
        /// Most qualifiers and names before a type; the GNU C++ library refuses more.
        const MAX_MODIFIERS: usize = 4;
        let outer = self.innermost.take();
        let base = self.modifiers.len();
        let mut inner = name;
        loop {
            if self.modifiers.len() - base >= MAX_MODIFIERS {
                return Err(Refused);
            }
            self.push_modifier(inner);
            match self.get(inner) {
                Node::Qualified(qualifier, next, _) if qualifier.of_function() => {
                    inner = next.ok_or(Refused)?;
                }
                _ => break,
            }
        }
        if let Node::Local(_, local) = self.get(inner) {
            inner = match self.get(local) {
                Node::DefaultArgument(_, name) => name,
                _ => local,
            };
            // The qualifiers of the local function go between the name and the modifiers outside of it.
            while let Node::Qualified(qualifier, next, _) = self.get(inner)
                && qualifier.of_function()
            {
                if self.modifiers.len() - base >= MAX_MODIFIERS {
                    return Err(Refused);
                }
                let top = self.modifiers.len() - 1;
                let local = self.modifiers[top].node;
                self.modifiers[top].node = inner;
                self.push_modifier(local);
                inner = next.ok_or(Refused)?;
            }
        }
        // Template parameters in the type are those of this template.
        if matches!(self.get(inner), Node::Template(..)) {
            let scope = self.scope;
            self.enter(inner);
            self.node(ty)?;
            self.scope = scope;
        } else {
            self.node(ty)?;
        }
        // What the type had no place for.
        for index in (base..self.modifiers.len()).rev() {
            if !self.modifiers[index].written {
                self.text(b" ")?;
                self.modifier(self.modifiers[index].node)?;
            }
        }
        self.modifiers.truncate(base);
        self.innermost = outer;
        Ok(())
    }

    /// The name of a member function without its qualifiers, which are left out inside another name.
    fn without_function_qualifiers(&self, mut name: NodeId) -> Result<NodeId> {
        while let Node::Qualified(qualifier, inner, _) = self.get(name)
            && Qualifier::of_function(qualifier)
        {
            name = inner.ok_or(Refused)?;
        }
        Ok(name)
    }
}
