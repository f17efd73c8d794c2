//! Records grouped by key with polars, batch by batch.

use polars::prelude::*;
use polars::series::IsSorted;
use rpd_core::storage::column::{Column as Rows, Storage};
use rpd_core::storage::sorted::{Keyed, Sorter};
use zerocopy::{Immutable, IntoBytes};

use crate::SummaryError;

/// A column of integers; 0 where it has no value.
pub(crate) fn integers(frame: &DataFrame, name: &str) -> PolarsResult<Vec<u64>> {
    let column = frame.column(name)?.cast(&DataType::UInt64)?;
    Ok(column
        .u64()?
        .iter()
        .map(Option::unwrap_or_default)
        .collect())
}

/// The figures of a group of durations: how many there are (`calls`), their sum (`total`), the shortest (`min`) and the longest
/// (`max`), and the sum of their squared distances from their mean (`spread`).
fn figures() -> [Expr; 5] {
    let duration = || col("duration");
    let calls = len().cast(DataType::UInt64);
    [
        calls.clone().alias("calls"),
        duration().sum().alias("total"),
        duration().min().alias("min"),
        duration().max().alias("max"),
        (duration().var(0) * calls.cast(DataType::Float64)).alias("spread"),
    ]
}

/// The figures of groups whose rows have the [`figures`] of smaller groups.
pub(crate) fn merged_figures() -> [Expr; 5] {
    let float = |name: &str| col(name).cast(DataType::Float64);
    let own_mean = float("total") / float("calls");
    let mean =
        col("total").sum().cast(DataType::Float64) / col("calls").sum().cast(DataType::Float64);
    let distance = own_mean - mean;
    [
        col("calls").sum(),
        col("total").sum(),
        col("min").min(),
        col("max").max(),
        // The distances from the common mean: those from each group's own mean, and those of these means.
        (col("spread") + float("calls") * distance.clone() * distance)
            .sum()
            .alias("spread"),
    ]
}

/// The key of a group and its [`figures`].
#[derive(Debug, Clone, Copy, PartialEq, Immutable, IntoBytes)]
#[repr(C)]
pub(crate) struct GroupRow {
    pub(crate) key: u64,
    pub(crate) calls: u64,
    pub(crate) total: u64,
    pub(crate) min: u64,
    pub(crate) max: u64,
    pub(crate) spread: f64,
}

impl Keyed for GroupRow {
    type Key = u64;

    fn key(&self) -> u64 {
        self.key
    }
}

/// The rows of a frame with a key and [`figures`].
pub(crate) fn rows_of(frame: &DataFrame) -> PolarsResult<impl Iterator<Item = GroupRow>> {
    let [key, calls, total, min, max] =
        ["key", "calls", "total", "min", "max"].map(|name| integers(frame, name));
    let (key, calls, total, min, max) = (key?, calls?, total?, min?, max?);
    let spread = frame.column("spread")?.f64()?.clone();
    Ok((0..frame.height()).map(move |index| GroupRow {
        key: key[index],
        calls: calls[index],
        total: total[index],
        min: min[index],
        max: max[index],
        spread: spread.get(index).unwrap_or(0.0),
    }))
}

/// The frame that has these rows.
pub(crate) fn frame_of(rows: &[GroupRow]) -> PolarsResult<DataFrame> {
    let column = |name: &str, value: fn(&GroupRow) -> u64| {
        let values: Vec<u64> = rows.iter().map(value).collect();
        Column::new(name.into(), values)
    };
    let spread: Vec<f64> = rows.iter().map(|row| row.spread).collect();
    DataFrame::new_infer_height(vec![
        column("key", |row| row.key),
        column("calls", |row| row.calls),
        column("total", |row| row.total),
        column("min", |row| row.min),
        column("max", |row| row.max),
        Column::new("spread".into(), spread),
    ])
}

/// Durations that polars groups at once: enough that its work for each batch does not count, and 16 MiB.
const BATCH: usize = 1 << 20;

