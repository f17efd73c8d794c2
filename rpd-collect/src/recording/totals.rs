//! Sums over the life of the process: a record of the meta stream that is kept up to date in place.
//!
//! The record is mapped a second time, so that a forked child, which is cut off from its parent's streams, can still add to
//! its parent's sums.

use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering};

use rpd_spool::format::{self, RecordHeader};
use rpd_spool::record::RecordKind;
use rpd_spool::writer::{StreamWriter, map_again};
use zerocopy::{FromZeros, IntoBytes};

/// [`format::ProcessTotals`], as it is shared between threads and processes.
#[repr(C)]
pub(crate) struct ProcessTotals {
    _header: RecordHeader,
    pub(crate) dispatches: InFlight,
    pub(crate) copies: InFlight,
    pub(crate) counted: InFlight,
    pub(crate) dispatches_paused: Total,
    pub(crate) lost_processes: Total,
    pub(crate) lost_records: Total,
    pub(crate) invalid_samples: Total,
    pub(crate) lost_samples: Total,
    pub(crate) unknown_samples: Total,
}

const _: () = {
    assert!(size_of::<ProcessTotals>() == size_of::<format::ProcessTotals>());
    assert!(
        offset_of!(ProcessTotals, dispatches)
            == offset_of!(format::ProcessTotals, dispatches_begun)
    );
    assert!(offset_of!(ProcessTotals, copies) == offset_of!(format::ProcessTotals, copies_begun));
    assert!(offset_of!(ProcessTotals, counted) == offset_of!(format::ProcessTotals, counted_begun));
    assert!(
        offset_of!(ProcessTotals, dispatches_paused)
            == offset_of!(format::ProcessTotals, dispatches_paused)
    );
    assert!(
        offset_of!(ProcessTotals, lost_processes)
            == offset_of!(format::ProcessTotals, lost_processes)
    );
    assert!(
        offset_of!(ProcessTotals, lost_records) == offset_of!(format::ProcessTotals, lost_records)
    );
    assert!(
        offset_of!(ProcessTotals, invalid_samples)
            == offset_of!(format::ProcessTotals, invalid_samples)
    );
    assert!(
        offset_of!(ProcessTotals, lost_samples) == offset_of!(format::ProcessTotals, lost_samples)
    );
    assert!(
        offset_of!(ProcessTotals, unknown_samples)
            == offset_of!(format::ProcessTotals, unknown_samples)
    );
};

/// A sum that threads and processes add to.
#[repr(transparent)]
pub(crate) struct Total(AtomicU64);

impl Total {
    #[inline]
    pub(crate) fn add_one(&self) {
        self.add(1);
    }

    #[inline]
    pub(crate) fn add(&self, count: u64) {
        if count > 0 {
            self.0.fetch_add(count, Ordering::Relaxed);
        }
    }
}

/// Work of one kind that was submitted, and how much of it is complete.
#[repr(C)]
pub(crate) struct InFlight {
    begun: AtomicU64,
    ended: AtomicU64,
}

impl InFlight {
    #[inline]
    pub(crate) fn begin(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts completed work. To be called when its record is written.
    #[inline]
    pub(crate) fn end(&self) {
        self.ended.fetch_add(1, Ordering::Release);
    }
}

impl ProcessTotals {
    /// Appends the record to the meta stream. Where it cannot be stored, the sums are kept in memory only.
    pub(crate) fn append(meta: &mut StreamWriter) -> &'static ProcessTotals {
        const SIZE: usize = size_of::<format::ProcessTotals>();
        let mut fixed = format::ProcessTotals::new_zeroed();
        fixed.header = RecordKind::ProcessTotals.head(0);
        let record = meta.append_open(SIZE, |bytes| bytes.copy_from_slice(fixed.as_bytes()));
        let mapped = match record.0 as usize {
            0 => None,
            address => map_again(address, SIZE),
        };
        match mapped {
            // SAFETY: the second mapping holds the whole record and is never removed; records lie at multiples of 8, and
            // all accesses to its sums are atomic.
            Some(address) => unsafe { address.cast::<ProcessTotals>().as_ref() },
            None => {
                let zeros: &'static mut format::ProcessTotals = Box::leak(Box::new(fixed));
                // SAFETY: both have the same layout, as is asserted above, and the box is never freed.
                unsafe { &*std::ptr::from_mut(zeros).cast::<ProcessTotals>() }
            }
        }
    }

    fn all(&self) -> [&InFlight; 3] {
        [&self.dispatches, &self.copies, &self.counted]
    }

    /// Numbers of submitted works of each kind so far.
    pub(crate) fn begun(&self) -> [u64; 3] {
        self.all().map(|work| work.begun.load(Ordering::Relaxed))
    }

    /// Whether the amount of work in `begun` is complete.
    pub(crate) fn have_ended(&self, begun: [u64; 3]) -> bool {
        let mut pairs = self.all().into_iter().zip(begun);
        pairs.all(|(work, begun)| work.ended.load(Ordering::Acquire) >= begun)
    }
}
