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

/// Bytes of a text that are kept until they are written.
const KEPT: usize = 4 << 20;

/// A standard stream of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error. When it is closed, texts are dropped.
    Stderr,
}

/// A text that is written to a stream at once, or, where it is long, without anything of other processes in it.
pub(super) struct OnePiece {
    stream: Stream,
    text: String,
    /// The lock that keeps others from writing, once something is written.
    turn: Option<File>,
}

impl OnePiece {
    /// A text without letters yet.
    pub(super) fn new(stream: Stream) -> OnePiece {
        OnePiece {
            stream,
            text: String::new(),
            turn: None,
        }
    }

    /// Appends whole lines.
    pub(super) fn add(&mut self, lines: &str) -> Result<()> {
        self.text.push_str(lines);
        if self.text.len() < KEPT {
            Ok(())
        } else {
            self.write()
        }
    }

    /// Writes what is left.
    pub(super) fn finish(mut self) -> Result<()> {
        self.write()
    }

    fn write(&mut self) -> Result<()> {
        if self.turn.is_none() {
            self.turn = turn(match self.stream {
                Stream::Stdout => 1,
                Stream::Stderr => 2,
            });
        }
        let text = std::mem::take(&mut self.text);
        match self.stream {
            Stream::Stdout => crate::print(&text).map(drop),
            Stream::Stderr => {
                let text = rpd_core::text::foreign::shown_lines(&text);
                drop(io::stderr().write_all(text.as_bytes()));
                Ok(())
            }
        }
    }
}

/// Writes a text to standard error, which may be closed.
pub(super) fn to_stderr(text: &str) {
    let mut piece = OnePiece::new(Stream::Stderr);
    // Writing there has no errors.
    drop(piece.add(text).and_then(|()| piece.finish()));
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
