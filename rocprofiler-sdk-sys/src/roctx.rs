//! ROCTx: the marker functions programs call, and the dispatch tables they go through.

use core::ffi::{c_char, c_int, c_void};

use crate::macros::c_struct;

/// A range that any thread may close; ids begin at 1.
pub type roctx_range_id_t = u64;
/// A thread id; 0 stands for the whole process in pause and resume.
pub type roctx_thread_id_t = u64;

/// Places a message at a point in time.
pub type roctxMarkA_fn_t = Option<unsafe extern "C" fn(message: *const c_char)>;
/// Opens a nested range on the calling thread; the level, from 0, negative on error.
pub type roctxRangePushA_fn_t = Option<unsafe extern "C" fn(message: *const c_char) -> c_int>;
/// Closes the innermost range of the calling thread; the level afterwards, -1 if none was open.
pub type roctxRangePop_fn_t = Option<unsafe extern "C" fn() -> c_int>;
/// Opens a range that any thread may close.
pub type roctxRangeStartA_fn_t =
    Option<unsafe extern "C" fn(message: *const c_char) -> roctx_range_id_t>;
/// Closes a range opened by start.
pub type roctxRangeStop_fn_t = Option<unsafe extern "C" fn(id: roctx_range_id_t)>;
/// Writes the id of the calling thread; 0 on success.
pub type roctxGetThreadId_fn_t = Option<unsafe extern "C" fn(tid: *mut roctx_thread_id_t) -> c_int>;
/// Requests that tools pause recording; 0 on success.
pub type roctxProfilerPause_fn_t = Option<unsafe extern "C" fn(tid: roctx_thread_id_t) -> c_int>;
/// Requests that tools resume recording; 0 on success.
pub type roctxProfilerResume_fn_t = Option<unsafe extern "C" fn(tid: roctx_thread_id_t) -> c_int>;
/// Names the calling thread; 0 on success.
pub type roctxNameOsThread_fn_t = Option<unsafe extern "C" fn(name: *const c_char) -> c_int>;
/// Names an agent, given by a pointer to its HSA handle; 0 on success.
pub type roctxNameHsaAgent_fn_t =
    Option<unsafe extern "C" fn(name: *const c_char, agent: *const c_void) -> c_int>;
/// Names a HIP device; 0 on success.
pub type roctxNameHipDevice_fn_t =
    Option<unsafe extern "C" fn(name: *const c_char, device_id: c_int) -> c_int>;
/// Names a HIP stream; 0 on success.
pub type roctxNameHipStream_fn_t =
    Option<unsafe extern "C" fn(name: *const c_char, stream: *const c_void) -> c_int>;

c_struct! {
    /// Dispatch table of the message and range functions. Slot number = operation id.
    struct roctxCoreApiTable_t {
        /// Size of the table in bytes; shorter in older libraries.
        pub size: u64,
        /// Marks a point in time; operation 0.
        pub roctxMarkA_fn: roctxMarkA_fn_t,
        /// Begins a range that nests on its thread; operation 1.
        pub roctxRangePushA_fn: roctxRangePushA_fn_t,
        /// Ends the innermost range of the thread; operation 2.
        pub roctxRangePop_fn: roctxRangePop_fn_t,
        /// Begins a range that any thread can end; operation 3.
        pub roctxRangeStartA_fn: roctxRangeStartA_fn_t,
        /// Ends a range by its id; operation 4.
        pub roctxRangeStop_fn: roctxRangeStop_fn_t,
        /// Returns the id of the calling thread; operation 5.
        pub roctxGetThreadId_fn: roctxGetThreadId_fn_t,
    }
}

c_struct! {
    /// Dispatch table of pause and resume.
    struct roctxControlApiTable_t {
        /// Size of the table in bytes.
        pub size: u64,
        /// Pauses profiling; operation 0.
        pub roctxProfilerPause_fn: roctxProfilerPause_fn_t,
        /// Resumes profiling; operation 1.
        pub roctxProfilerResume_fn: roctxProfilerResume_fn_t,
    }
}

c_struct! {
    /// Dispatch table of the naming functions.
    struct roctxNameApiTable_t {
        /// Size of the table in bytes.
        pub size: u64,
        /// Names a thread; operation 0.
        pub roctxNameOsThread_fn: roctxNameOsThread_fn_t,
        /// Names an HSA agent; operation 1.
        pub roctxNameHsaAgent_fn: roctxNameHsaAgent_fn_t,
        /// Names a HIP device; operation 2.
        pub roctxNameHipDevice_fn: roctxNameHipDevice_fn_t,
        /// Names a HIP stream; operation 3.
        pub roctxNameHipStream_fn: roctxNameHipStream_fn_t,
    }
}
