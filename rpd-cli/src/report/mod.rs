//! Report after the target's end: from recordings to files, tables and the ledger.

mod claim;
mod comparison;
mod config;
mod confine;
mod counted;
mod ledger;
mod low_priority;
mod one_piece;
mod place;
mod progress;
mod sampled;
mod tables;
mod traced;
pub(crate) mod write;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use rpd_core::compat::Difference;
use rpd_core::ids::ProcessId;
use rpd_core::naming::{self, Facts, Namer, Target};
use rpd_core::options::{Options, Symbolize};
use rpd_core::session::{LoadError, LoadOptions, Session, Table};
use rpd_symbols::Limited;

use crate::failure::line;
use crate::isolation::isolated;
use crate::process::spawn::TargetEnd;
use crate::run_directory::{Recording, RunDirectory, RunState};
use crate::thread_trace::collected;
use claim::{Claim, Taken};
pub(crate) use comparison::Comparison;
pub(crate) use confine::ConfinedDirectory;
use ledger::Outcome;
pub(crate) use ledger::name as process_name;
pub(crate) use progress::Progress;
use tables::Tables;
pub(crate) use tables::times_left_out;

/// Makes the outputs of every recorded process that has ended, prints tables and ledger, and removes recordings that
/// are done. `ending` is the end of the target, if this rpd started it. False when an output could not be written, or
/// lacks records for which there was no room. Counted values go to `comparison`, too. `names` are taken by earlier runs
/// of the same command; those of this one are added. With `confined`, outputs are made there only.
pub(crate) fn finish(
    run: &RunDirectory,
    options: &Options,
    ending: Option<TargetEnd>,
    mut comparison: Option<&mut Comparison<'_>>,
    names: &mut Namer,
    confined: Option<&ConfinedDirectory>,
) -> Result<bool> {
    run.remove_reported();
    let recordings = run.recordings()?;
    let mut state = run.state()?;
    state.names.extend(names);
    // The first recording is the process that rpd started: names of the others depend on it.
    if let Some(first) = recordings.first() {
        state.set_root(&first.image);
    }
    let mut lines = Vec::new();
    let mut idle = Vec::new();
    let mut complete = true;
    // Before the first recording is removed: without it, a later report takes another process for the root.
    let kept = run.set_state(&state);
    if let Err(error) = &kept {
        complete = false;
        lines.push(crate::failure::line(error));
    }
    let mut lossless = true;
    let ended = recordings.iter().filter(|recording| recording.has_ended());
    let hostname = naming::hostname();
    let report = Report {
        several: recordings.len() > 1,
        confined,
        ..Report::new(run, options, &hostname, ended)
    };
    // Processes that still run are reported by the next report.
    for recording in &recordings {
        if !recording.has_ended() {
            lines.push(ledger::still_running(recording, run.path()));
            continue;
        }
        let mut outcome = report.process(recording, &mut state);
        if options.compat.has(Difference::ResultFiles) {
            for file in &outcome.files {
                eprintln!("Opened result file: {}", file.display());
            }
        }
        // A failure here leaves the outputs as they are.
        if let (Some(comparison), Some(session)) = (comparison.as_mut(), &outcome.session) {
            let added = isolated("comparison of passes", || {
                comparison.add(session, options, &hostname);
                Ok(())
            });
            outcome.errors.extend(added.err().map(|error| line(&error)));
        }
        complete &= outcome.complete();
        lossless &= outcome.lossless();
        // A recording with an output that failed is kept, so that `rpd recover` can write it.
        if outcome.complete()
            && kept.is_ok()
            && let Err(error) = run.discard(recording)
        {
            lines.push(crate::failure::line(&error));
        }
        let is_root = state.is_root(&recording.image);
        let ending = ending.filter(|_| is_root);
        let replaced = recording.is_replaced(&recordings);
        let text = ledger::of_process(&outcome, options, ending.filter(|_| !replaced));
        // Wrappers that become the program by exec are as little news as children that do nothing.
        if outcome.is_idle() && (replaced || !is_root) {
            idle.extend(text);
        } else {
            lines.extend(text);
        }
    }
    // The report ends its line of progress when it is dropped, before the ledger is printed.
    drop(report);
    let remarks = state.names.take_remarks();
    lines.extend(
        remarks
            .iter()
            .map(|remark| format!("names of outputs: {remark}")),
    );
    names.extend(&state.names);
    if !complete {
        lines.push(ledger::kept_recording(run.path()));
    }
    if recordings.is_empty() && ending.is_some() {
        lines.push(ledger::nothing_loaded(options));
    }
    ledger::print(lines, idle);
    run.remove_if_done()?;
    Ok(complete && lossless)
}

