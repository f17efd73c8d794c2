//! Gaps as an answer.

use super::{Gap, Gaps, Of, Parts, Scope, ScopeSums};
use crate::answer::{Answer, Form, Level, Section, Value, Window, columns, key};
use crate::records::{Facts, NONE, Records};

columns! {
    /// A GPU, queue or stream with the sums of its gaps.
    SummaryRow {
        key: Key "Key" 9 "Identity of the row: `gpu`, recording, GPU and queue or stream",
        gpu: Count "GPU" 0 "Number of the GPU",
        part: Count "Part" 6 "Number of the queue or stream; null for a whole GPU",
        arch: Word "Arch" 4 "Processor of the GPU",
        window_ns: Nanoseconds "Window" 0 "Length of the window",
        busy_ns: Nanoseconds "Busy" 0 "Time in which a kernel (or any operation, by --of) ran",
        gap_ns: Nanoseconds "Gaps" 0 "Time of all gaps",
        gap_share: Share "Gaps" 0 "Time of all gaps as a share of the window",
        gaps: Count "Number" 1 "Number of gaps",
        short_gaps: Count "Short" 3 "Number of gaps below the least length that is listed",
        short_ns: Nanoseconds "Short" 3 "Time of the gaps below the least length",
        copy_ns: Nanoseconds "copy" 2 "Part in which a copy ran and no kernel",
        host_ns: Nanoseconds "host" 2 "Part in which the program had not requested the next operation",
        host_sync_ns: Nanoseconds "sync" 5 "Part of host_ns in calls that wait",
        host_alloc_ns: Nanoseconds "alloc" 5 "Part of host_ns in calls that allocate or free memory",
        host_load_ns: Nanoseconds "load" 5 "Part of host_ns in calls that load or compile code",
        host_launch_ns: Nanoseconds "launches" 5 "Part of host_ns in calls that launch other work",
        host_api_ns: Nanoseconds "api" 5 "Part of host_ns in other recorded calls",
        host_program_ns: Nanoseconds "program" 5 "Part of host_ns outside of recorded calls",
        launch_ns: Nanoseconds "launch" 2 "Part that is the way from the call to the GPU",
        turnaround_ns: Nanoseconds "turnaround" 2 "Part from the end of a kernel to the start of one queued before",
        graph_ns: Nanoseconds "graph" 2 "Part between kernels of one graph launch",
        wait_ns: Nanoseconds "wait" 2 "Part in which the operation was requested and did not start",
        unrecorded_ns: Nanoseconds "unrecorded" 2 "Part whose cause is unknown because the launch call is not recorded",
        probe_ns: Nanoseconds "probe" 8 "Part that recording cost; null while recordings do not say",
        verdict: Word "Verdict" 0 "device-bound, host-bound, copy-bound, comm-bound, dependency-bound, mixed or unknown",
    }
}

columns! {
    /// A cause with its time, of one GPU, queue or stream.
    CauseRow {
        key: Key "Key" 9 "Identity of the row: `cause`, GPU, queue or stream, cause",
        gpu: Count "GPU" 0 "Number of the GPU",
        part: Count "Part" 6 "Number of the queue or stream; null for a whole GPU",
        cause: Word "Cause" 0 "Cause of gaps",
        time_ns: Nanoseconds "Time" 0 "Time of gaps with this cause",
        share: Share "Share" 0 "Time as a share of all gaps",
        gaps: Count "Gaps" 0 "Number of gaps in which the cause has a part",
        meaning: Name "What it means" 0 "The cause in words",
    }
}

