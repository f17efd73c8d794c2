//! CUPTI's functions, and the buffers of records.

use std::collections::VecDeque;
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};

use cupti_sys::callback::{STATE_FATAL_ERROR, domain};
use cupti_sys::{BufferCompleted, BufferRequested, Callback, Subscriber, SubscriberParams, result};

use crate::records::{Record, layouts};
use crate::{device, switches};

/// Ids of callbacks of a domain that can be enabled.
const IDS: usize = 1024;
/// Domains, from 0.
const DOMAINS: usize = 8;

/// The tool's function and its argument.
static CALLBACK: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static USER_DATA: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static ENABLED: [[AtomicBool; IDS]; DOMAINS] =
    [const { [const { AtomicBool::new(false) }; IDS] }; DOMAINS];
/// Kinds of records that are enabled, a bit each.
static KINDS: AtomicU64 = AtomicU64::new(0);
static CLOCK: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static DROPPED: AtomicUsize = AtomicUsize::new(0);
static NEXT_ID: AtomicU32 = AtomicU32::new(0);
static FATAL: AtomicBool = AtomicBool::new(false);

/// The id of the next call.
pub(crate) fn next_id() -> u32 {
    let first = switches::get().first_id;
    let next = || first.wrapping_add(NEXT_ID.fetch_add(1, Ordering::Relaxed));
    // 0 is no call's id.
    match next() {
        0 => next(),
        id => id,
    }
}

/// Whether the tool wants this callback.
pub(crate) fn wants(number: c_int, id: u32) -> bool {
    let of_domain = usize::try_from(number)
        .ok()
        .and_then(|number| ENABLED.get(number));
    let enabled = of_domain.and_then(|ids| ids.get(id as usize));
    enabled.is_some_and(|enabled| enabled.load(Ordering::Relaxed))
        && switches::get().silent.as_deref() != Some("all")
}

/// Calls the tool.
pub(crate) fn call(number: c_int, id: u32, data: *const c_void) {
    let callback = CALLBACK.load(Ordering::Acquire);
    if callback.is_null() {
        return;
    }
    // SAFETY: the tool's function, as it was subscribed; the data are those of this callback.
    unsafe {
        let callback = std::mem::transmute::<*mut c_void, Callback>(callback);
        callback(USER_DATA.load(Ordering::Relaxed), number, id, data);
    }
}

/// Reports a fatal error, if that is chosen, once.
pub(crate) fn fatal() {
    if switches::get().fatal
        && !FATAL.swap(true, Ordering::Relaxed)
        && wants(domain::STATE, STATE_FATAL_ERROR)
    {
        call(domain::STATE, STATE_FATAL_ERROR, std::ptr::null());
    }
}

/// The time on the clock of records.
pub(crate) fn now() -> u64 {
    let clock = CLOCK.load(Ordering::Relaxed);
    if clock.is_null() {
        return real_time();
    }
    // SAFETY: the tool's function, as it was registered.
    unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> u64>(clock)() }
}

fn real_time() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the time is written.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// Whether records of a kind are delivered.
pub(crate) fn records(kind: c_int) -> bool {
    KINDS.load(Ordering::Relaxed) >> kind & 1 != 0 && switches::get().silent.is_none()
}

/// A buffer of the tool's.
struct Buffer {
    number: u64,
    address: usize,
    size: usize,
    used: usize,
    /// Records that are not complete.
    open: usize,
}

/// A record in a buffer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    buffer: u64,
    offset: usize,
}

#[derive(Default)]
struct Buffers {
    /// The last one is written to.
    held: VecDeque<Buffer>,
    next: u64,
    requested: Option<BufferRequested>,
    completed: Option<BufferCompleted>,
}

static BUFFERS: Mutex<Option<Buffers>> = Mutex::new(None);

fn with_buffers<T>(act: impl FnOnce(&mut Buffers) -> T) -> T {
    let mut buffers = BUFFERS.lock().unwrap_or_else(PoisonError::into_inner);
    act(buffers.get_or_insert_default())
}

impl Buffers {
    /// Takes the buffers out that may be delivered.
    fn ready(&mut self, all: bool, full: bool) -> Vec<Buffer> {
        let last = self.held.back().map(|buffer| buffer.number);
        let is_ready =
            |buffer: &Buffer| (all || buffer.open == 0) && !(full && Some(buffer.number) == last);
        let (ready, held): (Vec<Buffer>, Vec<Buffer>) = self.held.drain(..).partition(is_ready);
        self.held = held.into();
        ready
    }
}

