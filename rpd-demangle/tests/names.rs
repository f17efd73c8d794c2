//! Names with their texts by the GNU C++ library 12: kernels of PyTorch, symbols of libstdc++, LLVM and PyTorch, of a
//! C++20 program, and random names, some of which are not mangled names.

use rpd_demangle::{Dialect, demangle, demangle_as};

/// Lines of mangled name, tab, text. Names that cannot be demangled are their own text.
const NAMES: &str = include_str!("../testdata/names.tsv");

fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    NAMES
        .lines()
        .map(|line| line.split_once('\t').expect("two columns"))
}

#[test]
fn demangled_names_equal_the_recorded_ones_of_the_library() {
    let wrong: Vec<String> = names()
        .filter(|(name, text)| demangle(name) != *text)
        .map(|(name, text)| format!("{name}\n  {text}\n  {}", demangle(name)))
        .collect();
    assert!(names().count() > 2000);
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn dialects_agree_on_names_that_both_accept() {
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

#[test]
fn types_newer_than_the_library_are_written_in_one_dialect_only() {
    for (name, text) in [
        ("_Z1kPDF16_S_", "k(_Float16*, _Float16*)"),
        ("_Z1kIDF16bEvT_", "void k<std::bfloat16_t>(std::bfloat16_t)"),
        ("_Z1kDF64x", "k(_Float64x)"),
        ("_Z1kILDF16_3c00EEvv", "void k<(_Float16)3c00>()"),
        ("_Z1kILDF16b3f80EEvv", "void k<(std::bfloat16_t)[3f80]>()"),
        ("_Z1kDB7_DU8_", "k(_BitInt(7), unsigned _BitInt(8))"),
        ("_Z1kILi4EEvDUT__", "void k<4>(unsigned _BitInt(4))"),
    ] {
        assert_eq!(demangle_as(name, Dialect::Any), text);
        assert_ne!(demangle_as(name, Dialect::Library), text);
    }
    let long = format!("_Z1kI{}Evv", "5types".repeat(200));
    assert!(demangle_as(&long, Dialect::Any).starts_with("void k<types, types, "));
    assert_eq!(demangle(&long), long);
}

/// No prefix of a name makes the demangler panic, or has the text of the whole name.
#[test]
fn demangling_a_name_cut_off_anywhere_gives_a_text() {
    for (name, _) in names().filter(|(name, _)| name.len() < 80) {
        for end in (0..name.len()).filter(|&end| name.is_char_boundary(end)) {
            let text = demangle(&name[..end]);
            assert!(!text.is_empty() || end == 0);
        }
    }
}
