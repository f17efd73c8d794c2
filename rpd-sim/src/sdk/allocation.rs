//! Memory allocations, observed at the six HSA calls that allocate or free memory.

use core::{
    ffi::c_void,
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

use rocprofiler_sdk_sys::{
    rocprofiler_address_t as Address, rocprofiler_agent_id_t as AgentId,
    rocprofiler_buffer_tracing_kind_t as BufferKind,
    rocprofiler_buffer_tracing_memory_allocation_record_t as Record,
    rocprofiler_callback_phase_t as Phase, rocprofiler_callback_tracing_kind_t as CallbackKind,
    rocprofiler_callback_tracing_memory_allocation_data_t as Payload,
    rocprofiler_callback_tracing_record_t as CallbackRecord,
    rocprofiler_correlation_id_t as CorrelationId,
    rocprofiler_external_correlation_id_request_kind_t as RequestKind,
    rocprofiler_memory_allocation_operation_t as Operation, rocprofiler_user_data_t as UserData,
};

use super::{agents, clock, context, correlation::Use, external, register::replace, state, thread};
use crate::api::table::Slot;

/// Slots of the observed functions in the core table and the AMD extension table.
const MEMORY_ALLOCATE: usize = 33;
const MEMORY_FREE: usize = 34;
const POOL_ALLOCATE: usize = 13;
const POOL_FREE: usize = 14;
const HANDLE_CREATE: usize = 57;
const HANDLE_RELEASE: usize = 58;

/// Functions that the hooks call, in the order of [`install`].
static NEXT: [AtomicPtr<c_void>; 6] = [const { AtomicPtr::new(ptr::null_mut()) }; 6];

/// Puts the hooks in front of the runtime, and behind tracing wrappers, when a context traces allocations.
pub(crate) fn install(core: &[Slot], amd_ext: &[Slot]) {
    use crate::api::table::next;
    if !context::any(
        CallbackKind::MEMORY_ALLOCATION,
        BufferKind::MEMORY_ALLOCATION,
    ) {
        return;
    }
    let list: [(&[Slot], &[Slot], usize, *const ()); 6] = [
        (
            core,
            &next::HSA_CORE_API,
            MEMORY_ALLOCATE,
            memory_allocate as *const (),
        ),
        (
            core,
            &next::HSA_CORE_API,
            MEMORY_FREE,
            memory_free as *const (),
        ),
        (
            amd_ext,
            &next::HSA_AMD_EXT_API,
            POOL_ALLOCATE,
            pool_allocate as *const (),
        ),
        (
            amd_ext,
            &next::HSA_AMD_EXT_API,
            POOL_FREE,
            pool_free as *const (),
        ),
        (
            amd_ext,
            &next::HSA_AMD_EXT_API,
            HANDLE_CREATE,
            handle_create as *const (),
        ),
        (
            amd_ext,
            &next::HSA_AMD_EXT_API,
            HANDLE_RELEASE,
            handle_release as *const (),
        ),
    ];
    for ((slots, below, slot, hook), next) in list.into_iter().zip(&NEXT) {
        if let Some(slot_now) = slots.get(slot) {
            replace(slot_now, hook, next);
            // The wrapper of a traced call calls the hook, which calls the runtime: this keeps the events inside of the
            // call.
            below[slot].store(slot_now.load(Ordering::Acquire), Ordering::Release);
        }
    }
}

macro_rules! next {
    ($n:literal, ($($t:ty),*), ($($a:expr),*)) => {{
        let slot = NEXT[$n].load(Ordering::Relaxed);
        // SAFETY: it was in that slot and so is of this type; the arguments are the caller's.
        unsafe {
            core::mem::transmute::<*mut c_void, unsafe extern "C" fn($($t),*) -> u32>(slot)($($a),*)
        }
    }};
}

/// Runs an allocation between its two events; `address` returns the address of the memory afterwards.
fn observe(
    operation: Operation,
    agent: AgentId,
    bytes: u64,
    call: impl FnOnce() -> u32,
    address: impl Fn() -> u64,
) -> u32 {
    let (ck, bk) = (
        CallbackKind::MEMORY_ALLOCATION,
        BufferKind::MEMORY_ALLOCATION,
    );
    let op = operation.0 as usize;
    // After finalisation tools have given their buffers and callbacks up.
    let active = if state::finalized() == 0 {
        context::active()
    } else {
        0
    };
    let callbacks = active & context::want_callbacks(ck.0 as usize, op);
    let records = active & context::want_records(bk.0 as usize, op);
    // Contexts that trace allocations may all be stopped at present.
    if callbacks | records == 0 {
        return call();
    }
    // Held to the end: the id must not be retired before the records are written.
    let id = Use::current();
    let tid = thread::current();
    let ids = |index: usize| CorrelationId {
        internal: id.internal,
        external: UserData::from(external::request(
            context::get(index),
            RequestKind::MEMORY_ALLOCATION.0,
            operation.0 as i32,
            tid,
            id.internal,
        )),
        ancestor: id.ancestor,
    };
    // Each context has its own external id and user data, which both ends of the operation share.
    let mut states: Vec<(usize, CorrelationId, UserData)> = context::bits(callbacks | records)
        .map(|i| (i, ids(i), UserData::from(0)))
        .collect();
    let mut payload = Payload {
        size: size_of::<Payload>() as u64,
        agent_id: agent,
        allocation_size: bytes,
        ..Payload::default()
    };
    let mut report = |phase: Phase, payload: &mut Payload| {
        for (index, correlation_id, user) in &mut states {
            if callbacks & (1 << *index) != 0 {
                let record = CallbackRecord {
                    thread_id: tid,
                    correlation_id: *correlation_id,
                    kind: ck,
                    operation: operation.0 as i32,
                    phase,
                    payload: ptr::from_mut(payload).cast(),
                    ..CallbackRecord::default()
                };
                context::get(*index).call(record, user);
            }
        }
    };
    // The address of memory that is freed is known before the call only, that of new memory afterwards.
    let free = matches!(operation, Operation::FREE | Operation::VMEM_FREE);
    if free {
        payload.address = Address::from(address());
    }
    report(Phase::ENTER, &mut payload);
    // Only the runtime's own time counts, not that of the tools' callbacks.
    payload.start_timestamp = clock::now();
    let result = call();
    payload.end_timestamp = clock::now();
    // A failed call has written no address.
    if !free && result == 0 {
        payload.address = Address::from(address());
    }
    report(Phase::EXIT, &mut payload);
    for (index, correlation_id, _) in &states {
        if records & (1 << *index) != 0
            && let Some(buffer) = context::get(*index).buffers[bk.0 as usize].get()
        {
            buffer.emit(
                bk.0,
                &Record {
                    size: size_of::<Record>() as u64,
                    kind: bk,
                    operation,
                    correlation_id: *correlation_id,
                    thread_id: tid,
                    start_timestamp: payload.start_timestamp,
                    end_timestamp: payload.end_timestamp,
                    agent_id: agent,
                    address: payload.address,
                    allocation_size: bytes,
                },
            );
        }
    }
    result
}

/// Value that a successful call wrote.
fn written(to: *mut u64) -> u64 {
    if to.is_null() {
        return 0;
    }
    // SAFETY: the call that was given this place has succeeded.
    unsafe { *to }
}

unsafe extern "C" fn memory_allocate(region: u64, size: usize, to: *mut u64) -> u32 {
    let call = || next!(0, (u64, usize, *mut u64), (region, size, to));
    observe(
        Operation::ALLOCATE,
        agents::of_pool(region),
        size as u64,
        call,
        || written(to),
    )
}

unsafe extern "C" fn memory_free(at: u64) -> u32 {
    observe(
        Operation::FREE,
        AgentId::default(),
        0,
        || next!(1, (u64), (at)),
        || at,
    )
}

unsafe extern "C" fn pool_allocate(pool: u64, size: usize, flags: u32, to: *mut u64) -> u32 {
    let call = || next!(2, (u64, usize, u32, *mut u64), (pool, size, flags, to));
    observe(
        Operation::ALLOCATE,
        agents::of_pool(pool),
        size as u64,
        call,
        || written(to),
    )
}

unsafe extern "C" fn pool_free(at: u64) -> u32 {
    observe(
        Operation::FREE,
        AgentId::default(),
        0,
        || next!(3, (u64), (at)),
        || at,
    )
}

unsafe extern "C" fn handle_create(
    pool: u64,
    size: usize,
    kind: u32,
    flags: u64,
    to: *mut u64,
) -> u32 {
    let call = || {
        next!(
            4,
            (u64, usize, u32, u64, *mut u64),
            (pool, size, kind, flags, to)
        )
    };
    observe(
        Operation::VMEM_ALLOCATE,
        agents::of_pool(pool),
        size as u64,
        call,
        || written(to),
    )
}

unsafe extern "C" fn handle_release(handle: u64) -> u32 {
    let call = || next!(5, (u64), (handle));
    observe(Operation::VMEM_FREE, AgentId::default(), 0, call, || handle)
}
