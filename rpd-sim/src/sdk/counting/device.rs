//! Counting of whole agents: all kernels that ran on them while the context was active.
//!
//! The device's clock only runs while kernels do, so cycles of an idle GPU are not counted.

use core::{
    ffi::c_void,
    slice,
    sync::atomic::{AtomicU8, Ordering},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock},
};

use rocprofiler_sdk_sys::{
    rocprofiler_agent_id_t as AgentId, rocprofiler_buffer_category_t as Category,
    rocprofiler_buffer_id_t as BufferId, rocprofiler_context_id_t as ContextId,
    rocprofiler_counter_config_id_t as ConfigId, rocprofiler_counter_flag_t as Flag,
    rocprofiler_counter_record_kind_t as Kind, rocprofiler_counter_record_t as Record,
    rocprofiler_device_counting_service_cb_t as ChooseFn, rocprofiler_status_t as Status,
    rocprofiler_user_data_t as UserData,
};

use super::{
    catalogue::Need,
    config::{self, Config, EventValues},
    dispatch, hardware,
};
use crate::sdk::{
    agents,
    buffer::{self, Buffer},
    context::{self, Callback, Context, DEVICE_COUNTING, PC_SAMPLING},
    state,
    status::store,
};
use rpd_gfx::perf::Counts;

/// States of a context's service, values of [`DeviceService::state`].
const IDLE: u8 = 0;
const CHANGING: u8 = 1;
const COUNTING: u8 = 2;

/// Device counting of one context.
#[derive(Default)]
pub(crate) struct DeviceService {
    state: AtomicU8,
    agents: Mutex<Vec<Arc<CountedAgent>>>,
}

/// Device counting services by index of their context.
static SERVICES: [OnceLock<DeviceService>; context::MAX] =
    [const { OnceLock::new() }; context::MAX];

fn service(context: &Context) -> Option<&'static DeviceService> {
    SERVICES[context.index].get()
}

/// Whether a context counts whole agents.
pub(super) fn is_configured(context: &Context) -> bool {
    service(context).is_some()
}

/// One agent that a context counts.
struct CountedAgent {
    index: usize,
    id: AgentId,
    buffer: Option<&'static Buffer>,
    choose: Callback<<ChooseFn as IntoIterator>::Item>,
    counting: Mutex<Option<Counting>>,
}

/// Counters of an agent, with their current values.
struct Counting {
    config: Arc<Config>,
    sums: Sums,
}

/// Sums of hardware events: by counter and resolution, engine and instance.
#[derive(Default)]
struct Sums(HashMap<(u64, rpd_metric::expression::Resolution, u32, u32), f64>);

impl Sums {
    fn add(&mut self, needs: &[Need], counts: &Counts) {
        for need in needs {
            for position in hardware::shape(need.block).positions() {
                let (engine, instance) = hardware::place(need.block, position);
                if let Some(value) = EventValues::value(counts, need, engine, instance) {
                    let key = (need.counter, need.resolution, engine, instance);
                    *self.0.entry(key).or_default() += value;
                }
            }
        }
    }
}

impl EventValues for Sums {
    fn value(&self, need: &Need, engine: u32, instance: u32) -> Option<f64> {
        let key = (need.counter, need.resolution, engine, instance);
        Some(self.0.get(&key).copied().unwrap_or(0.0))
    }
}

impl DeviceService {
    fn list(&self) -> Vec<Arc<CountedAgent>> {
        self.agents
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .clone()
    }

