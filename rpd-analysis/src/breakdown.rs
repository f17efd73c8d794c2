//! What the time of GPUs goes to: computation, communication, copies and fills that nothing else covers, and idle time.

use std::collections::BTreeMap;

use crate::answer::{Answer, Form, Section, Value, Window, columns, key};
use crate::classes::{Categories, Class};
use crate::gaps::report_common;
use crate::records::{Facts, Records};
use crate::sweep::{Measure, Running, Sweep};

columns! {
    /// A GPU, or a part of its time.
    BreakdownRow {
        key: Key "Key" 9 "Identity of the row: GPU, and the part of the time",
        gpu: Name "GPU" 0 "Number of the GPU; `all` is the sum of times and the mean of shares",
        part: Name "Part" 0 "Part of the time: chunk or iteration; null for the window",
        start_ns: Nanoseconds "Start" 8 "Begin of the part on the recording's clock",
        window_ns: Nanoseconds "Window" 0 "Length of the window or part",
        compute_ns: Nanoseconds "Compute" 0 "Time in which a kernel computes",
        exposed_comm_ns: Nanoseconds "Exp. comm" 1 "Time of communication that no computation covers",
        exposed_copy_ns: Nanoseconds "Exp. copy" 0 "Time of copies that neither computation nor communication covers",
        exposed_fill_ns: Nanoseconds "Exp. fill" 1 "Time of fills that nothing else covers",
        idle_ns: Nanoseconds "Idle" 0 "Time in which nothing runs; with the four before it adds up to the window",
        comm_ns: Nanoseconds "Comm" 4 "Time in which communication runs",
        comm_overlap: Share "Comm hidden" 4 "Share of comm_ns under computation",
        copy_ns: Nanoseconds "Copy" 3 "Time in which copies run",
        copy_overlap: Share "Copy hidden" 3 "Share of copy_ns under computation",
        busy_ns: Nanoseconds "Busy" 5 "Time in which anything runs",
        sum_ns: Nanoseconds "Sum" 5 "Durations added up",
        concurrency: Number "Concurrency" 2 "Durations added up over the time in which anything runs: 1 when nothing overlaps",
        utilisation: Share "Utilisation" 0 "Share of the window in which anything runs; says nothing about how full the GPU is",
        min_utilisation: Share "Least" 7 "Least utilisation of a GPU, in the row of all",
        max_utilisation: Share "Greatest" 7 "Greatest utilisation of a GPU, in the row of all",
        ops: Count "Ops" 6 "Number of operations",
    }
}

columns! {
    /// A category of kernels.
    CategoryRow {
        key: Key "Key" 9 "Identity of the row: `category` and its name",
        category: Name "Category" 0 "Name of the category",
        kernels: Count "Kernels" 1 "Number of different kernels",
        calls: Count "Calls" 0 "Number of dispatches",
        sum_ns: Nanoseconds "Time" 0 "Durations added up",
        share: Share "Share" 0 "Share of the durations of all kernels",
        avg_ns: Nanoseconds "Average" 1 "Mean duration",
    }
}

columns! {
    /// A process on a GPU that several share.
    ProcessRow {
        key: Key "Key" 9 "Identity of the row: `process`, recording and GPU",
        gpu: Count "GPU" 0 "Number of the GPU",
        pid: Count "Process" 0 "Process id",
        busy_ns: Nanoseconds "Busy" 0 "Time in which an operation of the process runs; not to be added up",
        sum_ns: Nanoseconds "Sum" 1 "Durations added up",
        ops: Count "Ops" 0 "Number of operations",
    }
}

columns! {
    /// How evenly GPUs share the work.
    ImbalanceRow {
        key: Key "Key" 9 "Identity of the row: `imbalance` and the measure",
        measure: Word "Measure" 0 "What is compared",
        gpus: Count "GPUs" 0 "Number of GPUs",
        min_ns: Nanoseconds "Least" 0 "Least of a GPU",
        max_ns: Nanoseconds "Greatest" 0 "Greatest of a GPU",
        mean_ns: Nanoseconds "Mean" 1 "Mean of all GPUs",
        imbalance: Share "Imbalance" 0 "Greatest over mean, less 1",
        lost_ns: Nanoseconds "Lost" 0 "Number of GPUs times the greatest, less the sum",
        lost_share: Share "Lost" 0 "lost_ns as a share of the number of GPUs times the greatest",
    }
}

/// The form of the answer.
pub const FORM: Form = Form {
    command: "breakdown",
    question: "What does the time of GPUs go to?",
    sections: &[
        (
            "breakdown",
            "Each GPU, or each part of its time",
            BreakdownRow::COLUMNS,
        ),
        ("categories", "Kernels by category", CategoryRow::COLUMNS),
        (
            "imbalance",
            "How evenly GPUs share the work; of two GPUs or more",
            ImbalanceRow::COLUMNS,
        ),
        (
            "processes",
            "Processes of GPUs that several share",
            ProcessRow::COLUMNS,
        ),
    ],
};

