//! Frames of all shapes.

use rpd_stacks::LocationKind;
use rpd_tests::run::lacks;

use crate::support::{Library, Process, compile, counts, library_file, repeat, undisturbed};

/// Shapes of functions that differ in how their frames are laid out. Every function calls the next one and touches the
/// result, so that no call is a tail call.
const SHAPES: &str = r#"
#include <alloca.h>
#include <string.h>
typedef void (*probe_fn)(int);
volatile int sink;
__attribute__((noinline)) void leaf(probe_fn p) { p(1); sink++; }
__attribute__((noinline)) void saves_many(probe_fn p, int a, int b, int c, int d, int e) {
    int x[6] = {a, b, c, d, e, a * b};
    leaf(p);
    for (int i = 0; i < 6; i++) sink += x[i] * a + b * c + d * e;
}
__attribute__((noinline)) void allocates(probe_fn p, int n) {
    char *m = alloca(n);
    memset(m, n, n);
    saves_many(p, n, 2, 3, 4, 5);
    sink += m[n / 2];
}
__attribute__((noinline)) void array(probe_fn p) {
    volatile char big[100000];
    big[99] = 1;
    allocates(p, 333 + sink % 2);
    sink += big[99];
}
__attribute__((noinline)) void realigned(probe_fn p) {
    char m[64] __attribute__((aligned(64)));
    memset(m, sink, 64);
    array(p);
    sink += m[5];
}
__attribute__((noinline)) void realigned_and_allocates(probe_fn p, int n) {
    char m[128] __attribute__((aligned(128)));
    char *a = alloca(n);
    memset(m, sink, 128); memset(a, sink, n);
    realigned(p);
    sink += m[5] + a[3];
}
__attribute__((noinline)) int recurses(probe_fn p, int n) {
    if (n == 0) { array(p); return 1; }
    if (n == 100) { realigned_and_allocates(p, 77); return 1; }
    return recurses(p, n - 1) * 3 + sink;
}
void start(probe_fn p) { sink = recurses(p, 7); }
void start_realigned(probe_fn p) { sink = recurses(p, 107); }
"#;

#[test]
fn walk_crosses_frames_of_all_shapes_with_any_optimisation() {
    for flags in [
        &["-O0"][..],
        &["-O1"],
        &["-O2"],
        &["-O3", "-march=native"],
        &["-O2", "-fno-omit-frame-pointer"],
        &["-O2", "-fomit-frame-pointer", "-fcf-protection=full"],
        &["-Os", "-mno-red-zone"],
        &["-O2", "-fno-plt", "-Wl,-z,now"],
    ] {
        let library = Library::from_name("shapes", flags, SHAPES);
        let process = Process::new(512);
        let taken = process.run(|probe| repeat(2, || library.function("start")(probe)));
        process.agree(&taken);
        let names = process.names(&taken[0]);
        let at = names.iter().position(|name| name == "leaf").unwrap();
        let expected = ["leaf", "saves_many", "allocates", "array"];
        assert_eq!(names[at..at + 4], expected, "{flags:?}");
        assert!(names[at + 4..].iter().any(|name| name == "start"));
        let realigned =
            process.run(|probe| repeat(2, || library.function("start_realigned")(probe)));
        process.agree_with_libgcc(&realigned);
        let names = process.names(&realigned[1]);
        assert_eq!(
            names[at + 4..at + 6],
            ["realigned", "realigned_and_allocates"],
            "{flags:?}"
        );
        assert_eq!(realigned[0].captured, realigned[1].captured);
    }
}

/// Checks stacks-14.
#[test]
fn stripped_code_is_walked() {
    let stripped = Library::from_name("stripped", &["-O2", "-s", "-fomit-frame-pointer"], SHAPES);
    let process = Process::new(512);
    let taken = process.run(|probe| stripped.function("start")(probe));
    process.agree(&taken);
    let facts = process.facts.lock().unwrap();
    let module = facts
        .modules
        .values()
        .find(|module| module.path == stripped.path)
        .unwrap();
    assert_eq!(module.build_id.len(), 20);
    let frames = facts.frames(taken[0].captured.stack);
    let inside = frames
        .iter()
        .filter(|frame| frame.module != 0 && facts.modules[&frame.module] == *module);
    assert!(inside.count() >= 12);
}

