//! Copies, fills, and queries about addresses.

use super::*;

#[test]
fn hip_copies_rectangles_in_every_direction() {
    const W: usize = 37;
    const H: usize = 11;
    let (mut device, mut pitch) = (null_mut(), 0);
    ok!(hipMallocPitch(&mut device, &mut pitch, W, H));
    assert!(pitch >= W);
    let source: Vec<u8> = (0..W * H).map(|n| n as u8).collect();
    ok!(hipMemset2D(device, pitch, 0xee, W, H));
    ok!(hipMemcpy2D(
        device,
        pitch,
        source.as_ptr().cast(),
        W,
        W,
        H,
        kind::HOST_TO_DEVICE
    ));
    let (mut twin, mut twin_pitch) = (null_mut(), 0);
    ok!(hipMallocPitch(&mut twin, &mut twin_pitch, W + 300, H));
    ok!(hipMemcpy2D(
        twin,
        twin_pitch,
        device,
        pitch,
        W,
        H,
        kind::DEVICE_TO_DEVICE
    ));
    let mut back = vec![0u8; (W + 3) * H];
    ok!(hipMemcpy2D(
        back.as_mut_ptr().cast(),
        W + 3,
        twin,
        twin_pitch,
        W,
        H,
        kind::DEVICE_TO_HOST
    ));
    for row in 0..H {
        assert_eq!(
            back[row * (W + 3)..][..W],
            source[row * W..][..W],
            "row {row}"
        );
        assert_eq!(back[row * (W + 3) + W..][..3], [0; 3]);
    }
    fails!(
        hipMemcpy2D(
            device,
            8,
            source.as_ptr().cast(),
            W,
            W,
            H,
            kind::HOST_TO_DEVICE
        ),
        INVALID_PITCH_VALUE
    );
    ok!(hipFree(device));
    ok!(hipFree(twin));
}

#[test]
fn hip_fills_touch_exactly_their_range() {
    let data = device_memory(4096);
    for (offset, length) in [
        (0usize, 4096usize),
        (1, 30),
        (15, 2),
        (3, 4000),
        (16, 16),
        (7, 9),
    ] {
        ok!(hipMemset(data, 0x11, 4096));
        let at = (data as usize + offset) as *mut c_void;
        ok!(hipMemset(at, 0xa5, length));
        let mut out = vec![0u8; 4096];
        ok!(hipMemcpyDtoH(out.as_mut_ptr().cast(), data, 4096));
        let right = |(n, &v): (usize, &u8)| {
            v == if (offset..offset + length).contains(&n) {
                0xa5
            } else {
                0x11
            }
        };
        assert!(out.iter().enumerate().all(right), "{offset} {length}");
    }
    fails!(hipMemset(data, 0, 4097), INVALID_VALUE);
    let mut local = 0u32;
    fails!(hipMemset(arg(&mut local), 0, 4), INVALID_VALUE);
    ok!(hipFree(data));
}

#[test]
fn large_pageable_memory_is_pinned_for_its_copy() {
    const BYTES: usize = 9 << 20;
    let source: Vec<u32> = (0..BYTES as u32 / 4).map(|n| n ^ 0x5555).collect();
    let data = device_memory(BYTES);
    ok!(hipMemcpy(
        data,
        source.as_ptr().cast(),
        BYTES,
        kind::HOST_TO_DEVICE
    ));
    assert!(download(data, BYTES / 4) == source);
    ok!(hipFree(data));
    let mut host = vec![0u8; 10000];
    let pointer = host.as_mut_ptr().cast();
    ok!(hipHostRegister(pointer, host.len(), 0));
    fails!(
        hipHostRegister(pointer, host.len(), 0),
        HOST_MEMORY_ALREADY_REGISTERED
    );
    let mut seen = null_mut();
    ok!(hipHostGetDevicePointer(&mut seen, pointer, 0));
    ok!(hipHostUnregister(pointer));
    fails!(hipHostUnregister(pointer), HOST_MEMORY_NOT_REGISTERED);
}

