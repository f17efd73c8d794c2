//! Thread traces: command-line-114 to command-line-130, and the limits of options.

use rpd_core::options::{IterationRange, ThreadTraceOptions};

use super::{Got, plan_with, run_with};

fn refused(line: &str) -> (u8, String) {
    match run_with(&format!("{line} -- ./app"), &[]) {
        Got::Failure(failure) => (failure.status, failure.to_string()),
        _ => panic!("{line} is accepted"),
    }
}

fn traced(line: &str, environment: &[(&str, &str)]) -> ThreadTraceOptions {
    let plan = plan_with(&format!("--att {line} -- ./app"), environment);
    let traced = plan.passes[0].options.collector.thread_trace.clone();
    traced.expect("a thread trace")
}

fn counters(options: &ThreadTraceOptions) -> Vec<String> {
    let counters = options.counters.iter();
    counters
        .map(|counter| format!("{}:{:#x}", counter.name, counter.simds))
        .collect()
}

/// Checks thread-trace-7, thread-trace-8, thread-trace-9, thread-trace-10, thread-trace-11, thread-trace-13,
/// thread-trace-14, thread-trace-15 and thread-trace-16.
#[test]
fn malformed_thread_trace_options_are_refused() {
    for (case, line, words) in [
        (
            "command-line-118",
            "--att --att-target-cu 0X1",
            "neither a decimal number",
        ),
        (
            "command-line-118",
            "--att-target-cu 0X1",
            "neither a decimal number",
        ),
        (
            "thread-trace-7",
            "--att --att-target-cu 16",
            "16 is not in 0 to 15",
        ),
        (
            "thread-trace-8",
            "--att --att-simd-select 0x10",
            "0x10 is not in 0 to 15",
        ),
        (
            "thread-trace-9",
            "--att --att-shader-engine-mask 0",
            "0 is not in 1 to 4294967295",
        ),
        (
            "thread-trace-10",
            "--att --att-buffer-size 0xFFFFF",
            "0xFFFFF is not in 1048576 to 2147483648",
        ),
        (
            "thread-trace-11",
            "--att --att-buffer-size 0x100000 --att-shader-engine-mask 0xffff",
            "leave 53248 for each of 16 shader engines",
        ),
        (
            "thread-trace-13",
            "--att --att-perfcounters SQ_WAVES",
            "add --att-perfcounter-ctrl",
        ),
        (
            "thread-trace-13",
            "--att --att-perfcounter-ctrl 3",
            "add --att-perfcounters",
        ),
        (
            "thread-trace-16",
            "--att --att-perfcounter-ctrl 3 --att-perfcounters A,B,C,D,E,F,G,H,I",
            "9 counters are too many: a trace has room for 8",
        ),
        (
            "thread-trace-16",
            "--att --att-perfcounter-ctrl 3 --att-perfcounters A:0x1f",
            "mask of SIMDs",
        ),
        (
            "unnumbered",
            "--att --att-perfcounter-ctrl 3 --att-perfcounters SQ_WAVES,TCC_HIT",
            "TCC_HIT cannot be in a trace",
        ),
        (
            "unnumbered",
            "--att --att-perfcounter-ctrl 33 --att-perfcounters A",
            "33 is not in 0 to 32",
        ),
        (
            "unnumbered",
            "--att --att-activity 17",
            "17 is not in 1 to 16",
        ),
        (
            "unnumbered",
            "--att --att-gpu-index 0,x",
            "'x' is not the number of a GPU",
        ),
        (
            "command-line-121",
            "--att --att-activity 8 --att-perfcounter-ctrl 8",
            "leave out --att-perfcounter-ctrl",
        ),
        (
            "command-line-122",
            "--att --att-activity 8 --pmc SQ_WAVES",
            "cannot be enabled with PMC",
        ),
        (
            "command-line-123",
            "--att --att-perfcounters X --pmc A",
            "cannot be enabled with PMC",
        ),
        (
            "command-line-130",
            "--selected-regions --att --att-consecutive-kernels 2",
            "mutually exclusive",
        ),
        (
            "unnumbered",
            "--att-no-intercept --att-consecutive-kernels 2",
            "mutually exclusive",
        ),
        (
            "unnumbered",
            "--att --att-resource-mode code-object",
            "leave the option out, or give hsa",
        ),
        (
            "command-line-114",
            "--att --att-library-path /nowhere",
            "library path not found",
        ),
    ] {
        let (status, message) = refused(line);
        assert_eq!(status, 1, "{case}: {line}: {message}");
        assert!(message.contains(words), "{case}: {line}: {message}");
        assert!(!message.contains('\n'), "{case}: {message}");
    }
}

