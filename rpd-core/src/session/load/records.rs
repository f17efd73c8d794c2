//! Records that become rows of tables: calls, ranges, and work of devices.

use std::io;

use zerocopy::FromBytes;

use super::super::{
    AllocationRow, ArgsRef, CallRow, CopyRow, DispatchRow, DispatchTable, GraphLaunchRow, Growth,
    HipEventRow, KfdEventRow, OpenCall, OperationClass, ScratchRow, Session,
};
use super::LoadOptions;
use super::counters::Counters;
use super::meta::Meta;
use super::ranges::{Ranges, StartedRange};
use super::{end_of_recording, note_damage};
use crate::domain::{KFD_KINDS, Kind};
use crate::ids::{
    AgentHandle, CorrelationId, DispatchId, KernelId, Nanoseconds, QueueId, StreamId, StringId,
    ThreadId,
};
use crate::spool::format::{self, StackRef, call_flag};
use crate::spool::reader::{ByteStrings, Record, split_stack};
use crate::storage::column::Storage;

/// Ranges that were not stopped of which the ledger has more than the number.
const MAX_OPEN_RANGES: usize = 100;

/// Fills the tables of a session with the contents of records.
pub(super) struct Rows {
    options: LoadOptions,
    pub(super) ranges: Ranges,
    pub(super) counters: Counters,
    /// Number of calls whose kind the meta stream does not name.
    nameless: u64,
}

impl Rows {
    pub(super) fn new(options: LoadOptions, storage: &Storage) -> Rows {
        Rows {
            options,
            ranges: Ranges::new(storage),
            counters: Counters::default(),
            nameless: 0,
        }
    }

    /// Takes a call or marker; `None` when the record is too short. The inner error is that of [`Ranges::start`].
    #[inline]
    pub(super) fn load_call(
        &mut self,
        record: &Record<'_>,
        thread: u32,
        meta: &mut Meta,
        session: &mut Session,
    ) -> Option<io::Result<()>> {
        let (call, tail) = record.parse::<format::CallRecord>()?;
        let (stack, tail) = split_stack(call.flags, tail);
        note_cut(call.flags, session);
        // The number of a kind is the provider's; without a name nobody can say what the function was.
        let Some(operation) = meta.call(record.header.aux, call.operation, session) else {
            self.nameless += 1;
            return Some(Ok(()));
        };
        let message = if call.flags & call_flag::MESSAGE != 0 {
            message(tail, session)
        } else {
            StringId(0)
        };
        if call.end == 0 {
            if session.operations[operation].class == OperationClass::Range {
                // A range of a thread that was not popped.
                return Some(self.ranges.start(StartedRange {
                    operation,
                    message,
                    start: call.start,
                    thread: thread.into(),
                    correlation: call.correlation,
                    ancestor: call.ancestor,
                    stack,
                    args: self.details(call.flags, tail, session),
                }));
            }
            session.ledger.open_calls.push(OpenCall {
                name: session.operations[operation].name,
                thread: ThreadId(thread),
                start: Nanoseconds(call.start),
                // A call without end has not returned. It is reported, but is no row: a duration would be made up.
            });
            return Some(Ok(()));
        }
        let args = self.details(call.flags, tail, session);
        let calls = &mut session.calls;
        calls.push(CallRow {
            operation,
            message,
            start: Nanoseconds(call.start),
            // In a damaged recording an end can lie before its start; the difference would wrap round.
            end: Nanoseconds(call.end.max(call.start)),
            thread: ThreadId(thread),
            correlation: CorrelationId(call.correlation),
            ancestor: CorrelationId(call.ancestor),
            args,
        });
        // Without the option the column stays empty, which saves eight bytes a call.
        if self.options.args {
            calls.retval.set_last(call.retval);
        }
        // A recording without stacks has no column for them.
        if meta.has_stacks {
            calls.stack.set_last(stack);
        }
        Some(Ok(()))
    }

    /// Keeps the arguments of a call, or what is known of a marker beyond its message.
    fn details(&self, flags: u32, tail: &[u8], session: &mut Session) -> ArgsRef {
        let has_args = call_flag::ARGUMENTS | call_flag::ARGUMENT_TEXTS;
        // What a marker says is its own, and not the argument of a function.
        let is_wanted = self.options.args || flags & call_flag::MESSAGE != 0;
        if !is_wanted || flags & has_args == 0 {
            return ArgsRef::default();
        }
        let tail = match flags & call_flag::MESSAGE {
            0 => tail,
            _ => behind_message(tail),
        };
        let offset = session.calls.arena.total() as u64;
        session.calls.arena.extend_from_slice(tail);
        ArgsRef {
            offset,
            // Cannot overflow: the length of a record is a `u32`.
            len: tail.len() as u32,
            flags,
        }
    }

