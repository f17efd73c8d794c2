//! Kernel dispatches: queues whose packets pass through [`on_packets`].
//!
//! The program's `hsa_queue_create` makes a queue of the runtime's that passes packets to us before a packet processor reads
//! them, with profiling on. A dispatch packet without completion signal is given one of a pool; one that has a signal
//! keeps it ([`super::borrowed`]), or, where that cannot be, is followed by a barrier packet that completes the program's.

#![expect(
    clippy::disallowed_types,
    reason = "the locks of queues, which a forked child forgets"
)]

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use rpd_spool::format::Dispatch;
use rpd_spool::record::RecordKind;
use rpd_spool::writer::{ForkLock, now};

use super::calls;
use super::hooks::{Hook, hook};
use super::hsa::{MISSING, SUCCESS, runtime};
use super::pending::{Pending, Work};
use super::{agents, borrowed, code_objects, poller, submissions};
use crate::recording::guard::{self, Service};
use crate::recording::{device_work, frames, graphs, meta, thread};

static SERVICE: Service = Service::new("kernel dispatches");

/// Dispatch ids, from 1.
static NEXT_DISPATCH: AtomicU64 = AtomicU64::new(1);
/// Queue ids, from 1.
static NEXT_QUEUE: AtomicU64 = AtomicU64::new(1);
/// Whether dispatches are counted and not recorded, because the program has paused recording.
static COUNT_PAUSED: AtomicBool = AtomicBool::new(false);
/// Whether dispatches are recorded; launches of graphs count them in either case.
static RECORDED: AtomicBool = AtomicBool::new(true);

/// Sets whether dispatches are recorded.
pub(super) fn set_recorded(on: bool) {
    RECORDED.store(on, Ordering::Relaxed);
}

/// Numbers dispatches from 1 again, for another recording of a process that is attached to.
pub(super) fn number_anew() {
    NEXT_DISPATCH.store(1, Ordering::Relaxed);
}

/// Counts a dispatch that a pause leaves out, if they are counted.
pub(super) fn left_out() {
    if COUNT_PAUSED.load(Ordering::Relaxed) {
        device_work::dispatch_paused();
        // The SDK numbers them as well.
        NEXT_DISPATCH.fetch_add(1, Ordering::Relaxed);
    }
}

/// Sets whether dispatches that a pause leaves out are counted.
pub(super) fn count_paused(on: bool) {
    COUNT_PAUSED.store(on, Ordering::SeqCst);
}

/// A queue whose dispatches are recorded. Never freed, because the runtime may still call with it while it is destroyed; some
/// time after that it serves for another queue.
#[derive(Debug)]
pub(super) struct Queue {
    /// The program's `hsa_queue_t`; 0 once it is destroyed.
    pub(super) handle: AtomicU64,
    /// Time of its destruction, by our clock; 0 before.
    pub(super) destroyed: AtomicU64,
    /// Handle of the queue's agent in the runtime.
    pub(super) agent: AtomicU64,
    /// Handle of the queue's agent in records.
    pub(super) agent_id: AtomicU64,
    /// State that only the agent's queue for cooperative launches has; `None` for other queues.
    cooperative: Option<Cooperative>,
    id: AtomicU64,
    /// Ring of a queue whose packets are looked at there ([`super::doorbells`]); its doorbell is 0 for other queues.
    pub(super) ring: Ring,
    /// Work of the queue that is not complete.
    pub(super) pending: Pending,
    next: AtomicPtr<Queue>,
}

/// The ring of a queue.
#[derive(Debug)]
pub(super) struct Ring {
    /// Handle of the doorbell signal.
    pub(super) doorbell: AtomicU64,
    /// Address of the first packet.
    pub(super) base: AtomicU64,
    /// Number of packets, a power of two.
    pub(super) size: AtomicU64,
    /// Number of packets that the packet processor may have seen; locked while packets are looked at.
    pub(super) told: AtomicU64,
    pub(super) lock: ForkLock,
    /// Whether the program itself wants the times of the queue's dispatches.
    pub(super) profiled: AtomicBool,
}

