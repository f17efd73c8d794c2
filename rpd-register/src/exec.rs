//! The functions by which a program replaces itself with another: what is complete by then is recorded first.
//!
//! Some of them take any number of arguments, and none is looked at here: each saves the argument registers, lets
//! [`before`] do its work, and jumps to the function of the same name that it returns.

use std::arch::naked_asm;
use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// The functions, in the order of [`NEXT`].
const NAMES: [&CStr; 9] = [
    c"execve",
    c"execv",
    c"execvp",
    c"execvpe",
    c"execl",
    c"execle",
    c"execlp",
    c"fexecve",
    c"execveat",
];

/// The next definitions, usually the C library's.
static NEXT: [AtomicPtr<c_void>; NAMES.len()] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; NAMES.len()];

/// Looks the next definitions up. To be called when the library is loaded: a child that was forked while another thread was
/// in the loader could not do it.
pub(crate) fn prepare() {
    for (name, next) in NAMES.iter().zip(&NEXT) {
        // SAFETY: the name is text.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
        next.store(found, Ordering::Release);
    }
}

/// Called by a function of [`NAMES`] before it does its work; what does it. Nothing is recorded in a child that shares its
/// parent's memory or was forked from it.
extern "C" fn before(function: usize) -> *const c_void {
    let flush = || {
        if let Some(collector) = crate::collector::opened() {
            collector.flush();
        }
    };
    let _ = std::panic::catch_unwind(flush);
    let known = NEXT[function].load(Ordering::Acquire);
    if known.is_null() {
        // Another constructor calls it before ours has run.
        prepare();
    }
    let next = NEXT[function].load(Ordering::Acquire);
    if next.is_null() {
        return missing as *const c_void;
    }
    next
}

/// Takes the place of a function that the C library does not have.
extern "C" fn missing() -> c_int {
    // SAFETY: the calling thread's own errno.
    unsafe { *libc::__errno_location() = libc::ENOSYS };
    -1
}

macro_rules! passed_on {
    ($($name:ident = $index:literal;)*) => {$(
        /// As the C library's function of this name.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub(crate) extern "C" fn $name() {
            // rax counts the vector registers that hold variable arguments. Seven words align the stack for the call.
            naked_asm!(
                "push rdi",
                "push rsi",
                "push rdx",
                "push rcx",
                "push r8",
                "push r9",
                "push rax",
                "mov edi, {index}",
                "call {before}",
                "mov r11, rax",
                "pop rax",
                "pop r9",
                "pop r8",
                "pop rcx",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "jmp r11",
                index = const $index,
                before = sym before,
            )
        }
    )*};
}

passed_on! {
    execve = 0;
    execv = 1;
    execvp = 2;
    execvpe = 3;
    execl = 4;
    execle = 5;
    execlp = 6;
    fexecve = 7;
    execveat = 8;
}
