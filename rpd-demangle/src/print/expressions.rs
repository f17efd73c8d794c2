//! Expressions and operators.

use super::templates::WHOLE_PACK;
use super::{Printer, Refused, Result};
use crate::tables::{LiteralForm, Operator};
use crate::tree::{Node, NodeId};

impl Printer<'_, '_> {
    pub(super) fn expression(&mut self, id: NodeId) -> Result {
        match self.get(id) {
            Node::Operator(operator) => {
                self.text(b"operator")?;
                if operator
                    .name
                    .starts_with(|letter: char| letter.is_ascii_lowercase())
                {
                    self.text(b" ")?;
                }
                self.text(operator.name.trim_end_matches(' ').as_bytes())
            }
            Node::VendorOperator(_, name) => {
                self.text(b"operator ")?;
                self.node(name)
            }
            Node::Conversion(ty) => {
                self.text(b"operator ")?;
                self.conversion(ty)
            }
            Node::Initializer(ty, list) => {
                if let Some(ty) = ty {
                    self.node(ty)?;
                }
                self.text(b"{")?;
                self.node(list)?;
                self.text(b"}")
            }
            Node::Decltype(expression) => {
                self.text(b"decltype (")?;
                self.node(expression)?;
                self.text(b")")
            }
            Node::Literal {
                negative,
                ty,
                value,
            } => self.literal(negative, ty, value),
            Node::VendorCall(name, arguments) => {
                self.node(name)?;
                self.in_parentheses(arguments)
            }
            Node::Nullary(operator) => self.operator(operator),
            Node::Unary(operator, operand) => self.unary(operator, operand),
            Node::Postfix(operator, operand) => {
                self.operand(operand)?;
                self.operator(operator)
            }
            Node::Binary(operator, left, right) => self.binary(operator, left, right),
            Node::Trinary(operator, first, second, third) => {
                self.trinary(operator, first, second, third)
            }
            // A cast is written with its operand.
            _ => Err(Refused),
        }
    }

