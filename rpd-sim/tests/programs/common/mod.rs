//! Programs in C that are tool and target in one, built against the library under its sonames.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

/// The library that cargo built beside this test.
fn library() -> PathBuf {
    let test = env::current_exe().expect("the test knows where it is");
    let deps = test.parent().expect("it is in a directory").to_owned();
    [deps.join("librpd_sim.so"), deps.join("../librpd_sim.so")]
        .into_iter()
        .find(|path| path.exists())
        .expect("cargo builds the library before its tests")
}

/// Makes a directory with the sonames, and a program from a source beside the tests; returns both.
pub(crate) fn build(
    name: &str,
    source: &str,
    options: &[&str],
    libraries: &[&str],
) -> (PathBuf, PathBuf) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).expect("a directory");
    let names = fs::read_to_string(root.join("sonames.txt")).expect("the list of names");
    for soname in names
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
    {
        symlink(library(), directory.join(soname)).expect("a link");
    }
    let program = directory.join("probe");
    let status = Command::new("cc")
        .args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror"])
        .args(options)
        .arg("-o")
        .arg(&program)
        .arg(root.join("tests/programs").join(source))
        .arg("-L")
        .arg(&directory)
        .args(libraries)
        .status()
        .expect("a C compiler");
    assert!(status.success(), "the probe compiles");
    (directory, program)
}

/// Runs a program, which must succeed; returns its standard output and standard error.
pub(crate) fn run_loudly(
    directory: &Path,
    program: &Path,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> (String, String) {
    let output = Command::new(program)
        .args(arguments)
        .env_remove("ROCP_TOOL_LIBRARIES")
        .env_remove("RPD_SIM_GPUS")
        .env_remove("RPD_SIM_SEED")
        .env("LD_LIBRARY_PATH", directory)
        .envs(variables.iter().copied())
        .output()
        .expect("the program runs");
    let errors = String::from_utf8(output.stderr).expect("text");
    assert!(output.status.success(), "{}: {errors}", output.status);
    (String::from_utf8(output.stdout).expect("text"), errors)
}
