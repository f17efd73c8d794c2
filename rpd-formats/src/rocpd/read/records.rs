//! Records. Events come first, because every record refers to one.

use std::collections::{BTreeMap, HashMap};
use std::io;

use rpd_core::domain::{Domain, Kind};
use rpd_core::ids::{
    AgentHandle, CorrelationId, DispatchId, KernelId, Nanoseconds, OperationId, QueueId, StreamId,
    StringId, ThreadId,
};
use rpd_core::session::{
    AllocationRow, CallRow, CopyRow, CopyTable, DispatchRow, DispatchTable, Growth, LoadOptions,
    Region, ScratchRow, Table, memory_operation,
};
use rpd_core::storage::column::Storage;
use rpd_core::storage::lookup::Lookup;
use rusqlite::types::ValueRef;
use rusqlite::{Result, Row};
use serde::Deserialize;

use super::arguments::Arguments;
use super::beyond;
use super::counters::{self, EventValues};
use super::device_totals;
use super::events::Events;
use super::graphs;
use super::info::Info;
use super::kfd;
use super::samples;
use super::scan::{Source, bits, bytes, integer, text, word};
use super::stacks::{self, StackOf};

/// Message of markers that name the calling thread.
const GET_THREAD_ID: &str = "roctxGetThreadId";
const MARK: &str = "roctxMarkA";

/// Reads all records into `info.session`. Tables that are long go to files in `storage`.
pub(super) fn read(
    source: &Source<'_>,
    info: &mut Info,
    options: LoadOptions,
    storage: &Storage,
) -> Result<()> {
    let mut growth = Growth::new(storage.clone());
    let events = Events::read(source, info, storage)?;
    let stack_of = stacks::read(source, info, storage)?;
    let arguments = if options.args {
        Arguments::read(source, storage)?
    } else {
        Arguments::default()
    };
    let driver = calls(source, info, &mut growth, &events, &stack_of, &arguments)?;
    source.stored(growth.complete(&mut info.session, Table::Calls))?;
    info.session.calls.arena = arguments.into_arena();
    let ranges = counters::read(source, info, storage)?;
    dispatches(source, info, &mut growth, &events, &ranges)?;
    drop(ranges);
    source.stored(growth.complete(&mut info.session, Table::Dispatches))?;
    source.stored(growth.complete(&mut info.session, Table::Counted))?;
    copies(source, info, &mut growth, &events)?;
    source.stored(growth.complete(&mut info.session, Table::Copies))?;
    allocations(source, info, &mut growth, &events, &stack_of)?;
    graphs::launches(source, info, &mut growth, &events)?;
    graphs::hip_events(source, info, &mut growth, &events)?;
    kfd::read(source, info, &mut growth, &driver)?;
    samples::read(source, info, &mut growth)?;
    device_totals::read(source, info)?;
    drop((events, stack_of));
    source.stored(growth.finish(&mut info.session))?;
    source.stored(growth.sort(&mut info.session))
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

/// Reads calls and markers. Returns the categories of regions that are events of the kernel driver, which are not read here.
fn calls(
    source: &Source<'_>,
    info: &mut Info,
    growth: &mut Growth,
    events: &Events,
    stack_of: &StackOf,
    arguments: &Arguments,
) -> Result<HashMap<u32, Kind>> {
    let mut calls = Calls {
        events,
        stack_of,
        arguments,
        kinds: HashMap::new(),
        unknown: BTreeMap::new(),
    };
    source.pieces(
        "tid, start, \"end\", name_id, event_id",
        "rocpd_region",
        |piece: &mut CallPiece, row| {
            piece.thread.push(ThreadId(word(row, 0)));
            piece.start.push(Nanoseconds(bits(row, 1)));
            piece.end.push(Nanoseconds(bits(row, 2)));
            piece.name.push(word(row, 3));
            piece.event.push(integer(row, 4));
        },
        |piece| source.stored(calls.append(&piece, false, info, growth)),
    )?;
    let mut tracks: HashMap<i64, u32> = HashMap::new();
    source.each("id, tid", "rocpd_track", |row| {
        tracks.insert(integer(row, 0), word(row, 1));
        Ok(())
    })?;
    let of_counters = beyond::samples_of_counters(source)?;
    source.pieces(
        "track_id, timestamp, event_id, id",
        "rocpd_sample",
        |piece: &mut CallPiece, row| {
            if of_counters.contains(&integer(row, 3)) {
                return;
            }
            let track = tracks.get(&integer(row, 0));
            let time = Nanoseconds(bits(row, 1));
            piece.thread.push(ThreadId(track.copied().unwrap_or(0)));
            piece.start.push(time);
            piece.end.push(time);
            // The database has no names of them.
            piece.name.push(0);
            piece.event.push(integer(row, 2));
        },
        |piece| source.stored(calls.append(&piece, true, info, growth)),
    )?;
    let driver = calls.driver_categories();
    calls.note_unknown(info);
    Ok(driver)
}

/// Whether records of a kind are events of the kernel driver.
fn is_driver(kind: Kind) -> bool {
    kind.domain() == Domain::Kfd
}

/// Lookups that calls are joined with, and the kinds seen so far.
struct Calls<'a> {
    events: &'a Events,
    stack_of: &'a StackOf,
    arguments: &'a Arguments,
    /// By the id of the category; `None` for those that are neither a kind of calls nor one of the kernel driver.
    kinds: HashMap<u32, Option<Kind>>,
    /// Records of other categories, which are left out.
    unknown: BTreeMap<u32, u64>,
}

