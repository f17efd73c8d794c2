//! Bins of one track at one level: what happens in equal stretches of time.
//!
//! A tile has [`BINS`] bins, of which it lists those in which something happens: their number, then for each its place after the one
//! before, records that begin in it, time in which any runs, time of all, longest record that runs in it, greatest weight, and name +
//! 1 and time of the name with the most time.

use std::collections::VecDeque;

use super::tile::put;
use crate::tracks::Slice;

/// Levels of bins, from 0.
pub(super) const LEVELS: u8 = 13;
/// Bins of a tile.
pub(super) const BINS: u64 = 1024;
/// Names whose times are counted in a bin.
const NAMES: usize = 4;
/// Bins that are open at a time, from that of the latest record on.
const OPEN: usize = 1024;
/// A level has at most so many bins, beside one for three records, and so many tiles, beside one for a thousand.
const FREE_BINS: u64 = 16 << 10;
const FREE_TILES: u64 = 8;

/// Bits of the length of a bin in ns.
pub(super) const fn shift(level: u8) -> u32 {
    12 + 2 * level as u32
}

#[derive(Debug, Clone, Copy, Default)]
struct Bin {
    count: u64,
    busy: u64,
    sum: u64,
    longest: u64,
    peak: u64,
    names: [(u32, u64); NAMES],
}

impl Bin {
    fn is_empty(&self) -> bool {
        self.count == 0 && self.sum == 0 && self.busy == 0
    }

    fn add(&mut self, time: u64, of: &Slice) {
        self.sum += time;
        self.longest = self.longest.max(of.length);
        self.peak = self.peak.max(of.weight);
        // At least 1, so that records without length have a name as well.
        let time = time.max(1);
        let mut least = 0;
        for at in 0..NAMES {
            let (name, sum) = &mut self.names[at];
            if *sum == 0 || *name == of.name {
                (*name, *sum) = (of.name, *sum + time);
                return;
            }
            if self.names[at].1 < self.names[least].1 {
                least = at;
            }
        }
        // Exact up to this number of names; then the one with the least time makes room.
        let (name, sum) = &mut self.names[least];
        (*name, *sum) = (of.name, *sum + time);
    }
}

/// A tile that is complete: number and content.
pub(super) type Done = (u64, Vec<u8>);

/// A level in the making.
#[derive(Debug)]
pub(super) struct Level {
    shift: u32,
    /// Number of the first open bin.
    base: u64,
    open: VecDeque<Bin>,
    /// Until when the track is known to be busy.
    covered: u64,
    /// Records that last beyond the open bins.
    ahead: Vec<(u64, Slice)>,
    records: u64,
    bins: u64,
    tiles: u64,
    is_left_out: bool,
    number: u64,
    in_tile: u64,
    before: u64,
    bytes: Vec<u8>,
    done: Vec<Done>,
}

impl Level {
    pub(super) fn new(level: u8) -> Level {
        Level {
            shift: shift(level),
            base: 0,
            open: VecDeque::new(),
            covered: 0,
            ahead: Vec::new(),
            records: 0,
            bins: 0,
            tiles: 0,
            is_left_out: false,
            number: 0,
            in_tile: 0,
            before: 0,
            bytes: Vec::new(),
            done: Vec::new(),
        }
    }

    /// Whether the level has so many bins that records serve better: it has no tiles.
    pub(super) fn is_left_out(&self) -> bool {
        self.is_left_out
    }

    /// Tiles that are complete.
    pub(super) fn take(&mut self) -> Vec<Done> {
        std::mem::take(&mut self.done)
    }

    /// Adds records of a recording that begins at `origin`, none of which begins before another one did.
    pub(super) fn add_all(&mut self, slices: &[Slice], origin: u64) {
        let mut rest = slices;
        while !self.is_left_out {
            rest = self.add_inside(rest, origin);
            let Some((slice, others)) = rest.split_first() else {
                break;
            };
            self.add(slice.start - origin, slice);
            rest = others;
        }
    }

