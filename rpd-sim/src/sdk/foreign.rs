//! Another SDK in front of the simulated runtimes.
//!
//! Real runtimes hand their tables to a registration library, which looks for `rocprofiler_set_api_table` among
//! what is loaded and otherwise opens the library that `ROCPROFILER_REGISTER_LIBRARY` names. This does the same.
//! Where the search ends in this library, the provider inside it serves the tables; where it ends elsewhere, the
//! tables go there and the provider inside stays passive.

use core::{
    ffi::{CStr, c_char, c_int, c_void},
    mem::MaybeUninit,
    ptr,
};
use std::{ffi::CString, sync::OnceLock};

/// Type of `rocprofiler_set_api_table`, by which another SDK takes dispatch tables.
pub(crate) type SetApiTable =
    unsafe extern "C" fn(*const c_char, u64, u64, *mut *mut c_void, u64) -> c_int;

const NAME: &CStr = c"rocprofiler_set_api_table";
/// Library that is opened when the environment names none.
const DEFAULT: &CStr = c"librocprofiler-sdk.so";

/// Entry point of the provider outside of this library that gets the tables; `None` when this library is the provider.
pub(crate) fn provider() -> Option<SetApiTable> {
    static PROVIDER: OnceLock<Option<SetApiTable>> = OnceLock::new();
    *PROVIDER.get_or_init(find)
}

fn find() -> Option<SetApiTable> {
    // A library that is loaded under the requested name, or in the global scope, needs no opening.
    let named = std::env::var_os("ROCPROFILER_REGISTER_LIBRARY");
    // SAFETY: the name is text.
    let global = unsafe { libc::dlsym(libc::RTLD_DEFAULT, NAME.as_ptr()) };
    if !global.is_null() && !is_own(global) {
        return function(global);
    }
    let path = match &named {
        Some(path) => CString::new(path.as_encoded_bytes()).ok()?,
        None => DEFAULT.to_owned(),
    };
    // SAFETY: the path is text. Opening runs constructors, which is what the registration library does as well.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_GLOBAL) };
    if handle.is_null() {
        if named.is_some() {
            eprintln!(
                "rpd-sim: ROCPROFILER_REGISTER_LIBRARY: cannot open `{}`",
                path.to_string_lossy()
            );
        }
        return None;
    }
    // SAFETY: the handle is open and stays so; the name is text.
    let found = unsafe { libc::dlsym(handle, NAME.as_ptr()) };
    if found.is_null() {
        // The registration library ends the target here.
        eprintln!(
            "rpd-sim: `{}` has no rocprofiler_set_api_table",
            path.to_string_lossy()
        );
        std::process::abort();
    }
    if is_own(found) { None } else { function(found) }
}

fn function(address: *mut c_void) -> Option<SetApiTable> {
    // SAFETY: null becomes `None`; anything else is a symbol of that name, which the ABI gives this type.
    unsafe { core::mem::transmute::<*mut c_void, Option<SetApiTable>>(address) }
}

/// Whether code lies in this library. Exported symbols cannot be compared directly: a library in front of this one also
/// takes over the references from inside it.
fn is_own(code: *const c_void) -> bool {
    let base = |code: *const c_void| {
        let mut info = MaybeUninit::<libc::Dl_info>::uninit();
        // SAFETY: any address may be requested; the record is written when the answer is not zero.
        unsafe {
            (libc::dladdr(code, info.as_mut_ptr()) != 0).then(|| info.assume_init().dli_fbase)
        }
    };
    base(code) == base(find as *const c_void)
}

/// Hands the tables of a runtime over, once per runtime.
pub(crate) fn hand_over(
    set: SetApiTable,
    name: &str,
    version: u64,
    instance: u64,
    tables: &mut [*mut c_void],
) {
    let name = CString::new(name).unwrap_or_default();
    // SAFETY: the tables have the shape of that name and live as long as the process.
    let answer = unsafe {
        set(
            name.as_ptr(),
            version,
            instance,
            ptr::from_mut(tables).cast(),
            tables.len() as u64,
        )
    };
    if answer != 0 {
        eprintln!(
            "rpd-sim: the SDK did not take the tables of {}: {answer}",
            name.to_string_lossy()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_own_distinguishes_code_by_its_library() {
        assert!(is_own(provider as *const c_void));
        assert!(!is_own(libc::getpid as *const c_void));
    }
}
