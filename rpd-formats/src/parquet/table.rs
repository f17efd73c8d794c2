//! Writer of a Parquet file: rows in groups, columns made group by group.

use std::ops::Range;
use std::path::PathBuf;

use polars::prelude::*;
use polars_io::prelude::*;
use rpd_core::ids::StringId;
use rpd_core::session::ExtendedStrings;
use rpd_core::storage::by_id::ById;

use crate::file::PendingFile;
use crate::{WriteError, progress};

/// Number of rows of a group: enough for encodings to pay, few enough for columns to be small. polars holds the columns
/// of a group several times, with all their texts.
const GROUP: usize = 1 << 16;

/// Most bytes of texts in the columns of a group; a group with more is made of fewer rows.
const GROUP_TEXTS: usize = 8 << 20;

/// A group of rows in the making.
pub(super) struct Rows<'p> {
    range: Range<usize>,
    texts: &'p ExtendedStrings<'p>,
    /// Place of each text in the column that is being made plus 1, by id of the text; 0 when the column does not have
    /// it.
    places: &'p mut ById<IdxSize>,
    columns: Vec<Column>,
    /// Bytes of the texts in the columns so far.
    bytes: usize,
    /// Why a column could not be made.
    error: Option<PolarsError>,
}

/// Each method makes a column of this name; the function gives its value in a row.
impl Rows<'_> {
    /// Whether the group has to be made of fewer rows. The group lacks columns then.
    fn is_too_long(&self) -> bool {
        self.bytes > GROUP_TEXTS && self.range.len() > 1
    }

    /// Adds a column of numbers. Unsigned numbers keep their bits, as in the database: engines differ in their unsigned
    /// types.
    pub(super) fn integers(&mut self, name: &str, value: impl Fn(usize) -> u64) {
        let values: Vec<i64> = self
            .range
            .clone()
            .map(|row| value(row).cast_signed())
            .collect();
        self.columns.push(Column::new(name.into(), values));
    }

    /// Adds a column of numbers that may be absent.
    pub(super) fn optional_integers(&mut self, name: &str, value: impl Fn(usize) -> Option<i64>) {
        let values: Vec<Option<i64>> = self.range.clone().map(value).collect();
        self.columns.push(Column::new(name.into(), values));
    }

    /// Adds a column of floating-point numbers.
    pub(super) fn floats(&mut self, name: &str, value: impl Fn(usize) -> f64) {
        let values: Vec<f64> = self.range.clone().map(value).collect();
        self.columns.push(Column::new(name.into(), values));
    }

    /// Adds a column of floating-point numbers that may be absent.
    pub(super) fn optional_floats(&mut self, name: &str, value: impl Fn(usize) -> Option<f64>) {
        let values: Vec<Option<f64>> = self.range.clone().map(value).collect();
        self.columns.push(Column::new(name.into(), values));
    }

    /// Adds a column of texts that may be absent.
    pub(super) fn optional_texts(&mut self, name: &str, text: impl Fn(usize) -> Option<String>) {
        let texts: Vec<Option<String>> = self.range.clone().map(text).collect();
        self.columns.push(Column::new(name.into(), texts));
    }

    /// Adds a column of texts, given by their ids.
    pub(super) fn texts(&mut self, name: &str, id: impl Fn(usize) -> Option<u32>) {
        // Each text once: rows share its bytes.
        let mut used: Vec<u32> = Vec::new();
        let rows = self.range.clone().map(|row| {
            let id = id(row)?;
            let place = self.places.get_mut(id)?;
            if *place == 0 {
                used.push(id);
                self.bytes += self.texts.get(StringId(id)).len();
                *place = used.len() as IdxSize;
            }
            Some(*place - 1)
        });
        let rows: Vec<Option<IdxSize>> = rows.collect();
        for &id in &used {
            if let Some(place) = self.places.get_mut(id) {
                *place = 0;
            }
        }
        if self.is_too_long() {
            return;
        }
        let rows = IdxCa::new("".into(), rows);
        let used = used.into_iter().map(|id| self.texts.get(StringId(id)));
        match StringChunked::from_iter_values("".into(), used).take(&rows) {
            Ok(mut texts) => {
                texts.rename(name.into());
                self.columns.push(texts.into_column());
            }
            Err(error) => self.error = Some(error),
        }
    }

    /// Makes a column of texts that are all different.
    pub(super) fn own_texts(&mut self, name: &str, text: impl Fn(usize) -> String) {
        let texts: Vec<String> = self.range.clone().map(text).collect();
        self.columns.push(Column::new(name.into(), texts));
    }
}

/// Writes a Parquet file of `height` rows.
pub(super) fn write(
    mut file: PendingFile,
    height: usize,
    texts: &ExtendedStrings<'_>,
    columns: impl Fn(&mut Rows<'_>),
) -> Result<PathBuf, WriteError> {
    let result = fill(&mut file, height, texts, columns);
    match result {
        Ok(()) => file.finish(),
        Err(source) => Err(WriteError::Parquet {
            path: file.path().to_owned(),
            source,
        }),
    }
}

fn fill(
    file: &mut PendingFile,
    height: usize,
    texts: &ExtendedStrings<'_>,
    columns: impl Fn(&mut Rows<'_>),
) -> PolarsResult<()> {
    let mut places = ById::zeros(texts.len(), texts.storage());
    let mut frame = |mut range: Range<usize>| -> PolarsResult<DataFrame> {
        loop {
            let mut rows = Rows {
                range: range.clone(),
                texts,
                places: &mut places,
                columns: Vec::new(),
                bytes: 0,
                error: None,
            };
            columns(&mut rows);
            if let Some(error) = rows.error {
                return Err(error);
            }
            if !rows.is_too_long() {
                return DataFrame::new(range.len(), rows.columns);
            }
            // The texts of so many rows take too much memory: half of the rows make the group.
            range.end -= range.len() / 2;
        }
    };
    let mut begin = 0;
    // The writer needs the schema, which the first group has even without rows.
    let mut group = frame(0..height.min(GROUP))?;
    let mut writer = ParquetWriter::new(file.file()).batched(group.schema())?;
    loop {
        writer.write_batch(&group)?;
        begin += group.height();
        progress::advance(group.height() as u64);
        if begin >= height {
            break;
        }
        group = frame(begin..height.min(begin + GROUP))?;
    }
    writer.finish()?;
    Ok(())
}
