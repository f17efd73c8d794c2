//! Reports of markers.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{Context, Rows, grouped, times};
use crate::answer::{Value, key};
use crate::distribution::Distribution;
use crate::records::{NONE, Style};
use crate::stats::rows::{MarkerProjectionRow, MarkerSumRow};

fn style(style: Style) -> &'static str {
    match style {
        Style::Nested => "nested",
        Style::Across => "across",
        Style::Mark => "mark",
    }
}

pub(in crate::stats) fn marker_sum(context: &Context<'_>) -> Rows {
    let (groups, all) = grouped(context.records.ranges().map(|range| {
        (
            (style(range.style), range.name),
            range.end.saturating_sub(range.start),
        )
    }));
    let rows = groups.into_iter().map(|((style, name), mut values)| {
        let name = context.facts().name(name);
        sum_row!(MarkerSumRow, context, values, all, instances, {
            style: style.into(),
            range: name.into(),
            key: key(&[&"marker", &style, &name]).into(),
        })
    });
    rows.collect()
}

/// A range with its operations.
#[derive(Clone, Copy)]
struct Projected {
    name: u32,
    style: Style,
    length: u64,
    parent: u32,
    level: u32,
    children: u32,
    ops: u64,
    first: u64,
    last: u64,
}

/// Sums of the ranges of one message.
#[derive(Default)]
struct Projection {
    lengths: Distribution,
    range_time: u64,
    ops: u64,
    levels: u64,
    children: u64,
}

pub(in crate::stats) fn marker_gpu_proj_sum(context: &Context<'_>) -> Rows {
    let facts = context.facts();
    let mut all: Vec<Projected> = Vec::new();
    let mut stacks: Vec<Vec<(u64, u32)>> = vec![Vec::new(); facts.threads.len()];
    let empty = Projected {
        name: NONE,
        style: Style::Mark,
        length: 0,
        parent: NONE,
        level: 0,
        children: 0,
        ops: 0,
        first: u64::MAX,
        last: 0,
    };
    for range in context.records.ranges() {
        let id = range.id as usize;
        if all.len() <= id {
            all.resize(id + 1, empty);
        }
        let mut made = Projected {
            name: range.name,
            style: range.style,
            length: range.end.saturating_sub(range.start),
            ..empty
        };
        if let Some(stack) = stacks
            .get_mut(range.thread as usize)
            .filter(|_| range.style == Style::Nested)
        {
            stack.retain(|outer| outer.0 > range.start);
            made.level = stack.len() as u32;
            if let Some((_, outer)) = stack.last() {
                made.parent = *outer;
                all[*outer as usize].children += 1;
            }
            stack.push((range.end, range.id));
        }
        all[id] = made;
    }
    for op in context.ops() {
        let mut at = op.launch.map_or(NONE, |launch| launch.range);
        while let Some(range) = all.get_mut(at as usize) {
            range.ops += 1;
            range.first = range.first.min(op.start);
            range.last = range.last.max(op.end);
            at = range.parent;
        }
    }
    let mut names: BTreeMap<(&'static str, u32), Projection> = BTreeMap::new();
    for range in all.iter().filter(|range| range.ops > 0) {
        let entry = names.entry((style(range.style), range.name)).or_default();
        entry.lengths.add(range.last - range.first);
        entry.range_time += range.length;
        entry.ops += range.ops;
        entry.levels += u64::from(range.level);
        entry.children += u64::from(range.children);
    }
    let mut names: Vec<_> = names.into_iter().collect();
    names.sort_by_key(|name| Reverse(name.1.lengths.sum()));
    let rows = names.into_iter().map(|((style, name), mut sums)| {
        let name = facts.name(name);
        let count = sums.lengths.count();
        let of = times(&mut sums.lengths);
        MarkerProjectionRow {
            range: name.into(),
            style: style.into(),
            total_proj_ns: of.total,
            total_range_ns: sums.range_time.into(),
            instances: of.count,
            avg_ns: of.avg,
            med_ns: of.med,
            min_ns: of.min,
            max_ns: of.max,
            stddev_ns: of.deviation,
            ops: sums.ops.into(),
            avg_ops: Value::ratio(sums.ops, count),
            avg_level: Value::ratio(sums.levels, count),
            avg_children: Value::ratio(sums.children, count),
            key: key(&[&"marker", &style, &name]).into(),
        }
        .cells()
    });
    rows.collect()
}
