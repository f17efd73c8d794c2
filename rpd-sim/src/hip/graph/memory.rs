//! Memory of graphs. It is allocated when its node is added, so that the node's address is known, and is in use from
//! the allocation node's turn until a free node, `hipFree` or `hipFreeAsync`.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::hip::device::Device;
use crate::hip::error::{HipResult, code};
use crate::hip::memory::{self, AllocationKind};
use crate::hip::runtime::lock;

/// Memory of one allocation node; freed when no graph has the node and the program does not use the memory.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) device: &'static Device,
    pub(crate) address: usize,
    pub(crate) size: usize,
}

impl Block {
    pub(crate) fn new(device: &'static Device, size: usize) -> HipResult<Arc<Self>> {
        if size == 0 {
            return Err(code::INVALID_VALUE);
        }
        let address = memory::take_device(device, size, false)?;
        memory::note(
            address,
            size,
            AllocationKind::Graph,
            device.ordinal,
            0,
            address,
        )?;
        device.graph_memory.reserved.add(size);
        Ok(Arc::new(Self {
            device,
            address,
            size,
        }))
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        memory::forget(self.address, |kind| kind == AllocationKind::Graph);
        // Memory that HSA does not find has been freed already.
        let _ = memory::give_device(self.device, self.address, self.size);
        self.device.graph_memory.reserved.subtract(self.size);
    }
}

/// A number of bytes and its maximum so far.
#[derive(Debug, Default)]
pub(crate) struct Level {
    now: AtomicU64,
    high: AtomicU64,
}

impl Level {
    fn add(&self, bytes: usize) {
        let now = self.now.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        self.high.fetch_max(now, Ordering::Relaxed);
    }

    fn subtract(&self, bytes: usize) {
        self.now.fetch_sub(bytes as u64, Ordering::Relaxed);
    }
}

/// Memory of the graphs of one device (`hipGraphMemAttributeType`).
#[derive(Debug, Default)]
pub(crate) struct Usage {
    used: Level,
    reserved: Level,
}

impl Usage {
    /// The counter behind a `hipGraphMemAttributeType`.
    pub(crate) fn attribute(&self, attribute: u32) -> HipResult<&AtomicU64> {
        Ok(match attribute {
            0 => &self.used.now,
            1 => &self.used.high,
            2 => &self.reserved.now,
            3 => &self.reserved.high,
            _ => return Err(code::INVALID_VALUE),
        })
    }
}

/// The blocks that programs use, by address.
#[derive(Debug, Default)]
pub(crate) struct Blocks(Mutex<HashMap<usize, Arc<Block>>>);

impl Blocks {
    /// Executes an allocation node. Memory that is still in use since the last launch remains in use.
    pub(crate) fn begin_use(&self, block: &Arc<Block>) -> HipResult {
        if lock(&self.0)
            .insert(block.address, Arc::clone(block))
            .is_none()
        {
            block.device.graph_memory.used.add(block.size);
        }
        Ok(())
    }

    /// Ends the use of memory, by a free node or a call. Fails if the memory is not in use.
    pub(crate) fn end_use(&self, address: usize) -> HipResult {
        let block = lock(&self.0).remove(&address);
        let block = block.ok_or(code::INVALID_VALUE)?;
        block.device.graph_memory.used.subtract(block.size);
        Ok(())
    }
}
