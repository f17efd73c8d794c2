//! User-mode queues: rings of AQL packets that a doorbell submits.

use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError, RwLockReadGuard};

use super::agents::{self, Agent, PoolKind};
use super::aql::{
    AmdQueue, HsaQueue, KernelDispatchPacket, PACKET_BYTES, packet_type, signal_kind,
};
use super::intercept::Intercept;
use super::machine::{machine, processors_per_gpu};
use super::memory::Use;
use super::observe::{self, DispatchInfo, Observer, QueueInfo, Token};
use super::processor::Processor;
use super::replay::{Candidate, Turn};
use super::signal::Signal;
use rpd_gfx::isa::WaveSync;

const MAGIC: u64 = 0x7270_645f_7175_6575;
/// Token of a packet that has not been reported to the observer.
const UNSEEN: Token = Token::MAX;
/// Token of a packet that a thread is reporting to the observer.
const CLAIMED: Token = Token::MAX - 1;
/// Bit of `queue_properties`: record times in completion signals.
const PROPERTY_PROFILING: u32 = 1 << 3;

/// Error callback of a queue: status, queue, the program's data.
pub(crate) type ErrorCallback = unsafe extern "C" fn(u32, *mut HsaQueue, *mut core::ffi::c_void);

/// Whether a queue processes packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum QueueState {
    /// Packets are processed.
    Active = 0,
    /// Stopped by the program.
    Inactive = 1,
    /// Stopped by an error.
    Failed = 2,
    /// `hsa_queue_destroy` was called; packets are no longer processed.
    Destroyed = 3,
}

/// Reason for which a queue could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueueError {
    /// No memory or signal left.
    OutOfResources,
}

/// A queue. Its address is that of the `hsa_queue_t` and `amd_queue_t` that programs get.
#[repr(C, align(64))]
pub(crate) struct Queue {
    /// The part that programs and kernels read and write.
    pub(crate) amd: AmdQueue,
    magic: AtomicU64,
    ring: usize,
    mask: u64,
    agent: &'static Agent,
    doorbell: Signal,
    owns_doorbell: bool,
    inactive_signal: Signal,
    processor: Option<&'static Processor>,
    callback: Option<ErrorCallback>,
    callback_data: usize,
    doorbell_end: Mutex<u64>,
    ready: AtomicU64,
    tokens: Box<[AtomicU64]>,
    /// Index of a packet whose kernel has run already, with begin and end in device ticks.
    executed: Mutex<Option<(u64, (u64, u64))>>,
    state: AtomicU32,
    stopping: AtomicBool,
    /// Whether the processor works on a packet of this queue at present.
    pub(crate) busy: AtomicBool,
    /// Completions handed to the signal handler and not yet released; later completions must queue up behind them.
    pub(crate) deferred: AtomicU64,
    /// Scratch memory of the queue in bytes for each lane of all waves.
    pub(crate) scratch_per_lane: AtomicU32,
    /// Synchronisation across workgroups on which waves of the queue's dispatches wait.
    pub(crate) wave_sync: WaveSync,
    cu_mask: Mutex<Vec<u32>>,
    /// Interception of the queue's packets by functions of the program, which write to another queue.
    intercept: OnceLock<Box<Intercept>>,
    /// Queue that programs have a handle of, on a queue behind an interception.
    front: OnceLock<&'static Queue>,
}

/// Parameters of a new queue.
#[derive(Clone, Copy)]
pub(crate) struct QueueConfig {
    /// Agent that consumes the packets.
    pub(crate) agent: &'static Agent,
    /// Packets in the ring, a power of two.
    pub(crate) size: u32,
    /// `hsa_queue_type_t`.
    pub(crate) kind: u32,
    /// `hsa_queue_feature_t` bits.
    pub(crate) features: u32,
    /// Function called on errors of the queue.
    pub(crate) callback: Option<ErrorCallback>,
    /// Argument for the error callback.
    pub(crate) callback_data: usize,
    /// The program's own doorbell, for queues it processes itself.
    pub(crate) soft_doorbell: Option<Signal>,
    /// Queue that the new one intercepts; `None` for an ordinary queue.
    pub(crate) behind: Option<&'static Queue>,
}

