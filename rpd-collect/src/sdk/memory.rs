//! Copies, allocations and scratch memory, written when they are over, on the thread where the provider learns it.

use std::ffi::c_void;

use rocprofiler_sdk_sys::{
    hsa_amd_tool_event_kind_t, rocprofiler_callback_phase_t, rocprofiler_callback_tracing_cb_t,
    rocprofiler_callback_tracing_memory_allocation_data_t,
    rocprofiler_callback_tracing_memory_copy_data_t, rocprofiler_callback_tracing_record_t,
    rocprofiler_callback_tracing_scratch_memory_data_t, rocprofiler_user_data_t,
};
use rpd_spool::format::{Allocation, Copy, Scratch, tag};
use rpd_spool::writer::now;
use zerocopy::IntoBytes;

use crate::recording::guard::Service;
use crate::recording::process::{self, fork_time, header};
use crate::recording::stacks::{self, Selection};
use crate::sdk::entry::Setup;
use crate::sdk::stream::unpack;

static COPIES: Service = Service::new("memory copies");
static ALLOCATIONS: Service = Service::new("memory allocations");
static SCRATCH: Service = Service::new("scratch memory");

pub(crate) fn configure(setup: &Setup<'_>) {
    let traces = setup.options.traces;
    let wanted: [(bool, &str, rocprofiler_callback_tracing_cb_t); 3] = [
        (traces.memory_copy, "MEMORY_COPY", Some(on_copy)),
        (
            traces.memory_allocation,
            "MEMORY_ALLOCATION",
            Some(on_allocation),
        ),
        (traces.scratch_memory, "SCRATCH_MEMORY", Some(on_scratch)),
    ];
    for (wanted, kind, callback) in wanted {
        if wanted && let Some(kind) = setup.callback_kind(kind) {
            let stacks = match kind.name == "MEMORY_ALLOCATION" {
                true => Selection::of(&setup.options.stacks, &kind.operations),
                false => None,
            };
            // All operations: SDK 1.0 compares a filter of allocations with numbers of HSA functions.
            let data = stacks.map_or(std::ptr::null_mut(), |stacks| {
                std::ptr::from_mut(Box::leak(Box::new(stacks))).cast()
            });
            setup.trace_callbacks(setup.client, kind, &[], callback, data);
        }
    }
}

/// Keeps the time at which something began in the slot that its end sees as well; at its end, begin and end by our own
/// clock.
///
/// # Safety
///
/// `slot` is the user data of a callback of that something.
unsafe fn own_times(
    phase: rocprofiler_callback_phase_t,
    slot: *mut rocprofiler_user_data_t,
) -> Option<(u64, u64)> {
    let time = now();
    // SAFETY: as this function demands.
    let slot = unsafe { slot.as_mut() };
    match phase {
        rocprofiler_callback_phase_t::ENTER => {
            if let Some(slot) = slot {
                slot.value = time;
            }
            None
        }
        rocprofiler_callback_phase_t::EXIT => {
            let start = slot.map_or(0, |slot| slot.as_u64());
            Some((if start == 0 { time } else { start }, time))
        }
        _ => None,
    }
}

unsafe extern "C" fn on_copy(
    record: rocprofiler_callback_tracing_record_t,
    _user_data: *mut rocprofiler_user_data_t,
    _data: *mut c_void,
) {
    COPIES.told(|| {
        // At the beginning there is nothing to write yet: the times are the device's.
        if record.phase != rocprofiler_callback_phase_t::EXIT {
            if record.phase == rocprofiler_callback_phase_t::ENTER
                && let Some(process) = process::current()
            {
                process.totals.copies.begin();
            }
            return;
        }
        type Payload = rocprofiler_callback_tracing_memory_copy_data_t;
        // SAFETY: the payload of this kind, within its callback.
        let payload = unsafe { crate::recording::text::sized::<Payload>(record.payload) };
        let Some(payload) = payload else { return };
        if payload.start_timestamp < fork_time() {
            return;
        }
        let (region, stream) = unpack(record.correlation_id.external.as_u64());
        crate::recording::thread::write(&Copy {
            header: header(tag::COPY, size_of::<Copy>()),
            thread: record.thread_id,
            correlation: record.correlation_id.internal,
            start: payload.start_timestamp,
            end: payload.end_timestamp,
            dst_agent: payload.dst_agent_id.handle,
            src_agent: payload.src_agent_id.handle,
            bytes: payload.bytes,
            dst_address: payload.dst_address.as_u64(),
            src_address: payload.src_address.as_u64(),
            operation: record.operation.cast_unsigned(),
            stream,
            region,
            reserved: 0,
        });
        if let Some(process) = process::existing() {
            process.totals.copies.end();
        }
    });
}

