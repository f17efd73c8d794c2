//! A program that was started with the collector in `LD_PRELOAD` and `RPDT_FILENAME`, as RPD's guide has it: it is recorded as
//! RPD records, and the file that the variable names is written.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::stacks::export;

/// The word with which the collector calls rpd.
pub(crate) const CALL: &str = "record-rpd-file";

/// Options for the records that RPD makes.
const OPTIONS: [&str; 6] = [
    "--hip-runtime-trace",
    "--kernel-trace",
    "--memory-copy-trace",
    "--marker-trace",
    "-f",
    "rocpd",
];

/// Runs the program of `command` by `profile`, which is given the words of a command line; the program's status.
pub(crate) fn run(
    command: &[OsString],
    profile: impl FnOnce(&[OsString]) -> Result<u8>,
) -> Result<u8> {
    let file = std::env::var_os("RPDT_FILENAME").unwrap_or_else(|| "trace.rpd".into());
    let file = std::path::absolute(file).context("RPDT_FILENAME")?;
    let mut directory = file.clone().into_os_string();
    directory.push(".recording");
    let directory = PathBuf::from(directory);
    let mut words: Vec<OsString> = OPTIONS.map(OsString::from).to_vec();
    // Recording begins when the program, or `rpd control`, asks for it. Starts and stops are counted.
    if std::env::var_os("RPDT_AUTOSTART").is_some_and(|value| value == "0") {
        words.push("--selected-regions".into());
    }
    words.extend(["-d".into(), directory.clone().into_os_string(), "--".into()]);
    words.extend_from_slice(command);
    let status = profile(&words)?;
    let databases = databases(&directory);
    if !databases.is_empty() {
        let mut words: Vec<OsString> = databases.iter().map(|path| path.into()).collect();
        words.extend(["--rpd".into(), file.into_os_string()]);
        export::run(&words)
            .with_context(|| format!("what was recorded is in {}", directory.display()))?;
        for database in databases {
            std::fs::remove_file(&database)
                .with_context(|| format!("cannot remove {}", database.display()))?;
        }
    }
    remove_empty(&directory);
    Ok(status)
}

/// The databases in a directory and the directories in it.
fn databases(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .flat_map(|entry| {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && entry.file_name() != ".rpd" => databases(&path),
                Ok(kind) if kind.is_file() && path.extension().is_some_and(|end| end == "db") => {
                    vec![path]
                }
                _ => Vec::new(),
            }
        })
        .collect();
    found.sort();
    found
}

/// Removes the directory and those in it, if nothing else is there.
fn remove_empty(directory: &Path) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_empty(&entry.path());
        }
    }
    // What else is there is a recording that `rpd recover` finishes.
    let _ = std::fs::remove_dir(directory);
}
