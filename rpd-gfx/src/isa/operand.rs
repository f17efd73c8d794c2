//! Reads sources and writes results: operand codes, modifiers, SDWA and DPP.

use super::exec::{Exec, PRIVATE_APERTURE, SHARED_APERTURE};
use super::inst::{CLAMP, DPP, EXEC, Inst, LITERAL, SDWA, VCC, VGPR};
use super::lanes::{Lanes, Lanes64};
use std::mem::MaybeUninit;

/// Way in which modifiers change a 32-bit source.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ModifierKind {
    /// Modifiers have no effect; SDWA may sign-extend.
    Int,
    /// Modifiers change the sign in bit 31.
    F32,
    /// Modifiers change the sign in bit 15; `op_sel` selects the half.
    F16,
    /// Modifiers have no effect; `op_sel` selects the half.
    I16,
}

/// Memory for a source that is not the unchanged value of a register.
pub(super) type Buffer = MaybeUninit<Lanes>;

/// Memory for `N` sources.
#[inline(always)]
pub(super) const fn buffers<const N: usize>() -> [Buffer; N] {
    [const { Buffer::uninit() }; N]
}

/// A 64-bit source: low and high dwords of all lanes.
#[derive(Clone, Copy)]
pub(super) struct Pair<'s> {
    low: &'s Lanes,
    high: &'s Lanes,
}

impl Pair<'_> {
    /// Value of a lane.
    #[inline(always)]
    pub(super) fn lane(&self, l: usize) -> u64 {
        u64::from(self.low[l]) | u64::from(self.high[l]) << 32
    }

    /// Value of a lane as a double-precision number.
    #[inline(always)]
    pub(super) fn number(&self, l: usize) -> f64 {
        f64::from_bits(self.lane(l))
    }
}

/// For each byte of a lane mask: eight dwords with all bits set for lanes in the mask.
static BYTE_MASKS: [[u32; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            if byte >> bit & 1 != 0 {
                table[byte][bit] = u32::MAX;
            }
            bit += 1;
        }
        byte += 1;
    }
    table
};

/// Copies the lanes of `mask` from `from` to `to`.
#[inline(always)]
pub(super) fn blend(to: &mut Lanes, from: &Lanes, mask: u64) {
    if mask == u64::MAX {
        *to = *from;
        return;
    }
    for (n, byte) in mask.to_le_bytes().into_iter().enumerate() {
        let lanes = &BYTE_MASKS[usize::from(byte)];
        for (l, lane) in lanes.iter().enumerate() {
            let at = n * 8 + l;
            to[at] = to[at] & !lane | from[at] & lane;
        }
    }
}

/// The mask of the lanes whose byte is 1. All bytes are 0 or 1.
#[inline(always)]
pub(super) fn pack_bits(bytes: &[u8; 64]) -> u64 {
    let mut mask = 0;
    for (n, chunk) in bytes.as_chunks::<8>().0.iter().enumerate() {
        let bits = u64::from_le_bytes(*chunk).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        mask |= bits << (n * 8);
    }
    mask
}

/// Value of an inline floating-point constant (codes 240 to 248).
fn float_constant(code: u16) -> f64 {
    match code {
        240 => 0.5,
        241 => -0.5,
        242 => 1.0,
        243 => -1.0,
        244 => 2.0,
        245 => -2.0,
        246 => 4.0,
        247 => -4.0,
        _ => 0.0,
    }
}

