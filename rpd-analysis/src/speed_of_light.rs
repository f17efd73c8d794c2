//! What a kernel did of what its GPU can do: speed of light, roofline, caches and wave cycles, from counters.
//!
//! [`Counters`] of a kernel and a [`Device`] go in, [`figures`] come out. Each has the counters that it is made of; one whose counters
//! are not recorded, or whose divisor is 0, has no value.

mod counters;
mod limit;
mod peaks;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

pub use counters::{Counters, Geometry};
pub use limit::{Limit, unit_label};
pub use peaks::{Device, Peaks};

/// What a figure's share of its peak says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// How busy a unit is that computes.
    Compute,
    /// How busy a unit is that moves data.
    Memory,
    /// Nothing of a limit.
    Other,
}

/// A figure of a kernel, for a dispatch in the mean.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// `sol`, `roofline`, `caches` or `stalls`.
    pub section: &'static str,
    /// Name, unique in its section.
    pub name: String,
    /// Whether it says how busy a unit is.
    pub kind: Kind,
    /// Value in `unit`; `None` when it is not known.
    pub value: Option<f64>,
    /// Unit of value and peak; `1` for a share, empty for a number.
    pub unit: &'static str,
    /// The most that the GPU can do; `None` where there is no such thing, or it is not known.
    pub peak: Option<f64>,
    /// Part of the peak; the value itself where that is a share.
    pub share: Option<f64>,
    /// Counters that it is made of.
    pub from: Vec<String>,
    /// Indices of the recordings with these.
    pub processes: Vec<u32>,
}

/// A value with the counters that it is made of.
#[derive(Debug, Clone, Default)]
struct Part {
    value: Option<f64>,
    from: Vec<String>,
}

impl Part {
    fn with(self, other: &Part, join: impl Fn(f64, f64) -> Option<f64>) -> Part {
        let value = self.value.zip(other.value);
        let mut from = self.from;
        for name in &other.from {
            if !from.contains(name) {
                from.push(name.clone());
            }
        }
        Part {
            value: value.and_then(|(a, b)| join(a, b)),
            from,
        }
    }

    fn plus(self, other: &Part) -> Part {
        self.with(other, |a, b| Some(a + b))
    }

    fn minus(self, other: &Part) -> Part {
        self.with(other, |a, b| Some(a - b))
    }

    /// The quotient; without a value when the divisor is 0.
    fn over(self, other: &Part) -> Part {
        self.with(other, |a, b| (b != 0.0).then(|| a / b))
    }

    fn times(self, factor: impl Into<Option<f64>>) -> Part {
        let factor = factor.into();
        Part {
            value: self.value.zip(factor).map(|(value, factor)| value * factor),
            from: self.from,
        }
    }
}

/// Everything that counters say of a kernel.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SpeedOfLight {
    /// The figures, in the order in which they are shown.
    pub figures: Vec<Figure>,
    /// Time of a dispatch in nanoseconds that rates refer to.
    pub time: Option<f64>,
    /// Level of memory, or `compute`, that the roofline says to limit the kernel.
    pub roof: Option<&'static str>,
    /// Counters that figures need and that are not recorded.
    pub lacks: BTreeSet<String>,
    /// Whether bytes behind L2 are a lower bound, because a counter for larger requests is missing.
    pub is_lower_bound: bool,
}

/// The figures of a kernel.
///
/// `time` is the typical length of a dispatch in nanoseconds, from a run without counters. On a simulated device cycles and clock give
/// it instead. Where it is not known, that of the counted dispatches is taken.
pub fn figures(counters: &Counters, device: &Device<'_>, time: Option<f64>) -> SpeedOfLight {
    let mut maker = Maker::new(counters, device, time);
    maker.speed_of_light();
    maker.roofline();
    maker.caches();
    maker.stalls();
    maker.done
}

/// Makes figures of counters.
struct Maker<'a> {
    counters: &'a Counters,
    device: &'a Device<'a>,
    cycles: Part,
    /// Seconds of a dispatch.
    time: Part,
    done: SpeedOfLight,
}

