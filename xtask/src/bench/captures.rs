//! Captures of GPU calls, and their replay.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use rpd_tests::workloads;
use tempfile::TempDir;

use super::measure::{Bench, Mode, files_below, number_before};
use super::{Row, Settings, Target};

/// Standard output of a command, which must succeed.
fn output(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{command:?} ended with {}\n{said}", output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Captures a workload into `capture` in `directory`; returns the output of the workload.
fn capture(bench: &Bench, directory: &Path, options: &[&str], program: &[&str]) -> Result<String> {
    let [name, arguments @ ..] = program else {
        bail!("no workload");
    };
    let mut rpd = bench.rpd(directory);
    rpd.args(["capture", "--backend", "sim", "--quiet", "--overwrite"]);
    rpd.args(["-o", "capture"]).args(options);
    rpd.arg("--").arg(workloads::path(name)).args(arguments);
    output(&mut rpd)
}

/// The first number of this name in a JSON text.
fn figure(json: &str, name: &str) -> Result<f64> {
    let rest = json.split_once(&format!("\"{name}\":"));
    let number = rest.and_then(|(_, rest)| rest.trim_start().split([',', '\n', '}']).next());
    number
        .and_then(|number| number.trim().parse().ok())
        .with_context(|| format!("no number {name} in: {json}"))
}

/// The smallest of several runs: the one least disturbed.
fn least(mut run: impl FnMut() -> Result<f64>) -> Result<f64> {
    let mut least = f64::INFINITY;
    for _ in 0..3 {
        least = least.min(run()?);
    }
    Ok(least)
}

pub(super) fn captures(bench: &Bench, _: &Settings) -> Result<Vec<Row>> {
    let directory = TempDir::with_prefix("rpd-bench-")?;
    let directory = directory.path();
    let mut rows = calls(bench, directory)?;
    rows.extend(data(bench, directory)?);
    rows.extend(replay(bench, directory)?);
    rows.push(size(bench, directory)?);
    Ok(rows)
}

fn calls(bench: &Bench, directory: &Path) -> Result<Vec<Row>> {
    const CALLS: &str = "1000000";
    let bare = bench.per_call_of(Mode::Bare, "capture", &["calls", CALLS])?;
    let captured = least(|| {
        let said = capture(bench, directory, &[], &["capture", "calls", CALLS])?;
        number_before(&said, " ns per call")
    })?;
    let opened = least(|| {
        let start = Instant::now();
        let said = output(
            bench
                .rpd(directory)
                .args(["capture", "show", "capture", CALLS]),
        )?;
        if !said.contains("hipSetDevice") {
            bail!("rpd capture show printed {said}");
        }
        Ok(start.elapsed().as_secs_f64())
    })?;
    Ok(vec![
        Row::new("captured call without data, bare", bare, "ns", Target::None),
        Row::new(
            "captured call without data: added",
            captured - bare,
            "ns",
            Target::AtMost(300.0),
        ),
        Row::new(
            "capture of 1 M calls opened, one call shown",
            opened,
            "s",
            Target::AtMost(1.0),
        ),
    ])
}

/// Measures captures of data. There is little room for data that wait, so that the program goes as fast as its data are
/// hashed and stored. The time of the copies themselves is not counted: the rate is that of the capture.
fn data(bench: &Bench, directory: &Path) -> Result<Vec<Row>> {
    const MEBIBYTES: &str = "1024";
    const PER_MEBIBYTE: &str = " ns per MiB";
    let rate = |cost: f64| (1 << 20) as f64 / cost;
    let mut rows = Vec::new();
    for (what, different, target) in [("new", "64", 1.5), ("seen before", "1", 5.0)] {
        let arguments = ["upload", MEBIBYTES, different];
        let bare = least(|| {
            let measured = bench.run(Mode::Bare, "capture", &arguments)?;
            number_before(&measured.stdout, PER_MEBIBYTE)
        })?;
        let captured = least(|| {
            let program = [&["capture"], &arguments[..]].concat();
            let said = capture(bench, directory, &["--staging", "32M"], &program)?;
            number_before(&said, PER_MEBIBYTE)
        })?;
        rows.push(Row::new(
            format!("copy of host data, {what}, captured"),
            rate(captured),
            "GB/s",
            Target::None,
        ));
        rows.push(Row::new(
            format!("captured host data, {what}"),
            rate(captured - bare),
            "GB/s",
            Target::AtLeast(target),
        ));
    }
    Ok(rows)
}

fn replay(bench: &Bench, directory: &Path) -> Result<Vec<Row>> {
    const LAUNCHES: &str = "100000";
    let bare = bench.per_call_of(Mode::Bare, "launch-loop", &[LAUNCHES])?;
    capture(bench, directory, &[], &["launch-loop", LAUNCHES])?;
    let replayed = least(|| {
        let mut rpd = bench.rpd(directory);
        rpd.args([
            "replay",
            "--backend",
            "sim",
            "--quiet",
            "--json",
            "report",
            "capture",
        ]);
        output(&mut rpd)?;
        let report = std::fs::read_to_string(directory.join("report"))?;
        Ok(figure(&report, "duration")? / figure(&report, "launches")?)
    })?;
    Ok(vec![
        Row::new("launch in a loop, bare", bare, "ns", Target::None),
        Row::new("launch in a replay", replayed, "ns", Target::None),
        Row::new(
            "launches in a replay over those in a loop, rate",
            100.0 * bare / replayed,
            "%",
            Target::AtLeast(80.0),
        ),
    ])
}

fn size(bench: &Bench, directory: &Path) -> Result<Row> {
    capture(bench, directory, &[], &["vector-ops", "4", "50"])?;
    let mut files = Vec::new();
    files_below(&directory.join("capture"), &mut files)?;
    let mut stored = 0;
    for file in files {
        stored += std::fs::metadata(file)?.len();
    }
    let manifest = std::fs::read_to_string(directory.join("capture/capture.json"))?;
    let distinct = figure(&manifest, "distinct")?;
    Ok(Row::new(
        "capture of vector-ops 4 50 over its distinct data",
        stored as f64 / distinct,
        "times",
        Target::AtMost(2.0),
    ))
}
