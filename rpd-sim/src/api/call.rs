//! The exported functions: each one calls what its slot of the current table holds.

// Exported by symbol name: its visibility among modules does not matter.
#![allow(unreachable_pub)]

use core::{ffi::c_void, sync::atomic::Ordering};

use super::{
    table::{self, Library},
    types::{ChannelFormatDesc, ControlDirectives, Dim3, Extent, IpcHandle, PitchedPtr, UniqueId},
};

/// Code that a call of each domain runs first: runtimes register with the SDK lazily, at the first call of one of their
/// functions.
macro_rules! before {
    (HIP_RUNTIME_API) => {
        table::ensure(Library::Hip)
    };
    (HIP_COMPILER_API) => {
        table::ensure(Library::HipCompiler)
    };
    (MARKER_CORE_API) => {
        table::ensure(Library::Roctx)
    };
    (MARKER_CONTROL_API) => {
        table::ensure(Library::Roctx)
    };
    (MARKER_NAME_API) => {
        table::ensure(Library::Roctx)
    };
    (RCCL_API) => {
        table::ensure(Library::Rccl)
    };
    // HSA registers inside `hsa_init`.
    ($hsa:ident) => {};
}

macro_rules! through {
    ($domain:ident, $n:literal, ($($a:ident: $t:ty),*) -> $r:ty) => {{
        let slot = table::$domain.slots[$n].load(Ordering::Relaxed);
        // SAFETY: slot n holds a function of operation n's type; tools that patch a table must keep the type.
        unsafe {
            core::mem::transmute::<*mut c_void, unsafe extern "C" fn($($t),*) -> $r>(slot)($($a),*)
        }
    }};
}

macro_rules! api_fn {
    (HSA_CORE_API, $n:literal, hsa_init, () -> $r:ty) => {
        /// Initialises the runtime and, the first time, offers its tables to the SDK.
        ///
        /// # Safety
        /// As in the HSA specification.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn hsa_init() -> $r {
            let status = through!(HSA_CORE_API, $n, () -> $r);
            if status == 0 {
                table::ensure(Library::Hsa);
            }
            status
        }
    };
    ($domain:ident, $n:literal, $name:ident, ($($a:ident: $t:ty),*) -> $r:ty) => {
        #[doc = concat!("`", stringify!($name), "` of the C API.")]
        ///
        /// # Safety
        /// As documented for the C function.
        #[allow(non_snake_case, clippy::too_many_arguments)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($a: $t),*) -> $r {
            before!($domain);
            through!($domain, $n, ($($a: $t),*) -> $r)
        }
    };
}

macro_rules! api_domain {
    ($($ignored:tt)*) => {};
}

include!(concat!(env!("OUT_DIR"), "/api_fns.rs"));
