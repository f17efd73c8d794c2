//! Instructions that gfx942 has and gfx90a has not, each compared with a model.

use super::machine::{execute_on, fill, sample_of};
use super::matrix_cases::eight_bits;
use super::*;
use crate::isa::exec::{Exec, WaveState};
use crate::isa::inst::{EXEC, M0};

const SET: InstructionSet = InstructionSet::Gfx942;

/// Executes `code` on random registers, to which `change` is applied. Returns the registers before and after.
fn run(
    code: &[u32],
    seed: u64,
    change: impl FnOnce(&mut Exec<'_>),
) -> (Vec<[u32; 64]>, Vec<[u32; 64]>) {
    let mut random = Random(seed);
    let mut before = Vec::new();
    let after = execute_on(
        SET,
        code,
        &Everything,
        |x| {
            fill(x, || random.next() as u32);
            x.set_pair(EXEC, 0x8000_ffff_0000_7fff);
            change(x);
            before = x.w.v.to_vec();
        },
        |x| {
            assert_eq!(x.w.state, WaveState::Ended, "{code:x?}: {:?}", x.fault);
            x.w.v.to_vec()
        },
    );
    (before, after)
}

const LANES: u64 = 0x8000_ffff_0000_7fff;

/// Checks that the instruction writes `model(registers of a lane)` to the registers from v4 on, and nothing else.
fn check<const N: usize>(
    code: &[u32],
    change: impl Fn(&mut Exec<'_>),
    model: impl Fn(&dyn Fn(usize) -> u32) -> [u32; N],
) {
    for seed in 0..8 {
        let (before, after) = run(code, seed, &change);
        for lane in 0..64 {
            let wanted = model(&|n| before[n][lane]);
            for register in 0..512 {
                let written = LANES >> lane & 1 != 0 && (4..4 + N).contains(&register);
                let wanted = if written {
                    wanted[register - 4]
                } else {
                    before[register][lane]
                };
                let found = after[register][lane];
                let not_numbers = |v: u32| f32::from_bits(v).is_nan();
                assert!(
                    found == wanted || written && not_numbers(found) && not_numbers(wanted),
                    "{code:x?}: register {register}, lane {lane}: {found:#x}, not {wanted:#x}"
                );
            }
        }
    }
}

fn single(value: f64) -> u32 {
    (value as f32).to_bits()
}

/// The sample of a short instruction, with an SDWA control that selects a part of the first source.
fn sub_dword(name: &str, select: u32) -> [u32; 2] {
    let [first, _] = sample_of(SET, name);
    [first & !0x1ff | 249, 2 | 6 << 8 | select << 16]
}

#[test]
fn conversions_widen_eight_bit_floats() {
    for (name, bf8) in [("v_cvt_f32_fp8", false), ("v_cvt_f32_bf8", true)] {
        let [short, _] = sample_of(SET, name);
        check(&[short], |_| {}, |v| [single(eight_bits(v(2) as u8, bf8))]);
        for byte in 0..4 {
            check(
                &sub_dword(name, byte),
                |_| {},
                |v| [single(eight_bits((v(2) >> (8 * byte)) as u8, bf8))],
            );
        }
        // All codes.
        let all = |x: &mut Exec<'_>| x.w.v[2] = std::array::from_fn(|l| (l as u32 * 37 + 5) & 0xff);
        check(&[short], all, |v| [single(eight_bits(v(2) as u8, bf8))]);
    }
    for (name, bf8) in [("v_cvt_pk_f32_fp8", false), ("v_cvt_pk_f32_bf8", true)] {
        let pair = |half: u32| [half, half >> 8].map(|code| single(eight_bits(code as u8, bf8)));
        let [short, _] = sample_of(SET, name);
        check(&[short], |_| {}, |v| pair(v(2)));
        for word in 0..2 {
            check(
                &sub_dword(name, 4 + word),
                |_| {},
                |v| pair(v(2) >> (16 * word)),
            );
        }
    }
}

/// The long form of an instruction does the same as the short one.
#[test]
fn long_encodings_agree_with_short_ones() {
    for row in crate::disasm::rows("gfx942").unwrap() {
        if row.mnemonic == "v_cvt_f32_bf8_e64" {
            check(
                row.sample,
                |_| {},
                |v| [single(eight_bits(v(2) as u8, true))],
            );
        }
        if row.mnemonic == "v_mov_b64_e64" {
            check(row.sample, |_| {}, |v| [v(2), v(3)]);
        }
    }
}

/// The code of a number, by a search among all codes: the nearest, and of two the even one.
fn nearest(value: f64, bf8: bool, saturate: bool) -> u8 {
    if !value.is_finite() {
        return 0x80;
    }
    let most = eight_bits(0x7f, bf8);
    // Half a step beyond the largest number.
    let step = most - eight_bits(0x7e, bf8);
    let sign = if value < 0.0 { 0x80 } else { 0 };
    if value.abs() >= most + step / 2.0 {
        return if saturate { sign | 0x7f } else { 0x80 };
    }
    let distance = |code: u8| (eight_bits(code, bf8) - value.abs()).abs();
    let best = (0..=0x7f).min_by(|a, b| {
        let order = distance(*a).total_cmp(&distance(*b));
        order.then((a & 1).cmp(&(b & 1)))
    });
    match best.unwrap() {
        0 => 0,
        code => sign | code,
    }
}

/// Fills registers with numbers around those that the formats have.
fn numbers(x: &mut Exec<'_>, random: &mut Random) {
    for register in [2, 6] {
        x.w.v[register] = std::array::from_fn(|_| {
            let n = random.next() as u32;
            match n % 8 {
                0 => f32::NAN.to_bits(),
                1 => f32::INFINITY.to_bits(),
                2 => n,
                // Ties: few bits of mantissa.
                3 | 4 => (127 - 20 + n / 8 % 40) << 23 | (n >> 16 & 31) << 18 | n & 1 << 31,
                _ => (127 - 20 + n / 8 % 40) << 23 | n >> 9 & 0x7f_ffff | n & 1 << 31,
            }
        });
    }
}

#[test]
fn conversions_narrow_to_eight_bit_floats() {
    for (name, bf8) in [("v_cvt_pk_fp8_f32", false), ("v_cvt_pk_bf8_f32", true)] {
        let [first, second] = sample_of(SET, name);
        for (seed, (high, saturate)) in [(false, false), (true, false), (false, true)]
            .into_iter()
            .enumerate()
        {
            let prepare = |x: &mut Exec<'_>| {
                numbers(x, &mut Random(seed as u64 + 40));
                x.w.set_mode(if saturate { 1 << 23 | 0xf0 } else { 0xf0 });
            };
            check(&[first | u32::from(high) << 14, second], prepare, |v| {
                let code =
                    |bits: u32| u32::from(nearest(f64::from(f32::from_bits(bits)), bf8, saturate));
                let pair = code(v(2)) | code(v(6)) << 8;
                [if high {
                    v(4) & 0xffff | pair << 16
                } else {
                    v(4) & 0xffff_0000 | pair
                }]
            });
        }
    }
}

/// The number that stochastic rounding yields: a number between two codes becomes the upper one if its relative
/// position plus the random bits reach 1.
fn rounded_stochastically(value: f64, random: u32, bf8: bool) -> u8 {
    if !value.is_finite() {
        return 0x80;
    }
    let sign = if value < 0.0 { 0x80 } else { 0 };
    let size = value.abs();
    let below = (0..=0x7f)
        .rev()
        .find(|code| eight_bits(*code, bf8) <= size)
        .unwrap();
    let lower = eight_bits(below, bf8);
    let step = match below {
        0x7f => lower - eight_bits(0x7e, bf8),
        _ => eight_bits(below + 1, bf8) - lower,
    };
    let dropped = if bf8 { 21 } else { 20 };
    let fraction = f64::from(random >> (32 - dropped)) / 2f64.powi(dropped);
    let up = u32::from((size - lower) / step + fraction >= 1.0);
    match u32::from(below) + up {
        // Beyond the largest number.
        _ if size >= lower + step => 0x80,
        0x80 => 0x80,
        0 => 0,
        code => sign | code as u8,
    }
}

#[test]
fn stochastic_conversions_round_by_the_random_operand() {
    for (name, bf8) in [("v_cvt_sr_fp8_f32", false), ("v_cvt_sr_bf8_f32", true)] {
        let [first, second] = sample_of(SET, name);
        for byte in 0..4 {
            let prepare = |x: &mut Exec<'_>| {
                let random = x.w.v[6];
                numbers(x, &mut Random(u64::from(byte) + 70));
                x.w.v[6] = random;
                x.w.set_mode(0xf0);
            };
            check(&[first | byte << 13, second], prepare, |v| {
                let code = u32::from(rounded_stochastically(
                    f64::from(f32::from_bits(v(2))),
                    v(6),
                    bf8,
                ));
                [v(4) & !(0xff << (8 * byte)) | code << (8 * byte)]
            });
        }
    }
}

