//! Buffers of the provider, into which it puts records of its buffer service.

use std::ffi::c_void;

use rocprofiler_sdk_sys::{
    Functions, rocprofiler_buffer_category_t, rocprofiler_buffer_id_t, rocprofiler_buffer_policy_t,
    rocprofiler_buffer_tracing_cb_t, rocprofiler_buffer_tracing_kind_t,
    rocprofiler_record_header_t, rocprofiler_status_t,
};

use super::setup::Setup;
use crate::recording::kinds::KindNames;

/// A buffer of the provider, with the functions that it belongs to.
pub(super) struct Buffer {
    functions: &'static Functions,
    buffer: rocprofiler_buffer_id_t,
}

impl Buffer {
    /// Makes a buffer of so many bytes, of which the provider hands on what is in it when it has `watermark` bytes. Notes the failure
    /// of `purpose` otherwise.
    pub(super) fn new(
        setup: &Setup<'_>,
        purpose: &str,
        bytes: usize,
        watermark: usize,
        deliver: rocprofiler_buffer_tracing_cb_t,
    ) -> Option<Buffer> {
        let mut buffer = rocprofiler_buffer_id_t::default();
        // SAFETY: a context of this provider, a callback that stays loaded, and a place for the result.
        let status = unsafe {
            (setup.functions.rocprofiler_create_buffer)(
                setup.client,
                bytes,
                watermark,
                rocprofiler_buffer_policy_t::LOSSLESS,
                deliver,
                std::ptr::null_mut(),
                &mut buffer,
            )
        };
        setup.succeeded(status, purpose).then_some(Buffer {
            functions: setup.functions,
            buffer,
        })
    }

    /// Has the provider put all records of a kind into the buffer while the client context is started.
    pub(super) fn receive(&self, setup: &Setup<'_>, kind: &KindNames) -> rocprofiler_status_t {
        // SAFETY: context and buffer are the provider's; all operations.
        unsafe {
            (self.functions.rocprofiler_configure_buffer_tracing_service)(
                setup.client,
                rocprofiler_buffer_tracing_kind_t(kind.number),
                std::ptr::null(),
                0,
                self.buffer,
            )
        }
    }

    /// Makes the provider deliver what it holds.
    pub(super) fn flush(&self) {
        // SAFETY: a buffer of this provider.
        unsafe { (self.functions.rocprofiler_flush_buffer)(self.buffer) };
    }
}

/// The records of traces among those that a buffer delivers; null pointers are left out.
///
/// # Safety
///
/// `headers` is null or the provider's array of `count` pointers, each null or to a header that is valid as long as the result is
/// used.
pub(super) unsafe fn traced(
    headers: *mut *mut rocprofiler_record_header_t,
    count: usize,
) -> impl Iterator<Item = *const c_void> {
    let headers = if headers.is_null() {
        &[]
    } else {
        // SAFETY: by this function's contract.
        unsafe { std::slice::from_raw_parts(headers, count) }
    };
    headers.iter().filter_map(|&header| {
        // SAFETY: by this function's contract.
        let header = unsafe { header.as_ref() }?;
        let is_trace = header.category == rocprofiler_buffer_category_t::TRACING.0;
        (is_trace && !header.payload.is_null()).then_some(header.payload.cast_const())
    })
}
