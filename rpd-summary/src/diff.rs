//! Two sets of recordings compared, name by name.

use std::collections::HashMap;

use polars::prelude::*;
use rpd_core::domain::Domain;
use rpd_core::kernel_name::KernelLabels;
use rpd_core::options::KernelNames;
use rpd_core::session::Session;

use crate::SummaryError;

/// The kinds of records that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Group {
    /// Kernel dispatches by kernel.
    Kernel,
    /// API calls by function name.
    Api,
    /// Marker ranges by message.
    Region,
    /// Memory copies by direction.
    Copy,
}

impl Group {
    /// Its label in tables.
    pub const fn label(self) -> &'static str {
        match self {
            Group::Kernel => "kernel",
            Group::Api => "api",
            Group::Region => "region",
            Group::Copy => "copy",
        }
    }

    const ALL: [Group; 4] = [Group::Kernel, Group::Api, Group::Region, Group::Copy];

    /// The groups of whose time a name's share is taken. Copies that take little time beside kernels matter little.
    const fn shared_with(self) -> &'static [Group] {
        match self {
            Group::Kernel => &[Group::Kernel],
            Group::Copy => &[Group::Kernel, Group::Copy],
            Group::Api => &[Group::Api],
            Group::Region => &[Group::Region],
        }
    }
}

/// The figures of one name in one run. Times in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Run {
    /// Mean of the faster half of the durations (those up to the median). A busy machine makes calls longer, never
    /// shorter, and mostly not all of them: of all robust figures this one differs least from run to run.
    pub typical: f64,
    /// Median of the durations.
    pub median: f64,
    /// Mean duration in nanoseconds.
    pub mean: f64,
    /// Sum of durations in nanoseconds.
    pub total: f64,
}

/// Figures of one side. Times in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Side {
    /// Number of records.
    pub calls: u64,
    /// Sum of durations in nanoseconds.
    pub total: u64,
    /// Share of the time of its group on this side, 0 to 100; of a copy, of the time of copies and kernels.
    pub share: f64,
    /// Mean over the recordings.
    pub mean: f64,
    /// 95th percentile.
    pub p95: f64,
    /// The runs in which the name occurs, in the order in which they were added.
    pub runs: Vec<Run>,
}

/// A figure of which each run has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// The mean of the faster half of a run's durations.
    Typical,
    /// The median of a run's durations.
    Median,
    /// The mean of a run's durations.
    Mean,
    /// The sum of a run's durations.
    Total,
}

impl Measure {
    const ALL: [Measure; 4] = [
        Measure::Typical,
        Measure::Median,
        Measure::Mean,
        Measure::Total,
    ];

    /// Its name in messages.
    pub const fn label(self) -> &'static str {
        match self {
            Measure::Typical => "typical",
            Measure::Median => "median",
            Measure::Mean => "mean",
            Measure::Total => "total",
        }
    }

    const fn of(self, run: &Run) -> f64 {
        match self {
            Measure::Typical => run.typical,
            Measure::Median => run.median,
            Measure::Mean => run.mean,
            Measure::Total => run.total,
        }
    }
}

/// A measure on both sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Median of the runs before.
    pub before: f64,
    /// Median of the runs after.
    pub after: f64,
    /// How much runs of the same program differ, in percent; `None` with one run on a side: then chance is unknown.
    pub spread: Option<f64>,
}

impl Change {
    /// Change in percent of the median before; `None` when that is 0.
    pub fn percent(&self) -> Option<f64> {
        (self.before > 0.0).then(|| (self.after - self.before) * 100.0 / self.before)
    }

    /// Whether it is more than chance explains: more than four times the spread. `None` when chance is unknown.
    pub fn is_beyond_chance(&self) -> Option<bool> {
        let spread = self.spread?;
        Some(self.percent()?.abs() > BEYOND * spread)
    }

    /// The smallest change in percent that is beyond chance; `None` when chance is unknown.
    pub fn detectable(&self) -> Option<f64> {
        Some(BEYOND * self.spread?)
    }
}

/// One row of the comparison: a name before and after.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The kind of records.
    pub group: Group,
    /// Name of the function, kernel or direction.
    pub name: String,
    /// Figures of the recordings before the change; `None` without records.
    pub before: Option<Side>,
    /// Figures of the recordings after the change; `None` without records.
    pub after: Option<Side>,
    /// Spreads of its group by measure, when chance is known.
    of_group: [Option<GroupSpread>; Measure::ALL.len()],
}

