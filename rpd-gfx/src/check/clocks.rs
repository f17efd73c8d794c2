//! Which access comes before which: a clock for each wave, and for each wave the last times of others that it has seen.
//!
//! Accesses of a wave are visible in another workgroup once they are performed (`s_waitcnt vmcnt`) before they are published, and once the
//! other has invalidated its first-level cache after it read what was published. Waves of a workgroup share that cache,
//! which keeps their accesses in order.

use std::collections::{HashMap, VecDeque};

/// Vector memory instructions of a wave that may be under way; the next one waits for the first of them.
const MOST_UNDER_WAY: usize = 63;

/// A moment of a wave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct WaveMoment {
    /// Number of the wave.
    pub(super) wave: u32,
    /// Its clock, which starts at 1; 0 stands for no access.
    pub(super) time: u32,
    /// Accesses up to this time of its clock were performed at that moment.
    pub(super) performed: u32,
}

#[derive(Debug, Default)]
struct Clock {
    group: u64,
    now: u32,
    performed: u32,
    /// Times of vector memory instructions that may be under way.
    under_way: VecDeque<u32>,
    seen: HashMap<u32, u32>,
    /// Seen, once the first-level cache is invalidated.
    pending: HashMap<u32, u32>,
}

impl Clock {
    fn performed(&self) -> u32 {
        if self.under_way.is_empty() {
            self.now
        } else {
            self.performed
        }
    }
}

/// Times of a wave that an atomic published: for its workgroup and for others.
#[derive(Debug, Clone, Copy, Default)]
struct PublishedClocks {
    near: u32,
    far: u32,
}

/// The clocks of a dispatch.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    waves: Vec<Clock>,
    /// Clocks that atomics have published, by address.
    addresses: HashMap<u64, HashMap<u32, PublishedClocks>>,
}

fn raise(times: &mut HashMap<u32, u32>, wave: u32, time: u32) {
    let known = times.entry(wave).or_default();
    *known = time.max(*known);
}

fn join(to: &mut HashMap<u32, u32>, from: &HashMap<u32, u32>) {
    for (&wave, &time) in from {
        raise(to, wave, time);
    }
}

impl Clocks {
    /// Adds a wave of a workgroup; its number.
    pub(super) fn add(&mut self, group: u64) -> u32 {
        self.waves.push(Clock {
            group,
            now: 1,
            ..Clock::default()
        });
        self.waves.len() as u32 - 1
    }

    /// The wave's time.
    pub(super) fn stamp(&self, wave: u32) -> WaveMoment {
        let clock = &self.waves[wave as usize];
        WaveMoment {
            wave,
            time: clock.now,
            performed: clock.performed(),
        }
    }

    /// The wave begins a vector memory instruction.
    pub(super) fn issue(&mut self, wave: u32) {
        let clock = &mut self.waves[wave as usize];
        clock.now += 1;
        clock.under_way.push_back(clock.now);
        self.wait(wave, MOST_UNDER_WAY);
    }

    /// The wave waits until at most this many vector memory instructions are under way.
    pub(super) fn wait(&mut self, wave: u32, left: usize) {
        let clock = &mut self.waves[wave as usize];
        while clock.under_way.len() > left {
            if let Some(time) = clock.under_way.pop_front() {
                clock.performed = time;
            }
        }
    }

    /// The first-level cache that the wave reads through is invalidated.
    pub(super) fn invalidate(&mut self, wave: u32) {
        let clock = &mut self.waves[wave as usize];
        let pending = std::mem::take(&mut clock.pending);
        join(&mut clock.seen, &pending);
    }

    /// Whether what happened then is ordered before what the wave does now; `coherent`: with an access that bypasses
    /// the first-level cache.
    pub(super) fn ordered(&self, before: WaveMoment, wave: u32, coherent: bool) -> bool {
        let clock = &self.waves[wave as usize];
        let saw = |times: &HashMap<u32, u32>| {
            let time = times.get(&before.wave);
            time.is_some_and(|&time| time >= before.time)
        };
        before.time == 0
            || before.wave == wave
            || saw(&clock.seen)
            || coherent && saw(&clock.pending)
    }

    /// The wave continues after all earlier atomics on the address.
    pub(super) fn acquire(&mut self, wave: u32, address: u64) {
        let Some(published) = self.addresses.get(&address) else {
            return;
        };
        let group = self.waves[wave as usize].group;
        for (&other, times) in published {
            if self.waves[other as usize].group == group {
                raise(&mut self.waves[wave as usize].seen, other, times.near);
            } else {
                raise(&mut self.waves[wave as usize].pending, other, times.far);
            }
        }
    }

    /// Later atomics on the address go on after what the wave has done.
    pub(super) fn release(&mut self, wave: u32, address: u64) {
        let clock = &self.waves[wave as usize];
        let entry = self.addresses.entry(address).or_default();
        let mut publish = |wave: u32, near: u32, far: u32| {
            let known = entry.entry(wave).or_default();
            known.near = known.near.max(near);
            known.far = known.far.max(far);
        };
        for (&other, &time) in &clock.seen {
            publish(other, time, time);
        }
        publish(wave, clock.now, clock.performed());
    }

    /// The wave goes on after a moment of another one, and what that has seen.
    pub(super) fn follow(&mut self, wave: u32, before: WaveMoment) {
        let other = &self.waves[before.wave as usize];
        let (seen, same) = (other.seen.clone(), other.group);
        let mine = &mut self.waves[wave as usize];
        let (to, time) = if mine.group == same {
            (&mut mine.seen, before.time)
        } else {
            (&mut mine.pending, before.performed)
        };
        join(to, &seen);
        raise(to, before.wave, time);
    }

    /// Advances the wave's clock: other waves have not synchronised with its next accesses.
    pub(super) fn advance(&mut self, wave: u32) {
        self.waves[wave as usize].now += 1;
    }

    /// A barrier of these waves.
    pub(super) fn synchronise(&mut self, waves: &[u32]) {
        let (mut seen, mut pending) = (HashMap::new(), HashMap::new());
        for &wave in waves {
            let clock = &self.waves[wave as usize];
            join(&mut seen, &clock.seen);
            join(&mut pending, &clock.pending);
            seen.insert(wave, clock.now);
        }
        for &wave in waves {
            let clock = &mut self.waves[wave as usize];
            clock.seen.clone_from(&seen);
            clock.pending.clone_from(&pending);
            clock.now += 1;
        }
    }
}