/// Writes a record that is complete with [`complete`]. `None` when there is no room for it.
pub(crate) fn append(record: &Record) -> Option<Place> {
    let length = record.0.len();
    with_buffers(|buffers| {
        let has_room = |buffer: &Buffer| buffer.size - buffer.used >= length;
        if !buffers.held.back().is_some_and(has_room) {
            let (mut address, mut size, mut most) = (std::ptr::null_mut(), 0, 0);
            // SAFETY: the tool's function, which writes all three.
            unsafe { buffers.requested?(&raw mut address, &raw mut size, &raw mut most) };
            if address.is_null() || size < length {
                DROPPED.fetch_add(1, Ordering::Relaxed);
                return None;
            }
            buffers.next += 1;
            buffers.held.push_back(Buffer {
                number: buffers.next,
                address: address as usize,
                size,
                used: 0,
                open: 0,
            });
        }
        let buffer = buffers.held.back_mut()?;
        let place = Place {
            buffer: buffer.number,
            offset: buffer.used,
        };
        // SAFETY: the buffer has room for it.
        unsafe {
            let to = (buffer.address as *mut u8).add(buffer.used);
            std::ptr::copy_nonoverlapping(record.0.as_ptr(), to, length);
        }
        buffer.used += length;
        buffer.open += 1;
        Some(place)
    })
}

/// Completes a record: `times` are its offset of two times and their values.
pub(crate) fn complete(place: Place, times: Option<(usize, u64, u64)>) {
    with_buffers(|buffers| {
        let Some(buffer) = buffers
            .held
            .iter_mut()
            .find(|one| one.number == place.buffer)
        else {
            return;
        };
        if let Some((offset, start, end)) = times {
            // SAFETY: the record was written there.
            unsafe {
                let at = (buffer.address as *mut u8)
                    .add(place.offset + offset)
                    .cast::<u64>();
                at.write(start);
                at.add(1).write(end);
            }
        }
        buffer.open -= 1;
    });
    let _ = to_deliver().send(Message::Full);
}

/// What the delivering thread is asked for.
enum Message {
    /// A record is complete: buffers that are full may be delivered.
    Full,
    /// Deliver buffers, all of them if the flag is set, and answer.
    Flush(bool, Sender<()>),
}

/// The delivering thread. A forked child has none, so that a request there waits for ever, as in CUPTI.
fn to_deliver() -> Sender<Message> {
    static THREAD: OnceLock<Mutex<Sender<Message>>> = OnceLock::new();
    let sender = THREAD.get_or_init(|| {
        let (sender, receiver) = channel();
        std::thread::spawn(move || deliver(&receiver));
        Mutex::new(sender)
    });
    sender
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
}

