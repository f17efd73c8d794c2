//! The registration library of the simulated runtimes, in the place of ROCm's `librocprofiler-register.so.0`.
//!
//! The simulator opens it where `ROCP_TOOL_ATTACH` is true, under ROCm's name, and registers its tables here. A thread
//! called `rocp-bg-attach` then sleeps. An attacher, that of rpd or ROCm's own, has this thread call
//! [`rocprofiler_register_attach`], which opens the SDK, hands the tables over and has the SDK start the tool.
//!
//! Unlike ROCm's version 0.6.0 it never ends the process: what is missing is an error code.
//!
//! The library is another one than `librpd_register.so`, which rpd preloads: that one must not define functions of the
//! registration library, because real runtimes would find them there.
//!
//! | module | subject |
//! |---|---|
//! | `registrations` | the tables of the runtimes |
//! | `attachment` | attaching and detaching |
//! | `listener` | the thread that sleeps |
//! | `sdk` | the SDK's library |
//! | `code` | the codes that functions return |

mod attachment;
mod code;
mod listener;
mod registrations;
mod sdk;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::catch_unwind;

use code::Code;

/// Function of a runtime that returns its version.
type ImportFn = unsafe extern "C" fn() -> u32;

/// A set of tables, described for [`rocprofiler_register_iterate_registration_info`].
#[derive(Debug)]
#[repr(C)]
pub struct RegistrationInfo {
    /// Bytes of this struct.
    pub size: usize,
    /// Name with which the runtime registered.
    pub common_name: *const c_char,
    /// Version of the runtime, `10000*major + 100*minor + patch`.
    pub lib_version: u32,
    /// Number of tables.
    pub api_table_length: u64,
}

/// Called for each set of tables; any result but 0 ends the iteration.
type InfoFn = unsafe extern "C" fn(*const RegistrationInfo, *mut c_void) -> c_int;

/// Runs `act` for a function of the C interface.
fn answer(act: impl FnOnce() -> Code + std::panic::UnwindSafe) -> c_int {
    catch_unwind(act).unwrap_or(Code::RocprofilerError) as c_int
}

/// Registers the tables of a runtime.
///
/// # Safety
///
/// `common_name` is null or text, `api_tables` has `api_table_length` tables that live as long as the process, and
/// `register_id` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_register_library_api_table(
    common_name: *const c_char,
    _import_func: Option<ImportFn>,
    lib_version: u32,
    api_tables: *mut *mut c_void,
    api_table_length: u64,
    register_id: *mut u64,
) -> c_int {
    answer(|| {
        if common_name.is_null() {
            return Code::UnsupportedApi;
        }
        if api_tables.is_null() || api_table_length == 0 {
            return Code::BadApiTableLength;
        }
        // SAFETY: not null, and as the caller promises.
        let (name, tables) = unsafe {
            let count = api_table_length as usize;
            let tables = std::slice::from_raw_parts(api_tables, count);
            (CStr::from_ptr(common_name), tables)
        };
        match registrations::add(name, lib_version, tables) {
            Ok((id, code)) => {
                if !register_id.is_null() {
                    // SAFETY: not null, and as the caller promises.
                    unsafe { register_id.write(id) };
                }
                code
            }
            Err(code) => code,
        }
    })
}

/// Text of a code; static.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_register_error_string(code: c_int) -> *const c_char {
    Code::text(code).as_ptr()
}

/// Describes all sets of tables that were registered.
///
/// # Safety
///
/// `callback` is a function of this type or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_register_iterate_registration_info(
    callback: Option<InfoFn>,
    data: *mut c_void,
) -> c_int {
    let Some(callback) = callback else {
        return Code::InvalidArgument as c_int;
    };
    for registered in registrations::all() {
        let info = RegistrationInfo {
            size: size_of::<RegistrationInfo>(),
            common_name: registered.name.as_ptr(),
            lib_version: registered.version,
            api_table_length: registered.tables.len() as u64,
        };
        // SAFETY: the caller's function; the description lives through the call.
        if unsafe { callback(&raw const info, data) } != 0 {
            break;
        }
    }
    Code::Success as c_int
}

/// Hands the tables to the SDK that no SDK has got yet.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_register_invoke_nonpropagated_registrations() -> c_int {
    answer(|| registrations::hand_over(false))
}

/// Hands all tables to the SDK again.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_register_invoke_all_registrations() -> c_int {
    answer(|| registrations::hand_over(true))
}

/// Does nothing; a remainder of an earlier interface.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_register_invoke_prestore_loads() -> c_int {
    Code::Success as c_int
}

/// Starts the listener. In ROCm this is a function of the library that has the listener.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_attach_set_api_table(
    _name: *const c_char,
    _lib_version: u64,
    _lib_instance: u64,
    _tables: *mut *mut c_void,
    _num_tables: u64,
    _register_functor: *mut c_void,
) -> c_int {
    c_int::from(!listener::start())
}

/// Attaches a tool: sets the variables in `environment`, opens the SDK with the tool at the first time, and has the tool
/// record.
///
/// # Safety
///
/// Called on the listener. `environment` is null or a block of variables, `tool` is null or text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_register_attach(
    environment: *const c_char,
    tool: *const c_char,
) -> c_int {
    answer(|| {
        if tool.is_null() {
            return Code::InvalidArgument;
        }
        // SAFETY: not null, and as the caller promises.
        unsafe { attachment::attach(environment.cast(), CStr::from_ptr(tool)) }
    })
}

/// Has the tool write what it has and record no more. It stays in the process.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_register_detach() -> c_int {
    answer(attachment::detach)
}
