//! The forms of a report. The JSON has the keys of ROCm's doctor.

use std::fmt::Write as _;

use anyhow::Result;
use serde::Serialize;

use super::check::{Check, Finding, Severity, Status};
use super::machine::Machine;

/// A check and what it found.
pub(super) struct Outcome {
    pub(super) check: &'static Check,
    pub(super) finding: Finding,
}

/// What the checks of one run found, and on which installation.
pub(super) struct Report {
    rocm_root: Option<String>,
    rocm_source: String,
    rocm_version: Option<String>,
    outcomes: Vec<Outcome>,
}

/// How the text looks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    /// What was seen by checks that passed, too.
    pub(super) verbose: bool,
    /// No line for a check that needs nothing.
    pub(super) quiet: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    schema_version: u32,
    tool_version: &'static str,
    rocm_version: Option<&'a str>,
    rocm_root: Option<&'a str>,
    rocm_root_source: &'a str,
    summary: Summary,
    checks: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Summary {
    pass: usize,
    warn: usize,
    fail: usize,
    skip: usize,
    total: usize,
}

#[derive(Serialize)]
struct Row<'a> {
    id: &'static str,
    group: &'static str,
    title: &'static str,
    severity: Severity,
    depends: &'static [&'static str],
    status: Status,
    detail: &'a str,
    remediation: Option<&'a str>,
}

impl Report {
    pub(super) fn new(machine: &Machine, outcomes: Vec<Outcome>) -> Report {
        let root = machine.rocm.root.as_ref();
        Report {
            rocm_root: root.map(|root| root.display().to_string()),
            rocm_source: machine.rocm.source.clone(),
            rocm_version: root
                .and_then(|root| machine.text(&format!("{}/.info/version", root.display()))),
            outcomes,
        }
    }

    /// How many checks ended so.
    pub(super) fn count(&self, status: Status) -> usize {
        let ended = self.outcomes.iter();
        ended
            .filter(|outcome| outcome.finding.status == status)
            .count()
    }

    /// The report as one JSON document.
    pub(super) fn json(&self) -> Result<String> {
        let checks = self.outcomes.iter().map(|Outcome { check, finding }| Row {
            id: check.id,
            group: check.group(),
            title: check.title,
            severity: check.severity,
            depends: check.depends,
            status: finding.status,
            detail: &finding.detail,
            remediation: Some(finding.remedy.as_str()).filter(|remedy| !remedy.is_empty()),
        });
        let document = Document {
            schema_version: 1,
            tool_version: env!("CARGO_PKG_VERSION"),
            rocm_version: self.rocm_version.as_deref(),
            rocm_root: self.rocm_root.as_deref(),
            rocm_root_source: &self.rocm_source,
            summary: Summary {
                pass: self.count(Status::Pass),
                warn: self.count(Status::Warn),
                fail: self.count(Status::Fail),
                skip: self.count(Status::Skip),
                total: self.outcomes.len(),
            },
            checks: checks.collect(),
        };
        Ok(serde_json::to_string_pretty(&document)? + "\n")
    }

    /// The report as lines, and at the end how to mend what was found.
    pub(super) fn text(&self, look: Look) -> String {
        let mut text = format!("rpd doctor {}\n", env!("CARGO_PKG_VERSION"));
        let width = self.outcomes.iter().map(|outcome| outcome.check.id.len());
        let width = width.max().unwrap_or(0);
        let mut group = "";
        for Outcome { check, finding } in &self.outcomes {
            let is_good = matches!(finding.status, Status::Pass | Status::Skip);
            if look.quiet && is_good {
                continue;
            }
            if check.group() != group {
                group = check.group();
                let line = "=".repeat(group.len());
                // Writing to a string cannot fail.
                let _ = write!(text, "\n{group}\n{line}\n");
            }
            let word = finding.status.word();
            let _ = write!(text, "[ {word} ]  {:width$}  {}", check.id, check.title);
            if look.verbose || finding.status != Status::Pass {
                let _ = write!(text, ": {}", finding.detail);
            }
            text.push('\n');
        }
        let _ = write!(
            text,
            "\nSummary: {} passed, {} warning(s), {} failed, {} skipped ({} total)\n",
            self.count(Status::Pass),
            self.count(Status::Warn),
            self.count(Status::Fail),
            self.count(Status::Skip),
            self.outcomes.len()
        );
        let to_mend = |outcome: &&Outcome| !outcome.finding.remedy.is_empty();
        let mut is_first = true;
        // Failures come first.
        for status in [Status::Fail, Status::Warn] {
            let outcomes = self.outcomes.iter().filter(to_mend);
            for Outcome { check, finding } in outcomes.filter(|one| one.finding.status == status) {
                if std::mem::take(&mut is_first) {
                    text.push_str("\nHow to fix\n==========\n");
                }
                let _ = writeln!(
                    text,
                    "{}: {}\n    {}",
                    check.id, finding.detail, finding.remedy
                );
            }
        }
        text
    }
}

/// The ids, severities and titles of checks.
pub(super) fn list(checks: &[&Check]) -> String {
    let width = checks.iter().map(|check| check.id.len()).max().unwrap_or(0);
    let line = |check: &&Check| {
        let severity = match check.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
        };
        let slow = if check.is_slow {
            " (with --run-smoke-test)"
        } else {
            ""
        };
        format!("{:width$}  {severity:7}  {}{slow}\n", check.id, check.title)
    };
    checks.iter().map(line).collect()
}
