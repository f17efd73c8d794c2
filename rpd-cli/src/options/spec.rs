//! What the table of options says about each: parser, help, refusals and job files read it.

use super::table::Group;
use super::value::OptionValue;

/// Form of an option's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Nothing: `--version`.
    Flag,
    /// An optional truth word; unset, true or false.
    Bool,
    /// One text of any form.
    Text,
    /// One path, any bytes.
    Path,
    /// One integer within bounds, both included.
    Integer(i64, i64),
    /// One of these words. True: case does not matter.
    Choice(&'static [&'static str], bool),
    /// One or more of these words, case does not matter.
    Choices(&'static [&'static str]),
    /// Texts, up to the next token that starts with a dash.
    List {
        /// Least number of them: 0 or 1.
        least: usize,
        /// Whether a job may have lists in the list, which are one with it.
        nested: bool,
    },
    /// A list of any length, each occurrence its own group.
    Groups,
    /// `--ompt-trace`: a truth word or categories.
    Categories,
}

/// Conversion of an inherited variable to an option's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inherit {
    /// The option is not inherited.
    No,
    /// The variable's value is the option's.
    Value(&'static str),
    /// By the opposite of its truth.
    Opposite(&'static str),
}

/// Whether this build can do what the option requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Support {
    /// The option works in this build.
    Works,
    /// The option does not work in this build; the text is what it needs.
    Missing(&'static str),
    /// Provider kinds that came after SDK 1.0: refused by name, left out of aggregates.
    NewerKind,
}

/// An option of the command line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spec {
    /// Name of its field, and its key in a job: with underscores.
    pub(crate) key: &'static str,
    /// Name on the command line: the key with dashes.
    pub(crate) long: &'static str,
    pub(crate) short: Option<char>,
    pub(crate) aliases: &'static [&'static str],
    /// Another spelling of the key in the published schema.
    pub(crate) key_alias: Option<&'static str>,
    pub(crate) form: Form,
    pub(crate) group: Group,
    pub(crate) value_name: &'static str,
    /// `%formats%` stands for the list of formats.
    pub(crate) help: &'static str,
    pub(crate) hidden: bool,
    /// A key of jobs that the command line does not have.
    pub(crate) key_only: bool,
    /// Whether jobs may have the option.
    pub(crate) in_jobs: bool,
    pub(crate) inherit: Inherit,
    pub(crate) support: Support,
}

/// The bytes of a key with dashes in place of underscores.
pub(super) const fn dashed<const LENGTH: usize>(key: &str) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    let mut at = 0;
    while at < LENGTH {
        bytes[at] = match key.as_bytes()[at] {
            b'_' => b'-',
            other => other,
        };
        at += 1;
    }
    bytes
}

impl Spec {
    /// An option with values of type `T`. `long`: what [`dashed`] makes of `key`.
    pub(super) const fn new<T: OptionValue>(
        group: Group,
        key: &'static str,
        long: &'static [u8],
        help: &'static str,
    ) -> Spec {
        let form = T::FORM;
        let value_name = match form {
            Form::Bool => "BOOL",
            Form::Integer(..) => "N",
            Form::Choices(_) => "FORMAT",
            Form::Categories => "CATEGORY",
            Form::Groups => "NAME",
            Form::Flag | Form::Text | Form::Path | Form::Choice(..) | Form::List { .. } => "TEXT",
        };
        let Ok(long) = std::str::from_utf8(long) else {
            panic!("a key is ASCII");
        };
        Spec {
            key,
            long,
            short: None,
            aliases: &[],
            key_alias: None,
            form,
            group,
            value_name,
            help,
            hidden: false,
            key_only: false,
            in_jobs: true,
            inherit: Inherit::No,
            support: Support::Works,
        }
    }

    pub(super) const fn short(mut self, short: char) -> Spec {
        self.short = Some(short);
        self
    }
    pub(super) const fn aliases(mut self, aliases: &'static [&'static str]) -> Spec {
        self.aliases = aliases;
        self
    }
    pub(super) const fn key_alias(mut self, key: &'static str) -> Spec {
        self.key_alias = Some(key);
        self
    }
    pub(super) const fn value(mut self, name: &'static str) -> Spec {
        self.value_name = name;
        self
    }
    pub(super) const fn within(mut self, low: i64, high: i64) -> Spec {
        assert!(matches!(self.form, Form::Integer(..)));
        self.form = Form::Integer(low, high);
        self
    }
    pub(super) const fn any_case(mut self) -> Spec {
        let Form::Choice(words, _) = self.form else {
            panic!("only words have a case");
        };
        self.form = Form::Choice(words, true);
        self
    }
    pub(super) const fn may_be_empty(mut self) -> Spec {
        assert!(matches!(self.form, Form::List { .. }));
        self.form = Form::List {
            least: 0,
            nested: false,
        };
        self
    }
    pub(super) const fn nested(mut self) -> Spec {
        assert!(matches!(self.form, Form::List { .. }));
        self.form = Form::List {
            least: 1,
            nested: true,
        };
        self
    }
    pub(super) const fn without_value(mut self) -> Spec {
        assert!(matches!(self.form, Form::Bool));
        self.form = Form::Flag;
        self
    }
    pub(super) const fn key_only(mut self) -> Spec {
        self.key_only = true;
        self.hidden()
    }
    pub(super) const fn not_in_jobs(mut self) -> Spec {
        self.in_jobs = false;
        self
    }
    pub(super) const fn hidden(mut self) -> Spec {
        self.hidden = true;
        self
    }
    pub(super) const fn from(mut self, variable: &'static str) -> Spec {
        self.inherit = Inherit::Value(variable);
        self
    }
    pub(super) const fn opposite_of(mut self, variable: &'static str) -> Spec {
        self.inherit = Inherit::Opposite(variable);
        self
    }
    pub(super) const fn missing(mut self, what: &'static str) -> Spec {
        self.support = Support::Missing(what);
        self.hidden()
    }
    pub(super) const fn newer(mut self) -> Spec {
        self.support = Support::NewerKind;
        self.hidden()
    }

    /// Name of the option as a user writes it: `-o/--output-file`.
    pub(crate) fn display(&self) -> String {
        match self.short {
            Some(short) => format!("-{short}/--{}", self.long),
            None => format!("--{}", self.long),
        }
    }

    /// Whether a choice has its words in any case.
    pub(super) fn ignores_case(&self) -> bool {
        matches!(self.form, Form::Choice(_, true))
    }
}
