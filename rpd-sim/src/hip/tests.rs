//! The API as a program uses it, calling the implementations directly.

use core::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

use super::capture_api::*;
use super::copy_api::*;
use super::device_api::*;
use super::error::{code, hipGetLastError};
use super::event::*;
use super::fatbin::{
    __hipRegisterFatBinary, __hipRegisterFunction, __hipRegisterVar, __hipUnregisterFatBinary,
};
use super::fill_api::*;
use super::graph_api::*;
use super::launch_api::*;
use super::memory::*;
use super::module::{
    hipModuleGetFunction, hipModuleGetGlobal, hipModuleLoad, hipModuleLoadData, hipModuleUnload,
};
use super::pointer::*;
use super::pool::*;
use super::props::Properties;
use super::stream_api::*;
use super::stream_value::*;
use super::types::{Handle, PointerAttributes, STREAM_NON_BLOCKING, kind};
use crate::api::types::Dim3;

static KERNELS: &[u8] = include_bytes!("testdata/kernels.co");

macro_rules! ok {
    ($call:expr) => {
        // SAFETY: arguments of the tests' own making.
        assert_eq!(unsafe { $call }, code::SUCCESS, stringify!($call))
    };
}

macro_rules! fails {
    ($call:expr, $error:ident) => {
        // SAFETY: the point of the test: wrong arguments are refused.
        assert_eq!(unsafe { $call }, code::$error, stringify!($call))
    };
}

fn device_memory(bytes: usize) -> *mut c_void {
    let mut pointer = null_mut();
    ok!(hipMalloc(&mut pointer, bytes));
    assert!(!pointer.is_null());
    pointer
}

fn new_stream(flags: u32) -> Handle {
    let mut stream = null_mut();
    ok!(hipStreamCreateWithFlags(&mut stream, flags));
    stream
}

fn kernel(name: &CStr) -> Handle {
    static MODULE: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    let module = *MODULE.get_or_init(|| {
        let mut module = null_mut();
        ok!(hipModuleLoadData(&mut module, KERNELS.as_ptr().cast()));
        module as usize
    });
    let mut function = null_mut();
    ok!(hipModuleGetFunction(
        &mut function,
        module as Handle,
        name.as_ptr()
    ));
    function
}

fn launch(
    code: Handle,
    grid: u32,
    block: u32,
    shared: u32,
    stream: Handle,
    args: &mut [*mut c_void],
) {
    let params = args.as_mut_ptr();
    ok!(hipModuleLaunchKernel(
        code,
        grid,
        1,
        1,
        block,
        1,
        1,
        shared,
        stream,
        params,
        null_mut()
    ));
}

fn arg<T>(value: &mut T) -> *mut c_void {
    std::ptr::from_mut(value).cast()
}

/// Multiplies and adds on `data`, `n` numbers.
fn affine(data: *mut c_void, factor: u32, term: u32, n: u32, stream: Handle) {
    let (mut data, mut factor, mut term, mut n) = (data, factor, term, n);
    let mut args = [
        arg(&mut data),
        arg(&mut factor),
        arg(&mut term),
        arg(&mut n),
    ];
    launch(kernel(c"affine"), n.div_ceil(64), 64, 0, stream, &mut args);
}

fn download(pointer: *mut c_void, n: usize) -> Vec<u32> {
    let mut out = vec![0u32; n];
    ok!(hipMemcpy(
        out.as_mut_ptr().cast(),
        pointer,
        n * 4,
        kind::DEVICE_TO_HOST
    ));
    out
}

mod graphs;
mod later;
mod virtual_memory;

