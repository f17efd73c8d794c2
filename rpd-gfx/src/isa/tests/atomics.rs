//! Atomic operations on global memory, each compared with its description.

use super::machine::{execute_on, sample_of};
use super::*;
use crate::isa::exec::WaveState;
use crate::isa::inst::EXEC;

/// Mask of every third lane.
const LANES: u64 = 0x9249_2492_4924_9249;

/// New value that an operation yields for the old value, the operand and the value to compare with.
type Model = fn(u64, u64, u64) -> u64;

/// New value that a signed operation yields for the old value and the operand.
type SignedModel = fn(i128, i128) -> i128;

/// The unsigned integer operations, in 64 bits.
const INTEGERS: [(&str, Model); 9] = [
    ("swap", |_, data, _| data),
    (
        "cmpswap",
        |old, data, compare| {
            if old == compare { data } else { old }
        },
    ),
    ("umin", |old, data, _| if data < old { data } else { old }),
    ("umax", |old, data, _| if data > old { data } else { old }),
    ("and", |old, data, _| !(!old | !data)),
    ("or", |old, data, _| !(!old & !data)),
    ("xor", |old, data, _| (old | data) & !(old & data)),
    ("inc", |old, data, _| if old < data { old + 1 } else { 0 }),
    ("dec", |old, data, _| {
        if old > data || old == 0 {
            data
        } else {
            old - 1
        }
    }),
];

/// The integer operations whose results depend on the width.
const SIGNED: [(&str, SignedModel); 4] = [
    ("add", |old, data| old + data),
    ("sub", |old, data| old - data),
    ("smin", |old, data| if data < old { data } else { old }),
    ("smax", |old, data| if data > old { data } else { old }),
];

/// Memory that allows all accesses, fine-grained or not.
struct Kind {
    fine_grained: bool,
}

impl Memory for Kind {
    fn changes(&self) -> u64 {
        0
    }

    fn extent(&self, address: u64, write: bool) -> Option<Extent> {
        let extent = Everything.extent(address, write)?;
        Some(Extent {
            fine_grained: self.fine_grained,
            ..extent
        })
    }
}

/// Executes an operation whose lanes access `memory` in turn. Returns the old value of each lane, if the operation
/// does.
fn run(
    set: InstructionSet,
    name: &str,
    kind: &Kind,
    memory: &mut [u64; 16],
    data: &[[u64; 2]; 64],
    returns: bool,
) -> [u64; 64] {
    let wide = name.ends_with("_x2") || name.ends_with("f64");
    let [first, second] = sample_of(set, name);
    let code = [
        first & !(1 << 16) | u32::from(returns) << 16,
        second & 0xff_ffff | 8 << 24,
    ];
    let base = memory.as_mut_ptr() as u64;
    execute_on(
        set,
        &code,
        kind,
        |x| {
            x.set_pair(EXEC, LANES);
            for (lane, &[operand, compare]) in data.iter().enumerate() {
                let address = base + 8 * (lane as u64 % 16);
                let words = if wide {
                    [operand, operand >> 32, compare, compare >> 32]
                } else {
                    [operand, compare, 0, 0]
                };
                (x.w.v[2][lane], x.w.v[3][lane]) = (address as u32, (address >> 32) as u32);
                for (n, word) in words.into_iter().enumerate() {
                    x.w.v[4 + n][lane] = word as u32;
                }
            }
        },
        |x| {
            assert_eq!(x.w.state, WaveState::Ended, "{name}: {:?}", x.fault);
            let high = |lane: usize| if wide { x.w.v[9][lane] } else { 0 };
            std::array::from_fn(|lane| u64::from(x.w.v[8][lane]) | u64::from(high(lane)) << 32)
        },
    )
}

