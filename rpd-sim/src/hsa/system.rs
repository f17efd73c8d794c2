//! The runtime as a whole: initialisation, system attributes, texts of statuses, extensions.

use core::ffi::{c_char, c_void};
use std::sync::atomic::Ordering;

use super::support::{Outcome, api, ensure, put};
use super::types::{Status, status};
use super::{image_calls, image_objects, loader};
use crate::gpu::agents::Agent;
use crate::gpu::clock;
use crate::gpu::machine::machine;

const EXTENSION_IMAGES: u16 = 1;
const EXTENSION_AMD_LOADER: u16 = 0x201;
/// Extensions that the runtime has: number, major version, minor version, name.
const EXTENSIONS: [(u16, u16, u16, &core::ffi::CStr); 2] = [
    (EXTENSION_IMAGES, 1, 0, c"HSA_EXTENSION_IMAGES"),
    (EXTENSION_AMD_LOADER, 1, 3, c"HSA_EXTENSION_AMD_LOADER"),
];
/// Number and name of extensions that the headers define.
const KNOWN_NAMES: [(u16, &core::ffi::CStr); 6] = [
    (0, c"HSA_EXTENSION_FINALIZER"),
    (2, c"HSA_EXTENSION_PERFORMANCE_COUNTERS"),
    (3, c"HSA_EXTENSION_PROFILING_EVENTS"),
    (0x200, c"HSA_EXTENSION_AMD_PROFILER"),
    (0x202, c"HSA_EXTENSION_AMD_AQLPROFILE"),
    (0x203, c"HSA_EXTENSION_AMD_PC_SAMPLING"),
];

/// Adds a user of the runtime.
pub(crate) unsafe extern "C" fn hsa_init() -> Status {
    let users = &machine().runtime_users;
    let added = users.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_add(1));
    match added {
        Ok(_) => status::SUCCESS,
        Err(_) => status::ERROR_REFCOUNT_OVERFLOW,
    }
}

/// Removes a user of the runtime.
pub(crate) unsafe extern "C" fn hsa_shut_down() -> Status {
    let users = &machine().runtime_users;
    let removed = users.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1));
    match removed {
        Ok(1) => {
            super::executable::unload_all();
            status::SUCCESS
        }
        Ok(_) => status::SUCCESS,
        Err(_) => status::ERROR_NOT_INITIALIZED,
    }
}

/// Writes the value of an `hsa_system_info_t`: versions, clock, limits.
pub(crate) unsafe extern "C" fn hsa_system_get_info(attribute: u32, value: *mut c_void) -> Status {
    // SAFETY: the program's pointer has room for the attribute's type, or is null.
    api(|| unsafe {
        match attribute {
            0 | 0x207 => put(value, 1u16),
            1 => put(value, 1u16),
            2 => put(value, clock::host_ns()),
            3 => put(value, 1_000_000_000u64),
            4 => put(value, u64::MAX),
            5 => put(value, 0u32),
            6 => put(value, 1u32),
            7 => put(value, extension_mask()),
            0x200 => put(value, c"rpd-sim".as_ptr()),
            0x201 | 0x202 | 0x203 | 0x206 => put(value, false),
            0x204 => put(value, false),
            0x205 => put(value, true),
            0x208 => put(value, 6u16),
            _ => Err(status::ERROR_INVALID_ARGUMENT),
        }
    })
}

fn extension_mask() -> [u8; 128] {
    mask_of(EXTENSIONS.map(|known| known.0))
}

/// Mask of the extensions that concern an agent.
pub(super) fn agent_extensions(agent: &Agent) -> [u8; 128] {
    mask_of(image_objects::has_images(agent).then_some(EXTENSION_IMAGES))
}

fn mask_of(extensions: impl IntoIterator<Item = u16>) -> [u8; 128] {
    let mut mask = [0; 128];
    for extension in extensions {
        mask[usize::from(extension) / 8] |= 1 << (extension % 8);
    }
    mask
}

