//! The memory that the ranks of a communicator share: a file in memory that each of them maps and makes accessible to its GPU.
//!
//! The unique id holds where the file is: processes find it through `/proc/<pid>/fd` of the one that made the id.

use core::ffi::c_void;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::error::{Failure, Outcome, result};
use super::hip;
use crate::api::types::UniqueId;

/// Most ranks of a communicator.
pub(super) const MAX_RANKS: usize = 64;
/// Bytes that each rank contributes to a step of a collective operation.
const STEP_BYTES: usize = 256 << 10;
/// Size of a message in bytes, and the number of messages that a sender can be ahead of a receiver.
const MESSAGE_BYTES: usize = 64 << 10;
const MESSAGES: usize = 4;
/// Interval at which a host checks whether the other ranks have arrived.
const LOOK: Duration = Duration::from_micros(200);

/// Message of a rank to the other ranks when a communicator is split.
#[repr(C)]
pub(super) struct Split {
    /// Number of the split to which color and key belong, from 1.
    pub(super) number: AtomicU32,
    pub(super) color: AtomicI32,
    pub(super) key: AtomicI32,
    /// Number of the split to which the id belongs.
    made: AtomicU32,
    /// Unique id of the new communicator in which this rank is the first.
    id: [AtomicU64; 16],
}

impl Split {
    /// Passes the id of the communicator that the split `number` makes to the other ranks.
    pub(super) fn publish(&self, number: u32, id: &UniqueId) {
        for (word, bytes) in self.id.iter().zip(id.internal.as_chunks().0) {
            word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
        }
        self.made.store(number, Ordering::Release);
    }

    /// Id of the communicator that the split `number` makes; `None` before it is published.
    pub(super) fn published(&self, number: u32) -> Option<UniqueId> {
        if self.made.load(Ordering::Acquire) != number {
            return None;
        }
        let mut id = UniqueId { internal: [0; 128] };
        for (word, bytes) in self.id.iter().zip(id.internal.as_chunks_mut().0) {
            *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
        }
        Some(id)
    }
}

/// State of a rank that hosts use.
#[repr(C)]
pub(super) struct Member {
    /// Process of the rank; 0 until it has joined.
    process: AtomicU32,
    device: AtomicI32,
    /// Whether the rank has destroyed the communicator.
    left: AtomicU32,
    /// Messages about splits, by the lowest bit of the split's number: no rank is two splits behind another.
    pub(super) splits: [Split; 2],
}

/// State of a communicator that hosts use.
#[repr(C)]
struct Hosts {
    /// Number of ranks of the communicator; 0 until the first rank has joined.
    ranks: AtomicU32,
    joined: AtomicU32,
    members: [Member; MAX_RANKS],
}

/// A counter on its own cache line.
#[repr(C, align(64))]
struct Counter(AtomicU64);

/// Part of the segment that the kernel uses.
#[repr(C)]
struct DeviceArea {
    aborted: [Counter; MAX_RANKS],
    published: [Counter; MAX_RANKS],
    messages: [[[Counter; 2]; MAX_RANKS]; MAX_RANKS],
}

/// Offset of [`DeviceArea`] in the segment, in bytes.
const HOST_BYTES: usize = 32 << 10;
const _: () = assert!(size_of::<Hosts>() <= HOST_BYTES && size_of::<Counter>() == 64);

/// Content of a unique id.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
struct SegmentPlace {
    mark: [u8; 8],
    process: u32,
    descriptor: i32,
    /// Inode of the file, which distinguishes it from a later file with the same descriptor.
    inode: u64,
    rest: [u64; 13],
}

const MARK: [u8; 8] = *b"rpd-rccl";
const _: () = assert!(size_of::<SegmentPlace>() == size_of::<UniqueId>());

/// Files of ids that this process has made, until their ranks have joined.
static FILES: Mutex<Vec<(u64, File)>> = Mutex::new(Vec::new());

