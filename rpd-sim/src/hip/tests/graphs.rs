//! Graphs made and changed node by node.

use core::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

use super::super::types::*;
use super::*;
use crate::hip::graph::params_api::*;
use crate::hip::graph::user_object::*;

const N: u32 = 256;
const BYTES: usize = 4 * N as usize;

/// The parameters of `data = data * factor + term`, whose values live in the caller's array.
struct Affine {
    data: *mut c_void,
    factor: u32,
    term: u32,
    n: u32,
    list: [*mut c_void; 4],
}

impl Affine {
    fn new(data: *mut c_void, factor: u32, term: u32) -> Box<Self> {
        let mut affine = Box::new(Self {
            data,
            factor,
            term,
            n: N,
            list: [null_mut(); 4],
        });
        affine.list = [
            arg(&mut affine.data),
            arg(&mut affine.factor),
            arg(&mut affine.term),
            arg(&mut affine.n),
        ];
        affine
    }

    fn params(&mut self) -> KernelNodeParams {
        KernelNodeParams {
            block: Dim3::new(64, 1, 1),
            extra: null_mut(),
            func: kernel(c"affine"),
            grid: Dim3::new(N / 64, 1, 1),
            params: self.list.as_mut_ptr(),
            shared: 0,
        }
    }
}

fn new_graph() -> Handle {
    let mut graph = null_mut();
    ok!(hipGraphCreate(&mut graph, 0));
    graph
}

fn instantiate(graph: Handle) -> Handle {
    let mut exec = null_mut();
    ok!(hipGraphInstantiate(
        &mut exec,
        graph,
        null_mut(),
        null_mut(),
        0
    ));
    exec
}

fn add_affine(
    graph: Handle,
    after: &[Handle],
    data: *mut c_void,
    factor: u32,
    term: u32,
) -> Handle {
    let mut node = null_mut();
    let mut affine = Affine::new(data, factor, term);
    let params = affine.params();
    ok!(hipGraphAddKernelNode(
        &mut node,
        graph,
        after.as_ptr(),
        after.len(),
        &params
    ));
    node
}

fn run(exec: Handle) {
    ok!(hipGraphLaunch(exec, null_mut()));
    ok!(hipDeviceSynchronize());
}

#[test]
fn parameters_of_graph_nodes_are_read_and_changed() {
    let data = device_memory(BYTES);
    let graph = new_graph();
    let mut fill = null_mut();
    let zero = MemsetParams {
        dst: data,
        element_size: 4,
        height: 1,
        pitch: 0,
        value: 1,
        width: N as usize,
    };
    ok!(hipGraphAddMemsetNode(&mut fill, graph, null(), 0, &zero));
    let node = add_affine(graph, &[fill], data, 2, 3);

    // SAFETY: plain numbers and pointers.
    let mut known: KernelNodeParams = unsafe { std::mem::zeroed() };
    ok!(hipGraphKernelNodeGetParams(node, &mut known));
    assert_eq!((known.grid.x, known.block.x), (N / 64, 64));
    assert_eq!(known.func, kernel(c"affine"));
    // SAFETY: the kernel has four arguments, the second and third are numbers.
    let values = unsafe {
        let list = std::slice::from_raw_parts(known.params, 4);
        (list[1].cast::<u32>().read(), list[2].cast::<u32>().read())
    };
    assert_eq!(values, (2, 3));
    // SAFETY: plain numbers and pointers.
    let mut filled: MemsetParams = unsafe { std::mem::zeroed() };
    ok!(hipGraphMemsetNodeGetParams(fill, &mut filled));
    assert_eq!(
        (filled.dst, filled.width, filled.value),
        (data, N as usize, 1)
    );
    fails!(
        hipGraphMemsetNodeGetParams(node, &mut filled),
        INVALID_VALUE
    );

    let exec = instantiate(graph);
    run(exec);
    assert_eq!(download(data, 2), [5, 5]);

    // In the executable graph alone, then in the graph alone.
    let mut affine = Affine::new(data, 10, 1);
    let params = affine.params();
    ok!(hipGraphExecKernelNodeSetParams(exec, node, &params));
    run(exec);
    assert_eq!(download(data, 1), [11]);
    let changed = MemsetParams { value: 7, ..zero };
    ok!(hipGraphMemsetNodeSetParams(fill, &changed));
    run(exec);
    assert_eq!(download(data, 1), [11]);
    let (mut bad, mut result) = (null_mut(), 9);
    ok!(hipGraphExecUpdate(exec, graph, &mut bad, &mut result));
    assert_eq!(result, 0);
    run(exec);
    assert_eq!(download(data, 1), [17], "fill with 7, then 2 x + 3");

    // A node of another kind refuses the parameters.
    fails!(hipGraphMemsetNodeSetParams(node, &zero), INVALID_VALUE);

    ok!(hipGraphNodeSetEnabled(exec, node, 0));
    run(exec);
    assert_eq!(download(data, 1), [7]);
    let mut enabled = 9;
    ok!(hipGraphNodeGetEnabled(exec, node, &mut enabled));
    assert_eq!(enabled, 0);

    let more = add_affine(graph, &[node], data, 1, 1);
    fails!(
        hipGraphExecUpdate(exec, graph, &mut bad, &mut result),
        GRAPH_EXEC_UPDATE_FAILURE
    );
    assert_eq!(result, 2, "another number of nodes");
    ok!(hipGraphDestroyNode(more));
    ok!(hipGraphExecUpdate(exec, graph, &mut bad, &mut result));
    ok!(hipGraphExecDestroy(exec));
    ok!(hipGraphDestroy(graph));
    ok!(hipFree(data));
}

