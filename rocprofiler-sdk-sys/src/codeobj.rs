//! Code objects and kernel symbols.

use core::ffi::{c_char, c_int};

use crate::ids::{hsa_agent_t, rocprofiler_address_t, rocprofiler_agent_id_t, rocprofiler_dim3_t};
use crate::macros::{c_enum, c_struct};

c_enum! {
    /// Location of a code object's image: in a file or in memory.
    rocprofiler_code_object_storage_type_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_NONE",
        /// The image is in a file that is open.
        FILE = 1 => c"ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_FILE",
        /// The image is in host memory.
        MEMORY = 2 => c"ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_MEMORY",
        /// End marker of this version of the list.
        LAST = 3 => c"ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_LAST",
    }
}

c_struct! {
    /// Location of an image in a file; the URI has offset and size.
    struct rocprofiler_code_object_storage_file_t {
        /// Descriptor of the open file.
        pub storage_file: c_int,
    }
}

c_struct! {
    /// Location of an image in memory, readable during the callback.
    struct rocprofiler_code_object_storage_memory_t {
        /// Address of the image's first byte in the host process.
        pub memory_base: u64,
        /// Size in bytes.
        pub memory_size: u64,
    }
}

c_struct! {
    /// Location of the image; an anonymous union in C.
    union rocprofiler_code_object_storage_t {
        /// Location for storage type FILE.
        pub file: rocprofiler_code_object_storage_file_t,
        /// Location for storage type MEMORY.
        pub memory: rocprofiler_code_object_storage_memory_t,
    }
}

c_struct! {
    /// Payload of LOAD: a code object that was loaded or is about to be unloaded. The agent is also called `rocp_agent`
    /// in C.
    struct rocprofiler_callback_tracing_code_object_load_data_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Number of the code object in the process, from 1.
        pub code_object_id: u64,
        /// GPU that the code object is loaded on.
        pub agent_id: rocprofiler_agent_id_t,
        /// Handle that the HSA runtime has for this agent.
        pub hsa_agent: hsa_agent_t,
        /// URI of the code object; valid during the callback.
        pub uri: *const c_char,
        /// Lowest address of the loaded image in device memory.
        pub load_base: u64,
        /// Size of the loaded image in device memory, in bytes.
        pub load_size: u64,
        /// Loaded address minus address in the ELF, the same for all addresses of the code object.
        pub load_delta: i64,
        /// Determines the valid member of `storage`.
        pub storage_type: rocprofiler_code_object_storage_type_t,
        /// Location of the image, by `storage_type`.
        pub storage: rocprofiler_code_object_storage_t,
    }
}

c_struct! {
    /// Payload of DEVICE_KERNEL_SYMBOL_REGISTER: a kernel of a loaded code object.
    struct rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Number of the kernel symbol in the process, from 1, by which dispatches refer to the kernel.
        pub kernel_id: u64,
        /// Code object that the kernel is in.
        pub code_object_id: u64,
        /// Mangled name, normally with the suffix `.kd`; valid until unload.
        pub kernel_name: *const c_char,
        /// Address of the kernel descriptor as packets carry it.
        pub kernel_object: u64,
        /// Bytes of the argument block.
        pub kernarg_segment_size: u32,
        /// Alignment of the argument block in bytes.
        pub kernarg_segment_alignment: u32,
        /// LDS bytes per workgroup.
        pub group_segment_size: u32,
        /// Scratch bytes per work item.
        pub private_segment_size: u32,
        /// Scalar registers that a wave uses.
        pub sgpr_count: u32,
        /// Vector registers that a lane uses, without accumulation registers.
        pub arch_vgpr_count: u32,
        /// Accumulation registers that a lane uses; 0 where the hardware has none.
        pub accum_vgpr_count: u32,
        /// Distance from the descriptor to the first instruction, in bytes.
        pub kernel_code_entry_byte_offset: i64,
        /// Address of the first instruction.
        pub kernel_address: rocprofiler_address_t,
    }
}

c_struct! {
    /// Payload of HOST_KERNEL_SYMBOL_REGISTER: the host function by which a program launches a kernel.
    struct rocprofiler_callback_tracing_code_object_host_kernel_symbol_register_data_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Number of the host function in the process, from 1.
        pub host_function_id: u64,
        /// Kernel symbol that the function launches.
        pub kernel_id: u64,
        /// Code object that the kernel is in.
        pub code_object_id: u64,
        /// Address that the program passes to `hipLaunchKernel`.
        pub host_function: rocprofiler_address_t,
        /// Handle that `__hipRegisterFatBinary` returned.
        pub modules: rocprofiler_address_t,
        /// Mangled name of the kernel in the code object.
        pub device_function: *const c_char,
        /// Argument `threadLimit` of `__hipRegisterFunction`.
        pub thread_limit: u32,
        /// Argument `tid` of `__hipRegisterFunction`; zero when null was passed.
        pub thread_ids: rocprofiler_dim3_t,
        /// Argument `bid` of `__hipRegisterFunction`; zero when null was passed.
        pub block_ids: rocprofiler_dim3_t,
        /// Argument `blockDim` of `__hipRegisterFunction`; zero when null was passed.
        pub block_dims: rocprofiler_dim3_t,
        /// Argument `gridDim` of `__hipRegisterFunction`; zero when null was passed.
        pub grid_dims: rocprofiler_dim3_t,
        /// Argument `wSize` of `__hipRegisterFunction`; 0 when null was passed.
        pub workgroup_size: u64,
    }
}
