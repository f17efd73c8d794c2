//! `cargo xtask test`: every test of the workspace.

use std::fs;

use anyhow::Result;
use rpd_tests::skips::{self, Skips};
use rpd_tests::{install, workloads};

use crate::{bare, shell};

/// Builds what the tests run and runs them; `arguments` go to Cargo, but for a `--bare` in front: the tests then find no
/// programs but those of Rust, the C compiler and the base system. What was left out, and why, is printed at the end.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (is_bare, arguments) = match arguments {
        [first, rest @ ..] if first == "--bare" => (true, rest),
        all => (false, all),
    };
    let bin = shell::build(false)?;
    println!("workloads: {}", workloads::build().display());
    let skipped = install::target_dir().join("skipped-tests");
    // Test processes append to it.
    fs::write(&skipped, "")?;
    let mut cargo = shell::cargo();
    cargo
        .args(["test", "--workspace"])
        .args(arguments)
        .env(skips::VARIABLE, &skipped)
        .env("RPD_BIN_DIR", bin);
    if is_bare {
        bare::confine(&mut cargo)?;
    }
    let mut total = Total::default();
    // The tests that were left out are of interest after a failure as well, so that the error comes last.
    let ended = shell::run_seeing(&mut cargo, |line| total.add_line(line));
    let skips = Skips::read(&skipped)?;
    for line in skips.lines() {
        println!("{line}");
    }
    println!(
        "tests: {} passed, {} failed, {} ignored; {} checks skipped",
        total.passed,
        total.failed,
        total.ignored,
        skips.count()
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
    fn totals_add_up_results_of_test_binaries() {
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
