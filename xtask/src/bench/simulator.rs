//! How fast the simulated GPU is, by itself.

use anyhow::{Context, Result};
use rpd_tests::workloads;

use super::measure::{Bench, Mode};
use super::{Row, Settings, Target};
use crate::shell;

pub(super) fn rows(bench: &Bench, settings: &Settings) -> Result<Vec<Row>> {
    let mut rows = interpreter(settings)?;
    // Four kernels on 65536 elements, four times.
    let program = workloads::path("vector-ops");
    let arguments = ["5", &program.to_string_lossy(), "1", "4"];
    let vectors = bench.run(Mode::Bare, "exec-timer", &arguments)?;
    let program = workloads::path("api-loop");
    let arguments = ["21", &program.to_string_lossy(), "1"];
    let start = bench.run(Mode::Bare, "exec-timer", &arguments)?;
    rows.extend([
        Row::new(
            "simulator: vector-ops, 1 M elements",
            vectors.timer("median")?,
            "s",
            Target::AtMost(1.0),
        ),
        Row::new(
            "simulator: start to end of a small program",
            start.timer("median")? * 1e3,
            "ms",
            Target::AtMost(30.0),
        ),
    ]);
    Ok(rows)
}

/// Lane-instructions on one thread, as a test of the interpreter prints them.
fn interpreter(settings: &Settings) -> Result<Vec<Row>> {
    let mut cargo = shell::cargo();
    cargo.args(["test", "--quiet", "--package", "rpd-gfx", "--lib"]);
    if settings.release {
        cargo.arg("--release");
    }
    cargo.args(["isa::tests::throughput", "--", "--ignored", "--nocapture"]);
    let text = shell::output(&mut cargo)?;
    let kinds = [
        ("fma_bound", "arithmetic", 3.0),
        ("memory_bound", "memory", 1.0),
    ];
    (kinds.into_iter())
        .map(|(kernel, what, target)| {
            let line = text.lines().find(|line| line.starts_with(kernel));
            let figure = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
            Ok(Row::new(
                format!("simulator: {what}, lane-instructions a second and core"),
                figure.with_context(|| format!("no figure of {kernel} in `{text}`"))?,
                "G/s",
                Target::AtLeast(target),
            ))
        })
        .collect()
}
