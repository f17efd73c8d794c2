//! Executable HIP graphs and their launches: the kind HIP_GRAPH, from SDK 1.3 on.

use core::{
    cell::RefCell,
    ffi::c_void,
    ptr,
    sync::atomic::{AtomicPtr, AtomicU64, Ordering},
};
use std::{collections::HashMap, sync::Mutex};

use rocprofiler_sdk_sys::{
    rocprofiler_address_t as Address, rocprofiler_agent_id_t as AgentId,
    rocprofiler_buffer_tracing_hip_graph_async_record_t as ShortRecord,
    rocprofiler_buffer_tracing_hip_graph_record_t as Record,
    rocprofiler_buffer_tracing_kind_t as BufferKind, rocprofiler_callback_phase_t as Phase,
    rocprofiler_callback_tracing_hip_graph_data_t as Payload,
    rocprofiler_callback_tracing_kind_t as CallbackKind,
    rocprofiler_callback_tracing_record_t as CallbackRecord,
    rocprofiler_correlation_id_t as CorrelationId,
    rocprofiler_external_correlation_id_request_kind_t as RequestKind,
    rocprofiler_graph_exec_id_t as ExecId, rocprofiler_hip_graph_operation_t as Operation,
    rocprofiler_user_data_t as UserData,
};

use super::version::Version;
use super::{agents, clock, context, correlation, external, names, state, thread, version};
use crate::api::table::{Slot, next};
use crate::hip::stream as hip_stream;

const KIND: CallbackKind = CallbackKind::HIP_GRAPH;

/// Number of the next executable graph.
static NEXT_EXEC: AtomicU64 = AtomicU64::new(1);
/// Numbers of executable graphs by handle.
static IDS: Mutex<Option<HashMap<u64, u64>>> = Mutex::new(None);

