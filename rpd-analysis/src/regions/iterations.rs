//! Iterations as an answer.

use super::{FORM, run_window};
use crate::answer::{Answer, Level, Section, Value, columns, key};
use crate::gaps::report_common;
use crate::iterations::{Found, Iterations};
use crate::outliers::{Group, Outliers};
use crate::records::{NONE, Records};

columns! {
    /// An iteration.
    IterationRow {
        key: Key "Key" 9 "Identity of the row: `iteration` and its number",
        iteration: Count "Iteration" 0 "Number, from 0",
        thread: Count "Thread" 5 "Thread of the marker; null for iterations by the sequence of kernels",
        begin_ns: Nanoseconds "Begin" 6 "Begin on the recording's clock",
        begin_rel_ns: Nanoseconds "At" 1 "Begin, from that of the first one",
        pace_ns: Nanoseconds "Pace" 0 "Time from its begin to that of the next; null of the last one",
        host_ns: Nanoseconds "Host" 2 "Length of its marker; null without one",
        gpu_ns: Nanoseconds "GPU" 0 "Time in which its operations run",
        busy_share: Share "Busy" 1 "gpu_ns as a share of the pace",
        kernels: Count "Kernels" 1 "Number of kernels",
        copies: Count "Copies" 3 "Number of copies",
        z: Number "z" 2 "Distance of the pace from the median, in the scale of the spread",
        flag: Word "Flag" 0 "warm-up, outlier or partial; null for an ordinary one",
    }
}

columns! {
    /// Statistics of iterations.
    PaceRow {
        key: Key "Key" 9 "Identity of the row: `pace`",
        found: Word "Found by" 0 "markers or sequence",
        name: Name "Marker" 0 "Message of the markers, digits replaced by #; null for a sequence",
        iterations: Count "Number" 0 "Number of iterations",
        warm_up: Count "Warm-up" 0 "Number of leading iterations that are left out of the statistics",
        median_ns: Nanoseconds "Median" 0 "Median pace",
        mad_ns: Nanoseconds "MAD" 1 "Median absolute deviation of the pace",
        mean_ns: Nanoseconds "Mean" 1 "Mean pace",
        p95_ns: Nanoseconds "p95" 1 "95th percentile of the pace",
        outliers: Word "Outliers" 1 "Number of outliers, or multimodal",
        trend_ns: Nanoseconds "Per 100" 3 "Change of the pace in 100 iterations",
        drift: Word "Drift" 3 "yes when the change is more than 5 % of the median and more than noise",
        period: Count "Period" 4 "Launches of an iteration; null for markers",
        confidence: Share "Sure" 4 "Share of launches in iterations that match; null for markers",
        outside: Count "Outside" 4 "Operations that were launched outside of iterations",
    }
}

columns! {
    /// A kernel's time in iterations.
    KernelRow {
        key: Key "Key" 9 "Identity of the row: `kernel` and its name",
        name: Name "Kernel" 0 "Name",
        mean_ns: Nanoseconds "Mean" 0 "Mean time in an iteration after the warm-up",
        min_ns: Nanoseconds "Least" 0 "Least time in an iteration",
        max_ns: Nanoseconds "Greatest" 0 "Greatest time in an iteration",
        spread_ns: Nanoseconds "Spread" 0 "Greatest less least",
        iterations: Count "In" 1 "Number of iterations with the kernel",
    }
}

/// The iterations as an answer; `by_kernel` adds what makes them differ.
pub fn answer(records: &dyn Records, found: Option<&Iterations>, by_kernel: bool) -> Answer {
    let facts = records.facts();
    let mut answer = Answer::new(FORM.command);
    answer.main = if by_kernel { "kernels" } else { "iterations" };
    answer.window = run_window(records);
    if !facts.recorded.markers {
        answer.lacks(
            "markers",
            &["iterations"],
            "the recording has no markers",
            "--marker-trace",
        );
    }
    let Some(found) = found else {
        answer.is_empty = true;
        answer.lacks(
            "iterations",
            &["iterations", "pace"],
            "no marker repeats, and the sequence of kernels has no period",
            "",
        );
        return answer;
    };
    answer.sections = vec![pace(found), list(records, found)];
    if by_kernel {
        answer.sections.push(kernels(records, found));
    }
    let pace = found.pace();
    if pace.count < 5 {
        let text = format!("only {} paces", pace.count);
        answer.warn("few-samples", Level::Note, text);
    }
    if pace.outliers == Outliers::Multimodal {
        answer.warn("multimodal", Level::Note, "the paces lie in several places");
    }
    if found.all.iter().any(|iteration| iteration.pace.is_none()) {
        answer.warn(
            "partial-iteration",
            Level::Note,
            "the last iteration of a thread has no pace",
        );
    }
    report_common(facts, &mut answer, 0);
    answer
}

