//! The examples of RPD's guide to stack frames on real programs, and queries of their call stacks.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rpd_tests::outputs::Database;
use rpd_tests::run::{Outcome, Rpd, lacks, skipped, tool};

/// The view of the guide, as it stands there.
pub(crate) const GUIDE: &str = "create temporary view if not exists rocpd_stackstrings as select sf.id, s2.string as hip_api, \
    s3.string as args, sf.depth, s1.string as frame from rocpd_stackframe sf join rocpd_string s1 on sf.name_id=s1.id \
    join rocpd_api ap on sf.api_ptr_id=ap.id join rocpd_string s2 on ap.apiName_id=s2.id join rocpd_string s3 on \
    ap.args_id=s3.id;";

const HEADER: &str = "#include <cstddef>
extern \"C\" int hipMalloc(void **, size_t);
extern \"C\" int hipMemcpy(void *, const void *, size_t, int);
extern \"C\" int hipFree(void *);
template <typename T> __attribute__((always_inline)) inline int hipMalloc(T **pointer, size_t size) {
    return hipMalloc(reinterpret_cast<void **>(pointer), size);
}
";

const PROGRAM: &str = "#include <hip/hip_runtime_api.h>
static volatile int after;
__attribute__((noinline)) int main_foo(int, char **) {
    static unsigned host[32768];
    unsigned *device = nullptr, *lost = nullptr;
    if (hipMalloc(&device, sizeof host) != 0) return 1;
    if (hipMemcpy(device, host, sizeof host, 1) != 0) return 2;
    if (hipMalloc(&lost, 4096) != 0) return 3;
    if (hipMemcpy(host, device, sizeof host, 2) != 0) return 4;
    if (hipFree(device) != 0) return 5;
    after = 1;
    return 0;
}
int main(int count, char **words) {
    int status = main_foo(count, words);
    after = 2;
    return status;
}
";

const EXTENSION: &str = "#include <hip/hip_runtime_api.h>
static volatile int after;
namespace store { __attribute__((noinline)) int allocate(void **place) {
    int status = hipMalloc(place, 512);
    after = 1;
    return status;
} }
extern \"C\" int wrap_allocate(void **place) {
    int status = store::allocate(place);
    after = 2;
    return status;
}
";

const SCRIPT: &str = "import ctypes, sys
library = ctypes.CDLL(sys.argv[1])

def inner():
    place = ctypes.c_void_p()
    return library.wrap_allocate(ctypes.byref(place))

def outer():
    return inner()

sys.exit(outer())
";

