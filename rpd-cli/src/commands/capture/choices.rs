//! Values of the options of `rpd capture`.

use clap::ValueEnum;

/// Which host data is captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum DataChoice {
    /// What calls read and write
    Full,
    /// What calls read
    Inputs,
    /// Nothing: the capture can be looked at, not replayed
    None,
}

/// Which results of calls are captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputsChoice {
    /// Hash of the results, which a replay is compared with
    Hash,
    /// Hash and content of the results, so that a replay can show what differs
    Full,
    /// Nothing
    None,
}

/// Which host-visible memory is taken before launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum MemoryChoice {
    /// What the arguments of the launch point to
    Assisted,
    /// All pinned, registered and managed memory that has changed
    Snapshot,
    /// All such memory that has changed, page by page: only pages that were written are read
    Pageguard,
}

/// Content that is kept for asynchronous copies from pinned memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum PinnedChoice {
    /// The content at the call
    Call,
    /// The content that the device read, which is copied back after each copy
    Exact,
}

/// A level of zstd; none: not compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Level(pub(super) Option<i32>);

pub(super) fn level(text: &str) -> Result<Level, String> {
    match text {
        "none" => Ok(Level(None)),
        "zstd" => Ok(Level(Some(1))),
        other => other
            .strip_prefix("zstd:")
            .and_then(|level| level.parse().ok())
            .filter(|level| (1..=19).contains(level))
            .map(|level| Level(Some(level)))
            .ok_or_else(|| "expected zstd, zstd:1 to zstd:19, or none".to_owned()),
    }
}
