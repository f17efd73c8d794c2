//! Why kernels take another time than before: two sides of one or several runs each, kernel by kernel.

mod chance;
mod run;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use chance::Change;
pub use run::Run;
use run::{Joined, Kernel};

use crate::answer::{Answer, Form, Level, Section, Value, columns, key};

columns! {
    /// A kernel in one geometry, on both sides.
    CompareRow {
        key: Key "Key" 9 "Identity of the row: `kernel`, name, groups and items",
        name: Name "Kernel" 0 "Name",
        groups: Word "Groups" 4 "Workgroups of the grid: x, y, z; those of A where they differ",
        items: Word "Items" 4 "Work items of a workgroup: x, y, z",
        status: Word "Status" 3 "both, added or removed",
        calls_a: Count "Calls A" 2 "Launches in a run of A, in the mean",
        calls_b: Count "Calls B" 2 "Launches in a run of B, in the mean",
        typical_a_ns: Nanoseconds "Typical A" 0 "Mean of the faster half of the launches, in the median run of A",
        typical_b_ns: Nanoseconds "Typical B" 0 "Mean of the faster half of the launches, in the median run of B",
        change: Share "Change" 0 "Growth of the typical time, as a share of that of A",
        beyond_chance: Word "Beyond chance" 2 "yes when the change is more than four times what runs of a side differ by; null with one run on a side",
        slower: Share "Slower" 8 "change where it is a growth beyond chance, for --fail-above; null otherwise",
        total_change_ns: Nanoseconds "Total change" 0 "Change of the time of all launches of a run",
        by_calls_ns: Nanoseconds "By calls" 1 "Part of total_change_ns by more or fewer launches, at the mean time of A",
        by_speed_ns: Nanoseconds "By speed" 1 "Part of total_change_ns by slower or faster launches; with by_calls_ns it adds up to total_change_ns",
        why: Name "Why" 0 "What else changed",
    }
}

columns! {
    /// A part of the time on both sides.
    PartRow {
        key: Key "Key" 9 "Identity of the row: `part` or `cause`, and its name",
        part: Word "Part" 0 "Part of the time of all GPUs, or cause of gaps",
        a_ns: Nanoseconds "A" 0 "Time in a run of A, in the mean",
        b_ns: Nanoseconds "B" 0 "Time in a run of B, in the mean",
        change_ns: Nanoseconds "Change" 0 "b_ns less a_ns",
        a_share: Share "Share A" 1 "Share of the window of A",
        b_share: Share "Share B" 1 "Share of the window of B",
    }
}

/// The form of the answer.
pub const FORM: Form = Form {
    command: "compare",
    question: "Why did it become faster or slower?",
    sections: &[
        (
            "kernels",
            "Kernels by how much they changed the time",
            CompareRow::COLUMNS,
        ),
        (
            "breakdown",
            "What the time of GPUs goes to",
            PartRow::COLUMNS,
        ),
        ("gaps", "Gaps by cause", PartRow::COLUMNS),
    ],
};

