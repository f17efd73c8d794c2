//! Graphs: numbers of executable graphs, and the launches that a thread is in.
//!
//! What is submitted between the begin and the end of a launch, on the launching thread, belongs to the graph. Launches nest: a
//! function of the host in a graph may launch another one.

use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};

use rpd_spool::format::{GraphLaunch, GraphNode};

use super::device_work::is_of_parent;
use super::fork::ForkHook;
use super::thread;

/// The numbers of executable graphs by handle.
struct Numbers(UnsafeCell<Option<HashMap<u64, u32>>>);

// SAFETY: only touched with the lock of [`FORK`] held.
unsafe impl Sync for Numbers {}

static NUMBERS: Numbers = Numbers(UnsafeCell::new(None));
static FORK: ForkHook = ForkHook::new();
static NEXT: AtomicU32 = AtomicU32::new(1);

fn with_numbers<T>(act: impl FnOnce(&mut HashMap<u64, u32>) -> T) -> Option<T> {
    let _guard = FORK.lock()?;
    // SAFETY: the lock is held.
    let numbers = unsafe { &mut *NUMBERS.0.get() }.get_or_insert_default();
    Some(act(numbers))
}

fn next() -> u32 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// An executable graph was made. Its handle may have been that of another one, whose number is another.
pub(crate) fn instantiated(exec: u64) {
    with_numbers(|numbers| numbers.insert(exec, next()));
}

/// An executable graph was destroyed.
pub(crate) fn destroyed(exec: u64) {
    with_numbers(|numbers| numbers.remove(&exec));
}

/// The number of an executable graph, and whether it has just got it: it was made before recording began.
pub(crate) fn number(exec: u64) -> (u32, bool) {
    let known = with_numbers(|numbers| match numbers.get(&exec) {
        Some(number) => (*number, false),
        None => {
            let number = next();
            numbers.insert(exec, number);
            (number, true)
        }
    });
    known.unwrap_or((0, false))
}

/// A launch that a thread is in.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Launch {
    /// Number of the executable graph.
    pub(crate) exec: u32,
    /// Dispatches and copies so far.
    nodes: u32,
    /// Dispatches so far.
    pub(crate) dispatches: u64,
    /// Agent of the first dispatch; 0 before it.
    pub(crate) agent: u64,
}

/// The calling thread begins to launch an executable graph. False when it has no state, and [`leave`] is not to be called.
pub(crate) fn enter(exec: u32) -> bool {
    let launch = Launch {
        exec,
        ..Launch::default()
    };
    thread::with(|thread| thread.launches.push(launch)).is_some()
}

/// The calling thread ends the launch that it began last.
pub(crate) fn leave() -> Launch {
    let launch = thread::with(|thread| thread.launches.pop());
    launch.flatten().unwrap_or_default()
}

fn node(count: impl FnOnce(&mut Launch)) -> GraphNode {
    let node = thread::with(|thread| {
        let launch = thread.launches.last_mut()?;
        let node = GraphNode {
            exec: launch.exec,
            node: launch.nodes,
        };
        launch.nodes += 1;
        count(launch);
        Some(node)
    });
    node.flatten().unwrap_or_default()
}

/// Graph and node of a dispatch that the calling thread submits to an agent; all 0 outside of launches.
pub(crate) fn dispatch(agent: u64) -> GraphNode {
    node(|launch| {
        launch.dispatches += 1;
        if launch.agent == 0 {
            launch.agent = agent;
        }
    })
}

/// Graph and node of a copy that the calling thread submits; all 0 outside of launches.
pub(crate) fn copy() -> GraphNode {
    node(|_| {})
}

/// A graph was launched successfully.
pub(crate) fn launched(record: &GraphLaunch) {
    if !is_of_parent(record.start) {
        thread::write(record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executable_graph_has_another_number_after_its_handle_was_reused() {
        instantiated(0x7000);
        let (first, is_new) = number(0x7000);
        assert!(first != 0 && !is_new);
        assert_eq!(number(0x7000), (first, false));
        destroyed(0x7000);
        instantiated(0x7000);
        assert!(number(0x7000).0 > first);
        let (unknown, is_new) = number(0x7100);
        assert!(unknown > first && is_new);
    }
}
