//! Operations of the marker kinds.

use crate::macros::c_enum;

c_enum! {
    /// Operations of the marker core kind (one per call).
    rocprofiler_marker_core_api_id_t: i32 {
        /// No value.
        NONE = -1 => c"ROCPROFILER_MARKER_CORE_API_ID_NONE",
        /// `ROCPROFILER_MARKER_CORE_API_ID_roctxMarkA`.
        roctxMarkA = 0 => c"ROCPROFILER_MARKER_CORE_API_ID_roctxMarkA",
        /// `ROCPROFILER_MARKER_CORE_API_ID_roctxRangePushA`.
        roctxRangePushA = 1 => c"ROCPROFILER_MARKER_CORE_API_ID_roctxRangePushA",
        /// `ROCPROFILER_MARKER_CORE_API_ID_roctxRangePop`.
        roctxRangePop = 2 => c"ROCPROFILER_MARKER_CORE_API_ID_roctxRangePop",
        /// `ROCPROFILER_MARKER_CORE_API_ID_roctxRangeStartA`.
        roctxRangeStartA = 3 => c"ROCPROFILER_MARKER_CORE_API_ID_roctxRangeStartA",
        /// `ROCPROFILER_MARKER_CORE_API_ID_roctxRangeStop`.
        roctxRangeStop = 4 => c"ROCPROFILER_MARKER_CORE_API_ID_roctxRangeStop",
        /// `ROCPROFILER_MARKER_CORE_API_ID_roctxGetThreadId`.
        roctxGetThreadId = 5 => c"ROCPROFILER_MARKER_CORE_API_ID_roctxGetThreadId",
        /// End marker of this version of the list.
        LAST = 6 => c"ROCPROFILER_MARKER_CORE_API_ID_LAST",
    }
}

c_enum! {
    /// Operations of the marker control kind.
    rocprofiler_marker_control_api_id_t: i32 {
        /// No value.
        NONE = -1 => c"ROCPROFILER_MARKER_CONTROL_API_ID_NONE",
        /// `ROCPROFILER_MARKER_CONTROL_API_ID_roctxProfilerPause`.
        roctxProfilerPause = 0 => c"ROCPROFILER_MARKER_CONTROL_API_ID_roctxProfilerPause",
        /// `ROCPROFILER_MARKER_CONTROL_API_ID_roctxProfilerResume`.
        roctxProfilerResume = 1 => c"ROCPROFILER_MARKER_CONTROL_API_ID_roctxProfilerResume",
        /// End marker of this version of the list.
        LAST = 2 => c"ROCPROFILER_MARKER_CONTROL_API_ID_LAST",
    }
}

c_enum! {
    /// Operations of the marker naming kind.
    rocprofiler_marker_name_api_id_t: i32 {
        /// No value.
        NONE = -1 => c"ROCPROFILER_MARKER_NAME_API_ID_NONE",
        /// `ROCPROFILER_MARKER_NAME_API_ID_roctxNameOsThread`.
        roctxNameOsThread = 0 => c"ROCPROFILER_MARKER_NAME_API_ID_roctxNameOsThread",
        /// `ROCPROFILER_MARKER_NAME_API_ID_roctxNameHsaAgent`.
        roctxNameHsaAgent = 1 => c"ROCPROFILER_MARKER_NAME_API_ID_roctxNameHsaAgent",
        /// `ROCPROFILER_MARKER_NAME_API_ID_roctxNameHipDevice`.
        roctxNameHipDevice = 2 => c"ROCPROFILER_MARKER_NAME_API_ID_roctxNameHipDevice",
        /// `ROCPROFILER_MARKER_NAME_API_ID_roctxNameHipStream`.
        roctxNameHipStream = 3 => c"ROCPROFILER_MARKER_NAME_API_ID_roctxNameHipStream",
        /// End marker of this version of the list.
        LAST = 4 => c"ROCPROFILER_MARKER_NAME_API_ID_LAST",
    }
}

c_enum! {
    /// Operations of the marker range kind, where start and end of a range are one operation.
    rocprofiler_marker_core_range_api_id_t: i32 {
        /// No value.
        NONE = -1 => c"ROCPROFILER_MARKER_CORE_RANGE_API_ID_NONE",
        /// `ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxMarkA`.
        roctxMarkA = 0 => c"ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxMarkA",
        /// Push to pop.
        roctxThreadRangeA = 1 => c"ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxThreadRangeA",
        /// Start to stop.
        roctxProcessRangeA = 2 => c"ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxProcessRangeA",
        /// `ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxGetThreadId`.
        roctxGetThreadId = 3 => c"ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxGetThreadId",
        /// End marker of this version of the list.
        LAST = 4 => c"ROCPROFILER_MARKER_CORE_RANGE_API_ID_LAST",
    }
}

c_enum! {
    /// Marker tables.
    rocprofiler_marker_table_id_t: i32 {
        /// No value.
        NONE = -1 => c"ROCPROFILER_MARKER_TABLE_ID_NONE",
        /// `ROCPROFILER_MARKER_TABLE_ID_RoctxCore`.
        RoctxCore = 0 => c"ROCPROFILER_MARKER_TABLE_ID_RoctxCore",
        /// `ROCPROFILER_MARKER_TABLE_ID_RoctxControl`.
        RoctxControl = 1 => c"ROCPROFILER_MARKER_TABLE_ID_RoctxControl",
        /// `ROCPROFILER_MARKER_TABLE_ID_RoctxName`.
        RoctxName = 2 => c"ROCPROFILER_MARKER_TABLE_ID_RoctxName",
        /// `ROCPROFILER_MARKER_TABLE_ID_RoctxCoreRange`.
        RoctxCoreRange = 3 => c"ROCPROFILER_MARKER_TABLE_ID_RoctxCoreRange",
        /// End marker of this version of the list.
        LAST = 4 => c"ROCPROFILER_MARKER_TABLE_ID_LAST",
    }
}
