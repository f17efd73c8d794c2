//! Slices: calls on threads, dispatches and copies on streams or queues.

use std::collections::HashMap;

use rpd_core::compat::Difference;
use rpd_core::domain::Domain;
use rpd_core::ids::{KernelId, StreamId, ThreadId};
use rpd_core::options::Options;
use rpd_core::session::{
    Columns as _, DispatchPlaces, FirstPasses, KernelLabels, Operation, Session,
};
use rpd_core::spool::format::GraphNode;
use rpd_core::storage::column::{BATCH, Column};
use rpd_core::text::args::{ArgLayout, for_each_argument, layout};

use super::callstacks::Callstacks;
use super::proto::{
    annotation, double_annotation, field, flow, nested, signed_annotation, text_annotation, uint,
};
use super::trace::{self, Trace};
use super::tracks::{Device, Tracks};
use crate::WriteError;
use crate::kfd;
use crate::operations::OperationNumbers;
use crate::streams::CallStreams;

/// Value `TYPE_SLICE_BEGIN`.
const BEGIN: u64 = 1;
/// Value `TYPE_SLICE_END`.
const END: u64 = 2;

/// Writes the slices of calls, dispatches, copies, and events of the kernel driver.
pub(super) fn write(
    trace: &mut Trace,
    tracks: &mut Tracks,
    session: &Session,
    options: &Options,
) -> Result<(), WriteError> {
    let operations = OperationNumbers::new(session);
    calls(trace, tracks, session, options, &operations)?;
    devices(trace, tracks, session, options, &operations)?;
    driver(trace, tracks, session)
}

/// Times and track of a slice.
struct SliceTimes {
    start: u64,
    end: u64,
    track: u64,
    correlation: u64,
}

/// Writes a slice; `fill` adds category, name and annotations.
#[inline]
fn slice(trace: &mut Trace, place: &SliceTimes, fill: impl FnOnce(&mut Vec<u8>)) {
    // Correlation ids are those of one process.
    let flow_id = trace.process ^ place.correlation;
    trace.packet(place.start, |out| {
        nested(out, field::packet::TRACK_EVENT, |out| {
            uint(out, field::event::TYPE, BEGIN);
            uint(out, field::event::TRACK, place.track);
            if place.correlation != 0 {
                flow(out, flow_id);
            }
            annotation(out, trace::BEGIN_NS, place.start);
            annotation(out, trace::END_NS, place.end);
            annotation(out, trace::DELTA_NS, place.end - place.start);
            fill(out);
        });
    });
    trace.packet(place.end, |out| {
        nested(out, field::packet::TRACK_EVENT, |out| {
            uint(out, field::event::TYPE, END);
            uint(out, field::event::TRACK, place.track);
        });
    });
}

/// Data shared by all calls of an operation.
struct Common {
    /// Category, as bytes of the event.
    category: Vec<u8>,
    /// Kind and operation, as bytes of the event.
    numbers: Vec<u8>,
    is_hip: bool,
    layout: Option<&'static ArgLayout>,
    shows_arguments: bool,
    /// Numbers of its arguments' names.
    arguments: Vec<u64>,
}

/// The number of a text among names of events.
fn event_name(id: rpd_core::ids::StringId) -> u64 {
    u64::from(id.0) + 1
}

