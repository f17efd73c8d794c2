//! Maps whose keys are numbers.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by ids, addresses and offsets. Its hash takes a few instructions a number; the order of its entries is the same in
/// every run.
pub type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// Mixes numbers that are small or near one another.
#[derive(Debug, Default, Clone, Copy)]
pub struct NumberHasher(u64);

impl Hasher for NumberHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0.rotate_left(5) ^ number).wrapping_mul(0x517c_c1b7_2722_0a95);
        self.0 = mixed ^ mixed >> 32;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::{BuildHasher as _, BuildHasherDefault};

    use super::NumberHasher;

    #[test]
    fn number_hasher_spreads_addresses_over_the_bits_that_maps_use() {
        let hasher = BuildHasherDefault::<NumberHasher>::default();
        let keys = (1..=4_u64).flat_map(|object| (0..1024_u64).map(move |at| (object, 4 * at)));
        let hashes: Vec<u64> = keys.map(|key| hasher.hash_one(key)).collect();
        let distinct = |of: &dyn Fn(u64) -> u64| {
            let distinct: HashSet<u64> = hashes.iter().map(|hash| of(*hash)).collect();
            distinct.len()
        };
        // The low bits choose a place, the highest seven are compared there.
        assert_eq!(distinct(&|hash| hash), 4096);
        assert!(distinct(&|hash| hash & 0x1fff) > 2500);
        assert_eq!(distinct(&|hash| hash >> 57), 128);
    }
}
