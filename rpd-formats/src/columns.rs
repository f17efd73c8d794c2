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
            #[allow(unused_variables, reason = "a value may be the same in every row")]
            fn append_to(&self, table: &mut $table $(<$life>)?) {
                let $record = self;
                $(table.$kind($name, |$row| $value);)+
            }
        }
    };
}
pub(crate) use columns;

#[cfg(test)]
mod tests {
    use super::*;

    /// Cells of a row, and whole columns with their names.
    #[derive(Default)]
    struct Text(String);

    impl Text {
        fn number(&mut self, value: u32) {
            self.0 += &format!("{value},");
        }

        fn pair(&mut self, value: u32, other: u32) {
            self.0 += &format!("{value}+{other},");
        }

        fn numbers(&mut self, name: &str, value: impl Fn(usize) -> u32) {
            self.0 += &format!("{name}={}/{},", value(0), value(1));
        }
    }

    struct Selected<'a>(&'a [u32], usize);

    columns!(Selected<'_> => Text, |record|
        "Place": number(record.1 as u32),
        "Both": pair(record.0[record.1], 7),
    );

    columns!(Selected<'_> => Text by column, |records, row|
        "value": numbers(records.0[row]),
        "same": numbers(3),
    );

    #[test]
    fn columns_give_names_and_values_in_the_order_of_their_lines() {
        let mut text = Text::default();
        Columns::append_to(&mut Selected(&[5, 6], 1), &mut text);
        assert_eq!(text.0, "1,6+7,");
        let names = <Selected<'_> as Columns<Text>>::NAMES;
        assert_eq!(names, ["Place", "Both"]);
    }

    #[test]
    fn stored_columns_give_a_name_and_the_values_of_all_rows() {
        let mut text = Text::default();
        StoredColumns::append_to(&Selected(&[5, 6], 0), &mut text);
        assert_eq!(text.0, "value=5/6,same=3/3,");
    }
}
