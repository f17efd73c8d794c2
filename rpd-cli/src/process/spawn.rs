//! Starts the target, waits for its end, and handles signals meanwhile.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use nix::errno::Errno;
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawnp};
use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use rpd_core::text::os_text;

use super::environment::Changes;
use crate::exit_status::{NOT_EXECUTABLE, NOT_FOUND, SIGNALLED};
use crate::failure::Failure;

const FORWARDED: [Signal; 4] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGQUIT,
    Signal::SIGHUP,
];

/// End of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TargetEnd {
    Exited(u8),
    Signalled(i32),
}

impl TargetEnd {
    /// The exit status that a shell would report.
    pub(crate) fn status(self) -> u8 {
        match self {
            TargetEnd::Exited(status) => status,
            TargetEnd::Signalled(signal) => {
                u8::try_from(i32::from(SIGNALLED) + signal).unwrap_or(u8::MAX)
            }
        }
    }
}

/// Signals to rpd, which are blocked and read from a file descriptor from before the first start until rpd ends.
#[derive(Debug)]
pub(crate) struct Signals {
    file: SignalFd,
    /// The first signal that requests the end of the run.
    seen: Cell<Option<Signal>>,
    /// The signal mask that rpd was started with, which the target inherits.
    original: SigSet,
}

impl Signals {
    /// Blocks the signals that rpd passes on.
    pub(crate) fn hold() -> Result<Signals> {
        let mut set = SigSet::from_iter(FORWARDED);
        set.add(Signal::SIGCHLD);
        let original = set
            .thread_swap_mask(SigmaskHow::SIG_BLOCK)
            .context("cannot block signals")?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let file = SignalFd::with_flags(&set, flags).context("cannot receive signals")?;
        // Orphaned descendants of the target become rpd's children, so that rpd is notified of their exit.
        set_child_subreaper(true)
            .context("cannot become the parent of orphaned processes of the target")?;
        Ok(Signals {
            file,
            seen: Cell::new(None),
            original,
        })
    }

    /// The signal, if any, that was received so far and ends the run.
    pub(crate) fn interrupted(&self) -> Option<Signal> {
        while self.next().is_some() {}
        self.seen.get()
    }

    /// The next pending signal, and whether it was sent to rpd alone; a terminal's signals reach the whole process
    /// group, the target included.
    fn next(&self) -> Option<(Signal, bool)> {
        let info = self.file.read_signal().ok()??;
        let signal = Signal::try_from(i32::try_from(info.ssi_signo).ok()?).ok()?;
        if signal != Signal::SIGCHLD && self.seen.get().is_none() {
            self.seen.set(Some(signal));
        }
        Some((signal, info.ssi_code != libc::SI_KERNEL))
    }

    /// Waits until a signal can be read, or `input` can, at most `limit`. True when `input` can.
    pub(crate) fn wait_with(&self, input: Option<BorrowedFd<'_>>, limit: Duration) -> bool {
        use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
        use std::os::fd::AsFd;
        let files = std::iter::once(self.file.as_fd()).chain(input);
        let mut files: Vec<PollFd<'_>> = files
            .map(|file| PollFd::new(file, PollFlags::POLLIN))
            .collect();
        let limit = PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX);
        // After an interruption, the caller polls again.
        let _ = poll(&mut files, limit);
        files.get(1).and_then(PollFd::any).unwrap_or(false)
    }

    /// Waits until a signal can be read.
    fn wait(&self, limit: Option<Duration>) {
        use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
        use std::os::fd::AsFd;
        let timeout = limit.map_or(PollTimeout::NONE, |limit| {
            PollTimeout::try_from(limit).unwrap_or(PollTimeout::MAX)
        });
        // After an interruption, poll again.
        let _ = poll(
            &mut [PollFd::new(self.file.as_fd(), PollFlags::POLLIN)],
            timeout,
        );
    }

    /// Makes a signal end rpd with a message about `rpd recover`, until the watch is stopped.
    pub(crate) fn watch(self, run_directory: &Path) -> Watch {
        while self.next().is_some() {}
        let advice = format!(
            "rpd: interrupted; finish with: rpd recover {}",
            run_directory.display()
        );
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (give, taken) = mpsc::channel::<Signals>();
        let thread = std::thread::Builder::new().spawn(move || {
            let signals = taken.recv().ok()?;
            while !stopped.load(Ordering::Acquire) {
                signals.wait(None);
                match signals.next() {
                    Some((Signal::SIGCHLD, _)) | None => {}
                    Some((signal, _)) => {
                        eprintln!("{advice}");
                        rpd_core::storage::temporary::remove_all();
                        std::process::exit(i32::from(SIGNALLED) + signal as i32);
                    }
                }
            }
            Some(signals)
        });
        match thread {
            Ok(thread) => match give.send(self) {
                Ok(()) => Watch::Thread { stop, thread },
                Err(mpsc::SendError(signals)) => Watch::None(signals),
            },
            // Under a limit on threads or memory signals wait until the outputs are written.
            Err(_) => Watch::None(self),
        }
    }
}

