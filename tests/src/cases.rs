//! Lists of conformance cases with the tests that check them.

use std::fs;

use crate::install::source_root;

/// A file or a folder, from the root of the source tree, and the name of a test in it.
pub type Test = (&'static str, &'static str);

/// The Rust source of a file, or of all files of a folder.
fn source(path: &str) -> String {
    let path = source_root().join(path);
    let read = |path| fs::read_to_string(path).expect("a source file");
    match path.is_dir() {
        false => read(path),
        true => fs::read_dir(path)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
            .map(read)
            .collect(),
    }
}

/// Checks that the tests of a case exist.
///
/// # Panics
/// When one does not.
pub fn assert_tests(case: &str, tests: &[Test]) {
    for (path, test) in tests {
        let text = source(path);
        // Cases of Python are rows of a macro.
        let is_there =
            text.contains(&format!("fn {test}(")) || text.contains(&format!("    {test} = "));
        assert!(is_there, "case {case}: {path} has no test {test}");
    }
}
