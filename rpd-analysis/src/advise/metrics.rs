//! The figures that rules use: a fixed catalogue, and where they come from.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;

use crate::answer::{Unit, Window, key};
use crate::breakdown::{self, By};
use crate::classes::{Calls, Class, Doing};
use crate::distribution::Distribution;
use crate::gaps;
use crate::iterations::{Found, Iterations};
use crate::occupancy::{Mode, Needs, occupancy, rounds, unit as occupancy_unit};
use crate::outliers::{Group, variability};
use crate::records::{Facts, NONE, Op, Records};

/// What figures are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The recording.
    Run,
    /// A GPU.
    Gpu,
    /// A kernel with its geometry.
    Kernel,
    /// A function.
    Call,
    /// A direction of copies.
    Copy,
}

impl Source {
    /// The word in rules.
    pub const fn word(self) -> &'static str {
        match self {
            Source::Run => "run",
            Source::Gpu => "gpu",
            Source::Kernel => "kernel",
            Source::Call => "call",
            Source::Copy => "copy",
        }
    }
}

/// A figure that rules may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// What it is of.
    pub source: Source,
    /// Name in rules.
    pub name: &'static str,
    /// Unit.
    pub unit: Unit,
    /// Definition.
    pub meaning: &'static str,
    /// Records that it needs; empty for those of operations alone.
    pub needs: &'static str,
}

macro_rules! metrics {
    ($($source:ident { $($name:ident: $unit:ident $needs:literal $meaning:literal,)* })*) => {
        /// The catalogue of figures.
        pub const METRICS: &[Metric] = &[
            $($(Metric {
                source: Source::$source,
                name: stringify!($name),
                unit: Unit::$unit,
                meaning: $meaning,
                needs: $needs,
            },)*)*
        ];
    };
}

