//! The page in a real browser: what it shows, sorting by click, searching, at few and at many records.

use crate::support::write as written;

use std::path::{Path, PathBuf};
use std::process::Command;

use rpd_core::domain::{Domain, Kind};
use rpd_core::ids::{
    AgentHandle, CorrelationId, CounterId, DispatchId, KernelId, Nanoseconds, ProcessId, QueueId,
    StreamId, ThreadId,
};
use rpd_core::naming::Target;
use rpd_core::options::{Format, Options};
use rpd_core::session::{
    ArgsRef, CallRow, CopyRow, Counter, CounterInstance, CounterValue, DispatchRow,
    ExtendedStrings, KernelSymbol, Session, ValueRange,
};
use rpd_core::stats::{SessionStats, StatRow, StatTable};
use rpd_tests::skips::lacks;
use written::write_one;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/read_page.py");

/// A name that must not become part of the page.
const EVIL: &str = "</script><img src=x onerror=alert(1)> \"quoted\" \u{7} & <b>bold</b>";

fn target(directory: &Path) -> Target {
    Target {
        directory: directory.to_owned(),
        prefix: "trace".to_owned(),
    }
}

fn session(records: u64) -> Session {
    let mut session = Session::default();
    session.strings.intern("");
    session.process.pid = ProcessId(4711);
    session.process.command = vec!["/opt/app <one>".to_owned(), "--size".to_owned()];
    for (handle, name) in [(1, "AMD EPYC"), (2, "gfx90a")] {
        session.agents.push(rpd_core::agent::Agent {
            handle: AgentHandle(handle),
            agent_type: match handle {
                1 => rpd_core::agent::AgentType::Cpu,
                _ => rpd_core::agent::AgentType::Gpu,
            },
            logical_node_id: handle as i32 - 1,
            name: name.to_owned(),
            ..Default::default()
        });
    }
    for id in 1..=12 {
        session.kernel_symbols.push(KernelSymbol {
            id: KernelId(id),
            code_object: rpd_core::ids::CodeObjectId(1),
            name: format!("kernel_{id}.kd"),
            sgpr_count: 16,
            arch_vgpr_count: 8,
            size: 88,
            ..Default::default()
        });
    }
    let copy = session.add_operation(Kind::MemoryCopy, "MEMORY_COPY_HOST_TO_DEVICE");
    let names = ["hipLaunchKernel", "hipMemcpyAsync", "hipStreamSynchronize"];
    let calls = names.map(|name| session.add_operation(Kind::HipRuntime, name));
    let markers = names.map(|name| session.add_operation(Kind::MarkerCoreRange, name));
    let message = session.strings.intern(EVIL);
    for index in 0..records {
        let start = 5_761_000_000_000 + 10_000 * index;
        let spread = index.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 50;
        match index % 10 {
            0..=2 => {
                let table = &mut session.dispatches;
                table.push(DispatchRow {
                    start: Nanoseconds(start),
                    end: Nanoseconds(start + 4_000 + spread),
                    thread: ThreadId(4711),
                    correlation: CorrelationId(index),
                    agent: AgentHandle(2),
                    queue: QueueId(7 + index % 2),
                    stream: StreamId(0),
                    region: 0,
                    kernel: KernelId(1 + spread % 12),
                    dispatch: DispatchId(index),
                    private_size: 0,
                    group_size: 0,
                    workgroup: [64, 1, 1],
                    grid: [65536, 1, 1],
                });
            }
            3 => {
                let table = &mut session.copies;
                table.push(CopyRow {
                    operation: copy,
                    start: Nanoseconds(start),
                    end: Nanoseconds(start + 9_000),
                    thread: ThreadId(4711),
                    correlation: CorrelationId(index),
                    dst_agent: AgentHandle(2),
                    src_agent: AgentHandle(1),
                    bytes: 1 << 20,
                    dst_address: 0,
                    src_address: 0,
                    stream: StreamId(0),
                    region: 0,
                });
            }
            _ => {
                let table = &mut session.calls;
                let is_marker = index % 10 == 9;
                let operations = if is_marker { &markers } else { &calls };
                table.push(CallRow {
                    operation: operations[(index % 3) as usize],
                    message: if is_marker {
                        message
                    } else {
                        Default::default()
                    },
                    start: Nanoseconds(start),
                    end: Nanoseconds(start + 1_000 + spread / 4),
                    thread: ThreadId(4711 + (index / 7 % 2) as u32),
                    correlation: CorrelationId(index),
                    ancestor: CorrelationId(0),
                    args: ArgsRef::default(),
                });
            }
        }
    }
    session.ledger.dropped = 3;
    count(&mut session);
    session
}

