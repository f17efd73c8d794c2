//! Calls of the HSA runtime that have no slot of their own in the tables that it registers: the names that memory
//! orders had before HSA 1.1, which programs still use and which the library still exports, and extensions that came
//! later.

// Exported by symbol name: its visibility among modules does not matter.
#![allow(unreachable_pub)]

use core::{ffi::c_void, sync::atomic::Ordering};

use super::{
    call, missing,
    table::{self, Code},
};

macro_rules! old_names {
    ($($old:ident = $new:ident($($a:ident: $t:ty),*) -> $r:ty;)*) => {$(
        #[doc = concat!("The former name of `", stringify!($new), "`.")]
        ///
        /// # Safety
        /// As documented for the C function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $old($($a: $t),*) -> $r {
            // SAFETY: the arguments are the caller's, and mean the same.
            unsafe { call::$new($($a),*) }
        }
    )*};
}

old_names! {
    hsa_signal_load_acquire = hsa_signal_load_scacquire(signal: u64) -> i64;
    hsa_signal_store_release = hsa_signal_store_screlease(signal: u64, value: i64) -> ();
    hsa_signal_wait_acquire = hsa_signal_wait_scacquire(signal: u64, condition: u32, compare: i64, timeout: u64, hint: u32) -> i64;
    hsa_signal_and_acquire = hsa_signal_and_scacquire(signal: u64, value: i64) -> ();
    hsa_signal_and_release = hsa_signal_and_screlease(signal: u64, value: i64) -> ();
    hsa_signal_and_acq_rel = hsa_signal_and_scacq_screl(signal: u64, value: i64) -> ();
    hsa_signal_or_acquire = hsa_signal_or_scacquire(signal: u64, value: i64) -> ();
    hsa_signal_or_release = hsa_signal_or_screlease(signal: u64, value: i64) -> ();
    hsa_signal_or_acq_rel = hsa_signal_or_scacq_screl(signal: u64, value: i64) -> ();
    hsa_signal_xor_acquire = hsa_signal_xor_scacquire(signal: u64, value: i64) -> ();
    hsa_signal_xor_release = hsa_signal_xor_screlease(signal: u64, value: i64) -> ();
    hsa_signal_xor_acq_rel = hsa_signal_xor_scacq_screl(signal: u64, value: i64) -> ();
    hsa_signal_add_acquire = hsa_signal_add_scacquire(signal: u64, value: i64) -> ();
    hsa_signal_add_release = hsa_signal_add_screlease(signal: u64, value: i64) -> ();
    hsa_signal_add_acq_rel = hsa_signal_add_scacq_screl(signal: u64, value: i64) -> ();
    hsa_signal_subtract_acquire = hsa_signal_subtract_scacquire(signal: u64, value: i64) -> ();
    hsa_signal_subtract_release = hsa_signal_subtract_screlease(signal: u64, value: i64) -> ();
    hsa_signal_subtract_acq_rel = hsa_signal_subtract_scacq_screl(signal: u64, value: i64) -> ();
    hsa_signal_exchange_acquire = hsa_signal_exchange_scacquire(signal: u64, value: i64) -> i64;
    hsa_signal_exchange_release = hsa_signal_exchange_screlease(signal: u64, value: i64) -> i64;
    hsa_signal_exchange_acq_rel = hsa_signal_exchange_scacq_screl(signal: u64, value: i64) -> i64;
    hsa_signal_cas_acquire = hsa_signal_cas_scacquire(signal: u64, expected: i64, value: i64) -> i64;
    hsa_signal_cas_release = hsa_signal_cas_screlease(signal: u64, expected: i64, value: i64) -> i64;
    hsa_signal_cas_acq_rel = hsa_signal_cas_scacq_screl(signal: u64, expected: i64, value: i64) -> i64;
    hsa_queue_load_read_index_acquire = hsa_queue_load_read_index_scacquire(queue: *mut c_void) -> u64;
    hsa_queue_load_write_index_acquire = hsa_queue_load_write_index_scacquire(queue: *mut c_void) -> u64;
    hsa_queue_store_write_index_release = hsa_queue_store_write_index_screlease(queue: *mut c_void, value: u64) -> ();
    hsa_queue_store_read_index_release = hsa_queue_store_read_index_screlease(queue: *mut c_void, value: u64) -> ();
    hsa_queue_cas_write_index_acquire = hsa_queue_cas_write_index_scacquire(queue: *mut c_void, expected: u64, value: u64) -> u64;
    hsa_queue_cas_write_index_release = hsa_queue_cas_write_index_screlease(queue: *mut c_void, expected: u64, value: u64) -> u64;
    hsa_queue_cas_write_index_acq_rel = hsa_queue_cas_write_index_scacq_screl(queue: *mut c_void, expected: u64, value: u64) -> u64;
    hsa_queue_add_write_index_acquire = hsa_queue_add_write_index_scacquire(queue: *mut c_void, value: u64) -> u64;
    hsa_queue_add_write_index_release = hsa_queue_add_write_index_screlease(queue: *mut c_void, value: u64) -> u64;
    hsa_queue_add_write_index_acq_rel = hsa_queue_add_write_index_scacq_screl(queue: *mut c_void, value: u64) -> u64;
}

