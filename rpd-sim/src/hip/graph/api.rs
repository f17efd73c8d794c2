//! The graph functions of the API; functions that capture streams are in `capture_api`.

use core::ffi::{CStr, c_char, c_int, c_void};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::hip::copy::params;
use crate::hip::error::{HipResult, api, code, put};
use crate::hip::graph::node as node_op;
use crate::hip::graph::{Exec, Graph, Node, Op, reaches};
use crate::hip::runtime::{self, lock, write};
use crate::hip::stream::{self, Stream};
use crate::hip::types::{
    BatchMemOpNodeParams, DrvMemcpy3D, GraphNodeParams, Handle, HostNodeParams, InstantiateParams,
    KernelNodeParams, MemAllocNodeParams, Memcpy3D, MemsetParams,
};

pub(crate) unsafe extern "C" fn hipGraphCreate(out: *mut Handle, flags: u32) -> u32 {
    api(|| {
        if out.is_null() || flags != 0 {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the caller's pointer, not null.
        unsafe { put(out, runtime::get()?.graphs.enter(Graph::new())) }
    })
}

pub(crate) unsafe extern "C" fn hipGraphDestroy(graph: Handle) -> u32 {
    api(|| {
        let gone = write(&runtime::get()?.graphs.graphs).remove(&(graph as usize));
        gone.map(|_| ()).ok_or(code::INVALID_VALUE)
    })
}

pub(crate) unsafe extern "C" fn hipGraphClone(out: *mut Handle, graph: Handle) -> u32 {
    api(|| {
        let graphs = &runtime::get()?.graphs;
        let copy = graphs.graph(graph)?.copy()?;
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(out, graphs.enter(copy)) }
    })
}

fn instantiate(out: *mut Handle, graph: Handle, flags: u64) -> HipResult {
    if out.is_null() {
        return Err(code::INVALID_VALUE);
    }
    let graphs = &runtime::get()?.graphs;
    let exec = Arc::new(Exec {
        graph: graphs.graph(graph)?.copy()?,
        flags,
    });
    let handle = Arc::as_ptr(&exec).cast_mut().cast::<c_void>();
    write(&graphs.execs).insert(handle as usize, exec);
    // SAFETY: the caller's pointer, not null.
    unsafe { put(out, handle) }
}

pub(crate) unsafe extern "C" fn hipGraphInstantiate(
    out: *mut Handle,
    graph: Handle,
    _error_node: *mut Handle,
    _log: *mut c_char,
    _log_size: usize,
) -> u32 {
    api(|| instantiate(out, graph, 0))
}

pub(crate) unsafe extern "C" fn hipGraphInstantiateWithFlags(
    out: *mut Handle,
    graph: Handle,
    flags: u64,
) -> u32 {
    api(|| instantiate(out, graph, flags))
}

pub(crate) unsafe extern "C" fn hipGraphInstantiateWithParams(
    out: *mut Handle,
    graph: Handle,
    parameters: *mut InstantiateParams,
) -> u32 {
    const INVALID_STRUCTURE: u32 = 2;
    api(|| {
        // SAFETY: the caller's struct, checked for null.
        let p = unsafe { parameters.as_mut() }.ok_or(code::INVALID_VALUE)?;
        let made = instantiate(out, graph, p.flags);
        p.error_node = std::ptr::null_mut();
        p.result = if made.is_ok() { 0 } else { INVALID_STRUCTURE };
        made
    })
}

pub(crate) unsafe extern "C" fn hipGraphExecGetFlags(exec: Handle, flags: *mut u64) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe { put(flags, runtime::get()?.graphs.exec(exec)?.flags) })
}

pub(crate) unsafe extern "C" fn hipGraphExecDestroy(exec: Handle) -> u32 {
    api(|| {
        let gone = write(&runtime::get()?.graphs.execs).remove(&(exec as usize));
        gone.map(|_| ()).ok_or(code::INVALID_VALUE)
    })
}

fn launch_graph(exec: Handle, stream: Arc<Stream>) -> HipResult {
    let exec = runtime::get()?.graphs.exec(exec)?;
    if stream.is_capturing() {
        return crate::hip::graph::submit(&stream, Op::Graph(Arc::clone(&exec.graph)));
    }
    exec.launch(&stream)
}

pub(crate) unsafe extern "C" fn hipGraphLaunch(exec: Handle, stream: Handle) -> u32 {
    api(|| launch_graph(exec, stream::resolve(stream)?))
}

