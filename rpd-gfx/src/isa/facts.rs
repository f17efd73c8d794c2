//! Static properties of instructions for the timing model: kind and registers.

use super::classify::kind;
use super::exec::PAGE;
use super::inst::{Format, Inst, VCC};
use super::kind::{Kind, Valu};
use super::program::Program;

/// Consecutive registers. Scalar registers have their operand codes below 128, vector registers numbers from 256 on,
/// accumulation registers from 512 on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Registers {
    /// Number of the first register.
    pub first: u16,
    /// Number of registers; 0 for none.
    pub count: u16,
}

impl Registers {
    /// Upper bound of register numbers, exclusive.
    pub const COUNT: usize = 768;

    /// The numbers of the registers.
    pub fn numbers(self) -> std::ops::Range<usize> {
        let first = usize::from(self.first).min(Self::COUNT);
        first..(first + usize::from(self.count)).min(Self::COUNT)
    }

    fn new(code: u16, count: u16) -> Self {
        // Operand codes of constants are between those of scalar and vector registers.
        let is_register = !(128..256).contains(&code);
        Self {
            first: code,
            count: if is_register { count } else { 0 },
        }
    }
}

/// Properties of an instruction that do not depend on the execution.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    /// Kind of instruction.
    pub kind: Kind,
    /// Size in bytes.
    pub length: u32,
    /// Whether the sequencer executes the instruction: end, message, wait, no-op, barrier or control instruction.
    pub internal: bool,
    /// Whether the instruction is a branch to an address in registers, or a call.
    pub indirect: bool,
    /// Whether a scalar or vector memory instruction only stores.
    pub stores: bool,
    /// Whether the instruction is vector arithmetic on 64-bit elements.
    pub wide: bool,
    /// Whether the instruction is `s_memtime`, which reads the core clock.
    pub clock: bool,
    /// Registers that arithmetic reads.
    pub reads: [Registers; 3],
    /// Registers that arithmetic writes.
    pub writes: [Registers; 2],
}

impl Program {
    /// Properties of the instruction at an offset in bytes from the first one; `None` after the end of the program.
    pub fn facts(&self, offset: u64) -> Option<Facts> {
        let index = (offset >> 2) as usize;
        let page = self.page(index / PAGE)?;
        page.get(index % PAGE).map(facts)
    }

    /// Address of the first instruction.
    pub fn base(&self) -> u64 {
        self.start()
    }
}

fn facts(i: &Inst) -> Facts {
    let kind = kind(i);
    let sop1 = i.format == Format::Sop1;
    let calls = i.format == Format::Sopk && kind == Kind::Branch;
    let indirect = calls || sop1 && matches!(i.opcode, 0x1d..=0x1f);
    let arithmetic = matches!(kind, Kind::Valu(_) | Kind::Matrix(_) | Kind::Salu);
    let (mut reads, mut writes) = ([Registers::default(); 3], [Registers::default(); 2]);
    let wide = matches!(
        kind,
        Kind::Valu(Valu::AddF64 | Valu::MulF64 | Valu::FmaF64 | Valu::TransF64 | Valu::Int64)
    );
    if arithmetic {
        let (element, result) = match kind {
            // 4 to 32 registers; 32x32 results have 16 for each block.
            Kind::Matrix(matrix) if matrix.cycles >= 64 => (1, 16),
            Kind::Matrix(_) => (1, 4),
            _ if wide => (2, 2),
            _ => (1, 1),
        };
        for (n, register) in reads.iter_mut().enumerate() {
            let accumulates = n == 2 && matches!(kind, Kind::Matrix(_));
            *register = Registers::new(i.src[n], if accumulates { result } else { element });
        }
        let compares = i.format == Format::Vopc || i.format == Format::Vop3 && i.opcode < 0x100;
        if compares {
            writes[0] = Registers::new(i.sdst, 2);
        } else {
            writes[0] = Registers::new(i.dst, result);
            if i.sdst != VCC && kind != Kind::Salu {
                writes[1] = Registers::new(i.sdst, 2);
            }
        }
    }
    Facts {
        kind,
        length: u32::from(i.words) * 4,
        internal: matches!(
            kind,
            Kind::Message
                | Kind::End
                | Kind::Barrier
                | Kind::Wait(..)
                | Kind::Sleep(_)
                | Kind::Invalidate
                | Kind::WriteBack
                | Kind::Other
        ),
        indirect,
        stores: match kind {
            Kind::Vmem(vmem) => vmem.operation != super::Operation::Load,
            Kind::Smem(dwords) => dwords == 0,
            _ => false,
        },
        wide,
        clock: matches!(kind, Kind::Smem(_)) && i.opcode == 0x24,
        reads,
        writes,
    }
}
