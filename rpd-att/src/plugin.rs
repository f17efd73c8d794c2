//! Decodes through the C interface of a trace decoder library of another vendor.

use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use libloading::Library as Loaded;

use crate::abi::types::{
    self, DataCallback, ERROR, INVALID_ARGUMENT, IsaCallback, OUT_OF_RESOURCES, SUCCESS, Status,
    TraceCallback, kind,
};
use crate::code::CodeObjects;
use crate::record::{
    Category, Info, Instruction, Occupancy, Pc, PerfEvent, Realtime, Record, ShaderData, Sink,
    Span, State, Wave,
};

/// Part of the file name of a decoder library.
const FILE: &str = "librocprof-trace-decoder.so";
/// File name of this crate's library where it was built.
const OWN: &str = "librpd_att.so";
/// Number of levels of directories below a given one that are searched.
const DEEPEST: usize = 16;

type Parse = unsafe extern "C" fn(DataCallback, TraceCallback, IsaCallback, *mut c_void) -> Status;
type Text = unsafe extern "C" fn(i32) -> *const c_char;
type Version = unsafe extern "C" fn() -> *const c_char;

/// Reason for which a library cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// No directory has the library.
    #[error("no file whose name contains librocprof-trace-decoder.so in {}", directories.join(", "))]
    NotFound {
        /// Directories that were searched.
        directories: Vec<String>,
    },
    /// The library cannot be loaded.
    #[error("cannot load {path}: {reason}")]
    NotAvailable {
        /// Library that was to be loaded.
        path: String,
        /// Message of the dynamic loader.
        reason: String,
    },
    /// The library lacks a function.
    #[error("{path} is not a trace decoder that can be used here: it lacks {symbol}")]
    IncompatibleAbi {
        /// Library that was to be loaded.
        path: String,
        /// Name of the missing function.
        symbol: &'static str,
    },
    /// The library did not decode the stream.
    #[error("{path} reports: {text} (status {status})")]
    Failed {
        /// Library that was to be loaded.
        path: String,
        /// Status that the library returned.
        status: Status,
        /// The library's text for the status.
        text: String,
    },
}

/// A decoder library that was loaded, and its functions.
#[derive(Debug)]
pub struct Library {
    path: PathBuf,
    parse: Parse,
    status_text: Text,
    version: Option<String>,
    /// Handle of the library, which keeps its functions callable.
    _loaded: Loaded,
}

/// The first decoder library in `directories` and the directories below them. A directory may be the file itself.
///
/// # Errors
/// [`PluginError::NotFound`].
pub fn find_library(directories: &[PathBuf]) -> Result<PathBuf, PluginError> {
    for directory in directories {
        if let Some(path) = search(directory, DEEPEST) {
            return Ok(path);
        }
    }
    Err(PluginError::NotFound {
        directories: directories
            .iter()
            .map(|directory| directory.display().to_string())
            .collect(),
    })
}

fn search(path: &Path, depth: usize) -> Option<PathBuf> {
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    if path.is_file() {
        let is_decoder = name.contains(FILE) || name == OWN;
        return is_decoder.then(|| path.to_owned());
    }
    let mut entries: Vec<PathBuf> = std::fs::read_dir(path)
        .ok()?
        .flatten()
        // A link to a directory above would be followed forever.
        .filter(|entry| {
            entry
                .file_type()
                .is_ok_and(|kind| !kind.is_symlink() || entry.path().is_file())
        })
        .map(|entry| entry.path())
        .collect();
    entries.sort();
    let depth = depth.checked_sub(1)?;
    entries.iter().find_map(|entry| search(entry, depth))
}

impl Library {
    /// Loads a library.
    ///
    /// # Errors
    /// [`PluginError::NotAvailable`] and [`PluginError::IncompatibleAbi`].
    pub fn open(path: &Path) -> Result<Self, PluginError> {
        let shown = path.display().to_string();
        // SAFETY: the user named the library, the initialisers of which run now.
        let loaded = unsafe { Loaded::new(path) }.map_err(|error| PluginError::NotAvailable {
            path: shown.clone(),
            reason: error.to_string(),
        })?;
        let missing = |symbol| PluginError::IncompatibleAbi {
            path: shown.clone(),
            symbol,
        };
        // SAFETY: functions of these names have these types; all versions of the interface agree on them.
        let parse = unsafe { loaded.get::<Parse>(c"rocprof_trace_decoder_parse_data") }
            .map(|found| *found)
            .map_err(|_| missing("rocprof_trace_decoder_parse_data"))?;
        // SAFETY: as above.
        let status_text = unsafe { loaded.get::<Text>(c"rocprof_trace_decoder_get_status_string") }
            .map(|found| *found)
            .map_err(|_| missing("rocprof_trace_decoder_get_status_string"))?;
        // SAFETY: as above; libraries other than rpd's do not have it.
        let version = unsafe { loaded.get::<Version>(c"rpd_trace_decoder_version") };
        let version = version.ok().map(|version| {
            // SAFETY: it takes nothing and returns a text that is never freed.
            let text = unsafe { CStr::from_ptr(version()) };
            text.to_string_lossy().into_owned()
        });
        Ok(Self {
            path: path.to_owned(),
            parse,
            status_text,
            version,
            _loaded: loaded,
        })
    }

