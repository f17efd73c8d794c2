//! Tables of any columns, as text for people, CSV, JSON, markdown or HTML: columns are described once ([`Column`]), how a table is
//! shown is a [`View`], and [`Printer`] writes it. Tables for people that must fit a terminal lose the middle of names and columns of
//! little importance, never a digit.

mod column;
mod console;
mod layout;
mod rows;
pub mod statistics;

use std::io::{self, Write};

use rpd_core::stats::Unit;

pub use column::{Column, ColumnKind, UnknownColumn, View};
pub use layout::shortened;

use console::Console;
use rows::Rows;

/// The format of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableFormat {
    /// Columns right-aligned under their names.
    Console,
    /// A header line, fields in quotes where they need them.
    Csv,
    /// An array of objects.
    Json,
    /// A pipe table.
    Markdown,
    /// An HTML table.
    Html,
}

impl TableFormat {
    /// The ending of file names.
    pub const fn extension(self) -> &'static str {
        match self {
            TableFormat::Console => "txt",
            TableFormat::Csv => "csv",
            TableFormat::Json => "json",
            TableFormat::Markdown => "md",
            TableFormat::Html => "html",
        }
    }
}

/// The value of a cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// No value.
    Null,
    /// An integer value.
    Integer(i64),
    /// A floating-point value.
    Float(f64),
    /// A text value.
    Text(String),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl From<u64> for Cell {
    fn from(value: u64) -> Cell {
        // Greater values become text, which keeps all their digits.
        i64::try_from(value).map_or_else(|_| Cell::Text(value.to_string()), Cell::Integer)
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Cell {
        Cell::Float(value)
    }
}

/// What a table lacks of its rows and columns.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Number of rows beyond the limit.
    pub rows: u64,
    /// Titles of the columns for which the terminal is too narrow.
    pub columns: Vec<String>,
}

/// Prints a table row by row. Rows are kept until all are there if their widths or their order must be known.
pub struct Printer<W: Write> {
    view: View,
    columns: Vec<Column>,
    titles: Vec<String>,
    kept: Option<Rows>,
    /// Rows that were added.
    rows: u64,
    /// Rows that were written.
    written: u64,
    out: W,
}

impl<W: Write> Printer<W> {
    /// A table with these columns.
    ///
    /// # Errors
    /// When the header cannot be written; of kind [`io::ErrorKind::InvalidInput`], with an [`UnknownColumn`], when the column that is
    /// to order the rows is none of `columns`.
    pub fn new(view: &View, mut columns: Vec<Column>, out: W) -> io::Result<Printer<W>> {
        let sort = view
            .sorted_by(&columns)
            .map_err(|unknown| io::Error::new(io::ErrorKind::InvalidInput, unknown))?;
        // Rows whose order cannot be seen are of no use.
        if let Some(column) = sort.and_then(|index| columns.get_mut(index)) {
            *column = column.clone().detail(0);
        }
        let keeps = sort.is_some() || view.format == TableFormat::Console;
        let mut printer = Printer {
            view: view.clone(),
            titles: columns
                .iter()
                .map(|column| column.title(view.unit))
                .collect(),
            kept: keeps.then(|| Rows::new(columns.len(), sort)),
            columns,
            rows: 0,
            written: 0,
            out,
        };
        printer.write_header()?;
        Ok(printer)
    }

    fn write_header(&mut self) -> io::Result<()> {
        match self.view.format {
            TableFormat::Csv => {
                let fields: Vec<String> = self.titles.iter().map(|name| csv(name)).collect();
                writeln!(self.out, "{}", fields.join(","))
            }
            TableFormat::Markdown => {
                let names: Vec<String> = self.titles.iter().map(|name| pipe(name)).collect();
                writeln!(self.out, "| {} |", names.join(" | "))?;
                writeln!(self.out, "|{}", "---|".repeat(names.len()))
            }
            TableFormat::Json => write!(self.out, "["),
            TableFormat::Html => {
                let names: Vec<String> = self.titles.iter().map(|name| html(name)).collect();
                writeln!(
                    self.out,
                    "<table border=\"1\" class=\"dataframe\">\n  <thead>\n    <tr>\n      <th>{}</th>\n    </tr>\n  </thead>\n  <tbody>",
                    names.join("</th>\n      <th>")
                )
            }
            // Its widths are known when all rows are.
            TableFormat::Console => Ok(()),
        }
    }

