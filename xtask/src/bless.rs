//! `cargo xtask bless`: rewrites the golden files with what the tests get now.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use rpd_tests::sources::files_below;
use rpd_tests::{install, workloads};

use crate::shell;

/// The variable by which insta, which makes all comparisons with golden files of our own output, rewrites these files.
const VARIABLE: &str = "INSTA_UPDATE";

/// How a source compares with a golden file.
const COMPARISON: &str = concat!("insta::", "assert_");

/// Which tests a source has: what chooses their binary, and how their names begin.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Tests {
    binary: Vec<String>,
    module: String,
}

/// The tests of the source `path`, which begins at the root of the tree; `None` when Cargo has no test binary for it.
fn tests_of(path: &Path) -> Option<Tests> {
    let words: Vec<&str> = path.to_str()?.split('/').collect();
    let (binary, rest) = match words.as_slice() {
        [_, "src", rest @ ..] => (vec!["--lib".to_owned()], rest),
        // The end-to-end tests are in a directory of their own below `tests`.
        [_, "tests", binary, rest @ ..] if !rest.is_empty() => {
            (vec!["--test".to_owned(), (*binary).to_owned()], rest)
        }
        _ => return None,
    };
    let names = rest.iter().map(|word| word.trim_end_matches(".rs"));
    let modules: Vec<&str> = names
        .filter(|name| !["mod", "lib", "main"].contains(name))
        .collect();
    // A module's name at the end would be found in longer names, too.
    let module = modules.iter().map(|module| format!("{module}::")).collect();
    Some(Tests { binary, module })
}

/// The tests that compare with golden files, for all sources of the tree.
fn golden_tests() -> Result<BTreeSet<Tests>> {
    let root = install::source_root();
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(root)? {
        let package = entry?.path();
        if !package.join("Cargo.toml").exists() {
            continue;
        }
        for directory in ["src", "tests"].map(|name| package.join(name)) {
            if !directory.is_dir() {
                continue;
            }
            for path in files_below(&directory, &["rs"]) {
                if fs::read_to_string(&path)?.contains(COMPARISON) {
                    let below = path.strip_prefix(root)?;
                    let tests = tests_of(below)
                        .with_context(|| format!("{}: no test binary has it", path.display()))?;
                    found.insert(tests);
                }
            }
        }
    }
    Ok(found)
}

/// Runs the tests that compare with golden files so that they rewrite these files.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    if !arguments.is_empty() {
        bail!("bless has no arguments");
    }
    let tests = golden_tests()?;
    let bin = shell::build(false)?;
    println!("workloads: {}", workloads::build().display());
    let binaries: BTreeSet<&[String]> = tests.iter().map(|one| one.binary.as_slice()).collect();
    let mut cargo = shell::cargo();
    cargo
        .args(["test", install::SAME_DEPENDENCIES])
        .args(binaries.into_iter().flatten())
        .arg("--")
        .args(tests.iter().map(|one| &one.module))
        .env(VARIABLE, "always")
        .env("RPD_BIN_DIR", bin);
    shell::run(&mut cargo)?;
    println!("golden files are what the tests get now: `git diff -- '*.snap'` shows what changed");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_lead_to_their_test_binary_and_module() {
        let found = |path: &str| {
            let tests = tests_of(Path::new(path))?;
            Some((tests.binary.join(" "), tests.module))
        };
        let expected = |binary: &str, module: &str| Some((binary.to_owned(), module.to_owned()));
        assert_eq!(found("a/src/b/c.rs"), expected("--lib", "b::c::"));
        assert_eq!(found("a/src/b/mod.rs"), expected("--lib", "b::"));
        assert_eq!(
            found("a/tests/e2e/b/c.rs"),
            expected("--test e2e", "b::c::")
        );
        assert_eq!(found("a/tests/b.rs"), None);
        assert_eq!(found("a/benches/b.rs"), None);
    }

    #[test]
    fn every_comparison_with_a_golden_file_is_blessed() {
        let modules: Vec<String> = golden_tests()
            .expect("every comparison is in a test binary")
            .into_iter()
            .map(|tests| tests.module)
            .collect();
        assert!(
            modules.contains(&"counters::avail::".to_owned()),
            "{modules:?}"
        );
        assert!(
            modules.contains(&"commands::avail::tests::".to_owned()),
            "{modules:?}"
        );
    }
}
