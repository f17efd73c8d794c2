//! Events of scratch memory as records and callbacks.

use core::ptr;

use rocprofiler_sdk_sys::{
    hsa_amd_tool_event_kind_t as ToolEvent, rocprofiler_buffer_tracing_kind_t as BufferKind,
    rocprofiler_buffer_tracing_scratch_memory_record_t as ScratchRecord,
    rocprofiler_callback_phase_t as Phase, rocprofiler_callback_tracing_kind_t as CallbackKind,
    rocprofiler_callback_tracing_scratch_memory_data_t as ScratchPayload,
    rocprofiler_scratch_alloc_flag_t as ScratchFlag,
    rocprofiler_scratch_memory_alloc_end_t as AllocEnd,
    rocprofiler_scratch_memory_operation_t as ScratchOperation,
};

use super::context_records::{self, ContextRecords};
use super::{agents, clock, context, device, thread};
use crate::gpu::observe::{ScratchEvent, ScratchInfo};

/// A change of scratch memory under way.
pub(super) struct ScratchWork {
    /// Mask of the contexts that get callbacks.
    pub(super) callbacks: u64,
    /// Mask of the contexts that get a record.
    pub(super) records: u64,
    pub(super) seen: Vec<ContextRecords>,
    pub(super) start: u64,
}

/// Operation of a scratch event, and the names that the runtime has for its start and its end.
pub(super) fn operation(event: ScratchEvent) -> (ScratchOperation, ToolEvent, ToolEvent) {
    match event {
        ScratchEvent::Alloc => (
            ScratchOperation::ALLOC,
            ToolEvent::SCRATCH_ALLOC_START,
            ToolEvent::SCRATCH_ALLOC_END,
        ),
        ScratchEvent::Free => (
            ScratchOperation::FREE,
            ToolEvent::SCRATCH_FREE_START,
            ToolEvent::SCRATCH_FREE_END,
        ),
    }
}

/// Calls the contexts about the start or the end of a scratch event; both have the same user data.
pub(super) fn report(work: &mut ScratchWork, scratch: &ScratchInfo, phase: Phase) {
    let (operation, began, ended) = operation(scratch.event);
    let entering = phase == Phase::ENTER;
    let mut payload = ScratchPayload {
        size: size_of::<ScratchPayload>() as u64,
        agent_id: agents::of_handle(scratch.queue.agent),
        queue_id: device::queue_id(&scratch.queue),
        flags: ScratchFlag(scratch.flags),
        args_kind: if entering { began } else { ended },
        ..ScratchPayload::default()
    };
    if scratch.event == ScratchEvent::Alloc {
        payload.args.alloc_end = AllocEnd {
            dispatch_id: scratch.dispatch_packet_id,
            size: if entering { 0 } else { scratch.bytes as usize },
            num_slots: if entering { 0 } else { scratch.slots as usize },
        };
    }
    context_records::report(
        work.callbacks,
        &mut work.seen,
        (0, 0),
        thread::current(),
        (CallbackKind::SCRATCH_MEMORY, operation.0, phase),
        ptr::from_mut(&mut payload).cast(),
    );
}

pub(super) fn ended(work: &mut ScratchWork, scratch: &ScratchInfo) {
    report(work, scratch, Phase::EXIT);
    let end = clock::now();
    let kind = BufferKind::SCRATCH_MEMORY;
    for index in context::bits(work.records) {
        if let Some(buffer) = context::get(index).buffers[kind.0 as usize].get() {
            buffer.emit(
                kind.0,
                &ScratchRecord {
                    size: size_of::<ScratchRecord>() as u64,
                    kind,
                    operation: operation(scratch.event).0,
                    agent_id: agents::of_handle(scratch.queue.agent),
                    queue_id: device::queue_id(&scratch.queue),
                    thread_id: thread::current(),
                    start_timestamp: work.start,
                    end_timestamp: end,
                    flags: ScratchFlag(scratch.flags),
                    allocation_size: scratch.bytes,
                    ..ScratchRecord::default()
                },
            );
        }
    }
}
