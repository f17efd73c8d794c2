//! Captures: pause, resume and ranges of ROCTx, by which a part of the run can be named.

use rpd_spool::capture::marker as kind;

use super::marker;
use super::setup::Setup;
use super::trace::{Phase, Record, Tracer};
use crate::recording::capture;
use crate::recording::guard::Service;
use crate::recording::kinds::KindNames;

static SERVICE: Service = Service::new("markers of captures");

pub(super) fn configure(setup: &Setup<'_>) {
    if !setup.options.capture.markers {
        return;
    }
    if let Some(kind) = setup.callback_kind("MARKER_CONTROL_API") {
        setup.trace_always("pause and resume", kind, &[], Control::new(kind));
    }
    if let Some(kind) = setup.callback_kind("MARKER_CORE_RANGE_API") {
        let ranges = ["roctxThreadRangeA", "roctxProcessRangeA"];
        let ranges: Vec<i32> = ranges
            .iter()
            .filter_map(|name| kind.operation(name))
            .collect();
        if !ranges.is_empty() {
            setup.trace_always("ranges", kind, &ranges, Ranges);
        }
    }
}

/// Tracer of the ROCTx calls that pause and resume: the numbers of these operations.
struct Control {
    pause: Option<i32>,
    resume: Option<i32>,
}

impl Control {
    fn new(kind: &KindNames) -> Control {
        Control {
            pause: kind.operation("roctxProfilerPause"),
            resume: kind.operation("roctxProfilerResume"),
        }
    }
}

impl Tracer for Control {
    const SERVICE: &'static Service = &SERVICE;

    fn record(&self, record: &Record, _slot: &mut u64) {
        let operation = Some(record.operation);
        if record.phase == Phase::ENTER && operation == self.pause {
            capture::marker(kind::PAUSE, 0, b"");
        } else if record.phase == Phase::EXIT && operation == self.resume {
            capture::marker(kind::RESUME, 0, b"");
        }
    }
}

/// Ranges of threads and of the process.
struct Ranges;

impl Tracer for Ranges {
    const SERVICE: &'static Service = &SERVICE;

    fn record(&self, record: &Record, _slot: &mut u64) {
        let range = record.correlation_id.internal;
        match record.phase {
            Phase::ENTER => {
                // SAFETY: both operations take a message.
                let message = unsafe { marker::message(record) };
                capture::marker(kind::BEGIN, range, message.text.unwrap_or_default());
            }
            Phase::EXIT => capture::marker(kind::END, range, b""),
            _ => {}
        }
    }
}