metrics! {
    Run {
        window_ns: Nanoseconds "" "Length of the window",
        gpus: Count "" "Number of GPUs that the program could use",
        used_gpus: Count "" "Number of GPUs with operations",
        idle_gpus: Count "" "Number of GPUs with less than 1 % of the time of the busiest one",
        imbalance: Share "" "Greatest time of computation of a used GPU over the mean, less 1",
        imbalance_lost_ns: Nanoseconds "" "Time that GPUs wait for the one with the most computation",
        iterations: Count "" "Number of iterations after the warm-up; 0 when none are found",
        period: Count "" "Launches of an iteration",
        period_confidence: Share "" "Share of the launches that are in iterations and match; 1 for markers",
        syncs_per_iteration: Number "hip_calls" "Calls that wait, for each iteration",
        launching_ns: Nanoseconds "hip_calls" "Launch part of gaps, and host part in calls that launch",
        allocs_per_iteration: Number "hip_calls" "Calls that allocate or free, for each iteration",
        alloc_ns: Nanoseconds "hip_calls" "Time in these calls in the window",
        alloc_mean_ns: Nanoseconds "hip_calls" "Mean time of these calls",
        alloc_pool_share: Share "hip_calls" "Share of these calls that use a pool (Async)",
        free_waits: Count "hip_calls" "Calls of hipFree of 100 us or more that wait for kernels",
        free_wait_ns: Nanoseconds "hip_calls" "Time in these calls",
        loads_in_iterations: Count "hip_calls" "Calls that load or compile code in iterations after the warm-up",
        load_in_iterations_ns: Nanoseconds "hip_calls" "Time in these calls",
        graph_launches: Count "hip_calls" "Launches of graphs",
        graph_instantiations: Count "hip_calls" "Instantiations of graphs in the window",
        graph_instantiation_ns: Nanoseconds "hip_calls" "Time in these calls",
        pageable_copies: Count "allocations" "Asynchronous copies whose host address is in no live allocation of the host's",
        pageable_call_share: Share "allocations" "Time in their calls over their durations",
        pageable_ns: Nanoseconds "allocations" "Time in their calls",
        round_trips: Count "copies" "Copies to the host that are followed by one of the same size from the same address",
        round_trip_ns: Nanoseconds "copies" "Time of both copies of each",
        markers: Count "" "Number of markers",
        lost: Count "" "Number of lost records",
        skewed_share: Share "hip_calls" "Share of operations that begin before their calls",
        warm_up_share: Share "" "Warm-up as a share of all iterations' time",
        cost_share: Share "cost" "Cost of recording as a share of the window",
        host_func_wait_ns: Nanoseconds "waits" "Time for which streams wait for functions of the host",
        collective_median_bytes: Bytes "rccl_calls" "Median size of collectives",
        collectives_per_iteration: Number "rccl_calls" "Collectives in an iteration",
        collective_ns: Nanoseconds "rccl_calls" "Time of collectives",
        straggler_lost_ns: Nanoseconds "rccl_calls" "Time that ranks wait for one",
    }
    Gpu {
        window_ns: Nanoseconds "" "Length of the window",
        gpus: Count "" "Number of GPUs",
        ops: Count "" "Number of operations",
        kernels: Count "" "Number of kernels",
        graph_ops: Count "" "Number of operations of graphs",
        busy_ns: Nanoseconds "" "Time in which anything runs",
        several_ns: Nanoseconds "" "Time in which two operations or more run",
        kernel_ns: Nanoseconds "" "Durations of kernels added up",
        median_kernel_ns: Nanoseconds "" "Median duration of kernels",
        gap_ns: Nanoseconds "" "Time of gaps",
        host_ns: Nanoseconds "hip_calls" "Host part of gaps",
        host_launch_ns: Nanoseconds "hip_calls" "Host part of gaps in calls that launch",
        launch_ns: Nanoseconds "hip_calls" "Launch part of gaps",
        wait_ns: Nanoseconds "hip_calls" "Wait part of gaps",
        starved_gaps: Count "hip_calls" "Gaps of at least 1 ms and 0.5 % of the window that are the host's for half",
        starved_ns: Nanoseconds "hip_calls" "Time of these gaps",
        low_ns: Nanoseconds "" "Time of the thirtieths of the window with a utilisation below 50 %",
        low_busy_ns: Nanoseconds "" "Time in these in which anything runs",
        explained_ns: Nanoseconds "" "Host, launch and copy parts of gaps, as far as they are known: other rules are about these",
        inner_copy_ns: Nanoseconds "copies" "Copy part of gaps between kernels",
        exposed_comm_ns: Nanoseconds "" "Time of communication that no computation covers",
        comm_overlap: Share "" "Share of communication under computation; 0 without any",
        shader_copy_ns: Nanoseconds "" "Time of kernels of the runtime that copy",
        streams: Count "" "Streams with 10 % of the operations or more",
        rounds: Number "" "How many times a launch fills the GPU, weighted by time",
        filling_share: Share "" "Share of the time of kernels that fill the GPU at least once",
        null_stream_wait_ns: Nanoseconds "waits" "Time for which streams wait for the null stream",
        shared_queue_wait_ns: Nanoseconds "waits" "Time for which operations wait for another stream's on their queue",
    }
    Kernel {
        window_ns: Nanoseconds "" "Length of the window",
        calls: Count "" "Number of launches",
        sum_ns: Nanoseconds "" "Durations added up",
        time_share: Share "" "Share of the time of all kernels",
        median_ns: Nanoseconds "" "Median duration",
        call_ns: Nanoseconds "hip_calls" "Median time in the launching call",
        variation: Share "" "Robust coefficient of variation of the durations",
        varsum_ns: Nanoseconds "" "Time above the best",
        is_comm: Count "" "1 for a kernel of a communication library",
        is_simulated: Count "" "1 on a simulated GPU, whose times are those of its interpreter",
        overlap_share: Share "" "Share of the GPU's busy time in which two operations or more run",
        groups: Count "" "Workgroups of a launch",
        items: Count "" "Work items of a workgroup",
        units: Count "" "Compute units of the GPU",
        waves_of_group: Count "" "Waves of a workgroup",
        lanes_lost: Share "" "Share of the lanes of a workgroup's waves without an item",
        vgprs: Count "" "Vector registers",
        sgprs: Count "" "Scalar registers",
        lds: Bytes "" "LDS of a workgroup",
        scratch: Bytes "" "Scratch of a work item",
        waves: Count "occupancy" "Waves that a unit can hold",
        occupancy: Share "occupancy" "Waves that a unit can hold over its places",
        is_limited_by_vgpr: Count "occupancy" "1 when vector registers limit the waves",
        is_limited_by_lds: Count "occupancy" "1 when LDS limits the waves",
        is_limited_by_sgpr: Count "occupancy" "1 when scalar registers limit the waves",
        rounds: Number "occupancy" "How many times the groups of a launch fill the GPU",
        ceil_rounds: Number "occupancy" "rounds, rounded up",
        achieved_occupancy: Share "counters" "Waves that run over the places",
        greatest_share: Share "counters" "Greatest share of a peak",
        compute_share: Share "counters" "Share of the peak of computation",
        memory_share: Share "counters" "Share of the peak of memory",
        valu_share: Share "counters" "Share of the peak of vector instructions",
        lds_conflicts: Number "counters" "Cycles of conflicts for each useful one",
        lds_busy: Share "counters" "Share of the cycles in which LDS is busy",
        l1_hit: Share "counters" "Share of requests that L1 has",
        l2_hit: Share "counters" "Share of requests that L2 has",
        fabric_share: Share "counters" "Share of the memory's peak",
        lanes_active: Share "counters" "Lanes that are active in vector instructions",
        mfma_flops: Number "counters" "Operations of matrix units",
        fma_share: Share "counters" "Share of multiply-adds",
        double_share: Share "counters" "Share of operations in double precision",
        unfused_share: Share "counters" "Share of additions and multiplications that are not joined",
        atomic_share: Share "counters" "Share of requests to L2 that are atomic",
        lds_address_conflicts: Share "counters" "Share of cycles of LDS with conflicts of addresses",
        instruction_hit: Share "counters" "Share of instructions that their cache has",
        fetch_share: Share "samples" "Share of samples that wait for instructions",
        waitcnt_share: Share "samples" "Share of samples that wait for memory",
        barrier_share: Share "samples" "Share of samples at barriers",
        hottest_line_share: Share "samples" "Share of samples at the hottest line",
        coalescing: Share "accesses" "Share of fetched bytes that are used",
    }
    Call {
        window_ns: Nanoseconds "" "Length of the window",
        iterations: Count "" "Number of iterations after the warm-up",
        calls: Count "" "Number of calls in the window",
        total_ns: Nanoseconds "" "Time in them",
        per_iteration: Number "" "Calls for each iteration; 0 without iterations",
        rate: Number "" "Calls for each second of the window",
        is_sync: Count "" "1 for a function that waits and is no copy or fill",
        is_sync_copy: Count "" "1 for a copy that waits",
        is_sync_memset: Count "" "1 for a fill that waits",
        is_query: Count "" "1 for a function that asks whether work is done",
        gap_after_ns: Nanoseconds "" "Host and launch parts of the gaps whose host part has the function as its longest call",
        copied_ns: Nanoseconds "copies" "Copy part of the gaps in which a copy that this function requested runs",
    }
    Copy {
        window_ns: Nanoseconds "" "Length of the window",
        iterations: Count "" "Number of iterations after the warm-up",
        count: Count "" "Number of copies",
        per_iteration: Number "" "Copies for each iteration; 0 without iterations",
        median_bytes: Bytes "" "Median size",
        time_ns: Nanoseconds "" "Durations added up",
        rate: Rate "" "Bytes over time",
        best_rate: Rate "" "Greatest rate of a copy in this direction, or of 16 GB/s where all are small",
        is_peer: Count "" "1 for copies between GPUs",
        large_rate: Rate "link_peaks" "Rate of copies of a megabyte or more",
        link_peak: Rate "link_peaks" "Peak of the link",
    }
}

