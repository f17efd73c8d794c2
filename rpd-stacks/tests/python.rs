//! Python frames, in real interpreters: each function of `python/cases.py` runs in every interpreter that
//! `rpd_tests::pythons` finds.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rpd_tests::pythons::interpreters;
use rpd_tests::skips::{skipped, skipped_by_script, tool_for};

/// Random trees, over all interpreters.
const TREES: usize = 10_000;

/// The library that the interpreters load. `cargo test` builds it with the other examples of this package.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let directory = test
        .parent()
        .and_then(Path::parent)
        .expect("a test lies in target/*/deps");
    let library = directory.join("examples/libstacks_probe.so");
    assert!(
        library.is_file(),
        "{} is missing: cargo build -p rpd-stacks --examples",
        library.display()
    );
    library
}

fn run(interpreter: &Path, script: &str, arguments: &[&str]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/python")
        .join(script);
    Command::new(interpreter)
        .arg(script)
        .args(arguments)
        .env("RPD_STACKS_PROBE", library())
        .env(
            "PYTHONPYCACHEPREFIX",
            concat!(env!("CARGO_TARGET_TMPDIR"), "/pycache"),
        )
        .env("PYTHONIOENCODING", "utf-8")
        .output()
        .expect("the interpreter ran before")
}

/// Runs a script in all interpreters, and expects that each passes.
fn run_in_all(script: &str, arguments: &[&str]) {
    let mut failures = Vec::new();
    for (version, interpreter) in interpreters() {
        // Structures of later versions are not known, which one test checks.
        if version.starts_with("3.15")
            && arguments != ["an_unknown_version_is_read_by_its_own_functions"]
        {
            continue;
        }
        let output = run(interpreter, script, arguments);
        let text = String::from_utf8_lossy(&output.stdout);
        skipped_by_script(&text);
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            failures.push(format!("{version}: {}\n{text}{errors}", output.status));
        }
    }
    assert!(
        failures.is_empty(),
        "{script} {arguments:?}:\n{}",
        failures.join("\n")
    );
}

/// Tests that run the function of their name in `cases.py`.
macro_rules! cases {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $(
            $(#[$doc])*
            #[test]
            fn $name() {
                run_in_all("cases.py", &[stringify!($name)]);
            }
        )*
    };
}

cases! {
    /// Checks stacks-55.
    nested_functions_have_rows_in_call_order;
    /// Checks stacks-56.
    rows_are_equal_with_and_without_the_gil;
    /// Checks stacks-57.
    a_thread_that_never_ran_python_has_native_rows_alone;
    /// Checks stacks-58.
    a_callback_of_map_has_a_row_inside_its_caller;
    /// Checks stacks-59.
    a_hundred_nested_callbacks_alternate_with_native_rows;
    /// Checks stacks-60.
    python_rows_surround_a_c_library_that_calls_back;
    /// Checks stacks-60.
    python_rows_stay_while_native_frames_come_and_go;
    /// Checks stacks-61.
    a_generator_has_a_row_inside_its_consumer;
    /// Checks stacks-62.
    delegating_generators_have_rows_in_call_order;
    /// Checks stacks-63.
    awaited_coroutines_have_rows_in_call_order;
    /// Checks stacks-64.
    a_resumed_task_has_rows_of_itself_and_the_event_loop;
    /// Checks stacks-65.
    comprehensions_have_a_row_before_python_3_12;
    /// Checks stacks-66.
    class_bodies_and_imports_have_rows;
    /// Checks stacks-67.
    code_from_strings_has_its_name_and_line;
    /// Checks stacks-68.
    finalizers_have_a_row_inside_their_cause;
    /// Checks stacks-69.
    captures_leave_pending_exceptions_unchanged;
    /// Checks stacks-70.
    a_translated_exception_leaves_later_stacks_right;
    /// Checks stacks-71.
    wrappers_and_methods_have_a_row_for_each_frame;
    /// Checks stacks-72.
    lines_and_columns_are_those_of_tracebacks;
    /// Checks stacks-73.
    deep_recursion_has_every_frame;
    /// Checks stacks-73.
    recursion_beyond_the_limit_has_a_gap;
    /// Checks stacks-74.
    frames_that_are_being_set_up_shift_no_row;
    /// Checks stacks-75.
    profile_and_trace_hooks_leave_rows_unchanged;
    /// Checks stacks-76.
    a_replaced_evaluator_keeps_the_order_of_rows;
    /// Checks stacks-77.
    perf_trampolines_leave_python_rows_right;
    /// Checks stacks-78.
    a_thread_that_hogs_the_gil_delays_no_capture;
    /// Checks stacks-79.
    code_at_a_used_address_has_its_own_name_and_lines;
    /// Checks stacks-80.
    a_function_redefined_while_it_runs_keeps_its_row;
    /// Checks stacks-81.
    names_that_are_not_ascii_are_exact;
    /// Checks stacks-84.
    captures_survive_the_end_of_the_interpreter;
    /// Checks stacks-85.
    a_sub_interpreter_has_its_rows_inside_those_of_the_outer_one_or_none;
    /// Checks stacks-85.
    sub_interpreters_of_sub_interpreters_have_rows_in_call_order;
    /// Checks stacks-85.
    an_interpreter_of_another_thread_adds_no_rows;
    /// Checks stacks-85.
    interpreters_that_come_and_go_leave_rows_of_other_threads_right;
    /// Checks stacks-86.
    a_greenlet_has_its_own_rows;
    /// Checks stacks-87.
    forked_and_spawned_children_have_right_stacks;
    /// Checks stacks-88.
    an_unknown_version_is_read_by_its_own_functions;
    /// Checks stacks-90.
    captures_of_many_threads_change_no_reference_count;
}

