//! Thread trace: the waves of chosen dispatches, or of all while a context is active, as the token streams of the shader
//! engines. The bytes are made in `rpd_gfx::perf` from what waves executed.

use core::{ffi::c_void, slice};
use std::sync::{Arc, Mutex};

use rocprofiler_sdk_sys::{
    rocprofiler_agent_id_t as AgentId, rocprofiler_async_correlation_id_t as AsyncCorrelationId,
    rocprofiler_context_id_t as ContextId, rocprofiler_kernel_dispatch_info_t as Info,
    rocprofiler_status_t as Status, rocprofiler_thread_trace_control_flags_t as Flags,
    rocprofiler_thread_trace_dispatch_callback_t as ChooseFn,
    rocprofiler_thread_trace_parameter_t as Parameter,
    rocprofiler_thread_trace_parameter_type_t as Setting,
    rocprofiler_thread_trace_shader_data_callback_t as ShaderFn,
    rocprofiler_user_data_t as UserData,
};
use rpd_gfx::{
    device::Device,
    perf::{self, Trace, TraceCounter, TraceCounters, TraceSettings, TracedDispatch, TracedObject},
};

use super::{
    agents, codeobj,
    context::{self, Callback, Context, THREAD_TRACE},
    counting, state,
};
use crate::gpu::{agents as machine, clock, observe::Recording};

/// Least size in bytes of the buffer of a request, and of its part for one shader engine.
const LEAST: u64 = 1 << 20;
const LEAST_PER_ENGINE: u64 = 128 << 10;
/// Number of shader engines that have a part in a buffer; an engine that is not traced has a part of one [`PAGE`].
const ENGINES: u64 = 64;
const PAGE: u64 = 4096;
/// Most counters of a trace.
const COUNTERS: usize = 8;
/// Time between two readings of counters for each step of their control, in quads (four cycles).
const READING: u64 = 64;

/// Parameters of a thread trace, as the tool gave them; defaults where it gave none.
#[derive(Debug, Clone)]
struct Settings {
    target: u64,
    engines: u64,
    bytes: u64,
    simds: u64,
    control: u64,
    serialise: bool,
    counters: Vec<(TraceCounter, u32)>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            target: 1,
            engines: 1,
            bytes: 0x800_0000,
            simds: 0xf,
            control: 0,
            serialise: false,
            counters: Vec::new(),
        }
    }
}

impl Settings {
    /// Reads the parameters of a request.
    fn read(parameters: &[Parameter], whole_device: bool) -> Result<Self, Status> {
        let mut settings = Self::default();
        let invalid = Err(Status::ERROR_INVALID_ARGUMENT);
        for parameter in parameters {
            // SAFETY: every member of the union is valid for all bytes; which one counts follows from the type.
            let (value, counter) = unsafe { (parameter.data.value, parameter.data.counter) };
            match parameter.r#type {
                Setting::TARGET_CU => settings.target = value,
                Setting::SHADER_ENGINE_MASK => settings.engines = value,
                Setting::BUFFER_SIZE => settings.bytes = value,
                Setting::SIMD_SELECT => settings.simds = value,
                Setting::PERFCOUNTERS_CTRL => settings.control = value,
                Setting::PERFCOUNTER => {
                    // A counter that does not exist is passed over, as by the SDK.
                    let catalogue = counting::catalogue::current();
                    let Some(known) = catalogue.get(counter.counter_id.handle) else {
                        continue;
                    };
                    // Not of the sequencers, or not among what a trace can have here.
                    let found = TraceCounter::find(&known.name).ok_or(Status::ERROR)?;
                    settings
                        .counters
                        .push((found, (counter.simd_mask & 15) as u32));
                }
                Setting::SERIALIZE_ALL if whole_device && value != 0 => return invalid,
                Setting::SERIALIZE_ALL => settings.serialise = value != 0,
                _ => return invalid,
            }
        }
        // Bounds that the SDK checks.
        let fits = settings.engines != 0
            && settings.bytes >= LEAST
            && settings.target <= 15
            && settings.simds <= 15
            && settings.control <= 32;
        if !fits {
            return invalid;
        }
        if settings.counters.len() > COUNTERS {
            return Err(Status::ERROR_OUT_OF_RESOURCES);
        }
        // Engines share the buffer: with many of them the part of each may be too small.
        if settings.capacity() < LEAST_PER_ENGINE {
            return Err(Status::ERROR);
        }
        Ok(settings)
    }

    /// Number of bytes that each traced engine can write.
    fn capacity(&self) -> u64 {
        // The kernel driver divides the buffer among all engines, with one page for each that is not traced.
        let traced = u64::from(self.engines.count_ones());
        self.bytes.saturating_sub((ENGINES - traced) * PAGE) / traced / PAGE * PAGE
    }

    fn selection(&self, device: &Device) -> perf::Selection {
        let all = (1u64 << device.layout.engines) - 1;
        perf::Selection {
            engines: (self.engines & all) as u32,
            target: Some(self.target as u32),
            samples: None,
        }
    }

    /// Begins the traces of all selected engines.
    fn begin(&self, device: &Device) -> Vec<(u32, Trace)> {
        // The header has 48 bits for the clock.
        let clock = clock::ticks() & 0xffff_ffff_ffff;
        // Generations of the token format by architecture: gfx950, gfx940 to gfx942, and earlier ones.
        let generation = match device.code.version / 100 {
            905 => 6,
            904 => 5,
            _ => 4,
        };
        (0..device.layout.engines)
            .filter(|engine| self.engines >> engine & 1 != 0)
            .map(|engine| {
                let counters =
                    // Counters without an interval are not read.
                    (self.control != 0 && !self.counters.is_empty()).then(|| TraceCounters {
                        interval: self.control * READING,
                        list: self.counters.clone(),
                    });
                let settings = TraceSettings {
                    engine,
                    target: self.target as u32,
                    simds: self.simds as u32,
                    capacity: self.capacity() as usize,
                    generation,
                    counters,
                };
                (engine, Trace::new(settings, clock))
            })
            .collect()
    }
}

