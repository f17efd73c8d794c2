//! Speed of the simulated GPU, without recording.

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

/// Measures the cost of PC sampling: programs that spend their time in a kernel run in pairs with and without samples,
/// so that both have the same load of the machine.
pub(super) fn sampling(bench: &Bench) -> Result<Vec<Row>> {
    const PAIRS: usize = 7;
    let program = workloads::path("inside");
    let program = program.to_string_lossy();
    let host_trap = ["host_trap", "time", "1000"];
    let stochastic = ["stochastic", "cycles", "1048576"];
    let mut rows = Vec::new();
    for (what, gpu, [method, unit, interval]) in [
        ("host trap at 1 ms", "gfx90a", host_trap),
        ("stochastic at 2^20 cycles", "gfx942", stochastic),
    ] {
        for (kernel, rounds) in [("independent_chains", "4000"), ("memory_stream", "40")] {
            let arguments = ["1", &program, kernel, rounds];
            let plain = ["--sim-gpu", gpu, "--kernel-trace", "-f", "csv"];
            let sampled = [
                &plain[..],
                &["--pc-sampling-beta-enabled", "--pc-sampling-method", method],
                &["--pc-sampling-unit", unit],
                &["--pc-sampling-interval", interval],
            ]
            .concat();
            let took = |options| -> Result<f64> {
                bench
                    .run(Mode::Rpd(options), "exec-timer", &arguments)?
                    .timer("median")
            };
            let mut slower = Vec::new();
            for _ in 0..PAIRS {
                let alone = took(&plain)?;
                slower.push(took(&sampled)? / alone);
            }
            slower.sort_by(f64::total_cmp);
            rows.push(Row::new(
                format!("simulator: {kernel}, {what}, over no samples"),
                slower[PAIRS / 2],
                "times",
                Target::AtMost(1.2),
            ));
        }
    }
    Ok(rows)
}

/// Measures the lane-instructions per second on one thread, which a test of the interpreter prints.
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