/// Makes the outputs of all that a run has recorded so far, in the output directory of `options`. The run, its processes and
/// what is known of its reports stay as they are. False when an output could not be written.
pub(crate) fn snapshot(run: &RunDirectory, options: &Options) -> Result<bool> {
    let recordings = run.recordings()?;
    let mut state = RunState::default();
    if let Some(first) = recordings.first() {
        state.set_root(&first.image);
    }
    let hostname = naming::hostname();
    let report = Report {
        several: recordings.len() > 1,
        is_snapshot: true,
        ..Report::new(run, options, &hostname, recordings.iter())
    };
    let (mut lines, mut complete) = (Vec::new(), true);
    for recording in &recordings {
        let outcome = report.process(recording, &mut state);
        complete &= outcome.complete();
        if !outcome.is_idle() {
            lines.extend(ledger::of_process(&outcome, options, None));
        }
    }
    drop(report);
    ledger::print(lines, Vec::new());
    Ok(complete)
}

/// Directory in which programs with run-time generated code write perf maps.
const PERF_MAPS: &str = "/tmp";

/// State that all processes of a report share.
struct Report<'a> {
    run: &'a RunDirectory,
    options: &'a Options,
    hostname: &'a str,
    /// Tables need a heading that names the process.
    several: bool,
    progress: Progress,
    /// Directory to which outputs are confined, if any.
    confined: Option<&'a ConfinedDirectory>,
    /// Looks up the symbols of all processes within one limit of time.
    symbols: RefCell<Limited>,
    /// Directories of thread traces in the directory of the outputs.
    trace_directories: RefCell<collected::Directories>,
    /// The recording goes on, and its report will be written to files of other names.
    is_snapshot: bool,
}

impl<'a> Report<'a> {
    /// A report on one process, whose outputs may be anywhere. The progress is that of reading `recordings` and writing each
    /// format.
    fn new<'r>(
        run: &'a RunDirectory,
        options: &'a Options,
        hostname: &'a str,
        recordings: impl Iterator<Item = &'r Recording>,
    ) -> Report<'a> {
        let bytes: u64 = recordings.map(|recording| run.size_of(recording)).sum();
        Report {
            progress: Progress::new(bytes * (1 + options.formats.len() as u64)),
            run,
            options,
            hostname,
            several: false,
            confined: None,
            symbols: RefCell::new(Limited::new(
                Duration::from_nanos(options.stacks.symbolize_limit),
                low_priority::lower,
            )),
            trace_directories: RefCell::default(),
            is_snapshot: false,
        }
    }
}

