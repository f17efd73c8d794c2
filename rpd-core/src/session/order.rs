//! Sorts records: by start ascending, end descending, then name.

#![deny(clippy::wildcard_enum_match_arm)]

use std::cmp::{Ordering, Reverse};
use std::io;

use super::{Columns, DispatchTable, Session, Strings, Table};
use crate::ids::{Nanoseconds, OperationId, StringId};
use crate::storage::column::{BATCH, Column, Storage};
use crate::storage::sorted::{MERGED, Run, make_heap, runs, take_first};

/// Sorts every table of `session`.
pub(super) fn sort(session: &mut Session) {
    for table in Table::ALL {
        sort_rows(session, *table);
    }
}

/// Sorts the rows of a table that is in memory.
pub(super) fn sort_rows(session: &mut Session, table: Table) {
    if let Some(order) = with_names(session, table, Sort) {
        session.columns_mut(table).reorder(&order);
    }
}

/// Result of one merge: the order of all rows of a table in files, in fewer and longer parts than before.
pub(super) struct Merged {
    /// Indices that the rows had before the merge, in the new order.
    pub(super) order: Column<u32>,
    /// First row of each part, ascending. Each part is sorted.
    pub(super) parts: Vec<usize>,
}

/// Merges the sorted parts of a table that is in files. `parts` holds the first row of each, ascending. `None` when
/// the table is sorted already.
pub(super) fn merged(
    session: &Session,
    table: Table,
    parts: &[usize],
    storage: &Storage,
) -> io::Result<Option<Merged>> {
    let columns = session.columns(table);
    with_names(
        session,
        table,
        Merge {
            columns,
            parts,
            storage,
        },
    )
}

/// A function that takes start times, end times and the comparison of names of a table.
trait Task {
    type Output;

    fn run(
        self,
        starts: &[Nanoseconds],
        ends: &[Nanoseconds],
        name: impl Fn(u32, u32) -> Ordering,
    ) -> Self::Output;
}

fn with_names<T: Task>(session: &Session, table: Table, task: T) -> T::Output {
    let strings = &session.strings;
    let columns = session.columns(table);
    let (starts, ends) = (columns.starts(), columns.ends());
    // Kernels are compared by symbol: formatted names depend on options, and the order must not.
    let kernel = |dispatches: &DispatchTable, index: u32| {
        let symbol = session.kernel_symbol(dispatches.kernel[index as usize]);
        symbol.map(|symbol| &symbol.name)
    };
    let of_operation = |ids: &[OperationId], a: u32, b: u32| {
        let name = |row: u32| session.operations[ids[row as usize]].name;
        by_name(strings, name(a), name(b))
    };
    match table {
        Table::Calls => {
            let label = |index: u32| session.call_label(index as usize);
            task.run(starts, ends, |a, b| by_name(strings, label(a), label(b)))
        }
        Table::Dispatches => {
            let dispatches = &session.dispatches;
            task.run(starts, ends, |a, b| {
                kernel(dispatches, a).cmp(&kernel(dispatches, b))
            })
        }
        Table::Counted => {
            let dispatches = &session.counted.dispatches;
            task.run(starts, ends, |a, b| {
                kernel(dispatches, a).cmp(&kernel(dispatches, b))
            })
        }
        // A sample has no name, and samples of one time stay in the order in which they came.
        Table::Samples => task.run(starts, ends, |_, _| Ordering::Equal),
        Table::GraphLaunches => {
            let exec = &session.graph_launches.exec;
            task.run(starts, ends, |a, b| exec[a as usize].cmp(&exec[b as usize]))
        }
        Table::HipEvents => {
            let operation = &session.hip_events.operation;
            task.run(starts, ends, |a, b| {
                operation[a as usize].cmp(&operation[b as usize])
            })
        }
        Table::KfdEvents => {
            let operations = &session.kfd_events.operation;
            task.run(starts, ends, |a, b| of_operation(operations, a, b))
        }
        Table::Copies => {
            let operations = &session.copies.operation;
            task.run(starts, ends, |a, b| of_operation(operations, a, b))
        }
        Table::Allocations => {
            let operations = &session.allocations.operation;
            task.run(starts, ends, |a, b| of_operation(operations, a, b))
        }
        Table::Scratch => {
            let operations = &session.scratch.operation;
            task.run(starts, ends, |a, b| of_operation(operations, a, b))
        }
    }
}

