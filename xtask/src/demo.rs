//! `cargo xtask demo`: profiles a workload on the simulator.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};
use rpd_tests::{install, workloads};

use crate::shell;

pub(crate) fn run() -> Result<()> {
    let bin = shell::build(false)?;
    let workload = workloads::path("vector-ops");
    let out = install::target_dir().join("demo");
    if out.exists() {
        fs::remove_dir_all(&out)
            .with_context(|| format!("removing the last demo's {}", out.display()))?;
    }
    fs::create_dir_all(&out).with_context(|| format!("creating {}", out.display()))?;
    let mut rpd = Command::new(bin.join("rpd"));
    rpd.args(["--sys-trace", "--stats", "-o", "demo", "-d"])
        .arg(&out)
        .args(["-f", "rocpd", "csv", "--"]);
    rpd.arg(workload).args(["4", "50"]);
    shell::run(&mut rpd)?;
    println!("\nFiles in {}:", out.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(&out)? {
        let entry = entry?;
        names.push((
            entry.file_name().to_string_lossy().into_owned(),
            entry.metadata()?.len(),
        ));
    }
    names.sort();
    for (name, bytes) in names {
        println!("{bytes:>12} bytes  {name}");
    }
    Ok(())
}
