//! Figures of a whole run.

use std::collections::{BTreeMap, HashMap};

use super::ratio;
use crate::advise::metrics::Subject;
use crate::advise::metrics::ranks::Collectives;
use crate::answer::{Unit, Window, key, shown};
use crate::breakdown;
use crate::classes::{Calls, Class, Doing};
use crate::iterations::{Found, Iterations};
use crate::records::{Facts, Records};

pub(super) fn add_gpus(facts: &Facts, run: &mut Subject, broken: &breakdown::Breakdown) {
    let compute: Vec<u64> = broken
        .gpus
        .iter()
        .map(|gpu| gpu.whole.union(Class::Compute))
        .collect();
    let busiest = compute.iter().copied().max().unwrap_or(0);
    let used: Vec<u64> = compute
        .iter()
        .copied()
        .filter(|time| time * 100 >= busiest && *time > 0)
        .collect();
    run.count("gpus", facts.gpus.len() as u64);
    run.count("used_gpus", used.len() as u64);
    let idle = compute.len() - used.len();
    run.count(
        "idle_gpus",
        match busiest {
            0 => 0,
            _ => idle as u64,
        },
    );
    let (share, lost) = breakdown::imbalance(&used).unwrap_or((0.0, 0));
    run.set("imbalance", share);
    run.count("imbalance_lost_ns", lost);
}

/// What ranks wait for in collectives.
pub(super) fn add_ranks(facts: &Facts, run: &mut Subject, collectives: &Collectives) {
    run.count("matched_collectives", collectives.count);
    let latest = collectives.latest();
    let of = latest.map(|latest| latest.1).unwrap_or_default();
    run.set(
        "straggler_share",
        ratio(of.delays as f64, collectives.count as f64),
    );
    run.set("straggler_lost_ns", of.lost);
    let mut ranks: Vec<_> = collectives.ranks.iter().collect();
    ranks.sort_by_key(|(rank, of)| (std::cmp::Reverse(of.delays), **rank));
    for ((process, gpu), of) in ranks {
        let known = facts.processes.get(*process as usize);
        let (pid, rank) = known.map_or((0, None), |process| (process.pid, process.rank));
        let number = facts.gpus[*gpu as usize].number;
        let who = match rank {
            Some(rank) => format!("rank {rank}, GPU {number}"),
            None => format!("process {pid}, GPU {number}"),
        };
        let text = format!(
            "{who}: delays {} of {}, waits {}",
            of.delays,
            collectives.count,
            shown(of.waits, Unit::Nanoseconds)
        );
        let key = key(&[&"rank", &pid, &format!("gpu:{number}")]);
        run.evidence.push(("straggler", text, key));
    }
}

pub(super) fn add_iterations(run: &mut Subject, found: Option<&Iterations>) {
    let Some(found) = found else {
        run.set("period", 0.0);
        run.set("period_confidence", 0.0);
        run.set("warm_up_share", 0.0);
        return;
    };
    let launches: u64 = found.all.iter().map(|iteration| iteration.kernels).sum();
    match &found.found {
        Found::Markers(_) => {
            let first = found
                .steady()
                .first()
                .map_or(0, |iteration| iteration.kernels);
            let same = found
                .steady()
                .iter()
                .filter(|iteration| iteration.kernels == first)
                .count();
            run.set("period", ratio(launches as f64, found.all.len() as f64));
            run.set(
                "period_confidence",
                ratio(same as f64, found.steady().len() as f64),
            );
        }
        Found::Sequence { period, confidence } => {
            run.count("period", *period as u64);
            run.set("period_confidence", *confidence);
        }
    }
    let begin = found.all.first().map_or(0, |iteration| iteration.begin);
    let steady = found.steady_window().unwrap_or((begin, begin));
    let all = steady.1.saturating_sub(begin);
    run.set(
        "warm_up_share",
        ratio(steady.0.saturating_sub(begin) as f64, all as f64),
    );
}

