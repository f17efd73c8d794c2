//! Tracks of the timeline, and bins for those that have too many records to be shown one by one.

use std::collections::HashMap;
use std::hash::Hash;

/// Bins of a track, more than a wide screen has columns.
pub(super) const BINS: usize = 4096;

/// A row of the timeline with its records.
pub(super) struct Track {
    pub(super) label: String,
    pub(super) count: usize,
    /// Start, end, name; by start.
    pub(super) slices: Vec<(u64, u64, u32)>,
    /// Stacks of the slices, 0 for none; empty when there are none at all.
    pub(super) stacks: Vec<u32>,
    pub(super) bins: Bins,
}

/// Busy time and the most frequent name of a track, in equal parts of the whole time.
pub(super) struct Bins {
    origin: u64,
    pub(super) width: u64,
    pub(super) busy: Vec<u64>,
    /// Most frequent name and its weight in each bin, by Boyer and Moore's majority vote. A name that takes more than
    /// half of the bin's time is found.
    pub(super) top: Vec<(u32, u64)>,
    covered_until: u64,
}

impl Bins {
    pub(super) fn new(origin: u64, length: u64) -> Bins {
        Bins {
            origin,
            width: length.div_ceil(BINS as u64).max(1),
            busy: vec![0; BINS],
            top: vec![(0, 0); BINS],
            covered_until: 0,
        }
    }

    /// Calls `visit` with each bin that `start..end` touches and the time within it.
    pub(super) fn each(&self, start: u64, end: u64, mut visit: impl FnMut(usize, u64)) {
        let (mut at, end) = (start - self.origin, end - self.origin);
        while at < end {
            let bin = at / self.width;
            let stop = ((bin + 1) * self.width).min(end);
            visit((bin as usize).min(BINS - 1), stop - at);
            at = stop;
        }
    }

    pub(super) fn add(&mut self, start: u64, end: u64, name: u32) {
        let mut top = std::mem::take(&mut self.top);
        self.each(start, end, |bin, time| {
            let (best, weight) = &mut top[bin];
            if *best == name {
                *weight += time;
            } else if time > *weight {
                (*best, *weight) = (name, time - *weight);
            } else {
                *weight -= time;
            }
        });
        self.top = top;
        let from = start.max(self.covered_until);
        if from < end {
            let mut busy = std::mem::take(&mut self.busy);
            self.each(from, end, |bin, time| busy[bin] += time);
            self.busy = busy;
            self.covered_until = end;
        }
    }
}

impl Track {
    /// Adds a record; they come in order of start.
    #[inline]
    pub(super) fn add(&mut self, exact: bool, start: u64, end: u64, name: u32) {
        let end = end.max(start);
        self.count += 1;
        if exact {
            self.slices.push((start, end, name));
        } else {
            self.bins.add(start, end, name);
        }
    }
}

/// The keys by which records are divided among tracks, in the order in which they come first, with their numbers of
/// records.
pub(super) struct Keys<K> {
    pub(super) list: Vec<(K, usize)>,
    positions: HashMap<K, usize>,
    last: usize,
}

impl<K: Copy + Eq + Hash + Ord> Keys<K> {
    pub(super) fn new() -> Keys<K> {
        Keys {
            list: Vec::new(),
            positions: HashMap::new(),
            last: 0,
        }
    }

    #[inline]
    pub(super) fn count(&mut self, key: K) {
        if self.list.get(self.last).is_none_or(|(of, _)| *of != key) {
            self.last = *self.positions.entry(key).or_insert_with(|| {
                self.list.push((key, 0));
                self.list.len() - 1
            });
        }
        self.list[self.last].1 += 1;
    }

    /// The keys in their own order.
    pub(super) fn ordered(&self) -> Vec<K> {
        let mut keys: Vec<K> = self.list.iter().map(|(key, _)| *key).collect();
        keys.sort();
        keys
    }

    /// Tracks with these keys.
    pub(super) fn tracks(&self, of: impl Iterator<Item = (K, Track)>) -> Tracks<K> {
        let (keys, list): (Vec<K>, Vec<Track>) = of.unzip();
        Tracks {
            positions: keys.into_iter().zip(0..).collect(),
            list,
            last: None,
        }
    }
}

/// Tracks that are found by key.
pub(super) struct Tracks<K> {
    positions: HashMap<K, usize>,
    pub(super) list: Vec<Track>,
    last: Option<(K, Option<usize>)>,
}

impl<K: Copy + Eq + Hash> Tracks<K> {
    /// The track of a key; `None` when it is left out.
    #[inline]
    pub(super) fn of(&mut self, key: K) -> Option<&mut Track> {
        let position = match self.last {
            Some((of, position)) if of == key => position,
            _ => self.positions.get(&key).copied(),
        };
        self.last = Some((key, position));
        self.list.get_mut(position?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_count_overlapping_slices_once() {
        let mut bins = Bins::new(1000, BINS as u64 * 10);
        bins.add(1000, 1025, 1);
        bins.add(1005, 1015, 2);
        bins.add(1020, 1040, 3);
        assert_eq!(bins.busy[..5], [10, 10, 10, 10, 0]);
        let names: Vec<u32> = bins.top[..4].iter().map(|(name, _)| *name).collect();
        assert_eq!(names, [1, 1, 3, 3]);
        // To the very end, and nothing after it.
        bins.add(1000 + BINS as u64 * 10 - 1, 1000 + BINS as u64 * 10, 1);
        assert_eq!(bins.busy[BINS - 1], 1);
    }
}
