//! Kernel replay: command-line-137 to command-line-146.

use super::{Got, counted, layout, plan_with, run_with, with_file};
use crate::options::plan::Plan;

const KERNEL: &str = "--replay-mode kernel --kernel-replay-beta-enabled -d /D";

/// The runs of a plan, as `layout` has them, and whether each replays.
fn runs(mut plan: Plan) -> Vec<(String, bool)> {
    plan.fold();
    let replays: Vec<bool> = plan
        .passes
        .iter()
        .map(|pass| pass.options.collector.counters.replay)
        .collect();
    layout(plan).into_iter().zip(replays).collect()
}

fn of_line(line: &str) -> Vec<(String, bool)> {
    runs(plan_with(&format!("{KERNEL} {line} -- a"), &[]))
}

fn of_file(content: &str, line: &str) -> Vec<(String, bool)> {
    let plan = with_file("f.json", content, &format!("{KERNEL} {line} -- a"), &[]);
    runs(plan.unwrap_or_else(|failure| panic!("{content}: {failure}")))
}

#[test]
fn groups_of_the_command_line_are_one_run_that_replays() {
    let one = |text: &str, replays| vec![(text.to_owned(), replays)];
    assert_eq!(
        of_line("--pmc A --pmc B"),
        one("/D: A | B", true),
        "command-line-139"
    );
    assert_eq!(
        of_line("--pmc A B"),
        one("/D: A B", false),
        "command-line-140"
    );
    let jobs = r#"{"jobs":[{"pmc":["C"]},{"pmc":["D"]}]}"#;
    let expected = [
        ("/D/pass_1: A | B".to_owned(), true),
        ("/D/pass_2: C".to_owned(), false),
        ("/D/pass_3: D".to_owned(), false),
    ];
    assert_eq!(
        of_file(jobs, "--pmc A --pmc B"),
        expected,
        "command-line-141"
    );
    let groups = r#"{"jobs":[{"pmc_groups":[["A"],["B"]]}]}"#;
    assert_eq!(
        of_file(groups, ""),
        one("/D: A | B", true),
        "command-line-143"
    );
}

/// command-line-142
#[test]
fn jobs_are_runs_of_their_own_in_the_order_of_the_file() {
    let jobs: Vec<String> = (0..32).map(|n| format!(r#"{{"pmc":["C{n}"]}}"#)).collect();
    let found = of_file(&format!(r#"{{"jobs":[{}]}}"#, jobs.join(",")), "");
    let expected: Vec<_> = (0..32)
        .map(|n| (format!("/D/pass_{}: C{n}", n + 1), false))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn replay_is_refused_with_what_excludes_it() {
    for (line, environment, fragments) in [
        // command-line-137
        (
            "--replay-mode kernel --pmc A --pmc B -- a",
            &[][..],
            &["--replay-mode kernel requires --kernel-replay-beta-enabled"][..],
        ),
        // command-line-138
        (
            "--replay-mode kernel --kernel-replay-beta-enabled -- a",
            &[],
            &["--replay-mode kernel requires counters"],
        ),
        // command-line-144
        (
            "--replay-mode kernel --kernel-replay-beta-enabled --pmc A -- a",
            &[("ROCPROFILER_PC_SAMPLING_BETA_ENABLED", "")],
            &["cannot be combined with PC sampling"],
        ),
        // command-line-146
        (
            "--replay-mode kernel --kernel-replay-beta-enabled --pmc A --att -- a",
            &[("ROCPROFILER_PC_SAMPLING_BETA_ENABLED", "1")],
            &["cannot be combined with thread trace, PC sampling"],
        ),
        (
            "--replay-mode kernel --kernel-replay-beta-enabled --pmc A --pmc B -p 1",
            &[],
            &["cannot be combined with attach mode"],
        ),
        (
            "--replay-mode dispatch --pmc A -- a",
            &[],
            &["--replay-mode"],
        ),
    ] {
        let Got::Failure(failure) = run_with(line, environment) else {
            panic!("{line} is accepted");
        };
        for fragment in fragments {
            assert!(failure.message.contains(fragment), "{line}: {failure}");
        }
        let named = failure.message.matches("PC sampling").count();
        assert!(named <= 1, "{line}: {failure}");
    }
}

#[test]
fn replay_of_kernels_by_choice_needs_no_acknowledgement() {
    let plan = plan_with("--replay-mode auto --pmc A --pmc B -d /D -- a", &[]);
    let replays = plan.passes.iter().map(|pass| pass.replay);
    assert!(replays.flatten().all(|replay| !replay.is_required));
    assert_eq!(runs(plan), [("/D: A | B".to_owned(), true)]);
    // What excludes it leaves passes.
    let beta = [("ROCPROFILER_PC_SAMPLING_BETA_ENABLED", "1")];
    let passes = plan_with("--replay-mode auto --pmc A --pmc B -- a", &beta);
    assert!(passes.passes.iter().all(|pass| pass.replay.is_none()));
    let application = plan_with("--replay-mode application --pmc A --pmc B -- a", &[]);
    assert_eq!(application.passes.len(), 2);
    assert_eq!(counted(&application.passes[1].options), "B");
}
