//! The launch functions of the API.

use core::ffi::{c_int, c_void};
use std::cell::RefCell;
use std::sync::Arc;

use crate::api::types::Dim3 as ApiDim3;
use crate::hip::error::{HipResult, api, code, put};
use crate::hip::graph::{self, Op};
use crate::hip::launch::{self, Geometry, KernelOp};
use crate::hip::module;
use crate::hip::module::fatbin;
use crate::hip::module::function::Function;
use crate::hip::runtime;
use crate::hip::stream::event::Event;
use crate::hip::stream::{self, Stream};
use crate::hip::types::{Dim3, Handle};

pub(crate) type Params = *mut *mut c_void;

fn dim(d: ApiDim3) -> Dim3 {
    Dim3::new(d.x, d.y, d.z)
}

/// Checks a launch and enqueues it. All workgroups of a cooperative launch must fit on the device at the same time.
///
/// # Safety
/// As for [`launch::gather`].
pub(crate) unsafe fn submit(
    stream: &Stream,
    named: *const c_void,
    function: Arc<Function>,
    geometry: Geometry,
    params: Params,
    extra: Params,
) -> HipResult {
    launch::check(&function, &geometry)?;
    if geometry.cooperative {
        check_cooperative(&function, &geometry)?;
    }
    // SAFETY: by contract.
    let args = unsafe { launch::gather(&function, params, extra)? };
    graph::submit(
        stream,
        Op::Kernel(KernelOp {
            named: named as usize,
            function,
            geometry,
            args,
        }),
    )
}

fn geometry(grid: Dim3, block: Dim3, shared: usize) -> HipResult<Geometry> {
    let shared = u32::try_from(shared).map_err(|_| code::INVALID_VALUE)?;
    Ok(Geometry {
        grid,
        block,
        shared,
        cooperative: false,
    })
}

/// # Safety
/// `args` points to a pointer for each argument of the kernel.
pub(crate) unsafe fn by_stub(
    stream: HipResult<Arc<Stream>>,
    stub: *const c_void,
    grid: Dim3,
    block: Dim3,
    args: Params,
    shared: usize,
) -> HipResult {
    let stream = stream?;
    if stub.is_null() {
        return Err(code::INVALID_DEVICE_FUNCTION);
    }
    let function = fatbin::function_on(stub, stream.device)?;
    let geometry = geometry(grid, block, shared)?;
    // SAFETY: by contract.
    unsafe {
        submit(
            &stream,
            stub,
            function,
            geometry,
            args,
            std::ptr::null_mut(),
        )
    }
}

pub(crate) unsafe extern "C" fn hipLaunchKernel(
    stub: *const c_void,
    grid: ApiDim3,
    block: ApiDim3,
    args: Params,
    shared: usize,
    stream: Handle,
) -> u32 {
    // SAFETY: compilers emit this call with the kernel's arguments.
    api(|| unsafe {
        by_stub(
            stream::resolve(stream),
            stub,
            dim(grid),
            dim(block),
            args,
            shared,
        )
    })
}

pub(crate) unsafe extern "C" fn hipLaunchKernel_spt(
    stub: *const c_void,
    grid: ApiDim3,
    block: ApiDim3,
    args: Params,
    shared: usize,
    stream: Handle,
) -> u32 {
    // SAFETY: as above.
    api(|| unsafe {
        by_stub(
            stream::resolve_spt(stream),
            stub,
            dim(grid),
            dim(block),
            args,
            shared,
        )
    })
}

/// The most workgroups that can run at the same time, which cooperative launches must not exceed.
pub(crate) fn check_cooperative(function: &Function, geometry: &Geometry) -> HipResult {
    let per_unit = crate::hip::module::occupancy::blocks_per_unit(
        function,
        geometry.block.volume(),
        geometry.shared as usize,
    );
    let units = u64::from(function.device.figures.compute_units);
    if geometry.grid.volume() > u64::from(per_unit) * units {
        return Err(code::COOPERATIVE_LAUNCH_TOO_LARGE);
    }
    Ok(())
}

/// # Safety
/// `args` points to a pointer for each argument of the kernel.
unsafe fn cooperative(
    stream: HipResult<Arc<Stream>>,
    stub: *const c_void,
    grid: Dim3,
    block: Dim3,
    args: Params,
    shared: u32,
) -> HipResult {
    let stream = stream?;
    let function = fatbin::function_on(stub, stream.device)?;
    let geometry = Geometry {
        grid,
        block,
        shared,
        cooperative: true,
    };
    // SAFETY: by contract.
    unsafe {
        submit(
            &stream,
            stub,
            function,
            geometry,
            args,
            std::ptr::null_mut(),
        )
    }
}

pub(crate) unsafe extern "C" fn hipLaunchCooperativeKernel(
    stub: *const c_void,
    grid: ApiDim3,
    block: ApiDim3,
    args: Params,
    shared: u32,
    stream: Handle,
) -> u32 {
    // SAFETY: the caller's arguments.
    api(|| unsafe {
        cooperative(
            stream::resolve(stream),
            stub,
            dim(grid),
            dim(block),
            args,
            shared,
        )
    })
}

