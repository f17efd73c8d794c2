//! Conditions of rules: arithmetic and comparisons over named figures, without loops or calls but `min`, `max` and `abs`, so that a
//! rule from anybody is harmless.

use std::fmt;

/// Parentheses and signs that an expression may have within one another.
const DEEPEST: usize = 32;

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expression {
    Number(f64),
    Name(String),
    Of(Operator, Vec<Expression>),
}

/// What is done with values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Or,
    And,
    Not,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Negate,
    Min,
    Max,
    Abs,
}

/// A mistake in an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mistake {
    /// Byte of the text, from 0.
    pub(crate) at: usize,
    pub(crate) what: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

/// Operators between two values, by how tightly they bind.
const LEVELS: [&[(&str, Operator)]; 5] = [
    &[("or", Operator::Or)],
    &[("and", Operator::And)],
    &[
        ("<=", Operator::LessOrEqual),
        (">=", Operator::GreaterOrEqual),
        ("==", Operator::Equal),
        ("!=", Operator::NotEqual),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[("*", Operator::Multiply), ("/", Operator::Divide)],
];

impl Expression {
    /// Reads an expression.
    pub(crate) fn parse(text: &str) -> Result<Expression, Mistake> {
        let mut parser = Parser {
            text,
            at: 0,
            depth: 0,
        };
        let expression = parser.level(0)?;
        parser.skip();
        if parser.at == text.len() {
            Ok(expression)
        } else {
            Err(parser.mistake("expected an operator"))
        }
    }

    /// The names in the expression.
    pub(crate) fn names(&self) -> Vec<&str> {
        match self {
            Expression::Number(_) => Vec::new(),
            Expression::Name(name) => vec![name],
            Expression::Of(_, parts) => parts.iter().flat_map(Expression::names).collect(),
        }
    }

    /// The value of the expression, 1 for true; the name whose value is not known where it depends on one.
    pub(crate) fn value<'a>(&'a self, get: &impl Fn(&str) -> Option<f64>) -> Result<f64, &'a str> {
        let truth = |truth: bool| f64::from(u8::from(truth));
        match self {
            Expression::Number(number) => Ok(*number),
            Expression::Name(name) => get(name).ok_or(name),
            Expression::Of(operator, parts) => {
                let part = |index: usize| parts[index].value(get);
                Ok(match operator {
                    // What one side decides does not need the other.
                    Operator::And => match (part(0), part(1)) {
                        (Ok(0.0), _) | (_, Ok(0.0)) => 0.0,
                        (Err(name), _) | (_, Err(name)) => return Err(name),
                        (Ok(_), Ok(_)) => 1.0,
                    },
                    Operator::Or => match (part(0), part(1)) {
                        (Ok(value), _) | (_, Ok(value)) if value != 0.0 => 1.0,
                        (_, Ok(value)) if value != 0.0 => 1.0,
                        (Err(name), _) | (_, Err(name)) => return Err(name),
                        (Ok(_), Ok(_)) => 0.0,
                    },
                    Operator::Not => truth(part(0)? == 0.0),
                    Operator::Less => truth(part(0)? < part(1)?),
                    Operator::LessOrEqual => truth(part(0)? <= part(1)?),
                    Operator::Greater => truth(part(0)? > part(1)?),
                    Operator::GreaterOrEqual => truth(part(0)? >= part(1)?),
                    Operator::Equal => truth(part(0)? == part(1)?),
                    Operator::NotEqual => truth(part(0)? != part(1)?),
                    Operator::Add => part(0)? + part(1)?,
                    Operator::Subtract => part(0)? - part(1)?,
                    Operator::Multiply => part(0)? * part(1)?,
                    Operator::Divide => match part(1)? {
                        0.0 => 0.0,
                        divisor => part(0)? / divisor,
                    },
                    Operator::Negate => -part(0)?,
                    Operator::Min => part(0)?.min(part(1)?),
                    Operator::Max => part(0)?.max(part(1)?),
                    Operator::Abs => part(0)?.abs(),
                })
            }
        }
    }
}

