//! The rows of the report: the programs that are run, and the computation of each figure.

use std::time::Instant;

use anyhow::Result;

use super::measure::{Bench, Mode};
use super::{Row, Settings, Target, examples, simulator, traces};

type Measure = fn(&Bench, &Settings) -> Result<Vec<Row>>;

/// Every row by the name that selects it.
pub(super) const ALL: &[(&str, Measure)] = &[
    ("call", call),
    ("stacks", stacks),
    ("launch", launch),
    ("direct", super::direct::direct),
    ("captures", super::captures::captures),
    ("counters", counters),
    ("jobs", jobs),
    ("idle", idle),
    ("start", start),
    ("sim", simulator::rows),
    ("load", load),
    ("exit", exit),
    ("spool", spool),
    ("writers", writers),
    ("open", |_, settings| examples::open(settings)),
    ("stats", |_, settings| examples::statistics(settings)),
    ("formats", |_, settings| examples::formats(settings)),
    ("dataset", |_, settings| examples::dataset(settings)),
    ("large", |_, settings| examples::large(settings)),
    ("view", |_, settings| examples::view(settings)),
    ("walks", |_, settings| examples::walks(settings)),
    ("python", |_, settings| examples::python_stacks(settings)),
    ("symbols", |_, settings| examples::symbols(settings)),
    ("att", |_, settings| examples::thread_traces(settings)),
    ("trace", |bench, _| traces::page(bench)),
    ("samples", |_, settings| examples::samples(settings)),
    ("sampling", |bench, _| simulator::sampling(bench)),
];

/// Numbers of SDK 1.0's callback tracing kinds, for the empty tool.
const HIP_RUNTIME_API: &str = "5";
const HIP_APIS_AND_DISPATCHES: &str = "5,6,12";

fn call(bench: &Bench, _: &Settings) -> Result<Vec<Row>> {
    const CALLS: u64 = 2_000_000;
    let bare = bench.per_call(Mode::Bare, "api-loop", CALLS)?;
    let floor = bench.per_call(Mode::EmptyTool(HIP_RUNTIME_API), "api-loop", CALLS)?;
    let ours = bench.per_call(
        Mode::Rpd(&["--hip-runtime-trace", "-f", "csv"]),
        "api-loop",
        CALLS,
    )?;
    Ok(vec![
        Row::new("API call, bare", bare, "ns", Target::None),
        Row::new("API call, empty tool", floor, "ns", Target::None),
        Row::new("API call, traced", ours, "ns", Target::None),
        Row::new(
            "API call, traced: added to the empty tool's",
            ours - floor,
            "ns",
            Target::AtMost(100.0),
        ),
        Row::new(
            "API call, traced over empty tool",
            ours / floor,
            "times",
            Target::AtMost(1.3),
        ),
    ])
}

/// Costs of other ways to take a stack, in ns. Measured once on another machine: for scale only.
const STACKS_OF_OTHERS: [(&str, f64); 5] = [
    ("cpptrace in a callback, 17 frames with names", 388_000.0),
    ("cpptrace in a callback, 67 frames with names", 2_670_000.0),
    (
        "Python frames through the GIL beside a busy thread, mean",
        267_000.0,
    ),
    ("framehop, 68 frames, warm", 700.0),
    ("a table of rules, 68 frames, walk alone", 440.0),
];

/// Frames of the program that make a stack of 30 with those of the runtime, the collector and the C library.
const DEPTH_OF_30: &str = "17";

fn stacks(bench: &Bench, _: &Settings) -> Result<Vec<Row>> {
    let cost = |options: &[&str]| {
        let arguments = ["time", "1000000", DEPTH_OF_30];
        bench.per_call_of(Mode::Rpd(options), "stacks", &arguments)
    };
    let plain = cost(&["--hip-runtime-trace", "-f", "csv"])?;
    let native = cost(&["--hip-runtime-trace", "-f", "csv", "--stacks", "native"])?;
    let size = |options: &[&str]| -> Result<f64> {
        let arguments = ["tree", "2000000", "60", "3000"];
        let measured = bench.run(Mode::Rpd(options), "stacks", &arguments)?;
        // Without `-f` the output is a database.
        Ok(measured.output_size(".db")? as f64 / 1e6)
    };
    let without = size(&["--hip-runtime-trace"])?;
    let with = size(&["--hip-runtime-trace", "--stacks", "native"])?;
    let mut rows = vec![
        Row::new(
            "API call, traced, 30 frames deep",
            plain,
            "ns",
            Target::None,
        ),
        Row::new(
            "API call, its native stack of 30 frames: added",
            native - plain,
            "ns",
            Target::AtMost(300.0),
        ),
        Row::new(
            "rocpd: 2 M calls with 3000 stacks of 60 frames: added",
            with - without,
            "MB",
            Target::AtMost(60.0),
        ),
    ];
    for (what, figure) in STACKS_OF_OTHERS {
        let what = format!("for scale: {what}");
        rows.push(Row::new(what, figure, "ns", Target::None));
    }
    Ok(rows)
}

