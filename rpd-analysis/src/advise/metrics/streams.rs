//! What operations of a stream wait for: others of the null stream, of their queue, and functions of the host.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::answer::Window;
use crate::records::{NONE, Records};

/// Number of the null stream, with which streams wait for one another unless they were made not to.
const NULL_STREAM: u32 = 0;
/// Operations that are looked at, the first ones of the window; more would take too much memory.
const MOST: usize = 1 << 19;
/// Functions that put a function of the host into a stream.
const HOST_FUNCTIONS: [&str; 2] = ["hipLaunchHostFunc", "hipStreamAddCallback"];

/// What tells operations apart: process, whether it is a kernel, number.
pub(super) type OpKey = (u32, bool, u64);

/// Waits between the streams of a GPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct OfStreams {
    /// Operations of the null stream that began when all that had been requested before in other streams had ended.
    pub(super) null_ops: u64,
    /// Operations that did not wait for the null stream, or that it did not wait for.
    pub(super) null_broken: u64,
    /// Time for which operations were held back by the null stream, or it by them.
    pub(super) null_wait: u64,
    /// Time for which operations were held back by one of another stream before them on their queue.
    pub(super) shared_wait: u64,
}

/// Waits of a recording.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// By the index of the GPU.
    pub(super) of_gpu: BTreeMap<u32, OfStreams>,
    /// Calls before the end of the window that make a stream wait for an event.
    pub(super) events: u64,
    /// Operations with a function of the host in their stream between them and the operation before.
    pub(super) after_host_function: HashSet<OpKey>,
}

/// An operation that was requested.
struct Request {
    at: u64,
    thread: u32,
    start: u64,
    end: u64,
    stream: u32,
    queue: u32,
    process: u32,
    /// Whether the call that requested it can return before its end.
    is_async: bool,
    key: OpKey,
}

/// Finds the waits of the operations in a window.
pub(super) fn find(records: &dyn Records, window: &Window) -> Waits {
    let facts = records.facts();
    let mut waits = Waits::default();
    // Calls of functions of the host by thread, in the order of time.
    let mut host_functions: HashMap<u32, Vec<u64>> = HashMap::new();
    let names = |wanted: &dyn Fn(&str) -> bool| -> Vec<bool> {
        facts.names.iter().map(|name| wanted(name)).collect()
    };
    let is_event_wait = names(&|name| name == "hipStreamWaitEvent");
    let is_host_function = names(&|name| HOST_FUNCTIONS.contains(&name));
    let is_async = names(&|name| name.contains("Async"));
    for call in records.calls().take_while(|call| call.start < window.end) {
        // A program may be far ahead of its GPU.
        waits.events += u64::from(is_event_wait[call.name as usize]);
        if is_host_function[call.name as usize] {
            host_functions
                .entry(call.thread)
                .or_default()
                .push(call.start);
        }
    }
    let mut of_gpu: BTreeMap<u32, Vec<Request>> = BTreeMap::new();
    let inside = records
        .ops()
        .take_while(|op| op.start < window.end)
        .filter(|op| op.start >= window.start && !op.is_second);
    let launched = inside.filter_map(|op| Some((op, op.launch?)));
    for (op, launch) in launched.take(MOST) {
        of_gpu.entry(op.gpu).or_default().push(Request {
            at: launch.begin,
            thread: launch.thread,
            start: op.start,
            end: op.end,
            stream: op.stream,
            queue: op.queue,
            process: op.process,
            is_async: op.is_kernel || is_async[launch.name as usize],
            key: (op.process, op.is_kernel, op.id),
        });
    }
    for (gpu, mut requests) in of_gpu {
        requests.sort_by_key(|request| request.at);
        waits.of_gpu.insert(gpu, of_requests(&requests));
        if !host_functions.is_empty() {
            let held = after_host_functions(&requests, &host_functions);
            waits.after_host_function.extend(held);
        }
    }
    waits
}

/// Waits between operations of a GPU, which are in the order of their requests.
fn of_requests(requests: &[Request]) -> OfStreams {
    let mut found = OfStreams::default();
    let mut own_ends: HashMap<(u32, u32), u64> = HashMap::new();
    let mut on_queue: HashMap<(u32, u32), (u32, u64)> = HashMap::new();
    // By process: end of the latest operation of the null stream, and of all others.
    let mut null_end: HashMap<u32, u64> = HashMap::new();
    let mut other_end: HashMap<u32, u64> = HashMap::new();
    for request in requests {
        let process = request.process;
        let own = own_ends.entry((process, request.stream)).or_default();
        let ready = request.at.max(*own);
        *own = (*own).max(request.end);
        let held = |by: u64| request.start.min(by).saturating_sub(ready);
        if request.queue != NONE {
            let before = on_queue.insert((process, request.queue), (request.stream, request.end));
            if let Some((_, end)) = before.filter(|before| before.0 != request.stream) {
                found.shared_wait += held(end);
            }
        }
        if request.stream != NULL_STREAM {
            if let Some(end) = null_end.get(&process) {
                found.null_broken += u64::from(request.start < *end);
                found.null_wait += held(*end);
            }
            let end = other_end.entry(process).or_default();
            *end = (*end).max(request.end);
        } else if request.is_async {
            let others = other_end.get(&process).copied().unwrap_or(0);
            if others > request.at {
                found.null_ops += u64::from(others <= request.start);
                found.null_broken += u64::from(others > request.start);
                found.null_wait += held(others);
            }
            null_end.insert(process, request.end);
        }
    }
    found
}

/// Operations with a function of the host between them and the operation before in their stream.
fn after_host_functions<'a>(
    requests: &'a [Request],
    host_functions: &'a HashMap<u32, Vec<u64>>,
) -> impl Iterator<Item = OpKey> + 'a {
    let mut before: HashMap<(u32, u32), u64> = HashMap::new();
    requests.iter().filter_map(move |request| {
        let stream = (request.process, request.stream);
        let before = before.insert(stream, request.at)?;
        let calls = host_functions.get(&request.thread)?;
        let next = calls.get(calls.partition_point(|call| *call < before))?;
        (*next < request.at).then_some(request.key)
    })
}
