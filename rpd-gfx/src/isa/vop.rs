//! VOP1, VOP2 and VOPC encodings, with SDWA and DPP.

use super::exec::Exec;
use super::inst::{CLAMP, DPP, Format, Inst, SDWA, VGPR};
use super::{Class, vop1, vop2, vopc};

/// Decodes a VOP1, VOP2 or VOPC instruction.
pub(super) fn decode(words: [u32; 3]) -> Inst {
    let w = words[0];
    let vdst = VGPR + (w >> 17 & 0xff) as u16;
    let vsrc1 = VGPR + (w >> 9 & 0xff) as u16;
    let (format, opcode, handler) = match w >> 25 {
        0b0111110 => (Format::Vopc, w >> 17 & 0xff, vopc::handler(w >> 17 & 0xff)),
        0b0111111 => (Format::Vop1, w >> 9 & 0xff, vop1::handler(w >> 9 & 0xff)),
        op => (Format::Vop2, op, vop2::handler(op)),
    };
    let Some(run) = handler else {
        return Inst::unknown(format, opcode);
    };
    let mut i = Inst::new(run, format, Class::Valu, opcode, 1);
    i.src[0] = (w & 0x1ff) as u16;
    match format {
        Format::Vopc => i.src[1] = vsrc1,
        Format::Vop1 => {
            // v_readfirstlane writes an SGPR.
            i.dst = if opcode == 2 {
                (w >> 17 & 0xff) as u16
            } else {
                vdst
            };
        }
        _ => {
            i.src[1] = vsrc1;
            // v_fmac and similar instructions add to their destination.
            i.src[2] = vdst;
            i.dst = vdst;
        }
    }
    if format == Format::Vop1 && opcode == 0x52 {
        i.src[0] += 256;
        i.dst += 256;
    }
    match w & 0x1ff {
        249 => sdwa(&mut i, words[1]),
        250 => dpp(&mut i, words[1]),
        _ if format == Format::Vop2 && vop2::takes_literal(opcode) => {
            i.literal = words[1];
            i.words = 2;
            vop2::place_literal(&mut i);
        }
        255 => {
            i.literal = words[1];
            i.words = 2;
        }
        _ => {}
    }
    i
}

fn sdwa(i: &mut Inst, control: u32) {
    i.literal = control;
    i.words = 2;
    i.flags |= SDWA;
    i.modified = true;
    i.src[0] = (control & 0xff) as u16 + if control >> 23 & 1 != 0 { 0 } else { VGPR };
    if i.format != Format::Vop1 && control >> 31 != 0 {
        i.src[1] -= VGPR;
    }
    i.neg = (control >> 20 & 1 | control >> 27 & 2) as u8;
    i.abs = (control >> 21 & 1 | control >> 28 & 2) as u8;
    if i.format == Format::Vopc {
        if control >> 15 & 1 != 0 {
            i.sdst = (control >> 8 & 0x7f) as u16;
        }
    } else {
        i.omod = (control >> 14 & 3) as u8;
        if control >> 13 & 1 != 0 {
            i.flags |= CLAMP;
        }
    }
}

fn dpp(i: &mut Inst, control: u32) {
    i.literal = control;
    i.words = 2;
    i.flags |= DPP;
    i.modified = true;
    i.src[0] = (control & 0xff) as u16 + VGPR;
    i.neg = (control >> 20 & 1 | control >> 21 & 2) as u8;
    i.abs = (control >> 21 & 1 | control >> 22 & 2) as u8;
}

/// The instruction with its VGPR numbers indexed by M0, after `s_set_gpr_idx_on`.
#[cold]
pub(super) fn indexed(x: &Exec<'_>, i: &Inst) -> Inst {
    let mut i = *i;
    if !matches!(i.class, Class::Valu | Class::Mfma) {
        return i;
    }
    let by = (x.m0() & 0xff) as u16;
    for n in 0..3 {
        if x.w.index_mode >> n & 1 != 0 && i.src[n] >= VGPR {
            i.src[n] += by;
        }
    }
    if x.w.index_mode & 8 != 0 && i.dst >= VGPR {
        i.dst += by;
    }
    i
}
