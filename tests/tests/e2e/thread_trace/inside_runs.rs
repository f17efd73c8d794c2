//! PC samples and thread traces of whole runs: their sums, numbers and seeds, and cases that no other module has.

use std::collections::BTreeSet;
use std::fs;

use rpd_tests::outputs::Table;
use rpd_tests::run::{Outcome, Rpd};

use crate::thread_trace::runs::traced;

/// Checks thread-trace-1.
#[test]
fn a_missing_decoder_library_is_an_error_before_the_program_runs() {
    let directory = tempfile::tempdir().expect("a directory");
    let [first, second] = ["first", "second"].map(|name| directory.path().join(name));
    for path in [&first, &second] {
        fs::create_dir(path).expect("made");
    }
    let outcome = Rpd::new(["--att", "--att-library-path"])
        .option([&first, &second])
        .workload("inside", ["sleeper"])
        .expect_code(1);
    assert_eq!(outcome.stdout, "", "the program did not run");
    for path in [first, second] {
        let path = path.display().to_string();
        assert!(outcome.stderr.contains(&path), "{}", outcome.stderr);
    }
}

/// The lines of a trace's `stats_*.csv`, without the names of kernels.
fn stats(outcome: &Outcome) -> (Table, Vec<usize>) {
    let table = Table::read(&outcome.file("_dispatch_1.csv"));
    let lines = (0..table.rows.len()).filter(|row| !table.rows[*row][2].starts_with(';'));
    let lines = lines.collect();
    (table, lines)
}

/// Checks thread-trace-45.
#[test]
fn a_kernel_without_line_tables_has_no_source_in_its_trace() {
    let outcome = Rpd::new([
        "--att",
        "--att-target-cu",
        "0",
        "-f",
        "csv",
        "json",
        "rocpd",
    ])
    .workload("transpose", ["1"])
    .success();
    let (table, lines) = stats(&outcome);
    let sources = table.column("Source");
    assert!(lines.iter().all(|line| sources[*line].is_empty()));
    let hits = table.numbers("Hitcount");
    assert!(lines.iter().any(|line| hits[*line] > 0));
    let latency: u64 = table.numbers("Latency").iter().sum();
    assert!(latency > 0);
    assert!(!outcome.files_ending("code.json").is_empty());
    let database = outcome.file("results.db");
    let hot = Rpd::plain(["hot", database.to_str().expect("text")]).run();
    assert!(hot.success().stdout.contains("(no line)"));
}

/// Checks thread-trace-46.
#[test]
fn an_inlined_call_has_its_outer_places_in_the_trace() {
    let outcome = traced(&["-f", "csv"], &["two_phases", "2"]);
    let (table, lines) = stats(&outcome);
    let sources = table.column("Source");
    let inlined: BTreeSet<&str> = lines
        .iter()
        .map(|line| sources[*line])
        .filter(|source| source.contains(" -> "))
        .collect();
    let kernels = "tests/workloads/kernels";
    // Innermost first.
    let phase = format!("{kernels}/inside.hip:146 -> {kernels}/inside.hip:155");
    let item = format!("{kernels}/device.h:14 -> {kernels}/inside.hip:153");
    for source in [phase, item] {
        assert!(inlined.contains(source.as_str()), "{source}: {inlined:?}");
    }
    // Code that the compiler gives no line belongs to the line before it.
    assert!(
        !sources.iter().any(|source| source.ends_with(":0")),
        "{sources:?}"
    );
}

const STOCHASTIC: [&str; 9] = [
    "--sim-gpu",
    "gfx942",
    "--pc-sampling-beta-enabled",
    "--pc-sampling-method",
    "stochastic",
    "--pc-sampling-unit",
    "cycles",
    "--pc-sampling-interval",
    "1024",
];

