//! Hardware counters: descriptions, and the dispatch and device counting services.

use core::ffi::{c_char, c_void};

use crate::buffer::rocprofiler_kernel_dispatch_info_t;
use crate::ids::{
    rocprofiler_agent_id_t, rocprofiler_async_correlation_id_t, rocprofiler_context_id_t,
    rocprofiler_counter_config_id_t, rocprofiler_counter_dimension_id_t, rocprofiler_counter_id_t,
    rocprofiler_counter_instance_id_t, rocprofiler_dispatch_id_t, rocprofiler_timestamp_t,
    rocprofiler_user_data_t,
};
use crate::macros::{bit_fields, c_enum, c_struct};
use crate::status::rocprofiler_status_t;

c_enum! {
    /// Kind of a buffered record of the counting services.
    rocprofiler_counter_record_kind_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_COUNTER_RECORD_NONE",
        /// A [`rocprofiler_dispatch_counting_service_record_t`], which the values of the dispatch follow.
        PROFILE_COUNTING_DISPATCH_HEADER = 1 => c"ROCPROFILER_COUNTER_RECORD_PROFILE_COUNTING_DISPATCH_HEADER",
        /// A [`rocprofiler_counter_record_t`].
        VALUE = 2 => c"ROCPROFILER_COUNTER_RECORD_VALUE",
        /// End marker of this version of the list.
        LAST = 3 => c"ROCPROFILER_COUNTER_RECORD_LAST",
    }
}

c_enum! {
    /// Flags of counter functions (a bit mask).
    rocprofiler_counter_flag_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_COUNTER_FLAG_NONE",
        /// Do not wait for the sample.
        ASYNC = 1 => c"ROCPROFILER_COUNTER_FLAG_ASYNC",
        /// Add to the built-in definitions instead of replacing them.
        APPEND_DEFINITION = 2 => c"ROCPROFILER_COUNTER_FLAG_APPEND_DEFINITION",
        /// End marker of this version of the list.
        LAST = 3 => c"ROCPROFILER_COUNTER_FLAG_LAST",
    }
}

c_enum! {
    /// Version of the counter description struct that a query fills.
    rocprofiler_counter_info_version_id_t: u32 {
        /// No value.
        VERSION_NONE = 0 => c"ROCPROFILER_COUNTER_INFO_VERSION_NONE",
        /// The struct `rocprofiler_counter_info_v0_t`.
        VERSION_0 = 1 => c"ROCPROFILER_COUNTER_INFO_VERSION_0",
        /// The struct `rocprofiler_counter_info_v1_t`.
        VERSION_1 = 2 => c"ROCPROFILER_COUNTER_INFO_VERSION_1",
        /// End marker of this version of the list.
        VERSION_LAST = 3 => c"ROCPROFILER_COUNTER_INFO_VERSION_LAST",
    }
}

c_struct! {
    /// Answer of `rocprofiler_query_counter_info` for version 0.
    struct rocprofiler_counter_info_v0_t {
        /// Counter that the query was for.
        pub id: rocprofiler_counter_id_t,
        /// Name by which users select the counter, such as `SQ_WAVES`.
        pub name: *const c_char,
        /// Description of the counter, in a sentence.
        pub description: *const c_char,
        /// Hardware block; empty for derived counters.
        pub block: *const c_char,
        /// Formula of a derived counter over other counters; empty for a hardware counter.
        pub expression: *const c_char,
        /// Bit 0: constant, bit 1: derived.
        pub flags: u8,
    }
}

bit_fields! {
    rocprofiler_counter_info_v0_t.flags: u8 {
        /// 1 when the counter is a property of the agent.
        is_constant with_is_constant 0 1
        /// 1 when the counter is computed from others.
        is_derived with_is_derived 1 1
    }
}

c_struct! {
    /// Answer of `rocprofiler_query_counter_info` for version 1, with the dimensions.
    struct rocprofiler_counter_info_v1_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Counter that the query was for.
        pub id: rocprofiler_counter_id_t,
        /// Name by which users select the counter, such as `SQ_WAVES`.
        pub name: *const c_char,
        /// Description of the counter, in a sentence.
        pub description: *const c_char,
        /// Hardware block; empty for derived counters.
        pub block: *const c_char,
        /// Formula of a derived counter over other counters; empty for a hardware counter.
        pub expression: *const c_char,
        /// Bit 0: constant, bit 1: derived.
        pub flags: u8,
        /// Number of entries of `dimensions`.
        pub dimensions_count: u64,
        /// Array of pointers to the dimensions.
        pub dimensions: *mut *const rocprofiler_counter_record_dimension_info_t,
        /// Number of entries of `dimensions_instances`: the values of one measurement.
        pub dimensions_instances_count: u64,
        /// Array of pointers to the descriptions of the values of one measurement.
        pub dimensions_instances: *mut *const rocprofiler_counter_record_dimension_instance_info_t,
    }
}

bit_fields! {
    rocprofiler_counter_info_v1_t.flags: u8 {
        /// 1 when the counter is a property of the agent.
        is_constant with_is_constant 0 1
        /// 1 when the counter is computed from others.
        is_derived with_is_derived 1 1
    }
}

c_struct! {
    /// One dimension of a counter, such as the shader engine, and its extent.
    struct rocprofiler_counter_record_dimension_info_t {
        /// Name of the dimension, such as `DIMENSION_XCC`.
        pub name: *const c_char,
        /// Number of positions along the dimension.
        pub instance_size: usize,
        /// Number that `rocprofiler_query_record_dimension_position` takes.
        pub id: rocprofiler_counter_dimension_id_t,
    }
}

