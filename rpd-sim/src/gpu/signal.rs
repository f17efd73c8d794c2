//! Signals: 64-bit values in memory that the host, the processors and the copy engines wait for.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::agents::{self, PoolKind};
use super::aql::{AmdSignal, signal_kind};
use super::machine::machine;
use super::memory::{self, Memory, Use};
use super::queue::Queue;
use super::wake;

/// Most signals that can exist at a time.
const CAPACITY: usize = 1 << 20;
const MAGIC: u64 = 0x7270_645f_7369_676e;
/// Time for which a waiting thread polls before it sleeps.
const SPIN: Duration = Duration::from_micros(50);
/// Interval at which a sleeping thread looks at a signal again: a kernel may change a signal's memory without waking
/// anyone.
const RECHECK: Duration = Duration::from_millis(2);

/// A signal in memory: the part that the hardware uses, followed by the part of the runtime.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct SignalBlock {
    /// Part of the signal that programs may look at.
    pub(crate) amd: AmdSignal,
    magic: AtomicU64,
    /// Mask of the device threads to wake on a change.
    watchers: AtomicU64,
    /// Number of host threads that sleep until the value changes.
    sleepers: AtomicU32,
    change: AtomicU32,
    /// Number of signals that have used this block.
    serial: AtomicU64,
}

/// A condition on a signal's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    /// The value is equal to the reference.
    Eq,
    /// The value is not equal to the reference.
    Ne,
    /// The value is less than the reference, as signed numbers.
    Lt,
    /// The value is greater than or equal to the reference, as signed numbers.
    Gte,
}

impl Condition {
    /// Condition of a `hsa_signal_condition_t`; `None` for other numbers.
    pub(crate) fn from_raw(raw: u32) -> Option<Self> {
        Some(match raw {
            0 => Self::Eq,
            1 => Self::Ne,
            2 => Self::Lt,
            3 => Self::Gte,
            _ => return None,
        })
    }

    /// Whether a value meets the condition.
    pub(crate) fn holds(self, value: i64, reference: i64) -> bool {
        match self {
            Self::Eq => value == reference,
            Self::Ne => value != reference,
            Self::Lt => value < reference,
            Self::Gte => value >= reference,
        }
    }
}

/// A live signal. Blocks are never unmapped, so a handle used too long reaches a wrong signal, never unmapped memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Signal(&'static SignalBlock);

impl Signal {
    /// The signal of a handle, if there is one.
    #[inline]
    pub(crate) fn from_handle(handle: u64) -> Option<Self> {
        machine().signals.find(handle)
    }

    /// HSA handle of the signal, the address of its `amd_signal_t`.
    #[inline]
    pub(crate) fn handle(self) -> u64 {
        std::ptr::from_ref(self.0) as u64
    }

    /// Number that differs between signals that used the same memory one after the other.
    pub(crate) fn serial(self) -> u64 {
        self.0.serial.load(Ordering::Acquire)
    }

    /// Address of the signal's 64-bit value.
    pub(crate) fn value_address(self) -> u64 {
        self.0.amd.value.as_ptr() as u64
    }

    /// Whether stores to the signal ring a queue's doorbell.
    #[inline]
    pub(crate) fn is_doorbell(self) -> bool {
        self.0.amd.kind.load(Ordering::Relaxed) == signal_kind::DOORBELL
    }

    /// Current value of the signal.
    #[inline]
    pub(crate) fn load(self) -> i64 {
        self.0.amd.value.load(Ordering::Acquire)
    }

    /// Stores a value and wakes the threads that wait for it; on a doorbell this submits packets.
    #[inline]
    pub(crate) fn store(self, value: i64) {
        if self.is_doorbell() {
            self.ring(value);
        } else {
            // A swap, not a store: it is a full fence, so that the watchers read below are no older than the value.
            self.0.amd.value.swap(value, Ordering::SeqCst);
            self.announce();
        }
    }

    /// Stores a value without waking the threads that wait for it.
    pub(crate) fn store_silently(self, value: i64) {
        if self.is_doorbell() {
            self.ring(value);
        } else {
            self.0.amd.value.store(value, Ordering::Release);
        }
    }

    #[cold]
    fn no_queue(self) {
        eprintln!("rpd-sim: a doorbell without a queue was rung");
    }

    fn ring(self, value: i64) {
        let queue = self.0.amd.queue_ptr.load(Ordering::Acquire);
        match Queue::from_address(queue) {
            Some(queue) => queue.ring(value),
            None => self.no_queue(),
        }
    }

    /// Changes the value atomically and wakes the threads that wait for it; returns the old value.
    #[inline]
    pub(crate) fn update(self, change: impl FnOnce(&std::sync::atomic::AtomicI64) -> i64) -> i64 {
        let old = change(&self.0.amd.value);
        self.announce();
        old
    }

    /// Subtracts one from the value, as processors do to completion signals.
    pub(crate) fn decrement(self) {
        self.update(|value| value.fetch_sub(1, Ordering::SeqCst));
    }

