//! Turns of dispatches: the turn of a dispatch is the number of dispatches with lower numbers that are counted on its
//! GPU.
//!
//! Threads get the numbers of their dispatches before they ask what is to be counted, in any order. So the turn follows
//! the number, not the order of the questions.

use std::cell::UnsafeCell;
use std::time::{Duration, Instant};

use crate::recording::fork::ForkHook;

static FORK: ForkHook = ForkHook::new();

/// Dispatches before the latest of which each is known by its number.
const WINDOW: u64 = 64 * WORDS as u64;
const WORDS: usize = 64;

/// Longest time that a thread waits for others that have lower numbers and have not asked yet.
const PATIENCE: Duration = Duration::from_millis(2);

/// A bit for each of the latest dispatches, by number.
#[derive(Clone)]
struct Latest([u64; WORDS]);

impl Latest {
    fn word(number: u64) -> usize {
        (number / 64 % WORDS as u64) as usize
    }

    fn set(&mut self, number: u64) {
        self.0[Latest::word(number)] |= 1 << (number % 64);
    }

    /// Number of bits that are set from `first`, a multiple of 64, up to `end`, which is not included.
    fn count(&self, first: u64, end: u64) -> u64 {
        let words = (first..end).step_by(64).map(|number| {
            let word = self.0[Latest::word(number)];
            let bits = (end - number).min(64);
            u64::from((word & (u64::MAX >> (64 - bits))).count_ones())
        });
        words.sum()
    }
}

/// Decisions about the dispatches of a process on a GPU.
#[derive(Clone)]
struct Window {
    /// Number of the first dispatch that is in the window; a multiple of 64.
    first: u64,
    /// Number of dispatches below the window that are not counted on this GPU.
    others: u64,
    /// Dispatches of the window that have asked.
    known: Latest,
    /// Dispatches of the window that are not counted on this GPU.
    other: Latest,
}

impl Window {
    const fn new() -> Window {
        Window {
            first: 0,
            // Numbers begin at 1.
            others: 1,
            known: Latest([0; WORDS]),
            other: Latest([0; WORDS]),
        }
    }

    /// Makes room for dispatch `number`.
    fn reach(&mut self, number: u64) {
        if number.saturating_sub(self.first) >= 2 * WINDOW {
            // All of them leave it.
            self.others += self.other.count(self.first, self.first + WINDOW);
            (self.known, self.other) = (Latest([0; WORDS]), Latest([0; WORDS]));
            self.first = (number - WINDOW / 2) / 64 * 64;
        }
        while number >= self.first + WINDOW {
            self.others += self.other.count(self.first, self.first + 64);
            for bits in [&mut self.known, &mut self.other] {
                bits.0[Latest::word(self.first)] = 0;
            }
            self.first += 64;
        }
    }

    /// Notes that a dispatch has asked, and whether it is counted on this GPU. Nothing for a dispatch that came too
    /// late.
    fn note(&mut self, number: u64, is_counted: bool) {
        self.reach(number);
        if number >= self.first {
            self.known.set(number);
            if !is_counted {
                self.other.set(number);
            }
        }
    }

    /// The least and the most dispatches with lower numbers that are counted on this GPU.
    fn before(&self, number: u64) -> (u64, u64) {
        let end = number.max(self.first);
        let others = self.others + self.other.count(self.first, end);
        let unknown = end.saturating_sub(self.first.max(1)) - self.asked(end);
        let most = number.saturating_sub(others);
        (most.saturating_sub(unknown), most)
    }

    /// Number of dispatches of the window below `end` that have asked.
    fn asked(&self, end: u64) -> u64 {
        // Numbers begin at 1.
        self.known.count(self.first.max(1).min(end), end)
    }
}

/// The turns of all GPUs.
pub(super) struct Turns {
    /// Windows of dispatches, by GPU.
    windows: UnsafeCell<Box<[Window]>>,
    /// Whether every dispatch is counted, on the only GPU.
    counts_all: bool,
}

// SAFETY: `windows` is only touched with the lock of [`FORK`] held.
unsafe impl Sync for Turns {}

impl Turns {
    /// Turns for `gpus` GPUs. `counts_all`: no dispatch is left out.
    pub(super) fn new(gpus: usize, counts_all: bool) -> Turns {
        Turns {
            windows: UnsafeCell::new(vec![Window::new(); gpus].into()),
            counts_all: counts_all && gpus == 1,
        }
    }

