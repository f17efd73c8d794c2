//! ROCTx: marks, ranges, names, pause and resume.

use std::cell::RefCell;
use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::ffi::c_char;

use rpd_spool::capture::marker as kind;
use rpd_spool::options::CollectorOptions;
use rpd_spool::writer::{OpenRecord, now};

use super::calls;
use super::hooks::{Hook, hook};
use crate::names::Catalogue;
use crate::recording::fork::ForkHook;
use crate::recording::frames::Frame;
use crate::recording::guard::Service;
use crate::recording::kinds::KindNames;
use crate::recording::markers::{self, Message, Resource};
use crate::recording::setting::Setting;
use crate::recording::stacks::Selection;
use crate::recording::{call, capture, regions, switch, thread};

static RANGES: Service = Service::new("markers");
static CONTROL: Service = Service::new("pause and resume");
static NAMES: Service = Service::new("names");

/// Numbers of the operations of `MARKER_CORE_RANGE_API`.
const MARK: usize = 0;
const THREAD_RANGE: usize = 1;
const PROCESS_RANGE: usize = 2;
const GET_THREAD_ID: usize = 3;

/// Actions at marks, ranges and control calls.
struct Config {
    /// Whether markers are recorded.
    recorded: bool,
    /// Number of the kind of ranges.
    ranges: u16,
    range_stacks: Option<Selection>,
    /// Number of the kind of pause and resume.
    control: u16,
    control_stacks: Option<Selection>,
    /// Whether pause and resume are obeyed.
    obeyed: bool,
    /// Whether ranges rename kernels.
    rename: bool,
    /// Whether marks rename kernels too, and ranges without a message do not, as in rocprofv3.
    original: bool,
    /// Ranges, pause and resume are part of a capture.
    captured: bool,
}

static CONFIG: Setting<Config> = Setting::new();

pub(super) fn configure(options: &CollectorOptions, names: &Catalogue) {
    let number = |kind: Option<&KindNames>| kind.map_or(0, |kind| kind.number as u16);
    let stacks = |kind: Option<&KindNames>| {
        kind.and_then(|kind| Selection::from_options(&options.stacks, &kind.operations))
    };
    let (ranges, control) = (
        names.kind("MARKER_CORE_RANGE_API"),
        names.kind("MARKER_CONTROL_API"),
    );
    let recorded = options.traces.marker;
    CONFIG.set(Config {
        recorded,
        ranges: number(ranges),
        range_stacks: stacks(ranges),
        control: number(control),
        control_stacks: stacks(control),
        obeyed: (options.traces.any() || options.counters.any())
            && (!options.original_semantics || recorded || switch::by_regions(options)),
        rename: options.kernel_rename,
        original: options.original_semantics,
        captured: options.capture.markers,
    });
}

/// A range that is open.
struct Open {
    frame: Box<Frame>,
    record: OpenRecord,
}

/// Open ranges of the process, by the id that ROCTx gave them.
struct StartedRanges(UnsafeCell<Option<HashMap<u64, Open>>>);

// SAFETY: only touched with the lock of [`FORK`] held.
unsafe impl Sync for StartedRanges {}

static STARTED: StartedRanges = StartedRanges(UnsafeCell::new(None));
static FORK: ForkHook = ForkHook::new();

thread_local! {
    /// Ranges that the thread has pushed; `None` for those that are not recorded.
    static PUSHED: RefCell<Pushed> = const {
        RefCell::new(Pushed {
            recording: 0,
            ranges: Vec::new(),
        })
    };
}

/// Ranges that a thread has pushed, in one recording of the process.
struct Pushed {
    recording: u32,
    ranges: Vec<Option<Open>>,
}

impl Pushed {
    /// The ranges of the present recording: how those of an earlier one went on is not known.
    fn present(&mut self) -> &mut Vec<Option<Open>> {
        let recording = thread::recording();
        if self.recording != recording {
            self.recording = recording;
            self.ranges.clear();
        }
        &mut self.ranges
    }
}

/// Forgets the ranges of an earlier recording of a process that is attached to.
pub(super) fn forget() {
    with_started(HashMap::clear);
}

fn with_started<T>(act: impl FnOnce(&mut HashMap<u64, Open>) -> T) -> Option<T> {
    let _guard = FORK.lock()?;
    // SAFETY: the lock is held.
    Some(act(unsafe { &mut *STARTED.0.get() }.get_or_insert_default()))
}

