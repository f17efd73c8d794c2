//! Runs the target: checks all passes first, then runs the target once per pass, and writes the outputs of each pass
//! after it.

mod names;
mod passes;
mod watched;

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use rpd_core::naming::Namer;
use rpd_core::options::{LogLevel, Options};
use rpd_core::storage::temporary::TemporaryDirectory;
use rpd_formats::registry::entry;

use crate::counters::derived::ComputedMetric;
use crate::exit_status;
use crate::failure::line;
use crate::long_run::Keeper;
use crate::options::plan::{Pass, Plan};
use crate::options::resolve::Environment;
use crate::process::{backend, environment, program, spawn};
use crate::report::{self, Comparison};
use crate::run_directory::{Recording, RunDirectory};
use passes::End;
pub(crate) use passes::Input;
use spawn::Signals;
pub(crate) use watched::{TargetState, watched};

/// Time for which rpd waits for processes that outlive the target.
const GRACE: Duration = Duration::from_secs(1);

/// Runs all passes, then computes the metrics of `computed` from them. Returns the exit status.
pub(crate) fn run(
    plan: &Plan,
    computed: &[ComputedMetric],
    environment: &Environment,
) -> Result<u8> {
    // Printed before the target begins to print.
    for warning in &plan.warnings {
        eprintln!("{}", environment.compat.warning(warning));
    }
    if let Some(missing) = plan.passes.iter().find_map(missing_library) {
        eprintln!("{}", environment.compat.warning(missing));
    }
    let mut runner = Runner {
        environment,
        signals: None,
        simulator_announced: false,
        comparison: None,
        names: Namer::default(),
    };
    if let [pass] = plan.passes.as_slice() {
        // The parts of a metric may be in several groups of one run.
        if pass.options.collector.counters.replay && !computed.is_empty() {
            runner.comparison = Some(Comparison::new(computed));
        }
        let end = runner.run(pass)?;
        if let Some(comparison) = runner.comparison.take()
            && let Some(path) = comparison.write()?
        {
            notice!("rpd: wrote {}", report::shown(&path));
        }
        // The target's failure goes before a failure to write, which is only reported then.
        return Ok(match (end.ending.status(), end.written) {
            (0, Ok(true)) => 0,
            (0, Ok(false)) => exit_status::FAILED,
            (0, Err(error)) => return Err(error),
            (status, Ok(_)) => status,
            (status, Err(error)) => {
                eprintln!("rpd: {}", line(&error));
                status
            }
        });
    }
    runner.comparison = Some(Comparison::new(computed));
    // All passes are checked before the first one runs, which may take hours.
    for pass in &plan.passes {
        check(pass, environment)?;
    }
    let status = passes::run(plan, computed, &mut runner);
    if let Some(comparison) = runner.comparison.take()
        && let Some(path) = comparison.write()?
    {
        notice!("rpd: wrote {}", report::shown(&path));
    }
    status
}

/// A warning about the library for a format of the pass. The run is not refused for it: other formats are written, and the
/// recording is kept for the missing one.
fn missing_library(pass: &Pass) -> Option<String> {
    // A process without the collector has no output.
    if pass.unprofiled.is_some() {
        return None;
    }
    pass.options.formats.iter().find_map(|&format| {
        let missing = entry(format).library?(&pass.options).err()?;
        let word = format.word();
        Some(format!(
            "-f {word}: no archive can be written after the run: {missing}"
        ))
    })
}

/// Checks a pass as far as possible before the first pass runs.
fn check(pass: &Pass, environment: &Environment) -> Result<()> {
    let options = &pass.options;
    program::of_pass(options)?;
    names::check(options, &environment.cwd)?;
    if pass.unprofiled.is_some() {
        return Ok(());
    }
    RunDirectory::check(options, &environment.cwd)?;
    // Provider and environment are prepared on trial, in a directory that is removed again.
    let directory = TemporaryDirectory::new()?;
    prepare(pass, directory.path())?;
    Ok(())
}

/// Chooses the provider, and makes the changes to the target's environment.
fn prepare(pass: &Pass, run_directory: &Path) -> Result<(backend::Provider, environment::Changes)> {
    let inherited = |name: &str| std::env::var_os(name);
    let provider = backend::choose(
        &pass.options,
        &pass.sdk_suffixes,
        inherited("LD_LIBRARY_PATH").as_deref(),
        run_directory,
    )?;
    let changes = environment::changes(
        &pass.options,
        &provider,
        run_directory,
        pass.suppress_marker_preload,
        &inherited,
    )?;
    Ok((provider, changes))
}

