//! The instructions of a loaded code object.

use super::InstructionSet;
use super::exec::PAGE;
use super::inst::Inst;
use super::{decode, gfx942};
use std::sync::OnceLock;

/// Instructions in a range of memory. They are decoded when they are first executed.
///
/// Every dword of a page is decoded as if an instruction began there. No assumption about the layout of the code is
/// needed, and a program counter is an index.
pub struct Program {
    start: u64,
    end: u64,
    set: InstructionSet,
    pages: Box<[OnceLock<Box<[Inst]>>]>,
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Program({:#x}..{:#x})", self.start, self.end)
    }
}

impl Program {
    /// The program in the `bytes` bytes of code at `start` (see [`crate::codeobj::Image::code`]).
    ///
    /// # Safety
    /// The range is readable, and does not change while the program exists.
    pub unsafe fn new(start: u64, bytes: u64, set: InstructionSet) -> Self {
        let dwords = (bytes / 4) as usize;
        Self {
            start,
            set,
            end: start + dwords as u64 * 4,
            pages: (0..dwords.div_ceil(PAGE))
                .map(|_| OnceLock::new())
                .collect(),
        }
    }

    /// Whether an address lies in the program.
    pub fn contains(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// Address of the first instruction.
    pub(super) fn start(&self) -> u64 {
        self.start
    }

    /// The instructions at dwords `page * PAGE..`; `None` after the end.
    pub(super) fn page(&self, page: usize) -> Option<&[Inst]> {
        let slot = self.pages.get(page)?;
        Some(slot.get_or_init(|| {
            let first = self.start + (page * PAGE * 4) as u64;
            let count = (((self.end - first) / 4) as usize).min(PAGE);
            (0..count as u64)
                .map(|n| decode(self.words(first + n * 4), self.set))
                .collect()
        }))
    }

    /// The dwords at an address; 0 outside of the program.
    pub(super) fn words(&self, address: u64) -> [u32; 3] {
        [0, 4, 8].map(|offset| {
            let at = address.wrapping_add(offset);
            if self.contains(at) && at % 4 == 0 {
                // SAFETY: by the contract of `new` the range is readable.
                unsafe { (at as *const u32).read_unaligned() }
            } else {
                0
            }
        })
    }
}

/// Decodes the instruction that starts with `words[0]`; the following words are 0 after the end of the code.
pub(super) fn decode(words: [u32; 3], set: InstructionSet) -> Inst {
    match set {
        InstructionSet::Gfx942 => gfx942::decode(words),
        InstructionSet::Gfx90a => decode::decode(words),
    }
}
