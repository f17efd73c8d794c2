//! The Python package: sources of generated code, markers, control, TorchScript frames.

use std::path::{Path, PathBuf};
use std::process::Command;

use rpd_tests::outputs::Database;
use rpd_tests::pythons::interpreters;
use rpd_tests::run::{Outcome, Rpd, skipped};

/// The directory that has the package.
fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../python")
}

/// Runs a program that imports the package, with stacks, in an interpreter.
fn recorded(python: &Path, options: &[&str], script: &str, arguments: &[&str]) -> Outcome {
    let rpd = Rpd::new(options).env("PYTHONPATH", package());
    let path = rpd.directory().join("program.py");
    std::fs::write(&path, script).expect("written");
    let directory = rpd.directory().to_str().expect("text").to_owned();
    let own = [python.to_str(), path.to_str(), Some(&directory)];
    let own = own.into_iter().map(|word| word.expect("text"));
    rpd.target(own.chain(arguments.iter().copied())).success()
}

/// Frames of the call `hipGetDeviceCount` as the guide's view shows them, from the innermost Python frame on.
fn frames(database: &Database) -> Vec<String> {
    let rows = database.rows(
        "SELECT frame FROM rocpd_stackstrings WHERE hip_api = 'hipGetDeviceCount' ORDER BY depth",
    );
    let texts = rows.into_iter().flatten();
    let own = texts.filter_map(|text| {
        let (_, frame) = text.split_once(" (")?;
        frame
            .starts_with("python)")
            .then_some(())
            .or_else(|| frame.starts_with("source)").then_some(()))?;
        let (kind, rest) = frame.split_once(") ")?;
        // Columns are known from 3.11 on, and directories differ.
        let (function, place) = rest.trim().strip_prefix("in ")?.split_once(" at ")?;
        let file = place.rsplit('/').next()?;
        let place: Vec<&str> = file.split(':').take(2).collect();
        Some(format!("{kind} {function} {}", place.join(":")))
    });
    own.collect()
}

/// Writes a generated file, imports it, and makes a call in it. What its lines were made from is known only afterwards, and
/// the function that knows it is slow.
const GENERATED: &str = r#"
import ctypes, functools, os, sys, threading, time
import rpd

directory, how = sys.argv[1:3]
hip = ctypes.CDLL("libamdhip64.so.6")
path = os.path.join(directory, "torchinductor_me", "ab", "cabcd.py")
os.makedirs(os.path.dirname(path))
with open(path, "w") as file:
    file.write("hip.hipGetDevice(0)\n\ndef call():\n    count = None\n    return hip.hipGetDeviceCount(count)\n\nx = 1\n")

class Cache:
    lines = {}
    threads = set()

    @classmethod
    @functools.lru_cache(None)
    def sources(cls, file, line):
        cls.threads.add(threading.get_ident())
        time.sleep(0.1)
        # As PyTorch's Inductor answers: dictionaries, innermost first.
        return cls.lines.get(file, {}).get(line)

if how != "none":
    assert rpd.register_generated(Cache.sources) == Cache.sources

def known():
    frames = [{"filename": "/m/layers.py", "line": 30, "name": "forward"}, {"filename": "/m/model.py", "line": 7, "name": "loss"}]
    Cache.lines[path] = {4: frames, 5: frames}

space = {"hip": hip}
with open(path) as file:
    exec(compile(file.read(), path, "exec"), space)
time.sleep(0.5 if how == "late" else 0)
known()
begin = time.monotonic()
space["call"]()
assert time.monotonic() - begin < 0.05, "the call waited"
if how == "late":
    time.sleep(2)
    assert Cache.threads and threading.get_ident() not in Cache.threads
"#;

