//! Requests of kernels to the host: `printf`, and memory for `malloc` in kernels.
//!
//! The device libraries that compilers link into kernels and the runtime share a buffer for each hardware queue. It has packets, one for each
//! wave that can be on the device, in two stacks: a wave takes a free packet, writes its request and pushes it on the stack of
//! requests; a thread of the host answers and clears the packet's ready bit. The layout is that of the device libraries (`hostcall_impl.cl`).

use core::ffi::c_void;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::hip::device::Device;
use crate::hip::error::{HipResult, code};
use crate::hip::hsa;
use crate::hip::launch::printf::Messages;
use crate::hip::memory;
use crate::hip::runtime::lock;

/// Work-items of a wave, each with its own part of a packet's payload.
const LANES: usize = 64;
/// Words of a work-item's request, in whose place the answer is written.
type Slot = [u64; 8];

/// Numbers of the services that device code can request of the host.
mod service {
    pub(crate) const FUNCTION_CALL: u32 = 1;
    pub(crate) const PRINTF: u32 = 2;
    pub(crate) const DEVICE_MEMORY: u32 = 3;
}

/// Bit of [`Header::control`]: the packet waits for its answer.
const READY: u32 = 1;

/// Head of a packet.
#[repr(C)]
struct Header {
    /// Packet below this one on its stack, as a tagged index.
    next: AtomicU64,
    /// Lanes that made the request.
    lanes: AtomicU64,
    service: AtomicU32,
    control: AtomicU32,
}

/// Start of the buffer that device and host share: its lists and sizes.
#[repr(C)]
struct Head {
    headers: u64,
    payloads: u64,
    /// Handle of the signal that kernels add 1 to when they have pushed a request.
    doorbell: u64,
    free: AtomicU64,
    requests: AtomicU64,
    index_mask: u64,
    /// Unused by kernels.
    device: u64,
    /// A signal without a mailbox, so that kernels raise no interrupt: the thread that answers polls the stack of
    /// requests.
    signal: [u64; 8],
}

/// The shared buffer of one hardware queue.
#[derive(Debug, Clone, Copy)]
struct Buffer {
    head: *const Head,
    device: &'static Device,
}

// SAFETY: the buffer is never freed and changed through atomics, except for a packet's payload, which belongs to the host
// between its request and its answer.
unsafe impl Send for Buffer {}

impl Buffer {
    fn new(device: &'static Device) -> HipResult<Self> {
        // Every wave that can be on the device may have a request under way, so that none waits for a packet.
        let packets = (device.figures.compute_units * device.figures.waves_per_cu).max(2) as usize;
        let headers_at = size_of::<Head>().next_multiple_of(64);
        let payloads_at = (headers_at + packets * size_of::<Header>()).next_multiple_of(64);
        let bytes = payloads_at + packets * size_of::<[Slot; LANES]>();
        let base = hsa::allocate(device.staging_pool, bytes)?;
        // The buffer is in host memory: the answering thread polls it without a transfer.
        hsa::allow_access(&[device.agent], base)?;
        let mask = packets.next_power_of_two() as u64 - 1;
        // The packet with index 0 is at the bottom with a tag, because 0 ends a stack.
        let below = |n: usize| match n {
            0 => 0,
            1 => mask + 1,
            n => n as u64 - 1,
        };
        let head = base as *mut Head;
        // SAFETY: freshly allocated, large enough, and not known to anyone else yet.
        unsafe {
            head.write(Head {
                headers: (base + headers_at) as u64,
                payloads: (base + payloads_at) as u64,
                doorbell: (base + std::mem::offset_of!(Head, signal)) as u64,
                // The stack of free packets begins with the last packet, below which all others lie.
                free: AtomicU64::new(packets as u64 - 1),
                requests: AtomicU64::new(0),
                index_mask: mask,
                device: 0,
                // Kind (user) and value of a signal, no mailbox.
                signal: [1, 1, 0, 0, 0, 0, 0, 0],
            });
            let headers = (base + headers_at) as *mut Header;
            for n in 0..packets {
                headers.add(n).write(Header {
                    next: AtomicU64::new(below(n)),
                    lanes: AtomicU64::new(0),
                    service: AtomicU32::new(0),
                    control: AtomicU32::new(0),
                });
            }
        }
        Ok(Self { head, device })
    }

    /// Answers all pending requests; returns whether there were any.
    fn answer(&self, state: &mut HostcallState) -> bool {
        // SAFETY: buffers live as long as the process.
        let head = unsafe { &*self.head };
        // The whole stack is taken with one exchange: kernels push onto the empty one meanwhile.
        let mut next = head.requests.swap(0, Ordering::Acquire);
        let any = next != 0;
        while next != 0 {
            let index = (next & head.index_mask) as usize;
            // SAFETY: kernels push indices of packets that they took from this buffer.
            let header = unsafe { &*(head.headers as *const Header).add(index) };
            // SAFETY: as above; between request and answer the payload is the host's.
            let payload = unsafe { &mut *(head.payloads as *mut [Slot; LANES]).add(index) };
            // Read before the answer: the wave may use the packet again at once.
            next = header.next.load(Ordering::Relaxed);
            let lanes = header.lanes.load(Ordering::Relaxed);
            let service = header.service.load(Ordering::Relaxed);
            for (lane, slot) in payload.iter_mut().enumerate() {
                if lanes >> lane & 1 != 0 {
                    state.serve(self.device, service, slot);
                }
            }
            // Released after the payload is written, which the wave reads when it sees the bit.
            header.control.fetch_and(!READY, Ordering::Release);
        }
        any
    }
}

