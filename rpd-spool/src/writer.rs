//! Writes segments from inside the target.
//!
//! A [`StreamWriter`] belongs to one thread (or to a lock). Appending takes no lock and allocates nothing; only when a
//! segment is full does it make system calls, few where the next one has been made ahead. A full disk never disturbs the target: records are dropped and counted.

use std::collections::VecDeque;
use std::ffi::CString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use zerocopy::{FromBytes, IntoBytes};

use super::control::{CONTROL_FILE, ControlServer};
pub use super::format::record_len;
use super::format::{CallRecord, MAGIC, RecordHeader, SegmentHeader, VERSION, segment_flag};
use super::image::{ProcessImage, pid_namespace};
use super::limit::Limit;
pub use super::limit::SMALLEST_LIMIT;
use super::mapping::Mapping;
pub use super::mapping::{
    ForkGuard, ForkLock, abandon_all, hold_for_fork, map_again, release_after_fork, retire_all,
};
use super::reader::MAX_RECORD;
use super::spares::Spares;

const SEGMENT_HEADER: usize = size_of::<SegmentHeader>();

/// Bytes of a stream's first segment. Each further one is [`GROWTH`] times as large.
pub const FIRST_SEGMENT: usize = 64 << 10;
/// Factor between a segment and its successor.
pub const GROWTH: usize = 4;
/// Bytes of the largest segments, unless one record needs more. A call that needs a new one waits for its pages, a few
/// hundred microseconds.
pub const LARGEST_SEGMENT: usize = 1 << 20;

/// Records dropped between two attempts to get a segment after one failed.
const RETRY_AFTER: u32 = 1024;

/// The current time on `CLOCK_BOOTTIME`, in nanoseconds.
#[inline]
pub fn now() -> u64 {
    clock(libc::CLOCK_BOOTTIME)
}

/// The current time on `CLOCK_REALTIME`, in nanoseconds.
pub fn real_now() -> u64 {
    clock(libc::CLOCK_REALTIME)
}

