//! Addresses of the model: pages numbered in the order in which a dispatch touches them.
//!
//! Where the host puts memory differs from run to run; which channel and set of a cache an address falls
//! into must not.

use std::collections::HashMap;

/// Bytes of a page.
const PAGE: u64 = 4096;
/// First address of scratch.
const SCRATCH: u64 = 1 << 60;
/// First address of code.
const CODE: u64 = 1 << 61;

/// An address of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Address(pub(super) u64);

/// The pages touched so far.
pub(super) struct Pages<'a> {
    /// Whether a host address is in the device's own memory.
    local: &'a (dyn Fn(u64) -> bool + Sync),
    numbers: HashMap<u64, u64>,
    /// Whether each page is in the device's own memory.
    locals: Vec<bool>,
    recent: (u64, u64),
}

impl<'a> Pages<'a> {
    /// None touched.
    pub(super) fn new(local: &'a (dyn Fn(u64) -> bool + Sync)) -> Self {
        Self {
            local,
            numbers: HashMap::new(),
            locals: Vec::new(),
            recent: (u64::MAX, 0),
        }
    }

    /// Address of host memory.
    pub(super) fn global(&mut self, address: u64) -> Address {
        self.translate(address)
    }

    /// Address in scratch, which every slot for a workgroup has of its own.
    pub(super) fn scratch(&mut self, slot: u64, offset: u64) -> Address {
        self.translate(SCRATCH | slot << 36 | offset)
    }

    /// Address of code.
    pub(super) fn code(&mut self, offset: u64) -> Address {
        self.translate(CODE | offset)
    }

    /// Whether an address is in the device's own memory.
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
