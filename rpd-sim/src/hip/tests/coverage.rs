//! Coverage of the API's functions by tests.

use std::collections::{BTreeSet, HashSet};
use std::fs::read_to_string;

use rpd_tests::install::source_root;
use rpd_tests::sources::{files_below, is_test};

/// Number of implemented functions that no test and no program of the end-to-end tests names. The number only goes
/// down: a new function has a test.
const UNTESTED: usize = 176;

#[test]
fn the_number_of_hip_functions_without_a_test_does_not_grow() {
    let extensions = ["rs", "c", "cpp", "h", "hip", "py"];
    let directories = ["rpd-sim/src/hip", "tests/workloads", "tests/tests"];
    let sources = directories
        .iter()
        .flat_map(|directory| files_below(&source_root().join(directory), &extensions));
    let mut implemented = BTreeSet::new();
    let mut named = HashSet::new();
    for path in sources {
        let text = read_to_string(&path).expect("a source file");
        let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
        if is_test(path.strip_prefix(source_root()).expect("below the root")) {
            let words = text.split(|character| !is_word(character));
            named.extend(words.map(str::to_owned));
        } else {
            let functions = text.split("extern \"C\" fn ").skip(1);
            let names = functions.filter_map(|text| text.split(|c| !is_word(c)).next());
            let exported = ["hip", "__hip"];
            let names = names.filter(|name| exported.iter().any(|of| name.starts_with(of)));
            implemented.extend(names.map(str::to_owned));
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
    // Otherwise the next function could go without.
    assert_eq!(untested.len(), UNTESTED, "lower the number");
}
