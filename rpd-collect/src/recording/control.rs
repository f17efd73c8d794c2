//! Requests of `rpd control`: a thread sleeps on the process's control page and carries them out.
//!
//! The thread starts when a provider has configured what it traces. A program that never uses the GPU has neither the thread
//! nor the page.

use std::sync::atomic::{AtomicPtr, Ordering};

use rpd_spool::control::{ControlServer, Request};

use super::background::{InChild, spawn};
use super::fork::ForkHook;
use super::guard::{self, Service};
use super::{meta, process, switch};

static SERVICE: Service = Service::new("requests of rpd control");
/// The page of this process; null before there is one. Never freed.
static PAGE: AtomicPtr<ControlServer> = AtomicPtr::new(std::ptr::null_mut());
/// A forked child has neither the thread nor the page of its parent; one that records makes its own.
pub(super) static FORK: ForkHook = ForkHook::new()
    .in_child(|| PAGE.store(std::ptr::null_mut(), Ordering::Release))
    .when_child_records(serve);

fn page() -> Option<&'static ControlServer> {
    // SAFETY: null, or a leaked box.
    unsafe { PAGE.load(Ordering::Acquire).as_ref() }
}

/// Ends the page and its thread: the recording that they belong to has ended.
pub(super) fn end() {
    let page = PAGE.swap(std::ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: null, or a leaked box.
    if let Some(page) = unsafe { page.as_ref() } {
        page.release();
    }
}

/// Shows on the page whether this process records.
pub(super) fn show() {
    if let Some(page) = page() {
        page.show(switch::state());
    }
}

/// Makes the page, and starts the thread that serves it. It is never joined: it ends with the process.
pub(super) fn serve() {
    let Some(process) = process::existing() else {
        return;
    };
    // Registered before the page is stored: a child of a fork in between would serve its parent's.
    FORK.register();
    let made = match process.directory.make_control() {
        Ok(made) => Box::leak(Box::new(made)),
        // The recording does not need it.
        Err(error) => {
            return meta::note(&format!("rpd control cannot reach this process: {error}"));
        }
    };
    PAGE.store(made, Ordering::Release);
    show();
    let work = || {
        SERVICE.run(run);
    };
    if !spawn("rpd-control", InChild::Hook(&FORK), work) {
        meta::note("rpd control cannot reach this process: it cannot have another thread");
    }
}

fn run() {
    let Some(own) = page() else { return };
    while !guard::is_finalized() && page().is_some_and(|page| std::ptr::eq(page, own)) {
        own.serve_one(|request| match request {
            Request::Start => switch::start(),
            Request::Stop => switch::stop(),
            Request::Flush => switch::flush(),
            // Of processes that wait for it, which have a page of another kind.
            Request::Attach | Request::Detach => {}
        });
    }
}
