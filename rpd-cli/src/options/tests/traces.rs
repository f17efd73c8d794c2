//! What is traced and summed up: command-line-47 to command-line-75.

use rpd_core::stats::Unit;

use super::{Got, options, plan_with, run_with, traced};

#[test]
fn aggregates_include_members_that_are_not_switched_off() {
    const RUNTIME: [&str; 18] = [
        "cuda",
        "hip_event",
        "hip_graph",
        "hip_runtime",
        "hipfile",
        "kernel",
        "kfd_dropped_events",
        "kfd_page_mapping",
        "kfd_page_migration",
        "kfd_queue",
        "marker",
        "memory_allocation",
        "memory_copy",
        "rccl",
        "rocdecode",
        "rocjpeg",
        "rocshmem",
        "scratch_memory",
    ];
    const DRIVER: [&str; 4] = [
        "kfd_dropped_events",
        "kfd_page_mapping",
        "kfd_page_migration",
        "kfd_queue",
    ];
    let runtime: Vec<&str> = RUNTIME.to_vec();
    let with = |base: &[&str], more: &[&str], less: &[&str]| -> Vec<String> {
        let mut all: Vec<String> = base
            .iter()
            .chain(more)
            .filter(|name| !less.contains(name))
            .map(|name| (*name).to_owned())
            .collect();
        all.sort();
        all
    };
    const HSA: [&str; 4] = ["hsa_amd", "hsa_core", "hsa_finalizer", "hsa_image"];
    for (case, line, expected) in [
        (
            "command-line-47",
            "--sys-trace no --hsa-trace=0 --hsa-core-trace=1 --hip-compiler-trace False --hip-runtime-trace",
            with(
                &[],
                &["hip_event", "hip_graph", "hip_runtime", "hsa_core"],
                &[],
            ),
        ),
        (
            "command-line-48",
            "--sys-trace --hsa-trace=False",
            with(&runtime, &["hip_compiler", "cuda_driver"], &[]),
        ),
        (
            "unnumbered",
            "-s",
            with(
                &runtime,
                &[
                    "cuda_driver",
                    "hip_compiler",
                    "hsa_amd",
                    "hsa_core",
                    "hsa_finalizer",
                    "hsa_image",
                ],
                &[],
            ),
        ),
        (
            "command-line-51",
            "--runtime-trace --scratch-memory-trace=False",
            with(&runtime, &[], &["scratch_memory"]),
        ),
        (
            "command-line-52",
            "--runtime-trace --hip-trace=no",
            with(&runtime, &[], &[]),
        ),
        (
            "unnumbered",
            "--runtime-trace --hip-runtime-trace=no",
            with(&runtime, &[], &["hip_event", "hip_graph", "hip_runtime"]),
        ),
        (
            "command-line-53",
            "--sys-trace --hip-trace=no --hip-runtime-trace",
            with(&[&runtime[..], &["cuda_driver"]].concat(), &HSA, &[]),
        ),
        (
            "command-line-54",
            "--sys-trace --runtime-trace --hip-compiler-trace=no",
            with(&[&runtime[..], &["cuda_driver"]].concat(), &HSA, &[]),
        ),
        (
            "command-line-55",
            "--sys-trace=no --hip-trace",
            with(
                &[],
                &["hip_compiler", "hip_event", "hip_graph", "hip_runtime"],
                &[],
            ),
        ),
        (
            "command-line-56, sdk-newer-23",
            "--hip-trace --hip-graph-trace=no",
            with(&[], &["hip_compiler", "hip_event", "hip_runtime"], &[]),
        ),
        (
            "unnumbered",
            "--hsa-trace --hsa-amd-trace=0",
            with(&HSA, &[], &["hsa_amd"]),
        ),
        (
            "unnumbered",
            "--hsa-image-trace --hsa-finalizer-trace",
            with(&[], &["hsa_image", "hsa_finalizer"], &[]),
        ),
        (
            "command-line-57",
            "--sys-trace --kfd-trace=no --hsa-trace=no",
            with(&runtime, &["hip_compiler", "cuda_driver"], &DRIVER),
        ),
        (
            "unnumbered",
            "--kfd-page-mapping-trace --kfd-page-migration-trace --kfd-dropped-events-trace --rocshmem-trace --hipfile-trace",
            with(&DRIVER, &["rocshmem", "hipfile"], &["kfd_queue"]),
        ),
        (
            "command-line-58",
            "--kfd-trace --kfd-queue-trace=0",
            with(&DRIVER, &[], &["kfd_queue"]),
        ),
    ] {
        let mut got = traced(&options(&format!("{line} -- a")));
        got.sort();
        assert_eq!(got, expected, "{case}: {line}");
    }
    // The version of the original that is followed has no traces of graphs and events, unless they are given.
    let compat = |line: &str| {
        let mut got = traced(&options(&format!("--compat rocprofv3 {line} -- a")));
        got.sort();
        got
    };
    assert_eq!(compat("--hip-trace"), ["hip_compiler", "hip_runtime"]);
    assert_eq!(
        compat("--hip-runtime-trace --hip-graph-trace"),
        ["hip_graph", "hip_runtime"]
    );
    assert!(
        !compat("--sys-trace")
            .iter()
            .any(|trace| trace.starts_with("kfd"))
    );
    assert_eq!(compat("--kfd-trace"), DRIVER);
    assert_eq!(compat("--kfd-queue-trace"), ["kfd_queue"]);
    let warned = |line: &str| plan_with(&format!("{line} -- a"), &[]).warnings;
    let warnings = warned("--kfd-trace -f json");
    assert!(
        warnings[0].starts_with("--kfd-trace: json has none of its records"),
        "{warnings:?}"
    );
    assert!(warned("--kfd-trace -f csv").is_empty());
    let kokkos = options("--kokkos-trace -- a");
    assert!(
        kokkos.collector.kokkos && kokkos.kernel_names.rename,
        "command-line-59"
    );
    assert_eq!(traced(&kokkos), ["marker"], "command-line-59");
    let plan = plan_with(
        "--kokkos-trace --kernel-rename=no --marker-trace=no -- a",
        &[],
    );
    assert!(
        plan.passes[0].options.collector.kokkos && !plan.passes[0].options.kernel_names.rename,
        "command-line-60"
    );
    assert!(
        plan.warnings[0].contains("No tracing options were enabled"),
        "command-line-60"
    );
}

