//! The data set of many ranks, and the queries of `docs/cluster.md` on it: their figures are those of `rpd summary` and of the
//! databases.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rpd_tests::outputs::{Database, Table};
use rpd_tests::run::{skipped, tool_for};
use rpd_tests::{install, workloads};
use serde_json::Value;

const RANKS: usize = 4;
/// The rank that makes more launches, and the one that is killed.
const LATE: usize = 2;
const KILLED: usize = 1;

fn rpd(directory: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(install::rpd());
    let output = command.args(arguments).current_dir(directory).output();
    let output = output.expect("rpd runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {said}");
    said
}

/// Records the ranks one after the other into `run`.
fn record(directory: &Path) {
    for rank in 0..RANKS {
        let mut command = Command::new(install::rpd());
        command
            .args(["--backend", "sim", "--kernel-trace", "--memory-copy-trace"])
            .args([
                "--memory-allocation-trace",
                "--hip-runtime-trace",
                "--marker-trace",
                "-d",
                "run",
                "--",
            ])
            .arg(workloads::path("ranks"))
            .args(["4", &LATE.to_string(), &KILLED.to_string()])
            .env("OMPI_COMM_WORLD_RANK", rank.to_string())
            .env("OMPI_COMM_WORLD_SIZE", RANKS.to_string())
            .current_dir(directory)
            .stdin(Stdio::null());
        let output = command.output().expect("rpd runs");
        assert_eq!(output.status.success(), rank != KILLED, "{output:?}");
    }
}

/// The files below a directory, relative to it, with their contents.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(next) = directories.pop() {
        for entry in fs::read_dir(&next).expect("a directory").flatten() {
            let path = entry.path();
            if path.is_dir() {
                directories.push(path);
            } else {
                let name = path
                    .strip_prefix(directory)
                    .expect("below")
                    .display()
                    .to_string();
                found.insert(name, fs::read(&path).expect("a file"));
            }
        }
    }
    found
}

#[test]
fn dataset_has_each_recording_once_however_often_it_is_added() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    record(directory);
    let add: &[&str] = &["convert", "run", "-f", "parquet", "--dataset", "traces"];
    let said = rpd(directory, add);
    assert!(said.contains(&format!("of {RANKS} recordings\n")), "{said}");
    let first = files(&directory.join("traces"));
    let of_kind = |kind: &str| first.keys().filter(|name| name.contains(kind)).count();
    for (part, count) in [
        ("/kind=kernels/", RANKS),
        ("/kind=regions/", RANKS),
        ("processes/", RANKS),
        ("/rank=2/", 5),
    ] {
        assert_eq!(of_kind(part), count, "{part}: {:?}", first.keys());
    }
    let said = rpd(directory, add);
    assert!(
        said.contains(&format!(
            "{RANKS} of them were there before and are replaced"
        )),
        "{said}"
    );
    assert!(
        files(&directory.join("traces")) == first,
        "the same files with the same contents"
    );

    // What a recording does not have any more goes: here all but the records of an empty time.
    rpd(directory, &[add, &["--start", "0", "--end", "1"]].concat());
    let left = files(&directory.join("traces"));
    assert!(
        left.keys().all(|name| name.starts_with("processes/")),
        "{:?}",
        left.keys()
    );
    rpd(directory, add);
    assert!(files(&directory.join("traces")) == first);
}

#[test]
fn dataset_is_refused_with_another_format() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("x.db"), "").expect("written");
    let mut command = Command::new(install::rpd());
    command.args([
        "convert",
        "x.db",
        "-f",
        "csv",
        "parquet",
        "--dataset",
        "traces",
    ]);
    let output = command
        .current_dir(directory.path())
        .output()
        .expect("rpd runs");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        said,
        "rpd: convert: --dataset is for -f parquet and no other format\n"
    );
}

/// The SQL of the page, in its order.
fn queries() -> Vec<String> {
    let page =
        fs::read_to_string(install::source_root().join("docs/cluster.md")).expect("the page");
    let blocks = page.split("```sql\n").skip(1);
    blocks
        .map(|block| block.split("```").next().unwrap_or_default().to_owned())
        .collect()
}

