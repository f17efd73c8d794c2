//! Durations of one side of a comparison, counted in buckets, so that memory does not grow with the number of records.

#![deny(clippy::wildcard_enum_match_arm)]

use std::collections::{BTreeMap, HashMap};

use rpd_core::domain::Domain;
use rpd_core::ids::{KernelId, Nanoseconds, OperationId, StringId};
use rpd_core::options::KernelNames;
use rpd_core::session::{ExtendedStrings, PlausibleTimes, Session, Table};
use rpd_core::spool::durations;
use rpd_core::storage::by_id::ById;
use rpd_core::storage::column::Storage;
use rpd_core::storage::sorted::{Keyed, Sorter};
use zerocopy::{Immutable, IntoBytes};

use super::{Group, Run, SideFigures};
use crate::SummaryError;
use crate::groups::Groups;

/// Bits of a duration, after the first that is set, that select its bucket.
const BITS: u32 = 8;

/// Records of a run whose durations are kept one by one: the figures of runs with no more records are exact.
const EXACT: usize = 1 << 16;

/// Error bound of medians, typical durations and percentiles of runs with more than 65,536 records, relative to the exact
/// ones: the width of a bucket. Buckets in which all durations are the same are exact.
pub const QUANTILE_ERROR: f64 = 1.0 / (1 << BITS) as f64;

/// Number of the lowest bits of a key that are the bucket; the others are the name.
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

    /// The duration at position `place` in ascending order, from 0.
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

/// A side of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SideOf {
    /// The recordings before the change.
    Before,
    /// The recordings after it.
    After,
}

/// A bucket of a name in a run.
#[derive(Debug, Clone, Copy, Immutable, IntoBytes)]
#[repr(C)]
pub(super) struct BucketRow {
    pub(super) name: NameKey,
    /// The side above the number of the run.
    run: u64,
    /// The shortest duration that belongs into the bucket.
    shortest: u64,
    calls: u64,
    total: u64,
    /// 1 if its durations differ.
    is_mixed: u64,
}

impl Keyed for BucketRow {
    type Key = (NameKey, u64, u64);

    fn key(&self) -> Self::Key {
        (self.name, self.run, self.shortest)
    }
}

/// The id of a name above the number of its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Immutable, IntoBytes)]
#[repr(transparent)]
pub(super) struct NameKey(u64);

/// Bits of a [`NameKey`] below the id of the name.
const GROUP_BITS: u32 = 2;

const _: () = assert!(Group::ALL.len() <= 1 << GROUP_BITS);

impl NameKey {
    fn new(group: Group, name: StringId) -> NameKey {
        NameKey(u64::from(name.0) << GROUP_BITS | group as u64)
    }

    pub(super) fn name(self) -> StringId {
        StringId((self.0 >> GROUP_BITS) as u32)
    }

    pub(super) fn group(self) -> Group {
        Group::ALL[(self.0 % (1 << GROUP_BITS)) as usize]
    }
}

/// Bits of [`BucketRow::run`] below the side.
const RUN_BITS: u32 = 32;

/// The durations of both sides.
#[derive(Default)]
pub struct Durations {
    names: ExtendedStrings<'static>,
    storage: Option<Storage>,
    /// Side and number of the run that records are added to.
    run: Option<(SideOf, u64)>,
    /// The first records of that run, until there are more: keys of names, and durations.
    first: Vec<(u64, u64)>,
    /// The records of that run, when there are more.
    groups: Groups,
    /// Whether that run has more records than are kept one by one.
    has_more: bool,
    /// Buckets of the runs before, in the order of names, sides, runs and durations.
    buckets: Option<Sorter<BucketRow>>,
    /// Sums of durations by side and group.
    of_groups: [[f64; Group::ALL.len()]; 2],
    /// Number of records of the recording being added whose times cannot be.
    left_out: u64,
}

impl Durations {
    pub(super) fn key(&mut self, group: Group, name: &str) -> u64 {
        NameKey::new(group, self.names.intern(name)).0
    }

    /// Recordings that are added from now on are of another run, of this side.
    ///
    /// # Errors
    /// When temporary files cannot be written.
    pub fn begin_run(&mut self, side: SideOf) -> Result<(), SummaryError> {
        self.end_run()?;
        let number = self.run.map_or(0, |(_, number)| number + 1);
        self.run = Some((side, number));
        Ok(())
    }

