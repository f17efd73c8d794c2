//! Programs with habits that a profiler has to live with (`workloads/odd.c`), and large numbers.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use rpd_tests::outputs::Table;
use rpd_tests::run::{self, Outcome, Rpd, skipped};
use rpd_tests::workloads;

const CSV: [&str; 3] = ["--sys-trace", "-f", "csv"];

fn odd(arguments: &[&str]) -> Outcome {
    Rpd::new(CSV).workload("odd", arguments)
}

/// The numbers of dispatches in the files of the run, ascending.
fn dispatches(outcome: &Outcome) -> Vec<usize> {
    let mut counts: Vec<usize> = outcome
        .files_ending("kernel_trace.csv")
        .iter()
        .map(|file| Table::read(file).rows.len())
        .collect();
    counts.sort_unstable();
    counts
}

fn is_root() -> bool {
    // SAFETY: takes nothing, cannot fail.
    unsafe { libc::geteuid() == 0 }
}

#[test]
fn programs_with_odd_habits_lose_no_record() {
    for mode in [
        "close-fds",
        "chdir",
        "low-nofile",
        "nofile-thread",
        "undumpable",
    ] {
        let outcome = odd(&[mode]).success();
        assert_eq!(outcome.stdout, "ok\n", "{mode}");
        assert_eq!(dispatches(&outcome), [5], "{mode}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(" 0 dropped"), "{}", outcome.stderr);
        let calls = outcome.csv("hip_api_trace");
        assert_eq!(calls.count("Function", "hipLaunchKernel"), 5, "{mode}");
    }
    let outcome = odd(&["thread-exits"]).expect_code(7);
    assert_eq!(dispatches(&outcome), [5], "{}", outcome.stderr);
    let outcome = odd(&["setsid"]).success();
    assert_eq!(dispatches(&outcome), [2, 3], "{}", outcome.stderr);
}

#[test]
fn a_pause_leaves_out_calls_made_during_it() {
    let outcome = odd(&["pause"]).success();
    assert_eq!(dispatches(&outcome), [6]);
    let calls = outcome.csv("hip_api_trace");
    assert_eq!(calls.count("Function", "hipLaunchKernel"), 6);
    let markers = outcome.csv("marker_api_trace");
    let functions = markers.column("Function");
    assert!(
        functions.contains(&"before") && functions.contains(&"after"),
        "{functions:?}"
    );
    assert!(!functions.contains(&"paused"), "{functions:?}");
    let said = "]: 3 dispatches left out: recording was paused\n";
    assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
    // Dispatches that are counted show it themselves.
    let outcome = Rpd::new(["--pmc", "SQ_WAVES", "-f", "csv"]).workload("odd", ["pause"]);
    assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
    assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
}

#[test]
fn compat_mode_reports_pauses_of_the_program() {
    let options = ["--kernel-trace", "--marker-trace", "-f", "csv"];
    let compat = ["--compat", "rocprofv3"];
    let outcome = Rpd::new(compat.into_iter().chain(options)).workload("odd", ["pause"]);
    let said = "]: the program had paused recording (1 pause): what it did meanwhile is left out\n";
    assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
    // One line is enough where dispatches are counted.
    let outcome = Rpd::new(options).workload("odd", ["pause"]);
    assert!(!outcome.stderr.contains(said), "{}", outcome.stderr);
}

#[test]
fn csv_files_below_the_minimum_are_named() {
    let options = ["-s", "-f", "csv", "--minimum-output-data", "1"];
    let outcome = Rpd::new(options).workload("odd", ["pause"]).success();
    let said = "]: CSV files left out, with fewer records than --minimum-output-data requests: ";
    let line = outcome.stderr.lines().find(|line| line.contains(said));
    let line = line.unwrap_or_else(|| panic!("{}", outcome.stderr));
    assert!(line.contains("kernel_trace"), "{line}");
}

#[test]
fn dispatch_numbers_include_counted_dispatches_of_a_pause() {
    let outcome = Rpd::new([
        "--kernel-trace",
        "--marker-trace",
        "--pmc",
        "SQ_WAVES",
        "-f",
        "csv",
    ])
    .workload("odd", ["pause"])
    .success();
    // Counters are collected during the pause, too, and take numbers.
    let numbers = outcome.csv("kernel_trace").numbers("Dispatch_Id");
    assert_eq!(numbers, [1, 2, 6, 7, 8, 9], "{}", outcome.stderr);
}

#[test]
fn json_host_functions_refer_to_their_kernels() {
    let functions = |options: &[&str]| -> Vec<(u64, String)> {
        let rpd = Rpd::new(options.iter().copied().chain(["-f", "json"]));
        let outcome = rpd.workload("vector-ops", ["1", "1"]).success();
        let text = fs::read_to_string(outcome.file("_results.json")).expect("the file");
        let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let tool = &document["rocprofiler-sdk-tool"][0];
        let functions = tool["host_functions"].as_array().expect("an array");
        let of = |function: &serde_json::Value| {
            let kernel = function["kernel_id"].as_u64().expect("a number");
            let symbol = &tool["kernel_symbols"][kernel as usize]["kernel_name"];
            let name = function["device_function"].as_str().expect("a text");
            let expected = if kernel == 0 {
                name.to_owned()
            } else {
                format!("{name}.kd")
            };
            assert_eq!(symbol.as_str(), Some(&*expected));
            assert_eq!(kernel != 0, function["host_function"]["handle"] != 0);
            assert_eq!(kernel != 0, function["modules"]["handle"] != 0);
            let no_limit = if kernel == 0 { 0 } else { u32::MAX };
            assert_eq!(function["thread_limit"], no_limit);
            // The function's own name, which has no suffix.
            let demangled = function["demangled_host_function_name"].as_str();
            let demangled = demangled.expect("a text");
            assert_eq!(demangled.contains('('), kernel != 0, "{demangled}");
            assert!(!demangled.contains(".kd"), "{demangled}");
            (
                function["host_function_id"].as_u64().expect("a number"),
                name.to_owned(),
            )
        };
        functions.iter().map(of).collect()
    };
    let found = functions(&["--kernel-trace"]);
    let ids: Vec<u64> = found.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, [0, 1, 2, 3, 4]);
    assert!(
        found[1..]
            .iter()
            .any(|(_, name)| name == "_Z13divide_kernelPfPKfS1_ii")
    );
    let names = |functions: Vec<(u64, String)>| -> BTreeSet<String> {
        functions.into_iter().map(|(_, name)| name).collect()
    };
    let direct = functions(&["--kernel-trace", "--provider", "direct"]);
    assert_eq!(names(direct), names(found));
    // With the registration calls themselves traced, SDK 1.0 reports no event for these functions.
    assert_eq!(functions(&["--sys-trace"]).len(), 1);
}

