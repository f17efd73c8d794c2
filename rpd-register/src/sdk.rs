//! The SDK: its library, and the functions in it.

use std::ffi::{CStr, CString, c_int, c_void};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use rocprofiler_sdk_sys::{
    rocprofiler_configure_func_t, rocprofiler_set_api_table_fn, rocprofiler_status_t,
};

/// Environment variable with the SDK to open: the one that rpd found, or what the user named in
/// `ROCPROFILER_REGISTER_LIBRARY`.
const VARIABLE: &str = "RPD_SDK";

/// Prefix of the file names of the SDK.
pub(crate) const FILE_NAME: &[u8] = b"librocprofiler-sdk.so";

/// The library that the registration library opens by default.
const DEFAULT: &CStr = c"librocprofiler-sdk.so";

/// Type of the function `rocprofiler_force_configure`.
pub(crate) type ForceConfigure =
    unsafe extern "C" fn(rocprofiler_configure_func_t) -> rocprofiler_status_t;

/// An open SDK; never closed.
pub(crate) struct Sdk {
    handle: *mut c_void,
    /// Function `rocprofiler_set_api_table` of the SDK.
    pub(crate) set_api_table: rocprofiler_set_api_table_fn,
}

/// Environment variable that makes a process wait until rpd attaches to it.
const IDLE: &str = "RPD_IDLE";

/// Whether rpd requested a recording of this process, now or later.
pub(crate) fn is_named() -> bool {
    std::env::var_os(VARIABLE).is_some() || waits()
}

/// Whether the process waits until rpd attaches to it, and is not recorded by now.
pub(crate) fn waits() -> bool {
    std::env::var_os("RPD_SPOOL").is_none() && std::env::var_os(IDLE).is_some()
}

/// The last part of a path.
pub(crate) fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// The loader's message about its last failure.
fn loader_error() -> String {
    // SAFETY: the call has no preconditions.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "unknown error".to_owned();
    }
    // SAFETY: not null, so it is text, which stays until this thread's next call.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}

impl Sdk {
    /// Opens the library that `RPD_SDK` names, or the default. `loaded` is an SDK that the process has already: a
    /// second one is not brought in. The error is text for the user.
    pub(crate) fn open(loaded: Option<&CStr>) -> Result<Sdk, String> {
        let named = std::env::var_os(VARIABLE)
            .and_then(|path| CString::new(path.into_vec()).ok())
            .filter(|path| !path.is_empty())
            .unwrap_or_else(|| DEFAULT.to_owned());
        let is_sdk = file_name(named.as_bytes()).starts_with(FILE_NAME);
        let (path, mode) = match loaded {
            Some(loaded) if is_sdk => (loaded, libc::RTLD_NOLOAD),
            // As the registration library opens it: tools may look for its functions in the global scope.
            _ => (named.as_c_str(), libc::RTLD_GLOBAL),
        };
        let shown = String::from_utf8_lossy(path.to_bytes());
        // SAFETY: the path is text. Opening runs the library's constructors, as for any use of it.
        let handle = unsafe { libc::dlopen(path.as_ptr(), mode | libc::RTLD_LAZY) };
        if handle.is_null() {
            return Err(format!("the SDK cannot be opened: {}", loader_error()));
        }
        let entry = symbol(handle, c"rocprofiler_set_api_table");
        if entry.is_null() || object_of(entry) == object_of(loader_error as *const c_void) {
            return Err(format!("{shown} is no SDK: it takes no tables of runtimes"));
        }
        // SAFETY: not null, and a symbol of this name has this type.
        let set_api_table =
            unsafe { std::mem::transmute::<*mut c_void, rocprofiler_set_api_table_fn>(entry) };
        Ok(Sdk {
            handle,
            set_api_table,
        })
    }

    /// The address of a function of the SDK; null when the SDK lacks it.
    pub(crate) fn function(&self, name: &CStr) -> *mut c_void {
        symbol(self.handle, name)
    }

    /// Whether the SDK has looked for its tools, or does so now.
    pub(crate) fn is_initialized(&self) -> bool {
        type Query = unsafe extern "C" fn(*mut c_int) -> rocprofiler_status_t;
        let address = self.function(c"rocprofiler_is_initialized");
        // SAFETY: null becomes `None`, and a symbol of this name has this type.
        let query = unsafe { std::mem::transmute::<*mut c_void, Option<Query>>(address) };
        let mut status = 0;
        if let Some(query) = query {
            // SAFETY: the pointer is valid for the call.
            unsafe { query(&mut status) };
        }
        status != 0
    }

    /// Function `rocprofiler_force_configure` of the SDK; absent before SDK 0.2.
    pub(crate) fn force_configure(&self) -> Option<ForceConfigure> {
        let address = self.function(c"rocprofiler_force_configure");
        // SAFETY: null becomes `None`, and a symbol of this name has this type.
        unsafe { std::mem::transmute::<*mut c_void, Option<ForceConfigure>>(address) }
    }
}

/// The address of `name` in an open library, or in the global scope when `handle` is null; null when there is none.
pub(crate) fn symbol(handle: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: the handle is open or `RTLD_DEFAULT`, and the name is text.
    unsafe { libc::dlsym(handle, name.as_ptr()) }
}

/// Load address of the object with this address; null when it is in none. The address of an exported function of this
/// library does not tell: where the library was not preloaded, its name may stand for the function of another one.
fn object_of(address: *const c_void) -> *mut c_void {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: any address may be requested; zeros are a valid record.
    unsafe {
        libc::dladdr(address, info.as_mut_ptr());
        info.assume_init().dli_fbase
    }
}

/// An environment variable's value as bytes; empty when it is not set.
pub(crate) fn variable(name: &str) -> Vec<u8> {
    std::env::var_os(name).map_or_else(Vec::new, |value| value.as_bytes().to_vec())
}
