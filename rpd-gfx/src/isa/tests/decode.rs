use super::*;
use crate::isa::inst::Format;
use machine::listing;

/// Every instruction of the test code objects is known.
#[test]
fn all_instructions_of_the_test_objects_are_decoded() {
    for (set, level, bytes) in all_objects() {
        let module = Module::load(bytes);
        let symbols = module.object.symbols();
        let mut unknown = Vec::new();
        let mut count = 0;
        for symbol in symbols
            .iter()
            .filter(|s| s.kind == crate::codeobj::object::SymbolKind::Function)
        {
            let start = symbol.value.wrapping_add(module.image.delta());
            let mut at = start;
            while at < start + symbol.size {
                let words = module.program.words(at);
                let inst = crate::isa::program::decode(words, set);
                let is_unknown = std::ptr::fn_addr_eq(
                    inst.run,
                    crate::isa::inst::Inst::unknown(Format::Unknown, 0).run,
                );
                if is_unknown {
                    unknown.push(format!(
                        "{}+{:#x}: {:08x} {:08x}",
                        symbol.name,
                        at - start,
                        words[0],
                        words[1]
                    ));
                }
                at += u64::from(inst.words) * 4;
                count += 1;
            }
            assert_eq!(at, start + symbol.size, "{level} {}", symbol.name);
        }
        assert!(count > 500, "{count}");
        assert!(unknown.is_empty(), "{level}: {unknown:#?}");
    }
}

fn is_unknown(inst: &crate::isa::inst::Inst) -> bool {
    let unknown = crate::isa::inst::Inst::unknown(Format::Unknown, 0);
    std::ptr::fn_addr_eq(inst.run, unknown.run)
}

/// Every instruction of each target is decoded, and is executed or refused as the table says.
#[test]
fn instructions_are_executed_or_refused_as_the_table_says() {
    for &set in InstructionSet::ALL {
        let rows = listing(set);
        assert!(rows.len() > 1400);
        let mut wrong = Vec::new();
        for row in &rows {
            let inst = crate::isa::program::decode(row.sample, set);
            assert_eq!(inst.format.name(), row.encoding, "{}", row.name);
            assert_eq!(u32::from(inst.opcode), row.opcode, "{}", row.name);
            let refused = inst.refused(set.processor()) == Some(row.name);
            if is_unknown(&inst) == row.executed || refused == row.executed {
                let processor = set.processor();
                wrong.push(format!(
                    "{processor} {} {:#x} {}",
                    row.encoding, row.opcode, row.name
                ));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

/// Opcodes that the table does not have are not decoded as other instructions.
#[test]
fn opcodes_that_no_table_has_are_decoded_as_unknown() {
    for &set in InstructionSet::ALL {
        let mut wrong = std::collections::BTreeSet::new();
        let mut random = Random(9);
        for word in (0..1 << 16).map(|high: u32| high << 16) {
            for low in [0, 0x4000, 0x8000, 0xbf, 0x102, 0xfe00] {
                let low = low | random.next() as u32 & 0x3f00;
                let inst = crate::isa::program::decode([word | low, random.next() as u32, 0], set);
                let listed = crate::disasm::find(set.processor(), inst.format.name(), inst.opcode);
                if !is_unknown(&inst) && listed.is_none() {
                    wrong.insert(format!("{} {:#x}", inst.format.name(), inst.opcode));
                }
            }
        }
        assert!(wrong.is_empty(), "{}: {wrong:#?}", set.processor());
    }
}

/// The tables are equal to LLVM's, where LLVM is installed.
#[test]
fn instruction_tables_equal_those_of_llvm() {
    use std::process::Command;
    if !crate::disasm::tests::llvm_is_there() {
        return;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/data/list-instructions.py");
    for processor in crate::disasm::Disassembler::processors() {
        let check = Command::new("python3")
            .arg(script)
            .args([processor, "--check"])
            .output()
            .unwrap();
        assert!(
            check.status.success(),
            "{}",
            String::from_utf8_lossy(&check.stderr)
        );
    }
}

/// The error for a refused instruction names it and its location.
#[test]
fn faults_name_refused_instructions() {
    let said = |code: &[u32]| {
        machine::execute(code, &Everything, |_| {}, |x| x.fault.clone())
            .unwrap()
            .to_string()
    };
    assert_eq!(
        said(&machine::sample("s_store_dword")),
        "the simulator does not execute `s_store_dword`: c0420202 00000010 (SMEM opcode 0x10) in kernel `snippet`, \
         offset 0x0 of the kernel, workgroup 0, wave 0, lanes 0-63"
    );
    assert_eq!(
        said(&[0xbf80_0000, 0xbeff_ff00, 0]),
        "unknown instruction beffff00 00000000 (SOP1 opcode 0xff) in kernel `snippet`, offset 0x4 of the kernel, \
         workgroup 0, wave 0, lanes 0-63"
    );
}
