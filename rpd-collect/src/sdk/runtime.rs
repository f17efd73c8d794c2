//! Record of the runtimes that are initialised.

use rocprofiler_sdk_sys::rocprofiler_callback_tracing_runtime_initialization_data_t;
use rpd_spool::format::RuntimeInit;
use rpd_spool::record::RecordKind;
use rpd_spool::writer::now;

use super::setup::Setup;
use super::trace::{Record, Tracer};
use super::{payload, runtime_end, services};
use crate::lifecycle::signals;
use crate::recording::guard::Service;
use crate::recording::meta;

static SERVICE: Service = Service::new("runtime initialisation");

/// True when the provider will report that the HSA runtime is initialised, before it has any queue.
pub(super) fn configure(setup: &Setup<'_>) -> bool {
    let Some(kind) = setup.callback_kind("RUNTIME_INITIALIZATION") else {
        return false;
    };
    let hsa = kind.operation("RUNTIME_INITIALIZATION_HSA");
    setup.trace_always("runtime initialisation", kind, &[], Runtimes { hsa }) && hsa.is_some()
}

struct Runtimes {
    /// Number of the operation for the HSA runtime.
    hsa: Option<i32>,
}

impl Tracer for Runtimes {
    const SERVICE: &'static Service = &SERVICE;

    fn record(&self, record: &Record, _slot: &mut u64) {
        type Payload = rocprofiler_callback_tracing_runtime_initialization_data_t;
        // SAFETY: the payload of this kind, within its callback.
        let payload = unsafe { payload::sized::<Payload>(record.payload) }.unwrap_or_default();
        let init = RuntimeInit {
            header: RecordKind::RuntimeInit.head(0),
            operation: record.operation.cast_unsigned(),
            reserved: 0,
            version: payload.version,
            instance: payload.instance,
            time: now(),
        };
        meta::write(&init, b"");
        if self.hsa == Some(record.operation) {
            runtime_end::initialised();
            services::hsa_initialised();
            signals::prepare();
        }
    }
}