    /// Adds the first records as long as they lie inside the first open bin, which is what most do; returns the others.
    fn add_inside<'a>(&mut self, slices: &'a [Slice], origin: u64) -> &'a [Slice] {
        let high = (self.base + 1) << self.shift;
        let Some(bin) = self.open.front_mut() else {
            return slices;
        };
        let (mut sum, mut covered, mut count) = (*bin, self.covered, 0);
        for slice in slices {
            let start = slice.start - origin;
            let end = start + slice.length;
            if start >= high || end > high {
                break;
            }
            sum.busy += end.saturating_sub(start.max(covered));
            covered = covered.max(end);
            sum.add(slice.length, slice);
            count += 1;
        }
        sum.count += count as u64;
        *bin = sum;
        self.covered = covered;
        self.records += count as u64;
        &slices[count..]
    }

    /// Adds a record, which begins `start` after the recording does.
    fn add(&mut self, start: u64, slice: &Slice) {
        self.records += 1;
        let end = start + slice.length;
        let first = start >> self.shift;
        let last = match slice.length {
            0 => first,
            _ => (end - 1) >> self.shift,
        };
        if first != self.base || self.open.is_empty() {
            self.advance(first);
            if self.is_left_out {
                return;
            }
        }
        let limit = self.base + OPEN as u64;
        let busy_from = start.max(self.covered);
        self.covered = self.covered.max(end);
        while self.base + (self.open.len() as u64) <= last.min(limit - 1) {
            let bin = self.fresh();
            self.open.push_back(bin);
        }
        for number in first..=last.min(limit - 1) {
            let (low, high) = (number << self.shift, (number + 1) << self.shift);
            let bin = &mut self.open[(number - self.base) as usize];
            bin.count += u64::from(number == first);
            bin.busy += end.min(high).saturating_sub(busy_from.max(low));
            bin.add(end.min(high) - start.max(low), slice);
        }
        if last >= limit {
            self.ahead.push((end, *slice));
        }
    }

    /// The bin behind the open ones, with the records that last into it.
    fn fresh(&mut self) -> Bin {
        let mut bin = Bin::default();
        if self.ahead.is_empty() {
            return bin;
        }
        let low = (self.base + self.open.len() as u64) << self.shift;
        let high = low + (1 << self.shift);
        for (end, slice) in &self.ahead {
            let time = end.min(&high).saturating_sub(low);
            if time > 0 {
                // All began before this bin, so that the longest of them covers the others.
                bin.busy = bin.busy.max(time);
                bin.add(time, slice);
            }
        }
        self.ahead.retain(|(end, _)| *end > high);
        bin
    }

    /// Completes the bins before the one of this number.
    fn advance(&mut self, first: u64) {
        while self.base < first && !self.is_left_out {
            let bin = match self.open.pop_front() {
                Some(bin) => bin,
                None if self.ahead.is_empty() => {
                    self.base = first;
                    break;
                }
                None => self.fresh(),
            };
            if !bin.is_empty() {
                self.emit(&bin);
            }
            self.base += 1;
        }
        if self.open.is_empty() && !self.is_left_out {
            let bin = self.fresh();
            self.open.push_back(bin);
        }
    }

    fn emit(&mut self, bin: &Bin) {
        let number = self.base / BINS;
        if number != self.number {
            self.end_tile();
            self.number = number;
        }
        self.bins += 1;
        let is_dense = self.bins > self.records / 3 + FREE_BINS
            || self.tiles > self.records / 1000 + FREE_TILES;
        if is_dense {
            *self = Level {
                is_left_out: true,
                ..Level::new(0)
            };
            return;
        }
        let place = self.base % BINS;
        let top = bin.names.iter().max_by_key(|name| name.1);
        let (name, time) = top.copied().unwrap_or_default();
        let place_after = match self.in_tile {
            0 => place,
            _ => place - self.before,
        };
        for value in [
            place_after,
            bin.count,
            bin.busy,
            bin.sum,
            bin.longest,
            bin.peak,
            u64::from(name.wrapping_add(1)),
            time,
        ] {
            put(&mut self.bytes, value);
        }
        self.before = place;
        self.in_tile += 1;
    }

    fn end_tile(&mut self) {
        if self.in_tile == 0 {
            return;
        }
        let mut bytes = Vec::with_capacity(self.bytes.len() + 2);
        put(&mut bytes, self.in_tile);
        bytes.append(&mut self.bytes);
        self.done.push((self.number, bytes));
        self.tiles += 1;
        self.in_tile = 0;
    }

    /// Completes everything.
    pub(super) fn finish(&mut self) {
        while !self.is_left_out && (!self.open.is_empty() || !self.ahead.is_empty()) {
            let bin = self.open.pop_front();
            let bin = bin.unwrap_or_else(|| self.fresh());
            if !bin.is_empty() {
                self.emit(&bin);
            }
            self.base += 1;
        }
        self.end_tile();
    }
}