impl Calls<'_> {
    fn append(
        &mut self,
        piece: &CallPiece,
        is_sample: bool,
        info: &mut Info,
        growth: &mut Growth,
    ) -> io::Result<()> {
        let events = self.events;
        let mut last = (u32::MAX, None);
        let mut previous = None;
        for (index, (&event, &name)) in piece.event.iter().zip(&piece.name).enumerate() {
            let (category, correlation, ancestor) = events.get(event);
            if category != last.0 {
                let text = info.text(category);
                let kind = *self.kinds.entry(category).or_insert_with(|| {
                    Kind::from_name(text).filter(|kind| kind.is_call() || is_driver(*kind))
                });
                last = (category, kind);
            }
            let kind = match last.1 {
                // Read by themselves: see `kfd`.
                Some(kind) if is_driver(kind) && !is_sample => continue,
                Some(kind) if !is_driver(kind) => kind,
                _ => {
                    *self.unknown.entry(category).or_default() += 1;
                    continue;
                }
            };
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
            let calls = &mut info.session.calls;
            calls.push(CallRow {
                operation,
                message: if class.has_message() {
                    message
                } else {
                    StringId(0)
                },
                start: piece.start[index],
                end: piece.end[index],
                thread: piece.thread[index],
                correlation,
                ancestor,
                args: self.arguments.of(event),
            });
            if !self.stack_of.is_empty() {
                calls.stack.set_last(self.stack_of.get(event));
            }
            growth.taken(&mut info.session)?;
        }
        Ok(())
    }

    fn driver_categories(&self) -> HashMap<u32, Kind> {
        let kinds = self.kinds.iter();
        let known = kinds.filter_map(|(category, kind)| Some((*category, (*kind)?)));
        known.filter(|(_, kind)| is_driver(*kind)).collect()
    }

    fn note_unknown(self, info: &mut Info) {
        for (category, count) in self.unknown {
            let name = match info.text(category) {
                "" => "no kind".to_owned(),
                name => name.to_owned(),
            };
            let notes = &mut info.session.ledger.notes;
            notes.push(format!(
                "{count} records of {name} are left out: this rpd does not support that kind"
            ));
        }
    }
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
pub(super) fn agent_id(row: &Row<'_>, column: usize) -> AgentHandle {
    match row.get_ref(column) {
        Ok(ValueRef::Integer(id)) => AgentHandle(id.cast_unsigned()),
        _ => AgentHandle(u64::MAX),
    }
}

// Pieces of tables have ids of the database: the event stands in `correlation`, the agent's id in `agent`, the message's in
// `region`.

