//! Measures the speed of the interpreter: `cargo test -p rpd-gfx throughput -- --ignored --nocapture`.

use super::*;
static SCHEDULE: &[u8] = include_bytes!("../../../testdata/schedule.co");

/// CPU time of this thread, on which other programs have less influence than on elapsed time.
fn processor_seconds() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid for a write.
    assert_eq!(0, unsafe {
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time)
    });
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Prints executed lane-instructions per second for three kinds of kernel: the best of ten runs on one thread.
#[test]
#[ignore = "a measurement"]
fn throughput_of_three_kernels_is_printed() {
    let module = Module::load(SCHEDULE);
    let mut numbers: [Vec<f32>; 3] =
        [0, 1, 2].map(|k| (0..1 << 20).map(|n| (n % 7 + k) as f32).collect());
    let [out, left, right] = numbers.each_mut().map(|v| pointer(v));
    let pass = |name: &str, grid: [u32; 3], args: &[&[u8]]| {
        let runs = (0..10).map(|_| {
            let begin = processor_seconds();
            let stats = module.run(name, grid, [1024, 1, 1], 0, args).unwrap();
            64.0 * stats.total() as f64 / (processor_seconds() - begin)
        });
        println!(
            "{name:<14}{:7.3} G lane-instructions/s",
            runs.fold(0.0, f64::max) / 1e9
        );
    };
    pass("fma_bound", [65536, 1, 1], &[&out, &[0, 2, 0, 0]]);
    pass(
        "memory_bound",
        [65536, 1, 1],
        &[&out, &left, &right, &[0, 0, 16, 0]],
    );
    pass("tiled", [8192, 8, 1], &[&out, &left, &right, &[0, 1, 0, 0]]);
}
