//! A process that waits to be attached to, and is recorded only meanwhile.
//!
//! Until then its runtimes' tables are kept as they are, but for a few hooks in functions that are rarely called ([`HOOKS`]):
//! they note what a recording that begins later has to know. A thread sleeps on the process's control page
//! ([`rpd_spool::idle`]). At a request it begins a recording in the directory that the page names, and puts wrappers and
//! hooks into the tables; when the recording ends it takes them out again.

use std::cell::UnsafeCell;
use std::ffi::{OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::time::{Duration, Instant};

use rpd_spool::control::{RecordingState, Request};
use rpd_spool::format::PROVIDER_DIRECT;
use rpd_spool::idle::{self, IdlePage};
use rpd_spool::options::{CaptureOptions, CollectorOptions, ProviderChoice};

use super::hooks::{Hook, hook};
use super::hsa::SUCCESS;
use super::tables::{KnownTable, Patched};
use super::{
    agents, borrowed, calls, clock, code_objects, copies, dispatch, doorbells, entry, hsa, markers,
    poller, tables,
};
use crate::recording::background::{InChild, spawn};
use crate::recording::fork::ForkHook;
use crate::recording::guard::{self, Service};
use crate::recording::{meta, process};

static SERVICE: Service = Service::new("attaching");

/// Names of runtimes that give the GPU work.
const GPU: [&str; 2] = ["hsa", "hip"];
/// Interval of the looks at whether the rpd that is attached still runs.
const LOOK: Duration = Duration::from_secs(1);
/// Time in which calls that return when a recording ends store their ends.
const RETURNING: Duration = Duration::from_millis(20);
/// Longest wait of an exiting program for a recording that begins or ends.
const LONGEST_CHANGE: Duration = Duration::from_secs(8);

/// The hook whose lock guards [`STATE`], and is held while tables are changed. It is registered after those of the modules
/// that are called meanwhile.
static FORK: ForkHook = ForkHook::new().in_child(forget_parent);

/// The page of this process; null before there is one. Never freed.
static PAGE: AtomicPtr<IdlePage> = AtomicPtr::new(std::ptr::null_mut());
/// Whether there is a recording.
static ATTACHED: AtomicBool = AtomicBool::new(false);
/// Whether a recording begins or ends now.
static CHANGING: AtomicBool = AtomicBool::new(false);
/// Whether the program is at its end: no recording begins any more.
static AT_END: AtomicBool = AtomicBool::new(false);
/// Whether the program itself wants the times of copies.
static COPIES_TIMED: AtomicBool = AtomicBool::new(false);

/// A runtime whose tables are kept.
struct Runtime {
    name: String,
    version: u64,
    instance: u64,
    tables: Vec<KnownTable>,
}

/// What is known of the program.
#[derive(Default)]
struct State {
    runtimes: Vec<Runtime>,
    /// Executables that are frozen and not destroyed.
    executables: Vec<u64>,
    /// Slots with wrappers and hooks of the present recording.
    patched: Vec<Patched>,
}

impl State {
    fn has_hsa(&self) -> bool {
        self.runtimes.iter().any(|runtime| runtime.name == "hsa")
    }
}

struct SharedState(UnsafeCell<Option<State>>);

// SAFETY: only touched with the lock of [`FORK`] held, or by the one thread of a forked child.
unsafe impl Sync for SharedState {}

static STATE: SharedState = SharedState(UnsafeCell::new(None));

fn with_state<T>(act: impl FnOnce(&mut State) -> T) -> Option<T> {
    let _guard = FORK.lock()?;
    // SAFETY: the lock is held.
    Some(act(unsafe { &mut *STATE.0.get() }.get_or_insert_default()))
}

/// A forked child is not recorded, and cannot be attached to by what its parent has of its runtimes.
fn forget_parent() {
    AT_END.store(true, Ordering::Relaxed);
    CHANGING.store(false, Ordering::Relaxed);
    PAGE.store(std::ptr::null_mut(), Ordering::Relaxed);
    // SAFETY: the child has one thread, and the lock was held over the fork.
    let state = unsafe { &mut *STATE.0.get() };
    if let Some(state) = state {
        // A child whose parent had no runtime may have its own, and is attached to by that.
        if state.runtimes.is_empty() {
            AT_END.store(false, Ordering::Relaxed);
        }
        for patched in &state.patched {
            patched.undo();
        }
        // Its memory is left alone: the fork may have happened in a signal handler.
        std::mem::forget(std::mem::take(&mut state.patched));
    } else {
        AT_END.store(false, Ordering::Relaxed);
    }
    if ATTACHED.swap(false, Ordering::Relaxed) {
        calls::switch(false);
        entry::set_configured(false);
        guard::set_finalized();
        process::wait_for_attach();
    }
}

fn page() -> Option<&'static IdlePage> {
    // SAFETY: null, or a leaked box.
    unsafe { PAGE.load(Ordering::Acquire).as_ref() }
}

