//! The model's addresses: pages are numbered in the order in which a dispatch first accesses them.
//!
//! Host addresses of memory differ from run to run. With numbered pages the channel and the cache set of an address
//! do not.

use std::collections::HashMap;

/// Returns the memory of a host address.
pub type MemoryOf<'a> = dyn Fn(u64) -> PageMemory + Sync + 'a;

/// Size of a page in bytes.
pub(super) const PAGE: u64 = 4096;
/// First address of scratch memory in the model.
const SCRATCH: u64 = 1 << 60;
/// First address of code in the model.
const CODE: u64 = 1 << 61;

/// Location of a page, as far as caches treat pages differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The device itself.
    Device,
    /// Another device.
    Peer,
    /// The host.
    Host,
}

/// The memory that a page belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageMemory {
    /// Owner of the memory.
    pub owner: Owner,
    /// Whether the memory is coherent while kernels run.
    pub fine_grained: bool,
}

impl PageMemory {
    /// The device's own memory, which is coherent when kernels end.
    pub const LOCAL: Self = Self {
        owner: Owner::Device,
        fine_grained: false,
    };

    /// The memory type with which drivers map pages of this memory.
    pub(super) fn memory_type(self) -> MemoryType {
        match (self.owner, self.fine_grained) {
            (Owner::Device, false) => MemoryType::ReadWrite,
            (Owner::Device, true) => MemoryType::Coherent,
            (_, false) => MemoryType::NonCoherent,
            (_, true) => MemoryType::Uncached,
        }
    }
}

/// Way in which the second-level cache treats a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum MemoryType {
    /// NC: cached, not coherent with others.
    NonCoherent,
    /// UC: not cached.
    Uncached,
    /// CC: cached, coherent by probes.
    Coherent,
    /// RW: cached, coherent with writes of other devices.
    ReadWrite,
}

impl MemoryType {
    /// Number of memory types.
    pub(super) const COUNT: usize = Self::ReadWrite as usize + 1;
}

/// An address in the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Address(pub(super) u64);

/// The pages that were accessed so far.
pub(super) struct Pages<'a> {
    /// Returns the memory of a host address.
    memory: &'a MemoryOf<'a>,
    numbers: HashMap<u64, u64>,
    /// The memory of each page.
    memories: Vec<PageMemory>,
    recent: (u64, u64),
}

impl<'a> Pages<'a> {
    /// An empty set of pages. `memory` returns the memory of a host address.
    pub(super) fn new(memory: &'a MemoryOf<'a>) -> Self {
        Self {
            memory,
            numbers: HashMap::new(),
            memories: Vec::new(),
            recent: (u64::MAX, 0),
        }
    }

    /// The model's address of a host address.
    pub(super) fn global(&mut self, address: u64) -> Address {
        self.translate(address)
    }

    /// The model's address of an offset in scratch memory. Each slot for a workgroup has scratch memory of its own.
    pub(super) fn scratch(&mut self, slot: u64, offset: u64) -> Address {
        self.translate(SCRATCH | slot << 36 | offset)
    }

    /// The model's address of an offset in the code.
    pub(super) fn code(&mut self, offset: u64) -> Address {
        self.translate(CODE | offset)
    }

    /// The memory of a model's address.
    pub(super) fn memory(&self, address: Address) -> PageMemory {
        let number = (address.0 / PAGE) as usize;
        let known = self.memories.get(number).copied();
        known.unwrap_or(PageMemory::LOCAL)
    }

    fn translate(&mut self, address: u64) -> Address {
        let page = address / PAGE;
        if self.recent.0 != page {
            let next = self.numbers.len() as u64;
            let number = *self.numbers.entry(page).or_insert(next);
            if number == next {
                self.memories.push(if address >= SCRATCH {
                    PageMemory::LOCAL
                } else {
                    (self.memory)(address)
                });
            }
            self.recent = (page, number);
        }
        Address(self.recent.1 * PAGE + address % PAGE)
    }
}
