//! Cost of recording through the runtimes' own dispatch tables, over the bare program.

use anyhow::Result;

use super::measure::{Bench, Mode, RUNS};
use super::{Row, Settings, Target};

/// Cost of one kind of call or work: bare, and recorded through both providers.
struct Cost {
    what: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
    options: &'static [&'static str],
    /// Most that the direct provider may add, in ns.
    target: f64,
    /// Runs of which the best counts.
    runs: u32,
}

/// Number of runs of a program whose figure is the time between two of its threads: the thread that waits for a copy
/// and the one that makes it. Where there are two cores the system places both on one of them in most runs, and each
/// copy takes up to ten times as long.
const HANDED_OVER: u32 = 12;

const COSTS: [Cost; 3] = [
    Cost {
        what: "API call",
        program: "api-loop",
        arguments: &["2000000"],
        options: &["--hip-runtime-trace", "-f", "csv"],
        target: 60.0,
        runs: RUNS,
    },
    Cost {
        what: "dispatch",
        program: "hsa-queues",
        arguments: &["batch", "64000"],
        options: &["--kernel-trace", "-f", "csv"],
        target: 800.0,
        runs: RUNS,
    },
    Cost {
        what: "copy",
        program: "hsa-queues",
        arguments: &["copies", "2000"],
        options: &["--memory-copy-trace", "-f", "csv"],
        target: 1000.0,
        runs: HANDED_OVER,
    },
];

/// Rows of light recordings, with the largest added time in ns, and the runs of which the best counts.
const LIGHT: [(&str, &str, &[&str], f64, u32); 3] = [
    ("API call", "api-loop", &["20000000"], 0.5, RUNS),
    ("dispatch", "hsa-queues", &["batch", "64000"], 800.0, RUNS),
    (
        "copy",
        "hsa-queues",
        &["copies", "2000"],
        1000.0,
        HANDED_OVER,
    ),
];

/// Target for the rate at which dispatches of eight threads are recorded, with signals of the program's own, per
/// second.
const RATE: f64 = 100_000.0;

/// Calls of HIP that give the device work: the most that the direct provider may add to one, or the most times as long
/// that one may take.
const CALLS: [(&str, &[&str], Target); 3] = [
    ("launch", &["launch", "1000", "50"], Target::AtMost(800.0)),
    ("copy", &["copy", "100", "50"], Target::AtMost(1000.0)),
    (
        "launch of a graph of 8192 nodes",
        &["graph", "8192", "20"],
        Target::AtMost(1.2),
    ),
];

/// Options that have the direct provider record kernels and copies one by one.
const ONE_BY_ONE: [&str; 6] = [
    "--provider",
    "direct",
    "--kernel-trace",
    "--memory-copy-trace",
    "-f",
    "csv",
];

pub(super) fn direct(bench: &Bench, _: &Settings) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for cost in COSTS {
        let through = |provider| {
            let options = [&["--provider", provider], cost.options].concat();
            bench.best_of(cost.runs, Mode::Rpd(&options), cost.program, cost.arguments)
        };
        // The target is for what recording adds: how fast the program itself is depends on the machine.
        let bare = bench.best_of(cost.runs, Mode::Bare, cost.program, cost.arguments)?;
        let (sdk, direct) = (through("sdk")?, through("direct")?);
        let what = cost.what;
        rows.extend([
            Row::new(format!("{what}, bare"), bare, "ns", Target::None),
            Row::new(
                format!("{what}, recorded through the SDK: added"),
                sdk - bare,
                "ns",
                Target::None,
            ),
            Row::new(
                format!("{what}, recorded without it: added"),
                direct - bare,
                "ns",
                Target::AtMost(cost.target),
            ),
        ]);
    }
    let bare = bench.per_call(Mode::Bare, "api-loop", 20_000_000)?;
    // A kind that the program has none of: the provider is in the process, and no function is replaced.
    let nothing = ["--provider", "direct", "--rccl-trace", "-f", "csv"];
    let loaded = bench.per_call(Mode::Rpd(&nothing), "api-loop", 20_000_000)?;
    rows.push(Row::new(
        "API call, provider loaded and nothing selected, over bare",
        loaded / bare,
        "times",
        Target::AtMost(1.01),
    ));
    for (what, program, arguments, most, runs) in LIGHT {
        let cost = |mode| bench.best_of(runs, mode, program, arguments);
        let bare = cost(Mode::Bare)?;
        let light = cost(Mode::Rpd(&["--light", "-f", "csv"]))?;
        rows.push(Row::new(
            format!("{what}, light recording: added"),
            light - bare,
            "ns",
            Target::AtMost(most),
        ));
    }
    let threads = ["threads", "200000"];
    for (what, mode, target) in [
        ("bare", Mode::Bare, Target::None),
        (
            "recorded",
            Mode::Rpd(&ONE_BY_ONE),
            Target::AtLeast(RATE / 1e3),
        ),
        (
            "light recording",
            Mode::Rpd(&["--light", "-f", "csv"]),
            Target::AtLeast(RATE / 1e3),
        ),
    ] {
        let took = bench.per_call_of(mode, "hsa-queues", &threads)?;
        rows.push(Row::new(
            format!("dispatches of 8 threads, {what}"),
            1e6 / took,
            "k/s",
            target,
        ));
    }
    rows.extend(calls_on(bench, "simulator")?);
    if let Some(rocm) = bench.on_rocm() {
        rows.extend(calls_on(&rocm, "ROCm")?);
        let cost = |mode| rocm.per_call(mode, "api-loop", 2_000_000);
        let bare = cost(Mode::Bare)?;
        let direct = cost(Mode::Rpd(&[
            "--provider",
            "direct",
            "--hip-runtime-trace",
            "-f",
            "csv",
        ]))?;
        rows.push(Row::new(
            "ROCm: API call, recorded without the SDK: added",
            direct - bare,
            "ns",
            Target::AtMost(60.0),
        ));
    }
    Ok(rows)
}

/// Processor time of calls that give the device work, on one of the runtimes.
fn calls_on(bench: &Bench, runtimes: &str) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (what, arguments, target) in CALLS {
        let cost = |mode| bench.per_call_of(mode, "call-cost", arguments);
        let bare = cost(Mode::Bare)?;
        rows.push(Row::new(
            format!("{runtimes}: HIP {what}, processor time"),
            bare,
            "ns",
            Target::None,
        ));
        for (how, options) in [
            ("recorded without the SDK", &ONE_BY_ONE[..]),
            ("light recording", &["--light", "-f", "csv"]),
        ] {
            let recorded = cost(Mode::Rpd(options))?;
            // A graph has a ratio as its target, single calls have the time that recording adds.
            let (figure, unit) = match arguments[0] {
                "graph" => (recorded / bare, "times"),
                _ => (recorded - bare, "ns"),
            };
            let added = if unit == "ns" { "added" } else { "over bare" };
            rows.push(Row::new(
                format!("{runtimes}: HIP {what}, {how}: {added}"),
                figure,
                unit,
                target,
            ));
        }
    }
    Ok(rows)
}
