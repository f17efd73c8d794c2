//! Durations of one side of a comparison, counted in buckets, so that memory does not grow with the number of records.

use std::collections::{BTreeMap, HashMap};

use polars::prelude::*;
use rpd_core::domain::Domain;
use rpd_core::ids::Nanoseconds;
use rpd_core::kernel_name::KernelLabels;
use rpd_core::options::KernelNames;
use rpd_core::session::Session;
use rpd_core::spool::durations;

use super::{Group, Run, Side};
use crate::SummaryError;
use crate::groups::{Groups, integers};

/// Bits of a duration that tell its bucket, after the first that is set.
const BITS: u32 = 8;

/// Records of a run whose durations are kept one by one: the figures of runs with no more records are exact.
const EXACT: usize = 1 << 16;

/// How much medians, typical durations and percentiles of runs with more than 65,536 records may differ from the exact
/// ones: by this part of them, the width of a bucket. Buckets in which all durations are the same are exact.
pub const QUANTILE_ERROR: f64 = 1.0 / (1 << BITS) as f64;

/// The lowest bits of a key are the bucket, the others the name.
const BUCKET_BITS: u32 = 16;

/// The bucket of a duration. The buckets of longer durations have greater numbers; up to 2^9 ns each has its own.
fn bucket(duration: u64) -> u64 {
    durations::bucket(duration, BITS)
}

/// The shortest duration of a bucket.
fn shortest(bucket: u64) -> u64 {
    durations::shortest(bucket, BITS)
}

/// Records with similar durations.
#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    calls: u64,
    /// Sum of durations in nanoseconds.
    total: u64,
    /// Whether the bucket has different durations.
    is_mixed: bool,
}

impl Bucket {
    fn mean(self) -> f64 {
        self.total as f64 / self.calls as f64
    }

    fn add(&mut self, other: Bucket) {
        // Of two buckets with one duration each, both have the same mean or the durations differ.
        let is_same = self.calls == 0
            || u128::from(self.total) * u128::from(other.calls)
                == u128::from(other.total) * u128::from(self.calls);
        self.is_mixed |= other.is_mixed || !is_same;
        self.calls += other.calls;
        // Only damaged recordings have so long durations.
        self.total = self.total.saturating_add(other.total);
    }
}

/// The buckets of a name, by their shortest duration. None is empty. A duration that was kept has a bucket of its own.
#[derive(Debug, Default)]
struct Histogram(BTreeMap<u64, Bucket>);

impl Histogram {
    fn add(&mut self, other: &Histogram) {
        for (number, bucket) in &other.0 {
            self.0.entry(*number).or_default().add(*bucket);
        }
    }

    fn sum(&self) -> Bucket {
        let mut sum = Bucket::default();
        self.0.values().for_each(|bucket| sum.add(*bucket));
        sum
    }

    fn is_approximate(&self) -> bool {
        self.0.values().any(|bucket| bucket.is_mixed)
    }

    /// The duration at this place of all in ascending order, from 0.
    fn at(&self, place: u64) -> f64 {
        let mut before = 0;
        let found = self.0.values().find(|bucket| {
            before += bucket.calls;
            before > place
        });
        found.map_or(0.0, |bucket| bucket.mean())
    }

    /// The duration below which this part of all durations lies; between two, in proportion.
    fn quantile(&self, part: f64) -> f64 {
        let place = part * (self.sum().calls.saturating_sub(1)) as f64;
        let below = self.at(place.floor() as u64);
        below + (self.at(place.ceil() as u64) - below) * place.fract()
    }

    /// The figures of a run.
    fn run(&self) -> Run {
        let sum = self.sum();
        let half = sum.calls.div_ceil(2);
        let mut left = half;
        let faster = self.0.values().map(|bucket| {
            let taken = left.min(bucket.calls);
            left -= taken;
            bucket.mean() * taken as f64
        });
        Run {
            typical: faster.sum::<f64>() / half as f64,
            median: self.quantile(0.5),
            mean: sum.mean(),
            total: sum.total as f64,
        }
    }
}

/// The figures of a name on a side.
#[derive(Debug, Default)]
struct Figures {
    runs: Vec<Run>,
    /// Of all runs.
    histogram: Histogram,
}

