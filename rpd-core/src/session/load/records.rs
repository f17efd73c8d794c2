//! Records that become rows: calls, ranges and work of devices.

use std::io;

use zerocopy::FromBytes;

use super::super::{ArgsRef, DispatchTable, Growth, OpenCall, Session};
use super::LoadOptions;
use super::counters::Counters;
use super::meta::Meta;
use super::note_damage;
use super::ranges::{Ranges, StartedRange};
use crate::column::Storage;
use crate::domain::Kind;
use crate::ids::{
    AgentHandle, CorrelationId, DispatchId, KernelId, Nanoseconds, QueueId, StreamId, StringId,
    ThreadId,
};
use crate::spool::format::{self, StackRef, api_flag};
use crate::spool::reader::{ByteStrings, Record, split_stack};

/// Takes records and fills the columns of a session.
pub(super) struct Rows {
    options: LoadOptions,
    pub(super) ranges: Ranges,
    pub(super) counters: Counters,
    /// Records of kinds without a name.
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

    #[inline]
    pub(super) fn take_call(
        &mut self,
        record: &Record<'_>,
        thread: u32,
        meta: &mut Meta,
        session: &mut Session,
    ) -> Option<()> {
        let (call, tail) = record.parse::<format::ApiCall>()?;
        let (stack, tail) = split_stack(call.flags, tail);
        note_cut(call.flags, session);
        let Some(operation) = meta.call(record.header.aux, call.operation, session) else {
            self.nameless += 1;
            return Some(());
        };
        if call.end == 0 {
            session.ledger.open_calls.push(OpenCall {
                name: session.operations[operation].name,
                thread: ThreadId(thread),
                start: Nanoseconds(call.start),
            });
            return Some(());
        }
        let message = if call.flags & api_flag::MESSAGE != 0 {
            message(tail, session)
        } else {
            StringId(0)
        };
        let has_args = api_flag::ARGUMENTS | api_flag::ARGUMENT_TEXTS;
        let args = if self.options.args && call.flags & has_args != 0 {
            let offset = session.api.arena.total() as u64;
            session.api.arena.extend_from_slice(tail);
            ArgsRef {
                offset,
                // A record is never longer than a `u32` says.
                len: tail.len() as u32,
                flags: call.flags,
            }
        } else {
            ArgsRef::default()
        };
        let api = &mut session.api;
        api.operation.push(operation);
        api.message.push(message);
        api.start.push(Nanoseconds(call.start));
        api.end.push(Nanoseconds(call.end.max(call.start)));
        api.thread.push(ThreadId(thread));
        api.correlation.push(CorrelationId(call.correlation));
        api.ancestor.push(CorrelationId(call.ancestor));
        api.args.push(args);
        if self.options.args {
            api.retval.push(call.retval);
        }
        if meta.has_stacks {
            api.stack.push(stack);
        }
        Some(())
    }