/// Checks sampling-6.
#[test]
fn every_used_gpu_has_samples() {
    let outcome = Rpd::new(STOCHASTIC)
        .env("RPD_SIM_GPUS", "2")
        .option(["-f", "rocpd", "html"])
        .workload("inside", ["two_phases", "50", "8", "2"])
        .success();
    let database = outcome.database();
    // Each GPU has a code object of its own.
    let objects = database.rows("SELECT code_object_id, count(*) FROM pc_samples GROUP BY 1");
    assert_eq!(objects.len(), 2, "{objects:?}");
    let lines = database.rows("SELECT DISTINCT line FROM pc_lines WHERE line IN (137, 146)");
    assert_eq!(lines.len(), 2, "{lines:?}");
    let page = fs::read_to_string(outcome.file("report.html")).expect("readable");
    assert_eq!(page.matches("{\"agent\":").count(), 2);
}

/// A recording of all kernels of the workload with stochastic samples.
fn all_kernels_sampled() -> Outcome {
    Rpd::new(STOCHASTIC)
        .option(["--kernel-trace", "-f", "rocpd"])
        .workload("inside", ["all", "10"])
        .success()
}

/// Checks sampling-16 and sampling-23.
#[test]
fn samples_lie_within_their_dispatches_and_the_gpu() {
    let outcome = all_kernels_sampled();
    let database = outcome.database();
    let number = |query: &str| database.number(query);
    let all = number("SELECT count(*) FROM pc_samples");
    assert!(all > 500, "{all} samples");
    let outside = "SELECT count(*) FROM pc_samples s LEFT JOIN kernels k ON k.dispatch_id = s.dispatch_id \
        WHERE k.start IS NULL OR s.timestamp NOT BETWEEN k.start AND k.end";
    assert_eq!(number(outside), 0);
    let odd = "SELECT count(*) FROM pc_samples WHERE wave_count NOT BETWEEN 1 AND 32 OR chiplet >= 8 OR simd >= 4 \
        OR wave_slot >= 8";
    assert_eq!(number(odd), 0);
}

/// Checks sampling-16.
#[test]
fn samples_add_up_by_kernel_line_and_instruction() {
    let outcome = all_kernels_sampled();
    let database = outcome.database();
    let number = |query: &str| database.number(query);
    let all = number("SELECT count(*) FROM pc_samples");
    assert!(all > 500, "{all} samples");
    // By instruction, by line, and by whether an instruction was issued.
    for sums in [
        "SELECT sum(samples) FROM pc_instructions",
        "SELECT sum(samples) FROM pc_lines",
        "SELECT sum(samples) FROM rpd_pc_total",
        "SELECT (SELECT count(*) FROM pc_samples WHERE wave_issued = 1) + \
         (SELECT count(*) FROM pc_samples WHERE wave_issued = 0 AND stall_reason IS NOT NULL)",
    ] {
        assert_eq!(number(sums), all, "{sums}");
    }
    let path = outcome.file("results.db");
    let hot = |by: &str| {
        let file = outcome.out().join("hot.csv");
        let hot = ["hot", path.to_str().expect("text"), "--by", by, "-f", "csv"];
        let limits = [
            "--kernels",
            "0",
            "--lines",
            "0",
            "--instructions",
            "0",
            "-o",
        ];
        let _ = Rpd::plain(hot)
            .option(limits)
            .option([&file])
            .run()
            .success();
        let table = Table::read(&file);
        let sum = |column: &str| table.numbers(column).iter().sum::<u64>() as i64;
        assert_eq!(sum("Issued") + sum("Stalled"), sum("Samples"), "{by}");
        sum("Samples")
    };
    for by in ["kernel", "line", "instruction"] {
        assert_eq!(hot(by), all, "{by}");
    }
}

/// The shares are equal in functions that kernels call, too.
#[test]
fn annotate_compares_a_run_with_itself_without_a_difference() {
    let outcome = all_kernels_sampled();
    let path = outcome.file("results.db");
    let file = outcome.out().join("annotated.csv");
    let path = path.to_str().expect("text");
    let _ = Rpd::plain([
        "annotate",
        path,
        "two_phases",
        "--diff",
        path,
        "-f",
        "csv",
        "-o",
    ])
    .option([&file])
    .run()
    .success();
    let table = Table::read(&file);
    assert_eq!(
        table.column("Line_Percent_Before"),
        table.column("Line_Percent")
    );
    let functions: BTreeSet<&str> = table.column("Function").into_iter().collect();
    assert_eq!(functions.len(), 2, "{functions:?}");
    let shares = table.column("Percent").into_iter();
    let shares: f64 = shares.filter_map(|share| share.parse::<f64>().ok()).sum();
    assert!((shares - 100.0).abs() < 0.5, "{shares}");
}