#[test]
fn graphs_return_edges_clones_and_descriptions() {
    let data = device_memory(BYTES);
    let graph = new_graph();
    let first = add_affine(graph, &[], data, 1, 1);
    let second = add_affine(graph, &[first], data, 1, 2);
    let third = add_affine(graph, &[first, second], data, 1, 4);
    let mut count = 0;
    ok!(hipGraphGetEdges(graph, null_mut(), null_mut(), &mut count));
    assert_eq!(count, 3);
    let (mut from, mut to) = ([null_mut(); 3], [null_mut(); 3]);
    ok!(hipGraphGetEdges(
        graph,
        from.as_mut_ptr(),
        to.as_mut_ptr(),
        &mut count
    ));
    let edges: Vec<_> = from.into_iter().zip(to).collect();
    assert_eq!(edges, [(first, second), (first, third), (second, third)]);
    ok!(hipGraphNodeGetDependentNodes(first, null_mut(), &mut count));
    assert_eq!(count, 2);
    ok!(hipGraphRemoveDependencies(
        graph,
        [first].as_ptr(),
        [third].as_ptr(),
        1
    ));
    ok!(hipGraphNodeGetDependentNodes(first, null_mut(), &mut count));
    assert_eq!(count, 1);
    fails!(
        hipGraphRemoveDependencies(graph, [first].as_ptr(), [third].as_ptr(), 1),
        INVALID_VALUE
    );

    let (mut clone, mut twin) = (null_mut(), null_mut());
    ok!(hipGraphClone(&mut clone, graph));
    ok!(hipGraphNodeFindInClone(&mut twin, second, clone));
    assert_ne!(twin, second);
    let mut affine = Affine::new(data, 1, 100);
    let params = affine.params();
    ok!(hipGraphKernelNodeSetParams(twin, &params));
    ok!(hipMemset(data, 0, BYTES));
    let (exec, other) = (instantiate(graph), instantiate(clone));
    run(exec);
    assert_eq!(download(data, 1), [7]);
    run(other);
    assert_eq!(download(data, 1), [7 + 105]);

    let directory = std::env::temp_dir().join(format!("rpd-sim-dot-{}", std::process::id()));
    let path = std::ffi::CString::new(directory.to_str().expect("plain path")).expect("no NUL");
    ok!(hipGraphDebugDotPrint(graph, path.as_ptr(), 0));
    let text = std::fs::read_to_string(&directory).expect("the graph was written");
    std::fs::remove_file(&directory).expect("it can be removed");
    assert!(
        text.contains("n0 [shape=box, label=\"kernel\\naffine\"];"),
        "{text}"
    );
    assert!(text.contains("  n0 -> n1;\n  n1 -> n2;\n"), "{text}");

    let mut cooperative = LaunchAttributeValue {
        number: 1,
        rest: [0; 60],
    };
    ok!(hipGraphKernelNodeSetAttribute(
        first,
        launch_attribute::COOPERATIVE,
        &cooperative
    ));
    ok!(hipGraphKernelNodeCopyAttributes(first, second));
    cooperative.number = 0;
    ok!(hipGraphKernelNodeGetAttribute(
        second,
        launch_attribute::COOPERATIVE,
        &mut cooperative
    ));
    assert_eq!(cooperative.number, 1);
    for made in [exec, other] {
        ok!(hipGraphExecDestroy(made));
    }
    ok!(hipGraphDestroy(clone));
    ok!(hipGraphDestroy(graph));
    ok!(hipFree(data));
}

