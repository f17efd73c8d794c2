//! Runs a program once while something looks at its recording; no outputs are made.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result};
use rpd_core::naming::Namer;

use super::{GRACE, Runner, names};
use crate::failure::Failure;
use crate::options::plan::Pass;
use crate::options::resolve::Environment;
use crate::process::program;
use crate::process::spawn::{self, TargetEnd};
use crate::run_directory::RunDirectory;

/// Whether the program has ended, for the one that looks on.
#[derive(Debug, Default)]
pub(crate) struct TargetState(AtomicBool);

impl TargetState {
    /// Whether the program has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Runs the program of a pass. `look` is called on a thread of its own with the run and the state of the program; the recording
/// is there until it returns, and is removed then.
///
/// # Errors
/// The program cannot be started, or `look` fails.
pub(crate) fn watched<T: Send>(
    pass: &Pass,
    environment: &Environment,
    look: impl FnOnce(&RunDirectory, &TargetState) -> Result<T> + Send,
) -> Result<(TargetEnd, T)> {
    let mut runner = Runner {
        environment,
        signals: None,
        simulator_announced: false,
        comparison: None,
        names: Namer::default(),
    };
    let program = program::of_pass(&pass.options)?;
    if let Some(why) = &pass.unprofiled {
        return Err(Failure::failed(format!("nothing is recorded: {why}")).into());
    }
    names::check(&pass.options, &environment.cwd)?;
    let run = RunDirectory::create(&pass.options, &environment.cwd)?;
    let started = runner.start(pass, &program, &run);
    let (target, signals) = match started {
        Ok(started) => started,
        Err(error) => {
            run.remove();
            return Err(error);
        }
    };
    let state = TargetState::default();
    let outcome = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, || look(&run, &state));
        let ending = spawn::wait(target, &signals);
        spawn::grace(GRACE, &signals, &mut || !run.attached().is_empty());
        state.0.store(true, Ordering::Release);
        let looked = thread.context("no thread can be started")?.join();
        let looked = looked.map_err(|_| Failure::failed("the look at the recording has failed"))?;
        Ok((ending?, looked?))
    });
    run.remove();
    outcome
}
