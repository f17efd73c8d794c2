//! Buckets that durations are counted in.
//!
//! The buckets of a power of two have equal widths, and there are `1 << bits` of them. Shorter durations have a bucket each.

/// The bucket of a duration. The buckets of longer durations have greater numbers.
#[inline]
pub const fn bucket(duration: u64, bits: u32) -> u64 {
    let shift = (u64::BITS - duration.leading_zeros()).saturating_sub(bits + 1);
    ((shift as u64) << bits) + (duration >> shift)
}

/// The shortest duration of a bucket.
pub const fn shortest(bucket: u64, bits: u32) -> u64 {
    let shift = (bucket >> bits).saturating_sub(1);
    (bucket - (shift << bits)) << shift
}

/// Bits of the buckets of [`crate::format::DeviceTotal`]: a bucket is at most an eighth of its durations wide.
pub const TOTAL_BITS: u32 = 3;

/// Durations of this many nanoseconds (18 minutes) and longer share the last bucket of [`crate::format::DeviceTotal`].
const LONGEST: u64 = 1 << 40;

/// Number of buckets of [`crate::format::DeviceTotal`].
pub const TOTAL_BUCKETS: usize = bucket(LONGEST, TOTAL_BITS) as usize + 1;

/// The bucket of a duration in [`crate::format::DeviceTotal`].
#[inline]
pub fn total_bucket(duration: u64) -> usize {
    bucket(duration.min(LONGEST), TOTAL_BITS) as usize
}

/// The duration in nanoseconds below which `part` (0 to 1) of the durations lie that are counted in the buckets of a
/// [`crate::format::DeviceTotal`]: within a bucket in proportion, and between `min` and `max`.
pub fn quantile(buckets: &[u64], part: f64, min: u64, max: u64) -> f64 {
    let count: f64 = buckets.iter().map(|&inside| inside as f64).sum();
    let place = part * count;
    let mut before = 0.0;
    let mut value = max as f64;
    for (number, &inside) in (0_u64..).zip(buckets).filter(|(_, inside)| **inside > 0) {
        if before + inside as f64 >= place {
            // Durations are taken as spread evenly over their bucket; nothing else is known of them.
            let begin = shortest(number, TOTAL_BITS) as f64;
            let width = shortest(number + 1, TOTAL_BITS) as f64 - begin;
            value = begin + width * (place - before) / inside as f64;
            break;
        }
        before += inside as f64;
    }
    // The exact limits are known, and are better than those of the outermost buckets.
    value.clamp(min as f64, max as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_numbers_ascend_with_durations_without_gaps() {
        for bits in [TOTAL_BITS, 8] {
            let mut last = 0;
            for duration in 0..100_000 {
                let number = bucket(duration, bits);
                assert!(number == last || number == last + 1, "{duration}");
                assert!(shortest(number, bits) <= duration);
                assert!(duration < shortest(number + 1, bits));
                last = number;
            }
        }
        assert_eq!(total_bucket(u64::MAX), TOTAL_BUCKETS - 1);
    }

    #[test]
    fn quantile_is_off_by_less_than_a_bucket() {
        let mut buckets = [0; TOTAL_BUCKETS];
        for duration in 1000..11_000 {
            buckets[total_bucket(duration)] += 1;
        }
        for part in [0.0, 0.01, 0.5, 0.9, 0.99, 1.0] {
            let exact = 1000.0 + part * 10_000.0;
            let found = quantile(&buckets, part, 1000, 10_999);
            assert!((found - exact).abs() <= exact / 8.0, "{part}: {found}");
        }
        assert_eq!(quantile(&[], 0.5, 7, 7), 7.0);
        let mut same = [0; TOTAL_BUCKETS];
        same[total_bucket(1234)] = 9;
        assert_eq!(quantile(&same, 0.5, 1234, 1234), 1234.0);
    }
}
