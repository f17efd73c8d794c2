//! Starting commands, each printed before it starts.

use std::env;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use rpd_tests::install;

use crate::links;

/// Cargo, in the source tree.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    command.current_dir(install::source_root());
    command
}

/// Prints the command and runs it with the terminal's streams; anything but success is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    eprintln!("+ {}", words(command));
    let status = command
        .status()
        .with_context(|| format!("cannot start {}", words(command)))?;
    if !status.success() {
        bail!("{} ended with {status}", words(command));
    }
    Ok(())
}

/// Runs the command like [`run`], and calls `see` with each line of standard output, which is passed on.
pub(crate) fn run_seeing(command: &mut Command, mut see: impl FnMut(&str)) -> Result<()> {
    eprintln!("+ {}", words(command));
    let child = command.stdout(Stdio::piped()).spawn();
    let mut child = child.with_context(|| format!("cannot start {}", words(command)))?;
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let line = line?;
            println!("{line}");
            see(&line);
        }
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("{} ended with {status}", words(command));
    }
    Ok(())
}

/// Runs the command and returns what it printed.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("cannot start {}", words(command)))?;
    if !output.status.success() {
        bail!(
            "{} ended with {}\n{}",
            words(command),
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    String::from_utf8(output.stdout).with_context(|| format!("what {} printed", words(command)))
}

/// The program `name` on `PATH`.
pub(crate) fn tool(name: &str) -> Option<PathBuf> {
    rpd_tests::run::tool(name)
}

/// Builds `rpd`, the collector and the simulator, and returns the directory they are in.
pub(crate) fn build(release: bool) -> Result<PathBuf> {
    let mut build = cargo();
    build.arg("build");
    if release {
        build.arg("--release");
        revision(&mut build);
    }
    if release {
        for package in install::PACKAGES {
            build.args(["--package", package]);
        }
    // The same choice of packages as for the tests, so that nothing is built twice, but for one that nothing else needs.
    } else {
        build.args([install::SAME_DEPENDENCIES, "--exclude", "rpd-fuzz"]);
    }
    run(&mut build)?;
    let built = install::target_dir().join(if release { "release" } else { "debug" });
    links::name_built(&built)?;
    Ok(built)
}

/// Has a build put the revision of the sources into the version that rpd prints.
pub(crate) fn revision(build: &mut Command) {
    let mut git = Command::new("git");
    git.current_dir(install::source_root())
        .args(["rev-parse", "HEAD"]);
    // An unpacked source archive has no revision.
    if let Ok(revision) = output(&mut git) {
        build.env("RPD_GIT_REVISION", revision.trim());
    }
}

fn words(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}