fn command(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Sources and what was made of them.
struct Built(tempfile::TempDir);

impl Built {
    fn new(source: &str, options: &[&str]) -> Built {
        let built = Built(tempfile::tempdir().expect("a directory"));
        let write = |name: &str, text: &str| {
            std::fs::write(built.path(name), text).expect("written");
        };
        std::fs::create_dir_all(built.path("include/hip")).expect("made");
        write("include/hip/hip_runtime_api.h", HEADER);
        write("main.cpp", source);
        write(
            "runtime.c",
            "int hipMalloc(void) { return 0; } int hipMemcpy(void) { return 0; } int hipFree(void) { return 0; }\n",
        );
        let (library, program) = (built.text("libhip.so"), built.text("program"));
        let soname = "-Wl,-soname,libamdhip64.so.6";
        command(
            "cc",
            &[
                "-shared",
                "-fPIC",
                soname,
                "-o",
                &library,
                &built.text("runtime.c"),
            ],
        );
        let source = built.text("main.cpp");
        let include = built.text("include");
        let mut all = vec![
            "-I",
            &include,
            "-O2",
            "-Wl,--build-id",
            "-o",
            &program,
            &source,
            &library,
        ];
        all.extend(options);
        command("c++", &all);
        built
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().expect("text").to_owned()
    }
}

fn recorded(mode: &str, target: &[&str]) -> Outcome {
    Rpd::new([
        "--hip-runtime-trace",
        "--memory-copy-trace",
        "--memory-allocation-trace",
        "--stacks",
        mode,
        "-f",
        "rocpd",
    ])
    .target(target)
    .success()
}

fn rpd(arguments: &[&str]) -> Outcome {
    Rpd::plain(arguments).run().success()
}

/// The rows of the guide's view.
fn guide(database: &Path, condition: &str) -> Vec<Vec<String>> {
    let database = Database::open(database);
    database.0.execute_batch(GUIDE).expect("the guide's view");
    database.rows(&format!(
        "select hip_api, depth, frame, args from rocpd_stackstrings where {condition} order by id"
    ))
}

fn line_of(source: &str, text: &str) -> usize {
    let found = source.lines().position(|line| line.contains(text));
    found.expect("a line") + 1
}

/// Checks stacks-1, stacks-2, stacks-4, stacks-5 and stacks-13.
#[test]
fn stacks_of_a_cpp_program_have_the_rows_of_the_guide() {
    if tool("c++").is_none() {
        return skipped("call stacks of C++ programs", "no c++");
    }
    let built = Built::new(PROGRAM, &["-g"]);
    let outcome = recorded("native", &[&built.text("program")]);
    let path = outcome.file("_results.db");
    let rows = guide(&path, "hip_api = 'hipMalloc'");
    let first: Vec<&Vec<String>> = rows
        .iter()
        .take(1)
        .chain(rows[1..].iter().take_while(|row| row[1] != "0"))
        .collect();
    let frame = |depth: usize| first[depth][2].as_str();
    assert!(frame(0).starts_with("#0 0x"), "{rows:?}");
    assert!(
        frame(0)[21..].starts_with(" in hipMalloc() at /"),
        "{rows:?}"
    );
    assert!(first[0][3].contains(" | size=0x20000"), "{rows:?}");
    let header = built.text("include/hip/hip_runtime_api.h");
    let inlined = format!(
        "#1 (inlined)          in int hipMalloc<unsigned int>(unsigned int**, unsigned long) at {header}:6:"
    );
    assert!(frame(1).starts_with(&inlined), "{rows:?}");
    let line = line_of(PROGRAM, "hipMalloc(&device");
    let place = format!(
        " in main_foo(int, char**) at {}:{line}:",
        built.text("main.cpp")
    );
    assert!(
        frame(2).starts_with("#2 0x") && frame(2).contains(&place),
        "{rows:?}"
    );
    assert!(frame(3).contains(" in main at "), "{rows:?}");
    let depths: Vec<&str> = first.iter().map(|row| row[1].as_str()).collect();
    let expected: Vec<String> = (0..first.len()).map(|depth| depth.to_string()).collect();
    assert_eq!(depths, expected);

    // Two stacks end in hipMemcpy, at two lines.
    let copies = guide(&path, "hip_api like 'hipMemcpy%' and depth = 1");
    let lines: Vec<usize> = ["hipMemcpy(device", "hipMemcpy(host"]
        .map(|text| line_of(PROGRAM, text))
        .to_vec();
    assert_eq!(copies.len(), 2);
    for (row, line) in copies.iter().zip(lines) {
        assert!(row[2].contains(&format!("main.cpp:{line}:")), "{row:?}");
        assert_eq!(row[3], "");
    }
}

/// Checks stacks-8 and stacks-95.
#[test]
fn stacks_through_python_bindings_have_the_rows_of_the_guide() {
    if tool("c++").is_none() {
        return skipped("call stacks of C++ programs", "no c++");
    }
    let built = Built::new(EXTENSION, &["-g", "-shared", "-fPIC"]);
    let script = built.path("main.py");
    std::fs::write(&script, SCRIPT).expect("written");
    if tool("python3").is_none() {
        return skipped("Python over a C++ extension", "no python3");
    }
    let python = command("python3", &["-c", "import sys; print(sys.executable)"]);
    let script = script.to_str().expect("text");
    let outcome = recorded("merged", &[&python, script, &built.text("program")]);
    let rows = guide(&outcome.file("_results.db"), "hip_api = 'hipMalloc'");
    let frames: Vec<&str> = rows.iter().map(|row| row[2].as_str()).collect();
    let position = |text: &str| {
        let found = frames.iter().position(|frame| frame.contains(text));
        found.unwrap_or_else(|| panic!("{text}: {frames:#?}"))
    };
    let native = position(" in store::allocate(void**) at ");
    let wrapper = position(" in wrap_allocate at ");
    let line = |text| line_of(SCRIPT, text);
    let inner = position(&format!("in inner at {script}:{}", line("library.wrap")));
    let outer = position(&format!("in outer at {script}:{}", line("return inner()")));
    let module = position(&format!("in <module> at {script}:{}", line("sys.exit")));
    assert!(native < wrapper && wrapper < inner, "{frames:#?}");
    assert_eq!((outer, module), (inner + 1, inner + 2), "{frames:#?}");
    assert!(
        frames[inner].contains("(python)           in "),
        "{frames:#?}"
    );

    let database = outcome.file("_results.db");
    let database = database.to_str().expect("text");
    let folded = rpd(&["flame", database, "-f", "folded", "--python-only"]).stdout;
    for (command, said) in [
        (
            "flame",
            "rpd: flame: no stack has calls; choose another --weight or --api\n",
        ),
        (
            "stacks",
            "rpd: stacks: --api nothing*: no call of such a name has a stack; without --api all calls are shown\n",
        ),
    ] {
        let refused = Rpd::plain([command, database, "--api", "nothing*"]).run();
        assert_eq!((refused.code(), &*refused.stdout), (1, ""));
        assert_eq!(refused.stderr, said);
    }
    assert!(
        folded.contains("<module>;outer;inner;hipMalloc 1\n"),
        "{folded}"
    );
    assert!(!folded.contains("wrap_allocate"), "{folded}");
}

/// Checks stacks-6.
#[test]
fn stacks_of_a_stripped_program_are_completed_by_symbolize() {
    if tool("c++").is_none() {
        return skipped("call stacks of C++ programs", "no c++");
    }
    let built = Built::new(PROGRAM, &["-g"]);
    let (program, debug) = (built.text("program"), built.text("program.debug"));
    command("objcopy", &["--only-keep-debug", &program, &debug]);
    command("objcopy", &["--strip-all", &program]);
    let outcome = recorded("native", &[&program]);
    let path = outcome.file("_results.db");
    let database = path.to_str().expect("text");
    let own = |rows: &[Vec<String>]| -> Vec<String> {
        let frames = rows.iter().map(|row| row[2].clone());
        frames
            .filter(|frame| frame.contains(&program) || frame.contains("main.cpp"))
            .collect()
    };
    // Without symbols there are addresses and the file.
    let before = own(&guide(&path, "hip_api = 'hipFree'"));
    assert!(!before.is_empty());
    for frame in &before {
        assert!(frame.ends_with(&format!(" at {program}")), "{before:?}");
        assert!(!frame.contains(" in "), "{before:?}");
    }
    let stacks = "select distinct stack_id from rpd_api_stack order by 1";
    let ids = Database::open(&path).rows(stacks);
    // Debug information is installed later.
    let aside = built.path("symbols");
    std::fs::create_dir(&aside).expect("made");
    std::fs::rename(&debug, aside.join("program.debug")).expect("moved");
    let aside = aside.to_str().expect("text");
    rpd(&["symbolize", database, "--debug-dir", aside]);
    let after = own(&guide(&path, "hip_api = 'hipFree'"));
    let line = line_of(PROGRAM, "hipFree(device)");
    assert!(
        after[0].contains(&format!(
            " in main_foo(int, char**) at {}:{line}:",
            built.text("main.cpp")
        )),
        "{after:?}"
    );
    assert_eq!(Database::open(&path).rows(stacks), ids);
}

#[test]
fn stacks_shows_calls_and_bytes_at_each_call_site() {
    if tool("c++").is_none() {
        return skipped("call stacks of C++ programs", "no c++");
    }
    let built = Built::new(PROGRAM, &["-g"]);
    let outcome = recorded("native", &[&built.text("program")]);
    let path = outcome.file("_results.db");
    let database = path.to_str().expect("text");
    let main = built.text("main.cpp");
    let place = |text: &str| format!("main_foo(int, char**) at {main}:{}", line_of(PROGRAM, text));
    let table = rpd(&["stacks", database, "--api", "hipMemcpy*", "-f", "csv"]).stdout;
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 3, "{table}");
    assert_eq!(
        lines[0],
        "Function,Calls,CPU time (nsec),GPU time (nsec),Bytes,Call site"
    );
    for text in ["hipMemcpy(device", "hipMemcpy(host"] {
        let row = lines.iter().find(|line| line.contains(&place(text)));
        let row = row.unwrap_or_else(|| panic!("{text}: {table}"));
        assert!(row.starts_with("hipMemcpy,1,"), "{row}");
    }
    // In the first copy the runtime allocates memory of its own.
    let second = lines
        .iter()
        .find(|line| line.contains(&place("hipMemcpy(host")));
    assert!(
        second.is_some_and(|row| row.contains(",131072,")),
        "{table}"
    );
}

