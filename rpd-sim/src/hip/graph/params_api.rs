//! The functions of the API that read and change the parameters of graph nodes.

use core::ffi::c_void;

use crate::hip::copy::params;
use crate::hip::error::{HipResult, api, code, put};
use crate::hip::graph::node as node_op;
use crate::hip::graph::{Graph, Node, Op};
use crate::hip::runtime::{self, lock};
use crate::hip::stream::value;
use crate::hip::types::{
    BatchMemOpNodeParams, DrvMemcpy3D, GraphNodeParams, Handle, HostNodeParams, KernelNodeParams,
    LaunchAttributeValue, MemAllocNodeParams, MemLocation, MemPoolProps, Memcpy3D, MemsetParams,
    launch_attribute,
};
use std::sync::Arc;

/// A node of a graph, by handle.
fn find(node: Handle) -> HipResult<Arc<Node>> {
    Ok(runtime::get()?.graphs.node(node)?.1)
}

/// The copy of a node in an executable graph.
fn find_in(exec: Handle, node: Handle) -> HipResult<Arc<Node>> {
    runtime::get()?.graphs.exec(exec)?.graph.twin(node)
}

/// Functions that set the parameters of a node in a graph, and of its copy in an executable graph.
macro_rules! setters {
    ($($set:ident, $exec:ident ($($name:ident: $type:ty),*) = $op:expr;)*) => {$(
        pub(crate) unsafe extern "C" fn $set(node: Handle, $($name: $type),*) -> u32 {
            api(|| {
                let node = find(node)?;
                // SAFETY: the caller's pointers.
                #[allow(unused_unsafe)]
                node.set(unsafe { $op? })
            })
        }

        pub(crate) unsafe extern "C" fn $exec(exec: Handle, node: Handle, $($name: $type),*) -> u32 {
            api(|| {
                let node = find_in(exec, node)?;
                // SAFETY: the caller's pointers.
                #[allow(unused_unsafe)]
                node.set(unsafe { $op? })
            })
        }
    )*};
}

setters! {
    hipGraphKernelNodeSetParams, hipGraphExecKernelNodeSetParams (parameters: *const KernelNodeParams)
        = node_op::kernel(parameters);
    hipGraphMemcpyNodeSetParams, hipGraphExecMemcpyNodeSetParams (parameters: *const Memcpy3D)
        = node_op::cube_copy(parameters);
    hipGraphMemcpyNodeSetParams1D, hipGraphExecMemcpyNodeSetParams1D
        (dst: *mut c_void, src: *const c_void, size: usize, kind: u32)
        = node_op::linear_copy(dst, src, size, kind);
    hipGraphMemcpyNodeSetParamsToSymbol, hipGraphExecMemcpyNodeSetParamsToSymbol
        (symbol: *const c_void, src: *const c_void, size: usize, offset: usize, kind: u32)
        = params::to_symbol(symbol, src, size, offset, kind).and_then(node_op::checked_copy);
    hipGraphMemcpyNodeSetParamsFromSymbol, hipGraphExecMemcpyNodeSetParamsFromSymbol
        (dst: *mut c_void, symbol: *const c_void, size: usize, offset: usize, kind: u32)
        = params::from_symbol(dst, symbol, size, offset, kind).and_then(node_op::checked_copy);
    hipGraphMemsetNodeSetParams, hipGraphExecMemsetNodeSetParams (parameters: *const MemsetParams)
        = node_op::fill(parameters);
    hipGraphHostNodeSetParams, hipGraphExecHostNodeSetParams (parameters: *const HostNodeParams)
        = node_op::host(parameters);
    hipGraphEventRecordNodeSetEvent, hipGraphExecEventRecordNodeSetEvent (event: Handle)
        = node_op::record(event);
    hipGraphEventWaitNodeSetEvent, hipGraphExecEventWaitNodeSetEvent (event: Handle)
        = node_op::wait(event);
    hipGraphNodeSetParams, hipGraphExecNodeSetParams (parameters: *mut GraphNodeParams)
        = changeable(parameters);
}

