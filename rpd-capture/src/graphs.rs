//! Launches of kernels, by themselves and with graphs.
//!
//! Which kernels a graph has is followed through the calls that make, copy and change it, without a GPU.

use std::collections::HashMap;

use rpd_spool::capture::{
    Group, HandleKind, NO_ARGUMENT, Operation, Role, call_flag, item, number as n, operation,
    push_item, structs,
};

use crate::geometry::{geometry, is_cooperative};
use crate::{Call, Capture, CaptureError};

/// A launch of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelLaunch {
    /// Number of the call: that of the kernel, or that of the graph.
    pub seq: u64,
    /// Mangled name of the kernel.
    pub name: String,
    /// Where the kernel is from, when a graph launches it.
    pub node: Option<GraphKernel>,
}

/// A kernel of an executable graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphKernel {
    /// The call that added it to a graph: about a node, or a launch in a stream that was captured.
    pub added: u64,
    /// The call that set its kernel and arguments last.
    pub set: u64,
    /// The call that made the executable graph.
    pub instantiated: u64,
    /// The kernel is in a graph that is a node of the launched one.
    pub nested: bool,
    /// An attribute of the node lets workgroups of the kernel wait for each other.
    pub cooperative: bool,
    /// A call that changed a kernel of the graph through a node of which the capture does not show which one it is.
    pub unclear: Option<u64>,
}

/// A kernel of a graph, or of an executable one.
#[derive(Debug, Clone)]
struct Node {
    /// Handle of the node; 0 where the program never had it.
    handle: u64,
    name: String,
    enabled: bool,
    kernel: GraphKernel,
}

/// The kernels of a graph, in the order in which they were added.
#[derive(Debug, Clone, Default)]
struct Nodes {
    list: Vec<Node>,
    unclear: Option<u64>,
}

/// A stream of the program: its handle, and the thread for a per-thread default stream.
type StreamKey = (u64, u32);

fn key(call: &Call, raw: u64, per_thread: bool) -> StreamKey {
    match raw {
        2 => (2, call.tid),
        0 if per_thread => (2, call.tid),
        raw => (raw, 0),
    }
}

fn is_per_thread(operation: &Operation) -> bool {
    operation.name().ends_with("_spt")
}

/// Which streams are part of which capture of streams as graphs. A capture has any number that its user gives it.
#[derive(Debug, Default)]
pub struct StreamCaptures {
    streams: HashMap<StreamKey, u64>,
    /// The capture of each event that was recorded in a captured stream.
    events: HashMap<u64, u64>,
}

impl StreamCaptures {
    /// The stream of a call begins the capture with this number.
    pub fn begin(&mut self, call: &Call, capture: u64) {
        let per_thread = call.operation().is_some_and(is_per_thread);
        let stream = key(call, call.argument("stream"), per_thread);
        self.streams.insert(stream, capture);
    }

    /// The capture that a stream of the program is part of.
    pub fn of(&self, call: &Call, raw: u64, per_thread: bool) -> Option<u64> {
        self.streams.get(&key(call, raw, per_thread)).copied()
    }

    /// Follows how streams join a capture: by events that were recorded in it.
    pub fn follow(&mut self, call: &Call) {
        let per_thread = call.operation().is_some_and(is_per_thread);
        let stream = key(call, call.argument("stream"), per_thread);
        let event = call.argument("event");
        match call.api {
            n::hipEventRecord | n::hipEventRecord_spt | n::hipEventRecordWithFlags => {
                match self.streams.get(&stream) {
                    Some(capture) => drop(self.events.insert(event, *capture)),
                    None => drop(self.events.remove(&event)),
                }
            }
            n::hipStreamWaitEvent | n::hipStreamWaitEvent_spt => {
                if let Some(capture) = self.events.get(&event) {
                    self.streams.insert(stream, *capture);
                }
            }
            _ => {}
        }
    }