fn calls(
    trace: &mut Trace,
    tracks: &mut Tracks,
    session: &Session,
    options: &Options,
    operations: &OperationNumbers,
) -> Result<(), WriteError> {
    let calls = &session.calls;
    let is_original = options.compat.has(Difference::PerfettoNames);
    // The original shows arguments of this domain only, and readers compare the two.
    let shows_arguments = |operation: &Operation| {
        !calls.arena.is_empty() && (!is_original || operation.domain() == Domain::RocdecodeApi)
    };
    // Parts that all calls of an operation share are encoded once.
    let common: Vec<Common> = (session.operations.iter())
        .zip(operations.iter())
        .map(|(operation, numbers_of)| {
            let (mut category, mut numbers) = (Vec::new(), Vec::new());
            let number = trace::category(operation.kind.domain());
            uint(&mut category, field::event::CATEGORY, number);
            annotation(&mut numbers, trace::KIND, numbers_of.kind as u64);
            signed_annotation(&mut numbers, trace::OPERATION, numbers_of.operation as u64);
            let name = session.strings.get(operation.name);
            let shows_arguments = shows_arguments(operation);
            let layout = layout(operation.kind, name).filter(|_| shows_arguments);
            let arguments = layout.map_or(&[][..], |layout| layout.arguments);
            Common {
                category,
                numbers,
                is_hip: operation.domain() == Domain::HipApi,
                layout,
                shows_arguments,
                arguments: arguments
                    .iter()
                    .map(|argument| trace.argument_name(argument.name))
                    .collect(),
            }
        })
        .collect();
    let mut streams = CallStreams::new(session, options);
    let mut texts = Vec::new();
    let mut callstacks = Callstacks::new(session, options);
    for index in calls.indices() {
        let common = &common[calls.operation[index].0 as usize];
        let label = session.call_label(index);
        // Names are interned in packets of their own, which must come before the slice that refers to them.
        trace.event_name(event_name(label), session.strings.get(label));
        let start = calls.start[index].0;
        let end = calls.end[index].0.max(start);
        let place = SliceTimes {
            start,
            end,
            track: tracks.thread(trace, calls.thread[index], start, end),
            correlation: calls.correlation[index].0,
        };
        let stream = common.is_hip.then(|| streams.of(index));
        let args = calls.args[index];
        let from = usize::try_from(args.offset).unwrap_or(usize::MAX);
        let raw = calls
            .arena
            .get(from..from.saturating_add(args.len as usize));
        let raw = raw.filter(|raw| common.shows_arguments && !raw.is_empty());
        // The provider's texts have types and names with them; bytes need the layout.
        let as_texts = args.flags & rpd_core::spool::format::call_flag::ARGUMENTS == 0;
        texts.clear();
        if let Some(raw) = raw
            && (as_texts || common.layout.is_none())
        {
            // Names first: they need packets of their own.
            for_each_argument(None, args.flags, raw, |_, _, name, value| {
                texts.push((trace.argument_name(name), value.to_owned()));
            });
        }
        let callstack = callstacks.number(trace, calls.stack.get(index));
        slice(trace, &place, |out| {
            out.extend_from_slice(&common.category);
            if let Some(callstack) = callstack {
                uint(out, field::event::CALLSTACK, callstack);
            }
            uint(out, field::event::NAME, event_name(label));
            annotation(out, trace::TID, calls.thread[index].0.into());
            out.extend_from_slice(&common.numbers);
            annotation(out, trace::CORR_ID, place.correlation);
            annotation(out, trace::ANCESTOR_ID, calls.ancestor[index].0);
            if let Some(stream) = stream {
                annotation(out, trace::STREAM_ID, stream.0.into());
            }
            for (name, value) in &texts {
                text_annotation(out, *name, value);
            }
            if let (Some(raw), Some(layout), false) = (raw, common.layout, as_texts) {
                layout.for_each(args.flags, raw, |position, _, _, value| {
                    text_annotation(out, common.arguments[position], value);
                });
            }
        });
        trace.flush_if_full()?;
    }
    Ok(())
}

/// Whether work of devices is shown by queue: requested, or there was no HIP runtime, whose streams would be shown
/// otherwise. It shows in its calls, its streams and the kernels that it brings along.
fn by_queue(session: &Session, options: &Options) -> bool {
    let is_hip = session
        .operations
        .select(|operation| operation.domain() == Domain::HipApi);
    let mut calls = session.calls.operation.iter();
    let has_stream = |streams: &Column<StreamId>| streams.iter().any(|stream| stream.0 != 0);
    options.group_by_queue
        || !(calls.any(|operation| is_hip[operation.0 as usize])
            || !session.host_functions.is_empty()
            || has_stream(&session.dispatches.stream)
            || has_stream(&session.copies.stream)
            || session
                .kernel_symbols
                .iter()
                .any(|symbol| symbol.name.starts_with("__amd_rocclr_")))
}

/// Data shared by all dispatches of a kernel.
struct Kernel {
    name: u64,
    /// Register counts, as bytes of the event.
    registers: Vec<u8>,
}

fn kernels(session: &Session) -> HashMap<KernelId, Kernel> {
    let mut kernels = HashMap::new();
    let mut name = session.strings.len() as u64 + 1;
    for symbol in &session.kernel_symbols {
        kernels.insert(
            symbol.id,
            kernel(
                name,
                [
                    symbol.arch_vgpr_count,
                    symbol.accum_vgpr_count,
                    symbol.sgpr_count,
                ],
            ),
        );
        name += 1;
    }
    for &id in &session.dispatches.kernel {
        kernels.entry(id).or_insert_with(|| {
            name += 1;
            kernel(name - 1, [0; 3])
        });
    }
    kernels
}

fn kernel(name: u64, [vgpr, accum, sgpr]: [u32; 3]) -> Kernel {
    let mut registers = Vec::new();
    annotation(&mut registers, trace::VGPR_COUNT, vgpr.into());
    annotation(&mut registers, trace::ACCUM_VGPR_COUNT, accum.into());
    annotation(&mut registers, trace::SGPR_COUNT, sgpr.into());
    Kernel { name, registers }
}

