//! SDK buffers and their regular emptying, which bounds what a killed process loses.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use rocprofiler_sdk_sys::{
    rocprofiler_buffer_id_t, rocprofiler_buffer_policy_t, rocprofiler_buffer_tracing_cb_t,
    rocprofiler_callback_thread_t, rocprofiler_record_header_t, rocprofiler_status_t,
};

use crate::guard::Service;
use crate::process;
use crate::register::{Setup, functions};

/// Bytes of a buffer. The provider calls back when it is nearly full, so larger means rarer.
const SIZE: usize = 256 << 10;
/// Bytes at which the provider empties it by itself.
const WATERMARK: usize = SIZE / 8 * 7;
/// Longest time between two emptyings.
const INTERVAL: Duration = Duration::from_millis(100);
/// Time from the first work submitted after an emptying to the next: what a process that ends suddenly may lose.
const DELAY: Duration = Duration::from_millis(20);
/// Buffers there can be; one per kind.
const MOST: usize = 8;

static BUFFERS: [AtomicU64; MOST] = [const { AtomicU64::new(0) }; MOST];
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Thread of the provider that runs our callbacks, plus 1.
static THREAD: AtomicU64 = AtomicU64::new(0);
/// No more flushes by ourselves.
static FINISHED: AtomicBool = AtomicBool::new(false);
/// Flushes under way in the flusher.
static FLUSHING: AtomicU32 = AtomicU32::new(0);
/// 1 when work was submitted since the last emptying. The flusher sleeps on it.
static SUBMITTED: AtomicU32 = AtomicU32::new(0);
/// The flusher of this process runs.
static RUNNING: AtomicBool = AtomicBool::new(false);

/// Makes a buffer on the client context, served by a thread of its own for all of our buffers.
pub(crate) fn create(
    setup: &Setup<'_>,
    purpose: &str,
    callback: rocprofiler_buffer_tracing_cb_t,
) -> Option<rocprofiler_buffer_id_t> {
    let slot = COUNT.load(Ordering::Relaxed);
    let slot_of = BUFFERS.get(slot)?;
    let mut buffer = rocprofiler_buffer_id_t::default();
    // SAFETY: `buffer` is valid and names none; the callback is a function of this library.
    let status = unsafe {
        (setup.functions.rocprofiler_create_buffer)(
            setup.client,
            SIZE,
            WATERMARK,
            rocprofiler_buffer_policy_t::LOSSLESS,
            callback,
            std::ptr::null_mut(),
            &mut buffer,
        )
    };
    if !setup.succeeded(status, purpose) {
        return None;
    }
    assign_thread(setup, buffer);
    slot_of.store(buffer.handle, Ordering::Relaxed);
    COUNT.store(slot + 1, Ordering::Release);
    Some(buffer)
}

/// Without a thread of our own, the provider's shared one serves as well.
fn assign_thread(setup: &Setup<'_>, buffer: rocprofiler_buffer_id_t) {
    let (Some(create), Some(assign)) = (
        setup.functions.rocprofiler_create_callback_thread,
        setup.functions.rocprofiler_assign_callback_thread,
    ) else {
        return;
    };
    if THREAD.load(Ordering::Relaxed) == 0 {
        let mut thread = rocprofiler_callback_thread_t::default();
        // SAFETY: `thread` is valid for the call.
        if unsafe { create(&mut thread) } != rocprofiler_status_t::SUCCESS {
            return;
        }
        THREAD.store(thread.handle + 1, Ordering::Relaxed);
    }
    let thread = rocprofiler_callback_thread_t {
        handle: THREAD.load(Ordering::Relaxed) - 1,
    };
    // SAFETY: both were made by this provider.
    unsafe { assign(buffer, thread) };
}

/// Empties all buffers; returns when their records are in the spool.
pub(crate) fn flush() {
    let Some(functions) = functions() else { return };
    for buffer in BUFFERS.iter().take(COUNT.load(Ordering::Acquire)) {
        let handle = buffer.load(Ordering::Relaxed);
        // SAFETY: a buffer made by this provider. Whatever status comes back: there is nothing to do about it.
        unsafe { (functions.rocprofiler_flush_buffer)(rocprofiler_buffer_id_t { handle }) };
    }
}