#[test]
fn run_without_traces_gives_a_warning_or_an_error() {
    let plan = plan_with("--echo -- true", &[]);
    assert!(
        plan.warnings[0].contains("No tracing options were enabled"),
        "command-line-63"
    );
    match run_with("--echo -- true", &[("ROCPROFILER_CI", "1")]) {
        Got::Failure(failure) => assert!(
            failure.message.contains("ROCPROFILER_CI=1"),
            "command-line-64"
        ),
        _ => panic!("command-line-64"),
    }
    // `--group-by-queue` traces nothing, though in the original it counts as a trace; statistics need a trace.
    let plan = plan_with("--group-by-queue --echo -- true", &[]);
    assert_eq!(plan.warnings.len(), 1, "command-line-66");
    assert!(
        plan.passes[0].options.group_by_queue && !plan.passes[0].options.collector.streams,
        "command-line-66"
    );
}

#[test]
fn summary_options_become_tables() {
    let summary = |line: &str| options(line).summary;
    assert_eq!(summary("-s -- a").output, "stderr");
    let one = summary("--summary --hip-trace -- a");
    assert!(one.overall && !one.per_domain, "command-line-72");
    assert_eq!(
        (one.output.as_str(), one.unit),
        ("stderr", Unit::Nsec),
        "command-line-72"
    );
    let output = |line: &str| summary(line).output;
    assert_eq!(
        output("-s --summary --summary-output-file StdOut -- a"),
        "stdout",
        "command-line-73"
    );
    assert_eq!(
        output("-s -D --summary-output-file StdOut -- a"),
        "StdOut",
        "command-line-74"
    );
    let groups = ["KERNEL_DISPATCH|HIP_API", ".*_API"];
    assert_eq!(
        summary("-s --summary-groups KERNEL_DISPATCH|HIP_API .*_API -- a").groups,
        groups,
        "command-line-75"
    );
    let inherited = [
        ("ROCPROF_STATS_SUMMARY", "1"),
        ("ROCPROF_STATS_SUMMARY_PER_DOMAIN", "true"),
        (
            "ROCPROF_STATS_SUMMARY_GROUPS",
            "KERNEL_DISPATCH|HIP_API##@@##.*_API",
        ),
        ("ROCPROF_STATS_SUMMARY_OUTPUT", "x"),
        ("ROCPROF_STATS_SUMMARY_UNITS", "msec"),
    ];
    let all = plan_with("-s -- a", &inherited)
        .passes
        .remove(0)
        .options
        .summary;
    assert!(all.overall && all.per_domain);
    assert_eq!(all.groups, groups);
    assert_eq!((all.output.as_str(), all.unit), ("x", Unit::Msec));
    assert!(plan_with("-s -- a", &inherited).warnings.is_empty());
    let nothing = plan_with("-s --summary-groups KERNEL .*_COPY -- a", &[]).warnings;
    assert_eq!(
        nothing,
        [
            "--summary-groups: no domain has a name that 'KERNEL' matches as a whole, so it has no table; domains are HSA_API, HIP_API, \
             MARKER_API, KERNEL_DISPATCH, MEMORY_COPY, SCRATCH_MEMORY, COUNTER_COLLECTION, RCCL_API, MEMORY_ALLOCATION, \
             ROCDECODE_API, ROCJPEG_API, CUDA_API, CUDA_DRIVER_API, ROCSHMEM_API, HIPFILE_API, OMPT, KFD"
        ]
    );
    let idle = plan_with("-s -u sec -- a", &[]).warnings;
    assert!(
        idle[0].starts_with("--summary-units: no effect"),
        "{idle:?}"
    );
    assert!(plan_with("-s --stats -u sec -- a", &[]).warnings.is_empty());
    let wide = plan_with("-s --wide -- a", &[]).warnings;
    assert!(wide[0].starts_with("--wide: no effect"), "{wide:?}");
    assert!(options("-s --stats --wide -- a").summary.wide);
    match run_with("-s -- a", &[("ROCPROF_STATS_SUMMARY_GROUPS", "(")]) {
        Got::Failure(failure) => {
            assert!(failure.message.starts_with("ROCPROF_STATS_SUMMARY_GROUPS"))
        }
        _ => panic!("a bad expression is refused"),
    }
}