#[cfg(test)]
mod tests {
    use super::super::tile::Numbers;
    use super::*;

    type Row = [u64; 6];

    /// Places, counts, busy times, sums, longest records and greatest weights of all bins.
    fn bins(slices: &[Slice], level: u8) -> Vec<Row> {
        let mut made = Level::new(level);
        made.add_all(slices, 0);
        made.finish();
        let mut rows = Vec::new();
        for (tile, bytes) in made.take() {
            let mut numbers = Numbers(&bytes);
            let mut place = 0;
            for _ in 0..numbers.take() {
                let mut row = [0; 8];
                row.fill_with(|| numbers.take());
                place += row[0];
                row[0] = tile * BINS + place;
                rows.push(row[..6].try_into().expect("six"));
            }
        }
        rows
    }

    fn expected(slices: &[Slice], level: u8) -> Vec<Row> {
        let shift = shift(level);
        let last = slices.iter().map(Slice::end).max().unwrap_or(0) >> shift;
        let rows = (0..=last).map(|number| {
            let (low, high) = (number << shift, (number + 1) << shift);
            let mut row = [number, 0, 0, 0, 0, 0];
            let mut covered = 0;
            for slice in slices {
                let begins = (low..high).contains(&slice.start);
                row[1] += u64::from(begins);
                let time = slice.end().min(high).saturating_sub(slice.start.max(low));
                if time > 0 || begins {
                    row[3] += time;
                    row[4] = row[4].max(slice.length);
                    row[5] = row[5].max(slice.weight);
                    let from = slice.start.max(low).max(covered);
                    row[2] += slice.end().min(high).saturating_sub(from);
                    covered = covered.max(slice.end().min(high));
                }
            }
            row
        });
        rows.filter(|row| row[1] + row[2] + row[3] > 0).collect()
    }

    #[test]
    fn bins_of_overlapping_long_and_empty_records_are_those_of_a_plain_count() {
        let mut seed = 7_u64;
        let mut random = |most: u64| {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (seed >> 33) % most
        };
        for _ in 0..200 {
            let mut start = random(1 << 20);
            let slices: Vec<Slice> = (0..40)
                .map(|_| {
                    let step = [4, 13, 18, 23][random(4) as usize];
                    start += random(1 << step);
                    let length = [1, 8, 14, 24][random(4) as usize];
                    let length = random(1 << length);
                    Slice {
                        start,
                        length,
                        weight: random(100),
                        ..Slice::default()
                    }
                })
                .collect();
            for level in [0, 1, 3, 6] {
                let made = bins(&slices, level);
                if !made.is_empty() {
                    assert_eq!(made, expected(&slices, level), "{level}: {slices:?}");
                }
            }
        }
    }

    #[test]
    fn level_with_more_bins_than_records_is_left_out() {
        let hour = Slice {
            length: 3_600_000_000_000,
            ..Slice::default()
        };
        let mut level = Level::new(0);
        level.add_all(&[hour], 0);
        level.finish();
        assert!(level.is_left_out() && level.take().is_empty());
        let mut level = Level::new(12);
        level.add_all(&[hour], 0);
        level.finish();
        assert!(!level.is_left_out() && level.take().len() == 1);
    }
}
