//! Calls of the runtimes: written when they begin, completed in place when they return.

use std::ffi::{CStr, c_char, c_int, c_void};

use rocprofiler_sdk_sys::{
    rocprofiler_callback_phase_t, rocprofiler_callback_tracing_hip_api_data_t,
    rocprofiler_callback_tracing_hsa_api_data_t, rocprofiler_callback_tracing_kind_t,
    rocprofiler_callback_tracing_rccl_api_data_t, rocprofiler_callback_tracing_record_t,
    rocprofiler_callback_tracing_rocdecode_api_data_t,
    rocprofiler_callback_tracing_rocjpeg_api_data_t, rocprofiler_tracing_operation_t,
    rocprofiler_user_data_t,
};
use rpd_spool::format::{ApiCall, RecordHeader, api_flag, tag};
use rpd_spool::stacks::StackOptions;
use rpd_spool::writer::{OpenRecord, now, record_len};
use zerocopy::FromBytes;

use crate::recording::arguments::{self, Layout};
use crate::recording::guard::Service;
use crate::recording::stacks::{self, Selection};
use crate::sdk::entry::{Setup, functions};
use crate::sdk::names::KindNames;

/// Bytes kept of a text argument.
const TEXT: usize = 4096;
const HEAD: usize = size_of::<ApiCall>();

static SERVICE: Service = Service::new("API calls");

/// What to copy of the arguments of an operation.
#[derive(Debug, Clone, Copy)]
enum Arguments {
    /// Nothing.
    None,
    /// The struct, and the texts behind the pointers in it.
    Raw(Layout),
    /// What the provider makes of them.
    Texts,
}

/// What the callback needs to know about a kind.
#[derive(Debug)]
struct ApiKind {
    number: u16,
    /// With a payload of any other size the result is not looked at.
    payload: Payload,
    /// By operation number.
    operations: Box<[Arguments]>,
    /// For operations beyond the table.
    others: Arguments,
    /// Those that have stacks.
    stacks: Option<Selection>,
}

/// A payload of the provider.
#[derive(Debug, Clone, Copy)]
struct Payload {
    /// Bytes, as this build knows it.
    size: usize,
    /// Where in it the result is.
    retval: usize,
}

macro_rules! payload {
    ($type:ty) => {
        Payload {
            size: size_of::<$type>(),
            retval: std::mem::offset_of!($type, retval),
        }
    };
}

const HIP: Payload = payload!(rocprofiler_callback_tracing_hip_api_data_t);
const HSA: Payload = payload!(rocprofiler_callback_tracing_hsa_api_data_t);
const RCCL: Payload = payload!(rocprofiler_callback_tracing_rccl_api_data_t);
const ROCDECODE: Payload = payload!(rocprofiler_callback_tracing_rocdecode_api_data_t);
const ROCJPEG: Payload = payload!(rocprofiler_callback_tracing_rocjpeg_api_data_t);

pub(crate) fn configure(setup: &Setup<'_>) {
    let traces = setup.options.traces;
    let (hip_args, other_args) = (setup.options.hip_args, setup.options.annotate_args);
    let kinds = [
        (traces.hip_runtime, "HIP_RUNTIME_API", HIP, hip_args),
        (traces.hip_compiler, "HIP_COMPILER_API", HIP, hip_args),
        (traces.hsa_core, "HSA_CORE_API", HSA, other_args),
        (traces.hsa_amd, "HSA_AMD_EXT_API", HSA, other_args),
        (traces.hsa_image, "HSA_IMAGE_EXT_API", HSA, other_args),
        (
            traces.hsa_finalizer,
            "HSA_FINALIZE_EXT_API",
            HSA,
            other_args,
        ),
        (traces.rccl, "RCCL_API", RCCL, other_args),
        (traces.rocdecode, "ROCDECODE_API", ROCDECODE, other_args),
        (traces.rocjpeg, "ROCJPEG_API", ROCJPEG, other_args),
    ];
    for (wanted, kind, payload, record_arguments) in kinds {
        if wanted
            && let Some(names) = setup.callback_kind(kind)
            && let Some(api) = describe(
                names,
                arguments::of_kind(kind),
                payload,
                record_arguments,
                &setup.options.stacks,
            )
        {
            let data = Box::leak(Box::new(api));
            setup.trace_callbacks(
                setup.client,
                names,
                &[],
                Some(on_call),
                std::ptr::from_mut(data).cast(),
            );
        }
    }
}

