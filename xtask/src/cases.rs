//! The numbered cases of `tests/cases`, and the citations of them in sources, scripts and documentation.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use rpd_tests::install::source_root;
use rpd_tests::sources::{files_below, workspace_files};

/// Kinds of files that may cite a case.
const CITING: [&str; 10] = [
    "rs", "py", "sh", "md", "c", "h", "hip", "cpp", "toml", "yml",
];

/// Subjects whose cases need a test each. The others are lists of what the original does, of which rpd has a part.
const COMPLETE: [&str; 4] = ["capture", "sampling", "stacks", "thread-trace"];

/// How the sentence of a case without a test says so.
const UNTESTED: &str = "Not tested: ";

/// A subject and the number of a case, which may begin with a `D` for a deliberate difference.
type Case = (String, String);

/// The cases of one file: each line that begins with a number and a period.
fn cases_in(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines()
        .filter_map(|line| line.split_once(". "))
        .filter(|(number, _)| {
            let digits = number.strip_prefix('D').unwrap_or(number);
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        })
}

/// The sentences of all cases, and the subjects, which are the names of the files.
///
/// # Panics
/// When a number stands twice in a file.
fn cases() -> (BTreeMap<Case, String>, BTreeSet<String>) {
    let mut cases = BTreeMap::new();
    let mut subjects = BTreeSet::new();
    for path in files_below(&source_root().join("tests/cases"), &["md"]) {
        let subject = path.file_stem().expect("a name").to_str().expect("text");
        subjects.insert(subject.to_owned());
        for (number, sentence) in cases_in(&fs::read_to_string(&path).expect("a list of cases")) {
            let case = (subject.to_owned(), number.to_owned());
            let other = cases.insert(case, sentence.to_owned());
            assert_eq!(other, None, "{subject}-{number} is there twice");
        }
    }
    (cases, subjects)
}

/// The files that may cite a case, without the lists of cases themselves.
fn citing_files() -> Vec<PathBuf> {
    let mut files = workspace_files(&CITING);
    let lists = source_root().join("tests/cases");
    files.retain(|file| !file.starts_with(&lists) && !file.ends_with("xtask/src/cases.rs"));
    files
}

/// The number of a case at the start of `text`, if there is one.
fn number(text: &str) -> Option<&str> {
    let digits = text.strip_prefix('D').unwrap_or(text);
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    (count > 0).then(|| &text[..text.len() - digits.len() + count])
}

/// The cases that `text` cites as subject and number. All cases between the ends of a range (`a-1 to a-9`) are cited.
fn citations(text: &str, subjects: &BTreeSet<String>) -> Vec<Case> {
    let is_cited = |subject: &String| text.contains(&format!("{subject}-"));
    let subjects: Vec<&String> = subjects
        .iter()
        .filter(|subject| is_cited(subject))
        .collect();
    if subjects.is_empty() {
        return Vec::new();
    }
    // A range may begin on one line of a comment and end on the next.
    let words: Vec<&str> = text
        .split_whitespace()
        .filter(|word| !["//", "///", "//!", "#", "*"].contains(word))
        .collect();
    let text = words.join(" ");
    let mut found = Vec::new();
    for subject in subjects {
        let prefix = format!("{subject}-");
        for (at, _) in text.match_indices(&prefix) {
            let is_inside = |letter: char| letter.is_alphanumeric() || "-_".contains(letter);
            if text[..at].ends_with(is_inside) {
                continue;
            }
            let after = &text[at + prefix.len()..];
            let Some(first) = number(after) else { continue };
            let rest = &after[first.len()..];
            if rest.starts_with(is_inside) {
                continue;
            }
            found.push((subject.clone(), first.to_owned()));
            let last = rest
                .strip_prefix(" to ")
                .and_then(|rest| rest.strip_prefix(&prefix))
                .and_then(number);
            let ends = (first.parse::<u32>(), last.map(str::parse::<u32>));
            if let (Ok(first), Some(Ok(last))) = ends {
                found.extend((first + 1..last).map(|number| (subject.clone(), number.to_string())));
            }
        }
    }
    found
}

