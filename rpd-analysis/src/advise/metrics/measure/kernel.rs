//! Figures of a kernel.

use super::{OfKernel, ratio};
use crate::advise::metrics::{Source, Subject};
use crate::answer::Window;
use crate::classes::Class;
use crate::occupancy::{Mode, Needs, occupancy, rounds, unit as occupancy_unit};
use crate::outliers::{Group, variability};
use crate::records::{Facts, Op};

pub(super) fn kernel_subject(
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
