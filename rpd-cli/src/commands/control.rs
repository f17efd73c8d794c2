//! `rpd control`: starts and stops recording in programs that run under rpd, and makes outputs of what is recorded so far.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use rpd_core::compat::Compat;
use rpd_core::procfs;
use rpd_core::stats::Unit;
use rpd_core::text::os_text;
use rpd_formats::table::{Cell, Column, ColumnKind};
use rpd_spool::control::{RecordingState, Request};

use super::tables::{TableOptions, note, printer};
use super::{Form, destination, write_output};
use crate::exit_status::{FAILED, SUCCESS};
use crate::failure::{Failure, line};
use crate::report;
use crate::run_directory::{
    ImageState, Recording, RunDirectory, find_runs, next_directory, run_of,
};

const NAME: &str = "control";

/// Start and stop recording in programs that run under rpd, and look at what they have recorded
///
/// Nothing else in the programs changes. All processes of a run are controlled together.
#[derive(Debug, Parser)]
#[command(disable_version_flag = true)]
struct Arguments {
    /// Output directory of the run, or the process id of one of its programs or of its rpd
    #[arg(value_name = "RUN|PID")]
    run: OsString,
    /// What to do
    #[arg(value_enum)]
    action: Action,
    /// Directory for the outputs of a snapshot [default: the first of snapshot-1, snapshot-2 and so on that does not exist,
    /// in the output directory of the run]
    #[arg(short = 'd', long, value_name = "DIR")]
    output_directory: Option<OsString>,
    /// Format of the table of a status
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    format: Form,
    /// File for the status instead of standard output; it appears when it is complete
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    tables: TableOptions,
    /// Seconds to wait for each process to answer
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    timeout: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Action {
    /// Record again
    Start,
    /// Record nothing until the next start
    Stop,
    /// Write what the provider holds back to the recording
    Flush,
    /// Show which processes record
    Status,
    /// Make complete outputs of what is recorded so far
    Snapshot,
}

/// Runs `rpd control RUN|PID ACTION`; returns the exit status.
pub(crate) fn run(arguments: &[OsString]) -> Result<u8> {
    let Some(given) = super::parse::<Arguments>(NAME, arguments)? else {
        return Ok(SUCCESS);
    };
    let runs = runs(NAME, &given.run)?;
    match given.action {
        Action::Start => request(&given, &runs, Request::Start, "records"),
        Action::Stop => request(&given, &runs, Request::Stop, "has stopped recording"),
        Action::Flush => request(&given, &runs, Request::Flush, "has written what it held"),
        Action::Status => status(&given, &runs),
        Action::Snapshot => snapshot(&given, &runs),
    }
}

/// Runs `rpdRemote start|stop PID`, as the program of rocmProfileData is called. There is no library to load first, and the
/// program's signals are its own; a repeated start or stop has no effect.
pub(crate) fn rpd_remote(arguments: &[OsString]) -> Result<u8> {
    let words: Vec<Option<&str>> = arguments.iter().map(|word| word.to_str()).collect();
    let usage = "rpdRemote: expected: start PID, or stop PID";
    match words.as_slice() {
        [Some("-h" | "--help")] => crate::print(
            "Start or stop recording in a program that runs under rpd\n\nUsage: rpdRemote start|stop PID\n\nThe same as rpd control PID start|stop\n",
        ),
        [Some(action @ ("start" | "stop")), Some(pid)]
            if pid.bytes().all(|byte| byte.is_ascii_digit()) && !pid.is_empty() =>
        {
            run(&[pid.into(), action.into()])
        }
        _ => Err(Failure::usage(usage).into()),
    }
}

/// The runs that an argument of a command names.
pub(crate) fn runs(command: &str, given: &OsStr) -> Result<Vec<RunDirectory>> {
    let path = Path::new(given);
    let pid = given.to_str().and_then(|text| text.parse::<u32>().ok());
    let directory = match pid {
        Some(pid) if !path.exists() => directory_of(command, pid)?,
        _ => path.to_owned(),
    };
    let runs = find_runs(&directory).runs;
    if runs.is_empty() {
        let problem = if directory.is_dir() {
            "no run in it is under way; name the output directory of a program that runs under rpd"
        } else {
            "No such directory, and not the number of a process"
        };
        let text = format!("{command}: {}: {problem}", directory.display());
        return Err(Failure::failed(text).into());
    }
    runs.into_iter().collect()
}

/// The run directory of a process that records, or of an rpd that waits for one.
fn directory_of(command: &str, pid: u32) -> Result<PathBuf> {
    let missing = |problem: &str| Failure::failed(format!("{command}: process {pid}: {problem}"));
    if !Path::new(&format!("/proc/{pid}")).exists() {
        return Err(missing("no such process").into());
    }
    // A process may see another root, as in a container.
    let seen = |pid: u32, path: PathBuf| {
        if path.is_dir() {
            return path;
        }
        let below = path.strip_prefix("/").unwrap_or(&path);
        Path::new(&format!("/proc/{pid}/root")).join(below)
    };
    let own_run = |path: &PathBuf| {
        let name = path.file_name().and_then(OsStr::to_str);
        name.is_some_and(|name| name.starts_with(&format!("run-{pid}-")))
    };
    if let Some(path) = run_of(pid) {
        return Ok(seen(pid, path));
    }
    // The rpd of a run has no such variable, but the processes that it waits for have.
    let children = procfs::processes();
    children
        .filter_map(|child| Some((child, run_of(child).filter(own_run)?)))
        .map(|(child, path)| seen(child, path))
        .next()
        .ok_or_else(|| {
            let problem = "it was not started by rpd, or its environment is not readable; start it with rpd ... -- \
                           PROGRAM";
            missing(problem).into()
        })
}

/// How messages name a process.
fn process(recording: &Recording) -> String {
    format!("process {}", recording.image.pid)
}

/// Sends a request to every process that runs; one line for each.
fn request(given: &Arguments, runs: &[RunDirectory], request: Request, done: &str) -> Result<u8> {
    let limit = Duration::from_secs(given.timeout.into());
    let mut status = SUCCESS;
    let mut answered = 0;
    for run in runs {
        let recordings = run.recordings()?;
        for recording in recordings.iter().filter(|recording| recording.runs_on()) {
            let process = process(recording);
            let outcome = run
                .controller(recording)
                .map(|page| page.map(|page| page.request(request, limit, || recording.runs_on())));
            match outcome {
                Ok(Some(true)) => {
                    answered += 1;
                    println!("{process} {done}");
                }
                // What ended meanwhile needs no answer.
                Ok(Some(false)) if !still_runs(run, recording)? => {}
                Ok(Some(false)) => {
                    status = FAILED;
                    eprintln!(
                        "rpd: {NAME}: {process} has not answered in {} s; it may be stopped, or at its end",
                        given.timeout
                    );
                }
                // A process that uses no GPU has nothing to start or stop.
                Ok(None) => {}
                Err(error) => {
                    status = FAILED;
                    eprintln!("rpd: {}", line(&error));
                }
            }
        }
    }
    if answered == 0 && status == SUCCESS {
        let text = format!(
            "{NAME}: {}: no process of the run uses the GPU now",
            Path::new(&given.run).display()
        );
        return Err(Failure::failed(text).into());
    }
    Ok(status)
}

/// Whether the process of a recording runs, looked at again.
fn still_runs(run: &RunDirectory, recording: &Recording) -> Result<bool> {
    let now = run.recordings()?;
    let same = now
        .iter()
        .find(|other| other.directory == recording.directory);
    Ok(same.is_some_and(|found| !found.has_ended()))
}

/// The columns of a status.
fn columns() -> Vec<Column> {
    use ColumnKind::{Name, Number, Word};
    [
        (Word, "Process"),
        (Word, "State"),
        (Number, "Recorded_bytes"),
        (Name, "Recording"),
    ]
    .map(|(kind, name)| Column::new(kind, name))
    .to_vec()
}

fn status(given: &Arguments, runs: &[RunDirectory]) -> Result<u8> {
    let inputs: Vec<PathBuf> = runs.iter().map(|run| run.path().to_owned()).collect();
    let output = destination(NAME, given.output.as_deref(), &inputs)?;
    let mut rows = Vec::new();
    for run in runs {
        for recording in &run.recordings()? {
            let page = if recording.has_ended() {
                None
            } else {
                run.controller(recording)?
            };
            let state = match (recording.state, page.map(|page| page.state())) {
                (ImageState::Ended, _) => "ended",
                (_, None) => "no GPU used yet",
                (_, Some(RecordingState { stopped: true, .. })) => "stopped",
                (_, Some(state)) if state.is_on() => "recording",
                (_, Some(_)) => "paused by the program",
            };
            rows.push(vec![
                Cell::from(u64::from(recording.image.pid)),
                Cell::from(state),
                Cell::from(run.size_of(recording)),
                Cell::Text(run.path_of(recording).display().to_string()),
            ]);
        }
    }
    let look = given.format.table_format();
    let view = (given.tables).view(look, Unit::Nsec, Compat::None, &output, None);
    write_output(output, Compat::None, |out| {
        let mut table = printer(NAME, &view, columns(), out as &mut dyn Write)?;
        for row in rows {
            table.row(row)?;
        }
        note(NAME, look, &table.finish()?);
        Ok(())
    })?;
    Ok(SUCCESS)
}

fn snapshot(given: &Arguments, runs: &[RunDirectory]) -> Result<u8> {
    let limit = Duration::from_secs(given.timeout.into());
    let mut complete = true;
    for run in runs {
        for recording in run.recordings()?.iter().filter(|one| one.runs_on()) {
            // One that does not answer is shown with what it has written itself.
            run.flush(recording, limit);
        }
        let directory = match &given.output_directory {
            Some(directory) => std::path::absolute(directory)?,
            None => next_directory(&run.output()?, "snapshot")?,
        };
        let mut options = run.options()?;
        // A library named in a file is not loaded: it would run with the rights of this user.
        options.otf2_library = None;
        options.thread_trace_library = None;
        options.output_directory = os_text::escape(directory.as_os_str());
        complete &= report::snapshot(run, &options)?;
    }
    Ok(if complete { SUCCESS } else { FAILED })
}
