//! The trace decoder's C interface: what `librocprof-trace-decoder.so` exports.
//!
//! Both generations are there: one function with callbacks, and handles with code objects. Panics end in an error status.

pub mod types;

use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use rpd_gfx::disasm;

use crate::code::CodeObjects;
use crate::decoder::{Error, decode};
use crate::record::{Pc, Record};
use crate::stitch::Code;
use types::{
    DataCallback, ERROR, Handle, INVALID_ARGUMENT, INVALID_SHADER_DATA, IsaCallback,
    NOT_IMPLEMENTED, OUT_OF_RESOURCES, SUCCESS, Status, TraceCallback, kind,
};

/// Size in bytes of the first buffer that is offered for the text of an instruction.
const TEXT: usize = 256;
/// Length in bytes that no instruction's text has: a callback that requests more is at fault.
const LONGEST_TEXT: u64 = 1 << 16;

/// A pointer of the caller, who promises that it may be used on the thread that decodes.
#[derive(Clone, Copy)]
struct User(*mut c_void);

/// Code that a callback of the caller provides.
struct CallbackCode {
    callback: IsaCallback,
    user: User,
}

impl Code for CallbackCode {
    fn instruction(&mut self, pc: Pc) -> Option<disasm::Instruction> {
        let callback = self.callback?;
        let mut text = vec![0u8; TEXT];
        for _ in 0..2 {
            let mut capacity = text.len() as u64;
            let mut bytes = 0;
            // SAFETY: the text has `capacity` bytes, and the pointers live through the call.
            let status = unsafe {
                callback(
                    text.as_mut_ptr().cast(),
                    &raw mut bytes,
                    &raw mut capacity,
                    pc.into(),
                    self.user.0,
                )
            };
            if status == OUT_OF_RESOURCES
                && capacity > text.len() as u64
                && capacity <= LONGEST_TEXT
            {
                text.resize(capacity as usize, 0);
                continue;
            }
            if status != SUCCESS || bytes == 0 || bytes > 64 {
                return None;
            }
            let length = text.len().min(capacity as usize);
            let end = text[..length]
                .iter()
                .position(|byte| *byte == 0)
                .unwrap_or(length);
            let text = String::from_utf8_lossy(&text[..end]);
            return Some(disasm::Instruction::from_text(
                &text,
                bytes as u32,
                pc.address,
            ));
        }
        None
    }
}

/// A stream that a callback of the caller provides.
struct CallbackStream {
    callback: DataCallback,
    user: User,
    piece: *const u8,
    left: usize,
    ended: bool,
}

impl Read for CallbackStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !self.ended {
            let mut buffer = std::ptr::null_mut();
            let mut size = 0;
            if let Some(callback) = self.callback {
                // SAFETY: both pointers live through the call.
                let available = unsafe { callback(&raw mut buffer, &raw mut size, self.user.0) };
                self.ended = available == 0 || buffer.is_null();
                self.piece = buffer;
                self.left = if self.ended {
                    0
                } else {
                    // Some callers pass the number of bytes that are there, others the size of their buffer.
                    available.min(size) as usize
                };
                self.ended |= self.left == 0;
            }
        }
        let count = self.left.min(into.len());
        if count > 0 {
            // SAFETY: the caller said that `left` bytes are at `piece`, which it keeps until it is called again.
            unsafe { std::ptr::copy_nonoverlapping(self.piece, into.as_mut_ptr(), count) };
            // SAFETY: `count` is at most `left`.
            self.piece = unsafe { self.piece.add(count) };
            self.left -= count;
        }
        Ok(count)
    }
}

fn run(
    stream: impl Read,
    code: &mut dyn Code,
    callback: TraceCallback,
    user: *mut c_void,
) -> Status {
    let Some(callback) = callback else {
        return INVALID_ARGUMENT;
    };
    let mut parts = Parts::default();
    let mut sink = |record: Record<'_>| parts.pass(record, callback, user);
    match decode(stream, code, &mut sink) {
        Ok(_) => SUCCESS,
        Err(Error::Header(_)) => INVALID_SHADER_DATA,
        Err(Error::Read(_)) => ERROR,
    }
}

