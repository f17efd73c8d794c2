//! `--quiet`: nothing is printed of what went as it should, everything of what did not.

use rpd_tests::run::Rpd;

#[test]
fn quiet_recording_prints_nothing_but_its_tables() {
    let outcome = Rpd::new(["--quiet", "--kernel-trace", "--stats", "-S", "-o", "x"])
        .workload("vector-ops", ["1", "1"])
        .success();
    assert!(
        outcome.stderr.contains("RPD SUMMARY:"),
        "{}",
        outcome.stderr
    );
    let told: Vec<&str> = outcome
        .stderr
        .lines()
        .filter(|line| line.starts_with("rpd: "))
        .collect();
    assert!(told.is_empty(), "{told:?}");
}

#[test]
fn quiet_passes_are_not_announced() {
    let options = ["-q", "--pmc", "SQ_WAVES", "--pmc", "GRBM_COUNT"];
    let outcome = Rpd::new(options).workload("vector-ops", ["1", "1"]);
    assert_eq!(outcome.success().stderr, "");
}

#[test]
fn quiet_recording_reports_a_program_that_is_killed() {
    let outcome = Rpd::new(["-q", "--hip-trace", "-o", "x"])
        .target(["/bin/sh", "-c", "kill -KILL $$"])
        .expect_code(137);
    assert!(outcome.stderr.contains("KILL"), "{}", outcome.stderr);
}

#[test]
fn quiet_convert_names_no_file_and_reports_errors() {
    let outcome = Rpd::new(["-q", "--hip-trace", "-o", "x"])
        .workload("vector-ops", ["1", "1"])
        .success();
    let database = outcome.file("x_results.db");
    let convert = |options: &[&str]| {
        let words = ["convert", "-q", "-f", "csv"]
            .into_iter()
            .chain(options.iter().copied());
        Rpd::plain(words).run()
    };
    let path = database.to_str().expect("a path in UTF-8");
    assert_eq!(convert(&[path]).success().stderr, "");
    let missing = convert(&["missing.db"]).expect_code(1);
    assert!(missing.stderr.contains("missing.db"), "{}", missing.stderr);
}
