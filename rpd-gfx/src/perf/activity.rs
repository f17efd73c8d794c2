//! Times at which a part of the device was busy, and the demand for it that exceeds its capacity.

use std::collections::VecDeque;

/// Number of cycles of a window, in which demand and capacity are compared.
const WINDOW: u64 = 256;
/// Number of cycles that a bit of a window stands for.
const SLOT: u64 = WINDOW / 64;
/// Number of windows that are kept; older windows are added to sums.
const KEPT: usize = 2048;

/// The busy cycles of a part of the device, and the demand for it. Times may come in any order, but an event more than
/// half a million cycles before the latest one counts as if nothing else had been busy then.
#[derive(Debug, Clone)]
pub(super) struct Activity {
    /// Number of the first window that is kept.
    first: u64,
    windows: VecDeque<Window>,
    /// Demand that the part can meet in a window.
    capacity: u64,
    busy: u64,
    excess: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Window {
    /// Busy slots of the window, one bit for each.
    busy: u64,
    demand: u64,
}

impl Default for Activity {
    /// A part that meets a demand of 1 in a cycle.
    fn default() -> Self {
        Self::with_rate(1.0)
    }
}

impl Activity {
    /// A part that meets a demand of `rate` in a cycle.
    pub(super) fn with_rate(rate: f64) -> Self {
        Self {
            first: 0,
            windows: VecDeque::new(),
            capacity: ((rate * WINDOW as f64) as u64).max(1),
            busy: 0,
            excess: 0,
        }
    }

    /// Notes that the part is busy for `cycles` cycles from the cycle `at` on.
    pub(super) fn occupy(&mut self, at: u64, cycles: u64) {
        let end = (at + cycles).div_ceil(SLOT);
        let mut slot = at / SLOT;
        while slot < end {
            let next = (slot / 64 + 1) * 64;
            let count = next.min(end) - slot;
            let bits = (u64::MAX >> (64 - count)) << (slot % 64);
            match self.window(slot / 64) {
                Some(window) => window.busy |= bits,
                None => self.busy += SLOT * count,
            }
            slot += count;
        }
    }

    /// Notes a demand of `amount` in the cycle `at`.
    pub(super) fn demand(&mut self, at: u64, amount: u64) {
        if let Some(window) = self.window(at / WINDOW) {
            window.demand += amount;
        }
    }

    /// Number of cycles in which the part was busy.
    pub(super) fn busy(&self) -> u64 {
        let kept = self.windows.iter().map(|w| u64::from(w.busy.count_ones()));
        self.busy + SLOT * kept.sum::<u64>()
    }

    /// Number of cycles by which the part needed longer than the windows in which the demand was made.
    pub(super) fn excess(&self) -> u64 {
        let kept = self.windows.iter();
        let excess = kept.map(|w| w.demand.saturating_sub(self.capacity));
        (self.excess + excess.sum::<u64>()) * WINDOW / self.capacity
    }

    /// A window by its number; `None` when it is no longer kept.
    fn window(&mut self, number: u64) -> Option<&mut Window> {
        let at = number.checked_sub(self.first)?;
        let over = (at + 1).saturating_sub(KEPT as u64);
        if over > 0 {
            let gone = (over as usize).min(self.windows.len());
            for window in self.windows.drain(..gone) {
                self.busy += SLOT * u64::from(window.busy.count_ones());
                self.excess += window.demand.saturating_sub(self.capacity);
            }
            self.first += over;
        }
        let at = (number - self.first) as usize;
        if self.windows.len() <= at {
            self.windows.resize(at + 1, Window::default());
        }
        self.windows.get_mut(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_busy_cycles_count_once() {
        let mut part = Activity::default();
        part.occupy(1000, 500);
        part.occupy(1200, 100);
        part.occupy(1496, 8);
        assert_eq!(part.busy(), 504);
        part.occupy(0, 4);
        part.occupy(8, 0);
        assert_eq!(part.busy(), 508);
    }

    #[test]
    fn busy_cycles_of_dropped_windows_stay_counted() {
        let mut part = Activity::default();
        part.occupy(0, 256);
        part.demand(0, 300);
        part.occupy(1 << 40, 4);
        assert_eq!((part.busy(), part.excess()), (260, 44));
        // An earlier time counts, too.
        part.occupy(512, 8);
        assert_eq!(part.busy(), 268);
        assert!(part.windows.len() <= KEPT);
    }

    #[test]
    fn demand_beyond_the_capacity_of_a_window_is_excess() {
        let mut part = Activity::with_rate(2.0);
        part.demand(0, 512);
        part.demand(256, 512 + 64);
        part.demand(512, 100);
        assert_eq!(part.excess(), 32, "64 more than it can do, 2 in a cycle");
    }
}
