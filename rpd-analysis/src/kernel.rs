//! Everything that a recording says about one kernel: launches, geometry, resources, occupancy and where it is launched.

mod inside;

use std::collections::{BTreeMap, BTreeSet};

pub use inside::{Inside, LineRow, MeasureRow, amount, line_rows};

use crate::advise::shown;
use crate::answer::{Answer, Form, Section, Unit, Value, Window, columns, key};
use crate::distribution::Distribution;
use crate::gaps::report_common;
use crate::occupancy::{Mode, Needs, Occupancy, occupancy, rounds, unit};
use crate::outliers::{Group, Outliers, outliers};
use crate::records::{Facts, NONE, Op, Records, Resources};
use crate::speed_of_light::Counters;

/// Launches of which the places are looked up.
const SITES: u64 = 10_000;

columns! {
    /// A kernel whose name matches.
    MatchRow {
        key: Key "Key" 9 "Identity of the row: `kernel` and the name",
        name: Name "Kernel" 0 "Name",
        calls: Count "Calls" 0 "Number of launches",
        sum_ns: Nanoseconds "Time" 0 "Durations added up",
        share: Share "Share" 0 "Share of the time of all kernels",
        is_shown: Word "Shown" 0 "yes for the kernel that the other sections are about: the one with the most time",
    }
}

columns! {
    /// A figure of the kernel.
    FigureRow {
        key: Key "Key" 9 "Identity of the row: `kernel`, name, processor, section and figure",
        section: Word "About" 0 "launches, resources or verdict",
        name: Word "Figure" 0 "Name of the figure",
        value: Number "Number" 8 "Value; null for a text",
        unit: Word "Unit" 8 "Unit of the value",
        text: Name "Value" 0 "The value for people, or a text",
    }
}

columns! {
    /// A geometry in which the kernel is launched.
    GeometryRow {
        key: Key "Key" 9 "Identity of the row: `geometry`, name, grid, workgroup and LDS",
        groups: Word "Groups" 0 "Workgroups of the grid: x, y, z",
        items: Word "Items" 0 "Work items of a workgroup: x, y, z",
        lds_bytes: Bytes "LDS" 0 "LDS of a workgroup, static and dynamic",
        calls: Count "Calls" 0 "Number of launches",
        sum_ns: Nanoseconds "Time" 0 "Durations added up",
        median_ns: Nanoseconds "Median" 1 "Median duration",
        rounds: Number "Rounds" 0 "How many times the workgroups fill the GPU; below 1 the launch does not fill it",
        tail_loss: Share "Tail" 1 "Share of the last round that is empty, of all rounds",
        waves: Count "Waves" 1 "Waves that a unit can hold",
        occupancy: Share "Occupancy" 0 "Waves that a unit can hold over its places",
        limiter: Word "Limited by" 0 "none, lds, vgpr, sgpr, barrier, slots or group size",
        next: Name "Next step" 2 "Greatest amount of the limiting resource with which more fits",
    }
}

columns! {
    /// A place that launches the kernel.
    SiteRow {
        key: Key "Key" 9 "Identity of the row: `site` and the place",
        site: Name "Launched at" 0 "Place in the source, or else the function that launches",
        calls: Count "Calls" 0 "Number of launches, of the first 10,000",
    }
}

/// The form of the answer.
pub const FORM: Form = Form {
    command: "kernel",
    question: "What is to be known about a kernel?",
    sections: &[
        (
            "figures",
            "Figures of the kernel, the verdict first",
            FigureRow::COLUMNS,
        ),
        (
            "geometry",
            "Geometries, with how full the GPU is and what limits it",
            GeometryRow::COLUMNS,
        ),
        (
            "sol",
            "Speed of light: how busy each unit is, from counters",
            MeasureRow::COLUMNS,
        ),
        (
            "roofline",
            "FLOP, bytes and intensity by level, and what they allow",
            MeasureRow::COLUMNS,
        ),
        ("caches", "Requests and hits of caches", MeasureRow::COLUMNS),
        ("stalls", "What waves do", MeasureRow::COLUMNS),
        ("lines", "Lines of code with PC samples", LineRow::COLUMNS),
        ("sites", "Places that launch it", SiteRow::COLUMNS),
        ("matches", "Kernels whose names match", MatchRow::COLUMNS),
    ],
};

