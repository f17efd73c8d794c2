//! Handles, constants and structs of `hsa.h` and `hsa_ext_amd.h` as the API functions take them.
//!
//! Handles stay plain `u64`s and enums `u32`s: both are what the C ABI passes.

pub(crate) use crate::gpu::aql::{
    AmdQueue, BarrierPacket, Dim3, HEADER_ACQUIRE_SHIFT, HEADER_BARRIER, HEADER_RELEASE_SHIFT,
    HsaQueue, KernelDispatchPacket, PACKET_BYTES, packet_type,
};

/// A `hsa_status_t`, which every function of the API returns.
pub(crate) type Status = u32;

/// Values of `hsa_status_t`, without the prefix `HSA_STATUS_`.
pub(crate) mod status {
    use super::Status;

    pub(crate) const SUCCESS: Status = 0;
    pub(crate) const INFO_BREAK: Status = 1;
    pub(crate) const ERROR: Status = 0x1000;
    pub(crate) const ERROR_INVALID_ARGUMENT: Status = 0x1001;
    pub(crate) const ERROR_INVALID_QUEUE_CREATION: Status = 0x1002;
    pub(crate) const ERROR_INVALID_ALLOCATION: Status = 0x1003;
    pub(crate) const ERROR_INVALID_AGENT: Status = 0x1004;
    pub(crate) const ERROR_INVALID_REGION: Status = 0x1005;
    pub(crate) const ERROR_INVALID_SIGNAL: Status = 0x1006;
    pub(crate) const ERROR_INVALID_QUEUE: Status = 0x1007;
    pub(crate) const ERROR_OUT_OF_RESOURCES: Status = 0x1008;
    pub(crate) const ERROR_INVALID_PACKET_FORMAT: Status = 0x1009;
    pub(crate) const ERROR_RESOURCE_FREE: Status = 0x100A;
    pub(crate) const ERROR_NOT_INITIALIZED: Status = 0x100B;
    pub(crate) const ERROR_REFCOUNT_OVERFLOW: Status = 0x100C;
    pub(crate) const ERROR_INCOMPATIBLE_ARGUMENTS: Status = 0x100D;
    pub(crate) const ERROR_INVALID_INDEX: Status = 0x100E;
    pub(crate) const ERROR_INVALID_ISA: Status = 0x100F;
    pub(crate) const ERROR_INVALID_CODE_OBJECT: Status = 0x1010;
    pub(crate) const ERROR_INVALID_EXECUTABLE: Status = 0x1011;
    pub(crate) const ERROR_FROZEN_EXECUTABLE: Status = 0x1012;
    pub(crate) const ERROR_INVALID_SYMBOL_NAME: Status = 0x1013;
    pub(crate) const ERROR_VARIABLE_ALREADY_DEFINED: Status = 0x1014;
    pub(crate) const ERROR_VARIABLE_UNDEFINED: Status = 0x1015;
    pub(crate) const ERROR_EXCEPTION: Status = 0x1016;
    pub(crate) const ERROR_INVALID_ISA_NAME: Status = 0x1017;
    pub(crate) const ERROR_INVALID_CODE_SYMBOL: Status = 0x1018;
    pub(crate) const ERROR_INVALID_EXECUTABLE_SYMBOL: Status = 0x1019;
    pub(crate) const ERROR_INVALID_FILE: Status = 0x1020;
    pub(crate) const ERROR_INVALID_CODE_OBJECT_READER: Status = 0x1021;
    pub(crate) const ERROR_INVALID_CACHE: Status = 0x1022;
    pub(crate) const ERROR_INVALID_WAVEFRONT: Status = 0x1023;
    pub(crate) const ERROR_INVALID_SIGNAL_GROUP: Status = 0x1024;
    pub(crate) const ERROR_INVALID_RUNTIME_STATE: Status = 0x1025;
    pub(crate) const ERROR_FATAL: Status = 0x1026;
    pub(crate) const EXT_IMAGE_FORMAT_UNSUPPORTED: Status = 0x3000;
    pub(crate) const EXT_IMAGE_SIZE_UNSUPPORTED: Status = 0x3001;
    pub(crate) const EXT_IMAGE_PITCH_UNSUPPORTED: Status = 0x3002;
    pub(crate) const EXT_SAMPLER_DESCRIPTOR_UNSUPPORTED: Status = 0x3003;
    pub(crate) const ERROR_INVALID_MEMORY_POOL: Status = 40;
    pub(crate) const ERROR_MEMORY_APERTURE_VIOLATION: Status = 41;
    pub(crate) const ERROR_ILLEGAL_INSTRUCTION: Status = 42;
    pub(crate) const ERROR_MEMORY_FAULT: Status = 43;
    pub(crate) const CU_MASK_REDUCED: Status = 44;
    pub(crate) const ERROR_OUT_OF_REGISTERS: Status = 45;
    pub(crate) const ERROR_RESOURCE_BUSY: Status = 46;
}

