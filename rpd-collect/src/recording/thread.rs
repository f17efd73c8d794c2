//! The state of a thread: the stream that it writes to, and the HIP streams and regions that it is in.
//!
//! The thread-local itself is a raw pointer without destructor, so it can be read at any time of a thread's life; a
//! pthread key releases what it points to. A record made after that simply begins a new stream.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, compiler_fence};

use rpd_spool::format::stream;
use rpd_spool::writer::StreamWriter;
use rpd_stacks::ThreadStacks;
use zerocopy::{FromZeros, Immutable, IntoBytes};

use super::fork::ForkHook;
use super::frames::Frames;
use super::guard::Service;
use super::process;
use super::thread_local::zeroed_thread_local;

/// Depth to which HIP calls with a stream nest at most; one or two in practice.
const NESTED_STREAMS: usize = 32;

/// Numbers of the messages of regions ([`super::regions`]).
pub(super) type RegionNumbers = HashMap<Box<[u8]>, u32>;

/// The state of a thread.
pub(crate) struct Thread {
    /// A writer of this thread is at work; set while a signal handler may interrupt it.
    busy: AtomicBool,
    /// Thread id in the kernel.
    tid: u32,
    /// Calls and markers of this thread, and device work that the provider reports on it.
    pub(super) records: StreamWriter,
    /// HIP streams set by the calls this thread is in.
    streams: [u32; NESTED_STREAMS],
    stream_depth: usize,
    /// Regions that rename kernels, innermost last.
    pub(super) regions: Vec<u32>,
    /// Numbers of the messages of this thread's regions.
    pub(super) region_numbers: RegionNumbers,
    /// State kept between stacks; `None` before the first.
    pub(super) stacks: Option<Box<ThreadStacks>>,
}

/// State of a thread that can be used at any time of its life.
#[derive(FromZeros)]
struct ThreadState {
    /// State for recording; null before the first record.
    state: Cell<*mut Thread>,
    frames: Frames,
}

zeroed_thread_local! {
    fn local() -> &ThreadState, "rpd_collect_thread"
}

/// The calls that this thread is in.
#[inline(always)]
pub(super) fn frames() -> &'static Frames {
    &local().frames
}

/// The pthread key plus 1; 0 while there is none.
static KEY: AtomicU32 = AtomicU32::new(0);
/// A forked child has none of its parent's streams.
pub(crate) static FORK: ForkHook = ForkHook::new().in_child(forget_parent);

/// The calling thread's id in the kernel.
pub(crate) fn id() -> u32 {
    // SAFETY: gettid takes no arguments and cannot fail.
    unsafe { libc::gettid() }.cast_unsigned()
}

/// Lets `act` use this thread's state. `None` when this process is not recorded, or when a signal handler interrupted a
/// writer of this thread; the record is then counted as dropped.
#[inline]
pub(crate) fn with<T>(act: impl FnOnce(&mut Thread) -> T) -> Option<T> {
    let mut pointer = local().state.get();
    if pointer.is_null() {
        pointer = begin()?;
    }
    // SAFETY: the pointer is a leaked box that only this thread uses, and that `release` takes away from the thread before
    // it frees it. Only the atomic flag is touched until it is known that no other reference exists.
    let busy = unsafe { &(*pointer).busy };
    if busy.load(Ordering::Relaxed) {
        return interrupted();
    }
    busy.store(true, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    let _free = Free(busy);
    // SAFETY: as above; `busy` was clear, so no reference exists on this thread, and the flag keeps it so.
    Some(act(unsafe { &mut *pointer }))
}

/// Clears the flag also when a panic passes.
struct Free(*const AtomicBool);

impl Drop for Free {
    #[inline]
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        // SAFETY: the flag lives in the leaked box, which outlives every `with`.
        unsafe { (*self.0).store(false, Ordering::Relaxed) };
    }
}

#[cold]
fn interrupted<T>() -> Option<T> {
    if let Some(process) = process::existing() {
        process.directory.drop_records(1);
    }
    lost();
    None
}

/// To be called when a record could not be stored: has the meta stream hold the loss where the stream itself has no segment.
#[cold]
pub(crate) fn lost() {
    if let Some(process) = process::existing() {
        process.publish_drops();
    }
}

