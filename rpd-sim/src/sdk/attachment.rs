//! Attaching to a process that runs: tools that were opened for it are told when they are to record.

use core::{
    ffi::{CStr, c_int, c_void},
    mem::MaybeUninit,
};

use rocprofiler_sdk_sys::{
    ROCPROFILER_VERSION, rocprofiler_client_id_t as ClientId, rocprofiler_configure_attach_func_t,
    rocprofiler_status_t as Status, rocprofiler_tool_configure_attach_result_t as ConfigureResult,
};

use super::{
    activation, context, counting, device, discovery::Entry, hip_events, lifecycle, state,
};

/// A tool's result for attaching, which it is handed back with.
#[derive(Clone, Copy)]
pub(crate) struct AttachResult(ConfigureResult);

// SAFETY: the pointer inside belongs to the tool and is only handed back to it.
unsafe impl Send for AttachResult {}

/// The second entry point of a tool, with the arguments of the first.
type ConfigureFn = <rocprofiler_configure_attach_func_t as IntoIterator>::Item;

const NAME: &CStr = c"rocprofiler_configure_attach";

/// What a tool is told with when something attaches; `None` for a tool that lives from the start to the end.
pub(crate) fn configure(entry: Entry, priority: u32, id: &mut ClientId) -> Option<AttachResult> {
    let function = entry_beside(entry)?;
    // SAFETY: the function of this name in a tool's library has this type; the id lives as long as the client.
    let result = unsafe { function(ROCPROFILER_VERSION, c"1.0.0".as_ptr(), priority, id) };
    // SAFETY: null, or the tool's result.
    let result = *unsafe { result.as_ref() }?;
    if result.size == size_of::<ConfigureResult>() {
        return Some(AttachResult(result));
    }
    eprintln!(
        "rpd-sim: a tool's result for attaching has {} bytes, not 32",
        result.size
    );
    None
}

/// The second entry point in the library of the first.
fn entry_beside(entry: Entry) -> Option<ConfigureFn> {
    let mut info = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: any address may be requested; the record is written when the answer is not zero, and its name is that of a
    // loaded object.
    let library = unsafe {
        if libc::dladdr(entry as *const c_void, info.as_mut_ptr()) == 0 {
            return None;
        }
        let name = info.assume_init().dli_fname;
        libc::dlopen(name, libc::RTLD_NOLOAD | libc::RTLD_LAZY)
    };
    // A tool that is the program itself is not opened in a running process.
    if library.is_null() {
        return None;
    }
    // SAFETY: the library is open, the name is text. Null becomes `None`; otherwise a symbol of this name has this type.
    unsafe {
        let address = libc::dlsym(library, NAME.as_ptr());
        core::mem::transmute::<*mut c_void, Option<ConfigureFn>>(address)
    }
}

/// The clients that are told, or the status for none.
fn clients() -> Result<Vec<(u32, AttachResult)>, Status> {
    if state::initialized() != 1 || state::finalized() != 0 {
        return Err(Status::ERROR_CONFIGURATION_LOCKED);
    }
    let all = lifecycle::clients();
    if all.is_empty() {
        return Err(Status::ERROR_NOT_AVAILABLE);
    }
    let told: Vec<_> = all
        .into_iter()
        .filter_map(|(handle, attach)| Some((handle, attach?)))
        .collect();
    if told.is_empty() {
        return Err(Status::ERROR_NOT_IMPLEMENTED);
    }
    Ok(told)
}

fn for_each_client(act: impl Fn(u32, AttachResult)) -> c_int {
    match clients() {
        Ok(clients) => {
            for (handle, result) in clients {
                act(handle, result);
            }
            0
        }
        Err(status) => status.0 as c_int,
    }
}

/// Tells the tools that were opened for attaching to record; a status.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_attach() -> c_int {
    for_each_client(|handle, AttachResult(result)| {
        let contexts = context::ids_of_client(handle);
        if let Some(attach) = result.tool_attach {
            let (first, count) = (contexts.as_ptr(), contexts.len() as u64);
            // SAFETY: the tool gave the function for this; the list lives through the call.
            unsafe { attach(core::ptr::null(), first, count, result.tool_data) };
        }
    })
}

/// Delivers what has been started, and tells these tools to stop; a status.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_detach() -> c_int {
    for_each_client(|handle, AttachResult(result)| {
        activation::stop_client(handle, false);
        device::drain();
        hip_events::drain();
        counting::consumer::drain();
        if let Some(detach) = result.tool_detach {
            // SAFETY: the tool gave the function for this.
            unsafe { detach(result.tool_data) };
        }
        // A tool may have started some again.
        activation::stop_client(handle, false);
    })
}
