//! Numbers for keys, shared by all threads without locks.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::region::Region;

/// Number of slots that one cache line holds.
const GROUP: usize = 8;
/// Log2 of the number of slots per level.
const LEVELS: [u32; 3] = [13, 17, 21];
/// Number of slots of a level that are probed before the next level.
const PROBES: [usize; LEVELS.len()] = [GROUP, GROUP, 32 * GROUP];

/// Two words, numbered from 1 upwards in order of first sight. Keys are never removed.
///
/// A slot holds the upper half of the key's hash and the number. It is written once, after the key's entry, by
/// compare-and-swap: all threads probe in one order, so two threads with one key reach the same empty slot.
pub(crate) struct Interner {
    levels: [Region<AtomicU64>; LEVELS.len()],
    entries: Region<[AtomicU64; 2]>,
    used: AtomicU32,
}

// SAFETY: an array of integers.
unsafe impl Zeroed for [AtomicU64; 2] {}
use crate::region::Zeroed;

/// Reason why a key has no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoNumber {
    /// The table is full.
    Full,
    /// The key could not be announced.
    Refused,
}

/// Result of probing a slot.
enum Probe {
    Known(u32),
    Vacant(usize, usize),
    Full,
}

impl Interner {
    /// Reserves room for `capacity` keys, and has memory for the first ones at once.
    pub(crate) fn reserve(capacity: usize) -> Interner {
        let interner = Interner::sparse(capacity);
        interner.levels[0].populate(0..1 << LEVELS[0]);
        interner.entries.populate(0..1 << LEVELS[0]);
        interner
    }

    /// Reserves room for `capacity` keys, of which there may be none.
    pub(crate) fn sparse(capacity: usize) -> Interner {
        Interner {
            levels: LEVELS.map(|bits| Region::reserve(1 << bits)),
            entries: Region::reserve(capacity + 1),
            used: AtomicU32::new(0),
        }
    }

    /// Whether its memory could be reserved.
    pub(crate) fn usable(&self) -> bool {
        !self.entries.is_empty() && self.levels.iter().all(|level| !level.is_empty())
    }

    /// The number of a key. `announce` is called with a new number before any other thread can find it; if another
    /// thread numbers the same key meanwhile, its number is returned and the announced one is never used.
    #[inline]
    pub(crate) fn number(
        &self,
        key: [u64; 2],
        announce: impl FnOnce(u32) -> bool,
    ) -> Result<u32, NoNumber> {
        let hash = hash(key);
        match self.probe(key, hash, (0, 0)) {
            Probe::Known(number) => Ok(number),
            Probe::Vacant(level, slot) => self.add(key, hash, (level, slot), announce),
            Probe::Full => Err(NoNumber::Full),
        }
    }

    /// The key with this id.
    pub(crate) fn key(&self, id: u32) -> [u64; 2] {
        let entry = &self.entries[id as usize];
        [0, 1].map(|part: usize| entry[part].load(Ordering::Relaxed))
    }

    /// Number of ids that were assigned.
    pub(crate) fn len(&self) -> u32 {
        self.used.load(Ordering::Relaxed)
    }

    /// Removes all keys. No other thread may use the table meanwhile.
    pub(crate) fn clear(&self) {
        self.levels.iter().for_each(Region::discard);
        self.entries.discard();
        self.used.store(0, Ordering::Relaxed);
    }

    /// Looks for a key from a level and an offset within its group on.
    #[inline]
    fn probe(&self, key: [u64; 2], hash: u64, from: (usize, usize)) -> Probe {
        let mut first = from.1;
        for (level, (slots, probes)) in self.levels.iter().zip(PROBES).enumerate().skip(from.0) {
            let group = group_of(hash, slots.len());
            for offset in first..probes {
                let slot = slots[(group + offset) & (slots.len() - 1)].load(Ordering::Acquire);
                if slot == 0 {
                    return Probe::Vacant(level, offset);
                }
                if slot >> 32 == hash >> 32 {
                    let entry = &self.entries[slot as u32 as usize];
                    if entry[0].load(Ordering::Relaxed) == key[0]
                        && entry[1].load(Ordering::Relaxed) == key[1]
                    {
                        return Probe::Known(slot as u32);
                    }
                }
            }
            first = 0;
        }
        Probe::Full
    }

