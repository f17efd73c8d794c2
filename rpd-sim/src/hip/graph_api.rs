//! The graph functions of the API; those that capture streams are in `capture_api`.

use core::ffi::{c_char, c_void};
use std::sync::Arc;

use super::callback::HostCall;
use super::copy::{self, CopyOp};
use super::error::{HipResult, api, code, put};
use super::fatbin;
use super::fill::{self, FillOp};
use super::graph::{Exec, Graph, Node, Op, reaches};
use super::launch::{self, Geometry, KernelOp};
use super::module;
use super::runtime::{self, Opaque, lock, write};
use super::stream::{self, Stream};
use super::types::{Handle, HostNodeParams, KernelNodeParams, MemsetParams};

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
        return super::graph::submit(&stream, Op::Graph(Arc::clone(&exec.graph)));
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
pub(super) unsafe fn nodes(
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

pub(crate) unsafe extern "C" fn hipGraphAddEmptyNode(
    out: *mut Handle,
    graph: Handle,
    list: *const Handle,
    count: usize,
) -> u32 {
    // SAFETY: the caller's pointers.
    api(|| unsafe { add(out, graph, list, count, || Ok(Op::Empty)) })
}

pub(crate) unsafe extern "C" fn hipGraphAddKernelNode(
    out: *mut Handle,
    graph: Handle,
    list: *const Handle,
    count: usize,
    parameters: *const KernelNodeParams,
) -> u32 {
    let op = || {
        if parameters.is_null() {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the caller's struct, not null.
        let p = unsafe { parameters.read_unaligned() };
        let function = fatbin::function(p.func).or_else(|_| module::function(p.func))?;
        let geometry = Geometry {
            grid: p.grid,
            block: p.block,
            shared: p.shared,
            cooperative: false,
        };
        launch::check(&function, &geometry)?;
        // SAFETY: the caller's arguments.
        let args = unsafe { launch::gather(&function, p.params, p.extra)? };
        Ok(Op::Kernel(KernelOp {
            function,
            geometry,
            args,
        }))
    };
    // SAFETY: the caller's pointers.
    api(|| unsafe { add(out, graph, list, count, op) })
}

#[allow(clippy::too_many_arguments)]
pub(crate) unsafe extern "C" fn hipGraphAddMemcpyNode1D(
    out: *mut Handle,
    graph: Handle,
    list: *const Handle,
    count: usize,
    dst: *mut c_void,
    src: *const c_void,
    size: usize,
    kind: u32,
) -> u32 {
    let op = || {
        let op = CopyOp::linear(dst as usize, src as usize, size, kind);
        copy::check(&op)?;
        Ok(Op::Copy(op))
    };
    // SAFETY: the caller's pointers.
    api(|| unsafe { add(out, graph, list, count, op) })
}

pub(crate) unsafe extern "C" fn hipGraphAddMemsetNode(
    out: *mut Handle,
    graph: Handle,
    list: *const Handle,
    count: usize,
    parameters: *const MemsetParams,
) -> u32 {
    let op = || {
        if parameters.is_null() {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the caller's struct, not null.
        let p = unsafe { parameters.read_unaligned() };
        let element = p.element_size as usize;
        if !matches!(element, 1 | 2 | 4) {
            return Err(code::INVALID_VALUE);
        }
        let width = p.width.checked_mul(element).ok_or(code::INVALID_VALUE)?;
        let rows = p.height.max(1);
        let pitch = if rows == 1 { width } else { p.pitch };
        let op = FillOp {
            dst: p.dst as usize,
            pitch,
            width,
            rows,
            value: p.value,
            element,
        };
        fill::check(&op)?;
        Ok(Op::Fill(op))
    };
    // SAFETY: the caller's pointers.
    api(|| unsafe { add(out, graph, list, count, op) })
}

pub(crate) unsafe extern "C" fn hipGraphAddHostNode(
    out: *mut Handle,
    graph: Handle,
    list: *const Handle,
    count: usize,
    parameters: *const HostNodeParams,
) -> u32 {
    let op = || {
        if parameters.is_null() {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the caller's struct, not null.
        let p = unsafe { parameters.read_unaligned() };
        if p.callback.is_none() {
            return Err(code::INVALID_VALUE);
        }
        Ok(Op::Host(HostCall::Function(p.callback, Opaque(p.data))))
    };
    // SAFETY: the caller's pointers.
    api(|| unsafe { add(out, graph, list, count, op) })
}

pub(crate) unsafe extern "C" fn hipGraphAddEventRecordNode(
    out: *mut Handle,
    graph: Handle,
    list: *const Handle,
    count: usize,
    event: Handle,
) -> u32 {
    // SAFETY: the caller's pointers.
    api(|| unsafe {
        add(out, graph, list, count, || {
            Ok(Op::Record(runtime::get()?.event(event)?))
        })
    })
}

pub(crate) unsafe extern "C" fn hipGraphAddEventWaitNode(
    out: *mut Handle,
    graph: Handle,
    list: *const Handle,
    count: usize,
    event: Handle,
) -> u32 {
    // SAFETY: the caller's pointers.
    api(|| unsafe {
        add(out, graph, list, count, || {
            Ok(Op::Wait(runtime::get()?.event(event)?))
        })
    })
}

pub(crate) unsafe extern "C" fn hipGraphAddChildGraphNode(
    out: *mut Handle,
    graph: Handle,
    list: *const Handle,
    count: usize,
    child: Handle,
) -> u32 {
    let op = || Ok(Op::Graph(runtime::get()?.graphs.graph(child)?.copy()?));
    // SAFETY: the caller's pointers.
    api(|| unsafe { add(out, graph, list, count, op) })
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

/// Lists handles: their number, and as many as there is room for.
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
    let graphs = runtime::get()?;
    let table = runtime::read(&graphs.graphs.graphs);
    let found = table.values().find_map(|graph| {
        lock(&graph.nodes)
            .iter()
            .find(|n| n.handle() == handle)
            .cloned()
    });
    found.ok_or(code::INVALID_VALUE)
}

pub(crate) unsafe extern "C" fn hipGraphNodeGetType(node: Handle, kind: *mut u32) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe { put(kind, find(node)?.op.kind()) })
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
