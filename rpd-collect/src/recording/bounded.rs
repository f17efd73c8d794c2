//! Recordings with a bound: device work is added up, and only the latest pieces of it are kept.
//!
//! The sums are records of the meta stream that are changed in place, so they are complete however the process ends, and can
//! be read while it runs. The latest pieces of work are in a stream of their own, whose oldest segments are removed.

use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use rpd_spool::durations;
use rpd_spool::format::{DeviceTotal, stream, total_of};
use rpd_spool::record::RecordKind;
use rpd_spool::writer::StreamWriter;
use zerocopy::{FromZeros, Immutable, IntoBytes};

use super::fork::ForkHook;

use super::process;

/// Sums of a process. Work of further kernels is added up together, so that a program that compiles kernels forever needs no
/// more than 10 MiB for them.
const MAX_TOTALS: usize = 4096;

/// A forked child begins anew: what it has mapped is its parent's.
pub(super) static FORK: ForkHook =
    ForkHook::new().in_child(|| INHERITED.store(true, Ordering::Relaxed));
static INHERITED: AtomicBool = AtomicBool::new(false);
static STATE: SharedBounded = SharedBounded(UnsafeCell::new(None));

struct SharedBounded(UnsafeCell<Option<BoundedState>>);

// SAFETY: only touched with the meta stream's lock held.
unsafe impl Sync for SharedBounded {}

struct BoundedState {
    latest: StreamWriter,
    /// Addresses of sums: in the meta stream, or in memory where that could not store one.
    totals: HashMap<(u16, u64), usize>,
}

/// A piece of work as the sums need it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    /// Meaning of the subject: one of [`total_of`].
    pub(super) of: u16,
    /// Kernel or direction of the work: [`DeviceTotal::subject`].
    pub(super) subject: u64,
    pub(super) start: u64,
    pub(super) end: u64,
    /// Bytes that were copied.
    pub(super) bytes: u64,
}

/// Begins anew, for another recording of a process that is attached to. Only while nothing is recorded.
pub(super) fn forget() {
    // SAFETY: without a process nothing touches it.
    let state = unsafe { &mut *STATE.0.get() };
    drop(state.take());
}

/// Adds a piece of work, whose `record` is complete, to the sums of its sort and to the latest pieces. False when this process
/// keeps all of them.
pub(super) fn take<T: IntoBytes + Immutable>(work: Work, record: &T) -> bool {
    let Some(process) = process::current() else {
        return false;
    };
    let Some(bytes) = process.options.recent_bytes else {
        return false;
    };
    FORK.register();
    process.with_meta(|meta| {
        // SAFETY: the lock is held.
        let state = unsafe { &mut *STATE.0.get() };
        if INHERITED.swap(false, Ordering::Relaxed) {
            // The parent may have been changing it: it is left as it is.
            std::mem::forget(state.take());
        }
        let directory = &process.directory;
        let state = state.get_or_insert_with(|| BoundedState {
            latest: StreamWriter::new(directory, "recent".to_owned(), stream::RECENT, 0)
                .bounded(bytes),
            totals: HashMap::new(),
        });
        let known = state.totals.len();
        // SAFETY: the address of a sum that is never unmapped nor freed, and that is changed with the lock held only.
        add(unsafe { &mut *state.total(meta, work) }, work);
        state.latest.append(size_of::<T>(), |place| {
            place.copy_from_slice(record.as_bytes());
        });
        state.totals.len() > known
    });
    true
}

impl BoundedState {
    /// The sum that work belongs to.
    fn total(&mut self, meta: &mut StreamWriter, work: Work) -> *mut DeviceTotal {
        let mut key = (work.of, work.subject);
        if self.totals.len() >= MAX_TOTALS && !self.totals.contains_key(&key) {
            key.1 = total_of::OTHERS;
        }
        let address = self.totals.entry(key).or_insert_with(|| append(meta, key));
        *address as *mut DeviceTotal
    }
}

/// Appends a new sum, and returns its address.
fn append(meta: &mut StreamWriter, (of, subject): (u16, u64)) -> usize {
    const SIZE: usize = size_of::<DeviceTotal>();
    let mut total = DeviceTotal::new_zeroed();
    total.header = RecordKind::DeviceTotal.head(0).with_aux(of);
    total.subject = subject;
    total.min = u64::MAX;
    // The record stays open, which keeps its segment mapped.
    let record = meta.append_open(SIZE, |bytes| bytes.copy_from_slice(total.as_bytes()));
    match record.0 as usize {
        0 => Box::into_raw(Box::new(total)) as usize,
        address => address,
    }
}

fn add(total: &mut DeviceTotal, work: Work) {
    let duration = work.end.saturating_sub(work.start);
    let mean = |total: &DeviceTotal| total.total as f64 / total.count.max(1) as f64;
    let before = mean(total);
    if total.count == 0 {
        total.first = work.start;
    }
    total.count += 1;
    total.total = total.total.saturating_add(duration);
    if total.count > 1 {
        let duration = duration as f64;
        total.spread += (duration - before) * (duration - mean(total));
    }
    total.min = total.min.min(duration);
    total.max = total.max.max(duration);
    total.bytes = total.bytes.saturating_add(work.bytes);
    total.first = total.first.min(work.start);
    total.last = total.last.max(work.end);
    total.durations[durations::total_bucket(duration)] += 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_total_sums_up_the_durations_of_work() {
        let mut total = DeviceTotal::new_zeroed();
        total.min = u64::MAX;
        let durations = [5_u64, 1000, 20, 20, 7_000_000];
        for (number, duration) in (1_u64..).zip(durations) {
            let start = 100 * number;
            add(
                &mut total,
                Work {
                    of: total_of::COPIES,
                    subject: 1,
                    start,
                    end: start + duration,
                    bytes: 8,
                },
            );
        }
        assert_eq!((total.count, total.total), (5, 7_001_045));
        assert_eq!((total.min, total.max, total.bytes), (5, 7_000_000, 40));
        assert_eq!((total.first, total.last), (100, 7_000_500));
        assert_eq!(total.durations.iter().sum::<u64>(), 5);
        assert_eq!(total.durations[durations::total_bucket(20)], 2);
        let mean = 7_001_045.0 / 5.0;
        let spread: f64 = durations.iter().map(|&it| (it as f64 - mean).powi(2)).sum();
        assert!((total.spread / spread - 1.0).abs() < 1e-9);
    }
}