/// Reads queries as JSON from standard input, and writes their rows.
const DUCKDB: &str = "
import json, sys, duckdb
base = sys.argv[1]
connection = duckdb.connect()
for name in ('records', 'processes'):
    connection.execute(f\"CREATE VIEW {name} AS SELECT * FROM read_parquet('{base}/{name}/**/*.parquet', hive_partitioning = true)\")
print(json.dumps([connection.execute(query).fetchall() for query in json.load(sys.stdin)], default=float))
";

/// Reads queries as JSON from standard input, and writes the rows that Spark has in local mode.
const SPARK: &str = "
import json, sys
from pyspark.sql import SparkSession
base = sys.argv[1]
session = SparkSession.builder.master('local[2]').config('spark.ui.enabled', 'false').getOrCreate()
session.sparkContext.setLogLevel('ERROR')
for name in ('records', 'processes'):
    session.read.parquet(f'{base}/{name}').createOrReplaceTempView(name)
print(json.dumps([[list(row) for row in session.sql(query).collect()] for query in json.load(sys.stdin)], default=float))
";

/// Three of the queries as polars has them.
const POLARS: &str = "
import json, sys, polars
from polars import col
base = sys.argv[1]
records = polars.scan_parquet(f'{base}/records/**/*.parquet', hive_partitioning=True)
kernels = records.filter(col('kind') == 'kernels')
figures = [polars.len().alias('calls'), col('duration_ns').sum().alias('total_ns')]
frames = [
    kernels.group_by('name').agg(figures).sort('total_ns', 'name', descending=[True, False]),
    kernels.group_by('name', 'rank').agg(figures).sort('name', 'rank'),
    records.filter((col('kind') == 'regions') & (col('category') == 'MARKER_CORE_RANGE_API')).group_by('name').agg(
        figures + [col('duration_ns').max().alias('longest_ns')]).sort('name'),
]
print(json.dumps([frame.collect().rows() for frame in frames]))
";

/// The rows of each query, by an engine that Python has; `None` where that lacks it.
fn ask(
    check: &str,
    module: &str,
    script: &str,
    data: &Path,
    queries: &[String],
) -> Option<Vec<Vec<Vec<Value>>>> {
    let python = tool_for(check, "python3")?;
    let has = Command::new(&python)
        .args(["-c", &format!("import {module}")])
        .stderr(Stdio::null())
        .status();
    if !has.is_ok_and(|status| status.success()) {
        skipped(check, &format!("python3 lacks {module}"));
        return None;
    }
    let mut child = Command::new(python)
        .args(["-c", script])
        .arg(data)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("python starts");
    let text = serde_json::to_string(queries).expect("JSON");
    let mut input = child.stdin.take().expect("a pipe");
    // A script that ends early says why on standard error.
    let _ = input.write_all(text.as_bytes());
    drop(input);
    let output = child.wait_with_output().expect("ended");
    assert!(
        output.status.success(),
        "{module}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(serde_json::from_slice(&output.stdout).expect("rows"))
}

/// A record of a database, with the rank of its process.
struct Record {
    rank: u64,
    name: String,
    start: i64,
    end: i64,
    bytes: i64,
    address: i64,
}

/// The rows of a query over each database: name, start, end, bytes, address.
fn records(databases: &[PathBuf], sql: &str) -> Vec<Record> {
    let mut all = Vec::new();
    for path in databases {
        let database = Database::open(path);
        let rank =
            database.number("SELECT json_extract(extdata, '$.mpi_rank') FROM rocpd_info_process");
        let number = |text: &String| text.parse().unwrap_or(0);
        all.extend(database.rows(sql).iter().map(|row| Record {
            rank: rank as u64,
            name: row[0].clone(),
            start: number(&row[1]),
            end: number(&row[2]),
            bytes: number(&row[3]),
            address: number(&row[4]),
        }));
    }
    all
}

/// Columns of a table as rows of texts.
fn columns(table: &Table, names: &[&str]) -> Vec<Vec<String>> {
    let columns: Vec<Vec<&str>> = names.iter().map(|name| table.column(name)).collect();
    let rows = columns.first().map_or(0, Vec::len);
    (0..rows)
        .map(|row| {
            columns
                .iter()
                .map(|column| column[row].to_owned())
                .collect()
        })
        .collect()
}

/// Some columns of rows as texts.
fn texts(rows: &[Vec<Value>], places: &[usize]) -> Vec<Vec<String>> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        // Engines have sums as decimal numbers.
        other => match other.as_f64() {
            Some(number) if number.fract() == 0.0 => format!("{number:.0}"),
            Some(number) => number.to_string(),
            None => other.to_string(),
        },
    };
    let row = |row: &Vec<Value>| places.iter().map(|place| text(&row[*place])).collect();
    rows.iter().map(row).collect()
}

fn sorted(mut rows: Vec<Vec<String>>) -> Vec<Vec<String>> {
    rows.sort();
    rows
}

/// Total time of each rank with each kernel.
fn totals(kernels: &[Record]) -> BTreeMap<(String, u64), i64> {
    let mut totals = BTreeMap::new();
    for kernel in kernels {
        *totals
            .entry((kernel.name.clone(), kernel.rank))
            .or_default() += kernel.end - kernel.start;
    }
    totals
}

