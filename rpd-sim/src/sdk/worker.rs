//! The threads that run buffer callbacks.

use core::{
    cell::Cell,
    ffi::{c_int, c_void},
    sync::atomic::{AtomicBool, Ordering},
};
use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, RwLock},
};

use rocprofiler_sdk_sys::{
    rocprofiler_buffer_id_t as BufferId, rocprofiler_callback_thread_t as ThreadId,
    rocprofiler_internal_thread_library_cb_t as NotifyFn,
    rocprofiler_runtime_library_t as RuntimeLibrary, rocprofiler_status_t as Status,
};

use super::{buffer, context::Callback, state, status::store};

/// A flush to carry out, and the place to report its end to.
struct Task {
    buffer: u64,
    done: Option<Arc<(Mutex<bool>, Condvar)>>,
}

/// Queue of a callback thread.
#[derive(Default)]
struct Worker {
    tasks: Mutex<VecDeque<Task>>,
    wake: Condvar,
}

static WORKERS: RwLock<Vec<Arc<Worker>>> = RwLock::new(Vec::new());
static RUNNING: AtomicBool = AtomicBool::new(false);

/// Callbacks of tools for the creation of provider threads.
#[derive(Clone, Copy)]
struct Notification {
    before: Option<Callback<<NotifyFn as IntoIterator>::Item>>,
    after: Option<Callback<<NotifyFn as IntoIterator>::Item>>,
}

static NOTIFICATIONS: RwLock<Vec<Notification>> = RwLock::new(Vec::new());

thread_local! {
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// Whether callback threads exist.
pub(crate) fn running() -> bool {
    RUNNING.load(Ordering::Acquire)
}

/// Whether the caller runs on a callback thread.
pub(crate) fn on_worker() -> bool {
    IS_WORKER.with(Cell::get)
}

fn worker(index: usize) -> Option<Arc<Worker>> {
    WORKERS
        .read()
        .unwrap_or_else(|e| e.into_inner())
        .get(index)
        .cloned()
}

/// Requests that a thread deliver a buffer, without waiting for that.
pub(crate) fn post(index: usize, buffer: u64) {
    if let Some(worker) = worker(index) {
        worker
            .tasks
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .push_back(Task { buffer, done: None });
        worker.wake.notify_one();
    }
}

/// Has a thread deliver a buffer and waits until it has; `false` on a callback thread.
pub(crate) fn post_and_wait(index: usize, buffer: u64) -> bool {
    if on_worker() {
        return false;
    }
    let Some(worker) = worker(index).filter(|_| running()) else {
        // Before the threads exist no context can have recorded anything.
        return true;
    };
    let done = Arc::new((Mutex::new(false), Condvar::new()));
    worker
        .tasks
        .lock()
        .unwrap_or_else(|e| e.into_inner())
        .push_back(Task {
            buffer,
            done: Some(Arc::clone(&done)),
        });
    worker.wake.notify_one();
    let mut finished = done.0.lock().unwrap_or_else(|e| e.into_inner());
    while !*finished {
        finished = done.1.wait(finished).unwrap_or_else(|e| e.into_inner());
    }
    true
}

fn run(worker: &Worker) {
    IS_WORKER.with(|w| w.set(true));
    loop {
        let task = {
            let mut tasks = worker.tasks.lock().unwrap_or_else(|e| e.into_inner());
            loop {
                match tasks.pop_front() {
                    Some(task) => break task,
                    None => tasks = worker.wake.wait(tasks).unwrap_or_else(|e| e.into_inner()),
                }
            }
        };
        if let Some(buffer) = buffer::find(BufferId {
            handle: task.buffer,
        }) {
            buffer.deliver();
        }
        if let Some(done) = task.done {
            *done.0.lock().unwrap_or_else(|e| e.into_inner()) = true;
            done.1.notify_all();
        }
    }
}

fn spawn(worker: Arc<Worker>, index: usize) {
    let notify = |after: bool| {
        // No lock is held while tools run.
        let list = NOTIFICATIONS
            .read()
            .unwrap_or_else(|e| e.into_inner())
            .clone();
        for n in &list {
            if let Some(callback) = if after { &n.after } else { &n.before } {
                // SAFETY: the tool gave the function for this.
                unsafe { (callback.function)(RuntimeLibrary::LIBRARY, callback.data) };
            }
        }
    };
    notify(false);
    let made = std::thread::Builder::new()
        .name(format!("rpd-sim-cb{index}"))
        .spawn(move || run(&worker));
    if let Err(e) = made {
        eprintln!("rpd-sim: no thread for buffer callbacks: {e}");
    }
    notify(true);
}

/// Starts the callback threads: number 0 and those that tools created.
pub(crate) fn start() {
    let workers = {
        let mut workers = WORKERS.write().unwrap_or_else(|e| e.into_inner());
        if workers.is_empty() {
            workers.push(Arc::default());
        }
        workers.clone()
    };
    for (index, worker) in workers.into_iter().enumerate() {
        spawn(worker, index);
    }
    RUNNING.store(true, Ordering::Release);
}

/// Starts new callback threads with empty queues in a forked child.
pub(super) fn restart() {
    {
        let mut workers = WORKERS.write().unwrap_or_else(|e| e.into_inner());
        for worker in workers.iter_mut() {
            core::mem::forget(core::mem::take(worker));
        }
    }
    start();
}

/// `rocprofiler_create_callback_thread`.
///
/// # Safety
/// The pointer is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_create_callback_thread(cb_thread_id: *mut ThreadId) -> Status {
    if state::initialized() > 0 {
        return Status::ERROR_CONFIGURATION_LOCKED;
    }
    if cb_thread_id.is_null() {
        return Status::ERROR;
    }
    let mut workers = WORKERS.write().unwrap_or_else(|e| e.into_inner());
    if workers.is_empty() {
        workers.push(Arc::default());
    }
    store(
        cb_thread_id,
        ThreadId {
            handle: workers.len() as u64,
        },
    );
    workers.push(Arc::default());
    Status::SUCCESS
}

/// Binds a buffer to the thread that delivers its records.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_assign_callback_thread(
    buffer_id: BufferId,
    cb_thread_id: ThreadId,
) -> Status {
    if state::initialized() > 0 {
        return Status::ERROR_CONFIGURATION_LOCKED;
    }
    let count = WORKERS
        .read()
        .unwrap_or_else(|e| e.into_inner())
        .len()
        .max(1) as u64;
    if cb_thread_id.handle >= count {
        return Status::ERROR_THREAD_NOT_FOUND;
    }
    let Some(buffer) = buffer::find(buffer_id) else {
        return Status::ERROR_BUFFER_NOT_FOUND;
    };
    buffer
        .worker
        .store(cb_thread_id.handle as usize, Ordering::Relaxed);
    Status::SUCCESS
}

/// `rocprofiler_at_internal_thread_create`.
///
/// # Safety
/// The callbacks stay callable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_at_internal_thread_create(
    precreate: NotifyFn,
    postcreate: NotifyFn,
    libs: c_int,
    data: *mut c_void,
) -> Status {
    // Only threads of the library itself are made here; 0 means those of all libraries.
    if libs == 0 || libs as u32 & RuntimeLibrary::LIBRARY.0 != 0 {
        let callback = |f: NotifyFn| f.map(|function| Callback { function, data });
        NOTIFICATIONS
            .write()
            .unwrap_or_else(|e| e.into_inner())
            .push(Notification {
                before: callback(precreate),
                after: callback(postcreate),
            });
    }
    Status::SUCCESS
}
