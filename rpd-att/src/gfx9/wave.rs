//! Waves of GFX9, of which one token issues an instruction and another one completes it.

use std::collections::VecDeque;

use crate::pending::{KEEP, Pending, cycles, stall};
use crate::record::{Category, Pc, Span, State};

/// Shortest duration of an instruction, and resolution of time, in cycles.
const QUAD: i64 = 4;

/// Kind of instruction in a token INST.
enum InstKind {
    Is(Category),
    /// The program counter is written.
    Jump,
    Trap,
    /// An instruction of this type is repeated after a page fault.
    Replay(u8),
    Nothing,
}

fn kind_of(number: u8) -> InstKind {
    match number {
        0 | 16 => InstKind::Is(Category::Smem),
        1 | 17 => InstKind::Is(Category::Salu),
        2 | 3 => InstKind::Is(Category::Vmem),
        4 | 14 => InstKind::Is(Category::Flat),
        5 | 18 | 28 => InstKind::Is(Category::Valu),
        6 => InstKind::Is(Category::Lds),
        7 => InstKind::Jump,
        12 => InstKind::Is(Category::Jump),
        13 => InstKind::Is(Category::Next),
        15 => InstKind::Is(Category::Message),
        19 => InstKind::Replay(0),
        20 => InstKind::Replay(16),
        21 => InstKind::Replay(2),
        22 => InstKind::Replay(3),
        // The register header and the decoder disagree on which of these reads.
        23 => InstKind::Replay(4),
        24 => InstKind::Replay(14),
        29 => InstKind::Trap,
        _ => InstKind::Nothing,
    }
}

/// Cycles between the issue of an instruction and its token, per category, in phases of the issue logic.
fn phase_of(category: Category) -> i64 {
    match category {
        Category::Salu | Category::Smem => 5,
        Category::Valu => 2,
        Category::Lds | Category::Jump | Category::Next | Category::Message => 1,
        _ => 0,
    }
}

/// State of a trap handler, which is not traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trap {
    /// The wave executes its kernel.
    None,
    /// A request to save waves.
    Requested,
    /// The wave was saved.
    Saved,
    /// The handler ends with a token that has the program counter.
    Returning,
}

/// A wave of the traced compute unit that has not ended, with its state.
#[derive(Debug)]
pub(super) struct RunningWave {
    pub(super) wave: Pending,
    /// Instructions that were issued and not completed, by index.
    issued: VecDeque<usize>,
    /// Times of stalls that belong to no instruction so far.
    stalls: VecDeque<i64>,
    /// The last instruction of each type, as index plus 1, for repetitions; 0 for none.
    last: [usize; 32],
    trap: Trap,
}

impl RunningWave {
    pub(super) fn new(wave: Pending) -> Self {
        Self {
            wave,
            issued: VecDeque::new(),
            stalls: VecDeque::new(),
            last: [0; 32],
            trap: Trap::None,
        }
    }

    /// Shortens an instruction that the next one overlaps.
    fn trim(&mut self, index: usize, time: i64) {
        if let Some(before) = self.wave.instructions.get_mut(index)
            && time < before.time + i64::from(before.duration)
        {
            before.duration = cycles((time - before.time).max(QUAD));
            before.stall = before.stall.min(before.duration as u32);
        }
    }

    /// Handles the two bits of a token ISSUE for this wave, unless they are 0.
    #[inline]
    pub(super) fn issue(&mut self, state: u32, time: i64) {
        if self.trap != Trap::None {
            return;
        }
        match state {
            1 => {
                self.wave.enter(State::Stall, time);
                // Bounded for damaged streams, in which no instruction takes the stalls.
                if self.stalls.len() < KEEP {
                    self.stalls.push_back(time);
                }
            }
            2 => {
                self.wave.enter(State::Exec, time);
                // A wave whose completions were lost is not remembered forever.
                if self.issued.len() >= KEEP {
                    self.issued.pop_front();
                }
                self.issued.push_back(self.wave.instructions.len());
                self.wave.push(time, Category::None, 0, 0);
            }
            _ => self.immediate(time),
        }
    }

