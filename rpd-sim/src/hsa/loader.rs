//! The loader extension: queries about code objects by their addresses.

use core::ffi::c_void;
use std::sync::Arc;

use super::executable::{Executable, Loaded, executable, executables};
use super::reader;
use super::support::{Outcome, api, each, ensure, put};
use super::types::{HandleCallback, Status, status};
use crate::gpu::observe::CodeObjectStorage;

/// Size in bytes of the extension's table, by its minor version.
pub(super) const TABLE_BYTES: [usize; 4] = [3 * 8, 5 * 8, 6 * 8, 7 * 8];

/// The functions of the extension, in the order of its table.
pub(super) fn functions() -> [*const c_void; 7] {
    [
        query_host_address as *const c_void,
        query_segment_descriptors as *const c_void,
        query_executable as *const c_void,
        iterate_loaded_code_objects as *const c_void,
        loaded_code_object_get_info as *const c_void,
        reader_create_from_file_part as *const c_void,
        iterate_executables as *const c_void,
    ]
}

/// All loaded code objects with their executables.
fn all() -> Vec<(Arc<Executable>, Arc<Loaded>)> {
    let with = |executable: Arc<Executable>| {
        let objects = executable.objects();
        objects
            .into_iter()
            .map(move |object| (Arc::clone(&executable), object))
    };
    executables().into_iter().flat_map(with).collect()
}

fn at(address: u64) -> Option<(Arc<Executable>, Arc<Loaded>)> {
    all().into_iter().find(|(_, object)| {
        let start = object.info.load_base;
        (start..start + object.info.load_size).contains(&address)
    })
}

/// Writes the host address of a loaded byte: the device's address, because device memory is memory of the process.
unsafe extern "C" fn query_host_address(
    device_address: *const c_void,
    host_address: *mut *const c_void,
) -> Status {
    api(|| {
        let valid = !device_address.is_null() && !host_address.is_null();
        ensure(valid, status::ERROR_INVALID_ARGUMENT)?;
        at(device_address as u64).ok_or(status::ERROR_INVALID_ARGUMENT)?;
        // SAFETY: the program's pointer is writable.
        unsafe { put(host_address, device_address) }
    })
}

/// `hsa_ven_amd_loader_segment_descriptor_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct SegmentDescriptor {
    agent: u64,
    executable: u64,
    storage_type: u32,
    storage_base: u64,
    storage_size: usize,
    storage_offset: usize,
    segment_base: u64,
    segment_size: usize,
}

/// Segments of all loaded code objects.
unsafe extern "C" fn query_segment_descriptors(
    segment_descriptors: *mut c_void,
    num_segment_descriptors: *mut usize,
) -> Status {
    api(|| {
        ensure(
            !num_segment_descriptors.is_null(),
            status::ERROR_INVALID_ARGUMENT,
        )?;
        let all: Vec<_> = all()
            .iter()
            .map(|(executable, object)| SegmentDescriptor {
                agent: object.info.agent,
                executable: executable.handle,
                storage_type: storage_type(object),
                storage_base: object.info.memory_base,
                storage_size: object.reader.bytes.len(),
                storage_offset: 0,
                segment_base: object.info.load_base,
                segment_size: object.info.load_size as usize,
            })
            .collect();
        // SAFETY: the program's pointers are writable, the array for the number that it passes.
        unsafe {
            let room = *num_segment_descriptors;
            if segment_descriptors.is_null() {
                ensure(room == 0, status::ERROR_INVALID_ARGUMENT)?;
                return put(num_segment_descriptors, all.len());
            }
            ensure(room >= all.len(), status::ERROR_INVALID_ARGUMENT)?;
            segment_descriptors
                .cast::<SegmentDescriptor>()
                .copy_from(all.as_ptr(), all.len());
        }
        Ok(())
    })
}

