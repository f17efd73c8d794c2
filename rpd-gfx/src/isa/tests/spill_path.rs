//! Instructions by which compilers spill registers, each compared with a model of one lane: moves between scalar,
//! vector and accumulation registers, saved execution masks, and scratch memory.

use super::machine::{execute, fill, sample};
use super::*;
use crate::isa::exec::{Exec, PRIVATE_APERTURE, WaveState};
use crate::isa::inst::{EXEC, M0};

/// Registers of a wave: vector and scalar registers, and the execution mask.
#[derive(Clone, PartialEq, Debug)]
struct Registers {
    lanes: Vec<[u32; 64]>,
    scalars: Vec<u32>,
    scc: bool,
}

impl Registers {
    fn from_exec(x: &Exec<'_>) -> Self {
        Self {
            lanes: x.w.v.to_vec(),
            scalars: x.w.s[..128].to_vec(),
            scc: x.w.scc,
        }
    }

    fn exec(&self) -> u64 {
        u64::from(self.scalars[126]) | u64::from(self.scalars[127]) << 32
    }

    fn is_active(&self, lane: usize) -> bool {
        self.exec() >> lane & 1 != 0
    }

    fn pair(&self, n: usize) -> u64 {
        u64::from(self.scalars[n]) | u64::from(self.scalars[n + 1]) << 32
    }

    fn set_pair(&mut self, n: usize, value: u64) {
        self.scalars[n] = value as u32;
        self.scalars[n + 1] = (value >> 32) as u32;
    }
}

const MASKS: [u64; 5] = [
    0,
    u64::MAX,
    1 << 63,
    0x0000_0001_8000_0000,
    0x0f0f_5555_0000_ffff,
];

/// Executes an instruction on random registers with each of the masks, and compares all registers with those of
/// `model`.
fn check(code: &[u32], what: &str, model: impl Fn(&mut Registers)) {
    for (seed, mask) in MASKS.into_iter().enumerate() {
        let mut random = Random(seed as u64);
        let mut expected = None;
        let found = execute(
            code,
            &Everything,
            |x| {
                fill(x, || random.next() as u32);
                x.w.s.iter_mut().for_each(|s| *s = random.next() as u32);
                x.w.scc = random.next() & 1 != 0;
                x.set_pair(EXEC, mask);
                expected = Some(Registers::from_exec(x));
            },
            |x| {
                assert_eq!(x.w.state, WaveState::Ended, "{what}: {:?}", x.fault);
                Registers::from_exec(x)
            },
        );
        let mut expected = expected.unwrap();
        model(&mut expected);
        assert!(found == expected, "{what} with the mask {mask:#x}");
    }
}

/// Instructions that read or write a lane do so whatever the mask is. The number of the lane is taken modulo 64.
#[test]
fn readlane_and_writelane_ignore_the_execution_mask() {
    let [write, _] = sample("v_writelane_b32");
    let [read, _] = sample("v_readlane_b32");
    // Sources of the lane's number: s6, M0, and the constants 0, 31 and 63.
    for (code, constant) in [
        (6, None),
        (124, None),
        (128, Some(0)),
        (159, Some(31)),
        (191, Some(63)),
    ] {
        let lane =
            |r: &Registers| constant.unwrap_or_else(|| r.scalars[code as usize] as usize) % 64;
        for (value, known) in [(2, None), (193, Some(u32::MAX)), (130, Some(2))] {
            check(&[write, value | code << 9], "v_writelane", |r| {
                let lane = lane(r);
                r.lanes[4][lane] = known.unwrap_or_else(|| r.scalars[value as usize]);
            });
        }
        check(&[read, 0x102 | code << 9], "v_readlane", |r| {
            r.scalars[4] = r.lanes[2][lane(r)];
        });
    }
}