    fn immediate(&mut self, time: i64) {
        let mut start = time;
        // An instruction without a category was not completed yet: its completion sets the duration.
        if let Some(last) = self.wave.instructions.len().checked_sub(1)
            && self.wave.instructions[last].category != Category::None
        {
            self.trim(last, time);
            start = start.min(self.wave.last_end().unwrap_or(time));
        }
        let duration = QUAD + (time - start).max(0);
        self.wave.push(start, Category::Immed, duration, duration);
        self.wave.enter(State::Wait, start.max(self.wave.since));
        // Each wait has a span of its own, so that they can be told apart.
        let waited = cycles(start + duration - self.wave.since);
        self.wave.timeline.push(Span {
            state: State::Wait,
            duration: waited,
        });
        self.wave.since += i64::from(waited);
        self.wave.state = State::Exec;
    }

    /// Handles a token INST, which completes an instruction.
    #[inline]
    pub(super) fn complete(&mut self, number: u8, time: i64, start_phase: &mut i64) {
        let kind = kind_of(number);
        // A handler returns with a jump, after which the program goes on at an address that is in the stream.
        if self.trap == Trap::Returning && matches!(kind, InstKind::Jump) {
            self.wave.expect_pc(self.wave.instructions.len());
            self.trap = Trap::None;
            if let Some(last) = self.wave.instructions.last_mut()
                && last.category == Category::Context
            {
                last.duration = cycles(time + QUAD - last.time);
            }
            return;
        }
        if self.trap != Trap::None {
            return;
        }
        // The issue of this instruction was lost.
        let Some(index) = self.issued.pop_front() else {
            return;
        };
        let count = self.wave.instructions.len();
        let issue = self.wave.instructions[index].time;
        // Instructions that overlap show that the assumed phase is too early.
        if count >= 2 {
            let before = &self.wave.instructions[count - 2];
            if issue < before.time + i64::from(before.duration) {
                *start_phase += 1;
            }
        }
        if let Some(before) = index.checked_sub(1) {
            self.trim(before, issue);
        }
        let category = match kind {
            InstKind::Is(category) => category,
            InstKind::Jump => {
                // The target of a jump comes in a token of its own.
                self.wave.expect_pc(index + 1);
                Category::Salu
            }
            InstKind::Trap => {
                self.trap = Trap::Returning;
                self.wave.trapped = true;
                self.wave.has_others = true;
                // An address that is due is that of the instruction after the trap.
                for anchor in &mut self.wave.anchors {
                    anchor.index += usize::from(anchor.index + 1 == count);
                }
                Category::Context
            }
            InstKind::Replay(of) => {
                self.replay(of, index, time);
                return;
            }
            InstKind::Nothing => {
                self.remove(index);
                return;
            }
        };
        // A repetition names the type only, and means the last instruction of that type.
        self.last[usize::from(number & 31)] = index + 1;

        // Tokens come at a fixed cycle of a turn of four, which differs between SIMDs and units: that part is not of
        // the duration.
        let phase = (*start_phase + i64::from(self.wave.simd)).rem_euclid(4)
            + match kind {
                InstKind::Is(category) => phase_of(category),
                _ => 0,
            };
        let mut duration = QUAD + (time - issue - QUAD * (phase / 4)).max(0);
        let mut start = issue;
        let floor = index.checked_sub(1).map_or(i64::MIN, |before| {
            let before = &self.wave.instructions[before];
            before.time + i64::from(before.duration)
        });
        // Of the stalls before the issue the last one belongs to this instruction, as far back as the end of the one before.
        while self.stalls.front().is_some_and(|first| *first < issue) {
            if let Some(stall) = self.stalls.pop_front() {
                start = stall.max(floor);
            }
        }
        if start != issue {
            duration = (issue + duration - start).max(QUAD);
        }
        let instruction = &mut self.wave.instructions[index];
        instruction.category = category;
        instruction.time = start;
        instruction.stall = stall(issue - start);
        instruction.duration = cycles(duration);
    }

