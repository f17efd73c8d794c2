//! The functions of the API that launch on several devices.

use core::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex};

use crate::hip::error::{HipResult, api, code};
use crate::hip::hsa;
use crate::hip::launch::api::{Params, check_cooperative};
use crate::hip::launch::{self, Geometry, GridPlace, KernelOp};
use crate::hip::module;
use crate::hip::module::fatbin;
use crate::hip::module::function::Function;
use crate::hip::runtime::{self, lock};
use crate::hip::stream::signal::Signal;
use crate::hip::stream::{self, Stream};
use crate::hip::types::{FunctionLaunchParams, LaunchParams};

/// The entries of a program's list.
///
/// # Safety
/// `list` is null or has `count` entries.
unsafe fn entries<T: Copy>(list: *const T, count: u32) -> HipResult<Vec<T>> {
    if list.is_null() {
        return Err(code::INVALID_VALUE);
    }
    // SAFETY: by contract.
    let read = |n| unsafe { list.add(n).read_unaligned() };
    Ok((0..count as usize).map(read).collect())
}

fn count(number: c_int) -> HipResult<u32> {
    u32::try_from(number).map_err(|_| code::INVALID_VALUE)
}

/// Counters on which grids wait for each other, with the last steps of the streams that may still use them.
#[derive(Debug, Default)]
pub(crate) struct GridCounters(Mutex<Vec<(usize, Vec<Arc<Signal>>)>>);

impl GridCounters {
    /// Size in bytes of the counters of one launch: a cache line.
    const BYTES: usize = 64;

    /// Counters that no launch uses. Their value is that which the last launch left, which kernels accept.
    fn take(&self) -> HipResult<usize> {
        let mut all = lock(&self.0);
        let free = |(_, users): &(usize, Vec<Arc<Signal>>)| users.iter().all(|s| s.is_done());
        if let Some(place) = all.iter().position(free) {
            return Ok(all.swap_remove(place).0);
        }
        drop(all);
        let runtime = runtime::get()?;
        let address = hsa::allocate(runtime.host.fine, Self::BYTES)?;
        hsa::allow_access(&runtime.gpu_agents(), address)?;
        // SAFETY: the allocation has this size, and nothing else refers to it.
        unsafe { std::ptr::write_bytes(address as *mut u8, 0, Self::BYTES) };
        Ok(address)
    }

    /// Gives counters back, which are free when `users` have ended.
    fn put_back(&self, address: usize, users: Vec<Arc<Signal>>) {
        lock(&self.0).push((address, users));
    }
}

/// One of several launches that are made together, each on a device of its own.
struct Grid {
    stream: Arc<Stream>,
    op: KernelOp,
}

impl Grid {
    /// # Safety
    /// As for [`launch::gather`].
    unsafe fn new(
        stream: Arc<Stream>,
        named: *const c_void,
        function: Arc<Function>,
        geometry: Geometry,
        params: Params,
    ) -> HipResult<Self> {
        launch::check(&function, &geometry)?;
        if geometry.cooperative {
            check_cooperative(&function, &geometry)?;
        }
        // SAFETY: by contract.
        let args = unsafe { launch::gather(&function, params, std::ptr::null_mut())? };
        let op = KernelOp {
            named: named as usize,
            function,
            geometry,
            args,
        };
        Ok(Self { stream, op })
    }

    fn items(&self) -> u64 {
        self.op.geometry.grid.volume() * self.op.geometry.block.volume()
    }
}

