//! Mutual exclusion of kernels on a GPU: all may run at the same time, except that a counted dispatch runs alone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Interval at which a waiting processor checks whether its queue was stopped.
const RECHECK: Duration = Duration::from_millis(1);

/// The gate that all kernels of one GPU pass before they run.
#[derive(Default)]
pub(crate) struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    running: usize,
    alone: bool,
    /// Number of dispatches that wait to run alone. Dispatches that come later wait for these, so that they are not
    /// starved.
    wanted: usize,
    /// Number of evictions of the GPU's queues that have not ended.
    evictions: usize,
}

/// Keeps kernels from starting until it is dropped.
pub(crate) struct Eviction<'g>(&'g Gate);

impl Drop for Eviction<'_> {
    fn drop(&mut self) {
        self.0.lock().evictions -= 1;
        self.0.changed.notify_all();
    }
}

/// A kernel's right to run, released when dropped.
pub(crate) struct Pass<'g> {
    gate: &'g Gate,
    alone: bool,
}

impl Gate {
    /// Waits until a kernel may run, together with others or alone. `None` if `stop` became true before that.
    pub(crate) fn enter(&self, alone: bool, stop: &AtomicBool) -> Option<Pass<'_>> {
        let mut state = self.lock();
        // Counted before the wait: kernels that come later stand back, so that this one is not starved.
        if alone {
            state.wanted += 1;
        }
        let closed = |state: &GateState| {
            state.evictions != 0
                || state.alone
                || if alone {
                    state.running != 0
                } else {
                    state.wanted != 0
                }
        };
        let mut stopped = false;
        while closed(&state) {
            // The queue may be stopped while its kernel waits; then it will never run.
            stopped = stop.load(Ordering::Relaxed);
            if stopped {
                break;
            }
            let waited = self.changed.wait_timeout(state, RECHECK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if alone {
            state.wanted -= 1;
        }
        // Kernels that stood back for this one may go on.
        if stopped {
            drop(state);
            self.changed.notify_all();
            return None;
        }
        state.alone = alone;
        state.running += 1;
        Some(Pass { gate: self, alone })
    }

    /// Evicts the queues of the GPU: no kernel starts until the result is dropped. Those that run go on, as one that waits for the
    /// host must be able to.
    pub(crate) fn evict(&self) -> Eviction<'_> {
        self.lock().evictions += 1;
        Eviction(self)
    }

    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.lock();
        state.running -= 1;
        state.alone = false;
        // Nobody waits for the end of a kernel that ran together with others, except kernels that want to run alone.
        let awaited = self.alone || state.wanted != 0;
        drop(state);
        if awaited {
            self.gate.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn the_gate_admits_an_exclusive_dispatch_alone() {
        let gate = Gate::default();
        let stop = AtomicBool::new(false);
        let inside = AtomicUsize::new(0);
        let most = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for n in 0..4 {
                let (gate, stop, inside, most) = (&gate, &stop, &inside, &most);
                scope.spawn(move || {
                    for turn in 0..200 {
                        let alone = (turn + n) % 3 == 0;
                        let pass = gate.enter(alone, stop);
                        let count = inside.fetch_add(1, Ordering::SeqCst) + 1;
                        most.fetch_max(count, Ordering::SeqCst);
                        if alone {
                            std::thread::yield_now();
                            assert_eq!((count, inside.load(Ordering::SeqCst)), (1, 1));
                        }
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(pass);
                    }
                });
            }
        });
        assert_eq!(gate.lock().running, 0);
    }

    #[test]
    fn the_gate_returns_for_a_stopped_queue() {
        let gate = Gate::default();
        let stop = AtomicBool::new(false);
        let first = gate.enter(false, &stop);
        let stopped = AtomicBool::new(true);
        assert!(gate.enter(true, &stopped).is_none());
        // Dispatches that gave up are not waited for.
        assert!(gate.enter(false, &stop).is_some());
        drop(first);
    }
}
