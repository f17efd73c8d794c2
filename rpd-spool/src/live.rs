//! Segments of a process that still writes.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use zerocopy::FromBytes as _;

use super::format::{MAGIC, REMOVED, REMOVING, RecordHeader, SegmentHeader, VERSION, segment_flag};
use super::pages;
use super::regular_file::{self, FileError, Links};

/// Bytes of a segment's head.
pub(super) const HEAD: usize = size_of::<SegmentHeader>();

/// Opens a segment. `None`: it is gone, was never begun, or is none of this layout.
pub(super) fn open(path: &Path, writable: bool) -> io::Result<Option<(File, SegmentHeader, u64)>> {
    let opened = if writable {
        regular_file::open_writable(path, Links::Refuse)
    } else {
        regular_file::open(path, Links::Refuse)
    };
    let (file, metadata) = match opened {
        Ok(opened) => opened,
        Err(FileError::Missing) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if metadata.len() < HEAD as u64 {
        return Ok(None);
    }
    let mut bytes = [0; HEAD];
    file.read_exact_at(&mut bytes, 0)?;
    let head: SegmentHeader = zerocopy::transmute!(bytes);
    let is_known = head.magic == MAGIC && head.version == VERSION;
    Ok(is_known.then_some((file, head, metadata.len())))
}

/// The head of a segment, which its writer changes at the same time.
pub(super) struct SharedHead(NonNull<u8>);

impl SharedHead {
    /// Maps the head of a segment that is open for writing.
    pub(super) fn map(file: &File) -> io::Result<SharedHead> {
        Ok(SharedHead(pages::map(file.as_raw_fd(), HEAD)?))
    }

    /// Bytes of complete records, and whether nothing is appended any more.
    pub(super) fn committed(&self) -> (u64, bool) {
        // SAFETY: the mapping is as long as a head, the offsets are those of aligned fields, and all accesses are atomic.
        let (flags, committed) = unsafe {
            let at = |offset: usize| self.0.as_ptr().add(offset);
            (
                AtomicU16::from_ptr(at(std::mem::offset_of!(SegmentHeader, flags)).cast()),
                AtomicU64::from_ptr(at(std::mem::offset_of!(SegmentHeader, committed)).cast()),
            )
        };
        // In this order: the flag is stored after the last record.
        let is_closed = flags.load(Ordering::Acquire) & segment_flag::CLOSED != 0;
        (committed.load(Ordering::Acquire), is_closed)
    }

    /// Takes the records up to `to`, of which those up to `from` were taken before. False when the writer has removed the
    /// segment, and has counted what was not taken.
    pub(super) fn take(&self, from: u32, to: u32) -> bool {
        let order = (Ordering::AcqRel, Ordering::Acquire);
        let taken = self.taken();
        taken.compare_exchange(from, to, order.0, order.1).is_ok()
    }

    /// Bytes of records that were taken; `None` when the writer counts the others, or has counted them. With `has_ended` the
    /// writer does nothing any more, and what it has not counted is there to be taken.
    pub(super) fn taken_bytes(&self, has_ended: bool) -> Option<u32> {
        let taken = self.taken();
        let mut found = taken.load(Ordering::Acquire);
        if has_ended && found != REMOVED {
            found &= !REMOVING;
            taken.store(found, Ordering::Release);
        }
        (found & REMOVING == 0).then_some(found)
    }

    fn taken(&self) -> &AtomicU32 {
        let offset = std::mem::offset_of!(SegmentHeader, taken);
        // SAFETY: as in `committed`; the mapping lives as long as the value.
        unsafe { AtomicU32::from_ptr(self.0.as_ptr().add(offset).cast()) }
    }
}

impl Drop for SharedHead {
    fn drop(&mut self) {
        // SAFETY: mapped in `map`, and not used any more.
        unsafe { pages::unshare(self.0, HEAD) };
    }
}

/// Reads the record that begins `offset` bytes behind the head. `None` when there is none.
pub(super) fn record_at(file: &File, offset: u64) -> io::Result<Option<Vec<u8>>> {
    let at = HEAD as u64 + offset;
    let mut head = [0; size_of::<RecordHeader>()];
    file.read_exact_at(&mut head, at)?;
    let Ok(header) = RecordHeader::read_from_bytes(&head) else {
        return Ok(None);
    };
    let len = header.len as usize;
    if len < head.len() || !len.is_multiple_of(8) || len > super::reader::MAX_RECORD {
        return Ok(None);
    }
    let mut record = vec![0; len];
    file.read_exact_at(&mut record, at)?;
    Ok(Some(record))
}