/// The answer about two sides, each with at least one run. Times of different hardware are compared if `is_forced`.
pub fn answer(a: &[Run], b: &[Run], is_forced: bool) -> Answer {
    let mut answer = Answer::new(FORM.command);
    answer.main = "kernels";
    let hardware = |side: &[Run]| -> BTreeSet<String> {
        side.iter().flat_map(|run| run.hardware.clone()).collect()
    };
    let (hardware_a, hardware_b) = (hardware(a), hardware(b));
    let is_mixed = hardware_a != hardware_b;
    if is_mixed {
        let list = |all: BTreeSet<String>| all.into_iter().collect::<Vec<_>>().join(" and ");
        answer.warn(
            "mixed-hardware",
            Level::Caution,
            format!(
                "A ran on {}, B on {}: times are {}",
                list(hardware_a),
                list(hardware_b),
                if is_forced {
                    "compared all the same"
                } else {
                    "not compared; --force compares them"
                }
            ),
        );
    }
    if a.iter().chain(b).any(|run| run.is_simulated) {
        answer.warn(
            "simulated",
            Level::Note,
            "the GPU is simulated: times are those of its interpreter, not of hardware",
        );
    }
    // Counts, geometry and resources are comparable on any hardware; times are not.
    let has_times = !is_mixed || is_forced;
    let pairs = pairs(a, b);
    // The spread of all kernels bounds that of each: the few launches of one may happen to be alike.
    let noise = chance::of_all(&pairs);
    let mut rows: Vec<(u64, String, Vec<Value>)> = pairs
        .iter()
        .map(|pair| pair.row(has_times, noise))
        .collect();
    rows.sort_by(|x, y| y.0.cmp(&x.0).then_with(|| x.1.cmp(&y.1)));
    answer.is_empty = rows.is_empty();
    if answer.is_empty {
        answer.lacks(
            "kernels",
            &["kernels"],
            "neither side has a kernel",
            "--kernel-trace",
        );
    }
    let rows = rows.into_iter().map(|row| row.2).collect();
    answer.sections = vec![
        Section::new("kernels", CompareRow::COLUMNS, rows),
        parts("breakdown", "part", a, b, |run| &run.parts),
        parts("gaps", "cause", a, b, |run| &run.causes),
    ];
    if a.len() < 2 || b.len() < 2 {
        answer.lacks(
            "runs",
            &["beyond_chance"],
            "a side has one run: name several with --before and --after",
            "",
        );
    }
    if !a.iter().chain(b).all(|run| run.is_counted) {
        answer.lacks(
            "counters",
            &["why: flops, bytes, l2 hit, clock"],
            "a side has no counters",
            "--pmc auto:GRBM_GUI_ACTIVE,TCC_HIT_sum,TCC_MISS_sum",
        );
    }
    answer
}

/// A kernel on both sides: in each as many runs as have it.
struct Pair {
    name: String,
    a: Joined,
    b: Joined,
}

/// Kernels of both sides, joined by name and geometry. One that has another geometry on the other side is joined where the choice
/// is clear.
fn pairs(a: &[Run], b: &[Run]) -> Vec<Pair> {
    let (mut a, mut b) = (run::joined(a), run::joined(b));
    let mut pairs = Vec::new();
    let keys: BTreeSet<_> = a.keys().chain(b.keys()).cloned().collect();
    let mut left: BTreeMap<String, (Vec<Joined>, Vec<Joined>)> = BTreeMap::new();
    for key in keys {
        let name = key.0.clone();
        match (a.remove(&key), b.remove(&key)) {
            (Some(a), Some(b)) => pairs.push(Pair { name, a, b }),
            (a, b) => {
                let left = left.entry(name).or_default();
                left.0.extend(a);
                left.1.extend(b);
            }
        }
    }
    for (name, (mut a, mut b)) in left {
        if a.len() == 1 && b.len() == 1 {
            if let (Some(a), Some(b)) = (a.pop(), b.pop()) {
                pairs.push(Pair { name, a, b });
            }
            continue;
        }
        let none = Joined::default;
        for a in a {
            let name = name.clone();
            pairs.push(Pair { name, a, b: none() });
        }
        for b in b {
            let name = name.clone();
            pairs.push(Pair { name, a: none(), b });
        }
    }
    pairs
}

impl Pair {
    /// The row, with its absolute effect and its key, by which rows are ordered.
    fn row(&self, has_times: bool, noise: Option<f64>) -> (u64, String, Vec<Value>) {
        let (a, b) = (&self.a, &self.b);
        let shown = if a.runs > 0 { a } else { b };
        let id = key(&[&"kernel", &self.name, &shown.groups, &shown.items]);
        let total = b.total() - a.total();
        // What more calls would have cost at the old speed; the rest is by speed, so that both add up.
        let by_calls = match (a.mean(), b.runs) {
            (Some(mean), 1..) => ((b.calls() - a.calls()) as f64 * mean).round() as i64,
            (Some(_), 0) | (None, _) => total,
        };
        let change = Change::new(a, b);
        let grown = change.as_ref().and_then(Change::share);
        let is_beyond = change.as_ref().and_then(|change| change.is_beyond(noise));
        let time = |value: Value| if has_times { value } else { Value::Null };
        let typical = |side: &Joined| time(side.typical().map(|time| time.round() as i64).into());
        let row = CompareRow {
            key: id.as_str().into(),
            name: self.name.as_str().into(),
            groups: shown.groups.as_str().into(),
            items: shown.items.as_str().into(),
            status: match (a.runs, b.runs) {
                (0, _) => "added",
                (_, 0) => "removed",
                _ => "both",
            }
            .into(),
            calls_a: Some(a.calls()).filter(|_| a.runs > 0).into(),
            calls_b: Some(b.calls()).filter(|_| b.runs > 0).into(),
            typical_a_ns: typical(a),
            typical_b_ns: typical(b),
            change: time(grown.into()),
            beyond_chance: time(
                is_beyond
                    .map(|beyond| if beyond { "yes" } else { "no" })
                    .into(),
            ),
            slower: time(
                grown
                    .filter(|grown| *grown > 0.0 && is_beyond == Some(true))
                    .into(),
            ),
            total_change_ns: time(total.into()),
            by_calls_ns: time(by_calls.into()),
            by_speed_ns: time((total - by_calls).into()),
            why: Some(self.why().join("; "))
                .filter(|why| !why.is_empty())
                .into(),
        };
        let effect = if has_times { total.unsigned_abs() } else { 0 };
        (effect, id, row.cells())
    }