/// Checks stacks-18.
#[test]
fn calls_from_a_split_off_cold_part_are_walked() {
    let source = r#"
        #include <stdio.h>
        typedef void (*probe_fn)(int);
        __attribute__((cold, noinline)) void report(probe_fn p, int n) { p(n); printf("%s", n > 100 ? "x" : ""); }
        __attribute__((noinline)) int hot(probe_fn p, int n) {
            int sum = 0;
            for (int i = 0; i < n; i++) sum += i * n;
            if (__builtin_expect(n > 3, 0)) { report(p, n); sum *= 7; report(p, sum); }
            return sum;
        }
        volatile int sink;
        void start(probe_fn p) { sink = hot(p, 5); }
    "#;
    let library = Library::from_name("cold", &["-O2", "-freorder-blocks-and-partition"], source);
    let process = Process::new(512);
    let taken = process.run(|probe| library.function("start")(probe));
    assert_eq!(taken.len(), 2);
    process.agree(&taken);
    let hot = library.symbol("hot") as u64;
    let addresses = process.addresses(&taken[0]);
    let names = process.names(&taken[0]);
    let at = names.iter().position(|name| name == "start").unwrap();
    // The frame inside `start` is `hot`'s, yet outside the function's main part.
    assert!(
        addresses[at - 1] < hot || addresses[at - 1] > hot + 64,
        "{:x} in hot at {hot:x}",
        addresses[at - 1]
    );
}

/// Checks stacks-29.
#[test]
fn recursion_of_5000_frames_is_kept_whole_or_with_a_gap() {
    let source = r#"
        typedef void (*probe_fn)(int);
        volatile int sink;
        __attribute__((noinline)) int down(probe_fn p, int n) {
            if (n == 0) { p(0); p(0); return 1; }
            return down(p, n - 1) + sink;
        }
        void start(probe_fn p) { sink = down(p, 5000); }
    "#;
    let library = Library::from_name("deep", &["-O1"], source);
    let run = |depth| {
        let measure = || {
            let process = Process::new(depth);
            let mut reused = 0;
            let taken = process.run(|probe| {
                library.function("start")(probe);
                reused = counts().reused;
            });
            (process, taken, reused)
        };
        // The second of two captures on one line takes over all but the innermost frames.
        let (process, taken, reused) = undisturbed(measure, |found| found.2 >= 5000);
        assert!(reused >= 5000, "{reused}");
        (process, taken)
    };
    let (process, whole) = run(0);
    process.agree(&whole);
    let names = process.names(&whole[0]);
    assert_eq!(names.iter().filter(|name| *name == "down").count(), 5001);
    assert_eq!(
        process.facts.lock().unwrap().nodes[&whole[0].captured.stack].depth as usize,
        names.len()
    );

    let (process, cut) = run(512);
    for one in &cut {
        assert_eq!(one.captured.flags, rpd_stacks::flags::GAP);
        let frames = process.facts.lock().unwrap().names(one.captured.stack);
        assert_eq!(frames.len(), 384 + 1 + 128);
        assert_eq!(frames[384], "<gap>");
        assert_eq!(frames[1..384], process.names(one)[..383]);
        let outer = &names[names.len() - 128..];
        assert_eq!(frames[385..], *outer);
    }
}

/// Checks stacks-33.
#[test]
fn frames_that_a_longjmp_left_are_gone() {
    let source = r#"
        #include <setjmp.h>
        typedef void (*probe_fn)(int);
        static jmp_buf out;
        volatile int sink;
        __attribute__((noinline)) void deep(probe_fn p, int n) {
            if (n == 0) { p(1); longjmp(out, 1); }
            deep(p, n - 1); sink++;
        }
        __attribute__((noinline)) void start(probe_fn p) {
            if (setjmp(out) == 0) { deep(p, 20); }
            p(2); sink++;
        }
    "#;
    let library = Library::from_name("jump", &["-O2"], source);
    let process = Process::new(512);
    let taken = process.run(|probe| library.function("start")(probe));
    process.agree(&taken);
    assert!(process.names(&taken[0]).iter().any(|name| name == "deep"));
    assert!(!process.names(&taken[1]).iter().any(|name| name == "deep"));
}

/// A C++ library: `start` calls through frames with destructors, and an exception is thrown from below.
const EXCEPTIONS: &str = r#"
    #include <stdexcept>
    typedef void (*probe_fn)(int);
    static probe_fn probe;
    volatile int sink;
    struct Guard { int id; ~Guard() { probe(id); sink = sink + 1; } };
    extern "C" __attribute__((noinline)) void throws(int n) {
        Guard guard{10 + n};
        probe(n);
        if (n == 3) throw std::runtime_error("x");
        throws(n + 1);
        sink = sink + 1;
    }
    extern "C" __attribute__((noinline)) void catches() {
        try { throws(0); } catch (const std::exception &) { probe(20); }
        probe(21);
        sink = sink + 1;
    }
    extern "C" void start(probe_fn p) { probe = p; catches(); probe(22); }
