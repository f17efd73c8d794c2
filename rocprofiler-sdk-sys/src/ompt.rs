//! OpenMP tools interface: operations and records.

use core::ffi::c_void;

use crate::ids::{
    rocprofiler_correlation_id_t, rocprofiler_thread_id_t, rocprofiler_timestamp_t,
    rocprofiler_tracing_operation_t,
};
use crate::kinds::rocprofiler_buffer_tracing_kind_t;
use crate::macros::{c_enum, c_struct};

c_enum! {
    /// Operations of the OMPT kind, named after the OMPT callbacks.
    rocprofiler_ompt_operation_t: i32 {
        /// No value.
        NONE = -1 => c"ROCPROFILER_OMPT_ID_NONE",
        /// `ROCPROFILER_OMPT_ID_thread_begin`.
        thread_begin = 0 => c"ROCPROFILER_OMPT_ID_thread_begin",
        /// `ROCPROFILER_OMPT_ID_thread_end`.
        thread_end = 1 => c"ROCPROFILER_OMPT_ID_thread_end",
        /// `ROCPROFILER_OMPT_ID_parallel_begin`.
        parallel_begin = 2 => c"ROCPROFILER_OMPT_ID_parallel_begin",
        /// `ROCPROFILER_OMPT_ID_parallel_end`.
        parallel_end = 3 => c"ROCPROFILER_OMPT_ID_parallel_end",
        /// `ROCPROFILER_OMPT_ID_task_create`.
        task_create = 4 => c"ROCPROFILER_OMPT_ID_task_create",
        /// `ROCPROFILER_OMPT_ID_task_schedule`.
        task_schedule = 5 => c"ROCPROFILER_OMPT_ID_task_schedule",
        /// `ROCPROFILER_OMPT_ID_implicit_task`.
        implicit_task = 6 => c"ROCPROFILER_OMPT_ID_implicit_task",
        /// `ROCPROFILER_OMPT_ID_device_initialize`.
        device_initialize = 7 => c"ROCPROFILER_OMPT_ID_device_initialize",
        /// `ROCPROFILER_OMPT_ID_device_finalize`.
        device_finalize = 8 => c"ROCPROFILER_OMPT_ID_device_finalize",
        /// `ROCPROFILER_OMPT_ID_device_load`.
        device_load = 9 => c"ROCPROFILER_OMPT_ID_device_load",
        /// `ROCPROFILER_OMPT_ID_sync_region_wait`.
        sync_region_wait = 10 => c"ROCPROFILER_OMPT_ID_sync_region_wait",
        /// `ROCPROFILER_OMPT_ID_mutex_released`.
        mutex_released = 11 => c"ROCPROFILER_OMPT_ID_mutex_released",
        /// `ROCPROFILER_OMPT_ID_dependences`.
        dependences = 12 => c"ROCPROFILER_OMPT_ID_dependences",
        /// `ROCPROFILER_OMPT_ID_task_dependence`.
        task_dependence = 13 => c"ROCPROFILER_OMPT_ID_task_dependence",
        /// `ROCPROFILER_OMPT_ID_work`.
        work = 14 => c"ROCPROFILER_OMPT_ID_work",
        /// `ROCPROFILER_OMPT_ID_masked`.
        masked = 15 => c"ROCPROFILER_OMPT_ID_masked",
        /// `ROCPROFILER_OMPT_ID_sync_region`.
        sync_region = 16 => c"ROCPROFILER_OMPT_ID_sync_region",
        /// `ROCPROFILER_OMPT_ID_lock_init`.
        lock_init = 17 => c"ROCPROFILER_OMPT_ID_lock_init",
        /// `ROCPROFILER_OMPT_ID_lock_destroy`.
        lock_destroy = 18 => c"ROCPROFILER_OMPT_ID_lock_destroy",
        /// `ROCPROFILER_OMPT_ID_mutex_acquire`.
        mutex_acquire = 19 => c"ROCPROFILER_OMPT_ID_mutex_acquire",
        /// `ROCPROFILER_OMPT_ID_mutex_acquired`.
        mutex_acquired = 20 => c"ROCPROFILER_OMPT_ID_mutex_acquired",
        /// `ROCPROFILER_OMPT_ID_nest_lock`.
        nest_lock = 21 => c"ROCPROFILER_OMPT_ID_nest_lock",
        /// `ROCPROFILER_OMPT_ID_flush`.
        flush = 22 => c"ROCPROFILER_OMPT_ID_flush",
        /// `ROCPROFILER_OMPT_ID_cancel`.
        cancel = 23 => c"ROCPROFILER_OMPT_ID_cancel",
        /// `ROCPROFILER_OMPT_ID_reduction`.
        reduction = 24 => c"ROCPROFILER_OMPT_ID_reduction",
        /// `ROCPROFILER_OMPT_ID_dispatch`.
        dispatch = 25 => c"ROCPROFILER_OMPT_ID_dispatch",
        /// `ROCPROFILER_OMPT_ID_target_emi`.
        target_emi = 26 => c"ROCPROFILER_OMPT_ID_target_emi",
        /// `ROCPROFILER_OMPT_ID_target_data_op_emi`.
        target_data_op_emi = 27 => c"ROCPROFILER_OMPT_ID_target_data_op_emi",
        /// `ROCPROFILER_OMPT_ID_target_submit_emi`.
        target_submit_emi = 28 => c"ROCPROFILER_OMPT_ID_target_submit_emi",
        /// `ROCPROFILER_OMPT_ID_error`.
        error = 29 => c"ROCPROFILER_OMPT_ID_error",
        /// `ROCPROFILER_OMPT_ID_callback_functions`.
        callback_functions = 30 => c"ROCPROFILER_OMPT_ID_callback_functions",
        /// End marker of this version of the list.
        LAST = 31 => c"ROCPROFILER_OMPT_ID_LAST",
    }
}

