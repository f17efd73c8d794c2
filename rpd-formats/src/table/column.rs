//! The columns of tables, described once for all formats, and how a table is shown.

use std::fmt;

use rpd_core::compat::Compat;
use rpd_core::stats::Unit;

use super::TableFormat;

/// What the values of a column are. It decides the unit in the title, the unit of the values, and what happens to the column where
/// a terminal is too narrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Names of any length, such as those of kernels and places; their middle is left out where there is no room.
    Name,
    /// Short words of a known set, which are always whole.
    Word,
    /// Numbers without a unit, or with one that the column's name says.
    Number,
    /// Nanoseconds as they are added, shown in the unit of the table.
    Time,
    /// Deviations of times, in the unit of the table; the title does not say it, because that of the original does not.
    Deviation,
    /// Parts of a hundred.
    Percent,
    /// Numbers of bytes.
    Bytes,
    /// Values of a kind that is not known before they come, such as the results of SQL; texts are treated as names.
    Any,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    name: String,
    kind: ColumnKind,
    detail: u8,
}

impl Column {
    /// A column of this kind. `name` is without the unit that the kind has.
    pub fn new(kind: ColumnKind, name: impl Into<String>) -> Column {
        Column {
            name: name.into(),
            kind,
            detail: 0,
        }
    }

    /// The column as one that a table can do without where a terminal is too narrow: those with the highest `level` are left
    /// out first, those with 0 never.
    #[must_use]
    pub fn detail(mut self, level: u8) -> Column {
        self.detail = level;
        self
    }

    /// What its values are.
    pub fn kind(&self) -> ColumnKind {
        self.kind
    }

    /// How easily it is left out; see [`Column::detail`].
    pub(super) fn level(&self) -> u8 {
        self.detail
    }

    /// The name without a unit, as messages list it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name with the unit.
    pub fn title(&self, unit: Unit) -> String {
        match self.kind {
            ColumnKind::Time => format!("{} ({})", self.name, unit.label()),
            ColumnKind::Percent => format!("{} %", self.name),
            ColumnKind::Bytes => format!("{} (bytes)", self.name),
            ColumnKind::Name
            | ColumnKind::Word
            | ColumnKind::Number
            | ColumnKind::Deviation
            | ColumnKind::Any => self.name.clone(),
        }
    }
}

/// How a table is shown.
#[derive(Debug, Clone)]
pub struct View {
    /// Format of the table.
    pub format: TableFormat,
    /// Unit of the columns of times.
    pub unit: Unit,
    /// Letters in a line that tables for people have to fit; `None` where lines may be of any length. Other formats are never
    /// shortened.
    pub width: Option<usize>,
    /// Name of the column that orders the rows, numbers from the largest and texts from A to Z; `None` leaves them as they come.
    pub sort: Option<String>,
    /// Rows that are shown at most.
    pub limit: Option<u64>,
    /// The tool whose words stand for numbers that are missing.
    pub compat: Compat,
}

impl From<TableFormat> for View {
    /// All rows and columns as they come, whole, with times in nanoseconds.
    fn from(format: TableFormat) -> View {
        View {
            format,
            unit: Unit::default(),
            width: None,
            sort: None,
            limit: None,
            compat: Compat::None,
        }
    }
}

impl View {
    /// The index of the column that orders the rows, if one is named.
    ///
    /// # Errors
    /// When no column has this name, or several begin with it.
    pub fn sorted_by(&self, columns: &[Column]) -> Result<Option<usize>, UnknownColumn> {
        let Some(sort) = &self.sort else {
            return Ok(None);
        };
        let wanted = key(sort);
        let whole = columns.iter().position(|column| {
            key(&column.title(self.unit)) == wanted || key(&column.name) == wanted
        });
        if whole.is_some() {
            return Ok(whole);
        }
        let mut begin = columns.iter().enumerate().filter(|(_, column)| {
            !wanted.is_empty() && key(&column.title(self.unit)).starts_with(&wanted)
        });
        match (begin.next(), begin.next()) {
            (Some((only, _)), None) => Ok(Some(only)),
            (_, second) => Err(UnknownColumn {
                wanted: sort.clone(),
                is_ambiguous: second.is_some(),
                columns: columns
                    .iter()
                    .map(|column| column.title(self.unit))
                    .collect(),
            }),
        }
    }
}

/// What decides whether two names of columns are the same: letters, digits and the percent sign, in lower case.
fn key(name: &str) -> String {
    let counts = |letter: &char| letter.is_alphanumeric() || *letter == '%';
    name.chars()
        .filter(counts)
        .flat_map(char::to_lowercase)
        .collect()
}

/// No column, or more than one, has the name by which rows are to be sorted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownColumn {
    wanted: String,
    is_ambiguous: bool,
    columns: Vec<String>,
}

impl fmt::Display for UnknownColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = if self.is_ambiguous {
            "several columns begin so"
        } else {
            "the table has no such column"
        };
        write!(
            f,
            "--sort '{}': {problem}; choose from {}",
            rpd_core::text::foreign::shown(&self.wanted),
            self.columns.join(", ")
        )
    }
}

impl std::error::Error for UnknownColumn {}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted_by(word: &str) -> Result<Option<usize>, String> {
        let columns = [
            Column::new(ColumnKind::Name, "Name"),
            Column::new(ColumnKind::Time, "Total A"),
            Column::new(ColumnKind::Time, "Total B"),
            Column::new(ColumnKind::Percent, "Total"),
            Column::new(ColumnKind::Time, "GPU time"),
        ];
        let mut view = View::from(TableFormat::Csv);
        view.sort = Some(word.to_owned());
        view.sorted_by(&columns).map_err(|error| error.to_string())
    }

    #[test]
    fn a_column_is_found_by_its_name_with_and_without_its_unit_and_by_a_beginning_that_no_other_has()
     {
        for (word, column) in [
            ("name", 0),
            ("total-a", 1),
            ("Total B (nsec)", 2),
            ("total", 3),
            ("total %", 3),
            ("gpu", 4),
            ("n", 0),
        ] {
            assert_eq!(sorted_by(word), Ok(Some(column)), "{word}");
        }
    }

    #[test]
    fn an_unknown_column_is_refused_with_the_list_of_columns() {
        let list = "Name, Total A (nsec), Total B (nsec), Total %, GPU time (nsec)";
        for (word, problem) in [
            ("bytes", "the table has no such column"),
            ("", "the table has no such column"),
            ("tot", "several columns begin so"),
        ] {
            assert_eq!(
                sorted_by(word),
                Err(format!("--sort '{word}': {problem}; choose from {list}"))
            );
        }
    }
}
