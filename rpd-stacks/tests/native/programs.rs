//! Whole programs, from `_start` on, and gdb's stacks of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object, ObjectSymbol};

use rpd_tests::run::lacks;

use crate::support::compile;

/// A line of `native_probe`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Frame {
    tag: i32,
    kind: String,
    build_id: String,
    offset: u64,
    address: u64,
    path: String,
}

/// The library that prints stacks, as built with the tests.
fn probe_library() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let library = tests
        .parent()
        .unwrap()
        .with_file_name("examples")
        .join("libnative_probe.so");
    assert!(
        library.exists(),
        "{library:?} is missing: `cargo build -p rpd-stacks --examples` builds it"
    );
    library
}

fn program(name: &str, flags: &[&str], source: &str) -> PathBuf {
    let library = probe_library();
    let path = format!("-Wl,-rpath,{}", library.parent().unwrap().display());
    let library = library.to_str().unwrap().to_owned();
    let flags: Vec<&str> = flags
        .iter()
        .copied()
        .chain([library.as_str(), &path, "-Wl,--build-id", "-pthread"])
        .collect();
    compile("c++", name, &flags, source)
}

fn frames(text: &str) -> Vec<Frame> {
    let hex = |text: &str| u64::from_str_radix(text, 16).unwrap();
    text.lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.splitn(6, ' ').collect();
            let [tag, kind, build_id, offset, address, path] = fields[..] else {
                return None;
            };
            let tag = tag.parse().ok()?;
            let (kind, build_id, path) = (kind.to_owned(), build_id.to_owned(), path.to_owned());
            Some(Frame {
                tag,
                kind,
                build_id,
                offset: hex(offset),
                address: hex(address),
                path,
            })
        })
        .collect()
}

fn run(program: &Path) -> Vec<Frame> {
    let output = Command::new(program).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.lines()
            .filter(|line| line.contains("flags"))
            .all(|line| line.ends_with("flags 0")),
        "{text}"
    );
    frames(&text)
}

/// A C++ program with a checkpoint, at which it prints its stack and then calls `stop`, where gdb can look.
const PROGRAM: &str = r#"
    #include <alloca.h>
    #include <pthread.h>
    #include <signal.h>
    #include <string.h>
    #include <algorithm>
    #include <functional>
    #include <stdexcept>
    extern "C" void probe(int);
    volatile int sink;
    extern "C" __attribute__((noinline)) void stop(int tag) { sink = sink + tag; asm volatile("" ::: "memory"); }
    extern "C" __attribute__((noinline)) void checkpoint(int tag) { probe(tag); stop(tag); sink = sink + 1; }
    struct Guard { int tag; ~Guard() { checkpoint(tag); sink = sink + 1; } };
    __attribute__((noinline)) int recurse(int n) {
        char *m = (char *)alloca(n * 8 + 16);
        memset(m, n, n);
        int r = n == 0 ? (checkpoint(1), 1) : recurse(n - 1) + m[n / 2];
        return r + sink;
    }
    __attribute__((noinline)) void throws(int n) {
        Guard guard{2};
        if (n == 0) throw std::runtime_error("x");
        throws(n - 1);
        sink = sink + 1;
    }
    __attribute__((noinline)) void catches() {
        try { throws(2); } catch (...) { checkpoint(3); }
        sink = sink + 1;
    }
    void handler(int) { checkpoint(4); sink = sink + 1; }
    void *thread(void *) { sink = recurse(4); return 0; }
    int main() {
        sink = recurse(6);
        catches();
        int numbers[4] = {3, 1, 2, 0};
        std::sort(numbers, numbers + 4, [](int a, int b) { if (a == 3) checkpoint(5); return a < b; });
        std::function<void()> call = [] { checkpoint(6); sink = sink + 1; };
        call();
        signal(SIGUSR1, handler);
        raise(SIGUSR1);
        pthread_t t;
        pthread_create(&t, 0, thread, 0);
        pthread_join(t, 0);
        return 0;
    }
"#;