fn check_generated(python: &Path, how: &str) {
    let options = ["--hip-trace", "--stacks", "python", "-f", "rocpd"];
    let outcome = recorded(python, &options, GENERATED, &[how]);
    assert_eq!(
        outcome.stderr.matches("Warning").count(),
        0,
        "{}",
        outcome.stderr
    );
    let database = outcome.database();
    let sources = ["source forward layers.py:30", "source loss model.py:7"];
    let mut expected = vec!["python call cabcd.py:5", "python <module> program.py:37"];
    if how != "none" {
        expected.splice(1..1, sources);
    }
    assert_eq!(frames(&database), expected, "{how} {}", python.display());
    // Looked up again, from the database alone.
    let file = outcome.file("_results.db");
    let name = file.to_str().expect("text");
    let _ = Rpd::plain(["symbolize", name]).run().success();
    let database = Database::open(&file);
    assert_eq!(frames(&database), expected, "{how} {}", python.display());
    let text = database.rows(
        "SELECT s.string, g.text FROM rpd_generated_file g JOIN rocpd_string s ON s.id = g.file_id",
    );
    assert_eq!(text.len(), 1);
    assert!(text[0][0].ends_with("/torchinductor_me/ab/cabcd.py"));
    assert!(text[0][1].contains("\ndef call():\n    count = None\n"));
    // The file for RPD's own tools has the rows of the view.
    let exported = outcome.out().join("exported.rpd");
    let words = ["export", name, "--rpd", exported.to_str().expect("text")];
    let _ = Rpd::plain(words).run().success();
    let rows = "SELECT s.string FROM rocpd_stackframe f JOIN rocpd_string s ON s.id = f.name_id
        ORDER BY f.api_ptr_id, f.depth";
    assert_eq!(Database::open(&exported).rows(rows), database.rows(rows));
}

#[test]
fn frames_of_generated_files_lead_to_their_sources() {
    if interpreters().is_empty() {
        return skipped("sources of generated code", "no Python interpreter");
    }
    // Of a version that is not known, only code that keeps the GIL has Python frames.
    let known = interpreters()
        .iter()
        .filter(|(version, _)| !version.starts_with("3.15"));
    for (_, python) in known {
        check_generated(python, "soon");
    }
}

#[test]
fn generated_files_without_known_sources_are_looked_up_again() {
    let Some(python) = interpreters().values().next_back() else {
        return skipped("sources of generated code", "no Python interpreter");
    };
    check_generated(python, "late");
}

#[test]
fn generated_frames_without_a_lookup_function_keep_path_and_line() {
    let Some(python) = interpreters().values().next_back() else {
        return skipped("generated code", "no Python interpreter");
    };
    check_generated(python, "none");
}

const MARKERS: &str = r#"
import ctypes, sys
import rpd

hip = ctypes.CDLL("libamdhip64.so.6")

@rpd.range("decorated")
def decorated(value):
    return value + 1

rpd.resume()
with rpd.range("outer \N{GREEK SMALL LETTER ALPHA}"):
    rpd.mark("a moment")
    rpd.range_push("pushed")
    assert decorated(1) == 2
    rpd.range_pop()
number = rpd.range_start("process")
rpd.range_stop(number)
rpd.pause()
rpd.mark("paused")
hip.hipGetDeviceCount(None)
rpd.resume()
rpd.mark("resumed")
try:
    rpd.range("never")(lambda: (yield))
except TypeError as error:
    print(error)
"#;

#[test]
fn markers_and_control_of_the_python_package_reach_the_recording() {
    let Some(python) = interpreters().values().next_back() else {
        return skipped("markers of the Python package", "no Python interpreter");
    };
    let options = [
        "--hip-trace",
        "--marker-trace",
        "--selected-regions",
        "-f",
        "rocpd",
    ];
    let outcome = recorded(python, &options, MARKERS, &[]);
    assert_eq!(
        outcome.stdout,
        "rpd.range: <lambda> may be suspended; use `with rpd.range(...)` inside of it\n"
    );
    let database = outcome.database();
    let mut messages: Vec<String> = database
        .rows("SELECT json_extract(extdata, '$.message') AS message FROM rocpd_event WHERE message IS NOT NULL")
        .into_iter()
        .flatten()
        .collect();
    messages.sort_unstable();
    let expected = [
        "a moment",
        "decorated",
        "outer α",
        "process",
        "pushed",
        "resumed",
        // Control is recorded as such.
        "roctxProfilerPause",
        "roctxProfilerResume",
        "roctxProfilerResume",
    ];
    assert_eq!(messages, expected);
    assert_eq!(
        database.number("SELECT count(*) FROM regions WHERE name = 'hipGetDeviceCount'"),
        0
    );
}

