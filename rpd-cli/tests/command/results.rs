//! The sub-commands that work on results, run on a database that the original wrote and on bad input.

mod differences;
mod merging;

use std::path::Path;
use std::process::{Command, Output};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../rpd-formats/testdata");
const TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/rocpd-tools");

fn database() -> String {
    format!("{GOLDEN}/trace_results.db")
}

/// Runs rpd in `directory`.
fn rpd(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rpd"))
        .args(arguments)
        .current_dir(directory)
        .env_remove("ROCPD_OUTPUT_NAME")
        .env_remove("ROCPD_OUTPUT_PATH")
        .output()
        .expect("rpd runs")
}

/// Runs rpd under another name in `directory`.
fn named(name: &str, directory: &Path, arguments: &[&str]) -> Output {
    let links = tempfile::tempdir().expect("a directory");
    let link = links.path().join(name);
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_rpd"), &link).expect("a link");
    Command::new(&link)
        .args(arguments)
        .current_dir(directory)
        .env_remove("ROCPD_OUTPUT_NAME")
        .env_remove("ROCPD_OUTPUT_PATH")
        .output()
        .expect("rpd runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

/// Runs rpd, which must succeed; its standard output.
fn good(directory: &Path, arguments: &[&str]) -> String {
    let output = rpd(directory, arguments);
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        text(&output.stderr)
    );
    text(&output.stdout)
}

/// Runs rpd, which must fail with this status and one line; the line.
fn bad(directory: &Path, arguments: &[&str], status: i32) -> String {
    let output = rpd(directory, arguments);
    let line = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {line}");
    assert!(line.starts_with("rpd: "), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
    line
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

fn sorted_rows(path: &Path) -> Vec<String> {
    let text =
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines[1..].sort_unstable();
    lines
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .expect("a directory")
        .map(|entry| {
            let name = entry.expect("an entry").file_name();
            name.to_string_lossy().into_owned()
        })
        .collect();
    names.sort();
    names
}

/// Every row is the original's; the order is ours.
#[test]
fn convert_writes_the_files_of_a_run_from_its_database() {
    let out = directory();
    good(
        out.path(),
        &["convert", &database(), "-f", "csv", "--stats"],
    );
    for name in [
        "agent_info",
        "hip_api_trace",
        "hsa_api_trace",
        "kernel_trace",
        "marker_api_trace",
        "memory_allocation_trace",
        "memory_copy_trace",
        "hip_api_stats",
        "marker_api_stats",
        "kernel_stats",
        "memory_copy_stats",
        "domain_stats",
    ] {
        let name = format!("trace_{name}.csv");
        assert_eq!(
            sorted_rows(&out.path().join(&name)),
            sorted_rows(&Path::new(GOLDEN).join(&name)),
            "{name}"
        );
    }
}

/// Every row is the original's; the order is ours.
#[test]
fn convert_writes_the_layout_of_rocpd_in_compat_mode() {
    let out = directory();
    good(
        out.path(),
        &[
            "convert",
            "--layout",
            "original",
            "-f",
            "csv",
            "-o",
            "conv",
            "-d",
            "deep/er",
            &database(),
        ],
    );
    let found = names(&out.path().join("deep/er"));
    assert_eq!(found.len(), 7, "{found:?}");
    for name in found {
        assert_eq!(
            sorted_rows(&out.path().join("deep/er").join(&name)),
            sorted_rows(&Path::new(TOOLS).join(&name)),
            "{name}"
        );
    }
}

#[test]
fn convert_writes_several_formats_under_a_prefix() {
    let out = directory();
    good(
        out.path(),
        &[
            "convert",
            "-f",
            "rocpd",
            "json",
            "pftrace",
            "-o",
            "x_%pid%",
            &database(),
        ],
    );
    assert_eq!(
        names(out.path()),
        [
            "x_4333_results.db",
            "x_4333_results.json",
            "x_4333_results.pftrace"
        ]
    );
    // And from there once more.
    let again = directory();
    let copy = out.path().join("x_4333_results.db");
    good(
        again.path(),
        &["convert", &copy.to_string_lossy(), "-f", "csv"],
    );
    let name = "kernel_trace.csv";
    assert_eq!(
        sorted_rows(&again.path().join(format!("x_4333_{name}"))),
        sorted_rows(&Path::new(GOLDEN).join(format!("trace_{name}")))
    );
    let line = bad(
        out.path(),
        &["convert", "x_4333_results.db", "-f", "rocpd"],
        1,
    );
    assert!(line.contains("is an input too"), "{line}");
}

#[test]
fn summary_prints_the_tables_of_the_original() {
    let out = directory();
    let golden = std::fs::read_to_string(Path::new(TOOLS).join("summary.stdout.txt"))
        .expect("the golden summary");
    let original = named("rocpd", out.path(), &["summary", "-i", &database()]);
    let lines = |text: &str| -> Vec<String> {
        let lines = text.lines().map(|line| line.trim_end().to_owned());
        lines.filter(|line| !line.is_empty()).collect()
    };
    assert_eq!(lines(&text(&original.stdout)), lines(&golden));
    let golden = golden
        .strip_suffix("Done. Exiting...\n")
        .expect("its last line")
        .replace("NaN", "  -");
    assert_eq!(
        good(out.path(), &["summary", &database()]).trim_end(),
        golden.trim_end()
    );

    let csv = good(
        out.path(),
        &[
            "summary",
            &database(),
            "--region-categories",
            "HIP",
            "--domain-summary",
        ],
    );
    assert!(
        csv.contains("\nHIP_SUMMARY:\n") && !csv.contains("HSA_SUMMARY"),
        "{csv}"
    );
    assert!(csv.contains("\nDOMAIN_SUMMARY:\n"), "{csv}");
    good(
        out.path(),
        &[
            "summary",
            "-f",
            "csv",
            "-o",
            "s",
            "--summary-by-rank",
            &database(),
        ],
    );
    let ranks =
        std::fs::read_to_string(out.path().join("s_kernels_summary_by_rank.csv")).expect("a file");
    assert!(
        ranks.lines().nth(1).expect("a row").starts_with("4333,"),
        "{ranks}"
    );
}

/// Cells of a CSV file whose fields hold no commas or are quoted names in front.
fn cells(path: &Path) -> Vec<Vec<String>> {
    let text =
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let fields = |line: &str| {
        let mut fields: Vec<String> = line.rsplitn(8, ',').map(str::to_owned).collect();
        fields.reverse();
        fields
    };
    text.lines().skip(1).map(fields).collect()
}

#[test]
fn summary_prints_domain_tables_in_both_modes() {
    let out = directory();
    let words = [
        "summary",
        "-i",
        &database(),
        "-f",
        "csv",
        "--domain-summary",
        "--summary-by-rank",
    ];
    good(out.path(), &words);
    let names = |path: &str| -> Vec<String> {
        let rows = cells(&out.path().join(path));
        rows.into_iter().map(|row| row[0].clone()).collect()
    };
    let by_duration = names("domain_summary.csv");
    assert!(
        by_duration.contains(&"KERNELS".to_owned()),
        "{by_duration:?}"
    );
    let by_rank = names("domain_summary_by_rank.csv");
    let mut sorted = by_rank.clone();
    sorted.sort();
    assert_eq!(by_rank, sorted, "of one process ordered by name");
    assert_eq!(by_rank.len(), by_duration.len());
    assert!(by_rank[0].starts_with("4333,"), "{by_rank:?}");

    let output = named("rocpd", out.path(), &words);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    let directory = out.path().join("rocpd-output-data");
    let exported = format!(
        "Exported to: {}\n",
        directory.join("kernels_summary.csv").display()
    );
    assert!(stdout.contains(&exported), "{stdout}");
    assert!(stdout.ends_with("Done. Exiting...\n"), "{stdout}");
    let sum = |column: usize| -> f64 {
        let rows = cells(&directory.join("kernels_summary.csv"));
        let values = rows.iter().filter(|row| !row[column].is_empty());
        values
            .map(|row| row[column].parse::<f64>().expect("a number"))
            .sum()
    };
    let domains = cells(&directory.join("domain_summary.csv"));
    let kernels = domains.iter().find(|row| row[0] == "KERNELS");
    let kernels = kernels.expect("a row of kernels");
    for column in [3, 7] {
        let value: f64 = kernels[column].parse().expect("a number");
        assert!((value - sum(column)).abs() < 1e-6, "{kernels:?}");
    }
}

#[test]
fn programs_named_as_the_originals_work_as_they_do() {
    let out = directory();
    let run = |name: &str, words: &[&str]| named(name, out.path(), words);
    let output = run(
        "rocpd",
        &["convert", "-i", &database(), "-f", "csv", "pftrace"],
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    let found = names(&out.path().join("rocpd-output-data"));
    assert!(
        found.contains(&"out_kernel_trace.csv".to_owned()),
        "{found:?}"
    );
    assert!(
        found.contains(&"out_results.pftrace".to_owned()),
        "{found:?}"
    );
    assert!(
        found.iter().all(|name| name.starts_with("out_")),
        "{found:?}"
    );
    let stdout = text(&output.stdout);
    assert_eq!(
        stdout,
        "Converting database(s) to csv format:\nConverting database(s) to pftrace format:\nDone. Exiting...\n"
    );
    assert!(text(&output.stderr).contains("Opened result file: "));

    let sql = "SELECT 1 a";
    let output = run(
        "rocpd",
        &["query", "-i", &database(), "--query", sql, "-o", "x"],
    );
    assert_eq!(text(&output.stdout), " a\n 1\nDone. Exiting...\n");
    let words = [
        "query",
        "-i",
        &database(),
        "--query",
        sql,
        "--format",
        "html",
    ];
    let output = run("rocpd", &words);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let html = std::fs::read_to_string(out.path().join("rocpd-output-data/out.html"));
    assert!(html.expect("a page").contains("<td>1</td>"));

    let output = run("rocpd", &["reverse"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("rocpd: error: argument command: invalid choice: 'reverse'")
    );
    assert!(text(&run("rocpd", &[]).stdout).starts_with("Aggregates"));

    let output = run("rocprofv3-avail", &[]);
    assert_eq!(
        (output.status.code(), text(&output.stdout)),
        (Some(0), String::new())
    );
    let output = run("rocprofv3", &["--hip-trase", "--", "x"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        text(&output.stderr),
        "usage: rocprofv3 [options] -- <application> [application options]\n\
         rocprofv3: error: unrecognized arguments: --hip-trase; did you mean --hip-trace?\n"
    );
    let output = run("rocprofv3", &["--stats", "--", "x"]);
    assert_eq!(
        text(&output.stderr),
        "Fatal error: No tracing options were enabled for --stats option\n"
    );
}

#[test]
fn query_prints_and_writes_results() {
    let out = directory();
    let sql = "SELECT name, COUNT(*) c FROM regions GROUP BY name ORDER BY c DESC LIMIT 5";
    let golden = std::fs::read_to_string(Path::new(TOOLS).join("query.stdout.txt"))
        .expect("the golden result");
    let golden = golden
        .strip_suffix("Done. Exiting...\n")
        .expect("its last line");
    assert_eq!(good(out.path(), &["query", &database(), sql]), golden);
    assert_eq!(
        good(out.path(), &["query", "-i", &database(), "--query", sql]),
        golden
    );

    let sql = "SELECT 1 a, NULL b, 'x,y' c";
    assert_eq!(
        good(out.path(), &["query", &database(), sql, "-f", "csv"]),
        "a,b,c\n1,,\"x,y\"\n"
    );
    let json = good(out.path(), &["query", &database(), sql, "-f", "json"]);
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(value, serde_json::json!([{"a": 1, "b": null, "c": "x,y"}]));
    let markdown = good(out.path(), &["query", &database(), sql, "-f", "markdown"]);
    assert_eq!(markdown, "| a | b | c |\n|---|---|---|\n| 1 |  | x,y |\n");
    good(
        out.path(),
        &["query", &database(), sql, "-f", "csv", "-o", "r", "-d", "d"],
    );
    assert_eq!(names(&out.path().join("d")), ["r.csv"]);

    let line = bad(
        out.path(),
        &["query", &database(), "SELECT name,\n nonesuch FROM regions"],
        1,
    );
    assert_eq!(
        line,
        "rpd: query: no such column: nonesuch at line 2, column 2: nonesuch FROM regions\n"
    );
    let line = bad(
        out.path(),
        &["query", &database(), "DELETE FROM rocpd_region"],
        1,
    );
    assert!(line.contains("rocpd_region"), "{line}");
    bad(out.path(), &["query", &database()], 2);
}

#[test]
fn window_options_select_records_by_time() {
    let out = directory();
    let count = |extra: &[&str]| -> i64 {
        let database = database();
        let mut arguments = vec![
            "query",
            &*database,
            "SELECT count(*) n FROM regions_and_samples",
            "-f",
            "csv",
        ];
        arguments.extend(extra);
        let text = good(out.path(), &arguments);
        text.lines()
            .nth(1)
            .expect("a row")
            .parse()
            .expect("a number")
    };
    let all = count(&[]);
    assert_eq!(count(&["--start", "0%", "--end", "100%"]), all);
    let inside = count(&["--start-marker", "worker 0", "--end-marker", "worker 0"]);
    let overlapping = count(&[
        "--start-marker",
        "worker 0",
        "--end-marker",
        "worker 0",
        "--inclusive",
        "false",
    ]);
    assert!(
        inside > 0 && inside < overlapping && overlapping < all,
        "{inside} {overlapping} {all}"
    );

    // The converter takes the same window.
    good(
        out.path(),
        &[
            "convert",
            &database(),
            "-f",
            "csv",
            "--start-marker",
            "worker 0",
            "--end-marker",
            "worker 0",
        ],
    );
    let rows: usize = ["hip", "hsa", "marker"]
        .iter()
        .map(|name| sorted_rows(&out.path().join(format!("trace_{name}_api_trace.csv"))).len() - 1)
        .sum();
    assert_eq!(rows as i64, inside);

    let database = database();
    let line = bad(
        out.path(),
        &["summary", &database, "--start-marker", "nonesuch"],
        1,
    );
    assert!(line.contains("nonesuch"), "{line}");
    let line = bad(
        out.path(),
        &["summary", &database, "--start-marker", "iteration"],
        1,
    );
    assert!(line.contains("4 ROCTx markers"), "{line}");
    let line = bad(
        out.path(),
        &["summary", &database, "--start", "60%", "--end", "50%"],
        1,
    );
    assert!(line.contains("before it begins"), "{line}");
    bad(out.path(), &["summary", &database, "--start", "101%"], 2);
}

#[test]
fn commands_name_bad_input() {
    let out = directory();
    let path = out.path().join("x.db");
    let whole = std::fs::read(database()).expect("the golden database");
    for (bytes, word) in [
        (&b"hello"[..], "not an SQLite file"),
        (&whole[..whole.len() / 2], "truncated"),
    ] {
        std::fs::write(&path, bytes).expect("written");
        for command in [
            &["convert", "x.db", "-f", "csv"][..],
            &["query", "x.db", "SELECT 1"],
            &["summary", "x.db"],
            &["merge", "x.db", "-o", "y"],
            &["diff", "x.db", "x.db"],
        ] {
            let line = bad(out.path(), command, 1);
            assert!(
                line.contains("x.db") && line.contains(word),
                "{command:?}: {line}"
            );
        }
    }
    let line = bad(out.path(), &["summary", "none.db"], 1);
    assert!(line.contains("none.db: No such file"), "{line}");
    assert_eq!(names(out.path()), ["x.db"]);
    let line = bad(out.path(), &["convert", "x.db", "-f", "xml"], 2);
    assert!(line.contains("xml") && line.contains("pftrace"), "{line}");
    for name in ["convert", "query", "summary", "merge", "diff"] {
        assert!(
            good(out.path(), &[name, "--help"]).contains("Usage: rpd "),
            "{name}"
        );
        bad(out.path(), &[name, "--nonesuch"], 2);
    }
}