impl Exec<'_> {
    /// A scalar source.
    #[inline(always)]
    pub(super) fn s32(&self, code: u16, literal: u32) -> u32 {
        if code < 128 {
            self.w.s[usize::from(code)]
        } else {
            self.special32(code, literal)
        }
    }

    fn special32(&self, code: u16, literal: u32) -> u32 {
        match code {
            128..=192 => u32::from(code - 128),
            193..=208 => (192 - i32::from(code)) as u32,
            240..=247 => (float_constant(code) as f32).to_bits(),
            248 => 0x3e22_f983,
            LITERAL => literal,
            251 => u32::from(self.vcc() == 0),
            252 => u32::from(self.exec() == 0),
            253 => u32::from(self.w.scc),
            235 => SHARED_APERTURE,
            237 => PRIVATE_APERTURE,
            236 | 238 => u32::MAX,
            // A VGPR in the place of a scalar: the value of its first active lane.
            VGPR.. => self.vgpr(code)[self.first_lane()],
            _ => 0,
        }
    }

    /// A 64-bit scalar source of an integer operation. Literals are zero-extended.
    #[inline(always)]
    pub(super) fn s64(&self, code: u16, literal: u32) -> u64 {
        if code < 128 {
            return self.pair(code);
        }
        match code {
            128..=208 => i64::from(self.special32(code, literal) as i32) as u64,
            240..=247 => float_constant(code).to_bits(),
            248 => 0x3fc4_5f30_6dc9_c882,
            235 | 237 => u64::from(self.special32(code, literal)) << 32,
            236 | 238 => u64::from(self.special32(code - 1, literal)) << 32 | 0xffff_ffff,
            VGPR.. => {
                let lane = self.first_lane();
                u64::from(self.vgpr(code)[lane]) | u64::from(self.vgpr(code + 1)[lane]) << 32
            }
            _ => u64::from(self.special32(code, literal)),
        }
    }

    /// A scalar source of a 16-bit float operation.
    fn s16(&self, code: u16, literal: u32) -> u32 {
        match code {
            240..=247 => u32::from(super::float::f64_to_f16(float_constant(code))),
            248 => 0x3118,
            _ => self.s32(code, literal),
        }
    }

    /// Number of the lowest active lane; 0 when no lane is active.
    #[inline(always)]
    pub(super) fn first_lane(&self) -> usize {
        (self.exec().trailing_zeros() & 63) as usize
    }

    /// Source `n` of a vector operation. The register itself, if the value need not be changed.
    #[inline(always)]
    pub(super) fn src<'s>(
        &'s self,
        i: &Inst,
        n: usize,
        kind: ModifierKind,
        buf: &'s mut Buffer,
    ) -> &'s Lanes {
        let code = i.src[n];
        if !(i.modified || kind == ModifierKind::F32 && self.w.flush32) {
            if code >= VGPR {
                return self.vgpr(code);
            }
            if code < 128 {
                return buf.write([self.w.s[usize::from(code)]; 64]);
            }
        }
        self.computed_src(i, n, kind, buf)
    }

    #[inline(never)]
    fn computed_src<'s>(
        &self,
        i: &Inst,
        n: usize,
        kind: ModifierKind,
        buf: &'s mut Buffer,
    ) -> &'s Lanes {
        let code = i.src[n];
        let buf = if code >= VGPR {
            buf.write(*self.vgpr(code))
        } else if kind == ModifierKind::F16 {
            buf.write([self.s16(code, i.literal); 64])
        } else {
            buf.write([self.s32(code, i.literal); 64])
        };
        if i.modified {
            if i.has(SDWA) && n < 2 {
                sdwa_source(i, n, kind, buf);
            } else if i.has(DPP) && n == 0 {
                let from = *buf;
                for (lane, to) in buf.iter_mut().enumerate() {
                    *to = dpp_source(i.literal, lane, self.exec()).map_or(0, |l| from[l]);
                }
            }
            if matches!(kind, ModifierKind::F16 | ModifierKind::I16) && i.op_sel >> n & 1 != 0 {
                buf.iter_mut().for_each(|v| *v >>= 16);
            }
            let sign = match kind {
                ModifierKind::Int | ModifierKind::I16 => 0,
                ModifierKind::F32 => 1 << 31,
                ModifierKind::F16 => 1 << 15,
            };
            if i.abs >> n & 1 != 0 {
                buf.iter_mut().for_each(|v| *v &= !sign);
            }
            if i.neg >> n & 1 != 0 {
                buf.iter_mut().for_each(|v| *v ^= sign);
            }
        }
        if kind == ModifierKind::F32 && self.w.flush32 {
            flush32(buf);
        }
        buf
    }

    /// A 64-bit source of a vector operation. The registers themselves, if the value need not be changed. `float`:
    /// modifiers apply.
    #[inline(always)]
    pub(super) fn src_pair<'s>(
        &'s self,
        i: &Inst,
        n: usize,
        float: bool,
        buf: &'s mut [Buffer; 2],
    ) -> Pair<'s> {
        let code = i.src[n];
        if !i.modified {
            if code >= VGPR {
                return Pair {
                    low: self.vgpr(code),
                    high: self.vgpr(code + 1),
                };
            }
            if code < 128 {
                let value = self.pair(code);
                let [low, high] = buf;
                return Pair {
                    low: low.write([value as u32; 64]),
                    high: high.write([(value >> 32) as u32; 64]),
                };
            }
        }
        self.computed_pair(i, n, float, buf)
    }

    #[inline(never)]
    fn computed_pair<'s>(
        &self,
        i: &Inst,
        n: usize,
        float: bool,
        buf: &'s mut [Buffer; 2],
    ) -> Pair<'s> {
        let mut lanes = [0; 64];
        self.src64(i, n, float, &mut lanes);
        let [low, high] = buf;
        Pair {
            low: low.write(lanes.map(|v| v as u32)),
            high: high.write(lanes.map(|v| (v >> 32) as u32)),
        }
    }

    /// A 64-bit source of a vector operation as 64-bit values. `float`: modifiers apply.
    pub(super) fn src64(&self, i: &Inst, n: usize, float: bool, buf: &mut Lanes64) {
        let code = i.src[n];
        if code >= VGPR {
            let (low, high) = (self.vgpr(code), self.vgpr(code + 1));
            for l in 0..64 {
                buf[l] = u64::from(low[l]) | u64::from(high[l]) << 32;
            }
            if i.has(DPP) && n == 0 {
                let from = *buf;
                for (lane, to) in buf.iter_mut().enumerate() {
                    *to = dpp_source(i.literal, lane, self.exec()).map_or(0, |l| from[l]);
                }
            }
        } else if float && code == LITERAL {
            buf.fill(u64::from(i.literal) << 32);
        } else {
            buf.fill(self.s64(code, i.literal));
        }
        if float && i.modified {
            if i.abs >> n & 1 != 0 {
                buf.iter_mut().for_each(|v| *v &= !(1 << 63));
            }
            if i.neg >> n & 1 != 0 {
                buf.iter_mut().for_each(|v| *v ^= 1 << 63);
            }
        }
    }

    /// The lanes that an instruction writes.
    #[inline(always)]
    pub(super) fn write_mask(&self, i: &Inst) -> u64 {
        let exec = self.exec();
        if i.has(DPP) {
            exec & dpp_mask(i.literal, exec)
        } else {
            exec
        }
    }

    /// Writes a 32-bit result.
    #[inline(always)]
    pub(super) fn write(&mut self, i: &Inst, out: &Lanes) {
        self.stats.valu_lanes += u64::from(self.exec().count_ones());
        if i.modified {
            self.write_modified(i, out);
        } else {
            let mask = self.exec();
            blend(self.vgpr_mut(i.dst), out, mask);
        }
    }

    #[inline(never)]
    fn write_modified(&mut self, i: &Inst, out: &Lanes) {
        let mask = self.write_mask(i);
        if !i.has(SDWA) {
            blend(self.vgpr_mut(i.dst), out, mask);
            return;
        }
        let (shift, width) = match i.literal >> 8 & 7 {
            n @ 0..=3 => (n * 8, 8),
            4 => (0, 16),
            5 => (16, 16),
            _ => (0, 32),
        };
        let field = (u64::MAX >> (64 - width)) as u32;
        let unused = i.literal >> 11 & 3;
        let mut whole = *out;
        let old = *self.vgpr(i.dst);
        if width < 32 {
            for l in 0..64 {
                let value = (out[l] & field) << shift;
                whole[l] = match unused {
                    0 => value,
                    1 => ((value << (32 - width - shift)) as i32 >> (32 - width - shift)) as u32,
                    _ => old[l] & !(field << shift) | value,
                };
            }
        }
        blend(self.vgpr_mut(i.dst), &whole, mask);
    }

    /// Writes a single-precision result. Applies the output modifiers.
    #[inline(always)]
    pub(super) fn write_f32(&mut self, i: &Inst, out: &mut Lanes) {
        if i.modified && (i.omod != 0 || i.has(CLAMP)) {
            modify_f32(i, out);
        }
        if self.w.flush32 {
            flush32(out);
        }
        self.write(i, out);
    }

    /// Writes a 16-bit result to the half that `op_sel` selects. Writing the low half clears the high half.
    pub(super) fn write16(&mut self, i: &Inst, out: &mut Lanes) {
        out.iter_mut().for_each(|v| *v &= 0xffff);
        if i.op_sel & 8 != 0 {
            let old = *self.vgpr(i.dst);
            for l in 0..64 {
                out[l] = old[l] & 0xffff | out[l] << 16;
            }
        }
        self.write(i, out);
    }

    /// Writes a half-precision result. Applies the output modifiers.
    pub(super) fn write_f16(&mut self, i: &Inst, out: &mut Lanes) {
        use super::float::{f16_to_f32, f64_to_f16};
        if i.modified && (i.omod != 0 || i.has(CLAMP)) {
            for v in out.iter_mut() {
                let x = f64::from(f16_to_f32(*v as u16));
                *v = output_f64(i, x, |x| u32::from(f64_to_f16(x)), *v);
            }
        }
        self.write16(i, out);
    }

    /// Writes a 64-bit result.
    #[inline(always)]
    pub(super) fn write64(&mut self, i: &Inst, out: &Lanes64) {
        self.write_halves(i, &halves(|l| out[l]));
    }

    /// Writes a 64-bit result that is given as low and high dwords.
    #[inline(always)]
    pub(super) fn write_halves(&mut self, i: &Inst, out: &[Lanes; 2]) {
        self.stats.valu_lanes += u64::from(self.exec().count_ones());
        let mask = self.write_mask(i);
        blend(self.vgpr_mut(i.dst), &out[0], mask);
        blend(self.vgpr_mut(i.dst + 1), &out[1], mask);
    }

    /// Writes a double-precision result. Applies the output modifiers.
    #[inline(always)]
    pub(super) fn write_f64(&mut self, i: &Inst, out: &mut [Lanes; 2]) {
        if i.modified && (i.omod != 0 || i.has(CLAMP)) {
            modify_f64(i, out);
        }
        self.write_halves(i, out);
    }

    /// Writes a lane mask (of carries or comparisons). Bits of inactive lanes become 0.
    #[inline(always)]
    pub(super) fn write_lane_mask(&mut self, i: &Inst, mask: u64) {
        let mask = mask & self.exec();
        self.set_pair(i.sdst, mask);
    }

    /// Writes the lane mask of a `v_cmpx`, which sets EXEC as well.
    #[inline(always)]
    pub(super) fn write_exec_mask(&mut self, i: &Inst, mask: u64) {
        let mask = mask & self.exec();
        self.set_pair(i.sdst, mask);
        self.set_pair(EXEC, mask);
    }

    /// Mask of carries or conditions: third source of VOP3, VCC otherwise.
    #[inline(always)]
    pub(super) fn carry_in(&self, i: &Inst) -> u64 {
        if i.format == super::inst::Format::Vop3 {
            self.s64(i.src[2], 0)
        } else {
            self.pair(VCC)
        }
    }
}