    /// Path that the library was loaded from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The version of rpd to which the library belongs; `None` for libraries of other vendors.
    pub fn own_version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Decodes a whole stream with the library.
    ///
    /// # Errors
    /// [`PluginError::Failed`], with what was decoded before that in the sink.
    pub fn decode(
        &self,
        stream: &mut [u8],
        code: &CodeObjects,
        sink: &mut dyn Sink,
    ) -> Result<(), PluginError> {
        let mut call = Call {
            stream,
            given: false,
            code,
            sink,
            panicked: false,
        };
        // SAFETY: the callbacks have the interface's types, and `call` outlives the call, during which nothing else uses it.
        let status = unsafe {
            (self.parse)(
                Some(give_data),
                Some(take_records),
                Some(give_text),
                (&raw mut call).cast(),
            )
        };
        let panicked = call.panicked;
        if status == SUCCESS && !panicked {
            return Ok(());
        }
        // SAFETY: it takes any number and returns a text that is never freed, or null.
        let text = unsafe { (self.status_text)(status) };
        let text = if text.is_null() {
            String::new()
        } else {
            // SAFETY: not null; the interface requires that it is terminated.
            unsafe { CStr::from_ptr(text) }
                .to_string_lossy()
                .into_owned()
        };
        Err(PluginError::Failed {
            path: self.path.display().to_string(),
            status,
            text,
        })
    }
}

/// State of the callbacks during a call of the library.
struct Call<'a> {
    stream: &'a mut [u8],
    given: bool,
    code: &'a CodeObjects,
    sink: &'a mut dyn Sink,
    panicked: bool,
}