pub(crate) unsafe extern "C" fn hipGraphLaunch_spt(exec: Handle, stream: Handle) -> u32 {
    api(|| launch_graph(exec, stream::resolve_spt(stream)?))
}

pub(crate) unsafe extern "C" fn hipGraphUpload(exec: Handle, stream: Handle) -> u32 {
    // A graph has no resources on the device before it is launched.
    api(|| {
        stream::resolve(stream)?;
        runtime::get()?.graphs.exec(exec).map(|_| ())
    })
}

/// Nodes of a graph by their handles.
///
/// # Safety
/// `list` has `count` entries.
pub(crate) unsafe fn nodes(
    graph: &Graph,
    list: *const Handle,
    count: usize,
) -> HipResult<Vec<Arc<Node>>> {
    if count > 0 && list.is_null() {
        return Err(code::INVALID_VALUE);
    }
    let known = lock(&graph.nodes);
    (0..count)
        .map(|n| {
            // SAFETY: by contract.
            let handle = unsafe { list.add(n).read() };
            known
                .iter()
                .find(|node| node.handle() == handle)
                .cloned()
                .ok_or(code::INVALID_VALUE)
        })
        .collect()
}

/// # Safety
/// `out` is null or valid, `list` has `count` entries.
unsafe fn add(
    out: *mut Handle,
    graph: Handle,
    list: *const Handle,
    count: usize,
    op: impl FnOnce() -> HipResult<Op>,
) -> HipResult {
    let graph = runtime::get()?.graphs.graph(graph)?;
    // SAFETY: by contract.
    let after = unsafe { nodes(&graph, list, count)? };
    if out.is_null() {
        return Err(code::INVALID_VALUE);
    }
    let node = graph.add(op()?, after);
    // SAFETY: by contract, not null.
    unsafe { put(out, node.handle()) }
}

/// Functions that add a node of one kind. They take a list of nodes that come before it, and the parameters of the
/// operation.
macro_rules! adders {
    ($($name:ident ($($argument:ident: $type:ty),*) = $op:expr;)*) => {$(
        #[allow(clippy::too_many_arguments)]
        pub(crate) unsafe extern "C" fn $name(
            out: *mut Handle,
            graph: Handle,
            list: *const Handle,
            count: usize,
            $($argument: $type),*
        ) -> u32 {
            // SAFETY: the caller's pointers.
            api(|| unsafe { add(out, graph, list, count, || $op) })
        }
    )*};
}

adders! {
    hipGraphAddEmptyNode () = Ok(Op::Empty);
    hipGraphAddKernelNode (parameters: *const KernelNodeParams) = node_op::kernel(parameters);
    hipGraphAddMemcpyNode (parameters: *const Memcpy3D) = node_op::cube_copy(parameters);
    hipGraphAddMemcpyNode1D (dst: *mut c_void, src: *const c_void, size: usize, kind: u32)
        = node_op::linear_copy(dst, src, size, kind);
    hipGraphAddMemcpyNodeToSymbol
        (symbol: *const c_void, src: *const c_void, size: usize, offset: usize, kind: u32)
        = params::to_symbol(symbol, src, size, offset, kind).and_then(node_op::checked_copy);
    hipGraphAddMemcpyNodeFromSymbol
        (dst: *mut c_void, symbol: *const c_void, size: usize, offset: usize, kind: u32)
        = params::from_symbol(dst, symbol, size, offset, kind).and_then(node_op::checked_copy);
    hipGraphAddMemsetNode (parameters: *const MemsetParams) = node_op::fill(parameters);
    hipGraphAddHostNode (parameters: *const HostNodeParams) = node_op::host(parameters);
    hipGraphAddEventRecordNode (event: Handle) = node_op::record(event);
    hipGraphAddEventWaitNode (event: Handle) = node_op::wait(event);
    hipGraphAddChildGraphNode (child: Handle) = node_op::child(child);
    hipGraphAddMemAllocNode (parameters: *mut MemAllocNodeParams) = node_op::allocate(parameters);
    hipGraphAddMemFreeNode (address: *mut c_void) = node_op::release(address);
    hipDrvGraphAddMemFreeNode (address: *mut c_void) = node_op::release(address);
    hipDrvGraphAddMemcpyNode (parameters: *const DrvMemcpy3D, _context: Handle)
        = node_op::driver_copy(parameters);
    hipDrvGraphAddMemsetNode (parameters: *const MemsetParams, _context: Handle)
        = node_op::fill(parameters);
    hipGraphAddBatchMemOpNode (parameters: *const BatchMemOpNodeParams) = node_op::values(parameters);
    hipGraphAddNode (parameters: *mut GraphNodeParams) = node_op::any(parameters);
}