#[test]
fn devices_are_described() {
    let mut count = 0;
    ok!(hipGetDeviceCount(&mut count));
    assert!(count >= 1);
    // SAFETY: plain numbers.
    let mut p: Properties = unsafe { std::mem::zeroed() };
    ok!(hipGetDevicePropertiesR0600(&mut p, 0));
    // SAFETY: the runtime ends it with a NUL.
    let arch = unsafe { CStr::from_ptr(p.gcn_arch_name.as_ptr()) };
    assert!(arch.to_bytes().starts_with(b"gfx90a"));
    assert_eq!(
        (p.warp_size, p.multi_processor_count, p.major, p.minor),
        (64, 104, 9, 0)
    );
    let mut value = 0;
    ok!(hipDeviceGetAttribute(&mut value, 87, 0));
    assert_eq!(value, 64);
    fails!(hipDeviceGetAttribute(&mut value, 87, 99), INVALID_DEVICE);
    fails!(hipSetDevice(99), INVALID_DEVICE);
    fails!(hipGetDevice(null_mut()), INVALID_VALUE);
    // SAFETY: no arguments.
    assert_eq!(unsafe { hipGetLastError() }, code::INVALID_VALUE);
}

#[test]
fn a_kernel_adds_what_copies_brought() {
    const N: usize = 1000;
    let stream = new_stream(STREAM_NON_BLOCKING);
    let (mut a, mut b, mut c) = (device_memory(4 * N), device_memory(4 * N), null_mut());
    ok!(hipMallocAsync(&mut c, 4 * N, stream));
    let mut host: *mut c_void = null_mut();
    ok!(hipHostMalloc(&mut host, 4 * N, 0));
    // SAFETY: N floats of pinned memory.
    let pinned = unsafe { std::slice::from_raw_parts_mut(host.cast::<f32>(), N) };
    (0..N).for_each(|n| pinned[n] = n as f32);
    let pageable: Vec<f32> = (0..N).map(|n| 2.0 * n as f32).collect();
    ok!(hipMemcpyAsync(a, host, 4 * N, kind::HOST_TO_DEVICE, stream));
    ok!(hipMemcpyAsync(
        b,
        pageable.as_ptr().cast(),
        4 * N,
        kind::HOST_TO_DEVICE,
        stream
    ));
    let mut n = N as u32;
    let mut args = [arg(&mut c), arg(&mut a), arg(&mut b), arg(&mut n)];
    launch(kernel(c"add"), 16, 64, 0, stream, &mut args);
    ok!(hipMemcpyAsync(host, c, 4 * N, kind::DEVICE_TO_HOST, stream));
    ok!(hipStreamSynchronize(stream));
    assert!((0..N).all(|n| pinned[n] == 3.0 * n as f32));
    ok!(hipFreeAsync(c, stream));
    ok!(hipFree(a));
    ok!(hipFree(b));
    ok!(hipHostFree(host));
    ok!(hipStreamDestroy(stream));
    fails!(hipStreamSynchronize(stream), CONTEXT_IS_DESTROYED);
    fails!(hipFree(a), INVALID_VALUE);
}

#[test]
fn streams_keep_their_order() {
    const N: u32 = 4096;
    let data = device_memory(4 * N as usize);
    let stream = new_stream(0);
    // fill, kernel, kernel, copy within the device, kernel, copy back: each needs the one before.
    let twin = device_memory(4 * N as usize);
    for round in 0..50u32 {
        ok!(hipMemsetD32Async(data, round as i32, N as usize, stream));
        affine(data, 3, 1, N, stream);
        affine(data, 2, 5, N, stream);
        ok!(hipMemcpyAsync(
            twin,
            data,
            4 * N as usize,
            kind::DEVICE_TO_DEVICE,
            stream
        ));
        affine(twin, 1, 1, N, stream);
        let mut out = vec![0u32; N as usize];
        ok!(hipMemcpyAsync(
            out.as_mut_ptr().cast(),
            twin,
            4 * N as usize,
            kind::DEFAULT,
            stream
        ));
        ok!(hipStreamSynchronize(stream));
        assert!(
            out.iter().all(|&v| v == (round * 3 + 1) * 2 + 6),
            "round {round}: {}",
            out[0]
        );
    }
    ok!(hipStreamDestroy(stream));
    ok!(hipFree(data));
    ok!(hipFree(twin));
}

