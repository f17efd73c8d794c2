//! The C functions of RPD's tracer, in the global scope of the target: programs look them up by name, or are linked
//! against them. They lead to the functions of the same names in the collector, which is in no scope of the program.
//! Without a collector they do nothing.

use std::ffi::{CStr, c_char, c_void};
use std::panic::catch_unwind;

use crate::collector;

/// A function of the collector; null without a collector.
fn function(name: &CStr) -> *mut c_void {
    let found = catch_unwind(|| collector::open().map(|collector| collector.function(name)));
    found.ok().flatten().unwrap_or(std::ptr::null_mut())
}

macro_rules! forwarded {
    ($($name:ident($($argument:ident),*) $text:literal;)*) => {$(
        /// As the collector's function of this name.
        ///
        /// # Safety
        ///
        /// Each argument is null or a NUL-terminated text.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($argument: *const c_char),*) {
            type Function = unsafe extern "C" fn($(forwarded!(@text $argument)),*);
            // SAFETY: null becomes `None`; otherwise the collector's function has this type.
            let function = unsafe {
                std::mem::transmute::<*mut c_void, Option<Function>>(function($text))
            };
            if let Some(function) = function {
                // SAFETY: the caller's arguments.
                unsafe { function($($argument),*) };
            }
        }
    )*};
    (@text $argument:ident) => { *const c_char };
}

forwarded! {
    rpdstart() c"rpdstart";
    rpdstop() c"rpdstop";
    rpdflush() c"rpdflush";
    rpd_rangePush(domain, name, arguments) c"rpd_rangePush";
    rpd_rangePop() c"rpd_rangePop";
    rpd_mark(domain, name, arguments) c"rpd_mark";
}
