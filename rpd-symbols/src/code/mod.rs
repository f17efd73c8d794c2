//! Code of the GPU: from the bytes of code objects to instructions and lines of source code.

mod accesses;
mod cubin;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use rpd_core::ids::{CodeObjectId, StringId};
use rpd_core::session::Session;
use rpd_core::session::code::{Code, CodeLine, Instruction, SourceFile};
use rpd_gfx::codeobj;
use rpd_gfx::disasm::Disassembler;
use rpd_spool::regular_file::{self, Links};

pub use accesses::{AccessReport, LineAccesses, access_report};
pub use rpd_gfx::source::{DebugInfo, Function, SourcePlace};

/// Bytes of a source file that is copied into results; longer ones are left out.
const LARGEST_SOURCE: u64 = 8 << 20;
/// Bytes of all source files of a session.
const ALL_SOURCES: u64 = 128 << 20;

/// Disassembles every function that PC samples or traced instructions of the session are in, looks up its source lines, and reads the source files
/// where `sources` requests it and they are readable. `session.code.instructions` and what they refer to are replaced.
pub fn look_up_code(session: &mut Session, sources: bool) {
    // Sorted, so that objects and functions come in the same order in every run.
    let mut wanted: BTreeMap<CodeObjectId, BTreeSet<u64>> = BTreeMap::new();
    let samples = &session.samples;
    let mut last = (CodeObjectId(0), u64::MAX);
    for index in samples.indices() {
        let place = (samples.object[index], samples.offset[index]);
        // Consecutive samples are often at one instruction; the test saves the search in the set.
        if place != last && place.0 != CodeObjectId(0) {
            wanted.entry(place.0).or_default().insert(place.1);
        }
        last = place;
    }
    for line in &session.thread_traces.lines {
        if line.object != CodeObjectId(0) {
            wanted.entry(line.object).or_default().insert(line.offset);
        }
    }
    for (place, _, _) in session.sample_counts.iter() {
        wanted.entry(place.object).or_default().insert(place.offset);
    }
    let mut code = std::mem::take(&mut session.code);
    // Results of an earlier look-up would be doubled.
    code.instructions.clear();
    code.lines.clear();
    code.sources.clear();
    code.problems.clear();
    let mut modules = cubin::Modules::new(session);
    for (object, offsets) in wanted {
        let image = code.image(object).cloned();
        if modules.has(object) {
            let bytes = image.as_ref().map(|image| &image.bytes[..]);
            modules.decode(session, &mut code, object, bytes, &offsets);
            continue;
        }
        let Some(image) = image else {
            code.problems.push(format!(
                "the bytes of code object {object} are not in the recording: {} of its instructions are shown by offset only",
                offsets.len()
            ));
            continue;
        };
        if let Err(problem) = decode(session, &mut code, object, &image.bytes, &offsets) {
            code.problems
                .push(format!("code object {object}: {problem}"));
        }
    }
    // Readers search instructions by object and offset.
    code.instructions
        .sort_by_key(|instruction| (instruction.object, instruction.offset));
    if sources {
        read_sources(session, &mut code);
    }
    session.code = code;
}