/// The operation that new parameters describe. A memory node keeps its memory.
///
/// # Safety
/// `parameters` is null or valid, and so is what it refers to.
unsafe fn changeable(parameters: *mut GraphNodeParams) -> HipResult<Op> {
    // SAFETY: by contract.
    match unsafe { parameters.as_ref() }.map(|p| p.kind) {
        None | Some(10 | 11) => Err(code::INVALID_VALUE),
        // SAFETY: by contract.
        Some(_) => unsafe { node_op::any(parameters) },
    }
}

pub(crate) unsafe extern "C" fn hipDrvGraphMemcpyNodeSetParams(
    node: Handle,
    parameters: *const DrvMemcpy3D,
) -> u32 {
    api(|| find(node)?.set(node_op::driver_copy(parameters)?))
}

pub(crate) unsafe extern "C" fn hipDrvGraphExecMemcpyNodeSetParams(
    exec: Handle,
    node: Handle,
    parameters: *const DrvMemcpy3D,
    _context: Handle,
) -> u32 {
    api(|| find_in(exec, node)?.set(node_op::driver_copy(parameters)?))
}

pub(crate) unsafe extern "C" fn hipDrvGraphExecMemsetNodeSetParams(
    exec: Handle,
    node: Handle,
    parameters: *const MemsetParams,
    _context: Handle,
) -> u32 {
    // SAFETY: the caller's struct.
    api(|| find_in(exec, node)?.set(unsafe { node_op::fill(parameters)? }))
}

pub(crate) unsafe extern "C" fn hipGraphBatchMemOpNodeSetParams(
    node: Handle,
    parameters: *mut BatchMemOpNodeParams,
) -> u32 {
    // SAFETY: the caller's struct.
    api(|| find(node)?.set(unsafe { node_op::values(parameters)? }))
}

pub(crate) unsafe extern "C" fn hipGraphExecBatchMemOpNodeSetParams(
    exec: Handle,
    node: Handle,
    parameters: *const BatchMemOpNodeParams,
) -> u32 {
    // SAFETY: the caller's struct.
    api(|| find_in(exec, node)?.set(unsafe { node_op::values(parameters)? }))
}

pub(crate) unsafe extern "C" fn hipGraphExecChildGraphNodeSetParams(
    exec: Handle,
    node: Handle,
    child: Handle,
) -> u32 {
    api(|| {
        let node = find_in(exec, node)?;
        let new = runtime::get()?.graphs.graph(child)?;
        let known = match &*node.op() {
            Op::Graph(graph) => Arc::clone(graph),
            _ => return Err(code::INVALID_VALUE),
        };
        update(&known, &new).map_err(|_| code::INVALID_VALUE)
    })
}

macro_rules! getters {
    ($($get:ident ($type:ty) = $of:expr;)*) => {$(
        pub(crate) unsafe extern "C" fn $get(node: Handle, out: *mut $type) -> u32 {
            // SAFETY: the caller's pointer, checked for null.
            api(|| unsafe { put(out, $of(&*find(node)?)?) })
        }
    )*};
}

getters! {
    hipGraphKernelNodeGetParams (KernelNodeParams) = node_op::kernel_params;
    hipGraphMemcpyNodeGetParams (Memcpy3D) = node_op::copy_params_of;
    hipDrvGraphMemcpyNodeGetParams (DrvMemcpy3D) = node_op::driver_copy_params_of;
    hipGraphMemsetNodeGetParams (MemsetParams) = node_op::fill_params;
    hipGraphHostNodeGetParams (HostNodeParams) = node_op::host_params;
    hipGraphEventRecordNodeGetEvent (Handle) = |node| node_op::event(node, true);
    hipGraphEventWaitNodeGetEvent (Handle) = |node| node_op::event(node, false);
    hipGraphMemAllocNodeGetParams (MemAllocNodeParams) = allocate_params;
    hipGraphChildGraphNodeGetGraph (Handle) = child_graph;
}

