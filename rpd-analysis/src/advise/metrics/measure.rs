//! The figures of a recording.

use std::collections::{BTreeMap, HashMap};

use super::counted::Evidence;
use super::ranks::{Collectives, match_collectives};
use super::streams::{self, Waits};
use super::{Source, Subject};
use crate::answer::{Unit, Window, key, shown};
use crate::breakdown::{self, By};
use crate::classes::{Calls, Class, Doing};
use crate::distribution::Distribution;
use crate::gaps;
use crate::iterations::{Found, Iterations};
use crate::occupancy::{Mode, Needs, occupancy, rounds, unit as occupancy_unit};
use crate::outliers::{Group, variability};
use crate::records::{Facts, NONE, Op, Records};

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

/// What gaps say, by GPU and by function.
#[derive(Default)]
struct OfGaps {
    starved: BTreeMap<u32, (u64, u64, Vec<gaps::Gap>)>,
    inner_copy: BTreeMap<u32, u64>,
    after: BTreeMap<u32, u64>,
    launching: u64,
    /// Host parts in calls that allocate, of the gaps whose longest call is one of these, and their launch parts.
    allocating: u64,
    loading: u64,
    host_functions: u64,
    /// Host and launch parts of gaps that a graph ends.
    before_graphs: u64,
    /// Time of gaps by the kernel that ends them.
    before: BTreeMap<KernelKey, u64>,
    /// Of simulated GPUs: time in each part of the window in which the interpreter had not come to what was requested.
    lulls: BTreeMap<u32, Vec<f64>>,
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
    let (gaps, of_gaps) = gaps_of(records, window, &waits);
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
            let mut subject = of_kernel(facts, window, &op, kernel, all_kernels, overlap);
            let before = of_gaps.before.get(&kernel_key(&op)).copied().unwrap_or(0);
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
        let mut subject = of_gpu(facts, window, *number, gpu, &broken, &gaps, &of_gaps);
        of_gpu_waits(&mut subject, *number, &waits, gaps.launched > 0);
        let exposed = subject.value("exposed_comm_ns").unwrap_or(0.0);
        let transfer = collectives.transfer_share(*number);
        subject.set("exposed_comm_ns", exposed * transfer);
        subjects.push(subject);
    }
    subjects.extend(of_copies(facts, window, &mut copies, iterations));
    subjects.extend(of_calls(records, window, iterations, &of_gaps));
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
        run.count("launching_ns", of_gaps.launching + short);
        run.count("alloc_gap_ns", of_gaps.allocating);
        run.count("load_gap_ns", of_gaps.loading);
        run.count("graph_gap_ns", of_gaps.before_graphs);
        run.count("host_func_wait_ns", of_gaps.host_functions);
    }
    run.count("markers", records.ranges().count() as u64);
    of_run_gpus(facts, &mut run, &broken);
    of_run_ranks(facts, &mut run, &collectives);
    of_run_iterations(&mut run, found);
    if facts.recorded.calls {
        of_run_calls(records, window, found, &mut run);
    }
    of_run_copies(records, window, &mut run);
    subjects.push(run);
    subjects
}

