//! What makes each report of records.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};

use super::Context;
use super::rows::{
    AllocRow, ApiSumRow, ApiTraceRow, BusyRow, CopySizeRow, CopySumRow, ExecSumRow, ExecTraceRow,
    GpuSumRow, GpuTraceRow, KernelGeometryRow, KernelSumRow, LaneRow, MarkerProjectionRow,
    MarkerSumRow, OpRow, SequenceRow, SyncRow, TopRow, ViewRow,
};
use crate::answer::{Value, key};
use crate::classes::{Calls, Doing};
use crate::distribution::Distribution;
use crate::outliers::variability;
use crate::records::{Facts, NONE, Op, Style};
use crate::sweep::{Measure, Sweep};

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

pub(super) fn kern_sum(context: &Context<'_>) -> Rows {
    let mut names: BTreeMap<u32, Distribution> = BTreeMap::new();
    for op in context.ops().filter(|op| op.is_kernel) {
        names
            .entry(op.name)
            .or_default()
            .add(context.cut(op.start, op.end));
    }
    let (names, all) = ordered(names);
    let rows = names.into_iter().map(|(name, mut values)| {
        let name = context.facts().name(name);
        let of = times(&mut values);
        KernelSumRow {
            time_share: Value::ratio(values.sum(), all),
            total_ns: of.total,
            instances: of.count,
            avg_ns: of.avg,
            med_ns: of.med,
            min_ns: of.min,
            max_ns: of.max,
            stddev_ns: of.deviation,
            name: name.into(),
            wall_share: Value::ratio(values.sum(), context.length()),
            key: key(&[&"kernel", &name]).into(),
        }
        .cells()
    });
    rows.collect()
}

pub(super) fn kern_gb_sum(context: &Context<'_>) -> Rows {
    let mut names: BTreeMap<(u32, [u64; 3], [u64; 3]), Distribution> = BTreeMap::new();
    for op in context.ops().filter(|op| op.is_kernel) {
        let entry = names.entry((op.name, groups(&op), group(&op))).or_default();
        entry.add(context.cut(op.start, op.end));
    }
    let (names, all) = ordered(names);
    let rows = names.into_iter().map(|((name, grid, group), mut values)| {
        let name = context.facts().name(name);
        let of = times(&mut values);
        KernelGeometryRow {
            time_share: Value::ratio(values.sum(), all),
            total_ns: of.total,
            instances: of.count,
            avg_ns: of.avg,
            med_ns: of.med,
            min_ns: of.min,
            max_ns: of.max,
            stddev_ns: of.deviation,
            grid: dims(grid).into(),
            group: dims(group).into(),
            name: name.into(),
            wall_share: Value::ratio(values.sum(), context.length()),
            key: key(&[&"kernel", &name, &dims(grid), &dims(group)]).into(),
        }
        .cells()
    });
    rows.collect()
}

/// Times of an operation with its call: total, call, queue, kernel. The queue time of one that starts inside its call is `None`.
fn latencies(op: &Op) -> Option<(u64, u64, Option<u64>, u64)> {
    let launch = op.launch?;
    let total = launch.end.max(op.end).saturating_sub(launch.begin);
    let queued = op
        .start
        .checked_sub(launch.end)
        .filter(|queued| *queued > 0);
    Some((
        total,
        launch.end.saturating_sub(launch.begin),
        queued,
        op.length(),
    ))
}

pub(super) fn kern_exec_sum(context: &Context<'_>) -> Rows {
    let facts = context.facts();
    let mut groups: BTreeMap<(u32, u32, u32, u32), [Distribution; 4]> = BTreeMap::new();
    // Queue time is that of the first node of a graph alone.
    let mut last_graph: HashMap<u32, u64> = HashMap::new();
    for op in context.ops().filter(|op| op.is_kernel) {
        let (Some(launch), Some((total, call, queued, kernel))) = (op.launch, latencies(&op))
        else {
            continue;
        };
        let is_first =
            !launch.is_graph || last_graph.insert(op.process, launch.call) != Some(launch.call);
        let group = groups
            .entry((launch.thread, op.gpu, launch.name, op.name))
            .or_default();
        group[0].add(total);
        group[1].add(call);
        if let Some(queued) = queued.filter(|_| is_first) {
            group[2].add(queued);
        }
        group[3].add(kernel);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|group| Reverse(group.1[3].sum()));
    let rows = groups
        .into_iter()
        .map(|((thread, gpu, api, name), mut values)| {
            let thread = facts
                .threads
                .get(thread as usize)
                .copied()
                .unwrap_or_default();
            let pid = facts
                .processes
                .get(thread.process as usize)
                .map(|process| process.pid);
            let number = facts.gpus[gpu as usize].number;
            let (api, name) = (facts.name(api), facts.name(name));
            let (count, qcount) = (values[3].count(), values[2].count());
            let [t, a, q, k] = [0, 1, 2, 3].map(|at| times(&mut values[at]));
            ExecSumRow {
                pid: pid.into(),
                tid: thread.tid.into(),
                device: number.into(),
                count: count.into(),
                qcount: qcount.into(),
                tavg_ns: t.avg,
                tmed_ns: t.med,
                tmin_ns: t.min,
                tmax_ns: t.max,
                tstddev_ns: t.deviation,
                aavg_ns: a.avg,
                amed_ns: a.med,
                amin_ns: a.min,
                amax_ns: a.max,
                astddev_ns: a.deviation,
                qavg_ns: q.avg,
                qmed_ns: q.med,
                qmin_ns: q.min,
                qmax_ns: q.max,
                qstddev_ns: q.deviation,
                kavg_ns: k.avg,
                kmed_ns: k.med,
                kmin_ns: k.min,
                kmax_ns: k.max,
                kstddev_ns: k.deviation,
                api: api.into(),
                name: name.into(),
                key: key(&[
                    &"exec",
                    &pid.unwrap_or(0),
                    &thread.tid,
                    &number,
                    &api,
                    &name,
                ])
                .into(),
            }
            .cells()
        });
    rows.collect()
}

