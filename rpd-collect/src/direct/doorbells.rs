//! Kernel dispatches of a process that is attached to: packets that are looked at in the rings of its queues.
//!
//! Queues that exist already cannot be made to pass their packets on, and one that does so does it for the rest of its life.
//! Here the call that rings a queue's doorbell looks at the packets that the packet processor is told of by it, and has not
//! seen before: a dispatch without completion signal is given one of a pool, in its packet, and one that has a signal keeps
//! it ([`super::borrowed`]). Where that signal serves other work as well the dispatch is not recorded, and counted. Once the
//! hooks are out of the tables a queue is as it was.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::dispatch::{self, KERNEL_DISPATCH, Packet, Queue, SIGNAL};
use super::hooks::{Hook, hook};
use super::hsa::runtime;
use super::pending::Work;
use super::{agents, calls, poller, submissions};
use crate::recording::device_work;
use crate::recording::guard::Service;

static SERVICE: Service = Service::new("kernel dispatches of a process that is attached to");

/// Dispatches of this recording that could not be followed.
static NOT_FOLLOWED: AtomicU64 = AtomicU64::new(0);

/// Bytes of a packet.
const PACKET: u64 = size_of::<Packet>() as u64;
/// Type of a packet that is not written yet.
const INVALID: u64 = 1;

/// The part of `hsa_queue_t` that is used here.
#[repr(C)]
struct HsaQueue {
    kind: u32,
    features: u32,
    base: u64,
    doorbell: u64,
    size: u32,
}

/// Notes a queue that the program has made.
///
/// # Safety
///
/// `handle` is that of a queue of the runtime's.
pub(super) unsafe fn made(agent: u64, handle: u64) {
    // Every request for the queue of cooperative launches returns the same queue.
    if find(handle).is_some() {
        return;
    }
    // SAFETY: as this function demands.
    let queue = unsafe { &*(handle as *const HsaQueue) };
    let agent_id = agents::known(agent).map_or(0, |known| known.id);
    let (entry, is_new) = dispatch::entry((agent, agent_id), None);
    let ring = &entry.ring;
    ring.base.store(queue.base, Ordering::Relaxed);
    ring.size.store(queue.size.into(), Ordering::Relaxed);
    ring.told.store(0, Ordering::Relaxed);
    ring.profiled.store(false, Ordering::Relaxed);
    ring.doorbell.store(queue.doorbell, Ordering::Relaxed);
    // Stored last, with release ordering: whoever finds the queue by its handle sees its ring.
    entry.handle.store(handle, Ordering::Release);
    if is_new {
        dispatch::list(entry);
    }
}

/// The entry of a queue by its handle.
pub(super) fn find(handle: u64) -> Option<&'static Queue> {
    dispatch::queues().find(|queue| queue.handle.load(Ordering::Acquire) == handle)
}

/// Begins to look at the packets of a queue that are written from now on, and has the runtime keep their times.
pub(super) fn watch(queue: &Queue) {
    let handle = queue.handle.load(Ordering::Acquire);
    let agent = queue.agent.load(Ordering::Relaxed);
    let agent_id = agents::known(agent).map_or(0, |known| known.id);
    queue.agent_id.store(agent_id, Ordering::Relaxed);
    // Packets before this index may have been submitted past our hooks.
    let written = runtime!(
        HSA_CORE_API::hsa_queue_load_write_index_scacquire(u64) -> u64,
        (handle),
        u64::MAX
    );
    queue.ring.told.fetch_max(written, Ordering::AcqRel);
    let _ = dispatch::set_profiling(handle as *mut c_void, 1);
}

/// Gives a queue back the state that the program has given it.
pub(super) fn unwatch(queue: &Queue) {
    let handle = queue.handle.load(Ordering::Acquire);
    let wished = queue.ring.profiled.load(Ordering::Relaxed);
    let _ = dispatch::set_profiling(handle as *mut c_void, wished.into());
}

/// Number of dispatches that could not be followed since the last call.
pub(super) fn take_not_followed() -> u64 {
    NOT_FOLLOWED.swap(0, Ordering::Relaxed)
}

/// The program is about to store `last`, the index of the last packet that it has written, to `signal`, which may be a
/// doorbell.
#[inline]
fn before_ring(signal: u64, last: i64) {
    SERVICE.on_event(|| {
        let queue = dispatch::queues().find(|queue| {
            queue.ring.doorbell.load(Ordering::Relaxed) == signal
                && queue.handle.load(Ordering::Acquire) != 0
        });
        if let (Some(queue), Ok(last)) = (queue, u64::try_from(last)) {
            look_at(queue, last);
        }
    });
}

/// Looks at the packets of a queue up to `last` that the packet processor has not been told of.
fn look_at(queue: &Queue, last: u64) {
    let ring = &queue.ring;
    // A signal handler that rings a doorbell while its thread does: its packets are not looked at, since the
    // thread's are, up to the last that was rung.
    let Some(_guard) = ring.lock.lock() else {
        return;
    };
    let (base, size) = (
        ring.base.load(Ordering::Relaxed),
        ring.size.load(Ordering::Relaxed),
    );
    let end = last.saturating_add(1);
    let told = ring
        .told
        .load(Ordering::Relaxed)
        .max(end.saturating_sub(size));
    if told >= end || size == 0 {
        return;
    }
    let submitted = submissions::time();
    let mut any = false;
    for index in told..end {
        let place = (base + index % size * PACKET) as *mut u64;
        // SAFETY: a slot of the queue's ring, whose first four bytes the program stores last.
        let head = unsafe { AtomicU32::from_ptr(place.cast()) }.load(Ordering::Acquire);
        let kind = u64::from(head & 0xff);
        if kind == INVALID {
            // Another thread is writing it. When it rings, the packet processor may have taken the packet already.
            continue;
        }
        // SAFETY: as above; it is written, and the packet processor does not look at it before it is told of it.
        let packet = unsafe { place.cast::<Packet>().read_volatile() };
        if kind != KERNEL_DISPATCH || !calls::are_on() {
            dispatch::before_submission(&packet);
            if kind == KERNEL_DISPATCH {
                dispatch::left_out();
            }
            continue;
        }
        any = true;
        let work = Work::Dispatch(
            queue.agent.load(Ordering::Relaxed),
            dispatch::describe(queue, &packet),
        );
        match queue
            .pending
            .submit_unchanged(packet[SIGNAL], work, submitted)
        {
            Some(signals) => {
                device_work::dispatch_submitted();
                if packet[SIGNAL] == 0 {
                    // SAFETY: as above.
                    unsafe { place.add(SIGNAL).write_volatile(signals.work) };
                }
            }
            None => {
                dispatch::before_submission(&packet);
                NOT_FOLLOWED.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
    ring.told.store(end, Ordering::Relaxed);
    if any {
        poller::wake();
    }
}

hook! {
    RING_RELAXED: HSA_CORE_API::hsa_signal_store_relaxed,
    fn ring_relaxed(signal: u64, value: i64) -> (),
    |next| {
        submissions::storing(signal, || {
            before_ring(signal, value);
            next(signal, value)
        })
    }
}

hook! {
    RING_RELEASE: HSA_CORE_API::hsa_signal_store_screlease,
    fn ring_release(signal: u64, value: i64) -> (),
    |next| {
        submissions::storing(signal, || {
            before_ring(signal, value);
            next(signal, value)
        })
    }
}

/// Hooks for the tables of HSA.
pub(super) static HOOKS: [&Hook; 2] = [&RING_RELAXED, &RING_RELEASE];
