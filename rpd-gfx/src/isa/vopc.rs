//! VOPC: vector comparisons.

use super::exec::Exec;
use super::float::{class, f16_to_f32};
use super::host::for_each_level;
use super::inst::{Handler, Inst};
use super::operand::{ModifierKind, buffers, pack_bits};

/// Selects a comparison by the low bits of the opcode: four for floating-point numbers, three for integers.
macro_rules! by_condition {
    ($opcode:expr, $shape:ident, $number:expr, exec: $exec:literal) => {
        match $opcode & 15 {
            0x0 => |x, i| $shape::<$exec>(x, i, $number, |_, _| false),
            0x1 => |x, i| $shape::<$exec>(x, i, $number, |a, b| a < b),
            0x2 => |x, i| $shape::<$exec>(x, i, $number, |a, b| a == b),
            0x3 => |x, i| $shape::<$exec>(x, i, $number, |a, b| a <= b),
            0x4 => |x, i| $shape::<$exec>(x, i, $number, |a, b| a > b),
            0x5 => |x, i| $shape::<$exec>(x, i, $number, |a, b| a < b || a > b),
            0x6 => |x, i| $shape::<$exec>(x, i, $number, |a, b| a >= b),
            0x7 => |x, i| $shape::<$exec>(x, i, $number, |a, b| !a.is_nan() && !b.is_nan()),
            0x8 => |x, i| $shape::<$exec>(x, i, $number, |a, b| a.is_nan() || b.is_nan()),
            0x9 => |x, i| $shape::<$exec>(x, i, $number, |a, b| !(a >= b)),
            0xa => |x, i| $shape::<$exec>(x, i, $number, |a, b| !(a < b || a > b)),
            0xb => |x, i| $shape::<$exec>(x, i, $number, |a, b| !(a > b)),
            0xc => |x, i| $shape::<$exec>(x, i, $number, |a, b| !(a <= b)),
            0xd => |x, i| $shape::<$exec>(x, i, $number, |a, b| a != b),
            0xe => |x, i| $shape::<$exec>(x, i, $number, |a, b| !(a < b)),
            _ => |x, i| $shape::<$exec>(x, i, $number, |_, _| true),
        }
    };
}

macro_rules! by_order {
    ($opcode:expr, $shape:ident, $number:expr, exec: $exec:literal) => {
        match $opcode & 7 {
            0 => |x, i| $shape::<$exec, _>(x, i, $number, |_, _| false),
            1 => |x, i| $shape::<$exec, _>(x, i, $number, |a, b| a < b),
            2 => |x, i| $shape::<$exec, _>(x, i, $number, |a, b| a == b),
            3 => |x, i| $shape::<$exec, _>(x, i, $number, |a, b| a <= b),
            4 => |x, i| $shape::<$exec, _>(x, i, $number, |a, b| a > b),
            5 => |x, i| $shape::<$exec, _>(x, i, $number, |a, b| a != b),
            6 => |x, i| $shape::<$exec, _>(x, i, $number, |a, b| a >= b),
            _ => |x, i| $shape::<$exec, _>(x, i, $number, |_, _| true),
        }
    };
}

for_each_level! {
    /// The operation of an opcode.
    #[expect(
        clippy::neg_cmp_op_on_partial_ord,
        clippy::double_comparisons,
        reason = "the instruction set's comparisons differ in their result for NaN"
    )]
    pub(super) fn handler(opcode: u32) -> Option<Handler> {
        let handler: Handler = match opcode {
            0x10 => |x, i| class32::<false>(x, i),
            0x11 => |x, i| class32::<true>(x, i),
            0x12 => |x, i| class64::<false>(x, i),
            0x13 => |x, i| class64::<true>(x, i),
            0x14 => |x, i| class16::<false>(x, i),
            0x15 => |x, i| class16::<true>(x, i),
            0x20..=0x2f => by_condition!(opcode, float, half, exec: false),
            0x30..=0x3f => by_condition!(opcode, float, half, exec: true),
            0x40..=0x4f => by_condition!(opcode, float, single, exec: false),
            0x50..=0x5f => by_condition!(opcode, float, single, exec: true),
            0x60..=0x6f => by_condition!(opcode, double, (), exec: false),
            0x70..=0x7f => by_condition!(opcode, double, (), exec: true),
            0xa0..=0xa7 => by_order!(opcode, int, |v: u32| v as u16 as i16, exec: false),
            0xa8..=0xaf => by_order!(opcode, int, |v: u32| v as u16, exec: false),
            0xb0..=0xb7 => by_order!(opcode, int, |v: u32| v as u16 as i16, exec: true),
            0xb8..=0xbf => by_order!(opcode, int, |v: u32| v as u16, exec: true),
            0xc0..=0xc7 => by_order!(opcode, int, |v: u32| v as i32, exec: false),
            0xc8..=0xcf => by_order!(opcode, int, |v: u32| v, exec: false),
            0xd0..=0xd7 => by_order!(opcode, int, |v: u32| v as i32, exec: true),
            0xd8..=0xdf => by_order!(opcode, int, |v: u32| v, exec: true),
            0xe0..=0xe7 => by_order!(opcode, long, |v: u64| v as i64, exec: false),
            0xe8..=0xef => by_order!(opcode, long, |v: u64| v, exec: false),
            0xf0..=0xf7 => by_order!(opcode, long, |v: u64| v as i64, exec: true),
            0xf8..=0xff => by_order!(opcode, long, |v: u64| v, exec: true),
            _ => return None,
        };
        Some(handler)
    }
}

