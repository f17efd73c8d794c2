//! `rpd explain`, `compare`, and what `rpd kernel` says with counters.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rpd_tests::outputs::Database;
use rpd_tests::run::{Outcome, Rpd, command};
use rpd_tests::{install, workloads};
use serde_json::Value;

/// Lines that the page has at most, and letters of a line.
const PAGE: (usize, usize) = (60, 80);

fn explain<'a>(options: impl IntoIterator<Item = &'a str>) -> Rpd {
    let platform = ["explain", "--backend", "sim"];
    Rpd::plain(platform.into_iter().chain(options))
}

fn rpd<'a>(words: impl IntoIterator<Item = &'a OsStr>) -> Outcome {
    command(&install::rpd(), words)
}

fn answer(name: &str, words: &[&OsStr]) -> Value {
    let form = ["-f", "json", "--limit", "0"].map(OsStr::new);
    let words = [OsStr::new(name)].into_iter().chain(words.iter().copied());
    let outcome = rpd(words.chain(form)).success();
    serde_json::from_str(&outcome.stdout).expect("an object")
}

fn rows<'a>(answer: &'a Value, section: &str) -> &'a [Value] {
    let found = if answer["section"] == section {
        &answer["rows"]
    } else {
        &answer["sections"][section]["rows"]
    };
    found.as_array().map_or(&[], Vec::as_slice)
}

fn codes(answer: &Value) -> BTreeSet<&str> {
    let warnings = answer["warnings"].as_array().expect("warnings");
    warnings
        .iter()
        .filter_map(|warning| warning["code"].as_str())
        .collect()
}

/// Figures of a kernel by section and name, and shares by the same.
fn figures(answer: &Value) -> BTreeMap<String, (Option<f64>, Option<f64>)> {
    let sections = ["sol", "roofline", "caches", "stalls"];
    let all = sections.iter().flat_map(|section| rows(answer, section));
    let figure = |row: &Value| {
        let name = format!("{}.{}", row["section"].as_str()?, row["name"].as_str()?);
        Some((name, (row["value"].as_f64(), row["share"].as_f64())))
    };
    all.filter_map(figure).collect()
}

/// Sums of the counters of a kernel's only dispatch over all passes; of the cycles the greatest instance.
fn counters(directory: &Path, kernel: &str) -> BTreeMap<String, f64> {
    let mut values = BTreeMap::new();
    for pass in 1.. {
        let path = directory.join(format!("counters/pass_{pass}/run_results.db"));
        if !path.exists() {
            break;
        }
        let query = format!(
            "SELECT p.symbol, sum(e.value), max(e.value) FROM rocpd_pmc_event e JOIN rocpd_info_pmc p ON p.id = e.pmc_id \
             JOIN rocpd_kernel_dispatch d ON d.event_id = e.event_id JOIN rocpd_info_kernel_symbol s ON s.id = d.kernel_id \
             WHERE s.display_name LIKE '%{kernel}%' GROUP BY d.id, p.symbol"
        );
        for row in Database::open(&path).rows(&query) {
            let column = if row[0] == "GRBM_GUI_ACTIVE" { 2 } else { 1 };
            let value = row[column].parse().expect("a number");
            values.insert(row[0].clone(), value);
        }
    }
    values
}

fn close(name: &str, found: Option<f64>, expected: f64) {
    let found = found.unwrap_or_else(|| panic!("{name} is not known"));
    let error = (found - expected).abs();
    assert!(
        error <= 5e-5 * expected.abs().max(1e-9),
        "{name}: {found} instead of {expected}"
    );
}