fn deliver(requests: &Receiver<Message>) {
    for request in requests {
        let (all, full) = match &request {
            Message::Full => (false, true),
            Message::Flush(all, _) => (*all, false),
        };
        let (ready, completed) =
            with_buffers(|buffers| (buffers.ready(all, full), buffers.completed));
        for buffer in ready {
            if let Some(completed) = completed {
                // SAFETY: the tool's function, with a buffer of its own that is not used any more.
                unsafe {
                    completed(
                        std::ptr::null_mut(),
                        0,
                        buffer.address as *mut u8,
                        buffer.size,
                        buffer.used,
                    );
                }
            }
        }
        if let Message::Flush(_, answer) = request {
            let _ = answer.send(());
        }
    }
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuptiGetVersion(version: *mut u32) -> c_int {
    // SAFETY: the caller's place for it.
    unsafe { version.write(layouts().version) };
    result::SUCCESS
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuptiGetResultString(status: c_int, text: *mut *const c_char) -> c_int {
    let known = match status {
        result::SUCCESS => c"CUPTI_SUCCESS",
        result::NOT_INITIALIZED => c"CUPTI_ERROR_NOT_INITIALIZED",
        result::INVALID_KIND => c"CUPTI_ERROR_INVALID_KIND",
        result::INSUFFICIENT_PRIVILEGES => c"CUPTI_ERROR_INSUFFICIENT_PRIVILEGES",
        result::MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED => {
            c"CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
        }
        result::HARDWARE_BUSY => c"CUPTI_ERROR_HARDWARE_BUSY",
        result::VIRTUALIZED_DEVICE_NOT_SUPPORTED => c"CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED",
        result::CONFIDENTIAL_COMPUTING_NOT_SUPPORTED => {
            c"CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED"
        }
        result::MIG_DEVICE_NOT_SUPPORTED => c"CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED",
        _ => c"CUPTI_ERROR_UNKNOWN",
    };
    // SAFETY: the caller's place for it.
    unsafe { text.write(known.as_ptr()) };
    result::SUCCESS
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuptiSubscribe(
    subscriber: *mut Subscriber,
    callback: Callback,
    data: *mut c_void,
) -> c_int {
    let status = switches::get().subscribe;
    if status != result::SUCCESS {
        return status;
    }
    if !CALLBACK.load(Ordering::Relaxed).is_null() {
        return result::MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    }
    USER_DATA.store(data, Ordering::Relaxed);
    CALLBACK.store(callback as *mut c_void, Ordering::Release);
    DROPPED.store(switches::get().dropped, Ordering::Relaxed);
    // SAFETY: the caller's place for it.
    unsafe { subscriber.write(CALLBACK.as_ptr().cast::<c_void>()) };
    result::SUCCESS
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuptiSubscribe_v2(
    subscriber: *mut Subscriber,
    callback: Callback,
    data: *mut c_void,
    parameters: *mut SubscriberParams,
) -> c_int {
    let status = cuptiSubscribe(subscriber, callback, data);
    if status == result::MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED {
        const NAME: &[u8] = b"another tool\0";
        // SAFETY: the caller's struct, with room for a name of the size in it.
        unsafe {
            let parameters = &*parameters;
            let count = NAME.len().min(parameters.old_size);
            std::ptr::copy_nonoverlapping(NAME.as_ptr(), parameters.old_name.cast::<u8>(), count);
        }
    }
    status
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuptiUnsubscribe(_subscriber: Subscriber) -> c_int {
    CALLBACK.store(std::ptr::null_mut(), Ordering::Release);
    result::SUCCESS
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuptiEnableDomain(
    on: u32,
    _subscriber: Subscriber,
    number: c_int,
) -> c_int {
    let Some(ids) = usize::try_from(number)
        .ok()
        .and_then(|number| ENABLED.get(number))
    else {
        return result::INVALID_PARAMETER;
    };
    for id in ids {
        id.store(on != 0, Ordering::Relaxed);
    }
    result::SUCCESS
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuptiEnableCallback(
    on: u32,
    _subscriber: Subscriber,
    number: c_int,
    id: u32,
) -> c_int {
    let ids = usize::try_from(number)
        .ok()
        .and_then(|number| ENABLED.get(number));
    match ids.and_then(|ids| ids.get(id as usize)) {
        Some(enabled) => {
            enabled.store(on != 0, Ordering::Relaxed);
            result::SUCCESS
        }
        None => result::INVALID_PARAMETER,
    }
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuptiGetCallbackName(
    _number: c_int,
    id: u32,
    name: *mut *const c_char,
) -> c_int {
    // A function that the tables of tools do not have.
    const NEWER: u32 = 567;
    if id != NEWER {
        return result::INVALID_PARAMETER;
    }
    // SAFETY: the caller's place for it.
    unsafe { name.write(c"cudaFromTheFuture_v99000".as_ptr()) };
    result::SUCCESS
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuptiActivityRegisterCallbacks(
    requested: BufferRequested,
    completed: BufferCompleted,
) -> c_int {
    with_buffers(|buffers| {
        buffers.requested = Some(requested);
        buffers.completed = Some(completed);
    });
    result::SUCCESS
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuptiActivityEnable(kind: c_int) -> c_int {
    let status = switches::get().enable;
    if status == result::SUCCESS {
        KINDS.fetch_or(1 << kind, Ordering::Relaxed);
    }
    status
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuptiActivityDisable(kind: c_int) -> c_int {
    KINDS.fetch_and(!(1 << kind), Ordering::Relaxed);
    result::SUCCESS
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuptiActivityGetNextRecord(
    buffer: *mut u8,
    valid: usize,
    record: *mut *mut c_void,
) -> c_int {
    // SAFETY: the tool passes a buffer with that many bytes of records, and one of them, or null for the first.
    unsafe {
        let last = record.read().cast::<u8>();
        let next = if last.is_null() {
            buffer
        } else {
            last.add(layouts().size(last.cast::<c_int>().read()))
        };
        if next as usize >= buffer as usize + valid {
            return result::MAX_LIMIT_REACHED;
        }
        record.write(next.cast::<c_void>());
    }
    result::SUCCESS
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuptiGetDeviceId(_context: *mut c_void, device: *mut u32) -> c_int {
    // SAFETY: the caller's place for it.
    unsafe { device.write(0) };
    result::SUCCESS
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuptiGetStreamIdEx(
    _context: *mut c_void,
    stream: *mut c_void,
    _per_thread: u8,
    number: *mut u32,
) -> c_int {
    // SAFETY: the caller's place for it.
    unsafe { number.write(device::stream_number(stream.cast::<device::Stream>())) };
    result::SUCCESS
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuptiGetGraphNodeId(node: *mut c_void, id: *mut u64) -> c_int {
    if node.is_null() {
        return result::INVALID_PARAMETER;
    }
    // SAFETY: a handle of a node, which is the address of its id; the caller's place for it.
    unsafe { id.write(*node.cast::<u64>()) };
    result::SUCCESS
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuptiActivityFlushAll(all: u32) -> c_int {
    let (answer, answered) = channel();
    let _ = to_deliver().send(Message::Flush(all != 0, answer));
    let _ = answered.recv();
    result::SUCCESS
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuptiActivityGetNumDroppedRecords(
    _context: *mut c_void,
    _stream: u32,
    count: *mut usize,
) -> c_int {
    // SAFETY: the caller's place for it.
    unsafe { count.write(DROPPED.swap(0, Ordering::Relaxed)) };
    result::SUCCESS
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuptiActivityRegisterTimestampCallback(
    clock: unsafe extern "C" fn() -> u64,
) -> c_int {
    if switches::get().own_clock {
        return result::NOT_SUPPORTED;
    }
    CLOCK.store(clock as *mut c_void, Ordering::Relaxed);
    result::SUCCESS
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuptiGetTimestamp(time: *mut u64) -> c_int {
    // SAFETY: the caller's place for it.
    unsafe { time.write(now()) };
    result::SUCCESS
}