/// The figure of a name.
pub(super) fn find(source: Source, name: &str) -> Option<&'static Metric> {
    METRICS
        .iter()
        .find(|metric| metric.source == source && metric.name == name)
}

/// Unit of a figure; that of a number for what is none.
pub(super) fn unit(source: Source, name: &str) -> Unit {
    find(source, name).map_or(Unit::Number, |metric| metric.unit)
}

/// Records that a figure needs; `None` for those of operations alone.
pub(super) fn needs(source: Source, name: &str) -> Option<&'static str> {
    find(source, name)
        .map(|metric| metric.needs)
        .filter(|needs| !needs.is_empty())
}

/// A row of a source.
pub(super) struct Subject {
    pub(super) source: Source,
    pub(super) name: String,
    values: HashMap<&'static str, f64>,
    /// Records for findings: id of the rule, what they are, key.
    pub(super) evidence: Vec<(&'static str, String, String)>,
}

impl Subject {
    fn new(source: Source, name: impl Into<String>, window: &Window) -> Subject {
        let mut subject = Subject {
            source,
            name: name.into(),
            values: HashMap::new(),
            evidence: Vec::new(),
        };
        subject.set("window_ns", window.length() as f64);
        subject
    }

    fn set(&mut self, name: &'static str, value: f64) {
        debug_assert!(
            find(self.source, name).is_some(),
            "{name} is in the catalogue"
        );
        self.values.insert(name, value);
    }