const fn single(v: u32) -> (ModifierKind, f32) {
    (ModifierKind::F32, f32::from_bits(v))
}

fn half(v: u32) -> (ModifierKind, f32) {
    (ModifierKind::F16, f16_to_f32(v as u16))
}

/// Writes the lane mask of a comparison; for `v_cmpx` also to EXEC.
#[inline(always)]
fn finish<const EXEC: bool>(x: &mut Exec<'_>, i: &Inst, bits: &[u8; 64]) {
    x.count_lanes();
    let mask = pack_bits(bits);
    if EXEC {
        x.write_exec_mask(i, mask);
    } else {
        x.write_lane_mask(i, mask);
    }
}

#[inline(always)]
fn float<const EXEC: bool>(
    x: &mut Exec<'_>,
    i: &Inst,
    number: impl Fn(u32) -> (ModifierKind, f32),
    f: impl Fn(f32, f32) -> bool,
) {
    let kind = number(0).0;
    let mut bits = [0; 64];
    let [mut ba, mut bb] = buffers();
    let a = x.src(i, 0, kind, &mut ba);
    let b = x.src(i, 1, kind, &mut bb);
    for l in 0..64 {
        bits[l] = u8::from(f(number(a[l]).1, number(b[l]).1));
    }
    finish::<EXEC>(x, i, &bits);
}

#[inline(always)]
fn double<const EXEC: bool>(x: &mut Exec<'_>, i: &Inst, (): (), f: impl Fn(f64, f64) -> bool) {
    let mut bits = [0; 64];
    let (mut ba, mut bb) = (buffers(), buffers());
    let a = x.src_pair(i, 0, true, &mut ba);
    let b = x.src_pair(i, 1, true, &mut bb);
    for (l, bit) in bits.iter_mut().enumerate() {
        *bit = u8::from(f(a.number(l), b.number(l)));
    }
    finish::<EXEC>(x, i, &bits);
}

#[inline(always)]
fn int<const EXEC: bool, T>(
    x: &mut Exec<'_>,
    i: &Inst,
    number: impl Fn(u32) -> T,
    f: impl Fn(T, T) -> bool,
) {
    let kind = if size_of::<T>() == 2 {
        ModifierKind::I16
    } else {
        ModifierKind::Int
    };
    let mut bits = [0; 64];
    let [mut ba, mut bb] = buffers();
    let a = x.src(i, 0, kind, &mut ba);
    let b = x.src(i, 1, kind, &mut bb);
    for l in 0..64 {
        bits[l] = u8::from(f(number(a[l]), number(b[l])));
    }
    finish::<EXEC>(x, i, &bits);
}

#[inline(always)]
fn long<const EXEC: bool, T>(
    x: &mut Exec<'_>,
    i: &Inst,
    number: impl Fn(u64) -> T,
    f: impl Fn(T, T) -> bool,
) {
    let mut bits = [0; 64];
    let (mut ba, mut bb) = (buffers(), buffers());
    let a = x.src_pair(i, 0, false, &mut ba);
    let b = x.src_pair(i, 1, false, &mut bb);
    for (l, bit) in bits.iter_mut().enumerate() {
        *bit = u8::from(f(number(a.lane(l)), number(b.lane(l))));
    }
    finish::<EXEC>(x, i, &bits);
}

#[inline(always)]
fn class32<const EXEC: bool>(x: &mut Exec<'_>, i: &Inst) {
    let mut bits = [0; 64];
    let [mut ba, mut bb] = buffers();
    let a = x.src(i, 0, ModifierKind::F32, &mut ba);
    let b = x.src(i, 1, ModifierKind::Int, &mut bb);
    for l in 0..64 {
        bits[l] = u8::from(class(u64::from(a[l]), 23, 8, b[l]));
    }
    finish::<EXEC>(x, i, &bits);
}

#[inline(always)]
fn class16<const EXEC: bool>(x: &mut Exec<'_>, i: &Inst) {
    let mut bits = [0; 64];
    let [mut ba, mut bb] = buffers();
    let a = x.src(i, 0, ModifierKind::F16, &mut ba);
    let b = x.src(i, 1, ModifierKind::I16, &mut bb);
    for l in 0..64 {
        bits[l] = u8::from(class(u64::from(a[l] & 0xffff), 10, 5, b[l]));
    }
    finish::<EXEC>(x, i, &bits);
}

#[inline(always)]
fn class64<const EXEC: bool>(x: &mut Exec<'_>, i: &Inst) {
    let mut bits = [0; 64];
    let (mut ba, [mut bb]) = (buffers(), buffers());
    let a = x.src_pair(i, 0, true, &mut ba);
    let b = x.src(i, 1, ModifierKind::Int, &mut bb);
    for l in 0..64 {
        bits[l] = u8::from(class(a.lane(l), 52, 11, b[l]));
    }
    finish::<EXEC>(x, i, &bits);
}