#[test]
fn readfirstlane_reads_the_first_active_lane() {
    check(
        &sample("v_readfirstlane_b32")[..1],
        "v_readfirstlane",
        |r| {
            let lane = (0..64).find(|&lane| r.is_active(lane)).unwrap_or(0);
            r.scalars[4] = r.lanes[2][lane];
        },
    );
}

#[test]
fn accumulation_registers_are_moved_in_active_lanes_only() {
    let moved = |r: &mut Registers, to: usize, from: &dyn Fn(&Registers, usize) -> u32| {
        for lane in 0..64 {
            if r.is_active(lane) {
                r.lanes[to][lane] = from(r, lane);
            }
        }
    };
    for n in [0usize, 2, 58, 255] {
        let register = n as u32 | 0x100;
        let [first, _] = sample("v_accvgpr_read_b32");
        check(&[first, 0x1800_0000 | register], "v_accvgpr_read", |r| {
            moved(r, 4, &|r, lane| r.lanes[256 + n][lane]);
        });
        let [first, _] = sample("v_accvgpr_write_b32");
        check(
            &[first & !0xff | n as u32, 0x1800_0102],
            "v_accvgpr_write",
            |r| {
                moved(r, 256 + n, &|r, lane| r.lanes[2][lane]);
            },
        );
        // From a scalar register and a constant.
        for (code, value) in [(6u32, None), (193, Some(u32::MAX))] {
            check(
                &[first & !0xff | n as u32, 0x1800_0000 | code],
                "v_accvgpr_write",
                |r| {
                    moved(r, 256 + n, &|r, _| value.unwrap_or(r.scalars[6]));
                },
            );
        }
        let [first, _] = sample("v_accvgpr_mov_b32");
        check(
            &[first & !0x01fe_01ff | (n as u32) << 17 | 0x102],
            "v_accvgpr_mov",
            |r| {
                moved(r, 256 + n, &|r, lane| r.lanes[258][lane]);
            },
        );
    }
}

#[test]
fn saveexec_saves_and_replaces_the_execution_mask() {
    type Operation = fn(u64, u64) -> u64;
    let operations: [(&str, Operation); 10] = [
        ("and", |s, exec| s & exec),
        ("or", |s, exec| s | exec),
        ("xor", |s, exec| s ^ exec),
        ("andn2", |s, exec| s & !exec),
        ("orn2", |s, exec| s | !exec),
        ("nand", |s, exec| !(s & exec)),
        ("nor", |s, exec| !(s | exec)),
        ("xnor", |s, exec| !(s ^ exec)),
        ("andn1", |s, exec| !s & exec),
        ("orn1", |s, exec| !s | exec),
    ];
    for (name, operation) in operations {
        let [code, _] = sample(&format!("s_{name}_saveexec_b64"));
        // Sources: s[2:3], the constant -1 (with which compilers save), and a pair that is the destination as well.
        for (source, target) in [(2u32, 4usize), (193, 4), (4, 4)] {
            let code = code & !0x007f_00ff | source | (target as u32) << 16;
            check(&[code], name, |r| {
                let value = if source == 193 {
                    u64::MAX
                } else {
                    r.pair(source as usize)
                };
                let (before, after) = (r.exec(), operation(value, r.exec()));
                r.set_pair(target, before);
                r.set_pair(126, after);
                r.scc = after != 0;
            });
        }
    }
    let [code, _] = sample("s_mov_b64");
    check(
        &[code & !0x007f_00ff | 126 << 16 | 193],
        "s_mov_b64 exec, -1",
        |r| r.set_pair(126, u64::MAX),
    );
    check(
        &[code & !0x007f_00ff | 126 << 16 | 4],
        "s_mov_b64 exec",
        |r| {
            let value = r.pair(4);
            r.set_pair(126, value);
        },
    );
    let [code, _] = sample("s_not_b64");
    check(
        &[code & !0x007f_00ff | 126 << 16 | 126],
        "s_not_b64 exec",
        |r| {
            let value = !r.exec();
            r.set_pair(126, value);
            r.scc = value != 0;
        },
    );
}

