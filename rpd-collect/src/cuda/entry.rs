//! The function that CUDA calls, and the end of recording.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rpd_spool::format::RuntimeInit;
use rpd_spool::record::RecordKind;
use rpd_spool::writer::now;

use super::work::COUNTS;
use super::{buffers, callbacks, cupti, devices, flusher, graphs, kernels, sampling, shared};
use crate::lifecycle::{load, signals};
use crate::recording::guard::{self, Service};
use crate::recording::{meta, process};

static SERVICE: Service = Service::new("CUDA");
static STARTED: AtomicBool = AtomicBool::new(false);
static ENDED: AtomicBool = AtomicBool::new(false);

/// Longest wait for kernels that are under way when recording ends.
const DRAIN: Duration = Duration::from_millis(250);

/// Whether this provider records the process, or its marks.
pub(crate) fn is_configured() -> bool {
    shared::get().is_some()
}

/// Begins the recording of CUDA. CUDA calls it while the program initialises it, and goes on whatever it returns.
#[unsafe(no_mangle)]
pub extern "C" fn InitializeInjection() -> c_int {
    SERVICE.run(start);
    1
}

fn start() {
    load::install();
    let Some(process) = process::current() else {
        return;
    };
    let options = &process.options;
    if !(options.traces.any() || options.sampling.is_some()) || STARTED.swap(true, Ordering::AcqRel)
    {
        return;
    }
    shared::prepare(process);
    for hook in [
        &buffers::FORK,
        &devices::FORK,
        &kernels::FORK,
        &graphs::FORK,
    ] {
        hook.register();
    }
    match cupti::start(options) {
        Ok(version) => {
            let init = RuntimeInit {
                header: RecordKind::RuntimeInit.head(0),
                operation: 0,
                reserved: 0,
                version: version.into(),
                instance: 0,
                time: now(),
            };
            meta::write(&init, b"");
            devices::describe_host();
            flusher::start();
        }
        Err(why) => meta::note(&format!("CUDA is not recorded: {why}")),
    }
    end_at_exit();
}

/// Has recording end when a program exits that does not return from `main`.
pub(super) fn end_at_exit() {
    static DONE: AtomicBool = AtomicBool::new(false);
    if !DONE.swap(true, Ordering::AcqRel) {
        // SAFETY: the function stays loaded.
        unsafe { libc::atexit(at_exit) };
    }
}

extern "C" fn at_exit() {
    SERVICE.run(|| end(shared::get().is_some_and(|shared| shared.alone)));
}

/// Records work that is complete.
pub(crate) fn flush() {
    if is_configured() {
        flusher::flush();
    }
}

/// Ends the recording of CUDA, once. `last`: no other provider records the process, which records nothing from then on.
pub(crate) fn end(last: bool) {
    if !is_configured() || ENDED.swap(true, Ordering::AcqRel) {
        return;
    }
    signals::withdraw();
    sampling::end();
    flusher::drain(DRAIN);
    if cupti::is_subscribed() && cupti::functions().is_some() {
        report();
    }
    if last {
        guard::set_finalized();
        if let Some(process) = process::existing() {
            meta::end(process);
        }
    }
}

/// Notes what is missing, and why.
fn report() {
    let read = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
    let (launches, kernels) = (callbacks::launches(), read(&COUNTS.kernels));
    let traces = process::existing().map(|process| process.options.traces);
    let wants_kernels = traces.is_some_and(|traces| traces.kernel) && !cupti::refuses_kernels();
    if !callbacks::is_heard() {
        meta::note(
            "CUDA: CUPTI has accepted rpd and then reported nothing, as it does when another profiler (such as nsys) runs the \
             program: run it without that one",
        );
    } else if wants_kernels && launches > 0 && kernels == 0 && read(&buffers::DELIVERED) == 0 {
        meta::note(&format!(
            "CUDA: {launches} launches of kernels were recorded, and CUPTI has delivered no kernel: another profiler of the \
             process (such as that of PyTorch) may have taken its buffers"
        ));
    }
    for (count, what) in [
        (
            read(&buffers::DROPPED),
            "records of device work are missing, because CUPTI had no memory for them",
        ),
        (
            read(&COUNTS.incomplete),
            "kernels and copies were not complete when recording ended, and are missing",
        ),
        (
            read(&COUNTS.lost_calls),
            "kernels and copies are recorded without the call that submitted them, which was not observed",
        ),
        (
            read(&COUNTS.unknown),
            "records of CUPTI have a kind that was not requested, and are left out",
        ),
    ] {
        if count > 0 {
            meta::note(&format!("CUDA: {count} {what}"));
        }
    }
}
