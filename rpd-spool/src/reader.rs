//! Reads segments, whole or cut short, from living or dead processes.
//!
//! Nothing in a file is trusted: a segment yields the records up to the first invalid value, the reason
//! is kept as a [`Damage`], and reading goes on with the next segment. Memory is bounded by [`MAX_RECORD`].

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use zerocopy::{FromBytes, Immutable, KnownLayout};

use super::format::{
    MAGIC, REMOVED, REMOVING, RecordHeader, SegmentHeader, StackRef, VERSION, call_flag,
    segment_flag,
};
use super::image::ProcessImage;
use super::regular_file::{self, FileError, Links};

/// Bytes of the longest record. Writers keep to it, readers take anything longer for damage.
pub const MAX_RECORD: usize = 16 << 20;

/// Bytes read at once.
const CHUNK: usize = 256 << 10;

/// Descriptions of damage kept per stream; a hostile directory must not fill the memory with them.
const MAX_DAMAGE: usize = 64;

const SEGMENT_HEADER: u64 = size_of::<SegmentHeader>() as u64;
const RECORD_HEADER: usize = size_of::<RecordHeader>();

/// Kind of damage of a segment.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DamageKind {
    /// The file could not be opened or read.
    #[error("cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// The file was not opened, for instance because it is a pipe or a symbolic link.
    #[error("{0}")]
    Refused(FileError),
    /// The file is shorter than a segment head.
    #[error("is shorter than a segment header")]
    NoHeader,
    /// Does not start with [`MAGIC`].
    #[error("does not begin like a spool segment")]
    WrongMagic,
    /// The segment has another layout version.
    #[error("has layout version {0}, and this rpd reads {VERSION}: use the rpd that recorded it")]
    WrongVersion(u32),
    /// The committed length is larger than the file.
    #[error("ends {missing} bytes before its last committed record")]
    Truncated {
        /// Bytes that are missing.
        missing: u64,
    },
    /// A record length that is not possible.
    #[error("has a record of impossible length {len} at byte {offset}; {lost} bytes skipped")]
    BadRecord {
        /// Offset in the file.
        offset: u64,
        /// Length in the record's header.
        len: u32,
        /// Committed bytes from there to the end of the segment.
        lost: u64,
    },
    /// A segment number is absent.
    #[error("is preceded by a gap: segments {from} to {to} are missing")]
    MissingSegments {
        /// Number of the first missing segment.
        from: u32,
        /// Number of the last missing segment.
        to: u32,
    },
    /// The number in the segment's head differs from the one in the file's name.
    #[error("has segment number {0} in its header")]
    WrongNumber(u32),
    /// Further damage that is not listed, because there is much of it: the number of messages left out.
    #[error("and {0} more problems in this stream")]
    More(u64),
}

/// Damage in a segment file.
#[derive(Debug, thiserror::Error)]
#[error("{path} {kind}")]
pub struct Damage {
    /// Path of the damaged file.
    pub path: PathBuf,
    /// Description of the problem.
    #[source]
    pub kind: DamageKind,
}

/// One record: its head, and all its bytes (head and padding included).
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// Kind and length of the record.
    pub header: RecordHeader,
    /// The whole record, head and padding included.
    pub bytes: &'a [u8],
}

impl<'a> Record<'a> {
    /// The fixed part as `T` (a struct of [`super::format`]) and the tail after it, padding included. `None` when the
    /// record is too short to be one.
    pub fn parse<T: FromBytes + KnownLayout + Immutable>(&self) -> Option<(T, &'a [u8])> {
        T::read_from_prefix(self.bytes).ok()
    }

    /// The fixed part as `T` and the text of `len` bytes at the start of the tail, lossily decoded if `len` lies.
    pub fn parse_text<T: FromBytes + KnownLayout + Immutable>(
        &self,
        len: impl FnOnce(&T) -> u32,
    ) -> Option<(T, std::borrow::Cow<'a, str>)> {
        let (fixed, tail) = self.parse::<T>()?;
        let len = (len(&fixed) as usize).min(tail.len());
        Some((fixed, String::from_utf8_lossy(&tail[..len])))
    }
}

/// Splits the reference to a stack off the tail of a call or range. `flags` are those of the record ([`call_flag`]).
#[inline]
pub fn split_stack(flags: u32, tail: &[u8]) -> (StackRef, &[u8]) {
    if flags & call_flag::STACK == 0 {
        return (StackRef::default(), tail);
    }
    StackRef::read_from_prefix(tail).unwrap_or((StackRef::default(), &[]))
}