/// Keeps the tables of a runtime, which has this version and instance.
///
/// # Safety
///
/// `tables` are those with which the runtime registers, as [`entry::set_api_table`] demands of them.
pub(super) unsafe fn keep(name: &str, (version, instance): (u64, u64), tables: &[*mut c_void]) {
    // Before the hook of this module: see there.
    code_objects::FORK.register();
    poller::FORK.register();
    process::register_hooks();
    let kept = with_state(|state| {
        // A second copy of a runtime is not recorded.
        if state.runtimes.iter().any(|runtime| runtime.name == name) {
            return false;
        }
        // SAFETY: as this function demands.
        let tables = unsafe { tables::keep(name, tables, &HOOKS) };
        if tables.is_empty() {
            return false;
        }
        state.runtimes.push(Runtime {
            name: name.to_owned(),
            version,
            instance,
            tables,
        });
        // A library that is loaded during a recording.
        if ATTACHED.load(Ordering::Acquire)
            && let Some(process) = process::existing()
            && let Some(runtime) = state.runtimes.last()
        {
            let patched = begin_runtime(process, runtime, &state.executables);
            state.patched.extend(patched);
        }
        true
    });
    // A program that has markers alone does not use the GPU.
    if kept == Some(true) && GPU.contains(&name) {
        serve();
    }
}

/// Makes the control page and starts the thread that sleeps on it, once for each process.
fn serve() {
    if page().is_some() || AT_END.load(Ordering::Acquire) {
        return;
    }
    // Where there is no place for the page nobody can attach, and the program runs as ever.
    let Ok(made) = IdlePage::create() else { return };
    let made: &'static IdlePage = Box::leak(Box::new(made));
    PAGE.store(std::ptr::from_ref(made).cast_mut(), Ordering::Release);
    entry::end_at_exit();
    let served = spawn("rpd-attach", InChild::Hook(&FORK), || {
        SERVICE.run(run);
    });
    if !served {
        made.remove();
    }
}

/// Takes requests: the body of the thread.
fn run() {
    let Some(page) = page() else { return };
    while !AT_END.load(Ordering::Acquire) {
        if ATTACHED.load(Ordering::Acquire) {
            if !page.server.serve_within(LOOK, |request| act(page, request)) && !page.is_held() {
                change(page, finish);
            }
        } else {
            page.server.serve_one(|request| act(page, request));
        }
    }
}

fn act(page: &IdlePage, request: Request) {
    match request {
        Request::Attach => {
            let outcome = change(page, || begin(&page.server.text()));
            page.server.answer(match &outcome {
                Ok(()) => Ok(()),
                Err(problem) => Err(problem),
            });
        }
        Request::Detach => {
            change(page, finish);
            page.server.answer(Ok(()));
        }
        Request::Flush => entry::flush(),
        // Of a recording, whose own page has them.
        Request::Start | Request::Stop => {}
    }
}

/// Lets `act` begin or end a recording: no other thread does so meanwhile.
fn change<T>(page: &IdlePage, act: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    while CHANGING.swap(true, Ordering::AcqRel) && start.elapsed() < LONGEST_CHANGE {
        std::thread::sleep(Duration::from_millis(1));
    }
    let result = act();
    page.server.show(RecordingState {
        requested: ATTACHED.load(Ordering::Acquire),
        stopped: false,
    });
    CHANGING.store(false, Ordering::Release);
    result
}

/// What a recording that begins late lacks, as a note.
const LATE: &str = "recorded from the time at which rpd attached: memory that was allocated before has no allocation (its frees \
    are shown), ROCTx ranges that were open have no begin and are not shown, calls that had begun are missing, and \
    streams are numbered as they are used";

