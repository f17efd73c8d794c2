//! `buffer_records`: one element per record.

#![deny(clippy::wildcard_enum_match_arm)]

use rpd_core::compat::Difference;
use rpd_core::domain::Domain;
use rpd_core::ids::{CorrelationId, Nanoseconds, StreamId};
use rpd_core::options::Options;
use rpd_core::session::{DispatchTable, Session, StackRef};
use rpd_core::spool::format::{GraphNode, call_flag};
use rpd_core::text::args::{ArgLayout, ValueType, for_each_argument, layout};

use super::samples::Instructions;
use crate::WriteError;
use crate::file::TextFile;
use crate::json::{escape_bytes, quote_bytes};
use crate::operations::{Numbers, OperationNumbers};
use crate::streams::CallStreams;

/// Sizes of the original's record structs in bytes, which its files repeat in each record.
mod size {
    pub(super) const CALL: u32 = 64;
    pub(super) const CALL_WITH_ARGUMENTS: u32 = 176;
    pub(super) const DISPATCH: u32 = 184;
    pub(super) const DISPATCH_INFO: u32 = 72;
    pub(super) const COPY: u32 = 96;
    pub(super) const ALLOCATION: u32 = 88;
    pub(super) const SCRATCH: u32 = 96;
    pub(super) const GRAPH_LAUNCH: u32 = 96;
    pub(super) const HIP_EVENT: u32 = 88;
}

/// Writes the object with all arrays.
pub(super) fn write(
    file: &mut TextFile,
    session: &Session,
    options: &Options,
    operations: &OperationNumbers,
    instructions: &mut Instructions<'_>,
) -> Result<(), WriteError> {
    let mut calls = Calls::new(session, options, operations);
    file.buffer
        .extend_from_slice(b"\"buffer_records\":{\"kernel_dispatch\":[");
    dispatches(file, session, options, operations)?;
    for (key, domain) in [
        ("hip_api", Domain::HipApi),
        ("hsa_api", Domain::HsaApi),
        ("marker_api", Domain::MarkerApi),
        ("rccl_api", Domain::RcclApi),
    ] {
        calls.write(file, key, domain)?;
    }
    file.buffer.extend_from_slice(b"],\"memory_copy\":[");
    copies(file, session, options, operations)?;
    file.buffer.extend_from_slice(b"],\"memory_allocation\":[");
    allocations(file, session, options, operations)?;
    file.buffer.extend_from_slice(b"],\"scratch_memory\":[");
    scratch(file, session, operations)?;
    calls.write(file, "rocdecode_api", Domain::RocdecodeApi)?;
    calls.write(file, "rocjpeg_api", Domain::RocjpegApi)?;
    // The original has none for CUDA, and the others in newer versions only.
    for (key, domain) in [
        ("cuda_api", Domain::CudaApi),
        ("cuda_driver_api", Domain::CudaDriverApi),
        ("rocshmem_api", Domain::RocshmemApi),
        ("hipfile_api", Domain::HipfileApi),
        ("ompt", Domain::Ompt),
    ] {
        if session.operations.iter().any(|one| one.domain() == domain) {
            calls.write(file, key, domain)?;
        }
    }
    // Only newer versions of the original have these.
    if !session.graph_launches.is_empty() {
        file.buffer.extend_from_slice(b"],\"hip_graph\":[");
        graph_launches(file, session, operations)?;
    }
    if !session.hip_events.is_empty() {
        file.buffer.extend_from_slice(b"],\"hip_event\":[");
        hip_events(file, session, options, operations)?;
    }
    file.buffer
        .extend_from_slice(b"],\"pc_sample_host_trap\":[");
    instructions.write_samples(file, session, false)?;
    file.buffer
        .extend_from_slice(b"],\"pc_sample_stochastic\":[");
    instructions.write_samples(file, session, true)?;
    // Of NVIDIA GPUs, which the original does not know.
    if !session.sample_counts.is_empty() {
        file.buffer.extend_from_slice(b"],\"pc_sample_count\":[");
        instructions.write_counts(file, session)?;
    }
    file.buffer.extend_from_slice(b"]}");
    Ok(())
}

/// Pieces of a record, one after the other.
pub(super) struct Out<'a>(pub(super) &'a mut Vec<u8>);

