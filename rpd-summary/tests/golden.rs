//! The tables of a recorded run of the original, computed again from its records.

use std::collections::HashMap;

use rpd_core::compat::Compat;
use rpd_core::domain::{Domain, Kind};
use rpd_core::ids::{
    AgentHandle, CodeObjectId, CorrelationId, DispatchId, KernelId, Nanoseconds, QueueId, StreamId,
    StringId, ThreadId,
};
use rpd_core::options::{KernelNames, SummaryOptions};
use rpd_core::session::{
    AllocationRow, ArgsRef, CallRow, CopyRow, DispatchRow, ExtendedStrings, KernelSymbol, Session,
    Strings, ValueRange,
};
use rpd_core::stats::{StatNames, StatRow, StatTable, Unit};
use rpd_formats::table::statistics::{self, StatView};
use rpd_summary::database::{DatabaseSums, SummaryRow};
use rpd_summary::diff::{self, Durations, SideOf};
use rpd_summary::{Group, Statistics};

fn render(
    table: &StatTable,
    names: &StatNames<'_>,
    unit: Unit,
    indent: usize,
    compat: Compat,
) -> String {
    let view = StatView {
        unit,
        indent,
        width: None,
        process: "",
        compat,
    };
    statistics::render(table, names, view)
}

const RECORDS: &str = include_str!("../testdata/sys-trace.tsv");
const TABLES: &str = include_str!("../testdata/sys-trace-tables.txt");

fn push_call(session: &mut Session, kind: Kind, name: &str, start: u64, end: u64) {
    let marker = kind == Kind::MarkerCoreRange;
    let function = if marker { "roctxThreadRangeA" } else { name };
    let operation = session.add_operation(kind, function);
    let name = session.strings.intern(name);
    let calls = &mut session.calls;
    calls.push(CallRow {
        operation,
        message: if marker { name } else { StringId(0) },
        start: Nanoseconds(start),
        end: Nanoseconds(end),
        thread: ThreadId(1),
        correlation: CorrelationId(0),
        ancestor: CorrelationId(0),
        args: ArgsRef::default(),
    });
}

fn push_dispatch(session: &mut Session, kernel: KernelId, start: u64, end: u64) {
    let dispatches = &mut session.dispatches;
    dispatches.push(DispatchRow {
        start: Nanoseconds(start),
        end: Nanoseconds(end),
        thread: ThreadId(1),
        correlation: CorrelationId(0),
        agent: AgentHandle(0),
        queue: QueueId(0),
        stream: StreamId(0),
        region: 0,
        kernel,
        dispatch: DispatchId(0),
        private_size: 0,
        group_size: 0,
        workgroup: [1; 3],
        grid: [1; 3],
    });
}

fn session() -> Session {
    session_of(RECORDS)
}

fn session_of(records: &str) -> Session {
    let mut session = Session {
        strings: Strings::new(),
        ..Session::default()
    };
    let mut kernels: HashMap<&str, KernelId> = HashMap::new();
    for line in records.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [kind, name, start, end] = fields[..] else {
            panic!("{line}");
        };
        let (start, end) = (start.parse().expect("start"), end.parse().expect("end"));
        let kind = Kind::from_name(kind).expect("known kind");
        match kind {
            Kind::KernelDispatch => {
                let next = KernelId(kernels.len() as u64 + 1);
                let id = *kernels.entry(name).or_insert_with(|| {
                    session.kernel_symbols.push(KernelSymbol {
                        id: next,
                        code_object: CodeObjectId(1),
                        name: name.to_owned(),
                        kernel_object: 0,
                        kernarg_size: 0,
                        kernarg_align: 0,
                        group_size: 0,
                        private_size: 0,
                        sgpr_count: 0,
                        arch_vgpr_count: 0,
                        accum_vgpr_count: 0,
                        entry_offset: 0,
                        kernel_address: 0,
                        size: 0,
                    });
                    next
                });
                push_dispatch(&mut session, id, start, end);
            }
            Kind::MemoryCopy => {
                let operation = session.add_operation(Kind::MemoryCopy, name);
                session.copies.push(CopyRow {
                    operation,
                    start: Nanoseconds(start),
                    end: Nanoseconds(end),
                    ..CopyRow::default()
                });
            }
            Kind::MemoryAllocation => {
                let operation = session.add_operation(Kind::MemoryAllocation, name);
                session.allocations.push(AllocationRow {
                    operation,
                    start: Nanoseconds(start),
                    end: Nanoseconds(end),
                    ..AllocationRow::default()
                });
            }
            kind => push_call(&mut session, kind, name, start, end),
        }
    }
    session
}

