//! What a comparison knows of a run.

use std::collections::{BTreeMap, BTreeSet};

use crate::distribution::{Distribution, median};
use crate::occupancy::{Mode, Needs, occupancy, unit};
use crate::records::{Facts, Gpu, Op, Records};
use crate::speed_of_light::{Counters, Device, SpeedOfLight, figures};
use crate::{breakdown, gaps};

/// Name, workgroups and work items of a kernel.
pub(super) type Key = (String, String, String);

/// A run of a program.
#[derive(Debug, Default)]
pub struct Run {
    /// GPUs, each once: architecture and product.
    pub(super) hardware: BTreeSet<String>,
    pub(super) is_simulated: bool,
    pub(super) is_counted: bool,
    /// Length of the window.
    pub(super) window: u64,
    /// Parts of the time of all GPUs.
    pub(super) parts: BTreeMap<&'static str, u64>,
    /// Time of gaps by cause.
    pub(super) causes: BTreeMap<&'static str, u64>,
    pub(super) kernels: BTreeMap<Key, Kernel>,
}

/// A kernel in one geometry, in one run.
#[derive(Debug, Clone, Default)]
pub(super) struct Kernel {
    pub(super) calls: u64,
    pub(super) total: u64,
    typical: f64,
    pub(super) vgprs: u32,
    pub(super) sgprs: u32,
    pub(super) lds: u32,
    pub(super) scratch: u32,
    /// Waves that a SIMD can hold by its registers.
    pub(super) waves: Option<u32>,
    /// Share of its time in which another kernel runs.
    pub(super) beside: f64,
    pub(super) counted: Counted,
}

/// What counters and samples say of a kernel.
#[derive(Debug, Clone, Default)]
pub(super) struct Counted {
    light: Option<SpeedOfLight>,
    reason: Option<&'static str>,
    is_simulated: bool,
}

impl Counted {
    /// What differs by more than 1 % of an amount or 2 points of a share.
    pub(super) fn changes(&self, new: &Counted) -> Vec<String> {
        let mut changes = Vec::new();
        if let (Some(old), Some(new_light)) = (&self.light, &new.light) {
            let pair = |section, name| old.value(section, name).zip(new_light.value(section, name));
            // The clock of a simulated device is always the same.
            if !self.is_simulated
                && let Some((a, b)) = pair("sol", "clock").filter(differs)
            {
                changes.push(format!("clock {:.2} -> {:.2} GHz", a / 1e9, b / 1e9));
            }
            let flops = |light: &SpeedOfLight| {
                let vector = light.value("roofline", "flops_vector")?;
                Some(vector + light.value("roofline", "flops_matrix")?)
            };
            if let Some((a, b)) = flops(old).zip(flops(new_light)).filter(differs) {
                changes.push(format!("flops {a:.0} -> {b:.0}"));
            }
            if let Some((a, b)) = pair("roofline", "bytes_fabric").filter(differs) {
                changes.push(format!("bytes {a:.0} -> {b:.0}"));
            }
            let hits = pair("caches", "l2_hit").filter(|(a, b)| (a - b).abs() > 0.02);
            if let Some((a, b)) = hits {
                changes.push(format!("l2 hit {:.0} % -> {:.0} %", a * 100.0, b * 100.0));
            }
        }
        if let (Some(a), Some(b)) = (self.reason, new.reason)
            && a != b
        {
            changes.push(format!("stall reason {a} -> {b}"));
        }
        changes
    }
}

fn differs(pair: &(f64, f64)) -> bool {
    (pair.0 - pair.1).abs() > 0.01 * pair.0.abs().max(pair.1.abs())
}

/// Sums while records are read.
#[derive(Default)]
struct Sums {
    times: Distribution,
    beside: u64,
    last: Option<Op>,
}

