//! Waves of a shader engine over time and by compute unit, with memory that does not grow with the trace.

use std::collections::{BTreeMap, HashMap};

use crate::record::Occupancy;

/// Number of equal parts of the time for which sums are kept.
const PARTS: usize = 256;

/// Number of waves that ran on one compute unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UnitWaves {
    /// Number of waves that began on the compute unit.
    pub waves: u64,
    /// Cycles of the waves, added up.
    pub cycles: u64,
}

/// Adds up the waves that ran on the compute units of a shader engine.
#[derive(Debug)]
pub struct OccupancySums {
    /// Length of a part in cycles, which is doubled when the time becomes longer than all parts.
    width: i64,
    /// Cycles of waves in each part.
    parts: Vec<u64>,
    units: BTreeMap<u8, UnitWaves>,
    /// Start times of the running waves, by compute unit, SIMD and slot.
    running: HashMap<(u8, u8, u8), i64>,
    last: i64,
}

impl Default for OccupancySums {
    fn default() -> Self {
        Self {
            width: 4,
            parts: vec![0; PARTS],
            units: BTreeMap::new(),
            running: HashMap::new(),
            last: 0,
        }
    }
}

impl OccupancySums {
    /// Adds waves that began and ended, in the order of the trace.
    pub fn add(&mut self, records: &[Occupancy]) {
        for record in records {
            let place = (record.cu, record.simd, record.slot);
            let time = record.time.max(0);
            self.last = self.last.max(time);
            if record.start {
                self.units.entry(record.cu).or_default().waves += 1;
                if let Some(begin) = self.running.insert(place, time) {
                    self.wave(record.cu, begin, time);
                }
            } else if let Some(begin) = self.running.remove(&place) {
                self.wave(record.cu, begin, time);
            }
        }
    }

    /// Ends the waves whose end the trace lacks, at the time of its last event.
    pub fn finish(&mut self) {
        for ((cu, ..), begin) in std::mem::take(&mut self.running) {
            self.wave(cu, begin, self.last);
        }
    }

    /// Number of waves that began.
    pub fn started(&self) -> u64 {
        self.units.values().map(|unit| unit.waves).sum()
    }

    /// Parts of the time in which waves ran: begin, end, and the cycles of all waves in the part.
    pub fn times(&self) -> impl Iterator<Item = (i64, i64, u64)> + '_ {
        let begins = (0..).map(|part: i64| part * self.width);
        let parts = begins.zip(&self.parts).filter(|(_, cycles)| **cycles > 0);
        parts.map(|(begin, cycles)| (begin, (begin + self.width).min(self.last), *cycles))
    }

    /// The compute units on which waves began, by number.
    pub fn units(&self) -> impl Iterator<Item = (u8, UnitWaves)> + '_ {
        self.units.iter().map(|(cu, unit)| (*cu, *unit))
    }

    fn wave(&mut self, cu: u8, begin: i64, end: i64) {
        if end <= begin {
            return;
        }
        self.units.entry(cu).or_default().cycles += (end - begin).unsigned_abs();
        while end > self.width.saturating_mul(PARTS as i64) {
            self.widen();
        }
        let mut at = begin;
        while at < end {
            let part = at / self.width;
            let stop = end.min((part + 1) * self.width);
            self.parts[part as usize] += (stop - at).unsigned_abs();
            at = stop;
        }
    }

    /// Doubles the length of the parts by merging pairs of them.
    fn widen(&mut self) {
        for part in 0..PARTS / 2 {
            self.parts[part] = self.parts[2 * part] + self.parts[2 * part + 1];
        }
        self.parts[PARTS / 2..].fill(0);
        self.width *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Pc;

    fn change(cu: u8, slot: u8, time: i64, start: bool) -> Occupancy {
        Occupancy {
            pc: Pc::default(),
            time,
            cu,
            simd: 0,
            slot,
            start,
            me: 0,
            pipe: 0,
            extended: false,
            workgroup: 0,
        }
    }

    #[test]
    fn occupancy_sums_do_not_depend_on_the_length_of_the_trace() {
        for scale in [1, 1000, 1 << 40] {
            let mut sums = OccupancySums::default();
            sums.add(&[
                change(0, 0, 0, true),
                change(3, 1, 10 * scale, true),
                change(3, 1, 30 * scale, false),
                change(0, 0, 40 * scale, false),
                // Its end is not in the trace.
                change(3, 2, 60 * scale, true),
                change(0, 0, 70 * scale, true),
                change(0, 0, 100 * scale, false),
            ]);
            sums.finish();
            let unit = |waves, cycles: i64| UnitWaves {
                waves,
                cycles: (cycles * scale).unsigned_abs(),
            };
            let units: Vec<_> = sums.units().collect();
            assert_eq!(units, [(0, unit(2, 70)), (3, unit(2, 60))]);
            assert_eq!(sums.started(), 4);
            let times: Vec<_> = sums.times().collect();
            let all: u64 = times.iter().map(|(.., cycles)| cycles).sum();
            assert_eq!(all, 130 * scale.unsigned_abs());
            assert!(times.iter().all(|(begin, end, _)| begin < end));
            assert_eq!(times.last().map(|last| last.1), Some(100 * scale));
            // No part has more than the two waves that ran at a time.
            assert!(
                times
                    .iter()
                    .all(|(begin, end, cycles)| *cycles <= 2 * (end - begin).unsigned_abs())
            );
        }
    }
}
