//! Handles, plain integers and the small values that the rest of the ABI is built from.

use core::ffi::c_void;

use crate::macros::{c_handle, c_struct};

c_handle! {
    /// A context: the on/off switch that services are attached to.
    rocprofiler_context_id_t
    /// A buffer for records.
    rocprofiler_buffer_id_t
    /// An agent (CPU or GPU); stable within a process, different between processes.
    rocprofiler_agent_id_t
    /// A hardware queue.
    rocprofiler_queue_id_t
    /// A HIP stream.
    rocprofiler_stream_id_t
    /// A counter of one agent.
    rocprofiler_counter_id_t
    /// A set of counters that is collected together on one agent.
    rocprofiler_counter_config_id_t
    /// A thread that runs buffer callbacks.
    rocprofiler_callback_thread_t
    /// An instance of the thread trace decoder.
    rocprofiler_thread_trace_decoder_id_t
    /// An agent as the HSA runtime names it.
    hsa_agent_t
}

/// Old name of [`rocprofiler_counter_config_id_t`].
pub type rocprofiler_profile_config_id_t = rocprofiler_counter_config_id_t;
/// Nanoseconds of `CLOCK_BOOTTIME`.
pub type rocprofiler_timestamp_t = u64;
/// Kernel thread id, as `gettid()` gives it.
pub type rocprofiler_thread_id_t = u64;
/// Identifies a registered kernel symbol.
pub type rocprofiler_kernel_id_t = u64;
/// Counts dispatches of a process, from 1.
pub type rocprofiler_dispatch_id_t = u64;
/// One value of a counter: counter id and position along its dimensions, encoded by the provider.
pub type rocprofiler_counter_instance_id_t = u64;
/// A dimension of a counter.
pub type rocprofiler_counter_dimension_id_t = u64;
/// An operation within a tracing kind; its meaning depends on the kind.
pub type rocprofiler_tracing_operation_t = i32;

c_struct! {
    /// Eight bytes that the SDK carries around for a tool without looking at them.
    union rocprofiler_user_data_t {
        /// As a number.
        pub value: u64,
        /// As a pointer.
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
        /// As a handle.
        pub handle: u64,
        /// As a number.
        pub value: u64,
        /// As a pointer.
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
        /// First dimension.
        pub x: u32,
        /// Second dimension.
        pub y: u32,
        /// Third dimension.
        pub z: u32,
    }
}

c_struct! {
    /// A universally unique id; all zero when unknown.
    #[derive(PartialEq, Eq, Hash)]
    struct rocprofiler_uuid_t {
        /// The bytes in the order of the driver.
        pub bytes: [u8; 16],
    }
}

c_struct! {
    /// A version in three numbers.
    #[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
    struct rocprofiler_version_triplet_t {
        /// Major number.
        pub major: u32,
        /// Minor number.
        pub minor: u32,
        /// Patch number.
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
