//! The sub-commands that work on results, run on a database that the original wrote and on bad input.

use std::path::{Path, PathBuf};
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
fn a_run_s_files_come_out_of_its_database() {
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
fn the_converter_s_layout() {
    let out = directory();
    good(
        out.path(),
        &[
            "convert",
            "--layout",
            "rocpd",
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
fn several_formats_and_a_prefix() {
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
fn summaries_are_the_original_s() {
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
fn domain_summaries_in_both_modes() {
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
    let folder = out.path().join("rocpd-output-data");
    let exported = format!(
        "Exported to: {}\n",
        folder.join("kernels_summary.csv").display()
    );
    assert!(stdout.contains(&exported), "{stdout}");
    assert!(stdout.ends_with("Done. Exiting...\n"), "{stdout}");
    let sum = |column: usize| -> f64 {
        let rows = cells(&folder.join("kernels_summary.csv"));
        let values = rows.iter().filter(|row| !row[column].is_empty());
        values
            .map(|row| row[column].parse::<f64>().expect("a number"))
            .sum()
    };
    let domains = cells(&folder.join("domain_summary.csv"));
    let kernels = domains.iter().find(|row| row[0] == "KERNELS");
    let kernels = kernels.expect("a row of kernels");
    for column in [3, 7] {
        let value: f64 = kernels[column].parse().expect("a number");
        assert!((value - sum(column)).abs() < 1e-6, "{kernels:?}");
    }
}

#[test]
fn the_original_s_commands_by_name() {
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
fn queries() {
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
fn windows() {
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

    // The converter sees the same window.
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

/// Another recording: the golden one under another id.
fn other(directory: &Path) -> PathBuf {
    let dump = Command::new("sqlite3")
        .args([&database(), ".dump"])
        .output()
        .expect("sqlite3");
    let dump = text(&dump.stdout)
        .replace("e5b7-75b7", "e5b7-75b8")
        .replace("e5b7_75b7", "e5b7_75b8");
    let path = directory.join("other_results.db");
    let mut child = Command::new("sqlite3")
        .arg(&path)
        .stdin(std::process::Stdio::piped())
        .spawn()
        .expect("sqlite3");
    std::io::Write::write_all(&mut child.stdin.take().expect("its input"), dump.as_bytes())
        .expect("written");
    assert!(child.wait().expect("sqlite3").success());
    path
}

#[test]
fn merging() {
    let out = directory();
    let other = other(out.path());
    let other = other.to_string_lossy();
    let line = bad(
        out.path(),
        &["merge", "-o", "m.db", &database(), &database()],
        1,
    );
    assert!(
        line.contains("00000057-e5b7-75b7-b481-79f7795676a5"),
        "{line}"
    );
    assert!(!out.path().join("m.db").exists());

    good(out.path(), &["merge", "-o", "m", &database(), &other]);
    let count = |database: &[&str]| {
        let mut arguments = vec!["query"];
        arguments.extend(database);
        arguments.extend([
            "SELECT (SELECT count(*) FROM regions) r, (SELECT count(*) FROM kernels) k, \
            (SELECT count(*) FROM memory_allocations) m, (SELECT count(*) FROM events_args) a",
            "-f",
            "csv",
        ]);
        good(out.path(), &arguments)
    };
    let merged = count(&["m.db"]);
    assert_eq!(merged, count(&[&database(), &other]));
    assert_ne!(merged, count(&[&database()]));
    // Two processes come out of it, each as it went in.
    good(out.path(), &["convert", "m.db", "-f", "csv"]);
    for prefix in ["m", "m_4333"] {
        assert_eq!(
            sorted_rows(&out.path().join(format!("{prefix}_hsa_api_trace.csv"))),
            sorted_rows(&Path::new(GOLDEN).join("trace_hsa_api_trace.csv"))
        );
    }
    // A lost view comes back.
    let broken = out.path().join("broken.db");
    std::fs::copy(database(), &broken).expect("copied");
    let done = Command::new("sqlite3")
        .arg(&broken)
        .arg("DROP VIEW rocpd_event")
        .status()
        .expect("sqlite3");
    assert!(done.success());
    let line = bad(out.path(), &["summary", "broken.db"], 1);
    assert!(
        line.contains("rocpd_event") && line.contains("rpd merge"),
        "{line}"
    );
    good(out.path(), &["merge", "-o", "mended", "broken.db"]);
    assert_eq!(count(&["mended.db"]), count(&[&database()]));
}

/// Three runs a side made from the recorded one: durations of all kernels times `factor`, and of each run times its noise.
fn runs(directory: &Path, name: &str, factor: f64, noise: [f64; 3]) -> Vec<String> {
    noise
        .into_iter()
        .enumerate()
        .map(|(index, noise)| {
            let name = format!("{name}{index}.db");
            let path = directory.join(&name);
            std::fs::copy(database(), &path).expect("copied");
            let suffix = "_00000057_e5b7_75b7_b481_79f7795676a5";
            let sql = format!(
                "UPDATE rocpd_kernel_dispatch{suffix} SET \"end\" = start + CAST((\"end\" - start) * {noise} AS INTEGER);
                UPDATE rocpd_kernel_dispatch{suffix} SET \"end\" = start + CAST((\"end\" - start) * {factor} AS INTEGER)
                WHERE kernel_id = 16"
            );
            let done = Command::new("sqlite3").arg(&path).arg(sql).status();
            assert!(done.expect("sqlite3").success());
            name
        })
        .collect()
}

fn sides<'a>(before: &'a [String], after: &'a [String], options: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec!["diff", "--before"];
    words.extend(before.iter().map(String::as_str));
    words.push("--after");
    words.extend(after.iter().map(String::as_str));
    words.extend(options);
    words
}

#[test]
fn differences() {
    let out = directory();
    let same = [&database(), &database()].map(String::clone);
    let table = good(out.path(), &["diff", &same[0], &same[1], "-f", "csv"]);
    assert!(table.lines().count() > 40);
    let mut lines = table.lines();
    assert_eq!(
        lines.next(),
        Some(
            "Kind,Name,Share %,Runs A,Runs B,Calls A,Calls B,Total A (nsec),Total B (nsec),Total %,Mean A (nsec),Mean B \
            (nsec),Mean %,Median A (nsec),Median B (nsec),Median %,Typical A (nsec),Typical B (nsec),Typical %,Spread %,Beyond chance,P95 A,P95 B"
        )
    );
    assert!(lines.all(|line| line.contains(",0.0,")), "{table}");
    bad(out.path(), &["diff", &database()], 2);
}

#[test]
fn a_gate_fails_on_what_is_beyond_chance() {
    let out = directory();
    let before = runs(out.path(), "a", 1.0, [1.0, 1.005, 0.995]);
    let slower = runs(out.path(), "b", 1.1, [1.0, 1.005, 0.995]);
    let same = runs(out.path(), "c", 1.0, [1.02, 1.0, 1.01]);
    let noisy = runs(out.path(), "d", 1.1, [1.0, 1.3, 0.8]);

    let words = sides(&before, &slower, &["--fail-above", "5%", "-f", "json"]);
    let output = rpd(out.path(), &words);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(
        stderr.starts_with("rpd: slower: kernel void addition_kernel<float>")
            && stderr.contains(": typical ")
            && stderr.contains("(+10.0 %, runs differ by 0."),
        "{stderr}"
    );
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(rows[0]["Kind"], "kernel");
    assert_eq!(
        (&rows[0]["Runs A"], &rows[0]["Runs B"]),
        (&3.into(), &3.into())
    );
    assert_eq!(rows[0]["Calls A"], 12);
    assert_eq!(rows[0]["Beyond chance"], "yes");

    for (after, options) in [
        (&same, &["--fail-above", "1"][..]),
        // Above the limit, but not beyond what runs differ by.
        (&noisy, &["--fail-above", "5"]),
        (&slower, &["--fail-above", "15"]),
        // What has next to no share matters to nobody.
        (&slower, &["--fail-above", "5", "--min-share", "60"]),
        (&slower, &["--fail-above", "1", "--of", "api", "copy"]),
        // Without a gate nothing fails.
        (&slower, &[]),
    ] {
        good(out.path(), &sides(&before, after, options));
    }
    let output = rpd(out.path(), &sides(&before, &noisy, &["--fail-above", "5"]));
    let stderr = text(&output.stderr);
    assert!(
        stderr.contains("cannot be told from chance") && stderr.contains("quieter machine"),
        "{stderr}"
    );
    for gate in ["--fail-mean-above", "--fail-total-above"] {
        let output = rpd(out.path(), &sides(&before, &slower, &[gate, "5"]));
        assert_eq!(output.status.code(), Some(3), "{gate}");
    }
}

#[test]
fn one_run_a_side_says_that_chance_is_unknown() {
    let out = directory();
    let before = runs(out.path(), "a", 1.0, [1.0, 1.01, 0.99]);
    let after = runs(out.path(), "b", 2.0, [1.0, 1.01, 0.99]);
    let words = ["diff", &before[0], &after[0], "--fail-above", "5"];
    let output = rpd(out.path(), &words);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert_eq!(
        stderr.lines().last(),
        Some(
            "rpd: diff: with one run on a side the spread is unknown, and 1 above the limit did not count; name \
            several runs a side (--before A1 A2 A3 --after B1 B2 B3), or give --fail-on-single"
        )
    );
    let output = rpd(out.path(), &[&words[..], &["--fail-on-single"]].concat());
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(
        stderr.contains("one run a side: perhaps chance"),
        "{stderr}"
    );
}

#[test]
fn bad_input_is_named() {
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