/// Splits the values of all lanes into low and high dwords.
#[inline(always)]
pub(super) fn halves(f: impl Fn(usize) -> u64) -> [Lanes; 2] {
    let (mut low, mut high) = ([0; 64], [0; 64]);
    for l in 0..64 {
        let value = f(l);
        low[l] = value as u32;
        high[l] = (value >> 32) as u32;
    }
    [low, high]
}

#[inline(never)]
fn modify_f32(i: &Inst, out: &mut Lanes) {
    for v in out {
        let number = f64::from(f32::from_bits(*v));
        *v = output_f64(i, number, |x| (x as f32).to_bits(), *v);
    }
}

#[inline(never)]
fn modify_f64(i: &Inst, out: &mut [Lanes; 2]) {
    let [low, high] = out;
    for (low, high) in low.iter_mut().zip(high) {
        let bits = u64::from(*low) | u64::from(*high) << 32;
        let bits = output_f64(i, f64::from_bits(bits), f64::to_bits, bits);
        (*low, *high) = (bits as u32, (bits >> 32) as u32);
    }
}

/// Applies output modifier and clamp. `keep`: the unchanged bits of the value, returned if there is neither.
fn output_f64<T>(i: &Inst, value: f64, bits: impl Fn(f64) -> T, keep: T) -> T {
    let mut x = match i.omod {
        1 => value * 2.0,
        2 => value * 4.0,
        3 => value * 0.5,
        _ => value,
    };
    if i.has(CLAMP) {
        // NaN is clamped to 0 with DX10_CLAMP, which compilers always set.
        x = if x > 1.0 {
            1.0
        } else if x > 0.0 {
            x
        } else {
            0.0
        };
    } else if i.omod == 0 {
        return keep;
    }
    bits(x)
}