fn allocate_params(node: &Node) -> HipResult<MemAllocNodeParams> {
    match &*node.op() {
        Op::Allocate(block) => Ok(MemAllocNodeParams {
            pool: MemPoolProps {
                alloc_type: 1,
                handle_types: 0,
                location: MemLocation {
                    kind: 1,
                    id: block.device.ordinal as i32,
                },
                win32_security_attributes: std::ptr::null_mut(),
                max_size: 0,
                reserved: [0; 56],
            },
            access: std::ptr::null(),
            access_count: 0,
            bytes: block.size,
            address: block.address as *mut c_void,
        }),
        _ => Err(code::INVALID_VALUE),
    }
}

/// The graph inside a node, which the program may then look through.
fn child_graph(node: &Node) -> HipResult<Handle> {
    match &*node.op() {
        Op::Graph(graph) => Ok(runtime::get()?.graphs.enter(Arc::clone(graph))),
        _ => Err(code::INVALID_VALUE),
    }
}

pub(crate) unsafe extern "C" fn hipGraphMemFreeNodeGetParams(
    node: Handle,
    out: *mut c_void,
) -> u32 {
    api(|| match *find(node)?.op() {
        // SAFETY: the caller's pointer to an address, checked for null.
        Op::Release(address) => unsafe { put(out.cast(), address) },
        _ => Err(code::INVALID_VALUE),
    })
}

pub(crate) unsafe extern "C" fn hipGraphBatchMemOpNodeGetParams(
    node: Handle,
    out: *mut BatchMemOpNodeParams,
) -> u32 {
    api(|| match &*find(node)?.op() {
        // SAFETY: the caller's struct and its list, which has room for the operations, checked for null.
        Op::Values(ops) => unsafe {
            let mut p = out.as_ref().copied().ok_or(code::INVALID_VALUE)?;
            if !p.list.is_null() {
                value::to_list(ops, p.list);
            }
            p.count = ops.len() as u32;
            p.flags = 0;
            put(out, p)
        },
        _ => Err(code::INVALID_VALUE),
    })
}

pub(crate) unsafe extern "C" fn hipGraphNodeSetEnabled(
    exec: Handle,
    node: Handle,
    enabled: u32,
) -> u32 {
    api(|| find_in(exec, node)?.enable(enabled != 0))
}

pub(crate) unsafe extern "C" fn hipGraphNodeGetEnabled(
    exec: Handle,
    node: Handle,
    out: *mut u32,
) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe { put(out, u32::from(find_in(exec, node)?.is_enabled())) })
}

