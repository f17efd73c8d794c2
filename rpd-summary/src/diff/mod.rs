//! Two sets of recordings compared, name by name.

mod durations;

use std::cmp::Reverse;

pub use durations::{Durations, QUANTILE_ERROR, SideOf};
use rpd_core::ids::StringId;
use rpd_core::session::ExtendedStrings;
use rpd_core::storage::column::Column;
use rpd_core::storage::sorted::{Keyed, Sorter};
use zerocopy::{Immutable, IntoBytes};

use crate::SummaryError;
use durations::{BucketRow, Buckets};

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
    /// The group's label in tables.
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
    /// Mean of the faster half of the durations (of an odd number, the one in the middle included). A busy machine makes calls longer, never
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
pub struct SideFigures {
    /// Number of records of the name on this side.
    pub calls: u64,
    /// Sum of durations in nanoseconds.
    pub total: u64,
    /// Share of the time of its group on this side, 0 to 100; of a copy, of the time of copies and kernels.
    pub share: f64,
    /// Mean over the recordings.
    pub mean: f64,
    /// 95th percentile of the durations.
    pub p95: f64,
    /// The runs in which the name occurs, in the order in which they were added.
    pub runs: Vec<Run>,
    /// Whether `p95` and the `typical` and `median` of runs may differ from the exact ones, by [`QUANTILE_ERROR`] at most.
    pub is_approximate: bool,
}

/// A figure that is computed for each run.
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

    /// The measure's name in messages.
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
    /// Spread of runs of the same program, in percent; `None` with one run on a side.
    pub spread: Option<f64>,
}

impl Change {
    /// Change in percent of the median before; `None` when that is 0.
    pub fn percent(&self) -> Option<f64> {
        (self.before > 0.0).then(|| (self.after - self.before) * 100.0 / self.before)
    }

    /// Whether the change is more than chance explains: more than four times the spread. `None` when chance is unknown.
    pub fn is_beyond_chance(&self) -> Option<bool> {
        let spread = self.spread?;
        Some(self.percent()?.abs() > BEYOND * spread)
    }

    /// The smallest change in percent that is beyond chance; `None` when chance is unknown.
    pub fn detectable(&self) -> Option<f64> {
        Some(BEYOND * self.spread?)
    }
}

/// Difference of a name between the two sides: one row of the comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The kind of records.
    pub group: Group,
    /// Name of the function, kernel or direction.
    pub name: String,
    /// Figures of the recordings before the change; `None` without records.
    pub before: Option<SideFigures>,
    /// Figures of the recordings after the change; `None` without records.
    pub after: Option<SideFigures>,
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

    /// Share of the name (see [`SideFigures::share`]) on the side where that is greater, 0 to 100.
    pub fn share(&self) -> f64 {
        let sides = [&self.before, &self.after];
        let shares = sides.into_iter().flatten().map(|side| side.share);
        shares.fold(0.0, f64::max)
    }

    /// Change of the total in nanoseconds: by it differences are ordered.
    pub fn effect(&self) -> f64 {
        let total =
            |side: &Option<SideFigures>| side.as_ref().map_or(0.0, |side| side.total as f64);
        total(&self.after) - total(&self.before)
    }
}

/// A change of at least this many spreads is significant.
const BEYOND: f64 = 4.0;

