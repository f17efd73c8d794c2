//! The ledger: what was seen of each process, what was lost, and where it went. One line per process, so that
//! "nothing happened", "not selected" and "lost" have different texts.

#![deny(clippy::wildcard_enum_match_arm)]

use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;
use rpd_core::domain::Domain;
use rpd_core::ids::ProcessId;
use rpd_core::naming;
use rpd_core::options::{Format, Options, ProviderChoice, Symbolize, Traces};
use rpd_core::session::{Operation, OperationClass, Process, Provider, Session, Table};
use rpd_core::text::foreign;

use super::{counted, label, sampled, shown, traced};
use crate::notices;
use crate::process::spawn::TargetEnd;
use crate::process::{image, program};
use crate::run_directory::{ImageState, Recording};
use crate::wording::count;

/// The call with which a program pauses recording.
const PAUSE: &str = "roctxProfilerPause";

/// Lines of one sort per process; more are counted.
const MAX_DETAILS: usize = 4;
/// Processes without a GPU call that get a line each; more are counted.
const MAX_IDLE: usize = 8;

/// Result of one process.
pub(super) struct Outcome {
    pid: ProcessId,
    /// The recording of the process, if it could be read.
    pub(super) session: Option<Session>,
    /// The process ended before it wrote a record.
    pub(super) ended_early: bool,
    /// Files that were written for the process.
    pub(super) files: Vec<PathBuf>,
    /// Errors, each a line for the user.
    pub(super) errors: Vec<String>,
    /// A sentence about names of files that another rpd has.
    pub(super) renamed: Option<String>,
    /// Addresses of call stacks that were not looked up in time.
    pub(super) symbols_left_out: usize,
    /// Records that are in no statistics, because their times cannot be.
    pub(super) times_left_out: u64,
}

impl Outcome {
    pub(super) fn new(pid: ProcessId) -> Outcome {
        Outcome {
            pid,
            session: None,
            ended_early: false,
            files: Vec::new(),
            errors: Vec::new(),
            renamed: None,
            symbols_left_out: 0,
            times_left_out: 0,
        }
    }

    /// Whether all outputs exist.
    pub(super) fn complete(&self) -> bool {
        self.errors.is_empty()
    }

    /// Whether no loss of records is known.
    pub(super) fn lossless(&self) -> bool {
        let session = self.session.as_ref();
        session.is_none_or(|session| {
            let mut traces = session.thread_traces.summaries.iter();
            session.ledger.dropped == 0
                && session.ledger.lost_processes == 0
                && traces.all(|trace| !trace.full)
        })
    }

    /// Whether the only line is that the process never used the GPU.
    pub(super) fn is_idle(&self) -> bool {
        self.complete()
            && self.session.as_ref().is_some_and(|session| {
                session.is_empty()
                    && !session.ledger.runtime_seen
                    && session.ledger.dropped == 0
                    && session.ledger.lost_processes == 0
                    && session.ledger.notes.is_empty()
                    && session.ledger.damage.is_empty()
                    && session.ledger.open_calls.is_empty()
            })
    }
}

/// Name of a process in messages, such as `vector-ops[4711]`.
pub(crate) fn name(process: &Process) -> String {
    let program = process
        .command
        .first()
        .filter(|program| !program.is_empty())
        .unwrap_or(&process.executable);
    let base = program.rsplit('/').next().unwrap_or_default();
    label(&foreign::shown(base), process.pid)
}

