//! Instructions compiled for each instruction set of the host.

use super::machine::{execute_on, fill, listing};
use super::*;
use crate::isa::exec::WaveState;
use crate::isa::host::{Level, MOST};
use crate::isa::inst::{EXEC, VCC};
use crate::isa::lanes::Lanes;

/// Random bits; zeros, infinities, NaN, denormals and small integers are frequent.
fn bits(random: &mut Random) -> u32 {
    let number = random.next();
    let value = (number >> 32) as u32;
    match number & 15 {
        0 => 0,
        1 => 1 << 31,
        2 => 0x7f80_0000,
        3 => 0xff80_0000,
        4 => 0x7fc0_0000,
        5 => value & 0x807f_ffff,
        6 | 7 => value & 63,
        8..=10 => value & 0x81ff_ffff | 0x3e00_0000,
        _ => value,
    }
}

/// Whether a register has the same value in a lane, or a NaN of the same width. For operations on several NaN, the
/// host returns any of them.
fn same(a: &[Lanes], b: &[Lanes], register: usize, lane: usize) -> bool {
    let (x, y) = (a[register][lane], b[register][lane]);
    let both = |is_nan: fn(u32) -> bool, x, y| is_nan(x) && is_nan(y);
    let single = |v: u32| f32::from_bits(v).is_nan();
    let half = |v: u32| v & 0x7fff > 0x7c00;
    let double = |high: u32| high & 0x7ff0_0000 == 0x7ff0_0000;
    let next = (register + 1) % 512;
    let same_half = |x: u32, y: u32| x & 0xffff == y & 0xffff || both(half, x, y);
    x == y
        || both(single, x, y)
        || same_half(x, y) && same_half(x >> 16, y >> 16)
        || both(double, x, y)
        || both(double, a[next][lane], b[next][lane])
}

#[test]
fn results_do_not_depend_on_the_vector_extensions_of_the_host() {
    let mut compared = 0;
    for set in [InstructionSet::Gfx90a, InstructionSet::Gfx942] {
        for row in listing(set) {
            let lds = row.encoding == "DS";
            let vector = matches!(row.encoding, "VOP1" | "VOP2" | "VOP3" | "VOPC" | "VOP3P");
            if !row.executed || !vector && !lds || row.name.starts_with("ds_gws") {
                continue;
            }
            for (seed, lanes) in [(1, u64::MAX), (2, 0x5555_ffff_0000_1234)] {
                let results = [Level::Plain, Level::Avx2, Level::Avx512].map(|level| {
                    *MOST.write().unwrap() = level;
                    let mut random = Random(seed);
                    execute_on(
                        set,
                        &row.sample,
                        &Everything,
                        |x| {
                            // Some of the LDS addresses are in range.
                            let mask = if lds { 0x7ff } else { u32::MAX };
                            fill(x, || bits(&mut random) & mask);
                            x.lds = (0..1024).map(|n| (n * 7) as u8).collect();
                            x.w.s[..100].fill_with(|| bits(&mut random) & mask);
                            x.set_pair(VCC, random.next());
                            x.set_pair(EXEC, lanes);
                        },
                        |x| {
                            assert_eq!(x.w.state, WaveState::Ended, "{}: {:?}", row.name, x.fault);
                            (x.w.v.to_vec(), x.w.s, x.lds.clone(), x.stats)
                        },
                    )
                });
                *MOST.write().unwrap() = Level::Avx512;
                let [plain, others @ ..] = &results;
                for other in others {
                    for (register, lane) in (0..512).flat_map(|r| (0..64).map(move |l| (r, l))) {
                        assert!(
                            same(&plain.0, &other.0, register, lane),
                            "{}: register {register}, lane {lane}: {:#x}, {:#x}",
                            row.name,
                            plain.0[register][lane],
                            other.0[register][lane]
                        );
                    }
                    assert_eq!(plain.1, other.1, "{}: scalar registers", row.name);
                    assert_eq!(plain.2, other.2, "{}: LDS", row.name);
                    assert_eq!(plain.3, other.3, "{}: counts", row.name);
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 3000, "{compared}");
}