/// Makes the id of a new communicator.
pub(super) fn make_id() -> Outcome<UniqueId> {
    let file = crate::hsa::shared::memory_file(HOST_BYTES);
    let failed = |error| Failure::system("making memory that ranks share", &error);
    let file = file.ok_or_else(|| failed(std::io::Error::last_os_error()))?;
    let inode = file.metadata().map_err(failed)?.ino();
    // Other processes open the descriptor by its number, and find out by the inode whether it is still the same file.
    let place = SegmentPlace {
        mark: MARK,
        process: std::process::id(),
        descriptor: file.as_raw_fd(),
        inode,
        rest: [0; 13],
    };
    let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    // Kept open until all ranks have joined, because the id names the descriptor.
    files.push((inode, file));
    // SAFETY: of equal size, and any bytes are an id.
    Ok(unsafe { std::mem::transmute::<SegmentPlace, UniqueId>(place) })
}

fn forget_file(inode: u64) {
    let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    files.retain(|(known, _)| *known != inode);
}

fn open(place: &SegmentPlace) -> Outcome<File> {
    if place.mark != MARK {
        return Err(Failure::argument(
            "the unique id is not one of this library's",
        ));
    }
    let path = format!("/proc/{}/fd/{}", place.process, place.descriptor);
    let file = OpenOptions::new().read(true).write(true).open(path);
    // The descriptor may have been closed and given out again.
    let is_it = |file: &File| file.metadata().is_ok_and(|data| data.ino() == place.inode);
    file.ok().filter(is_it).ok_or_else(|| {
        let text = format!(
            "the process {} that made the unique id has ended or cannot be accessed, or its communicator is complete",
            place.process
        );
        Failure::new(result::SYSTEM_ERROR, text)
    })
}

/// The shared memory of a communicator as one rank has mapped it.
pub(super) struct Segment {
    base: *mut c_void,
    bytes: usize,
    inode: u64,
    pub(super) rank: u32,
    pub(super) ranks: u32,
}

// SAFETY: it is a mapping for as long as it lives, and what others access of it is atomic.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

