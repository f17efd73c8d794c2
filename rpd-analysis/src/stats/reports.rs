//! What makes each report of records. The reports are in a module for each subject; here is what they share.

/// Makes the cells of a report of sums: the columns that all of these have, and those that are given. `$count` is the
/// column with the number of durations.
macro_rules! sum_row {
    ($row:ident, $context:ident, $values:ident, $all:ident, $count:ident, { $($field:ident: $value:expr),* $(,)? }) => {{
        let of = super::times(&mut $values);
        $row {
            time_share: crate::answer::Value::ratio($values.sum(), $all),
            total_ns: of.total,
            $count: of.count,
            avg_ns: of.avg,
            med_ns: of.med,
            min_ns: of.min,
            max_ns: of.max,
            stddev_ns: of.deviation,
            wall_share: crate::answer::Value::ratio($values.sum(), $context.length()),
            $($field: $value,)*
        }
        .cells()
    }};
}

mod calls;
mod copies;
mod kernels;
mod lanes;
mod markers;
mod views;

use std::collections::BTreeMap;

use super::Context;
use crate::answer::{Value, key};
use crate::distribution::Distribution;
use crate::records::{Facts, NONE, Op};

pub(super) use calls::{alloc_sum, api_sum, api_trace, sync_sum};
pub(super) use copies::{copy_size_sum, copy_time_sum, gpu_sum, gpu_trace};
pub(super) use kernels::{kern_exec_sum, kern_exec_trace, kern_gb_sum, kern_sum};
pub(super) use lanes::{queue_sum, stream_sum};
pub(super) use markers::{marker_gpu_proj_sum, marker_sum};
pub(super) use views::{api, busy, copy, kernel, op, seq_sum, top};

type Rows = Vec<Vec<Value>>;

impl Context<'_> {
    fn facts(&self) -> &Facts {
        self.records.facts()
    }

    /// Operations that overlap the window, whole; a copy between GPUs once.
    fn ops(&self) -> impl Iterator<Item = Op> + '_ {
        let (from, to) = self.window;
        let inside = move |op: &Op| op.start < to.max(from + 1) && op.end >= from && !op.is_second;
        self.records.ops().filter(inside)
    }

    fn cut(&self, start: u64, end: u64) -> u64 {
        end.min(self.window.1)
            .saturating_sub(start.max(self.window.0))
    }

    fn length(&self) -> u64 {
        self.window.1.saturating_sub(self.window.0)
    }
}

/// Six columns of times.
struct Times {
    total: Value,
    count: Value,
    avg: Value,
    med: Value,
    min: Value,
    max: Value,
    deviation: Value,
}

fn whole(value: Option<f64>) -> Value {
    value.map(|value| value.round() as i64).into()
}

fn times(values: &mut Distribution) -> Times {
    Times {
        total: values.sum().into(),
        count: values.count().into(),
        avg: whole(values.mean()),
        med: whole(values.median()),
        min: values.min().into(),
        max: values.max().into(),
        deviation: whole(values.deviation()),
    }
}

/// Groups of durations by total, the greatest first, and the total of all.
fn grouped<K: Ord>(durations: impl Iterator<Item = (K, u64)>) -> (Vec<(K, Distribution)>, u64) {
    let mut groups: BTreeMap<K, Distribution> = BTreeMap::new();
    for (key, duration) in durations {
        groups.entry(key).or_default().add(duration);
    }
    ordered(groups)
}

/// Groups by total, the greatest first, and the total of all.
fn ordered<K: Ord>(groups: BTreeMap<K, Distribution>) -> (Vec<(K, Distribution)>, u64) {
    let all = groups.values().map(Distribution::sum).sum();
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by(|a, b| b.1.sum().cmp(&a.1.sum()).then_with(|| a.0.cmp(&b.0)));
    (groups, all)
}

fn dims(values: [u64; 3]) -> String {
    format!("{:4} {:4} {:4}", values[0], values[1], values[2])
}

fn groups(op: &Op) -> [u64; 3] {
    [0, 1, 2].map(|axis| match op.group[axis] {
        0 => 0,
        group => op.grid[axis].div_ceil(group).into(),
    })
}

fn group(op: &Op) -> [u64; 3] {
    op.group.map(u64::from)
}

fn optional(number: u32) -> Value {
    match number {
        NONE => Value::Null,
        number => number.into(),
    }
}

fn op_key(facts: &Facts, op: &Op) -> Value {
    let guid = facts.guid(op.process);
    let kind = if op.is_kernel { "kernel" } else { "copy" };
    key(&[&kind, &guid, &op.id]).into()
}
