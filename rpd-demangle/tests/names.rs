//! Names and texts that the GNU C++ library 12 has for them: of kernels of PyTorch, of symbols of libstdc++, LLVM and
//! PyTorch, of a C++20 program, and names made at random, some of which are none.

use rpd_demangle::{Dialect, demangle, demangle_as};

/// Lines of mangled name, tab, text. The text of what cannot be demangled is the name.
const NAMES: &str = include_str!("../testdata/names.tsv");

fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    NAMES
        .lines()
        .map(|line| line.split_once('\t').expect("two columns"))
}

#[test]
fn texts_are_those_of_the_library() {
    let wrong: Vec<String> = names()
        .filter(|(name, text)| demangle(name) != *text)
        .map(|(name, text)| format!("{name}\n  {text}\n  {}", demangle(name)))
        .collect();
    assert!(names().count() > 2000);
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn dialects_differ_in_what_they_accept_only() {
    for (name, text) in names().filter(|(name, text)| name != text) {
        assert_eq!(demangle_as(name, Dialect::Any), text);
        let original = demangle_as(name, Dialect::Rocprofv3);
        assert!(original == text || original == name, "{name}: {original}");
    }
    let externalized = "_Z1fPv.intern.b96e08b3df0d779d.kd";
    assert_eq!(demangle_as(externalized, Dialect::Rocprofv3), externalized);
    assert_eq!(
        demangle(externalized),
        "f(void*) [clone .intern] [clone .b96e08b3df0d779d] [clone .kd]"
    );
    assert_eq!(
        demangle_as("_Z1fv.part.0.isra.1.kd", Dialect::Rocprofv3),
        "f() [clone .part.0] [clone .isra.1] [clone .kd]"
    );
}

/// No prefix of a name panics, or is taken for the whole.
#[test]
fn names_that_are_cut_off_are_names_or_stay() {
    for (name, _) in names().filter(|(name, _)| name.len() < 80) {
        for end in (0..name.len()).filter(|&end| name.is_char_boundary(end)) {
            let text = demangle(&name[..end]);
            assert!(!text.is_empty() || end == 0);
        }
    }
}
