//! What the command line, a job and inherited variables give one option, and how messages name it.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use clap::ArgMatches;
use clap::parser::ValueSource;

use super::node::Node;
use super::spec::Spec;
use super::value::OptionValue;
use crate::exit_status::{FAILED, USAGE};
use crate::failure::Failure;

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

/// Source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// The command line.
    CommandLine,
    /// An inherited variable.
    Variable(&'static str),
    /// A job of an input file.
    Job(Place),
    /// Another option, which includes this one.
    Aggregate,
}

/// An option without the type of its value: what messages say about it.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    pub(crate) spec: &'static Spec,
    /// Source of the value; `None` without one. Boxed: there are many jobs, and few options have one.
    source: Option<Box<Source>>,
    /// Whether the value is another than one that switches the option off.
    is_requested: bool,
}

impl Named {
    /// Whether the option has a value.
    pub(crate) fn is_given(&self) -> bool {
        self.source.is_some()
    }

    /// Whether the option was given otherwise than by switching it off.
    pub(crate) fn is_requested(&self) -> bool {
        self.is_requested
    }

    /// Whether the value is from the command line.
    pub(crate) fn is_on_command_line(&self) -> bool {
        self.source.as_deref() == Some(&Source::CommandLine)
    }

    /// Whether the option is on only because an aggregate includes it.
    pub(crate) fn is_included(&self) -> bool {
        self.source.as_deref() == Some(&Source::Aggregate)
    }

    /// The inherited variable that gave the option its value.
    pub(crate) fn variable(&self) -> Option<&'static str> {
        match self.source.as_deref() {
            Some(Source::Variable(variable)) => Some(variable),
            None | Some(Source::CommandLine | Source::Job(_) | Source::Aggregate) => None,
        }
    }

    /// The place in an input file that gave the option its value.
    fn place(&self) -> Option<&Place> {
        match self.source.as_deref() {
            Some(Source::Job(place)) => Some(place),
            None | Some(Source::CommandLine | Source::Variable(_) | Source::Aggregate) => None,
        }
    }

    /// The option as the command line has it, wherever its value is from.
    pub(crate) fn flag(&self) -> String {
        format!("--{}", self.spec.long)
    }

    /// The option's key in job files.
    pub(super) fn key(&self) -> &'static str {
        self.spec.key
    }

    /// How a message names the option: as it was written, and where.
    pub(crate) fn name(&self) -> String {
        match self.source.as_deref() {
            None | Some(Source::CommandLine | Source::Aggregate) => self.flag(),
            Some(Source::Variable(variable)) => format!("{variable} (set in the environment)"),
            Some(Source::Job(place)) => format!("{place}: {}", self.spec.key),
        }
    }

    /// A mistake in the option's value: one of usage on the command line, an input that cannot be used elsewhere.
    pub(crate) fn misused(&self, message: impl fmt::Display) -> Failure {
        let status = if self.place().is_some() {
            FAILED
        } else {
            USAGE
        };
        Failure::new(status, format!("{}: {message}", self.name()))
    }

    /// A value that cannot be used, wherever it stands.
    pub(crate) fn refused(&self, message: impl fmt::Display) -> Failure {
        Failure::failed(format!("{}: {message}", self.name()))
    }
}

/// One option with its value, if it has one.
#[derive(Debug, Clone)]
pub(crate) struct Setting<T> {
    named: Named,
    value: Option<T>,
}

impl<T> Deref for Setting<T> {
    type Target = Named;

    fn deref(&self) -> &Named {
        &self.named
    }
}

/// An option that a command line and a job give different values.
pub(super) struct Conflict {
    /// The place of the job's value.
    pub(super) place: Place,
    pub(super) message: String,
}

impl<T: OptionValue> Setting<T> {
    /// The option without a value.
    pub(super) fn new(spec: &'static Spec) -> Setting<T> {
        Setting {
            named: Named {
                spec,
                source: None,
                is_requested: false,
            },
            value: None,
        }
    }

