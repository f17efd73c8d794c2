//! The kind of each instruction, for the performance model and for recordings.

use super::Class;
use super::inst::{Format, GLC, Inst, STREAMING};
use super::kind::{Kind, Operation, Valu, Vmem};

/// The kind of an instruction.
pub(super) fn kind(i: &Inst) -> Kind {
    match i.class {
        Class::Valu => Kind::Valu(valu(i)),
        Class::Mfma => super::mfma::kind(i).map_or(Kind::Other, Kind::Matrix),
        Class::Salu => Kind::Salu,
        Class::Smem => Kind::Smem(match i.opcode {
            0x00..=0x04 => 1 << i.opcode,
            0x08..=0x0c => 1 << (i.opcode - 8),
            _ => 0,
        }),
        Class::VmemRead | Class::VmemWrite | Class::Flat => Kind::Vmem(vmem(i)),
        Class::Lds if matches!(i.opcode, 0x98..=0x9d) => Kind::Gds,
        Class::Lds => Kind::Lds,
        Class::Branch => Kind::Branch,
        Class::SendMessage => Kind::Message,
        Class::Other if i.format == Format::Sopp => match i.opcode {
            0x01 | 0x1b | 0x1e => Kind::End,
            0x0a => Kind::Barrier,
            0x0c => {
                let counts = i.literal;
                Kind::Wait(counts & 15 | counts >> 10 & 0x30, counts >> 8 & 15)
            }
            0x0e => Kind::Sleep(i.literal & 0x7f),
            0x17..=0x1a => Kind::Branch,
            _ => Kind::Other,
        },
        // `buffer_wbinvl1`, `buffer_wbinvl1_vol`; `buffer_invl2`, which is `buffer_inv` on gfx942.
        Class::Other if i.format == Format::Mubuf && matches!(i.opcode, 0x29 | 0x3e | 0x3f) => {
            Kind::Invalidate
        }
        // `buffer_wbl2`.
        Class::Other if i.format == Format::Mubuf && i.opcode == 0x28 => Kind::WriteBack,
        Class::Other => Kind::Other,
    }
}

fn vmem(i: &Inst) -> Vmem {
    let returns = i.flags & GLC != 0;
    let elements = super::typed_buffer::transfer(i).or_else(|| super::mimg::transfer(i));
    if let Some((operation, dwords)) = elements {
        return Vmem {
            flat: false,
            operation,
            dwords,
            coherent: operation == Operation::Load && returns,
            streaming: i.has(STREAMING),
        };
    }
    let (operation, dwords) = match i.opcode {
        0x10..=0x13 | 0x20..=0x2a => (Operation::Load, 1),
        0x14..=0x17 => (Operation::Load, u32::from(i.opcode) - 0x13),
        0x18..=0x1b => (Operation::Store, 1),
        0x1c..=0x1f => (Operation::Store, u32::from(i.opcode) - 0x1b),
        // Compare-and-swap has two data registers.
        0x41 => (Operation::Atomic(returns), 2),
        0x40..=0x4e | 0x52 => (Operation::Atomic(returns), 1),
        0x61 => (Operation::Atomic(returns), 4),
        _ => (Operation::Atomic(returns), 2),
    };
    Vmem {
        flat: i.format != Format::Mubuf,
        operation,
        dwords,
        coherent: operation == Operation::Load && returns,
        streaming: i.has(STREAMING),
    }
}

fn valu(i: &Inst) -> Valu {
    match (i.format, i.opcode) {
        (Format::Vop1, op) => vop1(op),
        (Format::Vop2, op) => vop2(op),
        (Format::Vopc, op) => vopc(op),
        (Format::Vop3p, op) => vop3p(op),
        // The first opcodes of VOP3 are the long forms of VOPC.
        (_, op @ 0..=0xff) => vopc(op),
        (_, op @ 0x100..=0x13f) => vop2(op - 0x100),
        (_, op @ 0x140..=0x1bf) => vop1(op - 0x140),
        (_, op) => vop3(op),
    }
}

fn vop1(opcode: u16) -> Valu {
    match opcode {
        0x03..=0x08 | 0x0a..=0x16 | 0x39..=0x3c | 0x4d..=0x4f | 0x54..=0x57 => Valu::Convert,
        0x20..=0x24 | 0x27 | 0x29 | 0x2a | 0x4b | 0x4c => Valu::TransF32,
        0x25 | 0x26 | 0x28 => Valu::TransF64,
        0x2b..=0x2f => Valu::Int32,
        0x3d..=0x41 | 0x49 | 0x4a => Valu::TransF16,
        _ => Valu::Other,
    }
}

fn vop2(opcode: u16) -> Valu {
    match opcode {
        0x01..=0x03 => Valu::AddF32,
        0x04 => Valu::FmaF64,
        0x05 => Valu::MulF32,
        0x06..=0x09 | 0x0c..=0x15 | 0x19..=0x1e | 0x34..=0x36 | 0x38..=0x3a | 0x3d => Valu::Int32,
        0x16..=0x18 | 0x3b => Valu::FmaF32,
        0x1f..=0x21 => Valu::AddF16,
        0x22 => Valu::MulF16,
        0x23..=0x25 | 0x3c => Valu::FmaF16,
        _ => Valu::Other,
    }
}

fn vopc(opcode: u16) -> Valu {
    match opcode {
        0xc0..=0xdf => Valu::Int32,
        0xe0..=0xff => Valu::Int64,
        _ => Valu::Other,
    }
}

fn vop3(opcode: u16) -> Valu {
    match opcode {
        0x1c0 | 0x1c1 | 0x1cb | 0x1e2 => Valu::FmaF32,
        0x1cc | 0x1e3 => Valu::FmaF64,
        0x1c2 | 0x1c3 | 0x1c8..=0x1ca | 0x1cd..=0x1cf => Valu::Int32,
        0x1d1 | 0x1d2 | 0x1d4 | 0x1d5 | 0x1d7..=0x1dc => Valu::Int32,
        0x1e4 | 0x1ed | 0x1f1..=0x1f3 | 0x1fd..=0x202 => Valu::Int32,
        0x285..=0x287 | 0x28b..=0x28d | 0x293 | 0x29c | 0x29d => Valu::Int32,
        0x1e5 | 0x1e6 | 0x1e8 | 0x1e9 | 0x208 | 0x28f..=0x291 => Valu::Int64,
        0x1ea | 0x1ee | 0x203 | 0x206 => Valu::FmaF16,
        0x1dd | 0x294..=0x298 | 0x2a2..=0x2a5 => Valu::Convert,
        0x280 => Valu::AddF64,
        0x281 => Valu::MulF64,
        0x2a1 => Valu::MulF32,
        _ => Valu::Other,
    }
}

fn vop3p(opcode: u16) -> Valu {
    match opcode {
        0x0e => Valu::FmaF16,
        0x0f => Valu::AddF16,
        0x10 => Valu::MulF16,
        0x20..=0x22 | 0x30 => Valu::FmaF32,
        0x26..=0x2b => Valu::Int32,
        0x31 => Valu::MulF32,
        0x32 => Valu::AddF32,
        _ => Valu::Other,
    }
}