type Callback = unsafe extern "C" fn(i32, *mut c_void, u64, *mut c_void) -> Status;

/// Lists for records in the interface's layout, which are reused from record to record.
#[derive(Default)]
struct Parts {
    states: Vec<types::WaveState>,
    instructions: Vec<types::Instruction>,
}

impl Parts {
    fn pass(&mut self, record: Record<'_>, callback: Callback, user: *mut c_void) {
        fn list<'r, T: 'r, C: From<&'r T>>(records: &'r [T]) -> Vec<C> {
            records.iter().map(C::from).collect()
        }
        let send = |kind: i32, events: *mut c_void, count: usize| {
            // SAFETY: `events` are `count` records of this kind, which live through the call. What the caller returns is for
            // its own use.
            unsafe { callback(kind, events, count as u64, user) };
        };
        macro_rules! send_list {
            ($kind:expr, $type:ty, $records:expr) => {{
                let mut records: Vec<$type> = list($records);
                send($kind, records.as_mut_ptr().cast(), records.len());
            }};
        }
        match record {
            // The interface passes the number itself in place of the pointer.
            Record::Gfx(major) => send(kind::GFXIP, major as usize as *mut c_void, 0),
            Record::Occupancy(records) => send_list!(kind::OCCUPANCY, types::Occupancy, records),
            Record::Perf(records) => send_list!(kind::PERFEVENT, types::PerfEvent, records),
            Record::Wave(wave) => {
                // The wave's record points into these lists, so that they live through the call.
                self.states.clear();
                self.states
                    .extend(wave.timeline.iter().map(types::WaveState::from));
                self.instructions.clear();
                let instructions = wave.instructions.iter();
                self.instructions
                    .extend(instructions.map(types::Instruction::from));
                let mut wave = types::Wave {
                    cu: wave.cu,
                    simd: wave.simd,
                    slot: wave.slot,
                    contexts: wave.contexts,
                    // Four bits for the pipe and three for the micro engine above it.
                    dispatcher: wave.pipe & 15 | (wave.me & 7) << 4,
                    workgroup: wave.workgroup,
                    cluster: 0,
                    reserved: 0,
                    // Callers tell the version of the record by its size.
                    size: size_of::<types::Wave>() as u64,
                    begin: wave.begin,
                    end: wave.end,
                    timeline_count: self.states.len() as u64,
                    instruction_count: self.instructions.len() as u64,
                    timeline: self.states.as_ptr(),
                    instructions: self.instructions.as_ptr(),
                };
                send(kind::WAVE, (&raw mut wave).cast(), 1);
            }
            Record::Info(info) => {
                let mut number = info as i32;
                send(kind::INFO, (&raw mut number).cast(), 1);
            }
            Record::Events(records) => send_list!(kind::EVENT, types::Event, records),
            Record::ShaderData(records) => {
                send_list!(kind::SHADERDATA, types::ShaderData, records);
            }
            Record::Realtime(records) => send_list!(kind::REALTIME, types::Realtime, records),
            Record::RealtimeFrequency(hertz) => {
                let mut hertz = hertz;
                send(kind::RT_FREQUENCY, (&raw mut hertz).cast(), 1);
            }
            Record::OtherSimd(records) => {
                send_list!(kind::INST_OTHER_SIMD, types::OtherSimd, records);
            }
            Record::Dispatches(records) => send_list!(kind::DISPATCH, types::Dispatch, records),
        }
    }
}

/// Runs `work`; returns an error if it panics.
fn guarded(work: impl FnOnce() -> Status) -> Status {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(ERROR)
}

