//! Sparse matrix instructions, compared with products of matrices in which A has zeros at the positions that are not
//! stored.

#![expect(clippy::needless_range_loop, reason = "lanes index several registers")]

use super::machine::{execute_on, fill, listing, sample_of};
use super::matrix_cases::eight_bits;
use super::*;
use crate::isa::exec::WaveState;

const SET: InstructionSet = InstructionSet::Gfx942;
const A: usize = 100;
const B: usize = 104;
const INDEX: usize = 120;
const D: usize = 160;

/// Type of the elements of A or B.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Half,
    Bf16,
    Byte,
    Fp8,
    Bf8,
}

impl Kind {
    fn from_word(word: &str) -> Self {
        match word {
            "f16" => Self::Half,
            "bf16" => Self::Bf16,
            "i8" => Self::Byte,
            "fp8" => Self::Fp8,
            "bf8" => Self::Bf8,
            _ => panic!("{word}"),
        }
    }

    fn bits(self) -> usize {
        if matches!(self, Self::Half | Self::Bf16) {
            16
        } else {
            8
        }
    }

    /// The code of a random small number.
    fn random(self, random: &mut Random) -> u32 {
        let n = random.next() as u32;
        match self {
            // From 1/4 to 4.
            Self::Half => (13 + n % 5) << 10 | (n >> 8 & 1) << 15,
            Self::Bf16 => ((n % 32) as f32 - 16.0).to_bits() >> 16,
            Self::Byte => n & 0xff,
            Self::Fp8 => (6 * 8 + n % 32) | (n >> 8 & 1) << 7,
            Self::Bf8 => (14 * 4 + n % 16) | (n >> 8 & 1) << 7,
        }
    }

    fn number(self, code: u32) -> f64 {
        match self {
            Self::Half => {
                let exponent = (code >> 10 & 31) as i32;
                let size = (1.0 + f64::from(code & 0x3ff) / 1024.0) * 2f64.powi(exponent - 15);
                if code >> 15 != 0 { -size } else { size }
            }
            Self::Bf16 => f64::from(f32::from_bits(code << 16)),
            Self::Byte => f64::from(code as u8 as i8),
            Self::Fp8 => eight_bits(code as u8, false),
            Self::Bf8 => eight_bits(code as u8, true),
        }
    }
}

/// Packs codes into registers of a lane.
fn pack(codes: &[u32], kind: Kind, registers: &mut [[u32; 64]], lane: usize) {
    let each = 32 / kind.bits();
    for (n, code) in codes.iter().enumerate() {
        let to = &mut registers[n / each][lane];
        if n % each == 0 {
            *to = 0;
        }
        *to |= code << (kind.bits() * (n % each));
    }
}

/// One instruction with the fields `cbsz` and `abid`.
fn check(name: &str, cbsz: u32, abid: u32, seed: u64) {
    // v_smfmac_f32_16x16x32_f16, v_smfmac_f32_16x16x64_bf8_fp8
    let parts: Vec<_> = name.split('_').collect();
    let shape: Vec<usize> = parts[3].split('x').map(|n| n.parse().unwrap()).collect();
    let (rows, depth) = (shape[0], shape[2]);
    let (left, right) = (
        Kind::from_word(parts[4]),
        Kind::from_word(parts[parts.len() - 1]),
    );
    let mut random = Random(seed);
    // Number of elements of A in a lane.
    let held = rows * depth / 2 / 64;
    let mut a = vec![vec![0.0; depth]; rows];
    let mut b = vec![vec![0.0; rows]; depth];
    let mut registers = vec![[0u32; 64]; 32];
    for lane in 0..64 {
        let (row, part) = (lane % rows, lane / rows);
        let codes: Vec<_> = (0..held).map(|_| left.random(&mut random)).collect();
        // Two different positions in each group of four.
        let places: Vec<usize> = (0..held / 2)
            .flat_map(|_| {
                let first = random.next() as usize % 3;
                [first, first + 1 + random.next() as usize % (3 - first)]
            })
            .collect();
        for n in 0..held {
            let group = (part * held + n) / 2;
            a[row][4 * group + places[n]] = left.number(codes[n]);
        }
        pack(&codes, left, &mut registers[0..2], lane);
        let width = 2 * held;
        let set = if cbsz == 0 {
            abid as usize % (32 / width)
        } else {
            0
        };
        let bits = places
            .iter()
            .rev()
            .fold(0u32, |bits, place| bits << 2 | *place as u32);
        let mask = (u32::MAX >> (32 - width)) << (width * set);
        registers[20][lane] = random.next() as u32 & !mask | bits << (width * set);
        let codes: Vec<_> = (0..2 * held).map(|_| right.random(&mut random)).collect();
        for (n, code) in codes.iter().enumerate() {
            b[part * 2 * held + n][lane % rows] = right.number(*code);
        }
        pack(&codes, right, &mut registers[4..8], lane);
    }
    let [first, _] = sample_of(SET, name);
    let code = [
        first & 0xffff_0000 | D as u32 | cbsz << 8 | abid << 11,
        (256 + A as u32) | (256 + B as u32) << 9 | (256 + INDEX as u32) << 18,
    ];
    let results = rows * rows / 64;
    let whole = left == Kind::Byte;
    let mut before = Vec::new();
    let after = execute_on(
        SET,
        &code,
        &Everything,
        |x| {
            fill(x, || random.next() as u32);
            x.w.v[A..A + 20].copy_from_slice(&registers[..20]);
            x.w.v[INDEX] = registers[20];
            for n in 0..results {
                x.w.v[D + n] = std::array::from_fn(|l| {
                    let value = l as i32 - n as i32;
                    if whole {
                        value as u32
                    } else {
                        (value as f32).to_bits()
                    }
                });
            }
            x.set_pair(crate::isa::inst::EXEC, 5);
            before = x.w.v.to_vec();
        },
        |x| {
            assert_eq!(x.w.state, WaveState::Ended, "{name}: {:?}", x.fault);
            x.w.v.to_vec()
        },
    );
    let mut expected = before.clone();
    for lane in 0..64 {
        for n in 0..results {
            let row = match rows {
                32 => 8 * (n / 4) + 4 * (lane / 32) + n % 4,
                _ => 4 * (lane / 16) + n,
            };
            let column = lane % rows;
            let product: f64 = (0..depth).map(|k| a[row][k] * b[k][column]).sum();
            let sum = product + f64::from(lane as i32 - n as i32);
            expected[D + n][lane] = if whole {
                sum as i64 as u32
            } else {
                assert_eq!(f64::from(sum as f32), sum, "the test's numbers are exact");
                (sum as f32).to_bits()
            };
        }
    }
    for register in 0..512 {
        for lane in 0..64 {
            let (found, wanted) = (after[register][lane], expected[register][lane]);
            let zeros = !whole && found << 1 == 0 && wanted << 1 == 0;
            assert!(
                found == wanted || zeros,
                "{name} cbsz {cbsz} abid {abid}: register {register} lane {lane}: {found:#x}, not {wanted:#x}"
            );
        }
    }
}

#[test]
fn sparse_matrix_instructions_agree_with_the_model() {
    let rows = listing(SET);
    let names: Vec<_> = rows
        .iter()
        .filter(|row| row.name.starts_with("v_smfmac"))
        .collect();
    assert_eq!(names.len(), 14);
    for (seed, row) in names.iter().enumerate() {
        for (cbsz, abid) in [(0, 0), (0, 1), (0, 2), (0, 3), (1, 3)] {
            check(row.name, cbsz, abid, seed as u64);
        }
    }
}
