//! `rpd attach`: records a program that runs already.
//!
//! [`target`] finds the way to attach to a process. One that waits for rpd ([`rpd_spool::idle`]) is told through its control
//! page where to record to and when to end; for one that waits for ROCm's own attach see [`upstream`]. From the recording
//! outputs are made as of any other run.

mod find;
pub(crate) mod target;
mod upstream;

use std::cell::Cell;
use std::ffi::OsString;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::Parser;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Gid, Uid, geteuid, setegid, seteuid};
use rpd_core::naming::Namer;
use rpd_core::options::{Options, ProviderChoice};
use rpd_core::procfs;
use rpd_spool::control::{LONGEST_TEXT, Request};
use rpd_spool::idle::{ATTACH_FILE, AttachedPage, PageError, seen_from_here};

use super::Form;
use super::tables::TableOptions;
use crate::exit_status::{SUCCESS, from_complete};
use crate::failure::Failure;
use crate::options::attach::Attach;
use crate::options::plan::Plan;
use crate::options::resolve::Environment;
use crate::process::spawn::Signals;
use crate::report;
use crate::run_directory::RunDirectory;
use target::{Page, Way, user_of, way};

const NAME: &str = "attach";

/// Longest wait until a process has begun to record.
const LONGEST_BEGIN: Duration = Duration::from_secs(30);
/// Longest wait until a process has ended its recording: it waits for work that is under way.
const LONGEST_END: Duration = Duration::from_secs(60);
/// Interval of the looks at whether the processes still run.
const LOOK: Duration = Duration::from_millis(50);
/// Interval of the looks at whether a process is still the same program.
const LOOK_AT_MAP: Duration = Duration::from_secs(1);

/// Record a program that runs already, and was started with rpd idle or with ROCP_TOOL_ATTACH=1
///
/// The options that follow the process are those of rpd itself: what to trace, and where outputs go.
#[derive(Debug, Parser)]
#[command(disable_version_flag = true)]
struct Arguments {
    /// Process to attach to
    #[arg(value_name = "PID", required_unless_present = "find")]
    pid: Option<u32>,
    /// List the processes of this machine that could be attached to, and how
    #[arg(long, conflicts_with = "pid")]
    find: bool,
    /// Format of the list
    #[arg(short, long, value_enum, default_value_t = Form::Table, requires = "find")]
    format: Form,
    /// File for the list instead of standard output; it appears when it is complete
    #[arg(short, long, value_name = "FILE", requires = "find")]
    output: Option<PathBuf>,
    #[command(flatten)]
    tables: TableOptions,
    /// Options of rpd (see rpd --help), such as --sys-trace, -d and --attach-duration-msec
    #[arg(
        value_name = "OPTIONS",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    options: Vec<OsString>,
}

/// Runs `rpd attach`; returns the exit status. `profile` runs rpd with the words of a command line.
pub(crate) fn run(
    arguments: &[OsString],
    profile: impl FnOnce(&[OsString]) -> Result<u8>,
) -> Result<u8> {
    // The options of rpd are for its own parser, which knows which of them take values.
    let is_pid = |word: &OsString| {
        word.to_str()
            .is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit()))
    };
    if let Some((pid, options)) = arguments.split_first()
        && is_pid(pid)
    {
        let mut words: Vec<OsString> = vec!["--pid".into(), pid.clone()];
        words.extend_from_slice(options);
        return profile(&words);
    }
    let Some(given) = super::parse::<Arguments>(NAME, arguments)? else {
        return Ok(SUCCESS);
    };
    if given.find {
        return find::run(given.format, given.output.as_deref(), &given.tables);
    }
    let text = format!("{NAME}: the process comes first: rpd attach PID [options]");
    Err(Failure::usage(text).into())
}

fn failed(pid: u32, problem: impl std::fmt::Display) -> Failure {
    Failure::failed(format!("{NAME}: process {pid}: {problem}"))
}

/// A process that is attached to.
struct Target {
    pid: u32,
    /// Start of the process, which tells it from a later one with its number.
    start: u64,
    page: Page,
    control: AttachedPage,
    /// When the memory map was read last: while it is, threads of the process that change it wait.
    looked: Cell<Instant>,
}

impl Target {
    fn open(pid: u32, page: Page) -> Result<Target, Failure> {
        let user = user_of(pid).ok_or_else(|| failed(pid, target::Reason::Missing))?;
        let start = procfs::stat(pid).map_or(0, |stat| stat.start);
        let control = AttachedPage::open(&page.here, user).map_err(|error| match error {
            PageError::Held(Some(rpd)) => failed(
                pid,
                format!("rpd (process {rpd}) is attached to it already"),
            ),
            PageError::Held(None) => failed(pid, "another rpd is attached to it already"),
            other => failed(pid, format!("{}: {other}", page.here.display())),
        })?;
        Ok(Target {
            pid,
            start,
            page,
            control,
            looked: Cell::new(Instant::now()),
        })
    }