/// Thread trace of one agent for one context.
struct TraceService {
    context: usize,
    agent: usize,
    id: AgentId,
    device: &'static Device,
    settings: Settings,
    /// The tool's callback that selects the dispatches to trace; `None` where all are while the context is active.
    choose: Option<Callback<<ChooseFn as IntoIterator>::Item>>,
    shader: <ShaderFn as IntoIterator>::Item,
    /// User data of the shader callback of a whole device.
    user: UserData,
    /// The traces of a whole device while its context is active.
    running: Mutex<Option<Vec<(u32, Trace)>>>,
}

// SAFETY: pointers inside are user data, which are only handed back to the tool.
unsafe impl Send for TraceService {}
// SAFETY: as above.
unsafe impl Sync for TraceService {}

static SERVICES: Mutex<Vec<Arc<TraceService>>> = Mutex::new(Vec::new());

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// Services for which a condition holds.
fn services(has: impl Fn(&TraceService) -> bool) -> Vec<Arc<TraceService>> {
    lock(&SERVICES).iter().filter(|s| has(s)).cloned().collect()
}

/// Whether any context has the service.
pub(crate) fn configured() -> bool {
    !THREAD_TRACE.is_empty()
}

/// Mask of the active contexts that trace.
#[inline]
pub(crate) fn of_dispatches() -> u64 {
    THREAD_TRACE.active()
}

/// Whether kernels of an agent must run one after the other because it is traced.
pub(crate) fn serialises(agent: usize) -> bool {
    let active = of_dispatches();
    active != 0
        && !services(|s| s.agent == agent && active >> s.context & 1 != 0 && s.settings.serialise)
            .is_empty()
}

/// The service that traces a dispatch, with the tool's value for its callback.
pub(crate) struct ChosenTrace {
    service: Arc<TraceService>,
    user: UserData,
}

/// Has the tools decide whether a dispatch is traced; called on the enqueuing thread. `external` returns the external
/// id for a context.
pub(crate) fn choose(
    agent: usize,
    internal: u64,
    info: &Info,
    external: impl Fn(usize) -> u64,
) -> Option<ChosenTrace> {
    let active = of_dispatches();
    if active == 0 {
        return None;
    }
    for service in services(|s| s.agent == agent && active >> s.context & 1 != 0) {
        let mut user = service.user;
        // A service without this callback traces everything on its agent.
        let Some(choose) = &service.choose else {
            return Some(ChosenTrace { service, user });
        };
        let correlation = AsyncCorrelationId {
            internal,
            external: UserData::from(external(service.context)),
        };
        // SAFETY: the tool gave the function for this; what it fills outlives the call.
        let flags = unsafe {
            (choose.function)(
                service.id,
                info.queue_id,
                correlation,
                info.kernel_id,
                info.dispatch_id,
                choose.data,
                &mut user,
            )
        };
        if flags == Flags::START_AND_STOP {
            return Some(ChosenTrace { service, user });
        }
    }
    None
}