    /// A capture has ended.
    pub fn end(&mut self, capture: u64) {
        self.streams.retain(|_, known| *known != capture);
        self.events.retain(|_, known| *known != capture);
    }
}

/// Follows graphs through the calls of a program.
#[derive(Debug, Default)]
struct Graphs {
    captures: StreamCaptures,
    /// Kernels of captures that have not ended.
    captured: HashMap<u64, Nodes>,
    /// By handle.
    graphs: HashMap<u64, Nodes>,
    executable: HashMap<u64, Nodes>,
    /// The graph of each node that the program has.
    graph_of: HashMap<u64, u64>,
}

impl Graphs {
    /// Takes a successful call; the kernels that it launches with a graph.
    fn take(&mut self, call: &Call, operation: &'static Operation) -> Vec<Node> {
        self.captures.follow(call);
        let graph = handle_of(call, operation, HandleKind::Graph);
        let exec = handle_of(call, operation, HandleKind::GraphExec);
        let node = handle_of(call, operation, HandleKind::Node);
        let made = |kind| made(call, operation, kind);
        if operation.group == Group::Launch {
            return self.launch(call, operation, exec);
        }
        match call.api {
            n::hipStreamBeginCapture
            | n::hipStreamBeginCapture_spt
            | n::hipStreamBeginCaptureToGraph => {
                self.captures.begin(call, call.seq);
                // A capture to a graph adds to what the graph has.
                let known = self.graphs.get(&graph).cloned().unwrap_or_default();
                self.captured.insert(call.seq, known);
            }
            n::hipStreamEndCapture | n::hipStreamEndCapture_spt => {
                let stream = call.argument("stream");
                let capture = self.captures.of(call, stream, is_per_thread(operation));
                if let Some(capture) = capture {
                    self.captures.end(capture);
                    let nodes = self.captured.remove(&capture).unwrap_or_default();
                    self.new_graph(made(HandleKind::Graph), nodes);
                }
            }
            n::hipGraphCreate => self.new_graph(made(HandleKind::Graph), Nodes::default()),
            n::hipGraphClone => {
                let original = call.argument("originalGraph");
                let nodes = self.graphs.get(&original).cloned().unwrap_or_default();
                self.new_graph(made(HandleKind::Graph), nodes);
            }
            n::hipGraphNodeFindInClone => {
                let clone = call.argument("clonedGraph");
                let original = call.argument("originalNode");
                if let (Some(found), Some(nodes)) =
                    (made(HandleKind::Node), self.graphs.get_mut(&clone))
                    && let Some(known) = nodes.list.iter_mut().find(|one| one.handle == original)
                {
                    known.handle = found;
                    self.graph_of.insert(found, clone);
                }
            }
            n::hipGraphInstantiate
            | n::hipGraphInstantiateWithFlags
            | n::hipGraphInstantiateWithParams => {
                let mut nodes = self.graphs.get(&graph).cloned().unwrap_or_default();
                for node in &mut nodes.list {
                    node.kernel.instantiated = call.seq;
                }
                if let Some(exec) = made(HandleKind::GraphExec) {
                    self.executable.insert(exec, nodes);
                }
            }
            n::hipGraphExecUpdate => self.update(exec, graph),
            n::hipGraphAddChildGraphNode => {
                let child = call.argument("childGraph");
                self.add_nested(call.seq, call.argument("graph"), child);
            }
            n::hipGraphDestroyNode => {
                if let Some(nodes) = self.nodes_of(node) {
                    nodes.list.retain(|one| one.handle != node);
                }
            }
            n::hipGraphNodeSetEnabled => {
                let enabled = call.argument("isEnabled") != 0;
                if let Some(nodes) = self.executable.get_mut(&exec)
                    && let Some(known) = nodes.list.iter_mut().find(|one| one.handle == node)
                {
                    known.enabled = enabled;
                }
            }
            n::hipGraphKernelNodeSetAttribute => self.set_attribute(call, node),
            _ if operation.group == Group::Graph => self.kernel(call, (graph, exec, node)),
            _ => {}
        }
        Vec::new()
    }