impl Ring {
    fn new() -> Ring {
        Ring {
            doorbell: AtomicU64::new(0),
            base: AtomicU64::new(0),
            size: AtomicU64::new(0),
            told: AtomicU64::new(0),
            lock: ForkLock::new(),
            profiled: AtomicBool::new(false),
        }
    }
}

/// Time for which work of a destroyed queue is polled, in nanoseconds. Work that has not ended by then
/// never does.
const POLL_AFTER_DESTROY: u64 = 100_000_000;
/// Time after which a destroyed queue's entry may be reused, in nanoseconds.
const REUSE: u64 = 10 * POLL_AFTER_DESTROY;

impl Queue {
    /// Whether the queue may have completed work that is not recorded yet.
    pub(super) fn has_work(&self) -> bool {
        if self.pending.is_empty() {
            return false;
        }
        let destroyed = self.destroyed.load(Ordering::Acquire);
        destroyed == 0 || now().saturating_sub(destroyed) < POLL_AFTER_DESTROY
    }
}

/// The queue that was made last.
static QUEUES: AtomicPtr<Queue> = AtomicPtr::new(std::ptr::null_mut());

/// Every queue that was made.
pub(super) fn queues() -> impl Iterator<Item = &'static Queue> {
    let mut next = QUEUES.load(Ordering::Acquire);
    std::iter::from_fn(move || {
        // SAFETY: null or a leaked box.
        let queue = unsafe { next.as_ref() }?;
        next = queue.next.load(Ordering::Acquire);
        Some(queue)
    })
}

/// Forgets all queues, in a forked child: they are its parent's.
pub(super) fn forget() {
    QUEUES.store(std::ptr::null_mut(), Ordering::Release);
}

type Callback = *const c_void;

/// Value `HSA_QUEUE_TYPE_COOPERATIVE`.
const COOPERATIVE: u32 = 2;

/// The queue for cooperative launches, where the runtime has one for each agent (HSA 1.18 does): every
/// request gets the same queue, which ends when each has destroyed it.
///
/// A queue that passes its packets to us takes the queue below it for its own and deletes it, which the agent does as well.
/// So it is never destroyed, and the one below it is, by the handle that it has without the other.
#[derive(Debug)]
pub(super) struct Cooperative {
    /// The handle of the queue below.
    below: u64,
    /// Number of times that the program was given the queue and has not destroyed it.
    uses: AtomicU32,
}

/// The queue for cooperative launches of an agent, for one more use.
fn cooperative_queue(agent: u64) -> Option<*mut c_void> {
    let queue = queues().find(|queue| {
        let add = |uses: u32| (uses > 0).then(|| uses + 1);
        queue.agent.load(Ordering::Relaxed) == agent
            && queue.cooperative.as_ref().is_some_and(|cooperative| {
                let uses = &cooperative.uses;
                uses.fetch_update(Ordering::AcqRel, Ordering::Acquire, add)
                    .is_ok()
            })
    })?;
    Some(queue.handle.load(Ordering::Acquire) as *mut c_void)
}

hook! {
    QUEUE_CREATE: HSA_CORE_API::hsa_queue_create,
    fn queue_create(
        agent: u64, size: u32, kind: u32, callback: Callback, data: *mut c_void, private: u32, group: u32,
        result: *mut *mut c_void,
    ) -> u32,
    |next| {
        let made = SERVICE.on_event(|| {
            let known = agents::known(agent)?;
            if !known.is_gpu || result.is_null() {
                return None;
            }
            let mut below = None;
            if kind == COOPERATIVE {
                if let Some(handle) = cooperative_queue(agent) {
                    // SAFETY: the place of the caller's result.
                    unsafe { result.write(handle) };
                    return Some(());
                }
                below = shared_queue(|place| {
                    next(agent, size, kind, callback, data, private, group, place)
                });
            }
            let status = runtime!(
                HSA_AMD_EXT_API::hsa_amd_queue_intercept_create(
                    u64, u32, u32, Callback, *mut c_void, u32, u32, *mut *mut c_void
                ) -> u32,
                (agent, size, kind, callback, data, private, group, result), MISSING
            );
            if status != SUCCESS {
                below.map(destroy);
                return None;
            }
            let cooperative = below.map(|below| Cooperative {
                below: below as u64,
                uses: AtomicU32::new(1),
            });
            // SAFETY: the runtime has written the new queue there.
            follow(unsafe { *result }, (agent, known.id), cooperative);
            Some(())
        });
        match made.flatten() {
            Some(()) => SUCCESS,
            // The runtime's own error, or a queue that cannot be followed.
            None => next(agent, size, kind, callback, data, private, group, result),
        }
    }
}

