//! ROCTx ranges that rename kernels: they are pushed as regions ([`crate::recording::regions`]).
//!
//! With the original's semantics marks are pushed as well and stay until a pop takes them, which it does whatever is on
//! top; a range or mark without a message is not pushed.

use super::marker;
use super::setup::Setup;
use super::trace::{Phase, Record, Tracer};
use crate::recording::guard::Service;
use crate::recording::regions;

static SERVICE: Service = Service::new("kernel renaming");

pub(super) fn configure(setup: &Setup<'_>) {
    let Some(kind) = setup.callback_kind("MARKER_CORE_RANGE_API") else {
        return;
    };
    // Marks have no extent and ranges across threads have no thread: by the manual, neither names a kernel.
    let Some(range) = kind.operation("roctxThreadRangeA") else {
        return;
    };
    let mark = kind.operation("roctxMarkA");
    // The original traces marks too, and tracing them makes correlation ids: so the ids are the same.
    let operations: Vec<i32> = mark.into_iter().chain([range]).collect();
    let original = setup.options.original_semantics;
    let renaming = Renaming {
        range,
        mark: mark.filter(|_| original),
        without_message: !original,
    };
    // Always: regions count also while recording is paused.
    setup.trace_always("kernel renaming", kind, &operations, renaming);
}

/// Sources of kernel names.
struct Renaming {
    /// Operation of the ranges of a thread.
    range: i32,
    /// Operation of marks, where they count.
    mark: Option<i32>,
    /// Whether ranges without a message count.
    without_message: bool,
}

impl Tracer for Renaming {
    const SERVICE: &'static Service = &SERVICE;

    fn record(&self, record: &Record, _slot: &mut u64) {
        let is_range = record.operation == self.range;
        let is_mark = Some(record.operation) == self.mark;
        if is_range && record.phase == Phase::ENTER || is_mark && record.phase == Phase::EXIT {
            // SAFETY: thread ranges and marks take a message.
            let message = unsafe { marker::message(record) };
            if message.text.is_some() || self.without_message {
                let text = message.text.unwrap_or_default();
                regions::push(text, record.correlation_id.internal);
            }
        } else if is_range && record.phase == Phase::EXIT {
            regions::pop();
        }
    }
}
