//! Waits for barriers of GFX12. Streams have no tokens of them: they lie between the instructions around them.

use crate::pending::{Pending, cycles};
use crate::record::{Category, Instruction, Pc, Span, State};

/// Adds a wait, at the given address, before each instruction of a wave with the given index: from the end of the
/// previous instruction to the beginning of this one. Returns the number of added waits.
pub(crate) fn insert_waits(wave: &mut Pending, waits: &[(usize, Pc)]) -> usize {
    if waits.is_empty() {
        return 0;
    }
    let mut timeline = Timeline::new(wave);
    let old = &mut wave.instructions;
    let mut instructions = Vec::with_capacity(old.len() + waits.len());
    let mut inserted = Vec::new();
    let mut taken = 0;
    for &(index, pc) in waits {
        // Nothing is before the first one, and two in a row are one.
        if index <= taken {
            continue;
        }
        instructions.extend_from_slice(&old[taken..index]);
        taken = index;
        let begin = old[index - 1].time + i64::from(old[index - 1].duration);
        let after = &mut old[index];
        if after.time == begin && after.duration > 1 {
            after.time += 1;
            after.duration -= 1;
        }
        let end = after.time.max(begin);
        instructions.push(Instruction {
            time: begin,
            pc,
            duration: cycles(end - begin),
            stall: 0,
            category: Category::Immed,
        });
        inserted.push(index);
        timeline.wait(begin, end);
    }
    instructions.extend_from_slice(&old[taken..]);
    *old = instructions;
    for anchor in &mut wave.anchors {
        anchor.index += inserted.partition_point(|index| *index <= anchor.index);
    }
    wave.timeline = timeline.finish();
    inserted.len()
}

/// The timeline of a wave while waits are inserted in the order of their times.
struct Timeline {
    spans: std::vec::IntoIter<Span>,
    done: Vec<Span>,
    /// End of the spans in `done`, in cycles.
    time: i64,
}

impl Timeline {
    fn new(wave: &Pending) -> Self {
        Self {
            spans: wave.timeline.clone().into_iter(),
            done: Vec::new(),
            time: wave.begin,
        }
    }

    /// Inserts a wait from `begin` to `end` into the span that contains these times.
    fn wait(&mut self, begin: i64, end: i64) {
        while self.time <= begin
            && let Some(span) = self.spans.next()
        {
            self.time += i64::from(span.duration);
            self.done.push(span);
        }
        let Some(span) = self.done.last_mut() else {
            return;
        };
        let (state, behind) = (span.state, self.time - begin);
        if behind > i64::from(span.duration) || end > self.time {
            return;
        }
        span.duration -= cycles(behind);
        for (state, duration) in [(State::Wait, end - begin), (state, self.time - end)] {
            self.done.push(Span {
                state,
                duration: cycles(duration),
            });
        }
    }

    fn finish(mut self) -> Vec<Span> {
        self.done.extend(self.spans);
        self.done
    }
}
