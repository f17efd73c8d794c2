//! Nodes of graphs: their kernels, the memory that they allocate, and the host memory that they use.

use rpd_spool::capture::structs::{any_node, node_type, type_of_node};
use rpd_spool::capture::{HandleKind, Role, item, memory_kind};

use super::graphs::HostUse;
use super::ranges::{self, Range};
use super::state::{CaptureState, STATE};
use super::{Begun, allocations, launch, number, stored};

/// The address of the parameters that are for a node of this type, one of [`node_type`], and the type of the node; nothing where
/// the call has none of this type.
fn parameters(begun: &Begun, arguments: &[u8], role: Role, wanted: u32) -> Option<u64> {
    let address = match begun.operation.with_role(role) {
        Some(argument) => argument.value(arguments),
        None => {
            let any = begun.operation.with_role(Role::AnyNode)?.value(arguments);
            let is_wanted = any != 0 && any_type(begun) == Some(wanted);
            is_wanted.then_some(any + any_node::PARAMETERS as u64)?
        }
    };
    (address != 0).then_some(address)
}

/// The type of node in the `hipGraphNodeParams` that were taken of the call.
fn any_type(begun: &Begun) -> Option<u32> {
    begun.operation.with_role(Role::AnyNode)?;
    let mut items = rpd_spool::capture::Items(begun.items.bytes());
    // An array of nodes may come before.
    let position = begun
        .operation
        .arguments()
        .iter()
        .position(|one| one.role == Role::AnyNode);
    let found =
        items.find(|item| item.kind == item::IN && Some(usize::from(item.argument)) == position);
    Some(type_of_node(found?.payload))
}

/// Takes the kernel of a graph node.
///
/// # Safety
/// As for [`super::begin`].
pub(super) unsafe fn begin(begun: &mut Begun, arguments: &[u8]) {
    let Some(at) = parameters(begun, arguments, Role::KernelNode, node_type::KERNEL) else {
        return;
    };
    let at = at as *const u64;
    // blockDim, extra, func, gridDim, kernelParams, sharedMemBytes.
    // SAFETY: the call reads `hipKernelNodeParams` there.
    let (extra, function, pointers) = unsafe {
        (
            at.add(2).read_unaligned(),
            at.add(3).read_unaligned(),
            at.add(6).read_unaligned(),
        )
    };
    // SAFETY: by the contract of this function.
    unsafe { launch::add(begun, function, pointers, extra) };
}

