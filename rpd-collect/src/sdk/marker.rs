//! ROCTx: marks, ranges, names, pause and resume.

use std::ffi::c_char;

use rocprofiler_sdk_sys::rocprofiler_callback_tracing_marker_api_data_t;
use rpd_spool::writer::{OpenRecord, now};

use super::payload;
use super::setup::{Setup, note_missing};
use super::trace::{Phase, Record, Tracer, call_of};
use crate::recording::call::Call;
use crate::recording::guard::Service;
use crate::recording::kinds::KindNames;
use crate::recording::markers::{self, Message, Resource};
use crate::recording::stacks::Selection;
use crate::recording::{call, meta, switch, thread};

static RANGES: Service = Service::new("markers");
static CONTROL: Service = Service::new("pause and resume");
static NAMES: Service = Service::new("names");

pub(super) fn configure(setup: &Setup<'_>) {
    if let Some(kind) = setup.callback_kind("MARKER_CORE_RANGE_API") {
        setup.trace(setup.client, kind, &[], Ranges::new(setup, kind));
    }
    // Names are recorded also while recording is paused.
    if let Some(kind) = setup.callback_kind("MARKER_NAME_API") {
        setup.trace_always("names", kind, &[], Names::new(kind));
    }
}

/// Pause and resume, which are obeyed whether or not markers are recorded; with the original's semantics, only when they
/// are or when the program selects regions.
pub(super) fn configure_control(setup: &Setup<'_>) {
    const KIND: &str = "MARKER_CONTROL_API";
    let options = setup.options;
    let recorded = options.traces.marker;
    if options.original_semantics && !recorded && !switch::by_regions(options) {
        return;
    }
    let Some(kind) = setup.names.callback(KIND) else {
        if switch::by_regions(options) {
            meta::note(
                "nothing is recorded: this provider does not report where selected regions begin",
            );
        } else if recorded {
            note_missing(KIND);
        }
        return;
    };
    // Always: a resume comes while the client context is stopped.
    setup.trace_always(
        "pause and resume",
        kind,
        &[],
        Control::new(setup, kind, recorded),
    );
}

type Payload = rocprofiler_callback_tracing_marker_api_data_t;

/// The payload of a marker record.
///
/// # Safety
///
/// `record` is one of a marker kind, and its callback is running.
unsafe fn payload(record: &Record) -> Option<Payload> {
    // SAFETY: as this function demands, this is the payload's type.
    unsafe { payload::sized(record.payload) }
}

/// The message of a mark or range.
///
/// # Safety
///
/// As for [`payload()`], and the operation is one that takes a message. The message is valid during the callback.
pub(super) unsafe fn message<'a>(record: &Record) -> Message<'a> {
    // SAFETY: as this function demands; the text is the program's own.
    unsafe {
        let text =
            payload(record).map_or(std::ptr::null(), |payload| payload.args.roctxMarkA.message);
        Message::read(text)
    }
}

/// Writes the start of a call without message; the slot for [`end`].
fn begin(call: &Call) -> u64 {
    call.begin(0, 0, |_| {}).0
}

/// Completes the call that began with `slot`.
fn end(slot: u64, record: &Record, returned: u64) {
    // SAFETY: only called for marker records; all members are plain numbers of the same bytes.
    let retval = unsafe {
        payload(record).map_or(0, |payload| payload.retval.int64_t_retval.cast_unsigned())
    };
    call::end(OpenRecord(slot), retval, returned);
}

/// Marks and ranges; numbers of the operations that take a message.
struct Ranges {
    kind: u16,
    /// Operations whose stacks are recorded.
    stacks: Option<Selection>,
    mark: Option<i32>,
    thread_range: Option<i32>,
    process_range: Option<i32>,
}

impl Ranges {
    fn new(setup: &Setup<'_>, kind: &KindNames) -> Ranges {
        Ranges {
            kind: kind.number as u16,
            stacks: Selection::from_options(&setup.options.stacks, &kind.operations),
            mark: kind.operation("roctxMarkA"),
            thread_range: kind.operation("roctxThreadRangeA"),
            process_range: kind.operation("roctxProcessRangeA"),
        }
    }

