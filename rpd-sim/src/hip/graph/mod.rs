//! Operations as values, and graphs: operations kept with their order instead of being carried out.

pub(crate) mod api;
pub(crate) mod capture_api;
pub(crate) mod capture_rules;
pub(crate) mod memory;
pub(crate) mod node;
pub(crate) mod params_api;
pub(crate) mod user_object;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, Weak};

use crate::hip::copy::fill::{self, FillOp};
use crate::hip::copy::{self, CopyOp};
use crate::hip::error::{HipResult, code};
use crate::hip::graph::capture_rules::UnderWay;
use crate::hip::graph::memory::{Block, Blocks};
use crate::hip::graph::user_object::{References, UserObjects};
use crate::hip::launch::{self, KernelOp};
use crate::hip::runtime::{self, lock, read, write};
use crate::hip::settings::{self, Serialize};
use crate::hip::stream::Stream;
use crate::hip::stream::callback::HostCall;
use crate::hip::stream::event::{Event, Recorded};
use crate::hip::stream::value::{self, ValueOp};
use crate::hip::types::Handle;

/// A command for a stream. Its arguments have been checked.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    Kernel(KernelOp),
    Copy(CopyOp),
    Fill(FillOp),
    Host(HostCall),
    Record(Arc<Event>),
    Wait(Arc<Event>),
    /// A child graph, run as one node.
    Graph(Arc<Graph>),
    Empty,
    /// Memory of the graph comes into use by the program.
    Allocate(Arc<Block>),
    /// The graph's memory at this address goes out of use.
    Release(usize),
    /// Numbers in memory that are written or waited for.
    Values(Vec<ValueOp>),
}

impl Op {
    /// The operation's `hipGraphNodeType`.
    pub(crate) fn kind(&self) -> u32 {
        match self {
            Op::Kernel(_) => 0,
            Op::Copy(_) => 1,
            Op::Fill(_) => 2,
            Op::Host(_) => 3,
            Op::Graph(_) => 4,
            Op::Empty => 5,
            Op::Wait(_) => 6,
            Op::Record(_) => 7,
            Op::Allocate(_) => 10,
            Op::Release(_) => 11,
            Op::Values(_) => 14,
        }
    }

    fn run(&self, stream: &Stream) -> HipResult {
        match self {
            Op::Kernel(op) => {
                serialized(settings::get().kernels, stream, || launch::run(stream, op))
            }
            Op::Copy(op) => serialized(settings::get().copies, stream, || copy::run(stream, op)),
            Op::Fill(op) => fill::run(stream, op),
            Op::Host(call) => stream.host_call(*call),
            Op::Record(event) => event.record(stream),
            Op::Wait(event) => event.hold(stream),
            Op::Graph(graph) => graph.run(stream),
            Op::Empty => Ok(()),
            Op::Allocate(block) => runtime::get()?.graphs.blocks.begin_use(block),
            Op::Release(address) => runtime::get()?.graphs.blocks.end_use(*address),
            Op::Values(values) => values
                .iter()
                .try_for_each(|operation| value::run(stream, operation)),
        }
    }
}

/// Enqueues an operation. Before and after it, waits for the stream where the environment requests that.
fn serialized(wait: Serialize, stream: &Stream, enqueue: impl FnOnce() -> HipResult) -> HipResult {
    if wait.before {
        stream.device.synchronize()?;
    }
    enqueue()?;
    if wait.after {
        stream.synchronize()
    } else {
        Ok(())
    }
}

/// An operation of a graph.
#[derive(Debug)]
pub(crate) struct Node {
    op: Mutex<Op>,
    /// Nodes that must have ended before this one begins.
    pub(crate) after: Mutex<Vec<Arc<Node>>>,
    /// Whether launches of the graph carry it out (`hipGraphNodeSetEnabled`).
    enabled: AtomicBool,
    /// `hipLaunchAttributePriority` of a kernel.
    pub(crate) priority: Mutex<i32>,
    /// Result storage of `hipGraphKernelNodeGetParams`: addresses of the arguments in the operation.
    pub(crate) arguments: Mutex<Vec<usize>>,
}

impl Node {
    fn new(op: Op, after: Vec<Arc<Node>>) -> Arc<Self> {
        Arc::new(Self {
            op: Mutex::new(op),
            after: Mutex::new(after),
            enabled: AtomicBool::new(true),
            priority: Mutex::new(0),
            arguments: Mutex::default(),
        })
    }

