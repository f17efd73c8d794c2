//! The state of a thread: the stream that it writes to, and the HIP streams and regions that it is in.
//!
//! The thread-local itself is a raw pointer without destructor, so it can be read at any time of a thread's life; a
//! pthread key releases what it points to. A record made after that simply begins a new stream.
//!
//! A signal handler of the target may interrupt a writer of its thread, and make calls that are recorded. They go to
//! another stream of the thread, with a state of its own: one for each level of handlers that interrupt one another.

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
use super::graphs::Launch;
use super::guard::Service;
use super::process;
use super::thread_local::zeroed_thread_local;

/// Depth to which HIP calls with a stream nest at most; one or two in practice.
const NESTED_STREAMS: usize = 32;

/// States of a thread: one for calls of the program, the others for signal handlers that interrupted a writer of those
/// before. What handlers at a greater depth do is counted as dropped.
const LEVELS: usize = 4;

/// Numbers of the messages of regions ([`super::regions`]).
pub(super) type RegionNumbers = HashMap<Box<[u8]>, u32>;

/// The state of a thread.
pub(crate) struct Thread {
    /// Whether a writer of this thread is at work; set while a signal handler may interrupt it.
    busy: AtomicBool,
    /// Thread id in the kernel.
    tid: u32,
    /// The recording that the state belongs to: [`recording`] when it was made.
    recording: u32,
    /// Index of the state among those of the thread.
    level: usize,
    /// Calls and markers of this thread, and device work that the provider reports on it.
    pub(super) records: StreamWriter,
    /// What the records refer to, where their stream loses segments.
    facts: Option<StreamWriter>,
    /// HIP streams set by the calls this thread is in.
    streams: [u32; NESTED_STREAMS],
    stream_depth: usize,
    /// Launches of graphs that the thread is in, innermost last.
    pub(super) launches: Vec<Launch>,
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
    /// States for recording; null before the first record at each level.
    states: [Cell<*mut Thread>; LEVELS],
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
/// Number of the recordings of this process that have ended.
static ENDED: AtomicU32 = AtomicU32::new(0);

/// A number that the recordings of one process do not share: one that is attached to has several, one after the other.
#[inline]
pub(crate) fn recording() -> u32 {
    ENDED.load(Ordering::Relaxed)
}

/// Makes the states of all threads belong to a recording that has ended: each thread gives its own up when it would next
/// record something.
pub(crate) fn end_recording() {
    ENDED.fetch_add(1, Ordering::Relaxed);
}

/// A forked child has none of its parent's streams.
pub(crate) static FORK: ForkHook = ForkHook::new().in_child(forget_parent);

/// The calling thread's id in the kernel.
pub(crate) fn id() -> u32 {
    // SAFETY: gettid takes no arguments and cannot fail.
    unsafe { libc::gettid() }.cast_unsigned()
}

/// Lets `act` use this thread's state. `None` when this process is not recorded, or when signal handlers interrupted the
/// writers of all levels; the record is then counted as dropped.
#[inline]
pub(crate) fn with<T>(act: impl FnOnce(&mut Thread) -> T) -> Option<T> {
    match take(0) {
        Taken::Free(state) => Some(state.run(act)),
        Taken::Busy => with_nested(act),
        Taken::NotRecorded => None,
    }
}

/// Calls `act` with the state of the calling thread for a signal handler that interrupted a writer.
#[cold]
fn with_nested<T>(act: impl FnOnce(&mut Thread) -> T) -> Option<T> {
    for level in 1..LEVELS {
        match take(level) {
            Taken::Free(state) => return Some(state.run(act)),
            Taken::Busy => {}
            Taken::NotRecorded => return None,
        }
    }
    interrupted()
}

/// Result of [`take`].
enum Taken {
    /// No writer uses the state; it is marked as busy.
    Free(FreeState),
    /// A writer that a signal handler interrupted uses the state.
    Busy,
    /// The process is not recorded.
    NotRecorded,
}

/// A state of this thread that no other reference exists to, and that is marked as busy.
struct FreeState(*mut Thread);

impl FreeState {
    #[inline]
    fn run<T>(self, act: impl FnOnce(&mut Thread) -> T) -> T {
        // SAFETY: the pointer is a leaked box that only this thread uses, and that `release` takes away from the thread
        // before it frees it. `busy` was clear, so no reference exists on this thread, and the flag keeps it so.
        let _free = Free(unsafe { &raw const (*self.0).busy });
        // SAFETY: as above.
        act(unsafe { &mut *self.0 })
    }
}

#[inline]
fn take(level: usize) -> Taken {
    let mut pointer = local().states[level].get();
    if pointer.is_null() {
        match begin(level) {
            Some(made) => pointer = made,
            None => return Taken::NotRecorded,
        }
    }
    // SAFETY: as in `FreeState::run`. Only the atomic flag is touched until it is known that no other reference exists.
    let (busy, its_recording) = unsafe { (&(*pointer).busy, (*pointer).recording) };
    if busy.load(Ordering::Relaxed) {
        return Taken::Busy;
    }
    if its_recording != recording() {
        return renew(level, pointer);
    }
    busy.store(true, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    Taken::Free(FreeState(pointer))
}

/// Gives up a state that belongs to a recording that has ended, and takes one of the present recording.
#[cold]
fn renew(level: usize, pointer: *mut Thread) -> Taken {
    local().states[level].set(std::ptr::null_mut());
    // Calls that the thread is still in have the addresses of their records, which must not become those of others: the
    // state stays where it is then.
    if !frames().any() {
        // SAFETY: `begin` made the box, it is not busy, and with the thread's pointer gone no one else reaches it.
        drop(unsafe { Box::from_raw(pointer) });
    }
    match begin(level) {
        Some(_) => take(level),
        None => Taken::NotRecorded,
    }
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

/// Makes the meta stream hold the loss of a record where the stream itself has no segment. To be called when a record
/// could not be stored.
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

/// Writes a record of `len` bytes, which `fill` writes, to this thread's stream. False when it had to be dropped.
pub(super) fn append(len: usize, fill: impl FnOnce(&mut [u8])) -> bool {
    let written = with(|thread| thread.records.append(len, fill));
    if written == Some(false) {
        lost();
    }
    written.unwrap_or(false)
}

/// Writes a fact that other records refer to, where the meta stream cannot take it. False when it had to be dropped.
pub(super) fn append_fact(len: usize, fill: impl FnOnce(&mut [u8])) -> bool {
    let written = with(|thread| thread.facts().append(len, fill));
    if written == Some(false) {
        lost();
    }
    written.unwrap_or(false)
}

/// Makes a state of the calling thread.
#[cold]
fn begin(level: usize) -> Option<*mut Thread> {
    let Some(process) = process::current() else {
        process::lost_record();
        return None;
    };
    // A nested state has a stream of its own: the interrupted writer is in the middle of a record of the thread's.
    let tid = id();
    let name = match level {
        0 => format!("t{tid}"),
        _ => format!("t{tid}.s{level}"),
    };
    let directory = &process.directory;
    // Without a file before the first fact.
    let facts = directory
        .loses_segments()
        .then(|| StreamWriter::new(directory, format!("f{}", &name[1..]), stream::FACTS, tid));
    let thread = Box::new(Thread {
        busy: AtomicBool::new(false),
        tid,
        recording: recording(),
        level,
        records: StreamWriter::new(directory, name, stream::THREAD, tid).removable(),
        facts,
        streams: [0; NESTED_STREAMS],
        stream_depth: 0,
        launches: Vec::new(),
        regions: Vec::new(),
        region_numbers: RegionNumbers::default(),
        stacks: None,
    });
    let pointer = Box::into_raw(thread);
    local().states[level].set(pointer);
    // One key for all states of the thread: the destructor finds the others.
    if level == 0
        && let Some(key) = key()
    {
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

/// Ends the states of a thread that ends; `pointer` is the first.
unsafe extern "C" fn release(pointer: *mut c_void) {
    if local().states[0].get() != pointer.cast() {
        return;
    }
    for state in &local().states {
        let pointer = state.replace(std::ptr::null_mut());
        if !pointer.is_null() {
            static SERVICE: Service = Service::new("thread");
            // SAFETY: `begin` made the box, and with the thread's pointer gone no one else reaches it.
            SERVICE.run(|| drop(unsafe { Box::from_raw(pointer) }));
        }
    }
}

fn forget_parent() {
    // The boxes are leaked on purpose: the fork may have happened in a signal handler that interrupted a writer.
    for state in &local().states {
        state.set(std::ptr::null_mut());
    }
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

    /// The stream for what records refer to.
    pub(super) fn facts(&mut self) -> &mut StreamWriter {
        self.facts.as_mut().unwrap_or(&mut self.records)
    }

    /// Whether a signal handler interrupted a writer of this thread, and uses this state.
    pub(super) fn is_nested(&self) -> bool {
        self.level > 0
    }

    /// Thread id in the kernel.
    pub(crate) fn tid(&self) -> u32 {
        self.tid
    }

    /// Notes that a call on HIP stream `id` begins.
    pub(crate) fn push_stream(&mut self, id: u32) {
        if let Some(slot) = self.streams.get_mut(self.stream_depth) {
            *slot = id;
        }
        self.stream_depth += 1;
    }

    /// Notes that the innermost call on a HIP stream ends.
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
    fn thread_state_is_none_in_a_target_that_is_not_recorded() {
        assert!(std::env::var_os(rpd_spool::SPOOL_VARIABLE).is_none());
        assert!(with(|_| ()).is_none());
    }
}
