//! Encodes what a dispatch does while it executes.

use super::encoding::{EncodingState, encode};
use super::reader::Dispatch;
use super::{Block, BlockKind, Level, encoding};
use crate::isa::{Probe, Step, Workgroup};

/// Bytes of steps that are gathered before they are handed over, and lost if the process is killed.
const GATHERED: usize = 64 << 10;
/// Instructions of a wave after which it is checked whether recording continues.
const WINDOW: u64 = 4096;

/// Takes the blocks of a recording.
pub trait Sink: Sync {
    /// Stores a block; false if no more are taken.
    fn write(&self, block: &[u8]) -> bool;
}

/// Records the steps of a dispatch, or those that one thread executes.
pub struct Recorder<'s> {
    sink: &'s dyn Sink,
    dispatch: u32,
    level: Level,
    block: Block,
    state: EncodingState,
    full: bool,
}

impl Dispatch {
    /// The block that describes it; it comes before its steps.
    pub fn block(&self) -> Block {
        let mut block = Block::new(BlockKind::Dispatch, self.number);
        let bytes = &mut block.0;
        for text in [&self.kernel, &self.object, &self.device] {
            encoding::put(bytes, text.len() as u64);
            bytes.extend_from_slice(text.as_bytes());
        }
        encoding::put(bytes, self.nth);
        encoding::put(bytes, self.first);
        for size in self.grid.into_iter().chain(self.workgroup) {
            encoding::put(bytes, size.into());
        }
        encoding::put(bytes, self.level.number().into());
        block
    }
}

impl<'s> Recorder<'s> {
    /// A recorder of the dispatch with a number.
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

    /// Hands over what is left; whether everything was taken.
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
