//! Reasons for which instructions were not issued at once. Traces have the duration of a stall; the reason follows from
//! the kind of the instruction, and from whether it reads a result of the previous one.

use rpd_gfx::disasm::{Category, Instruction};

/// Cycles after which the result of every instruction but those of the matrix cores can be read.
const MAX_COMPUTING: u32 = 32;

/// Reason for which an instruction waited. The numbers are those of the reasons of PC samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum StallReason {
    /// The instruction reads a register that the preceding vector or scalar instruction writes.
    Dependency = 2,
    /// The instruction waited for outstanding memory accesses.
    Memory = 3,
    /// The instruction is executed in the sequencer: a sleep, a nop, a change of mode.
    Internal = 4,
    /// Other waves had not reached the barrier.
    Barrier = 5,
    /// Another wave of the SIMD was chosen.
    NotChosen = 6,
    /// The unit that executes the instruction was busy: the matrix core, LDS, memory.
    Busy = 7,
    /// The instruction is not known.
    Other = 8,
}

impl StallReason {
    /// Every reason, in the order of the numbers.
    pub const ALL: [StallReason; 7] = [
        StallReason::Dependency,
        StallReason::Memory,
        StallReason::Internal,
        StallReason::Barrier,
        StallReason::NotChosen,
        StallReason::Busy,
        StallReason::Other,
    ];
}

/// Cycles that instructions stalled, by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stalls([u64; StallReason::ALL.len()]);

impl Stalls {
    /// Adds cycles of one reason.
    pub(crate) fn add(&mut self, reason: StallReason, cycles: u64) {
        self.0[reason as usize - StallReason::ALL[0] as usize] += cycles;
    }

    /// The reasons with cycles, by number.
    pub fn iter(&self) -> impl Iterator<Item = (StallReason, u64)> + '_ {
        let all = StallReason::ALL.into_iter().zip(self.0);
        all.filter(|(_, cycles)| *cycles > 0)
    }
}

/// A range of registers with consecutive numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Registers {
    /// Register file: `v`, `a` or `s`.
    file: u8,
    first: u16,
    last: u16,
}

impl Registers {
    /// The registers of an operand such as `v7`, `s[4:5]`, `-v3` or `|v3|`; `None` for other operands.
    fn from_operand(operand: &str) -> Option<Self> {
        let name = operand.trim().trim_start_matches(['-', '|']);
        let name = name.split([' ', '|']).next()?;
        let file = *name.as_bytes().first()?;
        if !b"vas".contains(&file) {
            return None;
        }
        let rest = &name[1..];
        let (first, last) = match rest.strip_prefix('[') {
            Some(range) => range.strip_suffix(']')?.split_once(':')?,
            None => (rest, rest),
        };
        Some(Self {
            file,
            first: first.parse().ok()?,
            last: last.parse().ok()?,
        })
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.file == other.file && self.first <= other.last && other.first <= self.last
    }
}

/// Operands of an instruction that decide its stalls and those of later instructions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Operands {
    category: Option<Category>,
    written: Option<Registers>,
    read: Vec<Registers>,
}

impl Operands {
    pub(crate) fn from_instruction(instruction: &Instruction) -> Self {
        let operands = instruction
            .text
            .split_once(' ')
            .map_or("", |(_, rest)| rest);
        let mut registers = operands.split(',').map(Registers::from_operand);
        let (written, mut read) = match instruction.category {
            Category::Valu | Category::Matrix | Category::Salu => {
                (registers.next().flatten(), Vec::new())
            }
            _ => (None, Vec::new()),
        };
        read.extend(registers.flatten());
        let category = match instruction.category {
            // The instruction only waits for time to pass.
            Category::Wait if instruction.text.starts_with("s_sleep") => Category::Internal,
            category => category,
        };
        Self {
            category: Some(category),
            written,
            read,
        }
    }

    /// The unit that computes a register by this instruction; instructions after it may wait for that.
    pub(crate) fn computes(&self) -> Option<Unit> {
        match self.category? {
            Category::Valu | Category::Matrix => Some(Unit::Vector),
            Category::Salu => Some(Unit::Scalar),
            _ => None,
        }
    }

    fn reads(&self, before: &Self) -> bool {
        let written = before.written;
        written.is_some_and(|written| self.read.iter().any(|read| read.overlaps(&written)))
    }

    /// Whether a later instruction may wait for `cycles` until the result of this one can be read.
    fn delays(&self, cycles: u32) -> bool {
        cycles <= MAX_COMPUTING || self.category == Some(Category::Matrix)
    }

    /// Reason for which the instruction waited for `cycles`. `before`: the last instructions of the wave that computed
    /// registers.
    pub(crate) fn reason<'a>(
        &self,
        cycles: u32,
        before: impl IntoIterator<Item = &'a Operands>,
    ) -> StallReason {
        let waits_for = |before: &Operands| self.reads(before) && before.delays(cycles);
        match self.category {
            None | Some(Category::Unknown) => StallReason::Other,
            Some(Category::Wait) => StallReason::Memory,
            Some(Category::Barrier) => StallReason::Barrier,
            Some(Category::Internal | Category::Message | Category::End | Category::Hint) => {
                StallReason::Internal
            }
            Some(_) if before.into_iter().any(waits_for) => StallReason::Dependency,
            Some(Category::Valu | Category::Salu | Category::Branch | Category::Jump) => {
                StallReason::NotChosen
            }
            Some(
                Category::Matrix
                | Category::Smem
                | Category::Vmem
                | Category::Flat
                | Category::Lds
                | Category::Gds
                | Category::Bvh
                | Category::Export,
            ) => StallReason::Busy,
        }
    }
}

/// Unit that computes a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Vector,
    Scalar,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operands(text: &str) -> Operands {
        Operands::from_instruction(&Instruction::from_text(text, 8, 0))
    }

    #[test]
    fn stall_reasons_follow_from_the_instruction_and_its_operands() {
        let fma = operands("v_fma_f32 v0, v0, v1, v2");
        let other = operands("v_mul_f32_e32 v9, s4, v8");
        for (text, before, reason) in [
            ("v_fma_f32 v0, v0, v1, v2", &fma, StallReason::Dependency),
            ("v_add_f32_e64 v4, -v0, |v3|", &fma, StallReason::Dependency),
            ("v_fma_f32 v0, v0, v1, v2", &other, StallReason::NotChosen),
            ("ds_read_b32 v3, v0", &fma, StallReason::Dependency),
            ("ds_read_b32 v3, v1", &fma, StallReason::Busy),
            (
                "global_store_dword v1, v[8:9], s[2:3]",
                &other,
                StallReason::Dependency,
            ),
            (
                "v_mfma_f32_32x32x1f32 a[0:31], v4, v5, a[0:31]",
                &fma,
                StallReason::Busy,
            ),
            ("s_waitcnt vmcnt(0)", &fma, StallReason::Memory),
            ("s_barrier", &fma, StallReason::Barrier),
            ("s_sleep 3", &fma, StallReason::Internal),
        ] {
            assert_eq!(operands(text).reason(8, [before]), reason, "{text}");
        }
        let chain = operands("v_mfma_f32_32x32x1f32 a[0:31], v4, v5, a[0:31]");
        assert_eq!(chain.reason(64, [&chain]), StallReason::Dependency);
        assert_eq!(Operands::default().reason(8, [&fma]), StallReason::Other);
        let read = operands("ds_read_b32 v3, v0");
        assert_eq!(
            read.reason(250, [&fma]),
            StallReason::Busy,
            "longer than the result took"
        );
    }
}
