//! When symbols of call stacks are looked up after a run, and what is said of those that are not.

use rpd_tests::outputs::Database;
use rpd_tests::run::Rpd;

/// Functions of native frames in a database, and addresses that were not looked up.
fn found(database: &Database) -> (i64, i64) {
    (
        database.number(
            "SELECT count(*) FROM rpd_frame f JOIN rocpd_string s ON s.id = f.function_id
                WHERE s.string IN ('make_tree', 'main') AND f.inline_depth >= 0",
        ),
        database.number("SELECT count(*) FROM rpd_frame WHERE evidence = 'none: not looked up'"),
    )
}

#[test]
fn what_is_not_looked_up_in_time_is_said_and_looked_up_later() {
    let outcome = Rpd::new(["--hip-trace", "--stacks", "native", "-f", "rocpd"])
        .option(["--stacks-symbolize-limit", "0"])
        .workload("stacks", ["tree", "1", "1", "1"])
        .success();
    let database = outcome.database();
    let (functions, left_out) = found(&database);
    assert_eq!(functions, 0);
    assert!(left_out > 0);
    let said = format!(
        "{left_out} addresses of call stacks were not looked up within --stacks-symbolize-limit: they have no names and lines"
    );
    assert!(outcome.stderr.contains(&said), "{}", outcome.stderr);
    assert!(
        outcome
            .stderr
            .contains("names and lines of its call stacks: rpd symbolize "),
        "{}",
        outcome.stderr
    );
    let file = outcome.file("_results.db");
    let _ = Rpd::plain(["symbolize".as_ref(), file.as_os_str()])
        .run()
        .success();
    let (functions, left_out) = found(&Database::open(&file));
    assert!(functions >= 2 && left_out == 0, "{functions} {left_out}");
}
