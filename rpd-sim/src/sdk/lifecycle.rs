//! Life cycle of tools: they are found, configured, initialised and finalised.

use core::{
    ffi::{c_int, c_void},
    sync::atomic::{AtomicI32, Ordering},
};
use std::sync::{Mutex, OnceLock};

use rocprofiler_sdk_sys::{
    ROCPROFILER_VERSION, rocprofiler_client_id_t as ClientId,
    rocprofiler_configure_func_t as ConfigureFn, rocprofiler_status_t as Status,
    rocprofiler_tool_configure_result_t as ConfigureResult,
};

use super::attachment::{self, AttachResult};
use super::{
    activation, codeobj, context, counting, device, discovery, fork, hip_events, state,
    status::store, variables::truth, worker,
};

/// A tool that accepted its configuration.
struct Client {
    id: Box<ClientId>,
    result: ConfigureResult,
    /// Functions that are told when something attaches to the process, of a tool that has such.
    attach: Option<AttachResult>,
    done: bool,
}

// SAFETY: pointers inside belong to the tool and are only handed back to it.
unsafe impl Send for Client {}

static CLIENTS: Mutex<Vec<Client>> = Mutex::new(Vec::new());

fn client_offset() -> u32 {
    static OFFSET: OnceLock<u32> = OnceLock::new();
    *OFFSET.get_or_init(|| context::random_offset(2) as u32)
}

/// Finds tools, lets them configure and initialise; once per process, later calls do nothing.
pub(crate) fn initialize(forced: Option<discovery::Entry>) {
    if !state::begin_initialization() {
        return;
    }
    // SAFETY: the handler is a function of this library.
    // Registered before the tools register handlers of their own, which therefore run before this one.
    unsafe { libc::atexit(at_exit) };
    configure(forced);
    initialize_clients();
    if !CLIENTS.lock().unwrap_or_else(|e| e.into_inner()).is_empty() {
        // Threads and fork handlers only for a process that has a tool.
        worker::start();
        fork::install();
    }
    state::end_initialization();
}

extern "C" fn at_exit() {
    finalize();
}

fn configure(forced: Option<discovery::Entry>) {
    for (priority, entry) in discovery::entries(forced).into_iter().enumerate() {
        // Handles begin at another number in each process, so that tools do not take them for indices.
        let handle = client_offset() + priority as u32;
        state::set_current_client(handle);
        let mut id = Box::new(ClientId {
            size: size_of::<ClientId>(),
            name: core::ptr::null(),
            handle,
        });
        // SAFETY: it is a tool's entry point; the id stays where it is while the client lives.
        let result = unsafe {
            entry(
                ROCPROFILER_VERSION,
                c"1.0.0".as_ptr(),
                priority as u32,
                &mut *id,
            )
        };
        if result.is_null() {
            // A tool that declines may have created contexts before it decided to.
            activation::stop_client(handle, true);
            continue;
        }
        // SAFETY: not null, so the tool handed its result.
        let result = unsafe { *result };
        if result.size != size_of::<ConfigureResult>() {
            eprintln!(
                "rpd-sim: a tool's configure result has {} bytes, not 32",
                result.size
            );
            activation::stop_client(handle, true);
            continue;
        }
        let attach = attachment::configure(entry, priority as u32, &mut id);
        let mut clients = CLIENTS.lock().unwrap_or_else(|e| e.into_inner());
        clients.push(Client {
            id,
            result,
            attach,
            done: false,
        });
    }
}

/// Numbers of the clients that have not ended, and what they are told with when something attaches.
pub(super) fn clients() -> Vec<(u32, Option<AttachResult>)> {
    let clients = CLIENTS.lock().unwrap_or_else(|e| e.into_inner());
    let there = clients.iter().filter(|client| !client.done);
    there
        .map(|client| (client.id.handle, client.attach))
        .collect()
}

fn initialize_clients() {
    // Copied: an initialiser may call back into this module.
    let list: Vec<(u32, ConfigureResult)> = {
        let clients = CLIENTS.lock().unwrap_or_else(|e| e.into_inner());
        clients.iter().map(|c| (c.id.handle, c.result)).collect()
    };
    for (handle, result) in list {
        state::set_current_client(handle);
        if let Some(function) = result.initialize {
            // SAFETY: the tool gave the function for this. Its result has no meaning in this version.
            unsafe { function(Some(finalize_client), result.tool_data) };
        }
    }
}

