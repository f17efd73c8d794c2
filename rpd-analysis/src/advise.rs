//! What to look at first: rules, which are data, judged by figures of a recording.

mod expression;
mod metrics;
mod rules;

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use crate::answer::shown;
pub use metrics::{METRICS, Metric, Source};
pub use rules::{Rule, RuleError, Rules};

use crate::answer::{Answer, Form, Section, Unit, Value, Window, columns, key};
use crate::gaps::report_common;
use crate::iterations;
use crate::records::{Facts, Records};
use crate::speed_of_light::Peaks;
use metrics::{Subject, measure};

columns! {
    /// A finding.
    FindingRow {
        key: Key "Key" 9 "Identity of the finding: `rule`, its id, and the subject",
        severity: Word "Severity" 0 "high for a gain of 10 % of the window or more, medium from 3 %, low below, note for facts and where nothing would be gained",
        rule: Word "Rule" 0 "Id of the rule",
        gain_ns: Nanoseconds "Gain" 0 "Upper bound of the time that would go if the cause went; not to be added up",
        gain_share: Share "Gain" 1 "gain_ns as a share of the window",
        subject: Name "Of" 1 "GPU, kernel, function or direction of copies",
        finding: Name "Finding" 0 "What was found, with figures",
        advice: Name "Advice" 2 "What to do",
        how_sure: Word "Sure" 4 "measured, estimated or heuristic",
        next: Name "Next" 5 "Command that shows more",
    }
}

columns! {
    /// A figure of a finding.
    EvidenceRow {
        key: Key "Key" 9 "Identity of the row: key of the finding and number",
        rule: Word "Rule" 0 "Id of the rule",
        subject: Name "Of" 0 "GPU, kernel, function or direction of copies",
        figure: Word "Figure" 0 "Name of the figure, or record",
        value: Name "Value" 0 "Its value with the unit, or what the record is",
        threshold: Number "Threshold" 1 "The figure's threshold, where it is one",
        record: Key "Record" 3 "Key of the record; null for a figure",
    }
}

columns! {
    /// A rule that could not be judged.
    NotJudgedRow {
        key: Key "Key" 9 "Identity of the row: `rule` and its id",
        rule: Word "Rule" 0 "Id of the rule",
        title: Name "About" 1 "What the rule is about",
        needs: Word "Needs" 0 "Figure or records that the recording lacks",
        record: Name "Record with" 0 "Options that record it; null where none does",
    }
}

columns! {
    /// A rule.
    RuleRow {
        key: Key "Key" 9 "Identity of the row: `rule` and its id",
        rule: Word "Rule" 0 "Id of the rule",
        title: Name "Title" 0 "What it is about",
        over: Word "For each" 1 "What it is judged for: run, gpu, kernel, call or copy",
        when: Name "When" 2 "Condition",
        guard: Name "Only if" 4 "Condition without which it is not judged",
        unless: Name "Unless" 5 "Rules that say more about the same time: a finding of one of them with half of the gain or more takes the place of this rule's",
        gain: Name "Gain" 5 "Upper bound of the time that would go",
        thresholds: Name "Thresholds" 3 "Values that --set changes",
    }
}

columns! {
    /// A figure that rules may use.
    MetricRow {
        key: Key "Key" 9 "Identity of the row: `metric`, source and name",
        over: Word "Of" 0 "What it is a figure of",
        metric: Word "Metric" 0 "Name",
        unit: Word "Unit" 1 "Unit; null for numbers",
        meaning: Name "Meaning" 0 "Definition",
        needs: Word "Needs" 1 "Records that it needs beyond operations",
    }
}

columns! {
    /// Numbers of rules by what became of them.
    CountRow {
        key: Key "Key" 9 "Identity of the row",
        findings: Count "Findings" 0 "Number of findings",
        explained: Count "Explained" 1 "Number of findings that are left out, because one of a more specific rule with half of their gain or more is there",
        silent: Count "Did not fire" 0 "Number of rules that were judged and did not fire",
        not_judged: Count "Not judged" 0 "Number of rules that could not be judged",
        window: Word "Window" 0 "steady: the iterations after the warm-up; run: all operations",
    }
}

