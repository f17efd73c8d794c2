//! The language in which metrics are derived from counters.
//!
//! ```text
//! sum    = term { ("+" | "-") term }
//! term   = factor { ("*" | "/") factor }
//! factor = number | name | "(" sum ")"
//!        | "reduce" "(" sum "," operation [ "," "[" dimension { "," dimension } "]" ] ")"
//!        | "accumulate" "(" name "," ( "LOW_RES" | "HIGH_RES" | "NONE" ) ")"
//!        | "select" "(" sum "," "[" places { "," places } "]" ")"
//! places = dimension "=" "[" range { "," range } "]"
//! range  = index [ ":" index ]
//! ```
//!
//! Operations are `min`, `max`, `sum` and `avr`; dimensions are those of
//! [`Dimension`], ranges include both ends, and `//` begins a comment that
//! lasts until the end of the line. There is no sign: write `0-x`.

mod parse;

use std::{fmt, ops::RangeInclusive, str::FromStr};

use crate::dimension::Dimension;

/// Most operators, functions and parentheses of an expression.
pub const MAX_NODES: usize = 2048;
/// Deepest nesting of parentheses and functions.
pub const MAX_DEPTH: usize = 64;

/// A parsed expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    text: String,
    pub(crate) root: Node,
    truncated: Vec<usize>,
    ranges: Vec<usize>,
}

impl Expression {
    /// Parses an expression.
    ///
    /// # Errors
    /// The first unexpected character or word, with its column.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        parse::parse(text)
    }

    /// The expression as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The root of the syntax tree.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// The counters of the expression, each once, in the order in which they first appear.
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.root.visit(&mut |name, _| {
            if !names.contains(&name) {
                names.push(name);
            }
        });
        names
    }

    /// Columns of numbers with digits after the point, which SDK 1.0 silently reads without them (`0.5` is 0
    /// there). Here they have their usual meaning.
    pub fn fractions(&self) -> &[usize] {
        &self.truncated
    }

    /// Columns of ranges (`0:3`) in selections. SDK 1.0 takes single indices only: a range ends the program.
    pub fn ranges(&self) -> &[usize] {
        &self.ranges
    }
}

impl FromStr for Expression {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A part of an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// A literal number.
    Number(f64),
    /// A counter or a constant of the agent.
    Name(String),
    /// Two parts combined value by value.
    Binary {
        /// The arithmetic operator.
        operator: Operator,
        /// Left operand.
        left: Box<Node>,
        /// Right operand.
        right: Box<Node>,
    },
    /// Instances folded into fewer.
    Reduce {
        /// The expression whose instances are reduced.
        of: Box<Node>,
        /// Reduction of the values.
        reduction: Reduction,
        /// Dimensions that are folded; all when there are none.
        dimensions: Vec<Dimension>,
    },
    /// A level counter, summed up over the cycles of the measurement.
    Accumulate {
        /// Name of the counter.
        name: String,
        /// Accumulation of the counter over time.
        resolution: Resolution,
    },
    /// Selects instances by their positions.
    Select {
        /// The expression whose instances are selected.
        of: Box<Node>,
        /// For each dimension the selected indices. A dimension with a single selected index is removed.
        places: Vec<(Dimension, Vec<RangeInclusive<u8>>)>,
    },
}

impl Node {
    /// Calls `seen` for each use of a counter, from left to right.
    pub(crate) fn visit<'a>(&'a self, seen: &mut dyn FnMut(&'a str, Resolution)) {
        match self {
            Self::Number(_) => {}
            Self::Name(name) => seen(name, Resolution::None),
            Self::Accumulate { name, resolution } => seen(name, *resolution),
            Self::Binary { left, right, .. } => {
                left.visit(seen);
                right.visit(seen);
            }
            Self::Reduce { of, .. } | Self::Select { of, .. } => of.visit(seen),
        }
    }
}

/// An arithmetic operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// Sum.
    Add,
    /// Difference.
    Subtract,
    /// Product.
    Multiply,
    /// Quotient; 0 where the divisor is 0.
    Divide,
}

impl Operator {
    /// Applies the operator to two values.
    pub fn apply(self, left: f64, right: f64) -> f64 {
        match self {
            Self::Add => left + right,
            Self::Subtract => left - right,
            Self::Multiply => left * right,
            Self::Divide if right == 0.0 => 0.0,
            Self::Divide => left / right,
        }
    }
}

/// The function by which `reduce` combines many values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduction {
    /// The least value.
    Min,
    /// The greatest value.
    Max,
    /// The sum of the values.
    Sum,
    /// The mean of the values.
    Average,
}

impl Reduction {
    /// The reduction that `reduce` has under this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "min" => Self::Min,
            "max" => Self::Max,
            "sum" => Self::Sum,
            "avr" => Self::Average,
            _ => return None,
        })
    }
}

/// The resolution of a level counter's accumulation over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Resolution {
    /// The counter is not accumulated.
    None,
    /// `LOW_RES`: every fourth cycle.
    Low,
    /// `HIGH_RES`: every cycle.
    High,
}

impl Resolution {
    /// The resolution as `accumulate` names it.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "NONE" => Self::None,
            "LOW_RES" => Self::Low,
            "HIGH_RES" => Self::High,
            _ => return None,
        })
    }
}

/// Fault for which an expression cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {message}")]
pub struct ParseError {
    /// Position of the fault, as a character from 1.
    pub column: usize,
    /// Description of the error.
    pub message: String,
}
