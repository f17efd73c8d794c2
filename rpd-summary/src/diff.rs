//! Two sets of recordings compared, name by name.

use std::collections::HashMap;

use polars::prelude::*;
use rpd_core::domain::Domain;
use rpd_core::kernel_name::KernelLabels;
use rpd_core::options::KernelNames;
use rpd_core::session::Session;

use crate::SummaryError;

/// What is compared with what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Group {
    /// Kernel dispatches by kernel.
    Kernel,
    /// Calls by function.
    Api,
    /// Marker ranges by message.
    Region,
    /// Copies by direction.
    Copy,
}

impl Group {
    /// As tables call it.
    pub const fn label(self) -> &'static str {
        match self {
            Group::Kernel => "kernel",
            Group::Api => "api",
            Group::Region => "region",
            Group::Copy => "copy",
        }
    }

    const ALL: [Group; 4] = [Group::Kernel, Group::Api, Group::Region, Group::Copy];
}

/// Figures of one side. Times in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Side {
    /// Records.
    pub calls: u64,
    /// Sum of durations.
    pub total: u64,
    /// Mean.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval of the mean; `None` for one record.
    pub margin: Option<f64>,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// Square of the standard error of the mean.
    error: f64,
}

/// One name.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// What it is.
    pub group: Group,
    /// Its name.
    pub name: String,
    /// Before; `None` when it did not occur.
    pub before: Option<Side>,
    /// After.
    pub after: Option<Side>,
}

impl Difference {
    /// Change of the mean in percent; `None` unless it occurs on both sides.
    pub fn mean_change(&self) -> Option<f64> {
        let (before, after) = (self.before?, self.after?);
        (before.mean > 0.0).then(|| (after.mean - before.mean) * 100.0 / before.mean)
    }

    /// Change of the total in percent.
    pub fn total_change(&self) -> Option<f64> {
        let (before, after) = (self.before?, self.after?);
        (before.total > 0)
            .then(|| (after.total as f64 - before.total as f64) * 100.0 / before.total as f64)
    }

    /// Change of the total in nanoseconds: by it differences are ordered.
    pub fn effect(&self) -> f64 {
        let total = |side: Option<Side>| side.map_or(0.0, |side| side.total as f64);
        total(self.after) - total(self.before)
    }

    /// Whether the means differ by more than chance explains (95 % confidence). `None` where a side has too few
    /// records to tell.
    pub fn is_significant(&self) -> Option<bool> {
        let (before, after) = (self.before?, self.after?);
        if before.calls < 2 || after.calls < 2 {
            return None;
        }
        let error = before.error + after.error;
        let difference = (after.mean - before.mean).abs();
        if error == 0.0 {
            return Some(difference > 0.0);
        }
        // Welch's degrees of freedom.
        let part = |side: Side| side.error * side.error / (side.calls - 1) as f64;
        let freedom = error * error / (part(before) + part(after));
        Some(difference > student(freedom) * error.sqrt())
    }
}

/// The durations of one side.
#[derive(Debug, Default)]
pub struct Durations {
    names: HashMap<(Group, String), u32>,
    key: Vec<u32>,
    duration: Vec<u64>,
}

impl Durations {
    fn key(&mut self, group: Group, name: &str) -> u32 {
        let next = self.names.len() as u32;
        *self.names.entry((group, name.to_owned())).or_insert(next)
    }

