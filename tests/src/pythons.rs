//! The Python interpreters of this machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::skips::skipped;

/// Versions that are looked for.
const VERSIONS: [&str; 11] = [
    "3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.13t", "3.14", "3.14t", "3.15", "3.15t",
];
/// Interpreters by version: `3.8` to `3.15`, with a `t` for free-threaded and a `d` for debug builds. Those on the path,
/// pyenv's, and those that `RPD_TEST_PYTHONS` names (separated by colons); of each version the first one found.
pub fn interpreters() -> &'static BTreeMap<String, PathBuf> {
    static FOUND: OnceLock<BTreeMap<String, PathBuf>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let variable = |name| std::env::var_os(name).unwrap_or_default();
        let named: Vec<_> = std::env::split_paths(&variable("RPD_TEST_PYTHONS")).collect();
        let directories: Vec<_> = std::env::split_paths(&variable("PATH")).collect();
        let numbered = VERSIONS.iter().map(|version| format!("python{version}"));
        let in_path = numbered
            .chain(["python3".to_owned(), "python3-dbg".to_owned()])
            .flat_map(|name| {
                directories
                    .iter()
                    .map(move |directory| directory.join(&name))
            });
        let pyenv = Path::new(&variable("HOME")).join(".pyenv/versions");
        let of_pyenv = std::fs::read_dir(pyenv)
            .into_iter()
            .flatten()
            .flatten()
            .map(|version| version.path().join("bin/python3"));
        let mut found = BTreeMap::new();
        for candidate in named.into_iter().chain(in_path).chain(of_pyenv) {
            if candidate.is_file()
                && let Some(version) = version_of(&candidate)
                && VERSIONS.contains(&version.0.trim_end_matches('d'))
            {
                found.entry(version.0).or_insert(version.1);
            }
        }
        for version in VERSIONS
            .iter()
            .filter(|version| !found.contains_key(**version))
        {
            skipped(&format!("Python {version}"), "no interpreter found");
        }
        found
    })
}

/// Major and minor version, with a `t` if it is free-threaded, and a `d` if it is a debug build, and the program that a
/// name leads to; `None` if the interpreter does not run or has no ctypes.
fn version_of(interpreter: &Path) -> Option<(String, PathBuf)> {
    let text = "import ctypes, sys, sysconfig\n\
                free = 't' if sysconfig.get_config_var('Py_GIL_DISABLED') else ''\n\
                debug = 'd' if hasattr(sys, 'gettotalrefcount') else ''\n\
                print('%d.%d%s%s' % (sys.version_info[0], sys.version_info[1], free, debug))\n\
                print(sys.executable)";
    let output = Command::new(interpreter).args(["-c", text]).output().ok()?;
    let version = String::from_utf8(output.stdout).ok()?;
    let (version, program) = version.split_once('\n')?;
    output
        .status
        .success()
        .then(|| (version.to_owned(), PathBuf::from(program.trim())))
}
