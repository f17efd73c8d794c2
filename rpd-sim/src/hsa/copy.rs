//! Asynchronous copies.

use super::support::{Outcome, agent, api, array, ensure, put};
use super::types::{Dim3, PitchedPtr, Status, status};
use crate::gpu::agents::{self, Agent};
use crate::gpu::copy::{self, Copy, Plane, Shape};
use crate::gpu::machine::{ENGINES_PER_GPU, machine};
use crate::gpu::signal::Signal;

use core::ffi::c_void;

/// An asynchronous copy with its signals, in the form that the API's functions share.
struct Order {
    num_dep_signals: u32,
    dep_signals: *const u64,
    completion_signal: u64,
    engine: Option<usize>,
}

unsafe fn submit(shape: Shape, dst: &'static Agent, src: &'static Agent, order: &Order) -> Outcome {
    let count = order.num_dep_signals as usize;
    // The real runtime refuses a list that contradicts its length, in either direction.
    let missing = count != 0 && order.dep_signals.is_null();
    let extra = count == 0 && !order.dep_signals.is_null();
    ensure(!missing && !extra, status::ERROR_INVALID_ARGUMENT)?;
    // SAFETY: the program's array has the length that it passes.
    let dependencies = unsafe { array(order.dep_signals, count) };
    let dependencies = dependencies
        .iter()
        .map(|&handle| Signal::from_handle(handle).ok_or(status::ERROR_INVALID_SIGNAL))
        .collect::<Result<_, _>>()?;
    let completion = Signal::from_handle(order.completion_signal);
    let completion = completion.ok_or(status::ERROR_INVALID_SIGNAL)?;
    copy::submit(Copy {
        shape,
        dst_agent: dst,
        src_agent: src,
        dependencies,
        completion: Some(completion),
        engine: order.engine,
    });
    Ok(())
}

/// Copies once the dependencies are zero, then decrements the completion signal.
pub(crate) unsafe extern "C" fn hsa_amd_memory_async_copy(
    dst: *mut c_void,
    dst_agent: u64,
    src: *const c_void,
    src_agent: u64,
    size: usize,
    num_dep_signals: u32,
    dep_signals: *const u64,
    completion_signal: u64,
) -> Status {
    api(|| {
        ensure(
            !dst.is_null() && !src.is_null(),
            status::ERROR_INVALID_ARGUMENT,
        )?;
        let (dst_agent, src_agent) = (agent(dst_agent)?, agent(src_agent)?);
        let order = Order {
            num_dep_signals,
            dep_signals,
            completion_signal,
            engine: None,
        };
        let shape = Shape::linear(dst as usize, src as usize, size);
        // SAFETY: the program's array has the length that it passes.
        unsafe { submit(shape, dst_agent, src_agent, &order) }
    })
}

/// Copies on an engine of the program's choice once the dependencies are zero, then decrements the completion signal.
pub(crate) unsafe extern "C" fn hsa_amd_memory_async_copy_on_engine(
    dst: *mut c_void,
    dst_agent: u64,
    src: *const c_void,
    src_agent: u64,
    size: usize,
    num_dep_signals: u32,
    dep_signals: *const u64,
    completion_signal: u64,
    engine_id: u32,
    _force_copy_on_sdma: bool,
) -> Status {
    api(|| {
        ensure(
            !dst.is_null() && !src.is_null(),
            status::ERROR_INVALID_ARGUMENT,
        )?;
        let (dst_agent, src_agent) = (agent(dst_agent)?, agent(src_agent)?);
        // The engine is a mask with one bit, as `hsa_amd_memory_copy_engine_status` returns.
        let engine = engine_id.trailing_zeros() as usize;
        let valid = engine_id.is_power_of_two() && engine < ENGINES_PER_GPU;
        ensure(valid, status::ERROR_INVALID_ARGUMENT)?;
        let order = Order {
            num_dep_signals,
            dep_signals,
            completion_signal,
            engine: Some(engine),
        };
        let shape = Shape::linear(dst as usize, src as usize, size);
        // SAFETY: the program's array has the length that it passes.
        unsafe { submit(shape, dst_agent, src_agent, &order) }
    })
}

/// Writes the mask of the copy engines that are idle.
pub(crate) unsafe extern "C" fn hsa_amd_memory_copy_engine_status(
    dst_agent: u64,
    src_agent: u64,
    engine_ids_mask: *mut u32,
) -> Status {
    api(|| {
        let (dst, src) = (agent(dst_agent)?, agent(src_agent)?);
        ensure(!engine_ids_mask.is_null(), status::ERROR_INVALID_ARGUMENT)?;
        ensure(dst.is_gpu() || src.is_gpu(), status::ERROR_INVALID_AGENT)?;
        let idle = copy::idle_engines(dst, src);
        // SAFETY: the program's pointer is writable.
        // Written even when none is idle: programs may then read a mask of 0 and wait.
        unsafe { put(engine_ids_mask, idle) }?;
        ensure(idle != 0, status::ERROR_OUT_OF_RESOURCES)
    })
}

