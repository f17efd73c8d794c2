//! The model's addresses: pages are numbered in the order in which a dispatch first accesses them.
//!
//! Host addresses of memory differ from run to run. With numbered pages the channel and the cache set of an address
//! do not.

use std::collections::HashMap;

/// Size of a page in bytes.
const PAGE: u64 = 4096;
/// First address of scratch memory in the model.
const SCRATCH: u64 = 1 << 60;
/// First address of code in the model.
const CODE: u64 = 1 << 61;

/// An address in the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Address(pub(super) u64);

/// The pages that were accessed so far.
pub(super) struct Pages<'a> {
    /// Whether a host address is in the device's own memory.
    local: &'a (dyn Fn(u64) -> bool + Sync),
    numbers: HashMap<u64, u64>,
    /// For each page, whether it is in the device's own memory.
    locals: Vec<bool>,
    recent: (u64, u64),
}

impl<'a> Pages<'a> {
    /// No pages. `local` returns whether a host address is in the device's own memory.
    pub(super) fn new(local: &'a (dyn Fn(u64) -> bool + Sync)) -> Self {
        Self {
            local,
            numbers: HashMap::new(),
            locals: Vec::new(),
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

    /// Whether a model's address is in the device's own memory.
    pub(super) fn is_local(&self, address: Address) -> bool {
        let number = (address.0 / PAGE) as usize;
        self.locals.get(number).copied().unwrap_or(true)
    }

    fn translate(&mut self, address: u64) -> Address {
        let page = address / PAGE;
        if self.recent.0 != page {
            let next = self.numbers.len() as u64;
            let number = *self.numbers.entry(page).or_insert(next);
            if number == next {
                self.locals
                    .push(address >= SCRATCH || (self.local)(address));
            }
            self.recent = (page, number);
        }
        Address(self.recent.1 * PAGE + address % PAGE)
    }
}
