//! Records. Events come first, because every record refers to one.

use std::collections::{BTreeMap, HashMap};

use rpd_core::domain::Kind;
use rpd_core::ids::{
    AgentHandle, CorrelationId, DispatchId, KernelId, Nanoseconds, OperationId, QueueId, StreamId,
    StringId, ThreadId,
};
use rpd_core::session::{ArgsRef, CopyTable, DispatchTable, LoadOptions, Region, memory_operation};
use rpd_core::spool::format::api_flag;
use rusqlite::types::ValueRef;
use rusqlite::{Result, Row};
use serde::Deserialize;

use super::counters;
use super::events::{Events, take};
use super::info::Info;
use super::scan::{Source, bits, bytes, integer, text, word};
use super::stacks::{self, StackOf};

/// What samples of markers are, by their message.
const GET_THREAD_ID: &str = "roctxGetThreadId";
const MARK: &str = "roctxMarkA";

/// Reads all records into `info.session`.
pub(super) fn read(source: &Source<'_>, info: &mut Info, options: LoadOptions) -> Result<()> {
    let events = Events::read(source, info)?;
    let stack_of = stacks::read(source, info)?;
    let event_of = calls(source, info, &events, &stack_of, options.args)?;
    if options.args {
        arguments(source, info, &event_of)?;
    }
    drop(event_of);
    let dispatch_events = dispatches(source, info, &events)?;
    counters::read(source, info, &dispatch_events)?;
    copies(source, info, &events)?;
    allocations(source, info, &events, &stack_of)?;
    drop((events, stack_of));
    info.session.put_in_order();
    Ok(())
}

/// Calls as one thread reads them.
#[derive(Default)]
struct CallPiece {
    thread: Vec<ThreadId>,
    start: Vec<Nanoseconds>,
    end: Vec<Nanoseconds>,
    name: Vec<u32>,
    event: Vec<i64>,
}

/// Calls and markers; the event of each.
fn calls(
    source: &Source<'_>,
    info: &mut Info,
    events: &Events,
    stack_of: &StackOf,
    keep_events: bool,
) -> Result<Vec<i64>> {
    let columns = "tid, start, \"end\", name_id, event_id";
    let pieces = source.pieces(columns, "rocpd_region", |rows| {
        let mut piece = CallPiece::default();
        while let Some(row) = rows.next()? {
            piece.thread.push(ThreadId(word(row, 0)));
            piece.start.push(Nanoseconds(bits(row, 1)));
            piece.end.push(Nanoseconds(bits(row, 2)));
            piece.name.push(word(row, 3));
            piece.event.push(integer(row, 4));
        }
        Ok(piece)
    })?;
    let mut tracks: HashMap<i64, u32> = HashMap::new();
    source.each("id, tid", "rocpd_track", |row| {
        tracks.insert(integer(row, 0), word(row, 1));
        Ok(())
    })?;
    let samples = source.pieces("track_id, timestamp, event_id", "rocpd_sample", |rows| {
        let mut piece = CallPiece::default();
        while let Some(row) = rows.next()? {
            let track = tracks.get(&integer(row, 0));
            let time = Nanoseconds(bits(row, 1));
            piece.thread.push(ThreadId(track.copied().unwrap_or(0)));
            piece.start.push(time);
            piece.end.push(time);
            // What they were called is not in the database.
            piece.name.push(0);
            piece.event.push(integer(row, 2));
        }
        Ok(piece)
    })?;

    let mut kinds: HashMap<u32, Option<Kind>> = HashMap::new();
    let mut unknown: BTreeMap<u32, u64> = BTreeMap::new();
    let mut event_of = Vec::new();
    let tagged = pieces.into_iter().map(|piece| (piece, false));
    for (mut piece, is_sample) in tagged.chain(samples.into_iter().map(|piece| (piece, true))) {
        let api = &mut info.session.api;
        let before = api.len();
        take(api.thread.to_memory(), &mut piece.thread);
        take(api.start.to_memory(), &mut piece.start);
        take(api.end.to_memory(), &mut piece.end);
        let mut last = (u32::MAX, None);
        let mut previous = None;
        let mut unwanted = false;
        for (&event, &name) in piece.event.iter().zip(&piece.name) {
            let (category, correlation, ancestor) = events.get(event);
            if category != last.0 {
                let text = info.text(category);
                let kind = *kinds
                    .entry(category)
                    .or_insert_with(|| Kind::from_name(text).filter(|kind| kind.is_api()));
                last = (category, kind);
            }
            if last.1.is_none() {
                *unknown.entry(category).or_default() += 1;
                unwanted = true;
            }
            // Those of no kind that rpd knows are taken out below.
            let kind = last.1.unwrap_or(Kind::MarkerControl);
            let message = match kind {
                Kind::MarkerCoreRange => events.message(event),
                _ => StringId(0),
            };
            let function = if !is_sample {
                info.string(name)
            } else if kind == Kind::MarkerCoreRange {
                let is_query = info.session.strings.get(message) == GET_THREAD_ID;
                let name = if is_query { GET_THREAD_ID } else { MARK };
                info.session.strings.intern(name)
            } else {
                // The message of other markers is their function.
                match events.message(event) {
                    StringId(0) => info.string(category),
                    function => function,
                }
            };
            let operation = match previous {
                Some((key, operation)) if key == (kind, function) => operation,
                _ => info.session.add_named_operation(kind, function),
            };
            previous = Some(((kind, function), operation));
            let class = info.session.operations[operation].class;
            let api = &mut info.session.api;
            api.operation.push(operation);
            api.message.push(match class.has_message() {
                true => message,
                false => StringId(0),
            });
            api.correlation.push(correlation);
            api.ancestor.push(ancestor);
            if !stack_of.is_empty() {
                api.stack.push(stack_of.get(event));
            }
        }
        let api = &mut info.session.api;
        api.args.resize(api.operation.len(), ArgsRef::default());
        if unwanted {
            remove_unknown(info, events, &mut piece.event, &kinds, before);
        }
        if keep_events {
            event_of.append(&mut piece.event);
        }
    }
    for (category, count) in unknown {
        let name = match info.text(category) {
            "" => "no kind".to_owned(),
            name => name.to_owned(),
        };
        let notes = &mut info.session.ledger.notes;
        notes.push(format!(
            "{count} records of {name} are left out: this rpd does not know that kind"
        ));
    }
    Ok(event_of)
}

