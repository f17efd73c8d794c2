//! Functions of the API that are exported by name and have no slot in the dispatch table.

use std::ptr::{null, null_mut};

use super::super::later::*;
use super::super::types::*;
use super::*;

#[test]
fn hip_libraries_are_loaded_and_their_kernels_run() {
    let mut library = null_mut();
    ok!(hipLibraryLoadData(
        &mut library,
        KERNELS.as_ptr().cast(),
        null_mut(),
        null_mut(),
        0,
        null_mut(),
        null_mut(),
        0
    ));
    let mut count = 0;
    ok!(hipLibraryGetKernelCount(&mut count, library));
    let mut kernels = vec![null_mut(); count as usize];
    ok!(hipLibraryEnumerateKernels(
        kernels.as_mut_ptr(),
        count,
        library
    ));
    let mut affine = null_mut();
    ok!(hipLibraryGetKernel(
        &mut affine,
        library,
        c"affine".as_ptr()
    ));
    assert!(kernels.contains(&affine));
    let (mut name, mut owner, mut function) = (null(), null_mut(), null_mut());
    ok!(hipKernelGetName(&mut name, affine));
    // SAFETY: the name of a loaded kernel.
    assert_eq!(unsafe { CStr::from_ptr(name) }, c"affine");
    ok!(hipKernelGetLibrary(&mut owner, affine));
    assert_eq!(owner, library);
    ok!(hipKernelGetFunction(&mut function, affine));
    let (mut offset, mut size) = (0, 0);
    ok!(hipKernelGetParamInfo(affine, 1, &mut offset, &mut size));
    assert_eq!((offset, size), (8, 4));
    fails!(
        hipKernelGetParamInfo(affine, 4, &mut offset, &mut size),
        INVALID_VALUE
    );

    let mut data = device_memory(256);
    ok!(hipMemset(data, 0, 256));
    let (mut factor, mut term, mut n) = (1u32, 6u32, 64u32);
    let mut args = [
        arg(&mut data),
        arg(&mut factor),
        arg(&mut term),
        arg(&mut n),
    ];
    launch(function, 1, 64, 0, null_mut(), &mut args);
    assert_eq!(download(data, 1), [6]);
    ok!(hipFree(data));

    let mut free = 0;
    ok!(hipOccupancyAvailableDynamicSMemPerBlock(
        &mut free, affine, 2, 64
    ));
    assert_eq!(free, 32 << 10, "half of the local memory of a compute unit");
    fails!(
        hipOccupancyAvailableDynamicSMemPerBlock(&mut free, affine, 1000, 64),
        INVALID_VALUE
    );
    ok!(hipLibraryUnload(library));
    fails!(
        hipLibraryGetKernelCount(&mut count, library),
        INVALID_HANDLE
    );
}

#[test]
fn hip_copies_batches() {
    let from = [[1u32; 16], [2; 16], [3; 16]];
    let to = device_memory(3 * 64);
    let targets: Vec<*mut c_void> = (0..3).map(|n| to.wrapping_byte_add(n * 64)).collect();
    let mut sources: Vec<*const c_void> = from.iter().map(|row| row.as_ptr().cast()).collect();
    let sizes = [64usize; 3];
    let mut failed = usize::MAX;
    let copy = |sources: &[*const c_void], failed: &mut usize| {
        // SAFETY: lists of three entries.
        unsafe {
            hipMemcpyBatchAsync(
                targets.as_ptr(),
                sources.as_ptr(),
                sizes.as_ptr(),
                3,
                null(),
                null(),
                0,
                failed,
                null_mut(),
            )
        }
    };
    assert_eq!(copy(&sources, &mut failed), code::SUCCESS);
    ok!(hipDeviceSynchronize());
    assert_eq!(download(to, 48), [[1; 16], [2; 16], [3; 16]].concat());
    sources[1] = null();
    assert_ne!(copy(&sources, &mut failed), code::SUCCESS);
    assert_eq!(failed, 1);
    ok!(hipFree(to));
}

#[test]
fn hip_fills_rows_with_numbers() {
    let data = device_memory(4 * 32);
    ok!(hipMemset(data, 0, 4 * 32));
    ok!(hipMemsetD2D16(data, 32, 0x0102, 4, 3));
    let out = download(data, 32);
    assert_eq!(out[..3], [0x0102_0102, 0x0102_0102, 0]);
    assert_eq!(out[16..18], [0x0102_0102, 0x0102_0102]);
    assert_eq!(out[24..26], [0, 0], "the fourth row");
    ok!(hipMemsetD2D32Async(data, 32, 9, 1, 4, null_mut()));
    assert_eq!(download(data, 25)[24], 9);
    ok!(hipFree(data));
}

#[test]
fn hip_streams_have_ids_and_attributes() {
    let (one, two) = (new_stream(0), new_stream(0));
    let (mut first, mut second) = (0, 0);
    ok!(hipStreamGetId(one, &mut first));
    ok!(hipStreamGetId(two, &mut second));
    assert_ne!(first, second);
    let mut value = LaunchAttributeValue {
        number: 3,
        rest: [0; 60],
    };
    ok!(hipStreamSetAttribute(
        one,
        launch_attribute::SYNCHRONIZATION_POLICY,
        &value
    ));
    ok!(hipStreamCopyAttributes(two, one));
    value.number = 0;
    ok!(hipStreamGetAttribute(
        two,
        launch_attribute::SYNCHRONIZATION_POLICY,
        &mut value
    ));
    assert_eq!(value.number, 3);
    value.number = 9;
    fails!(
        hipStreamSetAttribute(one, launch_attribute::SYNCHRONIZATION_POLICY, &value),
        INVALID_VALUE
    );
    ok!(hipStreamDestroy(one));
    ok!(hipStreamDestroy(two));
}
