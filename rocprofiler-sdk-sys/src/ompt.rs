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
        /// A thread of the OpenMP runtime begins.
        thread_begin = 0 => c"ROCPROFILER_OMPT_ID_thread_begin",
        /// A thread of the OpenMP runtime ends.
        thread_end = 1 => c"ROCPROFILER_OMPT_ID_thread_end",
        /// A parallel region begins.
        parallel_begin = 2 => c"ROCPROFILER_OMPT_ID_parallel_begin",
        /// A parallel region ends.
        parallel_end = 3 => c"ROCPROFILER_OMPT_ID_parallel_end",
        /// A task is created.
        task_create = 4 => c"ROCPROFILER_OMPT_ID_task_create",
        /// A thread switches from one task to another.
        task_schedule = 5 => c"ROCPROFILER_OMPT_ID_task_schedule",
        /// An implicit task begins or ends.
        implicit_task = 6 => c"ROCPROFILER_OMPT_ID_implicit_task",
        /// The OpenMP runtime initialises a device.
        device_initialize = 7 => c"ROCPROFILER_OMPT_ID_device_initialize",
        /// The OpenMP runtime shuts a device down.
        device_finalize = 8 => c"ROCPROFILER_OMPT_ID_device_finalize",
        /// Code is loaded on a device.
        device_load = 9 => c"ROCPROFILER_OMPT_ID_device_load",
        /// A thread waits in a barrier, taskwait or taskgroup.
        sync_region_wait = 10 => c"ROCPROFILER_OMPT_ID_sync_region_wait",
        /// A lock, critical or ordered region is released.
        mutex_released = 11 => c"ROCPROFILER_OMPT_ID_mutex_released",
        /// A task with dependences is created.
        dependences = 12 => c"ROCPROFILER_OMPT_ID_dependences",
        /// A task waits for another one.
        task_dependence = 13 => c"ROCPROFILER_OMPT_ID_task_dependence",
        /// A worksharing construct (loop, sections, single) begins or ends.
        work = 14 => c"ROCPROFILER_OMPT_ID_work",
        /// A masked region begins or ends.
        masked = 15 => c"ROCPROFILER_OMPT_ID_masked",
        /// A barrier, taskwait or taskgroup begins or ends.
        sync_region = 16 => c"ROCPROFILER_OMPT_ID_sync_region",
        /// A lock is initialised.
        lock_init = 17 => c"ROCPROFILER_OMPT_ID_lock_init",
        /// A lock is destroyed.
        lock_destroy = 18 => c"ROCPROFILER_OMPT_ID_lock_destroy",
        /// A thread requests a lock, critical or ordered region.
        mutex_acquire = 19 => c"ROCPROFILER_OMPT_ID_mutex_acquire",
        /// A thread has obtained a lock, critical or ordered region.
        mutex_acquired = 20 => c"ROCPROFILER_OMPT_ID_mutex_acquired",
        /// A nested lock is acquired once more, or released once but not for the last time.
        nest_lock = 21 => c"ROCPROFILER_OMPT_ID_nest_lock",
        /// A flush construct is executed.
        flush = 22 => c"ROCPROFILER_OMPT_ID_flush",
        /// A region is cancelled.
        cancel = 23 => c"ROCPROFILER_OMPT_ID_cancel",
        /// A reduction begins or ends.
        reduction = 24 => c"ROCPROFILER_OMPT_ID_reduction",
        /// A section, loop iteration or chunk is given to a thread.
        dispatch = 25 => c"ROCPROFILER_OMPT_ID_dispatch",
        /// A target construct begins or ends.
        target_emi = 26 => c"ROCPROFILER_OMPT_ID_target_emi",
        /// A data operation of a target construct begins or ends.
        target_data_op_emi = 27 => c"ROCPROFILER_OMPT_ID_target_data_op_emi",
        /// The submission of a kernel to a device begins or ends.
        target_submit_emi = 28 => c"ROCPROFILER_OMPT_ID_target_submit_emi",
        /// The program executes an error directive.
        error = 29 => c"ROCPROFILER_OMPT_ID_error",
        /// The SDK hands out its table of OMPT entry points.
        callback_functions = 30 => c"ROCPROFILER_OMPT_ID_callback_functions",
        /// End marker of this version of the list.
        LAST = 31 => c"ROCPROFILER_OMPT_ID_LAST",
    }
}