/// State that the requests of all kernels share.
#[derive(Debug, Default)]
struct HostcallState {
    messages: Messages,
    /// Memory given to kernels: address and size of the allocation, by the address that kernels have.
    memory: HashMap<u64, (usize, usize)>,
}

impl HostcallState {
    fn serve(&mut self, device: &'static Device, service: u32, slot: &mut Slot) {
        match service {
            service::FUNCTION_CALL => {
                let mut output = [0u64; 2];
                // SAFETY: the kernel passed the address of a host function of this type.
                let function: extern "C" fn(*mut u64, *const u64) =
                    unsafe { std::mem::transmute(slot[0] as *const c_void) };
                function(output.as_mut_ptr(), slot[1..].as_ptr());
                slot[..2].copy_from_slice(&output);
            }
            service::PRINTF => self.messages.append(slot),
            service::DEVICE_MEMORY if slot[0] != 0 => match self.memory.remove(&slot[0]) {
                // Memory that HSA does not find has been freed already.
                Some((base, size)) => drop(memory::give_device(device, base, size)),
                None => eprintln!(
                    "rpd-sim: a kernel freed {:#x}, which it did not allocate",
                    slot[0]
                ),
            },
            service::DEVICE_MEMORY => slot[0] = self.allocate(device, slot[1]).unwrap_or(0),
            other => {
                eprintln!(
                    "rpd-sim: a kernel requested service {other} of the host, which does not exist"
                );
                // The wave waits for an answer in any case.
                slot[..2].fill(0);
            }
        }
    }

    /// Memory for the device's `malloc`, aligned so that it finds the block of an address.
    fn allocate(&mut self, device: &'static Device, bytes: u64) -> HipResult<u64> {
        const BLOCK: usize = 2 << 20;
        // A block more than requested, so that an aligned address lies inside.
        let size = usize::try_from(bytes)
            .ok()
            .and_then(|bytes| bytes.checked_add(BLOCK))
            .ok_or(code::OUT_OF_MEMORY)?;
        let base = memory::take_device(device, size, false)?;
        let address = base.next_multiple_of(BLOCK) as u64;
        self.memory.insert(address, (base, size));
        Ok(address)
    }
}

/// The buffers of a process and the thread that answers requests in them.
#[derive(Debug, Default)]
pub(crate) struct Hostcalls {
    /// Buffers by the address of their HSA queue.
    buffers: Arc<Mutex<HashMap<u64, Buffer>>>,
    /// Whether the thread could be started; unset before the first use.
    thread: std::sync::OnceLock<bool>,
}

impl Hostcalls {
    /// Address of the buffer of a hardware queue, made when the first kernel that may need it is launched there.
    pub(crate) fn buffer(&self, device: &'static Device, queue: u64) -> HipResult<u64> {
        let address = {
            let mut buffers = lock(&self.buffers);
            let buffer = match buffers.entry(queue) {
                std::collections::hash_map::Entry::Occupied(known) => *known.get(),
                std::collections::hash_map::Entry::Vacant(new) => *new.insert(Buffer::new(device)?),
            };
            buffer.head as u64
        };
        let started = *self.thread.get_or_init(|| {
            let buffers = Arc::clone(&self.buffers);
            std::thread::Builder::new()
                .name("hip-hostcalls".into())
                .spawn(move || listen(&buffers))
                .is_ok()
        });
        if started {
            Ok(address)
        } else {
            Err(code::OPERATING_SYSTEM)
        }
    }
}

/// Answers requests until the process ends.
fn listen(buffers: &Mutex<HashMap<u64, Buffer>>) {
    /// Shortest and longest time between two looks at the stacks: right after a request, and after a long time without
    /// one.
    const PAUSES: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(4));
    let mut state = HostcallState::default();
    let mut pause = PAUSES.0;
    loop {
        // Copied, because a service may launch work that needs a new buffer.
        let all: Vec<Buffer> = lock(buffers).values().copied().collect();
        let mut any = false;
        for buffer in &all {
            any |= buffer.answer(&mut state);
        }
        pause = if any {
            PAUSES.0
        } else {
            (pause * 5 / 4).min(PAUSES.1)
        };
        std::thread::sleep(pause);
    }
}

/// Size in bytes of the head of the device's heap, which the device's `malloc` manages (`dm.cl` of the device
/// libraries).
const HEAP_BYTES: usize = 128 << 10;

/// Address of a device's heap, which is made when the first kernel that may need it is launched. The heap has no memory
/// of its own: kernels request blocks.
pub(crate) fn heap(device: &'static Device) -> HipResult<u64> {
    let mut heap = lock(&device.heap);
    if *heap == 0 {
        let base = memory::take_device(device, HEAP_BYTES, false)?;
        // SAFETY: freshly allocated memory of this size, which the host can write.
        unsafe { std::ptr::write_bytes(base as *mut u8, 0, HEAP_BYTES) };
        *heap = base as u64;
    }
    Ok(*heap)
}
