//! Code of NVIDIA GPUs: `nvdisasm`, a part of CUDA's toolkit, disassembles it and knows its source lines. The encoding of the
//! instructions is not public. Without the tool instructions have an offset and no text.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use rpd_core::ids::{CodeObjectId, KernelId};
use rpd_core::session::Session;
use rpd_core::session::code::Code;
use rpd_core::storage::temporary::TemporaryFile;

use super::{InstructionList, SourcePlace};

/// The disassembler.
const TOOL: &str = "nvdisasm";
/// Where CUDA's toolkit is, if the user does not say otherwise.
const TOOLKIT: &str = "/usr/local/cuda";
/// Longest time that the disassembler may take for a module.
const PATIENCE: Duration = Duration::from_secs(60);
/// Most bytes of its output that are read.
const LONGEST: u64 = 1 << 30;
/// Bytes of an instruction on devices that can be sampled (compute capability 7.0 and later).
const LENGTH: u32 = 16;

/// The modules with samples.
pub(super) struct Modules {
    /// Names of sampled functions, by module and number of the function's symbol.
    functions: HashMap<CodeObjectId, BTreeMap<u32, String>>,
    /// The disassembler, or why there is none; `None` before it was looked for.
    tool: Option<Option<PathBuf>>,
}

/// Number of the function's symbol and offset in the function, of an offset in a module.
fn parts(offset: u64) -> (u32, u64) {
    ((offset >> 32) as u32, offset & u64::from(u32::MAX))
}

impl Modules {
    /// The modules that a session has sums of samples of.
    pub(super) fn new(session: &Session) -> Modules {
        let symbols = session.kernel_symbols.iter();
        let names: HashMap<KernelId, &str> =
            symbols.map(|symbol| (symbol.id, &*symbol.name)).collect();
        let mut functions: HashMap<CodeObjectId, BTreeMap<u32, String>> = HashMap::new();
        for (place, _, _) in session.sample_counts.iter() {
            let name = names.get(&place.kernel).copied().unwrap_or_default();
            functions
                .entry(place.object)
                .or_default()
                .entry(parts(place.offset).0)
                .or_insert_with(|| name.to_owned());
        }
        Modules {
            functions,
            tool: None,
        }
    }

    /// Whether a code object is a module with samples.
    pub(super) fn has(&self, object: CodeObjectId) -> bool {
        self.functions.contains_key(&object)
    }

    /// Adds the instructions of the functions that are sampled, or only those at the sampled offsets when nothing more can be
    /// known; `code` gets the reason.
    pub(super) fn decode(
        &mut self,
        session: &mut Session,
        code: &mut Code,
        object: CodeObjectId,
        bytes: Option<&[u8]>,
        offsets: &BTreeSet<u64>,
    ) {
        let functions = self.functions.remove(&object).unwrap_or_default();
        let found = match bytes {
            Some(bytes) => self.disassemble(bytes, &functions),
            None => Err("its bytes are not in the recording".to_owned()),
        };
        let listing = found.unwrap_or_else(|problem| {
            if !problem.is_empty() {
                code.problems.push(format!(
                    "code object {object}: {problem}: its instructions are shown by their offset, without source lines"
                ));
            }
            HashMap::new()
        });
        let mut list = InstructionList::new(session, code, object);
        for (number, name) in &functions {
            let own = u64::from(*number) << 32;
            let instructions = listing.get(name).map_or(&[][..], |found| found);
            for instruction in instructions {
                list.add(
                    own | instruction.offset,
                    LENGTH,
                    &instruction.text,
                    Some(name),
                    instruction.places.clone(),
                );
            }
            let known: BTreeSet<u64> = instructions.iter().map(|one| one.offset).collect();
            for offset in offsets.range(own..=own | u64::from(u32::MAX)) {
                if !known.contains(&parts(*offset).1) {
                    list.add(*offset, LENGTH, "", Some(name), Vec::new());
                }
            }
        }
    }

    /// The instructions of functions, by name. The error is empty where the reason was given before.
    fn disassemble(
        &mut self,
        bytes: &[u8],
        functions: &BTreeMap<u32, String>,
    ) -> Result<HashMap<String, Vec<SassInstruction>>, String> {
        let is_known = self.tool.is_some();
        let tool = self.tool.get_or_insert_with(find);
        let Some(tool) = tool else {
            // Once for all modules.
            let missing = format!(
                "there is no {TOOL}, a part of CUDA's toolkit (looked in PATH, in $CUDA_HOME/bin and in {TOOLKIT}/bin)"
            );
            return Err(if is_known { String::new() } else { missing });
        };
        let numbers: Vec<String> = functions.keys().map(u32::to_string).collect();
        let text = run(tool, bytes, &numbers.join(","))
            .map_err(|problem| format!("{}: {problem}", tool.display()))?;
        Ok(parse(&text))
    }
}

/// The disassembler's file.
fn find() -> Option<PathBuf> {
    let own = std::env::var_os("CUDA_HOME").map(PathBuf::from);
    let toolkits = own.into_iter().chain([PathBuf::from(TOOLKIT)]);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories: Vec<PathBuf> = std::env::split_paths(&path)
        .chain(toolkits.map(|toolkit| toolkit.join("bin")))
        .collect();
    let files = directories.iter().map(|directory| directory.join(TOOL));
    files.into_iter().find(|file| file.is_file())
}