impl Run {
    /// Sums up a run. `rename` gives the name under which a kernel is compared.
    pub fn new(
        records: &dyn Records,
        window: Option<(u64, u64)>,
        rename: impl Fn(&str) -> String,
    ) -> Run {
        let facts = records.facts();
        let mut run = Run {
            is_counted: facts.recorded.counters,
            ..Run::default()
        };
        for gpu in &facts.gpus {
            run.hardware.insert(hardware(gpu));
            run.is_simulated |= gpu.is_simulated;
        }
        let Some(chosen) = breakdown::window(records, window) else {
            return run;
        };
        run.window = chosen.length();
        run.add_times(records, window);
        let counters = Counters::from_records(records);
        for ((name, groups, items), mut sums) in sums(records, &chosen) {
            let Some(op) = sums.last else {
                continue;
            };
            let mut kernel = kernel(facts, &op, &mut sums);
            if let Some(counters) = counters.get(&name) {
                let device = Device::new(&facts.gpus[counters.gpu as usize]);
                let time = sums.times.median();
                kernel.counted.light = Some(figures(counters, &device, time));
                kernel.counted.is_simulated = device.gpu.is_simulated;
            }
            let text = facts.name(name);
            let hottest = records.sampled().iter().find(|line| line.kernel == text);
            kernel.counted.reason = hottest.and_then(|line| Some(line.reasons.first()?.0));
            let key = (rename(text), groups, items);
            let known = run.kernels.entry(key).or_default();
            known.merge(kernel);
        }
        run
    }

    /// Adds parts of the time and causes of gaps.
    fn add_times(&mut self, records: &dyn Records, window: Option<(u64, u64)>) {
        let options = breakdown::Options {
            window,
            ..breakdown::Options::default()
        };
        let measured = breakdown::measure(records, &options);
        let measured = measured.map(|measured| measured.answer(records));
        let table = measured
            .as_ref()
            .and_then(|answer| answer.section("breakdown"));
        for (part, column) in [
            ("compute", "compute_ns"),
            ("exposed comm", "exposed_comm_ns"),
            ("exposed copy", "exposed_copy_ns"),
            ("exposed fill", "exposed_fill_ns"),
            ("idle", "idle_ns"),
        ] {
            // The first row is of all GPUs, or of the only one.
            let time = table.and_then(|table| table.get(0, column)?.number());
            self.parts.insert(part, time.unwrap_or(0.0) as u64);
        }
        let options = gaps::Options {
            window,
            limit: Some(0),
            ..gaps::Options::default()
        };
        let found = gaps::find(records, &options);
        for scope in &found.scopes {
            for (cause, time) in scope.parts.each() {
                *self.causes.entry(cause).or_default() += time;
            }
        }
    }
}

fn hardware(gpu: &Gpu) -> String {
    let simulated = if gpu.is_simulated { ", simulated" } else { "" };
    format!("{} ({}{simulated})", gpu.arch, gpu.name)
}

fn dims(values: [u32; 3]) -> String {
    values.map(|value| value.to_string()).join("x")
}

/// Sums of kernels by name and geometry.
fn sums(
    records: &dyn Records,
    window: &crate::answer::Window,
) -> BTreeMap<(u32, String, String), Sums> {
    let mut all: BTreeMap<(u32, String, String), Sums> = BTreeMap::new();
    let mut places: BTreeMap<(u32, [u32; 3], [u32; 3]), (u32, String, String)> = BTreeMap::new();
    // The latest end of kernels of each GPU, and whose it is.
    let mut running: BTreeMap<u32, (u64, (u32, String, String))> = BTreeMap::new();
    for op in records.ops() {
        if !op.is_kernel || op.start >= window.end || op.end < window.start {
            continue;
        }
        let place = places
            .entry((op.name, op.grid, op.group))
            .or_insert_with(|| {
                let groups = [0, 1, 2].map(|axis| match op.group[axis] {
                    0 => 0,
                    items => op.grid[axis].div_ceil(items),
                });
                (op.name, dims(groups), dims(op.group))
            });
        let mut shared = 0;
        if let Some((end, other)) = running.get(&op.gpu) {
            shared = end.min(&op.end).saturating_sub(op.start);
            if shared > 0
                && let Some(other) = all.get_mut(other)
            {
                other.beside += shared;
            }
        }
        let sums = all.entry(place.clone()).or_default();
        sums.times.add(op.length());
        sums.beside += shared;
        sums.last = Some(op);
        if running
            .get(&op.gpu)
            .is_none_or(|running| op.end > running.0)
        {
            running.insert(op.gpu, (op.end, place.clone()));
        }
    }
    all
}

