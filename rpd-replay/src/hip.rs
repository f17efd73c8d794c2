//! The HIP runtime, loaded from a library.
//!
//! Calls are made by name with words: every argument of the functions that are called this way is an integer or a pointer,
//! so that each takes one word, and functions ignore words after their own.

use std::collections::HashMap;
use std::ffi::{CStr, c_char};
use std::path::Path;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use crate::error::{ReplayError, Status};

/// Most words of a call.
const WORDS: usize = 16;

type Function = unsafe extern "C" fn(
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
) -> i32;

/// Struct `hipExtent`: width, height, depth.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent(pub(crate) [u64; 3]);

/// Struct `hipPitchedPtr`: address, pitch, width, height.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct PitchedPtr(pub(crate) [u64; 4]);

/// A loaded HIP runtime.
pub(crate) struct Hip {
    library: Library,
    functions: HashMap<&'static str, usize>,
}

/// Value `hipSuccess`.
pub(crate) const SUCCESS: i32 = 0;
/// Value `hipErrorNoBinaryForGpu`, and the other errors for a code object of another processor.
pub(crate) const WRONG_TARGET: [i32; 3] = [209, 200, 218];

impl Hip {
    /// Loads the runtime from a library.
    pub(crate) fn load(path: &Path) -> Result<Hip, ReplayError> {
        // SAFETY: the library is a HIP runtime, whose constructors any program that is linked to it runs.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) };
        let library = library.map_err(|error| {
            ReplayError::failed(format!("{}: cannot be loaded: {error}", path.display()))
        })?;
        Ok(Hip {
            library,
            functions: HashMap::new(),
        })
    }

    fn function(&mut self, name: &'static str) -> Result<usize, ReplayError> {
        if let Some(found) = self.functions.get(name) {
            return Ok(*found);
        }
        // SAFETY: the symbol is only used as the function that HIP has under this name.
        let found = unsafe { self.library.get::<Function>(name) };
        let address = found.map(|found| *found as usize).map_err(|_| {
            ReplayError::new(Status::Api, format!("this HIP runtime has no {name}"))
        })?;
        self.functions.insert(name, address);
        Ok(address)
    }

    /// Calls a function; its `hipError_t`.
    ///
    /// Pointers among the words lead to memory that the function may use in the ways and for the time that HIP's manual states.
    pub(crate) fn call(&mut self, name: &'static str, words: &[u64]) -> Result<i32, ReplayError> {
        let address = self.function(name)?;
        let mut all = [0; WORDS];
        all[..words.len()].copy_from_slice(words);
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = all;
        // SAFETY: the function takes words as described above; the caller passes the arguments that it needs.
        Ok(unsafe {
            let function = std::mem::transmute::<usize, Function>(address);
            function(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)
        })
    }

    /// As [`Hip::call`]; an error when the function fails.
    pub(crate) fn check(&mut self, name: &'static str, words: &[u64]) -> Result<(), ReplayError> {
        match self.call(name, words)? {
            SUCCESS => Ok(()),
            error => {
                let text = self.error_name(error);
                Err(ReplayError::new(
                    Status::Api,
                    format!("{name} returned {text}"),
                ))
            }
        }
    }

    /// The name of a `hipError_t`.
    pub(crate) fn error_name(&mut self, error: i32) -> String {
        let Ok(address) = self.function("hipGetErrorName") else {
            return format!("error {error}");
        };
        // SAFETY: `hipGetErrorName` takes an error and returns static text or null.
        unsafe {
            type Name = unsafe extern "C" fn(i32) -> *const c_char;
            let name = std::mem::transmute::<usize, Name>(address)(error);
            if name.is_null() {
                format!("error {error}")
            } else {
                CStr::from_ptr(name).to_string_lossy().into_owned()
            }
        }
    }

    /// Calls `hipMalloc3D`, and returns its error.
    pub(crate) fn malloc_3d(
        &mut self,
        made: &mut PitchedPtr,
        extent: Extent,
    ) -> Result<i32, ReplayError> {
        let address = self.function("hipMalloc3D")?;
        type Malloc3d = unsafe extern "C" fn(*mut PitchedPtr, Extent) -> i32;
        // SAFETY: the type of the function.
        Ok(unsafe { std::mem::transmute::<usize, Malloc3d>(address)(made, extent) })
    }

    /// `hipMalloc3DArray` with a `hipChannelFormatDesc`: the error and the array.
    pub(crate) fn malloc_3d_array(
        &mut self,
        channels: &[u8; 20],
        extent: Extent,
        flags: u32,
    ) -> Result<(i32, u64), ReplayError> {
        let address = self.function("hipMalloc3DArray")?;
        type Malloc3dArray = unsafe extern "C" fn(*mut u64, *const u32, Extent, u32) -> i32;
        let mut words = [0u32; 5];
        for (word, bytes) in words.iter_mut().zip(channels.as_chunks::<4>().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        let mut made = 0u64;
        // SAFETY: the type of the function; the description has five words.
        let error = unsafe {
            let function = std::mem::transmute::<usize, Malloc3dArray>(address);
            function(&raw mut made, words.as_ptr(), extent, flags)
        };
        Ok((error, made))
    }

    /// `hipMemset3D` or, with a stream, `hipMemset3DAsync`.
    pub(crate) fn memset_3d(
        &mut self,
        at: PitchedPtr,
        value: i32,
        extent: Extent,
        stream: Option<u64>,
    ) -> Result<i32, ReplayError> {
        type Memset = unsafe extern "C" fn(PitchedPtr, i32, Extent) -> i32;
        type MemsetAsync = unsafe extern "C" fn(PitchedPtr, i32, Extent, u64) -> i32;
        Ok(match stream {
            None => {
                let address = self.function("hipMemset3D")?;
                // SAFETY: the type of the function.
                unsafe { std::mem::transmute::<usize, Memset>(address)(at, value, extent) }
            }
            Some(stream) => {
                let address = self.function("hipMemset3DAsync")?;
                // SAFETY: the type of the function.
                unsafe {
                    std::mem::transmute::<usize, MemsetAsync>(address)(at, value, extent, stream)
                }
            }
        })
    }
}

/// The address of a value, as a word.
pub(crate) fn word_of<T>(value: &mut T) -> u64 {
    std::ptr::from_mut(value) as u64
}