/// The lines about one process.
pub(super) fn of_process(
    outcome: &Outcome,
    options: &Options,
    ending: Option<TargetEnd>,
) -> Vec<String> {
    // Without a record there is no name, and nothing else to say.
    if outcome.ended_early {
        let pid = outcome.pid;
        return vec![format!(
            "process {pid}: nothing was recorded: it ended before it wrote a record"
        )];
    }
    let Some(session) = &outcome.session else {
        return outcome
            .errors
            .iter()
            .map(|error| format!("process {}: {error}", outcome.pid))
            .collect();
    };
    let name = name(&session.process);
    let mut lines = Vec::new();
    let mut parts = Vec::new();
    // First, because it explains why the rest may be missing.
    if let Some(TargetEnd::Signalled(signal)) = ending {
        let signal = Signal::try_from(signal)
            .map_or_else(|_| format!("signal {signal}"), |signal| signal.to_string());
        parts.push(format!("ended by {signal}"));
    }
    parts.push(counts(session, options));
    // Only when it differs from the usual case.
    if session.process.provider == Provider::Direct {
        parts.push("provider direct".to_owned());
    } else if session.process.provider == Provider::Cuda {
        parts.push("provider cuda".to_owned());
    } else if options.collector.provider != ProviderChoice::Sdk && session.ledger.runtime_seen {
        parts.push("provider sdk".to_owned());
    }
    let written = match outcome.files.as_slice() {
        [] if outcome.complete() && !session.is_empty() && options.minimum_output_bytes > 0 => {
            "nothing written: less than --minimum-output-data".to_owned()
        }
        [] => "nothing written".to_owned(),
        files => format!(
            "wrote {}: {}",
            count(files.len(), "file"),
            files_shown(files)
        ),
    };
    parts.push(written);
    let is_well = outcome.complete()
        && outcome.lossless()
        && !matches!(ending, Some(TargetEnd::Signalled(_)));
    if !(is_well && notices::are_silenced()) {
        lines.push(format!("{name}: {}", parts.join("; ")));
    }
    if let Some(sentence) = &outcome.renamed {
        lines.push(format!("{name}: {sentence}"));
    }
    // A file that is expected and absent looks like a loss.
    if options.formats.contains(&Format::Csv) && !outcome.files.is_empty() {
        let left_out = rpd_formats::csv::left_out(session, options);
        if !left_out.is_empty() {
            lines.push(format!(
                "{name}: CSV files left out, with fewer records than --minimum-output-data requests: {}",
                left_out.join(", ")
            ));
        }
    }
    let databases = outcome
        .files
        .iter()
        .filter(|file| file.extension().is_some_and(|end| end == "db"));
    if let Some(words) = super::times_left_out(outcome.times_left_out) {
        lines.push(format!("{name}: {words}"));
    }
    let left_out = outcome.symbols_left_out;
    if left_out > 0 {
        lines.push(format!(
            "{name}: {} of call stacks were not looked up within --stacks-symbolize-limit: they have no names and lines",
            count(left_out, "address")
        ));
    }
    // Where names are missing the user has to know the command that adds them.
    let is_later = options.stacks.symbolize != Symbolize::Stop && !session.stacks.is_empty();
    if is_later || left_out > 0 {
        for database in databases {
            lines.push(format!(
                "{name}: names and lines of its call stacks: rpd symbolize {}",
                shown(database)
            ));
        }
    }
    lines.extend(
        outcome
            .errors
            .iter()
            .map(|error| format!("{name}: {error}")),
    );
    details(session, &name, options, &mut lines);
    lines
}