/// Watch for a signal that ends rpd.
pub(crate) enum Watch {
    /// A thread waits for signals.
    Thread {
        stop: Arc<AtomicBool>,
        thread: JoinHandle<Option<Signals>>,
    },
    /// No thread could be made; signals are held as before.
    None(Signals),
}

impl Watch {
    /// Stops the thread. Signals are blocked again, and read from the returned value.
    pub(crate) fn stop(self) -> Result<Signals> {
        let (stop, thread) = match self {
            Watch::Thread { stop, thread } => (stop, thread),
            Watch::None(signals) => return Ok(signals),
        };
        stop.store(true, Ordering::Release);
        // Wakes the thread; the signal of a child's end has no other effect.
        kill(Pid::this(), Signal::SIGCHLD)
            .context("cannot wake the thread that watches for signals")?;
        thread
            .join()
            .ok()
            .flatten()
            .context("the thread that watches for signals has failed")
    }
}

fn c_string(text: &[u8]) -> Result<CString> {
    CString::new(text).context("the command holds a NUL byte")
}

/// Starts the target, whose arguments are escaped text, in this terminal and process group.
pub(crate) fn start(
    program: &Path,
    command: &[String],
    changes: &Changes,
    signals: &Signals,
) -> Result<Pid> {
    let files = PosixSpawnFileActions::init()?;
    start_with(program, command, changes, signals, &files)
}

/// Starts a program whose standard output goes to standard error, where the output of rpd itself is an answer.
pub(crate) fn start_beside(program: &Path, command: &[String], signals: &Signals) -> Result<Pid> {
    let mut files = PosixSpawnFileActions::init()?;
    files.add_dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO)?;
    start_with(program, command, &Changes::new(), signals, &files)
}

fn start_with(
    program: &Path,
    command: &[String],
    changes: &Changes,
    signals: &Signals,
    files: &PosixSpawnFileActions,
) -> Result<Pid> {
    let mut environment: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    for (name, value) in changes {
        match value {
            Some(value) => environment.insert((*name).into(), value.clone()),
            None => environment.remove(OsStr::new(name)),
        };
    }
    let environment: Vec<CString> = environment
        .into_iter()
        .map(|(name, value)| {
            let mut entry = name.into_vec();
            entry.push(b'=');
            entry.extend(value.as_bytes());
            c_string(&entry)
        })
        .collect::<Result<_>>()?;
    let arguments: Vec<CString> = command
        .iter()
        .map(|word| c_string(os_text::unescape(word).as_bytes()))
        .collect::<Result<_>>()?;

    let mut attributes = PosixSpawnAttr::init()?;
    attributes.set_flags(
        PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK | PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF,
    )?;
    // Signals are blocked in rpd while it waits; the target has those that rpd was started with.
    attributes.set_sigmask(&signals.original)?;
    // Rust programs ignore SIGPIPE; others expect the default.
    attributes.set_sigdefault(&SigSet::from_iter([Signal::SIGPIPE]))?;
    let file = c_string(program.as_os_str().as_bytes())?;
    posix_spawnp(
        &file,
        files,
        &attributes,
        &arguments,
        &environment,
    )
    .map_err(|error| {
        let name = program.display();
        let failure = match error {
            Errno::ENOENT if !program.exists() => {
                // The statuses of shells: 127 for a program that does not exist, 126 for one that cannot be executed.
                Failure::new(NOT_FOUND, format!("{name}: No such file"))
            }
            Errno::ENOENT => Failure::new(
                NOT_EXECUTABLE,
                format!("{name}: cannot be executed: its interpreter or loader does not exist"),
            ),
            Errno::ENOEXEC => Failure::new(
                NOT_EXECUTABLE,
                format!("{name}: cannot be executed: neither a program nor a script that names its interpreter"),
            ),
            other => Failure::new(
                NOT_EXECUTABLE,
                format!("{name}: cannot be executed: {}", other.desc()),
            ),
        };
        failure.into()
    })
}

/// Waits for the target and forwards signals that were sent to rpd alone.
pub(crate) fn wait(target: Pid, signals: &Signals) -> Result<TargetEnd> {
    loop {
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, status)) if pid == target => {
                    return Ok(TargetEnd::Exited(u8::try_from(status & 0xff).unwrap_or(1)));
                }
                Ok(WaitStatus::Signaled(pid, signal, _)) if pid == target => {
                    return Ok(TargetEnd::Signalled(signal as i32));
                }
                Ok(WaitStatus::StillAlive) => break,
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(error).context("cannot wait for the target"),
            }
        }
        signals.wait(None);
        while let Some((signal, to_rpd)) = signals.next() {
            if signal != Signal::SIGCHLD && to_rpd {
                // The target may have exited already.
                let _ = kill(target, signal);
            }
        }
    }
}

/// Waits for the remaining processes of the target, up to a limit. True when none is left.
pub(crate) fn grace(limit: Duration, signals: &Signals, left: &mut dyn FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    loop {
        while let Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) =
            waitpid(None, Some(WaitPidFlag::WNOHANG))
        {}
        if !left() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        signals.wait(Some(Duration::from_millis(20)));
        while let Some((signal, _)) = signals.next() {
            if signal != Signal::SIGCHLD {
                return false;
            }
        }
    }
}