#[test]
fn an_exit_during_launches_of_other_threads_keeps_the_status() {
    for _ in 0..8 {
        let alone = run::simulated("odd", ["exit-launching"]).expect_code(7);
        assert_eq!(
            (&*alone.stdout, &*alone.stderr),
            ("ok\n", ""),
            "without rpd"
        );
        let outcome = odd(&["exit-launching"]).expect_code(7);
        assert_eq!(outcome.stdout, "ok\n");
        assert!(!outcome.stderr.contains("rpd-sim"), "{}", outcome.stderr);
    }
}

/// Records that a forked child could not write are reported with its parent.
fn lost_child(outcome: &Outcome) {
    assert_eq!(outcome.stdout, "ok\n", "{}", outcome.stderr);
    assert_eq!(dispatches(outcome), [2], "{}", outcome.stderr);
    let said = "]: WARNING: 1 forked process could not write in the directory of this run (after chroot or a change of user, or \
                when it was removed); ";
    let (_, rest) = outcome.stderr.split_once(said).expect(&outcome.stderr);
    let records: usize = rest
        .split_once(" records are missing from the outputs\n")
        .and_then(|(number, _)| number.parse().ok())
        .expect(rest);
    // 3 dispatches, 3 copies and at least 3 x 3 calls.
    assert!(records >= 15, "{records}");
    assert_eq!(outcome.code(), 1, "{}", outcome.stderr);
}

#[test]
fn children_that_cannot_record_are_reported() {
    lost_child(&odd(&["lost-child"]));
    if !is_root() {
        return skipped("chroot and setuid of a child", "not root");
    }
    let jail = tempfile::tempdir().expect("a directory");
    let path = jail.path().to_str().expect("text");
    lost_child(&odd(&["lost-user", path]));
}

/// Events that cannot be recorded do not disturb the target and are reported.
fn all_or_reported(outcome: &Outcome) {
    assert_eq!(outcome.stdout, "ok\n", "the program does not notice");
    if outcome.stderr.contains("DROPPED") {
        assert!(
            outcome.stderr.contains("missing from the outputs"),
            "{}",
            outcome.stderr
        );
        assert_eq!(outcome.code(), 1, "{}", outcome.stderr);
    } else {
        assert_eq!(dispatches(outcome), [5], "{}", outcome.stderr);
        assert_eq!(outcome.code(), 0, "{}", outcome.stderr);
    }
}

#[test]
fn records_lost_to_a_file_size_limit_are_reported() {
    all_or_reported(&odd(&["file-size"]));
}

