//! Instructions that compilers seldom use, each compared with a model.

use super::machine::{execute, fill, sample};
use super::*;
use crate::isa::exec::{Exec, WaveState};
use crate::isa::inst::EXEC;

/// Executes the table's sample of an instruction, with the active lanes `lanes`, on random registers, to which
/// `change` is applied. Returns the registers before and after.
fn run(
    name: &str,
    lanes: u64,
    seed: u64,
    change: impl FnOnce(&mut Exec<'_>),
) -> (Vec<[u32; 64]>, Vec<[u32; 64]>) {
    let mut random = Random(seed);
    let mut before = Vec::new();
    let after = execute(
        &sample(name),
        &Everything,
        |x| {
            fill(x, || random.next() as u32);
            change(x);
            x.set_pair(EXEC, lanes);
            before = x.w.v.to_vec();
        },
        |x| {
            assert_eq!(x.w.state, WaveState::Ended, "{name}: {:?}", x.fault);
            x.w.v.to_vec()
        },
    );
    (before, after)
}

/// Checks that an instruction writes `model(registers of a lane)` to the registers from `to` on, and nothing else.
/// The samples' sources are v2, v6 and v8, their destination is v4.
fn check<const N: usize>(
    name: &str,
    change: impl Fn(&mut Exec<'_>, &mut Random),
    model: impl Fn(&dyn Fn(usize) -> u32) -> [u32; N],
) {
    for (seed, lanes) in [
        (1, u64::MAX),
        (2, 0x8000_0000_0000_0001),
        (3, 0x5555_ffff_0000_1234),
        (4, 0),
    ] {
        let mut random = Random(seed + 100);
        let (before, after) = run(name, lanes, seed, |x| change(x, &mut random));
        for register in 0..512 {
            for lane in 0..64 {
                let old = before[register][lane];
                let written = lanes >> lane & 1 != 0 && (4..4 + N).contains(&register);
                let expected = if written {
                    model(&|n| before[n][lane])[register - 4]
                } else {
                    old
                };
                let found = after[register][lane];
                assert_eq!(found, expected, "{name}: register {register}, lane {lane}");
            }
        }
    }
}

#[test]
fn trig_preop_returns_the_segments_of_two_over_pi_of_llvm() {
    let rows = include_str!("../../../testdata/trig-preop.csv");
    for row in rows.lines().skip(1) {
        let [value, segment, result] = row.split(',').collect::<Vec<_>>().try_into().unwrap();
        let hex = |text| u64::from_str_radix(text, 16).unwrap();
        let (value, result) = (hex(value), hex(result));
        let (_, after) = run("v_trig_preop_f64", 1, 1, |x| {
            (x.w.v[2][0], x.w.v[3][0]) = (value as u32, (value >> 32) as u32);
            x.w.v[6][0] = segment.parse().unwrap();
        });
        let found = u64::from(after[4][0]) | u64::from(after[5][0]) << 32;
        assert_eq!(found, result, "{row}: {:e}", f64::from_bits(found));
    }
}

fn bytes(low: u32, high: u32) -> [u8; 8] {
    (u64::from(low) | u64::from(high) << 32).to_le_bytes()
}

#[test]
fn instructions_sum_absolute_differences() {
    check::<4>(
        "v_mqsad_u32_u8",
        // Some bytes of the reference are 0 and are left out of the sum.
        |x, random| {
            x.w.v[6]
                .iter_mut()
                .for_each(|v| *v &= 0xff00_ffff | (random.next() as u32) << 16 & 0xff_0000)
        },
        |v| {
            let window = bytes(v(2), v(3));
            let reference = v(6).to_le_bytes();
            std::array::from_fn(|n| {
                let mut sum = v(8 + n);
                for k in 0..4 {
                    if reference[k] != 0 {
                        let difference = i32::from(window[n + k]) - i32::from(reference[k]);
                        sum = sum.wrapping_add(difference.unsigned_abs());
                    }
                }
                sum
            })
        },
    );
}

/// Converts a half-precision number.
fn half(bits: u32) -> f64 {
    let (exponent, fraction) = (bits >> 10 & 31, f64::from(bits & 0x3ff) / 1024.0);
    let size = match exponent {
        0 => fraction * 2f64.powi(-14),
        31 if fraction != 0.0 => f64::NAN,
        31 => f64::INFINITY,
        _ => (1.0 + fraction) * 2f64.powi(exponent as i32 - 15),
    };
    if bits & 0x8000 != 0 { -size } else { size }
}

/// The nearest integer; of two, the even one.
fn nearest(value: f64) -> i64 {
    let below = value.floor();
    let part = value - below;
    let up = part > 0.5 || part == 0.5 && below as i64 % 2 != 0;
    below as i64 + i64::from(up)
}

#[test]
fn instructions_pack_normalised_numbers() {
    let small = |x: &mut Exec<'_>, random: &mut Random| {
        for register in [2, 6] {
            // From -4 to 4.
            let mut number =
                || (random.next() as u32 & 0x83ff) | (5 + random.next() as u32 % 12) << 10;
            x.w.v[register].iter_mut().for_each(|v| *v = number());
        }
    };
    let signed =
        |bits: u32| nearest(half(bits & 0xffff).clamp(-1.0, 1.0) * 32767.0) as u32 & 0xffff;
    check("v_cvt_pknorm_i16_f16", small, |v| {
        [signed(v(2)) | signed(v(6)) << 16]
    });
    let unsigned = |bits: u32| nearest(half(bits & 0xffff).clamp(0.0, 1.0) * 65535.0) as u32;
    check("v_cvt_pknorm_u16_f16", small, |v| {
        [unsigned(v(2)) | unsigned(v(6)) << 16]
    });
}

#[test]
fn a_number_is_converted_into_one_byte_of_its_register() {
    check(
        "v_cvt_pkaccum_u8_f32",
        |x, random| {
            let mut number = || (random.next() % 4000) as f32 / 8.0 - 100.0;
            x.w.v[2].iter_mut().for_each(|v| *v = number().to_bits());
        },
        |v| {
            let value = nearest(f64::from(f32::from_bits(v(2)))).clamp(0, 255) as u8;
            let mut old = v(4).to_le_bytes();
            old[v(6) as usize % 4] = value;
            [u32::from_le_bytes(old)]
        },
    );
}

/// The face of a cube: the axis with the largest coordinate, z before y before x.
#[test]
fn cube_instructions_find_the_face_of_a_direction() {
    let directions = |x: &mut Exec<'_>, random: &mut Random| {
        for register in [2, 6, 8] {
            let mut number = || (random.next() % 7) as f32 - 3.0;
            x.w.v[register]
                .iter_mut()
                .for_each(|v| *v = number().to_bits());
        }
    };
    let face = |v: &dyn Fn(usize) -> u32| {
        let [x, y, z] = [v(2), v(6), v(8)].map(f32::from_bits);
        let largest = x.abs().max(y.abs()).max(z.abs());
        // Axis and sign, then the coordinates to the right and down on that face.
        if z.abs() == largest {
            (
                if z < 0.0 { 5.0 } else { 4.0 },
                if z < 0.0 { -x } else { x },
                -y,
                2.0 * z,
            )
        } else if y.abs() == largest {
            (
                if y < 0.0 { 3.0 } else { 2.0 },
                x,
                if y < 0.0 { -z } else { z },
                2.0 * y,
            )
        } else {
            (
                if x < 0.0 { 1.0f32 } else { 0.0 },
                if x < 0.0 { z } else { -z },
                -y,
                2.0 * x,
            )
        }
    };
    check("v_cubeid_f32", directions, |v| [face(v).0.to_bits()]);
    check("v_cubesc_f32", directions, |v| [face(v).1.to_bits()]);
    check("v_cubetc_f32", directions, |v| [face(v).2.to_bits()]);
    check("v_cubema_f32", directions, |v| [face(v).3.to_bits()]);
}

