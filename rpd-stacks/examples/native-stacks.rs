//! Cost of native captures, beside framehop's on the same stacks.
//!
//! Prints one line per figure: `NAME: NUMBER ns`. A figure is the lower decile of many batches, because other work of the
//! machine only adds time.

#[path = "../tests/native/framehop_unwinder.rs"]
mod framehop_unwinder;

use std::hint::black_box;
use std::time::Instant;

use framehop_unwinder::FramehopUnwinder;
use rpd_stacks::{
    JitObject, Location, Mode, Module, Node, Options, PythonCode, Sink, Stacks, ThreadStacks,
};

struct Discard;

impl Sink for Discard {
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
        true
    }
}

struct Bench {
    stacks: Stacks,
    thread: ThreadStacks,
    framehop: FramehopUnwinder,
    with_framehop: bool,
    captured: u32,
}

impl Bench {
    #[inline(never)]
    fn take(&mut self) {
        if self.with_framehop {
            let (ip, sp, bp): (u64, u64, u64);
            // SAFETY: reads registers.
            unsafe {
                std::arch::asm!("lea {}, [rip]", "mov {}, rsp", "mov {}, rbp", out(reg) ip, out(reg) sp, out(reg) bp)
            };
            let mut sum = 0u64;
            self.framehop
                .walk(ip, sp, bp, |address| sum = sum.wrapping_add(address));
            black_box(sum);
        } else {
            self.captured = self.stacks.capture(&mut self.thread, &mut Discard).stack;
        }
    }
}

/// A call chain of distinct functions; each has a frame of its own size.
macro_rules! chain {
    ($($name:ident $size:literal),*) => {
        $(#[inline(never)]
        fn $name(depth: usize, run: &mut dyn FnMut()) {
            let mut pad = [depth; $size];
            black_box(&mut pad);
            if depth == 0 { run() } else { CHAIN[depth % CHAIN.len()](depth - 1, run) }
            black_box(&mut pad);
        })*
        const CHAIN: &[fn(usize, &mut dyn FnMut())] = &[$($name),*];
    };
}

chain!(a 2, b 4, c 6, d 3, e 10, f 5, g 2, h 7, i 20, j 3, k 4, l 9, m 2, n 5, o 6, p 13, q 2, r 4, s 3, t 8);

/// Two callers with frames of different sizes: stacks taken through them in turn share no frame, so nothing of the last
/// walk can be used.
#[inline(never)]
fn through_small(depth: usize, run: &mut dyn FnMut()) {
    let mut pad = [depth; 2];
    a(depth, run);
    black_box(&mut pad);
}

#[inline(never)]
fn through_large(depth: usize, run: &mut dyn FnMut()) {
    let mut pad = [depth; 32];
    black_box(&mut pad);
    a(depth, run);
    black_box(&mut pad);
}

/// Threads whose first deep walk is measured.
const FIRST_WALKS: usize = 50;

/// Lower decile of the time of `batches` runs of `run`, divided by `per_batch`.
fn lower_decile(batches: usize, per_batch: usize, mut run: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..batches)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_nanos() as f64 / per_batch as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 10]
}

/// Frames of the stack on which `run` of [`at_depth`] is called at depth 0.
fn base_depth(bench: &mut Bench) -> usize {
    let before = bench.thread.counts();
    a(0, &mut || bench.take());
    let after = bench.thread.counts();
    (after.walked + after.reused - before.walked - before.reused) as usize
}

fn main() {
    let mut framehop = FramehopUnwinder::new();
    framehop.update();
    let stacks = Stacks::new(Options {
        mode: Mode::Native,
        depth: 512,
    });
    let mut bench = Bench {
        stacks,
        thread: ThreadStacks::new(),
        framehop,
        with_framehop: false,
        captured: 0,
    };
    let base = base_depth(&mut bench);

    // Every function of the chain is new at its first call; the captures go deeper by one each time.
    let before = bench.thread.counts().misses;
    let start = Instant::now();
    a(40, &mut || bench.take());
    let new = bench.thread.counts().misses - before;
    println!(
        "first sight of a program counter: {:.0} ns ({new} new)",
        start.elapsed().as_nanos() as f64 / new as f64
    );

    for (frames, target) in [(30, "warm"), (68, "warm")] {
        for with_framehop in [false, true] {
            bench.with_framehop = with_framehop;
            let both = &mut || {
                through_small(frames - base, &mut || bench.take());
                through_large(frames - base, &mut || bench.take());
            };
            let took = lower_decile(5000, 2, both);
            let bare = lower_decile(5000, 2, || {
                through_small(frames - base, &mut || {});
                through_large(frames - base, &mut || {});
            });
            let name = if with_framehop { ", framehop" } else { "" };
            println!("{frames} frames, {target}{name}: {:.0} ns", took - bare);
        }
    }
    bench.with_framehop = false;
    for frames in [30, 68, 5000] {
        let rounds = if frames > 1000 { 50 } else { 2000 };
        a(frames - base, &mut || {
            let took = lower_decile(200, rounds, || {
                for _ in 0..rounds {
                    bench.take();
                }
            });
            println!("{frames} frames, memoised: {took:.0} ns");
        });
    }
    // A call at the same place in a loop, below a part of the stack that stays: its innermost six frames are walked again.
    a(62 - base, &mut || {
        let took = lower_decile(5000, 2, || {
            through_small(1, &mut || bench.take());
            through_large(1, &mut || bench.take());
        });
        println!("68 frames, 62 reused: {took:.0} ns");
    });
    bench.with_framehop = true;
    a(5000 - base, &mut || {
        let took = lower_decile(100, 1, || bench.take());
        println!("5000 frames, framehop: {took:.0} ns");
    });
    bench.with_framehop = false;
    // As on a thread that has made one capture, of a shallow stack: what a thread starts with is there.
    let mut fresh: Vec<ThreadStacks> = (0..FIRST_WALKS).map(|_| ThreadStacks::new()).collect();
    for thread in &mut fresh {
        std::mem::swap(&mut bench.thread, thread);
        bench.take();
        std::mem::swap(&mut bench.thread, thread);
    }
    a(5000 - base, &mut || {
        let mut threads = fresh.iter_mut();
        let took = lower_decile(FIRST_WALKS, 1, || {
            if let Some(thread) = threads.next() {
                std::mem::swap(&mut bench.thread, thread);
                bench.take();
            }
        });
        println!("5000 frames, first walk of a thread: {took:.0} ns");
    });
    black_box(bench.captured);
}
