//! Which runtimes came up.

use std::ffi::c_void;

use rocprofiler_sdk_sys::{
    rocprofiler_callback_tracing_record_t,
    rocprofiler_callback_tracing_runtime_initialization_data_t, rocprofiler_user_data_t,
};
use rpd_spool::format::{RuntimeInit, tag};
use rpd_spool::writer::now;

use crate::recording::guard::Service;
use crate::recording::process::header;
use crate::sdk::entry::Setup;

static SERVICE: Service = Service::new("runtime initialisation");

/// Whether the HSA runtime will be seen coming up, before it has any queue.
pub(crate) fn configure(setup: &Setup<'_>) -> bool {
    let Some(kind) = setup.callback_kind("RUNTIME_INITIALIZATION") else {
        return false;
    };
    let Some(context) = setup.context("runtime initialisation") else {
        return false;
    };
    let hsa = kind.operation("RUNTIME_INITIALIZATION_HSA");
    let data = std::ptr::from_mut(Box::leak(Box::new(hsa))).cast();
    setup.trace_callbacks(context, kind, &[], Some(on_initialization), data)
        && setup.start(context, "runtime initialisation")
        && hsa.is_some()
}

unsafe extern "C" fn on_initialization(
    record: rocprofiler_callback_tracing_record_t,
    _user_data: *mut rocprofiler_user_data_t,
    data: *mut c_void,
) {
    SERVICE.told(|| {
        // SAFETY: `data` is what `configure` leaked.
        let hsa = unsafe { *data.cast::<Option<i32>>() };
        // SAFETY: the payload of this kind, within its callback.
        let payload = unsafe {
            crate::recording::text::sized::<
                rocprofiler_callback_tracing_runtime_initialization_data_t,
            >(record.payload)
        };
        let payload = payload.unwrap_or_default();
        let init = RuntimeInit {
            header: header(0, 0),
            operation: record.operation.cast_unsigned(),
            reserved: 0,
            version: payload.version,
            instance: payload.instance,
            time: now(),
        };
        crate::recording::meta::write(tag::RUNTIME_INIT, 0, &init, b"");
        if hsa == Some(record.operation) {
            crate::sdk::counters::hsa_is_there();
            crate::lifecycle::signals::prepare();
        }
    });
}