/// Records which host memory a node uses that was added or changed, and which memory it allocates.
///
/// # Safety
/// As for [`super::end`].
pub(super) unsafe fn end(begun: &mut Begun, arguments: &[u8]) {
    use number as n;
    let kind = match begun.number {
        n::hipGraphAddMemAllocNode => node_type::ALLOCATE,
        n::hipGraphAddKernelNode
        | n::hipGraphKernelNodeSetParams
        | n::hipGraphExecKernelNodeSetParams => node_type::KERNEL,
        n::hipGraphAddMemcpyNodeToSymbol
        | n::hipGraphAddMemcpyNodeFromSymbol
        | n::hipGraphMemcpyNodeSetParamsToSymbol
        | n::hipGraphMemcpyNodeSetParamsFromSymbol
        | n::hipGraphExecMemcpyNodeSetParamsToSymbol
        | n::hipGraphExecMemcpyNodeSetParamsFromSymbol
        | n::hipGraphAddMemcpyNode1D
        | n::hipGraphMemcpyNodeSetParams1D
        | n::hipGraphExecMemcpyNodeSetParams1D
        | n::hipGraphAddMemcpyNode
        | n::hipGraphMemcpyNodeSetParams
        | n::hipGraphExecMemcpyNodeSetParams
        | n::hipDrvGraphAddMemcpyNode
        | n::hipDrvGraphMemcpyNodeSetParams
        | n::hipDrvGraphExecMemcpyNodeSetParams => node_type::COPY,
        n::hipGraphAddMemsetNode
        | n::hipGraphMemsetNodeSetParams
        | n::hipGraphExecMemsetNodeSetParams
        | n::hipDrvGraphAddMemsetNode
        | n::hipDrvGraphExecMemsetNodeSetParams => node_type::FILL,
        _ => match any_type(begun) {
            Some(kind) => kind,
            None => return,
        },
    };
    match kind {
        node_type::ALLOCATE => {
            /// Words of `hipMemAllocNodeParams`, of which the last are the size and the address of the memory.
            const WORDS: usize = 15;
            let at = match begun.number {
                n::hipGraphAddMemAllocNode => Some(begun.argument(arguments, "pNodeParams")),
                _ => parameters(begun, arguments, Role::AnyNode, kind)
                    .map(|at| at + any_node::PARAMETERS as u64),
            };
            let at = at.unwrap_or(0) as *const [u64; WORDS];
            if !at.is_null() {
                // SAFETY: the call has stored the address in its `hipMemAllocNodeParams`.
                let words = unsafe { at.read_unaligned() };
                let (size, base) = (words[WORDS - 2], words[WORDS - 1]);
                allocations::allocated(begun, base, size, memory_kind::DEVICE, 0);
            }
        }
        node_type::KERNEL => {
            let words = launch::argument_words(begun);
            // SAFETY: by the contract of this function.
            unsafe {
                node(begun, arguments, |state, node| HostUse {
                    node,
                    words: state.host_words(words),
                    ..HostUse::default()
                });
            }
        }
        node_type::COPY => {
            let (source, destination) = ranges::of_node(begun, arguments);
            // SAFETY: as above.
            unsafe {
                node(begun, arguments, |state, node| {
                    let mut is_host = |range: &Range| state.is_host(range.address);
                    let source = source.filter(&mut is_host);
                    let (on_host, written) = match destination {
                        Some(range) if is_host(&range) => (Some(range), None),
                        other => (None, other),
                    };
                    let written = written.filter(|range| state.is_visible(range.address));
                    HostUse {
                        node,
                        source,
                        destination: on_host,
                        written,
                        words: Vec::new(),
                    }
                });
            }
        }
        node_type::FILL => {
            let at = parameters(begun, arguments, Role::MemsetNode, kind).unwrap_or(0);
            let at = at as *const [u64; 6];
            if at.is_null() {
                return;
            }
            // dst, elementSize, height, pitch, value, width.
            // SAFETY: the call has read `hipMemsetParams` there.
            let [address, element, height, pitch, _, width] = unsafe { at.read_unaligned() };
            let rows = height.max(1);
            let range = Range {
                address,
                pitch,
                width: width.saturating_mul(element & 0xffff_ffff),
                rows,
                slice_rows: rows,
                slices: 1,
            };
            // SAFETY: as above.
            unsafe {
                node(begun, arguments, |state, node| HostUse {
                    node,
                    ..HostUse::writing(Some(range).filter(|_| state.is_visible(address)))
                });
            }
        }
        node_type::GRAPH => {
            let Some(at) = parameters(begun, arguments, Role::Copy3d, kind) else {
                return;
            };
            // SAFETY: the call has read the handle of the graph there.
            let child = unsafe { (at as *const u64).read_unaligned() };
            let place = place(begun, arguments);
            STATE.with(|state| match place {
                (0, graph) => state.graphs.add_graph(child, graph),
                (node, 0) => state.graphs.add_graph_of_node(child, node),
                (_, exec) => state.graphs.add_graph(child, exec),
            });
        }
        _ => {}
    }
}

/// The node that a call is about, 0 where it makes one, and the graph or executable graph.
fn place(begun: &Begun, arguments: &[u8]) -> (u64, u64) {
    let handle = |kind| {
        let found = begun.operation.with_role(Role::Handle(kind));
        found.map_or(0, |argument| argument.value(arguments))
    };
    let graph = handle(HandleKind::Graph) | handle(HandleKind::GraphExec);
    (handle(HandleKind::Node), graph)
}

/// A node of a graph was added or changed; what it uses of the host's memory.
///
/// # Safety
/// The call succeeded.
unsafe fn node(
    begun: &Begun,
    arguments: &[u8],
    uses: impl FnOnce(&mut CaptureState, u64) -> HostUse,
) {
    let (node, graph) = place(begun, arguments);
    // SAFETY: by the contract of this function.
    let made = unsafe { stored(begun, arguments, Role::HandleOut(HandleKind::Node)) };
    STATE.with(|state| match made {
        0 => {
            let uses = uses(state, node);
            state.graphs.set_node(graph, uses);
        }
        made => {
            let uses = uses(state, made);
            state.graphs.new_node(graph, uses);
        }
    });
}
