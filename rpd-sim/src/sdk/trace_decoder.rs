//! Decoding thread traces with a decoder library that the tool names: this provider opens it, disassembles for it, and passes
//! on what it finds.

use core::{
    ffi::{CStr, c_char, c_void},
    ptr,
    sync::atomic::{AtomicU64, Ordering},
};
use std::{
    collections::HashMap,
    ffi::CString,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, RwLock},
};

use rocprofiler_sdk_sys::{
    rocprofiler_status_t as Status, rocprofiler_thread_trace_decoder_callback_t as DecodedFn,
    rocprofiler_thread_trace_decoder_id_t as DecoderId,
    rocprofiler_thread_trace_decoder_info_t as DecoderInfo,
    rocprofiler_thread_trace_decoder_pc_t as Pc,
    rocprofiler_thread_trace_decoder_record_type_t as RecordType,
};
use rpd_gfx::{codeobj::CodeObject, disasm::Disassembler};

use super::status::store;

/// File name of the decoder library, which is looked for in the directory that the tool names.
const LIBRARY: &str = "librocprof-trace-decoder.so";

/// Statuses that the decoder library returns.
const SUCCESS: i32 = 0;
const ERROR: i32 = 1;
const OUT_OF_RESOURCES: i32 = 2;
const INVALID_ARGUMENT: i32 = 3;
const INVALID_SHADER_DATA: i32 = 4;

type DataFn = unsafe extern "C" fn(*mut *mut u8, *mut u64, *mut c_void) -> u64;
type TraceFn = unsafe extern "C" fn(RecordType, *mut c_void, u64, *mut c_void) -> i32;
type IsaFn = unsafe extern "C" fn(*mut c_char, *mut u64, *mut u64, Pc, *mut c_void) -> i32;
type ParseFn = unsafe extern "C" fn(DataFn, TraceFn, IsaFn, *mut c_void) -> i32;
type TextFn = unsafe extern "C" fn(i32) -> *const c_char;

/// An opened decoder library, which is never closed.
#[derive(Clone, Copy)]
struct Library {
    parse: ParseFn,
    info: TextFn,
    status: TextFn,
}

impl Library {
    fn open(directory: &CStr) -> Result<Self, Status> {
        let mut path = directory.to_bytes().to_vec();
        path.push(b'/');
        path.extend_from_slice(LIBRARY.as_bytes());
        let path = CString::new(path).map_err(|_| Status::ERROR_NOT_AVAILABLE)?;
        // SAFETY: the path is text; what the library does when it is loaded is its affair.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(Status::ERROR_NOT_AVAILABLE);
        }
        let symbol = |name: &CStr| {
            // SAFETY: the handle is open, the name is text.
            let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
            if found.is_null() {
                Err(Status::ERROR_INCOMPATIBLE_ABI)
            } else {
                Ok(found)
            }
        };
        let parse = symbol(c"rocprof_trace_decoder_parse_data")?;
        let info = symbol(c"rocprof_trace_decoder_get_info_string")?;
        let status = symbol(c"rocprof_trace_decoder_get_status_string")?;
        // SAFETY: these are the types of the functions of these names.
        unsafe {
            Ok(Self {
                parse: core::mem::transmute::<*mut c_void, ParseFn>(parse),
                info: core::mem::transmute::<*mut c_void, TextFn>(info),
                status: core::mem::transmute::<*mut c_void, TextFn>(status),
            })
        }
    }
}

/// Code of a code object, at the addresses of its file.
struct Code {
    disassembler: Disassembler,
    /// First address and bytes of each executable segment.
    segments: Vec<(u64, Vec<u8>)>,
    /// Address range in which it was loaded.
    load: core::ops::Range<u64>,
}

impl Code {
    fn read(bytes: &[u8], load: core::ops::Range<u64>) -> Option<Self> {
        let object = CodeObject::parse(bytes).ok()?;
        let disassembler = Disassembler::new(&object.target().processor)?;
        let executable = object
            .segments()
            .iter()
            .filter(|segment| segment.executable);
        let segments = executable.filter_map(|segment| {
            let range = segment.offset as usize..(segment.offset + segment.file_size) as usize;
            Some((segment.address, object.bytes().get(range)?.to_vec()))
        });
        Some(Self {
            disassembler,
            segments: segments.collect(),
            load,
        })
    }

