//! A set-associative cache with LRU replacement.

/// Cache lines by number, each with a state `T`.
#[derive(Debug)]
pub(super) struct Cache<T> {
    sets: Vec<Vec<Line<T>>>,
    ways: usize,
    clock: u64,
}

#[derive(Debug)]
struct Line<T> {
    number: u64,
    used: u64,
    value: T,
}

impl<T> Cache<T> {
    /// An empty cache.
    pub(super) fn new(sets: usize, ways: usize) -> Self {
        Self {
            sets: (0..sets).map(|_| Vec::new()).collect(),
            ways,
            clock: 0,
        }
    }

    fn set(&mut self, number: u64) -> &mut Vec<Line<T>> {
        let at = number % self.sets.len() as u64;
        &mut self.sets[at as usize]
    }

    /// The state of a line, if the cache has it. This counts as a use.
    pub(super) fn get(&mut self, number: u64) -> Option<&mut T> {
        self.clock += 1;
        let clock = self.clock;
        let set = self.set(number);
        let line = set.iter_mut().find(|line| line.number == number)?;
        line.used = clock;
        Some(&mut line.value)
    }

    /// Adds a line that the cache does not have. Returns the evicted line, if any.
    pub(super) fn insert(&mut self, number: u64, value: T) -> Option<(u64, T)> {
        self.clock += 1;
        let (used, ways) = (self.clock, self.ways);
        let set = self.set(number);
        let line = Line {
            number,
            used,
            value,
        };
        if set.len() < ways {
            if set.is_empty() {
                // In a large cache, many sets never have more than one line.
                set.reserve_exact(1);
            }
            set.push(line);
            return None;
        }
        let oldest = set.iter_mut().min_by_key(|line| line.used)?;
        let out = std::mem::replace(oldest, line);
        Some((out.number, out.value))
    }

    /// The state of a line, if the cache has it. This does not count as a use.
    pub(super) fn peek(&mut self, number: u64) -> Option<&T> {
        let line = self.set(number).iter().find(|line| line.number == number)?;
        Some(&line.value)
    }

    /// Removes and returns a line, if the cache has it.
    pub(super) fn remove(&mut self, number: u64) -> Option<T> {
        let set = self.set(number);
        let at = set.iter().position(|line| line.number == number)?;
        Some(set.remove(at).value)
    }

    /// Removes and returns all lines, set by set.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = (u64, T)> {
        let lines = self.sets.iter_mut().flat_map(std::mem::take);
        lines.map(|line| (line.number, line.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_cache_evicts_the_least_recently_used_line() {
        let mut cache = Cache::new(2, 2);
        assert!(cache.insert(0, 'a').is_none());
        assert!(cache.insert(2, 'b').is_none());
        // Another set.
        assert!(cache.insert(1, 'c').is_none());
        assert_eq!(cache.get(0), Some(&mut 'a'));
        assert_eq!(cache.insert(4, 'd'), Some((2, 'b')));
        assert_eq!(cache.get(2), None);
        cache.remove(0);
        assert_eq!(cache.drain().collect::<Vec<_>>(), [(4, 'd'), (1, 'c')]);
    }
}
