//! Litmus tests of the memory model: kernels of `testdata/litmus.hip` whose workgroups race, on several threads.

use super::*;
use std::time::{Duration, Instant};

static LITMUS: &[u8] = include_bytes!("../../../testdata/litmus.co");

/// Number of lanes of a workgroup. Each has its own addresses.
const LANES: usize = 64;

/// Memory with the alignment that allocators guarantee, so that no access is misaligned because of its base.
#[repr(C, align(256))]
#[derive(Clone, Copy)]
struct Chunk([u32; 64]);

/// Zeroed dwords.
struct Memory(Vec<Chunk>);

impl Memory {
    fn new(dwords: usize) -> Self {
        Self(vec![Chunk([0; 64]); dwords.div_ceil(64)])
    }

    fn pointer(&mut self) -> [u8; 8] {
        (self.0.as_mut_ptr() as u64).to_le_bytes()
    }

    fn get(&self, dword: usize) -> u32 {
        self.0[dword / 64].0[dword % 64]
    }

    fn sum(&self) -> u64 {
        let all = self.0.iter().flat_map(|chunk| chunk.0);
        all.map(u64::from).sum()
    }
}

fn module(threads: usize) -> Module {
    let mut module = Module::load(LITMUS);
    module.threads = threads;
    module
}

/// Runs both sides of a test.
fn pair(name: &str, args: &[&[u8]]) {
    let run = module(2).run(
        name,
        [2 * LANES as u32, 1, 1],
        [LANES as u16, 1, 1],
        0,
        args,
    );
    run.unwrap();
}

fn tearing(rounds: u32) {
    for width in ["u16", "u32", "u64", "uint2", "uint4"] {
        let (mut place, mut arrived, mut bad) =
            (Memory::new(4 * LANES), Memory::new(1), Memory::new(LANES));
        let args: [&[u8]; 4] = [
            &place.pointer(),
            &arrived.pointer(),
            &bad.pointer(),
            &rounds.to_le_bytes(),
        ];
        pair(&format!("tear_{width}"), &args);
        assert_eq!(bad.sum(), 0, "{width} was torn");
    }
}

fn message_passing(rounds: u32) {
    for scope in ["agent", "system"] {
        let (mut data, mut flag) = (Memory::new(32 * LANES), Memory::new(LANES));
        let (mut arrived, mut bad) = (Memory::new(1), Memory::new(LANES));
        let args: [&[u8]; 5] = [
            &data.pointer(),
            &flag.pointer(),
            &arrived.pointer(),
            &bad.pointer(),
            &rounds.to_le_bytes(),
        ];
        pair(&format!("pass_{scope}"), &args);
        assert_eq!(bad.sum(), 0, "{scope}: a flag was seen before the data");
        assert_eq!((data.get(0), flag.get(0)), (rounds, rounds));
    }
}

fn store_buffering(rounds: u32) {
    let places = LANES * rounds as usize;
    for how in ["fence", "system", "access"] {
        let (mut x, mut y, mut seen) = (
            Memory::new(places),
            Memory::new(places),
            Memory::new(2 * places),
        );
        let (mut progress, mut arrived) = (Memory::new(2), Memory::new(1));
        let args: [&[u8]; 6] = [
            &x.pointer(),
            &y.pointer(),
            &seen.pointer(),
            &progress.pointer(),
            &arrived.pointer(),
            &rounds.to_le_bytes(),
        ];
        pair(&format!("buffer_{how}"), &args);
        let neither = |&at: &usize| seen.get(2 * at) == 0 && seen.get(2 * at + 1) == 0;
        let count = (0..places).filter(neither).count();
        assert_eq!(count, 0, "{how}: neither side saw the other's store");
    }
}

fn look_back(groups: usize, threads: usize) {
    let count = LANES * groups;
    let mut input = Memory::new(count);
    let mut random = Random(groups as u64);
    for chunk in &mut input.0 {
        chunk.0 = std::array::from_fn(|_| random.next() as u32 & 0xfff);
    }
    for kind in ["u64", "uint2", "uint4"] {
        let (mut out, mut status) = (Memory::new(count), Memory::new(4 * groups));
        let args: [&[u8]; 3] = [&out.pointer(), &input.pointer(), &status.pointer()];
        let name = format!("scan_{kind}");
        let grid = [count as u32, 1, 1];
        module(threads)
            .run(&name, grid, [LANES as u16, 1, 1], 0, &args)
            .unwrap();
        let mut sum = 0;
        for n in 0..count {
            sum += input.get(n);
            assert_eq!(
                out.get(n),
                sum,
                "{kind} with {threads} threads, element {n}"
            );
        }
    }
}

#[test]
fn aligned_memory_accesses_are_not_torn() {
    tearing(60_000);
}

#[test]
fn data_stored_before_a_flag_is_loaded_after_it() {
    message_passing(20_000);
}

#[test]
fn sequential_consistency_forbids_store_buffering() {
    store_buffering(3_200);
}

#[test]
fn scans_with_look_back_compute_their_sums() {
    for threads in [1, 2, 4] {
        look_back(3_000, threads);
    }
}

/// Runs all tests for a minute: `cargo test -p rpd-gfx litmus -- --ignored`.
#[test]
#[ignore = "takes a minute"]
fn litmus_for_a_minute() {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(60) {
        tearing(50_000);
        message_passing(50_000);
        store_buffering(2_000);
        for threads in [2, 4, 8] {
            look_back(4_000, threads);
        }
    }
}
