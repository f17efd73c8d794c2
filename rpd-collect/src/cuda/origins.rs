//! The call that submitted a piece of device work, by the id that CUPTI gives both.
//!
//! CUPTI's ids count up for the whole process and have 32 bits. The latest calls are in a ring: a record is delivered a few
//! milliseconds after its work is complete, so that those of the last half million calls suffice. The ring is written by the
//! thread that makes the call, without a lock, and read by CUPTI's thread.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Calls in the ring; a power of two.
const CALLS: usize = 1 << 19;

/// A call that submitted work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Origin {
    /// Id of the calling thread in the kernel; 0 when it is not known.
    pub(super) thread: u32,
    /// Correlation id of the call in records; 0 when it is not known.
    pub(super) correlation: u64,
    /// Region around the call that renames kernels; 0 for none.
    pub(super) region: u32,
}

/// What the ring has about an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// The call.
    Call(Origin),
    /// The call was made while recording was paused.
    Paused,
    /// Nothing: the call was not observed, or too long ago.
    Nothing,
}

#[repr(C)]
struct Slot {
    /// CUPTI's id of the call; 0 while the slot is written.
    id: AtomicU32,
    /// Thread of the call; 0 for one that was made during a pause.
    thread: AtomicU32,
    correlation: AtomicU64,
    region: AtomicU32,
}

/// The ring.
pub(super) struct Ring(Box<[Slot]>);

static RING: OnceLock<Ring> = OnceLock::new();

/// The ring, made at the first call of this function.
pub(super) fn prepare() -> &'static Ring {
    RING.get_or_init(|| Ring::new(CALLS))
}

/// The ring; `None` before it is made.
#[inline]
pub(super) fn ring() -> Option<&'static Ring> {
    RING.get()
}

impl Ring {
    fn new(calls: usize) -> Ring {
        // Zeros that the operating system gives at the first access: programs that launch little take little.
        // SAFETY: zeros are a value of atomics.
        Ring(unsafe { Box::<[Slot]>::new_zeroed_slice(calls).assume_init() })
    }

    #[inline]
    fn slot(&self, id: u32) -> Option<&Slot> {
        self.0.get(id as usize & (self.0.len() - 1))
    }

    /// Notes a call with this id; `None` for one that is made during a pause.
    #[inline]
    pub(super) fn set(&self, id: u32, origin: Option<Origin>) {
        let Some(slot) = self.slot(id) else { return };
        let origin = origin.unwrap_or_default();
        slot.id.store(0, Ordering::Relaxed);
        std::sync::atomic::fence(Ordering::Release);
        slot.thread.store(origin.thread, Ordering::Relaxed);
        slot.correlation
            .store(origin.correlation, Ordering::Relaxed);
        slot.region.store(origin.region, Ordering::Relaxed);
        slot.id.store(id, Ordering::Release);
    }

    /// What is known about an id.
    pub(super) fn get(&self, id: u32) -> Known {
        let Some(slot) = self.slot(id) else {
            return Known::Nothing;
        };
        if id == 0 || slot.id.load(Ordering::Acquire) != id {
            return Known::Nothing;
        }
        let origin = Origin {
            thread: slot.thread.load(Ordering::Relaxed),
            correlation: slot.correlation.load(Ordering::Relaxed),
            region: slot.region.load(Ordering::Relaxed),
        };
        std::sync::atomic::fence(Ordering::Acquire);
        // A later call may have taken the slot meanwhile.
        match (slot.id.load(Ordering::Relaxed) == id, origin.thread) {
            (false, _) => Known::Nothing,
            (true, 0) => Known::Paused,
            (true, _) => Known::Call(origin),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ring_has_the_latest_calls_also_where_ids_wrap() {
        let ring = Ring::new(4);
        let origin = |thread| Origin {
            thread,
            correlation: u64::from(thread) * 10,
            region: 0,
        };
        assert_eq!((ring.get(0), ring.get(7)), (Known::Nothing, Known::Nothing));
        for id in [u32::MAX - 1, u32::MAX, 1, 2, 3] {
            ring.set(id, Some(origin(id % 100 + 1)));
        }
        assert_eq!(ring.get(u32::MAX), Known::Nothing);
        assert_eq!(ring.get(3), Known::Call(origin(4)));
        ring.set(6, None);
        assert_eq!((ring.get(6), ring.get(2)), (Known::Paused, Known::Nothing));
    }
}