pub(crate) unsafe extern "C" fn hipGraphKernelNodeSetAttribute(
    node: Handle,
    attribute: u32,
    value: *const LaunchAttributeValue,
) -> u32 {
    api(|| {
        let node = find(node)?;
        // SAFETY: the caller's value, checked for null.
        let number = unsafe { value.as_ref() }.ok_or(code::INVALID_VALUE)?.number;
        let mut op = node.op();
        let Op::Kernel(kernel) = &mut *op else {
            return Err(code::INVALID_VALUE);
        };
        match attribute {
            launch_attribute::COOPERATIVE => kernel.geometry.cooperative = number != 0,
            launch_attribute::PRIORITY => *lock(&node.priority) = number,
            // A hint about caches.
            launch_attribute::ACCESS_POLICY_WINDOW => {}
            _ => return Err(code::INVALID_VALUE),
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn hipGraphKernelNodeGetAttribute(
    node: Handle,
    attribute: u32,
    value: *mut LaunchAttributeValue,
) -> u32 {
    api(|| {
        let node = find(node)?;
        let op = node.op();
        let Op::Kernel(kernel) = &*op else {
            return Err(code::INVALID_VALUE);
        };
        let number = match attribute {
            launch_attribute::COOPERATIVE => i32::from(kernel.geometry.cooperative),
            launch_attribute::PRIORITY => *lock(&node.priority),
            launch_attribute::ACCESS_POLICY_WINDOW => 0,
            _ => return Err(code::INVALID_VALUE),
        };
        let out = LaunchAttributeValue {
            number,
            rest: [0; 60],
        };
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(value, out) }
    })
}

pub(crate) unsafe extern "C" fn hipGraphKernelNodeCopyAttributes(from: Handle, to: Handle) -> u32 {
    api(|| {
        let (from, to) = (find(from)?, find(to)?);
        let cooperative = match &*from.op() {
            Op::Kernel(kernel) => kernel.geometry.cooperative,
            _ => return Err(code::INVALID_VALUE),
        };
        match &mut *to.op() {
            Op::Kernel(kernel) => kernel.geometry.cooperative = cooperative,
            _ => return Err(code::INVALID_VALUE),
        }
        let priority = *lock(&from.priority);
        *lock(&to.priority) = priority;
        Ok(())
    })
}

/// Reason for which an executable graph cannot be updated: the node, and the `hipGraphExecUpdateResult`.
type Mismatch = (Option<Arc<Node>>, u32);

/// Gives the nodes of `known` the parameters of the nodes of `new`, which must have the same kinds and order.
fn update(known: &Graph, new: &Graph) -> Result<(), Mismatch> {
    const ERROR: u32 = 1;
    const TOPOLOGY_CHANGED: u32 = 2;
    const KIND_CHANGED: u32 = 3;
    const PARAMETERS_CHANGED: u32 = 5;
    let order = |graph: &Graph| graph.order().map_err(|_| (None, ERROR));
    let (known, new) = (order(known)?, order(new)?);
    if known.len() != new.len() {
        return Err((None, TOPOLOGY_CHANGED));
    }
    let places = |nodes: &[Arc<Node>], node: &Arc<Node>| {
        let place = |before: &Arc<Node>| nodes.iter().position(|n| Arc::ptr_eq(n, before));
        let mut list: Vec<_> = lock(&node.after).iter().map(place).collect();
        list.sort_unstable();
        list
    };
    for (mine, theirs) in known.iter().zip(&new) {
        if places(&known, mine) != places(&new, theirs) {
            return Err((Some(Arc::clone(theirs)), TOPOLOGY_CHANGED));
        }
        if mine.op().kind() != theirs.op().kind() {
            return Err((Some(Arc::clone(theirs)), KIND_CHANGED));
        }
        if let (Op::Allocate(mine), Op::Allocate(other)) = (&*mine.op(), &*theirs.op())
            && !Arc::ptr_eq(mine, other)
        {
            return Err((Some(Arc::clone(theirs)), PARAMETERS_CHANGED));
        }
    }
    for (mine, theirs) in known.iter().zip(&new) {
        let op = theirs.op().clone();
        if let Op::Graph(inner) = &op {
            let own = match &*mine.op() {
                Op::Graph(own) => Arc::clone(own),
                _ => continue,
            };
            update(&own, inner)?;
            continue;
        }
        mine.set(op)
            .map_err(|_| (Some(Arc::clone(theirs)), ERROR))?;
    }
    Ok(())
}

pub(crate) unsafe extern "C" fn hipGraphExecUpdate(
    exec: Handle,
    graph: Handle,
    error_node: *mut Handle,
    result: *mut u32,
) -> u32 {
    api(|| {
        if error_node.is_null() || result.is_null() {
            return Err(code::INVALID_VALUE);
        }
        let graphs = &runtime::get()?.graphs;
        let (exec, graph) = (graphs.exec(exec)?, graphs.graph(graph)?);
        let (node, outcome) = match update(&exec.graph, &graph) {
            Ok(()) => (std::ptr::null_mut(), 0),
            Err((node, why)) => (node.map_or(std::ptr::null_mut(), |node| node.handle()), why),
        };
        // SAFETY: the caller's pointers, not null.
        unsafe {
            put(error_node, node)?;
            put(result, outcome)?;
        }
        if outcome == 0 {
            Ok(())
        } else {
            Err(code::GRAPH_EXEC_UPDATE_FAILURE)
        }
    })
}
