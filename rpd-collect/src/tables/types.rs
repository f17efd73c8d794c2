//! Structs that functions of the runtimes take or return by value.

use std::ffi::c_void;

/// `dim3`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Dim3 {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) z: u32,
}

/// `hipExtent`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    width: usize,
    height: usize,
    depth: usize,
}

/// `hipPitchedPtr`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct PitchedPtr {
    ptr: *mut c_void,
    pitch: usize,
    xsize: usize,
    ysize: usize,
}

/// `hipChannelFormatDesc`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChannelFormatDesc {
    bits: [i32; 4],
    kind: u32,
}

/// `hipIpcMemHandle_t` and `hipIpcEventHandle_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct IpcHandle {
    reserved: [u8; 64],
}

/// `hsa_ext_control_directives_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct ControlDirectives {
    words: [u64; 18],
}

/// `ncclUniqueId`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct UniqueId {
    internal: [u8; 128],
}

/// The first eight bytes of a function's result, as records of calls keep them.
pub(crate) trait Result: Copy {
    /// These bytes; 0 for no result.
    fn word(self) -> u64;
}

macro_rules! results {
    ($($type:ty = |$value:ident| $word:expr;)*) => {$(
        impl Result for $type {
            #[inline(always)]
            fn word(self) -> u64 {
                let $value = self;
                $word
            }
        }
    )*};
}

results! {
    () = |_value| 0;
    u32 = |value| value.into();
    i32 = |value| value.cast_unsigned().into();
    u64 = |value| value;
    i64 = |value| value.cast_unsigned();
    *mut c_void = |value| value as u64;
    ChannelFormatDesc = |value| {
        u64::from(value.bits[0].cast_unsigned()) | u64::from(value.bits[1].cast_unsigned()) << 32
    };
}
