//! Arguments of calls as text, for tools that iterate over them.

use core::{
    ffi::{CStr, c_int, c_void},
    ptr,
};
use std::ffi::CString;

use rocprofiler_sdk_sys::{
    rocprofiler_buffer_category_t as Category,
    rocprofiler_buffer_tracing_hip_api_ext_record_t as ExtendedRecord,
    rocprofiler_buffer_tracing_kind_t as BufferKind,
    rocprofiler_buffer_tracing_operation_args_cb_t as BufferArgsFn,
    rocprofiler_callback_tracing_kind_t as CallbackKind,
    rocprofiler_callback_tracing_operation_args_cb_t as CallbackArgsFn,
    rocprofiler_callback_tracing_record_t as CallbackRecord, rocprofiler_record_header_t as Header,
    rocprofiler_status_t as Status,
};

use super::enums;
use crate::api::{
    args::{self, Arg, Kind},
    types::{Dim3, Extent, PitchedPtr},
};

/// Arguments of the calls of a callback kind; `None` for kinds without arguments.
fn table(kind: CallbackKind) -> Option<&'static [&'static [Arg]]> {
    Some(match kind {
        CallbackKind::HIP_RUNTIME_API => &args::HIP_RUNTIME_API,
        CallbackKind::HIP_COMPILER_API => &args::HIP_COMPILER_API,
        CallbackKind::HSA_CORE_API => &args::HSA_CORE_API,
        CallbackKind::HSA_AMD_EXT_API => &args::HSA_AMD_EXT_API,
        CallbackKind::HSA_IMAGE_EXT_API => &args::HSA_IMAGE_EXT_API,
        CallbackKind::HSA_FINALIZE_EXT_API => &args::HSA_FINALIZE_EXT_API,
        // Ranges are read with the table of the plain calls, as the SDK does.
        CallbackKind::MARKER_CORE_API | CallbackKind::MARKER_CORE_RANGE_API => {
            &args::MARKER_CORE_API
        }
        CallbackKind::MARKER_CONTROL_API => &args::MARKER_CONTROL_API,
        CallbackKind::MARKER_NAME_API => &args::MARKER_NAME_API,
        CallbackKind::RCCL_API => &args::RCCL_API,
        _ => return None,
    })
}

fn address(value: usize) -> String {
    if value == 0 {
        "0".to_owned()
    } else {
        format!("{value:#x}")
    }
}

/// The text of a value that is not a pointer.
///
/// # Safety
/// `at` holds a value of that kind.
unsafe fn value(kind: Kind, at: *const u8) -> String {
    // SAFETY: by the contract; unions of arguments are aligned, what pointers lead to may not be.
    unsafe {
        match kind {
            Kind::Bool => (at.read() != 0).to_string(),
            Kind::U8 | Kind::Text => at.read().to_string(),
            Kind::U16 => at.cast::<u16>().read_unaligned().to_string(),
            Kind::I32 => at.cast::<i32>().read_unaligned().to_string(),
            Kind::U32 => at.cast::<u32>().read_unaligned().to_string(),
            Kind::U64 => at.cast::<u64>().read_unaligned().to_string(),
            Kind::I64 => at.cast::<i64>().read_unaligned().to_string(),
            Kind::F32 => at.cast::<f32>().read_unaligned().to_string(),
            Kind::Handle => format!("{{handle={}}}", at.cast::<u64>().read_unaligned()),
            Kind::Enum(name) => {
                let value = at.cast::<i32>().read_unaligned();
                enums::short_name(name, value).map_or_else(|| value.to_string(), str::to_owned)
            }
            Kind::Dim3 => {
                let Dim3 { x, y, z } = at.cast::<Dim3>().read_unaligned();
                format!("{{z={z}, y={y}, x={x}}}")
            }
            Kind::Extent => {
                let Extent {
                    width,
                    height,
                    depth,
                } = at.cast::<Extent>().read_unaligned();
                format!("{{depth={depth}, height={height}, width={width}}}")
            }
            Kind::PitchedPtr => {
                let p = at.cast::<PitchedPtr>().read_unaligned();
                let ptr = address(p.ptr as usize);
                format!(
                    "{{ysize={}, xsize={}, pitch={}, ptr={ptr}}}",
                    p.ysize, p.xsize, p.pitch
                )
            }
            Kind::Void | Kind::Opaque | Kind::Struct => String::new(),
        }
    }
}

