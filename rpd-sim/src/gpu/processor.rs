//! Packet processors: the hardware queues, each a thread that consumes the packets of its HSA queues.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::aql::{
    AMD_FORMAT_BARRIER_VALUE, BarrierPacket, BarrierValuePacket, KernelDispatchPacket, packet_type,
};
use super::clock;
use super::exec::{self, Results};
use super::fault::Fault;
use super::handler::Work;
use super::machine::{machine, start_thread};
use super::observe::{self, Token};
use super::queue::Queue;
use super::signal::{Condition, Signal, Term};

/// Most packets of one queue that are processed before the next queue has its turn.
const TURN: usize = 16;
/// Interval at which a blocked processor looks at signals again: a kernel may change a signal's memory without waking
/// anyone.
const RECHECK: Duration = Duration::from_millis(1);

thread_local! {
    static IS_PROCESSOR: Cell<bool> = const { Cell::new(false) };
}

/// A hardware queue.
pub(crate) struct Processor {
    gpu: usize,
    index: usize,
    thread: usize,
    tid: AtomicU32,
    queues: Mutex<Vec<&'static Queue>>,
}

/// Result of polling a queue.
enum Step {
    /// A packet was processed.
    Progress,
    /// There is no packet to process.
    Idle,
    /// The next packet waits for signals.
    Blocked,
}

