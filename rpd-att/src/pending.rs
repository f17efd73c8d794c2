//! State of a running wave that all generations share: its instructions and states so far.

use crate::record::{Category, Instruction, Pc, Span, State, Wave};
use crate::stitch::Cursor;

/// Most instructions of all waves together that may be pending before some are reported in a part of a wave: 64 MiB.
pub(crate) const MAX_PENDING: usize = 2 << 20;
/// Number of instructions at the end of a wave that later tokens can change.
pub(crate) const KEEP: usize = 64;

/// A known program counter, and the instruction to which it belongs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Anchor {
    /// Index of the instruction, counted from the first of the wave's current part.
    pub(crate) index: usize,
    /// Address of the instruction; unknown until the token that carries it was read.
    pub(crate) pc: Pc,
}

/// A running wave.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) cu: u8,
    pub(crate) simd: u8,
    pub(crate) slot: u8,
    pub(crate) me: u8,
    pub(crate) pipe: u8,
    pub(crate) workgroup: u8,
    pub(crate) contexts: u8,
    pub(crate) entry: Pc,
    pub(crate) begin: i64,
    pub(crate) end: i64,
    pub(crate) complete: bool,
    pub(crate) trapped: bool,
    /// Whether there may be instructions that are no line of the code: of trap handlers, or without a category.
    pub(crate) has_others: bool,
    pub(crate) part: u32,
    pub(crate) state: State,
    /// Time since which the wave is in `state`.
    pub(crate) since: i64,
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) timeline: Vec<Span>,
    pub(crate) anchors: Vec<Anchor>,
    pub(crate) cursor: Cursor,
}

/// Limits a duration to the range of a record's field.
#[inline]
pub(crate) fn cycles(value: i64) -> i32 {
    value.clamp(0, i64::from(i32::MAX)) as i32
}

/// The longest stall that a record can hold, in cycles: the field has 24 bits.
const MAX_STALL: i64 = (1 << 24) - 1;

/// Limits a stall to the range of a record's field.
#[inline]
pub(crate) fn stall(value: i64) -> u32 {
    value.clamp(0, MAX_STALL) as u32
}

/// Lists of waves that ended, for reuse by later waves: lists that grow from nothing are copied many times.
#[derive(Debug, Default)]
pub(crate) struct SpareLists(Vec<(Vec<Instruction>, Vec<Span>)>);

impl SpareLists {
    /// Capacity up to which a list is kept for reuse.
    const MAX_ENTRIES: usize = 4096;
    /// Number of lists that are kept for reuse.
    const MAX_LISTS: usize = 64;

    /// Takes the lists of a wave that was reported.
    pub(crate) fn keep(&mut self, wave: Pending) {
        let (mut instructions, mut timeline) = (wave.instructions, wave.timeline);
        let entries = instructions.capacity().max(timeline.capacity());
        if self.0.len() < Self::MAX_LISTS && entries <= Self::MAX_ENTRIES {
            instructions.clear();
            timeline.clear();
            self.0.push((instructions, timeline));
        }
    }
}

impl Pending {
    pub(crate) fn new(
        cu: u8,
        simd: u8,
        slot: u8,
        entry: Pc,
        begin: i64,
        spare: &mut SpareLists,
    ) -> Self {
        let (instructions, timeline) = spare.0.pop().unwrap_or_default();
        let mut anchors = Vec::new();
        if entry.is_known() {
            anchors.push(Anchor {
                index: 0,
                pc: entry,
            });
        }
        Self {
            cu,
            simd,
            slot,
            me: 0,
            pipe: 0,
            workgroup: 0,
            contexts: 0,
            entry,
            begin,
            end: begin,
            complete: false,
            trapped: false,
            has_others: false,
            part: 0,
            state: State::Idle,
            since: begin,
            instructions,
            timeline,
            anchors,
            cursor: Cursor::default(),
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, time: i64, category: Category, duration: i64, stalled: i64) {
        self.instructions.push(Instruction {
            time,
            pc: Pc::default(),
            duration: cycles(duration),
            stall: stall(stalled),
            category,
        });
    }

    /// Adds an instruction that was not stalled and takes few cycles.
    #[inline(always)]
    pub(crate) fn push_short(&mut self, time: i64, category: Category, duration: u32) {
        self.instructions.push(Instruction {
            time,
            pc: Pc::default(),
            duration: duration as i32,
            stall: 0,
            category,
        });
    }

    /// End of the last instruction; the begin of the wave if there is none.
    #[inline]
    pub(crate) fn last_end(&self) -> Option<i64> {
        self.instructions
            .last()
            .map(|last| last.time + i64::from(last.duration))
    }

    /// Adds `duration` cycles in `state` to the timeline.
    #[inline]
    pub(crate) fn span(&mut self, state: State, duration: i64) {
        if duration <= 0 {
            return;
        }
        let duration = cycles(duration);
        match self.timeline.last_mut() {
            Some(last) if last.state == state => {
                last.duration = last.duration.saturating_add(duration);
            }
            _ => self.timeline.push(Span { state, duration }),
        }
    }

    /// Ends the current state at `time` and begins another.
    #[inline]
    pub(crate) fn enter(&mut self, state: State, time: i64) {
        if time > self.since {
            self.span(self.state, time - self.since);
            self.since = time;
        }
        self.state = state;
    }

    /// Ends the last state at `time`: the part of the timeline after that is cut off.
    pub(crate) fn close(&mut self, time: i64) {
        self.enter(State::Empty, time);
        let mut excess = self.since - time;
        while excess > 0
            && let Some(last) = self.timeline.last_mut()
        {
            let cut = excess.min(i64::from(last.duration));
            last.duration -= cut as i32;
            excess -= cut;
            if last.duration == 0 {
                self.timeline.pop();
            }
        }
        self.since = time;
        self.end = time;
    }

    /// Notes that the address of the next instruction is in a token that is still to come.
    pub(crate) fn expect_pc(&mut self, index: usize) {
        self.anchors.push(Anchor {
            index,
            pc: Pc::default(),
        });
    }

    /// Gives an address from a token to the oldest place that waits for one.
    pub(crate) fn set_pc(&mut self, pc: Pc) {
        let index = self.instructions.len();
        match self.anchors.iter_mut().find(|anchor| !anchor.pc.is_known()) {
            Some(anchor) => anchor.pc = pc,
            None => self.anchors.push(Anchor { index, pc }),
        }
    }

    /// The record of the first `count` instructions, which are all of them unless the record is a part of the wave.
    pub(crate) fn record(&self, count: usize, last: bool) -> Wave<'_> {
        let instructions = &self.instructions[..count];
        Wave {
            cu: self.cu,
            simd: self.simd,
            slot: self.slot,
            contexts: self.contexts,
            me: self.me,
            pipe: self.pipe,
            workgroup: self.workgroup,
            part: self.part,
            last,
            complete: self.complete,
            entry: self.entry,
            begin: self.begin,
            end: if last { self.end } else { self.since },
            timeline: &self.timeline,
            instructions,
        }
    }

    /// Drops the first `count` instructions, which were reported as a part.
    pub(crate) fn drop_front(&mut self, count: usize) {
        self.instructions.drain(..count);
        self.timeline.clear();
        self.anchors.retain_mut(|anchor| {
            let keep = anchor.index >= count || !anchor.pc.is_known();
            anchor.index = anchor.index.saturating_sub(count);
            keep
        });
        self.part += 1;
        self.begin = self.since;
    }
}
