//! Comparison with the GNU C++ library of this machine, where there is one: texts for the symbols of the libraries that
//! this process loads, and for mutations of names.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char, c_int};

use libloading::{Library, Symbol};
use object::{Object as _, ObjectSymbol as _};
use rpd_demangle::demangle;

type Demangle =
    unsafe extern "C" fn(*const c_char, *mut c_char, *mut usize, *mut c_int) -> *mut c_char;

/// The library; `None`, with a line that says so, where there is none.
fn library() -> Option<Library> {
    // SAFETY: the constructors of the C++ library have no requirements.
    match unsafe { Library::new("libstdc++.so.6") } {
        Ok(library) => Some(library),
        Err(error) => {
            eprintln!("skipped: comparison with the GNU C++ library: {error}");
            None
        }
    }
}

/// The text that the library has for a name; the name if it has none.
fn text_of_library(library: &Library, name: &str) -> String {
    // SAFETY: the function has this type in every C++ library.
    let demangle: Symbol<'_, Demangle> =
        unsafe { library.get(b"__cxa_demangle") }.expect("a function of the C++ ABI");
    let mangled = CString::new(name).expect("a name without zeros");
    let null = std::ptr::null_mut();
    let mut status = 0;
    // SAFETY: a string that ends with zero, no buffer, and a place for the status.
    let text = unsafe {
        demangle(
            mangled.as_ptr(),
            null,
            std::ptr::null_mut(),
            &raw mut status,
        )
    };
    if text.is_null() {
        return name.to_owned();
    }
    // SAFETY: without a buffer the function returns a string that it allocated with `malloc`.
    let copy = unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned();
    // SAFETY: as above; nothing refers to it any more.
    unsafe { libc::free(text.cast()) };
    copy
}

/// Mangled names among the dynamic symbols of the libraries of this process.
fn symbols_of_loaded_libraries() -> BTreeSet<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("the mappings of this process");
    let paths: BTreeSet<&str> = maps
        .lines()
        .filter_map(|line| line.find('/').map(|at| &line[at..]))
        .filter(|path| path.contains(".so"))
        .collect();
    let mut names = BTreeSet::new();
    for path in paths {
        let Ok(bytes) = std::fs::read(path) else {
            continue;
        };
        let file = object::File::parse(&*bytes).expect("a library that is loaded");
        names.extend(
            file.dynamic_symbols()
                .filter_map(|symbol| symbol.name().ok())
                .filter(|name| name.starts_with("_Z"))
                .map(str::to_owned),
        );
    }
    names
}

#[test]
fn demangled_names_equal_those_of_the_installed_library() {
    let Some(library) = library() else {
        return;
    };
    let names = symbols_of_loaded_libraries();
    assert!(names.len() > 1000, "{} symbols", names.len());
    for name in names {
        assert_eq!(demangle(&name), text_of_library(&library, &name), "{name}");
    }
}

/// Uses short names only: the library takes for ever for some that refer to their own parts. Versions of the library
/// before 12 and after it differ in names that no compiler makes.
#[test]
fn demangled_mutated_names_equal_those_of_the_installed_library() {
    const LONGEST: usize = 40;
    const PARTS: &[&str] = &[
        "S_",
        "S0_",
        "T_",
        "T0_",
        "I",
        "E",
        "N",
        "K",
        "P",
        "R",
        "O",
        "FvvE",
        "A3_",
        "M",
        "Dp",
        "JE",
        "JidE",
        "Li1E",
        "LDnE",
        "XadL_Z1fvEE",
        "cv",
        "sZT_",
        "sr",
        "DT",
        "C1",
        "D1",
        "UlvE_",
        "Ut_",
        "Z1fvE",
        "St",
        "Ss",
        "1a",
        "v",
        "i",
        ".kd",
    ];
    let Some(library) = library() else {
        return;
    };
    if !text_of_library(&library, "_Z1fDF16b").contains("_Accum") {
        eprintln!(
            "skipped: comparison of mutated names: the installed GNU C++ library is not that of GCC 12"
        );
        return;
    }
    let seeds: Vec<&str> = include_str!("../testdata/names.tsv")
        .lines()
        .filter_map(|line| line.split('\t').next())
        .filter(|name| name.len() < LONGEST && name.is_ascii())
        .collect();
    // A linear congruential generator: the same names in each run.
    let mut state = 1_u64;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut demangled = 0;
    for _ in 0..20_000 {
        let mut name = seeds[random(seeds.len())].to_owned();
        let at = 2 + random(name.len() - 1);
        let end = name.len().min(at + random(3));
        if at <= end {
            name.replace_range(at..end, PARTS[random(PARTS.len())]);
        }
        let text = text_of_library(&library, &name);
        demangled += usize::from(text != name);
        assert_eq!(demangle(&name), text, "{name}");
    }
    assert!(demangled > 1000, "{demangled}");
}