    /// What else changed, in the order in which it is looked for.
    fn why(&self) -> Vec<String> {
        let (a, b) = (&self.a, &self.b);
        let (Some(old), Some(new)) = (&a.kernel, &b.kernel) else {
            return Vec::new();
        };
        let mut why = Vec::new();
        if a.calls() != b.calls() {
            why.push(format!("calls {} -> {}", a.calls(), b.calls()));
        }
        if (&a.groups, &a.items) != (&b.groups, &b.items) {
            why.push(format!(
                "geometry {} of {} -> {} of {}",
                a.groups, a.items, b.groups, b.items
            ));
        }
        why.extend(registers(old, new));
        let amounts = [
            ("lds", old.lds, new.lds),
            ("scratch", old.scratch, new.scratch),
        ];
        for (what, old, new) in amounts {
            if old != new {
                why.push(format!("{what} {old} -> {new} bytes"));
            }
        }
        why.extend(old.counted.changes(&new.counted));
        let beside = |kernel: &Kernel| kernel.beside * 100.0;
        if (beside(new) - beside(old)).abs() >= 10.0 {
            why.push(format!(
                "neighbours: other kernels run in {:.0} % -> {:.0} % of its time",
                beside(old),
                beside(new)
            ));
        }
        why
    }
}

/// A change of registers, and what it does to the waves of a SIMD.
fn registers(old: &Kernel, new: &Kernel) -> Option<String> {
    if (old.vgprs, old.sgprs) == (new.vgprs, new.sgprs) {
        return None;
    }
    let mut parts = Vec::new();
    if old.vgprs != new.vgprs {
        parts.push(format!("vgpr {} -> {}", old.vgprs, new.vgprs));
    }
    if old.sgprs != new.sgprs {
        parts.push(format!("sgpr {} -> {}", old.sgprs, new.sgprs));
    }
    let mut text = parts.join(", ");
    if let Some((old, new)) = old.waves.zip(new.waves) {
        text += &format!(": {old} -> {new} waves");
    }
    Some(text)
}

/// The parts of a time on both sides, as means of runs.
fn parts(
    section: &'static str,
    kind: &str,
    a: &[Run],
    b: &[Run],
    get: impl Fn(&Run) -> &BTreeMap<&'static str, u64>,
) -> Section {
    let names: BTreeSet<&'static str> = a
        .iter()
        .chain(b)
        .flat_map(|run| get(run).keys().copied())
        .collect();
    let mean = |side: &[Run], name: &str| {
        let sum: u64 = side
            .iter()
            .map(|run| get(run).get(name).copied().unwrap_or(0))
            .sum();
        sum / side.len().max(1) as u64
    };
    let window =
        |side: &[Run]| side.iter().map(|run| run.window).sum::<u64>() / side.len().max(1) as u64;
    let mut rows: Vec<(i64, Vec<Value>)> = names
        .into_iter()
        .map(|name| {
            let (of_a, of_b) = (mean(a, name), mean(b, name));
            let change = of_b as i64 - of_a as i64;
            let row = PartRow {
                key: key(&[&kind, &name]).into(),
                part: name.into(),
                a_ns: of_a.into(),
                b_ns: of_b.into(),
                change_ns: change.into(),
                a_share: Value::ratio(of_a, window(a)),
                b_share: Value::ratio(of_b, window(b)),
            };
            (change, row.cells())
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.0.abs()));
    let rows = rows.into_iter().map(|row| row.1).collect();
    Section::new(section, PartRow::COLUMNS, rows)
}