/// Finds the order of rows in memory; `None` when they are sorted already.
struct Sort;

impl Task for Sort {
    type Output = Option<Vec<u32>>;

    fn run(
        self,
        starts: &[Nanoseconds],
        ends: &[Nanoseconds],
        name: impl Fn(u32, u32) -> Ordering,
    ) -> Option<Vec<u32>> {
        order(starts, ends, name)
    }
}

/// Merges the parts of a table in files.
struct Merge<'a> {
    columns: &'a dyn Columns,
    parts: &'a [usize],
    storage: &'a Storage,
}

impl Task for Merge<'_> {
    type Output = io::Result<Option<Merged>>;

    fn run(
        self,
        starts: &[Nanoseconds],
        ends: &[Nanoseconds],
        name: impl Fn(u32, u32) -> Ordering,
    ) -> Self::Output {
        let compare = comparison(starts, ends, name);
        let runs = runs(self.parts, starts.len(), &compare);
        if runs.len() < 2 {
            return Ok(None);
        }
        let precedes = |a: &Run, b: &Run| compare(a.row, b.row).then(a.row.cmp(&b.row)).is_lt();
        let (mut order, mut parts) = (Column::new(), Vec::new());
        let mut taken = 0_usize;
        for runs in runs.chunks(MERGED) {
            parts.push(order.total());
            let mut runs = runs.to_vec();
            make_heap(&mut runs, &precedes);
            while let Some(row) = take_first(&mut runs, precedes) {
                order.append(Some(self.storage), row)?;
                taken += 1;
                if taken.is_multiple_of(BATCH) {
                    self.columns.release();
                }
            }
        }
        order.seal(self.storage)?;
        Ok(Some(Merged { order, parts }))
    }
}

fn by_name(strings: &Strings, a: StringId, b: StringId) -> Ordering {
    if a == b {
        Ordering::Equal
    } else {
        strings.get(a).cmp(strings.get(b))
    }
}

/// The comparison by which the rows of a table are sorted.
fn comparison(
    starts: &[Nanoseconds],
    ends: &[Nanoseconds],
    name: impl Fn(u32, u32) -> Ordering,
) -> impl Fn(u32, u32) -> Ordering {
    move |a: u32, b: u32| {
        let (x, y) = (a as usize, b as usize);
        starts[x]
            .cmp(&starts[y])
            .then_with(|| Reverse(ends[x]).cmp(&Reverse(ends[y])))
            .then_with(|| name(a, b))
    }
}

/// The indices of the rows in sorted order; `None` when the rows are sorted already.
fn order(
    starts: &[Nanoseconds],
    ends: &[Nanoseconds],
    name: impl Fn(u32, u32) -> Ordering,
) -> Option<Vec<u32>> {
    let compare = comparison(starts, ends, name);
    let count = starts.len() as u32;
    if (1..count).all(|index| compare(index - 1, index) != Ordering::Greater) {
        return None;
    }
    let mut order: Vec<u32> = (0..count).collect();
    // A stable sort, which merges the sorted runs that it finds: each stream is nearly one run.
    order.sort_by(|&a, &b| compare(a, b));
    Some(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_ordered_by_start_then_duration_then_name() {
        let starts = [5, 1, 1, 1, 0].map(Nanoseconds);
        let ends = [6, 2, 9, 9, 1].map(Nanoseconds);
        let names = ["e", "d", "c", "b", "a"];
        let order = order(&starts, &ends, |a, b| {
            names[a as usize].cmp(names[b as usize])
        });
        assert_eq!(order, Some(vec![4, 3, 2, 1, 0]));
    }

    #[test]
    fn order_returns_none_for_sorted_rows() {
        let times = [1, 1, 2].map(Nanoseconds);
        assert_eq!(order(&times, &times, |_, _| Ordering::Equal), None);
        assert_eq!(order(&[], &[], |_, _| Ordering::Equal), None);
    }
}
