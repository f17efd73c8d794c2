//! The dispatch tables of runtimes: arrays of functions that a runtime calls its own implementation through.
//!
//! Slot n of a table is operation n of its kind. What each function is (its slot, name, parameters and result) is generated
//! from the tables in `rpd-data/data`; a module that needs a piece of code for every function defines the macros `api_fn` and
//! `api_domain`, has [`types`] in scope and includes `functions.rs` from the build's output directory
//! (`rpd_data::macro_calls` describes it).

pub(crate) mod types;

use std::ffi::c_void;
use std::sync::atomic::AtomicPtr;

/// A slot: the function that is called now. Other tools may store into it at any time.
pub(crate) type Slot = AtomicPtr<c_void>;

/// The address of a function, which may be kept in a static.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Code(pub(crate) *const c_void);

// SAFETY: it is the address of a function, which is immutable.
unsafe impl Sync for Code {}

/// Bytes before the slots of a HIP, ROCTx, RCCL, rocDecode or rocJPEG table: its size.
const FLAT_HEAD: usize = 8;
/// Bytes before the slots of an HSA table: its version, whose second word is the size.
const VERSIONED_HEAD: usize = 16;

/// The slots of a table, by the size that the runtime states.
///
/// # Safety
///
/// `table` is null or begins with its size in bytes, and lives until the process ends.
pub(crate) unsafe fn flat(table: *mut c_void) -> &'static [Slot] {
    if table.is_null() {
        return &[];
    }
    // SAFETY: as this function demands.
    unsafe {
        let size = usize::try_from(table.cast::<u64>().read()).unwrap_or(0);
        slots(table, FLAT_HEAD, size)
    }
}

/// As [`flat`], for a table of HSA.
///
/// # Safety
///
/// `table` is null or begins with an HSA version block, and lives until the process ends.
pub(crate) unsafe fn versioned(table: *mut c_void) -> &'static [Slot] {
    if table.is_null() {
        return &[];
    }
    // SAFETY: as this function demands.
    unsafe {
        let size = table.cast::<u32>().add(1).read() as usize;
        slots(table, VERSIONED_HEAD, size)
    }
}

/// # Safety
///
/// The table has `size` bytes, `head` of them before the slots.
unsafe fn slots(table: *mut c_void, head: usize, size: usize) -> &'static [Slot] {
    let count = size.saturating_sub(head) / size_of::<Slot>();
    // SAFETY: as this function demands; a slot is an aligned pointer.
    unsafe { std::slice::from_raw_parts(table.cast::<u8>().add(head).cast::<Slot>(), count) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_slots_are_counted_by_the_stated_size() {
        let mut flat_table = [24u64, 7, 8, 9];
        // SAFETY: the table has the size that it states.
        let slots = unsafe { flat(std::ptr::from_mut(&mut flat_table).cast()) };
        assert_eq!(slots.len(), 2);
        // Major version 2, 32 bytes.
        let mut hsa_table = [2u64 | 32 << 32, 0, 5, 6];
        // SAFETY: as above.
        let slots = unsafe { versioned(std::ptr::from_mut(&mut hsa_table).cast()) };
        assert_eq!(slots.len(), 2);
        // SAFETY: null is allowed.
        assert!(unsafe { flat(std::ptr::null_mut()) }.is_empty());
    }
}