#[test]
fn pointer_attributes_describe_addresses() {
    let data = device_memory(1000);
    // SAFETY: plain numbers and null pointers.
    let mut attributes: PointerAttributes = unsafe { std::mem::zeroed() };
    ok!(hipPointerGetAttributes(
        &mut attributes,
        (data as usize + 10) as *const c_void
    ));
    assert_eq!((attributes.kind, attributes.device), (2, 0));
    let (mut base, mut size) = (null_mut(), 0);
    ok!(hipMemGetAddressRange(
        &mut base,
        &mut size,
        (data as usize + 999) as *mut c_void
    ));
    assert_eq!((base, size), (data, 1000));
    let (mut free, mut total) = (0, 0);
    ok!(hipMemGetInfo(&mut free, &mut total));
    assert!(free < total);
    let mut pointer = null_mut();
    fails!(hipMalloc(&mut pointer, usize::MAX / 2), OUT_OF_MEMORY);
    ok!(hipFree(data));
    ok!(hipFree(null_mut()));
    fails!(
        hipMemcpy(data, null(), 4, kind::HOST_TO_DEVICE),
        INVALID_VALUE
    );
    fails!(hipMemcpy(data, data, 4, 77), INVALID_MEMCPY_DIRECTION);
}

#[test]
fn asynchronous_copies_return_while_a_kernel_runs() {
    const N: usize = 1024;
    let host_memory = || {
        let mut pointer = null_mut();
        ok!(hipHostMalloc(&mut pointer, 4 * N, 0));
        pointer.cast::<u32>()
    };
    let (flag, from, to) = (host_memory(), host_memory(), host_memory());
    // SAFETY: pinned memory of this many numbers.
    unsafe {
        flag.write_volatile(0);
        (0..N).for_each(|n| from.add(n).write(n as u32));
        (0..N).for_each(|n| to.add(n).write(0));
    }
    let (busy, free) = (
        new_stream(STREAM_NON_BLOCKING),
        new_stream(STREAM_NON_BLOCKING),
    );
    let data = device_memory(4 * N);
    let mut pointer = flag;
    launch(
        kernel(c"await_host"),
        1,
        64,
        0,
        busy,
        &mut [arg(&mut pointer)],
    );
    let begin = std::time::Instant::now();
    // Behind the kernel, in both directions: enqueued, not waited for.
    ok!(hipMemcpyAsync(
        data,
        from.cast(),
        4 * N,
        kind::HOST_TO_DEVICE,
        busy
    ));
    ok!(hipMemcpyAsync(
        to.cast(),
        data,
        4 * N,
        kind::DEVICE_TO_HOST,
        busy
    ));
    // Beside it: done before the kernel ends.
    let other = device_memory(4 * N);
    ok!(hipMemcpyAsync(
        other,
        from.cast(),
        4 * N,
        kind::HOST_TO_DEVICE,
        free
    ));
    ok!(hipStreamSynchronize(free));
    assert!(begin.elapsed().as_millis() < 1900, "{:?}", begin.elapsed());
    fails!(hipStreamQuery(busy), NOT_READY);
    // SAFETY: as above; the kernel reads the flag meanwhile.
    unsafe {
        assert_eq!(to.add(5).read_volatile(), 0);
        flag.write_volatile(1);
    }
    ok!(hipStreamSynchronize(busy));
    // SAFETY: the copies have ended.
    assert!(unsafe { (0..N).all(|n| to.add(n).read() == n as u32) });
    [busy, free]
        .into_iter()
        .for_each(|stream| ok!(hipStreamDestroy(stream)));
    [data, other]
        .into_iter()
        .for_each(|pointer| ok!(hipFree(pointer)));
    [flag, from, to]
        .into_iter()
        .for_each(|pointer| ok!(hipHostFree(pointer.cast())));
}