/// The text of an argument, and the number of pointers that were followed for it.
///
/// # Safety
/// `at` holds the argument, and its pointers are good for `most` levels and as text.
unsafe fn text(arg: &Arg, mut at: *const u8, most: i32) -> (CString, i32) {
    let mut left = arg.pointers;
    let mut followed = 0;
    let text = loop {
        if left == 0 {
            // SAFETY: all pointers were followed.
            break unsafe { value(arg.kind, at) };
        }
        // SAFETY: there is a pointer.
        let pointer = unsafe { at.cast::<*const u8>().read_unaligned() };
        let shown = address(pointer as usize);
        let may_follow = followed < most;
        match (left, arg.kind) {
            (1, Kind::Void | Kind::Opaque) => break shown,
            _ if pointer.is_null() => break "(null)".to_owned(),
            (1, Kind::Text) => {
                // SAFETY: not null, text by the contract.
                let text = unsafe { CStr::from_ptr(pointer.cast()) };
                return (text.to_owned(), followed);
            }
            // The fields of other structs are not shown.
            (1, Kind::Struct) | (2, Kind::Void) => break shown,
            _ if !may_follow => break shown,
            _ => {
                at = pointer;
                left -= 1;
                followed += 1;
            }
        }
    };
    (CString::new(text).unwrap_or_default(), followed)
}

/// Calls back for each argument until the callback returns a number other than zero.
///
/// # Safety
/// `union` is the argument union of that call.
unsafe fn each(
    list: &[Arg],
    union: *const u8,
    most: i32,
    mut call: impl FnMut(u32, &Arg, *const c_void, &CStr, i32) -> c_int,
) {
    for (n, arg) in list.iter().enumerate() {
        // SAFETY: the offset is inside the union, and the contract covers the rest.
        let (at, (text, followed)) = unsafe {
            let at = union.add(arg.offset);
            (at, text(arg, at, most))
        };
        if call(n as u32, arg, at.cast(), &text, followed) != 0 {
            break;
        }
    }
}

/// `rocprofiler_iterate_callback_tracing_kind_operation_args`.
///
/// # Safety
/// The record is the one of the callback that is running; the callback can be called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_iterate_callback_tracing_kind_operation_args(
    record: CallbackRecord,
    callback: CallbackArgsFn,
    max_dereference_count: i32,
    user_data: *mut c_void,
) -> Status {
    let Some(callback) = callback else {
        return Status::ERROR_INVALID_ARGUMENT;
    };
    if record.kind.0 == 0 || record.kind.0 >= CallbackKind::LAST.0 || record.payload.is_null() {
        return Status::ERROR_INVALID_ARGUMENT;
    }
    let Some(table) = table(record.kind) else {
        return Status::ERROR_NOT_IMPLEMENTED;
    };
    let Some(list) = usize::try_from(record.operation)
        .ok()
        .and_then(|op| table.get(op))
    else {
        return Status::ERROR_INVALID_ARGUMENT;
    };
    // SAFETY: the payloads of these kinds begin with a size, and the arguments follow.
    unsafe {
        each(
            list,
            record.payload.cast::<u8>().add(8),
            max_dereference_count,
            |n, arg, at, text, followed| {
                callback(
                    record.kind,
                    record.operation,
                    n,
                    at,
                    arg.pointers as i32,
                    arg.mangled.as_ptr(),
                    arg.name.as_ptr(),
                    text.as_ptr(),
                    followed,
                    user_data,
                )
            },
        );
    }
    Status::SUCCESS
}

