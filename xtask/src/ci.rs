//! `cargo xtask ci`: the checks of continuous integration, which need no more than a bare machine.

use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::time::Instant;
use std::{env, fs};

use anyhow::{Result, bail};
use rpd_tests::install;

use crate::{demo, fuzz, shell, test};

/// Programs that the checks need, each with the Debian package that has it.
const NEEDED: [(&str, &str); 10] = [
    ("cc", "gcc"),
    ("c++", "g++"),
    ("gdb", "gdb"),
    ("sqlite3", "sqlite3"),
    ("readelf", "binutils"),
    ("otf2-print", "otf2-tools"),
    ("chromium", "chromium"),
    ("chromedriver", "chromium-driver"),
    ("pip3", "python3-pip"),
    // A second interpreter, built in another way, whose stacks are compared.
    ("python3-dbg", "python3-dbg"),
];

/// Python modules that read our files independently or whose stacks are compared, and the packages that have them.
const MODULES: [(&str, &str); 3] = [
    ("duckdb", "duckdb"),
    ("perfetto", "perfetto"),
    ("greenlet", "greenlet"),
];

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let long = match arguments {
        [] => false,
        [option] if option == "--long" => true,
        _ => bail!("ci knows no option but --long"),
    };
    let start = Instant::now();
    step("tools", install_tools)?;
    // What fails fast comes first.
    step("formatting", || {
        shell::run(shell::cargo().args(["fmt", "--all", "--check"]))
    })?;
    step("lints", || {
        shell::run(shell::cargo().args([
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ]))
    })?;
    step("licences, bans and sources of dependencies", dependencies)?;
    step("documentation", || {
        shell::run(
            shell::cargo()
                .args(["doc", "--workspace", "--no-deps"])
                .env("RUSTDOCFLAGS", "-D warnings"),
        )
    })?;
    step("the documentation as a site", site)?;
    step("tests", || test::run(&[]))?;
    step("demo", || demo::run(&[]))?;
    if long {
        // The tests leave out what needs a missing program: most of them must not need one.
        step("tests with nothing but Rust and a C compiler", || {
            test::run(&["--bare", "--no-fail-fast"].map(str::to_owned))
        })?;
        step("litmus tests of the simulated memory", || {
            shell::run(shell::cargo().args([
                "test",
                "--package",
                "rpd-gfx",
                "--lib",
                "litmus_for_a_minute",
                "--",
                "--ignored",
            ]))
        })?;
        step("the spool under Miri", spool_under_miri)?;
        step("captures of programs that are killed", || {
            let words = ["--test", "e2e", "killed_fifty_times", "--", "--ignored"];
            test::run(&words.map(str::to_owned))
        })?;
        step("the direct provider under stress", || {
            let words = [
                "--test",
                "e2e",
                "under_stress",
                "--",
                "--ignored",
                "--nocapture",
            ];
            test::run(&words.map(str::to_owned))
        })?;
        step("cost of merged stacks", || {
            let words = ["--test", "e2e", "frames_cost", "--", "--ignored"];
            test::run(&words.map(str::to_owned))
        })?;
        step("Python stacks under stress", || {
            shell::run(shell::cargo().args([
                "test",
                "--package",
                "rpd-stacks",
                "--examples",
                "--test",
                "python",
                "--",
                "--ignored",
                "--nocapture",
            ]))
        })?;
        step("fuzzing", || fuzz::run(&[]))?;
    }
    println!("ci: all passed in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

fn step(name: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    println!("ci: {name}");
    let start = Instant::now();
    work()?;
    println!(
        "ci: {name} passed in {:.0} s",
        start.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Has cargo-deny, where it is installed, compare the dependencies with `deny.toml`.
fn dependencies() -> Result<()> {
    if shell::tool("cargo-deny").is_none() {
        println!(
            "skipped: licences, bans and sources of dependencies: `cargo install --locked cargo-deny` installs cargo-deny"
        );
        return Ok(());
    }
    shell::run(shell::cargo().args(["deny", "check", "licenses", "bans", "sources"]))
}

/// Has mdBook, where it is installed, make the site of the pages in `docs`, as `book.toml` describes it.
fn site() -> Result<()> {
    if shell::tool("mdbook").is_none() {
        println!(
            "skipped: the documentation as a site: `cargo install --locked mdbook` installs mdBook"
        );
        return Ok(());
    }
    shell::run(
        Command::new("mdbook")
            .arg("build")
            .current_dir(install::source_root()),
    )
}

/// Has Miri run the writer and the reader of the spool, where a nightly toolchain with Miri is installed. Providers keep the
/// address of an open record as a number, so conversions from numbers to pointers are permitted.
fn spool_under_miri() -> Result<()> {
    let cargo = || {
        let mut cargo = Command::new("cargo");
        cargo.current_dir(install::source_root());
        cargo.args(["+nightly", "miri"]);
        cargo
    };
    let version = cargo().arg("--version").output();
    if !version.is_ok_and(|output| output.status.success()) {
        println!(
            "skipped: the spool under Miri: `rustup component add --toolchain nightly miri rust-src` installs Miri"
        );
        return Ok(());
    }
    shell::run(
        cargo()
            .args(["test", "--package", "rpd-spool", "--test", "spool"])
            .arg("two_threads")
            .env("CARGO_TARGET_DIR", install::target_dir().join("miri"))
            .env(
                "MIRIFLAGS",
                "-Zmiri-disable-isolation -Zmiri-permissive-provenance",
            ),
    )
}

/// Installs missing programs where that is possible: as root, with apt-get, on a machine for CI. Elsewhere a missing
/// one is only named; the tests that need it skip themselves.
fn install_tools() -> Result<()> {
    let missing: Vec<_> = NEEDED
        .iter()
        .filter(|(program, _)| shell::tool(program).is_none())
        .collect();
    let ci = env::var_os("CI").is_some();
    let root = fs::metadata("/proc/self")?.uid() == 0;
    if ci && root && !missing.is_empty() && shell::tool("apt-get").is_some() {
        let packages = missing.iter().map(|(_, package)| package);
        shell::run(Command::new("apt-get").args(["update", "-qq"]))?;
        let mut install = Command::new("apt-get");
        install
            .args(["install", "-y", "-qq", "--no-install-recommends"])
            .args(packages);
        shell::run(install.env("DEBIAN_FRONTEND", "noninteractive"))?;
    } else {
        for (program, package) in missing {
            println!(
                "skipped: installing {program} (package {package}): needs CI=true, root and apt-get"
            );
        }
    }
    for (module, package) in MODULES {
        let import = format!("import {module}");
        let there = || {
            let python = Command::new("python3").args(["-c", &import]).output();
            python.is_ok_and(|output| output.status.success())
        };
        if there() {
            continue;
        }
        // Distributions that manage Python's packages themselves refuse pip without the second form.
        let installed = ci
            && [&[][..], &["--break-system-packages"]].iter().any(|more| {
                let mut pip = Command::new("python3");
                pip.args(["-m", "pip", "install", "--quiet", package])
                    .args(*more);
                shell::run(&mut pip).is_ok() && there()
            });
        if !installed {
            println!("skipped: what the Python module {module} would check: it is not installed");
        }
    }
    Ok(())
}