c_struct! {
    /// Arguments of `ompt_callback_target_emi`, when a target region begins or ends.
    struct rocprofiler_buffer_tracing_ompt_target_t {
        /// An `ompt_target_t`: target, enter data, exit data or update.
        pub kind: i32,
        /// Number of the device in OpenMP.
        pub device_num: i32,
        /// Data of the task that encounters the construct.
        pub task_id: u64,
        /// Data of the target region.
        pub target_id: u64,
        /// Return address of the runtime's call, which leads to the construct in the program.
        pub codeptr_ra: *const c_void,
    }
}

c_struct! {
    /// Arguments of `ompt_callback_target_data_op_emi`, when memory is allocated, copied or freed for a target region.
    struct rocprofiler_buffer_tracing_ompt_target_data_op_t {
        /// Id that the OpenMP runtime gives to the operation.
        pub host_op_id: u64,
        /// An `ompt_target_data_op_t`: allocate, copy, delete and others.
        pub optype: i32,
        /// OpenMP number of the device that data comes from.
        pub src_device_num: i32,
        /// OpenMP number of the device that data goes to.
        pub dst_device_num: i32,
        /// Not used; 0.
        pub reserved: i32,
        /// Size of the memory in bytes.
        pub bytes: u64,
        /// Return address of the runtime's call, which leads to the construct in the program.
        pub codeptr_ra: *const c_void,
    }
}

c_struct! {
    /// Arguments of `ompt_callback_target_submit_emi`, when a kernel of a target region is submitted.
    struct rocprofiler_buffer_tracing_ompt_target_kernel_t {
        /// Id that the OpenMP runtime gives to the operation.
        pub host_op_id: u64,
        /// Number of the device in OpenMP.
        pub device_num: i32,
        /// Number of teams that the program asked for.
        pub requested_num_teams: u32,
    }
}

c_struct! {
    /// Details of an OMPT record; the operation determines which member is valid.
    union rocprofiler_buffer_tracing_ompt_details_t {
        /// Arguments of `target_emi`.
        pub target: rocprofiler_buffer_tracing_ompt_target_t,
        /// Arguments of `target_data_op_emi`.
        pub target_data_op: rocprofiler_buffer_tracing_ompt_target_data_op_t,
        /// Arguments of `target_submit_emi`.
        pub target_kernel: rocprofiler_buffer_tracing_ompt_target_kernel_t,
        /// Content for all other operations, whose arguments are not recorded.
        pub reserved: [u64; 5],
    }
}

c_struct! {
    /// An OMPT event. The details are an anonymous union in C.
    struct rocprofiler_buffer_tracing_ompt_record_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Always `ROCPROFILER_BUFFER_TRACING_OMPT`.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// The OMPT event, a [`rocprofiler_ompt_operation_t`]; it determines the valid member of `details`.
        pub operation: rocprofiler_tracing_operation_t,
        /// Ties the record to the API call that caused it.
        pub correlation_id: rocprofiler_correlation_id_t,
        /// Begin, ns of `CLOCK_BOOTTIME`.
        pub start_timestamp: rocprofiler_timestamp_t,
        /// End, ns of `CLOCK_BOOTTIME`.
        pub end_timestamp: rocprofiler_timestamp_t,
        /// `gettid()` of the thread that the OpenMP runtime called back on.
        pub thread_id: rocprofiler_thread_id_t,
        /// Arguments of the OMPT callback for target regions, data operations and kernels.
        pub details: rocprofiler_buffer_tracing_ompt_details_t,
    }
}
