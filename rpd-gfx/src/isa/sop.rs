//! Scalar operations: SOP1, SOP2, SOPK and SOPC, and the decoder of all scalar encodings, with SOPP.

use super::exec::Exec;
use super::inst::{EXEC, Format, Handler, Inst, M0};
use super::{Class, flow};

/// Decodes a scalar instruction.
pub(super) fn decode(words: [u32; 3]) -> Inst {
    let w = words[0];
    let (format, opcode, handler) = match w >> 23 {
        0b1_0111_1101 => (Format::Sop1, w >> 8 & 0xff, sop1(w >> 8 & 0xff)),
        0b1_0111_1110 => (Format::Sopc, w >> 16 & 0x7f, sopc(w >> 16 & 0x7f)),
        0b1_0111_1111 => (Format::Sopp, w >> 16 & 0x7f, flow::handler(w >> 16 & 0x7f)),
        _ if w >> 28 == 0b1011 => (Format::Sopk, w >> 23 & 0x1f, sopk(w >> 23 & 0x1f)),
        _ => (Format::Sop2, w >> 23 & 0x7f, sop2(w >> 23 & 0x7f)),
    };
    let Some(run) = handler else {
        return Inst::unknown(format, opcode);
    };
    let mut i = Inst::new(run, format, Class::Salu, opcode, 1);
    i.dst = (w >> 16 & 0x7f) as u16;
    let mut literal = false;
    match format {
        Format::Sop1 => {
            i.src[0] = (w & 0xff) as u16;
            literal = i.src[0] == 255;
            if matches!(opcode, 0x1d | 0x1e) {
                i.class = Class::Branch;
            }
        }
        Format::Sop2 | Format::Sopc => {
            i.src[0] = (w & 0xff) as u16;
            i.src[1] = (w >> 8 & 0xff) as u16;
            literal = i.src[..2].contains(&255);
        }
        Format::Sopk => {
            i.literal = i32::from(w as u16 as i16) as u32;
            if opcode == 0x14 {
                // s_setreg_imm32_b32: the immediate says which register, the literal is the value.
                i.src[0] = 255;
                i.sdst = w as u16;
                literal = true;
            }
            if opcode == 0x15 {
                i.class = Class::Branch;
            }
        }
        _ => {
            i.literal = i32::from(w as u16 as i16) as u32;
            i.class = match opcode {
                0x02 | 0x04..=0x09 => Class::Branch,
                0x10 | 0x11 => Class::SendMessage,
                _ => Class::Other,
            };
        }
    }
    if literal {
        i.literal = words[1];
        i.words = 2;
    }
    i
}

/// Executes a 32-bit logic operation. SCC: whether the result is not 0.
#[inline(always)]
fn logic(x: &mut Exec<'_>, i: &Inst, f: impl Fn(u32, u32) -> u32) {
    let value = f(x.s32(i.src[0], i.literal), x.s32(i.src[1], i.literal));
    x.set(i.dst, value);
    x.w.scc = value != 0;
}

/// Executes a 64-bit logic operation. SCC: whether the result is not 0.
#[inline(always)]
fn logic64(x: &mut Exec<'_>, i: &Inst, f: impl Fn(u64, u64) -> u64) {
    let value = f(x.s64(i.src[0], i.literal), x.s64(i.src[1], i.literal));
    x.set_pair(i.dst, value);
    x.w.scc = value != 0;
}

/// Executes a 32-bit operation that computes SCC.
#[inline(always)]
fn with_scc(x: &mut Exec<'_>, i: &Inst, f: impl Fn(u32, u32, bool) -> (u32, bool)) {
    let (value, scc) = f(
        x.s32(i.src[0], i.literal),
        x.s32(i.src[1], i.literal),
        x.w.scc,
    );
    x.set(i.dst, value);
    x.w.scc = scc;
}

/// Executes a 32-bit operation that keeps SCC.
#[inline(always)]
fn plain(x: &mut Exec<'_>, i: &Inst, f: impl Fn(u32, u32) -> u32) {
    let value = f(x.s32(i.src[0], i.literal), x.s32(i.src[1], i.literal));
    x.set(i.dst, value);
}