/// Size of the scratch memory of a lane in bytes.
const SIZE: usize = 256;

/// Scratch memory by lane.
type Scratch = [[u8; SIZE]; 64];

/// A data transfer of an instruction to or from scratch memory.
struct Transfer {
    /// Part of the instruction's name.
    name: &'static str,
    bytes: usize,
    /// Whether a value of less than a dword is in the high half of the register. `fill`: change of the rest of the
    /// register by a load.
    high: bool,
    fill: Fill,
}

#[derive(Clone, Copy, PartialEq)]
enum Fill {
    Store,
    Zero,
    Sign,
    KeepZero,
    KeepSign,
    Dwords,
}

const fn transfer(name: &'static str, bytes: usize, high: bool, fill: Fill) -> Transfer {
    Transfer {
        name,
        bytes,
        high,
        fill,
    }
}

static TRANSFERS: [Transfer; 22] = [
    transfer("store_byte", 1, false, Fill::Store),
    transfer("store_byte_d16_hi", 1, true, Fill::Store),
    transfer("store_short", 2, false, Fill::Store),
    transfer("store_short_d16_hi", 2, true, Fill::Store),
    transfer("store_dword", 4, false, Fill::Store),
    transfer("store_dwordx2", 8, false, Fill::Store),
    transfer("store_dwordx3", 12, false, Fill::Store),
    transfer("store_dwordx4", 16, false, Fill::Store),
    transfer("load_ubyte", 1, false, Fill::Zero),
    transfer("load_sbyte", 1, false, Fill::Sign),
    transfer("load_ushort", 2, false, Fill::Zero),
    transfer("load_sshort", 2, false, Fill::Sign),
    transfer("load_dword", 4, false, Fill::Dwords),
    transfer("load_dwordx2", 8, false, Fill::Dwords),
    transfer("load_dwordx3", 12, false, Fill::Dwords),
    transfer("load_dwordx4", 16, false, Fill::Dwords),
    transfer("load_ubyte_d16", 1, false, Fill::KeepZero),
    transfer("load_ubyte_d16_hi", 1, true, Fill::KeepZero),
    transfer("load_sbyte_d16", 1, false, Fill::KeepSign),
    transfer("load_sbyte_d16_hi", 1, true, Fill::KeepSign),
    transfer("load_short_d16", 2, false, Fill::KeepZero),
    transfer("load_short_d16_hi", 2, true, Fill::KeepZero),
];

impl Transfer {
    /// Executes the transfer for one lane. `registers` are those from the data register on.
    fn model(&self, memory: &mut [u8], registers: &mut [u32; 4]) {
        let old = registers.map(u32::to_le_bytes).concat();
        let mut new = old.clone();
        let at = if self.high { 2 } else { 0 };
        if self.fill == Fill::Store {
            memory[..self.bytes].copy_from_slice(&old[at..at + self.bytes]);
            return;
        }
        let filled = match self.fill {
            Fill::Zero | Fill::Sign => 4,
            Fill::KeepZero | Fill::KeepSign => 2,
            Fill::Dwords | Fill::Store => self.bytes,
        };
        let negative =
            matches!(self.fill, Fill::Sign | Fill::KeepSign) && memory[self.bytes - 1] & 0x80 != 0;
        for n in 0..filled {
            new[at + n] = match memory.get(n).filter(|_| n < self.bytes) {
                Some(byte) => *byte,
                None if negative => 0xff,
                None => 0,
            };
        }
        for (register, bytes) in registers.iter_mut().zip(new.chunks(4)) {
            *register = u32::from_le_bytes(bytes.try_into().unwrap());
        }
    }
}