    /// Changes the state from `from` to [`CHANGING`], in which no other thread changes it. `false` when it has another
    /// value.
    fn begin_change(&self, from: u8) -> bool {
        self.state
            .compare_exchange(from, CHANGING, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}

/// Has a context's tool choose the counters for each of its agents, and begins to count.
pub(super) fn start(context: &'static Context) -> Status {
    let Some(service) = service(context) else {
        return Status::SUCCESS;
    };
    // A context may be started before the runtime is there; `hsa_initialized` starts the service then.
    if !state::hsa_registered() {
        return Status::ERROR_HSA_NOT_LOADED;
    }
    if !service.begin_change(IDLE) {
        return Status::ERROR_SERVICE_ALREADY_CONFIGURED;
    }
    for agent in service.list() {
        // Cleared before the tool chooses: an agent for which it chooses nothing must not go on with the set of the
        // last start.
        *agent.counting.lock().unwrap_or_else(|e| e.into_inner()) = None;
        // SAFETY: the tool gave the function for this.
        unsafe {
            (agent.choose.function)(context.id(), agent.id, Some(set_config), agent.choose.data);
        }
    }
    // Only now do dispatches add up, with a set that is complete.
    service.state.store(COUNTING, Ordering::Release);
    Status::SUCCESS
}

/// Begins to count in contexts that were started before the HSA runtime was initialised.
pub(crate) fn hsa_initialized() {
    for index in context::bits(super::of_devices()) {
        let context = context::get(index);
        if service(context).is_some_and(|s| s.state.load(Ordering::Acquire) == IDLE) {
            start(context);
        }
    }
}

/// Ends counting. The sums stay until the next start.
pub(super) fn stop(context: &Context) {
    if let Some(service) = service(context)
        && service.begin_change(COUNTING)
    {
        service.state.store(IDLE, Ordering::Release);
    }
}

/// Function by which tools choose the counters of an agent.
unsafe extern "C" fn set_config(context: ContextId, config: ConfigId) -> Status {
    let Some(service) = context::find(context).and_then(service) else {
        return Status::ERROR_CONTEXT_INVALID;
    };
    let Some(config) = config::find(config) else {
        return Status::ERROR_PROFILE_NOT_FOUND;
    };
    // Tools may set a config only from the callback of `start`, while the state is that of a change.
    if service.state.load(Ordering::Acquire) != CHANGING {
        return Status::ERROR_CONFIGURATION_LOCKED;
    }
    let agents = service.list();
    let Some(agent) = agents.iter().find(|agent| agent.index == config.agent) else {
        return Status::ERROR_AGENT_MISMATCH;
    };
    *agent.counting.lock().unwrap_or_else(|e| e.into_inner()) = Some(Counting {
        config,
        sums: Sums::default(),
    });
    Status::SUCCESS
}

/// Calls `with` for each agent of this index that a context counts.
fn each(index: usize, mut with: impl FnMut(&mut Counting)) {
    for context in context::bits(super::of_devices()) {
        let Some(service) = service(context::get(context)) else {
            continue;
        };
        // A sample is a change as well, during which dispatches go on counting.
        if service.state.load(Ordering::Acquire) == IDLE {
            continue;
        }
        for agent in service.list().iter().filter(|agent| agent.index == index) {
            if let Some(counting) = &mut *agent.counting.lock().unwrap_or_else(|e| e.into_inner()) {
                with(counting);
            }
        }
    }
}

/// Whether dispatches of an agent have to be counted.
pub(crate) fn wants(agent: usize) -> bool {
    let mut wanted = false;
    each(agent, |counting| {
        wanted |= !counting.config.needs.is_empty()
    });
    wanted
}

/// Adds the counts of a dispatch to the sums of its agent.
pub(crate) fn add(agent: usize, counts: &Counts) {
    each(agent, |counting| {
        counting.sums.add(&counting.config.needs, counts)
    });
}

/// `rocprofiler_configure_device_counting_service`.
///
/// # Safety
/// The callback stays callable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_configure_device_counting_service(
    context_id: ContextId,
    buffer_id: BufferId,
    agent_id: AgentId,
    callback: ChooseFn,
    user_data: *mut c_void,
) -> Status {
    if state::initialized() != -1 {
        return Status::ERROR_CONFIGURATION_LOCKED;
    }
    let Some(context) = context::find(context_id) else {
        return Status::ERROR_CONTEXT_NOT_FOUND;
    };
    if PC_SAMPLING.has(context) {
        return Status::ERROR_CONTEXT_CONFLICT;
    }
    if dispatch::is_configured(context) {
        return Status::ERROR_AGENT_DISPATCH_CONFLICT;
    }
    let buffer = buffer::find(buffer_id);
    if buffer.is_none() && buffer_id.handle != 0 {
        return Status::ERROR_BUFFER_NOT_FOUND;
    }
    let Some(index) = agents::index_of(agent_id) else {
        return Status::ERROR_AGENT_NOT_FOUND;
    };
    let Some(choose) = callback else {
        return Status::ERROR_INVALID_ARGUMENT;
    };
    let service = SERVICES[context.index].get_or_init(DeviceService::default);
    let mut list = service.agents.lock().unwrap_or_else(|e| e.into_inner());
    if list.iter().any(|agent| agent.index == index) {
        return Status::ERROR_SERVICE_ALREADY_CONFIGURED;
    }
    list.push(Arc::new(CountedAgent {
        index,
        id: agent_id,
        buffer,
        choose: Callback {
            function: choose,
            data: user_data,
        },
        counting: Mutex::new(None),
    }));
    DEVICE_COUNTING.add(context);
    Status::SUCCESS
}

/// `rocprofiler_sample_device_counting_service`.
///
/// # Safety
/// `rec_count` is null, or readable and writable; `output_records` is null or has space for that number of records.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_sample_device_counting_service(
    context_id: ContextId,
    user_data: UserData,
    flags: Flag,
    output_records: *mut Record,
    rec_count: *mut usize,
) -> Status {
    if context_id.handle == 0 {
        return Status::ERROR_CONTEXT_NOT_FOUND;
    }
    if state::finalized() != 0 {
        return Status::ERROR_FINALIZED;
    }
    let active = |c: &&Context| context::active() & (1 << c.index) != 0;
    let Some(context) = context::find(context_id).filter(active) else {
        return Status::ERROR_CONTEXT_NOT_STARTED;
    };
    // Without a place for records the values go to the buffer alone, and the number is not needed.
    let room = if output_records.is_null() {
        0
    } else {
        // The records are written before the call returns, which contradicts an asynchronous request.
        if rec_count.is_null() || flags.0 & Flag::ASYNC.0 != 0 {
            return Status::ERROR_INVALID_ARGUMENT;
        }
        // SAFETY: not null, readable by the contract.
        match unsafe { *rec_count } {
            0 => return Status::ERROR_OUT_OF_RESOURCES,
            room => room,
        }
    };
    let Some(service) = service(context) else {
        return Status::ERROR_CONTEXT_INVALID;
    };
    if !state::hsa_registered() {
        return Status::ERROR_HSA_NOT_LOADED;
    }
    // The change keeps another thread from sampling or stopping at the same time.
    if !service.begin_change(COUNTING) {
        return Status::ERROR_CONTEXT_ERROR;
    }
    let mut all = Vec::new();
    for agent in service.list() {
        let counting = agent.counting.lock().unwrap_or_else(|e| e.into_inner());
        let Some(counting) = &*counting else {
            continue;
        };
        // Device counting has no dispatch; tools tell samples apart by their own value.
        let template = Record {
            user_data,
            agent_id: agent.id,
            ..Record::default()
        };
        let records = counting.config.records(&counting.sums, template);
        if let Some(buffer) = agent.buffer {
            for record in &records {
                buffer.emit_as(Category::COUNTERS, Kind::VALUE.0, record);
            }
        }
        all.extend(records);
    }
    service.state.store(COUNTING, Ordering::Release);
    if output_records.is_null() {
        return Status::SUCCESS;
    }
    // Written even when it is too small, so that the caller knows what it needs.
    store(rec_count, all.len());
    if all.len() > room {
        return Status::ERROR_OUT_OF_RESOURCES;
    }
    // SAFETY: not null, and the caller passed that there is space for this many.
    unsafe { slice::from_raw_parts_mut(output_records, all.len()) }.copy_from_slice(&all);
    Status::SUCCESS
}