#[test]
fn packed_instructions_move_and_add_pairs_of_registers() {
    let [short, _] = sample_of(SET, "v_mov_b64");
    check(&[short], |_| {}, |v| [v(2), v(3)]);
    // Lane 5 of each row of sixteen.
    let [first, second] = [short & !0x1ff | 250, 0xff00_0002 | 0x155 << 8];
    let (before, after) = run(&[first, second], 3, |_| {});
    for lane in (0..64).filter(|lane| LANES >> lane & 1 != 0) {
        let from = lane / 16 * 16 + 5;
        let active = LANES >> from & 1 != 0;
        for n in 0..2 {
            let wanted = if active {
                before[2 + n][from]
            } else {
                before[4 + n][lane]
            };
            assert_eq!(after[4 + n][lane], wanted, "lane {lane}");
        }
    }
    let wide = |v: &dyn Fn(usize) -> u32, n: usize| u64::from(v(n)) | u64::from(v(n + 1)) << 32;
    check(
        &sample_of(SET, "v_lshl_add_u64"),
        |_| {},
        |v| {
            let sum = (wide(v, 2) << (v(6) & 7)).wrapping_add(wide(v, 8));
            [sum as u32, (sum >> 32) as u32]
        },
    );
    // The operation is fused. On gfx90a the product is rounded.
    let number = |bits: u32| f32::from_bits(0x3f80_0000 | bits & 0x7f_ffff);
    let prepare = |x: &mut Exec<'_>| {
        for register in [2, 6] {
            x.w.v[register]
                .iter_mut()
                .for_each(|v| *v = number(*v).to_bits());
        }
        x.w.set_mode(0xf0);
    };
    for (name, swap) in [("v_fmamk_f32", false), ("v_fmaak_f32", true)] {
        let [first, _] = sample_of(SET, name);
        check(&[first, 0xbf80_0001], prepare, |v| {
            let (a, b, k) = (number(v(2)), number(v(6)), f32::from_bits(0xbf80_0001));
            [if swap {
                a.mul_add(b, k)
            } else {
                a.mul_add(k, b)
            }
            .to_bits()]
        });
    }
}

