//! Expressions and operators.

use super::{Parser, Unresolved};
use crate::tables::{self, Operator};
use crate::tree::{Node, NodeId};

impl<'n> Parser<'n> {
    /// An expression that is no part of another.
    pub(super) fn expression(&mut self) -> Option<NodeId> {
        let in_expression = std::mem::replace(&mut self.in_expression, true);
        let expression = self.operand();
        self.in_expression = in_expression;
        expression
    }

    /// An expression or a part of one.
    fn operand(&mut self) -> Option<NodeId> {
        self.nested(Self::operand_here)
    }

    fn operand_here(&mut self) -> Option<NodeId> {
        match (self.peek(), self.peek_second()) {
            (b'L', _) => self.primary_expression(),
            (b'T', _) => self.template_param(),
            (b's', b'r') => self.unresolved_name(),
            (b's', b'p') => {
                self.skip(2);
                let pattern = self.operand()?;
                self.add(Node::Expansion(pattern))
            }
            (b'f', b'p') => self.function_param(),
            (b'0'..=b'9', _) | (b'o', b'n') => {
                self.take_both(b"on");
                let name = self.unqualified_name()?;
                self.with_arguments(name)
            }
            (kind @ (b'i' | b't'), b'l') => {
                self.skip(2);
                // The list may belong to a type; one that cannot be read is left out.
                let ty = if kind == b't' { self.ty() } else { None };
                if self.peek() == 0 || self.peek_second() == 0 {
                    return None;
                }
                let list = self.expression_list(b'E')?;
                self.add(Node::Initializer(ty, list))
            }
            (b'u', _) => {
                self.skip(1);
                let name = self.source_name()?;
                let arguments = self.rest_of_template_args()?;
                self.add(Node::VendorCall(name, arguments))
            }
            _ => self.operation(),
        }
    }

    /// Reads template arguments behind `name`, if there are any.
    fn with_arguments(&mut self, name: NodeId) -> Option<NodeId> {
        if self.peek() != b'I' {
            return Some(name);
        }
        let arguments = self.template_args()?;
        self.add(Node::Template(name, arguments))
    }

    /// `sr <scope> <name>`: a name in a type that depends on template parameters.
    fn unresolved_name(&mut self) -> Option<NodeId> {
        self.skip(2);
        let may_be_prefix = matches!(
            self.peek(),
            b'0'..=b'9' | b'a'..=b'z' | b'C' | b'U' | b'L'
        );
        let scope = if may_be_prefix && self.unresolved != Unresolved::Old {
            self.unresolved = Unresolved::NewUsed;
            let scope = self.prefix(false)?;
            self.expect(b'E')?;
            scope
        } else {
            self.ty()?
        };
        let name = self.unqualified_name()?;
        let name = self.with_arguments(name)?;
        self.add(Node::Scoped(scope, name))
    }

    /// Reads `fp [<number>] _` or `fpT`, which is `this`.
    fn function_param(&mut self) -> Option<NodeId> {
        self.skip(2);
        let number = if self.take(b'T') {
            0
        } else {
            self.compact_number()?.checked_add(1)?
        };
        self.add(Node::FunctionParam(number))
    }

    /// Expressions up to `end`.
    fn expression_list(&mut self, end: u8) -> Option<NodeId> {
        let mut parts = Vec::new();
        while !self.take(end) {
            parts.push(self.operand()?);
        }
        self.list(parts, Node::Arguments)
    }

    /// The name of an operator: one of the language, one of a compiler, or a conversion.
    pub(super) fn operator(&mut self) -> Option<NodeId> {
        let code = [self.next(), self.next()];
        match code {
            [b'v', digit @ b'0'..=b'9'] => {
                let name = self.source_name()?;
                self.add(Node::VendorOperator(digit - b'0', name))
            }
            [b'c', b'v'] => {
                let conversion = !self.in_expression;
                let outer = std::mem::replace(&mut self.in_conversion, conversion);
                let ty = self.ty();
                self.in_conversion = outer;
                let ty = ty?;
                self.add(if conversion {
                    Node::Conversion(ty)
                } else {
                    Node::Cast(ty)
                })
            }
            _ => self.add(Node::Operator(Operator::find(code)?)),
        }
    }

