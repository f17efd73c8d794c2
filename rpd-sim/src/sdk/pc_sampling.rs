//! PC sampling: methods and intervals that agents have, the service, and the samples of dispatches as records.
//!
//! Samples show what the interpreter executed, at times of the performance model: see `rpd_gfx::perf`.

use core::{
    ffi::{c_char, c_int, c_void},
    ptr,
};
use std::{
    collections::HashMap,
    sync::{Mutex, OnceLock},
};

use rocprofiler_sdk_sys::{
    rocprofiler_agent_id_t as AgentId, rocprofiler_async_correlation_id_t as AsyncCorrelationId,
    rocprofiler_available_pc_sampling_configurations_cb_t as QueryFn,
    rocprofiler_buffer_category_t as Category, rocprofiler_buffer_id_t as BufferId,
    rocprofiler_context_id_t as ContextId,
    rocprofiler_pc_sampling_configuration_flags_t as ConfigurationFlags,
    rocprofiler_pc_sampling_configuration_t as Configuration,
    rocprofiler_pc_sampling_instruction_not_issued_reason_t as NotIssued,
    rocprofiler_pc_sampling_instruction_type_t as InstructionType,
    rocprofiler_pc_sampling_method_t as Method, rocprofiler_pc_sampling_record_kind_t as Kind,
    rocprofiler_pc_sampling_unit_t as Unit, rocprofiler_status_t as Status,
};
use rpd_gfx::{device::Device, perf};

use super::{
    agents,
    buffer::{self, Buffer},
    context::{self, PC_SAMPLING},
    counting, pc_records as records, state, variables,
};
use crate::gpu::{
    agents as machine, exec,
    observe::{Interval, Recording},
};

/// Environment variable that must be set for PC sampling to be available.
const ENABLED: &str = "ROCPROFILER_PC_SAMPLING_BETA_ENABLED";
/// Shortest and longest interval of stochastic sampling, in cycles.
const CYCLES: [usize; 2] = [256, 1 << 31];

/// PC sampling of one agent.
struct SamplingService {
    agent: usize,
    method: Method,
    buffer: &'static Buffer,
    device: &'static Device,
    state: Mutex<SamplingState>,
}

struct SamplingState {
    sampler: perf::Sampler,
    /// Nanoseconds that the last dispatch of each kernel took.
    durations: HashMap<u64, f64>,
}

/// The only context that samples, with the agents that it samples.
#[derive(Default)]
struct Configured {
    context: Option<usize>,
    services: Vec<&'static SamplingService>,
}

static CONFIGURED: Mutex<Configured> = Mutex::new(Configured {
    context: None,
    services: Vec::new(),
});

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// Whether any context has the service.
pub(crate) fn configured() -> bool {
    !PC_SAMPLING.is_empty()
}

/// Mask of the active context that samples; 0 if there is none.
#[inline]
pub(crate) fn of_dispatches() -> u64 {
    PC_SAMPLING.active()
}

fn service(agent: usize) -> Option<&'static SamplingService> {
    let configured = lock(&CONFIGURED);
    configured
        .services
        .iter()
        .find(|s| s.agent == agent)
        .copied()
}

/// Selection for recording a dispatch for samples; `None` if its agent is not sampled.
pub(crate) fn selection(agent: usize, kernel: u64) -> Option<perf::Selection> {
    if of_dispatches() == 0 {
        return None;
    }
    let service = service(agent)?;
    let state = lock(&service.state);
    // Recording slows short kernels down, and few of them are hit.
    let known = state.durations.get(&kernel);
    let hit = known.is_none_or(|&last| state.sampler.may_hit(service.device, 1.5 * last));
    Some(perf::Selection {
        samples: hit.then(|| state.sampler.effort(service.device)),
        ..perf::Selection::default()
    })
}

/// A dispatch that ended, with the ids for its samples.
pub(crate) struct SampledDispatch {
    /// Index of the agent that ran it.
    pub(crate) agent: usize,
    /// Number of the dispatch in the process, from 1.
    pub(crate) id: u64,
    /// Id of the kernel symbol.
    pub(crate) kernel: u64,
    /// Correlation id of the dispatch's records.
    pub(crate) correlation: AsyncCorrelationId,
}

