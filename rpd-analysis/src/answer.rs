//! The form of every answer: sections of rows, whose columns are described once, and what is to be known beside them.

use std::borrow::Cow;
use std::fmt::Write as _;

/// What the values of a column are, from which every form of output derives how it shows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A key: the identifying values of a row, joined by `|`.
    Key,
    /// Names of any length.
    Name,
    /// Words of a known set.
    Word,
    /// Whole numbers without a unit.
    Count,
    /// Numbers without a unit.
    Number,
    /// Nanoseconds.
    Nanoseconds,
    /// Bytes.
    Bytes,
    /// A fraction, which tables show in percent.
    Share,
    /// Bytes per second.
    Rate,
}

impl Unit {
    /// The unit in envelopes; `None` where values have none.
    pub const fn label(self) -> Option<&'static str> {
        match self {
            Unit::Nanoseconds => Some("ns"),
            Unit::Bytes => Some("B"),
            Unit::Share => Some("1"),
            Unit::Rate => Some("B/s"),
            Unit::Key | Unit::Name | Unit::Word | Unit::Count | Unit::Number => None,
        }
    }

    /// The type of the values in JSON.
    pub const fn type_name(self) -> &'static str {
        match self {
            Unit::Key | Unit::Name | Unit::Word => "string",
            Unit::Count | Unit::Nanoseconds | Unit::Bytes => "integer",
            Unit::Number | Unit::Share | Unit::Rate => "number",
        }
    }
}

/// The description of a column, from which tables, CSV, JSON, its schema and the help of commands are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Name in JSON, CSV and options; the same in every release.
    pub name: &'static str,
    /// What its values are.
    pub unit: Unit,
    /// Title in tables for people.
    pub label: &'static str,
    /// How easily it is left out where a terminal is narrow: those with the highest number first, those with 0 never.
    pub detail: u8,
    /// Definition in one sentence.
    pub meaning: &'static str,
}

/// Value of a cell.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Value {
    /// The recording cannot tell; never the same as 0.
    #[default]
    Null,
    /// A whole number.
    Integer(i64),
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
}

impl Value {
    /// The number; `None` of texts and of what is not known.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Integer(value) => Some(*value as f64),
            Value::Number(value) => Some(*value),
            Value::Null | Value::Text(_) => None,
        }
    }

    /// The text; `None` of anything else.
    pub fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            Value::Null | Value::Integer(_) | Value::Number(_) => None,
        }
    }

    /// The quotient; not known when the divisor is 0.
    pub fn ratio(part: u64, whole: u64) -> Value {
        match whole {
            0 => Value::Null,
            _ => Value::Number(part as f64 / whole as f64),
        }
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Value {
        i64::try_from(value).map_or(Value::Number(value as f64), Value::Integer)
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Value {
        Value::Integer(value.into())
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Integer(value)
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Value {
        Value::from(value as u64)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        if value.is_finite() {
            Value::Number(value)
        } else {
            Value::Null
        }
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Value {
        Value::Text(value)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

/// Declares a row of a section: a struct with a [`Value`] for each column, and the descriptions of the columns. Each line is
/// name, unit, title, how easily it is left out, meaning.
macro_rules! columns {
    ($(#[$doc:meta])* $row:ident { $($name:ident: $unit:ident $label:literal $detail:literal $meaning:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct $row {
            $(#[doc = $meaning] pub $name: $crate::answer::Value,)*
        }

        impl $row {
            /// The descriptions of the columns, in the order of the fields.
            pub const COLUMNS: &'static [$crate::answer::Column] = &[
                $($crate::answer::Column {
                    name: stringify!($name),
                    unit: $crate::answer::Unit::$unit,
                    label: $label,
                    detail: $detail,
                    meaning: $meaning,
                },)*
            ];

            /// The values in the order of the columns.
            pub fn cells(self) -> Vec<$crate::answer::Value> {
                vec![$(self.$name,)*]
            }
        }
    };
}
pub(crate) use columns;

/// A table of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// Name that selects it.
    pub name: &'static str,
    /// Descriptions of the columns.
    pub columns: &'static [Column],
    /// Rows, as many cells in each as there are columns; in the order that the command is about.
    pub rows: Vec<Vec<Value>>,
    /// Number of rows that there are, including those that were not kept.
    pub total: u64,
    /// What people read in place of the table, where a table says it badly. Empty: the section is for programs.
    pub paragraphs: Option<Vec<Paragraph>>,
}

/// A paragraph of a section: its text, and by how many steps it is indented.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paragraph {
    /// Steps of two letters.
    pub indent: usize,
    /// Text in one line.
    pub text: String,
}

impl Paragraph {
    /// A paragraph.
    pub fn new(indent: usize, text: impl Into<String>) -> Paragraph {
        Paragraph {
            indent,
            text: text.into(),
        }
    }
}

impl Section {
    /// A section with all its rows.
    pub fn new(name: &'static str, columns: &'static [Column], rows: Vec<Vec<Value>>) -> Section {
        let total = rows.len() as u64;
        Section {
            name,
            columns,
            rows,
            total,
            paragraphs: None,
        }
    }

    /// The section with paragraphs that people read in place of its table.
    pub fn with_paragraphs(mut self, paragraphs: Vec<Paragraph>) -> Section {
        self.paragraphs = Some(paragraphs);
        self
    }

    /// The value in a row of the column of this name; `None` when there is no such row or column.
    pub fn get(&self, row: usize, column: &str) -> Option<&Value> {
        let index = self.columns.iter().position(|known| known.name == column)?;
        self.rows.get(row)?.get(index)
    }
}

/// The part of the recording that an answer is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// How it was chosen: `span`, `run`, `given` or `steady`.
    pub kind: &'static str,
    /// First instant.
    pub start: u64,
    /// End, exclusive.
    pub end: u64,
}

impl Window {
    /// Length in nanoseconds.
    pub fn length(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

/// Something that the recording lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// What is missing, a word of a fixed list.
    pub what: &'static str,
    /// Columns or parts of the answer that need it.
    pub affects: Vec<&'static str>,
    /// Why it is missing.
    pub because: String,
    /// Options that record it; empty when none does.
    pub record: Cow<'static, str>,
}

/// How serious a warning is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// To be known.
    Note,
    /// Figures may mislead.
    Caution,
}

impl Level {
    /// The word in envelopes.
    pub const fn word(self) -> &'static str {
        match self {
            Level::Note => "note",
            Level::Caution => "caution",
        }
    }
}

/// Something that limits what figures mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Word of a fixed list, such as `simulated`.
    pub code: &'static str,
    /// How serious it is.
    pub level: Level,
    /// The warning in one sentence.
    pub text: String,
}

