//! The functions of CUPTI.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;

use crate::pc_sampling::{
    Configuration, GetCubinCrc, GetData, GetReasonCount, GetStallReasons, OfContext,
};

/// Values that functions of CUPTI return.
pub mod result {
    use std::ffi::c_int;

    /// The call has succeeded.
    pub const SUCCESS: c_int = 0;
    /// An argument has a value that it cannot have.
    pub const INVALID_PARAMETER: c_int = 1;
    /// There is no memory, or the hardware's buffer is full.
    pub const OUT_OF_MEMORY: c_int = 8;
    /// A buffer has no further record.
    pub const MAX_LIMIT_REACHED: c_int = 12;
    /// Functions of the two interfaces for activities were mixed.
    pub const NOT_COMPATIBLE: c_int = 14;
    /// The driver could not be initialised.
    pub const NOT_INITIALIZED: c_int = 15;
    /// The call is not possible now.
    pub const INVALID_OPERATION: c_int = 7;
    /// The library does not know the kind.
    pub const INVALID_KIND: c_int = 21;
    /// Another tool has the hardware's counters.
    pub const HARDWARE_BUSY: c_int = 26;
    /// The device or the driver does not have what was requested.
    pub const NOT_SUPPORTED: c_int = 27;
    /// The device is virtualised.
    pub const VIRTUALIZED_DEVICE_NOT_SUPPORTED: c_int = 33;
    /// The user may not do what was requested.
    pub const INSUFFICIENT_PRIVILEGES: c_int = 35;
    /// Another tool has subscribed.
    pub const MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED: c_int = 39;
    /// The user may not profile this virtualised device.
    pub const VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES: c_int = 40;
    /// The device is in the mode of confidential computing.
    pub const CONFIDENTIAL_COMPUTING_NOT_SUPPORTED: c_int = 41;
    /// The device is partitioned (MIG).
    pub const MIG_DEVICE_NOT_SUPPORTED: c_int = 43;
    /// The library cannot say what is wrong.
    pub const UNKNOWN: c_int = 999;
}

/// Attributes of the activity interface.
pub mod attribute {
    use std::ffi::c_int;

    /// Whether each thread of the program has a buffer of its own; a byte. From 12.3.
    pub const PER_THREAD_ACTIVITY_BUFFER: c_int = 9;
}

/// A subscription; opaque.
pub type Subscriber = *mut c_void;

/// Function of a subscriber: the pointer that it has given, the domain, the id of the callback, and the data of that.
pub type Callback = unsafe extern "C" fn(*mut c_void, c_int, u32, *const c_void);

/// Function that gives CUPTI a buffer: address, size in bytes, and most records (0: as many as fit).
pub type BufferRequested = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);

/// Function that takes a buffer back: context and stream (not used), address, size, and bytes of records.
pub type BufferCompleted = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

/// Arguments of `cuptiSubscribe_v2` (13.0). Later versions have a byte more, which is 0 here.
#[repr(C)]
#[derive(Debug)]
pub struct SubscriberParams {
    /// Size of this struct.
    pub size: usize,
    /// Name of this subscriber.
    pub name: *const c_char,
    /// Where to write the name of the subscriber that is there already; null for nowhere.
    pub old_name: *mut c_char,
    /// Bytes at `old_name`.
    pub old_size: usize,
    /// Whether other subscribers are accepted, if they accept others too.
    pub allow_multiple: u8,
    /// Not used: 0.
    pub reserved: [u8; 7],
}

crate::offsets!(SubscriberParams {
    size = 0,
    name = 8,
    old_name = 16,
    old_size = 24,
    allow_multiple = 32,
} size 40);

/// A function that every version of CUPTI has is missing in a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingFunction(pub &'static str);

impl fmt::Display for MissingFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it has no function {}", self.0)
    }
}

impl std::error::Error for MissingFunction {}

