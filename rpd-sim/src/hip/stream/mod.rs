//! Streams: in-order sequences of kernels (on a hardware queue), copies (on engines) and host functions.
//!
//! Order within a queue comes from the packets' barrier bits; order between a queue, the copy engines and
//! the host comes from completion signals: each step waits for the signal of the step before.

pub(crate) mod api;
pub(crate) mod callback;
pub(crate) mod event;
pub(crate) mod queue;
pub(crate) mod shared_event;
pub(crate) mod signal;
pub(crate) mod value;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::hip::copy::Staging;
use crate::hip::copy::blit;
use crate::hip::device::Device;
use crate::hip::error::{HipResult, code};
use crate::hip::graph::Capture;
use crate::hip::launch::kernarg::KernargRing;
use crate::hip::runtime::{self, lock, read};
use crate::hip::stream::callback::HostCall;
use crate::hip::stream::queue::HwQueue;
use crate::hip::stream::signal::{Signal, SignalPool};
use crate::hip::types::{Handle, STREAM_LEGACY, STREAM_NON_BLOCKING, STREAM_PER_THREAD};
use crate::hsa::types::{
    BarrierPacket, HEADER_ACQUIRE_SHIFT, HEADER_BARRIER, HEADER_RELEASE_SHIFT,
    KernelDispatchPacket, packet_type,
};

/// Number of signals that a new stream creates for later use.
const SIGNALS_AHEAD: usize = 64;
/// Fence scope "system" of packet headers.
const SCOPE_SYSTEM: u16 = 2;
/// Header bits of packets in streams: each follows the one before, and its results are visible to the host.
const ORDERED: u16 = HEADER_BARRIER
    | (SCOPE_SYSTEM << HEADER_ACQUIRE_SHIFT)
    | (SCOPE_SYSTEM << HEADER_RELEASE_SHIFT);
/// Header of the AQL packets that dispatch kernels.
pub(crate) const KERNEL_HEADER: u16 = packet_type::KERNEL_DISPATCH | ORDERED;
/// Seconds that the host waits for kernels before it gives a copy behind them to the engine.
const HOST_WAIT_SECONDS: u64 = 2;

/// The last step of a stream.
#[derive(Debug)]
enum Tail {
    /// All operations have ended.
    Idle,
    /// A packet in the hardware queue, with its completion signal if it has one.
    Packet(Option<Arc<Signal>>),
    /// A step outside of the queue that ends with this signal.
    Signal(Arc<Signal>),
}

/// A step that has a signal, with the signals that it may still read.
#[derive(Debug)]
struct InFlight {
    done: Arc<Signal>,
    _waits_for: Vec<Arc<Signal>>,
}

/// State of a stream that changes with every step.
#[derive(Debug)]
pub(crate) struct StreamState {
    tail: Tail,
    /// Steps of other streams that the next step has to follow.
    waits: Vec<Arc<Signal>>,
    in_flight: VecDeque<InFlight>,
    kernargs: Option<KernargRing>,
    pub(crate) staging: Staging,
}

/// A `hipStream_t`.
#[derive(Debug)]
pub(crate) struct Stream {
    /// Device whose queues execute its work.
    pub(crate) device: &'static Device,
    /// Flags of `hipStreamCreateWithFlags`.
    pub(crate) flags: u32,
    /// Priority: -1 high, 0 normal, 1 low.
    pub(crate) priority: i32,
    /// Whether the stream is its device's null stream.
    pub(crate) legacy: bool,
    /// Number that `hipStreamGetId` gives.
    pub(crate) id: u64,
    /// `hipSynchronizationPolicy`, 1 (automatic) unless set.
    pub(crate) policy: AtomicI32,
    /// Hardware queue that the stream's packets are written to.
    pub(crate) queue: Arc<HwQueue>,
    /// Signals for the steps of the stream. They are destroyed with the stream, or with the last event that has one of
    /// them.
    pub(crate) signals: Arc<SignalPool>,
    state: Mutex<StreamState>,
    capturing: AtomicBool,
    capture: Mutex<Option<Capture>>,
}