/// Work was submitted that will end up in a buffer.
#[inline]
pub(crate) fn submitted() {
    // Mostly only read, so that threads do not fight for the cache line.
    if SUBMITTED.load(Ordering::Relaxed) == 0 && SUBMITTED.swap(1, Ordering::Relaxed) == 0 {
        // SAFETY: the address is that of a static; waking takes no other pointer.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                SUBMITTED.as_ptr(),
                libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                1,
            );
        }
    }
}

/// Waits until work is submitted, at most for [`INTERVAL`]; whether it was.
fn wait() -> bool {
    let timeout = libc::timespec {
        tv_sec: 0,
        tv_nsec: INTERVAL.subsec_nanos().into(),
    };
    // SAFETY: the address is that of a static, the timeout lives through the call.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            SUBMITTED.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            0,
            &raw const timeout,
        );
    }
    SUBMITTED.load(Ordering::Relaxed) != 0
}

/// Starts the regular emptying, if there is anything to empty.
pub(crate) fn start() {
    if COUNT.load(Ordering::Acquire) == 0 || RUNNING.swap(true, Ordering::AcqRel) {
        return;
    }
    // SAFETY: all pointers are valid for their calls; the new thread runs a function of this library. Signals are
    // blocked around its creation, so that it inherits the block and never runs a handler of the target.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut old: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        libc::pthread_attr_init(&mut attributes);
        libc::pthread_attr_setdetachstate(&mut attributes, libc::PTHREAD_CREATE_DETACHED);
        let mut thread: libc::pthread_t = 0;
        let status =
            libc::pthread_create(&mut thread, &attributes, run_flusher, std::ptr::null_mut());
        libc::pthread_attr_destroy(&mut attributes);
        libc::pthread_sigmask(libc::SIG_SETMASK, &old, std::ptr::null_mut());
        if status != 0 {
            RUNNING.store(false, Ordering::Release);
        }
    }
}

extern "C" fn run_flusher(_: *mut c_void) -> *mut c_void {
    static SERVICE: Service = Service::new("flusher");
    // SAFETY: names the calling thread; the name is short enough.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"rpd-flush".as_ptr()) };
    SERVICE.run(|| {
        while !FINISHED.load(Ordering::SeqCst) {
            if wait() {
                std::thread::sleep(DELAY);
                SUBMITTED.store(0, Ordering::Relaxed);
            }
            FLUSHING.fetch_add(1, Ordering::SeqCst);
            if !FINISHED.load(Ordering::SeqCst) {
                flush();
                publish_drops();
            }
            FLUSHING.fetch_sub(1, Ordering::SeqCst);
        }
    });
    std::ptr::null_mut()
}

/// Lets the meta stream say what streams without a segment could not.
fn publish_drops() {
    if let Some(process) = process::existing()
        && process.directory.dropped() > 0
    {
        process.with_meta(|_| false);
    }
}

/// The last emptying. Afterwards the flusher leaves the provider alone, which is about to go away.
pub(crate) fn finish() {
    FINISHED.store(true, Ordering::SeqCst);
    // A flush under way takes milliseconds; should the provider hang in it, the target's exit must not.
    for _ in 0..1000 {
        if FLUSHING.load(Ordering::SeqCst) == 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    flush();
}

/// In a forked child: the flusher does not exist there.
pub(crate) fn forget_after_fork() {
    RUNNING.store(false, Ordering::Release);
    FLUSHING.store(0, Ordering::SeqCst);
}

/// Lets `handle` see every record of a delivery and counts what the provider dropped.
///
/// # Safety
///
/// `headers` points to `count` pointers to headers, as a buffer callback receives them.
pub(crate) unsafe fn deliver(
    service: &Service,
    headers: *mut *mut rocprofiler_record_header_t,
    count: usize,
    dropped: u64,
    mut handle: impl FnMut(&mut crate::thread::Thread, &rocprofiler_record_header_t),
) {
    service.run(|| {
        if dropped > 0
            && let Some(process) = process::current()
        {
            process.directory.drop_records(dropped);
            publish_drops();
        }
        if headers.is_null() || count == 0 {
            return;
        }
        // SAFETY: as this function demands.
        let headers = unsafe { std::slice::from_raw_parts(headers, count) };
        crate::thread::with(|thread| {
            for header in headers {
                // SAFETY: each points to a header, which is valid during the callback.
                if let Some(header) = unsafe { header.as_ref() } {
                    handle(thread, header);
                }
            }
        });
    });
}
