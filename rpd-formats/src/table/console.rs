//! Tables for people: as the data frames of the original print themselves. Columns are right-aligned, numbers one blank further
//! from what is left of them, floating-point columns with as many decimals as one of them needs, at most six.
//!
//! The widths of columns are known when all rows are. Rows are in a file until then when there are many.

use std::io::{self, Write};
use std::path::Path;

use rpd_core::column::{Column, Storage};

use super::{Cell, one_line, plain};
use crate::csv::scientific;

/// Letters of a text up to which the others of its column are aligned with it.
const WIDEST: usize = 4_096;

/// Digits after the point of floating-point numbers.
const DIGITS: usize = 6;

/// Bytes of rows that are kept in memory.
const IN_MEMORY: usize = 16 << 20;

/// The rows of a table, and the widths of its columns.
pub(super) struct Console {
    columns: Vec<Measured>,
    /// Text for numbers that are none.
    pub(super) no_number: &'static str,
    /// The rows' cells, as [`encode`] writes them.
    cells: Column<u8>,
    rows: u64,
    /// Storage of long tables; none where no file can be made, then rows stay in memory.
    storage: Option<Storage>,
}

/// A column, and what its cells need.
struct Measured {
    title: String,
    has_text: bool,
    has_float: bool,
    /// Letters of the widest cell, were the column not one of floating-point numbers.
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
        match self.has_exponents() {
            true => self.scientific,
            false => self.fixed_width(),
        }
    }

    fn text(&self, value: f64) -> String {
        match self.has_exponents() {
            true => scientific(value, DIGITS),
            false => format!("{value:.*}", self.decimals.unwrap_or(DIGITS)),
        }
    }
}

impl Measured {
    fn add(&mut self, cell: &Cell, no_number: &str) {
        let width = shown(cell).chars().count();
        if width <= WIDEST {
            self.width = self.width.max(width);
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
    pub(super) fn new(columns: &[String], no_number: &'static str) -> Console {
        let columns = columns.iter().map(|name| Measured {
            title: one_line(name),
            has_text: false,
            has_float: false,
            width: 0,
            numbers: Numbers::default(),
        });
        Console {
            columns: columns.collect(),
            no_number,
            cells: Column::new(),
            rows: 0,
            storage: Some(Storage::new(Path::new("."))),
        }
    }

    pub(super) fn add(&mut self, cells: &[Cell]) -> io::Result<()> {
        let mut bytes = Vec::new();
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            column.add(cell, self.no_number);
            encode(cell, &mut bytes);
        }
        self.rows += 1;
        self.cells.extend_from_slice(&bytes);
        if let Some(storage) = self
            .storage
            .as_ref()
            .filter(|_| self.cells.len() >= IN_MEMORY)
            && let Err(error) = self.cells.spill(storage)
        {
            if self.cells.total() > self.cells.len() {
                return Err(error);
            }
            self.storage = None;
        }
        Ok(())
    }

    pub(super) fn write(mut self, out: &mut impl Write) -> io::Result<()> {
        if let Some(storage) = &self.storage {
            self.cells.seal(storage)?;
        }
        let is_empty = self.rows == 0;
        let mut titles = Vec::new();
        let mut widths = Vec::new();
        for column in &self.columns {
            let title = match column.has_text || is_empty {
                true => column.title.clone(),
                false => format!(" {}", column.title),
            };
            let own = match column.is_float() {
                true => column.numbers.width(),
                false => column.width,
            };
            let title_width = Some(title.chars().count()).filter(|width| *width <= WIDEST);
            // One huge text must not make every row as wide as itself.
            widths.push(own.max(title_width.unwrap_or(0)));
            titles.push(title);
        }
        write_line(out, &titles, &widths)?;
        let mut rest: &[u8] = &self.cells;
        let mut released = rest.len();
        for _ in 0..self.rows {
            let columns = self.columns.iter();
            let texts: Vec<String> = columns
                .map(|column| column.text(&decode(&mut rest), self.no_number))
                .collect();
            write_line(out, &texts, &widths)?;
            if released - rest.len() >= IN_MEMORY {
                released = rest.len();
                self.cells.release();
            }
        }
        Ok(())
    }
}

fn write_line(out: &mut impl Write, texts: &[String], widths: &[usize]) -> io::Result<()> {
    for (index, (text, width)) in texts.iter().zip(widths).enumerate() {
        let blanks = width.saturating_sub(text.chars().count()) + usize::from(index > 0);
        write!(out, "{:blanks$}{text}", "")?;
    }
    writeln!(out)
}

/// Appends a cell: a byte for its kind and its value.
fn encode(cell: &Cell, bytes: &mut Vec<u8>) {
    match cell {
        Cell::Null => bytes.push(0),
        Cell::Integer(value) => {
            bytes.push(1);
            bytes.extend(value.to_ne_bytes());
        }
        Cell::Float(value) => {
            bytes.push(2);
            bytes.extend(value.to_ne_bytes());
        }
        Cell::Text(text) => {
            bytes.push(3);
            bytes.extend((text.len() as u64).to_ne_bytes());
            bytes.extend(text.as_bytes());
        }
    }
}

/// Takes a cell that [`encode`] wrote from the front of `bytes`.
fn decode(bytes: &mut &[u8]) -> Cell {
    let kind = bytes.split_off_first().copied().unwrap_or(0);
    if kind == 0 {
        return Cell::Null;
    }
    let mut eight = || {
        let (value, rest) = bytes.split_first_chunk().unwrap_or((&[0; 8], &[]));
        *bytes = rest;
        *value
    };
    match kind {
        1 => Cell::Integer(i64::from_ne_bytes(eight())),
        2 => Cell::Float(f64::from_ne_bytes(eight())),
        _ => {
            let len = u64::from_ne_bytes(eight()) as usize;
            let (text, rest) = bytes.split_at(len.min(bytes.len()));
            *bytes = rest;
            Cell::Text(String::from_utf8_lossy(text).into_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(values: &[f64], no_number: &'static str) -> Vec<String> {
        let mut console = Console::new(&[String::new()], no_number);
        for value in values {
            console.add(&[Cell::Float(*value)]).expect("memory");
        }
        let column = &console.columns[0];
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
        let rows = 100_000;
        let mut console = Console::new(&["n".to_owned(), "t".to_owned()], "NaN");
        for number in 0..rows {
            let cells = [Cell::Integer(number), Cell::Text(format!("{number:x>200}"))];
            console.add(&cells).expect("written");
        }
        assert!(
            console.cells.total() > console.cells.len(),
            "some are in a file"
        );
        let mut text = Vec::new();
        console.write(&mut text).expect("memory");
        let text = String::from_utf8(text).expect("text");
        assert!(
            text.lines()
                .skip(1)
                .eq((0..rows).map(|number| format!("{number:>5} {number:x>200}")))
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
