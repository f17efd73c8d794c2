//! The dispatch tables as runtimes register them: exact layouts, slot n for operation id n.

use core::{
    ffi::c_void,
    sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering},
};

use std::sync::OnceLock;

use super::imp;
use crate::gpu::thread;

/// A slot: the address of the function that is called now. Tools may store into it at any time.
pub(crate) type Slot = AtomicPtr<c_void>;

/// An address that may live in a static.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Code(pub(crate) *const ());

// SAFETY: it is the address of a function, which is immutable.
unsafe impl Sync for Code {}

const fn slots<const N: usize>(code: &[Code; N]) -> [Slot; N] {
    let mut out = [const { Slot::new(core::ptr::null_mut()) }; N];
    let mut n = 0;
    while n < N {
        out[n] = Slot::new(code[n].0 as *mut c_void);
        n += 1;
    }
    out
}

/// A table of HIP, ROCTx or RCCL.
#[repr(C)]
pub(crate) struct Flat<const N: usize> {
    size: u64,
    pub(crate) slots: [Slot; N],
}

impl<const N: usize> Flat<N> {
    const fn new(code: &[Code; N]) -> Self {
        Self {
            size: size_of::<Self>() as u64,
            slots: slots(code),
        }
    }
}

/// The version block of HSA tables.
#[repr(C)]
struct Version {
    major: u32,
    /// Size of the table in bytes.
    minor: u32,
    step: u32,
    reserved: u32,
}

/// A sub-table of HSA.
#[repr(C)]
pub(crate) struct Versioned<const N: usize> {
    version: Version,
    pub(crate) slots: [Slot; N],
}

impl<const N: usize> Versioned<N> {
    const fn new(major: u32, step: u32, code: &[Code; N]) -> Self {
        let minor = size_of::<Self>() as u32;
        Self {
            version: Version {
                major,
                minor,
                step,
                reserved: 0,
            },
            slots: slots(code),
        }
    }
}

/// The container of the HSA sub-tables.
#[repr(C)]
pub(crate) struct HsaTable {
    version: Version,
    core: &'static Versioned<125>,
    amd_ext: &'static Versioned<74>,
    finalizer: &'static Versioned<6>,
    image: &'static Versioned<14>,
    tools: &'static Versioned<6>,
    pc_sampling: &'static Versioned<7>,
}

/// The functions for images; the last one has no operation id.
const IMAGE: [Code; 14] = {
    let mut out = [imp::SAMPLER_CREATE_V2; 14];
    let mut n = 0;
    while n < imp::HSA_IMAGE_EXT_API.len() {
        out[n] = imp::HSA_IMAGE_EXT_API[n];
        n += 1;
    }
    out
};

/// The scratch events of the tools table as long as no tool has replaced them: nothing happens.
unsafe extern "C" fn tool_event(_event: *mut c_void) -> u32 {
    0
}

pub(crate) static HIP_RUNTIME_API: Flat<{ count::HIP_RUNTIME_API }> =
    Flat::new(&imp::HIP_RUNTIME_API);
pub(crate) static HIP_COMPILER_API: Flat<{ count::HIP_COMPILER_API }> =
    Flat::new(&imp::HIP_COMPILER_API);
pub(crate) static MARKER_CORE_API: Flat<{ count::MARKER_CORE_API }> =
    Flat::new(&imp::MARKER_CORE_API);
pub(crate) static MARKER_CONTROL_API: Flat<{ count::MARKER_CONTROL_API }> =
    Flat::new(&imp::MARKER_CONTROL_API);
pub(crate) static MARKER_NAME_API: Flat<{ count::MARKER_NAME_API }> =
    Flat::new(&imp::MARKER_NAME_API);
pub(crate) static RCCL_API: Flat<{ count::RCCL_API }> = Flat::new(&imp::RCCL_API);
pub(crate) static HSA_CORE_API: Versioned<{ count::HSA_CORE_API }> =
    Versioned::new(2, 0, &imp::HSA_CORE_API);
pub(crate) static HSA_AMD_EXT_API: Versioned<{ count::HSA_AMD_EXT_API }> =
    Versioned::new(2, 7, &imp::HSA_AMD_EXT_API);
pub(crate) static HSA_FINALIZE_EXT_API: Versioned<{ count::HSA_FINALIZE_EXT_API }> =
    Versioned::new(2, 0, &imp::HSA_FINALIZE_EXT_API);
pub(crate) static HSA_IMAGE_EXT_API: Versioned<14> = Versioned::new(2, 1, &IMAGE);
pub(crate) static HSA_TOOLS: Versioned<6> =
    Versioned::new(1, 0, &[Code(tool_event as *const ()); 6]);
pub(crate) static HSA_PC_SAMPLING: Versioned<7> =
    Versioned::new(1, 0, &super::old_names::PC_SAMPLING);
pub(crate) static HSA: HsaTable = HsaTable {
    version: Version {
        major: 3,
        minor: size_of::<HsaTable>() as u32,
        step: 1,
        reserved: 0,
    },
    core: &HSA_CORE_API,
    amd_ext: &HSA_AMD_EXT_API,
    finalizer: &HSA_FINALIZE_EXT_API,
    image: &HSA_IMAGE_EXT_API,
    tools: &HSA_TOOLS,
    pc_sampling: &HSA_PC_SAMPLING,
};

/// Slots of each table, as `rpd-data/data/operations.csv` has them.
pub(crate) mod count {
    include!(concat!(env!("OUT_DIR"), "/api_counts.rs"));
}

