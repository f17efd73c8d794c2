//! Why a program is slow, on one page: what the time goes to, the first findings of the rules, and the kernels that matter.
//!
//! The records are those of several runs of the program: a trace, and runs that counted or sampled the kernels that the trace chose
//! ([`chosen`]). They need not be all there: what is missing is said.

mod kernels;

use std::collections::BTreeMap;

use crate::advise::{self, Rules};
use crate::answer::{Answer, Form, Level, Paragraph, Section, Value, Window, columns, key};
use crate::kernel::LineRow;
use crate::records::Records;
use crate::speed_of_light::Geometry;
use crate::{breakdown, gaps};
pub use kernels::KernelRow;
use kernels::Page;

/// Share of the kernel time that the chosen kernels hold.
const SHARE: f64 = 0.8;
/// Kernels that are chosen at most.
const KERNELS: usize = 10;
/// Kernels that the page is about.
pub const SHOWN: usize = 3;
/// Findings that the page has.
const FINDINGS: usize = 5;
/// Letters of the bar that shows what the time goes to.
const BAR: usize = 30;

columns! {
    /// What the time of a GPU goes to.
    TimeRow {
        key: Key "Key" 9 "Identity of the row: GPU",
        gpu: Name "GPU" 0 "Number of the GPU; `all` is the mean",
        window_ns: Nanoseconds "Window" 0 "Length of the window",
        bar: Word "Time" 0 "Shares as letters: # computes, c communicates, o copies, f fills, . is idle",
        compute: Share "Compute" 0 "Share in which a kernel computes",
        exposed_comm: Share "Comm" 1 "Share of communication that no computation covers",
        exposed_copy: Share "Copy" 0 "Share of copies that nothing of the two covers",
        exposed_fill: Share "Fill" 2 "Share of fills that nothing else covers",
        idle: Share "Idle" 0 "Share in which nothing runs; with the four before it adds up to 1",
        verdict: Word "Verdict" 0 "What the gaps say: device-bound, host-bound, copy-bound, comm-bound, dependency-bound, mixed or unknown",
    }
}

columns! {
    /// One of the first findings of the rules.
    FindingRow {
        key: Key "Key" 9 "Identity of the finding: `rule`, its id, and the subject",
        severity: Word "Severity" 0 "high, medium, low or note",
        rule: Word "Rule" 0 "Id of the rule",
        gain_ns: Nanoseconds "Gain" 0 "Upper bound of the time that would go if the cause went",
        finding: Name "Finding" 0 "What was found, with figures",
        advice: Name "Advice" 1 "What to do",
        next: Name "Next" 5 "Command that shows more",
    }
}

columns! {
    /// A command to run next.
    NextRow {
        key: Key "Key" 9 "Identity of the row: `next` and the number",
        command: Name "Command" 0 "Command line",
        shows: Name "Shows" 0 "What it shows",
    }
}

columns! {
    /// A run of the program.
    RunRow {
        key: Key "Key" 9 "Identity of the row: `run` and its name",
        run: Word "Run" 0 "Name of the run, and of its directory",
        what: Word "What" 0 "What was recorded",
        seconds: Number "Seconds" 0 "How long it took, with recording and writing",
        status: Count "Status" 0 "Exit status",
        options: Name "Options" 1 "Options of rpd that it had",
    }
}

/// The form of the answer.
pub const FORM: Form = Form {
    command: "explain",
    question: "Why is it slow?",
    sections: &[
        (
            "time",
            "What the time of each GPU goes to",
            TimeRow::COLUMNS,
        ),
        (
            "findings",
            "The first findings of rpd advise",
            FindingRow::COLUMNS,
        ),
        ("kernels", "The kernels that matter", KernelRow::COLUMNS),
        ("lines", "Their hottest lines", LineRow::COLUMNS),
        ("runs", "Runs of the program", RunRow::COLUMNS),
        ("next", "What to run next", NextRow::COLUMNS),
    ],
};

