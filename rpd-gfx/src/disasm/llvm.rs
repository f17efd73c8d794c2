//! Disassembly by LLVM's shared library, for processors without a table. The library is loaded when it is first
//! needed.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::{Mutex, OnceLock, PoisonError};

use libloading::Library;

use super::Instruction;

/// Families of processors, by the beginning of their names, with the first major version of LLVM that supports them.
/// An older version would silently disassemble for another processor.
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

/// Major versions of the library that are tried, the newest first.
const VERSIONS: std::ops::RangeInclusive<u32> = 16..=26;

/// First major version of LLVM that supports a processor; `None` for processors that are not in [`SINCE`].
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

/// Functions of the library, which is never unloaded.
struct Functions {
    version: u32,
    create: Create,
    disassemble: Disassemble,
    dispose: Dispose,
}

impl Functions {
    /// Functions of the newest installed library. Loads it at the first call.
    fn get() -> Option<&'static Self> {
        static FOUND: OnceLock<Option<Functions>> = OnceLock::new();
        FOUND.get_or_init(Self::find).as_ref()
    }

    fn find() -> Option<Self> {
        VERSIONS.rev().find_map(|version| {
            // From 18 on, the soname contains the minor version, which is 1 in all releases.
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
        // SAFETY: the types are those of the functions in LLVM's C interface.
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
        // The library must not be unloaded: its functions are used until the process ends.
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

// SAFETY: a context is not bound to a thread. The mutex around it allows one thread at a time.
unsafe impl Send for Context {}

impl Drop for Llvm {
    fn drop(&mut self) {
        let context = self
            .context
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the context was created by `create`, and is not used after this.
        unsafe { (self.functions.dispose)(context.0) };
    }
}

/// Size of the buffer for a text in bytes. Longer texts are cut off.
const LONGEST_TEXT: usize = 512;

impl Llvm {
    /// A disassembler for a processor; `None` if no installed library supports it.
    pub(super) fn new(processor: &str) -> Option<Self> {
        let since = since(processor)?;
        let functions = Functions::get().filter(|functions| functions.version >= since)?;
        let name = CString::new(processor).ok()?;
        let (none, nothing) = (std::ptr::null_mut(), std::ptr::null());
        // SAFETY: both strings end with a NUL. Callbacks may be null.
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

    /// Disassembles the instruction at the start of `code`; `None` when it is invalid.
    pub(super) fn instruction(&self, code: &[u8], pc: u64) -> Option<Instruction> {
        // The function takes a mutable pointer.
        let mut bytes = [0; 20];
        let length = code.len().min(bytes.len());
        bytes[..length].copy_from_slice(&code[..length]);
        let mut text = [0 as c_char; LONGEST_TEXT];
        let context = self.context.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the context is from this library. Both buffers have the lengths that are passed.
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
        // SAFETY: the library ends the text with a NUL, also when it is cut off.
        let text = unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy();
        Some(Instruction::from_text(&text, size as u32, pc))
    }
}