/// Takes the byte strings of a tail apart that are each a `u32` count followed by the bytes.
#[derive(Debug, Clone, Copy)]
pub struct ByteStrings<'a>(
    /// The remaining bytes.
    pub &'a [u8],
);

impl<'a> Iterator for ByteStrings<'a> {
    /// `None` inside stands for a null pointer (count `u32::MAX`).
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        let (count, rest) = u32::read_from_prefix(self.0).ok()?;
        if count == u32::MAX {
            self.0 = rest;
            return Some(None);
        }
        let bytes = rest.get(..count as usize)?;
        self.0 = &rest[count as usize..];
        Some(Some(bytes))
    }
}

/// A stream of a process: its segments in order.
#[derive(Debug)]
pub struct Stream {
    /// Name of its files without number.
    pub name: String,
    /// Kind of the stream: one of [`super::format::stream`]; 0 when no segment has a readable head.
    pub kind: u16,
    /// Number of the stream in its process.
    pub id: u32,
    /// Process that wrote it.
    pub pid: u32,
    /// Thread it belongs to; 0 when none.
    pub tid: u32,
    /// The directory as damage names it.
    shown: PathBuf,
    segments: Vec<Segment>,
}

/// A segment's file, ordered by number.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Segment {
    /// Number in the stream.
    pub(super) number: u32,
    /// Path of the file.
    pub(super) path: PathBuf,
}

impl Stream {
    /// Reads its records in the order of writing.
    pub fn records(&self) -> Records<'_> {
        Records {
            shown: &self.shown,
            segments: &self.segments,
            next_segment: 0,
            file: None,
            file_left: 0,
            file_offset: 0,
            buffer: Vec::new(),
            start: 0,
            damage: Vec::new(),
            more_damage: 0,
            dropped: 0,
            bytes: 0,
        }
    }

    /// The stream's segment files in order.
    pub(super) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Paths of the stream's segment files.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.segments.iter().map(|segment| segment.path.as_path())
    }
}

/// The streams of one process image.
#[derive(Debug)]
pub struct ProcessSpool {
    /// Directory of the process, as messages name it.
    pub directory: PathBuf,
    /// The path by which it was listed.
    path: PathBuf,
    /// The streams: meta first, then by number of stream.
    pub streams: Vec<Stream>,
    /// Keeps the descriptor open through which segments are found.
    _held: Option<OwnedFd>,
}

impl ProcessSpool {
    /// Lists the streams in `directory` ([`super::image`]).
    ///
    /// # Errors
    /// When the directory cannot be listed. Unreadable segments are not errors here; [`Records`] describes them.
    pub fn open(directory: &Path) -> io::Result<ProcessSpool> {
        Self::list(directory, directory, None)
    }

    /// Lists the streams in a directory that is open already, so that it cannot be replaced in between. Messages
    /// name it `shown`.
    ///
    /// # Errors
    /// As [`ProcessSpool::open`].
    pub fn open_at(directory: OwnedFd, shown: &Path) -> io::Result<ProcessSpool> {
        let path = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
        Self::list(&path, shown, Some(directory))
    }

    /// A path that leads to it while this value lives, also when it is renamed.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn list(directory: &Path, shown: &Path, held: Option<OwnedFd>) -> io::Result<ProcessSpool> {
        let mut found: BTreeMap<String, Vec<Segment>> = BTreeMap::new();
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some((stream, number)) = name
                .to_str()
                .and_then(|name| name.strip_suffix(".seg"))
                .and_then(|name| name.rsplit_once('-'))
            else {
                // Other files in the directory are not segments of a stream: staging files, segments made ahead.
                continue;
            };
            if let Ok(number) = number.parse::<u32>() {
                found.entry(stream.to_owned()).or_default().push(Segment {
                    number,
                    path: entry.path(),
                });
            }
        }
        let mut streams: Vec<Stream> = found
            .into_iter()
            .map(|(name, mut segments)| {
                // Numbers are in the order of writing; the directory lists files in any order.
                segments.sort();
                // All heads of a stream say the same of it. A damaged first segment must not take the stream's kind
                // away.
                let head = segments
                    .iter()
                    .find_map(|segment| open_segment(&segment.path).ok().flatten())
                    .map(|(_, head, _)| head);
                Stream {
                    name,
                    kind: head.map_or(0, |head| head.stream_kind),
                    id: head.map_or(u32::MAX, |head| head.stream_id),
                    pid: head.map_or(0, |head| head.pid),
                    tid: head.map_or(0, |head| head.tid),
                    shown: shown.to_owned(),
                    segments,
                }
            })
            .collect();
        // Names and facts are read before the records that refer to them.
        streams.sort_by_key(|stream| (stream.kind != super::format::stream::META, stream.id));
        Ok(ProcessSpool {
            directory: shown.to_owned(),
            path: directory.to_owned(),
            streams,
            _held: held,
        })
    }
}

