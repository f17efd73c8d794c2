//! Reads the segments of a process that may still run, again and again, each record once.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rpd_spool::format::{MAGIC, RecordHeader, SegmentHeader};
use rpd_spool::reader::{MAX_RECORD, Record};
use rpd_spool::regular_file::{self, Links};
use zerocopy::FromBytes as _;

const HEAD: u64 = size_of::<SegmentHeader>() as u64;

/// Read position in a stream.
#[derive(Debug, Default)]
struct Position {
    segment: u32,
    /// Bytes of records of the segment that were read.
    read: u64,
    file: Option<File>,
}

/// Reads the records of a process' directory as they are written. Damage ends a stream without a message: it
/// is reported when the complete recording is read.
#[derive(Debug)]
pub struct LiveReader {
    directory: PathBuf,
    streams: BTreeMap<String, Position>,
    buffer: Vec<u8>,
}

impl LiveReader {
    /// Reads from the directory of a process.
    pub fn new(directory: &Path) -> LiveReader {
        LiveReader {
            directory: directory.to_owned(),
            streams: BTreeMap::new(),
            buffer: Vec::new(),
        }
    }

    /// Gives every record that was written since the last call to `take`.
    ///
    /// # Errors
    /// The errors of `take`, and when the directory cannot be listed.
    pub fn poll<E: From<io::Error>>(
        &mut self,
        mut take: impl FnMut(&Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        for entry in std::fs::read_dir(&self.directory)? {
            let name = entry?.file_name();
            let stream = name
                .to_str()
                .and_then(|name| name.strip_suffix("-0.seg"))
                .filter(|stream| *stream != "meta");
            if let Some(stream) = stream
                && !self.streams.contains_key(stream)
            {
                self.streams.insert(stream.to_owned(), Position::default());
            }
        }
        for (name, position) in &mut self.streams {
            loop {
                let read = read_segment(&self.directory, name, position, &mut self.buffer)?;
                if !read {
                    break;
                }
                let mut rest = &self.buffer[..];
                while let Ok((header, _)) = RecordHeader::read_from_prefix(rest) {
                    let len = header.len as usize;
                    if len < 8 || !len.is_multiple_of(8) || len > MAX_RECORD || len > rest.len() {
                        break;
                    }
                    let bytes = &rest[..len];
                    take(&Record { header, bytes })?;
                    rest = &rest[len..];
                }
                // The rest is damaged and is not read again.
            }
        }
        Ok(())
    }
}

/// Reads new records of a stream's current segment, or of the next. False when there is none.
fn read_segment(
    directory: &Path,
    name: &str,
    position: &mut Position,
    buffer: &mut Vec<u8>,
) -> io::Result<bool> {
    let open = |segment: u32| {
        let path = directory.join(format!("{name}-{segment}.seg"));
        Some(regular_file::open(&path, Links::Refuse).ok()?.0)
    };
    // Before the committed length of the current segment is read: nothing is added to it once there is another.
    let next = open(position.segment + 1);
    if position.file.is_none() {
        position.file = open(position.segment);
    }
    let Some(file) = &position.file else {
        return Ok(false);
    };
    let mut head = [0; HEAD as usize];
    // The header is written after the file is made: without the magic nothing is committed.
    let committed = match file.read_exact_at(&mut head, 0) {
        Ok(()) => SegmentHeader::read_from_bytes(&head)
            .ok()
            .filter(|head| head.magic == MAGIC)
            .map_or(0, |head| head.committed),
        Err(_) => 0,
    };
    let size = file.metadata()?.len();
    // A file that was cut has fewer bytes than its header says.
    let committed = committed.min(size.saturating_sub(HEAD));
    if committed > position.read {
        buffer.resize((committed - position.read) as usize, 0);
        file.read_exact_at(buffer, HEAD + position.read)?;
        position.read = committed;
        return Ok(true);
    }
    if let Some(next) = next {
        *position = Position {
            segment: position.segment + 1,
            read: 0,
            file: Some(next),
        };
        buffer.clear();
        return Ok(true);
    }
    Ok(false)
}