/// Removes the records from `from` on whose kind is unknown.
fn remove_unknown(
    info: &mut Info,
    events: &Events,
    event_of: &mut Vec<i64>,
    kinds: &HashMap<u32, Option<Kind>>,
    from: usize,
) {
    let mut kept: Vec<u32> = (0..from as u32).collect();
    let mut index = from as u32;
    event_of.retain(|&event| {
        let is_known = kinds.get(&events.get(event).0).is_some_and(Option::is_some);
        if is_known {
            kept.push(index);
        }
        index += 1;
        is_known
    });
    info.session.api.reorder(&kept);
}

/// Arguments, as texts. `event_of` holds the event of each call.
fn arguments(source: &Source<'_>, info: &mut Info, event_of: &[i64]) -> Result<()> {
    let mut calls: Vec<u32> = (0..event_of.len() as u32).collect();
    calls.sort_unstable_by_key(|&call| event_of[call as usize]);
    let call_of = |event: i64| {
        let found = calls.binary_search_by_key(&event, |&call| event_of[call as usize]);
        found.ok().map(|index| calls[index] as usize)
    };
    let (mut last, mut call) = (i64::MIN, None);
    let api = &mut info.session.api;
    // The rows of a call follow each other in both tools' files; should they not, they are put together here.
    source.each("event_id, type, name, value", "rocpd_arg", |row| {
        let event = integer(row, 0);
        if event != last {
            last = event;
            call = call_of(event);
        }
        let Some(call) = call else {
            return Ok(());
        };
        let args = &mut api.args[call];
        let end = (args.offset + u64::from(args.len)) as usize;
        if args.len == 0 {
            args.offset = api.arena.len() as u64;
        } else if end != api.arena.len() {
            let from = args.offset as usize;
            args.offset = api.arena.len() as u64;
            api.arena.to_memory().extend_from_within(from..end);
        }
        args.flags = api_flag::ARGUMENT_TEXTS;
        for column in 1..4 {
            let part = bytes(row, column);
            let length = u32::try_from(part.len()).unwrap_or(0);
            api.arena.extend(length.to_le_bytes());
            api.arena.extend(&part[..length as usize]);
        }
        let length = api.arena.len() as u64 - args.offset;
        args.len = u32::try_from(length).unwrap_or(u32::MAX);
        Ok(())
    })
}

