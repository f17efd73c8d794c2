//! Functions of ours in slots of HSA's tables, below the wrappers that record calls.

use crate::tables::{Code, Slot};

/// A function that goes into a slot.
#[derive(Debug)]
pub(super) struct Hook {
    /// The kind of the table.
    pub(super) kind: &'static str,
    /// Slot of the table.
    pub(super) slot: usize,
    /// Function that goes into the slot.
    pub(super) function: Code,
}

/// Defines a function that goes into a slot, and its [`Hook`]. `next` in its body calls what the runtime had
/// there.
macro_rules! hook {
    ($hook:ident: $kind:ident::$slot:ident, fn $name:ident($($a:ident: $t:ty),* $(,)?) -> $r:ty, |$next:ident| $body:block) => {
        pub(super) static $hook: $crate::direct::hooks::Hook = $crate::direct::hooks::Hook {
            kind: stringify!($kind),
            slot: $crate::direct::wrappers::slot::$kind::$slot as usize,
            function: $crate::tables::Code($name as *const std::ffi::c_void),
        };

        #[allow(clippy::too_many_arguments)]
        unsafe extern "C-unwind" fn $name($($a: $t),*) -> $r {
            type Function = unsafe extern "C-unwind" fn($($t),*) -> $r;
            let slot = $crate::direct::wrappers::slot::$kind::$slot as usize;
            let function = $crate::direct::wrappers::functions::$kind[slot]
                .runtime
                .load(std::sync::atomic::Ordering::Relaxed);
            // SAFETY: the slot held a function of this type.
            let function = unsafe {
                std::mem::transmute::<*mut std::ffi::c_void, Function>(function)
            };
            // SAFETY: the arguments are the caller's, or what the hook has put in their place.
            let $next = move |$($a: $t),*| unsafe { function($($a),*) };
            $body
        }
    };
}
pub(super) use hook;

/// Puts the hooks that belong to the table of `kind` into its slots.
pub(super) fn install(kind: &str, slots: &[Slot], hooks: &[&Hook]) {
    for hook in hooks.iter().filter(|hook| hook.kind == kind) {
        // A table of an older runtime lacks the slot.
        if let Some(slot) = slots.get(hook.slot) {
            slot.store(
                hook.function.0.cast_mut(),
                std::sync::atomic::Ordering::Release,
            );
        }
    }
}
