//! A wrapper for each function of the runtimes' tables.
//!
//! A wrapper that lies in a slot calls what was there before. It is transparent to exceptions of the program that pass
//! through it.

#![expect(non_snake_case, reason = "the names are those of functions")]

use std::ffi::c_void;
use std::sync::atomic::Ordering;

use super::calls::{self, Unwinding};
use crate::recording::frames::Frame;
use crate::tables::Code;
use crate::tables::types::{
    ChannelFormatDesc, ControlDirectives, Dim3, Extent, IpcHandle, PitchedPtr, Result as _,
    UniqueId,
};

/// The functions that the slots of each table had before ours.
pub(super) mod functions {
    use crate::tables::Slot;

    /// The functions below the wrapper of an operation. Null while the runtime has not registered the table, or when the
    /// table lacks the slot.
    pub(in crate::direct) struct Below {
        /// Function that the wrapper calls: a hook of ours where there is one, otherwise `runtime`.
        pub(in crate::direct) next: Slot,
        /// The runtime's own function of the slot.
        pub(in crate::direct) runtime: Slot,
    }

    impl Below {
        const fn new() -> Below {
            Below {
                next: Slot::new(std::ptr::null_mut()),
                runtime: Slot::new(std::ptr::null_mut()),
            }
        }
    }

    macro_rules! api_fn {
        ($($ignored:tt)*) => {};
    }
    macro_rules! api_domain {
        ($kind:ident, $count:literal, $names:tt) => {
            pub(in crate::direct) static $kind: [Below; $count] = [const { Below::new() }; $count];
        };
    }
    include!(concat!(env!("OUT_DIR"), "/functions.rs"));
}

/// Actions of the wrappers of each table.
pub(super) mod api {
    use crate::direct::calls::ApiSlot;

    macro_rules! api_fn {
        ($($ignored:tt)*) => {};
    }
    macro_rules! api_domain {
        ($kind:ident, $count:literal, $names:tt) => {
            pub(in crate::direct) static $kind: ApiSlot = ApiSlot::new();
        };
    }
    include!(concat!(env!("OUT_DIR"), "/functions.rs"));
}

/// The slot of each function, as `slot::KIND::function as usize`.
pub(super) mod slot {
    macro_rules! api_fn {
        ($($ignored:tt)*) => {};
    }
    macro_rules! api_domain {
        ($kind:ident, $count:literal, [$($name:ident),*]) => {
            #[allow(
                non_camel_case_types,
                clippy::enum_variant_names,
                reason = "the names are those of functions"
            )]
            #[allow(dead_code, reason = "most functions are only wrapped")]
            #[repr(usize)]
            #[derive(Debug, Clone, Copy)]
            pub(in crate::direct) enum $kind { $($name),* }
        };
    }
    include!(concat!(env!("OUT_DIR"), "/functions.rs"));
}

macro_rules! api_fn {
    ($kind:ident, $n:literal, $name:ident, ($($a:ident: $t:ty),*) -> $r:ty) => {
        #[allow(clippy::too_many_arguments)]
        unsafe extern "C-unwind" fn $name($($a: $t),*) -> $r {
            #[repr(C)]
            struct Args {
                $($a: $t,)*
            }
            let slot = functions::$kind[$n].next.load(Ordering::Relaxed);
            // SAFETY: slot n holds a function of operation n's type.
            let function = unsafe {
                std::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn($($t),*) -> $r>(slot)
            };
            let args = Args { $($a,)* };
            let mut frame = Frame::unused();
            // SAFETY: these are the arguments of this call.
            unsafe { calls::enter(&mut frame, &api::$kind, $n, (&raw const args).cast()) };
            let unwinding = Unwinding(&raw const frame);
            // SAFETY: the arguments are the caller's.
            let result = unsafe { function($(args.$a),*) };
            std::mem::forget(unwinding);
            // SAFETY: as at the start of the call.
            unsafe {
                calls::exit(&frame, &api::$kind, $n, (&raw const args).cast(), result.word());
            }
            result
        }
    };
}

macro_rules! api_domain {
    ($kind:ident, $count:literal, [$($name:ident),*]) => {
        /// Wrappers of the table's functions, by slot.
        pub(super) static $kind: [Code; $count] = [$(Code($name as *const c_void)),*];
    };
}

include!(concat!(env!("OUT_DIR"), "/functions.rs"));
