//! Kernels of many kinds (`tests/workloads/kernels/corpus.hip`), each compared with a model, on one and several
//! threads.

use super::*;
use crate::codeobj::bundle::pick;
use crate::perf::tests::{sum, watch};
use crate::perf::{Model, PageMemory, determined_events};

static CORPUS: &[u8] = include_bytes!("../../../../tests/workloads/kernels/prebuilt/corpus.hipfb");

/// Number of work-items, and of elements of each buffer.
const N: usize = 1024;
const BLOCK: usize = 256;

/// Computes the content of `out` after the kernel from both inputs. `out` is zero before.
type Expected = Box<dyn Fn(&[u32], &[u32]) -> Vec<u32>>;

/// Model of a kernel that computes a value for each work-item from the elements of both inputs at its index.
fn each(number: impl Fn(u32, u32) -> u32 + 'static) -> Expected {
    Box::new(move |a, b| a.iter().zip(b).map(|(x, y)| number(*x, *y)).collect())
}

/// Model of a kernel that computes a value for each work-item from its index and the inputs.
fn at(number: impl Fn(usize, &[u32], &[u32]) -> u32 + 'static) -> Expected {
    Box::new(move |a, b| (0..N).map(|i| number(i, a, b)).collect())
}

/// Model of a kernel that computes the values of each block from the block's input.
fn blocks(numbers: impl Fn(&[u32]) -> Vec<u32> + 'static) -> Expected {
    Box::new(move |a, _| a.chunks(BLOCK).flat_map(&numbers).collect())
}

/// Model of a kernel whose work-items change the buffer, one after another.
fn all(act: impl Fn(&mut [u32], u32, u32) + 'static) -> Expected {
    Box::new(move |a, b| {
        let mut out = vec![0; N];
        a.iter().zip(b).for_each(|(x, y)| act(&mut out, *x, *y));
        out
    })
}

fn long(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn fold(bits: u64) -> u32 {
    (bits >> 32) as u32 ^ bits as u32
}

fn double(value: f64) -> u32 {
    fold(value.to_bits())
}

fn wide(x: u32) -> f64 {
    f64::from(x as i32)
}

fn small(x: u32) -> f32 {
    (x as i32 >> 14) as f32 * 0.25
}

/// The half-precision number that is nearest to a number of at least 2^-14.
fn half(value: f32) -> u32 {
    let exponent = (value.to_bits() >> 23) as i32 - 127;
    let units = (value * 2f32.powi(10 - exponent)).round_ties_even() as u32;
    (((exponent + 15) as u32) << 10) + (units - 1024)
}

fn greatest_divisor(x: u32, y: u32) -> u32 {
    if y == 0 {
        x
    } else {
        greatest_divisor(y, x % y)
    }
}

fn collatz(start: u32) -> u32 {
    let (mut value, mut steps) = (u64::from(start & 0xffff) + 1, 0);
    while value != 1 {
        value = if value & 1 == 1 {
            3 * value + 1
        } else {
            value / 2
        };
        steps += 1;
    }
    steps
}

fn choose(x: u32, y: u32) -> u32 {
    match x & 7 {
        0 => x.wrapping_add(y),
        1 => x.wrapping_sub(y),
        2 => x.wrapping_mul(y),
        3 => x & y,
        4 => x | y,
        5 => x ^ y,
        _ => !x,
    }
}

fn private_array(x: u32, y: u32) -> u32 {
    let mut own: [u32; 16] = std::array::from_fn(|k| x.wrapping_mul(k as u32 + 1));
    let (mut sum, mut place) = (0u32, y as usize & 15);
    for _ in 0..16 {
        sum = sum.wrapping_mul(31).wrapping_add(own[place]);
        own[place] = sum;
        place = (place * 5 + 3) & 15;
    }
    sum
}

fn random_walk(x: u32) -> u32 {
    (0..32).fold(x | 1, |mut state, _| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^ state << 5
    })
}

fn checksum(x: u32) -> u32 {
    let sum = x.to_le_bytes().iter().fold(!0u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            sum >> 1 ^ if sum & 1 == 1 { 0xedb8_8320 } else { 0 }
        })
    });
    !sum
}

