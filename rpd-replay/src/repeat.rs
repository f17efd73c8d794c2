//! Results of one replay, kept in a file with which another replay of the same capture is compared.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};

use rpd_spool::capture::DataHeader;
use rpd_spool::regular_file::{self, Links};

use crate::error::ReplayError;

/// Use of the file of results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Repeat {
    /// The results of this replay are written to the file, and not compared.
    Keep(PathBuf),
    /// The results of another replay are in the file, and this one is compared with them.
    Compare(PathBuf),
}

/// Bytes before each result: the call after which it is complete, its address and size.
const HEAD: usize = 24;

/// The head of a result: number of the call after which it is complete, address, size.
fn head(seq: u64, data: &DataHeader) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    for (bytes, value) in head.chunks_exact_mut(8).zip([seq, data.address, data.size]) {
        bytes.copy_from_slice(&value.to_le_bytes());
    }
    head
}

/// An open file of results.
pub(crate) enum Results {
    Write(PathBuf, BufWriter<File>),
    Read(PathBuf, BufReader<File>),
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> ReplayError {
    let shown = path.display().to_string();
    move |error| ReplayError::failed(format!("the results of a replay, {shown}: {error}"))
}

impl Results {
    #[expect(clippy::disallowed_methods, reason = "a file for another rpd")]
    pub(crate) fn open(repeat: &Repeat) -> Result<Results, ReplayError> {
        Ok(match repeat {
            Repeat::Keep(path) => {
                let file = File::create(path).map_err(failed(path))?;
                Results::Write(path.clone(), BufWriter::new(file))
            }
            Repeat::Compare(path) => {
                let opened = regular_file::open(path, Links::Follow);
                let (file, _) = opened.map_err(|error| failed(path)(error.into()))?;
                Results::Read(path.clone(), BufReader::new(file))
            }
        })
    }

    /// Writes a result, or reads that of the other replay.
    pub(crate) fn exchange(
        &mut self,
        seq: u64,
        data: &DataHeader,
        bytes: &[u8],
    ) -> Result<Option<Vec<u8>>, ReplayError> {
        let head = head(seq, data);
        match self {
            Results::Write(path, file) => {
                let written = file.write_all(&head).and_then(|()| file.write_all(bytes));
                written.map_err(failed(path))?;
                Ok(None)
            }
            Results::Read(path, file) => {
                let mut found = [0; HEAD];
                file.read_exact(&mut found).map_err(failed(path))?;
                if found != head {
                    return Err(ReplayError::failed(format!(
                        "{}: the other replay has another result at call {seq}",
                        path.display()
                    )));
                }
                let mut other = vec![0; bytes.len()];
                file.read_exact(&mut other).map_err(failed(path))?;
                Ok(Some(other))
            }
        }
    }

    /// Writes buffered results out, after the last one.
    pub(crate) fn finish(self) -> Result<(), ReplayError> {
        match self {
            Results::Write(path, mut file) => file.flush().map_err(failed(&path)),
            Results::Read(..) => Ok(()),
        }
    }
}
