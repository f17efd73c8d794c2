//! Rules for doc comments: each is understood without the comments beside it.

use rpd_tests::install::source_root;
use rpd_tests::sources::workspace_files;

/// Beginnings of a comment that only the comment before it explains, as whole words.
const BACK_REFERENCES: [&str; 29] = [
    "also",
    "and",
    "as above",
    "as before",
    "as there",
    "but",
    "ditto",
    "if so",
    "it",
    "its",
    "like above",
    "like that",
    "like the above",
    "like the one before",
    "likewise",
    "otherwise",
    "same",
    "see above",
    "see below",
    "so",
    "such",
    "that",
    "the same",
    "their",
    "them",
    "then",
    "these",
    "they",
    "those",
];

/// Whether a comment with this first line begins with a reference to another comment.
fn begins_with_back_reference(line: &str) -> bool {
    let line = line.to_lowercase();
    BACK_REFERENCES.iter().any(|words| {
        line.strip_prefix(words)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    })
}

/// The doc comments of a Rust file: for each block the number of its first line, from 1, and the text of that line.
fn first_lines(text: &str) -> Vec<(usize, &str)> {
    let mut first = Vec::new();
    let mut previous = None;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start();
        // Four slashes make an ordinary comment.
        let kind = ["///", "//!"]
            .into_iter()
            .find(|kind| line.starts_with(kind) && !line.starts_with("////"));
        if let Some(kind) = kind
            && previous != Some(kind)
        {
            first.push((number, line[kind.len()..].trim()));
        }
        previous = kind;
    }
    first
}

/// The doc comments of all sources that begin with a back-reference, each as file, line and text.
fn wrong_comments() -> Vec<String> {
    let mut wrong = Vec::new();
    for file in workspace_files(&["rs"]) {
        let text = std::fs::read_to_string(&file).expect("a source file");
        let name = file.strip_prefix(source_root()).expect("a file below");
        for (number, line) in first_lines(&text) {
            if begins_with_back_reference(line) {
                wrong.push(format!("{}:{number}: {line}", name.display()));
            }
        }
    }
    wrong
}

#[test]
fn doc_comments_begin_without_a_back_reference() {
    let wrong = wrong_comments();
    assert!(
        wrong.is_empty(),
        "{} doc comments need the comment before them; say what each is about:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn first_lines_has_one_line_of_each_doc_comment() {
    let text = "//! The module.\n//!\n//! More of it.\n\n/// A struct.\nstruct S {\n    /// The same.\n    a: u8, // not a doc\n    //// Nor this.\n    /// A field.\n    /// It has two lines.\n    b: u8,\n}\n";
    let expected = [
        (1, "The module."),
        (5, "A struct."),
        (7, "The same."),
        (10, "A field."),
    ];
    assert_eq!(first_lines(text), expected);
}

#[test]
fn begins_with_back_reference_compares_whole_words() {
    for line in [
        "The same while the provider delivers.",
        "Its kernel.",
        "It is full.",
        "Those that `take` returns.",
        "That of the argument.",
        "Otherwise a call.",
        "These: none.",
    ] {
        assert!(begins_with_back_reference(line), "{line}");
    }
    for line in [
        "Items of a list.",
        "Thematic names.",
        "Iterates over all calls.",
        "Order of the calls.",
        "A call. It has a number.",
        "Sorts the rows.",
        "",
    ] {
        assert!(!begins_with_back_reference(line), "{line}");
    }
}
