//! `rpd capture -- PROGRAM`: runs a program and captures its GPU calls.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result};
use clap::Parser;
use rpd_capture::{Manifest, Summary};
use rpd_core::options::{Backend, Options};
use rpd_core::text::os_text;
use rpd_spool::environment::EnvironmentSelection;
use rpd_spool::options::{CaptureOptions, ProviderChoice};

use super::NAME;
use super::choices::{DataChoice, Level, MemoryChoice, OutputsChoice, PinnedChoice, level};
use super::directory::{CaptureDirectory, Making};
use super::excerpt::Region;
use super::processes::Captures;
use super::progress::{Progress, bytes};
use crate::exit_status::FAILED;
use crate::failure::Failure;
use crate::options::size::size;
use crate::process::spawn::{self, Signals};
use crate::process::{backend, environment, program};
use crate::wording::count;

/// Time between two looks at the data that the program has staged.
const PAUSE: Duration = Duration::from_millis(5);

/// Record a program's GPU calls with their data, for rpd replay
///
/// The program's output and exit status are not changed. The capture is a directory that
/// `rpd replay DIR` plays back without the program, and that `rpd capture info|ls|show|check|export|diff|trim|pack DIR` works
/// on.
#[derive(Debug, Parser)]
#[command(
    override_usage = "rpd capture [options] -- PROGRAM [ARGUMENT...]\n       rpd capture info|ls|show|check|export|diff|trim|pack ..."
)]
pub(super) struct Arguments {
    /// Directory to write, which must not exist [default: rpd-capture]
    #[arg(short, long, value_name = "DIR")]
    pub(super) output: Option<PathBuf>,
    /// Replace the capture that is there
    #[arg(long)]
    pub(super) overwrite: bool,
    /// Part of the run to keep: all, the calls N..M, a launch as kernel:NAME|REGEX[#N], what is between roctxProfilerResume and
    /// roctxProfilerPause as roctx[#N], or a ROCTx range as roctx:MESSAGE[#N]
    #[arg(long, value_name = "PART", default_value = "all", value_parser = super::excerpt::region)]
    pub(super) region: Region,
    /// Host data to keep
    #[arg(long, value_enum, default_value = "full")]
    pub(super) data: DataChoice,
    /// Results that calls write to host memory, to keep
    #[arg(long, value_enum, default_value = "hash")]
    pub(super) outputs: OutputsChoice,
    /// Host-visible memory to keep before each launch
    #[arg(long, value_enum, default_value = "assisted")]
    pub(super) memory: MemoryChoice,
    /// Content that is kept for asynchronous copies from pinned memory
    #[arg(long, value_enum, default_value = "call")]
    pub(super) pinned: PinnedChoice,
    /// Compression of data: zstd, zstd:LEVEL or none
    #[arg(long, value_name = "CODEC", default_value = "zstd:1", value_parser = level)]
    pub(super) compress: Level,
    /// Bytes of data after which the capture ends, but not the program (suffixes K, M, G) [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(super) max_bytes: Option<u64>,
    /// Bytes of data that may wait until rpd has written them; calls of the program wait while they are used up
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size)]
    pub(super) staging: u64,
    /// Capture processes that the program starts as well, each into DIR_PID
    #[arg(long)]
    pub(super) children: bool,
    /// Platform that the program runs on: rocm, sim or auto
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = parse_backend)]
    pub(super) backend: Backend,
    /// What hands over the calls: sdk or direct, as for rpd [default: sdk where one is installed]
    #[arg(long, value_name = "NAME", value_parser = parse_provider)]
    pub(super) provider: Option<ProviderChoice>,
    #[command(flatten)]
    pub(super) accesses: super::accesses::TraceOptions,
    /// Print no progress and no summary
    #[arg(short, long)]
    pub(super) quiet: bool,
    /// The program and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    pub(super) command: Vec<OsString>,
}

/// The backend of this name.
pub(crate) fn parse_backend(text: &str) -> Result<Backend, String> {
    match text {
        "auto" => Ok(Backend::Auto),
        "rocm" => Ok(Backend::Rocm),
        "sim" => Ok(Backend::Sim),
        _ => Err("expected rocm, sim or auto".to_owned()),
    }
}

/// The provider of this name.
fn parse_provider(text: &str) -> Result<ProviderChoice, String> {
    match ProviderChoice::from_word(text) {
        Some(found @ (ProviderChoice::Sdk | ProviderChoice::Direct)) => Ok(found),
        _ => Err("expected sdk or direct".to_owned()),
    }
}

/// Runs `rpd capture [options] -- PROGRAM`; returns the exit status.
pub(super) fn run(arguments: &[OsString]) -> Result<u8> {
    let Some(mut given) = crate::commands::parse::<Arguments>(NAME, arguments)? else {
        return Ok(0);
    };
    let database = super::hiptracer::apply_variables(&mut given);
    capture(&given, database.as_deref())
}

