//! The end of the HSA runtime or of the program, before which the provider delivers the events that it holds.
//!
//! A program without HIP calls `hsa_shut_down` before it returns from `main`. The queues of the provider are gone then, and
//! it faults when a trace of whole GPUs is stopped. In a program that ends by `exit`, the provider's exit handler drops
//! such a trace.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::services;
use super::setup::Setup;
use super::trace::{Phase, Record, Tracer};
use crate::recording::guard::Service;

static SERVICE: Service = Service::new("end of the HSA runtime");
static EXIT: Service = Service::new("deliveries at exit");
/// Whether a service may hold events while the exit handler is not registered yet.
static WAITING: AtomicBool = AtomicBool::new(false);
/// Number of calls of `hsa_init` minus calls of `hsa_shut_down`. The first `hsa_init` is not reported, since the
/// provider is loaded in it.
static REFERENCES: AtomicU32 = AtomicU32::new(1);

/// Requests the calls that end the runtime, if a service may hold events. To be called once it is known whether the
/// runtime's start is announced.
pub(super) fn configure(setup: &Setup<'_>) {
    if setup.options.thread_trace.is_none() && setup.options.sampling.is_none() {
        return;
    }
    WAITING.store(true, Ordering::Relaxed);
    if !setup.announces_hsa {
        initialised();
    }
    let Some(kind) = setup.callback_kind("HSA_CORE_API") else {
        return;
    };
    if let (Some(init), Some(shut_down)) =
        (kind.operation("hsa_init"), kind.operation("hsa_shut_down"))
    {
        let purpose = "the end of the HSA runtime";
        setup.trace_always(purpose, kind, &[init, shut_down], References { shut_down });
    }
}

/// Notes that the runtime was initialised, for the first time or again.
pub(super) fn initialised() {
    REFERENCES.store(1, Ordering::Relaxed);
    // Handlers run in reverse order, so now rather than earlier: HIP may initialise the runtime in an exit handler.
    if WAITING.swap(false, Ordering::Relaxed) {
        // SAFETY: a function of this library, which is never unloaded once the target uses it. Without memory for it the
        // events are lost.
        unsafe { libc::atexit(at_exit) };
    }
}

extern "C" fn at_exit() {
    EXIT.run(services::end);
}

struct References {
    /// Number of the operation `hsa_shut_down`.
    shut_down: i32,
}

impl Tracer for References {
    const SERVICE: &'static Service = &SERVICE;

    fn record(&self, record: &Record, _slot: &mut u64) {
        if record.phase != Phase::ENTER {
            return;
        }
        if record.operation != self.shut_down {
            REFERENCES.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let fewer = |count: u32| count.checked_sub(1);
        if REFERENCES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer) == Ok(1) {
            services::end();
        }
    }
}
