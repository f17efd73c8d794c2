//! Kernels, their arguments, modules and stacks.

use super::*;

#[test]
fn a_kernel_adds_copied_numbers() {
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
fn registered_kernels_and_variables_are_found() {
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
fn launches_take_packed_arguments_and_dynamic_local_memory() {
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
fn modules_have_variables() {
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
        hipModuleLoad(&mut module, c"/proc/nonexistent".as_ptr()),
        FILE_NOT_FOUND
    );
}

#[test]
fn launches_beyond_the_argument_ring_run_in_order() {
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
fn recursive_kernels_have_the_stack_of_the_device_limit() {
    const STACK: u32 = 0;
    static SPILLS: &[u8] = include_bytes!("../../../../rpd-gfx/testdata/spills.co");
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
fn the_constant_size_of_a_kernel_equals_that_of_the_real_runtime() {
    // `counter` has four bytes; one is taken off for the variable that hipcc adds to each module, which this one lacks.
    let mut bytes = 0;
    ok!(hipFuncGetAttribute(&mut bytes, 2, kernel(c"affine")));
    assert_eq!(bytes, 3);
}