/// The queue that the runtime returns from every call of `create`. `None` when each call makes a queue.
fn shared_queue(create: impl Fn(*mut *mut c_void) -> u32) -> Option<*mut c_void> {
    let made = || {
        let mut queue = std::ptr::null_mut();
        (create(&raw mut queue) == SUCCESS).then_some(queue)
    };
    let first = made()?;
    let second = made();
    second.map(destroy);
    if second == Some(first) {
        return second;
    }
    destroy(first);
    None
}

/// The runtime's own `hsa_queue_destroy`.
fn destroy(handle: *mut c_void) -> u32 {
    runtime!(
        HSA_CORE_API::hsa_queue_destroy(*mut c_void) -> u32,
        (handle),
        MISSING
    )
}

/// Makes the packets of a new queue pass through this module.
fn follow(handle: *mut c_void, agent: (u64, u64), cooperative: Option<Cooperative>) {
    let (queue, is_new) = entry(agent, cooperative);
    // Stored last, with release ordering: whoever finds the queue by its handle sees its agent.
    queue.handle.store(handle as u64, Ordering::Release);
    let place = std::ptr::from_ref(queue).cast_mut();
    let status = runtime!(
        HSA_AMD_EXT_API::hsa_amd_queue_intercept_register(*mut c_void, Handler, *mut c_void) -> u32,
        (handle, on_packets, place.cast()),
        MISSING
    );
    // Times of dispatches are only kept by a queue with profiling.
    set_profiling(handle, 1);
    if status != SUCCESS {
        meta::note(&format!(
            "the dispatches of a queue are not recorded: the runtime does not pass on its packets (status {status:#x})"
        ));
        return;
    }
    if is_new {
        list(queue);
    }
    poller::start();
}

/// An entry for a new queue of an agent (its handles in the runtime and in records), and whether it is not in the list yet.
pub(super) fn entry(agent: (u64, u64), cooperative: Option<Cooperative>) -> (&'static Queue, bool) {
    // A shared queue is never given back, so it takes no entry that may be claimed again.
    let used = cooperative.is_none().then(claim_destroyed).flatten();
    let queue: &'static Queue = used.unwrap_or_else(|| {
        Box::leak(Box::new(Queue {
            handle: AtomicU64::new(0),
            destroyed: AtomicU64::new(0),
            agent: AtomicU64::new(0),
            agent_id: AtomicU64::new(0),
            cooperative,
            id: AtomicU64::new(0),
            ring: Ring::new(),
            pending: Pending::new(),
            next: AtomicPtr::new(std::ptr::null_mut()),
        }))
    });
    queue.agent.store(agent.0, Ordering::Relaxed);
    queue.agent_id.store(agent.1, Ordering::Relaxed);
    let id = NEXT_QUEUE.fetch_add(1, Ordering::Relaxed);
    queue.id.store(id, Ordering::Relaxed);
    (queue, used.is_none())
}

/// Adds an entry to the list of queues.
pub(super) fn list(queue: &'static Queue) {
    let place = std::ptr::from_ref(queue).cast_mut();
    let mut last = QUEUES.load(Ordering::Acquire);
    loop {
        queue.next.store(last, Ordering::Relaxed);
        match QUEUES.compare_exchange(last, place, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return,
            Err(other) => last = other,
        }
    }
}

/// A queue that was destroyed long enough ago, with no work left: a program that makes and destroys queues forever needs no
/// more memory for them.
fn claim_destroyed() -> Option<&'static Queue> {
    queues().find(|queue| {
        let destroyed = queue.destroyed.load(Ordering::Acquire);
        destroyed != 0
            && queue.cooperative.is_none()
            && now().saturating_sub(destroyed) > REUSE
            && queue.pending.is_empty()
            && queue
                .destroyed
                .compare_exchange(destroyed, 0, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
    })
}