fn sop2(opcode: u32) -> Option<Handler> {
    let handler: Handler = match opcode {
        0x00 => |x, i| with_scc(x, i, |a, b, _| a.overflowing_add(b)),
        // Signed additions and subtractions set SCC on overflow, unsigned ones on carry.
        0x01 => |x, i| with_scc(x, i, |a, b, _| a.overflowing_sub(b)),
        0x02 => |x, i| {
            with_scc(x, i, |a, b, _| {
                let (v, o) = (a as i32).overflowing_add(b as i32);
                (v as u32, o)
            })
        },
        0x03 => |x, i| {
            with_scc(x, i, |a, b, _| {
                let (v, o) = (a as i32).overflowing_sub(b as i32);
                (v as u32, o)
            })
        },
        // With carry in from SCC.
        0x04 => |x, i| {
            with_scc(x, i, |a, b, c| {
                let sum = u64::from(a) + u64::from(b) + u64::from(c);
                (sum as u32, sum >> 32 != 0)
            })
        },
        0x05 => |x, i| {
            with_scc(x, i, |a, b, c| {
                let rest = i64::from(a) - i64::from(b) - i64::from(c);
                (rest as u32, rest < 0)
            })
        },
        0x06 => |x, i| {
            with_scc(x, i, |a, b, _| {
                ((a as i32).min(b as i32) as u32, (a as i32) < b as i32)
            })
        },
        0x07 => |x, i| with_scc(x, i, |a, b, _| (a.min(b), a < b)),
        0x08 => |x, i| {
            with_scc(x, i, |a, b, _| {
                ((a as i32).max(b as i32) as u32, a as i32 > b as i32)
            })
        },
        0x09 => |x, i| with_scc(x, i, |a, b, _| (a.max(b), a > b)),
        0x0a => |x, i| with_scc(x, i, |a, b, c| (if c { a } else { b }, c)),
        0x0b => |x, i| {
            let value = x.s64(i.src[usize::from(!x.w.scc)], i.literal);
            x.set_pair(i.dst, value);
        },
        0x0c => |x, i| logic(x, i, |a, b| a & b),
        0x0d => |x, i| logic64(x, i, |a, b| a & b),
        0x0e => |x, i| logic(x, i, |a, b| a | b),
        0x0f => |x, i| logic64(x, i, |a, b| a | b),
        0x10 => |x, i| logic(x, i, |a, b| a ^ b),
        0x11 => |x, i| logic64(x, i, |a, b| a ^ b),
        0x12 => |x, i| logic(x, i, |a, b| a & !b),
        0x13 => |x, i| logic64(x, i, |a, b| a & !b),
        0x14 => |x, i| logic(x, i, |a, b| a | !b),
        0x15 => |x, i| logic64(x, i, |a, b| a | !b),
        0x16 => |x, i| logic(x, i, |a, b| !(a & b)),
        0x17 => |x, i| logic64(x, i, |a, b| !(a & b)),
        0x18 => |x, i| logic(x, i, |a, b| !(a | b)),
        0x19 => |x, i| logic64(x, i, |a, b| !(a | b)),
        0x1a => |x, i| logic(x, i, |a, b| !(a ^ b)),
        0x1b => |x, i| logic64(x, i, |a, b| !(a ^ b)),
        0x1c => |x, i| logic(x, i, |a, b| a << (b & 31)),
        0x1d => |x, i| logic64(x, i, |a, b| a << (b & 63)),
        0x1e => |x, i| logic(x, i, |a, b| a >> (b & 31)),
        0x1f => |x, i| logic64(x, i, |a, b| a >> (b & 63)),
        0x20 => |x, i| logic(x, i, |a, b| (a as i32 >> (b & 31)) as u32),
        0x21 => |x, i| logic64(x, i, |a, b| (a as i64 >> (b & 63)) as u64),
        0x22 => |x, i| plain(x, i, |a, b| ((1 << (a & 31)) - 1) << (b & 31)),
        0x23 => |x, i| {
            let (a, b) = (x.s32(i.src[0], i.literal), x.s32(i.src[1], i.literal));
            x.set_pair(i.dst, ((1u64 << (a & 63)) - 1) << (b & 63));
        },
        0x24 => |x, i| plain(x, i, u32::wrapping_mul),
        0x25 => |x, i| logic(x, i, |a, b| bfe(u64::from(a), b, 31, 32, false) as u32),
        0x26 => |x, i| {
            logic(x, i, |a, b| {
                bfe(i64::from(a as i32) as u64, b, 31, 32, true) as u32
            })
        },
        0x27 => |x, i| logic64(x, i, |a, b| bfe(a, b as u32, 63, 64, false)),
        0x28 => |x, i| logic64(x, i, |a, b| bfe(a, b as u32, 63, 64, true)),
        0x2a => |x, i| {
            logic(x, i, |a, b| {
                (a as i32).wrapping_sub(b as i32).unsigned_abs()
            })
        },
        0x2c => |x, i| plain(x, i, |a, b| ((u64::from(a) * u64::from(b)) >> 32) as u32),
        0x2d => |x, i| {
            plain(x, i, |a, b| {
                ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32
            })
        },
        0x2e => |x, i| shift_add(x, i, 1),
        0x2f => |x, i| shift_add(x, i, 2),
        0x30 => |x, i| shift_add(x, i, 3),
        0x31 => |x, i| shift_add(x, i, 4),
        0x32 => |x, i| plain(x, i, |a, b| a & 0xffff | b << 16),
        0x33 => |x, i| plain(x, i, |a, b| a & 0xffff | b & 0xffff_0000),
        0x34 => |x, i| plain(x, i, |a, b| a >> 16 | b & 0xffff_0000),
        _ => return None,
    };
    Some(handler)
}

