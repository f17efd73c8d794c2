//! Operations as values, and graphs: operations kept with their order instead of being carried out.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use super::callback::HostCall;
use super::copy::{self, CopyOp};
use super::error::{HipResult, code};
use super::event::{Event, Recorded};
use super::fill::{self, FillOp};
use super::launch::{self, KernelOp};
use super::runtime::{lock, read, write};
use super::stream::Stream;
use super::types::Handle;

/// Something a stream can be asked to do. Checked before it becomes one.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    Kernel(KernelOp),
    Copy(CopyOp),
    Fill(FillOp),
    Host(HostCall),
    Record(Arc<Event>),
    Wait(Arc<Event>),
    /// A graph inside a graph.
    Graph(Arc<Graph>),
    Empty,
}

impl Op {
    /// `hipGraphNodeType`.
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
        }
    }

    fn run(&self, stream: &Stream) -> HipResult {
        match self {
            Op::Kernel(op) => launch::run(stream, op),
            Op::Copy(op) => copy::run(stream, op),
            Op::Fill(op) => fill::run(stream, op),
            Op::Host(call) => stream.host_call(*call),
            Op::Record(event) => event.record(stream),
            Op::Wait(event) => {
                event.hold(stream);
                Ok(())
            }
            Op::Graph(graph) => graph.run(stream),
            Op::Empty => Ok(()),
        }
    }
}

/// An operation of a graph.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) op: Op,
    /// Nodes that come before it.
    pub(crate) after: Mutex<Vec<Arc<Node>>>,
}

impl Node {
    pub(crate) fn handle(self: &Arc<Self>) -> Handle {
        Arc::as_ptr(self).cast_mut().cast()
    }
}

/// A graph.
#[derive(Debug)]
pub(crate) struct Graph {
    /// Number of the capture it came from, or of itself.
    pub(crate) id: u64,
    pub(crate) nodes: Mutex<Vec<Arc<Node>>>,
}

impl Graph {
    pub(crate) fn new() -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Arc::new(Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            nodes: Mutex::default(),
        })
    }

    pub(crate) fn handle(self: &Arc<Self>) -> Handle {
        Arc::as_ptr(self).cast_mut().cast()
    }

    /// Adds an operation behind others.
    pub(crate) fn add(&self, op: Op, after: Vec<Arc<Node>>) -> Arc<Node> {
        let node = Arc::new(Node {
            op,
            after: Mutex::new(after),
        });
        lock(&self.nodes).push(Arc::clone(&node));
        node
    }

    /// The nodes, each behind those it depends on; fails when they form a circle.
    pub(crate) fn order(&self) -> HipResult<Vec<Arc<Node>>> {
        let mut left: Vec<Arc<Node>> = lock(&self.nodes).clone();
        let mut order: Vec<Arc<Node>> = Vec::with_capacity(left.len());
        let mut placed = std::collections::HashSet::new();
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
        self.order()?
            .iter()
            .try_for_each(|node| node.op.run(stream))
    }

    /// A copy that later changes do not reach.
    pub(crate) fn copy(&self) -> HipResult<Arc<Self>> {
        let copy = Self::new();
        let mut twins: HashMap<*const Node, Arc<Node>> = HashMap::new();
        for node in self.order()? {
            let after = lock(&node.after)
                .iter()
                .map(|n| Arc::clone(&twins[&Arc::as_ptr(n)]))
                .collect();
            let op = match &node.op {
                Op::Graph(inner) => Op::Graph(inner.copy()?),
                op => op.clone(),
            };
            twins.insert(Arc::as_ptr(&node), copy.add(op, after));
        }
        Ok(copy)
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
}

/// A stream's part in a capture.
#[derive(Debug)]
pub(crate) struct Capture {
    pub(crate) graph: Arc<Graph>,
    /// The nodes that the stream's next operation depends on.
    pub(crate) after: Vec<Arc<Node>>,
    /// Whether the capture began on this stream, rather than reaching it through an event.
    pub(crate) began_here: bool,
    /// Graph the capture adds to instead of making one.
    pub(crate) into: bool,
}

/// The position in a capture at which an event was recorded.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub(crate) graph: Arc<Graph>,
    pub(crate) after: Vec<Arc<Node>>,
}

/// Enqueues an operation on a stream, or adds it to the graph while the stream is captured.
pub(crate) fn submit(stream: &Stream, op: Op) -> HipResult {
    if !stream.is_capturing() {
        return op.run(stream);
    }
    let mut slot = stream.capture();
    let Some(capture) = slot.as_mut() else {
        drop(slot);
        return op.run(stream);
    };
    if let Op::Record(event) = &op {
        let origin = Origin {
            graph: Arc::clone(&capture.graph),
            after: capture.after.clone(),
        };
        event.set(Recorded::Captured(origin));
        return Ok(());
    }
    let after = std::mem::take(&mut capture.after);
    capture.after = vec![capture.graph.add(op, after)];
    Ok(())
}

/// `hipStreamWaitEvent`, which spreads captures from stream to stream.
pub(crate) fn wait(stream: &Stream, event: &Event) -> HipResult {
    match event.recorded() {
        None => Ok(()),
        Some(Recorded::Mark { signal, .. }) => {
            if stream.is_capturing() {
                return Err(code::STREAM_CAPTURE_ISOLATION);
            }
            stream.follow(signal);
            Ok(())
        }
        Some(Recorded::Captured(origin)) => {
            let mut slot = stream.capture();
            if let Some(capture) = slot.as_mut() {
                if !Arc::ptr_eq(&capture.graph, &origin.graph) {
                    return Err(code::STREAM_CAPTURE_MERGE);
                }
                for node in origin.after {
                    if !capture.after.iter().any(|known| Arc::ptr_eq(known, &node)) {
                        capture.after.push(node);
                    }
                }
                return Ok(());
            }
            drop(slot);
            stream.set_capture(Some(Capture {
                graph: origin.graph,
                after: origin.after,
                began_here: false,
                into: false,
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
        if seen.insert(Arc::as_ptr(&next)) {
            left.extend(lock(&next.after).iter().cloned());
        }
    }
    false
}