/// Numbers of regions that rename kernels, by the id of their message.
#[derive(Default)]
struct Regions(HashMap<u32, u32>);

impl Regions {
    fn number(&mut self, info: &mut Info, name: u32, external: CorrelationId) -> u32 {
        if let Some(&number) = self.0.get(&name) {
            return number;
        }
        let number = match info.string(name) {
            StringId(0) => 0,
            message => {
                let regions = &mut info.session.regions;
                match regions.iter().position(|region| region.message == message) {
                    Some(index) => index as u32 + 1,
                    None => {
                        regions.push(Region {
                            message,
                            correlation: external,
                        });
                        regions.len() as u32
                    }
                }
            }
        };
        self.0.insert(name, number);
        number
    }
}

/// An agent's id; -1 for NULL.
fn agent_id(row: &Row<'_>, column: usize) -> AgentHandle {
    match row.get_ref(column) {
        Ok(ValueRef::Integer(id)) => AgentHandle(id.cast_unsigned()),
        _ => AgentHandle(u64::MAX),
    }
}

/// Moves columns of the same name over.
macro_rules! take_columns {
    ($into:expr, $from:expr, $($column:ident)*) => {
        $(take($into.$column.to_memory(), $from.$column.to_memory());)*
    };
}

// Tables are filled with ids of the database first: the event stands in `correlation`, the agent's id in `agent`,
// the message's in `region`. Then each column is translated where it is.

/// Dispatches; the event of each.
fn dispatches(source: &Source<'_>, info: &mut Info, events: &Events) -> Result<Vec<i64>> {
    let columns = "event_id, start, \"end\", tid, agent_id, queue_id, stream_id, region_name_id, kernel_id, \
        dispatch_id, private_segment_size, group_segment_size, workgroup_size_x, workgroup_size_y, workgroup_size_z, \
        grid_size_x, grid_size_y, grid_size_z";
    let pieces = source.pieces(columns, "rocpd_kernel_dispatch", |rows| {
        let mut table = DispatchTable::default();
        while let Some(row) = rows.next()? {
            table.correlation.push(CorrelationId(bits(row, 0)));
            table.start.push(Nanoseconds(bits(row, 1)));
            table.end.push(Nanoseconds(bits(row, 2)));
            table.thread.push(ThreadId(word(row, 3)));
            table.agent.push(agent_id(row, 4));
            table.queue.push(QueueId(bits(row, 5)));
            table.stream.push(StreamId(word(row, 6)));
            table.region.push(word(row, 7));
            table.kernel.push(KernelId(bits(row, 8)));
            table.dispatch.push(DispatchId(bits(row, 9)));
            table.private_size.push(word(row, 10));
            table.group_size.push(word(row, 11));
            table
                .workgroup
                .push([12, 13, 14].map(|column| word(row, column)));
            table
                .grid
                .push([15, 16, 17].map(|column| word(row, column)));
        }
        Ok(table)
    })?;
    let mut table = DispatchTable::default();
    for mut piece in pieces {
        take_columns!(table, piece, start end thread correlation agent queue stream region kernel dispatch
            private_size group_size workgroup grid);
    }
    regions(&mut table.region, &table.correlation, info, events);
    let event_of = table.correlation.iter().map(|event| event.0.cast_signed());
    let event_of = event_of.collect();
    translate(&mut table.correlation, &mut table.agent, info, events);
    info.session.dispatches = table;
    Ok(event_of)
}

