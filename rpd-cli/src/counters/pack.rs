//! Spreading counters over passes, with the provider's word for what fits into one.

use std::collections::HashMap;

use crate::failure::Failure;

/// Sets that the search for fewer passes may ask about.
const PATIENCE: usize = 3000;

/// Says whether items can be collected in one pass. What fits still fits when something is taken out.
pub(super) struct Oracle<'a> {
    ask: &'a mut dyn FnMut(&[usize]) -> Result<bool, Failure>,
    known: HashMap<Vec<usize>, bool>,
    asked: usize,
}

impl<'a> Oracle<'a> {
    pub(super) fn new(ask: &'a mut dyn FnMut(&[usize]) -> Result<bool, Failure>) -> Oracle<'a> {
        Oracle {
            ask,
            known: HashMap::new(),
            asked: 0,
        }
    }

    fn fits(&mut self, set: &[usize]) -> Result<bool, Failure> {
        let mut key = set.to_vec();
        key.sort_unstable();
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        self.asked += 1;
        let answer = (self.ask)(&key)?;
        self.known.insert(key, answer);
        Ok(answer)
    }
}

/// Groups of items that each fit, as few as can be found; items within a group, and groups, in the order of the items.
/// Each item fits alone. `sizes` are guesses at what an item takes.
///
/// # Errors
/// When the provider cannot be asked.
pub(super) fn pack(sizes: &[usize], oracle: &mut Oracle<'_>) -> Result<Vec<Vec<usize>>, Failure> {
    let given: Vec<usize> = (0..sizes.len()).collect();
    let mut by_size = given.clone();
    by_size.sort_by_key(|item| std::cmp::Reverse(sizes[*item]));
    let mut best = first_fit(&given, oracle)?;
    // Nothing can be better than one group, and than two when everything does not fit into one.
    while best.len() > 2 {
        let other = first_fit(&by_size, oracle)?;
        if other.len() < best.len() {
            best = other;
            continue;
        }
        oracle.asked = 0;
        let mut groups = vec![Vec::new(); best.len() - 1];
        if !place(&by_size, &mut groups, oracle)? {
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

fn first_fit(items: &[usize], oracle: &mut Oracle<'_>) -> Result<Vec<Vec<usize>>, Failure> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    'items: for item in items {
        for group in &mut groups {
            group.push(*item);
            if oracle.fits(group)? {
                continue 'items;
            }
            group.pop();
        }
        groups.push(vec![*item]);
    }
    Ok(groups)
}

/// Puts all items into the groups there are, trying everything until patience ends.
fn place(
    items: &[usize],
    groups: &mut [Vec<usize>],
    oracle: &mut Oracle<'_>,
) -> Result<bool, Failure> {
    let Some((item, rest)) = items.split_first() else {
        return Ok(true);
    };
    for index in 0..groups.len() {
        if oracle.asked > PATIENCE {
            return Ok(false);
        }
        let empty = groups[index].is_empty();
        groups[index].push(*item);
        if oracle.fits(&groups[index])? && place(rest, groups, oracle)? {
            return Ok(true);
        }
        groups[index].pop();
        if empty {
            // Other empty groups are no different.
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
        let mut ask = |set: &[usize]| {
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
        pack(&sizes, &mut Oracle::new(&mut ask)).expect("a provider that answers")
    }

    #[test]
    fn independent_blocks_are_filled_side_by_side() {
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
    fn large_ones_do_not_cost_a_pass() {
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
    fn what_first_fit_misses_is_searched_for() {
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