/// Checks stacks-19.
#[test]
fn offsets_are_link_time_addresses_with_and_without_pie() {
    if lacks("c++") {
        return;
    }
    for (flags, pie) in [
        (&["-O2", "-pie", "-fPIE"][..], true),
        (&["-O2", "-no-pie", "-fno-pie"], false),
    ] {
        let path = program("program", flags, PROGRAM);
        let bytes = std::fs::read(&path).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let main = file
            .symbols()
            .find(|symbol| symbol.name() == Ok("main"))
            .unwrap();
        let frames = run(&path);
        let stacks: Vec<&[Frame]> = frames.chunk_by(|one, other| one.tag == other.tag).collect();
        // The first stack is of the main thread: `main` calls `recurse`, and `_start` is outermost.
        let first = stacks[0];
        let in_program = |frame: &&Frame| Path::new(&frame.path) == path;
        let of_main =
            |frame: &Frame| (main.address()..main.address() + main.size()).contains(&frame.offset);
        assert!(first.iter().filter(in_program).any(of_main), "{first:#?}");
        let outermost = first.last().unwrap();
        let start = file
            .symbols()
            .find(|symbol| symbol.name() == Ok("_start"))
            .unwrap();
        assert!(
            (start.address()..start.address() + 64).contains(&outermost.offset),
            "{outermost:?}"
        );
        for frame in frames.iter().filter(in_program) {
            assert_eq!(frame.offset != frame.address, pie);
        }
    }
}

/// Checks stacks-20.
#[test]
fn two_runs_have_the_same_build_ids_and_offsets() {
    if lacks("c++") {
        return;
    }
    let path = program("program", &["-O2"], PROGRAM);
    let set = || {
        run(&path)
            .into_iter()
            .map(|frame| (frame.tag, frame.kind, frame.build_id, frame.offset))
            .collect::<Vec<_>>()
    };
    let (one, other) = (set(), set());
    assert!(
        one.len() > 50
            && one
                .iter()
                .all(|(_, kind, build_id, _)| kind == "Native" && !build_id.is_empty())
    );
    assert_eq!(one, other);
}

/// Prints `tag gdb address` for each frame outside `checkpoint` at each stop.
const GDB: &str = r#"
set pagination off
set confirm off
set breakpoint pending on
set backtrace past-main on
set backtrace past-entry on
set backtrace limit unlimited
handle SIGUSR1 nostop noprint pass
break stop
python
def look(event):
    if not isinstance(event, gdb.BreakpointEvent):
        return
    frame = gdb.newest_frame()
    tag = frame.read_register("rdi")
    frame = frame.older().older()
    exact = False
    while frame is not None and frame.is_valid():
        # Inlined calls and tail calls, which gdb adds from debug information, have no frame of their own.
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            pc = frame.pc()
            # The return address from a handler is the first instruction of the trampoline.
            print("%d gdb %x" % (int(tag) & 0xffffffff, pc if exact else pc - 1), flush=True)
            exact = frame.type() == gdb.SIGTRAMP_FRAME
        frame = frame.older()
gdb.events.stop.connect(look)
gdb.execute("run")
while gdb.selected_inferior().pid:
    gdb.execute("continue")
end
"#;

#[test]
fn program_stacks_are_those_of_gdb_at_the_same_stop() {
    if lacks("c++") || lacks("gdb") {
        return;
    }
    for flags in [&["-O2", "-fomit-frame-pointer"][..], &["-O0"]] {
        let path = program("program", flags, PROGRAM);
        let script = path.with_extension("gdb");
        std::fs::write(&script, GDB).unwrap();
        let output = Command::new("gdb")
            .args(["-nx", "-batch", "-x"])
            .arg(&script)
            .arg(&path)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        // Per stop: our frames, then gdb's.
        let (mut ours, mut theirs): (Vec<Vec<u64>>, Vec<Vec<u64>>) = (Vec::new(), Vec::new());
        for line in text.lines() {
            let fields: Vec<&str> = line.split(' ').collect();
            let address = |text: &str| u64::from_str_radix(text, 16).unwrap();
            match fields[..] {
                [_, "flags", flags] => {
                    assert_eq!(flags, "0", "{text}");
                    ours.push(Vec::new());
                    theirs.push(Vec::new());
                }
                [_, "Native", _, _, runtime, ..] => ours.last_mut().unwrap().push(address(runtime)),
                [_, "gdb", at] => theirs.last_mut().unwrap().push(address(at)),
                _ => {}
            }
        }
        assert!(
            ours.len() >= 8,
            "{} stops: {text}\n{}",
            ours.len(),
            String::from_utf8_lossy(&output.stderr)
        );
        for (ours, theirs) in ours.iter().zip(&theirs) {
            // Further in are the library's frames and `checkpoint`.
            assert!(theirs.len() >= 3, "{text}");
            let outer = &ours[ours.len() - theirs.len().min(ours.len())..];
            assert_eq!(outer, theirs, "{text}");
        }
    }
}