/// Checks thread-trace-7, thread-trace-10, thread-trace-14 and thread-trace-16.
#[test]
fn thread_trace_options_reach_the_collector() {
    let usual = traced("", &[]);
    assert_eq!(usual, ThreadTraceOptions::default());
    assert_eq!(
        (usual.target_cu, usual.simds, usual.engines, usual.buffer),
        (1, 0xf, 1, 0x1800_0000)
    );
    // Hexadecimal and decimal numbers are the same: thread-trace-10 and command-line-117.
    let hex = "--att-buffer-size 0x6000000 --att-simd-select 0x3 --att-shader-engine-mask 0x11 --att-target-cu 0";
    let decimal = "--att-buffer-size 100663296 --att-simd-select 3 --att-shader-engine-mask 17 --att-target-cu 0";
    let options = traced(hex, &[]);
    assert_eq!(options, traced(decimal, &[]));
    assert_eq!(
        (
            options.target_cu,
            options.simds,
            options.engines,
            options.buffer
        ),
        (0, 3, 17, 100_663_296)
    );
    assert_eq!(
        traced("--att-target-cu 15", &[]).target_cu,
        15,
        "thread-trace-7"
    );
    // Counters in small letters: thread-trace-16 and command-line-119.
    let options = traced(
        "--att-perfcounters sq_waves:0x3,SQ_WAVES:3,sq_insts_valu --att-perfcounter-ctrl 3",
        &[],
    );
    assert_eq!(counters(&options), ["SQ_WAVES:0x3", "SQ_INSTS_VALU:0xf"]);
    assert_eq!(options.counter_period, 3);
    // The eight fixed counters: command-line-120.
    let options = traced("--att-activity 8", &[]);
    assert_eq!((options.counters.len(), options.counter_period), (8, 8));
    assert_eq!(counters(&options)[0], "SQ_BUSY_CU_CYCLES:0xf");
    // A list of GPUs, and counters of dispatches: thread-trace-12, thread-trace-14 and command-line-124.
    assert_eq!(traced("--att-gpu-index 0,9999", &[]).gpus, [0, 9999]);
    traced("--pmc SQ_WAVES", &[]);
    assert_eq!(traced("--att-consecutive-kernels 3", &[]).consecutive, 3);
    let variables = [
        ("ROCPROF_ATT_PARAM_TARGET_CU", "3"),
        ("ROCPROF_ATT_PARAM_SERIALIZE_ALL", "1"),
        ("ROCPROF_ATT_PARAM_GPU_INDEX", "1,2"),
    ];
    let options = traced("", &variables);
    assert_eq!(
        (options.target_cu, options.serialize_all, options.gpus),
        (3, true, vec![1, 2])
    );
}

