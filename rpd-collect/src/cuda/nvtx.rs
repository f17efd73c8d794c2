//! NVTX marks and ranges, through an injection of our own: it needs neither CUPTI nor CUDA.
//!
//! Each library with a copy of NVTX's headers calls [`InitializeInjectionNvtx2`] at its first mark or range.

use std::cell::RefCell;
use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use cupti_sys::nvtx::{
    CALLBACKS, Callbacks, EventAttributes, GetExportTable, VERSION, Version, core, core2, cuda,
    cudart, message_type, module,
};
use cupti_sys::result;
use rpd_spool::writer::{OpenRecord, now};

use super::{cupti, details, entry, shared};
use crate::lifecycle::load;
use crate::recording::fork::ForkHook;
use crate::recording::frames::Frame;
use crate::recording::guard::Service;
use crate::recording::markers::{self, Message, Resource};
use crate::recording::{call, process, regions, switch};

static SERVICE: Service = Service::new("NVTX");

/// Numbers of the operations of `MARKER_CORE_RANGE_API`.
const MARK: usize = 0;
const THREAD_RANGE: usize = 1;
const PROCESS_RANGE: usize = 2;

/// Version of NVTX that is supported.
const SUPPORTED: u32 = 3;

/// What is done with marks and ranges.
struct Config {
    /// Whether ranges rename kernels.
    rename: bool,
}

static CONFIG: OnceLock<Config> = OnceLock::new();

/// A range that a thread has pushed. Its frame must not move: ranges are boxed, and used again.
struct Range {
    frame: Frame,
    record: OpenRecord,
    /// Domain of the range; 0 for none.
    domain: usize,
    /// Whether it is recorded.
    recorded: bool,
}

/// Ranges of a thread.
#[expect(
    clippy::vec_box,
    reason = "ranges go from one list to the other without being copied"
)]
struct Ranges {
    pushed: Vec<Box<Range>>,
    free: Vec<Box<Range>>,
}

thread_local! {
    static RANGES: RefCell<Ranges> = const { RefCell::new(Ranges { pushed: Vec::new(), free: Vec::new() }) };
}

impl Drop for Ranges {
    /// Closes the ranges in which a thread ends: the work of its destructors is not inside them.
    fn drop(&mut self) {
        for range in self.pushed.iter().filter(|range| range.recorded) {
            range.frame.leave();
        }
    }
}

/// Correlation ids of ranges that any thread may end, by the id that the program has.
struct Started(UnsafeCell<Option<HashMap<u64, u64>>>);

// SAFETY: only touched with the lock of [`FORK`] held.
unsafe impl Sync for Started {}

static STARTED: Started = Started(UnsafeCell::new(None));
static FORK: ForkHook = ForkHook::new();
static NEXT_RANGE: AtomicU64 = AtomicU64::new(1);

fn with_started<T>(act: impl FnOnce(&mut HashMap<u64, u64>) -> T) -> Option<T> {
    let _guard = FORK.lock()?;
    // SAFETY: the lock is held.
    Some(act(unsafe { &mut *STARTED.0.get() }.get_or_insert_default()))
}

/// Sets the functions through which NVTX passes marks and ranges. 1 when they are recorded; otherwise NVTX does nothing.
///
/// # Safety
///
/// Called by NVTX, whose function returns tables of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(tables: Option<GetExportTable>) -> c_int {
    let set = SERVICE.run(|| {
        load::install();
        let process = process::current()?;
        if !process.options.traces.marker && !process.options.kernel_rename {
            return None;
        }
        let tables = tables?;
        // SAFETY: NVTX's own tables under their numbers, or null.
        let (version, callbacks) = unsafe {
            (
                tables(VERSION).cast::<Version>().as_ref(),
                tables(CALLBACKS).cast::<Callbacks>().as_ref()?,
            )
        };
        let module = callbacks.module?;
        shared::prepare(process);
        entry::end_at_exit();
        CONFIG.get_or_init(|| Config {
            rename: process.options.kernel_rename,
        });
        if let Some(set) = version.and_then(|version| version.set_injection_version) {
            // SAFETY: NVTX's own function.
            unsafe { set(SUPPORTED) };
        }
        // SAFETY: the functions have the types that NVTX has for these numbers.
        unsafe {
            install(module, module::CORE, &CORE);
            install(module, module::CORE2, &CORE2);
            install(module, module::CUDA, &CUDA);
            install(module, module::CUDART, &CUDART);
        }
        Some(())
    });
    set.flatten().is_some().into()
}

