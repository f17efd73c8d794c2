//! Kernel launches: checks, arguments, and the packet.

pub(crate) mod api;
pub(crate) mod config_api;
pub(crate) mod hostcall;
pub(crate) mod kernarg;
pub(crate) mod multi_device_api;
pub(crate) mod printf;
pub(crate) mod printf_buffer;

use core::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::hip::device::limit;
use crate::hip::error::{HipResult, code};
use crate::hip::launch::printf_buffer::PrintfBuffer;
use crate::hip::module::function::Function;
use crate::hip::runtime;
use crate::hip::stream::{KERNEL_HEADER, Step, Stream};
use crate::hip::types::Dim3;
use crate::hsa::types::KernelDispatchPacket;
use rpd_gfx::codeobj::ArgKind;

/// Shape of a launch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Geometry {
    /// Number of workgroups in each dimension.
    pub(crate) grid: Dim3,
    /// Work-items of a workgroup.
    pub(crate) block: Dim3,
    /// Dynamic local memory in bytes.
    pub(crate) shared: u32,
    /// Whether workgroups of the launch may wait for each other.
    pub(crate) cooperative: bool,
}

/// Place of a launch among launches on several devices that wait for each other. The default is a launch on its own.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct GridPlace {
    /// Address of the counters on which the grids wait for each other; 0 for a launch on its own.
    pub(crate) counters: usize,
    pub(crate) grid: u32,
    pub(crate) grids: u32,
    /// Work-items of all grids before this one.
    pub(crate) items_before: u64,
    /// Work-items of all grids.
    pub(crate) items: u64,
}

/// Facts about a cooperative launch for the device libraries (`mg_info`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct SyncInfo {
    counters: u64,
    grid: u32,
    grids: u32,
    items_before: u64,
    items: u64,
    /// Counters on which workgroups of the grid wait for each other, on devices that do not use global wave sync for
    /// that.
    group_counters: [u32; 2],
    groups: u32,
    unused: u32,
}

impl SyncInfo {
    fn new(geometry: &Geometry, place: GridPlace) -> Self {
        Self {
            counters: place.counters as u64,
            grid: place.grid,
            grids: place.grids,
            items_before: place.items_before,
            items: place.items,
            group_counters: [0; 2],
            groups: geometry.grid.volume() as u32,
            unused: 0,
        }
    }
}

/// A kernel launch as a graph keeps it.
#[derive(Debug, Clone)]
pub(crate) struct KernelOp {
    /// The kernel as the program named it: the stub on the host, or a `hipFunction_t`.
    pub(crate) named: usize,
    pub(crate) function: Arc<Function>,
    pub(crate) geometry: Geometry,
    /// The explicit arguments as they lie in memory.
    pub(crate) args: Vec<u8>,
}

/// Checks that a kernel can run in this shape.
pub(crate) fn check(function: &Function, geometry: &Geometry) -> HipResult {
    const MAX_WORK_ITEMS: u64 = u32::MAX as u64;
    let (grid, block) = (geometry.grid, geometry.block);
    if grid.volume() == 0 || block.volume() == 0 {
        return Err(code::INVALID_CONFIGURATION);
    }
    // Limits that HIP documents, whatever the device could do.
    if block.x > 1024 || block.y > 1024 || block.z > 1024 || block.volume() > 1024 {
        return Err(code::INVALID_CONFIGURATION);
    }
    let sides = [(grid.x, block.x), (grid.y, block.y), (grid.z, block.z)];
    if sides
        .iter()
        // The packet has 32 bits for the work-items of each dimension.
        .any(|&(g, b)| u64::from(g) * u64::from(b) > MAX_WORK_ITEMS)
    {
        return Err(code::INVALID_CONFIGURATION);
    }
    let lds_bytes = function.device.figures.layout.lds_bytes as usize;
    if function.symbol.group_size as usize + geometry.shared as usize > lds_bytes {
        return Err(code::INVALID_VALUE);
    }
    // The compiler has given out registers for this many work-items, so that more would not fit into a compute unit.
    if block.volume() > u64::from(function.max_threads()) {
        return Err(code::LAUNCH_FAILURE);
    }
    // Code that was compiled for one size of workgroup may compute with it as a constant.
    if let Some(required) = function.kernel.reqd_workgroup_size
        && required != [block.x, block.y, block.z]
    {
        return Err(code::INVALID_CONFIGURATION);
    }
    Ok(())
}