/// Writes an extension's table, cut to the caller's room.
///
/// # Safety
/// `table` must be writable for `bytes` bytes.
unsafe fn fill_table(extension: u16, table: *mut c_void, bytes: usize) {
    let (images, loader) = (image_calls::table::functions(), loader::functions());
    let functions: &[*const c_void] = match extension {
        EXTENSION_IMAGES => &images,
        _ => &loader,
    };
    let bytes = bytes.min(size_of_val(functions));
    // SAFETY: promised by the caller; the table is the program's.
    unsafe {
        table
            .cast::<u8>()
            .copy_from(functions.as_ptr().cast(), bytes)
    };
}

fn known(extension: u16) -> Outcome {
    let supported = EXTENSIONS.iter().any(|known| known.0 == extension);
    let named = KNOWN_NAMES.iter().any(|known| known.0 == extension);
    ensure(supported || named, status::ERROR_INVALID_ARGUMENT)
}

/// Minor version of an extension; `None` if the runtime lacks this major version.
fn minor(extension: u16, major: u16) -> Option<u16> {
    EXTENSIONS
        .iter()
        .find(|known| known.0 == extension && known.1 == major)
        .map(|known| known.2)
}

/// Gives the name of an extension by its number.
pub(crate) unsafe extern "C" fn hsa_extension_get_name(
    extension: u16,
    name: *mut *const c_char,
) -> Status {
    // SAFETY: the program's pointer is null or writable.
    api(|| unsafe {
        let supported = EXTENSIONS.iter().map(|known| (known.0, known.3));
        let (_, text) = supported
            .chain(KNOWN_NAMES)
            .find(|known| known.0 == extension)
            .ok_or(status::ERROR_INVALID_ARGUMENT)?;
        put(name, text.as_ptr())
    })
}

/// Writes whether the system has a version of an extension.
pub(crate) unsafe extern "C" fn hsa_system_extension_supported(
    extension: u16,
    version_major: u16,
    version_minor: u16,
    result: *mut bool,
) -> Status {
    // SAFETY: the program's pointer is null or writable.
    api(|| unsafe {
        known(extension)?;
        let has = minor(extension, version_major).is_some_and(|minor| version_minor <= minor);
        put(result, has)
    })
}

/// Writes whether the system has a major version of an extension, and its minor version.
pub(crate) unsafe extern "C" fn hsa_system_major_extension_supported(
    extension: u16,
    version_major: u16,
    version_minor: *mut u16,
    result: *mut bool,
) -> Status {
    // SAFETY: the program's pointers are null or writable.
    api(|| unsafe {
        known(extension)?;
        ensure(!version_minor.is_null(), status::ERROR_INVALID_ARGUMENT)?;
        let minor = minor(extension, version_major);
        put(result, minor.is_some())?;
        minor.map_or(Ok(()), |minor| put(version_minor, minor))
    })
}

/// Writes whether an agent has a version of an extension: the loader extension concerns all agents.
pub(crate) unsafe extern "C" fn hsa_agent_extension_supported(
    extension: u16,
    agent: u64,
    version_major: u16,
    version_minor: u16,
    result: *mut bool,
) -> Status {
    // SAFETY: the program's pointer is null or writable.
    api(|| unsafe {
        super::support::agent(agent)?;
        known(extension)?;
        let has = minor(extension, version_major).is_some_and(|minor| version_minor <= minor);
        put(result, has)
    })
}

/// Writes whether an agent has a major version of an extension, and its minor version.
pub(crate) unsafe extern "C" fn hsa_agent_major_extension_supported(
    extension: u16,
    agent: u64,
    version_major: u16,
    version_minor: *mut u16,
    result: *mut bool,
) -> Status {
    // SAFETY: the program's pointers are null or writable.
    api(|| unsafe {
        super::support::agent(agent)?;
        known(extension)?;
        ensure(!version_minor.is_null(), status::ERROR_INVALID_ARGUMENT)?;
        let minor = minor(extension, version_major);
        put(result, minor.is_some())?;
        minor.map_or(Ok(()), |minor| put(version_minor, minor))
    })
}

