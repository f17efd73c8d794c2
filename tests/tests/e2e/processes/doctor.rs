//! The command `rpd doctor` on the machine of the test, which may have a GPU or not.

use rpd_tests::run::Rpd;
use serde_json::Value;

fn report(words: &[&str]) -> (i32, Value) {
    let outcome = Rpd::plain([&["doctor"], words].concat()).run();
    let report = serde_json::from_str(&outcome.stdout).expect("one JSON document");
    (outcome.code(), report)
}

#[test]
fn doctor_records_on_the_simulator_where_no_gpu_is() {
    let (code, report) = report(&["--json", "--only", "rpd"]);
    assert_eq!(code, 0, "{report}");
    let checks = report["checks"].as_array().expect("checks");
    let statuses: Vec<&Value> = checks.iter().map(|check| &check["status"]).collect();
    assert_eq!(statuses, ["PASS", "PASS"], "{report}");
}

#[test]
fn sums_of_a_report_add_up_and_decide_the_exit_status() {
    let (code, report) = report(&["--format", "json"]);
    assert_eq!(report["schema_version"], 1);
    let summary = &report["summary"];
    let count = |name: &str| summary[name].as_u64().expect("a number");
    let parts = ["pass", "warn", "fail", "skip"].map(count);
    assert_eq!(parts.iter().sum::<u64>(), count("total"));
    let checks = report["checks"].as_array().expect("checks");
    assert_eq!(checks.len() as u64, count("total"));
    assert_eq!(code, i32::from(count("fail") > 0));
    for check in checks {
        let to_mend = check["status"] == "WARN" || check["status"] == "FAIL";
        assert_eq!(check["remediation"].is_string(), to_mend, "{check}");
    }
}

#[test]
fn unknown_check_is_refused_by_name() {
    let outcome = Rpd::plain(["doctor", "--only", "nosuch"])
        .run()
        .expect_code(2);
    assert!(
        outcome.stderr.contains("nosuch is no check"),
        "{}",
        outcome.stderr
    );
    assert_eq!(outcome.stderr.lines().count(), 1);
}

#[test]
fn option_of_the_recording_command_runs_the_checks() {
    let outcome = Rpd::plain(["--doctor", "--list-checks"]).run().success();
    assert!(
        outcome.stdout.contains("driver.kfd-device"),
        "{}",
        outcome.stdout
    );
}