    /// Whether the program that was attached to still runs: one that has become another has no such page.
    fn runs(&self) -> bool {
        if procfs::stat(self.pid).is_none_or(|stat| !stat.runs || stat.start != self.start) {
            return false;
        }
        if self.looked.get().elapsed() < LOOK_AT_MAP {
            return true;
        }
        self.looked.set(Instant::now());
        way(self.pid) == Way::Ours(self.page.clone())
    }

    /// Has the process begin a recording in a run's directory, as the process sees that.
    fn begin(&self, run: &Path) -> Result<(), Failure> {
        let path = run.as_os_str().as_bytes();
        if path.len() > LONGEST_TEXT {
            return Err(failed(
                self.pid,
                format!("{}: the path is too long", run.display()),
            ));
        }
        let control = &self.control.controller;
        control.set_text(path);
        if !control.request(Request::Attach, LONGEST_BEGIN, || self.runs()) {
            return Err(failed(
                self.pid,
                if self.runs() {
                    format!(
                        "it has not answered in {} s; it may be stopped",
                        LONGEST_BEGIN.as_secs()
                    )
                } else {
                    "it has ended".to_owned()
                },
            ));
        }
        control
            .outcome()
            .map_err(|problem| failed(self.pid, problem))
    }

    /// Ends the recording of the process.
    fn end(&self) {
        let control = &self.control.controller;
        if control.request(Request::Detach, LONGEST_END, || self.runs()) {
            return;
        }
        if self.runs() {
            eprintln!(
                "rpd: {NAME}: process {} has not answered in {} s; outputs are made of what is recorded by now",
                self.pid,
                LONGEST_END.as_secs()
            );
        } else {
            eprintln!("rpd: process {} has ended", self.pid);
        }
    }
}

/// Records the process of `attach` by the options of the plan. Returns the exit status.
pub(crate) fn record(plan: &Plan, attach: &Attach, environment: &Environment) -> Result<u8> {
    for warning in &plan.warnings {
        eprintln!("{}", environment.compat.warning(warning));
    }
    let pass = plan.passes.first().context("a plan has a pass")?;
    if way(attach.pid) == Way::Upstream {
        return upstream::record(pass.options.clone(), attach, environment);
    }
    let targets = targets(attach)?;
    if let Some((option, what)) = &attach.needs_sdk {
        return Err(Failure::failed(format!(
            "{option}: a program that was started with rpd idle is recorded without {what}; leave it out, or start the \
             program under rpd"
        ))
        .into());
    }
    let mut options = pass.options.clone();
    options.collector.provider = ProviderChoice::Direct;
    options.collector.disable_signal_handlers = true;
    if attach.scratch_is_included {
        options.collector.traces.scratch_memory = false;
        eprintln!(
            "rpd: {NAME}: scratch memory is left out: a program that was started with rpd idle is recorded without it"
        );
    }
    take_user(&targets)?;
    let signals = Signals::hold()?;
    let (mut run, inside) = run_directory(&options, environment, &targets)?;
    let begun = begin(&targets, &run, &inside, &options);
    if let Err(error) = begun {
        // Nothing was recorded, or nothing that is complete.
        for target in &targets {
            target
                .control
                .controller
                .request(Request::Detach, LONGEST_END, || target.runs());
        }
        drop(targets);
        run.take_for_ended();
        run.remove();
        return Err(error);
    }
    let pids: Vec<u32> = targets.iter().map(|target| target.pid).collect();
    announce(&pids, "prepared by rpd idle", attach);
    wait(|| targets.iter().any(Target::runs), attach, &signals);
    for target in &targets {
        target.end();
    }
    drop(targets);
    run.take_for_ended();
    let watch = signals.watch(run.path());
    let written = report::finish(&run, &options, None, None, &mut Namer::default(), None);
    watch.stop()?;
    Ok(from_complete(written?))
}

/// The processes to attach to, each locked for this rpd.
fn targets(attach: &Attach) -> Result<Vec<Target>, Failure> {
    let mut targets = Vec::new();
    let root = way(attach.pid);
    let refused = match root {
        Way::Ours(page) => {
            targets.push(Target::open(attach.pid, page)?);
            None
        }
        // It began to wait for ROCm's attach since it was looked at.
        Way::Upstream => Some("it has changed just now; attach again".to_owned()),
        Way::Refused(reason) => Some(reason.to_string()),
    };
    if attach.children {
        for pid in target::descendants(attach.pid) {
            if let Way::Ours(page) = way(pid) {
                match Target::open(pid, page) {
                    Ok(target) => targets.push(target),
                    Err(failure) if targets.is_empty() => return Err(failure),
                    Err(failure) => eprintln!("rpd: {failure}"),
                }
            }
        }
    }
    match refused {
        Some(problem) if targets.is_empty() => Err(failed(attach.pid, problem)),
        _ => Ok(targets),
    }
}