/// `3245 calls, 405 markers, 800 dispatches, 600 copies, 0 dropped`.
fn counts(session: &Session, options: &Options) -> String {
    let traces = &options.collector.traces;
    let ledger = &session.ledger;
    let dropped = match ledger.dropped {
        0 => "0 dropped".to_owned(),
        dropped => format!("{dropped} DROPPED"),
    };
    let counting = options.collector.counters.any();
    let sampling = options.collector.sampling.is_some();
    let traced = options.collector.thread_trace.is_some();
    if !traces.any() && !counting && !sampling && !traced {
        return "nothing was to be traced".to_owned();
    }
    if session.is_empty() && ledger.open_calls.is_empty() {
        let why = if ledger.runtime_seen {
            if options.collector.traces_anything() {
                "a GPU runtime was loaded, but nothing of what is traced happened"
            } else {
                "a GPU runtime was loaded, but no dispatch was counted"
            }
        } else {
            "no GPU call"
        };
        // Dropped records may have been of any kind.
        if ledger.dropped > 0 {
            return format!("nothing could be stored of what it did, {dropped}");
        }
        return format!("{why}, {dropped}");
    }
    let markers = session.count_calls(|operation| operation.domain() == Domain::MarkerApi);
    let (removed, removed_markers) = session.removed_by_table();
    // The count covers all records, also where the tables hold only the latest.
    let total = |domain, kept: usize| {
        let count = session.total_count(domain);
        count.map_or(kept, |count| usize::try_from(count).unwrap_or(usize::MAX))
    };
    let driver = traces.kfd_page_migration
        || traces.kfd_page_mapping
        || traces.kfd_queue
        || traces.kfd_dropped_events;
    let figures = Table::ALL.iter().flat_map(|table| {
        let gone = removed.get(table).copied().unwrap_or(0);
        let number = session.records(*table) + usize::try_from(gone).unwrap_or(0);
        let all_markers = markers + usize::try_from(removed_markers).unwrap_or(0);
        match table {
            Table::Calls => vec![
                (any_call(traces), number - markers, "call"),
                (traces.marker, all_markers, "marker"),
            ],
            Table::Dispatches => {
                vec![(
                    traces.kernel,
                    total(Domain::KernelDispatch, number),
                    "dispatch",
                )]
            }
            Table::Copies => vec![(
                traces.memory_copy,
                total(Domain::MemoryCopy, number),
                "copy",
            )],
            Table::Allocations => vec![(traces.memory_allocation, number, "allocation")],
            Table::Scratch => vec![(traces.scratch_memory, number, "scratch operation")],
            // Not traced but counted: see below.
            Table::Counted => vec![],
            Table::Samples => {
                let added_up = usize::try_from(session.sample_counts.total()).unwrap_or(usize::MAX);
                vec![(sampling, number.saturating_add(added_up), "PC sample")]
            }
            Table::GraphLaunches => vec![(traces.hip_graph, number, "graph launch")],
            Table::HipEvents => vec![(traces.hip_event, number, "HIP event")],
            Table::KfdEvents => vec![(driver, number, "driver event")],
        }
    });
    let mut texts = Vec::new();
    let mut untraced = Vec::new();
    for (traced, number, noun) in figures {
        // Rare kinds are mentioned only when present.
        let common = matches!(noun, "call" | "dispatch" | "copy" | "PC sample");
        let text = match (number, noun) {
            (1, _) => format!("1 {noun}"),
            (_, "dispatch") => format!("{number} dispatches"),
            (_, "graph launch") => format!("{number} graph launches"),
            _ => count(number, noun),
        };
        if traced && (common || number > 0) {
            texts.push(text);
        } else if !traced && common && noun != "PC sample" && traces.any() {
            untraced.push(match noun {
                "call" => "calls",
                "dispatch" => "dispatches",
                _ => "copies",
            });
        }
    }
    if traced {
        texts.push(count(session.thread_traces.numbers().len(), "thread trace"));
    }
    if counting {
        texts.push(match session.counted.counted_once() {
            1 => "1 counted dispatch".to_owned(),
            number => format!("{number} counted dispatches"),
        });
    }
    texts.push(dropped);
    let mut text = texts.join(", ");
    if !untraced.is_empty() {
        text.push_str(&format!(" (not traced: {})", untraced.join(", ")));
    }
    text
}

fn any_call(traces: &Traces) -> bool {
    // Without `..`, so that a new trace is decided on.
    let Traces {
        hip_runtime,
        hip_compiler,
        hsa_core,
        hsa_amd,
        hsa_image,
        hsa_finalizer,
        rccl,
        rocdecode,
        rocjpeg,
        cuda,
        cuda_driver,
        marker: _,
        kernel: _,
        memory_copy: _,
        memory_allocation: _,
        scratch_memory: _,
        hip_graph: _,
        hip_event: _,
        kfd_page_migration: _,
        kfd_page_mapping: _,
        kfd_queue: _,
        kfd_dropped_events: _,
        rocshmem,
        hipfile,
    } = *traces;
    [
        hip_runtime,
        hip_compiler,
        hsa_core,
        hsa_amd,
        hsa_image,
        hsa_finalizer,
        rccl,
        rocdecode,
        rocjpeg,
        cuda,
        cuda_driver,
        rocshmem,
        hipfile,
    ]
    .contains(&true)
}

/// The names of the files; of many their common part.
fn files_shown(files: &[PathBuf]) -> String {
    let texts: Vec<String> = files.iter().map(|file| shown(file)).collect();
    if texts.len() <= 2 {
        return texts.join(", ");
    }
    let mut common = texts[0].clone();
    for text in &texts[1..] {
        let length = common
            .bytes()
            .zip(text.bytes())
            .take_while(|(a, b)| a == b)
            .count();
        while !common.is_char_boundary(length.min(common.len())) {
            common.pop();
        }
        common.truncate(length);
    }
    match common.rfind('_') {
        Some(at) => format!("{}_*", &common[..at]),
        None => texts.join(", "),
    }
}

