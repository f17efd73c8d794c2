//! The provider: its library, its functions, and its descriptions of errors.

use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use rocprofiler_sdk_sys::{Functions, MissingSymbol, rocprofiler_status_t};

use crate::recording::text;

static FUNCTIONS: OnceLock<Functions> = OnceLock::new();
/// The provider's library, or null: the program itself is the provider, whose functions are in the global scope.
static LIBRARY: AtomicPtr<c_void> = AtomicPtr::new(libc::RTLD_DEFAULT);

/// The provider's functions, once a provider has initialised the collector.
pub(super) fn functions() -> Option<&'static Functions> {
    FUNCTIONS.get()
}

/// Looks the provider's functions up in the library that the function at `code` lies in: another SDK may be in the process,
/// or this one may not be in the global scope.
///
/// # Errors
/// A function that every provider must have is missing.
///
/// # Safety
///
/// `code` is null or a function of a provider, which stays loaded until the process ends.
pub(super) unsafe fn load(code: *const c_void) -> Result<&'static Functions, MissingSymbol> {
    LIBRARY.store(library_of(code), Ordering::Release);
    // SAFETY: what is found under these names in a provider's library are the provider's functions.
    let functions = unsafe { Functions::load(look_up) }?;
    Ok(FUNCTIONS.get_or_init(|| functions))
}

/// The loaded library that `code` lies in; null when it is the program, which the loader knows by no name.
fn library_of(code: *const c_void) -> *mut c_void {
    let mut info = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: any address may be requested; the record is written when the answer is not zero, and its name is that of a
    // loaded object.
    unsafe {
        if libc::dladdr(code, info.as_mut_ptr()) == 0 {
            return std::ptr::null_mut();
        }
        libc::dlopen(
            info.assume_init().dli_fname,
            libc::RTLD_NOLOAD | libc::RTLD_LAZY,
        )
    }
}

/// Looks a function of the provider up in its library.
fn look_up(name: &CStr) -> *mut c_void {
    // SAFETY: the handle is open or `RTLD_DEFAULT`, and the name is text.
    unsafe { libc::dlsym(LIBRARY.load(Ordering::Acquire), name.as_ptr()) }
}

/// A status as text for the user.
pub(super) fn describe(functions: &Functions, status: rocprofiler_status_t) -> String {
    // SAFETY: any status may be requested; the result is static text or null.
    let text = unsafe { text::text((functions.rocprofiler_get_status_string)(status)) };
    match text {
        [] => format!("status {}", status.0),
        text => String::from_utf8_lossy(text).into_owned(),
    }
}