    /// Takes the start of a process range. The error is that of [`Ranges::start`].
    pub(super) fn take_range(
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
            message: if range.flags & api_flag::NULL_MESSAGE != 0 {
                StringId(0)
            } else {
                message(tail, session)
            },
            start: range.start,
            thread,
            correlation: range.correlation,
            ancestor: range.ancestor,
            stack,
        }))
    }

    /// Joins the ranges and reports what could not be used. Ranges that were never stopped are not rows. Returns the
    /// counters, which are finished when all rows can be read.
    pub(super) fn finish(
        self,
        meta: &Meta,
        session: &mut Session,
        tables: &mut Growth,
    ) -> io::Result<Counters> {
        let options = self.options;
        self.ranges.join(|range, end| {
            let Some(end) = end else {
                session.ledger.open_calls.push(OpenCall {
                    name: if range.message.0 == 0 {
                        session.operations[range.operation].name
                    } else {
                        range.message
                    },
                    thread: ThreadId(range.thread),
                    start: Nanoseconds(range.start),
                });
                return Ok(());
            };
            let api = &mut session.api;
            api.operation.push(range.operation);
            api.message.push(range.message);
            api.start.push(Nanoseconds(range.start));
            api.end.push(Nanoseconds(end.max(range.start)));
            api.thread.push(ThreadId(range.thread));
            api.correlation.push(CorrelationId(range.correlation));
            api.ancestor.push(CorrelationId(range.ancestor));
            api.args.push(ArgsRef::default());
            if options.args {
                api.retval.push(0);
            }
            if meta.has_stacks {
                api.stack.push(range.stack);
            }
            tables.taken(session)
        })?;
        let damage = &mut session.ledger.damage;
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

/// Counts the record if its texts were cut off.
#[inline]
fn note_cut(flags: u32, session: &mut Session) {
    session.ledger.cut_calls += u64::from(flags & api_flag::TRUNCATED != 0);
}

fn message(tail: &[u8], session: &mut Session) -> StringId {
    match ByteStrings(tail).next() {
        Some(Some(text)) => session.strings.intern(&String::from_utf8_lossy(text)),
        _ => StringId(0),
    }
}

/// Thread ids are 32 bits on Linux; the ABI has them as 64.
fn thread_id(id: u64) -> ThreadId {
    ThreadId(u32::try_from(id).unwrap_or(0))
}

pub(super) fn take_dispatch(record: &Record<'_>, session: &mut Session) -> Option<()> {
    let (dispatch, _) = record.parse::<format::Dispatch>()?;
    push_dispatch(&mut session.dispatches, &dispatch);
    Some(())
}

/// Appends a dispatch to a table of them.
pub(super) fn push_dispatch(table: &mut DispatchTable, dispatch: &format::Dispatch) {
    table.start.push(Nanoseconds(dispatch.start));
    table
        .end
        .push(Nanoseconds(dispatch.end.max(dispatch.start)));
    table.thread.push(thread_id(dispatch.thread));
    table.correlation.push(CorrelationId(dispatch.correlation));
    table.agent.push(AgentHandle(dispatch.agent));
    table.queue.push(QueueId(dispatch.queue));
    table.stream.push(StreamId(dispatch.stream));
    table.region.push(dispatch.region);
    table.kernel.push(KernelId(dispatch.kernel));
    table.dispatch.push(DispatchId(dispatch.dispatch));
    table.private_size.push(dispatch.private_size);
    table.group_size.push(dispatch.group_size);
    table.workgroup.push(dispatch.workgroup);
    table.grid.push(dispatch.grid);
}

pub(super) fn take_copy(record: &Record<'_>, meta: &mut Meta, session: &mut Session) -> Option<()> {
    let (copy, _) = record.parse::<format::Copy>()?;
    let operation = meta.operation(Kind::MemoryCopy, copy.operation, session);
    let table = &mut session.copies;
    table.operation.push(operation);
    table.start.push(Nanoseconds(copy.start));
    table.end.push(Nanoseconds(copy.end.max(copy.start)));
    table.thread.push(thread_id(copy.thread));
    table.correlation.push(CorrelationId(copy.correlation));
    table.dst_agent.push(AgentHandle(copy.dst_agent));
    table.src_agent.push(AgentHandle(copy.src_agent));
    table.bytes.push(copy.bytes);
    table.dst_address.push(copy.dst_address);
    table.src_address.push(copy.src_address);
    table.stream.push(StreamId(copy.stream));
    table.region.push(copy.region);
    Some(())
}

pub(super) fn take_allocation(
    record: &Record<'_>,
    meta: &mut Meta,
    session: &mut Session,
) -> Option<()> {
    let (allocation, tail) = record.parse::<format::Allocation>()?;
    let operation = meta.operation(Kind::MemoryAllocation, allocation.operation, session);
    let table = &mut session.allocations;
    table.operation.push(operation);
    table.start.push(Nanoseconds(allocation.start));
    table
        .end
        .push(Nanoseconds(allocation.end.max(allocation.start)));
    table.thread.push(thread_id(allocation.thread));
    table
        .correlation
        .push(CorrelationId(allocation.correlation));
    table.ancestor.push(CorrelationId(allocation.ancestor));
    table.agent.push(AgentHandle(allocation.agent));
    table.address.push(allocation.address);
    table.bytes.push(allocation.bytes);
    table.stream.push(StreamId(allocation.stream));
    if meta.has_stacks {
        let stack = StackRef::read_from_prefix(tail).map(|(stack, _)| stack);
        table.stack.push(stack.unwrap_or_default());
    }
    Some(())
}

pub(super) fn take_scratch(
    record: &Record<'_>,
    meta: &mut Meta,
    session: &mut Session,
) -> Option<()> {
    let (scratch, _) = record.parse::<format::Scratch>()?;
    let operation = meta.operation(Kind::ScratchMemory, scratch.operation, session);
    let table = &mut session.scratch;
    table.operation.push(operation);
    table.start.push(Nanoseconds(scratch.start));
    table.end.push(Nanoseconds(scratch.end.max(scratch.start)));
    table.thread.push(thread_id(scratch.thread));
    table.correlation.push(CorrelationId(scratch.correlation));
    table.ancestor.push(CorrelationId(scratch.ancestor));
    table.agent.push(AgentHandle(scratch.agent));
    table.queue.push(QueueId(scratch.queue));
    table.bytes.push(scratch.bytes);
    table.flags.push(scratch.flags);
    Some(())
}
