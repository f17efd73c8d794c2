//! Tables of columns: each column of a file is one line, its name and its value.

use super::combined::Shape;
use super::{Row, write_header};
use crate::WriteError;
use crate::file::TextFile;

/// A column of a file.
pub(super) struct Column {
    /// Name of the column in the header.
    pub(super) name: &'static str,
    /// Files that `rpd convert --layout original` makes lack it.
    pub(super) run_only: bool,
}

/// Records that are the rows of a file, one of them selected. [`columns`] implements it.
pub(super) trait Columns {
    /// The columns in their order.
    const COLUMNS: &'static [Column];

    /// Appends the fields of the selected record.
    fn fields<'r>(&mut self, row: Row<'r>, shape: &Shape) -> Row<'r>;
}

/// `columns!(Type, |row, record, shape| "Name" => row.number(record.value()), ...)` makes the table of columns of a type: in
/// the order of the file, the name of each column and an expression that appends its value for the selected record.
/// `"Name" in run` is a column that files in the converter's shape lack. Values are compiled into one function, which
/// costs no call per field.
macro_rules! columns {
    ($records:ty, |$row:ident, $record:ident, $shape:ident| $($name:literal $(in $only:ident)? => $value:expr,)*) => {
        impl $crate::csv::columns::Columns for $records {
            const COLUMNS: &'static [$crate::csv::columns::Column] = &[$(
                $crate::csv::columns::Column {
                    name: $name,
                    run_only: $crate::csv::columns::columns!(@run_only $($only)?),
                },
            )*];

            #[inline]
            #[allow(unused_variables)]
            fn fields<'r>(
                &mut self,
                $row: $crate::csv::row::Row<'r>,
                $shape: &$crate::csv::combined::Shape,
            ) -> $crate::csv::row::Row<'r> {
                let $record = self;
                $(
                    let $row = if $crate::csv::columns::columns!(@run_only $($only)?) && $shape.combined {
                        $row
                    } else {
                        $value
                    };
                )*
                $row
            }
        }
    };
    (@run_only) => {
        false
    };
    (@run_only run) => {
        true
    };
}
pub(super) use columns;

/// The names of columns that a file in this shape has.
pub(super) fn names<T: Columns>(shape: &Shape) -> impl Iterator<Item = &'static str> {
    let columns = T::COLUMNS.iter();
    let columns = columns.filter(|column| !(column.run_only && shape.combined));
    columns.map(|column| column.name)
}

/// Writes the header and a row for each of `selected`, which `select` makes the selected record.
#[inline]
pub(super) fn write_rows<T: Columns>(
    file: &mut TextFile,
    shape: &Shape,
    records: &mut T,
    selected: impl Iterator<Item = usize>,
    select: impl Fn(&mut T, usize),
) -> Result<(), WriteError> {
    write_header(file, shape, names::<T>(shape));
    for index in selected {
        select(records, index);
        let row = Row::new(&mut file.buffer, &shape.row);
        records.fields(row, shape).end();
        file.flush_if_full()?;
    }
    Ok(())
}
