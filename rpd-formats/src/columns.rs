//! Columns of tables: each is one line of source, which has its name and its value.
//!
//! Formats differ in how they store tables. Those that store rows (CSV, rocpd) select one record at a time and take its
//! value for each column: [`Columns`]. Those that store columns (Parquet) take the values of many records for one column,
//! then those for the next: [`StoredColumns`]. [`columns`] implements both.

/// Records of one kind, one of them selected, that become the rows of a table. `Cells` takes the cells of a row.
pub(crate) trait Columns<Cells> {
    /// Names of the columns in their order.
    const NAMES: &'static [&'static str];

    /// Gives the values of the selected record to `cells`: one for each of [`Columns::NAMES`], in their order.
    fn append_to(&mut self, cells: &mut Cells);
}

/// Records of one kind that become a table that is stored column by column. `Table` takes whole columns.
pub(crate) trait StoredColumns<Table> {
    /// Gives each column to `table`: its name, and how its value is found for each row.
    fn append_to(&self, table: &mut Table);
}

/// Implements [`Columns`] or [`StoredColumns`] for a type of records.
///
/// `columns!(Calls<'_> => Row<'r>, |call| "Thread_Id": number(call.thread()), ...)` makes the cells of one row. The word
/// behind the name is the method of `Row` that takes the value; where a method takes more than the value, so does the
/// line. The row is made by one function in which nothing is looked up, allocated or called through a pointer for the
/// sake of the table.
///
/// `columns!(Calls<'_> => Rows<'r> by column, |calls, row| "tid": integers(calls.thread(row)), ...)` makes columns. There
/// the method takes the name and a function from the number of a row to its value.
macro_rules! columns {
    (
        $records:ty => $cells:ident $(<$life:lifetime>)?, |$record:ident|
        $($name:literal: $kind:ident($($value:expr),* $(,)?),)+
    ) => {
        impl $(<$life>)? $crate::columns::Columns<$cells $(<$life>)?> for $records {
            const NAMES: &'static [&'static str] = &[$($name),+];

            #[inline]
            fn append_to(&mut self, cells: &mut $cells $(<$life>)?) {
                let $record = self;
                $(cells.$kind($($value),*);)+
            }
        }
    };
    (
        $records:ty => $table:ident $(<$life:lifetime>)? by column, |$record:ident, $row:ident|
        $($name:literal: $kind:ident($value:expr),)+
    ) => {
        impl $(<$life>)? $crate::columns::StoredColumns<$table $(<$life>)?> for $records {
            fn append_to(&self, table: &mut $table $(<$life>)?) {
                let $record = self;
                $(table.$kind($name, |$row| $value);)+
            }
        }
    };
}
pub(crate) use columns;
