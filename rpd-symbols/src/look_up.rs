//! Frames of a session's locations.

use std::collections::{HashMap, HashSet};

use rpd_core::ids::StringId;
use rpd_core::session::Session;
use rpd_core::session::stacks::{LocationKind, StackFrame, StackLocation};
use rpd_stacks::python::line_table;

use crate::jit;
use crate::native::shorten;
use crate::{Frame, Module, NoFile};

/// Lookup of addresses of native code.
pub trait Symbols {
    /// The frames at addresses of a module, each innermost first and at least one for each address; `None` for an address
    /// that was not looked up.
    fn frames(&mut self, module: &Module, addresses: &[u64]) -> Vec<Option<Vec<Frame>>>;

    /// Reason why a module has no file that can be trusted; `None` when it has one, or was not looked for.
    fn problem(&self, module: &Module) -> Option<NoFile>;
}

/// Beginning of the names of the functions that run TorchScript.
const TORCH_SCRIPT: &str = "torch::jit::InterpreterStateImpl::run";
/// Mark of the functions that run TorchScript: the code that they run is not on the native stack.
const TORCH_SCRIPT_MARK: &str = " [TorchScript]";
/// Mark of a function whose frame was found by the frame pointer of code without unwind information.
pub(crate) const GUESS_MARK: &str = " [guessed]";
/// Evidence of addresses that were not looked up.
const LEFT_OUT: &str = "none: not looked up";

/// Counts and problems of lookups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Distinct addresses of native code.
    pub addresses: usize,
    /// Number of addresses that have a file and a line.
    pub with_lines: usize,
    /// Number of addresses that have only a function's name.
    pub with_names: usize,
    /// Number of addresses that were not looked up, because time was over.
    pub left_out: usize,
    /// Distinct places in Python code.
    pub python: usize,
    /// Modules without a file that can be trusted: path, and why.
    pub problems: Vec<(String, NoFile)>,
}

impl Report {
    /// Adds the report of another process.
    pub fn add(&mut self, other: Report) {
        self.addresses += other.addresses;
        self.with_lines += other.with_lines;
        self.with_names += other.with_names;
        self.left_out += other.left_out;
        self.python += other.python;
        for problem in other.problems {
            if !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        }
    }
}

/// Looks up every location of the session's stacks; `session.stacks.frames` is replaced. A session without stacks stays as
/// it is.
pub fn look_up(session: &mut Session, symbols: &mut dyn Symbols) -> Report {
    let mut report = Report::default();
    let mut frames = Vec::new();
    // A module that was loaded twice is one file.
    let mut native: HashMap<Module, Vec<(u32, u64)>> = HashMap::new();
    let mut guessed = HashSet::new();
    let locations = std::mem::take(&mut session.stacks.locations);
    for location in &locations {
        if location.kind == LocationKind::Guessed {
            guessed.insert(location.id);
        }
        match session.stacks.module_of(location) {
            Some(module) => {
                let file = Module {
                    path: session.strings.get(module.path).to_owned(),
                    build_id: Some(module.build_id.clone()).filter(|id| !id.is_empty()),
                };
                let places = native.entry(file).or_default();
                places.push((location.id, location.offset));
            }
            None => frames.extend(frames_outside_files(session, location, &mut report)),
        }
    }
    session.stacks.locations = locations;
    // What names code that was made at run time is gone with the run.
    let known = std::mem::take(&mut session.stacks.frames);
    for own in known.into_iter().filter(jit::is_named) {
        frames.retain(|frame: &StackFrame| frame.location != own.location);
        frames.push(own);
    }
    for (module, mut places) in native {
        // Ascending addresses let the symbolizer go through its tables once.
        places.sort_unstable_by_key(|&(id, address)| (address, id));
        let addresses: Vec<u64> = places.iter().map(|&(_, address)| address).collect();
        let answers = symbols.frames(&module, &addresses);
        for ((location, _), found) in places.into_iter().zip(answers) {
            report.addresses += 1;
            let Some(found) = found else {
                report.left_out += 1;
                frames.push(StackFrame {
                    evidence: LEFT_OUT.to_owned(),
                    ..nothing(location)
                });
                continue;
            };
            if found.iter().any(|frame| frame.line.is_some()) {
                report.with_lines += 1;
            } else if found.iter().any(|frame| frame.function.is_some()) {
                report.with_names += 1;
            }
            let mut found = found;
            // Functions that were inlined stand before the function that has the code.
            if let Some(last) = found.last_mut().filter(|_| guessed.contains(&location))
                && let Some(function) = &mut last.function
            {
                function.push_str(GUESS_MARK);
            }
            for (inline_depth, frame) in (0..).zip(found) {
                let mut intern = |text: Option<String>| {
                    text.map_or(StringId(0), |text| session.strings.intern(&text))
                };
                frames.push(StackFrame {
                    location,
                    inline_depth,
                    function: intern(frame.function.map(marked)),
                    file: intern(frame.file),
                    line: frame.line.unwrap_or(0),
                    column: frame.column.unwrap_or(0),
                    evidence: frame.evidence.text().to_owned(),
                });
            }
        }
        if let Some(problem) = symbols.problem(&module) {
            report.problems.push((module.path, problem));
        }
    }
    // Modules came in the order of a map, which differs from run to run.
    report.problems.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    frames.sort_unstable_by_key(|frame: &StackFrame| (frame.location, frame.inline_depth));
    session.stacks.frames = frames;
    report
}

