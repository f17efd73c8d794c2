//! The recorded GPU calls of a program with their data: format, writer and reader.
//!
//! A capture is a directory:
//!
//! | path | content |
//! |---|---|
//! | `capture.json` | what was captured, where and how ([`Manifest`]) |
//! | `capture.sqlite` | calls, objects, memory, kernels, and which data belong to them ([`database`]) |
//! | `blobs/` | data: chunks by hash, each stored once ([`pack`]) |
//! | `code/` | code objects, by hash |
//! | `report.txt` | what a replay lacks |
//!
//! [`Recorder`] makes it from the spool of a process, [`Capture`] reads it. Nothing of a capture is believed: sizes and
//! references are checked, and data against their hash.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod bounds;
mod capsule;
mod check;
pub mod database;
mod dependencies;
mod describe;
mod diff;
mod effects;
mod error;
mod excerpt;
mod export;
mod files;
mod foreign;
mod geometry;
mod graphs;
mod journal;
mod live;
mod manifest;
mod markers;
mod merge;
mod objects;
pub mod pack;
mod place;
mod read;
mod record;
mod staging;
mod writer;

pub use bounds::span;
pub use capsule::{pack_capsule, unpack_capsule};
pub use check::{Problem, check};
pub use describe::describe;
pub use diff::{Difference, diff};
pub use error::{CaptureError, Class};
pub use excerpt::{ExcerptSummary, ExcerptWriter, code_objects, variables};
pub use export::export;
pub use foreign::{ForeignDatabase, foreign};
pub use geometry::{geometry, is_cooperative, stream_of_config};
pub use graphs::{GraphKernel, KernelLaunch, StreamCaptures, launch_alone};
pub use live::LiveReader;
pub use manifest::{ExcerptOf, Manifest, VERSION};
pub use markers::{Marker, regions};
pub use place::{move_files, remove_files};
pub use read::{Call, Capture, CodeRow, Data, KernelRow, Memory};
pub use record::{Recorder, Summary};
pub use staging::is_taken;

/// Name of the database in a capture.
pub const DATABASE: &str = "capture.sqlite";
/// Name of the description in a capture.
pub const MANIFEST: &str = "capture.json";
/// Name of the file that says how a capture that is not complete is made.
pub const UNFINISHED: &str = ".unfinished.json";
/// Name of the directory with data.
pub const BLOBS: &str = "blobs";
/// Name of the directory with code objects.
pub const CODE: &str = "code";
/// The directory of the capture that `path` means: itself, or that of the database it leads to.
pub fn resolve(path: &std::path::Path) -> std::path::PathBuf {
    if path.is_dir() {
        return path.to_owned();
    }
    match std::fs::canonicalize(path) {
        Ok(file) if file.file_name().is_some_and(|name| name == DATABASE) => file
            .parent()
            .map_or(file.clone(), std::path::Path::to_owned),
        _ => path.to_owned(),
    }
}

/// Name of the report.
pub const REPORT: &str = "report.txt";
