//! Thread traces from which no instruction is known: what they hold, and how to record more.

use rpd_core::session::traces::ThreadTraces;

use crate::wording::count;

/// Sums over thread traces without instructions.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct OccupancyOnly {
    traces: usize,
    /// Waves that started on the traced shader engines.
    started: u64,
    /// Waves whose instructions were to be traced.
    waves: u64,
    /// Instructions that were matched with no code.
    unmatched: u64,
}

impl OccupancyOnly {
    /// Adds the traces of a recording.
    pub(super) fn add(&mut self, traces: &ThreadTraces) {
        self.traces += traces.numbers().len();
        for found in &traces.summaries {
            self.started += found.started;
            self.waves += found.waves;
            self.unmatched += found.instructions;
        }
    }

    /// Description of the traces' content in place of instructions, and of the remedy; `None` without a trace.
    pub(super) fn advice(&self) -> Option<String> {
        let Self {
            traces,
            started,
            waves,
            unmatched,
        } = self;
        let (what, help) = match (traces, unmatched, waves) {
            (0, ..) => return None,
            (_, 0, 0) => (
                format!(
                    "occupancy of {}, on the traced compute unit none",
                    count(*started, "wave")
                ),
                "record with another --att-target-cu, more of --att-shader-engine-mask, or a larger grid",
            ),
            (_, 0, _) => (
                format!(
                    "occupancy of {} and no instructions",
                    count(*started, "wave")
                ),
                "record without --att-no-detail",
            ),
            _ => (
                format!("{}, in known code none", count(*unmatched, "instruction")),
                "rpd att decode finds them with the .att files and code objects (.out) of the run",
            ),
        };
        let traces = count(*traces, "thread trace");
        Some(format!("{traces} with {what}; {help}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_traces_without_lines_hold() {
        let advice = |traces, started, waves, unmatched| {
            let found = OccupancyOnly {
                traces,
                started,
                waves,
                unmatched,
            };
            found.advice().unwrap_or_default()
        };
        assert_eq!(advice(0, 0, 0, 0), "");
        assert_eq!(
            advice(1, 1, 0, 0),
            "1 thread trace with occupancy of 1 wave, on the traced compute unit none; record with another \
             --att-target-cu, more of --att-shader-engine-mask, or a larger grid"
        );
        assert_eq!(
            advice(2, 8, 3, 0),
            "2 thread traces with occupancy of 8 waves and no instructions; record without --att-no-detail"
        );
        assert_eq!(
            advice(1, 8, 3, 70),
            "1 thread trace with 70 instructions, in known code none; rpd att decode finds \
             them with the .att files and code objects (.out) of the run"
        );
    }
}