/// A number rounded to the nearest BF16 number.
fn bf16(value: f64) -> u32 {
    let codes = |sign: u32| (0..0x7f80u32).map(move |code| code | sign << 15);
    let number = |code: u32| f64::from(f32::from_bits(code << 16));
    let distance = |code: u32| (number(code) - value).abs();
    let sign = u32::from(value.is_sign_negative());
    let best = codes(sign).min_by(|a, b| {
        distance(*a)
            .total_cmp(&distance(*b))
            .then((a & 1).cmp(&(b & 1)))
    });
    best.unwrap()
}

fn half(bits: u32) -> f64 {
    let (exponent, fraction) = ((bits >> 10 & 31) as i32, f64::from(bits & 0x3ff) / 1024.0);
    let size = (1.0 + fraction) * 2f64.powi(exponent - 15);
    if bits >> 15 & 1 != 0 { -size } else { size }
}

/// Packed numbers in memory and in LDS are added by each lane.
#[test]
fn atomics_add_packed_numbers_in_memory() {
    let bf16_pairs = |a: u32, b: u32| {
        let number = |bits: u32| f64::from(f32::from_bits(bits << 16));
        let sum = |a: u32, b: u32| bf16(number(a & 0xffff) + number(b & 0xffff));
        sum(a, b) | sum(a >> 16, b >> 16) << 16
    };
    // Sums of eighths are exact.
    let halves = |a: u32, b: u32| {
        let sum = |a: u32, b: u32| {
            let sum = half(a & 0xffff) + half(b & 0xffff);
            let exponent = sum.abs().log2().floor() as i32;
            let fraction = (sum.abs() / 2f64.powi(exponent) - 1.0) * 1024.0;
            fraction as u32 | ((exponent + 15) as u32) << 10 | u32::from(sum < 0.0) << 15
        };
        sum(a, b) | sum(a >> 16, b >> 16) << 16
    };
    let bf16_word = |random: &mut Random| {
        let mut one = || ((random.next() % 512) as f32 - 256.0 + 0.5).to_bits() >> 16;
        one() | one() << 16
    };
    let half_word = |random: &mut Random| {
        let mut one = || (15 + random.next() as u32 % 3) << 10 | (random.next() as u32 & 7) << 7;
        one() | one() << 16
    };
    type Word<'a> = &'a dyn Fn(&mut Random) -> u32;
    type Sum<'a> = &'a dyn Fn(u32, u32) -> u32;
    let cases: [(&str, Word<'_>, Sum<'_>); 9] = [
        ("global_atomic_pk_add_bf16", &bf16_word, &bf16_pairs),
        ("flat_atomic_pk_add_bf16", &bf16_word, &bf16_pairs),
        ("flat_atomic_pk_add_f16", &half_word, &halves),
        (
            "flat_atomic_add_f32",
            &|random| ((random.next() % 64) as f32).to_bits(),
            &|a, b| (f32::from_bits(a) + f32::from_bits(b)).to_bits(),
        ),
        ("global_atomic_pk_add_f16", &half_word, &halves),
        ("ds_pk_add_f16", &half_word, &halves),
        ("ds_pk_add_bf16", &bf16_word, &bf16_pairs),
        ("ds_pk_add_rtn_f16", &half_word, &halves),
        ("ds_pk_add_rtn_bf16", &bf16_word, &bf16_pairs),
    ];
    for (name, word, sum) in cases {
        let mut random = Random(8);
        let mut memory: Vec<u32> = (0..64).map(|_| word(&mut random)).collect();
        let data: [u32; 64] = std::array::from_fn(|_| word(&mut random));
        let old = memory.clone();
        let lds = name.starts_with("ds");
        let mut code = sample_of(SET, name);
        if !lds {
            // The old value is returned.
            code = [code[0] | 1 << 16, code[1] & 0xff_ffff | 8 << 24];
        }
        let base = memory.as_mut_ptr() as u64;
        let (after, loaded) = execute_on(
            SET,
            &code,
            &Everything,
            |x| {
                x.set_pair(EXEC, LANES);
                x.lds = old.iter().flat_map(|word| word.to_le_bytes()).collect();
                x.w.v[4] = data;
                for lane in 0..64 {
                    let address = if lds {
                        4 * lane as u64
                    } else {
                        base + 4 * lane as u64
                    };
                    (x.w.v[2][lane], x.w.v[3][lane]) = (address as u32, (address >> 32) as u32);
                }
            },
            |x| {
                assert_eq!(x.w.state, WaveState::Ended, "{name}: {:?}", x.fault);
                let words = x
                    .lds
                    .chunks(4)
                    .map(|word| u32::from_le_bytes(word.try_into().unwrap()));
                (words.collect::<Vec<_>>(), x.w.v[8])
            },
        );
        let after = if lds { after } else { memory };
        for lane in 0..64 {
            let active = LANES >> lane & 1 != 0;
            let wanted = if active {
                sum(old[lane], data[lane])
            } else {
                old[lane]
            };
            assert_eq!(after[lane], wanted, "{name} lane {lane}");
            if active && (name.contains("rtn") || !lds) {
                assert_eq!(loaded[lane], old[lane], "{name} lane {lane}");
            }
        }
    }
}

