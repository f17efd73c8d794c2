//! The runtime compiler (hiprtc): programs are compiled by the clang that is installed.
//!
//! `device.h` replaces the HIP headers that the real library has built in; functions of the device libraries (`pow`,
//! `erf`, ...) are not there.

// Exported by symbol name: its visibility among modules does not matter.
#![allow(unreachable_pub, non_snake_case)]

mod compile;

use core::ffi::{CStr, c_char, c_int, c_void};
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{LazyLock, Mutex};

use crate::hip::runtime::lock;
use compile::{Compiled, Source};

/// Declares the results with their names.
macro_rules! results {
    ($($name:ident = $number:literal, $text:literal;)*) => {
        /// Values of `hiprtcResult`.
        #[allow(dead_code)]
        mod result {
            $(pub(super) const $name: u32 = $number;)*
        }

        fn text_of(result: u32) -> &'static CStr {
            match result {
                $($number => $text,)*
                _ => c"HIPRTC_ERROR_UNKNOWN",
            }
        }
    };
}

results! {
    SUCCESS = 0, c"HIPRTC_SUCCESS";
    OUT_OF_MEMORY = 1, c"HIPRTC_ERROR_OUT_OF_MEMORY";
    PROGRAM_CREATION_FAILURE = 2, c"HIPRTC_ERROR_PROGRAM_CREATION_FAILURE";
    INVALID_INPUT = 3, c"HIPRTC_ERROR_INVALID_INPUT";
    INVALID_PROGRAM = 4, c"HIPRTC_ERROR_INVALID_PROGRAM";
    INVALID_OPTION = 5, c"HIPRTC_ERROR_INVALID_OPTION";
    COMPILATION = 6, c"HIPRTC_ERROR_COMPILATION";
    BUILTIN_OPERATION_FAILURE = 7, c"HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE";
    NO_NAME_EXPRESSIONS_AFTER_COMPILATION = 8, c"HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION";
    NO_LOWERED_NAMES_BEFORE_COMPILATION = 9, c"HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION";
    NAME_EXPRESSION_NOT_VALID = 10, c"HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID";
    INTERNAL_ERROR = 11, c"HIPRTC_ERROR_INTERNAL_ERROR";
    LINKING = 100, c"HIPRTC_ERROR_LINKING";
}

/// A program and the results of its compilation.
struct Program {
    source: Source,
    compiled: Option<Compiled>,
}

/// The programs of a process by handle, which begins with 1.
#[derive(Default)]
struct Programs {
    last: usize,
    all: HashMap<usize, Program>,
}

static PROGRAMS: LazyLock<Mutex<Programs>> = LazyLock::new(Mutex::default);

/// Calls `act` with a program; fails with `INVALID_PROGRAM` for other handles.
fn with_program(program: usize, act: impl FnOnce(&mut Program) -> Result<(), u32>) -> u32 {
    match lock(&PROGRAMS).all.get_mut(&program) {
        Some(program) => act(program).err().unwrap_or(result::SUCCESS),
        None => result::INVALID_PROGRAM,
    }
}

/// A copy of a text; `INVALID_INPUT` for null.
///
/// # Safety
/// `text` is null or a C string.
unsafe fn copied(text: *const c_char) -> Result<CString, u32> {
    if text.is_null() {
        return Err(result::INVALID_INPUT);
    }
    // SAFETY: by contract.
    Ok(unsafe { CStr::from_ptr(text) }.to_owned())
}

/// Copies of texts.
///
/// # Safety
/// `list` has `count` C strings.
unsafe fn all_copied(list: *const *const c_char, count: c_int) -> Result<Vec<CString>, u32> {
    let count = usize::try_from(count).map_err(|_| result::INVALID_INPUT)?;
    if count > 0 && list.is_null() {
        return Err(result::INVALID_INPUT);
    }
    // SAFETY: by contract.
    (0..count)
        .map(|n| unsafe { copied(*list.add(n)) })
        .collect()
}