/// Captures a run; returns the exit status. `database`: a name under which the database can be found as well.
pub(super) fn capture(given: &Arguments, database: Option<&Path>) -> Result<u8> {
    if given.command.is_empty() {
        return Err(Failure::usage(format!(
            "{NAME}: the program to run goes after `--`: rpd capture [options] -- PROGRAM (see rpd capture --help)"
        ))
        .into());
    }
    let traces = given.accesses.choice() != rpd_spool::access_trace::AccessTrace::default();
    if traces && given.provider == Some(ProviderChoice::Direct) {
        return Err(Failure::usage(format!(
            "{NAME}: --trace cannot be combined with --provider direct: the simulated GPU records accesses through its SDK"
        ))
        .into());
    }
    // A region is cut out of the finished capture by a replay, for which these leave nothing.
    let lacks = [
        (given.children, "--children"),
        (given.data == DataChoice::None, "--data none"),
        (traces, "--trace"),
    ];
    if !matches!(given.region, Region::All)
        && let Some((_, other)) = lacks.iter().find(|(is_given, _)| *is_given)
    {
        return Err(
            Failure::usage(format!("{NAME}: --region cannot be combined with {other}")).into(),
        );
    }
    let output = given
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from("rpd-capture"));
    let options = options(given);
    let file = program::of_pass(&options)?;
    let directory = CaptureDirectory::make(&output, given.overwrite)?;
    let started = start(&options, &file, &directory, given);
    // Without a program there is nothing to capture: the directory is as it was before.
    let (target, signals, making) = match started {
        Ok(started) => started,
        Err(error) => {
            directory.discard();
            return Err(error);
        }
    };
    // Data are taken while the program runs: its calls wait when the staging area is full.
    let stop = Arc::new(AtomicBool::new(false));
    let worker = {
        let stop = Arc::clone(&stop);
        let mut captures = Captures::new(&directory, making, given.quiet);
        std::thread::spawn(move || {
            let mut progress = Progress::new(captures.quiet());
            while !stop.load(Ordering::Acquire) {
                let busy = captures.poll();
                let (calls, data, waiting) = captures.progress();
                progress.show(calls, data, waiting);
                if !busy {
                    std::thread::sleep(PAUSE);
                }
            }
            progress.clear();
            captures
        })
    };
    // This thread alone waits and passes signals on; the other one may be writing for long.
    let ending = spawn::wait(target, &signals)?;
    stop.store(true, Ordering::Release);
    let captures = worker
        .join()
        .map_err(|_| anyhow::anyhow!("the thread that stores the data has failed"))?;
    let status = ending.status();
    let written = captures.finish(Some(i32::from(status)));
    let complete = match written {
        Ok(Some(summary)) => {
            print_summary(given, &directory, &summary);
            let complete = summary.ended.is_empty() && keep_region(given, &directory, &summary);
            // Replaced only now: until the new capture is complete the old one stays.
            let replaced = replace(&directory);
            if replaced && let Some(database) = database {
                link(database, &output);
            }
            complete && replaced
        }
        Ok(None) => {
            directory.discard();
            eprintln!(
                "rpd: nothing was captured: the program made no call of the HIP runtime other than queries{}",
                if directory.work == directory.output {
                    ""
                } else {
                    "; the capture that was there before stays"
                }
            );
            false
        }
        Err(error) => {
            // An incomplete capture is useless, and takes disk space.
            directory.discard();
            if status == 0 {
                return Err(error);
            }
            eprintln!("rpd: {}", crate::failure::line(&error));
            false
        }
    };
    // The program's failure is what the user has to know first.
    Ok(match status {
        0 if !complete => FAILED,
        status => status,
    })
}

/// Puts the capture into its place. False when that failed; the error is printed, and the capture stays where it was made.
fn replace(directory: &CaptureDirectory) -> bool {
    let replaced = directory.replace();
    match &replaced {
        Ok(()) => directory.complete(),
        Err(error) => eprintln!(
            "rpd: {}; the new capture is in {}, and `rpd recover {}` puts it into its place",
            crate::failure::line(error),
            directory.work.display(),
            directory.output.display()
        ),
    }
    replaced.is_ok()
}

/// Reduces the capture to the part that the user selected. False when that failed; the error is printed.
fn keep_region(given: &Arguments, directory: &CaptureDirectory, summary: &Summary) -> bool {
    let part = match &given.region {
        Region::All => return true,
        Region::Part(part) => Ok(part.clone()),
        Region::Marked(marked) => marked.find(&summary.markers, summary.calls, given.quiet),
    };
    let kept = part
        .and_then(|part| super::excerpt::keep_part(directory, &part, given.backend, given.quiet));
    match kept {
        Ok(()) => true,
        Err(error) => {
            eprintln!(
                "rpd: {}; {} has all calls",
                crate::failure::line(&error),
                directory.output.display()
            );
            false
        }
    }
}

fn options(given: &Arguments) -> Options {
    let mut options = Options {
        command: given
            .command
            .iter()
            .map(|word| os_text::escape(word))
            .collect(),
        backend: given.backend,
        ..Options::default()
    };
    options.collector.capture = CaptureOptions {
        calls: true,
        data: given.data != DataChoice::None,
        outputs: given.outputs != OutputsChoice::None && given.data == DataChoice::Full,
        snapshot: given.memory == MemoryChoice::Snapshot,
        pageguard: given.memory == MemoryChoice::Pageguard,
        device_writes_seen: false,
        pinned_exact: given.pinned == PinnedChoice::Exact,
        markers: matches!(given.region, Region::Marked(_)),
        staging: given.staging,
        max_bytes: given.max_bytes,
        accesses: given.accesses.choice(),
    };
    options
}