unsafe extern "C" fn on_allocation(
    record: rocprofiler_callback_tracing_record_t,
    user_data: *mut rocprofiler_user_data_t,
    data: *mut c_void,
) {
    ALLOCATIONS.told(|| {
        type Payload = rocprofiler_callback_tracing_memory_allocation_data_t;
        // SAFETY: the slot of this call.
        let Some((start, end)) = (unsafe { own_times(record.phase, user_data) }) else {
            return;
        };
        // SAFETY: the payload of this kind, within its callback.
        let payload = unsafe { crate::recording::text::sized::<Payload>(record.payload) };
        let Some(payload) = payload else { return };
        // The provider's times are closer to the call than ours.
        let (start, end) = match payload.end_timestamp {
            0 => (start, end),
            theirs => (payload.start_timestamp, theirs),
        };
        if start < fork_time() {
            return;
        }
        let (_, stream) = unpack(record.correlation_id.external.as_u64());
        // SAFETY: null, or what `configure` leaked.
        let selection = unsafe { data.cast::<Selection>().as_ref() };
        let selection = selection.filter(|selection| selection.takes(record.operation));
        let mut allocation = Allocation {
            header: header(tag::ALLOCATION, size_of::<Allocation>()),
            thread: record.thread_id,
            correlation: record.correlation_id.internal,
            ancestor: record.correlation_id.ancestor,
            start,
            end,
            agent: payload.agent_id.handle,
            address: payload.address.as_u64(),
            bytes: payload.allocation_size,
            operation: record.operation.cast_unsigned(),
            stream,
        };
        let written = crate::recording::thread::with(|thread| {
            let stack = stacks::of_moment(thread, selection, end.saturating_sub(start));
            let len = size_of::<Allocation>() + stacks::room(stack);
            allocation.header.len = len as u32;
            thread.records.append(len, |bytes| {
                let (head, tail) = bytes.split_at_mut(size_of::<Allocation>());
                head.copy_from_slice(allocation.as_bytes());
                stacks::put(stack, tail);
            })
        });
        if written == Some(false) {
            crate::recording::thread::lost();
        }
    });
}

unsafe extern "C" fn on_scratch(
    record: rocprofiler_callback_tracing_record_t,
    user_data: *mut rocprofiler_user_data_t,
    _data: *mut c_void,
) {
    SCRATCH.told(|| {
        type Payload = rocprofiler_callback_tracing_scratch_memory_data_t;
        // SAFETY: the slot of this event. Its payload has no times at all.
        let Some((start, end)) = (unsafe { own_times(record.phase, user_data) }) else {
            return;
        };
        // SAFETY: the payload of this kind, within its callback.
        let payload = unsafe { crate::recording::text::sized::<Payload>(record.payload) };
        let Some(payload) = payload else { return };
        if start < fork_time() {
            return;
        }
        let bytes = match payload.args_kind {
            // SAFETY: the kind says that this member is live; all of its bits are valid numbers.
            hsa_amd_tool_event_kind_t::SCRATCH_ALLOC_END => unsafe { payload.args.alloc_end.size },
            _ => 0,
        };
        crate::recording::thread::write(&Scratch {
            header: header(tag::SCRATCH, size_of::<Scratch>()),
            thread: record.thread_id,
            correlation: record.correlation_id.internal,
            ancestor: record.correlation_id.ancestor,
            start,
            end,
            agent: payload.agent_id.handle,
            queue: payload.queue_id.handle,
            bytes: bytes as u64,
            operation: record.operation.cast_unsigned(),
            flags: payload.flags.0,
        });
    });
}
