//! Conversion between operations of graph nodes and the structs that programs pass.

use core::ffi::c_void;
use std::sync::Arc;

use crate::hip::copy::fill::{self, FillOp};
use crate::hip::copy::params;
use crate::hip::copy::{self, CopyOp};
use crate::hip::error::{HipResult, argument, code};
use crate::hip::graph::memory::Block;
use crate::hip::graph::{Node, Op};
use crate::hip::hsa::CopyBox;
use crate::hip::launch::{self, Geometry, KernelOp};
use crate::hip::module;
use crate::hip::module::fatbin;
use crate::hip::runtime::{self, Opaque, lock};
use crate::hip::stream::callback::HostCall;
use crate::hip::stream::value;
use crate::hip::types::{
    AnyNodeParams, BatchMemOpNodeParams, DrvMemcpy3D, Extent, GraphNodeParams, Handle,
    HostNodeParams, KernelNodeParams, MemAllocNodeParams, Memcpy3D, MemsetParams, PitchedPtr, Pos,
};

/// # Safety
/// `parameters` is null or valid, and so are the arguments it names.
pub(crate) unsafe fn kernel(parameters: *const KernelNodeParams) -> HipResult<Op> {
    // SAFETY: by contract.
    let p = unsafe { argument(parameters)? };
    let function = fatbin::function(p.func).or_else(|_| module::function(p.func))?;
    let geometry = Geometry {
        grid: p.grid,
        block: p.block,
        shared: p.shared,
        cooperative: false,
    };
    launch::check(&function, &geometry)?;
    // SAFETY: by contract.
    let args = unsafe { launch::gather(&function, p.params, p.extra)? };
    Ok(Op::Kernel(KernelOp {
        named: p.func as usize,
        function,
        geometry,
        args,
    }))
}

pub(crate) fn linear_copy(
    dst: *mut c_void,
    src: *const c_void,
    size: usize,
    kind: u32,
) -> HipResult<Op> {
    checked_copy(CopyOp::linear(dst as usize, src as usize, size, kind))
}

pub(crate) fn checked_copy(op: CopyOp) -> HipResult<Op> {
    copy::check(&op)?;
    Ok(Op::Copy(op))
}

pub(crate) fn cube_copy(parameters: *const Memcpy3D) -> HipResult<Op> {
    checked_copy(params::cube(parameters)?)
}

pub(crate) fn driver_copy(parameters: *const DrvMemcpy3D) -> HipResult<Op> {
    checked_copy(params::driver_cube(parameters)?)
}

/// # Safety
/// `parameters` is null or valid.
pub(crate) unsafe fn fill(parameters: *const MemsetParams) -> HipResult<Op> {
    // SAFETY: by contract.
    let p = unsafe { argument(parameters)? };
    let element = p.element_size as usize;
    if !matches!(element, 1 | 2 | 4) {
        return Err(code::INVALID_VALUE);
    }
    let width = p.width.checked_mul(element).ok_or(code::INVALID_VALUE)?;
    let rows = p.height.max(1);
    let op = FillOp {
        dst: p.dst as usize,
        pitch: if rows == 1 { width } else { p.pitch },
        width,
        rows,
        value: p.value,
        element,
    };
    fill::check(&op)?;
    Ok(Op::Fill(op))
}

/// # Safety
/// `parameters` is null or valid.
pub(crate) unsafe fn host(parameters: *const HostNodeParams) -> HipResult<Op> {
    // SAFETY: by contract.
    let p = unsafe { argument(parameters)? };
    if p.callback.is_none() {
        return Err(code::INVALID_VALUE);
    }
    Ok(Op::Host(HostCall::Function(p.callback, Opaque(p.data))))
}

pub(crate) fn record(event: Handle) -> HipResult<Op> {
    Ok(Op::Record(runtime::get()?.event(event)?))
}

pub(crate) fn wait(event: Handle) -> HipResult<Op> {
    Ok(Op::Wait(runtime::get()?.event(event)?))
}

pub(crate) fn child(graph: Handle) -> HipResult<Op> {
    Ok(Op::Graph(runtime::get()?.graphs.graph(graph)?.copy()?))
}

/// Allocates the node's memory and writes its address into `parameters`.
///
/// # Safety
/// `parameters` is null or valid.
pub(crate) unsafe fn allocate(parameters: *mut MemAllocNodeParams) -> HipResult<Op> {
    const PINNED: u32 = 1;
    const DEVICE: u32 = 1;
    // SAFETY: by contract.
    let mut p = unsafe { argument(parameters)? };
    if p.pool.alloc_type != PINNED || p.pool.location.kind != DEVICE {
        return Err(code::INVALID_VALUE);
    }
    let block = Block::new(runtime::device(p.pool.location.id)?, p.bytes)?;
    p.address = block.address as *mut c_void;
    // SAFETY: by contract, not null.
    unsafe { parameters.write_unaligned(p) };
    Ok(Op::Allocate(block))
}

pub(crate) fn release(address: *mut c_void) -> HipResult<Op> {
    let place = crate::hip::memory::find(address as usize)?.ok_or(code::INVALID_VALUE)?;
    if place.allocation.kind != crate::hip::memory::AllocationKind::Graph
        || place.base != address as usize
    {
        return Err(code::INVALID_VALUE);
    }
    Ok(Op::Release(place.base))
}