/// Decodes streams until the data callback returns no more.
///
/// # Safety
/// The callbacks are functions of these types, and what they hand over is valid as the interface requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprof_trace_decoder_parse_data(
    data: DataCallback,
    trace: TraceCallback,
    isa: IsaCallback,
    user: *mut c_void,
) -> Status {
    guarded(|| {
        if data.is_none() {
            return INVALID_ARGUMENT;
        }
        let stream = CallbackStream {
            callback: data,
            user: User(user),
            piece: std::ptr::null(),
            left: 0,
            ended: false,
        };
        let mut code = CallbackCode {
            callback: isa,
            user: User(user),
        };
        run(stream, &mut code, trace, user)
    })
}

/// The text of an info record.
#[unsafe(no_mangle)]
pub extern "C" fn rocprof_trace_decoder_get_info_string(info: i32) -> *const c_char {
    let text = match info {
        0 => c"No information",
        1 => c"Data was lost: the trace needed more bandwidth than there is",
        2 => c"Some instructions could not be matched with the code",
        3 => c"The trace ends before all waves do",
        _ => c"Unknown information",
    };
    text.as_ptr()
}

/// The text of a status.
#[unsafe(no_mangle)]
pub extern "C" fn rocprof_trace_decoder_get_status_string(status: i32) -> *const c_char {
    let text = match status {
        SUCCESS => c"Success",
        ERROR => c"Error",
        OUT_OF_RESOURCES => c"Out of resources",
        INVALID_ARGUMENT => c"Invalid argument",
        INVALID_SHADER_DATA => c"Not a thread trace of GFX9 to GFX12",
        NOT_IMPLEMENTED => c"Not implemented",
        _ => c"Unknown status",
    };
    text.as_ptr()
}

/// The version of rpd to which this library belongs. Decoder libraries of other vendors lack this function.
#[unsafe(no_mangle)]
pub extern "C" fn rpd_trace_decoder_version() -> *const c_char {
    concat!("rpd ", env!("CARGO_PKG_VERSION"), "\0")
        .as_ptr()
        .cast()
}

/// State behind a decoder handle.
#[derive(Default)]
struct DecoderState {
    code: CodeObjects,
    isa: IsaCallback,
    isa_user: usize,
    data: DataCallback,
    data_user: usize,
}

/// Decoders by their handles. Each has its own lock, so that callbacks may use other handles.
#[derive(Default)]
struct Handles {
    last: u64,
    states: HashMap<u64, Arc<Mutex<DecoderState>>>,
}

static HANDLES: LazyLock<Mutex<Handles>> = LazyLock::new(Mutex::default);

fn find(handle: Handle) -> Option<Arc<Mutex<DecoderState>>> {
    let handles = HANDLES.lock().unwrap_or_else(PoisonError::into_inner);
    handles.states.get(&handle.handle).cloned()
}

/// Runs `work` with the decoder of a handle; fails for unknown handles.
fn with(handle: Handle, work: impl FnOnce(&mut DecoderState) -> Status) -> Status {
    guarded(|| match find(handle) {
        // A callback that uses its own decoder again would wait for itself.
        Some(state) => match state.try_lock() {
            Ok(mut state) => work(&mut state),
            Err(std::sync::TryLockError::Poisoned(state)) => work(&mut state.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => ERROR,
        },
        None => INVALID_ARGUMENT,
    })
}

/// Makes a decoder.
///
/// # Safety
/// `handle` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprof_trace_decoder_create_handle(handle: *mut Handle) -> Status {
    guarded(|| {
        if handle.is_null() {
            return INVALID_ARGUMENT;
        }
        let mut handles = HANDLES.lock().unwrap_or_else(PoisonError::into_inner);
        handles.last += 1;
        let number = handles.last;
        handles.states.insert(number, Arc::default());
        // SAFETY: not null; the caller lets it be written.
        unsafe { *handle = Handle { handle: number } };
        SUCCESS
    })
}

/// Drops a decoder with its code objects.
#[unsafe(no_mangle)]
pub extern "C" fn rocprof_trace_decoder_destroy_handle(handle: Handle) -> Status {
    guarded(|| {
        let mut handles = HANDLES.lock().unwrap_or_else(PoisonError::into_inner);
        match handles.states.remove(&handle.handle) {
            Some(_) => SUCCESS,
            None => INVALID_ARGUMENT,
        }
    })
}

