//! Counters and filters on the command line, and options of the original that are not in rpd: command-line-96 to
//! command-line-150.

use rpd_core::options::{CollectionPeriod, IterationRange};

use super::{Got, counted, layout, options, plan_with, run_with};

#[test]
fn pmc_options_become_groups_of_sorted_counters() {
    for (case, line, expected) in [
        (
            "command-line-96",
            "--pmc SQ_WAVES GRBM_COUNT -- a",
            "GRBM_COUNT SQ_WAVES",
        ),
        (
            "command-line-97",
            "--pmc SQ_WAVES,GRBM_COUNT -- a",
            "GRBM_COUNT SQ_WAVES",
        ),
        (
            "command-line-98",
            "--pmc 'SQ_WAVES GRBM_COUNT' -- a",
            "GRBM_COUNT SQ_WAVES",
        ),
        ("command-line-102", "--pmc --hip-trace -- a", ""),
        (
            "command-line-104",
            "--pmc SQ_WAVES SQ_CYCLES:device=16384 -- a",
            "SQ_CYCLES:device=16384 SQ_WAVES",
        ),
        ("command-line-105", "--pmc B A A '# C' -- a", "A B"),
    ] {
        assert_eq!(counted(&options(line)), expected, "{case}: {line}");
        assert_eq!(plan_with(line, &[]).warnings, [""; 0], "{case}: {line}");
    }
    // The first version of the original counts the last group alone: command-line-100.
    for (case, line, expected) in [
        (
            "command-line-99",
            "--pmc SQ_WAVES --pmc GRBM_COUNT -- a",
            ["SQ_WAVES", "GRBM_COUNT"],
        ),
        (
            "command-line-101",
            "--pmc 'A B' --pmc 'C D' -- a",
            ["A B", "C D"],
        ),
    ] {
        let plan = plan_with(line, &[]);
        let groups: Vec<String> = plan
            .passes
            .iter()
            .map(|pass| counted(&pass.options))
            .collect();
        assert_eq!(groups, expected, "{case}: {line}");
    }
}

#[test]
fn counter_options_refuse_malformed_values() {
    for (case, line, fragment) in [
        (
            "command-line-103",
            "--pmc A --pmc -- true",
            "Empty counter group in --pmc flag 2",
        ),
        (
            "command-line-103",
            "--pmc , --pmc A -- true",
            "Empty counter group in --pmc flag 1",
        ),
        ("unnumbered", "--pmc A:device=x -- true", "'A:device=x'"),
        ("unnumbered", "--pmc TCC_HIT[0] -- true", "'TCC_HIT[0]'"),
        (
            "command-line-131",
            "--selected-regions -P 1:1:1 -- true",
            "mutually exclusive",
        ),
        (
            "command-line-131",
            "--selected-regions -P 1:1:1 -- true",
            "--collection-period",
        ),
        (
            "command-line-277",
            "--pmc A --kernel-iteration-range a -- true",
            "'a'",
        ),
        (
            "command-line-277",
            "--pmc A --kernel-iteration-range 1-2-3 -- true",
            "'1-2-3'",
        ),
        (
            "command-line-D19",
            "--pmc A --kernel-include-regex '(' -- true",
            "--kernel-include-regex",
        ),
        (
            "command-line-D19",
            "--pmc A --kernel-exclude-regex 'a(?=b)' -- true",
            "--kernel-exclude-regex",
        ),
        (
            "command-line-D1",
            "-s -P 1:1 -- true",
            "DELAY:DURATION:REPEAT",
        ),
        ("command-line-D1", "-s -P 1:x:1 -- true", "'x'"),
        (
            "unnumbered",
            "--pmc A -E missing.yaml -- true",
            "missing.yaml: No such file",
        ),
    ] {
        match run_with(line, &[]) {
            Got::Failure(failure) => {
                assert_eq!(failure.status, 1, "{case}: {line}");
                assert!(failure.message.contains(fragment), "{case}: {failure}");
                assert!(!failure.message.contains('\n'), "{case}: {failure}");
            }
            _ => panic!("{case}: {line} is accepted"),
        }
    }
    assert!(
        plan_with("--selected-regions=no -P 1:1:1 -s -- a", &[])
            .warnings
            .is_empty(),
        "what is switched off excludes nothing"
    );
}