impl Stream {
    /// Makes a stream; the first one of a device loads the runtime's own kernels.
    pub(crate) fn new(
        device: &'static Device,
        flags: u32,
        priority: i32,
        legacy: bool,
    ) -> HipResult<Arc<Self>> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // Streams share a few hardware queues, see `Queues::acquire`.
        let queue = device.queues.acquire(device.agent, priority)?;
        let kernargs = KernargRing::new(device.kernarg_pool, device.agent)?;
        let signals = Arc::<SignalPool>::default();
        signals.grow(4)?;
        let first = !device.blit_loaded();
        device.blit()?;
        // Made ahead, so that the first operations of a program do not pay for them.
        if first {
            signals.grow(SIGNALS_AHEAD)?;
        }
        let stream = Arc::new(Self {
            device,
            flags,
            priority,
            legacy,
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            policy: AtomicI32::new(1),
            queue,
            signals,
            state: Mutex::new(StreamState {
                tail: Tail::Idle,
                waits: Vec::new(),
                in_flight: VecDeque::new(),
                kernargs: Some(kernargs),
                staging: Staging::default(),
            }),
            capturing: AtomicBool::new(false),
            capture: Mutex::new(None),
        });
        lock(&device.streams).push(Arc::downgrade(&stream));
        Ok(stream)
    }

    /// Whether the stream synchronises with the null stream.
    pub(crate) fn is_blocking(&self) -> bool {
        self.flags & STREAM_NON_BLOCKING == 0
    }

    /// Locks the stream for one step, behind the work that the rules of the null stream put before it.
    pub(crate) fn step(&self) -> HipResult<Step<'_>> {
        let mut waits = Vec::new();
        if self.legacy {
            // The null stream waits for the last step of every blocking stream of its device, and these wait for the
            // null stream's.
            for other in self.device.live_streams() {
                if !other.legacy && other.is_blocking() {
                    waits.extend(other.last()?);
                }
            }
        } else if self.is_blocking()
            && let Some(legacy) = self.device.legacy_stream_if_any()
        {
            waits.extend(legacy.last()?);
        }
        // Taken before this lock: two streams that wait for each other would each hold their own.
        let mut state = lock(&self.state);
        state.waits.append(&mut waits);
        state.retire();
        Ok(Step {
            stream: self,
            state,
        })
    }

    /// Signal of the last step; `None` if that has ended.
    pub(crate) fn last(&self) -> HipResult<Option<Arc<Signal>>> {
        let state = lock(&self.state);
        Step {
            stream: self,
            state,
        }
        .last()
    }

    /// Makes the next step wait for `signal`.
    pub(crate) fn follow(&self, signal: Arc<Signal>) {
        if !signal.is_done() {
            lock(&self.state).waits.push(signal);
        }
    }

    /// Waits for all work enqueued so far.
    pub(crate) fn synchronize(&self) -> HipResult {
        if let Some(signal) = self.last()? {
            signal.wait();
        }
        lock(&self.state).retire();
        Ok(())
    }

    /// Whether all work enqueued so far has ended.
    pub(crate) fn is_idle(&self) -> HipResult<bool> {
        Ok(self.last()?.is_none())
    }

    /// Whether the stream's operations are recorded into a graph instead of being carried out.
    pub(crate) fn is_capturing(&self) -> bool {
        self.capturing.load(Ordering::Acquire)
    }

    /// The capture in progress, for reading and changing.
    pub(crate) fn capture(&self) -> MutexGuard<'_, Option<Capture>> {
        lock(&self.capture)
    }

    /// Starts capturing or, with `None`, ends it.
    pub(crate) fn set_capture(&self, capture: Option<Capture>) -> Option<Capture> {
        let mut slot = lock(&self.capture);
        // Stored with the capture locked, so that nobody sees the flag without the capture.
        self.capturing.store(capture.is_some(), Ordering::Release);
        std::mem::replace(&mut *slot, capture)
    }

    /// Enqueues a call of a host function.
    pub(crate) fn host_call(&self, call: HostCall) -> HipResult {
        let mut step = self.step()?;
        let before = step.last()?;
        let done = self.signals.take()?;
        callback::enqueue(runtime::get()?, before.as_ref(), call, &done)?;
        step.ends_with(done, before.into_iter().collect());
        Ok(())
    }
}

impl StreamState {
    /// Removes finished steps, oldest first.
    fn retire(&mut self) {
        while self
            .in_flight
            .front()
            .is_some_and(|step| step.done.is_done())
        {
            self.in_flight.pop_front();
        }
    }
}

/// A step that is being added to a stream.
pub(crate) struct Step<'a> {
    stream: &'a Stream,
    state: MutexGuard<'a, StreamState>,
}

