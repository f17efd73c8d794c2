//! Rows measured by the crates' own examples, on records they make up.

use std::process::Command;

use anyhow::{Context, Result};
use rpd_tests::install;

use super::{Row, Settings, Target};
use crate::shell;

/// Runs an example and returns what it printed.
fn example(settings: &Settings, package: &str, name: &str, arguments: &[&str]) -> Result<String> {
    let mut cargo = shell::cargo();
    cargo.args(["build", "--quiet", "--example", name]);
    let profile = if settings.release {
        // Some of what is measured is turned on by programs that use the package, which are not built here.
        cargo.args(["--release", "--package", package, "--all-features"]);
        "release"
    } else {
        cargo.arg(install::SAME_DEPENDENCIES);
        "debug"
    };
    shell::run(&mut cargo)?;
    let program = install::target_dir()
        .join(profile)
        .join("examples")
        .join(name);
    shell::output(Command::new(program).args(arguments))
}

/// The number that stands before `after` in `text`.
fn number_before(text: &str, after: &str) -> Result<f64> {
    text.split_once(after)
        .and_then(|(before, _)| before.rsplit([' ', ',', '(']).find(|word| !word.is_empty()))
        .and_then(|word| word.parse().ok())
        .with_context(|| format!("no number before `{after}` in `{text}`"))
}

/// The example that is a library, loaded by the Python on the path.
pub(super) fn python_stacks(settings: &Settings) -> Result<Vec<Row>> {
    let mut cargo = shell::cargo();
    cargo.args(["build", "--quiet", "--package", "rpd-stacks", "--examples"]);
    if settings.release {
        cargo.arg("--release");
    }
    shell::run(&mut cargo)?;
    let library = install::target_dir()
        .join(if settings.release { "release" } else { "debug" })
        .join("examples/libstacks_probe.so");
    let script = install::source_root().join("rpd-stacks/tests/python/bench.py");
    let text = shell::output(
        Command::new("python3")
            .arg(script)
            .env("RPD_STACKS_PROBE", library),
    )?;
    let lines = text.lines().filter_map(|line| line.split_once(": "));
    lines
        .map(|(name, figure)| {
            let nanoseconds = number_before(figure, " ns")?;
            Ok(Row::new(name, nanoseconds, "ns", Target::AtMost(500.0)))
        })
        .collect()
}

/// Looks up distinct addresses of the collector, a library of about 20 MB with lines.
pub(super) fn symbols(settings: &Settings) -> Result<Vec<Row>> {
    let library = install::target_dir()
        .join(if settings.release { "release" } else { "debug" })
        .join("librpd_collect.so");
    let library = library.to_str().context("a path that is not text")?;
    let text = example(
        settings,
        "rpd-symbols",
        "symbolize-many",
        &[library, "5000"],
    )?;
    Ok(vec![
        Row::new(
            "symbols of 5000 addresses: size of the library",
            number_before(&text, " MB)")?,
            "MB",
            Target::None,
        ),
        Row::new(
            "symbols of 5000 addresses",
            number_before(&text, " ms,")?,
            "ms",
            Target::AtMost(500.0),
        ),
    ])
}

/// Number of records of the rows whose target is stated for this number.
const RECORDS: &str = "10000000";

pub(super) fn open(settings: &Settings) -> Result<Vec<Row>> {
    let text = example(settings, "rpd-core", "open-throughput", &[RECORDS])?;
    Ok(vec![
        Row::new(
            "session open, 10 M records",
            number_before(&text, " s (")?,
            "s",
            Target::AtMost(1.5),
        ),
        Row::new(
            "session open, 10 M records: peak memory",
            number_before(&text, " MiB (")?,
            "MiB",
            Target::AtMost(256.0),
        ),
    ])
}

pub(super) fn statistics(settings: &Settings) -> Result<Vec<Row>> {
    let text = example(settings, "rpd-summary", "statistics", &[RECORDS])?;
    Ok(vec![Row::new(
        "statistics, 10 M records",
        number_before(&text, " s")?,
        "s",
        Target::AtMost(1.0),
    )])
}

