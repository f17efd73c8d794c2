//! Dependencies of calls: the earlier calls that made their streams, events, graphs, modules and memory.

use std::collections::{BTreeSet, HashMap, HashSet};

use rpd_spool::capture::structs::{any_node, node_type, type_of_node};
use rpd_spool::capture::{Group, HandleKind, Operation, Role, call_flag, item, number as n};

use crate::geometry::stream_of_config;
use crate::{Call, Capture, CaptureError};

/// Collects calls from the last to the first.
struct Needs<'a> {
    kept: BTreeSet<u64>,
    handles: HashSet<(HandleKind, u64)>,
    /// Streams whose capture into a graph is kept from here back to its start.
    captures: Vec<u64>,
    /// For each graph node handle: the graphs that it belonged to, each with the number of the call from which on.
    /// The runtime reuses handles.
    graphs: HashMap<u64, Vec<(u64, u64)>>,
    /// Whether memory at an address is part of the excerpt.
    has_memory: &'a dyn Fn(u64) -> bool,
}

/// The calls before `first` that the calls `wanted` from there on need, and the wanted ones. `handles`, of which there are some
/// when the first of these begins, and the memory or variables at addresses for which `has_memory` is true, are needed as well.
///
/// # Errors
/// When the capture cannot be read.
pub(crate) fn dependencies(
    capture: &Capture,
    wanted: (u64, u64),
    handles: &[(HandleKind, u64)],
    has_memory: &dyn Fn(u64) -> bool,
) -> Result<BTreeSet<u64>, CaptureError> {
    let (first, last) = wanted;
    // Memory that was freed before the excerpt need not be there, and its address may be another's by then.
    let freed: HashSet<u64> = {
        let memory = capture.memory()?;
        let gone = memory
            .iter()
            .filter(|one| one.life.1.is_some_and(|freed| freed < first));
        gone.map(|one| one.life.0).collect()
    };
    let mut needs = Needs {
        kept: BTreeSet::new(),
        handles: HashSet::new(),
        captures: Vec::new(),
        graphs: graphs_of_nodes(capture, last)?,
        has_memory,
    };
    // The state before the first of the wanted calls is reached.
    let mut at_state = false;
    capture.calls_backwards(1, last, |call| -> Result<bool, CaptureError> {
        let Some(operation) = call.operation() else {
            return Ok(true);
        };
        let is_wanted = call.seq >= first;
        if !is_wanted && !std::mem::replace(&mut at_state, true) {
            needs.handles.extend(handles);
        }
        // From the last to the first: when a call is reached, everything that needs it is known.
        if is_wanted
            || call.result == 0 && !freed.contains(&call.seq) && needs.keeps(&call, operation)
        {
            needs.keep(&call, operation);
        }
        Ok(true)
    })?;
    Ok(needs.kept)
}

/// For each graph node handle: the calls that made a node with it, and the graph that the node belongs to.
fn graphs_of_nodes(
    capture: &Capture,
    last: u64,
) -> Result<HashMap<u64, Vec<(u64, u64)>>, CaptureError> {
    let mut graphs: HashMap<u64, Vec<(u64, u64)>> = HashMap::new();
    capture.calls(1, last, |call| -> Result<bool, CaptureError> {
        if let Some(operation) = call.operation()
            && operation.group == Group::Graph
            && let Some(graph) = operation.with_role(Role::Handle(HandleKind::Graph))
        {
            let graph = graph.value(&call.arguments);
            for (kind, node) in made(&call, operation) {
                if kind == HandleKind::Node {
                    graphs.entry(node).or_default().push((call.seq, graph));
                }
            }
        }
        Ok(true)
    })?;
    Ok(graphs)
}

/// The handles that the call makes.
fn made<'a>(
    call: &'a Call,
    operation: &'static Operation,
) -> impl Iterator<Item = (HandleKind, u64)> + 'a {
    call.items()
        .filter(|item| item.kind == item::OUT)
        .flat_map(move |item| {
            let argument = operation.arguments().get(usize::from(item.argument));
            let words = item.payload.as_chunks::<8>().0;
            let (kind, words) = match argument.map(|argument| argument.role) {
                // The handle may be the one with which the memory was made.
                Some(Role::HandleOut(_)) if call.api == n::hipMemRetainAllocationHandle => {
                    (HandleKind::Physical, &words[..0])
                }
                Some(Role::HandleOut(kind)) => (kind, &words[..words.len().min(1)]),
                Some(Role::TextureReference) => (HandleKind::Texture, words),
                Some(Role::NodesOut | Role::NodeListOut) => (HandleKind::Node, words),
                _ => (HandleKind::Node, &words[..0]),
            };
            words
                .iter()
                .map(move |word| (kind, u64::from_le_bytes(*word)))
        })
}

