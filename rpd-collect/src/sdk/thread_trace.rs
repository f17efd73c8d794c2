//! Thread traces: every instruction of some waves, as the streams that shader engines write.
//!
//! On its own context. Traces of single dispatches come from the dispatch service, whose callback decides for each
//! dispatch on the submitting thread; its context starts with the HSA runtime and stays on, and pauses take effect in the callback. Traces
//! of regions and of consecutive kernels come from the device service: the trace lasts as long as the context is started.
//!
//! Streams are written as they are delivered, so that a target that is killed keeps those of the dispatches that were
//! complete.

use std::collections::BTreeSet;
use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rocprofiler_sdk_sys::{
    Functions, rocprofiler_agent_id_t, rocprofiler_async_correlation_id_t,
    rocprofiler_callback_tracing_kernel_dispatch_data_t, rocprofiler_context_id_t,
    rocprofiler_counter_id_t, rocprofiler_dispatch_id_t, rocprofiler_kernel_id_t,
    rocprofiler_queue_id_t, rocprofiler_status_t, rocprofiler_thread_trace_control_flags_t,
    rocprofiler_thread_trace_counter_t, rocprofiler_thread_trace_parameter_t,
    rocprofiler_thread_trace_parameter_type_t, rocprofiler_thread_trace_parameter_value_t,
    rocprofiler_thread_trace_shader_data_callback_t,
    rocprofiler_thread_trace_shader_data_later_callback_t, rocprofiler_thread_trace_shader_data_t,
    rocprofiler_user_data_t,
};
use rpd_spool::format::trace_flag;
use rpd_spool::options::{CounterOptions, IterationRange, ThreadTraceOptions};

use super::provider::describe;
use super::setup::Setup;
use super::trace::{Phase, Record, Tracer};
use super::{agents, counters, dispatch, forked_end, payload};
use crate::recording::guard::Service;
use crate::recording::kernel_selection::Selection;
use crate::recording::thread_traces::{self, Chunk};
use crate::recording::{meta, process, switch};

type Parameter = rocprofiler_thread_trace_parameter_t;
type Setting = rocprofiler_thread_trace_parameter_type_t;

static SELECTION: Service = Service::new("selection of kernels to trace");
static STREAMS: Service = Service::new("thread traces");
static SYMBOLS: Service = Service::new("kernel filters of thread traces");
static KERNELS: Service = Service::new("kernels of thread traces");

/// Subject of notes about failures.
const PURPOSE: &str = "the thread trace";

/// Version of the SDK from which on parts of streams are delivered as a struct.
const STRUCT_VERSION: u32 = 10_300;
/// Version of the SDK from which on there are [`Setting::LATER_NO_DETAIL`] and
/// [`Setting::LATER_PERFCOUNTER_EXCLUDE_MASK`].
const LATER_SETTINGS_VERSION: u32 = 10_100;

/// Points in time at which traces are made.
enum TraceTrigger {
    /// One trace of each selected dispatch.
    Dispatches,
    /// One trace while recording is on.
    Recording,
    /// One trace from each selected dispatch until this many others have run.
    Consecutive(Window),
}

/// The thread trace, as it is configured.
struct Traced {
    functions: &'static Functions,
    context: rocprofiler_context_id_t,
    selection: Selection,
    when: TraceTrigger,
}

static TRACED: OnceLock<Traced> = OnceLock::new();
/// Number of times that tracing has begun.
static BEGUN: AtomicU64 = AtomicU64::new(0);
/// Whether tracing is going on.
static RUNNING: AtomicBool = AtomicBool::new(false);