/// Checks those of command-line-133 to command-line-150 that end with a status: features that rpd does not have, or that are not
/// allowed as they are given, are refused by name with that status.
#[test]
fn options_without_support_are_refused_with_the_status_of_their_case() {
    for (case, line, status) in [
        ("command-line-133", "--spm SQ_WAVES -- a", 1),
        (
            "command-line-134",
            "--spm-beta-enabled --spm A --pmc B -- a",
            1,
        ),
        (
            "command-line-135",
            "--spm-beta-enabled --spm-sample-interval 1200 -- a",
            1,
        ),
        ("command-line-137", "--replay-mode kernel --pmc A -- a", 1),
        (
            "command-line-138",
            "--replay-mode kernel --kernel-replay-beta-enabled -- a",
            1,
        ),
        ("command-line-145", "--replay-mode kernel --spm A -- a", 1),
        (
            "command-line-146",
            "--replay-mode kernel --att --pmc A -- a",
            1,
        ),
    ] {
        match run_with(line, &[]) {
            Got::Failure(failure) => assert_eq!(failure.status, status, "{case}: {failure}"),
            _ => panic!("{case}: {line} is accepted"),
        }
    }
}

#[test]
fn kernel_filters_reach_the_collector() {
    let filtered = options(
        "--pmc A -M --kernel-include-regex '.*_kernel' --kernel-exclude-regex multiply \
         --kernel-iteration-range [1-2] [3-4] -- a",
    );
    let counters = &filtered.collector.counters;
    assert!(counters.include && counters.exclude && counters.mangled && !counters.truncate);
    assert_eq!(filtered.kernel_include, ".*_kernel");
    assert_eq!(filtered.kernel_exclude, "multiply");
    let range = |first, last| IterationRange { first, last };
    assert_eq!(
        counters.iterations,
        [range(1, 2), range(3, 4)],
        "command-line-178"
    );
    let plain = options("--pmc A --kernel-include-regex '' -- a");
    assert!(!plain.collector.counters.include, "an empty one is none");

    let warned = |line: &str| plan_with(line, &[]).warnings.join("\n");
    assert!(
        warned("-s --kernel-include-regex x -- a").contains("nothing is counted"),
        "command-line-279"
    );
    assert!(
        warned("--pmc A --kernel-iteration-range 5-3 -- a").contains("5-3 is empty"),
        "command-line-276"
    );
    assert!(warned("-s --collection-period-unit msec -- a").contains("no effect"));
    assert!(warned("-s -P 1:1:0 1:1:1 -- a").contains("endless"));
    assert_eq!(warned("-s --kernel-exclude-regex '' -- a"), "");
}

#[test]
fn collection_periods_and_regions_reach_the_collector() {
    let recorded = |line: &str| options(line).collector;
    let second = 1_000_000_000;
    let period = |delay, duration, repeat| CollectionPeriod {
        delay,
        duration,
        repeat,
    };
    assert_eq!(
        recorded("-s --collection-period 0:1:1 1:1:2 0.5:0.5:0 -- a").periods,
        [
            period(0, second, 1),
            period(second, second, 2),
            period(second / 2, second / 2, 0)
        ],
        "command-line-283; command-line-D11: repeat 0 is endless"
    );
    assert_eq!(
        recorded("-s -P 1:2:3 --collection-period-unit msec -- a").periods,
        [period(1_000_000, 2_000_000, 3)]
    );
    let regions = recorded("--pmc A --selected-regions -- a");
    assert!(regions.selected_regions && !regions.selected_regions_ref_count);
    let regions = recorded("--pmc A --selected-regions-ref-count -- a");
    assert!(regions.selected_regions && regions.selected_regions_ref_count);
}

