use super::*;
use crate::isa::inst::Format;

/// Every instruction of the test code objects is known.
#[test]
fn decodes_all_instructions() {
    for (level, bytes) in OBJECTS {
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
                let inst = crate::isa::decode::decode(words);
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