pub(crate) unsafe extern "C" fn hipLaunchCooperativeKernel_spt(
    stub: *const c_void,
    grid: ApiDim3,
    block: ApiDim3,
    args: Params,
    shared: u32,
    stream: Handle,
) -> u32 {
    // SAFETY: the caller's arguments.
    api(|| unsafe {
        cooperative(
            stream::resolve_spt(stream),
            stub,
            dim(grid),
            dim(block),
            args,
            shared,
        )
    })
}

fn event(handle: Handle) -> HipResult<Option<Arc<Event>>> {
    if handle.is_null() {
        Ok(None)
    } else {
        runtime::get()?.event(handle).map(Some)
    }
}

/// Enqueues `body` between two events, where they are given.
fn between(
    stream: &Stream,
    start: Handle,
    stop: Handle,
    body: impl FnOnce() -> HipResult,
) -> HipResult {
    let (start, stop) = (event(start)?, event(stop)?);
    if let Some(event) = start {
        graph::submit(stream, Op::Record(event))?;
    }
    body()?;
    match stop {
        Some(event) => graph::submit(stream, Op::Record(event)),
        None => Ok(()),
    }
}

#[allow(clippy::too_many_arguments)]
pub(crate) unsafe extern "C" fn hipExtLaunchKernel(
    stub: *const c_void,
    grid: ApiDim3,
    block: ApiDim3,
    args: Params,
    shared: usize,
    stream: Handle,
    start: Handle,
    stop: Handle,
    _flags: c_int,
) -> u32 {
    api(|| {
        let stream = stream::resolve(stream)?;
        between(&stream, start, stop, || {
            // SAFETY: the caller's arguments.
            unsafe {
                by_stub(
                    Ok(Arc::clone(&stream)),
                    stub,
                    dim(grid),
                    dim(block),
                    args,
                    shared,
                )
            }
        })
    })
}

#[allow(clippy::too_many_arguments)]
pub(crate) unsafe extern "C" fn hipModuleLaunchKernel(
    function: Handle,
    grid_x: u32,
    grid_y: u32,
    grid_z: u32,
    block_x: u32,
    block_y: u32,
    block_z: u32,
    shared: u32,
    stream: Handle,
    params: Params,
    extra: Params,
) -> u32 {
    api(|| {
        let stream = stream::resolve(stream)?;
        let named = function;
        let function = module::function(named)?;
        if !params.is_null() && !extra.is_null() {
            return Err(code::INVALID_VALUE);
        }
        let geometry = Geometry {
            grid: Dim3::new(grid_x, grid_y, grid_z),
            block: Dim3::new(block_x, block_y, block_z),
            shared,
            cooperative: false,
        };
        // SAFETY: the caller's arguments.
        unsafe { submit(&stream, named, function, geometry, params, extra) }
    })
}

#[allow(clippy::too_many_arguments)]
pub(crate) unsafe extern "C" fn hipModuleLaunchCooperativeKernel(
    function: Handle,
    grid_x: u32,
    grid_y: u32,
    grid_z: u32,
    block_x: u32,
    block_y: u32,
    block_z: u32,
    shared: u32,
    stream: Handle,
    params: Params,
) -> u32 {
    api(|| {
        let stream = stream::resolve(stream)?;
        let named = function;
        let function = module::function(named)?;
        let geometry = Geometry {
            grid: Dim3::new(grid_x, grid_y, grid_z),
            block: Dim3::new(block_x, block_y, block_z),
            shared,
            cooperative: true,
        };
        // SAFETY: the caller's arguments.
        unsafe {
            submit(
                &stream,
                named,
                function,
                geometry,
                params,
                std::ptr::null_mut(),
            )
        }
    })
}

/// A launch whose size counts work-items; it must be made of whole workgroups.
#[allow(clippy::too_many_arguments)]
fn global_launch(
    function: Handle,
    global: [u32; 3],
    local: [u32; 3],
    shared: usize,
    stream: Handle,
    (params, extra): (Params, Params),
    (start, stop): (Handle, Handle),
) -> HipResult {
    if local.contains(&0) || global.iter().zip(local).any(|(g, l)| g % l != 0) {
        return Err(code::INVALID_CONFIGURATION);
    }
    let stream = stream::resolve(stream)?;
    let named = function;
    let function = module::function(named)?;
    let grid = Dim3::new(
        global[0] / local[0],
        global[1] / local[1],
        global[2] / local[2],
    );
    let geometry = geometry(grid, Dim3::new(local[0], local[1], local[2]), shared)?;
    between(&stream, start, stop, || {
        // SAFETY: the caller's arguments.
        unsafe { submit(&stream, named, function, geometry, params, extra) }
    })
}

