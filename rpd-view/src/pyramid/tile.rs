//! What is in tiles: columns of numbers, each as a varint (seven bits a byte, the lowest first).
//!
//! Records: their number, then columns of begin (after the one before), length, name + 1, lane and weight. Details: number of
//! records and of columns, then the columns, each value as the zigzag difference to the one before. Index of a track: number of
//! tiles; for each its first begin (after that of the one before), length until the last end, records, time that it adds
//! to what the track is busy, weight, and its names: their number (0 for more than
//! [`MOST_NAMES`], of which the records tell), then for each name + 1, count, sum, shortest, longest and weight.

use super::{Key, Part};
use crate::tracks::Slice;

/// Records of a tile.
pub const RECORDS: usize = 4096;

/// Names of a tile of which the index has sums; where there are more, such as messages with a number in each, these would take as
/// much as the records.
const MOST_NAMES: usize = 256;

/// Appends a number.
#[inline]
pub(super) fn put(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Numbers that were appended by [`put`]; what does not end is 0.
#[derive(Debug)]
pub(super) struct Numbers<'a>(pub(super) &'a [u8]);

impl Numbers<'_> {
    pub(super) fn take(&mut self) -> u64 {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let Some((byte, rest)) = self.0.split_first() else {
                return 0;
            };
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if *byte < 0x80 {
                break;
            }
        }
        value
    }
}

const COLUMNS: usize = 5;

/// The records of a tile in the making, and their details.
#[derive(Debug, Default)]
pub(super) struct Tile {
    count: usize,
    columns: [Vec<u8>; COLUMNS],
    before: u64,
    details: Vec<Vec<u8>>,
    row: Vec<u64>,
}

impl Tile {
    pub(super) fn new(details: usize) -> Tile {
        Tile {
            details: vec![Vec::new(); details],
            row: vec![0; details],
            ..Tile::default()
        }
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Appends a record, which begins `start` after the recording does.
    pub(super) fn add(&mut self, start: u64, slice: &Slice, details: &[u64]) {
        let values = [
            start - self.before,
            slice.length,
            u64::from(slice.name.wrapping_add(1)),
            slice.lane.into(),
            slice.weight,
        ];
        for (column, value) in self.columns.iter_mut().zip(values) {
            put(column, value);
        }
        self.before = start;
        self.count += 1;
        let columns = self.details.iter_mut().zip(&mut self.row);
        for ((column, before), value) in columns.zip(details) {
            let difference = value.wrapping_sub(*before) as i64;
            put(column, (difference << 1 ^ difference >> 63) as u64);
            *before = *value;
        }
    }

    /// The records as bytes; the next tile begins.
    pub(super) fn records(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put(&mut bytes, self.count as u64);
        for column in &mut self.columns {
            bytes.append(column);
        }
        self.before = 0;
        bytes
    }

    /// The details as bytes; to be called behind [`Tile::records`].
    pub(super) fn details(&mut self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        put(&mut bytes, self.count as u64);
        put(&mut bytes, self.details.len() as u64);
        for column in &mut self.details {
            bytes.append(column);
        }
        self.row.fill(0);
        self.count = 0;
        (!self.details.is_empty()).then_some(bytes)
    }
}

/// What a tile adds up to, by name.
#[derive(Debug, Default, Clone, Copy)]
struct Sum {
    name: u32,
    count: u64,
    sum: u64,
    min: u64,
    max: u64,
    weight: u64,
}

/// The index of a track in the making.
#[derive(Debug, Default)]
pub(super) struct Index {
    tiles: u64,
    bytes: Vec<u8>,
    before: u64,
    first: u64,
    end: u64,
    busy: u64,
    /// Until when the track is known to be busy.
    covered: u64,
    weight: u64,
    count: u64,
    names: Vec<Sum>,
}

impl Index {
    /// Adds a record, which begins `start` after the recording does.
    pub(super) fn add(&mut self, start: u64, slice: &Slice) {
        let end = start + slice.length;
        if self.count == 0 {
            self.first = start;
            self.end = end;
        }
        self.count += 1;
        self.end = self.end.max(end);
        self.busy += end.saturating_sub(start.max(self.covered));
        self.covered = self.covered.max(end);
        self.weight = self.weight.saturating_add(slice.weight);
        if self.names.len() > MOST_NAMES {
            return;
        }
        // The names of the latest records are the likely ones.
        let found = match self.names.iter().rposition(|sum| sum.name == slice.name) {
            Some(found) => found,
            None => {
                self.names.push(Sum {
                    name: slice.name,
                    min: u64::MAX,
                    ..Sum::default()
                });
                self.names.len() - 1
            }
        };
        let sum = &mut self.names[found];
        sum.count += 1;
        sum.sum = sum.sum.saturating_add(slice.length);
        sum.min = sum.min.min(slice.length);
        sum.max = sum.max.max(slice.length);
        sum.weight = sum.weight.saturating_add(slice.weight);
    }

