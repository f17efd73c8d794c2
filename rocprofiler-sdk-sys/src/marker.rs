//! Operations of the marker kinds.

use crate::macros::c_enum;

c_enum! {
    /// Operations of `MARKER_CORE_API`: one for each call of messages and ranges.
    rocprofiler_marker_core_api_id_t: i32 {
        /// No value.
        NONE = -1 => c"ROCPROFILER_MARKER_CORE_API_ID_NONE",
        /// Message at a point in time.
        roctxMarkA = 0 => c"ROCPROFILER_MARKER_CORE_API_ID_roctxMarkA",
        /// Begin of a range that nests on its thread.
        roctxRangePushA = 1 => c"ROCPROFILER_MARKER_CORE_API_ID_roctxRangePushA",
        /// End of the innermost range of the thread.
        roctxRangePop = 2 => c"ROCPROFILER_MARKER_CORE_API_ID_roctxRangePop",
        /// Begin of a range that any thread may close.
        roctxRangeStartA = 3 => c"ROCPROFILER_MARKER_CORE_API_ID_roctxRangeStartA",
        /// End of a range that `roctxRangeStartA` began.
        roctxRangeStop = 4 => c"ROCPROFILER_MARKER_CORE_API_ID_roctxRangeStop",
        /// Query of the id of the calling thread.
        roctxGetThreadId = 5 => c"ROCPROFILER_MARKER_CORE_API_ID_roctxGetThreadId",
        /// End marker of this version of the list.
        LAST = 6 => c"ROCPROFILER_MARKER_CORE_API_ID_LAST",
    }
}

c_enum! {
    /// Operations of `MARKER_CONTROL_API`.
    rocprofiler_marker_control_api_id_t: i32 {
        /// No value.
        NONE = -1 => c"ROCPROFILER_MARKER_CONTROL_API_ID_NONE",
        /// Request to pause recording.
        roctxProfilerPause = 0 => c"ROCPROFILER_MARKER_CONTROL_API_ID_roctxProfilerPause",
        /// Request to resume recording.
        roctxProfilerResume = 1 => c"ROCPROFILER_MARKER_CONTROL_API_ID_roctxProfilerResume",
        /// End marker of this version of the list.
        LAST = 2 => c"ROCPROFILER_MARKER_CONTROL_API_ID_LAST",
    }
}

c_enum! {
    /// Operations of `MARKER_NAME_API`.
    rocprofiler_marker_name_api_id_t: i32 {
        /// No value.
        NONE = -1 => c"ROCPROFILER_MARKER_NAME_API_ID_NONE",
        /// Name for the calling thread.
        roctxNameOsThread = 0 => c"ROCPROFILER_MARKER_NAME_API_ID_roctxNameOsThread",
        /// Name for an agent, by its HSA handle.
        roctxNameHsaAgent = 1 => c"ROCPROFILER_MARKER_NAME_API_ID_roctxNameHsaAgent",
        /// Name for a HIP device, by its ordinal.
        roctxNameHipDevice = 2 => c"ROCPROFILER_MARKER_NAME_API_ID_roctxNameHipDevice",
        /// Name for a HIP stream.
        roctxNameHipStream = 3 => c"ROCPROFILER_MARKER_NAME_API_ID_roctxNameHipStream",
        /// End marker of this version of the list.
        LAST = 4 => c"ROCPROFILER_MARKER_NAME_API_ID_LAST",
    }
}

c_enum! {
    /// Operations of `MARKER_CORE_RANGE_API`, where begin and end of a range are one operation.
    rocprofiler_marker_core_range_api_id_t: i32 {
        /// No value.
        NONE = -1 => c"ROCPROFILER_MARKER_CORE_RANGE_API_ID_NONE",
        /// Message at a point in time.
        roctxMarkA = 0 => c"ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxMarkA",
        /// Range from `roctxRangePushA` to `roctxRangePop`.
        roctxThreadRangeA = 1 => c"ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxThreadRangeA",
        /// Range from `roctxRangeStartA` to `roctxRangeStop`.
        roctxProcessRangeA = 2 => c"ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxProcessRangeA",
        /// Query of the id of the calling thread.
        roctxGetThreadId = 3 => c"ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxGetThreadId",
        /// End marker of this version of the list.
        LAST = 4 => c"ROCPROFILER_MARKER_CORE_RANGE_API_ID_LAST",
    }
}

c_enum! {
    /// Numbers of the dispatch tables of ROCTx.
    rocprofiler_marker_table_id_t: i32 {
        /// No value.
        NONE = -1 => c"ROCPROFILER_MARKER_TABLE_ID_NONE",
        /// `roctxCoreApiTable_t`: messages and ranges.
        RoctxCore = 0 => c"ROCPROFILER_MARKER_TABLE_ID_RoctxCore",
        /// `roctxControlApiTable_t`: pause and resume.
        RoctxControl = 1 => c"ROCPROFILER_MARKER_TABLE_ID_RoctxControl",
        /// `roctxNameApiTable_t`: names of threads, agents, devices and streams.
        RoctxName = 2 => c"ROCPROFILER_MARKER_TABLE_ID_RoctxName",
        /// `roctxCoreApiTable_t` once more, for joined ranges.
        RoctxCoreRange = 3 => c"ROCPROFILER_MARKER_TABLE_ID_RoctxCoreRange",
        /// End marker of this version of the list.
        LAST = 4 => c"ROCPROFILER_MARKER_TABLE_ID_LAST",
    }
}
