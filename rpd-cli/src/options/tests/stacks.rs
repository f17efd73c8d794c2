//! Call stacks: options, variables, and messages about both.

use rpd_core::options::{Options, Symbolize};
use rpd_spool::stacks::{StackMode, StackOptions};

use super::{Got, plan_with, run_with};

fn options(line: &str, environment: &[(&str, &str)]) -> Options {
    let line = format!("{line} -- ./app");
    plan_with(&line, environment).passes.remove(0).options
}

fn warnings(line: &str, environment: &[(&str, &str)]) -> Vec<String> {
    plan_with(&format!("{line} -- ./app"), environment).warnings
}

fn refused(line: &str, environment: &[(&str, &str)]) -> String {
    match run_with(&format!("{line} -- ./app"), environment) {
        Got::Failure(failure) => failure.to_string(),
        _ => panic!("{line} is accepted"),
    }
}

#[test]
fn no_stacks_are_taken_unless_requested() {
    let options = options("--hip-trace", &[]);
    assert_eq!(options.collector.stacks, StackOptions::default());
    assert!(!options.collector.to_text().contains("stack"));
    assert_eq!(options.stacks.symbolize, Symbolize::Stop);
    assert_eq!(options.stacks.symbolize_limit, 60_000_000_000);
}

#[test]
fn stack_options_reach_the_collector_and_the_outputs() {
    let options = options(
        "--sys-trace --stacks merged --stacks-apis 'hip*,!hipGet*' hsa_* --stacks-depth 0 --stacks-every 100 \
         --stacks-min-duration 50us --stacks-symbolize post --stacks-runtime-frames --stacks-interpreter-frames=on",
        &[],
    );
    let stacks = &options.collector.stacks;
    assert_eq!(stacks.mode, StackMode::Merged);
    assert_eq!(stacks.apis, ["hip*", "!hipGet*", "hsa_*"]);
    assert_eq!(
        (stacks.depth, stacks.every, stacks.min_duration),
        (0, 100, 50_000)
    );
    assert_eq!(options.stacks.symbolize, Symbolize::Post);
    assert!(options.stacks.shown.runtime && options.stacks.shown.interpreter);
}

#[test]
fn inherited_variables_are_defaults_of_stack_options() {
    let variables = [
        ("RPD_STACKS", "python"),
        ("RPD_STACKS_APIS", "*Malloc*,*Free"),
        ("RPD_STACKS_DEPTH", "9"),
        ("RPD_STACKS_RATE", "7"),
        ("RPD_STACKS_SYMBOLIZE", "off"),
        ("RPD_STACKS_RUNTIME_FRAMES", "1"),
        ("RPD_STACKS_INTERP_FRAMES", "0"),
        ("RPDT_STACKFRAMES", "1"),
    ];
    let set = options("--hip-trace", &variables);
    let stacks = &set.collector.stacks;
    assert_eq!(stacks.mode, StackMode::Python);
    assert_eq!(stacks.apis, ["*Malloc*", "*Free"]);
    assert_eq!((stacks.depth, stacks.every), (9, 7));
    assert_eq!(set.stacks.symbolize, Symbolize::Off);
    assert!(set.stacks.shown.runtime && !set.stacks.shown.interpreter);
    let given = options("--hip-trace --stacks native --stacks-every 2", &variables);
    assert_eq!(given.collector.stacks.mode, StackMode::Native);
    assert_eq!(given.collector.stacks.every, 2);
    // In the original's mode only variables of the original count.
    let original = options("--compat rocprofv3 --hip-trace", &variables);
    assert_eq!(original.collector.stacks, StackOptions::default());
    let asked = options("--compat rocprofv3 --hip-trace --stacks merged", &variables);
    assert_eq!(asked.collector.stacks.mode, StackMode::Merged);
    assert_eq!(asked.collector.stacks.every, 1);
}

#[test]
fn the_variable_of_rocm_profile_data_requests_native_stacks() {
    let with = |value: &str, line: &str| {
        let options = options(line, &[("RPDT_STACKFRAMES", value)]);
        (options.collector.stacks.mode, options.stacks.shown.runtime)
    };
    assert_eq!(with("1", "--hip-trace"), (StackMode::Native, true));
    assert_eq!(with("0", "--hip-trace"), (StackMode::Off, false));
    assert_eq!(
        with("1", "--hip-trace --stacks off"),
        (StackMode::Off, false)
    );
    assert_eq!(
        with("1", "--hip-trace --stacks-runtime-frames no"),
        (StackMode::Native, false)
    );
    assert_eq!(
        with("1", "--hip-trace --compat rocprofv3"),
        (StackMode::Off, false)
    );
}

#[test]
fn stack_options_without_effect_give_a_warning() {
    assert_eq!(
        warnings("--hip-trace --stacks-depth 3", &[]),
        ["--stacks-depth: no effect without --stacks"]
    );
    assert!(warnings("--hip-trace", &[("RPD_STACKS_DEPTH", "3")]).is_empty());
    assert_eq!(
        warnings("--kernel-trace --stacks native", &[]),
        [
            "--stacks: no effect, since none of the calls that have stacks is traced (try --hip-trace)"
        ]
    );
    assert_eq!(
        warnings("--hsa-trace", &[("RPDT_STACKFRAMES", "1")]),
        [
            "RPDT_STACKFRAMES (set in the environment): no effect, since none of the calls that have stacks is traced \
             (try --hip-trace)"
        ]
    );
    for line in [
        "--hip-runtime-trace --stacks native",
        "--hsa-trace --stacks native --stacks-apis hsa_*",
        "--memory-allocation-trace --stacks native --stacks-apis MEMORY_ALLOCATION_*",
    ] {
        assert!(warnings(line, &[]).is_empty(), "{line}");
    }
}

#[test]
fn malformed_stack_options_are_refused_by_name() {
    for (line, environment, words) in [
        ("--stacks on", None, "'on'"),
        (
            "--stacks native --stacks-apis hip+",
            None,
            "--stacks-apis: 'hip+' is not the name of a function with * and ? in it, nor one after a !",
        ),
        (
            "--stacks native --stacks-apis ,",
            None,
            "--stacks-apis: names no function; leave it out for HIP calls",
        ),
        ("--stacks native --stacks-every 0", None, "--stacks-every"),
        ("--stacks native --stacks-depth -1", None, "--stacks-depth"),
        (
            "--stacks native --stacks-min-duration 50",
            None,
            "--stacks-min-duration: '50' has no unit: ns, us, ms or s",
        ),
        ("--stacks native --stacks-symbolize later", None, "'later'"),
        (
            "--stacks native --stacks-symbolize-limit soon",
            None,
            "--stacks-symbolize-limit: 'soon' is not a time such as 50us",
        ),
        (
            "",
            Some(("RPD_STACKS", "yes")),
            "RPD_STACKS: invalid choice: 'yes'",
        ),
        (
            "--stacks native",
            Some(("RPD_STACKS_RATE", "0")),
            "RPD_STACKS_RATE (set in the environment): 0 is not between 1 and 4294967295",
        ),
        (
            "--stacks native",
            Some(("RPD_STACKS_DEPTH", "many")),
            "RPD_STACKS_DEPTH: invalid int value: 'many'",
        ),
    ] {
        let environment: Vec<(&str, &str)> = environment.into_iter().collect();
        let message = refused(&format!("--hip-trace {line}"), &environment);
        assert!(message.contains(words), "{line}: {message}");
    }
}
