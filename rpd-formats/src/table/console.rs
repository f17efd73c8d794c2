//! Tables for people: as the data frames of the original print themselves. Columns are right-aligned, numbers one blank further
//! from what is left of them, floating-point columns with as many decimals as one of them needs, at most six.
//!
//! The widths of columns are known when all rows are.

use std::io::{self, Write};

use comfy_table::CellAlignment;
use unicode_width::UnicodeWidthStr as _;

use super::layout::{LaidColumn, Layout, Style, WIDEST};
use super::rows::Rows;
use super::{Cell, Column, ColumnKind, View, one_line, plain};
use crate::csv::scientific;

/// Digits after the point of floating-point numbers.
const DIGITS: usize = 6;

/// What is needed to lay out a table's rows.
pub(super) struct Console {
    columns: Vec<Measured>,
    /// Text for numbers that are none.
    no_number: &'static str,
    /// Letters in a line, where they are limited.
    width: Option<usize>,
}

/// A column, and what its cells need.
struct Measured {
    title: String,
    kind: ColumnKind,
    detail: u8,
    has_text: bool,
    has_float: bool,
    /// Whether there is a text that is too wide to align others with it.
    has_huge: bool,
    /// Columns of the screen that the widest cell takes, were the column not one of floating-point numbers.
    width: usize,
    numbers: Numbers,
}

/// Properties of a column that decide the format of its floating-point numbers.
#[derive(Default)]
struct Numbers {
    /// Decimals that are needed, once there is a number with a point.
    decimals: Option<usize>,
    /// Letters of the longest number up to its point, and of the longest text without a point.
    before_point: usize,
    without_point: usize,
    /// Letters of the longest number with an exponent.
    scientific: usize,
    is_large: bool,
    is_tiny: bool,
}

impl Numbers {
    fn add(&mut self, value: f64) {
        let text = format!("{value:.DIGITS$}");
        match text.split_once('.') {
            Some((before, decimals)) => {
                let needed = decimals.trim_end_matches('0').len().max(1);
                self.decimals = self.decimals.max(Some(needed));
                self.before_point = self.before_point.max(before.len() + 1);
            }
            None => self.without_point = self.without_point.max(text.len()),
        }
        self.scientific = self.scientific.max(scientific(value, DIGITS).len());
        self.is_large |= value.abs() > 1e6;
        self.is_tiny |= value.abs() < 1e-6 && value != 0.0;
    }

    fn fixed_width(&self) -> usize {
        let with_point = self.decimals.map(|decimals| self.before_point + decimals);
        self.without_point.max(with_point.unwrap_or(0))
    }

    /// Whether all numbers of a column are written with an exponent: it is shorter, or some are tiny.
    fn has_exponents(&self) -> bool {
        self.is_tiny || (self.fixed_width() > DIGITS + 6 && self.is_large)
    }

    fn width(&self) -> usize {
        if self.has_exponents() {
            self.scientific
        } else {
            self.fixed_width()
        }
    }

    fn text(&self, value: f64) -> String {
        if self.has_exponents() {
            scientific(value, DIGITS)
        } else {
            format!("{value:.*}", self.decimals.unwrap_or(DIGITS))
        }
    }
}

impl Measured {
    fn add(&mut self, cell: &Cell, no_number: &str) {
        let width = shown(cell).width();
        if width <= WIDEST {
            self.width = self.width.max(width)
        } else {
            self.has_huge = true
        }
        match cell {
            Cell::Text(_) => self.has_text = true,
            Cell::Float(_) => self.has_float = true,
            Cell::Null | Cell::Integer(_) => {}
        }
        match number(cell) {
            Some(value) => self.numbers.add(value),
            None => {
                let numbers = &mut self.numbers;
                numbers.without_point = numbers.without_point.max(no_number.len());
                numbers.scientific = numbers.scientific.max(no_number.len());
            }
        }
    }

    /// Whether its cells are written as floating-point numbers.
    fn is_float(&self) -> bool {
        self.has_float && !self.has_text
    }

    fn text(&self, cell: &Cell, no_number: &str) -> String {
        if !self.is_float() {
            return shown(cell);
        }
        number(cell).map_or_else(|| no_number.to_owned(), |value| self.numbers.text(value))
    }
}

/// The number in a cell; none for what is not a number.
fn number(cell: &Cell) -> Option<f64> {
    match cell {
        Cell::Float(value) if !value.is_nan() => Some(*value),
        Cell::Integer(value) => Some(*value as f64),
        Cell::Float(_) | Cell::Null | Cell::Text(_) => None,
    }
}