/// Decoders of thread traces: for each generation, without code and with it.
pub(super) fn thread_traces(settings: &Settings) -> Result<Vec<Row>> {
    let text = example(settings, "rpd-att", "throughput", &["2000"])?;
    let mut rows = Vec::new();
    for line in text.lines() {
        let Some((name, figures)) = line.split_once(": ") else {
            continue;
        };
        let target = if name.contains("stitched") {
            40.0
        } else {
            150.0
        };
        rows.push(Row::new(
            format!("thread trace {name}, 2 GB"),
            number_before(figures, " MB/s")?,
            "MB/s",
            Target::AtLeast(target),
        ));
        rows.push(Row::new(
            format!("thread trace {name}, 2 GB: peak memory"),
            number_before(figures, " MiB")?,
            "MiB",
            Target::AtMost(256.0),
        ));
    }
    Ok(rows)
}

/// PC samples into a database, and added up by source line from the recording and from the database's sums.
pub(super) fn samples(settings: &Settings) -> Result<Vec<Row>> {
    let samples = settings.records.to_string();
    let text = example(settings, "rpd-formats", "sample-throughput", &[&samples])?;
    let line = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.with_context(|| format!("no line `{name}` in `{text}`"))
    };
    let written = number_before(line("into a database: ")?, " M samples/s")?;
    let summed = number_before(line("by line, of a recording: ")?, " M samples/s")?;
    let read = number_before(line("by line, of a database: ")?, " s")?;
    Ok(vec![
        Row::new(
            "PC samples into a database",
            written,
            "M/s",
            Target::AtLeast(2.0),
        ),
        Row::new(
            "100 M PC samples by line, of a recording, at this rate",
            100.0 / summed,
            "s",
            Target::AtMost(5.0),
        ),
        Row::new(
            "PC samples by line, of a database",
            read,
            "s",
            Target::AtMost(5.0),
        ),
    ])
}

/// Adds up the time of each kernel and rank of the data set whose directory is given, and prints seconds.
const BY_KERNEL_AND_RANK: &str = "
import sys, time, duckdb
begin = time.monotonic()
duckdb.sql(f\"SELECT name, rank, count(*), sum(duration_ns) FROM read_parquet('{sys.argv[1]}/records/**/*.parquet', \"
    \"hive_partitioning = true) WHERE kind = 'kernels' GROUP BY name, rank\").fetchall()
print(time.monotonic() - begin)
";

/// A data set of many ranks: how fast it is written, and summed up by an engine.
pub(super) fn dataset(settings: &Settings) -> Result<Vec<Row>> {
    const RANKS: &str = "100";
    const RECORDS: &str = "100000";
    let directory = tempfile::tempdir()?;
    let path = directory
        .path()
        .to_str()
        .context("a path that is not text")?;
    let arguments = [RANKS, RECORDS, path];
    let text = example(settings, "rpd-formats", "dataset-throughput", &arguments)?;
    let mut rows = vec![
        Row::new(
            "data set of 100 ranks, 10 M records",
            number_before(&text, " M records/s")?,
            "M/s",
            Target::AtLeast(3.0),
        ),
        Row::new(
            "data set of 100 ranks: bytes of a record",
            number_before(&text, " bytes a record")?,
            "B",
            Target::None,
        ),
    ];
    let mut python = Command::new("python3");
    python.args(["-c", BY_KERNEL_AND_RANK, path]);
    match shell::output(&mut python) {
        Ok(seconds) => rows.push(Row::new(
            "1000 ranks by kernel and rank in DuckDB, at the rate of 100",
            10.0 * seconds.trim().parse::<f64>()?,
            "s",
            Target::AtMost(10.0),
        )),
        Err(error) => println!("skipped: by kernel and rank in DuckDB: {error:#}"),
    }
    Ok(rows)
}

/// Names of the lines that the example prints, and what each writer has to hold in M records/s.
const WRITERS: [(&str, f64); 6] = [
    ("csv", 2.0),
    ("rocpd", 2.0),
    ("rocpd, arguments", 1.0),
    ("json", 1.0),
    ("pftrace", 2.0),
    ("otf2", 1.5),
];

pub(super) fn formats(settings: &Settings) -> Result<Vec<Row>> {
    let records = settings.records.to_string();
    let text = example(settings, "rpd-formats", "write-throughput", &[&records])?;
    let mut rows = Vec::new();
    for line in text.lines() {
        let Some((name, figures)) = line.split_once(": ") else {
            continue;
        };
        // A new writer is shown without a target, until it has one.
        let target = WRITERS
            .iter()
            .find(|(writer, _)| *writer == name)
            .map_or(Target::None, |(_, speed)| Target::AtLeast(*speed));
        rows.push(Row::new(
            format!("writer {name}"),
            number_before(figures, " M records/s")?,
            "M/s",
            target,
        ));
    }
    Ok(rows)
}

/// Peak memory of every step with a recording, however large, in MiB.
const PEAK: f64 = 256.0;

pub(super) fn large(settings: &Settings) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for millions in &settings.millions {
        for &has_texts in &settings.texts {
            let records = (millions * 1_000_000).to_string();
            let directory = install::target_dir();
            let directory = directory
                .to_str()
                .context("the path of target/ is not text")?;
            let mut arguments = vec![records.as_str(), directory];
            if has_texts {
                arguments.insert(0, "--texts");
            }
            arguments.extend(settings.steps.iter().map(String::as_str));
            let text = example(settings, "rpd-cli", "large-recordings", &arguments)?;
            let recorded = if has_texts {
                format!("{millions} M records, own texts")
            } else {
                format!("{millions} M records")
            };
            for line in text.lines() {
                let (step, figures) = line.split_once(": ").unwrap_or((line, ""));
                rows.extend(large_step(format!("{recorded}, {step}"), figures));
            }
        }
    }
    Ok(rows)
}