impl Report<'_> {
    /// Makes the outputs of one process image.
    fn process(&self, recording: &Recording, state: &mut RunState) -> Outcome {
        let mut outcome = Outcome::new(ProcessId(recording.image.pid));
        let collector = &self.options.collector;
        let load = LoadOptions {
            args: collector.hip_args || collector.annotate_args,
            rows: None,
        };
        let weight = self.run.size_of(recording);
        self.progress.step("reading", weight, 0);
        let open = || {
            let directory = self.run.open_recording(recording)?;
            let path = self.run.path_of(recording);
            Ok(Session::open_at(directory, &path, load)?)
        };
        match isolated("reading the recording", open) {
            Ok(mut session) => {
                match self.look_up(&mut session) {
                    Ok(left_out) => outcome.symbols_left_out = left_out,
                    Err(error) => outcome.errors.push(line(&error)),
                }
                let written = self.outputs(recording, &mut session, weight, state, &mut outcome);
                if let Err(error) = written {
                    outcome.errors.push(line(&error));
                }
                outcome.session = Some(session);
            }
            Err(error) => match error.downcast_ref() {
                Some(LoadError::NothingRecorded { .. }) => outcome.ended_early = true,
                _ => outcome.errors.push(line(&error)),
            },
        }
        outcome
    }

    /// Looks up the names of the frames of call stacks, if the options select this run for it. Returns how many addresses were left out.
    fn look_up(&self, session: &mut Session) -> Result<usize> {
        if session.stacks.is_empty() {
            return Ok(0);
        }
        // A recording from elsewhere may name any file, and the texts of files are copied.
        if self.confined.is_none() {
            let inductors = std::env::var_os("TORCHINDUCTOR_CACHE_DIR").map(PathBuf::from);
            rpd_symbols::keep_files(session, inductors.as_deref());
        }
        let symbolize = self.options.stacks.symbolize;
        if symbolize != Symbolize::Off {
            let maps = self.confined.is_none().then_some(Path::new(PERF_MAPS));
            isolated("names of code that was made at run time", || {
                Ok(rpd_symbols::name_jit(session, maps))
            })?;
        }
        if symbolize != Symbolize::Stop {
            return Ok(0);
        }
        self.progress.step("looking up symbols", 0, 0);
        isolated("symbols of call stacks", || {
            let mut symbols = self.symbols.borrow_mut();
            Ok(rpd_symbols::look_up(session, &mut *symbols).left_out)
        })
    }

    /// Saves and decodes thread traces.
    fn thread_traces(
        &self,
        session: &mut Session,
        target: &Target,
        outcome: &mut Outcome,
    ) -> Result<()> {
        if self.options.collector.thread_trace.is_none() {
            return Ok(());
        }
        self.progress.step("decoding thread traces", 0, 0);
        let sources = self.confined.is_none();
        outcome.files.extend(isolated("thread traces", || {
            let directories = &mut self.trace_directories.borrow_mut();
            collected::process(session, self.options, target, sources, directories)
        })?);
        Ok(())
    }

    /// Disassembles the functions that PC samples and traced instructions are in.
    fn look_up_code(&self, session: &mut Session) -> Result<()> {
        if !session.has_samples() && session.thread_traces.lines.is_empty() {
            return Ok(());
        }
        self.progress.step("disassembling", 0, 0);
        isolated("code of PC samples and thread traces", || {
            // A recording from elsewhere may name any file.
            rpd_symbols::look_up_code(session, self.confined.is_none());
            Ok(())
        })
    }

    fn outputs(
        &self,
        recording: &Recording,
        session: &mut Session,
        weight: u64,
        state: &mut RunState,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let options = self.options;
        collected::note_missing(&mut session.thread_traces);
        // The configuration is written of every process that was started, with records or without.
        if session.is_empty() && !options.output_config {
            return Ok(());
        }
        // Held until all files are there: another rpd that comes to the same name meanwhile takes another one.
        let (target, _claim) = self.target(recording, session, state, outcome)?;
        // Before the first file: a later report of this run must not use these names again.
        if !self.is_snapshot {
            self.run.set_state(state)?;
        }
        if let Err(error) = self.thread_traces(session, &target, outcome) {
            outcome.errors.push(line(&error));
        }
        if let Err(error) = self.look_up_code(session) {
            outcome.errors.push(line(&error));
        }
        let session = &*session;
        if options.output_config {
            match isolated("configuration", || config::write(session, options, &target)) {
                Ok(file) => outcome.files.push(file),
                Err(error) => outcome.errors.push(line(&error)),
            }
        }
        if session.is_empty() {
            return Ok(());
        }
        // Tables first: formats write statistics that are computed once.
        let tables = Tables::from_session(session, options);
        outcome.errors.extend(tables.errors.iter().map(line));
        let stats = tables.stats.as_ref();
        outcome.times_left_out = stats.map_or(0, |stats| stats.left_out);
        for format in &options.formats {
            // One format that fails does not keep the others from being written.
            self.progress.step(
                &format!("writing {}", format.word()),
                weight,
                records(session),
            );
            let written = write::write(*format, session, stats, options, &target);
            match written {
                Ok(files) => outcome.files.extend(files),
                Err(error) => outcome.errors.push(line(&error)),
            }
        }
        let process = self.title(session);
        let deliver = || tables.deliver(options, &target, process.as_deref());
        outcome.files.extend(self.progress.aside(deliver)?);
        Ok(())
    }

    /// What titles of tables call the process, where there are tables of others beside them: other processes of this run, or the
    /// ranks that other rpd processes report.
    fn title(&self, session: &Session) -> Option<String> {
        let name = ledger::name(&session.process);
        let facts = Facts {
            process: &session.process,
            options: self.options,
            hostname: self.hostname,
        };
        match facts.mpi_rank() {
            Some(rank) => Some(format!("{name}, rank {rank} on {}", self.hostname)),
            None => self.several.then_some(name),
        }
    }

    /// Paths of the recording's outputs, which are the same at every attempt, and what keeps other processes of rpd from
    /// using them meanwhile.
    fn target(
        &self,
        recording: &Recording,
        session: &Session,
        state: &mut RunState,
        outcome: &mut Outcome,
    ) -> Result<(Target, Option<Claim>)> {
        let check = |target: &Target| match self.confined {
            Some(confined) => confined.check(target, self.options),
            None => Ok(()),
        };
        let directory = &recording.directory;
        if let Some(target) = state.targets.get(directory)
            && check(target).is_ok()
        {
            return Ok((target.clone(), Claim::left_behind(target)));
        }
        let facts = Facts {
            process: &session.process,
            options: self.options,
            hostname: self.hostname,
        };
        let descendant = !state.is_root(&recording.image);
        let mut claim = None;
        let mut taken: Option<Target> = None;
        let target = state.names.free_target(&facts, descendant, &mut |target| {
            // Nothing is made where nothing may be written; that is refused below. Snapshots have directories of their own.
            if check(target).is_err() || self.is_snapshot {
                return true;
            }
            match Claim::take(target, self.options) {
                Taken::Free(own) => {
                    claim = own;
                    true
                }
                Taken::ByAnother => {
                    taken.get_or_insert_with(|| target.clone());
                    false
                }
            }
        });
        check(&target)?;
        if let Some(taken) = taken {
            outcome.renamed = Some(format!(
                "another rpd of the same time writes {}: the files of this process are {}",
                shown(&taken.file("*")),
                shown(&target.file("*")),
            ));
        }
        state.targets.insert(directory.clone(), target.clone());
        Ok((target, claim))
    }
}

/// Number of records of a session. A counted dispatch has one for each value.
pub(crate) fn records(session: &Session) -> u64 {
    let records = Table::ALL.iter().map(|table| match table {
        Table::Counted => session.counted.values.len(),
        Table::Calls
        | Table::Dispatches
        | Table::Copies
        | Table::Allocations
        | Table::Scratch
        | Table::Samples
        | Table::GraphLaunches
        | Table::HipEvents
        | Table::KfdEvents => session.records(*table),
    });
    records.sum::<usize>() as u64
}

/// A path for messages: relative if it lies below the current directory.
pub(crate) fn shown(path: &Path) -> String {
    let relative = std::env::current_dir()
        .ok()
        .and_then(|cwd| path.strip_prefix(cwd).ok().map(Path::to_owned));
    match relative {
        Some(relative) if !relative.as_os_str().is_empty() => relative.display().to_string(),
        _ => path.display().to_string(),
    }
}

/// Text for a process id, with the name of the process as far as it is known.
fn label(name: &str, pid: ProcessId) -> String {
    format!("{name}[{pid}]")
}
