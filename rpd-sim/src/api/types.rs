//! Structs that calls take or return by value, and the values that calls return when they are not supported.

use core::ffi::c_void;

pub(crate) use rocprofiler_sdk_sys::by_value::{
    dim3 as Dim3, hipChannelFormatDesc as ChannelFormatDesc, hipExtent as Extent,
    hipIpcMemHandle_t as IpcHandle, hipPitchedPtr as PitchedPtr,
    hsa_ext_control_directives_t as ControlDirectives, ncclUniqueId as UniqueId,
};

/// The return value, by result type, of a call that the runtime lacks.
pub(crate) trait Unsupported {
    /// The value that a call returns which is not supported, made from the runtime's status for that.
    fn unsupported(status: u32) -> Self;
}

impl Unsupported for u32 {
    fn unsupported(status: u32) -> Self {
        status
    }
}

impl Unsupported for i32 {
    fn unsupported(_: u32) -> Self {
        -1
    }
}

impl Unsupported for () {
    fn unsupported(_: u32) -> Self {}
}

impl Unsupported for u64 {
    fn unsupported(_: u32) -> Self {
        0
    }
}

impl Unsupported for i64 {
    fn unsupported(_: u32) -> Self {
        0
    }
}

impl Unsupported for *mut c_void {
    fn unsupported(_: u32) -> Self {
        core::ptr::null_mut()
    }
}

impl Unsupported for ChannelFormatDesc {
    fn unsupported(_: u32) -> Self {
        Self::default()
    }
}