/// Two counters on the first thirty dispatches: one that is a number of waves, and a ratio.
fn count(session: &mut Session) {
    for (id, name) in [(10, "SQ_WAVES"), (20, "Ratio")] {
        session.counters.push(Counter {
            id: CounterId(id),
            agent: AgentHandle(2),
            name: name.to_owned(),
            description: String::new(),
            block: String::new(),
            expression: String::new(),
            is_constant: false,
            is_derived: false,
            dimensions: Vec::new(),
            instances: vec![CounterInstance {
                id,
                positions: Vec::new(),
            }],
        });
    }
    let (table, counted) = (&session.dispatches, &mut session.counted);
    for index in 0..table.len().min(30) {
        let into = &mut counted.dispatches;
        macro_rules! copy {
            ($($column:ident)*) => {
                $(into.$column.push(table.$column[index]);)*
            };
        }
        copy!(start end thread correlation agent queue stream region kernel dispatch private_size group_size
            workgroup grid);
        let first = counted.values.len() as u64;
        counted.ranges.push(ValueRange { first, count: 2 });
        for (counter, value) in [(0, 1024.0), (1, 0.25)] {
            counted.values.push(CounterValue {
                counter,
                instance: 0,
                value,
            });
        }
    }
}

/// Statistics as the summary would compute them, without the deviation.
fn stats(session: &Session) -> SessionStats<'static> {
    let mut sums: std::collections::BTreeMap<(Domain, String), (u64, u64, u64, u64)> =
        Default::default();
    let mut add = |domain: Domain, name: &str, start: Nanoseconds, end: Nanoseconds| {
        let time = end.0 - start.0;
        let sums = sums
            .entry((domain, name.to_owned()))
            .or_insert((0, 0, u64::MAX, 0));
        *sums = (
            sums.0 + 1,
            sums.1 + time,
            sums.2.min(time),
            sums.3.max(time),
        );
    };
    let calls = &session.calls;
    for index in 0..calls.len() {
        let name = session.strings.get(session.call_label(index));
        let domain = session.call(index).domain();
        add(domain, name, calls.start[index], calls.end[index]);
    }
    let table = &session.dispatches;
    for index in 0..table.len() {
        let name = format!("kernel_{}", table.kernel[index]);
        add(
            Domain::KernelDispatch,
            &name,
            table.start[index],
            table.end[index],
        );
    }
    let mut stats = SessionStats::default();
    let mut names = ExtendedStrings::default();
    for domain in Domain::ALL {
        let mut rows: Vec<StatRow> = sums
            .iter()
            .filter(|((of, _), _)| *of == domain)
            .map(|((_, name), &(calls, total, min, max))| StatRow {
                name: names.intern(name),
                domain,
                calls,
                total,
                average: total as f64 / calls as f64,
                percentage: 0.0,
                min,
                max,
                std_dev: f64::NAN,
            })
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.total));
        if rows.is_empty() {
            continue;
        }
        stats.overall.push(StatRow {
            name: names.intern(domain.label()),
            domain,
            calls: rows.iter().map(|row| row.calls).sum(),
            total: rows.iter().map(|row| row.total).sum(),
            average: 0.0,
            percentage: 0.0,
            min: 0,
            max: 0,
            std_dev: 0.0,
        });
        let title = domain.label().to_owned();
        let rows = rows.into();
        stats.domains.push((domain, StatTable { title, rows }));
    }
    stats.names = names.into();
    stats
}

