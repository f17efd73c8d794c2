//! The functions of HSA for physical memory, reserved addresses and memory that processes share.

use core::ffi::c_void;
use std::ptr;

use crate::api::call;
use crate::hip::error::HipResult;
use crate::hip::hsa::{check, out};

/// Reserves addresses, at `wanted` if these are free and anywhere otherwise.
pub(crate) fn reserve(size: usize, wanted: usize, alignment: usize) -> HipResult<usize> {
    let mut base: *mut c_void = ptr::null_mut();
    // SAFETY: the output is a local.
    check(unsafe {
        call::hsa_amd_vmem_address_reserve_align(
            out(&mut base),
            size,
            wanted as u64,
            alignment as u64,
            0,
        )
    })?;
    Ok(base as usize)
}

pub(crate) fn unreserve(base: usize, size: usize) -> HipResult {
    // SAFETY: HSA checks the range against its reservations.
    check(unsafe { call::hsa_amd_vmem_address_free(base as *mut c_void, size) })
}

/// Allocates physical memory.
pub(crate) fn create(pool: u64, size: usize) -> HipResult<u64> {
    const PINNED: u32 = 1;
    let mut handle = 0u64;
    // SAFETY: the output is a local.
    check(unsafe { call::hsa_amd_vmem_handle_create(pool, size, PINNED, 0, out(&mut handle)) })?;
    Ok(handle)
}

pub(crate) fn release(handle: u64) -> HipResult {
    // SAFETY: HSA checks the handle.
    check(unsafe { call::hsa_amd_vmem_handle_release(handle) })
}

pub(crate) fn map(base: usize, size: usize, handle: u64) -> HipResult {
    // SAFETY: HSA checks the range against its reservations.
    check(unsafe { call::hsa_amd_vmem_map(base as *mut c_void, size, 0, handle, 0) })
}

pub(crate) fn unmap(base: usize, size: usize) -> HipResult {
    // SAFETY: HSA checks the range against its mappings.
    check(unsafe { call::hsa_amd_vmem_unmap(base as *mut c_void, size) })
}

/// Sets the rights of an agent to a mapping: 0 none, 1 read, 3 read and write.
pub(crate) fn access(base: usize, size: usize, agent: u64, access: u32) -> HipResult {
    let mut list = [crate::hsa::types::MemoryAccessDesc {
        permissions: access,
        agent,
    }];
    // SAFETY: HSA checks the range; the list is a local.
    check(unsafe { call::hsa_amd_vmem_set_access(base as *mut c_void, size, out(&mut list), 1) })
}

pub(crate) fn access_of(address: usize, agent: u64) -> HipResult<u32> {
    let mut access = 0u32;
    // SAFETY: the output is a local.
    check(unsafe {
        call::hsa_amd_vmem_get_access(address as *mut c_void, out(&mut access), agent)
    })?;
    Ok(access)
}

/// The physical memory that is mapped at an address.
pub(crate) fn at(address: usize) -> HipResult<u64> {
    let mut handle = 0u64;
    // SAFETY: the output is a local.
    check(unsafe {
        call::hsa_amd_vmem_retain_alloc_handle(out(&mut handle), address as *mut c_void)
    })?;
    Ok(handle)
}

/// The pool that physical memory was allocated from.
pub(crate) fn pool(handle: u64) -> HipResult<u64> {
    let (mut pool, mut kind) = (0u64, 0u32);
    // SAFETY: the outputs are locals.
    check(unsafe {
        call::hsa_amd_vmem_get_alloc_properties_from_handle(handle, out(&mut pool), out(&mut kind))
    })?;
    Ok(pool)
}

/// A file descriptor of physical memory, which the caller has to close.
pub(crate) fn export(handle: u64) -> HipResult<i32> {
    let mut descriptor = 0i32;
    // SAFETY: the output is a local.
    check(unsafe { call::hsa_amd_vmem_export_shareable_handle(out(&mut descriptor), handle, 0) })?;
    Ok(descriptor)
}

pub(crate) fn import(descriptor: i32) -> HipResult<u64> {
    let mut handle = 0u64;
    // SAFETY: the output is a local.
    check(unsafe { call::hsa_amd_vmem_import_shareable_handle(descriptor, out(&mut handle)) })?;
    Ok(handle)
}

/// `hsa_amd_ipc_memory_t`.
pub(crate) type SharedHandle = [u64; 4];

/// Shares an allocation with other processes.
pub(crate) fn share(base: usize, size: usize) -> HipResult<SharedHandle> {
    let mut handle: SharedHandle = [0; 4];
    // SAFETY: HSA checks the address; the output is a local.
    check(unsafe { call::hsa_amd_ipc_memory_create(base as *mut c_void, size, out(&mut handle)) })?;
    Ok(handle)
}

/// Maps memory that another process shares.
pub(crate) fn attach(handle: &SharedHandle, size: usize, agents: &[u64]) -> HipResult<usize> {
    let mut base: *mut c_void = ptr::null_mut();
    let mut handle = *handle;
    // SAFETY: the list and the locals outlive the call.
    check(unsafe {
        call::hsa_amd_ipc_memory_attach(
            out(&mut handle),
            size,
            agents.len() as u32,
            agents.as_ptr() as *mut c_void,
            out(&mut base),
        )
    })?;
    Ok(base as usize)
}

pub(crate) fn detach(base: usize) -> HipResult {
    // SAFETY: HSA checks the address.
    check(unsafe { call::hsa_amd_ipc_memory_detach(base as *mut c_void) })
}
