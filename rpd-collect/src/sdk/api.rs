//! Calls of the runtimes: HIP, HSA, RCCL, rocDecode, rocJPEG, rocSHMEM, hipFile.

use std::ffi::{c_char, c_void};

use rocprofiler_sdk_sys::{
    rocprofiler_callback_tracing_hip_api_data_t, rocprofiler_callback_tracing_hsa_api_data_t,
    rocprofiler_callback_tracing_kind_t, rocprofiler_callback_tracing_rccl_api_data_t,
    rocprofiler_callback_tracing_rocdecode_api_data_t,
    rocprofiler_callback_tracing_rocjpeg_api_data_t, rocprofiler_tracing_operation_t,
};
use rpd_spool::format::call_flag;
use rpd_spool::writer::{OpenRecord, now};

use super::provider::functions;
use super::query::visit9;
use super::setup::Setup;
use super::trace::{Phase, Record, Tracer, call_of};
use crate::recording::arguments::{self, Layout, TEXT};
use crate::recording::call::{self, Call};
use crate::recording::guard::Service;
use crate::recording::kinds::KindNames;
use crate::recording::stacks::Selection;
use crate::recording::text;

static SERVICE: Service = Service::new("API calls");

/// Form in which the arguments of an operation are copied.
#[derive(Debug, Clone, Copy)]
enum Arguments {
    /// No arguments.
    None,
    /// The argument struct, and the texts behind the pointers in it.
    Raw(Layout),
    /// Texts that the provider formats.
    Texts,
}

/// The calls of a kind.
#[derive(Debug)]
struct ApiKind {
    number: u16,
    /// Layout of the kind's payload. With a payload of any other size the result is not read.
    payload: Payload,
    /// Arguments of each operation, by its number.
    operations: Box<[Arguments]>,
    /// Form of the arguments of operations beyond the table.
    others: Arguments,
    /// Operations whose stacks are recorded.
    stacks: Option<Selection>,
}

/// A payload of the provider.
#[derive(Debug, Clone, Copy)]
struct Payload {
    /// Size in bytes in the layout of this build.
    size: usize,
    /// Offset of the result in it.
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

/// A payload whose layout is not known: its results are not read.
const UNREAD: Payload = Payload { size: 0, retval: 0 };

/// Kinds of newer SDKs, each with the first version that has it.
const NEWER: [(&str, &str); 2] = [
    ("ROCSHMEM_API", "1.3 (ROCm 7.13)"),
    ("HIPFILE_API", "1.3.5 (ROCm 10.0)"),
];

pub(super) fn configure(setup: &Setup<'_>) {
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
        (traces.rocshmem, "ROCSHMEM_API", UNREAD, other_args),
        (traces.hipfile, "HIPFILE_API", UNREAD, other_args),
    ];
    for (wanted, kind, payload, record_arguments) in kinds {
        let newer = NEWER.iter().find(|(name, _)| *name == kind);
        let found = || match newer {
            Some((name, since)) => setup.newer_callback_kind(name, since),
            None => setup.callback_kind(kind),
        };
        if wanted
            && let Some(names) = found()
            // A kind that the provider lacks was noted by `callback_kind`; the others are traced all the same.
            && let Some(mut api) =
                describe(names, arguments::of_kind(kind), payload, record_arguments)
        {
            api.keep_results(setup.options.argument_results);
            api.stacks = Selection::from_options(&setup.options.stacks, &names.operations);
            setup.trace(setup.client, names, &[], api);
        }
    }
}

/// The calls of a kind, with their arguments or without. None when the spool has no room for the number of the kind.
fn describe(
    names: &KindNames,
    layouts: &[Layout],
    payload: Payload,
    record_arguments: bool,
) -> Option<ApiKind> {
    let others = if record_arguments {
        Arguments::Texts
    } else {
        Arguments::None
    };
    let most = names.operations.iter().map(|(number, _)| *number).max();
    let count = most.and_then(|most| usize::try_from(most + 1).ok());
    // Operations are places in a table; no provider has tens of thousands.
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
        stacks: None,
    })
}

impl ApiKind {
    /// Whether the values that calls store through their arguments are recorded.
    fn keep_results(&mut self, wanted: bool) {
        for arguments in &mut self.operations {
            if let Arguments::Raw(layout) = arguments {
                *layout = layout.with_results(wanted);
            }
        }
    }

    #[inline]
    fn arguments_of(&self, operation: i32) -> &Arguments {
        let number = usize::try_from(operation).ok();
        let known = number.and_then(|number| self.operations.get(number));
        known.unwrap_or(&self.others)
    }
}

impl Tracer for ApiKind {
    const SERVICE: &'static Service = &SERVICE;

