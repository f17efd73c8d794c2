//! The registration library, where the program is prepared for attaching: it remembers the tables of the runtimes.

use core::{
    ffi::{CStr, c_char, c_int, c_void},
    mem::MaybeUninit,
    ptr,
};
use std::{ffi::CString, sync::OnceLock};

use super::variables::truth;

/// Type of `rocprofiler_register_library_api_table`: name, function that returns the version, version, tables, their number,
/// place for an id.
type Register = unsafe extern "C" fn(
    *const c_char,
    Option<unsafe extern "C" fn() -> u32>,
    u32,
    *mut *mut c_void,
    u64,
    *mut u64,
) -> c_int;

/// Name under which real runtimes need it.
const LIBRARY: &CStr = c"librocprofiler-register.so.0";
const FUNCTION: &CStr = c"rocprofiler_register_library_api_table";
/// Code for tables that are remembered, since no tool is there.
const NO_TOOLS: c_int = 1;

/// Registers the tables of a runtime for which there is no tool yet.
pub(crate) fn remember(name: &str, version: u64, tables: &mut [*mut c_void]) {
    if truth("ROCP_TOOL_ATTACH") != Some(true) {
        return;
    }
    static FUNCTION: OnceLock<Option<Register>> = OnceLock::new();
    let (Some(register), Ok(text)) = (*FUNCTION.get_or_init(open), CString::new(name)) else {
        return;
    };
    let mut id = 0;
    // SAFETY: the tables have the shape of that name and live as long as the process.
    let code = unsafe {
        register(
            // Kept for good: ROCm's library remembers the pointer.
            text.into_raw(),
            None,
            version as u32,
            tables.as_mut_ptr(),
            tables.len() as u64,
            &raw mut id,
        )
    };
    if code != 0 && code != NO_TOOLS {
        eprintln!(
            "rpd-sim: ROCP_TOOL_ATTACH: the tables of {name} were not registered: code {code}"
        );
    }
}

fn open() -> Option<Register> {
    let beside = directory().and_then(|directory| {
        let path = [directory.as_bytes(), b"/", LIBRARY.to_bytes()].concat();
        CString::new(path).ok()
    });
    let names = [Some(LIBRARY.to_owned()), beside];
    let library = names.into_iter().flatten().find_map(|name| {
        // SAFETY: the name is text. The library only starts a thread.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) };
        (!library.is_null()).then_some(library)
    });
    let address = library.map_or(ptr::null_mut(), |library| {
        // SAFETY: the library is open, and the name is text.
        unsafe { libc::dlsym(library, FUNCTION.as_ptr()) }
    });
    if address.is_null() {
        eprintln!(
            "rpd-sim: ROCP_TOOL_ATTACH: no tool can be attached: {} was not found",
            LIBRARY.to_string_lossy()
        );
    }
    // SAFETY: null becomes `None`; otherwise a symbol of this name has this type.
    unsafe { core::mem::transmute::<*mut c_void, Option<Register>>(address) }
}

/// Directory of this library, under the name by which it was loaded.
fn directory() -> Option<String> {
    let mut info = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: any address may be requested; the record is written when the answer is not zero.
    let name = unsafe {
        if libc::dladdr(directory as *const c_void, info.as_mut_ptr()) == 0 {
            return None;
        }
        CStr::from_ptr(info.assume_init().dli_fname)
    };
    let (directory, _) = name.to_str().ok()?.rsplit_once('/')?;
    Some(directory.to_owned())
}