/// Checks command-line-126 to command-line-128 and command-line-132.
#[test]
fn traces_of_the_whole_run_imply_thread_traces() {
    let trace = |line: &str| {
        let plan = plan_with(&format!("{line} -- ./app"), &[]);
        let traced = plan.passes[0].options.collector.thread_trace.clone();
        (traced.expect("a thread trace"), plan.warnings)
    };
    for line in ["--att-no-intercept", "--att=no --att-no-intercept"] {
        let (traced, warnings) = trace(line);
        assert!(traced.no_intercept && warnings.is_empty(), "{warnings:?}");
    }
    for (line, warning) in [
        (
            "--att-no-intercept --kernel-include-regex a",
            "--kernel-include-regex: no effect, since --att-no-intercept traces all kernels",
        ),
        (
            "--selected-regions --att-no-intercept",
            "--att-no-intercept: no effect, since traces of regions are of whole GPUs in any case",
        ),
    ] {
        assert_eq!(trace(line).1, [warning], "{line}");
    }
    assert!(!traced("--att-resource-mode hsa", &[]).no_intercept);
    let variables = [
        ("ROCPROF_ATT_PARAM_RESOURCE_MODE", "default"),
        ("ROCPROF_ATT_PARAM_TARGET_ONLY", "1"),
    ];
    assert!(traced("--att-activity 8", &variables).target_counters);
}

#[test]
fn thread_trace_options_without_att_give_a_warning() {
    let plan = plan_with("--att-target-cu 3 --hip-trace -- ./app", &[]);
    assert_eq!(plan.passes[0].options.collector.thread_trace, None);
    assert!(
        plan.warnings
            .iter()
            .any(|warning| warning == "--att-target-cu: no effect without --att"),
        "{:?}",
        plan.warnings
    );
}

/// Checks thread-trace-2 to thread-trace-4, command-line-115 and command-line-116.
#[test]
fn decoder_library_is_found_in_the_given_directory() {
    let good = tempfile::tempdir().expect("a directory");
    let bad = tempfile::tempdir().expect("a directory");
    let below = good.path().join("lib");
    std::fs::create_dir(&below).expect("made");
    let library = below.join("librocprof-trace-decoder.so.1");
    std::fs::write(&library, "").expect("written");
    let (good, bad) = (good.path().display(), bad.path().display());
    let found = |line: &str, environment: &[(&str, &str)]| {
        let plan = plan_with(&format!("--att {line} -- ./app"), environment);
        plan.passes[0].options.thread_trace_library.clone()
    };
    assert_eq!(found("", &[]), None);
    let line = format!("--att-library-path {bad} {good}");
    assert_eq!(found(&line, &[]).as_ref(), Some(&library));
    let variable = format!("{bad}:{good}");
    let variables = [("ROCPROF_ATT_LIBRARY_PATH", variable.as_str())];
    assert_eq!(found("", &variables).as_ref(), Some(&library));
    // The option hides the variable.
    match run_with(
        &format!("--att --att-library-path {bad} -- ./app"),
        &variables,
    ) {
        Got::Failure(failure) => {
            assert_eq!(failure.status, 1);
            let message = failure.to_string();
            assert!(message.contains(&bad.to_string()), "{message}");
        }
        _ => panic!("accepted"),
    }
}

#[test]
fn thread_trace_options_of_later_providers_reach_the_collector() {
    let line = "--att-perfcounters SQ_WAVES --att-perfcounter-ctrl 3";
    let without = traced(line, &[]);
    assert!(!without.target_counters && !without.no_detail);
    let options = "--att-perfcounter-target-only --att-no-detail";
    let with = traced(&format!("{line} {options}"), &[]);
    assert!(with.target_counters && with.no_detail);
}

#[test]
fn compat_mode_counts_the_first_dispatch_beside_thread_traces() {
    let counted = |line: &str| {
        let plan = plan_with(&format!("--pmc SQ_WAVES {line} -- ./app"), &[]);
        let ranges = &plan.passes[0].options.collector.counters.iterations;
        let text = |range: &IterationRange| format!("{}-{}", range.first, range.last);
        ranges.iter().map(text).collect::<Vec<_>>()
    };
    assert!(counted("--att").is_empty());
    assert!(counted("--compat rocprofv3").is_empty());
    assert_eq!(counted("--compat rocprofv3 --att"), ["1-1"]);
    let chosen = "--compat rocprofv3 --att --kernel-iteration-range 2-3";
    assert_eq!(counted(chosen), ["2-3"]);
}
