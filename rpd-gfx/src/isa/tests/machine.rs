//! Executes single instructions on a wave whose registers the test sets.

use super::*;
use crate::codeobj::KernelDescriptor;
use crate::isa::exec::{Exec, WaveState};
use crate::isa::memory::Cache;

/// A row of the instruction table.
pub(super) struct Listed {
    pub(super) encoding: &'static str,
    pub(super) opcode: u32,
    pub(super) name: &'static str,
    pub(super) executed: bool,
    pub(super) sample: [u32; 3],
}

/// The instructions that LLVM lists for the processor.
pub(super) fn listing(set: InstructionSet) -> Vec<Listed> {
    let rows = crate::disasm::rows(set.processor())
        .unwrap()
        .iter()
        .map(|row| {
            let mut sample = [0; 3];
            sample[..row.sample.len()].copy_from_slice(row.sample);
            Listed {
                encoding: row.encoding.name(),
                opcode: row.opcode.into(),
                name: row.name(),
                executed: row.executed,
                sample,
            }
        });
    rows.collect()
}

/// The dwords of the table's sample of an instruction.
pub(super) fn sample(name: &str) -> [u32; 2] {
    sample_of(InstructionSet::Gfx90a, name)
}

/// The dwords of the sample of an instruction in the table of an instruction set.
pub(super) fn sample_of(set: InstructionSet, name: &str) -> [u32; 2] {
    let rows = listing(set);
    let row = rows.iter().find(|row| row.name == name);
    let [first, second, _] = row.unwrap_or_else(|| panic!("{name} is not listed")).sample;
    [first, second]
}

/// Executes `code` on one wave. `set` sets its registers before, `check` gets the wave afterwards.
pub(super) fn execute<R>(
    code: &[u32],
    memory: &dyn Memory,
    set: impl FnOnce(&mut Exec<'_>),
    check: impl FnOnce(&Exec<'_>) -> R,
) -> R {
    execute_on(InstructionSet::Gfx90a, code, memory, set, check)
}

/// Executes `code` of an instruction set on one wave. `set` sets its registers before, `check` gets the wave
/// afterwards.
pub(super) fn execute_on<R>(
    instructions: InstructionSet,
    code: &[u32],
    memory: &dyn Memory,
    set: impl FnOnce(&mut Exec<'_>),
    check: impl FnOnce(&Exec<'_>) -> R,
) -> R {
    let mut code = code.to_vec();
    code.push(0xbf81_0000);
    let start = code.as_ptr() as u64;
    // SAFETY: the code outlives the program and does not change.
    let program = unsafe { Program::new(start, 4 * code.len() as u64, instructions) };
    let dispatch = Dispatch {
        device: Device::find(instructions.processor()).unwrap(),
        kernel: "snippet",
        program: &program,
        kernel_object: start,
        descriptor: KernelDescriptor::parse(&[0; 64]).unwrap(),
        grid: [64, 1, 1],
        workgroup: [64, 1, 1],
        group_segment_size: 0,
        private_segment_size: 0,
        kernarg: 0,
        packet: 0,
        queue: 0,
        dispatch_id: 0,
    };
    let mut x = Exec::new(&dispatch, Cache::new(memory), start);
    x.w.pc = start;
    x.w.state = WaveState::Running;
    x.set_pair(crate::isa::inst::EXEC, u64::MAX);
    set(&mut x);
    x.run::<false>(1000);
    assert_ne!(x.w.state, WaveState::Running, "the snippet does not end");
    check(&x)
}

/// Fills all registers of lanes with numbers.
pub(super) fn fill(x: &mut Exec<'_>, mut number: impl FnMut() -> u32) {
    for register in x.w.v.iter_mut() {
        register.iter_mut().for_each(|lane| *lane = number());
    }
}