    #[inline]
    fn record(&self, record: &Record, slot: &mut u64) {
        match record.phase {
            Phase::ENTER => {
                *slot = 0;
                *slot = enter(self, record).0;
            }
            Phase::EXIT => {
                // First, so that our work is not measured as part of the call. The clock is read once a phase: it is
                // most of the cost of a record.
                exit(self, record, OpenRecord(*slot), now());
            }
            _ => {}
        }
    }
}

/// First eight bytes of the result; `None` when the payload has a size that is not in the tables of this build.
#[inline]
fn retval(kind: &ApiKind, payload: *const c_void) -> Option<u64> {
    if payload.is_null() {
        return None;
    }
    // SAFETY: payloads begin with their size, and one of the known size has a result at the known place.
    unsafe {
        if payload.cast::<u64>().read_unaligned() != kind.payload.size as u64 {
            return None;
        }
        let retval = payload.cast::<u8>().add(kind.payload.retval);
        Some(retval.cast::<u64>().read_unaligned())
    }
}

#[inline]
fn exit(kind: &ApiKind, record: &Record, begun: OpenRecord, returned: u64) {
    let retval = retval(kind, record.payload);
    if let (Arguments::Raw(layout), Some(retval)) = (kind.arguments_of(record.operation), retval)
        && layout.has_results()
        && let Some(arguments) = delivered(record, layout)
    {
        // SAFETY: the arguments are those of the call that returns, which the provider delivers again.
        unsafe { arguments::end(begun, layout, arguments, retval, returned) };
    } else {
        call::end(begun, retval.unwrap_or(0), returned);
    }
}

/// The argument struct in a payload; `None` for a payload without it.
#[inline]
fn delivered<'a>(record: &'a Record, layout: &Layout) -> Option<&'a [u8]> {
    let size = usize::from(layout.size);
    let payload = record.payload.cast::<u8>();
    if payload.is_null() {
        return None;
    }
    // SAFETY: payloads begin with their size, which the arguments follow; they last as long as the callback, and so does
    // the record.
    unsafe {
        let delivered = payload.cast::<u64>().read_unaligned() as usize;
        (delivered >= 8 + size).then(|| std::slice::from_raw_parts(payload.add(8), size))
    }
}

#[inline]
fn enter(kind: &ApiKind, record: &Record) -> OpenRecord {
    let call = call_of(kind.number, record, kind.stacks.as_ref());
    match kind.arguments_of(record.operation) {
        Arguments::None => call.begin(0, 0, |_| {}),
        Arguments::Raw(layout) => enter_raw(&call, record, layout),
        Arguments::Texts => enter_texts(&call, record),
    }
}

fn enter_raw(call: &Call, record: &Record, layout: &Layout) -> OpenRecord {
    match delivered(record, layout) {
        // SAFETY: the arguments are those of the call that begins.
        Some(arguments) => unsafe { arguments::begin(call, layout, arguments) },
        None => call.begin(0, 0, |_| {}),
    }
}

/// For operations that are newer than rpd, which are rare: the provider formats their arguments.
#[cold]
fn enter_texts(call: &Call, record: &Record) -> OpenRecord {
    let iterate = functions()
        .and_then(|functions| functions.rocprofiler_iterate_callback_tracing_kind_operation_args);
    let mut tail: Vec<u8> = Vec::new();
    if let Some(iterate) = iterate {
        let argument = |_: rocprofiler_callback_tracing_kind_t,
                        _: rocprofiler_tracing_operation_t,
                        _: u32,
                        _: *const c_void,
                        _: i32,
                        type_name: *const c_char,
                        name: *const c_char,
                        value: *const c_char,
                        _: i32| {
            for text in [type_name, name, value] {
                // SAFETY: null, or text that is valid during this call.
                let text = unsafe { text::text(text) };
                let text = &text[..text.len().min(TEXT)];
                tail.extend_from_slice(&(text.len() as u32).to_le_bytes());
                tail.extend_from_slice(text);
            }
        };
        // SAFETY: called from within the callback of this record; callback and data belong together. No pointer is
        // followed (0): before the call, what outputs point to may be anything.
        visit9(argument, |visit, data| unsafe {
            iterate(*record, visit, 0, data)
        });
    }
    let flags = if tail.is_empty() {
        0
    } else {
        call_flag::ARGUMENT_TEXTS
    };
    call.begin(flags, tail.len(), |rest| {
        rest[..tail.len()].copy_from_slice(&tail);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retval_is_read_from_payloads_of_the_known_size_only() {
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
        assert_eq!(retval(&kind, words.as_ptr().cast()), Some(700));
        words[0] = size as u64 + 8;
        assert_eq!(retval(&kind, words.as_ptr().cast()), None);
        assert_eq!(retval(&kind, std::ptr::null()), None);
    }
}
