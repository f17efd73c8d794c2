//! Search for the entry points of tools.

use core::{
    ffi::{CStr, c_int, c_void},
    ptr,
};
use std::ffi::CString;

use rocprofiler_sdk_sys::rocprofiler_configure_func_t;

/// A tool's entry point.
pub(crate) type Entry = <rocprofiler_configure_func_t as IntoIterator>::Item;

const NAME: &CStr = c"rocprofiler_configure";

fn entry(address: *mut c_void) -> Option<Entry> {
    // SAFETY: null becomes `None`; anything else is a symbol of that name, which the ABI gives this type.
    unsafe { core::mem::transmute::<*mut c_void, Option<Entry>>(address) }
}

fn lookup(handle: *mut c_void) -> Option<Entry> {
    // SAFETY: the handle is open or one of the special ones.
    entry(unsafe { libc::dlsym(handle, NAME.as_ptr()) })
}

/// The entry point that a global lookup finds first.
pub(crate) fn global() -> Option<Entry> {
    lookup(libc::RTLD_DEFAULT)
}

/// Ends the target with a message, as the SDK does when it cannot load a tool named in the environment.
fn fatal(text: &str) -> ! {
    eprintln!("rpd-sim: {text}");
    std::process::abort()
}

fn last_error() -> String {
    // SAFETY: the call has no preconditions.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "unknown error".to_owned();
    }
    // SAFETY: not null, so it is text.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}

/// The libraries of a list separated by colons. With a colon, the text behind the last one is ignored.
fn listed(list: &str) -> Vec<&str> {
    match list.rsplit_once(':') {
        Some((before, _)) => before.split(':').filter(|p| !p.is_empty()).collect(),
        None if list.is_empty() => Vec::new(),
        None => vec![list],
    }
}

fn open(path: &str) -> Entry {
    let Ok(name) = CString::new(path) else {
        fatal(&format!("ROCP_TOOL_LIBRARIES: bad path `{path}`"));
    };
    let try_open = |flags: c_int| {
        // SAFETY: the name is text; opening runs the library's constructors, which is intended.
        unsafe { libc::dlopen(name.as_ptr(), flags | libc::RTLD_LAZY) }
    };
    let mut handle = try_open(libc::RTLD_NOLOAD);
    if handle.is_null() {
        handle = try_open(libc::RTLD_LOCAL);
    }
    if handle.is_null() {
        fatal(&format!(
            "ROCP_TOOL_LIBRARIES: cannot open `{path}`: {}",
            last_error()
        ));
    }
    lookup(handle).unwrap_or_else(|| {
        fatal(&format!(
            "ROCP_TOOL_LIBRARIES: `{path}` has no rocprofiler_configure"
        ))
    })
}

/// Entry points of all loaded objects.
fn loaded() -> Vec<Entry> {
    unsafe extern "C" fn visit(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        data: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader passes a valid record, and `data` is the vector below.
        let (name, names) = unsafe { ((*info).dlpi_name, &mut *data.cast::<Vec<CString>>()) };
        if !name.is_null() {
            // SAFETY: not null, so it is text.
            names.push(unsafe { CStr::from_ptr(name) }.to_owned());
        }
        0
    }
    let mut names: Vec<CString> = Vec::new();
    // SAFETY: the callback fits, and the vector outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), ptr::from_mut(&mut names).cast()) };
    names
        .iter()
        .filter_map(|name| {
            let path = if name.is_empty() {
                ptr::null()
            } else {
                name.as_ptr()
            };
            // SAFETY: null stands for the program itself; the others are loaded.
            let handle = unsafe { libc::dlopen(path, libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
            (!handle.is_null()).then(|| lookup(handle)).flatten()
        })
        .collect()
}

/// All entry points in order of priority, each once; a forced one is the first.
pub(crate) fn entries(forced: Option<Entry>) -> Vec<Entry> {
    let mut found: Vec<Entry> = forced.into_iter().collect();
    if let Ok(list) = std::env::var("ROCP_TOOL_LIBRARIES") {
        found.extend(listed(&list).into_iter().map(open));
    }
    if let Some(first) = global() {
        found.push(first);
        found.extend(lookup(libc::RTLD_NEXT));
        found.extend(loaded());
    }
    let mut unique: Vec<Entry> = Vec::new();
    for entry in found {
        if !unique.iter().any(|e| core::ptr::fn_addr_eq(*e, entry)) {
            unique.push(entry);
        }
    }
    unique
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_after_the_last_colon_of_a_tool_list_is_ignored() {
        assert_eq!(listed("/a/b.so"), ["/a/b.so"]);
        assert_eq!(listed("/a.so:/b.so"), ["/a.so"]);
        assert_eq!(listed("/a.so:/b.so:"), ["/a.so", "/b.so"]);
        assert!(listed("").is_empty());
    }
}
