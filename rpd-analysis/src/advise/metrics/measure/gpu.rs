//! Figures of a GPU.

use super::gap_sums::GapSums;
use super::{OfGpu, ratio};
use crate::advise::metrics::streams::Waits;
use crate::advise::metrics::{Source, Subject};
use crate::answer::{Unit, Window, key, shown};
use crate::breakdown;
use crate::classes::{Class, Doing};
use crate::gaps;
use crate::records::Facts;

pub(super) fn gpu_subject(
    facts: &Facts,
    window: &Window,
    number: u32,
    sums: &mut OfGpu,
    broken: &breakdown::Breakdown,
    gaps: &gaps::Gaps,
    gap_sums: &GapSums,
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
    let lulls = gap_sums.lulls.get(&number);
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
            gap_sums.inner_copy.get(&number).copied().unwrap_or(0),
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
    let starved = gap_sums.starved.get(&number);
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

/// What the streams of a GPU wait for.
pub(super) fn add_waits(subject: &mut Subject, number: u32, waits: &Waits, has_calls: bool) {
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