    /// Number of rows that were added so far, those beyond the limit included.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds a row of as many cells as there are columns. Times are in nanoseconds.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn row(&mut self, mut cells: Vec<Cell>) -> io::Result<()> {
        self.rows += 1;
        let limit = self.view.limit.unwrap_or(u64::MAX);
        // Rows that are to be sorted may come to be among the first.
        if self.view.sort.is_none() && self.rows > limit {
            return Ok(());
        }
        if self.view.unit != Unit::Nsec {
            for (column, cell) in self.columns.iter().zip(&mut cells) {
                if matches!(column.kind(), ColumnKind::Time | ColumnKind::Deviation) {
                    *cell = in_unit(cell, self.view.unit);
                }
            }
        }
        match &mut self.kept {
            Some(kept) => kept.add(&cells),
            None => self.write_row(&cells),
        }
    }

    fn write_row(&mut self, cells: &[Cell]) -> io::Result<()> {
        self.written += 1;
        let no_number = self.view.compat.no_number();
        match self.view.format {
            // Written by `finish`.
            TableFormat::Console => Ok(()),
            TableFormat::Csv => {
                let fields: Vec<String> = cells
                    .iter()
                    .map(|cell| match cell {
                        Cell::Text(text) => csv(text),
                        other => plain(other),
                    })
                    .collect();
                writeln!(self.out, "{}", fields.join(","))
            }
            TableFormat::Markdown => {
                let fields: Vec<String> = cells
                    .iter()
                    .map(|cell| shown(cell, pipe, no_number))
                    .collect();
                writeln!(self.out, "| {} |", fields.join(" | "))
            }
            TableFormat::Html => {
                let fields: Vec<String> = cells
                    .iter()
                    .map(|cell| shown(cell, html, no_number))
                    .collect();
                writeln!(
                    self.out,
                    "    <tr>\n      <td>{}</td>\n    </tr>",
                    fields.join("</td>\n      <td>")
                )
            }
            TableFormat::Json => {
                let comma = if self.written > 1 { "," } else { "" };
                write!(self.out, "{comma}\n  {{")?;
                for (index, (name, cell)) in self.titles.iter().zip(cells).enumerate() {
                    let mut text = String::from(if index > 0 { ",\n    " } else { "\n    " });
                    crate::json::quote(&mut text, name);
                    text += ": ";
                    match cell {
                        Cell::Text(value) => crate::json::quote(&mut text, value),
                        Cell::Null => text += "null",
                        Cell::Float(value) if !value.is_finite() => text += "null",
                        other => text += &plain(other),
                    }
                    self.out.write_all(text.as_bytes())?;
                }
                write!(self.out, "\n  }}")
            }
        }
    }

    /// Writes what is left of the table, and returns what it lacks.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self) -> io::Result<LeftOut> {
        let limit = self.view.limit.unwrap_or(u64::MAX);
        let mut left_out = LeftOut {
            rows: self.rows.saturating_sub(limit),
            columns: Vec::new(),
        };
        if let Some(mut kept) = self.kept.take() {
            kept.seal()?;
            if self.view.format == TableFormat::Console {
                let console = Console::new(&self.columns, &self.view);
                left_out.columns = console.write(&kept, limit, &mut self.out)?;
            } else {
                for row in kept.first(limit) {
                    self.write_row(&row)?;
                }
            }
        }
        match self.view.format {
            TableFormat::Json if self.written == 0 => writeln!(self.out, "]")?,
            TableFormat::Json => writeln!(self.out, "\n]")?,
            TableFormat::Html => writeln!(self.out, "  </tbody>\n</table>")?,
            TableFormat::Csv | TableFormat::Markdown | TableFormat::Console => {}
        }
        self.out.flush()?;
        Ok(left_out)
    }
}

/// Nanoseconds in another unit.
fn in_unit(cell: &Cell, unit: Unit) -> Cell {
    match cell {
        Cell::Integer(value) => Cell::Float(*value as f64 / unit.nanoseconds()),
        Cell::Float(value) => Cell::Float(value / unit.nanoseconds()),
        Cell::Null | Cell::Text(_) => cell.clone(),
    }
}

