//! Code object readers: the source of the bytes of a code object, and the URI that names it.

use core::ffi::c_void;
use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::state::{lock, state};
use super::support::{Outcome, api, ensure, put};
use super::types::{Status, status};
use crate::gpu::observe::CodeObjectStorage;

/// The bytes of a code object, read once.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(super) bytes: Arc<Vec<u8>>,
    pub(super) storage: CodeObjectStorage,
    /// Address of the program's memory; zero for files.
    pub(super) memory_base: u64,
    /// Descriptor of the program's file; -1 for memory.
    pub(super) file: i32,
    pub(super) uri: String,
}

fn publish(reader: Reader, result: *mut u64) -> Outcome {
    let handle = state().handle();
    lock(&state().readers).insert(handle, Arc::new(reader));
    // SAFETY: the callers checked that the program's pointer is not null.
    unsafe { put(result, handle) }
}

/// The reader of a handle; `ERROR_INVALID_CODE_OBJECT_READER` when there is none.
pub(super) fn reader(handle: u64) -> Result<Arc<Reader>, Status> {
    let readers = lock(&state().readers);
    let reader = readers.get(&handle).cloned();
    reader.ok_or(status::ERROR_INVALID_CODE_OBJECT_READER)
}

/// Reads a code object from the program's memory.
pub(crate) unsafe extern "C" fn hsa_code_object_reader_create_from_memory(
    code_object: *const c_void,
    size: usize,
    code_object_reader: *mut u64,
) -> Status {
    api(|| {
        let valid = !code_object.is_null() && size != 0 && !code_object_reader.is_null();
        ensure(valid, status::ERROR_INVALID_ARGUMENT)?;
        // SAFETY: the program vouches for its memory.
        let bytes = unsafe { std::slice::from_raw_parts(code_object.cast::<u8>(), size) };
        let base = code_object as u64;
        let reader = Reader {
            bytes: Arc::new(bytes.to_vec()),
            storage: CodeObjectStorage::Memory,
            memory_base: base,
            file: -1,
            uri: memory_uri(base, size as u64),
        };
        publish(reader, code_object_reader)
    })
}

/// Reads a code object from an open file, whose descriptor the program keeps.
pub(crate) unsafe extern "C" fn hsa_code_object_reader_create_from_file(
    file: i32,
    code_object_reader: *mut u64,
) -> Status {
    api(|| from_file(file, 0, None, code_object_reader))
}

/// Reads a code object from a part of a file.
pub(super) fn from_file(file: i32, offset: u64, size: Option<u64>, result: *mut u64) -> Outcome {
    ensure(!result.is_null(), status::ERROR_INVALID_ARGUMENT)?;
    ensure(file >= 0, status::ERROR_INVALID_FILE)?;
    // SAFETY: the descriptor is the program's; wrapped so that it is not closed here.
    let open = ManuallyDrop::new(unsafe { File::from_raw_fd(file) });
    let length = open
        .metadata()
        .map_err(|_| status::ERROR_INVALID_FILE)?
        .len();
    let size = size.unwrap_or(length.saturating_sub(offset));
    let inside = offset.checked_add(size).is_some_and(|end| end <= length);
    ensure(size != 0 && inside, status::ERROR_INVALID_ARGUMENT)?;
    let mut bytes = vec![0; size as usize];
    open.read_exact_at(&mut bytes, offset)
        .map_err(|_| status::ERROR_INVALID_FILE)?;
    let path = std::fs::read_link(format!("/proc/self/fd/{file}"));
    let path = path.map_err(|_| status::ERROR_INVALID_FILE)?;
    let mut uri = file_uri(path.as_os_str().as_encoded_bytes());
    if offset != 0 || size != length {
        uri += &format!("#offset={offset}&size={size}");
    }
    let reader = Reader {
        bytes: Arc::new(bytes),
        storage: CodeObjectStorage::File,
        memory_base: 0,
        file,
        uri,
    };
    publish(reader, result)
}

/// Destroys a reader; code objects that were loaded through it stay.
pub(crate) unsafe extern "C" fn hsa_code_object_reader_destroy(code_object_reader: u64) -> Status {
    api(|| {
        let found = lock(&state().readers).remove(&code_object_reader);
        ensure(found.is_some(), status::ERROR_INVALID_CODE_OBJECT_READER)
    })
}

/// The URI of a file: `file://` and the path, percent-encoded.
fn file_uri(path: &[u8]) -> String {
    let mut uri = String::from("file://");
    for &byte in path {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                uri.push(byte.into());
            }
            _ => uri += &format!("%{byte:02X}"),
        }
    }
    uri
}

/// The URI of code in memory; if the memory is mapped from a file, that of the file.
fn memory_uri(base: u64, size: u64) -> String {
    if let Some((path, offset)) = mapped_file(base) {
        return format!("{}#offset={offset}&size={size}", file_uri(path.as_bytes()));
    }
    format!(
        "memory://{}#offset={base:#x}&size={size}",
        std::process::id()
    )
}

/// The file that an address is mapped from, and the address's offset in the file.
fn mapped_file(address: u64) -> Option<(String, u64)> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let start = u64::from_str_radix(start, 16).ok()?;
        let end = u64::from_str_radix(end, 16).ok()?;
        let path = &rest[rest.find('/')?..];
        let mapped = rest.split_whitespace().nth(1)?;
        let mapped = u64::from_str_radix(mapped, 16).ok()?;
        let usable = (start..end).contains(&address) && !path.ends_with(" (deleted)");
        usable.then(|| (path.to_owned(), mapped + (address - start)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    static DATA: [u8; 4] = [1, 2, 3, 4];

    #[test]
    fn code_object_uris_name_files_and_memory() {
        assert_eq!(file_uri(b"/a b/c"), "file:///a%20b/c");
        let heap = Box::new([0u8; 64]);
        let uri = memory_uri(heap.as_ptr() as u64, 64);
        assert!(
            uri.starts_with("memory://") && uri.ends_with("&size=64"),
            "{uri}"
        );
        let uri = memory_uri(DATA.as_ptr() as u64, 4);
        assert!(
            uri.starts_with("file:///") && uri.contains("#offset="),
            "{uri}"
        );
    }
}
