//! Figures of kernels from counters and PC samples.

use std::collections::BTreeMap;

use super::Subject;
use crate::records::{Facts, Records, Sampled};
use crate::speed_of_light::{Counters, Device, Geometry, Kind, SpeedOfLight, figures};

/// What counters and samples say of kernels, by the number of their names.
pub(super) struct Evidence<'a> {
    counted: BTreeMap<u32, Counters>,
    sampled: &'a [Sampled],
    facts: &'a Facts,
}

impl<'a> Evidence<'a> {
    pub(super) fn new(records: &'a dyn Records) -> Evidence<'a> {
        Evidence {
            counted: Counters::from_records(records),
            sampled: records.sampled(),
            facts: records.facts(),
        }
    }

    /// Sets the figures of a kernel on a GPU. `typical` is the median length of a launch by geometry, and `places` are those for
    /// waves in a unit.
    pub(super) fn set(
        &self,
        subject: &mut Subject,
        name: u32,
        gpu: u32,
        places: Option<f64>,
        typical: impl Fn(&Geometry) -> Option<f64>,
    ) {
        if let Some(counters) = self.counted.get(&name) {
            let device = Device::new(&self.facts.gpus[gpu as usize]);
            let sol = figures(counters, &device, counters.time(typical));
            of_speed_of_light(subject, &sol);
            of_counters(subject, counters);
            let lanes = device.gpu.wave_size;
            let active = sol.value("roofline", "lanes").filter(|_| lanes > 0);
            put(
                subject,
                "lanes_active",
                active.map(|active| active / f64::from(lanes)),
            );
            let waves = sol.value("stalls", "waves_of_unit").zip(places);
            put(
                subject,
                "achieved_occupancy",
                waves.map(|(waves, places)| waves / places),
            );
        }
        self.of_samples(subject, self.facts.name(name));
    }

    fn of_samples(&self, subject: &mut Subject, name: &str) {
        let lines = || self.sampled.iter().filter(|line| line.kernel == name);
        let Some(first) = lines().next() else {
            return;
        };
        let all = first.of_kernel.max(1) as f64;
        subject.count("samples", first.of_kernel);
        let hottest = lines().map(|line| line.samples).max().unwrap_or(0);
        subject.set("hottest_line_share", hottest as f64 / all);
        let reason = |wanted: Option<&str>| -> u64 {
            let of_line = |line: &Sampled| -> u64 {
                let reasons = line.reasons.iter();
                let wanted = reasons.filter(|reason| wanted.is_none_or(|name| reason.0 == name));
                wanted.map(|reason| reason.1).sum()
            };
            lines().map(of_line).sum()
        };
        // Samples of the host trap method have no reasons.
        let stalled = reason(None);
        if stalled > 0 {
            let share = |name: &str| reason(Some(name)) as f64 / stalled as f64;
            subject.set("stalled_share", stalled as f64 / all);
            subject.set("waitcnt_share", share("WAITCNT"));
            subject.set("barrier_share", share("BARRIER_WAIT"));
            let fetch = reason(Some("NO_INSTRUCTION_AVAILABLE"));
            subject.set("fetch_share", fetch as f64 / all);
        }
        for rule in ["hot-line", "wait-memory", "wait-barrier", "icache"] {
            for line in lines().take(3) {
                let share = line.samples as f64 / all * 100.0;
                let error = line
                    .error
                    .map_or(String::new(), |error| format!(" +- {:.1} %", error * 100.0));
                let why = line.reasons.first().map_or(String::new(), |reason| {
                    format!(", most often {}", reason.0.to_lowercase())
                });
                let text = format!("{}: {share:.1} %{error} of the samples{why}", line.place);
                let key = crate::answer::key(&[&"line", &name, &line.place]);
                subject.evidence.push((rule, text, key));
            }
        }
    }
}

fn put(subject: &mut Subject, name: &'static str, value: Option<f64>) {
    if let Some(value) = value {
        subject.set(name, value);
    }
}

/// A quotient; `None` without a part, or of 0.
fn over(part: Option<f64>, whole: Option<f64>) -> Option<f64> {
    let (part, whole) = part.zip(whole)?;
    (whole > 0.0).then(|| part / whole)
}

fn of_speed_of_light(subject: &mut Subject, sol: &SpeedOfLight) {
    let compute = sol.greatest(Kind::Compute).map(|greatest| greatest.0);
    let memory = sol.greatest(Kind::Memory).map(|greatest| greatest.0);
    put(subject, "compute_share", compute);
    put(subject, "memory_share", memory);
    let greatest = compute
        .zip(memory)
        .map(|(compute, memory)| compute.max(memory));
    put(subject, "greatest_share", greatest);
    for (name, unit) in [
        ("valu_share", "valu"),
        ("lds_busy", "lds"),
        ("fabric_share", "fabric"),
        ("active_units", "active_units"),
    ] {
        put(subject, name, sol.share(unit));
    }
    for (name, section, figure) in [
        ("l1_hit", "caches", "l1_hit"),
        ("l2_hit", "caches", "l2_hit"),
        ("instruction_hit", "caches", "instruction_hit"),
        ("lds_conflicts", "caches", "conflicts_per_access"),
        ("fabric_bytes", "roofline", "bytes_fabric"),
        ("mfma_flops", "roofline", "flops_matrix"),
        ("data_wait_share", "stalls", "waits_for_data"),
    ] {
        put(subject, name, sol.value(section, figure));
    }
}

/// Figures that only rules have.
fn of_counters(subject: &mut Subject, counters: &Counters) {
    let mean = |name: &str| counters.mean(name);
    let added = |names: &[&str]| names.iter().map(|name| mean(name)).sum::<Option<f64>>();
    let valu = |operation: &str, kind: &str| mean(&format!("SQ_INSTS_VALU_{operation}_{kind}"));
    let of = |kinds: &[&str], operations: &[&str], factor: f64| -> Option<f64> {
        let each = kinds
            .iter()
            .flat_map(|kind| operations.iter().map(move |operation| (kind, operation)));
        let sum: Option<f64> = each.map(|(kind, operation)| valu(operation, kind)).sum();
        sum.map(|sum| sum * factor)
    };
    const FLOATS: [&str; 3] = ["F16", "F32", "F64"];
    let single = of(&FLOATS, &["ADD", "MUL"], 1.0);
    let fused = of(&FLOATS, &["FMA"], 2.0);
    let all = single.zip(fused).map(|(single, fused)| single + fused);
    put(subject, "unfused_share", over(single, all));
    put(subject, "fma_share", over(fused, all));
    let double = of(&["F64"], &["ADD", "MUL"], 1.0).zip(of(&["F64"], &["FMA"], 2.0));
    let double = double.map(|(single, fused)| single + fused);
    put(subject, "double_share", over(double, all));
    let atomics = added(&[
        "TCP_TCC_ATOMIC_WITH_RET_REQ_sum",
        "TCP_TCC_ATOMIC_WITHOUT_RET_REQ_sum",
    ]);
    let requests = added(&[
        "TCP_TCC_READ_REQ_sum",
        "TCP_TCC_WRITE_REQ_sum",
        "TCP_TCC_ATOMIC_WITH_RET_REQ_sum",
        "TCP_TCC_ATOMIC_WITHOUT_RET_REQ_sum",
    ]);
    put(subject, "atomic_share", over(atomics, requests));
    let conflicts = mean("SQ_LDS_ADDR_CONFLICT");
    put(
        subject,
        "lds_address_conflicts",
        over(conflicts, mean("SQ_LDS_IDX_ACTIVE")),
    );
    let accesses = mean("TCP_TOTAL_CACHE_ACCESSES_sum");
    put(
        subject,
        "lines_per_access",
        over(accesses, mean("SQ_INSTS_VMEM")),
    );
}
