//! Kernels whose work-items exchange values or that call functions: LDS, atomics, lanes, call stacks, grids.

use super::kernels::floats;
use super::*;

#[test]
fn kernels_transpose_through_lds() {
    let (width, height) = (70u32, 45u32);
    let input: Vec<f32> = (0..width * height).map(|i| i as f32).collect();
    with_modules(|m| {
        let (mut input, mut out) = (input.clone(), vec![0f32; input.len()]);
        let args: [&[u8]; 4] = [
            &pointer(&mut out),
            &pointer(&mut input),
            &width.to_le_bytes(),
            &height.to_le_bytes(),
        ];
        let stats = m
            .run("transpose", [80, 48, 1], [16, 16, 1], 0, &args)
            .unwrap();
        assert_eq!((stats.workgroups, stats.waves), (15, 60));
        // Without optimisation LDS is accessed with flat instructions.
        assert!(
            stats.count(Class::Lds) >= 100 && stats.lds_bytes > 0 || stats.count(Class::Flat) > 120
        );
        for y in 0..height {
            for x in 0..width {
                assert_eq!(
                    out[(x * height + y) as usize],
                    input[(y * width + x) as usize]
                );
            }
        }
    });
}

#[test]
fn kernels_reduce_to_a_sum() {
    let n = 5000u32;
    let input: Vec<u32> = (0..n).map(|i| i * 7 + 1).collect();
    with_modules(|m| {
        let mut input = input.clone();
        let mut sum = [0u32];
        let args: [&[u8]; 3] = [&pointer(&mut sum), &pointer(&mut input), &n.to_le_bytes()];
        m.run("reduce", [5120, 1, 1], [256, 1, 1], 0, &args)
            .unwrap();
        assert_eq!(sum[0], input.iter().sum::<u32>());
    });
}

#[test]
fn kernels_count_a_histogram() {
    let n = 5000u32;
    let text: Vec<u8> = (0..n).map(|i| ((i * i) >> 3) as u8).collect();
    with_modules(|m| {
        let mut text = text.clone();
        let bins = 100u32;
        let mut out = vec![0u32; 100];
        let args: [&[u8]; 4] = [
            &pointer(&mut out),
            &pointer(&mut text),
            &n.to_le_bytes(),
            &bins.to_le_bytes(),
        ];
        m.run("histogram", [512, 1, 1], [128, 1, 1], 400, &args)
            .unwrap();
        let mut want = vec![0u32; 100];
        text.iter().for_each(|b| want[usize::from(*b) % 100] += 1);
        assert_eq!(out, want);
    });
}

#[test]
fn kernels_execute_atomic_operations() {
    with_modules(|m| {
        let n = 320u32;
        let mut o = vec![0u32; 16 + n as usize];
        let (mut w, mut f, mut d) = ([0u64], [0f32], [0f64]);
        let args: [&[u8]; 4] = [
            &pointer(&mut o),
            &pointer(&mut w),
            &pointer(&mut f),
            &pointer(&mut d),
        ];
        m.run("atomics", [n, 1, 1], [64, 1, 1], 0, &args).unwrap();
        let sum: u32 = (0..n).sum();
        let xor = (0..n).fold(0, |a, b| a ^ b);
        let chain = (0..n).fold(0u32, |a, _| a.wrapping_mul(3).wrapping_add(1));
        assert_eq!(
            o[..7],
            [sum, n - 1, -(n as i32 - 1) as u32, u32::MAX, xor, n, chain]
        );
        let mut slots = o[16..].to_vec();
        slots.sort_unstable();
        assert!(slots.into_iter().eq(0..n));
        assert_eq!(
            (w[0], f[0], d[0]),
            (u64::from(sum) << 30, n as f32, f64::from(n) / 2.0)
        );
    });
}

fn fib(n: u32) -> u32 {
    if n < 2 { n } else { fib(n - 1) + fib(n - 2) }
}

#[test]
fn kernels_call_functions_with_structs_and_recursion() {
    let n = 200u32;
    let input: Vec<f32> = (0..n).map(|i| i as f32 * 0.5 - 20.0).collect();
    with_modules(|m| {
        let mut input = input.clone();
        let mut out = vec![0f32; n as usize];
        let scale = [1.5f32, -2.0, 0.25];
        let mut p = Vec::new();
        p.extend(pointer(&mut input));
        scale.iter().for_each(|s| p.extend(s.to_le_bytes()));
        p.extend([1, 0, 0, 0]);
        p.extend(9.75f64.to_le_bytes());
        p.extend(n.to_le_bytes());
        p.extend([0; 4]);
        let args: [&[u8]; 2] = [&pointer(&mut out), &p];
        m.run("calls", [256, 1, 1], [64, 1, 1], 0, &args).unwrap();
        for i in 0..n {
            let a = input[i as usize];
            let (v, s) = ([a, a + 1.0, a * 2.0], scale);
            let fused = |p: f32, q: f32, r: f32, t: f32| p.mul_add(q, -(r * t));
            let plain = |p: f32, q: f32, r: f32, t: f32| p * q - r * t;
            // The compiler may contract multiplications and additions.
            let near = |got: f32, want: f32| (got - want).abs() <= 1e-4 * (1.0 + want.abs());
            let c = [
                plain(v[1], s[2], v[2], s[1]),
                plain(v[2], s[0], v[0], s[2]),
                plain(v[0], s[1], v[1], s[0]),
            ];
            let _ = fused;
            let want = match i % 5 + 1 {
                1 => c[1],
                2 => c[2],
                3 => c[0] + c[1] + c[2],
                4 => fib(i % 13) as f32,
                _ => 9.75,
            };
            assert!(
                near(out[i as usize], want),
                "{i}: {} {want}",
                out[i as usize]
            );
        }
    });
}