impl Processor {
    /// Starts the hardware queue `index` of a GPU as device thread number `thread`.
    pub(crate) fn start(gpu: usize, index: usize, thread: usize) -> &'static Self {
        let processor: &'static Self = Box::leak(Box::new(Self {
            gpu,
            index,
            thread,
            tid: AtomicU32::new(0),
            queues: Mutex::default(),
        }));
        start_thread(&format!("rpd-sim gpu{gpu} q{index}"), move || {
            processor.run()
        });
        processor
    }

    /// Whether the processor is hardware queue `index` of a GPU.
    pub(crate) fn is(&self, gpu: usize, index: usize) -> bool {
        self.gpu == gpu && self.index == index
    }

    /// Whether the caller runs on the processor's thread.
    pub(crate) fn is_current_thread(&self) -> bool {
        self.tid.load(Ordering::Relaxed) == current_tid()
    }

    /// Adds a queue to those that are polled.
    pub(crate) fn attach(&self, queue: &'static Queue) {
        self.queues().push(queue);
    }

    /// Removes a queue from those that are polled.
    pub(crate) fn detach(&self, queue: &Queue) {
        self.queues().retain(|known| !std::ptr::eq(*known, queue));
    }

    /// Wakes the processor: there may be packets.
    #[inline]
    pub(crate) fn notify(&self) {
        machine().events[self.thread].notify();
    }

    fn queues(&self) -> std::sync::MutexGuard<'_, Vec<&'static Queue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        self.tid.store(current_tid(), Ordering::Relaxed);
        IS_PROCESSOR.set(true);
        let event = &machine().events[self.thread];
        let mut queues = Vec::new();
        loop {
            // Read before the search for work: packets that are written afterwards change it, so that the wait below
            // ends at once.
            let seen = event.count();
            // Copied, so that queues can be attached and detached while this thread processes packets.
            queues.clear();
            queues.extend_from_slice(&self.queues());
            let (mut progress, mut blocked) = (false, false);
            for queue in &queues {
                // A queue with many packets must not keep those of the others waiting.
                for _ in 0..TURN {
                    match self.step(queue) {
                        Step::Progress => progress = true,
                        Step::Idle => break,
                        Step::Blocked => {
                            blocked = true;
                            break;
                        }
                    }
                }
            }
            if !progress {
                // Without blocked queues the doorbell wakes this thread; a signal's memory may change without a wake.
                event.wait(seen, blocked.then_some(RECHECK));
            }
        }
    }

    /// Processes the next packet of a queue.
    fn step(&self, queue: &'static Queue) -> Step {
        let index = queue.amd.read_dispatch_id.load(Ordering::Relaxed);
        if index >= queue.ready() {
            return Step::Idle;
        }
        // Set before the state is read: whoever stops the queue stores the state first and then waits for this flag.
        queue.busy.store(true, Ordering::SeqCst);
        let step = if queue.is_active() {
            self.process(queue, index)
        } else {
            Step::Idle
        };
        queue.busy.store(false, Ordering::SeqCst);
        step
    }

    fn process(&self, queue: &'static Queue, index: u64) -> Step {
        // The header's barrier and fence bits are honoured by construction: packets of a queue are processed
        // one after the other, and all memory accesses of a packet are visible before the next begins.
        let header = queue.header(index).load(Ordering::Acquire);
        match header & 0xff {
            packet_type::KERNEL_DISPATCH => {
                // SAFETY: the packet is submitted; its format follows from the header.
                let packet: KernelDispatchPacket = unsafe { queue.packet(index) };
                // Taken before the kernel runs, because the slot is free for another packet as soon as that has ended.
                let token = queue.take_token(index);
                let signal = packet.completion_signal;
                if let Some(ticks) = queue.take_executed(index) {
                    retire(queue, index, signal, token, Results::default(), ticks);
                    return Step::Progress;
                }
                match execute(queue, index, &packet, token, self.index as u32) {
                    Ok(Some((results, ticks))) => {
                        retire(queue, index, signal, token, results, ticks)
                    }
                    // Packets of a stopped queue never complete: the program wants no completion of what it gave up.
                    Ok(None) => {}
                    Err(fault) => stop(queue, fault),
                }
                Step::Progress
            }
            kind @ (packet_type::BARRIER_AND | packet_type::BARRIER_OR) => {
                // SAFETY: as above.
                let packet: BarrierPacket = unsafe { queue.packet(index) };
                let all = kind == packet_type::BARRIER_AND;
                let deps = packet.dep_signal.iter().filter_map(|&handle| term(handle));
                self.barrier(queue, index, deps, all, packet.completion_signal)
            }
            packet_type::VENDOR_SPECIFIC => {
                // SAFETY: as above; every vendor packet has its format byte in the same place.
                let packet: BarrierValuePacket = unsafe { queue.packet(index) };
                // There are other vendor packets in newer runtimes; to skip one could let a kernel run too early.
                if packet.format != AMD_FORMAT_BARRIER_VALUE {
                    let text =
                        format!("vendor-specific packet of unknown format {}", packet.format);
                    stop(queue, Fault::packet(index, &text));
                    return Step::Progress;
                }
                self.barrier_value(queue, index, &packet)
            }
            packet_type::AGENT_DISPATCH => {
                stop(
                    queue,
                    Fault::packet(index, "agent dispatch packet on a kernel queue"),
                );
                Step::Progress
            }
            other => {
                stop(
                    queue,
                    Fault::packet(index, &format!("packet of invalid type {other}")),
                );
                Step::Progress
            }
        }
    }

    fn barrier(
        &self,
        queue: &'static Queue,
        index: u64,
        deps: impl Iterator<Item = Term> + Clone,
        all: bool,
        completion: u64,
    ) -> Step {
        let open = |deps: &mut dyn Iterator<Item = Term>| {
            // An OR packet whose signals are all absent is open, as an AND packet is.
            let mut count = 0;
            let mut met = 0;
            for dep in deps {
                count += 1;
                met += usize::from(dep.met().is_some());
            }
            met == count || (!all && met != 0)
        };
        if !open(&mut deps.clone()) {
            // Watch first, then look again: a change in between must not be missed.
            deps.clone().for_each(|dep| dep.signal.watch(self.thread));
            if !open(&mut deps.clone()) {
                return Step::Blocked;
            }
        }
        deps.for_each(|dep| dep.signal.unwatch(self.thread));
        let now = clock::ticks();
        // Observers have no token for a barrier; taking it makes the slot's next packet an unobserved one.
        let token = queue.take_token(index);
        retire(
            queue,
            index,
            completion,
            token,
            Results::default(),
            (now, now),
        );
        Step::Progress
    }

    fn barrier_value(
        &self,
        queue: &'static Queue,
        index: u64,
        packet: &BarrierValuePacket,
    ) -> Step {
        let Some(condition) = Condition::from_raw(packet.cond) else {
            stop(
                queue,
                Fault::packet(index, "barrier-value packet with an unknown condition"),
            );
            return Step::Progress;
        };
        if let Some(signal) = Signal::from_handle(packet.signal) {
            let open = || condition.holds(signal.load() & packet.mask, packet.value);
            if !open() {
                signal.watch(self.thread);
                if !open() {
                    return Step::Blocked;
                }
            }
            signal.unwatch(self.thread);
        }
        let now = clock::ticks();
        let token = queue.take_token(index);
        retire(
            queue,
            index,
            packet.completion_signal,
            token,
            Results::default(),
            (now, now),
        );
        Step::Progress
    }
}