/// Function by which a tool finalises itself; with a single client, the whole SDK is finalised.
unsafe extern "C" fn finalize_client(id: ClientId) {
    let count = CLIENTS.lock().unwrap_or_else(|e| e.into_inner()).len();
    // The SDK ends with its only client.
    if count <= 1 {
        finalize();
    } else {
        end_client(id.handle);
    }
}

/// Stops a client's contexts and calls its finaliser, once.
fn end_client(handle: u32) {
    let result = {
        let mut clients = CLIENTS.lock().unwrap_or_else(|e| e.into_inner());
        let Some(client) = clients
            .iter_mut()
            .find(|c| c.id.handle == handle && !c.done)
        else {
            return;
        };
        client.done = true;
        client.result
    };
    // Its contexts are stopped before the finaliser runs, so that no record is added while it runs.
    activation::stop_client(handle, false);
    if let Some(function) = result.finalize {
        // SAFETY: the tool gave the function for this.
        unsafe { function(result.tool_data) };
    }
    // Removed only now: finalisers may still query contexts.
    activation::stop_client(handle, true);
}

/// Finalises all clients and the SDK, once.
pub(crate) fn finalize() {
    if !state::begin_finalization() {
        return;
    }
    // Work that has been started is delivered before tools are told that all is over.
    device::drain();
    hip_events::drain();
    counting::consumer::drain();
    // Tools expect an unload for every load.
    codeobj::unload_all();
    let handles: Vec<u32> = {
        let clients = CLIENTS.lock().unwrap_or_else(|e| e.into_inner());
        clients.iter().map(|c| c.id.handle).collect()
    };
    for handle in handles {
        end_client(handle);
    }
    state::end_finalization();
}

/// Run by the loader when the library is mapped: initialises early if the environment requests it.
extern "C" fn constructor() {
    if truth("ROCPROFILER_LIBRARY_CTOR") == Some(true) {
        initialize(None);
    }
}

/// Run by the loader at unload or exit: finalises.
extern "C" fn destructor() {
    if truth("ROCPROFILER_LIBRARY_DTOR") == Some(true) {
        finalize();
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;

#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = destructor;

/// `rocprofiler_force_configure`.
///
/// # Safety
/// The function is null or a tool's entry point.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_force_configure(configure_func: ConfigureFn) -> Status {
    static CALLED: AtomicI32 = AtomicI32::new(0);
    if state::initialized() != 0 || CALLED.swap(1, Ordering::AcqRel) != 0 {
        return Status::ERROR_CONFIGURATION_LOCKED;
    }
    // SAFETY: text ends with zero. Runtimes that start later, and children, find tools assumed.
    unsafe {
        libc::setenv(
            c"ROCPROFILER_REGISTER_FORCE_LOAD".as_ptr(),
            c"1".as_ptr(),
            1,
        )
    };
    initialize(configure_func);
    Status::SUCCESS
}

/// `rocprofiler_is_initialized`.
///
/// # Safety
/// The pointer is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_is_initialized(status: *mut c_int) -> Status {
    store(status, state::initialized());
    Status::SUCCESS
}

/// `rocprofiler_is_finalized`.
///
/// # Safety
/// The pointer is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_is_finalized(status: *mut c_int) -> Status {
    store(status, state::finalized());
    Status::SUCCESS
}

/// `rocprofiler_ompt_is_initialized`: no OpenMP runtime is traced.
///
/// # Safety
/// The pointer is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_ompt_is_initialized(status: *mut c_int) -> Status {
    store(status, 0);
    Status::SUCCESS
}

/// `rocprofiler_ompt_is_finalized`.
///
/// # Safety
/// The pointer is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_ompt_is_finalized(status: *mut c_int) -> Status {
    store(status, 0);
    Status::SUCCESS
}

/// `rocprofiler_ompt_start_tool`: returns null, because OpenMP is not traced.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_ompt_start_tool(
    _omp_version: u32,
    _runtime_version: *const core::ffi::c_char,
) -> *mut c_void {
    core::ptr::null_mut()
}

/// Entry point for OpenMP runtimes: begins the life cycle where a tool is assumed. Returns null, because OpenMP is not
/// traced.
#[unsafe(no_mangle)]
pub extern "C" fn ompt_start_tool(
    omp_version: u32,
    runtime_version: *const core::ffi::c_char,
) -> *mut c_void {
    if super::register::tool_assumed() {
        initialize(None);
    }
    rocprofiler_ompt_start_tool(omp_version, runtime_version)
}