/// The form of the answer.
pub const FORM: Form = Form {
    command: "advise",
    question: "What should I look at first?",
    sections: &[
        (
            "findings",
            "What was found, the most serious first",
            FindingRow::COLUMNS,
        ),
        (
            "evidence",
            "Figures and records of the findings",
            EvidenceRow::COLUMNS,
        ),
        ("judged", "How many rules were judged", CountRow::COLUMNS),
        (
            "not_judged",
            "Rules that could not be judged, and what to record for them",
            NotJudgedRow::COLUMNS,
        ),
        ("rules", "The rules; with --rules", RuleRow::COLUMNS),
        (
            "metrics",
            "The figures that rules may use; with --metrics",
            MetricRow::COLUMNS,
        ),
    ],
};

/// Options that record what a rule needs.
const RECORDING: [(&str, &str); 9] = [
    ("kernels", "--kernel-trace"),
    ("hip_calls", "--hip-trace"),
    ("copies", "--memory-copy-trace"),
    ("markers", "--marker-trace"),
    ("allocations", "--memory-allocation-trace"),
    ("counters", "--pmc auto:"),
    ("samples", "--pc-sampling-beta-enabled"),
    ("rccl_calls", "--rccl-trace"),
    ("stacks", "--stacks"),
];

/// What is judged.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// First instant and end of the window; `None` takes the iterations after the warm-up, or else all operations.
    pub window: Option<(u64, u64)>,
}

/// A rule that fired.
struct Finding<'a> {
    rule: &'a Rule,
    subject: &'a Subject,
    gain: u64,
    severity: Severity,
}

/// How serious a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Severity {
    High,
    Medium,
    Low,
    Note,
}

impl Severity {
    fn new(rule: &Rule, gain: u64, window: u64) -> Severity {
        let share = gain as f64 / window.max(1) as f64;
        // What would gain nothing is a fact.
        if rule.is_note() || gain == 0 {
            Severity::Note
        } else if share >= 0.1 {
            Severity::High
        } else if share >= 0.03 {
            Severity::Medium
        } else {
            Severity::Low
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Severity::High => "high",
            Severity::Medium => "medium",
            Severity::Low => "low",
            Severity::Note => "note",
        }
    }
}

/// Judges the rules, as an answer.
pub fn answer(records: &dyn Records, rules: &Rules, options: &Options) -> Answer {
    let facts = records.facts();
    let mut answer = Answer::new(FORM.command);
    answer.main = "findings";
    let found = iterations::find(records, &iterations::Options::default());
    let steady = found.as_ref().filter(|found| found.steady().len() >= 3);
    let steady = steady.and_then(iterations::Iterations::steady_window);
    let chosen = options.window.or(steady);
    let Some(mut window) = crate::breakdown::window(records, chosen) else {
        return Answer::without_ops(FORM.command);
    };
    if options.window.is_none() {
        match chosen {
            Some(_) => window.kind = "steady",
            None => window.start = behind_first_launches(records, &window),
        }
    }
    answer.window = Some(window);
    let subjects = measure(records, &window, found.as_ref());
    let mut findings: Vec<Finding<'_>> = Vec::new();
    let mut lacking: BTreeMap<&str, (&Rule, String)> = BTreeMap::new();
    let mut judged = 0;
    for rule in rules.all() {
        // What was not recorded is not judged, whatever a guard says of it.
        if let Some(needs) = rule.needs().iter().find(|needs| !is_recorded(facts, needs)) {
            lacking.insert(rule.id(), (rule, needs.clone()));
            continue;
        }
        let mut is_judged = false;
        let of_source = subjects
            .iter()
            .filter(|subject| subject.source == rule.source());
        for subject in of_source {
            match rule.judge(&|name| subject.value(name)) {
                Err(name) => {
                    lacking.entry(rule.id()).or_insert((rule, name.to_owned()));
                }
                Ok(gain) => {
                    is_judged = true;
                    if let Some(gain) = gain {
                        // No cause can take more than all of the time.
                        let gain = (gain.max(0.0) as u64).min(window.length());
                        let severity = Severity::new(rule, gain, window.length());
                        findings.push(Finding {
                            rule,
                            subject,
                            gain,
                            severity,
                        });
                    }
                }
            }
        }
        if is_judged {
            judged += 1;
            lacking.remove(rule.id());
        } else if !lacking.contains_key(rule.id()) {
            lacking.insert(rule.id(), (rule, rule.source().word().to_owned()));
        }
    }
    let fired: BTreeSet<&str> = findings.iter().map(|finding| finding.rule.id()).collect();
    let silent = judged - fired.len();
    let found_all = findings.len();
    let explained: Vec<bool> = findings
        .iter()
        .map(|finding| findings.iter().any(|other| other.explains(finding)))
        .collect();
    let mut is_left_out = explained.into_iter();
    findings.retain(|_| !is_left_out.next().unwrap_or(false));
    findings.sort_by(|a, b| {
        // Notes that are about facts come before rules that would gain nothing.
        let order = |finding: &Finding<'_>| {
            let is_without_gain = finding.gain == 0 && !finding.rule.is_note();
            let gain = std::cmp::Reverse(finding.gain);
            (finding.severity, is_without_gain, gain)
        };
        let ids =
            |finding: &Finding<'_>| (finding.rule.id().to_owned(), finding.subject.name.clone());
        order(a).cmp(&order(b)).then_with(|| ids(a).cmp(&ids(b)))
    });
    let counts = CountRow {
        key: key(&[&"judged"]).into(),
        findings: findings.len().into(),
        explained: (found_all - findings.len()).into(),
        silent: silent.into(),
        not_judged: lacking.len().into(),
        window: window.kind.into(),
    };
    let rows = findings.iter().map(|finding| finding.row(&window).cells());
    let evidence = findings.iter().flat_map(Finding::evidence);
    answer.sections = vec![
        Section::new("findings", FindingRow::COLUMNS, rows.collect()),
        Section::new("evidence", EvidenceRow::COLUMNS, evidence.collect()),
        Section::new("judged", CountRow::COLUMNS, vec![counts.cells()]),
        Section::new(
            "not_judged",
            NotJudgedRow::COLUMNS,
            not_judged(facts, &lacking),
        ),
    ];
    report_common(facts, &mut answer, 0);
    answer
}