#[test]
fn the_provider_follows_from_what_is_requested() {
    use rpd_core::options::ProviderChoice;
    for (line, expected) in [
        ("--hip-trace -- a", ProviderChoice::Sdk),
        ("--hip-trace --provider direct -- a", ProviderChoice::Direct),
        ("--hip-trace --provider auto -- a", ProviderChoice::Auto),
        ("--sys-trace --provider auto -- a", ProviderChoice::Sdk),
        (
            "--sys-trace --scratch-memory-trace=no --provider auto -- a",
            ProviderChoice::Auto,
        ),
        ("--pmc SQ_WAVES --provider auto -- a", ProviderChoice::Sdk),
    ] {
        assert_eq!(options(line).collector.provider, expected, "{line}");
    }
}

#[test]
fn the_direct_provider_refuses_what_only_the_sdk_has() {
    for (line, option, what) in [
        ("--pmc SQ_WAVES --provider direct -- a", "pmc", "counters"),
        (
            "--kernel-trace --scratch-memory-trace --provider direct -- a",
            "scratch-memory-trace",
            "scratch memory",
        ),
        (
            "--sys-trace --scratch-memory-trace --provider direct -- a",
            "scratch-memory-trace",
            "scratch memory",
        ),
    ] {
        let Got::Failure(error) = run_with(line, &[]) else {
            panic!("{line} is accepted");
        };
        let expected = format!(
            "--provider: `direct` has no {what}, which --{option} asks for: leave that out, or use --provider sdk"
        );
        assert_eq!(error.to_string(), expected, "{line}");
    }
}