/// Rows of groups that polars merges at once, unless the storage has fewer rows in memory; groups beyond half of that many are
/// kept in files.
const MERGED: usize = 1 << 18;

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
    /// When polars cannot group the batch, or files cannot be written.
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
    /// When polars cannot merge groups, or files cannot be written.
    pub(crate) fn push_groups(
        &mut self,
        rows: impl IntoIterator<Item = GroupRow>,
    ) -> Result<(), SummaryError> {
        let mut rows: Vec<GroupRow> = rows.into_iter().collect();
        if rows.is_empty() {
            return Ok(());
        }
        for row in &mut rows {
            row.total = row.total.min(u64::MAX - self.sum);
            self.sum += row.total;
        }
        self.merged.add(frame_of(&rows)?)
    }

    fn group(&mut self) -> Result<(), SummaryError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        // Groups that are slices of columns cost polars a third of those whose rows it has to find.
        self.rows.sort_unstable_by_key(|row| row.0);
        let (keys, durations): (Vec<u64>, Vec<u64>) = self.rows.drain(..).unzip();
        let mut keys = UInt64Chunked::from_vec("key".into(), keys);
        keys.set_sorted_flag(IsSorted::Ascending);
        let frame = DataFrame::new_infer_height(vec![
            keys.into_column(),
            Column::new("duration".into(), durations),
        ])?;
        let groups = frame.lazy().group_by([col("key")]).agg(figures());
        self.merged.add(groups.collect()?)
    }

    /// A row for each key; `name_shift` as in [`MergedGroups::finish`].
    ///
    /// # Errors
    /// When polars cannot group the records, or files cannot be written.
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
    /// Frames with `key` and [`figures`].
    parts: Vec<LazyFrame>,
    /// Number of rows in `parts`.
    part_rows: usize,
    /// Rows of `parts` when they were merged the last time.
    merged_rows: usize,
    /// Rows that were moved from `parts` to files.
    moved: Option<Sorter<GroupRow>>,
}

impl MergedGroups {
    /// Groups go to files in `storage` when there are many.
    pub(crate) fn spill_to(&mut self, storage: &Storage) {
        self.storage = Some(storage.clone());
    }

    /// Adds groups: a frame with `key` and [`figures`].
    ///
    /// # Errors
    /// When polars cannot merge groups, or files cannot be written.
    pub(crate) fn add(&mut self, groups: DataFrame) -> Result<(), SummaryError> {
        self.part_rows += groups.height();
        self.parts.push(groups.lazy());
        // Merging when the rows have doubled keeps memory and time proportional to the number of groups.
        if self.part_rows > self.most().max(2 * self.merged_rows) {
            self.merge()?;
        }
        Ok(())
    }

    /// Largest number of rows that are merged at once.
    fn most(&self) -> usize {
        let rows = self.storage.as_ref().map(Storage::rows);
        rows.map_or(MERGED, |rows| rows.min(MERGED))
    }

    fn merge(&mut self) -> Result<(), SummaryError> {
        if self.parts.is_empty() {
            return Ok(());
        }
        let merged = merged(concat(
            std::mem::take(&mut self.parts),
            UnionArgs::default(),
        )?)?;
        self.part_rows = merged.height();
        let is_moved = self.moved.is_some() || self.part_rows > self.most() / 2;
        if let Some(storage) = self.storage.as_ref().filter(|_| is_moved) {
            let moved = self.moved.get_or_insert_with(|| Sorter::new(Some(storage)));
            for row in rows_of(&merged)? {
                moved.push(row)?;
            }
            self.part_rows = 0;
        } else {
            self.parts.push(merged.lazy());
        }
        self.merged_rows = self.part_rows;
        Ok(())
    }

