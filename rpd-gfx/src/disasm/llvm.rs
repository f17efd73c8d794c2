//! LLVM's disassembler, for processors without a table: its shared library is loaded when such a processor is met.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::{Mutex, OnceLock, PoisonError};

use libloading::Library;

use super::Instruction;

/// Families of processors, by the begin of their names, with the first major version of LLVM that knows them. It takes an older one for
/// another processor.
const SINCE: &[(&str, u32)] = &[
    ("gfx900", 16),
    ("gfx902", 16),
    ("gfx904", 16),
    ("gfx906", 16),
    ("gfx908", 16),
    ("gfx909", 16),
    ("gfx90c", 16),
    ("gfx940", 16),
    ("gfx941", 17),
    ("gfx950", 20),
    ("gfx101", 16),
    ("gfx103", 16),
    ("gfx1150", 17),
    ("gfx1151", 17),
    ("gfx1152", 19),
    ("gfx1153", 20),
    ("gfx1200", 18),
    ("gfx1201", 18),
];

/// Versions of the library that are looked for, the newest first.
const VERSIONS: std::ops::RangeInclusive<u32> = 16..=26;

/// The first version of LLVM that disassembles for a processor; `None` for those that this module does not know.
pub(super) fn since(processor: &str) -> Option<u32> {
    let known = |(begin, _): &&(&str, u32)| processor.starts_with(begin);
    SINCE.iter().find(known).map(|(_, version)| *version)
}

type Initialise = unsafe extern "C" fn();
type Create = unsafe extern "C" fn(
    *const c_char,
    *const c_char,
    *mut c_void,
    c_int,
    *const c_void,
    *const c_void,
) -> *mut c_void;
type Disassemble =
    unsafe extern "C" fn(*mut c_void, *mut u8, u64, u64, *mut c_char, usize) -> usize;
type Dispose = unsafe extern "C" fn(*mut c_void);

/// Functions of the library, which stays loaded.
struct Functions {
    version: u32,
    create: Create,
    disassemble: Disassemble,
    dispose: Dispose,
}

impl Functions {
    /// Those of the newest library there is, loaded at the first call.
    fn get() -> Option<&'static Self> {
        static FOUND: OnceLock<Option<Functions>> = OnceLock::new();
        FOUND.get_or_init(Self::find).as_ref()
    }

    fn find() -> Option<Self> {
        VERSIONS.rev().find_map(|version| {
            // From 18 on the soname has the minor version, which is 1 in all releases.
            let names = [
                format!("libLLVM.so.{version}.1"),
                format!("libLLVM-{version}.so.1"),
                format!("libLLVM-{version}.so"),
            ];
            names.iter().find_map(|name| Self::load(name, version))
        })
    }

    fn load(name: &str, version: u32) -> Option<Self> {
        // SAFETY: LLVM's library has no initialisers that depend on anything in this process.
        let library = unsafe { Library::new(name) }.ok()?;
        // SAFETY: the types are those of LLVM's C interface.
        let found = unsafe {
            for part in ["TargetInfo", "TargetMC", "Disassembler"] {
                let symbol = format!("LLVMInitializeAMDGPU{part}");
                library.get::<Initialise>(symbol.as_bytes()).ok()?();
            }
            Self {
                version,
                create: *library.get::<Create>(b"LLVMCreateDisasmCPU").ok()?,
                disassemble: *library.get::<Disassemble>(b"LLVMDisasmInstruction").ok()?,
                dispose: *library.get::<Dispose>(b"LLVMDisasmDispose").ok()?,
            }
        };
        // The functions are used until the process ends.
        std::mem::forget(library);
        Some(found)
    }
}

/// A disassembler of LLVM for one processor.
pub(super) struct Llvm {
    functions: &'static Functions,
    context: Mutex<Context>,
}

struct Context(*mut c_void);

// SAFETY: a context belongs to no thread; the mutex around it lets one use it at a time.
unsafe impl Send for Context {}

impl Drop for Llvm {
    fn drop(&mut self) {
        let context = self
            .context
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the context is from `create`, and nothing uses it any more.
        unsafe { (self.functions.dispose)(context.0) };
    }
}

/// Bytes of the longest text, which is cut off there.
const LONGEST_TEXT: usize = 512;

impl Llvm {
    /// The disassembler for a processor, if there is a library that knows it.
    pub(super) fn new(processor: &str) -> Option<Self> {
        let since = since(processor)?;
        let functions = Functions::get().filter(|functions| functions.version >= since)?;
        let name = CString::new(processor).ok()?;
        let (none, nothing) = (std::ptr::null_mut(), std::ptr::null());
        // SAFETY: both names end with a zero; without callbacks, the library asks nothing.
        let context = unsafe {
            (functions.create)(
                c"amdgcn-amd-amdhsa".as_ptr(),
                name.as_ptr(),
                none,
                0,
                nothing,
                nothing,
            )
        };
        (!context.is_null()).then(|| Self {
            functions,
            context: Mutex::new(Context(context)),
        })
    }

    /// The instruction with which `code` begins; `None` for what is none.
    pub(super) fn instruction(&self, code: &[u8], pc: u64) -> Option<Instruction> {
        // The interface takes a pointer to what can be changed.
        let mut bytes = [0; 20];
        let length = code.len().min(bytes.len());
        bytes[..length].copy_from_slice(&code[..length]);
        let mut text = [0 as c_char; LONGEST_TEXT];
        let context = self.context.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the context is one of this library; both buffers have the lengths that are passed.
        let size = unsafe {
            (self.functions.disassemble)(
                context.0,
                bytes.as_mut_ptr(),
                length as u64,
                pc,
                text.as_mut_ptr(),
                text.len(),
            )
        };
        drop(context);
        if size == 0 || size > length {
            return None;
        }
        text[LONGEST_TEXT - 1] = 0;
        // SAFETY: the buffer has a zero, at its end if not before.
        let text = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy();
        Some(Instruction::from_text(&text, size as u32, pc))
    }
}