#[test]
fn stacks_shows_unfreed_and_peak_memory() {
    if tool("c++").is_none() {
        return skipped("call stacks of C++ programs", "no c++");
    }
    let built = Built::new(PROGRAM, &["-g"]);
    let outcome = recorded("native", &[&built.text("program")]);
    let path = outcome.file("_results.db");
    let database = path.to_str().expect("text");
    let main = built.text("main.cpp");
    let place = |text: &str| format!("main_foo(int, char**) at {main}:{}", line_of(PROGRAM, text));
    let leaks = rpd(&["stacks", database, "--leaks", "-f", "csv"]).stdout;
    let lost: Vec<&str> = leaks
        .lines()
        .filter(|line| line.contains(",hipMalloc,"))
        .collect();
    assert_eq!(lost.len(), 1, "{leaks}");
    assert!(lost[0].starts_with("4096,1,"), "{leaks}");
    assert!(lost[0].contains(&place("hipMalloc(&lost")), "{leaks}");
    let memory = rpd(&["stacks", database, "--memory", "--points", "4", "-f", "csv"]).stdout;
    let peak = memory
        .lines()
        .any(|line| line.contains(",131072,131072,hipMalloc,"));
    assert!(peak, "{memory}");
    let last = memory
        .lines()
        .rfind(|line| line.contains(&place("hipMalloc(&lost")));
    assert!(
        last.is_some_and(|line| line.contains(",4096,4096,")),
        "{memory}"
    );
}

