//! Buffers of records: CUPTI requests them, and returns them with records of complete work on a thread of its own.

use std::alloc::{Layout, alloc, dealloc};
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use cupti_sys::result;
use rpd_spool::writer::now;

use super::{cupti, work};
use crate::recording::fork::ForkHook;
use crate::recording::guard::Service;

static SERVICE: Service = Service::new("CUDA's device work");

/// Bytes of a buffer. With small ones CUPTI's thread falls behind, and with one for each thread large ones take much memory.
const SIZE: usize = 512 << 10;
/// Buffers that are kept for further requests.
const KEPT: usize = 16;
/// Layout of a buffer; CUPTI demands 8 bytes.
const LAYOUT: Layout = match Layout::from_size_align(SIZE, 64) {
    Ok(layout) => layout,
    Err(_) => panic!("the size is a multiple of the alignment"),
};

/// Buffers that CUPTI has returned.
struct Free(UnsafeCell<Vec<*mut u8>>);

// SAFETY: only touched with the lock of [`FORK`] held.
unsafe impl Sync for Free {}

static FREE: Free = Free(UnsafeCell::new(Vec::new()));
/// A child may use its parent's free buffers: they are its own memory.
pub(super) static FORK: ForkHook = ForkHook::new();

/// Buffers that were delivered.
pub(super) static DELIVERED: AtomicU64 = AtomicU64::new(0);
/// Records that CUPTI could not store.
pub(super) static DROPPED: AtomicU64 = AtomicU64::new(0);
/// What is added to CUPTI's times where it cannot use our clock.
static OFFSET: AtomicI64 = AtomicI64::new(0);

/// A time of CUPTI's on the clock of records; 0 stays what it is.
pub(super) fn time(time: u64) -> u64 {
    match time {
        0 => 0,
        time => time.wrapping_add_signed(OFFSET.load(Ordering::Relaxed)),
    }
}

/// Gives CUPTI a buffer; none where there is no memory for one.
///
/// # Safety
///
/// Called by CUPTI, with places to write to.
pub(super) unsafe extern "C" fn requested(
    buffer: *mut *mut u8,
    size: *mut usize,
    records: *mut usize,
) {
    let kept = SERVICE.run(|| {
        let _guard = FORK.lock()?;
        // SAFETY: the lock is held.
        unsafe { &mut *FREE.0.get() }.pop()
    });
    // SAFETY: the layout has a size.
    let found = kept.flatten().unwrap_or_else(|| unsafe { alloc(LAYOUT) });
    // SAFETY: by the contract of this function.
    unsafe {
        *buffer = found;
        *size = if found.is_null() { 0 } else { SIZE };
        *records = 0;
    }
}

/// Takes the records of a buffer, and the buffer.
///
/// # Safety
///
/// Called by CUPTI, with a buffer from [`requested`] that it uses no longer, and the number of bytes that it has filled.
pub(super) unsafe extern "C" fn completed(
    context: *mut c_void,
    stream: u32,
    buffer: *mut u8,
    _size: usize,
    valid: usize,
) {
    if buffer.is_null() {
        return;
    }
    SERVICE.on_event(|| {
        let Some(functions) = cupti::functions() else {
            return;
        };
        DELIVERED.fetch_add(1, Ordering::Relaxed);
        cupti::offset(&OFFSET, now);
        let mut record: *mut c_void = std::ptr::null_mut();
        // SAFETY: the buffer is CUPTI's, and has that many bytes of records.
        while unsafe { (functions.next_record)(buffer, valid, &raw mut record) } == result::SUCCESS
            && !record.is_null()
        {
            // SAFETY: a record of the buffer.
            unsafe { work::take(record.cast::<u8>()) };
        }
        let mut dropped = 0;
        // SAFETY: the number is written; the other arguments are those of this call.
        if unsafe { (functions.dropped_records)(context, stream, &raw mut dropped) }
            == result::SUCCESS
        {
            DROPPED.fetch_add(dropped as u64, Ordering::Relaxed);
        }
    });
    let kept = SERVICE.run(|| {
        let Some(_guard) = FORK.lock() else {
            return false;
        };
        // SAFETY: the lock is held.
        let free = unsafe { &mut *FREE.0.get() };
        let keep = free.len() < KEPT;
        if keep {
            free.push(buffer);
        }
        keep
    });
    if kept != Some(true) {
        // SAFETY: it was made by `requested`, and nothing refers to it any more.
        unsafe { dealloc(buffer, LAYOUT) };
    }
}