fn copies(source: &Source<'_>, info: &mut Info, events: &Events) -> Result<()> {
    let columns = "event_id, name_id, start, \"end\", tid, dst_agent_id, src_agent_id, size, dst_address, \
        src_address, stream_id, region_name_id";
    let pieces = source.pieces(columns, "rocpd_memory_copy", |rows| {
        let mut table = CopyTable::default();
        while let Some(row) = rows.next()? {
            table.correlation.push(CorrelationId(bits(row, 0)));
            table.operation.push(OperationId(word(row, 1)));
            table.start.push(Nanoseconds(bits(row, 2)));
            table.end.push(Nanoseconds(bits(row, 3)));
            table.thread.push(ThreadId(word(row, 4)));
            table.dst_agent.push(agent_id(row, 5));
            table.src_agent.push(agent_id(row, 6));
            table.bytes.push(bits(row, 7));
            table.dst_address.push(bits(row, 8));
            table.src_address.push(bits(row, 9));
            table.stream.push(StreamId(word(row, 10)));
            table.region.push(word(row, 11));
        }
        Ok(table)
    })?;
    let mut table = CopyTable::default();
    for mut piece in pieces {
        take_columns!(table, piece, operation start end thread correlation dst_agent src_agent bytes dst_address
            src_address stream region);
    }
    regions(&mut table.region, &table.correlation, info, events);
    let mut known = HashMap::new();
    for operation in &mut table.operation {
        *operation = *known.entry(operation.0).or_insert_with(|| {
            let name = info.string(operation.0);
            info.session.add_named_operation(Kind::MemoryCopy, name)
        });
    }
    translate(&mut [], &mut table.src_agent, info, events);
    translate(&mut table.correlation, &mut table.dst_agent, info, events);
    info.session.copies = table;
    Ok(())
}

/// From ids of messages to numbers of regions. `event_of` holds the events, to find the external correlation ids.
fn regions(numbers: &mut [u32], event_of: &[CorrelationId], info: &mut Info, events: &Events) {
    let mut regions = Regions::default();
    for (number, event) in numbers.iter_mut().zip(event_of) {
        *number = regions.number(info, *number, events.external(event.0.cast_signed()));
    }
}

/// From events to correlation ids, and from agents' ids to their handles.
fn translate(
    correlations: &mut [CorrelationId],
    agents: &mut [AgentHandle],
    info: &Info,
    events: &Events,
) {
    for correlation in correlations {
        *correlation = events.get(correlation.0.cast_signed()).1;
    }
    for agent in agents {
        *agent = info.agent(agent.0.cast_signed());
    }
}

#[derive(Deserialize)]
struct ScratchData {
    flags: Option<String>,
}

/// Allocations and scratch, which share a table.
fn allocations(
    source: &Source<'_>,
    info: &mut Info,
    events: &Events,
    stack_of: &StackOf,
) -> Result<()> {
    let columns = "event_id, type, level, start, \"end\", tid, agent_id, address, size, queue_id, stream_id, extdata";
    let session = &mut info.session;
    let agents = &info.agents;
    source.each(columns, "rocpd_memory_allocate", |row| {
        let (_, correlation, ancestor) = events.get(integer(row, 0));
        let (kind, name) = memory_operation(&text(row, 1), &text(row, 2));
        let operation = session.add_operation(kind, name);
        let (start, end) = (Nanoseconds(bits(row, 3)), Nanoseconds(bits(row, 4)));
        let thread = ThreadId(word(row, 5));
        let agent = agents.get(&agent_id(row, 6).0.cast_signed()).copied();
        let agent: AgentHandle = agent.unwrap_or_default();
        if kind == Kind::ScratchMemory {
            let extdata: Option<ScratchData> = serde_json::from_slice(bytes(row, 11)).ok();
            let flags = extdata.and_then(|data| data.flags?.parse().ok());
            let table = &mut session.scratch;
            table.operation.push(operation);
            table.start.push(start);
            table.end.push(end);
            table.thread.push(thread);
            table.correlation.push(correlation);
            table.ancestor.push(ancestor);
            table.agent.push(agent);
            table.queue.push(QueueId(bits(row, 9)));
            table.bytes.push(bits(row, 8));
            table.flags.push(flags.unwrap_or(0));
        } else {
            let table = &mut session.allocations;
            table.operation.push(operation);
            table.start.push(start);
            table.end.push(end);
            table.thread.push(thread);
            table.correlation.push(correlation);
            table.ancestor.push(ancestor);
            table.agent.push(agent);
            table.address.push(bits(row, 7));
            table.bytes.push(bits(row, 8));
            table.stream.push(StreamId(word(row, 10)));
            if !stack_of.is_empty() {
                table.stack.push(stack_of.get(integer(row, 0)));
            }
        }
        Ok(())
    })
}
