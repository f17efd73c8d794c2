//! Call stacks of programs that are built here: through libraries without symbols, from code that is made at run time, with
//! the rights of another user; and what stacks cost.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rpd_tests::install::{rpd, simulator_dir};
use rpd_tests::outputs::Database;
use rpd_tests::run::{Outcome, Rpd, lacks, skipped, tool};

/// A temporary directory with a stub of the HIP library, and programs that are built in it.
struct Directory(tempfile::TempDir);

impl Directory {
    fn new() -> Directory {
        let directory = Directory(tempfile::tempdir().expect("a directory"));
        directory.write(
            "hip.c",
            "int hipMalloc(void) { return 0; } int hipGetLastError(void) { return 0; }\n",
        );
        directory.compile("-shared -fPIC -Wl,-soname,libamdhip64.so.6 -o libhip.so hip.c");
        directory
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("written");
    }

    fn compile(&self, words: &str) {
        let mut command = Command::new("cc");
        command.args(words.split_whitespace());
        let output = command.current_dir(self.0.path()).output();
        let output = output.expect("cc runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "cc {words}: {errors}");
    }
}

/// Source of a C function that calls itself `depth` times and then evaluates `called`.
fn nested(called: &str) -> String {
    format!(
        "static volatile int after;
static __attribute__((noinline, noclone)) int nested(int depth, int argument) {{
    int result = depth > 1 ? nested(depth - 1, argument) : {called};
    after += argument;
    return result;
}}
"
    )
}

/// Checks stacks-10.
#[test]
fn a_stack_of_158_frames_without_symbols_is_complete() {
    const FRAMES: usize = 158;
    const CONVOLUTION: usize = 40;
    if lacks("cc") {
        return;
    }
    let directory = Directory::new();
    let memory = "extern int hipMalloc(void **, unsigned long);\nstatic void *memory;\n";
    let product = "int rocblas_product(int depth) { return nested(depth, 1) + after * 0; }\n";
    directory.write(
        "blas.c",
        &[memory, &nested("hipMalloc(&memory, 64)"), product].concat(),
    );
    let used = "extern int rocblas_product(int);\n";
    let convolution = "int miopenConvolution(int depth, int inner) { return nested(depth, inner) + after * 0; }\n";
    directory.write(
        "conv.c",
        &[used, &nested("rocblas_product(argument)"), convolution].concat(),
    );
    let main = "extern int atoi(const char *);\nextern int miopenConvolution(int, int);
int main(int count, char **words) { return miopenConvolution(atoi(words[1]), atoi(words[2])) + count - 3; }\n";
    directory.write("main.c", main);
    let library = "-s -O1 -shared -fPIC -L. -Wl,-rpath,$ORIGIN";
    directory.compile(&format!(
        "{library} -Wl,-soname,librocblas.so.4 -o librocblas.so.4 blas.c -lhip"
    ));
    directory.compile(&format!(
        "{library} -Wl,-soname,libMIOpen.so.1 -o libMIOpen.so.1 conv.c -l:librocblas.so.4"
    ));
    directory.compile(
        "-O1 -L. -Wl,-rpath,$ORIGIN -Wl,--allow-shlib-undefined -o program main.c -l:libMIOpen.so.1",
    );
    let frames = |product: usize| -> Vec<String> {
        let (outer, inner) = (CONVOLUTION.to_string(), product.to_string());
        let program = directory.path("program");
        let target = [program.to_str().expect("text"), &*outer, &*inner];
        let outcome = Rpd::new([
            "--hip-trace",
            "--stacks",
            "native",
            "--stacks-depth",
            "0",
            "-f",
            "rocpd",
        ])
        .target(target)
        .success();
        let rows = outcome.database().rows(
            "SELECT frame FROM rocpd_stackstrings WHERE hip_api = 'hipMalloc' ORDER BY depth",
        );
        rows.concat()
    };
    // How many stand outside of main depends on the C library.
    let product = 1 + FRAMES - frames(1).len();
    let found = frames(product);
    assert_eq!(found.len(), FRAMES, "{found:#?}");
    assert!(found[0].contains(" in hipMalloc() at /"), "{}", found[0]);
    for (depth, frame) in found.iter().enumerate() {
        assert!(frame.starts_with(&format!("#{depth:<3} 0x")), "{frame}");
    }
    let without_symbol = |library: &str| {
        let at = format!(" at {}", directory.path(library).display());
        let is_bare = |frame: &&String| frame.ends_with(&at) && !frame.contains(" in ");
        found.iter().filter(is_bare).count()
    };
    assert_eq!(without_symbol("librocblas.so.4"), product);
    assert_eq!(without_symbol("libMIOpen.so.1"), CONVOLUTION);
    for (name, library) in [
        ("rocblas_product", "librocblas.so.4"),
        ("miopenConvolution", "libMIOpen.so.1"),
    ] {
        let named = format!(" in {name} at {}", directory.path(library).display());
        assert_eq!(
            found.iter().filter(|frame| frame.ends_with(&named)).count(),
            1,
            "{named}"
        );
    }
}

/// Distinct stacks of `hipGetLastError`: number of calls, and frames.
fn stacks_of(database: &Path) -> Vec<(u32, String)> {
    let database = database.to_str().expect("text");
    let printed = Rpd::plain([
        "stacks",
        database,
        "-f",
        "csv",
        "--whole",
        "--api",
        "hipGetLastError",
    ])
    .run()
    .success();
    let rows = printed.stdout.lines().skip(1).map(|row| {
        let calls = row.split(',').nth(1).and_then(|calls| calls.parse().ok());
        (calls.unwrap_or_else(|| panic!("{row}")), row.to_owned())
    });
    rows.collect()
}

/// Checks stacks-27.
#[test]
fn code_registered_with_debuggers_has_its_name_in_stacks() {
    let record = |symbolize: &str| -> Outcome {
        Rpd::new([
            "--hip-trace",
            "--stacks",
            "native",
            "--stacks-symbolize",
            symbolize,
            "-f",
            "rocpd",
        ])
        .workload("jit", [] as [&str; 0])
        .success()
    };
    let check = |file: &Path| {
        let stacks = stacks_of(file);
        let calls = |wanted: &dyn Fn(&str) -> bool| -> u32 {
            stacks
                .iter()
                .filter(|(_, row)| wanted(row))
                .map(|(calls, _)| calls)
                .sum()
        };
        for name in ["made_a", "made_b"] {
            // Directly inside main.
            let frame = |row: &str| {
                let (_, outer) = row.split_once(&format!(" <- {name}"))?;
                outer
                    .split(" <- ")
                    .nth(1)
                    .map(|caller| caller.starts_with("main [guessed] at "))
            };
            assert_eq!(
                calls(&|row| frame(row) == Some(true)),
                2,
                "{name}: {stacks:#?}"
            );
        }
        let inner = |row: &str| row.find(" <- made_d") < row.find(" <- through [guessed] at ");
        let both =
            |row: &str| row.contains(" <- made_d") && inner(row) && row.contains(" <- made_c");
        assert_eq!(calls(&both), 1, "{stacks:#?}");
        assert_eq!(calls(&|row| row.contains("made_")), 5, "{stacks:#?}");
        assert_eq!(calls(&|_| true), 8, "{stacks:#?}");
        let evidence = Database::open(file).rows(
            "SELECT f.evidence, count(*) FROM rpd_frame f JOIN rpd_location l ON l.id = f.location_id
                WHERE l.kind = 'jit' GROUP BY 1 ORDER BY 1",
        );
        assert_eq!(evidence, [["jit interface", "4"], ["none", "1"]]);
    };
    check(&record("stop").file(".db"));
    let outcome = record("post");
    let file = outcome.file(".db");
    // Names of such code are there already, which does not keep the others from being looked up.
    let early = stacks_of(&file);
    assert!(
        early.iter().all(|(_, row)| row.contains(",innermost at ")),
        "{early:#?}"
    );
    let _ = Rpd::plain(["symbolize".as_ref(), file.as_os_str()])
        .run()
        .success();
    check(&file);
}

#[test]
fn stacks_from_rpdt_stackframes_begin_at_the_call_site() {
    let outcome = Rpd::new(["--hip-trace", "-f", "rocpd"])
        .env("RPDT_STACKFRAMES", "1")
        .workload("stacks", ["kinds"])
        .success();
    let file = outcome.file(".db");
    let database = file.to_str().expect("text");
    let rows = |options: &[&str]| {
        let arguments = [
            &["stacks", database, "-f", "csv", "--api", "hipMalloc"],
            options,
        ]
        .concat();
        let printed = Rpd::plain(arguments).run().success().stdout;
        printed.lines().nth(1).expect("a row").to_owned()
    };
    assert!(rows(&[]).contains(",allocate at "), "{}", rows(&[]));
    // As that variable has it, whole stacks begin in the runtime.
    for options in [["--whole"], ["--runtime-frames"]] {
        assert!(rows(&options).contains(",hipMalloc"), "{}", rows(&options));
        assert!(
            !rows(&options).contains(",allocate at "),
            "{}",
            rows(&options)
        );
    }
}

/// A program that the loader gives another user's rights. It names the simulator's directory itself, because the loader takes no
/// directories from the environment then; the runtime takes the profiler's libraries from there all the same.
/// Checks stacks-54.
#[test]
fn a_program_with_rights_of_another_user_is_refused() {
    const NOBODY: u32 = 65534;
    const SOURCE: &str = "#include <stdio.h>
#include <sys/auxv.h>
extern int hipGetLastError(void);
int main(void) { hipGetLastError(); return printf(\"secure %lu\\n\", getauxval(AT_SECURE)) < 0; }
";
    // SAFETY: takes nothing, cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return skipped(
            "stacks of a program with the rights of another user",
            "not root",
        );
    }
    if lacks("cc") {
        return;
    }
    let directory = Directory::new();
    let set_mode = |path: &Path, mode: u32| {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
    };
    directory.write("main.c", SOURCE);
    let simulator = simulator_dir().display();
    directory.compile(&format!(
        "-O1 -L. -Wl,-rpath,{simulator} -o program main.c -lhip"
    ));
    set_mode(&directory.path("program"), 0o4755);
    set_mode(directory.0.path(), 0o777);
    let run = |command: &mut Command| {
        let output = command
            .current_dir(directory.0.path())
            .uid(NOBODY)
            .gid(NOBODY)
            .output();
        output.map(|output| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            (
                output.status.code(),
                text(&output.stdout),
                text(&output.stderr),
            )
        })
    };
    let bare = run(&mut Command::new(directory.path("program")));
    let Ok((Some(0), stdout, bare_errors)) = bare else {
        return skipped(
            "stacks of a program with the rights of another user",
            &format!("{bare:?}"),
        );
    };
    if stdout != "secure 1\n" {
        return skipped(
            "stacks of a program with the rights of another user",
            "the file system takes the rights away",
        );
    }
    let options = [
        "--backend",
        "sim",
        "--hip-trace",
        "--stacks",
        "native",
        "-d",
        "out",
        "--",
    ];
    // A home directory, and all below it, may be closed to others.
    if let Err(error) = run(Command::new(&*rpd()).arg("--version")) {
        return skipped(
            "stacks of a program with the rights of another user",
            &format!("another user cannot run {}: {error}", rpd().display()),
        );
    }
    let mut command = Command::new(&*rpd());
    let traced = run(command.args(options).arg(directory.path("program")));
    let (status, stdout, errors) = traced.expect("rpd runs");
    assert_eq!((status, &*stdout), (Some(0), "secure 1\n"), "{errors}");
    let said = "program: nothing was recorded: the collector cannot be loaded into it: it is a set-user-id or set-group-id program\n";
    assert!(errors.ends_with(said), "{errors}");
    assert!(errors.starts_with(&bare_errors), "{bare_errors}{errors}");
    let left: Vec<_> = fs::read_dir(directory.path("out"))
        .map(Iterator::collect)
        .unwrap_or_default();
    assert!(left.is_empty(), "{left:?}");
}