    /// Wakes the threads that wait for this signal.
    #[inline]
    pub(crate) fn announce(self) {
        // Waking costs a system call, which most changes of a signal do not need.
        if self.0.sleepers.load(Ordering::SeqCst) != 0 {
            self.0.change.fetch_add(1, Ordering::SeqCst);
            wake::futex_wake_all(&self.0.change);
        }
        let mut watchers = self.0.watchers.load(Ordering::SeqCst);
        while watchers != 0 {
            let index = watchers.trailing_zeros() as usize;
            machine().events[index].notify();
            watchers &= watchers - 1;
        }
    }

    /// Has changes of the signal wake the device thread with this number from now on.
    pub(crate) fn watch(self, thread: usize) {
        self.0.watchers.fetch_or(1 << thread, Ordering::SeqCst);
    }

    /// Undoes [`Signal::watch`].
    pub(crate) fn unwatch(self, thread: usize) {
        self.0.watchers.fetch_and(!(1 << thread), Ordering::SeqCst);
    }

    /// Records start and end of the work whose completion the signal reports, in device ticks.
    pub(crate) fn set_times(self, start: u64, end: u64) {
        self.0.amd.start_ts.store(start, Ordering::Relaxed);
        self.0.amd.end_ts.store(end, Ordering::Relaxed);
    }

    /// Recorded start and end of the work, in device ticks.
    pub(crate) fn times(self) -> (u64, u64) {
        (
            self.0.amd.start_ts.load(Ordering::Relaxed),
            self.0.amd.end_ts.load(Ordering::Relaxed),
        )
    }

    /// Waits until the condition holds or the time is over; returns the value read last.
    pub(crate) fn wait(
        self,
        condition: Condition,
        reference: i64,
        timeout: Option<Duration>,
        active: bool,
    ) -> i64 {
        let mut value = self.load();
        if condition.holds(value, reference) {
            return value;
        }
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        // A caller that asks for an active wait expects to be woken sooner than a sleeping thread is.
        let spin = if active { SPIN * 4 } else { SPIN };
        let spin = timeout.map_or(spin, |timeout| spin.min(timeout));
        let met = wake::spin_until(spin, || {
            value = self.load();
            condition.holds(value, reference)
        });
        if met {
            return value;
        }
        loop {
            // Counted before the value is read again: whoever changes it afterwards sees a sleeper.
            self.0.sleepers.fetch_add(1, Ordering::SeqCst);
            let change = self.0.change.load(Ordering::SeqCst);
            fence(Ordering::SeqCst);
            value = self.load();
            let now = Instant::now();
            let left = deadline.map(|deadline| deadline.saturating_duration_since(now));
            let done = condition.holds(value, reference) || left.is_some_and(|left| left.is_zero());
            if !done {
                // Kernels change signals without waking anyone.
                let nap = left.map_or(RECHECK, |left| left.min(RECHECK));
                wake::futex_wait(&self.0.change, change, Some(nap));
            }
            self.0.sleepers.fetch_sub(1, Ordering::SeqCst);
            if done {
                return value;
            }
        }
    }
}

/// One term of a wait for several signals.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Term {
    /// Signal whose value is compared.
    pub(crate) signal: Signal,
    /// Comparison that the value has to fulfil.
    pub(crate) condition: Condition,
    /// Value on the right of the comparison.
    pub(crate) reference: i64,
}

impl Term {
    /// Value of the signal if it meets the condition of the term.
    pub(crate) fn met(&self) -> Option<i64> {
        let value = self.signal.load();
        self.condition.holds(value, self.reference).then_some(value)
    }
}

/// Waits until any (or all) of the terms hold; the first index that does and its value; `None` when the time is over.
pub(crate) fn wait_many(
    terms: &[Term],
    all: bool,
    timeout: Option<Duration>,
) -> Option<(usize, i64)> {
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let look = || {
        let mut met = terms
            .iter()
            .enumerate()
            .filter_map(|(i, term)| term.met().map(|value| (i, value)));
        if all {
            let mut first = None;
            let count = met.inspect(|hit| first = first.or(Some(*hit))).count();
            first.filter(|_| count == terms.len())
        } else {
            met.next()
        }
    };
    let spin = timeout.map_or(SPIN, |timeout| SPIN.min(timeout));
    let mut hit = None;
    wake::spin_until(spin, || {
        hit = look();
        hit.is_some()
    });
    while hit.is_none() {
        // A thread can sleep on one word only: take the first that is not there yet, and look again soon.
        let pending = terms.iter().find(|term| term.met().is_none());
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return look();
        }
        if let Some(term) = pending {
            // Short, because other terms may change without waking this thread.
            let nap = Duration::from_micros(200);
            let nap = left.map_or(nap, |left| left.min(nap));
            term.signal
                .wait(term.condition, term.reference, Some(nap), false);
        }
        hit = look();
    }
    hit
}

/// All signals of the process.
pub(crate) struct SignalPool {
    base: usize,
    fresh: AtomicUsize,
    free: Mutex<Vec<usize>>,
}

