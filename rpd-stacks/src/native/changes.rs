//! Whether objects were loaded or unloaded since the last capture.
//!
//! glibc counts loads in a variable of its loader and passes the count to callbacks of `dl_iterate_phdr`, which takes the
//! loader's lock. The same two variables can be read without the lock: `_rtld_global` is exported, starts with the list
//! of the first namespace (a pointer, then the number of objects in it), and contains the count of loads, which is found
//! once by its value and its place behind the loader's locks. Where it is not found (another C library),
//! `dl_iterate_phdr` is called.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Attempts to find the counters.
const ATTEMPTS: u32 = 100;

/// Loads so far, and loads minus objects that are loaded now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counters {
    loads: u64,
    unloads: u64,
}

/// Watches the loader's counters.
pub(crate) struct Changes {
    /// The loader's count of loads; null if it is not known where it is.
    loads: *const AtomicU64,
    /// The number of objects in the first namespace.
    objects: *const AtomicU32,
    seen_loads: AtomicU64,
    seen_unloads: AtomicU64,
    /// Changes when an object may have been unloaded.
    generation: AtomicU32,
}

// SAFETY: the pointers are to atomically read variables of the loader, which is never unloaded.
unsafe impl Send for Changes {}
// SAFETY: as above.
unsafe impl Sync for Changes {}

impl Changes {
    /// Starts to watch for loaded and unloaded objects: finds the loader's counters.
    pub(crate) fn watch() -> Changes {
        // An attempt fails when another thread loads an object meanwhile.
        let found = (0..ATTEMPTS).find_map(|_| find(iterate()));
        let (loads, objects) = found.unwrap_or((std::ptr::null(), std::ptr::null()));
        let changes = Changes {
            loads,
            objects,
            seen_loads: AtomicU64::new(0),
            seen_unloads: AtomicU64::new(0),
            generation: AtomicU32::new(1),
        };
        let counters = changes.read();
        changes.seen_loads.store(counters.loads, Ordering::Relaxed);
        changes
            .seen_unloads
            .store(counters.unloads, Ordering::Relaxed);
        changes
    }

    #[inline(always)]
    fn read(&self) -> Counters {
        if self.loads.is_null() {
            return iterate();
        }
        // SAFETY: both point into `_rtld_global`.
        let (loads, objects) = unsafe {
            (
                (*self.loads).load(Ordering::Relaxed),
                (*self.objects).load(Ordering::Relaxed),
            )
        };
        Counters {
            loads,
            unloads: loads.wrapping_sub(u64::from(objects)),
        }
    }

    /// The generation now. If an object may have been unloaded since the last call on any thread, `suspect` is called
    /// first.
    #[inline(always)]
    pub(crate) fn poll(&self, suspect: impl FnOnce()) -> u32 {
        let now = self.read();
        if now.loads != self.seen_loads.load(Ordering::Acquire)
            || now.unloads != self.seen_unloads.load(Ordering::Acquire)
        {
            self.changed(now, suspect);
        }
        self.generation.load(Ordering::Acquire)
    }

    #[cold]
    fn changed(&self, now: Counters, suspect: impl FnOnce()) {
        if now.unloads != self.seen_unloads.load(Ordering::Acquire) {
            suspect();
            self.generation.fetch_add(1, Ordering::AcqRel);
        }
        self.seen_unloads.store(now.unloads, Ordering::Release);
        self.seen_loads.store(now.loads, Ordering::Release);
    }

    /// A number that changes when objects are loaded or unloaded, as of the last `poll`.
    pub(crate) fn state(&self) -> u64 {
        let unloads = self.seen_unloads.load(Ordering::Relaxed);
        self.loads() << 32 | unloads & 0xffff_ffff
    }

    /// Address of the loader's description of the program, with which its list of objects begins; 0 if it is not known.
    pub(crate) fn first_object(&self) -> u64 {
        if self.objects.is_null() {
            return 0;
        }
        // SAFETY: the number of objects follows the pointer to the first, inside `_rtld_global`.
        unsafe { (*self.objects.cast::<AtomicU64>().sub(1)).load(Ordering::Relaxed) }
    }

    /// The count of loads as of the last `poll`.
    #[inline(always)]
    pub(crate) fn loads(&self) -> u64 {
        self.seen_loads.load(Ordering::Relaxed)
    }
}

