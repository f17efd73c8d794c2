//! Dispatch tables of the runtimes.

use core::ffi::c_void;

use crate::macros::{c_enum, c_struct};

c_enum! {
    /// Dispatch tables that can be intercepted (a bit mask).
    rocprofiler_intercept_table_t: u32 {
        /// HSA table.
        HSA_TABLE = 1 => c"ROCPROFILER_HSA_TABLE",
        /// HIP runtime table.
        HIP_RUNTIME_TABLE = 2 => c"ROCPROFILER_HIP_RUNTIME_TABLE",
        /// HIP compiler table.
        HIP_COMPILER_TABLE = 4 => c"ROCPROFILER_HIP_COMPILER_TABLE",
        /// Marker core table.
        MARKER_CORE_TABLE = 8 => c"ROCPROFILER_MARKER_CORE_TABLE",
        /// Marker control table.
        MARKER_CONTROL_TABLE = 16 => c"ROCPROFILER_MARKER_CONTROL_TABLE",
        /// Marker name table.
        MARKER_NAME_TABLE = 32 => c"ROCPROFILER_MARKER_NAME_TABLE",
        /// RCCL table.
        RCCL_TABLE = 64 => c"ROCPROFILER_RCCL_TABLE",
        /// rocDecode table.
        ROCDECODE_TABLE = 128 => c"ROCPROFILER_ROCDECODE_TABLE",
        /// rocJPEG table.
        ROCJPEG_TABLE = 256 => c"ROCPROFILER_ROCJPEG_TABLE",
        /// The highest bit of this version.
        TABLE_LAST = 256 => c"ROCPROFILER_TABLE_LAST",
    }
}

c_enum! {
    /// HSA tables.
    rocprofiler_hsa_table_id_t: i32 {
        /// No value.
        NONE = -1 => c"ROCPROFILER_HSA_TABLE_ID_NONE",
        /// `ROCPROFILER_HSA_TABLE_ID_Core`.
        Core = 0 => c"ROCPROFILER_HSA_TABLE_ID_Core",
        /// `ROCPROFILER_HSA_TABLE_ID_AmdExt`.
        AmdExt = 1 => c"ROCPROFILER_HSA_TABLE_ID_AmdExt",
        /// `ROCPROFILER_HSA_TABLE_ID_ImageExt`.
        ImageExt = 2 => c"ROCPROFILER_HSA_TABLE_ID_ImageExt",
        /// `ROCPROFILER_HSA_TABLE_ID_FinalizeExt`.
        FinalizeExt = 3 => c"ROCPROFILER_HSA_TABLE_ID_FinalizeExt",
        /// `ROCPROFILER_HSA_TABLE_ID_AmdTool`.
        AmdTool = 4 => c"ROCPROFILER_HSA_TABLE_ID_AmdTool",
        /// `ROCPROFILER_HSA_TABLE_ID_PcSamplingExt`.
        PcSamplingExt = 5 => c"ROCPROFILER_HSA_TABLE_ID_PcSamplingExt",
        /// End marker of this version of the list.
        LAST = 6 => c"ROCPROFILER_HSA_TABLE_ID_LAST",
    }
}

c_enum! {
    /// HIP tables.
    rocprofiler_hip_table_id_t: i32 {
        /// No value.
        NONE = -1 => c"ROCPROFILER_HIP_TABLE_ID_NONE",
        /// `ROCPROFILER_HIP_TABLE_ID_Compiler`.
        Compiler = 0 => c"ROCPROFILER_HIP_TABLE_ID_Compiler",
        /// `ROCPROFILER_HIP_TABLE_ID_Runtime`.
        Runtime = 1 => c"ROCPROFILER_HIP_TABLE_ID_Runtime",
        /// End marker of this version of the list.
        LAST = 2 => c"ROCPROFILER_HIP_TABLE_ID_LAST",
    }
}

c_enum! {
    /// RCCL tables.
    rocprofiler_rccl_table_id_t: i32 {
        /// No value.
        TABLE_ID_NONE = -1 => c"ROCPROFILER_RCCL_TABLE_ID_NONE",
        /// `ROCPROFILER_RCCL_TABLE_ID`.
        TABLE_ID = 0 => c"ROCPROFILER_RCCL_TABLE_ID",
        /// End marker of this version of the list.
        TABLE_ID_LAST = 1 => c"ROCPROFILER_RCCL_TABLE_ID_LAST",
    }
}

c_enum! {
    /// rocDecode tables.
    rocprofiler_rocdecode_table_id_t: i32 {
        /// No value.
        NONE = -1 => c"ROCPROFILER_ROCDECODE_TABLE_ID_NONE",
        /// `ROCPROFILER_ROCDECODE_TABLE_ID_CORE`.
        CORE = 0 => c"ROCPROFILER_ROCDECODE_TABLE_ID_CORE",
        /// End marker of this version of the list.
        LAST = 1 => c"ROCPROFILER_ROCDECODE_TABLE_ID_LAST",
    }
}

c_enum! {
    /// rocJPEG tables.
    rocprofiler_rocjpeg_table_id_t: i32 {
        /// No value.
        NONE = -1 => c"ROCPROFILER_ROCJPEG_TABLE_ID_NONE",
        /// `ROCPROFILER_ROCJPEG_TABLE_ID_CORE`.
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
        /// Major version.
        pub major_id: u32,
        /// Size of the table in bytes.
        pub minor_id: u32,
        /// Step within the major version.
        pub step_id: u32,
        /// Reserved.
        pub reserved: u32,
    }
}

c_struct! {
    /// Container of the HSA tables. Each table it points to begins with a version block; the slot of operation *n*
    /// lies at `16 + 8*n`.
    struct HsaApiTable {
        /// Version of the container.
        pub version: ApiTableVersion,
        /// Core table.
        pub core_: *mut c_void,
        /// AMD extensions.
        pub amd_ext_: *mut c_void,
        /// Finalizer extension.
        pub finalizer_ext_: *mut c_void,
        /// Image extension.
        pub image_ext_: *mut c_void,
        /// Hooks for scratch events.
        pub tools_: *mut c_void,
        /// PC sampling extension.
        pub pc_sampling_ext_: *mut c_void,
    }
}