/// Lays the arguments that a program points to out in memory, as the kernel reads them.
///
/// # Safety
/// `params` is a list of pointers, one for each explicit argument; or `extra` is a list of
/// `HIP_LAUNCH_PARAM_*` pairs.
pub(crate) unsafe fn gather(
    function: &Function,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> HipResult<Vec<u8>> {
    let mut block = vec![0u8; function.explicit_bytes];
    if !extra.is_null() {
        // SAFETY: by contract.
        let (buffer, size) = unsafe { read_extra(extra)? };
        // Programs may pass more than the kernel takes, such as the padding of a struct.
        let size = size.min(block.len());
        if buffer.is_null() && size > 0 {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the program's buffer holds `size` bytes.
        unsafe { std::ptr::copy_nonoverlapping(buffer.cast::<u8>(), block.as_mut_ptr(), size) };
        return Ok(block);
    }
    for (n, argument) in function.explicit.iter().enumerate() {
        if params.is_null() {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: by contract there is a pointer for each explicit argument.
        let source = unsafe { params.add(n).read() };
        if source.is_null() {
            return Err(code::INVALID_VALUE);
        }
        let target = &mut block[argument.offset..argument.offset + argument.size];
        // SAFETY: by contract it points to a value of the argument's size.
        unsafe {
            std::ptr::copy_nonoverlapping(source.cast::<u8>(), target.as_mut_ptr(), argument.size);
        }
    }
    Ok(block)
}

/// # Safety
/// `extra` is a list of `HIP_LAUNCH_PARAM_*` pairs.
unsafe fn read_extra(extra: *mut *mut c_void) -> HipResult<(*mut c_void, usize)> {
    const BUFFER_POINTER: usize = 1;
    const BUFFER_SIZE: usize = 2;
    const END: usize = 3;
    let (mut buffer, mut size) = (None, None);
    // No list has more than its two pairs and the end.
    for n in 0..3 {
        // SAFETY: by contract, the list goes on until its end.
        unsafe {
            match extra.add(2 * n).read() as usize {
                BUFFER_POINTER => buffer = Some(extra.add(2 * n + 1).read()),
                BUFFER_SIZE => size = Some(extra.add(2 * n + 1).read().cast::<usize>()),
                END => break,
                _ => return Err(code::INVALID_VALUE),
            }
        }
    }
    match (buffer, size) {
        (Some(buffer), Some(size)) if !size.is_null() => {
            // SAFETY: by contract a pointer to the size.
            Ok((buffer, unsafe { size.read_unaligned() }))
        }
        _ => Err(code::INVALID_VALUE),
    }
}

/// Launches on a stream.
pub(crate) fn run(stream: &Stream, op: &KernelOp) -> HipResult {
    run_at(stream, op, GridPlace::default())
}

/// Launches on a stream, as one of several launches that wait for each other.
pub(crate) fn run_at(stream: &Stream, op: &KernelOp, place: GridPlace) -> HipResult {
    let mut step = stream.step()?;
    if op.geometry.cooperative {
        // The counter must be set before the first workgroup arrives, and by the stream, which may still run an earlier
        // launch.
        let groups = op.geometry.grid.volume();
        step.blit()?.init_wave_sync(&mut step, groups as u32 - 1)?;
    }
    enqueue(&mut step, &op.function, &op.geometry, &op.args, place)
}

/// Writes arguments and packet of a checked launch.
pub(crate) fn enqueue(
    step: &mut Step<'_>,
    function: &Arc<Function>,
    geometry: &Geometry,
    args: &[u8],
    place: GridPlace,
) -> HipResult {
    // Metadata may declare fewer bytes than the arguments have.
    let bytes = function.kernarg_bytes.max(args.len());
    // The struct of a cooperative launch lies behind the arguments, so that both are freed together.
    let sync_offset = bytes.next_multiple_of(align_of::<SyncInfo>());
    let sync_bytes = if geometry.cooperative {
        size_of::<SyncInfo>()
    } else {
        0
    };
    let kernarg_address = step.kernargs(sync_offset + sync_bytes)?;
    let queue = step.queue_address();
    // SAFETY: the ring reserved this many bytes, which are not reused before the kernel has ended.
    let block = unsafe { std::slice::from_raw_parts_mut(kernarg_address as *mut u8, bytes) };
    // Hidden arguments that the runtime does not know must read as zero.
    block.fill(0);
    block[..args.len()].copy_from_slice(args);
    let mut sync = 0;
    if geometry.cooperative {
        sync = kernarg_address + sync_offset;
        // SAFETY: the ring reserved the bytes behind the arguments for it, at its alignment.
        unsafe { (sync as *mut SyncInfo).write(SyncInfo::new(geometry, place)) };
    }
    let printed = PrintfBuffer::for_launch(function)?;
    let addresses = Addresses {
        queue,
        printf_buffer: printed.as_ref().map_or(0, PrintfBuffer::address),
        sync: sync as u64,
    };
    hidden(function, geometry, addresses, block)?;
    let (grid, wg) = (geometry.grid, geometry.block);
    let dimensions = dimensions(geometry);
    let packet = KernelDispatchPacket {
        header: KERNEL_HEADER,
        setup: dimensions,
        workgroup_size_x: wg.x as u16,
        workgroup_size_y: wg.y as u16,
        workgroup_size_z: wg.z as u16,
        grid_size_x: grid.x * wg.x,
        grid_size_y: grid.y * wg.y,
        grid_size_z: grid.z * wg.z,
        private_segment_size: private_segment(function),
        group_segment_size: function.symbol.group_size + geometry.shared,
        kernel_object: function.symbol.object,
        kernarg_address: kernarg_address as u64,
        ..KernelDispatchPacket::default()
    };
    // SAFETY: the kernel is loaded, its arguments lie in the ring.
    unsafe { step.dispatch(&packet)? };
    // Messages have to be printed before the program goes on, as with the real runtime.
    if let Some(buffer) = printed {
        step.drain()?;
        buffer.print();
    }
    Ok(())
}

/// Scratch memory of a work-item in bytes. Where the compiler cannot determine how deep calls go, the stack size of
/// `hipDeviceSetLimit` counts if it is larger.
fn private_segment(function: &Function) -> u32 {
    let known = function.symbol.private_size;
    if !function.kernel.uses_dynamic_stack {
        return known;
    }
    let limit = function.device.limits[limit::STACK].load(Ordering::Relaxed);
    known.max(u32::try_from(limit).unwrap_or(u32::MAX))
}

fn dimensions(geometry: &Geometry) -> u16 {
    let used = |grid: u32, block: u32| grid > 1 || block > 1;
    if used(geometry.grid.z, geometry.block.z) {
        // Trailing dimensions of size 1 are left out: device libraries read the number as that of the grid.
        3
    } else if used(geometry.grid.y, geometry.block.y) {
        2
    } else {
        1
    }
}

/// Addresses that hidden arguments hold; 0 for objects that the launch does not have.
#[derive(Debug, Clone, Copy)]
struct Addresses {
    queue: u64,
    printf_buffer: u64,
    sync: u64,
}

/// Fills in the arguments that the compiler expects of the runtime. Launches consist of whole workgroups, so that the
/// remainders stay zero, as do offsets, default queue and completion action.
fn hidden(
    function: &Function,
    geometry: &Geometry,
    addresses: Addresses,
    block: &mut [u8],
) -> HipResult {
    let (grid, wg) = (geometry.grid, geometry.block);
    for (kind, offset, size) in &function.hidden {
        let value = match kind {
            ArgKind::HiddenBlockCountX => u64::from(grid.x),
            ArgKind::HiddenBlockCountY => u64::from(grid.y),
            ArgKind::HiddenBlockCountZ => u64::from(grid.z),
            ArgKind::HiddenGroupSizeX => u64::from(wg.x),
            ArgKind::HiddenGroupSizeY => u64::from(wg.y),
            ArgKind::HiddenGroupSizeZ => u64::from(wg.z),
            ArgKind::HiddenGridDims => u64::from(dimensions(geometry)),
            ArgKind::HiddenDynamicLdsSize => u64::from(geometry.shared),
            ArgKind::HiddenQueuePtr => addresses.queue,
            ArgKind::HiddenPrintfBuffer => addresses.printf_buffer,
            ArgKind::HiddenMultigridSyncArg => addresses.sync,
            ArgKind::HiddenHostcallBuffer => runtime::get()?
                .hostcalls
                .buffer(function.device, addresses.queue)?,
            ArgKind::HiddenHeapV1 => hostcall::heap(function.device)?,
            // Values that are zero in every launch of whole workgroups.
            _ => continue,
        };
        // No value has more than eight bytes, whatever the metadata declare.
        let size = (*size).min(8);
        if let Some(slot) = block.get_mut(*offset..*offset + size) {
            slot.copy_from_slice(&value.to_le_bytes()[..size]);
        }
    }
    Ok(())
}
