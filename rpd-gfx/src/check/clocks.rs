//! Order of memory accesses of different waves, by vector clocks: each wave has a clock, and knows the latest time of
//! each other wave that happens before its own next access.
//!
//! An access of a wave is visible in another workgroup if it was performed (`s_waitcnt vmcnt`) before it was
//! published, and if the other workgroup invalidated its first-level cache after it read what was published. Waves of
//! a workgroup share that cache, which keeps their accesses in order.

use std::collections::{HashMap, VecDeque};

/// Greatest number of outstanding vector memory instructions of a wave. The next one waits for the first of them.
const MOST_UNDER_WAY: usize = 63;

/// A point in the execution of a wave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct WaveMoment {
    /// Number of the wave in the dispatch.
    pub(super) wave: u32,
    /// Number of the wave's accesses, on its clock, that had been performed at this point.
    pub(super) time: u32,
    /// Accesses up to this time of the wave's clock had been performed then.
    pub(super) performed: u32,
}

#[derive(Debug, Default)]
struct Clock {
    group: u64,
    now: u32,
    performed: u32,
    /// Times of vector memory instructions that may be outstanding.
    under_way: VecDeque<u32>,
    seen: HashMap<u32, u32>,
    /// Times of other waves that become visible when the first-level cache is invalidated.
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

/// Times of other waves that an atomic published: for waves of its workgroup, and for others.
#[derive(Debug, Clone, Copy, Default)]
struct PublishedClocks {
    near: u32,
    far: u32,
}

/// The clocks of all waves of a dispatch.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    waves: Vec<Clock>,
    /// Clocks that atomics published, by address and number of the wave.
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
    /// Adds a wave of a workgroup. Returns the number of the wave.
    pub(super) fn add(&mut self, group: u64) -> u32 {
        self.waves.push(Clock {
            group,
            now: 1,
            ..Clock::default()
        });
        self.waves.len() as u32 - 1
    }

    /// The current point in the execution of a wave.
    pub(super) fn stamp(&self, wave: u32) -> WaveMoment {
        let clock = &self.waves[wave as usize];
        WaveMoment {
            wave,
            time: clock.now,
            performed: clock.performed(),
        }
    }

    /// Notes that the wave issues a vector memory instruction.
    pub(super) fn issue(&mut self, wave: u32) {
        let clock = &mut self.waves[wave as usize];
        clock.now += 1;
        clock.under_way.push_back(clock.now);
        self.wait(wave, MOST_UNDER_WAY);
    }

    /// Notes that the wave waits until at most `left` vector memory instructions are outstanding.
    pub(super) fn wait(&mut self, wave: u32, left: usize) {
        let clock = &mut self.waves[wave as usize];
        while clock.under_way.len() > left {
            if let Some(time) = clock.under_way.pop_front() {
                clock.performed = time;
            }
        }
    }

    /// Notes that the wave invalidates its first-level cache.
    pub(super) fn invalidate(&mut self, wave: u32) {
        let clock = &mut self.waves[wave as usize];
        let pending = std::mem::take(&mut clock.pending);
        join(&mut clock.seen, &pending);
    }

    /// Whether the access at `before` happens before the next access of `wave`. `coherent`: that access bypasses the
    /// first-level cache.
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

    /// Notes that the wave reads the address atomically: everything that atomics published there happens before the
    /// wave's next access.
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

    /// Notes that the wave writes the address atomically, which publishes what happened before.
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

    /// Orders everything at or before `before`, a point of another wave, before the next access of `wave`.
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

    /// Advances the clock of a wave after it published, so that its later accesses are not ordered by that.
    pub(super) fn advance(&mut self, wave: u32) {
        self.waves[wave as usize].now += 1;
    }

    /// Notes that waves meet at a barrier: accesses of each before it happen before the next access of all.
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