impl<'a> Step<'a> {
    fn signal(&self) -> HipResult<Arc<Signal>> {
        self.stream.signals.take()
    }

    /// Enqueues a barrier packet that waits for `deps`; returns its completion signal.
    fn barrier(&mut self, deps: Vec<Arc<Signal>>) -> HipResult<Arc<Signal>> {
        let done = self.signal()?;
        // A barrier packet has five slots for signals; more of them take packets in a row, of which the last one
        // signals.
        let mut groups = deps.chunks(5).peekable();
        loop {
            let group = groups.next().unwrap_or_default();
            let more = groups.peek().is_some();
            let mut packet = BarrierPacket {
                header: packet_type::BARRIER_AND | ORDERED,
                completion_signal: if more { 0 } else { done.handle() },
                ..BarrierPacket::default()
            };
            for (slot, signal) in packet.dep_signal.iter_mut().zip(group) {
                *slot = signal.handle();
            }
            // SAFETY: the signals are kept until `done` has fallen.
            unsafe { self.stream.queue.submit(&packet) };
            if !more {
                break;
            }
        }
        self.state.in_flight.push_back(InFlight {
            done: Arc::clone(&done),
            _waits_for: deps,
        });
        self.state.tail = Tail::Packet(Some(Arc::clone(&done)));
        Ok(done)
    }

    /// Signals of steps outside the hardware queue that the next packet must wait for.
    fn outside(&mut self) -> Vec<Arc<Signal>> {
        let mut deps = std::mem::take(&mut self.state.waits);
        if let Tail::Signal(signal) = &self.state.tail {
            deps.push(Arc::clone(signal));
        }
        // Signals that have fallen would only take slots of barrier packets.
        deps.retain(|signal| !signal.is_done());
        deps
    }

    /// Signal of the last step, made now if the step has none; `None` when all work has ended.
    pub(crate) fn last(&mut self) -> HipResult<Option<Arc<Signal>>> {
        self.state.waits.retain(|signal| !signal.is_done());
        // A wait for another stream is the stream's last step even if nothing has been enqueued behind it.
        if !self.state.waits.is_empty() {
            let deps = self.outside();
            return self.barrier(deps).map(Some);
        }
        let signal = match &self.state.tail {
            Tail::Idle => return Ok(None),
            // Kernels have no signals of their own, which nearly nobody waits for: a barrier behind the kernel gets one
            // when somebody does.
            Tail::Packet(None) => return self.barrier(Vec::new()).map(Some),
            Tail::Packet(Some(signal)) | Tail::Signal(signal) => Arc::clone(signal),
        };
        if signal.is_done() {
            self.state.tail = Tail::Idle;
            return Ok(None);
        }
        Ok(Some(signal))
    }

    /// Enqueues a barrier with a signal of its own, whose end time is that at which the stream reached it.
    pub(crate) fn mark(&mut self) -> HipResult<Arc<Signal>> {
        let deps = self.outside();
        self.barrier(deps)
    }

    /// Waits for all work before this step.
    pub(crate) fn drain(&mut self) -> HipResult {
        if let Some(signal) = self.last()? {
            signal.wait();
            self.state.tail = Tail::Idle;
            self.state.retire();
        }
        Ok(())
    }

    /// Address of memory for the arguments of one kernel.
    pub(crate) fn kernargs(&mut self, size: usize) -> HipResult<usize> {
        if size > KernargRing::capacity() {
            return Err(code::INVALID_VALUE);
        }
        for _ in 0..2 {
            let ring = self.state.kernargs.as_mut().ok_or(code::INVALID_HANDLE)?;
            if let Some(address) = ring.take(size) {
                return Ok(address);
            }
            // The ring is full: only when all kernels have ended are their arguments free to be overwritten.
            self.drain()?;
            if let Some(ring) = self.state.kernargs.as_mut() {
                ring.reset();
            }
        }
        Err(code::OUT_OF_MEMORY)
    }

    /// Enqueues a kernel.
    ///
    /// # Safety
    /// The packet's kernel object and arguments are valid.
    pub(crate) unsafe fn dispatch(&mut self, packet: &KernelDispatchPacket) -> HipResult {
        let deps = self.outside();
        // A kernel packet has no slots for signals.
        if !deps.is_empty() {
            self.barrier(deps)?;
        }
        // SAFETY: by contract; the arguments lie in the ring, which is not reused before the kernel ended.
        unsafe { self.stream.queue.submit(packet) };
        self.state.tail = Tail::Packet(None);
        Ok(())
    }

