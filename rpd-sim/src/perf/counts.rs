//! The counters' values of one dispatch.

use crate::isa::Stats;

/// What a counted dispatch made the counters advance by.
#[derive(Debug, Clone)]
pub(crate) struct Counts {
    stats: Stats,
}

impl Counts {
    /// The counts of a dispatch that did this.
    pub(crate) fn new(stats: Stats) -> Self {
        Self { stats }
    }

    /// Value of an event in one instance of its block: `shader_engine` and `instance` as the counter's dimensions
    /// have them, 0 where it lacks the dimension. `None` exactly where [`super::determined`] is false.
    pub(crate) fn value(
        &self,
        block: &str,
        event: u32,
        shader_engine: u32,
        instance: u32,
    ) -> Option<f64> {
        if shader_engine != 0 || instance != 0 {
            return super::determined(block, event).then_some(0.0);
        }
        match (block, event) {
            ("SQ", 4) => Some(self.stats.waves as f64),
            ("SQ", 14) => Some(self.stats.work_items as f64),
            _ => None,
        }
    }

    /// The event's level, summed over all cycles of the dispatch. `None` exactly where [`super::accumulates`] is
    /// false.
    pub(crate) fn accumulated(
        &self,
        _block: &str,
        _event: u32,
        _shader_engine: u32,
        _instance: u32,
    ) -> Option<f64> {
        None
    }
}
