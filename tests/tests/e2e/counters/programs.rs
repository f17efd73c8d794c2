//! Programs of all sorts behave as without counting, and every dispatch of theirs is counted.

use rpd_tests::outputs::Table;
use rpd_tests::run::Rpd;

use super::{pmc, rows_of};

/// Dispatches in all files of the run of that kind.
fn dispatches(outcome: &rpd_tests::run::Outcome, kind: &str) -> usize {
    let files = outcome.files();
    let files = files.iter().filter(|name| name.contains(kind));
    files
        .map(|name| Table::read(&outcome.out().join(name)).rows.len())
        .sum()
}

#[test]
fn every_workload_succeeds_while_counted() {
    for (name, arguments, stdout, counted) in [
        // Three launches and a fill, three times.
        ("transpose", &["3"][..], "ok\n", Some(12)),
        ("copies", &[], "ok, 160 copies\n", None),
        ("module-load", &[], "ok, 6 modules\n", Some(18)),
        ("hsa-direct", &[], "ok\n", Some(2)),
        ("many-threads", &["20", "3"], "ok\n", Some(60)),
        ("vector-ops", &["3", "3"], "ok\n", Some(36)),
    ] {
        let options = ["--pmc", "SQ_WAVES", "--sys-trace", "-f", "csv"];
        let outcome = Rpd::new(options).workload(name, arguments).success();
        assert_eq!(outcome.stdout, stdout, "{name}");
        let found = dispatches(&outcome, "counter_collection");
        assert_eq!(found, dispatches(&outcome, "kernel_trace"), "{name}");
        if let Some(counted) = counted {
            assert_eq!(found, counted, "{name}");
        }
    }
}

#[test]
fn counters_are_complete_for_programs_with_odd_habits() {
    for mode in ["close-fds", "chdir", "low-nofile", "undumpable"] {
        let outcome = pmc(["SQ_WAVES"]).workload("odd", [mode]).success();
        assert_eq!(outcome.stdout, "ok\n", "{mode}");
        assert_eq!(dispatches(&outcome, "counter_collection"), 5, "{mode}");
    }
    let outcome = pmc(["SQ_WAVES"]).workload("odd", ["setsid"]).success();
    assert_eq!(dispatches(&outcome, "counter_collection"), 5);
}

#[test]
fn kernels_of_a_python_program_are_counted() {
    let Some(python) = rpd_tests::run::tool("python3") else {
        return rpd_tests::run::skipped("counters of a Python program", "no python3");
    };
    let script = rpd_tests::workloads::path("ctypes-hip.py");
    let outcome = pmc(["SQ_WAVES"])
        .target([python.as_os_str(), script.as_os_str()])
        .success();
    let rows = rows_of(&outcome.csv("counter_collection"));
    assert!(
        !rows.is_empty() && rows.iter().all(|row| row.value > 0.0),
        "{rows:?}"
    );
}

#[test]
fn counting_a_program_without_gpu_succeeds_without_files() {
    for name in ["no-gpu", "no-gpu-linked"] {
        let outcome = pmc(["SQ_WAVES"]).workload(name, [""; 0]).success();
        assert_eq!(outcome.stdout, "ok\n", "{name}");
        assert!(
            outcome.files_ending(".csv").is_empty(),
            "{:?}",
            outcome.files()
        );
    }
}

#[test]
fn group_by_queue_shows_queues_of_counted_dispatches() {
    let outcome = Rpd::new(["--pmc", "SQ_WAVES", "--group-by-queue", "-f", "csv", "json"])
        .workload("many-threads", ["4", "2"])
        .success();
    let queues = outcome.csv("counter_collection").numbers("Queue_Id");
    assert!(queues.iter().all(|queue| *queue > 0), "{queues:?}");
    let json = super::json(&outcome);
    let counted = json["callback_records"]["counter_collection"].as_array();
    let counted = counted.expect("counted dispatches");
    assert_eq!(counted.len(), 8);
    assert!(
        counted.iter().all(|one| one["stream_id"]["handle"] == 0),
        "no streams"
    );
}