/// Runs a callback; a panic is noted, so that it does not unwind into the library.
fn callback<T>(user: *mut c_void, fallback: T, work: impl FnOnce(&mut Call<'_>) -> T) -> T {
    // SAFETY: `decode` passes a `Call`, which it does not use while the library runs, and the library calls back from one thread
    // at a time.
    let Some(call) = (unsafe { user.cast::<Call<'_>>().as_mut() }) else {
        return fallback;
    };
    match catch_unwind(AssertUnwindSafe(|| work(call))) {
        Ok(value) => value,
        Err(_) => {
            // SAFETY: as above; the borrow before ended.
            if let Some(call) = unsafe { user.cast::<Call<'_>>().as_mut() } {
                call.panicked = true;
            }
            fallback
        }
    }
}

unsafe extern "C" fn give_data(buffer: *mut *mut u8, size: *mut u64, user: *mut c_void) -> u64 {
    callback(user, 0, |call| {
        if std::mem::replace(&mut call.given, true) || buffer.is_null() || size.is_null() {
            return 0;
        }
        let bytes = call.stream.len() as u64;
        // SAFETY: neither is null, and the library lets both be written.
        unsafe {
            *buffer = call.stream.as_mut_ptr();
            *size = bytes;
        }
        bytes
    })
}

unsafe extern "C" fn give_text(
    text: *mut c_char,
    bytes: *mut u64,
    capacity: *mut u64,
    pc: types::Pc,
    user: *mut c_void,
) -> Status {
    callback(user, ERROR, |call| {
        if text.is_null() || bytes.is_null() || capacity.is_null() {
            return INVALID_ARGUMENT;
        }
        let Some(instruction) = call.code.instruction(pc.into()) else {
            return INVALID_ARGUMENT;
        };
        let line = instruction.text.as_bytes();
        // SAFETY: not null, and in and out by the interface.
        let room = unsafe { std::ptr::replace(capacity, line.len() as u64) };
        if room < line.len() as u64 {
            return OUT_OF_RESOURCES;
        }
        // SAFETY: there is room for the text.
        unsafe { std::ptr::copy_nonoverlapping(line.as_ptr(), text.cast(), line.len()) };
        // SAFETY: not null.
        unsafe { *bytes = u64::from(instruction.bytes) };
        SUCCESS
    })
}

/// The `count` records at `events` as a slice.
///
/// # Safety
/// They are there, or `count` is 0.
unsafe fn records<'a, T>(events: *const c_void, count: u64) -> &'a [T] {
    // No record is as large as 128 bytes, so that a count up to here cannot exceed what a slice may have.
    if events.is_null() || count == 0 || count > isize::MAX as u64 / 128 {
        return &[];
    }
    // SAFETY: the caller says so.
    unsafe { std::slice::from_raw_parts(events.cast::<T>(), count as usize) }
}

fn category(number: u32) -> Category {
    Category::from_number(number).unwrap_or(Category::None)
}

unsafe extern "C" fn take_records(
    number: i32,
    events: *mut c_void,
    count: u64,
    user: *mut c_void,
) -> Status {
    callback(user, ERROR, |call| {
        match number {
            kind::GFXIP => call.sink.record(Record::Gfx(events as usize as u32)),
            kind::OCCUPANCY => {
                // SAFETY: the library delivers `count` of these.
                let list: &[types::Occupancy] = unsafe { records(events, count) };
                let list: Vec<_> = list.iter().map(occupancy).collect();
                call.sink.record(Record::Occupancy(&list));
            }
            kind::PERFEVENT => {
                // SAFETY: as above.
                let list: &[types::PerfEvent] = unsafe { records(events, count) };
                let list: Vec<_> = (list.iter())
                    .map(|event| PerfEvent {
                        time: event.time,
                        values: event.events,
                        cu: event.cu,
                        bank: event.bank,
                    })
                    .collect();
                call.sink.record(Record::Perf(&list));
            }
            kind::WAVE => {
                // SAFETY: as above.
                let waves: &[types::Wave] = unsafe { records(events, count) };
                for wave in waves {
                    take_wave(wave, call.sink);
                }
            }
            kind::INFO => {
                // SAFETY: as above.
                let list: &[i32] = unsafe { records(events, count) };
                for number in list {
                    let info = u32::try_from(*number).ok().and_then(Info::from_number);
                    call.sink.record(Record::Info(info.unwrap_or(Info::None)));
                }
            }
            kind::SHADERDATA => {
                // SAFETY: as above.
                let list: &[types::ShaderData] = unsafe { records(events, count) };
                let list: Vec<_> = (list.iter())
                    .map(|data| ShaderData {
                        time: data.time,
                        value: data.value,
                        cu: data.cu,
                        simd: data.simd,
                        slot: data.slot,
                        immediate: data.flags & 1 != 0,
                        privileged: data.flags & 2 != 0,
                    })
                    .collect();
                call.sink.record(Record::ShaderData(&list));
            }
            kind::REALTIME => {
                // SAFETY: as above.
                let list: &[types::Realtime] = unsafe { records(events, count) };
                let list: Vec<_> = (list.iter())
                    .map(|pair| Realtime {
                        shader_clock: pair.shader_clock,
                        realtime_clock: pair.realtime_clock,
                    })
                    .collect();
                call.sink.record(Record::Realtime(&list));
            }
            kind::RT_FREQUENCY => {
                // SAFETY: as above.
                let list: &[u64] = unsafe { records(events, count.min(1)) };
                if let Some(hertz) = list.first() {
                    call.sink.record(Record::RealtimeFrequency(*hertz));
                }
            }
            // Of a newer library, or of no use here.
            _ => {}
        }
        SUCCESS
    })
}

fn occupancy(record: &types::Occupancy) -> Occupancy {
    let bits = |low: u32, count: u32| (record.bits >> low & ((1 << count) - 1)) as u8;
    Occupancy {
        pc: record.pc.into(),
        time: i64::try_from(record.time).unwrap_or(i64::MAX),
        cu: record.cu,
        simd: record.simd,
        slot: record.slot,
        start: bits(0, 1) == 1,
        me: bits(1, 3),
        pipe: bits(4, 4),
        extended: bits(8, 1) == 1,
        workgroup: bits(9, 7),
    }
}

fn take_wave(wave: &types::Wave, sink: &mut dyn Sink) {
    // SAFETY: the library passes the number of states that are there during the callback.
    let states: &[types::WaveState] = unsafe { records(wave.timeline.cast(), wave.timeline_count) };
    // SAFETY: the same for instructions.
    let instructions: &[types::Instruction] =
        unsafe { records(wave.instructions.cast(), wave.instruction_count) };
    let timeline: Vec<Span> = (states.iter())
        .map(|span| Span {
            state: u32::try_from(span.state)
                .ok()
                .and_then(State::from_number)
                .unwrap_or(State::Empty),
            duration: span.duration,
        })
        .collect();
    let instructions: Vec<Instruction> = (instructions.iter())
        .map(|instruction| Instruction {
            time: instruction.time,
            pc: instruction.pc.into(),
            duration: instruction.duration,
            stall: instruction.category_stall >> 8,
            category: category(instruction.category_stall & 0xFF),
        })
        .collect();
    sink.record(Record::Wave(Wave {
        cu: wave.cu,
        simd: wave.simd,
        slot: wave.slot,
        contexts: wave.contexts,
        me: wave.dispatcher >> 4 & 7,
        pipe: wave.dispatcher & 15,
        workgroup: wave.workgroup,
        part: 0,
        last: true,
        complete: true,
        entry: Pc::default(),
        begin: wave.begin,
        end: wave.end,
        timeline: &timeline,
        instructions: &instructions,
    }));
}