columns! {
    /// A gap.
    GapRow {
        key: Key "Key" 9 "Identity of the gap: `gap`, recording, GPU, start",
        gpu: Count "GPU" 2 "Number of the GPU",
        part: Count "Part" 6 "Number of the queue or stream; null for a whole GPU",
        start_ns: Nanoseconds "Start" 4 "Begin on the recording's clock",
        start_rel_ns: Nanoseconds "At" 1 "Begin, from the begin of the window",
        gap_ns: Nanoseconds "Gap" 0 "Length",
        cause: Word "Cause" 0 "Cause of the longest part",
        copy_ns: Nanoseconds "copy" 5 "Part in which a copy ran and no kernel",
        host_ns: Nanoseconds "host" 3 "Part in which the program had not requested the opener",
        host_sync_ns: Nanoseconds "sync" 7 "Part of host_ns in calls that wait",
        host_alloc_ns: Nanoseconds "alloc" 7 "Part of host_ns in calls that allocate or free memory",
        host_load_ns: Nanoseconds "load" 7 "Part of host_ns in calls that load or compile code",
        host_launch_ns: Nanoseconds "launches" 7 "Part of host_ns in calls that launch other work",
        host_api_ns: Nanoseconds "api" 7 "Part of host_ns in other recorded calls",
        host_program_ns: Nanoseconds "program" 7 "Part of host_ns outside of recorded calls",
        launch_ns: Nanoseconds "launch" 5 "Part that is the way from the call to the GPU",
        turnaround_ns: Nanoseconds "turnaround" 6 "Part from the end of a kernel to the start of one queued before",
        graph_ns: Nanoseconds "graph" 6 "Part between kernels of one graph launch",
        wait_ns: Nanoseconds "wait" 5 "Part in which the opener was requested and did not start",
        unrecorded_ns: Nanoseconds "unrecorded" 6 "Part whose cause is unknown because the launch call is not recorded",
        closer: Name "After" 1 "Name of the operation that ended last before the gap",
        opener: Name "Before" 0 "Name of the operation that ends the gap",
        opener_key: Key "Opener" 9 "Key of the operation that ends the gap",
        thread: Count "Thread" 5 "Thread that launched the opener",
        call: Name "Call" 2 "Longest call in the host part, on the thread that launched the opener",
        site: Name "Launched at" 4 "Place in the source that launched the opener; null without stacks",
        iteration: Count "Iteration" 8 "Iteration that the opener belongs to; null without iterations",
        probe_ns: Nanoseconds "probe" 8 "Part that recording cost; null while recordings do not say",
    }
}

columns! {
    /// Gaps that have something in common.
    SumRow {
        key: Key "Key" 9 "Identity of the row: `gaps-by` and the name",
        name: Name "Name" 0 "Cause, opener or caller, by --by",
        gaps: Count "Gaps" 0 "Number of gaps",
        gap_ns: Nanoseconds "Time" 0 "Their time, without parts of other causes when --by is cause",
        share: Share "Share" 0 "Time as a share of all gaps",
        longest_ns: Nanoseconds "Longest" 1 "Longest one",
        copy_ns: Nanoseconds "copy" 2 "Part in which a copy ran",
        host_ns: Nanoseconds "host" 2 "Part in which the program had not requested the next operation",
        launch_ns: Nanoseconds "launch" 2 "Part that is the way from the call to the GPU",
        turnaround_ns: Nanoseconds "turnaround" 3 "Part from the end of a kernel to the start of one queued before",
        graph_ns: Nanoseconds "graph" 3 "Part between kernels of one graph launch",
        wait_ns: Nanoseconds "wait" 2 "Part in which the operation was requested and did not start",
        unrecorded_ns: Nanoseconds "unrecorded" 3 "Part of unknown cause",
    }
}

/// The form of the answer.
pub const FORM: Form = Form {
    command: "gaps",
    question: "When does a GPU not compute, and why?",
    sections: &[
        (
            "summary",
            "Each GPU, queue or stream with the sums of its gaps",
            SummaryRow::COLUMNS,
        ),
        (
            "causes",
            "The causes of all gaps, by time",
            CauseRow::COLUMNS,
        ),
        ("gaps", "The longest gaps; without --by", GapRow::COLUMNS),
        ("by", "Gaps added up by what --by names", SumRow::COLUMNS),
    ],
};

/// What a GPU's time is bound by.
pub(crate) fn verdict(sums: &ScopeSums, has_calls: bool) -> &'static str {
    let window = sums.window.1.saturating_sub(sums.window.0) as f64;
    let gaps = sums.parts.total() as f64;
    // The share of the gaps and of the window that a cause needs.
    let binds = |time: u64| time as f64 >= 0.5 * gaps && time as f64 >= 0.1 * window;
    if gaps < 0.05 * window {
        "device-bound"
    } else if !has_calls {
        "unknown"
    } else if binds(sums.parts.host_time() + sums.parts.launch) {
        "host-bound"
    } else if binds(sums.parts.copy) {
        "copy-bound"
    } else if sums.exposed_comm as f64 >= 0.25 * window {
        "comm-bound"
    } else if binds(sums.parts.wait + sums.parts.graph) {
        "dependency-bound"
    } else {
        "mixed"
    }
}

