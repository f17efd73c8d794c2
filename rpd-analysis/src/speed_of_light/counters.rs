//! Counters of kernels, added up over dispatches.

use std::collections::{BTreeMap, BTreeSet};

use crate::records::Records;

/// Work items of a grid and of a workgroup.
pub type Geometry = ([u32; 3], [u32; 3]);

/// The values of a counter, added up over the dispatches that were counted.
#[derive(Debug, Clone, Default, PartialEq)]
struct Total {
    sum: f64,
    greatest: f64,
    dispatches: u64,
    processes: BTreeSet<u32>,
}

/// The counters of a kernel, added up over its counted dispatches.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counters {
    totals: BTreeMap<String, Total>,
    /// Counted dispatches of each geometry, and their lengths added up.
    pub geometries: BTreeMap<Geometry, (u64, u64)>,
    last: Option<(u32, u64)>,
    /// GPU that counted, by its index; of several the last one.
    pub gpu: u32,
}

impl Counters {
    /// The counters of every counted kernel, by the number of its name.
    pub fn from_records(records: &dyn Records) -> BTreeMap<u32, Counters> {
        let mut kernels: BTreeMap<u32, Counters> = BTreeMap::new();
        let facts = records.facts();
        for value in records.counted() {
            let kernel = kernels.entry(value.name).or_default();
            kernel.gpu = value.gpu;
            let dispatch = (value.process, value.dispatch);
            if kernel.last != Some(dispatch) {
                kernel.last = Some(dispatch);
                let geometry = kernel.geometries.entry((value.grid, value.group));
                let (count, length) = geometry.or_default();
                *count += 1;
                *length += value.length;
            }
            let name = facts.name(value.counter);
            if !kernel.totals.contains_key(name) {
                kernel.totals.insert(name.to_owned(), Total::default());
            }
            if let Some(total) = kernel.totals.get_mut(name) {
                total.sum += value.sum;
                total.greatest += value.greatest;
                total.dispatches += 1;
                total.processes.insert(value.process);
            }
        }
        kernels
    }

    /// Adds the value of a counter for a dispatch of one instance.
    pub fn add(&mut self, name: &str, value: f64) {
        let total = self.totals.entry(name.to_owned()).or_default();
        total.sum += value;
        total.greatest += value;
        total.dispatches += 1;
    }

    /// Mean of a counter over the dispatches for which it was counted, instances added up; `None` when it was not counted.
    pub fn mean(&self, name: &str) -> Option<f64> {
        let total = self.totals.get(name)?;
        (total.dispatches > 0).then(|| total.sum / total.dispatches as f64)
    }

    /// Mean of the greatest instance of a counter.
    pub(super) fn mean_greatest(&self, name: &str) -> Option<f64> {
        let total = self.totals.get(name)?;
        (total.dispatches > 0).then(|| total.greatest / total.dispatches as f64)
    }

    /// Names of the counters.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.totals.keys().map(String::as_str)
    }

    /// Mean length of a counted dispatch in nanoseconds.
    pub fn counted_time(&self) -> Option<f64> {
        let (count, length) = self.geometries.values().fold((0, 0), |sum, geometry| {
            (sum.0 + geometry.0, sum.1 + geometry.1)
        });
        (count > 0).then(|| length as f64 / count as f64)
    }

    /// The time of a dispatch, from typical times of the trace by geometry, weighted as the counted dispatches are; `None` when the
    /// trace has none of these geometries.
    pub fn time(&self, typical: impl Fn(&Geometry) -> Option<f64>) -> Option<f64> {
        let mut sum = 0.0;
        let mut count = 0;
        for (geometry, (dispatches, _)) in &self.geometries {
            if let Some(time) = typical(geometry) {
                sum += time * *dispatches as f64;
                count += dispatches;
            }
        }
        (count > 0).then(|| sum / count as f64)
    }

    /// Recordings that a counter comes from, by their indices.
    pub(super) fn processes(&self, name: &str) -> impl Iterator<Item = u32> {
        self.totals
            .get(name)
            .into_iter()
            .flat_map(|total| total.processes.iter().copied())
    }
}
