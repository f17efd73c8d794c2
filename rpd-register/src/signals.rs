//! The functions by which a program sets its signal handlers, passed on to the collector.
//!
//! The collector has handlers for signals that end the target and hides them from the target's queries. It is not in the
//! global scope, so the functions that programs reach are defined here; without a collector the C library's are called.

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

type Sigaction = unsafe extern "C" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int;
type Signal = unsafe extern "C" fn(c_int, libc::sighandler_t) -> libc::sighandler_t;

/// The collector's function, or the next one of this name while there is no collector; null when there is none.
fn definition(name: &CStr, collectors: &AtomicPtr<c_void>) -> *mut c_void {
    let known = collectors.load(Ordering::Relaxed);
    if !known.is_null() {
        return known;
    }
    if let Some(collector) = crate::collector::opened() {
        let found = collector.function(name);
        if !found.is_null() {
            collectors.store(found, Ordering::Relaxed);
            return found;
        }
    }
    // SAFETY: the name is text.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

/// Stands in for the C library's function of this name.
///
/// # Safety
///
/// As for the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sigaction(
    number: c_int,
    action: *const libc::sigaction,
    before: *mut libc::sigaction,
) -> c_int {
    static COLLECTORS: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
    let function = definition(c"sigaction", &COLLECTORS);
    // SAFETY: null becomes `None`; otherwise the symbol has this type.
    let function = unsafe { std::mem::transmute::<*mut c_void, Option<Sigaction>>(function) };
    match function {
        // SAFETY: the caller's arguments.
        Some(function) => unsafe { function(number, action, before) },
        None => {
            // SAFETY: the calling thread's own errno.
            unsafe { *libc::__errno_location() = libc::ENOSYS };
            -1
        }
    }
}

macro_rules! forwarded {
    ($($name:ident $text:literal;)*) => {$(
        /// Stands in for the C library's function of this name.
        ///
        /// # Safety
        ///
        /// As for the C library's.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(
            number: c_int,
            handler: libc::sighandler_t,
        ) -> libc::sighandler_t {
            static COLLECTORS: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
            let function = definition($text, &COLLECTORS);
            // SAFETY: null becomes `None`; otherwise the symbol has this type.
            let function = unsafe { std::mem::transmute::<*mut c_void, Option<Signal>>(function) };
            // SAFETY: the caller's arguments.
            function.map_or(libc::SIG_ERR, |function| unsafe { function(number, handler) })
        }
    )*};
}

forwarded! {
    signal c"signal";
    bsd_signal c"bsd_signal";
    ssignal c"ssignal";
    sysv_signal c"sysv_signal";
    __sysv_signal c"__sysv_signal";
    sigset c"sigset";
}
