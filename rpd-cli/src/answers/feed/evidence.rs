//! Values of counters and PC samples for answers, and which recordings are there for these alone.

use std::rc::Rc;

use rpd_analysis::records::{Counted, Sampled};
use rpd_core::session::hot::{HotBuilder, HotLine, HotPlace, Tally};
use rpd_core::session::{FirstPasses, Session};

use super::{Part, is_plausible, rank};

/// Whether each session is evidence: it was counted or sampled, and another one of the same program and rank was not, so that
/// operations of that one are those of the program at its own speed. Where all were, those of an earlier run stand for the program.
pub(super) fn are_evidence<'a>(sessions: impl Iterator<Item = &'a Session> + Clone) -> Vec<bool> {
    let is_disturbed = |session: &Session| {
        !session.counted.is_empty()
            || !session.sampling.is_empty()
            || !session.thread_traces.lines.is_empty()
    };
    let is_evidence = |session: &Session| {
        is_disturbed(session)
            && sessions.clone().any(|other| {
                let is_better = !is_disturbed(other) || is_before(other, session);
                is_better
                    && !other.dispatches.is_empty()
                    // Arguments may name files that each run has of its own.
                    && other.process.command.first() == session.process.command.first()
                    && rank(other) == rank(session)
            })
    };
    sessions.clone().map(is_evidence).collect()
}

/// Whether all dispatches of a session ended before those of another one began, as in passes of one program; processes of one run
/// overlap.
fn is_before(one: &Session, other: &Session) -> bool {
    let end = one.dispatches.end.iter().max();
    let start = other.dispatches.start.iter().min();
    end.zip(start).is_some_and(|(end, start)| end <= start)
}

impl Part {
    /// Values of counters, those of a dispatch together.
    pub(super) fn counted(&self) -> impl Iterator<Item = Counted> + '_ {
        let counted = &self.session.counted;
        let table = &counted.dispatches;
        let first_passes = Rc::new(FirstPasses::new(counted));
        let known = counted.indices().filter_map(move |index| {
            let gpu = *self.gpus.get(&table.agent[index])?;
            let (name, _, _) = self.kernel(table, index)?;
            Some((index, gpu, name))
        });
        known.flat_map(move |(index, gpu, name)| {
            let (start, end) = (table.start[index], table.end[index]);
            let length = if is_plausible(self.times, start, end) {
                end.0.saturating_sub(start.0)
            } else {
                0
            };
            let chunks = counted
                .values_of(index)
                .chunk_by(|a, b| a.counter == b.counter);
            // A dispatch that was replayed has one value of each counter.
            let first_passes = Rc::clone(&first_passes);
            let chunks = chunks
                .filter(move |values| first_passes.is_first(counted, index, values[0].counter));
            chunks.map(move |values| Counted {
                name,
                gpu,
                process: self.process,
                dispatch: table.dispatch[index].0,
                length,
                grid: table.grid[index],
                group: table.workgroup[index],
                counter: self.counters[values[0].counter as usize],
                // Not `sum()`, which begins with -0.0.
                sum: values.iter().fold(0.0, |sum, value| sum + value.value),
                greatest: values
                    .iter()
                    .fold(f64::NEG_INFINITY, |most, value| most.max(value.value)),
            })
        })
    }
}

/// Lines of code with samples, the hottest kernel and its hottest line first.
pub(super) fn sampled(builder: HotBuilder) -> Vec<Sampled> {
    let kernels = builder.finish().kernels;
    let lines = kernels.into_iter().flat_map(|kernel| {
        let (name, whole) = (kernel.name, kernel.tally);
        let lines = kernel.lines.into_iter();
        lines.map(move |line| sampled_line(&name, &whole, &line))
    });
    lines.collect()
}

fn sampled_line(kernel: &str, whole: &Tally, line: &HotLine) -> Sampled {
    let hottest = line.instructions.first();
    let address = || hottest.map_or(String::new(), |first| format!("{:#x}", first.offset));
    let place = |place: &HotPlace| {
        let file = place.file.rsplit('/').next().unwrap_or_default();
        format!("{file}:{}", place.line)
    };
    Sampled {
        kernel: kernel.to_owned(),
        place: line.chain.first().map_or_else(address, place),
        instruction: hottest.map_or(String::new(), |first| first.text.clone()),
        samples: line.tally.samples,
        of_kernel: whole.samples,
        error: line.tally.error(whole),
        reasons: line.tally.reasons(),
    }
}