/// Extracts a bit field: offset in the low bits of `field`, width in bits 16 to 22.
fn bfe(value: u64, field: u32, offset_mask: u32, bits: u32, signed: bool) -> u64 {
    let offset = field & offset_mask;
    let width = (field >> 16 & 0x7f).min(bits);
    // The hardware returns 0 for an empty field.
    if width == 0 {
        return 0;
    }
    if signed {
        let shifted = value as i64 >> offset;
        let unused = 64 - width;
        (shifted << unused >> unused) as u64
    } else {
        value >> offset & u64::MAX >> (64 - width)
    }
}

fn shift_add(x: &mut Exec<'_>, i: &Inst, by: u32) {
    with_scc(x, i, |a, b, _| {
        let sum = (u64::from(a) << by) + u64::from(b);
        (sum as u32, sum >> 32 != 0)
    });
}

#[inline(always)]
fn unary(x: &mut Exec<'_>, i: &Inst, f: impl Fn(u32) -> u32) {
    let value = f(x.s32(i.src[0], i.literal));
    x.set(i.dst, value);
}

#[inline(always)]
fn unary64(x: &mut Exec<'_>, i: &Inst, f: impl Fn(u64) -> u64) {
    let value = f(x.s64(i.src[0], i.literal));
    x.set_pair(i.dst, value);
}

/// Counts or searches bits of a 64-bit value.
#[inline(always)]
fn find(x: &mut Exec<'_>, i: &Inst, f: impl Fn(u64) -> u32) {
    let value = f(x.s64(i.src[0], i.literal));
    x.set(i.dst, value);
}

fn set_scc(x: &mut Exec<'_>, i: &Inst) {
    x.w.scc = x.w.s[usize::from(i.dst) & 127] != 0;
}

fn set_scc64(x: &mut Exec<'_>, i: &Inst) {
    x.w.scc = x.pair(i.dst) != 0;
}

/// Saves EXEC in the destination and sets a new EXEC.
#[inline(always)]
fn save_exec(x: &mut Exec<'_>, i: &Inst, f: impl Fn(u64, u64) -> u64) {
    let (source, old) = (x.s64(i.src[0], i.literal), x.exec());
    let new = f(source, old);
    x.set_pair(i.dst, old);
    x.set_pair(EXEC, new);
    x.w.scc = new != 0;
}

/// Sets a new EXEC, which is also written to the destination.
#[inline(always)]
fn write_exec(x: &mut Exec<'_>, i: &Inst, f: impl Fn(u64, u64) -> u64) {
    let new = f(x.s64(i.src[0], i.literal), x.exec());
    x.set_pair(i.dst, new);
    x.set_pair(EXEC, new);
    x.w.scc = new != 0;
}

fn first_or_none(count: u32, bits: u32) -> u32 {
    if count >= bits { u32::MAX } else { count }
}

