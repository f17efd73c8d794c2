//! Gives the collector to the SDK when the first runtime registers its tables, once for each process image.
//!
//! A collector that wraps the runtimes' functions itself comes first: if it takes the tables, no SDK is opened. Otherwise
//! the rule is `rocprofiler_force_configure`. A collector named in `ROCP_TOOL_LIBRARIES`, as any other tool of the SDK,
//! is what is used
//!
//! - when the user has tools in `ROCP_TOOL_LIBRARIES`;
//! - when the program has an SDK, or a `rocprofiler_configure`, of its own: it may configure the SDK itself before the
//!   first table comes, or want to do so later;
//! - when the SDK begins in its constructor (`ROCPROFILER_LIBRARY_CTOR`), before it could be given anything;
//! - when the SDK has no `rocprofiler_force_configure`.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rocprofiler_sdk_sys::{rocprofiler_set_api_table_fn, rocprofiler_status_t};

use crate::FAILED;
use crate::collector::{self, Collector};
use crate::objects::Objects;
use crate::sdk::{self, Sdk};

/// The SDK; null before it is open, and when there is none.
static SDK: AtomicPtr<Sdk> = AtomicPtr::new(std::ptr::null_mut());
/// The collector's function that takes tables in the place of an SDK's; null when an SDK takes them.
static DIRECT: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
/// State of the binding: [`NOBODY`], the thread that is binding, or [`DONE`].
static BINDER: AtomicU64 = AtomicU64::new(NOBODY);
const NOBODY: u64 = 0;
const DONE: u64 = u64::MAX;

/// Tables that were forwarded: name, instance, and the SDK's result.
static FORWARDED: Mutex<Vec<(CString, u64, c_int)>> = Mutex::new(Vec::new());

/// Whether the SDK finds the collector in `ROCP_TOOL_LIBRARIES`.
fn by_tool_list(objects: &Objects) -> bool {
    let visible = sdk::symbol(libc::RTLD_DEFAULT, c"rocprofiler_configure");
    collector::tools_are_listed()
        || objects.use_sdk()
        || !visible.is_null()
        || std::env::var_os("ROCPROFILER_LIBRARY_CTOR").is_some()
}

/// Opens the collector, and makes it visible to an SDK that the program links or loads. Called before the target's
/// `main`.
pub(crate) fn prepare() {
    if !sdk::is_named() {
        return;
    }
    if collector::open().is_some() && !sdk::waits() && by_tool_list(&Objects::read()) {
        collector::list();
    }
}

/// Number of the calling process and thread, never [`NOBODY`] or [`DONE`].
fn caller() -> u64 {
    // SAFETY: these system calls take no pointers.
    let (process, thread) = unsafe { (libc::getpid(), libc::gettid()) };
    u64::from(process.cast_unsigned()) << 32 | u64::from(thread.cast_unsigned())
}

