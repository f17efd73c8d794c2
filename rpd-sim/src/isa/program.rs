//! The instructions of a loaded code object.

/// Instructions in a range of memory, decoded when first reached.
#[derive(Debug)]
pub(crate) struct Program {
    start: u64,
    end: u64,
}

impl Program {
    /// A program of the `bytes` bytes of code at `start` (see [`crate::codeobj::Image::code`]).
    ///
    /// # Safety
    /// The range is readable and does not change as long as the program exists.
    pub(crate) unsafe fn new(start: u64, bytes: u64) -> Self {
        Self {
            start,
            end: start + bytes / 4 * 4,
        }
    }

    /// Whether an address lies in the program.
    pub(crate) fn contains(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// The two dwords at an address, as far as they are in the program.
    pub(super) fn words(&self, address: u64) -> [u32; 2] {
        [address, address + 4].map(|at| {
            if self.contains(at) && at % 4 == 0 {
                // SAFETY: `new` was promised that the range is readable.
                unsafe { (at as *const u32).read() }
            } else {
                0
            }
        })
    }
}
