//! Rows of a table that are kept until all are there: to measure their columns, or to sort them. They are in a file when there are
//! many.

use std::cmp::Ordering;
use std::io;
use std::path::Path;

use rpd_core::storage::column::{Column, Storage};

use super::Cell;

/// Bytes of rows that are kept in memory.
const IN_MEMORY: usize = 16 << 20;

/// Rows of equal numbers of cells.
pub(super) struct Rows {
    /// The rows' cells, as [`encode`] writes them.
    cells: Column<u8>,
    /// Cells of a row.
    width: usize,
    count: u64,
    /// Storage of long tables; none where no file can be made, then rows stay in memory.
    storage: Option<Storage>,
    /// Values of the column that orders the rows, with the places of their rows in `cells`.
    sort: Option<(usize, Vec<(Cell, u64)>)>,
}

impl Rows {
    /// No rows yet, of `width` cells. `sort` is the index of the column that is to order them.
    pub(super) fn new(width: usize, sort: Option<usize>) -> Rows {
        Rows {
            cells: Column::new(),
            width,
            count: 0,
            storage: Some(Storage::new(Path::new("."))),
            sort: sort.map(|column| (column, Vec::new())),
        }
    }

    pub(super) fn add(&mut self, cells: &[Cell]) -> io::Result<()> {
        if let Some((column, values)) = &mut self.sort {
            let value = cells.get(*column).cloned().unwrap_or(Cell::Null);
            values.push((value, self.cells.total() as u64));
        }
        let mut bytes = Vec::new();
        for cell in cells {
            encode(cell, &mut bytes);
        }
        self.count += 1;
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

    /// Ends what [`Rows::add`] began: puts the rows in order and makes them readable.
    pub(super) fn seal(&mut self) -> io::Result<()> {
        if let Some((_, values)) = &mut self.sort {
            values.sort_by(|a, b| order(&a.0, &b.0).then(a.1.cmp(&b.1)));
        }
        match &self.storage {
            Some(storage) => self.cells.seal(storage),
            None => Ok(()),
        }
    }

    /// Number of rows.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The first `limit` of the rows, which are sealed, in their order.
    pub(super) fn first(&self, limit: u64) -> impl Iterator<Item = Vec<Cell>> {
        let count = self.count.min(limit) as usize;
        let mut next = 0;
        let mut released = 0;
        (0..count).map(move |number| {
            let place = match &self.sort {
                Some((_, values)) => values.get(number).map_or(0, |value| value.1 as usize),
                None => next,
            };
            let mut rest = self.cells.get(place..).unwrap_or_default();
            let row = (0..self.width).map(|_| decode(&mut rest)).collect();
            next = self.cells.len() - rest.len();
            if next.abs_diff(released) >= IN_MEMORY {
                released = next;
                self.cells.release();
            }
            row
        })
    }
}

/// The order of rows: numbers from the largest, then texts from A to Z, then what is no value.
fn order(a: &Cell, b: &Cell) -> Ordering {
    let rank = |cell: &Cell| match cell {
        Cell::Integer(_) => 0,
        Cell::Float(value) if !value.is_nan() => 0,
        Cell::Text(_) => 1,
        Cell::Float(_) | Cell::Null => 2,
    };
    let float = |cell: &Cell| match cell {
        Cell::Integer(value) => *value as f64,
        Cell::Float(value) => *value,
        Cell::Text(_) | Cell::Null => 0.0,
    };
    rank(a).cmp(&rank(b)).then_with(|| match (a, b) {
        (Cell::Integer(a), Cell::Integer(b)) => b.cmp(a),
        (Cell::Text(a), Cell::Text(b)) => a.cmp(b),
        _ => float(b).total_cmp(&float(a)),
    })
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

    fn rows(cells: Vec<Cell>, sort: Option<usize>, limit: u64) -> Vec<Cell> {
        let mut rows = Rows::new(1, sort);
        for cell in cells {
            rows.add(&[cell]).expect("memory");
        }
        rows.seal().expect("memory");
        rows.first(limit).flatten().collect()
    }

    #[test]
    fn sorted_rows_begin_with_the_largest_number_and_end_with_what_has_no_value() {
        let cells = || {
            vec![
                Cell::Null,
                Cell::Text("b".to_owned()),
                Cell::Integer(2),
                Cell::Float(2.5),
                Cell::Text("a".to_owned()),
                Cell::Integer(i64::MAX),
            ]
        };
        let sorted = [
            Cell::Integer(i64::MAX),
            Cell::Float(2.5),
            Cell::Integer(2),
            Cell::Text("a".to_owned()),
            Cell::Text("b".to_owned()),
            Cell::Null,
        ];
        assert_eq!(rows(cells(), Some(0), u64::MAX), sorted);
        assert_eq!(rows(cells(), Some(0), 2), sorted[..2]);
        assert_eq!(rows(cells(), None, u64::MAX), cells());
        assert_eq!(rows(cells(), None, 1), cells()[..1]);
    }

    #[test]
    fn many_rows_are_kept_and_sorted_in_a_file() {
        let count = 100_000;
        let mut unsorted = Rows::new(2, None);
        let mut rows = Rows::new(2, Some(0));
        for number in 0..count {
            let cells = [Cell::Integer(number), Cell::Text(format!("{number:x>200}"))];
            unsorted.add(&cells).expect("written");
            rows.add(&cells).expect("written");
        }
        assert!(rows.cells.total() > rows.cells.len(), "some are in a file");
        rows.seal().expect("readable");
        let mut expected = count;
        for row in rows.first(u64::MAX) {
            expected -= 1;
            assert_eq!(
                row,
                [
                    Cell::Integer(expected),
                    Cell::Text(format!("{expected:x>200}"))
                ]
            );
        }
        assert_eq!(expected, 0);
        unsorted.seal().expect("readable");
        let numbers = unsorted.first(u64::MAX).map(|row| row[0].clone());
        assert!(numbers.eq((0..count).map(Cell::Integer)));
    }
}
