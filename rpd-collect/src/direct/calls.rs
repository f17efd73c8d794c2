//! Calls that go through a wrapper: the call's frame and record, the HIP stream that it concerns.

use std::sync::atomic::{AtomicBool, Ordering};

use rpd_spool::writer::now;

use super::streams::{self, Stream};
use crate::recording::arguments::{self, Layout};
use crate::recording::call;
use crate::recording::frames::{Frame, StreamAction};
use crate::recording::guard::Service;
use crate::recording::setting::Setting;
use crate::recording::stacks::Selection;
use crate::recording::thread::{self, Thread};

static SERVICE: Service = Service::new("API calls");

/// Whether calls are recorded now; paused otherwise.
static ON: AtomicBool = AtomicBool::new(false);

/// Whether traces are on.
#[inline]
pub(super) fn are_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Switches traces on or off.
pub(super) fn switch(on: bool) {
    ON.store(on, Ordering::SeqCst);
}

/// Actions at the calls of an operation.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Operation {
    /// Whether calls of the operation are recorded.
    pub(super) recorded: bool,
    /// Layout of the arguments to record; `None` records none.
    pub(super) arguments: Option<Layout>,
    /// Effect on a HIP stream, where streams are followed.
    pub(super) stream: Option<Stream>,
}

impl Operation {
    /// Whether the wrapper does anything at calls of the operation.
    pub(super) fn is_wrapped(&self) -> bool {
        self.recorded || self.stream.is_some()
    }
}

/// The calls of a table.
#[derive(Debug)]
pub(super) struct Api {
    /// Number of the kind in records.
    pub(super) kind: u16,
    /// Operation of each slot of the table.
    pub(super) operations: Box<[Operation]>,
    /// Operations whose stacks are recorded.
    pub(super) stacks: Option<Selection>,
}

/// Actions of a table's wrappers.
pub(super) type ApiSlot = Setting<Api>;

/// A call begins; the wrapper's `frame` is unused and stays where it is until [`exit`] or [`Unwinding`].
///
/// # Safety
///
/// `arguments` is the argument struct of operation `slot`, as the caller passed it.
pub(super) unsafe fn enter(frame: &mut Frame, api: &ApiSlot, slot: usize, arguments: *const u8) {
    SERVICE.on_event(|| {
        let Some(api) = api.get() else { return };
        let Some(operation) = api.operations.get(slot) else {
            return;
        };
        if let Some(stream) = operation.stream {
            // SAFETY: by this function's contract.
            match unsafe { streams::of_work(stream, arguments) } {
                Some(id) => {
                    frame.stream = StreamAction::Pop;
                    thread::with(|thread| thread.push_stream(id));
                }
                None => frame.stream = StreamAction::LookUp,
            }
        }
        if !operation.recorded || !are_on() {
            return;
        }
        let entered = frame.enter();
        let stacks = api.stacks.as_ref();
        let has_stack = stacks.is_some_and(|selection| selection.takes(slot as i32));
        let call = || entered.call(api.kind, slot, has_stack);
        frame.record = match &operation.arguments {
            None => call().begin(0, 0, |_| {}),
            // SAFETY: by this function's contract; the layout is that of the operation.
            Some(layout) => unsafe {
                let size = usize::from(layout.size);
                let bytes = std::slice::from_raw_parts(arguments, size);
                arguments::begin(&call(), layout, bytes)
            },
        };
    });
}

/// The call of `frame` returned `word`, the first eight bytes of its result.
///
/// # Safety
///
/// As for [`enter`], of the same call.
#[inline]
pub(super) unsafe fn exit(
    frame: &Frame,
    api: &ApiSlot,
    slot: usize,
    arguments: *const u8,
    word: u64,
) {
    if frame.correlation != 0 {
        let returned = now();
        SERVICE.run(|| match recorded_arguments(api, slot) {
            // SAFETY: by this function's contract.
            Some(layout) if layout.has_results() => unsafe {
                let bytes = std::slice::from_raw_parts(arguments, layout.size.into());
                arguments::end(frame.record, layout, bytes, word, returned);
            },
            _ => call::end(frame.record, word, returned),
        });
        frame.leave();
    }
    if frame.stream != StreamAction::Nothing {
        // SAFETY: by this function's contract.
        unsafe { exit_stream(frame, api, slot, arguments, word) };
    }
}

/// Layout of the arguments that are recorded of an operation.
#[inline]
fn recorded_arguments(api: &ApiSlot, slot: usize) -> Option<&'static Layout> {
    api.get()?.operations.get(slot)?.arguments.as_ref()
}

/// Handles the HIP stream of a call that returns, for [`exit`].
///
/// # Safety
///
/// As for [`enter`], of the same call.
#[inline(never)]
unsafe fn exit_stream(frame: &Frame, api: &ApiSlot, slot: usize, arguments: *const u8, word: u64) {
    if frame.stream == StreamAction::Pop {
        SERVICE.run(|| thread::with(Thread::pop_stream));
        return;
    }
    let operation = api.get().and_then(|api| api.operations.get(slot));
    if let Some(stream) = operation.and_then(|operation| operation.stream) {
        // SAFETY: by this function's contract.
        SERVICE.on_event(|| unsafe { streams::after_call(stream, arguments, word) });
    }
}

/// Leaves the frame of a call that does not return, because an exception of the program passes through its wrapper.
pub(super) struct Unwinding(pub(super) *const Frame);

impl Drop for Unwinding {
    fn drop(&mut self) {
        // SAFETY: the wrapper's frame, which outlives this guard.
        let frame = unsafe { &*self.0 };
        if frame.correlation != 0 {
            frame.leave();
        }
        if frame.stream == StreamAction::Pop {
            SERVICE.run(|| thread::with(Thread::pop_stream));
        }
    }
}
