//! Parser of expressions: a scanner, and recursive descent.

use std::ops::RangeInclusive;

use super::{Expression, MAX_DEPTH, MAX_NODES, Node, Operator, ParseError, Reduction, Resolution};
use crate::dimension::{Dimension, MAX_INDEX};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind<'a> {
    Number(&'a str),
    Name(&'a str),
    Sign(char),
    End,
}

impl Kind<'_> {
    fn describe(self) -> String {
        match self {
            Self::Number(text) | Self::Name(text) => format!("`{text}`"),
            Self::Sign(sign) => format!("`{sign}`"),
            Self::End => "the end".to_owned(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Token<'a> {
    kind: Kind<'a>,
    at: usize,
}

struct Parser<'a> {
    text: &'a str,
    /// Offset of the next token.
    next: usize,
    token: Token<'a>,
    nodes: usize,
    depth: usize,
    fractions: Vec<usize>,
    ranges: Vec<usize>,
}

/// Parses a whole text.
pub(super) fn parse(text: &str) -> Result<Expression, ParseError> {
    let end = Token {
        kind: Kind::End,
        at: 0,
    };
    let mut parser = Parser {
        text,
        next: 0,
        token: end,
        nodes: 0,
        depth: 0,
        fractions: Vec::new(),
        ranges: Vec::new(),
    };
    parser.advance()?;
    let root = parser.sum()?;
    if parser.token.kind != Kind::End {
        return Err(parser.unexpected("an operator or the end"));
    }
    Ok(Expression {
        text: text.to_owned(),
        root,
        truncated: parser.fractions,
        ranges: parser.ranges,
    })
}

impl<'a> Parser<'a> {
    fn error(&self, at: usize, message: impl Into<String>) -> ParseError {
        ParseError {
            column: self.column(at),
            message: message.into(),
        }
    }

    fn column(&self, at: usize) -> usize {
        self.text[..at].chars().count() + 1
    }

    fn unexpected(&self, wanted: &str) -> ParseError {
        let found = self.token.kind.describe();
        self.error(self.token.at, format!("expected {wanted}, found {found}"))
    }

    /// Number of bytes from `from` on that satisfy a condition.
    fn span(&self, from: usize, belongs: impl Fn(u8) -> bool) -> usize {
        let rest = &self.text.as_bytes()[from..];
        rest.iter().take_while(|&&b| belongs(b)).count()
    }

    fn advance(&mut self) -> Result<(), ParseError> {
        loop {
            self.next += self.span(self.next, |b| b.is_ascii_whitespace());
            if !self.text[self.next..].starts_with("//") {
                break;
            }
            self.next += self.span(self.next, |b| b != b'\n');
        }
        let at = self.next;
        let Some(first) = self.text[at..].chars().next() else {
            self.token = Token {
                kind: Kind::End,
                at,
            };
            return Ok(());
        };
        let (kind, length) = if first.is_ascii_digit() || first == '.' {
            let length = self.number(at)?;
            (Kind::Number(&self.text[at..at + length]), length)
        } else if first.is_ascii_alphabetic() || first == '_' {
            let length = self.span(at, |b| b.is_ascii_alphanumeric() || b == b'_');
            (Kind::Name(&self.text[at..at + length]), length)
        } else if "+-*/()[],:=".contains(first) {
            (Kind::Sign(first), 1)
        } else {
            return Err(self.error(at, format!("unexpected character {first:?}")));
        };
        self.next = at + length;
        self.token = Token { kind, at };
        Ok(())
    }

    /// Length in bytes of the number at an offset; fails where a point or an exponent has no digits.
    fn number(&self, at: usize) -> Result<usize, ParseError> {
        let digits = |from: usize| self.span(from, |b| b.is_ascii_digit());
        let bytes = self.text.as_bytes();
        let whole = digits(at);
        let mut end = at + whole;
        if bytes.get(end) == Some(&b'.') {
            let fraction = digits(end + 1);
            if whole + fraction == 0 {
                return Err(self.error(at, "a point without digits"));
            }
            end += 1 + fraction;
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            match digits(end + 1 + sign) {
                0 => return Err(self.error(end, "an exponent without digits")),
                n => end += 1 + sign + n,
            }
        }
        Ok(end - at)
    }

    fn is(&self, sign: char) -> bool {
        self.token.kind == Kind::Sign(sign)
    }

    fn expect(&mut self, sign: char) -> Result<(), ParseError> {
        if !self.is(sign) {
            return Err(self.unexpected(&format!("`{sign}`")));
        }
        self.advance()
    }

    fn name(&mut self, what: &str) -> Result<(&'a str, usize), ParseError> {
        let Kind::Name(name) = self.token.kind else {
            return Err(self.unexpected(what));
        };
        let at = self.token.at;
        self.advance()?;
        Ok((name, at))
    }

    fn count(&mut self) -> Result<(), ParseError> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(self.error(
                self.token.at,
                format!("the expression has more than {MAX_NODES} parts"),
            ));
        }
        Ok(())
    }

    fn nested<T>(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<T, ParseError>,
    ) -> Result<T, ParseError> {
        // The parser, and what walks the tree, calls itself for each level: the stack sets the limit.
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error(
                self.token.at,
                format!("nested deeper than {MAX_DEPTH} levels"),
            ));
        }
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn chain(
        &mut self,
        operators: [(char, Operator); 2],
        operand: impl Fn(&mut Self) -> Result<Node, ParseError>,
    ) -> Result<Node, ParseError> {
        let mut left = operand(self)?;
        loop {
            let Some(&(_, operator)) = operators.iter().find(|(sign, _)| self.is(*sign)) else {
                return Ok(left);
            };
            // A long chain makes a deep tree without any nesting, so that operators count as parts as well.
            self.count()?;
            self.advance()?;
            let right = operand(self)?;
            left = Node::Binary {
                operator,
                left: Box::new(left),
                right: Box::new(right),
            };
        }
    }

    fn sum(&mut self) -> Result<Node, ParseError> {
        let operators = [('+', Operator::Add), ('-', Operator::Subtract)];
        self.chain(operators, Self::term)
    }

    fn term(&mut self) -> Result<Node, ParseError> {
        let operators = [('*', Operator::Multiply), ('/', Operator::Divide)];
        self.chain(operators, Self::factor)
    }

    fn factor(&mut self) -> Result<Node, ParseError> {
        self.count()?;
        let at = self.token.at;
        match self.token.kind {
            Kind::Number(text) => {
                let Ok(value) = text.parse::<f64>() else {
                    return Err(self.error(at, format!("`{text}` is not a number")));
                };
                // A number such as `1e999` is read as infinity.
                if !value.is_finite() {
                    return Err(self.error(at, format!("`{text}` is too large")));
                }
                // SDK 1.0 reads such a number without its fraction, of which users are warned.
                if text.contains(['.', 'e', 'E']) && value.fract() != 0.0 {
                    self.fractions.push(self.column(at));
                }
                self.advance()?;
                Ok(Node::Number(value))
            }
            Kind::Name(name) => {
                self.advance()?;
                match name {
                    "reduce" => self.nested(Self::reduce),
                    "accumulate" => self.nested(Self::accumulate),
                    "select" => self.nested(Self::select),
                    _ if self.is('(') => Err(self.error(
                        at,
                        format!("no function `{name}`: there are reduce, accumulate and select"),
                    )),
                    _ => Ok(Node::Name(name.to_owned())),
                }
            }
            Kind::Sign('(') => {
                self.advance()?;
                let inner = self.nested(Self::sum)?;
                self.expect(')')?;
                Ok(inner)
            }
            Kind::Sign('-' | '+') => {
                Err(self.error(at, "there is no sign before a value: write `0-x`"))
            }
            _ => Err(self.unexpected("a number, a counter or `(`")),
        }
    }

    fn reduce(&mut self) -> Result<Node, ParseError> {
        self.expect('(')?;
        let of = Box::new(self.sum()?);
        self.expect(',')?;
        let (operation, at) = self.name("min, max, sum or avr")?;
        let Some(reduction) = Reduction::from_name(operation) else {
            return Err(self.error(
                at,
                format!("no operation `{operation}`: there are min, max, sum and avr"),
            ));
        };
        let mut dimensions = Vec::new();
        if self.is(',') {
            self.advance()?;
            self.list(|parser| {
                let dimension = parser.dimension()?;
                if !dimensions.contains(&dimension) {
                    dimensions.push(dimension);
                }
                Ok(())
            })?;
        }
        self.expect(')')?;
        Ok(Node::Reduce {
            of,
            reduction,
            dimensions,
        })
    }

    fn accumulate(&mut self) -> Result<Node, ParseError> {
        self.expect('(')?;
        let (name, _) = self.name("a counter")?;
        self.expect(',')?;
        let (word, at) = self.name("LOW_RES, HIGH_RES or NONE")?;
        let Some(resolution) = Resolution::from_name(word) else {
            return Err(self.error(
                at,
                format!("no resolution `{word}`: there are LOW_RES, HIGH_RES and NONE"),
            ));
        };
        self.expect(')')?;
        Ok(Node::Accumulate {
            name: name.to_owned(),
            resolution,
        })
    }

    fn select(&mut self) -> Result<Node, ParseError> {
        self.expect('(')?;
        let of = Box::new(self.sum()?);
        self.expect(',')?;
        let mut places: Vec<(Dimension, Vec<RangeInclusive<u8>>)> = Vec::new();
        self.list(|parser| {
            let at = parser.token.at;
            let dimension = parser.dimension()?;
            if places.iter().any(|(known, _)| *known == dimension) {
                return Err(parser.error(at, format!("{dimension} is selected twice")));
            }
            parser.expect('=')?;
            let mut ranges = Vec::new();
            parser.list(|parser| {
                parser.count()?;
                let at = parser.token.at;
                let first = parser.index()?;
                let last = if parser.is(':') {
                    // SDK 1.0 ends the program at a range, of which users are warned.
                    parser.ranges.push(parser.column(at));
                    parser.advance()?;
                    parser.index()?
                } else {
                    first
                };
                if last < first {
                    return Err(parser.error(at, format!("the range {first}:{last} is empty")));
                }
                ranges.push(first..=last);
                Ok(())
            })?;
            places.push((dimension, ranges));
            Ok(())
        })?;
        self.expect(')')?;
        Ok(Node::Select { of, places })
    }

    /// Parses a list in brackets with at least one element.
    fn list(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<(), ParseError>,
    ) -> Result<(), ParseError> {
        self.expect('[')?;
        loop {
            element(self)?;
            if !self.is(',') {
                return self.expect(']');
            }
            self.advance()?;
        }
    }

    fn dimension(&mut self) -> Result<Dimension, ParseError> {
        let (name, at) = self.name("a dimension")?;
        Dimension::from_name(name).ok_or_else(|| {
            let all: Vec<&str> = Dimension::ALL.iter().map(|d| d.name()).collect();
            let all = all.join(", ");
            self.error(at, format!("no dimension `{name}`: there are {all}"))
        })
    }

    fn index(&mut self) -> Result<u8, ParseError> {
        let Kind::Number(text) = self.token.kind else {
            return Err(self.unexpected("an index"));
        };
        match text.parse::<u8>() {
            Ok(index) if index <= MAX_INDEX => {
                self.advance()?;
                Ok(index)
            }
            _ => Err(self.error(
                self.token.at,
                format!("`{text}` is not an index from 0 to {MAX_INDEX}"),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fails(text: &str) -> (usize, String) {
        let error = parse(text).expect_err("a wrong expression");
        (error.column, error.message)
    }

    fn shown(node: &Node) -> String {
        match node {
            Node::Number(n) => n.to_string(),
            Node::Name(n) => n.clone(),
            Node::Binary {
                operator,
                left,
                right,
            } => {
                let sign = match operator {
                    Operator::Add => '+',
                    Operator::Subtract => '-',
                    Operator::Multiply => '*',
                    Operator::Divide => '/',
                };
                format!("({}{sign}{})", shown(left), shown(right))
            }
            Node::Reduce { of, reduction, .. } => format!("{reduction:?}[{}]", shown(of)),
            Node::Accumulate { name, resolution } => format!("{resolution:?}[{name}]"),
            Node::Select { of, places } => format!("{}{places:?}", shown(of)),
        }
    }

    #[test]
    fn operators_have_the_usual_precedence_and_bind_to_the_left() {
        let tree = |text| shown(parse(text).expect("an expression").root());
        assert_eq!(tree("1-2-3*4/5"), "((1-2)-((3*4)/5))");
        assert_eq!(tree(" ( 1 - 2 ) * A_b1 // why\n"), "((1-2)*A_b1)");
        assert_eq!(tree("reduce(A+B,avr)/2e2"), "(Average[(A+B)]/200)");
        assert_eq!(
            tree("reduce(accumulate(SQ_LEVEL_WAVES, HIGH_RES),sum)"),
            "Sum[High[SQ_LEVEL_WAVES]]"
        );
    }

    #[test]
    fn select_is_parsed_with_dimensions_and_ranges() {
        let e =
            parse("select(reduce(A,sum,[DIMENSION_INSTANCE]),[DIMENSION_SHADER_ENGINE=[0,2:3]])")
                .expect("an expression");
        let Node::Select { of, places } = e.root() else {
            panic!("{e:?}");
        };
        assert_eq!(places, &[(Dimension::ShaderEngine, vec![0..=0, 2..=3])]);
        assert_eq!(e.ranges().len(), 1);
        assert!(
            matches!(&**of, Node::Reduce { dimensions, .. } if dimensions == &[Dimension::Instance])
        );
        assert_eq!(e.names(), ["A"]);
    }

    #[test]
    fn an_expression_lists_each_name_once_in_order() {
        let e = parse("B/(A+B)*reduce(C,max)").expect("an expression");
        assert_eq!(e.names(), ["B", "A", "C"]);
    }

    #[test]
    fn expression_errors_name_the_column() {
        let starts = |text: &str, column: usize, message: &str| {
            let (at, said) = fails(text);
            assert!(
                at == column && said.starts_with(message),
                "{text}: column {at}: {said}"
            );
        };
        starts("", 1, "expected a number, a counter or `(`, found the end");
        starts("A+", 3, "expected a number");
        starts("(A", 3, "expected `)`, found the end");
        starts("A B", 3, "expected an operator or the end, found `B`");
        starts("reduce(A,mean)", 10, "no operation `mean`");
        starts("reduce(A,sum,[XCC])", 15, "no dimension `XCC`");
        starts("select(A,[DIMENSION_XCC=[64]])", 26, "`64` is not an index");
        starts(
            "select(A,[DIMENSION_XCC=[3:1]])",
            26,
            "the range 3:1 is empty",
        );
        starts(
            "select(A,[DIMENSION_XCC=[1],DIMENSION_XCC=[1]])",
            29,
            "DIMENSION_XCC is selected twice",
        );
        starts("accumulate(A,MID)", 14, "no resolution `MID`");
        starts("max(A)", 1, "no function `max`");
        starts("3*-A", 3, "there is no sign");
        starts("A+ä", 3, "unexpected character 'ä'");
        starts("1e", 2, "an exponent without digits");
        starts(".", 1, "a point without digits");
        starts("9e999", 1, "`9e999` is too large");
    }

    #[test]
    fn large_and_deep_expressions_are_refused() {
        let deep = "(".repeat(100) + "1" + &")".repeat(100);
        assert!(fails(&deep).1.contains("nested deeper"));
        let long = vec!["1"; 5000].join("+");
        assert!(fails(&long).1.contains("more than 2048 parts"));
        let wide = vec!["A"; 1000].join("*");
        assert!(parse(&wide).is_ok());
    }

    #[test]
    fn fractions_are_kept_and_listed_where_the_sdk_truncates_them() {
        let e = parse("A*0.5+2.0").expect("an expression");
        assert_eq!(shown(e.root()), "((A*0.5)+2)");
        assert_eq!(e.fractions(), [3]);
    }

    proptest! {
        #[test]
        fn parsing_expressions_never_panics(text in "\\PC{0,60}") {
            let _ = parse(&text);
        }

        #[test]
        fn parsing_texts_like_expressions_never_panics(parts in prop::collection::vec(prop::sample::select(vec![
            "reduce", "select", "accumulate", "(", ")", "[", "]", ",", "=", ":", "+", "-", "*", "/", "1", "63",
            "2.5", "A", "sum", "HIGH_RES", "DIMENSION_XCC", " ", "//", "\n",
        ]), 0..40)) {
            let text = parts.concat();
            if let Err(e) = parse(&text) {
                prop_assert!(e.column >= 1 && e.column <= text.chars().count() + 1);
            }
        }
    }
}