impl Out<'_> {
    #[inline]
    pub(super) fn text(self, text: &str) -> Self {
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    #[inline]
    pub(super) fn bytes(self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    #[inline]
    pub(super) fn number(self, number: impl itoa::Integer) -> Self {
        let mut digits = itoa::Buffer::new();
        self.0.extend_from_slice(digits.format(number).as_bytes());
        self
    }

    pub(super) fn dim3(self, [x, y, z]: [u32; 3]) -> Self {
        self.text("{\"x\":")
            .number(x)
            .text(",\"y\":")
            .number(y)
            .text(",\"z\":")
            .number(z)
            .text("}")
    }

    /// The key `dispatch_info` and its object.
    pub(super) fn dispatch_info(self, table: &DispatchTable, index: usize) -> Self {
        self.text(",\"dispatch_info\":{\"size\":")
            .number(size::DISPATCH_INFO)
            .handle("agent_id", table.agent[index].0)
            .handle("queue_id", table.queue[index].0)
            .text(",\"kernel_id\":")
            .number(table.kernel[index].0)
            .text(",\"dispatch_id\":")
            .number(table.dispatch[index].0)
            .text(",\"private_segment_size\":")
            .number(table.private_size[index])
            .text(",\"group_segment_size\":")
            .number(table.group_size[index])
            .text(",\"workgroup_size\":")
            .dim3(table.workgroup[index])
            .text(",\"grid_size\":")
            .dim3(table.grid[index])
            .text("}")
    }

    /// The run of a dispatch that was replayed, from 0; nothing for others.
    pub(super) fn replay_pass(self, pass: Option<u32>) -> Self {
        match pass {
            Some(pass) => self.text(",\"replay_pass\":").number(pass),
            None => self,
        }
    }

    /// Graph and node, in recordings in which anything belongs to a graph.
    #[inline]
    fn graph(self, is_there: bool, graph: GraphNode) -> Self {
        if !is_there {
            return self;
        }
        self.handle("graph_exec_id", graph.exec)
            .handle("graph_node_id", graph.node)
    }

    /// The key and the object with the handle.
    #[inline]
    pub(super) fn handle(self, key: &str, handle: impl itoa::Integer) -> Self {
        self.text(",\"")
            .text(key)
            .text("\":{\"handle\":")
            .number(handle)
            .text("}")
    }

    /// `correlation_id` of work on a device.
    #[inline]
    pub(super) fn correlation(self, internal: CorrelationId, external: u64) -> Self {
        self.text(",\"correlation_id\":{\"internal\":")
            .number(internal.0)
            .text(",\"external\":")
            .number(external)
            .text("}")
    }

    /// Writes the `correlation_id` of work that a call did itself.
    #[inline]
    fn ancestry(self, internal: CorrelationId, ancestor: CorrelationId) -> Self {
        self.text(",\"correlation_id\":{\"internal\":")
            .number(internal.0)
            .text(",\"external\":0,\"ancestor\":")
            .number(ancestor.0)
            .text("}")
    }

    /// Writes both timestamps of a record.
    #[inline]
    pub(super) fn times(self, start: Nanoseconds, end: Nanoseconds) -> Self {
        self.text(",\"start_timestamp\":")
            .number(start.0)
            .text(",\"end_timestamp\":")
            .number(end.0)
    }

    /// The id of the record's stack, if it has one.
    #[inline]
    fn stack(self, own: Option<&StackRef>) -> Self {
        match own {
            Some(own) if own.stack != 0 => self.text(",\"stack_id\":").number(own.stack),
            _ => self,
        }
    }

    fn address(self, address: u64) -> Self {
        self.0.extend_from_slice(b"\"0x");
        for shift in (0..16).rev() {
            let digit = (address >> (shift * 4)) as usize & 15;
            self.0.push(b"0123456789abcdef"[digit]);
        }
        self.0.push(b'"');
        self
    }
}

/// The comma before every element but the first.
#[inline]
pub(super) fn separate(file: &mut TextFile, first: &mut bool) {
    if !std::mem::replace(first, false) {
        file.buffer.push(b',');
    }
}

/// Data shared by all records of an operation.
struct Common {
    /// Text from the brace of a record to its correlation id.
    start: Vec<u8>,
    layout: Option<&'static ArgLayout>,
    /// Whether types are spelled as compilers encode them.
    encoded: bool,
    /// Text of each argument from the brace to its value.
    arguments: Vec<Vec<u8>>,
}

/// Whether the records of a domain have arguments and return values: those of the provider's `_EXT` kinds.
fn has_returns(domain: Domain) -> bool {
    match domain {
        Domain::HipApi | Domain::RocdecodeApi | Domain::CudaApi | Domain::CudaDriverApi => true,
        Domain::HsaApi
        | Domain::MarkerApi
        | Domain::KernelDispatch
        | Domain::MemoryCopy
        | Domain::ScratchMemory
        | Domain::CounterCollection
        | Domain::RcclApi
        | Domain::MemoryAllocation
        | Domain::RocjpegApi
        | Domain::RocshmemApi
        | Domain::HipfileApi
        | Domain::Ompt
        | Domain::Kfd => false,
    }
}

struct Calls<'a> {
    session: &'a Session,
    streams: CallStreams<'a>,
    common: Vec<Common>,
}