fn pace(found: &Iterations) -> Section {
    let pace = found.pace();
    let whole = |value: Option<f64>| Value::from(value.map(|value| value.round() as i64));
    let row = PaceRow {
        key: key(&[&"pace"]).into(),
        iterations: found.all.len().into(),
        warm_up: found.warm_up.into(),
        median_ns: whole(pace.median),
        mad_ns: whole(pace.spread),
        mean_ns: whole(pace.mean),
        p95_ns: pace.p95.into(),
        outliers: match pace.outliers {
            Outliers::Some(count) => count.to_string().into(),
            Outliers::Multimodal => "multimodal".into(),
        },
        trend_ns: whole(pace.trend),
        drift: if pace.drifts {
            "yes".into()
        } else {
            "no".into()
        },
        outside: found.outside.into(),
        ..PaceRow::default()
    };
    let row = match &found.found {
        Found::Markers(name) => PaceRow {
            found: "markers".into(),
            name: name.as_str().into(),
            ..row
        },
        Found::Sequence { period, confidence } => PaceRow {
            found: "sequence".into(),
            period: (*period).into(),
            confidence: (*confidence).into(),
            ..row
        },
    };
    Section::new("pace", PaceRow::COLUMNS, vec![row.cells()])
}

fn list(records: &dyn Records, found: &Iterations) -> Section {
    let facts = records.facts();
    let steady = found.steady().iter().filter_map(|iteration| iteration.pace);
    let steady: Vec<f64> = steady.map(|pace| pace as f64).collect();
    let group = Group::new(&steady);
    let first = found.all.first().map_or(0, |iteration| iteration.begin);
    let rows = found.all.iter().enumerate().map(|(number, iteration)| {
        let pace = iteration.pace.map(|pace| pace as f64);
        let is_far = pace
            .zip(group)
            .is_some_and(|(pace, group)| group.is_outlier(pace));
        let flag = match (number < found.warm_up, iteration.pace, is_far) {
            (true, _, _) => Some("warm-up"),
            (_, None, _) => Some("partial"),
            (_, _, true) => Some("outlier"),
            _ => None,
        };
        let thread = facts.threads.get(iteration.thread as usize);
        IterationRow {
            key: key(&[&"iteration", &number]).into(),
            iteration: number.into(),
            thread: thread
                .filter(|_| iteration.thread != NONE)
                .map(|thread| thread.tid)
                .into(),
            begin_ns: iteration.begin.into(),
            begin_rel_ns: (iteration.begin - first).into(),
            pace_ns: iteration.pace.into(),
            host_ns: iteration.host.into(),
            gpu_ns: iteration.gpu.into(),
            busy_share: iteration
                .pace
                .map_or(Value::Null, |pace| Value::ratio(iteration.gpu, pace)),
            kernels: iteration.kernels.into(),
            copies: iteration.copies.into(),
            z: pace.zip(group).map(|(pace, group)| group.z(pace)).into(),
            flag: flag.into(),
        }
        .cells()
    });
    Section::new("iterations", IterationRow::COLUMNS, rows.collect())
}

fn kernels(records: &dyn Records, found: &Iterations) -> Section {
    let facts = records.facts();
    let mut rows: Vec<(u64, KernelRow)> = Vec::new();
    for (name, times) in &found.kernels {
        let steady = &times[found.warm_up.min(times.len())..];
        let (Some(min), Some(max)) = (steady.iter().min(), steady.iter().max()) else {
            continue;
        };
        let name = facts.name(*name);
        let row = KernelRow {
            key: key(&[&"kernel", &name]).into(),
            name: name.into(),
            mean_ns: (steady.iter().sum::<u64>() / steady.len() as u64).into(),
            min_ns: (*min).into(),
            max_ns: (*max).into(),
            spread_ns: (max - min).into(),
            iterations: steady.iter().filter(|time| **time > 0).count().into(),
        };
        rows.push((max - min, row));
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.0));
    let rows = rows.into_iter().map(|row| row.1.cells());
    Section::new("kernels", KernelRow::COLUMNS, rows.collect())
}