pub(crate) unsafe extern "C" fn hipGraphAddDependencies(
    graph: Handle,
    from: *const Handle,
    to: *const Handle,
    count: usize,
) -> u32 {
    api(|| {
        let graph = runtime::get()?.graphs.graph(graph)?;
        // SAFETY: the caller's lists.
        let (from, to) = unsafe { (nodes(&graph, from, count)?, nodes(&graph, to, count)?) };
        for (before, node) in from.into_iter().zip(to) {
            if reaches(&[Arc::clone(&before)], &node) {
                return Err(code::INVALID_VALUE);
            }
            lock(&node.after).push(before);
        }
        Ok(())
    })
}

/// Writes handles to a list with room for `*count` of them, and their number to `count`. The number alone if `out` is
/// null.
///
/// # Safety
/// `count` is null or valid, `out` is null or has room for `*count`.
unsafe fn list(all: &[Arc<Node>], out: *mut Handle, count: *mut usize) -> HipResult {
    if count.is_null() {
        return Err(code::INVALID_VALUE);
    }
    if !out.is_null() {
        // SAFETY: by contract.
        let room = unsafe { count.read() };
        for n in 0..room {
            let handle = all.get(n).map_or(std::ptr::null_mut(), Node::handle);
            // SAFETY: by contract.
            unsafe { out.add(n).write(handle) };
        }
    }
    // SAFETY: by contract, not null.
    unsafe { put(count, all.len()) }
}

pub(crate) unsafe extern "C" fn hipGraphGetNodes(
    graph: Handle,
    out: *mut Handle,
    count: *mut usize,
) -> u32 {
    api(|| {
        let graph = runtime::get()?.graphs.graph(graph)?;
        let all = lock(&graph.nodes).clone();
        // SAFETY: the caller's pointers.
        unsafe { list(&all, out, count) }
    })
}

pub(crate) unsafe extern "C" fn hipGraphGetRootNodes(
    graph: Handle,
    out: *mut Handle,
    count: *mut usize,
) -> u32 {
    api(|| {
        let graph = runtime::get()?.graphs.graph(graph)?;
        let mut all = lock(&graph.nodes).clone();
        all.retain(|node| lock(&node.after).is_empty());
        // SAFETY: the caller's pointers.
        unsafe { list(&all, out, count) }
    })
}

fn find(handle: Handle) -> HipResult<Arc<Node>> {
    Ok(runtime::get()?.graphs.node(handle)?.1)
}

pub(crate) unsafe extern "C" fn hipGraphNodeGetType(node: Handle, kind: *mut u32) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe { put(kind, find(node)?.op().kind()) })
}

pub(crate) unsafe extern "C" fn hipGraphNodeGetDependencies(
    node: Handle,
    out: *mut Handle,
    count: *mut usize,
) -> u32 {
    api(|| {
        let all = lock(&find(node)?.after).clone();
        // SAFETY: the caller's pointers.
        unsafe { list(&all, out, count) }
    })
}

pub(crate) unsafe extern "C" fn hipGraphNodeGetDependentNodes(
    node: Handle,
    out: *mut Handle,
    count: *mut usize,
) -> u32 {
    api(|| {
        let (graph, node) = runtime::get()?.graphs.node(node)?;
        // SAFETY: the caller's pointers.
        unsafe { list(&graph.dependent(&node), out, count) }
    })
}

pub(crate) unsafe extern "C" fn hipGraphGetEdges(
    graph: Handle,
    from: *mut Handle,
    to: *mut Handle,
    count: *mut usize,
) -> u32 {
    api(|| {
        if from.is_null() != to.is_null() {
            return Err(code::INVALID_VALUE);
        }
        let edges = runtime::get()?.graphs.graph(graph)?.edges();
        let (first, second): (Vec<_>, Vec<_>) = edges.into_iter().unzip();
        // SAFETY: the caller's pointers; the number is the same for both lists.
        unsafe {
            let mut room = count.as_ref().copied().ok_or(code::INVALID_VALUE)?;
            list(&first, from, &mut room)?;
            list(&second, to, count)
        }
    })
}

