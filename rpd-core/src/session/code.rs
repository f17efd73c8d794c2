//! Code of the GPU: the bytes of code objects, their instructions and source lines.
//!
//! The bytes are part of the recording. Instructions and source lines are looked up after the run, for the functions
//! that were sampled or traced, and are stored in databases.

use std::collections::HashMap;
use std::sync::Arc;

use super::Strings;
use crate::ids::{AgentHandle, CodeObjectId, StringId};
use crate::spool::options::{SamplingMethod, SamplingUnit};
use crate::storage::column::Column;
use crate::storage::number_map::NumberMap;

/// Settings with which an agent was PC-sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    /// The sampled agent.
    pub agent: AgentHandle,
    /// Stochastic or host trap.
    pub method: SamplingMethod,
    /// Unit of the interval.
    pub unit: SamplingUnit,
    /// Distance between two samples, in `unit`.
    pub interval: u64,
}

/// The ELF image of a code object. Code objects with the same bytes share it.
#[derive(Debug, Clone)]
pub struct CodeImage {
    /// Hash of the bytes, which identifies the image in the spool.
    pub content: [u64; 2],
    /// The whole ELF file.
    pub bytes: Arc<Column<u8>>,
}

/// A line of source code, with the function it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CodeLine {
    /// Demangled name of the function; 0 when it is not known.
    pub function: StringId,
    /// Path of the source file in the debug information; 0 when it is not known.
    pub file: StringId,
    /// Line number from 1; 0 when it is not known.
    pub line: u32,
    /// Column number from 1; 0 when it is not known.
    pub column: u32,
}

/// A decoded instruction of a code object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// Code object that has the instruction.
    pub object: CodeObjectId,
    /// Offset of its first byte from the load address of the code object, in bytes.
    pub offset: u64,
    /// Size of the instruction in bytes.
    pub length: u32,
    /// Disassembly, as an assembler accepts it; 0 when it could not be decoded.
    pub text: StringId,
    /// Symbol of the function that has the instruction, mangled; 0 when there is none.
    pub function: StringId,
    /// Index of its first line in [`Code::lines`].
    pub first_line: u32,
    /// Number of its lines there: its own, then those of the calls that were inlined around it, innermost first. 0
    /// without debug information.
    pub lines: u32,
}

/// A source file that could be read after the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Path of the file in the debug information.
    pub path: StringId,
    /// Content of the file when it was read.
    pub text: String,
}

/// Images, instructions and source lines of a session's kernels.
#[derive(Debug, Default)]
pub struct Code {
    /// ELF images, each once, in the order in which they were first loaded.
    pub images: Vec<CodeImage>,
    /// Index into [`Code::images`], by code object. A code object whose bytes were not recorded has none.
    pub image_of: HashMap<CodeObjectId, u32>,
    /// Instructions, ordered by code object, then offset.
    pub instructions: Vec<Instruction>,
    /// Lines that instructions refer to by [`Instruction::first_line`].
    pub lines: Vec<CodeLine>,
    /// Source files that could be read, ordered by path.
    pub sources: Vec<SourceFile>,
    /// Messages for the user about code that could not be decoded or looked up, one sentence each.
    pub problems: Vec<String>,
}

impl Code {
    /// Whether there are neither bytes nor instructions.
    pub fn is_empty(&self) -> bool {
        self.images.is_empty() && self.instructions.is_empty()
    }

    /// The ELF image of a code object; `None` when its bytes were not recorded.
    pub fn image(&self, object: CodeObjectId) -> Option<&CodeImage> {
        self.images.get(*self.image_of.get(&object)? as usize)
    }

    /// Index into [`Code::instructions`] of the instruction that begins at `offset` bytes from the load address; `None`
    /// when none does.
    pub fn find(&self, object: CodeObjectId, offset: u64) -> Option<usize> {
        let found = self
            .instructions
            .binary_search_by_key(&(object, offset), |known| (known.object, known.offset));
        found.ok()
    }

    /// The source lines of an instruction, innermost first; empty without debug information.
    pub fn lines_of(&self, instruction: &Instruction) -> &[CodeLine] {
        let first = instruction.first_line as usize;
        self.lines
            .get(first..first + instruction.lines as usize)
            .unwrap_or_default()
    }

    /// The source lines of an instruction as rocprofv3 writes them: `file:line`, outermost call first, joined by ` ->
    /// `.
    pub fn comment(&self, strings: &Strings, instruction: &Instruction) -> String {
        let places = self.lines_of(instruction).iter().rev();
        let known = places.filter(|place| place.file != StringId(0));
        let texts: Vec<String> = known
            .map(|place| format!("{}:{}", strings.get(place.file), place.line))
            .collect();
        texts.join(" -> ")
    }

    /// The text of a source file, by the path in the debug information; `None` when it could not be read.
    pub fn source(&self, path: StringId) -> Option<&str> {
        let found = self.sources.iter().find(|source| source.path == path);
        found.map(|source| source.text.as_str())
    }
}

/// Finds instructions by address; results are cached, because most samples are at few instructions.
#[derive(Debug)]
pub struct InstructionIndex<'a> {
    code: &'a Code,
    known: NumberMap<(CodeObjectId, u64), Option<u32>>,
}

impl<'a> InstructionIndex<'a> {
    /// An index of the instructions in `code`.
    pub fn new(code: &'a Code) -> InstructionIndex<'a> {
        InstructionIndex {
            code,
            known: NumberMap::default(),
        }
    }

    /// Index into [`Code::instructions`] of the instruction that begins at `offset` bytes from the load address; `None`
    /// when none does.
    #[inline]
    pub fn find(&mut self, object: CodeObjectId, offset: u64) -> Option<u32> {
        let code = self.code;
        *self
            .known
            .entry((object, offset))
            .or_insert_with(|| code.find(object, offset).map(|index| index as u32))
    }
}