const MEANINGS: [(&str, &str); 7] = [
    ("copy", "a copy ran and no kernel"),
    ("host", "the program asked late"),
    ("launch", "the way from the call to the GPU"),
    (
        "turnaround",
        "queued before; end of one kernel to start of the next",
    ),
    ("graph", "scheduling inside a graph launch"),
    ("wait", "asked for, not started"),
    ("unrecorded", "not known: the launch calls are not recorded"),
];

/// The part of a scope in keys.
fn part_key(sums: &ScopeSums) -> String {
    match sums.part {
        NONE => String::new(),
        part => format!(":{part}"),
    }
}

fn part(sums: &ScopeSums) -> Value {
    match sums.part {
        NONE => Value::Null,
        part => part.into(),
    }
}

impl Gaps {
    /// The gaps as an answer.
    pub fn answer(&self, records: &dyn Records) -> Answer {
        let facts = records.facts();
        let mut answer = Answer::new("gaps");
        let bounds = |pick: fn(&ScopeSums) -> u64| self.scopes.iter().map(pick);
        let start = bounds(|sums| sums.window.0).min();
        let end = bounds(|sums| sums.window.1).max();
        answer.window = start.zip(end).map(|(start, end)| Window {
            kind: match self.options.window {
                Some(_) => "given",
                None => "span",
            },
            start,
            end,
        });
        let how = |measured| if measured { "measured" } else { "default" };
        answer.parameters = vec![
            ("min_ns", self.options.min.into()),
            (
                "of",
                match self.options.of {
                    Of::Kernels => "kernels".into(),
                    Of::Any => "any".into(),
                },
            ),
            (
                "scope",
                match self.options.scope {
                    Scope::Gpu => "gpu".into(),
                    Scope::Queue => "queue".into(),
                    Scope::Stream => "stream".into(),
                },
            ),
            ("launch_floor_ns", self.floors.launch.into()),
            ("launch_floor", how(self.floors.is_launch_measured).into()),
            ("turnaround_floor_ns", self.floors.turnaround.into()),
            (
                "turnaround_floor",
                how(self.floors.is_turnaround_measured).into(),
            ),
        ];
        answer.skew = self.skew;
        answer.is_empty = self.scopes.is_empty();
        let last = match self.options.by {
            Some(_) => self.by(),
            None => self.list(records),
        };
        answer.main = last.name;
        answer.sections = vec![self.summary(facts), self.causes(facts), last];
        self.limits(facts, &mut answer);
        answer
    }

    fn summary(&self, facts: &Facts) -> Section {
        let rows = self.scopes.iter().map(|sums| {
            let window = sums.window.1.saturating_sub(sums.window.0);
            let gpu = &facts.gpus[sums.gpu as usize];
            let parts = &sums.parts;
            let [sync, alloc, load, launch, api, program] = parts.host;
            SummaryRow {
                key: key(&[&"gpu", &gpu.node, &gpu.id, &part_key(sums)]).into(),
                gpu: gpu.number.into(),
                part: part(sums),
                arch: gpu.arch.as_str().into(),
                window_ns: window.into(),
                busy_ns: sums.busy.into(),
                gap_ns: parts.total().into(),
                gap_share: Value::ratio(parts.total(), window),
                gaps: sums.gaps.into(),
                short_gaps: sums.short_gaps.into(),
                short_ns: sums.short.total().into(),
                copy_ns: parts.copy.into(),
                host_ns: parts.host_time().into(),
                host_sync_ns: sync.into(),
                host_alloc_ns: alloc.into(),
                host_load_ns: load.into(),
                host_launch_ns: launch.into(),
                host_api_ns: api.into(),
                host_program_ns: program.into(),
                launch_ns: parts.launch.into(),
                turnaround_ns: parts.turnaround.into(),
                graph_ns: parts.graph.into(),
                wait_ns: parts.wait.into(),
                unrecorded_ns: parts.unrecorded.into(),
                probe_ns: Value::Null,
                verdict: verdict(sums, self.launched > 0).into(),
            }
            .cells()
        });
        Section::new("summary", SummaryRow::COLUMNS, rows.collect())
    }

