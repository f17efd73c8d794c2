//! Memory accesses of a dispatch, and its reported duration.

use super::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Number of workgroups of a dispatch.
const GROUPS: u32 = 500;

/// Memory that allows all accesses until the change counter has been read `last` times.
struct Counting {
    asked: AtomicU64,
    changes: AtomicU64,
    last: u64,
}

impl Memory for Counting {
    fn changes(&self) -> u64 {
        let seen = self.changes.fetch_add(1, Ordering::Relaxed);
        u64::from(seen > self.last)
    }

    fn extent(&self, address: u64, write: bool) -> Option<Extent> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.changes.load(Ordering::Relaxed) > self.last + 1 {
            None
        } else {
            Everything.extent(address, write)
        }
    }
}

/// Runs the kernel `arith` on `groups` workgroups.
fn arith(memory: &dyn Memory, groups: u32, threads: usize) -> Result<Executed, Fault> {
    let items = groups * 64;
    let mut out = vec![0f32; 5 * items as usize];
    let (mut a, mut b) = (vec![1f32; items as usize], vec![2f32; items as usize]);
    let args: [&[u8]; 4] = [
        &pointer(&mut out),
        &pointer(&mut a),
        &pointer(&mut b),
        &items.to_le_bytes(),
    ];
    let module = Module::load(OBJECTS[2].1);
    module.dispatch("arith", [items, 1, 1], [64, 1, 1], 0, &args, |dispatch| {
        let stop = AtomicBool::new(false);
        let control = Control {
            threads,
            stop: &stop,
            seed: None,
        };
        run_dispatch(dispatch, memory, &control)
    })
}

#[test]
fn memory_is_queried_again_only_after_a_change() {
    let memory = |last| Counting {
        asked: AtomicU64::new(0),
        changes: AtomicU64::new(0),
        last,
    };
    let unchanged = memory(u64::MAX - 1);
    arith(&unchanged, GROUPS, 1).unwrap();
    let asked = unchanged.asked.into_inner();
    assert!((1..=6).contains(&asked), "{asked}");

    // If memory is freed during the dispatch, the next workgroup has a fault.
    let changed = memory(u64::from(GROUPS) / 2);
    let fault = arith(&changed, GROUPS, 1).unwrap_err();
    assert!(matches!(fault, Fault::Memory { .. }), "{fault}");
}

/// The shortest reported duration of several runs on this number of threads, with the elapsed time of that run.
fn time(threads: usize) -> (Duration, Duration) {
    let runs = (0..5).map(|_| {
        let begin = Instant::now();
        let executed = arith(&Everything, 4 * GROUPS, threads).unwrap();
        (executed.time, begin.elapsed())
    });
    runs.min().unwrap()
}

#[test]
fn the_time_of_a_dispatch_leaves_out_waits_for_a_cpu() {
    let (alone, passed) = time(1);
    assert!(
        !alone.is_zero() && alone <= passed,
        "{alone:?} of {passed:?}"
    );
    // Two threads compete for each CPU, and each does half of the work.
    let cpus = std::thread::available_parallelism().unwrap().get();
    let threads = 2 * cpus;
    let (shared, _) = time(threads);
    let fair = alone / threads as u32;
    assert!(
        shared > fair / 2 && shared < fair * 2,
        "{shared:?} instead of {fair:?}"
    );
}