/// Switches the times of a queue's dispatches on or off.
pub(super) fn set_profiling(queue: *mut c_void, on: i32) -> u32 {
    runtime!(
        HSA_AMD_EXT_API::hsa_amd_profiling_set_profiler_enabled(*mut c_void, i32) -> u32,
        (queue, on),
        MISSING
    )
}

fn find(handle: *mut c_void) -> Option<&'static Queue> {
    queues().find(|queue| queue.handle.load(Ordering::Acquire) == handle as u64)
}

hook! {
    PROFILER_ENABLED: HSA_AMD_EXT_API::hsa_amd_profiling_set_profiler_enabled,
    fn profiler_enabled(queue: *mut c_void, enable: i32) -> u32,
    |next| {
        // The times of our queues are needed whether or not the program requests them.
        match SERVICE.on_event(|| find(queue)).flatten() {
            Some(_) => next(queue, 1),
            None => next(queue, enable),
        }
    }
}

hook! {
    QUEUE_DESTROY: HSA_CORE_API::hsa_queue_destroy,
    fn queue_destroy(handle: *mut c_void) -> u32,
    |next| {
        // Looked for when recording has ended as well: a cooperative queue is not destroyed then either.
        let queue = SERVICE.run(|| find(handle)).flatten();
        let Some(queue) = queue else {
            return next(handle);
        };
        SERVICE.on_event(poller::pass);
        if let Some(cooperative) = &queue.cooperative
            && cooperative.uses.fetch_sub(1, Ordering::AcqRel) > 1
        {
            return SUCCESS;
        }
        queue.handle.store(0, Ordering::Release);
        let status = match &queue.cooperative {
            None => next(handle),
            // Once for the program, and once for the queue above it.
            Some(Cooperative { below, .. }) => match destroy(*below as *mut c_void) {
                SUCCESS => destroy(*below as *mut c_void),
                status => status,
            },
        };
        match status {
            SUCCESS => queue.destroyed.store(now(), Ordering::Release),
            _ => queue.handle.store(handle as u64, Ordering::Release),
        }
        status
    }
}

/// An AQL packet, as eight words.
pub(super) type Packet = [u64; 8];
/// Passes packets on to the queue.
type Writer = unsafe extern "C" fn(*const Packet, u64);
type Handler = unsafe extern "C" fn(*const Packet, u64, u64, *mut c_void, Writer);

/// Types of AQL packets.
pub(super) const KERNEL_DISPATCH: u64 = 2;
const AGENT_DISPATCH: u64 = 4;
const BARRIER_AND: u64 = 3;
const BARRIER_OR: u64 = 5;
const VENDOR_SPECIFIC: u64 = 0;
/// The bit of the header that makes a packet wait for those before it.
const BARRIER_BIT: u64 = 1 << 8;
/// Release scope: stores are visible to the whole system when the packet completes.
const RELEASE_SYSTEM: u64 = 2 << 11;
/// Word of the completion signal in a packet.
pub(super) const SIGNAL: usize = 7;

/// Packets that are passed on at a time: a dispatch may become two.
const BATCH: usize = 16;

