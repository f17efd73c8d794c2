//! Kernels that compute: arithmetic of all types, conversions, elementary functions.

use super::*;

pub(super) fn floats(n: usize, seed: u64) -> Vec<f32> {
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
fn kernels_compute_in_single_precision() {
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
fn kernels_compute_in_double_precision() {
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
                // Denormal quotients are rounded twice.
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
fn kernels_compute_in_half_precision() {
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
                // Half-precision division is computed in single precision.
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
fn kernels_compute_with_integers() {
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
fn kernels_compute_with_long_integers() {
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
fn kernels_convert_numbers() {
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
fn kernels_compute_elementary_functions() {
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
fn kernels_compute_with_packed_and_small_types() {
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