/// What the callback needs to know; `record_arguments` says whether arguments are recorded.
fn describe(
    names: &KindNames,
    layouts: &[Layout],
    payload: Payload,
    record_arguments: bool,
    stacks: &StackOptions,
) -> Option<ApiKind> {
    let others = if record_arguments {
        Arguments::Texts
    } else {
        Arguments::None
    };
    let most = names.operations.iter().map(|(number, _)| *number).max();
    let count = most.and_then(|most| usize::try_from(most + 1).ok());
    // Operations are slots of a table; a provider with tens of thousands would be no provider.
    let mut operations = vec![others; count.unwrap_or(0).min(1 << 14)];
    if record_arguments {
        for (number, name) in &names.operations {
            let slot = usize::try_from(*number)
                .ok()
                .and_then(|number| operations.get_mut(number));
            if let (Some(slot), Some(layout)) = (slot, arguments::find(layouts, name)) {
                *slot = Arguments::Raw(*layout);
            }
        }
    }
    Some(ApiKind {
        number: u16::try_from(names.number).ok()?,
        payload,
        operations: operations.into(),
        others,
        stacks: Selection::of(stacks, &names.operations),
    })
}

unsafe extern "C" fn on_call(
    record: rocprofiler_callback_tracing_record_t,
    user_data: *mut rocprofiler_user_data_t,
    data: *mut c_void,
) {
    SERVICE.told(|| {
        // First, so that what we do is not taken for the call's own time. The clock is most of what we cost: once a phase.
        let returned = match record.phase {
            rocprofiler_callback_phase_t::EXIT => now(),
            _ => 0,
        };
        // SAFETY: `data` is what `configure` leaked; the slot belongs to this call and context.
        let (kind, slot) = unsafe { (&*data.cast::<ApiKind>(), &mut (*user_data).value) };
        match record.phase {
            rocprofiler_callback_phase_t::ENTER => {
                *slot = 0;
                *slot = enter(kind, &record).0;
                if *slot == 0 {
                    crate::recording::thread::lost();
                }
            }
            rocprofiler_callback_phase_t::EXIT if *slot != 0 => {
                let retval = retval(kind, record.payload);
                crate::recording::thread::with(|thread| {
                    let open = OpenRecord(*slot);
                    if let Some(selection) = &kind.stacks {
                        stacks::at_end(thread, selection, open, returned);
                    }
                    thread.records.close(open, retval, returned);
                });
            }
            _ => {}
        }
    });
}

/// First eight bytes of the result; 0 when the payload is of a size that this build does not know.
#[inline]
fn retval(kind: &ApiKind, payload: *const c_void) -> u64 {
    if payload.is_null() {
        return 0;
    }
    // SAFETY: payloads begin with their size, and one of the known size has a result at the known place.
    unsafe {
        if payload.cast::<u64>().read_unaligned() != kind.payload.size as u64 {
            return 0;
        }
        payload
            .cast::<u8>()
            .add(kind.payload.retval)
            .cast::<u64>()
            .read_unaligned()
    }
}

#[inline]
fn enter(kind: &ApiKind, record: &rocprofiler_callback_tracing_record_t) -> OpenRecord {
    let arguments = usize::try_from(record.operation)
        .ok()
        .and_then(|number| kind.operations.get(number))
        .unwrap_or(&kind.others);
    match arguments {
        Arguments::None => open(kind, record, 0, 0, |_| {}),
        Arguments::Raw(layout) => enter_raw(kind, record, layout.size.into(), layout.texts()),
        Arguments::Texts => enter_texts(kind, record),
    }
}

/// Opens the record of a call; `fill` writes its tail behind the stack, if it has one.
#[inline]
fn open(
    kind: &ApiKind,
    record: &rocprofiler_callback_tracing_record_t,
    flags: u32,
    tail: usize,
    fill: impl FnOnce(&mut [u8]),
) -> OpenRecord {
    let selection = kind.stacks.as_ref();
    let selection = selection.filter(|selection| selection.takes(record.operation));
    crate::recording::thread::with(|thread| {
        let stack = stacks::at_begin(thread, selection);
        let len = record_len(HEAD, stacks::room(stack) + tail);
        thread.records.append_open(len, |bytes| {
            let (head, rest) = bytes.split_at_mut(HEAD);
            fill(stacks::put(stack, rest));
            // Last, for the same reason.
            let start = now();
            // In place: copying a struct that was just put together on the stack stalls on its own stores.
            if let Ok(call) = ApiCall::mut_from_bytes(head) {
                *call = ApiCall {
                    header: RecordHeader {
                        len: len as u32,
                        tag: tag::API,
                        aux: kind.number,
                    },
                    operation: record.operation.cast_unsigned(),
                    flags: flags | stacks::flag(stack),
                    start,
                    end: 0,
                    correlation: record.correlation_id.internal,
                    ancestor: record.correlation_id.ancestor,
                    retval: 0,
                };
            }
        })
    })
    .unwrap_or_default()
}