#[test]
fn kernels_use_scratch_arrays_and_function_pointers() {
    let n = 128usize;
    let index: Vec<u32> = (0..n as u32).map(|i| i * 13 % 29).collect();
    with_modules(|m| {
        let mut index = index.clone();
        let mut out = vec![0u32; n];
        let rounds = 40u32;
        let args: [&[u8]; 3] = [
            &pointer(&mut out),
            &pointer(&mut index),
            &rounds.to_le_bytes(),
        ];
        m.run("scratch", [128, 1, 1], [64, 1, 1], 0, &args).unwrap();
        for i in 0..n as u32 {
            let mut local: Vec<u32> = (0..32).map(|k| k * k + i).collect();
            for k in 0..16 {
                local[((index[i as usize] + k) & 31) as usize] += k;
            }
            let want = (0..rounds).fold(0u32, |s, k| {
                s.wrapping_mul(31)
                    .wrapping_add(local[((k + i) & 31) as usize])
            });
            assert_eq!(out[i as usize], want, "{i}");
        }

        let mut out = vec![0u32; n];
        let args: [&[u8]; 1] = [&pointer(&mut out)];
        m.run("pointers", [128, 1, 1], [64, 1, 1], 0, &args)
            .unwrap();
        for i in 0..n as u32 {
            let f = [2 * i, i + 7, i * i][i as usize % 3];
            assert_eq!(
                out[i as usize],
                f * [3, 5, 7, 11][i as usize & 3] + 100,
                "{i}"
            );
        }
    });
}

#[test]
fn kernels_exchange_values_between_lanes() {
    let input: Vec<u32> = (0..64).map(|i| i * i * 977 + 5).collect();
    with_modules(|m| {
        let mut input = input.clone();
        let mut out = vec![0u32; 64 * 8];
        let args: [&[u8]; 2] = [&pointer(&mut out), &pointer(&mut input)];
        m.run("lanes", [64, 1, 1], [64, 1, 1], 0, &args).unwrap();
        let odd: Vec<bool> = input.iter().map(|v| v & 1 != 0).collect();
        for i in 0..64 {
            let want = [
                input[i ^ 5],
                input[(i + 61) & 63],
                input[0],
                input[17],
                odd.iter().filter(|o| **o).count() as u32,
                odd[..i].iter().filter(|o| **o).count() as u32,
                input[i ^ 1],
                if i % 16 == 0 { 0 } else { input[i - 1] },
            ];
            assert_eq!(out[8 * i..8 * i + 8], want, "{i}");
        }
    });
}

#[test]
fn kernels_run_on_grids_of_three_dimensions_with_partial_groups() {
    with_modules(|m| {
        let mut out = vec![u32::MAX; 10 * 7 * 5];
        let args: [&[u8]; 1] = [&pointer(&mut out)];
        let stats = m.run("grid3", [10, 7, 5], [4, 3, 2], 0, &args).unwrap();
        assert_eq!((stats.workgroups, stats.work_items), (27, 350));
        for (at, v) in out.iter().enumerate() {
            let at = at as u32;
            let (x, y, z) = (at % 10, at / 10 % 7, at / 70);
            assert_eq!(*v, x | y << 8 | z << 16 | (x / 4) << 24);
        }
    });
}

#[test]
fn kernels_run_divergent_loops_and_vectors() {
    with_modules(|m| {
        let n = 500u32;
        let mut out = vec![0u32; n as usize];
        let args: [&[u8]; 2] = [&pointer(&mut out), &n.to_le_bytes()];
        m.run("collatz", [512, 1, 1], [64, 1, 1], 0, &args).unwrap();
        for i in 0..n {
            let (mut x, mut steps) = (i + 1, 0);
            while x != 1 {
                x = if x & 1 != 0 { 3 * x + 1 } else { x / 2 };
                steps += 1;
            }
            assert_eq!(out[i as usize], steps);
        }

        let mut input: Vec<[u32; 4]> = (0..64).map(|i| [i, i + 100, i + 200, i + 300]).collect();
        let mut out = vec![[0u32; 4]; 64];
        let pick = 2u32;
        let args: [&[u8]; 3] = [
            &pointer(&mut out),
            &pointer(&mut input),
            &pick.to_le_bytes(),
        ];
        m.run("vectors", [64, 1, 1], [64, 1, 1], 0, &args).unwrap();
        for i in 0..64 {
            let mut v = input[i];
            v[2] += i as u32;
            v[i & 3] ^= 0xff;
            v.reverse();
            assert_eq!(out[i], v, "{i}");
        }
    });
}