c_struct! {
    /// One value that a counter yields, with its position.
    struct rocprofiler_counter_record_dimension_instance_info_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Id of this value in records.
        pub instance_id: rocprofiler_counter_instance_id_t,
        /// Handle of the counter that yields the value.
        pub counter_id: u64,
        /// Number of entries of `dimensions`.
        pub dimensions_count: u64,
        /// Array of pointers to the dimensions.
        pub dimensions: *mut *const rocprofiler_counter_dimension_info_t,
    }
}

c_struct! {
    /// Position along one dimension.
    struct rocprofiler_counter_dimension_info_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Name of the dimension, such as `DIMENSION_XCC`.
        pub dimension_name: *const c_char,
        /// Position along the dimension, from 0.
        pub index: usize,
    }
}

c_struct! {
    /// A measured value of a counter at one position along its dimensions.
    struct rocprofiler_counter_record_t {
        /// Id of the value, which has the counter and the position; the record queries decode it.
        pub id: rocprofiler_counter_instance_id_t,
        /// Value at this position; an integer unless the counter is derived.
        pub counter_value: f64,
        /// Dispatch that was counted; 0 for device counting.
        pub dispatch_id: rocprofiler_dispatch_id_t,
        /// Value that the tool set in the dispatch callback, or passed to the sampling call.
        pub user_data: rocprofiler_user_data_t,
        /// GPU that was counted on.
        pub agent_id: rocprofiler_agent_id_t,
    }
}

/// Old name of [`rocprofiler_counter_record_t`].
pub type rocprofiler_record_counter_t = rocprofiler_counter_record_t;

c_struct! {
    /// A dispatch offered for counting, or counted; passed by value. Timestamps are zero when it is offered.
    struct rocprofiler_dispatch_counting_service_data_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Ties the record to the API call that caused it.
        pub correlation_id: rocprofiler_async_correlation_id_t,
        /// Begin, ns of `CLOCK_BOOTTIME`.
        pub start_timestamp: rocprofiler_timestamp_t,
        /// End, ns of `CLOCK_BOOTTIME`.
        pub end_timestamp: rocprofiler_timestamp_t,
        /// Kernel, agent, queue and sizes of the dispatch.
        pub dispatch_info: rocprofiler_kernel_dispatch_info_t,
    }
}

c_struct! {
    /// Header of the buffered counter values of one dispatch.
    struct rocprofiler_dispatch_counting_service_record_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Number of counter records that follow in the buffer.
        pub num_records: u64,
        /// Ties the record to the API call that caused it.
        pub correlation_id: rocprofiler_async_correlation_id_t,
        /// Begin, ns of `CLOCK_BOOTTIME`.
        pub start_timestamp: rocprofiler_timestamp_t,
        /// End, ns of `CLOCK_BOOTTIME`.
        pub end_timestamp: rocprofiler_timestamp_t,
        /// Kernel, agent, queue and sizes of the dispatch.
        pub dispatch_info: rocprofiler_kernel_dispatch_info_t,
    }
}

/// Receives all counters of an agent; the array lasts for the call only.
pub type rocprofiler_available_counters_cb_t = Option<
    unsafe extern "C" fn(
        agent: rocprofiler_agent_id_t,
        counters: *mut rocprofiler_counter_id_t,
        count: usize,
        data: *mut c_void,
    ) -> rocprofiler_status_t,
>;

/// Receives all dimensions of a counter; the array lasts for the call only.
pub type rocprofiler_available_dimensions_cb_t = Option<
    unsafe extern "C" fn(
        counter: rocprofiler_counter_id_t,
        dimensions: *const rocprofiler_counter_record_dimension_info_t,
        count: usize,
        data: *mut c_void,
    ) -> rocprofiler_status_t,
>;

/// Chooses the counters for a dispatch, on the enqueuing thread, by filling `config` (zero: none). The user data
/// reaches the record callback.
pub type rocprofiler_dispatch_counting_service_cb_t = Option<
    unsafe extern "C" fn(
        dispatch: rocprofiler_dispatch_counting_service_data_t,
        config: *mut rocprofiler_counter_config_id_t,
        user_data: *mut rocprofiler_user_data_t,
        data: *mut c_void,
    ),
>;

/// Receives the counter values of a finished dispatch on a thread of the SDK.
pub type rocprofiler_dispatch_counting_record_cb_t = Option<
    unsafe extern "C" fn(
        dispatch: rocprofiler_dispatch_counting_service_data_t,
        records: *mut rocprofiler_counter_record_t,
        count: usize,
        user_data: rocprofiler_user_data_t,
        data: *mut c_void,
    ),
>;

/// Sets the counters of an agent; called by the tool.
pub type rocprofiler_device_counting_agent_cb_t = Option<
    unsafe extern "C" fn(
        context: rocprofiler_context_id_t,
        config: rocprofiler_counter_config_id_t,
    ) -> rocprofiler_status_t,
>;

/// Called when a context starts: chooses the counters of an agent by calling `set_config`.
pub type rocprofiler_device_counting_service_cb_t = Option<
    unsafe extern "C" fn(
        context: rocprofiler_context_id_t,
        agent: rocprofiler_agent_id_t,
        set_config: rocprofiler_device_counting_agent_cb_t,
        data: *mut c_void,
    ),
>;