#[allow(clippy::too_many_arguments)]
pub(crate) unsafe extern "C" fn hipExtModuleLaunchKernel(
    function: Handle,
    global_x: u32,
    global_y: u32,
    global_z: u32,
    local_x: u32,
    local_y: u32,
    local_z: u32,
    shared: usize,
    stream: Handle,
    params: Params,
    extra: Params,
    start: Handle,
    stop: Handle,
    _flags: u32,
) -> u32 {
    let sizes = ([global_x, global_y, global_z], [local_x, local_y, local_z]);
    api(|| {
        global_launch(
            function,
            sizes.0,
            sizes.1,
            shared,
            stream,
            (params, extra),
            (start, stop),
        )
    })
}

#[allow(clippy::too_many_arguments)]
pub(crate) unsafe extern "C" fn hipHccModuleLaunchKernel(
    function: Handle,
    global_x: u32,
    global_y: u32,
    global_z: u32,
    local_x: u32,
    local_y: u32,
    local_z: u32,
    shared: usize,
    stream: Handle,
    params: Params,
    extra: Params,
    start: Handle,
    stop: Handle,
) -> u32 {
    let sizes = ([global_x, global_y, global_z], [local_x, local_y, local_z]);
    api(|| {
        global_launch(
            function,
            sizes.0,
            sizes.1,
            shared,
            stream,
            (params, extra),
            (start, stop),
        )
    })
}

/// The launch configuration of `<<<...>>>`, passed from the call to the stub.
#[derive(Debug, Clone)]
struct Configuration {
    grid: ApiDim3,
    block: ApiDim3,
    shared: usize,
    stream: usize,
    /// Arguments given with `hipSetupArgument`.
    args: Vec<u8>,
}

thread_local! {
    static CONFIGURATIONS: RefCell<Vec<Configuration>> = const { RefCell::new(Vec::new()) };
}

fn configure(grid: ApiDim3, block: ApiDim3, shared: usize, stream: Handle) -> HipResult {
    let entry = Configuration {
        grid,
        block,
        shared,
        stream: stream as usize,
        args: Vec::new(),
    };
    CONFIGURATIONS.with_borrow_mut(|stack| stack.push(entry));
    Ok(())
}

pub(crate) unsafe extern "C" fn __hipPushCallConfiguration(
    grid: ApiDim3,
    block: ApiDim3,
    shared: usize,
    stream: Handle,
) -> u32 {
    api(|| configure(grid, block, shared, stream))
}

pub(crate) unsafe extern "C" fn hipConfigureCall(
    grid: ApiDim3,
    block: ApiDim3,
    shared: usize,
    stream: Handle,
) -> u32 {
    api(|| configure(grid, block, shared, stream))
}

fn pop() -> HipResult<Configuration> {
    CONFIGURATIONS
        .with_borrow_mut(Vec::pop)
        .ok_or(code::MISSING_CONFIGURATION)
}

pub(crate) unsafe extern "C" fn __hipPopCallConfiguration(
    grid: *mut ApiDim3,
    block: *mut ApiDim3,
    shared: *mut usize,
    stream: *mut Handle,
) -> u32 {
    api(|| {
        let entry = pop()?;
        // SAFETY: the stub's locals, checked for null.
        unsafe {
            put(grid, entry.grid)?;
            put(block, entry.block)?;
            put(shared, entry.shared)?;
            put(stream, entry.stream as Handle)
        }
    })
}

pub(crate) unsafe extern "C" fn hipSetupArgument(
    argument: *const c_void,
    size: usize,
    offset: usize,
) -> u32 {
    api(|| {
        let end = offset
            .checked_add(size)
            .filter(|end| *end <= 4096)
            .ok_or(code::INVALID_VALUE)?;
        if argument.is_null() {
            return Err(code::INVALID_VALUE);
        }
        CONFIGURATIONS.with_borrow_mut(|stack| {
            let entry = stack.last_mut().ok_or(code::MISSING_CONFIGURATION)?;
            if entry.args.len() < end {
                entry.args.resize(end, 0);
            }
            let target = &mut entry.args[offset..end];
            // SAFETY: the caller's value of `size` bytes.
            unsafe { std::ptr::copy_nonoverlapping(argument.cast(), target.as_mut_ptr(), size) };
            Ok(())
        })
    })
}

pub(crate) unsafe extern "C" fn hipLaunchByPtr(stub: *const c_void) -> u32 {
    api(|| {
        let entry = pop()?;
        let stream = stream::resolve(entry.stream as Handle)?;
        let function = fatbin::function_on(stub, stream.device)?;
        let geometry = geometry(dim(entry.grid), dim(entry.block), entry.shared)?;
        launch::check(&function, &geometry)?;
        let mut args = entry.args;
        args.resize(function.explicit_bytes, 0);
        graph::submit(
            &stream,
            Op::Kernel(KernelOp {
                named: stub as usize,
                function,
                geometry,
                args,
            }),
        )
    })
}
