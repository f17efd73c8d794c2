//! Types that functions of the runtimes take or return, and the part of results that records keep.

use std::ffi::c_void;

pub(crate) use rocprofiler_sdk_sys::by_value::{
    dim3 as Dim3, hipChannelFormatDesc as ChannelFormatDesc, hipExtent as Extent,
    hipIpcMemHandle_t as IpcHandle, hipPitchedPtr as PitchedPtr,
    hsa_ext_control_directives_t as ControlDirectives, ncclUniqueId as UniqueId,
};

/// The first eight bytes of a function's result, as records of calls keep them.
pub(crate) trait Result: Copy {
    /// The first eight bytes of the result; 0 for no result.
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
        u64::from(value.x.cast_unsigned()) | u64::from(value.y.cast_unsigned()) << 32
    };
}