    /// Text and length in bytes of the instruction at an address; `None` where there is no code.
    fn instruction(&self, address: u64) -> Option<(String, u32)> {
        let (start, bytes) = self
            .segments
            .iter()
            .find(|(start, bytes)| (*start..*start + bytes.len() as u64).contains(&address))?;
        let rest = &bytes[(address - start) as usize..];
        let instruction = self.disassembler.instruction(rest, address);
        (instruction.bytes != 0).then_some((instruction.text, instruction.bytes))
    }
}

/// A decoder: a library and the code that it may request.
struct Decoder {
    library: Library,
    code: RwLock<HashMap<u64, Code>>,
}

impl Decoder {
    fn instruction(&self, pc: Pc) -> Option<(String, u32)> {
        let code = self.code.read().unwrap_or_else(|e| e.into_inner());
        if pc.marker_id != 0 {
            return code
                .get(&(pc.marker_id as u64))?
                .instruction(pc.addr as u64);
        }
        let address = pc.addr as u64;
        let loaded = code.values().find(|code| code.load.contains(&address))?;
        loaded.instruction(address - loaded.load.start)
    }
}

static DECODERS: Mutex<Vec<(u64, Arc<Decoder>)>> = Mutex::new(Vec::new());
static NEXT: AtomicU64 = AtomicU64::new(1);

fn find(handle: DecoderId) -> Option<Arc<Decoder>> {
    let decoders = DECODERS.lock().unwrap_or_else(|e| e.into_inner());
    let found = decoders.iter().find(|(id, _)| *id == handle.handle)?;
    Some(Arc::clone(&found.1))
}

/// `rocprofiler_thread_trace_decoder_create`.
///
/// # Safety
/// The out pointer is null or writable, the path null or text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_thread_trace_decoder_create(
    handle: *mut DecoderId,
    path: *const c_char,
) -> Status {
    if handle.is_null() || path.is_null() {
        return Status::ERROR_INVALID_ARGUMENT;
    }
    // SAFETY: not null, and text by the contract.
    let library = match Library::open(unsafe { CStr::from_ptr(path) }) {
        Ok(library) => library,
        Err(status) => return status,
    };
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let decoder = Arc::new(Decoder {
        library,
        code: RwLock::default(),
    });
    let mut decoders = DECODERS.lock().unwrap_or_else(|e| e.into_inner());
    decoders.push((id, decoder));
    store(handle, DecoderId { handle: id });
    Status::SUCCESS
}

/// Closes a decoder and makes its handle invalid.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_thread_trace_decoder_destroy(handle: DecoderId) {
    let mut decoders = DECODERS.lock().unwrap_or_else(|e| e.into_inner());
    decoders.retain(|(id, _)| *id != handle.handle);
}

/// `rocprofiler_thread_trace_decoder_codeobj_load`.
///
/// # Safety
/// `data` is null or has `size` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_thread_trace_decoder_codeobj_load(
    handle: DecoderId,
    load_id: u64,
    load_addr: u64,
    load_size: u64,
    data: *const c_void,
    size: u64,
) -> Status {
    let Some(decoder) = find(handle) else {
        return Status::ERROR_INVALID_ARGUMENT;
    };
    if data.is_null() {
        return Status::ERROR_INVALID_ARGUMENT;
    }
    // SAFETY: not null, and that long by the contract.
    let bytes = unsafe { core::slice::from_raw_parts(data.cast::<u8>(), size as usize) };
    let load = load_addr..load_addr.saturating_add(load_size);
    let Some(code) = Code::read(bytes, load) else {
        return Status::ERROR;
    };
    let mut all = decoder.code.write().unwrap_or_else(|e| e.into_inner());
    all.insert(load_id, code);
    Status::SUCCESS
}