/// The directories of the process images of a run, in order of their creation.
///
/// # Errors
/// When the directory cannot be listed.
pub fn processes(run: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(run)? {
        let entry = entry?;
        let name = entry.file_name();
        if let Some(image) = name.to_str().and_then(ProcessImage::from_directory)
            && entry.file_type()?.is_dir()
        {
            found.push((image.loaded, image.pid, entry.path()));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, _, path)| path).collect())
}

/// Opens a segment: the file after its head, the head, and the file's size. `None`: it was never begun (a process
/// killed while it made the file leaves that).
fn open_segment(path: &Path) -> Result<Option<(File, SegmentHeader, u64)>, DamageKind> {
    let (mut file, metadata) =
        // A link could lead out of the recording, whose files may be of another user.
        regular_file::open(path, Links::Refuse).map_err(|error| match error {
            FileError::Io(error) => DamageKind::Unreadable(error),
            other => DamageKind::Refused(other),
        })?;
    // A file of size 0 was made and not yet allocated when the writer was killed: no record is in it.
    if metadata.len() == 0 {
        return Ok(None);
    }
    if metadata.len() < SEGMENT_HEADER {
        return Err(DamageKind::NoHeader);
    }
    let mut bytes = [0u8; SEGMENT_HEADER as usize];
    file.read_exact(&mut bytes)?;
    // An allocated segment without a head is the same a moment later.
    if bytes == [0u8; SEGMENT_HEADER as usize] {
        return Ok(None);
    }
    let header: SegmentHeader = zerocopy::transmute!(bytes);
    if header.magic != MAGIC {
        return Err(DamageKind::WrongMagic);
    }
    if header.version != VERSION {
        return Err(DamageKind::WrongVersion(header.version));
    }
    Ok(Some((file, header, metadata.len())))
}

/// The records of a stream, read in chunks. Not an `Iterator`, since records borrow the chunk.
#[derive(Debug)]
pub struct Records<'a> {
    shown: &'a Path,
    segments: &'a [Segment],
    next_segment: usize,
    file: Option<File>,
    /// Committed bytes of the current segment not yet in the buffer.
    file_left: u64,
    /// Offset in the file of the first byte of the buffer.
    file_offset: u64,
    buffer: Vec<u8>,
    /// First byte of the buffer that has not been given out.
    start: usize,
    damage: Vec<Damage>,
    more_damage: u64,
    dropped: u64,
    bytes: u64,
}