/// Launches grids, each on a device of its own; grids of a cooperative launch wait for each other. As with the real
/// runtime, a stream that is captured launches at once, and its graph does not contain the launch.
fn launch_together(grids: &[Grid], flags: u32) -> HipResult {
    const NO_WAIT_BEFORE: u32 = 1;
    const NO_WAIT_AFTER: u32 = 2;
    let runtime = runtime::get()?;
    if grids.is_empty()
        || grids.len() > runtime.devices.len()
        || flags & !(NO_WAIT_BEFORE | NO_WAIT_AFTER) != 0
    {
        return Err(code::INVALID_VALUE);
    }
    for (n, grid) in grids.iter().enumerate() {
        let ordinal = grid.stream.device.ordinal;
        let same = |other: &Grid| other.stream.device.ordinal == ordinal;
        if grids[..n].iter().any(same) {
            return Err(code::INVALID_DEVICE);
        }
    }
    let synchronize = || grids.iter().try_for_each(|grid| grid.stream.synchronize());
    if flags & NO_WAIT_BEFORE == 0 {
        synchronize()?;
    }
    if grids[0].op.geometry.cooperative {
        launch_cooperative(grids)?;
    } else {
        for grid in grids {
            launch::run(&grid.stream, &grid.op)?;
        }
    }
    if flags & NO_WAIT_AFTER == 0 {
        synchronize()?;
    }
    Ok(())
}

/// Launches grids that wait for each other.
fn launch_cooperative(grids: &[Grid]) -> HipResult {
    let all = &runtime::get()?.grid_counters;
    let counters = all.take()?;
    let mut place = GridPlace {
        counters,
        grid: 0,
        grids: grids.len() as u32,
        items_before: 0,
        items: grids.iter().map(Grid::items).sum(),
    };
    let mut users = Vec::with_capacity(grids.len());
    for grid in grids {
        launch::run_at(&grid.stream, &grid.op, place)?;
        users.extend(grid.stream.last()?);
        place.grid += 1;
        place.items_before += grid.items();
    }
    all.put_back(counters, users);
    Ok(())
}

/// Launches kernels by their stubs.
///
/// # Safety
/// `list` is null or has `number` entries with the arguments of their kernels.
unsafe fn launch_stubs(
    list: *const LaunchParams,
    number: c_int,
    flags: u32,
    cooperative: bool,
) -> HipResult {
    let grid = |p: LaunchParams| {
        if p.stream.is_null() {
            return Err(code::INVALID_HANDLE);
        }
        let stream = stream::resolve(p.stream)?;
        let function = fatbin::function_on(p.func, stream.device)?;
        let geometry = Geometry {
            grid: p.grid,
            block: p.block,
            shared: u32::try_from(p.shared).map_err(|_| code::INVALID_VALUE)?,
            cooperative,
        };
        // SAFETY: by contract.
        unsafe { Grid::new(stream, p.func, function, geometry, p.args) }
    };
    // SAFETY: by contract.
    let launches = unsafe { entries(list, count(number)?)? };
    let grids: Vec<Grid> = launches.into_iter().map(grid).collect::<HipResult<_>>()?;
    launch_together(&grids, flags)
}

pub(crate) unsafe extern "C" fn hipExtLaunchMultiKernelMultiDevice(
    list: *mut LaunchParams,
    number: c_int,
    flags: u32,
) -> u32 {
    // SAFETY: the caller's list.
    api(|| unsafe { launch_stubs(list, number, flags, false) })
}

pub(crate) unsafe extern "C" fn hipLaunchCooperativeKernelMultiDevice(
    list: *mut LaunchParams,
    number: c_int,
    flags: u32,
) -> u32 {
    // SAFETY: the caller's list.
    api(|| unsafe { launch_stubs(list, number, flags, true) })
}

pub(crate) unsafe extern "C" fn hipModuleLaunchCooperativeKernelMultiDevice(
    list: *mut FunctionLaunchParams,
    number: u32,
    flags: u32,
) -> u32 {
    api(|| {
        let grid = |p: FunctionLaunchParams| {
            if p.stream.is_null() {
                return Err(code::INVALID_HANDLE);
            }
            let stream = stream::resolve(p.stream)?;
            let function = module::function(p.function)?;
            let geometry = Geometry {
                grid: p.grid,
                block: p.block,
                shared: p.shared,
                cooperative: true,
            };
            // SAFETY: the caller's arguments.
            unsafe { Grid::new(stream, p.function, function, geometry, p.args) }
        };
        // SAFETY: the caller's list.
        let launches = unsafe { entries(list, number)? };
        let grids: Vec<Grid> = launches.into_iter().map(grid).collect::<HipResult<_>>()?;
        launch_together(&grids, flags)
    })
}
