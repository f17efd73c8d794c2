//! The figures of a recording.

mod functions;
mod gap_sums;
mod gpu;
mod kernel;
mod run;

use std::collections::BTreeMap;

use super::counted::Evidence;
use super::ranks::match_collectives;
use super::{Source, Subject, streams};
use crate::answer::Window;
use crate::breakdown::{self, By};
use crate::classes::Class;
use crate::distribution::Distribution;
use crate::iterations::Iterations;
use crate::records::{Op, Records};

/// Parts of the window of which utilisation is measured.
const PARTS: u32 = 30;
/// Length of a kernel that the interpreter of a simulated GPU executes in less time than it takes to come to it.
const SHORT_SIMULATED: u64 = 30_000;
/// Most that a wait for a simulated GPU is charged with: a host that is busy with the interpreter wakes late.
const LATE_WAKING: u64 = 100_000;

/// What tells kernels apart: GPU, name, grid, group, bytes of LDS.
type KernelKey = (u32, u32, [u32; 3], [u32; 3], u32);

/// Sums of a kernel with one geometry on one GPU.
#[derive(Default)]
struct OfKernel {
    times: Distribution,
    calls: Distribution,
    last: Option<Op>,
}

/// Sums of a GPU's operations.
#[derive(Default)]
struct OfGpu {
    kernels: Distribution,
    ops: u64,
    graph_ops: u64,
    shader_copy: u64,
    /// Start of the first operation and end of the last one.
    span: Option<(u64, u64)>,
    /// Of simulated GPUs: time of short kernels that are of no graph.
    short: u64,
    streams: BTreeMap<u32, u64>,
    /// Durations, durations times rounds, and durations of what fills the GPU.
    filling: (f64, f64, f64),
}

/// Sums of a direction.
#[derive(Default)]
struct OfCopy {
    sizes: Distribution,
    time: u64,
    best: f64,
    is_peer: bool,
}

fn kernel_key(op: &Op) -> KernelKey {
    (op.gpu, op.name, op.grid, op.group, op.lds)
}

fn ratio(part: f64, whole: f64) -> f64 {
    match whole {
        0.0 => 0.0,
        _ => part / whole,
    }
}

