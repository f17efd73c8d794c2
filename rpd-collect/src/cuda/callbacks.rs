//! Calls of the runtime and the driver, on the calling thread.

use std::cell::Cell;
use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cupti_sys::callback::{
    self, CallbackData, GraphData, ModuleData, ResourceData, domain, resource,
};
use cupti_sys::{Functions, result};
use rpd_spool::format::space;
use rpd_spool::options::{CollectorOptions, CudaGraphs};
use rpd_spool::writer::now;
use zerocopy::FromZeros;

use super::operations::{self, Launch, Operation};
use super::origins::{self, Origin, Ring};
use super::shared::{self, CallKind};
use super::{flusher, graphs, sampling};
use crate::recording::fork::ForkHook;
use crate::recording::frames::Frame;
use crate::recording::guard::{self, Service};
use crate::recording::kinds::{self, KindNames};
use crate::recording::thread_local::zeroed_thread_local;
use crate::recording::{arguments, call, device_work, meta, switch, thread};

static SERVICE: Service = Service::new("CUDA calls");

/// Depth to which calls nest at most: a call of the runtime makes calls of the driver, and these hardly any.
const DEPTH: usize = 16;
/// Words of a frame.
const FRAME: usize = 8;
/// Nodes of a graph from which on launches are recorded as a whole, unless an option says otherwise.
const MANY_NODES: u64 = 1024;

const _: () = assert!(size_of::<Frame>() <= FRAME * 8 && align_of::<Frame>() <= 8);

/// The calls that a thread is in.
#[derive(FromZeros)]
struct CudaThread {
    /// Number of frames that are in use.
    depth: Cell<u32>,
    /// Id of the thread in the kernel; 0 before it is known.
    tid: Cell<u32>,
    /// Nodes that were added to graphs in the outermost call.
    captured: Cell<u32>,
    /// CUPTI's ids of the calls.
    ids: [Cell<u32>; DEPTH],
    frames: [Cell<[u64; FRAME]>; DEPTH],
}

zeroed_thread_local! {
    fn local() -> &CudaThread, "rpd_collect_cuda_thread"
}

/// Actions at calls of a kind.
struct Api {
    kind: &'static CallKind,
    operations: Vec<Operation>,
}

/// Actions at callbacks.
struct Config {
    runtime: Api,
    driver: Api,
    ring: &'static Ring,
    /// Whether calls of the driver inside those of the runtime are recorded.
    nested: bool,
    /// Whether regions rename kernels.
    renames: bool,
    /// Whether kernels are recorded.
    kernels: bool,
    /// Whether a program's start and stop of its profiler switch recording.
    by_regions: bool,
    graphs: CudaGraphs,
    /// Whether any call is observed.
    observed: bool,
}

static CONFIG: OnceLock<Config> = OnceLock::new();
/// Whether CUPTI has called at all.
static HEARD: AtomicBool = AtomicBool::new(false);
/// Launches of kernels that have succeeded.
static LAUNCHES: AtomicU64 = AtomicU64::new(0);
/// Nodes of the graphs of the process, by address of the graph.
struct Nodes(UnsafeCell<Option<HashMap<usize, u64>>>);

// SAFETY: only touched with the lock of [`FORK`] held.
unsafe impl Sync for Nodes {}

static NODES: Nodes = Nodes(UnsafeCell::new(None));
/// Whether launches of graphs are to be recorded as a whole, which the flushing thread has begin.
static WHOLE_GRAPHS: AtomicU64 = AtomicU64::new(0);
/// The thread of a forked child is in none of its parent's calls, and has another id.
pub(super) static FORK: ForkHook = ForkHook::new().in_child(|| {
    let thread = local();
    thread.depth.set(0);
    thread.tid.set(0);
    // SAFETY: the child has one thread.
    unsafe { *NODES.0.get() = None };
});

/// Whether calls are observed, so that work has one.
pub(super) fn are_observed() -> bool {
    CONFIG.get().is_some_and(|config| config.observed)
}

/// Whether CUPTI has called at all.
pub(super) fn is_heard() -> bool {
    HEARD.load(Ordering::Relaxed)
}

/// Launches of kernels that have succeeded.
pub(super) fn launches() -> u64 {
    LAUNCHES.load(Ordering::Relaxed)
}