#[test]
fn records_lost_to_a_changed_root_or_user_are_reported() {
    if !is_root() {
        return skipped("chroot and setuid", "not root");
    }
    let jail = tempfile::tempdir().expect("a directory");
    let path = jail.path().to_str().expect("text");
    all_or_reported(&odd(&["chroot", path]));
    assert_eq!(
        fs::read_dir(jail.path()).expect("the jail").count(),
        0,
        "nothing is left in there"
    );
    all_or_reported(&odd(&["drop-user"]));
}

#[test]
fn daemons_are_awaited_or_left_to_recover() {
    let outcome = odd(&["daemon", "0.1"]).success();
    assert_eq!(outcome.stdout, "ok\n");
    let soon = dispatches(&outcome);
    // On a slow machine the daemon may need more than the second it gets.
    assert!(
        soon == [2, 4] || outcome.stderr.contains("rpd recover"),
        "{soon:?}: {}",
        outcome.stderr
    );

    let outcome = odd(&["daemon", "2.5"]).success();
    assert_eq!(dispatches(&outcome), [2], "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("still runs") && outcome.stderr.contains("rpd recover"),
        "{}",
        outcome.stderr
    );
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let recover = Rpd::plain(["recover".as_ref(), outcome.out().as_os_str()]).run();
        if dispatches(&outcome) == [2, 4] {
            let _ = recover.success();
            break;
        }
        assert!(Instant::now() < deadline, "{}", recover.stderr);
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(
        !outcome.out().join(".rpd").exists(),
        "{:?}",
        outcome.files()
    );
}

#[test]
fn work_before_a_bare_exec_is_recorded() {
    let program = workloads::path("static");
    let outcome = odd(&["bare-exec", program.to_str().expect("text")]).success();
    assert_eq!(outcome.stdout, "ok\n");
    assert_eq!(dispatches(&outcome), [2], "{}", outcome.stderr);
}

#[test]
fn wrappers_that_execute_the_program_are_reported_in_one_line() {
    let program = workloads::path("vector-ops");
    let mut target = vec!["env"; 10];
    target.extend([program.to_str().expect("text"), "1", "1"]);
    let outcome = Rpd::new(CSV).target(target).success();
    let lines: Vec<&str> = outcome.stderr.lines().collect();
    assert_eq!(
        lines[1..],
        ["rpd: 10 other processes made no GPU call"],
        "{}",
        outcome.stderr
    );
    assert!(lines[0].contains("vector-ops["), "{}", outcome.stderr);
}

#[test]
fn a_static_program_is_reported_as_not_recorded() {
    let outcome = Rpd::new(CSV).workload("static", [""; 0]).success();
    assert_eq!(outcome.stdout, "ok\n");
    assert!(
        outcome.stderr.contains("nothing was recorded"),
        "{}",
        outcome.stderr
    );
    assert!(outcome.files().is_empty(), "{:?}", outcome.files());
}

#[test]
fn two_million_calls_are_recorded_without_a_drop() {
    let outcome = Rpd::new(["--hip-trace", "--stats", "-f", "csv"])
        .workload("api-loop", ["2000000"])
        .success();
    assert!(outcome.stderr.contains(" 0 dropped"), "{}", outcome.stderr);
    let stats = outcome.csv("hip_api_stats");
    let names = stats.column("Name");
    let at = names
        .iter()
        .position(|name| *name == "hipGetLastError")
        .expect("the call");
    // A tenth more to warm up.
    assert_eq!(stats.numbers("Calls")[at], 2_200_000);
    let path = outcome.file("hip_api_trace.csv");
    let rows = fs::read_to_string(path).expect("the file").lines().count() - 1;
    assert!(rows >= 2_200_000, "{rows}");
}

/// Columns of tables and widths of formatting have upper limits; names do not.
#[test]
fn names_of_any_length_are_in_every_output() {
    for length in [65_534, 65_535, 65_536, 200_000] {
        let outcome = Rpd::new(["--sys-trace", "--stats", "-S", "-D", "-f", "csv", "rocpd"])
            .workload("odd", ["long-name".to_owned(), length.to_string()])
            .success();
        assert!(!outcome.stderr.contains("internal error"), "{length}");
        assert!(!outcome.stderr.contains("panicked"), "{length}");
        let names = outcome.csv("marker_api_trace");
        let longest = names.column("Function").iter().map(|name| name.len()).max();
        // The collector keeps the beginning of longer messages and reports that.
        assert!(
            longest.is_some_and(|longest| longest >= 65_000.min(length)),
            "{length}: {longest:?}"
        );
        let printed = outcome.stderr.matches('x').count();
        assert!(printed >= longest.unwrap_or(0), "{length}: {printed}");
        assert_eq!(
            outcome.database().number(
                "SELECT count(*) FROM regions WHERE length(name) > 60000 OR length(extdata) > 60000"
            ),
            1
        );
    }
}