/// The handles that the call uses.
fn used(call: &Call, operation: &'static Operation) -> Vec<(HandleKind, u64)> {
    let mut found = Vec::new();
    for (position, argument) in operation.arguments().iter().enumerate() {
        let payload = || {
            call.items()
                .find(|item| item.kind == item::IN && usize::from(item.argument) == position)
                .map_or(&[][..], |item| item.payload.as_chunks::<8>().0)
        };
        match argument.role {
            // A replay launches by the name of the kernel.
            Role::Handle(HandleKind::Function) => {}
            Role::Handle(kind) => found.push((kind, argument.value(&call.arguments))),
            Role::Array(..) if operation.group == Group::Graph => {
                let nodes = payload().iter();
                found.extend(nodes.map(|word| (HandleKind::Node, u64::from_le_bytes(*word))));
            }
            // The type of the resource, then its array.
            Role::Resource(_) => {
                if let [kind, array, ..] = payload()
                    && u64::from_le_bytes(*kind) as u32 == 0
                {
                    found.push((HandleKind::Array, u64::from_le_bytes(*array)));
                }
            }
            Role::AnyNode => {
                let words = payload();
                let bytes = words.as_flattened();
                let word = |at: usize| {
                    let word = words.get(at / 8).copied().unwrap_or_default();
                    u64::from_le_bytes(word)
                };
                let handle = word(any_node::PARAMETERS);
                match type_of_node(bytes) {
                    node_type::GRAPH => found.push((HandleKind::Graph, handle)),
                    node_type::WAIT_EVENT | node_type::RECORD_EVENT => {
                        found.push((HandleKind::Event, handle));
                    }
                    node_type::COPY => {
                        let arrays = [any_node::COPY, any_node::COPY + 64];
                        found.extend(arrays.map(|at| (HandleKind::Array, word(at))));
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    if operation.group == Group::Launch {
        let stream = stream_of_config(operation, &call.items);
        found.extend(stream.map(|stream| (HandleKind::Stream, stream)));
    }
    // Any word of the arguments of a kernel may be a texture or surface.
    let words = call
        .items()
        .filter(|item| item.kind == item::KERNEL_ARGUMENTS)
        .flat_map(|item| item.payload.as_chunks::<8>().0);
    for word in words.map(|word| u64::from_le_bytes(*word)) {
        found.extend([HandleKind::Texture, HandleKind::Surface].map(|kind| (kind, word)));
    }
    // No handle, and the default streams.
    found.retain(|(kind, raw)| *raw > if *kind == HandleKind::Stream { 2 } else { 0 });
    found
}

impl Needs<'_> {
    /// Whether a call before the wanted ones is needed.
    fn keeps(&self, call: &Call, operation: &'static Operation) -> bool {
        let needed = |kind: HandleKind, raw: u64| self.handles.contains(&(kind, raw));
        if made(call, operation).any(|(kind, raw)| needed(kind, raw)) {
            return true;
        }
        let in_stream_capture = !self.captures.is_empty()
            && (call.flags & call_flag::IN_STREAM_CAPTURE != 0
                || matches!(
                    call.api,
                    n::hipEventRecord
                        | n::hipEventRecord_spt
                        | n::hipEventRecordWithFlags
                        | n::hipStreamWaitEvent
                        | n::hipStreamWaitEvent_spt
                        | n::hipStreamBeginCapture
                        | n::hipStreamBeginCapture_spt
                        | n::hipStreamBeginCaptureToGraph
                        | n::hipStreamUpdateCaptureDependencies
                        | n::hipStreamGetCaptureInfo_v2
                        | n::hipStreamGetCaptureInfo_v2_spt
                        | n::hipStreamEndCapture
                        | n::hipStreamEndCapture_spt
                ));
        if in_stream_capture {
            return true;
        }
        let address = operation
            .with_role(Role::Address)
            .map_or(0, |argument| argument.value(&call.arguments));
        let stored = operation.with_role(Role::AddressOut).and_then(|argument| {
            let mut items = call.items();
            let found = items.find(|item| {
                item.kind == item::OUT
                    && operation
                        .arguments()
                        .get(usize::from(item.argument))
                        .is_some_and(|one| one.role == argument.role)
            });
            found?.word()
        });
        match operation.group {
            Group::Context => true,
            // Calls that change a needed graph.
            Group::Graph => {
                let mut used = used(call, operation).into_iter();
                used.any(|(kind, raw)| match kind {
                    HandleKind::Graph | HandleKind::GraphExec => needed(kind, raw),
                    // Some only name the node.
                    HandleKind::Node => {
                        let known = self.graphs.get(&raw).into_iter().flatten();
                        let before = known.rev().find(|(seq, _)| *seq <= call.seq);
                        before.is_some_and(|(_, graph)| needed(HandleKind::Graph, *graph))
                    }
                    _ => false,
                }) || call
                    .allocation()
                    .is_some_and(|made| (self.has_memory)(made.base))
            }
            // Physical memory may be mapped several times, anywhere in them.
            Group::Memory if call.api == n::hipMemAddressReserve => true,
            Group::Memory
                if matches!(
                    call.api,
                    n::hipMemSetAccess | n::hipMemRetainAllocationHandle
                ) =>
            {
                (self.has_memory)(address)
            }
            Group::Memory => match (call.allocation(), stored) {
                (Some(made), _) => (self.has_memory)(made.base),
                (None, Some(stored)) => (self.has_memory)(stored) || (self.has_memory)(address),
                // Frees of what is needed do not come before it; the rest sets up pools.
                (None, None) => {
                    address == 0
                        && used(call, operation)
                            .iter()
                            .all(|&(kind, raw)| needed(kind, raw))
                }
            },
            Group::Code => stored.is_some_and(|stored| (self.has_memory)(stored)),
            Group::Transfer => match call.api {
                n::hipMemAdvise => (self.has_memory)(address),
                _ => false,
            },
            Group::Image | Group::Launch | Group::Order | Group::Query | Group::Unsupported => {
                false
            }
        }
    }

    fn keep(&mut self, call: &Call, operation: &'static Operation) {
        self.kept.insert(call.seq);
        for handle in made(call, operation) {
            self.handles.remove(&handle);
        }
        self.handles.extend(used(call, operation));
        let stream = call.argument("stream");
        match call.api {
            n::hipStreamEndCapture | n::hipStreamEndCapture_spt => self.captures.push(stream),
            n::hipStreamBeginCapture
            | n::hipStreamBeginCapture_spt
            | n::hipStreamBeginCaptureToGraph => {
                self.captures.retain(|known| *known != stream);
            }
            _ => {}
        }
    }
}
