//! Runs rpd for a call of a tool.

use std::ffi::OsString;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Greatest size of an answer, and of messages, in bytes.
const LARGEST: u64 = 64 << 20;
/// Time between two looks at the child.
const PAUSE: Duration = Duration::from_millis(5);
/// Time that the child has to end its program and to write what was recorded.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a child wrote, and its end.
pub(super) struct Done {
    pub(super) status: ExitStatus,
    pub(super) output: Vec<u8>,
    pub(super) messages: String,
    /// Whether its time was over.
    pub(super) is_late: bool,
}

/// Runs rpd with these words until it ends, `cancel` is set or the time is over.
pub(super) fn run(
    words: &[OsString],
    directory: Option<&std::path::Path>,
    cancel: &AtomicBool,
    limit: Duration,
) -> std::io::Result<Done> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(words).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(directory) = directory {
        command.current_dir(directory);
    }
    let mut child = command.spawn()?;
    let output = child.stdout.take().map(collect);
    let messages = child.stderr.take().map(collect);
    let end = Instant::now() + limit;
    let mut is_late = false;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        is_late = Instant::now() >= end;
        if is_late || cancel.load(Ordering::Acquire) {
            break stop(&mut child)?;
        }
        std::thread::sleep(PAUSE);
    };
    let taken = |thread: Option<JoinHandle<Vec<u8>>>| {
        thread
            .and_then(|thread| thread.join().ok())
            .unwrap_or_default()
    };
    Ok(Done {
        status,
        output: taken(output),
        messages: String::from_utf8_lossy(&taken(messages)).into_owned(),
        is_late,
    })
}

/// Reads a pipe to its end; keeps what is not beyond the greatest size.
fn collect(mut pipe: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut text = Vec::new();
        // What cannot be read is missed in the answer, whose end then is not that of an object.
        let _ = (&mut pipe).take(LARGEST).read_to_end(&mut text);
        let _ = std::io::copy(&mut pipe, &mut std::io::sink());
        text
    })
}

/// Ends the child, and with it the program that it runs.
fn stop(child: &mut Child) -> std::io::Result<ExitStatus> {
    if let Ok(id) = i32::try_from(child.id()) {
        // It may have ended meanwhile.
        let _ = kill(Pid::from_raw(id), Signal::SIGTERM);
    }
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        std::thread::sleep(PAUSE);
    }
    child.kill()?;
    child.wait()
}
