//! Where the one file of a command goes: never onto what the command reads, through links, into pipes, devices and terminals as
//! a stream, and under its name only when it is complete.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use rpd_tests::run::skipped;

const GOLDEN: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../rpd-formats/testdata/trace_results.db"
);
const SQL: &str = "SELECT count(*) AS calls FROM regions";

/// A directory with the golden database under some names.
fn directory(names: &[&str]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    for name in names {
        let path = directory.path().join(name);
        std::fs::copy(GOLDEN, &path).expect("copied");
        let mode = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(&path, mode).expect("writable");
    }
    directory
}

fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rpd"));
    command
        .args(arguments)
        .current_dir(directory)
        .env_remove("ROCPD_OUTPUT_NAME")
        .env_remove("ROCPD_OUTPUT_PATH");
    command
}

fn rpd(directory: &Path, arguments: &[&str]) -> Output {
    command(directory, arguments).output().expect("rpd runs")
}

/// Runs rpd, which must succeed; its standard output.
fn good(directory: &Path, arguments: &[&str]) -> Vec<u8> {
    let output = rpd(directory, arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    output.stdout
}

/// Runs rpd, which must fail with this status and one line; the line.
fn bad(directory: &Path, arguments: &[&str], status: i32) -> String {
    one_line(arguments, &rpd(directory, arguments), status)
}

fn one_line(arguments: &[&str], output: &Output, status: i32) -> String {
    let line = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {line}");
    assert_eq!(line.lines().count(), 1, "{arguments:?}: {line}");
    line
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        let name = entry.expect("an entry").file_name();
        name.to_string_lossy().into_owned()
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

#[test]
fn output_is_never_an_input() {
    let files = ["x.db", "x.txt", "x.csv"];
    let directory = directory(&files);
    let path = |name: &str| directory.path().join(name);
    symlink("x.db", path("link.db")).expect("a link");
    std::fs::hard_link(path("x.db"), path("hard.db")).expect("a link");
    let before = std::fs::read(GOLDEN).expect("readable");
    for arguments in [
        &["flame", "x.db", "-o", "x.db"][..],
        &["flame", "x.db", "-f", "folded", "-o", "link.db"],
        &["flame", "x.db", "-f", "speedscope", "-o", "./x.db"],
        &["flame", "x.db", "-f", "pprof", "-o", "hard.db"],
        &["flame", "x.db", "-f", "firefox", "-o", "x.db-wal"],
        &["flame", "x.csv", "--diff", "x.db", "-o", "x.db"],
        &["stacks", "x.db", "-o", "x.db"],
        &["hot", "x.db", "-o", "x.db"],
        &["hot", "x.csv", "--diff", "x.db", "-o", "x.db"],
        &["annotate", "x.db", "-o", "x.db"],
        &["diff", "x.csv", "x.db", "-o", "x.db"],
        &["diff", "x.db", "x.csv", "-o", "link.db"],
        &["export", "x.db", "--rpd", "x.db"],
        &["merge", "x.db", "x.csv", "-o", "x"],
        &["merge", "x.db", "x.csv", "-o", "x.db"],
        &["summary", "x.txt", "-o", "x"],
        &["query", "x.csv", SQL, "-f", "csv", "-o", "x"],
    ] {
        let line = bad(directory.path(), arguments, 2);
        assert!(line.contains("is an input too"), "{arguments:?}: {line}");
    }
    for name in files {
        let after = std::fs::read(path(name)).expect("readable");
        assert!(after == before, "{name} was changed");
    }
    let all = ["hard.db", "link.db", "x.csv", "x.db", "x.txt"];
    assert_eq!(names(directory.path()), all);
}

#[test]
fn output_link_stays_and_its_file_is_written() {
    let directory = directory(&["x.db"]);
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("old.csv"), "old").expect("written");
    std::fs::set_permissions(path("old.csv"), std::fs::Permissions::from_mode(0o600)).expect("set");
    symlink("old.csv", path("link.csv")).expect("a link");
    symlink("new.csv", path("dangling.csv")).expect("a link");
    symlink("loop.csv", path("loop.csv")).expect("a link");
    for (link, file) in [("link", "old.csv"), ("dangling", "new.csv")] {
        good(
            directory.path(),
            &["query", "x.db", SQL, "-f", "csv", "-o", link],
        );
        assert!(path(&format!("{link}.csv")).is_symlink());
        let text = std::fs::read_to_string(path(file)).expect("there");
        assert!(text.starts_with("calls\n"), "{text}");
    }
    let mode = std::fs::metadata(path("old.csv")).expect("there").mode();
    assert_eq!(mode & 0o777, 0o600, "what was private stays private");
    let line = bad(
        directory.path(),
        &["query", "x.db", SQL, "-f", "csv", "-o", "loop"],
        1,
    );
    assert!(line.contains("loop.csv"), "{line}");
    std::fs::create_dir(path("sub")).expect("made");
    let line = bad(directory.path(), &["export", "x.db", "--rpd", "sub"], 1);
    assert!(line.contains("sub: it is a directory"), "{line}");
}

#[test]
fn output_dash_is_standard_output() {
    let directory = directory(&["x.db"]);
    let plain = good(directory.path(), &["query", "x.db", SQL, "-f", "csv"]);
    for arguments in [
        &["query", "x.db", SQL, "-f", "csv", "-o", "-"][..],
        &["query", "x.db", SQL, "-f", "csv", "-o", "/dev/stdout"],
    ] {
        let output = rpd(directory.path(), arguments);
        assert_eq!(output.stdout, plain, "{arguments:?}");
        assert_eq!(output.stderr, b"", "{arguments:?}");
    }
    for arguments in [
        &["merge", "x.db", "-o", "-"][..],
        &["export", "x.db", "--rpd", "-"],
    ] {
        let database = good(directory.path(), arguments);
        assert!(database.starts_with(b"SQLite format 3\0"), "{arguments:?}");
    }
    assert_eq!(
        good(directory.path(), &["summary", "x.db", "-o", "-"]),
        good(directory.path(), &["summary", "x.db"])
    );
    let line = bad(
        directory.path(),
        &["summary", "x.db", "-f", "csv", "-o", "-"],
        2,
    );
    assert!(line.contains("-o - needs --format table"), "{line}");
    assert_eq!(names(directory.path()), ["x.db"]);
    // What others wrote to the same file stays.
    let shell = format!(
        "{{ echo before; '{}' query x.db '{SQL}' -f csv -o /dev/stdout; echo after; }} > both",
        env!("CARGO_BIN_EXE_rpd")
    );
    let status = Command::new("sh")
        .args(["-c", &shell])
        .current_dir(directory.path())
        .status();
    assert!(status.expect("sh runs").success());
    let both = std::fs::read_to_string(directory.path().join("both")).expect("there");
    let plain = String::from_utf8_lossy(&plain);
    assert_eq!(both, format!("before\n{plain}after\n"));
}

#[test]
fn output_pipe_gets_the_bytes_and_stays_a_pipe() {
    let directory = directory(&["x.db"]);
    let pipe = directory.path().join("pipe");
    nix::unistd::mkfifo(&pipe, Mode::S_IRWXU).expect("a pipe");
    let plain = good(directory.path(), &["query", "x.db", SQL, "-f", "csv"]);
    for (arguments, expected) in [
        (
            &["query", "x.db", SQL, "-f", "csv", "-o", "pipe"][..],
            &plain[..],
        ),
        (&["merge", "x.db", "-o", "pipe"], b"SQLite format 3\0"),
        (&["export", "x.db", "--rpd", "pipe"], b"SQLite format 3\0"),
    ] {
        let reader = {
            let pipe = pipe.clone();
            std::thread::spawn(move || std::fs::read(pipe).expect("read"))
        };
        good(directory.path(), arguments);
        let found = reader.join().expect("joined");
        assert!(found.starts_with(expected), "{arguments:?}");
        let about = std::fs::symlink_metadata(&pipe).expect("there");
        assert!(about.file_type().is_fifo(), "{arguments:?}");
    }
    assert_eq!(names(directory.path()), ["pipe", "x.db"]);
}

#[test]
fn output_device_stays_a_device() {
    let directory = directory(&["x.db"]);
    let null = directory.path().join("null");
    let made = mknod(
        &null,
        SFlag::S_IFCHR,
        Mode::from_bits_retain(0o666),
        makedev(1, 3),
    );
    // Some containers forbid to use such a node.
    if made.is_err() || std::fs::write(&null, "").is_err() {
        return skipped("outputs to devices", "device nodes cannot be made here");
    }
    for arguments in [
        &["query", "x.db", SQL, "-f", "csv", "-o", "null"][..],
        &["summary", "x.db", "-o", "null"],
        &["diff", "x.db", "x.db", "-o", "null"],
        &["merge", "x.db", "-o", "null"],
        &["export", "x.db", "--rpd", "null"],
    ] {
        good(directory.path(), arguments);
        let about = std::fs::symlink_metadata(&null).expect("there");
        assert!(about.file_type().is_char_device(), "{arguments:?}");
    }
    assert_eq!(names(directory.path()), ["null", "x.db"]);
}

/// A limit of the size of files stands for a full disk; a link to `/dev/full` is one.
#[test]
fn output_on_a_full_disk_is_named_in_the_error() {
    let directory = directory(&["x.db"]);
    symlink("/dev/full", directory.path().join("full")).expect("a link");
    for arguments in [
        &["query", "x.db", SQL, "-f", "csv", "-o", "full"][..],
        &["export", "x.db", "--rpd", "full"],
        &["diff", "x.db", "x.db", "-o", "full"],
    ] {
        let line = bad(directory.path(), arguments, 1);
        assert!(
            line.contains("full: No space left") && !line.contains("x.db"),
            "{arguments:?}: {line}"
        );
    }
    let wide = "SELECT hex(zeroblob(2000000)) AS zeros";
    for arguments in [
        &["query", "x.db", wide, "-f", "csv", "-o", "out"][..],
        &["merge", "x.db", "-o", "out.db"],
        &["export", "x.db", "--rpd", "out.db"],
    ] {
        let mut limited = Command::new("sh");
        limited
            .args(["-c", "ulimit -f 16; exec \"$@\"", "sh"])
            .arg(env!("CARGO_BIN_EXE_rpd"))
            .args(arguments)
            .current_dir(directory.path());
        let output = limited.output().expect("sh runs");
        let line = one_line(arguments, &output, 1);
        assert!(line.contains("cannot write out"), "{arguments:?}: {line}");
        assert_eq!(names(directory.path()), ["full", "x.db"], "{arguments:?}");
    }
}

/// A terminal; what is written to it can be read from the other end.
fn terminal() -> (File, OwnedFd) {
    let (mut own, mut other) = (-1, -1);
    let null = std::ptr::null_mut();
    // SAFETY: both places are valid, the other arguments may be null.
    let status = unsafe { libc::openpty(&mut own, &mut other, null, null.cast(), null.cast()) };
    assert_eq!(status, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the call has just opened both, and nothing else owns them.
    unsafe { (File::from_raw_fd(own), OwnedFd::from_raw_fd(other)) }
}

#[test]
fn output_to_a_terminal_has_no_escapes_of_foreign_names() {
    let directory = directory(&["x.db"]);
    let sql = "SELECT 'a' || char(27) || '[31mb' || char(155) || 'c' AS name";
    for format in ["csv", "json", "markdown", "html", "table"] {
        let (mut own, other) = terminal();
        let status = command(directory.path(), &["query", "x.db", sql, "-f", format])
            .stdin(Stdio::null())
            .stdout(other)
            .status();
        assert!(status.expect("rpd runs").success());
        let mut shown = vec![0; 1 << 16];
        let count = own.read(&mut shown).expect("read");
        let shown = String::from_utf8_lossy(&shown[..count]).into_owned();
        assert!(shown.contains("[31mb"), "{format}: {shown:?}");
        let is_raw = |letter: char| letter.is_control() && !"\r\n\t".contains(letter);
        assert!(!shown.contains(is_raw), "{format}: {shown:?}");
    }
    // A file has the name as it is.
    let plain = good(directory.path(), &["query", "x.db", sql, "-f", "csv"]);
    assert!(plain.contains(&0x1b));
}
