//! Records of every domain are in each sort of statistics, or listed here as left out.

use rpd_core::domain::{Domain, Kind};
use rpd_core::ids::Nanoseconds;
use rpd_core::options::KernelNames;
use rpd_core::session::{
    AllocationRow, CallRow, CopyRow, DispatchRow, SampleRow, ScratchRow, Session, Table, ValueRange,
};

use crate::Statistics;
use crate::database::DatabaseSums;
use crate::diff::{Durations, SideOf};

/// A session with one record, of this domain.
fn session(domain: Domain) -> Session {
    let mut session = Session::default();
    session.strings.intern("");
    let kind = Kind::all().find(|kind| kind.domain() == domain);
    let operation = kind.map(|kind| session.add_operation(kind, "some_operation"));
    let operation = operation.unwrap_or_default();
    let (start, end) = (Nanoseconds(100), Nanoseconds(200));
    let dispatch = DispatchRow {
        start,
        end,
        ..DispatchRow::default()
    };
    match domain.table() {
        Table::Calls => session.api.push(CallRow {
            operation,
            start,
            end,
            ..CallRow::default()
        }),
        Table::Dispatches => session.dispatches.push(dispatch),
        Table::Copies => session.copies.push(CopyRow {
            operation,
            start,
            end,
            ..CopyRow::default()
        }),
        Table::Allocations => session.allocations.push(AllocationRow {
            operation,
            start,
            end,
            ..AllocationRow::default()
        }),
        Table::Scratch => session.scratch.push(ScratchRow {
            operation,
            start,
            end,
            ..ScratchRow::default()
        }),
        Table::Counted => {
            session.counted.dispatches.push(dispatch);
            session.counted.ranges.push(ValueRange::default());
        }
        Table::Samples => session.samples.push(SampleRow {
            start,
            end,
            ..SampleRow::default()
        }),
    }
    session
}

#[test]
fn every_domain_has_statistics() {
    for domain in Domain::ALL {
        let session = session(domain);
        let statistics = Statistics::new(&session, KernelNames::default()).expect("frames");
        let stats = statistics.session_stats().expect("tables");
        let totals = stats
            .domains
            .iter()
            .map(|(domain, table)| (*domain, table.rows[0].total));
        let totals: Vec<(Domain, u64)> = totals.collect();
        match domain {
            // Dispatches that were traced as well have the durations.
            Domain::CounterCollection => assert!(totals.is_empty(), "{totals:?}"),
            _ => assert_eq!(totals, [(domain, 100)]),
        }
    }
}

#[test]
fn every_domain_has_tables_of_its_own_in_summaries_of_databases() {
    let mut known: Vec<(Domain, Vec<String>)> = Vec::new();
    for domain in Domain::ALL {
        let mut sums = DatabaseSums::default();
        sums.add(&session(domain), KernelNames::default())
            .expect("sums");
        let summary = sums.finish().expect("sums");
        let tables = summary.tables(false, None).expect("tables");
        let names: Vec<String> = tables.into_iter().map(|table| table.name).collect();
        assert!(!names.is_empty(), "{domain:?} is left out");
        let same = known.iter().find(|(_, tables)| *tables == names);
        match (domain, same) {
            // Without traced dispatches those that were counted are in their table.
            (Domain::CounterCollection, Some((Domain::KernelDispatch, _))) => {}
            (_, same) => assert_eq!(same, None, "{domain:?} has the same tables"),
        }
        known.push((domain, names));
    }
}

#[test]
fn every_domain_is_compared() {
    for domain in Domain::ALL {
        let mut durations = Durations::default();
        durations.begin_run(SideOf::After).expect("a run");
        durations
            .add(&session(domain), KernelNames::default())
            .expect("durations");
        let is_left_out = durations
            .differences()
            .expect("figures")
            .iter()
            .next()
            .is_none();
        // Operations on memory are compared as the calls that make them.
        let expected = matches!(domain, Domain::MemoryAllocation | Domain::ScratchMemory);
        assert_eq!(is_left_out, expected, "{domain:?}: not as stated here");
    }
}