#[test]
fn the_null_stream_waits_for_blocking_streams_and_they_for_it() {
    const N: u32 = 1 << 16;
    let data = device_memory(4 * N as usize);
    let streams: Vec<Handle> = (0..6).map(|_| new_stream(0)).collect();
    ok!(hipMemset(data, 0, 4 * N as usize));
    let mut expected = 0u32;
    for round in 0..4 {
        for &stream in &streams {
            affine(data, 1, 1, N, stream);
            affine(data, 5, round, N, null_mut());
            expected = (expected.wrapping_add(1))
                .wrapping_mul(5)
                .wrapping_add(round);
        }
    }
    assert!(download(data, N as usize).iter().all(|&v| v == expected));
    streams
        .into_iter()
        .for_each(|stream| ok!(hipStreamDestroy(stream)));
    ok!(hipFree(data));
}

#[test]
fn events_order_streams_and_measure() {
    const N: u32 = 1 << 14;
    let data = device_memory(4 * N as usize);
    let (one, two) = (
        new_stream(STREAM_NON_BLOCKING),
        new_stream(STREAM_NON_BLOCKING),
    );
    let mut events = [null_mut(); 3];
    events
        .iter_mut()
        .for_each(|event| ok!(hipEventCreate(event)));
    ok!(hipMemsetAsync(data, 0, 4 * N as usize, one));
    ok!(hipEventRecord(events[0], one));
    let mut expected = 0u32;
    for round in 0..20u32 {
        affine(data, 3, round, N, one);
        ok!(hipEventRecord(events[1], one));
        ok!(hipStreamWaitEvent(two, events[1], 0));
        affine(data, 1, 7, N, two);
        ok!(hipEventRecord(events[2], two));
        ok!(hipStreamWaitEvent(one, events[2], 0));
        expected = expected.wrapping_mul(3).wrapping_add(round + 7);
    }
    ok!(hipEventSynchronize(events[2]));
    ok!(hipEventQuery(events[2]));
    let mut ms = -1.0;
    ok!(hipEventElapsedTime(&mut ms, events[0], events[2]));
    assert!(ms > 0.0 && ms < 60_000.0, "{ms}");
    ok!(hipDeviceSynchronize());
    assert!(download(data, N as usize).iter().all(|&v| v == expected));
    let mut fresh = null_mut();
    ok!(hipEventCreate(&mut fresh));
    fails!(
        hipEventElapsedTime(&mut ms, fresh, events[2]),
        INVALID_HANDLE
    );
    fails!(hipEventRecord(0x1234 as Handle, one), INVALID_HANDLE);
    for event in events.into_iter().chain([fresh]) {
        ok!(hipEventDestroy(event));
    }
    ok!(hipStreamDestroy(one));
    ok!(hipStreamDestroy(two));
    ok!(hipFree(data));
}

#[test]
fn host_functions_run_in_order() {
    static SEEN: AtomicU32 = AtomicU32::new(0);
    unsafe extern "C" fn look(data: *mut c_void) {
        std::thread::sleep(std::time::Duration::from_millis(20));
        // SAFETY: pinned memory of the test.
        SEEN.store(unsafe { data.cast::<u32>().read() }, Ordering::SeqCst);
        // SAFETY: as above.
        unsafe { data.cast::<u32>().write(1000) };
    }
    let stream = new_stream(0);
    let mut host: *mut c_void = null_mut();
    ok!(hipHostMalloc(&mut host, 256, 0));
    ok!(hipMemsetD32Async(host, 5, 64, stream));
    affine(host, 4, 2, 64, stream);
    ok!(hipLaunchHostFunc(stream, Some(look), host));
    affine(host, 2, 1, 64, stream);
    ok!(hipStreamSynchronize(stream));
    assert_eq!(SEEN.load(Ordering::SeqCst), 22);
    // SAFETY: pinned memory of the test.
    let numbers = unsafe { std::slice::from_raw_parts(host.cast::<u32>(), 2) };
    assert_eq!(numbers, [2001, 45]);
    ok!(hipHostFree(host));
    ok!(hipStreamDestroy(stream));
}

