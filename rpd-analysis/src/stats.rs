//! Listing views: sums and traces of kernels, copies, calls and markers, with the columns that scripts know from other tools.

mod reports;
mod rows;

pub use rows::{
    AllocRow, ApiSumRow, ApiTraceRow, BusyRow, CopySizeRow, CopySumRow, ExecSumRow, ExecTraceRow,
    GpuSumRow, GpuTraceRow, KernelGeometryRow, KernelSumRow, LaneRow, MarkerProjectionRow,
    MarkerSumRow, OpRow, SequenceRow, SyncRow, TopRow, ViewRow,
};

use crate::answer::{Answer, Column, Form, Section};
use crate::gaps::report_common;
use crate::records::Records;

/// What makes a report of records: the whole of the window, rows in their order.
type Make = fn(&Context<'_>) -> Vec<Vec<crate::answer::Value>>;

/// What reports are made from.
pub(crate) struct Context<'a> {
    pub(crate) records: &'a dyn Records,
    /// First instant and end of the window.
    pub(crate) window: (u64, u64),
    /// Kernels of a sequence, for reports of sequences.
    pub(crate) sequence: usize,
    /// Rows of traces that are kept.
    pub(crate) limit: usize,
}

/// A report.
pub struct Report {
    /// Name.
    pub name: &'static str,
    /// What it shows.
    pub what: &'static str,
    columns: &'static [Column],
    make: Make,
}

macro_rules! reports {
    ($($name:literal, $what:literal, $row:ident, $make:ident;)*) => {
        /// All reports.
        pub const REPORTS: &[Report] = &[
            $(Report { name: $name, what: $what, columns: $row::COLUMNS, make: reports::$make },)*
        ];

        /// The form of the answer.
        pub const FORM: Form = Form {
            command: "stats",
            question: "How often and how long did each kernel, copy, call and marker run?",
            sections: &[$(($name, $what, $row::COLUMNS),)*],
        };
    };
}

reports! {
    "kern_sum", "Kernels by name", KernelSumRow, kern_sum;
    "kern_gb_sum", "Kernels by name, grid in workgroups, and workgroup", KernelGeometryRow, kern_gb_sum;
    "kern_exec_sum", "Launch, queue and kernel times by call and kernel", ExecSumRow, kern_exec_sum;
    "kern_exec_trace", "Launch, queue and kernel time of each kernel", ExecTraceRow, kern_exec_trace;
    "copy_time_sum", "Copies by direction, by time", CopySumRow, copy_time_sum;
    "copy_size_sum", "Copies by direction, by size", CopySizeRow, copy_size_sum;
    "gpu_sum", "Kernels and copies together", GpuSumRow, gpu_sum;
    "gpu_trace", "Each kernel and copy", GpuTraceRow, gpu_trace;
    "api_sum", "Calls by function", ApiSumRow, api_sum;
    "api_trace", "Each call that no other is around", ApiTraceRow, api_trace;
    "marker_sum", "Markers by message", MarkerSumRow, marker_sum;
    "marker_gpu_proj_sum", "Markers by message, with the time of their operations on the GPU", MarkerProjectionRow, marker_gpu_proj_sum;
    "sync_sum", "Calls that wait, and time of GPUs under them", SyncRow, sync_sum;
    "alloc_sum", "Allocations by process and place", AllocRow, alloc_sum;
    "stream_sum", "Operations by stream", LaneRow, stream_sum;
    "queue_sum", "Kernels by queue", LaneRow, queue_sum;
    "top", "Kernels and copies by time, as RPD's view top", TopRow, top;
    "busy", "How busy GPUs are, as RPD's view busy", BusyRow, busy;
    "kernel", "Each kernel, as RPD's view kernel", ViewRow, kernel;
    "copy", "Each copy, as RPD's view copy", ViewRow, copy;
    "api", "Each call, as RPD's view api", ViewRow, api;
    "op", "Each operation of a GPU, as RPD's view op", OpRow, op;
    "seq_sum", "Sequences of kernels, with the time above the best and the gap before them", SequenceRow, seq_sum;
}

/// Reports that are shown when none is named.
pub const USUAL: [&str; 5] = [
    "api_sum",
    "kern_sum",
    "copy_time_sum",
    "copy_size_sum",
    "marker_sum",
];

/// The report of a name; those of Nsight Systems are accepted, with `cuda_` or `hip_`, then `gpu_` in front, `nvtx_` for `marker_`,
/// `mem_` for `copy_`, and a part behind a colon that selects a form of names.
pub fn report(name: &str) -> Option<&'static Report> {
    let find = |name: &str| REPORTS.iter().find(|report| report.name == name);
    let name = name.split(':').next().unwrap_or_default();
    let bare = name
        .strip_prefix("cuda_")
        .or_else(|| name.strip_prefix("hip_"))
        .unwrap_or(name);
    let bare = match bare.strip_prefix("nvtx_") {
        Some(rest) => format!("marker_{rest}"),
        None => bare.to_owned(),
    };
    find(&bare).or_else(|| {
        let bare = bare.strip_prefix("gpu_").unwrap_or(&bare);
        let of_memory = bare.strip_prefix("mem_").map(|rest| format!("copy_{rest}"));
        find(of_memory.as_deref().unwrap_or(bare))
    })
}

/// What is listed.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// First instant and end of the window.
    pub window: Option<(u64, u64)>,
    /// Kernels of a sequence.
    pub sequence: usize,
    /// Rows of traces that are kept; `None` keeps all.
    pub limit: Option<usize>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            window: None,
            sequence: 2,
            limit: None,
        }
    }
}

/// Reports as an answer, the first one as its main section.
pub fn answer(records: &dyn Records, reports: &[&'static Report], options: &Options) -> Answer {
    let facts = records.facts();
    let mut answer = Answer::new(FORM.command);
    answer.has_titles = true;
    answer.window = crate::breakdown::window(records, options.window);
    let whole = answer
        .window
        .map_or((0, u64::MAX), |window| (window.start, window.end));
    let context = Context {
        records,
        // Calls before the first operation count, where no window is given.
        window: options.window.unwrap_or(whole),
        sequence: options.sequence.max(1),
        limit: options.limit.unwrap_or(usize::MAX),
    };
    answer.main = reports.first().map_or("", |report| report.name);
    answer.sections = reports
        .iter()
        .map(|report| Section::new(report.name, report.columns, (report.make)(&context)))
        .collect();
    answer.is_empty = answer
        .sections
        .iter()
        .all(|section| section.rows.is_empty());
    let mut lacks = |is_there: bool, prefixes: &[&str], what, because: &str, record| {
        let affected = reports.iter().map(|report| report.name);
        let affected: Vec<&'static str> = affected
            .filter(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)))
            .collect();
        if !is_there && !affected.is_empty() {
            answer.lacks(what, &affected, because, record);
        }
    };
    let recorded = &facts.recorded;
    lacks(
        recorded.calls,
        &["api", "sync", "kern_exec"],
        "hip_calls",
        "no call is recorded",
        "--hip-trace",
    );
    lacks(
        recorded.copies,
        &["copy"],
        "copies",
        "no copy is recorded",
        "--memory-copy-trace",
    );
    lacks(
        recorded.markers,
        &["marker"],
        "markers",
        "the recording has no markers",
        "--marker-trace",
    );
    lacks(
        recorded.allocations,
        &["alloc"],
        "allocations",
        "no allocation is recorded",
        "--memory-allocation-trace",
    );
    report_common(facts, &mut answer, 0);
    answer
}

#[cfg(test)]
mod tests;
