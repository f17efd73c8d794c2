//! A pool of threads that help to execute dispatches.
//!
//! To start threads, and to wait until the host has given each of them a CPU, can take longer than a dispatch.
//! Threads therefore stay in the pool for some time after they have helped, and a dispatch does not wait for threads
//! that have not begun to help.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// Time without work after which a thread ends.
const STAY: Duration = Duration::from_secs(1);

/// A function that helpers call to take part in a dispatch.
type Work<'a> = &'a (dyn Fn() + Sync);

/// A dispatch that helpers can take part in.
struct SharedWork {
    id: u64,
    work: Work<'static>,
    /// Number of helpers that may still begin.
    wanted: usize,
    /// Number of helpers that are executing the function.
    helping: usize,
    /// Payload of the panic of a helper.
    panic: Option<Box<dyn Any + Send>>,
}

#[derive(Default)]
struct PoolState {
    offers: Vec<SharedWork>,
    next_id: u64,
    /// Number of threads in the pool.
    threads: usize,
}

impl PoolState {
    fn offer(&mut self, id: u64) -> Option<&mut SharedWork> {
        self.offers.iter_mut().find(|offer| offer.id == id)
    }

    /// Number of threads that must be started for each offer to get the helpers that it wants.
    fn missing(&self) -> usize {
        let used: usize = self.offers.iter().map(|o| o.wanted + o.helping).sum();
        used.saturating_sub(self.threads)
    }
}

/// The threads of this process.
#[derive(Default)]
struct Pool {
    state: Mutex<PoolState>,
    /// Signalled when there is an offer.
    offered: Condvar,
    /// Signalled when a helper has returned.
    left: Condvar,
}

static POOL: AtomicPtr<Pool> = AtomicPtr::new(ptr::null_mut());

/// The pool of this process, which is never dropped.
fn pool() -> &'static Pool {
    // SAFETY: only pointers to pools that are never dropped are stored.
    if let Some(pool) = unsafe { POOL.load(Ordering::Acquire).as_ref() } {
        return pool;
    }
    let fresh: &'static Pool = Box::leak(Box::default());
    let stored = ptr::from_ref(fresh).cast_mut();
    match POOL.compare_exchange(ptr::null_mut(), stored, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => fresh,
        // SAFETY: as above. The pool that was not stored has no threads.
        Err(winner) => unsafe { &*winner },
    }
}

/// Makes an empty pool; must be called in a forked child, which has no threads of its parent, and in which another
/// thread may have held the lock.
pub fn forget_helpers() {
    POOL.store(ptr::null_mut(), Ordering::Release);
}