/// The durations of one side.
#[derive(Default)]
pub struct Durations {
    names: HashMap<(Group, String), u32>,
    /// The first records of the run that records are added to, until there are more: names and durations.
    first: Vec<(u32, u64)>,
    /// The records of that run, when there are more.
    run: Groups,
    /// Whether that run has more records than are kept one by one.
    has_more: bool,
    /// Of the runs before, by number of the name.
    figures: BTreeMap<u32, Figures>,
}

impl Durations {
    pub(super) fn key(&mut self, group: Group, name: &str) -> u32 {
        let next = self.names.len() as u32;
        *self.names.entry((group, name.to_owned())).or_insert(next)
    }

    /// Recordings that are added from now on are of another run.
    ///
    /// # Errors
    /// When polars cannot compute the figures of the run that ends.
    pub fn next_run(&mut self) -> Result<(), SummaryError> {
        let frame = std::mem::take(&mut self.run).finish()?;
        let mut names: BTreeMap<u32, Histogram> = BTreeMap::new();
        for (name, duration) in std::mem::take(&mut self.first) {
            let one = Bucket {
                calls: 1,
                total: duration,
                is_mixed: false,
            };
            let histogram = names.entry(name).or_default();
            histogram.0.entry(duration).or_default().add(one);
        }
        if frame.height() > 0 {
            add_buckets(&frame, &mut names)?;
        }
        self.has_more = false;
        for (name, histogram) in names {
            let figures = self.figures.entry(name).or_default();
            figures.runs.push(histogram.run());
            figures.histogram.add(&histogram);
        }
        Ok(())
    }

    /// Adds a recording to the current run.
    ///
    /// # Errors
    /// When polars cannot group the records.
    pub fn add(&mut self, session: &Session, kernels: KernelNames) -> Result<(), SummaryError> {
        let mut known: HashMap<(Group, u64), u32> = HashMap::new();
        let api = &session.api;
        for index in api.indices() {
            let group = match session.call(index).domain() {
                // Marks have no duration.
                Domain::MarkerApi if api.start[index] == api.end[index] => continue,
                Domain::MarkerApi => Group::Region,
                _ => Group::Api,
            };
            let label = session.api_label(index);
            let key = *known
                .entry((group, label.0.into()))
                .or_insert_with(|| self.key(group, session.strings.get(label)));
            self.push(key, api.start[index], api.end[index])?;
        }
        // As databases have it, where none was traced those that were counted are the kernels.
        let is_traced = !session.dispatches.is_empty();
        let dispatches = match is_traced {
            true => &session.dispatches,
            false => &session.counted.dispatches,
        };
        let labels = KernelLabels::new(session, kernels);
        let label = |index| match is_traced {
            true => labels.dispatch(index),
            false => labels.counted(index),
        };
        for index in dispatches.indices() {
            let region = if kernels.rename {
                dispatches.region[index]
            } else {
                0
            };
            // Kernel ids are small; regions take the upper half.
            let both = dispatches.kernel[index].0 ^ u64::from(region) << 32;
            let key = *known
                .entry((Group::Kernel, both))
                .or_insert_with(|| self.key(Group::Kernel, label(index)));
            self.push(key, dispatches.start[index], dispatches.end[index])?;
        }
        let copies = &session.copies;
        for index in copies.indices() {
            let operation = copies.operation[index];
            let key = *known
                .entry((Group::Copy, operation.0.into()))
                .or_insert_with(|| self.key(Group::Copy, session.operation_name(operation)));
            self.push(key, copies.start[index], copies.end[index])?;
        }
        Ok(())
    }

    pub(super) fn push(
        &mut self,
        name: u32,
        start: Nanoseconds,
        end: Nanoseconds,
    ) -> Result<(), SummaryError> {
        let duration = end.0.saturating_sub(start.0);
        if !self.has_more {
            if self.first.len() < EXACT {
                self.first.push((name, duration));
                return Ok(());
            }
            self.has_more = true;
            for (name, duration) in std::mem::take(&mut self.first) {
                self.count(name, Nanoseconds(0), Nanoseconds(duration))?;
            }
        }
        self.count(name, start, end)
    }

    /// Adds a record to its bucket.
    fn count(
        &mut self,
        name: u32,
        start: Nanoseconds,
        end: Nanoseconds,
    ) -> Result<(), SummaryError> {
        let bucket = bucket(end.0.saturating_sub(start.0));
        let key = u64::from(name) << BUCKET_BITS | bucket;
        Ok(self.run.push(key, start, end)?)
    }

