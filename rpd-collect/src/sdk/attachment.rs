//! The collector in a process that something attached it to: it is told when to record.
//!
//! The process ran before, so what it made until then is not in the recording: allocations, open ranges, the ids of its
//! streams.

use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use rocprofiler_sdk_sys::{
    rocprofiler_client_id_t, rocprofiler_context_id_t, rocprofiler_tool_configure_attach_result_t,
};

use super::contexts;
use crate::recording::guard::Service;
use crate::recording::{meta, switch};

static SERVICE: Service = Service::new("attaching");
/// Whether the recording says already what it lacks.
static NOTED: AtomicBool = AtomicBool::new(false);

/// The note in the recording of a process that was attached to.
const LACKS: &str = "rpd attached itself while this process ran: allocations made before are unknown, as are streams and \
    ranges of ROCTx that were open; launches through functions that the program had looked up before are missing";

/// The second entry point of the collector as a tool, which a provider calls after the first.
///
/// # Safety
///
/// Called by a provider of the rocprofiler-sdk ABI.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_configure_attach(
    _version: u32,
    _runtime_version: *const c_char,
    _priority: u32,
    _client: *mut rocprofiler_client_id_t,
) -> *mut rocprofiler_tool_configure_attach_result_t {
    /// The provider copies it; its type holds a raw pointer, which is null here.
    struct Result(rocprofiler_tool_configure_attach_result_t);
    // SAFETY: the value is never written, and its pointer is null.
    unsafe impl Sync for Result {}
    static RESULT: Result = Result(rocprofiler_tool_configure_attach_result_t {
        size: size_of::<rocprofiler_tool_configure_attach_result_t>(),
        tool_attach: Some(attach),
        tool_detach: Some(detach),
        tool_data: std::ptr::null_mut(),
    });
    (&raw const RESULT.0).cast_mut()
}

/// Records from now on. At the first time everything has been started already.
unsafe extern "C" fn attach(
    _detach: *const c_void,
    handed: *const rocprofiler_context_id_t,
    count: u64,
    _data: *mut c_void,
) {
    SERVICE.run(|| {
        let handed = if handed.is_null() {
            &[]
        } else {
            // SAFETY: the provider hands so many contexts.
            unsafe { std::slice::from_raw_parts(handed, count as usize) }
        };
        contexts::start_again(handed);
        switch::start();
        if !NOTED.swap(true, Ordering::Relaxed) {
            meta::note(LACKS);
        }
    });
}

/// Records what is held back, and no more until the next time.
unsafe extern "C" fn detach(_data: *mut c_void) {
    SERVICE.run(|| {
        switch::flush();
        switch::stop();
    });
}