/// Writes the function table of an extension, as long as it is in the requested version.
pub(crate) unsafe extern "C" fn hsa_system_get_extension_table(
    extension: u16,
    version_major: u16,
    version_minor: u16,
    table: *mut c_void,
) -> Status {
    api(|| {
        ensure(!table.is_null(), status::ERROR_INVALID_ARGUMENT)?;
        known(extension)?;
        let has = minor(extension, version_major).is_some_and(|minor| version_minor <= minor);
        ensure(has, status::ERROR)?;
        let bytes = match extension {
            EXTENSION_IMAGES => image_calls::table::TABLE_BYTES,
            _ => loader::TABLE_BYTES[usize::from(version_minor)],
        };
        // SAFETY: the program's table is as long as the version it requests.
        unsafe { fill_table(extension, table, bytes) };
        Ok(())
    })
}

/// Writes the function table of an extension, cut to the caller's room.
pub(crate) unsafe extern "C" fn hsa_system_get_major_extension_table(
    extension: u16,
    version_major: u16,
    table_length: usize,
    table: *mut c_void,
) -> Status {
    api(|| {
        ensure(
            !table.is_null() && table_length != 0,
            status::ERROR_INVALID_ARGUMENT,
        )?;
        known(extension)?;
        ensure(minor(extension, version_major).is_some(), status::ERROR)?;
        // SAFETY: the program passes the length of its table.
        unsafe { fill_table(extension, table, table_length) };
        Ok(())
    })
}

/// Describes a status in a sentence.
pub(crate) unsafe extern "C" fn hsa_status_string(
    value: Status,
    status_string: *mut *const c_char,
) -> Status {
    // SAFETY: the program's pointer is null or writable.
    api(|| unsafe {
        ensure(!status_string.is_null(), status::ERROR_INVALID_ARGUMENT)?;
        let text = describe(value).ok_or(status::ERROR_INVALID_ARGUMENT)?;
        put(status_string, text.as_ptr())
    })
}

