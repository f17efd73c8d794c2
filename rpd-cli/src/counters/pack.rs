//! Packs counters into as few passes as possible. The provider decides which sets fit into one pass.

use std::collections::HashMap;

use crate::failure::Failure;

/// Largest number of provider queries in a search for one pass fewer.
const MAX_QUERIES: usize = 3000;

/// A cache of the provider's answers to whether a set of items fits into one pass. Every subset of a set that fits is
/// assumed to fit.
pub(super) struct FitCache<'a> {
    query: &'a mut dyn FnMut(&[usize]) -> Result<bool, Failure>,
    known: HashMap<Vec<usize>, bool>,
    /// Queries since the current search began.
    queries: usize,
}

impl<'a> FitCache<'a> {
    pub(super) fn new(query: &'a mut dyn FnMut(&[usize]) -> Result<bool, Failure>) -> FitCache<'a> {
        FitCache {
            query,
            known: HashMap::new(),
            queries: 0,
        }
    }

    fn fits(&mut self, set: &[usize]) -> Result<bool, Failure> {
        let mut key = set.to_vec();
        key.sort_unstable();
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        self.queries += 1;
        let answer = (self.query)(&key)?;
        self.known.insert(key, answer);
        Ok(answer)
    }
}

/// Packs items into groups that each fit into one pass, as few as the search finds. Groups, and the items of a group, keep
/// the order of the items. Every item must fit alone. `sizes` are estimates of the hardware counters that an item takes.
///
/// # Errors
/// A provider query failed.
pub(super) fn pack(sizes: &[usize], cache: &mut FitCache<'_>) -> Result<Vec<Vec<usize>>, Failure> {
    let given: Vec<usize> = (0..sizes.len()).collect();
    let mut by_size = given.clone();
    by_size.sort_by_key(|item| std::cmp::Reverse(sizes[*item]));
    let mut best = first_fit(&given, cache)?;
    // First fit finds one group if everything fits into one; so two groups are never improved on.
    while best.len() > 2 {
        let other = first_fit(&by_size, cache)?;
        if other.len() < best.len() {
            best = other;
            continue;
        }
        cache.queries = 0;
        let mut groups = vec![Vec::new(); best.len() - 1];
        if !place(&by_size, &mut groups, cache)? {
            break;
        }
        best = groups;
    }
    for group in &mut best {
        group.sort_unstable();
    }
    best.retain(|group| !group.is_empty());
    best.sort();
    Ok(best)
}

fn first_fit(items: &[usize], cache: &mut FitCache<'_>) -> Result<Vec<Vec<usize>>, Failure> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    'items: for item in items {
        for group in &mut groups {
            group.push(*item);
            if cache.fits(group)? {
                continue 'items;
            }
            group.pop();
        }
        groups.push(vec![*item]);
    }
    Ok(groups)
}

/// Places all items into the existing groups by backtracking; false when there is no way, or after [`MAX_QUERIES`].
fn place(
    items: &[usize],
    groups: &mut [Vec<usize>],
    cache: &mut FitCache<'_>,
) -> Result<bool, Failure> {
    let Some((item, rest)) = items.split_first() else {
        return Ok(true);
    };
    for index in 0..groups.len() {
        if cache.queries > MAX_QUERIES {
            return Ok(false);
        }
        let empty = groups[index].is_empty();
        groups[index].push(*item);
        if cache.fits(&groups[index])? && place(rest, groups, cache)? {
            return Ok(true);
        }
        groups[index].pop();
        if empty {
            // All empty groups are equivalent.
            break;
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Items take slots of blocks; shared slots are taken once.
    fn packed(limits: &[usize], items: &[&[(usize, u32)]]) -> Vec<Vec<usize>> {
        let mut fits = |set: &[usize]| {
            let mut slots: Vec<(usize, u32)> = set
                .iter()
                .flat_map(|item| items[*item].iter().copied())
                .collect();
            slots.sort_unstable();
            slots.dedup();
            Ok((0..limits.len())
                .all(|block| slots.iter().filter(|slot| slot.0 == block).count() <= limits[block]))
        };
        let sizes: Vec<usize> = items.iter().map(|item| item.len()).collect();
        pack(&sizes, &mut FitCache::new(&mut fits)).expect("no query fails")
    }

    #[test]
    fn pack_fills_independent_blocks_side_by_side() {
        let items: Vec<Vec<(usize, u32)>> = (0..10)
            .map(|event| vec![(usize::from(event >= 8), event)])
            .collect();
        let items: Vec<&[(usize, u32)]> = items.iter().map(Vec::as_slice).collect();
        assert_eq!(
            packed(&[4, 2], &items),
            [vec![0, 1, 2, 3, 8, 9], vec![4, 5, 6, 7]]
        );
        assert_eq!(packed(&[8, 2], &items).len(), 1);
        assert!(packed(&[1], &[]).is_empty());
    }

    #[test]
    fn pack_places_large_items_first() {
        // In the order given, first fit takes three passes: small, small, then each large one apart.
        let items: [&[(usize, u32)]; 5] = [
            &[(0, 1)],
            &[(0, 2)],
            &[(0, 3), (0, 4), (0, 5)],
            &[(0, 6), (0, 7), (0, 8)],
            &[(0, 9), (0, 10)],
        ];
        // Ten slots, five a pass: two passes only when {3 + 2} and {3 + 1 + 1} are found.
        assert_eq!(packed(&[5], &items).len(), 2);
        // Slots that are shared count once.
        let shared: [&[(usize, u32)]; 3] =
            [&[(0, 1), (0, 2)], &[(0, 2), (0, 3)], &[(0, 1), (0, 3)]];
        assert_eq!(packed(&[3], &shared).len(), 1);
    }

    #[test]
    fn pack_finds_fewer_passes_than_first_fit() {
        // Sizes 4 4 3 3 2 2 2 in bins of 10: decreasing first fit finds 4+4+2, 3+3+2+2. Of 5 5 4 4 3 3 3 3 in bins of 10
        // only a search finds three: 5+5, 4+3+3, 4+3+3.
        let mut event = 0;
        let items: Vec<Vec<(usize, u32)>> = [5, 5, 4, 4, 3, 3, 3, 3]
            .iter()
            .map(|size| {
                (0..*size)
                    .map(|_| {
                        event += 1;
                        (0, event)
                    })
                    .collect()
            })
            .rev()
            .collect();
        let items: Vec<&[(usize, u32)]> = items.iter().map(Vec::as_slice).collect();
        assert_eq!(packed(&[10], &items).len(), 3);
    }
}