/// Adds a code object; its load address is in the trace.
///
/// # Safety
/// `size` bytes are at `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprof_trace_decoder_codeobj_load(
    handle: Handle,
    id: u64,
    _address: u64,
    _load_size: u64,
    data: *const c_void,
    size: u64,
) -> Status {
    if data.is_null() || size == 0 || isize::try_from(size).is_err() {
        return INVALID_ARGUMENT;
    }
    // SAFETY: required of the caller, and it is no more than any object has.
    let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), size as usize) };
    with(handle, |state| match state.code.add(id, bytes) {
        Ok(()) => SUCCESS,
        Err(_) => ERROR,
    })
}

/// Drops a code object.
#[unsafe(no_mangle)]
pub extern "C" fn rocprof_trace_decoder_codeobj_unload(handle: Handle, id: u64) -> Status {
    with(handle, |state| {
        if state.code.remove(id) {
            SUCCESS
        } else {
            ERROR
        }
    })
}

/// Sets the callback that returns the text of instructions; null selects the code objects.
#[unsafe(no_mangle)]
pub extern "C" fn rocprof_trace_decoder_set_isa_callback(
    handle: Handle,
    callback: IsaCallback,
    user: *mut c_void,
) -> Status {
    with(handle, |state| {
        state.isa = callback;
        state.isa_user = user as usize;
        SUCCESS
    })
}

/// Sets the callback that returns the stream; null selects the data that a call passes.
#[unsafe(no_mangle)]
pub extern "C" fn rocprof_trace_decoder_set_se_data_callback(
    handle: Handle,
    callback: DataCallback,
    user: *mut c_void,
) -> Status {
    with(handle, |state| {
        state.data = callback;
        state.data_user = user as usize;
        SUCCESS
    })
}

/// Decodes a stream.
///
/// # Safety
/// `size` bytes are at `data`, unless a callback has the stream; the callbacks are as the interface requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprof_trace_decoder_parse(
    handle: Handle,
    data: *const c_void,
    size: u64,
    trace: TraceCallback,
    user: *mut c_void,
) -> Status {
    with(handle, |state| {
        let mut callback;
        let mut objects;
        let code: &mut dyn Code = if state.isa.is_some() {
            callback = CallbackCode {
                callback: state.isa,
                user: User(state.isa_user as *mut c_void),
            };
            &mut callback
        } else {
            objects = &state.code;
            &mut objects
        };
        if state.data.is_some() {
            let stream = CallbackStream {
                callback: state.data,
                user: User(state.data_user as *mut c_void),
                piece: std::ptr::null(),
                left: 0,
                ended: false,
            };
            return run(stream, code, trace, user);
        }
        if data.is_null() || isize::try_from(size).is_err() {
            return INVALID_ARGUMENT;
        }
        // SAFETY: the caller says so.
        let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), size as usize) };
        run(bytes, code, trace, user)
    })
}

/// Always `NOT_IMPLEMENTED`: this library lacks the function.
#[unsafe(no_mangle)]
pub extern "C" fn rocprof_trace_decoder_quick_scan(
    _handle: Handle,
    _chunk: u64,
    _data: *const c_void,
    _size: u64,
    _trace: TraceCallback,
    _user: *mut c_void,
) -> Status {
    NOT_IMPLEMENTED
}

/// Always `NOT_IMPLEMENTED`: this library lacks the function.
#[unsafe(no_mangle)]
pub extern "C" fn rocprof_trace_decoder_flush_chunk(_handle: Handle, _chunk: u64) -> Status {
    NOT_IMPLEMENTED
}

/// Always `NOT_IMPLEMENTED`: this library lacks the function.
#[unsafe(no_mangle)]
pub extern "C" fn rocprof_trace_decoder_build_standalone(
    _handle: Handle,
    _chunk: u64,
    _data: *const c_void,
    _size: u64,
    _begin: u64,
    _end: u64,
    _out: *mut c_void,
    _out_size: *mut u64,
) -> Status {
    NOT_IMPLEMENTED
}