/// Configures the service of each GPU that is to be traced. To be called before kernels are registered.
pub(super) fn configure(setup: &Setup<'_>) {
    let Some(options) = &setup.options.thread_trace else {
        return;
    };
    let missing = |what: &str| meta::note(&format!("no thread trace is recorded: {what}"));
    let functions = setup.functions;
    let of_dispatches = functions.rocprofiler_configure_dispatch_thread_trace_service;
    let of_devices = functions.rocprofiler_configure_device_thread_trace_service;
    // A trace over several kernels needs the service of whole devices, which is started and stopped; that of dispatches
    // makes one trace of each.
    let when = if options.consecutive > 0 {
        TraceTrigger::Consecutive(Window::new(options.consecutive))
    } else if options.no_intercept || switch::by_regions(setup.options) {
        TraceTrigger::Recording
    } else {
        TraceTrigger::Dispatches
    };
    let whole_agent = !matches!(when, TraceTrigger::Dispatches);
    let has_service = if whole_agent {
        of_devices.is_some()
    } else {
        of_dispatches.is_some()
    };
    if !has_service {
        return missing(
            "this provider does not have the thread trace service (SDK 1.0 and later have it)",
        );
    }
    let Some(process) = process::existing() else {
        return;
    };
    // An older SDK does not have the parameters of these options.
    if process.provider_version() < LATER_SETTINGS_VERSION {
        for (name, is_wanted) in [
            ("--att-no-detail", options.no_detail),
            ("--att-perfcounter-target-only", options.target_counters),
        ] {
            if is_wanted {
                return missing(&format!("{name} needs a provider of version 1.1 or later"));
            }
        }
    }
    // The filters of kernels are files in the run's directory, beside that of the process.
    let Some(run) = process.directory.path().parent() else {
        return;
    };
    let selection = match Selection::load(&selected(&setup.options.counters), run) {
        Ok(selection) => selection,
        Err(file) => return missing(&format!("the kernel filter {file} cannot be used")),
    };
    let Some(context) = setup.context(PURPOSE) else {
        return;
    };
    // The form of the callback depends on the version, and nothing else tells it.
    let shader = shader_callback(process.provider_version());
    let mut traced = 0;
    for (number, &agent) in agents::gpus().iter().enumerate() {
        if !options.gpus.is_empty() && !options.gpus.contains(&(number as u32)) {
            continue;
        }
        let id = rocprofiler_agent_id_t { handle: agent };
        let (mut parameters, names) = parameters(functions, agent, options, whole_agent);
        // SAFETY: context and agent are the provider's, the array lives through the call, and the callbacks stay loaded.
        let status = unsafe {
            match (whole_agent, of_dispatches, of_devices) {
                (false, Some(service), _) => service(
                    context,
                    id,
                    parameters.as_mut_ptr(),
                    parameters.len(),
                    Some(on_dispatch),
                    shader,
                    std::ptr::null_mut(),
                ),
                (true, _, Some(service)) => service(
                    context,
                    id,
                    parameters.as_mut_ptr(),
                    parameters.len(),
                    shader,
                    rocprofiler_user_data_t { value: 0 },
                ),
                _ => rocprofiler_status_t::ERROR_NOT_IMPLEMENTED,
            }
        };
        if status != rocprofiler_status_t::SUCCESS {
            let says = describe(functions, status);
            meta::note(&format!(
                "GPU {number} is not traced: the provider reports: {says}"
            ));
            // The other GPUs are traced all the same.
            continue;
        }
        traced += 1;
        let capacity = options.bytes_per_engine();
        thread_traces::configured(agent, capacity, whole_agent, &names);
    }
    // A context without a service would be started for nothing.
    if traced == 0 {
        return;
    }
    TRACED.get_or_init(|| Traced {
        functions,
        context,
        selection,
        when,
    });
}

/// Filters of the kernels that are traced: those of counters, and the first dispatch of each kernel unless others were
/// requested.
fn selected(filters: &CounterOptions) -> CounterOptions {
    let mut filters = filters.clone();
    if filters.iterations.is_empty() {
        filters.iterations = vec![IterationRange { first: 1, last: 1 }];
    }
    filters
}