/// Writes a result to a place of the caller's; fails with `INVALID_INPUT` if the place is null.
///
/// # Safety
/// `place` is null or can be written.
unsafe fn put<T>(place: *mut T, value: T) -> Result<(), u32> {
    if place.is_null() {
        return Err(result::INVALID_INPUT);
    }
    // SAFETY: by contract.
    unsafe { place.write(value) };
    Ok(())
}

/// Copies bytes to the caller's buffer.
///
/// # Safety
/// `place` is null or has room for them.
unsafe fn put_bytes(place: *mut c_char, bytes: &[u8]) -> Result<(), u32> {
    if place.is_null() {
        return Err(result::INVALID_INPUT);
    }
    // SAFETY: by contract.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place.cast(), bytes.len()) };
    Ok(())
}

/// The text of a result.
#[unsafe(no_mangle)]
pub extern "C" fn hiprtcGetErrorString(result: u32) -> *const c_char {
    text_of(result).as_ptr()
}

/// The version of the interface.
///
/// # Safety
/// The places can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcVersion(major: *mut c_int, minor: *mut c_int) -> u32 {
    // SAFETY: by contract.
    let done = unsafe { put(major, 9).and_then(|()| put(minor, 0)) };
    done.err().unwrap_or(result::SUCCESS)
}

/// Makes a program of a source and the headers that it can include by their names.
///
/// # Safety
/// As documented for the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcCreateProgram(
    program: *mut usize,
    source: *const c_char,
    name: *const c_char,
    count: c_int,
    headers: *const *const c_char,
    names: *const *const c_char,
) -> u32 {
    let make = || {
        // SAFETY: by contract.
        let (text, headers, names) = unsafe {
            (
                copied(source)?,
                all_copied(headers, count)?,
                all_copied(names, count)?,
            )
        };
        // SAFETY: by contract. Without a name it has the real library's.
        let name = unsafe { copied(name) }.unwrap_or_else(|_| c"CompileSourceXXXXXX".to_owned());
        let mut programs = lock(&PROGRAMS);
        programs.last += 1;
        let handle = programs.last;
        let source = Source {
            text,
            name,
            headers: names.into_iter().zip(headers).collect(),
            expressions: Vec::new(),
        };
        // SAFETY: by contract.
        unsafe { put(program, handle)? };
        let compiled = None;
        programs.all.insert(handle, Program { source, compiled });
        Ok(())
    };
    make().err().unwrap_or(result::SUCCESS)
}

/// Removes a program.
///
/// # Safety
/// `program` is null or can be read and written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcDestroyProgram(program: *mut usize) -> u32 {
    // SAFETY: by contract.
    let Some(place) = (unsafe { program.as_mut() }) else {
        return result::INVALID_INPUT;
    };
    match lock(&PROGRAMS).all.remove(&std::mem::take(place)) {
        Some(_) => result::SUCCESS,
        None => result::INVALID_PROGRAM,
    }
}

/// Requests the lowered name of a kernel or variable, before the program is compiled.
///
/// # Safety
/// `expression` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcAddNameExpression(program: usize, expression: *const c_char) -> u32 {
    with_program(program, |program| {
        if program.compiled.is_some() {
            return Err(result::NO_NAME_EXPRESSIONS_AFTER_COMPILATION);
        }
        // SAFETY: by contract.
        let expression = unsafe { copied(expression)? };
        program.source.expressions.push(expression);
        Ok(())
    })
}

/// Compiles a program.
///
/// # Safety
/// `options` has `count` C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcCompileProgram(
    program: usize,
    count: c_int,
    options: *const *const c_char,
) -> u32 {
    with_program(program, |program| {
        // SAFETY: by contract.
        let options = unsafe { all_copied(options, count)? };
        let compiled = compile::compile(&program.source, &options);
        let right = compiled.code.is_some();
        program.compiled = Some(compiled);
        if right {
            Ok(())
        } else {
            Err(result::COMPILATION)
        }
    })
}

