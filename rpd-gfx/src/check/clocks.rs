//! Which access comes before which: a clock for each wave, and for each wave the last times of others that it has seen.

use std::collections::HashMap;

/// A moment of a wave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Number of the wave.
    pub(super) wave: u32,
    /// Its clock, which starts at 1; 0 stands for no access.
    pub(super) time: u32,
}

#[derive(Debug, Default)]
struct Clock {
    now: u32,
    seen: HashMap<u32, u32>,
}

/// The clocks of a dispatch.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    waves: Vec<Clock>,
    /// What the atomics on an address have seen.
    addresses: HashMap<u64, HashMap<u32, u32>>,
}

fn join(to: &mut HashMap<u32, u32>, from: &HashMap<u32, u32>) {
    for (&wave, &time) in from {
        let known = to.entry(wave).or_default();
        *known = time.max(*known);
    }
}

impl Clocks {
    /// Adds a wave; its number.
    pub(super) fn add(&mut self) -> u32 {
        self.waves.push(Clock {
            now: 1,
            seen: HashMap::new(),
        });
        self.waves.len() as u32 - 1
    }

    /// The wave's time.
    pub(super) fn stamp(&self, wave: u32) -> Stamp {
        Stamp {
            wave,
            time: self.waves[wave as usize].now,
        }
    }

    /// Whether what happened then is ordered before what the wave does now.
    pub(super) fn ordered(&self, before: Stamp, wave: u32) -> bool {
        before.time == 0
            || before.wave == wave
            || self.waves[wave as usize]
                .seen
                .get(&before.wave)
                .is_some_and(|&time| time >= before.time)
    }

    /// The wave goes on behind all earlier atomics on the address.
    pub(super) fn acquire(&mut self, wave: u32, address: u64) {
        if let Some(seen) = self.addresses.get(&address) {
            join(&mut self.waves[wave as usize].seen, seen);
        }
    }

    /// Later atomics on the address go on behind what the wave has done.
    pub(super) fn release(&mut self, wave: u32, address: u64) {
        let clock = &self.waves[wave as usize];
        let entry = self.addresses.entry(address).or_default();
        join(entry, &clock.seen);
        entry.insert(wave, clock.now);
    }

    /// The wave goes on behind a moment of another one, and what that has seen.
    pub(super) fn follow(&mut self, wave: u32, before: Stamp) {
        let seen = self.waves[before.wave as usize].seen.clone();
        let mine = &mut self.waves[wave as usize].seen;
        join(mine, &seen);
        let known = mine.entry(before.wave).or_default();
        *known = before.time.max(*known);
    }

    /// What the wave does from now on is not covered by what others have seen.
    pub(super) fn advance(&mut self, wave: u32) {
        self.waves[wave as usize].now += 1;
    }

    /// A barrier of these waves.
    pub(super) fn meet(&mut self, waves: &[u32]) {
        let mut all = HashMap::new();
        for &wave in waves {
            let clock = &self.waves[wave as usize];
            join(&mut all, &clock.seen);
            all.insert(wave, clock.now);
        }
        for &wave in waves {
            let clock = &mut self.waves[wave as usize];
            clock.seen.clone_from(&all);
            clock.now += 1;
        }
    }
}