/// Checks the figures of a kernel against the formulas of the documentation, over the counters in the databases.
fn check_figures(directory: &Path, kernel: &str, units: f64, channels: f64, memory: f64) {
    let about = answer("kernel", &[kernel.as_ref(), directory.as_os_str()]);
    let found = figures(&about);
    let counted = counters(directory, kernel);
    let of = |name: &str| {
        counted
            .get(name)
            .copied()
            .unwrap_or_else(|| panic!("{name}"))
    };
    let value = |name: &str| found.get(name).and_then(|figure| figure.0);
    let share = |name: &str| found.get(name).and_then(|figure| figure.1);
    let cycles = of("GRBM_GUI_ACTIVE");
    let sum = |kind: &str| {
        let each = |operation: &str| of(&format!("SQ_INSTS_VALU_{operation}_{kind}"));
        64.0 * (each("ADD") + each("MUL") + each("TRANS") + 2.0 * each("FMA"))
    };
    let vector = sum("F16") + sum("F32") + sum("F64");
    let mops =
        ["F16", "BF16", "F32", "F64"].map(|kind| of(&format!("SQ_INSTS_VALU_MFMA_MOPS_{kind}")));
    let matrix = 512.0 * mops.iter().sum::<f64>();
    close("cycles", value("sol.cycles"), cycles);
    close("vector", value("roofline.flops_vector"), vector);
    close("matrix", value("roofline.flops_matrix"), matrix);
    close(
        "valu",
        share("sol.valu"),
        of("SQ_ACTIVE_INST_VALU") / (cycles * units),
    );
    let busy = of("SQ_VALU_MFMA_BUSY_CYCLES") / (cycles * units * 4.0);
    close("mfma", share("sol.mfma"), busy);
    let active = 4.0 * of("SQ_BUSY_CU_CYCLES") / (cycles * units);
    close("active units", share("sol.active_units"), active);
    let accesses = of("TCP_TOTAL_CACHE_ACCESSES_sum");
    close("l1 bytes", value("roofline.bytes_l1"), 64.0 * accesses);
    close("l1", share("sol.l1"), accesses / (cycles * units));
    close(
        "l2",
        share("sol.l2"),
        of("TCC_REQ_sum") / (cycles * channels),
    );
    let requests = of("TCP_TCC_READ_REQ_sum")
        + of("TCP_TCC_WRITE_REQ_sum")
        + of("TCP_TCC_ATOMIC_WITH_RET_REQ_sum")
        + of("TCP_TCC_ATOMIC_WITHOUT_RET_REQ_sum");
    close("l2 bytes", value("roofline.bytes_l2"), 64.0 * requests);
    let edge = if counted.contains_key("TCC_EA_RDREQ_sum") {
        "EA"
    } else {
        "EA0"
    };
    let beyond = |name: &str| of(&format!("TCC_{edge}_{name}_sum"));
    let fabric = 64.0 * beyond("RDREQ") - 32.0 * beyond("RDREQ_32B")
        + 32.0 * (beyond("WRREQ") + beyond("WRREQ_64B"));
    close("fabric bytes", value("roofline.bytes_fabric"), fabric);
    let clock = value("sol.clock").expect("known");
    let rate = fabric / (cycles / clock);
    close("fabric", value("sol.fabric"), rate);
    close("fabric share", share("sol.fabric"), rate / memory);
    close(
        "intensity",
        value("roofline.intensity_fabric"),
        (vector + matrix) / fabric,
    );
    let conflicts = of("SQ_LDS_BANK_CONFLICT");
    let useful = of("SQ_LDS_IDX_ACTIVE") - conflicts;
    close("lds bytes", value("roofline.bytes_lds"), 128.0 * useful);
    if useful > 0.0 {
        close(
            "conflicts",
            value("caches.conflicts_per_access"),
            conflicts / useful,
        );
    } else {
        assert_eq!(value("caches.conflicts_per_access"), None);
    }
    let hits = of("TCC_HIT_sum");
    close(
        "l2 hits",
        value("caches.l2_hit"),
        hits / (hits + of("TCC_MISS_sum")),
    );
    // answers-66
    let waves = of("SQ_WAVE_CYCLES");
    let parts = ["active", "waits_for_data", "waits_for_issue"];
    let parts = parts.map(|part| value(&format!("stalls.{part}")).expect("known"));
    close("wave cycles", Some(parts.iter().sum()), 1.0);
    close("waits", Some(parts[1]), of("SQ_WAIT_ANY") / waves);
}

