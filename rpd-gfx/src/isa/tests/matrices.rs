//! Matrix instructions, compared with products of matrices.
//!
//! The tests compute the element for each lane, as the tables of the manual do; the interpreter computes the lane for
//! each element.

use super::machine::{execute, execute_on, fill, sample_of};
use super::matrix_cases::{CASES, Case, Kind};
use super::*;
use crate::isa::exec::WaveState;
use crate::perf::Counts;
use crate::perf::tests::{sum, watch};

/// Fields of the encoding that a test sets.
#[derive(Clone, Copy, Default)]
struct Fields {
    /// Whether A and B are in accumulation registers, and whether C and D are.
    ab: bool,
    cd: bool,
    /// C as an inline constant: its code and value.
    constant: Option<(u32, f64)>,
    cbsz: u32,
    abid: u32,
    blgp: u32,
}

const A: usize = 100;
const B: usize = 104;
const C: usize = 40;
const D: usize = 160;

fn encoded(case: &Case, fields: Fields) -> [u32; 2] {
    let [first, _] = sample_of(case.set, case.name);
    let register = |n: usize| 256 + n as u32;
    let c = fields.constant.map_or(register(C), |(code, _)| code);
    [
        first & 0xffff_0000
            | D as u32
            | fields.cbsz << 8
            | fields.abid << 11
            | u32::from(fields.cd) << 15,
        register(A)
            | register(B) << 9
            | c << 18
            | (u32::from(fields.ab) * 3) << 27
            | fields.blgp << 29,
    ]
}

/// Executes an instruction on random numbers, and compares all registers with the product of the matrices.
fn check(case: &Case, fields: Fields, seed: u64) {
    let mut random = Random(seed);
    let mut before = Vec::new();
    // Inactive lanes take part.
    let exec = random.next();
    let after = execute_on(
        case.set,
        &encoded(case, fields),
        &Everything,
        |x| {
            fill(x, || case.random_word(&mut random));
            let bases = [
                if fields.ab { 256 } else { 0 },
                if fields.cd { 256 } else { 0 },
            ];
            if case.kind == Kind::Double {
                for register in [A, B].map(|n| n + bases[0]) {
                    x.w.v[register] = [0; 64];
                }
                for n in 0..case.results() {
                    x.w.v[C + bases[1] + 2 * n] = [0; 64];
                }
            } else if case.kind != Kind::Byte {
                for n in 0..case.results() {
                    x.w.v[C + bases[1] + n] =
                        std::array::from_fn(|l| (l as f32 - n as f32).to_bits());
                }
            }
            x.set_pair(crate::isa::inst::EXEC, exec);
            before = x.w.v.to_vec();
        },
        |x| {
            assert_eq!(x.w.state, WaveState::Ended, "{}: {:?}", case.name, x.fault);
            assert_eq!(x.exec(), exec);
            x.w.v.to_vec()
        },
    );
    let base = |accumulation: bool| if accumulation { 256 } else { 0 };
    let source = |register: usize, lane: usize| {
        let at = register + base(fields.ab);
        [before[at][lane], before[at + 1][lane]]
    };
    let n = case.rows * case.depth;
    let (mut a, mut b) = (vec![0.0; case.blocks * n], vec![0.0; case.blocks * n]);
    for lane in 0..64 {
        let from = match fields.blgp {
            0 => lane,
            1 => lane & 31,
            2 => lane | 32,
            3 => (lane + 16) & 63,
            k => (k as usize - 4) * 16 + (lane & 15),
        };
        for element in 0..case.per_lane {
            let (block, index, depth) = case.element(lane, element);
            a[(block * case.rows + index) * case.depth + depth] =
                case.number(source(A, lane), element, true);
            b[(block * case.rows + index) * case.depth + depth] =
                case.number(source(B, from), element, false);
        }
    }
    let mut expected = before.clone();
    for lane in 0..64 {
        for result in 0..case.results() {
            let (block, row, column) = case.result(lane, result);
            let group = 1usize << fields.cbsz;
            let a_block = block / group * group + fields.abid as usize;
            let at = C + base(fields.cd) + result * case.width();
            let c = match (fields.constant, case.kind) {
                (Some((_, value)), _) => value,
                (None, Kind::Double) => f64::from_bits(
                    u64::from(before[at][lane]) | u64::from(before[at + 1][lane]) << 32,
                ),
                (None, Kind::Byte) => f64::from(before[at][lane] as i32),
                (None, _) => f64::from(f32::from_bits(before[at][lane])),
            };
            let mut sum = c;
            for depth in 0..case.depth {
                sum += a[(a_block * case.rows + row) * case.depth + depth]
                    * b[(block * case.rows + column) * case.depth + depth];
            }
            let to = D + base(fields.cd) + result * case.width();
            match case.kind {
                Kind::Double => {
                    expected[to][lane] = sum.to_bits() as u32;
                    expected[to + 1][lane] = (sum.to_bits() >> 32) as u32;
                }
                Kind::Byte => expected[to][lane] = sum as i64 as u32,
                _ => {
                    assert_eq!(f64::from(sum as f32), sum, "the test's numbers are exact");
                    expected[to][lane] = (sum as f32).to_bits();
                }
            }
        }
    }
    for register in 0..512 {
        for lane in 0..64 {
            let (found, wanted) = (after[register][lane], expected[register][lane]);
            // Zeros may have either sign.
            let zero = |v: u32| case.kind != Kind::Byte && v << 1 == 0;
            assert!(
                found == wanted || zero(found) && zero(wanted),
                "{} register {register} lane {lane}: {found:#x}, not {wanted:#x}",
                case.name
            );
        }
    }
}

