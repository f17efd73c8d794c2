//! CUDA programs, on the stand-in for the libraries of CUDA (`rpd-cuda-sim`).

mod details;
mod outputs;
mod processes;
mod refusals;
mod replay;
mod sampling;
mod versions;

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rpd_tests::install;
use rpd_tests::outputs::Table;
use rpd_tests::run::{Outcome, Rpd};

/// A directory with links to the stand-in under these names.
fn links(name: &str, sonames: &[&str]) -> PathBuf {
    let directory = install::bin_dir().join(name);
    std::fs::create_dir_all(&directory).expect("a directory");
    for soname in sonames {
        let link = directory.join(soname);
        if !link.exists() {
            let fresh = directory.join(format!(".{soname}.{}", std::process::id()));
            let _ = std::fs::remove_file(&fresh);
            symlink(install::bin_dir().join("librpd_cuda_sim.so"), &fresh).expect("a link");
            std::fs::rename(&fresh, &link).expect("a rename");
        }
    }
    directory
}

/// The directory with all names.
fn stand_in() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| links("rpd-cuda-sim-lib", &["libcuda.so.1", "libcupti.so.13"]))
}

/// `rpd` for CUDA programs, with these options.
fn rpd(options: &[&str]) -> Rpd {
    Rpd::plain(["-d", "out", "-o", "p", "--backend", "cuda"])
        .option(options)
        .env("LD_LIBRARY_PATH", stand_in())
}

/// The table in the CSV file of this name; without rows when there is no such file.
fn table(outcome: &Outcome, name: &str) -> Table {
    match outcome.files_ending(&format!("p_{name}.csv")).first() {
        Some(path) => Table::read(path),
        None => Table {
            columns: Vec::new(),
            rows: Vec::new(),
        },
    }
}

/// Number of values of a column, for each value.
fn counts<'a>(table: &'a Table, column: &str) -> std::collections::BTreeMap<&'a str, usize> {
    let mut counts = std::collections::BTreeMap::new();
    if !table.rows.is_empty() {
        for value in table.column(column) {
            *counts.entry(value).or_default() += 1;
        }
    }
    counts
}
