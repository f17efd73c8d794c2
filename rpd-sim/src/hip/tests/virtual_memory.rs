//! Virtual memory: reserved addresses, physical memory, and memory of other processes.

use std::ptr::null_mut;

use super::super::types::*;
use super::*;
use crate::api::types::IpcHandle;
use crate::hip::memory::shared_api::*;
use crate::hip::memory::virtual_api::*;

const PART: usize = 1 << 16;

fn properties() -> [u64; 4] {
    // Pinned memory that can be passed on as a descriptor, of device 0.
    [1 << 32 | 1, 1, 0, 0]
}

#[test]
fn virtual_memory_is_mapped_piece_by_piece() {
    let properties = properties();
    let properties = properties.as_ptr().cast();
    let (mut bytes, mut base) = (0, null_mut());
    ok!(hipMemGetAllocationGranularity(&mut bytes, properties, 0));
    assert!(PART.is_multiple_of(bytes));
    ok!(hipMemAddressReserve(&mut base, 2 * PART, 0, null_mut(), 0));
    let mut handles = [null_mut(); 2];
    for (n, handle) in handles.iter_mut().enumerate() {
        ok!(hipMemCreate(handle, PART, properties, 0));
        ok!(hipMemMap(
            base.wrapping_byte_add(n * PART),
            PART,
            0,
            *handle,
            0
        ));
    }
    let access = MemAccessDesc {
        location: MemLocation { kind: 1, id: 0 },
        flags: 3,
    };
    // One call for both mappings, as allocators with segments that grow do it.
    ok!(hipMemSetAccess(base, 2 * PART, &access, 1));
    let mut flags = 0;
    ok!(hipMemGetAccess(&mut flags, &access.location, base));
    assert_eq!(flags, 3);
    ok!(hipMemset(base, 0, PART));
    let n = (PART / 4) as u32;
    affine(base, 1, 5, n, null_mut());
    assert_eq!(download(base, n as usize), vec![5; n as usize]);

    let mut handle = null_mut();
    ok!(hipMemRetainAllocationHandle(&mut handle, base));
    assert_eq!(handle, handles[0]);
    fails!(hipFree(base), INVALID_VALUE);

    // The same memory a second time, through a descriptor.
    let mut descriptor = -1i32;
    ok!(hipMemExportToShareableHandle(
        arg(&mut descriptor),
        handle,
        1,
        0
    ));
    let (mut imported, mut other) = (null_mut(), null_mut());
    ok!(hipMemImportFromShareableHandle(
        &mut imported,
        std::ptr::without_provenance_mut(descriptor as usize),
        1
    ));
    // SAFETY: the descriptor is this test's.
    unsafe { libc::close(descriptor) };
    ok!(hipMemAddressReserve(&mut other, PART, 0, null_mut(), 0));
    ok!(hipMemMap(other, PART, 0, imported, 0));
    ok!(hipMemSetAccess(other, PART, &access, 1));
    assert_eq!(download(other, 4), [5; 4]);
    affine(other, 2, 0, 4, null_mut());
    assert_eq!(download(base, 5), [10, 10, 10, 10, 5]);

    ok!(hipMemUnmap(other, PART));
    ok!(hipMemUnmap(base, 2 * PART));
    fails!(hipMemUnmap(base, PART), INVALID_VALUE);
    for handle in handles.into_iter().chain([imported]) {
        ok!(hipMemRelease(handle));
    }
    ok!(hipMemAddressFree(base, 2 * PART));
    ok!(hipMemAddressFree(other, PART));
}

#[test]
fn handles_of_shared_memory_keep_contents_and_places() {
    let data = device_memory(PART);
    affine(data, 0, 7, 64, null_mut());
    ok!(hipDeviceSynchronize());
    // SAFETY: plain bytes.
    let mut handle: IpcHandle = unsafe { std::mem::zeroed() };
    ok!(hipIpcGetMemHandle(&mut handle, data.wrapping_byte_add(16)));
    assert_eq!(download(data, 64), [7; 64]);
    // The same process may attach it as well, at other addresses.
    let mut other = null_mut();
    ok!(hipIpcOpenMemHandle(&mut other, handle, 1));
    assert_ne!(other, data.wrapping_byte_add(16));
    affine(other, 1, 1, 4, null_mut());
    assert_eq!(download(data, 9), [7, 7, 7, 7, 8, 8, 8, 8, 7]);
    fails!(hipFree(other), INVALID_VALUE);
    ok!(hipIpcCloseMemHandle(other));
    fails!(hipIpcCloseMemHandle(other), INVALID_VALUE);
    ok!(hipFree(data));
    fails!(hipIpcOpenMemHandle(&mut other, handle, 1), INVALID_VALUE);
}
