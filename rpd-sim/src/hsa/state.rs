//! Objects that have handles, made anew in a forked child.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::executable::Executable;
use super::image_objects::Images;
use super::reader::Reader;
use super::shared::SharedMemory;
use super::symbol::Symbol;
use super::vmem::Vmem;
use crate::gpu::machine;

/// The runtime's objects by handle.
pub(super) struct RuntimeState {
    generation: u32,
    next: AtomicU64,
    pub(super) readers: Mutex<HashMap<u64, Arc<Reader>>>,
    pub(super) executables: Mutex<BTreeMap<u64, Arc<Executable>>>,
    pub(super) symbols: Mutex<HashMap<u64, Arc<Symbol>>>,
    pub(super) groups: Mutex<HashMap<u64, Vec<u64>>>,
    pub(super) vmem: Mutex<Vmem>,
    pub(super) shared: Mutex<SharedMemory>,
    pub(super) images: Images,
}

impl RuntimeState {
    /// Returns an unused handle.
    pub(super) fn handle(&self) -> u64 {
        self.next.fetch_add(16, Ordering::Relaxed)
    }
}

static STATE: AtomicPtr<RuntimeState> = AtomicPtr::new(std::ptr::null_mut());

/// The runtime's state in this process.
pub(super) fn state() -> &'static RuntimeState {
    let generation = machine::generation();
    loop {
        let current = STATE.load(Ordering::Acquire);
        // SAFETY: states are never dropped once published.
        if let Some(state) = unsafe { current.as_ref() }
            && state.generation == generation
        {
            return state;
        }
        let fresh = Box::into_raw(Box::new(RuntimeState {
            generation,
            next: AtomicU64::new(0x1000),
            readers: Mutex::default(),
            executables: Mutex::default(),
            symbols: Mutex::default(),
            groups: Mutex::default(),
            vmem: Mutex::default(),
            shared: Mutex::default(),
            images: Images::default(),
        }));
        let swapped = STATE.compare_exchange(current, fresh, Ordering::AcqRel, Ordering::Acquire);
        if swapped.is_err() {
            // SAFETY: `fresh` was not published.
            drop(unsafe { Box::from_raw(fresh) });
        }
    }
}

/// Locks a mutex, also after a panic of a thread that held the lock.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
