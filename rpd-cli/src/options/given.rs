//! Values of options, and their sources.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use crate::exit_status::{FAILED, USAGE};
use crate::failure::Failure;
use crate::options::table::OPTIONS;

/// Value of one option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Bool(bool),
    Text(String),
    Integer(i64),
    List(Vec<String>),
    Groups(Vec<Vec<String>>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(value) => write!(f, "{value}"),
            Value::Text(text) => write!(f, "'{text}'"),
            Value::Integer(value) => write!(f, "{value}"),
            Value::List(words) => write!(f, "[{}]", words.join(", ")),
            Value::Groups(groups) => {
                let groups: Vec<String> = groups
                    .iter()
                    .map(|group| format!("[{}]", group.join(", ")))
                    .collect();
                write!(f, "[{}]", groups.join(", "))
            }
        }
    }
}

/// A place in an input file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The file as it was named.
    pub(crate) file: Arc<str>,
    /// Line in the file, from 1.
    pub(crate) line: usize,
    /// From 1; 0 is the whole line.
    pub(crate) column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.column {
            0 => write!(f, "{}:{}", self.file, self.line),
            column => write!(f, "{}:{}:{column}", self.file, self.line),
        }
    }
}

/// Source of a value that is not from the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// An inherited variable.
    Variable(&'static str),
    /// A job of an input file.
    Job(Place),
}

/// Option values of one source, or of several merged ones. Keys are long names.
#[derive(Debug, Clone, Default)]
pub(crate) struct OptionValues {
    pub(crate) values: HashMap<&'static str, Value>,
    pub(crate) origins: HashMap<&'static str, Origin>,
    /// Options that are on only because an aggregate includes them.
    pub(crate) included: HashSet<&'static str>,
}

impl OptionValues {
    /// Value of the option with this long name, which must be in the table of options.
    fn value(&self, long: &str) -> Option<&Value> {
        debug_assert!(
            OPTIONS.iter().any(|spec| spec.long == long),
            "--{long} is not in the table of options"
        );
        self.values.get(long)
    }

    pub(crate) fn bool(&self, long: &str) -> Option<bool> {
        match self.value(long) {
            Some(Value::Bool(value)) => Some(*value),
            _ => None,
        }
    }

    pub(crate) fn text(&self, long: &str) -> Option<&str> {
        match self.value(long) {
            Some(Value::Text(value)) => Some(value),
            _ => None,
        }
    }

    pub(crate) fn integer(&self, long: &str) -> Option<i64> {
        match self.value(long) {
            Some(Value::Integer(value)) => Some(*value),
            _ => None,
        }
    }

    pub(crate) fn list(&self, long: &str) -> Option<&[String]> {
        match self.value(long) {
            Some(Value::List(values)) => Some(values),
            _ => None,
        }
    }

    pub(crate) fn groups(&self, long: &str) -> Option<&[Vec<String>]> {
        match self.value(long) {
            Some(Value::Groups(groups)) => Some(groups),
            _ => None,
        }
    }

    /// Whether the option was given otherwise than by switching it off.
    pub(crate) fn requests(&self, long: &str) -> bool {
        !matches!(self.value(long), None | Some(Value::Bool(false)))
    }

    /// The inherited variable that gave the option its value.
    pub(crate) fn variable(&self, long: &str) -> Option<&'static str> {
        match self.origins.get(long) {
            Some(Origin::Variable(variable)) => Some(variable),
            _ => None,
        }
    }

    /// How a message names the option: as it was written, and where.
    pub(crate) fn name(&self, long: &str) -> String {
        match self.origins.get(long) {
            None => format!("--{long}"),
            Some(Origin::Variable(variable)) => format!("{variable} (set in the environment)"),
            Some(Origin::Job(place)) => format!("{place}: {}", long.replace('-', "_")),
        }
    }

    /// A mistake in the option's value: one of usage on the command line, an input that cannot be used elsewhere.
    pub(crate) fn misused(&self, long: &str, message: impl fmt::Display) -> Failure {
        let status = match self.origins.get(long) {
            Some(Origin::Job(_)) => FAILED,
            _ => USAGE,
        };
        Failure::new(status, format!("{}: {message}", self.name(long)))
    }

    /// A value that cannot be used, wherever it stands.
    pub(crate) fn refused(&self, long: &str, message: impl fmt::Display) -> Failure {
        Failure::failed(format!("{}: {message}", self.name(long)))
    }
}