    /// An operator and its operands.
    fn operation(&mut self) -> Option<NodeId> {
        let id = self.operator()?;
        match self.get(id) {
            Node::Cast(_) => {
                let operand = if self.take(b'_') {
                    self.expression_list(b'E')?
                } else {
                    self.operand()?
                };
                self.add(Node::Unary(id, operand))
            }
            Node::VendorOperator(0, _) => self.add(Node::Nullary(id)),
            Node::VendorOperator(1, _) => {
                let operand = self.operand()?;
                self.add(Node::Unary(id, operand))
            }
            Node::Operator(operator) => match operator.operands {
                0 => self.add(Node::Nullary(id)),
                1 => self.unary(id, operator),
                2 => self.binary(id, operator),
                _ => self.trinary(id, operator),
            },
            _ => None,
        }
    }

    fn unary(&mut self, id: NodeId, operator: &Operator) -> Option<NodeId> {
        let operand = match &operator.code {
            b"st" => self.ty()?,
            b"sP" => self.rest_of_template_args()?,
            // With `_` the operator stands before its operand.
            b"pp" | b"mm" if !self.take(b'_') => {
                let operand = self.operand()?;
                return self.add(Node::Postfix(id, operand));
            }
            _ => self.operand()?,
        };
        self.add(Node::Unary(id, operand))
    }

    fn binary(&mut self, id: NodeId, operator: &Operator) -> Option<NodeId> {
        let left = match &operator.code {
            _ if operator.is_named_cast() => self.ty()?,
            _ if operator.is_fold() => self.operator()?,
            b"di" => self.unqualified_name()?,
            _ => self.operand()?,
        };
        let right = match &operator.code {
            b"cl" => self.expression_list(b'E')?,
            b"dt" | b"pt" => match (self.peek(), self.peek_second()) {
                (b'g', b's') | (b's', b'r') => self.operand()?,
                _ => {
                    let name = self.unqualified_name()?;
                    self.with_arguments(name)?
                }
            },
            _ => self.operand()?,
        };
        self.add(Node::Binary(id, left, right))
    }

    fn trinary(&mut self, id: NodeId, operator: &Operator) -> Option<NodeId> {
        if matches!(&operator.code, b"nw" | b"na") {
            return self.new_expression(id);
        }
        let first = if operator.is_fold() {
            self.operator()?
        } else {
            self.operand()?
        };
        let second = self.operand()?;
        let third = self.operand()?;
        self.add(Node::Trinary(id, first, second, Some(third)))
    }

    /// Reads a `new` expression: `<placement> _ <type> (E | pi <initializers> E | il <initializers> E)`.
    fn new_expression(&mut self, id: NodeId) -> Option<NodeId> {
        let placement = self.expression_list(b'_')?;
        let ty = self.ty()?;
        let initializer = if self.take(b'E') {
            None
        } else if self.take_both(b"pi") {
            Some(self.expression_list(b'E')?)
        } else if (self.peek(), self.peek_second()) == (b'i', b'l') {
            Some(self.operand()?)
        } else {
            return None;
        };
        self.add(Node::Trinary(id, placement, ty, initializer))
    }

    /// Reads `L <type> <value> E`, or a name as an expression, `L_Z <encoding> E`.
    pub(super) fn primary_expression(&mut self) -> Option<NodeId> {
        self.expect(b'L')?;
        if matches!(self.peek(), b'_' | b'Z') {
            let name = self.mangled_name(false)?;
            self.expect(b'E')?;
            return Some(name);
        }
        let ty = self.ty()?;
        if matches!(self.get(ty), Node::Builtin(builtin) if builtin.name == tables::NULLPTR)
            && self.take(b'E')
        {
            return Some(ty);
        }
        let negative = self.take(b'n');
        let rest = &self.text[self.at..];
        let length = rest.iter().position(|&byte| byte == b'E')?;
        if length == 0 {
            return None;
        }
        let value = self.add(Node::Name(&rest[..length]))?;
        self.skip(length + 1);
        self.add(Node::Literal {
            negative,
            ty,
            value,
        })
    }
}
