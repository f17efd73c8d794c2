//! Order of the work on streams. It tells the work that a synchronisation has waited for: copies whose results can be
//! taken then, and memory that the host may write again.

use std::collections::HashMap;

use rpd_spool::capture::{Group, HandleKind, Role, data_use, number};

use super::ranges::Range;
use super::state::STATE;
use super::{Begun, nodes, pinned, stored, values};
use crate::recording::fork::ForkHook;
use crate::recording::thread;

/// The number of a stream: its handle, or that of a default stream. Per-thread default streams are one for each thread.
pub(super) fn stream(raw: u64, per_thread: bool) -> u64 {
    match raw {
        0 if per_thread => PER_THREAD | u64::from(thread::id()),
        0 | 1 => 0,
        2 => PER_THREAD | u64::from(thread::id()),
        handle => handle,
    }
}

const PER_THREAD: u64 = 1 << 63;

/// Completed work by stream: stream, number of the last completed work.
pub(super) type Covered = Vec<(u64, u64)>;

#[derive(Default)]
struct Stream {
    /// Number of the last work that was added.
    work: u64,
    /// Work of others that its own waits for.
    follows: Covered,
    /// Whether the stream does not wait for the legacy default stream.
    independent: bool,
}

struct Pending {
    stream: u64,
    work: u64,
    copy: u64,
    range: Range,
    /// A host function behind it may have told the program that it is complete.
    announced: bool,
}

/// Streams, events, and work under way.
#[derive(Default)]
pub(super) struct Order {
    /// Work that was added to any stream. The numbers are the process', not the stream's: runtimes give the handle of a destroyed
    /// stream out again, and what a wait covers by the old handle must not include work of the new stream.
    last_work: u64,
    streams: HashMap<u64, Stream>,
    events: HashMap<u64, Covered>,
    pending: Vec<Pending>,
    /// Fills of host-visible memory, and copies to it within the device, that are under way: stream, work and range.
    writes: Vec<(u64, u64, Range)>,
}

/// Whether this work of a stream is complete.
pub(super) fn covers(covered: &[(u64, u64)], stream: u64, work: u64) -> bool {
    covered
        .iter()
        .any(|&(known, done)| known == stream && work <= done)
}

fn merge(into: &mut Covered, other: &[(u64, u64)]) {
    for &(stream, work) in other {
        match into.iter_mut().find(|(known, _)| *known == stream) {
            Some((_, known)) => *known = (*known).max(work),
            None => into.push((stream, work)),
        }
    }
}

impl Order {
    pub(super) fn created(&mut self, stream: u64, independent: bool) {
        let made = Stream {
            independent,
            ..Stream::default()
        };
        self.streams.insert(stream, made);
    }

    /// Notes that work was added to a stream, and returns its number. To be called when the runtime has the work: a
    /// wait that begins before does not cover it.
    pub(super) fn enqueue(&mut self, stream: u64) -> u64 {
        self.last_work += 1;
        self.streams.entry(stream).or_default().work = self.last_work;
        self.last_work
    }

    /// Number of the last work of a stream.
    pub(super) fn work(&self, stream: u64) -> u64 {
        self.streams.get(&stream).map_or(0, |found| found.work)
    }

    /// Notes that the work of `copy`, which writes `range`, was added to a stream.
    pub(super) fn pend(&mut self, stream: u64, copy: u64, range: Range) {
        let work = self.streams.entry(stream).or_default().work;
        self.pending.push(Pending {
            stream,
            work,
            copy,
            range,
            announced: false,
        });
    }

    /// Notes that the stream calls a host function behind the work that it has.
    pub(super) fn announce(&mut self, stream: u64) {
        let covered = self.covered(stream);
        for pending in &mut self.pending {
            pending.announced |= covers(&covered, pending.stream, pending.work);
        }
    }

    /// Notes that the last work that was added to a stream writes `range`, which the host does not get as a result.
    pub(super) fn pend_write(&mut self, stream: u64, range: Range) {
        self.writes.push((stream, self.work(stream), range));
    }

