//! PC samples of real programs on the simulated GPU, and what is made of them.

use std::collections::BTreeMap;

use rpd_tests::outputs::{Database, Table};
use rpd_tests::run::{Outcome, Rpd};
use serde_json::Value;

const HOST_TRAP: [&str; 7] = [
    "--pc-sampling-beta-enabled",
    "--pc-sampling-method",
    "host_trap",
    "--pc-sampling-unit",
    "time",
    "--pc-sampling-interval",
    "10",
];

fn sampled(more: &[&str], workload: &[&str]) -> Outcome {
    Rpd::new(HOST_TRAP)
        .option(more)
        .workload("inside", workload)
        .success()
}

/// The columns and keys of the original, and what its validators check of host trap samples.
/// Checks sampling-20, sampling-21 and sampling-23.
#[test]
fn host_trap_sample_files_have_the_columns_of_rocprofv3() {
    let outcome = sampled(&["-f", "csv", "json", "rocpd"], &["lane_mask", "200"]);
    let table = Table::read(&outcome.file("pc_sampling_host_trap.csv"));
    let rows = &table.rows;
    assert_eq!(
        table.columns,
        [
            "Sample_Timestamp",
            "Exec_Mask",
            "Dispatch_Id",
            "Instruction",
            "Instruction_Comment",
            "Correlation_Id"
        ]
    );
    assert!(rows.len() > 20, "{} samples", rows.len());
    for row in rows.iter().filter(|row| row[5] != "0") {
        // Without API tracing the correlation id is the dispatch id.
        assert_eq!(row[2], row[5]);
        assert!(!row[3].is_empty(), "{row:?}");
        assert!(
            row[4].contains(".h"),
            "compiled with debug information: {row:?}"
        );
    }
    let text = std::fs::read_to_string(outcome.file("results.json")).expect("readable");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    let tool = &json["rocprofiler-sdk-tool"][0];
    let samples = tool["buffer_records"]["pc_sample_host_trap"]
        .as_array()
        .expect("an array");
    assert_eq!(samples.len(), rows.len());
    let texts = tool["strings"]["pc_sample_instructions"]
        .as_array()
        .expect("an array");
    let comments = tool["strings"]["pc_sample_comments"]
        .as_array()
        .expect("an array");
    assert_eq!(texts.len(), comments.len());
    for sample in samples {
        let record = &sample["record"];
        let index = sample["inst_index"].as_i64().expect("a number");
        let object = record["pc"]["code_object_id"].as_u64();
        assert_eq!(index == -1, object == Some(0), "{sample}");
        assert!(index < texts.len() as i64);
        let hardware = &record["hw_id"];
        assert_eq!(hardware["chiplet"], 0);
        assert!(hardware["simd_id"].as_u64() < Some(4) && hardware["wave_id"].as_u64() < Some(8));
        assert!(
            hardware["workgroup_id "].is_u64(),
            "the original's key has a blank"
        );
    }
    assert_eq!(
        tool["buffer_records"]["pc_sample_stochastic"],
        Value::Array(vec![])
    );
}

/// A kernel whose waves have their first lanes enabled, and no others.
/// Checks sampling-5 and sampling-22.
#[test]
fn samples_have_the_active_lanes_of_their_kernel() {
    let outcome = sampled(&["--kernel-trace"], &["lane_mask", "2000"]);
    let database = Database::open(&outcome.file("results.db"));
    let rows = database.rows(
        "SELECT s.dispatch_id, s.exec_mask FROM pc_samples s WHERE s.instruction LIKE 'v_fma%' GROUP BY 1, 2 ORDER BY 1, 2",
    );
    assert!(!rows.is_empty());
    let mut masks: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for row in rows {
        let mask: i64 = row[1].parse().expect("a number");
        masks
            .entry(row[0].clone())
            .or_default()
            .push(mask.cast_unsigned());
    }
    for (dispatch, masks) in masks {
        let is_prefix = |mask: &u64| (mask & mask.wrapping_add(1)) == 0;
        assert!(
            masks.iter().all(is_prefix),
            "dispatch {dispatch}: {masks:x?}"
        );
    }
}

/// What `rpd hot` and `rpd annotate` print of samples.
#[test]
fn hot_and_annotate_show_lines_with_samples() {
    let outcome = sampled(&["--kernel-trace"], &["matrix_chain", "200"]);
    let database = outcome.file("results.db");
    let database = database.to_str().expect("text");
    let text = Rpd::plain(["hot", database]).run().success();
    assert!(text.stdout.contains("inside.hip:"), "{}", text.stdout);
    let annotated = Rpd::plain(["annotate", database, "matrix_chain"])
        .run()
        .success();
    assert!(
        annotated.stdout.starts_with("matrix_chain") && annotated.stdout.contains("v_mfma"),
        "{}",
        annotated.stdout
    );
}

#[test]
fn a_converted_database_has_the_same_samples() {
    let outcome = sampled(
        &["-f", "rocpd", "csv", "json", "pftrace", "parquet", "html"],
        &["two_phases"],
    );
    let csv = std::fs::read_to_string(outcome.file("pc_sampling_host_trap.csv")).expect("readable");
    assert_eq!(outcome.files_ending("pc_samples.parquet").len(), 1);
    let database = outcome.file("results.db");
    let directory = outcome.out().join("again");
    let _ = Rpd::plain([
        "convert".as_ref(),
        database.as_os_str(),
        "-f".as_ref(),
        "csv".as_ref(),
        "-d".as_ref(),
        directory.as_os_str(),
        "-o".as_ref(),
        "x".as_ref(),
    ])
    .run()
    .success();
    let again =
        std::fs::read_to_string(directory.join("x_pc_sampling_host_trap.csv")).expect("written");
    assert!(csv == again, "{} and {} bytes", csv.len(), again.len());
    let difference = Rpd::plain([
        "hot".as_ref(),
        database.as_os_str(),
        "--diff".as_ref(),
        database.as_os_str(),
    ])
    .run()
    .success();
    assert!(!difference.stdout.contains("\n* "), "{}", difference.stdout);
}