/// A run of the program.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Run {
    /// Name of the run.
    pub name: String,
    /// What was recorded.
    pub what: String,
    /// How long it took.
    pub seconds: f64,
    /// Exit status.
    pub status: u8,
    /// Options of rpd.
    pub options: String,
}

/// What the page is made with.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// First instant and end of the window; `None` takes all.
    pub window: Option<(u64, u64)>,
    /// The runs, in their order.
    pub runs: Vec<Run>,
    /// Kernels that later runs were limited to, by their names.
    pub kernels: Vec<String>,
    /// First and last dispatch of each of them that was counted, from 1.
    pub dispatches: Option<(u64, u64)>,
    /// Directory of the runs, for command lines.
    pub directory: String,
}

/// What later runs look at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chosen {
    /// Names of the kernels that hold most of the kernel time, the hottest first.
    pub kernels: Vec<String>,
    /// First and last dispatch of each to count, from 1: after a warm-up where all have enough launches.
    pub dispatches: (u64, u64),
    /// Waves of 64 items of all launches of the chosen kernels; too few where geometries are not known.
    pub waves: u64,
}

/// The kernels that hold 80 % of the kernel time, at most ten, and at least those that the page is about.
pub fn chosen(records: &dyn Records) -> Chosen {
    #[derive(Default)]
    struct Sums {
        time: u64,
        launches: u64,
        waves: u64,
    }
    let mut times: BTreeMap<u32, Sums> = BTreeMap::new();
    let mut all = 0;
    for op in records.ops().filter(|op| op.is_kernel) {
        let sums = times.entry(op.name).or_default();
        sums.time += op.length();
        sums.launches += 1;
        let items: u64 = op.group.iter().map(|items| u64::from(*items)).product();
        sums.waves = sums
            .waves
            .saturating_add(op.groups().saturating_mul(items.div_ceil(64)));
        all += op.length();
    }
    let mut times: Vec<(u32, Sums)> = times.into_iter().collect();
    times.sort_by_key(|kernel| (std::cmp::Reverse(kernel.1.time), kernel.0));
    let mut held = 0;
    let mut count = 0;
    let is_wanted = |kernel: &&(u32, Sums)| {
        count += 1;
        let is_wanted = (held as f64) < all as f64 * SHARE || count <= SHOWN;
        held += kernel.1.time;
        is_wanted
    };
    let times: Vec<_> = times.iter().take_while(is_wanted).take(KERNELS).collect();
    let least = times
        .iter()
        .map(|kernel| kernel.1.launches)
        .min()
        .unwrap_or(0);
    let facts = records.facts();
    Chosen {
        kernels: times
            .iter()
            .map(|kernel| facts.name(kernel.0).to_owned())
            .collect(),
        waves: times.iter().map(|kernel| kernel.1.waves).sum(),
        dispatches: if least >= 10 { (3, 10) } else { (1, 8) },
    }
}

/// The page.
pub fn answer(records: &dyn Records, rules: &Rules, options: &Options) -> Answer {
    let Some(window) = breakdown::window(records, options.window) else {
        return Answer::without_ops(FORM.command);
    };
    let mut answer = Answer::new(FORM.command);
    answer.window = Some(window);
    answer.main = "kernels";
    let facts = records.facts();
    answer.sections.push(times(records, &window, options));
    answer.sections.push(findings(records, rules, options));
    let page = Page::new(records, &window);
    answer.sections.extend(page.sections());
    answer.sections.push(runs(options));
    answer.sections.push(next(&page, options));
    page.report(&mut answer);
    for text in differences(records, options) {
        answer.warn("passes-differ", Level::Caution, text);
    }
    for run in options.runs.iter().filter(|run| run.status != 0) {
        let text = format!("the run {} ended with status {}", run.name, run.status);
        answer.warn("run-failed", Level::Caution, text);
    }
    gaps::report_common(facts, &mut answer, 0);
    answer
}

