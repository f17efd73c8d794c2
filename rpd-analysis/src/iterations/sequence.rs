//! Iterations by the sequence in which kernels are launched.

use std::collections::{BTreeMap, HashMap};

use super::{Found, Iteration, Iterations};
use crate::records::{NONE, Records};

/// Rarest names whose distances are tried as periods.
const NAMES: usize = 8;
/// Periods that are tried.
const PERIODS: usize = 32;

/// A launch of the sequence.
#[derive(Clone, Copy)]
struct Launched {
    start: u64,
    /// Time from the call to the start, and from the start to the end, where they are known and short.
    lead: u32,
    length: u32,
    name: u32,
}

impl Launched {
    fn begin(&self) -> u64 {
        self.start - u64::from(self.lead)
    }
}

/// A run of launches that repeat.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Run {
    pub(super) period: usize,
    pub(super) first: usize,
    /// Launches that it covers.
    pub(super) length: usize,
    pub(super) confidence: f64,
}

/// The longest run of positions with the same name one period later, in which up to a tenth may differ: first, length, matches.
fn longest(names: &[u32], period: usize) -> (usize, usize, usize) {
    let matches = |at: usize| names[at] == names[at + period];
    let count = names.len() - period;
    // A match counts 1, and what differs -9: a run may have a tenth of these when its sum is not negative. The least sums before
    // each place are where the longest run that ends behind it begins.
    let mut sums = Vec::with_capacity(count + 1);
    let mut sum = 0_i64;
    sums.push(sum);
    for at in 0..count {
        sum += if matches(at) { 1 } else { -9 };
        sums.push(sum);
    }
    let mut least: Vec<usize> = Vec::new();
    for (at, sum) in sums.iter().enumerate() {
        if least.last().is_none_or(|last| *sum < sums[*last]) {
            least.push(at);
        }
    }
    let mut best = (0, 0);
    for end in (0..=count).rev() {
        while let Some(first) = least
            .last()
            .copied()
            .filter(|first| sums[*first] <= sums[end])
        {
            if end.saturating_sub(first) > best.1 {
                best = (first, end - first);
            }
            least.pop();
        }
    }
    let (mut first, mut length) = best;
    while length > 0 && !matches(first) {
        (first, length) = (first + 1, length - 1);
    }
    while length > 0 && !matches(first + length - 1) {
        length -= 1;
    }
    let same = (first..first + length).filter(|at| matches(*at)).count();
    (first, length, same)
}

/// Distances between occurrences of the rarest names, the most frequent ones, in ascending order.
fn candidates(names: &[u32]) -> Vec<usize> {
    let mut places: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    let mut counts: HashMap<u32, usize> = HashMap::new();
    names
        .iter()
        .for_each(|name| *counts.entry(*name).or_default() += 1);
    let mut rare: Vec<(usize, u32)> = counts
        .into_iter()
        .map(|(name, count)| (count, name))
        .collect();
    rare.retain(|(count, _)| *count >= 3);
    rare.sort_unstable();
    rare.truncate(NAMES);
    for (at, name) in names.iter().enumerate() {
        if rare.iter().any(|rare| rare.1 == *name) {
            places.entry(*name).or_default().push(at);
        }
    }
    let mut distances: BTreeMap<usize, usize> = BTreeMap::new();
    for places in places.values() {
        for pair in places.windows(2) {
            *distances.entry(pair[1] - pair[0]).or_default() += 1;
        }
        // A name that comes several times in an iteration is found at the sums of its distances.
        for count in 2..=4 {
            for ends in places.windows(count + 1) {
                *distances.entry(ends[count] - ends[0]).or_default() += 1;
            }
        }
    }
    let mut frequent: Vec<(usize, usize)> = distances
        .into_iter()
        .map(|(distance, count)| (count, distance))
        .collect();
    frequent.sort_unstable_by(|a, b| b.cmp(a));
    frequent.truncate(PERIODS);
    let mut periods: Vec<usize> = frequent.into_iter().map(|found| found.1).collect();
    periods.sort_unstable();
    periods
}

