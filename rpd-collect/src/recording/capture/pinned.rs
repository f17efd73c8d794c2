//! Asynchronous copies from pinned memory to the device: the host may change that memory after the call and before the copy
//! is made.
//!
//! With `--pinned exact` what the copy wrote is read back after it, in its stream, into pinned memory of ours. Otherwise the
//! memory is looked at again when the program has waited for the copy, and a change is noted.

use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

use rpd_spool::capture::{NO_ARGUMENT, data_use, item};
use zerocopy::IntoBytes as _;

use super::content::Content;
use super::order::covers;
use super::ranges::Range;
use super::state::STATE;
use super::{Begun, options};

/// `hipHostMalloc` and `hipMemcpyAsync` of the runtime; null while they are not known.
static ALLOCATE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static COPY: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// `hipMemcpyDeviceToHost`.
const DEVICE_TO_HOST: u32 = 2;
/// The default stream of each thread, as a handle.
const PER_THREAD: u64 = 2;

/// Sets the runtime's `hipHostMalloc` and `hipMemcpyAsync`.
pub(crate) fn set_copy_functions(allocate: *mut c_void, copy: *mut c_void) {
    ALLOCATE.store(allocate, Ordering::Release);
    COPY.store(copy, Ordering::Release);
}

/// A copy that the program has not waited for.
struct Upload {
    stream: u64,
    work: u64,
    /// The begin of the call.
    copy: u64,
    source: Range,
    check: Check,
}

/// Method of finding out what the device read.
enum Check {
    /// Content when the call returned.
    Content(Content),
    /// Buffer into which the copy is read back.
    ReadBack(Buffer),
}

/// Pinned memory of ours.
#[derive(Clone, Copy)]
struct Buffer {
    address: u64,
    size: u64,
}

/// Copies from pinned memory that are under way, and memory to read them back to.
#[derive(Default)]
pub(super) struct Uploads {
    pending: Vec<Upload>,
    free: Vec<Buffer>,
    /// Bytes of all our memory.
    allocated: u64,
}

impl Uploads {
    /// Memory of at least `size` bytes that is not in use.
    fn reuse(&mut self, size: u64) -> Option<Buffer> {
        let mut fitting: Vec<usize> = (0..self.free.len())
            .filter(|index| self.free[*index].size >= size)
            .collect();
        fitting.sort_by_key(|index| self.free[*index].size);
        fitting.first().map(|index| self.free.swap_remove(*index))
    }
}

/// An asynchronous copy from `source` was added to `stream`.
pub(super) fn begin(begun: &Begun, arguments: &[u8], stream: u64, source: &Range) {
    if !options().is_some_and(|options| options.data) || source.pieces().count() != 1 {
        return;
    }
    let size = source.bytes();
    let pinned = STATE.with(|state| state.is_pinned(source.address, size));
    if pinned != Some(true) {
        return;
    }
    let read_back = match options() {
        Some(options) if options.pinned_exact => read_back(begun, arguments, size, options.staging),
        _ => None,
    };
    let check = match read_back {
        Some(buffer) => Check::ReadBack(buffer),
        None => match Content::of_checked(source.address, size) {
            Some(content) => Check::Content(content),
            None => return,
        },
    };
    STATE.with(|state| {
        let work = match check {
            Check::ReadBack(_) => state.order.enqueue(stream),
            Check::Content(_) => state.order.work(stream),
        };
        state.uploads.pending.push(Upload {
            stream,
            work,
            copy: begun.entry,
            source: *source,
            check,
        });
    });
}

/// Adds a copy of what the call wrote, to memory of ours. `None` when that is not possible, or more than `most` bytes would be
/// needed.
fn read_back(begun: &Begun, arguments: &[u8], size: u64, most: u64) -> Option<Buffer> {
    type Allocate = unsafe extern "C" fn(*mut u64, usize, u32) -> u32;
    type Copy = unsafe extern "C" fn(u64, u64, usize, u32, u64) -> u32;
    let (allocate, copy) = (
        ALLOCATE.load(Ordering::Acquire),
        COPY.load(Ordering::Acquire),
    );
    let from = begun.argument(arguments, "dst");
    if allocate.is_null() || copy.is_null() || from == 0 {
        return None;
    }
    let known = STATE.with(|state| {
        let found = state.uploads.reuse(size);
        let room = found.is_some() || state.uploads.allocated + size <= most;
        room.then(|| {
            if found.is_none() {
                state.uploads.allocated += size;
            }
            found
        })
    });
    let buffer = match known.flatten()? {
        Some(buffer) => buffer,
        None => {
            let mut address = 0;
            // SAFETY: `set_copy_functions` was given functions of these types; the runtime stores an address.
            let result = unsafe {
                let allocate = std::mem::transmute::<*mut c_void, Allocate>(allocate);
                allocate(&mut address, size as usize, 0)
            };
            if result != 0 || address == 0 {
                STATE.with(|state| state.uploads.allocated -= size);
                return None;
            }
            Buffer { address, size }
        }
    };
    let stream = match begun.raw_stream(arguments) {
        0 if begun.operation.name().ends_with("_spt") => PER_THREAD,
        stream => stream,
    };
    // SAFETY: as above; the buffer has room, and is in no other use until the copy is complete.
    let result = unsafe {
        let copy = std::mem::transmute::<*mut c_void, Copy>(copy);
        copy(buffer.address, from, size as usize, DEVICE_TO_HOST, stream)
    };
    if result != 0 {
        STATE.with(|state| state.uploads.free.push(buffer));
        return None;
    }
    Some(buffer)
}

/// The program has waited for what `covered` says: takes what the device read, or notes what the host has changed.
pub(super) fn settle(begun: &mut Begun, covered: &[(u64, u64)]) {
    let done = STATE.with(|state| {
        let pending = &mut state.uploads.pending;
        pending
            .extract_if(.., |upload| covers(covered, upload.stream, upload.work))
            .collect::<Vec<_>>()
    });
    for upload in done.unwrap_or_default() {
        match upload.check {
            Check::ReadBack(buffer) => {
                let read = Range::flat(buffer.address, upload.source.bytes());
                begun
                    .items
                    .add_data(&read, data_use::DEVICE_READ, upload.copy, false);
                STATE.with(|state| state.uploads.free.push(buffer));
            }
            Check::Content(before) => {
                let (address, size) = (upload.source.address, upload.source.bytes());
                let now = Content::of_checked(address, size);
                if now.is_some_and(|now| now != before) {
                    begun
                        .items
                        .add(item::CHANGED, NO_ARGUMENT, upload.copy.as_bytes());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_memory_that_fits_is_used_again() {
        let mut uploads = Uploads::default();
        for size in [300, 100, 200] {
            uploads.free.push(Buffer {
                address: size,
                size,
            });
        }
        let mut sizes = [150, 100, 50, 300].map(|size| uploads.reuse(size).map(|one| one.size));
        assert_eq!(sizes, [Some(200), Some(100), Some(300), None]);
        sizes.reverse();
        assert!(uploads.free.is_empty());
    }
}
