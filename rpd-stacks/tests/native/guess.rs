//! Frames that are found by the frame pointer of code without unwind information.

use std::cell::RefCell;
use std::ffi::c_int;

use rpd_stacks::{Captured, ThreadStacks, flags};

use crate::support::{Library, Process};

/// Random calls between functions with and without call frame information, with and without a frame pointer.
const SOURCE: &str = r#"
    typedef void (*probe_fn)(int);
    volatile int sink;
    static unsigned state;
    static int left;
    static unsigned next(void) { state = state * 1664525 + 1013904223; return state >> 12; }
    #define BARE(name, begin, end) \
        void name(probe_fn p); \
        __asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n" begin \
                " mov %rdi, %rax\n mov $5, %edi\n call *%rax\n" end " ret\n.size " #name ", .-" #name "\n");
    BARE(keeps, " push %rbp\n mov %rsp, %rbp\n sub $32, %rsp\n", " leave\n")
    BARE(moves, " sub $40, %rsp\n", " add $40, %rsp\n nop\n")
    BARE(pushes, " push %rbx\n", " pop %rbx\n nop\n")
    static probe_fn probe;
    __attribute__((noinline)) static void go(int n);
    static void through(int n) { (void)n; go(4 + next() % 3); }
    #define SHAPE(name, body) __attribute__((noinline)) void name(int n) { body; sink++; }
    SHAPE(plain, go(n - 1))
    SHAPE(twice, if (next() & 1) go(n - 1); else { go(n - 1); sink += n; })
    SHAPE(keeping, keeps(through))
    SHAPE(keeping_twice, if (next() & 1) keeps(through); else { sink++; keeps(through); })
    SHAPE(moving, moves(through))
    SHAPE(pushing, if (next() & 1) pushes(through); else { sink++; pushes(through); })
    SHAPE(array, volatile char big[300]; big[n] = 1; go(n - 1); sink += big[n])
    static void (*const shapes[])(int) = {plain, twice, keeping, keeping_twice, moving, pushing, array};
    static void go(int n) {
        for (int calls = next() % 3; calls >= 0 && left > 0; calls--) {
            if (n <= 0 || next() % 5 == 0) { left--; probe(n); }
            else shapes[next() % 7](n);
        }
    }
    void tree(probe_fn p, unsigned seed) { probe = p; state = seed; left = 12; go(6); sink++; }
"#;

struct Current {
    process: Process,
    thread: ThreadStacks,
    differences: Vec<String>,
    guessed: usize,
    captures: usize,
}

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

/// Captures twice: with the state that the thread keeps of its last walk, and without it.
extern "C" fn compare(_: c_int) {
    CURRENT.with(|slot| {
        let mut slot = slot.borrow_mut();
        let current = slot.as_mut().unwrap();
        let mut fresh = ThreadStacks::new();
        let mut both = [Captured::default(); 2];
        for (captured, fresh_walk) in both.iter_mut().zip([false, true]) {
            let thread = if fresh_walk {
                &mut fresh
            } else {
                &mut current.thread
            };
            *captured = current.process.capture(thread);
        }
        current.captures += 1;
        let [kept, fresh] = both;
        // The innermost frame is the line of this function that captures.
        let outer = |one: Captured| {
            (
                current.process.frames_of(one.stack)[1..].to_vec(),
                one.flags,
            )
        };
        let same = outer(kept) == outer(fresh);
        current.guessed += usize::from(fresh.flags & flags::FRAME_POINTERS != 0);
        if !same {
            let names = both.map(|one| current.process.names_of(one.stack));
            current.differences.push(format!("{both:?} {names:#?}"));
        }
    });
}

#[test]
fn walk_with_guessed_frames_does_not_depend_on_the_walk_before() {
    for flags in [
        &["-O2"][..],
        &["-O0"],
        &["-O2", "-fno-omit-frame-pointer"],
        &["-O1"],
    ] {
        let library = Library::from_name("guess", flags, SOURCE);
        // SAFETY: the library defines this function.
        let tree: extern "C" fn(crate::support::Probe, u32) =
            unsafe { std::mem::transmute(library.symbol("tree")) };
        let current = Current {
            process: Process::new(512),
            thread: ThreadStacks::new(),
            differences: Vec::new(),
            guessed: 0,
            captures: 0,
        };
        CURRENT.with(|slot| slot.replace(Some(current)));
        for seed in 0..150u32 {
            tree(compare, seed.wrapping_mul(2_654_435_761));
        }
        let current = CURRENT.with(|slot| slot.take()).unwrap();
        assert!(
            current.guessed > 100,
            "{flags:?}: {} of {}",
            current.guessed,
            current.captures
        );
        assert!(
            current.differences.is_empty(),
            "{flags:?}: {} of {}: {}",
            current.differences.len(),
            current.captures,
            current.differences[0]
        );
    }
}

#[test]
fn walk_crosses_code_that_only_calls_and_returns_without_a_guess() {
    let source = r#"
        typedef void (*probe_fn)(int);
        volatile int sink;
        void stub(probe_fn p);
        __asm__(".text\n.globl stub\n.type stub, @function\nstub:\n sub $40, %rsp\n"
                " mov %rdi, %rax\n mov $5, %edi\n call *%rax\n add $40, %rsp\n ret\n.size stub, .-stub\n");
        __attribute__((noinline)) void plain(probe_fn p) { p(1); sink++; }
        __attribute__((noinline)) void train(probe_fn p) { plain(p); sink++; stub(p); sink++; stub(p); sink++; }
        void start(probe_fn p) { train(p); sink++; }
    "#;
    for flags in [&["-O2"][..], &["-O2", "-fno-omit-frame-pointer"]] {
        let library = Library::from_name("stub", flags, source);
        let process = Process::new(512);
        let taken = process.run_with(false, |probe| library.function("start")(probe));
        for one in &taken[1..] {
            let names = process.names(one);
            let at = names.iter().position(|name| name == "stub").unwrap();
            assert_eq!(names[at + 1..at + 3], ["train", "start"], "{flags:?}");
            assert_eq!(one.captured.flags, 0, "{flags:?}");
        }
    }
}