/// Functions that tracing wrappers call: the tables' entries before any replacement.
pub(crate) mod next {
    use super::{Slot, count, imp, slots};

    pub(crate) static HIP_RUNTIME_API: [Slot; count::HIP_RUNTIME_API] =
        slots(&imp::HIP_RUNTIME_API);
    pub(crate) static HIP_COMPILER_API: [Slot; count::HIP_COMPILER_API] =
        slots(&imp::HIP_COMPILER_API);
    pub(crate) static MARKER_CORE_API: [Slot; count::MARKER_CORE_API] =
        slots(&imp::MARKER_CORE_API);
    pub(crate) static MARKER_CONTROL_API: [Slot; count::MARKER_CONTROL_API] =
        slots(&imp::MARKER_CONTROL_API);
    pub(crate) static MARKER_NAME_API: [Slot; count::MARKER_NAME_API] =
        slots(&imp::MARKER_NAME_API);
    pub(crate) static RCCL_API: [Slot; count::RCCL_API] = slots(&imp::RCCL_API);
    pub(crate) static HSA_CORE_API: [Slot; count::HSA_CORE_API] = slots(&imp::HSA_CORE_API);
    pub(crate) static HSA_AMD_EXT_API: [Slot; count::HSA_AMD_EXT_API] =
        slots(&imp::HSA_AMD_EXT_API);
    pub(crate) static HSA_FINALIZE_EXT_API: [Slot; count::HSA_FINALIZE_EXT_API] =
        slots(&imp::HSA_FINALIZE_EXT_API);
    pub(crate) static HSA_IMAGE_EXT_API: [Slot; count::HSA_IMAGE_EXT_API] =
        slots(&imp::HSA_IMAGE_EXT_API);
}

/// A runtime that registers its tables on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Library {
    /// `hsa`.
    Hsa,
    /// `hip`.
    Hip,
    /// `hip_compiler`.
    HipCompiler,
    /// `roctx`.
    Roctx,
    /// `rccl`.
    Rccl,
}

/// The functions that the tables of each library are registered with.
static REGISTRAR: OnceLock<fn(Library)> = OnceLock::new();

/// Sets the function that the tables of each library are registered with at first use; only the first call counts.
pub(crate) fn offer_to(registrar: fn(Library)) {
    let _ = REGISTRAR.set(registrar);
}

/// Libraries that have been offered to the SDK, two bits for each: whether the offer has begun, and whether it is
/// complete.
static OFFERED: AtomicU32 = AtomicU32::new(0);
/// Thread that is offering now.
static OWNER: AtomicU64 = AtomicU64::new(0);
static LOCK: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// Offers the tables of a library to the SDK at its first use.
#[inline(always)]
pub(crate) fn ensure(library: Library) {
    if OFFERED.load(Ordering::Acquire) & (1 << library as u32) == 0 {
        offer(library);
    }
}

/// The slow path of [`ensure`]; other threads wait until the slots hold what they shall hold.
#[cold]
fn offer(library: Library) {
    let me = thread::current();
    let nested = OWNER.load(Ordering::Relaxed) == me;
    // A tool that calls a runtime while that runtime registers gets the plain functions.
    static IN_PROGRESS: AtomicU32 = AtomicU32::new(0);
    let bit = 1 << library as u32;
    if nested && IN_PROGRESS.load(Ordering::Relaxed) & bit != 0 {
        return;
    }
    let _guard = if nested {
        None
    } else {
        Some(LOCK.lock().unwrap_or_else(|e| e.into_inner()))
    };
    if OFFERED.load(Ordering::Acquire) & bit != 0 {
        return;
    }
    let before = OWNER.swap(me, Ordering::Relaxed);
    IN_PROGRESS.fetch_or(bit, Ordering::Relaxed);
    if let Some(registrar) = REGISTRAR.get() {
        registrar(library);
    }
    OFFERED.fetch_or(bit, Ordering::Release);
    IN_PROGRESS.fetch_and(!bit, Ordering::Relaxed);
    OWNER.store(before, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dispatch_tables_have_the_sizes_of_the_abi() {
        assert_eq!(size_of_val(&HSA), 64);
        assert_eq!(size_of_val(&HSA_CORE_API), 1016);
        assert_eq!(size_of_val(&HSA_AMD_EXT_API), 608);
        assert_eq!(size_of_val(&HSA_FINALIZE_EXT_API), 64);
        assert_eq!(size_of_val(&HSA_IMAGE_EXT_API), 128);
        assert_eq!(size_of_val(&HSA_TOOLS), 64);
        assert_eq!(size_of_val(&HSA_PC_SAMPLING), 72);
        assert_eq!(size_of_val(&MARKER_CORE_API), 56);
        assert_eq!(size_of_val(&MARKER_CONTROL_API), 24);
        assert_eq!(size_of_val(&MARKER_NAME_API), 40);
        assert_eq!(
            size_of_val(&HIP_RUNTIME_API),
            8 + 8 * count::HIP_RUNTIME_API
        );
    }

    #[test]
    fn every_slot_of_the_dispatch_tables_is_filled() {
        let all = HIP_RUNTIME_API.slots.iter().chain(&HIP_COMPILER_API.slots);
        for slot in all.chain(&HSA_CORE_API.slots).chain(&HSA_AMD_EXT_API.slots) {
            assert!(!slot.load(Ordering::Relaxed).is_null());
        }
    }
}