    /// The value; `None` when the option was not given.
    pub(crate) fn get(&self) -> Option<&T> {
        self.value.as_ref()
    }

    /// Gives the option a value in place of that which it has.
    pub(super) fn set(&mut self, value: T, source: Source) {
        self.named.is_requested = !value.is_off();
        self.named.source = Some(Box::new(source));
        self.value = Some(value);
    }

    /// Takes the value out: the option is no longer given.
    pub(super) fn take(&mut self) -> Option<T> {
        let value = self.value.take();
        *self = Setting::new(self.named.spec);
        value
    }

    /// The conflict between this value, of the command line, and the job's.
    pub(super) fn conflict(&self, job: &Setting<T>) -> Option<Conflict> {
        let (other, value, place) = (self.get()?, job.get()?, job.place()?);
        if other == value {
            return None;
        }
        let source = match self.variable() {
            Some(_) => self.name(),
            None => self.spec.display(),
        };
        Some(Conflict {
            place: place.clone(),
            message: format!(
                "conflicting values for {}: {} here, {} by {source}",
                self.spec.key,
                value.shown(),
                other.shown(),
            ),
        })
    }

    /// Takes the value of a job, unless the option has one already.
    pub(super) fn merge(&mut self, job: Setting<T>) {
        if !self.is_given() {
            *self = job;
        }
    }
}

impl<T: Copy> Setting<T> {
    /// The value; `None` when the option was not given.
    pub(crate) fn value(&self) -> Option<T> {
        self.value
    }
}

impl Setting<bool> {
    /// Whether the option is on.
    pub(crate) fn is_on(&self) -> bool {
        self.value == Some(true)
    }

    /// Turns the option on for an aggregate, unless it was given.
    pub(super) fn include(&mut self) {
        if !self.is_given() {
            self.set(true, Source::Aggregate);
        }
    }
}

impl Setting<String> {
    /// The text; `None` when the option was not given.
    pub(crate) fn text(&self) -> Option<&str> {
        self.value.as_deref()
    }
}

impl<T> Setting<Vec<T>> {
    /// The values; empty when the option was not given.
    pub(crate) fn list(&self) -> &[T] {
        self.value.as_deref().unwrap_or_default()
    }
}

/// What gives an option its value, whatever type that has.
pub(super) trait Fill {
    /// The option.
    fn named(&self) -> &Named;

    /// Takes the value of the command line, if that has the option.
    ///
    /// # Errors
    /// The option cannot have the value.
    fn read_matches(&mut self, matches: &ArgMatches) -> Result<(), Failure>;

    /// Takes the value that a job has at `place`. A null value is none.
    ///
    /// # Errors
    /// The rest of a message that begins with the key.
    fn read_node(&mut self, node: &Node, place: Place) -> Result<(), String>;

    /// Takes the value of an inherited variable.
    ///
    /// # Errors
    /// The option cannot have the value.
    fn read_variable(&mut self, variable: &'static str, text: &str) -> Result<(), Failure>;
}

impl<T: OptionValue> Fill for Setting<T> {
    fn named(&self) -> &Named {
        self
    }

    fn read_matches(&mut self, matches: &ArgMatches) -> Result<(), Failure> {
        let spec = self.spec;
        if matches.value_source(spec.long) == Some(ValueSource::CommandLine)
            && let Some(value) = T::from_matches(spec, matches)?
        {
            self.set(value, Source::CommandLine);
        }
        Ok(())
    }

    fn read_node(&mut self, node: &Node, place: Place) -> Result<(), String> {
        if node.is_null() {
            self.take();
        } else {
            self.set(T::from_node(self.spec, node)?, Source::Job(place));
        }
        Ok(())
    }

    fn read_variable(&mut self, variable: &'static str, text: &str) -> Result<(), Failure> {
        let value = T::from_variable(self.spec, variable, text)?;
        self.set(value, Source::Variable(variable));
        Ok(())
    }
}
