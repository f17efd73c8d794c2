//! Counters that several runs of a replayed dispatch have.

use std::collections::HashMap;

use super::CountedTable;
use crate::ids::AgentHandle;

/// The first run that has each counter, for figures of which a dispatch is to have one value: a counter that is in several groups
/// is counted in each of their runs.
#[derive(Debug, Default)]
pub struct FirstPasses(HashMap<(AgentHandle, u32), u32>);

impl FirstPasses {
    /// Reads the runs of a table. Without replays it is not gone through.
    pub fn new(counted: &CountedTable) -> FirstPasses {
        let mut first: HashMap<_, u32> = HashMap::new();
        if counted.dispatches.replay.is_empty() {
            return FirstPasses(first);
        }
        for index in counted.indices() {
            let Some(pass) = counted.dispatches.replay_pass(index) else {
                continue;
            };
            for values in counted
                .values_of(index)
                .chunk_by(|a, b| a.counter == b.counter)
            {
                let key = (counted.dispatches.agent[index], values[0].counter);
                let known = first.entry(key).or_insert(pass);
                *known = pass.min(*known);
            }
        }
        FirstPasses(first)
    }

    /// Whether the value that dispatch `index` of the table has of a counter is that of the first run which has the counter.
    pub fn is_first(&self, counted: &CountedTable, index: usize, counter: u32) -> bool {
        let Some(pass) = counted.dispatches.replay_pass(index) else {
            return true;
        };
        let first = self.0.get(&(counted.dispatches.agent[index], counter));
        first.is_none_or(|first| *first == pass)
    }
}

impl CountedTable {
    /// Number of dispatches that were counted, each once, however often it ran.
    pub fn counted_once(&self) -> usize {
        self.len() - self.dispatches.repeated()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::DispatchId;
    use crate::session::{CounterValue, DispatchRow, ValueRange};

    #[test]
    fn counter_of_several_runs_has_its_value_of_the_first() {
        let mut counted = CountedTable::default();
        // Two dispatches of three runs; counter 7 is in all groups, counter 8 in the last two. Then one that ran once.
        for (dispatch, pass, counters) in [
            (1, Some(0), &[7][..]),
            (1, Some(1), &[7, 8]),
            (1, Some(2), &[7, 8]),
            (2, Some(0), &[7]),
            (2, Some(1), &[7, 8]),
            (2, Some(2), &[7, 8]),
            (3, None, &[7]),
        ] {
            counted.dispatches.push(DispatchRow {
                dispatch: DispatchId(dispatch),
                ..DispatchRow::default()
            });
            counted.dispatches.set_replay_pass(pass);
            counted.ranges.push(ValueRange {
                first: counted.values.len() as u64,
                count: counters.len() as u64,
            });
            for counter in counters {
                counted.values.push(CounterValue {
                    counter: *counter,
                    instance: 0,
                    value: 1.0,
                });
            }
        }
        let first = FirstPasses::new(&counted);
        let kept = (0..counted.len()).flat_map(|index| {
            let sums = counted
                .sums(index)
                .map(move |(counter, _)| (index, counter));
            sums.collect::<Vec<_>>()
        });
        let kept: Vec<_> = kept
            .filter(|(index, counter)| first.is_first(&counted, *index, *counter))
            .collect();
        assert_eq!(kept, [(0, 7), (1, 8), (3, 7), (4, 8), (6, 7)]);
        assert_eq!(counted.counted_once(), 3);
    }
}
