//! Reports of kernels.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::{Context, Rows, dims, group, grouped, groups, op_key, times};
use crate::answer::key;
use crate::distribution::Distribution;
use crate::records::Op;
use crate::stats::rows::{ExecSumRow, ExecTraceRow, KernelGeometryRow, KernelSumRow};

pub(in crate::stats) fn kern_sum(context: &Context<'_>) -> Rows {
    let (groups, all) = grouped(
        context
            .ops()
            .filter(|op| op.is_kernel)
            .map(|op| (op.name, context.cut(op.start, op.end))),
    );
    let rows = groups.into_iter().map(|(name, mut values)| {
        let name = context.facts().name(name);
        sum_row!(KernelSumRow, context, values, all, instances, {
            name: name.into(),
            key: key(&[&"kernel", &name]).into(),
        })
    });
    rows.collect()
}

pub(in crate::stats) fn kern_gb_sum(context: &Context<'_>) -> Rows {
    let (kernels, all) = grouped(context.ops().filter(|op| op.is_kernel).map(|op| {
        (
            (op.name, groups(&op), group(&op)),
            context.cut(op.start, op.end),
        )
    }));
    let rows = kernels
        .into_iter()
        .map(|((name, grid, group), mut values)| {
            let name = context.facts().name(name);
            sum_row!(KernelGeometryRow, context, values, all, instances, {
                grid: dims(grid).into(),
                group: dims(group).into(),
                name: name.into(),
                key: key(&[&"kernel", &name, &dims(grid), &dims(group)]).into(),
            })
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

pub(in crate::stats) fn kern_exec_sum(context: &Context<'_>) -> Rows {
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
            let thread = facts.thread(thread);
            let pid = facts.pid(thread.process);
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

pub(in crate::stats) fn kern_exec_trace(context: &Context<'_>) -> Rows {
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
            pid: facts.pid(op.process).into(),
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