/// A function that the kernel calls is named beside its lines, and has a frame of its own, as inlined ones have.
#[test]
fn hot_names_functions_that_the_kernel_calls() {
    let outcome = sampled(&["--kernel-trace"], &["two_phases", "300"]);
    let database = outcome.file("results.db");
    let said = |more: &[&str]| {
        let arguments = [&["hot", database.to_str().expect("text")], more].concat();
        Rpd::plain(arguments).run().success().stdout
    };
    let text = said(&[]);
    for line in [
        "inside.hip:137 in phase_one(float, int)  [",
        "inside.hip:146 in phase_two(float, int), inlined at tests/workloads/kernels/inside.hip:155  [",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let stacks = said(&["-f", "folded"]);
    for start in [
        "two_phases;phase_one(float, int);tests/workloads/kernels/inside.hip:137;v_fma",
        "two_phases;phase_two(float, int);tests/workloads/kernels/inside.hip:146;v_fma",
    ] {
        let found = stacks.lines().any(|line| line.starts_with(start));
        assert!(found, "{start}: {stacks}");
    }
}

#[test]
fn a_forked_child_reports_that_it_is_not_sampled() {
    let outcome = Rpd::new(HOST_TRAP)
        .option(["--kernel-trace"])
        .workload("fork-exec", &[] as &[&str])
        .success();
    let said = "its kernels were not sampled: it was forked by a process that is sampled";
    // Of three processes, one was forked and did not execute another program.
    assert_eq!(
        outcome.stderr.matches(said).count(),
        1,
        "{}",
        outcome.stderr
    );
}

/// The HTML report has code with shares and the number of samples of each compute unit, with links to both.
#[test]
fn the_html_report_shows_sampled_code_and_compute_units() {
    let outcome = sampled(&["-f", "html"], &["two_phases", "300"]);
    let page = outcome.file("report.html");
    let Some(chromium) = rpd_tests::run::tool("chromium") else {
        return rpd_tests::run::skipped("the page of samples in a browser", "no chromium");
    };
    let profile = outcome.out().join("profile");
    let shown = std::process::Command::new(chromium)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("a browser");
    let shown = String::from_utf8_lossy(&shown.stdout);
    for text in [
        "<a href=\"#units\">Compute units</a>",
        "<a href=\"#code\">Code</a>",
        "<h3>Compute units: samples</h3>",
        "<th>CU 0</th>",
        "<th>SE 7</th>",
        "v_fma_f32 v0, v0, 0.5, 1.0",
    ] {
        assert!(shown.contains(text), "{text}");
    }
    // The report links to thread traces only where there are some.
    assert!(!shown.contains("href=\"#traces\""));
}

#[test]
fn a_sampling_configuration_that_no_gpu_has_is_refused() {
    let refused = |method: &str, unit: &str, interval: &str| {
        let outcome = Rpd::new(["--pc-sampling-beta-enabled"])
            .option(["--pc-sampling-method", method])
            .option(["--pc-sampling-unit", unit])
            .option(["--pc-sampling-interval", interval])
            .workload("inside", ["sleeper"])
            .expect_code(1);
        assert!(!outcome.stdout.contains("ok"), "{}", outcome.stdout);
        outcome.stderr
    };
    let message = refused("stochastic", "cycles", "65536");
    assert!(
        message.contains("no stochastic sampling (gfx942 and later"),
        "{message}"
    );
    let message = refused("host_trap", "cycles", "256");
    assert!(message.contains("--pc-sampling-unit time"), "{message}");
}

#[test]
fn hot_refuses_a_database_without_samples() {
    let outcome = Rpd::new(["--kernel-trace"])
        .workload("inside", ["sleeper"])
        .success();
    let database = outcome.file("results.db");
    let hot = Rpd::plain(["hot".as_ref(), database.as_os_str()])
        .run()
        .expect_code(1);
    assert!(
        hot.stderr
            .contains("holds no PC samples or thread traces; record with"),
        "{}",
        hot.stderr
    );
}

#[test]
fn annotate_refuses_a_kernel_without_samples() {
    let outcome = sampled(&[], &["sleeper", "100000"]);
    let database = outcome.file("results.db");
    let database = database.to_str().expect("text");
    let failed = |arguments: &[&str]| {
        let outcome = Rpd::plain(arguments).run().expect_code(1);
        assert_eq!(outcome.stdout, "");
        outcome.stderr
    };
    let hot = failed(&["hot", database, "--kernel", "nosuch"]);
    assert_eq!(
        hot,
        "rpd: hot: --kernel 'nosuch': no kernel with samples matches; there are: sleeper\n"
    );
    let near = failed(&["hot", database, "--kernel", "sleepers", "-f", "csv"]);
    assert!(near.ends_with("; did you mean sleeper?\n"), "{near}");
    let without = failed(&["hot", database, "--kernel-exclude", "."]);
    assert!(without.contains("--kernel-exclude '.': no"), "{without}");
    let annotate = failed(&["annotate", database, "nosuch"]);
    assert_eq!(
        annotate,
        "rpd: annotate: no kernel with samples has 'nosuch' in its name; there are: sleeper\n"
    );
}