    /// Drops an instruction that was issued again; the instruction that it repeats lasts until now.
    fn replay(&mut self, of: u8, index: usize, time: i64) {
        let victim = std::mem::take(&mut self.last[usize::from(of)]);
        if let Some(at) = victim.checked_sub(1).filter(|at| at + 1 < index) {
            let victim = &mut self.wave.instructions[at];
            let before = victim.duration;
            victim.duration = before.max(cycles(time + QUAD - victim.time));
            victim.stall = stall(i64::from(victim.stall) + i64::from(victim.duration - before));
        }
        self.remove(index);
    }

    fn remove(&mut self, index: usize) {
        // All of these lists name instructions by their index.
        self.wave.instructions.remove(index);
        for pending in &mut self.issued {
            *pending -= usize::from(*pending > index);
        }
        for anchor in &mut self.wave.anchors {
            anchor.index -= usize::from(anchor.index > index);
        }
        for last in &mut self.last {
            *last -= usize::from(*last > index + 1);
        }
    }

    /// Handles a token INST_PC, which has the wave's program counter.
    pub(super) fn pc(&mut self, pc: Pc) {
        if self.trap == Trap::None && !self.wave.anchors.is_empty() {
            self.wave.set_pc(pc);
        }
    }

    /// Notes that the hardware is about to save the waves.
    pub(super) fn request_save(&mut self) {
        self.trap = Trap::Requested;
    }

    /// Handles a wave start with a count above 64, which stands first for the save of the wave, then for its restore.
    pub(super) fn switch_context(&mut self, time: i64) {
        match self.trap {
            Trap::Requested => {
                self.wave.contexts = self.wave.contexts.saturating_add(1);
                self.wave.trapped = true;
                self.wave.has_others = true;
                self.wave.push(time, Category::Context, QUAD, 0);
                self.trap = Trap::Saved;
            }
            Trap::Saved => self.trap = Trap::Returning,
            Trap::None | Trap::Returning => {}
        }
    }

    /// Whether the wave is in a trap handler, whose tokens do not count.
    pub(super) fn in_trap(&self) -> bool {
        self.trap != Trap::None
    }

    /// Ends the wave at the token at `time`. Instructions without a completion stay, without a category.
    pub(super) fn end(&mut self, time: i64) {
        self.wave.complete = true;
        self.note_unfinished();
        if let [.., before, last] = &mut self.wave.instructions[..]
            && last.category == Category::Message
        {
            // The end of the program: the wave waits for it since the instruction before.
            let start = (before.time + i64::from(before.duration)).min(time);
            last.time = start;
            last.duration = cycles(time - start);
            last.stall = 0;
            self.wave.close(start);
            self.wave.span(State::Wait, time - start);
            (self.wave.since, self.wave.end) = (time, time);
            return;
        }
        // Time after the last instruction is not execution.
        self.wave.state = State::Idle;
        self.wave.close(time);
    }

    /// Notes whether there are instructions without a completion.
    pub(super) fn note_unfinished(&mut self) {
        self.wave.has_others |= !self.issued.is_empty();
    }

    /// Number of instructions that later tokens cannot change.
    pub(super) fn settled(&self) -> usize {
        // The instruction before the oldest open one may still be shortened.
        let oldest = self.issued.front().copied();
        let limit = self.wave.instructions.len().saturating_sub(KEEP);
        oldest.map_or(limit, |oldest| oldest.saturating_sub(1).min(limit))
    }

    /// Drops the first `count` instructions, which were reported.
    pub(super) fn drop_front(&mut self, count: usize) {
        self.wave.drop_front(count);
        for pending in &mut self.issued {
            *pending -= count;
        }
        for last in &mut self.last {
            *last = last.saturating_sub(count);
        }
    }
}