/// Gaps of the window, and what they say of functions. Gaps before the first launch of a kernel are left out: code is loaded in them.
fn gaps_of(records: &dyn Records, window: &Window, waits: &Waits) -> (gaps::Gaps, OfGaps) {
    let facts = records.facts();
    let doing = Calls::default().of_all(&facts.names);
    let mut of = OfGaps::default();
    let mut seen: Vec<bool> = vec![false; facts.names.len()];
    for op in records.ops().take_while(|op| op.start <= window.start) {
        seen[op.name as usize] |= op.start < window.start;
    }
    let least = 1_000_000.max(window.length() / 200);
    let options = gaps::Options {
        window: Some((window.start, window.end)),
        limit: Some(0),
        ..gaps::Options::default()
    };
    let mut is_first = |name: u32| !std::mem::replace(&mut seen[name as usize], true);
    let found = gaps::find_each(records, &options, |gap| {
        let Some(op) = gap.opener else {
            return;
        };
        let parts = &gap.parts;
        if op.is_kernel && gap.closer != NONE {
            *of.inner_copy.entry(op.gpu).or_default() += parts.copy;
        }
        let is_simulated = facts.gpus[op.gpu as usize].is_simulated;
        let requested = parts.wait + parts.turnaround;
        if is_simulated {
            // Why an interpreter on a busy machine comes late is unknown where the calls are.
            let late_waking = parts.host[Doing::Sync as usize];
            let lull = requested + parts.graph + parts.unrecorded + late_waking;
            let lulls = of
                .lulls
                .entry(op.gpu)
                .or_insert_with(|| vec![0.0; PARTS as usize]);
            spread(lulls, window, (gap.start, gap.end), lull);
        }
        of.launching += parts.launch + parts.host[Doing::Launch as usize];
        if is_simulated && op.is_kernel && op.length() < SHORT_SIMULATED {
            of.launching += requested;
        }
        if op.is_kernel {
            *of.before.entry(kernel_key(&op)).or_default() += gap.length();
        }
        if op.launch.is_some_and(|launch| launch.is_graph) {
            of.before_graphs += parts.host_time() + parts.launch;
        }
        if waits
            .after_host_function
            .contains(&(op.process, op.is_kernel, op.id))
        {
            of.host_functions += requested;
        }
        let host = parts.host_time();
        let in_calls = host - parts.host[Doing::Program as usize];
        if let Some(call) = gap.call {
            let function = facts.name(call.name);
            let is_copy = function.contains("Memcpy") || function.contains("Memset");
            let after = in_calls + parts.launch;
            *of.after.entry(call.name).or_default() += if is_simulated && !is_copy {
                after.min(LATE_WAKING)
            } else {
                after
            };
            if doing.get(call.name as usize) == Some(&Doing::Alloc) {
                of.allocating += in_calls + parts.launch;
            }
        }
        let is_first = is_first(op.name);
        let late = if is_simulated {
            host - parts.host[Doing::Sync as usize]
        } else {
            host
        };
        if !is_first {
            of.loading += parts.host[Doing::Load as usize];
        }
        if gap.length() >= least && late * 2 >= gap.length() && !is_first {
            let starved = of.starved.entry(op.gpu).or_default();
            starved.0 += 1;
            starved.1 += gap.length();
            starved.2.push(*gap);
            if starved.2.len() > 64 {
                starved.2.sort_by_key(|gap| std::cmp::Reverse(gap.length()));
                starved.2.truncate(5);
            }
        }
    });
    (found, of)
}

/// Adds a time to the parts of the window that a gap lies in, evenly over its length.
fn spread(parts: &mut [f64], window: &Window, (start, end): (u64, u64), time: u64) {
    let length = window.length() as f64 / parts.len() as f64;
    if time == 0 || end <= start || length <= 0.0 {
        return;
    }
    let each = time as f64 / (end - start) as f64;
    let from = start.saturating_sub(window.start) as f64;
    let to = end.saturating_sub(window.start) as f64;
    let first = (from / length) as usize;
    for (number, part) in parts.iter_mut().enumerate().skip(first) {
        let begin = number as f64 * length;
        if begin >= to {
            break;
        }
        *part += each * (to.min(begin + length) - from.max(begin)).max(0.0);
    }
}

/// What the streams of a GPU wait for.
fn of_gpu_waits(subject: &mut Subject, number: u32, waits: &Waits, has_calls: bool) {
    if !has_calls {
        return;
    }
    let of = waits.of_gpu.get(&number).copied().unwrap_or_default();
    subject.count("event_waits", waits.events);
    subject.count("null_stream_ops", of.null_ops);
    subject.count("null_stream_broken", of.null_broken);
    subject.count("null_stream_wait_ns", of.null_wait);
    subject.count("shared_queue_wait_ns", of.shared_wait);
}

