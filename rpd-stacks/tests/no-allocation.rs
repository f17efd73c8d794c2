//! Captures allocate nothing once a thread has made its first one. Without the test harness, whose threads allocate too.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use rpd_stacks::{
    JitObject, Location, Mode, Module, Node, Options, PythonCode, Sink, Stacks, ThreadStacks,
};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: everything is handed to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[derive(Default)]
struct Count {
    nodes: u64,
}

impl Sink for Count {
    fn module(&mut self, _: &Module<'_>) -> bool {
        true
    }

    fn code(&mut self, _: &PythonCode<'_>) -> bool {
        true
    }

    fn object(&mut self, _: &JitObject) -> bool {
        true
    }

    fn location(&mut self, _: &Location) -> bool {
        true
    }

    fn node(&mut self, _: &Node) -> bool {
        self.nodes += 1;
        true
    }
}

/// Recursion through two functions in an order that the seed gives: the stacks of most seeds are new.
#[inline(never)]
fn left(depth: u32, seed: u64, run: &mut dyn FnMut()) {
    if depth == 0 {
        run()
    } else if seed & 1 == 0 {
        left(depth - 1, seed >> 1, run)
    } else {
        right(depth - 1, seed >> 1, run)
    }
    black_box(seed);
}

#[inline(never)]
fn right(depth: u32, seed: u64, run: &mut dyn FnMut()) {
    let pad = [seed; 9];
    black_box(&pad);
    if depth == 0 {
        run()
    } else if seed & 1 == 0 {
        left(depth - 1, seed >> 1, run)
    } else {
        right(depth - 1, seed >> 1, run)
    }
    black_box(pad);
}

/// Number of bytes that the C library's allocator has given out.
fn in_use() -> usize {
    // SAFETY: a plain question.
    unsafe { libc::mallinfo2() }.uordblks
}

fn main() {
    let stacks = Stacks::new(Options {
        mode: Mode::Native,
        depth: 512,
    });
    let mut thread = ThreadStacks::new();
    let mut sink = Count::default();
    stacks.capture(&mut thread, &mut sink);
    let nodes = sink.nodes;
    let before = (ALLOCATIONS.load(Ordering::Relaxed), in_use());
    let mut state = 1u64;
    for round in 0..2000 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        left(round % 60, state >> 3, &mut || {
            let captured = stacks.capture(&mut thread, &mut sink);
            assert!(captured.stack != 0 && captured.flags == 0);
        });
    }
    // A stack far deeper than any before.
    left(4000, 0, &mut || {
        stacks.capture(&mut thread, &mut sink);
    });
    let after = (ALLOCATIONS.load(Ordering::Relaxed), in_use());
    assert!(sink.nodes > nodes + 10_000);
    assert_eq!(after, before);
}
