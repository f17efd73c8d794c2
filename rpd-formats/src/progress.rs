//! Progress of the writers for a progress bar: one approximate number for the whole process.

use std::sync::atomic::{AtomicU64, Ordering};

static RECORDS: AtomicU64 = AtomicU64::new(0);

/// Records that were written so far, in any format. Only differences mean something; they may miss a batch.
pub fn records() -> u64 {
    RECORDS.load(Ordering::Relaxed)
}

/// Adds to the progress of the writer. To be called once per batch of records.
pub(crate) fn advance(records: u64) {
    RECORDS.fetch_add(records, Ordering::Relaxed);
}
