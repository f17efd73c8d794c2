//! Names of functions, variables and classes, and special names.

use super::Parser;
use crate::Dialect;
use crate::tree::{Node, NodeId, Qualifier};

/// Name of unnamed namespaces in mangled names, which a separator and `N` follow.
const UNNAMED_NAMESPACE: &[u8] = b"_GLOBAL_";

impl<'n> Parser<'n> {
    /// Reads `_Z <encoding>`, at the top level with suffixes of clones.
    pub(super) fn mangled_name(&mut self, top: bool) -> Option<NodeId> {
        // Old compilers wrote names inside others without the underscore.
        if !self.take(b'_') && top {
            return None;
        }
        self.expect(b'Z')?;
        let mut name = self.encoding(top)?;
        while top && self.peek() == b'.' {
            let suffix = self.clone_suffix()?;
            let suffix = self.add(Node::Name(suffix))?;
            name = self.add(Node::Clone(name, suffix))?;
        }
        Some(name)
    }

    /// Reads a suffix of a clone, `.<word>` or `.<number>`, with numbers behind it.
    fn clone_suffix(&mut self) -> Option<&'n [u8]> {
        let rest = &self.text[self.at..];
        let digits_in_words = self.dialect != Dialect::Rocprofv3;
        let in_word = |byte: &u8| {
            byte.is_ascii_lowercase() || *byte == b'_' || digits_in_words && byte.is_ascii_digit()
        };
        let second = rest.get(1)?;
        let mut length = 0;
        if in_word(second) {
            length = 1 + rest[1..].iter().take_while(|byte| in_word(byte)).count();
        } else if !second.is_ascii_digit() {
            return None;
        }
        while let [b'.', digits @ ..] = &rest[length..]
            && let count @ 1.. = digits
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .count()
        {
            length += 1 + count;
        }
        self.skip(length);
        Some(&rest[..length])
    }

    /// A name with its type, or a special name.
    pub(super) fn encoding(&mut self, top: bool) -> Option<NodeId> {
        self.nested(|parser| parser.encoding_here(top))
    }

    fn encoding_here(&mut self, top: bool) -> Option<NodeId> {
        if matches!(self.peek(), b'G' | b'T') {
            return self.special_name();
        }
        let name = self.name()?;
        if matches!(self.peek(), 0 | b'E') {
            return Some(name);
        }
        let ty = self.bare_function_type(self.has_return_type(name))?;
        if !top && matches!(self.get(name), Node::Local(..)) {
            self.drop_return_type(ty);
        }
        self.add(Node::Typed(name, ty))
    }

    /// Leaves out the return type of a function: inside another name it would read as the other's type.
    fn drop_return_type(&mut self, ty: NodeId) {
        if let Node::Function(_, parameters) = self.get(ty) {
            self.tree.replace(ty, Node::Function(None, parameters));
        }
    }

    /// Whether the type of a function of this name begins with its return type.
    fn has_return_type(&self, mut name: NodeId) -> bool {
        loop {
            name = match self.get(name) {
                Node::Local(_, inner) => inner,
                Node::Qualified(qualifier, Some(inner), _) if qualifier.of_function() => inner,
                Node::Template(template, _) => return !self.is_structor_or_conversion(template),
                _ => return false,
            };
        }
    }

    fn is_structor_or_conversion(&self, mut name: NodeId) -> bool {
        loop {
            name = match self.get(name) {
                Node::Scoped(_, inner) | Node::Local(_, inner) => inner,
                Node::Constructor(_) | Node::Destructor(_) | Node::Conversion(_) => return true,
                _ => return false,
            };
        }
    }

    pub(super) fn name(&mut self) -> Option<NodeId> {
        match self.peek() {
            b'N' => self.nested(Self::nested_name),
            b'Z' => self.nested(Self::local_name),
            // What has no name is no template.
            b'U' => self.unqualified_name(),
            b'S' => {
                let (name, substituted) = if self.take_both(b"St") {
                    let std = self.add(Node::Name(b"std"))?;
                    let inner = self.unqualified_name()?;
                    (self.add(Node::Scoped(std, inner))?, false)
                } else {
                    (self.substitution(false)?, true)
                };
                self.with_template_args(name, !substituted)
            }
            _ => {
                let name = self.unqualified_name()?;
                self.with_template_args(name, true)
            }
        }
    }

    /// Reads template arguments behind `name`, if there are any. `substitutable`: substitutions can refer to the name
    /// of the template.
    fn with_template_args(&mut self, name: NodeId, substitutable: bool) -> Option<NodeId> {
        if self.peek() != b'I' {
            return Some(name);
        }
        if substitutable {
            self.substitutable(name);
        }
        let arguments = self.template_args()?;
        self.add(Node::Template(name, arguments))
    }

    /// Reads `N [<qualifiers>] <prefix> E`.
    fn nested_name(&mut self) -> Option<NodeId> {
        self.expect(b'N')?;
        let qualifiers = self.qualifiers(true)?;
        let reference = match self.peek() {
            b'R' => Some(Qualifier::LvalueThis),
            b'O' => Some(Qualifier::RvalueThis),
            _ => None,
        };
        if reference.is_some() {
            self.skip(1);
        }
        let inner = self.prefix(true)?;
        let mut name = self.qualify(qualifiers, inner)?;
        if let Some(reference) = reference {
            name = self.add(Node::Qualified(reference, Some(name), None))?;
        }
        self.expect(b'E')?;
        Some(name)
    }

    /// Reads the parts of a nested name, up to the `E`. `substitutable`: substitutions can refer to each prefix.
    pub(super) fn prefix(&mut self, substitutable: bool) -> Option<NodeId> {
        let mut whole: Option<NodeId> = None;
        loop {
            let (first, start) = (self.peek(), self.at);
            let part = match first {
                b'E' => return whole,
                b'I' => {
                    let template = whole?;
                    let arguments = self.template_args()?;
                    whole = Some(self.add(Node::Template(template, arguments))?);
                    if substitutable && self.peek() != b'E' {
                        self.substitutable(whole?);
                    }
                    continue;
                }
                // The variable whose initializer a lambda is in: a scope like any other.
                b'M' => {
                    whole?;
                    self.skip(1);
                    continue;
                }
                b'S' => self.substitution(true),
                b'T' => self.template_param(),
                b'D' if matches!(self.peek_second(), b'T' | b't') => self.ty(),
                b'0'..=b'9' | b'a'..=b'z' | b'C' | b'D' | b'U' | b'L' => self.unqualified_name(),
                _ => return None,
            };
            whole = match (whole, part) {
                // The GNU C++ library begins anew behind a substitution for nothing.
                (_, None) if self.at == start || substitutable && first != b'S' => return None,
                (_, None) => None,
                (None, part) => part,
                (Some(outer), Some(part)) => Some(self.add(Node::Scoped(outer, part))?),
            };
            if substitutable && first != b'S' && self.peek() != b'E' {
                self.substitutable(whole?);
            }
        }
    }

    /// Reads `Z <function> E <name>`.
    fn local_name(&mut self) -> Option<NodeId> {
        self.expect(b'Z')?;
        let function = self.encoding(false)?;
        self.expect(b'E')?;
        let name = if self.take(b's') {
            self.discriminator()?;
            self.add(Node::Name(b"string literal"))?
        } else {
            let parameter = if self.take(b'd') {
                Some(self.compact_number()?)
            } else {
                None
            };
            let name = self.name()?;
            if !matches!(self.get(name), Node::Lambda(..) | Node::Unnamed(_)) {
                self.discriminator()?;
            }
            match parameter {
                Some(number) => self.add(Node::DefaultArgument(number, name))?,
                None => name,
            }
        };
        if let Node::Typed(_, ty) = self.get(function) {
            self.drop_return_type(ty);
        }
        self.add(Node::Local(function, name))
    }

    /// A name without scope.
    pub(super) fn unqualified_name(&mut self) -> Option<NodeId> {
        let name = match (self.peek(), self.peek_second()) {
            (b'0'..=b'9', _) => self.source_name()?,
            (b'a'..=b'z', _) => self.operator_as_name()?,
            (b'C' | b'D', _) => self.structor()?,
            (b'L', _) => {
                self.skip(1);
                let name = self.source_name()?;
                self.discriminator()?;
                name
            }
            (b'U', b'l') => self.lambda()?,
            (b'U', b't') => self.unnamed_type()?,
            _ => return None,
        };
        if self.peek() == b'B' {
            return self.abi_tags(name);
        }
        Some(name)
    }

    /// The name of an operator function.
    fn operator_as_name(&mut self) -> Option<NodeId> {
        let in_expression = self.in_expression;
        // What `on` names in an expression is a function, and `cv` a conversion.
        if self.take_both(b"on") {
            self.in_expression = false;
        }
        let name = self.operator();
        self.in_expression = in_expression;
        let name = name?;
        match self.get(name) {
            Node::Operator(operator) if operator.code == *b"li" => {
                let suffix = self.source_name()?;
                self.add(Node::Unary(name, suffix))
            }
            _ => Some(name),
        }
    }

    /// Reads `<length> <identifier>`.
    pub(super) fn source_name(&mut self) -> Option<NodeId> {
        let length = usize::try_from(self.number()).ok()?;
        let name = self.text.get(self.at..)?.get(..length)?;
        self.skip(length);
        let unnamed = name.strip_prefix(UNNAMED_NAMESPACE);
        let name = match (unnamed, name) {
            (_, []) => return None,
            (Some([b'.' | b'_' | b'$', b'N', ..]), _) => b"(anonymous namespace)",
            _ => name,
        };
        let id = self.add(Node::Name(name))?;
        self.last_name = Some(id);
        Some(id)
    }

    pub(super) fn abi_tags(&mut self, mut name: NodeId) -> Option<NodeId> {
        let last_name = self.last_name;
        while self.take(b'B') {
            let tag = self.source_name()?;
            name = self.add(Node::Tagged(name, tag))?;
        }
        self.last_name = last_name;
        Some(name)
    }

    /// A constructor or destructor.
    fn structor(&mut self) -> Option<NodeId> {
        let constructor = self.next() == b'C';
        let inheriting = constructor && self.take(b'I');
        match (self.next(), constructor) {
            (b'1'..=b'5', true) | (b'0' | b'1' | b'2' | b'4' | b'5', false) => {}
            _ => return None,
        }
        if inheriting {
            // The class that it comes from, which is not shown.
            let _class = self.ty();
        }
        let name = self.last_name?;
        self.add(if constructor {
            Node::Constructor(name)
        } else {
            Node::Destructor(name)
        })
    }

    /// Reads the rest of a lambda, `Ul <parameters> E [<number>] _`.
    fn lambda(&mut self) -> Option<NodeId> {
        self.skip(2);
        let parameters = self.parameters()?;
        self.expect(b'E')?;
        let number = self.compact_number()?;
        self.add(Node::Lambda(parameters, number))
    }

    /// Reads the rest of an unnamed type, `Ut [<number>] _`.
    fn unnamed_type(&mut self) -> Option<NodeId> {
        self.skip(2);
        let number = self.compact_number()?;
        let name = self.add(Node::Unnamed(number))?;
        self.substitutable(name);
        Some(name)
    }

    /// Reads the name of an object or function that compilers make themselves, such as a table of virtual functions.
    fn special_name(&mut self) -> Option<NodeId> {
        let kind = (self.next(), self.next());
        let (text, about) = match kind {
            (b'T', b'V') => ("vtable for ", self.ty()?),
            (b'T', b'T') => ("VTT for ", self.ty()?),
            (b'T', b'I') => ("typeinfo for ", self.ty()?),
            (b'T', b'S') => ("typeinfo name for ", self.ty()?),
            (b'T', b'F') => ("typeinfo fn for ", self.ty()?),
            (b'T', b'J') => ("java Class for ", self.ty()?),
            (b'T', b'H') => ("TLS init function for ", self.name()?),
            (b'T', b'W') => ("TLS wrapper function for ", self.name()?),
            (b'T', b'A') => ("template parameter object for ", self.template_arg()?),
            (b'T', b'C') => return self.construction_vtable(),
            (b'T', b'h') => {
                self.call_offset(b'h')?;
                ("non-virtual thunk to ", self.encoding(false)?)
            }
            (b'T', b'v') => {
                self.call_offset(b'v')?;
                ("virtual thunk to ", self.encoding(false)?)
            }
            (b'T', b'c') => {
                for _ in 0..2 {
                    let offset = self.next();
                    self.call_offset(offset)?;
                }
                ("covariant return thunk to ", self.encoding(false)?)
            }
            (b'G', b'V') => ("guard variable for ", self.name()?),
            (b'G', b'A') => ("hidden alias for ", self.encoding(false)?),
            (b'G', b'T') => {
                let text = match self.next() {
                    b'n' => "non-transaction clone for ",
                    _ => "transaction clone for ",
                };
                (text, self.encoding(false)?)
            }
            (b'G', b'R') => {
                let name = self.name()?;
                let number = self.number();
                return self.add(Node::ReferenceTemporary(name, number));
            }
            _ => return None,
        };
        self.add(Node::Prefixed(text, about))
    }

    /// Reads `<class> <offset> _ <base>`; the offset is not part of the text.
    fn construction_vtable(&mut self) -> Option<NodeId> {
        let class = self.ty()?;
        if self.number() < 0 {
            return None;
        }
        self.expect(b'_')?;
        let base = self.ty()?;
        self.add(Node::ConstructionVtable(base, class))
    }

    /// Reads the offset of a thunk, which is not part of the text.
    fn call_offset(&mut self, kind: u8) -> Option<()> {
        match kind {
            b'h' => {
                self.number();
            }
            b'v' => {
                self.number();
                self.expect(b'_')?;
                self.number();
            }
            _ => return None,
        }
        self.expect(b'_')
    }
}
