//! The thread that has CUPTI deliver buffers.
//!
//! CUPTI delivers a buffer when it is full. What is in the others would be lost with a program that is killed, so they are requested
//! every few milliseconds while the program makes calls, and for a while after the last one.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use cupti_sys::result;

use super::{buffers, callbacks, cupti, sampling};
use crate::recording::background::{InChild, spawn};
use crate::recording::guard::{self, Service};
use crate::recording::{meta, process, switch};

/// Interval between requests. At most the work of this time is lost with a program that is killed.
const INTERVAL: Duration = Duration::from_millis(20);
/// Requests after the last call, if they bring nothing: a copy that was submitted may take long.
const IDLE_LOOKS: u32 = 100;
/// Longest wait for a request of another thread.
const PATIENCE: u32 = 200;

static SERVICE: Service = Service::new("delivery of CUDA's device work");
/// 1 when a call was made since the last request.
static MARKED: AtomicU32 = AtomicU32::new(0);
/// Whether a thread is in CUPTI's function. It is no lock of a hook: CUPTI's thread takes such locks meanwhile, which a fork would
/// hold.
static FLUSHING: AtomicBool = AtomicBool::new(false);

/// A call was made that may have submitted work.
#[inline]
pub(super) fn mark() {
    // Read first: a store by each of many threads would cost each of them.
    if MARKED.load(Ordering::Relaxed) == 0 {
        MARKED.store(1, Ordering::Relaxed);
    }
}

/// Starts the thread.
pub(super) fn start() {
    let started = spawn(
        "rpd-cupti",
        InChild::Nothing("a forked child never calls CUPTI, and nothing waits for the thread"),
        || {
            SERVICE.run(run);
        },
    );
    if !started {
        meta::note(
            "CUDA: the latest device work is lost if the program is killed: the target cannot have another thread",
        );
    }
}

fn run() {
    let mut idle = 0;
    while !guard::is_finalized() {
        std::thread::sleep(INTERVAL);
        let before = buffers::DELIVERED.load(Ordering::Relaxed);
        if MARKED.swap(0, Ordering::Relaxed) != 0 || is_under_way() {
            idle = 0;
        } else if idle >= IDLE_LOOKS {
            continue;
        }
        if let Some(nodes) = callbacks::take_whole_graphs() {
            whole_graphs(nodes);
        }
        request(0);
        let is_idle = buffers::DELIVERED.load(Ordering::Relaxed) == before;
        idle = if is_idle { idle + 1 } else { 0 };
    }
}

fn whole_graphs(nodes: u64) {
    if cupti::record_whole_graphs() {
        meta::note(&format!(
            "CUDA: launches of graphs are recorded as a whole from the first graph with many nodes on ({nodes}); \
             --cuda-graph-trace node records each kernel, at about three times the time of the graph"
        ));
    }
}

/// Whether kernels were launched of which no record was delivered.
fn is_under_way() -> bool {
    process::existing().is_some_and(|process| {
        let begun = process.totals.begun();
        !process.totals.have_ended(begun)
    })
}

/// Has CUPTI deliver buffers; `all`: also those with work that is not complete.
fn request(all: u32) -> bool {
    let Some(functions) = cupti::functions() else {
        return false;
    };
    if FLUSHING.swap(true, Ordering::Acquire) {
        return false;
    }
    // SAFETY: no pointers are passed.
    let status = unsafe { (functions.flush_all)(all) };
    FLUSHING.store(false, Ordering::Release);
    status == result::SUCCESS
}

/// Whether this is the process that CUPTI is in, and not a child that shares its memory.
fn is_own_process() -> bool {
    process::existing().is_some_and(|found| found.directory.pid() == std::process::id())
}

/// Requests what CUPTI holds, once no other thread does. Waits for that thread at most [`PATIENCE`] ms.
fn request_patiently(all: u32) {
    for _ in 0..PATIENCE {
        if !FLUSHING.load(Ordering::Relaxed) {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    request(all);
}

/// Records work that is complete.
pub(super) fn flush() {
    if is_own_process() && cupti::functions().is_some() && !guard::is_finalized() {
        sampling::fetch(switch::is_on());
        request_patiently(0);
    }
}

/// Records work that is complete, and waits up to `limit` for kernels that were launched.
pub(super) fn drain(limit: Duration) {
    if !is_own_process() || cupti::functions().is_none() {
        return;
    }
    const STEP: Duration = Duration::from_millis(5);
    let mut waited = Duration::ZERO;
    request_patiently(0);
    while is_under_way() && waited < limit {
        std::thread::sleep(STEP);
        waited += STEP;
        request_patiently(0);
    }
    request_patiently(1);
}
