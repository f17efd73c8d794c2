//! Stacks of OpenMP threads, of graphs and modules, around a pause, and of an interpreter with debug information.

use std::fs;
use std::process::Command;

use rpd_tests::run::{Rpd, lacks};

/// The rows that `rpd stacks` prints of a database, without the heading.
fn rows(database: &std::path::Path, options: &[&str]) -> Vec<String> {
    let database = database.to_str().expect("text");
    let arguments = [&["stacks", database, "-f", "csv"], options].concat();
    let printed = Rpd::plain(arguments).run().success().stdout;
    printed.lines().skip(1).map(str::to_owned).collect()
}

/// Checks stacks-38.
#[test]
fn stacks_of_openmp_threads_end_at_the_thread_entry() {
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
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name);
    fs::write(path("omp.c"), SOURCE).expect("written");
    fs::write(path("hip.c"), "int hipGetLastError(void) { return 0; }\n").expect("written");
    let cc = |arguments: &[&str]| {
        let mut command = Command::new("cc");
        command.args(arguments).current_dir(directory.path());
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

/// Checks stacks-46.
#[test]
fn calls_in_a_pause_have_no_stacks_and_those_around_it_have() {
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

/// Checks stacks-49.
#[test]
fn kernels_of_a_graph_refer_to_the_stack_of_its_launch() {
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

/// Checks stacks-50.
#[test]
fn launches_of_the_runtime_and_of_modules_have_one_stack_each() {
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

/// Checks stacks-9.
#[test]
fn interpreter_frames_with_debug_information_have_names_and_lines() {
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
    let directory = tempfile::tempdir().expect("a directory");
    let script = directory.path().join("main.py");
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