/// Lines of equal duration may stand in any order in the original.
fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn summary_tables_have_the_lines_of_the_original() {
    let session = session();
    let statistics = Statistics::new(&session, KernelNames::default()).expect("statistics");
    let request = SummaryOptions {
        overall: true,
        per_domain: true,
        groups: vec!["HIP_API|KERNEL_DISPATCH".to_owned()],
        ..SummaryOptions::default()
    };
    let tables = statistics.summaries(&request).expect("statistics");
    let text: String = tables
        .iter()
        .map(|table| render(table, statistics.names(), Unit::Nsec, 4, Compat::Rocprofv3))
        .collect();

    let expected = TABLES;
    for (ours, theirs) in sorted(&text).iter().zip(sorted(expected)) {
        assert_eq!(*ours, theirs);
    }
    assert_eq!(text.lines().count(), expected.lines().count());
    // Titles, headers and empty lines stand at the same places.
    let frame = |text: &str| -> Vec<(usize, String)> {
        text.lines()
            .enumerate()
            .filter(|(_, line)| !line.starts_with("    | ") || line.contains("NAME"))
            .map(|(number, line)| (number, line.to_owned()))
            .collect()
    };
    assert_eq!(frame(&text), frame(expected));
}

#[test]
fn summary_file_has_the_bytes_of_the_original() {
    let session = session_of(include_str!("../testdata/runtime-trace.tsv"));
    let statistics = Statistics::new(&session, KernelNames::default()).expect("statistics");
    let request = SummaryOptions {
        overall: true,
        ..SummaryOptions::default()
    };
    let tables = statistics.summaries(&request).expect("statistics");
    assert_eq!(tables.len(), 1);
    let expected = include_str!("../testdata/runtime-trace-usec.txt");
    assert_eq!(
        render(
            &tables[0],
            statistics.names(),
            Unit::Usec,
            0,
            Compat::Rocprofv3
        ),
        expected
    );
}

#[test]
fn summary_groups_choose_domains_by_their_whole_labels() {
    let session = session();
    let statistics = Statistics::new(&session, KernelNames::default()).expect("statistics");
    let titles = |groups: &[&str]| -> Vec<String> {
        let request = SummaryOptions {
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
            ..SummaryOptions::default()
        };
        let tables = statistics.summaries(&request).expect("statistics");
        tables.into_iter().map(|table| table.title).collect()
    };
    assert_eq!(
        titles(&[
            "MEMORY_COPY|KERNEL_DISPATCH",
            ".*_API",
            "HIP",
            "hip_api",
            "RCCL_API"
        ]),
        [
            "KERNEL_DISPATCH + MEMORY_COPY",
            "HSA_API + HIP_API + MARKER_API"
        ]
    );
    // Alternatives are tried until one fits the whole name.
    assert_eq!(titles(&["MEMORY|MEMORY_COPY"]), ["MEMORY_COPY"]);
    for wrong in ["*._API", "(", "a)(b", "HIP_API(?=x)"] {
        let error = Group::parse(wrong).expect_err(wrong).to_string();
        assert!(
            error.starts_with(&format!("`{wrong}` ")) && !error.contains('\n'),
            "{error}"
        );
    }
}