/// Finds the executable whose code objects contain an address.
unsafe extern "C" fn query_executable(
    device_address: *const c_void,
    executable: *mut u64,
) -> Status {
    api(|| {
        let valid = !device_address.is_null() && !executable.is_null();
        ensure(valid, status::ERROR_INVALID_ARGUMENT)?;
        let (found, _) = at(device_address as u64).ok_or(status::ERROR_INVALID_ARGUMENT)?;
        // SAFETY: the program's pointer is writable.
        unsafe { put(executable, found.handle) }
    })
}

/// Callback for code objects; its parameters are executable, code object, data.
type ObjectCallback = Option<unsafe extern "C" fn(u64, u64, *mut c_void) -> Status>;

/// Calls back for every code object of an executable.
unsafe extern "C" fn iterate_loaded_code_objects(
    handle: u64,
    callback: ObjectCallback,
    data: *mut c_void,
) -> Status {
    api(|| {
        let executable = executable(handle)?;
        let callback = callback.ok_or(status::ERROR_INVALID_ARGUMENT)?;
        each(executable.objects(), |object| {
            // SAFETY: the program's callback takes its own data.
            unsafe { callback(handle, object.info.handle, data) }
        })
    })
}

fn storage_type(object: &Loaded) -> u32 {
    match object.info.storage {
        CodeObjectStorage::File => 1,
        CodeObjectStorage::Memory => 2,
    }
}

/// Writes the value of an `hsa_ven_amd_loader_loaded_code_object_info_t`.
unsafe extern "C" fn loaded_code_object_get_info(
    handle: u64,
    attribute: u32,
    value: *mut c_void,
) -> Status {
    api(|| {
        ensure(!value.is_null(), status::ERROR_INVALID_ARGUMENT)?;
        let all = all();
        let found = all.iter().find(|(_, object)| object.info.handle == handle);
        let (executable, object) = found.ok_or(status::ERROR_INVALID_CODE_OBJECT)?;
        // SAFETY: the program's pointer has room for the attribute's type.
        unsafe { info(executable, object, attribute, value) }
    })
}

unsafe fn info(
    executable: &Executable,
    object: &Loaded,
    attribute: u32,
    value: *mut c_void,
) -> Outcome {
    const KIND_AGENT: u32 = 2;
    let in_memory = object.info.storage == CodeObjectStorage::Memory;
    // SAFETY: the caller's promise, passed on.
    unsafe {
        match attribute {
            1 => put(value, executable.handle),
            2 => put(value, KIND_AGENT),
            3 => put(value, object.info.agent),
            4 => put(value, storage_type(object)),
            5 if in_memory => put(value, object.info.memory_base),
            6 if in_memory => put(value, object.info.memory_size),
            7 if !in_memory => put(value, object.info.file),
            8 => put(value, object.info.load_delta),
            9 => put(value, object.info.load_base),
            10 => put(value, object.info.load_size),
            11 => put(value, object.info.uri.len() as u32),
            // The length counts no end, and none is written.
            12 => {
                let uri = object.info.uri.as_bytes();
                value.cast::<u8>().copy_from(uri.as_ptr(), uri.len());
                Ok(())
            }
            _ => Err(status::ERROR_INVALID_ARGUMENT),
        }
    }
}

/// Makes a reader for a code object in a part of a file.
unsafe extern "C" fn reader_create_from_file_part(
    file: i32,
    offset: usize,
    size: usize,
    code_object_reader: *mut u64,
) -> Status {
    api(|| reader::from_file(file, offset as u64, Some(size as u64), code_object_reader))
}

/// Calls back for every executable.
unsafe extern "C" fn iterate_executables(callback: HandleCallback, data: *mut c_void) -> Status {
    api(|| {
        let callback = callback.ok_or(status::ERROR_INVALID_ARGUMENT)?;
        each(executables(), |executable| {
            // SAFETY: the program's callback takes its own data.
            unsafe { callback(executable.handle, data) }
        })
    })
}
