//! CUPTI in this process: the library, the subscription, and what is enabled.

use std::ffi::{CStr, c_char, c_int};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};

use cupti_sys::activity::kind;
use cupti_sys::callback::{domain, resource};
use cupti_sys::library::{self, Library};
use cupti_sys::{Functions, Subscriber, SubscriberParams, attribute, result};
use rpd_spool::options::{CollectorOptions, CudaGraphs};
use rpd_spool::writer::now;

use super::{buffers, callbacks, sampling};
use crate::recording::fork::ForkHook;
use crate::recording::meta;

static LIBRARY: OnceLock<Library> = OnceLock::new();
/// Version of its interface; 0 before it is open.
static VERSION: AtomicU32 = AtomicU32::new(0);
/// Whether CUPTI has accepted the subscription.
static SUBSCRIBED: AtomicBool = AtomicBool::new(false);
/// Whether CUPTI has refused to record kernels.
static REFUSED: AtomicBool = AtomicBool::new(false);
/// Whether CUPTI's times are those of our clock.
static OWN_CLOCK: AtomicBool = AtomicBool::new(false);
/// Whether this process was forked from one with CUPTI. Its functions may never return here.
static IS_CHILD: AtomicBool = AtomicBool::new(false);
/// Hook that keeps children away from CUPTI.
pub(super) static FORK: ForkHook =
    ForkHook::new().in_child(|| IS_CHILD.store(true, Ordering::Relaxed));

/// CUPTI's functions; `None` before it is open, and in a forked child.
#[inline]
pub(super) fn functions() -> Option<&'static Functions> {
    if IS_CHILD.load(Ordering::Relaxed) {
        return None;
    }
    LIBRARY.get().map(|library| &library.functions)
}

/// Version of CUPTI's interface; 0 before it is open.
pub(super) fn version() -> u32 {
    VERSION.load(Ordering::Relaxed)
}

/// Whether CUPTI has accepted the subscription.
pub(super) fn is_subscribed() -> bool {
    SUBSCRIBED.load(Ordering::Relaxed)
}

/// Whether CUPTI has refused to record kernels, which a note says.
pub(super) fn refuses_kernels() -> bool {
    REFUSED.load(Ordering::Relaxed)
}

/// The clock of records, for CUPTI.
unsafe extern "C" fn clock() -> u64 {
    now()
}

/// Writes what has to be added to CUPTI's times: nothing where they are of our clock.
pub(super) fn offset(offset: &AtomicI64, now: fn() -> u64) {
    if OWN_CLOCK.load(Ordering::Relaxed) {
        return;
    }
    let Some(get) = functions().and_then(|functions| functions.get_timestamp) else {
        return;
    };
    let mut theirs = 0;
    let before = now();
    // SAFETY: the time is written.
    if unsafe { get(&raw mut theirs) } == result::SUCCESS {
        let ours = before + (now() - before) / 2;
        offset.store(ours.wrapping_sub(theirs).cast_signed(), Ordering::Relaxed);
    }
}

/// Opens CUPTI, subscribes, and enables what is to be recorded.
///
/// # Errors
/// Why nothing of CUDA is recorded, as text for the user.
pub(super) fn start(options: &CollectorOptions) -> Result<u32, String> {
    FORK.register();
    let library = library::open().map_err(|error| {
        format!(
            "{error}; the package nvidia-cuda-cupti has it, or set CUDA_HOME to the directory of a CUDA toolkit"
        )
    })?;
    let library = LIBRARY.get_or_init(|| library);
    let functions = &library.functions;
    let mut version = 0;
    // SAFETY: the version is written.
    unsafe { (functions.get_version)(&raw mut version) };
    VERSION.store(version, Ordering::Relaxed);
    let subscriber = subscribe(functions)?;
    // Before any kind is enabled: records have one clock.
    if let Some(register) = functions.register_timestamp_callback {
        // SAFETY: the function stays loaded.
        let status = unsafe { register(clock) };
        OWN_CLOCK.store(status == result::SUCCESS, Ordering::Relaxed);
    }
    // SAFETY: the functions stay loaded.
    let status = unsafe { (functions.register_callbacks)(buffers::requested, buffers::completed) };
    if status != result::SUCCESS {
        let text = refusal(functions, "cuptiActivityRegisterCallbacks", status);
        end_subscription(functions, subscriber);
        return Err(text);
    }
    SUBSCRIBED.store(true, Ordering::Relaxed);
    callbacks::prepare(options, functions);
    share_buffers(functions);
    enable_kinds(options, functions);
    enable_callbacks(functions, subscriber, sampling::prepare(options));
    Ok(version)
}