/// Begins a recording in the directory of a run. The error is text for the user.
fn begin(run: &[u8]) -> Result<(), String> {
    // The rpd that was attached before is gone, and its recording was not ended yet.
    finish();
    if AT_END.load(Ordering::Acquire) {
        return Err("the program is at its end".to_owned());
    }
    let run = Path::new(OsStr::from_bytes(run));
    let shown = run.display();
    let text = idle::read_options(run)
        .map_err(|error| format!("the process cannot read what rpd wrote to {shown}: {error}"))?;
    let options = CollectorOptions {
        provider: ProviderChoice::Direct,
        capture: CaptureOptions::default(),
        disable_signal_handlers: true,
        ..CollectorOptions::from_text(&text)
    };
    code_objects::forget();
    markers::forget();
    dispatch::number_anew();
    doorbells::take_not_followed();
    let process = process::attach(run, options)
        .map_err(|error| format!("the process cannot write to {shown}: {error}"))?;
    guard::set_begun();
    entry::configure_traces(process);
    let done = with_state(|state| {
        let version = state.runtimes.first().map_or(0, |runtime| runtime.version);
        process.set_provider_version(PROVIDER_DIRECT | version as u32);
        for runtime in &state.runtimes {
            let patched = begin_runtime(process, runtime, &state.executables);
            state.patched.extend(patched);
        }
        // Under the lock, so that a runtime that comes up next is recorded as well.
        ATTACHED.store(true, Ordering::Release);
    });
    if done.is_none() {
        return Err("the process cannot take requests now".to_owned());
    }
    poller::start();
    entry::set_configured(true);
    entry::begin(process);
    meta::note(LATE);
    Ok(())
}

/// Begins to record the calls of a runtime. With the lock held.
fn begin_runtime(
    process: &process::Process,
    runtime: &Runtime,
    executables: &[u64],
) -> Vec<Patched> {
    if runtime.name == "hsa" {
        clock::prepare();
        agents::prepare();
        for queue in live_queues() {
            doorbells::watch(queue);
        }
        if process.options.traces.memory_copy {
            copies::enable_times();
        }
        for executable in executables {
            code_objects::loaded(*executable);
        }
    }
    entry::initialised(&runtime.name, runtime.version, runtime.instance);
    let tables = runtime.tables.iter();
    tables
        .flat_map(|table| tables::patch(process, *table))
        .collect()
}

fn live_queues() -> impl Iterator<Item = &'static dispatch::Queue> {
    dispatch::queues().filter(|queue| queue.handle.load(Ordering::Acquire) != 0)
}

/// Ends the recording, if there is one.
fn finish() {
    if !ATTACHED.swap(false, Ordering::AcqRel) {
        return;
    }
    calls::switch(false);
    dispatch::count_paused(false);
    // The hooks are still there: times of work are read before the program changes the signals that have them.
    poller::drain(entry::DRAIN);
    borrowed::give_up();
    with_state(|state| {
        for patched in state.patched.drain(..) {
            patched.undo();
        }
        if state.has_hsa() && hsa::clock_frequency() != 0 {
            for queue in live_queues() {
                doorbells::unwatch(queue);
            }
            copies::set_times(COPIES_TIMED.load(Ordering::Relaxed));
        }
    });
    std::thread::sleep(RETURNING);
    let not_followed = doorbells::take_not_followed();
    if not_followed > 0 {
        meta::note(&format!(
            "{not_followed} dispatches are not recorded: their completion signals serve other work as well, which cannot be \
             changed in a program that is attached to"
        ));
    }
    code_objects::end();
    entry::set_configured(false);
    guard::set_finalized();
    poller::join();
    if let Some(process) = process::existing() {
        meta::end(process);
    }
    process::detach();
}

/// The program exits: ends the recording, and takes no further requests.
pub(super) fn end() {
    if AT_END.swap(true, Ordering::AcqRel) {
        return;
    }
    if let Some(page) = page()
        && page.is_own()
    {
        change(page, finish);
        page.remove();
    }
}

hook! {
    QUEUE_CREATE: HSA_CORE_API::hsa_queue_create,
    fn queue_create(
        agent: u64, size: u32, kind: u32, callback: *const c_void, data: *mut c_void, private: u32, group: u32,
        result: *mut u64,
    ) -> u32,
    |next| {
        let status = next(agent, size, kind, callback, data, private, group, result);
        if status == SUCCESS && !result.is_null() {
            SERVICE.run(|| with_state(|_| {
                // SAFETY: the runtime has written the new queue there.
                let handle = unsafe { result.read() };
                // SAFETY: as above.
                unsafe { doorbells::made(agent, handle) };
                if ATTACHED.load(Ordering::Acquire)
                    && let Some(queue) = doorbells::find(handle)
                {
                    doorbells::watch(queue);
                }
            }));
        }
        status
    }
}

