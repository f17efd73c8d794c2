//! Ranks that meet in collectives: who comes last, and how long the others wait.

use std::collections::BTreeMap;

use crate::answer::Window;
use crate::classes::{Class, of_kernel};
use crate::distribution::median;
use crate::records::Records;

/// Collectives of a rank and kind that are looked at; more would take too much memory.
const MOST: usize = 1 << 20;
/// Wait of the others from which on a rank delays a collective, where there are no iterations: nanoseconds.
const LEAST_WAIT: f64 = 20_000.0;
/// Share of an iteration that such a wait is where there are iterations.
const LEAST_SHARE: f64 = 0.02;

/// A rank: index of the process and of the GPU.
pub(super) type Rank = (u32, u32);

/// What a rank does in collectives.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct OfRank {
    /// Collectives for which this rank came last and the others waited.
    pub(super) delays: u64,
    /// Time that the others waited for it, their median in each collective.
    pub(super) lost: f64,
    /// Time that it waited for others.
    pub(super) waits: f64,
    /// Time in collectives.
    pub(super) time: f64,
}

/// Collectives that are matched between ranks.
#[derive(Debug, Default)]
pub(super) struct Collectives {
    /// Number of collectives.
    pub(super) count: u64,
    /// By rank.
    pub(super) ranks: BTreeMap<Rank, OfRank>,
}

impl Collectives {
    /// The rank that delays most collectives; `None` without collectives.
    pub(super) fn latest(&self) -> Option<(Rank, OfRank)> {
        let ranks = self.ranks.iter().map(|(rank, of)| (*rank, *of));
        ranks.max_by_key(|(rank, of)| (of.delays, std::cmp::Reverse(*rank)))
    }

    /// Share of the time in collectives on a GPU that is no waiting for other ranks; 1 where nothing is matched.
    pub(super) fn transfer_share(&self, gpu: u32) -> f64 {
        let ranks = self.ranks.iter().filter(|(rank, _)| rank.1 == gpu);
        let (waits, time) = ranks.fold((0.0, 0.0), |sum, (_, of)| {
            (sum.0 + of.waits, sum.1 + of.time)
        });
        if time > 0.0 { 1.0 - waits / time } else { 1.0 }
    }
}

/// Matches the collectives of ranks: the kernels of one name and grid, in their order. They end together, so that the one with the
/// shortest kernel came last, whatever the clocks say. Windows that were not given are those of one clock: all count then, without
/// the first of each kind.
pub(super) fn match_collectives(
    records: &dyn Records,
    window: &Window,
    iterations: f64,
) -> Collectives {
    let facts = records.facts();
    let has_collectives = facts
        .names
        .iter()
        .any(|name| of_kernel(name) == Class::Comm);
    if !has_collectives {
        return Collectives::default();
    }
    let mut kinds: BTreeMap<(u32, [u32; 3]), BTreeMap<Rank, Vec<u64>>> = BTreeMap::new();
    let is_given = window.kind == "given";
    let inside = |start: u64| !is_given || start >= window.start && start < window.end;
    for op in records.ops() {
        if op.class == Class::Comm && inside(op.start) {
            let ranks = kinds.entry((op.name, op.grid)).or_default();
            let times = ranks.entry((op.process, op.gpu)).or_default();
            if times.len() < MOST {
                times.push(op.length());
            }
        }
    }
    let least = if iterations >= 3.0 {
        LEAST_SHARE * window.length() as f64 / iterations
    } else {
        LEAST_WAIT
    };
    let mut found = Collectives::default();
    for ranks in kinds.into_values().filter(|ranks| ranks.len() >= 2) {
        let count = ranks.values().map(Vec::len).min().unwrap_or(0);
        for place in usize::from(!is_given)..count {
            let times = || ranks.iter().map(|(rank, times)| (*rank, times[place]));
            let Some((last, shortest)) = times().min_by_key(|(rank, time)| (*time, *rank)) else {
                continue;
            };
            let mut waits = Vec::with_capacity(ranks.len());
            for (rank, time) in times() {
                let wait = (time - shortest) as f64;
                let of = found.ranks.entry(rank).or_default();
                of.waits += wait;
                of.time += time as f64;
                if rank != last {
                    waits.push(wait);
                }
            }
            found.count += 1;
            let of_others = median(&mut waits).unwrap_or(0.0);
            if of_others > least {
                let of = found.ranks.entry(last).or_default();
                of.delays += 1;
                of.lost += of_others;
            }
        }
    }
    found
}