/// Parts of the window that get rows of their own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum By {
    /// None: the window alone.
    #[default]
    Window,
    /// This many parts of equal length.
    Chunks(u32),
    /// Given times with their names, in order and without overlap.
    Times(Vec<(u64, u64, String)>),
}

/// What is broken down.
#[derive(Debug, Default)]
pub struct Options {
    /// First instant and end of the window; `None` takes all operations of all GPUs.
    pub window: Option<(u64, u64)>,
    /// Parts with rows of their own.
    pub by: By,
    /// Categories of kernels.
    pub categories: Categories,
}

/// A GPU's measures.
#[derive(Debug, Clone, Default)]
pub struct OfGpu {
    /// Measure of the window.
    pub whole: Measure,
    /// Measure of each part.
    pub parts: Vec<Measure>,
    /// Measures by process, as index of the process.
    pub processes: BTreeMap<u32, Measure>,
}

/// Sums of kernels with one name.
#[derive(Debug, Clone, Copy, Default)]
struct Named {
    calls: u64,
    time: u64,
}

/// What the time of GPUs goes to.
#[derive(Debug)]
pub struct Breakdown {
    /// Window that all GPUs share.
    pub window: Window,
    /// Measures by GPU.
    pub gpus: Vec<OfGpu>,
    parts: Vec<(u64, u64, String)>,
    kernels: BTreeMap<u32, Named>,
    categories: Section,
    without_length: u64,
}

/// The span of all operations, or the window that is given.
pub(crate) fn window(records: &dyn Records, given: Option<(u64, u64)>) -> Option<Window> {
    if let Some((start, end)) = given {
        return Some(Window {
            kind: "given",
            start,
            end,
        });
    }
    let mut span: Option<(u64, u64)> = None;
    for op in records.ops() {
        let (start, end) = span.unwrap_or((op.start, op.start));
        span = Some((start.min(op.start), end.max(op.end)));
    }
    span.map(|(start, end)| Window {
        kind: "run",
        start,
        end,
    })
}

/// Measures the time of each GPU; `None` when there is no operation.
pub fn measure(records: &dyn Records, options: &Options) -> Option<Breakdown> {
    let window = window(records, options.window)?;
    let parts = match &options.by {
        By::Window => Vec::new(),
        By::Chunks(count) => chunks(&window, (*count).max(1)),
        By::Times(times) => times.clone(),
    };
    let facts = records.facts();
    let empty = OfGpu {
        parts: vec![Measure::default(); parts.len()],
        ..OfGpu::default()
    };
    let mut gpus = vec![empty; facts.gpus.len()];
    let mut sweeps: Vec<Sweep> = facts.gpus.iter().map(|_| Sweep::default()).collect();
    let mut of_process: BTreeMap<(u32, u32), (Sweep, Measure)> = BTreeMap::new();
    let mut kernels: BTreeMap<u32, Named> = BTreeMap::new();
    let mut without_length = 0;
    let several_processes = facts.processes.len() > 1;
    for op in records.ops() {
        // Counted before the window is looked at: they are what is wrong with a recording, not with a window.
        without_length += u64::from(op.end <= op.start);
        let (start, end) = (op.start.max(window.start), op.end.min(window.end));
        if op.start >= window.end || op.end < window.start {
            continue;
        }
        let length = end.saturating_sub(start);
        let class = op.class as usize;
        let gpu = &mut gpus[op.gpu as usize];
        gpu.whole.counts[class] += 1;
        gpu.whole.sums[class] += length;
        for (index, part) in overlapping(&parts, start, end) {
            let part_length = end.min(part.1).saturating_sub(start.max(part.0));
            gpu.parts[index].sums[class] += part_length;
            // An operation counts once, in the part in which it starts; its time is shared among the parts.
            gpu.parts[index].counts[class] += u64::from(op.start >= part.0 && op.start < part.1);
        }
        sweeps[op.gpu as usize].add(start, end, op.class, |running| gpu.add(running, &parts));
        // The time of a single process is that of the GPU.
        if several_processes {
            let (sweep, measure) = of_process.entry((op.gpu, op.process)).or_default();
            measure.counts[class] += 1;
            measure.sums[class] += length;
            sweep.add(start, end, op.class, |running| measure.add(running));
        }
        if op.is_kernel {
            let named = kernels.entry(op.name).or_default();
            named.calls += 1;
            named.time += length;
        }
    }
    // Sweeps are behind by what was still running.
    for (gpu, sweep) in gpus.iter_mut().zip(&mut sweeps) {
        sweep.finish(|running| gpu.add(running, &parts));
    }
    for ((gpu, process), (mut sweep, mut measure)) in of_process {
        sweep.finish(|running| measure.add(running));
        gpus[gpu as usize].processes.insert(process, measure);
    }
    let categories = categories(facts, &kernels, &options.categories);
    Some(Breakdown {
        window,
        gpus,
        parts,
        kernels,
        categories,
        without_length,
    })
}