/// The parameters of an agent's service, and the counters among them as text.
fn parameters(
    functions: &Functions,
    agent: u64,
    options: &ThreadTraceOptions,
    whole_agent: bool,
) -> (Vec<Parameter>, Vec<String>) {
    let value = |r#type, value| Parameter {
        r#type,
        data: rocprofiler_thread_trace_parameter_value_t { value },
    };
    let mut parameters = vec![
        value(Setting::TARGET_CU, options.target_cu.into()),
        value(Setting::SHADER_ENGINE_MASK, options.engines.into()),
        value(Setting::BUFFER_SIZE, options.buffer),
        value(Setting::SIMD_SELECT, options.simds.into()),
    ];
    if options.serialize_all && !whole_agent {
        parameters.push(value(Setting::SERIALIZE_ALL, 1));
    }
    if options.no_detail {
        parameters.push(value(Setting::LATER_NO_DETAIL, 1));
    }
    let mut names = Vec::new();
    if !options.counters.is_empty() {
        let wanted: BTreeSet<&str> = (options.counters.iter())
            .map(|counter| counter.name.as_str())
            .collect();
        // Counters that an agent lacks are left out; the front end has reported them.
        let known = counters::available(functions, agent, &wanted).unwrap_or_default();
        parameters.push(value(
            Setting::PERFCOUNTERS_CTRL,
            options.counter_period.into(),
        ));
        if options.target_counters {
            let others = !(1 << options.target_cu);
            parameters.push(value(Setting::LATER_PERFCOUNTER_EXCLUDE_MASK, others));
        }
        for counter in &options.counters {
            if let Some(&handle) = known.get(&counter.name) {
                names.push(counter.label());
                parameters.push(Parameter {
                    r#type: Setting::PERFCOUNTER,
                    data: rocprofiler_thread_trace_parameter_value_t {
                        counter: rocprofiler_thread_trace_counter_t {
                            counter_id: rocprofiler_counter_id_t { handle },
                            simd_mask: counter.simds.into(),
                        },
                    },
                });
            }
        }
    }
    (parameters, names)
}

/// The callback that takes streams, in the form that a provider of this version calls.
fn shader_callback(version: u32) -> rocprofiler_thread_trace_shader_data_callback_t {
    if version < STRUCT_VERSION {
        return Some(on_stream);
    }
    let later: rocprofiler_thread_trace_shader_data_later_callback_t = Some(on_chunk);
    // SAFETY: both are pointers to functions; a provider of that version calls it with the arguments of `on_chunk`.
    unsafe { std::mem::transmute(later) }
}

/// Starts tracing, unless [`hsa_initialised`] will be called. Everything is configured by now.
pub(super) fn begin(setup: &Setup<'_>) {
    let Some(traced) = TRACED.get() else { return };
    if let TraceTrigger::Consecutive(_) = traced.when {
        watch_kernels(setup);
    }
    if !setup.announces_hsa {
        hsa_initialised();
    }
}

/// Starts tracing when the HSA runtime is initialised and has no queue yet.
pub(super) fn hsa_initialised() {
    let Some(traced) = TRACED.get() else { return };
    // The provider makes a queue for each GPU now, whether or not a trace begins.
    forked_end::prepare();
    match traced.when {
        TraceTrigger::Dispatches => traced.start(),
        TraceTrigger::Recording if switch::is_on() => traced.start(),
        TraceTrigger::Recording | TraceTrigger::Consecutive(_) => {}
    }
}

/// Follows a change of recording: it is switched on or off.
pub(super) fn switched(on: bool) {
    if let Some(traced) = TRACED.get()
        && let TraceTrigger::Recording = traced.when
    {
        if on {
            traced.start();
        } else {
            traced.stop();
        }
    }
}

/// Whether a trace of whole devices is under way, of which the provider has delivered nothing.
pub(super) fn holds_streams() -> bool {
    let traced = TRACED.get();
    traced.is_some_and(|traced| !matches!(traced.when, TraceTrigger::Dispatches))
        && RUNNING.load(Ordering::Relaxed)
        && !forked_end::applies()
}