/// Writes a record of fixed size to this thread's stream.
pub(crate) fn write<T: IntoBytes + Immutable>(record: &T) {
    append(size_of::<T>(), |bytes| {
        bytes.copy_from_slice(record.as_bytes());
    });
}

/// Writes a record of `len` bytes, which `fill` writes, to this thread's stream.
pub(super) fn append(len: usize, fill: impl FnOnce(&mut [u8])) {
    let written = with(|thread| thread.records.append(len, fill));
    if written == Some(false) {
        lost();
    }
}

/// Makes the calling thread's state.
#[cold]
fn begin() -> Option<*mut Thread> {
    let Some(process) = process::current() else {
        process::lost_record();
        return None;
    };
    let tid = id();
    let thread = Box::new(Thread {
        busy: AtomicBool::new(false),
        tid,
        records: StreamWriter::new(&process.directory, format!("t{tid}"), stream::THREAD, tid),
        streams: [0; NESTED_STREAMS],
        stream_depth: 0,
        regions: Vec::new(),
        region_numbers: RegionNumbers::default(),
        stacks: None,
    });
    let pointer = Box::into_raw(thread);
    local().state.set(pointer);
    if let Some(key) = key() {
        // SAFETY: the key was made by `key`.
        unsafe { libc::pthread_setspecific(key, pointer.cast()) };
    }
    Some(pointer)
}

fn key() -> Option<libc::pthread_key_t> {
    let known = KEY.load(Ordering::Acquire);
    if known != 0 {
        return Some(known - 1);
    }
    let mut made: libc::pthread_key_t = 0;
    // SAFETY: `made` is valid, and `release` stays loaded as long as the target runs.
    if unsafe { libc::pthread_key_create(&mut made, Some(release)) } != 0 {
        return None;
    }
    match KEY.compare_exchange(0, made + 1, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => Some(made),
        Err(other) => {
            // SAFETY: made above and not shared.
            unsafe { libc::pthread_key_delete(made) };
            Some(other - 1)
        }
    }
}

/// Ends the state of a thread that ends.
unsafe extern "C" fn release(pointer: *mut c_void) {
    let pointer = pointer.cast::<Thread>();
    if local().state.get() == pointer {
        local().state.set(std::ptr::null_mut());
        static SERVICE: Service = Service::new("thread");
        // SAFETY: `begin` made the box, and with the thread's pointer gone no one else reaches it.
        SERVICE.run(|| drop(unsafe { Box::from_raw(pointer) }));
    }
}

fn forget_parent() {
    // The box is leaked on purpose: the fork may have happened in a signal handler that interrupted a writer.
    local().state.set(std::ptr::null_mut());
    if let Some(key) = KEY.load(Ordering::Acquire).checked_sub(1) {
        // SAFETY: the key exists.
        unsafe { libc::pthread_setspecific(key, std::ptr::null()) };
    }
}

impl Thread {
    /// Region and HIP stream that work submitted now belongs to; 0 for none.
    pub(crate) fn region_and_stream(&self) -> (u32, u32) {
        (self.regions.last().copied().unwrap_or(0), self.stream())
    }

    /// Thread id in the kernel.
    pub(crate) fn tid(&self) -> u32 {
        self.tid
    }

    /// A call on HIP stream `id` begins.
    pub(crate) fn push_stream(&mut self, id: u32) {
        if let Some(slot) = self.streams.get_mut(self.stream_depth) {
            *slot = id;
        }
        self.stream_depth += 1;
    }

    /// The innermost call on a HIP stream ends.
    pub(crate) fn pop_stream(&mut self) {
        self.stream_depth = self.stream_depth.saturating_sub(1);
    }

    /// The HIP stream of the innermost call that has one; 0 when none has.
    fn stream(&self) -> u32 {
        match self.stream_depth.checked_sub(1) {
            Some(top) => self.streams[top.min(NESTED_STREAMS - 1)],
            None => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_is_not_recorded_has_no_threads() {
        assert!(std::env::var_os(rpd_spool::SPOOL_VARIABLE).is_none());
        assert!(with(|_| ()).is_none());
    }
}