fn kernel(facts: &Facts, op: &Op, sums: &mut Sums) -> Kernel {
    let total = sums.times.sum();
    let resources = facts.kernels.get(op.kernel as usize).copied();
    let resources = resources.unwrap_or_default();
    let gpu = &facts.gpus[op.gpu as usize];
    let of_simd = unit(&gpu.arch, gpu.wave_size, Mode::ComputeUnit).and_then(|unit| {
        let needs = Needs {
            vgprs: resources.vgprs,
            sgprs: resources.sgprs,
            lds: 0,
            items: gpu.wave_size,
        };
        Some(occupancy(&unit, gpu.wave_size, &needs)?.waves / unit.simds)
    });
    Kernel {
        calls: sums.times.count(),
        total,
        typical: typical(&mut sums.times),
        vgprs: resources.vgprs,
        sgprs: resources.sgprs,
        lds: op.lds,
        scratch: op.scratch,
        waves: of_simd,
        beside: sums.beside as f64 / total.max(1) as f64,
        counted: Counted::default(),
    }
}

/// Mean of the faster half of the values; their median where there are too many to keep.
fn typical(times: &mut Distribution) -> f64 {
    let half = times.values().map(|values| {
        let half = &values[..values.len().div_ceil(2)];
        half.iter().sum::<u64>() as f64 / half.len().max(1) as f64
    });
    half.or_else(|| times.median()).unwrap_or(0.0)
}

impl Kernel {
    /// Adds another kernel that has come to have the same name.
    fn merge(&mut self, other: Kernel) {
        let (calls, total) = (self.calls + other.calls, self.total + other.total);
        let weighted = self.typical * self.calls as f64 + other.typical * other.calls as f64;
        let typical = weighted / calls.max(1) as f64;
        *self = Kernel {
            calls,
            total,
            typical,
            ..other
        };
    }
}

/// A kernel on one side: sums over its runs.
#[derive(Debug, Default)]
pub(super) struct Joined {
    /// Runs of the side, whether they have the kernel or not; 0 where none has it.
    pub(super) runs: u64,
    pub(super) groups: String,
    pub(super) items: String,
    calls: u64,
    total: u64,
    /// Typical time of each run that has it.
    pub(super) typicals: Vec<f64>,
    /// Of the first run that has it.
    pub(super) kernel: Option<Kernel>,
}

impl Joined {
    /// Launches of a run in the mean.
    pub(super) fn calls(&self) -> i64 {
        (self.calls / self.runs.max(1)) as i64
    }

    /// Time of a run in the mean.
    pub(super) fn total(&self) -> i64 {
        (self.total / self.runs.max(1)) as i64
    }

    /// Time of a launch in the mean; `None` without launches.
    pub(super) fn mean(&self) -> Option<f64> {
        (self.calls > 0).then(|| self.total as f64 / self.calls as f64)
    }

    /// Typical time in the median run; `None` without runs.
    pub(super) fn typical(&self) -> Option<f64> {
        median(&mut self.typicals.clone())
    }
}

/// The kernels of a side.
pub(super) fn joined(runs: &[Run]) -> BTreeMap<Key, Joined> {
    let mut all: BTreeMap<Key, Joined> = BTreeMap::new();
    for run in runs {
        for (key, kernel) in &run.kernels {
            let joined = all.entry(key.clone()).or_default();
            joined.runs = runs.len() as u64;
            (joined.groups, joined.items) = (key.1.clone(), key.2.clone());
            joined.calls += kernel.calls;
            joined.total += kernel.total;
            joined.typicals.push(kernel.typical);
            joined.kernel.get_or_insert_with(|| kernel.clone());
        }
    }
    all
}