#[test]
fn workgroups_may_wait_for_each_other() {
    with_modules(|m| {
        let groups = 24u32;
        let mut count = [0u32];
        let mut out = vec![0u32; groups as usize * 64];
        let args: [&[u8]; 3] = [
            &pointer(&mut count),
            &pointer(&mut out),
            &groups.to_le_bytes(),
        ];
        m.run("meet", [groups * 64, 1, 1], [64, 1, 1], 0, &args)
            .unwrap();
        assert!(out.iter().all(|v| *v == groups));
    });
}

#[test]
fn host_threads_share_the_workgroups_of_a_dispatch() {
    let mut module = Module::load(OBJECTS[2].1);
    module.threads = 3;
    let n = 20_000u32;
    let mut input: Vec<u32> = (0..n).map(|i| i ^ 0x155).collect();
    let mut sum = [0u32];
    let args: [&[u8]; 3] = [&pointer(&mut sum), &pointer(&mut input), &n.to_le_bytes()];
    let stats = module
        .run(
            "reduce",
            [n.next_multiple_of(256), 1, 1],
            [256, 1, 1],
            0,
            &args,
        )
        .unwrap();
    assert_eq!((stats.workgroups, stats.waves), (79, 316));
    assert_eq!(sum[0], input.iter().fold(0, |a: u32, b| a.wrapping_add(*b)));
    let fault = module
        .run(
            "wild",
            [6400, 1, 1],
            [64, 1, 1],
            0,
            &[&0x20u64.to_le_bytes()],
        )
        .unwrap_err();
    assert!(
        matches!(fault, Fault::Memory { address: 0x20, .. }),
        "{fault}"
    );
}

#[test]
fn memory_faults_name_kernel_and_address() {
    with_modules(|m| {
        let fault = m
            .run("wild", [64, 1, 1], [64, 1, 1], 0, &[&0x10u64.to_le_bytes()])
            .unwrap_err();
        assert!(
            matches!(&fault, Fault::Memory { address: 0x10, access: Access::Write, site, .. }
                if site.kernel == "wild" && site.lanes == u64::MAX),
            "{fault}"
        );
        let fault = m.run("fail", [64, 1, 1], [64, 1, 1], 0, &[]).unwrap_err();
        assert!(matches!(&fault, Fault::Trap { id: 2, .. }), "{fault}");
        let fault = m.run("fail", [64, 1, 1], [0, 1, 1], 0, &[]).unwrap_err();
        assert!(fault.to_string().contains("workgroups of 0x1x1"), "{fault}");
    });
}

/// Prints the cost of an instruction of a wave; run with `--ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn interpreter_speed_is_printed() {
    let module = Module::load(OBJECTS[2].1);
    let report = |name: &str, run: &dyn Fn() -> Stats| {
        run();
        let start = std::time::Instant::now();
        let mut total = 0;
        for _ in 0..20 {
            total += run().total();
        }
        let took = start.elapsed();
        println!(
            "{name}: {:.1} ns a wave instruction, {:.0} us a dispatch",
            took.as_nanos() as f64 / total as f64,
            took.as_micros() as f64 / 20.0
        );
    };
    let n = 65536u32;
    let (a, b) = (floats(n as usize, 1), floats(n as usize, 2));
    report("arith", &|| {
        let (mut a, mut b, mut out) = (a.clone(), b.clone(), vec![0f32; 5 * n as usize]);
        let args: [&[u8]; 4] = [
            &pointer(&mut out),
            &pointer(&mut a),
            &pointer(&mut b),
            &n.to_le_bytes(),
        ];
        module
            .run("arith", [n, 1, 1], [64, 1, 1], 0, &args)
            .unwrap()
    });
    report("collatz", &|| {
        let mut out = vec![0u32; n as usize];
        let args: [&[u8]; 2] = [&pointer(&mut out), &n.to_le_bytes()];
        module
            .run("collatz", [n, 1, 1], [256, 1, 1], 0, &args)
            .unwrap()
    });
    report("transpose", &|| {
        let side = 256u32;
        let (mut input, mut out) = (vec![1f32; 65536], vec![0f32; 65536]);
        let args: [&[u8]; 4] = [
            &pointer(&mut out),
            &pointer(&mut input),
            &side.to_le_bytes(),
            &side.to_le_bytes(),
        ];
        module
            .run("transpose", [side, side, 1], [16, 16, 1], 0, &args)
            .unwrap()
    });
}
