//! Places in Python code.

use rpd_formats::rocpd::call_stacks::StackCode;
use rpd_stacks::python::line_table;

/// Line and column, from 1, of an offset in a code object.
pub(crate) fn position(code: &StackCode, lasti: i64) -> (Option<u32>, Option<u32>) {
    let found = line_table::position(code.version, &code.line_table, code.first_line, lasti);
    (found.line, found.column.map(|column| column + 1))
}
