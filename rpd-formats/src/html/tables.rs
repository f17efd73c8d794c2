//! Tables of the page.

#![deny(clippy::wildcard_enum_match_arm)]

use std::collections::{BTreeMap, HashMap};

use rpd_core::domain::Domain;
use rpd_core::options::Options;
use rpd_core::session::{FirstPasses, KernelLabels, PlausibleTimes, Session};
use rpd_core::stats::{SessionStats, StatRow};

use super::quoted;
use super::timeline::{Timeline, agent_name, cut};
use crate::json::Object;

/// Rows of a table in the page; the files have all of them.
const ROWS: usize = 2000;

/// Greatest number of bytes of a text in a table; the rest is cut off.
const CELL: usize = 4096;

/// Gaps in the page.
const GAPS: usize = 200;

/// A cell as JSON.
enum Cell<'a> {
    Text(&'a str),
    Number(f64),
}

impl Cell<'_> {
    fn json(&self) -> String {
        match self {
            Cell::Text(text) => quoted(&cut(text, CELL)),
            // Infinite and undefined values have no place in JSON.
            Cell::Number(value) if value.is_finite() => value.to_string(),
            Cell::Number(_) => "null".to_owned(),
        }
    }
}

struct Table<'a> {
    id: &'static str,
    title: &'static str,
    note: String,
    /// Label and unit of each column.
    columns: &'static [(&'static str, &'static str)],
    /// Column that it is sorted by at first, descending.
    sort: usize,
    rows: Vec<Vec<Cell<'a>>>,
}

impl Table<'_> {
    fn json(&self) -> String {
        let columns = self.columns.iter();
        let columns = columns.map(|(label, unit)| format!("[{},{}]", quoted(label), quoted(unit)));
        let rows = self.rows.iter().map(|row| {
            let cells: Vec<String> = row.iter().map(Cell::json).collect();
            format!("[{}]", cells.join(","))
        });
        Object::new()
            .text("id", self.id)
            .text("title", self.title)
            .text("note", &self.note)
            .number("sort", self.sort)
            .array("columns", columns)
            .array("rows", rows)
            .end()
    }
}

/// A table of statistics.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    Kernels,
    Calls,
    Markers,
    Memory,
    Driver,
}

/// The table that has the statistics of a domain; `None` for a domain that another table shows.
const fn group(domain: Domain) -> Option<Group> {
    match domain {
        Domain::KernelDispatch => Some(Group::Kernels),
        Domain::HipApi
        | Domain::HsaApi
        | Domain::RcclApi
        | Domain::RocdecodeApi
        | Domain::RocjpegApi
        | Domain::CudaApi
        | Domain::CudaDriverApi
        | Domain::RocshmemApi
        | Domain::HipfileApi
        | Domain::Ompt => Some(Group::Calls),
        Domain::Kfd => Some(Group::Driver),
        Domain::MarkerApi => Some(Group::Markers),
        Domain::MemoryAllocation | Domain::ScratchMemory => Some(Group::Memory),
        // `copies`, by direction and agents, and `counters`.
        Domain::MemoryCopy | Domain::CounterCollection => None,
    }
}

/// The tables of the page that have rows, as JSON.
pub(super) fn all(
    session: &Session,
    stats: &SessionStats<'_>,
    options: &Options,
    timeline: &Timeline<'_>,
) -> Vec<String> {
    let mut tables = Vec::new();
    tables.push(statistics(stats, ("kernels", "Kernels"), Group::Kernels));
    let labels = KernelLabels::new(session, options.kernel_names);
    let counted = counted(session, &labels);
    tables.push(counters(session, &counted));
    tables.push(statistics(stats, ("calls", "Calls"), Group::Calls));
    tables.push(statistics(stats, ("markers", "Markers"), Group::Markers));
    let ways = ways(session, options);
    tables.push(copies(&ways));
    let agents: Vec<String> = timeline
        .gaps()
        .iter()
        .take(GAPS)
        .map(|gap| agent_name(session, gap.agent, options))
        .collect();
    tables.push(gaps(timeline, &agents));
    tables.push(statistics(
        stats,
        ("memory", "Allocations and scratch"),
        Group::Memory,
    ));
    tables.push(statistics(
        stats,
        ("driver", "Kernel driver"),
        Group::Driver,
    ));
    tables
        .iter()
        .filter(|table| !table.rows.is_empty())
        .map(Table::json)
        .collect()
}