"#;

/// Checks stacks-34.
#[test]
fn stacks_are_right_after_an_exception() {
    if lacks("c++") {
        return;
    }
    let path = compile(
        "c++",
        "exceptions",
        &["-O2", "-shared", "-fPIC"],
        EXCEPTIONS,
    );
    let library = Library::open(&path);
    let process = Process::new(512);
    let taken = process.run(|probe| library.function("start")(probe));
    let tags: Vec<i32> = taken.iter().map(|one| one.tag).collect();
    assert_eq!(tags, [0, 1, 2, 3, 13, 12, 11, 10, 20, 21, 22]);
    process.agree(&taken);
    for one in taken.iter().filter(|one| one.tag >= 20) {
        assert!(!process.names(one).iter().any(|name| name == "throws"));
    }
}

/// Checks stacks-35.
#[test]
fn destructors_during_unwinding_show_the_landing_pad() {
    if lacks("c++") {
        return;
    }
    let path = compile(
        "c++",
        "exceptions",
        &["-O2", "-shared", "-fPIC"],
        EXCEPTIONS,
    );
    let library = Library::open(&path);
    let process = Process::new(512);
    let taken = process.run(|probe| library.function("start")(probe));
    let thrown = taken.iter().find(|one| one.tag == 12).unwrap();
    // The landing pad runs in the frame of its function; libgcc's unwinder has given up its own frames by then.
    let facts = process.facts.lock().unwrap();
    let frames = facts.frames(thrown.captured.stack);
    let catches = frames
        .iter()
        .position(|frame| facts.name(frame) == "catches")
        .unwrap();
    let file = library.path.file_name().unwrap().to_string_lossy();
    let inside: Vec<bool> = frames[..catches]
        .iter()
        .map(|frame| facts.file(frame) == file)
        .collect();
    assert_eq!(inside[catches - 4..], [false, true, true, true]);
}

#[test]
fn walk_crosses_code_without_unwind_information_by_frame_pointer_and_flags_it() {
    // `bare` keeps a frame pointer but has no call frame information.
    let source = r#"
        typedef void (*probe_fn)(int);
        volatile int sink;
        void bare(probe_fn p);
        __asm__(".text\n.globl bare\n.type bare, @function\nbare:\n push %rbp\n mov %rsp, %rbp\n sub $32, %rsp\n"
                " mov %rdi, %rax\n mov $5, %edi\n call *%rax\n leave\n ret\n.size bare, .-bare\n");
        __attribute__((noinline)) void start(probe_fn p) { bare(p); sink++; }
    "#;
    let library = Library::from_name("bare", &["-O2"], source);
    let process = Process::new(512);
    let taken = process.run_with(false, |probe| {
        repeat(3, || library.function("start")(probe))
    });
    for one in &taken {
        assert_eq!(one.captured.flags, rpd_stacks::flags::FRAME_POINTERS);
        let names = process.names(one);
        let at = names.iter().position(|name| name == "bare").unwrap();
        assert_eq!(names[at + 1], "start");
        let kinds: Vec<LocationKind> = process.facts_frames(one)[1..]
            .iter()
            .map(|frame| frame.kind)
            .collect();
        let guessed = kinds.iter().position(|kind| *kind == LocationKind::Guessed);
        assert_eq!(guessed, Some(at + 1));
        assert_eq!(
            kinds
                .iter()
                .filter(|kind| **kind == LocationKind::Guessed)
                .count(),
            1
        );
    }
    // What comes after it on the same thread is not marked, and it is again when nothing of the last walk can be used.
    let plain = Library::from_name("shapes", &["-O2"], SHAPES);
    let taken = process.run_with(false, |probe| {
        library.function("start")(probe);
        plain.function("start")(probe);
        library.function("start")(probe);
    });
    assert_eq!(taken[1].captured.flags, 0);
    let last = taken.last().unwrap();
    assert_eq!(last.captured.flags, rpd_stacks::flags::FRAME_POINTERS);
}