    /// Takes out the ranges of complete fills and copies within the device.
    fn take_writes(&mut self, covered: &[(u64, u64)]) -> Vec<Range> {
        let writes = &mut self.writes;
        let done = writes.extract_if(.., |(stream, work, _)| covers(covered, *stream, *work));
        done.map(|(.., range)| range).collect()
    }

    /// The ranges that copies and fills under way write and that overlap `range`.
    pub(super) fn written_in(&self, range: &Range) -> Vec<Range> {
        let pending = self.pending.iter().map(|copy| copy.range);
        let all = pending.chain(self.writes.iter().map(|(.., range)| *range));
        all.filter(|written| written.overlaps(range)).collect()
    }

    /// The ranges that overlap `range` and that copies and fills write of which the program cannot know that they are
    /// complete.
    pub(super) fn surely_written_in(&self, range: &Range) -> Vec<Range> {
        let pending = self.pending.iter().filter(|copy| !copy.announced);
        let pending = pending.map(|copy| copy.range);
        let all = pending.chain(self.writes.iter().map(|(.., range)| *range));
        all.filter(|written| written.overlaps(range)).collect()
    }

    /// Work that is complete when all work of the stream is.
    fn covered(&self, stream: u64) -> Covered {
        let mut covered = Covered::new();
        if let Some(found) = self.streams.get(&stream) {
            covered.push((stream, found.work));
            merge(&mut covered, &found.follows);
        }
        if stream == 0 {
            // The legacy default stream waits for the streams that do not opt out.
            for (&other, found) in &self.streams {
                if !found.independent && other & PER_THREAD == 0 && other != 0 {
                    merge(&mut covered, &[(other, found.work)]);
                    merge(&mut covered, &found.follows);
                }
            }
        }
        covered
    }

    /// Notes that an event was recorded; `covered` is the work that the stream covered before.
    fn record(&mut self, event: u64, covered: Covered) {
        self.events.insert(event, covered);
    }

    fn wait(&mut self, stream: u64, event: u64) {
        if let Some(covered) = self.events.get(&event).cloned() {
            merge(
                &mut self.streams.entry(stream).or_default().follows,
                &covered,
            );
        }
    }

    /// Takes out the copies that are complete.
    fn take(&mut self, covered: &[(u64, u64)]) -> Vec<(u64, Range)> {
        let done = |pending: &Pending| covers(covered, pending.stream, pending.work);
        let mut taken = Vec::new();
        self.pending.retain(|pending| {
            let is_done = done(pending);
            if is_done {
                taken.push((pending.copy, pending.range));
            }
            !is_done
        });
        taken
    }

    fn all(&self) -> Covered {
        let all = self.streams.iter();
        all.map(|(stream, found)| (*stream, found.work)).collect()
    }
}

/// Notes the work that a waiting call will have waited for when it returns, and the work that an event will stand for.
pub(super) fn begin(begun: &mut Begun, arguments: &[u8]) {
    use number as n;
    let covered = |stream: u64| STATE.with(|state| state.order.covered(stream));
    // Most calls wait for nothing: for them the lock is not taken.
    let found = match begun.number {
        n::hipDeviceSynchronize | n::hipCtxSynchronize | n::hipFree => {
            STATE.with(|state| state.order.all())
        }
        n::hipStreamSynchronize
        | n::hipStreamSynchronize_spt
        | n::hipStreamQuery
        | n::hipStreamQuery_spt
        | n::hipEventRecord
        | n::hipEventRecord_spt
        | n::hipEventRecordWithFlags => covered(begun.stream(arguments)),
        n::hipEventSynchronize | n::hipEventQuery => {
            let event = begun.argument(arguments, "event");
            STATE.with(|state| state.order.events.get(&event).cloned().unwrap_or_default())
        }
        _ if begun.operation.group == Group::Transfer
            && !begun.operation.name().contains("Async") =>
        {
            covered(begun.stream(arguments))
        }
        _ => return,
    };
    begun.waits_for = found.unwrap_or_default();
}

/// Held while results are taken. A result may be taken by a thread that waited for it and did not request it; the one that did is
/// held here until then, because it may overwrite the result once its own wait has returned.
///
/// [`STATE`] is taken while it is held, so its hook is registered after that of the state: at its first use.
static TAKING: ForkHook = ForkHook::new();