#[test]
fn loads_to_lds_write_the_lds_of_each_lane() {
    let memory: Vec<u32> = (0..80u32).map(|n| n.wrapping_mul(0x9e37_79b9)).collect();
    let base = memory.as_ptr() as u64;
    for (name, read) in [
        ("global_load_lds_dword", (|v| v) as fn(u32) -> u32),
        ("global_load_lds_ubyte", |v| v & 0xff),
        ("global_load_lds_sbyte", |v| v as i8 as u32),
        ("global_load_lds_ushort", |v| v & 0xffff),
        ("global_load_lds_sshort", |v| v as i16 as u32),
    ] {
        let [first, second] = sample_of(SET, name);
        // An offset of 8 bytes, which is added to both addresses; 16 in M0.
        let lds = execute_on(
            SET,
            &[first | 8, second],
            &Everything,
            |x| {
                x.set_pair(EXEC, LANES);
                x.set(M0, 16);
                x.lds = vec![0xaa; 512];
                for lane in 0..64 {
                    let address = base + 4 * (63 - lane as u64);
                    (x.w.v[2][lane], x.w.v[3][lane]) = (address as u32, (address >> 32) as u32);
                }
            },
            |x| {
                assert_eq!(x.w.state, WaveState::Ended, "{name}: {:?}", x.fault);
                x.lds.clone()
            },
        );
        let mut expected = vec![0xaa; 512];
        for lane in (0..64).filter(|lane| LANES >> lane & 1 != 0) {
            let value = read(memory[63 - lane + 2]);
            expected[24 + 4 * lane..28 + 4 * lane].copy_from_slice(&value.to_le_bytes());
        }
        assert_eq!(lds, expected, "{name}");
    }
}

