//! The functions that the SDK puts into the slots of calls that a tool traces.

#![allow(non_snake_case)]

use core::{ffi::c_void, sync::atomic::Ordering};

use super::trace::{self, Call};
use crate::api::{
    table::{Code, next},
    types::{ChannelFormatDesc, ControlDirectives, Dim3, Extent, IpcHandle, PitchedPtr, UniqueId},
};

macro_rules! api_fn {
    ($domain:ident, $n:literal, $name:ident, ($($a:ident: $t:ty),*) -> $r:ty) => {
        #[allow(clippy::too_many_arguments)]
        unsafe extern "C" fn $name($($a: $t),*) -> $r {
            let slot = next::$domain[$n].load(Ordering::Relaxed);
            // SAFETY: slot n holds a function of operation n's type.
            let next = unsafe {
                core::mem::transmute::<*mut c_void, unsafe extern "C" fn($($t),*) -> $r>(slot)
            };
            let selected = trace::select(&trace::$domain, $n);
            if selected.is_empty() {
                // SAFETY: the arguments are the caller's.
                return unsafe { next($($a),*) };
            }
            #[repr(C)]
            struct Args {
                $($a: $t,)*
            }
            let mut place = Call::place();
            let call = Call::begin(&mut place, &trace::$domain, $n, selected, Args { $($a,)* });
            call.enter();
            // SAFETY: the arguments are the caller's.
            let result = unsafe { next($($a),*) };
            call.exit(result);
            result
        }
    };
}

macro_rules! api_domain {
    ($domain:ident, $n:literal, [$($name:ident),*]) => {
        /// Wrappers by operation id.
        pub(crate) static $domain: [Code; $n] = [$(Code($name as *const ())),*];
    };
}

include!(concat!(env!("OUT_DIR"), "/api_fns.rs"));
