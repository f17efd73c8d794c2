//! Batches of tokens, which are cut off together and put in order before they are handled.

use super::token::{RdnaKind, RdnaToken};

/// Number of tokens for which a batch has room.
const ROOM: usize = 512;

/// A batch of tokens in the order of their times.
#[derive(Debug)]
pub(crate) struct Batch {
    tokens: Box<[RdnaToken; ROOM]>,
    count: usize,
    /// Whether the batch has a WAVE_READY.
    has_ready: bool,
}

/// Content of unused places.
const NOTHING: RdnaToken = RdnaToken {
    kind: RdnaKind::Nop,
    word: 0,
    time: 0,
    offset: 0,
};

impl Default for Batch {
    fn default() -> Self {
        Self {
            tokens: Box::new([NOTHING; ROOM]),
            count: 0,
            has_ready: false,
        }
    }
}

impl Batch {
    /// Whether there is no room for another token.
    #[inline(always)]
    pub(super) fn is_full(&self) -> bool {
        self.count >= ROOM
    }

    /// The free places of the batch; after filling some, [`Batch::add`] is called with their number.
    pub(super) fn room(&mut self) -> &mut [RdnaToken] {
        &mut self.tokens[self.count..]
    }

    /// Adds the first `count` tokens of the room. `has_ready`: whether a WAVE_READY can be among them.
    pub(super) fn add(&mut self, count: usize, has_ready: bool) {
        self.count = (self.count + count).min(ROOM);
        self.has_ready |= has_ready;
    }

    /// Tokens of the batch, in the order of the stream.
    pub(crate) fn tokens(&self) -> &[RdnaToken] {
        &self.tokens[..self.count]
    }

    /// Removes the first `count` tokens.
    pub(crate) fn remove(&mut self, count: usize) {
        self.tokens.copy_within(count..self.count, 0);
        self.count -= count;
    }

    /// Puts every WAVE_READY, which is about the previous cycle, before the instructions of its own cycle.
    ///
    /// Returns how many tokens can be handled: with `more` to come, not the instructions of the last cycle, unless there are no others.
    pub(super) fn put_ready_first(&mut self, more: bool) -> usize {
        let mut from = 0;
        let is_ready = |token: &RdnaToken| token.kind == RdnaKind::WaveReady;
        // Those that are kept for the next call have none.
        while self.has_ready
            && let Some(behind) = self.tokens[from..self.count].iter().position(is_ready)
        {
            let at = from + behind;
            let same = self.same_cycle(at, self.tokens[at].time);
            self.tokens[at].time -= 1;
            self.tokens[at - same..=at].rotate_right(1);
            from = at + 1;
        }
        self.has_ready = false;
        let Some(last) = self.tokens().last().filter(|_| more) else {
            return self.count;
        };
        match self.count - self.same_cycle(self.count, last.time) {
            0 => self.count,
            count => count,
        }
    }

    /// Number of tokens directly before index `at` that are instructions of the cycle `time`.
    fn same_cycle(&self, at: usize, time: i64) -> usize {
        let before = self.tokens[..at].iter().rev();
        before
            .take_while(|token| token.time == time && is_instruction(token.kind))
            .count()
    }
}

/// Whether the order of a token of this kind and a WAVE_READY of the same cycle matters.
fn is_instruction(kind: RdnaKind) -> bool {
    matches!(
        kind,
        RdnaKind::Inst | RdnaKind::ValuInst | RdnaKind::ImmOne | RdnaKind::Immediate
    )
}