/// What the time of each GPU goes to.
fn times(records: &dyn Records, window: &Window, options: &Options) -> Section {
    let given = Some((window.start, window.end)).filter(|_| options.window.is_some());
    let measured = breakdown::measure(
        records,
        &breakdown::Options {
            window: given,
            ..breakdown::Options::default()
        },
    );
    let gap_options = gaps::Options {
        window: given,
        limit: Some(0),
        ..gaps::Options::default()
    };
    let idle = gaps::find(records, &gap_options).answer(records);
    let verdicts = idle.section("summary");
    let measured = measured.map(|measured| measured.answer(records));
    let section = measured
        .as_ref()
        .and_then(|answer| answer.section("breakdown"));
    let rows = section.into_iter().flat_map(|section| {
        (0..section.rows.len()).map(move |row| {
            let get = |column: &str| section.get(row, column).cloned().unwrap_or_default();
            let length = get("window_ns");
            let share = |column: &str| {
                let (part, whole) = (get(column).number(), length.number());
                Value::from(part.zip(whole).map(|(part, whole)| part / whole.max(1.0)))
            };
            let gpu = get("gpu");
            let of_gpu = verdicts.and_then(|verdicts| {
                let all = 0..verdicts.rows.len();
                let name = |row: usize| verdicts.get(row, "gpu").map(text_of);
                let row = all
                    .into_iter()
                    .find(|row| name(*row) == Some(text_of(&gpu)))?;
                verdicts.get(row, "verdict").cloned()
            });
            let mut time = TimeRow {
                key: get("key"),
                gpu,
                window_ns: length.clone(),
                bar: Value::Null,
                compute: share("compute_ns"),
                exposed_comm: share("exposed_comm_ns"),
                exposed_copy: share("exposed_copy_ns"),
                exposed_fill: share("exposed_fill_ns"),
                idle: share("idle_ns"),
                verdict: of_gpu.unwrap_or_default(),
            };
            time.bar = bar(&time).into();
            time.cells()
        })
    });
    Section::new("time", TimeRow::COLUMNS, rows.collect())
}

/// A subject in a sentence: of a kernel its name without parameters.
fn subject(text: &str) -> &str {
    match text.split_once('(') {
        Some((name, _)) if !name.is_empty() => name,
        _ => text,
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Null => String::new(),
    }
}

/// Shares as letters.
fn bar(time: &TimeRow) -> String {
    let parts = [
        (&time.compute, '#'),
        (&time.exposed_comm, 'c'),
        (&time.exposed_copy, 'o'),
        (&time.exposed_fill, 'f'),
        (&time.idle, '.'),
    ];
    let mut bar = String::new();
    let mut sum = 0.0;
    for (share, letter) in parts {
        sum += share.number().unwrap_or(0.0);
        // What was rounded away before comes in here: the bar has its length whatever the parts are.
        while (bar.len() as f64) < (sum * BAR as f64).round().min(BAR as f64) {
            bar.push(letter);
        }
    }
    bar
}