/// Dispatches and copies, merged by time: they share tracks.
fn devices(
    trace: &mut Trace,
    tracks: &mut Tracks,
    session: &Session,
    options: &Options,
    operations: &OperationNumbers,
) -> Result<(), WriteError> {
    let (dispatches, copies) = (&session.dispatches, &session.copies);
    let is_original = options.compat.has(Difference::PerfettoNames);
    let mut writer = DeviceWriter {
        tracks,
        session,
        operations,
        by_queue: by_queue(session, options),
        hides_streams: options.group_by_queue,
        renames: options.kernel_names.rename && !is_original,
        labels: if is_original {
            KernelLabels::from_symbols(session)
        } else {
            KernelLabels::new(session, options.kernel_names)
        },
        kernels: kernels(session),
        counted: DispatchPlaces::new(&session.counted.dispatches, session.storage.as_ref())
            .map_err(|error| trace.file.failed(error))?,
        first_passes: FirstPasses::new(&session.counted),
        counter_names: session
            .counters
            .iter()
            .map(|counter| trace.argument_name(&counter.name))
            .collect(),
        trace,
    };
    // By start, as readers sort packets within a window of time only.
    let (mut dispatch, mut copy) = (0_usize, 0_usize);
    loop {
        // Both tables are gone through by place: memory of what was written is given back here.
        if (dispatch + copy).is_multiple_of(BATCH) {
            dispatches.release();
            copies.release();
            session.counted.release();
        }
        let dispatch_next = match (dispatches.start.get(dispatch), copies.start.get(copy)) {
            (Some(one), Some(other)) => {
                one < other || one == other && dispatches.end[dispatch] >= copies.end[copy]
            }
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => return Ok(()),
        };
        if dispatch_next {
            writer.dispatch(dispatch);
            dispatch += 1;
        } else {
            writer.copy(copy);
            copy += 1;
        }
        writer.trace.flush_if_full()?;
    }
}

/// Adds graph and node, of what belongs to a graph.
#[inline]
fn graph_annotations(out: &mut Vec<u8>, graph: GraphNode) {
    if graph.exec != 0 {
        annotation(out, trace::GRAPH_EXEC_ID, graph.exec.into());
        annotation(out, trace::GRAPH_NODE_ID, graph.node.into());
    }
}

/// Events of the kernel driver, on a track for each kind.
fn driver(trace: &mut Trace, tracks: &mut Tracks, session: &Session) -> Result<(), WriteError> {
    let nodes = kfd::nodes(session);
    let table = &session.kfd_events;
    for index in table.indices() {
        let event = table.row(index);
        let operation = &session.operations[event.operation];
        let name = event_name(operation.name);
        trace.event_name(name, session.strings.get(operation.name));
        let (start, end) = (event.start.0, event.end.0.max(event.start.0));
        let place = SliceTimes {
            start,
            end,
            track: tracks.device(trace, Device::Driver(operation.kind), start, end),
            correlation: 0,
        };
        let fields = kfd::subject(operation.kind).map(|subject| {
            kfd::fields(subject, &event, |agent| {
                nodes.get(&agent).copied().unwrap_or(-1)
            })
        });
        let fields: Vec<(u64, String)> = fields
            .into_iter()
            .flatten()
            .map(|(key, value)| (trace.argument_name(key), value))
            .collect();
        slice(trace, &place, |out| {
            uint(out, field::event::CATEGORY, trace::category(Domain::Kfd));
            uint(out, field::event::NAME, name);
            annotation(out, trace::TID, event.process.0.into());
            for (key, value) in &fields {
                text_annotation(out, *key, value);
            }
        });
        trace.flush_if_full()?;
    }
    Ok(())
}

struct DeviceWriter<'a> {
    trace: &'a mut Trace,
    tracks: &'a mut Tracks,
    session: &'a Session,
    operations: &'a OperationNumbers,
    by_queue: bool,
    hides_streams: bool,
    renames: bool,
    labels: KernelLabels<'a>,
    kernels: HashMap<KernelId, Kernel>,
    counted: DispatchPlaces,
    first_passes: FirstPasses,
    /// Numbers of annotations, by counter.
    counter_names: Vec<u64>,
}

