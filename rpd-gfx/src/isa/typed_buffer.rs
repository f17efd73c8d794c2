//! Buffers whose elements have a format, which is in the descriptor (MUBUF, `buffer_load_format_*`) or in the
//! instruction (MTBUF, `tbuffer_*`).

use super::exec::Exec;
use super::image::{BufferView, Unsupported};
use super::inst::{Format, Handler, Inst, STREAMING};
use super::mubuf::{Buffer, set_operands};
use super::texels::{self, Registers};
use super::transfer::Addressing;
use super::{Class, Operation};

/// Decodes an MTBUF instruction.
pub(super) fn decode(words: [u32; 3]) -> Inst {
    let w = words[0];
    let opcode = w >> 15 & 15;
    let Some((class, run)) = handler(opcode) else {
        return Inst::unknown(Format::Mtbuf, opcode);
    };
    let mut i = Inst::new(run, Format::Mtbuf, class, opcode, 2);
    set_operands(&mut i, words);
    if words[1] >> 22 & 1 != 0 {
        i.flags |= STREAMING;
    }
    // The fields for data format and number format are stored above the offset.
    i.literal |= (w >> 19 & 0x7f) << FORMAT;
    i
}

/// Lowest bit of the literal that belongs to the format of an MTBUF instruction.
const FORMAT: u32 = 12;

/// Class and operation of the opcodes that MTBUF and MUBUF have in common.
pub(super) fn handler(opcode: u32) -> Option<(Class, Handler)> {
    let (operation, _) = of_opcode(opcode as u16)?;
    Some(if operation == Operation::Load {
        (Class::VmemRead, load as Handler)
    } else {
        (Class::VmemWrite, store)
    })
}

fn of_opcode(opcode: u16) -> Option<(Operation, Registers)> {
    let registers = match opcode {
        0x00..=0x0f => Registers {
            channels: (2 << (opcode & 3)) - 1,
            halves: opcode >= 0x08,
            upper: false,
        },
        0x26 | 0x27 => Registers {
            channels: 1,
            halves: true,
            upper: true,
        },
        _ => return None,
    };
    let operation = if matches!(opcode, 0x00..=0x03 | 0x08..=0x0b | 0x26) {
        Operation::Load
    } else {
        Operation::Store
    };
    Some((operation, registers))
}

fn of(i: &Inst) -> Option<(Operation, Registers)> {
    let here = matches!(i.format, Format::Mubuf | Format::Mtbuf);
    of_opcode(i.opcode).filter(|_| here)
}

/// Operation and number of data registers of an instruction on a formatted buffer.
pub(super) fn transfer(i: &Inst) -> Option<(Operation, u32)> {
    of(i).map(|(operation, registers)| (operation, registers.count()))
}

/// Format of the buffer's elements; `None` if the instruction accesses bytes.
pub(super) fn view(x: &Exec<'_>, i: &Inst) -> Option<Result<BufferView, Unsupported>> {
    of(i)?;
    let word = x.s32(i.sdst + 3, 0);
    Some(if i.format == Format::Mtbuf {
        let format = i.literal >> FORMAT;
        BufferView::typed(word, format & 15, format >> 4)
    } else {
        BufferView::decode(word)
    })
}

/// Calls `act` with the format of the buffer and the register layout, or stops the wave with a fault.
fn with(x: &mut Exec<'_>, i: &Inst, act: impl Fn(&mut Exec<'_>, BufferView, Registers)) {
    match (view(x, i), of(i)) {
        (Some(Ok(view)), Some((_, registers))) => act(x, view, registers),
        (Some(Err(what)), _) => x.descriptor_fault(i, what),
        _ => super::fault::unknown_instruction(x, i),
    }
}

fn load(x: &mut Exec<'_>, i: &Inst) {
    with(x, i, |x, view, registers| {
        let (addresses, mask) = Buffer::addresses(x, i, 0);
        let Some(elements) = texels::fetch(x, i, view.format, &addresses, mask) else {
            return;
        };
        for (l, element) in elements.into_iter().enumerate() {
            if x.exec() >> l & 1 != 0 {
                registers.write(x, i, view.format, l, view.select(element));
            }
        }
    });
}

fn store(x: &mut Exec<'_>, i: &Inst) {
    with(x, i, |x, view, registers| {
        let (addresses, mask) = Buffer::addresses(x, i, 0);
        texels::store(x, i, view.format, &addresses, mask, |x, l| {
            view.deselect(registers.read(x, i, view.format, l))
        });
    });
}
