//! Tests of the library between a registration library, an SDK and a collector. These are written in C, and print the
//! calls that they get.
//!
//! `RPD_TEST_REGISTRATION` may name a `librocprofiler-register.so.0` of ROCm, which then takes the place of the one here.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The directory with everything that was built:
///
/// - `rpd`: the library, and a collector beside it;
/// - `lib`: the registration library and the SDK; `old`, `new`: an SDK without `rocprofiler_force_configure`, one with the
///   functions to attach; `empty`: a library under the SDK's name that is none;
/// - programs and tools.
fn directory() -> &'static Path {
    static BUILT: OnceLock<tempfile::TempDir> = OnceLock::new();
    BUILT
        .get_or_init(|| build().expect("the directory can be written"))
        .path()
}

fn build() -> std::io::Result<tempfile::TempDir> {
    let temporary = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let directory = temporary.path();
    for name in ["rpd", "lib", "old", "new", "empty"] {
        std::fs::create_dir(directory.join(name))?;
    }
    std::fs::copy(library(), directory.join("rpd/librpd_register.so"))?;
    let compile = |source: &str, output: &str, flags: &[&str]| {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/binding");
        let status = Command::new("cc")
            .args(["-O1", "-g1", "-Wall", "-Wextra", "-Werror", "-pthread"])
            .arg(sources.join(source))
            .arg("-o")
            .arg(directory.join(output))
            .arg(format!("-L{}", directory.join("lib").display()))
            .args(flags)
            .arg("-ldl")
            .status()
            .expect("a C compiler");
        assert!(status.success(), "{output}");
    };
    let shared = ["-shared", "-fPIC"];
    let with = |flags: &[&'static str]| [&shared, flags].concat();
    let soname = "-Wl,-soname,librocprofiler-sdk.so.1";
    compile(
        "tool.c",
        "rpd/librpd_collect.so",
        &with(&["-DCOLLECTOR", "-DNAME=\"collector\""]),
    );
    compile("tool.c", "tool.so", &with(&["-DNAME=\"tool\""]));
    match std::env::var_os("RPD_TEST_REGISTRATION") {
        Some(real) => {
            std::fs::copy(real, directory.join("lib/librocprofiler-register.so.0"))?;
        }
        None => compile(
            "registration.c",
            "lib/librocprofiler-register.so.0",
            &with(&["-Wl,-soname,librocprofiler-register.so.0"]),
        ),
    }
    let sdk = "librocprofiler-sdk.so.1";
    compile("sdk.c", &format!("lib/{sdk}"), &with(&[soname]));
    compile(
        "sdk.c",
        &format!("old/{sdk}"),
        &with(&[soname, "-DWITHOUT_FORCE"]),
    );
    compile(
        "sdk.c",
        &format!("new/{sdk}"),
        &with(&[soname, "-DWITH_ATTACH"]),
    );
    compile("sdk.c", "other-sdk.so", &with(&["-DNAME=\"other sdk\""]));
    compile("registration.c", &format!("empty/{sdk}"), &with(&[]));
    for directory in ["lib", "old", "new", "empty"].map(|name| directory.join(name)) {
        std::os::unix::fs::symlink(sdk, directory.join("librocprofiler-sdk.so"))?;
    }
    let register = "-l:librocprofiler-register.so.0";
    compile("program.c", "program", &[register]);
    compile(
        "program.c",
        "with-tool",
        &[register, "-DOWN_TOOL", "-rdynamic"],
    );
    compile(
        "program.c",
        "with-sdk",
        &[register, "-Wl,--no-as-needed", "-l:librocprofiler-sdk.so.1"],
    );
    Ok(temporary)
}

/// The built library: beside the directory of the test programs, or in it.
fn library() -> PathBuf {
    let program = std::env::current_exe().expect("the test's own path");
    let candidates = program.ancestors().skip(1).take(2);
    candidates
        .map(|directory| directory.join("librpd_register.so"))
        .filter(|path| path.exists())
        .max_by_key(|path| path.metadata().and_then(|found| found.modified()).ok())
        .expect("cargo builds the library before its tests")
}

/// A command that starts a program under the library.
struct Start {
    command: Command,
}

impl Start {
    /// Starts a program as rpd does: the library is preloaded and named, and so is the SDK.
    fn new(program: &str, words: &[&str]) -> Start {
        let mut start = Start::plain(program, words);
        start.set("LD_PRELOAD", "rpd/librpd_register.so");
        start.set("ROCPROFILER_REGISTER_LIBRARY", "rpd/librpd_register.so");
        start.set("RPD_SDK", "lib/librocprofiler-sdk.so.1");
        start
    }

    fn plain(program: &str, words: &[&str]) -> Start {
        let mut command = Command::new(directory().join(program));
        command
            .args(words)
            .env("LD_LIBRARY_PATH", directory().join("lib"));
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("ROC") || name.starts_with("RPD") {
                command.env_remove(&*name);
            }
        }
        Start { command }
    }

    /// Sets a variable to a path within the directory.
    fn set(&mut self, name: &str, path: &str) {
        self.command.env(name, directory().join(path));
    }

    fn with(mut self, name: &str, value: &str) -> Start {
        self.command
            .env(name, value.replace('@', &directory().display().to_string()));
        self
    }

    fn without(mut self, name: &str) -> Start {
        self.command.env_remove(name);
        self
    }

    /// Runs the program, which must end with `status`. Returns the lines that it and the libraries print, with `@`
    /// for the path of the directory.
    fn printed(mut self, status: i32) -> Vec<String> {
        let output = self.command.output().expect("starts");
        let text = String::from_utf8_lossy(&output.stdout)
            .replace(&directory().display().to_string(), "@");
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{text}{error}");
        text.lines().map(str::to_owned).collect()
    }
}

