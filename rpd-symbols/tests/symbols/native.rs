use std::path::{Path, PathBuf};
use std::process::Command;

use rpd_symbols::{Evidence, Frame, Module, NoFile, Search, Symbolizer};
use rpd_tests::run::lacks;

/// A program with three nested inlined functions, and one that is exported.
const SOURCE: &str = r#"
#include <cstdio>
namespace place {
template <typename T> __attribute__((always_inline)) inline T innermost(T value) {
    std::puts("here");
    return value + 1;
}
__attribute__((always_inline)) inline int middle(int value) { return innermost(value) * 2; }
__attribute__((always_inline)) inline int outer(int value) { return middle(value) - 3; }
}
extern "C" __attribute__((noinline)) int exported(int value) {
    return place::outer(value);
}
static __attribute__((noinline)) int hidden(int value) { std::puts("hidden"); return exported(value) + 1; }
int main(int count, char **) { return hidden(count) == 77; }
"#;

pub(crate) fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}

pub(crate) struct Built {
    directory: tempfile::TempDir,
}

impl Built {
    pub(crate) fn new(options: &[&str]) -> Built {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("program.cpp"), SOURCE).expect("written");
        let built = Built { directory };
        let (source, program) = (built.text("program.cpp"), built.text("program"));
        let mut all = vec![
            &*source,
            "-o",
            &*program,
            "-rdynamic",
            "-Wl,--build-id=sha1",
        ];
        all.extend(options);
        run("c++", &all);
        built
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().expect("text").to_owned()
    }

    pub(crate) fn module(&self, name: &str) -> Module {
        let path = self.text(name);
        let notes = run("readelf", &["-n", &path]);
        let build_id = notes
            .lines()
            .find_map(|line| line.trim().strip_prefix("Build ID: ").map(str::to_owned));
        Module { path, build_id }
    }

    /// The addresses of the calls of `puts` in a function: there the stack of a call would stand.
    pub(crate) fn calls(&self, name: &str, function: &str) -> Vec<u64> {
        let text = run(
            "objdump",
            &["-d", &format!("--disassemble={function}"), &self.text(name)],
        );
        text.lines()
            .filter(|line| line.contains("call") && line.contains("puts"))
            .map(|line| {
                let address = line.trim().split(':').next().expect("an address");
                u64::from_str_radix(address, 16).expect("hexadecimal")
            })
            .collect()
    }
}

pub(crate) fn search(dirs: &[&Path]) -> Search {
    Search {
        debug_dirs: dirs.iter().map(|&dir| dir.to_owned()).collect(),
        debuginfod: false,
    }
}

fn frames(module: &Module, dirs: &[&Path], address: u64) -> Vec<Frame> {
    Symbolizer::new(search(dirs))
        .frames(module, &[address])
        .remove(0)
}

/// Functions, files and lines as addr2line has them, innermost first.
fn addr2line(program: &str, address: u64) -> Vec<(String, String)> {
    let text = run(
        "addr2line",
        &["-f", "-i", "-C", "-e", program, &format!("{address:#x}")],
    );
    let lines: Vec<&str> = text.lines().collect();
    lines
        .chunks(2)
        .map(|pair| {
            let place = pair[1].split(" (discriminator").next().expect("a place");
            (pair[0].to_owned(), place.to_owned())
        })
        .collect()
}

fn ours(frames: &[Frame]) -> Vec<(String, String)> {
    frames
        .iter()
        .map(|frame| {
            (
                frame.function.clone().unwrap_or_default(),
                format!(
                    "{}:{}",
                    frame.file.as_deref().unwrap_or("??"),
                    frame.line.unwrap_or(0)
                ),
            )
        })
        .collect()
}