/// What ranks wait for in collectives.
fn of_run_ranks(facts: &Facts, run: &mut Subject, collectives: &Collectives) {
    run.count("matched_collectives", collectives.count);
    let latest = collectives.latest();
    let of = latest.map(|latest| latest.1).unwrap_or_default();
    run.set(
        "straggler_share",
        ratio(of.delays as f64, collectives.count as f64),
    );
    run.set("straggler_lost_ns", of.lost);
    let mut ranks: Vec<_> = collectives.ranks.iter().collect();
    ranks.sort_by_key(|(rank, of)| (std::cmp::Reverse(of.delays), **rank));
    for ((process, gpu), of) in ranks {
        let known = facts.processes.get(*process as usize);
        let (pid, rank) = known.map_or((0, None), |process| (process.pid, process.rank));
        let number = facts.gpus[*gpu as usize].number;
        let who = match rank {
            Some(rank) => format!("rank {rank}, GPU {number}"),
            None => format!("process {pid}, GPU {number}"),
        };
        let text = format!(
            "{who}: delays {} of {}, waits {}",
            of.delays,
            collectives.count,
            shown(of.waits, Unit::Nanoseconds)
        );
        let key = key(&[&"rank", &pid, &format!("gpu:{number}")]);
        run.evidence.push(("straggler", text, key));
    }
}

fn of_kernel(
    facts: &Facts,
    window: &Window,
    op: &Op,
    kernel: &mut OfKernel,
    all: u64,
    overlap: f64,
) -> Subject {
    let name = facts.name(op.name);
    let gpu = &facts.gpus[op.gpu as usize];
    let (groups, items) = (op.groups(), op.group.iter().product::<u32>());
    // One name may be launched in several geometries and on several GPUs, which are rows of their own.
    let dims = |sizes: [u32; 3]| sizes.map(|size| size.to_string()).join("x");
    let grid = format!("{} / {}", dims(op.grid), dims(op.group));
    let name = match facts.gpus.len() {
        1 => format!("{name} [{grid}, {} B of LDS]", op.lds),
        _ => format!("{name} [{grid}, {} B of LDS, GPU {}]", op.lds, op.gpu),
    };
    let mut subject = Subject::new(Source::Kernel, name, window);
    subject.count("calls", kernel.times.count());
    subject.count("sum_ns", kernel.times.sum());
    subject.set("time_share", ratio(kernel.times.sum() as f64, all as f64));
    subject.set("median_ns", kernel.times.median().unwrap_or(0.0));
    if let Some(call) = kernel.calls.median() {
        subject.set("call_ns", call);
    }
    if let Some(values) = kernel.times.values() {
        let values: Vec<f64> = values.iter().map(|value| *value as f64).collect();
        if let Some(group) = Group::new(&values) {
            subject.set("variation", ratio(group.scale, group.median));
        }
        subject.set("varsum_ns", variability(&values));
    }
    subject.flag("is_simulated", gpu.is_simulated);
    subject.flag("is_comm", op.class == Class::Comm);
    subject.flag("is_compute", op.class == Class::Compute);
    subject.set("overlap_share", overlap);
    subject.count("groups", groups);
    subject.count("items", items.into());
    if gpu.units > 0 {
        subject.count("units", gpu.units.into());
    }
    subject.count("lds", op.lds.into());
    subject.count("scratch", op.scratch.into());
    let wave = match gpu.wave_size {
        0 => return subject,
        wave => wave,
    };
    let waves = items.div_ceil(wave);
    subject.count("waves_of_group", waves.into());
    subject.set(
        "lanes_lost",
        1.0 - ratio(f64::from(items), f64::from(waves * wave)),
    );
    let Some(resources) = facts.kernels.get(op.kernel as usize) else {
        return subject;
    };
    subject.count("vgprs", resources.vgprs.into());
    subject.count("sgprs", resources.sgprs.into());
    let needs = Needs {
        vgprs: resources.vgprs,
        sgprs: resources.sgprs,
        lds: op.lds,
        items,
    };
    // Which mode a kernel of RDNA runs in is not recorded.
    let unit =
        occupancy_unit(&gpu.arch, wave, Mode::ComputeUnit).filter(|unit| unit.has_scalar_limit);
    if let Some(unit) = unit
        && let Some(found) = occupancy(&unit, wave, &needs)
    {
        subject.count("waves", found.waves.into());
        subject.set("occupancy", found.share);
        subject.flag("is_limited_by_vgpr", found.limiter == "vgpr");
        subject.flag("is_limited_by_lds", found.limiter == "lds");
        subject.flag("is_limited_by_sgpr", found.limiter == "sgpr");
        if let Some(rounds) = rounds(&unit, &found, groups, gpu.units) {
            subject.set("rounds", rounds);
            subject.set("ceil_rounds", rounds.ceil());
        }
    }
    subject
}