// answers-55 and answers-65
#[test]
fn figures_of_kernels_are_those_of_their_counters() {
    let outcome = explain(["-d", "x"])
        .workload("inside", ["bank_conflicts"])
        .success();
    let directory = outcome.directory.path().join("x");
    check_figures(&directory, "bank_conflicts", 104.0, 32.0, 1_638.4e9);
    let about = answer("kernel", &["bank".as_ref(), directory.as_os_str()]);
    let found = figures(&about);
    close("bytes of LDS", found["roofline.bytes_lds"].0, 671_744.0);
    close(
        "conflicts per access",
        found["caches.conflicts_per_access"].0,
        18.902_44,
    );

    let outcome = explain(["-d", "x"])
        .workload("inside", ["matrix_chain"])
        .success();
    let directory = outcome.directory.path().join("x");
    check_figures(&directory, "matrix_chain", 104.0, 32.0, 1_638.4e9);
    let found = figures(&answer(
        "kernel",
        &["matrix".as_ref(), directory.as_os_str()],
    ));
    let rate =
        found["roofline.flops_matrix"].0.expect("known") / found["sol.cycles"].0.expect("known");
    close("matrix units", found["sol.mfma"].1, rate / (104.0 * 256.0));
    close("FLOP", found["roofline.flops_matrix"].0, 52_428_800.0);
    let lines = rows(
        &answer("kernel", &["matrix".as_ref(), directory.as_os_str()]),
        "lines",
    )
    .to_vec();
    assert!(
        lines[0]["instruction"]
            .as_str()
            .is_some_and(|text| text.starts_with("v_mfma")),
        "{lines:?}"
    );
}

// answers-56
#[test]
fn figures_of_a_gpu_with_several_dies_have_the_cycles_of_one() {
    let outcome = explain(["-d", "x", "--sim-gpu", "gfx942"])
        .workload("vector-ops", ["1", "1"])
        .success();
    let directory = outcome.directory.path().join("x");
    check_figures(&directory, "addition_kernel", 304.0, 128.0, 5_324.8e9);
    let about = answer("kernel", &["addition".as_ref(), directory.as_os_str()]);
    assert!(codes(&about).contains("lower-bound"), "{about}");
    let page = answer("explain", &[directory.as_os_str()]);
    let counted = &rows(&page, "runs")[1]["options"];
    assert!(!counted.to_string().contains("FETCH_SIZE"), "{counted}");
    // Stochastic samples say why waves wait.
    let reasons = rows(&about, "lines")
        .iter()
        .filter(|line| line["reason"].is_string());
    assert!(reasons.count() > 0, "{about}");
}

// answers-57
#[test]
fn kernel_without_counters_names_the_counters_to_record() {
    let outcome = Rpd::new(["--kernel-trace"])
        .option(["-o", "x"])
        .workload("vector-ops", ["1", "1"])
        .success();
    let about = answer(
        "kernel",
        &[
            "addition".as_ref(),
            outcome.file("x_results.db").as_os_str(),
        ],
    );
    assert!(figures(&about).is_empty());
    let missing = about["missing"].as_array().expect("a list");
    let counters = missing
        .iter()
        .find(|missing| missing["what"] == "counters")
        .expect("missing");
    let record = counters["record"].as_str().expect("options");
    let list = record
        .split_whitespace()
        .find(|word| word.starts_with("auto:"))
        .expect("a list");
    let counted = Rpd::new(["--pmc", list]).workload("vector-ops", ["1", "1"]);
    let _ = counted.success();
}

// answers-68 and answers-71
#[test]
fn page_is_printed_again_without_a_run_and_the_plan_runs_nothing() {
    let plan = explain(["--plan"])
        .workload("vector-ops", ["1", "1"])
        .success();
    assert!(
        plan.stdout.starts_with("rpd: explain runs "),
        "{}",
        plan.stdout
    );
    assert!(
        plan.stdout
            .contains(" 7 times: 1 trace, 5 counter passes, 1 with PC samples"),
        "{}",
        plan.stdout
    );
    assert_eq!(
        plan.stdout
            .lines()
            .filter(|line| line.starts_with("rpd --"))
            .count(),
        3
    );
    assert_eq!(
        fs::read_dir(plan.directory.path())
            .expect("a directory")
            .count(),
        0
    );

    let outcome = explain(["-d", "x"])
        .workload("vector-ops", ["2", "4"])
        .success();
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert!(lines.len() <= PAGE.0, "{}", outcome.stdout);
    for line in lines {
        assert!(line.chars().count() <= PAGE.1, "{line}");
    }
    // The program's own output is beside the page.
    assert!(
        !outcome.stdout.lines().any(|line| line == "ok"),
        "{}",
        outcome.stdout
    );
    assert_eq!(
        outcome.stderr.lines().filter(|line| *line == "ok").count(),
        7
    );
    for part in [
        "kernel time",
        "waves active",
        "launched at",
        " s_waitcnt",
        "rpd advise",
    ] {
        assert!(outcome.stdout.contains(part), "{part}: {}", outcome.stdout);
    }
    let directory = outcome.directory.path().join("x");
    let again = Command::new(install::rpd())
        .args(["explain", "x"])
        .current_dir(outcome.directory.path())
        .output()
        .expect("rpd");
    assert_eq!(String::from_utf8_lossy(&again.stdout), outcome.stdout);
    for form in ["json", "html", "markdown", "csv", "ndjson"] {
        let words = [
            "explain".as_ref(),
            directory.as_os_str(),
            "-f".as_ref(),
            form.as_ref(),
        ];
        let first = rpd(words).success();
        assert_eq!(first.stdout, rpd(words).success().stdout, "{form}");
    }
    let refused = explain(["-d"])
        .option([directory.as_os_str()])
        .workload("vector-ops", ["1", "1"])
        .expect_code(1);
    assert!(refused.stderr.contains("--overwrite"), "{}", refused.stderr);
}

