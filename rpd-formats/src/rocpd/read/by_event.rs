//! Facts about events, found by the event's id.

use std::io;

use rpd_core::column::Storage;
use rpd_core::lookup::Lookup;

const SIGN: u64 = 1 << 63;

/// A number that has the order of the ids of events, which are signed.
pub(super) const fn key(event: i64) -> u64 {
    event.cast_unsigned() ^ SIGN
}

/// Rows that begin with the [`key`] of an event, in the order of events. Records are read in about the same order.
#[derive(Debug, Default)]
pub(super) struct ByEvent<const N: usize>(Lookup<N>);

impl<const N: usize> ByEvent<N> {
    /// Adds a row after the others.
    pub(super) fn push(&mut self, storage: &Storage, row: [u64; N]) -> io::Result<()> {
        self.0.push(Some(storage), row)
    }

    /// Makes the rows readable.
    pub(super) fn seal(&mut self, storage: &Storage) -> io::Result<()> {
        self.0.seal(Some(storage))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first row of an event.
    pub(super) fn find(&self, event: i64) -> Option<[u64; N]> {
        self.0.find(key(event))
    }
}