/// # Safety
/// `parameters` is null or valid, and so is its list.
pub(crate) unsafe fn values(parameters: *const BatchMemOpNodeParams) -> HipResult<Op> {
    // SAFETY: by contract.
    unsafe {
        let p = argument(parameters)?;
        Ok(Op::Values(value::from_list(p.list, p.count)?))
    }
}

/// # Safety
/// `parameters` is null or valid, and so is what it refers to.
pub(crate) unsafe fn any(parameters: *mut GraphNodeParams) -> HipResult<Op> {
    // SAFETY: by contract.
    let kind = unsafe { argument(parameters)? }.kind;
    // SAFETY: not null, checked by the read.
    let any = unsafe { &raw mut (*parameters).any };
    // SAFETY: the member of this kind is the one that the program has set.
    unsafe {
        match kind {
            0 => kernel(&raw const (*any).kernel),
            1 => cube_copy(&raw const (*any).copy.copy),
            2 => fill(&raw const (*any).fill),
            3 => host(&raw const (*any).host),
            4 => child((*any).handle),
            5 => Ok(Op::Empty),
            6 => wait((*any).handle),
            7 => record((*any).handle),
            10 => allocate(&raw mut (*any).allocate),
            11 => release((*any).release),
            8 | 9 => Err(code::NOT_SUPPORTED),
            _ => Err(code::INVALID_VALUE),
        }
    }
}

const _: () = assert!(size_of::<AnyNodeParams>() == 232);

/// The parameters of a kernel node; the list of arguments in them lives until the node is changed or destroyed.
pub(crate) fn kernel_params(node: &Node) -> HipResult<KernelNodeParams> {
    let op = node.op();
    let Op::Kernel(kernel) = &*op else {
        return Err(code::INVALID_VALUE);
    };
    let mut list = lock(&node.arguments);
    *list = kernel
        .function
        .explicit
        .iter()
        .map(|argument| kernel.args.as_ptr() as usize + argument.offset)
        .collect();
    Ok(KernelNodeParams {
        block: kernel.geometry.block,
        extra: std::ptr::null_mut(),
        func: kernel.named as *mut c_void,
        grid: kernel.geometry.grid,
        params: list.as_mut_ptr().cast(),
        shared: kernel.geometry.shared,
    })
}

fn copy_op(node: &Node) -> HipResult<CopyOp> {
    match &*node.op() {
        Op::Copy(op) => Ok(*op),
        _ => Err(code::INVALID_VALUE),
    }
}

pub(crate) fn copy_params_of(node: &Node) -> HipResult<Memcpy3D> {
    let op = copy_op(node)?;
    let side = |side: &CopyBox| PitchedPtr {
        ptr: side.address as *mut c_void,
        pitch: side.pitch,
        xsize: op.width,
        ysize: side.slice.checked_div(side.pitch).unwrap_or(op.height),
    };
    Ok(Memcpy3D {
        src_array: std::ptr::null_mut(),
        src_pos: Pos::default(),
        src_ptr: side(&op.src),
        dst_array: std::ptr::null_mut(),
        dst_pos: Pos::default(),
        dst_ptr: side(&op.dst),
        extent: Extent {
            width: op.width,
            height: op.height,
            depth: op.depth,
        },
        kind: op.kind,
    })
}

/// The parameters of a copy node in the layout of the driver functions.
pub(crate) fn driver_copy_params_of(node: &Node) -> HipResult<DrvMemcpy3D> {
    use crate::hip::types::memory_type::UNIFIED;
    let op = copy_op(node)?;
    let rows = |side: &CopyBox| side.slice.checked_div(side.pitch).unwrap_or(op.height);
    Ok(DrvMemcpy3D {
        src_x: 0,
        src_y: 0,
        src_z: 0,
        src_lod: 0,
        src_type: UNIFIED,
        src_host: op.src.address as *const c_void,
        src_device: op.src.address as *mut c_void,
        src_array: std::ptr::null_mut(),
        src_pitch: op.src.pitch,
        src_height: rows(&op.src),
        dst_x: 0,
        dst_y: 0,
        dst_z: 0,
        dst_lod: 0,
        dst_type: UNIFIED,
        dst_host: op.dst.address as *mut c_void,
        dst_device: op.dst.address as *mut c_void,
        dst_array: std::ptr::null_mut(),
        dst_pitch: op.dst.pitch,
        dst_height: rows(&op.dst),
        width: op.width,
        height: op.height,
        depth: op.depth,
    })
}

pub(crate) fn fill_params(node: &Node) -> HipResult<MemsetParams> {
    let op = node.op();
    let Op::Fill(fill) = &*op else {
        return Err(code::INVALID_VALUE);
    };
    Ok(MemsetParams {
        dst: fill.dst as *mut c_void,
        element_size: fill.element as u32,
        height: fill.rows,
        pitch: fill.pitch,
        value: fill.value,
        width: fill.width / fill.element,
    })
}

pub(crate) fn host_params(node: &Node) -> HipResult<HostNodeParams> {
    match *node.op() {
        Op::Host(HostCall::Function(callback, data)) => Ok(HostNodeParams {
            callback,
            data: data.0,
        }),
        _ => Err(code::INVALID_VALUE),
    }
}

/// The event of a node that records an event (`records`), or of one that waits for an event. Fails for other nodes.
pub(crate) fn event(node: &Node, records: bool) -> HipResult<Handle> {
    match (&*node.op(), records) {
        (Op::Record(event), true) | (Op::Wait(event), false) => {
            Ok(Arc::as_ptr(event).cast_mut().cast())
        }
        _ => Err(code::INVALID_VALUE),
    }
}
