//! The library between the registration library of ROCm and the SDK.
//!
//! `rpd` preloads it into the target and names it in `ROCPROFILER_REGISTER_LIBRARY`. The runtimes hand their dispatch
//! tables to the registration library, which passes them to [`rocprofiler_set_api_table`] here. The first call opens
//! the SDK, gives it the collector's entry point with `rocprofiler_force_configure`, and every call is forwarded to the
//! function of the same name in the SDK.
//!
//! The collector is opened with local scope, so that no `rocprofiler_configure` is globally visible: an SDK that finds one
//! parses the ELF file of every loaded library, which takes some 350 ms at the start of each program that uses the GPU.
//!
//! For programs with an SDK or a tool of their own, `ROCP_TOOL_LIBRARIES` is used instead (see `binding`).
//! Without `RPD_SDK` in the environment the library only forwards.
//!
//! | module | subject |
//! |---|---|
//! | `binding` | the first table: the collector is given to the SDK, once |
//! | `sdk` | the SDK's library |
//! | `collector` | the collector's library, and its place in `ROCP_TOOL_LIBRARIES` |
//! | `objects` | what else the process has loaded |
//! | `program` | the end of the target's `main` |
//! | `exec` | the program replaces itself with another, or starts one |
//! | `attach` | the variables by which that one is recorded |
//! | `obstacle` | why it cannot be recorded |
//! | `signals` | the target's own signal handlers |
//! | `rpd_tracer` | the C functions of RPD's tracer |

// Unit tests are not preloaded and do not wrap `main`.
#[cfg_attr(test, allow(dead_code))]
mod attach;
#[cfg_attr(test, allow(dead_code))]
mod binding;
#[cfg_attr(test, allow(dead_code))]
mod collector;
#[cfg(not(test))]
mod exec;
mod objects;
#[cfg_attr(test, allow(dead_code))]
mod obstacle;
mod program;
#[cfg(not(test))]
mod rpd_tracer;
mod sdk;
#[cfg(not(test))]
mod signals;

use std::ffi::{c_char, c_int, c_void};
use std::panic::catch_unwind;

use rocprofiler_sdk_sys::rocprofiler_status_t;

/// Status for callers when the SDK is missing.
const FAILED: c_int = rocprofiler_status_t::ERROR.0 as c_int;

/// Forwards the tables of a runtime to the SDK, once for each name and instance; for a repetition, the result
/// of the first call.
///
/// # Safety
///
/// Called by a registration library: `name` is text, and `tables` holds `num_tables` tables of the shape that the name
/// implies, which live as long as the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_set_api_table(
    name: *const c_char,
    lib_version: u64,
    lib_instance: u64,
    tables: *mut *mut c_void,
    num_tables: u64,
) -> c_int {
    catch_unwind(|| {
        // SAFETY: the caller's contract is that of the function called.
        unsafe { binding::forward(name, lib_version, lib_instance, tables, num_tables) }
    })
    .unwrap_or(FAILED)
}

/// Calls the SDK's `rocprofiler_attach` (SDK 1.1 and later), which notifies the tools that recording begins. 1 when the SDK
/// has no such function.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_attach() -> c_int {
    catch_unwind(|| binding::call(c"rocprofiler_attach")).unwrap_or(FAILED)
}

/// Calls the SDK's `rocprofiler_detach` (SDK 1.1 and later), which notifies the tools that recording ends. 1 when the SDK
/// has no such function.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_detach() -> c_int {
    catch_unwind(|| binding::call(c"rocprofiler_detach")).unwrap_or(FAILED)
}

/// Calls the SDK's `rocprofiler_load_attachment_tool` (SDK 1.4 and later), which opens a tool library in a running
/// process. 1 when the SDK has no such function.
///
/// # Safety
///
/// `path` is null or text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_load_attachment_tool(path: *const c_char) -> c_int {
    catch_unwind(|| {
        // SAFETY: the caller's contract is that of the function called.
        unsafe { binding::load_tool(path) }
    })
    .unwrap_or(FAILED)
}

/// Runs when the library is loaded, before the target's `main`.
#[cfg(not(test))]
extern "C" fn on_load() {
    exec::prepare();
    let _ = catch_unwind(|| {
        binding::prepare();
        if collector::opened().is_some()
            && let Some(own) = collector::own_path()
        {
            attach::prepare(own);
            obstacle::prepare();
        }
    });
}

#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = on_load;