fn statistics<'a>(
    stats: &'a SessionStats<'_>,
    (id, title): (&'static str, &'static str),
    wanted: Group,
) -> Table<'a> {
    let mut rows: Vec<(Domain, StatRow)> = Vec::new();
    let (mut total, mut all) = (0.0, 0);
    // Each domain gives its longest rows only: the page shows no more of all together.
    for (domain, table) in &stats.domains {
        if group(*domain) == Some(wanted) {
            // Rows with the most time come first.
            rows.extend(table.rows.iter().take(ROWS).map(|row| (*domain, *row)));
            total += table.rows.iter().map(|row| row.total as f64).sum::<f64>();
            all += table.rows.len();
        }
    }
    rows.sort_by_key(|(_, row)| std::cmp::Reverse(row.total));
    rows.truncate(ROWS);
    // A table that silently ends looks complete.
    let note = if all > ROWS {
        format!(
            "The {ROWS} with the most time; {} more are in the other outputs.",
            all - ROWS
        )
    } else {
        String::new()
    };
    Table {
        id,
        title,
        note,
        columns: &[
            ("Name", "text"),
            ("Domain", "short"),
            ("Calls", "count"),
            ("Total", "ns"),
            ("Share", "share"),
            ("Average", "ns"),
            ("Min", "ns"),
            ("Max", "ns"),
            ("Std. dev.", "ns"),
        ],
        sort: 3,
        rows: rows
            .into_iter()
            .map(|(domain, row)| {
                // All durations can be 0 where clocks of the device were not available.
                let share = if total > 0.0 {
                    100.0 * row.total as f64 / total
                } else {
                    0.0
                };
                vec![
                    Cell::Text(stats.names.get(row.name)),
                    Cell::Text(domain.label()),
                    Cell::Number(row.calls as f64),
                    Cell::Number(row.total as f64),
                    Cell::Number(share),
                    Cell::Number(row.average),
                    Cell::Number(row.min as f64),
                    Cell::Number(row.max as f64),
                    Cell::Number(row.std_dev),
                ]
            })
            .collect(),
    }
}

/// A counter in the dispatches of a kernel.
struct CounterFigures {
    dispatches: u64,
    min: f64,
    max: f64,
    sum: f64,
}

/// Rows of the table of counters, by name of kernel and counter.
fn counted<'a>(
    session: &'a Session,
    labels: &'a KernelLabels<'_>,
) -> BTreeMap<(&'a str, &'a str), CounterFigures> {
    // Names are compared last, because comparing texts is slow.
    let mut by_number: HashMap<_, (usize, CounterFigures)> = HashMap::new();
    let table = &session.counted.dispatches;
    let first_passes = FirstPasses::new(&session.counted);
    for index in session.counted.indices() {
        for (counter, value) in session.counted.sums(index) {
            if !first_passes.is_first(&session.counted, index, counter) {
                continue;
            }
            let key = (table.kernel[index], table.region[index], counter);
            let (_, counted) = by_number
                .entry(key)
                .or_insert((index, CounterFigures::none()));
            counted.add(&CounterFigures::from_value(value));
        }
    }
    let mut by_name: BTreeMap<_, CounterFigures> = BTreeMap::new();
    for ((_, _, counter), (index, counted)) in by_number {
        let counter = session.counters.get(counter as usize);
        let name = counter.map_or("", |counter| &*counter.name);
        let key = (labels.counted(index), name);
        by_name
            .entry(key)
            .or_insert(CounterFigures::none())
            .add(&counted);
    }
    by_name
}

impl CounterFigures {
    fn none() -> CounterFigures {
        CounterFigures {
            dispatches: 0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            sum: 0.0,
        }
    }

    fn from_value(value: f64) -> CounterFigures {
        CounterFigures {
            dispatches: 1,
            min: value,
            max: value,
            sum: value,
        }
    }

    fn add(&mut self, other: &CounterFigures) {
        self.dispatches += other.dispatches;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
    }
}

