//! The thread that makes segments before streams need them ([`rpd_spool::writer::SpoolDirectory::make_spares`]).

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::background::{InChild, spawn};
use super::fork::ForkHook;
use super::guard::Service;
use super::{futex, process};

static SERVICE: Service = Service::new("segments made ahead");
static RUNNING: AtomicBool = AtomicBool::new(false);
/// Number of requests so far, on which the thread sleeps.
static REQUESTS: AtomicU32 = AtomicU32::new(0);
/// A forked child does not have the thread.
pub(super) static FORK: ForkHook =
    ForkHook::new().in_child(|| RUNNING.store(false, Ordering::Relaxed));

/// Requests segments from the thread. It is started at the first request, and again in a forked child.
pub(super) fn request() {
    REQUESTS.fetch_add(1, Ordering::Release);
    if RUNNING.load(Ordering::Relaxed) {
        futex::wake(&REQUESTS);
    } else if !RUNNING.swap(true, Ordering::Relaxed) {
        // Where the target cannot have another thread, each makes its own segments.
        spawn("rpd-segments", InChild::Hook(&FORK), || {
            SERVICE.run(run);
        });
    }
}

fn run() {
    // Best effort: without it a program that closes all descriptors at the wrong moment costs a spare segment.
    let _ = rpd_spool::threads::separate_descriptors();
    loop {
        let seen = REQUESTS.load(Ordering::Acquire);
        // A process that is attached to has a recording at some times only.
        if let Some(process) = process::existing() {
            process.directory.make_spares();
        }
        futex::wait(&REQUESTS, seen, None);
    }
}
