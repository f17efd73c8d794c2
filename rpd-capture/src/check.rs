//! Checks a capture: every chunk and code object against its hash, and that all data are there.

use std::path::PathBuf;

use rpd_spool::regular_file::{self, LARGEST_CODE, Links};

use crate::pack::PackReader;
use crate::{BLOBS, CODE, Capture, CaptureError};

/// Something that is wrong with a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Path of the damaged file.
    pub path: PathBuf,
    /// Description of the problem, with its place.
    pub text: String,
}

/// Problems in the data of a capture.
///
/// # Errors
/// When the database cannot be read.
pub fn check(capture: &Capture) -> Result<Vec<Problem>, CaptureError> {
    let mut problems = Vec::new();
    let database = capture.path().join(crate::DATABASE);
    // Captures of earlier versions have no hash of their database.
    let expected = &capture.manifest().database;
    if !expected.is_empty() && crate::database::hash(&database)? != *expected {
        problems.push(Problem {
            text: format!(
                "{} is damaged: it does not have the content that was written",
                database.display()
            ),
            path: database,
        });
    }
    let directory = capture.path().join(BLOBS);
    let mut reader = PackReader::new(&directory);
    let mut bytes = Vec::new();
    // All problems are reported: one damaged chunk says nothing of the others.
    for (hash, chunk) in capture.all_chunks()? {
        bytes.clear();
        if let Err(error) = reader.read(&hash, &chunk, &mut bytes) {
            problems.push(Problem {
                path: directory.join(crate::pack::name(chunk.pack)),
                text: error.to_string(),
            });
        }
    }
    for hash in capture.code_hashes()? {
        let name = crate::pack::hex(&hash);
        let path = capture.path().join(CODE).join(format!("{name}.co"));
        let shown = path.display();
        let text = match regular_file::read(&path, Links::Follow, LARGEST_CODE) {
            Ok(bytes) if crate::pack::hash_bytes(&bytes)[..] == hash[..] => continue,
            Ok(_) => format!("{shown} is damaged: it does not have the content that was stored"),
            Err(error) => format!("{shown}: {error}"),
        };
        problems.push(Problem { path, text });
    }
    // Sums are compared as well, since a chunk can be whole and not belong to the data.
    for (blob, size, parts, sum) in capture.blob_sums()? {
        if sum != size {
            problems.push(Problem {
                path: capture.path().join(crate::DATABASE),
                text: format!(
                    "{} is damaged: data {blob} have {sum} bytes in {parts} chunks, {size} should be there",
                    capture.path().join(crate::DATABASE).display()
                ),
            });
        }
    }
    Ok(problems)
}