/// Checks stacks-94.
#[test]
fn flame_weights_add_up_to_calls_and_gpu_time() {
    if tool("c++").is_none() {
        return skipped("call stacks of C++ programs", "no c++");
    }
    let built = Built::new(PROGRAM, &["-g"]);
    let outcome = recorded("native", &[&built.text("program")]);
    let path = outcome.file("_results.db");
    let database = path.to_str().expect("text");
    let folded = |options: &[&str]| {
        let mut all = vec!["flame", database, "-f", "folded"];
        all.extend(options);
        let text = rpd(&all).stdout;
        let weight = |line: &str| line.rsplit(' ').next()?.parse::<i64>().ok();
        text.lines().filter_map(weight).sum::<i64>()
    };
    let data = Database::open(&path);
    let calls = data.number("select count(*) from rpd_api_stack join rocpd_api on id = api_id");
    assert_eq!(folded(&[]), calls);
    assert_eq!(folded(&["--invert"]), calls);
    let gpu = data.number("select sum(\"end\" - start) from rocpd_memory_copy");
    assert_eq!(folded(&["--weight", "gpu"]), gpu);
}

/// Checks stacks-47 and stacks-93.
#[test]
fn an_exported_rpd_file_has_the_rows_of_the_stack_view() {
    if tool("c++").is_none() {
        return skipped("call stacks of C++ programs", "no c++");
    }
    let built = Built::new(PROGRAM, &["-g"]);
    let outcome = recorded("native", &[&built.text("program")]);
    let path = outcome.file("_results.db");
    let output = built.path("out.rpd");
    rpd(&[
        "export",
        path.to_str().expect("text"),
        "--rpd",
        output.to_str().expect("text"),
    ]);
    let exported = guide(&output, "1");
    assert_eq!(exported, guide(&path, "1"));
    assert!(!exported.is_empty());
    let file = Database::open(&output);
    assert_eq!(
        file.rows("select count(*) from rocpd_stackframe"),
        [[exported.len().to_string()]]
    );
    assert_eq!(
        file.rows("select apiName, opType from rocpd_api_ops x join api a on a.id = x.api_id join op o on o.id = x.op_id"),
        [["hipMemcpy", "CopyHostToDevice"], ["hipMemcpy", "CopyDeviceToHost"]]
    );
    assert_eq!(
        file.rows("select value from rocpd_metadata where tag = 'schema_version'"),
        [["3"]]
    );
    assert_eq!(
        file.number("select count(*) from stackframe"),
        exported.len() as i64
    );
    // Cut to nothing, no frames are left behind.
    rpd(&[
        "export",
        path.to_str().expect("text"),
        "--rpd",
        output.to_str().expect("text"),
        "--start",
        "1",
        "--end",
        "2",
    ]);
    let file = Database::open(&output);
    assert_eq!(file.number("select count(*) from rocpd_stackframe"), 0);
    assert_eq!(file.number("select count(*) from rocpd_api"), 0);
}

