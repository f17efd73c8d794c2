//! Whether the process has an SDK of its own among the libraries that it has loaded.

use std::ffi::{CStr, CString, c_int, c_void};

use crate::sdk::{FILE_NAME, file_name};

/// Facts about the loaded objects.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    /// An SDK, by the name under which it was loaded. The simulator, which a program loads as its HIP runtime, is none.
    pub(crate) sdk: Option<CString>,
    /// Whether an object was linked against an SDK.
    pub(crate) linked: bool,
}

impl Objects {
    /// Reads the loader's list of the objects in this process.
    pub(crate) fn read() -> Objects {
        let mut found = Objects::default();
        // SAFETY: the callback fits, and the record outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut found).cast()) };
        found
    }

    /// Whether the program uses an SDK itself.
    pub(crate) fn use_sdk(&self) -> bool {
        self.linked || self.sdk.is_some()
    }
}

fn is_sdk(name: &CStr) -> bool {
    file_name(name.to_bytes()).starts_with(FILE_NAME)
}

unsafe extern "C" fn visit(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    data: *mut c_void,
) -> c_int {
    // SAFETY: the loader passes a valid record, and `data` is what `look` passed.
    let (info, found) = unsafe { (&*info, &mut *data.cast::<Objects>()) };
    if !info.dlpi_name.is_null() {
        // SAFETY: not null, so it is text.
        let name = unsafe { CStr::from_ptr(info.dlpi_name) };
        if is_sdk(name) {
            found.sdk = Some(name.to_owned());
        }
    }
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the object has this many program headers there.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    for header in headers {
        if header.p_type == libc::PT_DYNAMIC {
            let section = info.dlpi_addr.wrapping_add(header.p_vaddr);
            // SAFETY: the loader has mapped the object's dynamic section there.
            found.linked |= unsafe { needs_sdk(section as *const Entry, info.dlpi_addr) };
        }
    }
    0
}

/// An entry of a dynamic section (`Elf64_Dyn`).
#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    tag: i64,
    value: u64,
}

const END: i64 = 0;
const NEEDED: i64 = 1;
const STRING_TABLE: i64 = 5;

/// Whether the object at `base` names an SDK among the libraries that it needs.
///
/// # Safety
///
/// `section` is the dynamic section of a loaded object.
unsafe fn needs_sdk(section: *const Entry, base: u64) -> bool {
    let entries = |wanted: i64| {
        (0..)
            // SAFETY: the section ends with an entry DT_NULL, and nothing after that one is read.
            .map(move |index| unsafe { *section.add(index) })
            .take_while(|entry| entry.tag != END)
            .filter(move |entry| entry.tag == wanted)
    };
    let Some(table) = entries(STRING_TABLE).next() else {
        return false;
    };
    // The C library adds the base to addresses in the section, except where the section cannot be written.
    let table = if table.value < base {
        base + table.value
    } else {
        table.value
    };
    entries(NEEDED).any(|needed| {
        // SAFETY: the value is the place of a text in the object's string table.
        is_sdk(unsafe { CStr::from_ptr((table + needed.value) as *const _) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_of_a_program_without_gpu_use_no_sdk() {
        let found = Objects::read();
        assert!(!found.use_sdk(), "{found:?}");
    }

    #[test]
    fn sdk_is_recognised_by_its_file_name() {
        for (name, expected) in [
            (c"/opt/rocm/lib/librocprofiler-sdk.so.1", true),
            (c"librocprofiler-sdk.so", true),
            (c"/opt/rocm/lib/librocprofiler-sdk-roctx.so.1", false),
            (c"/rpd/librocprofiler-sdk.so.d/libamdhip64.so.7", false),
            (c"", false),
        ] {
            assert_eq!(is_sdk(name), expected, "{name:?}");
        }
    }
}
