//! One word for one thing: words that the sources do not use, and the word that stands for the thing instead.

use rpd_tests::install::source_root;
use rpd_tests::sources::workspace_files;

/// Words in any case and with any ending, and the words to use instead.
const WORDS: [(&str, &str); 1] = [("folder", "directory")];

/// Names of Rust items, as whole words, and the names to use instead.
const NAMES: [(&str, &str); 5] = [
    ("ApiCall", "CallRecord"),
    ("ApiTable", "CallTable"),
    ("api_flag", "call_flag"),
    ("api_label", "call_label"),
    ("put_in_order", "sort"),
];

/// This file, which has all of them.
const OWN: &str = "xtask/src/words.rs";

fn is_part_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether `name` stands in the line as a whole word.
fn has_name(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let behind = line[at + name.len()..].chars().next();
        !before.is_some_and(is_part_of_name) && !behind.is_some_and(is_part_of_name)
    })
}

/// Whether the line begins a constructor that is called `of` or `of_...`: it returns `Self`, or the type of its `impl` block.
fn is_constructor_of(line: &str, type_name: Option<&str>) -> bool {
    let Some((_, rest)) = line.split_once("fn of") else {
        return false;
    };
    let Some((arguments, returned)) = rest.split_once(" -> ") else {
        return false;
    };
    let names = ["Self"].into_iter().chain(type_name);
    // A function outside of a block is no constructor.
    line.starts_with(' ')
        && rest.starts_with(['(', '_', '<'])
        && !arguments.contains("self")
        && names.into_iter().any(|name| has_name(returned, name))
}

/// The type of the `impl` block that a line begins.
fn type_of_block(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("impl")?;
    let rest = match rest.strip_prefix('<') {
        Some(generic) => generic.split_once("> ")?.1,
        None => rest.strip_prefix(' ')?,
    };
    let implemented = rest.split_once(" for ").map_or(rest, |(_, after)| after);
    implemented.split(|c| !is_part_of_name(c)).next()
}

/// Problems of a text, each with the number of its line, from 1.
fn problems(text: &str, is_rust: bool) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut type_name = None;
    for (number, line) in (1..).zip(text.lines()) {
        let lower = line.to_lowercase();
        for (word, instead) in WORDS {
            if lower.contains(word) {
                found.push((number, format!("{word}: say {instead}")));
            }
        }
        if !is_rust {
            continue;
        }
        for (name, instead) in NAMES {
            if has_name(line, name) {
                found.push((number, format!("{name}: say {instead}")));
            }
        }
        type_name = type_of_block(line).or(type_name);
        if is_constructor_of(line, type_name) {
            found.push((
                number,
                "a constructor called of: say new or from_".to_owned(),
            ));
        }
    }
    found
}

#[test]
fn sources_use_one_word_for_one_thing() {
    let mut wrong = Vec::new();
    for file in workspace_files(&["rs", "md", "py", "sh"]) {
        let name = file.strip_prefix(source_root()).expect("a file below");
        if name == std::path::Path::new(OWN) {
            continue;
        }
        let text = std::fs::read_to_string(&file).expect("a source file");
        let is_rust = file.extension().is_some_and(|end| end == "rs");
        for (line, problem) in problems(&text, is_rust) {
            wrong.push(format!("{}:{line}: {problem}", name.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn unused_words_are_found() {
    let text = "impl<'a> Thing<'a> {\n    fn of(x: u8) -> Option<Thing<'a>> {\n    fn of(&self) -> Thing {\n    let api_flags = 1;\n    \
                // the Folder\n    api_flag::X\n";
    let lines: Vec<usize> = problems(text, true)
        .into_iter()
        .map(|(line, _)| line)
        .collect();
    assert_eq!(lines, [2, 5, 6]);
    assert!(problems("fn of(x: u8) -> Self", false).is_empty());
}