    fn count(&mut self, name: &'static str, value: u64) {
        self.set(name, value as f64);
    }

    fn flag(&mut self, name: &'static str, is_set: bool) {
        self.set(name, f64::from(u8::from(is_set)));
    }

    pub(super) fn value(&self, name: &str) -> Option<f64> {
        self.values.get(name).copied()
    }
}

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
}

fn ratio(part: f64, whole: f64) -> f64 {
    match whole {
        0.0 => 0.0,
        _ => part / whole,
    }
}

/// All figures of a recording.
pub(super) fn measure(
    records: &dyn Records,
    window: &Window,
    found: Option<&Iterations>,
) -> Vec<Subject> {
    let facts = records.facts();
    let inside = (window.start, window.end);
    let (gaps, of_gaps) = gaps_of(records, window);
    let options = breakdown::Options {
        window: Some(inside),
        by: By::Chunks(30),
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
        *gpu.streams.entry(op.stream).or_default() += 1;
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
        gpu.kernels.add(op.length());
        if op.class == Class::Copy {
            gpu.shader_copy += op.length();
        }
        let kernel = kernels
            .entry((op.gpu, op.name, op.grid, op.group, op.lds))
            .or_default();
        kernel.times.add(op.length());
        if let Some(launch) = op.launch.filter(|launch| !launch.is_graph) {
            kernel.calls.add(launch.end.saturating_sub(launch.begin));
        }
        kernel.last = Some(op);
    }
    let iterations = found.map_or(0, |found| found.steady().len()) as f64;
    let mut subjects = Vec::new();
    let all_kernels: u64 = kernels.values().map(|kernel| kernel.times.sum()).sum();
    for ((gpu, ..), kernel) in &mut kernels {
        let measure = &broken.gpus[*gpu as usize].whole;
        let overlap = ratio(measure.several as f64, measure.busy() as f64);
        if let Some(op) = kernel.last {
            let subject = of_kernel(facts, window, &op, kernel, all_kernels, overlap);
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
        subjects.push(of_gpu(
            facts, window, *number, gpu, &broken, &gaps, &of_gaps,
        ));
    }
    subjects.extend(of_copies(facts, window, &mut copies, iterations));
    subjects.extend(of_calls(records, window, iterations, &of_gaps));
    let mut run = Subject::new(Source::Run, "run", window);
    run.count("lost", facts.recorded.lost);
    run.set("iterations", iterations);
    if launched > 0 {
        run.set("skewed_share", ratio(skewed as f64, launched as f64));
        run.count("launching_ns", of_gaps.launching);
    }
    run.count("markers", records.ranges().count() as u64);
    of_run_gpus(facts, &mut run, &broken);
    of_run_iterations(&mut run, found);
    if facts.recorded.calls {
        of_run_calls(records, window, found, &mut run);
    }
    of_run_copies(records, window, &mut run);
    subjects.push(run);
    subjects
}

/// Gaps of the window, and what they say of functions. Gaps before the first launch of a kernel are left out: code is loaded in them.
fn gaps_of(records: &dyn Records, window: &Window) -> (gaps::Gaps, OfGaps) {
    let mut of = OfGaps::default();
    let mut seen: Vec<bool> = Vec::new();
    let least = 1_000_000.max(window.length() / 200);
    let options = gaps::Options {
        window: Some((window.start, window.end)),
        limit: Some(0),
        ..gaps::Options::default()
    };
    let mut is_first = |name: u32| {
        let place = name as usize;
        if seen.len() <= place {
            seen.resize(place + 1, false);
        }
        !std::mem::replace(&mut seen[place], true)
    };
    let found = gaps::find_each(records, &options, |gap| {
        let Some(op) = gap.opener else {
            return;
        };
        let parts = &gap.parts;
        if op.is_kernel && gap.closer != NONE {
            *of.inner_copy.entry(op.gpu).or_default() += parts.copy;
        }
        of.launching += parts.launch + parts.host[Doing::Launch as usize];
        let host = parts.host_time();
        if let Some(call) = gap.call {
            *of.after.entry(call.name).or_default() += host + parts.launch;
        }
        if gap.length() >= least && host * 2 >= gap.length() && !is_first(op.name) {
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
        .filter(|ops| **ops * 10 >= sums.ops)
        .count();
    subject.count("streams", streams as u64);
    if sums.filling.0 > 0.0 {
        subject.set("rounds", sums.filling.1 / sums.filling.0);
        subject.set("filling_share", sums.filling.2 / sums.filling.0);
    }
    let chunk = window.length() as f64 / measure.parts.len().max(1) as f64;
    let low: Vec<f64> = measure
        .parts
        .iter()
        .map(|part| part.busy() as f64)
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
    let parts = &scope.parts;
    subject.count(
        "explained_ns",
        parts.host_time() + parts.launch + parts.copy,
    );
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
            super::rules::shown(gap.length() as f64, Unit::Nanoseconds)
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
            _ => {}
        }
    }
    run.set("syncs_per_iteration", ratio(syncs as f64, iterations));
    run.set("allocs_per_iteration", ratio(allocs as f64, iterations));
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

/// Lengths of those of some times in which a kernel runs for at least 80 %.
fn waits_under_kernels(records: &dyn Records, times: &[(u64, u64)]) -> Vec<u64> {
    if times.is_empty() {
        return Vec::new();
    }
    let mut covered: Vec<(u64, u64)> = vec![(0, 0); times.len()];
    for op in records.ops().filter(|op| op.is_kernel) {
        let first = times.partition_point(|time| time.1 <= op.start);
        for (time, covered) in times.iter().zip(&mut covered).skip(first) {
            if time.0 >= op.end {
                break;
            }
            let (start, end) = (op.start.max(time.0).max(covered.1), op.end.min(time.1));
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
            let Some(pinned) = pinned.as_mut().filter(|_| change.is_host || change.is_free) else {
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