#[test]
fn page_for_browsers_loads_nothing_and_shows_names_as_text() {
    let outcome = explain(["--level", "quick", "-d", "x", "-f", "html"])
        .workload("vector-ops", ["1", "1"])
        .success();
    let page = &outcome.stdout;
    assert!(page.starts_with("<!DOCTYPE html>"), "{page}");
    assert!(
        page.contains("default-src 'none'; style-src 'unsafe-inline'\""),
        "{page}"
    );
    assert!(page.contains("addition_kernel&lt;float&gt;"), "{page}");
    for loaded in ["<script", "src=", "href=", "url("] {
        assert!(!page.contains(loaded), "{loaded}");
    }
}

/// A program that does `script` with the number of its run in `n`, and then runs a workload.
fn counting_script(directory: &Path, script: &str) -> PathBuf {
    let path = directory.join("program.sh");
    let count = directory.join("count");
    let workload = workloads::path("vector-ops");
    let text = format!(
        "#!/bin/sh\nn=$(($(cat {count} 2>/dev/null || echo 0) + 1))\necho $n > {count}\nrounds=1\n{script}\nexec {} 1 $rounds\n",
        workload.display(),
        count = count.display()
    );
    fs::write(&path, text).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
    path
}

// answers-69
#[test]
fn program_that_does_something_else_in_a_pass_is_named() {
    let command = explain(["-d", "x", "-f", "json"]);
    let program = counting_script(command.directory(), "if [ $n = 3 ]; then rounds=2; fi");
    let outcome = command.target([program]).success();
    let page: Value = serde_json::from_str(&outcome.stdout).expect("an object");
    let warnings = page["warnings"].as_array().expect("warnings");
    let differing: Vec<&str> = warnings
        .iter()
        .filter(|warning| warning["code"] == "passes-differ")
        .filter_map(|warning| warning["text"].as_str())
        .collect();
    assert_eq!(differing.len(), 1, "{differing:?}");
    assert!(differing[0].contains("pass_2"), "{differing:?}");
}

// answers-70
#[test]
fn pass_that_fails_leaves_the_page_of_what_there_is() {
    let command = explain(["-d", "x"]);
    let program = counting_script(command.directory(), "if [ $n = 4 ]; then exit 5; fi");
    let outcome = command.target([program]).expect_code(1);
    assert!(outcome.stderr.contains("pass 3/5"), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("kernel time"), "{}", outcome.stdout);
    let page = answer("explain", &[outcome.directory.path().join("x").as_os_str()]);
    assert!(codes(&page).contains("run-failed"), "{page}");

    let command = explain(["-d", "x"]);
    let program = counting_script(command.directory(), "$(dirname $0)/workload 1 1; exit 3");
    std::os::unix::fs::symlink(
        workloads::path("vector-ops"),
        command.directory().join("workload"),
    )
    .expect("a link");
    let outcome = command.target([program]).expect_code(1);
    assert!(outcome.stderr.contains("status 3"), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("kernel time"), "{}", outcome.stdout);

    let missing = explain(["-d", "x"])
        .target(["./no-such-program"])
        .expect_code(127);
    assert!(
        missing.stderr.contains("./no-such-program"),
        "{}",
        missing.stderr
    );
    assert!(!missing.directory.path().join("x").exists());
}