/// A number in its shortest form; nothing for what is not a number.
fn plain(cell: &Cell) -> String {
    match cell {
        Cell::Null => String::new(),
        Cell::Integer(value) => value.to_string(),
        Cell::Float(value) if value.is_nan() => String::new(),
        Cell::Float(value) => format!("{value:?}"),
        Cell::Text(text) => text.clone(),
    }
}

/// A cell for people; `text` prepares free text, `no_number` stands for a number that is none.
fn shown(cell: &Cell, text: fn(&str) -> String, no_number: &str) -> String {
    match cell {
        Cell::Text(value) => text(value),
        Cell::Float(value) if value.is_nan() => no_number.to_owned(),
        other => plain(other),
    }
}

/// Text between tags, in one line.
fn html(text: &str) -> String {
    one_line(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// A field of CSV, in quotes where it needs them.
fn csv(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        let mut quoted = Vec::new();
        crate::csv::quote(&mut quoted, text);
        return String::from_utf8_lossy(&quoted).into_owned();
    }
    text.to_owned()
}

fn pipe(text: &str) -> String {
    one_line(text).replace('|', "\\|")
}

/// A cell is one line, also when a name has several.
fn one_line(text: &str) -> String {
    rpd_core::text::foreign::shown(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(format: TableFormat, columns: &[&str], rows: Vec<Vec<Cell>>) -> String {
        let mut out = Vec::new();
        let columns = columns
            .iter()
            .map(|name| Column::new(ColumnKind::Any, *name));
        let view = View::from(format);
        let mut printer = Printer::new(&view, columns.collect(), &mut out).expect("memory");
        for row in rows {
            printer.row(row).expect("memory");
        }
        printer.finish().expect("memory");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn a_table_is_written_in_every_format() {
        let rows = || {
            vec![
                vec!["a|\"b\"".into(), Cell::Integer(353), Cell::Float(1.5)],
                vec!["c".into(), Cell::Null, Cell::Null],
            ]
        };
        let names = ["name", "c", "f"];
        assert_eq!(
            print(TableFormat::Console, &names, rows()),
            " name    c   f\na|\"b\"  353 1.5\n    c NULL   -\n"
        );
        assert_eq!(
            print(TableFormat::Csv, &names, rows()),
            "name,c,f\n\"a|\"\"b\"\"\",353,1.5\nc,,\n"
        );
        assert_eq!(
            print(TableFormat::Markdown, &names, rows()),
            "| name | c | f |\n|---|---|---|\n| a\\|\"b\" | 353 | 1.5 |\n| c |  |  |\n"
        );
        assert_eq!(
            print(
                TableFormat::Json,
                &["n", "v"],
                vec![
                    vec!["x\n".into(), Cell::Null],
                    vec!["y".into(), Cell::Integer(1)]
                ]
            ),
            "[\n  {\n    \"n\": \"x\\n\",\n    \"v\": null\n  },\n  {\n    \"n\": \"y\",\n    \"v\": 1\n  }\n]\n"
        );
        assert_eq!(print(TableFormat::Json, &["n"], Vec::new()), "[]\n");
        let nothing = vec!["<a>".into(), Cell::Float(f64::NAN)];
        assert_eq!(
            print(TableFormat::Html, &["n", "v"], vec![nothing.clone()]),
            "<table border=\"1\" class=\"dataframe\">\n  <thead>\n    <tr>\n      <th>n</th>\n      <th>v</th>\n    </tr>\n  \
             </thead>\n  <tbody>\n    <tr>\n      <td>&lt;a&gt;</td>\n      <td>-</td>\n    </tr>\n  </tbody>\n</table>\n"
        );
        assert!(
            print(TableFormat::Markdown, &["n", "v"], vec![nothing.clone()])
                .ends_with("| <a> | - |\n")
        );
        // Programs read nothing where there is no number.
        assert_eq!(
            print(TableFormat::Csv, &["n", "v"], vec![nothing]),
            "n,v\n<a>,\n"
        );
    }

    #[test]
    fn a_huge_text_does_not_widen_the_other_rows() {
        let rows = vec![vec!["x".repeat(100_000).as_str().into()], vec!["y".into()]];
        let text = print(TableFormat::Console, &["n"], rows);
        assert_eq!(text.len(), 100_000 + "n\ny\n".len() + 1);
    }
}
