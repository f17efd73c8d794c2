//! Code objects and kernel symbols.

use core::ffi::{c_char, c_int};

use crate::ids::{hsa_agent_t, rocprofiler_address_t, rocprofiler_agent_id_t, rocprofiler_dim3_t};
use crate::macros::{c_enum, c_struct};

c_enum! {
    /// Storage of a code object's image: file or memory.
    rocprofiler_code_object_storage_type_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_NONE",
        /// In a file that is open.
        FILE = 1 => c"ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_FILE",
        /// In host memory.
        MEMORY = 2 => c"ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_MEMORY",
        /// End marker of this version of the list.
        LAST = 3 => c"ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_LAST",
    }
}

c_struct! {
    /// An image in a file.
    struct rocprofiler_code_object_storage_file_t {
        /// Open file descriptor.
        pub storage_file: c_int,
    }
}

c_struct! {
    /// An image in memory.
    struct rocprofiler_code_object_storage_memory_t {
        /// Host address of the image.
        pub memory_base: u64,
        /// Bytes of the image.
        pub memory_size: u64,
    }
}

c_struct! {
    /// Location of the image; an anonymous union in C.
    union rocprofiler_code_object_storage_t {
        /// For FILE storage.
        pub file: rocprofiler_code_object_storage_file_t,
        /// For MEMORY storage.
        pub memory: rocprofiler_code_object_storage_memory_t,
    }
}

c_struct! {
    /// A loaded or unloaded code object. The agent is also called `rocp_agent` in C.
    struct rocprofiler_callback_tracing_code_object_load_data_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// The code object.
        pub code_object_id: u64,
        /// The agent.
        pub agent_id: rocprofiler_agent_id_t,
        /// The same agent as HSA names it.
        pub hsa_agent: hsa_agent_t,
        /// URI of the code object; valid during the callback.
        pub uri: *const c_char,
        /// Device address of the loaded image.
        pub load_base: u64,
        /// Bytes of the loaded image.
        pub load_size: u64,
        /// Loaded address minus address in the file.
        pub load_delta: i64,
        /// Which member of `storage` is live.
        pub storage_type: rocprofiler_code_object_storage_type_t,
        /// Location of the image, see `storage_type`.
        pub storage: rocprofiler_code_object_storage_t,
    }
}

c_struct! {
    /// A kernel of a loaded code object.
    struct rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// The kernel symbol.
        pub kernel_id: u64,
        /// The code object.
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
        /// Scalar registers.
        pub sgpr_count: u32,
        /// Vector registers.
        pub arch_vgpr_count: u32,
        /// Accumulation registers.
        pub accum_vgpr_count: u32,
        /// From the descriptor to the first instruction, in bytes.
        pub kernel_code_entry_byte_offset: i64,
        /// Address of the first instruction.
        pub kernel_address: rocprofiler_address_t,
    }
}

c_struct! {
    /// The host function behind a kernel.
    struct rocprofiler_callback_tracing_code_object_host_kernel_symbol_register_data_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// The host function.
        pub host_function_id: u64,
        /// The kernel symbol.
        pub kernel_id: u64,
        /// The code object.
        pub code_object_id: u64,
        /// Address of the host stub.
        pub host_function: rocprofiler_address_t,
        /// Address of the module table.
        pub modules: rocprofiler_address_t,
        /// Mangled name of the kernel.
        pub device_function: *const c_char,
        /// Limit of threads given at registration.
        pub thread_limit: u32,
        /// Thread ids given at registration.
        pub thread_ids: rocprofiler_dim3_t,
        /// Block ids given at registration.
        pub block_ids: rocprofiler_dim3_t,
        /// Block size given at registration.
        pub block_dims: rocprofiler_dim3_t,
        /// Grid size given at registration.
        pub grid_dims: rocprofiler_dim3_t,
        /// Work items per workgroup.
        pub workgroup_size: u64,
    }
}
