//! C types of the APIs, as Rust types of equal ABI.

/// A type by the way it is passed; the tables need no more than that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Abi {
    /// Any object or function pointer.
    Ptr,
    /// C `bool`.
    Bool,
    /// `unsigned char`.
    U8,
    /// `unsigned short`.
    U16,
    /// `int`.
    I32,
    /// `unsigned int` and all enums.
    U32,
    /// 64-bit handles in a struct of one field, and plain unsigned 64-bit numbers.
    U64,
    /// `size_t`.
    Usize,
    /// `hsa_signal_value_t`.
    I64,
    /// `float`.
    F32,
    /// A struct that the user of the table defines, by name, size and alignment in the argument union.
    Struct(&'static str, usize, usize),
}

impl Abi {
    /// The Rust type with the same ABI.
    pub fn rust(self) -> &'static str {
        match self {
            Abi::Ptr => "*mut c_void",
            Abi::Bool => "bool",
            Abi::U8 => "u8",
            Abi::U16 => "u16",
            Abi::I32 => "i32",
            Abi::U32 => "u32",
            Abi::U64 => "u64",
            Abi::Usize => "usize",
            Abi::I64 => "i64",
            Abi::F32 => "f32",
            Abi::Struct(name, _, _) => name,
        }
    }

    /// Size and alignment in bytes.
    pub fn layout(self) -> (usize, usize) {
        match self {
            Abi::Bool | Abi::U8 => (1, 1),
            Abi::U16 => (2, 2),
            Abi::I32 | Abi::U32 | Abi::F32 => (4, 4),
            Abi::Ptr | Abi::U64 | Abi::Usize | Abi::I64 => (8, 8),
            Abi::Struct(_, size, align) => (size, align),
        }
    }
}

/// Handles that are a struct of one 64-bit number.
const HANDLES: [&str; 17] = [
    "hsa_agent_t",
    "hsa_amd_memory_pool_t",
    "hsa_cache_t",
    "hsa_callback_data_t",
    "hsa_code_object_reader_t",
    "hsa_code_object_t",
    "hsa_code_symbol_t",
    "hsa_executable_symbol_t",
    "hsa_executable_t",
    "hsa_ext_image_t",
    "hsa_ext_program_t",
    "hsa_ext_sampler_t",
    "hsa_isa_t",
    "hsa_region_t",
    "hsa_signal_group_t",
    "hsa_signal_t",
    "hsa_wavefront_t",
];

/// Names that hide a pointer.
const POINTERS: [&str; 37] = [
    "RocJpegHandle",
    "RocJpegStreamHandle",
    "RocdecBitstreamReader",
    "RocdecVideoParser",
    "ncclComm_t",
    "rocDecDecoderHandle",
    "hipArray_const_t",
    "hipArray_t",
    "hipCtx_t",
    "hipDeviceptr_t",
    "hipEvent_t",
    "hipExternalMemory_t",
    "hipExternalSemaphore_t",
    "hipFunction_t",
    "hipGraphExec_t",
    "hipGraphNode_t",
    "hipGraph_t",
    "hipGraphicsResource_t",
    "hipHostFn_t",
    "hipLinkState_t",
    "hipMemGenericAllocationHandle_t",
    "hipMemPool_t",
    "hipMipmappedArray_const_t",
    "hipMipmappedArray_t",
    "hipModule_t",
    "hipStreamCallback_t",
    "hipStream_t",
    "hipSurfaceObject_t",
    "hipTextureObject_t",
    "hipUserObject_t",
    "hsa_amd_deallocation_callback_t",
    "hsa_amd_queue_intercept_handler",
    "hsa_amd_runtime_queue_notifier",
    "hsa_amd_signal_handler",
    "hsa_amd_system_event_callback_t",
    "hsa_ext_module_t",
    "hsa_ext_program_iterate_modules_cb_t",
];

/// Rust equivalent of a C type; `None` when it is unknown.
pub fn from_c_type(c: &str) -> Option<Abi> {
    Some(match c {
        _ if c.ends_with('*') || c.contains("(*)") || POINTERS.contains(&c) => Abi::Ptr,
        "hsa_amd_vmem_alloc_handle_t" => Abi::U64,
        _ if HANDLES.contains(&c) => Abi::U64,
        "bool" => Abi::Bool,
        "unsigned char" => Abi::U8,
        "short unsigned int" | "uint16_t" => Abi::U16,
        "int" | "int32_t" | "hipDevice_t" | "hsa_file_t" => Abi::I32,
        "unsigned int" | "uint32_t" | "GLuint" | "GLenum" => Abi::U32,
        "uint64_t" | "long long unsigned int" | "roctx_range_id_t" | "roctx_thread_id_t" => {
            Abi::U64
        }
        "size_t" => Abi::Usize,
        "hsa_signal_value_t" => Abi::I64,
        "float" => Abi::F32,
        "rocprofiler_dim3_t" => Abi::Struct("Dim3", 12, 4),
        "hipExtent" => Abi::Struct("Extent", 24, 8),
        "hipPitchedPtr" => Abi::Struct("PitchedPtr", 32, 8),
        "hipChannelFormatDesc" => Abi::Struct("ChannelFormatDesc", 20, 4),
        "hipIpcMemHandle_t" | "hipIpcEventHandle_t" => Abi::Struct("IpcHandle", 64, 1),
        "hsa_ext_control_directives_t" => Abi::Struct("ControlDirectives", 144, 8),
        "ncclUniqueId" => Abi::Struct("UniqueId", 128, 1),
        "mscclAlgoHandle_t" => Abi::I32,
        // All remaining types are enums.
        _ if ["hip", "hsa_", "nccl", "rocDec", "RocJpeg"]
            .iter()
            .any(|prefix| c.starts_with(prefix)) =>
        {
            Abi::U32
        }
        _ => return None,
    })
}