impl Pool {
    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// Calls `own` on this thread, and `help` on up to `helpers` other threads at the same time. Returns when `own` and
/// each call of `help` that began have returned. No call of `help` begins after that.
pub(super) fn with<R>(helpers: usize, help: Work<'_>, own: impl FnOnce() -> R) -> R {
    if helpers == 0 {
        return own();
    }
    // SAFETY: helpers call the function only while the offer is there. `WithdrawOnDrop` removes the offer before this
    // function returns or unwinds, and waits for the helpers that have begun.
    let work = unsafe { std::mem::transmute::<Work<'_>, Work<'static>>(help) };
    let withdrawal = offer(pool(), work, helpers);
    let result = own();
    match withdrawal.withdraw() {
        Some(panic) => resume_unwind(panic),
        None => result,
    }
}

/// Makes an offer, and starts threads if the pool has too few.
fn offer(pool: &'static Pool, work: Work<'static>, helpers: usize) -> WithdrawOnDrop {
    let (id, missing) = {
        let mut state = pool.state();
        let id = state.next_id;
        state.next_id += 1;
        state.offers.push(SharedWork {
            id,
            work,
            wanted: helpers,
            helping: 0,
            panic: None,
        });
        let missing = state.missing();
        state.threads += missing;
        (id, missing)
    };
    let withdrawal = WithdrawOnDrop { pool, id };
    for _ in missing..helpers {
        pool.offered.notify_one();
    }
    for started in 0..missing {
        let builder = std::thread::Builder::new().name("rpd-sim-cu".into());
        // If threads cannot be started, fewer help.
        if builder.spawn(|| serve(pool)).is_err() {
            pool.state().threads -= missing - started;
            break;
        }
    }
    withdrawal
}

/// Withdraws an offer when dropped.
struct WithdrawOnDrop {
    pool: &'static Pool,
    id: u64,
}

impl WithdrawOnDrop {
    /// Withdraws the offer and waits for its helpers. Returns the payload of a helper's panic.
    fn withdraw(&self) -> Option<Box<dyn Any + Send>> {
        let mut state = self.pool.state();
        loop {
            let offer = state.offer(self.id)?;
            offer.wanted = 0;
            if offer.helping == 0 {
                break;
            }
            let left = &self.pool.left;
            state = left.wait(state).unwrap_or_else(|e| e.into_inner());
        }
        let at = state.offers.iter().position(|o| o.id == self.id)?;
        state.offers.swap_remove(at).panic
    }
}

impl Drop for WithdrawOnDrop {
    fn drop(&mut self) {
        self.withdraw();
    }
}

/// Takes part in offers until there was none for [`STAY`].
fn serve(pool: &Pool) {
    let mut state = pool.state();
    loop {
        let Some(offer) = state.offers.iter_mut().find(|offer| offer.wanted != 0) else {
            let (woken, waited) = pool
                .offered
                .wait_timeout(state, STAY)
                .unwrap_or_else(|e| e.into_inner());
            state = woken;
            if waited.timed_out() && state.offers.iter().all(|offer| offer.wanted == 0) {
                state.threads -= 1;
                return;
            }
            continue;
        };
        offer.wanted -= 1;
        offer.helping += 1;
        let (id, work) = (offer.id, offer.work);
        drop(state);
        let result = catch_unwind(AssertUnwindSafe(work));
        state = pool.state();
        if let Some(offer) = state.offer(id) {
            offer.helping -= 1;
            if let Err(panic) = result {
                offer.panic = Some(panic);
            }
        }
        pool.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn helper_threads_take_part_and_are_waited_for() {
        let (calls, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let meeting = Barrier::new(4);
        let help = || {
            calls.fetch_add(1, Ordering::SeqCst);
            meeting.wait();
            std::thread::sleep(Duration::from_millis(20));
            ended.fetch_add(1, Ordering::SeqCst);
        };
        for round in 1..=3 {
            let own = with(3, &help, || {
                meeting.wait();
                round
            });
            assert_eq!(own, round);
            assert_eq!(calls.load(Ordering::SeqCst), 3 * round);
            assert_eq!(ended.load(Ordering::SeqCst), 3 * round);
        }
    }

    #[test]
    fn helper_threads_begin_no_call_after_the_work_is_complete() {
        let calls = AtomicUsize::new(0);
        for _ in 0..1000 {
            let mut after = 0;
            with(
                2,
                &|| {
                    calls.fetch_add(1, Ordering::SeqCst);
                },
                || after = calls.load(Ordering::SeqCst),
            );
            assert!(calls.load(Ordering::SeqCst) - after <= 2);
        }
        let before = calls.load(Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(calls.load(Ordering::SeqCst), before);
    }

    #[test]
    fn panics_of_helper_threads_reach_the_caller() {
        let began = Barrier::new(2);
        let result = catch_unwind(|| {
            with(
                1,
                &|| {
                    began.wait();
                    resume_unwind(Box::new("no"));
                },
                || {
                    began.wait();
                },
            );
        });
        let panic = result.err().and_then(|panic| panic.downcast::<&str>().ok());
        assert_eq!(panic.as_deref(), Some(&"no"));
    }
}