pub(super) fn add_calls(
    records: &dyn Records,
    window: &Window,
    found: Option<&Iterations>,
    run: &mut Subject,
) {
    let facts = records.facts();
    let doing = Calls::default().of_all(&facts.names);
    let iterations = found.map_or(0, |found| found.steady().len()) as f64;
    let (mut syncs, mut allocs, mut alloc_time, mut pooled) = (0_u64, 0_u64, 0_u64, 0_u64);
    let (mut loads, mut load_time) = (0_u64, 0_u64);
    let (mut graphs, mut made, mut making) = (0_u64, 0_u64, 0_u64);
    let mut frees: Vec<(u64, u64)> = Vec::new();
    let mut launches = 0_u64;
    for call in records
        .calls()
        .filter(|call| call.start >= window.start && call.start < window.end)
    {
        let name = facts.name(call.name);
        let length = call.end.saturating_sub(call.start);
        match doing.get(call.name as usize) {
            Some(Doing::Sync) => syncs += 1,
            Some(Doing::Alloc) => {
                allocs += 1;
                alloc_time += length;
                pooled += u64::from(name.ends_with("Async"));
                if name == "hipFree" && length >= 100_000 {
                    frees.push((call.start, call.end));
                }
            }
            Some(Doing::Load) => {
                loads += 1;
                load_time += length;
            }
            Some(Doing::Launch) if name.starts_with("hipGraphLaunch") => graphs += 1,
            Some(Doing::Launch) if name.starts_with("hipGraphInstantiate") => {
                made += 1;
                making += length;
            }
            Some(Doing::Launch)
                if name.contains("LaunchKernel") || name.contains("LaunchCooperative") =>
            {
                launches += 1
            }
            _ => {}
        }
    }
    run.set("syncs_per_iteration", ratio(syncs as f64, iterations));
    run.set("allocs_per_iteration", ratio(allocs as f64, iterations));
    run.count("allocs", allocs);
    run.count("launches", launches);
    let seconds = window.length() as f64 / 1e9;
    run.set("allocs_rate", ratio(allocs as f64, seconds));
    run.count("alloc_ns", alloc_time);
    run.set("alloc_mean_ns", ratio(alloc_time as f64, allocs as f64));
    run.set("alloc_pool_share", ratio(pooled as f64, allocs as f64));
    let in_iterations = window.kind == "steady";
    run.count("loads_in_iterations", loads * u64::from(in_iterations));
    run.count(
        "load_in_iterations_ns",
        load_time * u64::from(in_iterations),
    );
    run.count("graph_launches", graphs);
    run.count("graph_instantiations", made);
    run.count("graph_instantiation_ns", making);
    let waited: Vec<u64> = waits_under_kernels(records, &frees);
    run.count("free_waits", waited.len() as u64);
    run.count("free_wait_ns", waited.iter().sum());
}

/// Lengths of those of some times in which kernels run, or are in a queue, for at least 80 %.
fn waits_under_kernels(records: &dyn Records, times: &[(u64, u64)]) -> Vec<u64> {
    if times.is_empty() {
        return Vec::new();
    }
    let mut covered: Vec<(u64, u64)> = vec![(0, 0); times.len()];
    for op in records.ops().filter(|op| op.is_kernel) {
        let requested = op
            .launch
            .map_or(op.start, |launch| launch.begin.min(op.start));
        let first = times.partition_point(|time| time.1 <= requested);
        for (time, covered) in times.iter().zip(&mut covered).skip(first) {
            if time.0 >= op.end {
                break;
            }
            let (start, end) = (requested.max(time.0).max(covered.1), op.end.min(time.1));
            covered.0 += end.saturating_sub(start);
            covered.1 = covered.1.max(end);
        }
    }
    let waits = times.iter().zip(covered);
    let waits = waits.filter(|(time, covered)| covered.0 * 10 >= (time.1 - time.0) * 8);
    waits.map(|(time, _)| time.1 - time.0).collect()
}

pub(super) fn add_copies(records: &dyn Records, window: &Window, run: &mut Subject) {
    let facts = records.facts();
    if !facts.recorded.copies {
        return;
    }
    let is_registered = facts
        .names
        .iter()
        .any(|name| name.starts_with("hipHostRegister"));
    // Registered memory is in no allocation.
    let mut pinned = (facts.recorded.allocations && facts.recorded.calls && !is_registered)
        .then(BTreeMap::<(u32, u64), u64>::new);
    let mut changes = records.allocations().peekable();
    let (mut pageable, mut call_time, mut copy_time) = (0_u64, 0_u64, 0_u64);
    let mut to_host: HashMap<(u32, u64, u64), u64> = HashMap::new();
    let (mut trips, mut trip_time) = (0_u64, 0_u64);
    for op in records
        .ops()
        .filter(|op| !op.is_kernel && !op.is_second && op.host_address != 0)
    {
        while let Some(change) = changes.next_if(|change| change.start < op.start) {
            let is_the_programs = change.is_host && !change.is_of_runtime;
            let Some(pinned) = pinned
                .as_mut()
                .filter(|_| is_the_programs || change.is_free)
            else {
                continue;
            };
            if change.is_free {
                pinned.remove(&(change.process, change.address))
            } else {
                pinned.insert((change.process, change.address), change.bytes)
            };
        }
        if op.start < window.start || op.start >= window.end {
            continue;
        }
        let name = facts.name(op.name);
        let place = (op.process, op.host_address, op.bytes);
        if name.contains("DEVICE_TO_HOST") {
            to_host.insert(place, op.length());
        } else if let Some(before) = to_host.remove(&place) {
            trips += 1;
            trip_time += before + op.length();
        }
        let launch = op
            .launch
            .filter(|launch| facts.name(launch.name).contains("Async"));
        if let (Some(pinned), Some(launch)) = (&pinned, launch) {
            let below = pinned.range(..=(op.process, op.host_address)).next_back();
            let is_pinned = below.is_some_and(|((process, address), bytes)| {
                *process == op.process && op.host_address < address.saturating_add(*bytes)
            });
            if !is_pinned {
                pageable += 1;
                call_time += launch.end.saturating_sub(launch.begin);
                copy_time += op.length();
            }
        }
    }
    if pinned.is_some() {
        run.count("pageable_copies", pageable);
        run.count("pageable_ns", call_time);
        run.set(
            "pageable_call_share",
            ratio(call_time as f64, copy_time as f64),
        );
    }
    run.count("round_trips", trips);
    run.count("round_trip_ns", trip_time);
}