#[test]
fn aggregates_leave_out_what_the_direct_provider_lacks_and_say_so() {
    for aggregate in ["--sys-trace", "--runtime-trace"] {
        let plan = plan_with(&format!("{aggregate} --provider direct -- a"), &[]);
        assert!(!plan.passes[0].options.collector.traces.scratch_memory);
        assert!(plan.passes[0].options.collector.traces.kernel);
        assert_eq!(
            plan.warnings,
            [
                "--provider: `direct` has no scratch memory, which is left out (--provider sdk has it)"
            ]
        );
    }
}

/// Sampling is allowed by a variable as well as by its switch.
#[test]
fn the_provider_of_samples_is_the_sdk_however_they_are_allowed() {
    use rpd_core::options::ProviderChoice;
    let line = "--kernel-trace --pc-sampling-unit time --pc-sampling-method host_trap --pc-sampling-interval 1";
    let allowed = [("ROCPROFILER_PC_SAMPLING_BETA_ENABLED", "1")];
    let plan = plan_with(&format!("{line} --provider auto -- a"), &allowed);
    let collector = &plan.passes[0].options.collector;
    assert_eq!(collector.provider, ProviderChoice::Sdk);
    for (option, expected) in [
        ("--provider direct", "`direct` has no PC sampling"),
        ("--light", "--pc-sampling-method: a light recording has"),
    ] {
        let Got::Failure(error) = run_with(&format!("{line} {option} -- a"), &allowed) else {
            panic!("{option} is accepted");
        };
        let message = error.to_string();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn light_recordings_are_of_kernels_and_copies() {
    use rpd_core::options::ProviderChoice;
    let light = options("--light -- a");
    let collector = &light.collector;
    assert_eq!(traced(&light), ["kernel", "memory_copy"]);
    assert_eq!(collector.provider, ProviderChoice::Direct);
    assert_eq!(collector.recent_bytes, Some(64 << 20));
    assert!(!collector.streams && light.group_by_queue);
    let kernels = options("--light --memory-copy-trace=no --light-keep 3G --provider auto -- a");
    assert_eq!(traced(&kernels), ["kernel"]);
    assert_eq!(kernels.collector.recent_bytes, Some(3 << 30));
    assert_eq!(options("--kernel-trace -- a").collector.recent_bytes, None);
    assert_eq!(
        plan_with("--light-keep 1M --kernel-trace -- a", &[]).warnings,
        ["--light-keep: no effect without --light"]
    );
}

#[test]
fn light_recordings_refuse_what_they_do_not_have() {
    const ONLY: &str =
        "a light recording has kernel dispatches and copies only: leave out this or --light";
    for (line, environment, expected) in [
        ("--light --sys-trace", "", format!("--sys-trace: {ONLY}")),
        ("--light --hip-trace", "", format!("--hip-trace: {ONLY}")),
        ("--light --kernel-rename", "", format!("--kernel-rename: {ONLY}")),
        ("--light --pmc SQ_WAVES", "", format!("--pmc: {ONLY}")),
        ("--light --stacks native", "", format!("--stacks: {ONLY}")),
        ("--light --att", "", format!("--advanced-thread-trace: {ONLY}")),
        (
            "--light",
            "ROCPROF_MARKER_API_TRACE",
            format!("ROCPROF_MARKER_API_TRACE (set in the environment): {ONLY}"),
        ),
        (
            "--light --provider sdk",
            "",
            "--provider: `sdk` has the cost that --light avoids: leave it out, or record with --kernel-trace \
             --memory-copy-trace"
                .to_owned(),
        ),
        (
            "--light --kernel-trace=no --memory-copy-trace=no",
            "",
            "--light: both --kernel-trace and --memory-copy-trace are off: leave one of them on".to_owned(),
        ),
        (
            "--light --light-keep 1K",
            "",
            "--light-keep: 1K: at least 256K is needed".to_owned(),
        ),
        (
            "--light --light-keep many",
            "",
            "--light-keep: many: expected a number of bytes such as 500M or 2G".to_owned(),
        ),
    ] {
        let variables: &[(&str, &str)] = if environment.is_empty() {
            &[]
        } else {
            &[(environment, "1")]
        };
        let Got::Failure(error) = run_with(&format!("{line} -- a"), variables) else {
            panic!("{line} is accepted");
        };
        assert_eq!(error.to_string(), expected, "{line}");
    }
}
