//! Reports of calls, waits and allocations.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, VecDeque};

use super::{Context, Rows, grouped, times};
use crate::answer::{Value, key};
use crate::classes::{Calls, Doing};
use crate::distribution::Distribution;
use crate::stats::rows::{AllocRow, ApiSumRow, ApiTraceRow, SyncRow};

pub(in crate::stats) fn api_sum(context: &Context<'_>) -> Rows {
    let (groups, all) = grouped(
        context
            .records
            .calls()
            .map(|call| (call.name, call.end.saturating_sub(call.start))),
    );
    let rows = groups.into_iter().map(|(name, mut values)| {
        let name = context.facts().name(name);
        sum_row!(ApiSumRow, context, values, all, num_calls, {
            name: name.into(),
            key: key(&[&"api", &name]).into(),
        })
    });
    rows.collect()
}

pub(in crate::stats) fn api_trace(context: &Context<'_>) -> Rows {
    let facts = context.facts();
    let rows = context.records.calls().take(context.limit).map(|call| {
        let thread = facts.thread(call.thread);
        ApiTraceRow {
            start_ns: call.start.into(),
            duration_ns: call.end.saturating_sub(call.start).into(),
            name: facts.name(call.name).into(),
            result: Value::Null,
            corr_id: call.id.into(),
            pid: facts.pid(thread.process).into(),
            tid: thread.tid.into(),
            key: key(&[&"call", &facts.guid(thread.process), &call.id]).into(),
        }
        .cells()
    });
    rows.collect()
}

pub(in crate::stats) fn sync_sum(context: &Context<'_>) -> Rows {
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

pub(in crate::stats) fn alloc_sum(context: &Context<'_>) -> Rows {
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
