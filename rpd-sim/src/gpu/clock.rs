//! The device's clock: a counter with its own rate, convertible to the host's time.

use std::sync::OnceLock;
use std::time::Duration;

/// Rate of the device's counter in Hz.
pub(crate) const TICKS_PER_SECOND: u64 = 100_000_000;
const NS_PER_TICK: u64 = 1_000_000_000 / TICKS_PER_SECOND;
/// The counter at the start of the device; not zero, so that ticks differ from host time.
const FIRST_TICK: u64 = 0x10_0000;

static BASE_NS: OnceLock<u64> = OnceLock::new();

fn base() -> u64 {
    *BASE_NS.get_or_init(host_ns)
}

/// The host's `CLOCK_BOOTTIME` in nanoseconds.
pub(crate) fn host_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is writable; the clock exists on every kernel this runs on.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The device's counter now. All GPUs share one.
pub(crate) fn ticks() -> u64 {
    let base = base();
    FIRST_TICK + host_ns().saturating_sub(base) / NS_PER_TICK
}

/// Host time in nanoseconds of a device tick.
pub(crate) fn ticks_to_ns(ticks: u64) -> u64 {
    let since = ticks.wrapping_sub(FIRST_TICK).wrapping_mul(NS_PER_TICK);
    base().wrapping_add(since)
}

/// Number of ticks of the GPU's clock in a duration, at least one.
pub(crate) fn duration_to_ticks(duration: Duration) -> u64 {
    (duration.as_nanos() as u64 / NS_PER_TICK).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_ticks_convert_to_host_time_within_one_tick() {
        let before = host_ns();
        let tick = ticks();
        let after = host_ns();
        let ns = ticks_to_ns(tick);
        assert!(
            ns + NS_PER_TICK >= before && ns <= after,
            "{before} {ns} {after}"
        );
        assert!(ticks() >= tick);
    }
}
