//! ROCTx: marks, ranges, names, pause and resume.

use std::ffi::{c_char, c_void};

use rocprofiler_sdk_sys::{
    rocprofiler_callback_phase_t, rocprofiler_callback_tracing_marker_api_data_t,
    rocprofiler_callback_tracing_record_t, rocprofiler_user_data_t,
};
use rpd_spool::format::{
    ApiCall, NamedResource, RangeBegin, RangeEnd, RecordHeader, StackRef, api_flag, tag,
};
use rpd_spool::stacks::StackOptions;
use rpd_spool::writer::{OpenRecord, now, record_len};
use zerocopy::{Immutable, IntoBytes};

use crate::recording::guard::Service;
use crate::recording::process::header;
use crate::recording::stacks::{self, Selection};
use crate::sdk::entry::Setup;
use crate::sdk::names::KindNames;

/// Bytes kept of a message.
const MESSAGE: usize = 64 << 10;

static RANGES: Service = Service::new("markers");
static CONTROL: Service = Service::new("pause and resume");
static NAMES: Service = Service::new("names");

/// Numbers of the operations that need care.
struct Operations {
    kind: u16,
    /// The calls themselves are recorded, not only obeyed.
    recorded: bool,
    mark: Option<i32>,
    thread_range: Option<i32>,
    process_range: Option<i32>,
    pause: Option<i32>,
    resume: Option<i32>,
    names: [Option<i32>; 4],
    /// Those that have stacks.
    stacks: Option<Selection>,
}

impl Operations {
    fn leak(kind: &KindNames, recorded: bool, stacks: &StackOptions) -> *mut c_void {
        let operations = Operations {
            kind: kind.number as u16,
            recorded,
            mark: kind.operation("roctxMarkA"),
            thread_range: kind.operation("roctxThreadRangeA"),
            process_range: kind.operation("roctxProcessRangeA"),
            pause: kind.operation("roctxProfilerPause"),
            resume: kind.operation("roctxProfilerResume"),
            names: [
                "roctxNameOsThread",
                "roctxNameHipDevice",
                "roctxNameHipStream",
                "roctxNameHsaAgent",
            ]
            .map(|name| kind.operation(name)),
            stacks: match recorded {
                true => Selection::of(stacks, &kind.operations),
                false => None,
            },
        };
        std::ptr::from_mut(Box::leak(Box::new(operations))).cast()
    }

    /// How the stack of this marker is taken; `None` when it has none.
    fn selection(&self, record: &rocprofiler_callback_tracing_record_t) -> Option<&Selection> {
        let selection = self.stacks.as_ref();
        selection.filter(|selection| selection.takes(record.operation))
    }
}

pub(crate) fn configure(setup: &Setup<'_>) {
    if let Some(kind) = setup.callback_kind("MARKER_CORE_RANGE_API") {
        let data = Operations::leak(kind, true, &setup.options.stacks);
        setup.trace_callbacks(setup.client, kind, &[], Some(on_range), data);
    }
    // Names stay on while the client context is paused.
    if let Some(kind) = setup.callback_kind("MARKER_NAME_API")
        && let Some(context) = setup.context("names")
    {
        let data = Operations::leak(kind, true, &setup.options.stacks);
        setup.trace_callbacks(context, kind, &[], Some(on_name), data);
        setup.start(context, "names");
    }
}

/// Pause and resume, which are obeyed whether or not markers are recorded; with the original's semantics, only when they
/// are or when the program selects regions.
pub(crate) fn configure_control(setup: &Setup<'_>) {
    const KIND: &str = "MARKER_CONTROL_API";
    let options = setup.options;
    let recorded = options.traces.marker;
    if options.original_semantics && !recorded && !crate::recording::switch::by_regions(options) {
        return;
    }
    let Some(kind) = setup.names.callback(KIND) else {
        if crate::recording::switch::by_regions(options) {
            crate::recording::meta::note(
                "nothing is recorded: this provider does not tell where selected regions begin",
            );
        } else if recorded {
            crate::sdk::entry::note_missing(KIND);
        }
        return;
    };
    // Also heard while the client context is stopped.
    let Some(context) = setup.context("pause and resume") else {
        return;
    };
    let data = Operations::leak(kind, recorded, &options.stacks);
    setup.trace_callbacks(context, kind, &[], Some(on_control), data);
    setup.start(context, "pause and resume");
}

/// The payload of a marker callback.
///
/// # Safety
///
/// `record` is one of a marker kind, and its callback is running.
unsafe fn payload(
    record: &rocprofiler_callback_tracing_record_t,
) -> Option<rocprofiler_callback_tracing_marker_api_data_t> {
    // SAFETY: as this function demands, this is the payload's type.
    unsafe { crate::recording::text::sized(record.payload) }
}

