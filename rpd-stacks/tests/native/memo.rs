//! Frames that a walk takes over from the walk before.

use crate::support::{Library, Process, counts, repeat, undisturbed};

/// Checks stacks-30.
#[test]
fn one_place_has_one_stack_and_two_lines_share_their_callers() {
    let source = r#"
        typedef void (*probe_fn)(int);
        volatile int sink;
        __attribute__((noinline)) void two(probe_fn p) {
            p(1); sink++;
            p(2); sink++;
        }
        void start(probe_fn p) { two(p); sink++; }
    "#;
    let library = Library::from_name("two", &["-O2"], source);
    let process = Process::new(512);
    let taken = process.run(|probe| repeat(3, || library.function("start")(probe)));
    process.agree(&taken);
    let stacks: Vec<u32> = taken.iter().map(|one| one.captured.stack).collect();
    assert_eq!(
        stacks,
        [
            stacks[0], stacks[1], stacks[0], stacks[1], stacks[0], stacks[1]
        ]
    );
    assert_ne!(stacks[0], stacks[1]);
    let facts = process.facts.lock().unwrap();
    let path = |mut node: u32| {
        let mut nodes = vec![node];
        while facts.nodes[&node].parent != 0 {
            node = facts.nodes[&node].parent;
            nodes.push(node);
        }
        nodes
    };
    let (one, other) = (path(stacks[0]), path(stacks[1]));
    let differ = one
        .iter()
        .zip(&other)
        .filter(|(one, other)| one != other)
        .count();
    let names = facts.names(stacks[0]);
    // The frames of the probe and of `two` are under different nodes; everything from `start` outwards is the same.
    assert_eq!(
        differ,
        names.iter().position(|name| name == "two").unwrap() + 1
    );
}

/// Checks stacks-31.
#[test]
fn a_million_equal_calls_add_nothing_to_the_tree() {
    let source = r#"
        typedef void (*probe_fn)(int);
        void start(probe_fn p) { for (int i = 0; i < 1000000; i++) p(i); }
    "#;
    let library = Library::from_name("million", &["-O2"], source);
    let process = Process::new(512);
    let mut end = Default::default();
    let taken = process.run_with(false, |probe| {
        library.function("start")(probe);
        end = counts();
    });
    assert_eq!(taken.len(), 1_000_000);
    assert!(taken.iter().all(|one| one.captured == taken[0].captured));
    let nodes = process
        .facts
        .lock()
        .unwrap()
        .names(taken[0].captured.stack)
        .len();
    assert_eq!(process.sizes().2 as usize, nodes);
    // The probe's own frames are walked each time, because RBP is no frame pointer in them; the C code's are not.
    assert!(
        end.walked < 3 * 1_000_000 && end.reused as usize > (nodes - 4) * 999_999,
        "{end:?}"
    );
}

/// Checks stacks-32.
#[test]
fn stacks_alternate_with_two_callers_of_equal_frame_size() {
    let source = r#"
        typedef void (*probe_fn)(int);
        volatile int sink;
        __attribute__((noinline)) void f(probe_fn p, int n) { p(n); sink++; }
        __attribute__((noinline)) void a(probe_fn p) { f(p, 1); sink++; }
        __attribute__((noinline)) void b(probe_fn p) { f(p, 2); sink++; sink++; }
        void start(probe_fn p) { for (int i = 0; i < 100; i++) { a(p); b(p); } }
    "#;
    for flags in [&["-O2"][..], &["-O0"]] {
        let library = Library::from_name("alternate", flags, source);
        let process = Process::new(512);
        let taken = process.run(|probe| library.function("start")(probe));
        process.agree(&taken);
        for one in &taken {
            let names = process.names(one);
            let at = names.iter().position(|name| name == "f").unwrap();
            assert_eq!(names[at + 1], if one.tag == 1 { "a" } else { "b" });
        }
    }
}

#[test]
fn walk_after_a_change_far_out_has_the_right_frames_further_in() {
    // Only the call in `outer` differs between two captures: all words of the inner frames are equal.
    let source = r#"
        typedef void (*probe_fn)(int);
        volatile int sink;
        __attribute__((noinline)) int down(probe_fn p, int n) { if (n == 0) { p(0); return 1; } return down(p, n - 1) + sink; }
        __attribute__((noinline)) void outer(probe_fn p) {
            sink += down(p, 20); sink += down(p, 20); sink += down(p, 20);
        }
        void start(probe_fn p) { outer(p); outer(p); sink++; }
    "#;
    let library = Library::from_name("outer", &["-O2"], source);
    let measure = || {
        let process = Process::new(512);
        let mut reused = 0;
        let taken = process.run(|probe| {
            repeat(2, || library.function("start")(probe));
            reused = counts().reused;
        });
        (process, taken, reused)
    };
    // Twenty recursive frames are taken over although a frame further out differs.
    let enough = |reused: u64| reused > 11 * 20;
    let (process, taken, reused) = undisturbed(measure, |found| enough(found.2));
    assert!(enough(reused), "{reused}");
    process.agree(&taken);
    let stacks: Vec<u32> = taken.iter().map(|one| one.captured.stack).collect();
    assert_eq!(
        stacks
            .iter()
            .collect::<std::collections::HashSet<_>>()
            .len(),
        6
    );
    assert_eq!(stacks[..6], stacks[6..]);
}

#[test]
fn captures_at_random_depths_agree_with_framehop_and_libgcc() {
    let source = r#"
        typedef void (*probe_fn)(int);
        volatile int sink;
        static unsigned state = 1;
        static unsigned next(void) { state = state * 1664525 + 1013904223; return state >> 16; }
        __attribute__((noinline)) int odd(probe_fn p, int n);
        __attribute__((noinline)) int even(probe_fn p, int n) {
            if (n == 0 || next() % 4 == 0) p(n);
            return n == 0 ? 0 : (next() % 2 ? odd : even)(p, n - 1) + sink;
        }
        __attribute__((noinline)) int odd(probe_fn p, int n) {
            volatile char pad[64]; pad[n % 64] = 1;
            if (n == 0 || next() % 4 == 0) p(n);
            return n == 0 ? 0 : (next() % 2 ? odd : even)(p, n - 1) + pad[n % 64];
        }
        void start(probe_fn p) { for (int i = 0; i < 200; i++) sink = even(p, next() % 30); }
    "#;
    let library = Library::from_name("depths", &["-O1"], source);
    let process = Process::new(512);
    let taken = process.run(|probe| library.function("start")(probe));
    assert!(taken.len() > 500);
    process.agree(&taken);
}