#[test]
fn walk_ends_at_wrong_unwind_information_with_a_marker() {
    // By the unwind information the frame is far larger, smaller, or relative to a register that holds no address.
    for cfi in [
        ".cfi_def_cfa_offset 0x100000",
        ".cfi_def_cfa_offset 0",
        ".cfi_def_cfa_offset -4096",
        ".cfi_def_cfa %rbp, 16",
        ".cfi_def_cfa %rbx, 16",
        ".cfi_escape 0x0f, 2, 0x77, 0",
        ".cfi_escape 0x0f, 3, 0x77, 0, 0x06",
        ".cfi_escape 0x0f, 1, 0x06",
        ".cfi_escape 0x0f, 0x7f, 0x06",
        ".cfi_escape 0x3f",
        ".cfi_escape 0x0b",
    ] {
        let source = format!(
            r#"
            typedef void (*probe_fn)(int);
            volatile int sink;
            void wrong(probe_fn p);
            __asm__(".text\n.globl wrong\n.type wrong, @function\nwrong:\n .cfi_startproc\n {}\n"
                    " push %rbp\n mov $1, %ebp\n mov %rdi, %rax\n call *%rax\n nop\n pop %rbp\n ret\n"
                    " .cfi_endproc\n.size wrong, .-wrong\n");
            __attribute__((noinline)) void start(probe_fn p) {{ wrong(p); sink++; }}
            "#,
            cfi.replace('\n', "\\n")
        );
        let library = Library::from_name("wrong", &["-O2"], &source);
        let process = Process::new(512);
        let taken = process.run_with(false, |probe| {
            repeat(3, || library.function("start")(probe))
        });
        for one in &taken {
            assert_ne!(
                one.captured.flags & rpd_stacks::flags::TRUNCATED,
                0,
                "{cfi}: {:?}",
                process.names(one)
            );
            let names = process.names(one);
            assert_eq!(names.last().unwrap(), "<truncated>", "{cfi}");
            assert!(names.iter().any(|name| name == "wrong"), "{cfi}");
        }
    }
}

#[test]
fn walk_attributes_tail_calls_and_calls_without_return_to_the_caller() {
    let source = r#"
        #include <setjmp.h>
        typedef void (*probe_fn)(int);
        static jmp_buf out;
        static probe_fn probe;
        __attribute__((noinline, noreturn)) void gives_up(void) { probe(1); longjmp(out, 1); }
        __attribute__((noinline)) void ends_in_call(int n) { if (n) gives_up(); probe(9); }
        __attribute__((noinline)) void after(int n) { probe(n); }
        __attribute__((noinline)) void tail(int n) { after(n + 1); }
        volatile int sink;
        void start(probe_fn p) {
            probe = p;
            if (setjmp(out) == 0) ends_in_call(1);
            tail(2);
            sink++;
        }
    "#;
    let library = Library::from_name("noreturn", &["-O2"], source);
    let process = Process::new(512);
    let taken = process.run(|probe| library.function("start")(probe));
    process.agree(&taken);
    let names = process.names(&taken[0]);
    let at = names.iter().position(|name| name == "gives_up").unwrap();
    assert_eq!(names[at + 1], "ends_in_call");
    // `after` and `tail` are left by jumps: what called the probe returns to `start`.
    assert_eq!(
        process
            .names(&taken[1])
            .iter()
            .filter(|name| *name == "tail")
            .count(),
        0
    );
}

#[test]
fn walk_does_not_follow_a_frame_table_of_garbage() {
    // The bytes of `.eh_frame` are overwritten in the file; the table that leads to them stays.
    let path = library_file("garbage", &["-O2"], SHAPES);
    let mut bytes = std::fs::read(&path).unwrap();
    let (from, len) = {
        use object::{Object, ObjectSection};
        let file = object::File::parse(&*bytes).unwrap();
        file.section_by_name(".eh_frame")
            .unwrap()
            .file_range()
            .unwrap()
    };
    for round in 0..8u64 {
        let mut state = round;
        for byte in &mut bytes[from as usize..(from + len) as usize] {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            // Mostly small numbers at first, so that lengths and opcodes are often plausible.
            *byte = (state >> 33) as u8 & if round % 2 == 0 { 0x1f } else { 0xff };
        }
        let broken = path.with_extension(format!("{round}"));
        std::fs::write(&broken, &bytes).unwrap();
        let library = Library::open(&broken);
        let process = Process::new(512);
        let taken = process.run_with(false, |probe| library.function("start")(probe));
        assert_eq!(taken.len(), 1);
        assert_ne!(taken[0].captured.stack, 0);
        assert!(process.names(&taken[0]).iter().any(|name| name == "leaf"));
    }
}