/// Takes samples of a dispatch that was recorded, and writes them into the buffer of its context.
pub(crate) fn finish(dispatch: &SampledDispatch, recording: &Recording, time: Interval) {
    let Some(service) = service(dispatch.agent) else {
        return;
    };
    let duration = time.end - time.start;
    let place = records::SampleBase::new(dispatch, recording, time);
    let mut state = lock(&service.state);
    // Kept for the next dispatch of this kernel: how much of it is worth recording depends on its duration.
    state.durations.insert(dispatch.kernel, duration as f64);
    let emit = &mut |sample: &perf::Sample| {
        if service.method == Method::HOST_TRAP {
            let record = place.host_trap(sample);
            service
                .buffer
                .emit_as(Category::PC_SAMPLING, Kind::HOST_TRAP_V0_SAMPLE.0, &record);
        } else {
            let record = place.stochastic(sample);
            service
                .buffer
                .emit_as(Category::PC_SAMPLING, Kind::STOCHASTIC_V0_SAMPLE.0, &record);
        }
    };
    let (timelines, device) = (&recording.timelines, service.device);
    state.sampler.dispatch(timelines, device, duration, emit);
}

/// Sampling configurations of a device.
fn configurations(device: &Device) -> Vec<Configuration> {
    let base = Configuration {
        size: size_of::<Configuration>() as u64,
        ..Configuration::default()
    };
    let mut all = Vec::new();
    if has_method(device, Method::HOST_TRAP) {
        // Any interval in microseconds: the host's timer sets it, not the hardware.
        all.push(Configuration {
            method: Method::HOST_TRAP,
            unit: Unit::TIME,
            min_interval: 1,
            max_interval: usize::MAX,
            flags: ConfigurationFlags::NONE.0.into(),
            ..base
        });
    }
    if has_method(device, Method::STOCHASTIC) {
        all.push(Configuration {
            method: Method::STOCHASTIC,
            unit: Unit::CYCLES,
            min_interval: CYCLES[0],
            max_interval: CYCLES[1],
            flags: ConfigurationFlags::INTERVAL_POW2.0.into(),
            ..base
        });
    }
    all
}

/// Whether the hardware of a device has a sampling method. Compute units of gfx94x and later pick samples themselves.
fn has_method(device: &Device, method: Method) -> bool {
    // gfx940 to gfx942, and gfx950.
    let picks = device.code.version / 100 == 904 || device.code.version / 100 == 905;
    match method {
        Method::HOST_TRAP => picks || device.code.version == 90_010,
        Method::STOCHASTIC => picks,
        _ => false,
    }
}

/// Checks a configuration as the kernel driver does.
fn check(device: &Device, method: Method, unit: Unit, interval: u64) -> Result<(), Status> {
    if method == Method::NONE || method.0 >= Method::LAST.0 {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    if !has_method(device, method) {
        return Err(Status::ERROR_NOT_AVAILABLE);
    }
    if unit == Unit::NONE || unit.0 >= Unit::LAST.0 {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    if method == Method::STOCHASTIC && !interval.is_power_of_two() {
        return Err(Status::ERROR_INVALID_ARGUMENT);
    }
    // The driver knows pairs of method and unit, not each by itself.
    let range = |c: &Configuration| c.min_interval as u64..=c.max_interval as u64;
    let has =
        |c: &Configuration| (c.method, c.unit) == (method, unit) && range(c).contains(&interval);
    if configurations(device).iter().any(has) {
        Ok(())
    } else {
        Err(Status::ERROR)
    }
}

/// Seed of all samples: that of the order of execution, otherwise a random number.
fn seed() -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    *SEED.get_or_init(|| exec::seed().unwrap_or_else(|| context::random_offset(5)))
}

/// `rocprofiler_query_pc_sampling_agent_configurations`.
///
/// # Safety
/// The callback can be called with the data.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_query_pc_sampling_agent_configurations(
    agent_id: AgentId,
    cb: QueryFn,
    user_data: *mut c_void,
) -> Status {
    if variables::truth(ENABLED) != Some(true) {
        return Status::ERROR_NOT_IMPLEMENTED;
    }
    let Some(index) = agents::index_of(agent_id) else {
        return Status::ERROR_AGENT_NOT_FOUND;
    };
    let Some(callback) = cb else {
        return Status::ERROR_INVALID_ARGUMENT;
    };
    let Some(device) = machine::agents()[index].device else {
        // The driver has no GPU of that number.
        return Status::ERROR;
    };
    let mut all = configurations(device);
    if let Some(service) = service(index) {
        // A session hides all but itself.
        all.retain(|c| c.method == service.method);
    }
    // SAFETY: the tool gave the function for this; the array outlives the call.
    unsafe { callback(all.as_ptr(), all.len(), user_data) }
}