/// A function of ours, for the function of NVTX with this number.
struct Function(usize, *const c_void);

// SAFETY: addresses of functions.
unsafe impl Sync for Function {}

static CORE: [Function; 15] = [
    Function(core::MARK_EX, mark_ex as *const c_void),
    Function(core::MARK_A, mark as *const c_void),
    Function(core::MARK_W, mark_wide as *const c_void),
    Function(core::RANGE_START_EX, start_ex as *const c_void),
    Function(core::RANGE_START_A, start as *const c_void),
    Function(core::RANGE_START_W, start_wide as *const c_void),
    Function(core::RANGE_END, end_range as *const c_void),
    Function(core::RANGE_PUSH_EX, push_ex as *const c_void),
    Function(core::RANGE_PUSH_A, push as *const c_void),
    Function(core::RANGE_PUSH_W, push_wide as *const c_void),
    Function(core::RANGE_POP, pop as *const c_void),
    Function(core::NAME_CATEGORY_A, name_category as *const c_void),
    Function(core::NAME_CATEGORY_W, name_category_wide as *const c_void),
    Function(core::NAME_OS_THREAD_A, name_thread as *const c_void),
    Function(core::NAME_OS_THREAD_W, name_thread_wide as *const c_void),
];

static CUDA: [Function; 2] = [
    Function(cuda::NAME_STREAM_A, name_stream as *const c_void),
    Function(cuda::NAME_STREAM_W, name_stream_wide as *const c_void),
];

static CUDART: [Function; 2] = [
    Function(cudart::NAME_STREAM_A, name_stream as *const c_void),
    Function(cudart::NAME_STREAM_W, name_stream_wide as *const c_void),
];

static CORE2: [Function; 11] = [
    Function(core2::DOMAIN_MARK_EX, domain_mark as *const c_void),
    Function(core2::DOMAIN_RANGE_START_EX, domain_start as *const c_void),
    Function(core2::DOMAIN_RANGE_END, domain_end as *const c_void),
    Function(core2::DOMAIN_RANGE_PUSH_EX, domain_push as *const c_void),
    Function(core2::DOMAIN_RANGE_POP, domain_pop as *const c_void),
    Function(
        core2::DOMAIN_NAME_CATEGORY_A,
        domain_name_category as *const c_void,
    ),
    Function(
        core2::DOMAIN_NAME_CATEGORY_W,
        domain_name_category_wide as *const c_void,
    ),
    Function(core2::DOMAIN_REGISTER_STRING_A, register as *const c_void),
    Function(
        core2::DOMAIN_REGISTER_STRING_W,
        register_wide as *const c_void,
    ),
    Function(core2::DOMAIN_CREATE_A, create as *const c_void),
    Function(core2::DOMAIN_CREATE_W, create_wide as *const c_void),
];

/// Sets the functions of a module.
///
/// # Safety
///
/// `module` is NVTX's, and the functions have the types that it has for their numbers.
unsafe fn install(
    module: unsafe extern "C" fn(c_int, *mut *const *mut *const c_void, *mut u32) -> c_int,
    number: c_int,
    functions: &[Function],
) {
    let (mut places, mut count) = (std::ptr::null(), 0);
    // SAFETY: both are written when the answer is not 0; a place is null or that of a function pointer.
    unsafe {
        if module(number, &raw mut places, &raw mut count) == 0 || places.is_null() {
            return;
        }
        for Function(index, function) in functions {
            if *index < count as usize {
                let place = *places.add(*index);
                if !place.is_null() {
                    place.write(*function);
                }
            }
        }
    }
}

/// Whether marks and ranges are recorded now.
fn is_on(config: &Config) -> bool {
    switch::is_on()
        && (config.rename || process::existing().is_some_and(|p| p.options.traces.marker))
}

/// A text of 32-bit characters.
///
/// # Safety
///
/// `text` is null or ends with a zero.
unsafe fn wide(text: *const u32) -> Option<String> {
    /// Characters that are kept.
    const MOST: usize = 64 << 10;
    if text.is_null() {
        return None;
    }
    let mut found = String::new();
    for index in 0..MOST {
        // SAFETY: no character after the zero is read.
        match unsafe { text.add(index).read_unaligned() } {
            0 => break,
            letter => found.push(char::from_u32(letter).unwrap_or(char::REPLACEMENT_CHARACTER)),
        }
    }
    Some(found)
}