fn counters<'a>(
    session: &Session,
    counted: &BTreeMap<(&'a str, &'a str), CounterFigures>,
) -> Table<'a> {
    let note = if counted.len() > ROWS {
        format!(
            "The first {ROWS} by name; {} more are in the other outputs.",
            counted.len() - ROWS
        )
    } else {
        match session.counted.counted_once() {
            1 => "Counted in one dispatch.".to_owned(),
            number => format!("Counted in {number} dispatches."),
        }
    };
    Table {
        id: "counters",
        title: "Counters",
        note,
        columns: &[
            ("Kernel", "text"),
            ("Counter", "short"),
            ("Dispatches", "count"),
            ("Min", "value"),
            ("Mean", "value"),
            ("Max", "value"),
            ("Sum", "value"),
        ],
        // Mostly equal, so that the rows of a kernel stay together.
        sort: 2,
        rows: counted
            .iter()
            .take(ROWS)
            .map(|(&(kernel, counter), counted)| {
                vec![
                    Cell::Text(kernel),
                    Cell::Text(counter),
                    Cell::Number(counted.dispatches as f64),
                    Cell::Number(counted.min),
                    Cell::Number(counted.sum / counted.dispatches as f64),
                    Cell::Number(counted.max),
                    Cell::Number(counted.sum),
                ]
            })
            .collect(),
    }
}

/// Copies of one direction between two agents.
#[derive(Default)]
struct CopyRoute {
    from: String,
    to: String,
    operation: String,
    count: u64,
    bytes: u64,
    time: u64,
    longest: u64,
}

fn ways(session: &Session, options: &Options) -> Vec<CopyRoute> {
    let (table, times) = (&session.copies, PlausibleTimes::from_session(session));
    let mut ways: BTreeMap<_, CopyRoute> = BTreeMap::new();
    for index in table.indices() {
        let (from, to) = (table.src_agent[index], table.dst_agent[index]);
        let operation = session.operations[table.operation[index]].name;
        let way = ways
            .entry((from, to, operation))
            .or_insert_with(|| CopyRoute {
                from: agent_name(session, from, options),
                to: agent_name(session, to, options),
                operation: session.strings.get(operation).to_owned(),
                ..CopyRoute::default()
            });
        // As in statistics.
        let time = times.duration(table.start[index], table.end[index]);
        let time = time.unwrap_or(0);
        way.count += 1;
        way.bytes += table.bytes[index];
        way.time += time;
        way.longest = way.longest.max(time);
    }
    ways.into_values().collect()
}

fn copies(ways: &[CopyRoute]) -> Table<'_> {
    Table {
        id: "copies",
        title: "Copies",
        note: String::new(),
        columns: &[
            ("Direction", "text"),
            ("From", "short"),
            ("To", "short"),
            ("Copies", "count"),
            ("Bytes", "bytes"),
            ("Total", "ns"),
            ("Rate", "rate"),
            ("Longest", "ns"),
        ],
        sort: 5,
        rows: ways
            .iter()
            .map(|way| {
                let rate = way.bytes as f64 * 1e9 / way.time as f64;
                vec![
                    Cell::Text(&way.operation),
                    Cell::Text(&way.from),
                    Cell::Text(&way.to),
                    Cell::Number(way.count as f64),
                    Cell::Number(way.bytes as f64),
                    Cell::Number(way.time as f64),
                    Cell::Number(rate),
                    Cell::Number(way.longest as f64),
                ]
            })
            .collect(),
    }
}

fn gaps<'a>(timeline: &'a Timeline<'_>, agents: &'a [String]) -> Table<'a> {
    let gaps = timeline.gaps();
    let note = if timeline.gap_count() > GAPS {
        let count = timeline.gap_count();
        format!("The {GAPS} longest of {count} times without work.")
    } else {
        String::from("Times without work between the first and the last of an agent.")
    };
    Table {
        id: "gaps",
        title: "Gaps",
        note,
        columns: &[
            ("Agent", "short"),
            ("Begins at", "ns"),
            ("Length", "ns"),
            ("After", "text"),
            ("Before", "text"),
        ],
        sort: 2,
        rows: gaps
            .iter()
            .zip(agents)
            .map(|(gap, agent)| {
                vec![
                    Cell::Text(agent),
                    Cell::Number((gap.start - timeline.origin()) as f64),
                    Cell::Number(gap.length as f64),
                    Cell::Text(timeline.name(gap.before)),
                    Cell::Text(timeline.name(gap.after)),
                ]
            })
            .collect(),
    }
}
