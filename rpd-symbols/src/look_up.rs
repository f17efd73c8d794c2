//! From the locations of a session to frames.

use std::collections::HashMap;

use rpd_core::ids::StringId;
use rpd_core::session::Session;
use rpd_core::session::stacks::{LocationKind, StackFrame, StackLocation};
use rpd_stacks::python::line_table;

use crate::native::{Symbolizer, shorten};
use crate::{Module, NoFile};

/// What lookup came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Distinct addresses of native code.
    pub addresses: usize,
    /// Of those, how many have a file and a line.
    pub with_lines: usize,
    /// Of those, how many have only a function's name.
    pub with_names: usize,
    /// Distinct places in Python code.
    pub python: usize,
    /// Modules without a file that can be trusted: path, and why.
    pub problems: Vec<(String, NoFile)>,
}

impl Report {
    /// Adds what another process came to.
    pub fn add(&mut self, other: Report) {
        self.addresses += other.addresses;
        self.with_lines += other.with_lines;
        self.with_names += other.with_names;
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
pub fn look_up(session: &mut Session, symbolizer: &mut Symbolizer) -> Report {
    let mut report = Report::default();
    let mut frames = Vec::new();
    // A module that was loaded twice is one file.
    let mut native: HashMap<Module, Vec<(u32, u64)>> = HashMap::new();
    let locations = std::mem::take(&mut session.stacks.locations);
    for location in &locations {
        match session.stacks.module_of(location) {
            Some(module) => {
                let file = Module {
                    path: session.strings.get(module.path).to_owned(),
                    build_id: Some(module.build_id.clone()).filter(|id| !id.is_empty()),
                };
                let places = native.entry(file).or_default();
                places.push((location.id, location.offset));
            }
            None => frames.extend(other(session, location, &mut report)),
        }
    }
    session.stacks.locations = locations;
    for (module, mut places) in native {
        places.sort_unstable_by_key(|&(id, address)| (address, id));
        let addresses: Vec<u64> = places.iter().map(|&(_, address)| address).collect();
        let answers = symbolizer.frames(&module, &addresses);
        for ((location, _), found) in places.into_iter().zip(answers) {
            report.addresses += 1;
            if found.iter().any(|frame| frame.line.is_some()) {
                report.with_lines += 1;
            } else if found.iter().any(|frame| frame.function.is_some()) {
                report.with_names += 1;
            }
            for (inline_depth, frame) in (0..).zip(found) {
                let mut intern = |text: Option<String>| {
                    text.map_or(StringId(0), |text| session.strings.intern(&text))
                };
                frames.push(StackFrame {
                    location,
                    inline_depth,
                    function: intern(frame.function),
                    file: intern(frame.file),
                    line: frame.line.unwrap_or(0),
                    column: frame.column.unwrap_or(0),
                    evidence: frame.evidence.text().to_owned(),
                });
            }
        }
        if let Some(problem) = symbolizer.problem(&module) {
            report.problems.push((module.path, problem));
        }
    }
    report.problems.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    frames.sort_unstable_by_key(|frame: &StackFrame| (frame.location, frame.inline_depth));
    session.stacks.frames = frames;
    report
}

/// The frame of a location that is no code of a file. Markers have none: their kind says all.
fn other(
    session: &mut Session,
    location: &StackLocation,
    report: &mut Report,
) -> Option<StackFrame> {
    let mut frame = StackFrame {
        location: location.id,
        inline_depth: 0,
        function: StringId(0),
        file: StringId(0),
        line: 0,
        column: 0,
        evidence: String::new(),
    };
    if let Some(code) = session.stacks.code_of(location) {
        let lasti = location.offset.cast_signed();
        let found = line_table::position(code.version, &code.lines, code.first_line, lasti);
        let name = match code.qualname {
            StringId(0) => code.name,
            qualname => qualname,
        };
        frame.file = code.file;
        frame.line = found.line.unwrap_or(0);
        frame.column = found.column.map_or(0, |column| column + 1);
        frame.evidence = "python".to_owned();
        let name = shorten(session.strings.get(name));
        frame.function = session.strings.intern(&name);
        report.python += 1;
        return Some(frame);
    }
    match location.kind {
        LocationKind::Native | LocationKind::Jit => {
            frame.evidence = "none".to_owned();
            Some(frame)
        }
        _ => None,
    }
}
