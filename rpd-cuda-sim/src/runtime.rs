//! Functions of the runtime, which call the driver.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cupti_sys::callback::resource;

use crate::calls::{Two, runtime};
use crate::device::{self, Kernel, Stream, Work, status};
use crate::driver;

/// Numbers of functions.
mod function {
    pub(super) const GET_LAST_ERROR: u32 = 10;
    pub(super) const GET_DEVICE: u32 = 17;
    pub(super) const MALLOC: u32 = 20;
    pub(super) const FREE: u32 = 22;
    pub(super) const MEMCPY_ASYNC: u32 = 41;
    pub(super) const MEMSET_ASYNC: u32 = 51;
    pub(super) const STREAM_CREATE: u32 = 129;
    pub(super) const STREAM_SYNCHRONIZE: u32 = 131;
    pub(super) const DEVICE_SYNCHRONIZE: u32 = 165;
    pub(super) const LAUNCH_KERNEL: u32 = 211;
    pub(super) const GRAPH_LAUNCH: u32 = 311;
    pub(super) const STREAM_BEGIN_CAPTURE: u32 = 315;
    pub(super) const STREAM_END_CAPTURE: u32 = 319;
    pub(super) const GRAPH_INSTANTIATE: u32 = 443;
    /// Beyond those that tools know.
    pub(super) const NEWER: u32 = 567;
}

/// A struct of three numbers, as it is passed.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dim3 {
    x: c_uint,
    y: c_uint,
    z: c_uint,
}

/// Kernels by the address that programs launch them by.
fn kernels<T>(act: impl FnOnce(&mut HashMap<usize, Kernel>) -> T) -> T {
    static KERNELS: Mutex<Option<HashMap<usize, Kernel>>> = Mutex::new(None);
    let mut kernels = KERNELS.lock().unwrap_or_else(PoisonError::into_inner);
    act(kernels.get_or_insert_default())
}