/// The call has waited: takes the results that are complete.
pub(super) fn take_results(begun: &mut Begun) {
    let covered = std::mem::take(&mut begun.waits_for);
    if covered.is_empty() {
        return;
    }
    // Not to be had where a signal handler interrupted this thread while it took results.
    let Some(_taking) = TAKING.lock() else {
        return;
    };
    let found = STATE.with(|state| {
        let copies = state.order.take(&covered);
        let values = state.values_of_host(&covered);
        let memory = state.take_complete_uses(&covered);
        // This memory may have been compared while the writes were under way.
        for range in state.order.take_writes(&covered) {
            state.copy_writes(&range);
        }
        (copies, memory, values)
    });
    let Some((copies, memory, values)) = found else {
        return;
    };
    values::take(begun, values);
    for (copy, range) in copies {
        begun.items.add_data(&range, data_use::OUTPUT, copy, false);
    }
    for (launch, range) in memory {
        begun
            .items
            .add_data(&range, data_use::OUTPUT, launch, false);
    }
    pinned::take_results(begun, &covered);
}

/// Follows streams, events and stream capture.
///
/// # Safety
/// The call succeeded, and its arguments are those given.
pub(super) unsafe fn end(begun: &mut Begun, arguments: &[u8]) {
    use number as n;
    let named = |name: &str| begun.argument(arguments, name);
    let stream = begun.stream(arguments);
    match begun.number {
        n::hipStreamCreate
        | n::hipStreamCreateWithFlags
        | n::hipStreamCreateWithPriority
        | n::hipExtStreamCreateWithCUMask => {
            // SAFETY: by the contract of this function.
            let made = unsafe { stored(begun, arguments, Role::HandleOut(HandleKind::Stream)) };
            let independent = named("flags") & 1 != 0;
            STATE.with(|state| state.order.created(made, independent));
        }
        n::hipStreamSynchronize
        | n::hipStreamSynchronize_spt
        | n::hipStreamQuery
        | n::hipStreamQuery_spt
        | n::hipDeviceSynchronize
        | n::hipCtxSynchronize
        | n::hipEventSynchronize
        | n::hipEventQuery => take_results(begun),
        n::hipStreamDestroy => {}
        n::hipEventRecord | n::hipEventRecord_spt | n::hipEventRecordWithFlags => {
            let event = named("event");
            let covered = std::mem::take(&mut begun.waits_for);
            STATE.with(|state| {
                state.order.record(event, covered);
                state.graphs.event_recorded(event, stream);
            });
        }
        n::hipStreamAddCallback
        | n::hipStreamAddCallback_spt
        | n::hipLaunchHostFunc
        | n::hipLaunchHostFunc_spt => drop(STATE.with(|state| state.order.announce(stream))),
        n::hipStreamWaitEvent | n::hipStreamWaitEvent_spt => {
            let event = named("event");
            STATE.with(|state| {
                state.order.wait(stream, event);
                state.graphs.stream_waits(stream, event);
            });
        }
        n::hipStreamBeginCapture | n::hipStreamBeginCapture_spt => {
            STATE.with(|state| state.graphs.capture_begins(stream));
        }
        n::hipStreamBeginCaptureToGraph => {
            let graph = named("graph");
            STATE.with(|state| {
                state.graphs.capture_begins(stream);
                state.graphs.exposes(stream, graph);
            });
        }
        n::hipStreamGetCaptureInfo_v2 | n::hipStreamGetCaptureInfo_v2_spt => {
            // SAFETY: as above.
            let graph = unsafe { stored(begun, arguments, Role::HandleOut(HandleKind::Graph)) };
            STATE.with(|state| state.graphs.found_graph(stream, graph));
        }
        n::hipStreamEndCapture | n::hipStreamEndCapture_spt => {
            // SAFETY: as above.
            let graph = unsafe { stored(begun, arguments, Role::HandleOut(HandleKind::Graph)) };
            STATE.with(|state| state.graphs.capture_ends(stream, graph));
        }
        n::hipGraphCreate => {
            // SAFETY: as above.
            let graph = unsafe { stored(begun, arguments, Role::HandleOut(HandleKind::Graph)) };
            STATE.with(|state| state.graphs.new_graph(graph));
        }
        n::hipGraphInstantiate
        | n::hipGraphInstantiateWithFlags
        | n::hipGraphInstantiateWithParams => {
            // SAFETY: as above.
            let exec = unsafe { stored(begun, arguments, Role::HandleOut(HandleKind::GraphExec)) };
            let graph = named("graph");
            STATE.with(|state| state.graphs.copy_graph(graph, exec));
        }
        n::hipGraphClone => {
            // SAFETY: as above.
            let clone = unsafe { stored(begun, arguments, Role::HandleOut(HandleKind::Graph)) };
            let graph = named("originalGraph");
            STATE.with(|state| state.graphs.copy_graph(graph, clone));
        }
        n::hipGraphAddChildGraphNode => {
            let (child, graph) = (named("childGraph"), named("graph"));
            STATE.with(|state| state.graphs.add_graph(child, graph));
        }
        n::hipGraphExecChildGraphNodeSetParams => {
            let (child, exec) = (named("childGraph"), named("hGraphExec"));
            STATE.with(|state| state.graphs.add_graph(child, exec));
        }
        n::hipGraphExecUpdate => {
            let (graph, exec) = (named("hGraph"), named("hGraphExec"));
            STATE.with(|state| state.graphs.copy_graph(graph, exec));
        }
        n::hipStreamWaitValue32
        | n::hipStreamWaitValue64
        | n::hipStreamWriteValue32
        | n::hipStreamWriteValue64
        | n::hipStreamBatchMemOp => values::end(begun, arguments),
        // SAFETY: as above.
        _ => unsafe { nodes::end(begun, arguments) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copies(order: &mut Order, covered: &[(u64, u64)]) -> Vec<u64> {
        let taken = order.take(covered);
        taken.into_iter().map(|(copy, _)| copy).collect()
    }

    #[test]
    fn event_covers_the_work_of_the_stream_that_recorded_it() {
        let mut order = Order::default();
        for stream in [10, 20] {
            order.created(stream, true);
        }
        order.enqueue(10);
        order.pend(10, 1, Range::flat(0, 1));
        let recorded = order.covered(10);
        order.record(7, recorded);
        order.enqueue(10);
        order.pend(10, 2, Range::flat(0, 1));
        order.wait(20, 7);
        order.enqueue(20);
        order.pend(20, 3, Range::flat(0, 1));
        let covered = order.covered(20);
        assert_eq!(copies(&mut order, &covered), [1, 3]);
        let covered = order.covered(0);
        assert!(
            copies(&mut order, &covered).is_empty(),
            "independent streams"
        );
        let covered = order.all();
        assert_eq!(copies(&mut order, &covered), [2]);
    }

    #[test]
    fn wait_does_not_cover_a_later_stream_with_the_same_handle() {
        let mut order = Order::default();
        order.created(10, true);
        for _ in 0..5 {
            order.enqueue(10);
        }
        let (waits, recorded) = (order.all(), order.covered(10));
        order.record(7, recorded);
        // Meanwhile the stream is destroyed, and another one has its handle.
        order.created(10, true);
        order.enqueue(10);
        order.pend(10, 1, Range::flat(0, 1));
        assert!(copies(&mut order, &waits).is_empty());
        order.created(20, true);
        order.wait(20, 7);
        let through_event = order.covered(20);
        assert!(copies(&mut order, &through_event).is_empty());
        let covered = order.covered(10);
        assert_eq!(copies(&mut order, &covered), [1]);
    }

    #[test]
    fn legacy_stream_waits_for_streams_that_are_not_independent() {
        let mut order = Order::default();
        order.created(10, false);
        order.created(20, true);
        for stream in [10, 20] {
            order.enqueue(stream);
            order.pend(stream, stream, Range::flat(0, 1));
        }
        order.enqueue(0);
        let covered = order.covered(0);
        assert_eq!(copies(&mut order, &covered), [10]);
    }
}