/// `rocprofiler_iterate_buffer_tracing_record_args`.
///
/// # Safety
/// The header is one that a buffer callback got; the callback can be called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_iterate_buffer_tracing_record_args(
    record: Header,
    callback: BufferArgsFn,
    user_data: *mut c_void,
) -> Status {
    let Some(callback) = callback else {
        return Status::ERROR_INVALID_ARGUMENT;
    };
    if record.category != Category::TRACING.0 || record.payload.is_null() {
        return Status::ERROR_INVALID_ARGUMENT;
    }
    let kind = BufferKind(record.kind);
    let table = match kind {
        BufferKind::HIP_RUNTIME_API_EXT => table(CallbackKind::HIP_RUNTIME_API),
        BufferKind::HIP_COMPILER_API_EXT => table(CallbackKind::HIP_COMPILER_API),
        _ => None,
    };
    let Some(table) = table else {
        return Status::ERROR_NOT_IMPLEMENTED;
    };
    // SAFETY: extended records of these kinds have this shape.
    let extended = unsafe { &*record.payload.cast::<ExtendedRecord>() };
    let Some(list) = usize::try_from(extended.operation)
        .ok()
        .and_then(|op| table.get(op))
    else {
        return Status::ERROR_INVALID_ARGUMENT;
    };
    // SAFETY: the record carries that call's arguments; nothing is followed but text.
    unsafe {
        each(
            list,
            ptr::from_ref(&extended.args).cast(),
            0,
            |n, arg, at, text, _| {
                callback(
                    kind,
                    extended.operation,
                    n,
                    at,
                    arg.pointers as i32,
                    arg.mangled.as_ptr(),
                    arg.name.as_ptr(),
                    text.as_ptr(),
                    user_data,
                )
            },
        );
    }
    Status::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arg(operation: &str, index: usize) -> &'static Arg {
        let id = crate::sdk::names::buffer_operations(BufferKind::HIP_RUNTIME_API)
            .and_then(|o| o.names.iter().position(|n| n.to_str() == Ok(operation)));
        &args::HIP_RUNTIME_API[id.expect("a known call")][index]
    }

    fn show<T>(arg: &Arg, value: &T, most: i32) -> String {
        // SAFETY: the tests hand values of the argument's type.
        let (text, _) = unsafe { text(arg, ptr::from_ref(value).cast(), most) };
        text.to_string_lossy().into_owned()
    }

    #[test]
    fn arguments_are_written_as_by_the_sdk() {
        let count = arg("hipGetDeviceCount", 0);
        assert_eq!((count.name, count.mangled), (c"count", c"Pi"));
        let one = 1i32;
        assert_eq!(show(count, &ptr::from_ref(&one), 1), "1");
        assert_eq!(show(count, &ptr::null::<i32>(), 1), "(null)");
        let stream = arg("hipStreamCreateWithFlags", 0);
        assert_eq!(stream.mangled, c"PP12ihipStream_t");
        let null = 0usize;
        assert_eq!(show(stream, &ptr::from_ref(&null), 1), "0");
        let kind = arg("hipMemcpyAsync", 3);
        assert_eq!(kind.mangled, c"13hipMemcpyKind");
        assert_eq!(show(kind, &1u32, 1), "HostToDevice");
        let blocks = arg("hipLaunchKernel", 1);
        assert_eq!(
            (blocks.mangled, blocks.offset),
            (c"18rocprofiler_dim3_t", 8)
        );
        assert_eq!(
            show(blocks, &Dim3 { x: 64, y: 1, z: 1 }, 1),
            "{z=1, y=1, x=64}"
        );
        assert_eq!(arg("hipLaunchKernel", 3).offset, 32);
        let dst = arg("hipMemcpyAsync", 0);
        assert_eq!(show(dst, &0xabcusize, 1), "0xabc");
    }
}