pub(crate) fn page(directory: &Path, records: u64) -> (PathBuf, Session) {
    let session = session(records);
    let stats = stats(&session);
    let file = write_one(
        Format::Html,
        &session,
        Some(&stats),
        &Options::default(),
        &target(directory),
    )
    .expect("written")
    .expect("a page");
    (file, session)
}

#[test]
fn html_of_a_session_without_records_is_not_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let written = write_one(
        Format::Html,
        &Session::default(),
        Some(&SessionStats::default()),
        &Options::default(),
        &target(directory.path()),
    );
    assert_eq!(written.expect("nothing to write"), None);
}

#[test]
fn html_page_keeps_names_as_data_and_loads_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let (file, _) = page(directory.path(), 100);
    let text = std::fs::read_to_string(file).expect("a page");
    assert_eq!(text.matches("</script").count(), 2);
    assert!(!text.contains("<img") && !text.contains("http:") && !text.contains("https:"));
    assert!(text.contains("<title>rpd: app &lt;one&gt;</title>"));
    let data = text.split_once("id=\"data\">").expect("data").1;
    let data = data.split_once("</script>").expect("data").0;
    let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
    assert_eq!(data["tables"][3]["id"], "markers");
    assert_eq!(data["tables"][3]["rows"][0][0], EVIL);
    let counters = &data["tables"][1];
    assert_eq!(counters["id"], "counters");
    let rows = counters["rows"].as_array().expect("rows").iter();
    let rows = rows.filter(|row| row[1] == "SQ_WAVES");
    let dispatches: u64 = rows
        .map(|row| {
            let dispatches = row[2].as_u64().expect("a number");
            let sum = 1024 * dispatches;
            assert_eq!(
                *row,
                serde_json::json!([row[0], "SQ_WAVES", dispatches, 1024, 1024, 1024, sum])
            );
            dispatches
        })
        .sum();
    assert_eq!(dispatches, 30);
}

#[test]
fn html_page_of_counters_alone_shows_their_times() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut session = session(100);
    session.dispatches = Default::default();
    session.calls = Default::default();
    session.copies = Default::default();
    let (stats, options) = (SessionStats::default(), Options::default());
    let file = write_one(
        Format::Html,
        &session,
        Some(&stats),
        &options,
        &target(directory.path()),
    )
    .expect("written")
    .expect("a page");
    let text = std::fs::read_to_string(file).expect("a page");
    let data = text.split_once("id=\"data\">").expect("data").1;
    let data = data.split_once("</script>").expect("data").0;
    let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
    let titles: Vec<&str> = data["tables"]
        .as_array()
        .expect("tables")
        .iter()
        .filter_map(|table| table["title"].as_str())
        .collect();
    assert_eq!(titles, ["Counters", "Gaps"]);
    assert_eq!(data["tracks"].as_array().map(Vec::len), Some(2));
}

#[test]
fn html_page_works_in_a_browser() {
    if lacks("chromedriver") || lacks("python3") {
        return;
    }
    for records in [1_000, 1_000_000] {
        let directory = tempfile::tempdir().expect("a directory");
        let (file, session) = page(directory.path(), records);
        let size = std::fs::metadata(&file).expect("a page").len();
        assert!(size < 1_500_000, "{size} bytes for {records} records");
        // Pictures to look at are kept when there is a place for them.
        let pictures = std::env::var_os("RPD_TEST_PICTURES").unwrap_or_default();
        let output = Command::new("python3")
            .arg(SCRIPT)
            .arg(&file)
            .arg(directory.path())
            .arg(records.to_string())
            .arg(session.dispatches.len().to_string())
            .arg(pictures)
            .output()
            .expect("python3");
        assert!(
            output.status.success(),
            "{records} records: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        eprint!("{}", String::from_utf8_lossy(&output.stdout));
    }
}