    /// Adds a recording.
    pub fn add(&mut self, session: &Session, kernels: KernelNames) {
        let mut known: HashMap<(Group, u64), u32> = HashMap::new();
        let api = &session.api;
        for index in 0..api.len() {
            let group = match api.kind[index].domain() {
                // Marks have no duration.
                Domain::MarkerApi if api.start[index] == api.end[index] => continue,
                Domain::MarkerApi => Group::Region,
                _ => Group::Api,
            };
            let label = session.api_label(index);
            let key = *known
                .entry((group, label.0.into()))
                .or_insert_with(|| self.key(group, session.strings.get(label)));
            self.push(key, api.start[index].0, api.end[index].0);
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
        for index in 0..dispatches.len() {
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
            self.push(key, dispatches.start[index].0, dispatches.end[index].0);
        }
        let copies = &session.copies;
        for index in 0..copies.len() {
            let operation = copies.operation[index];
            let key = *known
                .entry((Group::Copy, operation.0.into()))
                .or_insert_with(|| self.key(Group::Copy, session.strings.get(operation)));
            self.push(key, copies.start[index].0, copies.end[index].0);
        }
    }

    fn push(&mut self, key: u32, start: u64, end: u64) {
        self.key.push(key);
        self.duration.push(end.saturating_sub(start));
    }

    fn sides(self) -> Result<HashMap<(Group, String), Side>, SummaryError> {
        let quantile = |at: f64| {
            col("duration")
                .quantile(lit(at), QuantileMethod::Linear)
                .alias(format!("q{at}"))
        };
        let frame = DataFrame::new_infer_height(vec![
            Column::new("key".into(), self.key),
            Column::new("duration".into(), self.duration),
        ])?
        .lazy()
        .group_by([col("key")])
        .agg([
            len().cast(DataType::UInt64).alias("calls"),
            col("duration").sum().alias("total"),
            col("duration").mean().alias("mean"),
            col("duration").std(1).alias("std"),
            quantile(0.5),
            quantile(0.95),
        ])
        .collect()?;
        let names: HashMap<u32, (Group, String)> = self
            .names
            .into_iter()
            .map(|(name, key)| (key, name))
            .collect();
        let float = |name: &str| -> PolarsResult<Vec<f64>> {
            let column = frame.column(name)?.cast(&DataType::Float64)?;
            Ok(column
                .f64()?
                .iter()
                .map(Option::unwrap_or_default)
                .collect())
        };
        let keys = frame.column("key")?.u32()?.clone();
        let (calls, totals) = (
            frame.column("calls")?.u64()?.clone(),
            frame.column("total")?.u64()?.clone(),
        );
        let (mean, std, p50, p95) = (
            float("mean")?,
            float("std")?,
            float("q0.5")?,
            float("q0.95")?,
        );
        let mut sides = HashMap::new();
        for index in 0..frame.height() {
            let Some(name) = keys.get(index).and_then(|key| names.get(&key)) else {
                continue;
            };
            let calls = calls.get(index).unwrap_or(0);
            let error = std[index] * std[index] / calls.max(1) as f64;
            let margin = (calls > 1).then(|| student((calls - 1) as f64) * error.sqrt());
            sides.insert(
                name.clone(),
                Side {
                    calls,
                    total: totals.get(index).unwrap_or(0),
                    mean: mean[index],
                    margin,
                    p50: p50[index],
                    p95: p95[index],
                    error,
                },
            );
        }
        Ok(sides)
    }
}

/// Compares; what changed the total time most comes first.
///
/// # Errors
/// When polars cannot compute the figures.
pub fn differences(before: Durations, after: Durations) -> Result<Vec<Difference>, SummaryError> {
    let (mut before, after) = (before.sides()?, after.sides()?);
    let mut found: Vec<Difference> = Vec::new();
    for ((group, name), side) in after {
        found.push(Difference {
            group,
            before: before.remove(&(group, name.clone())),
            name,
            after: Some(side),
        });
    }
    found.extend(before.into_iter().map(|((group, name), side)| Difference {
        group,
        name,
        before: Some(side),
        after: None,
    }));
    found.sort_by(|a, b| {
        let effects = b.effect().abs().total_cmp(&a.effect().abs());
        effects.then_with(|| (a.group, &a.name).cmp(&(b.group, &b.name)))
    });
    Ok(found)
}

/// The groups by label.
pub fn group(label: &str) -> Option<Group> {
    Group::ALL.into_iter().find(|group| group.label() == label)
}

/// The two-sided 95 % quantile of Student's distribution.
fn student(freedom: f64) -> f64 {
    const SMALL: [f64; 10] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    ];
    if freedom < 11.0 {
        return SMALL[(freedom.max(1.0) as usize - 1).min(9)];
    }
    // Cornish and Fisher's expansion around the normal quantile; good to three digits from 10 on.
    let z: f64 = 1.959_964;
    let (z3, z5) = (z.powi(3), z.powi(5));
    z + (z3 + z) / (4.0 * freedom) + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * freedom * freedom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpd_core::domain::Kind;
    use rpd_core::ids::{CorrelationId, Nanoseconds, StringId, ThreadId};
    use rpd_core::session::ArgsRef;

    fn durations(calls: &[(&str, u64)]) -> Durations {
        let mut session = Session::default();
        session.strings.intern("");
        for &(name, duration) in calls {
            let name = session.strings.intern(name);
            let api = &mut session.api;
            api.kind.push(Kind::HipRuntime);
            api.operation.push(name);
            api.message.push(StringId(0));
            api.start.push(Nanoseconds(1));
            api.end.push(Nanoseconds(1 + duration));
            api.thread.push(ThreadId(1));
            api.correlation.push(CorrelationId(1));
            api.ancestor.push(CorrelationId(0));
            api.args.push(ArgsRef::default());
        }
        let mut durations = Durations::default();
        durations.add(&session, KernelNames::default());
        durations
    }

    #[test]
    fn quantiles_of_student() {
        for (freedom, expected) in [
            (1.0, 12.706),
            (10.0, 2.228),
            (12.0, 2.179),
            (30.0, 2.042),
            (1e6, 1.96),
        ] {
            assert!(
                (student(freedom) - expected).abs() < 2e-3,
                "{freedom}: {}",
                student(freedom)
            );
        }
    }

    #[test]
    fn what_changed_most_comes_first() -> Result<(), SummaryError> {
        let before = durations(&[("a", 100), ("a", 102), ("a", 98), ("b", 10), ("gone", 5)]);
        let after = durations(&[("a", 200), ("a", 201), ("a", 199), ("b", 10), ("new", 7)]);
        let found = differences(before, after)?;
        let names: Vec<&str> = found.iter().map(|row| &*row.name).collect();
        assert_eq!(names, ["a", "new", "gone", "b"]);
        let a = &found[0];
        assert_eq!(a.mean_change(), Some(100.0));
        assert_eq!(a.is_significant(), Some(true));
        let side = a.before.expect("it was there");
        assert_eq!((side.calls, side.total, side.p50), (3, 300, 100.0));
        // 4.303 * 2 / sqrt(3)
        assert!((side.margin.expect("three calls") - 4.968).abs() < 1e-2);
        assert_eq!(found[1].mean_change(), None);
        assert_eq!(found[3].is_significant(), None);
        Ok(())
    }

    #[test]
    fn noise_is_no_difference() -> Result<(), SummaryError> {
        let before = durations(&[("a", 100), ("a", 300), ("a", 200)]);
        let after = durations(&[("a", 150), ("a", 350), ("a", 220)]);
        assert_eq!(differences(before, after)?[0].is_significant(), Some(false));
        Ok(())
    }
}
