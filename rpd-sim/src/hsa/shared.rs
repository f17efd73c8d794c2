//! Memory shared between processes: allocations that another process attaches, and physical memory passed on as a descriptor.
//!
//! An allocation becomes a file in memory when it is shared, mapped in place of what was there. Another process finds the file through
//! `/proc/<pid>/fd`, as long as the process that shared it lives.

use core::ffi::c_void;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd};
use std::os::unix::fs::MetadataExt;

use super::state::{lock, state};
use super::support::{agent, api, array, ensure, put};
use super::types::{Status, status};
use super::vmem::Physical;
use crate::gpu::agents::{self, PoolKind};
use crate::gpu::machine::machine;
use crate::gpu::memory::{GRANULE, Use};

/// Content of a handle of shared memory (`hsa_amd_ipc_memory_t`, 32 bytes).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SharedMemoryHandle {
    process: u32,
    descriptor: i32,
    /// Inode of the file, which distinguishes it from a later file with the same descriptor.
    inode: u64,
    size: u64,
    /// Index of the pool that the memory belongs to.
    pool: u64,
}

const _: () = assert!(size_of::<SharedMemoryHandle>() == 32);

/// Allocations of this process that others may attach, and those that it has attached.
#[derive(Debug, Default)]
pub(crate) struct SharedMemory {
    exported: HashMap<usize, (File, SharedMemoryHandle)>,
    attached: HashMap<usize, usize>,
}

/// Makes a file in memory of this size in bytes.
pub(crate) fn memory_file(size: usize) -> Option<File> {
    // SAFETY: the name is a C string; the result is checked.
    let file = unsafe { libc::memfd_create(c"rpd-sim memory".as_ptr(), libc::MFD_CLOEXEC) };
    if file < 0 {
        return None;
    }
    // SAFETY: a new descriptor without another owner.
    let file = unsafe { File::from_raw_fd(file) };
    file.set_len(size as u64).ok()?;
    Some(file)
}

/// Maps a file at address `at`; anywhere if that is 0.
fn map(file: &File, at: usize, size: usize) -> Option<usize> {
    let fixed = if at == 0 { 0 } else { libc::MAP_FIXED };
    // SAFETY: a fixed address is that of an allocation of this size, whose contents the file has.
    let base = unsafe {
        libc::mmap(
            at as *mut _,
            size,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | fixed,
            file.as_raw_fd(),
            0,
        )
    };
    (base != libc::MAP_FAILED).then_some(base as usize)
}

/// Called when an exported allocation is freed.
unsafe extern "C" fn forget_export(base: *mut c_void, _: *mut c_void) {
    lock(&state().shared).exported.remove(&(base as usize));
}

/// Shares an allocation with other processes. No thread may write to it during the call.
pub(crate) unsafe extern "C" fn hsa_amd_ipc_memory_create(
    ptr: *mut c_void,
    len: usize,
    handle: *mut SharedMemoryHandle,
) -> Status {
    api(|| {
        ensure(!handle.is_null(), status::ERROR_INVALID_ARGUMENT)?;
        let base = ptr as usize;
        let found = machine()
            .memory
            .find(base)
            .filter(|block| block.base == base);
        let block = found.ok_or(status::ERROR_INVALID_ARGUMENT)?;
        let whole = block.mapped != 0 && block.purpose == Use::Program && len <= block.mapped;
        ensure(whole, status::ERROR_INVALID_ARGUMENT)?;
        let mut shared = lock(&state().shared);
        if let Some((_, known)) = shared.exported.get(&base) {
            // SAFETY: the program's pointer is writable.
            return unsafe { put(handle, *known) };
        }
        let file = memory_file(block.mapped).ok_or(status::ERROR_OUT_OF_RESOURCES)?;
        // SAFETY: the allocation is readable and as large as this; nothing writes to it, by contract.
        let contents = unsafe { std::slice::from_raw_parts(base as *const u8, block.mapped) };
        std::os::unix::fs::FileExt::write_all_at(&file, contents, 0)
            .map_err(|_| status::ERROR_OUT_OF_RESOURCES)?;
        map(&file, base, block.mapped).ok_or(status::ERROR_OUT_OF_RESOURCES)?;
        let inode = file.metadata().map_err(|_| status::ERROR)?.ino();
        let pool = agents::pools()
            .iter()
            .position(|pool| std::ptr::eq(pool, block.pool));
        let made = SharedMemoryHandle {
            process: std::process::id(),
            descriptor: file.as_raw_fd(),
            inode,
            size: block.mapped as u64,
            pool: pool.ok_or(status::ERROR)? as u64,
        };
        shared.exported.insert(base, (file, made));
        drop(shared);
        block.on_free(forget_export, 0);
        // SAFETY: the program's pointer is writable.
        unsafe { put(handle, made) }
    })
}

