//! Reads the recording of a process while it is written, each record once.
//!
//! Nothing in the recording changes, and nothing is kept for each record. Segments that the writer removes before they are
//! read are not seen.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use zerocopy::FromBytes as _;

use super::format::record::RecordKind;
use super::format::{CallRecord, RecordHeader};
use super::live::{self, HEAD};
use super::reader::ProcessSpool;
use super::removed::records;

/// Calls that have not returned and are looked at again; more are handed out without an end.
const MOST_OPEN: usize = 4096;

/// Bytes of a segment that are read at once.
const CHUNK: u64 = 1 << 20;

/// In place of a number of bytes: all of a segment that gets no more records.
const COMPLETE: u64 = u64::MAX;

/// The place of a call that had not returned.
#[derive(Debug)]
struct OpenCall {
    file: Arc<File>,
    offset: u64,
    tid: u32,
}

/// The places up to which a recording was read.
#[derive(Debug, Default)]
pub struct Follower {
    /// Bytes of records by number of stream and of segment.
    read: HashMap<(u32, u32), u64>,
    open: Vec<OpenCall>,
}

impl Follower {
    /// Hands out the records of all streams that are new since the last time, each with the id of the thread that wrote it, and
    /// calls when they have returned. Those of the meta stream come first.
    ///
    /// # Errors
    /// When the directory cannot be listed. Segments that cannot be read are left out.
    pub fn read(
        &mut self,
        directory: &Path,
        mut take: impl FnMut(RecordHeader, &[u8], u32),
    ) -> io::Result<()> {
        let spool = ProcessSpool::open(directory)?;
        let mut open = std::mem::take(&mut self.open);
        open.retain(|call| {
            let record = live::record_at(&call.file, call.offset);
            let Ok(Some(record)) = record else {
                return false;
            };
            let is_open = has_no_end(&record);
            if !is_open && let Ok((header, _)) = RecordHeader::read_from_prefix(&record) {
                take(header, &record, call.tid);
            }
            is_open
        });
        let mut read = HashMap::new();
        for stream in &spool.streams {
            let last = stream.segments().last().map(|segment| segment.number);
            for segment in stream.segments() {
                let key = (stream.id, segment.number);
                let from = self.read.get(&key).copied().unwrap_or(0);
                if from == COMPLETE {
                    read.insert(key, COMPLETE);
                    continue;
                }
                let end = self.segment(&segment.path, from, stream.tid, &mut open, &mut take);
                // One that another follows gets no more records.
                let is_complete = last != Some(segment.number);
                let end = if is_complete {
                    COMPLETE
                } else {
                    end.unwrap_or(from)
                };
                read.insert(key, end);
            }
        }
        self.read = read;
        self.open = open;
        Ok(())
    }

    /// Hands out the records of a segment behind the first `from` bytes; returns where it stopped.
    fn segment(
        &self,
        path: &Path,
        from: u64,
        tid: u32,
        open: &mut Vec<OpenCall>,
        take: &mut impl FnMut(RecordHeader, &[u8], u32),
    ) -> io::Result<u64> {
        let Some((file, head, size)) = live::open(path, false)? else {
            return Ok(from);
        };
        let end = head.committed.min(size - HEAD as u64);
        let file = Arc::new(file);
        let mut at = from;
        while at < end {
            let mut bytes = vec![0; (end - at).min(CHUNK) as usize];
            file.read_exact_at(&mut bytes, HEAD as u64 + at)?;
            let begin = at;
            for (header, record) in records(&bytes) {
                let is_call = header.tag == RecordKind::Call.tag();
                if is_call && has_no_end(record) && open.len() < MOST_OPEN {
                    open.push(OpenCall {
                        file: Arc::clone(&file),
                        offset: at,
                        tid,
                    });
                } else {
                    take(header, record, tid);
                }
                at += record.len() as u64;
            }
            if at == begin {
                // A record that is longer than what was read, or a damaged one.
                match live::record_at(&file, at)? {
                    Some(record) if at + record.len() as u64 <= end => {
                        let (header, _) = RecordHeader::read_from_prefix(&record)
                            .map_err(|_| io::ErrorKind::InvalidData)?;
                        take(header, &record, tid);
                        at += record.len() as u64;
                    }
                    _ => return Ok(end),
                }
            }
        }
        Ok(at)
    }
}

/// Whether a call has not returned.
fn has_no_end(record: &[u8]) -> bool {
    CallRecord::read_from_prefix(record)
        .is_ok_and(|(call, _)| call.header.tag == RecordKind::Call.tag() && call.end == 0)
}
