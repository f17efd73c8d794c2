//! Frames of all shapes.

use crate::support::{Library, Process};

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
    if (n == 0) { realigned_and_allocates(p, 77); return 1; }
    return recurses(p, n - 1) * 3 + sink;
}
void start(probe_fn p) { sink = recurses(p, 7); }
"#;

#[test]
fn frames_of_all_shapes_are_walked_with_any_optimisation() {
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
        let library = Library::of("shapes", flags, SHAPES);
        let process = Process::new(512);
        let taken = process.run(|probe| {
            library.function("start")(probe);
            library.function("start")(probe);
        });
        process.agree_as_far_as_framehop_goes(&taken);
        let names = process.names(&taken[0]);
        let at = names.iter().position(|name| name == "leaf").unwrap();
        let expected = [
            "leaf",
            "saves_many",
            "allocates",
            "array",
            "realigned",
            "realigned_and_allocates",
        ];
        assert_eq!(names[at..at + 6], expected, "{flags:?}");
        assert!(names[at + 6..].iter().any(|name| name == "start"));
    }
}