/// A result that keeps something from being recorded, with what the user can do.
pub(super) fn refusal(functions: &Functions, function: &str, status: c_int) -> String {
    let remedy = match status {
        result::MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED => {
            ": another profiler has subscribed to CUPTI, which serves one at a time; run the program without it"
        }
        result::INSUFFICIENT_PRIVILEGES | result::VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES => {
            ": run as root or with CAP_SYS_ADMIN (in a container --cap-add=SYS_ADMIN), or have the driver loaded with \
             NVreg_RestrictProfilingToAdminUsers=0"
        }
        result::MIG_DEVICE_NOT_SUPPORTED => {
            ": the device is partitioned (MIG), which this driver does not trace; use a whole device"
        }
        result::VIRTUALIZED_DEVICE_NOT_SUPPORTED => {
            ": the device is virtual; its host has to allow profiling of virtual GPUs"
        }
        result::CONFIDENTIAL_COMPUTING_NOT_SUPPORTED => {
            ": the device is in the mode of confidential computing, in which it is not traced"
        }
        result::HARDWARE_BUSY => {
            ": another tool (such as DCGM, or ncu) has the device's counters; end it, or have it pause (dcgmi profile --pause)"
        }
        result::NOT_INITIALIZED => {
            ": the driver does not fit this CUPTI; a CUPTI of the driver's version does"
        }
        _ => "",
    };
    format!("{function} returned {}{remedy}", functions.describe(status))
}

fn subscribe(functions: &Functions) -> Result<Subscriber, String> {
    let mut subscriber: Subscriber = std::ptr::null_mut();
    let none = std::ptr::null_mut();
    // SAFETY: the subscription is written; the callback stays loaded.
    let status =
        unsafe { (functions.subscribe)(&raw mut subscriber, callbacks::on_callback, none) };
    match status {
        result::SUCCESS => Ok(subscriber),
        result::MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED => {
            let name = other_subscriber(functions)
                .map_or_else(String::new, |name| format!(" (it calls itself {name})"));
            Err(format!(
                "{}{name}",
                refusal(functions, "cuptiSubscribe", status)
            ))
        }
        _ => Err(refusal(functions, "cuptiSubscribe", status)),
    }
}

/// The name of the tool that has subscribed already; `None` where CUPTI does not tell.
fn other_subscriber(functions: &Functions) -> Option<String> {
    let subscribe = functions.subscribe_v2?;
    let mut name = [0 as c_char; 64];
    let mut parameters = SubscriberParams {
        // The size in the first version of the struct, which later ones accept.
        size: 32,
        name: c"rpd".as_ptr(),
        old_name: name.as_mut_ptr(),
        old_size: name.len(),
        allow_multiple: 0,
        reserved: [0; 7],
    };
    let mut subscriber: Subscriber = std::ptr::null_mut();
    let none = std::ptr::null_mut();
    // SAFETY: the subscription and at most 64 bytes of the name are written.
    let status = unsafe {
        subscribe(
            &raw mut subscriber,
            callbacks::on_callback,
            none,
            &raw mut parameters,
        )
    };
    if status == result::SUCCESS {
        // The other tool has gone meanwhile. The two interfaces must not be mixed.
        end_subscription(functions, subscriber);
        return None;
    }
    if let Some(last) = name.last_mut() {
        *last = 0;
    }
    // SAFETY: the array ends with a zero.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) };
    (!name.is_empty()).then(|| name.to_string_lossy().into_owned())
}

fn end_subscription(functions: &Functions, subscriber: Subscriber) {
    if let Some(unsubscribe) = functions.unsubscribe {
        // SAFETY: a subscription of ours, which is not used any more.
        unsafe { unsubscribe(subscriber) };
    }
}