fn search(wanted: u32) -> u32 {
    f64::from(wanted).sqrt().ceil() as u32
}

fn add_long(out: &mut [u32], place: usize, value: u64) {
    let sum = long(out[2 * place + 1], out[2 * place]).wrapping_add(value);
    (out[2 * place], out[2 * place + 1]) = (sum as u32, (sum >> 32) as u32);
}

/// All kernels with their models.
fn kernels() -> Vec<(&'static str, Expected)> {
    let mut kernels = arithmetic();
    kernels.extend(control_and_memory());
    kernels.extend(groups());
    kernels
}

fn arithmetic() -> Vec<(&'static str, Expected)> {
    vec![
        (
            "mix_integers",
            each(|x, y| {
                (x ^ y << 7)
                    .wrapping_mul(2_654_435_761)
                    .wrapping_add(y >> 3)
            }),
        ),
        (
            "multiply_high",
            each(|x, y| {
                let signed = i64::from(x as i32) * i64::from(y as i32);
                ((u64::from(x) * u64::from(y)) >> 32) as u32 ^ (signed >> 32) as u32
            }),
        ),
        (
            "divide_signed",
            each(|x, y| {
                let (x, y) = (x as i32, y as i32);
                let rest = x.wrapping_rem((y as u32 >> 8 | 1) as i32) as u32;
                (x.wrapping_div(y | 1) as u32).wrapping_add(rest.wrapping_mul(3))
            }),
        ),
        (
            "divide_unsigned",
            each(|x, y| (x / (y >> 16 | 1)) ^ (x % (y | 1))),
        ),
        (
            "divide_long",
            each(|x, y| {
                let quotient = fold(long(x, y) / (u64::from(y) << 7 | 1));
                quotient.wrapping_add(fold(long(y, x) % (u64::from(x) | 1)))
            }),
        ),
        (
            "add_long",
            each(|x, y| {
                let sum = long(x, y).wrapping_add(long(y, x));
                fold(sum.wrapping_sub(u64::from(x) * u64::from(y)))
            }),
        ),
        (
            "shift_long",
            each(|x, y| {
                let first = fold(long(x, y) >> (y & 63) ^ long(y, x) << (x & 63));
                first.wrapping_add(fold((long(x, y) as i64 >> (x & 63)) as u64))
            }),
        ),
        (
            "count_bits",
            each(|x, y| {
                x.count_ones() | (y | 1).leading_zeros() << 8 | (x | 1 << 31).trailing_zeros() << 16
            }),
        ),
        (
            "reverse_bits",
            each(|x, y| x.reverse_bits() ^ y.swap_bytes()),
        ),
        (
            "rotate",
            each(|x, y| x.rotate_left(y & 31).wrapping_add(y.rotate_left(13))),
        ),
        (
            "narrow_integers",
            each(|x, y| {
                let product = (x as u16 as i16).wrapping_mul(y as u16 as i16);
                x.wrapping_add(y) & 0xff | u32::from(product as u16) << 16
            }),
        ),
        (
            "saturate",
            each(|x, y| (x as i32).saturating_add(y as i32) as u32 ^ x.saturating_sub(y)),
        ),
        (
            "least_and_greatest",
            each(|x, y| (x as i32).min(y as i32) as u32 ^ x.max(y) << 1),
        ),
        (
            "fused_multiply_add",
            each(|x, y| small(x).mul_add(small(y), small(x ^ y)).to_bits()),
        ),
        (
            "divide_floats",
            each(|x, y| (small(x) / (small(y) + 0.125)).to_bits()),
        ),
        (
            "square_root",
            each(|x, y| small(x).abs().sqrt().to_bits() ^ (small(y) * 3.0).to_bits()),
        ),
        (
            "round_floats",
            each(|x, y| {
                small(x).floor().to_bits()
                    ^ small(y).trunc().to_bits()
                    ^ small(x.wrapping_add(y)).round_ties_even().to_bits()
            }),
        ),
        (
            "convert_floats",
            each(|x, y| {
                small(x) as i32 as u32 ^ (y as f32).to_bits() ^ (x as i32 as f32).to_bits()
            }),
        ),
        (
            "compare_floats",
            each(|x, y| {
                let (x, y) = (f32::from_bits(x), f32::from_bits(y));
                let not_at_least = x < y || x.is_nan() || y.is_nan();
                u32::from(x < y) | u32::from(x != y) << 1 | u32::from(not_at_least) << 2
            }),
        ),
        (
            "half_floats",
            each(|x, y| half((x & 255) as f32 * (y & 7) as f32 + 0.5)),
        ),
        (
            "doubles",
            each(|x, y| double(wide(x) * wide(y) + 0.5) ^ double(wide(x) - wide(y) * 3.0)),
        ),
        (
            "divide_doubles",
            each(|x, y| double(wide(x) / (wide(y) + 0.5))),
        ),
        (
            "root_of_double",
            each(|x, y| double((wide(x) + wide(y)).abs().sqrt())),
        ),
        (
            "fused_doubles",
            each(|x, y| double(wide(x).mul_add(wide(y), wide(x ^ y)))),
        ),
    ]
}

