//! `cargo xtask test`: every test of the workspace.

use anyhow::Result;
use rpd_tests::workloads;

use crate::shell;

/// Tools that single tests need, and what is left out without them.
const OPTIONAL: [(&str, &str); 7] = [
    ("sqlite3", "reading a database with the sqlite3 program"),
    ("python3", "the ctypes workload and Python stacks"),
    ("readelf", "what the workloads link to"),
    (
        "otf2-print",
        "reading OTF2 archives with the original reader",
    ),
    ("chromedriver", "the page in a real browser"),
    ("c++", "call stacks and symbols of C++ programs"),
    ("gdb", "call stacks beside those of gdb"),
];

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let bin = shell::build(false)?;
    println!("workloads: {}", workloads::build().display());
    for (tool, check) in OPTIONAL {
        if shell::tool(tool).is_none() {
            println!("skipped: {check}: no {tool} on PATH");
        }
    }
    let mut cargo = shell::cargo();
    cargo
        .args(["test", "--workspace"])
        .args(arguments)
        .env("RPD_BIN_DIR", bin);
    let mut total = Total::default();
    let ended = shell::run_seeing(&mut cargo, |line| total.add_line(line));
    println!(
        "tests: {} passed, {} failed, {} ignored",
        total.passed, total.failed, total.ignored
    );
    ended
}

/// Sums of the results that the test binaries printed.
#[derive(Default)]
struct Total {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Total {
    /// Parses a line like `test result: ok. 3 passed; 0 failed; 1 ignored; ...`.
    fn add_line(&mut self, line: &str) {
        let Some((_, figures)) = line
            .strip_prefix("test result: ")
            .and_then(|rest| rest.split_once(". "))
        else {
            return;
        };
        for figure in figures.split("; ") {
            let (number, what) = figure.split_once(' ').unwrap_or_default();
            let number: u64 = number.parse().unwrap_or(0);
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Total;

    #[test]
    fn results_of_test_binaries_add_up() {
        let mut total = Total::default();
        for line in [
            "running 3 tests",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.02s",
            "test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.02s",
        ] {
            total.add_line(line);
        }
        assert_eq!((total.passed, total.failed, total.ignored), (5, 1, 1));
    }
}
