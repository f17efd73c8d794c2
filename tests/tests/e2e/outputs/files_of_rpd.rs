//! SQL and tools of RPD on what rpd writes: views of its names in merged databases, and its own files in `rpd query` and
//! `rpd summary`.

use std::path::{Path, PathBuf};

use rpd_tests::outputs::Database;
use rpd_tests::run::{Outcome, Rpd};

use crate::stacks::answers::GUIDE;

fn recorded(arguments: &[&str]) -> Outcome {
    Rpd::new([
        "--hip-trace",
        "--marker-trace",
        "--kernel-trace",
        "--memory-copy-trace",
    ])
    .option(["--stacks", "native", "-f", "rocpd"])
    .workload("stacks", arguments)
    .success()
}

fn rpd(arguments: &[&str], paths: &[&Path]) -> Outcome {
    let command = Rpd::plain(
        arguments
            .iter()
            .map(|word| word.as_ref() as &std::ffi::OsStr),
    );
    command.option(paths).run().success()
}

/// Rows of the guide's view, with the arguments of calls, in an order that does not depend on ids.
fn frames(database: &Database) -> Vec<Vec<String>> {
    database.0.execute_batch(GUIDE).expect("the guide's view");
    database.rows(
        "select hip_api, depth, frame, args from temp.rocpd_stackstrings order by hip_api, args, depth, frame",
    )
}

#[test]
fn merged_databases_keep_stacks_and_rpd_views() {
    let directory = tempfile::tempdir().expect("a directory");
    let outcomes = [
        recorded(&["tree", "6", "4", "2"]),
        recorded(&["kinds", "6", "4", "2"]),
    ];
    let inputs = outcomes.map(|outcome| (outcome.file("_results.db"), outcome));
    let inputs = inputs.each_ref().map(|(path, _)| path.as_path());
    let mut expected: Vec<Vec<String>> = inputs
        .iter()
        .flat_map(|path| frames(&Database::open(path)))
        .collect();
    assert!(expected.len() > 20, "{expected:?}");
    expected.sort();
    let merge = |name: &str, inputs: &[&Path]| {
        let output = directory.path().join(name);
        rpd(&["merge", "-o", output.to_str().expect("text")], inputs);
        output
    };
    let merged = merge("merged.db", &[inputs[0], inputs[1]]);
    let sorted = |path: &Path| {
        let mut rows = frames(&Database::open(path));
        rows.sort();
        rows
    };
    assert_eq!(sorted(&merged), expected);
    let database = Database::open(&merged);
    let own = "select hip_api, depth, frame, args from main.rocpd_stackstrings";
    let mut rows = database.rows(own);
    rows.sort();
    assert_eq!(rows, expected);
    let count = expected.len() as i64;
    for sql in [
        "select count(distinct id) from rocpd_stackframe",
        "select count(*) from stackframe",
        "select count(*) from rocpd_stackframe f join rocpd_string s on s.id = f.name_id",
    ] {
        assert_eq!(database.number(sql), count, "{sql}");
    }
    let calls = database.number("select count(*) from rocpd_api");
    let of_inputs = inputs
        .iter()
        .map(|path| Database::open(path).number("select count(*) from rocpd_api"));
    assert_eq!(calls, of_inputs.sum::<i64>());
    assert_eq!(
        database.number("select count(distinct id) from rocpd_api"),
        calls
    );

    // A merged database is merged again, alone is as it was, and is queried through rpd.
    let outcome = recorded(&["tree", "3", "2", "1"]);
    let third = outcome.file("_results.db");
    expected.extend(frames(&Database::open(&third)));
    expected.sort();
    assert_eq!(sorted(&merge("again.db", &[&merged, &third])), expected);
    assert_eq!(sorted(&merge("alone.db", &[&third])), sorted(&third));
    let question = "SELECT count(*) AS n FROM rocpd_stackstrings";
    let asked = rpd(
        &["query", "-f", "csv", "--query", question, "-i"],
        &[&merged],
    );
    assert_eq!(
        asked.stdout.lines().nth(1),
        Some(&*count.to_string()),
        "{}",
        asked.stdout
    );
}

/// A run, its database, and the file of RPD that was made of this database.
fn exported() -> (Outcome, PathBuf, PathBuf) {
    let outcome = Rpd::new([
        "--hip-trace",
        "--marker-trace",
        "--kernel-trace",
        "--memory-copy-trace",
    ])
    .option(["-f", "rocpd"])
    .workload("vector-ops", ["2", "2"])
    .success();
    let database = outcome.file("_results.db");
    let file = outcome.directory.path().join("trace.rpd");
    rpd(
        &["export", "--rpd", file.to_str().expect("text")],
        &[&database],
    );
    (outcome, database, file)
}

#[test]
fn summary_of_an_rpd_file_equals_that_of_its_database() {
    let (_run, database, file) = exported();
    let rows = |path: &Path| {
        let printed = rpd(&["summary", "--domain-summary"], &[path]).stdout;
        // Copies have other names there: CopyHostToDevice for MEMORY_COPY_HOST_TO_DEVICE.
        let cells = |line: &str| -> Vec<String> {
            let plain = line
                .to_lowercase()
                .replace("memory_copy", "copy")
                .replace('_', "");
            plain.split_whitespace().map(str::to_owned).collect()
        };
        printed.lines().map(cells).collect::<Vec<_>>()
    };
    let (own, of_database) = (rows(&file), rows(&database));
    assert!(
        own.iter()
            .any(|cells| cells.first().is_some_and(|name| name == "copyhosttodevice")),
        "{own:?}"
    );
    assert_eq!(own, of_database);
}

#[test]
fn query_reads_tables_and_views_of_an_rpd_file() {
    let (_run, _, file) = exported();
    let query = |sql: &str| rpd(&["query", "-f", "csv", "--query", sql, "-i"], &[&file]).stdout;
    let calls = Database::open(&file).number("select count(*) from rocpd_api");
    assert_eq!(
        query("SELECT count(*) AS n FROM api"),
        format!("n\n{calls}\n")
    );
    // The file's own view, not the one that rpd makes for its databases.
    assert!(query("SELECT * FROM busy").starts_with("gpuId,GpuTime,WallTime,Busy\n"));
}

#[test]
fn query_and_summary_refuse_windows_and_changes_of_rpd_files() {
    let (_run, database, file) = exported();
    let refused = |arguments: &[&str], paths: &[&Path]| {
        let command = Rpd::plain(
            arguments
                .iter()
                .map(|word| word.as_ref() as &std::ffi::OsStr),
        );
        let outcome = command.option(paths).run();
        assert!(!outcome.status.success());
        outcome.stderr
    };
    let name = file.display();
    assert!(
        refused(&["query", "--query", "SELECT 1", "-i"], &[&file, &database]).contains(&format!(
            "{name} is a file of RPD: query it alone, without other files"
        ))
    );
    assert!(
        refused(&["query", "--query", "SELECT 1", "--start", "5%", "-i"], &[&file]).contains(&format!(
            "query: --start, --end and markers cut databases of rpd, and {name} is a file of RPD; leave them out"
        ))
    );
    assert!(
        refused(
            &["query", "--query", "DELETE FROM rocpd_api", "-i"],
            &[&file]
        )
        .contains("databases are only read")
    );
    assert!(refused(&["summary", "--start", "5%"], &[&file]).contains(&format!(
        "summary: --start, --end and markers cut databases of rpd, and {name} is a file of RPD; leave them out"
    )));
}