impl<'a> Maker<'a> {
    fn new(counters: &'a Counters, device: &'a Device<'a>, time: Option<f64>) -> Maker<'a> {
        let cycles = Part {
            // Each die has an instance.
            value: counters.mean_greatest("GRBM_GUI_ACTIVE"),
            from: vec!["GRBM_GUI_ACTIVE".to_owned()],
        };
        let clock = Part {
            value: device.clock,
            from: Vec::new(),
        };
        let seconds = if device.gpu.is_simulated {
            cycles.clone().over(&clock)
        } else {
            Part {
                value: time
                    .or_else(|| counters.counted_time())
                    .map(|time| time / 1e9),
                from: Vec::new(),
            }
        };
        Maker {
            counters,
            device,
            cycles,
            done: SpeedOfLight {
                time: seconds.value.map(|seconds| seconds * 1e9),
                ..SpeedOfLight::default()
            },
            time: seconds,
        }
    }

    fn counter(&self, name: &str) -> Part {
        Part {
            value: self.counters.mean(name),
            from: vec![name.to_owned()],
        }
    }

    fn add(
        &mut self,
        section: &'static str,
        name: impl Into<String>,
        part: Part,
        unit: &'static str,
    ) -> &mut Figure {
        let mut processes: Vec<u32> = Vec::new();
        for counter in &part.from {
            if self.counters.mean(counter).is_none() {
                self.done.lacks.insert(counter.clone());
            }
            // A counter of several recordings needs no other recording than one of the rest.
            let of = self.counters.processes(counter);
            let of: Vec<u32> = of.collect();
            if !of.iter().any(|process| processes.contains(process)) {
                processes.extend(of.first());
            }
        }
        processes.sort_unstable();
        self.done.figures.push(Figure {
            section,
            name: name.into(),
            kind: Kind::Other,
            share: part.value.filter(|_| unit == "1"),
            value: part.value,
            unit,
            peak: None,
            from: part.from,
            processes,
        });
        self.done.figures.last_mut().expect("it was just added")
    }

    /// Adds how busy a unit is: `part` over the cycles of all `units`.
    fn busy(&mut self, name: &str, kind: Kind, part: Part, units: Option<f64>) {
        let share = part.over(&self.cycles.clone().times(units));
        self.add("sol", name, share, "1").kind = kind;
    }

    /// Adds a rate and its share of a peak.
    fn rate(
        &mut self,
        name: String,
        kind: Kind,
        amount: Part,
        unit: &'static str,
        peak: Option<f64>,
    ) {
        let rate = amount.over(&self.time);
        let share = rate.value.zip(peak).map(|(rate, peak)| rate / peak);
        let figure = self.add("sol", name, rate, unit);
        figure.kind = kind;
        figure.peak = peak;
        figure.share = share;
    }

    fn speed_of_light(&mut self) {
        use Kind::{Compute, Memory};
        let units = self.device.units();
        let peaks = self.device.peaks;
        self.add("sol", "cycles", self.cycles.clone(), "cycles");
        let clock = self.cycles.clone().over(&self.time);
        self.add("sol", "clock", clock, "Hz");
        let active = |name: &str| self.counter(&format!("SQ_{name}"));
        let (valu, scalar) = (active("ACTIVE_INST_VALU"), active("ACTIVE_INST_SCA"));
        let (matrix, lds) = (active("VALU_MFMA_BUSY_CYCLES"), active("LDS_IDX_ACTIVE"));
        let vector_memory = active("ACTIVE_INST_FLAT").plus(&active("ACTIVE_INST_VMEM"));
        let busy = active("BUSY_CU_CYCLES");
        let instructions = active("INSTS").over(&busy);
        self.busy("valu", Compute, valu, units);
        self.busy("mfma", Compute, matrix, units.map(|units| units * 4.0));
        self.busy("scalar", Compute, scalar, units);
        let per_second = self.clocks();
        for (kind, flops) in self.flops() {
            let peak = self.peak(&kind).zip(per_second);
            let peak = peak.map(|(peak, clocks)| peak * clocks);
            self.rate(format!("flops_{kind}"), Compute, flops, "FLOP/s", peak);
        }
        self.busy("lds", Memory, lds, units);
        self.busy("vector_memory", Memory, vector_memory, units);
        let l1_peak = peaks.zip(units).map(|(peaks, units)| peaks.l1 * units);
        let l2_peak = peaks.zip(self.device.channels());
        let l2_peak = l2_peak.map(|(peaks, channels)| peaks.l2 * channels);
        let l1 = self.l1_bytes();
        self.busy("l1", Memory, l1, l1_peak);
        let l2 = self.counter("TCC_REQ_sum").times(128.0);
        self.busy("l2", Memory, l2, l2_peak);
        let fabric = self.fabric();
        self.rate(
            "fabric".to_owned(),
            Memory,
            fabric,
            "B/s",
            self.device.memory,
        );
        self.busy("active_units", Kind::Other, busy.times(4.0), units);
        self.add("sol", "instructions_per_quad", instructions, "");
    }

    fn l1_bytes(&self) -> Part {
        let line = self.device.peaks.map(|peaks| peaks.l1_line);
        self.counter("TCP_TOTAL_CACHE_ACCESSES_sum").times(line)
    }

    /// Requests of the vector caches to L2.
    fn l2_requests(&self) -> Part {
        let request = |name: &str| self.counter(&format!("TCP_TCC_{name}_REQ_sum"));
        request("READ")
            .plus(&request("WRITE"))
            .plus(&request("ATOMIC_WITH_RET"))
            .plus(&request("ATOMIC_WITHOUT_RET"))
    }

    /// Bytes that leave L2 in one direction.
    fn leaving(&self, terms: &BTreeMap<String, f64>, zero: &[String]) -> Part {
        let nothing = Part {
            value: Some(0.0),
            from: Vec::new(),
        };
        terms.iter().fold(nothing, |sum, (name, bytes)| {
            let part = self.counter(name);
            if part.value.is_none() && zero.contains(name) {
                return sum;
            }
            sum.plus(&part.times(*bytes))
        })
    }

    fn fabric(&self) -> Part {
        let Some(peaks) = self.device.peaks else {
            return Part::default();
        };
        let read = self.leaving(&peaks.fabric_read, &peaks.assumed_zero);
        read.plus(&self.leaving(&peaks.fabric_write, &peaks.assumed_zero))
    }

    /// FLOP of a dispatch by type: `F32` of vector instructions, `matrix_F32` of matrix instructions.
    fn flops(&self) -> Vec<(String, Part)> {
        let Some(peaks) = self.device.peaks else {
            return Vec::new();
        };
        let lanes = f64::from(self.device.gpu.wave_size);
        let vector = peaks.vector.keys().map(|kind| {
            let of = |operation: &str| self.counter(&format!("SQ_INSTS_VALU_{operation}_{kind}"));
            let all = of("ADD").plus(&of("MUL")).plus(&of("TRANS"));
            (kind.clone(), all.plus(&of("FMA").times(2.0)).times(lanes))
        });
        let matrix = peaks
            .matrix
            .keys()
            .filter(|kind| *kind != "I8")
            .map(|kind| {
                let counter = self.counter(&format!("SQ_INSTS_VALU_MFMA_MOPS_{kind}"));
                (format!("matrix_{kind}"), counter.times(512.0))
            });
        vector.chain(matrix).collect()
    }

    /// FLOP of a compute unit in a clock, of a type as [`Maker::flops`] names it.
    fn peak(&self, kind: &str) -> Option<f64> {
        let peaks = self.device.peaks?;
        match kind.strip_prefix("matrix_") {
            Some(kind) => peaks.matrix.get(kind),
            None => peaks.vector.get(kind),
        }
        .copied()
    }

    fn roofline(&mut self) {
        let flops = self.flops();
        let added = |is_matrix: bool| {
            let parts = flops
                .iter()
                .filter(|(kind, _)| kind.starts_with("matrix_") == is_matrix);
            let mut parts = parts.map(|(_, part)| part.clone());
            let first = parts.next().unwrap_or_default();
            parts.fold(first, |sum, part| sum.plus(&part))
        };
        let (vector, matrix) = (added(false), added(true));
        let all = vector.clone().plus(&matrix);
        self.add("roofline", "flops_vector", vector.clone(), "FLOP");
        self.add("roofline", "flops_matrix", matrix, "FLOP");
        self.lanes(vector);
        let mix = self.peak_of_mix(&flops, &all);
        self.roofs(&self.levels(), &all, mix);
    }

    /// Adds how many lanes of instructions are active, and operations of integers.
    fn lanes(&mut self, vector: Part) {
        let lanes = f64::from(self.device.gpu.wave_size);
        // Instructions count all lanes of a wave.
        let lanes_active = self
            .counter("SQ_THREAD_CYCLES_VALU")
            .over(&self.counter("SQ_ACTIVE_INST_VALU"));
        let enabled = lanes_active.clone().times(1.0 / lanes.max(1.0));
        let active = enabled.value;
        self.add("roofline", "lanes", lanes_active, "");
        let vector_active = Part {
            value: vector.value.zip(active).map(|(flops, share)| flops * share),
            ..vector
        };
        self.add("roofline", "flops_vector_active", vector_active, "FLOP");
        let mut integers = self.counter("SQ_INSTS_VALU_INT32");
        integers = integers
            .plus(&self.counter("SQ_INSTS_VALU_INT64"))
            .times(lanes);
        if self
            .device
            .peaks
            .is_some_and(|peaks| peaks.matrix.contains_key("I8"))
        {
            let matrix = self.counter("SQ_INSTS_VALU_MFMA_MOPS_I8").times(512.0);
            integers = integers.plus(&matrix);
        }
        self.add("roofline", "integer_operations", integers, "");
    }

    /// Clocks of all compute units in a second.
    fn clocks(&self) -> Option<f64> {
        Some(self.device.units()? * self.device.clock?)
    }

    /// FLOP per second that the mix of types allows: by the time that each type takes at its own peak.
    fn peak_of_mix(&self, flops: &[(String, Part)], all: &Part) -> Option<f64> {
        let clocks = self.clocks()?;
        let least = flops
            .iter()
            .map(|(kind, part)| Some(part.value? / (self.peak(kind)? * clocks)));
        let least: f64 = least.sum::<Option<f64>>()?;
        (least > 0.0).then_some(all.value? / least)
    }

    /// Levels of memory: name, bytes of a dispatch, and the most bytes in a second.
    fn levels(&self) -> [(&'static str, Part, Option<f64>); 4] {
        let peaks = self.device.peaks;
        let clocks = self.clocks();
        let useful = self.counter("SQ_LDS_IDX_ACTIVE");
        let useful = useful.minus(&self.counter("SQ_LDS_BANK_CONFLICT"));
        let of_units = |bytes: fn(&Peaks) -> f64| Some(bytes(peaks?) * clocks?);
        let l2 = || Some(peaks?.l2 * self.device.channels()? * self.device.clock?);
        [
            (
                "lds",
                useful.times(peaks.map(|peaks| peaks.lds)),
                of_units(|peaks| peaks.lds),
            ),
            ("l1", self.l1_bytes(), of_units(|peaks| peaks.l1)),
            ("l2", self.l2_requests().times(64.0), l2()),
            ("fabric", self.fabric(), self.device.memory),
        ]
    }

    /// Adds bytes and intensity of each level, and what the least of the roofs allows.
    fn roofs(
        &mut self,
        levels: &[(&'static str, Part, Option<f64>)],
        all: &Part,
        mix: Option<f64>,
    ) {
        let mut least = mix.map(|mix| (mix, "compute"));
        for (level, bytes, rate) in levels {
            self.add("roofline", format!("bytes_{level}"), bytes.clone(), "B");
            let intensity = all.clone().over(bytes);
            let roof = intensity
                .value
                .zip(*rate)
                .map(|(intensity, rate)| intensity * rate);
            if let Some(roof) = roof.filter(|roof| least.is_some_and(|least| *roof < least.0)) {
                least = Some((roof, level));
            }
            self.add(
                "roofline",
                format!("intensity_{level}"),
                intensity,
                "FLOP/B",
            );
        }
        let mut l2 = self.counter("TCC_REQ_sum");
        l2 = l2.times(128.0);
        self.add("roofline", "bytes_l2_looked_up", l2, "B");
        let number = |value: Option<f64>| Part {
            value,
            from: all.from.clone(),
        };
        self.add("roofline", "peak_of_mix", number(mix), "FLOP/s");
        let attainable = least.map(|least| least.0);
        self.add("roofline", "attainable", number(attainable), "FLOP/s");
        let attained = all.clone().over(&self.time);
        let efficiency = attained.clone().over(&number(attainable));
        self.add("roofline", "attained", attained, "FLOP/s");
        self.add("roofline", "efficiency", efficiency, "1");
        self.done.roof = least.map(|least| least.1);
        let zero = self
            .device
            .peaks
            .map_or(&[] as &[String], |peaks| &peaks.assumed_zero);
        self.done.is_lower_bound = zero.iter().any(|name| self.counters.mean(name).is_none());
    }

    fn caches(&mut self) {
        let accesses = self.counter("TCP_TOTAL_CACHE_ACCESSES_sum");
        let requests = self.l2_requests();
        self.add("caches", "l1_requests", accesses.clone(), "");
        let hits = accesses.clone().minus(&requests).over(&accesses);
        self.add("caches", "l1_hit", hits, "1");
        self.add("caches", "l2_requests", self.counter("TCC_REQ_sum"), "");
        for (name, hits, misses) in [
            ("l2_hit", "TCC_HIT_sum", "TCC_MISS_sum"),
            ("scalar_hit", "SQC_DCACHE_HITS", "SQC_DCACHE_MISSES"),
            ("instruction_hit", "SQC_ICACHE_HITS", "SQC_ICACHE_MISSES"),
        ] {
            let hits = self.counter(hits);
            let all = hits.clone().plus(&self.counter(misses));
            self.add("caches", name, hits.over(&all), "1");
        }
        let conflicts = self.counter("SQ_LDS_BANK_CONFLICT");
        let useful = self.counter("SQ_LDS_IDX_ACTIVE").minus(&conflicts);
        self.add(
            "caches",
            "conflicts_per_access",
            conflicts.over(&useful),
            "",
        );
        for (name, counter) in [
            ("vector_memory_latency", "VmemLatency"),
            ("lds_latency", "LdsLatency"),
            ("scalar_latency", "SmemLatency"),
        ] {
            // These are metrics that are recorded on request alone.
            if self.counters.mean(counter).is_some() {
                self.add("caches", name, self.counter(counter), "cycles");
            }
        }
    }

    fn stalls(&mut self) {
        let all = self.counter("SQ_WAVE_CYCLES");
        for (name, counter) in [
            ("active", "SQ_ACTIVE_INST_ANY"),
            ("waits_for_data", "SQ_WAIT_ANY"),
            ("waits_for_issue", "SQ_WAIT_INST_ANY"),
        ] {
            let share = self.counter(counter).over(&all);
            self.add("stalls", name, share, "1");
        }
        self.add(
            "stalls",
            "waves_of_unit",
            self.counter("MeanOccupancyPerCU"),
            "",
        );
        let busy = all.over(&self.counter("SQ_BUSY_CU_CYCLES"));
        self.add("stalls", "waves_of_active_unit", busy, "");
    }
}

impl SpeedOfLight {
    /// A figure by section and name.
    pub fn figure(&self, section: &str, name: &str) -> Option<&Figure> {
        self.figures
            .iter()
            .find(|figure| figure.section == section && figure.name == name)
    }

    /// The value of a figure; `None` when it is not known.
    pub fn value(&self, section: &str, name: &str) -> Option<f64> {
        self.figure(section, name)?.value
    }

    /// The share of its peak, of a figure of the section `sol`.
    pub fn share(&self, name: &str) -> Option<f64> {
        self.figure("sol", name)?.share
    }

    /// The unit of a kind that is nearest to its peak, with its share as a fraction; `None` when no share of them is known.
    pub fn greatest(&self, kind: Kind) -> Option<(f64, &str)> {
        let of_kind = self.figures.iter().filter(|figure| figure.kind == kind);
        let shares = of_kind.filter_map(|figure| Some((figure.share?, figure.name.as_str())));
        shares.max_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// What limits the kernel. `groups` and `units` are the workgroups launched and the GPU's compute units.
    pub fn limit(&self, groups: u64, units: u32) -> Option<Limit<'_>> {
        if groups > 0 && groups < u64::from(units) {
            return Some(Limit::Grid);
        }
        let percent = |(share, unit)| (share * 100.0, unit);
        let compute = percent(self.greatest(Kind::Compute)?);
        let memory = percent(self.greatest(Kind::Memory)?);
        Some(Limit::from_shares(compute, memory))
    }
}