/// Start of a kernel that is not the first launch of its name: code is loaded for first launches. The window's own start where that
/// leaves less than half of it.
fn behind_first_launches(records: &dyn Records, window: &Window) -> u64 {
    let mut names: BTreeSet<u32> = BTreeSet::new();
    let mut kernels = records.ops().filter(|op| op.is_kernel);
    let second = kernels.find(|op| !names.insert(op.name));
    let start = second.map_or(window.start, |op| op.start.max(window.start));
    let is_most = start <= window.start + window.length() / 2;
    if is_most { start } else { window.start }
}

/// Whether records of a kind are there. Peaks of links and the cost of recording are in no recording.
fn is_recorded(facts: &Facts, what: &str) -> bool {
    let recorded = &facts.recorded;
    match what {
        "kernels" => true,
        "hip_calls" => recorded.calls,
        "copies" => recorded.copies,
        "markers" => recorded.markers,
        "allocations" => recorded.allocations,
        "stacks" => recorded.stacks,
        "counters" => recorded.counters,
        "samples" => recorded.samples,
        _ => false,
    }
}

/// The option that counts what the figures of a rule are made of.
fn counting(facts: &Facts, rule: &Rule) -> String {
    let names = rule.names();
    let names = names
        .iter()
        .filter_map(|name| metrics::needs(rule.source(), name)?.strip_prefix("counters:"));
    let mut counters: BTreeSet<&str> = names.flat_map(|names| names.split(',')).collect();
    // Which counters have the bytes behind L2 depends on the GPU.
    if counters.remove(metrics::FABRIC)
        && let Some(peaks) = facts.gpus.first().and_then(|gpu| Peaks::find(&gpu.arch))
    {
        let bytes = peaks.fabric_read.keys().chain(peaks.fabric_write.keys());
        let counted = bytes.filter(|name| !peaks.assumed_zero.contains(name));
        counters.extend(counted.map(String::as_str));
    }
    let counters: Vec<&str> = counters.into_iter().collect();
    format!("--pmc auto:{}", counters.join(","))
}

fn not_judged(facts: &Facts, lacking: &BTreeMap<&str, (&Rule, String)>) -> Vec<Vec<Value>> {
    let rows = lacking.iter().map(|(id, (rule, name))| {
        // What the figure needs says more than its name.
        let needs = metrics::needs(rule.source(), name).unwrap_or(name);
        let needs = needs.split(':').next().unwrap_or(needs);
        let record = match needs {
            "counters" => Some(counting(facts, rule)),
            _ => RECORDING
                .iter()
                .find(|known| known.0 == needs)
                .map(|known| known.1.to_owned()),
        };
        NotJudgedRow {
            key: key(&[&"rule", id]).into(),
            rule: (*id).into(),
            title: rule.title().into(),
            needs: needs.into(),
            record: record.into(),
        }
        .cells()
    });
    rows.collect()
}

