//! `capture.json`: what was captured, where and how.

use std::collections::BTreeMap;
use std::path::Path;

use rpd_spool::regular_file::{self, FileError, Links};
use serde::{Deserialize, Serialize};

use crate::{CaptureError, DATABASE, MANIFEST, UNFINISHED};

/// Version of the format. Readers refuse newer ones.
pub const VERSION: u32 = 1;

/// Longest description that is read, bytes.
const LONGEST: u64 = 16 << 20;

/// Description of a capture: program, machine, options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Manifest {
    /// Version of the format.
    pub format: u32,
    /// Version of the rpd that made it.
    pub rpd: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Working directory of the program.
    pub directory: String,
    /// Process id of the program.
    pub pid: u32,
    /// Name of the machine.
    pub host: String,
    /// Targets of the GPUs of the machine, in the order of their numbers.
    pub devices: Vec<String>,
    /// The program ran on the simulated GPU.
    pub simulated: bool,
    /// Time of the capture, seconds since 1970.
    pub time: u64,
    /// Variables of the environment that the selection keeps.
    pub environment: BTreeMap<String, String>,
    /// Options of the capture, as words.
    pub options: BTreeMap<String, String>,
    /// Whether recording ended in good order; otherwise the program was killed, or ended in a way that runs no
    /// handlers.
    pub clean: bool,
    /// Reason why the capture ended before the program; empty when it did not.
    pub ended: String,
    /// End of the program: its exit status, or 128 and the number of the signal.
    pub status: Option<i32>,
    /// Number of captured calls.
    pub calls: u64,
    /// Number of the last call; 0: as many as there are calls.
    pub last: u64,
    /// The calls that this is an excerpt of.
    pub excerpt: Option<ExcerptOf>,
    /// BLAKE3 of the database, in hexadecimal digits; empty: not known.
    pub database: String,
    /// Bytes of all data that calls read and wrote, each time counted.
    pub data: u64,
    /// Bytes of different data.
    pub distinct: u64,
    /// Bytes that the different data take in the packs.
    pub stored: u64,
    /// Nanoseconds that calls of the program waited until data were taken, and how many waited.
    pub stalled: (u64, u64),
}

/// Source of an excerpt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct ExcerptOf {
    /// The calls that it is about: first and last.
    pub calls: (u64, u64),
    /// Calls of the whole capture.
    pub all: u64,
    /// The launch that it is about, as `NAME#N` of the whole capture.
    pub launch: Option<String>,
}

impl Manifest {
    /// Number of the last call.
    pub fn last_call(&self) -> u64 {
        match self.last {
            0 => self.calls,
            last => last,
        }
    }

    /// Reads the description of a capture.
    ///
    /// # Errors
    /// When there is none, or it is not understood or of a newer version.
    pub fn read(capture: &Path) -> Result<Manifest, CaptureError> {
        let path = capture.join(MANIFEST);
        let text = match regular_file::read(&path, Links::Follow, LONGEST) {
            Ok(text) => text,
            Err(error @ FileError::TooLarge { .. }) => {
                return Err(CaptureError::damaged(&path, error.to_string()));
            }
            Err(error) => {
                let reason = if capture.join(UNFINISHED).is_file() {
                    format!(
                        "its rpd runs or was killed; then `rpd recover {}` makes the capture",
                        capture.display()
                    )
                } else {
                    format!("{MANIFEST}: {error}")
                };
                return Err(CaptureError::NoCapture {
                    path: capture.to_owned(),
                    reason,
                });
            }
        };
        // The version is read by itself: a description of a later version may have other fields.
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let Format { format } = serde_json::from_slice(&text)
            .map_err(|error| CaptureError::damaged(&path, error.to_string()))?;
        if format > VERSION || format == 0 {
            return Err(CaptureError::Newer {
                path,
                found: format,
                known: VERSION,
            });
        }
        serde_json::from_slice(&text)
            .map_err(|error| CaptureError::damaged(&path, error.to_string()))
    }

    /// Checks that rpd has written the description of `capture`: other programs may have files of this name.
    ///
    /// # Errors
    /// When it was not.
    pub fn check_origin(&self, capture: &Path) -> Result<(), CaptureError> {
        if self.rpd.is_empty() || !capture.join(DATABASE).is_file() {
            Err(CaptureError::NoCapture {
                path: capture.to_owned(),
                reason: format!("its {MANIFEST} is not of rpd, or {DATABASE} is missing"),
            })
        } else {
            Ok(())
        }
    }

    /// Writes it, under its name when it is complete.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, capture: &Path) -> Result<(), CaptureError> {
        let path = capture.join(MANIFEST);
        let fresh = capture.join(format!(".{MANIFEST}"));
        let mut text = serde_json::to_vec_pretty(self).unwrap_or_default();
        text.push(b'\n');
        crate::files::write(&fresh, &text)?;
        std::fs::rename(&fresh, &path).map_err(CaptureError::io(&path))
    }
}
