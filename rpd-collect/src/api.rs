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
use rpd_core::args::layout;
use rpd_core::domain::Kind;
use rpd_core::spool::format::{ApiCall, RecordHeader, api_flag, tag};
use rpd_core::spool::writer::{OpenRecord, now, record_len};
use zerocopy::FromBytes;

use crate::guard::Service;
use crate::names::KindNames;
use crate::register::{Setup, functions};

/// Bytes kept of a text argument.
const TEXT: usize = 4096;
/// Text arguments of a call that are looked at; no call has more.
const TEXTS: usize = 4;
const HEAD: usize = size_of::<ApiCall>();

static SERVICE: Service = Service::new("API calls");

/// What to copy of the arguments of an operation.
#[derive(Debug, Clone, Copy)]
enum Arguments {
    /// Nothing.
    None,
    /// That many bytes, and the texts behind the pointers at these offsets.
    Raw {
        size: u16,
        count: u8,
        texts: [u16; TEXTS],
    },
    /// What the provider makes of them.
    Texts,
}

/// What the callback needs to know about a kind.
#[derive(Debug)]
struct ApiKind {
    number: u16,
    /// Size of the payload as this build knows it; with any other its result is not looked at.
    payload: usize,
    /// Where in the payload the result is.
    retval: usize,
    /// By operation number.
    operations: Box<[Arguments]>,
    /// For operations beyond the table.
    others: Arguments,
}

/// Size of the payload of a kind and offset of the result in it.
fn payload(kind: Kind) -> Option<(usize, usize)> {
    macro_rules! payload {
        ($type:ty) => {
            (size_of::<$type>(), std::mem::offset_of!($type, retval))
        };
    }
    Some(match kind {
        Kind::HipRuntime | Kind::HipCompiler => {
            payload!(rocprofiler_callback_tracing_hip_api_data_t)
        }
        Kind::HsaCore | Kind::HsaAmdExt | Kind::HsaImageExt | Kind::HsaFinalizeExt => {
            payload!(rocprofiler_callback_tracing_hsa_api_data_t)
        }
        Kind::Rccl => payload!(rocprofiler_callback_tracing_rccl_api_data_t),
        Kind::Rocdecode => payload!(rocprofiler_callback_tracing_rocdecode_api_data_t),
        Kind::Rocjpeg => payload!(rocprofiler_callback_tracing_rocjpeg_api_data_t),
        _ => return None,
    })
}

pub(crate) fn configure(setup: &Setup<'_>) {
    let traces = setup.options.traces;
    let wanted = [
        (traces.hip_runtime, Kind::HipRuntime),
        (traces.hip_compiler, Kind::HipCompiler),
        (traces.hsa_core, Kind::HsaCore),
        (traces.hsa_amd, Kind::HsaAmdExt),
        (traces.hsa_image, Kind::HsaImageExt),
        (traces.hsa_finalizer, Kind::HsaFinalizeExt),
        (traces.rccl, Kind::Rccl),
        (traces.rocdecode, Kind::Rocdecode),
        (traces.rocjpeg, Kind::Rocjpeg),
    ];
    for (wanted, kind) in wanted {
        if wanted
            && let Some(names) = setup.callback_kind(kind.provider_name())
            && let Some(api) = describe(setup, kind, names)
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

fn describe(setup: &Setup<'_>, kind: Kind, names: &KindNames) -> Option<ApiKind> {
    let (payload, retval) = payload(kind)?;
    let arguments = match kind {
        Kind::HipRuntime | Kind::HipCompiler => setup.options.hip_args,
        _ => setup.options.annotate_args,
    };
    let others = if arguments {
        Arguments::Texts
    } else {
        Arguments::None
    };
    let most = names.operations.iter().map(|(number, _)| *number).max();
    let count = most.and_then(|most| usize::try_from(most + 1).ok());
    // Operations are slots of a table; a provider with tens of thousands would be no provider.
    let mut operations = vec![others; count.unwrap_or(0).min(1 << 14)];
    if arguments {
        for (number, name) in &names.operations {
            let slot = usize::try_from(*number)
                .ok()
                .and_then(|number| operations.get_mut(number));
            if let (Some(slot), Some(layout)) = (slot, layout(kind, name))
                && let Some(raw) = raw(layout.size, layout.texts())
            {
                *slot = raw;
            }
        }
    }
    Some(ApiKind {
        number: u16::try_from(names.number).ok()?,
        payload,
        retval,
        operations: operations.into(),
        others,
    })
}

/// `None` for a layout that the fixed-size table cannot hold.
fn raw(size: u32, offsets: impl Iterator<Item = u32>) -> Option<Arguments> {
    let mut texts = [0; TEXTS];
    let mut count = 0;
    for offset in offsets {
        *texts.get_mut(count)? = u16::try_from(offset).ok()?;
        count += 1;
    }
    Some(Arguments::Raw {
        size: u16::try_from(size).ok()?,
        count: count as u8,
        texts,
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
                    crate::thread::lost();
                }
            }
            rocprofiler_callback_phase_t::EXIT if *slot != 0 => {
                let retval = retval(kind, record.payload);
                crate::thread::with(|thread| {
                    thread.records.close(OpenRecord(*slot), retval, returned);
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
        if payload.cast::<u64>().read_unaligned() != kind.payload as u64 {
            return 0;
        }
        payload
            .cast::<u8>()
            .add(kind.retval)
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
        Arguments::Raw { size, count, texts } => {
            enter_raw(kind, record, (*size).into(), &texts[..usize::from(*count)])
        }
        Arguments::Texts => enter_texts(kind, record),
    }
}

/// Opens the record of a call; `fill` writes its tail.
#[inline]
fn open(
    kind: &ApiKind,
    record: &rocprofiler_callback_tracing_record_t,
    flags: u32,
    tail: usize,
    fill: impl FnOnce(&mut [u8]),
) -> OpenRecord {
    let len = record_len(HEAD, tail);
    crate::thread::with(|thread| {
        thread.records.append_open(len, |bytes| {
            let (head, rest) = bytes.split_at_mut(HEAD);
            fill(rest);
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
                    flags,
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
    let mut texts: [Option<&[u8]>; TEXTS] = [None; TEXTS];
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
        if let Some((found, cut)) = unsafe { crate::read::capped(pointer, TEXT) } {
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
        let (size, offset) = payload(Kind::HipRuntime).expect("an API kind");
        let kind = ApiKind {
            number: 5,
            payload: size,
            retval: offset,
            operations: Box::new([]),
            others: Arguments::None,
        };
        let mut words = vec![0u64; size / 8];
        words[0] = size as u64;
        words[offset / 8] = 700;
        assert_eq!(retval(&kind, words.as_ptr().cast()), 700);
        words[0] = size as u64 + 8;
        assert_eq!(retval(&kind, words.as_ptr().cast()), 0);
        assert_eq!(retval(&kind, std::ptr::null()), 0);
    }

    #[test]
    fn every_known_layout_fits_the_table() {
        let registered = layout(Kind::HipCompiler, "__hipRegisterFunction").expect("known");
        let Some(Arguments::Raw { count, .. }) = raw(registered.size, registered.texts()) else {
            panic!("does not fit");
        };
        assert_eq!(count, 2);
        assert!(raw(8, 0..5).is_none());
    }
}
