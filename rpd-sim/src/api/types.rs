//! Structs that calls take or return by value, and what a runtime returns for what it does not support.

use core::ffi::c_void;

/// `dim3` and `rocprofiler_dim3_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Dim3 {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) z: u32,
}

impl Dim3 {
    pub(crate) fn new(x: u32, y: u32, z: u32) -> Self {
        Self { x, y, z }
    }

    /// Number of points: the product of the three sizes.
    pub(crate) fn volume(self) -> u64 {
        u64::from(self.x) * u64::from(self.y) * u64::from(self.z)
    }
}

/// `hipExtent`; width in bytes or elements, the rest in rows and slices.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
}

/// `hipPitchedPtr`; `pitch` in bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct PitchedPtr {
    pub(crate) ptr: *mut c_void,
    pub(crate) pitch: usize,
    pub(crate) xsize: usize,
    pub(crate) ysize: usize,
}

/// `hipChannelFormatDesc`; bits of each component and the kind of number.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ChannelFormatDesc {
    pub(crate) x: i32,
    pub(crate) y: i32,
    pub(crate) z: i32,
    pub(crate) w: i32,
    pub(crate) f: u32,
}

/// `hipIpcMemHandle_t` and `hipIpcEventHandle_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct IpcHandle {
    pub(crate) reserved: [u8; 64],
}

/// `ncclUniqueId`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct UniqueId {
    pub(crate) bytes: [u8; 128],
}

/// `hsa_ext_control_directives_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct ControlDirectives {
    pub(crate) words: [u64; 18],
}

/// The return value, by result type, of a call that the runtime lacks.
pub(crate) trait Unsupported {
    /// The value, given the runtime's status for it.
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