    /// A graph has a new handle, which may have been that of another one.
    fn new_graph(&mut self, made: Option<u64>, nodes: Nodes) {
        if let Some(graph) = made {
            self.graphs.insert(graph, nodes);
        }
    }

    /// The kernels of the graph that a node belongs to.
    fn nodes_of(&mut self, node: u64) -> Option<&mut Nodes> {
        self.graphs.get_mut(self.graph_of.get(&node)?)
    }

    fn launch(&mut self, call: &Call, operation: &Operation, exec: u64) -> Vec<Node> {
        let is_graph = operation.name().contains("GraphLaunch");
        if call.flags & call_flag::IN_STREAM_CAPTURE == 0 {
            let nodes = self.executable.get(&exec).filter(|_| is_graph);
            let nodes = nodes.cloned().unwrap_or_default();
            let unclear = nodes.unclear;
            let launched = nodes.list.into_iter().filter(|one| one.enabled);
            return launched
                .map(|mut node| {
                    node.kernel.unclear = unclear;
                    node
                })
                .collect();
        }
        let stream = crate::stream_of_config(operation, &call.items)
            .unwrap_or_else(|| handle_of(call, operation, HandleKind::Stream));
        let capture = self.captures.of(call, stream, is_per_thread(operation));
        let Some(nodes) = capture.and_then(|capture| self.captured.get_mut(&capture)) else {
            return Vec::new();
        };
        if is_graph {
            let inner = self.executable.get(&exec).cloned().unwrap_or_default();
            nodes.list.extend(nested(call.seq, inner));
        } else if let Some(name) = kernel_name(call) {
            nodes.list.push(new_node(0, name, call.seq));
        }
        Vec::new()
    }

    /// A graph becomes a node of another one.
    fn add_nested(&mut self, seq: u64, graph: u64, child: u64) {
        let inner = self.graphs.get(&child).cloned().unwrap_or_default();
        let nodes = self.graphs.entry(graph).or_default();
        nodes.list.extend(nested(seq, inner));
    }

    /// The nodes of an executable graph are set to those of a graph that has the same ones.
    fn update(&mut self, exec: u64, graph: u64) {
        let from = self.graphs.get(&graph).cloned().unwrap_or_default();
        let Some(to) = self.executable.get_mut(&exec) else {
            return;
        };
        for (to, from) in to.list.iter_mut().zip(&from.list) {
            to.name.clone_from(&from.name);
            to.kernel.set = from.kernel.set;
            to.kernel.cooperative = from.kernel.cooperative;
        }
        to.unclear = from.unclear;
    }

    fn set_attribute(&mut self, call: &Call, node: u64) {
        /// `hipLaunchAttributeCooperative`.
        const COOPERATIVE: u64 = 2;
        if call.argument("attr") != COOPERATIVE {
            return;
        }
        let mut items = call.items().filter(|item| item.kind == item::IN);
        let value = items.next().and_then(|item| item.word()).unwrap_or(0);
        if let Some(nodes) = self.nodes_of(node)
            && let Some(known) = nodes.list.iter_mut().find(|one| one.handle == node)
        {
            known.kernel.cooperative = value as u32 != 0;
        }
    }

    /// A call about a node, which is that of a kernel if the call has one.
    fn kernel(&mut self, call: &Call, (graph, exec, node): (u64, u64, u64)) {
        let Some(operation) = call.operation() else {
            return;
        };
        if let Some(added) = made(call, operation, HandleKind::Node) {
            self.graph_of.insert(added, graph);
            if let Some(name) = kernel_name(call) {
                let nodes = self.graphs.entry(graph).or_default();
                nodes.list.push(new_node(added, name, call.seq));
            } else if let Some(child) = child_of_node(call, operation) {
                self.add_nested(call.seq, graph, child);
            }
            return;
        }
        let Some(name) = kernel_name(call) else {
            return;
        };
        let nodes = match exec {
            0 => self.nodes_of(node),
            exec => self.executable.get_mut(&exec),
        };
        match nodes {
            Some(nodes) => match nodes.list.iter_mut().find(|one| one.handle == node) {
                Some(known) => {
                    known.name = name;
                    known.kernel.set = call.seq;
                }
                None => nodes.unclear = Some(call.seq),
            },
            // A node that the program got from a list: of any graph.
            None => {
                for nodes in self.graphs.values_mut() {
                    if nodes.list.iter().any(|one| one.handle == 0) {
                        nodes.unclear = Some(call.seq);
                    }
                }
            }
        }
    }
}

