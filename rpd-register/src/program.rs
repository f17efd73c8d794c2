//! Recording ends where the target's `main` returns.
//!
//! Calls made by exit handlers, such as the clean-up of the runtime, are not recorded, as with other tools of this kind.
//! In a program that ends by `exit` and never returns from `main`, the exit handler of the provider ends the recording. One
//! that ends by `_exit`, which runs no handlers, has what is complete by then recorded.

#[cfg(not(test))]
use std::ffi::{c_char, c_int, c_void};

#[cfg(not(test))]
type Main = unsafe extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;
#[cfg(not(test))]
type Start = unsafe extern "C" fn(
    Option<Main>,
    c_int,
    *mut *mut c_char,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    *mut c_void,
) -> c_int;

/// The target's own `main`.
#[cfg(not(test))]
static MAIN: std::sync::OnceLock<Main> = std::sync::OnceLock::new();

#[cfg(not(test))]
unsafe extern "C" fn main(
    count: c_int,
    arguments: *mut *mut c_char,
    environment: *mut *mut c_char,
) -> c_int {
    let Some(main) = MAIN.get() else { return 127 };
    // SAFETY: the arguments that the C runtime passes to `main`.
    let status = unsafe { main(count, arguments, environment) };
    let end = || {
        if let Some(collector) = crate::collector::opened() {
            collector.end();
        }
    };
    let _ = std::panic::catch_unwind(end);
    status
}

/// The C runtime's start of a program, with `main` wrapped. It does not return.
///
/// # Safety
///
/// Called by a program's start code only.
#[cfg(not(test))]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __libc_start_main(
    program: Option<Main>,
    count: c_int,
    arguments: *mut *mut c_char,
    init: *mut c_void,
    fini: *mut c_void,
    loader_fini: *mut c_void,
    stack_end: *mut c_void,
) -> c_int {
    // SAFETY: the name is text; the next definition is the C library's, or that of another preloaded library.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"__libc_start_main".as_ptr()) };
    // SAFETY: null becomes `None`; otherwise the symbol has this type.
    let Some(next) = (unsafe { std::mem::transmute::<*mut c_void, Option<Start>>(next) }) else {
        // Without a C library the program cannot run.
        std::process::abort();
    };
    // A process that is not recorded runs its `main` unwrapped.
    let wrapped = match program {
        Some(program) if crate::collector::opened().is_some() => {
            let _ = MAIN.set(program);
            Some(main as Main)
        }
        other => other,
    };
    // SAFETY: the caller's arguments, except that `main` is wrapped.
    unsafe {
        next(
            wrapped,
            count,
            arguments,
            init,
            fini,
            loader_fini,
            stack_end,
        )
    }
}

/// Ends the process without exit handlers.
#[cfg(not(test))]
fn end_at_once(status: c_int) -> ! {
    let flush = || {
        if let Some(collector) = crate::collector::opened() {
            collector.flush();
        }
    };
    let _ = std::panic::catch_unwind(flush);
    loop {
        // SAFETY: the call takes a number and does not return. It is what the C library's function does.
        unsafe { libc::syscall(libc::SYS_exit_group, status) };
    }
}

/// Stands in for the C library's function of this name.
#[cfg(not(test))]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn _exit(status: c_int) -> ! {
    end_at_once(status)
}

/// Stands in for the C library's function of this name.
#[cfg(not(test))]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn _Exit(status: c_int) -> ! {
    end_at_once(status)
}
