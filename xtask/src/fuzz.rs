//! `cargo xtask fuzz`: the fuzz targets under libFuzzer, with the toolchain that everything else is built with.
//!
//! The workspace's own crates are compiled with LLVM's edge counters, which stable Rust can request; their dependencies
//! are those of every other build.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rpd_tests::install;

use crate::shell;

/// Seconds for each target without `--seconds`.
const SECONDS: u64 = 60;
/// Seconds after which a single input counts as hung. Machines for CI are slow and shared.
const SLOWEST_INPUT: u64 = 60;
/// Memory in MiB beyond which an input counts as a mistake.
const MOST_MEMORY: u64 = 2048;

/// A target, as the binary lists it.
struct Target {
    name: String,
    longest: String,
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let mut seconds = SECONDS;
    let mut wanted = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seconds" => {
                let number = words.next().and_then(|number| number.parse().ok());
                seconds = number
                    .filter(|number| *number > 0)
                    .context("--seconds needs a whole number of seconds, 1 or more")?;
            }
            option if option.starts_with('-') => bail!("unknown option {option}"),
            _ => wanted.push(word.clone()),
        }
    }
    // The binary lists its targets, so that a new one is known here at once.
    let binary = build()?;
    let known = list(&binary)?;
    for name in &wanted {
        if !known.iter().any(|target| target.name == *name) {
            let known: Vec<&str> = known.iter().map(|target| &*target.name).collect();
            bail!("no target {name} (known: {})", known.join(", "));
        }
    }
    let mut failed = Vec::new();
    for target in known {
        if !wanted.is_empty() && !wanted.contains(&target.name) {
            continue;
        }
        // Other targets do not depend on this one, and a run takes long.
        if let Err(error) = fuzz(&binary, &target, seconds) {
            eprintln!("fuzz: {}: {error:#}", target.name);
            failed.push(target.name);
        }
    }
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

fn build() -> Result<PathBuf> {
    let wrapper = install::source_root().join("fuzz/instrument.sh");
    let mut cargo = shell::cargo();
    cargo.args(["build", install::SAME_DEPENDENCIES, "--bin", "rpd-fuzz"]);
    cargo.args(["--features", "rpd-fuzz/libfuzzer"]);
    // Cargo uses this wrapper for the crates of the workspace only: coverage of others would lead the fuzzer away.
    shell::run(cargo.env("RUSTC_WORKSPACE_WRAPPER", wrapper))?;
    Ok(install::target_dir().join("debug/rpd-fuzz"))
}

fn list(binary: &Path) -> Result<Vec<Target>> {
    let lines = shell::output(&mut std::process::Command::new(binary))?;
    let targets = lines.lines().filter_map(|line| {
        let (name, longest) = line.split_once(' ')?;
        Some(Target {
            name: name.to_owned(),
            longest: longest.to_owned(),
        })
    });
    Ok(targets.collect())
}

/// Runs a target; inputs that reach something new are kept in the target directory, and so is one that fails.
fn fuzz(binary: &Path, target: &Target, seconds: u64) -> Result<()> {
    let directory = install::target_dir().join("fuzz").join(&target.name);
    let [corpus, seeds, failures] =
        ["corpus", "seeds", "failures"].map(|name| directory.join(name));
    for directory in [&corpus, &seeds, &failures] {
        fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    }
    let log = directory.join("log");
    let out = File::create(&log).with_context(|| log.display().to_string())?;
    let mut command = std::process::Command::new(binary);
    command
        .env("RPD_FUZZ_TARGET", &target.name)
        .env("RPD_FUZZ_SEEDS", &seeds)
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-max_len={}", target.longest))
        .arg(format!("-timeout={SLOWEST_INPUT}"))
        .arg(format!("-rss_limit_mb={MOST_MEMORY}"))
        .arg(format!("-artifact_prefix={}/", failures.display()))
        .arg("-print_final_stats=1")
        // The fuzzer writes new inputs into the first directory, and only reads the second.
        .args([&corpus, &seeds])
        .stdout(out.try_clone()?)
        .stderr(out);
    let status = command.status().context("cannot start the fuzzer")?;
    let text = fs::read(&log).with_context(|| log.display().to_string())?;
    let text = String::from_utf8_lossy(&text);
    if !status.success() {
        // The failure is at the end of the log, behind lines of progress.
        let lines: Vec<&str> = text.lines().collect();
        for line in &lines[lines.len().saturating_sub(40)..] {
            eprintln!("{line}");
        }
        bail!("{status}; all of its words are in {}", log.display());
    }
    let figure = |name: &str| {
        let mut lines = text.lines();
        let found = lines.find_map(|line| line.strip_prefix(name));
        found.map_or("?", str::trim).to_owned()
    };
    println!(
        "fuzz: {}: {} inputs in {seconds} s, {} of them kept, no failure",
        target.name,
        figure("stat::number_of_executed_units:"),
        figure("stat::new_units_added:"),
    );
    Ok(())
}