/// The message of a record, with the flags that describe it.
///
/// # Safety
///
/// As for [`payload`], and the operation is one that takes a message.
pub(crate) unsafe fn message<'a>(
    record: &rocprofiler_callback_tracing_record_t,
) -> (Option<&'a [u8]>, u32) {
    // SAFETY: as this function demands; the message lives through the callback.
    let text = unsafe {
        payload(record).map_or(std::ptr::null(), |payload| payload.args.roctxMarkA.message)
    };
    // SAFETY: the program's own text.
    match unsafe { crate::recording::text::capped(text, MESSAGE) } {
        Some((text, false)) => (Some(text), api_flag::MESSAGE),
        Some((text, true)) => (Some(text), api_flag::MESSAGE | api_flag::TRUNCATED),
        None => (None, api_flag::MESSAGE | api_flag::NULL_MESSAGE),
    }
}

fn retval(record: &rocprofiler_callback_tracing_record_t) -> u64 {
    // SAFETY: only called for marker records; all members are plain numbers of the same bytes.
    unsafe { payload(record).map_or(0, |payload| payload.retval.int64_t_retval.cast_unsigned()) }
}

/// Bytes of a counted message.
fn message_len(message: Option<&[u8]>) -> usize {
    4 + message.map_or(0, |message| message.len())
}

/// Writes `fixed`, the stack if there is one, and the counted message.
fn fill<T: IntoBytes + Immutable>(
    bytes: &mut [u8],
    fixed: &T,
    stack: Option<StackRef>,
    message: Option<&[u8]>,
) {
    let fixed = fixed.as_bytes();
    let (head, tail) = bytes.split_at_mut(fixed.len());
    head.copy_from_slice(fixed);
    let tail = stacks::put(stack, tail);
    let count = message.map_or(u32::MAX, |message| message.len() as u32);
    let message = message.unwrap_or_default();
    tail[..4].copy_from_slice(&count.to_le_bytes());
    tail[4..][..message.len()].copy_from_slice(message);
}

fn call(
    kind: u16,
    record: &rocprofiler_callback_tracing_record_t,
    flags: u32,
    len: usize,
) -> ApiCall {
    ApiCall {
        header: RecordHeader {
            len: len as u32,
            tag: tag::API,
            aux: kind,
        },
        operation: record.operation.cast_unsigned(),
        flags,
        start: now(),
        end: 0,
        correlation: record.correlation_id.internal,
        ancestor: record.correlation_id.ancestor,
        retval: 0,
    }
}

unsafe extern "C" fn on_range(
    record: rocprofiler_callback_tracing_record_t,
    user_data: *mut rocprofiler_user_data_t,
    data: *mut c_void,
) {
    RANGES.told(|| {
        let time = match record.phase {
            rocprofiler_callback_phase_t::EXIT => now(),
            _ => 0,
        };
        // SAFETY: `data` is what `configure` leaked; the slot belongs to this range and context.
        let (operations, slot) = unsafe { (&*data.cast::<Operations>(), &mut (*user_data).value) };
        let operation = Some(record.operation);
        match record.phase {
            rocprofiler_callback_phase_t::ENTER => {
                *slot = 0;
                if operation == operations.process_range {
                    begin_process_range(operations, &record);
                } else if operation == operations.mark || operation == operations.thread_range {
                    let instant = operation == operations.mark;
                    *slot = open_message(operations, &record, instant).0;
                } else {
                    *slot = open_plain(operations, &record).0;
                }
            }
            rocprofiler_callback_phase_t::EXIT if operation == operations.process_range => {
                let len = size_of::<RangeEnd>();
                let end = RangeEnd {
                    header: header(tag::RANGE_END, len),
                    correlation: record.correlation_id.internal,
                    end: time,
                };
                crate::recording::thread::with(|thread| {
                    thread
                        .records
                        .append(len, |bytes| bytes.copy_from_slice(end.as_bytes()))
                });
            }
            rocprofiler_callback_phase_t::EXIT if *slot != 0 => {
                let retval = retval(&record);
                crate::recording::thread::with(|thread| {
                    let open = OpenRecord(*slot);
                    if operations.stacks.is_some() {
                        stacks::drop_if_short(thread, open, time);
                    }
                    thread.records.close(open, retval, time)
                });
            }
            _ => {}
        }
    });
}

/// A mark is complete at once, a thread range when it is popped.
fn open_message(
    operations: &Operations,
    record: &rocprofiler_callback_tracing_record_t,
    instant: bool,
) -> OpenRecord {
    // SAFETY: marks and thread ranges take a message.
    let (message, flags) = unsafe { message(record) };
    let selection = operations.selection(record);
    crate::recording::thread::with(|thread| {
        // A mark takes no time, a range is as long as one may be until its end is known.
        let duration = if instant { 0 } else { u64::MAX };
        let stack = stacks::of_moment(thread, selection, duration);
        let flags = flags | stacks::flag(stack);
        let len = record_len(
            size_of::<ApiCall>(),
            stacks::room(stack) + message_len(message),
        );
        let mut call = call(operations.kind, record, flags, len);
        if instant {
            call.end = call.start;
            thread
                .records
                .append(len, |bytes| fill(bytes, &call, stack, message));
            return OpenRecord::default();
        }
        thread
            .records
            .append_open(len, |bytes| fill(bytes, &call, stack, message))
    })
    .unwrap_or_default()
}