/// All figures of a recording.
pub(in crate::advise) fn measure(
    records: &dyn Records,
    window: &Window,
    found: Option<&Iterations>,
) -> Vec<Subject> {
    let facts = records.facts();
    let inside = (window.start, window.end);
    let waits = streams::find(records, window);
    let (gaps, sums) = gap_sums::add_up(records, window, &waits);
    let options = breakdown::Options {
        window: Some(inside),
        by: By::Chunks(PARTS),
        ..breakdown::Options::default()
    };
    let Some(broken) = breakdown::measure(records, &options) else {
        return Vec::new();
    };
    let mut kernels: BTreeMap<KernelKey, OfKernel> = BTreeMap::new();
    let mut gpus: BTreeMap<u32, OfGpu> = BTreeMap::new();
    let mut copies: BTreeMap<u32, OfCopy> = BTreeMap::new();
    let mut skewed = 0_u64;
    let mut launched = 0_u64;
    let mut iteration_copies: BTreeMap<u32, u64> = BTreeMap::new();
    for op in records
        .ops()
        .filter(|op| op.start >= window.start && op.start < window.end)
    {
        let gpu = gpus.entry(op.gpu).or_default();
        gpu.ops += 1;
        let span = gpu.span.get_or_insert((op.start, op.end));
        span.1 = span.1.max(op.end);
        if let Some(launch) = op.launch {
            gpu.graph_ops += u64::from(launch.is_graph);
            launched += 1;
            skewed += u64::from(op.start < launch.begin);
        }
        if !op.is_kernel {
            if op.is_second {
                copies.entry(op.name).or_default().is_peer = true;
                continue;
            }
            *iteration_copies.entry(op.name).or_default() += 1;
            let copy = copies.entry(op.name).or_default();
            copy.sizes.add(op.bytes);
            copy.time += op.length();
            if op.length() > 0 {
                copy.best = copy.best.max(op.bytes as f64 / (op.length() as f64 / 1e9));
            }
            continue;
        }
        *gpu.streams.entry(op.stream).or_default() += 1;
        gpu.kernels.add(op.length());
        let is_of_graph = op.launch.is_some_and(|launch| launch.is_graph);
        let is_simulated = facts.gpus[op.gpu as usize].is_simulated;
        if is_simulated && !is_of_graph && op.length() < SHORT_SIMULATED {
            gpu.short += op.length();
        }
        if op.class == Class::Copy {
            gpu.shader_copy += op.length();
        }
        let kernel = kernels.entry(kernel_key(&op)).or_default();
        kernel.times.add(op.length());
        if let Some(launch) = op.launch.filter(|launch| !launch.is_graph) {
            kernel.calls.add(launch.end.saturating_sub(launch.begin));
        }
        kernel.last = Some(op);
    }
    let iterations = found.map_or(0, |found| found.steady().len()) as f64;
    let mut subjects = Vec::new();
    let all_kernels: u64 = kernels.values().map(|kernel| kernel.times.sum()).sum();
    let evidence = Evidence::new(records);
    // Median lengths by name, grid and group.
    let typical: BTreeMap<_, f64> = kernels
        .iter_mut()
        .filter_map(|((_, name, grid, group, _), kernel)| {
            Some(((*name, (*grid, *group)), kernel.times.median()?))
        })
        .collect();
    let collectives = match_collectives(records, window, iterations);
    for ((gpu, name, ..), kernel) in &mut kernels {
        let measure = &broken.gpus[*gpu as usize].whole;
        let overlap = ratio(measure.several as f64, measure.busy() as f64);
        if let Some(op) = kernel.last {
            let mut subject =
                kernel::kernel_subject(facts, window, &op, kernel, all_kernels, overlap);
            let before = sums.before.get(&kernel_key(&op)).copied().unwrap_or(0);
            subject.count("gap_before_ns", before);
            let places = subject
                .value("waves")
                .zip(subject.value("occupancy"))
                .map(|(waves, share)| waves / share);
            evidence.set(&mut subject, *name, *gpu, places, |geometry| {
                typical.get(&(*name, *geometry)).copied()
            });
            let length = kernel.times.sum() as f64;
            let filling = &mut gpus.entry(*gpu).or_default().filling;
            if let Some(rounds) = subject.value("rounds") {
                filling.0 += length;
                filling.1 += length * rounds;
                filling.2 += if rounds >= 1.0 { length } else { 0.0 };
            }
            subjects.push(subject);
        }
    }
    for (number, gpu) in &mut gpus {
        let mut subject = gpu::gpu_subject(facts, window, *number, gpu, &broken, &gaps, &sums);
        gpu::add_waits(&mut subject, *number, &waits, gaps.launched > 0);
        let exposed = subject.value("exposed_comm_ns").unwrap_or(0.0);
        let transfer = collectives.transfer_share(*number);
        subject.set("exposed_comm_ns", exposed * transfer);
        subjects.push(subject);
    }
    subjects.extend(functions::copy_subjects(
        facts,
        window,
        &mut copies,
        iterations,
    ));
    subjects.extend(functions::call_subjects(records, window, iterations, &sums));
    let mut run = Subject::new(Source::Run, "run", window);
    run.count("lost", facts.recorded.lost);
    run.flag(
        "is_simulated",
        facts.gpus.iter().all(|gpu| gpu.is_simulated),
    );
    run.set("iterations", iterations);
    if launched > 0 {
        run.set("skewed_share", ratio(skewed as f64, launched as f64));
        let short: u64 = gpus.values().map(|gpu| gpu.short).sum();
        run.count("launching_ns", sums.launching + short);
        run.count("alloc_gap_ns", sums.allocating);
        run.count("load_gap_ns", sums.loading);
        run.count("graph_gap_ns", sums.before_graphs);
        run.count("host_func_wait_ns", sums.host_functions);
    }
    run.count("markers", records.ranges().count() as u64);
    run::add_gpus(facts, &mut run, &broken);
    run::add_ranks(facts, &mut run, &collectives);
    run::add_iterations(&mut run, found);
    if facts.recorded.calls {
        run::add_calls(records, window, found, &mut run);
    }
    run::add_copies(records, window, &mut run);
    subjects.push(run);
    subjects
}
