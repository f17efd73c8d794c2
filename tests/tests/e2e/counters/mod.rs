//! Hardware counters, end to end.

mod avail;
mod conformance;
mod convert;
mod everything;
mod input_files;
mod interruptions;
mod passes;
mod periods;
mod programs;
mod ranks;
mod refusals;
mod regions;
mod replay;
mod selection;
mod shapes;
mod sudden_ends;
mod values;
mod with_traces;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rpd_tests::outputs::Table;
use rpd_tests::run::{Outcome, Rpd};

/// The kernels of `vector-ops` in the order in which it launches them.
const VECTOR_OPS: [&str; 4] = [
    "void addition_kernel<float>(float*, float const*, float const*, int, int)",
    "subtract_kernel(float*, float const*, float const*, int, int)",
    "multiply_kernel(float*, float const*, float const*, int, int)",
    "divide_kernel(float*, float const*, float const*, int, int)",
];

/// A row of `counter_collection.csv`.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    dispatch: u64,
    agent: String,
    kernel: String,
    grid: u64,
    counter: String,
    value: f64,
    start: u64,
    end: u64,
}

/// The rows of a `counter_collection.csv`, from top to bottom.
fn rows_of(table: &Table) -> Vec<Row> {
    let text = |name| table.column(name).into_iter().map(str::to_owned);
    let (mut agent, mut kernel, mut counter) =
        (text("Agent_Id"), text("Kernel_Name"), text("Counter_Name"));
    let (dispatch, grid) = (table.numbers("Dispatch_Id"), table.numbers("Grid_Size"));
    let (start, end) = (
        table.numbers("Start_Timestamp"),
        table.numbers("End_Timestamp"),
    );
    let value = table.column("Counter_Value");
    (0..table.rows.len())
        .map(|row| Row {
            dispatch: dispatch[row],
            agent: agent.next().expect("a row"),
            kernel: kernel.next().expect("a row"),
            grid: grid[row],
            counter: counter.next().expect("a row"),
            value: value[row].parse().expect("a value is a number"),
            start: start[row],
            end: end[row],
        })
        .collect()
}

/// The rows of the run's only `counter_collection.csv`.
fn rows(outcome: &Outcome) -> Vec<Row> {
    rows_of(&outcome.csv("counter_collection"))
}

/// The values of a counter in the order of the dispatches.
fn values(rows: &[Row], counter: &str) -> Vec<f64> {
    rows.iter()
        .filter(|row| row.counter == counter)
        .map(|row| row.value)
        .collect()
}

/// The values of a counter by kernel name, each in the order of the dispatches.
fn by_kernel<'a>(rows: &'a [Row], counter: &str) -> BTreeMap<&'a str, Vec<f64>> {
    let mut kernels: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.counter == counter) {
        kernels
            .entry(row.kernel.as_str())
            .or_default()
            .push(row.value);
    }
    kernels
}

/// Counters and the numbers of the dispatches that have a row of them.
fn dispatches(rows: &[Row]) -> BTreeMap<&str, Vec<u64>> {
    let mut counters: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for row in rows {
        counters
            .entry(row.counter.as_str())
            .or_default()
            .push(row.dispatch);
    }
    counters
}

/// The counters' names in a table, each once.
fn counters_in(path: &Path) -> Vec<String> {
    let table = Table::read(path);
    let mut names: Vec<String> = table
        .column("Counter_Name")
        .into_iter()
        .map(str::to_owned)
        .collect();
    names.sort();
    names.dedup();
    names
}

/// `rpd --pmc <counters> -f csv`
fn pmc<'a>(counters: impl IntoIterator<Item = &'a str>) -> Rpd {
    Rpd::new(["--pmc"].into_iter().chain(counters).chain(["-f", "csv"]))
}

/// The value below the outermost key of a JSON output, for the run's only process.
fn json_of(path: &Path) -> serde_json::Value {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut document: serde_json::Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    document["rocprofiler-sdk-tool"][0].take()
}

/// The value below the outermost key of the run's only JSON output.
fn json(outcome: &Outcome) -> serde_json::Value {
    json_of(&outcome.file("_results.json"))
}

/// An `rpd` with `-i <name>`, the file lying in its directory.
fn with_input<'a>(
    name: &'a str,
    contents: &str,
    options: impl IntoIterator<Item = &'a str>,
) -> Rpd {
    let rpd = Rpd::new(["-i", name].into_iter().chain(options));
    fs::write(rpd.directory().join(name), contents).expect("an input file");
    rpd
}

/// A path below the output directory with the process's number and the host's name replaced by `PID` and `HOST`.
fn anonymous(file: &str) -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("a host name");
    let number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts = file.split('/').map(|part| match part.split_once('_') {
        _ if part == host.trim() => "HOST".to_owned(),
        Some((pid, rest)) if number(pid) => format!("PID_{rest}"),
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("/")
}

/// All output files in that form, sorted.
fn layout(outcome: &Outcome) -> Vec<String> {
    let mut files: Vec<String> = outcome.files().iter().map(|file| anonymous(file)).collect();
    files.sort();
    files
}
