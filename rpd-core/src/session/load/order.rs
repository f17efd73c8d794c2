//! Start ascending, end descending, then name.

#![deny(clippy::wildcard_enum_match_arm)]

use std::cmp::{Ordering, Reverse};

use super::super::{DispatchTable, Session, Strings, Table};
use crate::ids::{Nanoseconds, StringId};

/// Puts every table of `session` in order.
pub(in crate::session) fn put_in_order(session: &mut Session) {
    for table in Table::ALL {
        if let Some(order) = order_of(session, *table) {
            session.columns_mut(*table).reorder(&order);
        }
    }
}

/// The order in which the records of a table belong, or `None` when that is the order they are in.
fn order_of(session: &Session, table: Table) -> Option<Vec<u32>> {
    let strings = &session.strings;
    let by_operation = |operations: &[StringId]| {
        let columns = session.columns(table);
        order(columns.starts(), columns.ends(), |a, b| {
            by_name(strings, operations[a as usize], operations[b as usize])
        })
    };
    match table {
        Table::Calls => {
            let label = |index: u32| session.api_label(index as usize);
            order(&session.api.start, &session.api.end, |a, b| {
                by_name(strings, label(a), label(b))
            })
        }
        Table::Dispatches => dispatch_order(session, &session.dispatches),
        Table::Counted => dispatch_order(session, &session.counted.dispatches),
        Table::Copies => by_operation(&session.copies.operation),
        Table::Allocations => by_operation(&session.allocations.operation),
        Table::Scratch => by_operation(&session.scratch.operation),
    }
}

fn dispatch_order(session: &Session, table: &DispatchTable) -> Option<Vec<u32>> {
    let name = |index: u32| {
        let symbol = session.kernel_symbol(table.kernel[index as usize]);
        symbol.map(|symbol| &symbol.name)
    };
    order(&table.start, &table.end, |a, b| name(a).cmp(&name(b)))
}

fn by_name(strings: &Strings, a: StringId, b: StringId) -> Ordering {
    if a == b {
        Ordering::Equal
    } else {
        strings.get(a).cmp(strings.get(b))
    }
}

/// The order in which records belong, or `None` when that is the order they are in.
fn order(
    starts: &[Nanoseconds],
    ends: &[Nanoseconds],
    name: impl Fn(u32, u32) -> Ordering,
) -> Option<Vec<u32>> {
    let compare = |a: u32, b: u32| {
        let (x, y) = (a as usize, b as usize);
        starts[x]
            .cmp(&starts[y])
            .then_with(|| Reverse(ends[x]).cmp(&Reverse(ends[y])))
            .then_with(|| name(a, b))
    };
    let count = starts.len() as u32;
    if (1..count).all(|index| compare(index - 1, index) != Ordering::Greater) {
        return None;
    }
    let mut order: Vec<u32> = (0..count).collect();
    // Stable, and it finds the sorted runs that the streams are.
    order.sort_by(|&a, &b| compare(a, b));
    Some(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_then_longest_then_name() {
        let starts = [5, 1, 1, 1, 0].map(Nanoseconds);
        let ends = [6, 2, 9, 9, 1].map(Nanoseconds);
        let names = ["e", "d", "c", "b", "a"];
        let order = order(&starts, &ends, |a, b| {
            names[a as usize].cmp(names[b as usize])
        });
        assert_eq!(order, Some(vec![4, 3, 2, 1, 0]));
    }

    #[test]
    fn what_is_in_order_stays() {
        let times = [1, 1, 2].map(Nanoseconds);
        assert_eq!(order(&times, &times, |_, _| Ordering::Equal), None);
        assert_eq!(order(&[], &[], |_, _| Ordering::Equal), None);
    }
}
