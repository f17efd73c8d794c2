//! Whether rpd follows its own manual, or rocprofv3.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The tool whose behaviour the options request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compat {
    /// The behaviour of rpd itself.
    #[default]
    None,
    /// The behaviour of rocprofv3, rocprofv3-avail and rocpd, also where it differs from their manual.
    Rocprofv3,
}

/// One difference between the modes. Code queries [`Compat::has`] with one of these and nothing else, so that
/// [`DIFFERENCES`] lists all there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// Words above summary tables.
    SummaryTitle,
    /// Destination of summary tables.
    SummaryStream,
    /// Tables of `--stats` alone.
    StatsTables,
    /// Conditions under which pause and resume take effect.
    PauseResume,
    /// Effect of a mark on renamed kernels.
    RenamingMarks,
    /// Repeat 0 of a collection period.
    EndlessPeriod,
    /// Traces of newer versions of the original in the aggregates: graphs, HIP events, the kernel driver, rocSHMEM and hipFile.
    GraphTraces,
    /// Whether `--group-by-queue` is a trace.
    QueueIsTrace,
    /// Words of errors and warnings.
    Diagnostics,
    /// The text that `--echo` prints.
    Echo,
    /// A line for each result file.
    ResultFiles,
    /// Order of the parts of `--list-avail` with a program.
    ListOrder,
    /// The listing program without a command.
    AvailDefault,
    /// The counters and agents that the listing program shows.
    AvailCounters,
    /// Counter names that no GPU has.
    AvailUnknown,
    /// Names and directories of converted files.
    RocpdLayout,
    /// Order of columns in databases.
    DatabaseLayout,
    /// Messages of database commands on standard output.
    RocpdWords,
    /// Destination of tables of database commands.
    RocpdTables,
    /// Means and deviations in domain summaries.
    DomainSummary,
    /// Tables of `rpd summary` that have scratch memory.
    ScratchSummary,
    /// Spelling of the types of arguments in JSON.
    ArgumentTypes,
    /// Names and arguments in Perfetto traces of a run.
    PerfettoNames,
    /// Arguments through which a call returns something.
    ArgumentResults,
    /// A value that is not a number in tables for people.
    NoNumber,
    /// Variables that request call stacks.
    StackVariables,
    /// Counters and PC samples in one run.
    CountersWithSamples,
    /// Files for the viewer of thread traces.
    TraceDirectories,
    /// Dispatches that are counted beside thread traces.
    CountersWithTraces,
    /// The kernels whose names are demangled, and the names of kernels without symbol.
    KernelNames,
}

/// A row of the table of differences.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The difference that this row describes.
    pub difference: Difference,
    /// The option or command that it concerns, in markdown.
    pub subject: &'static str,
    /// Behaviour of rpd, in markdown.
    pub own: &'static str,
    /// Behaviour of rocprofv3, and of rpd in its mode, in markdown.
    pub original: &'static str,
}

const fn row(
    difference: Difference,
    subject: &'static str,
    own: &'static str,
    original: &'static str,
) -> Row {
    Row {
        difference,
        subject,
        own,
        original,
    }
}

