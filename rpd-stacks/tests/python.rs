//! Python frames, in real interpreters: each case of `python/cases.py` runs in every interpreter that `rpd_tests::pythons`
//! finds.
//!
//! The numbers of the cases are those of the conformance cases of stacks.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rpd_tests::pythons::interpreters;
use rpd_tests::skips::{skipped, skipped_by_script, tool_for};

/// Random trees, over all interpreters.
const TREES: usize = 10_000;

/// The library that the interpreters load. `cargo test` builds it with the other examples of this package.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let folder = test
        .parent()
        .and_then(Path::parent)
        .expect("a test lies in target/*/deps");
    let library = folder.join("examples/libstacks_probe.so");
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
        // Structures of later versions are not known: case 88 tests that.
        if version.starts_with("3.15") && arguments != ["88"] {
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

macro_rules! cases {
    ($($name:ident = $number:literal;)*) => {
        $(
            #[test]
            fn $name() {
                run_in_all("cases.py", &[$number]);
            }
        )*
    };
}

cases! {
    case_55_nested_functions_and_a_native_call = "55";
    case_56_the_same_with_the_gil_released = "56";
    case_57_a_thread_that_never_ran_python = "57";
    case_58_a_callback_through_map = "58";
    case_59_reduce_nested_100_deep_in_a_sort_key = "59";
    case_60_a_c_library_calls_back = "60";
    case_60_native_frames_that_come_and_go = "60_depths";
    case_61_a_generator = "61";
    case_62_a_delegating_generator = "62";
    case_63_a_coroutine_awaits_a_coroutine = "63";
    case_64_a_task_after_a_suspension = "64";
    case_65_comprehensions = "65";
    case_66_class_bodies_and_imports = "66";
    case_67_code_from_strings = "67";
    case_68_finalizers = "68";
    case_69_while_an_exception_is_handled = "69";
    case_70_an_exception_that_a_binding_layer_translates = "70";
    case_71_wrappers_and_methods = "71";
    case_72_lines_and_columns = "72";
    case_73_deep_recursion = "73";
    case_73_a_gap_beyond_the_limit = "73_gap";
    case_74_frames_that_are_being_set_up = "74";
    case_75_profile_and_trace_hooks = "75";
    case_76_a_replaced_evaluator = "76";
    case_77_perf_trampolines = "77";
    case_78_a_thread_that_hogs_the_gil = "78";
    case_79_code_objects_at_one_address = "79";
    case_80_a_function_that_is_redefined_while_it_runs = "80";
    case_81_names_that_are_not_ascii = "81";
    case_84_while_the_interpreter_ends = "84";
    case_85_a_sub_interpreter = "85";
    case_86_greenlets = "86";
    case_87_forked_and_spawned_children = "87";
    case_88_a_version_that_is_not_known = "88";
    case_90_threads_and_reference_counts = "90";
}

/// PyTorch's own tracebacks, where the `python3` on the path has PyTorch: backward passes, workers, compiled code.
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

/// Cases 82, 83 and 84: a program that loads Python late and for itself alone.
#[test]
fn case_82_83_84_a_host_that_loads_python_late_and_locally() {
    let folder = tempfile::tempdir().expect("a folder");
    let host = folder.path().join("host");
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
        let prefix = interpreter
            .parent()
            .and_then(Path::parent)
            .expect("prefix/bin/python");
        let output = Command::new(&host)
            .arg(library())
            .arg(&python)
            .env("PYTHONHOME", prefix)
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

/// Case 89: an interpreter without any symbols but those that it exports.
#[test]
fn case_89_a_stripped_interpreter() {
    for (version, interpreter) in interpreters() {
        let Some(python) = shared_library(interpreter) else {
            continue;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let stripped = folder.path().join(python.file_name().expect("a file"));
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
        for case in ["55", "58", "63"] {
            let output = Command::new(interpreter)
                .arg(&script)
                .arg(case)
                .env("RPD_STACKS_PROBE", library())
                .env("LD_LIBRARY_PATH", folder.path())
                .env("RPD_CASE_PYTHON", &stripped)
                .output()
                .expect("the interpreter ran before");
            assert!(
                output.status.success(),
                "{version} case {case}: {}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }
}
