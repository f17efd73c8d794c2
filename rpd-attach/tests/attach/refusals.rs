//! Processes that a tool cannot be attached to: each is left alone, and the line says what to do.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rpd_attach::{Environment, Error, Session, Status, inspect};
use rpd_tests::skips::skipped;

use crate::harness::{Built, Target, attach, attacher, build, built};

fn refusal(result: Result<Session, Error>, status: Status, part: &str) {
    let error = result.expect_err("it is refused");
    assert_eq!(error.status, status, "{error}");
    assert!(error.text.contains(part), "{error}");
    assert!(!error.text.contains('\n'), "{error}");
}

#[test]
fn process_that_was_not_prepared_is_told_what_to_start_with() {
    let target = Target::start(&built().path("program"), |_| {});
    let result = attach(&target, &Environment::new());
    refusal(
        result,
        Status::Error,
        "start the program with ROCP_TOOL_ATTACH=1",
    );
    target.ends_unchanged(0);
    let target = Target::start(&built().path("bare"), |command| {
        command.env("ROCP_TOOL_ATTACH", "1");
    });
    let result = attach(&target, &Environment::new());
    refusal(result, Status::Error, "has not loaded a GPU runtime");
    target.ends_unchanged(0);
}

#[test]
fn process_that_does_not_exist_is_not_found() {
    let result = Session::attach(i32::MAX, &built().tool(), &Environment::new());
    refusal(result, Status::ProcessNotFound, "does not exist");
}

/// A target whose libraries are those of `built`.
fn target_of(built: &Built) -> Target {
    Target::start(&built.path("program"), |command| {
        command.env("ROCP_TOOL_ATTACH", "1");
    })
}

#[test]
fn process_that_would_be_ended_without_an_sdk_is_refused() {
    let own = build();
    let target = target_of(&own);
    let attach = || Session::attach(target.pid(), &own.tool(), &Environment::new());
    let sdk = own.path("librocprofiler-sdk.so.1.3.0");
    let kept = own.path("kept");
    fs::rename(&sdk, &kept).expect("moved");
    refusal(attach(), Status::Error, "finds no librocprofiler-sdk.so");
    fs::write(&sdk, "no library").expect("written");
    refusal(attach(), Status::Error, "finds no librocprofiler-sdk.so");
    // One that lacks the functions for attaching, and one that needs something that is not there.
    fs::copy(own.path("libamdhip64.so.7"), &sdk).expect("copied");
    refusal(
        attach(),
        Status::Error,
        "it has no rocprofiler_set_api_table",
    );
    let source = own.path("needs.c");
    let code =
        "int rocprofiler_set_api_table(void) {return 0;} int rocprofiler_attach(void) {return 0;}";
    fs::write(&source, code).expect("written");
    let place = format!("-L{}", own.path("").display());
    fs::copy(own.tool(), own.path("gone.so")).expect("copied");
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-Wl,--no-as-needed", &place, "-o"])
        .args([&sdk, &source])
        .arg("-l:gone.so")
        .status();
    assert!(status.expect("a C compiler").success());
    fs::remove_file(own.path("gone.so")).expect("removed");
    refusal(
        attach(),
        Status::Error,
        "needs gone.so, which it does not find",
    );
    fs::rename(&kept, &sdk).expect("moved back");
    attach().expect("attached").detach().expect("detached");
    target.ends_unchanged(0);
}

#[test]
fn tool_that_the_process_cannot_use_is_refused() {
    let target = Target::prepared();
    let attach = |tool: &Path| Session::attach(target.pid(), tool, &Environment::new());
    let invalid = Status::InvalidArgument;
    refusal(
        attach(Path::new("libtool.so")),
        invalid,
        "does not begin with /",
    );
    refusal(
        attach(Path::new("/no/such.so")),
        invalid,
        "it does not see this file",
    );
    refusal(
        attach(&built().path("libamdhip64.so.7")),
        invalid,
        "it is no tool",
    );
    refusal(attach(&built().path("program")), invalid, "it is no tool");
    target.ends_unchanged(0);
}

#[test]
fn other_tool_than_the_first_is_refused_by_the_process() {
    let target = Target::prepared();
    attach(&target, &Environment::new())
        .expect("attached")
        .detach()
        .expect("detached");
    let other = Session::attach(
        target.pid(),
        &built().path("libother.so"),
        &Environment::new(),
    );
    refusal(other, Status::Error, "another tool was attached before");
    let failing = Environment::new().with("ROCP_TEST_CODE", "6");
    refusal(attach(&target, &failing), Status::Error, "(code 6)");
    let again = Environment::new().with("ROCP_TEST_CODE", "0");
    attach(&target, &again)
        .expect("attached")
        .detach()
        .expect("detached");
    target.ends_unchanged(0);
}