/// Checks stacks-17.
#[test]
fn three_inlined_functions_have_their_own_call_sites() {
    if lacks("c++") {
        return;
    }
    for options in [&["-O2", "-g"][..], &["-O3", "-g", "-no-pie"]] {
        let built = Built::new(options);
        let address = built.calls("program", "exported")[0];
        let found = frames(&built.module("program"), &[], address);
        let expected = addr2line(&built.text("program"), address);
        assert_eq!(expected.len(), 4);
        // addr2line leaves parameters out where a function has no linkage name.
        assert_eq!(ours(&found), expected);
        assert_eq!(
            found[0].function.as_deref(),
            Some("int place::innermost<int>(int)")
        );
        assert_eq!(found[0].line, Some(5));
        assert!(found[0].column.is_some());
        assert_eq!(found[3].function.as_deref(), Some("exported"));
        assert_eq!(found[3].line, Some(12));
        assert!(found.iter().all(|frame| frame.evidence == Evidence::Dwarf));
    }
}

/// Checks stacks-6.
#[test]
fn stripped_programs_have_what_is_left() {
    if lacks("c++") {
        return;
    }
    let built = Built::new(&["-O2", "-g"]);
    let (exported, hidden) = (
        built.calls("program", "exported")[0],
        built
            .calls("program", "hidden")
            .first()
            .copied()
            .or_else(|| built.calls("program", "_ZL6hiddeni").first().copied())
            .expect("a call"),
    );
    let (program, partly, wholly) = (
        built.text("program"),
        built.text("partly"),
        built.text("wholly"),
    );
    run("objcopy", &["--strip-debug", &program, &partly]);
    run("objcopy", &["--strip-all", &program, &wholly]);
    let only = |frames: Vec<Frame>| {
        assert_eq!(frames.len(), 1, "{frames:?}");
        let frame = &frames[0];
        assert_eq!((&frame.file, frame.line), (&None, None));
        (frame.function.clone(), frame.evidence)
    };
    let partly = built.module("partly");
    assert_eq!(
        only(frames(&partly, &[], hidden)),
        (Some("hidden(int)".to_owned()), Evidence::Symtab)
    );
    let wholly = built.module("wholly");
    assert_eq!(
        only(frames(&wholly, &[], exported)),
        (Some("exported".to_owned()), Evidence::Dynsym)
    );
    assert_eq!(only(frames(&wholly, &[], hidden)), (None, Evidence::None));
}

/// Checks stacks-15 and stacks-92.
#[test]
fn debug_files_are_found_by_build_id_and_by_link() {
    if lacks("c++") {
        return;
    }
    let built = Built::new(&["-O2", "-g"]);
    let module = built.module("program");
    let build_id = module.build_id.clone().expect("a build id");
    let address = built.calls("program", "exported")[0];
    let expected = frames(&module, &[], address);
    let program = built.text("program");
    let debug = built.text("program.debug");
    run("objcopy", &["--only-keep-debug", &program, &debug]);
    run("objcopy", &["--strip-all", &program]);

    // Beside the module, under a name that only its debug link has.
    assert_eq!(frames(&module, &[], address)[0].evidence, Evidence::Dynsym);
    run(
        "objcopy",
        &[&format!("--add-gnu-debuglink={debug}"), &program],
    );
    assert_eq!(frames(&module, &[], address), expected);

    // By build id.
    let root = built.path("symbols");
    let directory = root.join(".build-id").join(&build_id[..2]);
    std::fs::create_dir_all(&directory).expect("made");
    let by_id = directory.join(format!("{}.debug", &build_id[2..]));
    std::fs::rename(&debug, &by_id).expect("moved");
    assert_eq!(frames(&module, &[], address)[0].evidence, Evidence::Dynsym);
    assert_eq!(frames(&module, &[&root], address), expected);

    // On another machine, without the program.
    std::fs::remove_file(&program).expect("removed");
    assert_eq!(frames(&module, &[&root], address), expected);
    let mut without = Symbolizer::new(search(&[]));
    assert_eq!(
        without.frames(&module, &[address])[0][0].evidence,
        Evidence::NoFile(NoFile::Missing)
    );
    assert_eq!(without.problem(&module), Some(NoFile::Missing));
}