/// Sums of a geometry.
#[derive(Default)]
struct Geometry {
    times: Distribution,
    last: Option<Op>,
}

/// Sums of the kernel.
#[derive(Default)]
struct Sums {
    times: Distribution,
    latency: Distribution,
    queued: Distribution,
    gpus: BTreeSet<u32>,
    streams: BTreeSet<u32>,
    ranges: BTreeMap<u32, u64>,
    of_graphs: u64,
    first: u64,
    last: u64,
    kernel: u32,
    geometries: BTreeMap<([u32; 3], [u32; 3], u32, u32), Geometry>,
    sites: BTreeMap<String, u64>,
}

/// The answer about the kernel with the most time among those whose names match.
pub fn answer(
    records: &dyn Records,
    matches: impl Fn(&str) -> bool,
    given: Option<(u64, u64)>,
) -> Answer {
    let facts = records.facts();
    let Some(window) = crate::breakdown::window(records, given) else {
        return Answer::without_ops(FORM.command);
    };
    let wanted: Vec<bool> = facts.names.iter().map(|name| matches(name)).collect();
    let mut names: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    let mut all = 0;
    let inside = |op: &Op| op.is_kernel && op.start < window.end && op.end >= window.start;
    for op in records.ops().filter(inside) {
        all += op.length();
        if wanted.get(op.name as usize) == Some(&true) {
            let sums = names.entry(op.name).or_default();
            sums.0 += 1;
            sums.1 += op.length();
        }
    }
    let mut answer = Answer::new(FORM.command);
    answer.window = Some(window);
    answer.main = "figures";
    let mut names: Vec<(u32, (u64, u64))> = names.into_iter().collect();
    names.sort_by_key(|name| (std::cmp::Reverse(name.1.1), name.0));
    // Patterns often match more than one kernel: the one that matters most is described, the others are listed.
    let Some((shown, _)) = names.first().copied() else {
        answer.is_empty = true;
        answer.lacks("kernels", &["figures"], "no kernel has such a name", "");
        return answer;
    };
    let sums = add_up(records, shown, &window);
    let counters = Counters::from_records(records);
    let inside = Inside::new(records, &counters, shown, |geometry| {
        typical(&sums, geometry)
    });
    if let Some(gpu) = sums.gpus.first() {
        inside.report(facts, &facts.gpus[*gpu as usize], &mut answer);
    }
    let matched = names.iter().map(|(name, (calls, time))| {
        let text = facts.name(*name);
        MatchRow {
            key: key(&[&"kernel", &text]).into(),
            name: text.into(),
            calls: (*calls).into(),
            sum_ns: (*time).into(),
            share: Value::ratio(*time, all),
            is_shown: if *name == shown { "yes" } else { "no" }.into(),
        }
        .cells()
    });
    let matched = Section::new("matches", MatchRow::COLUMNS, matched.collect());
    answer.sections = sections(records, shown, sums, all, &inside);
    answer.sections.push(matched);
    if !facts.recorded.calls {
        answer.lacks(
            "hip_calls",
            &["latency", "sites"],
            "the launch calls are not recorded",
            "--hip-trace",
        );
    }
    if !facts.recorded.stacks {
        answer.lacks("stacks", &["sites"], "the calls have no stacks", "--stacks");
    }
    report_common(facts, &mut answer, 0);
    answer
}

/// Median time of the launches of a geometry.
fn typical(sums: &Sums, (grid, group): &crate::speed_of_light::Geometry) -> Option<f64> {
    let mut geometries = sums.geometries.iter();
    let (_, geometry) = geometries.find(|(known, _)| (&known.0, &known.1) == (grid, group))?;
    geometry.times.clone().median()
}