fn op_key(facts: &Facts, op: &Op) -> Value {
    let guid = facts
        .processes
        .get(op.process as usize)
        .map_or("", |process| &process.guid);
    let kind = if op.is_kernel { "kernel" } else { "copy" };
    key(&[&kind, &guid, &op.id]).into()
}

pub(super) fn kern_exec_trace(context: &Context<'_>) -> Rows {
    let facts = context.facts();
    let launched = context
        .ops()
        .filter(|op| op.is_kernel && op.launch.is_some());
    let rows = launched.take(context.limit).filter_map(|op| {
        let launch = op.launch?;
        let (total, call, queued, kernel) = latencies(&op)?;
        let thread = facts.threads.get(launch.thread as usize);
        let row = ExecTraceRow {
            api_start_ns: launch.begin.into(),
            api_dur_ns: call.into(),
            queue_start_ns: queued.map(|_| launch.end).into(),
            queue_dur_ns: queued.into(),
            kernel_start_ns: op.start.into(),
            kernel_dur_ns: kernel.into(),
            total_dur_ns: total.into(),
            pid: facts
                .processes
                .get(op.process as usize)
                .map(|process| process.pid)
                .into(),
            tid: thread.map(|thread| thread.tid).into(),
            device: facts.gpus[op.gpu as usize].number.into(),
            api: facts.name(launch.name).into(),
            grid: dims(groups(&op)).into(),
            group: dims(group(&op)).into(),
            name: facts.name(op.name).into(),
            key: op_key(facts, &op),
        };
        Some(row.cells())
    });
    rows.collect()
}

