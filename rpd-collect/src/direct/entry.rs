//! Choice, configuration and end of this provider.

use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rpd_spool::format::{PROVIDER_DIRECT, RuntimeInit};
use rpd_spool::options::ProviderChoice;
use rpd_spool::record::RecordKind;
use rpd_spool::writer::now;

use super::{attach, calls, code_objects, dispatch, poller, tables};
use crate::captured;
use crate::lifecycle::{load, signals};
use crate::names::Catalogue;
use crate::recording::guard::{self, Service};
use crate::recording::switch::{self, Switched};
use crate::recording::{meta, process, stacks};

static SERVICE: Service = Service::new("tables of runtimes");
/// Whether this provider records the process.
static CONFIGURED: AtomicBool = AtomicBool::new(false);
static ENDED: AtomicBool = AtomicBool::new(false);

/// Longest wait for device work that is under way when recording ends.
pub(super) const DRAIN: Duration = Duration::from_secs(5);

/// Whether this provider records the process.
pub(crate) fn is_configured() -> bool {
    CONFIGURED.load(Ordering::Acquire)
}

/// Whether this provider takes the tables of this process, of which the given ones are the first; it is configured then.
///
/// # Safety
///
/// `name` is text, and `tables` has `count` tables of a runtime that registers under it.
pub(crate) unsafe fn takes(
    name: *const c_char,
    version: u64,
    tables: *mut *mut c_void,
    count: u64,
    other_tool: bool,
) -> bool {
    load::install();
    if process::can_be_attached_to() {
        // One set of tables has one owner.
        return !other_tool;
    }
    let Some(process) = process::current() else {
        return false;
    };
    let by_name = match process.options.provider {
        ProviderChoice::Sdk => return false,
        ProviderChoice::Auto => false,
        ProviderChoice::Direct => true,
    };
    // One set of tables has one owner. An SDK whose tools expect the tables would record nothing.
    if other_tool {
        if by_name {
            meta::note(
                "--provider direct is not used: the process has an SDK or a tool for it, which needs the runtimes' \
                 tables; the SDK is used",
            );
        }
        return false;
    }
    // SAFETY: as this function demands.
    let complete = unsafe {
        let tables = std::slice::from_raw_parts(tables, usize::try_from(count).unwrap_or(0));
        tables::are_complete(&text(name), tables)
    };
    // Unasked for, this provider is used only where it has a wrapper for every function: else calls would be missing.
    if !complete && !by_name {
        return false;
    }
    process.set_provider_version(PROVIDER_DIRECT | version as u32);
    configure(process);
    // Set last: other threads take a configured provider as ready.
    CONFIGURED.store(true, Ordering::Release);
    true
}

/// # Safety
///
/// `name` is null or text.
unsafe fn text(name: *const c_char) -> String {
    if name.is_null() {
        return String::new();
    }
    // SAFETY: as this function demands.
    unsafe { CStr::from_ptr(name) }
        .to_string_lossy()
        .into_owned()
}

struct Traces;

impl Switched for Traces {
    fn trace(&self, on: bool) {
        calls::switch(on);
    }

    fn count_paused(&self, on: bool) {
        dispatch::count_paused(on);
    }

    fn flush(&self) {
        flush();
    }
}

struct NoPausedDispatches;

impl Switched for NoPausedDispatches {
    fn trace(&self, on: bool) {
        calls::switch(on);
    }

    fn count_paused(&self, _on: bool) {}

    fn flush(&self) {
        flush();
    }
}

fn configure(process: &process::Process) {
    configure_traces(process);
    captured::start(&process.options);
    begin(process);
    end_at_exit();
}

/// Sets whether this provider records the process.
pub(super) fn set_configured(configured: bool) {
    CONFIGURED.store(configured, Ordering::Release);
}

/// Configures what is recorded.
pub(super) fn configure_traces(process: &process::Process) {
    let options = &process.options;
    let names = Catalogue::new();
    names.record();
    stacks::prepare(options);
    stacks::note_useless_globs(&options.stacks, names.operations());
    tables::configure(process, &names);
}

/// Begins to record.
pub(super) fn begin(process: &process::Process) {
    let options = &process.options;
    // With the original's semantics, dispatches that a pause leaves out are not counted.
    let counts =
        options.traces.kernel && !options.original_semantics && !switch::by_regions(options);
    switch::configure(
        options,
        if counts {
            Box::new(Traces)
        } else {
            Box::new(NoPausedDispatches)
        },
    );
    calls::switch(options.traces.any() && switch::is_on());
    switch::begin();
}

/// Has recording end when the program exits.
pub(super) fn end_at_exit() {
    // A program that ends by `exit` does not return from `main`. Handlers run last to first: this one before those of
    // the runtimes, which were loaded before they registered their tables.
    // SAFETY: the function stays loaded.
    unsafe { libc::atexit(at_exit) };
}

extern "C" fn at_exit() {
    SERVICE.run(end);
}

/// Operations of `RUNTIME_INITIALIZATION`, by the name under which a runtime registers.
const RUNTIMES: [(&str, u32); 6] = [
    ("hsa", 1),
    ("hip", 2),
    ("roctx", 3),
    ("rccl", 4),
    ("rocdecode", 5),
    ("rocjpeg", 6),
];

/// Takes the tables of a runtime.
///
/// # Safety
///
/// As for [`takes`]; the tables live until the process ends.
pub(crate) unsafe fn set_api_table(
    name: *const c_char,
    version: u64,
    instance: u64,
    tables: *mut *mut c_void,
    count: u64,
) {
    if process::can_be_attached_to() {
        SERVICE.run(|| {
            // SAFETY: as this function demands.
            unsafe {
                let count = usize::try_from(count).unwrap_or(0);
                let tables = std::slice::from_raw_parts(tables, count);
                attach::keep(&text(name), (version, instance), tables);
            }
        });
        return;
    }
    SERVICE.on_event(|| {
        let Some(process) = process::current() else {
            return;
        };
        // SAFETY: as this function demands.
        let name = unsafe { text(name) };
        // SAFETY: as this function demands.
        let taken = unsafe {
            let tables = std::slice::from_raw_parts(tables, usize::try_from(count).unwrap_or(0));
            tables::take(process, &name, tables)
        };
        if taken {
            initialised(&name, version, instance);
        }
        if taken && name == "hsa" {
            signals::prepare();
        }
    });
}

/// Records that a runtime is there.
pub(super) fn initialised(name: &str, version: u64, instance: u64) {
    if let Some((_, operation)) = RUNTIMES.iter().find(|(known, _)| *known == name) {
        let init = RuntimeInit {
            header: RecordKind::RuntimeInit.head(0),
            operation: *operation,
            reserved: 0,
            version,
            instance,
            time: now(),
        };
        meta::write(&init, b"");
    }
}

/// Records work that is complete. Nothing in a process that shares another's memory (`vfork`).
pub(crate) fn flush() {
    if is_configured()
        && !guard::is_finalized()
        && process::existing().is_some_and(|found| found.directory.pid() == std::process::id())
    {
        poller::pass();
    }
}

/// Ends recording, once: waits for work that is under way; nothing is recorded from then on.
pub(crate) fn end() {
    if process::can_be_attached_to() {
        return attach::end();
    }
    if !is_configured() || ENDED.swap(true, Ordering::AcqRel) {
        return;
    }
    signals::withdraw();
    // A forked child that did nothing has no work under way either.
    poller::drain(DRAIN);
    code_objects::end();
    calls::switch(false);
    guard::set_finalized();
    if let Some(process) = process::existing() {
        meta::end(process);
    }
}