fn add_up(records: &dyn Records, name: u32, window: &Window) -> Sums {
    let mut sums = Sums {
        kernel: NONE,
        ..Sums::default()
    };
    for op in records.ops() {
        if !op.is_kernel || op.name != name || op.start >= window.end || op.end < window.start {
            continue;
        }
        if sums.times.count() == 0 {
            sums.first = op.start;
        }
        sums.last = sums.last.max(op.end);
        sums.times.add(op.length());
        sums.gpus.insert(op.gpu);
        sums.streams.insert(op.stream);
        sums.kernel = op.kernel;
        let geometry = sums
            .geometries
            .entry((op.grid, op.group, op.lds, op.gpu))
            .or_default();
        geometry.times.add(op.length());
        geometry.last = Some(op);
        let Some(launch) = op.launch else {
            continue;
        };
        sums.latency.add(op.start.saturating_sub(launch.begin));
        if op.start > launch.end {
            sums.queued.add(op.start - launch.end);
        }
        sums.of_graphs += u64::from(launch.is_graph);
        *sums.ranges.entry(launch.range).or_default() += 1;
        if sums.times.count() <= SITES {
            let site = records.site(op.process, launch.call);
            let site = site.unwrap_or_else(|| records.facts().name(launch.name).to_owned());
            *sums.sites.entry(site).or_default() += 1;
        }
    }
    sums
}

/// The geometry with the most time.
struct Greatest {
    time: u64,
    rounds: Option<f64>,
    held: Option<Occupancy>,
    groups: u64,
    gpu: u32,
}

/// What a geometry makes of the GPU: occupancy, and rounds.
fn fills(
    facts: &Facts,
    op: &Op,
    resources: Option<&Resources>,
) -> Option<(Occupancy, Option<f64>)> {
    let gpu = &facts.gpus[op.gpu as usize];
    let resources = resources?;
    // Which mode a kernel of RDNA runs in is not recorded.
    let unit =
        unit(&gpu.arch, gpu.wave_size, Mode::ComputeUnit).filter(|unit| unit.has_scalar_limit)?;
    let needs = Needs {
        vgprs: resources.vgprs,
        sgprs: resources.sgprs,
        lds: op.lds,
        items: op.group.iter().product(),
    };
    let found = occupancy(&unit, gpu.wave_size, &needs)?;
    Some((found, rounds(&unit, &found, op.groups(), gpu.units)))
}

/// The next step in words.
fn next_step(found: &Occupancy, resources: &Resources, lds: u32) -> Option<String> {
    let (amount, more) = found.next?;
    Some(match found.limiter {
        "vgpr" => format!(
            "{} VGPRs -> {amount}: {} -> {more} waves of a SIMD",
            resources.vgprs,
            more - 1
        ),
        "sgpr" => format!(
            "{} SGPRs -> {amount}: {} -> {more} waves of a SIMD",
            resources.sgprs,
            more - 1
        ),
        _ => format!(
            "{lds} bytes of LDS -> {amount}: {} -> {more} groups",
            more - 1
        ),
    })
}

fn dims(values: [u32; 3]) -> String {
    values.map(|value| value.to_string()).join(" ")
}

fn sections(
    records: &dyn Records,
    name: u32,
    mut sums: Sums,
    all: u64,
    inside: &Inside,
) -> Vec<Section> {
    let facts = records.facts();
    let text = facts.name(name);
    let resources = facts.kernels.get(sums.kernel as usize);
    let (geometry, greatest) = geometries(facts, text, &mut sums, resources);
    let mut sites: Vec<(String, u64)> = std::mem::take(&mut sums.sites).into_iter().collect();
    sites.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let sites = sites.into_iter().map(|(site, calls)| {
        SiteRow {
            key: key(&[&"site", &site]).into(),
            site: site.into(),
            calls: calls.into(),
        }
        .cells()
    });
    let sites = sites.collect();
    let verdict = verdict(facts, &sums, all, greatest.as_ref(), inside);
    // A kernel of one name that ran on GPUs of several kinds is shown with the limits of the first.
    let arch = sums
        .gpus
        .first()
        .map_or("", |gpu| &facts.gpus[*gpu as usize].arch);
    let figures = figures(arch, text, &mut sums, resources, all, verdict);
    let mut sections = vec![
        Section::new("figures", FigureRow::COLUMNS, figures),
        Section::new("geometry", GeometryRow::COLUMNS, geometry),
    ];
    sections.extend(inside.sections(facts, text, arch));
    sections.push(Section::new("sites", SiteRow::COLUMNS, sites));
    sections
}