hook! {
    QUEUE_DESTROY: HSA_CORE_API::hsa_queue_destroy,
    fn queue_destroy(handle: u64) -> u32,
    |next| {
        let queue = SERVICE.run(|| {
            if ATTACHED.load(Ordering::Acquire) {
                poller::pass();
            }
            // Under the lock: a recording that begins uses the queues that it finds.
            with_state(|_| {
                let queue = doorbells::find(handle)?;
                queue.handle.store(0, Ordering::Release);
                queue.destroyed.store(rpd_spool::writer::now(), Ordering::Release);
                Some(queue)
            })
        });
        let status = next(handle);
        if status != SUCCESS && let Some(queue) = queue.flatten().flatten() {
            queue.destroyed.store(0, Ordering::Release);
            queue.handle.store(handle, Ordering::Release);
        }
        status
    }
}

hook! {
    PROFILER_ENABLED: HSA_AMD_EXT_API::hsa_amd_profiling_set_profiler_enabled,
    fn profiler_enabled(queue: u64, enable: i32) -> u32,
    |next| {
        let found = SERVICE.run(|| doorbells::find(queue)).flatten();
        if let Some(found) = found {
            found.ring.profiled.store(enable != 0, Ordering::Relaxed);
            // The times are needed whether or not the program requests them.
            if ATTACHED.load(Ordering::Acquire) {
                return next(queue, 1);
            }
        }
        next(queue, enable)
    }
}

hook! {
    TIMES: HSA_AMD_EXT_API::hsa_amd_profiling_async_copy_enable,
    fn async_copy_enable(enable: bool) -> u32,
    |next| {
        COPIES_TIMED.store(enable, Ordering::Relaxed);
        next(enable || ATTACHED.load(Ordering::Acquire))
    }
}

hook! {
    FREEZE: HSA_CORE_API::hsa_executable_freeze,
    fn executable_freeze(executable: u64, options: *const c_char) -> u32,
    |next| {
        let status = next(executable, options);
        if status == SUCCESS {
            SERVICE.run(|| with_state(|state| {
                if !state.executables.contains(&executable) {
                    state.executables.push(executable);
                }
                if ATTACHED.load(Ordering::Acquire) {
                    code_objects::loaded(executable);
                }
            }));
        }
        status
    }
}

hook! {
    EXECUTABLE_DESTROY: HSA_CORE_API::hsa_executable_destroy,
    fn executable_destroy(executable: u64) -> u32,
    |next| {
        SERVICE.run(|| with_state(|state| {
            state.executables.retain(|known| *known != executable);
            if ATTACHED.load(Ordering::Acquire) {
                code_objects::unloaded(executable);
            }
        }));
        next(executable)
    }
}

hook! {
    SHUT_DOWN: HSA_CORE_API::hsa_shut_down,
    fn shut_down() -> u32,
    |next| {
        // The times of completed work are in signals, which end with the runtime. The runtime's functions are not called
        // while it ends.
        let guard = FORK.lock();
        if ATTACHED.load(Ordering::Acquire) {
            SERVICE.run(|| {
                poller::drain(Duration::ZERO);
                poller::suspend();
            });
        }
        let status = next();
        SERVICE.run(|| {
            // The runtime continues if others have initialised it as well.
            if guard.is_some() && hsa::clock_frequency() == 0 {
                poller::forget_work();
                // SAFETY: the lock is held.
                if let Some(state) = unsafe { &mut *STATE.0.get() } {
                    state.executables.clear();
                }
            }
            if ATTACHED.load(Ordering::Acquire) {
                poller::resume();
            }
        });
        drop(guard);
        status
    }
}

/// Hooks that a process has in its tables while nobody is attached.
static HOOKS: [&Hook; 8] = [
    &QUEUE_CREATE,
    &QUEUE_DESTROY,
    &PROFILER_ENABLED,
    &TIMES,
    &FREEZE,
    &EXECUTABLE_DESTROY,
    &SHUT_DOWN,
    code_objects::COMPILER_HOOKS[0],
];