/// Every difference between the modes, in the order in which the manual lists them.
#[rustfmt::skip]
pub const DIFFERENCES: &[Row] = &[
    row(Difference::SummaryTitle, "Title of summary tables", "`RPD HIP_API SUMMARY:`", "`ROCPROFV3 HIP_API SUMMARY:`"),
    row(Difference::SummaryStream, "Summary tables for `stderr`, the default", "go to standard error; with several processes a line names the process", "go to standard output; no line names the process"),
    row(Difference::StatsTables, "`--stats` without a summary option", "writes the statistics files and prints one table per domain", "writes the statistics files only"),
    row(Difference::PauseResume, "`roctxProfilerPause` and `roctxProfilerResume`", "are always obeyed", "are obeyed with `--marker-trace` or `--selected-regions` only"),
    row(Difference::RenamingMarks, "`roctxMark` with `--kernel-rename`", "renames nothing: kernels are named after the innermost open push range", "is pushed on the stack of ranges, and the next pop takes it off"),
    row(Difference::EndlessPeriod, "Repeat 0 in `--collection-period`", "repeats the period endlessly", "runs the period once"),
    row(Difference::GraphTraces, "`--hip-trace`, `--hip-runtime-trace`, `-r` and `-s`", "include `--hip-graph-trace` and `--hip-event-trace`; `-r` and `-s` also `--kfd-trace`, `--rocshmem-trace` and `--hipfile-trace`", "do not, as in ROCm 7.0; all can be given"),
    row(Difference::QueueIsTrace, "`--group-by-queue` with a summary option and no trace", "is refused: nothing is traced", "is accepted: the option counts as a trace"),
    row(Difference::Diagnostics, "Errors and warnings before the run", "`rpd: MESSAGE`", "`Fatal error: MESSAGE`, `Warning: MESSAGE`; mistakes in options as a usage line and `rocprofv3: error: MESSAGE`"),
    row(Difference::Echo, "`--echo`", "prints the resolved options of each run as JSON", "prints the program and its arguments: `command: ['./app', '-n', '1']`"),
    row(Difference::ResultFiles, "Files that were written", "the line of each process names them", "further lines, `Opened result file: PATH`, on standard error"),
    row(Difference::ListOrder, "`--list-avail` with a program", "lists PC sampling, then counters; then the program runs", "lists counters, then PC sampling; then the program runs"),
    row(Difference::AvailDefault, "`rocprofv3-avail` without a command", "`rpd avail` lists the counters", "prints nothing"),
    row(Difference::AvailCounters, "Listings", "counters that the provider refuses are listed apart with the reason; `list --agent` has CPUs; missing PC sampling is reported", "every counter that the provider defines, GPUs only; GPUs without PC sampling are left out"),
    row(Difference::AvailUnknown, "`info --pmc NAME` with a name that no GPU has", "is an error", "prints the GPU and no counter"),
    row(Difference::RocpdLayout, "Converted files", "`rpd convert` names them after the database, in the current directory, per process", "`rocpd convert` writes `rocpd-output-data/out_*`, with one set of CSV files for all databases"),
    row(Difference::DatabaseLayout, "Tables of databases", "columns that are the same in every row come last and take no space (`--layout rpd`)", "columns in the original's order, the recording's guid in each row (`--layout original`)"),
    row(Difference::RocpdWords, "Words of database commands", "on standard error, `rpd: wrote PATH`", "on standard output: `Converting database(s) to csv format:`, `Exported to: PATH`, `Done. Exiting...`"),
    row(Difference::RocpdTables, "Tables of `rocpd query` and `rocpd summary`", "`-o` sends a table to a file in the current directory", "tables in the console format go to standard output whatever `-o` says; the others to `rocpd-output-data`"),
    row(Difference::DomainSummary, "Mean and deviation in `--domain-summary`", "those of all records of the domain", "the sums of the means and of the deviations of its names"),
    row(Difference::ScratchSummary, "Scratch memory in `rpd summary`", "is in `SCRATCH_MEMORY` alone", "is in `MEMORY_ALLOCATIONS` as well, and so counts twice in `--domain-summary`"),
    row(Difference::ArgumentTypes, "Types of arguments in JSON", "as C++ spells them: `ihipStream_t*`", "as compilers encode them: `P12ihipStream_t`"),
    row(Difference::PerfettoNames, "`-f pftrace` of a run", "kernels are named as in other files, calls have their arguments, streams are `STREAM [1]`, memory is in bytes", "kernels are `foo(int) [clone .kd]`, calls but those of rocDecode have no arguments, streams are `STREAM [\" 1 \"] `, memory is in whole KiB"),
    row(Difference::ArgumentResults, "Arguments through which a call returns something, as the `ptr` of `hipMalloc`", "what the call has stored there, with the type of that", "the address of the program's variable"),
    row(Difference::NoNumber, "The deviation of a single call in tables for people", "`-`", "`NaN`"),
    row(Difference::StackVariables, "Variables `RPD_STACKS*`, `RPDT_STACKFRAMES` and `RPDT_ROCPROF_NOARGS`", "are defaults of the options of call stacks; leave arguments of HIP calls out", "are ignored"),
    row(Difference::CountersWithSamples, "`--pmc` and PC sampling in one run", "is refused: counting changes the clocks that samples need", "is accepted, each on a context of its own"),
    row(Difference::TraceDirectories, "Directories `ui_output_*` and files `stats_ui_output_*.csv` of thread traces", "are written with `-f json` and `-f csv`, beside the other files of the process; the database has what they show", "are always written, into the directory of `-d`"),
    row(Difference::CountersWithTraces, "`--pmc` and `--att` in one run, without `--kernel-iteration-range`", "counts all dispatches", "counts the first of each kernel, which is the one that is traced"),
    row(Difference::KernelNames, "Names of kernels that the original cannot demangle: longer than 1,024 bytes, or with a suffix that has letters and digits (`.intern.b96e08b3`); kernels that were never registered", "are demangled; `kernel 16 (no symbol)`", "stay as registered; `16`"),
];

impl Compat {
    /// The word of the command line.
    pub const fn label(self) -> &'static str {
        match self {
            Compat::None => "none",
            Compat::Rocprofv3 => "rocprofv3",
        }
    }

    /// The mode with this label.
    pub fn from_label(label: &str) -> Option<Compat> {
        [Compat::None, Compat::Rocprofv3]
            .into_iter()
            .find(|mode| mode.label() == label)
    }

    /// Whether this mode behaves as [`Row::original`] describes.
    pub const fn has(self, _: Difference) -> bool {
        matches!(self, Compat::Rocprofv3)
    }

    /// Tool name before `SUMMARY` in titles of tables.
    pub const fn brand(self) -> &'static str {
        if self.has(Difference::SummaryTitle) {
            "ROCPROFV3"
        } else {
            "RPD"
        }
    }

    /// Placeholder for a missing number in text tables.
    pub const fn no_number(self) -> &'static str {
        if self.has(Difference::NoNumber) {
            "NaN"
        } else {
            "-"
        }
    }

    /// A warning about the command line as one line.
    pub fn warning(self, message: impl fmt::Display) -> String {
        if self.has(Difference::Diagnostics) {
            format!("Warning: {message}")
        } else {
            format!("rpd: {message}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The manual lists what the table lists.
    #[test]
    fn compatibility_manual_lists_every_row_of_the_table() {
        let manual = include_str!("../../docs/drop-in.md");
        for row in DIFFERENCES {
            let line = format!("| {} | {} | {} |\n", row.subject, row.own, row.original);
            assert!(manual.contains(&line), "docs/drop-in.md lacks: {line}");
        }
    }

    #[test]
    fn compatibility_table_has_one_row_for_each_difference() {
        for (index, row) in DIFFERENCES.iter().enumerate() {
            assert_eq!(row.difference as usize, index, "{}", row.subject);
            assert!(!Compat::None.has(row.difference));
            assert!(Compat::Rocprofv3.has(row.difference));
        }
        assert_eq!(
            DIFFERENCES.len(),
            Difference::KernelNames as usize + 1,
            "a difference without a row"
        );
        assert_eq!(Compat::from_label("rocprofv3"), Some(Compat::Rocprofv3));
        assert_eq!(Compat::from_label("rocprof"), None);
        assert_eq!(Compat::None.brand(), "RPD");
    }
}