impl ChosenTrace {
    /// Events of the dispatch that the performance model has to record.
    pub(crate) fn selection(&self) -> perf::Selection {
        self.service.settings.selection(self.service.device)
    }

    /// Adds a dispatch that ended to the trace of the device, or delivers its own trace.
    pub(crate) fn finish(&self, recording: &Recording) {
        let service = &self.service;
        let packet = &recording.packet;
        let dispatch = TracedDispatch {
            entry: recording.entry,
            base: recording.base,
            packet: recording.packet_address,
            workgroup: [
                packet.workgroup_size_x.into(),
                packet.workgroup_size_y.into(),
                packet.workgroup_size_z.into(),
            ],
            resources: recording.resources,
            // Four pipes for each micro-engine.
            pipe: recording.hardware_queue % 4,
        };
        let units = service.device.layout.units_per_engine;
        // The trace of a whole device is delivered when its context stops.
        if service.choose.is_none() {
            let mut running = lock(&service.running);
            for (_, trace) in running.iter_mut().flatten() {
                trace.dispatch(&dispatch, &recording.timelines, units);
            }
            return;
        }
        let mut traces = service.settings.begin(service.device);
        // Readers of the trace need all code objects that its instructions may be in.
        for object in loaded(service.agent) {
            traces
                .iter_mut()
                .for_each(|(_, trace)| trace.object(&object, false, true));
        }
        for (_, trace) in &mut traces {
            trace.dispatch(&dispatch, &recording.timelines, units);
        }
        service.deliver(traces, self.user);
    }
}

impl TraceService {
    /// Calls the tool with the bytes of each engine.
    fn deliver(&self, traces: Vec<(u32, Trace)>, user: UserData) {
        for (engine, trace) in traces {
            // Without this the reader would see fewer instructions and no reason.
            if trace.is_full() {
                eprintln!(
                    "rpd-sim: thread trace buffer of shader engine {engine} is full ({} bytes): the rest of the trace is lost",
                    self.settings.capacity()
                );
            }
            let mut bytes = trace.finish();
            // SAFETY: the tool gave the function for this; the bytes outlive the call.
            unsafe {
                (self.shader)(
                    self.id,
                    engine.into(),
                    bytes.as_mut_ptr().cast(),
                    bytes.len(),
                    user,
                );
            }
        }
    }
}

fn loaded(agent: usize) -> Vec<TracedObject> {
    let agent = machine::agents()[agent].handle();
    codeobj::loaded_for(agent)
        .into_iter()
        .map(|(id, address, size)| TracedObject { id, address, size })
        .collect()
}

/// Adds to running traces that a code object was loaded, or is about to be unloaded, for the agent with a handle.
pub(crate) fn object_changed(agent: u64, (id, address, size): (u64, u64, u64), unloads: bool) {
    if !configured() {
        return;
    }
    let object = TracedObject { id, address, size };
    for service in services(|s| machine::agents()[s.agent].handle() == agent) {
        for (_, trace) in lock(&service.running).iter_mut().flatten() {
            trace.object(&object, unloads, false);
        }
    }
}

/// Whether a context may become active beside the active ones: an agent writes only one trace of the whole device at a
/// time.
pub(crate) fn may_start(context: &Context) -> bool {
    let others = of_dispatches() & !(1 << context.index);
    if others == 0 || !THREAD_TRACE.has(context) {
        return true;
    }
    let whole = services(|s| s.choose.is_none());
    let own = whole.iter().filter(|s| s.context == context.index);
    let agents: Vec<usize> = own.map(|s| s.agent).collect();
    let mut active = whole.iter().filter(|s| others >> s.context & 1 != 0);
    !active.any(|s| agents.contains(&s.agent))
}