/// Enters a mark or range if it is recorded, or renames kernels, which gives it an id.
fn open(config: &Config, operation: usize, message: *const c_char) -> Option<Open> {
    let recorded = config.recorded && calls::are_on();
    let renames =
        config.rename && (operation == THREAD_RANGE || operation == MARK && config.original);
    let captured = config.captured && matches!(operation, THREAD_RANGE | PROCESS_RANGE);
    if !recorded && !renames && !captured {
        return None;
    }
    let mut frame = Box::new(Frame::unused());
    let entered = frame.enter();
    let mut record = OpenRecord::default();
    // SAFETY: the program's own text.
    let text = || unsafe { Message::read(message) };
    if recorded {
        let stacks = config.range_stacks.as_ref();
        let has_stack = stacks.is_some_and(|stacks| stacks.takes(operation as i32));
        let call = entered.call(config.ranges, operation, has_stack);
        match operation {
            MARK => markers::mark(&call, text()),
            THREAD_RANGE => record = markers::begin_thread_range(&call, text()),
            PROCESS_RANGE => markers::begin_process_range(&call, text()),
            _ => record = call.begin(0, 0, |_| {}),
        }
    }
    if captured {
        let message = text().text.unwrap_or_default();
        capture::marker(kind::BEGIN, frame.correlation, message);
    }
    if config.rename && operation == THREAD_RANGE {
        push_region(config, text(), frame.correlation);
    }
    Some(Open { frame, record })
}

fn push_region(config: &Config, message: Message<'_>, correlation: u64) {
    if message.text.is_some() || !config.original {
        regions::push(message.text.unwrap_or_default(), correlation);
    }
}

impl Drop for Open {
    /// Closes the ranges in which a thread ends: the work of its destructors is not inside them.
    fn drop(&mut self) {
        self.frame.leave();
    }
}

impl Open {
    fn close(&self, result: u64, returned: u64) {
        call::end(self.record, result, returned);
    }

    /// A range ends for a capture.
    fn captured_end(&self) {
        if CONFIG.get().is_some_and(|config| config.captured) {
            capture::marker(kind::END, self.frame.correlation, b"");
        }
    }
}

hook! {
    MARK_HOOK: MARKER_CORE_API::roctxMarkA,
    fn mark(message: *const c_char) -> (),
    |next| {
        let mark = RANGES
            .on_event(|| CONFIG.get().and_then(|config| open(config, MARK, message)))
            .flatten();
        next(message);
        if let Some(mark) = mark {
            RANGES.run(|| {
                mark.close(0, now());
                if let Some(config) = CONFIG.get()
                    && config.rename
                    && config.original
                {
                    // SAFETY: the program's own text.
                    push_region(config, unsafe { Message::read(message) }, mark.frame.correlation);
                }
            });
        }
    }
}

hook! {
    PUSH: MARKER_CORE_API::roctxRangePushA,
    fn range_push(message: *const c_char) -> i32,
    |next| {
        let range = RANGES
            .on_event(|| CONFIG.get().and_then(|config| open(config, THREAD_RANGE, message)))
            .flatten();
        let level = next(message);
        RANGES.run(|| {
            let _ = PUSHED.try_with(|pushed| pushed.borrow_mut().present().push(range));
        });
        level
    }
}

hook! {
    POP: MARKER_CORE_API::roctxRangePop,
    fn range_pop() -> i32,
    |next| {
        let level = next();
        let returned = now();
        RANGES.run(|| {
            let range = PUSHED
                .try_with(|pushed| pushed.borrow_mut().present().pop())
                .ok()
                .flatten()
                .flatten();
            if let Some(range) = range {
                range.close(level.cast_unsigned().into(), returned);
                range.captured_end();
                if CONFIG.get().is_some_and(|config| config.rename) {
                    regions::pop();
                }
            }
        });
        level
    }
}

hook! {
    START: MARKER_CORE_API::roctxRangeStartA,
    fn range_start(message: *const c_char) -> u64,
    |next| {
        let range = RANGES
            .on_event(|| CONFIG.get().and_then(|config| open(config, PROCESS_RANGE, message)))
            .flatten();
        let id = next(message);
        if let Some(range) = range {
            RANGES.run(|| {
                // The range ends independently of this thread's next calls: any thread may stop it.
                range.frame.leave();
                with_started(|started| started.insert(id, range));
            });
        }
        id
    }
}

