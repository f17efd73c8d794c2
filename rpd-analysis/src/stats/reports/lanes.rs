//! Reports of streams and queues.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::{Context, Rows};
use crate::answer::key;
use crate::records::{NONE, Op};
use crate::stats::rows::LaneRow;

/// A stream or queue of a GPU, added up.
#[derive(Default)]
struct Lane {
    ops: u64,
    sum: u64,
    busy: u64,
    overlap: u64,
    first: Option<u64>,
    last: u64,
}

/// The streams or queues of a GPU in a pass over operations.
#[derive(Default)]
struct Lanes {
    now: u64,
    ends: BinaryHeap<Reverse<(u64, u32)>>,
    /// Operations that run in each.
    running: BTreeMap<u32, u32>,
    all: BTreeMap<u32, Lane>,
}

impl Lanes {
    fn add(&mut self, op: &Op, number: u32, start: u64, end: u64) {
        let lane = self.all.entry(number).or_default();
        lane.ops += 1;
        lane.sum += end.saturating_sub(start);
        lane.first.get_or_insert(op.start);
        lane.last = lane.last.max(op.end);
        if end > start {
            self.advance(start);
            self.ends.push(Reverse((end, number)));
            *self.running.entry(number).or_default() += 1;
        }
    }

    fn advance(&mut self, to: u64) {
        while let Some(Reverse((end, number))) =
            self.ends.peek().copied().filter(|end| end.0.0 <= to)
        {
            self.step(end);
            self.ends.pop();
            if let Some(running) = self.running.get_mut(&number) {
                *running -= 1;
                if *running == 0 {
                    self.running.remove(&number);
                }
            }
        }
        self.step(to);
    }

    fn step(&mut self, to: u64) {
        let length = to.saturating_sub(self.now);
        let is_shared = self.running.len() > 1;
        for number in self.running.keys() {
            let lane = self.all.entry(*number).or_default();
            lane.busy += length;
            lane.overlap += if is_shared { length } else { 0 };
        }
        self.now = self.now.max(to);
    }
}

fn lanes(context: &Context<'_>, kind: &str, number: fn(&Op) -> u32) -> Rows {
    let facts = context.facts();
    let mut gpus: BTreeMap<u32, Lanes> = BTreeMap::new();
    let (from, to) = context.window;
    for op in context.records.ops().filter(|op| number(op) != NONE) {
        if op.start >= to.max(from + 1) || op.end < from {
            continue;
        }
        let lanes = gpus.entry(op.gpu).or_default();
        lanes.add(&op, number(&op), op.start.max(from), op.end.min(to));
    }
    let mut rows = Vec::new();
    for (gpu, mut lanes) in gpus {
        lanes.advance(u64::MAX);
        let gpu = &facts.gpus[gpu as usize];
        for (number, lane) in lanes.all {
            let row = LaneRow {
                device: gpu.number.into(),
                number: number.into(),
                ops: lane.ops.into(),
                sum_ns: lane.sum.into(),
                busy_ns: lane.busy.into(),
                overlap_ns: lane.overlap.into(),
                first_ns: lane.first.into(),
                last_ns: lane.last.into(),
                key: key(&[&kind, &gpu.node, &gpu.id, &number]).into(),
            };
            rows.push(row.cells());
        }
    }
    rows
}

pub(in crate::stats) fn stream_sum(context: &Context<'_>) -> Rows {
    lanes(context, "stream", |op| op.stream)
}

pub(in crate::stats) fn queue_sum(context: &Context<'_>) -> Rows {
    lanes(context, "queue", |op| op.queue)
}