fn chunks(window: &Window, count: u32) -> Vec<(u64, u64, String)> {
    let at = |index: u32| {
        let share = u128::from(window.length()) * u128::from(index) / u128::from(count);
        window.start + share as u64
    };
    let chunk = |index| (at(index), at(index + 1), (index + 1).to_string());
    (0..count).map(chunk).collect()
}

/// The parts that have time in common with an interval, with their places.
fn overlapping(
    parts: &[(u64, u64, String)],
    start: u64,
    end: u64,
) -> impl Iterator<Item = (usize, &(u64, u64, String))> {
    let first = parts.partition_point(|part| part.1 <= start);
    let found = parts.iter().enumerate().skip(first);
    found.take_while(move |(_, part)| part.0 < end || part.0 == start)
}

impl OfGpu {
    fn add(&mut self, running: Running, parts: &[(u64, u64, String)]) {
        self.whole.add(running);
        for (index, part) in overlapping(parts, running.start, running.end) {
            let cut = Running {
                start: running.start.max(part.0),
                end: running.end.min(part.1),
                ..running
            };
            if cut.end > cut.start {
                self.parts[index].add(cut);
            }
        }
    }
}

fn categories(facts: &Facts, kernels: &BTreeMap<u32, Named>, known: &Categories) -> Section {
    let mut sums: BTreeMap<&str, (u64, Named)> = BTreeMap::new();
    for (name, named) in kernels {
        let (kernels, sum) = sums.entry(known.of(facts.name(*name))).or_default();
        *kernels += 1;
        sum.calls += named.calls;
        sum.time += named.time;
    }
    let all: u64 = sums.values().map(|sum| sum.1.time).sum();
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(name, sum)| (std::cmp::Reverse(sum.1.time), *name));
    let rows = sums.into_iter().map(|(name, (kernels, sum))| {
        CategoryRow {
            key: key(&[&"category", &name]).into(),
            category: name.into(),
            kernels: kernels.into(),
            calls: sum.calls.into(),
            sum_ns: sum.time.into(),
            share: Value::ratio(sum.time, all),
            avg_ns: sum.time.checked_div(sum.calls).into(),
        }
        .cells()
    });
    Section::new("categories", CategoryRow::COLUMNS, rows.collect())
}

/// Greatest over mean less 1, and what is lost by waiting for the greatest, of some measures; `None` below two or when all are 0.
pub fn imbalance(values: &[u64]) -> Option<(f64, u64)> {
    let max = values.iter().copied().max().filter(|max| *max > 0)?;
    if values.len() < 2 {
        return None;
    }
    let sum: u64 = values.iter().sum();
    let mean = sum as f64 / values.len() as f64;
    Some((max as f64 / mean - 1.0, values.len() as u64 * max - sum))
}

fn row(measure: &Measure, length: u64) -> BreakdownRow {
    let share = |part: u64, whole: u64| Value::ratio(part, whole);
    BreakdownRow {
        window_ns: length.into(),
        compute_ns: measure.union(Class::Compute).into(),
        exposed_comm_ns: measure.exposed(Class::Comm).into(),
        exposed_copy_ns: measure.exposed(Class::Copy).into(),
        exposed_fill_ns: measure.exposed(Class::Fill).into(),
        idle_ns: length.saturating_sub(measure.busy()).into(),
        comm_ns: measure.union(Class::Comm).into(),
        comm_overlap: share(
            measure.overlap(Class::Comm, Class::Compute),
            measure.union(Class::Comm),
        ),
        copy_ns: measure.union(Class::Copy).into(),
        copy_overlap: share(
            measure.overlap(Class::Copy, Class::Compute),
            measure.union(Class::Copy),
        ),
        busy_ns: measure.busy().into(),
        sum_ns: measure.sum().into(),
        concurrency: share(measure.sum(), measure.busy()),
        utilisation: share(measure.busy(), length),
        ops: measure.counts.iter().sum::<u64>().into(),
        ..BreakdownRow::default()
    }
}

/// The differences between the computing times of GPUs; `None` for fewer than two that compute.
fn imbalance_row(gpus: &[&(usize, &OfGpu)]) -> Option<ImbalanceRow> {
    let compute: Vec<u64> = gpus
        .iter()
        .map(|gpu| gpu.1.whole.union(Class::Compute))
        .collect();
    let (share, lost) = imbalance(&compute)?;
    let max = compute.iter().copied().max().unwrap_or(0);
    let sum: u64 = compute.iter().sum();
    Some(ImbalanceRow {
        key: key(&[&"imbalance", &"compute"]).into(),
        measure: "compute".into(),
        gpus: compute.len().into(),
        min_ns: compute.iter().copied().min().into(),
        max_ns: max.into(),
        mean_ns: (sum / compute.len() as u64).into(),
        imbalance: share.into(),
        lost_ns: lost.into(),
        lost_share: Value::ratio(lost, compute.len() as u64 * max),
    })
}

