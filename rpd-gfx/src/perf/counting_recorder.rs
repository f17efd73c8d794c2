//! A probe that counts and records a dispatch at the same time.

use super::{Model, Recorder};
use crate::isa::{Probe, Step, Workgroup};
use std::collections::HashSet;

/// A probe that counts all workgroups, and records those that the recorder selects.
pub struct CountingRecorder<'p, 'm, 'r> {
    model: &'p mut Model<'m>,
    recorder: &'p mut Recorder<'r>,
    /// Workgroups that the recorder selected.
    followed: HashSet<u64>,
    /// Whether the next instructions are recorded.
    recorded: bool,
}

impl<'p, 'm, 'r> CountingRecorder<'p, 'm, 'r> {
    /// Combines a model and a recorder of the same dispatch.
    pub fn new(model: &'p mut Model<'m>, recorder: &'p mut Recorder<'r>) -> Self {
        Self {
            model,
            recorder,
            followed: HashSet::new(),
            recorded: false,
        }
    }
}

impl Probe for CountingRecorder<'_, '_, '_> {
    fn follows(&mut self, group: &Workgroup) -> bool {
        if self.recorder.follows(group) {
            self.followed.insert(group.id);
        }
        true
    }

    fn window(&mut self, group: u64, wave: usize, executed: u64) -> (bool, u64) {
        self.recorded = false;
        if !self.followed.contains(&group) {
            return (true, u64::MAX);
        }
        let (recorded, until) = self.recorder.window(group, wave, executed);
        self.recorded = recorded;
        (true, until)
    }

    fn started(&mut self, group: &Workgroup) {
        self.model.started(group);
        if self.followed.contains(&group.id) {
            self.recorder.started(group);
        }
    }

    fn executed(&mut self, step: &Step<'_>) {
        self.model.executed(step);
        if self.recorded {
            self.recorder.executed(step);
        }
    }

    fn waits(&mut self, group: u64, wave: usize, offset: u64, exec: u64) {
        self.recorder.waits(group, wave, offset, exec);
    }

    fn released(&mut self, group: u64) {
        self.model.released(group);
        self.recorder.released(group);
    }

    fn retired(&mut self, group: u64, wave: usize, executed: u64) {
        self.recorder.retired(group, wave, executed);
    }

    fn ended(&mut self, group: u64) {
        self.model.ended(group);
        self.recorder.ended(group);
    }
}
