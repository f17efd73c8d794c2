//! Tables of any columns, as text for people, CSV, JSON or markdown.

mod console;

use std::io::{self, Write};

use rpd_core::compat::Compat;

use console::Console;

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

/// Prints a table row by row. Only the console format keeps rows: it needs the widths.
pub struct Printer<W: Write> {
    format: TableFormat,
    columns: Vec<String>,
    /// Rows for people, which are printed when all are there.
    kept: Option<Console>,
    rows: u64,
    no_number: &'static str,
    out: W,
}

impl<W: Write> Printer<W> {
    /// A table with these columns.
    ///
    /// # Errors
    /// When the header cannot be written.
    pub fn new(format: TableFormat, columns: Vec<String>, out: W) -> io::Result<Printer<W>> {
        let mut printer = Printer {
            format,
            columns,
            kept: None,
            rows: 0,
            no_number: Compat::None.no_number(),
            out,
        };
        match format {
            TableFormat::Csv => {
                let fields: Vec<String> = printer.columns.iter().map(|name| csv(name)).collect();
                writeln!(printer.out, "{}", fields.join(","))?;
            }
            TableFormat::Markdown => {
                let names: Vec<String> = printer.columns.iter().map(|name| pipe(name)).collect();
                writeln!(printer.out, "| {} |", names.join(" | "))?;
                writeln!(printer.out, "|{}", "---|".repeat(names.len()))?;
            }
            TableFormat::Json => write!(printer.out, "[")?,
            TableFormat::Html => {
                let names: Vec<String> = printer.columns.iter().map(|name| html(name)).collect();
                writeln!(
                    printer.out,
                    "<table border=\"1\" class=\"dataframe\">\n  <thead>\n    <tr>\n      <th>{}</th>\n    </tr>\n  </thead>\n  <tbody>",
                    names.join("</th>\n      <th>")
                )?;
            }
            TableFormat::Console => {
                printer.kept = Some(Console::new(&printer.columns, printer.no_number));
            }
        }
        Ok(printer)
    }

    /// Replaces missing numbers in tables for people by the text that the tool of `compat` uses.
    #[must_use]
    pub fn compat(mut self, compat: Compat) -> Printer<W> {
        self.no_number = compat.no_number();
        if let Some(kept) = &mut self.kept {
            kept.no_number = self.no_number;
        }
        self
    }

    /// Number of rows that were written so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds a row of as many cells as there are columns.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn row(&mut self, cells: Vec<Cell>) -> io::Result<()> {
        self.rows += 1;
        match self.format {
            TableFormat::Console => {
                let kept = self.kept.as_mut();
                kept.map_or(Ok(()), |kept| kept.add(&cells))
            }
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
                    .map(|cell| shown(cell, pipe, self.no_number))
                    .collect();
                writeln!(self.out, "| {} |", fields.join(" | "))
            }
            TableFormat::Html => {
                let fields: Vec<String> = cells
                    .iter()
                    .map(|cell| shown(cell, html, self.no_number))
                    .collect();
                writeln!(
                    self.out,
                    "    <tr>\n      <td>{}</td>\n    </tr>",
                    fields.join("</td>\n      <td>")
                )
            }
            TableFormat::Json => {
                let comma = if self.rows > 1 { "," } else { "" };
                write!(self.out, "{comma}\n  {{")?;
                for (index, (name, cell)) in self.columns.iter().zip(&cells).enumerate() {
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

    /// Writes the end of the table.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self) -> io::Result<()> {
        match self.format {
            TableFormat::Json if self.rows == 0 => writeln!(self.out, "]")?,
            TableFormat::Json => writeln!(self.out, "\n]")?,
            TableFormat::Console => {
                if let Some(kept) = self.kept {
                    kept.write(&mut self.out)?;
                }
            }
            TableFormat::Html => writeln!(self.out, "  </tbody>\n</table>")?,
            TableFormat::Csv | TableFormat::Markdown => {}
        }
        self.out.flush()
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
    rpd_core::foreign::shown(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(format: TableFormat, columns: &[&str], rows: Vec<Vec<Cell>>) -> String {
        let mut out = Vec::new();
        let columns = columns.iter().map(|&name| name.to_owned()).collect();
        let mut printer = Printer::new(format, columns, &mut out).expect("memory");
        for row in rows {
            printer.row(row).expect("memory");
        }
        printer.finish().expect("memory");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn looks() {
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