#[test]
fn matrix_instructions_agree_with_the_model() {
    for (seed, case) in CASES.iter().enumerate() {
        for (n, (ab, cd)) in [(false, false), (false, true), (true, false), (true, true)]
            .into_iter()
            .enumerate()
        {
            let fields = Fields {
                ab,
                cd,
                ..Fields::default()
            };
            check(case, fields, (10 * seed + n) as u64);
        }
        // -16 and 0; 1.0 as floating-point constant, whose bits differ in double precision.
        let constants = if case.kind == Kind::Byte {
            [(208, -16.0), (128, 0.0)]
        } else {
            [(242, 1.0), (128, 0.0)]
        };
        for constant in constants {
            let fields = Fields {
                constant: Some(constant),
                ..Fields::default()
            };
            check(case, fields, seed as u64);
        }
    }
}

#[test]
fn matrix_instructions_broadcast_blocks_of_a_and_move_lanes_of_b() {
    for (seed, case) in CASES
        .iter()
        .enumerate()
        .filter(|(_, case)| case.kind != Kind::Double)
    {
        for blgp in 1..8 {
            check(
                case,
                Fields {
                    blgp,
                    ..Fields::default()
                },
                seed as u64,
            );
        }
        for cbsz in 1..=case.blocks.ilog2() {
            for abid in 0..1 << cbsz {
                check(
                    case,
                    Fields {
                        cbsz,
                        abid,
                        ..Fields::default()
                    },
                    seed as u64,
                );
            }
        }
    }
}

/// An instruction with fields that it does not support ends the dispatch with its name.
#[test]
fn matrix_instructions_with_unsupported_fields_are_refused() {
    let last = |name: &str| CASES.iter().position(|case| case.name == name).unwrap();
    for (name, fields) in [
        (
            "v_mfma_f64_4x4x4f64",
            Fields {
                blgp: 1,
                ..Fields::default()
            },
        ),
        (
            "v_mfma_f32_32x32x2f32",
            Fields {
                cbsz: 1,
                ..Fields::default()
            },
        ),
        (
            "v_mfma_f32_4x4x1f32",
            Fields {
                cbsz: 1,
                abid: 2,
                ..Fields::default()
            },
        ),
    ] {
        let code = encoded(&CASES[last(name)], fields);
        let fault = execute(&code, &Everything, |_| {}, |x| x.fault.clone()).unwrap();
        assert!(
            matches!(&fault, Fault::Instruction { instruction, .. } if instruction.format == "VOP3P"),
            "{fault}"
        );
    }
}

/// Every sum is rounded as a fused multiplication and addition.
#[test]
fn matrix_sums_are_rounded_after_each_product() {
    let case = &CASES[4];
    let mut random = Random(77);
    let mut number = || f32::from_bits(0x3f00_0000 | random.next() as u32 & 0x00ff_ffff);
    let a: Vec<[f32; 4]> = (0..16).map(|_| std::array::from_fn(|_| number())).collect();
    let b: Vec<[f32; 4]> = (0..16).map(|_| std::array::from_fn(|_| number())).collect();
    let found = execute(
        &encoded(
            case,
            Fields {
                constant: Some((128, 0.0)),
                ..Fields::default()
            },
        ),
        &Everything,
        |x| {
            for lane in 0..64 {
                x.w.v[A][lane] = a[lane % 16][lane / 16].to_bits();
                x.w.v[B][lane] = b[lane % 16][lane / 16].to_bits();
            }
        },
        |x| x.w.v[D..D + 4].to_vec(),
    );
    for row in 0..16 {
        for column in 0..16 {
            let sum = (0..4).fold(0f32, |sum, k| a[row][k].mul_add(b[column][k], sum));
            assert_eq!(found[row % 4][16 * (row / 4) + column], sum.to_bits());
        }
    }
}