fn sop1(opcode: u32) -> Option<Handler> {
    let handler: Handler = match opcode {
        // Moves, some of them only if SCC is set.
        0x00 => |x, i| unary(x, i, |a| a),
        0x01 => |x, i| unary64(x, i, |a| a),
        0x02 => |x, i| {
            if x.w.scc {
                unary(x, i, |a| a);
            }
        },
        0x03 => |x, i| {
            if x.w.scc {
                unary64(x, i, |a| a);
            }
        },
        // Operations whose result sets SCC when it is not 0.
        0x04 => |x, i| {
            unary(x, i, |a| !a);
            set_scc(x, i);
        },
        0x05 => |x, i| {
            unary64(x, i, |a| !a);
            set_scc64(x, i);
        },
        0x06 => |x, i| {
            unary(x, i, |a| quads(u64::from(a), true) as u32);
            set_scc(x, i);
        },
        0x07 => |x, i| {
            unary64(x, i, |a| quads(a, true));
            set_scc64(x, i);
        },
        0x08 => |x, i| unary(x, i, u32::reverse_bits),
        0x09 => |x, i| unary64(x, i, u64::reverse_bits),
        0x0a => |x, i| {
            unary(x, i, u32::count_zeros);
            set_scc(x, i);
        },
        0x0b => |x, i| {
            find(x, i, u64::count_zeros);
            set_scc(x, i);
        },
        0x0c => |x, i| {
            unary(x, i, u32::count_ones);
            set_scc(x, i);
        },
        0x0d => |x, i| {
            find(x, i, u64::count_ones);
            set_scc(x, i);
        },
        // Searches for a bit return -1 when there is none.
        0x0e => |x, i| unary(x, i, |a| first_or_none(a.trailing_ones(), 32)),
        0x0f => |x, i| find(x, i, |a| first_or_none(a.trailing_ones(), 64)),
        0x10 => |x, i| unary(x, i, |a| first_or_none(a.trailing_zeros(), 32)),
        0x11 => |x, i| find(x, i, |a| first_or_none(a.trailing_zeros(), 64)),
        0x12 => |x, i| unary(x, i, |a| first_or_none(a.leading_zeros(), 32)),
        0x13 => |x, i| find(x, i, |a| first_or_none(a.leading_zeros(), 64)),
        // The first bit that differs from the sign.
        0x14 => |x, i| {
            unary(x, i, |a| {
                first_or_none((a ^ (a as i32 >> 31) as u32).leading_zeros(), 32)
            })
        },
        0x15 => |x, i| {
            find(x, i, |a| {
                first_or_none((a ^ (a as i64 >> 63) as u64).leading_zeros(), 64)
            })
        },
        0x16 => |x, i| unary(x, i, |a| a as i8 as u32),
        0x17 => |x, i| unary(x, i, |a| a as i16 as u32),
        0x18 => |x, i| {
            let bit = 1 << (x.s32(i.src[0], i.literal) & 31);
            x.w.s[usize::from(i.dst) & 127] &= !bit;
        },
        0x19 => |x, i| {
            let bit = 1 << (x.s32(i.src[0], i.literal) & 63);
            x.set_pair(i.dst, x.pair(i.dst) & !bit);
        },
        0x1a => |x, i| {
            let bit = 1 << (x.s32(i.src[0], i.literal) & 31);
            x.w.s[usize::from(i.dst) & 127] |= bit;
        },
        0x1b => |x, i| {
            let bit = 1 << (x.s32(i.src[0], i.literal) & 63);
            x.set_pair(i.dst, x.pair(i.dst) | bit);
        },
        // `s_getpc`, `s_setpc` and `s_swappc`; the program counter is that of the next instruction.
        0x1c => |x, i| x.set_pair(i.dst, x.w.pc),
        0x1d => |x, i| x.w.pc = x.s64(i.src[0], i.literal),
        0x1e => |x, i| {
            let target = x.s64(i.src[0], i.literal);
            x.set_pair(i.dst, x.w.pc);
            x.w.pc = target;
        },
        // `s_*_saveexec`: the old mask is saved and the new one set, in one instruction.
        0x20 => |x, i| save_exec(x, i, |s, e| s & e),
        0x21 => |x, i| save_exec(x, i, |s, e| s | e),
        0x22 => |x, i| save_exec(x, i, |s, e| s ^ e),
        0x23 => |x, i| save_exec(x, i, |s, e| s & !e),
        0x24 => |x, i| save_exec(x, i, |s, e| s | !e),
        0x25 => |x, i| save_exec(x, i, |s, e| !(s & e)),
        0x26 => |x, i| save_exec(x, i, |s, e| !(s | e)),
        0x27 => |x, i| save_exec(x, i, |s, e| !(s ^ e)),
        0x28 => |x, i| {
            unary(x, i, |a| quads(u64::from(a), false) as u32);
            set_scc(x, i);
        },
        0x29 => |x, i| {
            unary64(x, i, |a| quads(a, false));
            set_scc64(x, i);
        },
        // `s_movrel*`: M0 is added to the register number.
        0x2a => |x, i| {
            let value = x.s32(relative(x, i.src[0]), i.literal);
            x.set(i.dst, value);
        },
        0x2b => |x, i| {
            let value = x.s64(relative(x, i.src[0]), i.literal);
            x.set_pair(i.dst, value);
        },
        0x2c => |x, i| {
            let value = x.s32(i.src[0], i.literal);
            x.set(relative(x, i.dst), value);
        },
        0x2d => |x, i| {
            let value = x.s64(i.src[0], i.literal);
            x.set_pair(relative(x, i.dst), value);
        },
        0x30 => |x, i| {
            unary(x, i, |a| (a as i32).unsigned_abs());
            set_scc(x, i);
        },
        // M0 holds more than the index, so that only its low byte changes (`s_set_gpr_idx_idx`).
        0x32 => |x, i| {
            let value = x.s32(i.src[0], i.literal);
            x.w.s[usize::from(M0)] = x.m0() & !0xff | value & 0xff;
        },
        0x33 => |x, i| save_exec(x, i, |s, e| !s & e),
        0x34 => |x, i| save_exec(x, i, |s, e| !s | e),
        // `s_*_wrexec`, which write the new mask to the destination too.
        0x35 => |x, i| write_exec(x, i, |s, e| !s & e),
        0x36 => |x, i| write_exec(x, i, |s, e| s & !e),
        0x37 => |x, i| {
            let value = x.s32(i.src[0], i.literal);
            let doubled =
                (0..32).fold(0, |sum, n| sum | (u64::from(value >> n & 1) * 3) << (2 * n));
            x.set_pair(i.dst, doubled);
        },
        _ => return None,
    };
    Some(handler)
}

