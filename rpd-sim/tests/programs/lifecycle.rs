//! The life cycle of a tool on the simulated provider: statuses of proper and improper calls.
//!
//! `probe.c` is tool and program in one; it is compiled with the system's C compiler, linked against the
//! library under its sonames, and run.

use crate::common;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Standard output of a program, which must print nothing to standard error.
fn run(directory: &Path, program: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let (said, errors) = common::run_loudly(directory, program, arguments, variables);
    assert_eq!(errors, "");
    said
}

fn probe(name: &str, options: &[&str]) -> (PathBuf, PathBuf) {
    let libraries = ["-lrocprofiler-sdk", "-lrocprofiler-sdk-roctx"];
    common::build(name, "probe.c", options, &libraries)
}

#[test]
fn the_sdk_life_cycle_has_the_statuses_of_the_reference() {
    let (directory, program) = probe("lifecycle", &["-rdynamic"]);
    let said = run(&directory, &program, &["fork"], &[]);
    insta::assert_snapshot!("lifecycle", said);
}

#[test]
fn registration_without_a_visible_tool_does_nothing() {
    let (directory, program) = probe("no-tool", &[]);
    let said = run(&directory, &program, &[], &[]);
    assert!(
        !said.lines().any(|line| line.starts_with("configure ")),
        "{said}"
    );
    assert!(
        said.starts_with(
            "state(rocprofiler_is_initialized) 0\nstate(rocprofiler_is_initialized) 0\n"
        )
    );
}

#[test]
fn registration_with_the_sdk_can_be_switched_off() {
    let (directory, program) = probe("switched-off", &["-rdynamic"]);
    let said = run(
        &directory,
        &program,
        &[],
        &[("ROCPROFILER_REGISTER_ENABLED", "0")],
    );
    // The probe forces it later on, which is another matter.
    let line = |start: &str| said.lines().position(|line| line.starts_with(start));
    assert!(
        line("configure ") > line("rocprofiler_at_intercept_table_registration"),
        "{said}"
    );
    assert!(
        !said.contains("enter range"),
        "the tables were not offered: {said}"
    );
}

#[test]
fn the_sdk_library_can_initialise_when_it_is_loaded() {
    let (directory, program) = probe("constructor", &["-rdynamic"]);
    let said = run(
        &directory,
        &program,
        &[],
        &[("ROCPROFILER_LIBRARY_CTOR", "1")],
    );
    assert!(said.starts_with("configure 10000 1.0.0 0\n"), "{said}");
}

#[test]
fn programs_linked_against_versioned_symbols_run() {
    let (directory, _) = probe("versions", &[]);
    let imports = directory.join("imports");
    fs::create_dir(&imports).expect("a directory");
    let write = |name: &str, text: &str| fs::write(directory.join(name), text).expect("a file");
    write(
        "stub.c",
        "int hipRuntimeGetVersion(int *v) { return *v; } int hipGetLastError(void) { return 0; }",
    );
    write(
        "stub.map",
        "hip_4.2 { global: hipRuntimeGetVersion; }; hip_6.0 { global: hipGetLastError; } hip_4.2;",
    );
    write("user.c", "int hipRuntimeGetVersion(int *); int hipGetLastError(void);
        int main(void) { int v = 0; return hipRuntimeGetVersion(&v) || hipGetLastError() || v == 0; }");
    let cc = |arguments: &[&str]| {
        let status = Command::new("cc")
            .current_dir(&directory)
            .args(arguments)
            .status();
        assert!(status.expect("a C compiler").success());
    };
    let stub = ["-shared", "-fPIC", "stub.c", "-o", "imports/libamdhip64.so"];
    cc(&[
        &stub[..],
        &[
            "-Wl,-soname,libamdhip64.so.6",
            "-Wl,--version-script=stub.map",
        ],
    ]
    .concat());
    cc(&["user.c", "-o", "user", "-Limports", "-lamdhip64"]);
    assert_eq!(run(&directory, &directory.join("user"), &[], &[]), "");
}