impl Segment {
    /// Maps the segment of an id and joins as `rank`, without waiting for the other ranks.
    pub(super) fn join(id: &UniqueId, ranks: u32, rank: u32, device: i32) -> Outcome<Self> {
        // SAFETY: of equal size, and any bytes are numbers.
        let place: SegmentPlace = unsafe { std::mem::transmute_copy(id) };
        let file = open(&place)?;
        let all = ranks as usize;
        let bytes = HOST_BYTES
            + size_of::<DeviceArea>()
            + all * 2 * STEP_BYTES
            + all * all * MESSAGES * MESSAGE_BYTES;
        // All ranks set the same length, unless they disagree about their number, which the next step finds.
        let length = file.metadata().map(|data| data.len()).unwrap_or(0);
        // The rank that comes first sets the size.
        if length < bytes as u64 {
            (file.set_len(bytes as u64))
                .map_err(|error| Failure::system("memory that ranks share", &error))?;
        }
        // SAFETY: a mapping of a file at an address of the kernel's choice touches nothing that exists.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            let error = std::io::Error::last_os_error();
            return Err(Failure::system("memory that ranks share", &error));
        }
        let segment = Self {
            base,
            bytes,
            inode: place.inode,
            rank,
            ranks,
        };
        // SAFETY: mapped until the segment is dropped, which unregisters it.
        // Registered before this rank counts as joined: others may launch kernels that write here as soon as it does.
        unsafe { hip::register(base, bytes)? };
        let (new, done) = (Ordering::AcqRel, Ordering::Acquire);
        let known = segment.hosts().ranks.compare_exchange(0, ranks, new, done);
        // Ranks that disagree about their number would overwrite each other's parts.
        if let Err(other) = known
            && other != ranks
        {
            let text = format!("{ranks} ranks, but others of this id have passed {other}");
            return Err(Failure::argument(text));
        }
        let me = segment.member(rank);
        let process = std::process::id();
        // A rank that is passed twice, by mistake, would never complete.
        if me.process.compare_exchange(0, process, new, done).is_err() {
            let text = format!("rank {rank} of this id is there already");
            return Err(Failure::new(result::INVALID_USAGE, text));
        }
        me.device.store(device, Ordering::Release);
        // Last, because `complete` reads what the members above contain.
        segment.hosts().joined.fetch_add(1, Ordering::AcqRel);
        Ok(segment)
    }

    /// Waits until all ranks have joined.
    pub(super) fn complete(&self) -> Outcome {
        self.wait(|| self.hosts().joined.load(Ordering::Acquire) == self.ranks)?;
        // All ranks have mapped the file, so that nobody opens it by its descriptor any more.
        forget_file(self.inode);
        let place = |rank| {
            // Ranks on one GPU would wait for each other's kernels, which may not run at the same time.
            let member = self.member(rank);
            let load = Ordering::Acquire;
            (member.process.load(load), member.device.load(load))
        };
        for rank in 0..self.ranks {
            if let Some(other) = (0..rank).find(|&other| place(other) == place(rank)) {
                let text = format!(
                    "duplicate GPU: ranks {other} and {rank} are both on GPU {} of process {}",
                    place(rank).1,
                    place(rank).0
                );
                return Err(Failure::new(result::INVALID_USAGE, text));
            }
        }
        Ok(())
    }

    /// Waits for a condition that other ranks make true.
    pub(super) fn wait(&self, mut condition: impl FnMut() -> bool) -> Outcome {
        while !condition() {
            // A rank whose process was killed would keep all others waiting for ever.
            let checked = self.check_peers();
            // A process that ended may have met the condition before.
            if checked.is_err() && !condition() {
                return checked;
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Fails if the process of a rank has ended without leaving the communicator.
    pub(super) fn check_peers(&self) -> Outcome {
        for rank in 0..self.ranks {
            let member = self.member(rank);
            let process = member.process.load(Ordering::Acquire);
            let gone =
                process != 0 && member.left.load(Ordering::Acquire) == 0 && has_ended(process);
            if gone {
                let text = format!("rank {rank}, process {process}, has ended");
                return Err(Failure::new(result::REMOTE_ERROR, text));
            }
        }
        Ok(())
    }

    fn hosts(&self) -> &Hosts {
        // SAFETY: the mapping begins with it; zeros are valid, and others access it atomically.
        unsafe { &*self.base.cast::<Hosts>() }
    }

    /// State of a rank that hosts use.
    pub(super) fn member(&self, rank: u32) -> &Member {
        &self.hosts().members[rank as usize]
    }

    /// Address of the part of the segment that the kernel uses.
    pub(super) fn address(&self) -> u64 {
        self.base as u64 + HOST_BYTES as u64
    }

    /// Marks this rank as done with the communicator.
    pub(super) fn leave(&self) {
        self.member(self.rank).left.store(1, Ordering::Release);
    }

    /// Ends the kernel of this rank, and kernels that it launches later.
    pub(super) fn abort(&self) {
        // SAFETY: it is within the mapping; others access it atomically.
        let shared = unsafe { &*(self.address() as *const DeviceArea) };
        shared.aborted[self.rank as usize]
            .0
            .store(1, Ordering::Release);
    }
}

/// Whether a process has ended, even if its parent has not waited for it.
fn has_ended(process: u32) -> bool {
    match std::fs::read_to_string(format!("/proc/{process}/stat")) {
        // The state follows the name, which is in parentheses and may contain some.
        Ok(text) => (text.rsplit_once(") ")).is_some_and(|(_, rest)| rest.starts_with(['Z', 'X'])),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // Of a segment that could not be registered there is nothing to undo.
        let _ = hip::unregister(self.base);
        // SAFETY: a mapping of this module to which no one refers any more.
        unsafe { libc::munmap(self.base, self.bytes) };
    }
}