    fn causes(&self, facts: &Facts) -> Section {
        let mut rows = Vec::new();
        for sums in &self.scopes {
            let gpu = &facts.gpus[sums.gpu as usize];
            let mut causes: Vec<_> = sums.parts.each().into_iter().zip(sums.caused).collect();
            causes.sort_by_key(|cause| std::cmp::Reverse(cause.0.1));
            for ((cause, time), gaps) in causes.into_iter().filter(|cause| cause.0.1 > 0) {
                let known = MEANINGS.iter().find(|known| known.0 == cause);
                rows.push(
                    CauseRow {
                        key: key(&[&"cause", &gpu.node, &gpu.id, &part_key(sums), &cause]).into(),
                        gpu: gpu.number.into(),
                        part: part(sums),
                        cause: cause.into(),
                        time_ns: time.into(),
                        share: Value::ratio(time, sums.parts.total()),
                        gaps: gaps.into(),
                        meaning: known.map(|known| known.1).into(),
                    }
                    .cells(),
                );
            }
        }
        Section::new("causes", CauseRow::COLUMNS, rows)
    }

    fn list(&self, records: &dyn Records) -> Section {
        let facts = records.facts();
        let mut rows: Vec<_> = self
            .listed
            .iter()
            .map(|gap| self.row(records, gap))
            .collect();
        for sums in self.scopes.iter().filter(|sums| sums.short_gaps > 0) {
            let gpu = &facts.gpus[sums.gpu as usize];
            let mut row = parts_of(&sums.short);
            row.key = key(&[&"short", &gpu.node, &gpu.id, &part_key(sums)]).into();
            row.gpu = gpu.number.into();
            row.part = part(sums);
            row.gap_ns = sums.short.total().into();
            row.cause = "short".into();
            rows.push(row.cells());
        }
        let short = self
            .scopes
            .iter()
            .filter(|sums| sums.short_gaps > 0)
            .count() as u64;
        Section {
            name: "gaps",
            columns: GapRow::COLUMNS,
            rows,
            total: self.long_gaps + short,
            paragraphs: None,
        }
    }

    fn row(&self, records: &dyn Records, gap: &Gap) -> Vec<Value> {
        let facts = records.facts();
        let sums = &self.scopes[gap.scope];
        let gpu = &facts.gpus[sums.gpu as usize];
        let launch = gap.opener.and_then(|op| op.launch);
        let process = gap.opener.map_or(NONE, |op| op.process);
        let mut row = parts_of(&gap.parts);
        let name = format!("gpu:{}{}", gpu.number, part_key(sums));
        row.key = key(&[&"gap", &facts.guid(process), &name, &gap.start]).into();
        row.gpu = gpu.number.into();
        row.part = part(sums);
        row.start_ns = gap.start.into();
        row.start_rel_ns = gap.start.saturating_sub(sums.window.0).into();
        row.gap_ns = gap.length().into();
        row.cause = gap.parts.label().into();
        if gap.closer != NONE {
            row.closer = facts.name(gap.closer).into();
        }
        row.opener = gap.opener.map(|op| facts.name(op.name)).into();
        let opener = |op: crate::records::Op| {
            let kind = if op.is_kernel { "kernel" } else { "copy" };
            key(&[&kind, &facts.guid(op.process), &op.id])
        };
        row.opener_key = gap.opener.map(opener).into();
        let thread = launch.and_then(|launch| facts.threads.get(launch.thread as usize));
        row.thread = thread.map(|thread| thread.tid).into();
        row.call = gap.call.map(|call| facts.name(call.name)).into();
        row.site = launch
            .and_then(|launch| records.site(process, launch.call))
            .into();
        row.cells()
    }

