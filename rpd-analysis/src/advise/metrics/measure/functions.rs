//! Figures of copies by direction, and of calls by function.

use std::collections::BTreeMap;

use super::gap_sums::GapSums;
use super::{OfCopy, ratio};
use crate::advise::metrics::{Source, Subject};
use crate::answer::Window;
use crate::classes::{Calls, Doing};
use crate::records::{Facts, Records};

pub(super) fn copy_subjects(
    facts: &Facts,
    window: &Window,
    copies: &mut BTreeMap<u32, OfCopy>,
    iterations: f64,
) -> Vec<Subject> {
    /// Rate below which copies of a direction cannot be called slow by their best one alone: bytes per second.
    const USUAL: f64 = 16e9;
    let each = copies.iter_mut().filter(|copy| copy.1.sizes.count() > 0);
    let each = each.map(|(name, copy)| {
        let mut subject = Subject::new(Source::Copy, facts.name(*name), window);
        subject.set("iterations", iterations);
        subject.count("count", copy.sizes.count());
        subject.set(
            "per_iteration",
            ratio(copy.sizes.count() as f64, iterations),
        );
        subject.set("median_bytes", copy.sizes.median().unwrap_or(0.0));
        subject.count("time_ns", copy.time);
        subject.set(
            "rate",
            ratio(copy.sizes.sum() as f64, copy.time as f64 / 1e9),
        );
        let has_large = copy.sizes.max().is_some_and(|max| max >= 1 << 20);
        subject.set(
            "best_rate",
            if has_large {
                copy.best
            } else {
                copy.best.max(USUAL)
            },
        );
        subject.flag("is_peer", copy.is_peer);
        subject.flag(
            "is_simulated",
            facts.gpus.iter().all(|gpu| gpu.is_simulated),
        );
        subject
    });
    each.collect()
}

pub(super) fn call_subjects(
    records: &dyn Records,
    window: &Window,
    iterations: f64,
    gap_sums: &GapSums,
) -> Vec<Subject> {
    let facts = records.facts();
    let doing = Calls::default().of_all(&facts.names);
    let mut calls: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for call in records
        .calls()
        .filter(|call| call.start < window.end && call.end > window.start)
    {
        let sums = calls.entry(call.name).or_default();
        sums.0 += 1;
        sums.1 += call.end.min(window.end) - call.start.max(window.start);
    }
    let mut copied: BTreeMap<u32, u64> = BTreeMap::new();
    for op in records.ops().filter(|op| !op.is_kernel && !op.is_second) {
        if let Some(launch) = op.launch {
            *copied.entry(launch.name).or_default() += op.length();
        }
    }
    let each = calls.into_iter().map(|(name, (count, total))| {
        let function = facts.name(name);
        let mut subject = Subject::new(Source::Call, function, window);
        subject.set("iterations", iterations);
        subject.count("calls", count);
        subject.count("total_ns", total);
        subject.set("per_iteration", ratio(count as f64, iterations));
        subject.set("rate", ratio(count as f64, window.length() as f64 / 1e9));
        let waits = doing.get(name as usize) == Some(&Doing::Sync);
        let (copies, fills) = (function.contains("Memcpy"), function.contains("Memset"));
        subject.flag("is_sync", waits && !copies && !fills);
        subject.flag("is_sync_copy", waits && copies);
        subject.flag("is_sync_memset", waits && fills);
        subject.flag("is_query", function.ends_with("Query"));
        subject.count(
            "gap_after_ns",
            gap_sums.after.get(&name).copied().unwrap_or(0),
        );
        if facts.recorded.copies {
            subject.count("copied_ns", copied.get(&name).copied().unwrap_or(0));
        }
        subject
    });
    each.collect()
}