/// The first findings, with what was not judged.
fn findings(records: &dyn Records, rules: &Rules, options: &Options) -> Section {
    let advice = advise::answer(
        records,
        rules,
        &advise::Options {
            window: options.window,
        },
    );
    let mut rows = Vec::new();
    let mut paragraphs = Vec::new();
    let mut total = 0;
    if let Some(found) = advice.section("findings") {
        total = found.total;
        for row in 0..found.rows.len().min(FINDINGS) {
            let get = |column: &str| found.get(row, column).cloned().unwrap_or_default();
            let gain = get("gain_ns").number();
            let gain = gain.map(|gain| {
                format!(
                    " (up to {})",
                    advise::shown(gain, crate::answer::Unit::Nanoseconds)
                )
            });
            paragraphs.push(Paragraph::new(
                0,
                format!(
                    "{} {}, {}{}: {}",
                    text_of(&get("severity")),
                    text_of(&get("rule")),
                    subject(&text_of(&get("subject"))),
                    gain.unwrap_or_default(),
                    text_of(&get("finding")),
                ),
            ));
            let finding = FindingRow {
                key: get("key"),
                severity: get("severity"),
                rule: get("rule"),
                gain_ns: get("gain_ns"),
                finding: get("finding"),
                advice: get("advice"),
                next: get("next"),
            };
            rows.push(finding.cells());
        }
    }
    if let Some(counts) = advice.section("judged") {
        let count = |column: &str| counts.get(0, column).map(text_of).unwrap_or_default();
        paragraphs.push(Paragraph::new(
            0,
            format!(
                "{}{} rules did not fire, {} could not be judged (rpd advise)",
                match count("findings").as_str() {
                    "1" => "1 finding; ".to_owned(),
                    number => format!("{number} findings; "),
                },
                count("silent"),
                count("not_judged")
            ),
        ));
    }
    let mut section = Section::new("findings", FindingRow::COLUMNS, rows);
    section.total = total.max(section.total);
    section.with_paragraphs(paragraphs)
}

fn runs(options: &Options) -> Section {
    let rows = options.runs.iter().map(|run| {
        RunRow {
            key: key(&[&"run", &run.name]).into(),
            run: run.name.as_str().into(),
            what: run.what.as_str().into(),
            seconds: run.seconds.into(),
            status: u64::from(run.status).into(),
            options: run.options.as_str().into(),
        }
        .cells()
    });
    let texts = options
        .runs
        .iter()
        .map(|run| format!("{} {:.1} s", run.name, run.seconds));
    let texts: Vec<String> = texts.collect();
    let line = Some(texts.join(", ")).filter(|line| !line.is_empty());
    let paragraphs = line
        .into_iter()
        .map(|line| Paragraph::new(0, line))
        .collect();
    Section::new("runs", RunRow::COLUMNS, rows.collect()).with_paragraphs(paragraphs)
}

fn next(page: &Page, options: &Options) -> Section {
    let directory = &options.directory;
    let mut commands = vec![(
        format!("rpd advise {directory}"),
        "all findings, with evidence and advice",
    )];
    if let Some(name) = page.hottest() {
        // The identifier: without the return type, parameters and arguments of templates, which mean something in an expression.
        let end = name.find(['(', '<']).unwrap_or(name.len());
        let word = name[..end].split_whitespace().last().unwrap_or_default();
        let is_plain =
            |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == ':';
        let plain: String = word
            .chars()
            .take_while(|letter| is_plain(*letter))
            .collect();
        commands.push((
            format!("rpd kernel {plain} {directory}"),
            "all figures of the hottest kernel",
        ));
    }
    commands.push((
        format!("rpd gaps {directory}/trace"),
        "when the GPU waits, and for what",
    ));
    let has = |name: &str| {
        options
            .runs
            .iter()
            .any(|run| run.name == name && run.status == 0)
    };
    if has("thread-trace") {
        commands.push((
            format!("rpd hot {directory}/thread-trace"),
            "cycles of each line of the hottest kernel",
        ));
    }
    if has("accesses") {
        commands.push((
            format!("rpd capture show {directory}/accesses"),
            "which memory its lines access, and how",
        ));
    }
    let rows = commands.iter().zip(1..).map(|((command, shows), number)| {
        NextRow {
            key: key(&[&"next", &number]).into(),
            command: command.as_str().into(),
            shows: (*shows).into(),
        }
        .cells()
    });
    let lines = commands
        .iter()
        .map(|(command, shows)| Paragraph::new(0, format!("{command}   # {shows}")));
    Section::new("next", NextRow::COLUMNS, rows.collect()).with_paragraphs(lines.collect())
}

/// Geometries of the dispatches of a kernel on a GPU, in their order.
type Sequences = BTreeMap<(u32, u32), Vec<Geometry>>;