/// Ends traces that go on, and makes the provider deliver their streams: recording is about to end.
pub(super) fn end() {
    if let Some(traced) = TRACED.get()
        && !matches!(traced.when, TraceTrigger::Dispatches)
    {
        traced.stop();
    }
}

/// Notes the name under which a kernel was registered.
pub(super) fn kernel_registered(id: u64, name: &[u8]) {
    if let Some(traced) = TRACED.get() {
        SYMBOLS.run(|| traced.selection.registered(id, name));
    }
}

impl Traced {
    /// Starts tracing. Nothing in a child that was forked when the HSA runtime was initialised: the context and the
    /// data that the GPU writes are its parent's.
    fn start(&self) {
        // Pauses and resumes may be doubled.
        if forked_end::applies() || RUNNING.swap(true, Ordering::AcqRel) {
            return;
        }
        BEGUN.fetch_add(1, Ordering::Relaxed);
        // SAFETY: a context of this provider.
        let status = unsafe { (self.functions.rocprofiler_start_context)(self.context) };
        if status != rocprofiler_status_t::SUCCESS {
            let says = describe(self.functions, status);
            meta::note(&format!(
                "{PURPOSE} is not recorded: the provider reports: {says}"
            ));
        }
    }

    /// Stops tracing, so that the provider delivers the streams of a trace of whole devices. Nothing in a child, as for
    /// [`Traced::start`].
    fn stop(&self) {
        if !forked_end::applies() && RUNNING.swap(false, Ordering::AcqRel) {
            // SAFETY: a context of this provider.
            unsafe { (self.functions.rocprofiler_stop_context)(self.context) };
        }
    }
}

/// State of a trace of consecutive kernels: the kernels that it still waits for.
struct Window {
    /// Kernels that are traced after a selected one.
    length: u64,
    /// Kernels of the trace that have yet to run; 0: nothing is traced.
    left: AtomicU64,
    /// Dispatch id of the last selected kernel.
    selected: AtomicU64,
}

impl Window {
    const fn new(length: u64) -> Window {
        Window {
            length,
            left: AtomicU64::new(0),
            selected: AtomicU64::new(0),
        }
    }

    /// Notes that a selected kernel is submitted. True when the trace has to begin.
    fn open(&self, dispatch: u64) -> bool {
        self.selected.store(dispatch, Ordering::SeqCst);
        self.left.swap(self.length, Ordering::SeqCst) == 0
    }

    /// Notes that a kernel has run. True when the trace has to end.
    fn ran(&self, dispatch: u64) -> bool {
        if dispatch <= self.selected.load(Ordering::SeqCst) {
            return false;
        }
        let before = self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                left.checked_sub(1)
            });
        before == Ok(1)
    }
}

/// Requests reports of the start and the end of every kernel, on its own context.
fn watch_kernels(setup: &Setup<'_>) {
    let Some(kind) = setup.callback_kind(dispatch::KIND) else {
        return;
    };
    let complete = kind.operation(dispatch::COMPLETE);
    setup.trace_always(PURPOSE, kind, &[], Kernels { complete });
}

struct Kernels {
    /// Number of the operation that reports that a kernel has run.
    complete: Option<i32>,
}

impl Tracer for Kernels {
    const SERVICE: &'static Service = &KERNELS;

    fn record(&self, record: &Record, _slot: &mut u64) {
        let Some(traced) = TRACED.get() else { return };
        let TraceTrigger::Consecutive(window) = &traced.when else {
            return;
        };
        type Payload = rocprofiler_callback_tracing_kernel_dispatch_data_t;
        // SAFETY: the payload of this kind, within its callback.
        let Some(payload) = (unsafe { payload::sized::<Payload>(record.payload) }) else {
            return;
        };
        let info = &payload.dispatch_info;
        if Some(record.operation) == self.complete {
            if window.ran(info.dispatch_id) {
                traced.stop();
            }
        } else if record.phase == Phase::ENTER
            && switch::is_on()
            && traced.selection.selects(info.kernel_id)
            && window.open(info.dispatch_id)
        {
            traced.start();
        }
    }
}