/// The form of a command's answers: what its help, its schema and the documentation are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    /// Name of the command.
    pub command: &'static str,
    /// The question that it answers.
    pub question: &'static str,
    /// Sections of the answer: name, what it is, columns.
    pub sections: &'static [(&'static str, &'static str, &'static [Column])],
}

/// An answer: what a command shows, before it has any form.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Name of the command.
    pub command: &'static str,
    /// Part of the recording; `None` when there is no record to have one of.
    pub window: Option<Window>,
    /// What the figures depend on, as name and value.
    pub parameters: Vec<(&'static str, Value)>,
    /// The tables, in the order in which people read them.
    pub sections: Vec<Section>,
    /// Name of the table that formats with one table have.
    pub main: &'static str,
    /// Whether CSV has the titles of columns in place of their names, with shares in percent: scripts know these.
    pub has_titles: bool,
    /// What the recording lacks.
    pub missing: Vec<Missing>,
    /// What limits the meaning of figures.
    pub warnings: Vec<Warning>,
    /// Greatest time by which an operation began before the call that requested it.
    pub skew: u64,
    /// Whether there was nothing at all to answer from.
    pub is_empty: bool,
}

impl Answer {
    /// An answer without content.
    pub fn new(command: &'static str) -> Answer {
        Answer {
            command,
            window: None,
            parameters: Vec::new(),
            sections: Vec::new(),
            main: "",
            has_titles: false,
            missing: Vec::new(),
            warnings: Vec::new(),
            skew: 0,
            is_empty: false,
        }
    }

    /// The answer of a command about operations when there are none.
    pub fn without_ops(command: &'static str) -> Answer {
        let mut answer = Answer::new(command);
        answer.is_empty = true;
        answer.lacks(
            "ops",
            &["rows"],
            "the recording has no kernel and no copy",
            "--kernel-trace --memory-copy-trace",
        );
        answer
    }

    /// The section of this name.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// Adds a warning.
    pub fn warn(&mut self, code: &'static str, level: Level, text: impl Into<String>) {
        self.warnings.push(Warning {
            code,
            level,
            text: text.into(),
        });
    }

    /// Adds something that is missing.
    pub fn lacks(
        &mut self,
        what: &'static str,
        affects: &[&'static str],
        because: impl Into<String>,
        record: impl Into<Cow<'static, str>>,
    ) {
        self.missing.push(Missing {
            what,
            affects: affects.to_vec(),
            because: because.into(),
            record: record.into(),
        });
    }
}

/// A key: the parts joined by `|`, which has a backslash before it inside of a part, as has a backslash.
pub fn key(parts: &[&dyn std::fmt::Display]) -> String {
    let escaped = |part: &&dyn std::fmt::Display| {
        let text = part.to_string();
        text.replace('\\', "\\\\").replace('|', "\\|")
    };
    let parts: Vec<String> = parts.iter().map(escaped).collect();
    parts.join("|")
}

/// A figure with its unit, with three digits.
pub(crate) fn shown(value: f64, unit: Unit) -> String {
    let scaled = |steps: &[(&str, f64)]| {
        let step = steps
            .iter()
            .rev()
            .find(|step| value.abs() >= step.1)
            .unwrap_or(&steps[0]);
        let mut text = String::new();
        let value = value / step.1;
        let digits = match value.abs() {
            size if size >= 100.0 || value.fract() == 0.0 => 0,
            size if size >= 10.0 => 1,
            _ => 2,
        };
        let _ = write!(text, "{value:.digits$} {}", step.0);
        text.trim_end().to_owned()
    };
    match unit {
        Unit::Nanoseconds => scaled(&[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)]),
        Unit::Bytes => scaled(&[("bytes", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9)]),
        Unit::Rate => scaled(&[("B/s", 1.0), ("kB/s", 1e3), ("MB/s", 1e6), ("GB/s", 1e9)]),
        Unit::Share => format!("{:.1} %", value * 100.0),
        Unit::Key | Unit::Name | Unit::Word | Unit::Count | Unit::Number => scaled(&[("", 1.0)]),
    }
}

#[cfg(test)]
mod tests {
    use super::key;

    #[test]
    fn key_escapes_what_separates_its_parts() {
        assert_eq!(key(&[&"gap", &7, &"a|b\\"]), "gap|7|a\\|b\\\\");
    }
}
