//! Work of the device: dispatches, copies, allocations, scratch memory.
//!
//! Written when it is complete, on the thread on which the provider reports it: a target that ends suddenly loses only
//! what its runtime has not reported. How much was submitted is counted, so that the ledger can state how much that was.
//! Work that began before this process was forked belongs to the parent and is not recorded.

use rpd_spool::format::{
    Allocation, Copy, CountedDispatch, CountedValue, Dispatch, HipEvent, KfdEvent, Scratch,
    Selected, total_of,
};
use rpd_spool::record::RecordKind;
use rpd_spool::writer::record_len;
use zerocopy::{Immutable, IntoBytes};

use super::bounded::{self, Work};
use super::process::{self, fork_time};
use super::totals::ProcessTotals;
use super::{stacks, thread};

/// Counts a submitted dispatch.
#[inline]
pub(crate) fn dispatch_submitted() {
    submitted(|totals| totals.dispatches.begin());
}

/// Counts a dispatch that is submitted and not recorded, because the program has paused recording.
pub(crate) fn dispatch_paused() {
    submitted(|totals| totals.dispatches_paused.add_one());
}

/// A dispatch is complete.
pub(crate) fn dispatch_complete(record: Dispatch) {
    let work = Work {
        of: total_of::DISPATCHES,
        subject: record.kernel,
        start: record.start,
        end: record.end,
        bytes: 0,
    };
    complete(record.start, Some(work), &record, |totals| {
        totals.dispatches.end();
    });
}

/// Counts a submitted copy.
pub(crate) fn copy_submitted() {
    submitted(|totals| totals.copies.begin());
}

/// A copy is complete.
pub(crate) fn copy_complete(record: Copy) {
    let work = Work {
        of: total_of::COPIES,
        subject: record.operation.into(),
        start: record.start,
        end: record.end,
        bytes: record.bytes,
    };
    complete(record.start, Some(work), &record, |totals| {
        totals.copies.end();
    });
}

/// Memory was allocated or freed. `has_stack`: the stack of the calling thread is recorded with it.
pub(crate) fn allocation(mut record: Allocation, has_stack: bool) {
    const HEAD: usize = size_of::<Allocation>();
    if is_of_parent(record.start) {
        return;
    }
    let stack = stacks::of_event(has_stack, record.end.saturating_sub(record.start));
    let len = HEAD + stacks::room(stack);
    record.header = RecordKind::Allocation.head(stacks::room(stack));
    thread::append(len, |bytes| {
        let (head, tail) = bytes.split_at_mut(HEAD);
        head.copy_from_slice(record.as_bytes());
        stacks::put(stack, tail);
    });
}

/// Something happened to scratch memory.
pub(crate) fn scratch(record: Scratch) {
    complete(record.start, None, &record, |_| {});
}

/// The device has recorded a HIP event, or waited for one.
pub(crate) fn hip_event(record: HipEvent) {
    complete(record.start, None, &record, |_| {});
}

/// The kernel driver has reported an event.
pub(crate) fn kfd_event(record: &KfdEvent) {
    if !is_of_parent(record.start) {
        thread::write(record);
    }
}

/// A dispatch is submitted whose counters will be read. This record shows a reader which values are missing when the
/// program ends first.
pub(crate) fn counting_submitted(dispatch: u64) {
    thread::write(&Selected {
        header: RecordKind::Selected.head(0),
        dispatch,
    });
    if let Some(process) = process::existing() {
        process.totals.counted.begin();
    }
}

/// The counters of a dispatch are read. `aux` of its head is that of the record.
pub(crate) fn counting_complete(
    mut dispatch: Dispatch,
    values: impl ExactSizeIterator<Item = CountedValue>,
) {
    const HEAD: usize = size_of::<CountedDispatch>();
    let count = values.len();
    let tail = count * size_of::<CountedValue>();
    let len = record_len(HEAD, tail);
    let run = dispatch.header.aux;
    dispatch.header = RecordKind::Counted.head(tail).with_aux(run);
    let counted = CountedDispatch {
        dispatch,
        count: count as u32,
        reserved: 0,
    };
    thread::append(len, |bytes| {
        let (head, tail) = bytes.split_at_mut(HEAD);
        head.copy_from_slice(counted.as_bytes());
        for (place, value) in tail.chunks_exact_mut(size_of::<CountedValue>()).zip(values) {
            place.copy_from_slice(value.as_bytes());
        }
    });
    if let Some(process) = process::existing() {
        process.totals.counted.end();
    }
}

/// Whether device work that began at `start` belongs to the process that this one was forked from.
pub(crate) fn is_of_parent(start: u64) -> bool {
    start < fork_time()
}

#[inline]
fn submitted(add: impl FnOnce(&ProcessTotals)) {
    if let Some(process) = process::current() {
        add(process.totals);
    }
}

/// `work`: what a recording with a bound adds up.
fn complete<T: IntoBytes + Immutable>(
    start: u64,
    work: Option<Work>,
    record: &T,
    add: impl FnOnce(&ProcessTotals),
) {
    if is_of_parent(start) {
        return;
    }
    if !work.is_some_and(|work| bounded::take(work, record)) {
        thread::write(record);
    }
    if let Some(process) = process::existing() {
        add(process.totals);
    }
}