const SCRIPTED: &str = r#"
import ctypes, sys
import rpd

hip = ctypes.CDLL("libamdhip64.so.6")

class Scripted:
    """Stands for a TorchScript function: it is called in C, and has a graph with places."""
    name = "step"
    graph = "graph(%x : Tensor):\n  %2 : int = prim::Constant[value=1]() # /m/step.py:12:8\n  return (%2)\n"
    __call__ = hip.hipGetDeviceCount

def train():
    return rpd.script(Scripted())(None)

train()
"#;

#[test]
fn torch_script_functions_have_frames() {
    let Some(python) = interpreters().values().next_back() else {
        return skipped("TorchScript frames", "no Python interpreter");
    };
    for python in [python, interpreters().values().next().unwrap_or(python)] {
        let options = ["--hip-trace", "--stacks", "python", "-f", "rocpd"];
        let outcome = recorded(python, &options, SCRIPTED, &[]);
        assert_eq!(
            frames(&outcome.database()),
            [
                "python step [TorchScript] step.py:12",
                "python train program.py:14",
                "python <module> program.py:16",
            ]
        );
    }
}

#[test]
fn the_python_package_does_nothing_without_the_profiler() {
    if interpreters().is_empty() {
        return skipped("the Python package alone", "no Python interpreter");
    }
    let text = "
import threading, rpd
def f(file, line): raise SystemError
assert rpd.register_generated(f) is f
with rpd.range('a'):
    rpd.mark('b'); rpd.range_push('c'); rpd.range_pop(); rpd.range_stop(rpd.range_start('d'))
rpd.pause(); rpd.resume()
assert rpd.range('e')(len)('abc') == 3
assert rpd.script(len)('abc') == 3
assert threading.active_count() == 1
print('done')
";
    for (version, python) in interpreters() {
        let output = Command::new(python)
            .args(["-W", "error", "-c", text])
            .env("PYTHONPATH", package())
            .output()
            .expect("it starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.stdout, b"done\n", "{version}: {errors}");
        assert_eq!(errors, "", "{version}");
    }
}

#[test]
fn pip_installs_the_python_package() {
    let has_pip = |python: &&PathBuf| {
        let modules = ["-m", "pip", "--version"];
        let output = Command::new(python).args(modules).output();
        output.is_ok_and(|output| output.status.success())
    };
    let Some(python) = interpreters().values().rfind(has_pip) else {
        return skipped("installing the Python package", "no Python with pip");
    };
    let directory = tempfile::tempdir().expect("a directory");
    let source = directory.path().join("source");
    let copied = Command::new("cp")
        .arg("-r")
        .arg(package())
        .arg(&source)
        .status();
    assert!(copied.expect("cp runs").success());
    let installed = directory.path().join("installed");
    let output = Command::new(python)
        .args(["-m", "pip", "install", "--no-index"])
        .args([
            "--disable-pip-version-check",
            "--root-user-action=ignore",
            "--target",
        ])
        .arg(&installed)
        .arg(&source)
        .output()
        .expect("pip runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let output = Command::new(python)
        .args(["-c", "import rpd; rpd.mark('a'); print(rpd.__file__)"])
        .env("PYTHONPATH", &installed)
        .output()
        .expect("it starts");
    let own = installed.join("rpd/__init__.py");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        own.to_str().expect("text")
    );
}
