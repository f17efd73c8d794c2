//! Calls that programs must not make while streams capture. The real runtime answers such a call with an error, and the
//! end of the capture with another one.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread::ThreadId;

use crate::hip::error::{HipResult, code};
use crate::hip::runtime::lock;

/// Number of captures that have not ended.
static NUMBER: AtomicUsize = AtomicUsize::new(0);
static KNOWN: Mutex<Vec<Weak<UnderWay>>> = Mutex::new(Vec::new());

thread_local! {
    static THREAD_MODE: Cell<u32> = const { Cell::new(mode::GLOBAL) };
}

/// `hipStreamCaptureMode`.
mod mode {
    pub(crate) const GLOBAL: u32 = 0;
    pub(crate) const RELAXED: u32 = 2;
}

/// A capture, from its begin until no stream takes part in it.
#[derive(Debug)]
pub(crate) struct UnderWay {
    mode: u32,
    /// Thread that called `hipStreamBeginCapture`.
    thread: ThreadId,
    /// Whether a call was made during the capture that captures do not permit.
    invalid: AtomicBool,
}

impl UnderWay {
    /// Begins a capture in a mode.
    pub(crate) fn begin(mode: u32) -> HipResult<Arc<UnderWay>> {
        if mode > mode::RELAXED {
            return Err(code::INVALID_VALUE);
        }
        let made = Arc::new(UnderWay {
            mode,
            thread: std::thread::current().id(),
            invalid: AtomicBool::new(false),
        });
        let mut known = lock(&KNOWN);
        known.retain(|one| one.strong_count() > 0);
        known.push(Arc::downgrade(&made));
        NUMBER.fetch_add(1, Ordering::AcqRel);
        Ok(made)
    }

    /// Notes that a call was made which captures do not permit: the capture will give no graph.
    pub(crate) fn invalidate(&self) {
        self.invalid.store(true, Ordering::Release);
    }

    /// Whether the capture gives no graph.
    pub(crate) fn is_invalid(&self) -> bool {
        self.invalid.load(Ordering::Acquire)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        NUMBER.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Sets the calling thread's capture mode and returns the previous one.
pub(crate) fn exchange(wanted: u32) -> HipResult<u32> {
    if wanted > mode::RELAXED {
        Err(code::INVALID_VALUE)
    } else {
        Ok(THREAD_MODE.replace(wanted))
    }
}

/// Checks a call that waits for a whole device: no capture permits it.
pub(crate) fn device_wait() -> HipResult {
    refuse(code::STREAM_CAPTURE_UNSUPPORTED, |_| true)
}

/// Checks a copy or fill that the call waits for: no capture permits it.
pub(crate) fn synchronous() -> HipResult {
    refuse(code::STREAM_CAPTURE_IMPLICIT, |_| true)
}

/// Checks an allocation, a free, or a wait for one stream or event: not permitted in a thread that captures, nor in any
/// thread during a capture in the global mode, unless the mode of the capture or of the thread permits it.
pub(crate) fn unsafe_call() -> HipResult {
    let own = THREAD_MODE.get();
    if own == mode::RELAXED {
        return Ok(());
    }
    let thread = std::thread::current().id();
    refuse(code::STREAM_CAPTURE_UNSUPPORTED, |one| {
        one.mode != mode::RELAXED
            && (one.thread == thread || (one.mode == mode::GLOBAL && own == mode::GLOBAL))
    })
}

/// Fails with `error` if there are captures for which `applies` holds, and makes these captures invalid.
fn refuse(error: u32, applies: impl Fn(&UnderWay) -> bool) -> HipResult {
    if NUMBER.load(Ordering::Acquire) == 0 {
        return Ok(());
    }
    let live: Vec<Arc<UnderWay>> = lock(&KNOWN).iter().filter_map(Weak::upgrade).collect();
    let mut refused = false;
    for one in live.iter().filter(|one| applies(one)) {
        one.invalidate();
        refused = true;
    }
    if refused { Err(error) } else { Ok(()) }
}
