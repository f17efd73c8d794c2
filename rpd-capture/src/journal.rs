//! What a recorder has taken from the staging file, as lines of text. From it another rpd finishes a capture whose own was killed:
//! the staging file does not have these data any more.
//!
//! | line | |
//! |---|---|
//! | `chunk HASH PACK OFFSET SIZE STORED CODEC STAGED` | a chunk is stored; STAGED is 1 where it remains in the staging file |
//! | `data OFFSET SIZE KEPT HASH...` | the data at OFFSET of the staging file consist of these chunks |
//! | `stopped REASON` | data that are not listed before are lost |

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use rpd_spool::regular_file::{self, FileError, Links};

use crate::CaptureError;
use crate::pack::{Chunk, Codec, Hash, hex};

/// Name of the file in the directory of a capture that is not finished.
const NAME: &str = ".taken";
/// Longest file that is read, bytes.
const LONGEST: u64 = 4 << 30;

/// Data that were taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Offset of the data in the staging file.
    pub(crate) offset: u64,
    pub(crate) size: u64,
    /// Whether their content is kept.
    pub(crate) kept: bool,
    pub(crate) parts: Vec<Hash>,
}

/// Content of a journal.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    /// Chunks, and whether each remains in the staging file.
    pub(crate) chunks: Vec<(Hash, Chunk, bool)>,
    /// Data in the order in which they were taken.
    pub(crate) data: Vec<Taken>,
    /// Reason why nothing was taken after the entries; `None` where taking went on.
    pub(crate) stopped: Option<String>,
}

/// A journal that is written.
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Opens the journal of a capture for adding to it.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) fn open(capture: &Path) -> Result<Journal, CaptureError> {
        let path = capture.join(NAME);
        let file = File::options().append(true).create(true).open(&path);
        let file = file.map_err(CaptureError::io(&path))?;
        Ok(Journal { path, file })
    }

    /// Adds chunks, and the data that were taken last.
    ///
    /// # Errors
    /// When there is no space for them.
    pub(crate) fn add(
        &mut self,
        chunks: &[(Hash, Chunk, bool)],
        taken: Option<&Taken>,
    ) -> Result<(), CaptureError> {
        let mut lines = String::new();
        for (hash, chunk, is_staged) in chunks {
            lines += &format!(
                "chunk {} {} {} {} {} {} {}\n",
                hex(hash),
                chunk.pack,
                chunk.offset,
                chunk.size,
                chunk.stored,
                chunk.codec as u8,
                u8::from(*is_staged)
            );
        }
        if let Some(taken) = taken {
            let Taken { offset, size, .. } = taken;
            lines += &format!("data {offset} {size} {}", u8::from(taken.kept));
            for part in &taken.parts {
                lines.push(' ');
                lines += &hex(part);
            }
            lines.push('\n');
        }
        let written = self.file.write_all(lines.as_bytes());
        written.map_err(CaptureError::io(&self.path))
    }

    /// Notes that nothing more is taken. False when there is no space for that.
    pub(crate) fn stop(&mut self, reason: &str) -> bool {
        let reason = reason.replace('\n', " ");
        // An incomplete line may stand before.
        let line = format!("\nstopped {reason}\n");
        self.file.write_all(line.as_bytes()).is_ok()
    }

    /// Removes it: the capture is complete.
    pub(crate) fn remove(self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Reads the journal of a capture. The last line may be incomplete; with it the rest is left out.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn read(capture: &Path) -> Result<Entries, CaptureError> {
    let path = capture.join(NAME);
    let text = match regular_file::read(&path, Links::Refuse, LONGEST) {
        // Killed before anything was taken.
        Err(FileError::Missing) => return Ok(Entries::default()),
        Err(FileError::TooLarge { .. }) => {
            return Err(CaptureError::damaged(&path, "it is too long"));
        }
        other => other.map_err(|error| CaptureError::io(&path)(error.into()))?,
    };
    let mut entries = Entries::default();
    let mut is_whole = true;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let line = line
            .strip_suffix(b"\n")
            .and_then(|line| str::from_utf8(line).ok());
        let stopped = line.and_then(|line| line.strip_prefix("stopped "));
        if let Some(reason) = stopped {
            entries.stopped = Some(reason.to_owned());
        } else if is_whole {
            let found = line.and_then(|line| entry(line, &mut entries));
            is_whole = found.is_some();
        }
    }
    Ok(entries)
}

fn entry(line: &str, entries: &mut Entries) -> Option<()> {
    let mut words = line.split(' ');
    match words.next()? {
        "chunk" => {
            let hash = hash(words.next()?)?;
            let mut number = || words.next()?.parse::<u64>().ok();
            let chunk = Chunk {
                pack: u32::try_from(number()?).ok()?,
                offset: number()?,
                size: u32::try_from(number()?).ok()?,
                stored: u32::try_from(number()?).ok()?,
                codec: Codec::from_number(i64::try_from(number()?).ok()?)?,
            };
            entries.chunks.push((hash, chunk, number()? == 1));
        }
        "data" => {
            let mut number = || words.next()?.parse::<u64>().ok();
            let (offset, size, kept) = (number()?, number()?, number()? == 1);
            let parts = words.map(hash).collect::<Option<Vec<Hash>>>()?;
            entries.data.push(Taken {
                offset,
                size,
                kept,
                parts,
            });
        }
        _ => return None,
    }
    Some(())
}

fn hash(text: &str) -> Option<Hash> {
    let mut hash = Hash::default();
    if text.len() != 2 * hash.len() || !text.is_ascii() {
        return None;
    }
    for (byte, at) in hash.iter_mut().zip((0..text.len()).step_by(2)) {
        *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journal_is_read_up_to_an_incomplete_line() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut journal = Journal::open(directory.path()).expect("a journal");
        let chunk = Chunk {
            pack: 3,
            offset: 56,
            size: 1 << 20,
            stored: 77,
            codec: Codec::Zstd,
        };
        let taken = Taken {
            offset: 640,
            size: (1 << 20) + 1,
            kept: true,
            parts: vec![[0xab; 32], [1; 32]],
        };
        let chunks = [([0xab; 32], chunk, false), ([1; 32], chunk, true)];
        journal.add(&chunks, Some(&taken)).expect("written");
        journal.add(&[], Some(&taken)).expect("written");
        let path = directory.path().join(NAME);
        let text = std::fs::read(&path).expect("text");
        std::fs::write(&path, &text[..text.len() - 1]).expect("cut");
        let found = read(directory.path()).expect("read");
        assert_eq!(found.chunks, chunks);
        assert_eq!(found.data, [taken]);
    }
}
