//! Completion signals of the program that show when a dispatch or a copy is complete.
//!
//! A dispatch whose packet has a completion signal keeps it: order, timing and the value that the program waits for are
//! untouched. Its times are in the signal until the program uses that for something else, so they are read before
//! any of that happens: when a packet or copy with the signal is submitted, when the program changes its value, and when
//! it is destroyed.
//!
//! Only a signal with value 1 that no other work refers to is borrowed: one that counts several pieces of work has the times
//! of the last of them only.

#![expect(
    clippy::disallowed_types,
    reason = "a forked child opens all of these locks in `forget`"
)]

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, Ordering};

use rpd_spool::writer::ForkLock;

use super::hooks::{Hook, hook};
use super::hsa;
use super::pending::Node;
use crate::recording::guard::Service;

static SERVICE: Service = Service::new("completion signals of the program");

const SHARDS: usize = 64;
/// Counters by which a signal is known not to be borrowed.
const FILTERS: usize = 1024;

/// A part of the table of borrowed signals, in its own cache line: threads that submit do not share one.
#[repr(align(64))]
struct Shard {
    lock: ForkLock,
    entries: UnsafeCell<Vec<(u64, *const Node)>>,
}

// SAFETY: the entries are only touched with the lock held.
unsafe impl Sync for Shard {}

static TABLE: [Shard; SHARDS] = [const {
    Shard {
        lock: ForkLock::new(),
        entries: UnsafeCell::new(Vec::new()),
    }
}; SHARDS];
static BORROWED: [AtomicU32; FILTERS] = [const { AtomicU32::new(0) }; FILTERS];

/// Signals lie at multiples of 64 bytes.
fn hash(signal: u64) -> usize {
    ((signal >> 6).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize
}

fn filter(signal: u64) -> &'static AtomicU32 {
    &BORROWED[hash(signal) % FILTERS]
}

/// Offset of `start_ts` and `end_ts` in `amd_signal_t`.
const TIMES: usize = 32;

fn shard(signal: u64) -> &'static Shard {
    &TABLE[hash(signal) % SHARDS]
}

/// Lets `act` work on the entries that a signal's entry is among. `None` when a signal handler of the target
/// interrupted a thread that does that.
fn with<T>(signal: u64, act: impl FnOnce(&mut Vec<(u64, *const Node)>) -> T) -> Option<T> {
    let shard = shard(signal);
    let _guard = shard.lock.lock()?;
    // SAFETY: the lock is held.
    Some(act(unsafe { &mut *shard.entries.get() }))
}

/// Gives the entry at `index` back: its work is complete, or will never be known to be.
fn remove(entries: &mut Vec<(u64, *const Node)>, index: usize, complete: bool) {
    let (signal, node) = entries.swap_remove(index);
    // SAFETY: a node that has an entry is not released.
    unsafe { (*node).end(complete) };
    filter(signal).fetch_sub(1, Ordering::Release);
}

/// Borrows the completion signal of work that is about to be submitted for `node`. False when it cannot be borrowed, also
/// because another thread works on the signals that it is among: a launch does not wait for it.
pub(super) fn borrow(signal: u64, node: &Node) -> bool {
    let shard = shard(signal);
    let Some(_guard) = shard.lock.try_lock() else {
        return false;
    };
    // SAFETY: the lock is held.
    let entries = unsafe { &mut *shard.entries.get() };
    if let Some(index) = entries.iter().position(|entry| entry.0 == signal) {
        let Some(complete) = outcome(entries[index]) else {
            return false;
        };
        remove(entries, index, complete);
    }
    if hsa::signal_load(signal) != 1 {
        return false;
    }
    // Times of earlier work are no longer needed: the packet processor is about to replace them.
    // SAFETY: the handle of a signal is the address of its `amd_signal_t`, which the program keeps while
    // work refers to it.
    unsafe {
        let times = (signal as usize + TIMES) as *mut u64;
        times.write_volatile(0);
        times.add(1).write_volatile(0);
    }
    entries.push((signal, node));
    filter(signal).fetch_add(1, Ordering::Release);
    true
}

/// Whether the times of an entry's work, which is over, are in its node; `None` while it is not over.
fn outcome((signal, node): (u64, *const Node)) -> Option<bool> {
    // SAFETY: a node that has an entry is not released.
    (hsa::signal_load(signal) < 1).then(|| unsafe { (*node).read_times(signal) })
}

