//! PC sampling: command-line-106 to command-line-113.

use rpd_core::options::{SamplingMethod, SamplingOptions, SamplingUnit};

use super::{Got, plan_with, run_with};

const ALL: &str = "--pc-sampling-beta-enabled --pc-sampling-unit time --pc-sampling-method host_trap --pc-sampling-interval 1";

fn refused(line: &str) -> (u8, String) {
    match run_with(&format!("{line} -- ./app"), &[]) {
        Got::Failure(failure) => (failure.status, failure.to_string()),
        _ => panic!("{line} is accepted"),
    }
}

fn sampling(line: &str, environment: &[(&str, &str)]) -> Option<SamplingOptions> {
    let plan = plan_with(&format!("{line} -- ./app"), environment);
    plan.passes[0].options.collector.sampling
}

/// Checks command-line-106, command-line-108, command-line-109, command-line-110 and command-line-111.
#[test]
fn incomplete_sampling_options_are_refused() {
    for (case, line, status, words) in [
        (
            "command-line-106",
            "--pc-sampling-unit time",
            1,
            "implicitly disabled",
        ),
        (
            "command-line-108",
            "--pc-sampling-beta-enabled --pc-sampling-unit time",
            1,
            "All three",
        ),
        (
            "command-line-109",
            "--pc-sampling-beta-enabled --pc-sampling-unit time --pc-sampling-method host_trap --pc-sampling-interval -5",
            1,
            "positive number",
        ),
        (
            "command-line-110",
            "--pc-sampling-beta-enabled --pc-sampling-unit time --pc-sampling-method host_trap --pc-sampling-interval 0",
            1,
            "All three",
        ),
        (
            "command-line-110",
            "--pc-sampling-beta-enabled --pc-sampling-interval=0 --kernel-trace",
            1,
            "--pc-sampling-interval is 0",
        ),
        (
            "command-line-111",
            "--pc-sampling-interval x",
            2,
            "--pc-sampling-interval",
        ),
    ] {
        let (got, message) = refused(line);
        assert_eq!(got, status, "{case}: {message}");
        assert!(message.contains(words), "{case}: {message}");
    }
    let (_, message) = refused("--pc-sampling-beta-enabled --pc-sampling-unit time");
    assert!(
        message.contains("--pc-sampling-method and --pc-sampling-interval are missing"),
        "{message}"
    );
}

/// Checks command-line-107.
#[test]
fn beta_variable_allows_sampling_whatever_its_value() {
    let line = "--pc-sampling-unit time --pc-sampling-method host_trap --pc-sampling-interval 7";
    for value in ["0", "", "1"] {
        let found = sampling(line, &[("ROCPROFILER_PC_SAMPLING_BETA_ENABLED", value)]);
        assert_eq!(found.map(|found| found.interval), Some(7), "{value:?}");
    }
}

/// Checks command-line-112.
#[test]
fn complete_sampling_options_reach_the_collector() {
    // The variable of the SDK is set where the target is launched.
    let wanted = SamplingOptions {
        method: SamplingMethod::Stochastic,
        unit: SamplingUnit::Cycles,
        interval: 1 << 20,
    };
    let line = "--pc-sampling-beta-enabled --pc-sampling-unit CYCLES --pc-sampling-method Stochastic --pc-sampling-interval 1048576";
    assert_eq!(sampling(line, &[]), Some(wanted));
    let inherited = [
        ("ROCPROFILER_PC_SAMPLING_BETA_ENABLED", "1"),
        ("ROCPROF_PC_SAMPLING_UNIT", "cycles"),
        ("ROCPROF_PC_SAMPLING_METHOD", "stochastic"),
        ("ROCPROF_PC_SAMPLING_INTERVAL", "1048576"),
    ];
    assert_eq!(sampling("", &inherited), Some(wanted));
    // The switch alone requests nothing.
    assert_eq!(sampling("-s --pc-sampling-beta-enabled", &[]), None);
    let plan = plan_with(&format!("{ALL} -- ./app"), &[]);
    assert!(plan.warnings.is_empty(), "{:?}", plan.warnings);
    let text = plan.passes[0].options.collector.to_text();
    assert!(text.contains("pc_sampling=host_trap:time:1"), "{text}");
}

/// Checks command-line-113.
#[test]
fn unknown_sampling_words_are_refused() {
    // Input files are tested with the keys of jobs.
    let (status, message) = refused(&ALL.replace("time", "bogus"));
    assert_eq!(status, 2, "{message}");
    assert!(message.contains("bogus"), "{message}");
}

#[test]
fn counters_and_samples_in_one_run_are_refused() {
    let (status, message) = refused(&format!("{ALL} --pmc SQ_WAVES"));
    assert_eq!(status, 1);
    for words in [
        "exclude each other",
        "status 12",
        "--pmc",
        "--pc-sampling-method",
    ] {
        assert!(message.contains(words), "{message}");
    }
    // The original counts and samples on contexts of their own.
    assert!(sampling(&format!("--compat rocprofv3 {ALL} --pmc SQ_WAVES"), &[]).is_some());
}