    /// `None` when this very thread holds the lock: a signal handler interrupted it.
    fn with<T>(&self, act: impl FnOnce(&mut [Window]) -> T) -> Option<T> {
        let _guard = FORK.lock()?;
        // SAFETY: the lock is held.
        Some(act(unsafe { &mut *self.windows.get() }))
    }

    /// Notes that dispatch `number` is counted on GPU `gpu`; on none with `None`.
    pub(super) fn note(&self, number: u64, gpu: Option<usize>) {
        self.with(|windows| {
            for (index, window) in windows.iter_mut().enumerate() {
                window.note(number, gpu == Some(index));
            }
        });
    }

    /// Number of dispatches before `number` that are counted on `gpu`, divided by `interval`. Where that depends on
    /// dispatches that have not asked yet, these are waited for, for a short time.
    pub(super) fn turn(&self, number: u64, gpu: usize, interval: u64) -> u64 {
        let mut deadline = None;
        loop {
            let before = self.with(|windows| windows.get(gpu).map(|window| window.before(number)));
            let (least, most) = before.flatten().unwrap_or_default();
            let turn = most / interval;
            if self.counts_all || least / interval == turn {
                return turn;
            }
            let now = Instant::now();
            if now >= *deadline.get_or_insert(now + PATIENCE) {
                self.give_up(number);
                return turn;
            }
            std::thread::yield_now();
        }
    }

    /// Ends the waiting for dispatches below `number` that have not asked.
    fn give_up(&self, number: u64) {
        self.with(|windows| {
            for window in windows {
                for earlier in window.first..number {
                    window.known.set(earlier);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The turns of dispatches that ask in this order, on one GPU; those in `left_out` are not counted.
    fn turns(order: &[u64], left_out: &[u64], interval: u64) -> Vec<(u64, u64)> {
        let turns = Turns::new(1, left_out.is_empty());
        let mut found = Vec::new();
        for &number in order {
            let counted = !left_out.contains(&number);
            turns.note(number, counted.then_some(0));
            if counted {
                found.push((number, turns.turn(number, 0, interval)));
            }
        }
        found.sort_unstable();
        found
    }

    #[test]
    fn turns_follow_dispatch_numbers_in_any_order_of_questions() {
        let expected = [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2), (6, 2)];
        assert_eq!(turns(&[1, 2, 3, 4, 5, 6], &[], 2), expected);
        assert_eq!(turns(&[3, 1, 6, 2, 5, 4], &[], 2), expected);
    }

    #[test]
    fn turns_leave_out_dispatches_that_are_not_counted() {
        let expected = [(1, 0), (3, 0), (5, 1), (6, 1), (7, 2)];
        assert_eq!(turns(&[1, 2, 3, 4, 5, 6, 7], &[2, 4], 2), expected);
        assert_eq!(turns(&[2, 4, 1, 3, 6, 5, 7], &[2, 4], 2), expected);
    }

    #[test]
    fn turns_of_each_gpu_are_counted_separately() {
        let turns = Turns::new(2, true);
        let places = [0, 0, 1, 1, 0, 1];
        let found: Vec<u64> = (1..)
            .zip(places)
            .map(|(number, gpu)| {
                turns.note(number, Some(gpu));
                turns.turn(number, gpu, 2)
            })
            .collect();
        assert_eq!(found, [0, 0, 0, 0, 1, 1]);
    }

    #[test]
    fn turns_go_on_behind_the_window() {
        let turns = Turns::new(1, false);
        // Every other dispatch is counted.
        for number in 1..=3 * WINDOW {
            turns.note(number, (number % 2 == 1).then_some(0));
            if number % 2 == 1 {
                assert_eq!(turns.turn(number, 0, 4), number / 2 / 4, "{number}");
            }
        }
        // After numbers that nobody asked about, which count.
        let far = 10 * WINDOW;
        turns.note(far, Some(0));
        assert_eq!(turns.turn(far, 0, 1), far - 1 - 3 * WINDOW / 2);
    }

    #[test]
    fn turns_wait_once_for_a_dispatch_that_never_asks() {
        let turns = Turns::new(1, false);
        turns.note(2, Some(0));
        let begun = Instant::now();
        assert_eq!(turns.turn(2, 0, 1), 1);
        assert!(begun.elapsed() >= PATIENCE);
        turns.note(3, Some(0));
        let (least, most) = turns.with(|windows| windows[0].before(3)).expect("free");
        assert_eq!((least, most), (2, 2));
    }
}
