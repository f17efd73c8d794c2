//! Memory for kernel arguments of a stream: a ring that is reused once the stream has caught up.

use crate::hip::error::HipResult;
use crate::hip::hsa;

/// Size of a stream's ring in bytes.
const RING_BYTES: usize = 1 << 20;
/// Alignment of argument blocks in bytes, a cache line.
const ALIGN: usize = 64;

/// Bump allocation in memory the device reads arguments from.
#[derive(Debug)]
pub(crate) struct KernargRing {
    base: usize,
    used: usize,
}

impl KernargRing {
    pub(crate) fn new(pool: u64, agent: u64) -> HipResult<Self> {
        let base = hsa::allocate(pool, RING_BYTES)?;
        hsa::allow_access(&[agent], base)?;
        Ok(Self { base, used: 0 })
    }

    /// Offset of room for `size` bytes; `None` when the ring is full until the stream has finished.
    pub(crate) fn take(&mut self, size: usize) -> Option<usize> {
        let end = self.used.checked_add(size.next_multiple_of(ALIGN))?;
        if end > RING_BYTES {
            return None;
        }
        let address = self.base + self.used;
        self.used = end;
        Some(address)
    }

    /// Empties the ring. The stream must have finished.
    pub(crate) fn reset(&mut self) {
        self.used = 0;
    }

    /// Size in bytes of the largest argument block that a ring can hold.
    pub(crate) fn capacity() -> usize {
        RING_BYTES
    }
}

impl Drop for KernargRing {
    fn drop(&mut self) {
        // Memory that HSA does not find has been freed already.
        let _ = hsa::free(self.base);
    }
}