    pub(crate) fn handle(self: &Arc<Self>) -> Handle {
        Arc::as_ptr(self).cast_mut().cast()
    }

    /// The operation, for reading and changing.
    pub(crate) fn op(&self) -> MutexGuard<'_, Op> {
        lock(&self.op)
    }

    /// Replaces the operation by another one of the same kind.
    pub(crate) fn set(&self, op: Op) -> HipResult {
        let mut mine = self.op();
        // An executable graph may have been made of this node: its shape must not change.
        if mine.kind() != op.kind() {
            return Err(code::INVALID_VALUE);
        }
        *mine = op;
        Ok(())
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled.load(Ordering::Acquire)
    }

    /// Sets whether launches carry the node out. Fails for all but kernels, copies and fills.
    pub(crate) fn enable(&self, enabled: bool) -> HipResult {
        if !matches!(*self.op(), Op::Kernel(_) | Op::Copy(_) | Op::Fill(_)) {
            return Err(code::INVALID_VALUE);
        }
        self.enabled.store(enabled, Ordering::Release);
        Ok(())
    }

    fn run(&self, stream: &Stream) -> HipResult {
        if !self.is_enabled() {
            return Ok(());
        }
        // Cloned, so that the node is not locked while the operation runs: a host function may change the graph.
        let op = self.op().clone();
        op.run(stream)
    }
}

/// A `hipGraph_t`: nodes with their dependencies.
#[derive(Debug)]
pub(crate) struct Graph {
    /// Number of the capture that made the graph, or a number of its own.
    pub(crate) id: u64,
    pub(crate) nodes: Mutex<Vec<Arc<Node>>>,
    /// The nodes of a copied graph, by the handles of the nodes that they were copied from.
    twins: HashMap<usize, Arc<Node>>,
    /// Objects of the program that live at least as long as the graph.
    pub(crate) objects: References,
}

impl Graph {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self::empty())
    }

    fn empty() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            nodes: Mutex::default(),
            twins: HashMap::new(),
            objects: References::default(),
        }
    }

    pub(crate) fn handle(self: &Arc<Self>) -> Handle {
        Arc::as_ptr(self).cast_mut().cast()
    }

    /// Adds an operation after others.
    pub(crate) fn add(&self, op: Op, after: Vec<Arc<Node>>) -> Arc<Node> {
        let node = Node::new(op, after);
        lock(&self.nodes).push(Arc::clone(&node));
        node
    }

    /// The nodes, each after those it depends on; fails when they form a circle.
    pub(crate) fn order(&self) -> HipResult<Vec<Arc<Node>>> {
        let mut left: Vec<Arc<Node>> = lock(&self.nodes).clone();
        let mut order: Vec<Arc<Node>> = Vec::with_capacity(left.len());
        let mut placed = std::collections::HashSet::new();
        // Each pass places at least one node, unless the rest form a circle.
        while !left.is_empty() {
            let before = left.len();
            left.retain(|node| {
                let ready = lock(&node.after)
                    .iter()
                    .all(|n| placed.contains(&Arc::as_ptr(n)));
                if ready {
                    placed.insert(Arc::as_ptr(node));
                    order.push(Arc::clone(node));
                }
                !ready
            });
            if left.len() == before {
                return Err(code::INVALID_VALUE);
            }
        }
        Ok(order)
    }

    fn run(&self, stream: &Stream) -> HipResult {
        self.order()?.iter().try_for_each(|node| node.run(stream))
    }

    /// A copy of the graph, which later changes to the original do not affect.
    pub(crate) fn copy(&self) -> HipResult<Arc<Self>> {
        let mut copy = Self::empty();
        copy.objects = self.objects.retained();
        // In order, so that the copies of all earlier nodes are there.
        for node in self.order()? {
            let after = lock(&node.after)
                .iter()
                .map(|n| Arc::clone(&copy.twins[&(n.handle() as usize)]))
                .collect();
            let op = match &*node.op() {
                // Changes to a graph inside must not reach the copy either.
                Op::Graph(inner) => Op::Graph(inner.copy()?),
                op => op.clone(),
            };
            // Nodes that were disabled stay so in the executable graph.
            let twin = copy.add(op, after);
            twin.enabled.store(node.is_enabled(), Ordering::Release);
            *lock(&twin.priority) = *lock(&node.priority);
            copy.twins.insert(node.handle() as usize, twin);
        }
        Ok(Arc::new(copy))
    }

    /// The node of this graph that was copied from a node of the original graph.
    pub(crate) fn twin(&self, original: Handle) -> HipResult<Arc<Node>> {
        self.twins
            .get(&(original as usize))
            .cloned()
            .ok_or(code::INVALID_VALUE)
    }

    /// Removes a node, and the dependencies of other nodes on it.
    pub(crate) fn remove(&self, node: &Arc<Node>) {
        let mut nodes = lock(&self.nodes);
        nodes.retain(|known| !Arc::ptr_eq(known, node));
        for other in nodes.iter() {
            lock(&other.after).retain(|before| !Arc::ptr_eq(before, node));
        }
    }

    /// The nodes that come directly after a node.
    pub(crate) fn dependent(&self, node: &Arc<Node>) -> Vec<Arc<Node>> {
        let is_after = |other: &&Arc<Node>| lock(&other.after).iter().any(|n| Arc::ptr_eq(n, node));
        lock(&self.nodes).iter().filter(is_after).cloned().collect()
    }

    /// Pairs of nodes of which the second comes directly after the first.
    pub(crate) fn edges(&self) -> Vec<(Arc<Node>, Arc<Node>)> {
        let nodes = lock(&self.nodes);
        let mut edges = Vec::new();
        for node in nodes.iter() {
            edges.extend(
                lock(&node.after)
                    .iter()
                    .map(|before| (Arc::clone(before), Arc::clone(node))),
            );
        }
        edges
    }
}