fn of_gpu(
    facts: &Facts,
    window: &Window,
    number: u32,
    sums: &mut OfGpu,
    broken: &breakdown::Breakdown,
    gaps: &gaps::Gaps,
    of_gaps: &OfGaps,
) -> Subject {
    let gpu = &facts.gpus[number as usize];
    let mut subject = Subject::new(Source::Gpu, format!("GPU {}", gpu.number), window);
    let measure = &broken.gpus[number as usize];
    subject.count("gpus", facts.gpus.len() as u64);
    subject.flag("is_simulated", gpu.is_simulated);
    subject.count("ops", sums.ops);
    subject.count("kernels", sums.kernels.count());
    subject.count("graph_ops", sums.graph_ops);
    subject.count("busy_ns", measure.whole.busy());
    subject.count("several_ns", measure.whole.several);
    subject.count("kernel_ns", sums.kernels.sum());
    subject.set("median_kernel_ns", sums.kernels.median().unwrap_or(0.0));
    subject.count("exposed_comm_ns", measure.whole.exposed(Class::Comm));
    let overlap = measure.whole.overlap(Class::Comm, Class::Compute);
    subject.set(
        "comm_overlap",
        ratio(overlap as f64, measure.whole.union(Class::Comm) as f64),
    );
    subject.count("shader_copy_ns", sums.shader_copy);
    let streams = sums
        .streams
        .values()
        .filter(|kernels| **kernels * 10 >= sums.kernels.count())
        .count();
    subject.count("streams", streams as u64);
    if sums.filling.0 > 0.0 {
        subject.set("rounds", sums.filling.1 / sums.filling.0);
        subject.set("filling_share", sums.filling.2 / sums.filling.0);
    }
    let chunk = window.length() as f64 / measure.parts.len().max(1) as f64;
    // Before its first and behind its last operation a GPU is not late.
    let (first, last) = sums.span.unwrap_or((window.start, window.end));
    let is_inside = |number: usize| {
        let begin = window.start as f64 + number as f64 * chunk;
        begin >= first as f64 && begin + chunk <= last as f64
    };
    let lulls = of_gaps.lulls.get(&number);
    let lull = |part: usize| {
        lulls
            .and_then(|lulls| lulls.get(part))
            .copied()
            .unwrap_or(0.0)
    };
    let low: Vec<f64> = measure
        .parts
        .iter()
        .enumerate()
        .filter(|(number, _)| is_inside(*number))
        .map(|(number, part)| part.busy() as f64 + lull(number))
        .filter(|busy| *busy < 0.5 * chunk)
        .collect();
    subject.set("low_ns", low.len() as f64 * chunk);
    subject.set("low_busy_ns", low.iter().sum());
    if facts.recorded.copies {
        subject.count(
            "inner_copy_ns",
            of_gaps.inner_copy.get(&number).copied().unwrap_or(0),
        );
    }
    let Some(scope) = gaps.scopes.iter().find(|scope| scope.gpu == number) else {
        return subject;
    };
    subject.count("gap_ns", scope.parts.total());
    if gaps.launched == 0 {
        return subject;
    }
    subject.count("host_ns", scope.parts.host_time());
    subject.count("host_launch_ns", scope.parts.host[Doing::Launch as usize]);
    subject.count("launch_ns", scope.parts.launch);
    subject.count("wait_ns", scope.parts.wait);
    let starved = of_gaps.starved.get(&number);
    subject.count("starved_gaps", starved.map_or(0, |starved| starved.0));
    subject.count("starved_ns", starved.map_or(0, |starved| starved.1));
    let mut longest = starved.map_or(Vec::new(), |starved| starved.2.clone());
    longest.sort_by_key(|gap| std::cmp::Reverse(gap.length()));
    for gap in longest.iter().take(5) {
        let call = gap
            .call
            .map_or("its own code", |call| facts.name(call.name));
        let opener = gap.opener.map_or("", |op| facts.name(op.name));
        let text = format!(
            "{} before {opener}, longest in {call}",
            shown(gap.length() as f64, Unit::Nanoseconds)
        );
        let guid = gap
            .opener
            .and_then(|op| facts.processes.get(op.process as usize));
        let guid = guid.map_or("", |process| &process.guid);
        let place = key(&[&"gap", &guid, &format!("gpu:{}", gpu.number), &gap.start]);
        subject.evidence.push(("gpu-starved", text, place));
    }
    subject
}