/// `hsa_ext_sampler_create_v2` of the C API.
///
/// # Safety
/// As documented for the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_ext_sampler_create_v2(
    agent: u64,
    descriptor: *const c_void,
    sampler: *mut u64,
) -> u32 {
    type Create = unsafe extern "C" fn(u64, *const c_void, *mut u64) -> u32;
    let slot = table::HSA_IMAGE_EXT_API.slots[13].load(Ordering::Relaxed);
    // SAFETY: slot 13 holds a function of this type; tools that patch the table must keep the type.
    unsafe { core::mem::transmute::<*mut c_void, Create>(slot)(agent, descriptor, sampler) }
}

/// `hsa_amd_image_get_info_max_dim` of the C API.
///
/// # Safety
/// As documented for the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_amd_image_get_info_max_dim(
    agent: u64,
    attribute: u32,
    value: *mut c_void,
) -> u32 {
    match attribute {
        // SAFETY: the arguments are the caller's; the attributes of agents with these numbers are the greatest sizes.
        0x3000..=0x3008 => unsafe { call::hsa_agent_get_info(agent, attribute, value) },
        _ => missing::HSA_INVALID_ARGUMENT,
    }
}

macro_rules! pc_sampling {
    ($($n:literal $name:ident($($a:ident: $t:ty),*);)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "` of the C API.")]
            ///
            /// # Safety
            /// As documented for the C function.
            #[allow(clippy::too_many_arguments)]
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($a: $t),*) -> u32 {
                let slot = table::HSA_PC_SAMPLING.slots[$n].load(Ordering::Relaxed);
                // SAFETY: slot n holds a function of this type; tools that patch the table must keep the type.
                unsafe {
                    core::mem::transmute::<*mut c_void, unsafe extern "C" fn($($t),*) -> u32>(slot)($($a),*)
                }
            }
        )*

        /// The initial content of the table of these calls.
        pub(super) mod pc_sampling {
            use super::{c_void, missing};
            $(
                #[allow(clippy::too_many_arguments)]
                pub(super) unsafe extern "C" fn $name($(_: $t),*) -> u32 {
                    missing::hsa(stringify!($name))
                }
            )*
        }

        /// Implementations of the calls that sample program counters, by slot.
        pub(super) static PC_SAMPLING: [Code; 7] = [$(Code(pc_sampling::$name as *const ()),)*];
    };
}

pc_sampling! {
    0 hsa_ven_amd_pcs_iterate_configuration(agent: u64, callback: *mut c_void, data: *mut c_void);
    1 hsa_ven_amd_pcs_create(agent: u64, method: u32, units: u32, interval: usize, latency: usize, buffer: usize, callback: *mut c_void, data: *mut c_void, session: *mut u64);
    2 hsa_ven_amd_pcs_create_from_id(id: u32, agent: u64, method: u32, units: u32, interval: usize, latency: usize, buffer: usize, callback: *mut c_void, data: *mut c_void, session: *mut u64);
    3 hsa_ven_amd_pcs_destroy(session: u64);
    4 hsa_ven_amd_pcs_start(session: u64);
    5 hsa_ven_amd_pcs_stop(session: u64);
    6 hsa_ven_amd_pcs_flush(session: u64);
}
