//! Times that pass between operations without a fault of the program, as a recording shows them.

use std::collections::{BTreeMap, VecDeque};

use crate::distribution::Samples;
use crate::records::{Op, Records};

/// Launch floor without measurements: 10 us.
const LAUNCH_FLOOR: u64 = 10_000;
/// Turnaround floor without measurements: 5 us.
const TURNAROUND_FLOOR: u64 = 5_000;
/// Measurements that a floor needs.
const FLOOR_SAMPLES: usize = 20;
/// Busy times of a GPU before an operation that are remembered to tell whether it was idle.
const BUSY_TIMES: usize = 256;

/// Times that pass without anybody's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Floors {
    /// From a call to the start of its operation on an idle GPU.
    pub launch: u64,
    /// Whether `launch` was measured; otherwise there were too few measurements.
    pub is_launch_measured: bool,
    /// From the end of a kernel to the start of one that was requested long before.
    pub turnaround: u64,
    /// Whether `turnaround` was measured.
    pub is_turnaround_measured: bool,
}

impl Floors {
    /// Measures both floors.
    pub(super) fn measured(records: &dyn Records) -> Floors {
        let mut of_gpu: Vec<FloorState> = Vec::new();
        let mut queues: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        let mut latencies = Samples::default();
        let mut turnarounds: Samples<(u64, u64)> = Samples::default();
        for op in records.ops().filter(|op| op.end > op.start) {
            let gpu = op.gpu as usize;
            if of_gpu.len() <= gpu {
                of_gpu.resize_with(gpu + 1, FloorState::default);
            }
            let state = &mut of_gpu[gpu];
            let queue_end = queues.entry((op.gpu, op.queue)).or_default();
            if let Some(launch) = op.launch {
                if state.was_idle(launch.begin) && *queue_end <= launch.begin {
                    latencies.add(op.start.saturating_sub(launch.begin));
                }
                let before = state.kernel_end;
                if op.class.is_kernel_work() && before > launch.begin && op.start > before {
                    turnarounds.add((op.start - before, before - launch.begin));
                }
            }
            *queue_end = (*queue_end).max(op.end);
            state.add(&op);
        }
        let floor = |mut values: Vec<u64>, usual: u64| {
            if values.len() < FLOOR_SAMPLES {
                return (usual, false);
            }
            values.sort_unstable();
            (values[values.len().div_ceil(10) - 1], true)
        };
        let (launch, is_launch_measured) = floor(latencies.kept().to_vec(), LAUNCH_FLOOR);
        let ahead = turnarounds.kept().iter().filter(|gap| gap.1 > launch);
        let ahead = ahead.map(|gap| gap.0).collect();
        let (turnaround, is_turnaround_measured) = floor(ahead, TURNAROUND_FLOOR);
        Floors {
            launch,
            is_launch_measured,
            turnaround,
            is_turnaround_measured,
        }
    }
}

/// What is known of a GPU when an operation starts on it.
#[derive(Default)]
struct FloorState {
    /// The latest times in which anything ran, joined.
    busy: VecDeque<(u64, u64)>,
    /// Whether earlier ones were forgotten.
    has_forgotten: bool,
    /// End of the kernels so far.
    kernel_end: u64,
}

impl FloorState {
    /// Whether nothing ran at an instant; not when that was too long ago to be known.
    fn was_idle(&self, at: u64) -> bool {
        let before = self.busy.iter().rev().find(|busy| busy.0 <= at);
        match before {
            Some(busy) => busy.1 <= at,
            None => !self.has_forgotten,
        }
    }

    fn add(&mut self, op: &Op) {
        match self.busy.back_mut() {
            Some(last) if op.start <= last.1 => last.1 = last.1.max(op.end),
            _ => self.busy.push_back((op.start, op.end)),
        }
        if self.busy.len() > BUSY_TIMES {
            self.busy.pop_front();
            self.has_forgotten = true;
        }
        if op.class.is_kernel_work() {
            self.kernel_end = self.kernel_end.max(op.end);
        }
    }
}
