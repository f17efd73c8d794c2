//! Waves of RDNA, which have one token for each instruction, and one for the cycle in which waves became ready.

use super::ops::Op;
use crate::pending::{KEEP, Pending, cycles};
use crate::record::{Category, Pc, State};

/// A wave of the traced WGP that has not ended, with its state.
#[derive(Debug)]
pub(super) struct RunningWave {
    pub(super) wave: Pending,
    /// Whether the wave is in a trap handler, or saved: its tokens do not count.
    away: bool,
    /// Whether the last instruction is a barrier, which lasts until the next token of the wave.
    barrier: bool,
}

impl RunningWave {
    pub(super) fn new(wave: Pending) -> Self {
        Self {
            wave,
            away: false,
            barrier: false,
        }
    }

    #[inline]
    fn extend_barrier(&mut self, time: i64) {
        if self.barrier {
            self.barrier = false;
            self.end_barrier(time);
        }
    }

    #[cold]
    fn end_barrier(&mut self, time: i64) {
        let Some(last) = self.wave.instructions.last_mut() else {
            return;
        };
        let end = last.time + i64::from(last.duration);
        last.duration = cycles(time - last.time);
        last.stall = last.stall.min(last.duration as u32);
        // The message that the wave came to it; other waits are immediates.
        last.category = Category::Message;
        self.wave.enter(State::Wait, end.min(time));
        self.wave.enter(State::Exec, time + 1);
    }

    /// Time at which an instruction at `time` began: for a stalled wave, that at which the stall began.
    fn stalled(&self, time: i64) -> i64 {
        if self.wave.state == State::Stall && self.wave.since < time {
            time - self.wave.since
        } else {
            0
        }
    }

    /// Notes that the wave could issue an instruction from `time` on.
    pub(super) fn ready(&mut self, time: i64) {
        self.extend_barrier(time - 1);
        self.wave.enter(State::Stall, time);
    }

    /// Adds an instruction of `duration` cycles.
    #[inline(always)]
    pub(super) fn execute(&mut self, category: Category, duration: u32, time: i64) {
        self.extend_barrier(time);
        // Until the handler returns, the instructions are not the program's.
        if self.away {
            return;
        }
        // Nearly always. The state goes on; its end is that of the span.
        if self.wave.state == State::Exec {
            self.wave.push_short(time, category, duration);
            return;
        }
        let stall = self.stalled(time);
        self.wave
            .push(time - stall, category, i64::from(duration) + stall, stall);
        self.wave.enter(State::Exec, time);
    }

    /// Adds an instruction that the sequencer handles.
    #[inline]
    pub(super) fn immediate(&mut self, time: i64) {
        self.extend_barrier(time);
        if self.away {
            return;
        }
        // The sequencer handles one as soon as the wave is there: since the last instruction it has waited.
        let start = self.wave.last_end().map_or(time, |end| end.min(time));
        let stall = time - start;
        self.wave.push(start, Category::Immed, stall + 1, stall);
        self.wave
            .enter(State::Wait, start.max(self.wave.since).min(time));
        self.wave.enter(State::Exec, time + 1);
    }

    /// Handles a token INST.
    pub(super) fn op(&mut self, op: Op, time: i64, barriers_extend: bool) {
        match op {
            Op::Is(category, duration) => self.execute(category, duration, time),
            Op::Jump => {
                self.execute(Category::Salu, 1, time);
                // The target comes in a token NEW_PC.
                if !self.away {
                    self.wave.expect_pc(self.wave.instructions.len());
                }
            }
            Op::Barrier => {
                self.immediate(time);
                // The wait has no token for its end: what the wave does next ends it.
                self.barrier = barriers_extend && !self.away;
            }
            Op::Trap => {
                self.extend_barrier(time);
                if !self.away {
                    self.wave.push(time, Category::Context, 1, 0);
                    self.wave.has_others = true;
                    self.away = true;
                }
            }
            Op::Halt => {
                self.execute(Category::Context, 1, time);
                self.wave.has_others = true;
            }
            Op::Return => {
                self.extend_barrier(time);
                self.wave.expect_pc(self.wave.instructions.len());
                self.away = false;
                self.extend_context(time);
            }
            Op::Other(..) | Op::Unknown => {}
        }
    }

    fn extend_context(&mut self, time: i64) {
        if let Some(last) = self.wave.instructions.last_mut()
            && last.category == Category::Context
        {
            last.duration = last.duration.max(cycles(time + 1 - last.time));
        }
    }

    /// Notes that the hardware is about to save the waves.
    pub(super) fn request_save(&mut self) {
        self.away = true;
    }

    pub(super) fn save(&mut self, time: i64) {
        self.away = true;
        self.wave.contexts = self.wave.contexts.saturating_add(1);
        self.wave.push(time, Category::Context, 1, 0);
        self.wave.has_others = true;
    }

    pub(super) fn restore(&mut self, time: i64) {
        self.extend_context(time);
        self.away = true;
        self.wave.contexts = self.wave.contexts.saturating_add(1);
    }

    /// Handles a token NEW_PC.
    pub(super) fn pc(&mut self, pc: Pc, time: i64) {
        self.extend_barrier(time);
        if !self.away && !self.wave.anchors.is_empty() {
            self.wave.set_pc(pc);
        }
    }

    /// Closes the last state and instruction when the wave ends.
    pub(super) fn end(&mut self, time: i64) {
        self.barrier = false;
        self.wave.close(time);
        self.wave.complete = true;
        // The end of the program has no token.
        if let Some(end) = self.wave.last_end()
            && end < time
            && !self.away
        {
            self.wave.push(end, Category::Message, time - end, 0);
        }
    }

    /// Number of instructions that later tokens cannot change.
    pub(super) fn settled(&self) -> usize {
        self.wave.instructions.len().saturating_sub(KEEP)
    }
}
