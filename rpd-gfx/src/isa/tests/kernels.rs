use super::*;

fn floats(n: usize, seed: u64) -> Vec<f32> {
    let mut random = Random(seed);
    let mut out: Vec<f32> = (0..n)
        .map(|i| match i % 4 {
            0 => f32::from_bits(random.next() as u32),
            1 => (random.next() as i32) as f32 / 65536.0,
            2 => f32::from_bits(random.next() as u32 & 0x807f_ffff | 0x3f80_0000),
            _ => f32::from_bits(random.next() as u32 & 0x80ff_ffff),
        })
        .collect();
    let special = [
        0.0,
        -0.0,
        f32::INFINITY,
        -f32::INFINITY,
        f32::NAN,
        f32::MAX,
        f32::MIN_POSITIVE,
        1e-45,
    ];
    for (to, from) in out
        .iter_mut()
        .skip(7)
        .step_by(11)
        .zip(special.iter().cycle())
    {
        *to = *from;
    }
    out
}

fn same32(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

fn same64(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

#[test]
fn single_precision() {
    let n = 2000u32;
    let (mut a, mut b) = (floats(n as usize, 1), floats(n as usize, 2));
    with_modules(|m| {
        let mut out = vec![0f32; 5 * n as usize];
        let (mut a, mut b) = (a.clone(), b.clone());
        let args: [&[u8]; 4] = [
            &pointer(&mut out),
            &pointer(&mut a),
            &pointer(&mut b),
            &n.to_le_bytes(),
        ];
        let stats = m.run("arith", [2048, 1, 1], [64, 1, 1], 0, &args).unwrap();
        assert_eq!(
            (stats.workgroups, stats.waves, stats.work_items),
            (32, 32, 2048)
        );
        assert!(
            stats.bytes_loaded >= 2 * 4 * u64::from(n)
                && stats.bytes_stored >= 5 * 4 * u64::from(n)
        );
        for i in 0..n as usize {
            let (x, y) = (a[i], b[i]);
            let want = [
                x + y,
                x - y,
                x * y,
                x / y,
                if x < 0.0 { -x } else { x }.sqrt(),
            ];
            for k in 0..5 {
                assert!(
                    same32(out[5 * i + k], want[k]),
                    "{i}.{k}: {x:e} {y:e}: {:e} {:e}",
                    out[5 * i + k],
                    want[k]
                );
            }
        }
    });
    a.clear();
    b.clear();
}

#[test]
fn double_precision() {
    let n = 1500u32;
    let mut random = Random(3);
    let mut make = |_| match random.next() % 4 {
        0 => f64::from_bits(random.next()),
        1 => random.next() as i64 as f64 / 1e6,
        2 => f64::from_bits(random.next() & 0x800f_ffff_ffff_ffff | 0x3ff0_0000_0000_0000),
        _ => (random.next() % 100) as f64,
    };
    let a: Vec<f64> = (0..n).map(&mut make).collect();
    let b: Vec<f64> = (0..n).map(&mut make).collect();
    with_modules(|m| {
        let mut out = vec![0f64; 6 * n as usize];
        let (mut a, mut b) = (a.clone(), b.clone());
        let args: [&[u8]; 4] = [
            &pointer(&mut out),
            &pointer(&mut a),
            &pointer(&mut b),
            &n.to_le_bytes(),
        ];
        m.run("arith64", [1536, 1, 1], [256, 1, 1], 0, &args)
            .unwrap();
        for i in 0..n as usize {
            let (x, y) = (a[i], b[i]);
            let want = [
                x + y,
                x - y,
                x * y,
                x / y,
                if x < 0.0 { -x } else { x }.sqrt(),
                x.mul_add(y, 1.0),
            ];
            for k in 0..6 {
                let got = out[6 * i + k];
                // A denormal quotient is rounded twice.
                let close = k == 3
                    && want[3].is_subnormal()
                    && got.to_bits().abs_diff(want[3].to_bits()) <= 1;
                assert!(
                    close || same64(got, want[k]),
                    "{i}.{k}: {x:e} {y:e}: {got:e} {:e}",
                    want[k]
                );
            }
        }
    });
}

#[test]
fn half_precision() {
    use crate::isa::float::{f16_to_f32, f64_to_f16};
    let n = 4096u32;
    let mut random = Random(4);
    let a: Vec<u16> = (0..n).map(|_| random.next() as u16).collect();
    let b: Vec<u16> = (0..n)
        .map(|i| {
            if i % 2 == 0 {
                random.next() as u16
            } else {
                0x3c00 + (i as u16 & 0x3ff)
            }
        })
        .collect();
    with_modules(|m| {
        let mut out = vec![0u16; 5 * n as usize];
        let (mut a, mut b) = (a.clone(), b.clone());
        let args: [&[u8]; 4] = [
            &pointer(&mut out),
            &pointer(&mut a),
            &pointer(&mut b),
            &n.to_le_bytes(),
        ];
        m.run("arith16", [n, 1, 1], [256, 1, 1], 0, &args).unwrap();
        for i in 0..n as usize {
            let wide = |h: u16| f64::from(f16_to_f32(h));
            let (x, y) = (wide(a[i]), wide(b[i]));
            let max = if x.is_nan() {
                y
            } else if y.is_nan() || x > y {
                x
            } else {
                y
            };
            let want = [x + y, x - y, x * y, x / y, max].map(f64_to_f16);
            for k in 0..5 {
                let got = out[5 * i + k];
                let nan = wide(got).is_nan() && wide(want[k]).is_nan();
                let zero = k == 4 && got & 0x7fff == 0 && want[k] & 0x7fff == 0;
                // Division of halves is done in single precision.
                let close = k == 3 && got.abs_diff(want[k]) <= 1;
                assert!(
                    nan || zero || close || got == want[k],
                    "{i}.{k}: {x:e} {y:e}: {got:04x} {:04x}",
                    want[k]
                );
            }
        }
    });
}

#[test]
fn integers() {
    let n = 1000u32;
    let mut random = Random(5);
    let mut make = |i: u32| {
        let v = random.next() as u32;
        if i.is_multiple_of(3) {
            v >> (v & 31)
        } else {
            v
        }
    };
    let a: Vec<u32> = (0..n).map(&mut make).collect();
    let b: Vec<u32> = (0..n).map(|i| make(i + 1)).collect();
    with_modules(|m| {
        let mut out = vec![0u32; 20 * n as usize];
        let (mut a, mut b) = (a.clone(), b.clone());
        let args: [&[u8]; 4] = [
            &pointer(&mut out),
            &pointer(&mut a),
            &pointer(&mut b),
            &n.to_le_bytes(),
        ];
        m.run("ints", [1024, 1, 1], [128, 1, 1], 0, &args).unwrap();
        for i in 0..n as usize {
            let (x, y) = (a[i], b[i] | 1);
            let (sx, sy) = (x as i32, y as i32);
            let d = if sy == -1 { 3 } else { sy };
            let want = [
                x / y,
                x % y,
                (sx / d) as u32,
                (sx % d) as u32,
                x.wrapping_mul(y),
                ((u64::from(x) * u64::from(y)) >> 32) as u32,
                x << (y & 31),
                x >> (y & 31),
                (sx >> (y & 31)) as u32,
                x.count_ones(),
                x.leading_zeros(),
                x.trailing_zeros(),
                x >> 5 & 0x7f,
                x.reverse_bits(),
                x.swap_bytes(),
                x.min(y),
                sx.min(sy) as u32,
                (x & 0xff) * (y & 0xffff) + 7,
                x.rotate_left(y & 31),
                (x ^ y) & !(x & 0xf0f0),
            ];
            assert_eq!(out[20 * i..20 * i + 20], want, "{i}: {x:#x} {y:#x}");
        }
    });
}

#[test]
fn long_integers() {
    let n = 700u32;
    let mut random = Random(6);
    let mut make = |i: u32| {
        let v = random.next();
        if i.is_multiple_of(3) {
            v >> (v & 63)
        } else {
            v
        }
    };
    let a: Vec<u64> = (0..n).map(&mut make).collect();
    let b: Vec<u64> = (0..n).map(|i| make(i + 1)).collect();
    with_modules(|m| {
        let mut out = vec![0u64; 12 * n as usize];
        let (mut a, mut b) = (a.clone(), b.clone());
        let args: [&[u8]; 4] = [
            &pointer(&mut out),
            &pointer(&mut a),
            &pointer(&mut b),
            &n.to_le_bytes(),
        ];
        m.run("longs", [704, 1, 1], [64, 1, 1], 0, &args).unwrap();
        for i in 0..n as usize {
            let (x, y) = (a[i], b[i] | 1);
            let (sx, sy) = (x as i64, y as i64);
            let d = if sy == -1 { 3 } else { sy };
            let want = [
                x / y,
                x % y,
                (sx.wrapping_div(d)) as u64,
                (sx.wrapping_rem(d)) as u64,
                x.wrapping_mul(y),
                x.wrapping_add(y),
                x.wrapping_sub(y),
                x << (y & 63),
                x >> (y & 63),
                (sx >> (y & 63)) as u64,
                x.min(y),
                sx.min(sy) as u64,
            ];
            assert_eq!(out[12 * i..12 * i + 12], want, "{i}: {x:#x} {y:#x}");
        }
    });
}

#[test]
fn conversions() {
    use crate::isa::float::f64_to_f16;
    let n = 512u32;
    let mut random = Random(7);
    let f: Vec<f32> = (0..n)
        .map(|_| (random.next() as i32 >> (random.next() & 31)) as f32 * 0.37)
        .collect();
    let d: Vec<f64> = (0..n)
        .map(|_| (random.next() as i64 >> (33 + (random.next() & 15))) as f64 * 0.73)
        .collect();
    with_modules(|m| {
        let mut out = vec![0u32; 10 * n as usize];
        let (mut f, mut d) = (f.clone(), d.clone());
        let args: [&[u8]; 4] = [
            &pointer(&mut out),
            &pointer(&mut f),
            &pointer(&mut d),
            &n.to_le_bytes(),
        ];
        m.run("converts", [512, 1, 1], [512, 1, 1], 0, &args)
            .unwrap();
        for i in 0..n {
            let at = i as usize;
            let back = (d[at] as i64 as f64 + f64::from(f[at])).to_bits();
            let want = [
                f[at] as i32 as u32,
                if f[at] > 0.0 { f[at] as u32 } else { 0 },
                d[at] as i32 as u32,
                (d[at] as f32).to_bits(),
                (i.wrapping_mul(1_103_515_245) as i32 as f32).to_bits(),
                (i.wrapping_mul(2_654_435_761) as f32).to_bits(),
                u32::from(f64_to_f16(f64::from(f[at]))),
                (u64::from(i).wrapping_mul(0x9E37_79B9_7F4A_7C15) as f32).to_bits(),
                back as u32,
                (back >> 32) as u32,
            ];
            assert_eq!(out[10 * at..10 * at + 10], want, "{i}: {} {}", f[at], d[at]);
        }
    });
}

#[test]
fn transposes_through_lds() {
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
        // Without optimisation LDS is reached through flat instructions.
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
fn reduces_and_counts() {
    let n = 5000u32;
    let input: Vec<u32> = (0..n).map(|i| i * 7 + 1).collect();
    let text: Vec<u8> = (0..n).map(|i| ((i * i) >> 3) as u8).collect();
    with_modules(|m| {
        let (mut input, mut text) = (input.clone(), text.clone());
        let mut sum = [0u32];
        let args: [&[u8]; 3] = [&pointer(&mut sum), &pointer(&mut input), &n.to_le_bytes()];
        m.run("reduce", [5120, 1, 1], [256, 1, 1], 0, &args)
            .unwrap();
        assert_eq!(sum[0], input.iter().sum::<u32>());

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
fn atomic_operations() {
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
fn calls_with_structs_and_recursion() {
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
            // Contraction is the compiler's choice.
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
fn scratch_arrays_and_function_pointers() {
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
fn lane_exchanges() {
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
fn elementary_functions() {
    let input: Vec<f32> = (0..64).map(|i| 0.03 + i as f32 * 0.37).collect();
    with_modules(|m| {
        let mut input = input.clone();
        let mut out = vec![0f32; 64 * 9];
        let args: [&[u8]; 2] = [&pointer(&mut out), &pointer(&mut input)];
        m.run("math", [64, 1, 1], [64, 1, 1], 0, &args).unwrap();
        for i in 0..64 {
            let x = input[i];
            let turn = f64::from(x) * std::f64::consts::TAU;
            let want = [
                x.exp2(),
                x.log2(),
                turn.sin() as f32,
                turn.cos() as f32,
                x.floor(),
                (-x).trunc(),
                x.round_ties_even(),
                x - x.floor(),
                x * 2f32.powi(i as i32 - 32) + x.max(2.0) + x.min(1.0),
            ];
            for k in 0..9 {
                let got = out[9 * i + k];
                assert!(
                    (got - want[k]).abs() <= 1e-6 * (1.0 + want[k].abs()),
                    "{i}.{k}: {got} {}",
                    want[k]
                );
            }
        }
    });
}

#[test]
fn packed_and_small_types() {
    use crate::isa::float::{f16_to_f32, f64_to_f16};
    let n = 256usize;
    with_modules(|m| {
        let mut a: Vec<f32> = (0..n).map(|i| i as f32 * 0.125).collect();
        let mut b: Vec<f32> = (0..n).map(|i| 3.0 - i as f32 * 0.01).collect();
        let (mut h, mut f) = (vec![0u16; 2 * n], vec![0f32; 2 * n]);
        let args: [&[u8]; 4] = [
            &pointer(&mut h),
            &pointer(&mut f),
            &pointer(&mut a),
            &pointer(&mut b),
        ];
        m.run("packed", [256, 1, 1], [64, 1, 1], 0, &args).unwrap();
        for i in 0..n {
            let half = |v: f32| f64::from(f16_to_f32(f64_to_f16(f64::from(v))));
            let product = half(a[i]) * half(b[i]);
            for (k, add) in [1.0, 2.0].into_iter().enumerate() {
                let fused = f64_to_f16(product + add);
                let apart = f64_to_f16(f64::from(f16_to_f32(f64_to_f16(product))) + add);
                assert!([fused, apart].contains(&h[2 * i + k]), "{i}.{k}");
            }
            let (p, q) = ([a[i], b[i]], [b[i], 3.0]);
            for k in 0..2 {
                let (fused, apart) = (p[k].mul_add(q[k], a[i]), p[k] * q[k] + a[i]);
                assert!([fused, apart].contains(&f[2 * i + k]), "{i}.{k}");
            }
        }

        let count = 200u32;
        let mut small: Vec<i8> = (0..count).map(|i| (i * 3) as i8).collect();
        let mut shorts: Vec<u16> = (0..count).map(|i| (i * 519) as u16).collect();
        let mut out = vec![0u8; 4 * count as usize];
        let args: [&[u8]; 4] = [
            &pointer(&mut out),
            &pointer(&mut small),
            &pointer(&mut shorts),
            &count.to_le_bytes(),
        ];
        m.run("bytes", [256, 1, 1], [64, 1, 1], 0, &args).unwrap();
        for i in 0..count as usize {
            let (s, w) = (i32::from(small[i]), shorts[i]);
            let want = [
                (s + i32::from(w)) as u8,
                (s >> 1) as u8,
                (w >> 8) as u8,
                (w.wrapping_mul(3) >> 4) as u8,
            ];
            assert_eq!(out[4 * i..4 * i + 4], want, "{i}");
        }
    });
}

#[test]
fn grids_of_three_dimensions_with_partial_groups() {
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
fn divergent_loops_and_vectors() {
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
fn threads_share_a_dispatch() {
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
fn faults_name_kernel_and_address() {
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

/// Prints what a wave instruction costs; run with `--ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn speed() {
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