impl Finding<'_> {
    /// Whether this finding says more about the time of another one: that one's rule names this rule, and this has half of its
    /// gain or more. Findings about different GPUs have nothing to do with one another.
    fn explains(&self, other: &Finding<'_>) -> bool {
        let is_named = other.rule.unless().iter().any(|id| id == self.rule.id());
        let is_same_gpu = self.subject.source != Source::Gpu
            || other.subject.source != Source::Gpu
            || self.subject.name == other.subject.name;
        is_named && is_same_gpu && self.gain.saturating_mul(2) >= other.gain
    }

    fn key(&self) -> String {
        key(&[&"rule", &self.rule.id(), &self.subject.name])
    }

    fn row(&self, window: &Window) -> FindingRow {
        let (rule, subject) = (self.rule, self.subject);
        FindingRow {
            key: self.key().into(),
            severity: self.severity.word().into(),
            rule: rule.id().into(),
            gain_ns: (!rule.is_note()).then_some(self.gain).into(),
            gain_share: if rule.is_note() {
                Value::Null
            } else {
                Value::ratio(self.gain, window.length())
            },
            subject: subject.name.as_str().into(),
            finding: rule
                .finding(&|name| Some((subject.value(name)?, metrics::unit(rule.source(), name))))
                .into(),
            advice: rule.advice().into(),
            how_sure: rule.how_sure().into(),
            next: rule.next().into(),
        }
    }

    /// The figures of the condition, and the records behind them.
    fn evidence(&self) -> Vec<Vec<Value>> {
        let (rule, subject) = (self.rule, self.subject);
        let mut rows = Vec::new();
        let mut add = |row: EvidenceRow| {
            let number = rows.len() + 1;
            let row = EvidenceRow {
                key: format!("{}|{number}", self.key()).into(),
                rule: rule.id().into(),
                subject: subject.name.as_str().into(),
                ..row
            };
            rows.push(row.cells());
        };
        for name in rule.figures() {
            let threshold = rule.threshold(name);
            let value = threshold.or_else(|| subject.value(name));
            let unit = metrics::unit(rule.source(), name);
            add(EvidenceRow {
                figure: name.into(),
                value: value.map(|value| shown(value, unit)).into(),
                threshold: threshold.into(),
                ..EvidenceRow::default()
            });
        }
        for (what, text, record) in subject
            .evidence
            .iter()
            .filter(|known| known.0 == rule.id())
            .take(5)
        {
            let _ = what;
            add(EvidenceRow {
                figure: "record".into(),
                value: text.as_str().into(),
                record: record.as_str().into(),
                ..EvidenceRow::default()
            });
        }
        rows
    }
}

/// The rules as an answer.
pub fn list_rules(rules: &Rules) -> Answer {
    let mut answer = Answer::new(FORM.command);
    answer.main = "rules";
    let rows = rules.all().iter().map(|rule| {
        RuleRow {
            key: key(&[&"rule", &rule.id()]).into(),
            rule: rule.id().into(),
            title: rule.title().into(),
            over: rule.source().word().into(),
            when: rule.when_text().into(),
            guard: rule.guard_text().into(),
            unless: match rule.unless() {
                [] => Value::Null,
                rules => rules.join(", ").into(),
            },
            gain: rule.gain_text().into(),
            thresholds: rule.thresholds_text().into(),
        }
        .cells()
    });
    answer.sections = vec![Section::new("rules", RuleRow::COLUMNS, rows.collect())];
    answer
}

/// The figures that rules may use, as an answer.
pub fn list_metrics() -> Answer {
    let mut answer = Answer::new(FORM.command);
    answer.main = "metrics";
    let rows = METRICS.iter().map(|metric| {
        MetricRow {
            key: key(&[&"metric", &metric.source.word(), &metric.name]).into(),
            over: metric.source.word().into(),
            metric: metric.name.into(),
            unit: match metric.unit {
                Unit::Number | Unit::Count => Value::Null,
                unit => unit.label().into(),
            },
            meaning: metric.meaning.into(),
            needs: metric.needs.into(),
        }
        .cells()
    });
    answer.sections = vec![Section::new("metrics", MetricRow::COLUMNS, rows.collect())];
    answer
}

#[cfg(test)]
mod tests;
