//! Asynchronous copies from pinned memory to the device: the host may change that memory after the call and before the copy
//! is made.
//!
//! With `--pinned exact`, and where work of the device under way may write the source, what the copy wrote is read back after it,
//! in its stream, into pinned memory of ours. Otherwise the memory is looked at again when the program has waited for the copy, and a change is noted.

use rpd_spool::capture::{NO_ARGUMENT, data_use, item};
use zerocopy::IntoBytes as _;

use super::content::Content;
use super::order::covers;
use super::ranges::Range;
use super::state::{CaptureState, STATE};
use super::{Begun, options, runtime};

/// The default stream of each thread, as a handle.
const PER_THREAD: u64 = 2;

/// A copy that the program has not waited for.
struct Upload {
    stream: u64,
    work: u64,
    /// Sequence number of the begin of the copy's call.
    copy: u64,
    source: Range,
    check: Check,
}

/// Method of finding out the bytes that the device read.
enum Check {
    /// Content when the call returned.
    Content(Content),
    /// Buffer into which the copy is read back.
    ReadBack(Buffer),
}

/// Pinned memory of the collector.
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
    /// Bytes of all pinned memory of the collector.
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

/// Notes that an asynchronous copy from `source` was added to `stream`, which writes `written` on the device.
pub(super) fn begin(
    begun: &Begun,
    arguments: &[u8],
    stream: u64,
    source: &Range,
    written: Option<Range>,
) {
    let Some(options) = options().filter(|options| options.data) else {
        return;
    };
    let is_pinned = STATE.with(|state| state.is_pinned(source.address, source.span()));
    if source.bytes() == 0 || is_pinned != Some(true) {
        return;
    }
    // Work before may still write the source: what the host finds there is then not what the copy reads.
    let follows_write = STATE.with(|state| {
        let is_used = state.memory_at(source.address);
        let is_used = is_used.is_some_and(|(_, memory)| memory.used_by.is_some());
        is_used || !state.order.surely_written_in(source).is_empty()
    });
    let read_back = written
        .filter(|_| options.pinned_exact || follows_write == Some(true))
        .and_then(|written| read_back(begun, arguments, &written, options.staging));
    let check = match read_back {
        Some(buffer) => Check::ReadBack(buffer),
        None => match Content::from_range(source) {
            Some(content) => Check::Content(content),
            None => return,
        },
    };
    // The number of the work decides when the check is due: after the copy, or after its reading back.
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

/// Adds a copy of the memory that the call wrote to memory of the collector, where its rows follow one another. `None`
/// when that is not possible, or more than `most` bytes would be needed.
fn read_back(begun: &Begun, arguments: &[u8], written: &Range, most: u64) -> Option<Buffer> {
    let size = written.bytes();
    let known = STATE.with(|state| {
        let found = state.uploads.reuse(size);
        let room = found.is_some() || state.uploads.allocated + size <= most;
        room.then(|| {
            // Counted under the lock before it is allocated, so that two threads do not exceed the limit together.
            if found.is_none() {
                state.uploads.allocated += size;
            }
            found
        })
    });
    let buffer = match known.flatten()? {
        Some(buffer) => buffer,
        None => match runtime::host_allocate(size) {
            Some(address) => Buffer { address, size },
            None => {
                STATE.with(|state| state.uploads.allocated -= size);
                return None;
            }
        },
    };
    // The copy is added by the runtime's usual function, whose null stream is not the thread's own.
    let stream = match begun.raw_stream(arguments) {
        0 if begun.operation.name().ends_with("_spt") => PER_THREAD,
        stream => stream,
    };
    let is_flat = written.pieces().count() == 1;
    // SAFETY: the buffer has room, and is in no other use until the copy is complete.
    let is_added = unsafe {
        if is_flat {
            runtime::copy_to_host(buffer.address, written.address, size, stream)
        } else {
            runtime::copy_box_to_host(dense_copy(written, buffer.address), stream)
        }
    };
    // The copy was not added, so that its memory is free for the next one.
    if !is_added {
        STATE.with(|state| state.uploads.free.push(buffer));
        return None;
    }
    Some(buffer)
}

/// `hipMemcpy3DParms` of a copy of `from` to `to` without gaps between rows.
fn dense_copy(from: &Range, to: u64) -> [u64; runtime::COPY_3D_WORDS] {
    let mut words = [0; runtime::COPY_3D_WORDS];
    words[4..8].copy_from_slice(&[from.address, from.pitch, from.width, from.slice_rows]);
    words[12..16].copy_from_slice(&[to, from.width, from.width, from.rows]);
    words[16..19].copy_from_slice(&[from.width, from.rows, from.slices]);
    words
}

/// Work of the device that may write memory of the host is about to be added, in `ranges`. Changes that the host has made
/// to the sources of pending copies there are noted now, because later they cannot be distinguished from those of the device.
pub(super) fn device_writes(
    begun: &mut Begun,
    ranges: impl FnOnce(&mut CaptureState) -> Vec<Range>,
) {
    let overlapping = STATE.with(|state| {
        if state.uploads.pending.is_empty() {
            return Vec::new();
        }
        let ranges = ranges(state);
        let written = |upload: &mut Upload| {
            matches!(upload.check, Check::Content(_))
                && ranges.iter().any(|range| range.overlaps(&upload.source))
        };
        state.uploads.pending.extract_if(.., written).collect()
    });
    for upload in overlapping.unwrap_or_default() {
        note_change(begun, &upload);
    }
}

/// Notes that the host has changed the source of a copy, where it has.
fn note_change(begun: &mut Begun, upload: &Upload) {
    if let Check::Content(before) = upload.check
        && Content::from_range(&upload.source).is_some_and(|now| now != before)
    {
        begun
            .items
            .add(item::CHANGED, NO_ARGUMENT, upload.copy.as_bytes());
    }
}

/// Takes the data that the device read, or notes the changes of the host, for copies in `covered`: the program has
/// waited for them.
pub(super) fn take_results(begun: &mut Begun, covered: &[(u64, u64)]) {
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
            Check::Content(_) => note_change(begun, &upload),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinned_buffer_that_fits_best_is_used_again() {
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