/// Checks stacks-16.
#[test]
fn files_of_another_build_are_not_trusted() {
    if lacks("c++") {
        return;
    }
    let built = Built::new(&["-O2", "-g"]);
    let module = built.module("program");
    let address = built.calls("program", "exported")[0];
    let (program, debug) = (built.text("program"), built.text("program.debug"));
    run("objcopy", &["--only-keep-debug", &program, &debug]);
    run("objcopy", &["--strip-all", &program]);
    run(
        "objcopy",
        &[&format!("--add-gnu-debuglink={debug}"), &program],
    );
    let other = Built::new(&["-O1", "-g", "-DOTHER=1"]);
    let other_debug = other.text("other.debug");
    run(
        "objcopy",
        &["--only-keep-debug", &other.text("program"), &other_debug],
    );

    // The debug link leads to another build's file.
    std::fs::copy(&other_debug, &debug).expect("copied");
    assert_eq!(frames(&module, &[], address)[0].evidence, Evidence::Dynsym);
    // So does the directory of build ids.
    let build_id = module.build_id.clone().expect("a build id");
    let root = built.path("symbols");
    let directory = root.join(".build-id").join(&build_id[..2]);
    std::fs::create_dir_all(&directory).expect("made");
    std::fs::copy(
        &other_debug,
        directory.join(format!("{}.debug", &build_id[2..])),
    )
    .expect("copied");
    assert_eq!(
        frames(&module, &[&root], address)[0].evidence,
        Evidence::Dynsym
    );
    // The program itself was replaced.
    std::fs::copy(other.path("program"), &program).expect("copied");
    let found = frames(&module, &[], address);
    assert_eq!(found[0].evidence, Evidence::NoFile(NoFile::OtherBuild));
    assert_eq!((&found[0].function, found[0].line), (&None, None));
}

#[test]
fn symbolize_reports_a_module_that_is_not_a_file() {
    if lacks("c++") {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("text");
    std::fs::write(&path, "no program").expect("written");
    let module = |path: &Path| Module {
        path: path.to_str().expect("text").to_owned(),
        build_id: None,
    };
    let evidence = |path: &Path| frames(&module(path), &[], 0x1000)[0].evidence;
    assert_eq!(evidence(&path), Evidence::NoFile(NoFile::NotElf));
    assert_eq!(
        evidence(directory.path()),
        Evidence::NoFile(NoFile::Unreadable)
    );
    assert_eq!(
        evidence(&directory.path().join("none")),
        Evidence::NoFile(NoFile::Missing)
    );
    // A pipe without a writer must not be waited for.
    let pipe = directory.path().join("pipe");
    run("mkfifo", &[pipe.to_str().expect("text")]);
    assert_eq!(evidence(&pipe), Evidence::NoFile(NoFile::Unreadable));
}

#[test]
fn symbolizer_names_stubs_of_the_linkage_table_by_their_functions() {
    if lacks("c++") || lacks("objdump") {
        return;
    }
    let options: [&[&str]; 4] = [
        &["-O1", "-Wl,-z,lazy"],
        &["-O1", "-Wl,-z,now", "-s"],
        &["-O1", "-fcf-protection=full", "-Wl,-z,ibtplt", "-s"],
        &["-O1", "-no-pie", "-g"],
    ];
    for options in options {
        let built = Built::new(options);
        let text = run("objdump", &["-d", &built.text("program")]);
        // `0000000000001030 <puts@plt>:`
        let stubs: Vec<(u64, String)> = (text.lines())
            .filter_map(|line| {
                let (address, name) = line.split_once(" <")?;
                let name = name.strip_suffix("@plt>:")?;
                Some((u64::from_str_radix(address, 16).ok()?, name.to_owned()))
            })
            .collect();
        assert!(stubs.iter().any(|(_, name)| name == "puts"), "{text}");
        for (address, name) in stubs {
            let found = frames(&built.module("program"), &[], address + 4);
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(
                found[0].function,
                Some(format!("{name}@plt")),
                "{options:?}"
            );
            assert_eq!(found[0].evidence, Evidence::Dynsym);
        }
    }
}