#[test]
fn extra_counters_are_read_from_a_file_or_a_variable() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let text =
        "MINE:\n  architectures:\n    gfx90a:\n      expression: 2*SQ_WAVES\n  description: mine\n";
    std::fs::write(directory.path().join("mine.yaml"), text).expect("writable");
    std::fs::write(directory.path().join("bad.yaml"), "MINE: [\n").expect("writable");
    std::fs::write(directory.path().join("empty.yaml"), " \n").expect("writable");
    let plan = |line: &str| match super::run_in(directory.path(), line, &[]) {
        Got::Plan(plan) => plan,
        _ => panic!("{line}"),
    };
    let mine = plan("--pmc A -E mine.yaml -- a");
    assert_eq!(mine.passes[0].options.extra_counters, text);
    assert!(mine.passes[0].options.collector.counters.extra);
    let empty = plan("--pmc A -E empty.yaml -- a");
    assert!(
        empty.warnings[0].contains("empty.yaml is empty"),
        "{:?}",
        empty.warnings
    );
}

#[test]
fn counters_alone_need_no_trace() {
    let warnings = plan_with("--pmc A --stats -- a", &[]).warnings;
    assert!(
        warnings.len() == 1 && warnings[0].contains("--kernel-trace"),
        "{warnings:?}"
    );
    let traced = plan_with("--pmc A --stats --kernel-trace -- a", &[]);
    assert_eq!(traced.warnings, [""; 0]);
    let nothing = plan_with("--pmc -- a", &[]).warnings;
    assert!(
        nothing[0].contains("No tracing options were enabled"),
        "{nothing:?}"
    );
    // Nothing is recorded for a list, and no program is needed.
    let list = plan_with("-L", &[]);
    assert!(list.list_avail && list.warnings.is_empty());
    assert!(plan_with("--pmc A --continue-on-error -- a", &[]).continue_on_error);
}

#[test]
fn inherited_counters_are_used_when_no_option_names_some() {
    let with = |line: &str, environment: &[(&str, &str)]| {
        plan_with(line, environment).passes.remove(0).options
    };
    let on = ("ROCPROF_COUNTER_COLLECTION", "1");
    let counters = ("ROCPROF_COUNTERS", "pmc: B,A");
    assert_eq!(counted(&with("-s -- a", &[on, counters])), "A B");
    assert_eq!(
        counted(&with("-s -- a", &[counters])),
        "",
        "the switch is missing"
    );
    assert_eq!(counted(&with("--pmc C -- a", &[on, counters])), "C");
    let groups = ("ROCPROF_COUNTER_GROUPS", "pmc: A B\npmc: C");
    let interval = ("ROCPROF_COUNTER_GROUPS_INTERVAL", "4");
    let turns = with("-s -- a", &[on, groups, interval]);
    assert_eq!(counted(&turns), "A B | C");
    assert_eq!(turns.collector.counters.group_interval, 4);
    assert_eq!(
        counted(&with("-s -- a", &[on, groups, counters])),
        "A B",
        "it has priority"
    );
    assert_eq!(
        layout(plan_with("-d /D -s -- a", &[on, counters])),
        ["/D: A B"],
        "no pass is numbered for a variable"
    );
    let filters = with(
        "--pmc A -- a",
        &[
            ("ROCPROF_KERNEL_FILTER_INCLUDE_REGEX", "x"),
            ("ROCPROF_KERNEL_FILTER_EXCLUDE_REGEX", "y"),
            ("ROCPROF_KERNEL_FILTER_RANGE", "[1-2], 4"),
            ("ROCPROF_COLLECTION_PERIOD", "1000:2000:3;5:6:0"),
            ("ROCPROF_EXTRA_COUNTERS_CONTENTS", "some: text"),
        ],
    );
    assert_eq!(
        (
            filters.kernel_include.as_str(),
            filters.kernel_exclude.as_str()
        ),
        ("x", "y")
    );
    assert_eq!(filters.collector.counters.iterations.len(), 2);
    let periods = &filters.collector.periods;
    assert_eq!(
        (periods[0].delay, periods[0].duration, periods[0].repeat),
        (1000, 2000, 3)
    );
    assert_eq!((periods[1].delay, periods[1].repeat), (5, 0));
    assert_eq!(filters.extra_counters, "some: text");
    match run_with(
        "--pmc A -- a",
        &[("ROCPROF_KERNEL_FILTER_INCLUDE_REGEX", "(")],
    ) {
        Got::Failure(failure) => {
            assert!(
                failure
                    .message
                    .starts_with("ROCPROF_KERNEL_FILTER_INCLUDE_REGEX"),
                "{failure}"
            )
        }
        _ => panic!("a pattern that is none is refused"),
    }
}