#[inline]
fn clock(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid for the call.
    unsafe { libc::clock_gettime(id, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The directory that one process image writes to.
#[derive(Debug)]
pub struct SpoolDirectory {
    path: PathBuf,
    pid: u32,
    streams: AtomicU32,
    /// Records of streams that never got a segment; the owner of the meta stream moves the number there.
    unstored: AtomicU64,
    spares: Spares,
    /// The bound on all segments, if there is one.
    limit: OnceLock<Limit>,
    /// Whether readers take records while they are written.
    is_taken_live: AtomicBool,
}

impl SpoolDirectory {
    /// Makes the directory of this process image in the run's directory.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(run: &Path) -> io::Result<Arc<SpoolDirectory>> {
        let pid = std::process::id();
        let image = ProcessImage {
            pid,
            loaded: now(),
            namespace: pid_namespace("self"),
        };
        let path = run.join(image.directory());
        // For the owner alone: arguments and variables of the program are in the recording.
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Arc::new(SpoolDirectory {
            path,
            pid,
            streams: AtomicU32::new(0),
            unstored: AtomicU64::new(0),
            spares: Spares::new(),
            limit: OnceLock::new(),
            is_taken_live: AtomicBool::new(false),
        }))
    }

    /// Sets the function that is called when segments are to be made ahead: it has another thread call
    /// [`SpoolDirectory::make_spares`]. It is called while a record is written.
    pub fn on_request_for_spares(&self, request: fn()) {
        self.spares.on_request(request);
    }

    /// Keeps all segments together within `bytes` (at least [`SMALLEST_LIMIT`]): the oldest of [`StreamWriter::removable`]
    /// streams are removed. `count` gets the records of each, and is called on the thread that needs room. To be called before
    /// the first stream is made.
    pub fn set_limit(&self, bytes: u64, count: fn(&[u8])) {
        let _ = self.limit.set(Limit::new(bytes, count));
    }

    /// Says in segments of [`StreamWriter::removable`] streams that readers take records out of them while others are written
    /// ([`super::cut`]). To be called before the first stream is made.
    pub fn set_taken_live(&self) {
        self.is_taken_live.store(true, Ordering::Relaxed);
    }

    /// Whether segments of [`StreamWriter::removable`] streams can be gone before the process ends.
    pub fn loses_segments(&self) -> bool {
        self.limit.get().is_some() || self.is_taken_live.load(Ordering::Relaxed)
    }

    /// Makes segments that streams will need, or the room for them. Only one thread at a time may call it.
    pub fn make_spares(&self) {
        if let Some(limit) = self.limit.get() {
            limit.make_room_ahead();
            return;
        }
        self.spares.make(LARGEST_SEGMENT, |number| {
            self.file(&format!("spare-{number}")).ok()
        });
    }

    /// Removes the segments that were made ahead and that no stream has. From then on no more are made.
    pub fn remove_spares(&self) {
        self.spares.close();
    }

    /// Makes the page through which `rpd control` sends requests.
    ///
    /// # Errors
    /// When its file cannot be made.
    pub fn make_control(&self) -> io::Result<ControlServer> {
        ControlServer::create(&self.file(CONTROL_FILE)?)
    }

    /// Path of a file in the directory.
    fn file(&self, name: &str) -> io::Result<CString> {
        let mut path = self.path.as_os_str().as_bytes().to_vec();
        path.push(b'/');
        path.extend_from_slice(name.as_bytes());
        CString::new(path).map_err(|_| io::ErrorKind::InvalidInput.into())
    }

    /// Path of the spool's directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Id of the process that the directory belongs to.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Counts `records` that no stream could take.
    pub fn drop_records(&self, records: u64) {
        self.unstored.fetch_add(records, Ordering::Relaxed);
    }

    /// Records counted by [`SpoolDirectory::drop_records`].
    pub fn dropped(&self) -> u64 {
        self.unstored.load(Ordering::Relaxed)
    }
}

/// A full segment with records that are still open.
#[derive(Debug)]
struct FullSegment {
    mapping: Mapping,
    open: u32,
}

/// Position of an open record, as one word for a provider's user-data slot. Zero is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct OpenRecord(pub u64);

/// Appends records to one stream.
#[derive(Debug)]
pub struct StreamWriter {
    /// Bytes of the current segment in use, its head included.
    used: usize,
    /// Bytes of the current segment in all.
    capacity: usize,
    current: Option<Mapping>,
    /// Open records in the current segment.
    open: u32,
    kind: u16,
    full: Vec<FullSegment>,
    directory: Arc<SpoolDirectory>,
    name: String,
    tid: u32,
    id: u32,
    next_segment: u32,
    next_size: usize,
    /// Drops until the next attempt to make a segment.
    retry: u32,
    /// Records dropped since the current segment was made.
    dropped: u64,
    /// Counts that [`StreamWriter::publish_dropped`] added to the current segment, and to earlier ones.
    extra: u64,
    extra_before: u64,
    bound: Option<Bound>,
    /// Whether segments are removed or taken before the process ends.
    is_removable: bool,
    /// Path of the current segment, where its stream is removable and nothing closed it yet.
    file: Option<CString>,
}

/// The bound of a stream of which only the latest records are kept.
#[derive(Debug)]
struct Bound {
    /// Bytes that the segments of the stream may have together.
    bytes: usize,
    /// Segments of the stream, the oldest first: file and size.
    segments: VecDeque<(CString, usize)>,
}

/// Segments that a stream with a bound has at least: when one is removed, the others are left.
const BOUNDED_SEGMENTS: usize = 4;

/// The smallest bound of a stream, in bytes.
pub const SMALLEST_BOUND: u64 = (BOUNDED_SEGMENTS * FIRST_SEGMENT) as u64;

impl Bound {
    /// Bytes of each segment of the stream.
    fn segment(&self) -> usize {
        let part = self.bytes / BOUNDED_SEGMENTS;
        (part - part % 4096).clamp(FIRST_SEGMENT, LARGEST_SEGMENT)
    }

    /// Removes the oldest segments until one of `len` bytes has room.
    fn make_room(&mut self, len: usize) {
        let mut bytes: usize = self.segments.iter().map(|(_, size)| size).sum();
        while bytes + len > self.bytes
            && let Some((path, size)) = self.segments.pop_front()
        {
            // SAFETY: the path is NUL-terminated.
            unsafe { libc::unlink(path.as_ptr()) };
            bytes -= size;
        }
    }
}

impl StreamWriter {
    /// A stream called `name` (file name without number). No file is made before the first record.
    pub fn new(directory: &Arc<SpoolDirectory>, name: String, kind: u16, tid: u32) -> StreamWriter {
        StreamWriter {
            used: 0,
            capacity: 0,
            current: None,
            open: 0,
            kind,
            full: Vec::new(),
            directory: Arc::clone(directory),
            name,
            tid,
            id: directory.streams.fetch_add(1, Ordering::Relaxed),
            next_segment: 0,
            next_size: FIRST_SEGMENT,
            retry: 0,
            dropped: 0,
            extra: 0,
            extra_before: 0,
            bound: None,
            is_removable: false,
            file: None,
        }
    }

    /// Keeps the stream within `bytes` (at least [`SMALLEST_BOUND`]): its oldest segment is removed when there is no room for
    /// another. Records of such a stream are not to be left open.
    pub fn bounded(mut self, bytes: u64) -> StreamWriter {
        let bytes = usize::try_from(bytes.max(SMALLEST_BOUND)).unwrap_or(usize::MAX);
        let bound = Bound {
            bytes,
            segments: VecDeque::new(),
        };
        self.next_size = bound.segment();
        self.bound = Some(bound);
        self
    }

    /// Lets segments of the stream go while others are written, where the directory [`SpoolDirectory::loses_segments`].
    pub fn removable(mut self) -> StreamWriter {
        if self.directory.loses_segments() {
            self.is_removable = true;
            // A stream whose first segments are gone would share its name with the next thread of this id.
            self.name = format!("{}.{}", self.name, self.id);
        }
        self
    }

    /// Lets the first segment have `bytes` instead of [`FIRST_SEGMENT`].
    pub fn first_segment(mut self, bytes: usize) -> StreamWriter {
        self.next_size = bytes.max(SEGMENT_HEADER + 64).next_multiple_of(4096);
        self
    }

    /// Appends a record of `len` bytes (a multiple of 8), which `fill` writes into zeroed memory. False when it had to
    /// be dropped.
    #[inline]
    pub fn append(&mut self, len: usize, fill: impl FnOnce(&mut [u8])) -> bool {
        self.place(len, fill) != 0
    }

    /// Appends the record `fixed` with `tail`, padded. `fixed.header.len` must be [`record_len`] of the tail.
    pub fn append_parts(&mut self, fixed: &[u8], tail: &[&[u8]]) -> bool {
        let len = record_len(fixed.len(), tail.iter().map(|part| part.len()).sum());
        self.append(len, |bytes| {
            let mut at = 0;
            for part in std::iter::once(&fixed).chain(tail) {
                bytes[at..at + part.len()].copy_from_slice(part);
                at += part.len();
            }
        })
    }

    /// As [`StreamWriter::append`], for a record that [`StreamWriter::close`] completes later. [`OpenRecord`] 0 when it had to
    /// be dropped.
    #[inline]
    pub fn append_open(&mut self, len: usize, fill: impl FnOnce(&mut [u8])) -> OpenRecord {
        let address = self.place(len, fill);
        if address != 0 {
            self.open += 1;
        }
        OpenRecord(address as u64)
    }

    /// Stores result and end of an open [`CallRecord`] in place. A record that is not in this stream (any more) is left
    /// alone.
    #[inline]
    pub fn close(&mut self, record: OpenRecord, retval: u64, end: u64) {
        let address = record.0 as usize;
        if let Some(current) = &self.current
            && current.contains(address, size_of::<CallRecord>())
        {
            store_end(current, address, retval, end);
            self.open = self.open.saturating_sub(1);
            return;
        }
        self.close_full(address, retval, end);
    }

    #[cold]
    fn close_full(&mut self, address: usize, retval: u64, end: u64) {
        // Open calls are few and nested, so that the search through full segments is short.
        let found = self
            .full
            .iter()
            .position(|full| full.mapping.contains(address, size_of::<CallRecord>()));
        if let Some(index) = found {
            let full = &mut self.full[index];
            store_end(&full.mapping, address, retval, end);
            full.open = full.open.saturating_sub(1);
            // Without open records nothing will be stored in the segment any more, and its mapping can go.
            if full.open == 0 {
                self.full.swap_remove(index);
            }
        }
    }

    /// An open [`CallRecord`] as it is now. `None` for a record that is not in this stream (any more).
    pub fn open_call(&self, record: OpenRecord) -> Option<CallRecord> {
        let (address, len) = (record.0 as usize, size_of::<CallRecord>());
        let found = self.full.iter().map(|full| &full.mapping);
        let found = found
            .chain(&self.current)
            .any(|found| found.contains(address, len));
        if !found {
            return None;
        }
        // SAFETY: the bytes are inside a mapping of this stream, which only its own thread writes.
        let bytes = unsafe { std::slice::from_raw_parts(address as *const u8, len) };
        CallRecord::read_from_bytes(bytes).ok()
    }

    /// Stores `value` at `offset` of an open record, which stays open. A record that is not in this stream is left
    /// alone.
    pub fn patch(&self, record: OpenRecord, offset: usize, value: u32) {
        let address = record.0 as usize + offset;
        let mut mappings = self.full.iter().map(|full| &full.mapping);
        let found = self.current.iter().find(|found| found.contains(address, 4));
        if (found.is_some() || mappings.any(|found| found.contains(address, 4)))
            && address.is_multiple_of(4)
        {
            // SAFETY: four aligned bytes inside a mapping of this stream.
            unsafe { AtomicU32::from_ptr(address as *mut u32) }.store(value, Ordering::Relaxed);
        }
    }

    /// Stores `bytes` at `offset` of an open record, which stays open. A record that is not in this stream, or that ends
    /// before, is left alone.
    pub fn fill(&self, record: OpenRecord, offset: usize, bytes: &[u8]) {
        let address = record.0 as usize;
        let full = self.full.iter().map(|full| &full.mapping);
        let mut mappings = self.current.iter().chain(full);
        if !mappings.any(|found| found.contains(address, offset + bytes.len())) {
            return;
        }
        // SAFETY: the head of a record inside a mapping of this stream, which only its own thread writes.
        let head =
            unsafe { std::slice::from_raw_parts(address as *const u8, size_of::<RecordHeader>()) };
        let len = RecordHeader::read_from_bytes(head).map_or(0, |head| head.len as usize);
        if offset + bytes.len() <= len {
            // SAFETY: as above; the bytes are inside the record.
            let place = unsafe {
                std::slice::from_raw_parts_mut((address + offset) as *mut u8, bytes.len())
            };
            place.copy_from_slice(bytes);
        }
    }

    /// Records dropped since the current segment was made.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Adds the records that other streams, which have no segment, dropped: `total` of them since this stream began.
    pub fn publish_dropped(&mut self, total: u64) {
        if let Some(current) = &self.current {
            self.extra = total.saturating_sub(self.extra_before);
            current
                .dropped()
                .store(self.dropped + self.extra, Ordering::Relaxed);
        }
    }

    /// Address of the new record, or 0.
    #[inline]
    fn place(&mut self, len: usize, fill: impl FnOnce(&mut [u8])) -> usize {
        debug_assert!(len.is_multiple_of(8) && len >= 8);
        if len > self.capacity - self.used && !self.grow(len) {
            return 0;
        }
        let Some(current) = &self.current else {
            return 0;
        };
        // SAFETY: `used + len` does not exceed the mapping, which was checked or is what `grow` did; the bytes after
        // `used` belong to no other reference, and are zero because the file is new.
        let (address, bytes) = unsafe {
            let address = current.base().as_ptr().add(self.used);
            (address, std::slice::from_raw_parts_mut(address, len))
        };
        fill(bytes);
        self.used += len;
        current
            .committed()
            .store((self.used - SEGMENT_HEADER) as u64, Ordering::Release);
        address as usize
    }

    /// Replaces the current segment by one with room for `len` bytes.
    #[cold]
    fn grow(&mut self, len: usize) -> bool {
        if self.retry > 0 {
            self.retry -= 1;
            return self.count_drop();
        }
        if len > MAX_RECORD {
            return self.count_drop();
        }
        let needed = (len + SEGMENT_HEADER).next_multiple_of(4096);
        let largest = self.largest_segment();
        let wanted = self.next_size.min(largest).max(needed);
        if let Some(bound) = &mut self.bound {
            bound.make_room(wanted);
        }
        // Before the next is made: the bound may have room for no other.
        if self.directory.limit.get().is_some() {
            self.close_current();
        }
        // When the disk is nearly full a small segment may still fit.
        let made = self
            .make_counted(wanted)
            .or_else(|_| self.make_counted(needed.max(FIRST_SEGMENT.min(wanted))));
        let mapping = match made {
            Ok(mapping) => mapping,
            Err(error) => {
                // A signal handler that interrupted the making of another segment does not wait for the next attempt.
                let is_interrupted = error.kind() == io::ErrorKind::WouldBlock;
                self.retry = if is_interrupted { 0 } else { RETRY_AFTER };
                return self.count_drop();
            }
        };
        self.next_size = match &self.bound {
            Some(bound) => bound.segment(),
            None => (self.next_size * GROWTH).clamp(FIRST_SEGMENT, largest),
        };
        if self.next_size == largest && self.bound.is_none() {
            self.directory.spares.request();
        }
        self.capacity = mapping.len();
        let old = self.current.replace(mapping);
        if let Some(old) = &old
            && self.is_removable
        {
            old.close();
        }
        if let Some(mapping) = old
            && self.open > 0
        {
            self.full.push(FullSegment {
                mapping,
                open: self.open,
            });
        }
        self.open = 0;
        self.used = SEGMENT_HEADER;
        self.dropped = 0;
        self.extra_before += self.extra;
        self.extra = 0;
        true
    }

    #[cold]
    fn count_drop(&mut self) -> bool {
        match &self.current {
            // The count is to outlive the segment.
            Some(_) if self.bound.is_some() || self.is_removable => self.directory.drop_records(1),
            Some(current) => {
                self.dropped += 1;
                current
                    .dropped()
                    .store(self.dropped + self.extra, Ordering::Relaxed);
            }
            None => self.directory.drop_records(1),
        }
        false
    }

    /// Bytes of the largest segments.
    fn largest_segment(&self) -> usize {
        let limit = self.directory.limit.get();
        limit.map_or(LARGEST_SEGMENT, Limit::largest_segment)
    }

    /// Ends the current segment: nothing is appended to it any more.
    fn close_current(&mut self) {
        if let (Some(file), Some(current)) = (self.file.take(), &self.current) {
            current.close();
            self.used = self.capacity;
            if let Some(limit) = self.directory.limit.get() {
                limit.close(file, current.len() as u64);
            }
        }
    }

    /// Makes a segment within the bound of the directory.
    fn make_counted(&mut self, len: usize) -> io::Result<Mapping> {
        let directory = Arc::clone(&self.directory);
        let Some(limit) = directory.limit.get() else {
            return self.make_segment(len);
        };
        let bytes = len as u64;
        if !self.is_removable {
            limit.add(bytes);
        } else if !limit.reserve(bytes) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let made = self.make_segment(len);
        if made.is_err() {
            limit.subtract(bytes);
        }
        made
    }

    fn make_segment(&mut self, len: usize) -> io::Result<Mapping> {
        let path = |name: &str, number: u32| self.directory.file(&format!("{name}-{number}.seg"));
        // Most threads of most programs never fill a segment; one that did will fill the next as well.
        let ahead = self.next_segment > 0;
        let mut file = path(&self.name, self.next_segment)?;
        let unbounded = self.bound.is_none() && self.directory.limit.get().is_none();
        let spare = if ahead && len == LARGEST_SEGMENT && unbounded {
            self.directory.spares.take(&file)
        } else {
            None
        };
        let mut made = match spare {
            Some(mapping) => Ok(mapping),
            None => Mapping::create(&file, len, ahead),
        };
        if self.next_segment == 0
            && matches!(&made, Err(error) if error.kind() == io::ErrorKind::AlreadyExists)
        {
            // The kernel gives thread ids out again.
            let name = format!("{}.{}", self.name, self.id);
            file = path(&name, 0)?;
            made = Mapping::create(&file, len, ahead);
            if made.is_ok() {
                self.name = name;
            }
        }
        let mapping = made?;
        let mut flags = 0;
        if let Some(bound) = &mut self.bound {
            flags = segment_flag::BOUNDED;
            bound.segments.push_back((file, len));
        } else if self.is_removable {
            flags = segment_flag::BOUNDED;
            self.file = Some(file);
        }
        let header = SegmentHeader {
            magic: MAGIC,
            version: VERSION,
            stream_kind: self.kind,
            flags,
            pid: self.directory.pid,
            tid: self.tid,
            segment: self.next_segment,
            stream_id: self.id,
            committed: 0,
            dropped: 0,
            created: now(),
            // At most `MAX_RECORD` and its head.
            capacity: len as u32,
            taken: 0,
        };
        // SAFETY: the mapping is longer than a header, and new, so nothing else refers to it.
        unsafe {
            std::slice::from_raw_parts_mut(mapping.base().as_ptr(), SEGMENT_HEADER)
                .copy_from_slice(header.as_bytes());
        }
        self.next_segment += 1;
        Ok(mapping)
    }
}

impl Drop for StreamWriter {
    fn drop(&mut self) {
        self.close_current();
    }
}

/// Stores `retval` and `end` of the [`CallRecord`] at `address`, end last.
#[inline]
fn store_end(mapping: &Mapping, address: usize, retval: u64, end: u64) {
    debug_assert!(mapping.contains(address, size_of::<CallRecord>()));
    if !address.is_multiple_of(8) {
        return;
    }
    let field = |offset: usize| {
        // SAFETY: the caller found the whole record inside the mapping, and the address is that of an aligned u64.
        unsafe { AtomicU64::from_ptr((address + offset) as *mut u64) }
    };
    field(std::mem::offset_of!(CallRecord, retval)).store(retval, Ordering::Relaxed);
    field(std::mem::offset_of!(CallRecord, end)).store(end, Ordering::Release);
}