    fn end_run(&mut self) -> Result<(), SummaryError> {
        let Some((side, number)) = self.run else {
            return Ok(());
        };
        let run = (side as u64) << RUN_BITS | number;
        let mut groups = std::mem::take(&mut self.groups);
        let storage = self.storage.as_ref();
        if let Some(storage) = storage {
            groups.spill_to(storage);
        }
        let buckets = self.buckets.get_or_insert_with(|| Sorter::new(storage));
        let of_groups = &mut self.of_groups[side as usize];
        let mut push = |name: u64, shortest: u64, bucket: Bucket| {
            let name = NameKey(name);
            of_groups[name.group() as usize] += bucket.total as f64;
            buckets.push(BucketRow {
                name,
                run,
                shortest,
                calls: bucket.calls,
                total: bucket.total,
                is_mixed: bucket.is_mixed.into(),
            })
        };
        self.first.sort_unstable();
        for equal in std::mem::take(&mut self.first).chunk_by(|a, b| a == b) {
            let (name, duration) = equal[0];
            let calls = equal.len() as u64;
            let bucket = Bucket {
                calls,
                total: duration.saturating_mul(calls),
                is_mixed: false,
            };
            push(name, duration, bucket)?;
        }
        for row in groups.finish(BUCKET_BITS)?.iter() {
            let bucket = Bucket {
                calls: row.calls,
                total: row.total,
                is_mixed: row.min != row.max,
            };
            let shortest = shortest(row.key & ((1 << BUCKET_BITS) - 1));
            push(row.key >> BUCKET_BITS, shortest, bucket)?;
        }
        self.has_more = false;
        Ok(())
    }

    /// Adds a recording to the current run. Returns the number of its records that are left out because their times cannot be.
    ///
    /// # Errors
    /// When temporary files cannot be written.
    pub fn add(&mut self, session: &Session, kernels: KernelNames) -> Result<u64, SummaryError> {
        if let (None, Some(storage)) = (&self.storage, &session.storage) {
            self.names.spill_to(storage);
            self.storage = Some(storage.clone());
        }
        if let Some(storage) = &self.storage {
            self.groups.spill_to(storage);
        }
        for table in Table::ALL {
            match table {
                Table::Calls => self.add_calls(session)?,
                Table::Dispatches => self.add_dispatches(session, kernels)?,
                Table::Copies => self.add_copies(session)?,
                // Those that were counted are compared as dispatches, and operations on memory as the calls that make them.
                Table::Counted | Table::Allocations | Table::Scratch => {}
                // Samples have no durations.
                Table::Samples => {}
                // Launches are compared as calls; barriers of events depend on other work.
                Table::GraphLaunches | Table::HipEvents => {}
                // Where pages are when a run begins decides on these, more than the program does.
                Table::KfdEvents => {}
            }
        }
        Ok(std::mem::take(&mut self.left_out))
    }

    fn add_calls(&mut self, session: &Session) -> Result<(), SummaryError> {
        // By id of a text of the session: its id among the names plus 1; 0 is unknown.
        let mut labels = ById::<u32>::zeros(session.strings.len(), self.storage.as_ref());
        let (calls, times) = (&session.calls, PlausibleTimes::from_session(session));
        for index in calls.indices() {
            let group = match session.call(index).domain() {
                // Marks have no duration.
                Domain::MarkerApi if calls.start[index] == calls.end[index] => continue,
                Domain::MarkerApi => Group::Region,
                Domain::HsaApi
                | Domain::HipApi
                | Domain::RcclApi
                | Domain::RocdecodeApi
                | Domain::RocjpegApi
                | Domain::CudaApi
                | Domain::CudaDriverApi
                | Domain::RocshmemApi
                | Domain::HipfileApi
                | Domain::Ompt => Group::Api,
                // Not calls.
                Domain::KernelDispatch
                | Domain::MemoryCopy
                | Domain::ScratchMemory
                | Domain::CounterCollection
                | Domain::MemoryAllocation
                | Domain::Kfd => continue,
            };
            let label = session.call_label(index);
            let name = match labels.get(label.0) {
                0 => {
                    let name = self.names.intern(session.strings.get(label));
                    if let Some(known) = labels.get_mut(label.0) {
                        *known = name.0 + 1;
                    }
                    name
                }
                known => StringId(known - 1),
            };
            let key = NameKey::new(group, name).0;
            self.push_times(times, key, calls.start[index], calls.end[index])?;
        }
        Ok(())
    }