impl Difference {
    /// A measure on both sides; `None` unless the name occurs on both.
    pub fn change(&self, measure: Measure) -> Option<Change> {
        let (before, after) = (self.before.as_ref()?, self.after.as_ref()?);
        let own = spread(before, after, measure);
        let freedom = (before.runs.len() + after.runs.len()).saturating_sub(2);
        // The noise of a machine is in all names. That of one name, from a few runs, may be small by chance.
        let least = self.of_group[measure as usize].map_or(0.0, |group| {
            group.percent * uncertainty(freedom as f64 * group.names)
        });
        Some(Change {
            before: before.middle(measure)?,
            after: after.middle(measure)?,
            spread: own.map(|own| own.max(least)),
        })
    }

    /// Its share (see [`Side::share`]) on the side where that is greater, 0 to 100.
    pub fn share(&self) -> f64 {
        let sides = [&self.before, &self.after];
        let shares = sides.into_iter().flatten().map(|side| side.share);
        shares.fold(0.0, f64::max)
    }

    /// Change of the total in nanoseconds: by it differences are ordered.
    pub fn effect(&self) -> f64 {
        let total = |side: &Option<Side>| side.as_ref().map_or(0.0, |side| side.total as f64);
        total(&self.after) - total(&self.before)
    }
}

/// A change of at least this many spreads is significant.
const BEYOND: f64 = 4.0;

impl Side {
    /// Median of the runs.
    pub fn middle(&self, measure: Measure) -> Option<f64> {
        let mut values: Vec<f64> = self.runs.iter().map(|run| measure.of(run)).collect();
        values.sort_by(f64::total_cmp);
        let half = values.len() / 2;
        match values.len() {
            0 => None,
            count if count % 2 == 1 => Some(values[half]),
            _ => Some((values[half - 1] + values[half]) / 2.0),
        }
    }
}

/// Standard deviation between the runs of the same side, pooled over both, in percent of what was before.
fn spread(before: &Side, after: &Side, measure: Measure) -> Option<f64> {
    if before.runs.len() < 2 || after.runs.len() < 2 {
        return None;
    }
    let squares = |side: &Side| -> f64 {
        let count = side.runs.len() as f64;
        let mean = side.runs.iter().map(|run| measure.of(run)).sum::<f64>() / count;
        let distance = |run: &Run| (measure.of(run) - mean).powi(2);
        side.runs.iter().map(distance).sum()
    };
    let freedom = before.runs.len() + after.runs.len() - 2;
    let deviation = ((squares(before) + squares(after)) / freedom as f64).sqrt();
    let base = before.middle(measure)?;
    (base > 0.0).then(|| deviation * 100.0 / base)
}

/// By how much a standard deviation of so many degrees of freedom may be too small: the factor that leads to its upper
/// 75 % bound (Wilson and Hilferty's approximation of the chi-squared distribution).
fn uncertainty(freedom: f64) -> f64 {
    const QUARTILE: f64 = 0.674_49;
    let part = 2.0 / (9.0 * freedom.max(1.0));
    (1.0 - part - QUARTILE * part.sqrt()).powf(-1.5)
}

/// The durations of one side.
#[derive(Debug, Default)]
pub struct Durations {
    names: HashMap<(Group, String), u32>,
    /// The run that records are added to.
    runs: u32,
    key: Vec<u32>,
    run: Vec<u32>,
    duration: Vec<u64>,
}

impl Durations {
    fn key(&mut self, group: Group, name: &str) -> u32 {
        let next = self.names.len() as u32;
        *self.names.entry((group, name.to_owned())).or_insert(next)
    }

    /// Recordings that are added from now on are of another run.
    pub fn next_run(&mut self) {
        self.runs += 1;
    }