fn control_and_memory() -> Vec<(&'static str, Expected)> {
    vec![
        ("collatz", each(|x, _| collatz(x))),
        ("choose", each(choose)),
        ("private_array", each(private_array)),
        (
            "call_functions",
            each(|x, y| greatest_divisor(x & 0xfff, y & 0xfff)),
        ),
        ("random_walk", each(|x, _| random_walk(x))),
        ("checksum", each(|x, _| checksum(x))),
        ("search", each(|_, y| search(y))),
        (
            "gather",
            at(|i, a, b| {
                a[(i * 37 + 11) % N]
                    .wrapping_add(b[i] >> 16)
                    .wrapping_add(a[i] >> 16 & 0xff)
            }),
        ),
        (
            "scatter",
            Box::new(|a, b| {
                let mut out = vec![0; N];
                (0..N).for_each(|i| out[(i * 5 + 3) % N] = a[i] ^ b[i]);
                out
            }),
        ),
        (
            "copy_wide",
            at(|i, a, _| a[i].wrapping_add(if i % 4 == 0 { a[i + 3] } else { 0 })),
        ),
        (
            "bytes_and_words",
            each(|x, y| x & 0xff | y & 0xff00 | x & 0xffff_0000),
        ),
        (
            "stencil",
            at(|i, a, _| {
                (0..5).fold(0, |sum: u32, k| {
                    sum.wrapping_add(a[(i + k + N - 2) % N].wrapping_mul([1, 4, 6, 4, 1][k]))
                })
            }),
        ),
        (
            "multiply_matrices",
            at(|i, a, b| {
                (0..32).fold(0, |sum: u32, k| {
                    sum.wrapping_add(a[i / 32 * 32 + k].wrapping_mul(b[k * 32 + i % 32]))
                })
            }),
        ),
    ]
}

fn groups() -> Vec<(&'static str, Expected)> {
    let sum = |numbers: &[u32]| numbers.iter().fold(0u32, |sum, x| sum.wrapping_add(*x));
    vec![
        (
            "reverse_block",
            blocks(|block| block.iter().rev().copied().collect()),
        ),
        (
            "transpose_block",
            blocks(|block| (0..BLOCK).map(|t| block[t % 16 * 16 + t / 16]).collect()),
        ),
        ("reduce_block", blocks(move |block| vec![sum(block); BLOCK])),
        (
            "scan_block",
            blocks(move |block| (1..=BLOCK).map(|end| sum(&block[..end])).collect()),
        ),
        (
            "sort_block",
            blocks(|block| {
                let mut keys = block.to_vec();
                keys.sort_unstable();
                keys
            }),
        ),
        (
            "histogram_block",
            blocks(|block| {
                let mut counts = vec![0; BLOCK];
                let bytes = block.iter().flat_map(|x| x.to_le_bytes());
                bytes.for_each(|byte| counts[usize::from(byte)] += 1);
                counts
            }),
        ),
        ("exchange_lanes", at(|i, a, b| a[i ^ 1].wrapping_add(b[i]))),
        (
            "first_lanes",
            at(|i, a, _| a[i].wrapping_add((i / BLOCK * 3 + 1) as u32)),
        ),
        (
            "add_atomically",
            all(|out, x, y| {
                let place = &mut out[x as usize % N];
                *place = place.wrapping_add(y);
            }),
        ),
        (
            "greatest_atomically",
            all(|out, x, y| out[x as usize % 64] = out[x as usize % 64].max(y)),
        ),
        (
            "swap_atomically",
            all(|out, x, _| {
                let place = &mut out[x as usize % 64];
                *place = place.wrapping_mul(3).wrapping_add(1);
            }),
        ),
        (
            "add_long_atomically",
            all(|out, x, y| add_long(out, x as usize % 64, u64::from(y) << 20)),
        ),
        (
            "look_back",
            Box::new(|a, _| {
                let mut out = vec![0; N];
                let mut sum = 0u32;
                for block in 0..N / BLOCK {
                    sum = sum.wrapping_add(a[block]);
                    (out[2 * block], out[2 * block + 1]) = (sum, 1);
                }
                out[N - 1] = (N / BLOCK) as u32;
                out
            }),
        ),
    ]
}