/// A domain of the program's. Its address is the handle that the program has; it is never freed.
struct Domain {
    name: String,
}

/// Calls `act` with the message of a mark or range: its text, after the name of its domain.
///
/// # Safety
///
/// `domain` is 0 or a handle from [`create`]; `attributes` is null or points to attributes that the program has filled.
unsafe fn with_message<T>(
    domain: usize,
    attributes: *const EventAttributes,
    act: impl FnOnce(Message<'_>) -> T,
) -> T {
    // SAFETY: by the contract of this function.
    let (domain, attributes) = unsafe { ((domain as *const Domain).as_ref(), attributes.as_ref()) };
    // Handles of registered texts are the addresses of these texts.
    let plain = attributes.map_or(std::ptr::null(), |given| match given.message_type {
        message_type::ASCII | message_type::REGISTERED => given.message,
        _ => std::ptr::null(),
    });
    let converted = attributes
        .filter(|given| given.message_type == message_type::UNICODE)
        // SAFETY: a text of 32-bit characters.
        .and_then(|given| unsafe { wide(given.message.cast::<u32>()) });
    let details = attributes.map_or_else(Vec::new, |given| {
        details::encode(
            given,
            domain.map_or(0, |domain| std::ptr::from_ref(domain) as usize),
        )
    });
    let details = &details[..];
    match (domain, converted) {
        // SAFETY: null or the program's own text.
        (None, None) => act(unsafe { Message::read(plain) }.with_details(details)),
        (None, Some(text)) => act(Message::from_text(text.as_bytes()).with_details(details)),
        (Some(domain), converted) => {
            let text = converted.unwrap_or_else(|| {
                // SAFETY: null or the program's own text.
                let text = unsafe { Message::read(plain) }.text.unwrap_or_default();
                String::from_utf8_lossy(text).into_owned()
            });
            let text = format!("{}:{text}", domain.name);
            act(Message::from_text(text.as_bytes()).with_details(details))
        }
    }
}

fn call_of(frame: &mut Frame, operation: usize) -> Option<call::Call> {
    let markers = &shared::get()?.markers;
    let stacks = markers.stacks.as_ref();
    let has_stack = stacks.is_some_and(|selection| selection.takes(operation as i32));
    Some(frame.enter().call(markers.number, operation, has_stack))
}

fn record_mark(message: Message<'_>) {
    if !CONFIG.get().is_some_and(is_on) {
        return;
    }
    let mut frame = Frame::unused();
    if let Some(call) = call_of(&mut frame, MARK) {
        markers::mark(&call, message);
        frame.leave();
    }
}

fn record_start(message: Message<'_>) -> u64 {
    let id = NEXT_RANGE.fetch_add(1, Ordering::Relaxed);
    if CONFIG.get().is_some_and(is_on) {
        let mut frame = Frame::unused();
        if let Some(call) = call_of(&mut frame, PROCESS_RANGE) {
            markers::begin_process_range(&call, message);
            // The range ends independently of this thread's next calls: any thread may end it.
            frame.leave();
            with_started(|started| started.insert(id, frame.correlation));
        }
    }
    id
}

fn record_end(id: u64, returned: u64) {
    if let Some(correlation) = with_started(|started| started.remove(&id)).flatten() {
        markers::end_process_range(correlation, returned);
    }
}

/// Begins a range of the calling thread. The number of ranges of the domain that it was in before.
fn record_push(domain: usize, message: Message<'_>) -> c_int {
    let on = CONFIG.get().filter(|config| is_on(config));
    RANGES
        .try_with(|ranges| {
            let Ok(mut ranges) = ranges.try_borrow_mut() else {
                return 0;
            };
            let level = depth_of(&ranges.pushed, domain);
            let mut range = ranges.free.pop().unwrap_or_else(|| {
                Box::new(Range {
                    frame: Frame::unused(),
                    record: OpenRecord::default(),
                    domain,
                    recorded: false,
                })
            });
            range.domain = domain;
            range.frame = Frame::unused();
            range.record = OpenRecord::default();
            range.recorded = on.is_some();
            if let Some(config) = on
                && let Some(call) = call_of(&mut range.frame, THREAD_RANGE)
            {
                range.record = markers::begin_thread_range(&call, message);
                if config.rename {
                    regions::push(message.text.unwrap_or_default(), range.frame.correlation);
                }
            }
            ranges.pushed.push(range);
            level
        })
        .unwrap_or(0)
}

fn depth_of(pushed: &[Box<Range>], domain: usize) -> c_int {
    pushed.iter().filter(|range| range.domain == domain).count() as c_int
}

/// Ends the last range of the domain. The number of those around it; negative when there is none.
fn record_pop(domain: usize, returned: u64) -> c_int {
    /// What NVTX returns for a range that was not pushed.
    const NO_RANGE: c_int = -2;
    RANGES
        .try_with(|ranges| {
            let Ok(mut ranges) = ranges.try_borrow_mut() else {
                return NO_RANGE;
            };
            let last = ranges
                .pushed
                .iter()
                .rposition(|range| range.domain == domain);
            let Some(last) = last else { return NO_RANGE };
            let range = ranges.pushed.remove(last);
            if range.recorded {
                call::end(range.record, 0, returned);
                range.frame.leave();
                if CONFIG.get().is_some_and(|config| config.rename) {
                    regions::pop();
                }
            }
            ranges.free.push(range);
            depth_of(&ranges.pushed, domain)
        })
        .unwrap_or(NO_RANGE)
}

/// Attributes with a plain text.
fn plain(text: *const c_char) -> EventAttributes {
    // SAFETY: zeros are a value of the struct.
    let mut attributes: EventAttributes = unsafe { std::mem::zeroed() };
    attributes.message_type = message_type::ASCII;
    attributes.message = text;
    attributes
}

/// Attributes with a text of 32-bit characters.
fn unicode(text: *const u32) -> EventAttributes {
    let mut attributes = plain(text.cast::<c_char>());
    attributes.message_type = message_type::UNICODE;
    attributes
}

unsafe extern "C" fn mark_ex(attributes: *const EventAttributes) {
    // SAFETY: the program's own attributes.
    unsafe { domain_mark(0, attributes) };
}

unsafe extern "C" fn mark(text: *const c_char) {
    // SAFETY: the program's own text.
    unsafe { domain_mark(0, &plain(text)) };
}

unsafe extern "C" fn mark_wide(text: *const u32) {
    // SAFETY: the program's own text.
    unsafe { domain_mark(0, &unicode(text)) };
}

unsafe extern "C" fn start_ex(attributes: *const EventAttributes) -> u64 {
    // SAFETY: the program's own attributes.
    unsafe { domain_start(0, attributes) }
}

unsafe extern "C" fn start(text: *const c_char) -> u64 {
    // SAFETY: the program's own text.
    unsafe { domain_start(0, &plain(text)) }
}

unsafe extern "C" fn start_wide(text: *const u32) -> u64 {
    // SAFETY: the program's own text.
    unsafe { domain_start(0, &unicode(text)) }
}

unsafe extern "C" fn end_range(id: u64) {
    let returned = now();
    SERVICE.on_event(|| record_end(id, returned));
}

unsafe extern "C" fn push_ex(attributes: *const EventAttributes) -> c_int {
    // SAFETY: the program's own attributes.
    unsafe { domain_push(0, attributes) }
}

unsafe extern "C" fn push(text: *const c_char) -> c_int {
    SERVICE
        // SAFETY: the program's own text.
        .on_event(|| record_push(0, unsafe { Message::read(text) }))
        .unwrap_or(0)
}

unsafe extern "C" fn push_wide(text: *const u32) -> c_int {
    // SAFETY: the program's own text.
    unsafe { domain_push(0, &unicode(text)) }
}

unsafe extern "C" fn pop() -> c_int {
    let returned = now();
    SERVICE.on_event(|| record_pop(0, returned)).unwrap_or(0)
}

unsafe extern "C" fn name_category(id: u32, text: *const c_char) {
    // SAFETY: the program's own text.
    unsafe { domain_name_category(0, id, text) };
}

unsafe extern "C" fn name_category_wide(id: u32, text: *const u32) {
    // SAFETY: the program's own text.
    unsafe { domain_name_category_wide(0, id, text) };
}

unsafe extern "C" fn domain_name_category(domain: usize, id: u32, text: *const c_char) {
    SERVICE.on_event(|| {
        // SAFETY: the program's own text.
        if let Some(text) = unsafe { Message::read(text) }.text {
            details::name_category(domain, id, &String::from_utf8_lossy(text));
        }
    });
}

unsafe extern "C" fn domain_name_category_wide(domain: usize, id: u32, text: *const u32) {
    SERVICE.on_event(|| {
        // SAFETY: the program's own text.
        if let Some(text) = unsafe { wide(text) } {
            details::name_category(domain, id, &text);
        }
    });
}

/// Records the name of a stream by the number that CUPTI gives it; nothing where CUPTI does not know the stream.
fn name_stream_of(stream: *mut c_void, name: Message<'_>) {
    let Some(get) = cupti::functions().and_then(|functions| functions.get_stream_id) else {
        return;
    };
    let mut id = 0;
    // SAFETY: the program's own handle; the number is written.
    if unsafe { get(std::ptr::null_mut(), stream, 0, &raw mut id) } == result::SUCCESS {
        markers::name_resource(Resource::Stream, id.into(), name);
    }
}

unsafe extern "C" fn name_stream(stream: *mut c_void, text: *const c_char) {
    // SAFETY: the program's own text.
    SERVICE.on_event(|| name_stream_of(stream, unsafe { Message::read(text) }));
}

unsafe extern "C" fn name_stream_wide(stream: *mut c_void, text: *const u32) {
    SERVICE.on_event(|| {
        // SAFETY: the program's own text.
        if let Some(text) = unsafe { wide(text) } {
            name_stream_of(stream, Message::from_text(text.as_bytes()));
        }
    });
}

unsafe extern "C" fn name_thread(id: u32, text: *const c_char) {
    SERVICE.on_event(|| {
        // SAFETY: the program's own text.
        markers::name_resource(Resource::OsThread, id.into(), unsafe {
            Message::read(text)
        });
    });
}

unsafe extern "C" fn name_thread_wide(id: u32, text: *const u32) {
    SERVICE.on_event(|| {
        // SAFETY: the program's own text.
        if let Some(text) = unsafe { wide(text) } {
            markers::name_resource(
                Resource::OsThread,
                id.into(),
                Message::from_text(text.as_bytes()),
            );
        }
    });
}

unsafe extern "C" fn domain_mark(domain: usize, attributes: *const EventAttributes) {
    // SAFETY: the program's own handle and attributes.
    SERVICE.on_event(|| unsafe { with_message(domain, attributes, record_mark) });
}

unsafe extern "C" fn domain_start(domain: usize, attributes: *const EventAttributes) -> u64 {
    SERVICE
        // SAFETY: the program's own handle and attributes.
        .on_event(|| unsafe { with_message(domain, attributes, record_start) })
        .unwrap_or(0)
}

unsafe extern "C" fn domain_end(_domain: usize, id: u64) {
    let returned = now();
    SERVICE.on_event(|| record_end(id, returned));
}

unsafe extern "C" fn domain_push(domain: usize, attributes: *const EventAttributes) -> c_int {
    SERVICE
        .on_event(|| {
            // SAFETY: the program's own handle and attributes.
            unsafe { with_message(domain, attributes, |message| record_push(domain, message)) }
        })
        .unwrap_or(0)
}

unsafe extern "C" fn domain_pop(domain: usize) -> c_int {
    let returned = now();
    SERVICE
        .on_event(|| record_pop(domain, returned))
        .unwrap_or(0)
}

/// Keeps a text; its address is the handle that the program has from then on.
fn kept(text: CString) -> *const c_char {
    Box::leak(text.into_boxed_c_str()).as_ptr()
}

unsafe extern "C" fn register(_domain: usize, text: *const c_char) -> *const c_char {
    if text.is_null() {
        return std::ptr::null();
    }
    // SAFETY: the program's own text.
    kept(unsafe { CStr::from_ptr(text) }.to_owned())
}

unsafe extern "C" fn register_wide(_domain: usize, text: *const u32) -> *const c_char {
    // SAFETY: the program's own text.
    let text = unsafe { wide(text) };
    text.and_then(|text| CString::new(text).ok())
        .map_or(std::ptr::null(), kept)
}

fn domain_of(name: String) -> *const Domain {
    Box::leak(Box::new(Domain { name }))
}

unsafe extern "C" fn create(name: *const c_char) -> *const Domain {
    if name.is_null() {
        return std::ptr::null();
    }
    // SAFETY: the program's own text.
    domain_of(
        unsafe { CStr::from_ptr(name) }
            .to_string_lossy()
            .into_owned(),
    )
}

unsafe extern "C" fn create_wide(name: *const u32) -> *const Domain {
    // SAFETY: the program's own text.
    unsafe { wide(name) }.map_or(std::ptr::null(), domain_of)
}