/// The status with which the program returns from `main`.
const RETURNED: i32 = 5;

#[test]
fn binding_forces_the_collector_and_forwards_tables() {
    assert_eq!(
        Start::new(
            "program",
            &["visible", "hsa", "hip", "hip", "visible", "list"]
        )
        .printed(RETURNED),
        [
            "collector: loaded",
            "program: sees no rocprofiler_configure",
            "sdk: forced",
            "collector: configured by 10000 as 0",
            "collector: initialized",
            "sdk: hsa 0, version 70000, 1 table(s)",
            "sdk: call",
            "sdk: hip 0, version 70000, 1 table(s)",
            "sdk: call",
            "sdk: hip 1, version 70000, 1 table(s)",
            "sdk: call",
            "program: sees no rocprofiler_configure",
            "program: tools none",
            "collector: end",
            "program: after main",
        ]
    );
}

#[test]
fn collector_that_takes_tables_needs_no_sdk() {
    let start = || Start::new("program", &["hsa", "hip", "hip"]).with("TAKES", "1");
    let expected = [
        "collector: loaded",
        "collector: asked for hsa, version 70000, 1 table(s)",
        "collector: takes hsa 0, 1 table(s)",
        "program: call",
        "collector: takes hip 0, 1 table(s)",
        "program: call",
        "collector: takes hip 1, 1 table(s)",
        "program: call",
        "collector: end",
        "program: after main",
    ];
    assert_eq!(start().printed(RETURNED), expected);
    let without_sdk = start().with("RPD_SDK", "/proc/nonexistent/sdk.so");
    assert_eq!(without_sdk.printed(RETURNED), expected);
    let declined = Start::new("program", &["hsa"]).with("TAKES", "0");
    assert_eq!(declined.printed(RETURNED)[2], "sdk: forced");
    let with_tool = Start::new("with-tool", &["hsa"]).with("TAKES", "0");
    let printed = with_tool.printed(RETURNED);
    let asked = "collector: asked for hsa, version 70000, 1 table(s), other tool".to_owned();
    assert!(printed.contains(&asked), "{printed:?}");
}

#[test]
fn program_without_the_preload_is_recorded() {
    let printed = Start::new("program", &["hip"])
        .without("LD_PRELOAD")
        .printed(RETURNED);
    assert_eq!(
        printed,
        [
            "collector: loaded",
            "sdk: forced",
            "collector: configured by 10000 as 0",
            "collector: initialized",
            "sdk: hip 0, version 70000, 1 table(s)",
            "sdk: call",
            "program: after main",
        ]
    );
}

#[test]
fn tables_are_only_forwarded_without_rpd() {
    let printed = Start::new("program", &["hip"])
        .without("RPD_SDK")
        .printed(RETURNED);
    assert_eq!(
        printed,
        [
            "sdk: hip 0, version 70000, 1 table(s)",
            "sdk: call",
            "program: after main"
        ]
    );
    let printed = Start::plain("program", &["hip"]).printed(RETURNED);
    assert_eq!(
        printed[0], "program: hip is refused: 1",
        "no tools: {printed:?}"
    );
}

