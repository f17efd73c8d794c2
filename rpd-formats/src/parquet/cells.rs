//! A table of any columns as Parquet.

use std::path::PathBuf;

use rpd_core::session::{ExtendedStrings, Strings};
use rpd_core::stats::Unit;

use super::table;
use crate::WriteError;
use crate::destination::Destination;
use crate::file::PendingFile;
use crate::table::{Cell, Column};

/// Writes a table whose rows have a cell for each of `columns`, and returns the name of the file. A column holds integers, floating
/// numbers or texts: the widest of these that its cells have.
///
/// # Errors
/// When it cannot be written; nothing is left under its name then.
pub fn write_cells(
    destination: Destination,
    columns: &[Column],
    rows: &[Vec<Cell>],
) -> Result<PathBuf, WriteError> {
    let no_texts = Strings::default();
    let texts = ExtendedStrings::new(&no_texts);
    table::write(PendingFile::to(destination)?, rows.len(), &texts, |group| {
        for (index, column) in columns.iter().enumerate() {
            let name = &column.title(Unit::Nsec);
            let cell = |row: usize| rows[row].get(index).unwrap_or(&Cell::Null);
            let all = || rows.iter().filter_map(|row| row.get(index));
            let has_text = all().any(|cell| matches!(cell, Cell::Text(_)));
            let has_float = all().any(|cell| matches!(cell, Cell::Float(_)));
            match (has_text, has_float) {
                (true, _) => group.optional_texts(name, |row| match cell(row) {
                    Cell::Text(text) => Some(text.clone()),
                    Cell::Integer(value) => Some(value.to_string()),
                    Cell::Float(value) => Some(value.to_string()),
                    Cell::Null => None,
                }),
                (false, true) => group.optional_floats(name, |row| match cell(row) {
                    Cell::Float(value) => Some(*value),
                    Cell::Integer(value) => Some(*value as f64),
                    _ => None,
                }),
                (false, false) => group.optional_integers(name, |row| match cell(row) {
                    Cell::Integer(value) => Some(*value),
                    _ => None,
                }),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    #[test]
    fn columns_have_the_type_of_their_cells() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("table.parquet");
        let rows = [
            vec!["a".into(), 1_u64.into(), Cell::Null, Cell::Null],
            vec![Cell::Null, Cell::Null, 0.5.into(), Cell::Null],
        ];
        let columns = ["text", "number", "share", "nothing"]
            .map(|name| crate::table::Column::new(crate::table::ColumnKind::Any, name));
        let no_inputs: [&std::path::Path; 0] = [];
        let destination = Destination::named(&path, no_inputs);
        write_cells(destination.expect("accepted"), &columns, &rows).expect("written");
        let file = std::fs::File::open(path).expect("a file");
        let reader = SerializedFileReader::new(file).expect("Parquet");
        let read: Vec<Vec<(String, Field)>> = reader
            .get_row_iter(None)
            .expect("rows")
            .map(|row| row.expect("a row").into_columns())
            .collect();
        let text = || Field::Str("a".to_owned());
        let expected = [
            [text(), Field::Long(1), Field::Null, Field::Null],
            [Field::Null, Field::Null, Field::Double(0.5), Field::Null],
        ];
        for (row, expected) in read.iter().zip(expected) {
            let fields: Vec<Field> = row.iter().map(|(_, field)| field.clone()).collect();
            assert_eq!(fields, expected);
        }
        let schema = reader.metadata().file_metadata().schema_descr_ptr();
        let types: Vec<String> = schema
            .columns()
            .iter()
            .map(|column| format!("{} {}", column.name(), column.physical_type()))
            .collect();
        assert_eq!(
            types,
            [
                "text BYTE_ARRAY",
                "number INT64",
                "share DOUBLE",
                "nothing INT64"
            ]
        );
        assert_eq!(read.len(), rows.len());
    }
}
