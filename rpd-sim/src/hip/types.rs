//! Structs, handles and flags of the HIP API as programs pass them.

use core::ffi::{c_char, c_int, c_void};

pub(crate) use crate::api::types::{Dim3, Extent, PitchedPtr};

/// `hipStream_t`, `hipEvent_t` and the like: opaque to programs, looked up in our tables.
pub(crate) type Handle = *mut c_void;

/// `hipPos`: position in an array, in elements or bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pos {
    pub(crate) x: usize,
    pub(crate) y: usize,
    pub(crate) z: usize,
}

/// `hipMemcpy3DParms`: parameters of a copy of three dimensions.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memcpy3D {
    pub(crate) src_array: *mut c_void,
    pub(crate) src_pos: Pos,
    pub(crate) src_ptr: PitchedPtr,
    pub(crate) dst_array: *mut c_void,
    pub(crate) dst_pos: Pos,
    pub(crate) dst_ptr: PitchedPtr,
    pub(crate) extent: Extent,
    pub(crate) kind: u32,
}

/// `hip_Memcpy2D`: parameters of a rectangular copy, in the driver's style.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct DrvMemcpy2D {
    pub(crate) src_x: usize,
    pub(crate) src_y: usize,
    pub(crate) src_type: u32,
    pub(crate) src_host: *const c_void,
    pub(crate) src_device: *mut c_void,
    pub(crate) src_array: *mut c_void,
    pub(crate) src_pitch: usize,
    pub(crate) dst_x: usize,
    pub(crate) dst_y: usize,
    pub(crate) dst_type: u32,
    pub(crate) dst_host: *mut c_void,
    pub(crate) dst_device: *mut c_void,
    pub(crate) dst_array: *mut c_void,
    pub(crate) dst_pitch: usize,
    pub(crate) width: usize,
    pub(crate) height: usize,
}

/// `HIP_MEMCPY3D`: parameters of a copy of three dimensions, in the driver's style.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct DrvMemcpy3D {
    pub(crate) src_x: usize,
    pub(crate) src_y: usize,
    pub(crate) src_z: usize,
    pub(crate) src_lod: usize,
    pub(crate) src_type: u32,
    pub(crate) src_host: *const c_void,
    pub(crate) src_device: *mut c_void,
    pub(crate) src_array: *mut c_void,
    pub(crate) src_pitch: usize,
    pub(crate) src_height: usize,
    pub(crate) dst_x: usize,
    pub(crate) dst_y: usize,
    pub(crate) dst_z: usize,
    pub(crate) dst_lod: usize,
    pub(crate) dst_type: u32,
    pub(crate) dst_host: *mut c_void,
    pub(crate) dst_device: *mut c_void,
    pub(crate) dst_array: *mut c_void,
    pub(crate) dst_pitch: usize,
    pub(crate) dst_height: usize,
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
}

/// `hipPointerAttribute_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct PointerAttributes {
    pub(crate) kind: u32,
    pub(crate) device: c_int,
    pub(crate) device_pointer: *mut c_void,
    pub(crate) host_pointer: *mut c_void,
    pub(crate) is_managed: c_int,
    pub(crate) allocation_flags: u32,
}

/// `hipFuncAttributes`: sizes and limits of a kernel.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FuncAttributes {
    pub(crate) binary_version: c_int,
    pub(crate) cache_mode_ca: c_int,
    pub(crate) const_size_bytes: usize,
    pub(crate) local_size_bytes: usize,
    pub(crate) max_dynamic_shared_size_bytes: c_int,
    pub(crate) max_threads_per_block: c_int,
    pub(crate) num_regs: c_int,
    pub(crate) preferred_shmem_carveout: c_int,
    pub(crate) ptx_version: c_int,
    pub(crate) shared_size_bytes: usize,
}

/// `hipMemLocation`: type of a location and the number of the device.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MemLocation {
    pub(crate) kind: u32,
    pub(crate) id: c_int,
}

/// `hipMemPoolProps`: properties of a memory pool or of physical memory.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemPoolProps {
    pub(crate) alloc_type: u32,
    pub(crate) handle_types: u32,
    pub(crate) location: MemLocation,
    pub(crate) win32_security_attributes: *mut c_void,
    pub(crate) max_size: usize,
    pub(crate) reserved: [u8; 56],
}

/// `hipMemAccessDesc`: access that a location has to memory.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemAccessDesc {
    pub(crate) location: MemLocation,
    pub(crate) flags: u32,
}