impl Breakdown {
    /// The breakdown as an answer.
    pub fn answer(&self, records: &dyn Records) -> Answer {
        let facts = records.facts();
        let mut answer = Answer::new("breakdown");
        answer.window = Some(self.window);
        let used = |gpu: &&(usize, &OfGpu)| gpu.1.whole.counts.iter().sum::<u64>() > 0;
        let gpus: Vec<(usize, &OfGpu)> = self.gpus.iter().enumerate().collect();
        let gpus: Vec<&(usize, &OfGpu)> = gpus.iter().filter(used).collect();
        let mut rows = Vec::new();
        for (index, of_gpu) in &gpus {
            let gpu = &facts.gpus[*index];
            let named = |row: BreakdownRow, part: &str| BreakdownRow {
                key: key(&[&"gpu", &gpu.node, &gpu.id, &part]).into(),
                gpu: gpu.number.to_string().into(),
                ..row
            };
            if self.parts.is_empty() {
                let mut whole = row(&of_gpu.whole, self.window.length());
                whole.start_ns = self.window.start.into();
                rows.push(named(whole, "").cells());
            }
            for (part, measure) in self.parts.iter().zip(&of_gpu.parts) {
                let mut row = row(measure, part.1 - part.0);
                row.part = part.2.as_str().into();
                row.start_ns = part.0.into();
                rows.push(named(row, &part.2).cells());
            }
        }
        if self.parts.is_empty() && gpus.len() > 1 {
            rows.push(self.all(&gpus).cells());
        }
        answer.main = "breakdown";
        answer.sections = vec![
            Section::new("breakdown", BreakdownRow::COLUMNS, rows),
            self.categories.clone(),
        ];
        // One GPU has nothing to be compared with.
        if let Some(row) = imbalance_row(&gpus) {
            let rows = vec![row.cells()];
            answer
                .sections
                .push(Section::new("imbalance", ImbalanceRow::COLUMNS, rows));
        }
        let processes = self.processes(facts);
        if !processes.is_empty() {
            answer
                .sections
                .push(Section::new("processes", ProcessRow::COLUMNS, processes));
        }
        if !facts.recorded.copies {
            answer.lacks(
                "copies",
                &["exposed_copy_ns", "copy_ns", "copy_overlap"],
                "no copy is recorded",
                "--memory-copy-trace",
            );
        }
        if self.kernels.is_empty() {
            answer.lacks(
                "kernels",
                &["compute_ns", "exposed_comm_ns", "categories"],
                "no kernel is recorded",
                "--kernel-trace",
            );
        }
        report_common(facts, &mut answer, self.without_length);
        answer
    }

    /// The row of all GPUs: sums of times, means of shares.
    fn all(&self, gpus: &[&(usize, &OfGpu)]) -> BreakdownRow {
        let mut joined = Measure::default();
        gpus.iter().for_each(|gpu| joined.join(&gpu.1.whole));
        let length = self.window.length();
        let all = length.saturating_mul(gpus.len() as u64);
        let shares = || {
            let share = |gpu: &&(usize, &OfGpu)| gpu.1.whole.busy() as f64 / length.max(1) as f64;
            gpus.iter().map(share)
        };
        BreakdownRow {
            key: key(&[&"gpu", &"all"]).into(),
            gpu: "all".into(),
            min_utilisation: shares().reduce(f64::min).into(),
            max_utilisation: shares().reduce(f64::max).into(),
            ..row(&joined, all)
        }
    }

    /// Processes of GPUs that several share.
    fn processes(&self, facts: &Facts) -> Vec<Vec<Value>> {
        let mut rows = Vec::new();
        for (gpu, of_gpu) in facts.gpus.iter().zip(&self.gpus) {
            for (process, measure) in of_gpu
                .processes
                .iter()
                .filter(|_| of_gpu.processes.len() > 1)
            {
                let process = &facts.processes[*process as usize];
                rows.push(
                    ProcessRow {
                        key: key(&[&"process", &process.guid, &gpu.node, &gpu.id]).into(),
                        gpu: gpu.number.into(),
                        pid: process.pid.into(),
                        busy_ns: measure.busy().into(),
                        sum_ns: measure.sum().into(),
                        ops: measure.counts.iter().sum::<u64>().into(),
                    }
                    .cells(),
                );
            }
        }
        rows
    }
}

#[cfg(test)]
mod tests;
