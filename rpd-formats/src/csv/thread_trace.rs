//! Writer of `stats_<directory>.csv`: lines of code with the sums of thread traces for them.

use std::path::PathBuf;

use super::row::Row;
use super::write_records;
use crate::WriteError;
use crate::columns::columns;

/// A line of code, or the label of a kernel before its first line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedLine<'a> {
    /// Number of the code object.
    pub code_object: u64,
    /// Address in the code object's file.
    pub address: u64,
    /// The instruction; the label's name after `; `.
    pub instruction: &'a str,
    /// Number of executions by waves.
    pub hits: u64,
    /// Cycles from when it could have been issued to its end.
    pub latency: u64,
    /// Cycles of these before it was issued.
    pub stall: u64,
    /// Cycles between the instruction before it and this one.
    pub idle: u64,
    /// Source location: `file:line`, and after ` -> ` the place where that was inlined. The name of a label as people
    /// write it.
    pub source: &'a str,
}

columns!(TracedLine<'_> => Row<'r>, |line|
    "CodeObj": number(line.code_object),
    "Vaddr": number(line.address),
    "Instruction": free_text(line.instruction),
    "Hitcount": number(line.hits),
    "Latency": number(line.latency),
    "Stall": number(line.stall),
    "Idle": number(line.idle),
    "Source": free_text(line.source),
);

/// Writes `path` with a row for each line, in their order, and returns its name. `safe` is
/// [`rpd_core::options::Options::csv_safe`].
///
/// # Errors
/// When it cannot be written; nothing is left under its name then.
pub fn write_traced_lines<'a>(
    path: PathBuf,
    lines: impl IntoIterator<Item = TracedLine<'a>>,
    safe: bool,
) -> Result<PathBuf, WriteError> {
    write_records(path, lines, safe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csv::Records;

    #[test]
    fn manual_has_the_columns_of_traced_lines() {
        let manual = include_str!("../../../docs/thread-trace.md");
        let (_, table) = manual
            .split_once("\n| column | |\n|---|---|\n")
            .expect("a table");
        let rows = table.lines().take_while(|line| line.starts_with('|'));
        let cells = rows.filter_map(|row| row.split('|').nth(1));
        let named: Vec<&str> = cells
            .flat_map(|cell| cell.split('`').skip(1).step_by(2))
            .collect();
        let columns = <TracedLine<'_> as Records>::COLUMNS;
        let same = |of: &[&str], others: &[&str]| of.iter().all(|name| others.contains(name));
        assert!(
            same(&named, columns) && same(columns, &named),
            "{named:?} {columns:?}"
        );
    }

    /// Checks thread-trace-42 and thread-trace-47.
    #[test]
    fn traced_lines_are_written_in_their_order() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory
            .path()
            .join("stats_ui_output_agent_1_dispatch_1.csv");
        let line = |address, instruction, hits, source| TracedLine {
            code_object: 3,
            address,
            instruction,
            hits,
            latency: 4 * hits,
            stall: hits,
            idle: 0,
            source,
        };
        let lines = [
            line(4096, "; _Z1kPi", 0, "k(int*)"),
            line(4096, "s_nop 0", 7, "/a \"b\"/c,d\\e.hip:3 -> /f.hip:9"),
        ];
        write_traced_lines(path.clone(), lines, false).expect("written");
        assert_eq!(
            std::fs::read_to_string(path).expect("a file"),
            "\"CodeObj\",\"Vaddr\",\"Instruction\",\"Hitcount\",\"Latency\",\"Stall\",\"Idle\",\"Source\"\n\
             3,4096,\"; _Z1kPi\",0,0,0,0,\"k(int*)\"\n\
             3,4096,\"s_nop 0\",7,28,7,0,\"/a \"\"b\"\"/c,d\\e.hip:3 -> /f.hip:9\"\n"
        );
    }
}
