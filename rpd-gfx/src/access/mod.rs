//! Memory accesses of kernels, instruction by instruction: recorded while a dispatch executes, stored compactly, read again and
//! summed up.
//!
//! A [`Recorder`] watches a dispatch and hands [`Block`]s of encoded steps to a [`Sink`]. A file is [`MAGIC`] and blocks one after the
//! other, those of different dispatches between each other; each can be decoded without the others, so a file that was cut off
//! has all that its complete blocks hold. [`Reader`] reads it, [`Totals`] sum up what instructions did.

mod choice;
mod encoding;
mod reader;
mod recorder;
mod totals;

pub use choice::KernelChoice;
pub use encoding::Step;
pub use reader::{Dispatch, Item, Problem, Reader, Steps};
pub use recorder::{Recorder, Sink};
pub use totals::{LINE, Stride, Totals};

/// First bytes of a file.
pub const MAGIC: [u8; 8] = *b"RPDACC1\n";
/// Name of a recording in its folder, where the code objects of its kernels are as well.
pub const FILE: &str = "accesses.bin";
/// Bytes of a block's head.
const HEAD: usize = 16;
/// Most bytes of a block's content.
const LARGEST: usize = 1 << 20;

/// Level of detail that is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Level {
    /// Instructions that access memory, with their addresses.
    #[default]
    Memory,
    /// All instructions.
    Instructions,
}

impl Level {
    /// Every level with its word on the command line and its number in files.
    pub const ALL: [(Level, &'static str, u32); 2] =
        [(Level::Memory, "mem", 1), (Level::Instructions, "inst", 2)];

    /// The level's number in files.
    pub fn number(self) -> u32 {
        let found = Self::ALL.iter().find(|(level, ..)| *level == self);
        found.map_or(0, |(_, _, number)| *number)
    }

    /// The level with a number.
    pub fn of_number(number: u32) -> Option<Level> {
        let found = Self::ALL.iter().find(|(_, _, known)| *known == number);
        found.map(|(level, ..)| *level)
    }
}

/// End of a dispatch's recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DispatchEnd {
    /// The recording ends with the dispatch.
    Complete,
    /// The kernel ended with an error.
    Fault,
    /// The sink took no more before the dispatch ended.
    Full,
}

/// Kind of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    /// The description of a dispatch.
    Dispatch = 1,
    /// Instructions that waves of the dispatch executed.
    Steps = 2,
    /// The end of a dispatch.
    End = 3,
}

impl BlockKind {
    fn of_number(number: u32) -> Option<BlockKind> {
        [BlockKind::Dispatch, BlockKind::Steps, BlockKind::End]
            .into_iter()
            .find(|kind| *kind as u32 == number)
    }
}

/// A part of a file: head and content.
#[derive(Debug, Clone)]
pub struct Block(Vec<u8>);

impl Block {
    fn new(kind: BlockKind, dispatch: u32) -> Block {
        let mut bytes = Vec::with_capacity(HEAD);
        bytes.extend_from_slice(&(kind as u32).to_le_bytes());
        bytes.extend_from_slice(&dispatch.to_le_bytes());
        bytes.extend_from_slice(&[0; 8]);
        Block(bytes)
    }

    /// Bytes of its content.
    fn len(&self) -> usize {
        self.0.len() - HEAD
    }

    /// Its bytes, to be written.
    pub fn finish(&mut self) -> &[u8] {
        let length = self.len() as u64;
        self.0[8..HEAD].copy_from_slice(&length.to_le_bytes());
        &self.0
    }

    /// The end of a dispatch.
    pub fn end(dispatch: u32, ending: DispatchEnd) -> Block {
        let mut block = Block::new(BlockKind::End, dispatch);
        encoding::put(&mut block.0, ending as u64);
        block
    }
}

impl DispatchEnd {
    fn of_number(number: u64) -> Option<DispatchEnd> {
        [DispatchEnd::Complete, DispatchEnd::Fault, DispatchEnd::Full]
            .into_iter()
            .find(|ending| *ending as u64 == number)
    }
}

#[cfg(test)]
mod tests;
