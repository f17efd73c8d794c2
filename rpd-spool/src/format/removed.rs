//! Sums of records that were removed.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::RecordHeader;

/// Sums over the records of one sort that were removed with their segments, to keep the bound of a recording. The collector
/// adds to the record in place, so that it is complete however the process ends.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct RemovedTotal {
    /// Head of the record. `aux`: tag of the removed records.
    pub header: RecordHeader,
    /// What was called or ran ([`crate::removed::Sort::subject`]); [`RemovedTotal::OTHERS`] for all sorts without a record of
    /// their own.
    pub subject: u64,
    /// Number of records; 0 in a record that was just made.
    pub count: u64,
    /// Sum of the durations in ns; those of calls that had not returned are left out.
    pub total: u64,
    /// Shortest duration in ns; `u64::MAX` without one.
    pub min: u64,
    /// Longest duration in ns.
    pub max: u64,
    /// Sum of the squared differences between the durations and their mean, in ns².
    pub spread: f64,
    /// Number of bytes that were copied or allocated; 0 for other records.
    pub bytes: u64,
    /// The earliest start; `u64::MAX` without a record.
    pub first: u64,
    /// The latest end.
    pub last: u64,
}

impl RemovedTotal {
    /// Value of [`RemovedTotal::subject`] for all sorts that have no record of their own.
    pub const OTHERS: u64 = u64::MAX;
}
