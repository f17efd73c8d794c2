//! Compares the disassembler with LLVM's, where that is installed; tests the categories of instructions.

#![allow(clippy::unwrap_used)]

mod category;
mod llvm;
mod objects;

use super::*;
use rpd_tests::skips::skipped;

/// Whether LLVM's disassembler is installed; prints that the check is skipped otherwise.
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
fn a_sample_of_every_instruction_is_disassembled() {
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
fn the_manual_lists_the_processors_with_an_instruction_table() {
    let manual = include_str!("../../../../docs/thread-trace.md");
    let manual = manual.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, list) = manual.split_once("`rpd-gfx/data` has tables of: ").unwrap();
    let (list, _) = list.split_once(". ").unwrap();
    let named: Vec<&str> = list.split([',', ' ']).collect();
    for processor in table::PROCESSORS {
        assert!(named.contains(&processor.name), "{}", processor.name);
    }
}

#[test]
fn disassemblers_are_found_by_target() {
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
fn processors_without_a_table_are_disassembled_by_llvm() {
    for (processor, code, expected) in [
        (
            "gfx1200",
            &[0xbf94_ffff, 0xbfa1_fffe, 0xbfb0_0000][..],
            &[
                ("s_barrier_wait 0xffff", Category::Barrier, Flow::Next),
                (
                    "s_cbranch_scc0 65534",
                    Category::Branch,
                    Flow::Conditional(0x1000),
                ),
                ("s_endpgm", Category::End, Flow::End),
            ][..],
        ),
        (
            "amdgcn-amd-amdhsa--gfx908:sramecc+:xnack-",
            &[0xbf8c_c07f, 0xffff_ffff],
            &[
                ("s_waitcnt lgkmcnt(0)", Category::Wait, Flow::Next),
                (".long 0xffffffff", Category::Unknown, Flow::Next),
            ],
        ),
    ] {
        let Some(disassembler) = Disassembler::new(processor) else {
            skipped(
                &format!("disassembling {processor}"),
                "no libLLVM that knows the processor",
            );
            continue;
        };
        let found: Vec<_> = disassembler.instructions(&bytes(code), 0x1000).collect();
        let found: Vec<_> = (found.iter())
            .map(|(_, i)| (i.text.as_str(), i.category, i.flow))
            .collect();
        assert_eq!(found, expected, "{processor}");
    }
    assert_eq!(Disassembler::llvm_since("gfx950"), Some(20));
    assert_eq!(Disassembler::llvm_since("gfx000"), None);
}

#[test]
fn unknown_words_are_disassembled_as_data() {
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
