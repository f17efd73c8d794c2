//! Sums over records that the collector removed to keep the bound of a recording: the tables do not hold them.

use std::collections::HashMap;

use super::{ExtendedStrings, OTHER_KERNELS, Session, Table};
use crate::domain::{Domain, Kind};
use crate::ids::{KernelId, Nanoseconds, OperationId, StringId};
use crate::options::KernelNames;

/// What the removed records of a sum were about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovedOf {
    /// Calls, copies, allocations or scratch operations of one operation.
    Operation(OperationId),
    /// Dispatches of one kernel.
    Kernel(KernelId),
    /// Records of a table whose sort is not known, because there were too many sorts.
    Others,
}

/// Sums over removed records of one sort.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RemovedTotal {
    /// The table that the records would be in.
    pub table: Table,
    /// What the records were about.
    pub of: RemovedOf,
    /// Domain of the records.
    pub domain: Domain,
    /// Number of records; at least one.
    pub count: u64,
    /// Sum of their durations in nanoseconds. Calls that had not returned have none.
    pub total: u64,
    /// Shortest duration in nanoseconds.
    pub min: u64,
    /// Longest duration in nanoseconds.
    pub max: u64,
    /// Sum of the squared differences between the durations and their mean, in ns².
    pub spread: f64,
    /// Bytes that were copied or allocated.
    pub bytes: u64,
    /// The earliest start.
    pub first: Nanoseconds,
    /// The latest end.
    pub last: Nanoseconds,
}

/// Name in reports and files of the records of sorts without a sum of their own.
const OTHERS: &str = "(others)";

impl Session {
    /// Name of the records in reports and files. Markers are named after their functions: messages of removed records are not
    /// known.
    pub fn removed_name(
        &self,
        total: &RemovedTotal,
        kernels: KernelNames,
        names: &mut ExtendedStrings<'_>,
    ) -> StringId {
        match total.of {
            RemovedOf::Operation(operation) => self.operations[operation].name,
            RemovedOf::Kernel(kernel) => names.intern(&self.kernel_name(kernel, kernels)),
            RemovedOf::Others if total.domain == Domain::KernelDispatch => {
                names.intern(OTHER_KERNELS)
            }
            RemovedOf::Others => names.intern(OTHERS),
        }
    }

    /// The sums with their names, ordered by domain, then total duration descending, then name. Sums of the same name stay
    /// apart.
    pub fn named_removed(&self, kernels: KernelNames) -> Vec<(String, RemovedTotal)> {
        let mut names = ExtendedStrings::new(&self.strings);
        let ids: Vec<StringId> = (self.removed.iter())
            .map(|total| self.removed_name(total, kernels, &mut names))
            .collect();
        let mut rows: Vec<(String, RemovedTotal)> = (ids.iter().zip(&self.removed))
            .map(|(name, total)| (names.get(*name).to_owned(), *total))
            .collect();
        rows.sort_by(|(a, one), (b, other)| {
            let order = one.domain.cmp(&other.domain);
            order
                .then(other.total.cmp(&one.total))
                .then_with(|| a.cmp(b))
        });
        rows
    }

    /// Number of removed records of a domain.
    pub fn removed_count(&self, domain: Domain) -> u64 {
        let of_domain = self.removed.iter().filter(|total| total.domain == domain);
        of_domain.fold(0, |sum, total| sum.saturating_add(total.count))
    }

    /// Numbers of removed records by table, without those of markers, which are second.
    pub fn removed_by_table(&self) -> (HashMap<Table, u64>, u64) {
        let mut tables: HashMap<Table, u64> = HashMap::new();
        let mut markers = 0_u64;
        for total in &self.removed {
            let sum = match total.domain {
                Domain::MarkerApi => &mut markers,
                _ => tables.entry(total.table).or_default(),
            };
            *sum = sum.saturating_add(total.count);
        }
        (tables, markers)
    }
}

/// Kind of the operations in the sums of a table's records; `None` where the kind is in the sum, or there is none.
pub(super) fn kind_of(table: Table) -> Option<Kind> {
    match table {
        Table::Copies => Some(Kind::MemoryCopy),
        Table::Allocations => Some(Kind::MemoryAllocation),
        Table::Scratch => Some(Kind::ScratchMemory),
        Table::Calls
        | Table::Dispatches
        | Table::Counted
        | Table::Samples
        | Table::GraphLaunches
        | Table::HipEvents
        | Table::KfdEvents => None,
    }
}