/// Sleeping waves on all compute units: how many samples there are follows from the time of the dispatch alone.
/// Checks sampling-18.
#[test]
fn the_number_of_samples_follows_from_time_and_interval() {
    let sampled = |gpu: &str, method: &str, unit: &str, interval: &str, blocks: &str| {
        let outcome = Rpd::new(["--sim-gpu", gpu, "--kernel-trace", "-f", "csv", "rocpd"])
            .option(["--pc-sampling-beta-enabled", "--pc-sampling-method", method])
            .option([
                "--pc-sampling-unit",
                unit,
                "--pc-sampling-interval",
                interval,
            ])
            .workload("inside", ["sleeper", "5000", blocks])
            .success();
        let agents = outcome.csv("agent_info");
        let most = |column: &str| agents.numbers(column).into_iter().max().unwrap_or(0) as f64;
        let (units, mhz) = (most("Cu_Count"), most("Max_Engine_Clk_Fcompute"));
        let database = outcome.database();
        let number = |query: &str| database.number(query) as f64;
        let nanoseconds = number("SELECT sum(end - start) FROM kernels");
        let used =
            "SELECT count(*) FROM (SELECT DISTINCT chiplet, shader_engine, cu FROM pc_samples)";
        (
            number("SELECT count(*) FROM pc_samples"),
            nanoseconds,
            units,
            mhz,
            number(used),
        )
    };
    // Two workgroups of one wave on each of 104 units, a wave slot of 32 at each tick.
    let (samples, nanoseconds, units, ..) = sampled("gfx90a", "host_trap", "time", "50", "208");
    let expected = 2.0 * units * nanoseconds / 50_000.0 / 32.0;
    assert!(
        (samples - expected).abs() < 0.05 * expected + 3.0 * expected.sqrt(),
        "{samples}, {expected}"
    );
    // One sample of each busy unit for each interval, whether it has one wave or two.
    let (samples, nanoseconds, _, mhz, used) =
        sampled("gfx942", "stochastic", "cycles", "65536", "304");
    let expected = used * nanoseconds / 1000.0 * mhz / 65536.0;
    assert!(
        (samples - expected).abs() < 0.05 * expected + used,
        "{samples}, {expected}"
    );
}

/// Checks sampling-17.
#[test]
fn equal_seeds_give_equal_samples() {
    let samples = |seed: &str| {
        let outcome = Rpd::new(STOCHASTIC)
            .env("RPD_SIM_SEED", seed)
            .workload("inside", ["divergent_branch", "20"])
            .success();
        let query = "SELECT code_object_offset, exec_mask, shader_engine, cu, simd, wave_slot, workgroup_x, wave_issued, \
            stall_reason, wave_count FROM pc_samples ORDER BY timestamp, id";
        outcome.database().rows(query)
    };
    let first = samples("5");
    assert!(first.len() > 50, "{} samples", first.len());
    assert_eq!(first, samples("5"));
    assert_ne!(first, samples("6"));
}

/// A sleep of 8 units, in the trace of a wave that is alone.
/// Checks sampling-9.
#[test]
fn a_traced_sleep_takes_64_cycles_for_each_unit() {
    let outcome = traced(&["-f", "csv"], &["sleeper", "20", "1"]);
    let (table, lines) = stats(&outcome);
    let texts = table.column("Instruction");
    let sleep = lines
        .iter()
        .find(|line| texts[**line].starts_with("s_sleep"));
    let sleep = *sleep.expect("a sleep");
    let cycles = table.numbers("Latency")[sleep] / table.numbers("Hitcount")[sleep];
    assert!((512..=528).contains(&cycles), "{cycles} cycles");
}
