//! How tables are shown: the options that every command with tables has.

use std::io::{self, Write};

use anyhow::Result;
use clap::Args;
use rpd_core::compat::{Compat, Difference};
use rpd_core::stats::Unit;
use rpd_formats::destination::Destination;
use rpd_formats::table::{Column, LeftOut, Printer, TableFormat, UnknownColumn, View};

use crate::failure::Failure;
use crate::terminal;

/// Which rows of tables are shown, in which order, and how wide.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Tables")]
pub(crate) struct TableOptions {
    #[command(flatten)]
    rows: RowOptions,
    /// Column that orders the rows, by its name or the beginning of it: numbers from the largest, texts from A to Z [default:
    /// the order that the command is about]
    #[arg(long, value_name = "COLUMN")]
    sort: Option<String>,
}

/// How many rows are shown, and how wide.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Tables")]
pub(crate) struct RowOptions {
    /// Rows of each table to show; 0 shows all [default: all, but 30 of stacks and diff on a terminal, and
    /// 10 of att decode]
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Show tables whole on a terminal, which they fit otherwise: names are shortened in the middle, details left out
    #[arg(long)]
    wide: bool,
}

/// The unit of times in tables.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Tables")]
pub(crate) struct TimeOptions {
    /// Unit of times: nsec, usec, msec, sec
    #[arg(long, value_name = "UNIT", value_parser = unit, default_value = "nsec")]
    pub(crate) units: Unit,
}

fn unit(word: &str) -> Result<Unit, String> {
    Unit::ALL
        .into_iter()
        .find(|unit| unit.label() == word)
        .ok_or_else(|| format!("choose from {}", Unit::ALL.map(Unit::label).join(", ")))
}

impl TableOptions {
    /// How the tables of a command are shown at their destination. `usual` is the number of rows on a terminal where none is
    /// given.
    pub(crate) fn view(
        &self,
        format: TableFormat,
        unit: Unit,
        compat: Compat,
        output: &Destination,
        usual: Option<u64>,
    ) -> View {
        // The tables of drop-in mode are as wide as those of the original.
        let is_whole = !output.is_standard_output() || compat.has(Difference::RocpdTables);
        let width = self.rows.width().filter(|_| !is_whole);
        let usual = usual.filter(|_| width.is_some() && format == TableFormat::Console);
        View {
            format,
            unit,
            width,
            sort: self.sort.clone(),
            limit: self.limit_or(usual),
            compat,
        }
    }

    /// Rows that are shown at most, `usual` where nothing is given.
    pub(crate) fn limit_or(&self, usual: Option<u64>) -> Option<u64> {
        match self.rows.limit {
            Some(0) => None,
            Some(limit) => Some(limit),
            None => usual,
        }
    }

    /// The column that orders the rows, where one is given.
    pub(crate) fn sort(&self) -> Option<&str> {
        self.sort.as_deref()
    }

    /// Whether tables are shown whole.
    pub(crate) fn is_wide(&self) -> bool {
        self.rows.wide
    }

    /// Refuses options that need a table, where the command prints none.
    pub(crate) fn refuse_without_table(&self, name: &str, help: &str) -> Result<(), Failure> {
        let given = match (&self.sort, self.rows.limit) {
            (Some(_), _) => "--sort",
            (None, Some(_)) => "--limit",
            (None, None) => return Ok(()),
        };
        Err(Failure::usage(format!(
            "{name}: {given} is for tables: {help}"
        )))
    }
}

impl RowOptions {
    /// Letters in a line of standard output, where it is a terminal and they are to be limited.
    pub(crate) fn width(&self) -> Option<usize> {
        if self.wide {
            None
        } else {
            terminal::width(io::stdout())
        }
    }

    /// Rows to show at most.
    pub(crate) fn limit(&self) -> usize {
        match self.limit {
            None | Some(0) => usize::MAX,
            Some(limit) => usize::try_from(limit).unwrap_or(usize::MAX),
        }
    }
}

/// A table of the sub-command `name`.
///
/// # Errors
/// When its header cannot be written, or it lacks the column that is to order its rows.
pub(crate) fn printer<W: Write>(
    name: &str,
    view: &View,
    columns: Vec<Column>,
    out: W,
) -> Result<Printer<W>> {
    Printer::new(view, columns, out).map_err(|error| explained(name, error))
}

/// The error of a table; that of a column that does not exist is one of the command line.
pub(crate) fn explained(name: &str, error: io::Error) -> anyhow::Error {
    let unknown = error.get_ref().and_then(|inner| inner.downcast_ref());
    match unknown {
        Some(unknown @ UnknownColumn { .. }) => Failure::usage(format!("{name}: {unknown}")).into(),
        None => error.into(),
    }
}

/// Says on standard error what a table for people lacks. Other formats are silent: what they lack was asked for.
pub(crate) fn note(name: &str, format: TableFormat, left_out: &LeftOut) {
    if format != TableFormat::Console {
        return;
    }
    if left_out.rows > 0 {
        eprintln!("rpd: {} more rows; --limit 0 shows all", left_out.rows);
    }
    if !left_out.columns.is_empty() {
        eprintln!(
            "rpd: {name}: the terminal has no room for {}; --wide shows all columns",
            left_out.columns.join(", ")
        );
    }
}