/// Text of a status; `None` for unknown numbers.
fn describe(value: Status) -> Option<&'static core::ffi::CStr> {
    use status::*;
    Some(match value {
        SUCCESS => c"HSA_STATUS_SUCCESS: The call succeeded.",
        INFO_BREAK => c"HSA_STATUS_INFO_BREAK: The iteration was ended by its callback.",
        ERROR => c"HSA_STATUS_ERROR: An error without further description.",
        ERROR_INVALID_ARGUMENT => c"HSA_STATUS_ERROR_INVALID_ARGUMENT: An argument has no valid value.",
        ERROR_INVALID_QUEUE_CREATION => c"HSA_STATUS_ERROR_INVALID_QUEUE_CREATION: The agent does not make such queues.",
        ERROR_INVALID_ALLOCATION => c"HSA_STATUS_ERROR_INVALID_ALLOCATION: Such memory cannot be allocated.",
        ERROR_INVALID_AGENT => c"HSA_STATUS_ERROR_INVALID_AGENT: There is no such agent.",
        ERROR_INVALID_REGION => c"HSA_STATUS_ERROR_INVALID_REGION: There is no such memory region.",
        ERROR_INVALID_SIGNAL => c"HSA_STATUS_ERROR_INVALID_SIGNAL: There is no such signal.",
        ERROR_INVALID_QUEUE => c"HSA_STATUS_ERROR_INVALID_QUEUE: There is no such queue.",
        ERROR_OUT_OF_RESOURCES => c"HSA_STATUS_ERROR_OUT_OF_RESOURCES: Memory or another resource is used up.",
        ERROR_INVALID_PACKET_FORMAT => c"HSA_STATUS_ERROR_INVALID_PACKET_FORMAT: A packet is malformed.",
        ERROR_RESOURCE_FREE => c"HSA_STATUS_ERROR_RESOURCE_FREE: Releasing a resource failed.",
        ERROR_NOT_INITIALIZED => c"HSA_STATUS_ERROR_NOT_INITIALIZED: The runtime is not initialised.",
        ERROR_REFCOUNT_OVERFLOW => c"HSA_STATUS_ERROR_REFCOUNT_OVERFLOW: A reference count is at its limit.",
        ERROR_INCOMPATIBLE_ARGUMENTS => c"HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS: The arguments do not go together.",
        ERROR_INVALID_INDEX => c"HSA_STATUS_ERROR_INVALID_INDEX: The index is out of range.",
        ERROR_INVALID_ISA => c"HSA_STATUS_ERROR_INVALID_ISA: There is no such instruction set.",
        ERROR_INVALID_ISA_NAME => c"HSA_STATUS_ERROR_INVALID_ISA_NAME: No instruction set has this name.",
        ERROR_INVALID_CODE_OBJECT => c"HSA_STATUS_ERROR_INVALID_CODE_OBJECT: The code object is invalid.",
        ERROR_INVALID_EXECUTABLE => c"HSA_STATUS_ERROR_INVALID_EXECUTABLE: There is no such executable.",
        ERROR_FROZEN_EXECUTABLE => c"HSA_STATUS_ERROR_FROZEN_EXECUTABLE: The executable is frozen.",
        ERROR_INVALID_SYMBOL_NAME => c"HSA_STATUS_ERROR_INVALID_SYMBOL_NAME: No symbol has this name.",
        ERROR_VARIABLE_ALREADY_DEFINED => c"HSA_STATUS_ERROR_VARIABLE_ALREADY_DEFINED: The variable is defined already.",
        ERROR_VARIABLE_UNDEFINED => c"HSA_STATUS_ERROR_VARIABLE_UNDEFINED: The variable is not defined.",
        ERROR_EXCEPTION => c"HSA_STATUS_ERROR_EXCEPTION: A kernel raised an exception.",
        ERROR_INVALID_CODE_SYMBOL => c"HSA_STATUS_ERROR_INVALID_CODE_SYMBOL: There is no such code object symbol.",
        ERROR_INVALID_EXECUTABLE_SYMBOL => c"HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL: There is no such executable symbol.",
        ERROR_INVALID_FILE => c"HSA_STATUS_ERROR_INVALID_FILE: The file descriptor is invalid.",
        ERROR_INVALID_CODE_OBJECT_READER => c"HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER: There is no such code object reader.",
        ERROR_INVALID_CACHE => c"HSA_STATUS_ERROR_INVALID_CACHE: There is no such cache.",
        ERROR_INVALID_WAVEFRONT => c"HSA_STATUS_ERROR_INVALID_WAVEFRONT: There is no such wavefront.",
        ERROR_INVALID_SIGNAL_GROUP => c"HSA_STATUS_ERROR_INVALID_SIGNAL_GROUP: There is no such signal group.",
        ERROR_INVALID_RUNTIME_STATE => c"HSA_STATUS_ERROR_INVALID_RUNTIME_STATE: The runtime is in another state.",
        ERROR_FATAL => c"HSA_STATUS_ERROR_FATAL: The queue cannot go on.",
        ERROR_INVALID_MEMORY_POOL => c"HSA_STATUS_ERROR_INVALID_MEMORY_POOL: There is no such memory pool.",
        ERROR_MEMORY_APERTURE_VIOLATION => c"HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION: A kernel left its memory aperture.",
        ERROR_ILLEGAL_INSTRUCTION => c"HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION: A kernel has an instruction the device does not execute.",
        ERROR_MEMORY_FAULT => c"HSA_STATUS_ERROR_MEMORY_FAULT: A kernel accessed memory it cannot reach.",
        CU_MASK_REDUCED => c"HSA_STATUS_CU_MASK_REDUCED: The compute unit mask was cut down.",
        ERROR_OUT_OF_REGISTERS => c"HSA_STATUS_ERROR_OUT_OF_REGISTERS: A kernel needs more registers than there are.",
        EXT_IMAGE_FORMAT_UNSUPPORTED => c"HSA_EXT_STATUS_ERROR_IMAGE_FORMAT_UNSUPPORTED: The agent has no images of this format.",
        EXT_IMAGE_SIZE_UNSUPPORTED => c"HSA_EXT_STATUS_ERROR_IMAGE_SIZE_UNSUPPORTED: The agent has no images of this size.",
        EXT_IMAGE_PITCH_UNSUPPORTED => c"HSA_EXT_STATUS_ERROR_IMAGE_PITCH_UNSUPPORTED: The agent has no images with such rows or slices.",
        EXT_SAMPLER_DESCRIPTOR_UNSUPPORTED => c"HSA_EXT_STATUS_ERROR_SAMPLER_DESCRIPTOR_UNSUPPORTED: The agent has no such samplers.",
        ERROR_RESOURCE_BUSY => c"HSA_STATUS_ERROR_RESOURCE_BUSY: The resource is in use.",
        _ => return None,
    })
}
