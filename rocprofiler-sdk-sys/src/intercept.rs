//! Dispatch tables of the runtimes.

use core::ffi::c_void;

use crate::macros::{c_enum, c_struct};

c_enum! {
    /// Dispatch tables that can be intercepted (a bit mask).
    rocprofiler_intercept_table_t: u32 {
        /// `HsaApiTable`: the core functions and the extensions of the HSA runtime.
        HSA_TABLE = 1 => c"ROCPROFILER_HSA_TABLE",
        /// `HipDispatchTable`: the functions that programs call.
        HIP_RUNTIME_TABLE = 2 => c"ROCPROFILER_HIP_RUNTIME_TABLE",
        /// `HipCompilerDispatchTable`: the functions that the compiler inserts.
        HIP_COMPILER_TABLE = 4 => c"ROCPROFILER_HIP_COMPILER_TABLE",
        /// `roctxCoreApiTable_t`: messages and ranges.
        MARKER_CORE_TABLE = 8 => c"ROCPROFILER_MARKER_CORE_TABLE",
        /// `roctxControlApiTable_t`: pause and resume.
        MARKER_CONTROL_TABLE = 16 => c"ROCPROFILER_MARKER_CONTROL_TABLE",
        /// `roctxNameApiTable_t`: names of threads, agents, devices and streams.
        MARKER_NAME_TABLE = 32 => c"ROCPROFILER_MARKER_NAME_TABLE",
        /// `rcclApiFuncTable`.
        RCCL_TABLE = 64 => c"ROCPROFILER_RCCL_TABLE",
        /// `RocDecodeDispatchTable`.
        ROCDECODE_TABLE = 128 => c"ROCPROFILER_ROCDECODE_TABLE",
        /// `RocJpegDispatchTable`.
        ROCJPEG_TABLE = 256 => c"ROCPROFILER_ROCJPEG_TABLE",
        /// The highest bit of this version.
        TABLE_LAST = 256 => c"ROCPROFILER_TABLE_LAST",
    }
}

c_enum! {
    /// Numbers of the HSA runtime's dispatch tables.
    rocprofiler_hsa_table_id_t: i32 {
        /// No value.
        NONE = -1 => c"ROCPROFILER_HSA_TABLE_ID_NONE",
        /// `hsa_*`, the functions of the HSA standard.
        Core = 0 => c"ROCPROFILER_HSA_TABLE_ID_Core",
        /// `hsa_amd_*`, the extension of AMD.
        AmdExt = 1 => c"ROCPROFILER_HSA_TABLE_ID_AmdExt",
        /// `hsa_ext_image_*` and `hsa_ext_sampler_*`, the image extension.
        ImageExt = 2 => c"ROCPROFILER_HSA_TABLE_ID_ImageExt",
        /// `hsa_ext_program_*`, the finalizer extension.
        FinalizeExt = 3 => c"ROCPROFILER_HSA_TABLE_ID_FinalizeExt",
        /// `hsa_amd_tool_*`, which the runtime calls at scratch events.
        AmdTool = 4 => c"ROCPROFILER_HSA_TABLE_ID_AmdTool",
        /// `hsa_ven_amd_pcs_*`, the PC sampling extension.
        PcSamplingExt = 5 => c"ROCPROFILER_HSA_TABLE_ID_PcSamplingExt",
        /// End marker of this version of the list.
        LAST = 6 => c"ROCPROFILER_HSA_TABLE_ID_LAST",
    }
}

c_enum! {
    /// Numbers of the HIP runtime's dispatch tables.
    rocprofiler_hip_table_id_t: i32 {
        /// No value.
        NONE = -1 => c"ROCPROFILER_HIP_TABLE_ID_NONE",
        /// Functions that the compiler inserts, such as `__hipRegisterFatBinary`.
        Compiler = 0 => c"ROCPROFILER_HIP_TABLE_ID_Compiler",
        /// Functions that programs call.
        Runtime = 1 => c"ROCPROFILER_HIP_TABLE_ID_Runtime",
        /// End marker of this version of the list.
        LAST = 2 => c"ROCPROFILER_HIP_TABLE_ID_LAST",
    }
}

c_enum! {
    /// Number of RCCL's dispatch table.
    rocprofiler_rccl_table_id_t: i32 {
        /// No value.
        TABLE_ID_NONE = -1 => c"ROCPROFILER_RCCL_TABLE_ID_NONE",
        /// The only table of the library.
        TABLE_ID = 0 => c"ROCPROFILER_RCCL_TABLE_ID",
        /// End marker of this version of the list.
        TABLE_ID_LAST = 1 => c"ROCPROFILER_RCCL_TABLE_ID_LAST",
    }
}

c_enum! {
    /// Number of rocDecode's dispatch table.
    rocprofiler_rocdecode_table_id_t: i32 {
        /// No value.
        NONE = -1 => c"ROCPROFILER_ROCDECODE_TABLE_ID_NONE",
        /// The only table.
        CORE = 0 => c"ROCPROFILER_ROCDECODE_TABLE_ID_CORE",
        /// End marker of this version of the list.
        LAST = 1 => c"ROCPROFILER_ROCDECODE_TABLE_ID_LAST",
    }
}

c_enum! {
    /// Number of rocJPEG's dispatch table.
    rocprofiler_rocjpeg_table_id_t: i32 {
        /// No value.
        NONE = -1 => c"ROCPROFILER_ROCJPEG_TABLE_ID_NONE",
        /// The only table.
        CORE = 0 => c"ROCPROFILER_ROCJPEG_TABLE_ID_CORE",
        /// End marker of this version of the list.
        LAST = 1 => c"ROCPROFILER_ROCJPEG_TABLE_ID_LAST",
    }
}

/// Called on the registering thread when a runtime registers its tables, which the callback may patch.
pub type rocprofiler_intercept_library_cb_t = Option<
    unsafe extern "C" fn(
        table: rocprofiler_intercept_table_t,
        version: u64,
        instance: u64,
        tables: *mut *mut c_void,
        count: u64,
        data: *mut c_void,
    ),
>;

c_struct! {
    /// Version block at the start of the HSA tables.
    struct ApiTableVersion {
        /// Version of the layout; tables of different major versions are not interchangeable.
        pub major_id: u32,
        /// Size of the table in bytes.
        pub minor_id: u32,
        /// Step within the major version.
        pub step_id: u32,
        /// Not used; 0.
        pub reserved: u32,
    }
}

c_struct! {
    /// Container of the HSA tables. Each table it points to begins with a version block; the slot of operation *n*
    /// lies at `16 + 8*n`.
    struct HsaApiTable {
        /// Version of this struct; `minor_id` is its size.
        pub version: ApiTableVersion,
        /// `CoreApiTable`: the functions of the HSA standard.
        pub core_: *mut c_void,
        /// `AmdExtTable`: `hsa_amd_*`.
        pub amd_ext_: *mut c_void,
        /// `FinalizerExtTable`: `hsa_ext_program_*`.
        pub finalizer_ext_: *mut c_void,
        /// `ImageExtTable`: `hsa_ext_image_*` and `hsa_ext_sampler_*`.
        pub image_ext_: *mut c_void,
        /// `ToolsApiTable`: functions that the runtime calls at scratch events.
        pub tools_: *mut c_void,
        /// `PcSamplingExtTable`: `hsa_ven_amd_pcs_*`.
        pub pc_sampling_ext_: *mut c_void,
    }
}