fn median(mut values: Vec<i64>) -> f64 {
    values.sort_unstable();
    let half = values.len() / 2;
    match values.len() % 2 {
        0 => (values[half - 1] + values[half]) as f64 / 2.0,
        _ => values[half] as f64,
    }
}

/// Periods of the records of a rank, joined where they overlap.
fn periods<'r>(records: impl Iterator<Item = &'r Record>) -> Vec<(i64, i64)> {
    let mut all: Vec<(i64, i64)> = records.map(|record| (record.start, record.end)).collect();
    all.sort_unstable();
    let mut joined: Vec<(i64, i64)> = Vec::new();
    for (start, end) in all {
        match joined.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => joined.push((start, end)),
        }
    }
    joined
}

#[test]
fn queries_of_the_page_give_the_figures_of_summaries_and_databases() {
    let check = "queries_of_the_page_give_the_figures_of_summaries_and_databases";
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    record(directory);
    rpd(
        directory,
        &["convert", "run", "-f", "parquet", "--dataset", "traces"],
    );
    rpd(directory, &["summary", "run", "-f", "csv", "-d", "tables"]);
    rpd(
        directory,
        &[
            "summary", "run", "--by", "rank", "-f", "csv", "-d", "tables",
        ],
    );
    let data = directory.join("traces");
    let queries = queries();
    assert_eq!(queries.len(), 12);
    let mut all = Vec::new();
    for (module, script) in [("duckdb", DUCKDB), ("pyspark", SPARK)] {
        if let Some(results) = ask(check, module, script, &data, &queries) {
            check_results(directory, module, &results);
            all.push(results);
        }
    }
    if let Some(results) = ask(check, "polars", POLARS, &data, &[]) {
        for engine in &all {
            for (own, place) in results.iter().zip([0, 1, 8]) {
                assert_eq!(own, &engine[place], "query {place}");
            }
        }
    }
    if let [first, others @ ..] = &all[..] {
        assert!(
            others.iter().all(|results| same(first, results)),
            "engines differ"
        );
    }
}

