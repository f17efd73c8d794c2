//! Times of the device on the clock of records.

use std::sync::atomic::{AtomicU64, Ordering};

use super::hsa;

/// Ticks of the runtime's system clock in a second; 0 when that is not known.
static FREQUENCY: AtomicU64 = AtomicU64::new(0);

const NANOSECONDS: u64 = 1_000_000_000;

/// Reads the frequency of the runtime's clock. To be called when the HSA runtime is initialised.
pub(super) fn prepare() {
    FREQUENCY.store(hsa::clock_frequency(), Ordering::Relaxed);
}

fn nanoseconds(ticks: u64, frequency: u64) -> u64 {
    match frequency {
        0 | NANOSECONDS => ticks,
        _ => (u128::from(ticks) * u128::from(NANOSECONDS) / u128::from(frequency)) as u64,
    }
}

/// Begin and end in nanoseconds.
#[inline]
pub(super) fn times(start: u64, end: u64) -> (u64, u64) {
    let frequency = FREQUENCY.load(Ordering::Relaxed);
    let (start, end) = (nanoseconds(start, frequency), nanoseconds(end, frequency));
    (start.min(end), start.max(end))
}

/// Moves the times of work into the interval from its submission until now, where the clocks disagree, as the SDK does: an
/// end after now first, then a start before the submission.
pub(super) fn bounded((start, end): (u64, u64), submitted: u64, now: u64) -> (u64, u64) {
    let late = end.saturating_sub(now);
    let (start, end) = (start.saturating_sub(late), end - late);
    let early = submitted.saturating_sub(start);
    (start + early, end + early)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_converted_to_nanoseconds_by_the_clock_frequency() {
        assert_eq!(nanoseconds(7, NANOSECONDS), 7);
        assert_eq!(nanoseconds(250, 100_000_000), 2500);
        assert_eq!(nanoseconds(u64::MAX / 2, 0), u64::MAX / 2);
    }

    #[test]
    fn bounded_times_are_moved_and_keep_their_duration() {
        assert_eq!(bounded((100, 200), 50, 300), (100, 200));
        assert_eq!(bounded((250, 350), 50, 300), (200, 300));
        assert_eq!(bounded((20, 40), 50, 300), (50, 70));
    }
}