    /// The figures by name.
    pub(super) fn sides(mut self) -> Result<HashMap<(Group, String), Side>, SummaryError> {
        self.next_run()?;
        let mut of_groups: HashMap<Group, f64> = HashMap::new();
        let mut found = Vec::new();
        for (name, key) in self.names {
            if let Some(figures) = self.figures.remove(&key) {
                let sum = figures.histogram.sum();
                *of_groups.entry(name.0).or_default() += sum.total as f64;
                found.push((name, figures, sum));
            }
        }
        let side = |(name, figures, sum): ((Group, String), Figures, Bucket)| {
            let total = |group| of_groups.get(group).copied().unwrap_or_default();
            let all: f64 = name.0.shared_with().iter().map(total).sum();
            let side = Side {
                calls: sum.calls,
                total: sum.total,
                share: match all > 0.0 {
                    true => sum.total as f64 * 100.0 / all,
                    false => 0.0,
                },
                mean: sum.mean(),
                p95: figures.histogram.quantile(0.95),
                runs: figures.runs,
                is_approximate: figures.histogram.is_approximate(),
            };
            (name, side)
        };
        Ok(found.into_iter().map(side).collect())
    }
}

/// Adds the groups of a run to the histograms of their names.
fn add_buckets(frame: &DataFrame, names: &mut BTreeMap<u32, Histogram>) -> PolarsResult<()> {
    let [keys, calls, totals, min, max] =
        ["key", "calls", "total", "min", "max"].map(|name| integers(frame, name));
    let (keys, calls, totals, min, max) = (keys?, calls?, totals?, min?, max?);
    for (index, key) in keys.into_iter().enumerate() {
        let bucket = Bucket {
            calls: calls[index],
            total: totals[index],
            is_mixed: min[index] != max[index],
        };
        let histogram = names.entry((key >> BUCKET_BITS) as u32).or_default();
        let shortest = shortest(key & ((1 << BUCKET_BITS) - 1));
        histogram.0.entry(shortest).or_default().add(bucket);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_one_another_and_are_narrow() {
        assert_eq!([0, 1, 511].map(bucket), [0, 1, 511]);
        let mut last = 0;
        for shift in 0..55 {
            for lead in 256..512_u64 {
                let first = lead << shift;
                let number = bucket(first);
                assert!(
                    number == last || number == last + 1 || shift == 0,
                    "{first}"
                );
                assert_eq!(bucket(first + (1 << shift) - 1), number, "{first}");
                last = number;
            }
        }
        assert!(bucket(u64::MAX) < 1 << BUCKET_BITS);
        for duration in [0, 1, 511, 512, 513, 5080, 1 << 40, u64::MAX] {
            let first = shortest(bucket(duration));
            assert!(
                first <= duration && bucket(first) == bucket(duration),
                "{duration}"
            );
        }
    }

    /// Compares with figures of the sorted list.
    #[test]
    fn figures_are_within_the_error() -> Result<(), SummaryError> {
        // A multiplicative generator; durations over five decades.
        let mut state = 1_u64;
        let mut durations: Vec<u64> = (0..200_000)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let part = (state >> 33) as f64 / (1_u64 << 31) as f64;
                (100.0 * 100_000_f64.powf(part)) as u64
            })
            .collect();
        let mut side = Durations::default();
        let key = side.key(Group::Kernel, "k");
        for duration in &durations {
            side.push(key, Nanoseconds(5), Nanoseconds(5 + duration))?;
        }
        let sides = side.sides()?;
        let side = &sides[&(Group::Kernel, "k".to_owned())];
        durations.sort_unstable();
        let sum = |part: &[u64]| part.iter().sum::<u64>() as f64;
        let mean = |part: &[u64]| sum(part) / part.len() as f64;
        let run = side.runs[0];
        for (name, found, exact) in [
            ("typical", run.typical, mean(&durations[..100_000])),
            ("median", run.median, mean(&durations[99_999..100_001])),
            ("p95", side.p95, durations[189_999] as f64),
        ] {
            assert!(
                (found / exact - 1.0).abs() <= QUANTILE_ERROR,
                "{name}: {found}, {exact}"
            );
        }
        assert!(side.is_approximate);
        assert_eq!(side.calls, 200_000);
        assert_eq!((run.total, run.mean), (sum(&durations), mean(&durations)));
        Ok(())
    }
}