// answers-72
#[test]
fn interrupt_in_a_pass_ends_the_command_and_keeps_what_was_recorded() {
    let command = explain(["-d", "x"]);
    // The parent is rpd, whose parent is the command.
    let interrupt =
        "if [ $n = 3 ]; then kill -INT $(cut -d' ' -f4 /proc/$PPID/stat); exec sleep 100; fi";
    let program = counting_script(command.directory(), interrupt);
    let outcome = command.target([program]).expect_code(128 + libc::SIGINT);
    assert_eq!(outcome.stdout, "");
    let directory = outcome.directory.path().join("x");
    assert!(outcome.stderr.contains("interrupted"), "{}", outcome.stderr);
    let page = answer("explain", &[directory.as_os_str()]);
    assert!(!rows(&page, "kernels").is_empty());
    assert!(directory.join("counters/pass_1/run_results.db").exists());
}

// answers-74 on recordings
#[test]
fn changes_of_two_recordings_split_exactly() {
    let record = |rounds: &str| {
        let outcome = Rpd::new(["--kernel-trace", "--hip-trace"])
            .option(["-o", "x"])
            .workload("vector-ops", ["1", rounds])
            .success();
        let path = outcome.file("x_results.db");
        (outcome, path)
    };
    let ((_a, before), (_b, after)) = (record("3"), record("5"));
    let compared = answer("compare", &[before.as_os_str(), after.as_os_str()]);
    let sum = |column: &str| -> i64 {
        let all = rows(&compared, "kernels").iter();
        all.map(|row| row[column].as_i64().expect("a number")).sum()
    };
    let total = |path: &Path| {
        Database::open(path).number("SELECT sum(end - start) FROM rocpd_kernel_dispatch")
    };
    assert_eq!(sum("total_change_ns"), total(&after) - total(&before));
    assert_eq!(
        sum("by_calls_ns") + sum("by_speed_ns"),
        sum("total_change_ns")
    );
    for row in rows(&compared, "kernels") {
        assert_eq!(row["why"], "calls 3 -> 5", "{row}");
    }
    let gate = rpd(["compare", "--fail-above", "by_calls_ns=0"]
        .map(OsStr::new)
        .into_iter()
        .chain([before.as_os_str(), after.as_os_str()]));
    assert_eq!(gate.code(), 3, "{}", gate.stderr);
}

// answers-77 and answers-79 of these commands
#[test]
fn explanations_and_comparisons_have_every_form() {
    let outcome = explain(["-d", "x"])
        .workload("vector-ops", ["1", "2"])
        .success();
    let directory = outcome.directory.path().join("x");
    let trace = directory.join("trace");
    let directory = directory.as_os_str();
    let words: [(&str, Vec<&OsStr>); 3] = [
        ("explain", vec![directory]),
        ("kernel", vec!["addition".as_ref(), directory]),
        ("compare", vec![trace.as_os_str(), directory]),
    ];
    for (name, words) in words {
        let schema = rpd(["schema", name].map(OsStr::new)).success();
        let schema: Value = serde_json::from_str(&schema.stdout).expect("an object");
        let found = answer(name, &words);
        let described = &schema["properties"]["sections"]["properties"];
        let main = found["section"].as_str().expect("a name");
        let others = found["sections"].as_object().expect("sections").keys();
        for section in others.map(String::as_str).chain([main]) {
            let columns = &described[section]["properties"]["rows"]["items"]["properties"];
            let columns: BTreeSet<&String> = columns.as_object().expect("columns").keys().collect();
            let mut keys = BTreeSet::new();
            for row in rows(&found, section) {
                let row = row.as_object().expect("a row");
                assert_eq!(
                    row.keys().collect::<BTreeSet<_>>(),
                    columns,
                    "{name} {section}"
                );
                assert!(
                    keys.insert(row["key"].to_string()),
                    "{name} {section}: {row:?}"
                );
            }
        }
        let table = [OsStr::new(name)].into_iter().chain(words.iter().copied());
        for line in rpd(table).success().stdout.lines() {
            assert!(line.chars().count() <= PAGE.1, "{name}: {line}");
        }
        let help = rpd([name.as_ref(), "--help".as_ref()]).success();
        assert!(help.stdout.contains("Section "), "{}", help.stdout);
    }
}