/// The period of a sequence of names; `None` when it has none.
pub(super) fn period(names: &[u32], one_kernel: bool) -> Option<Run> {
    let periods = candidates(names);
    let fits = |period: &usize| (*period > 1 || one_kernel) && *period < names.len();
    periods.into_iter().filter(fits).find_map(|period| {
        let (first, length, same) = longest(names, period);
        let covered = length + period;
        if length == 0 || covered < 3 * period || 2 * covered < names.len() {
            return None;
        }
        // A shorter period that was left out, because one kernel is no iteration, is none either.
        let is_constant = names[first..first + covered]
            .windows(2)
            .all(|pair| pair[0] == pair[1]);
        if is_constant && !one_kernel {
            return None;
        }
        Some(Run {
            period,
            first,
            length: covered,
            confidence: covered as f64 / names.len() as f64 * (same as f64 / length as f64),
        })
    })
}

/// Iterations of the process and GPU with the most kernels.
pub(super) fn find(records: &dyn Records, one_kernel: bool) -> Option<Iterations> {
    let mut counts: BTreeMap<(u32, u32), usize> = BTreeMap::new();
    for op in records.ops().filter(|op| op.is_kernel) {
        *counts.entry((op.process, op.gpu)).or_default() += 1;
    }
    let of = counts.into_iter().max_by_key(|count| count.1)?.0;
    let short = |time: u64| u32::try_from(time).unwrap_or(u32::MAX);
    let kernels = records
        .ops()
        .filter(|op| op.is_kernel && (op.process, op.gpu) == of);
    let mut launches: Vec<Launched> = kernels
        .map(|op| Launched {
            start: op.start,
            lead: short(
                op.launch
                    .map_or(0, |launch| op.start.saturating_sub(launch.begin)),
            ),
            length: short(op.length()),
            name: op.name,
        })
        .collect();
    launches.sort_by_key(Launched::begin);
    let names: Vec<u32> = launches.iter().map(|launch| launch.name).collect();
    let run = period(&names, one_kernel)?;
    drop(names);
    let first = run.first + phase(&launches, &run);
    let count = (run.first + run.length - first) / run.period;
    let at = |number: usize| launches[first + number * run.period].begin();
    let mut all: Vec<Iteration> = (0..count)
        .map(|number| Iteration::new(at(number), NONE))
        .collect();
    let behind = first + count * run.period;
    let end = launches.get(behind).map_or(u64::MAX, Launched::begin);
    drop(launches);
    all.iter_mut()
        .for_each(|iteration| iteration.end = iteration.begin);
    let mut made = Iterations {
        found: Found::Sequence {
            period: run.period,
            confidence: run.confidence,
        },
        all,
        warm_up: 0,
        kernels: BTreeMap::new(),
        outside: 0,
    };
    for op in records.ops() {
        let begin = op
            .launch
            .map_or(op.start, |launch| launch.begin.min(op.start));
        let after = made
            .all
            .partition_point(|iteration| iteration.begin <= begin);
        match after.checked_sub(1) {
            Some(place) if begin < end && (op.process, op.gpu) == of => made.add(place, &op),
            _ => made.outside += 1,
        }
    }
    made.close();
    Some(made)
}

/// The place in the period whose kernel has the greatest median gap before it.
fn phase(launches: &[Launched], run: &Run) -> usize {
    let mut best = (0, -1.0);
    for phase in 0..run.period {
        let places = (run.first + phase..run.first + run.length).step_by(run.period);
        let gap = |at: usize| {
            let before = launches.get(at.checked_sub(1)?)?;
            Some(
                launches[at]
                    .start
                    .saturating_sub(before.start + u64::from(before.length)) as f64,
            )
        };
        let mut gaps: Vec<f64> = places.filter_map(gap).collect();
        let middle = crate::distribution::median(&mut gaps).unwrap_or(0.0);
        if middle > best.1 {
            best = (phase, middle);
        }
    }
    best.0
}