/// The name that a kernel or variable has in the code object; the text lives as long as the program.
///
/// # Safety
/// `expression` is null or a C string, `lowered` null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcGetLoweredName(
    program: usize,
    expression: *const c_char,
    lowered: *mut *const c_char,
) -> u32 {
    with_program(program, |program| {
        // SAFETY: by contract.
        let expression = unsafe { copied(expression)? };
        let compiled =
            (program.compiled.as_ref()).ok_or(result::NO_LOWERED_NAMES_BEFORE_COMPILATION)?;
        let name = (compiled.names.get(&expression)).ok_or(result::NAME_EXPRESSION_NOT_VALID)?;
        // SAFETY: by contract.
        unsafe { put(lowered, name.as_ptr()) }
    })
}

/// Calls a function with a program's code object or log; fails if the program is not compiled.
fn with_compiled(
    program: usize,
    part: impl FnOnce(&Compiled) -> Option<&[u8]>,
    act: impl FnOnce(&[u8]) -> Result<(), u32>,
) -> u32 {
    with_program(program, |program| {
        let bytes = program.compiled.as_ref().and_then(part);
        act(bytes.ok_or(result::INVALID_PROGRAM)?)
    })
}

/// The size of the compiler's messages, with the terminating zero.
///
/// # Safety
/// `size` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcGetProgramLogSize(program: usize, size: *mut usize) -> u32 {
    let log = |compiled: &Compiled| Some(compiled.log.as_bytes_with_nul().len());
    with_program(program, |program| {
        // SAFETY: by contract.
        unsafe { put(size, program.compiled.as_ref().and_then(log).unwrap_or(1)) }
    })
}

/// The compiler's messages.
///
/// # Safety
/// `log` is null or has room for them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcGetProgramLog(program: usize, log: *mut c_char) -> u32 {
    with_program(program, |program| {
        let text = program.compiled.as_ref().map(|compiled| &compiled.log);
        let text = text.map_or(&b"\0"[..], |text| text.as_bytes_with_nul());
        // SAFETY: by contract.
        unsafe { put_bytes(log, text) }
    })
}

/// The size of the code object.
///
/// # Safety
/// `size` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcGetCodeSize(program: usize, size: *mut usize) -> u32 {
    // SAFETY: by contract.
    let write = |code: &[u8]| unsafe { put(size, code.len()) };
    with_compiled(program, |compiled| compiled.code.as_deref(), write)
}

/// The code object.
///
/// # Safety
/// `code` is null or has room for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hiprtcGetCode(program: usize, code: *mut c_char) -> u32 {
    // SAFETY: by contract.
    let write = |bytes: &[u8]| unsafe { put_bytes(code, bytes) };
    with_compiled(program, |compiled| compiled.code.as_deref(), write)
}

/// Declares functions that are not supported: a call prints the function's name and fails.
macro_rules! refused {
    ($($name:ident($($a:ident: $t:ty),*) = $result:ident;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`, which is not supported.")]
        #[unsafe(no_mangle)]
        #[allow(unused_variables)]
        pub extern "C" fn $name($($a: $t),*) -> u32 {
            eprintln!("rpd-sim: {} is not supported", stringify!($name));
            result::$result
        }
    )*};
}

refused! {
    hiprtcGetBitcode(program: usize, bitcode: *mut c_char) = INVALID_PROGRAM;
    hiprtcGetBitcodeSize(program: usize, size: *mut usize) = INVALID_PROGRAM;
    hiprtcLinkCreate(count: u32, options: *mut u32, values: *mut *mut c_void, link: *mut usize) = LINKING;
    hiprtcLinkAddFile(link: usize, kind: u32, path: *const c_char, count: u32, options: *mut u32, values: *mut *mut c_void) = LINKING;
    hiprtcLinkAddData(link: usize, kind: u32, image: *mut c_void, size: usize, name: *const c_char, count: u32, options: *mut u32, values: *mut *mut c_void) = LINKING;
    hiprtcLinkComplete(link: usize, binary: *mut *mut c_void, size: *mut usize) = LINKING;
    hiprtcLinkDestroy(link: usize) = LINKING;
}
