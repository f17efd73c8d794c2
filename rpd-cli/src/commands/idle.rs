//! `rpd idle`: starts a program that can be attached to later.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use clap::Parser;
use rpd_core::compat::Compat;
use rpd_core::storage::temporary::TemporaryDirectory;
use rpd_core::text::os_text;
use rpd_spool::idle::IDLE_VARIABLE;
use rpd_spool::{COLLECT_VARIABLE, SPOOL_VARIABLE};

use crate::exit_status::{NOT_EXECUTABLE, SUCCESS};
use crate::failure::Failure;
use crate::options::parse::{self, Parsed};
use crate::options::resolve::{Environment, resolve};
use crate::process::{backend, environment, program, spawn};

const NAME: &str = "idle";

/// Start a program that rpd attach can record while it runs
///
/// Nothing is recorded before somebody attaches. On a ROCm installation rpd becomes the program; with the simulated GPU it waits
/// for its end.
#[derive(Debug, Parser)]
#[command(disable_version_flag = true)]
struct Arguments {
    /// Platform that the program runs on: rocm, sim or auto [default: auto]
    #[arg(long, value_name = "BACKEND")]
    backend: Option<OsString>,
    /// GPU to simulate: gfx90a or gfx942; implies --backend sim
    #[arg(long, value_name = "GPU")]
    sim_gpu: Option<OsString>,
    /// Root of the ROCm installation
    #[arg(long, value_name = "DIR")]
    rocm_root: Option<OsString>,
    /// Directory for the control pages of the program's processes [default: XDG_RUNTIME_DIR, /dev/shm or /tmp]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// The program and its arguments, after --
    #[arg(value_name = "PROGRAM", last = true, required = true)]
    command: Vec<OsString>,
}

/// Runs `rpd idle -- PROGRAM`; returns the exit status, that of the program.
pub(crate) fn run(arguments: &[OsString]) -> Result<u8> {
    let Some(given) = super::parse::<Arguments>(NAME, arguments)? else {
        return Ok(SUCCESS);
    };
    let place = given.directory.as_deref().map(place).transpose()?;
    // What a later recording has is not known; markers need a library that is there from the start.
    let mut words: Vec<OsString> = vec!["--kernel-trace".into(), "--marker-trace".into()];
    let options = [
        ("--backend", given.backend),
        ("--sim-gpu", given.sim_gpu),
        ("--rocm-root", given.rocm_root),
    ];
    for (option, value) in options {
        if let Some(value) = value {
            words.extend([option.into(), value]);
        }
    }
    words.push("--".into());
    words.extend(given.command);
    let Parsed::Run(options, command) = parse::parse(&words)? else {
        return Err(Failure::usage(format!("{NAME}: expected a program after --")).into());
    };
    let plan = resolve(*options, command, &Environment::current(Compat::None)?)?;
    let pass = plan.passes.first().context("a plan has a pass")?;
    let program = program::of_pass(&pass.options)?;
    let inherited = |name: &str| std::env::var_os(name);
    // Holds the simulator's names until the program has ended.
    let spare = TemporaryDirectory::new()?;
    let provider = backend::choose(
        &pass.options,
        &pass.sdk_suffixes,
        inherited("LD_LIBRARY_PATH").as_deref(),
        spare.path(),
    )?;
    if let Some(reason) = &provider.fallback {
        eprintln!("rpd: {reason}: the program runs on the simulated GPU");
    }
    let mut changes = environment::changes(
        &pass.options,
        &provider,
        spare.path(),
        pass.suppress_marker_preload,
        &inherited,
    )?;
    for name in [SPOOL_VARIABLE, COLLECT_VARIABLE] {
        changes.insert(name, None);
    }
    let place = place.map_or_else(|| OsString::from("1"), PathBuf::into_os_string);
    changes.insert(IDLE_VARIABLE, Some(place));
    if provider.simulated {
        let signals = spawn::Signals::hold()?;
        let target = spawn::start(&program, &pass.options.command, &changes, &signals)?;
        return Ok(spawn::wait(target, &signals)?.status());
    }
    drop(spare);
    Err(become_program(&program, &pass.options.command, &changes).into())
}

/// The directory for control pages, which must be there.
fn place(given: &Path) -> Result<PathBuf, Failure> {
    if !given.is_dir() {
        return Err(Failure::failed(format!(
            "{NAME}: --directory {}: no such directory",
            given.display()
        )));
    }
    std::path::absolute(given)
        .map_err(|error| Failure::failed(format!("{NAME}: --directory: {error}")))
}

/// Replaces this process by the program, in the environment with the changes. Returns where that failed.
fn become_program(program: &Path, command: &[String], changes: &environment::Changes) -> Failure {
    let mut words = command.iter().map(|word| os_text::unescape(word));
    let mut started = Command::new(program);
    started.arg0(words.next().unwrap_or_default()).args(words);
    for (name, value) in changes {
        match value {
            Some(value) => started.env(OsStr::new(name), value),
            None => started.env_remove(OsStr::new(name)),
        };
    }
    let error = started.exec();
    Failure::new(
        NOT_EXECUTABLE,
        format!("{}: cannot be executed: {error}", program.display()),
    )
}
