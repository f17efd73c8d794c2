//! Random call trees.

use crate::support::{Library, Process, repeat};

/// Functions of 24 shapes that call each other at random, through the C library's `qsort`
/// and `bsearch` among others.
fn source() -> String {
    let mut text = String::from(
        r#"
        #include <alloca.h>
        #include <stdlib.h>
        #include <string.h>
        typedef void (*probe_fn)(int);
        struct tree { unsigned state; int probes; probe_fn probe; };
        typedef int (*shape_fn)(struct tree *, int);
        static shape_fn shapes[24];
        volatile int sink;
        static unsigned next(struct tree *t) { t->state = t->state * 1664525 + 1013904223; return t->state >> 12; }
        static __thread struct tree *current;
        static __thread int level;
        __attribute__((noinline)) static int go(struct tree *t, int n) {
            int sum = 0;
            for (int calls = next(t) % 3; calls >= 0 && t->probes < 12; calls--) {
                if (n == 0 || next(t) % 5 == 0) { t->probes++; t->probe(n); sum++; }
                else sum += shapes[next(t) % 24](t, n - 1);
            }
            return sum;
        }
        static int compare(const void *a, const void *b) {
            if (current->probes < 12) sink += go(current, level);
            return *(const char *)a - *(const char *)b;
        }
        "#,
    );
    for shape in 0..24 {
        let size = 8 << (shape % 8);
        text += &format!(
            "__attribute__((noinline)) static int shape{shape}(struct tree *t, int n) {{\n"
        );
        text += &match shape % 6 {
            0 => "return go(t, n) + sink;".to_owned(),
            1 => format!("volatile char pad[{size}]; pad[n % {size}] = 2; int r = go(t, n); return r + pad[n % {size}];"),
            2 => "char *m = alloca(16 + next(t) % 400); memset(m, n, 16); int r = go(t, n); return r + m[n % 16];".to_owned(),
            3 => "long a = t->state, b = a * 3, c = b ^ n, d = c * 7, e = d - a; int r = go(t, n) + go(t, n / 2); \
                  return r + (a ^ b) + (c ^ d) * e;"
                .to_owned(),
            4 => "char m[3] = {3, 1, 2}; struct tree *before = current; int outer = level; current = t; level = n; \
                  qsort(m, 3, 1, compare); current = before; level = outer; return m[0];"
                .to_owned(),
            _ => "char m[3] = {1, 2, 3}, k = 2; struct tree *before = current; int outer = level; current = t; level = n; \
                  void *r = bsearch(&k, m, 3, 1, compare); current = before; level = outer; return r != 0;"
                .to_owned(),
        };
        text += "}\n";
    }
    let names: Vec<String> = (0..24).map(|shape| format!("shape{shape}")).collect();
    text + &format!("static shape_fn shapes[24] = {{ {} }};\n", names.join(", "))
        + "void tree(probe_fn p, unsigned seed) { struct tree t = {seed, 0, p}; sink += go(&t, 3 + seed % 20); }\n"
}

#[test]
fn random_call_trees_have_the_stacks_that_framehop_finds() {
    let process = Process::new(512);
    let mut taken = Vec::new();
    for (part, flags) in [
        &["-O2"][..],
        &["-O1", "-fno-omit-frame-pointer"],
        &["-O0"],
        &["-O3", "-fomit-frame-pointer"],
    ]
    .iter()
    .enumerate()
    {
        let library = Library::from_name("random", flags, &source());
        // SAFETY: the library defines this function.
        let tree: extern "C" fn(crate::support::Probe, u32) =
            unsafe { std::mem::transmute(library.symbol("tree")) };
        let mut seed = part as u32 * 2500;
        let part = process.run(|probe| {
            repeat(2500, || {
                tree(probe, seed.wrapping_mul(2_654_435_761));
                seed += 1;
            });
        });
        assert!(part.len() > 5000, "{}", part.len());
        process.agree(&part);
        taken.extend(part);
    }
    let distinct: std::collections::HashSet<u32> =
        taken.iter().map(|one| one.captured.stack).collect();
    assert!(
        distinct.len() > 3000,
        "{} of {}",
        distinct.len(),
        taken.len()
    );
}