fn start(
    options: &Options,
    file: &Path,
    directory: &CaptureDirectory,
    given: &Arguments,
) -> Result<(nix::unistd::Pid, Signals, Making)> {
    let spool = directory.spool();
    std::fs::create_dir(&spool).with_context(|| spool.display().to_string())?;
    let spool = std::path::absolute(spool)?;
    let inherited = |name: &str| std::env::var_os(name);
    let suffixes = crate::options::default_sdk_suffixes();
    let mut options = options.clone();
    // Without an SDK the runtimes hand their tables to rpd.
    options.collector.provider = given.provider.unwrap_or(ProviderChoice::Direct);
    let provider = backend::choose(
        &options,
        &suffixes,
        inherited("LD_LIBRARY_PATH").as_deref(),
        &spool,
    )?;
    if given.provider.is_none() && provider.has_sdk() {
        options.collector.provider = ProviderChoice::Sdk;
    }
    if let Some(reason) = provider.fallback.as_ref().filter(|_| !given.quiet) {
        eprintln!("rpd: {reason}: the target runs on the simulated GPU");
    }
    given.accesses.prepare(&provider, &spool)?;
    options.collector.capture.device_writes_seen = provider.simulated;
    let changes = environment::changes(&options, &provider, &spool, true, &inherited)?;
    let making = making(&options, &provider, given);
    directory.begin(&making)?;
    let signals = Signals::hold()?;
    let target = spawn::start(file, &options.command, &changes, &signals)?;
    Ok((target, signals, making))
}

/// Settings with which the capture is made.
fn making(options: &Options, provider: &backend::Provider, given: &Arguments) -> Making {
    let word = |value: &dyn std::fmt::Debug| format!("{value:?}").to_lowercase();
    let choices = BTreeMap::from([
        ("data".to_owned(), word(&given.data)),
        ("outputs".to_owned(), word(&given.outputs)),
        ("memory".to_owned(), word(&given.memory)),
        ("pinned".to_owned(), word(&given.pinned)),
    ]);
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let selection = EnvironmentSelection::default();
    let manifest = Manifest {
        rpd: env!("CARGO_PKG_VERSION").to_owned(),
        command: options.command.clone(),
        directory: std::env::current_dir()
            .map(|path| path.display().to_string())
            .unwrap_or_default(),
        host: nix::unistd::gethostname()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default(),
        simulated: provider.simulated,
        time: time.map_or(0, |time| time.as_secs()),
        environment: std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| selection.keeps(name))
            .collect(),
        options: choices,
        ..Manifest::default()
    };
    Making {
        manifest,
        level: given.compress.0,
        keep_outputs: given.outputs == OutputsChoice::Full,
        children: given.children,
    }
}

/// Makes the database reachable under another name.
fn link(database: &Path, output: &Path) {
    let Ok(target) = std::path::absolute(output.join(rpd_capture::DATABASE)) else {
        return;
    };
    // Only a link that an earlier capture has made is replaced.
    let is_of_capture = std::fs::read_link(database).is_ok_and(|to| {
        to.file_name()
            .is_some_and(|name| name == rpd_capture::DATABASE)
    });
    if is_of_capture {
        let _ = std::fs::remove_file(database);
    }
    if let Err(error) = std::os::unix::fs::symlink(target, database) {
        eprintln!("rpd: {} cannot be made: {error}", database.display());
    }
}

fn print_summary(given: &Arguments, directory: &CaptureDirectory, summary: &Summary) {
    for (name, calls) in &summary.unsupported {
        let times = count(*calls, "time");
        eprintln!("rpd: {name} was called {times} and cannot be replayed");
    }
    for note in &summary.notes {
        eprintln!("rpd: {note}");
    }
    if !summary.ended.is_empty() {
        eprintln!(
            "rpd: the capture ended before the program: {}",
            summary.ended
        );
    }
    if given.quiet {
        return;
    }
    let (stalled, stalls) = summary.stalled;
    if stalls > 0 {
        eprintln!(
            "rpd: {} waited {:.1} ms in all for data to be taken (--staging)",
            count(stalls, "call"),
            stalled as f64 / 1e6
        );
    }
    notice!(
        "rpd: wrote {}: {}, {}, {} of data, {} distinct, {} stored{}",
        directory.output.display(),
        count(summary.calls, "call"),
        count(summary.launches, "launch"),
        bytes(summary.data),
        bytes(summary.distinct),
        bytes(summary.stored),
        if summary.clean {
            ""
        } else {
            "; the program did not end in good order"
        }
    );
    if let Some(size) = super::accesses::recorded(&directory.work) {
        eprintln!(
            "rpd: recorded memory accesses, {}: rpd capture show {}",
            bytes(size),
            directory.output.display()
        );
    }
}