/// What differs between the trace and the runs that counted, a text for each run.
fn differences(records: &dyn Records, options: &Options) -> Vec<String> {
    let Some((first, last)) = options.dispatches else {
        return Vec::new();
    };
    let facts = records.facts();
    let is_chosen = |name: u32| -> bool {
        options
            .kernels
            .iter()
            .any(|kernel| kernel == facts.name(name))
    };
    let mut numbers: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    let mut traced = Sequences::new();
    for op in records.ops() {
        if !op.is_kernel || !is_chosen(op.name) {
            continue;
        }
        let number = numbers.entry((op.process, op.name)).or_default();
        *number += 1;
        if (first..=last).contains(number) {
            let sequence = traced.entry((op.gpu, op.name)).or_default();
            sequence.push((op.grid, op.group));
        }
    }
    let mut counted: BTreeMap<u32, Sequences> = BTreeMap::new();
    let mut seen = None;
    for value in records.counted() {
        let dispatch = (value.process, value.dispatch);
        if seen != Some(dispatch) && is_chosen(value.name) {
            let sequences = counted.entry(value.process).or_default();
            let sequence = sequences.entry((value.gpu, value.name)).or_default();
            sequence.push((value.grid, value.group));
        }
        seen = Some(dispatch);
    }
    let mut found = Vec::new();
    for (process, sequences) in &counted {
        let keys = traced.keys().chain(sequences.keys());
        let differing = keys
            .into_iter()
            .find(|key| traced.get(key) != sequences.get(key));
        if let Some(key) = differing {
            let count = |sequences: &Sequences| sequences.get(key).map_or(0, Vec::len);
            found.push(format!(
                "{}: {} does not run as in the trace ({} dispatches there, {} here, or other sizes); its figures are means over those of each run",
                facts.processes[*process as usize].path,
                facts.name(key.1),
                count(&traced),
                count(sequences)
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::Example;
    use crate::records::Counted;

    #[test]
    fn chosen_kernels_hold_most_of_the_time() {
        let mut example = Example::new();
        for number in 0..12 {
            example.op("long", number * 100, number * 100 + 70);
            example.op("middle", number * 100 + 70, number * 100 + 90);
            example.op("short", number * 100 + 90, number * 100 + 95);
            example.op("tiny", number * 100 + 95, number * 100 + 96);
        }
        let found = chosen(&example.done());
        assert_eq!(found.kernels, ["long", "middle", "short"]);
        assert_eq!(found.dispatches, (3, 10));
    }

    #[test]
    fn bar_has_its_length_whatever_the_parts_are() {
        let time = TimeRow {
            compute: 0.333.into(),
            exposed_copy: 0.334.into(),
            idle: 0.333.into(),
            ..TimeRow::default()
        };
        assert_eq!(bar(&time).len(), BAR);
        assert!(bar(&time).starts_with("##########oooo"));
    }

    // answers-69
    #[test]
    fn run_with_other_dispatches_than_the_trace_is_named() {
        let mut example = Example::new();
        for number in 0..4 {
            example.op("gemm", number * 100, number * 100 + 70);
        }
        let name = example.name("gemm");
        let counter = example.name("SQ_WAVES");
        let pass = example.process();
        example.memory().facts.processes[pass as usize].path = "explain/counters/pass_2".to_owned();
        let mut records = example.done();
        let op = records.ops[0];
        let count = |records: &mut crate::records::Memory, number: u64| {
            records.counted.push(Counted {
                name,
                gpu: 0,
                process: pass,
                dispatch: number,
                length: 70,
                grid: op.grid,
                group: op.group,
                counter,
                sum: 1.0,
                greatest: 1.0,
            });
        };
        (1..=3).for_each(|number| count(&mut records, number));
        let options = Options {
            kernels: vec!["gemm".to_owned()],
            dispatches: Some((1, 8)),
            ..Options::default()
        };
        let found = differences(&records, &options);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("explain/counters/pass_2: gemm does not run"));
        count(&mut records, 4);
        assert!(differences(&records, &options).is_empty());
    }
}