    /// Takes the start of a process range; `None` when the record is too short. The inner error is that of
    /// [`Ranges::start`].
    pub(super) fn load_range(
        &mut self,
        record: &Record<'_>,
        thread: u32,
        meta: &mut Meta,
        session: &mut Session,
    ) -> Option<io::Result<()>> {
        let (range, tail) = record.parse::<format::RangeBegin>()?;
        let (stack, tail) = split_stack(range.flags, tail);
        note_cut(range.flags, session);
        let Some(operation) = meta.call(record.header.aux, range.operation, session) else {
            self.nameless += 1;
            return Some(Ok(()));
        };
        Some(self.ranges.start(StartedRange {
            operation,
            // A null message has no text; an empty message is a text.
            message: if range.flags & call_flag::NULL_MESSAGE != 0 {
                StringId(0)
            } else {
                message(tail, session)
            },
            start: range.start,
            thread: thread.into(),
            correlation: range.correlation,
            ancestor: range.ancestor,
            stack,
            args: self.details(range.flags, tail, session),
        }))
    }

    /// Joins the starts and stops of ranges, and reports calls of unknown kinds as damage. Ranges that were never
    /// stopped last until the end of the recording, and are listed in the ledger. Returns the counters, which can be
    /// finished when all rows can be read.
    pub(super) fn finish(
        self,
        meta: &Meta,
        session: &mut Session,
        tables: &mut Growth,
    ) -> io::Result<Counters> {
        // Ranges that were not stopped last until the end of the recording, which is known only when all rows are.
        let last = self.ranges.last_start();
        let last = end_of_recording(session, meta.end_time, last.max(tables.last_end(session)));
        self.ranges.join(|range, end| {
            if end.is_none() {
                note_open_range(&range, session);
            }
            let calls = &mut session.calls;
            calls.push(CallRow {
                operation: range.operation,
                message: range.message,
                start: Nanoseconds(range.start),
                end: Nanoseconds(end.unwrap_or(last.0).max(range.start)),
                thread: ThreadId(range.thread as u32),
                correlation: CorrelationId(range.correlation),
                ancestor: CorrelationId(range.ancestor),
                args: range.args,
            });
            if meta.has_stacks {
                calls.stack.set_last(range.stack);
            }
            tables.taken(session)
        })?;
        let damage = &mut session.ledger.damage;
        // One message for all: a damaged meta stream makes every call nameless.
        if self.nameless > 0 {
            let why = if meta.is_stale() {
                "the names came later"
            } else {
                "the recording does not name them"
            };
            note_damage(
                damage,
                format!("{} calls are of an unknown kind: {why}", self.nameless),
            );
        }
        Ok(self.counters)
    }
}

/// Puts a range that was not stopped into the ledger.
fn note_open_range(range: &StartedRange, session: &mut Session) {
    let open = &mut session.ledger.open_ranges;
    open.count += 1;
    if open.first.len() < MAX_OPEN_RANGES {
        open.first.push(OpenCall {
            name: match range.message {
                StringId(0) => session.operations[range.operation].name,
                message => message,
            },
            thread: ThreadId(range.thread as u32),
            start: Nanoseconds(range.start),
        });
    }
}

/// Counts the record if the collector cut its texts off.
#[inline]
fn note_cut(flags: u32, session: &mut Session) {
    session.ledger.cut_calls += u64::from(flags & call_flag::TRUNCATED != 0);
}

fn message(tail: &[u8], session: &mut Session) -> StringId {
    match ByteStrings(tail).next() {
        Some(Some(text)) => session.strings.intern(&String::from_utf8_lossy(text)),
        _ => StringId(0),
    }
}

/// The part of a marker's tail behind its message.
fn behind_message(tail: &[u8]) -> &[u8] {
    let (length, rest) = tail.split_first_chunk::<4>().unwrap_or((&[0; 4], &[]));
    match u32::from_le_bytes(*length) {
        // A null message.
        u32::MAX => rest,
        length => rest.get(length as usize..).unwrap_or_default(),
    }
}

/// Thread ids have 64 bits in the SDK's structs, and 32 on Linux.
fn thread_id(id: u64) -> ThreadId {
    ThreadId(u32::try_from(id).unwrap_or(0))
}

pub(super) fn load_dispatch(record: &Record<'_>, session: &mut Session) -> Option<()> {
    let (dispatch, _) = record.parse::<format::Dispatch>()?;
    push_dispatch(&mut session.dispatches, &dispatch);
    Some(())
}

/// Appends a dispatch to `table`.
pub(super) fn push_dispatch(table: &mut DispatchTable, dispatch: &format::Dispatch) {
    table.push(DispatchRow {
        start: Nanoseconds(dispatch.start),
        end: Nanoseconds(dispatch.end.max(dispatch.start)),
        thread: thread_id(dispatch.thread),
        correlation: CorrelationId(dispatch.correlation),
        agent: AgentHandle(dispatch.agent),
        queue: QueueId(dispatch.queue),
        stream: StreamId(dispatch.stream),
        region: dispatch.region,
        kernel: KernelId(dispatch.kernel),
        dispatch: DispatchId(dispatch.dispatch),
        private_size: dispatch.private_size,
        group_size: dispatch.group_size,
        workgroup: dispatch.workgroup,
        grid: dispatch.grid,
    });
    table.set_graph(dispatch.graph);
    table.set_replay_pass(u32::from(dispatch.header.aux).checked_sub(1));
}

