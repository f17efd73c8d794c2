//! Entry points with which the provider finds, starts and ends the collector.

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use rocprofiler_sdk_sys::{
    rocprofiler_client_finalize_t, rocprofiler_client_id_t, rocprofiler_context_id_t,
    rocprofiler_tool_configure_result_t,
};

use super::contexts;
use super::names::Catalogue;
use super::provider;
use super::setup::Setup;
use super::{agents, forked_end, services};
use crate::lifecycle::{load, signals};
use crate::recording::guard::{self, Service};
use crate::recording::{meta, process};

static SERVICE: Service = Service::new("registration");
/// The provider's function that ends the recording; null before, and once it is ending.
static FINALIZE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
/// The number that the provider gave the collector.
static CLIENT: AtomicU32 = AtomicU32::new(0);

/// The entry point by which a provider configures its tools. Null declines.
///
/// # Safety
///
/// Called by a provider of the rocprofiler-sdk ABI: `client` is null or valid for as long as the client exists.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_configure(
    version: u32,
    _runtime_version: *const c_char,
    _priority: u32,
    client: *mut rocprofiler_client_id_t,
) -> *mut rocprofiler_tool_configure_result_t {
    /// The provider copies it; its type holds a raw pointer, which is null here.
    struct Result(rocprofiler_tool_configure_result_t);
    // SAFETY: the value is never written, and its pointer is null.
    unsafe impl Sync for Result {}
    static RESULT: Result = Result(rocprofiler_tool_configure_result_t {
        size: size_of::<rocprofiler_tool_configure_result_t>(),
        initialize: Some(initialize),
        finalize: Some(finalize),
        tool_data: std::ptr::null_mut(),
    });
    let accepted = SERVICE.run(|| {
        load::install();
        let Some(process) = process::current() else {
            return false;
        };
        process.set_provider_version(version);
        if version / 10_000 != 1 {
            meta::note(&format!(
                "nothing is recorded: this provider has version {}.{}, rpd needs 1.x",
                version / 10_000,
                version / 100 % 100
            ));
            return false;
        }
        if !client.is_null() {
            // SAFETY: the caller's struct, in which a tool sets its name.
            let client = unsafe { &mut *client };
            client.name = c"rpd".as_ptr();
            CLIENT.store(client.handle, Ordering::Relaxed);
        }
        true
    });
    if accepted == Some(true) {
        (&raw const RESULT.0).cast_mut()
    } else {
        std::ptr::null_mut()
    }
}

unsafe extern "C" fn initialize(
    finalize: rocprofiler_client_finalize_t,
    _data: *mut c_void,
) -> c_int {
    let finalize = finalize.map_or(std::ptr::null_mut(), |function| function as *mut c_void);
    FINALIZE.store(finalize, Ordering::Release);
    match SERVICE.run(|| set_up(finalize)) {
        Some(true) => 0,
        _ => -1,
    }
}

/// Configures and starts everything; `code` is a function of the provider or null. False when the provider cannot be used.
fn set_up(code: *const c_void) -> bool {
    let Some(process) = process::current() else {
        return false;
    };
    // SAFETY: the provider stays loaded until the process ends.
    let functions = match unsafe { provider::load(code) } {
        Ok(functions) => functions,
        Err(missing) => {
            meta::note(&format!("nothing is recorded: {missing}"));
            return false;
        }
    };
    let mut setup = Setup {
        functions,
        options: &process.options,
        names: Catalogue::query(functions),
        client: rocprofiler_context_id_t::default(),
        counting: None,
        announces_hsa: false,
    };
    // Names first: records written from here on refer to them by number.
    setup.names.record();
    agents::record(functions);
    let Some(client) = setup.context("anything") else {
        return false;
    };
    setup.client = client;
    services::configure(&mut setup);
    if setup.records_anything() {
        contexts::begin(&setup);
        services::begin(&setup);
    }
    // Before any service may hold events: a signal could come at any time.
    signals::deliver_first(signals::Delivery {
        is_needed: services::hold_events,
        deliver: services::end,
    });
    if !setup.announces_hsa {
        signals::prepare();
    }
    true
}

/// Whether a provider has configured the collector.
pub(crate) fn is_configured() -> bool {
    provider::functions().is_some()
}

/// Makes the provider end the recording, once; without a provider it ends here.
pub(crate) fn end() {
    signals::withdraw();
    let function = FINALIZE.swap(std::ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: null becomes `None`; otherwise it is what the provider gave to `initialize`.
    let function =
        unsafe { std::mem::transmute::<*mut c_void, rocprofiler_client_finalize_t>(function) };
    if let Some(function) = function
        && !forked_end::applies()
    {
        services::end();
        let client = rocprofiler_client_id_t {
            size: size_of::<rocprofiler_client_id_t>(),
            name: c"rpd".as_ptr(),
            handle: CLIENT.load(Ordering::Relaxed),
        };
        // SAFETY: the id is the one this provider configured us with. It calls `finalize` in turn.
        unsafe { function(client) };
    }
    SERVICE.run(|| {
        if let Some(process) = process::existing() {
            meta::end(process);
        }
    });
}

unsafe extern "C" fn finalize(_data: *mut c_void) {
    static ENDING: Service = Service::new("finalisation");
    ENDING.run(services::end);
    guard::set_finalized();
    signals::withdraw();
    // The provider is ending already.
    FINALIZE.store(std::ptr::null_mut(), Ordering::Release);
    ENDING.run(|| {
        if let Some(process) = process::existing() {
            meta::end(process);
        }
    });
}
