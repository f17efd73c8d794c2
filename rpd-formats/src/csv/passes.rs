//! Writer of `<prefix>_passes.csv`: the counter values of several passes, by dispatch.

use std::path::PathBuf;

use super::row::Row;
use super::write_records;
use crate::WriteError;
use crate::columns::columns;

/// A counter in a dispatch, as one pass or several of them together have it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PassRow<'a> {
    /// Formatted name of the kernel.
    pub kernel: &'a str,
    /// Which of that kernel's dispatches, from 1.
    pub dispatch: u64,
    /// Name of the counter.
    pub counter: &'a str,
    /// The counter's value: the sum over its instances.
    pub value: f64,
    /// Number of the pass, such as `2`, or `1+2` for a metric computed from the counters of several passes.
    pub pass: &'a str,
}

columns!(PassRow<'_> => Row<'r>, |pass|
    "Kernel_Name": free_text(pass.kernel),
    "Dispatch_Index": number(pass.dispatch),
    "Counter_Name": free_text(pass.counter),
    "Counter_Value": value(pass.value),
    "Pass": text(pass.pass),
);

/// Writes `path` with a row for each of `rows`, in their order, and returns its name; `None`, and no file, when there
/// is not a row. `safe` is [`rpd_core::options::Options::csv_safe`].
///
/// # Errors
/// When it cannot be written; nothing is left under its name then.
pub fn write_passes<'a>(
    path: PathBuf,
    rows: impl IntoIterator<Item = PassRow<'a>>,
    safe: bool,
) -> Result<Option<PathBuf>, WriteError> {
    let mut rows = rows.into_iter().peekable();
    if rows.peek().is_none() {
        return Ok(None);
    }
    write_records(path, rows, safe).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_have_a_row_for_each_value_and_no_file_without_values() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("passes.csv");
        let none = write_passes(path.clone(), [], false).expect("nothing to do");
        assert_eq!((none, path.exists()), (None, false));
        let row = |dispatch, counter, value, pass| PassRow {
            kernel: "k<\"a\", 1>",
            dispatch,
            counter,
            value,
            pass,
        };
        let rows = [row(1, "SQ_WAVES", 64.0, "1"), row(2, "Ratio", 0.5, "1+2")];
        write_passes(path.clone(), rows, false).expect("written");
        assert_eq!(
            std::fs::read_to_string(path).expect("a file"),
            "\"Kernel_Name\",\"Dispatch_Index\",\"Counter_Name\",\"Counter_Value\",\"Pass\"\n\
             \"k<\"\"a\"\", 1>\",1,\"SQ_WAVES\",64.000000,\"1\"\n\
             \"k<\"\"a\"\", 1>\",2,\"Ratio\",5.00000000e-01,\"1+2\"\n"
        );
    }
}