unsafe extern "C" fn on_packets(
    packets: *const Packet,
    count: u64,
    _index: u64,
    queue: *mut c_void,
    write: Writer,
) {
    if guard::is_finalized() || !calls::are_on() {
        if COUNT_PAUSED.load(Ordering::Relaxed) && !guard::is_finalized() {
            SERVICE.on_event(|| {
                // SAFETY: the runtime's packets.
                for packet in unsafe { std::slice::from_raw_parts(packets, count as usize) } {
                    before_submission(packet);
                    if packet[0] & 0xff == KERNEL_DISPATCH {
                        device_work::dispatch_paused();
                        // The SDK numbers them as well.
                        NEXT_DISPATCH.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        // SAFETY: what the runtime passed.
        unsafe { write(packets, count) };
        return;
    }
    // SAFETY: the runtime's packets, and the queue that was registered with this function.
    let (packets, queue) = unsafe {
        (
            std::slice::from_raw_parts(packets, count as usize),
            &*queue.cast::<Queue>(),
        )
    };
    let submitted = submissions::time();
    for batch in packets.chunks(BATCH) {
        // Not filled with zeros: the runtimes pass one packet at a time.
        let mut out = [const { MaybeUninit::uninit() }; 2 * BATCH];
        let mut used = 0;
        let followed = SERVICE.on_event(|| {
            for packet in batch {
                used += rewrite(queue, packet, submitted, &mut out[used..]);
            }
        });
        match followed {
            // SAFETY: as many packets were written there.
            Some(()) => unsafe { write(out.as_ptr().cast(), used as u64) },
            // SAFETY: what the runtime passed.
            None => unsafe { write(batch.as_ptr(), batch.len() as u64) },
        }
    }
    poller::wake();
}

/// Prepares for a packet that is about to be submitted: its completion signal, if it has one, is changed by the packet
/// processor.
#[inline]
pub(super) fn before_submission(packet: &Packet) {
    if matches!(
        packet[0] & 0xff,
        KERNEL_DISPATCH | AGENT_DISPATCH | BARRIER_AND | BARRIER_OR | VENDOR_SPECIFIC
    ) && packet[SIGNAL] != 0
    {
        borrowed::before_change(packet[SIGNAL]);
    }
}

/// Puts the packet, and the packets that are submitted with it, into `out`. Returns the number of packets.
#[inline]
fn rewrite(
    queue: &Queue,
    packet: &Packet,
    submitted: u64,
    out: &mut [MaybeUninit<Packet>],
) -> usize {
    let first = out[0].write(*packet);
    if packet[0] & 0xff != KERNEL_DISPATCH {
        before_submission(packet);
        return 1;
    }
    if !RECORDED.load(Ordering::Relaxed) {
        graphs::dispatch(queue.agent_id.load(Ordering::Relaxed));
        before_submission(packet);
        return 1;
    }
    device_work::dispatch_submitted();
    let work = Work::Dispatch(queue.agent.load(Ordering::Relaxed), describe(queue, packet));
    let Some(signals) = queue.pending.submit(packet[SIGNAL], work, submitted) else {
        before_submission(packet);
        return 1;
    };
    first[SIGNAL] = signals.work;
    if signals.program == 0 {
        return 1;
    }
    borrowed::before_change(signals.program);
    let mut barrier = [0; 8];
    barrier[0] = BARRIER_AND | BARRIER_BIT | RELEASE_SYSTEM;
    barrier[SIGNAL] = signals.program;
    out[1].write(barrier);
    2
}

/// The record of a dispatch, without times.
#[inline]
pub(super) fn describe(queue: &Queue, packet: &Packet) -> Dispatch {
    let (correlation, _) = frames::of_work();
    let (tid, region, stream) = thread::with(|thread| {
        let (region, stream) = thread.region_and_stream();
        (thread.tid(), region, stream)
    })
    .unwrap_or_else(|| (thread::id(), 0, 0));
    // Fields of an AQL kernel dispatch packet, at the offsets of the HSA specification.
    let half = |word: u64, shift: u32| (word >> shift & 0xffff) as u32;
    let agent = queue.agent_id.load(Ordering::Relaxed);
    Dispatch {
        header: RecordKind::Dispatch.head(0),
        thread: tid.into(),
        correlation,
        start: 0,
        end: 0,
        agent,
        queue: queue.id.load(Ordering::Relaxed),
        kernel: code_objects::kernel(packet[4]),
        dispatch: NEXT_DISPATCH.fetch_add(1, Ordering::Relaxed),
        stream,
        region,
        private_size: packet[3] as u32,
        group_size: (packet[3] >> 32) as u32,
        workgroup: [half(packet[0], 32), half(packet[0], 48), half(packet[1], 0)],
        grid: [
            (packet[1] >> 32) as u32,
            packet[2] as u32,
            (packet[2] >> 32) as u32,
        ],
        graph: graphs::dispatch(agent),
    }
}

/// Hooks for the tables of HSA.
pub(super) static HOOKS: [&Hook; 3] = [&QUEUE_CREATE, &QUEUE_DESTROY, &PROFILER_ENABLED];
