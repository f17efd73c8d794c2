//! The functions the SDK puts in front of HIP calls that concern one stream, when a tool follows streams.

#![allow(non_snake_case)]

use core::{
    ffi::c_void,
    sync::atomic::{AtomicPtr, Ordering},
};

use super::stream;
use crate::api::{
    table::{Code, Slot, count},
    types::{Dim3, Extent, PitchedPtr},
};

/// Functions that the wrappers call: the previous contents of the slots.
pub(crate) static NEXT: [Slot; count::HIP_RUNTIME_API] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; count::HIP_RUNTIME_API];

macro_rules! call_next {
    ($n:literal, ($($a:ident: $t:ty),*) -> $r:ty) => {{
        let slot = NEXT[$n].load(Ordering::Relaxed);
        // SAFETY: it was in slot n and so is of operation n's type; the arguments are the caller's.
        unsafe {
            core::mem::transmute::<*mut c_void, unsafe extern "C" fn($($t),*) -> $r>(slot)($($a),*)
        }
    }};
}

macro_rules! api_stream {
    (set, $stream:ident, $n:literal, $name:ident, ($($a:ident: $t:ty),*) -> $r:ty) => {
        #[allow(clippy::too_many_arguments)]
        unsafe extern "C" fn $name($($a: $t),*) -> $r {
            let set = stream::Set::enter($stream as u64);
            let result = call_next!($n, ($($a: $t),*) -> $r);
            set.exit();
            result
        }
    };
    (create, $stream:ident, $n:literal, $name:ident, ($($a:ident: $t:ty),*) -> $r:ty) => {
        unsafe extern "C" fn $name($($a: $t),*) -> $r {
            let result = call_next!($n, ($($a: $t),*) -> $r);
            if result == 0 {
                // SAFETY: a call that succeeded has written the new stream there.
                stream::created(unsafe { *$stream.cast::<u64>() });
            }
            result
        }
    };
    (destroy, $stream:ident, $n:literal, $name:ident, ($($a:ident: $t:ty),*) -> $r:ty) => {
        unsafe extern "C" fn $name($($a: $t),*) -> $r {
            let result = call_next!($n, ($($a: $t),*) -> $r);
            stream::destroyed($stream as u64);
            result
        }
    };
}

macro_rules! api_streams {
    ([$($n:literal $name:ident),* $(,)?]) => {
        /// Operation ids and their wrappers.
        pub(crate) static WRAPPERS: &[(usize, Code)] = &[$(($n, Code($name as *const ()))),*];
    };
}

include!(concat!(env!("OUT_DIR"), "/api_streams.rs"));