/// Rate, processor time and peak memory of a step. One that failed has no figures, and misses its target.
fn large_step(what: String, figures: &str) -> [Row; 3] {
    if figures.starts_with("failed") {
        // The other steps go on, and are worth their figures.
        eprintln!("{what}: {figures}");
    }
    let figure = |unit| number_before(figures, unit).unwrap_or(f64::NAN);
    let rate = figure(" M records/s");
    let peak = figure(" MiB");
    let time = figure(" s of processor time");
    [
        Row::new(what.clone(), rate, "M/s", Target::None),
        Row::new(format!("{what}: processor time"), time, "s", Target::None),
        Row::new(what + ": peak memory", peak, "MiB", Target::AtMost(PEAK)),
    ]
}

/// Names of the lines that the example prints, and the most that each may take in nanoseconds.
const WALKS: [(&str, f64); 5] = [
    ("first sight of a program counter", 5000.0),
    ("30 frames, warm", 300.0),
    ("68 frames, memoised", 200.0),
    ("5000 frames, memoised", 20_000.0),
    ("5000 frames, first walk of a thread", 100_000.0),
];

pub(super) fn walks(settings: &Settings) -> Result<Vec<Row>> {
    let text = example(settings, "rpd-stacks", "native-stacks", &[])?;
    let mut rows = Vec::new();
    for line in text.lines() {
        let Some((name, figure)) = line.split_once(": ") else {
            continue;
        };
        let target = WALKS
            .iter()
            .find(|(walk, _)| *walk == name)
            .map_or(Target::None, |(_, most)| Target::AtMost(*most));
        rows.push(Row::new(
            format!("native stack, {name}"),
            number_before(figure, " ns")?,
            "ns",
            target,
        ));
    }
    Ok(rows)
}

/// Records of the timeline whose tiles are made and read.
const VIEWED: &str = "10000000";

pub(super) fn view(settings: &Settings) -> Result<Vec<Row>> {
    let text = example(settings, "rpd-view", "tiles", &[VIEWED])?;
    let rows = [
        (
            "tiles of a timeline, made",
            " million records/s",
            "M/s",
            Target::AtLeast(5.0),
        ),
        (
            "tiles of a timeline, stored",
            " bytes a record",
            "bytes",
            Target::AtMost(12.0),
        ),
        (
            "tiles of a timeline: peak memory",
            " MB at most",
            "MB",
            Target::AtMost(500.0),
        ),
        (
            "opening tiles, and those of the first picture",
            " ms first",
            "ms",
            Target::AtMost(1000.0),
        ),
        (
            "one tile of records, inflated",
            " ms a tile",
            "ms",
            Target::AtMost(50.0),
        ),
    ];
    rows.into_iter()
        .map(|(what, after, unit, target)| {
            Ok(Row::new(what, number_before(&text, after)?, unit, target))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::number_before;

    #[test]
    fn bench_reads_numbers_from_example_output() {
        let text = "10000000 records in 0.940 s (10.6 M/s), peak 774 MiB (3 before)";
        assert_eq!(number_before(text, " s (").ok(), Some(0.94));
        assert_eq!(number_before(text, " MiB (").ok(), Some(774.0));
        assert!(number_before(text, " bytes").is_err());
    }
}