    /// The operator of the language that a part is; `None` for other parts.
    fn language_operator(&self, id: NodeId) -> Option<&'static Operator> {
        match self.get(id) {
            Node::Operator(operator) => Some(operator),
            _ => None,
        }
    }

    /// Writes an operator as it appears in an expression.
    fn operator(&mut self, id: NodeId) -> Result {
        match self.language_operator(id) {
            Some(operator) => self.text(operator.name.as_bytes()),
            None => self.node(id),
        }
    }

    /// Writes an operand, in parentheses unless it is unambiguous without.
    pub(super) fn operand(&mut self, id: NodeId) -> Result {
        match self.get(id) {
            Node::Name(_) | Node::Scoped(..) | Node::Initializer(..) | Node::FunctionParam(_) => {
                self.node(id)
            }
            _ => self.in_parentheses(id),
        }
    }

    fn in_parentheses(&mut self, id: NodeId) -> Result {
        self.text(b"(")?;
        self.node(id)?;
        self.text(b")")
    }

    fn literal(&mut self, negative: bool, ty: NodeId, value: NodeId) -> Result {
        let sign: &[u8] = if negative { b"-" } else { b"" };
        let form = match self.get(ty) {
            Node::Builtin(builtin) => builtin.literal,
            _ => LiteralForm::Cast,
        };
        match (form, self.get(value)) {
            (LiteralForm::Suffix(suffix), _) => {
                self.text(sign)?;
                self.node(value)?;
                return self.text(suffix.as_bytes());
            }
            (LiteralForm::Bool, Node::Name(b"0")) if !negative => return self.text(b"false"),
            (LiteralForm::Bool, Node::Name(b"1")) if !negative => return self.text(b"true"),
            _ => {}
        }
        self.in_parentheses(ty)?;
        self.text(sign)?;
        if form == LiteralForm::Float {
            self.text(b"[")?;
            self.node(value)?;
            return self.text(b"]");
        }
        self.node(value)
    }

    fn unary(&mut self, id: NodeId, mut operand: NodeId) -> Result {
        let Some(operator) = self.language_operator(id) else {
            match self.get(id) {
                Node::Cast(ty) => self.in_parentheses(ty)?,
                _ => self.node(id)?,
            }
            return self.operand(operand);
        };
        // The address of a function is written without the function's parameters.
        if operator.code == *b"ad"
            && let Node::Typed(name, ty) = self.get(operand)
            && matches!(self.get(name), Node::Scoped(..))
            && matches!(self.get(ty), Node::Function(..))
        {
            operand = name;
        }
        match &operator.code {
            b"sZ" => {
                let length = match self.find_pack(operand)? {
                    Some(pack) => self.pack_length(pack)?,
                    None => 0,
                };
                self.number(length.into())
            }
            b"sP" => {
                let count = self.count_arguments(operand)?;
                self.number(count.into())
            }
            b"gs" => {
                self.text(operator.name.as_bytes())?;
                self.node(operand)
            }
            b"st" => {
                self.text(operator.name.as_bytes())?;
                self.in_parentheses(operand)
            }
            _ => {
                self.text(operator.name.as_bytes())?;
                self.operand(operand)
            }
        }
    }

    fn binary(&mut self, id: NodeId, left: NodeId, right: NodeId) -> Result {
        let operator = self.language_operator(id).ok_or(Refused)?;
        if operator.is_named_cast() {
            self.text(operator.name.as_bytes())?;
            self.text(b"<")?;
            self.node(left)?;
            self.text(b">(")?;
            self.node(right)?;
            return self.text(b")");
        }
        match &operator.code {
            b"fl" | b"fr" => return self.fold(operator, left, right, None),
            b"di" | b"dx" => return self.designated(operator, left, None, right),
            _ => {}
        }
        // `>` would end the template arguments.
        let greater = operator.name == ">";
        if greater {
            self.text(b"(")?;
        }
        match (&operator.code, self.get(left)) {
            (b"cl", Node::Typed(name, ty)) => {
                // A call is written without the types of the parameters.
                if !matches!(self.get(ty), Node::Function(..)) {
                    return Err(Refused);
                }
                self.operand(name)?;
            }
            _ => self.operand(left)?,
        }
        match &operator.code {
            b"ix" => {
                self.text(b"[")?;
                self.node(right)?;
                self.text(b"]")?;
            }
            b"cl" => self.operand(right)?,
            _ => {
                self.text(operator.name.as_bytes())?;
                self.operand(right)?;
            }
        }
        if greater {
            self.text(b")")?;
        }
        Ok(())
    }

    fn trinary(
        &mut self,
        id: NodeId,
        first: NodeId,
        second: NodeId,
        third: Option<NodeId>,
    ) -> Result {
        let operator = self.language_operator(id).ok_or(Refused)?;
        match (&operator.code, third) {
            (b"fL" | b"fR", third) => self.fold(operator, first, second, third),
            (b"dX", Some(third)) => self.designated(operator, first, Some(second), third),
            (b"qu", Some(third)) => {
                self.operand(first)?;
                self.text(operator.name.as_bytes())?;
                self.operand(second)?;
                self.text(b" : ")?;
                self.operand(third)
            }
            _ => {
                self.text(b"new ")?;
                if !matches!(self.get(first), Node::Arguments(None, _)) {
                    self.operand(first)?;
                    self.text(b" ")?;
                }
                self.node(second)?;
                match third {
                    Some(initializer) => self.operand(initializer),
                    None => Ok(()),
                }
            }
        }
    }

    /// Writes a fold over a pack. The pack stands for its elements as a whole.
    fn fold(
        &mut self,
        fold: &Operator,
        operator: NodeId,
        first: NodeId,
        second: Option<NodeId>,
    ) -> Result {
        let index = std::mem::replace(&mut self.pack_index, WHOLE_PACK);
        self.text(b"(")?;
        match (fold.code[1], second) {
            (b'l', _) => {
                self.text(b"...")?;
                self.operator(operator)?;
                self.operand(first)?;
            }
            (b'r', _) => {
                self.operand(first)?;
                self.operator(operator)?;
                self.text(b"...")?;
            }
            (_, second) => {
                self.operand(first)?;
                self.operator(operator)?;
                self.text(b"...")?;
                self.operator(operator)?;
                self.operand(second.ok_or(Refused)?)?;
            }
        }
        self.text(b")")?;
        self.pack_index = index;
        Ok(())
    }

    /// Writes an initializer with a designator: `.name=value`, `[index]=value`, `[first ... last]=value`.
    fn designated(
        &mut self,
        operator: &Operator,
        first: NodeId,
        last: Option<NodeId>,
        value: NodeId,
    ) -> Result {
        let member = operator.code == *b"di";
        self.text(if member { b"." } else { b"[" })?;
        self.node(first)?;
        if let Some(last) = last {
            self.text(b" ... ")?;
            self.node(last)?;
        }
        if !member {
            self.text(b"]")?;
        }
        // Designators follow one another without `=`.
        let chained = match self.get(value) {
            Node::Binary(id, ..) | Node::Trinary(id, ..) => self
                .language_operator(id)
                .is_some_and(|operator| matches!(&operator.code, b"di" | b"dx" | b"dX")),
            _ => false,
        };
        if chained {
            return self.node(value);
        }
        self.text(b"=")?;
        self.operand(value)
    }
}
