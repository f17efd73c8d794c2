//! The collector's library, which is in the directory of this one, and its place in `ROCP_TOOL_LIBRARIES`.

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::OnceLock;

use rocprofiler_sdk_sys::{rocprofiler_configure_func_t, rocprofiler_set_api_table_fn};

use crate::sdk::{symbol, variable};

const FILE_NAME: &[u8] = b"librpd_collect.so";
const TOOLS: &str = "ROCP_TOOL_LIBRARIES";

/// The open collector; never closed.
pub(crate) struct Collector {
    handle: *mut c_void,
    /// Function `rocprofiler_configure` of the collector.
    pub(crate) configure: rocprofiler_configure_func_t,
    end: Option<unsafe extern "C" fn()>,
    note: Option<unsafe extern "C" fn(*const c_char)>,
    ran_without: Option<RanWithout>,
    takes: Option<Takes>,
    flush: Option<unsafe extern "C" fn()>,
    set_api_table: Option<rocprofiler_set_api_table_fn>,
}

/// Type of `rpd_collect_takes`: name, version, tables, their number, whether the process may have another tool.
type Takes = unsafe extern "C" fn(*const c_char, u64, *mut *mut c_void, u64, c_int) -> c_int;

/// Type of `rpd_collect_ran_without`: program, why, whether this process becomes it.
type RanWithout = unsafe extern "C" fn(*const c_char, *const c_char, c_int);

// SAFETY: the handle is only used with the loader, which is thread-safe.
unsafe impl Send for Collector {}
// SAFETY: as above.
unsafe impl Sync for Collector {}

static COLLECTOR: OnceLock<Option<Collector>> = OnceLock::new();

/// Path of this library, as the loader was given it.
pub(crate) fn own_path() -> Option<&'static [u8]> {
    let mut info = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: any address may be requested; the record is written when the answer is not zero. The name of a library that
    // stays loaded does not change.
    unsafe {
        if libc::dladdr(own_path as *const c_void, info.as_mut_ptr()) == 0 {
            return None;
        }
        Some(CStr::from_ptr(info.assume_init().dli_fname).to_bytes())
    }
}

/// Path of the collector: in the directory of this library.
fn path() -> Option<CString> {
    let own = own_path()?;
    let directory = own.len() - crate::sdk::file_name(own).len();
    CString::new([&own[..directory], FILE_NAME].concat()).ok()
}

/// Opens the collector on the first call. Local scope keeps its `rocprofiler_configure` out of sight of the SDK.
pub(crate) fn open() -> Option<&'static Collector> {
    let open = || {
        let path = path()?;
        // SAFETY: the path is text; the library's constructor only begins the recording of this process.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return None;
        }
        // SAFETY: null becomes `None`; the others are the collector's functions for this library, and the first has
        // the type that the SDK's ABI gives it.
        unsafe {
            Some(Collector {
                handle,
                configure: std::mem::transmute::<*mut c_void, rocprofiler_configure_func_t>(
                    symbol(handle, c"rocprofiler_configure"),
                ),
                end: std::mem::transmute::<*mut c_void, Option<unsafe extern "C" fn()>>(symbol(
                    handle,
                    c"rpd_collect_end",
                )),
                note: std::mem::transmute::<*mut c_void, Option<unsafe extern "C" fn(*const c_char)>>(
                    symbol(handle, c"rpd_collect_note"),
                ),
                ran_without: std::mem::transmute::<*mut c_void, Option<RanWithout>>(symbol(
                    handle,
                    c"rpd_collect_ran_without",
                )),
                takes: std::mem::transmute::<*mut c_void, Option<Takes>>(symbol(
                    handle,
                    c"rpd_collect_takes",
                )),
                flush: std::mem::transmute::<*mut c_void, Option<unsafe extern "C" fn()>>(symbol(
                    handle,
                    c"rpd_collect_flush",
                )),
                set_api_table: std::mem::transmute::<
                    *mut c_void,
                    Option<rocprofiler_set_api_table_fn>,
                >(symbol(handle, c"rpd_collect_set_api_table")),
            })
        }
    };
    COLLECTOR.get_or_init(open).as_ref()
}

/// The collector if it has been opened.
pub(crate) fn opened() -> Option<&'static Collector> {
    COLLECTOR.get()?.as_ref()
}

