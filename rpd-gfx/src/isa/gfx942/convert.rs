//! Vector arithmetic of gfx942 that gfx90a lacks: conversions of 8-bit floating-point numbers, 64-bit moves and
//! additions.

use crate::isa::exec::Exec;
use crate::isa::fp8::{F8, decode, encode};
use crate::isa::inst::{Handler, Inst};
use crate::isa::lanes::{Lanes, Lanes64};
use crate::isa::operand::{ModifierKind, buffers};

/// The operation of a VOP1 opcode.
pub(super) fn vop1(opcode: u32) -> Option<Handler> {
    Some(match opcode {
        0x38 => |x, i| {
            let mut value = [0; 64];
            x.src64(i, 0, false, &mut value);
            x.write64(i, &value);
        },
        0x54 => |x, i| widened(x, i, F8::Fp8),
        0x55 => |x, i| widened(x, i, F8::Bf8),
        0x56 => |x, i| widened_pair(x, i, F8::Fp8),
        0x57 => |x, i| widened_pair(x, i, F8::Bf8),
        _ => return None,
    })
}

/// The operation of a VOP3 opcode.
pub(super) fn vop3(opcode: u32) -> Option<Handler> {
    Some(match opcode {
        0x208 => |x, i| {
            let (mut value, mut addend, [mut shift]) = ([0; 64], [0; 64], buffers());
            x.src64(i, 0, false, &mut value);
            x.src64(i, 2, false, &mut addend);
            let shift = *x.src(i, 1, ModifierKind::Int, &mut shift);
            let out = std::array::from_fn(|l| (value[l] << (shift[l] & 7)).wrapping_add(addend[l]));
            x.write64(i, &out);
        },
        0x2a2 => |x, i| narrowed_pair(x, i, F8::Fp8),
        0x2a3 => |x, i| narrowed_pair(x, i, F8::Bf8),
        0x2a4 => |x, i| narrowed_stochastically(x, i, F8::Fp8),
        0x2a5 => |x, i| narrowed_stochastically(x, i, F8::Bf8),
        _ => return None,
    })
}

/// Converts the lowest byte of the source, or the one that SDWA selects.
fn widened(x: &mut Exec<'_>, i: &Inst, format: F8) {
    let [mut buffer] = buffers();
    let mut out = x
        .src(i, 0, ModifierKind::Int, &mut buffer)
        .map(|code| decode(format, code as u8).to_bits());
    x.write_f32(i, &mut out);
}

/// Converts the two lowest bytes to two registers.
fn widened_pair(x: &mut Exec<'_>, i: &Inst, format: F8) {
    let [mut buffer] = buffers();
    let out: Lanes64 = x.src(i, 0, ModifierKind::Int, &mut buffer).map(|codes| {
        let number = |code: u32| u64::from(decode(format, code as u8).to_bits());
        number(codes) | number(codes >> 8) << 32
    });
    x.write64(i, &out);
}

/// Whether numbers that are too large become the largest number instead of NaN (`MODE.FP16_OVFL`).
fn saturates(x: &Exec<'_>) -> bool {
    x.w.mode >> 23 & 1 != 0
}

/// A floating-point source with its modifiers. `op_sel` does not apply to it.
fn float_source(x: &Exec<'_>, i: &Inst, n: usize) -> Lanes {
    let [mut buffer] = buffers();
    *x.src(i, n, ModifierKind::F32, &mut buffer)
}

/// Writes the bits of `mask` at bit `place` of the result and keeps the others.
fn write_part(x: &mut Exec<'_>, i: &Inst, out: &Lanes, mask: u32, place: u32) {
    let old = *x.vgpr(i.dst);
    let lanes = std::array::from_fn(|l| old[l] & !(mask << place) | out[l] << place);
    let mut whole = *i;
    (whole.op_sel, whole.modified) = (0, false);
    x.write(&whole, &lanes);
}

/// Converts two numbers to one half of a register, which the highest bit of op_sel selects.
fn narrowed_pair(x: &mut Exec<'_>, i: &Inst, format: F8) {
    let (low, high) = (float_source(x, i, 0), float_source(x, i, 1));
    let saturate = saturates(x);
    let code = |bits: u32| u32::from(encode(format, f32::from_bits(bits), None, saturate));
    let out = std::array::from_fn(|l| code(low[l]) | code(high[l]) << 8);
    write_part(x, i, &out, 0xffff, 16 * u32::from(i.op_sel >> 3 & 1));
}

/// Converts a number with stochastic rounding to one byte of a register, which bits 2 and 3 of op_sel select.
fn narrowed_stochastically(x: &mut Exec<'_>, i: &Inst, format: F8) {
    let value = float_source(x, i, 0);
    let [mut buffer] = buffers();
    let random = *x.src(i, 1, ModifierKind::Int, &mut buffer);
    let saturate = saturates(x);
    let out = std::array::from_fn(|l| {
        let value = f32::from_bits(value[l]);
        u32::from(encode(format, value, Some(random[l]), saturate))
    });
    write_part(x, i, &out, 0xff, 8 * u32::from(i.op_sel >> 2 & 3));
}