/// Executes an LDS instruction on 512 bytes of LDS. Returns LDS before, the data register, the destination register,
/// and LDS after.
fn lds(name: &str, offset: u32, m0: u32, lanes: u64) -> (Vec<u8>, [u32; 64], [u32; 64], Vec<u8>) {
    let code = sample(name);
    let code = [code[0] | offset, code[1]];
    let (data, target) = ((code[1] >> 8 & 0xff) as usize, (code[1] >> 24) as usize);
    let mut random = Random(12);
    let (mut before, mut stored) = (Vec::new(), [0; 64]);
    let (after, loaded) = execute(
        &code,
        &Everything,
        |x| {
            fill(x, || random.next() as u32);
            x.lds = (0..512).map(|_| random.next() as u8).collect();
            x.set(crate::isa::inst::M0, m0);
            x.set_pair(EXEC, lanes);
            (before, stored) = (x.lds.clone(), x.w.v[data]);
        },
        |x| {
            assert_eq!(x.w.state, WaveState::Ended, "{name}: {:?}", x.fault);
            (x.lds.clone(), x.w.v[target])
        },
    );
    (before, stored, loaded, after)
}

fn dword(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

#[test]
fn append_and_consume_count_lanes_in_lds() {
    let lanes = 0xf0f0_0000_0000_0007u64;
    for (name, change) in [("ds_append", 11u32), ("ds_consume", 11u32.wrapping_neg())] {
        let (before, _, loaded, after) = lds(name, 12, 100, lanes);
        let old = dword(&before, 112);
        for lane in (0..64).filter(|lane| lanes >> lane & 1 != 0) {
            assert_eq!(loaded[lane], old, "{name}");
        }
        let mut expected = before;
        expected[112..116].copy_from_slice(&old.wrapping_add(change).to_le_bytes());
        assert_eq!(after, expected, "{name}");
    }
}

#[test]
fn addtid_instructions_give_each_lane_its_own_dword_of_lds() {
    let lanes = 0x8000_0000_00ff_0001u64;
    let (before, stored, _, after) = lds("ds_write_addtid_b32", 20, 8, lanes);
    let mut expected = before;
    for lane in (0..64).filter(|lane| lanes >> lane & 1 != 0) {
        expected[28 + 4 * lane..32 + 4 * lane].copy_from_slice(&stored[lane].to_le_bytes());
    }
    assert_eq!(after, expected);
    let (before, _, loaded, after) = lds("ds_read_addtid_b32", 20, 8, lanes);
    assert_eq!(before, after);
    for lane in (0..64).filter(|lane| lanes >> lane & 1 != 0) {
        assert_eq!(loaded[lane], dword(&before, 28 + 4 * lane));
    }
}
