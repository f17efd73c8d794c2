//! Statistics as values: computed by `rpd-summary`, written by `rpd-formats`, printed by the command.

use std::sync::Arc;

use zerocopy::{Immutable, IntoBytes};

use crate::domain::Domain;
use crate::ids::StringId;
pub use crate::options::Unit;
use crate::session::ExtendedStrings;
use crate::storage::column::Column;

/// Durations of all records that share a name. Times in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Immutable, IntoBytes)]
#[repr(C)]
pub struct StatRow {
    /// Kernel name, function name, marker message or operation name: its id in [`SessionStats::names`].
    pub name: StringId,
    /// First domain (in summary order) the name occurs in.
    pub domain: Domain,
    /// Number of calls or operations.
    pub calls: u64,
    /// Sum of durations in nanoseconds.
    pub total: u64,
    /// Mean duration in nanoseconds.
    pub average: f64,
    /// Share of the table's own total, 0 to 100; 0 when that total is 0.
    pub percentage: f64,
    /// Shortest duration in nanoseconds.
    pub min: u64,
    /// Longest duration in nanoseconds.
    pub max: u64,
    /// Sample standard deviation; 0 for fewer than two records.
    pub std_dev: f64,
}

/// The sum over records of one process, of which the records themselves may not be known. Times in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedSum {
    /// Name of its table in summaries without `_summary`: `kernels`, `memory_copies`, `hip` and so on. One that no table has
    /// stands for `other_calls`.
    pub table: String,
    /// Kernel, function, message or operation.
    pub name: String,
    /// Number of records with the name.
    pub calls: u64,
    /// Sum of the records' durations in nanoseconds.
    pub total: u64,
    /// Shortest duration of a record in nanoseconds.
    pub min: u64,
    /// Longest duration of a record in nanoseconds.
    pub max: u64,
    /// Sum of squared distances from the mean.
    pub spread: f64,
}

/// The rows of one table, ordered by total duration descending, then name.
#[derive(Debug, PartialEq)]
pub struct StatTable {
    /// Title as printed, for example `KERNEL_DISPATCH` or `HIP_API + MEMORY_COPY`; empty for the overall table.
    pub title: String,
    /// One row per name; in a file when there are many.
    pub rows: Column<StatRow>,
}

/// The texts that the rows of statistics name.
pub type StatNames<'a> = Arc<ExtendedStrings<'a>>;

/// The statistics of one process, for statistics files and `--stats` tables.
#[derive(Debug, Default)]
pub struct SessionStats<'a> {
    /// The names of rows.
    pub names: StatNames<'a>,
    /// One table per domain that has records, in summary order.
    pub domains: Vec<(Domain, StatTable)>,
    /// One row per domain, named by its label: figures over all records of that domain.
    pub overall: Vec<StatRow>,
    /// Number of records that are in no table, because their times cannot be: see
    /// [`PlausibleTimes`](crate::session::PlausibleTimes).
    pub left_out: u64,
}