fn new_node(handle: u64, name: String, seq: u64) -> Node {
    Node {
        handle,
        name,
        enabled: true,
        kernel: GraphKernel {
            added: seq,
            set: seq,
            instantiated: 0,
            nested: false,
            cooperative: false,
            unclear: None,
        },
    }
}

/// The kernels of a graph that becomes a node of another one by call `seq`.
fn nested(seq: u64, inner: Nodes) -> impl Iterator<Item = Node> {
    inner.list.into_iter().map(move |mut node| {
        node.handle = 0;
        node.kernel.nested = true;
        node.kernel.added = seq;
        node
    })
}

fn handle_of(call: &Call, operation: &Operation, kind: HandleKind) -> u64 {
    let argument = operation.with_role(Role::Handle(kind));
    argument.map_or(0, |argument| argument.value(&call.arguments))
}

/// The handle of a kind that a call has made.
fn made(call: &Call, operation: &Operation, kind: HandleKind) -> Option<u64> {
    let mut items = call.items().filter(|item| item.kind == item::OUT);
    let found = items.find(|item| {
        let argument = operation.arguments().get(usize::from(item.argument));
        argument.is_some_and(|argument| argument.role == Role::HandleOut(kind))
    });
    found.and_then(|item| item.word())
}

/// The graph in the `hipGraphNodeParams` of a call.
fn child_of_node(call: &Call, operation: &Operation) -> Option<u64> {
    let parameters = any_node(call, operation)?;
    let is_graph = structs::type_of_node(parameters) == structs::node_type::GRAPH;
    let handle = parameters.get(structs::any_node::PARAMETERS..)?;
    let handle = handle.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    handle.filter(|_| is_graph)
}

/// `hipGraphNodeParams` of a call.
fn any_node<'a>(call: &'a Call, operation: &Operation) -> Option<&'a [u8]> {
    input(call, operation, Role::AnyNode)
}

/// What a call has read behind the argument with a role.
fn input<'a>(call: &'a Call, operation: &Operation, role: Role) -> Option<&'a [u8]> {
    let mut arguments = operation.arguments().iter();
    let position = arguments.position(|argument| argument.role == role)?;
    let mut items = call.items();
    let found = items.find(|item| item.kind == item::IN && usize::from(item.argument) == position);
    found.map(|item| item.payload)
}

fn kernel_name(call: &Call) -> Option<String> {
    let item = call.items().find(|item| item.kind == item::KERNEL)?;
    let name = item.payload.get(8..).unwrap_or_default();
    Some(String::from_utf8_lossy(name).into_owned())
}

impl Capture {
    /// All launches of kernels up to call `last`, in the order of their calls; those of a graph in the order in which they were
    /// added to it. Launches in streams that are captured as graphs are none.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn kernel_launches(&self, last: u64) -> Result<Vec<KernelLaunch>, CaptureError> {
        let mut graphs = Graphs::default();
        let mut found = Vec::new();
        self.calls(1, last, |call| -> Result<bool, CaptureError> {
            let Some(operation) = call.operation().filter(|_| call.result == 0) else {
                return Ok(true);
            };
            let is_captured = call.flags & call_flag::IN_STREAM_CAPTURE != 0;
            if operation.group == Group::Launch
                && !is_captured
                && let Some(name) = kernel_name(&call)
            {
                found.push(KernelLaunch {
                    seq: call.seq,
                    name,
                    node: None,
                });
            }
            for node in graphs.take(&call, operation) {
                found.push(KernelLaunch {
                    seq: call.seq,
                    name: node.name,
                    node: Some(node.kernel),
                });
            }
            Ok(true)
        })?;
        Ok(found)
    }
}

