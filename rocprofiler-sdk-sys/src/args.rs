//! Arguments and return values of traced API calls, as callback payloads and extended records carry them.
//!
//! An argument union has one member per call: the call's parameters in order, with natural C alignment, from the
//! start of the union. Which call it is follows from kind and operation. Only the marker calls are spelled out;
//! the other unions are blocks of the right size and alignment whose layout callers derive from the call's signature.

use core::ffi::{c_char, c_int, c_void};
use core::mem::MaybeUninit;

use crate::by_value::hipChannelFormatDesc;
use crate::macros::c_struct;
use crate::roctx::{roctx_range_id_t, roctx_thread_id_t};

macro_rules! args_block {
    ( $( $(#[$meta:meta])* $name:ident [$words:literal] )* ) => {
        $(
            $(#[$meta])*
            #[repr(C)]
            #[derive(Clone, Copy, Debug)]
            pub struct $name {
                /// Content of the union; words that the call does not use may be uninitialised.
                pub words: [MaybeUninit<u64>; $words],
            }

            impl $name {
                /// Start of the arguments.
                pub const fn as_ptr(&self) -> *const u8 {
                    self.words.as_ptr().cast()
                }

                /// Start of the arguments, for writing.
                pub const fn as_mut_ptr(&mut self) -> *mut u8 {
                    self.words.as_mut_ptr().cast()
                }
            }

            impl Default for $name {
                /// All bytes zero.
                fn default() -> Self {
                    Self { words: [MaybeUninit::new(0); $words] }
                }
            }
        )*
    };
}

args_block! {
    /// Arguments of a HIP runtime or compiler call.
    rocprofiler_hip_api_args_t[11]
    /// Arguments of an HSA call.
    rocprofiler_hsa_api_args_t[24]
    /// Arguments of an RCCL call.
    rocprofiler_rccl_api_args_t[19]
    /// Arguments of a rocDecode call.
    rocprofiler_rocdecode_api_args_t[5]
    /// Arguments of a rocJPEG call.
    rocprofiler_rocjpeg_api_args_t[6]
    /// Arguments of an OMPT callback.
    rocprofiler_ompt_args_t[16]
}

c_struct! {
    /// Argument of the marker calls that take a message.
    struct rocprofiler_marker_message_args_t {
        /// The message, as the program passed it.
        pub message: *const c_char,
    }
}

c_struct! {
    /// Arguments of `roctxNameHsaAgent`.
    struct rocprofiler_marker_name_hsa_agent_args_t {
        /// Name that the program gives to the agent; null removes it.
        pub name: *const c_char,
        /// Pointer to the HSA agent handle.
        pub agent: *const c_void,
    }
}

c_struct! {
    /// Arguments of `roctxNameHipDevice`.
    struct rocprofiler_marker_name_hip_device_args_t {
        /// Name that the program gives to the device; null removes it.
        pub name: *const c_char,
        /// Ordinal of the HIP device, from 0.
        pub device_id: c_int,
    }
}

c_struct! {
    /// Arguments of `roctxNameHipStream`.
    struct rocprofiler_marker_name_hip_stream_args_t {
        /// Name that the program gives to the stream; null removes it.
        pub name: *const c_char,
        /// The `hipStream_t`; null for the default stream.
        pub stream: *const c_void,
    }
}

c_struct! {
    /// Arguments of a marker call. `roctxRangePop` has none.
    union rocprofiler_marker_api_args_t {
        /// Message of an instant.
        pub roctxMarkA: rocprofiler_marker_message_args_t,
        /// Message of a range that nests on its thread.
        pub roctxRangePushA: rocprofiler_marker_message_args_t,
        /// Message of a range that any thread of the process may close.
        pub roctxRangeStartA: rocprofiler_marker_message_args_t,
        /// Message of a range from push to pop (core range domain).
        pub roctxThreadRangeA: rocprofiler_marker_message_args_t,
        /// Message of a range from start to stop (core range domain).
        pub roctxProcessRangeA: rocprofiler_marker_message_args_t,
        /// Id that `roctxRangeStartA` returned for the range to close.
        pub roctxRangeStop: roctx_range_id_t,
        /// Place for the id of the calling thread.
        pub roctxGetThreadId: *mut roctx_thread_id_t,
        /// The thread to pause, 0 for all.
        pub roctxProfilerPause: roctx_thread_id_t,
        /// The thread to resume, 0 for all.
        pub roctxProfilerResume: roctx_thread_id_t,
        /// Name that the program gives to the calling thread.
        pub roctxNameOsThread: *const c_char,
        /// Name and HSA agent, of `roctxNameHsaAgent`.
        pub roctxNameHsaAgent: rocprofiler_marker_name_hsa_agent_args_t,
        /// Name and ordinal, of `roctxNameHipDevice`.
        pub roctxNameHipDevice: rocprofiler_marker_name_hip_device_args_t,
        /// Name and stream, of `roctxNameHipStream`.
        pub roctxNameHipStream: rocprofiler_marker_name_hip_stream_args_t,
    }
}

c_struct! {
    /// Result of a HIP call.
    union rocprofiler_hip_api_retval_t {
        /// Result as an unsigned integer of 64 bits; for functions of smaller types, its low bytes.
        pub uint64_t_retval: u64,
        /// Result of a function that returns `int`.
        pub int_retval: c_int,
        /// Static text, of `hipGetErrorString` and the like.
        pub const_charp_retval: *const c_char,
        /// HIP error code, 0 for success.
        pub hipError_t_retval: u32,
        /// Result of `hipCreateChannelDesc`.
        pub hipChannelFormatDesc_retval: hipChannelFormatDesc,
        /// Result of `__hipRegisterFatBinary`: a handle of the module.
        pub voidpp_retval: *mut *mut c_void,
    }
}

c_struct! {
    /// Result of an HSA call.
    union rocprofiler_hsa_api_retval_t {
        /// Queue index, of `hsa_queue_load_read_index_*` and the like.
        pub uint64_t_retval: u64,
        /// Result of a function that returns `uint32_t`.
        pub uint32_t_retval: u32,
        /// Value of a signal, of the functions that load, exchange or wait.
        pub hsa_signal_value_t_retval: i64,
        /// HSA status, 0 for success.
        pub hsa_status_t_retval: u32,
    }
}

c_struct! {
    /// Result of a marker call.
    union rocprofiler_marker_api_retval_t {
        /// Nesting level of push and pop; status of the others, 0 for success.
        pub int32_t_retval: i32,
        /// The eight bytes that hold either of the others.
        pub int64_t_retval: i64,
        /// Id of the range that `roctxRangeStartA` opened.
        pub roctx_range_id_t_retval: roctx_range_id_t,
    }
}

c_struct! {
    /// Result of an RCCL call.
    union rocprofiler_rccl_api_retval_t {
        /// RCCL result code, 0 for success.
        pub ncclResult_t_retval: i32,
        /// Static text, of `ncclGetErrorString` and `ncclGetLastError`.
        pub const_charp_retval: *const c_char,
    }
}

c_struct! {
    /// Result of a rocDecode call.
    union rocprofiler_rocdecode_api_retval_t {
        /// The eight bytes that hold either of the others.
        pub uint64_t_retval: u64,
        /// rocDecode status, 0 for success.
        pub rocDecStatus_retval: i32,
        /// Static text, of `rocDecGetErrorName`.
        pub const_charp_retval: *const c_char,
    }
}

c_struct! {
    /// Result of a rocJPEG call.
    union rocprofiler_rocjpeg_api_retval_t {
        /// rocJPEG status, 0 for success.
        pub rocJpegStatus_retval: i32,
        /// Static text, of `rocJpegGetErrorName`.
        pub const_charp_retval: *const c_char,
    }
}
