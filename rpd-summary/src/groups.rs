//! Durations grouped by key, batch by batch; in files where there are more groups than memory is meant for.

use std::collections::HashMap;

use rpd_core::storage::column::{Column, Storage};
use rpd_core::storage::sorted::{Keyed, Sorter};
use zerocopy::{Immutable, IntoBytes};

use crate::SummaryError;

/// A key, and the figures of the durations that have it, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Immutable, IntoBytes)]
#[repr(C)]
pub(crate) struct GroupRow {
    pub(crate) key: u64,
    pub(crate) calls: u64,
    pub(crate) total: u64,
    /// The shortest.
    pub(crate) min: u64,
    /// The longest.
    pub(crate) max: u64,
    /// Sum of squared distances from the mean.
    pub(crate) spread: f64,
}

impl Keyed for GroupRow {
    type Key = u64;

    fn key(&self) -> u64 {
        self.key
    }
}

impl GroupRow {
    /// The figures of no duration.
    pub(crate) const fn empty(key: u64) -> GroupRow {
        GroupRow {
            key,
            calls: 0,
            total: 0,
            min: 0,
            max: 0,
            spread: 0.0,
        }
    }

    /// The figures of keys and durations with the same key; `None` without any.
    fn from_durations(rows: &[(u64, u64)]) -> Option<GroupRow> {
        let durations = || rows.iter().map(|row| row.1);
        let total: u64 = durations().sum();
        let mean = total as f64 / rows.len() as f64;
        Some(GroupRow {
            key: rows.first()?.0,
            calls: rows.len() as u64,
            total,
            min: durations().min()?,
            max: durations().max()?,
            // A second look at the durations, as differences of squares of large numbers lose all digits.
            spread: durations()
                .map(|duration| (duration as f64 - mean).powi(2))
                .sum(),
        })
    }

    /// Adds the figures of other durations; the key stays.
    pub(crate) fn add(&mut self, other: &GroupRow) {
        if self.calls == 0 || other.calls == 0 {
            // There is no mean to compare with.
            if self.calls == 0 {
                let key = self.key;
                *self = GroupRow { key, ..*other };
            }
            return;
        }
        let (own, others) = (self.calls as f64, other.calls as f64);
        let distance = other.total as f64 / others - self.total as f64 / own;
        // Distances from the common mean: those from each group's own mean, and those of the two means from it.
        self.spread += other.spread + distance.powi(2) * (own * others / (own + others));
        self.calls += other.calls;
        self.total = self.total.saturating_add(other.total);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
}

/// Durations that are grouped at once: 16 MiB.
const BATCH: usize = 1 << 20;

/// Groups that are kept in memory, unless the storage has fewer rows in memory; more are kept in files.
const IN_MEMORY: usize = 1 << 17;

/// Groups durations by key in batches, so that memory does not grow with the number of records.
#[derive(Default)]
pub(crate) struct Groups {
    /// Keys and durations of the batch.
    rows: Vec<(u64, u64)>,
    /// Sum of all durations so far.
    sum: u64,
    merged: MergedGroups,
}

impl Groups {
    /// Groups go to files in `storage` when there are many.
    pub(crate) fn spill_to(&mut self, storage: &Storage) {
        self.merged.spill_to(storage);
    }

    /// Adds a record with its duration in nanoseconds.
    ///
    /// # Errors
    /// When files cannot be written.
    #[inline]
    pub(crate) fn push(&mut self, key: u64, duration: u64) -> Result<(), SummaryError> {
        // All durations together are less than 2^64, so no sum of them overflows. Only damaged recordings have more.
        let duration = duration.min(u64::MAX - self.sum);
        self.sum += duration;
        self.rows.push((key, duration));
        if self.rows.len() == BATCH {
            self.group()?;
        }
        Ok(())
    }

    /// Adds groups of records that are not pushed one by one.
    ///
    /// # Errors
    /// When files cannot be written.
    pub(crate) fn push_groups(
        &mut self,
        rows: impl IntoIterator<Item = GroupRow>,
    ) -> Result<(), SummaryError> {
        for mut row in rows {
            row.total = row.total.min(u64::MAX - self.sum);
            self.sum += row.total;
            self.merged.add(row)?;
        }
        Ok(())
    }

    fn group(&mut self) -> Result<(), SummaryError> {
        // A search for the group of each record would take longer.
        self.rows.sort_unstable_by_key(|row| row.0);
        let groups = self.rows.chunk_by(|a, b| a.0 == b.0);
        for group in groups.filter_map(GroupRow::from_durations) {
            self.merged.add(group)?;
        }
        self.rows.clear();
        Ok(())
    }

    /// A row for each key; `name_shift` as in [`MergedGroups::finish`].
    ///
    /// # Errors
    /// When files cannot be written.
    pub(crate) fn finish(mut self, name_shift: u32) -> Result<GroupTable, SummaryError> {
        self.group()?;
        // Its memory is not needed while groups are merged.
        self.rows = Vec::new();
        self.merged.finish(name_shift)
    }
}

/// Groups whose figures are merged by key, in files when there are many.
#[derive(Default)]
pub(crate) struct MergedGroups {
    storage: Option<Storage>,
    groups: HashMap<u64, GroupRow>,
    /// Groups that were moved from `groups` to files; a key may be there several times.
    moved: Option<Sorter<GroupRow>>,
}

impl MergedGroups {
    /// Groups go to files in `storage` when there are many.
    pub(crate) fn spill_to(&mut self, storage: &Storage) {
        self.storage = Some(storage.clone());
    }