/// Maps memory that another process has shared.
pub(crate) unsafe extern "C" fn hsa_amd_ipc_memory_attach(
    handle: *const SharedMemoryHandle,
    len: usize,
    count: u32,
    list: *const u64,
    mapped: *mut *mut c_void,
) -> Status {
    api(|| {
        ensure(
            !handle.is_null() && !mapped.is_null(),
            status::ERROR_INVALID_ARGUMENT,
        )?;
        // SAFETY: the program's handle, not null.
        let handle = unsafe { handle.read_unaligned() };
        let size = handle.size as usize;
        ensure(len <= size, status::ERROR_INVALID_ARGUMENT)?;
        let pool = agents::pools().get(handle.pool as usize);
        let pool = pool.ok_or(status::ERROR_INVALID_ARGUMENT)?;
        let path = format!("/proc/{}/fd/{}", handle.process, handle.descriptor);
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(|_| status::ERROR_INVALID_ARGUMENT)?;
        let data = file
            .metadata()
            .map_err(|_| status::ERROR_INVALID_ARGUMENT)?;
        let same = data.ino() == handle.inode && data.len() == handle.size;
        ensure(same, status::ERROR_INVALID_ARGUMENT)?;
        let mut access = 1 | 1 << pool.agent;
        // SAFETY: the program's array has the length that it passes.
        for &agent_handle in unsafe { array(list, count as usize) } {
            access |= 1 << agent(agent_handle)?.index;
        }
        let base = map(&file, 0, size).ok_or(status::ERROR_OUT_OF_RESOURCES)?;
        machine()
            .memory
            .adopt(pool, base, size, Use::Attached, access);
        lock(&state().shared).attached.insert(base, size);
        // SAFETY: the program's pointer is writable.
        unsafe { put(mapped, base) }
    })
}

/// Undoes an attachment.
pub(crate) unsafe extern "C" fn hsa_amd_ipc_memory_detach(mapped: *mut c_void) -> Status {
    api(|| {
        let base = mapped as usize;
        let size = lock(&state().shared).attached.remove(&base);
        let size = size.ok_or(status::ERROR_INVALID_ARGUMENT)?;
        machine().memory.free(base, Use::Attached);
        // SAFETY: a mapping of this module, which is no longer registered.
        unsafe { libc::munmap(mapped, size) };
        Ok(())
    })
}

/// Writes a file descriptor of physical memory, which can be passed to another process.
pub(crate) unsafe extern "C" fn hsa_amd_vmem_export_shareable_handle(
    descriptor: *mut i32,
    handle: u64,
    _flags: u64,
) -> Status {
    api(|| {
        ensure(!descriptor.is_null(), status::ERROR_INVALID_ARGUMENT)?;
        let file = lock(&state().vmem).file(handle);
        let file = file.ok_or(status::ERROR_INVALID_ALLOCATION)?;
        // SAFETY: the descriptor is open as long as the handle.
        let copy = unsafe { libc::fcntl(file, libc::F_DUPFD_CLOEXEC, 0) };
        ensure(copy >= 0, status::ERROR_OUT_OF_RESOURCES)?;
        // SAFETY: the program's pointer is writable.
        unsafe { put(descriptor, copy) }
    })
}

/// Makes physical memory of a file descriptor; it counts as memory of the first GPU.
pub(crate) unsafe extern "C" fn hsa_amd_vmem_import_shareable_handle(
    descriptor: i32,
    handle: *mut u64,
) -> Status {
    api(|| {
        ensure(!handle.is_null(), status::ERROR_INVALID_ARGUMENT)?;
        // SAFETY: any number may be passed; the result is checked.
        let copy = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 0) };
        ensure(copy >= 0, status::ERROR_INVALID_ARGUMENT)?;
        // SAFETY: a new descriptor without another owner.
        let file = unsafe { File::from_raw_fd(copy) };
        let size = file
            .metadata()
            .map_err(|_| status::ERROR_INVALID_ARGUMENT)?
            .len() as usize;
        ensure(
            size != 0 && size.is_multiple_of(GRANULE),
            status::ERROR_INVALID_ARGUMENT,
        )?;
        let pool =
            agents::pool_of(1, PoolKind::DeviceCoarse).ok_or(status::ERROR_INVALID_ARGUMENT)?;
        let made = state().handle();
        let physical = Physical::imported(pool, size, file.into_raw_fd());
        lock(&state().vmem).insert(made, physical);
        // SAFETY: the program's pointer is writable.
        unsafe { put(handle, made) }
    })
}
