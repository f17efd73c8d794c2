//! Writer of a Parquet file: rows in groups, columns made group by group.

use std::io::Write;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type, TypePtr};
use rpd_core::ids::StringId;
use rpd_core::session::ExtendedStrings;
use rpd_core::storage::by_id::ById;

use crate::file::PendingFile;
use crate::{WriteError, progress};

/// Number of rows of a group: enough for encodings to pay, few enough for its columns, which are in memory together, to be small.
const GROUP: usize = 1 << 16;

/// Most bytes of texts in the columns of a group; a group with more is made of fewer rows.
const GROUP_TEXTS: usize = 8 << 20;

/// Name of the only group in a schema; readers ignore it.
const SCHEMA: &str = "schema";

/// A column of a group. All columns are optional in the file, so that files of one table always have one schema.
struct Column {
    name: String,
    /// For each row 1 where it has a value, otherwise 0.
    levels: Vec<i16>,
    values: Values,
}

/// The values of the rows that have one.
enum Values {
    Integers(Vec<i64>),
    Floats(Vec<f64>),
    /// Equal texts share their bytes.
    Texts(Vec<ByteArray>),
}

impl Column {
    fn schema(&self) -> ParquetResult<TypePtr> {
        let (physical, logical) = match self.values {
            Values::Integers(_) => (PhysicalType::INT64, None),
            Values::Floats(_) => (PhysicalType::DOUBLE, None),
            Values::Texts(_) => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let column = Type::primitive_type_builder(&self.name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical);
        Ok(Arc::new(column.build()?))
    }

    fn write<W: Write + Send>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> ParquetResult<()> {
        let Some(mut column) = group.next_column()? else {
            let text = format!("no place for the column {}", self.name);
            return Err(ParquetError::General(text));
        };
        let levels = Some(self.levels.as_slice());
        match &self.values {
            Values::Integers(values) => column
                .typed::<Int64Type>()
                .write_batch(values, levels, None)?,
            Values::Floats(values) => column
                .typed::<DoubleType>()
                .write_batch(values, levels, None)?,
            Values::Texts(values) => column
                .typed::<ByteArrayType>()
                .write_batch(values, levels, None)?,
        };
        column.close()
    }
}

/// A group of rows in the making.
pub(super) struct Rows<'p> {
    range: Range<usize>,
    texts: &'p ExtendedStrings<'p>,
    /// Place of each text in the column that is being made plus 1, by id of the text; 0 when the column does not have
    /// it.
    places: &'p mut ById<u32>,
    columns: Vec<Column>,
    /// Bytes of the texts in the columns so far.
    bytes: usize,
}