/// The name of a function, marked if it runs TorchScript.
fn marked(mut function: String) -> String {
    if function.contains(TORCH_SCRIPT) {
        function.push_str(TORCH_SCRIPT_MARK);
    }
    function
}

/// A frame that nothing is known of.
fn nothing(location: u32) -> StackFrame {
    StackFrame {
        location,
        inline_depth: 0,
        function: StringId(0),
        file: StringId(0),
        line: 0,
        column: 0,
        evidence: String::new(),
    }
}

/// The frames of a location that is no code of a file. Markers have none: their kind describes them.
fn frames_outside_files(
    session: &mut Session,
    location: &StackLocation,
    report: &mut Report,
) -> Vec<StackFrame> {
    let Some(code) = session.stacks.code_of(location) else {
        return match location.kind {
            LocationKind::Native | LocationKind::Guessed | LocationKind::Jit => vec![StackFrame {
                evidence: "none".to_owned(),
                ..nothing(location.id)
            }],
            _ => Vec::new(),
        };
    };
    let lasti = location.offset.cast_signed();
    let found = line_table::position(code.version, &code.lines, code.first_line, lasti);
    let name = match code.qualname {
        StringId(0) => code.name,
        qualname => qualname,
    };
    let (file, line) = (code.file, found.line.unwrap_or(0));
    report.python += 1;
    let mut frames = vec![StackFrame {
        function: name,
        file,
        line,
        column: found.column.map_or(0, |column| column + 1),
        evidence: "python".to_owned(),
        ..nothing(location.id)
    }];
    let sources = session.stacks.sources_of(file, line);
    frames.extend((1..).zip(sources).map(|(inline_depth, source)| StackFrame {
        inline_depth,
        function: source.function,
        file: source.source,
        line: source.line,
        evidence: StackFrame::SOURCE.to_owned(),
        ..nothing(location.id)
    }));
    for frame in &mut frames {
        let name = shorten(session.strings.get(frame.function));
        frame.function = session.strings.intern(&name);
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_marks_interpreters_of_torch_script() {
        let run = "torch::jit::InterpreterStateImpl::run(std::vector<c10::IValue>&)";
        assert_eq!(marked(run.to_owned()), format!("{run} [TorchScript]"));
        let inner = "bool torch::jit::InterpreterStateImpl::runTemplate<true>(Stack&)";
        assert!(marked(inner.to_owned()).ends_with(" [TorchScript]"));
        assert_eq!(marked("torch::jit::run()".to_owned()), "torch::jit::run()");
    }
}