/// Rows of the geometries with which a kernel was launched, those with the most time first, and the one with the most time.
fn geometries(
    facts: &Facts,
    text: &str,
    sums: &mut Sums,
    resources: Option<&Resources>,
) -> (Vec<Vec<Value>>, Option<Greatest>) {
    let mut geometry = Vec::new();
    let mut greatest: Option<Greatest> = None;
    for ((grid, group, lds, _), found) in &mut sums.geometries {
        let Some(op) = found.last else {
            continue;
        };
        let filled = fills(facts, &op, resources);
        let (held, rounds) = filled.map_or((None, None), |filled| (Some(filled.0), filled.1));
        let time = found.times.sum();
        if greatest
            .as_ref()
            .is_none_or(|greatest| time > greatest.time)
        {
            greatest = Some(Greatest {
                time,
                rounds,
                held,
                groups: op.groups(),
                gpu: op.gpu,
            });
        }
        let groups = [0, 1, 2].map(|axis| match group[axis] {
            // A recording of another tool may lack it.
            0 => 0,
            items => grid[axis].div_ceil(items),
        });
        // The last round fills the GPU in part; its rest is lost.
        let tail = rounds.map(|rounds| 1.0 - rounds / rounds.ceil().max(1.0));
        let next = held.as_ref().zip(resources);
        geometry.push((
            time,
            GeometryRow {
                key: key(&[&"geometry", &text, &dims(groups), &dims(*group), lds]).into(),
                groups: dims(groups).into(),
                items: dims(*group).into(),
                lds_bytes: (*lds).into(),
                calls: found.times.count().into(),
                sum_ns: time.into(),
                median_ns: found.times.median().map(|median| median as u64).into(),
                rounds: rounds.into(),
                tail_loss: tail.into(),
                waves: held.map(|held| held.waves).into(),
                occupancy: held.map(|held| held.share).into(),
                limiter: held.map(|held| held.limiter).into(),
                next: next
                    .and_then(|(held, resources)| next_step(held, resources, *lds))
                    .into(),
            },
        ));
    }
    geometry.sort_by_key(|row| std::cmp::Reverse(row.0));
    let rows = geometry.into_iter().map(|row| row.1.cells()).collect();
    (rows, greatest)
}

/// What there is to say of the kernel in one sentence.
fn verdict(
    facts: &Facts,
    sums: &Sums,
    all: u64,
    greatest: Option<&Greatest>,
    inside: &Inside,
) -> String {
    let share = sums.times.sum() as f64 / all.max(1) as f64;
    let count = sums.times.count();
    let plural = if count == 1 { "" } else { "es" };
    let mut verdict = format!(
        "{count} launch{plural}, {:.1} % of kernel time",
        share * 100.0
    );
    let Some(greatest) = greatest else {
        return verdict;
    };
    let light = inside.verdict(greatest.groups, &facts.gpus[greatest.gpu as usize]);
    let rounds = greatest.rounds.filter(|rounds| *rounds < 1.0);
    let fills = rounds.map(|rounds| format!("does not fill the GPU ({rounds:.2} rounds)"));
    let rest = match (light, fills) {
        (Some((light, rest)), Some(fills)) => {
            let (limit, shares) = light.split_once(':').unwrap_or((&light, ""));
            verdict += &format!("; {limit}, {fills}:{shares}");
            rest
        }
        (Some((light, rest)), None) => {
            verdict += &format!("; {light}");
            rest
        }
        (None, Some(fills)) => {
            verdict += &format!("; {fills}");
            String::new()
        }
        (None, None) => String::new(),
    };
    if let Some(held) = greatest.held {
        verdict += &format!(
            "; {} of {:.0} places for waves possible",
            held.waves,
            f64::from(held.waves) / held.share
        );
        if held.limiter != "none" {
            verdict += &format!(", limited by {}", held.limiter);
        }
    }
    verdict + &rest
}