unsafe extern "C" fn on_dispatch(
    agent: rocprofiler_agent_id_t,
    _queue: rocprofiler_queue_id_t,
    _correlation: rocprofiler_async_correlation_id_t,
    kernel: rocprofiler_kernel_id_t,
    dispatch: rocprofiler_dispatch_id_t,
    _data: *mut c_void,
    user_data: *mut rocprofiler_user_data_t,
) -> rocprofiler_thread_trace_control_flags_t {
    let traced = SELECTION.on_event(|| {
        let Some(traced) = TRACED.get() else {
            return false;
        };
        if user_data.is_null() || !switch::is_on() || !traced.selection.selects(kernel) {
            return false;
        }
        thread_traces::dispatch(agent.handle, dispatch, kernel);
        true
    });
    if traced != Some(true) {
        return rocprofiler_thread_trace_control_flags_t::NONE;
    }
    // SAFETY: the slot that the provider wants filled; not null.
    unsafe { (*user_data).value = dispatch };
    rocprofiler_thread_trace_control_flags_t::START_AND_STOP
}

/// Takes a whole stream: the form of SDK 1.0.
unsafe extern "C" fn on_stream(
    agent: rocprofiler_agent_id_t,
    engine: i64,
    bytes: *mut c_void,
    size: usize,
    user_data: rocprofiler_user_data_t,
) {
    let chunk = |trace| Chunk {
        agent: agent.handle,
        trace,
        engine: engine as u32,
        number: 0,
        flags: trace_flag::END,
    };
    // SAFETY: the provider's bytes during this call.
    STREAMS.on_event(|| unsafe { take(chunk(number_of(user_data)), bytes, size) });
}

/// Takes a part of a stream, in any order: the form of later versions.
unsafe extern "C" fn on_chunk(
    part: rocprofiler_thread_trace_shader_data_t,
    user_data: rocprofiler_user_data_t,
) {
    type Part = rocprofiler_thread_trace_shader_data_t;
    let mut flags = 0;
    if part.flags & Part::END != 0 {
        flags |= trace_flag::END;
    }
    if part.flags & (Part::GPU_BUFFER_FULL | Part::CPU_BUFFER_FULL) != 0 {
        flags |= trace_flag::FULL;
    }
    let chunk = |trace| Chunk {
        agent: part.agent_id.handle,
        trace,
        engine: part.shader_engine_id as u32,
        number: part.chunk,
        flags,
    };
    // SAFETY: the provider's bytes during this call.
    STREAMS.on_event(|| unsafe {
        take(
            chunk(number_of(user_data)),
            part.data,
            part.data_size as usize,
        )
    });
}

/// The number of the trace that a stream belongs to.
fn number_of(user_data: rocprofiler_user_data_t) -> u64 {
    match user_data.as_u64() {
        0 => BEGUN.load(Ordering::Relaxed),
        dispatch => dispatch,
    }
}

/// # Safety
///
/// `bytes` is null or the address of `size` bytes.
unsafe fn take(chunk: Chunk, bytes: *const c_void, size: usize) {
    let bytes = if bytes.is_null() {
        &[]
    } else {
        // SAFETY: as this function demands.
        unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), size) }
    };
    thread_traces::chunk(chunk, bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks thread-trace-58.
    #[test]
    fn a_trace_of_consecutive_kernels_ends_behind_the_last_selected_one() {
        let window = Window::new(3);
        assert!(!window.ran(1));
        assert!(window.open(2));
        assert!(!window.ran(2), "the selected kernel itself is not counted");
        assert!(!window.ran(3));
        // Matched again: three more from here.
        assert!(!window.open(4));
        assert!(!window.ran(4) && !window.ran(5) && !window.ran(6));
        assert!(window.ran(7));
        assert!(!window.ran(8));
        assert!(window.open(9));
    }
}
