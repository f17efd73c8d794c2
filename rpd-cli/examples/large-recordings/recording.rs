//! A recording that is made up.

use std::sync::Arc;

use rpd_core::spool::format::{self, call_flag, space, stream};
use rpd_core::spool::record::RecordKind;
use rpd_core::spool::writer::{SpoolDirectory, StreamWriter};
use zerocopy::{FromZeros, Immutable, IntoBytes};

const THREADS: u64 = 4;
const CALLS: u16 = 1;
const MARKERS: u16 = 2;
const COPIES: u32 = 3;
const HOST_TO_DEVICE: u32 = 2;
const AGENT: u64 = 7;
const FIRST_INSTANCE: u64 = 100;
const INSTANCES: u64 = 4;

/// Writes a recording of four threads: of 16 records 11 are calls, two of them with arguments, one is a marker, two are
/// dispatches, one is a copy and one a dispatch with four counted values. With `text_bytes` no two markers have the same
/// message, and each has so many bytes.
pub(crate) fn record(directory: &Arc<SpoolDirectory>, records: u64, text_bytes: Option<usize>) {
    let mut meta = StreamWriter::new(directory, "meta".to_owned(), stream::META, 0);
    let mut process = format::Process::new_zeroed();
    process.pid = 1;
    append(&mut meta, RecordKind::Process, 0, process, &[]);
    name(&mut meta, CALLS.into(), u32::MAX, "HIP_RUNTIME_API");
    for operation in 0..400 {
        name(
            &mut meta,
            CALLS.into(),
            operation,
            &format!("hipCall{operation}"),
        );
    }
    name(&mut meta, MARKERS.into(), u32::MAX, "MARKER_CORE_RANGE_API");
    name(&mut meta, MARKERS.into(), 0, "roctxThreadRangeA");
    name(&mut meta, COPIES, u32::MAX, "MEMORY_COPY");
    name(
        &mut meta,
        COPIES,
        HOST_TO_DEVICE,
        "MEMORY_COPY_HOST_TO_DEVICE",
    );
    for id in 1..=8 {
        let text = format!("_Z6kernel{id}Pf.kd");
        let mut symbol = format::KernelSymbol::new_zeroed();
        symbol.id = id;
        symbol.code_object = 1;
        symbol.name_len = text.len() as u32;
        append(
            &mut meta,
            RecordKind::KernelSymbol,
            0,
            symbol,
            &[text.as_bytes()],
        );
    }
    let mut counter = format::Counter::new_zeroed();
    (counter.id, counter.agent) = (1, AGENT);
    let texts = ["SQ_WAVES", "", "SQ", ""].map(counted_text).concat();
    append(&mut meta, RecordKind::Counter, 0, counter, &[&texts]);
    for number in 0..INSTANCES {
        let mut instance = format::CounterInstance::new_zeroed();
        (instance.id, instance.counter) = (FIRST_INSTANCE + number, 1);
        append(&mut meta, RecordKind::CounterInstance, 0, instance, &[]);
    }
    for thread in 0..THREADS {
        let tid = 1 + thread as u32;
        let mut writer = StreamWriter::new(directory, format!("t{tid}"), stream::THREAD, tid);
        for index in 0..records / THREADS {
            let number = index * THREADS + thread + 1;
            let start = 1_000_000 + 1000 * index + 100 * thread;
            match index % 16 {
                0..11 => {
                    let mut call = format::CallRecord::new_zeroed();
                    call.operation = (index % 400) as u32;
                    (call.start, call.end) = (start, start + 500);
                    call.correlation = number;
                    let mut arguments = Vec::new();
                    if index % 16 < 2 {
                        call.flags = call_flag::ARGUMENT_TEXTS;
                        let pointer = format!("{:#x}", 4096 * number);
                        arguments = ["void*", "pointer", &pointer].map(counted_text).concat();
                    }
                    append(&mut writer, RecordKind::Call, CALLS, call, &[&arguments]);
                }
                11 => {
                    let mut marker = format::CallRecord::new_zeroed();
                    marker.flags = call_flag::MESSAGE;
                    (marker.start, marker.end) = (start, start + 500);
                    marker.correlation = number;
                    let message = match text_bytes {
                        Some(bytes) => format!("{number:>bytes$}"),
                        None => format!("step {}", index % 1000),
                    };
                    append(
                        &mut writer,
                        RecordKind::Call,
                        MARKERS,
                        marker,
                        &[&counted_text(&message)],
                    );
                }
                12..14 => append(
                    &mut writer,
                    RecordKind::Dispatch,
                    0,
                    dispatch(number, start, tid),
                    &[],
                ),
                14 => {
                    let mut copy = format::Copy::new_zeroed();
                    (copy.thread, copy.correlation) = (tid.into(), number);
                    (copy.start, copy.end) = (start, start + 900);
                    (copy.dst_agent, copy.bytes) = (AGENT, 4096);
                    copy.operation = HOST_TO_DEVICE;
                    append(&mut writer, RecordKind::Copy, 0, copy, &[]);
                }
                _ => {
                    let mut counted = format::CountedDispatch::new_zeroed();
                    counted.dispatch = dispatch(number, start, tid);
                    counted.count = INSTANCES as u32;
                    let values: Vec<u8> = (0..INSTANCES)
                        .flat_map(|instance| {
                            let value = (number % 1000 + instance) as f64;
                            [FIRST_INSTANCE + instance, value.to_bits()]
                        })
                        .flat_map(u64::to_le_bytes)
                        .collect();
                    append(&mut writer, RecordKind::Counted, 0, counted, &[&values]);
                }
            }
        }
    }
}

fn dispatch(number: u64, start: u64, tid: u32) -> format::Dispatch {
    let mut dispatch = format::Dispatch::new_zeroed();
    (dispatch.thread, dispatch.correlation) = (tid.into(), number);
    (dispatch.start, dispatch.end) = (start + 200, start + 700);
    (dispatch.agent, dispatch.queue) = (AGENT, tid.into());
    (dispatch.kernel, dispatch.dispatch) = (1 + number % 8, number);
    dispatch.stream = tid;
    (dispatch.workgroup, dispatch.grid) = ([64, 1, 1], [1024, 1, 1]);
    dispatch
}

/// A `u32` byte count and the text.
fn counted_text(text: &str) -> Vec<u8> {
    let count = (text.len() as u32).to_le_bytes();
    [&count, text.as_bytes()].concat()
}

fn name(meta: &mut StreamWriter, kind: u32, operation: u32, text: &str) {
    let mut name = format::Name::new_zeroed();
    name.space = space::CALLBACK;
    (name.kind, name.operation) = (kind, operation);
    name.text_len = text.len() as u32;
    let record = match operation {
        u32::MAX => RecordKind::KindName,
        _ => RecordKind::OperationName,
    };
    append(meta, record, 0, name, &[text.as_bytes()]);
}

/// Appends a record, whose first field is its head.
fn append<T: IntoBytes + Immutable>(
    writer: &mut StreamWriter,
    kind: RecordKind,
    aux: u16,
    fixed: T,
    tail: &[&[u8]],
) {
    let head = kind
        .head(tail.iter().map(|part| part.len()).sum())
        .with_aux(aux);
    let mut bytes = fixed.as_bytes().to_vec();
    bytes[..size_of_val(&head)].copy_from_slice(head.as_bytes());
    assert!(
        writer.append_parts(&bytes, tail),
        "there is space for records"
    );
}