fn launch(bench: &Bench, _: &Settings) -> Result<Vec<Row>> {
    const LAUNCHES: u64 = 20_000;
    let bare = bench.per_call(Mode::Bare, "launch-loop", LAUNCHES)?;
    let floor = bench.per_call(
        Mode::EmptyTool(HIP_APIS_AND_DISPATCHES),
        "launch-loop",
        LAUNCHES,
    )?;
    let options = ["--hip-trace", "--kernel-trace", "-f", "csv"];
    let ours = bench.per_call(Mode::Rpd(&options), "launch-loop", LAUNCHES)?;
    Ok(vec![
        Row::new("kernel launch, bare", bare, "ns", Target::None),
        Row::new("kernel launch, empty tool", floor, "ns", Target::None),
        Row::new("kernel launch, traced", ours, "ns", Target::None),
        Row::new(
            "kernel launch, traced over empty tool",
            ours / floor,
            "times",
            Target::AtMost(1.2),
        ),
    ])
}

/// Measures the cost of counting. Kernels wait for each other then, so the cost is stated beside that of a dispatch
/// alone.
fn counters(bench: &Bench, _: &Settings) -> Result<Vec<Row>> {
    const LAUNCHES: u64 = 5_000;
    let cost = |mode| bench.per_call(mode, "launch-loop", LAUNCHES);
    let bare = cost(Mode::Bare)?;
    let mut rows = vec![Row::new("dispatch, bare", bare, "ns", Target::None)];
    for (what, options) in [
        ("kernel trace", ["--kernel-trace", "-f", "csv"].as_slice()),
        ("one counter", &["--pmc", "SQ_WAVES", "-f", "csv"]),
        (
            "eight counters of several blocks",
            &[
                "--pmc",
                "SQ_WAVES SQ_INSTS_VALU SQ_INSTS_SALU TCC_HIT TCC_MISS FETCH_SIZE GRBM_COUNT GRBM_GUI_ACTIVE",
                "-f",
                "csv",
            ],
        ),
    ] {
        let ours = cost(Mode::Rpd(options))?;
        rows.push(Row::new(
            format!("dispatch, {what}: added"),
            ours - bare,
            "ns",
            Target::None,
        ));
    }
    Ok(rows)
}

fn jobs(bench: &Bench, _: &Settings) -> Result<Vec<Row>> {
    const JOBS: usize = 10_000;
    let directory = tempfile::TempDir::with_prefix("rpd-bench-")?;
    let job = r#"{"pmc": ["SQ_WAVES", "GRBM_COUNT"], "kernel_iteration_range": "[1-2],[3-4]"}"#;
    let text = format!(r#"{{"jobs": [{}]}}"#, vec![job; JOBS].join(", "));
    let mut rows = Vec::new();
    for suffix in ["json", "yaml"] {
        let file = directory.path().join(format!("jobs.{suffix}"));
        std::fs::write(&file, &text)?;
        let file = file.to_string_lossy();
        let start = Instant::now();
        bench.run(Mode::Rpd(&["-i", &file, "--echo"]), "true", &[])?;
        rows.push(Row::new(
            format!("{JOBS} jobs ({suffix}) read, checked and printed"),
            start.elapsed().as_secs_f64(),
            "s",
            Target::AtMost(1.0),
        ));
    }
    Ok(rows)
}

/// Runs of a program that waits for `rpd attach`, each beside one of the bare program: both have the same load of the machine.
const WAITING_RUNS: u32 = 8;

/// Cost of a program that `rpd idle` has prepared, and that nobody is attached to.
fn waiting(bench: &Bench, program: &str, count: u64, what: &str) -> Result<Row> {
    let (mut bare, mut waiting) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..WAITING_RUNS {
        let once = |mode| bench.best_of(1, mode, program, &[&count.to_string()]);
        bare = bare.min(once(Mode::Bare)?);
        waiting = waiting.min(once(Mode::Waiting)?);
    }
    Ok(Row::new(
        format!("{what}, prepared by rpd idle over bare"),
        waiting / bare,
        "times",
        Target::AtMost(1.002),
    ))
}

fn idle(bench: &Bench, _: &Settings) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (program, count, what) in [
        ("api-loop", 20_000_000, "API call"),
        ("launch-loop", 20_000, "kernel launch"),
    ] {
        let bare = bench.per_call(Mode::Bare, program, count)?;
        let idle = bench.per_call(Mode::Idle, program, count)?;
        rows.push(Row::new(
            format!("{what}, collector idle over bare"),
            idle / bare,
            "times",
            Target::AtMost(1.02),
        ));
        rows.push(waiting(bench, program, count, what)?);
    }
    Ok(rows)
}

fn start(bench: &Bench, _: &Settings) -> Result<Vec<Row>> {
    let mut rows = start_on(bench, "simulator")?;
    if let Some(rocm) = bench.on_rocm() {
        rows.extend(start_on(&rocm, "ROCm")?);
    }
    Ok(rows)
}