/// FLAT loads of gfx90a have a bit for loads into LDS, where gfx942 has other opcodes. Buffer loads have a bit on both.
#[test]
fn loads_of_gfx90a_with_the_lds_bit_write_to_lds() {
    let memory: Vec<u32> = (0..80u32).map(|n| n.wrapping_mul(0x9e37_79b9)).collect();
    let base = memory.as_ptr() as u64;
    let sample = |set, name| {
        let [first, second] = sample_of(set, name);
        [first | 8, second]
    };
    let flat = |name| {
        let [first, second] = sample(InstructionSet::Gfx90a, name);
        [first | 1 << 13, second]
    };
    // An index in v2, the descriptor in s[8:11].
    let buffer = |set| {
        let [first, second] = sample(set, "buffer_load_dword");
        [first | 1 << 16, second]
    };
    type Read = fn(u32) -> u32;
    let cases: [(InstructionSet, [u32; 2], Read); 4] = [
        (InstructionSet::Gfx90a, flat("global_load_dword"), |v| v),
        (InstructionSet::Gfx90a, flat("global_load_sbyte"), |v| {
            v as i8 as u32
        }),
        (
            InstructionSet::Gfx90a,
            buffer(InstructionSet::Gfx90a),
            |v| v,
        ),
        (SET, buffer(SET), |v| v),
    ];
    for (set, code, read) in cases {
        let is_buffer = code[0] >> 26 == 0b111000;
        let (lds, data) = execute_on(
            set,
            &code,
            &Everything,
            |x| {
                x.set_pair(EXEC, LANES);
                x.set(M0, 16);
                x.set_pair(8, base);
                x.set_pair(10, 4 * memory.len() as u64);
                x.lds = vec![0xaa; 512];
                for lane in 0..64 {
                    let offset = 4 * (63 - lane as u64);
                    let address = if is_buffer { offset } else { base + offset };
                    (x.w.v[2][lane], x.w.v[3][lane]) = (address as u32, (address >> 32) as u32);
                }
            },
            |x| {
                assert_eq!(x.w.state, WaveState::Ended, "{code:x?}: {:?}", x.fault);
                (x.lds.clone(), x.w.v[4])
            },
        );
        let mut expected = vec![0xaa; 512];
        for lane in (0..64).filter(|lane| LANES >> lane & 1 != 0) {
            let value = read(memory[63 - lane + 2]);
            expected[24 + 4 * lane..28 + 4 * lane].copy_from_slice(&value.to_le_bytes());
        }
        assert_eq!(lds, expected, "{code:x?}");
        assert_eq!(data, [0; 64], "no register is written");
    }
}

/// A scratch address is the sum of a register, a scalar and a constant, each of which may be missing.
#[test]
fn scratch_addresses_add_register_scalar_and_constant() {
    let scratch = vec![0u32; 64 * 64];
    let base = scratch.as_ptr() as u64;
    let [store, _] = sample_of(SET, "scratch_store_dword");
    let [load, _] = sample_of(SET, "scratch_load_dword");
    for (vector, scalar) in [(true, true), (true, false), (false, true), (false, false)] {
        let address = if scalar { 10 } else { 0x7f } << 16;
        let bit = |code: u32| code & !(1 << 13) | u32::from(vector) << 13;
        let code = [
            bit(store) | 8,
            2 | 6 << 8 | address,
            bit(load) | 8,
            2 | address | 4 << 24,
        ];
        let (stored, loaded) = execute_on(
            SET,
            &code,
            &Everything,
            |x| {
                x.set_pair(EXEC, LANES);
                x.set_pair(102, base);
                x.set(10, 20);
                x.w.v[2] = std::array::from_fn(|l| 4 * (l as u32 % 3));
                x.w.v[6] = std::array::from_fn(|l| 1000 + l as u32);
            },
            |x| {
                assert_eq!(x.w.state, WaveState::Ended, "{:?}", x.fault);
                (x.w.v[6], x.w.v[4])
            },
        );
        for lane in (0..64).filter(|lane| LANES >> lane & 1 != 0) {
            assert_eq!(loaded[lane], stored[lane]);
            let mut offset = 8;
            offset += if scalar { 20 } else { 0 };
            offset += if vector { 4 * (lane % 3) } else { 0 };
            // The dwords of the lanes are consecutive.
            assert_eq!(
                scratch[offset / 4 * 64 + lane],
                stored[lane],
                "{vector} {scalar}"
            );
        }
    }
}

/// Workgroups are distributed over the dies in turn, and can read the number of their die.
#[test]
fn workgroups_read_the_number_of_their_die() {
    for (group, die) in [(0, 0), (3, 3), (8, 0), (21, 5)] {
        // s_getreg_b32 s4, hwreg(HW_REG_XCC_ID)
        let code = [0xb884_0000 | 31 << 11 | 20];
        let found = execute_on(SET, &code, &Everything, |x| x.group = group, |x| x.w.s[4]);
        assert_eq!(found, die);
    }
}