/// `hsa_device_type_t`.
pub(crate) const DEVICE_TYPE_CPU: u32 = 0;
/// `hsa_device_type_t`.
pub(crate) const DEVICE_TYPE_GPU: u32 = 1;

/// Flag of a global memory pool: kernel arguments may be in it.
pub(crate) const GLOBAL_FLAG_KERNARG: u32 = 1;
/// Flag of a global memory pool: coherent while a kernel runs.
pub(crate) const GLOBAL_FLAG_FINE_GRAINED: u32 = 2;
/// Flag of a global memory pool: coherent at kernel boundaries.
pub(crate) const GLOBAL_FLAG_COARSE_GRAINED: u32 = 4;

/// `hsa_signal_condition_t`.
pub(crate) const CONDITION_LT: u32 = 2;

/// `hsa_amd_profiling_dispatch_time_t` and `hsa_amd_profiling_async_copy_time_t`, nanoseconds of the system clock.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ProfilingTime {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// `hsa_pitched_ptr_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct PitchedPtr {
    pub(crate) base: *mut u8,
    pub(crate) pitch: usize,
    pub(crate) slice: usize,
}

/// `hsa_amd_pointer_info_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct PointerInfo {
    /// Size in bytes of this struct in the caller's version; read and written.
    pub(crate) size: u32,
    pub(crate) kind: u32,
    pub(crate) agent_base_address: u64,
    pub(crate) host_base_address: u64,
    pub(crate) size_in_bytes: usize,
    pub(crate) user_data: u64,
    pub(crate) agent_owner: u64,
    pub(crate) global_flags: u32,
}

/// `hsa_amd_pointer_type_t`.
pub(crate) const POINTER_TYPE_UNKNOWN: u32 = 0;
/// `hsa_amd_pointer_type_t`.
pub(crate) const POINTER_TYPE_HSA: u32 = 1;
/// `hsa_amd_pointer_type_t`.
pub(crate) const POINTER_TYPE_LOCKED: u32 = 2;

/// `hsa_amd_memory_access_desc_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemoryAccessDesc {
    pub(crate) permissions: u32,
    pub(crate) agent: u64,
}

/// `hsa_amd_link_info_type_t`.
pub(crate) mod link_type {
    pub(crate) const PCIE: u32 = 2;
    pub(crate) const XGMI: u32 = 4;
}

/// `hsa_amd_memory_pool_link_info_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LinkInfo {
    pub(crate) min_latency: u32,
    pub(crate) max_latency: u32,
    pub(crate) min_bandwidth: u32,
    pub(crate) max_bandwidth: u32,
    pub(crate) atomic_support_32bit: bool,
    pub(crate) atomic_support_64bit: bool,
    pub(crate) coherent_support: bool,
    pub(crate) link_type: u32,
    pub(crate) numa_distance: u32,
}

/// Callback of iterators, which gets a handle; a status other than success ends the iteration.
pub(crate) type HandleCallback =
    Option<unsafe extern "C" fn(u64, *mut core::ffi::c_void) -> Status>;
/// `hsa_amd_signal_handler`: returns whether it is to be called again.
pub(crate) type SignalHandler = Option<unsafe extern "C" fn(i64, *mut core::ffi::c_void) -> bool>;
/// Error callback of a queue; its parameters are status, queue, data.
pub(crate) type QueueErrorCallback =
    Option<unsafe extern "C" fn(Status, *mut HsaQueue, *mut core::ffi::c_void)>;
