//! After the target: from recordings to files, tables and the ledger.

mod comparison;
mod config;
mod counted;
mod ledger;
mod place;
mod progress;
mod tables;
pub(crate) mod write;

use std::path::Path;

use anyhow::{Context as _, Result};
use rpd_core::ids::ProcessId;
use rpd_core::naming::{self, Facts, Namer, Target};
use rpd_core::options::Options;
use rpd_core::session::{LoadOptions, Session};

use crate::launch::spawn::Ending;
use crate::run_directory::{Recording, RunDirectory, State};
pub(crate) use comparison::Comparison;
use ledger::Outcome;
use progress::Progress;
use tables::Tables;

/// Makes the outputs of every recorded process that has ended, prints tables and ledger, and removes what is
/// done. `ending` is how the target ended, if this rpd started it. False when an output could not be written, or lacks records
/// for which there was no room. What was counted goes to `comparison`, too. `names` are taken by earlier runs of the same
/// command; those of this one are added.
pub(crate) fn finish(
    run: &RunDirectory,
    options: &Options,
    ending: Option<Ending>,
    mut comparison: Option<&mut Comparison<'_>>,
    names: &mut Namer,
) -> Result<bool> {
    let recordings = run.recordings()?;
    let mut state = run.state();
    state.names.extend(names);
    if state.root.is_none() {
        state.root = recordings.first().map(|recording| recording.pid);
    }
    let hostname = naming::hostname();
    let several = recordings.len() > 1;
    let mut lines = Vec::new();
    let mut idle = Vec::new();
    let mut complete = true;
    let mut lossless = true;
    let ended = recordings.iter().filter(|recording| !recording.alive);
    let bytes: u64 = ended.map(|recording| progress::size(&recording.path)).sum();
    let report = Report {
        progress: Progress::new(bytes * (1 + options.formats.len() as u64)),
        run,
        options,
        hostname: &hostname,
        several,
    };
    for recording in &recordings {
        if recording.alive {
            lines.push(ledger::still_running(recording, run.path()));
            continue;
        }
        let outcome = report.process(recording, &mut state);
        if let (Some(comparison), Some(session)) = (comparison.as_mut(), &outcome.session) {
            comparison.add(session, options, &hostname);
        }
        complete &= outcome.complete();
        lossless &= outcome.lossless();
        if outcome.complete() {
            std::fs::remove_dir_all(&recording.path)
                .with_context(|| format!("cannot remove {}", recording.path.display()))?;
        }
        let ending = ending.filter(|_| state.root == Some(recording.pid));
        let replaced = recordings
            .iter()
            .any(|other| other.pid == recording.pid && other.loaded > recording.loaded);
        let text = ledger::of_process(&outcome, options, ending.filter(|_| !replaced));
        // Wrappers that become the program by exec are as little news as children that do nothing.
        if outcome.is_idle() && (replaced || state.root != Some(recording.pid)) {
            idle.extend(text);
        } else {
            lines.extend(text);
        }
    }
    drop(report);
    names.extend(&state.names);
    if !complete {
        lines.push(ledger::kept(run.path()));
    }
    if recordings.is_empty() && ending.is_some() {
        lines.push(ledger::nothing_loaded(options));
    }
    ledger::print(lines, idle);
    run.remove_if_done()?;
    Ok(complete && lossless)
}

/// What all processes of a report have in common.
struct Report<'a> {
    run: &'a RunDirectory,
    options: &'a Options,
    hostname: &'a str,
    /// Tables need to say whose they are.
    several: bool,
    progress: Progress,
}

impl Report<'_> {
    /// Makes the outputs of one process image.
    fn process(&self, recording: &Recording, state: &mut State) -> Outcome {
        let mut outcome = Outcome::new(recording.pid);
        let collector = &self.options.collector;
        let load = LoadOptions {
            args: collector.hip_args || collector.annotate_args,
        };
        let weight = progress::size(&recording.path);
        self.progress.step("reading", weight, 0);
        match Session::open(&recording.path, load) {
            Ok(session) => {
                if let Err(error) = self.outputs(recording, &session, weight, state, &mut outcome) {
                    outcome.errors.push(crate::failure::line(&error));
                }
                outcome.session = Some(session);
            }
            Err(error) => outcome.errors.push(crate::failure::line(&error.into())),
        }
        outcome
    }

    fn outputs(
        &self,
        recording: &Recording,
        session: &Session,
        weight: u64,
        state: &mut State,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let options = self.options;
        if session.is_empty() && !options.output_config {
            return Ok(());
        }
        let target = self.target(recording, session, state);
        // Before the first file: whoever reports the rest of this run must not use these names again.
        self.run.set_state(state)?;
        if options.output_config {
            outcome
                .files
                .push(config::write(session, options, &target)?);
        }
        if session.is_empty() {
            return Ok(());
        }
        let tables = Tables::of(session, options)?;
        let stats = tables.stats.as_ref();
        for format in &options.formats {
            // One format that fails does not keep the others from being written.
            self.progress.step(
                &format!("writing {format:?}").to_lowercase(),
                weight,
                records(session),
            );
            let written = write::write(*format, session, stats, options, &target);
            match written {
                Ok(files) => outcome.files.extend(files),
                Err(error) => outcome.errors.push(crate::failure::line(&error)),
            }
        }
        let title = self
            .several
            .then(|| format!("rpd: {}:\n", ledger::name(&session.process)));
        let deliver = || tables.deliver(&options.summary, &target, title.as_deref());
        outcome.files.extend(self.progress.aside(deliver)?);
        Ok(())
    }

    /// Where the recording's files go: the same place at every attempt.
    fn target(&self, recording: &Recording, session: &Session, state: &mut State) -> Target {
        let folder = recording.folder();
        if let Some(target) = state.targets.get(&folder) {
            return target.clone();
        }
        let facts = Facts {
            process: &session.process,
            options: self.options,
            hostname: self.hostname,
        };
        let descendant = state.root != Some(session.process.pid);
        let target = state.names.target(&facts, descendant);
        state.targets.insert(folder, target.clone());
        target
    }
}

/// How many records a session has.
fn records(session: &Session) -> u64 {
    let records = session.api.len()
        + session.dispatches.len()
        + session.copies.len()
        + session.allocations.len()
        + session.scratch.len()
        + session.counted.values.len();
    records as u64
}

/// A path as users like to see it: relative where it lies below the current directory.
pub(crate) fn shown(path: &Path) -> String {
    let relative = std::env::current_dir()
        .ok()
        .and_then(|cwd| path.strip_prefix(cwd).ok().map(Path::to_owned));
    match relative {
        Some(relative) if !relative.as_os_str().is_empty() => relative.display().to_string(),
        _ => path.display().to_string(),
    }
}

/// Number and noun.
fn count(number: usize, noun: &str) -> String {
    let plural = match (number, noun) {
        (1, _) => "",
        (_, "copy") => return format!("{number} copies"),
        (_, noun) if noun.ends_with("ch") || noun.ends_with('s') => "es",
        _ => "s",
    };
    format!("{number} {noun}{plural}")
}

/// A process id, shown with what is known of it.
fn label(name: &str, pid: ProcessId) -> String {
    format!("{name}[{pid}]")
}
