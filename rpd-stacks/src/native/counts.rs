//! Counts of the walks of a thread.

/// Counts of events on a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of captures of the thread.
    pub captures: u64,
    /// Frames that were walked to.
    pub walked: u64,
    /// Frames that were taken over from the last walk.
    pub reused: u64,
    /// Program counters whose rule was not in the table.
    pub misses: u64,
    /// Rules that found no room in the table and have to be made at every walk.
    pub uncached: u64,
    /// Captures without a stack because a table was full or a fact could not be stored.
    pub lost: u64,
}
