//! `rpd diff` of databases, and its limits.

use std::path::Path;

use rpd_tests::outputs::Database;

use super::{bad, database, directory, good, rpd, text};

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
            Database::change(&path, &sql);
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
fn diff_prints_differences_of_databases() {
    let out = directory();
    let same = [&database(), &database()].map(String::clone);
    let table = good(out.path(), &["diff", &same[0], &same[1], "-f", "csv"]);
    assert!(table.lines().count() > 40);
    let mut lines = table.lines();
    assert_eq!(
        lines.next(),
        Some(
            "Kind,Name,Share %,Runs A,Runs B,Calls A,Calls B,Total A (nsec),Total B (nsec),Total %,Mean A (nsec),Mean B \
            (nsec),Mean %,Median A (nsec),Median B (nsec),Median %,Typical A (nsec),Typical B (nsec),Typical %,Spread %,Beyond chance,P95 A (nsec),P95 B (nsec)"
        )
    );
    assert!(lines.all(|line| line.contains(",0.0,")), "{table}");
    bad(out.path(), &["diff", &database()], 2);
}

#[test]
fn diff_gate_fails_on_changes_beyond_chance() {
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
        // Names with a negligible share are left out.
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
fn diff_of_one_run_a_side_reports_chance_as_unknown() {
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
