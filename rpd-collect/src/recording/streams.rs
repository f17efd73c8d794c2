//! Numbers of HIP streams: work with one number runs in the order in which it was submitted, on one device.
//!
//! The null stream is 0, and so is `hipStreamLegacy`, which is another name for it. `hipStreamPerThread`, and the null
//! stream of functions whose names end in `_spt`, are a stream of each thread: the streams of two threads have two numbers.

use std::cell::Cell;
use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use zerocopy::FromZeros;

use super::fork::ForkHook;
use super::thread_local::zeroed_thread_local;

/// Value `hipStreamLegacy`.
const LEGACY: u64 = 1;
/// Value `hipStreamPerThread`.
const PER_THREAD: u64 = 2;

/// The numbers of streams by handle.
struct Numbers(UnsafeCell<Option<HashMap<u64, u32>>>);

// SAFETY: only touched with the lock of [`FORK`] held.
unsafe impl Sync for Numbers {}

static NUMBERS: Numbers = Numbers(UnsafeCell::new(None));
pub(super) static FORK: ForkHook = ForkHook::new();
static NEXT: AtomicU64 = AtomicU64::new(1);
/// Counter that changes when a stream is destroyed, whose handle may then be that of another.
static AGE: AtomicU64 = AtomicU64::new(1);

/// A stream, its number, and the age at which it had that.
#[derive(Clone, Copy, FromZeros)]
struct KnownStream {
    handle: u64,
    id: u32,
    age: u64,
}

/// Streams of the calling thread.
#[derive(FromZeros)]
struct ThreadStreams {
    /// The stream that the thread used last.
    last: Cell<KnownStream>,
    /// Number of the thread's own default stream; 0 before it is used.
    own: Cell<u32>,
    /// Number of calls in progress whose null stream is the thread's own.
    own_calls: Cell<u32>,
}

zeroed_thread_local! {
    fn local() -> &ThreadStreams, "rpd_collect_streams"
}

/// The number of a stream; one that has none gets the next.
#[inline]
pub(crate) fn number(stream: u64) -> u32 {
    match stream {
        0 if local().own_calls.get() > 0 => number_of_thread(),
        0 | LEGACY => 0,
        PER_THREAD => number_of_thread(),
        handle => number_of_handle(handle),
    }
}

/// The number of the calling thread's own default stream.
pub(crate) fn number_of_thread() -> u32 {
    let own = &local().own;
    if own.get() == 0 {
        own.set(next());
    }
    own.get()
}

/// Begins a call whose null stream is the thread's own.
pub(crate) fn enter_own() {
    let calls = &local().own_calls;
    calls.set(calls.get() + 1);
}

/// Ends a call whose null stream is the thread's own.
pub(crate) fn leave_own() {
    let calls = &local().own_calls;
    calls.set(calls.get().saturating_sub(1));
}

fn next() -> u32 {
    NEXT.fetch_add(1, Ordering::Relaxed) as u32
}

#[inline]
fn number_of_handle(handle: u64) -> u32 {
    let last = &local().last;
    let age = AGE.load(Ordering::Acquire);
    let known = last.get();
    if (known.handle, known.age) == (handle, age) {
        return known.id;
    }
    let id = look_up(handle);
    last.set(KnownStream { handle, id, age });
    id
}

#[cold]
fn look_up(stream: u64) -> u32 {
    let Some(_guard) = FORK.lock() else { return 0 };
    // SAFETY: the lock is held.
    let numbers = unsafe { &mut *NUMBERS.0.get() }.get_or_insert_default();
    *numbers.entry(stream).or_insert_with(next)
}

/// Forgets a stream that was destroyed: its handle may be that of another from then on.
pub(crate) fn destroyed(stream: u64) {
    if let Some(_guard) = FORK.lock() {
        // SAFETY: the lock is held.
        if let Some(numbers) = unsafe { &mut *NUMBERS.0.get() } {
            numbers.remove(&stream);
        }
    }
    AGE.fetch_add(1, Ordering::AcqRel);
}

/// Forgets all streams, for another recording of a process that is attached to: those that were destroyed meanwhile are
/// not known.
pub(super) fn forget() {
    if let Some(_guard) = FORK.lock() {
        // SAFETY: the lock is held.
        drop(unsafe { &mut *NUMBERS.0.get() }.take());
    }
    AGE.fetch_add(1, Ordering::AcqRel);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_number_is_not_kept_after_destruction() {
        let first = number(0x1000);
        assert_ne!(first, number(0x2000));
        assert_eq!(number(0x1000), first);
        destroyed(0x1000);
        assert_ne!(number(0x1000), first);
    }

    #[test]
    fn legacy_stream_has_the_number_of_the_null_stream() {
        assert_eq!((number(0), number(LEGACY)), (0, 0));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test")]
    fn per_thread_default_streams_have_numbers_of_their_own() {
        let use_it = || {
            let own = number(PER_THREAD);
            assert_eq!(number(PER_THREAD), own);
            enter_own();
            assert_eq!((number(0), number(LEGACY)), (own, 0));
            leave_own();
            assert_eq!(number(0), 0);
            own
        };
        let mine = use_it();
        let other = std::thread::spawn(use_it).join().expect("it returns");
        assert_ne!(mine, other);
        assert!(mine != 0 && other != 0);
    }
}