/// Lines of `text` that name a case by a number without its subject.
fn bare_numbers(text: &str) -> Vec<&str> {
    let is_bare = |line: &&str| {
        // Most lines are skipped without a copy.
        if !line.contains("ase") && !line.contains("ASE") {
            return false;
        }
        let line = line.to_ascii_lowercase();
        let mut cases = line.match_indices("case");
        cases.any(|(at, word)| {
            let is_word = !line[..at].ends_with(|letter: char| letter.is_alphanumeric());
            let rest = &line[at + word.len()..];
            let rest = rest.strip_prefix('s').unwrap_or(rest);
            let rest = rest.strip_prefix([' ', '_']).unwrap_or_default();
            is_word && rest.starts_with(|letter: char| letter.is_ascii_digit())
        })
    };
    text.lines().filter(is_bare).collect()
}

#[test]
fn every_cited_case_has_its_sentence() {
    let (cases, subjects) = cases();
    let mut wrong = Vec::new();
    for file in citing_files() {
        let text = fs::read_to_string(&file).unwrap_or_default();
        for case in citations(&text, &subjects) {
            if !cases.contains_key(&case) {
                let (subject, number) = case;
                wrong.push(format!("{}: {subject}-{number}", file.display()));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "cited, but not in tests/cases:\n{}",
        wrong.join("\n")
    );
}

/// In C, `case` with a number is a statement; Rust and Python have none.
#[test]
fn no_source_names_a_case_without_its_subject() {
    let mut wrong = Vec::new();
    for file in citing_files() {
        if !file
            .extension()
            .is_some_and(|kind| kind == "rs" || kind == "py" || kind == "md")
        {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap_or_default();
        let lines = bare_numbers(&text).into_iter();
        wrong.extend(lines.map(|line| format!("{}: {}", file.display(), line.trim())));
    }
    assert!(
        wrong.is_empty(),
        "cite a case as subject-number:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn every_case_is_cited_or_says_why_not() {
    let (cases, subjects) = cases();
    let mut cited = BTreeSet::new();
    for file in citing_files() {
        if file.extension().is_some_and(|kind| kind == "rs") {
            let text = fs::read_to_string(&file).unwrap_or_default();
            cited.extend(citations(&text, &subjects));
        }
    }
    let mut wrong = Vec::new();
    for (case, sentence) in &cases {
        let (subject, number) = case;
        if COMPLETE.contains(&subject.as_str())
            && cited.contains(case) == sentence.contains(UNTESTED)
        {
            wrong.push(format!("{subject}-{number}: {sentence}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "each of these needs a test that cites it or a reason after `{UNTESTED}`, and not both:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn citations_are_found_alone_in_ranges_and_across_lines() {
    let subjects = BTreeSet::from(["a".to_owned(), "b-c".to_owned()]);
    let text = "/// Checks a-1, b-c-2 to\n/// b-c-4; xa-5, a-6x, a-b and a-D7.";
    let found: BTreeSet<String> = citations(text, &subjects)
        .into_iter()
        .map(|(subject, number)| format!("{subject}-{number}"))
        .collect();
    let expected = ["a-1", "a-D7", "b-c-2", "b-c-3", "b-c-4"].map(str::to_owned);
    assert_eq!(found, BTreeSet::from(expected));
}

#[test]
fn numbers_without_a_subject_are_found() {
    let text = "// Case 5.\nfn cases_2_to_5() {}\nlet lowercase_7 = 0;\n// In any case, a-5.";
    assert_eq!(bare_numbers(text), text.lines().take(2).collect::<Vec<_>>());
    assert_eq!(
        cases_in("1. One.\n\nText.\nD2. Two.\n10.5. No.").collect::<Vec<_>>(),
        [("1", "One."), ("D2", "Two.")]
    );
}