/// A graph ready to run: its nodes in one order that its dependencies allow.
#[derive(Debug)]
pub(crate) struct Exec {
    pub(crate) graph: Arc<Graph>,
    pub(crate) flags: u64,
}

impl Exec {
    pub(crate) fn launch(&self, stream: &Stream) -> HipResult {
        self.graph.run(stream)
    }
}

/// Graphs, nodes and executable graphs by handle.
#[derive(Debug, Default)]
pub(crate) struct Graphs {
    pub(crate) graphs: RwLock<HashMap<usize, Arc<Graph>>>,
    pub(crate) execs: RwLock<HashMap<usize, Arc<Exec>>>,
    /// Memory of graphs that programs use at present.
    pub(crate) blocks: Blocks,
    pub(crate) objects: UserObjects,
}

impl Graphs {
    pub(crate) fn enter(&self, graph: Arc<Graph>) -> Handle {
        let handle = graph.handle();
        write(&self.graphs).insert(handle as usize, graph);
        handle
    }

    pub(crate) fn graph(&self, handle: Handle) -> HipResult<Arc<Graph>> {
        read(&self.graphs)
            .get(&(handle as usize))
            .cloned()
            .ok_or(code::INVALID_VALUE)
    }

    pub(crate) fn exec(&self, handle: Handle) -> HipResult<Arc<Exec>> {
        read(&self.execs)
            .get(&(handle as usize))
            .cloned()
            .ok_or(code::INVALID_VALUE)
    }

    /// A node of any graph of the program, with its graph. Graphs inside graphs are looked through as well.
    pub(crate) fn node(&self, handle: Handle) -> HipResult<(Arc<Graph>, Arc<Node>)> {
        fn within(graph: &Arc<Graph>, handle: Handle) -> Option<(Arc<Graph>, Arc<Node>)> {
            let nodes = lock(&graph.nodes);
            if let Some(node) = nodes.iter().find(|node| node.handle() == handle) {
                return Some((Arc::clone(graph), Arc::clone(node)));
            }
            nodes.iter().find_map(|node| match &*node.op() {
                Op::Graph(inner) => within(inner, handle),
                _ => None,
            })
        }
        read(&self.graphs)
            .values()
            .find_map(|graph| within(graph, handle))
            .ok_or(code::INVALID_VALUE)
    }
}

/// A stream's part in a capture.
#[derive(Debug)]
pub(crate) struct Capture {
    pub(crate) graph: Arc<Graph>,
    /// The nodes that the stream's next operation depends on.
    pub(crate) after: Vec<Arc<Node>>,
    /// Whether the capture began on this stream, rather than reaching it through an event.
    pub(crate) began_here: bool,
    /// Whether the capture adds to a graph of the program instead of making a new one.
    pub(crate) into: bool,
    /// Rules for other calls during the capture; `None` where the capture had ended when the stream joined it.
    pub(crate) rules: Option<Arc<UnderWay>>,
    /// Handles of `after` as `hipStreamGetCaptureInfo_v2` returned them; the list must live until the next call.
    pub(crate) listed: Vec<usize>,
}