impl SignalPool {
    /// Reserves the address range of all signals, which every agent can access.
    pub(crate) fn new(memory: &Memory) -> Self {
        let bytes = CAPACITY * size_of::<SignalBlock>();
        // The whole range is mapped at once, and takes no memory before signals are used.
        let base = memory::map(bytes).unwrap_or(0);
        if base != 0
            && let Some(pool) = agents::pool_of(0, PoolKind::SystemFine)
        {
            memory.adopt(pool, base, bytes, Use::Internal, u64::MAX);
        }
        Self {
            base,
            fresh: AtomicUsize::new(0),
            free: Mutex::default(),
        }
    }

    /// Makes a signal with a value.
    pub(crate) fn create(&self, value: i64, kind: i64, queue: u64) -> Option<Signal> {
        if self.base == 0 {
            return None;
        }
        let recycled = self
            .free
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        // Recycled blocks first, so that the range is touched no further than necessary.
        let index = match recycled {
            Some(index) => index,
            None => self
                .fresh
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
                    (next < CAPACITY).then_some(next + 1)
                })
                .ok()?,
        };
        let block = self.block(index);
        block.amd.value.store(value, Ordering::Relaxed);
        block.amd.start_ts.store(0, Ordering::Relaxed);
        block.amd.end_ts.store(0, Ordering::Relaxed);
        block.amd.queue_ptr.store(queue, Ordering::Relaxed);
        block.amd.kind.store(kind, Ordering::Relaxed);
        block.watchers.store(0, Ordering::Relaxed);
        // Last, because handles are valid from here on.
        block.magic.store(MAGIC, Ordering::Release);
        Some(Signal(block))
    }

    /// Ends a signal; its memory is used again later.
    pub(crate) fn destroy(&self, signal: Signal) -> bool {
        let ended = signal
            .0
            // Two threads may destroy the same signal; one of them is told that there is none.
            .magic
            .compare_exchange(MAGIC, 0, Ordering::AcqRel, Ordering::Relaxed);
        if ended.is_err() {
            return false;
        }
        signal
            .0
            .amd
            .kind
            .store(signal_kind::INVALID, Ordering::Relaxed);
        signal.0.serial.fetch_add(1, Ordering::AcqRel);
        // Threads that still sleep are woken and check again.
        signal.announce();
        let index = (signal.handle() as usize - self.base) / size_of::<SignalBlock>();
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.push(index);
        true
    }

    #[inline]
    fn find(&self, handle: u64) -> Option<Signal> {
        let offset = (handle as usize).wrapping_sub(self.base);
        let size = size_of::<SignalBlock>();
        // Handles come from programs: any number may be passed.
        if self.base == 0 || offset >= CAPACITY * size || !offset.is_multiple_of(size) {
            return None;
        }
        let block = self.block(offset / size);
        (block.magic.load(Ordering::Acquire) == MAGIC).then_some(Signal(block))
    }

    #[inline]
    fn block(&self, index: usize) -> &'static SignalBlock {
        let address = self.base + index * size_of::<SignalBlock>();
        // SAFETY: the index is within the mapping, which is aligned, zero-initialised (valid for the atomics
        // the block is made of) and never unmapped.
        unsafe { &*(address as *const SignalBlock) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make(value: i64) -> Signal {
        machine()
            .signals
            .create(value, signal_kind::USER, 0)
            .expect("a signal")
    }

    #[test]
    fn signals_are_found_by_valid_handles_only() {
        let signal = make(7);
        assert_eq!(
            Signal::from_handle(signal.handle()).map(Signal::load),
            Some(7)
        );
        assert!(Signal::from_handle(0).is_none());
        assert!(Signal::from_handle(signal.handle() + 64).is_none());
        assert!(machine().signals.destroy(signal));
        assert!(!machine().signals.destroy(signal));
    }

    #[test]
    fn a_waiter_on_a_signal_wakes_at_the_change() {
        let signal = make(1);
        let thread = std::thread::spawn(move || signal.wait(Condition::Lt, 1, None, false));
        std::thread::sleep(Duration::from_millis(4));
        signal.decrement();
        assert_eq!(thread.join().expect("waiter"), 0);
    }

    #[test]
    fn a_signal_wait_times_out_with_the_value() {
        let signal = make(5);
        let value = signal.wait(Condition::Eq, 0, Some(Duration::from_millis(1)), false);
        assert_eq!(value, 5);
    }

    #[test]
    fn wait_many_waits_for_any_or_all_signals() {
        let (a, b) = (make(1), make(0));
        let term = |signal| Term {
            signal,
            condition: Condition::Eq,
            reference: 0,
        };
        let terms = [term(a), term(b)];
        let short = Some(Duration::from_millis(1));
        assert_eq!(wait_many(&terms, false, short), Some((1, 0)));
        assert_eq!(wait_many(&terms, true, short), None);
        a.store(0);
        assert_eq!(wait_many(&terms, true, short), Some((0, 0)));
    }
}