    fn enter(&self, record: &Record) -> u64 {
        let operation = Some(record.operation);
        let call = call_of(self.kind, record, self.stacks.as_ref());
        // SAFETY: in each of the cases below, the operation takes a message.
        let message = || unsafe { message(record) };
        if operation == self.process_range {
            markers::begin_process_range(&call, message());
            0
        } else if operation == self.mark {
            markers::mark(&call, message());
            0
        } else if operation == self.thread_range {
            markers::begin_thread_range(&call, message()).0
        } else {
            begin(&call)
        }
    }
}

impl Tracer for Ranges {
    const SERVICE: &'static Service = &RANGES;

    fn record(&self, record: &Record, slot: &mut u64) {
        match record.phase {
            Phase::ENTER => {
                *slot = 0;
                *slot = self.enter(record);
            }
            Phase::EXIT => {
                let time = now();
                if Some(record.operation) == self.process_range {
                    markers::end_process_range(record.correlation_id.internal, time);
                } else {
                    end(*slot, record, time);
                }
            }
            _ => {}
        }
    }
}

/// Tracer of pause and resume.
struct Control {
    kind: u16,
    /// Operations whose stacks are recorded.
    stacks: Option<Selection>,
    /// Whether the calls themselves are recorded, and not only obeyed.
    recorded: bool,
    pause: Option<i32>,
    resume: Option<i32>,
}

impl Control {
    fn new(setup: &Setup<'_>, kind: &KindNames, recorded: bool) -> Control {
        Control {
            kind: kind.number as u16,
            stacks: Selection::from_options(&setup.options.stacks, &kind.operations),
            recorded,
            pause: kind.operation("roctxProfilerPause"),
            resume: kind.operation("roctxProfilerResume"),
        }
    }
}

impl Tracer for Control {
    const SERVICE: &'static Service = &CONTROL;

    fn record(&self, record: &Record, slot: &mut u64) {
        let operation = Some(record.operation);
        match record.phase {
            Phase::ENTER => {
                *slot = if self.recorded {
                    begin(&call_of(self.kind, record, self.stacks.as_ref()))
                } else {
                    0
                };
                if operation == self.pause {
                    switch::pause();
                }
            }
            Phase::EXIT => {
                let time = now();
                if operation == self.resume {
                    switch::resume();
                }
                end(*slot, record, time);
            }
            _ => {}
        }
    }
}

/// Names of resources; numbers of the operations that give one.
struct Names {
    operations: [(Option<i32>, Resource); 4],
}

impl Names {
    fn new(kind: &KindNames) -> Names {
        Names {
            operations: [
                ("roctxNameOsThread", Resource::OsThread),
                ("roctxNameHipDevice", Resource::HipDevice),
                ("roctxNameHipStream", Resource::HipStream),
                ("roctxNameHsaAgent", Resource::HsaAgent),
            ]
            .map(|(name, resource)| (kind.operation(name), resource)),
        }
    }
}

impl Tracer for Names {
    const SERVICE: &'static Service = &NAMES;

    fn record(&self, record: &Record, _slot: &mut u64) {
        let operation = Some(record.operation);
        let found = self
            .operations
            .iter()
            .find(|(number, _)| *number == operation);
        let (Phase::ENTER, Some(&(_, resource))) = (record.phase, found) else {
            return;
        };
        // SAFETY: a marker record within its callback.
        let Some(payload) = (unsafe { payload(record) }) else {
            return;
        };
        // SAFETY: the member read is the one that belongs to the operation, and its pointers are valid for the call.
        let (name, id): (*const c_char, u64) = unsafe {
            let args = &payload.args;
            match resource {
                Resource::OsThread => (args.roctxNameOsThread, thread::id().into()),
                Resource::HipDevice => {
                    let device = args.roctxNameHipDevice;
                    (device.name, device.device_id.cast_unsigned().into())
                }
                Resource::HipStream => {
                    let stream = args.roctxNameHipStream;
                    (stream.name, stream.stream as u64)
                }
                Resource::HsaAgent => {
                    let agent = args.roctxNameHsaAgent;
                    let handle = agent.agent.cast::<u64>();
                    let handle = if handle.is_null() { 0 } else { handle.read() };
                    (agent.name, handle)
                }
                // ROCTx has no such function.
                Resource::Stream => return,
            }
        };
        // SAFETY: the program's own text.
        markers::name_resource(resource, id, unsafe { Message::read(name) });
    }
}
