//! Databases in which a record has times that cannot be: it is in no sum.

use rpd_tests::outputs::Database;
use rpd_tests::run::Rpd;

/// Nanoseconds of kernels in each of the answers: the views, and `rpd stacks`.
fn kernels(database: &Database) -> [i64; 3] {
    [
        "SELECT CAST(sum(total_duration) AS INTEGER) FROM top_kernels",
        "SELECT CAST(sum(total_duration) AS INTEGER) FROM top WHERE name IN (SELECT name FROM top_kernels)",
        "SELECT sum(gpu_duration) FROM stack_site",
    ]
    .map(|sql| database.number(sql))
}

#[test]
fn a_kernel_that_lasts_for_ever_is_in_no_sum() {
    let options = [
        "--hip-runtime-trace",
        "--kernel-trace",
        "--stacks",
        "native",
    ];
    let run = Rpd::new(options)
        .option(["-f", "rocpd"])
        .workload("vector-ops", ["1", "2"])
        .success();
    let path = run.file("_results.db");
    let before = kernels(&Database::open(&path));
    assert!(before.iter().all(|time| *time > 0), "{before:?}");
    let tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'rocpd_kernel_dispatch_%'";
    let table = Database::open(&path).rows(tables).remove(0).remove(0);
    Database::change(
        &path,
        &format!(
            "UPDATE {table} SET \"end\" = 9223372036854775807 WHERE id = (SELECT min(id) FROM {table})"
        ),
    );
    let after = kernels(&Database::open(&path));
    for (before, after) in before.iter().zip(after) {
        assert!((1..*before).contains(&after), "{before} {after}");
    }
    for command in ["stacks", "flame"] {
        let answer = Rpd::plain([command]).option([&path]).option(match command {
            "flame" => ["-o", "flame.html"],
            _ => ["--limit", "3"],
        });
        let answer = answer.run().success();
        assert!(
            answer
                .stderr
                .contains("1 record: left out of statistics, since they end before they begin"),
            "{command}: {}",
            answer.stderr
        );
        assert!(!answer.stdout.contains("92233"), "{}", answer.stdout);
    }
}