fn figures(
    arch: &str,
    text: &str,
    sums: &mut Sums,
    resources: Option<&Resources>,
    all: u64,
    verdict: String,
) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    let mut add = |section: &str, name: &str, value: Value, unit: &str| {
        let row = FigureRow {
            key: key(&[&"kernel", &text, &arch, &format!("{section}.{name}")]).into(),
            section: section.into(),
            name: name.into(),
            unit: match unit {
                "" => Value::Null,
                unit => unit.into(),
            },
            ..FigureRow::default()
        };
        let of = match unit {
            "ns" => Unit::Nanoseconds,
            "B" => Unit::Bytes,
            "1" => Unit::Share,
            _ => Unit::Number,
        };
        let row = match (value.number(), value) {
            (Some(number), value) => FigureRow {
                value,
                text: shown(number, of).into(),
                ..row
            },
            (None, text) => FigureRow { text, ..row },
        };
        rows.push(row.cells());
    };
    let share = sums.times.sum() as f64 / all.max(1) as f64;
    add("verdict", "verdict", verdict.into(), "");
    add("launches", "count", sums.times.count().into(), "");
    add("launches", "share", share.into(), "1");
    add("launches", "total", sums.times.sum().into(), "ns");
    add("launches", "min", sums.times.min().into(), "ns");
    add("launches", "median", sums.times.median().into(), "ns");
    add("launches", "p95", sums.times.quantile(0.95).into(), "ns");
    add("launches", "max", sums.times.max().into(), "ns");
    // Absent when there are so many launches that only their distribution was kept.
    let values = sums
        .times
        .values()
        .map(|values| values.iter().map(|value| *value as f64).collect::<Vec<_>>());
    if let Some(values) = values {
        let group = Group::new(&values).filter(|group| group.median > 0.0);
        add(
            "launches",
            "variation",
            group.map(|group| group.scale / group.median).into(),
            "1",
        );
        add(
            "launches",
            "outliers",
            match outliers(&values) {
                Outliers::Some(count) => count.into(),
                Outliers::Multimodal => "multimodal".into(),
            },
            "",
        );
    }
    add("launches", "first", sums.first.into(), "ns");
    add("launches", "last", sums.last.into(), "ns");
    add("launches", "gpus", sums.gpus.len().into(), "");
    add("launches", "streams", sums.streams.len().into(), "");
    add("launches", "of_graphs", sums.of_graphs.into(), "");
    add("launches", "latency", sums.latency.median().into(), "ns");
    add("launches", "queue_time", sums.queued.median().into(), "ns");
    // Null where the recording has no code object, as those of other tools.
    let needs = |get: fn(&Resources) -> u32| Value::from(resources.map(get));
    add("resources", "vgprs", needs(|resources| resources.vgprs), "");
    add("resources", "sgprs", needs(|resources| resources.sgprs), "");
    add(
        "resources",
        "static_lds",
        needs(|resources| resources.lds),
        "B",
    );
    add(
        "resources",
        "static_scratch",
        needs(|resources| resources.scratch),
        "B",
    );
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::Example;

    #[test]
    fn kernel_has_its_occupancy_and_what_lifts_it() {
        let mut example = Example::new();
        example.memory().facts.kernels.push(Resources {
            vgprs: 72,
            sgprs: 16,
            ..Resources::default()
        });
        for number in 0..10 {
            let at = number * 100;
            let op = example.launched("hipLaunchKernel", (at, at + 5), "gemm", at + 10, at + 60);
            (op.grid, op.group, op.kernel) = ([256 * 104, 1, 1], [256, 1, 1], 0);
        }
        example.op("other", 70, 80);
        let answer = answer(&example.done(), |name| name.contains("gem"), None);
        let geometry = answer.section("geometry").expect("a section");
        assert_eq!(geometry.get(0, "limiter"), Some(&"vgpr".into()));
        assert_eq!(
            geometry.get(0, "next"),
            Some(&"72 VGPRs -> 64: 7 -> 8 waves of a SIMD".into())
        );
        assert_eq!(geometry.get(0, "rounds"), Some(&(1.0 / 7.0).into()));
        let figures = answer.section("figures").expect("a section");
        let verdict = figures
            .get(0, "text")
            .and_then(Value::text)
            .expect("a verdict");
        assert!(
            verdict.contains("does not fill the GPU (0.14 rounds)"),
            "{verdict}"
        );
        assert!(verdict.contains("28 of 32 places"), "{verdict}");
        let none = super::answer(&Example::new().done(), |_| true, None);
        assert!(none.is_empty);
    }
}
