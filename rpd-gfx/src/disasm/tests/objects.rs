//! Compares the disassembly of all code objects in the tree with that of LLVM.

use super::*;
use crate::codeobj::object::SymbolKind;
use crate::codeobj::{CodeObject, bundle};
use crate::device::{DEVICES, Device};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The files with code objects or bundles below a directory.
fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        let is = |end: &str| path.extension().is_some_and(|extension| extension == end);
        if path.is_dir() {
            files(&path, found);
        } else if is("co") || is("hipfb") {
            found.push(path);
        }
    }
}

/// The code objects of all files, with a name for messages.
fn objects() -> Vec<(String, CodeObject)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut paths = Vec::new();
    for directory in ["rpd-gfx/testdata", "rpd-sim/src", "tests/workloads"] {
        files(&root.join(directory), &mut paths);
    }
    paths.sort();
    let mut objects = Vec::new();
    for path in paths {
        let bytes = std::fs::read(&path).unwrap();
        if let Ok(object) = CodeObject::parse(&bytes) {
            objects.push((path.display().to_string(), object));
            continue;
        }
        let others = [bundle::Target::parse("gfx1100").unwrap()];
        for target in DEVICES.iter().map(Device::target).chain(others) {
            if let Ok(object) = bundle::pick(&bytes, &target) {
                let name = format!("{} for {}", path.display(), target.processor);
                objects.push((name, CodeObject::parse(&object).unwrap()));
            }
        }
    }
    objects
}

#[test]
fn code_objects_are_disassembled_as_llvm_does() {
    let objects = objects();
    assert!(objects.len() > 10, "{}", objects.len());
    let rdna = |(_, object): &&(String, CodeObject)| object.target().processor == "gfx1100";
    assert!(objects.iter().filter(rdna).count() > 5);
    let mut total = 0;
    for (name, object) in &objects {
        let processor = &object.target().processor;
        let disassembler =
            Disassembler::new(processor).unwrap_or_else(|| panic!("{name}: {processor}"));
        let (mut lines, mut found) = (String::new(), Vec::new());
        for symbol in object
            .symbols()
            .iter()
            .filter(|symbol| symbol.kind == SymbolKind::Function)
        {
            let holds = |segment: &&crate::codeobj::object::Segment| {
                segment.executable
                    && (segment.address..segment.address + segment.file_size)
                        .contains(&symbol.value)
            };
            let segment = object.segments().iter().find(holds).unwrap();
            let start = (segment.offset + symbol.value - segment.address) as usize;
            let code = &object.bytes()[start..start + symbol.size as usize];
            let mut at = 0;
            for (pc, instruction) in disassembler.instructions(code, 0) {
                assert_eq!(pc as usize, at, "{name} {}", symbol.name);
                at += instruction.bytes as usize;
                let words: Vec<_> = code[pc as usize..at]
                    .chunks_exact(4)
                    .map(|dword| u32::from_le_bytes(dword.try_into().unwrap()))
                    .collect();
                writeln!(lines, "{}", llvm::line(&words)).unwrap();
                if let Flow::Branch(target) | Flow::Conditional(target) = instruction.flow {
                    assert!(
                        target <= code.len() as u64,
                        "{name} {}+{pc:#x} {target:#x}",
                        symbol.name
                    );
                }
                found.push(instruction);
            }
        }
        total += found.len();
        let Some(texts) = llvm::disassemble(processor, &lines) else {
            continue;
        };
        assert_eq!(texts.len(), found.len(), "{name}");
        for (text, found) in texts.iter().zip(&found) {
            if text.is_empty() {
                assert_eq!(found.category, Category::Unknown, "{name}: {}", found.text);
            } else {
                assert_eq!(found.text, *text, "{name}");
            }
        }
    }
    println!("{total} instructions in {} code objects", objects.len());
}
