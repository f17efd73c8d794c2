//! Handles, plain integers and the small values that the rest of the ABI is built from.

use core::ffi::c_void;

use crate::macros::{c_handle, c_struct};

c_handle! {
    /// A context: the on/off switch that services are attached to.
    rocprofiler_context_id_t
    /// A buffer that the SDK fills with records and delivers in batches to a callback.
    rocprofiler_buffer_id_t
    /// An agent (CPU or GPU); stable within a process, different between processes.
    rocprofiler_agent_id_t
    /// An HSA queue.
    rocprofiler_queue_id_t
    /// A HIP stream; 0 is the null stream.
    rocprofiler_stream_id_t
    /// An executable HIP graph: a number in its process, from 1; 0 for none.
    rocprofiler_graph_exec_id_t
    /// A counter as one agent has it: agents of the same target have different handles.
    rocprofiler_counter_id_t
    /// A set of counters that is collected together on one agent.
    rocprofiler_counter_config_id_t
    /// A thread that runs buffer callbacks.
    rocprofiler_callback_thread_t
    /// A thread trace decoder, from its creation to its destruction.
    rocprofiler_thread_trace_decoder_id_t
    /// An agent in calls of the HSA runtime.
    hsa_agent_t
}

/// Old name of [`rocprofiler_counter_config_id_t`].
pub type rocprofiler_profile_config_id_t = rocprofiler_counter_config_id_t;
/// Nanoseconds of `CLOCK_BOOTTIME`.
pub type rocprofiler_timestamp_t = u64;
/// Kernel thread id, as `gettid()` gives it.
pub type rocprofiler_thread_id_t = u64;
/// Number of a kernel symbol in the process, from 1; 0 for an unknown kernel.
pub type rocprofiler_kernel_id_t = u64;
/// Counts dispatches of a process, from 1.
pub type rocprofiler_dispatch_id_t = u64;
/// One value of a counter: counter id and position along its dimensions, encoded by the provider.
pub type rocprofiler_counter_instance_id_t = u64;
/// Number of a dimension of counters, such as XCC or shader engine.
pub type rocprofiler_counter_dimension_id_t = u64;
/// An operation within a tracing kind; its meaning depends on the kind.
pub type rocprofiler_tracing_operation_t = i32;

c_struct! {
    /// Eight bytes that the SDK carries around for a tool without looking at them.
    union rocprofiler_user_data_t {
        /// The bytes as an unsigned integer.
        pub value: u64,
        /// The bytes as a pointer of the tool.
        pub ptr: *mut c_void,
    }
}

impl rocprofiler_user_data_t {
    /// The bytes as a number, whichever member was written.
    pub fn as_u64(self) -> u64 {
        // SAFETY: both members are eight bytes wide and any bits make a u64.
        unsafe { self.value }
    }
}

impl From<u64> for rocprofiler_user_data_t {
    fn from(value: u64) -> Self {
        Self { value }
    }
}

c_struct! {
    /// An address in host or device memory.
    union rocprofiler_address_t {
        /// The address as an opaque handle.
        pub handle: u64,
        /// The address as an unsigned integer.
        pub value: u64,
        /// The address as a pointer; device memory must not be read through it.
        pub ptr: *const c_void,
    }
}

impl rocprofiler_address_t {
    /// The address as a number, whichever member was written.
    pub fn as_u64(self) -> u64 {
        // SAFETY: all members are eight bytes wide and any bits make a u64.
        unsafe { self.value }
    }
}

impl From<u64> for rocprofiler_address_t {
    fn from(value: u64) -> Self {
        Self { value }
    }
}

c_struct! {
    /// A size or position in three dimensions.
    #[derive(PartialEq, Eq, Hash)]
    struct rocprofiler_dim3_t {
        /// Size or position along the first dimension, the fastest.
        pub x: u32,
        /// Along the second dimension.
        pub y: u32,
        /// Along the third dimension.
        pub z: u32,
    }
}

c_struct! {
    /// A universally unique id; all zero when unknown.
    #[derive(PartialEq, Eq, Hash)]
    struct rocprofiler_uuid_t {
        /// The id as the driver reports it; byte 0 first.
        pub bytes: [u8; 16],
    }
}

c_struct! {
    /// A version `major.minor.patch`.
    #[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
    struct rocprofiler_version_triplet_t {
        /// Grows when interfaces change incompatibly.
        pub major: u32,
        /// Grows when interfaces are added.
        pub minor: u32,
        /// Grows with corrections only.
        pub patch: u32,
    }
}

c_struct! {
    /// Ties together what belongs to one API call.
    struct rocprofiler_correlation_id_t {
        /// Unique in the process, from 1.
        pub internal: u64,
        /// The value a tool supplied for this call.
        pub external: rocprofiler_user_data_t,
        /// Internal id of the traced call around this one on the same thread, 0 if none.
        pub ancestor: u64,
    }
}

c_struct! {
    /// Ties asynchronous work to the API call that caused it.
    struct rocprofiler_async_correlation_id_t {
        /// Internal id of the causing call.
        pub internal: u64,
        /// The value a tool supplied for the work.
        pub external: rocprofiler_user_data_t,
    }
}
