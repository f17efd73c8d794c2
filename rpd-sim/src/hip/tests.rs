//! The API as a program uses it, calling the implementations directly.

use core::ffi::{CStr, c_void};
use std::cell::Cell;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock, RwLockWriteGuard, TryLockError};
use std::time::Duration;

use super::error::{code, hipGetLastError};
use super::types::{Handle, PointerAttributes, STREAM_NON_BLOCKING, kind};
use crate::api::types::Dim3;
use crate::hip::copy::api::*;
use crate::hip::copy::fill_api::*;
use crate::hip::device::api::*;
use crate::hip::device::props::Properties;
use crate::hip::graph::api::*;
use crate::hip::graph::capture_api::*;
use crate::hip::launch::api::*;
use crate::hip::memory::api::*;
use crate::hip::memory::pointer::*;
use crate::hip::memory::pool::*;
use crate::hip::module::fatbin::{
    __hipRegisterFatBinary, __hipRegisterFunction, __hipRegisterVar, __hipUnregisterFatBinary,
};
use crate::hip::module::{
    hipFuncGetAttribute, hipModuleGetFunction, hipModuleGetGlobal, hipModuleLoad,
    hipModuleLoadData, hipModuleUnload,
};
use crate::hip::stream::api::*;
use crate::hip::stream::event::*;
use crate::hip::stream::value::*;

static KERNELS: &[u8] = include_bytes!("testdata/kernels.co");

macro_rules! ok {
    ($call:expr) => {{
        // SAFETY: arguments of the tests' own making.
        let status = in_turn(|| unsafe { $call });
        assert_eq!(status, code::SUCCESS, stringify!($call));
    }};
}

macro_rules! fails {
    ($call:expr, $error:ident) => {{
        // SAFETY: the point of the test: wrong arguments are refused.
        let status = in_turn(|| unsafe { $call });
        assert_eq!(status, code::$error, stringify!($call));
    }};
}

/// Lock that a test which captures a stream holds for writing, and each call of other tests for reading: some of these
/// calls would be refused and end the capture.
static TURN: RwLock<()> = RwLock::new(());

thread_local! {
    static HAS_TURN: Cell<bool> = const { Cell::new(false) };
}

/// Makes a call while no test of another thread captures.
fn in_turn<T>(call: impl FnOnce() -> T) -> T {
    if HAS_TURN.get() {
        return call();
    }
    let _turn = TURN.read().unwrap_or_else(PoisonError::into_inner);
    call()
}

/// Permission for a test to capture a stream, while no other test makes calls.
struct Alone(Option<RwLockWriteGuard<'static, ()>>);

impl Alone {
    fn new() -> Alone {
        // Calls of other threads may wait for each other, so that none must wait for this one to get its turn.
        let turn = loop {
            match TURN.try_write() {
                Ok(turn) => break turn,
                Err(TryLockError::Poisoned(turn)) => break turn.into_inner(),
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        HAS_TURN.set(true);
        Alone(Some(turn))
    }

    /// Runs `body` in another thread and returns its result.
    fn elsewhere<T: Send>(&self, body: impl FnOnce() -> T + Send) -> T {
        let run = || {
            HAS_TURN.set(true);
            body()
        };
        let ended = std::thread::scope(|scope| scope.spawn(run).join());
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        HAS_TURN.set(false);
        self.0 = None;
    }
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

/// Launches a kernel that computes `data[i] * factor + term` for `n` numbers in place.
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

mod captures;
mod copies;
mod coverage;
mod graphs;
mod images;
mod kernels;
mod later;
mod mipmapped;
mod multi_device;
mod streams;
mod texture_references;
mod virtual_memory;

#[test]
fn hip_describes_devices() {
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