/// Scratch memory of the wave in its layout: dword `n` of all lanes, then dword `n + 1`.
fn woven(scratch: &Scratch) -> Vec<u8> {
    let mut out = Vec::new();
    for dword in 0..SIZE / 4 {
        for lane in scratch {
            out.extend(&lane[4 * dword..4 * dword + 4]);
        }
    }
    out
}

/// Executes `code` and compares registers and scratch memory with the model. `data` is the data register; `offset`
/// computes the accessed offset from a lane's registers.
fn transfers(
    transfer: &Transfer,
    code: [u32; 2],
    data: usize,
    set: impl Fn(&mut Exec<'_>, u64, &mut dyn FnMut() -> u32),
    offset: impl Fn(&Registers, usize) -> usize,
) {
    for (seed, mask) in MASKS.into_iter().chain(MASKS).enumerate() {
        let mut random = Random(seed as u64 + 50);
        let aligned = seed < MASKS.len();
        let mut scratch: Scratch = [[0; SIZE]; 64];
        scratch
            .iter_mut()
            .flatten()
            .for_each(|byte| *byte = random.next() as u8);
        let memory = woven(&scratch);
        let address = memory.as_ptr() as u64;
        let mut expected = None;
        let found = execute(
            &code,
            &Everything,
            |x| {
                fill(x, || random.next() as u32);
                set(x, address, &mut || {
                    random_offset(transfer, aligned, &mut random)
                });
                x.set_pair(EXEC, mask);
                expected = Some(Registers::from_exec(x));
            },
            |x| {
                assert_eq!(
                    x.w.state,
                    WaveState::Ended,
                    "{}: {:?}",
                    transfer.name,
                    x.fault
                );
                Registers::from_exec(x)
            },
        );
        let mut expected = expected.unwrap();
        for lane in (0..64).filter(|lane| mask >> lane & 1 != 0) {
            let at = offset(&expected, lane);
            let mut registers = std::array::from_fn(|n| expected.lanes[data + n][lane]);
            transfer.model(&mut scratch[lane][at..], &mut registers);
            for (n, register) in registers.into_iter().enumerate() {
                expected.lanes[data + n][lane] = register;
            }
        }
        // The instruction has written the memory through a raw address.
        let memory = std::hint::black_box(memory);
        assert!(
            memory == woven(&scratch),
            "{}: memory, mask {mask:#x}",
            transfer.name
        );
        assert!(
            found == expected,
            "{}: registers, mask {mask:#x}",
            transfer.name
        );
    }
}

/// A random offset for a register with which the whole transfer is inside: aligned, a multiple of 4 for dwords, or any.
fn random_offset(transfer: &Transfer, aligned: bool, random: &mut Random) -> u32 {
    let offset = random.next() as u32 % 160;
    if aligned {
        offset & !(transfer.bytes.min(4) as u32 - 1)
    } else {
        offset
    }
}

#[test]
fn scratch_instructions_access_the_lane_s_own_memory() {
    for transfer in &TRANSFERS {
        let [first, second] = sample(&format!("scratch_{}", transfer.name));
        let stores = transfer.fill == Fill::Store;
        let field = if stores { 4 } else { 8 };
        let base = |x: &mut Exec<'_>, address: u64| x.set_pair(102, address);
        for accumulation in [false, true] {
            let code = [first | 16, second | u32::from(accumulation) << 23];
            let data = field + if accumulation { 256 } else { 0 };
            // The offset in v2, and 16 in the instruction.
            let set = |x: &mut Exec<'_>, address: u64, offset: &mut dyn FnMut() -> u32| {
                base(x, address);
                x.w.v[2].iter_mut().for_each(|v| *v = offset());
            };
            transfers(transfer, code, data, set, |r, lane| {
                r.lanes[2][lane] as usize + 16
            });
            // The same offset for all lanes, in s9. The instruction subtracts 8.
            let code = [
                first | (8u32.wrapping_neg() & 0x1fff),
                second & !0x007f_0000 | 9 << 16 | u32::from(accumulation) << 23,
            ];
            let set = |x: &mut Exec<'_>, address: u64, offset: &mut dyn FnMut() -> u32| {
                base(x, address);
                x.set(9, 8 + offset());
            };
            transfers(transfer, code, data, set, |r, _| r.scalars[9] as usize - 8);
        }
    }
}