pub(crate) unsafe extern "C" fn hipGraphRemoveDependencies(
    graph: Handle,
    from: *const Handle,
    to: *const Handle,
    count: usize,
) -> u32 {
    api(|| {
        let graph = runtime::get()?.graphs.graph(graph)?;
        // SAFETY: the caller's lists.
        let (from, to) = unsafe { (nodes(&graph, from, count)?, nodes(&graph, to, count)?) };
        for (before, node) in from.into_iter().zip(to) {
            let mut after = lock(&node.after);
            let known = after.iter().position(|n| Arc::ptr_eq(n, &before));
            after.remove(known.ok_or(code::INVALID_VALUE)?);
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn hipGraphDestroyNode(node: Handle) -> u32 {
    api(|| {
        let (graph, node) = runtime::get()?.graphs.node(node)?;
        graph.remove(&node);
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn hipGraphNodeFindInClone(
    out: *mut Handle,
    original: Handle,
    clone: Handle,
) -> u32 {
    api(|| {
        let twin = runtime::get()?.graphs.graph(clone)?.twin(original)?;
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(out, twin.handle()) }
    })
}

pub(crate) unsafe extern "C" fn hipGraphDebugDotPrint(
    graph: Handle,
    path: *const c_char,
    _flags: u32,
) -> u32 {
    api(|| {
        if path.is_null() {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the caller's text, not null.
        let path = unsafe { CStr::from_ptr(path) };
        let text = dot(&*runtime::get()?.graphs.graph(graph)?);
        std::fs::write(OsStr::from_bytes(path.to_bytes()), text).map_err(|_| code::OPERATING_SYSTEM)
    })
}

/// The graph in the language of Graphviz: a box for each node with its kind and, for a kernel, its name.
fn dot(graph: &Graph) -> String {
    use std::fmt::Write;
    let nodes = lock(&graph.nodes).clone();
    let number = |node: &Arc<Node>| nodes.iter().position(|n| Arc::ptr_eq(n, node));
    let mut text = format!("digraph graph_{} {{\n", graph.id);
    for (n, node) in nodes.iter().enumerate() {
        let label = match &*node.op() {
            Op::Kernel(kernel) => format!("kernel\\n{}", kernel.function.name.to_string_lossy()),
            Op::Copy(copy) => format!("copy\\n{} bytes", copy.width * copy.height * copy.depth),
            Op::Fill(fill) => format!("fill\\n{} bytes", fill.width * fill.rows),
            Op::Host(_) => "host function".to_owned(),
            Op::Graph(inner) => format!("graph {}", inner.id),
            Op::Empty => "empty".to_owned(),
            Op::Wait(_) => "wait for event".to_owned(),
            Op::Record(_) => "record event".to_owned(),
            Op::Allocate(block) => format!("allocate\\n{} bytes", block.size),
            Op::Release(address) => format!("free\\n{address:#x}"),
            Op::Values(values) => format!("{} values", values.len()),
        };
        // Writing to a text cannot fail.
        let _ = writeln!(text, "  n{n} [shape=box, label=\"{label}\"];");
    }
    for (from, to) in graph.edges() {
        if let (Some(from), Some(to)) = (number(&from), number(&to)) {
            let _ = writeln!(text, "  n{from} -> n{to};");
        }
    }
    text.push_str("}\n");
    text
}

pub(crate) unsafe extern "C" fn hipDeviceGetGraphMemAttribute(
    device: c_int,
    attribute: u32,
    value: *mut c_void,
) -> u32 {
    api(|| {
        let level = runtime::device(device)?.graph_memory.attribute(attribute)?;
        // SAFETY: the caller's pointer to 64 bits, checked for null.
        unsafe { put(value.cast(), level.load(Ordering::Relaxed)) }
    })
}

pub(crate) unsafe extern "C" fn hipDeviceSetGraphMemAttribute(
    device: c_int,
    attribute: u32,
    value: *mut c_void,
) -> u32 {
    const HIGH_WATERMARKS: [u32; 2] = [1, 3];
    api(|| {
        let usage = &runtime::device(device)?.graph_memory;
        // SAFETY: the caller's pointer to 64 bits, checked for null.
        let value = unsafe { value.cast::<u64>().as_ref() }.ok_or(code::INVALID_VALUE)?;
        // The highest values can be reset, the others are read only.
        if !HIGH_WATERMARKS.contains(&attribute) || *value != 0 {
            return Err(code::INVALID_VALUE);
        }
        let now = usage.attribute(attribute - 1)?.load(Ordering::Relaxed);
        usage.attribute(attribute)?.store(now, Ordering::Relaxed);
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn hipDeviceGraphMemTrim(device: c_int) -> u32 {
    // Memory of graphs is freed with them: nothing is kept that could be trimmed.
    api(|| runtime::device(device).map(|_| ()))
}