c_struct! {
    /// A target region.
    struct rocprofiler_buffer_tracing_ompt_target_t {
        /// Kind of target region (OMPT number).
        pub kind: i32,
        /// OpenMP device number.
        pub device_num: i32,
        /// The task.
        pub task_id: u64,
        /// The target region.
        pub target_id: u64,
        /// Return address in the program.
        pub codeptr_ra: *const c_void,
    }
}

c_struct! {
    /// A data operation of a target region.
    struct rocprofiler_buffer_tracing_ompt_target_data_op_t {
        /// Id of the host operation.
        pub host_op_id: u64,
        /// Kind of data operation.
        pub optype: i32,
        /// Device copied from.
        pub src_device_num: i32,
        /// Device copied to.
        pub dst_device_num: i32,
        /// Reserved.
        pub reserved: i32,
        /// Number of bytes.
        pub bytes: u64,
        /// Return address in the program.
        pub codeptr_ra: *const c_void,
    }
}

c_struct! {
    /// A kernel of a target region.
    struct rocprofiler_buffer_tracing_ompt_target_kernel_t {
        /// Id of the host operation.
        pub host_op_id: u64,
        /// OpenMP device number.
        pub device_num: i32,
        /// Teams requested.
        pub requested_num_teams: u32,
    }
}

c_struct! {
    /// Details of an OMPT record; the operation determines which member is valid.
    union rocprofiler_buffer_tracing_ompt_details_t {
        /// Of target regions.
        pub target: rocprofiler_buffer_tracing_ompt_target_t,
        /// Of data operations.
        pub target_data_op: rocprofiler_buffer_tracing_ompt_target_data_op_t,
        /// Of kernels.
        pub target_kernel: rocprofiler_buffer_tracing_ompt_target_kernel_t,
        /// Of everything else: nothing.
        pub reserved: [u64; 5],
    }
}

c_struct! {
    /// An OMPT event. The details are an anonymous union in C.
    struct rocprofiler_buffer_tracing_ompt_record_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Kind of the record.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// Which operation of the kind.
        pub operation: rocprofiler_tracing_operation_t,
        /// Ties the record to the API call that caused it.
        pub correlation_id: rocprofiler_correlation_id_t,
        /// Begin, ns of `CLOCK_BOOTTIME`.
        pub start_timestamp: rocprofiler_timestamp_t,
        /// End, ns of `CLOCK_BOOTTIME`.
        pub end_timestamp: rocprofiler_timestamp_t,
        /// Kernel id of the thread.
        pub thread_id: rocprofiler_thread_id_t,
        /// Union of the target structs.
        pub details: rocprofiler_buffer_tracing_ompt_details_t,
    }
}