/// A cell of a column that is not one of floating-point numbers.
fn shown(cell: &Cell) -> String {
    match cell {
        Cell::Null => "NULL".to_owned(),
        Cell::Text(text) => one_line(text),
        other => plain(other),
    }
}

impl Console {
    pub(super) fn new(columns: &[Column], view: &View) -> Console {
        let columns = columns.iter().map(|column| Measured {
            title: one_line(&column.title(view.unit)),
            kind: column.kind(),
            detail: column.level(),
            has_text: false,
            has_float: false,
            has_huge: false,
            width: 0,
            numbers: Numbers::default(),
        });
        Console {
            columns: columns.collect(),
            no_number: view.compat.no_number(),
            width: view.width,
        }
    }

    /// Writes the first `limit` of the rows, which are sealed. Returns the titles of the columns for which there is no room.
    pub(super) fn write(
        mut self,
        rows: &Rows,
        limit: u64,
        out: &mut impl Write,
    ) -> io::Result<Vec<String>> {
        for row in rows.first(limit) {
            for (column, cell) in self.columns.iter_mut().zip(&row) {
                column.add(cell, self.no_number);
            }
        }
        let is_empty = rows.count() == 0;
        let columns = self.columns.iter().map(|column| LaidColumn {
            title: if column.has_text || is_empty {
                column.title.clone()
            } else {
                format!(" {}", column.title)
            },
            alignment: CellAlignment::Right,
            width: if column.is_float() {
                column.numbers.width()
            } else if column.has_huge && self.width.is_some() {
                // Where it is shortened, it can be aligned.
                WIDEST
            } else {
                column.width
            },
            is_name: column.has_text && matches!(column.kind, ColumnKind::Name | ColumnKind::Any),
            detail: column.detail,
        });
        let mut layout = Layout::new(Style::Plain, 0, columns.collect());
        let left_out = self.width.map(|width| layout.fit(width));
        let texts = rows.first(limit).map(|row| {
            let cells = self.columns.iter().zip(&row);
            Ok(cells
                .map(|(column, cell)| column.text(cell, self.no_number))
                .collect())
        });
        layout.write(texts, |piece| out.write_all(piece.as_bytes()))?;
        Ok(left_out.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Printer, TableFormat};

    fn floats(values: &[f64], no_number: &'static str) -> Vec<String> {
        let view = View::from(TableFormat::Console);
        let mut console = Console::new(&[Column::new(ColumnKind::Number, "")], &view);
        let column = &mut console.columns[0];
        for value in values {
            column.add(&Cell::Float(*value), no_number);
        }
        let texts = values
            .iter()
            .map(|value| column.text(&Cell::Float(*value), no_number));
        let texts: Vec<String> = texts.collect();
        let widest = texts.iter().map(String::len).max();
        assert_eq!(widest, Some(column.numbers.width()), "{texts:?}");
        texts
    }

    #[test]
    fn many_rows_are_printed_as_few_are() {
        // More than are laid out at once.
        let rows = 3_000;
        let columns = ["n", "t"]
            .map(|name| Column::new(ColumnKind::Any, name))
            .to_vec();
        let mut text = Vec::new();
        let view = View::from(TableFormat::Console);
        let mut printer = Printer::new(&view, columns, &mut text).expect("memory");
        for number in 0..rows {
            let cells = vec![Cell::Integer(number), Cell::Text(format!("{number:x>200}"))];
            printer.row(cells).expect("written");
        }
        printer.finish().expect("memory");
        let text = String::from_utf8(text).expect("text");
        assert!(
            text.lines()
                .skip(1)
                .eq((0..rows).map(|number| format!("{number:>4} {number:x>200}")))
        );
    }

    #[test]
    fn numbers_are_printed_as_the_original_s_tables_print_them() {
        assert_eq!(floats(&[5097.5, 5075.0], "NaN"), ["5097.5", "5075.0"]);
        assert_eq!(floats(&[60_557_983.0, 0.0], "NaN"), ["60557983.0", "0.0"]);
        assert_eq!(
            floats(&[207_929.875, 349_999.5], "NaN"),
            ["207929.875", "349999.500"]
        );
        assert_eq!(
            floats(&[43_701_240.0, 4.390_941, f64::NAN], "NaN"),
            ["4.370124e+07", "4.390941e+00", "NaN"]
        );
        assert_eq!(
            floats(&[0.000_000_1, 1.0], "NaN"),
            ["1.000000e-07", "1.000000e+00"]
        );
    }
}