/// Results of a dispatch, and its begin and end in device ticks.
pub(super) type Executed = (Results, (u64, u64));

/// Runs the kernel of a dispatch on the calling thread. `None` when the queue was stopped before it had ended.
pub(super) fn execute(
    queue: &'static Queue,
    index: u64,
    packet: &KernelDispatchPacket,
    token: Token,
    hardware_queue: u32,
) -> Result<Option<Executed>, Fault> {
    let observer = observe::get();
    let counted = token != 0 && observer.is_some_and(|o| o.counts(token));
    let records = observer
        .filter(|_| token != 0)
        .and_then(|o| o.records(token));
    let traced = records.as_ref().is_some_and(|r| r.engines != 0);
    let serialised = observer.is_some_and(|o| o.serialises(&queue.info()));
    // Counters and traces are per device: those of a kernel that ran beside would be added.
    let alone = counted || traced || serialised;
    let gate = &machine().gates[queue.agent().index - 1];
    let Some(pass) = gate.enter(alone, queue.stop_flag()) else {
        return Ok(None);
    };
    let start = clock::ticks();
    let watch = exec::Watch {
        counted,
        records,
        hardware_queue,
    };
    let outcome = exec::run(queue, index, packet, watch);
    let end = clock::ticks();
    // Others may run while this kernel's results are delivered.
    drop(pass);
    Ok(match outcome? {
        exec::Outcome::Done { results, time } => {
            // The device has no other load: what the host runs meanwhile is not part of the kernel's time.
            let end = end.min(start + clock::duration_to_ticks(time));
            Some((results, (start, end)))
        }
        exec::Outcome::GivenUp => None,
    })
}

/// Whether the calling thread processes packets.
pub(super) fn is_current_thread() -> bool {
    IS_PROCESSOR.get()
}

/// The wait for a dependency of a barrier packet: for zero. `None` for a null or destroyed signal, which counts as
/// absent.
fn term(handle: u64) -> Option<Term> {
    Signal::from_handle(handle).map(|signal| Term {
        signal,
        condition: Condition::Eq,
        reference: 0,
    })
}

/// Frees the packet's slot and completes the packet.
fn retire(
    queue: &'static Queue,
    index: u64,
    completion: u64,
    token: Token,
    results: Results,
    ticks: (u64, u64),
) {
    // The slot is free before the signal falls: who waits for the signal may reuse the slot at once.
    queue
        .header(index)
        .store(packet_type::INVALID, Ordering::Release);
    queue
        .amd
        .read_dispatch_id
        .store(index + 1, Ordering::Release);
    let signal = Signal::from_handle(completion);
    if let Some(signal) = signal {
        signal.set_times(ticks.0, ticks.1);
    }
    // A completion must not overtake an earlier one of the same queue that the observers have not been given yet.
    if token != 0 || queue.deferred.load(Ordering::Acquire) != 0 {
        queue.deferred.fetch_add(1, Ordering::AcqRel);
        machine().handler.submit(Work::Retire {
            queue,
            signal,
            token,
            counts: results.counts,
            recording: results.recording,
            ticks,
        });
    } else if let Some(signal) = signal {
        signal.decrement();
    }
}

/// Stops a queue on an error and calls the program's error callback on the handler's thread.
pub(super) fn stop(queue: &'static Queue, fault: Fault) {
    queue.fail();
    // Counts as a completion, so that the queue is not destroyed before its error callback has been called.
    queue.deferred.fetch_add(1, Ordering::AcqRel);
    machine().handler.submit(Work::Fault {
        queue: Some(queue),
        agent: queue.agent(),
        fault,
    });
}

fn current_tid() -> u32 {
    // SAFETY: gettid takes nothing and cannot fail.
    unsafe { libc::gettid() as u32 }
}