/// Begins the traces of whole devices for a context that became active.
pub(crate) fn started(context: &Context) {
    for service in services(|s| s.context == context.index && s.choose.is_none()) {
        let mut traces = service.settings.begin(service.device);
        for object in loaded(service.agent) {
            traces
                .iter_mut()
                .for_each(|(_, trace)| trace.object(&object, false, true));
        }
        *lock(&service.running) = Some(traces);
    }
}

/// Ends the traces of whole devices for a context that was stopped, and delivers them.
pub(crate) fn stopped(context: &Context) {
    for service in services(|s| s.context == context.index && s.choose.is_none()) {
        let traces = lock(&service.running).take();
        if let Some(traces) = traces {
            service.deliver(traces, service.user);
        }
    }
}

fn configure(
    context_id: ContextId,
    agent_id: AgentId,
    (parameters, count): (*mut Parameter, usize),
    choose: Option<Callback<<ChooseFn as IntoIterator>::Item>>,
    shader: ShaderFn,
    user: UserData,
) -> Status {
    let Some(context) = context::find(context_id) else {
        return Status::ERROR_CONTEXT_NOT_FOUND;
    };
    let whole_device = choose.is_none();
    let others = services(|s| s.context == context.index);
    // The trace buffers of an agent are shared: one context has either kind of trace.
    if others.iter().any(|s| s.choose.is_none() != whole_device) {
        return Status::ERROR_CONTEXT_INVALID;
    }
    let Some(shader) = shader else {
        return Status::ERROR_INVALID_ARGUMENT;
    };
    // No parameters means all defaults.
    let parameters = if parameters.is_null() {
        &[]
    } else {
        // SAFETY: not null, and that long by the ABI's contract.
        unsafe { slice::from_raw_parts(parameters, count) }
    };
    let settings = match Settings::read(parameters, whole_device) {
        Ok(settings) => settings,
        Err(status) => return status,
    };
    let Some(agent) = agents::index_of(agent_id) else {
        return Status::ERROR_AGENT_NOT_FOUND;
    };
    let Some(device) = machine::agents()[agent].device else {
        return Status::ERROR_NOT_AVAILABLE;
    };
    if others.iter().any(|s| s.agent == agent) {
        return Status::ERROR_SERVICE_ALREADY_CONFIGURED;
    }
    lock(&SERVICES).push(Arc::new(TraceService {
        context: context.index,
        agent,
        id: agent_id,
        device,
        settings,
        choose,
        shader,
        user,
        running: Mutex::new(None),
    }));
    THREAD_TRACE.add(context);
    Status::SUCCESS
}

/// `rocprofiler_configure_dispatch_thread_trace_service`.
///
/// # Safety
/// `parameters` is null or has the given number of elements; the callbacks stay callable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_configure_dispatch_thread_trace_service(
    context_id: ContextId,
    agent_id: AgentId,
    parameters: *mut Parameter,
    num_parameters: usize,
    dispatch_callback: ChooseFn,
    shader_callback: ShaderFn,
    callback_userdata: *mut c_void,
) -> Status {
    if state::initialized() != -1 {
        return Status::ERROR_CONFIGURATION_LOCKED;
    }
    let Some(function) = dispatch_callback else {
        return if context::find(context_id).is_none() {
            Status::ERROR_CONTEXT_NOT_FOUND
        } else {
            Status::ERROR_INVALID_ARGUMENT
        };
    };
    let choose = Callback {
        function,
        data: callback_userdata,
    };
    let parameters = (parameters, num_parameters);
    configure(
        context_id,
        agent_id,
        parameters,
        Some(choose),
        shader_callback,
        UserData::from(0),
    )
}

/// `rocprofiler_configure_device_thread_trace_service`.
///
/// # Safety
/// As for dispatches.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_configure_device_thread_trace_service(
    context_id: ContextId,
    agent_id: AgentId,
    parameters: *mut Parameter,
    num_parameters: usize,
    shader_callback: ShaderFn,
    callback_userdata: UserData,
) -> Status {
    if state::initialized() != -1 {
        return Status::ERROR_CONFIGURATION_LOCKED;
    }
    let parameters = (parameters, num_parameters);
    configure(
        context_id,
        agent_id,
        parameters,
        None,
        shader_callback,
        callback_userdata,
    )
}