thread_local! {
    /// Dispatches of the launches that the thread is in, innermost last.
    static LAUNCHES: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// The wrapped functions, with the functions that the wrappers call.
static WRAPPED: [(&str, Wrapper, AtomicPtr<c_void>); 6] = [
    entry("hipGraphInstantiate", instantiate as *const ()),
    entry(
        "hipGraphInstantiateWithFlags",
        instantiate_with_flags as *const (),
    ),
    entry(
        "hipGraphInstantiateWithParams",
        instantiate_with_params as *const (),
    ),
    entry("hipGraphExecDestroy", exec_destroy as *const ()),
    entry("hipGraphLaunch", launch as *const ()),
    entry("hipGraphLaunch_spt", launch_spt as *const ()),
];

/// Address of a wrapper.
struct Wrapper(*const ());

// SAFETY: the address of a function.
unsafe impl Sync for Wrapper {}

const fn entry(
    name: &'static str,
    wrapper: *const (),
) -> (&'static str, Wrapper, AtomicPtr<c_void>) {
    (name, Wrapper(wrapper), AtomicPtr::new(ptr::null_mut()))
}

/// Puts the wrappers in front of the runtime, and behind tracing wrappers, when a context has the kind.
pub(crate) fn install(slots: &[Slot]) {
    // A dispatch of a graph is not replayed.
    if !context::any(KIND, BufferKind::HIP_GRAPH) && !super::replay::configured() {
        return;
    }
    let Some(operations) = names::buffer_operations(BufferKind::HIP_RUNTIME_API) else {
        return;
    };
    for (name, wrapper, below) in &WRAPPED {
        let place = (operations.names.iter()).position(|known| known.to_bytes() == name.as_bytes());
        if let Some(place) = place
            && let Some(slot) = slots.get(place)
        {
            super::register::replace(slot, wrapper.0, below);
            // The wrapper of a traced call calls this one, so that the launch has the call's correlation id.
            next::HIP_RUNTIME_API[place].store(slot.load(Ordering::Acquire), Ordering::Release);
        }
    }
}

macro_rules! next {
    ($n:literal, ($($t:ty),*), ($($a:expr),*)) => {{
        let slot = WRAPPED[$n].2.load(Ordering::Relaxed);
        // SAFETY: it was in that slot and so is of this type; the arguments are the caller's.
        unsafe {
            core::mem::transmute::<*mut c_void, unsafe extern "C" fn($($t),*) -> u32>(slot)($($a),*)
        }
    }};
}

/// Counts a dispatch for the launch that the calling thread is in.
pub(crate) fn count_dispatch() {
    LAUNCHES.with_borrow_mut(|launches| {
        if let Some(count) = launches.last_mut() {
            *count += 1;
        }
    });
}

/// Whether the calling thread launches a graph.
pub(crate) fn is_launching() -> bool {
    LAUNCHES.with_borrow(|launches| !launches.is_empty())
}

fn payload(exec: u64, id: u64) -> Payload {
    Payload {
        size: size_of::<Payload>() as u64,
        graph_exec_id: ExecId { handle: id },
        graph_exec_value: Address::from(exec),
    }
}

/// Contexts that are active and have callbacks for an operation.
fn wanting(operation: Operation) -> u64 {
    if state::finalized() != 0 {
        return 0;
    }
    context::active() & context::want_callbacks(KIND.0 as usize, operation.0 as usize)
}

fn deliver(
    mask: u64,
    operation: Operation,
    phase: Phase,
    payload: &mut Payload,
    users: &mut [UserData],
) {
    let (internal, ancestor) = correlation::current().unwrap_or((0, 0));
    for (place, index) in context::bits(mask).enumerate() {
        let record = CallbackRecord {
            thread_id: thread::current(),
            correlation_id: CorrelationId {
                internal,
                ancestor,
                ..CorrelationId::default()
            },
            kind: KIND,
            operation: operation.0 as i32,
            phase,
            payload: ptr::from_mut(payload).cast(),
            ..CallbackRecord::default()
        };
        let mut none = UserData::from(0);
        context::get(index).call(record, users.get_mut(place).unwrap_or(&mut none));
    }
}

/// Gives an executable graph the next number, and reports it.
fn created(exec: u64) -> u64 {
    let id = NEXT_EXEC.fetch_add(1, Ordering::Relaxed);
    let mut ids = IDS.lock().unwrap_or_else(|e| e.into_inner());
    ids.get_or_insert_default().insert(exec, id);
    drop(ids);
    let operation = Operation::EXEC_CREATE;
    deliver(
        wanting(operation),
        operation,
        Phase::NONE,
        &mut payload(exec, id),
        &mut [],
    );
    id
}

fn destroyed(exec: u64) {
    let mut ids = IDS.lock().unwrap_or_else(|e| e.into_inner());
    let id = ids.as_mut().and_then(|ids| ids.remove(&exec));
    drop(ids);
    let operation = Operation::EXEC_DESTROY;
    let mut payload = payload(exec, id.unwrap_or(0));
    deliver(
        wanting(operation),
        operation,
        Phase::NONE,
        &mut payload,
        &mut [],
    );
}

fn made(out: *mut u64, call: impl FnOnce() -> u32) -> u32 {
    let status = call();
    if status == 0 {
        // SAFETY: a call that succeeded has written the handle there.
        created(unsafe { *out });
    }
    status
}

/// Launches an executable graph between its events. `agent` is that of the stream.
fn launched(exec: u64, agent: impl FnOnce() -> AgentId, call: impl FnOnce() -> u32) -> u32 {
    let operation = Operation::EXEC_LAUNCH;
    let mask = wanting(operation);
    let records = if state::finalized() == 0 {
        context::active() & context::want_records(BufferKind::HIP_GRAPH.0 as usize, 0)
    } else {
        0
    };
    if mask | records == 0 {
        LAUNCHES.with_borrow_mut(|launches| launches.push(0));
        let status = call();
        LAUNCHES.with_borrow_mut(|launches| launches.pop());
        return status;
    }
    let known = {
        let ids = IDS.lock().unwrap_or_else(|e| e.into_inner());
        ids.as_ref().and_then(|ids| ids.get(&exec).copied())
    };
    // One that was made before a tool came is made up.
    let id = known.unwrap_or_else(|| created(exec));
    let mut users = [UserData::from(0); context::MAX];
    let mut payload = payload(exec, id);
    deliver(mask, operation, Phase::ENTER, &mut payload, &mut users);
    LAUNCHES.with_borrow_mut(|launches| launches.push(0));
    let start = clock::now();
    let status = call();
    let end = clock::now();
    let dispatches = LAUNCHES.with_borrow_mut(|launches| launches.pop().unwrap_or(0));
    deliver(mask, operation, Phase::EXIT, &mut payload, &mut users);
    if status != 0 {
        if known.is_none() {
            destroyed(exec);
        }
        return status;
    }
    emit(
        records,
        &Record {
            size: size_of::<Record>() as u64,
            kind: BufferKind::HIP_GRAPH,
            thread_id: thread::current(),
            start_timestamp: start,
            end_timestamp: end,
            agent_id: agent(),
            graph_exec_id: ExecId { handle: id },
            kernel_dispatch_count: dispatches,
            ..Record::default()
        },
    );
    status
}

/// Puts a launch into the buffers of contexts, in the layout of the version.
fn emit(mask: u64, record: &Record) {
    let kind = BufferKind::HIP_GRAPH;
    let (internal, ancestor) = correlation::current().unwrap_or((0, 0));
    for index in context::bits(mask) {
        let context = context::get(index);
        let Some(buffer) = context.buffers[kind.0 as usize].get() else {
            continue;
        };
        let thread = record.thread_id;
        let request = RequestKind::HIP_RUNTIME_API.0;
        let external = UserData::from(external::request(context, request, 0, thread, internal));
        if version::current() >= Version::V1_4 {
            let mut record = *record;
            record.correlation_id = CorrelationId {
                internal,
                external,
                ancestor,
            };
            buffer.emit(kind.0, &record);
            continue;
        }
        let mut short = ShortRecord {
            size: size_of::<ShortRecord>() as u64,
            kind,
            thread_id: record.thread_id,
            start_timestamp: record.start_timestamp,
            end_timestamp: record.end_timestamp,
            agent_id: record.agent_id,
            graph_exec_id: record.graph_exec_id,
            kernel_dispatch_count: record.kernel_dispatch_count,
            ..ShortRecord::default()
        };
        (short.correlation_id.internal, short.correlation_id.external) = (internal, external);
        buffer.emit(kind.0, &short);
    }
}

unsafe extern "C" fn instantiate(
    out: *mut u64,
    graph: u64,
    node: u64,
    log: u64,
    size: usize,
) -> u32 {
    made(out, || {
        next!(
            0,
            (*mut u64, u64, u64, u64, usize),
            (out, graph, node, log, size)
        )
    })
}

unsafe extern "C" fn instantiate_with_flags(out: *mut u64, graph: u64, flags: u64) -> u32 {
    made(out, || next!(1, (*mut u64, u64, u64), (out, graph, flags)))
}

unsafe extern "C" fn instantiate_with_params(out: *mut u64, graph: u64, parameters: u64) -> u32 {
    made(out, || {
        next!(2, (*mut u64, u64, u64), (out, graph, parameters))
    })
}

unsafe extern "C" fn exec_destroy(exec: u64) -> u32 {
    let status = next!(3, (u64), (exec));
    if status == 0 {
        destroyed(exec);
    }
    status
}

/// The agent of a stream's device.
fn agent_of(stream: crate::hip::error::HipResult<std::sync::Arc<hip_stream::Stream>>) -> AgentId {
    stream.map_or_else(
        |_| AgentId::default(),
        |stream| agents::of_handle(stream.device.agent),
    )
}

unsafe extern "C" fn launch(exec: u64, stream: u64) -> u32 {
    launched(
        exec,
        || agent_of(hip_stream::resolve(stream as *mut c_void)),
        || next!(4, (u64, u64), (exec, stream)),
    )
}

unsafe extern "C" fn launch_spt(exec: u64, stream: u64) -> u32 {
    launched(
        exec,
        || agent_of(hip_stream::resolve_spt(stream as *mut c_void)),
        || next!(5, (u64, u64), (exec, stream)),
    )
}