/// Whether the work of `node`, which has borrowed `signal`, is over; the signal is not borrowed any more then. Called
/// by the thread that polls.
pub(super) fn poll(signal: u64, node: &Node) -> bool {
    if node.has_ended() {
        return true;
    }
    with(signal, |entries| {
        let found = entries.iter().position(|entry| std::ptr::eq(entry.1, node));
        let Some(index) = found else {
            return node.has_ended();
        };
        let outcome = outcome(entries[index]);
        if let Some(complete) = outcome {
            remove(entries, index, complete);
        }
        outcome.is_some()
    })
    .unwrap_or(false)
}

/// Ends the borrowing of `signal`, which the program, or work that it submits, is about to change.
#[inline]
pub(super) fn before_change(signal: u64) {
    if filter(signal).load(Ordering::Acquire) != 0 {
        read_times(signal, false);
    }
}

/// Ends the borrowing of `signal`, which the program is about to destroy.
#[inline]
pub(super) fn before_destroy(signal: u64) {
    if filter(signal).load(Ordering::Acquire) != 0 {
        read_times(signal, true);
    }
}

#[cold]
fn read_times(signal: u64, last_chance: bool) {
    let read = |entries: &mut Vec<_>| {
        if let Some(index) = entries
            .iter()
            .position(|entry: &(u64, _)| entry.0 == signal)
        {
            let outcome = outcome(entries[index]);
            if outcome.is_some() || last_chance {
                remove(entries, index, outcome == Some(true));
            }
        }
    };
    SERVICE.run(|| with(signal, read));
}

/// Ends the borrowing of all signals: what is still under way is not recorded.
pub(super) fn give_up() {
    for shard in &TABLE {
        let Some(_guard) = shard.lock.lock() else {
            continue;
        };
        // SAFETY: the lock is held.
        let entries = unsafe { &mut *shard.entries.get() };
        while !entries.is_empty() {
            remove(entries, 0, false);
        }
    }
}

/// Forgets all borrowed signals, in a forked child: the work is its parent's.
pub(super) fn forget() {
    for shard in &TABLE {
        shard.lock.reset();
        // SAFETY: the child has one thread. The vector's memory is left alone: the parent may have been changing it.
        unsafe { shard.entries.get().write(Vec::new()) };
    }
    for filter in &BORROWED {
        filter.store(0, Ordering::Relaxed);
    }
}

/// Calls of the program that change signals.
macro_rules! changes {
    ($($hook:ident $name:ident ($($a:ident: $t:ty),*) -> $r:ty;)*) => {
        $(hook! {
            $hook: HSA_CORE_API::$name,
            fn $name(signal: u64 $(, $a: $t)*) -> $r,
            |next| {
                before_change(signal);
                next(signal $(, $a)*)
            }
        })*

        /// Hooks for the tables of HSA.
        pub(super) static HOOKS: &[&Hook] = &[&DESTROY, $(&$hook),*];
    };
}

changes! {
    STORE3 hsa_signal_silent_store_relaxed(value: i64) -> ();
    STORE4 hsa_signal_silent_store_screlease(value: i64) -> ();
    EXCHANGE1 hsa_signal_exchange_relaxed(value: i64) -> i64;
    EXCHANGE2 hsa_signal_exchange_scacquire(value: i64) -> i64;
    EXCHANGE3 hsa_signal_exchange_screlease(value: i64) -> i64;
    EXCHANGE4 hsa_signal_exchange_scacq_screl(value: i64) -> i64;
    CAS1 hsa_signal_cas_relaxed(expected: i64, value: i64) -> i64;
    CAS2 hsa_signal_cas_scacquire(expected: i64, value: i64) -> i64;
    CAS3 hsa_signal_cas_screlease(expected: i64, value: i64) -> i64;
    CAS4 hsa_signal_cas_scacq_screl(expected: i64, value: i64) -> i64;
    ADD1 hsa_signal_add_relaxed(value: i64) -> ();
    ADD2 hsa_signal_add_scacquire(value: i64) -> ();
    ADD3 hsa_signal_add_screlease(value: i64) -> ();
    ADD4 hsa_signal_add_scacq_screl(value: i64) -> ();
    OR1 hsa_signal_or_relaxed(value: i64) -> ();
    OR2 hsa_signal_or_scacquire(value: i64) -> ();
    OR3 hsa_signal_or_screlease(value: i64) -> ();
    OR4 hsa_signal_or_scacq_screl(value: i64) -> ();
}

hook! {
    DESTROY: HSA_CORE_API::hsa_signal_destroy,
    fn signal_destroy(signal: u64) -> u32,
    |next| {
        before_destroy(signal);
        next(signal)
    }
}