#[test]
fn session_stats_have_figures_over_whole_domains() {
    let session = session();
    let statistics = Statistics::new(&session, KernelNames::default()).expect("statistics");
    let stats = statistics.session_stats().expect("statistics");
    let overall = &stats.overall;
    let shown: Vec<String> = overall
        .iter()
        .map(|row| {
            format!(
                "{},{},{},{:.6},{},{},{:.6}",
                stats.names.get(row.name),
                row.calls,
                row.total,
                row.average,
                row.min,
                row.max,
                row.std_dev
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            "MARKER_API,11,202894737,18444976.090909,0,60557983,26736877.412769",
            "HIP_API,104,120619536,1159803.230769,70,45624697,6124498.928110",
            "HSA_API,1292,42982783,33268.407895,30,12006889,514716.242238",
            "MEMORY_COPY,12,3063437,255286.416667,6790,892519,293291.927389",
            "MEMORY_ALLOCATION,37,698718,18884.270270,30,76885,20115.991009",
            "KERNEL_DISPATCH,16,81260,5078.750000,5060,5130,17.841898",
        ]
    );
    let percentages: f64 = overall.iter().map(|row| row.percentage).sum();
    assert!((percentages - 100.0).abs() < 1e-9);
}

/// Deviations of durations beyond 4.3 s are right here, though they wrap in the original.
#[test]
fn deviation_of_long_durations_does_not_wrap() {
    let mut session = Session {
        strings: Strings::new(),
        ..Session::default()
    };
    let hour = 3_600_000_000_000;
    for end in [hour, 2 * hour, 3 * hour] {
        push_call(
            &mut session,
            Kind::HipRuntime,
            "hipDeviceSynchronize",
            0,
            end,
        );
    }
    push_call(&mut session, Kind::HipRuntime, "hipFree", 5, 5);
    let statistics = Statistics::new(&session, KernelNames::default()).expect("statistics");
    let table = statistics.table("", &[Domain::HipApi]).expect("statistics");
    assert_eq!(table.rows.len(), 2);
    assert_eq!(table.rows[0].total, 6 * hour);
    assert!((table.rows[0].std_dev / hour as f64 - 1.0).abs() < 1e-12);
    assert_eq!(
        (table.rows[1].std_dev, table.rows[1].percentage),
        (0.0, 0.0)
    );
}

#[test]
fn counted_dispatches_have_statistics_in_databases_only() {
    let mut session = session();
    let tables = |session: &Session| {
        let mut sums = DatabaseSums::default();
        sums.add(session, KernelNames::default()).expect("sums");
        let summary = sums.finish().expect("sums");
        let tables = summary.tables(false, None).expect("tables");
        let row = |row: SummaryRow<'_>| format!("{row:?}");
        let rows = tables.iter().map(|table| table.rows().map(row).collect());
        rows.collect::<Vec<Vec<String>>>()
    };
    let traced = tables(&session);
    session.counted.dispatches = std::mem::take(&mut session.dispatches);
    session.counted.ranges = vec![ValueRange::default(); session.counted.dispatches.len()].into();
    let statistics = Statistics::new(&session, KernelNames::default()).expect("statistics");
    let domains: Vec<Domain> = statistics.domains().collect();
    assert!(!domains.contains(&Domain::KernelDispatch), "{domains:?}");
    assert!(!domains.contains(&Domain::CounterCollection), "{domains:?}");

    // There a dispatch is a row, whatever it was recorded for.
    assert_eq!(tables(&session), traced);
    let mut durations = Durations::default();
    durations.begin_run(SideOf::Before).expect("a run");
    let added = durations.add(&session, KernelNames::default());
    added.expect("grouped");
    let rows = durations.differences().expect("differences");
    assert!(rows.iter().any(|row| row.group == diff::Group::Kernel));
}

#[test]
fn statistics_of_an_empty_session_have_no_tables() {
    let session = Session::default();
    let statistics = Statistics::new(&session, KernelNames::default()).expect("statistics");
    assert!(
        statistics
            .session_stats()
            .expect("statistics")
            .domains
            .is_empty()
    );
    let table = statistics.table("", &Domain::ALL).expect("statistics");
    assert_eq!(
        render(&table, statistics.names(), Unit::Nsec, 4, Compat::None),
        ""
    );
}

#[test]
fn render_prints_units_and_names_with_line_ends() {
    let mut names = ExtendedStrings::default();
    let row = StatRow {
        name: names.intern("two\nlines"),
        domain: Domain::HipApi,
        calls: 1,
        total: 12_345,
        average: 12_345.0,
        percentage: 100.0,
        min: 3_000,
        max: 15,
        std_dev: 0.0,
    };
    let table = StatTable {
        title: "HIP_API".to_owned(),
        rows: vec![row].into(),
    };
    let names = names.into();
    let text = render(&table, &names, Unit::Sec, 0, Compat::None);
    assert!(
        text.contains("|      1.2345e-05 |       1.234e-05 |"),
        "{text}"
    );
    assert!(
        text.contains("|           3e-06 |         1.5e-08 |"),
        "{text}"
    );
    let text = render(&table, &names, Unit::Usec, 0, Compat::None);
    assert!(text.contains("| two lines "), "{text}");
    assert!(
        text.contains("|          12.345 |       1.235e+01 |"),
        "{text}"
    );
    assert!(
        text.contains("|               3 |           0.015 |"),
        "{text}"
    );
    assert!(text.starts_with("\nRPD HIP_API SUMMARY:\n\n|"), "{text}");
    assert!(text.contains("| DURATION (usec) |"), "{text}");
}

/// Not a check: prints how long statistics over ten million calls take. Run with `--ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn statistics_over_ten_million_calls_are_measured() {
    let mut session = Session {
        strings: Strings::new(),
        ..Session::default()
    };
    let names: Vec<String> = (0..200).map(|number| format!("hipCall{number}")).collect();
    for index in 0..10_000_000_u64 {
        let name = &names[(index.wrapping_mul(2_654_435_761) >> 7) as usize % names.len()];
        push_call(
            &mut session,
            Kind::HipRuntime,
            name,
            index,
            index + index % 977,
        );
    }
    let start = std::time::Instant::now();
    let statistics = Statistics::new(&session, KernelNames::default()).expect("statistics");
    let gathered = start.elapsed();
    let stats = statistics.session_stats().expect("statistics");
    println!(
        "gathered after {gathered:?}, done after {:?}",
        start.elapsed()
    );
    assert_eq!(stats.domains[0].1.rows.len(), names.len());
}
