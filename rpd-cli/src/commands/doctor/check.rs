//! What a check is, and what it finds.

use clap::ValueEnum;
use serde::Serialize;

use super::machine::Machine;

/// One thing that `rpd doctor` looks at.
pub(super) struct Check {
    /// Group and name, with a dot between them: what `--only` and `--skip` select.
    pub(super) id: &'static str,
    /// What it is about, as a noun.
    pub(super) title: &'static str,
    pub(super) severity: Severity,
    /// Checks without whose success this one is skipped. They stand earlier in the list.
    pub(super) depends: &'static [&'static str],
    /// Whether it runs only when it is requested, because it takes seconds.
    pub(super) is_slow: bool,
    pub(super) run: fn(&Machine) -> Finding,
}

impl Check {
    /// A check that always runs and depends on no other.
    pub(super) const fn new(
        id: &'static str,
        title: &'static str,
        severity: Severity,
        run: fn(&Machine) -> Finding,
    ) -> Check {
        Check {
            id,
            title,
            severity,
            depends: &[],
            is_slow: false,
            run,
        }
    }

    /// Has the check skipped unless those of these ids have succeeded.
    pub(super) const fn after(mut self, depends: &'static [&'static str]) -> Check {
        self.depends = depends;
        self
    }

    /// Has the check run only when it is requested.
    pub(super) const fn slow(mut self) -> Check {
        self.is_slow = true;
        self
    }

    /// The part of the id before the dot.
    pub(super) fn group(&self) -> &'static str {
        self.id.split_once('.').map_or(self.id, |(group, _)| group)
    }
}

/// What depends on a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Severity {
    /// Nothing is recorded on this GPU without it.
    Error,
    /// Something is missing or slower without it.
    Warning,
    /// A fact that explains what is seen elsewhere.
    Info,
}

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum Status {
    Pass,
    Warn,
    Fail,
    /// The check was not run, because something that it depends on is missing.
    Skip,
}

impl Status {
    /// The word in reports.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Status::Pass => "PASS",
            Status::Warn => "WARN",
            Status::Fail => "FAIL",
            Status::Skip => "SKIP",
        }
    }
}

/// What a check has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) status: Status,
    /// What was seen, in one line.
    pub(super) detail: String,
    /// How to mend it, in one line; empty when there is nothing to mend.
    pub(super) remedy: String,
}

impl Finding {
    pub(super) fn pass(detail: impl Into<String>) -> Finding {
        Finding::with(Status::Pass, detail.into(), String::new())
    }

    pub(super) fn warn(detail: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding::with(Status::Warn, detail.into(), remedy.into())
    }

    pub(super) fn fail(detail: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding::with(Status::Fail, detail.into(), remedy.into())
    }

    pub(super) fn skip(detail: impl Into<String>) -> Finding {
        Finding::with(Status::Skip, detail.into(), String::new())
    }

    fn with(status: Status, detail: String, remedy: String) -> Finding {
        Finding {
            status,
            detail,
            remedy,
        }
    }
}