/// Disassembles a module: the functions whose symbols have these numbers.
fn run(tool: &Path, module: &[u8], functions: &str) -> Result<String, String> {
    let said = |what: &str, error: std::io::Error| format!("{what}: {error}");
    let mut file = TemporaryFile::new().map_err(|error| said("no temporary file", error))?;
    file.file()
        .write_all(module)
        .map_err(|error| said("writing a temporary file", error))?;
    let mut child = Command::new(tool)
        .args(["-c", "-gi", "-fun", functions])
        .arg(file.path())
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| said("cannot be run", error))?;
    let output = child.stdout.take();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut text = Vec::new();
        let read = output.map(|output| output.take(LONGEST).read_to_end(&mut text));
        let _ = sender.send(read.map(|read| read.map(|_| text)));
    });
    let text = receiver.recv_timeout(PATIENCE);
    if text.is_err() {
        let _ = child.kill();
    }
    let status = child
        .wait()
        .map_err(|error| said("waiting for it", error))?;
    match text {
        Ok(Some(Ok(text))) if status.success() => Ok(String::from_utf8_lossy(&text).into_owned()),
        Ok(Some(Ok(_))) => Err(format!("it refused the module ({status})")),
        Ok(Some(Err(error))) => Err(said("reading its output", error)),
        Ok(None) => Err("its output cannot be read".to_owned()),
        Err(RecvTimeoutError::Timeout) => {
            Err(format!("it was ended after {} s", PATIENCE.as_secs()))
        }
        Err(RecvTimeoutError::Disconnected) => Err("its output was not read".to_owned()),
    }
}

/// An instruction of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SassInstruction {
    /// Offset from the begin of the function, in bytes.
    offset: u64,
    text: String,
    /// Source lines, innermost first.
    places: Vec<SourcePlace>,
}

/// The instructions in the output of the disassembler, by the name of their function.
fn parse(text: &str) -> HashMap<String, Vec<SassInstruction>> {
    let mut functions: HashMap<String, Vec<SassInstruction>> = HashMap::new();
    let mut function = None;
    let mut places: Vec<SourcePlace> = Vec::new();
    // Lines that stand together belong together: the next ones after an instruction replace them.
    let mut are_open = false;
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with(".section") {
            function = None;
        } else if let Some(name) = line
            .strip_prefix(".text.")
            .and_then(|rest| rest.strip_suffix(':'))
        {
            function = Some(name.to_owned());
            places.clear();
        } else if let Some(place) = line.strip_prefix("//## File ") {
            if !are_open {
                places.clear();
                are_open = true;
            }
            places.extend(place_of(place));
        } else if let Some((offset, text)) = instruction(line) {
            are_open = false;
            if let Some(function) = &function {
                let own = functions.entry(function.clone()).or_default();
                own.push(SassInstruction {
                    offset,
                    text,
                    places: places.clone(),
                });
            }
        }
    }
    functions
}

/// The place that a line says: `"FILE", line NUMBER`, and maybe more. The place of the call that was inlined there has a line of
/// its own after it.
fn place_of(text: &str) -> Option<SourcePlace> {
    let (file, rest) = text.strip_prefix('"')?.split_once("\", line ")?;
    let digits = rest.split(|letter: char| !letter.is_ascii_digit()).next()?;
    Some(SourcePlace {
        function: None,
        file: file.into(),
        line: digits.parse().ok()?,
        column: 0,
    })
}

/// Offset and text of a line with an instruction: `/*0010*/ TEXT ;`.
fn instruction(line: &str) -> Option<(u64, String)> {
    let (offset, text) = line.strip_prefix("/*")?.split_once("*/")?;
    let offset = u64::from_str_radix(offset, 16).ok()?;
    let text = text.split_once(';').map_or(text, |(text, _)| text).trim();
    (!text.is_empty()).then(|| (offset, text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\t.target\tsm_90\n\
        \t.section\t.text._Z4mathPf,\"ax\",@progbits\n\
        _Z4mathPf:\n\
        .text._Z4mathPf:\n\
        \t//## File \"/src/a.cu\", line 15\n\
        \u{20}       /*0000*/                   LDC R1, c[0x0][0x28] ;\n\
        \t//## File \"/src/a.h\", line 3 inlined at \"/src/a.cu\", line 16\n\
        \t//## File \"/src/a.cu\", line 16\n\
        .L_x_1:\n\
        \u{20}       /*0010*/              @!P0 BRA `(.L_x_1) ;\n\
        \u{20}       /*0020*/                   EXIT ;\n\
        \t.section\t.nv.info,\"\"\n\
        \u{20}       /*0000*/ \t.byte\t0x04\n";

    #[test]
    fn parse_has_texts_and_source_lines_of_functions() {
        let functions = parse(OUTPUT);
        let found = &functions["_Z4mathPf"];
        let texts: Vec<(u64, &str)> = found.iter().map(|one| (one.offset, &*one.text)).collect();
        assert_eq!(
            texts,
            [
                (0, "LDC R1, c[0x0][0x28]"),
                (16, "@!P0 BRA `(.L_x_1)"),
                (32, "EXIT")
            ]
        );
        let lines = |one: &SassInstruction| -> Vec<(String, u32)> {
            let places = one.places.iter();
            places
                .map(|place| (place.file.to_string(), place.line))
                .collect()
        };
        assert_eq!(lines(&found[0]), [("/src/a.cu".to_owned(), 15)]);
        let inlined = [("/src/a.h".to_owned(), 3), ("/src/a.cu".to_owned(), 16)];
        assert_eq!(lines(&found[1]), inlined);
        assert_eq!(lines(&found[2]), inlined);
        assert_eq!(functions.len(), 1);
    }

    #[test]
    fn parse_passes_over_what_it_does_not_know() {
        for end in 0..OUTPUT.len() {
            if let Some(part) = OUTPUT.get(..end) {
                parse(part);
            }
        }
        assert!(parse("/*zz*/ X ;\n//## File no, line\n.text.:\n/*10*/ ;").is_empty());
    }
}
