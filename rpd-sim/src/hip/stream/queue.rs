//! Hardware queues of a device, shared by its streams.

use std::sync::{Arc, Mutex};

use crate::hip::error::HipResult;
use crate::hip::hsa;
use crate::hip::runtime::lock;
use crate::hip::settings;
use crate::hsa::types::HsaQueue;

/// Values of `hsa_amd_queue_priority_t` for the stream priorities -1, 0, 1.
const HSA_PRIORITY: [u32; 3] = [2, 1, 0];

/// A hardware queue that streams share.
#[derive(Debug)]
pub(crate) struct HwQueue {
    queue: *mut HsaQueue,
    submit: Mutex<()>,
}

// SAFETY: the queue is used through HSA's functions, and written under the lock.
unsafe impl Send for HwQueue {}
// SAFETY: as above.
unsafe impl Sync for HwQueue {}

impl HwQueue {
    /// Writes a packet to the queue, in the order of the calls.
    ///
    /// # Safety
    /// Memory that the packet refers to stays valid until the packet has been processed.
    pub(crate) unsafe fn submit<P: hsa::Packet>(&self, packet: &P) {
        let _serial = lock(&self.submit);
        // SAFETY: queues live as long as the process; the rest is the caller's promise.
        unsafe { hsa::queue_submit(self.queue, packet) };
    }

    /// Address of the queue's `hsa_queue_t`.
    pub(crate) fn address(&self) -> u64 {
        self.queue as u64
    }
}

/// Hardware queues of one device, which its streams share.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    by_priority: Mutex<[Vec<Arc<HwQueue>>; 3]>,
}

impl Queues {
    /// A queue for a new stream: a new queue as long as the limit permits, then the one with the fewest streams.
    pub(crate) fn acquire(&self, agent: u64, priority: i32) -> HipResult<Arc<HwQueue>> {
        let level = (priority.clamp(-1, 1) + 1) as usize;
        let mut all = lock(&self.by_priority);
        let queues = &mut all[level];
        // A queue whose last stream has gone is taken before another one is made.
        if let Some(free) = queues.iter().find(|queue| Arc::strong_count(queue) == 1) {
            return Ok(Arc::clone(free));
        }
        if queues.len() < settings::get().queues {
            let queue = hsa::queue_create(agent)?;
            if level != 1 {
                hsa::queue_set_priority(queue, HSA_PRIORITY[level])?;
            }
            let made = Arc::new(HwQueue {
                queue,
                submit: Mutex::new(()),
            });
            queues.push(Arc::clone(&made));
            return Ok(made);
        }
        let least = queues.iter().min_by_key(|queue| Arc::strong_count(queue));
        Ok(Arc::clone(least.expect("the list is not empty")))
    }
}