fn enter_raw(
    kind: &ApiKind,
    record: &rocprofiler_callback_tracing_record_t,
    size: usize,
    offsets: &[u16],
) -> OpenRecord {
    // The arguments follow the payload's size; what the provider does not deliver is not read.
    let payload = record.payload.cast::<u8>();
    let there = match payload.is_null() {
        true => 0,
        // SAFETY: payloads begin with their size.
        false => unsafe { payload.cast::<u64>().read_unaligned() as usize },
    };
    if there < 8 + size {
        return open(kind, record, 0, 0, |_| {});
    }
    // SAFETY: the payload has `size` bytes of arguments behind its size field.
    let arguments = unsafe { std::slice::from_raw_parts(payload.add(8), size) };
    let mut texts: [Option<&[u8]>; Layout::TEXTS] = [None; Layout::TEXTS];
    let mut flags = api_flag::ARGUMENTS;
    let mut tail = size;
    for (text, offset) in texts.iter_mut().zip(offsets) {
        let offset = usize::from(*offset);
        let Some(bytes) = arguments.get(offset..offset + 8) else {
            continue;
        };
        let mut address = [0; 8];
        address.copy_from_slice(bytes);
        let pointer = usize::from_ne_bytes(address) as *const c_char;
        // SAFETY: an input argument that the call itself is about to read as text; the caller keeps it alive.
        if let Some((found, cut)) = unsafe { crate::recording::text::capped(pointer, TEXT) } {
            *text = Some(found);
            tail += found.len();
            if cut {
                flags |= api_flag::TRUNCATED;
            }
        }
    }
    tail += 4 * offsets.len();
    open(kind, record, flags, tail, |rest| {
        rest[..size].copy_from_slice(arguments);
        let mut at = size;
        for text in &texts[..offsets.len()] {
            let count = text.map_or(u32::MAX, |text| text.len() as u32);
            rest[at..at + 4].copy_from_slice(&count.to_le_bytes());
            at += 4;
            let text = text.unwrap_or_default();
            rest[at..at + text.len()].copy_from_slice(text);
            at += text.len();
        }
    })
}

/// The rare way, for operations that are newer than rpd: the provider formats.
#[cold]
fn enter_texts(kind: &ApiKind, record: &rocprofiler_callback_tracing_record_t) -> OpenRecord {
    let iterate = functions()
        .and_then(|functions| functions.rocprofiler_iterate_callback_tracing_kind_operation_args);
    let mut tail: Vec<u8> = Vec::new();
    if let Some(iterate) = iterate {
        // SAFETY: called from within the callback of this record; the vector outlives the call. No pointer is
        // followed (0): before the call, what outputs point to may be anything.
        unsafe { iterate(*record, Some(on_argument), 0, (&raw mut tail).cast()) };
    }
    let flags = if tail.is_empty() {
        0
    } else {
        api_flag::ARGUMENT_TEXTS
    };
    open(kind, record, flags, tail.len(), |rest| {
        rest[..tail.len()].copy_from_slice(&tail);
    })
}

unsafe extern "C" fn on_argument(
    _kind: rocprofiler_callback_tracing_kind_t,
    _operation: rocprofiler_tracing_operation_t,
    _number: u32,
    _value: *const c_void,
    _indirection: i32,
    r#type: *const c_char,
    name: *const c_char,
    value: *const c_char,
    _dereferenced: i32,
    data: *mut c_void,
) -> c_int {
    // SAFETY: `data` is the vector of `enter_texts`.
    let tail = unsafe { &mut *data.cast::<Vec<u8>>() };
    for text in [r#type, name, value] {
        let text = match text.is_null() {
            true => c"",
            // SAFETY: texts are valid during this call.
            false => unsafe { CStr::from_ptr(text) },
        };
        let bytes = text.to_bytes();
        let bytes = &bytes[..bytes.len().min(TEXT)];
        tail.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        tail.extend_from_slice(bytes);
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read_from_payloads_of_the_known_size_only() {
        let Payload {
            size,
            retval: offset,
        } = HIP;
        let kind = ApiKind {
            number: 5,
            payload: HIP,
            operations: Box::new([]),
            others: Arguments::None,
            stacks: None,
        };
        let mut words = vec![0u64; size / 8];
        words[0] = size as u64;
        words[offset / 8] = 700;
        assert_eq!(retval(&kind, words.as_ptr().cast()), 700);
        words[0] = size as u64 + 8;
        assert_eq!(retval(&kind, words.as_ptr().cast()), 0);
        assert_eq!(retval(&kind, std::ptr::null()), 0);
    }
}