/// `hipLaunchParams`: a launch by a host function, for cooperative launches on several devices.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaunchParams {
    pub(crate) func: *mut c_void,
    pub(crate) grid: Dim3,
    pub(crate) block: Dim3,
    pub(crate) args: *mut *mut c_void,
    pub(crate) shared: usize,
    pub(crate) stream: Handle,
}

/// `hipFunctionLaunchParams`: a launch by a kernel of a module, for cooperative launches on several devices.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct FunctionLaunchParams {
    pub(crate) function: Handle,
    pub(crate) grid: Dim3,
    pub(crate) block: Dim3,
    pub(crate) shared: u32,
    pub(crate) stream: Handle,
    pub(crate) args: *mut *mut c_void,
}

/// `hipKernelNodeParams`: kernel, sizes and arguments of a graph's node.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct KernelNodeParams {
    pub(crate) block: Dim3,
    pub(crate) extra: *mut *mut c_void,
    pub(crate) func: *mut c_void,
    pub(crate) grid: Dim3,
    pub(crate) params: *mut *mut c_void,
    pub(crate) shared: u32,
}

/// `hipMemsetParams`: memory and value of a graph's node that fills memory.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemsetParams {
    pub(crate) dst: *mut c_void,
    pub(crate) element_size: u32,
    pub(crate) height: usize,
    pub(crate) pitch: usize,
    pub(crate) value: u32,
    pub(crate) width: usize,
}

/// `hipHostNodeParams`: function of the program that a graph's node calls.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostNodeParams {
    pub(crate) callback: HostFn,
    pub(crate) data: *mut c_void,
}

/// `hipMemAllocNodeParams`: size and pool of a graph's node that allocates memory.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemAllocNodeParams {
    pub(crate) pool: MemPoolProps,
    pub(crate) access: *const MemAccessDesc,
    pub(crate) access_count: usize,
    pub(crate) bytes: usize,
    /// Address of the memory, which the call sets.
    pub(crate) address: *mut c_void,
}

/// `hipMemcpyNodeParams`: a copy of a graph's node.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemcpyNodeParams {
    pub(crate) flags: c_int,
    pub(crate) reserved: [c_int; 3],
    pub(crate) copy: Memcpy3D,
}

/// The parameters by type in [`GraphNodeParams`].
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) union AnyNodeParams {
    pub(crate) reserved: [i64; 29],
    pub(crate) kernel: KernelNodeParams,
    pub(crate) copy: MemcpyNodeParams,
    pub(crate) fill: MemsetParams,
    pub(crate) host: HostNodeParams,
    /// Child graph or event of the node.
    pub(crate) handle: Handle,
    pub(crate) allocate: MemAllocNodeParams,
    /// Address of the memory that the node frees.
    pub(crate) release: *mut c_void,
}

/// `hipGraphNodeParams`: type and parameters of any node of a graph.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct GraphNodeParams {
    /// Type of the node, a `hipGraphNodeType`.
    pub(crate) kind: u32,
    pub(crate) reserved: [c_int; 3],
    pub(crate) any: AnyNodeParams,
    pub(crate) reserved_2: i64,
}

/// `hipLaunchAttributeValue`: 64 bytes, of which the simulator reads the first four.
#[repr(C, align(8))]
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaunchAttributeValue {
    /// Value of the attribute: whether the launch is cooperative, or its priority.
    pub(crate) number: c_int,
    pub(crate) rest: [u8; 60],
}

/// `hipLaunchAttribute`: number and value of an attribute of a launch.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaunchAttribute {
    pub(crate) id: u32,
    pub(crate) pad: u32,
    pub(crate) value: LaunchAttributeValue,
}

/// `hipLaunchAttributeID`.
pub(crate) mod launch_attribute {
    pub(crate) const ACCESS_POLICY_WINDOW: u32 = 1;
    pub(crate) const COOPERATIVE: u32 = 2;
    pub(crate) const SYNCHRONIZATION_POLICY: u32 = 3;
    pub(crate) const PRIORITY: u32 = 8;
}

/// `hipLaunchConfig_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaunchConfig {
    pub(crate) grid: Dim3,
    pub(crate) block: Dim3,
    pub(crate) shared: usize,
    pub(crate) stream: Handle,
    pub(crate) attributes: *const LaunchAttribute,
    pub(crate) attribute_count: u32,
}