fn open_plain(
    operations: &Operations,
    record: &rocprofiler_callback_tracing_record_t,
) -> OpenRecord {
    let selection = operations.selection(record);
    crate::recording::thread::with(|thread| {
        let stack = stacks::of_moment(thread, selection, u64::MAX);
        let len = size_of::<ApiCall>() + stacks::room(stack);
        let call = call(operations.kind, record, stacks::flag(stack), len);
        thread.records.append_open(len, |bytes| {
            let (head, tail) = bytes.split_at_mut(size_of::<ApiCall>());
            head.copy_from_slice(call.as_bytes());
            stacks::put(stack, tail);
        })
    })
    .unwrap_or_default()
}

fn begin_process_range(operations: &Operations, record: &rocprofiler_callback_tracing_record_t) {
    // SAFETY: process ranges take a message.
    let (message, flags) = unsafe { message(record) };
    let selection = operations.selection(record);
    crate::recording::thread::with(|thread| {
        let stack = stacks::of_moment(thread, selection, u64::MAX);
        let len = record_len(
            size_of::<RangeBegin>(),
            stacks::room(stack) + message_len(message),
        );
        let begin = RangeBegin {
            header: RecordHeader {
                len: len as u32,
                tag: tag::RANGE_BEGIN,
                aux: operations.kind,
            },
            operation: record.operation.cast_unsigned(),
            flags: flags | stacks::flag(stack),
            start: now(),
            correlation: record.correlation_id.internal,
            ancestor: record.correlation_id.ancestor,
        };
        thread
            .records
            .append(len, |bytes| fill(bytes, &begin, stack, message))
    });
}

unsafe extern "C" fn on_control(
    record: rocprofiler_callback_tracing_record_t,
    user_data: *mut rocprofiler_user_data_t,
    data: *mut c_void,
) {
    let time = now();
    CONTROL.told(|| {
        // SAFETY: `data` is what `configure` leaked; the slot belongs to this call and context.
        let (operations, slot) = unsafe { (&*data.cast::<Operations>(), &mut (*user_data).value) };
        let operation = Some(record.operation);
        match record.phase {
            rocprofiler_callback_phase_t::ENTER => {
                *slot = match operations.recorded {
                    true => open_plain(operations, &record).0,
                    false => 0,
                };
                if operation == operations.pause {
                    crate::recording::switch::pause();
                }
            }
            rocprofiler_callback_phase_t::EXIT => {
                if operation == operations.resume {
                    crate::recording::switch::resume();
                }
                if *slot != 0 {
                    let retval = retval(&record);
                    crate::recording::thread::with(|thread| {
                        thread.records.close(OpenRecord(*slot), retval, time);
                    });
                }
            }
            _ => {}
        }
    });
}

unsafe extern "C" fn on_name(
    record: rocprofiler_callback_tracing_record_t,
    _user_data: *mut rocprofiler_user_data_t,
    data: *mut c_void,
) {
    NAMES.told(|| {
        if record.phase != rocprofiler_callback_phase_t::ENTER {
            return;
        }
        // SAFETY: `data` is what `configure` leaked.
        let operations = unsafe { &*data.cast::<Operations>() };
        let Some(which) = operations
            .names
            .iter()
            .position(|found| *found == Some(record.operation))
        else {
            return;
        };
        // SAFETY: a marker record within its callback.
        let Some(payload) = (unsafe { payload(&record) }) else {
            return;
        };
        // SAFETY: the member read is the one that belongs to the operation, and its pointers are valid for the call.
        let (name, resource): (*const c_char, u64) = unsafe {
            let args = &payload.args;
            match which {
                0 => (
                    args.roctxNameOsThread,
                    crate::recording::thread::id().into(),
                ),
                1 => {
                    let device = args.roctxNameHipDevice;
                    (device.name, device.device_id.cast_unsigned().into())
                }
                2 => {
                    let stream = args.roctxNameHipStream;
                    (stream.name, stream.stream as u64)
                }
                _ => {
                    let agent = args.roctxNameHsaAgent;
                    let handle = agent.agent.cast::<u64>();
                    let handle = if handle.is_null() { 0 } else { handle.read() };
                    (agent.name, handle)
                }
            }
        };
        // SAFETY: the program's own text.
        let Some((name, _)) = (unsafe { crate::recording::text::capped(name, MESSAGE) }) else {
            return;
        };
        let named = NamedResource {
            header: header(0, 0),
            resource,
            time: now(),
            name_len: name.len() as u32,
            tid: crate::recording::thread::id(),
        };
        crate::recording::meta::write(tag::RESOURCE_NAME, which as u16 + 1, &named, name);
    });
}