impl Records<'_> {
    /// The next record, or `None` at the end of the last segment.
    #[expect(
        clippy::should_implement_trait,
        reason = "records borrow the reader's chunk, which no iterator can express"
    )]
    #[inline]
    pub fn next(&mut self) -> Option<Record<'_>> {
        loop {
            let available = self.buffer.len() - self.start;
            if available < RECORD_HEADER {
                // Committed bytes that do not even hold a head are caught below as well: a chunk never ends
                // inside one unless the segment does.
                if !self.refill(RECORD_HEADER) {
                    return None;
                }
                continue;
            }
            let Ok((header, _)) = RecordHeader::read_from_prefix(&self.buffer[self.start..]) else {
                return None;
            };
            let len = header.len as usize;
            let valid = len >= RECORD_HEADER
                && len.is_multiple_of(8)
                && len <= MAX_RECORD
                && len as u64 <= available as u64 + self.file_left;
            if !valid {
                self.skip_segment(header.len);
                continue;
            }
            if len > available {
                if !self.refill(len) {
                    return None;
                }
                continue;
            }
            let from = self.start;
            self.start += len;
            self.bytes += len as u64;
            return Some(Record {
                header,
                bytes: &self.buffer[from..from + len],
            });
        }
    }

    /// Damage found so far; complete once [`Records::next`] has returned `None`.
    pub fn damage(&self) -> &[Damage] {
        &self.damage
    }

    /// The damage, to keep.
    pub fn into_damage(self) -> Vec<Damage> {
        self.damage
    }

    /// Records that the writer could not store, as far as read.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Bytes of records given out so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn note(&mut self, path: PathBuf, kind: DamageKind) {
        if self.damage.len() < MAX_DAMAGE {
            self.damage.push(Damage { path, kind });
            return;
        }
        self.more_damage += 1;
        let more = DamageKind::More(self.more_damage);
        if self.more_damage == 1 {
            self.damage.push(Damage { path, kind: more });
        } else if let Some(last) = self.damage.last_mut() {
            last.kind = more;
        }
    }

    fn current_path(&self) -> PathBuf {
        self.next_segment
            .checked_sub(1)
            .and_then(|index| self.segments.get(index))
            .map(|segment| self.shown(&segment.path))
            .unwrap_or_default()
    }

    /// Path of a segment in reports of damage.
    fn shown(&self, path: &Path) -> PathBuf {
        self.shown.join(path.file_name().unwrap_or_default())
    }

    /// Skips the rest of the current segment because of a record whose length is given as `len` bytes.
    #[cold]
    fn skip_segment(&mut self, len: u32) {
        let offset = self.file_offset + self.start as u64;
        let lost = (self.buffer.len() - self.start) as u64 + self.file_left;
        let path = self.current_path();
        self.note(path, DamageKind::BadRecord { offset, len, lost });
        self.close();
    }

    fn close(&mut self) {
        self.file = None;
        self.file_left = 0;
        self.buffer.clear();
        self.start = 0;
    }

    /// Brings at least `wanted` bytes into the buffer, from the current segment, or else begins the next. False at the
    /// end of the stream.
    fn refill(&mut self, wanted: usize) -> bool {
        let rest = self.buffer.len() - self.start;
        if self.file_left == 0 {
            if rest > 0 {
                // Fewer bytes than a record head are left over.
                self.skip_segment(0);
            }
            return self.open_next();
        }
        self.buffer.copy_within(self.start.., 0);
        self.buffer.truncate(rest);
        self.file_offset += self.start as u64;
        self.start = 0;
        let target = wanted.max(CHUNK) as u64;
        let take = (target - rest as u64).min(self.file_left);
        let Some(file) = self.file.as_mut() else {
            return self.open_next();
        };
        match file.take(take).read_to_end(&mut self.buffer) {
            Ok(read) if read as u64 == take => {
                self.file_left -= take;
                true
            }
            Ok(read) => {
                // The file shrank since it was opened.
                let missing = self.file_left - read as u64;
                let path = self.current_path();
                self.note(path, DamageKind::Truncated { missing });
                self.file_left = 0;
                true
            }
            Err(error) => {
                let path = self.current_path();
                self.note(path, DamageKind::Unreadable(error));
                self.close();
                self.open_next()
            }
        }
    }

    fn open_next(&mut self) -> bool {
        self.close();
        while let Some(Segment { number, path }) = self.segments.get(self.next_segment) {
            let expected = match self.next_segment.checked_sub(1) {
                // The target may have removed or lost segments: the number that should come next shows it.
                Some(previous) => self.segments[previous].number.saturating_add(1),
                None => 0,
            };
            self.next_segment += 1;
            let last = self.next_segment == self.segments.len();
            let opened = open_segment(path);
            // A stream with a bound has lost its oldest segments on purpose.
            let bounded = matches!(&opened, Ok(Some((_, head, _))) if head.flags & segment_flag::BOUNDED != 0);
            if *number > expected && !(bounded && self.next_segment == 1) {
                self.note(
                    self.shown(path),
                    DamageKind::MissingSegments {
                        from: expected,
                        to: *number - 1,
                    },
                );
            }
            match opened {
                // The last segment may be the one that was being made. In front of others, an empty one has lost its
                // records.
                Ok(None) if last => {}
                Ok(None) => self.note(self.shown(path), DamageKind::NoHeader),
                Err(kind) => self.note(self.shown(path), kind),
                Ok(Some((mut file, header, size))) => {
                    if header.segment != *number {
                        self.note(self.shown(path), DamageKind::WrongNumber(header.segment));
                    }
                    self.dropped = self.dropped.saturating_add(header.dropped);
                    // A file cut off by a full disk still has its first records.
                    let present = size - SEGMENT_HEADER;
                    if header.committed > present {
                        let missing = header.committed - present;
                        self.note(self.shown(path), DamageKind::Truncated { missing });
                    }
                    let end = header.committed.min(present);
                    let taken = match header.taken {
                        REMOVED => end,
                        taken => u64::from(taken & !REMOVING).min(end),
                    };
                    if taken > 0
                        && let Err(error) = file.seek(SeekFrom::Start(SEGMENT_HEADER + taken))
                    {
                        self.note(self.shown(path), DamageKind::Unreadable(error));
                        continue;
                    }
                    self.file = Some(file);
                    self.file_left = end - taken;
                    self.file_offset = SEGMENT_HEADER + taken;
                    if self.file_left > 0 {
                        return true;
                    }
                }
            }
        }
        false
    }
}