pub(super) fn load_copy(record: &Record<'_>, meta: &mut Meta, session: &mut Session) -> Option<()> {
    let (copy, _) = record.parse::<format::Copy>()?;
    let operation = meta.operation(Kind::MemoryCopy, copy.operation, session);
    let table = &mut session.copies;
    table.push(CopyRow {
        operation,
        start: Nanoseconds(copy.start),
        end: Nanoseconds(copy.end.max(copy.start)),
        thread: thread_id(copy.thread),
        correlation: CorrelationId(copy.correlation),
        dst_agent: AgentHandle(copy.dst_agent),
        src_agent: AgentHandle(copy.src_agent),
        bytes: copy.bytes,
        dst_address: copy.dst_address,
        src_address: copy.src_address,
        stream: StreamId(copy.stream),
        region: copy.region,
    });
    table.set_graph(copy.graph);
    Some(())
}

pub(super) fn load_allocation(
    record: &Record<'_>,
    meta: &mut Meta,
    session: &mut Session,
) -> Option<()> {
    let (allocation, tail) = record.parse::<format::Allocation>()?;
    let operation = meta.operation(Kind::MemoryAllocation, allocation.operation, session);
    let table = &mut session.allocations;
    table.push(AllocationRow {
        operation,
        start: Nanoseconds(allocation.start),
        end: Nanoseconds(allocation.end.max(allocation.start)),
        thread: thread_id(allocation.thread),
        correlation: CorrelationId(allocation.correlation),
        ancestor: CorrelationId(allocation.ancestor),
        agent: AgentHandle(allocation.agent),
        address: allocation.address,
        bytes: allocation.bytes,
        stream: StreamId(allocation.stream),
    });
    if meta.has_stacks {
        let stack = StackRef::read_from_prefix(tail).map(|(stack, _)| stack);
        table.stack.set_last(stack.unwrap_or_default());
    }
    Some(())
}

pub(super) fn load_scratch(
    record: &Record<'_>,
    meta: &mut Meta,
    session: &mut Session,
) -> Option<()> {
    let (scratch, _) = record.parse::<format::Scratch>()?;
    let operation = meta.operation(Kind::ScratchMemory, scratch.operation, session);
    let table = &mut session.scratch;
    table.push(ScratchRow {
        operation,
        start: Nanoseconds(scratch.start),
        end: Nanoseconds(scratch.end.max(scratch.start)),
        thread: thread_id(scratch.thread),
        correlation: CorrelationId(scratch.correlation),
        ancestor: CorrelationId(scratch.ancestor),
        agent: AgentHandle(scratch.agent),
        queue: QueueId(scratch.queue),
        bytes: scratch.bytes,
        flags: scratch.flags,
    });
    Some(())
}

pub(super) fn load_graph_launch(record: &Record<'_>, session: &mut Session) -> Option<()> {
    let (launch, _) = record.parse::<format::GraphLaunch>()?;
    session.graph_launches.push(GraphLaunchRow {
        start: Nanoseconds(launch.start),
        end: Nanoseconds(launch.end.max(launch.start)),
        thread: thread_id(launch.thread),
        correlation: CorrelationId(launch.correlation),
        agent: AgentHandle(launch.agent),
        exec: launch.exec,
        dispatches: launch.dispatches,
    });
    Some(())
}

pub(super) fn load_captured_node(record: &Record<'_>, session: &mut Session) -> Option<()> {
    let (node, _) = record.parse::<format::CapturedNode>()?;
    session.captured.insert(
        (node.graph.exec, node.graph.node),
        CorrelationId(node.correlation),
    );
    Some(())
}

pub(super) fn load_hip_event(record: &Record<'_>, session: &mut Session) -> Option<()> {
    let (event, _) = record.parse::<format::HipEvent>()?;
    session.hip_events.push(HipEventRow {
        start: Nanoseconds(event.start),
        end: Nanoseconds(event.end.max(event.start)),
        thread: thread_id(event.thread),
        correlation: CorrelationId(event.correlation),
        agent: AgentHandle(event.agent),
        queue: QueueId(event.queue),
        stream: StreamId(event.stream),
        event: event.event,
        source_queue: QueueId(event.source_queue),
        operation: record.header.aux,
    });
    Some(())
}

/// `None` for a record whose kind is not one of the driver's events, too.
pub(super) fn load_kfd_event(
    record: &Record<'_>,
    meta: &mut Meta,
    session: &mut Session,
) -> Option<()> {
    let (event, _) = record.parse::<format::KfdEvent>()?;
    let kind = *KFD_KINDS.get(usize::from(record.header.aux))?;
    let operation = meta.operation(kind, event.operation, session);
    session.kfd_events.push(KfdEventRow {
        operation,
        start: Nanoseconds(event.start),
        end: Nanoseconds(event.end.max(event.start)),
        process: ThreadId(event.pid),
        agent: AgentHandle(event.agent),
        dst_agent: AgentHandle(event.dst_agent),
        prefetch_agent: AgentHandle(event.prefetch_agent),
        preferred_agent: AgentHandle(event.preferred_agent),
        address: event.address,
        end_address: event.end_address,
        error: event.error,
        count: event.count,
    });
    Some(())
}