/// Sets up PC sampling of an agent into a buffer. Fails with `ERROR` when no configuration of the agent has this
/// method, unit and interval.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_configure_pc_sampling_service(
    context_id: ContextId,
    agent_id: AgentId,
    method: Method,
    unit: Unit,
    interval: u64,
    buffer_id: BufferId,
    _flags: c_int,
) -> Status {
    if variables::truth(ENABLED) != Some(true) {
        return Status::ERROR_NOT_IMPLEMENTED;
    }
    if state::initialized() != -1 {
        return Status::ERROR_CONFIGURATION_LOCKED;
    }
    let Some(agent) = agents::index_of(agent_id) else {
        return Status::ERROR_AGENT_NOT_FOUND;
    };
    let Some(context) = context::find(context_id) else {
        return Status::ERROR_CONTEXT_NOT_FOUND;
    };
    let Some(buffer) = buffer::find(buffer_id) else {
        return Status::ERROR_BUFFER_NOT_FOUND;
    };
    // The SDK refuses to count and to sample in one context.
    if counting::is_configured(context) {
        return Status::ERROR_CONTEXT_CONFLICT;
    }
    let mut configured = lock(&CONFIGURED);
    let own = configured.context == Some(context.index);
    if own && configured.services.iter().any(|s| s.agent == agent) {
        return Status::ERROR_SERVICE_ALREADY_CONFIGURED;
    }
    // Only one context of a process can sample, the first that is configured.
    if configured.context.is_some() && !own {
        return Status::ERROR;
    }
    // A refusal of the driver below leaves the process's only slot in use, as in the SDK.
    configured.context = Some(context.index);
    let Some(device) = machine::agents()[agent].device else {
        return Status::ERROR_NOT_AVAILABLE;
    };
    if let Err(status) = check(device, method, unit, interval) {
        return status;
    }
    // The sampler counts nanoseconds or cycles; the interface has microseconds for host traps.
    let (method_of_sampler, interval) = if method == Method::HOST_TRAP {
        (perf::Method::HostTrap, interval.saturating_mul(1000))
    } else {
        (perf::Method::Stochastic, interval)
    };
    // Agents have samples at different times.
    let seed = seed().wrapping_add(agent as u64);
    // Never freed: samples of a dispatch may arrive while the process ends.
    configured
        .services
        .push(Box::leak(Box::new(SamplingService {
            agent,
            method,
            buffer,
            device,
            state: Mutex::new(SamplingState {
                sampler: perf::Sampler::new(method_of_sampler, interval, device, seed),
                durations: HashMap::new(),
            }),
        })));
    PC_SAMPLING.add(context);
    Status::SUCCESS
}

/// `rocprofiler_get_pc_sampling_instruction_type_name`: the name of the enumerator, null when it is unknown.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_get_pc_sampling_instruction_type_name(
    instruction_type: InstructionType,
) -> *const c_char {
    instruction_type
        .c_name()
        .map_or(ptr::null(), |name| name.as_ptr())
}

/// `rocprofiler_get_pc_sampling_instruction_not_issued_reason_name`: the name of the enumerator, null when it is
/// unknown.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_get_pc_sampling_instruction_not_issued_reason_name(
    not_issued_reason: NotIssued,
) -> *const c_char {
    not_issued_reason
        .c_name()
        .map_or(ptr::null(), |name| name.as_ptr())
}
