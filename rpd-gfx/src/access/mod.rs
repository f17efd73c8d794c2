//! Memory accesses of kernels, instruction by instruction: recording them during a dispatch, the file format,
//! reading, and sums.
//!
//! A [`Recorder`] observes a dispatch and passes [`Block`]s of encoded steps to a [`Sink`]. A file is [`MAGIC`]
//! followed by blocks; blocks of different dispatches may alternate. Each block can be decoded without the others, so
//! that the complete blocks of a file that was cut off can be read. [`Reader`] reads a file, [`AccessTotals`] adds up what
//! instructions did.

mod choice;
mod encoding;
mod reader;
mod recorder;
mod totals;

pub use choice::KernelChoice;
pub use encoding::Step;
pub use reader::{Dispatch, Item, Problem, Reader, Steps};
pub use recorder::{Recorder, Sink};
pub use totals::{AccessTotals, LINE, Stride};

/// First bytes of a file.
pub const MAGIC: [u8; 8] = *b"RPDACC1\n";
/// Name of the recording in its directory, which also has the code objects of the recorded kernels.
pub const FILE: &str = "accesses.bin";
/// Size of a block's head in bytes.
const HEAD: usize = 16;
/// Greatest size of a block's content in bytes.
const LARGEST: usize = 1 << 20;

/// Set of instructions that are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Level {
    /// Instructions that access memory, with the addresses.
    #[default]
    Memory,
    /// All instructions, and the addresses of those that access memory.
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

    /// The level with this number in files.
    pub fn from_number(number: u32) -> Option<Level> {
        let found = Self::ALL.iter().find(|(_, _, known)| *known == number);
        found.map(|(level, ..)| *level)
    }
}

/// Reason for which the recording of a dispatch ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DispatchEnd {
    /// The dispatch is complete.
    Complete,
    /// The dispatch was ended by an error of the kernel.
    Fault,
    /// The sink accepted no more blocks.
    Full,
}

/// Kind of the content of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    /// The description of a dispatch.
    Dispatch = 1,
    /// Instructions that waves of the dispatch executed.
    Steps = 2,
    /// The end of a dispatch's recording, with the reason.
    End = 3,
}

impl BlockKind {
    fn from_number(number: u32) -> Option<BlockKind> {
        [BlockKind::Dispatch, BlockKind::Steps, BlockKind::End]
            .into_iter()
            .find(|kind| *kind as u32 == number)
    }
}

/// A block of a file: head and content.
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

    /// Length of the content in bytes.
    fn len(&self) -> usize {
        self.0.len() - HEAD
    }

    /// Completes the head. Returns all bytes of the block, to be written.
    pub fn finish(&mut self) -> &[u8] {
        let length = self.len() as u64;
        self.0[8..HEAD].copy_from_slice(&length.to_le_bytes());
        &self.0
    }

    /// The block that ends the recording of a dispatch.
    pub fn end(dispatch: u32, ending: DispatchEnd) -> Block {
        let mut block = Block::new(BlockKind::End, dispatch);
        encoding::encode_number(&mut block.0, ending as u64);
        block
    }
}

impl DispatchEnd {
    fn from_number(number: u64) -> Option<DispatchEnd> {
        [DispatchEnd::Complete, DispatchEnd::Fault, DispatchEnd::Full]
            .into_iter()
            .find(|ending| *ending as u64 == number)
    }
}

#[cfg(test)]
mod tests;
