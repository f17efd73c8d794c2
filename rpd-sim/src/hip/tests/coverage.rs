//! Which functions have a test.

use std::collections::{BTreeSet, HashSet};
use std::fs::{read_dir, read_to_string};
use std::path::Path;

/// Implemented functions that no test and no program of the end-to-end tests names. The number only goes down: a new function has
/// a test.
const UNTESTED: usize = 180;

/// Adds the sources below a folder, each with whether it belongs to tests.
fn add_sources(folder: &Path, is_test: bool, sources: &mut Vec<(bool, String)>) {
    for entry in read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_test = is_test || name == "tests" || name == "tests.rs";
        let extensions = ["rs", "c", "cpp", "h", "hip", "py"];
        if path.is_dir() {
            add_sources(&path, is_test, sources);
        } else if extensions
            .iter()
            .any(|end| name.ends_with(&format!(".{end}")))
        {
            sources.push((is_test, read_to_string(&path).expect("a source file")));
        }
    }
}

#[test]
fn a_new_function_has_a_test() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = Vec::new();
    add_sources(&package.join("src/hip"), false, &mut sources);
    add_sources(&package.join("../tests/workloads"), true, &mut sources);
    add_sources(&package.join("../tests/tests"), true, &mut sources);
    let mut implemented = BTreeSet::new();
    let mut named = HashSet::new();
    for (is_test, text) in &sources {
        let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
        if *is_test {
            named.extend(text.split(|character| !is_word(character)));
        } else {
            let functions = text.split("extern \"C\" fn ").skip(1);
            let names = functions.filter_map(|text| text.split(|c| !is_word(c)).next());
            let exported = ["hip", "__hip"];
            implemented.extend(names.filter(|name| exported.iter().any(|of| name.starts_with(of))));
        }
    }
    assert!(implemented.len() > 300, "{}", implemented.len());
    let untested: Vec<_> = implemented
        .iter()
        .filter(|name| !named.contains(*name))
        .collect();
    assert!(
        untested.len() <= UNTESTED,
        "{} functions without a test, {UNTESTED} before: write one for the new one of {untested:?}",
        untested.len()
    );
}
