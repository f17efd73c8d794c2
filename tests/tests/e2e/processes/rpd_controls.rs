//! What scripts for rocmProfileData use: `rpdRemote`, its variables, and the controls of its Python package.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rpd_tests::outputs::Database;
use rpd_tests::pythons::interpreters;
use rpd_tests::run::{Outcome, Rpd, skipped};
use rpd_tests::{install, run};

use super::control::Steps;

/// Runs a script of the newest Python under rpd; `None`, with a line `skipped:`, where there is no Python.
fn python(options: &[&str], script: &str) -> Option<Outcome> {
    let Some(python) = interpreters().values().next_back() else {
        skipped("controls of the Python package", "no Python");
        return None;
    };
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../python");
    let rpd = Rpd::new(["--hip-trace", "--marker-trace", "-f", "rocpd", "-o", "x"])
        .option(options)
        .env("PYTHONPATH", package);
    let path = rpd.directory().join("program.py");
    std::fs::write(&path, script).expect("written");
    Some(rpd.target([python.as_os_str(), path.as_os_str()]).success())
}

/// Texts of the markers, in their order.
fn markers(outcome: &Outcome) -> Vec<String> {
    let database = Database::open(&outcome.file("x_results.db"));
    let texts = "SELECT json_extract(extdata, '$.message') FROM regions_and_samples
        WHERE category LIKE 'MARKER%' ORDER BY start";
    let rows = database.rows(texts).into_iter().flatten();
    rows.filter(|text| !text.is_empty() && text != "NULL")
        .collect()
}

fn count(outcome: &Outcome, name: &str) -> i64 {
    let database = Database::open(&outcome.file("x_results.db"));
    database.number(&format!(
        "SELECT count(*) FROM regions WHERE name = '{name}'"
    ))
}

#[test]
fn python_controls_of_rpd_record_what_is_inside() {
    let script = r#"
import ctypes
from rpd.rocm_profile_data import rpdTracerControl

hip = ctypes.CDLL("libamdhip64.so.6")
rpdTracerControl.setFilename("trace.rpd", append=True)
rpdTracerControl.skipCreate()
rpdTracerControl.skipLoad()
rpdTracerControl.initializeFile()
rpdTracerControl.loadLibrary()
tracer = rpdTracerControl()
number = ctypes.c_int()

def call(times):
    for _ in range(times):
        assert hip.hipGetDeviceCount(ctypes.byref(number)) == 0

call(1)
tracer.stop()
call(10)
with tracer as entered:
    assert entered is None
    call(2)
    with rpdTracerControl():
        call(4)
    call(8)
call(100)
tracer.start()
tracer.rangePush("python", "step", "a.py:3")
call(16)
tracer.rangePop()
tracer.flush()

@rpdTracerControl()
def decorated():
    call(32)

tracer.stop()
decorated()
call(1000)
"#;
    let Some(outcome) = python(&[], script) else {
        return;
    };
    assert_eq!(
        count(&outcome, "hipGetDeviceCount"),
        1 + 2 + 4 + 8 + 16 + 32
    );
    assert_eq!(markers(&outcome), ["python: step(a.py:3)"]);
}

#[test]
fn python_markers_of_rpd_are_ranges_and_marks() {
    let script = r#"
import ctypes
from rpd.rocm_profile_data import hipScopedMarker, roctxMarker, rpd_mark, rpdTracerControl

hip = ctypes.CDLL("libamdhip64.so.6")
hip.hipGetDeviceCount(ctypes.byref(ctypes.c_int()))
with hipScopedMarker("epoch") as marker:
    assert isinstance(marker, hipScopedMarker)
    hipScopedMarker.emitMarker("a mark")
roctxMarker.pushMarker("pushed")
roctxMarker.popMarker()

@rpd_mark()
def train(a, b=2):
    "text"
    return a + b

@rpd_mark("named")
def other():
    raise ValueError("passed on")

@hipScopedMarker("decorated")
def third():
    return 3

assert train(1) == 3 and train.__name__ == "train" and train.__doc__ == "text"
try:
    other()
except ValueError as error:
    assert str(error) == "passed on"
else:
    raise SystemExit("no error")
assert third() == 3

def traced():
    return 1

tracer = rpdTracerControl()
tracer.setPythonTrace(True)
traced()
tracer.setPythonTrace(False)
traced()
"#;
    let Some(outcome) = python(&[], script) else {
        return;
    };
    let found = markers(&outcome);
    let begin = ["epoch", "a mark", "pushed", "train", "named", "decorated"];
    assert_eq!(found[..begin.len()], begin, "{found:?}");
    let traced = found
        .iter()
        .filter(|text| text.starts_with("python: traced("));
    assert_eq!(traced.count(), 1, "{found:?}");
}