impl SideFigures {
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

/// Standard deviation between the runs of the same side, pooled over both, in percent of the figure before.
fn spread(before: &SideFigures, after: &SideFigures, measure: Measure) -> Option<f64> {
    if before.runs.len() < 2 || after.runs.len() < 2 {
        return None;
    }
    let squares = |side: &SideFigures| -> f64 {
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

/// Factor by which a standard deviation of this many degrees of freedom may be too small: it leads to its upper 75 %
/// bound (Wilson and Hilferty's approximation of the chi-squared distribution).
fn uncertainty(freedom: f64) -> f64 {
    const QUARTILE: f64 = 0.674_49;
    let part = 2.0 / (9.0 * freedom.max(1.0));
    (1.0 - part - QUARTILE * part.sqrt()).powf(-1.5)
}

/// Where the buckets of a name are.
#[derive(Debug, Clone, Copy, Immutable, IntoBytes)]
#[repr(C)]
struct BucketsOfName {
    /// Index of the first.
    first: u64,
    /// Number of buckets.
    count: u64,
}

/// A name in the order of differences: by effect descending, group, then alphabetically.
#[derive(Debug, Clone, Copy, Immutable, IntoBytes)]
#[repr(C)]
struct PlacedName {
    /// Bits of the absolute effect, which have the order of the numbers.
    effect: u64,
    /// Number of the group.
    group: u64,
    /// Place of the name in alphabetical order.
    place: u64,
    buckets: BucketsOfName,
}

impl Keyed for PlacedName {
    type Key = (Reverse<u64>, u64, u64);

    fn key(&self) -> Self::Key {
        (Reverse(self.effect), self.group, self.place)
    }
}

/// The comparison of two sides, name by name.
pub struct Differences {
    names: ExtendedStrings<'static>,
    /// Buckets of all runs; those of a name are consecutive.
    buckets: Column<BucketRow>,
    /// The buckets of each name, in the order of differences.
    order: Column<BucketsOfName>,
    /// Sums of durations by side and group.
    of_groups: [[f64; Group::ALL.len()]; 2],
    /// Spreads by group and measure, when chance is known.
    spreads: [[Option<GroupSpread>; Measure::ALL.len()]; Group::ALL.len()],
}

/// Names that are compared before the memory of their buckets is given back.
const NAMES: usize = 256;

impl Durations {
    /// Compares the two sides.
    ///
    /// # Errors
    /// When temporary files cannot be written.
    pub fn differences(self) -> Result<Differences, SummaryError> {
        let Buckets {
            names,
            storage,
            rows,
            of_groups,
        } = self.finish()?;
        let storage = storage.as_ref();
        let all = (0..names.len() as u32).map(StringId);
        let places = names.places(all)?;
        let mut found = Differences {
            names,
            buckets: Column::new(),
            order: Column::new(),
            of_groups,
            spreads: Default::default(),
        };
        let mut sums = [[SpreadSums::default(); Measure::ALL.len()]; Group::ALL.len()];
        let mut order = Sorter::new(storage);
        let mut of_name = Vec::new();
        let mut rows = rows
            .map(Sorter::finish)
            .transpose()?
            .into_iter()
            .flatten()
            .peekable();
        // Rows are ordered by name, so that a name is complete when the next one begins.
        while let Some(row) = rows.next() {
            found.buckets.append(storage, row)?;
            of_name.push(row);
            if rows.peek().is_some_and(|next| next.name == row.name) {
                continue;
            }
            let difference = found.difference(&of_name);
            for (sum, measure) in sums[difference.group as usize].iter_mut().zip(Measure::ALL) {
                sum.add(&difference, measure);
            }
            order.push(PlacedName {
                effect: difference.effect().abs().to_bits(),
                group: row.name.group() as u64,
                place: places.get(row.name.name().0).into(),
                buckets: BucketsOfName {
                    first: (found.buckets.total() - of_name.len()) as u64,
                    count: of_name.len() as u64,
                },
            })?;
            of_name.clear();
        }
        for placed in order.finish()? {
            found.order.append(storage, placed.buckets)?;
        }
        if let Some(storage) = storage {
            found.buckets.seal(storage)?;
            found.order.seal(storage)?;
        }
        // Spreads of groups need all names; a single name repeats too seldom to tell.
        for group in Group::ALL {
            found.spreads[group as usize] = sums[group as usize].map(|sum| sum.spread(group));
        }
        Ok(found)
    }
}

impl Differences {
    /// The differences, ordered by their change of the total time, largest first.
    pub fn iter(&self) -> impl Iterator<Item = Difference> + '_ {
        self.order.iter().enumerate().map(|(number, of_name)| {
            if number.is_multiple_of(NAMES) {
                self.buckets.release();
            }
            let first = of_name.first as usize;
            self.difference(&self.buckets[first..first + of_name.count as usize])
        })
    }

    /// The difference of a name, from its buckets.
    fn difference(&self, buckets: &[BucketRow]) -> Difference {
        let (group, name) = (buckets[0].name.group(), buckets[0].name.name());
        let side = |side: SideOf| {
            let of_group = &self.of_groups[side as usize];
            let shared = group.shared_with().iter();
            let all = shared.map(|group| of_group[*group as usize]).sum();
            durations::side(buckets, side, all)
        };
        Difference {
            group,
            name: self.names.get(name).to_owned(),
            before: side(SideOf::Before),
            after: side(SideOf::After),
            of_group: self.spreads[group as usize],
        }
    }
}

/// The spread of a group's names between runs.
#[derive(Debug, Clone, Copy, PartialEq)]
struct GroupSpread {
    /// Root mean square of the names' spreads in percent, each with the weight of its share.
    percent: f64,
    /// The number of names of equal weight that would be as significant.
    names: f64,
}

/// Sums from which a [`GroupSpread`] is computed.
#[derive(Debug, Clone, Copy, Default)]
struct SpreadSums {
    squares: f64,
    weights: f64,
    squared_weights: f64,
}

impl SpreadSums {
    fn add(&mut self, row: &Difference, measure: Measure) {
        if let (Some(before), Some(after)) = (&row.before, &row.after)
            && let Some(own) = spread(before, after, measure)
        {
            let weight = row.share();
            self.squares += own * own * weight;
            self.weights += weight;
            self.squared_weights += weight * weight;
        }
    }

    fn spread(self, group: Group) -> Option<GroupSpread> {
        (self.weights > 0.0).then(|| GroupSpread {
            percent: (self.squares / self.weights).sqrt(),
            names: match group {
                Group::Kernel | Group::Copy => self.weights * self.weights / self.squared_weights,
                // Calls and ranges lie within one another: what delays one delays those around it.
                Group::Api | Group::Region => 1.0,
            },
        })
    }
}

/// The groups by label.
pub fn group(label: &str) -> Option<Group> {
    Group::ALL.into_iter().find(|group| group.label() == label)
}

#[cfg(test)]
mod tests;