    fn add_dispatches(
        &mut self,
        session: &Session,
        kernels: KernelNames,
    ) -> Result<(), SummaryError> {
        let mut known: HashMap<(KernelId, u32), u64> = HashMap::new();
        let kernels = session.kernels(kernels);
        let dispatches = kernels.dispatches;
        let times = PlausibleTimes::from_session(session);
        for index in dispatches.indices() {
            let key = *known
                .entry(kernels.key(index))
                .or_insert_with(|| self.key(Group::Kernel, kernels.name(index)));
            self.push_times(times, key, dispatches.start[index], dispatches.end[index])?;
        }
        Ok(())
    }

    fn add_copies(&mut self, session: &Session) -> Result<(), SummaryError> {
        let mut known: HashMap<OperationId, u64> = HashMap::new();
        let (copies, times) = (&session.copies, PlausibleTimes::from_session(session));
        for index in copies.indices() {
            let operation = copies.operation[index];
            let key = *known
                .entry(operation)
                .or_insert_with(|| self.key(Group::Copy, session.operation_name(operation)));
            self.push_times(times, key, copies.start[index], copies.end[index])?;
        }
        Ok(())
    }

    fn push_times(
        &mut self,
        times: PlausibleTimes,
        name: u64,
        start: Nanoseconds,
        end: Nanoseconds,
    ) -> Result<(), SummaryError> {
        match times.duration(start, end) {
            Some(duration) => self.push(name, duration),
            None => {
                self.left_out += 1;
                Ok(())
            }
        }
    }

    pub(super) fn push(&mut self, name: u64, duration: u64) -> Result<(), SummaryError> {
        if !self.has_more {
            if self.first.len() < EXACT {
                self.first.push((name, duration));
                return Ok(());
            }
            self.has_more = true;
            for (name, duration) in std::mem::take(&mut self.first) {
                self.count(name, duration)?;
            }
        }
        self.count(name, duration)
    }

    /// Adds a record to its bucket.
    fn count(&mut self, name: u64, duration: u64) -> Result<(), SummaryError> {
        let key = name << BUCKET_BITS | bucket(duration);
        self.groups.push(key, duration)
    }

    /// Ends the last run.
    ///
    /// # Errors
    /// As [`Durations::begin_run`].
    pub(super) fn finish(mut self) -> Result<Buckets, SummaryError> {
        self.end_run()?;
        Ok(Buckets {
            names: self.names,
            storage: self.storage,
            rows: self.buckets,
            of_groups: self.of_groups,
        })
    }
}

/// The buckets of all runs.
pub(super) struct Buckets {
    pub(super) names: ExtendedStrings<'static>,
    pub(super) storage: Option<Storage>,
    /// Rows, sorted by name, side, run and duration.
    pub(super) rows: Option<Sorter<BucketRow>>,
    /// Sums of durations by side and group.
    pub(super) of_groups: [[f64; Group::ALL.len()]; 2],
}

/// The figures of a side, from the buckets of a name; `None` without buckets. `of_group` is the sum that its share is taken of.
pub(super) fn side(rows: &[BucketRow], side: SideOf, of_group: f64) -> Option<SideFigures> {
    let mut runs = Vec::new();
    let mut all = Histogram::default();
    for run in rows.chunk_by(|a, b| a.run == b.run) {
        if run[0].run >> RUN_BITS != side as u64 {
            continue;
        }
        let mut histogram = Histogram::default();
        for row in run {
            let bucket = Bucket {
                calls: row.calls,
                total: row.total,
                is_mixed: row.is_mixed != 0,
            };
            histogram.0.entry(row.shortest).or_default().add(bucket);
        }
        runs.push(histogram.run());
        // Quantiles are taken over all runs; means are compared run by run.
        all.add(&histogram);
    }
    if runs.is_empty() {
        return None;
    }
    let sum = all.sum();
    Some(SideFigures {
        calls: sum.calls,
        total: sum.total,
        share: if of_group > 0.0 {
            sum.total as f64 * 100.0 / of_group
        } else {
            0.0
        },
        mean: sum.mean(),
        p95: all.quantile(0.95),
        runs,
        is_approximate: all.is_approximate(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_numbers_ascend_and_buckets_are_narrow() {
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
    fn figures_from_buckets_are_within_the_error_bound() -> Result<(), SummaryError> {
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
        let mut added = Durations::default();
        added.begin_run(SideOf::After)?;
        let key = added.key(Group::Kernel, "k");
        for duration in &durations {
            added.push(key, *duration)?;
        }
        let found = added.differences()?.iter().next();
        let side = found.and_then(|found| found.after).expect("a side");
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