/// Numbers at the start of a page, so that counts of cache lines do not depend on the allocator.
#[repr(align(4096))]
struct Numbers([u32; N]);

/// Both inputs of the kernels.
fn inputs() -> [Box<Numbers>; 2] {
    let mut random = Random(47);
    [(); 2].map(|()| Box::new(Numbers(std::array::from_fn(|_| random.next() as u32))))
}

/// Runs a kernel. Returns its output, and what `act` returns for its dispatch.
fn run<R>(
    module: &Module,
    kernel: &str,
    [a, b]: &mut [Box<Numbers>; 2],
    act: impl FnOnce(&Dispatch<'_>) -> R,
) -> (Vec<u32>, R) {
    let mut out = Box::new(Numbers([0; N]));
    let args: [&[u8]; 4] = [
        &pointer(&mut out.0),
        &pointer(&mut a.0),
        &pointer(&mut b.0),
        &(N as u32).to_le_bytes(),
    ];
    let grid = ([N as u32, 1, 1], [BLOCK as u16, 1, 1]);
    let done = module.dispatch(kernel, grid.0, grid.1, 0, &args, act);
    (out.0.to_vec(), done)
}

fn module(processor: &str) -> Module {
    let target = Device::find(processor).unwrap().target();
    Module::load(&pick(CORPUS, &target).unwrap())
}

#[test]
fn corpus_kernels_agree_with_their_models_on_any_number_of_threads() {
    let kernels = kernels();
    assert!(kernels.len() >= 40, "{}", kernels.len());
    for processor in ["gfx90a", "gfx942"] {
        let module = module(processor);
        assert_eq!(module.object.kernels().len(), kernels.len());
        let mut inputs = inputs();
        for (name, expected) in &kernels {
            let expected = expected(&inputs[0].0, &inputs[1].0);
            for threads in [1, 2, 8] {
                let (found, stats) = run(&module, name, &mut inputs, |dispatch| {
                    let stop = AtomicBool::new(false);
                    let control = Control {
                        threads,
                        stop: &stop,
                        seed: None,
                    };
                    run_dispatch(dispatch, &Everything, &control).map(|executed| executed.stats)
                });
                assert_eq!(stats.unwrap().work_items, N as u64);
                let wrong = found.iter().zip(&expected).position(|(x, y)| x != y);
                assert!(
                    wrong.is_none(),
                    "{name} for {processor} on {threads} threads: number {wrong:?}: {:#x?}, not {:#x?}",
                    wrong.map(|n| found[n]),
                    wrong.map(|n| expected[n]),
                );
            }
        }
    }
}

#[test]
fn corpus_kernels_with_the_same_seed_leave_the_same_memory_and_counts() {
    let module = module("gfx90a");
    let mut inputs = inputs();
    for (name, expected) in kernels() {
        let expected = expected(&inputs[0].0, &inputs[1].0);
        let mut counted = |seed| {
            let (out, (counts, stats)) = run(&module, name, &mut inputs, |dispatch| {
                let stop = AtomicBool::new(false);
                let local = |_| PageMemory::LOCAL;
                let mut model = Model::new(dispatch, &local);
                let control = Control {
                    threads: 1,
                    stop: &stop,
                    seed: Some(seed),
                };
                let executed = watch_dispatch(dispatch, &Everything, &control, &mut model).unwrap();
                (format!("{:?}", model.finish()), executed.stats)
            });
            assert_eq!(out, expected, "{name} with seed {seed}");
            (counts, stats)
        };
        for seed in [1, 2] {
            assert_eq!(counted(seed), counted(seed), "{name} with seed {seed}");
        }
    }
}

/// Events that the kernels of this file do not cause, in the catalogue's order.
const NOT_CAUSED: &[&str] = &[
    // Always 0.
    "SQ_LEVEL_WAVES",
    // All waves are full.
    "SQ_WAVES_LT_64",
    "SQ_WAVES_LT_48",
    "SQ_WAVES_LT_32",
    "SQ_WAVES_LT_16",
    // Products of halves, and matrices.
    "SQ_INSTS_VALU_MUL_F16",
    "SQ_INSTS_VALU_FMA_F16",
    "SQ_INSTS_VALU_TRANS_F16",
    "SQ_INSTS_VALU_MFMA_I8",
    "SQ_INSTS_VALU_MFMA_F16",
    "SQ_INSTS_VALU_MFMA_BF16",
    "SQ_INSTS_VALU_MFMA_F32",
    "SQ_INSTS_VALU_MFMA_F64",
    "SQ_INSTS_VALU_MFMA_MOPS_I8",
    "SQ_INSTS_VALU_MFMA_MOPS_F16",
    "SQ_INSTS_VALU_MFMA_MOPS_BF16",
    "SQ_INSTS_VALU_MFMA_MOPS_F32",
    "SQ_INSTS_VALU_MFMA_MOPS_F64",
    "SQ_INSTS_MFMA",
    // LDS through flat addresses, and the GDS.
    "SQ_INSTS_FLAT_LDS_ONLY",
    "SQ_INSTS_GDS",
    "SQ_INSTS_EXP_GDS",
    // Always 0.
    "SQ_INSTS_VSKIPPED",
    // Always 0.
    "SQ_INST_LEVEL_VMEM",
    "SQ_INST_LEVEL_SMEM",
    "SQ_INST_LEVEL_LDS",
    "SQ_VALU_MFMA_BUSY_CYCLES",
    "SQ_WAIT_INST_LDS",
    // Scratch memory, which has the buffer instructions.
    "SQ_ACTIVE_INST_VMEM",
    "SQ_ACTIVE_INST_EXP_GDS",
    // Always 0.
    "SQ_IFETCH_LEVEL",
    // All accesses of LDS are aligned and inside.
    "SQ_LDS_UNALIGNED_STALL",
    "SQ_LDS_MEM_VIOLATIONS",
    // No atomic of LDS returns a value.
    "SQ_LDS_ATOMIC_RETURN",
    // Always 0.
    "SQ_WAVES_RESTORED",
    "SQ_WAVES_SAVED",
    // More requests than a part can take.
    "SQC_DCACHE_INPUT_VALID_READYB",
    // Always 0.
    "SQC_TC_DATA_WRITE_REQ",
    "SQC_TC_DATA_ATOMIC_REQ",
    "SQC_TC_STALL",
    // Always 0.
    "SQC_DCACHE_ATOMIC",
    // Long scalar loads.
    "SQC_DCACHE_REQ_READ_8",
    "SQC_DCACHE_REQ_READ_16",
    // All workgroups find room.
    "SPI_RA_REQ_NO_ALLOC",
    "SPI_RA_REQ_NO_ALLOC_CSN",
    "SPI_RA_RES_STALL_CSN",
    // Always 0.
    "SPI_RA_TMP_STALL_CSN",
    // All workgroups find room.
    "SPI_RA_WAVE_SIMD_FULL_CSN",
    "SPI_RA_VGPR_SIMD_FULL_CSN",
    // Always 0.
    "SPI_RA_SGPR_SIMD_FULL_CSN",
    // All workgroups find room.
    "SPI_RA_LDS_CU_FULL_CSN",
    "SPI_RA_BAR_CU_FULL_CSN",
    // Always 0.
    "SPI_RA_BULKY_CU_FULL_CSN",
    "SPI_RA_TGLIM_CU_FULL_CSN",
    "SPI_RA_WVLIM_STALL_CSN",
    // Scratch memory.
    "TA_BUFFER_WAVEFRONTS",
    "TA_BUFFER_READ_WAVEFRONTS",
    "TA_BUFFER_WRITE_WAVEFRONTS",
    "TA_BUFFER_ATOMIC_WAVEFRONTS",
    "TA_BUFFER_TOTAL_CYCLES",
    "TA_BUFFER_COALESCED_READ_CYCLES",
    "TA_BUFFER_COALESCED_WRITE_CYCLES",
    // More requests than a part can take.
    "TA_ADDR_STALLED_BY_TC_CYCLES",
    "TA_DATA_STALLED_BY_TC_CYCLES",
    // Always 0.
    "TD_SPI_STALL",
    // More requests than a part can take.
    "TCP_TCP_TA_DATA_STALL_CYCLES",
    "TCP_TCR_TCP_STALL_CYCLES",
    // No line is stored to while it is on its way.
    "TCP_WRITE_TAGCONFLICT_STALL_CYCLES",
    // Always 0.
    "TCP_UTCL1_PERMISSION_MISS",
    // All memory is the device's own.
    "TCP_TCC_NC_READ_REQ",
    "TCP_TCC_NC_WRITE_REQ",
    "TCP_TCC_NC_ATOMIC_REQ",
    "TCP_TCC_UC_READ_REQ",
    "TCP_TCC_UC_WRITE_REQ",
    "TCP_TCC_UC_ATOMIC_REQ",
    "TCP_TCC_CC_READ_REQ",
    "TCP_TCC_CC_WRITE_REQ",
    "TCP_TCC_CC_ATOMIC_REQ",
    // No instruction has the bit.
    "TCC_STREAMING_REQ",
    // All memory is the device's own.
    "TCC_NC_REQ",
    "TCC_UC_REQ",
    "TCC_CC_REQ",
    // Always 0.
    "TCC_PROBE",
    "TCC_PROBE_ALL",
    // All memory is the device's own.
    "TCC_EA_WR_UNCACHED_32B",
    // More requests than a part can take.
    "TCC_EA_WRREQ_STALL",
    // All memory is the device's own.
    "TCC_EA_WRREQ_IO_CREDIT_STALL",
    "TCC_EA_WRREQ_GMI_CREDIT_STALL",
    // More requests than a part can take.
    "TCC_EA_WRREQ_DRAM_CREDIT_STALL",
    // Always 0.
    "TCC_TOO_MANY_EA_WRREQS_STALL",
    // All memory is the device's own.
    "TCC_EA_ATOMIC",
    "TCC_EA_ATOMIC_LEVEL",
    // Reads of less than half a line.
    "TCC_EA_RDREQ_32B",
    // All memory is the device's own.
    "TCC_EA_RD_UNCACHED_32B",
    "TCC_EA_RDREQ_IO_CREDIT_STALL",
    "TCC_EA_RDREQ_GMI_CREDIT_STALL",
    // More requests than a part can take.
    "TCC_EA_RDREQ_DRAM_CREDIT_STALL",
    // Always 0.
    "TCC_BUBBLE",
    // Data that the second-level cache has no room for.
    "TCC_NORMAL_WRITEBACK",
    "TCC_NORMAL_EVICT",
    "TCC_ALL_TC_OP_INV_EVICT",
    "CPC_CPC_STAT_IDLE",
    // All workgroups find room.
    "CPC_CPC_STAT_STALL",
    // Always 0.
    "CPC_CPC_UTCL2IU_STALL",
    "CPF_CPF_STAT_IDLE",
    "CPF_CPF_TCIU_STALL",
];

/// Checks that each event is caused by a kernel of this file or is listed: a count that nothing adds to would be 0 in
/// every dispatch.
#[test]
fn corpus_kernels_cause_every_event_except_those_listed() {
    let module = module("gfx90a");
    let mut inputs = inputs();
    let mut missing: Vec<_> = determined_events().map(|(_, _, name)| name).collect();
    for (name, _) in kernels() {
        let (_, counts) = run(&module, name, &mut inputs, watch);
        missing.retain(|event| sum(&counts, event) == 0);
    }
    assert_eq!(missing, NOT_CAUSED);
}
