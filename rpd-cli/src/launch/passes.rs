//! Runs several passes: prints the plan, a line for each pass, and stops at a failure.

use std::fs::File;
use std::io::{Seek as _, SeekFrom};
use std::os::fd::AsFd as _;

use anyhow::Result;
use nix::sys::signal::Signal;
use rpd_core::options::CounterOptions;

use super::Runner;
use crate::counters::derived::ComputedMetric;
use crate::failure::{Failure, line};
use crate::options::plan::{Pass, Plan};
use crate::process::spawn::TargetEnd;

/// End of a pass.
pub(super) struct End {
    /// End of the target.
    pub(super) ending: TargetEnd,
    /// Whether all outputs were written completely.
    pub(super) written: Result<bool>,
}

impl End {
    /// The failure of the pass, if any.
    fn problem(&self, pass: &Pass) -> Option<String> {
        let program = pass.options.command.first().map_or("", String::as_str);
        match (self.ending, &self.written) {
            (TargetEnd::Exited(0), Ok(true)) => None,
            (TargetEnd::Exited(0), Ok(false)) => Some("its outputs are incomplete".to_owned()),
            (TargetEnd::Exited(0), Err(error)) => Some(line(error)),
            (TargetEnd::Exited(status), _) => {
                Some(format!("{program} returned non-zero exit status {status}"))
            }
            (TargetEnd::Signalled(signal), _) => {
                let name = Signal::try_from(signal)
                    .map_or_else(|_| format!("signal {signal}"), |signal| signal.to_string());
                Some(format!("{program} was ended by {name}"))
            }
        }
    }
}

/// Runs the passes of a plan with several passes.
pub(super) fn run(plan: &Plan, computed: &[ComputedMetric], runner: &mut Runner<'_>) -> Result<u8> {
    let total = plan.passes.len();
    for line in shown(plan).into_iter().chain(afterwards(computed)) {
        notice!("{line}");
    }
    let input = Input::from_standard_input();
    let mut failed = Vec::new();
    for (pass, number) in plan.passes.iter().zip(1..) {
        // Every pass reads the same input, as one run would.
        if let Some(input) = &input {
            input.rewind();
        }
        notice!("rpd: pass {number}/{total} of {} ...", program(pass));
        let problem = match runner.run(pass) {
            Ok(end) => {
                // Errors of the outputs are printed here, since the exit status is the target's.
                if let (Err(error), true) = (&end.written, end.ending.status() != 0) {
                    eprintln!("rpd: {}", line(error));
                }
                end.problem(pass)
            }
            Err(error) => Some(line(&error)),
        };
        let interrupted = runner
            .signals
            .as_ref()
            .and_then(super::Signals::interrupted);
        let left = skipped_passes(number, total);
        // An interrupt is meant for the whole command, not for the pass alone.
        if let Some(signal) = interrupted {
            let message = match &problem {
                Some(problem) => format!("pass {number}/{total}: {problem}; interrupted{left}"),
                None => format!("pass {number}/{total}: interrupted by {signal}{left}"),
            };
            let status = TargetEnd::Signalled(signal as i32).status();
            return Err(Failure::new(status, message).into());
        }
        let Some(problem) = problem else { continue };
        // Results of passes belong together: those of the rest would be thrown away with them.
        if !plan.continue_on_error {
            let hint = if number < total {
                " (--continue-on-error goes on)"
            } else {
                ""
            };
            return Err(
                Failure::failed(format!("pass {number}/{total}: {problem}{left}{hint}")).into(),
            );
        }
        eprintln!("rpd: pass {number}/{total}: {problem}");
        failed.push(number.to_string());
    }
    if failed.is_empty() {
        return Ok(0);
    }
    let plural = if failed.len() == 1 { "" } else { "es" };
    Err(Failure::failed(format!(
        "{} of {total} passes failed: pass{plural} {}",
        failed.len(),
        failed.join(", ")
    ))
    .into())
}

/// Standard input that is a file: every pass reads it from the same position. A pipe or a terminal can be read
/// only by the first pass that does so.
pub(crate) struct Input {
    file: File,
    begin: u64,
}

impl Input {
    pub(crate) fn from_standard_input() -> Option<Input> {
        let mut file = File::from(std::io::stdin().as_fd().try_clone_to_owned().ok()?);
        let begin = file.stream_position().ok()?;
        Some(Input { file, begin })
    }