fn of_copies(
    facts: &Facts,
    window: &Window,
    copies: &mut BTreeMap<u32, OfCopy>,
    iterations: f64,
) -> Vec<Subject> {
    /// Rate below which copies of a direction cannot be called slow by their best one alone: bytes per second.
    const USUAL: f64 = 16e9;
    let each = copies.iter_mut().filter(|copy| copy.1.sizes.count() > 0);
    let each = each.map(|(name, copy)| {
        let mut subject = Subject::new(Source::Copy, facts.name(*name), window);
        subject.set("iterations", iterations);
        subject.count("count", copy.sizes.count());
        subject.set(
            "per_iteration",
            ratio(copy.sizes.count() as f64, iterations),
        );
        subject.set("median_bytes", copy.sizes.median().unwrap_or(0.0));
        subject.count("time_ns", copy.time);
        subject.set(
            "rate",
            ratio(copy.sizes.sum() as f64, copy.time as f64 / 1e9),
        );
        let has_large = copy.sizes.max().is_some_and(|max| max >= 1 << 20);
        subject.set(
            "best_rate",
            if has_large {
                copy.best
            } else {
                copy.best.max(USUAL)
            },
        );
        subject.flag("is_peer", copy.is_peer);
        subject.flag(
            "is_simulated",
            facts.gpus.iter().all(|gpu| gpu.is_simulated),
        );
        subject
    });
    each.collect()
}

fn of_calls(
    records: &dyn Records,
    window: &Window,
    iterations: f64,
    of_gaps: &OfGaps,
) -> Vec<Subject> {
    let facts = records.facts();
    let doing = Calls::default().of_all(&facts.names);
    let mut calls: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for call in records
        .calls()
        .filter(|call| call.start < window.end && call.end > window.start)
    {
        let sums = calls.entry(call.name).or_default();
        sums.0 += 1;
        sums.1 += call.end.min(window.end) - call.start.max(window.start);
    }
    let mut copied: BTreeMap<u32, u64> = BTreeMap::new();
    for op in records.ops().filter(|op| !op.is_kernel && !op.is_second) {
        if let Some(launch) = op.launch {
            *copied.entry(launch.name).or_default() += op.length();
        }
    }
    let each = calls.into_iter().map(|(name, (count, total))| {
        let function = facts.name(name);
        let mut subject = Subject::new(Source::Call, function, window);
        subject.set("iterations", iterations);
        subject.count("calls", count);
        subject.count("total_ns", total);
        subject.set("per_iteration", ratio(count as f64, iterations));
        subject.set("rate", ratio(count as f64, window.length() as f64 / 1e9));
        let waits = doing.get(name as usize) == Some(&Doing::Sync);
        let (copies, fills) = (function.contains("Memcpy"), function.contains("Memset"));
        subject.flag("is_sync", waits && !copies && !fills);
        subject.flag("is_sync_copy", waits && copies);
        subject.flag("is_sync_memset", waits && fills);
        subject.flag("is_query", function.ends_with("Query"));
        subject.count(
            "gap_after_ns",
            of_gaps.after.get(&name).copied().unwrap_or(0),
        );
        if facts.recorded.copies {
            subject.count("copied_ns", copied.get(&name).copied().unwrap_or(0));
        }
        subject
    });
    each.collect()
}

