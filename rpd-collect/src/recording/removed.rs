//! Sums of the records that go to keep the bound of a recording.
//!
//! They are records of the meta stream that are changed in place, as those of light recordings are.

use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use rpd_spool::format::RemovedTotal;
use rpd_spool::removed::{Removed, Sort, records};
use rpd_spool::writer::StreamWriter;
use zerocopy::IntoBytes;

use super::fork::ForkHook;
use super::process;

/// Sums of a process. Records of further sorts are added up together by their tag, so that a program that compiles kernels
/// forever needs no more than 400 KiB for them.
const MAX_TOTALS: usize = 4096;

/// A forked child begins anew: what it has mapped is its parent's.
static FORK: ForkHook = ForkHook::new().in_child(|| INHERITED.store(true, Ordering::Relaxed));
static INHERITED: AtomicBool = AtomicBool::new(false);
static STATE: SharedTotals = SharedTotals(UnsafeCell::new(None));

struct SharedTotals(UnsafeCell<Option<Totals>>);

// SAFETY: only touched with the meta stream's lock held.
unsafe impl Sync for SharedTotals {}

/// Addresses of sums: in the meta stream, or in memory where that could not store one.
type Totals = HashMap<Sort, usize>;

/// Forgets the sums of a recording that has ended: they are in its meta stream. Called before another one begins.
pub(super) fn forget() {
    INHERITED.store(true, Ordering::Relaxed);
}

/// Counts the records of a segment that is being removed.
pub(super) fn count(segment: &[u8]) {
    let Some(process) = process::existing() else {
        return;
    };
    FORK.register();
    // Added up first: the lock of the meta stream is held for a few sums, and not for each record.
    let mut sums: HashMap<Sort, RemovedTotal> = HashMap::new();
    for (header, bytes) in records(segment) {
        if let Some(removed) = Removed::from_record(header, bytes) {
            let total = sums.entry(removed.sort);
            removed.add_to(total.or_insert_with(|| removed.sort.empty_total()));
        }
    }
    let count = sums.values().map(|sum| sum.count).sum();
    let counted = process.try_meta(|meta| {
        // SAFETY: the lock is held.
        let state = unsafe { &mut *STATE.0.get() };
        if INHERITED.swap(false, Ordering::Relaxed) {
            // The parent may have been changing it, and it may lead to the stream of an earlier recording: it is left as
            // it is.
            std::mem::forget(state.take());
        }
        let totals = state.get_or_insert_default();
        let known = totals.len();
        for (sort, sum) in &sums {
            let total = total_of(totals, meta, *sort);
            // SAFETY: the address of a sum that is never unmapped nor freed, and that is changed with the lock held only.
            add(unsafe { &mut *total }, sum);
        }
        totals.len() > known
    });
    if counted.is_none() {
        // A signal handler that interrupted the writer of the meta stream.
        process.directory.drop_records(count);
    }
}

/// The sum of a sort.
fn total_of(totals: &mut Totals, meta: &mut StreamWriter, mut sort: Sort) -> *mut RemovedTotal {
    if totals.len() >= MAX_TOTALS && !totals.contains_key(&sort) {
        sort.subject = RemovedTotal::OTHERS;
    }
    let address = totals.entry(sort).or_insert_with(|| append(meta, sort));
    *address as *mut RemovedTotal
}

/// Appends a new sum, and returns its address.
fn append(meta: &mut StreamWriter, sort: Sort) -> usize {
    let total = sort.empty_total();
    // The record stays open, which keeps its segment mapped.
    let record = meta.append_open(size_of::<RemovedTotal>(), |bytes| {
        bytes.copy_from_slice(total.as_bytes());
    });
    match record.0 as usize {
        0 => Box::into_raw(Box::new(total)) as usize,
        address => address,
    }
}

/// Adds the sums of other records of the same sort.
fn add(total: &mut RemovedTotal, other: &RemovedTotal) {
    let mean = |of: &RemovedTotal| of.total as f64 / of.count.max(1) as f64;
    let between = mean(other) - mean(total);
    let (mine, theirs) = (total.count as f64, other.count as f64);
    total.spread += other.spread + between * between * mine * theirs / (mine + theirs).max(1.0);
    total.count += other.count;
    total.total = total.total.saturating_add(other.total);
    total.min = total.min.min(other.min);
    total.max = total.max.max(other.max);
    total.bytes = total.bytes.saturating_add(other.bytes);
    total.first = total.first.min(other.first);
    total.last = total.last.max(other.last);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_two_segments_add_up_to_those_of_both() {
        let sort = Sort {
            tag: 32,
            subject: 7,
        };
        let sum = |durations: &[u64]| {
            let mut total = sort.empty_total();
            for &duration in durations {
                let (start, end) = (10, 10 + duration);
                let removed = Removed {
                    sort,
                    start,
                    end,
                    bytes: 1,
                };
                removed.add_to(&mut total);
            }
            total
        };
        let mut both = sum(&[3, 400, 9]);
        add(&mut both, &sum(&[70_000, 2]));
        let all = sum(&[3, 400, 9, 70_000, 2]);
        assert_eq!((both.count, both.total, both.bytes), (5, all.total, 5));
        assert_eq!((both.min, both.max), (2, 70_000));
        assert!((both.spread / all.spread - 1.0).abs() < 1e-9);
    }
}
