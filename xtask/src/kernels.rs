//! `cargo xtask kernels`: the workloads' code objects from their sources.

use std::fs::{self, File};
use std::process::Command;

use anyhow::{Context, Result, bail};
use rpd_tests::install;

use crate::shell;

pub(crate) fn run() -> Result<()> {
    let suffix = std::env::var("LLVM_SUFFIX").unwrap_or_else(|_| "-19".to_owned());
    let tools = ["clang", "clang-offload-bundler", "ld.lld"].map(|tool| format!("{tool}{suffix}"));
    let missing: Vec<_> = tools
        .iter()
        .filter(|tool| shell::tool(tool).is_none())
        .map(String::as_str)
        .collect();
    if !missing.is_empty() {
        bail!(
            "missing from the tool chain: {} (Debian: clang-19, clang-tools-19 and lld-19; LLVM_SUFFIX names another \
             version). The prebuilt code objects in tests/workloads/kernels/prebuilt stay as they are",
            missing.join(", ")
        );
    }
    let directory = install::source_root().join("tests/workloads/kernels");
    let prebuilt = directory.join("prebuilt");
    let before = contents(&prebuilt)?;
    shell::run(&mut Command::new(directory.join("build.sh")))?;
    let after = contents(&prebuilt)?;
    for (name, bytes) in &after {
        let state = match before.iter().find(|(old, _)| old == name) {
            Some((_, old)) if old == bytes => "unchanged",
            Some(_) => "changed",
            None => "new",
        };
        println!("{:>8} bytes  {state:<9}  {name}", bytes.len());
        // The linker marks its output executable; these are data.
        File::open(prebuilt.join(name))?
            .set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
    }
    Ok(())
}

fn contents(directory: &std::path::Path) -> Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        files.push((name, fs::read(&path)?));
    }
    files.sort();
    Ok(files)
}