/// Dispatches. Those with values of counters, which `ranges` has by event, are counted ones, too.
fn dispatches(
    source: &Source<'_>,
    info: &mut Info,
    growth: &mut Growth,
    events: &Events,
    ranges: &Lookup<EventValues>,
) -> Result<()> {
    let columns = format!(
        "event_id, start, \"end\", tid, agent_id, queue_id, stream_id, region_name_id, kernel_id, dispatch_id, \
        private_segment_size, group_segment_size, workgroup_size_x, workgroup_size_y, workgroup_size_z, grid_size_x, \
        grid_size_y, grid_size_z, {}, {}",
        graphs::columns(source, "rocpd_kernel_dispatch")?,
        graphs::replay_column(source)?
    );
    let read = |table: &mut DispatchTable, row: &Row<'_>| {
        table.push(DispatchRow {
            correlation: CorrelationId(bits(row, 0)),
            start: Nanoseconds(bits(row, 1)),
            end: Nanoseconds(bits(row, 2)),
            thread: ThreadId(word(row, 3)),
            agent: agent_id(row, 4),
            queue: QueueId(bits(row, 5)),
            stream: StreamId(word(row, 6)),
            region: word(row, 7),
            kernel: KernelId(bits(row, 8)),
            dispatch: DispatchId(bits(row, 9)),
            private_size: word(row, 10),
            group_size: word(row, 11),
            workgroup: [12, 13, 14].map(|column| word(row, column)),
            grid: [15, 16, 17].map(|column| word(row, column)),
        });
        table.set_graph(graphs::node(row, 18));
        table.set_replay_pass(graphs::replay_pass(row, 20));
    };
    let mut regions = Regions::default();
    let mut append = |piece: DispatchTable| {
        for index in 0..piece.len() {
            let event = piece.correlation[index].0.cast_signed();
            let region = regions.number(info, piece.region[index], events.external(event));
            let correlation = events.get(event).1;
            let agent = info.agent(piece.agent[index].0.cast_signed());
            let row = DispatchRow {
                region,
                correlation,
                agent,
                ..piece.row(index)
            };
            let (graph, pass) = (piece.graph_of(index), piece.replay_pass(index));
            let range = ranges.find(event).map(|values| values.range);
            let add = |table: &mut DispatchTable| {
                table.push(row);
                table.set_graph(graph);
                table.set_replay_pass(pass);
            };
            // A later run of a replayed dispatch is there for what was counted in it.
            let is_counted_again = range.is_some() && piece.is_repeated(index);
            if !info.only_counted && !is_counted_again {
                add(&mut info.session.dispatches);
            }
            if info.only_counted || range.is_some() {
                add(&mut info.session.counted.dispatches);
                info.session.counted.ranges.push(range.unwrap_or_default());
            }
            growth.taken(&mut info.session)?;
        }
        Ok(())
    };
    source.pieces(&columns, "rocpd_kernel_dispatch", read, |piece| {
        source.stored(append(piece))
    })
}