/// Whether two engines have the same results; numbers as exactly as floating point has them.
fn same(a: &[Vec<Vec<Value>>], b: &[Vec<Vec<Value>>]) -> bool {
    let cells = |results: &[Vec<Vec<Value>>]| {
        let rows = results.iter().flatten();
        rows.flatten().cloned().collect::<Vec<Value>>()
    };
    let (a, b) = (cells(a), cells(b));
    a.len() == b.len()
        && a.iter()
            .zip(&b)
            .all(|(a, b)| match (a.as_f64(), b.as_f64()) {
                (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * a.abs(),
                _ => a == b,
            })
}

fn check_results(directory: &Path, engine: &str, results: &[Vec<Vec<Value>>]) {
    let table = |name: &str| Table::read(&directory.join("tables").join(format!("{name}.csv")));
    let host = fs::read_dir(directory.join("run"))
        .expect("a directory")
        .next();
    let host = host.expect("one host").expect("an entry").path();
    let mut databases: Vec<PathBuf> = fs::read_dir(host)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    databases.sort();
    assert_eq!(databases.len(), RANKS);
    let of = |sql: &str| records(&databases, sql);
    let kernels = of("SELECT name, start, \"end\", 0, 0 FROM kernels");
    let copies = of("SELECT name, start, \"end\", size, 0 FROM memory_copies");
    let ranks: Vec<u64> = (0..RANKS as u64).collect();

    let figures = ["Name", "Calls", "DURATION (nsec)"];
    assert_eq!(
        texts(&results[0], &[0, 1, 2]),
        columns(&table("kernels_summary"), &figures),
        "{engine}"
    );
    let by_rank = columns(
        &table("kernels_summary_by_rank"),
        &["Name", "Rank", "Calls", "DURATION (nsec)"],
    );
    assert_eq!(
        sorted(texts(&results[1], &[0, 1, 2, 3])),
        sorted(by_rank),
        "{engine}"
    );
    let imbalance = columns(
        &table("kernels_imbalance_by_rank"),
        &["Name", "Ranks", "MIN (nsec)", "MAX (nsec)"],
    );
    assert_eq!(
        texts(&results[2], &[0, 1, 2, 4]),
        sorted(imbalance),
        "{engine}"
    );

    let totals = totals(&kernels);
    let late = totals.iter().filter_map(|((name, rank), total)| {
        let of_name = totals.iter().filter(|((other, _), _)| other == name);
        let median = median(of_name.map(|(_, total)| *total).collect());
        (*total as f64 > 1.25 * median)
            .then(|| vec![name.clone(), rank.to_string(), total.to_string()])
    });
    let late: Vec<Vec<String>> = late.collect();
    assert!(
        late.iter().any(|row| row[1] == LATE.to_string()),
        "{late:?}"
    );
    assert_eq!(texts(&results[3], &[0, 1, 2]), late, "{engine}");

    let busy = ranks.iter().map(|rank| {
        let periods = periods(kernels.iter().filter(|of| of.rank == *rank));
        let sum: i64 = periods.iter().map(|(start, end)| end - start).sum();
        vec![rank.to_string(), sum.to_string()]
    });
    assert_eq!(
        texts(&results[4], &[0, 2]),
        busy.collect::<Vec<_>>(),
        "{engine}"
    );

    let overlap = ranks.iter().map(|rank| {
        let of_kernels = periods(kernels.iter().filter(|of| of.rank == *rank));
        let of_copies = periods(copies.iter().filter(|of| of.rank == *rank));
        let common = |a: &(i64, i64), b: &(i64, i64)| (a.1.min(b.1) - a.0.max(b.0)).max(0);
        let pairs = of_kernels
            .iter()
            .flat_map(|a| of_copies.iter().map(move |b| common(a, b)));
        vec![rank.to_string(), pairs.sum::<i64>().to_string()]
    });
    assert_eq!(
        texts(&results[5], &[0, 1]),
        overlap.collect::<Vec<_>>(),
        "{engine}"
    );

    let mut sizes: BTreeMap<(String, u32), [i64; 3]> = BTreeMap::new();
    for copy in copies.iter().filter(|copy| copy.bytes > 0) {
        let sums = sizes
            .entry((copy.name.clone(), copy.bytes.ilog2()))
            .or_default();
        for (sum, value) in sums.iter_mut().zip([1, copy.bytes, copy.end - copy.start]) {
            *sum += value;
        }
    }
    assert!(!sizes.is_empty());
    let sizes = sizes.into_iter().map(|((name, power), sums)| {
        let sums = sums.iter().map(i64::to_string);
        [name, power.to_string()].into_iter().chain(sums).collect()
    });
    assert_eq!(
        texts(&results[6], &[0, 1, 2, 3, 4]),
        sizes.collect::<Vec<Vec<_>>>(),
        "{engine}"
    );

    let allocations = of(
        "SELECT type, start, \"end\", size, address FROM memory_allocations ORDER BY start, stack_id",
    );
    let mut allocated = Vec::new();
    for rank in &ranks {
        let (mut sum, mut live) = (0, BTreeMap::new());
        for change in allocations.iter().filter(|of| of.rank == *rank) {
            let before = live.insert(change.address, change.bytes).unwrap_or(0);
            sum += if change.name == "ALLOC" {
                change.bytes
            } else {
                -before
            };
            allocated.push(vec![
                rank.to_string(),
                change.start.to_string(),
                sum.to_string(),
            ]);
        }
    }
    assert!(allocated.len() > RANKS, "{allocated:?}");
    assert_eq!(texts(&results[7], &[0, 1, 2]), allocated, "{engine}");

    let markers = columns(
        &table("markers_summary"),
        &["Name", "Calls", "DURATION (nsec)", "MAX (nsec)"],
    );
    assert_eq!(
        texts(&results[8], &[0, 1, 2, 3]),
        sorted(markers),
        "{engine}"
    );

    let mut gaps: Vec<(i64, u64, i64)> = Vec::new();
    for rank in &ranks {
        let periods = periods(kernels.iter().filter(|of| of.rank == *rank));
        gaps.extend(
            periods
                .windows(2)
                .map(|pair| (pair[1].0 - pair[0].1, *rank, pair[0].1)),
        );
    }
    gaps.sort_by_key(|(gap, rank, from)| (std::cmp::Reverse(*gap), *rank, *from));
    let gaps = gaps.iter().take(10);
    let gaps =
        gaps.map(|(gap, rank, from)| vec![rank.to_string(), from.to_string(), gap.to_string()]);
    assert_eq!(
        texts(&results[9], &[0, 2, 3]),
        gaps.collect::<Vec<_>>(),
        "{engine}"
    );

    assert_eq!(
        texts(&results[10], &[0, 1, 2]),
        columns(&table("hip_summary"), &figures),
        "{engine}"
    );

    let overview = columns(&table("ranks"), &["Rank", "State", "Records"]);
    let killed = overview.into_iter().filter(|row| row[1] == "killed");
    let killed = killed.map(|row| vec![row[0].clone(), row[2].clone()]);
    assert_eq!(
        texts(&results[11], &[1, 3]),
        killed.collect::<Vec<_>>(),
        "{engine}"
    );
}