#[test]
fn python_controls_do_nothing_without_rpd() {
    let Some(python) = interpreters().values().next_back() else {
        return skipped("controls of the Python package without rpd", "no Python");
    };
    let script = "
from rpd.rocm_profile_data import hipScopedMarker, rpd_mark, rpdTracerControl
with rpdTracerControl(), hipScopedMarker('x'):
    hipScopedMarker.emitMarker('a\\0b')
rpdTracerControl().flush()
print(rpd_mark()(lambda: 7)())
";
    let output = std::process::Command::new(python)
        .args(["-c", script])
        .env(
            "PYTHONPATH",
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../python"),
        )
        .output()
        .expect("it starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "7");
}

#[test]
fn rpd_remote_starts_and_stops_by_process_id() {
    let mut steps = Steps::start(Rpd::new(["--kernel-trace", "-o", "x"]));
    let remote = |steps: &Steps, words: &[&str]| {
        let pid = steps.running.child.id().to_string();
        Rpd::bare("rpdRemote", words).option([pid]).run()
    };
    steps.take("launch");
    assert!(
        remote(&steps, &["stop"])
            .success()
            .stdout
            .contains("has stopped")
    );
    steps.take("launch launch");
    // A repeated stop is not counted.
    let _ = remote(&steps, &["stop"]).success();
    let _ = remote(&steps, &["start"]).success();
    steps.take("launch");
    let wrong = remote(&steps, &["restart"]);
    assert!(
        wrong.stderr.contains("expected: start PID"),
        "{}",
        wrong.stderr
    );
    assert_ne!(wrong.code(), 0);
    let outcome = steps.finish();
    let database = Database::open(&outcome.file("x_results.db"));
    assert_eq!(database.number("SELECT count(*) FROM kernels"), 2);
}

/// Runs `vector-ops` without rpd, with the collector preloaded and the variables of RPD; the file that they name.
fn preloaded(variables: &[(&str, &str)]) -> (Outcome, PathBuf) {
    let collector = install::collector();
    let mut all = vec![
        ("LD_PRELOAD", collector.as_os_str()),
        ("RPDT_FILENAME", OsStr::new("x.rpd")),
    ];
    let given = variables.iter();
    all.extend(given.map(|(name, value)| (*name, OsStr::new(*value))));
    let outcome = run::simulated_with(all, "vector-ops", ["1", "1"]).success();
    let file = outcome.directory.path().join("x.rpd");
    (outcome, file)
}

fn number(file: &Path, sql: &str) -> i64 {
    let connection = rusqlite::Connection::open(file).expect("a database");
    let found = connection.query_row(sql, [], |row| row.get(0));
    found.expect("the table")
}

#[test]
fn variables_of_rpd_leave_arguments_out_and_flush() {
    let with_arguments =
        "SELECT count(*) FROM rocpd_api JOIN rocpd_ustring ON args_id = rocpd_ustring.id
        WHERE string LIKE '%size%'";
    let (_plain, file) = preloaded(&[]);
    assert!(number(&file, with_arguments) > 0);
    let variables = [("RPDT_ROCPROF_NOARGS", "1"), ("RPDT_AUTOFLUSH", "1")];
    let (outcome, file) = preloaded(&variables);
    assert!(
        number(&file, "SELECT count(*) FROM rocpd_api") > 0,
        "{}",
        outcome.stderr
    );
    assert_eq!(number(&file, with_arguments), 0);
}

#[test]
fn variable_of_rpd_starts_without_recording() {
    // Nothing in the program starts it.
    let (outcome, file) = preloaded(&[("RPDT_AUTOSTART", "0")]);
    let is_empty = !file.exists() || number(&file, "SELECT count(*) FROM rocpd_api") == 0;
    assert!(is_empty, "{}", outcome.stderr);
    assert_eq!(outcome.stdout, "ok\n");
}