/// Compares an operation with `model`. `wide`: it has 64 bits.
fn compare(
    set: InstructionSet,
    name: &str,
    wide: bool,
    value: impl Fn(u64) -> u64,
    model: impl Fn(u64, u64, u64) -> u64,
) {
    for fine_grained in [false, true] {
        for returns in [false, true] {
            let mut random = 1u64;
            let mut number = || {
                random = random
                    .wrapping_mul(0x5851_f42d_4c95_7f2d)
                    .wrapping_add(0x1405_7b7e);
                value(random >> 20)
            };
            let mut memory: [u64; 16] = std::array::from_fn(|_| number());
            let mut data: [[u64; 2]; 64] = std::array::from_fn(|_| [number(), number()]);
            // Some comparisons succeed: the first lane of each address compares with the initial value.
            for lane in 0..16 {
                data[lane][1] = memory[lane];
            }
            let before = memory;
            let loaded = run(
                set,
                name,
                &Kind { fine_grained },
                &mut memory,
                &data,
                returns,
            );
            let mask = if wide { u64::MAX } else { u64::from(u32::MAX) };
            let mut wanted = before;
            for lane in (0..64).filter(|lane| LANES >> lane & 1 != 0) {
                let place = &mut wanted[lane % 16];
                let old = *place & mask;
                let new = model(old, data[lane][0] & mask, data[lane][1] & mask) & mask;
                *place = *place & !mask | new;
                if returns {
                    assert_eq!(loaded[lane], old, "{name} lane {lane}");
                }
            }
            if !returns {
                assert_eq!(loaded, [0; 64], "{name} returned something");
            }
            assert_eq!(memory, wanted, "{name}, fine-grained: {fine_grained}");
        }
    }
}

#[test]
fn integer_atomics_agree_with_their_models() {
    for set in [InstructionSet::Gfx90a, InstructionSet::Gfx942] {
        for (name, model) in INTEGERS {
            // A few different values, so that they are often equal or differ by one.
            for value in [|n| n, |n| n % 4] as [fn(u64) -> u64; 2] {
                compare(set, &format!("global_atomic_{name}"), false, value, model);
                compare(set, &format!("global_atomic_{name}_x2"), true, value, model);
            }
        }
        for (name, model) in SIGNED {
            let narrow = |old: u64, data: u64, _| {
                model(
                    i128::from(old as u32 as i32),
                    i128::from(data as u32 as i32),
                ) as u64
            };
            let wide = |old: u64, data: u64, _| {
                model(i128::from(old as i64), i128::from(data as i64)) as u64
            };
            compare(set, &format!("global_atomic_{name}"), false, |n| n, narrow);
            compare(set, &format!("global_atomic_{name}_x2"), true, |n| n, wide);
        }
    }
}

/// Results of floating-point operations on small numbers, which are exact.
fn floats(name: &str, old: u64, data: u64) -> u64 {
    let (left, right) = (f64::from_bits(old), f64::from_bits(data));
    match name {
        "global_atomic_add_f32" => {
            let sum = f32::from_bits(old as u32) + f32::from_bits(data as u32);
            u64::from(sum.to_bits())
        }
        "global_atomic_add_f64" => (left + right).to_bits(),
        "global_atomic_min_f64" => (if right < left { right } else { left }).to_bits(),
        _ => (if right > left { right } else { left }).to_bits(),
    }
}

#[test]
fn float_atomics_work_in_fine_grained_memory_only_where_the_device_supports_them() {
    for name in [
        "global_atomic_add_f32",
        "global_atomic_add_f64",
        "global_atomic_min_f64",
        "global_atomic_max_f64",
    ] {
        let wide = name.ends_with("f64");
        let value = |n: u64| {
            let number = n as u8 as i8;
            if wide {
                f64::from(number).to_bits()
            } else {
                u64::from(f32::from(number).to_bits())
            }
        };
        compare(InstructionSet::Gfx942, name, wide, value, |old, data, _| {
            floats(name, old, data)
        });
        // On gfx90a fine-grained memory is unchanged, and the result is 0.
        let mut memory = [value(7); 16];
        let data = [[value(3), 0]; 64];
        let fine = Kind { fine_grained: true };
        let loaded = run(
            InstructionSet::Gfx90a,
            name,
            &fine,
            &mut memory,
            &data,
            true,
        );
        assert_eq!((memory, loaded), ([value(7); 16], [0; 64]), "{name}");
        let coarse = Kind {
            fine_grained: false,
        };
        let loaded = run(
            InstructionSet::Gfx90a,
            name,
            &coarse,
            &mut memory,
            &data,
            true,
        );
        assert_eq!(loaded[0], value(7), "{name}");
        assert_ne!(
            memory[0],
            if name.contains("max") {
                value(3)
            } else {
                value(7)
            },
            "{name}"
        );
    }
}