fn of_run_gpus(facts: &Facts, run: &mut Subject, broken: &breakdown::Breakdown) {
    let compute: Vec<u64> = broken
        .gpus
        .iter()
        .map(|gpu| gpu.whole.union(Class::Compute))
        .collect();
    let busiest = compute.iter().copied().max().unwrap_or(0);
    let used: Vec<u64> = compute
        .iter()
        .copied()
        .filter(|time| time * 100 >= busiest && *time > 0)
        .collect();
    run.count("gpus", facts.gpus.len() as u64);
    run.count("used_gpus", used.len() as u64);
    let idle = compute.len() - used.len();
    run.count(
        "idle_gpus",
        match busiest {
            0 => 0,
            _ => idle as u64,
        },
    );
    let (share, lost) = breakdown::imbalance(&used).unwrap_or((0.0, 0));
    run.set("imbalance", share);
    run.count("imbalance_lost_ns", lost);
}

fn of_run_iterations(run: &mut Subject, found: Option<&Iterations>) {
    let Some(found) = found else {
        run.set("period", 0.0);
        run.set("period_confidence", 0.0);
        run.set("warm_up_share", 0.0);
        return;
    };
    let launches: u64 = found.all.iter().map(|iteration| iteration.kernels).sum();
    match &found.found {
        Found::Markers(_) => {
            let first = found
                .steady()
                .first()
                .map_or(0, |iteration| iteration.kernels);
            let same = found
                .steady()
                .iter()
                .filter(|iteration| iteration.kernels == first)
                .count();
            run.set("period", ratio(launches as f64, found.all.len() as f64));
            run.set(
                "period_confidence",
                ratio(same as f64, found.steady().len() as f64),
            );
        }
        Found::Sequence { period, confidence } => {
            run.count("period", *period as u64);
            run.set("period_confidence", *confidence);
        }
    }
    let begin = found.all.first().map_or(0, |iteration| iteration.begin);
    let steady = found.steady_window().unwrap_or((begin, begin));
    let all = steady.1.saturating_sub(begin);
    run.set(
        "warm_up_share",
        ratio(steady.0.saturating_sub(begin) as f64, all as f64),
    );
}

fn of_run_calls(
    records: &dyn Records,
    window: &Window,
    found: Option<&Iterations>,
    run: &mut Subject,
) {
    let facts = records.facts();
    let doing = Calls::default().of_all(&facts.names);
    let iterations = found.map_or(0, |found| found.steady().len()) as f64;
    let (mut syncs, mut allocs, mut alloc_time, mut pooled) = (0_u64, 0_u64, 0_u64, 0_u64);
    let (mut loads, mut load_time) = (0_u64, 0_u64);
    let (mut graphs, mut made, mut making) = (0_u64, 0_u64, 0_u64);
    let mut frees: Vec<(u64, u64)> = Vec::new();
    let mut launches = 0_u64;
    for call in records
        .calls()
        .filter(|call| call.start >= window.start && call.start < window.end)
    {
        let name = facts.name(call.name);
        let length = call.end.saturating_sub(call.start);
        match doing.get(call.name as usize) {
            Some(Doing::Sync) => syncs += 1,
            Some(Doing::Alloc) => {
                allocs += 1;
                alloc_time += length;
                pooled += u64::from(name.ends_with("Async"));
                if name == "hipFree" && length >= 100_000 {
                    frees.push((call.start, call.end));
                }
            }
            Some(Doing::Load) => {
                loads += 1;
                load_time += length;
            }
            Some(Doing::Launch) if name.starts_with("hipGraphLaunch") => graphs += 1,
            Some(Doing::Launch) if name.starts_with("hipGraphInstantiate") => {
                made += 1;
                making += length;
            }
            Some(Doing::Launch)
                if name.contains("LaunchKernel") || name.contains("LaunchCooperative") =>
            {
                launches += 1
            }
            _ => {}
        }
    }
    run.set("syncs_per_iteration", ratio(syncs as f64, iterations));
    run.set("allocs_per_iteration", ratio(allocs as f64, iterations));
    run.count("allocs", allocs);
    run.count("launches", launches);
    let seconds = window.length() as f64 / 1e9;
    run.set("allocs_rate", ratio(allocs as f64, seconds));
    run.count("alloc_ns", alloc_time);
    run.set("alloc_mean_ns", ratio(alloc_time as f64, allocs as f64));
    run.set("alloc_pool_share", ratio(pooled as f64, allocs as f64));
    let in_iterations = window.kind == "steady";
    run.count("loads_in_iterations", loads * u64::from(in_iterations));
    run.count(
        "load_in_iterations_ns",
        load_time * u64::from(in_iterations),
    );
    run.count("graph_launches", graphs);
    run.count("graph_instantiations", made);
    run.count("graph_instantiation_ns", making);
    let waited: Vec<u64> = waits_under_kernels(records, &frees);
    run.count("free_waits", waited.len() as u64);
    run.count("free_wait_ns", waited.iter().sum());
}