/// Has all threads of the program write to the same buffers: one with a thousand threads would have a thousand.
fn share_buffers(functions: &Functions) {
    if let Some(set) = functions.set_attribute {
        let (mut off, mut size) = (0_u8, size_of::<u8>());
        // SAFETY: the attribute is a byte. Versions that lack it refuse the call.
        unsafe {
            set(
                attribute::PER_THREAD_ACTIVITY_BUFFER,
                &raw mut size,
                (&raw mut off).cast(),
            )
        };
    }
}

fn enable_kinds(options: &CollectorOptions, functions: &Functions) {
    let traces = &options.traces;
    let whole_graphs = options.cuda_graphs == CudaGraphs::Graph;
    let copies = traces.memory_copy;
    // CUPTI looks at every call for them: on an H200 cudaGetDevice takes 240 ns with them, and 36 ns without.
    let waits = traces.cuda && options.cuda_api_all;
    // What is recorded, the kind, and whether older versions may lack it.
    let kinds = [
        ("devices", kind::DEVICE, true, false),
        ("kernels", kind::CONCURRENT_KERNEL, traces.kernel, false),
        (
            "graphs",
            kind::GRAPH_TRACE,
            traces.kernel && whole_graphs,
            false,
        ),
        ("copies", kind::MEMCPY, copies, false),
        ("copies between devices", kind::MEMCPY2, copies, true),
        ("filled memory", kind::MEMSET, copies, false),
        (
            "allocations",
            kind::MEMORY2,
            traces.memory_allocation,
            false,
        ),
        ("waits", kind::SYNCHRONIZATION, waits, true),
        ("CUPTI's own time", kind::OVERHEAD, traces.any(), true),
    ];
    // One line for all kinds that are refused for the same reason.
    let mut refused: Vec<(c_int, Vec<&str>)> = Vec::new();
    for (what, number, wanted, may_lack) in kinds {
        if !wanted {
            continue;
        }
        // SAFETY: any kind may be requested.
        let status = unsafe { (functions.enable)(number) };
        if status == result::SUCCESS || may_lack {
            continue;
        }
        if number == kind::CONCURRENT_KERNEL {
            REFUSED.store(true, Ordering::Relaxed);
        }
        match refused.iter_mut().find(|(known, _)| *known == status) {
            Some((_, kinds)) => kinds.push(what),
            None => refused.push((status, vec![what])),
        }
    }
    for (status, kinds) in refused {
        meta::note(&format!(
            "CUDA: {} are not recorded: {}",
            kinds.join(", "),
            refusal(functions, "cuptiActivityEnable", status)
        ));
    }
}

fn enable_callbacks(functions: &Functions, subscriber: Subscriber, more: &[u32]) {
    let mut failed = None;
    let mut check = |status: c_int| {
        if status != result::SUCCESS {
            failed = Some(status);
        }
    };
    for (number, operations) in callbacks::observed() {
        if operations
            .iter()
            .skip(1)
            .all(|operation| operation.observed)
        {
            // SAFETY: the subscription is ours.
            check(unsafe { (functions.enable_domain)(1, subscriber, number) });
            continue;
        }
        for (id, operation) in (0..).zip(operations) {
            if operation.observed {
                // SAFETY: the subscription is ours. A function that this version lacks is refused, which is no loss.
                unsafe { (functions.enable_callback)(1, subscriber, number, id) };
            }
        }
    }
    let ids = [
        resource::INIT_FINISHED,
        resource::CONTEXT_CREATED,
        resource::GRAPH_NODE_CREATED,
        resource::GRAPH_NODE_CLONED,
        resource::GRAPH_EXEC_CREATE_STARTING,
    ];
    for id in ids.iter().chain(more) {
        // SAFETY: the subscription is ours.
        check(unsafe { (functions.enable_callback)(1, subscriber, domain::RESOURCE, *id) });
    }
    // SAFETY: the subscription is ours. Versions before 12.2 have no such domain.
    unsafe { (functions.enable_domain)(1, subscriber, domain::STATE) };
    if let Some(status) = failed {
        meta::note(&format!(
            "CUDA: calls are not recorded completely: {}",
            refusal(functions, "cuptiEnableCallback", status)
        ));
    }
}

/// Has launches of graphs recorded as a whole from then on.
pub(super) fn record_whole_graphs() -> bool {
    functions().is_some_and(|functions| {
        // SAFETY: any kind may be requested.
        unsafe { (functions.enable)(kind::GRAPH_TRACE) == result::SUCCESS }
    })
}
