//! Debug information outside of the module: `.dwo` and `.dwp` files, and symbols in `.gnu_debugdata`.

use rpd_symbols::{Evidence, Symbolizer};
use rpd_tests::run::lacks;

use crate::native::{Built, run, search};

/// Functions and file names of the frames at the call in a function, innermost first, with the lines.
fn frames(built: &Built, function: &str, calls: &[u64]) -> Vec<(String, Option<u32>, Evidence)> {
    let found = Symbolizer::new(search(&[])).frames(&built.module("program"), calls);
    assert_eq!(found.len(), 1, "{function} calls once");
    let shown = found[0].iter().map(|frame| {
        let name = frame.function.clone().unwrap_or_default();
        (name, frame.line, frame.evidence)
    });
    shown.collect()
}

#[test]
fn symbolizer_reads_functions_and_lines_from_dwo_files() {
    if ["c++", "readelf", "objdump"].into_iter().any(lacks) {
        return;
    }
    let whole = Built::new(&["-O1", "-g"]);
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let split = Built::new(&["-O1", "-g", version, "-gsplit-dwarf"]);
        for function in ["exported", "_ZL6hiddeni"] {
            let calls = whole.calls("program", function);
            let expected = frames(&whole, function, &calls);
            let calls = split.calls("program", function);
            assert_eq!(frames(&split, function, &calls), expected, "{version}");
            assert_eq!(expected[0].2, Evidence::Dwarf);
        }
    }
}

#[test]
fn symbolizer_names_functions_by_symbols_when_dwo_files_are_gone() {
    if ["c++", "readelf", "objdump"].into_iter().any(lacks) {
        return;
    }
    let split = Built::new(&["-O1", "-g", "-gsplit-dwarf"]);
    let calls = split.calls("program", "exported");
    let before = frames(&split, "exported", &calls);
    for entry in std::fs::read_dir(split.path("")).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "dwo") {
            std::fs::remove_file(path).expect("removed");
        }
    }
    let after = frames(&split, "exported", &calls);
    let [(function, line, evidence)] = &after[..] else {
        panic!("{after:?}");
    };
    assert_eq!((&**function, *evidence), ("exported", Evidence::Symtab));
    // The line table stays in the module: it has the line of the innermost function.
    assert_eq!(*line, before[0].1);
}

#[test]
fn symbolizer_reads_symbols_from_gnu_debugdata() {
    if ["c++", "readelf", "objdump", "objcopy", "xz"]
        .into_iter()
        .any(lacks)
    {
        return;
    }
    let built = Built::new(&["-O1"]);
    let calls = built.calls("program", "_ZL6hiddeni");
    let (program, symbols) = (built.text("program"), built.text("symbols"));
    // As rpmbuild makes it: the file without its contents, compressed, in a section of the stripped file.
    run("objcopy", &["--only-keep-debug", &program, &symbols]);
    run("xz", &["-k", &symbols]);
    let section = format!(".gnu_debugdata={symbols}.xz");
    run(
        "objcopy",
        &["--strip-all", "--add-section", &section, &program],
    );
    assert_eq!(
        frames(&built, "hidden", &calls),
        [("hidden(int)".to_owned(), None, Evidence::Symtab)]
    );
}

#[test]
fn symbolizer_names_the_frame_that_a_signal_handler_returns_to() {
    if ["c++", "readelf"].into_iter().any(lacks) {
        return;
    }
    let built = Built::new(&["-O1"]);
    // The C library's own, found by its instructions in the file that this test has loaded.
    let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
    let line = maps.lines().find(|line| line.ends_with("/libc.so.6"));
    let Some(path) = line.and_then(|line| line.split_whitespace().last()) else {
        return rpd_tests::run::skipped("the frame of signals", "no libc.so.6");
    };
    let bytes = std::fs::read(path).expect("readable");
    let code = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
    let at = bytes.windows(code.len()).position(|part| part == code);
    let offset = at.expect("the trampoline") as u64;
    let segments = run("readelf", &["-lW", path]);
    let segment = segments.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |index: usize| {
            let digits = words.get(index)?.strip_prefix("0x")?;
            u64::from_str_radix(digits, 16).ok()
        };
        let (start, address, size) = (number(1)?, number(2)?, number(4)?);
        (words[0] == "LOAD" && (start..start + size).contains(&offset)).then_some(address - start)
    });
    let address = offset + segment.expect("a segment");
    let mut module = built.module("program");
    module.path = path.to_owned();
    let notes = run("readelf", &["-n", path]);
    let mut ids = notes
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Build ID: "));
    module.build_id = ids.next().map(str::to_owned);
    let found = Symbolizer::new(search(&[])).frames(&module, &[address - 1]);
    assert_eq!(
        found[0][0].function.as_deref(),
        Some("<signal handler called>")
    );
    assert_eq!(found[0][0].evidence, Evidence::Code);
}