impl Capture {
    /// Notes that a call was made which captures do not permit: the capture will give no graph.
    pub(crate) fn invalidate(&self) {
        if let Some(rules) = &self.rules {
            rules.invalidate();
        }
    }

    /// Whether the capture gives no graph.
    pub(crate) fn is_invalid(&self) -> bool {
        self.rules.as_ref().is_some_and(|one| one.is_invalid())
    }
}

/// The position in a capture at which an event was recorded.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub(crate) graph: Arc<Graph>,
    pub(crate) after: Vec<Arc<Node>>,
    rules: Weak<UnderWay>,
}

/// Enqueues an operation on a stream; while the stream is captured, adds it to the graph.
pub(crate) fn submit(stream: &Stream, op: Op) -> HipResult {
    // The flag is read without a lock, because nearly all streams never capture.
    if !stream.is_capturing() {
        return op.run(stream);
    }
    let mut slot = stream.capture();
    let Some(capture) = slot.as_mut() else {
        // The capture has ended since the flag was read.
        drop(slot);
        return op.run(stream);
    };
    if capture.is_invalid() {
        return Err(code::STREAM_CAPTURE_INVALIDATED);
    }
    // An event recorded during a capture is a place in the graph, not a node.
    if let Op::Record(event) = &op {
        let origin = Origin {
            graph: Arc::clone(&capture.graph),
            after: capture.after.clone(),
            rules: capture
                .rules
                .as_ref()
                .map_or_else(Weak::new, Arc::downgrade),
        };
        event.set(Recorded::Captured(origin));
        return Ok(());
    }
    let after = std::mem::take(&mut capture.after);
    capture.after = vec![capture.graph.add(op, after)];
    Ok(())
}

/// Makes a stream wait for an event, as `hipStreamWaitEvent` does, which spreads captures from stream to stream.
pub(crate) fn wait(stream: &Stream, event: &Event) -> HipResult {
    match event.recorded() {
        None => Ok(()),
        Some(Recorded::Mark { signal, .. }) => {
            // Work outside of the graph cannot be waited for when the graph is launched.
            if stream.is_capturing() {
                return Err(code::STREAM_CAPTURE_ISOLATION);
            }
            stream.follow(signal);
            Ok(())
        }
        Some(Recorded::Shared(_)) if stream.is_capturing() => Err(code::STREAM_CAPTURE_ISOLATION),
        Some(Recorded::Shared(point)) => point.hold(stream),
        Some(Recorded::Captured(origin)) => {
            let mut slot = stream.capture();
            if let Some(capture) = slot.as_mut() {
                // Two captures would become one graph with two owners.
                if !Arc::ptr_eq(&capture.graph, &origin.graph) {
                    return Err(code::STREAM_CAPTURE_MERGE);
                }
                // Both streams' nodes come before the next operation; common ones must not be listed twice.
                for node in origin.after {
                    if !capture.after.iter().any(|known| Arc::ptr_eq(known, &node)) {
                        capture.after.push(node);
                    }
                }
                return Ok(());
            }
            drop(slot);
            // The event carries the capture to a stream that did not capture: its operations go into the same graph.
            stream.set_capture(Some(Capture {
                graph: origin.graph,
                after: origin.after,
                began_here: false,
                into: false,
                rules: origin.rules.upgrade(),
                listed: Vec::new(),
            }));
            Ok(())
        }
    }
}

/// Whether `node` is one of `from` or lies before one of them.
pub(crate) fn reaches(from: &[Arc<Node>], node: &Arc<Node>) -> bool {
    let mut seen = std::collections::HashSet::new();
    let mut left: Vec<Arc<Node>> = from.to_vec();
    while let Some(next) = left.pop() {
        if Arc::ptr_eq(&next, node) {
            return true;
        }
        // Graphs may have many paths between two nodes; each node is looked at once.
        if seen.insert(Arc::as_ptr(&next)) {
            left.extend(lock(&next.after).iter().cloned());
        }
    }
    false
}