    #[cold]
    fn add(
        &self,
        key: [u64; 2],
        hash: u64,
        mut vacant: (usize, usize),
        announce: impl FnOnce(u32) -> bool,
    ) -> Result<u32, NoNumber> {
        let capacity = self.entries.len() as u32 - 1;
        let number = self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                (used < capacity).then_some(used + 1)
            })
            .map_err(|_| NoNumber::Full)?
            + 1;
        // The key is stored before its slot is taken: whoever finds the number reads the key.
        let entry = &self.entries[number as usize];
        entry[0].store(key[0], Ordering::Relaxed);
        entry[1].store(key[1], Ordering::Relaxed);
        // Announced before it can be found, so that no thread uses a number of which the sink has no fact.
        if !announce(number) {
            return Err(NoNumber::Refused);
        }
        let value = hash >> 32 << 32 | u64::from(number);
        loop {
            let slots = &self.levels[vacant.0];
            let slot = &slots[(group_of(hash, slots.len()) + vacant.1) & (slots.len() - 1)];
            if slot
                .compare_exchange(0, value, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
            {
                return Ok(number);
            }
            // Another thread took the slot, perhaps with this very key: then its number counts, and this one is never
            // used.
            match self.probe(key, hash, vacant) {
                Probe::Known(theirs) => return Ok(theirs),
                Probe::Vacant(level, offset) => vacant = (level, offset),
                Probe::Full => return Err(NoNumber::Full),
            }
        }
    }
}

/// First slot of the group of a hash.
#[inline(always)]
fn group_of(hash: u64, slots: usize) -> usize {
    hash as usize & (slots - 1) & !(GROUP - 1)
}

/// Mixes both words into all bits.
#[inline(always)]
fn hash(key: [u64; 2]) -> u64 {
    let product =
        u128::from(key[0] ^ 0x9e37_79b9_7f4a_7c15) * u128::from(key[1] ^ 0xd6e8_feb8_6659_fd93);
    (product as u64) ^ (product >> 64) as u64
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn interner_gives_equal_keys_one_number_announced_once() {
        let interner = Interner::reserve(1000);
        let mut announced = Vec::new();
        for round in 0..2 {
            for key in 0..500u64 {
                let number = interner.number([key, key / 3], |number| {
                    announced.push(number);
                    true
                });
                assert_eq!(number, Ok(key as u32 + 1), "round {round}");
            }
        }
        assert_eq!(announced, (1..=500).collect::<Vec<_>>());
    }

    #[test]
    fn interner_reports_a_full_table_and_keeps_its_keys() {
        let interner = Interner::reserve(10);
        for key in 0..10 {
            assert!(interner.number([key, 0], |_| true).is_ok());
        }
        assert_eq!(interner.number([10, 0], |_| true), Err(NoNumber::Full));
        assert_eq!(interner.number([3, 0], |_| true), Ok(4));
    }

    #[test]
    fn interner_holds_as_many_keys_as_it_was_made_for() {
        let interner = Interner::reserve(1 << 20);
        for key in 0..1 << 20 {
            assert_eq!(
                interner.number([(key << 32) | (key / 3), 0], |_| true),
                Ok(key as u32 + 1)
            );
        }
        assert_eq!(interner.number([5 << 32 | 1, 0], |_| false), Ok(6));
        assert_eq!(interner.number([5, 0], |_| true), Err(NoNumber::Full));
    }

    #[test]
    fn interner_announces_a_refused_key_again() {
        let interner = Interner::reserve(10);
        assert_eq!(interner.number([1, 2], |_| false), Err(NoNumber::Refused));
        assert_eq!(interner.number([1, 2], |number| number == 2), Ok(2));
    }

    #[test]
    fn interner_gives_threads_the_same_announced_numbers() {
        let interner = Interner::reserve(100_000);
        let announced = Mutex::new(HashMap::new());
        let all: Vec<Vec<u32>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        (0..10_000u64)
                            .map(|key| {
                                let number = interner
                                    .number([key, 7], |number| {
                                        announced.lock().unwrap().insert(number, key);
                                        true
                                    })
                                    .unwrap();
                                assert_eq!(announced.lock().unwrap().get(&number), Some(&key));
                                number
                            })
                            .collect()
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert!(all.iter().all(|numbers| *numbers == all[0]));
    }
}