fn copies(
    source: &Source<'_>,
    info: &mut Info,
    growth: &mut Growth,
    events: &Events,
) -> Result<()> {
    let columns = format!(
        "event_id, name_id, start, \"end\", tid, dst_agent_id, src_agent_id, size, dst_address, src_address, \
        stream_id, region_name_id, {}",
        graphs::columns(source, "rocpd_memory_copy")?
    );
    let read = |table: &mut CopyTable, row: &Row<'_>| {
        table.push(CopyRow {
            correlation: CorrelationId(bits(row, 0)),
            operation: OperationId(word(row, 1)),
            start: Nanoseconds(bits(row, 2)),
            end: Nanoseconds(bits(row, 3)),
            thread: ThreadId(word(row, 4)),
            dst_agent: agent_id(row, 5),
            src_agent: agent_id(row, 6),
            bytes: bits(row, 7),
            dst_address: bits(row, 8),
            src_address: bits(row, 9),
            stream: StreamId(word(row, 10)),
            region: word(row, 11),
        });
        table.set_graph(graphs::node(row, 12));
    };
    let mut regions = Regions::default();
    let mut known = HashMap::new();
    let mut append = |piece: CopyTable| {
        for index in 0..piece.len() {
            let event = piece.correlation[index].0.cast_signed();
            let region = regions.number(info, piece.region[index], events.external(event));
            let name = piece.operation[index].0;
            let operation = *known.entry(name).or_insert_with(|| {
                let name = info.string(name);
                info.session.add_named_operation(Kind::MemoryCopy, name)
            });
            let agent = |id: AgentHandle| info.agent(id.0.cast_signed());
            let (dst, src) = (agent(piece.dst_agent[index]), agent(piece.src_agent[index]));
            info.session.copies.push(CopyRow {
                operation,
                correlation: events.get(event).1,
                dst_agent: dst,
                src_agent: src,
                region,
                ..piece.row(index)
            });
            info.session.copies.set_graph(piece.graph_of(index));
            growth.taken(&mut info.session)?;
        }
        Ok(())
    };
    source.pieces(&columns, "rocpd_memory_copy", read, |piece| {
        source.stored(append(piece))
    })
}

#[derive(Deserialize)]
struct ScratchData {
    flags: Option<String>,
}

/// An allocation or a scratch operation.
struct Allocation {
    event: i64,
    kind: Kind,
    name: &'static str,
    start: Nanoseconds,
    end: Nanoseconds,
    thread: ThreadId,
    /// Row id of the agent.
    agent: i64,
    address: u64,
    bytes: u64,
    queue: QueueId,
    stream: StreamId,
    flags: u32,
}

/// Allocations and scratch, which share a table.
fn allocations(
    source: &Source<'_>,
    info: &mut Info,
    growth: &mut Growth,
    events: &Events,
    stack_of: &StackOf,
) -> Result<()> {
    let columns = "event_id, type, level, start, \"end\", tid, agent_id, address, size, queue_id, stream_id, extdata";
    let read = |rows: &mut Vec<Allocation>, row: &Row<'_>| {
        let (kind, name) = memory_operation(&text(row, 1), &text(row, 2));
        let flags = || {
            let extdata: Option<ScratchData> = serde_json::from_slice(bytes(row, 11)).ok();
            extdata.and_then(|data| data.flags?.parse().ok())
        };
        rows.push(Allocation {
            event: integer(row, 0),
            kind,
            name,
            start: Nanoseconds(bits(row, 3)),
            end: Nanoseconds(bits(row, 4)),
            thread: ThreadId(word(row, 5)),
            agent: agent_id(row, 6).0.cast_signed(),
            address: bits(row, 7),
            bytes: bits(row, 8),
            queue: QueueId(bits(row, 9)),
            stream: StreamId(word(row, 10)),
            flags: match kind {
                Kind::ScratchMemory => flags().unwrap_or(0),
                _ => 0,
            },
        });
    };
    let mut append = |rows: Vec<Allocation>| {
        for row in rows {
            let (_, correlation, ancestor) = events.get(row.event);
            let agent = info.agent(row.agent);
            let session = &mut info.session;
            let operation = session.add_operation(row.kind, row.name);
            if row.kind == Kind::ScratchMemory {
                let table = &mut session.scratch;
                table.push(ScratchRow {
                    operation,
                    start: row.start,
                    end: row.end,
                    thread: row.thread,
                    correlation,
                    ancestor,
                    agent,
                    queue: row.queue,
                    bytes: row.bytes,
                    flags: row.flags,
                });
            } else {
                let table = &mut session.allocations;
                table.push(AllocationRow {
                    operation,
                    start: row.start,
                    end: row.end,
                    thread: row.thread,
                    correlation,
                    ancestor,
                    agent,
                    address: row.address,
                    bytes: row.bytes,
                    stream: row.stream,
                });
                if !stack_of.is_empty() {
                    table.stack.set_last(stack_of.get(row.event));
                }
            }
            growth.taken(session)?;
        }
        Ok(())
    };
    source.pieces(columns, "rocpd_memory_allocate", read, |rows| {
        source.stored(append(rows))
    })
}