/// Lengths of those of some times in which kernels run, or are in a queue, for at least 80 %.
fn waits_under_kernels(records: &dyn Records, times: &[(u64, u64)]) -> Vec<u64> {
    if times.is_empty() {
        return Vec::new();
    }
    let mut covered: Vec<(u64, u64)> = vec![(0, 0); times.len()];
    for op in records.ops().filter(|op| op.is_kernel) {
        let requested = op
            .launch
            .map_or(op.start, |launch| launch.begin.min(op.start));
        let first = times.partition_point(|time| time.1 <= requested);
        for (time, covered) in times.iter().zip(&mut covered).skip(first) {
            if time.0 >= op.end {
                break;
            }
            let (start, end) = (requested.max(time.0).max(covered.1), op.end.min(time.1));
            covered.0 += end.saturating_sub(start);
            covered.1 = covered.1.max(end);
        }
    }
    let waits = times.iter().zip(covered);
    let waits = waits.filter(|(time, covered)| covered.0 * 10 >= (time.1 - time.0) * 8);
    waits.map(|(time, _)| time.1 - time.0).collect()
}

fn of_run_copies(records: &dyn Records, window: &Window, run: &mut Subject) {
    let facts = records.facts();
    if !facts.recorded.copies {
        return;
    }
    let is_registered = facts
        .names
        .iter()
        .any(|name| name.starts_with("hipHostRegister"));
    // Registered memory is in no allocation.
    let mut pinned = (facts.recorded.allocations && facts.recorded.calls && !is_registered)
        .then(BTreeMap::<(u32, u64), u64>::new);
    let mut changes = records.allocations().peekable();
    let (mut pageable, mut call_time, mut copy_time) = (0_u64, 0_u64, 0_u64);
    let mut to_host: HashMap<(u32, u64, u64), u64> = HashMap::new();
    let (mut trips, mut trip_time) = (0_u64, 0_u64);
    for op in records
        .ops()
        .filter(|op| !op.is_kernel && !op.is_second && op.host_address != 0)
    {
        while let Some(change) = changes.next_if(|change| change.start < op.start) {
            let is_the_programs = change.is_host && !change.is_of_runtime;
            let Some(pinned) = pinned
                .as_mut()
                .filter(|_| is_the_programs || change.is_free)
            else {
                continue;
            };
            if change.is_free {
                pinned.remove(&(change.process, change.address))
            } else {
                pinned.insert((change.process, change.address), change.bytes)
            };
        }
        if op.start < window.start || op.start >= window.end {
            continue;
        }
        let name = facts.name(op.name);
        let place = (op.process, op.host_address, op.bytes);
        if name.contains("DEVICE_TO_HOST") {
            to_host.insert(place, op.length());
        } else if let Some(before) = to_host.remove(&place) {
            trips += 1;
            trip_time += before + op.length();
        }
        let launch = op
            .launch
            .filter(|launch| facts.name(launch.name).contains("Async"));
        if let (Some(pinned), Some(launch)) = (&pinned, launch) {
            let below = pinned.range(..=(op.process, op.host_address)).next_back();
            let is_pinned = below.is_some_and(|((process, address), bytes)| {
                *process == op.process && op.host_address < address.saturating_add(*bytes)
            });
            if !is_pinned {
                pageable += 1;
                call_time += launch.end.saturating_sub(launch.begin);
                copy_time += op.length();
            }
        }
    }
    if pinned.is_some() {
        run.count("pageable_copies", pageable);
        run.count("pageable_ns", call_time);
        run.set(
            "pageable_call_share",
            ratio(call_time as f64, copy_time as f64),
        );
    }
    run.count("round_trips", trips);
    run.count("round_trip_ns", trip_time);
}