#[test]
fn program_without_gpu_loads_no_sdk() {
    assert_eq!(
        Start::new("program", &[]).printed(RETURNED),
        ["collector: loaded", "collector: end", "program: after main"]
    );
    // A program that calls exit() does not return from main.
    assert_eq!(
        Start::new("program", &["exit"]).printed(0),
        ["collector: loaded", "program: after main"]
    );
}

#[test]
fn signal_handlers_are_passed_on_to_the_collector() {
    let start = || Start::new("program", &["signals"]);
    assert_eq!(
        start().printed(RETURNED)[1..3],
        ["collector: signal 10", "program: does not ignore"]
    );
    let printed = start().without("RPD_SDK").printed(RETURNED);
    assert_eq!(printed[0], "program: ignores");
}

#[test]
fn table_is_forwarded_once_for_each_name_and_instance() {
    let printed = Start::new("program", &["hsa", "rocjpeg", "replay"]).printed(RETURNED);
    assert_eq!(
        printed[4..printed.len() - 2],
        [
            "sdk: hsa 0, version 70000, 1 table(s)",
            "sdk: call",
            "sdk: rocjpeg 0, version 70000, 1 table(s)",
            "program: rocjpeg is refused: 6",
            "program: call",
            "program: replay 6",
        ]
    );
}

#[test]
fn table_that_comes_while_the_sdk_is_configured_is_forwarded() {
    let printed = Start::new("program", &["hip"])
        .with("NESTED", "1")
        .printed(RETURNED);
    assert_eq!(
        printed[1..printed.len() - 2],
        [
            "sdk: forced",
            "collector: configured by 10000 as 0",
            "collector: initialized",
            "sdk: rccl 0, version 20000, 1 table(s)",
            "collector: nested 0",
            "sdk: hip 0, version 70000, 1 table(s)",
            "sdk: call",
        ]
    );
}

#[test]
fn threads_and_forked_children_bind_the_sdk_once() {
    let printed = Start::new("program", &["thread=hip", "fork", "roctx"]).printed(RETURNED);
    let count = |text: &str| printed.iter().filter(|line| *line == text).count();
    assert_eq!(count("sdk: forced"), 1, "{printed:?}");
    assert_eq!(
        count("sdk: roctx 0, version 70000, 1 table(s)"),
        1,
        "{printed:?}"
    );
    assert_eq!(count("collector: end"), 2, "{printed:?}");
    let printed = Start::new("program", &["fork", "hip"]).printed(RETURNED);
    assert_eq!(
        printed.iter().filter(|line| *line == "sdk: forced").count(),
        1,
        "{printed:?}"
    );
}

#[test]
fn library_that_the_user_names_takes_the_place_of_the_sdk() {
    let printed = Start::new("program", &["hip"])
        .with("RPD_SDK", "@/other-sdk.so")
        .printed(RETURNED);
    assert_eq!(
        printed[1..printed.len() - 2],
        [
            "other sdk: forced",
            "collector: configured by 10000 as 0",
            "collector: initialized",
            "other sdk: hip 0, version 70000, 1 table(s)",
            "other sdk: call",
        ]
    );
}

/// Lines that are printed when the SDK finds the collector in `ROCP_TOOL_LIBRARIES`.
const LISTED: [&str; 4] = [
    "collector: configured by 10000 as 0",
    "collector: initialized",
    "sdk: hip 0, version 70000, 1 table(s)",
    "sdk: call",
];

#[test]
fn sdk_that_cannot_be_forced_finds_the_collector_in_the_tool_list() {
    let printed = Start::new("program", &["hip", "list"])
        .with("RPD_SDK", "@/old/librocprofiler-sdk.so.1")
        .printed(RETURNED);
    assert_eq!(printed[1..5], LISTED);
    assert_eq!(printed[5], "program: tools @/rpd/librpd_collect.so:");
}

#[test]
fn sdk_that_begins_in_its_constructor_finds_the_collector_in_the_tool_list() {
    let printed = Start::new("program", &["hip"])
        .with("ROCPROFILER_LIBRARY_CTOR", "1")
        .printed(RETURNED);
    assert_eq!(printed[1..5], LISTED);
}

#[test]
fn tool_list_of_the_user_gets_the_collector_added() {
    for list in [
        "@/tool.so:",
        "@/tool.so",
        "@/tool.so:@/rpd/librpd_collect.so:",
    ] {
        let printed = Start::new("program", &["hip"])
            .with("ROCP_TOOL_LIBRARIES", list)
            .printed(RETURNED);
        assert_eq!(
            printed[1..printed.len() - 2],
            [
                "tool: configured by 10000 as 0",
                "collector: configured by 10000 as 1",
                "tool: initialized",
                "collector: initialized",
                "sdk: hip 0, version 70000, 1 table(s)",
                "sdk: call",
            ],
            "{list}"
        );
    }
}