    /// Signals that a copy on an engine has to wait for. `waits`: the host waits for the copy anyway, so it waits for
    /// kernels here as long as they are quick.
    pub(crate) fn before_copy(&mut self, waits: bool) -> HipResult<Vec<Arc<Signal>>> {
        if matches!(self.state.tail, Tail::Packet(_))
            && let Some(kernels) = self.last()?
        {
            if !waits {
                return Ok(vec![kernels]);
            }
            // Nothing is lost by the wait for a short kernel; a long one is left to the engine.
            let ticks = runtime::get()?.clock_hz.saturating_mul(HOST_WAIT_SECONDS);
            if !kernels.wait_for(ticks) {
                return Ok(vec![kernels]);
            }
            self.state.tail = Tail::Idle;
        }
        Ok(self.outside())
    }

    /// A new signal for a step outside the queue.
    pub(crate) fn pending(&self) -> HipResult<Arc<Signal>> {
        self.signal()
    }

    /// Makes a step outside the queue, which has been started, the last one of the stream.
    pub(crate) fn ends_with(&mut self, done: Arc<Signal>, waits_for: Vec<Arc<Signal>>) {
        self.state.in_flight.push_back(InFlight {
            done: Arc::clone(&done),
            _waits_for: waits_for,
        });
        self.state.tail = Tail::Signal(done);
    }

    /// The stream's state, for its staging buffer.
    pub(crate) fn state(&mut self) -> &mut StreamState {
        &mut self.state
    }

    /// The runtime's own kernels for this stream's device.
    pub(crate) fn blit(&self) -> HipResult<&'static blit::Blit> {
        self.stream.device.blit()
    }

    /// Address of the stream's `hsa_queue_t`, for kernel arguments that hold it.
    pub(crate) fn queue_address(&self) -> u64 {
        self.stream.queue.address()
    }

    /// Stream to which the step is added.
    pub(crate) fn stream(&self) -> &'a Stream {
        self.stream
    }
}

/// A thread's own null stream (`hipStreamPerThread`) on one device of one runtime.
struct ThreadStream {
    runtime: usize,
    device: usize,
    stream: Option<Arc<Stream>>,
}

impl Drop for ThreadStream {
    fn drop(&mut self) {
        // A thread's end must not wait for the device, nor touch what a fork has left behind.
        let current = runtime::existing().map_or(0, |r| std::ptr::from_ref(r) as usize);
        if let Some(stream) = self.stream.take()
            && (current != self.runtime || !stream.is_idle().unwrap_or(false))
        {
            std::mem::forget(stream);
        }
    }
}

thread_local! {
    static OWN: std::cell::RefCell<Vec<ThreadStream>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// The calling thread's own stream on its current device.
pub(crate) fn per_thread() -> HipResult<Arc<Stream>> {
    let runtime = std::ptr::from_ref(runtime::get()?) as usize;
    let device = runtime::current()?;
    let known = OWN.with_borrow(|list| {
        // A thread may use devices in turn, and a forked child has another runtime than its parent.
        let same = |own: &&ThreadStream| own.runtime == runtime && own.device == device.ordinal;
        list.iter().find(same).and_then(|own| own.stream.clone())
    });
    if let Some(stream) = known {
        return Ok(stream);
    }
    let stream = Stream::new(device, 0, 0, false)?;
    let own = ThreadStream {
        runtime,
        device: device.ordinal,
        stream: Some(Arc::clone(&stream)),
    };
    OWN.with_borrow_mut(|list| list.push(own));
    Ok(stream)
}

/// The stream behind a handle; null and `hipStreamLegacy` are the current device's null stream.
pub(crate) fn resolve(handle: Handle) -> HipResult<Arc<Stream>> {
    match handle as usize {
        0 | STREAM_LEGACY => runtime::current()?.legacy_stream(),
        STREAM_PER_THREAD => per_thread(),
        other => read(&runtime::get()?.streams)
            .get(&other)
            .cloned()
            .ok_or(code::CONTEXT_IS_DESTROYED),
    }
}

/// The stream of a handle, for functions whose null stream is the thread's own.
pub(crate) fn resolve_spt(handle: Handle) -> HipResult<Arc<Stream>> {
    if handle.is_null() {
        per_thread()
    } else {
        resolve(handle)
    }
}
