//! Segments that are made before a stream needs them.
//!
//! The system calls of a thread that records are nearly all for new segments: the kernel finds memory for the file and clears
//! it. Streams that have come to segments of the largest size request them from the owner of the process's directory, one of whose
//! threads makes segments ahead ([`super::writer::SpoolDirectory::make_spares`]). A stream that finds none makes one itself.

use std::ffi::{CStr, CString};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use super::mapping::Mapping;

/// Spare segments that a process has at most.
const MOST: usize = 16;

/// A segment that no stream has.
struct Spare {
    mapping: Mapping,
    file: CString,
}

/// The spare segments of a directory.
#[derive(Debug)]
pub(super) struct Spares {
    slots: [AtomicPtr<Spare>; MOST],
    /// Number of segments to keep ready.
    wanted: AtomicUsize,
    /// Number of the next file.
    next: AtomicU32,
    /// Whether no more spare segments are made.
    closed: AtomicBool,
    /// Called when spare segments are needed.
    request: OnceLock<fn()>,
}

impl Spares {
    pub(super) fn new() -> Spares {
        Spares {
            slots: [const { AtomicPtr::new(ptr::null_mut()) }; MOST],
            wanted: AtomicUsize::new(0),
            next: AtomicU32::new(0),
            closed: AtomicBool::new(false),
            request: OnceLock::new(),
        }
    }

    /// Sets the function that is called when spare segments are needed; streams use such segments from then on. Only
    /// the first call counts.
    pub(super) fn on_request(&self, request: fn()) {
        let _ = self.request.set(request);
    }

    /// A stream will need a segment of the largest size next.
    pub(super) fn request(&self) {
        if let Some(request) = self.request.get() {
            self.wanted.fetch_max(1, Ordering::Relaxed);
            request();
        }
    }

    /// A spare segment, whose file is then called `file`.
    pub(super) fn take(&self, file: &CStr) -> Option<Mapping> {
        self.request.get()?;
        let found = self.slots.iter().find_map(take);
        let Some(spare) = found else {
            // More streams than before grow at the same time.
            let more = |wanted| (wanted < MOST).then_some(wanted + 1);
            let _ = self
                .wanted
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
            return None;
        };
        // SAFETY: both paths are NUL-terminated.
        match unsafe { libc::rename(spare.file.as_ptr(), file.as_ptr()) } {
            0 => Some(spare.mapping),
            _ => {
                spare.remove();
                None
            }
        }
    }

    /// Makes as many as are needed, of `len` bytes, in files that `path` names by number. Only one thread at a time may call it.
    pub(super) fn make(&self, len: usize, path: impl Fn(u32) -> Option<CString>) {
        let wanted = self.wanted.load(Ordering::Relaxed);
        for slot in self.slots.iter().take(wanted) {
            if self.closed.load(Ordering::Acquire) || !slot.load(Ordering::Relaxed).is_null() {
                continue;
            }
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(file) = path(number) else { return };
            // A stream that needs a segment will make it, or drop records and count them.
            let Ok(mapping) = Mapping::create(&file, len, true) else {
                return;
            };
            let spare = Box::new(Spare { mapping, file });
            slot.store(Box::into_raw(spare), Ordering::Release);
        }
        if self.closed.load(Ordering::Acquire) {
            self.remove();
        }
    }

    /// Removes all, and makes no more.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.remove();
    }

    fn remove(&self) {
        self.slots.iter().filter_map(take).for_each(Spare::remove);
    }
}

/// Takes the segment out of a slot.
fn take(slot: &AtomicPtr<Spare>) -> Option<Spare> {
    if slot.load(Ordering::Relaxed).is_null() {
        return None;
    }
    let spare = slot.swap(ptr::null_mut(), Ordering::Acquire);
    // SAFETY: null, or a box that `make` put there and that no one else has taken.
    (!spare.is_null()).then(|| *unsafe { Box::from_raw(spare) })
}

impl Spare {
    fn remove(self) {
        // SAFETY: the path is NUL-terminated.
        unsafe { libc::unlink(self.file.as_ptr()) };
    }
}
