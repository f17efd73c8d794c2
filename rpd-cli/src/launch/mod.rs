//! Running a target: everything that is checked before, the run itself, and what is made of it afterwards.

mod backend;
mod environment;
mod libraries;
pub(crate) mod program;
pub(crate) mod spawn;

use std::time::Duration;

use anyhow::Result;
use rpd_core::options::{LogLevel, Options};

use crate::options::plan::{Pass, Plan};
use crate::options::resolve::Surroundings;
use crate::report;
use crate::run_directory::RunDirectory;

/// How long processes that outlive the target may take before rpd goes on without them.
const GRACE: Duration = Duration::from_secs(1);

/// Runs all passes; the exit status.
pub(crate) fn run(plan: &Plan, around: &Surroundings) -> Result<u8> {
    for warning in &plan.warnings {
        eprintln!("rpd: {warning}");
    }
    let mut status = 0;
    for pass in &plan.passes {
        status = run_pass(pass, around)?;
        if status != 0 {
            break;
        }
    }
    Ok(status)
}

fn run_pass(pass: &Pass, around: &Surroundings) -> Result<u8> {
    let options = &pass.options;
    let program = program::find(options.command.first().map_or("", String::as_str))?;
    let run = RunDirectory::create(options, &around.cwd)?;
    let (target, signals) = match start(pass, &program, &run) {
        Ok(started) => started,
        Err(error) => {
            run.remove();
            return Err(error);
        }
    };
    let ending = spawn::wait(target, &signals)?;
    spawn::grace(GRACE, &signals, &mut || {
        run.recordings()
            .is_ok_and(|recordings| recordings.iter().any(|recording| recording.alive))
            || !run.attached().is_empty()
    });
    signals.end_rpd_from_now_on(run.path());
    let written = report::finish(&run, options, Some(ending));
    Ok(match (ending.status(), written) {
        (0, Ok(true)) => 0,
        (0, Ok(false)) => 1,
        (0, Err(error)) => return Err(error),
        (status, Ok(_)) => status,
        (status, Err(error)) => {
            eprintln!("rpd: {}", crate::failure::line(&error));
            status
        }
    })
}

fn start(
    pass: &Pass,
    program: &std::path::Path,
    run: &RunDirectory,
) -> Result<(nix::unistd::Pid, spawn::Signals)> {
    let options = &pass.options;
    let inherited = |name: &str| std::env::var_os(name);
    let provider = backend::choose(
        options,
        &pass.sdk_suffixes,
        inherited("LD_LIBRARY_PATH").as_deref(),
        run.path(),
    )?;
    let changes = environment::changes(
        options,
        &provider,
        run.path(),
        pass.suppress_marker_preload,
        &inherited,
    )?;
    if let Some(note) = &provider.note {
        eprintln!("rpd: {note}");
    }
    show(options, &changes);
    let signals = spawn::Signals::hold()?;
    let target = spawn::start(program, &options.command, &changes, &signals)?;
    Ok((target, signals))
}

/// What `--log-level` makes rpd itself print.
fn show(options: &Options, changes: &environment::Changes) {
    let level = options.log_level;
    if matches!(
        level,
        Some(LogLevel::Info | LogLevel::Trace | LogLevel::Config)
    ) && let Ok(text) = serde_json::to_string_pretty(options)
    {
        eprintln!("rpd: options: {text}");
    }
    if matches!(
        level,
        Some(LogLevel::Info | LogLevel::Trace | LogLevel::Env)
    ) {
        for (name, value) in changes {
            eprintln!("rpd: {name}={}", value.to_string_lossy());
        }
    }
}