#[test]
fn rectangles_move_in_every_direction() {
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
fn fills_touch_exactly_their_range() {
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
fn addresses_are_known() {
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
fn registered_kernels_and_variables() {
    #[repr(C)]
    struct Wrapper(u32, u32, *const u8, *const u8);
    static STUB: u8 = 0;
    static SHADOW: AtomicU32 = AtomicU32::new(0);
    let wrapper = Wrapper(0x4849_5046, 1, KERNELS.as_ptr(), null());
    let stub: *const c_void = std::ptr::from_ref(&STUB).cast();
    let shadow: *mut c_void = SHADOW.as_ptr().cast();
    // SAFETY: what a compiler emits.
    let modules = unsafe { __hipRegisterFatBinary(std::ptr::from_ref(&wrapper).cast()) };
    // SAFETY: as above.
    unsafe {
        let none = null_mut::<c_void>();
        __hipRegisterFunction(
            modules,
            stub,
            none.cast(),
            c"bump".as_ptr(),
            0,
            none.cast(),
            none.cast(),
            none.cast(),
            none.cast(),
            none.cast(),
        );
        let name = c"counter".as_ptr().cast_mut();
        __hipRegisterVar(modules, shadow, name, name, 0, 4, 0, 0);
    }
    let one = Dim3 { x: 1, y: 1, z: 1 };
    let block = Dim3 { x: 64, y: 1, z: 1 };
    ok!(__hipPushCallConfiguration(one, block, 0, null_mut()));
    let (mut g, mut b, mut s, mut stream) = (block, one, 9, 9 as Handle);
    ok!(__hipPopCallConfiguration(
        &mut g,
        &mut b,
        &mut s,
        &mut stream
    ));
    assert_eq!((g, b, s, stream), (one, block, 0, null_mut()));
    fails!(
        __hipPopCallConfiguration(&mut g, &mut b, &mut s, &mut stream),
        MISSING_CONFIGURATION
    );
    let (mut out, mut by) = (device_memory(4), 5);
    let mut args = [arg(&mut out), arg(&mut by)];
    ok!(hipLaunchKernel(stub, g, b, args.as_mut_ptr(), 0, stream));
    assert_eq!(download(out, 1), [12]);
    let value = 100u32;
    ok!(hipMemcpyToSymbol(
        shadow,
        std::ptr::from_ref(&value).cast(),
        4,
        0,
        kind::HOST_TO_DEVICE
    ));
    ok!(hipLaunchKernel(stub, g, b, args.as_mut_ptr(), 0, stream));
    assert_eq!(download(out, 1), [105]);
    let mut now = 0u32;
    ok!(hipMemcpyFromSymbol(
        arg(&mut now),
        shadow,
        4,
        0,
        kind::DEVICE_TO_HOST
    ));
    assert_eq!(now, 105);
    fails!(
        hipLaunchKernel(0x99 as *const c_void, g, b, args.as_mut_ptr(), 0, stream),
        INVALID_DEVICE_FUNCTION
    );
    let big = Dim3 {
        x: 2048,
        y: 1,
        z: 1,
    };
    fails!(
        hipLaunchKernel(stub, g, big, args.as_mut_ptr(), 0, stream),
        INVALID_CONFIGURATION
    );
    ok!(hipFree(out));
    // SAFETY: the handle from above.
    unsafe { __hipUnregisterFatBinary(modules) };
    fails!(
        hipLaunchKernel(stub, g, b, args.as_mut_ptr(), 0, stream),
        INVALID_DEVICE_FUNCTION
    );
}

#[test]
fn packed_arguments_and_dynamic_local_memory() {
    const N: usize = 256;
    let data = device_memory(4 * N);
    let source: Vec<u32> = (0..N as u32).collect();
    ok!(hipMemcpyHtoD(data, source.as_ptr().cast(), 4 * N));
    // A pointer, and the offset of the local memory.
    let mut packed = [data as usize as u64, 0];
    let mut size = 12usize;
    let mut extra = [
        std::ptr::without_provenance_mut(1),
        packed.as_mut_ptr().cast(),
        std::ptr::without_provenance_mut(2),
        arg(&mut size),
        std::ptr::without_provenance_mut(3),
    ];
    let reverse = kernel(c"reverse");
    ok!(hipModuleLaunchKernel(
        reverse,
        2,
        1,
        1,
        128,
        1,
        1,
        512,
        null_mut(),
        null_mut(),
        extra.as_mut_ptr()
    ));
    let out = download(data, N);
    assert!(
        (0..N).all(|n| out[n] as usize == n / 128 * 128 + 127 - n % 128),
        "{out:?}"
    );
    fails!(
        hipModuleLaunchKernel(
            reverse,
            2,
            1,
            1,
            128,
            1,
            1,
            1 << 20,
            null_mut(),
            null_mut(),
            extra.as_mut_ptr()
        ),
        INVALID_VALUE
    );
    ok!(hipFree(data));
}

#[test]
fn modules_and_their_variables() {
    let mut module = null_mut();
    ok!(hipModuleLoadData(&mut module, KERNELS.as_ptr().cast()));
    let (mut address, mut size) = (null_mut(), 0);
    ok!(hipModuleGetGlobal(
        &mut address,
        &mut size,
        module,
        c"counter".as_ptr()
    ));
    assert_eq!(size, 4);
    assert_eq!(download(address, 1), [7]);
    let mut function = null_mut();
    fails!(
        hipModuleGetFunction(&mut function, module, c"missing".as_ptr()),
        NOT_FOUND
    );
    ok!(hipModuleUnload(module));
    fails!(
        hipModuleGetFunction(&mut function, module, c"add".as_ptr()),
        INVALID_HANDLE
    );
    let garbage = [0u8; 64];
    fails!(
        hipModuleLoadData(&mut module, garbage.as_ptr().cast()),
        INVALID_IMAGE
    );
    fails!(
        hipModuleLoad(&mut module, c"/nonexistent".as_ptr()),
        FILE_NOT_FOUND
    );
}

#[test]
fn captured_work_runs_when_launched() {
    const N: u32 = 256;
    let data = device_memory(4 * N as usize);
    let (stream, side) = (
        new_stream(STREAM_NON_BLOCKING),
        new_stream(STREAM_NON_BLOCKING),
    );
    ok!(hipMemset(data, 0, 4 * N as usize));
    let (mut fork, mut join) = (null_mut(), null_mut());
    ok!(hipEventCreate(&mut fork));
    ok!(hipEventCreate(&mut join));
    ok!(hipStreamBeginCapture(stream, 0));
    affine(data, 1, 1, N, stream);
    ok!(hipEventRecord(fork, stream));
    ok!(hipStreamWaitEvent(side, fork, 0));
    affine(data, 2, 0, N, side);
    ok!(hipEventRecord(join, side));
    ok!(hipStreamWaitEvent(stream, join, 0));
    affine(data, 1, 3, N, stream);
    fails!(hipStreamSynchronize(stream), STREAM_CAPTURE_UNSUPPORTED);
    let mut graph = null_mut();
    ok!(hipStreamEndCapture(stream, &mut graph));
    assert!(
        download(data, 4).iter().all(|&v| v == 0),
        "capturing must not run anything"
    );
    let mut count = 0;
    ok!(hipGraphGetNodes(graph, null_mut(), &mut count));
    assert_eq!(count, 3);
    let mut exec = null_mut();
    ok!(hipGraphInstantiate(
        &mut exec,
        graph,
        null_mut(),
        null_mut(),
        0
    ));
    ok!(hipGraphDestroy(graph));
    for _ in 0..3 {
        ok!(hipGraphLaunch(exec, stream));
    }
    ok!(hipStreamSynchronize(stream));
    // x -> 2(x+1)+3 from 0: 5, 15, 35.
    assert!(download(data, N as usize).iter().all(|&v| v == 35));
    ok!(hipGraphExecDestroy(exec));
    ok!(hipEventDestroy(fork));
    ok!(hipEventDestroy(join));
    ok!(hipStreamDestroy(stream));
    ok!(hipStreamDestroy(side));
    ok!(hipFree(data));
}

#[test]
fn streams_write_and_await_values() {
    let mut host: *mut c_void = null_mut();
    ok!(hipHostMalloc(&mut host, 64, 0));
    let flag = (host as usize + 8) as *mut c_void;
    // SAFETY: pinned memory of the test.
    unsafe { host.cast::<u64>().write(0) };
    let (one, two) = (
        new_stream(STREAM_NON_BLOCKING),
        new_stream(STREAM_NON_BLOCKING),
    );
    ok!(hipStreamWriteValue32(one, flag, 77, 0));
    ok!(hipStreamSynchronize(one));
    ok!(hipStreamWaitValue32(two, flag, 77, 1, u32::MAX));
    ok!(hipStreamWriteValue64(two, host, 9, 0));
    ok!(hipStreamSynchronize(two));
    // SAFETY: as above.
    assert_eq!(unsafe { host.cast::<u64>().read() }, 9);
    ok!(hipStreamDestroy(one));
    ok!(hipStreamDestroy(two));
    ok!(hipHostFree(host));
}

#[test]
fn more_launches_than_the_argument_ring_holds() {
    const N: u32 = 64;
    let data = device_memory(4 * N as usize);
    ok!(hipMemset(data, 0, 4 * N as usize));
    let stream = new_stream(STREAM_NON_BLOCKING);
    for _ in 0..5000 {
        affine(data, 1, 1, N, stream);
    }
    ok!(hipStreamSynchronize(stream));
    assert!(download(data, N as usize).iter().all(|&v| v == 5000));
    ok!(hipStreamDestroy(stream));
    ok!(hipFree(data));
}

#[test]
fn threads_have_streams_of_their_own() {
    const PER_THREAD: usize = 2;
    let threads: Vec<_> = (0..8u32)
        .map(|t| {
            std::thread::spawn(move || {
                const N: u32 = 512;
                let data = device_memory(4 * N as usize);
                let stream = PER_THREAD as Handle;
                ok!(hipMemsetD32Async(data, t as i32, N as usize, stream));
                for _ in 0..20 {
                    affine(data, 1, 2, N, stream);
                }
                ok!(hipStreamSynchronize(stream));
                assert!(download(data, N as usize).iter().all(|&v| v == t + 40));
                ok!(hipFree(data));
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().expect("the thread's checks hold"));
}

#[test]
fn recursion_has_the_stack_of_the_device_limit() {
    const STACK: u32 = 0;
    static SPILLS: &[u8] = include_bytes!("../../../rpd-gfx/testdata/spills.co");
    let (mut module, mut function) = (null_mut(), null_mut());
    ok!(hipModuleLoadData(&mut module, SPILLS.as_ptr().cast()));
    ok!(hipModuleGetFunction(
        &mut function,
        module,
        c"recurse".as_ptr()
    ));
    let out = device_memory(256 * 4);
    let depth = |n: u32| 3 + (1..=n).map(|n| n + (n & 3)).sum::<u32>();
    let check = |levels: u32| {
        let (mut pointer, mut n) = (out, levels);
        launch(
            function,
            1,
            256,
            0,
            null_mut(),
            &mut [arg(&mut pointer), arg(&mut n)],
        );
        let expected: Vec<u32> = (0..256).map(|i| depth(levels + (i & 1))).collect();
        assert_eq!(download(out, 256), expected, "{levels} levels");
    };
    let mut before = 0;
    ok!(hipDeviceGetLimit(&mut before, STACK));
    assert_eq!(before, 1024);
    // A frame takes 96 bytes: more than the kernel's own 128, less than the limit.
    check(6);
    ok!(hipDeviceSetLimit(STACK, 16 << 10));
    check(100);
    ok!(hipDeviceSetLimit(STACK, before));
    ok!(hipFree(out));
    ok!(hipModuleUnload(module));
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
    // SAFETY: pinned memory of so many numbers.
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