#[test]
fn graphs_allocate_and_free_memory() {
    let _alone = Alone::new();
    let out = device_memory(BYTES);
    let graph = new_graph();
    // SAFETY: plain numbers and pointers.
    let mut wanted: MemAllocNodeParams = unsafe { std::mem::zeroed() };
    wanted.pool.alloc_type = 1;
    wanted.pool.location = MemLocation { kind: 1, id: 0 };
    wanted.bytes = BYTES;
    let mut take = null_mut();
    ok!(hipGraphAddMemAllocNode(
        &mut take,
        graph,
        null(),
        0,
        &mut wanted
    ));
    let memory = wanted.address;
    assert!(!memory.is_null());
    let mut fill = null_mut();
    let value = MemsetParams {
        dst: memory,
        element_size: 4,
        height: 1,
        pitch: 0,
        value: 5,
        width: N as usize,
    };
    ok!(hipGraphAddMemsetNode(&mut fill, graph, &take, 1, &value));
    let work = add_affine(graph, &[fill], memory, 3, 1);
    let mut copy = null_mut();
    ok!(hipGraphAddMemcpyNode1D(
        &mut copy,
        graph,
        &work,
        1,
        out,
        memory,
        BYTES,
        kind::DEVICE_TO_DEVICE
    ));
    let mut give = null_mut();
    ok!(hipGraphAddMemFreeNode(&mut give, graph, &copy, 1, memory));
    let mut freed = null_mut::<c_void>();
    ok!(hipGraphMemFreeNodeGetParams(give, arg(&mut freed)));
    assert_eq!(freed, memory);
    let exec = instantiate(graph);
    for _ in 0..3 {
        run(exec);
    }
    assert_eq!(download(out, 1), [16]);
    // Freed by its node: not once more.
    fails!(hipFree(memory), INVALID_VALUE);

    let mut bytes = [0u64; 2];
    ok!(hipDeviceGetGraphMemAttribute(0, 1, arg(&mut bytes[0])));
    assert!(
        bytes[0] >= BYTES as u64,
        "the most that was in use: {bytes:?}"
    );
    ok!(hipGraphExecDestroy(exec));
    ok!(hipGraphDestroy(graph));

    // Captured allocations belong to the graph as well, and can be freed outside of it.
    let stream = new_stream(STREAM_NON_BLOCKING);
    ok!(hipStreamBeginCapture(stream, 0));
    let mut captured = null_mut();
    ok!(hipMallocAsync(&mut captured, BYTES, stream));
    affine(captured, 0, 9, N, stream);
    let mut graph = null_mut();
    ok!(hipStreamEndCapture(stream, &mut graph));
    let exec = instantiate(graph);
    ok!(hipGraphLaunch(exec, stream));
    ok!(hipStreamSynchronize(stream));
    assert_eq!(download(captured, 1), [9]);
    ok!(hipFreeAsync(captured, stream));
    fails!(hipFreeAsync(captured, stream), INVALID_VALUE);
    ok!(hipGraphExecDestroy(exec));
    ok!(hipGraphDestroy(graph));
    ok!(hipStreamDestroy(stream));
    ok!(hipFree(out));
}

