//! The SDK: which library it is, and its functions.

use std::ffi::{CStr, CString, c_int, c_void};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;
use std::sync::OnceLock;

use rocprofiler_sdk_sys::rocprofiler_set_api_table_fn;

/// The function that makes a library an SDK.
const TAKES_TABLES: &CStr = c"rocprofiler_set_api_table";
/// File name that is opened when the environment names none.
const DEFAULT: &str = "librocprofiler-sdk.so";

/// The SDK of this process. Never closed.
#[derive(Debug)]
pub(crate) struct Sdk {
    /// The library, or the global scope.
    handle: *mut c_void,
    pub(crate) set_api_table: rocprofiler_set_api_table_fn,
}

// SAFETY: the handle is only used with the loader, which is thread-safe.
unsafe impl Send for Sdk {}
// SAFETY: as above.
unsafe impl Sync for Sdk {}

/// Value of a variable that is a truth value; `None` when it is unset or neither true nor false.
pub(crate) fn truth(name: &str) -> Option<bool> {
    match std::env::var(name).ok()?.to_ascii_lowercase().as_str() {
        "1" | "on" | "yes" | "true" | "y" | "t" => Some(true),
        "0" | "off" | "no" | "false" | "n" | "f" => Some(false),
        _ => None,
    }
}

/// Whether a tool is in the process, so that the SDK is needed.
pub(crate) fn tool_assumed() -> bool {
    let visible = symbol(libc::RTLD_DEFAULT, c"rocprofiler_configure");
    let named = ["ROCPROFILER_REGISTER_LIBRARY", "ROCP_TOOL_LIBRARIES"];
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !visible.is_null()
        || truth("ROCPROFILER_REGISTER_FORCE_LOAD").unwrap_or_else(|| named.iter().any(is_set))
}

/// The address of `name` in an open library or the global scope; null when there is none.
fn symbol(handle: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: the handle is open or stands for the global scope, and the name is text.
    unsafe { libc::dlsym(handle, name.as_ptr()) }
}

/// The SDK, which is opened at the first call that finds one.
pub(crate) fn find() -> Option<&'static Sdk> {
    static FOUND: OnceLock<Sdk> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return Some(found);
    }
    let made = in_scope().or_else(open)?;
    Some(FOUND.get_or_init(|| made))
}

/// An SDK that everything in the process sees.
fn in_scope() -> Option<Sdk> {
    of_handle(libc::RTLD_DEFAULT)
}

fn of_handle(handle: *mut c_void) -> Option<Sdk> {
    let address = symbol(handle, TAKES_TABLES);
    // SAFETY: null becomes `None`; otherwise a symbol of this name has this type.
    let set_api_table = unsafe {
        std::mem::transmute::<*mut c_void, Option<rocprofiler_set_api_table_fn>>(address)
    }?;
    Some(Sdk {
        handle,
        set_api_table,
    })
}

/// Opens the SDK that the environment names, or the default: one that is loaded, as it is named, beside this library, by its
/// file name.
fn open() -> Option<Sdk> {
    let named = std::env::var_os("ROCPROFILER_REGISTER_LIBRARY").filter(|it| !it.is_empty());
    let named = named.unwrap_or_else(|| DEFAULT.into());
    let named = Path::new(&named);
    let name = Path::new(named.file_name()?);
    let open = |path: &Path, mode: c_int| {
        let path = CString::new(path.as_os_str().as_bytes().to_vec()).ok()?;
        // SAFETY: the path is text; opening runs constructors, which is what an SDK is opened for.
        let handle = unsafe { libc::dlopen(path.as_ptr(), mode | libc::RTLD_LAZY) };
        (!handle.is_null()).then_some(handle)
    };
    let beside = own_path().map(|own| own.with_file_name(name));
    let handle = open(named, libc::RTLD_NOLOAD)
        .or_else(|| open(named, libc::RTLD_GLOBAL))
        .or_else(|| open(&beside?, libc::RTLD_GLOBAL))
        .or_else(|| open(name, libc::RTLD_GLOBAL));
    of_handle(handle?)
}

/// Path of this library.
fn own_path() -> Option<std::path::PathBuf> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: any address may be requested; the record is written when the answer is not zero, and names of libraries that
    // stay loaded do not change.
    let name = unsafe {
        if libc::dladdr(own_path as *const c_void, info.as_mut_ptr()) == 0 {
            return None;
        }
        CStr::from_ptr(info.assume_init().dli_fname)
    };
    Some(std::ffi::OsString::from_vec(name.to_bytes().to_vec()).into())
}

impl Sdk {
    /// Calls a function of the SDK that takes nothing and returns a status; `None` when the SDK lacks it.
    pub(crate) fn call(&self, name: &CStr) -> Option<c_int> {
        let address = symbol(self.handle, name);
        // SAFETY: null becomes `None`; the functions that this is used for have this type.
        let function = unsafe {
            std::mem::transmute::<*mut c_void, Option<unsafe extern "C" fn() -> c_int>>(address)
        };
        // SAFETY: it has no preconditions.
        function.map(|function| unsafe { function() })
    }
}