/// Measures the time to start a program, in pairs of runs, so that both of a pair have the same load of the machine.
/// Each run starts the program several times and has the median, because `rpd` itself reads the libraries from the disk
/// before the first start.
fn start_on(bench: &Bench, runtimes: &str) -> Result<Vec<Row>> {
    const PAIRS: usize = 21;
    const STARTS: &str = "7";
    let program = rpd_tests::workloads::path("api-loop");
    let arguments = [STARTS, &program.to_string_lossy(), "1"];
    let took = |mode| -> Result<f64> {
        Ok(bench.run(mode, "exec-timer", &arguments)?.timer("median")? * 1e3)
    };
    let mut bare = Vec::new();
    let mut added = Vec::new();
    for _ in 0..PAIRS {
        let alone = took(Mode::Bare)?;
        bare.push(alone);
        added.push(took(Mode::Rpd(&["--sys-trace", "-f", "csv"]))? - alone);
    }
    let median = |figures: &mut Vec<f64>| {
        figures.sort_by(f64::total_cmp);
        figures[figures.len() / 2]
    };
    Ok(vec![
        Row::new(
            format!("small GPU program on the {runtimes}, bare"),
            median(&mut bare),
            "ms",
            Target::None,
        ),
        Row::new(
            format!("small GPU program on the {runtimes}: added"),
            median(&mut added),
            "ms",
            Target::AtMost(15.0),
        ),
    ])
}

fn load(bench: &Bench, _: &Settings) -> Result<Vec<Row>> {
    let program = rpd_tests::workloads::path("no-gpu");
    let arguments = ["200", &program.to_string_lossy()];
    let median = |mode| bench.run(mode, "exec-timer", &arguments)?.timer("median");
    let bare = median(Mode::Bare)? * 1e3;
    let ours = median(Mode::Rpd(&["--sys-trace", "-f", "csv"]))? * 1e3;
    Ok(vec![
        Row::new("program without GPU, bare", bare, "ms", Target::None),
        Row::new(
            "program without GPU: added by the collector",
            ours - bare,
            "ms",
            Target::AtMost(3.0),
        ),
    ])
}

fn exit(bench: &Bench, settings: &Settings) -> Result<Vec<Row>> {
    let program = rpd_tests::workloads::path("api-loop")
        .to_string_lossy()
        .into_owned();
    let records = settings.records.to_string();
    let delay = |mode| -> Result<f64> {
        let measured = bench.run(mode, "exec-timer", &["1", &program, &records, "main-ended"])?;
        Ok((measured.timer("reaped at")? - measured.number_in("main-ended")?) * 1e3)
    };
    let bare = delay(Mode::Bare)?;
    let ours = delay(Mode::Rpd(&["--hip-runtime-trace", "-f", "csv"]))?;
    let what = format!("target's exit, {records} records: added");
    Ok(vec![Row::new(
        what,
        ours - bare,
        "ms",
        Target::AtMost(50.0),
    )])
}

fn spool(bench: &Bench, _: &Settings) -> Result<Vec<Row>> {
    const CALLS: u64 = 1_000_000;
    let program = rpd_tests::workloads::path("api-loop");
    // Looked at when the program has ended and the front end has not yet turned the spool into files.
    let script = format!(
        "'{}' {CALLS} && du -sb \"$RPD_SPOOL\" > spool-size",
        program.display()
    );
    let measured = bench.run(
        Mode::Rpd(&["--hip-runtime-trace", "-f", "csv"]),
        "sh",
        &["-c", &script],
    )?;
    // api-loop warms up with a tenth of its calls.
    let per_record = measured.number_in("spool-size")? / (CALLS + CALLS / 10) as f64;
    Ok(vec![Row::new(
        "spool, one API record without arguments",
        per_record,
        "bytes",
        Target::AtMost(64.0),
    )])
}

fn writers(bench: &Bench, settings: &Settings) -> Result<Vec<Row>> {
    let program = rpd_tests::workloads::path("api-loop")
        .to_string_lossy()
        .into_owned();
    let calls = settings.records.to_string();
    // As in the row spool, the program warms up with a tenth of its calls.
    let records = (settings.records + settings.records / 10) as f64;
    let mut rows = Vec::new();
    for (format, target) in [("rocpd", 2.0), ("csv", 2.0)] {
        let options = ["--hip-runtime-trace", "-f", format];
        let measured = bench.run(Mode::Rpd(&options), "exec-timer", &["1", &program, &calls])?;
        // From the end of the program to the end of `rpd`, which only writes by then.
        let seconds = measured.ended - measured.timer("reaped at")?;
        let what = format!("{format}: session opened and written, API records");
        rows.push(Row::new(
            what,
            records / seconds / 1e6,
            "M/s",
            Target::AtLeast(target),
        ));
        if format == "rocpd" {
            let bytes = measured.output_size(".db")? as f64 / records;
            rows.push(Row::new(
                "rocpd: size of an API record",
                bytes,
                "bytes",
                Target::AtMost(60.0),
            ));
        }
    }
    Ok(rows)
}
