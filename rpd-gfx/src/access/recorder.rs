//! Encodes the memory accesses of a dispatch during its execution.

use super::encoding::{EncodingState, encode};
use super::reader::Dispatch;
use super::{Block, BlockKind, Level, encoding};
use crate::isa::{Probe, Step, Workgroup};

/// Number of bytes that are collected before they are passed to the sink. They are lost if the process is killed.
const GATHERED: usize = 64 << 10;
/// Number of instructions of a wave between two checks whether the sink still accepts blocks.
const WINDOW: u64 = 4096;

/// Stores the blocks of a recording.
pub trait Sink: Sync {
    /// Stores a block. Returns false when no more are accepted.
    fn write(&self, block: &[u8]) -> bool;
}

/// Records the steps of a dispatch, or those that one thread of the simulator executes.
pub struct Recorder<'s> {
    sink: &'s dyn Sink,
    dispatch: u32,
    level: Level,
    block: Block,
    state: EncodingState,
    full: bool,
}

impl Dispatch {
    /// The block that describes the dispatch. It must be written before blocks with steps.
    pub fn block(&self) -> Block {
        let mut block = Block::new(BlockKind::Dispatch, self.number);
        let bytes = &mut block.0;
        for text in [&self.kernel, &self.object, &self.device] {
            encoding::encode_number(bytes, text.len() as u64);
            bytes.extend_from_slice(text.as_bytes());
        }
        encoding::encode_number(bytes, self.nth);
        encoding::encode_number(bytes, self.first);
        for size in self.grid.into_iter().chain(self.workgroup) {
            encoding::encode_number(bytes, size.into());
        }
        encoding::encode_number(bytes, self.level.number().into());
        block
    }
}

impl<'s> Recorder<'s> {
    /// A recorder for the dispatch with this number in the file.
    pub fn new(sink: &'s dyn Sink, dispatch: u32, level: Level) -> Recorder<'s> {
        Recorder {
            sink,
            dispatch,
            level,
            block: Block::new(BlockKind::Steps, dispatch),
            state: EncodingState::default(),
            full: false,
        }
    }

    /// Passes the remaining steps to the sink. Returns whether the sink accepted everything.
    pub fn finish(mut self) -> bool {
        self.hand_over();
        !self.full
    }

    fn hand_over(&mut self) {
        if self.block.len() > 0 && !self.full {
            self.full = !self.sink.write(self.block.finish());
        }
        self.block = Block::new(BlockKind::Steps, self.dispatch);
        self.state = EncodingState::default();
    }
}

impl Probe for Recorder<'_> {
    fn follows(&mut self, _group: &Workgroup) -> bool {
        !self.full
    }

    fn window(&mut self, _group: u64, _wave: usize, _executed: u64) -> (bool, u64) {
        (!self.full, WINDOW)
    }

    fn started(&mut self, _group: &Workgroup) {}

    fn executed(&mut self, step: &Step<'_>) {
        let accesses = !step.transfers.is_empty() || !step.scalar.is_empty();
        if !accesses && self.level == Level::Memory {
            return;
        }
        encode(&mut self.block.0, &mut self.state, step);
        if self.block.len() >= GATHERED {
            self.hand_over();
        }
    }

    fn released(&mut self, _group: u64) {}

    fn ended(&mut self, _group: u64) {}
}