/// One bit for each group of four bits in which any is set, or all four bits if `whole`.
fn quads(a: u64, whole: bool) -> u64 {
    (0..16)
        .filter(|n| a >> (4 * n) & 15 != 0)
        .fold(0, |sum, n| sum | if whole { 15 << (4 * n) } else { 1 << n })
}

/// Code of a register that M0 indexes (`s_movrel`).
fn relative(x: &Exec<'_>, code: u16) -> u16 {
    code.wrapping_add(x.m0() as u16) & 127
}

#[inline(always)]
fn compare(x: &mut Exec<'_>, i: &Inst, f: impl Fn(u32, u32) -> bool) {
    x.w.scc = f(x.s32(i.src[0], i.literal), x.s32(i.src[1], i.literal));
}

fn sopc(opcode: u32) -> Option<Handler> {
    let handler: Handler = match opcode {
        0x00 | 0x06 => |x, i| compare(x, i, |a, b| a == b),
        0x01 | 0x07 => |x, i| compare(x, i, |a, b| a != b),
        0x02 => |x, i| compare(x, i, |a, b| a as i32 > b as i32),
        0x03 => |x, i| compare(x, i, |a, b| a as i32 >= b as i32),
        0x04 => |x, i| compare(x, i, |a, b| (a as i32) < b as i32),
        0x05 => |x, i| compare(x, i, |a, b| a as i32 <= b as i32),
        0x08 => |x, i| compare(x, i, |a, b| a > b),
        0x09 => |x, i| compare(x, i, |a, b| a >= b),
        0x0a => |x, i| compare(x, i, |a, b| a < b),
        0x0b => |x, i| compare(x, i, |a, b| a <= b),
        0x0c => |x, i| compare(x, i, |a, b| a >> (b & 31) & 1 == 0),
        0x0d => |x, i| compare(x, i, |a, b| a >> (b & 31) & 1 != 0),
        0x0e => |x, i| {
            x.w.scc = x.s64(i.src[0], i.literal) >> (x.s32(i.src[1], i.literal) & 63) & 1 == 0
        },
        0x0f => |x, i| {
            x.w.scc = x.s64(i.src[0], i.literal) >> (x.s32(i.src[1], i.literal) & 63) & 1 != 0
        },
        0x11 => |x, i| {
            // The operand's field, not its value, selects the operands that are indexed.
            let index = x.s32(i.src[0], i.literal) & 0xff;
            x.w.s[usize::from(M0)] = x.m0() & !0xf0ff | index | u32::from(i.src[1] & 15) << 12;
            x.w.index_mode = (i.src[1] & 15) as u8;
        },
        0x12 => |x, i| x.w.scc = x.s64(i.src[0], i.literal) == x.s64(i.src[1], i.literal),
        0x13 => |x, i| x.w.scc = x.s64(i.src[0], i.literal) != x.s64(i.src[1], i.literal),
        _ => return None,
    };
    Some(handler)
}