/// PyTorch's own tracebacks, where the `python3` on the path has PyTorch: backward passes, workers, compiled code.
/// Checks stacks-76.
#[test]
fn places_of_pytorch_have_all_frames_of_its_own_tracebacks() {
    let Some(python) = tool_for("stacks at places of PyTorch", "python3") else {
        return;
    };
    let output = run(&python, "torch_places.py", &[]);
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    skipped_by_script(&text);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
}

#[test]
fn random_python_trees_are_those_of_the_interpreter() {
    let known = interpreters()
        .keys()
        .filter(|version| !version.starts_with("3.15"));
    let each = TREES.div_ceil(known.count().max(1)).to_string();
    run_in_all("trees.py", &[&each, "1"]);
}

#[test]
#[ignore = "takes minutes: 10,000 trees in each interpreter, then a minute of stress"]
fn random_python_trees_and_stress_stay_right_for_long() {
    run_in_all("trees.py", &[&TREES.to_string(), "2"]);
    run_in_all("stress.py", &["60"]);
}

/// A library that an interpreter's own code is in, if it is in one.
fn shared_library(interpreter: &Path) -> Option<PathBuf> {
    let text = "import os, sysconfig as s\n\
                path = os.path.join(s.get_config_var('LIBDIR') or '', s.get_config_var('INSTSONAME') or '')\n\
                print(path if path in open('/proc/self/maps').read() else '')";
    let output = Command::new(interpreter).args(["-c", text]).output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    (path.extension().is_some_and(|extension| extension != "a") && path.is_file()).then_some(path)
}

/// Checks stacks-82, stacks-83 and stacks-84: a program that loads Python late and for itself alone.
#[test]
fn a_host_that_loads_python_late_and_locally_has_python_rows() {
    let directory = tempfile::tempdir().expect("a directory");
    let host = directory.path().join("host");
    let built = Command::new("cc")
        .args(["-O1", "-o"])
        .arg(&host)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/host.c"))
        .arg("-ldl")
        .output();
    let built = built.expect("a C compiler");
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    for (version, interpreter) in interpreters() {
        let Some(python) = shared_library(interpreter) else {
            let check = format!("a program that loads Python {version}");
            skipped(&check, "its code is in no library");
            continue;
        };
        // That of a virtual environment has no library of modules.
        let prefix = Command::new(interpreter)
            .args(["-c", "import sys; print(sys.base_prefix)"])
            .output()
            .expect("the interpreter runs");
        let output = Command::new(&host)
            .arg(library())
            .arg(&python)
            .env("PYTHONHOME", String::from_utf8_lossy(&prefix.stdout).trim())
            .output()
            .expect("the program was built");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success(),
            "{version}: {}\n{text}{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        let parts: Vec<_> = text.split("== ").skip(1).collect();
        assert_eq!(parts.len(), 4, "{version}: {text}");
        for (part, python_rows) in parts.iter().zip([0, 0, 4, 0]) {
            let mut lines = part.lines().skip(1);
            assert_eq!(lines.next(), Some("0"), "{version}: {part}");
            let names: Vec<_> = lines
                .filter(|line| line.starts_with("P\t"))
                .filter_map(|line| line.split('\t').nth(6))
                .collect();
            assert_eq!(names.len(), python_rows, "{version}: {part}");
            if python_rows > 0 {
                assert_eq!(
                    names,
                    ["<module>", "<lambda>", "f", "g"],
                    "{version}: {part}"
                );
            }
            assert!(
                part.lines()
                    .any(|line| line.contains("\tmain\t") || line.contains("/host")),
                "{part}"
            );
        }
    }
}

/// Checks stacks-89: an interpreter without any symbols but those that it exports.
#[test]
fn a_stripped_interpreter_has_the_rows_of_an_unstripped_one() {
    for (version, interpreter) in interpreters() {
        let Some(python) = shared_library(interpreter) else {
            continue;
        };
        let directory = tempfile::tempdir().expect("a directory");
        let stripped = directory.path().join(python.file_name().expect("a file"));
        let strip = Command::new("strip")
            .arg("-o")
            .arg(&stripped)
            .arg(&python)
            .output();
        if !strip.is_ok_and(|output| output.status.success()) {
            skipped(
                &format!("a stripped Python {version}"),
                "strip does not work",
            );
            continue;
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/cases.py");
        for case in [
            "nested_functions_have_rows_in_call_order",
            "a_callback_of_map_has_a_row_inside_its_caller",
            "awaited_coroutines_have_rows_in_call_order",
        ] {
            let output = Command::new(interpreter)
                .arg(&script)
                .arg(case)
                .env("RPD_STACKS_PROBE", library())
                .env("LD_LIBRARY_PATH", directory.path())
                .env("RPD_CASE_PYTHON", &stripped)
                .output()
                .expect("the interpreter ran before");
            assert!(
                output.status.success(),
                "{version}, {case}: {}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }
}