/// The counters that `dl_iterate_phdr` passes.
fn iterate() -> Counters {
    unsafe extern "C" fn first(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        data: *mut c_void,
    ) -> c_int {
        // SAFETY: both pointers are valid during the call.
        let (info, counters) = unsafe { (&*info, &mut *data.cast::<Counters>()) };
        *counters = Counters {
            loads: info.dlpi_adds,
            unloads: info.dlpi_subs,
        };
        1
    }
    let mut counters = Counters {
        loads: 0,
        unloads: 0,
    };
    // SAFETY: `first` gets the pointer to `counters`, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut counters).cast()) };
    counters
}

/// Addresses of the loader's counters, if they are certain.
fn find(counters: Counters) -> Option<(*const AtomicU64, *const AtomicU32)> {
    const SYMBOL_ENTRY: c_int = 1;
    unsafe extern "C" {
        fn dladdr1(
            address: *const c_void,
            info: *mut libc::Dl_info,
            extra: *mut *mut c_void,
            flags: c_int,
        ) -> c_int;
    }
    // SAFETY: a lookup by name.
    let global = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_rtld_global".as_ptr()) };
    if global.is_null() {
        return None;
    }
    // SAFETY: an all-zero Dl_info is valid.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    let mut symbol = std::ptr::null_mut();
    // SAFETY: both results are written by the call.
    let found = unsafe { dladdr1(global, &mut info, &mut symbol, SYMBOL_ENTRY) };
    if found == 0 || symbol.is_null() || info.dli_saddr != global {
        return None;
    }
    // SAFETY: the loader returned its entry of the symbol table.
    let size = unsafe { (*symbol.cast::<libc::Elf64_Sym>()).st_size } as usize;
    if size < 1024 {
        return None;
    }
    let objects = global.wrapping_byte_add(8) as *const AtomicU32;
    // SAFETY: inside the symbol, which is at least that large.
    let loaded = unsafe { (*objects).load(Ordering::Relaxed) };
    if counters.loads.wrapping_sub(counters.unloads) != u64::from(loaded) {
        return None;
    }
    let word = |index: usize| {
        let place = global.wrapping_byte_add(index * 8) as *const AtomicU64;
        // SAFETY: inside the symbol, aligned.
        unsafe { (*place).load(Ordering::Relaxed) }
    };
    let place = find_count(counters.loads, size / 8, word)?;
    let place = global.wrapping_byte_add(place * 8) as *const AtomicU64;
    (iterate() == counters).then_some((place, objects))
}

/// The index of the loader's word, among `len`, that is the count of loads, whose value is `count`: the only word with
/// this value, or the only one of several that stands behind a lock, as the count does.
fn find_count(count: u64, len: usize, word: impl Fn(usize) -> u64) -> Option<usize> {
    // The first words are those of the array of namespaces, which has small numbers in it.
    let equal = || (16..len).filter(|&index| word(index) == count);
    // The end of a recursive mutex: its kind (beside counters of spins), and two null pointers.
    let locked = |&index: &usize| {
        word(index - 3) as u32 == libc::PTHREAD_MUTEX_RECURSIVE as u32
            && word(index - 2) == 0
            && word(index - 1) == 0
    };
    only(equal()).or_else(|| only(equal().filter(locked)))
}

/// The item, if it is the only one.
fn only(mut items: impl Iterator<Item = usize>) -> Option<usize> {
    let first = items.next()?;
    items.next().is_none().then_some(first)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn loader_counters_are_read_without_the_lock() {
        let changes = Changes::watch();
        assert!(!changes.loads.is_null());
        // Other tests may load objects at this moment; one of several attempts is undisturbed.
        assert!((0..100).any(|_| changes.read() == iterate()));
    }
    #[test]
    fn find_count_takes_the_number_behind_a_lock_where_two_are_equal() {
        let mut words = [0_u64; 64];
        words[33] = 1;
        words[36] = 9;
        let find = |words: &[u64]| find_count(9, words.len(), |index| words[index]);
        assert_eq!(find(&words), Some(36));
        words[50] = 9;
        assert_eq!(find(&words), Some(36));
        words[47] = 1;
        assert_eq!(find(&words), None, "two places are possible");
        assert_eq!(find_count(7, words.len(), |index| words[index]), None);
    }
}
