//! The bound on the segments of a process: the oldest segments of threads are removed, and what goes is counted.
//!
//! Only segments that are full, or whose thread has ended, are removed. A reader may take records out of them at the same time
//! (`cut.rs`): [`SegmentHeader::taken`] decides who has a record.

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::ffi::CString;
use std::io;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::format::{REMOVED, REMOVING, SegmentHeader};
use super::mapping::ForkLock;
use super::pages;
use super::threads;
use super::writer::{FIRST_SEGMENT, LARGEST_SEGMENT};

const SEGMENT_HEADER: usize = size_of::<SegmentHeader>();

/// Segments of the largest size that a bound has room for at least.
const PARTS: u64 = 16;

/// The smallest bound of a process, in bytes.
pub const SMALLEST_LIMIT: u64 = PARTS * FIRST_SEGMENT as u64;

/// A segment to which nothing is appended any more.
#[derive(Debug)]
struct ClosedSegment {
    file: CString,
    len: u64,
}

/// The bound of a process.
#[derive(Debug)]
pub(super) struct Limit {
    bytes: u64,
    /// Bytes of all segments.
    used: AtomicU64,
    lock: ForkLock,
    /// The oldest first.
    closed: UnsafeCell<VecDeque<ClosedSegment>>,
    /// Counts the records of a segment that goes.
    count: fn(&[u8]),
}

// SAFETY: `closed` is only touched with `lock` held.
unsafe impl Sync for Limit {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl Send for Limit {}

impl Limit {
    pub(super) fn new(bytes: u64, count: fn(&[u8])) -> Limit {
        Limit {
            bytes: bytes.max(SMALLEST_LIMIT),
            used: AtomicU64::new(0),
            lock: ForkLock::new(),
            closed: UnsafeCell::new(VecDeque::new()),
            count,
        }
    }

    /// Bytes of the largest segments of the process.
    pub(super) fn largest_segment(&self) -> usize {
        let part = self.bytes / PARTS;
        let part = usize::try_from(part - part % 4096).unwrap_or(LARGEST_SEGMENT);
        part.clamp(FIRST_SEGMENT, LARGEST_SEGMENT)
    }

    /// Counts a segment that is made whatever the bound.
    pub(super) fn add(&self, len: u64) {
        self.used.fetch_add(len, Ordering::Relaxed);
    }

    /// Counts a segment that could not be made.
    pub(super) fn subtract(&self, len: u64) {
        self.used.fetch_sub(len, Ordering::Relaxed);
    }

    /// Makes room for a segment of `len` bytes, and counts it. False when nothing is left to remove.
    pub(super) fn reserve(&self, len: u64) -> bool {
        loop {
            let fits = |used: u64| (used + len <= self.bytes).then_some(used + len);
            let order = Ordering::Relaxed;
            if self.used.fetch_update(order, order, fits).is_ok() {
                return true;
            }
            if !self.remove_oldest() {
                return false;
            }
        }
    }

    /// Removes segments until a few of the largest size have room, so that threads that record need not.
    pub(super) fn make_room_ahead(&self) {
        let ahead = 2 * self.largest_segment() as u64;
        while self.used.load(Ordering::Relaxed) + ahead > self.bytes && self.remove_oldest() {}
    }

    /// Takes note of a segment to which nothing is appended any more.
    pub(super) fn close(&self, file: CString, len: u64) {
        // In a signal handler that interrupted this very function the segment stays, and counts as used.
        if let Some(_guard) = self.lock.lock() {
            // SAFETY: the lock is held.
            unsafe { &mut *self.closed.get() }.push_back(ClosedSegment { file, len });
        }
    }

    /// Removes the oldest segment; false when there is none.
    fn remove_oldest(&self) -> bool {
        let oldest = {
            let Some(_guard) = self.lock.lock() else {
                return false;
            };
            // SAFETY: the lock is held.
            unsafe { &mut *self.closed.get() }.pop_front()
        };
        // The lock is open again: counting takes others.
        let Some(segment) = oldest else { return false };
        let remove = || segment.remove(self.count);
        // A program may have no free descriptor.
        if remove().is_err() && threads::with_own_descriptors(remove).is_none() {
            // SAFETY: the path is NUL-terminated.
            unsafe { libc::unlink(segment.file.as_ptr()) };
        }
        self.used.fetch_sub(segment.len, Ordering::Relaxed);
        true
    }
}

impl ClosedSegment {
    /// Removes the file, and has `count` count the records in it that no reader has taken. Nothing to do where a reader has
    /// removed it.
    fn remove(&self, count: fn(&[u8])) -> io::Result<()> {
        let len = usize::try_from(self.len).map_err(|_| io::ErrorKind::InvalidInput)?;
        let flags = libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOFOLLOW;
        // SAFETY: the path is NUL-terminated.
        let fd = unsafe { libc::open(self.file.as_ptr(), flags) };
        if fd < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            };
        }
        let mapped = pages::map(fd, len);
        // SAFETY: opened above and not used any more; the mapping keeps the file.
        unsafe { libc::close(fd) };
        let base = mapped?;
        // SAFETY: the mapping is longer than a head, the offsets are those of aligned fields, and accesses to both are atomic.
        let (taken, committed) = unsafe {
            let at = |offset: usize| base.as_ptr().add(offset);
            (
                AtomicU32::from_ptr(at(offset_of!(SegmentHeader, taken)).cast()),
                AtomicU64::from_ptr(at(offset_of!(SegmentHeader, committed)).cast()),
            )
        };
        // From now on no reader takes more. If the process ends before the records are counted, the file is still there and says so.
        let before = taken.fetch_or(REMOVING, Ordering::AcqRel);
        let end = usize::try_from(committed.load(Ordering::Acquire)).unwrap_or(len);
        let end = end.min(len - SEGMENT_HEADER);
        if before & REMOVING == 0 && (before as usize) < end {
            let first = before as usize;
            // SAFETY: inside the mapping. Only ends of calls are still stored there, by their threads; a call is counted as it is
            // found.
            let records = unsafe {
                let begin = base.as_ptr().add(SEGMENT_HEADER + first);
                std::slice::from_raw_parts(begin, end - first)
            };
            count(records);
        }
        taken.store(REMOVED, Ordering::Release);
        // SAFETY: the path is NUL-terminated.
        unsafe { libc::unlink(self.file.as_ptr()) };
        // SAFETY: mapped above, and nothing refers to it any more.
        unsafe { pages::unshare(base, len) };
        Ok(())
    }
}