#[inline(always)]
fn compare_k(x: &mut Exec<'_>, i: &Inst, f: impl Fn(u32, u32) -> bool) {
    x.w.scc = f(x.w.s[usize::from(i.dst) & 127], i.literal);
}

fn sopk(opcode: u32) -> Option<Handler> {
    let handler: Handler = match opcode {
        0x00 => |x, i| x.set(i.dst, i.literal),
        0x01 => |x, i| {
            if x.w.scc {
                x.set(i.dst, i.literal);
            }
        },
        0x02 => |x, i| compare_k(x, i, |a, b| a == b),
        0x03 => |x, i| compare_k(x, i, |a, b| a != b),
        0x04 => |x, i| compare_k(x, i, |a, b| a as i32 > b as i32),
        0x05 => |x, i| compare_k(x, i, |a, b| a as i32 >= b as i32),
        0x06 => |x, i| compare_k(x, i, |a, b| (a as i32) < b as i32),
        0x07 => |x, i| compare_k(x, i, |a, b| a as i32 <= b as i32),
        0x08 => |x, i| compare_k(x, i, |a, b| a == b & 0xffff),
        0x09 => |x, i| compare_k(x, i, |a, b| a != b & 0xffff),
        0x0a => |x, i| compare_k(x, i, |a, b| a > b & 0xffff),
        0x0b => |x, i| compare_k(x, i, |a, b| a >= b & 0xffff),
        0x0c => |x, i| compare_k(x, i, |a, b| a < b & 0xffff),
        0x0d => |x, i| compare_k(x, i, |a, b| a <= b & 0xffff),
        0x0e => |x, i| {
            let (value, overflow) =
                (x.w.s[usize::from(i.dst) & 127] as i32).overflowing_add(i.literal as i32);
            x.set(i.dst, value as u32);
            x.w.scc = overflow;
        },
        0x0f => |x, i| {
            x.set(
                i.dst,
                x.w.s[usize::from(i.dst) & 127].wrapping_mul(i.literal),
            )
        },
        0x11 => |x, i| {
            let value = hardware_register(x, i.literal & 0x3f) >> (i.literal >> 6 & 31);
            let bits = (i.literal >> 11 & 31) + 1;
            x.set(i.dst, value & u32::MAX >> (32 - bits));
        },
        0x12 => |x, i| set_hardware_register(x, i.literal, x.w.s[usize::from(i.dst) & 127]),
        0x14 => |x, i| set_hardware_register(x, u32::from(i.sdst), i.literal),
        0x15 => |x, i| {
            x.set_pair(i.dst, x.w.pc);
            flow::branch(x, i);
        },
        _ => return None,
    };
    Some(handler)
}

/// The value of a hardware register for `s_getreg`.
fn hardware_register(x: &Exec<'_>, id: u32) -> u32 {
    match id {
        1 => x.w.mode,
        // STATUS: SCC, EXECZ, VCCZ.
        2 => {
            u32::from(x.w.scc)
                | u32::from(x.exec() == 0) << 9
                | u32::from(x.vcc() == 0) << 10
                | 1 << 16
        }
        // SH_MEM_BASES: the apertures' top 16 bits, private below shared.
        // XCC_ID: workgroups go to the dies in turn.
        20 => (x.group % u64::from(x.d.device.layout.dies)) as u32,
        15 => super::exec::PRIVATE_APERTURE >> 16 | super::exec::SHARED_APERTURE & 0xffff_0000,
        _ => 0,
    }
}

fn set_hardware_register(x: &mut Exec<'_>, register: u32, value: u32) {
    let (id, offset, bits) = (
        register & 0x3f,
        register >> 6 & 31,
        (register >> 11 & 31) + 1,
    );
    if id == 1 {
        let mask = u32::MAX >> (32 - bits) << offset;
        x.w.set_mode(x.w.mode & !mask | value << offset & mask);
    }
}
