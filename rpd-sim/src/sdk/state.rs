//! Life cycle of the SDK in this process.

use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

static INITIALIZED: AtomicI32 = AtomicI32::new(0);
static FINALIZED: AtomicI32 = AtomicI32::new(0);
/// Client being configured or initialised.
static CURRENT: AtomicU32 = AtomicU32::new(0);
static HSA: AtomicBool = AtomicBool::new(false);

/// State of initialisation: 0 before it, -1 during it, 1 afterwards.
#[inline]
pub(crate) fn initialized() -> i32 {
    INITIALIZED.load(Ordering::Acquire)
}

/// Begins initialisation; `false` when it has begun before.
pub(super) fn begin_initialization() -> bool {
    INITIALIZED
        .compare_exchange(0, -1, Ordering::AcqRel, Ordering::Acquire)
        .is_ok()
}

/// Marks initialisation as complete.
pub(super) fn end_initialization() {
    INITIALIZED.store(1, Ordering::Release);
}

/// State of finalisation: 0 before it, -1 during it, 1 afterwards.
#[inline]
pub(crate) fn finalized() -> i32 {
    FINALIZED.load(Ordering::Relaxed)
}

/// Begins finalisation; `false` when the SDK is not initialised or finalisation has begun before.
pub(super) fn begin_finalization() -> bool {
    initialized() == 1
        && FINALIZED
            .compare_exchange(0, -1, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
}

/// Marks finalisation as complete.
pub(super) fn end_finalization() {
    FINALIZED.store(1, Ordering::Release);
}

/// Number of the client to which a context belongs that is made now.
pub(super) fn current_client() -> u32 {
    CURRENT.load(Ordering::Relaxed)
}

/// Sets the client to which new contexts belong.
pub(super) fn set_current_client(handle: u32) {
    CURRENT.store(handle, Ordering::Relaxed);
}

/// Whether the HSA runtime has registered its tables.
pub(super) fn hsa_registered() -> bool {
    HSA.load(Ordering::Acquire)
}

/// Notes that the HSA runtime has registered its tables.
pub(super) fn set_hsa_registered() {
    HSA.store(true, Ordering::Release);
}
