//! Texts on the standard streams that no other process of a job tears apart.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::{Duration, Instant};

use anyhow::Result;

/// Longest wait for other processes that write to the same stream.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Pause between two attempts to be the one that writes.
const PAUSE: Duration = Duration::from_millis(5);

/// Prints to standard output, as [`crate::print`] does.
pub(super) fn to_stdout(text: &str) -> Result<()> {
    let turn = turn(1);
    crate::print(text)?;
    drop(turn);
    Ok(())
}

/// Prints to standard error, which may be closed.
pub(super) fn to_stderr(text: &str) {
    let turn = turn(2);
    let text = rpd_core::foreign::shown_lines(text);
    // Without standard error there is nobody to tell.
    drop(io::stderr().write_all(text.as_bytes()));
    drop(turn);
}

/// A lock on the file, pipe or terminal behind a standard stream: a text that is longer than a pipe takes at once is written in
/// several steps, between which other processes could write. `None` where there is no such lock to be had, or not in time; then the
/// text is written without.
fn turn(descriptor: i32) -> Option<File> {
    // A descriptor of its own: processes that inherited one share its locks.
    let path = format!("/proc/self/fd/{descriptor}");
    let stream = OpenOptions::new()
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC)
        .open(path)
        .ok()?;
    let end = Instant::now() + LONGEST_WAIT;
    loop {
        match stream.try_lock() {
            Ok(()) => return Some(stream),
            Err(TryLockError::WouldBlock) if Instant::now() < end => std::thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => return None,
        }
    }
}
