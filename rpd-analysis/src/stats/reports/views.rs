//! The views of RPD, and sequences of kernels.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use super::{Context, Rows, dims, grouped, op_key, optional, whole};
use crate::answer::{Value, key};
use crate::distribution::Distribution;
use crate::outliers::variability;
use crate::records::{Facts, Op};
use crate::stats::rows::{BusyRow, OpRow, SequenceRow, TopRow, ViewRow};
use crate::sweep::{Measure, Sweep};

pub(in crate::stats) fn top(context: &Context<'_>) -> Rows {
    let (names, all) = grouped(context.ops().map(|op| (op.name, op.length())));
    let rows = names.into_iter().map(|(name, values)| {
        let name = context.facts().name(name);
        TopRow {
            name: name.into(),
            total_calls: values.count().into(),
            total_ns: values.sum().into(),
            avg_ns: whole(values.mean()),
            share: Value::ratio(values.sum(), all),
            key: key(&[&"top", &name]).into(),
        }
        .cells()
    });
    rows.collect()
}

pub(in crate::stats) fn busy(context: &Context<'_>) -> Rows {
    let facts = context.facts();
    let mut gpus: BTreeMap<u32, (Sweep, Measure, u64)> = BTreeMap::new();
    let mut span: Option<(u64, u64)> = None;
    for op in context.ops() {
        let (sweep, measure, sum) = gpus.entry(op.gpu).or_default();
        sweep.add(op.start, op.end, op.class, |running| measure.add(running));
        *sum += op.length();
        let (first, last) = span.unwrap_or((op.start, op.end));
        span = Some((first.min(op.start), last.max(op.end)));
    }
    let wall = span.map_or(0, |(first, last)| last.saturating_sub(first));
    let rows = gpus
        .into_iter()
        .map(|(gpu, (mut sweep, mut measure, sum))| {
            sweep.finish(|running| measure.add(running));
            let gpu = &facts.gpus[gpu as usize];
            BusyRow {
                gpu: gpu.number.into(),
                busy_ns: sum.into(),
                wall_ns: wall.into(),
                busy: Value::ratio(sum, wall),
                utilisation: Value::ratio(measure.busy(), wall),
                key: key(&[&"busy", &gpu.node, &gpu.id]).into(),
            }
            .cells()
        });
    rows.collect()
}

fn view(facts: &Facts, op: &Op) -> Vec<Value> {
    let thread = op
        .launch
        .and_then(|launch| facts.threads.get(launch.thread as usize));
    let of_kernel = |values: [u32; 3]| op.is_kernel.then(|| dims(values.map(u64::from)));
    ViewRow {
        start_ns: op.start.into(),
        end_ns: op.end.into(),
        duration_ns: op.length().into(),
        pid: facts.pid(op.process).into(),
        tid: thread.map(|thread| thread.tid).into(),
        gpu: facts.gpus[op.gpu as usize].number.into(),
        queue: optional(op.queue),
        stream: op.stream.into(),
        grid: of_kernel(op.grid).into(),
        group: of_kernel(op.group).into(),
        bytes: (!op.is_kernel).then_some(op.bytes).into(),
        name: facts.name(op.name).into(),
        key: op_key(facts, op),
    }
    .cells()
}

pub(in crate::stats) fn kernel(context: &Context<'_>) -> Rows {
    let kernels = context.ops().filter(|op| op.is_kernel).take(context.limit);
    kernels.map(|op| view(context.facts(), &op)).collect()
}

pub(in crate::stats) fn copy(context: &Context<'_>) -> Rows {
    let copies = context.ops().filter(|op| !op.is_kernel).take(context.limit);
    copies.map(|op| view(context.facts(), &op)).collect()
}

pub(in crate::stats) fn api(context: &Context<'_>) -> Rows {
    let facts = context.facts();
    let rows = context.records.calls().take(context.limit).map(|call| {
        let thread = facts.thread(call.thread);
        ViewRow {
            start_ns: call.start.into(),
            end_ns: call.end.into(),
            duration_ns: call.end.saturating_sub(call.start).into(),
            pid: facts.pid(thread.process).into(),
            tid: thread.tid.into(),
            name: facts.name(call.name).into(),
            key: key(&[&"call", &facts.guid(thread.process), &call.id]).into(),
            ..ViewRow::default()
        }
        .cells()
    });
    rows.collect()
}

pub(in crate::stats) fn op(context: &Context<'_>) -> Rows {
    let facts = context.facts();
    let rows = context.ops().take(context.limit).map(|op| {
        OpRow {
            gpu: facts.gpus[op.gpu as usize].number.into(),
            queue: optional(op.queue),
            sequence: op.id.into(),
            start_ns: op.start.into(),
            end_ns: op.end.into(),
            description: facts.name(op.name).into(),
            op_type: if op.is_kernel {
                "KernelExecution"
            } else {
                "CopyDeviceMemory"
            }
            .into(),
            key: op_key(facts, &op),
        }
        .cells()
    });
    rows.collect()
}

/// Sums of one sequence of kernels.
#[derive(Default)]
struct Sequence {
    values: Distribution,
    gap: u64,
    first: u64,
    last: u64,
    class: &'static str,
}

pub(in crate::stats) fn seq_sum(context: &Context<'_>) -> Rows {
    let facts = context.facts();
    let mut lanes: BTreeMap<(u32, u32), (VecDeque<u32>, u64)> = BTreeMap::new();
    let mut sequences: BTreeMap<Vec<u32>, Sequence> = BTreeMap::new();
    for op in context.ops().filter(|op| op.is_kernel) {
        let (names, end) = lanes.entry((op.gpu, op.queue)).or_default();
        names.push_back(op.name);
        if names.len() > context.sequence {
            names.pop_front();
        }
        let gap = match *end {
            0 => 0,
            end => op.start.saturating_sub(end),
        };
        *end = (*end).max(op.end);
        if names.len() < context.sequence {
            continue;
        }
        let entry = sequences
            .entry(names.iter().copied().collect())
            .or_default();
        if entry.values.count() == 0 {
            (entry.first, entry.class) = (op.start, op.class.word());
        }
        entry.values.add(op.length());
        entry.gap += gap;
        entry.last = op.end;
    }
    let mut sequences: Vec<_> = sequences.into_iter().collect();
    sequences.sort_by_key(|sequence| Reverse(sequence.1.values.sum()));
    let rows = sequences.into_iter().map(|(names, mut sums)| {
        let names: Vec<&str> = names.iter().map(|name| facts.name(*name)).collect();
        let names = names.join(" > ");
        let varied = sums.values.values().map(|values| {
            let values: Vec<f64> = values.iter().map(|value| *value as f64).collect();
            variability(&values).round() as i64
        });
        SequenceRow {
            sequence: names.as_str().into(),
            category: sums.class.into(),
            calls: sums.values.count().into(),
            total_ns: sums.values.sum().into(),
            avg_ns: whole(sums.values.mean()),
            varsum_ns: varied.into(),
            gap_ns: sums.gap.into(),
            first_ns: sums.first.into(),
            last_ns: sums.last.into(),
            key: key(&[&"sequence", &names]).into(),
        }
        .cells()
    });
    rows.collect()
}
