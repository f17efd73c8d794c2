//! Values that are far from the others of their group, by statistics that an outlier cannot pull.

use crate::distribution::median_and_spread;

/// Values that a group needs before one of them is called an outlier.
const LEAST: usize = 8;
/// Robust z from which a value is an outlier.
const FAR: f64 = 3.5;
/// Difference from the median, as a share of it, from which a value is an outlier.
const NOTABLE: f64 = 0.05;

/// The middle of a group and the scale of its spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Group {
    /// Median.
    pub median: f64,
    /// Median absolute deviation.
    pub spread: f64,
    /// What a distance is measured in: 1.4826 times the spread, or 1.2533 times the mean absolute deviation where that is 0.
    pub scale: f64,
    /// Number of values.
    pub count: usize,
}

impl Group {
    /// The group of some values; `None` without any.
    pub fn new(values: &[f64]) -> Option<Group> {
        let (median, spread) = median_and_spread(values)?;
        let away = values.iter().map(|value| (value - median).abs());
        let mean = away.sum::<f64>() / values.len() as f64;
        Some(Group {
            median,
            spread,
            scale: if spread > 0.0 {
                1.4826 * spread
            } else {
                1.2533 * mean
            },
            count: values.len(),
        })
    }

    /// Distance from the median in the scale of the group; 0 where all values are the same.
    pub fn z(&self, value: f64) -> f64 {
        let away = (value - self.median).abs();
        if self.scale > 0.0 {
            away / self.scale
        } else {
            0.0
        }
    }

    /// Whether a value is an outlier.
    pub fn is_outlier(&self, value: f64) -> bool {
        self.count >= LEAST
            && self.z(value) > FAR
            && (value - self.median).abs() > NOTABLE * self.median
    }
}

/// Numbers of outliers in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outliers {
    /// This many values are outliers.
    Some(usize),
    /// The group has several modes: too many values would be outliers.
    Multimodal,
}

/// The outliers of some values.
pub fn outliers(values: &[f64]) -> Outliers {
    let Some(group) = Group::new(values) else {
        return Outliers::Some(0);
    };
    let count = values
        .iter()
        .filter(|value| group.is_outlier(**value))
        .count();
    if count >= 3 && count as f64 > 0.2 * values.len() as f64 || has_two_modes(values, &group) {
        Outliers::Multimodal
    } else {
        Outliers::Some(count)
    }
}

/// Whether the values lie in two places with nothing between: the median and its spread do not see these.
fn has_two_modes(values: &[f64], group: &Group) -> bool {
    if values.len() < LEAST {
        return false;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let steps = sorted.windows(2).enumerate();
    let widest = steps.max_by(|a, b| (a.1[1] - a.1[0]).total_cmp(&(b.1[1] - b.1[0])));
    let Some((at, step)) = widest else {
        return false;
    };
    let (low, high) = sorted.split_at(at + 1);
    let width = |part: &[f64]| part[part.len() - 1] - part[0];
    let gap = step[1] - step[0];
    let least = low.len().min(high.len());
    least >= 3
        && least as f64 > 0.2 * values.len() as f64
        && gap > NOTABLE * group.median
        && gap > 2.0 * width(low).max(width(high))
}

/// Time that would be saved were all values of a group as the best: the 5th percentile, at least the least that is no outlier.
pub fn variability(values: &[f64]) -> f64 {
    let Some(group) = Group::new(values) else {
        return 0.0;
    };
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (0.05 * sorted.len() as f64).ceil().max(1.0) as usize - 1;
    let own = sorted.iter().find(|value| !group.is_outlier(**value));
    let best = own.map_or(sorted[rank], |own| own.max(sorted[rank]));
    sorted.iter().map(|value| (value - best).max(0.0)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    // answers-28
    #[test]
    fn outliers_are_those_of_the_examples() {
        let o1 = [10.0, 10.0, 11.0, 10.0, 9.0, 10.0, 10.0, 50.0];
        let group = Group::new(&o1).expect("values");
        assert!((group.scale - 6.58).abs() < 0.01 && (group.z(50.0) - 6.08).abs() < 0.01);
        assert!(group.is_outlier(50.0) && !group.is_outlier(11.0));
        let o2 = [101.0, 100.0, 99.0, 100.0, 102.0, 100.0, 140.0, 100.0];
        let group = Group::new(&o2).expect("values");
        assert_eq!(group.spread, 0.5);
        assert!((group.z(140.0) - 54.0).abs() < 0.1 && group.is_outlier(140.0));
        assert!((group.z(102.0) - 2.7).abs() < 0.01 && !group.is_outlier(102.0));
        assert_eq!(outliers(&o2), Outliers::Some(1));
    }

    // answers-29
    #[test]
    fn values_in_two_places_are_multimodal() {
        let values: Vec<f64> = (0..40)
            .map(|index| f64::from(100 + index % 2 * 100))
            .collect();
        assert_eq!(outliers(&values), Outliers::Multimodal);
        let values: Vec<f64> = (0..40).map(|index| f64::from(100 + index % 7)).collect();
        assert_eq!(outliers(&values), Outliers::Some(0));
    }

    #[test]
    fn variability_is_the_time_above_the_best() {
        assert_eq!(variability(&[10.0, 10.0, 15.0]), 5.0);
        assert_eq!(variability(&[]), 0.0);
    }
}