impl<'a> Calls<'a> {
    fn new(session: &'a Session, options: &Options, numbers: &OperationNumbers) -> Calls<'a> {
        let encoded = options.compat.has(Difference::ArgumentTypes);
        let operations = session.operations.iter().zip(numbers.iter());
        // Objects of an operation's calls begin alike: the beginning is made once.
        let common = operations.map(|(operation, numbers)| {
            let bytes = if has_returns(operation.kind.domain()) { size::CALL_WITH_ARGUMENTS } else { size::CALL };
            let layout = layout(operation.kind, session.strings.get(operation.name));
            let arguments = layout.map_or(&[][..], |layout| layout.arguments);
            Common {
                start: format!(
                    "{{\"size\":{bytes},\"kind\":{},\"operation\":{},\"correlation_id\":{{\"internal\":",
                    numbers.kind, numbers.operation
                )
                .into_bytes(),
                layout,
                encoded,
                arguments: arguments
                    .iter()
                    .map(|argument| {
                        let mut text = Vec::new();
                        let declared = if encoded { argument.mangled } else { argument.resolved };
                        argument_start(&mut text, declared, argument.name);
                        text
                    })
                    .collect(),
            }
        });
        Calls {
            session,
            streams: CallStreams::new(session, options),
            common: common.collect(),
        }
    }

    /// Closes the array before, and writes the array called `key`.
    fn write(&mut self, file: &mut TextFile, key: &str, domain: Domain) -> Result<(), WriteError> {
        Out(&mut file.buffer).text("],\"").text(key).text("\":[");
        let session = self.session;
        let calls = &session.calls;
        let wanted = session
            .operations
            .select(|operation| operation.domain() == domain);
        let returns = has_returns(domain);
        let mut first = true;
        for index in calls.indices() {
            let operation = calls.operation[index].0 as usize;
            if !wanted[operation] {
                continue;
            }
            separate(file, &mut first);
            let common = &self.common[operation];
            Out(&mut file.buffer)
                .bytes(&common.start)
                .number(calls.correlation[index].0)
                .text(",\"external\":0,\"ancestor\":")
                .number(calls.ancestor[index].0)
                .text("}")
                .times(calls.start[index], calls.end[index])
                .text(",\"thread_id\":")
                .number(calls.thread[index].0);
            if returns || calls.args[index].len > 0 {
                file.buffer.extend_from_slice(b",\"args\":[");
                write_arguments(&mut file.buffer, session, index, common);
                file.buffer.push(b']');
            }
            if returns {
                let value = calls.retval.get(index).copied().unwrap_or(0);
                Out(&mut file.buffer)
                    .text(",\"retval\":{\"uint64_t_retval\":")
                    .number(value)
                    .text("}");
            }
            if domain == Domain::HipApi {
                let stream = self.streams.of(index);
                Out(&mut file.buffer).handle("stream_id", stream.0);
            }
            Out(&mut file.buffer).stack(calls.stack.get(index));
            file.buffer.push(b'}');
            file.flush_if_full()?;
        }
        Ok(())
    }
}

fn argument_start(out: &mut Vec<u8>, declared: &str, name: &str) {
    out.extend_from_slice(b"{\"type\":");
    quote_bytes(out, declared);
    out.extend_from_slice(b",\"name\":");
    quote_bytes(out, name);
    out.extend_from_slice(b",\"value\":\"");
}

#[inline]
fn write_arguments(out: &mut Vec<u8>, session: &Session, index: usize, common: &Common) {
    let args = session.calls.args[index];
    let from = usize::try_from(args.offset).unwrap_or(usize::MAX);
    let end = from.saturating_add(args.len as usize);
    let Some(raw) = session.calls.arena.get(from..end) else {
        return;
    };
    if args.flags & call_flag::ARGUMENTS != 0
        && let Some(layout) = common.layout
    {
        layout.for_each(args.flags, raw, |position, argument, ty, value| {
            if position > 0 {
                out.push(b',');
            }
            match ty {
                ValueType::Argument => out.extend_from_slice(&common.arguments[position]),
                ValueType::Result(output) => {
                    let ty = if common.encoded {
                        output.mangled
                    } else {
                        output.resolved
                    };
                    argument_start(out, ty, argument.name);
                }
            }
            escape_bytes(out, value);
            out.extend_from_slice(b"\"}");
        });
    } else {
        for_each_argument(None, args.flags, raw, |position, declared, name, value| {
            if position > 0 {
                out.push(b',');
            }
            argument_start(out, declared, name);
            escape_bytes(out, value);
            out.extend_from_slice(b"\"}");
        });
    }
}

/// The stream to show: none when records are grouped by queue.
pub(super) fn stream(id: StreamId, options: &Options) -> u32 {
    if options.group_by_queue { 0 } else { id.0 }
}

/// Correlation id of the region that names the record; 0 without renaming.
pub(super) fn external(session: &Session, region: u32, options: &Options) -> u64 {
    region
        .checked_sub(1)
        .filter(|_| options.kernel_names.rename)
        .and_then(|index| session.regions.get(index as usize))
        .map_or(0, |region| region.correlation.0)
}

fn dispatches(
    file: &mut TextFile,
    session: &Session,
    options: &Options,
    operations: &OperationNumbers,
) -> Result<(), WriteError> {
    let table = &session.dispatches;
    let Numbers { kind, operation } = operations.dispatch;
    let start = format!(
        "{{\"size\":{},\"kind\":{kind},\"operation\":{operation},\"thread_id\":",
        size::DISPATCH
    );
    let mut first = true;
    for index in table.indices() {
        separate(file, &mut first);
        Out(&mut file.buffer)
            .text(&start)
            .number(table.thread[index].0)
            .correlation(
                table.correlation[index],
                external(session, table.region[index], options),
            )
            .times(table.start[index], table.end[index])
            .dispatch_info(table, index)
            .handle("stream_id", stream(table.stream[index], options))
            .graph(!table.graph.is_empty(), table.graph_of(index))
            .text("}");
        file.flush_if_full()?;
    }
    Ok(())
}

/// Text of a record from the brace to the value of the key after `operation`, by id of the operation.
fn starts(numbers: &OperationNumbers, bytes: u32, next: &str) -> Vec<String> {
    numbers
        .iter()
        .map(|numbers| {
            format!(
                "{{\"size\":{bytes},\"kind\":{},\"operation\":{},{next}",
                numbers.kind, numbers.operation
            )
        })
        .collect()
}

fn copies(
    file: &mut TextFile,
    session: &Session,
    options: &Options,
    operations: &OperationNumbers,
) -> Result<(), WriteError> {
    let table = &session.copies;
    let starts = starts(operations, size::COPY, "\"thread_id\":");
    let mut first = true;
    for index in table.indices() {
        separate(file, &mut first);
        let operation = table.operation[index].0 as usize;
        Out(&mut file.buffer)
            .text(&starts[operation])
            .number(table.thread[index].0)
            .correlation(
                table.correlation[index],
                external(session, table.region[index], options),
            )
            .times(table.start[index], table.end[index])
            .handle("dst_agent_id", table.dst_agent[index].0)
            .handle("src_agent_id", table.src_agent[index].0)
            .text(",\"bytes\":")
            .number(table.bytes[index])
            .handle("stream_id", stream(table.stream[index], options))
            .graph(!table.graph.is_empty(), table.graph_of(index))
            .text("}");
        file.flush_if_full()?;
    }
    Ok(())
}

fn allocations(
    file: &mut TextFile,
    session: &Session,
    options: &Options,
    operations: &OperationNumbers,
) -> Result<(), WriteError> {
    let table = &session.allocations;
    let starts = starts(operations, size::ALLOCATION, "\"thread_id\":");
    let mut first = true;
    for index in table.indices() {
        separate(file, &mut first);
        let operation = table.operation[index].0 as usize;
        Out(&mut file.buffer)
            .text(&starts[operation])
            .number(table.thread[index].0)
            .ancestry(table.correlation[index], table.ancestor[index])
            .times(table.start[index], table.end[index])
            .handle("agent_id", table.agent[index].0)
            .text(",\"address\":")
            .address(table.address[index])
            .text(",\"allocation_size\":")
            .number(table.bytes[index])
            .handle("stream_id", stream(table.stream[index], options))
            .stack(table.stack.get(index))
            .text("}");
        file.flush_if_full()?;
    }
    Ok(())
}

fn scratch(
    file: &mut TextFile,
    session: &Session,
    operations: &OperationNumbers,
) -> Result<(), WriteError> {
    let table = &session.scratch;
    let starts = starts(operations, size::SCRATCH, "\"agent_id\":{\"handle\":");
    let mut first = true;
    for index in table.indices() {
        separate(file, &mut first);
        let operation = table.operation[index].0 as usize;
        Out(&mut file.buffer)
            .text(&starts[operation])
            .number(table.agent[index].0)
            .text("}")
            .handle("queue_id", table.queue[index].0)
            .text(",\"thread_id\":")
            .number(table.thread[index].0)
            .times(table.start[index], table.end[index])
            .ancestry(table.correlation[index], table.ancestor[index])
            .text(",\"flags\":")
            .number(table.flags[index])
            .text(",\"allocation_size\":")
            .number(table.bytes[index])
            .text("}");
        file.flush_if_full()?;
    }
    Ok(())
}

fn graph_launches(
    file: &mut TextFile,
    session: &Session,
    operations: &OperationNumbers,
) -> Result<(), WriteError> {
    let table = &session.graph_launches;
    let start = format!(
        "{{\"size\":{},\"kind\":{},\"operation\":0,\"thread_id\":",
        size::GRAPH_LAUNCH,
        operations.graph_launches
    );
    let mut first = true;
    for index in table.indices() {
        separate(file, &mut first);
        Out(&mut file.buffer)
            .text(&start)
            .number(table.thread[index].0)
            .ancestry(table.correlation[index], CorrelationId(0))
            .times(table.start[index], table.end[index])
            .handle("agent_id", table.agent[index].0)
            .handle("queue_id", 0)
            .handle("graph_exec_id", table.exec[index])
            .text(",\"kernel_dispatch_count\":")
            .number(table.dispatches[index])
            .text("}");
        file.flush_if_full()?;
    }
    Ok(())
}

fn hip_events(
    file: &mut TextFile,
    session: &Session,
    options: &Options,
    operations: &OperationNumbers,
) -> Result<(), WriteError> {
    let table = &session.hip_events;
    let start = format!(
        "{{\"size\":{},\"kind\":{},\"operation\":",
        size::HIP_EVENT,
        operations.hip_events
    );
    let mut first = true;
    for index in table.indices() {
        separate(file, &mut first);
        Out(&mut file.buffer)
            .text(&start)
            .number(table.operation[index])
            .text(",\"thread_id\":")
            .number(table.thread[index].0)
            .correlation(table.correlation[index], 0)
            .times(table.start[index], table.end[index])
            .handle("agent_id", table.agent[index].0)
            .handle("queue_id", table.queue[index].0)
            .text(",\"hip_event_handle\":")
            .number(table.event[index])
            .handle("source_queue_id", table.source_queue[index].0)
            .handle("stream_id", stream(table.stream[index], options))
            .text("}");
        file.flush_if_full()?;
    }
    Ok(())
}