/// Prints how many nanoseconds of processor time a call takes, 60 frames deep, in the best of many short batches.
const TIMED: &str = "import ctypes, time
call = ctypes.CDLL('libamdhip64.so.6').hipGetLastError
def batch():
    start = time.thread_time_ns()
    for _ in range(2000):
        call()
    return time.thread_time_ns() - start
def nested(depth):
    return nested(depth - 1) if depth else min(batch() for _ in range(100)) / 2000
print(nested(26))
";

/// Checks stacks-97.
#[test]
#[ignore = "a measurement: cargo xtask ci --long"]
fn a_stack_of_60_frames_costs_less_than_its_limit() {
    /// Nanoseconds for a call.
    const MOST: f64 = 600.0;
    let Some(python) = tool("python3") else {
        return skipped("the cost of merged stacks", "no python3");
    };
    let directory = tempfile::tempdir().expect("a directory");
    let script = directory.path().join("timed.py");
    fs::write(&script, TIMED).expect("written");
    let cost = |mode: &str| -> f64 {
        let outcome = Rpd::new(["--hip-trace", "--stacks", mode, "-f", "rocpd"])
            .target([python.as_os_str(), script.as_os_str()])
            .success();
        outcome.stdout.trim().parse().expect("a number")
    };
    let added = cost("merged") - cost("off");
    println!("a merged stack takes {added:.0} ns");
    assert!(added < MOST, "{added}");
}