/// Adds remarks beside the figures.
fn details(session: &Session, name: &str, options: &Options, lines: &mut Vec<String>) {
    let ledger = &session.ledger;
    // Losses come first: all figures behind them are less than what happened.
    if ledger.dropped > 0 {
        lines.push(format!(
            "{name}: WARNING: {} {} missing from the outputs: the target could not store what it recorded \
             (a full disk, no free inodes, a limit on file sizes, a directory it could no longer reach, or signal handlers \
             that interrupted one another while it was stored)",
            count(ledger.dropped, "record"),
            if ledger.dropped == 1 { "is" } else { "are" },
        ));
    }
    if ledger.lost_processes > 0 {
        lines.push(format!(
            "{name}: WARNING: {} could not write in the directory of this run (after chroot or a change of user, or when it \
             was removed); {} missing from the outputs",
            count(ledger.lost_processes, "forked process"),
            match ledger.lost_records {
                1 => "1 record is".to_owned(),
                records => format!("{records} records are"),
            }
        ));
    }
    for (number, noun) in [
        (ledger.unfinished_dispatches, "dispatch"),
        (ledger.unfinished_copies, "copy"),
    ] {
        if number > 0 {
            lines.push(format!(
                "{name}: WARNING: no completion was recorded for {}: recording ended first",
                count(number, noun)
            ));
        }
    }
    if ledger.paused_dispatches > 0 {
        lines.push(format!(
            "{name}: {} left out: recording was paused",
            count(ledger.paused_dispatches, "dispatch")
        ));
    }
    // The original's numbers of dispatches leave out those of a pause, so nobody counts them there.
    let collector = &options.collector;
    let is_counted = ledger.paused_dispatches > 0;
    if collector.original_semantics && !collector.selected_regions && !is_counted {
        let is_pause = |operation: &Operation| session.strings.get(operation.name) == PAUSE;
        let pauses = session.count_calls(is_pause);
        if pauses > 0 {
            lines.push(format!(
                "{name}: the program had paused recording ({}): what it did meanwhile is left out",
                count(pauses, "pause")
            ));
        }
    }
    if let Some(text) = given_up(session) {
        lines.push(format!("{name}: {text}"));
    }
    if let Some(text) = removed(session) {
        lines.push(format!("{name}: {text}"));
    }
    // Launches without dispatches are the sign of a recording that failed, unless something above explains them.
    let launches = session.count_calls(|operation| operation.class == OperationClass::Launch);
    let explained = ledger.unfinished_dispatches > 0 || ledger.paused_dispatches > 0;
    let traced = options.collector.traces.kernel;
    if traced && launches > 0 && session.dispatches.is_empty() && !explained {
        let launches = count(launches, "kernel launch call");
        lines.push(if ledger.ended {
            format!("{name}: WARNING: {launches}, but no dispatch was recorded")
        } else {
            format!(
                "{name}: {launches}, but no dispatch: it ended before the runtime had handed its records over"
            )
        });
    }
    // Counters are requested of processes that use no GPU as well.
    if options.collector.counters.any() && (ledger.runtime_seen || !session.is_empty()) {
        lines.extend(
            counted::remarks(session, options)
                .into_iter()
                .map(|remark| format!("{name}: {remark}")),
        );
    }
    let samples = sampled::remarks(session, options).into_iter();
    let remarks = samples.chain(traced::remarks(session, options));
    lines.extend(remarks.map(|remark| format!("{name}: {remark}")));
    if ledger.cut_calls > 0 {
        lines.push(format!(
            "{name}: {} with an argument or message of which only the beginning was kept",
            count(ledger.cut_calls, "call"),
        ));
    }
    lines.extend(open_ranges(session).map(|text| format!("{name}: {text}")));
    limited(name, "damaged recording: ", &ledger.damage, lines);
    // Calls without end explain where a program hung or was killed.
    if !ledger.ended {
        let open: Vec<String> = ledger
            .open_calls
            .iter()
            .map(|call| {
                let age = session.process.fini_time.0.saturating_sub(call.start.0);
                let function = session.strings.get(call.name);
                format!(
                    "{function} (thread {}, for {:.3} s)",
                    call.thread,
                    age as f64 / 1e9
                )
            })
            .collect();
        limited(name, "ended inside ", &open, lines);
    }
    limited(name, "note: ", &ledger.notes, lines);
}

/// The ranges that had not been ended; `None` without any.
fn open_ranges(session: &Session) -> Option<String> {
    let open = &session.ledger.open_ranges;
    let end = session.process.fini_time.0;
    let shown: Vec<String> = open
        .first
        .iter()
        .take(MAX_DETAILS)
        .map(|range| {
            let length = end.saturating_sub(range.start.0) as f64 / 1e9;
            let message = session.strings.get(range.name).replace('\n', " ");
            format!("{message} (thread {}, {length:.3} s)", range.thread)
        })
        .collect();
    let more = match open.count.saturating_sub(shown.len() as u64) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    (open.count > 0).then(|| {
        let ranges = count(open.count, "ROCTx range");
        format!(
            "{ranges} had not been ended, recorded until the end: {}{more}",
            shown.join(", ")
        )
    })
}

