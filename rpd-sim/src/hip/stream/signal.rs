//! Completion signals, reused through a pool.

use std::sync::{Arc, Mutex, PoisonError};

use crate::hip::error::HipResult;
use crate::hip::hsa;

/// A signal in use: 1 while the operation is pending, below 1 when it has ended.
#[derive(Debug)]
pub(crate) struct Signal {
    handle: u64,
    pool: Arc<SignalPool>,
}

impl Signal {
    pub(crate) fn handle(&self) -> u64 {
        self.handle
    }

    pub(crate) fn is_done(&self) -> bool {
        hsa::signal_load(self.handle) < 1
    }

    /// Blocks until the operation has ended.
    pub(crate) fn wait(&self) {
        while hsa::signal_wait(self.handle, u64::MAX, false) >= 1 {}
    }

    /// Waits for at most `ticks` of the system clock; returns whether the operation has ended.
    pub(crate) fn wait_for(&self, ticks: u64) -> bool {
        hsa::signal_wait(self.handle, ticks, false) < 1
    }

    /// Marks an operation that the host carries out as ended.
    pub(crate) fn complete(&self) {
        hsa::signal_store(self.handle, 0);
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        self.pool.lock().push(self.handle);
    }
}

/// HSA signals that are not in use and can be used again.
#[derive(Debug, Default)]
pub(crate) struct SignalPool {
    free: Mutex<Vec<u64>>,
}

impl SignalPool {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<u64>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates `count` signals for later use.
    pub(crate) fn grow(&self, count: usize) -> HipResult {
        for _ in 0..count {
            let signal = hsa::signal_create(1)?;
            self.lock().push(signal);
        }
        Ok(())
    }

    /// A pending signal. Nobody may wait on it when its last reference is dropped.
    pub(crate) fn take(self: &Arc<Self>) -> HipResult<Arc<Signal>> {
        let recycled = self.lock().pop();
        let handle = match recycled {
            Some(handle) => {
                hsa::signal_reset(handle, 1);
                handle
            }
            None => hsa::signal_create(1)?,
        };
        Ok(Arc::new(Signal {
            handle,
            pool: Arc::clone(self),
        }))
    }
}

impl Drop for SignalPool {
    fn drop(&mut self) {
        let signals = std::mem::take(&mut *self.lock());
        for signal in signals {
            hsa::signal_destroy(signal);
        }
    }
}