/// The number of nodes of a graph for whose sake launches are to be recorded as a whole from now on; `None` without one, and once it
/// was given.
pub(super) fn take_whole_graphs() -> Option<u64> {
    match WHOLE_GRAPHS.load(Ordering::Relaxed) {
        0 | u64::MAX => None,
        nodes => {
            WHOLE_GRAPHS.store(u64::MAX, Ordering::Relaxed);
            Some(nodes)
        }
    }
}

/// Decides what happens at which callbacks.
pub(super) fn prepare(options: &CollectorOptions, functions: &Functions) {
    let Some(shared) = shared::get() else { return };
    FORK.register();
    let api = |kind: &'static CallKind, number: c_int| {
        let mut operations = operations::of_kind(options, kind, number == domain::DRIVER);
        name_newer(functions, number, kind, &mut operations);
        Api { kind, operations }
    };
    let (runtime, driver) = (
        api(&shared.runtime, domain::RUNTIME),
        api(&shared.driver, domain::DRIVER),
    );
    let mut all = runtime.operations.iter().chain(&driver.operations);
    let observed = all.any(|operation| operation.observed);
    CONFIG.get_or_init(|| Config {
        observed,
        runtime,
        driver,
        ring: origins::prepare(),
        nested: options.traces.cuda_driver,
        renames: options.kernel_rename,
        kernels: options.traces.kernel,
        by_regions: switch::by_regions(options),
        graphs: options.cuda_graphs,
    });
}