#[test]
fn second_attacher_is_refused_while_the_first_is_there() {
    let target = Target::prepared();
    let session = attach(&target, &Environment::new()).expect("attached");
    let result = attach(&target, &Environment::new());
    refusal(result, Status::InvalidArgument, "attached already");
    let other = attacher(target.pid(), &built().tool(), Duration::ZERO);
    let said = said(other);
    assert!(said.contains("refused 5 "), "{said}");
    assert!(said.contains("traces it"), "{said}");
    session.detach().expect("detached");
    let other = attacher(target.pid(), &built().tool(), Duration::ZERO);
    assert!(self::said(other).contains("detach Ok"));
    target.ends_unchanged(0);
}

fn said(mut attacher: Command) -> String {
    let output = attacher.output().expect("it runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn stopped_process_is_refused() {
    let target = Target::prepared();
    target.signal(libc::SIGSTOP);
    while inspect(target.pid()).expect("it may be read").state != 'T' {}
    refusal(
        attach(&target, &Environment::new()),
        Status::PtraceError,
        "it is stopped",
    );
    target.signal(libc::SIGCONT);
    target.ends_unchanged(0);
}

fn is_root() -> bool {
    // SAFETY: the call takes nothing.
    unsafe { libc::geteuid() == 0 }
}

#[test]
fn process_of_another_user_is_refused() {
    if !is_root() {
        return skipped("a process of another user", "it needs root");
    }
    let target = Target::prepared();
    let mut other = attacher(target.pid(), &built().tool(), Duration::ZERO);
    // The program has to be reachable for that user: it is run from an open file.
    let program = fs::File::open(std::env::current_exe().expect("a path")).expect("opened");
    let said = said_as_nobody(&mut other, &program);
    assert!(said.contains("refused 5 "), "{said}");
    assert!(
        said.contains("attach as the user to whom it belongs, or as root"),
        "{said}"
    );
    target.ends_unchanged(0);
}

fn said_as_nobody(attacher: &mut Command, program: &fs::File) -> String {
    use std::os::fd::AsRawFd as _;
    let mut command = Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()));
    command.args(attacher.get_args()).uid(65534).gid(65534);
    for (name, value) in attacher.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    said(command)
}

/// Copies a library or program to the same path below another root, with what it needs.
fn copy_with_needs(path: &Path, root: &Path) {
    let output = Command::new("ldd").arg(path).output().expect("ldd");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let needed = text.split_whitespace().filter(|word| word.starts_with('/'));
    for path in [path.to_str().expect("text")].into_iter().chain(needed) {
        let to = root.join(path.trim_start_matches('/'));
        fs::create_dir_all(to.parent().expect("a directory")).expect("made");
        fs::copy(path, to).expect(path);
    }
}

#[test]
fn process_in_a_container_has_to_see_the_tool() {
    if !is_root() {
        return skipped("a process with another root directory", "it needs root");
    }
    if Command::new("ldd").arg("/bin/sh").output().is_err() {
        return skipped("a process with another root directory", "ldd is not there");
    }
    let root = tempfile::tempdir().expect("a directory");
    let sdk = built().path("librocprofiler-sdk.so");
    copy_with_needs(&built().path("program"), root.path());
    copy_with_needs(&sdk, root.path());
    fs::create_dir_all(root.path().join("log")).expect("made");
    let program = built().path("program");
    let directory = root.path().to_owned();
    let target = Target::start(&program, |command| {
        command
            .env("ROCP_TOOL_ATTACH", "1")
            .env("TEST_LOG", "/log/log");
        // SAFETY: between fork and exec, only system calls are made.
        unsafe { command.pre_exec(move || std::os::unix::fs::chroot(&directory)) };
    });
    assert!(inspect(target.pid()).expect("it may be read").other_root);
    let attach = || attach(&target, &Environment::new());
    refusal(
        attach(),
        Status::InvalidArgument,
        "it does not see this file",
    );
    let tool = built().tool();
    let inside = root.path().join(tool.strip_prefix("/").expect("absolute"));
    fs::write(&inside, "no library").expect("written");
    refusal(attach(), Status::InvalidArgument, "libtool.so: ");
    copy_with_needs(&tool, root.path());
    attach().expect("attached").detach().expect("detached");
    let log = fs::read_to_string(root.path().join("log/log")).expect("a log");
    assert_eq!(log, "attach libtool.so -\nattached\ndetached\n");
    target.ends_unchanged(0);
}