    /// The groups. All but the lowest `name_shift` bits of a key are the name.
    ///
    /// # Errors
    /// When polars cannot merge groups, or files cannot be written.
    pub(crate) fn finish(mut self, name_shift: u32) -> Result<GroupTable, SummaryError> {
        self.merge()?;
        let Some(moved) = self.moved.take() else {
            return Ok(GroupTable::Frame(match self.parts.pop() {
                // Merged, so it is the only part.
                Some(frame) => frame
                    .sort(["key"], SortMultipleOptions::default())
                    .collect()?,
                None => DataFrame::empty(),
            }));
        };
        let batch_rows = self.most() / 4;
        let mut rows = Rows::new();
        let mut batch: Vec<GroupRow> = Vec::new();
        let mut sorted = moved.finish()?.peekable();
        while let Some(row) = sorted.next() {
            batch.push(row);
            let is_full = batch.len() >= batch_rows;
            let is_last = sorted.peek().is_none();
            if is_last || (is_full && sorted.peek().is_some_and(|next| next.key != row.key)) {
                let frame = merged(frame_of(&batch)?.lazy())?;
                for row in rows_of(&frame.sort(["key"], SortMultipleOptions::default())?)? {
                    rows.append(self.storage.as_ref(), row)?;
                }
                batch.clear();
            }
        }
        if let Some(storage) = &self.storage {
            rows.seal(storage)?;
        }
        Ok(GroupTable::Rows {
            rows,
            name_shift,
            batch_rows,
        })
    }
}

/// Merges groups with equal keys.
fn merged(groups: LazyFrame) -> PolarsResult<DataFrame> {
    groups
        .group_by([col("key")])
        .agg(merged_figures())
        .collect()
}

/// Groups: a key and its [`figures`] in each row, no key twice, in the order of their keys.
#[derive(Debug)]
pub(crate) enum GroupTable {
    /// All groups in memory; no columns without groups.
    Frame(DataFrame),
    /// Groups of which there are so many that they may be in a file.
    Rows {
        /// The groups, ordered by key.
        rows: Rows<GroupRow>,
        /// Number of the lowest bits of a key that are not the name.
        name_shift: u32,
        /// Number of rows in a frame, to which the rest of the last name is added.
        batch_rows: usize,
    },
}

impl GroupTable {
    /// Calls `take` with the groups in frames. All groups of a name are in the same frame.
    ///
    /// # Errors
    /// Errors of `take` and of polars.
    pub(crate) fn each_frame(
        &self,
        mut take: impl FnMut(&DataFrame) -> Result<(), SummaryError>,
    ) -> Result<(), SummaryError> {
        match self {
            GroupTable::Frame(frame) if frame.height() == 0 => Ok(()),
            GroupTable::Frame(frame) => take(frame),
            GroupTable::Rows {
                rows,
                name_shift,
                batch_rows,
            } => {
                let name = |row: &GroupRow| row.key >> name_shift;
                let mut batch = Vec::new();
                let mut left = rows.iter().peekable();
                while let Some(row) = left.next() {
                    batch.push(*row);
                    let next = left.peek();
                    let is_complete = next.is_none_or(|next| name(next) != name(row));
                    if is_complete && (batch.len() >= *batch_rows || next.is_none()) {
                        take(&frame_of(&batch)?)?;
                        batch.clear();
                    }
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of 1,500 names, pushed in two batches.
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
        let table = groups.finish(1)?;
        assert_eq!(matches!(table, GroupTable::Rows { .. }), storage.is_some());
        let (mut rows, mut frames) = (Vec::new(), 0);
        table.each_frame(|frame| {
            let of_frame: Vec<GroupRow> = rows_of(frame)?.collect();
            if let (Some(last), Some(first)) = (rows.last(), of_frame.first()) {
                let (last, first): (&GroupRow, &GroupRow) = (last, first);
                assert_ne!(last.key >> 1, first.key >> 1, "a name is in one frame");
            }
            rows.extend(of_frame);
            frames += 1;
            Ok(())
        })?;
        Ok((rows, frames))
    }

    #[test]
    fn merged_groups_are_the_same_in_files_and_in_memory() -> Result<(), SummaryError> {
        let storage = Storage::new(&std::env::temp_dir()).with_rows(1 << 8);
        let (in_memory, one) = rows(None)?;
        let (in_files, several) = rows(Some(&storage))?;
        assert_eq!(in_memory.len(), 1500 + 1500_usize.div_ceil(9));
        assert!(in_memory.is_sorted_by_key(|row| row.key));
        assert_eq!(in_memory, in_files);
        assert!(one == 1 && several > 1);
        Ok(())
    }
}