    /// Goes back to the begin of standard input. If that fails, the pass reads the end of the file; it runs all the
    /// same.
    pub(crate) fn rewind(&self) {
        let _ = (&self.file).seek(SeekFrom::Start(self.begin));
    }
}

fn program(pass: &Pass) -> &str {
    let program = pass.options.command.first().map_or("", String::as_str);
    program.rsplit('/').next().unwrap_or_default()
}

/// A message about the passes that are skipped.
fn skipped_passes(number: usize, total: usize) -> String {
    match total - number {
        0 => String::new(),
        1 => format!("; pass {total} was not run"),
        _ => format!("; passes {} to {total} were not run", number + 1),
    }
}

/// Lines of the plan, one for each pass.
fn shown(plan: &Plan) -> Vec<String> {
    let total = plan.passes.len();
    plan.passes
        .iter()
        .zip(1..)
        .map(|(pass, number)| {
            let what = counters(&pass.options.collector.counters);
            format!("rpd: pass {number}/{total}: {what}")
        })
        .collect()
}

/// Lines about the metrics that are computed after the passes.
fn afterwards(computed: &[ComputedMetric]) -> Vec<String> {
    computed
        .iter()
        .map(|metric| {
            format!(
                "rpd: then {} is computed from {}",
                metric.name,
                metric.parts.join(" ")
            )
        })
        .collect()
}

/// The counters of a pass, for messages.
fn counters(counters: &CounterOptions) -> String {
    if !counters.any() {
        return "no counters".to_owned();
    }
    let groups: Vec<String> = counters
        .groups
        .iter()
        .map(|group| {
            let names: Vec<String> = group.iter().map(ToString::to_string).collect();
            names.join(" ")
        })
        .collect();
    groups.join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpd_core::options::{CounterRequest, Options};

    fn pass(groups: &[&[&str]]) -> Pass {
        let mut options = Options {
            command: vec!["/bin/app".to_owned()],
            ..Options::default()
        };
        let request = |name: &&str| CounterRequest {
            name: (*name).to_owned(),
            device: None,
        };
        options.collector.counters.groups = groups
            .iter()
            .map(|group| group.iter().map(request).collect())
            .collect();
        Pass {
            options,
            auto: false,
            counted: true,
            unprofiled: None,
            suppress_marker_preload: false,
            sdk_suffixes: Vec::new(),
            replay: None,
        }
    }

    #[test]
    fn shown_plan_has_a_line_for_each_pass() {
        let plan = Plan {
            passes: vec![
                pass(&[&["SQ_WAVES", "GRBM_COUNT"]]),
                pass(&[]),
                pass(&[&["A"], &["B", "C"]]),
            ],
            stem: None,
            continue_on_error: false,
            list_avail: false,
            attach: None,
            echo: false,
            warnings: Vec::new(),
        };
        assert_eq!(
            shown(&plan),
            [
                "rpd: pass 1/3: SQ_WAVES GRBM_COUNT",
                "rpd: pass 2/3: no counters",
                "rpd: pass 3/3: A | B C"
            ]
        );
        let big = ComputedMetric {
            name: "BIG".to_owned(),
            parts: vec!["A".to_owned(), "B".to_owned()],
            formulas: Vec::new(),
        };
        assert_eq!(afterwards(&[big]), ["rpd: then BIG is computed from A B"]);
    }

    #[test]
    fn pass_end_states_its_problem() {
        let pass = pass(&[]);
        let problem = |ending, written| End { ending, written }.problem(&pass);
        assert_eq!(problem(TargetEnd::Exited(0), Ok(true)), None);
        assert_eq!(
            problem(TargetEnd::Exited(3), Ok(true)).as_deref(),
            Some("/bin/app returned non-zero exit status 3")
        );
        assert_eq!(
            problem(TargetEnd::Signalled(9), Ok(true)).as_deref(),
            Some("/bin/app was ended by SIGKILL")
        );
        assert!(problem(TargetEnd::Exited(0), Ok(false)).is_some());
        assert_eq!(skipped_passes(1, 3), "; passes 2 to 3 were not run");
        assert_eq!(skipped_passes(2, 3), "; pass 3 was not run");
        assert_eq!(skipped_passes(3, 3), "");
    }
}