/// The launch of a kernel of a graph as a call of its own, in place of `launch`, which launches the graph. `set` is the call that
/// has the kernel and its arguments. Where these are for another device than the launch, the new call is for the null stream of
/// that device.
pub fn launch_alone(launch: &Call, set: &Call, kernel: &GraphKernel) -> Call {
    let mut alone = Call {
        flags: launch.flags & !call_flag::IN_STREAM_CAPTURE,
        device: set.device,
        api: n::hipModuleLaunchKernel,
        items: Vec::new(),
        ..launch.clone()
    };
    let (mut sizes, mut cooperative) = (Sizes::default(), kernel.cooperative);
    if let Some(operation) = set.operation() {
        cooperative |= operation.group == Group::Launch && is_cooperative(operation, &set.items);
        sizes = match input(set, operation, Role::KernelNode) {
            Some(parameters) => of_node(parameters),
            None => match any_node(set, operation) {
                Some(parameters) => of_node(
                    parameters
                        .get(structs::any_node::PARAMETERS..)
                        .unwrap_or(&[]),
                ),
                None => geometry(operation, &set.arguments, &set.items),
            },
        };
    }
    if cooperative {
        alone.api = n::hipModuleLaunchCooperativeKernel;
    }
    for item in set.items() {
        if matches!(item.kind, item::KERNEL | item::KERNEL_ARGUMENTS) {
            push_item(&mut alone.items, item.kind, NO_ARGUMENT, item.payload);
        }
    }
    let (grid, block, shared) = sizes;
    let stream = if launch.device == set.device {
        stream_of_launch(launch)
    } else {
        0
    };
    let values = [
        ("gridDimX", u64::from(grid[0])),
        ("gridDimY", u64::from(grid[1])),
        ("gridDimZ", u64::from(grid[2])),
        ("blockDimX", u64::from(block[0])),
        ("blockDimY", u64::from(block[1])),
        ("blockDimZ", u64::from(block[2])),
        ("sharedMemBytes", shared),
        ("stream", stream),
    ];
    alone.arguments = arguments(alone.api, &values);
    alone
}

/// Grid in blocks, block, and dynamic local memory in bytes.
type Sizes = ([u32; 3], [u32; 3], u64);

/// The stream of the launch of a graph, of which the call that replaces it has the handle: the per-thread default stream is 2.
fn stream_of_launch(launch: &Call) -> u64 {
    match launch.argument("stream") {
        0 if launch.operation().is_some_and(is_per_thread) => 2,
        stream => stream,
    }
}

/// The sizes in `hipKernelNodeParams`.
fn of_node(parameters: &[u8]) -> Sizes {
    let number = |at: usize| {
        let bytes = parameters.get(at..).and_then(|rest| rest.first_chunk());
        bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
    };
    let three = |at: usize| [number(at), number(at + 4), number(at + 8)];
    use structs::kernel_node as at;
    (
        three(at::GRID),
        three(at::BLOCK),
        u64::from(number(at::SHARED)),
    )
}

/// The argument struct of a function: the values of some of its arguments, zeros for the others.
fn arguments(api: u32, values: &[(&str, u64)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let Some(operation) = operation(api) else {
        return bytes;
    };
    for argument in operation.arguments() {
        let (at, size) = (usize::from(argument.offset), usize::from(argument.size));
        let value = values.iter().find(|(name, _)| *name == argument.name());
        let value = value.map_or(0, |(_, value)| *value).to_le_bytes();
        bytes.resize(bytes.len().max(at + size), 0);
        let size = size.min(value.len());
        bytes[at..at + size].copy_from_slice(&value[..size]);
    }
    bytes
}
