//! The disassembler against LLVM's, where that is installed, and its kinds of instructions.

#![allow(clippy::unwrap_used)]

mod category;
mod llvm;
mod objects;

use super::*;

/// Whether LLVM's disassembler is installed; prints `skipped:` if not.
pub(crate) fn llvm_is_there() -> bool {
    llvm::disassemble("gfx90a", "bf810000\n").is_some()
}

/// The dwords of an instruction in memory.
fn bytes(dwords: &[u32]) -> Vec<u8> {
    dwords
        .iter()
        .flat_map(|dword| dword.to_le_bytes())
        .collect()
}

#[test]
fn samples_of_all_instructions_are_printed() {
    for processor in table::PROCESSORS {
        let disassembler = Disassembler::new(processor.name).unwrap();
        for row in processor.rows {
            let found = disassembler.instruction(&bytes(row.sample), 0);
            assert_eq!(found.text, row.text, "{} {:x?}", processor.name, row.sample);
            assert_eq!(found.bytes as usize, 4 * row.sample.len(), "{}", row.text);
            assert_ne!(found.category, Category::Unknown, "{}", row.text);
        }
    }
}

#[test]
fn processors_are_found_by_target() {
    for name in [
        "gfx90a",
        "gfx90a:sramecc+:xnack-",
        "amdgcn-amd-amdhsa--gfx90a:sramecc+",
        "gfx1100",
        "gfx1102",
    ] {
        assert!(Disassembler::new(name).is_some(), "{name}");
    }
    assert!(Disassembler::new("gfx000").is_none());
}

#[test]
fn what_is_no_instruction_is_data() {
    let disassembler = Disassembler::new("gfx90a").unwrap();
    let text = |code: &[u8]| {
        let found = disassembler.instruction(code, 0);
        (found.text, found.bytes, found.category)
    };
    assert_eq!(
        text(&bytes(&[0xffff_ffff, 0])),
        (".long 0xffffffff".into(), 4, Category::Unknown)
    );
    // The literal is cut off.
    assert_eq!(
        text(&bytes(&[0x0208_0cff])),
        (".long 0x02080cff".into(), 4, Category::Unknown)
    );
    assert_eq!(
        text(&[1, 2]),
        (".byte 0x01; .byte 0x02".into(), 2, Category::Unknown)
    );
    assert_eq!(text(&[]), (String::new(), 0, Category::Unknown));
}