/// `rpd stacks` and `rpd flame` on files of RPD (stacks-12): in stacks of ten frames and more RPD puts the last digits of the
/// call's address after its name.
#[test]
fn stacks_and_flame_answer_equally_from_rpd_files() {
    if lacks("c++") || lacks("python3") {
        return;
    }
    let built = Built::new(PROGRAM, &["-g"]);
    let outcome = recorded("native", &[&built.text("program")]);
    let database = outcome.file("_results.db").display().to_string();
    let file = built.text("out.rpd");
    rpd(&["export", &database, "--rpd", &file]);
    let folded = |path: &str, weight: &str| {
        let text = rpd(&["flame", path, "-f", "folded", "--weight", weight]).stdout;
        assert!(text.contains("main_foo(int, char**);"), "{text}");
        // Where no function is known a database has the offset in the module.
        let lines = text.lines().map(|line| match line.split_once("+0x") {
            Some((before, after)) => {
                let rest = after.trim_start_matches(|letter: char| letter.is_ascii_hexdigit());
                format!("{before}{rest}")
            }
            None => line.to_owned(),
        });
        lines.collect::<Vec<_>>()
    };
    for weight in ["calls", "cpu", "gpu"] {
        assert_eq!(folded(&file, weight), folded(&database, weight), "{weight}");
    }
    let table = |path: &str| rpd(&["stacks", path, "--api", "hipMalloc", "-f", "csv"]).stdout;
    let (of_file, of_database) = (table(&file), table(&database));
    let rows = |text: &str| {
        let rows = text.lines().map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            // Sizes of allocations are not in files of RPD.
            [&cells[..4], &cells[5..]].concat().join(",")
        });
        rows.collect::<Vec<_>>()
    };
    assert_eq!(rows(&of_file), rows(&of_database));

    let displaced = "import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