/// `HIP_LAUNCH_CONFIG`: sizes, stream and attributes of a launch, in the driver's style.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct DrvLaunchConfig {
    pub(crate) grid: Dim3,
    pub(crate) block: Dim3,
    pub(crate) shared: u32,
    pub(crate) stream: Handle,
    pub(crate) attributes: *const LaunchAttribute,
    pub(crate) attribute_count: u32,
}

/// `hipBatchMemOpNodeParams`: waits and writes of numbers in memory by a graph's node.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchMemOpNodeParams {
    pub(crate) context: Handle,
    pub(crate) count: u32,
    pub(crate) list: *mut crate::hip::stream::value::BatchMemOp,
    pub(crate) flags: u32,
}

/// `hipGraphInstantiateParams`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct InstantiateParams {
    pub(crate) error_node: Handle,
    pub(crate) flags: u64,
    pub(crate) result: u32,
    pub(crate) upload_stream: Handle,
}

/// `hipUUID`: unique id of a device.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Uuid {
    pub(crate) bytes: [c_char; 16],
}

/// `hipHostFn_t`.
pub(crate) type HostFn = Option<unsafe extern "C" fn(*mut c_void)>;
/// `hipStreamCallback_t`.
pub(crate) type StreamCallback = Option<unsafe extern "C" fn(Handle, u32, *mut c_void)>;

/// `hipMemcpyKind`.
pub(crate) mod kind {
    pub(crate) const HOST_TO_DEVICE: u32 = 1;
    pub(crate) const DEVICE_TO_HOST: u32 = 2;
    pub(crate) const DEVICE_TO_DEVICE: u32 = 3;
    pub(crate) const DEFAULT: u32 = 4;
    pub(crate) const DEVICE_TO_DEVICE_NO_CU: u32 = 1024;
}

/// `hipMemoryType`: owner of the memory that a pointer refers to.
pub(crate) mod memory_type {
    pub(crate) const UNREGISTERED: u32 = 0;
    pub(crate) const HOST: u32 = 1;
    pub(crate) const DEVICE: u32 = 2;
    pub(crate) const MANAGED: u32 = 3;
    pub(crate) const ARRAY: u32 = 10;
    pub(crate) const UNIFIED: u32 = 11;
}

/// `hipStreamLegacy`: the null stream by name.
pub(crate) const STREAM_LEGACY: usize = 1;
/// `hipStreamPerThread`: the null stream of the calling thread.
pub(crate) const STREAM_PER_THREAD: usize = 2;
/// `hipStreamNonBlocking`: the stream does not synchronise with the null stream.
pub(crate) const STREAM_NON_BLOCKING: u32 = 1;

/// Flags with which events are created (`hipEvent*`).
pub(crate) mod event_flag {
    pub(crate) const BLOCKING_SYNC: u32 = 1;
    pub(crate) const DISABLE_TIMING: u32 = 2;
    pub(crate) const INTERPROCESS: u32 = 4;
    pub(crate) const DISABLE_SYSTEM_FENCE: u32 = 0x2000_0000;
    pub(crate) const RELEASE_TO_DEVICE: u32 = 0x4000_0000;
    pub(crate) const RELEASE_TO_SYSTEM: u32 = 0x8000_0000;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::size_of;

    #[test]
    fn hip_types_have_the_sizes_of_the_headers() {
        assert_eq!(size_of::<PitchedPtr>(), 32);
        assert_eq!(size_of::<Memcpy3D>(), 160);
        assert_eq!(size_of::<DrvMemcpy2D>(), 128);
        assert_eq!(size_of::<DrvMemcpy3D>(), 184);
        assert_eq!(size_of::<PointerAttributes>(), 32);
        assert_eq!(size_of::<FuncAttributes>(), 56);
        assert_eq!(size_of::<MemPoolProps>(), 88);
        assert_eq!(size_of::<LaunchParams>(), 56);
        assert_eq!(size_of::<FunctionLaunchParams>(), 56);
        assert_eq!(size_of::<KernelNodeParams>(), 64);
        assert_eq!(size_of::<MemAllocNodeParams>(), 120);
        assert_eq!(size_of::<MemcpyNodeParams>(), 176);
        assert_eq!(size_of::<AnyNodeParams>(), 232);
        assert_eq!(size_of::<GraphNodeParams>(), 256);
        assert_eq!(size_of::<LaunchAttribute>(), 72);
        assert_eq!(size_of::<LaunchConfig>(), 56);
        assert_eq!(size_of::<DrvLaunchConfig>(), 56);
        assert_eq!(size_of::<BatchMemOpNodeParams>(), 32);
        assert_eq!(size_of::<InstantiateParams>(), 32);
    }
}