impl Queue {
    /// Makes a queue and has its processor look at it from now on.
    pub(crate) fn create(config: &QueueConfig) -> Result<&'static Self, QueueError> {
        let machine = machine();
        // Programs write packets from the host while the packet processor reads them.
        let system = agents::pool_of(0, PoolKind::SystemFine).ok_or(QueueError::OutOfResources)?;
        let allocate = |bytes| {
            machine
                .memory
                .allocate(system, bytes, Use::Internal, u64::MAX)
                .map_err(|_| QueueError::OutOfResources)
        };
        // Memory of a destroyed queue is used again, but never unmapped: a program with a stale handle reaches a queue
        // without the magic, not unmapped memory.
        let spare = machine
            .spare_queues
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let address = match spare {
            Some(address) => address,
            None => allocate(size_of::<Self>())?.base,
        };
        let ring = allocate(config.size as usize * PACKET_BYTES)?.base;
        // Fresh memory is zero, which would be the header of a vendor packet.
        for slot in 0..config.size as usize {
            // SAFETY: the slot lies in the ring just allocated.
            unsafe { ((ring + slot * PACKET_BYTES) as *mut u16).write(packet_type::INVALID) };
        }
        let signal = |value, kind| {
            machine
                .signals
                .create(value, kind, address as u64)
                .ok_or(QueueError::OutOfResources)
        };
        let doorbell = match config.soft_doorbell {
            Some(doorbell) => doorbell,
            None => signal(0, signal_kind::DOORBELL)?,
        };
        let inactive_signal = signal(0, signal_kind::USER)?;
        // A queue in front of another one is the same queue for tools and messages.
        let id = match config.behind {
            Some(behind) => behind.amd.hsa_queue.id,
            None => machine.next_queue.fetch_add(1, Ordering::Relaxed),
        };
        // Of an intercepted pair only the queue behind has packets for a processor; a soft queue's packets are the
        // program's.
        let hardware = config.soft_doorbell.is_none() && config.behind.is_none();
        let processor = hardware.then(|| {
            let gpu = config.agent.index - 1;
            least_loaded(gpu)
        });
        let amd = AmdQueue {
            hsa_queue: HsaQueue {
                kind: config.kind,
                features: config.features,
                base_address: ring as u64,
                doorbell_signal: doorbell.handle(),
                size: config.size,
                reserved1: 0,
                id,
            },
            caps: 0,
            reserved1: [0; 3],
            write_dispatch_id: AtomicU64::new(0),
            group_segment_aperture_base_hi: (super::exec::SHARED_APERTURE >> 32) as u32,
            private_segment_aperture_base_hi: (super::exec::PRIVATE_APERTURE >> 32) as u32,
            max_cu_id: config.agent.cus.saturating_sub(1),
            max_wave_id: config.agent.max_waves_per_cu.saturating_sub(1),
            max_legacy_doorbell_dispatch_id_plus_1: 0,
            legacy_doorbell_lock: 0,
            reserved2: [0; 9],
            read_dispatch_id: AtomicU64::new(0),
            // Offset of `read_dispatch_id` in the struct, by which device code finds the struct from the field.
            read_dispatch_id_field_base_byte_offset: 128,
            compute_tmpring_size: 0,
            scratch_resource_descriptor: [0; 4],
            scratch_backing_memory_location: AtomicU64::new(0),
            scratch_backing_memory_byte_size: AtomicU64::new(0),
            scratch_wave64_lane_byte_size: 0,
            // Bit 1: 64-bit pointers.
            queue_properties: AtomicU32::new(1 << 1),
            scratch_last_used_index: 0,
            queue_inactive_signal: inactive_signal.handle(),
            reserved4: [0; 2],
            alt_scratch_last_used_index: 0,
            alt_scratch_backing_memory_location: 0,
            alt_scratch_backing_memory_byte_size: 0,
            alt_scratch_dispatch_limit: [0; 3],
            alt_scratch_wave64_lane_byte_size: 0,
            alt_compute_tmpring_size: 0,
            reserved5: 0,
        };
        let place = address as *mut Self;
        // SAFETY: the block is large and aligned enough (a page), and not shared.
        let queue: &'static Self = unsafe {
            place.write(Self {
                amd,
                magic: AtomicU64::new(MAGIC),
                ring,
                mask: u64::from(config.size) - 1,
                agent: config.agent,
                doorbell,
                owns_doorbell: config.soft_doorbell.is_none(),
                inactive_signal,
                processor,
                callback: config.callback,
                callback_data: config.callback_data,
                doorbell_end: Mutex::new(0),
                ready: AtomicU64::new(0),
                tokens: (0..config.size).map(|_| AtomicU64::new(UNSEEN)).collect(),
                executed: Mutex::default(),
                state: AtomicU32::new(QueueState::Active as u32),
                stopping: AtomicBool::new(false),
                busy: AtomicBool::new(false),
                deferred: AtomicU64::new(0),
                scratch_per_lane: AtomicU32::new(0),
                wave_sync: WaveSync::new(),
                cu_mask: Mutex::default(),
                intercept: OnceLock::new(),
                front: OnceLock::new(),
            });
            &*place
        };
        // Set before the queue can be found by its address, so that no packet passes by the interception.
        if let Some(behind) = config.behind {
            let _ = behind.front.set(queue);
            let _ = queue.intercept.set(Box::new(Intercept::new(queue, behind)));
        }
        machine
            .queues
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .push(queue);
        // Last: the processor may take packets as soon as it knows the queue.
        if let Some(processor) = processor {
            processor.attach(queue);
        }
        if hardware && let Some(observer) = observe::get() {
            observer.queue_created(&queue.info());
        }
        Ok(queue)
    }

    /// Ends a queue: packets not yet processed are dropped, and observed completions are delivered before this returns.
    pub(crate) fn destroy(&'static self) {
        let machine = machine();
        // First the way in is closed, then the queue behind, which may still have packets that passed.
        if let Some(intercept) = self.intercept.get() {
            intercept.end();
        }
        self.stop(QueueState::Destroyed);
        // Observers have references to the queue. On the handler's own thread the wait would never end.
        while self.deferred.load(Ordering::Acquire) != 0 && !machine.handler.is_current_thread() {
            std::thread::yield_now();
        }
        if self.processor.is_some()
            && let Some(observer) = observe::get()
        // Only queues with a processor were reported when they were made.
        {
            observer.queue_destroyed(&self.info());
        }
        if let Some(processor) = self.processor {
            processor.detach(self);
        }
        machine
            .queues
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|queue| !std::ptr::eq(*queue, self));
        // Cleared before the memory is given back: handles that programs still have become invalid.
        self.magic.store(0, Ordering::Release);
        if self.owns_doorbell {
            machine.signals.destroy(self.doorbell);
        }
        machine.signals.destroy(self.inactive_signal);
        machine.memory.free(self.ring, Use::Internal);
        if self.scratch_per_lane.load(Ordering::Relaxed) != 0 {
            let scratch = self
                .amd
                .scratch_backing_memory_location
                .load(Ordering::Relaxed);
            machine.memory.free(scratch as usize, Use::Internal);
        }
        let mut spare = machine
            .spare_queues
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        spare.push(self.address() as usize);
    }

    /// Flag that becomes true when a running kernel is to be given up.
    pub(crate) fn stop_flag(&self) -> &AtomicBool {
        &self.stopping
    }

    /// Stops processing; a kernel that is running is given up.
    pub(crate) fn stop(&self, state: QueueState) {
        self.state.store(state as u32, Ordering::SeqCst);
        self.stopping.store(true, Ordering::SeqCst);
        // The processor stops a queue in an error, and would wait for itself.
        let own = self.processor.is_some_and(Processor::is_current_thread);
        while !own && self.busy.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
    }

    /// Queue whose doorbell refers to this address.
    pub(crate) fn from_address(address: u64) -> Option<&'static Self> {
        if address == 0 || !address.is_multiple_of(align_of::<Self>() as u64) {
            return None;
        }
        // SAFETY: doorbells only hold addresses of queue blocks, which are never unmapped.
        let queue = unsafe { &*(address as *const Self) };
        (queue.magic.load(Ordering::Acquire) == MAGIC).then_some(queue)
    }

    /// Address of the queue, which is its HSA handle.
    pub(crate) fn address(&self) -> u64 {
        std::ptr::from_ref(self) as u64
    }

    /// The `hsa_queue_t` for the program.
    pub(crate) fn hsa_queue(&self) -> *mut HsaQueue {
        std::ptr::from_ref(&self.amd.hsa_queue).cast_mut()
    }

    /// The `hsa_queue_t` that the program has a handle of, also for a queue behind another.
    pub(crate) fn public_queue(&self) -> *mut HsaQueue {
        self.front.get().copied().unwrap_or(self).hsa_queue()
    }

    /// The interception between this queue and the one behind it.
    pub(crate) fn intercept(&self) -> Option<&Intercept> {
        self.intercept.get().map(Box::as_ref)
    }

    /// The queue that a processor serves: the one behind this one, if there is one.
    pub(crate) fn served(&'static self) -> &'static Self {
        self.intercept().map_or(self, Intercept::behind)
    }

    /// Agent that consumes the packets.
    pub(crate) fn agent(&self) -> &'static Agent {
        self.agent
    }

    /// The description of the queue for observers.
    pub(crate) fn info(&self) -> QueueInfo {
        QueueInfo {
            handle: self.address(),
            agent: self.agent.handle(),
        }
    }

    /// The error callback and its data.
    pub(crate) fn callback(&self) -> Option<(ErrorCallback, usize)> {
        self.callback.map(|callback| (callback, self.callback_data))
    }

    /// Whether packets are processed.
    pub(crate) fn is_active(&self) -> bool {
        self.state.load(Ordering::SeqCst) == QueueState::Active as u32
    }

    /// Marks the queue as stopped by an error.
    pub(crate) fn fail(&self) {
        self.state
            .store(QueueState::Failed as u32, Ordering::SeqCst);
        self.inactive_signal.store(1);
    }

    /// Stores whether the program requested times in completion signals, where hardware would look; they are
    /// recorded in any case.
    pub(crate) fn set_profiling(&self, enable: bool) {
        let properties = &self.amd.queue_properties;
        if enable {
            properties.fetch_or(PROPERTY_PROFILING, Ordering::Relaxed);
        } else {
            properties.fetch_and(!PROPERTY_PROFILING, Ordering::Relaxed);
        }
    }

    /// Mask of compute units the program chose; empty when it chose none.
    pub(crate) fn cu_mask(&self) -> Vec<u32> {
        let mask = self.cu_mask.lock().unwrap_or_else(PoisonError::into_inner);
        mask.clone()
    }

    /// Stores the program's choice of compute units.
    pub(crate) fn set_cu_mask(&self, mask: Vec<u32>) {
        *self.cu_mask.lock().unwrap_or_else(PoisonError::into_inner) = mask;
    }

    /// Index of the first packet that may not be processed yet.
    #[inline]
    pub(crate) fn ready(&self) -> u64 {
        self.ready.load(Ordering::Acquire)
    }

    /// Address of the packet at a queue index, which wraps around the ring.
    #[inline]
    pub(crate) fn packet_address(&self, index: u64) -> usize {
        self.ring + (index & self.mask) as usize * PACKET_BYTES
    }

    /// Header of a packet: the first 16 bits of its slot.
    #[inline]
    pub(crate) fn header(&self, index: u64) -> &AtomicU16 {
        // SAFETY: the slot is in the ring, which lives as long as the queue, and its header is aligned.
        unsafe { AtomicU16::from_ptr(self.packet_address(index) as *mut u16) }
    }

    /// Copies a packet out of the ring.
    ///
    /// # Safety
    /// `T` must be a packet format, and the slot must not be written meanwhile.
    pub(crate) unsafe fn packet<T: Copy>(&self, index: u64) -> T {
        debug_assert_eq!(size_of::<T>(), PACKET_BYTES);
        // SAFETY: the slot is in the ring and aligned to 64 bytes; packet formats are plain integers.
        unsafe { (self.packet_address(index) as *const T).read_volatile() }
    }

    /// Removes the observer's token of a packet; zero if the packet was not reported.
    pub(crate) fn take_token(&self, index: u64) -> Token {
        let slot = &self.tokens[(index & self.mask) as usize];
        match slot.swap(UNSEEN, Ordering::AcqRel) {
            UNSEEN | CLAIMED => 0,
            token => token,
        }
    }

    /// Begin and end of a packet whose kernel has run already, in device ticks.
    pub(crate) fn take_executed(&self, index: u64) -> Option<(u64, u64)> {
        let mut executed = self.executed.lock().unwrap_or_else(PoisonError::into_inner);
        Some(executed.take_if(|(known, _)| *known == index)?.1)
    }

    /// Whether all submitted packets are processed, and their completions delivered. Stopped queues are idle.
    pub(crate) fn is_idle(&self) -> bool {
        if self.processor.is_none() || !self.is_active() {
            return true;
        }
        self.amd.read_dispatch_id.load(Ordering::SeqCst) >= self.ready()
            && !self.busy.load(Ordering::SeqCst)
            && self.deferred.load(Ordering::SeqCst) == 0
    }

    /// The doorbell: submits all packets up to `last`, as far as they are written.
    pub(crate) fn ring(&'static self, last: i64) {
        if let Some(intercept) = self.intercept.get() {
            intercept.ring();
            return;
        }
        if last < 0 {
            return;
        }
        let last = last as u64;
        // Packets of other queues (intercepted, soft) are observed where they are processed, or not at all.
        let observer = observe::get().filter(|_| self.processor.is_some());
        // Held until the packets are submitted: no replay may begin in between.
        let _turn = observer.and_then(|observer| self.observe_up_to(observer, last));
        let mut end = self
            .doorbell_end
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let read = self.amd.read_dispatch_id.load(Ordering::Acquire);
        // Doorbells may ring in another order than packets were written, and never beyond the ring.
        *end = (*end).max(last + 1).min(read + self.mask + 1);
        let mut ready = self.ready.load(Ordering::Relaxed);
        // A packet whose header is not written yet holds back all behind it; the thread that writes it rings again.
        while ready < *end && self.is_written(ready) {
            if observer.is_some() {
                let token = self.tokens[(ready & self.mask) as usize].load(Ordering::Acquire);
                // Its writer has yet to ring, or is still reporting it to the observer; it calls this afterwards.
                if token == UNSEEN || token == CLAIMED {
                    break;
                }
            }
            ready += 1;
        }
        self.ready.store(ready, Ordering::Release);
        drop(end);
        if let Some(processor) = self.processor {
            processor.notify();
        }
    }

    fn is_written(&self, index: u64) -> bool {
        self.header(index).load(Ordering::Acquire) & 0xff != packet_type::INVALID
    }

    /// Passes the written packets that end with `last` to the observer: those the ringing thread wrote. With replays, the result
    /// keeps them away.
    fn observe_up_to(
        &'static self,
        observer: &dyn Observer,
        last: u64,
    ) -> Option<Turn<RwLockReadGuard<'static, ()>>> {
        let unseen = |index: u64| {
            self.is_written(index)
                && self.tokens[(index & self.mask) as usize].load(Ordering::Acquire) == UNSEEN
        };
        // Another thread has reported these packets, and has rung or will.
        if last < self.ready() || !unseen(last) {
            return None;
        }
        // The ringing thread wrote the packets just before `last`; earlier ones belong to threads that report them on
        // their own thread, with their own correlation id.
        let mut first = last;
        while first > self.ready() && unseen(first - 1) {
            first -= 1;
        }
        let mut turn = None;
        for index in first..=last {
            let slot = &self.tokens[(index & self.mask) as usize];
            // Two threads may ring for the same packet.
            let claim = slot.compare_exchange(UNSEEN, CLAIMED, Ordering::AcqRel, Ordering::Acquire);
            if claim.is_err() {
                continue;
            }
            let is_dispatch =
                self.header(index).load(Ordering::Acquire) & 0xff == packet_type::KERNEL_DISPATCH;
            // SAFETY: the packet is written and cannot be processed before its slot has a token.
            let packet: Option<KernelDispatchPacket> =
                is_dispatch.then(|| unsafe { self.packet(index) });
            let dispatch = packet.as_ref().map(|packet| DispatchInfo {
                queue: self.info(),
                packet_id: index,
                packet,
            });
            if observer.replays() && turn.is_none() {
                let alone = dispatch.as_ref().filter(|_| first == last);
                let ticks = alone.and_then(|dispatch| {
                    let candidate = Candidate::new(self, index, dispatch.packet);
                    observer.replay(dispatch, &candidate)
                });
                if let Some(ticks) = ticks {
                    let executed = self.executed.lock();
                    *executed.unwrap_or_else(PoisonError::into_inner) = Some((index, ticks));
                    slot.store(0, Ordering::Release);
                    return None;
                }
                turn = machine().submissions[self.agent.index - 1].share();
            }
            let token = dispatch.map_or(0, |dispatch| observer.dispatch_enqueued(&dispatch));
            // Two values stand for states of the slot, so that a token must be smaller.
            slot.store(token.min(CLAIMED - 1), Ordering::Release);
        }
        turn
    }
}

fn least_loaded(gpu: usize) -> &'static Processor {
    let machine = machine();
    let queues = machine
        .queues
        .read()
        .unwrap_or_else(PoisonError::into_inner);
    // Streams of one program should run at the same time: packets of queues on one processor wait for each other.
    let load = |index: usize| {
        queues
            .iter()
            .filter(|queue| queue.processor.is_some_and(|p| p.is(gpu, index)))
            .count()
    };
    let index = (0..processors_per_gpu()).min_by_key(|&index| load(index));
    drop(queues);
    machine.processor(gpu, index.unwrap_or(0))
}