/// Adds the functions of a code object that have code at one of these offsets.
fn decode(
    session: &mut Session,
    code: &mut Code,
    object: CodeObjectId,
    bytes: &[u8],
    offsets: &BTreeSet<u64>,
) -> Result<(), String> {
    let file = DebugInfo::parse(bytes)?;
    let known = session.code_objects.iter().find(|known| known.id == object);
    let bias = known.map_or(0, rpd_core::session::CodeObject::address_bias);
    let target = codeobj::CodeObject::parse(bytes)
        .map(|parsed| parsed.target().processor.clone())
        .map_err(|error| error.to_string())?;
    let disassembler = Disassembler::new(&target);
    // Lines and functions are still of use without disassembly.
    if disassembler.is_none() {
        code.problems.push(format!(
            "code object {object} is for {target}, which this build cannot disassemble: its instructions have no text"
        ));
    }
    if let Some(problem) = file.problem() {
        code.problems
            .push(format!("code object {object}: {problem}"));
    }
    let mut writer = Writer {
        list: InstructionList::new(session, code, object),
        file: &file,
        bias,
    };
    let mut done: HashSet<u64> = HashSet::new();
    for &offset in offsets {
        let address = offset.wrapping_add(bias);
        let function = file.function_at(address);
        // An address in no function is one instruction by itself: where the next begins nobody can tell.
        let (Some(function), Some(disassembler)) = (function, &disassembler) else {
            let name = function.map(|function| function.name.clone());
            let text = disassembler.as_ref().and_then(|disassembler| {
                let bytes = file.code_at(address, 64);
                (!bytes.is_empty()).then(|| disassembler.instruction(bytes, address))
            });
            let (text, length) = match text {
                Some(found) => (found.text, found.bytes),
                None => (String::new(), 4),
            };
            writer.add(address, length, &text, name.as_deref());
            continue;
        };
        // Several samples are in one function, which is listed once.
        if !done.insert(function.address) {
            continue;
        }
        let bytes = file.code_at(function.address, function.size);
        for (address, instruction) in disassembler.instructions(bytes, function.address) {
            writer.add(
                address,
                instruction.bytes,
                &instruction.text,
                Some(&function.name),
            );
        }
    }
    Ok(())
}

struct Writer<'a> {
    list: InstructionList<'a>,
    file: &'a DebugInfo<'a>,
    bias: u64,
}

impl Writer<'_> {
    fn add(&mut self, address: u64, length: u32, text: &str, function: Option<&str>) {
        let places = self.file.places(address);
        let offset = address.wrapping_sub(self.bias);
        self.list.add(offset, length, text, function, places);
    }
}

/// Adds the instructions of a code object to a session's.
struct InstructionList<'a> {
    session: &'a mut Session,
    code: &'a mut Code,
    object: CodeObjectId,
    /// Runs of lines that are there: most instructions have the places of the one before.
    runs: HashMap<Vec<CodeLine>, (u32, u32)>,
}

impl<'a> InstructionList<'a> {
    fn new(
        session: &'a mut Session,
        code: &'a mut Code,
        object: CodeObjectId,
    ) -> InstructionList<'a> {
        InstructionList {
            session,
            code,
            object,
            runs: HashMap::new(),
        }
    }

    /// Adds an instruction: `places` are its source lines, innermost first.
    fn add(
        &mut self,
        offset: u64,
        length: u32,
        text: &str,
        function: Option<&str>,
        places: Vec<SourcePlace>,
    ) {
        let strings = &mut self.session.strings;
        let lines: Vec<CodeLine> = places
            .into_iter()
            .map(|place| CodeLine {
                function: place
                    .function
                    .map_or(StringId(0), |name| strings.intern(&name)),
                file: strings.intern(&place.file),
                line: place.line,
                column: place.column,
            })
            .collect();
        let all = &mut self.code.lines;
        // Instructions in a row mostly have the same lines: each run of lines is stored once.
        let (first_line, lines) = *self.runs.entry(lines).or_insert_with_key(|lines| {
            let first = all.len() as u32;
            all.extend_from_slice(lines);
            (first, lines.len() as u32)
        });
        self.code.instructions.push(Instruction {
            object: self.object,
            offset,
            length,
            text: strings.intern(text),
            function: function.map_or(StringId(0), |name| strings.intern(name)),
            first_line,
            lines,
        });
    }
}

/// Reads the source files that lines refer to.
fn read_sources(session: &Session, code: &mut Code) {
    let files: BTreeSet<StringId> = code.lines.iter().map(|line| line.file).collect();
    let mut left = ALL_SOURCES;
    for path in files {
        let name = session.strings.get(path);
        if name.is_empty() {
            continue;
        }
        let limit = LARGEST_SOURCE.min(left);
        if let Ok(bytes) = regular_file::read(Path::new(name), Links::Follow, limit) {
            left = left.saturating_sub(bytes.len() as u64);
            code.sources.push(SourceFile {
                path,
                text: String::from_utf8_lossy(&bytes).into_owned(),
            });
        }
    }
}