impl Parser<'_> {
    fn mistake(&self, what: &str) -> Mistake {
        Mistake {
            at: self.at,
            what: what.to_owned(),
        }
    }

    fn skip(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Takes a word or sign that comes next.
    fn takes(&mut self, sign: &str) -> bool {
        self.skip();
        let Some(rest) = self.text[self.at..].strip_prefix(sign) else {
            return false;
        };
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let is_cut = sign.ends_with(is_name) && rest.starts_with(is_name);
        if !is_cut {
            self.at += sign.len();
        }
        !is_cut
    }

    fn level(&mut self, level: usize) -> Result<Expression, Mistake> {
        let Some(operators) = LEVELS.get(level) else {
            return self.single();
        };
        let mut left = self.level(level + 1)?;
        loop {
            let found = operators.iter().find(|operator| self.takes(operator.0));
            let Some((_, operator)) = found else {
                return Ok(left);
            };
            let right = self.level(level + 1)?;
            left = Expression::Of(*operator, vec![left, right]);
            // Comparisons have no order among one another.
            if level == 2 {
                return Ok(left);
            }
        }
    }

    fn single(&mut self) -> Result<Expression, Mistake> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.mistake("too many parentheses within one another"));
        }
        let found = self.single_inside();
        self.depth -= 1;
        found
    }

    fn single_inside(&mut self) -> Result<Expression, Mistake> {
        if self.takes("not") {
            let of = self.level(2)?;
            return Ok(Expression::Of(Operator::Not, vec![of]));
        }
        if self.takes("-") {
            return Ok(Expression::Of(Operator::Negate, vec![self.single()?]));
        }
        if self.takes("(") {
            let inside = self.level(0)?;
            return if self.takes(")") {
                Ok(inside)
            } else {
                Err(self.mistake("expected )"))
            };
        }
        for (name, operator, count) in [
            ("min", Operator::Min, 2),
            ("max", Operator::Max, 2),
            ("abs", Operator::Abs, 1),
        ] {
            if !self.takes(name) {
                continue;
            }
            if !self.takes("(") {
                return Err(self.mistake("expected ("));
            }
            let mut parts = vec![self.level(0)?];
            while self.takes(",") {
                parts.push(self.level(0)?);
            }
            if !self.takes(")") || parts.len() != count {
                return Err(self.mistake(&format!("expected {count} values and )")));
            }
            return Ok(Expression::Of(operator, parts));
        }
        self.skip();
        let rest = &self.text[self.at..];
        let is_part =
            |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '.';
        let length = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        let word = &rest[..length];
        if word.is_empty() {
            return Err(self.mistake("expected a value"));
        }
        let found = if word.starts_with(|letter: char| letter.is_ascii_digit()) {
            match word.parse() {
                Ok(number) => Expression::Number(number),
                Err(_) => return Err(self.mistake("this is no number")),
            }
        } else {
            Expression::Name(word.to_owned())
        };
        self.at += length;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<f64, String> {
        let expression =
            Expression::parse(text).map_err(|mistake| format!("{}: {mistake}", mistake.at))?;
        let get = |name: &str| match name {
            "a" => Some(3.0),
            "order" => Some(7.0),
            _ => None,
        };
        expression.value(&get).map_err(str::to_owned)
    }

    #[test]
    fn expressions_have_the_usual_order() {
        for (text, expected) in [
            ("1 + 2 * 3", 7.0),
            ("(1 + 2) * -a", -9.0),
            ("a >= 3 and not a > 4 or 0", 1.0),
            ("1 - a / 2 >= 0.25", 0.0),
            ("max(a, 10) - min(1, abs(-2))", 9.0),
            ("order == 7", 1.0),
            ("a / 0", 0.0),
            ("0 and unknown", 0.0),
            ("unknown > 1 or a == 3", 1.0),
        ] {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
        assert_eq!(value("a > 1 and unknown > 2"), Err("unknown".to_owned()));
    }

    // answers-52
    #[test]
    fn mistakes_have_a_place() {
        for (text, mistake) in [
            ("1 +", "3: expected a value"),
            ("(1", "2: expected )"),
            ("1 2", "2: expected an operator"),
            ("max(1)", "6: expected 2 values and )"),
            ("read(a)", "4: expected an operator"),
        ] {
            assert_eq!(value(text), Err(mistake.to_owned()), "{text}");
        }
        let deep = format!("{}1{}", "(".repeat(100_000), ")".repeat(100_000));
        assert!(value(&deep).is_err());
    }
}
