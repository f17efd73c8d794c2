//! Reports of copies, and of copies and kernels together.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{Context, Rows, dims, group, grouped, groups, op_key, optional, times};
use crate::answer::{Value, key};
use crate::distribution::Distribution;
use crate::stats::rows::{CopySizeRow, CopySumRow, GpuSumRow, GpuTraceRow};

pub(in crate::stats) fn copy_time_sum(context: &Context<'_>) -> Rows {
    let (groups, all) = grouped(
        context
            .ops()
            .filter(|op| !op.is_kernel)
            .map(|op| (op.name, context.cut(op.start, op.end))),
    );
    let rows = groups.into_iter().map(|(name, mut values)| {
        let name = context.facts().name(name);
        sum_row!(CopySumRow, context, values, all, count, {
            operation: name.into(),
            key: key(&[&"copy", &name]).into(),
        })
    });
    rows.collect()
}

/// Bytes per second; not known without time.
fn rate(bytes: u64, time: u64) -> Value {
    match time {
        0 => Value::Null,
        _ => Value::from(bytes as f64 / (time as f64 / 1e9)),
    }
}

pub(in crate::stats) fn copy_size_sum(context: &Context<'_>) -> Rows {
    let mut names: BTreeMap<u32, (Distribution, u64)> = BTreeMap::new();
    for op in context.ops().filter(|op| !op.is_kernel) {
        let entry = names.entry(op.name).or_default();
        entry.0.add(op.bytes);
        entry.1 += op.length();
    }
    let mut names: Vec<_> = names.into_iter().collect();
    names.sort_by_key(|name| Reverse(name.1.0.sum()));
    let rows = names.into_iter().map(|(name, (mut sizes, time))| {
        let name = context.facts().name(name);
        let of = times(&mut sizes);
        CopySizeRow {
            total_bytes: of.total,
            count: of.count,
            avg_bytes: of.avg,
            med_bytes: of.med,
            min_bytes: of.min,
            max_bytes: of.max,
            stddev_bytes: of.deviation,
            operation: name.into(),
            rate: rate(sizes.sum(), time),
            key: key(&[&"copy", &name]).into(),
        }
        .cells()
    });
    rows.collect()
}

pub(in crate::stats) fn gpu_sum(context: &Context<'_>) -> Rows {
    let (groups, all) = grouped(
        context
            .ops()
            .map(|op| ((op.class.word(), op.name), context.cut(op.start, op.end))),
    );
    let rows = groups.into_iter().map(|((class, name), mut values)| {
        let name = context.facts().name(name);
        sum_row!(GpuSumRow, context, values, all, instances, {
            category: class.into(),
            operation: name.into(),
            key: key(&[&"op", &class, &name]).into(),
        })
    });
    rows.collect()
}

/// Kinds of memory that a copy reads and writes, by the words of its direction.
fn memories(name: &str) -> (Option<&'static str>, Option<&'static str>) {
    let kind = |word: &str| match word {
        "HOST" => Some("host"),
        "DEVICE" => Some("device"),
        _ => None,
    };
    let mut words = name.trim_start_matches("MEMORY_COPY_").split("_TO_");
    (words.next().and_then(kind), words.next().and_then(kind))
}

pub(in crate::stats) fn gpu_trace(context: &Context<'_>) -> Rows {
    let facts = context.facts();
    let rows = context.ops().take(context.limit).map(|op| {
        let resources = facts.kernels.get(op.kernel as usize);
        let name = facts.name(op.name);
        let (source, destination) = if op.is_kernel {
            (None, None)
        } else {
            memories(name)
        };
        let of_kernel = |value: Value| if op.is_kernel { value } else { Value::Null };
        GpuTraceRow {
            start_ns: op.start.into(),
            duration_ns: op.length().into(),
            corr_id: op.launch.map(|launch| launch.call).into(),
            grid: of_kernel(dims(groups(&op)).into()),
            group: of_kernel(dims(group(&op)).into()),
            registers: resources.map(|resources| resources.vgprs).into(),
            lds: of_kernel(op.lds.into()),
            scratch: of_kernel(op.scratch.into()),
            bytes: (!op.is_kernel).then_some(op.bytes).into(),
            throughput: if op.is_kernel {
                Value::Null
            } else {
                rate(op.bytes, op.length())
            },
            source: source.into(),
            destination: destination.into(),
            device: facts.gpus[op.gpu as usize].number.into(),
            queue: optional(op.queue),
            stream: op.stream.into(),
            name: name.into(),
            key: op_key(facts, &op),
        }
        .cells()
    });
    rows.collect()
}
