//! The calls that added nodes to graphs: work of a graph belongs to the lines that captured it.

use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::ffi::c_void;

use cupti_sys::callback::GraphData;
use cupti_sys::result;
use rpd_spool::format::{CapturedNode, GraphNode};
use rpd_spool::record::RecordKind;

use super::cupti;
use crate::recording::fork::ForkHook;
use crate::recording::meta;

/// Nodes that are remembered: a program that makes graphs all the time must not fill the memory.
const MOST: usize = 1 << 20;

/// Correlation ids of the calls that added nodes, by CUPTI's id of the node.
struct Nodes(UnsafeCell<Option<HashMap<u64, u64>>>);

// SAFETY: only touched with the lock of [`FORK`] held.
unsafe impl Sync for Nodes {}

static CALLS: Nodes = Nodes(UnsafeCell::new(None));
/// A child has no CUDA, and none of its parent's graphs.
pub(super) static FORK: ForkHook = ForkHook::new().in_child(|| {
    // SAFETY: the child has one thread.
    unsafe { *CALLS.0.get() = None };
});

/// CUPTI's id of a node.
fn id_of(node: *mut c_void) -> Option<u64> {
    let get = cupti::functions()?.get_graph_node_id?;
    let mut id = 0;
    // SAFETY: a node of the program's; the id is written.
    let status = unsafe { get(node, &raw mut id) };
    (status == result::SUCCESS && !node.is_null()).then_some(id)
}

/// Graph and node as records of work have them.
pub(super) fn place(graph: u32, node: u64) -> GraphNode {
    GraphNode {
        exec: graph,
        node: if graph == 0 { 0 } else { node as u32 },
    }
}

/// A call has added a node to a graph; 0 for a call that is not known.
pub(super) fn created(graph: &GraphData, correlation: u64) {
    if correlation != 0
        && let Some(id) = id_of(graph.node)
    {
        remember(id, correlation);
    }
}

/// A graph that is made of another one has got a copy of a node.
pub(super) fn cloned(graph: &GraphData) {
    let (Some(copy), Some(original)) = (id_of(graph.node), id_of(graph.original_node)) else {
        return;
    };
    let known = FORK.lock().and_then(|_guard| {
        // SAFETY: the lock is held.
        unsafe { &*CALLS.0.get() }.as_ref()?.get(&original).copied()
    });
    if let Some(correlation) = known {
        remember(copy, correlation);
    }
}

fn remember(id: u64, correlation: u64) {
    {
        let Some(_guard) = FORK.lock() else { return };
        // SAFETY: the lock is held.
        let calls = unsafe { &mut *CALLS.0.get() }.get_or_insert_default();
        if calls.len() >= MOST && !calls.contains_key(&id) {
            return;
        }
        calls.insert(id, correlation);
    }
    meta::write(
        &CapturedNode {
            header: RecordKind::CapturedNode.head(0),
            graph: place((id >> 32) as u32, id),
            correlation,
        },
        b"",
    );
}