#[test]
fn program_with_a_tool_of_its_own_keeps_it() {
    let printed = Start::new("with-tool", &["hip"]).printed(RETURNED);
    assert_eq!(
        printed[1..printed.len() - 2],
        [
            "sdk: parses all libraries",
            "collector: configured by 10000 as 0",
            "own tool: configured by 10000 as 1",
            "collector: initialized",
            "own tool: initialized",
            "sdk: hip 0, version 70000, 1 table(s)",
            "sdk: call",
        ]
    );
}

#[test]
fn program_linked_to_the_sdk_may_configure_it_first() {
    let printed = Start::new("with-sdk", &["force", "hip"]).printed(RETURNED);
    assert_eq!(
        printed[1..printed.len() - 2],
        [
            "sdk: forced",
            "program: configured by 10000 as 0",
            "collector: configured by 10000 as 1",
            "collector: initialized",
            "program: force 0",
            "sdk: hip 0, version 70000, 1 table(s)",
            "sdk: call",
        ]
    );
    // The SDK that the program has gets the tables.
    let printed = Start::new("with-sdk", &["hip"])
        .with("RPD_SDK", "@/new/librocprofiler-sdk.so.1")
        .printed(RETURNED);
    assert_eq!(printed[1..5], LISTED);
}

#[test]
fn sdk_that_the_program_opened_is_used() {
    let path = directory().join("lib/librocprofiler-sdk.so.1");
    let open = format!("open={}", path.display());
    let printed = Start::new("program", &[&open, "hip"])
        .with("RPD_SDK", "@/new/librocprofiler-sdk.so.1")
        .printed(RETURNED);
    assert_eq!(printed[1..5], LISTED);
}

#[test]
fn binding_notes_why_nothing_is_recorded_and_lets_the_program_go_on() {
    let note = |start: Start| {
        let printed = start.printed(RETURNED);
        let notes: Vec<_> = printed
            .iter()
            .filter_map(|line| line.strip_prefix("collector: note: "))
            .collect();
        assert_eq!(notes.len(), 1, "{printed:?}");
        (notes[0].to_owned(), printed)
    };
    let start = || Start::new("program", &["hip"]);

    let (text, printed) = note(start().with("RPD_SDK", "/proc/nonexistent/sdk.so"));
    assert_eq!(
        text,
        "nothing is recorded: the SDK cannot be opened: /proc/nonexistent/sdk.so: cannot open shared object file: \
         No such file or directory"
    );
    assert!(
        printed.iter().any(|line| line == "program: call"),
        "{printed:?}"
    );

    let (text, _) = note(start().with("RPD_SDK", "@/empty/librocprofiler-sdk.so.1"));
    assert_eq!(
        text.replace(&directory().display().to_string(), "@"),
        "nothing is recorded: @/empty/librocprofiler-sdk.so.1 is no SDK: it takes no tables of runtimes"
    );

    // The program opens an SDK and configures it before any runtime comes up.
    let open = format!("open={}/lib/librocprofiler-sdk.so.1", directory().display());
    let (text, printed) = note(Start::new("program", &[&open, "force", "hip"]));
    assert_eq!(
        text,
        "nothing is recorded: another tool had initialised the SDK before the first runtime came up; name \
         librpd_collect.so in ROCP_TOOL_LIBRARIES, where that SDK looks for tools"
    );
    assert!(
        printed.iter().any(|line| line == "sdk: call"),
        "{printed:?}"
    );
}

#[test]
fn attach_functions_are_forwarded_to_the_sdk() {
    let attach = |sdk: &str| {
        Start::new("program", &["attach", "hip"])
            .with("RPD_SDK", sdk)
            .printed(RETURNED)
    };
    assert_eq!(
        attach("@/new/librocprofiler-sdk.so.1")[1..10],
        [
            "sdk: forced",
            "collector: configured by 10000 as 0",
            "collector: initialized",
            "sdk: attach",
            "program: attach 7",
            "sdk: detach",
            "program: detach 8",
            "sdk: tool /tool.so",
            "program: load 9",
        ]
    );
    assert_eq!(
        attach("@/lib/librocprofiler-sdk.so.1")[4..7],
        ["program: attach 1", "program: detach 1", "program: load 1"]
    );
}
