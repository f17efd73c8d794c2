//! Threads and forks.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};

use rpd_stacks::{Mode, Options, Stacks, ThreadStacks};

use crate::support::{Library, Probe, Process, Recorder, counts, repeat};

const RECURSION: &str = r#"
    typedef void (*probe_fn)(int);
    volatile int sink;
    __attribute__((noinline)) int down(probe_fn p, int n) { if (n == 0) { p(0); return 1; } return down(p, n - 1) + sink; }
    void start(probe_fn p) { sink = down(p, 50); }
"#;

/// Checks stacks-38.
#[test]
fn the_outermost_frame_of_a_thread_is_its_entry() {
    let source = r#"
        #include <pthread.h>
        typedef void (*probe_fn)(int);
        volatile int sink;
        static void (*run)(void *);
        static void *entry(void *data) { run(data); sink++; return 0; }
        void spawn(void (*function)(void *), void *data) {
            pthread_t thread;
            run = function;
            pthread_create(&thread, 0, entry, data);
            pthread_join(thread, 0);
        }
    "#;
    let library = Library::from_name("spawn", &["-O2", "-pthread"], source);
    let process = Process::new(512);
    let taken = std::thread::scope(|scope| {
        scope
            .spawn(|| process.run(|probe| repeat(1, || probe(1))))
            .join()
            .unwrap()
    });
    process.agree(&taken);
    let outermost = *process.facts_frames(&taken[0]).last().unwrap();
    assert!(
        process
            .facts
            .lock()
            .unwrap()
            .file(&outermost)
            .starts_with("libc.so")
    );

    extern "C" fn inside(data: *mut c_void) {
        // SAFETY: the pair that was handed over below.
        let (process, taken) = unsafe { &mut *data.cast::<(Process, Vec<_>)>() };
        *taken = process.run(|probe| repeat(1, || probe(1)));
    }
    let mut data = (process.clone(), Vec::new());
    // SAFETY: the library defines this function.
    let spawn: extern "C" fn(extern "C" fn(*mut c_void), *mut c_void) =
        unsafe { std::mem::transmute(library.symbol("spawn")) };
    spawn(inside, (&raw mut data).cast());
    process.agree(&data.1);
    let frames = process.facts_frames(&data.1[0]);
    let facts = process.facts.lock().unwrap();
    let files: Vec<String> = frames
        .iter()
        .rev()
        .take(3)
        .map(|frame| facts.file(frame))
        .collect();
    // `clone` and `start_thread` of the C library, then the thread's function.
    assert!(
        files[0].starts_with("libc.so") && files[1].starts_with("libc.so"),
        "{files:?}"
    );
    assert!(files[2].starts_with("spawn"), "{files:?}");
}

/// Checks stacks-39.
#[test]
fn stacks_are_taken_on_64_threads_at_once() {
    let library = Library::from_name("recursion", &["-O1"], RECURSION);
    let process = Process::new(512);
    let all: Vec<Vec<_>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..64)
            .map(|_| {
                scope.spawn(|| {
                    let start = library.function("start");
                    process.run_with(false, |probe| repeat(2000, || start(probe)))
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    for taken in &all {
        assert_eq!(taken.len(), 2000);
        assert!(
            taken
                .iter()
                .all(|one| one.captured == all[0][0].captured && one.captured.flags == 0)
        );
    }
}

#[test]
fn threads_that_find_all_modules_at_once_agree_on_ids() {
    for _ in 0..20 {
        let library = Library::open(&shared_recursion());
        let process = Process::new(512);
        let barrier = std::sync::Barrier::new(8);
        let stacks: Vec<u32> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        let start = library.function("start");
                        process.run_with(false, |probe| {
                            barrier.wait();
                            start(probe);
                        })
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap()[0].captured.stack)
                .collect()
        });
        assert!(
            stacks
                .iter()
                .all(|stack| *stack == stacks[0] && *stack != 0),
            "{stacks:?}"
        );
    }
}

fn shared_recursion() -> std::path::PathBuf {
    use std::sync::OnceLock;
    static PATH: OnceLock<std::path::PathBuf> = OnceLock::new();
    PATH.get_or_init(|| crate::support::library_file("recursion", &["-O1"], RECURSION))
        .clone()
}

