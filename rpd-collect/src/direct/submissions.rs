//! Times of the submission of packets.
//!
//! The runtime passes on the packets of a queue one by one, in the call that rings the queue's doorbell, of which a graph has one for
//! thousands of packets. The clock is read for the first of them.

use std::cell::Cell;

use rpd_spool::writer::now;

use super::borrowed;
use super::hooks::{Hook, hook};
use crate::recording::thread_local::zeroed_thread_local;

/// Value of [`first_packet`] while the thread rings no doorbell.
const NONE: u64 = 0;
/// Value of [`first_packet`] while the thread may be ringing a doorbell and has not read the clock.
const UNKNOWN: u64 = 1;

zeroed_thread_local! {
    /// Time at which the first packet was passed on in the call that this thread is in, by the collector's clock; or
    /// [`NONE`], or [`UNKNOWN`].
    fn first_packet() -> &Cell<u64>, "rpd_collect_first_packet"
}

/// A time, by our clock, that is not later than the submission of the packets that this thread passes on now.
#[inline]
pub(super) fn time() -> u64 {
    let first = first_packet();
    match first.get() {
        NONE => now(),
        UNKNOWN => {
            let time = now();
            first.set(time);
            time
        }
        time => time,
    }
}

/// Calls `store`, which stores the value of `signal`: a doorbell, or a signal of the program.
#[inline]
pub(super) fn storing<T>(signal: u64, store: impl FnOnce() -> T) -> T {
    borrowed::before_change(signal);
    let first = first_packet();
    let outer = first.replace(UNKNOWN);
    let result = store();
    first.set(outer);
    result
}

hook! {
    STORE_RELAXED: HSA_CORE_API::hsa_signal_store_relaxed,
    fn store_relaxed(signal: u64, value: i64) -> (),
    |next| { storing(signal, || next(signal, value)) }
}

hook! {
    STORE_RELEASE: HSA_CORE_API::hsa_signal_store_screlease,
    fn store_release(signal: u64, value: i64) -> (),
    |next| { storing(signal, || next(signal, value)) }
}

/// Hooks for the tables of HSA.
pub(super) static HOOKS: [&Hook; 2] = [&STORE_RELAXED, &STORE_RELEASE];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn submission_time_of_all_packets_of_a_call_is_that_of_the_first() {
        let (alone, later) = (time(), time());
        assert!(alone > UNKNOWN && later > alone);
        let (first, second, nested, last) = storing(64, || {
            let first = time();
            let nested = storing(128, || {
                std::thread::sleep(std::time::Duration::from_micros(10));
                time()
            });
            (first, time(), nested, time())
        });
        assert!(later < first && first < nested);
        assert_eq!((second, last), (first, first));
        assert!(time() > nested);
    }
}