/// Goes on as the user of the processes, where this is root: they write to the run's directory, and what they write is
/// read with their user's rights only.
fn take_user(targets: &[Target]) -> Result<(), Failure> {
    let Some(first) = targets.first() else {
        return Ok(());
    };
    let Ok(found) = std::fs::metadata(format!("/proc/{}", first.pid)) else {
        return Err(failed(first.pid, target::Reason::Missing));
    };
    if found.uid() == geteuid().as_raw() {
        return Ok(());
    }
    // The group first: a user who is not root cannot change it.
    setegid(Gid::from_raw(found.gid()))
        .and_then(|()| seteuid(Uid::from_raw(found.uid())))
        .map_err(|error| {
            failed(
                first.pid,
                format!(
                    "it belongs to user {}, as whom rpd cannot act: {error}",
                    found.uid()
                ),
            )
        })?;
    eprintln!("rpd: acting as user {}, whose process it is", found.uid());
    Ok(())
}

/// Makes the run's directory where the processes can write to it. Returns it, and its path as the processes see it.
fn run_directory(
    options: &Options,
    environment: &Environment,
    targets: &[Target],
) -> Result<(RunDirectory, PathBuf)> {
    let run = RunDirectory::create(options, &environment.cwd)?;
    let own = std::fs::canonicalize(run.path())
        .with_context(|| format!("{} cannot be found again", run.path().display()))?;
    let Some(first) = targets.first() else {
        return Ok((run, own));
    };
    let same = |here: &Path, there: &Path| {
        let (here, there) = (
            std::fs::metadata(here).ok()?,
            std::fs::metadata(there).ok()?,
        );
        Some((here.dev(), here.ino()) == (there.dev(), there.ino()))
    };
    if same(&own, &seen_from_here(first.pid, &own)) == Some(true) {
        return Ok((run, own));
    }
    // The process sees other files, as in a container: what it records goes beside its control page.
    run.remove();
    let place = first.page.inside.parent().unwrap_or(Path::new("/"));
    let run =
        RunDirectory::create_in(&seen_from_here(first.pid, place), options).with_context(|| {
            failed(
                first.pid,
                "the directory of its control page cannot be used",
            )
        })?;
    let root = seen_from_here(first.pid, Path::new("/"));
    let below = run.path().strip_prefix(&root).unwrap_or(run.path());
    let inside = Path::new("/").join(below);
    Ok((run, inside))
}

/// Begins the recordings. The first process must be able to; others that cannot are named.
fn begin(targets: &[Target], run: &RunDirectory, inside: &Path, options: &Options) -> Result<()> {
    run.write(ATTACH_FILE, options.collector.to_text().as_bytes())?;
    for (number, target) in targets.iter().enumerate() {
        match target.begin(inside) {
            Ok(()) => {}
            Err(failure) if number == 0 => return Err(failure.into()),
            Err(failure) => eprintln!("rpd: {failure}"),
        }
    }
    Ok(())
}

/// Says which processes are recorded, in which way, and until when.
fn announce(pids: &[u32], way: &str, attach: &Attach) {
    let numbers: Vec<String> = pids.iter().map(u32::to_string).collect();
    let plural = if numbers.len() == 1 { "" } else { "es" };
    let until = match attach.duration {
        Some(duration) => format!("records for {} ms", duration.as_millis()),
        None => "press Enter or Ctrl-C to detach".to_owned(),
    };
    eprintln!(
        "rpd: attached to process{plural} {} ({way}); {until}",
        numbers.join(", ")
    );
}

/// Waits until the time is over, the user ends it, or no process runs any more.
fn wait(runs: impl Fn() -> bool, attach: &Attach, signals: &Signals) {
    let end = attach.duration.map(|duration| Instant::now() + duration);
    let stdin = std::io::stdin();
    // In the background of its terminal rpd has no keys: reading fails then, and does not stop rpd.
    let _ = SigSet::from_iter([Signal::SIGTTIN]).thread_block();
    // A duration needs no input, which may be that of a program in the same terminal.
    let mut input = attach.duration.is_none().then(|| stdin.as_fd());
    while runs() {
        let left = end.map_or(LOOK, |end| {
            end.saturating_duration_since(Instant::now()).min(LOOK)
        });
        if end.is_some_and(|end| Instant::now() >= end) || signals.interrupted().is_some() {
            return;
        }
        if signals.wait_with(input, left)
            && let Some(file) = input
        {
            match has_line(file) {
                Some(true) => return,
                Some(false) => {}
                // The end of the input, as of /dev/null, is not a key.
                None => input = None,
            }
        }
    }
}

/// Whether the input that is there has the end of a line; `None` at its end.
fn has_line(file: BorrowedFd<'_>) -> Option<bool> {
    let mut bytes = [0; 256];
    match nix::unistd::read(file, &mut bytes) {
        Ok(0) | Err(_) => None,
        Ok(count) => Some(bytes.iter().take(count).any(|byte| *byte == b'\n')),
    }
}
