//! Sums over all waves for each line of code.

use std::collections::BTreeMap;

use rpd_core::storage::number_map::NumberMap;

use crate::code::CodeObjects;
use crate::record::{Instruction, Pc, Wave};
use crate::stalls::{Operands, Stalls, Unit};

/// A line of code and the cost of its executions, in cycles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeLine {
    /// Location of the instruction.
    pub pc: Pc,
    /// Text of the instruction; empty when it cannot be disassembled.
    pub text: String,
    /// Number of the line in listings, from 1, in the order in which functions were first seen.
    pub number: u32,
    /// Number of executions by waves.
    pub hits: u64,
    /// Cycles from the first possible issue of the instruction to its end.
    pub latency: u64,
    /// Cycles of `latency` before the issue.
    pub stall: u64,
    /// Stall cycles by reason.
    pub stalls: Stalls,
    /// Cycles between the previous instruction of the wave and this one.
    pub idle: u64,
}

/// The lines that waves executed, with all other lines of the same functions.
#[derive(Debug, Default)]
pub struct Listing {
    lines: Vec<CodeLine>,
    /// Operands that each line reads and writes.
    operands: Vec<Operands>,
    by_pc: NumberMap<Pc, u32>,
    /// Names of functions at the addresses of their first instructions, mangled.
    labels: BTreeMap<Pc, String>,
}

impl Listing {
    /// Adds the instructions of a wave.
    pub fn add(&mut self, wave: &Wave<'_>, code: &CodeObjects) {
        let mut end = wave.begin;
        // The lines that computed registers last.
        let (mut vector, mut scalar) = (None, None);
        for instruction in wave.instructions {
            if !instruction.pc.is_known() {
                continue;
            }
            let index = match self.by_pc.get(&instruction.pc) {
                Some(index) => *index,
                None => self.meet(instruction.pc, code),
            };
            if instruction.stall > 0 {
                let operands = |index: u32| &self.operands[index as usize];
                let before = [vector, scalar].into_iter().flatten().map(operands);
                let reason = operands(index).reason(instruction.stall, before);
                let stalls = &mut self.lines[index as usize].stalls;
                stalls.add(reason, u64::from(instruction.stall));
            }
            match self.operands[index as usize].computes() {
                Some(Unit::Vector) => vector = Some(index),
                Some(Unit::Scalar) => scalar = Some(index),
                None => {}
            }
            self.count(index, instruction, end);
            end = end.max(instruction.time + i64::from(instruction.duration));
        }
    }

    fn count(&mut self, index: u32, instruction: &Instruction, before: i64) {
        let line = &mut self.lines[index as usize];
        line.hits += 1;
        line.latency += u64::from(instruction.duration.max(0).unsigned_abs());
        line.stall += u64::from(instruction.stall);
        line.idle += u64::try_from(instruction.time - before).unwrap_or(0);
    }

    /// Adds all lines of the function that contains an address, or the line alone where no function is known. Returns
    /// the index of the line.
    fn meet(&mut self, pc: Pc, code: &CodeObjects) -> u32 {
        if let Some(function) = code.function(pc) {
            let first = Pc {
                address: function.address,
                ..pc
            };
            self.labels.insert(first, function.name.clone());
            let mut at = function.address;
            while at - function.address < function.size {
                let here = Pc { address: at, ..pc };
                let Some(instruction) = code.instruction(here).filter(|found| found.bytes > 0)
                else {
                    break;
                };
                at = at.saturating_add(instruction.bytes.into());
                self.push(
                    here,
                    Operands::from_instruction(&instruction),
                    instruction.text,
                );
            }
            if let Some(index) = self.by_pc.get(&pc) {
                return *index;
            }
        }
        let found = code.instruction(pc);
        let operands = found
            .as_ref()
            .map(Operands::from_instruction)
            .unwrap_or_default();
        self.push(
            pc,
            operands,
            found.map(|found| found.text).unwrap_or_default(),
        )
    }

    fn push(&mut self, pc: Pc, operands: Operands, text: String) -> u32 {
        if let Some(index) = self.by_pc.get(&pc) {
            return *index;
        }
        let index = self.lines.len() as u32;
        // A label has its own number, the first one 0.
        let labels = self.labels.len().max(1) as u32;
        self.operands.push(operands);
        self.lines.push(CodeLine {
            pc,
            text,
            number: index + labels,
            hits: 0,
            latency: 0,
            stall: 0,
            stalls: Stalls::default(),
            idle: 0,
        });
        self.by_pc.insert(pc, index);
        index
    }

    /// Line of the instruction at an address; `None` where the listing has none.
    pub fn line(&self, pc: Pc) -> Option<&CodeLine> {
        let index = *self.by_pc.get(&pc)?;
        self.lines.get(index as usize)
    }

    /// All lines, in the order of their numbers.
    pub fn lines(&self) -> &[CodeLine] {
        &self.lines
    }

    /// The name of the function whose first instruction this is, mangled.
    pub fn label(&self, pc: Pc) -> Option<&str> {
        self.labels.get(&pc).map(String::as_str)
    }
}
