//! Kernel launches over several devices.

use super::*;
use crate::hip::launch::multi_device_api::*;
use crate::hip::types::{FunctionLaunchParams, LaunchParams};

const N: u32 = 64;

/// Host stub of the kernel `affine`, registered as a compiler does it.
fn stub() -> *mut c_void {
    #[repr(C)]
    struct Wrapper(u32, u32, usize, usize);
    static STUB: u8 = 0;
    static REGISTERED: std::sync::Once = std::sync::Once::new();
    let stub = std::ptr::from_ref(&STUB).cast::<c_void>();
    REGISTERED.call_once(|| {
        let wrapper = Box::leak(Box::new(Wrapper(
            0x4849_5046,
            1,
            KERNELS.as_ptr() as usize,
            0,
        )));
        let none = null_mut::<c_void>();
        // SAFETY: what a compiler emits; the wrapper stays.
        unsafe {
            let modules = __hipRegisterFatBinary(std::ptr::from_ref(wrapper).cast());
            let name = c"affine".as_ptr();
            __hipRegisterFunction(
                modules,
                stub,
                none.cast(),
                name,
                0,
                none.cast(),
                none.cast(),
                none.cast(),
                none.cast(),
                none.cast(),
            );
        }
    });
    stub.cast_mut()
}

fn linear(x: u32) -> Dim3 {
    Dim3 { x, y: 1, z: 1 }
}

#[test]
fn multi_device_launches_run_on_captured_streams_at_once() {
    let _alone = Alone::new();
    let mut data = device_memory(4 * N as usize);
    let stream = new_stream(0);
    let (mut factor, mut term, mut n) = (1u32, 1u32, N);
    let mut args = [
        arg(&mut data),
        arg(&mut factor),
        arg(&mut term),
        arg(&mut n),
    ];
    let mut launch = LaunchParams {
        func: stub(),
        grid: linear(1),
        block: linear(N),
        args: args.as_mut_ptr(),
        shared: 0,
        stream,
    };
    let mut by_handle = FunctionLaunchParams {
        function: kernel(c"affine"),
        grid: linear(1),
        block: linear(N),
        shared: 0,
        stream,
        args: args.as_mut_ptr(),
    };
    ok!(hipMemset(data, 0, 4 * N as usize));
    let (mut graph, mut count) = (null_mut(), 9);
    ok!(hipStreamBeginCapture(stream, 2));
    ok!(hipLaunchCooperativeKernelMultiDevice(&mut launch, 1, 0));
    ok!(hipExtLaunchMultiKernelMultiDevice(&mut launch, 1, 0));
    ok!(hipModuleLaunchCooperativeKernelMultiDevice(
        &mut by_handle,
        1,
        0
    ));
    ok!(hipStreamEndCapture(stream, &mut graph));
    ok!(hipGraphGetNodes(graph, null_mut(), &mut count));
    assert_eq!(count, 0);
    assert_eq!(download(data, N as usize), [3; N as usize]);
    ok!(hipGraphDestroy(graph));
}

#[test]
fn multi_device_launches_without_cooperation_are_checked() {
    let mut launch = LaunchParams {
        func: stub(),
        grid: linear(1),
        block: linear(N),
        args: null_mut(),
        shared: 0,
        stream: null_mut(),
    };
    let list = std::ptr::from_mut(&mut launch);
    fails!(
        hipExtLaunchMultiKernelMultiDevice(list, 1, 0),
        INVALID_HANDLE
    );
    launch.stream = new_stream(0);
    let list = std::ptr::from_mut(&mut launch);
    fails!(
        hipExtLaunchMultiKernelMultiDevice(list, 0, 0),
        INVALID_VALUE
    );
    fails!(
        hipExtLaunchMultiKernelMultiDevice(list, 1, 4),
        INVALID_VALUE
    );
    fails!(
        hipExtLaunchMultiKernelMultiDevice(null_mut(), 1, 0),
        INVALID_VALUE
    );
}
