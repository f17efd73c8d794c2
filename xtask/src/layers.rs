//! Imports between the directories of a crate.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rpd_tests::install::source_root;
use rpd_tests::sources::{files_below, is_test};

/// Imports between files and directories of one directory: for each name the names that it imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// The Rust files below `directory`, without tests.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut files = files_below(directory, &["rs"]);
    files.retain(|file| !is_test(file.strip_prefix(directory).expect("a file below")));
    files
}

/// The module of a file of the crate whose source is in `src`, as the words of its path.
fn module(src: &Path, file: &Path) -> Vec<String> {
    let path = file.with_extension("");
    let words = path.strip_prefix(src).expect("a file in src").iter();
    let words = words.map(|word| word.to_str().expect("a name").to_owned());
    words
        .filter(|word| !["mod", "lib", "main"].contains(&word.as_str()))
        .collect()
}

/// The paths into its own crate that `text` names, as words from the root. `module` is where it stands.
fn paths(text: &str, module: &[String]) -> Vec<Vec<String>> {
    // Tests may import anything.
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let code = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let code = code.collect::<Vec<_>>().join("\n");
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut found = Vec::new();
    for (at, _) in code
        .match_indices("crate::")
        .chain(code.match_indices("super::"))
    {
        // The end of a longer name or path is not a path of this crate.
        if code[..at].ends_with(|before| is_name(before) || before == '$' || before == ':') {
            continue;
        }
        let mut rest = &code[at..];
        let mut words = match rest.strip_prefix("crate::") {
            Some(after) => {
                rest = after;
                Vec::new()
            }
            None => module.to_vec(),
        };
        while let Some(after) = rest.strip_prefix("super::") {
            words.pop();
            rest = after;
        }
        extend(&words, rest, &mut found);
    }
    found
}

/// Adds the paths that begin with `words` and go on with the text `rest`, which may be a list in braces.
fn extend(words: &[String], rest: &str, found: &mut Vec<Vec<String>>) {
    if let Some(list) = rest.strip_prefix('{') {
        for item in items(list) {
            extend(words, item.trim(), found);
        }
        return;
    }
    let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let (name, after) = rest.split_at(end.unwrap_or(rest.len()));
    let words = [words, &[name.to_owned()]].concat();
    match after.strip_prefix("::") {
        Some(after) => extend(&words, after, found),
        None => found.push(words),
    }
}

/// The items of a list, up to the brace that ends it.
fn items(list: &str) -> Vec<&str> {
    let (mut depth, mut begin) = (0, 0);
    let mut items = Vec::new();
    for (at, letter) in list.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' if depth > 0 => {}
            ',' | '}' => {
                items.push(&list[begin..at]);
                begin = at + 1;
                if letter == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    items
}

/// A cycle among `imports` that begins and ends with `start`.
fn cycle(imports: &Imports, start: &str) -> Option<Vec<String>> {
    let mut open = vec![vec![start.to_owned()]];
    let mut seen = BTreeSet::new();
    while let Some(path) = open.pop() {
        for next in imports.get(path.last()?).into_iter().flatten() {
            let path = [path.as_slice(), std::slice::from_ref(next)].concat();
            if next == start {
                return Some(path);
            }
            if seen.insert(next.clone()) {
                open.push(path);
            }
        }
    }
    None
}

/// File that fills the simulator's dispatch tables, and therefore names the functions of the layers that call through
/// these tables.
const NAMES_IMPLEMENTATIONS: &str = "rpd-sim/src/api/imp.rs";

/// The objects of the HIP runtime hold one another, as those of the real one do: a stream's operations belong to graphs, a
/// graph is launched on streams, and an allocation knows the streams that use it. The directories below only sort its files by
/// subject, so their modules count as modules of one directory.
const SORTED_BY_SUBJECT: &str = "rpd-sim/src/hip";

/// The imports below `src`, by the directory in which the two ends are neighbours.
fn imports_by_directory(src: &Path) -> BTreeMap<Vec<String>, Imports> {
    let mut directories: BTreeMap<Vec<String>, Imports> = BTreeMap::new();
    for file in sources(src) {
        if file.ends_with(NAMES_IMPLEMENTATIONS) {
            continue;
        }
        let text = std::fs::read_to_string(&file).expect("a source");
        let importing = module(src, &file);
        for imported in paths(&text, &importing) {
            let shared = importing.iter().zip(&imported);
            let shared = shared.take_while(|(one, other)| one == other).count();
            // If one module contains the other, the import is not between neighbours.
            if let (Some(from), Some(to)) = (importing.get(shared), imported.get(shared)) {
                let directory = directories.entry(imported[..shared].to_vec()).or_default();
                let imports = directory.entry(from.clone()).or_default();
                imports.insert(to.clone());
            }
        }
    }
    directories
}

/// Modules of one directory may import one another; a directory and what lies beside it may not.
#[test]
fn no_cycle_of_imports_spans_directories() {
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(source_root()).expect("the workspace") {
        let src = entry.expect("an entry").path().join("src");
        if !src.is_dir() {
            continue;
        }
        for (directory, imports) in imports_by_directory(&src) {
            let directory = src.join(directory.iter().collect::<PathBuf>());
            if directory.ends_with(SORTED_BY_SUBJECT) {
                continue;
            }
            let is_directory = |name: &&String| {
                let inside = directory.join(name);
                inside.is_dir() && !sources(&inside).is_empty()
            };
            let cycles = imports.keys().filter(is_directory);
            for cycle in cycles.filter_map(|name| cycle(&imports, name)) {
                wrong.push(format!("{}: {}", directory.display(), cycle.join(" -> ")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn import_paths_are_read_from_sources() {
    let text = "use super::{self, a::{B, c::D}, E};\nuse crate::f::*;\n// crate::comment::G\nlet h = $crate::h();";
    let module = ["directory", "file"].map(str::to_owned);
    let found = paths(text, &module).into_iter();
    let found: Vec<String> = found.map(|words| words.join("::")).collect();
    let expected = [
        "f::",
        "directory::self",
        "directory::a::B",
        "directory::a::c::D",
        "directory::E",
    ];
    assert_eq!(found, expected);
}
