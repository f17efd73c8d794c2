//! The conformance cases of call stacks by number, the tests that check them, and cases that no other module has.

use std::fs;
use std::process::Command;

use rpd_tests::cases::assert_tests;
use rpd_tests::run::{Rpd, lacks};

/// Where the tests are.
const NATIVE: &str = "rpd-stacks/tests/native";
const SYMBOLS: &str = "rpd-symbols/tests/symbols";
const PYTHON: &str = "rpd-stacks/tests/python.rs";
const E2E: &str = "tests/tests/e2e";

/// The tests of all cases, in their order: a file or a folder, and a function in it.
const CASES: &[&[(&str, &str)]] = &[
    // The examples of RPD's guide.
    /* 1 */
    &[(E2E, "the_first_example_of_the_guide")],
    /* 2 */ &[(E2E, "the_first_example_of_the_guide")],
    /* 3 */ &[(SYMBOLS, "the_sql_of_the_guide_runs_unchanged")],
    /* 4 */ &[(E2E, "the_first_example_of_the_guide")],
    /* 5 */ &[(E2E, "the_first_example_of_the_guide")],
    /* 6 */
    &[
        (E2E, "the_third_example_of_the_guide"),
        (SYMBOLS, "stripped_programs_have_what_is_left"),
    ],
    /* 7 */ &[(SYMBOLS, "frames_of_the_runtime_are_shown_on_request")],
    /* 8 */ &[(E2E, "the_second_example_of_the_guide")],
    /* 9 */
    &[(
        E2E,
        "case_9_frames_of_an_interpreter_with_debug_information",
    )],
    // Libraries of such names stand for the real ones, which need a GPU.
    /* 10 */
    &[(E2E, "case_10_158_frames_through_libraries_without_symbols")],
    /* 11 */
    &[(
        SYMBOLS,
        "stacks_without_an_address_of_the_call_and_long_ones",
    )],
    /* 12 */ &[(E2E, "files_of_rpd_have_the_answers_of_their_database")],
    /* 13 */ &[(E2E, "the_first_example_of_the_guide")],
    // Native stacks.
    /* 14 */ &[(NATIVE, "n14_stripped_code_is_walked")],
    /* 15 */ &[(SYMBOLS, "debug_files_are_found_by_build_id_and_by_link")],
    /* 16 */ &[(SYMBOLS, "files_of_another_build_are_not_trusted")],
    /* 17 */ &[(SYMBOLS, "three_inlined_functions_have_their_own_call_sites")],
    /* 18 */ &[(NATIVE, "n18_calls_from_a_split_off_cold_part_are_walked")],
    /* 19 */
    &[(
        NATIVE,
        "n19_offsets_are_link_time_addresses_with_and_without_pie",
    )],
    /* 20 */ &[(NATIVE, "n20_two_runs_have_the_same_build_ids_and_offsets")],
    /* 21 */
    &[(
        NATIVE,
        "n21_a_plugin_is_known_by_path_and_build_id_after_it_was_unloaded",
    )],
    /* 22 */ &[(NATIVE, "n22_plugins_at_one_address_are_distinguished")],
    /* 23 */
    &[(
        NATIVE,
        "n23_the_build_id_is_of_the_code_that_ran_not_of_a_file_that_replaced_it",
    )],
    /* 24 */ &[(NATIVE, "n24_a_library_that_is_loaded_twice_is_two_modules")],
    /* 25 */ &[(NATIVE, "n25_code_with_a_frame_pointer_is_walked_through")],
    /* 26 */
    &[(
        NATIVE,
        "n26_code_without_frame_pointer_or_information_ends_the_stack",
    )],
    /* 27 */
    &[
        (NATIVE, "n27_registered_unwind_information_is_used"),
        (
            NATIVE,
            "n27_code_is_distinguished_by_what_is_registered_for_it",
        ),
        (
            E2E,
            "case_27_code_that_is_registered_with_debuggers_has_its_name",
        ),
    ],
    /* 28 */ &[(E2E, "code_that_is_made_at_run_time_is_named_by_its_map")],
    /* 29 */
    &[(
        NATIVE,
        "n29_recursion_of_5000_frames_is_kept_whole_or_with_a_gap",
    )],
    /* 30 */
    &[(
        NATIVE,
        "n30_one_place_has_one_stack_and_two_lines_share_their_callers",
    )],
    /* 31 */ &[(NATIVE, "n31_a_million_equal_calls_add_nothing_to_the_tree")],
    /* 32 */
    &[(
        NATIVE,
        "n32_stacks_alternate_with_two_callers_of_equal_frame_size",
    )],
    /* 33 */ &[(NATIVE, "n33_frames_that_a_longjmp_left_are_gone")],
    /* 34 */ &[(NATIVE, "n34_stacks_are_right_after_an_exception")],
    /* 35 */
    &[(
        NATIVE,
        "n35_destructors_during_unwinding_show_the_landing_pad",
    )],
    // A signal that interrupts the vDSO cannot be aimed at; its functions have unwind information like others.
    /* 36 */
    &[(
        NATIVE,
        "n36_a_stack_crosses_a_signal_frame_into_the_interrupted_function",
    )],
    /* 37 */
    &[
        (
            NATIVE,
            "n37_a_signal_stack_is_walked_to_its_end_and_into_the_interrupted_stack",
        ),
        (NATIVE, "n37_coroutine_stacks_are_walked_and_marked"),
    ],
    /* 38 */
    &[
        (NATIVE, "n38_the_outermost_frame_of_a_thread_is_its_entry"),
        (E2E, "case_38_threads_of_openmp"),
    ],
    /* 39 */ &[(NATIVE, "n39_64_threads_all_get_their_stacks")],
    /* 40 */
    &[(
        NATIVE,
        "n40_a_constructor_under_dlopen_has_the_loader_on_its_stack",
    )],
    /* 41 */
    &[(
        NATIVE,
        "n41_a_storm_of_dlopen_and_dlclose_in_another_thread_disturbs_nothing",
    )],
    /* 42 */
    &[
        (
            NATIVE,
            "n42_a_forked_child_reports_all_facts_again_and_the_parent_none",
        ),
        (E2E, "a_forked_child_has_stacks_of_its_own"),
    ],
    /* 43 */
    &[(
        NATIVE,
        "n43_a_child_of_a_fork_during_captures_of_other_threads_captures",
    )],
    /* 44 */ &[(E2E, "a_program_that_is_executed_in_its_place_begins_anew")],
    /* 45 */
    &[(
        E2E,
        "databases_that_are_merged_converted_and_queried_keep_stacks",
    )],
    /* 46 */ &[(E2E, "case_46_a_pause_in_the_middle_of_a_deep_call")],
    /* 47 */ &[(E2E, "an_exported_file_has_the_rows_of_the_view")],
    /* 48 */ &[("rpd-symbols/src/native.rs", "long_names_end_with_dots")],
    /* 49 */ &[(E2E, "case_49_launches_of_a_graph")],
    /* 50 */ &[(E2E, "case_50_launches_of_the_runtime_and_of_modules")],
    /* 51 */ &[(E2E, "globs_choose_calls_markers_and_allocations")],
    /* 52 */ &[(E2E, "globs_choose_calls_markers_and_allocations")],
    /* 53 */ &[(E2E, "one_call_in_some_and_long_calls_only")],
    /* 54 */
    &[(E2E, "case_54_a_program_with_the_rights_of_another_user")],
    // Python.
    /* 55 */ &[(PYTHON, "case_55_nested_functions_and_a_native_call")],
    /* 56 */ &[(PYTHON, "case_56_the_same_with_the_gil_released")],
    /* 57 */ &[(PYTHON, "case_57_a_thread_that_never_ran_python")],
    /* 58 */ &[(PYTHON, "case_58_a_callback_through_map")],
    /* 59 */ &[(PYTHON, "case_59_reduce_nested_100_deep_in_a_sort_key")],
    /* 60 */ &[(PYTHON, "case_60_a_c_library_calls_back")],
    /* 61 */ &[(PYTHON, "case_61_a_generator")],
    /* 62 */ &[(PYTHON, "case_62_a_delegating_generator")],
    /* 63 */ &[(PYTHON, "case_63_a_coroutine_awaits_a_coroutine")],
    /* 64 */ &[(PYTHON, "case_64_a_task_after_a_suspension")],
    /* 65 */ &[(PYTHON, "case_65_comprehensions")],
    /* 66 */ &[(PYTHON, "case_66_class_bodies_and_imports")],
    /* 67 */ &[(PYTHON, "case_67_code_from_strings")],
    /* 68 */ &[(PYTHON, "case_68_finalizers")],
    /* 69 */ &[(PYTHON, "case_69_while_an_exception_is_handled")],
    /* 70 */
    &[(
        PYTHON,
        "case_70_an_exception_that_a_binding_layer_translates",
    )],
    /* 71 */ &[(PYTHON, "case_71_wrappers_and_methods")],
    /* 72 */ &[(PYTHON, "case_72_lines_and_columns")],
    /* 73 */
    &[
        (PYTHON, "case_73_deep_recursion"),
        (PYTHON, "case_73_a_gap_beyond_the_limit"),
    ],
    /* 74 */ &[(PYTHON, "case_74_frames_that_are_being_set_up")],
    /* 75 */ &[(PYTHON, "case_75_profile_and_trace_hooks")],
    /* 76 */
    &[
        (PYTHON, "case_76_a_replaced_evaluator"),
        (
            PYTHON,
            "places_of_pytorch_have_all_frames_of_its_own_tracebacks",
        ),
    ],
    /* 77 */ &[(PYTHON, "case_77_perf_trampolines")],
    /* 78 */ &[(PYTHON, "case_78_a_thread_that_hogs_the_gil")],
    /* 79 */ &[(PYTHON, "case_79_code_objects_at_one_address")],
    /* 80 */ &[(PYTHON, "case_80_a_function_that_is_redefined_while_it_runs")],
    /* 81 */ &[(PYTHON, "case_81_names_that_are_not_ascii")],
    /* 82 */
    &[(
        PYTHON,
        "case_82_83_84_a_host_that_loads_python_late_and_locally",
    )],
    /* 83 */
    &[(
        PYTHON,
        "case_82_83_84_a_host_that_loads_python_late_and_locally",
    )],
    /* 84 */
    &[
        (PYTHON, "case_84_while_the_interpreter_ends"),
        (
            PYTHON,
            "case_82_83_84_a_host_that_loads_python_late_and_locally",
        ),
    ],
    /* 85 */ &[(PYTHON, "case_85_a_sub_interpreter")],
    /* 86 */ &[(PYTHON, "case_86_greenlets")],
    /* 87 */ &[(PYTHON, "case_87_forked_and_spawned_children")],
    /* 88 */ &[(PYTHON, "case_88_a_version_that_is_not_known")],
    /* 89 */ &[(PYTHON, "case_89_a_stripped_interpreter")],
    /* 90 */ &[(PYTHON, "case_90_threads_and_reference_counts")],
    // Storage, symbols, output.
    /* 91 */
    &[(SYMBOLS, "looking_up_again_uses_what_was_installed")],
    /* 92 */ &[(SYMBOLS, "debug_files_are_found_by_build_id_and_by_link")],
    /* 93 */ &[(E2E, "an_exported_file_has_the_rows_of_the_view")],
    /* 94 */ &[(E2E, "places_costs_and_what_was_not_freed")],
    /* 95 */ &[(E2E, "the_second_example_of_the_guide")],
    /* 96 */ &[(E2E, "slices_of_perfetto_have_callstacks")],
    /* 97 */ &[(E2E, "case_97_what_60_frames_cost")],
    /* 98 */ &[(E2E, "a_sudden_end_loses_no_stack")],
];