/// The SDK, opened and configured by the first caller. `first` are the tables with which the call came, if any.
fn bound(first: Option<&Registration>) -> Option<&'static Sdk> {
    let me = caller();
    loop {
        let binder = BINDER.load(Ordering::Acquire);
        // A tool that is being configured may use a runtime, which registers its tables on the same thread.
        if binder == DONE || binder == me {
            break;
        }
        // A forked child does not have the thread that was binding.
        if binder == NOBODY || binder >> 32 != me >> 32 {
            let exchanged =
                BINDER.compare_exchange(binder, me, Ordering::AcqRel, Ordering::Acquire);
            if exchanged.is_ok() {
                bind(first);
                BINDER.store(DONE, Ordering::Release);
                break;
            }
            continue;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    // SAFETY: null or a leaked box.
    unsafe { SDK.load(Ordering::Acquire).as_ref() }
}

/// A registration of a runtime's tables.
struct Registration {
    name: *const c_char,
    version: u64,
    tables: *mut *mut c_void,
    count: u64,
}

fn bind(first: Option<&Registration>) {
    // A process whose environment lost the variables of rpd has its tables forwarded, no more.
    let collector = if sdk::is_named() {
        collector::open()
    } else {
        None
    };
    let objects = Objects::read();
    let by_tool_list = by_tool_list(&objects);
    if let (Some(collector), Some(first)) = (collector, first)
        && !first.name.is_null()
    {
        // SAFETY: what the caller of `rocprofiler_set_api_table` passed.
        let taken = unsafe {
            collector.takes(
                first.name,
                first.version,
                first.tables,
                first.count,
                by_tool_list,
            )
        };
        if let Some(function) = taken {
            DIRECT.store(function as *mut c_void, Ordering::Release);
            return;
        }
    }
    // Where the program has an SDK of its own, nobody can attach by this collector.
    let collector = collector.filter(|_| !sdk::waits());
    if by_tool_list && collector.is_some() {
        collector::list();
    }
    let sdk = match Sdk::open(objects.sdk.as_deref()) {
        Ok(sdk) => Box::leak(Box::new(sdk)),
        Err(error) => {
            if let Some(collector) = collector {
                collector.note(&format!("nothing is recorded: {error}"));
            }
            return;
        }
    };
    SDK.store(sdk, Ordering::Release);
    if let Some(collector) = collector {
        match sdk.force_configure() {
            _ if sdk.is_initialized() => collector.note(TOO_LATE),
            Some(force) if !by_tool_list => force_configure(force, collector),
            _ => collector::list(),
        }
    }
}

/// The note for a process whose SDK was initialised before the collector could be added.
const TOO_LATE: &str = "nothing is recorded: another tool had initialised the SDK before the first runtime came up; name \
    librpd_collect.so in ROCP_TOOL_LIBRARIES, where that SDK looks for tools";

fn force_configure(force: sdk::ForceConfigure, collector: &Collector) {
    // SAFETY: the collector's entry point, which stays loaded.
    let status = unsafe { force(collector.configure) };
    if status == rocprofiler_status_t::ERROR_CONFIGURATION_LOCKED {
        collector.note(TOO_LATE);
    } else if status != rocprofiler_status_t::SUCCESS {
        let status = status.0;
        collector.note(&format!(
            "nothing is recorded: the SDK does not take the collector (status {status})"
        ));
    }
}

/// Forwards tables, each name and instance once.
///
/// # Safety
///
/// As for [`crate::rocprofiler_set_api_table`].
pub(crate) unsafe fn forward(
    name: *const c_char,
    version: u64,
    instance: u64,
    tables: *mut *mut c_void,
    count: u64,
) -> c_int {
    if name.is_null() {
        return FAILED;
    }
    let registration = Registration {
        name,
        version,
        tables,
        count,
    };
    let sdk = bound(Some(&registration));
    let direct = DIRECT.load(Ordering::Acquire);
    let set_api_table = match sdk {
        Some(sdk) => sdk.set_api_table,
        None if direct.is_null() => return FAILED,
        // SAFETY: `bind` stored a function of this type.
        None => unsafe { std::mem::transmute::<*mut c_void, rocprofiler_set_api_table_fn>(direct) },
    };
    // SAFETY: not null, so it is text.
    let key = unsafe { CStr::from_ptr(name) };
    {
        let mut forwarded = FORWARDED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, _, answer)) = forwarded
            .iter()
            .find(|(name, number, _)| name.as_c_str() == key && *number == instance)
        {
            return *answer;
        }
        forwarded.push((key.to_owned(), instance, 0));
    }
    // SAFETY: the caller's arguments, for the function they are meant for. No lock is held: the SDK calls its tools.
    let answer = unsafe { set_api_table(name, version, instance, tables, count) };
    let mut forwarded = FORWARDED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(entry) = forwarded
        .iter_mut()
        .find(|(name, number, _)| name.as_c_str() == key && *number == instance)
    {
        entry.2 = answer;
    }
    answer
}

/// Calls a function of the SDK that has no parameters and returns a status.
pub(crate) fn call(name: &CStr) -> c_int {
    let Some(sdk) = bound(None) else {
        return FAILED;
    };
    // SAFETY: null becomes `None`; the functions that this is used for have this type.
    let function = unsafe {
        std::mem::transmute::<*mut c_void, Option<unsafe extern "C" fn() -> c_int>>(
            sdk.function(name),
        )
    };
    // SAFETY: it has no preconditions.
    function.map_or(FAILED, |function| unsafe { function() })
}

/// Makes the SDK open a tool library.
///
/// # Safety
///
/// As for [`crate::rocprofiler_load_attachment_tool`].
pub(crate) unsafe fn load_tool(path: *const c_char) -> c_int {
    let Some(sdk) = bound(None) else {
        return FAILED;
    };
    // SAFETY: null becomes `None`, and a function of this name has this type.
    let function = unsafe {
        std::mem::transmute::<*mut c_void, Option<unsafe extern "C" fn(*const c_char) -> c_int>>(
            sdk.function(c"rocprofiler_load_attachment_tool"),
        )
    };
    // SAFETY: the caller's argument, for the function it is meant for.
    function.map_or(FAILED, |function| unsafe { function(path) })
}
