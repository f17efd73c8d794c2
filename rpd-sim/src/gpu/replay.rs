//! Dispatches that an observer runs several times before their packet is processed, and what else the GPU does meanwhile:
//! nothing.
//!
//! The thread that rings the doorbell runs the kernel. Packets of other threads for the same GPU are not submitted until that is
//! over, and those that were submitted before are waited for.

use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use super::agents::PoolKind;
use super::aql::KernelDispatchPacket;
use super::fault::Fault;
use super::handler::Work;
use super::machine::machine;
use super::memory::{Allocation, Use};
use super::observe::Token;
use super::processor;
use super::queue::Queue;

/// Longest time for which work that was submitted before is waited for: it may itself wait for what this thread does next.
const PATIENCE: Duration = Duration::from_secs(10);
/// Interval at which other queues are looked at.
const RECHECK: Duration = Duration::from_micros(20);

/// Submissions to a GPU: any number at the same time, or a replay alone.
#[derive(Default)]
pub(crate) struct Submissions(RwLock<()>);

thread_local! {
    /// Whether this thread submits packets, or runs a replay: callbacks of tools may submit others meanwhile.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// The calling thread's turn to submit packets, released when dropped.
pub(crate) struct Turn<G> {
    _guard: G,
}

impl<G> Turn<G> {
    fn new(guard: G) -> Self {
        INSIDE.set(true);
        Self { _guard: guard }
    }
}

impl<G> Drop for Turn<G> {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

impl Submissions {
    /// Waits until no replay is under way. `None` within another submission of this thread.
    pub(crate) fn share(&self) -> Option<Turn<RwLockReadGuard<'_, ()>>> {
        if INSIDE.get() {
            return None;
        }
        Some(Turn::new(
            self.0.read().unwrap_or_else(PoisonError::into_inner),
        ))
    }
}

/// A dispatch whose packet is the only one of its submission, before any processor can see it.
pub(crate) struct Candidate<'a> {
    queue: &'static Queue,
    index: u64,
    packet: &'a KernelDispatchPacket,
}

/// The right to run a candidate: nothing else of its GPU runs.
pub(crate) struct Alone<'a> {
    candidate: &'a Candidate<'a>,
    _turn: Turn<RwLockWriteGuard<'static, ()>>,
}

impl<'a> Candidate<'a> {
    pub(crate) fn new(queue: &'static Queue, index: u64, packet: &'a KernelDispatchPacket) -> Self {
        Self {
            queue,
            index,
            packet,
        }
    }

    /// Whether the calling thread submits another packet already, or is one that completes packets.
    pub(crate) fn is_nested(&self) -> bool {
        INSIDE.get() || machine().handler.is_current_thread() || processor::is_current_thread()
    }

    /// Waits until the GPU has nothing else to do, and keeps other threads from giving it anything. `None` when that does not
    /// happen in time.
    pub(crate) fn alone(&'a self) -> Option<Alone<'a>> {
        let limit = Instant::now() + PATIENCE;
        let wait = |until: &dyn Fn() -> bool| {
            while !until() {
                if Instant::now() > limit {
                    return false;
                }
                std::thread::sleep(RECHECK);
            }
            true
        };
        // Threads that have written packets in front of this one have to submit them first.
        if !wait(&|| self.queue.ready() == self.index) {
            return None;
        }
        let gpu = self.queue.agent().index - 1;
        let lock = &machine().submissions[gpu].0;
        let guard = lock.write().unwrap_or_else(PoisonError::into_inner);
        let turn = Turn::new(guard);
        let agent = self.queue.agent().index;
        let idle = || {
            let queues = machine().queues.read();
            let queues = queues.unwrap_or_else(PoisonError::into_inner);
            let mut all = queues.iter().filter(|queue| queue.agent().index == agent);
            all.all(|queue| queue.is_idle())
        };
        wait(&idle).then_some(Alone {
            candidate: self,
            _turn: turn,
        })
    }
}

/// A run that did not come to its end: the queue was stopped, by the program or by the error that was reported to it.
#[derive(Debug)]
pub(crate) struct Stopped;

impl Alone<'_> {
    /// Runs the kernel and returns begin and end in device ticks, when the observer has been given its results for `token`.
    pub(crate) fn run(&self, token: Token) -> Result<(u64, u64), Stopped> {
        let Candidate {
            queue,
            index,
            packet,
        } = *self.candidate;
        match processor::execute(queue, index, packet, token, 0) {
            Ok(Some((results, ticks))) => {
                if token != 0 {
                    queue.deferred.fetch_add(1, Ordering::AcqRel);
                    machine().handler.submit(Work::Retire {
                        queue,
                        signal: None,
                        token,
                        counts: results.counts,
                        recording: results.recording,
                        ticks,
                    });
                    while queue.deferred.load(Ordering::Acquire) != 0 {
                        std::thread::sleep(RECHECK);
                    }
                }
                Ok(ticks)
            }
            Ok(None) => Err(Stopped),
            Err(fault) => {
                self.fail(fault);
                Err(Stopped)
            }
        }
    }

    fn fail(&self, fault: Fault) {
        processor::stop(self.candidate.queue, fault);
    }
}

/// Memory of a device, as it was.
pub(crate) struct Snapshot {
    regions: Vec<Region>,
}

struct Region {
    base: usize,
    bytes: Vec<u8>,
    /// Whether it is an allocation, which the program may free.
    is_allocation: bool,
}

/// What a snapshot could not be made of: bytes at an address for which the host has no memory.
#[derive(Debug)]
pub(crate) struct NoRoom {
    pub(crate) address: usize,
    pub(crate) bytes: usize,
}

impl Snapshot {
    /// Copies the coarse-grained allocations of an agent that `is_tracked` accepts, and `variables`: address and bytes.
    pub(crate) fn new(
        agent: usize,
        is_tracked: impl Fn(&Allocation) -> bool,
        variables: &[(usize, usize)],
    ) -> Result<Self, NoRoom> {
        let allocations = machine().memory.all();
        let owned = allocations.iter().filter(|allocation| {
            allocation.purpose == Use::Program
                && allocation.pool.agent == agent
                && allocation.pool.kind == PoolKind::DeviceCoarse
                && is_tracked(allocation)
        });
        let places = owned
            .map(|allocation| (allocation.base, allocation.size, true))
            .chain(variables.iter().map(|&(base, size)| (base, size, false)));
        let mut regions = Vec::new();
        for (base, size, is_allocation) in places {
            let mut bytes = Vec::new();
            if bytes.try_reserve_exact(size).is_err() {
                return Err(NoRoom {
                    address: base,
                    bytes: size,
                });
            }
            // SAFETY: allocations and variables of loaded code are mapped; the device is idle and the program's other threads
            // do not free memory that a dispatch uses.
            bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(base as *const u8, size) });
            regions.push(Region {
                base,
                bytes,
                is_allocation,
            });
        }
        Ok(Self { regions })
    }

    /// Copies everything back. Returns the addresses of allocations that are gone or smaller now.
    pub(crate) fn restore(&self) -> Vec<usize> {
        let mut gone = Vec::new();
        for Region {
            base,
            bytes,
            is_allocation,
        } in &self.regions
        {
            let is_there = || {
                let found = machine().memory.find(*base);
                found.is_some_and(|found| found.base == *base && found.size >= bytes.len())
            };
            if *is_allocation && !is_there() {
                gone.push(*base);
                continue;
            }
            // SAFETY: as when it was copied.
            unsafe { (*base as *mut u8).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        }
        gone
    }
}