    fn by(&self) -> Section {
        let all: u64 = self.scopes.iter().map(|sums| sums.parts.total()).sum();
        let mut sums: Vec<_> = self.sums.iter().collect();
        sums.sort_by_key(|sums| std::cmp::Reverse(sums.1.parts.total()));
        let rows = sums.into_iter().map(|(name, sums)| {
            SumRow {
                key: key(&[&"gaps-by", name]).into(),
                name: name.as_str().into(),
                gaps: sums.gaps.into(),
                gap_ns: sums.parts.total().into(),
                share: Value::ratio(sums.parts.total(), all),
                longest_ns: sums.longest.into(),
                copy_ns: sums.parts.copy.into(),
                host_ns: sums.parts.host_time().into(),
                launch_ns: sums.parts.launch.into(),
                turnaround_ns: sums.parts.turnaround.into(),
                graph_ns: sums.parts.graph.into(),
                wait_ns: sums.parts.wait.into(),
                unrecorded_ns: sums.parts.unrecorded.into(),
            }
            .cells()
        });
        Section::new("by", SumRow::COLUMNS, rows.collect())
    }

    /// What is missing, and what limits the figures.
    fn limits(&self, facts: &Facts, answer: &mut Answer) {
        if self.ops == 0 {
            answer.lacks(
                "ops",
                &["gaps"],
                "the recording has no kernel and no copy",
                "--kernel-trace --memory-copy-trace",
            );
        }
        if self.ops > 0 && self.launched == 0 {
            answer.lacks(
                "hip_calls",
                &["cause", "host_ns", "launch_ns", "wait_ns"],
                "the launch calls are not recorded",
                "--hip-trace",
            );
        }
        if !facts.recorded.copies && self.ops > 0 {
            answer.lacks(
                "copies",
                &["copy_ns"],
                "no copy is recorded",
                "--memory-copy-trace",
            );
        }
        if !facts.recorded.stacks && self.launched > 0 {
            answer.lacks("stacks", &["site"], "the calls have no stacks", "--stacks");
        }
        answer.lacks(
            "cost",
            &["probe_ns"],
            "the recording does not say what it cost",
            "",
        );
        common(facts, answer, self.without_length);
    }
}

/// Warnings that every answer about times has.
pub(crate) fn common(facts: &Facts, answer: &mut Answer, without_length: u64) {
    if without_length > 0 {
        let text = format!(
            "{without_length} operations end at or before their start; they have no length"
        );
        answer.warn("zero-length", Level::Note, text);
    }
    if answer.skew >= 1_000 {
        let text = format!(
            "an operation begins {} ns before the call that requested it: the clocks of host and device differ",
            answer.skew
        );
        answer.warn("clock-skew", Level::Caution, text);
    }
    if facts.recorded.lost > 0 {
        let text = format!("{} records are lost", facts.recorded.lost);
        answer.warn("lost-records", Level::Caution, text);
    }
    if facts.recorded.is_light {
        answer.warn(
            "light",
            Level::Caution,
            "a light recording keeps only the latest operations",
        );
    }
    if facts.recorded.is_counted {
        answer.warn(
            "serialised",
            Level::Caution,
            "counting made kernels run alone",
        );
    }
    if facts.gpus.iter().any(|gpu| gpu.is_simulated) {
        answer.warn(
            "simulated",
            Level::Note,
            "the GPU is simulated: times are those of its interpreter, not of hardware",
        );
    }
    let mut archs: Vec<&str> = facts.gpus.iter().map(|gpu| gpu.arch.as_str()).collect();
    archs.sort_unstable();
    archs.dedup();
    if archs.len() > 1 {
        let text = format!("GPUs of different kinds: {}", archs.join(", "));
        answer.warn("mixed-hardware", Level::Note, text);
    }
}

fn parts_of(parts: &Parts) -> GapRow {
    let [sync, alloc, load, launch, api, program] = parts.host;
    GapRow {
        copy_ns: parts.copy.into(),
        host_ns: parts.host_time().into(),
        host_sync_ns: sync.into(),
        host_alloc_ns: alloc.into(),
        host_load_ns: load.into(),
        host_launch_ns: launch.into(),
        host_api_ns: api.into(),
        host_program_ns: program.into(),
        launch_ns: parts.launch.into(),
        turnaround_ns: parts.turnaround.into(),
        graph_ns: parts.graph.into(),
        wait_ns: parts.wait.into(),
        unrecorded_ns: parts.unrecorded.into(),
        ..GapRow::default()
    }
}