#[test]
fn graph_nodes_are_added_by_their_type() {
    let data = device_memory(BYTES);
    let graph = new_graph();
    // SAFETY: plain numbers and pointers.
    let mut params: GraphNodeParams = unsafe { std::mem::zeroed() };
    params.kind = 2;
    params.any.fill = MemsetParams {
        dst: data,
        element_size: 4,
        height: 1,
        pitch: 0,
        value: 4,
        width: N as usize,
    };
    let mut fill = null_mut();
    ok!(hipGraphAddNode(&mut fill, graph, null(), 0, &mut params));
    params.kind = 0;
    let mut affine = Affine::new(data, 4, 0);
    params.any.kernel = affine.params();
    let mut work = null_mut();
    ok!(hipGraphAddNode(&mut work, graph, &fill, 1, &mut params));
    let mut affine = Affine::new(data, 5, 0);
    params.any.kernel = affine.params();
    ok!(hipGraphNodeSetParams(work, &mut params));
    params.kind = 99;
    fails!(
        hipGraphAddNode(&mut fill, graph, null(), 0, &mut params),
        INVALID_VALUE
    );
    let mut made = InstantiateParams {
        error_node: null_mut(),
        flags: 0,
        result: 9,
        upload_stream: null_mut(),
    };
    let mut exec = null_mut();
    ok!(hipGraphInstantiateWithParams(&mut exec, graph, &mut made));
    assert_eq!(made.result, 0);
    run(exec);
    assert_eq!(download(data, 1), [20]);
    ok!(hipGraphExecDestroy(exec));
    ok!(hipGraphDestroy(graph));
    ok!(hipFree(data));
}

#[test]
fn stream_captures_are_described_and_get_dependencies() {
    let _alone = Alone::new();
    let data = device_memory(BYTES);
    let stream = new_stream(STREAM_NON_BLOCKING);
    ok!(hipStreamBeginCapture(stream, 0));
    affine(data, 1, 1, N, stream);
    let (mut status, mut id, mut graph) = (0, 0, null_mut());
    let (mut nodes, mut count) = (null(), 0);
    ok!(hipStreamGetCaptureInfo_v2(
        stream,
        &mut status,
        &mut id,
        &mut graph,
        &mut nodes,
        &mut count
    ));
    assert_eq!((status, count), (1, 1));
    // SAFETY: the list has one entry.
    let first = unsafe { nodes.read() };
    let mut added = null_mut();
    ok!(hipGraphAddEmptyNode(&mut added, graph, &first, 1));
    ok!(hipStreamUpdateCaptureDependencies(stream, &mut added, 1, 1));
    affine(data, 1, 2, N, stream);
    let mut ended = null_mut();
    ok!(hipStreamEndCapture(stream, &mut ended));
    assert_eq!(ended, graph);
    ok!(hipGraphGetEdges(graph, null_mut(), null_mut(), &mut count));
    assert_eq!(count, 2, "kernel, empty node, kernel");
    ok!(hipGraphDestroy(graph));
    ok!(hipStreamDestroy(stream));
    ok!(hipFree(data));
}

#[test]
fn user_objects_live_as_long_as_their_graphs() {
    static DESTROYED: AtomicU32 = AtomicU32::new(0);
    unsafe extern "C" fn destroy(_: *mut c_void) {
        DESTROYED.fetch_add(1, Ordering::SeqCst);
    }
    let mut data = 1u32;
    let mut object = null_mut();
    ok!(hipUserObjectCreate(
        &mut object,
        arg(&mut data),
        Some(destroy),
        1,
        1
    ));
    let graph = new_graph();
    ok!(hipGraphRetainUserObject(graph, object, 1, 1));
    let mut clone = null_mut();
    ok!(hipGraphClone(&mut clone, graph));
    ok!(hipGraphDestroy(graph));
    assert_eq!(DESTROYED.load(Ordering::SeqCst), 0);
    ok!(hipGraphDestroy(clone));
    assert_eq!(DESTROYED.load(Ordering::SeqCst), 1);
}

#[test]
fn batches_of_memory_operations_write_and_await_values() {
    let data = device_memory(16);
    ok!(hipMemset(data, 0, 16));
    // Write 7 to the first number, wait for it, write 9 to the second (operations 2, 1 and 5).
    let mut list = [[0u64; 6]; 3];
    list[0] = [2, data as u64, 7, 0, 0, 0];
    list[1] = [1, data as u64, 7, 1, 0, 0];
    list[2] = [5, data as u64 + 8, 9, 0, 0, 0];
    ok!(hipStreamBatchMemOp(null_mut(), 3, list.as_ptr().cast(), 0));
    ok!(hipDeviceSynchronize());
    assert_eq!(download(data, 4), [7, 0, 9, 0]);
    list[0][0] = 6;
    fails!(
        hipStreamBatchMemOp(null_mut(), 3, list.as_ptr().cast(), 0),
        NOT_SUPPORTED
    );
    ok!(hipFree(data));
}
