//! Sums over dispatches and copies, for recordings that keep only the latest of them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::{ExtendedStrings, Session};
use crate::domain::Domain;
use crate::ids::{KernelId, Nanoseconds, OperationId, StringId};
use crate::options::KernelNames;
use crate::spool::durations;

/// The dispatches or copies that a sum is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TotalOf {
    /// The dispatches of one kernel.
    Kernel(KernelId),
    /// The dispatches of all kernels that have no sum of their own.
    OtherKernels,
    /// The copies of one direction, such as `MEMORY_COPY_HOST_TO_DEVICE`.
    Copy(OperationId),
}

/// Name of [`TotalOf::OtherKernels`] in reports and files.
pub const OTHER_KERNELS: &str = "(other kernels)";

/// Sums over the dispatches of a kernel or the copies of a direction: over all, whether the tables still hold them or
/// not.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceTotal {
    /// The dispatches or copies that the sum is over.
    pub of: TotalOf,
    /// Number of dispatches or copies; at least one.
    pub count: u64,
    /// Sum of their durations in nanoseconds.
    pub total: u64,
    /// Shortest duration in nanoseconds.
    pub min: u64,
    /// Longest duration in nanoseconds.
    pub max: u64,
    /// Sum of the squared differences between the durations and their mean, in ns².
    pub spread: f64,
    /// Bytes that were copied; 0 for dispatches.
    pub bytes: u64,
    /// Start of the first dispatch or copy.
    pub first: Nanoseconds,
    /// End of the last dispatch or copy.
    pub last: Nanoseconds,
    /// Number of durations in each bucket, by the bucket's number: see [`rpd_spool::durations`].
    pub durations: Vec<u64>,
}

impl DeviceTotal {
    /// Domain of the dispatches or copies.
    pub fn domain(&self) -> Domain {
        match self.of {
            TotalOf::Kernel(_) | TotalOf::OtherKernels => Domain::KernelDispatch,
            TotalOf::Copy(_) => Domain::MemoryCopy,
        }
    }

    /// Mean duration in nanoseconds.
    pub fn average(&self) -> f64 {
        self.total as f64 / self.count.max(1) as f64
    }

    /// The duration in nanoseconds below which `part` (0 to 1) of the durations lie, to within an eighth.
    pub fn quantile(&self, part: f64) -> f64 {
        durations::quantile(&self.durations, part, self.min, self.max)
    }

    /// Adds the sums over other dispatches or copies.
    pub fn add(&mut self, other: &DeviceTotal) {
        let distance = self.average() - other.average();
        let (mine, theirs) = (self.count as f64, other.count as f64);
        self.spread +=
            other.spread + distance * distance * mine * theirs / (mine + theirs).max(1.0);
        self.count = self.count.saturating_add(other.count);
        self.total = self.total.saturating_add(other.total);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        let len = self.durations.len().max(other.durations.len());
        self.durations.resize(len, 0);
        for (mine, theirs) in self.durations.iter_mut().zip(&other.durations) {
            *mine = mine.saturating_add(*theirs);
        }
    }
}

impl Session {
    /// The id in `names` of the kernel or operation that a sum is over: the formatted name of the kernel, or the name
    /// of the operation.
    pub fn total_name(
        &self,
        total: &DeviceTotal,
        kernels: KernelNames,
        names: &mut ExtendedStrings<'_>,
    ) -> StringId {
        match total.of {
            TotalOf::Copy(operation) => self.operations[operation].name,
            TotalOf::OtherKernels => names.intern(OTHER_KERNELS),
            TotalOf::Kernel(kernel) => names.intern(&self.kernel_name(kernel, kernels)),
        }
    }

