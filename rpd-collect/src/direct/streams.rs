//! HIP streams: numbers for them, and which one a call concerns.

use std::cell::Cell;
use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use zerocopy::FromZeros;

use crate::recording::fork::ForkHook;
use crate::recording::thread_local::zeroed_thread_local;

/// Effect of a call on its HIP stream, with the offset in the argument struct of the handle, or of
/// the pointer to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    /// The call makes the stream that the pointer at this offset points to.
    Create(u16),
    /// The call destroys the stream at this offset.
    Destroy(u16),
    /// The call works on the stream at this offset.
    Set(u16),
}

include!(concat!(env!("OUT_DIR"), "/streams.rs"));

/// Effect of a function of the HIP runtime's table on a stream.
pub(super) fn of_operation(slot: usize) -> Option<Stream> {
    STREAMS
        .binary_search_by_key(&slot, |(slot, _)| usize::from(*slot))
        .ok()
        .map(|index| STREAMS[index].1)
}

/// The numbers of streams by handle; 0 is the null stream's.
struct Numbers(UnsafeCell<Option<HashMap<u64, u32>>>);

// SAFETY: only touched with the lock of [`FORK`] held.
unsafe impl Sync for Numbers {}

static NUMBERS: Numbers = Numbers(UnsafeCell::new(None));
static FORK: ForkHook = ForkHook::new();
static NEXT: AtomicU64 = AtomicU64::new(1);
/// Changes when a stream is destroyed, whose handle may then be that of another.
static AGE: AtomicU64 = AtomicU64::new(1);

/// A stream, its number, and the age at which it had that.
#[derive(Clone, Copy, FromZeros)]
struct KnownStream {
    handle: u64,
    id: u32,
    age: u64,
}

zeroed_thread_local! {
    /// The stream that this thread used last.
    fn last() -> &Cell<KnownStream>, "rpd_collect_last_stream"
}

/// The number of a stream; one that has none gets the next.
#[inline]
pub(super) fn id(stream: u64) -> u32 {
    if stream == 0 {
        return 0;
    }
    let age = AGE.load(Ordering::Acquire);
    let known = last().get();
    if (known.handle, known.age) == (stream, age) {
        return known.id;
    }
    let id = look_up(stream);
    last().set(KnownStream {
        handle: stream,
        id,
        age,
    });
    id
}

#[cold]
fn look_up(stream: u64) -> u32 {
    let Some(_guard) = FORK.lock() else { return 0 };
    // SAFETY: the lock is held.
    let numbers = unsafe { &mut *NUMBERS.0.get() }.get_or_insert_default();
    *numbers
        .entry(stream)
        .or_insert_with(|| NEXT.fetch_add(1, Ordering::Relaxed) as u32)
}

/// The call that `stream` describes has returned `status`.
///
/// # Safety
///
/// `arguments` is the argument struct of the call.
pub(super) unsafe fn after_call(stream: Stream, arguments: *const u8, status: u64) {
    // SAFETY: at the offset is a pointer-sized argument.
    let argument = |offset: u16| unsafe { arguments.add(offset.into()).cast::<u64>().read() };
    match stream {
        Stream::Create(offset) if status as u32 == 0 => {
            let handle = argument(offset) as *const u64;
            if !handle.is_null() {
                // SAFETY: a call that succeeded has written the new stream there.
                id(unsafe { handle.read() });
            }
        }
        Stream::Destroy(offset) => {
            if let Some(_guard) = FORK.lock() {
                // SAFETY: the lock is held.
                if let Some(numbers) = unsafe { &mut *NUMBERS.0.get() } {
                    numbers.remove(&argument(offset));
                }
            }
            AGE.fetch_add(1, Ordering::AcqRel);
        }
        Stream::Create(_) | Stream::Set(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_given_in_order_and_not_kept_for_destroyed_streams() {
        assert_eq!(id(0), 0);
        let first = id(0x1000);
        assert_eq!(id(0x2000), first + 1);
        assert_eq!(id(0x1000), first);
        let handle = 0x1000_u64;
        // SAFETY: an argument struct with a stream in it.
        unsafe { after_call(Stream::Destroy(0), (&raw const handle).cast(), 0) };
        assert_eq!(id(0x1000), first + 2);
        let made = 0x3000_u64;
        let place = &raw const made;
        // SAFETY: an argument struct with a pointer to a stream in it.
        unsafe { after_call(Stream::Create(0), (&raw const place).cast(), 0) };
        assert_eq!(id(0x3000), first + 3);
    }

    #[test]
    fn functions_are_known_by_their_slot() {
        assert!(STREAMS.is_sorted_by_key(|(slot, _)| *slot));
        assert!(STREAMS.len() > 60);
        assert_eq!(of_operation(0), None);
    }
}