/// Number of records that a light recording has only as sums; `None` when it kept all.
fn given_up(session: &Session) -> Option<String> {
    let kept = session.dispatches.len() + session.copies.len();
    let all: u64 = [Domain::KernelDispatch, Domain::MemoryCopy]
        .into_iter()
        .filter_map(|domain| session.total_count(domain))
        .sum();
    if all <= kept as u64 {
        return None;
    }
    let since = session.span().map_or_else(String::new, |(first, _)| {
        let time = session.process.real_at(first);
        format!(", from {} on", naming::clock_time(time))
    });
    Some(format!(
        "statistics are of all dispatches and copies; one by one, the files have the last {kept} of {all}{since} (--light-keep \
         keeps more)"
    ))
}

/// What went to keep the bound of the recording; `None` when nothing did.
fn removed(session: &Session) -> Option<String> {
    let gone: u64 = session.removed.iter().map(|total| total.count).sum();
    if gone == 0 {
        return None;
    }
    let kept = session.len();
    let since = session.span().map_or_else(String::new, |(first, _)| {
        let time = session.process.real_at(first);
        format!(", from {} on", naming::clock_time(time))
    });
    Some(format!(
        "statistics are of all that happened; one by one, the files have the last {kept} of {} records{since}: the others went \
         to keep --spool-limit",
        kept as u64 + gone
    ))
}

fn limited(name: &str, before: &str, texts: &[String], lines: &mut Vec<String>) {
    for text in texts.iter().take(MAX_DETAILS) {
        lines.push(format!("{name}: {before}{}", text.replace('\n', " ")));
    }
    if texts.len() > MAX_DETAILS {
        lines.push(format!(
            "{name}: {before}... and {} more",
            texts.len() - MAX_DETAILS
        ));
    }
}

/// A process that was recorded and has not ended.
pub(super) fn still_running(recording: &Recording, run: &Path) -> String {
    let pid = ProcessId(recording.image.pid);
    let run = shown(run);
    let seen = match recording.state {
        ImageState::Unknown => {
            return format!(
                "process {pid} ran in a PID namespace that is not seen from here, so it may still run; recover it where it \
                 ran, or, if it has ended: rpd recover --force {run}"
            );
        }
        ImageState::Runs(seen) => seen,
        ImageState::Ended => None,
    };
    #[expect(clippy::disallowed_methods, reason = "a file of the kernel")]
    let program = seen.map(|seen| std::fs::read_to_string(format!("/proc/{seen}/comm")));
    let program = program.and_then(Result::ok).unwrap_or_default();
    let name = match program.trim() {
        "" => format!("process {pid}"),
        program => label(program, pid),
    };
    let number = match seen {
        Some(seen) if seen != pid => format!(" (process {seen} here)"),
        _ => String::new(),
    };
    format!("{name}{number} still runs; once it has ended, `rpd recover {run}` writes what it did")
}

/// A process whose outputs could not all be written.
pub(super) fn kept_recording(run: &Path) -> String {
    format!(
        "what was recorded is kept; once the cause is gone: rpd recover {}",
        shown(run)
    )
}

/// A target in which the collector never ran.
pub(super) fn nothing_loaded(options: &Options) -> String {
    let why = match program::of_pass(options).map(|program| image::obstacle(&program)) {
        Ok(Some(obstacle)) => format!("the collector cannot be loaded into it: {obstacle}"),
        _ => "it ended before the collector was loaded into it, or its loader ignores LD_PRELOAD"
            .to_owned(),
    };
    format!(
        "{}: nothing was recorded: {why}",
        options.command.first().map_or("", String::as_str)
    )
}

/// Prints the lines; `idle` are those of processes that never used the GPU.
pub(super) fn print(lines: Vec<String>, idle: Vec<String>) {
    let mut text = String::new();
    let counted = idle.len() > MAX_IDLE;
    let idle_count = idle.len();
    for line in lines
        .into_iter()
        .chain(idle.into_iter().filter(|_| !counted))
    {
        text.push_str(&format!("rpd: {}\n", foreign::shown(&line)));
    }
    if counted {
        text.push_str(&format!(
            "rpd: {idle_count} other processes made no GPU call\n"
        ));
    }
    super::one_piece::to_stderr(&text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ledger_does_not_deny_records_that_could_not_be_stored() {
        let mut options = Options::default();
        options.collector.traces.kernel = true;
        let mut session = Session::default();
        assert_eq!(counts(&session, &options), "no GPU call, 0 dropped");
        session.ledger.dropped = 3183;
        assert_eq!(
            counts(&session, &options),
            "nothing could be stored of what it did, 3183 DROPPED"
        );
    }
}
