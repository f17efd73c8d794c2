//! Code objects that were loaded while a trace was made.

use std::collections::BTreeMap;

use rpd_gfx::codeobj::{self, CodeObject};
use rpd_gfx::disasm::{Disassembler, Instruction};
use rpd_gfx::source::Function;

use crate::record::Pc;
use crate::stitch::Code;

/// Greatest length of an instruction in bytes.
const LONGEST: usize = 20;

/// A code object whose instructions are looked up.
struct Object {
    file: CodeObject,
    disassembler: Option<Disassembler>,
    /// Functions in the order of their addresses.
    functions: Vec<Function>,
}

/// The code objects that a trace can refer to, by their ids.
#[derive(Default)]
pub struct CodeObjects {
    objects: BTreeMap<u64, Object>,
}

impl std::fmt::Debug for CodeObjects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.objects.keys()).finish()
    }
}

impl CodeObjects {
    /// Adds the code object with this id from the bytes of its ELF file; it replaces one with the same id.
    ///
    /// # Errors
    /// When it is not a code object.
    pub fn add(&mut self, id: u64, bytes: &[u8]) -> Result<(), codeobj::Error> {
        let file = CodeObject::parse(bytes)?;
        let functions = Function::all(file.bytes()).unwrap_or_default();
        let disassembler = Disassembler::new(&file.target().processor);
        self.objects.insert(
            id,
            Object {
                file,
                disassembler,
                functions,
            },
        );
        Ok(())
    }

    /// Removes a code object; false when there is none with this id.
    pub fn remove(&mut self, id: u64) -> bool {
        self.objects.remove(&id).is_some()
    }

    /// Ids of the code objects, in ascending order.
    pub fn ids(&self) -> impl Iterator<Item = u64> + '_ {
        self.objects.keys().copied()
    }

    /// Code objects for processors that cannot be disassembled here, with the processors' names.
    pub fn unreadable(&self) -> impl Iterator<Item = (u64, &str)> {
        (self.objects.iter())
            .filter(|(_, object)| object.disassembler.is_none())
            .map(|(id, object)| (*id, object.file.target().processor.as_str()))
    }

    /// Processor that a code object was compiled for, such as `gfx90a`; `None` for an unknown id.
    pub fn processor(&self, id: u64) -> Option<&str> {
        let object = self.objects.get(&id)?;
        Some(object.file.target().processor.as_str())
    }

    /// Function that contains an address.
    pub fn function(&self, pc: Pc) -> Option<&Function> {
        let functions = &self.objects.get(&pc.code_object)?.functions;
        Function::at(functions, pc.address)
    }

    /// The bytes of code from an address on, at most `most`.
    fn bytes(&self, pc: Pc, most: usize) -> Option<&[u8]> {
        let file = &self.objects.get(&pc.code_object)?.file;
        let segment = (file.segments().iter()).find(|segment| {
            segment.executable
                && pc.address >= segment.address
                && pc.address - segment.address < segment.file_size
        })?;
        let into = pc.address - segment.address;
        let from = usize::try_from(segment.offset.checked_add(into)?).ok()?;
        let left = usize::try_from(segment.file_size - into).ok()?;
        file.bytes().get(from..from.checked_add(left.min(most))?)
    }

    /// Decoded instruction at an address; `None` where no code or no valid instruction is.
    pub fn instruction(&self, pc: Pc) -> Option<Instruction> {
        let disassembler = self.objects.get(&pc.code_object)?.disassembler.as_ref()?;
        let bytes = self.bytes(pc, LONGEST)?;
        (bytes.len() >= 4).then(|| disassembler.instruction(bytes, pc.address))
    }
}

impl Code for &CodeObjects {
    fn instruction(&mut self, pc: Pc) -> Option<Instruction> {
        CodeObjects::instruction(self, pc)
    }
}