    /// Adds a group.
    ///
    /// # Errors
    /// When files cannot be written.
    pub(crate) fn add(&mut self, group: GroupRow) -> Result<(), SummaryError> {
        self.groups
            .entry(group.key)
            .and_modify(|known| known.add(&group))
            .or_insert(group);
        let Some(storage) = &self.storage else {
            return Ok(());
        };
        if self.groups.len() > storage.rows().min(IN_MEMORY) / 2 {
            let moved = self.moved.get_or_insert_with(|| Sorter::new(Some(storage)));
            for group in std::mem::take(&mut self.groups).into_values() {
                moved.push(group)?;
            }
        }
        Ok(())
    }

    /// The groups. All but the lowest `name_shift` bits of a key are the name.
    ///
    /// # Errors
    /// When files cannot be written.
    pub(crate) fn finish(self, name_shift: u32) -> Result<GroupTable, SummaryError> {
        let storage = self.storage.as_ref();
        let mut sorter = self.moved.unwrap_or_else(|| Sorter::new(storage));
        for group in self.groups.into_values() {
            sorter.push(group)?;
        }
        let mut rows = Column::new();
        let mut sorted = sorter.finish()?.peekable();
        while let Some(mut row) = sorted.next() {
            while let Some(next) = sorted.next_if(|next| next.key == row.key) {
                row.add(&next);
            }
            rows.append(storage, row)?;
        }
        if let Some(storage) = storage {
            rows.seal(storage)?;
        }
        Ok(GroupTable { rows, name_shift })
    }
}

/// Groups, no key twice, in the order of their keys.
#[derive(Debug)]
pub(crate) struct GroupTable {
    rows: Column<GroupRow>,
    /// Number of the lowest bits of a key that are not the name.
    name_shift: u32,
}

impl GroupTable {
    /// The groups one by one.
    pub(crate) fn iter(&self) -> impl Iterator<Item = GroupRow> {
        self.rows.iter().copied()
    }

    /// Calls `take` with the groups of each name.
    ///
    /// # Errors
    /// Errors of `take`.
    pub(crate) fn each_name(
        &self,
        mut take: impl FnMut(&[GroupRow]) -> Result<(), SummaryError>,
    ) -> Result<(), SummaryError> {
        let mut of_name: Vec<GroupRow> = Vec::new();
        for row in self.iter() {
            let is_other = of_name
                .last()
                .is_some_and(|last| last.key >> self.name_shift != row.key >> self.name_shift);
            if is_other {
                take(&of_name)?;
                of_name.clear();
            }
            of_name.push(row);
        }
        if of_name.is_empty() {
            return Ok(());
        }
        take(&of_name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The groups of 1,500 names, pushed in two batches, and the number of names.
    fn rows(storage: Option<&Storage>) -> Result<(Vec<GroupRow>, usize), SummaryError> {
        const NAMES: u64 = 1500;
        let mut groups = Groups::default();
        if let Some(storage) = storage {
            groups.spill_to(storage);
        }
        for round in 0..2 {
            for number in 0..NAMES {
                // Two keys for some names.
                let is_other = round == 1 && number % 9 == 0;
                let key = (number * 7919 % NAMES) << 1 | u64::from(is_other);
                groups.push(key, number + 1000 * round)?;
            }
            groups.group()?;
        }
        assert_eq!(groups.merged.moved.is_some(), storage.is_some());
        let table = groups.finish(1)?;
        let mut names = 0;
        table.each_name(|groups| {
            assert!(groups.iter().all(|row| row.key >> 1 == groups[0].key >> 1));
            names += 1;
            Ok(())
        })?;
        Ok((table.iter().collect(), names))
    }

    #[test]
    fn merged_groups_are_the_same_in_files_and_in_memory() -> Result<(), SummaryError> {
        let storage = Storage::new(&std::env::temp_dir()).with_rows(1 << 8);
        let (in_memory, names) = rows(None)?;
        let (in_files, names_in_files) = rows(Some(&storage))?;
        assert_eq!(in_memory.len(), 1500 + 1500_usize.div_ceil(9));
        assert!(in_memory.is_sorted_by_key(|row| row.key));
        assert_eq!(in_memory, in_files);
        assert_eq!((names, names_in_files), (1500, 1500));
        Ok(())
    }

    #[test]
    fn merged_figures_are_those_of_all_durations() {
        // Large numbers that differ little: sums of squares would lose the difference.
        let durations: Vec<u64> = (0..1000)
            .map(|number| (1 << 50) + number * 7 % 13)
            .collect();
        let rows: Vec<(u64, u64)> = durations.iter().map(|duration| (3, *duration)).collect();
        let whole = GroupRow::from_durations(&rows).expect("durations");
        let mut parts = rows.chunks(77).filter_map(GroupRow::from_durations);
        let mut merged = parts.next().expect("a part");
        parts.for_each(|part| merged.add(&part));
        assert_eq!(
            (merged.calls, merged.total, merged.min, merged.max),
            (whole.calls, whole.total, whole.min, whole.max)
        );
        let exact: f64 = {
            let shifted: Vec<f64> = durations.iter().map(|d| (d - (1 << 50)) as f64).collect();
            let mean = shifted.iter().sum::<f64>() / 1000.0;
            shifted.iter().map(|value| (value - mean).powi(2)).sum()
        };
        for spread in [whole.spread, merged.spread] {
            assert!((spread / exact - 1.0).abs() < 1e-3, "{spread} {exact}");
        }
    }

    #[test]
    fn groups_without_calls_change_nothing() {
        let none = GroupRow::empty(1);
        let some = GroupRow::from_durations(&[(2, 5), (2, 7)]).expect("durations");
        let (mut left, mut right) = (none, some);
        left.add(&some);
        right.add(&none);
        assert_eq!(left, GroupRow { key: 1, ..some });
        assert_eq!(right, some);
    }
}