/// Writes the mask of preferred copy engines: all, because they are equal.
pub(crate) unsafe extern "C" fn hsa_amd_memory_get_preferred_copy_engine(
    dst_agent: u64,
    src_agent: u64,
    recommended_ids_mask: *mut u32,
) -> Status {
    api(|| {
        let (dst, src) = (agent(dst_agent)?, agent(src_agent)?);
        ensure(dst.is_gpu() || src.is_gpu(), status::ERROR_INVALID_AGENT)?;
        // SAFETY: the program's pointer is null or writable.
        unsafe { put(recommended_ids_mask, (1u32 << ENGINES_PER_GPU) - 1) }
    })
}

/// The agent that owns one side of a rectangle. The direction of a copy says whether a side is the copy agent's or
/// another's.
fn owner(address: usize, device: bool, copy_agent: &'static Agent) -> &'static Agent {
    if !device {
        return agents::cpu_agent();
    }
    // Memory of another GPU than the copy agent may be on the side that the direction calls the device's.
    let block = machine().memory.find(address);
    let owner = block.map(|block| &agents::agents()[block.pool.agent]);
    owner.filter(|agent| agent.is_gpu()).unwrap_or(copy_agent)
}

/// Copies a box of bytes: `x` counts bytes, `y` rows, `z` slices.
pub(crate) unsafe extern "C" fn hsa_amd_memory_async_copy_rect(
    dst: *const PitchedPtr,
    dst_offset: *const Dim3,
    src: *const PitchedPtr,
    src_offset: *const Dim3,
    range: *const Dim3,
    copy_agent: u64,
    dir: u32,
    num_dep_signals: u32,
    dep_signals: *const u64,
    completion_signal: u64,
) -> Status {
    api(|| {
        // All five are read by the copy; a null one is an error of the program, not a default.
        // SAFETY: the program's pointers are null or readable.
        let parts = unsafe {
            (dst.as_ref().zip(dst_offset.as_ref()))
                .zip(src.as_ref().zip(src_offset.as_ref()))
                .zip(range.as_ref())
        };
        let (((dst, dst_offset), (src, src_offset)), range) =
            parts.ok_or(status::ERROR_INVALID_ARGUMENT)?;
        let copy_agent = agent(copy_agent)?;
        ensure(copy_agent.is_gpu(), status::ERROR_INVALID_AGENT)?;
        ensure(dir <= 3, status::ERROR_INVALID_ARGUMENT)?;
        ensure(
            !dst.base.is_null() && !src.base.is_null(),
            status::ERROR_INVALID_ARGUMENT,
        )?;
        let bounds = |plane: &PitchedPtr, offset: &Dim3| {
            let (x, y) = (
                offset.x as usize + range.x as usize,
                offset.y as usize + range.y as usize,
            );
            // A single row or slice may be longer than the pitch: there is no next one that it would run into.
            (range.y <= 1 || x <= plane.pitch)
                && (range.z <= 1 || y.saturating_mul(plane.pitch) <= plane.slice)
        };
        let fits = bounds(dst, dst_offset) && bounds(src, src_offset);
        ensure(fits, status::ERROR_INVALID_ARGUMENT)?;
        let plane = |side: &PitchedPtr, offset: &Dim3| Plane {
            first: (side.base as usize)
                // Wrapping: wrong offsets of the program must not panic; the span is checked below.
                .wrapping_add((offset.z as usize).wrapping_mul(side.slice))
                .wrapping_add((offset.y as usize).wrapping_mul(side.pitch))
                .wrapping_add(offset.x as usize),
            pitch: side.pitch,
            slice: side.slice,
        };
        let shape = Shape {
            dst: plane(dst, dst_offset),
            src: plane(src, src_offset),
            width: range.x as usize,
            rows: range.y as usize,
            slices: range.z as usize,
        };
        // A box whose last byte lies beyond the address space fails here, not in the engine.
        let whole = shape.span(&shape.dst).and(shape.span(&shape.src));
        whole.ok_or(status::ERROR_INVALID_ARGUMENT)?;
        let order = Order {
            num_dep_signals,
            dep_signals,
            completion_signal,
            engine: None,
        };
        // Bit 0 of the direction: the destination is a device's; bit 1: the source is.
        let dst_agent = owner(shape.dst.first, dir & 1 != 0, copy_agent);
        let src_agent = owner(shape.src.first, dir & 2 != 0, copy_agent);
        // SAFETY: the program's array has the length that it passes.
        unsafe { submit(shape, dst_agent, src_agent, &order) }
    })
}