macro_rules! functions {
    (
        required { $($(#[$rdoc:meta])* $required:ident = $rname:literal: fn($($rtype:ty),*);)* }
        optional { $($(#[$odoc:meta])* $optional:ident = $oname:literal: fn($($otype:ty),*);)* }
    ) => {
        /// The functions of a CUPTI. All return one of [`result`].
        #[derive(Debug, Clone, Copy)]
        pub struct Functions {
            $($(#[$rdoc])* pub $required: unsafe extern "C" fn($($rtype),*) -> c_int,)*
            $($(#[$odoc])* pub $optional: Option<unsafe extern "C" fn($($otype),*) -> c_int>,)*
        }

        impl Functions {
            /// Looks all functions up.
            ///
            /// # Errors
            /// A function that every version has is missing.
            ///
            /// # Safety
            ///
            /// What `look_up` finds under a name of CUPTI's is CUPTI's function of that name, or null.
            pub unsafe fn load(
                look_up: impl Fn(&CStr) -> *mut c_void,
            ) -> Result<Functions, MissingFunction> {
                Ok(Functions {
                    $($required: {
                        let found = look_up($rname);
                        if found.is_null() {
                            return Err(MissingFunction($rname.to_str().unwrap_or_default()));
                        }
                        // SAFETY: not null, and by this function's contract CUPTI's function of this name.
                        unsafe {
                            std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($rtype),*) -> c_int>(found)
                        }
                    },)*
                    $($optional: {
                        let found = look_up($oname);
                        // SAFETY: null becomes `None`; otherwise as above.
                        unsafe {
                            std::mem::transmute::<*mut c_void, Option<unsafe extern "C" fn($($otype),*) -> c_int>>(found)
                        }
                    },)*
                })
            }
        }
    };
}

functions! {
    required {
        /// Version of the library's interface.
        get_version = c"cuptiGetVersion": fn(*mut u32);
        /// Text of a result.
        get_result_string = c"cuptiGetResultString": fn(c_int, *mut *const c_char);
        /// Subscribes to callbacks.
        subscribe = c"cuptiSubscribe": fn(*mut Subscriber, Callback, *mut c_void);
        /// Switches all callbacks of a domain.
        enable_domain = c"cuptiEnableDomain": fn(u32, Subscriber, c_int);
        /// Switches a callback.
        enable_callback = c"cuptiEnableCallback": fn(u32, Subscriber, c_int, u32);
        /// Name of a callback of a domain.
        get_callback_name = c"cuptiGetCallbackName": fn(c_int, u32, *mut *const c_char);
        /// Sets the functions that give and take buffers.
        register_callbacks = c"cuptiActivityRegisterCallbacks": fn(BufferRequested, BufferCompleted);
        /// Switches records of a kind on.
        enable = c"cuptiActivityEnable": fn(c_int);
        /// Switches records of a kind off.
        disable = c"cuptiActivityDisable": fn(c_int);
        /// The record after the given one, or the first one, of a buffer.
        next_record = c"cuptiActivityGetNextRecord": fn(*mut u8, usize, *mut *mut c_void);
        /// Has buffers with complete records delivered; with 1 all buffers.
        flush_all = c"cuptiActivityFlushAll": fn(u32);
        /// Number of records that did not fit into a buffer since the last call.
        dropped_records = c"cuptiActivityGetNumDroppedRecords": fn(*mut c_void, u32, *mut usize);
    }
    optional {
        /// Subscribes, and says who has already done so. From 13.0.
        subscribe_v2 = c"cuptiSubscribe_v2": fn(*mut Subscriber, Callback, *mut c_void, *mut SubscriberParams);
        /// Ends a subscription.
        unsubscribe = c"cuptiUnsubscribe": fn(Subscriber);
        /// Sets the clock of all records. From 11.6.
        register_timestamp_callback = c"cuptiActivityRegisterTimestampCallback": fn(unsafe extern "C" fn() -> u64);
        /// The time on the clock of records.
        get_timestamp = c"cuptiGetTimestamp": fn(*mut u64);
        /// Switches records of a kind on, and delivers those of what exists already.
        enable_and_dump = c"cuptiActivityEnableAndDump": fn(c_int);
        /// Number of a stream: the context, or null for any; the stream; whether null is the stream of the thread.
        get_stream_id = c"cuptiGetStreamIdEx": fn(*mut c_void, *mut c_void, u8, *mut u32);
        /// Number of the device of a context.
        get_device_id = c"cuptiGetDeviceId": fn(*mut c_void, *mut u32);
        /// Id of a node of a graph: the number of the graph in the upper half, that of the node in the lower half.
        get_graph_node_id = c"cuptiGetGraphNodeId": fn(*mut c_void, *mut u64);
        /// Begins to sample program counters of a context.
        pc_sampling_enable = c"cuptiPCSamplingEnable": fn(*mut OfContext);
        /// Ends the sampling of a context.
        pc_sampling_disable = c"cuptiPCSamplingDisable": fn(*mut OfContext);
        /// Sets attributes of the sampling of a context.
        pc_sampling_configure = c"cuptiPCSamplingSetConfigurationAttribute": fn(*mut Configuration);
        /// Fetches samples.
        pc_sampling_get_data = c"cuptiPCSamplingGetData": fn(*mut GetData);
        /// Number of reasons why warps do not issue.
        pc_sampling_reason_count = c"cuptiPCSamplingGetNumStallReasons": fn(*mut GetReasonCount);
        /// The reasons why warps do not issue.
        pc_sampling_reasons = c"cuptiPCSamplingGetStallReasons": fn(*mut GetStallReasons);
        /// Checksum of a module's image.
        get_cubin_crc = c"cuptiGetCubinCrc": fn(*mut GetCubinCrc);
        /// Sets an attribute of the activity interface.
        set_attribute = c"cuptiActivitySetAttribute": fn(c_int, *mut usize, *mut c_void);
    }
}

impl Functions {
    /// A result as text for the user.
    pub fn describe(&self, status: c_int) -> String {
        let mut text = std::ptr::null();
        // SAFETY: any result may be requested; the text is static.
        let known = unsafe { (self.get_result_string)(status, &raw mut text) } == result::SUCCESS
            && !text.is_null();
        if !known {
            return format!("result {status}");
        }
        // SAFETY: not null, and text of the library's.
        let text = unsafe { CStr::from_ptr(text) };
        format!("{} ({status})", text.to_string_lossy())
    }
}