/// gfx942 does not flush denormal numbers of matrices, in contrast to gfx90a.
#[test]
fn matrix_instructions_of_gfx942_keep_denormal_numbers() {
    for (name, one, least) in [
        ("v_mfma_f32_4x4x4_16b_f16", 0x3c00_3c00, 2f64.powi(-24)),
        ("v_mfma_f32_4x4x4_16b_bf16", 0x3f80_3f80, 2f64.powi(-133)),
    ] {
        let case = CASES.iter().find(|case| case.name == name).unwrap();
        let fields = Fields {
            constant: Some((128, 0.0)),
            ..Fields::default()
        };
        let found = execute_on(
            case.set,
            &encoded(case, fields),
            &Everything,
            |x| {
                x.w.v[A] = [0x0001_0001; 64];
                x.w.v[A + 1] = [0x0001_0001; 64];
                x.w.v[B] = [one; 64];
                x.w.v[B + 1] = [one; 64];
            },
            |x| x.w.v[D..D + 4].to_vec(),
        );
        let sum = ((4.0 * least) as f32).to_bits();
        assert_eq!(found, vec![[sum; 64]; 4], "{name}");
    }
}

static MATRICES: &[u8] = include_bytes!("../../../testdata/matrices.co");

/// Runs a kernel of `testdata/matrices.hip` with one wave and counts its events.
fn counted(name: &str, args: &[&[u8]]) -> Counts {
    Module::load(MATRICES).dispatch(name, [64, 1, 1], [64, 1, 1], 0, args, watch)
}

#[test]
fn a_compiled_kernel_multiplies_matrices_in_single_precision_and_is_counted() {
    let mut random = Random(3);
    let mut single = || -> Vec<f32> {
        (0..1024)
            .map(|_| (random.next() % 16) as f32 - 8.0)
            .collect()
    };
    let (mut left, mut right, mut out) = (single(), single(), vec![0f32; 1024]);
    let counts = counted(
        "product_f32",
        &[
            &pointer(&mut out),
            &pointer(&mut left),
            &pointer(&mut right),
        ],
    );
    for (n, value) in out.iter().enumerate() {
        let sum: f32 = (0..32)
            .map(|k| left[n / 32 * 32 + k] * right[k * 32 + n % 32])
            .sum();
        assert_eq!(*value, sum);
    }
    // 16 instructions of 2 x 32 x 32 x 2 operations, 64 cycles each.
    assert_eq!(sum(&counts, "SQ_INSTS_MFMA"), 16);
    assert_eq!(sum(&counts, "SQ_INSTS_VALU_MFMA_F32"), 16);
    assert_eq!(sum(&counts, "SQ_INSTS_VALU_MFMA_MOPS_F32"), 16 * 4096 / 512);
    assert_eq!(sum(&counts, "SQ_VALU_MFMA_BUSY_CYCLES"), 16 * 64);
    assert_eq!(sum(&counts, "SQ_INSTS_VALU_MFMA_F64"), 0);
}

#[test]
fn a_compiled_kernel_multiplies_matrices_in_double_precision_and_is_counted() {
    let mut random = Random(4);
    let mut double = || -> Vec<f64> {
        (0..256)
            .map(|_| (random.next() % 1024) as f64 - 512.0)
            .collect()
    };
    let (mut left, mut right, mut out) = (double(), double(), vec![0f64; 256]);
    let counts = counted(
        "product_f64",
        &[
            &pointer(&mut out),
            &pointer(&mut left),
            &pointer(&mut right),
        ],
    );
    for (n, value) in out.iter().enumerate() {
        let sum: f64 = (0..16)
            .map(|k| left[n / 16 * 16 + k] * right[k * 16 + n % 16])
            .sum();
        assert_eq!(*value, sum);
    }
    assert_eq!(sum(&counts, "SQ_INSTS_VALU_MFMA_F64"), 4);
    assert_eq!(sum(&counts, "SQ_INSTS_VALU_MFMA_MOPS_F64"), 4 * 2048 / 512);
    assert_eq!(sum(&counts, "SQ_VALU_MFMA_BUSY_CYCLES"), 4 * 32);
}

#[test]
fn a_compiled_kernel_multiplies_matrices_of_bytes_and_is_counted() {
    let mut random = Random(5);
    let mut bytes = || -> Vec<i8> { (0..256).map(|_| random.next() as i8).collect() };
    let (mut left, mut right, mut out) = (bytes(), bytes(), vec![0i32; 256]);
    let counts = counted(
        "product_i8",
        &[
            &pointer(&mut out),
            &pointer(&mut left),
            &pointer(&mut right),
        ],
    );
    for (n, value) in out.iter().enumerate() {
        let product =
            |k: usize| i32::from(left[n / 16 * 16 + k]) * i32::from(right[n % 16 * 16 + k]);
        assert_eq!(*value, (0..16).map(product).sum::<i32>());
    }
    assert_eq!(sum(&counts, "SQ_INSTS_VALU_MFMA_I8"), 1);
    assert_eq!(sum(&counts, "SQ_INSTS_VALU_MFMA_MOPS_I8"), 8192 / 512);
}
