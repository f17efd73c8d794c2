//! The parts of a demangled name.

use crate::tables::{Builtin, Operator};

/// Index of a part among the parts of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NodeId(u32);

impl NodeId {
    /// The index as a number, for tables with an entry for each part.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A qualifier of a type, or of a member function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Qualifier {
    Restrict,
    Volatile,
    Const,
    /// `restrict` of the object of a member function.
    RestrictThis,
    /// `volatile` of the object of a member function.
    VolatileThis,
    /// `const` of the object of a member function.
    ConstThis,
    /// `&` of the object of a member function.
    LvalueThis,
    /// `&&` of the object of a member function.
    RvalueThis,
    TransactionSafe,
    /// `noexcept`, with an operand where the name has one.
    Noexcept,
    /// `throw`, with the types.
    Throw,
}

impl Qualifier {
    /// Whether the qualifier belongs behind the parameters of a function.
    pub(crate) fn of_function(self) -> bool {
        !matches!(
            self,
            Qualifier::Restrict | Qualifier::Volatile | Qualifier::Const
        )
    }

    /// The qualifier that the qualifier of a type becomes when the type turns out to be that of a function.
    pub(crate) fn for_function(self) -> Qualifier {
        match self {
            Qualifier::Restrict => Qualifier::RestrictThis,
            Qualifier::Volatile => Qualifier::VolatileThis,
            Qualifier::Const => Qualifier::ConstThis,
            other => other,
        }
    }
}

/// A part that stands before the type to which it refers in the mangled name, and behind it in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Indirection {
    Pointer,
    Lvalue,
    Rvalue,
    Complex,
    Imaginary,
}