names = db.execute('SELECT DISTINCT name_id FROM rocpd_stackframe WHERE depth = 0').fetchall()
text = '#0  0x00007b9a4550e1c in hipMalloc()1 at /opt/rocm/lib/libamdhip64.so.6'
db.executemany('UPDATE rocpd_string SET string = ? WHERE id = ?', [(text, name) for (name,) in names])
db.commit()
";
    command("python3", &["-c", displaced, &file]);
    assert_eq!(folded(&file, "calls"), folded(&database, "calls"));

    let refused = Rpd::plain(["stacks", &file, "--leaks"]).run();
    assert_eq!(refused.code(), 2, "{}", refused.stderr);
    assert_eq!(
        refused.stderr,
        format!(
            "rpd: stacks: --kernels, --leaks and --memory need databases of rpd, and {file} is a file of RPD\n"
        )
    );
    let refused = Rpd::plain(["flame", &file, "--start", "10%"]).run();
    assert_eq!(refused.code(), 2, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("is a file of RPD"),
        "{}",
        refused.stderr
    );
}

#[test]
fn stacks_and_flame_without_stacks_name_the_option() {
    let outcome = Rpd::new(["--hip-runtime-trace", "-f", "rocpd"])
        .workload("regions", [] as [&str; 0])
        .success();
    let path = outcome.file("_results.db");
    let database = path.to_str().expect("text");
    for words in [&["stacks", database][..], &["flame", database]] {
        let refused = Rpd::plain(words).run();
        assert_eq!(refused.code(), 1, "{}", refused.stderr);
        assert!(
            refused
                .stderr
                .contains("holds no call stacks; record with --stacks native, python or merged"),
            "{}",
            refused.stderr
        );
    }
}

/// Servers for debug information are queried by `rpd symbolize`, and not at the end of a run.
#[test]
fn symbolize_alone_queries_debuginfod() {
    if tool("c++").is_none() {
        return skipped("call stacks of C++ programs", "no c++");
    }
    let built = Built::new(PROGRAM, &["-g"]);
    let (program, debug) = (built.text("program"), built.text("found.debug"));
    command("objcopy", &["--only-keep-debug", &program, &debug]);
    command("objcopy", &["--strip-all", &program]);
    let (client, log) = (built.path("debuginfod-find"), built.text("asked"));
    let script = format!(
        "#!/bin/sh\necho \"$@\" >> '{log}'\n[ \"$(readelf -n '{program}' | grep -c \"$2\")\" = 1 ] && echo '{debug}'\n"
    );
    std::fs::write(&client, script).expect("written");
    std::fs::set_permissions(&client, std::fs::Permissions::from_mode(0o755)).expect("set");
    let path = format!(
        "{}:{}",
        built.0.path().display(),
        std::env::var("PATH").expect("PATH")
    );
    let with_servers = |command: Rpd| {
        let command = command.env("DEBUGINFOD_URLS", "http://localhost:1");
        command.env("PATH", &path)
    };
    let options = ["--hip-runtime-trace", "--stacks", "native", "-f", "rocpd"];
    let outcome = with_servers(Rpd::new(options)).target([&program]).success();
    assert!(!Path::new(&log).exists());

    let database = outcome.file("_results.db");
    let database = database.to_str().expect("text");
    let arguments = ["symbolize", database];
    let _ = with_servers(Rpd::plain(arguments)).run().success();
    let asked = std::fs::read_to_string(&log).expect("a log");
    assert!(asked.starts_with("debuginfo "), "{asked}");
    let frames = guide(Path::new(database), "hip_api = 'hipFree'");
    assert!(
        frames
            .iter()
            .any(|row| row[2].contains(" in main_foo(int, char**) at ")),
        "{frames:?}"
    );

    // A server that never answers.
    std::fs::write(&client, "#!/bin/sh\nexec sleep 1000\n").expect("written");
    let late = with_servers(Rpd::plain(arguments)).env("DEBUGINFOD_MAXTIME", "1");
    let late = late.run().success();
    let expected = "debuginfod-find had no answer within 1 s: its servers are not asked any more";
    assert!(late.stderr.contains(expected), "{}", late.stderr);
}
