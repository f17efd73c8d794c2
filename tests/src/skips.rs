//! Checks that are left out on this machine: printed at once, and counted by `cargo xtask test`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::{env, fs, thread};

/// The environment variable with the file to which checks that are left out are appended.
pub const VARIABLE: &str = "RPD_TEST_SKIPS";

/// Says that `check` is left out on this machine, and why. The line is on standard error at once, also where the test passes.
///
/// # Panics
/// When the file that [`VARIABLE`] names cannot be written: the count would be wrong.
pub fn skipped(check: &str, reason: &str) {
    let line = line(check, reason);
    // Not `eprintln`, whose text the test harness keeps to itself where a test passes.
    let _ = writeln!(io::stderr().lock(), "skipped: {check}: {reason}");
    if let Some(path) = env::var_os(VARIABLE) {
        let file = OpenOptions::new().append(true).create(true).open(&path);
        // One write: processes that append at the same time do not tear each other's lines.
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        written.unwrap_or_else(|error| panic!("{}: {error}", Path::new(&path).display()));
    }
}

/// Passes on the lines `skipped: CHECK: REASON` of what a script printed.
pub fn skipped_by_script(text: &str) {
    let lines = text
        .lines()
        .filter_map(|line| line.strip_prefix("skipped: "));
    for line in lines {
        let (check, reason) = line.split_once(": ").unwrap_or((line, "no reason given"));
        skipped(check, reason);
    }
}

/// The program `name` on `PATH`.
#[must_use]
pub fn tool(name: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?)
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
}

/// The program `name` on `PATH`, for a check that other machines can do without; `None`, and [`skipped`], where it is missing.
#[must_use]
pub fn tool_for(check: &str, name: &str) -> Option<PathBuf> {
    let found = tool(name);
    if found.is_none() {
        skipped(check, &format!("no {name}"));
    }
    found
}

/// Whether the program `name` is not on `PATH`; the calling test is then [`skipped`].
#[must_use]
pub fn lacks(name: &str) -> bool {
    let test = thread::current();
    tool_for(test.name().unwrap_or("a test"), name).is_none()
}

/// The checks that were appended to a file, by the reason for which they were left out.
#[derive(Debug, Default)]
pub struct Skips(BTreeMap<String, BTreeSet<String>>);

impl Skips {
    /// Reads the file; one that does not exist has no checks.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(path: &Path) -> io::Result<Self> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => text?,
        };
        let mut skips = Self::default();
        for (check, reason) in text.lines().filter_map(|line| line.split_once('\t')) {
            let checks = skips.0.entry(reason.to_owned()).or_default();
            checks.insert(check.to_owned());
        }
        Ok(skips)
    }

    /// The number of checks.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.values().map(BTreeSet::len).sum()
    }

    /// A line for each reason, with the checks that were left out for it.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(reason, checks)| {
            let names: Vec<&str> = checks.iter().map(String::as_str).collect();
            format!("skipped: {reason} ({}): {}", checks.len(), names.join(", "))
        })
    }
}

/// A line of the file: check and reason, separated by a tab.
fn line(check: &str, reason: &str) -> String {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{}\t{}\n", one_line(check), one_line(reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_checks_are_counted_once_by_reason() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("skips");
        assert_eq!(Skips::read(&path).expect("no file").count(), 0);
        let lines = [
            line("a page", "no chromium"),
            line("stacks", "no python3"),
            line("a page", "no chromium"),
            line("columns", "no\tpython3\n"),
        ];
        fs::write(&path, lines.concat()).expect("written");
        let skips = Skips::read(&path).expect("read");
        assert_eq!(skips.count(), 3);
        assert_eq!(
            skips.lines().collect::<Vec<_>>(),
            [
                "skipped: no chromium (1): a page",
                "skipped: no python3 (2): columns, stacks"
            ]
        );
    }

    #[test]
    fn tool_finds_no_missing_program() {
        assert!(tool("sh").is_some());
        assert_eq!(tool("no-such-program-of-rpd"), None);
    }
}