/// Names the functions that this build does not know, as CUPTI does, and has their calls recorded without arguments.
fn name_newer(
    functions: &Functions,
    number: c_int,
    kind: &CallKind,
    operations: &mut Vec<Operation>,
) {
    /// Functions beyond those that are known; more are not looked for.
    const MOST: u32 = 400;
    let name = |id: u32| {
        let mut text = std::ptr::null();
        // SAFETY: any id may be requested; the text is static.
        let status = unsafe { (functions.get_callback_name)(number, id, &raw mut text) };
        if status != result::SUCCESS || text.is_null() {
            return None;
        }
        // SAFETY: not null, and text of the library's.
        Some(
            unsafe { CStr::from_ptr(text) }
                .to_string_lossy()
                .into_owned(),
        )
    };
    let known = operations.len() as u32;
    let unnamed = (kind.names.operations.iter())
        .filter(|(_, name)| name.starts_with("reserved"))
        .map(|(id, _)| id.cast_unsigned());
    let newer = known..known + MOST;
    let mut named: Vec<(i32, std::borrow::Cow<'static, str>)> = unnamed
        .filter_map(|id| Some((id.cast_signed(), name(id)?.into())))
        .collect();
    for id in newer {
        let Some(name) = name(id) else { break };
        named.push((id.cast_signed(), name.into()));
        if let Some(last) = operations.last().copied() {
            operations.push(Operation {
                arguments: None,
                launch: Launch::None,
                ..last
            });
        }
    }
    kinds::record(
        space::CALLBACK,
        &[KindNames {
            number: kind.number.into(),
            name: kind.names.name.clone(),
            operations: named,
        }],
    );
}

/// The domains of calls, with their operations by id.
pub(super) fn observed() -> impl Iterator<Item = (c_int, &'static [Operation])> {
    CONFIG.get().into_iter().flat_map(|config| {
        [
            (domain::RUNTIME, &config.runtime.operations[..]),
            (domain::DRIVER, &config.driver.operations[..]),
        ]
    })
}

/// Called by CUPTI.
///
/// # Safety
///
/// `data` is what belongs to a callback of that domain and id.
pub(super) unsafe extern "C" fn on_callback(
    _: *mut c_void,
    number: c_int,
    id: u32,
    data: *const c_void,
) {
    match number {
        domain::RUNTIME | domain::DRIVER => {
            let Some(config) = CONFIG.get() else { return };
            // SAFETY: by the contract of this function.
            let data = unsafe { &*data.cast::<CallbackData>() };
            let api = match number {
                domain::RUNTIME => &config.runtime,
                _ => &config.driver,
            };
            // SAFETY: the eight bytes are ours from the begin of the call to its end.
            unsafe {
                match data.site {
                    callback::ENTER => {
                        let entered = SERVICE.on_event(|| enter(config, api, number, id, data));
                        *data.correlation_data = entered.unwrap_or(0);
                    }
                    _ => match *data.correlation_data {
                        0 => {}
                        frame => {
                            // The time first: what follows is not part of the call.
                            let returned = now();
                            SERVICE.run(|| exit(config, api, id, frame, returned, data));
                        }
                    },
                }
            }
        }
        // SAFETY: by the contract of this function.
        domain::RESOURCE => unsafe { on_resource(id, data.cast::<ResourceData>()) },
        domain::STATE if id == callback::STATE_FATAL_ERROR => {
            SERVICE.on_event(|| {
                meta::note("CUDA: CUPTI has met an error that it cannot go on after; the recording ends there");
            });
        }
        _ => {}
    }
}

/// A call begins. The number of its frame, from 1; 0 when nothing is to be done at its end.
///
/// # Safety
///
/// `data` is that of a callback of CUPTI's.
#[inline]
unsafe fn enter_unchecked(
    config: &Config,
    api: &Api,
    number: c_int,
    id: u32,
    data: &CallbackData,
) -> u64 {
    let thread = local();
    let mut depth = thread.depth.get() as usize;
    if depth > 0 && number == domain::DRIVER && !config.nested {
        return 0;
    }
    // The runtime calls the driver and not itself: a call that an exception or a jump has left is over.
    if depth > 0 && number == domain::RUNTIME && thread.ids[0].get() != data.correlation_id {
        depth = 0;
    }
    let (Some(operation), Some(slot), Some(place)) = (
        api.operations.get(id as usize),
        thread.frames.get(depth),
        thread.ids.get(depth),
    ) else {
        return 0;
    };
    if !switch::is_on() {
        if depth == 0 {
            config.ring.set(data.correlation_id, None);
        }
        return 0;
    }
    let frame = slot.as_ptr().cast::<Frame>();
    if thread.depth.get() as usize > depth {
        // SAFETY: a frame that was entered and not left; it is the outermost of those that are over.
        unsafe { (*frame).leave() };
    }
    place.set(data.correlation_id);
    // SAFETY: a frame has no more room and alignment than the slot, which no other frame uses: it is the next one of this thread.
    let frame = unsafe {
        frame.write(Frame::unused());
        &mut *frame
    };
    let entered = frame.enter();
    if depth == 0 {
        if thread.tid.get() == 0 {
            thread.tid.set(thread::id());
        }
        thread.captured.set(0);
        let region = if config.renames {
            thread::with(|thread| thread.region_and_stream().0).unwrap_or(0)
        } else {
            0
        };
        let origin = Origin {
            thread: thread.tid.get(),
            correlation: frame.correlation,
            region,
        };
        config.ring.set(data.correlation_id, Some(origin));
        flusher::mark();
    }
    thread.depth.set(depth as u32 + 1);
    if operation.recorded {
        let stacks = api.kind.stacks.as_ref();
        let has_stack = stacks.is_some_and(|selection| selection.takes(id.cast_signed()));
        let call = entered.call(api.kind.number, id as usize, has_stack);
        frame.record = match &operation.arguments {
            Some(layout) if !data.parameters.is_null() => {
                // SAFETY: CUPTI passes the arguments of the call in a struct of this layout.
                unsafe {
                    let bytes = std::slice::from_raw_parts(
                        data.parameters.cast::<u8>(),
                        layout.size.into(),
                    );
                    arguments::begin(&call, layout, bytes)
                }
            }
            _ => call.begin(0, 0, |_| {}),
        };
    }
    depth as u64 + 1
}

fn enter(config: &Config, api: &Api, number: c_int, id: u32, data: &CallbackData) -> u64 {
    // SAFETY: called in a callback with its data.
    unsafe { enter_unchecked(config, api, number, id, data) }
}

/// A call returns, whose frame has this number.
fn exit(config: &Config, api: &Api, id: u32, number: u64, returned: u64, data: &CallbackData) {
    let thread = local();
    let depth = number as usize - 1;
    let (Some(operation), Some(slot)) = (api.operations.get(id as usize), thread.frames.get(depth))
    else {
        return;
    };
    // A child that was forked in the call is in none, and a call that was left by a jump is over.
    let is_open = (thread.depth.get() as usize) > depth
        && (thread.ids.get(depth)).is_some_and(|known| known.get() == data.correlation_id);
    if !is_open {
        return;
    }
    thread.depth.set(depth as u32);
    // SAFETY: the frame that `enter` has written; the returned value is valid at the end of a call.
    let (frame, status) = unsafe {
        let status = data.return_value.as_ref().copied().unwrap_or(0);
        (&*slot.as_ptr().cast::<Frame>(), status)
    };
    match &operation.arguments {
        Some(layout) if layout.has_results() && !data.parameters.is_null() => {
            // SAFETY: the arguments of the call, which has returned this status.
            unsafe {
                let bytes =
                    std::slice::from_raw_parts(data.parameters.cast::<u8>(), layout.size.into());
                arguments::end(frame.record, layout, bytes, status.into(), returned);
            }
        }
        _ => call::end(frame.record, status.into(), returned),
    }
    frame.leave();
    if depth == 0 && operation.launch != Launch::None && status == 0 && thread.captured.get() == 0 {
        LAUNCHES.fetch_add(1, Ordering::Relaxed);
        if operation.launch == Launch::One && config.kernels {
            device_work::dispatch_submitted();
        }
    }
    if depth == 0 && config.by_regions {
        obey(api, id);
    }
}

/// Obeys the program's own start and stop of a profiler, where recording is by regions.
#[cold]
fn obey(api: &Api, id: u32) {
    let number = id.cast_signed();
    let mut names = api.kind.names.operations.iter();
    match names
        .find(|(known, _)| *known == number)
        .map(|(_, name)| &**name)
    {
        Some("cudaProfilerStart" | "cuProfilerStart") => switch::resume(),
        Some("cudaProfilerStop" | "cuProfilerStop") => switch::pause(),
        _ => {}
    }
}

/// Something was made or is about to be destroyed.
///
/// # Safety
///
/// `data` is what belongs to a callback of this id.
unsafe fn on_resource(id: u32, data: *const ResourceData) {
    HEARD.store(true, Ordering::Relaxed);
    if guard::is_finalized() {
        return;
    }
    // SAFETY: by the contract of this function.
    let data = unsafe { data.as_ref() };
    match id {
        resource::GRAPH_NODE_CREATED
        | resource::GRAPH_NODE_CLONED
        | resource::GRAPH_EXEC_CREATE_STARTING => {
            // SAFETY: for graphs the descriptor is about the graph.
            let graph =
                data.and_then(|data| unsafe { data.descriptor.cast::<GraphData>().as_ref() });
            if let Some(graph) = graph {
                on_graph(id, graph);
            }
        }
        resource::CONTEXT_CREATED
        | resource::CONTEXT_DESTROY_STARTING
        | resource::MODULE_LOADED => {
            let Some(data) = data else { return };
            // SAFETY: for modules the descriptor is about the module.
            SERVICE.run(|| unsafe {
                let module = (id == resource::MODULE_LOADED)
                    .then(|| data.descriptor.cast::<ModuleData>().as_ref())
                    .flatten();
                sampling::on_resource(id, data.context, module);
            });
        }
        _ => {}
    }
}

/// A node was added to a graph or copied with it, or a graph is about to be made executable.
fn on_graph(id: u32, graph: &GraphData) {
    let thread = local();
    if id == resource::GRAPH_NODE_CREATED {
        thread.captured.set(thread.captured.get().saturating_add(1));
    }
    SERVICE.on_event(|| {
        let Some(config) = CONFIG.get() else { return };
        match id {
            resource::GRAPH_NODE_CREATED => {
                // The outermost call that the thread is in.
                let call = (thread.depth.get() > 0).then(|| {
                    // SAFETY: a frame that was entered and not left.
                    unsafe { (*thread.frames[0].as_ptr().cast::<Frame>()).correlation }
                });
                graphs::created(graph, call.unwrap_or(0));
            }
            resource::GRAPH_NODE_CLONED => {
                graphs::cloned(graph);
                return;
            }
            _ => {}
        }
        if config.graphs == CudaGraphs::Auto && config.kernels {
            count_nodes(id, graph);
        }
    });
}

/// Counts the nodes of graphs: those with many are recorded as a whole.
fn count_nodes(id: u32, graph: &GraphData) {
    let Some(_guard) = FORK.lock() else { return };
    // SAFETY: the lock is held.
    let nodes = unsafe { &mut *NODES.0.get() }.get_or_insert_default();
    let key = graph.graph as usize;
    if id == resource::GRAPH_NODE_CREATED {
        *nodes.entry(key).or_default() += 1;
        return;
    }
    // The graph may be changed and made executable again, or its address be that of another.
    let count = nodes.remove(&key).unwrap_or(0);
    if count > MANY_NODES && WHOLE_GRAPHS.load(Ordering::Relaxed) == 0 {
        WHOLE_GRAPHS.store(count, Ordering::Relaxed);
        flusher::mark();
    }
}
