//! Distributions of many values in bounded memory.

/// Values that are kept one by one.
const EXACT: usize = 65_536;
/// Significant bits of values beyond that: buckets are at most 1/512 wide.
const BITS: u32 = 9;

/// A distribution of whole numbers. Count, sum, least, greatest, mean and deviation are exact; quantiles are so up to 65,536
/// values, and within 1/512 beyond.
#[derive(Debug, Clone, Default)]
pub struct Distribution {
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
    /// Sum of squared differences from the mean so far, and that mean.
    squares: f64,
    mean: f64,
    kept: Vec<u64>,
    is_sorted: bool,
    /// Numbers of values by bucket, when they are too many to be kept.
    buckets: Vec<u64>,
}

fn bucket(value: u64) -> usize {
    let bits = u64::BITS - value.leading_zeros();
    let shift = bits.saturating_sub(BITS + 1);
    ((u64::from(shift) << BITS) + (value >> shift)) as usize
}

/// Least value of a bucket.
fn least(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    match bucket >> BITS {
        0 | 1 => bucket,
        above => ((bucket & ((1 << BITS) - 1)) | 1 << BITS) << (above - 1),
    }
}

impl Distribution {
    /// Adds a value.
    pub fn add(&mut self, value: u64) {
        self.min = match self.count {
            0 => value,
            _ => self.min.min(value),
        };
        self.max = self.max.max(value);
        self.count += 1;
        self.sum += u128::from(value);
        let difference = value as f64 - self.mean;
        self.mean += difference / self.count as f64;
        self.squares += difference * (value as f64 - self.mean);
        if self.buckets.is_empty() && self.kept.len() < EXACT {
            self.kept.push(value);
            self.is_sorted = false;
            return;
        }
        if self.buckets.is_empty() {
            self.buckets = vec![0; bucket(u64::MAX) + 1];
            for value in std::mem::take(&mut self.kept) {
                self.buckets[bucket(value)] += 1;
            }
        }
        self.buckets[bucket(value)] += 1;
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of the values; the greatest number when it is greater.
    pub fn sum(&self) -> u64 {
        u64::try_from(self.sum).unwrap_or(u64::MAX)
    }

    /// Least value; `None` without any.
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// Greatest value; `None` without any.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// Mean; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// Standard deviation of a sample; `None` below two values.
    pub fn deviation(&self) -> Option<f64> {
        (self.count > 1).then(|| (self.squares / (self.count - 1) as f64).sqrt())
    }

    fn sort(&mut self) {
        if !self.is_sorted {
            self.kept.sort_unstable();
            self.is_sorted = true;
        }
    }

    /// The value with this place in the order of values, from 0.
    fn at(&mut self, place: u64) -> Option<u64> {
        if place >= self.count {
            return None;
        }
        if self.buckets.is_empty() {
            self.sort();
            return self.kept.get(place as usize).copied();
        }
        let mut left = place;
        for (index, count) in self.buckets.iter().enumerate() {
            if left < *count {
                return Some(least(index).clamp(self.min, self.max));
            }
            left -= count;
        }
        None
    }

    /// The quantile by the nearest rank: the least value with at least this share of values up to it; `None` without values.
    pub fn quantile(&mut self, share: f64) -> Option<u64> {
        let rank = (share * self.count as f64).ceil() as u64;
        self.at(rank.max(1) - 1)
    }

    /// Median: of an even number of values the mean of the two in the middle; `None` without values.
    pub fn median(&mut self) -> Option<f64> {
        let (low, high) = (self.count.checked_sub(1)? / 2, self.count / 2);
        let (low, high) = (self.at(low)?, self.at(high)?);
        Some(low as f64 / 2.0 + high as f64 / 2.0)
    }

    /// The values in their order, where they were kept: up to 65,536.
    pub fn values(&mut self) -> Option<&[u64]> {
        if !self.buckets.is_empty() {
            return None;
        }
        self.sort();
        Some(&self.kept)
    }
}

/// Evenly chosen samples of a long series: all of up to 65,536 values, then every second, fourth, and so on.
#[derive(Debug, Clone)]
pub struct Samples<T> {
    kept: Vec<T>,
    step: u64,
    seen: u64,
}

impl<T> Default for Samples<T> {
    fn default() -> Samples<T> {
        Samples {
            kept: Vec::new(),
            step: 1,
            seen: 0,
        }
    }
}

impl<T> Samples<T> {
    /// Adds a value.
    pub fn add(&mut self, value: T) {
        if self.seen.is_multiple_of(self.step) {
            if self.kept.len() == EXACT {
                let mut index = 0;
                self.kept.retain(|_| {
                    index += 1;
                    index % 2 == 1
                });
                self.step *= 2;
            }
            if self.seen.is_multiple_of(self.step) {
                self.kept.push(value);
            }
        }
        self.seen += 1;
    }

    /// The values that were kept.
    pub fn kept(&self) -> &[T] {
        &self.kept
    }
}

/// Median of some values, which are put in order; `None` without any.
pub fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.len().checked_sub(1)? / 2, values.len() / 2);
    Some(values[low] / 2.0 + values[high] / 2.0)
}

/// Median and median absolute deviation from it; `None` without values.
pub fn median_and_spread(values: &[f64]) -> Option<(f64, f64)> {
    let mut sorted = values.to_vec();
    let middle = median(&mut sorted)?;
    let mut away: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    Some((middle, median(&mut away)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_beyond_the_exact_ones_are_within_a_part_of_512() {
        let mut values = Distribution::default();
        for value in 0..200_000_u64 {
            values.add(value * 7919 % 200_000);
        }
        assert_eq!(
            (values.count(), values.min(), values.max()),
            (200_000, Some(0), Some(199_999))
        );
        for share in [0.1, 0.5, 0.95] {
            let found = values.quantile(share).expect("values") as f64;
            assert!(
                (found / (share * 200_000.0) - 1.0).abs() <= 1.0 / 512.0,
                "{share}: {found}"
            );
        }
        for value in [0, 1, 511, 512, 1023, 1024, 123_456_789, u64::MAX] {
            let low = least(bucket(value));
            assert!(
                low <= value && value - low <= value >> BITS,
                "{value} {low}"
            );
        }
    }

    #[test]
    fn deviation_needs_two_values() {
        let mut values = Distribution::default();
        values.add(4);
        assert_eq!((values.deviation(), values.median()), (None, Some(4.0)));
        values.add(8);
        assert_eq!(
            (values.deviation(), values.median()),
            (Some(8.0_f64.sqrt()), Some(6.0))
        );
        assert_eq!(values.quantile(0.5), Some(4));
    }

    #[test]
    fn samples_of_a_long_series_are_spread_evenly() {
        let mut samples = Samples::default();
        (0..300_000).for_each(|value| samples.add(value));
        assert!(samples.kept().len() > EXACT / 2);
        assert!(samples.kept().windows(2).all(|pair| pair[1] - pair[0] == 8));
    }
}