/// Takes a code object away from a decoder.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_thread_trace_decoder_codeobj_unload(
    handle: DecoderId,
    load_id: u64,
) -> Status {
    let Some(decoder) = find(handle) else {
        return Status::ERROR_INVALID_ARGUMENT;
    };
    let mut all = decoder.code.write().unwrap_or_else(|e| e.into_inner());
    match all.remove(&load_id) {
        Some(_) => Status::SUCCESS,
        None => Status::ERROR,
    }
}

/// State of a decoding under way.
struct Run {
    decoder: Arc<Decoder>,
    data: *mut u8,
    size: u64,
    callback: <DecodedFn as IntoIterator>::Item,
    user: *mut c_void,
}

/// Callback of the decoder library: gives the whole trace at the first call, and nothing later.
unsafe extern "C" fn give(data: *mut *mut u8, size: *mut u64, run: *mut c_void) -> u64 {
    // SAFETY: the library passes on what it was given, and places to write to.
    unsafe {
        let run = &mut *run.cast::<Run>();
        *data = run.data;
        *size = core::mem::take(&mut run.size);
        *size
    }
}

unsafe extern "C" fn pass_on(
    kind: RecordType,
    records: *mut c_void,
    count: u64,
    run: *mut c_void,
) -> i32 {
    // SAFETY: as above; the tool gave the function for this.
    unsafe {
        let run = &*run.cast::<Run>();
        (run.callback)(kind, records, count, run.user);
    }
    SUCCESS
}

unsafe extern "C" fn disassemble(
    text: *mut c_char,
    bytes: *mut u64,
    room: *mut u64,
    pc: Pc,
    run: *mut c_void,
) -> i32 {
    // SAFETY: as above.
    let decoder = unsafe { &(*run.cast::<Run>()).decoder };
    let found = catch_unwind(AssertUnwindSafe(|| decoder.instruction(pc)));
    let Ok(found) = found else {
        return ERROR;
    };
    let Some((instruction, length)) = found else {
        return INVALID_ARGUMENT;
    };
    // SAFETY: the library passes the size of the space for the text, and the other places can be written.
    unsafe {
        let available = *room;
        *room = instruction.len() as u64;
        if *room > available {
            return OUT_OF_RESOURCES;
        }
        ptr::copy_nonoverlapping(instruction.as_ptr().cast(), text, instruction.len());
        *bytes = length.into();
    }
    SUCCESS
}

/// `rocprofiler_trace_decode`.
///
/// # Safety
/// `data` has `size` readable bytes; the callback can be called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_trace_decode(
    handle: DecoderId,
    callback: DecodedFn,
    data: *mut c_void,
    size: u64,
    userdata: *mut c_void,
) -> Status {
    let (Some(decoder), Some(callback)) = (find(handle), callback) else {
        return Status::ERROR_INVALID_ARGUMENT;
    };
    if data.is_null() {
        return Status::ERROR_INVALID_ARGUMENT;
    }
    let library = decoder.library;
    let mut run = Run {
        decoder,
        data: data.cast(),
        size,
        callback,
        user: userdata,
    };
    // SAFETY: the functions take what they are given here, which outlives the call.
    let status =
        unsafe { (library.parse)(give, pass_on, disassemble, ptr::from_mut(&mut run).cast()) };
    match status {
        SUCCESS => Status::SUCCESS,
        INVALID_ARGUMENT => Status::ERROR_INVALID_ARGUMENT,
        INVALID_SHADER_DATA => Status::ERROR_AGENT_ARCH_NOT_SUPPORTED,
        other => {
            // SAFETY: the library answers with text, or null.
            let text = unsafe {
                let text = (library.status)(other);
                (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
            };
            let text = text.unwrap_or_else(|| format!("status {other}"));
            eprintln!("rpd-sim: the trace decoder failed: {text}");
            Status::ERROR
        }
    }
}

/// `rocprofiler_thread_trace_decoder_info_string`: the library's text, null for an unknown decoder.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_thread_trace_decoder_info_string(
    handle: DecoderId,
    info: DecoderInfo,
) -> *const c_char {
    find(handle).map_or(ptr::null(), |decoder| {
        // SAFETY: the library's function takes any number.
        unsafe { (decoder.library.info)(info.0 as i32) }
    })
}