/// Makes a kernel known by an address, in the place of what compilers generate for that.
///
/// # Safety
///
/// `name` is text.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn rpd_cuda_sim_register(
    stub: *const c_void,
    name: *const c_char,
) -> c_int {
    // SAFETY: by the contract of this function.
    let Some(kernel) = Kernel::from_name(unsafe { CStr::from_ptr(name) }) else {
        return 1;
    };
    kernels(|kernels| kernels.insert(stub as usize, kernel));
    0
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cudaGetDevice(device: *mut c_int) -> u32 {
    driver::initialize();
    runtime(function::GET_DEVICE, &device, || {
        // SAFETY: the caller's place for it.
        unsafe { device.write(0) };
        status::SUCCESS
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cudaGetLastError() -> u32 {
    runtime(function::GET_LAST_ERROR, &(), || status::SUCCESS)
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cudaMalloc(address: *mut usize, bytes: usize) -> u32 {
    driver::initialize();
    runtime(function::MALLOC, &[address as usize, bytes], || {
        driver::ctx_get_current();
        driver::cuMemAlloc_v2(address, bytes)
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cudaFree(address: usize) -> u32 {
    driver::initialize();
    runtime(function::FREE, &address, || match address {
        0 => status::SUCCESS,
        address => driver::cuMemFree_v2(address),
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cudaMemcpyAsync(
    to: usize,
    from: usize,
    bytes: usize,
    kind: c_uint,
    stream: *const Stream,
) -> u32 {
    #[repr(C)]
    struct Parameters(usize, usize, usize, c_uint, *const Stream);
    let parameters = Parameters(to, from, bytes, kind, stream);
    runtime(function::MEMCPY_ASYNC, &parameters, || match kind {
        1 => driver::copy(1, to, from, bytes, stream),
        2 => driver::copy(2, to, from, bytes, stream),
        3 => driver::copy(8, to, from, bytes, stream),
        _ => 21,
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cudaMemsetAsync(
    address: usize,
    value: c_int,
    bytes: usize,
    stream: *const Stream,
) -> u32 {
    #[repr(C)]
    struct Parameters(usize, c_int, usize, *const Stream);
    runtime(
        function::MEMSET_ASYNC,
        &Parameters(address, value, bytes, stream),
        || driver::fill(address, value as u8, bytes, stream),
    )
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cudaStreamCreate(stream: *mut *const Stream) -> u32 {
    driver::initialize();
    runtime(function::STREAM_CREATE, &stream, || {
        driver::cuStreamCreate(stream, 0)
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cudaStreamSynchronize(stream: *const Stream) -> u32 {
    runtime(function::STREAM_SYNCHRONIZE, &stream, || {
        driver::cuStreamSynchronize(stream)
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cudaDeviceSynchronize() -> u32 {
    runtime(function::DEVICE_SYNCHRONIZE, &(), || {
        driver::cuCtxSynchronize()
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cudaLaunchKernel(
    stub: *const c_void,
    grid: Dim3,
    block: Dim3,
    arguments: *const *const c_void,
    shared: usize,
    stream: *const Stream,
) -> u32 {
    #[repr(C)]
    struct Parameters(
        *const c_void,
        Dim3,
        Dim3,
        *const *const c_void,
        usize,
        *const Stream,
    );
    driver::initialize();
    let parameters = Parameters(stub, grid, block, arguments, shared, stream);
    runtime(function::LAUNCH_KERNEL, &parameters, || {
        let Some(kernel) = kernels(|kernels| kernels.get(&(stub as usize)).copied()) else {
            return status::INVALID_VALUE;
        };
        let (grid, block) = ([grid.x, grid.y, grid.z], [block.x, block.y, block.z]);
        driver::launch(kernel, grid, block, shared as u32, stream, arguments)
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cudaStreamBeginCapture(stream: *const Stream, mode: c_uint) -> u32 {
    runtime(function::STREAM_BEGIN_CAPTURE, &Two(stream, mode), || {
        // SAFETY: null, or a handle of ours.
        let Some(stream) = (unsafe { stream.as_ref() }) else {
            return status::INVALID_VALUE;
        };
        *stream
            .captures
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(Vec::new());
        status::SUCCESS
    })
}

/// A graph; its address is the program's handle.
pub(crate) struct Graph {
    number: u32,
    /// Address by which the tool knows it.
    known_as: usize,
    nodes: Vec<Work>,
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cudaStreamEndCapture(
    stream: *const Stream,
    graph: *mut *const Graph,
) -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    runtime(
        function::STREAM_END_CAPTURE,
        &[stream as usize, graph as usize],
        || {
            // SAFETY: null, or a handle of ours.
            let Some(captured) = (unsafe { stream.as_ref() }) else {
                return status::INVALID_VALUE;
            };
            let nodes = captured
                .captures
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            let made = Box::leak(Box::new(Graph {
                number: NEXT.fetch_add(1, Ordering::Relaxed),
                known_as: stream as usize,
                nodes: nodes.unwrap_or_default(),
            }));
            // SAFETY: the caller's place for it.
            unsafe { graph.write(made) };
            status::SUCCESS
        },
    )
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cudaGraphInstantiate(
    exec: *mut *const Graph,
    graph: *const Graph,
    flags: u64,
) -> u32 {
    let parameters = [exec as u64, graph as u64, flags];
    runtime(function::GRAPH_INSTANTIATE, &parameters, || {
        // SAFETY: null, or a handle of ours; the caller's place for the other one.
        unsafe {
            let Some(found) = graph.as_ref() else {
                return status::INVALID_VALUE;
            };
            let known_as = found.known_as;
            device::graph_callback(resource::GRAPH_EXEC_CREATE_STARTING, known_as, 0, 0);
            for (index, node) in (1..).zip(&found.nodes) {
                let copy = device::node_handle(u64::from(found.number) << 32 | index);
                device::graph_callback(resource::GRAPH_NODE_CLONED, known_as, copy, node.handle);
            }
            exec.write(graph);
        }
        status::SUCCESS
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cudaGraphLaunch(exec: *const Graph, stream: *const Stream) -> u32 {
    runtime(
        function::GRAPH_LAUNCH,
        &[exec as usize, stream as usize],
        || {
            // SAFETY: null, or a handle of ours.
            let Some(graph) = (unsafe { exec.as_ref() }) else {
                return status::INVALID_VALUE;
            };
            device::launch_graph(graph.number, &graph.nodes, stream);
            status::SUCCESS
        },
    )
}

/// A function that tools do not know: it takes a millisecond.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cudaFromTheFuture() -> u32 {
    driver::initialize();
    runtime(function::NEWER, &(), || {
        device::settle(Duration::from_millis(1));
        status::SUCCESS
    })
}