/// Each method makes a column of this name; the function gives its value in a row.
impl Rows<'_> {
    /// Whether the group has to be made of fewer rows. The group lacks columns then.
    fn is_too_long(&self) -> bool {
        self.bytes > GROUP_TEXTS && self.range.len() > 1
    }

    /// Adds a column, given the value of each row.
    fn add<T>(
        &mut self,
        name: &str,
        kind: fn(Vec<T>) -> Values,
        value: impl Fn(usize) -> Option<T>,
    ) {
        let mut levels = Vec::with_capacity(self.range.len());
        let mut values = Vec::with_capacity(self.range.len());
        for row in self.range.clone() {
            let value = value(row);
            levels.push(i16::from(value.is_some()));
            values.extend(value);
        }
        self.columns.push(Column {
            name: name.to_owned(),
            levels,
            values: kind(values),
        });
    }

    /// Adds a column of numbers. Unsigned numbers keep their bits, as in the database: engines differ in their unsigned
    /// types.
    pub(super) fn integers(&mut self, name: &str, value: impl Fn(usize) -> u64) {
        self.optional_integers(name, |row| Some(value(row).cast_signed()));
    }

    /// Adds a column of numbers that may be absent.
    pub(super) fn optional_integers(&mut self, name: &str, value: impl Fn(usize) -> Option<i64>) {
        self.add(name, Values::Integers, value);
    }

    /// Adds a column of floating-point numbers.
    pub(super) fn floats(&mut self, name: &str, value: impl Fn(usize) -> f64) {
        self.optional_floats(name, |row| Some(value(row)));
    }

    /// Adds a column of floating-point numbers that may be absent.
    pub(super) fn optional_floats(&mut self, name: &str, value: impl Fn(usize) -> Option<f64>) {
        self.add(name, Values::Floats, value);
    }

    /// Adds a column of texts that may be absent.
    pub(super) fn optional_texts(&mut self, name: &str, text: impl Fn(usize) -> Option<String>) {
        let bytes = |row| text(row).map(|text| ByteArray::from(text.into_bytes()));
        self.add(name, Values::Texts, bytes);
    }

    /// Adds a column of texts, given by their ids.
    pub(super) fn texts(&mut self, name: &str, id: impl Fn(usize) -> Option<u32>) {
        // Each text once: rows share its bytes.
        let mut used: Vec<ByteArray> = Vec::new();
        let mut ids: Vec<u32> = Vec::new();
        let mut levels = Vec::with_capacity(self.range.len());
        let mut values = Vec::with_capacity(self.range.len());
        for row in self.range.clone() {
            // The rest would be copied for nothing.
            if self.is_too_long() {
                break;
            }
            let id = id(row);
            let place = id.and_then(|id| Some((id, self.places.get_mut(id)?)));
            levels.push(i16::from(place.is_some()));
            let Some((id, place)) = place else {
                continue;
            };
            if *place == 0 {
                let text = self.texts.get(StringId(id));
                self.bytes += text.len();
                used.push(ByteArray::from(text));
                ids.push(id);
                *place = ids.len() as u32;
            }
            values.push(used[*place as usize - 1].clone());
        }
        for id in ids {
            if let Some(place) = self.places.get_mut(id) {
                *place = 0;
            }
        }
        if self.is_too_long() {
            return;
        }
        self.columns.push(Column {
            name: name.to_owned(),
            levels,
            values: Values::Texts(values),
        });
    }

    /// Makes a column of texts that are all different.
    pub(super) fn own_texts(&mut self, name: &str, text: impl Fn(usize) -> String) {
        self.optional_texts(name, |row| Some(text(row)));
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
) -> ParquetResult<()> {
    let mut places = ById::zeros(texts.len(), texts.storage());
    // The columns of the rows from `begin`, and the end of these rows.
    let mut group = |begin: usize| -> (Vec<Column>, usize) {
        let mut range = begin..height.min(begin + GROUP);
        loop {
            let mut rows = Rows {
                range: range.clone(),
                texts,
                places: &mut places,
                columns: Vec::new(),
                bytes: 0,
            };
            columns(&mut rows);
            if !rows.is_too_long() {
                return (rows.columns, range.end);
            }
            // The texts of so many rows take too much memory: half of the rows make the group.
            range.end -= range.len() / 2;
        }
    };
    // The writer needs the schema, which the first group has even without rows.
    let (mut made, mut end) = group(0);
    let fields = made.iter().map(Column::schema);
    let schema = Type::group_type_builder(SCHEMA)
        .with_fields(fields.collect::<ParquetResult<_>>()?)
        .build()?;
    let properties = properties(&made);
    let mut writer =
        SerializedFileWriter::new(file.file(), Arc::new(schema), Arc::new(properties))?;
    let mut begin = 0;
    while begin < height {
        let mut rows = writer.next_row_group()?;
        for column in &made {
            column.write(&mut rows)?;
        }
        rows.close()?;
        progress::advance((end - begin) as u64);
        begin = end;
        if begin < height {
            (made, end) = group(begin);
        }
    }
    writer.close()?;
    Ok(())
}

/// Encodings of a file with these columns.
fn properties(columns: &[Column]) -> WriterProperties {
    let mut properties =
        WriterProperties::builder().set_compression(Compression::ZSTD(Default::default()));
    for column in columns {
        // Ids and times grow by little from row to row, and a dictionary of them would be as long as they are.
        if let Values::Integers(_) = column.values {
            let path = ColumnPath::from(column.name.as_str());
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    properties.build()
}
