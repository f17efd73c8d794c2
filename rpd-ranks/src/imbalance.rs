//! How unequal the groups are in what they share: a kernel or a region that one rank spends more time in.

use std::collections::HashMap;

/// The time that a group spent in something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupTotal {
    /// Number of the group.
    pub group: usize,
    /// Number of times.
    pub calls: u64,
    /// Sum of durations in nanoseconds.
    pub total: u64,
}

/// What the groups that have a name spent in it. Times in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Imbalance {
    /// The kernel, or the message of the region.
    pub name: String,
    /// The totals of the groups that have it, least first.
    pub totals: Vec<GroupTotal>,
    /// Mean of the totals.
    pub mean: f64,
}

impl Imbalance {
    /// The least total; 0 without any.
    pub fn min(&self) -> u64 {
        self.totals.first().map_or(0, |least| least.total)
    }

    /// The group with the greatest total.
    pub fn slowest(&self) -> Option<GroupTotal> {
        self.totals.last().copied()
    }

    /// The greatest total over the mean: 1 where all are equal.
    pub fn ratio(&self) -> f64 {
        match self.slowest() {
            Some(slowest) if self.mean > 0.0 => slowest.total as f64 / self.mean,
            _ => 1.0,
        }
    }

    /// Nanoseconds that the others could wait for the slowest: its total minus the mean.
    pub fn excess(&self) -> f64 {
        self.slowest()
            .map_or(0.0, |slowest| slowest.total as f64 - self.mean)
    }

    /// The total that half of the groups are below.
    fn median(&self) -> f64 {
        let totals: Vec<f64> = self.totals.iter().map(|of| of.total as f64).collect();
        median(&totals)
    }
}

/// Collects the totals by name; those first where the slowest group exceeds the mean by most. Names that one group alone has
/// are left out.
pub fn imbalances(totals: impl IntoIterator<Item = (String, GroupTotal)>) -> Vec<Imbalance> {
    let mut by_name: HashMap<String, Vec<GroupTotal>> = HashMap::new();
    for (name, total) in totals {
        by_name.entry(name).or_default().push(total);
    }
    by_name.retain(|_, totals| totals.len() > 1);
    let of_names = by_name.into_iter().map(|(name, mut totals)| {
        totals.sort_by_key(|of| (of.total, of.group));
        let sum: f64 = totals.iter().map(|of| of.total as f64).sum();
        Imbalance {
            mean: sum / totals.len() as f64,
            name,
            totals,
        }
    });
    let mut list: Vec<Imbalance> = of_names.collect();
    list.sort_by(|a, b| {
        let excess = b.excess().total_cmp(&a.excess());
        excess.then_with(|| a.name.cmp(&b.name))
    });
    list
}

/// A group that takes longer than the others.
#[derive(Debug, Clone, PartialEq)]
pub struct Straggler {
    /// The kernel, or the message of the region.
    pub name: String,
    /// Total of the group that takes longer.
    pub own: GroupTotal,
    /// Median of the totals of all groups that have the name, in nanoseconds.
    pub median: f64,
}

/// Part of the median by which the total of a straggler exceeds it, at least.
const LEAST_EXCESS: f64 = 0.25;

/// Distance of a straggler from the median, at least, in units of how far totals usually are from it: the scaled median of
/// their distances.
const LEAST_DISTANCE: f64 = 5.0;

/// The scale that makes the median of distances the standard deviation of a normal distribution.
const NORMAL: f64 = 1.4826;

/// Least number of groups among which one can be told to be unusual.
const LEAST_GROUPS: usize = 3;

/// The groups that take much longer than the others with a name, those with the greatest excess first.
pub fn stragglers(imbalances: &[Imbalance]) -> Vec<Straggler> {
    let mut found = Vec::new();
    for imbalance in imbalances {
        if imbalance.totals.len() < LEAST_GROUPS {
            continue;
        }
        let middle = imbalance.median();
        let distances: Vec<f64> = imbalance
            .totals
            .iter()
            .map(|of| (of.total as f64 - middle).abs())
            .collect();
        let usual = NORMAL * median(&distances);
        let least = (LEAST_EXCESS * middle).max(LEAST_DISTANCE * usual);
        let late = imbalance.totals.iter();
        let late = late.filter(|of| of.total as f64 - middle > least);
        found.extend(late.map(|own| Straggler {
            name: imbalance.name.clone(),
            own: *own,
            median: middle,
        }));
    }
    let excess = |straggler: &Straggler| straggler.own.total as f64 - straggler.median;
    found.sort_by(|a, b| {
        let order = excess(b).total_cmp(&excess(a));
        order.then_with(|| (&a.name, a.own.group).cmp(&(&b.name, b.own.group)))
    });
    found
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match (values.get(half), half.checked_sub(1)) {
        (None, _) => 0.0,
        (Some(upper), Some(before)) if values.len().is_multiple_of(2) => {
            (values[before] + upper) / 2.0
        }
        (Some(middle), _) => *middle,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(name: &str, totals: &[u64]) -> Vec<(String, GroupTotal)> {
        let of = |(group, total): (usize, &u64)| {
            let total = GroupTotal {
                group,
                calls: 1,
                total: *total,
            };
            (name.to_owned(), total)
        };
        totals.iter().enumerate().map(of).collect()
    }

    #[test]
    fn imbalance_is_ordered_by_what_the_slowest_costs() {
        let mut all = totals("equal", &[1000, 1000]);
        all.extend(totals("late", &[100, 100, 400]));
        all.extend(totals("alone", &[7]));
        let list = imbalances(all);
        let names: Vec<&str> = list.iter().map(|of| &*of.name).collect();
        assert_eq!(names, ["late", "equal"]);
        let late = &list[0];
        assert_eq!((late.min(), late.mean, late.ratio()), (100, 200.0, 2.0));
        assert_eq!(late.slowest().map(|of| of.group), Some(2));
        assert_eq!(list[1].ratio(), 1.0);
    }

    #[test]
    fn stragglers_are_far_from_the_median_and_from_what_is_usual() {
        let named = |values: &[u64]| {
            let list = imbalances(totals("k", values));
            let groups = stragglers(&list).into_iter().map(|of| of.own.group);
            groups.collect::<Vec<_>>()
        };
        assert_eq!(named(&[100, 101, 99, 100, 300, 100, 250]), [4, 6]);
        // Wide, but everything is.
        assert!(named(&[60, 80, 100, 120, 140]).is_empty());
        // Within a quarter of the median.
        assert!(named(&[100, 100, 100, 120]).is_empty());
        // Of two nobody can tell which one is unusual.
        assert!(named(&[100, 900]).is_empty());
        assert!(named(&[]).is_empty());
        assert_eq!(named(&[0, 0, 5]), [2]);
    }
}