/// Runs `check` in a forked child; the child ends with status 0 if it returns true.
fn in_child(check: impl FnOnce() -> bool) {
    // SAFETY: the child runs the check, which neither returns to the test harness nor waits for another thread.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::alarm(60);
            let good =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(check)).unwrap_or(false);
            libc::_exit(if good { 0 } else { 1 });
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        assert_eq!(status, 0);
    }
}

/// A capture in a C function; the reported facts are counted.
struct Small {
    stacks: Stacks,
    thread: ThreadStacks,
    sink: Recorder,
    last: u32,
}

static mut SMALL: *mut Small = std::ptr::null_mut();

extern "C" fn small_probe(_: i32) {
    // SAFETY: one thread uses it at a time, between `with_small`'s stores.
    let small = unsafe { &mut *SMALL };
    small.last = small
        .stacks
        .capture(&mut small.thread, &mut small.sink)
        .stack;
}

/// Checks stacks-42.
#[test]
fn a_forked_child_reports_all_facts_again_and_the_parent_none() {
    let library = Library::open(&shared_recursion());
    let start = library.function("start");
    let mut small = Small {
        stacks: Stacks::new(Options {
            mode: Mode::Native,
            depth: 512,
        }),
        thread: ThreadStacks::new(),
        sink: Recorder::default(),
        last: 0,
    };
    // SAFETY: this is the only test that uses it.
    unsafe { SMALL = &mut small };
    // SAFETY: as above.
    let read = || unsafe { ((*SMALL).sink, (*SMALL).last, (*SMALL).stacks.sizes()) };
    let mut rounds = Vec::new();
    repeat(3, || {
        in_child(|| {
            let reported = read().0;
            // SAFETY: as above; the child has this thread only.
            unsafe { (*SMALL).stacks.forked() };
            repeat(4, || start(small_probe as Probe));
            let (now, stack, sizes) = read();
            let all = (
                now.modules - reported.modules,
                now.locations - reported.locations,
                now.nodes - reported.nodes,
            );
            let good =
                all.0 >= 3 && all.1 == sizes.1 && all.2 == sizes.2 && all.2 > 50 && stack == all.2;
            if !good {
                eprintln!("{reported:?}, in the child {now:?} {sizes:?} {stack}");
            }
            good
        });
        repeat(4, || start(small_probe as Probe));
        rounds.push(read().0);
    });
    assert!(rounds[0].modules >= 3 && rounds[0].nodes > 50, "{rounds:?}");
    assert!(
        rounds.iter().all(|reported| *reported == rounds[0]),
        "{rounds:?}"
    );
}

/// Checks stacks-43.
#[test]
fn a_child_of_a_fork_during_captures_of_other_threads_captures() {
    let library = Library::open(&shared_recursion());
    let process = Process::new(512);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let start = library.function("start");
                while !stop.load(Ordering::Relaxed) {
                    let fresh = Stacks::new(Options {
                        mode: Mode::Native,
                        depth: 512,
                    });
                    let mut thread = ThreadStacks::new();
                    let mut sink = Recorder::default();
                    fresh.capture(&mut thread, &mut sink);
                    process.run_with(false, |probe| repeat(20, || start(probe)));
                }
            });
        }
        let shared = Stacks::new(Options {
            mode: Mode::Native,
            depth: 512,
        });
        for _ in 0..50 {
            in_child(|| {
                shared.forked();
                let mut sink = Recorder::default();
                let mut thread = ThreadStacks::new();
                let captured = shared.capture(&mut thread, &mut sink);
                captured.stack != 0 && captured.flags == 0 && sink.nodes > 3
            });
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn capture_with_a_refusing_sink_has_no_stack_and_reports_again_later() {
    let library = Library::open(&shared_recursion());
    let process = Process::new(512);
    let taken = process.run(|probe| {
        let start = library.function("start");
        process.facts.lock().unwrap().refuse = true;
        repeat(3, || start(probe));
        assert_eq!(counts().lost, 3);
        process.facts.lock().unwrap().refuse = false;
        repeat(3, || start(probe));
    });
    for one in &taken[..3] {
        assert_eq!(
            (one.captured.stack, one.captured.flags),
            (0, rpd_stacks::flags::LOST)
        );
    }
    process.agree(&taken[3..]);
}