/// One part of a name.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Node<'n> {
    /// An identifier, the digits of a literal, the suffix of a clone.
    Name(&'n [u8]),
    /// A name that has an abbreviation in mangled names.
    Abbreviated(&'static str),
    /// A type of the language.
    Builtin(&'static Builtin),
    /// An operator of the language.
    Operator(&'static Operator),
    /// An operator of a compiler, and the number of its operands.
    VendorOperator(u8, NodeId),
    /// A name with an ABI tag.
    Tagged(NodeId, NodeId),
    /// `outer::inner`.
    Scoped(NodeId, NodeId),
    /// A name that is local to a function.
    Local(NodeId, NodeId),
    /// A name in the default argument of a parameter, with the number of the parameter. The last parameter has number
    /// 0.
    DefaultArgument(i32, NodeId),
    /// The name and the type of a function or variable.
    Typed(NodeId, NodeId),
    /// A template with its arguments.
    Template(NodeId, NodeId),
    /// A template parameter, by number.
    TemplateParam(i32),
    /// A parameter of the function; 0 is `this`.
    FunctionParam(i32),
    Constructor(NodeId),
    Destructor(NodeId),
    /// A fixed text, and the part that follows it.
    Prefixed(&'static str, NodeId),
    /// A table of virtual functions for construction: the base, and the class in which it lies.
    ConstructionVtable(NodeId, NodeId),
    ReferenceTemporary(NodeId, i32),
    /// A qualifier, the part to which it applies, and the qualifier's operand.
    Qualified(Qualifier, Option<NodeId>, Option<NodeId>),
    Indirect(Indirection, NodeId),
    /// A type with a qualifier of a compiler.
    VendorQualified(NodeId, NodeId),
    /// A type of a compiler.
    VendorType(NodeId),
    /// A function type: its return type, if that is known, and its parameters.
    Function(Option<NodeId>, NodeId),
    /// An array type: bound and element.
    Array(Option<NodeId>, NodeId),
    /// A pointer to a member: class and type.
    MemberPointer(NodeId, NodeId),
    /// A vector type: number of elements and element.
    Vector(NodeId, NodeId),
    /// A fixed point type.
    FixedPoint {
        accum: bool,
        length: NodeId,
        saturating: bool,
    },
    /// A floating point type: number of bits, and the end of its name.
    SizedFloat(i32, &'static str),
    /// An integer type: whether it is unsigned, and its number of bits.
    SizedInteger(bool, NodeId),
    /// An argument of a function, and the arguments behind it. An empty list has neither.
    Arguments(Option<NodeId>, Option<NodeId>),
    /// An argument of a template, and the arguments behind it. A pack is such a list, too. An empty list has neither.
    TemplateArguments(Option<NodeId>, Option<NodeId>),
    /// `type{list}`.
    Initializer(Option<NodeId>, NodeId),
    /// A conversion operator.
    Conversion(NodeId),
    /// A cast in an expression.
    Cast(NodeId),
    /// An expression without operands.
    Nullary(NodeId),
    /// Operator and operand of an expression.
    Unary(NodeId, NodeId),
    /// An operator behind its operand.
    Postfix(NodeId, NodeId),
    /// Operator and operands of an expression.
    Binary(NodeId, NodeId, NodeId),
    /// Operator and operands of an expression. `new` may lack the last operand.
    Trinary(NodeId, NodeId, NodeId, Option<NodeId>),
    /// An expression of a compiler: name and arguments.
    VendorCall(NodeId, NodeId),
    Literal {
        negative: bool,
        ty: NodeId,
        value: NodeId,
    },
    Number(i32),
    Decltype(NodeId),
    /// A pattern that is repeated for each element of a pack.
    Expansion(NodeId),
    /// The parameters of a lambda, and its number.
    Lambda(NodeId, i32),
    /// The number of a type without a name.
    Unnamed(i32),
    /// A function, and the suffix of its clone.
    Clone(NodeId, NodeId),
}

impl Node<'_> {
    /// The parts in which a pack may be that an expansion of this part repeats, in the order in which they are
    /// searched.
    pub(crate) fn children(&self) -> [Option<NodeId>; 4] {
        match *self {
            Node::Name(_)
            | Node::Abbreviated(_)
            | Node::Builtin(_)
            | Node::Operator(_)
            | Node::Tagged(..)
            | Node::DefaultArgument(..)
            | Node::TemplateParam(_)
            | Node::FunctionParam(_)
            | Node::FixedPoint { .. }
            | Node::SizedFloat(..)
            | Node::Number(_)
            | Node::Expansion(_)
            | Node::Lambda(..)
            | Node::Unnamed(_) => [None; 4],
            Node::VendorOperator(_, one)
            | Node::Constructor(one)
            | Node::Destructor(one)
            | Node::Prefixed(_, one)
            | Node::ReferenceTemporary(one, _)
            | Node::Indirect(_, one)
            | Node::VendorType(one)
            | Node::SizedInteger(_, one)
            | Node::Conversion(one)
            | Node::Cast(one)
            | Node::Nullary(one)
            | Node::Decltype(one) => [Some(one), None, None, None],
            Node::Scoped(one, two)
            | Node::Local(one, two)
            | Node::Typed(one, two)
            | Node::Template(one, two)
            | Node::ConstructionVtable(one, two)
            | Node::VendorQualified(one, two)
            | Node::MemberPointer(one, two)
            | Node::Vector(one, two)
            | Node::Unary(one, two)
            | Node::Postfix(one, two)
            | Node::Literal {
                ty: one,
                value: two,
                ..
            }
            | Node::VendorCall(one, two)
            | Node::Clone(one, two) => [Some(one), Some(two), None, None],
            Node::Qualified(_, one, two)
            | Node::Arguments(one, two)
            | Node::TemplateArguments(one, two) => [one, two, None, None],
            Node::Function(one, two) | Node::Array(one, two) | Node::Initializer(one, two) => {
                [one, Some(two), None, None]
            }
            Node::Binary(one, two, three) => [Some(one), Some(two), Some(three), None],
            Node::Trinary(one, two, three, four) => [Some(one), Some(two), Some(three), four],
        }
    }
}

/// All parts of a name.
#[derive(Debug, Default)]
pub(crate) struct Tree<'n> {
    nodes: Vec<Node<'n>>,
}

impl<'n> Tree<'n> {
    /// An empty tree with room for the parts of a name of `length` bytes.
    pub(crate) fn for_length(length: usize) -> Tree<'n> {
        Tree {
            nodes: Vec::with_capacity(length),
        }
    }

    /// Number of parts.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Adds a part. `None` when there are too many.
    pub(crate) fn add(&mut self, node: Node<'n>) -> Option<NodeId> {
        let id = u32::try_from(self.nodes.len()).ok()?;
        self.nodes.push(node);
        Some(NodeId(id))
    }

    /// The part with this index.
    pub(crate) fn get(&self, id: NodeId) -> Node<'n> {
        self.nodes[id.index()]
    }

    /// Replaces a part by another one.
    pub(crate) fn replace(&mut self, id: NodeId, node: Node<'n>) {
        self.nodes[id.index()] = node;
    }
}
