//! `docs/troubleshooting.md` has every line that rpd prints about a process that has ended.

use rpd_tests::install::source_root;
use rpd_tests::sources::{files_below, is_test};

/// Files whose texts are lines of the ledger.
const LEDGER: [&str; 4] = ["ledger", "counted", "sampled", "traced"];

/// Crates whose notes are lines of the ledger.
const NOTING: [&str; 2] = ["rpd-collect", "rpd-register"];

/// What stands before the text of a note.
const NOTE: [&str; 5] = [
    "note(",
    "note_of_child(",
    "missing(",
    "failed(",
    "const TOO_LATE",
];

/// Texts of these files that are no lines: parts of others, reasons for lints.
const NO_LINES: [&str; 3] = ["1 counted dispatch", "1 record is", "a file of the kernel"];

/// Words that a text has at least, between what is filled in, to be looked for.
const LEAST_WORDS: usize = 3;

/// The string literals of a Rust source without its tests, each with the place of its beginning.
fn literals(source: &str) -> (String, Vec<(usize, String)>) {
    let source = source
        .split("#[cfg(test)]\nmod ")
        .next()
        .unwrap_or_default();
    let code: Vec<&str> = source
        .lines()
        .map(|line| {
            if line.trim_start().starts_with("//") {
                ""
            } else {
                line
            }
        })
        .collect();
    let code = code.join("\n").replace("'\"'", "' '");
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(begin) = code[at..].find('"').map(|begin| at + begin) {
        let mut text = String::new();
        let mut letters = code[begin + 1..].char_indices();
        while let Some((offset, letter)) = letters.next() {
            at = begin + 1 + offset + 1;
            match letter {
                '"' => break,
                // A new line is a blank here, and one after a backslash goes with the blanks behind it.
                '\\' => match letters.next() {
                    Some((_, '\n' | 'n')) => text.push(' '),
                    Some((_, other)) => text.push(other),
                    None => break,
                },
                other => text.push(other),
            }
        }
        found.push((begin, text));
    }
    (code, found)
}

/// A text as it is compared: without quotation marks of Markdown, and with single blanks.
fn plain(text: &str) -> String {
    let words = text.replace('`', "");
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The longest part of a format string in which nothing is filled in.
fn longest_part(text: &str) -> String {
    let parts = text.split('{').flat_map(|part| {
        let after = part.split_once('}').map_or(part, |(_, after)| after);
        [plain(after)]
    });
    let longest = parts.max_by_key(String::len).unwrap_or_default();
    longest.trim_matches([' ', ':', ';', ',', '(']).to_owned()
}

/// The texts of all lines of the ledger, each with the file that has it.
fn lines() -> Vec<(String, String)> {
    let mut lines = Vec::new();
    for name in LEDGER {
        let file = format!("rpd-cli/src/report/{name}.rs");
        let source = std::fs::read_to_string(source_root().join(&file)).expect("a source");
        let (_, literals) = literals(&source);
        lines.extend(literals.into_iter().map(|(_, text)| (file.clone(), text)));
    }
    for crate_name in NOTING {
        let src = source_root().join(crate_name).join("src");
        for file in files_below(&src, &["rs"]) {
            let inside = file.strip_prefix(&src).expect("a file below");
            if is_test(inside) {
                continue;
            }
            let source = std::fs::read_to_string(&file).expect("a source");
            let (code, literals) = literals(&source);
            let notes = NOTE.iter().flat_map(|note| code.match_indices(note));
            for (at, note) in notes {
                let text = literals.iter().find(|(begin, _)| *begin >= at + note.len());
                // The definition of a function, and a text that another function makes, are followed by another statement.
                if let Some((begin, text)) = text
                    && !code[at..*begin].contains(['{', ';'])
                {
                    lines.push((
                        format!("{crate_name}/src/{}", inside.display()),
                        text.clone(),
                    ));
                }
            }
        }
    }
    lines
}

#[test]
fn troubleshooting_has_every_line_of_the_ledger() {
    let page = std::fs::read_to_string(source_root().join("docs/troubleshooting.md"));
    let page = plain(&page.expect("the page"));
    let lines = lines();
    assert!(lines.len() > 80, "only {} lines were found", lines.len());
    let missing: Vec<String> = lines
        .iter()
        .map(|(file, text)| (file, longest_part(text)))
        .filter(|(_, part)| part.split(' ').count() >= LEAST_WORDS)
        .filter(|(_, part)| !NO_LINES.contains(&&**part) && !page.contains(&**part))
        .map(|(file, part)| format!("{file}: {part}"))
        .collect();
    assert!(
        missing.is_empty(),
        "docs/troubleshooting.md lacks what to do about\n{}",
        missing.join("\n")
    );
}

#[test]
fn literals_are_read_from_sources() {
    let source = "f('\"', \"one {a} two three four\", \"five \\\n    six\\n\");\n// \"seven\"\n#[cfg(test)]\nmod tests { \"eight\" }";
    let (_, found) = literals(source);
    let texts: Vec<&str> = found.iter().map(|(_, text)| &**text).collect();
    assert_eq!(texts, ["one {a} two three four", "five      six "]);
    assert_eq!(longest_part(texts[0]), "two three four");
    assert_eq!(plain(texts[1]), "five six");
}