    /// Adds a recording to the current run.
    pub fn add(&mut self, session: &Session, kernels: KernelNames) {
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
            self.push(key, dispatches.start[index].0, dispatches.end[index].0);
        }
        let copies = &session.copies;
        for index in copies.indices() {
            let operation = copies.operation[index];
            let key = *known
                .entry((Group::Copy, operation.0.into()))
                .or_insert_with(|| self.key(Group::Copy, session.operation_name(operation)));
            self.push(key, copies.start[index].0, copies.end[index].0);
        }
    }

    fn push(&mut self, key: u32, start: u64, end: u64) {
        self.key.push(key);
        self.run.push(self.runs);
        self.duration.push(end.saturating_sub(start));
    }

    fn sides(self) -> Result<HashMap<(Group, String), Side>, SummaryError> {
        let calls = DataFrame::new_infer_height(vec![
            Column::new("key".into(), self.key),
            Column::new("run".into(), self.run),
            Column::new("duration".into(), self.duration),
        ])?
        .lazy();
        let total = || col("duration").cast(DataType::Float64).sum().alias("total");
        let figures = [
            len().cast(DataType::UInt64).alias("calls"),
            total(),
            col("duration").mean().alias("mean"),
        ];
        let quantile = |at: f64| col("duration").quantile(lit(at), QuantileMethod::Linear);
        let sides = calls
            .clone()
            .group_by([col("key")])
            .agg([&figures[..], &[quantile(0.95).alias("p95")]].concat())
            .collect()?;
        let typical = col("duration")
            .filter(col("duration").lt_eq(quantile(0.5)))
            .mean()
            .alias("typical");
        let middles = [quantile(0.5).alias("median"), typical];
        let runs = calls
            .group_by([col("key"), col("run")])
            .agg([&figures[..], &middles[..]].concat())
            .sort(["run"], SortMultipleOptions::default())
            .collect()?;

        let mut by_key: HashMap<u32, Vec<Run>> = HashMap::new();
        let keys = runs.column("key")?.u32()?.clone();
        let (typical, medians, means, totals) = (
            floats(&runs, "typical")?,
            floats(&runs, "median")?,
            floats(&runs, "mean")?,
            floats(&runs, "total")?,
        );
        for (index, key) in keys.iter().enumerate() {
            by_key
                .entry(key.unwrap_or_default())
                .or_default()
                .push(Run {
                    typical: typical[index],
                    median: medians[index],
                    mean: means[index],
                    total: totals[index],
                });
        }

        let keys = sides.column("key")?.u32()?.clone();
        let (calls, totals, means, p95s) = (
            floats(&sides, "calls")?,
            floats(&sides, "total")?,
            floats(&sides, "mean")?,
            floats(&sides, "p95")?,
        );
        let names: HashMap<u32, (Group, String)> = self
            .names
            .into_iter()
            .map(|(name, key)| (key, name))
            .collect();
        let mut of_groups: HashMap<Group, f64> = HashMap::new();
        let mut found = Vec::new();
        for (index, key) in keys.iter().enumerate() {
            let key = key.unwrap_or_default();
            let Some(name) = names.get(&key) else {
                continue;
            };
            *of_groups.entry(name.0).or_default() += totals[index];
            found.push((index, key, name.clone()));
        }
        let side = |(index, key, name): (usize, u32, (Group, String))| {
            let total = |group| of_groups.get(group).copied().unwrap_or_default();
            let all: f64 = name.0.shared_with().iter().map(total).sum();
            let side = Side {
                calls: calls[index] as u64,
                total: totals[index] as u64,
                share: if all > 0.0 {
                    totals[index] * 100.0 / all
                } else {
                    0.0
                },
                mean: means[index],
                p95: p95s[index],
                runs: by_key.remove(&key).unwrap_or_default(),
            };
            (name, side)
        };
        Ok(found.into_iter().map(side).collect())
    }
}

/// A column of numbers.
fn floats(frame: &DataFrame, name: &str) -> PolarsResult<Vec<f64>> {
    let column = frame.column(name)?.cast(&DataType::Float64)?;
    Ok(column
        .f64()?
        .iter()
        .map(Option::unwrap_or_default)
        .collect())
}

/// Compares the two sides; rows are sorted by their change of the total time, largest first.
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
            of_group: [None; Measure::ALL.len()],
        });
    }
    found.extend(before.into_iter().map(|((group, name), side)| Difference {
        group,
        name,
        before: Some(side),
        after: None,
        of_group: [None; Measure::ALL.len()],
    }));
    for group in Group::ALL {
        let spreads = Measure::ALL.map(|measure| group_spread(&found, group, measure));
        let of_group = found.iter_mut().filter(|row| row.group == group);
        of_group.for_each(|row| row.of_group = spreads);
    }
    found.sort_by(|a, b| {
        let effects = b.effect().abs().total_cmp(&a.effect().abs());
        effects.then_with(|| (a.group, &a.name).cmp(&(b.group, &b.name)))
    });
    Ok(found)
}

/// The spread of a group's names between runs.
#[derive(Debug, Clone, Copy, PartialEq)]
struct GroupSpread {
    /// Root mean square of the names' spreads in percent, each with the weight of its share.
    percent: f64,
    /// The number of names of equal weight that would be as significant.
    names: f64,
}