/// Runs passes, with the state that they share.
struct Runner<'a> {
    environment: &'a Environment,
    /// Signals to rpd, blocked from the start of the first target on.
    signals: Option<Signals>,
    /// Whether the message that the target runs on the simulator was printed.
    simulator_announced: bool,
    /// Counter values of the passes, for the comparison file.
    comparison: Option<Comparison<'a>>,
    /// Names of the passes' output files.
    names: Namer,
}

impl Runner<'_> {
    fn run(&mut self, pass: &Pass) -> Result<End> {
        let options = &pass.options;
        let program = program::of_pass(options)?;
        if let Some(why) = &pass.unprofiled {
            return self.run_unprofiled(pass, &program, why);
        }
        names::check(options, &self.environment.cwd)?;
        let run = RunDirectory::create(options, &self.environment.cwd)?;
        let (target, signals) = match self.start(pass, &program, &run) {
            Ok(started) => started,
            Err(error) => {
                run.remove();
                return Err(error);
            }
        };
        let (ending, pieces) = std::thread::scope(|scope| {
            let keeper = Keeper::start(scope, &run, options);
            let ending = spawn::wait(target, &signals);
            spawn::grace(GRACE, &signals, &mut || {
                let recordings = run.recordings();
                let runs =
                    |recordings: Vec<Recording>| recordings.iter().any(|one| !one.has_ended());
                recordings.is_ok_and(runs) || !run.attached().is_empty()
            });
            (ending, keeper.stop(options))
        });
        let ending = ending?;
        let watch = signals.watch(run.path());
        let names = &mut self.names;
        let written = match pieces {
            Some(pieces) => pieces.finish(&run, options, ending, names),
            None => {
                let comparison = self.comparison.as_mut();
                report::finish(&run, options, Some(ending), comparison, names, None)
            }
        };
        self.signals = Some(watch.stop()?);
        Ok(End { ending, written })
    }

    /// Runs the target without the collector, on the backend of the profiled ranks: without a GPU the simulator is needed.
    fn run_unprofiled(&mut self, pass: &Pass, program: &Path, why: &str) -> Result<End> {
        let options = &pass.options;
        if matches!(options.log_level, Some(LogLevel::Info | LogLevel::Trace)) {
            eprintln!("rpd: {why}: not profiled");
        }
        let signals = self.hold()?;
        let mut changes = environment::rank_variables(options);
        let inherited = std::env::var_os("LD_LIBRARY_PATH");
        // Holds the simulator's names until the target has ended.
        let spare = TemporaryDirectory::new()?;
        let chosen = backend::choose(
            options,
            &pass.sdk_suffixes,
            inherited.as_deref(),
            spare.path(),
        );
        if let Ok(provider) = chosen
            && provider.simulated
        {
            let path = environment::library_path(&provider, inherited.as_deref());
            changes.insert("LD_LIBRARY_PATH", Some(path));
        }
        let target = spawn::start(program, &options.command, &changes, &signals)?;
        let ending = spawn::wait(target, &signals)?;
        self.signals = Some(signals);
        Ok(End {
            ending,
            written: Ok(true),
        })
    }

    fn hold(&mut self) -> Result<Signals> {
        match self.signals.take() {
            Some(signals) => Ok(signals),
            None => Signals::hold(),
        }
    }

    fn start(
        &mut self,
        pass: &Pass,
        program: &Path,
        run: &RunDirectory,
    ) -> Result<(nix::unistd::Pid, Signals)> {
        let options = &pass.options;
        let (provider, changes) = prepare(pass, run.path())?;
        if let Some(reason) = &provider.fallback
            && !self.simulator_announced
        {
            notice!("rpd: {reason}: the target runs on the simulated GPU");
            self.simulator_announced = true;
        }
        show(options, &changes);
        let signals = self.hold()?;
        let target = spawn::start(program, &options.command, &changes, &signals)?;
        Ok((target, signals))
    }
}

/// Prints the messages of rpd itself for `--log-level`.
fn show(options: &Options, changes: &environment::Changes) {
    let level = options.log_level;
    if matches!(
        level,
        Some(LogLevel::Info | LogLevel::Trace | LogLevel::Config)
    ) && let Ok(text) = serde_json::to_string_pretty(options)
    {
        for line in format!("rpd: options: {text}").lines() {
            eprintln!("{line}");
        }
    }
    if matches!(
        level,
        Some(LogLevel::Info | LogLevel::Trace | LogLevel::Env)
    ) {
        for (name, value) in changes {
            match value {
                Some(value) => eprintln!("rpd: {name}={}", value.to_string_lossy()),
                None => eprintln!("rpd: {name} is removed"),
            }
        }
    }
}