#[test]
fn flat_instructions_access_the_lane_s_own_memory() {
    for transfer in &TRANSFERS {
        let [first, second] = sample(&format!("flat_{}", transfer.name));
        let field = if transfer.fill == Fill::Store { 4 } else { 8 };
        for accumulation in [false, true] {
            // The address in v[2:3], and 16 in the instruction.
            let code = [first | 16, second | u32::from(accumulation) << 23];
            let data = field + if accumulation { 256 } else { 0 };
            let set = |x: &mut Exec<'_>, address: u64, offset: &mut dyn FnMut() -> u32| {
                x.set_pair(102, address);
                x.w.v[2].iter_mut().for_each(|v| *v = offset());
                x.w.v[3] = [PRIVATE_APERTURE; 64];
            };
            transfers(transfer, code, data, set, |r, lane| {
                r.lanes[2][lane] as usize + 16
            });
        }
    }
}

#[test]
fn buffer_instructions_access_the_lane_s_own_memory() {
    for transfer in &TRANSFERS {
        let [first, second] = sample(&format!("buffer_{}", transfer.name));
        for (accumulation, offset_in_register) in
            [(false, true), (true, true), (false, false), (true, false)]
        {
            let offen = 1 << 12;
            let first = if offset_in_register {
                first | offen
            } else {
                first & !offen
            };
            // 20 in the instruction, the wave's offset in s12: 512 bytes of the wave are 8 of a lane.
            let code = [
                first | 20,
                second & 0x00ff_ffff | 12 << 24 | u32::from(accumulation) << 23,
            ];
            let data = 4 + if accumulation { 256 } else { 0 };
            let set = |x: &mut Exec<'_>, address: u64, offset: &mut dyn FnMut() -> u32| {
                // The descriptor of scratch: swizzled, elements of 4 bytes, a stride of 64 lanes.
                x.set(8, address as u32);
                x.set(9, (address >> 32) as u32 & 0xffff | 1 << 31);
                x.set(10, u32::MAX);
                x.set(11, 1 << 23 | 3 << 21 | 1 << 19 | 4 << 15);
                x.set(12, 512);
                x.w.v[2].iter_mut().for_each(|v| *v = offset());
            };
            transfers(transfer, code, data, set, |r, lane| {
                20 + 512 / 64
                    + if offset_in_register {
                        r.lanes[2][lane] as usize
                    } else {
                        0
                    }
            });
        }
    }
}

/// Spills scalar registers into lanes and restores them, with the execution mask that functions set for it.
#[test]
fn scalars_survive_a_spill_to_lanes() {
    let [write, _] = sample("v_writelane_b32");
    let [read, _] = sample("v_readlane_b32");
    let mut code = Vec::new();
    for n in 0..60u32 {
        code.extend([write & !0xff | 100, n | (128 + n) << 9]);
    }
    // s[0:59] are cleared in between.
    code.extend((0..60u32).map(|n| 0xbe80_0080 | n << 16));
    for n in 0..60u32 {
        code.extend([read & !0xff | n, 0x100 | 100 | (128 + n) << 9]);
    }
    for mask in MASKS {
        let mut random = Random(mask);
        let mut before = Vec::new();
        let after = execute(
            &code,
            &Everything,
            |x| {
                x.w.s.iter_mut().for_each(|s| *s = random.next() as u32);
                x.set(M0, 5);
                x.set_pair(EXEC, mask);
                before = x.w.s[..60].to_vec();
            },
            |x| x.w.s[..60].to_vec(),
        );
        assert_eq!(after, before);
    }
}
