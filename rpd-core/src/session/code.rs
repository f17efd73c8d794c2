//! Code of the GPU: the bytes of code objects, and what is known of their instructions.
//!
//! Bytes come with the recording. Instructions and source lines are looked up when the run is over, for the functions that
//! PC samples were taken in, and are kept in databases.

use std::collections::HashMap;
use std::sync::Arc;

use super::Strings;
use crate::column::Column;
use crate::ids::{AgentHandle, CodeObjectId, StringId};
use crate::number_map::NumberMap;
use crate::spool::options::{SamplingMethod, SamplingUnit};

/// Sampling configuration of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    /// Handle of the agent.
    pub agent: AgentHandle,
    /// Sampling method.
    pub method: SamplingMethod,
    /// Unit of the interval.
    pub unit: SamplingUnit,
    /// Interval between samples, in `unit`.
    pub interval: u64,
}

/// The bytes of code objects, which several may share.
#[derive(Debug, Clone)]
pub struct CodeImage {
    /// A hash of the bytes, by which records refer to them.
    pub content: [u64; 2],
    /// The bytes: an ELF file.
    pub bytes: Arc<Column<u8>>,
}

/// A place in source code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CodeLine {
    /// Function, as people write it; 0 is unknown.
    pub function: StringId,
    /// Source file.
    pub file: StringId,
    /// Line in it, from 1; 0 is none.
    pub line: u32,
    /// Column in that, from 1; 0 is none.
    pub column: u32,
}

/// An instruction of a code object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// Code object.
    pub object: CodeObjectId,
    /// Its begin, from the load address of the code object.
    pub offset: u64,
    /// Size in bytes.
    pub length: u32,
    /// As an assembler takes it; 0 when it could not be decoded.
    pub text: StringId,
    /// The function that it is in, as registered: the name of a symbol; 0 is none.
    pub function: StringId,
    /// First of its places in [`Code::lines`].
    pub first_line: u32,
    /// Number of its places: its own line, then the lines of the calls that were inlined there, innermost first.
    pub lines: u32,
}

/// A source file that was there when the run was over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Its path in the debug information.
    pub path: StringId,
    /// Content of the file.
    pub text: String,
}

/// Code of the GPU.
#[derive(Debug, Default)]
pub struct Code {
    /// Distinct bytes of code objects, in the order in which they were first loaded.
    pub images: Vec<CodeImage>,
    /// Index into [`Code::images`] of each code object whose bytes are known.
    pub image_of: HashMap<CodeObjectId, u32>,
    /// Instructions by code object, then offset.
    pub instructions: Vec<Instruction>,
    /// Places in source code that instructions refer to.
    pub lines: Vec<CodeLine>,
    /// Source files by path.
    pub sources: Vec<SourceFile>,
    /// Problems for the user, one sentence each.
    pub problems: Vec<String>,
}

impl Code {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.images.is_empty() && self.instructions.is_empty()
    }

    /// The bytes of a code object.
    pub fn image(&self, object: CodeObjectId) -> Option<&CodeImage> {
        self.images.get(*self.image_of.get(&object)? as usize)
    }

    /// Index of the instruction that begins at `offset`.
    pub fn find(&self, object: CodeObjectId, offset: u64) -> Option<usize> {
        let found = self
            .instructions
            .binary_search_by_key(&(object, offset), |known| (known.object, known.offset));
        found.ok()
    }

    /// The places of an instruction, innermost first.
    pub fn lines_of(&self, instruction: &Instruction) -> &[CodeLine] {
        let first = instruction.first_line as usize;
        self.lines
            .get(first..first + instruction.lines as usize)
            .unwrap_or_default()
    }

    /// Places of an instruction as the original shows them: `file:line`, outermost call first, joined by arrows.
    pub fn comment(&self, strings: &Strings, instruction: &Instruction) -> String {
        let places = self.lines_of(instruction).iter().rev();
        let known = places.filter(|place| place.file != StringId(0));
        let texts: Vec<String> = known
            .map(|place| format!("{}:{}", strings.get(place.file), place.line))
            .collect();
        texts.join(" -> ")
    }

    /// The text of a source file.
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

    /// Index into [`Code::instructions`] of the one that begins at `offset`.
    #[inline]
    pub fn find(&mut self, object: CodeObjectId, offset: u64) -> Option<u32> {
        let code = self.code;
        *self
            .known
            .entry((object, offset))
            .or_insert_with(|| code.find(object, offset).map(|index| index as u32))
    }
}
