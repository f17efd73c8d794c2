//! Records of every domain are in each sort of statistics, or listed here as left out.

use rpd_core::compat::Compat;
use rpd_core::domain::{Domain, Kind};
use rpd_core::ids::Nanoseconds;
use rpd_core::options::KernelNames;
use rpd_core::session::{
    AllocationRow, CallRow, CopyRow, DispatchRow, KfdEventRow, SampleRow, ScratchRow, Session,
    Table, ValueRange,
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
        Table::Calls => session.calls.push(CallRow {
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
        Table::KfdEvents => session.kfd_events.push(KfdEventRow {
            operation,
            start,
            end,
            ..KfdEventRow::default()
        }),
        Table::GraphLaunches | Table::HipEvents => unreachable!("no domain has them"),
    }
    session
}

#[test]
fn statistics_have_records_of_every_domain() {
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
fn database_sums_have_tables_for_every_domain() {
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
            // Calls of the runtime and of the driver are one table.
            (Domain::CudaDriverApi, Some((Domain::CudaApi, _))) => {}
            (_, same) => assert_eq!(same, None, "{domain:?} has the same tables"),
        }
        known.push((domain, names));
    }
}

#[test]
fn differences_have_records_of_every_domain() {
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
        // Operations on memory are compared as the calls that make them; what the driver does is not the program's.
        let expected = matches!(
            domain,
            Domain::MemoryAllocation | Domain::ScratchMemory | Domain::Kfd
        );
        assert_eq!(is_left_out, expected, "{domain:?}: not as stated here");
    }
}

/// Adds a HIP call that begins and ends at these times.
fn add_call(session: &mut Session, name: &str, start: u64, end: u64) {
    let operation = session.add_operation(Kind::HipRuntime, name);
    session.calls.push(CallRow {
        operation,
        start: Nanoseconds(start),
        end: Nanoseconds(end),
        ..CallRow::default()
    });
}

#[test]
fn statistics_count_and_leave_out_records_with_impossible_times() {
    let mut session = Session::default();
    session.strings.intern("");
    add_call(&mut session, "hipFree", 1000, 1500);
    for (start, end) in [(1000, 900), (1000, 0), (1000, i64::MAX as u64)] {
        add_call(&mut session, "hipFree", start, end);
    }
    let statistics = Statistics::new(&session, KernelNames::default()).expect("frames");
    let stats = statistics.session_stats().expect("tables");
    assert_eq!(stats.left_out, 3);
    let row = stats.domains[0].1.rows[0];
    assert_eq!((row.calls, row.total, row.min, row.max), (1, 500, 500, 500));

    let mut sums = DatabaseSums::default();
    let left_out = sums.add(&session, KernelNames::default());
    assert_eq!(left_out.expect("sums"), 3);
    let mut durations = Durations::default();
    durations.begin_run(SideOf::After).expect("a run");
    let left_out = durations.add(&session, KernelNames::default());
    assert_eq!(left_out.expect("durations"), 3);

    // No record is longer than its process, where it is known how long that lived.
    session.process.init_time = Nanoseconds(5_000_000_000);
    session.process.fini_time = Nanoseconds(6_000_000_000);
    add_call(&mut session, "hipFree", 1, 5_000_000_000);
    let statistics = Statistics::new(&session, KernelNames::default()).expect("frames");
    assert_eq!(statistics.left_out(), 4);
}

#[test]
fn database_sums_count_scratch_memory_once_and_in_compat_twice() {
    let session = session(Domain::ScratchMemory);
    for (compat, expected) in [
        (Compat::None, &[("SCRATCH_MEMORY", 100)][..]),
        (
            Compat::Rocprofv3,
            &[("MEMORY_ALLOCATIONS", 100), ("SCRATCH_MEMORY", 100)],
        ),
    ] {
        let mut sums = DatabaseSums::new(compat);
        sums.add(&session, KernelNames::default()).expect("sums");
        let summary = sums.finish().expect("sums");
        let tables = summary.tables(false, None).expect("tables");
        let domains = summary.domains(&tables, false, compat);
        let rows: Vec<(String, u64)> = domains
            .rows()
            .map(|row| (row.name.into_owned(), row.total))
            .collect();
        let rows: Vec<(&str, u64)> = rows.iter().map(|(name, total)| (&**name, *total)).collect();
        assert_eq!(rows, expected, "{compat:?}");
    }
}