/// Replaces denormals by zeros with their sign.
#[inline(always)]
fn flush32(lanes: &mut Lanes) {
    for v in lanes {
        if *v & 0x7f80_0000 == 0 {
            *v &= 0x8000_0000;
        }
    }
}

fn sdwa_source(i: &Inst, n: usize, kind: ModifierKind, lanes: &mut Lanes) {
    let control = i.literal >> (16 + 8 * n);
    let (shift, width) = match control & 7 {
        n @ 0..=3 => (n * 8, 8),
        4 => (0, 16),
        5 => (16, 16),
        _ => return,
    };
    let signed = control & 8 != 0 && matches!(kind, ModifierKind::Int | ModifierKind::I16);
    for v in lanes {
        let high = *v << (32 - width - shift);
        *v = if signed {
            (high as i32 >> (32 - width)) as u32
        } else {
            high >> (32 - width)
        };
    }
}

/// The lane from which DPP reads the source of `lane`; `None` if there is none or it is inactive.
fn dpp_source(control: u32, lane: usize, exec: u64) -> Option<usize> {
    let ctrl = (control >> 8 & 0x1ff) as usize;
    let (row, at) = (lane & !15, lane & 15);
    let from = match ctrl {
        0..=0xff => Some(lane & !3 | ctrl >> (2 * (lane & 3)) & 3),
        0x101..=0x10f => Some(at + (ctrl & 15)).filter(|l| *l < 16).map(|l| row | l),
        0x111..=0x11f => at.checked_sub(ctrl & 15).map(|l| row | l),
        0x121..=0x12f => Some(row | (at + 16 - (ctrl & 15)) & 15),
        0x130 => Some(lane + 1).filter(|l| *l < 64),
        0x134 => Some((lane + 1) & 63),
        0x138 => lane.checked_sub(1),
        0x13c => Some((lane + 63) & 63),
        0x140 => Some(row | (15 - at)),
        0x141 => Some(lane & !7 | (7 - (lane & 7))),
        0x142 => row.checked_sub(1),
        0x143 => (lane > 31).then_some(31),
        0x150..=0x15f => Some(row | (ctrl & 15)),
        _ => None,
    };
    from.filter(|l| exec >> l & 1 != 0)
}

/// The lanes that DPP row and bank masks enable.
fn dpp_mask(control: u32, exec: u64) -> u64 {
    let zero_fill = control >> 19 & 1 != 0;
    let (banks, rows) = (control >> 24 & 15, control >> 28);
    let mut mask = 0;
    for lane in 0..64 {
        let enabled = banks >> (lane >> 2 & 3) & 1 != 0 && rows >> (lane >> 4) & 1 != 0;
        if enabled && (zero_fill || dpp_source(control, lane, exec).is_some()) {
            mask |= 1 << lane;
        }
    }
    mask
}