    /// Ends a tile; the time that it adds to what the track is busy.
    pub(super) fn end_tile(&mut self) -> u64 {
        let bytes = &mut self.bytes;
        let busy = std::mem::take(&mut self.busy);
        if self.names.len() > MOST_NAMES {
            self.names.clear();
        }
        for value in [
            self.first - self.before,
            self.end - self.first,
            self.count,
            busy,
            std::mem::take(&mut self.weight),
            self.names.len() as u64,
        ] {
            put(bytes, value);
        }
        for sum in self.names.drain(..) {
            for value in [
                u64::from(sum.name.wrapping_add(1)),
                sum.count,
                sum.sum,
                sum.min,
                sum.max,
                sum.weight,
            ] {
                put(bytes, value);
            }
        }
        self.before = self.first;
        self.tiles += 1;
        self.count = 0;
        busy
    }

    /// Number of tiles, and the index as bytes.
    pub(super) fn finish(self) -> (u64, Vec<u8>) {
        let mut bytes = Vec::new();
        put(&mut bytes, self.tiles);
        bytes.extend_from_slice(&self.bytes);
        (self.tiles, bytes)
    }
}

/// The lengths of the records of a tile.
pub(crate) fn lengths(records: &[u8]) -> Vec<u64> {
    let mut numbers = Numbers(records);
    let count = numbers.take().min(RECORDS as u64) as usize;
    (0..count).for_each(|_| {
        numbers.take();
    });
    (0..count).map(|_| numbers.take()).collect()
}

/// The records of a tile that last at least so long, and details of the same ones.
pub(crate) fn keep(
    records: &[u8],
    details: Option<&[u8]>,
    least: u64,
) -> (Vec<u8>, Option<Vec<u8>>) {
    let mut numbers = Numbers(records);
    let count = numbers.take().min(RECORDS as u64) as usize;
    let columns: Vec<Vec<u64>> = (0..COLUMNS)
        .map(|_| (0..count).map(|_| numbers.take()).collect())
        .collect();
    let mut numbers = Numbers(details.unwrap_or_default());
    numbers.take();
    let width = numbers.take().min(64) as usize;
    let mut rows = vec![vec![0_u64; width]; count];
    for column in 0..width {
        let mut before = 0_u64;
        for row in &mut rows {
            let value = numbers.take();
            let difference = (value >> 1) as i64 ^ -((value & 1) as i64);
            before = before.wrapping_add(difference as u64);
            row[column] = before;
        }
    }
    let mut tile = Tile::new(width);
    let mut start = 0;
    for (at, row) in rows.iter().enumerate() {
        start += columns[0][at];
        if columns[1][at] < least {
            continue;
        }
        let slice = Slice {
            start,
            length: columns[1][at],
            name: (columns[2][at] as u32).wrapping_sub(1),
            lane: columns[3][at] as u32,
            weight: columns[4][at],
        };
        tile.add(start, &slice, row);
    }
    (tile.records(), tile.details())
}

/// Key of a tile of a track.
pub(super) fn key(part: Part, track: u32, level: u8, number: u64) -> Key {
    Key {
        part,
        track,
        level,
        number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_in_index(names: u32) -> u64 {
        let mut index = Index::default();
        for number in 0..1000 {
            let slice = Slice {
                name: number % names,
                length: 5,
                ..Slice::default()
            };
            index.add(u64::from(number) * 10, &slice);
        }
        assert_eq!(index.end_tile(), 5000);
        let (tiles, bytes) = index.finish();
        assert_eq!(tiles, 1);
        let mut numbers = Numbers(&bytes);
        let head: Vec<u64> = (0..7).map(|_| numbers.take()).collect();
        assert_eq!(head[..6], [1, 0, 9995, 1000, 5000, 0]);
        head[6]
    }

    #[test]
    fn index_has_sums_of_names_unless_there_are_too_many() {
        assert_eq!(names_in_index(3), 3);
        assert_eq!(names_in_index(256), 256);
        assert_eq!(names_in_index(257), 0);
        assert_eq!(names_in_index(1000), 0);
    }

    #[test]
    fn numbers_of_every_size_are_read_as_they_were_put() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            put(&mut bytes, value);
            assert_eq!(Numbers(&bytes).take(), value);
        }
        // What does not end is nothing.
        assert_eq!(Numbers(&[0x80, 0x80]).take(), 0);
    }
}