fn group_spread(found: &[Difference], group: Group, measure: Measure) -> Option<GroupSpread> {
    let of_group = found.iter().filter(|row| row.group == group);
    let (mut squares, mut weights, mut squared_weights) = (0.0, 0.0, 0.0);
    for row in of_group {
        if let (Some(before), Some(after)) = (&row.before, &row.after)
            && let Some(own) = spread(before, after, measure)
        {
            let weight = row.share();
            squares += own * own * weight;
            weights += weight;
            squared_weights += weight * weight;
        }
    }
    (weights > 0.0).then(|| GroupSpread {
        percent: (squares / weights).sqrt(),
        names: match group {
            Group::Kernel | Group::Copy => weights * weights / squared_weights,
            // Calls and ranges lie within one another: what delays one delays those around it.
            Group::Api | Group::Region => 1.0,
        },
    })
}

/// The groups by label.
pub fn group(label: &str) -> Option<Group> {
    Group::ALL.into_iter().find(|group| group.label() == label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpd_core::domain::Kind;
    use rpd_core::ids::{CorrelationId, Nanoseconds, StringId, ThreadId};
    use rpd_core::session::ArgsRef;

    fn session(calls: &[(&str, u64)]) -> Session {
        let mut session = Session::default();
        session.strings.intern("");
        for &(name, duration) in calls {
            let operation = session.add_operation(Kind::HipRuntime, name);
            let api = &mut session.api;
            api.operation.push(operation);
            api.message.push(StringId(0));
            api.start.push(Nanoseconds(1));
            api.end.push(Nanoseconds(1 + duration));
            api.thread.push(ThreadId(1));
            api.correlation.push(CorrelationId(1));
            api.ancestor.push(CorrelationId(0));
            api.args.push(ArgsRef::default());
        }
        session
    }

    /// A side of one run for each list.
    fn side(runs: &[&[(&str, u64)]]) -> Durations {
        let mut durations = Durations::default();
        for calls in runs {
            durations.next_run();
            durations.add(&session(calls), KernelNames::default());
        }
        durations
    }

    fn change(before: &[u64], after: &[u64]) -> Change {
        let runs = |values: &[u64]| {
            let calls: Vec<[(&str, u64); 1]> = values.iter().map(|&value| [("a", value)]).collect();
            side(&calls.iter().map(|call| &call[..]).collect::<Vec<_>>())
        };
        let found = differences(runs(before), runs(after)).expect("figures");
        found[0].change(Measure::Median).expect("on both sides")
    }

    #[test]
    fn what_changed_most_comes_first() -> Result<(), SummaryError> {
        let before = side(&[&[("a", 100), ("a", 102), ("a", 98), ("b", 10), ("gone", 5)]]);
        let after = side(&[&[("a", 200), ("a", 201), ("a", 199), ("b", 10), ("new", 7)]]);
        let found = differences(before, after)?;
        let names: Vec<&str> = found.iter().map(|row| &*row.name).collect();
        assert_eq!(names, ["a", "new", "gone", "b"]);
        let a = &found[0];
        let change = a.change(Measure::Median).expect("on both sides");
        assert_eq!(change.percent(), Some(100.0));
        assert_eq!(
            change.is_beyond_chance(),
            None,
            "the spread of one run is unknown"
        );
        let before = a.before.as_ref().expect("it was there");
        assert_eq!((before.calls, before.total), (3, 300));
        assert!((before.share - 300.0 * 100.0 / 315.0).abs() < 1e-9);
        assert_eq!(found[1].change(Measure::Median), None);
        Ok(())
    }

    #[test]
    fn a_run_counts_once_however_many_calls_it_has() -> Result<(), SummaryError> {
        let before = side(&[
            &[("a", 100); 9],
            &[("a", 110)],
            &[("a", 120), ("a", 1000), ("a", 10)],
        ]);
        let after = side(&[&[("a", 110)], &[("a", 110)]]);
        let found = differences(before, after)?;
        let medians = found[0].change(Measure::Median).expect("on both sides");
        assert_eq!((medians.before, medians.after), (110.0, 110.0));
        let totals = found[0].change(Measure::Total).expect("on both sides");
        assert_eq!((totals.before, totals.after), (900.0, 110.0));
        Ok(())
    }

    #[test]
    fn chance_is_what_runs_differ_by() {
        let found = change(&[100, 101, 99], &[110, 111, 109]);
        // Both sides deviate by 1; four degrees of freedom.
        assert!(
            (found.spread.expect("three runs") - 1.437).abs() < 5e-3,
            "{found:?}"
        );
        assert_eq!(found.is_beyond_chance(), Some(true));
        assert_eq!(
            change(&[100, 101, 99], &[105, 106, 104]).is_beyond_chance(),
            Some(false)
        );
        assert_eq!(
            change(&[100, 130, 70], &[150, 200, 120]).is_beyond_chance(),
            Some(false)
        );
        assert_eq!(change(&[100], &[110, 111, 109]).is_beyond_chance(), None);
        assert_eq!(
            change(&[100, 100], &[101, 101]).is_beyond_chance(),
            Some(true)
        );
    }

    #[test]
    fn one_name_that_repeats_by_chance_has_the_spread_of_its_group() -> Result<(), SummaryError> {
        let before = side(&[
            &[("still", 100), ("noisy", 100)],
            &[("still", 100), ("noisy", 150)],
        ]);
        let after = side(&[
            &[("still", 110), ("noisy", 100)],
            &[("still", 110), ("noisy", 150)],
        ]);
        for row in differences(before, after)? {
            let change = row.change(Measure::Median).expect("on both sides");
            assert_eq!(change.is_beyond_chance(), Some(false), "{}", row.name);
        }
        Ok(())
    }

    #[test]
    fn delayed_calls_do_not_change_what_is_typical() -> Result<(), SummaryError> {
        let quiet = [
            ("a", 100),
            ("a", 101),
            ("a", 102),
            ("a", 103),
            ("a", 104),
            ("a", 105),
        ];
        let mut busy = quiet;
        for (_, duration) in &mut busy[3..] {
            *duration *= 9;
        }
        let found = differences(side(&[&quiet]), side(&[&busy]))?;
        let change = |measure| found[0].change(measure).expect("on both sides");
        let typical = change(Measure::Typical);
        assert_eq!((typical.before, typical.after), (101.0, 101.0));
        let median = change(Measure::Median);
        assert_eq!((median.before, median.after), (102.5, 514.5));
        let one = differences(side(&[&[("a", 7)]]), side(&[&[("a", 7), ("a", 9)]]))?;
        let typical = one[0].change(Measure::Typical).expect("on both sides");
        assert_eq!((typical.before, typical.after), (7.0, 7.0));
        Ok(())
    }

    #[test]
    fn the_spread_of_many_names_is_less_uncertain() -> Result<(), SummaryError> {
        let side = |group, runs: [u64; 3]| {
            let mut durations = Durations::default();
            for duration in runs {
                durations.next_run();
                for name in ["a", "b", "c", "d"] {
                    let key = durations.key(group, name);
                    durations.push(key, 0, duration);
                }
            }
            durations
        };
        // Deviations of 1. Four kernels have four degrees of freedom each; ranges depend on one another.
        for (group, expected) in [(Group::Kernel, 1.163), (Group::Region, 1.437)] {
            let (before, after) = (side(group, [100, 101, 99]), side(group, [110, 111, 109]));
            for row in differences(before, after)? {
                let change = row.change(Measure::Typical).expect("on both sides");
                let spread = change.spread.expect("three runs");
                assert!((spread - expected).abs() < 5e-3, "{spread}");
            }
        }
        Ok(())
    }

    #[test]
    fn copies_have_a_share_of_the_time_of_the_gpu() -> Result<(), SummaryError> {
        let mut durations = Durations::default();
        for (group, name, duration) in [
            (Group::Kernel, "k", 60),
            (Group::Copy, "c", 20),
            (Group::Region, "r", 500),
            (Group::Kernel, "l", 20),
        ] {
            let key = durations.key(group, name);
            durations.push(key, 0, duration);
        }
        let found = differences(durations, Durations::default())?;
        let shares: HashMap<&str, f64> =
            found.iter().map(|row| (&*row.name, row.share())).collect();
        assert_eq!(
            [shares["k"], shares["c"], shares["l"], shares["r"]],
            [75.0, 20.0, 25.0, 100.0]
        );
        Ok(())
    }

    #[test]
    fn a_spread_of_few_runs_is_uncertain() {
        for (freedom, factor) in [(2.0, 1.86), (4.0, 1.44), (8.0, 1.256), (18.0, 1.147)] {
            assert!((uncertainty(freedom) - factor).abs() < 0.02, "{freedom}");
        }
    }
}