hook! {
    STOP: MARKER_CORE_API::roctxRangeStop,
    fn range_stop(id: u64) -> (),
    |next| {
        next(id);
        let returned = now();
        RANGES.on_event(|| {
            if let Some(range) = with_started(|started| started.remove(&id)).flatten() {
                if CONFIG.get().is_some_and(|config| config.recorded) {
                    markers::end_process_range(range.frame.correlation, returned);
                }
                range.captured_end();
            }
        });
    }
}

hook! {
    THREAD_ID: MARKER_CORE_API::roctxGetThreadId,
    fn thread_id(place: *mut u64) -> i32,
    |next| {
        let call = RANGES
            .on_event(|| {
                let config = CONFIG.get()?;
                open(config, GET_THREAD_ID, std::ptr::null())
            })
            .flatten();
        let result = next(place);
        if let Some(call) = call {
            RANGES.run(|| call.close(result.cast_unsigned().into(), now()));
        }
        result
    }
}

/// Makes a call that pauses or resumes; `act` obeys it.
fn control(operation: usize, call: impl FnOnce() -> i32, before: bool, act: fn()) -> i32 {
    let mut frame = Frame::unused();
    let record = CONTROL
        .on_event(|| {
            let config = CONFIG.get()?;
            let mut record = OpenRecord::default();
            if config.recorded {
                let entered = frame.enter();
                let stacks = config.control_stacks.as_ref();
                let has_stack = stacks.is_some_and(|stacks| stacks.takes(operation as i32));
                let call = entered.call(config.control, operation, has_stack);
                record = call.begin(0, 0, |_| {});
            }
            // A pause takes effect before the runtime's function is called, a resume after it: work inside that
            // function belongs to the pause.
            if config.obeyed && before {
                act();
            }
            if config.captured && before {
                capture::marker(kind::PAUSE, 0, b"");
            }
            Some((record, config))
        })
        .flatten();
    let result = call();
    let returned = now();
    if let Some((record, config)) = record {
        CONTROL.run(|| {
            if config.obeyed && !before {
                act();
            }
            if config.captured && !before {
                capture::marker(kind::RESUME, 0, b"");
            }
            call::end(record, result.cast_unsigned().into(), returned);
            if frame.correlation != 0 {
                frame.leave();
            }
        });
    }
    result
}

hook! {
    PAUSE: MARKER_CONTROL_API::roctxProfilerPause,
    fn pause(thread: u64) -> i32,
    |next| { control(0, || next(thread), true, switch::pause) }
}

hook! {
    RESUME: MARKER_CONTROL_API::roctxProfilerResume,
    fn resume(thread: u64) -> i32,
    |next| { control(1, || next(thread), false, switch::resume) }
}

/// Records a name if markers are.
fn name(resource: Resource, id: u64, name: *const c_char) {
    NAMES.on_event(|| {
        if CONFIG.get().is_some_and(|config| config.recorded) {
            // SAFETY: the program's own text.
            markers::name_resource(resource, id, unsafe { Message::read(name) });
        }
    });
}

hook! {
    NAME_THREAD: MARKER_NAME_API::roctxNameOsThread,
    fn name_thread(text: *const c_char) -> i32,
    |next| {
        name(Resource::OsThread, thread::id().into(), text);
        next(text)
    }
}

hook! {
    NAME_AGENT: MARKER_NAME_API::roctxNameHsaAgent,
    fn name_agent(text: *const c_char, agent: *const u64) -> i32,
    |next| {
        // SAFETY: null, or the program's agent.
        let handle = unsafe { agent.as_ref() }.copied().unwrap_or(0);
        name(Resource::HsaAgent, handle, text);
        next(text, agent)
    }
}

hook! {
    NAME_DEVICE: MARKER_NAME_API::roctxNameHipDevice,
    fn name_device(text: *const c_char, device: i32) -> i32,
    |next| {
        name(Resource::HipDevice, device.cast_unsigned().into(), text);
        next(text, device)
    }
}

hook! {
    NAME_STREAM: MARKER_NAME_API::roctxNameHipStream,
    fn name_stream(text: *const c_char, stream: u64) -> i32,
    |next| {
        name(Resource::HipStream, stream, text);
        next(text, stream)
    }
}

/// Hooks for the tables of ROCTx.
pub(super) static HOOKS: [&Hook; 12] = [
    &MARK_HOOK,
    &PUSH,
    &POP,
    &START,
    &STOP,
    &THREAD_ID,
    &PAUSE,
    &RESUME,
    &NAME_THREAD,
    &NAME_AGENT,
    &NAME_DEVICE,
    &NAME_STREAM,
];