#[test]
fn every_case_has_a_test() {
    assert_eq!(CASES.len(), 98);
    for (index, tests) in CASES.iter().enumerate() {
        let number = index + 1;
        assert!(!tests.is_empty(), "case {number}");
        assert_tests(&number.to_string(), tests);
    }
}

/// The rows that `rpd stacks` prints of a database, without the heading.
fn rows(database: &std::path::Path, options: &[&str]) -> Vec<String> {
    let database = database.to_str().expect("text");
    let arguments = [&["stacks", database, "-f", "csv"], options].concat();
    let printed = Rpd::plain(arguments).run().success().stdout;
    printed.lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn case_38_threads_of_openmp() {
    const SOURCE: &str = "extern int hipGetLastError(void);
static volatile int after;
__attribute__((noinline)) static void work(void) { hipGetLastError(); after += 1; }
int main(void) {
#pragma omp parallel num_threads(3)
    work();
    return 0;
}
";
    if lacks("cc") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    fs::write(path("omp.c"), SOURCE).expect("written");
    fs::write(path("hip.c"), "int hipGetLastError(void) { return 0; }\n").expect("written");
    let cc = |arguments: &[&str]| {
        let mut command = Command::new("cc");
        command.args(arguments).current_dir(folder.path());
        command.output().expect("cc runs")
    };
    let soname = "-Wl,-soname,libamdhip64.so.6";
    let library = cc(&["-shared", "-fPIC", soname, "-o", "libhip.so", "hip.c"]);
    assert!(library.status.success());
    let program = cc(&["-O1", "-g", "-fopenmp", "-o", "omp", "omp.c", "libhip.so"]);
    if !program.status.success() {
        let errors = String::from_utf8_lossy(&program.stderr);
        return rpd_tests::run::skipped("stacks of OpenMP's threads", errors.trim());
    }
    let outcome = Rpd::new(["--hip-trace", "--stacks", "native", "-f", "rocpd"])
        .target([path("omp")])
        .success();
    let found = rows(&outcome.file(".db"), &["--whole"]);
    let calls = |row: &String| {
        let calls = row
            .split(',')
            .nth(1)
            .and_then(|calls| calls.parse::<u32>().ok());
        calls.unwrap_or_else(|| panic!("{row}"))
    };
    assert_eq!(found.iter().map(calls).sum::<u32>(), 3, "{found:?}");
    let (own, others): (Vec<&String>, Vec<&String>) =
        found.iter().partition(|row| row.contains("main at "));
    assert_eq!(own.len(), 1, "{found:?}");
    for row in others {
        assert!(row.contains("work at ") && row.contains("libgomp"), "{row}");
        let outermost = row.rsplit(" <- ").next().unwrap_or_default();
        // Where the C library has no symbols but those that it exports, its name stands for the function.
        assert!(
            outermost.contains("clone") || outermost.starts_with("libc.so.6+"),
            "{row}"
        );
    }
}

#[test]
fn case_46_a_pause_in_the_middle_of_a_deep_call() {
    let outcome = Rpd::new(["--hip-trace", "--marker-trace", "--stacks", "native"])
        .option(["-f", "rocpd"])
        .workload("stacks", ["pause", "5"])
        .success();
    let found = rows(
        &outcome.file(".db"),
        &["--whole", "--api", "hipGetLastError"],
    );
    assert_eq!(found.len(), 2, "{found:?}");
    for row in &found {
        assert!(row.starts_with("hipGetLastError,1,"), "{row}");
        assert_eq!(row.matches("pausing at ").count(), 6, "{row}");
        assert!(row.contains(" <- main at "), "{row}");
    }
}

#[test]
fn case_49_launches_of_a_graph() {
    let options = ["--hip-trace", "--kernel-trace", "--stacks", "native"];
    let outcome = Rpd::new(options)
        .option(["-f", "rocpd"])
        .workload("capture", ["graph"])
        .success();
    let found = rows(&outcome.file(".db"), &["--kernels"]);
    let [row] = found.as_slice() else {
        panic!("{found:?}");
    };
    assert!(
        row.starts_with("add_kernel,3,") && row.contains(",hipGraphLaunch,run_graph at "),
        "{row}"
    );
}

#[test]
fn case_50_launches_of_the_runtime_and_of_modules() {
    let options = ["--hip-trace", "--kernel-trace", "--stacks", "native"];
    let outcome = Rpd::new(options)
        .option(["-f", "rocpd"])
        .workload("capture", ["launches"])
        .success();
    let database = outcome.database();
    let launches =
        "rocpd_region r JOIN rocpd_string n ON n.id = r.name_id AND n.string LIKE '%LaunchKernel'";
    let functions = database.rows(&format!(
        "SELECT DISTINCT n.string FROM {launches} ORDER BY 1"
    ));
    assert_eq!(functions, [["hipLaunchKernel"], ["hipModuleLaunchKernel"]]);
    // Each launch is one call with one stack, and each kernel belongs to one of them.
    let calls = database.number(&format!(
        "SELECT count(DISTINCT r.event_id) FROM {launches}"
    ));
    let stacks =
        format!("SELECT count(*) FROM {launches} JOIN rpd_api_stack a ON a.api_id = r.event_id");
    assert_eq!(database.number(&stacks), calls);
    let kernels = rows(&outcome.file(".db"), &["--kernels"]);
    let launched = |kernel: &str, function: &str| {
        let row = kernels
            .iter()
            .find(|row| row.starts_with(&format!("{kernel},1,")));
        row.is_some_and(|row| row.contains(&format!(",{function},")))
    };
    assert!(launched("add_kernel", "hipLaunchKernel"), "{kernels:?}");
    assert!(
        launched("sizes_kernel", "hipModuleLaunchKernel"),
        "{kernels:?}"
    );
}

/// A Python program that calls the simulated runtime.
const CALLS_HIP: &str = "import ctypes
hip = ctypes.CDLL('libamdhip64.so.6')
def inner():
    return hip.hipGetLastError()
list(map(lambda _: inner(), [1]))
";

#[test]
fn case_9_frames_of_an_interpreter_with_debug_information() {
    let has_lines = |program: &std::path::Path| {
        let sections = Command::new("readelf").arg("-SW").arg(program).output();
        sections.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(".debug_info"))
    };
    let known = rpd_tests::pythons::interpreters();
    // From 3.10 on, where places do not depend on symbols; with its code in the program itself.
    let versions = ["3.13", "3.12", "3.10", "3.11d"];
    let found = versions
        .iter()
        .find_map(|version| known.get(*version).filter(|path| has_lines(path)));
    let Some(python) = found else {
        let reason = "no such interpreter has debug information";
        return rpd_tests::run::skipped("frames of an interpreter with debug information", reason);
    };
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("main.py");
    fs::write(&script, CALLS_HIP).expect("written");
    let outcome = Rpd::new([
        "--hip-trace",
        "--stacks",
        "merged",
        "--stacks-interpreter-frames",
        "-f",
        "rocpd",
    ])
    .target([python, &script])
    .success();
    let frames: Vec<String> = outcome
        .database()
        .rows(
            "SELECT frame FROM rocpd_stackstrings WHERE hip_api = 'hipGetLastError' ORDER BY depth",
        )
        .concat();
    let place = |function: &str| {
        let wanted = format!(" in {function} at ");
        let at = frames.iter().position(|frame| frame.contains(&wanted));
        at.unwrap_or_else(|| panic!("{function}: {frames:#?}"))
    };
    // Innermost first: each run of Python frames, and then the evaluator that runs it, with a line.
    let order = [
        place("inner"),
        place("<lambda>"),
        place("map_next"),
        place("<module>"),
    ];
    assert!(order.is_sorted() && order[1] == order[0] + 1, "{frames:#?}");
    for last in [order[1], order[3]] {
        let outer = frames[last + 1..]
            .iter()
            .find(|frame| !frame.contains("(inlined)"));
        let evaluator = outer.expect("a frame");
        assert!(
            evaluator.contains(" in _PyEval_EvalFrameDefault at ")
                && evaluator.contains("/Python/"),
            "{frames:#?}"
        );
    }
    assert!(frames[order[2]].contains("bltinmodule.c:"), "{frames:#?}");
    assert!(
        frames.iter().any(|frame| frame.contains("(inlined)")),
        "{frames:#?}"
    );
}