    /// The sums by name. Sums of kernels with the same formatted name are added up. Ordered by domain, then total
    /// duration descending, then name.
    pub fn named_totals(&self, kernels: KernelNames) -> Vec<(String, DeviceTotal)> {
        let mut names = ExtendedStrings::new(&self.strings);
        let mut rows: HashMap<(StringId, Domain), DeviceTotal> = HashMap::new();
        for total in &self.device_totals {
            let name = self.total_name(total, kernels, &mut names);
            match rows.entry((name, total.domain())) {
                Entry::Occupied(mut row) => row.get_mut().add(total),
                Entry::Vacant(place) => {
                    place.insert(total.clone());
                }
            }
        }
        let mut rows: Vec<(String, DeviceTotal)> = rows
            .into_iter()
            .map(|((name, _), total)| (names.get(name).to_owned(), total))
            .collect();
        rows.sort_by(|(a, one), (b, other)| {
            let order = one.domain().cmp(&other.domain());
            order
                .then(other.total.cmp(&one.total))
                .then_with(|| a.cmp(b))
        });
        rows
    }

    /// Number of dispatches or copies, those included that the tables do not hold; `None` when the tables hold all.
    pub fn total_count(&self, domain: Domain) -> Option<u64> {
        if self.device_totals.is_empty() {
            return None;
        }
        let of_domain = self
            .device_totals
            .iter()
            .filter(|total| total.domain() == domain);
        Some(of_domain.fold(0, |sum: u64, total| sum.saturating_add(total.count)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(of: TotalOf, durations_of: &[u64]) -> DeviceTotal {
        let count = durations_of.len() as u64;
        let total: u64 = durations_of.iter().sum();
        let mean = total as f64 / count as f64;
        let mut buckets = vec![0; durations::TOTAL_BUCKETS];
        for &duration in durations_of {
            buckets[durations::total_bucket(duration)] += 1;
        }
        DeviceTotal {
            of,
            count,
            total,
            min: *durations_of.iter().min().expect("some"),
            max: *durations_of.iter().max().expect("some"),
            spread: durations_of
                .iter()
                .map(|&duration| (duration as f64 - mean).powi(2))
                .sum(),
            bytes: 0,
            first: Nanoseconds(1),
            last: Nanoseconds(2),
            durations: buckets,
        }
    }

    #[test]
    fn device_totals_of_two_parts_add_up_to_the_total_of_the_whole() {
        let of = TotalOf::OtherKernels;
        let mut sum = total(of, &[3, 9, 200]);
        sum.add(&total(of, &[70, 70_000]));
        let whole = total(of, &[3, 9, 200, 70, 70_000]);
        assert!((sum.spread / whole.spread - 1.0).abs() < 1e-12);
        sum.spread = whole.spread;
        assert_eq!(sum, whole);
        assert!((60.0..=80.0).contains(&sum.quantile(0.5)));
    }

    #[test]
    fn named_totals_say_that_a_kernel_has_no_symbol() {
        let mut session = Session::default();
        session.strings.intern("");
        session
            .device_totals
            .push(total(TotalOf::Kernel(KernelId(16)), &[10, 20]));
        session.dispatches.kernel.push(KernelId(16));
        let name = |original| {
            let names = KernelNames {
                original,
                ..KernelNames::default()
            };
            session.named_totals(names)[0].0.clone()
        };
        assert_eq!(name(false), "kernel 16 (no symbol)");
        assert_eq!(name(true), "16");
        let labels = crate::session::KernelLabels::new(&session, KernelNames::default());
        assert_eq!(labels.formatted(KernelId(16)), name(false));
    }

    #[test]
    fn named_totals_have_one_row_for_kernels_of_the_same_name() {
        let mut session = Session::default();
        session.strings.intern("");
        for id in [1, 2] {
            session.kernel_symbols.push(crate::session::KernelSymbol {
                id: KernelId(id),
                name: "scale.kd".to_owned(),
                ..Default::default()
            });
            session
                .device_totals
                .push(total(TotalOf::Kernel(KernelId(id)), &[10, 20]));
        }
        session
            .device_totals
            .push(total(TotalOf::OtherKernels, &[1000]));
        let rows = session.named_totals(KernelNames::default());
        let rows: Vec<_> = rows
            .iter()
            .map(|(name, total)| (name.as_str(), total.count, total.total))
            .collect();
        assert_eq!(rows, [(OTHER_KERNELS, 1, 1000), ("scale", 4, 60)]);
        assert_eq!(session.total_count(Domain::KernelDispatch), Some(5));
        assert_eq!(session.total_count(Domain::MemoryCopy), Some(0));
    }
}