impl DeviceWriter<'_> {
    fn stream(&self, stream: StreamId) -> u32 {
        if self.hides_streams { 0 } else { stream.0 }
    }

    fn place(&mut self, device: Device, start: u64, end: u64, correlation: u64) -> SliceTimes {
        let end = end.max(start);
        let track = self.tracks.device(self.trace, device, start, end);
        SliceTimes {
            start,
            end,
            track,
            correlation,
        }
    }

    fn dispatch(&mut self, index: usize) {
        let table = &self.session.dispatches;
        let stream = self.stream(table.stream[index]);
        let device = if self.by_queue {
            Device::Queue(table.agent[index], table.queue[index])
        } else {
            Device::Stream(stream)
        };
        let place = self.place(
            device,
            table.start[index].0,
            table.end[index].0,
            table.correlation[index].0,
        );
        let kernel = table.kernel[index];
        let region = table.region[index]
            .checked_sub(1)
            .filter(|_| self.renames)
            .and_then(|region| self.session.regions.get(region as usize));
        let Some(common) = self.kernels.get(&kernel) else {
            // The map has every kernel of every dispatch.
            return;
        };
        let name = match region {
            Some(region) => event_name(region.message),
            None => common.name,
        };
        self.trace.event_name(name, self.labels.dispatch(index));
        // Sizes are products of three factors of 32 bits.
        let agent = self.tracks.agent(table.agent[index]);
        let product = |sizes: [u32; 3]| {
            let sizes = sizes.map(u64::from);
            sizes.into_iter().fold(1_u64, u64::saturating_mul)
        };
        slice(self.trace, &place, |out| {
            uint(
                out,
                field::event::CATEGORY,
                trace::category(Domain::KernelDispatch),
            );
            uint(out, field::event::NAME, name);
            annotation(out, trace::KIND, self.operations.dispatch.kind as u64);
            text_annotation(out, trace::AGENT, &agent.short);
            text_annotation(out, trace::AGENT_TYPE, agent.agent_type);
            annotation(out, trace::CORR_ID, place.correlation);
            annotation(out, trace::QUEUE, table.queue[index].0.saturating_sub(1));
            annotation(out, trace::TID, table.thread[index].0.into());
            annotation(out, trace::KERNEL_ID, kernel.0);
            annotation(out, trace::SCRATCH_SIZE, table.private_size[index].into());
            annotation(out, trace::LDS_BLOCK_SIZE, table.group_size[index].into());
            out.extend_from_slice(&common.registers);
            annotation(out, trace::WORKGROUP_SIZE, product(table.workgroup[index]));
            annotation(out, trace::GRID_SIZE, product(table.grid[index]));
            annotation(out, trace::STREAM_ID, stream.into());
            graph_annotations(out, table.graph_of(index));
            let values = &self.session.counted;
            for counted in self.counted.find_all(table.dispatch[index], kernel) {
                for (counter, value) in values.sums(counted) {
                    // An argument of a slice has one value.
                    if !self.first_passes.is_first(values, counted, counter) {
                        continue;
                    }
                    if let Some(&name) = self.counter_names.get(counter as usize) {
                        double_annotation(out, name, value);
                    }
                }
            }
        });
    }

    fn copy(&mut self, index: usize) {
        let table = &self.session.copies;
        let stream = self.stream(table.stream[index]);
        let thread: ThreadId = table.thread[index];
        // Copies have no queue: grouped by queue they are on a track of agent and thread.
        let device = if self.by_queue {
            Device::Copies(table.dst_agent[index], thread)
        } else {
            Device::Stream(stream)
        };
        let place = self.place(
            device,
            table.start[index].0,
            table.end[index].0,
            table.correlation[index].0,
        );
        let label = self.session.operations[table.operation[index]].name;
        let name = event_name(label);
        self.trace.event_name(name, self.session.strings.get(label));
        let numbers = self.operations.of(table.operation[index]);
        // Agents are named before the slice is written, which borrows their names.
        for agent in [table.src_agent[index], table.dst_agent[index]] {
            self.tracks.agent(agent);
        }
        let agent = |handle| {
            let names = self.tracks.agents.get(handle);
            names.map_or("", |names| names.short.as_str())
        };
        slice(self.trace, &place, |out| {
            uint(
                out,
                field::event::CATEGORY,
                trace::category(Domain::MemoryCopy),
            );
            uint(out, field::event::NAME, name);
            annotation(out, trace::KIND, numbers.kind as u64);
            annotation(out, trace::OPERATION, numbers.operation as u64);
            text_annotation(out, trace::SRC_AGENT, agent(&table.src_agent[index]));
            text_annotation(out, trace::DST_AGENT, agent(&table.dst_agent[index]));
            annotation(out, trace::COPY_BYTES, table.bytes[index]);
            annotation(out, trace::CORR_ID, place.correlation);
            annotation(out, trace::TID, thread.0.into());
            annotation(out, trace::STREAM_ID, stream.into());
            graph_annotations(out, table.graph_of(index));
        });
    }
}
