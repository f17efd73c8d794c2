//! Running a dispatch: its workgroups, one after the other or on several threads.

use super::{Control, Dispatch, Fault, Memory, Stats};

/// Executes a dispatch to its end.
pub(crate) fn run_dispatch(
    dispatch: &Dispatch<'_>,
    _memory: &dyn Memory,
    _control: &Control<'_>,
) -> Result<Stats, Fault> {
    let entry = dispatch
        .kernel_object
        .wrapping_add_signed(dispatch.descriptor.entry_offset);
    if !dispatch.program.contains(entry) {
        return Err(Fault::Jump {
            pc: entry,
            kernel: dispatch.kernel.to_owned(),
        });
    }
    let words = dispatch.program.words(entry);
    Err(Fault::Instruction {
        words: words.to_vec(),
        format: "none",
        opcode: 0,
        kernel: dispatch.kernel.to_owned(),
        offset: 0,
        symbol_less: false,
    })
}