impl Collector {
    /// The definition of a name in the collector, or in the C library after it; null when there is none.
    pub(crate) fn function(&self, name: &CStr) -> *mut c_void {
        symbol(self.handle, name)
    }

    /// Ends the recording: the target's `main` has returned.
    pub(crate) fn end(&self) {
        if let Some(end) = self.end {
            // SAFETY: the collector's function for this purpose; it may be called at any time.
            unsafe { end() };
        }
    }

    /// Makes the collector record work that is complete: the process is about to end without exit handlers.
    pub(crate) fn flush(&self) {
        if let Some(flush) = self.flush {
            // SAFETY: the collector's function for this purpose; it may be called at any time.
            unsafe { flush() };
        }
    }

    /// Notes a program that runs without rpd. `own`: this process becomes it.
    pub(crate) fn ran_without(&self, program: &CStr, why: &CStr, own: bool) {
        if let Some(ran_without) = self.ran_without {
            // SAFETY: the collector's function for this purpose; both are text.
            unsafe { ran_without(program.as_ptr(), why.as_ptr(), own.into()) };
        }
    }

    /// The function that takes tables in the place of an SDK's, if the collector takes those of this process, of which the
    /// given ones are the first. `other_tool`: a tool of the process may need an SDK.
    ///
    /// # Safety
    ///
    /// As for [`crate::rocprofiler_set_api_table`].
    pub(crate) unsafe fn takes(
        &self,
        name: *const c_char,
        version: u64,
        tables: *mut *mut c_void,
        count: u64,
        other_tool: bool,
    ) -> Option<rocprofiler_set_api_table_fn> {
        let (takes, set_api_table) = (self.takes?, self.set_api_table?);
        // SAFETY: the caller's arguments, for the collector's function for this purpose.
        let taken = unsafe { takes(name, version, tables, count, other_tool.into()) };
        (taken != 0).then_some(set_api_table)
    }

    /// Notes why nothing is recorded, for the end of the run; left out when an SDK has configured the collector
    /// all the same.
    pub(crate) fn note(&self, text: &str) {
        if let (Some(note), Ok(text)) = (self.note, CString::new(text)) {
            // SAFETY: the collector's function for this purpose; the text lives through the call.
            unsafe { note(text.as_ptr()) };
        }
    }
}

/// Whether the environment names tools for the SDK to open.
pub(crate) fn tools_are_listed() -> bool {
    !variable(TOOLS).is_empty()
}

/// Names the collector in `ROCP_TOOL_LIBRARIES`, where an SDK that is about to look for tools finds it.
pub(crate) fn list() {
    let Some(path) = path() else { return };
    if let Some(list) = with_tool(&variable(TOOLS), path.to_bytes()) {
        // SAFETY: either the process has one thread, because it has not begun `main`, or a runtime is being initialised,
        // in which the SDK changes the environment, too.
        unsafe { std::env::set_var(TOOLS, OsStr::from_bytes(&list)) };
    }
}

/// The list with the tool at its end; `None` when it is there. SDK 1.0 ignores what follows the last colon.
fn with_tool(list: &[u8], tool: &[u8]) -> Option<Vec<u8>> {
    let named = || {
        list.split(|byte| *byte == b':')
            .filter(|name| !name.is_empty())
    };
    if named().any(|name| name == tool) {
        return None;
    }
    let mut with = Vec::new();
    for name in named().chain([tool]) {
        with.extend_from_slice(name);
        with.push(b':');
    }
    Some(with)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_tool_appends_the_tool_once() {
        let with = |list: &str| {
            with_tool(list.as_bytes(), b"/c.so")
                .map(|list| String::from_utf8_lossy(&list).into_owned())
        };
        assert_eq!(with("").as_deref(), Some("/c.so:"));
        assert_eq!(with("/a.so").as_deref(), Some("/a.so:/c.so:"));
        assert_eq!(with("/a.so::/b.so:").as_deref(), Some("/a.so:/b.so:/c.so:"));
        assert_eq!(with("/c.so:/b.so:"), None);
    }

    #[test]
    fn collector_path_is_in_the_directory_of_this_library() {
        let path = path().expect("this program has a path");
        assert!(path.to_bytes().ends_with(b"/librpd_collect.so"), "{path:?}");
    }
}