pub(super) fn copy_time_sum(context: &Context<'_>) -> Rows {
    let mut names: BTreeMap<u32, Distribution> = BTreeMap::new();
    for op in context.ops().filter(|op| !op.is_kernel) {
        names
            .entry(op.name)
            .or_default()
            .add(context.cut(op.start, op.end));
    }
    let (names, all) = ordered(names);
    let rows = names.into_iter().map(|(name, mut values)| {
        let name = context.facts().name(name);
        let of = times(&mut values);
        CopySumRow {
            time_share: Value::ratio(values.sum(), all),
            total_ns: of.total,
            count: of.count,
            avg_ns: of.avg,
            med_ns: of.med,
            min_ns: of.min,
            max_ns: of.max,
            stddev_ns: of.deviation,
            operation: name.into(),
            wall_share: Value::ratio(values.sum(), context.length()),
            key: key(&[&"copy", &name]).into(),
        }
        .cells()
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

pub(super) fn copy_size_sum(context: &Context<'_>) -> Rows {
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

pub(super) fn gpu_sum(context: &Context<'_>) -> Rows {
    let mut names: BTreeMap<(&'static str, u32), Distribution> = BTreeMap::new();
    for op in context.ops() {
        let entry = names.entry((op.class.word(), op.name)).or_default();
        entry.add(context.cut(op.start, op.end));
    }
    let (names, all) = ordered(names);
    let rows = names.into_iter().map(|((class, name), mut values)| {
        let name = context.facts().name(name);
        let of = times(&mut values);
        GpuSumRow {
            time_share: Value::ratio(values.sum(), all),
            total_ns: of.total,
            instances: of.count,
            avg_ns: of.avg,
            med_ns: of.med,
            min_ns: of.min,
            max_ns: of.max,
            stddev_ns: of.deviation,
            category: class.into(),
            operation: name.into(),
            wall_share: Value::ratio(values.sum(), context.length()),
            key: key(&[&"op", &class, &name]).into(),
        }
        .cells()
    });
    rows.collect()
}

fn optional(number: u32) -> Value {
    match number {
        NONE => Value::Null,
        number => number.into(),
    }
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

pub(super) fn gpu_trace(context: &Context<'_>) -> Rows {
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

pub(super) fn api_sum(context: &Context<'_>) -> Rows {
    let mut names: BTreeMap<u32, Distribution> = BTreeMap::new();
    for call in context.records.calls() {
        names
            .entry(call.name)
            .or_default()
            .add(call.end.saturating_sub(call.start));
    }
    let (names, all) = ordered(names);
    let rows = names.into_iter().map(|(name, mut values)| {
        let name = context.facts().name(name);
        let of = times(&mut values);
        ApiSumRow {
            time_share: Value::ratio(values.sum(), all),
            total_ns: of.total,
            num_calls: of.count,
            avg_ns: of.avg,
            med_ns: of.med,
            min_ns: of.min,
            max_ns: of.max,
            stddev_ns: of.deviation,
            name: name.into(),
            wall_share: Value::ratio(values.sum(), context.length()),
            key: key(&[&"api", &name]).into(),
        }
        .cells()
    });
    rows.collect()
}

pub(super) fn api_trace(context: &Context<'_>) -> Rows {
    let facts = context.facts();
    let rows = context.records.calls().take(context.limit).map(|call| {
        let thread = facts
            .threads
            .get(call.thread as usize)
            .copied()
            .unwrap_or_default();
        let process = facts.processes.get(thread.process as usize);
        ApiTraceRow {
            start_ns: call.start.into(),
            duration_ns: call.end.saturating_sub(call.start).into(),
            name: facts.name(call.name).into(),
            result: Value::Null,
            corr_id: call.id.into(),
            pid: process.map(|process| process.pid).into(),
            tid: thread.tid.into(),
            key: key(&[
                &"call",
                &process.map_or("", |process| &process.guid),
                &call.id,
            ])
            .into(),
        }
        .cells()
    });
    rows.collect()
}

fn style(style: Style) -> &'static str {
    match style {
        Style::Nested => "nested",
        Style::Across => "across",
        Style::Mark => "mark",
    }
}

pub(super) fn marker_sum(context: &Context<'_>) -> Rows {
    let mut names: BTreeMap<(&'static str, u32), Distribution> = BTreeMap::new();
    for range in context.records.ranges() {
        let entry = names.entry((style(range.style), range.name)).or_default();
        entry.add(range.end.saturating_sub(range.start));
    }
    let (names, all) = ordered(names);
    let rows = names.into_iter().map(|((style, name), mut values)| {
        let name = context.facts().name(name);
        let of = times(&mut values);
        MarkerSumRow {
            time_share: Value::ratio(values.sum(), all),
            total_ns: of.total,
            instances: of.count,
            avg_ns: of.avg,
            med_ns: of.med,
            min_ns: of.min,
            max_ns: of.max,
            stddev_ns: of.deviation,
            style: style.into(),
            range: name.into(),
            wall_share: Value::ratio(values.sum(), context.length()),
            key: key(&[&"marker", &style, &name]).into(),
        }
        .cells()
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

pub(super) fn marker_gpu_proj_sum(context: &Context<'_>) -> Rows {
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

pub(super) fn sync_sum(context: &Context<'_>) -> Rows {
    let facts = context.facts();
    let doing = Calls::default().of_all(&facts.names);
    let waits = context.records.calls();
    let waits = waits.filter(|call| doing.get(call.name as usize) == Some(&Doing::Sync));
    // Times in which any GPU runs something, joined; they are read as far as the calls go.
    let mut busy: VecDeque<(u64, u64)> = VecDeque::new();
    let mut ops = context.records.ops().peekable();
    let mut names: BTreeMap<u32, (Distribution, u64)> = BTreeMap::new();
    for call in waits {
        while let Some(op) = ops.next_if(|op| op.start < call.end) {
            match busy.back_mut() {
                Some(last) if op.start <= last.1 => last.1 = last.1.max(op.end),
                _ => busy.push_back((op.start, op.end)),
            }
        }
        // Calls come in the order of begins.
        while busy.len() > 1 && busy.front().is_some_and(|busy| busy.1 <= call.start) {
            busy.pop_front();
        }
        let cut = |busy: &(u64, u64)| busy.1.min(call.end).saturating_sub(busy.0.max(call.start));
        let entry = names.entry(call.name).or_default();
        entry.0.add(call.end.saturating_sub(call.start));
        entry.1 += busy.iter().map(cut).sum::<u64>();
    }
    let mut names: Vec<_> = names.into_iter().collect();
    names.sort_by_key(|name| Reverse(name.1.0.sum()));
    let rows = names.into_iter().map(|(name, (mut values, busy))| {
        let name = facts.name(name);
        let of = times(&mut values);
        SyncRow {
            name: name.into(),
            calls: of.count,
            total_ns: of.total,
            busy_ns: busy.into(),
            idle_ns: values.sum().saturating_sub(busy).into(),
            avg_ns: of.avg,
            max_ns: of.max,
            key: key(&[&"sync", &name]).into(),
        }
        .cells()
    });
    rows.collect()
}

/// Sums of allocations in one place.
#[derive(Default)]
struct Allocated {
    allocations: u64,
    frees: u64,
    bytes: u64,
    live: u64,
    peak: u64,
    time: u64,
}

pub(super) fn alloc_sum(context: &Context<'_>) -> Rows {
    let facts = context.facts();
    let mut places: BTreeMap<(u32, bool), Allocated> = BTreeMap::new();
    let mut live: HashMap<(u32, u64), (u64, bool)> = HashMap::new();
    for change in context.records.allocations() {
        let time = change.end.saturating_sub(change.start);
        if change.is_free {
            if let Some((bytes, is_host)) = live.remove(&(change.process, change.address)) {
                let place = places.entry((change.process, is_host)).or_default();
                place.frees += 1;
                place.live -= bytes;
                place.time += time;
            }
            continue;
        }
        let place = places.entry((change.process, change.is_host)).or_default();
        place.allocations += 1;
        place.bytes += change.bytes;
        place.live += change.bytes;
        place.peak = place.peak.max(place.live);
        place.time += time;
        let before = live.insert(
            (change.process, change.address),
            (change.bytes, change.is_host),
        );
        // Its free was not recorded.
        if let Some((bytes, is_host)) = before {
            let place = places.entry((change.process, is_host)).or_default();
            place.live = place.live.saturating_sub(bytes);
        }
    }
    let rows = places.into_iter().map(|((process, is_host), sums)| {
        let process = &facts.processes[process as usize];
        let place = if is_host { "host" } else { "device" };
        AllocRow {
            pid: process.pid.into(),
            where_is: place.into(),
            allocations: sums.allocations.into(),
            frees: sums.frees.into(),
            bytes: sums.bytes.into(),
            peak_bytes: sums.peak.into(),
            live_bytes: sums.live.into(),
            time_ns: sums.time.into(),
            key: key(&[&"alloc", &process.guid, &place]).into(),
        }
        .cells()
    });
    rows.collect()
}

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

pub(super) fn stream_sum(context: &Context<'_>) -> Rows {
    lanes(context, "stream", |op| op.stream)
}

pub(super) fn queue_sum(context: &Context<'_>) -> Rows {
    lanes(context, "queue", |op| op.queue)
}

pub(super) fn top(context: &Context<'_>) -> Rows {
    let mut names: BTreeMap<u32, Distribution> = BTreeMap::new();
    for op in context.ops() {
        names.entry(op.name).or_default().add(op.length());
    }
    let (names, all) = ordered(names);
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

pub(super) fn busy(context: &Context<'_>) -> Rows {
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
        pid: facts
            .processes
            .get(op.process as usize)
            .map(|process| process.pid)
            .into(),
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

pub(super) fn kernel(context: &Context<'_>) -> Rows {
    let kernels = context.ops().filter(|op| op.is_kernel).take(context.limit);
    kernels.map(|op| view(context.facts(), &op)).collect()
}

pub(super) fn copy(context: &Context<'_>) -> Rows {
    let copies = context.ops().filter(|op| !op.is_kernel).take(context.limit);
    copies.map(|op| view(context.facts(), &op)).collect()
}

pub(super) fn api(context: &Context<'_>) -> Rows {
    let facts = context.facts();
    let rows = context.records.calls().take(context.limit).map(|call| {
        let thread = facts
            .threads
            .get(call.thread as usize)
            .copied()
            .unwrap_or_default();
        let process = facts.processes.get(thread.process as usize);
        ViewRow {
            start_ns: call.start.into(),
            end_ns: call.end.into(),
            duration_ns: call.end.saturating_sub(call.start).into(),
            pid: process.map(|process| process.pid).into(),
            tid: thread.tid.into(),
            name: facts.name(call.name).into(),
            key: key(&[
                &"call",
                &process.map_or("", |process| &process.guid),
                &call.id,
            ])
            .into(),
            ..ViewRow::default()
        }
        .cells()
    });
    rows.collect()
}

pub(super) fn op(context: &Context<'_>) -> Rows {
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

pub(super) fn seq_sum(context: &Context<'_>) -> Rows {
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
