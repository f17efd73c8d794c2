//! Records grouped by key with polars, batch by batch.

use polars::prelude::*;
use polars::series::IsSorted;
use rpd_core::ids::Nanoseconds;

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

/// Durations that polars groups at once: enough that its work for each batch does not count, and 16 MiB.
const ROWS: usize = 1 << 20;

/// Groups durations by key in batches, so that memory does not grow with the number of records.
#[derive(Default)]
pub(crate) struct Groups {
    /// Keys and durations of the batch.
    rows: Vec<(u64, u64)>,
    /// Sum of all durations so far.
    sum: u64,
    /// The figures of batches, by key.
    parts: Vec<LazyFrame>,
    /// Number of rows in `parts`.
    part_rows: usize,
    /// Rows of `parts` when they were merged the last time.
    merged_rows: usize,
}

impl Groups {
    /// Adds a record.
    ///
    /// # Errors
    /// When polars cannot group the batch.
    #[inline]
    pub(crate) fn push(
        &mut self,
        key: u64,
        start: Nanoseconds,
        end: Nanoseconds,
    ) -> PolarsResult<()> {
        // All durations together are less than 2^64, so no sum of them overflows. Only damaged recordings have more.
        let duration = end.0.saturating_sub(start.0).min(u64::MAX - self.sum);
        self.sum += duration;
        self.rows.push((key, duration));
        if self.rows.len() == ROWS {
            self.group()?;
        }
        Ok(())
    }

    /// Adds groups of records whose figures are known: rows of key, calls, total, shortest and longest duration, and the sum of
    /// the squared distances of durations from their mean.
    ///
    /// # Errors
    /// When polars cannot make a frame of them.
    pub(crate) fn push_figures(
        &mut self,
        rows: impl IntoIterator<Item = (u64, [u64; 4], f64)>,
    ) -> PolarsResult<()> {
        let (mut keys, mut spreads) = (Vec::new(), Vec::new());
        let mut columns: [Vec<u64>; 4] = Default::default();
        for (key, mut figures, spread) in rows {
            figures[1] = figures[1].min(u64::MAX - self.sum);
            self.sum += figures[1];
            keys.push(key);
            spreads.push(spread);
            for (column, figure) in columns.iter_mut().zip(figures) {
                column.push(figure);
            }
        }
        if keys.is_empty() {
            return Ok(());
        }
        let [calls, total, min, max] = columns;
        let frame = DataFrame::new_infer_height(vec![
            Column::new("key".into(), keys),
            Column::new("calls".into(), calls),
            Column::new("total".into(), total),
            Column::new("min".into(), min),
            Column::new("max".into(), max),
            Column::new("spread".into(), spreads),
        ])?;
        self.part_rows += frame.height();
        self.parts.push(frame.lazy());
        Ok(())
    }

    fn group(&mut self) -> PolarsResult<()> {
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
        let part = frame.lazy().group_by([col("key")]).agg(figures());
        let part = part.collect()?;
        self.part_rows += part.height();
        self.parts.push(part.lazy());
        // Twice what is needed at most, however many names there are.
        if self.part_rows > ROWS.max(2 * self.merged_rows) {
            self.merge()?;
        }
        Ok(())
    }

    fn merge(&mut self) -> PolarsResult<()> {
        let parts = concat(std::mem::take(&mut self.parts), UnionArgs::default())?;
        let merged = parts
            .group_by([col("key")])
            .agg(merged_figures())
            .collect()?;
        self.part_rows = merged.height();
        self.merged_rows = self.part_rows;
        self.parts.push(merged.lazy());
        Ok(())
    }

    /// A row for each key, with `key` and its [`figures`]; no columns without records.
    ///
    /// # Errors
    /// When polars cannot group the records.
    pub(crate) fn finish(mut self) -> PolarsResult<DataFrame> {
        self.group()?;
        if self.parts.is_empty() {
            return Ok(DataFrame::empty());
        }
        self.merge()?;
        concat(self.parts, UnionArgs::default())?.collect()
    }
}
