//! From places to frames, and from stacks to the frames that are shown of them.

use std::collections::HashMap;
use std::sync::Arc;

use rpd_formats::rocpd::call_stacks::{
    Place, PlaceKind, ShownFrames, StackFrame, StackTables, Symbols,
};

use crate::modules::{Role, role};
use crate::native::{Symbolizer, shorten};
use crate::{Module, NoFile, python};

/// Evidence of the frame that stands for the call itself.
pub const CALL: &str = "api";

/// What lookup came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Distinct stacks.
    pub stacks: usize,
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
        self.stacks += other.stacks;
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

/// Looks up all places of `tables` and puts the stacks together. `stacks` are the ids of stacks, each with the names of the
/// functions that were called with it.
pub fn symbols(
    tables: &StackTables,
    stacks: &HashMap<i64, Vec<Arc<str>>>,
    shown: ShownFrames,
    symbolizer: &mut Symbolizer,
) -> (Symbols, Report) {
    let mut report = Report {
        stacks: stacks.len(),
        ..Report::default()
    };
    let at_places = frames_of_places(tables, symbolizer, &mut report);
    let mut writer = Writer {
        symbols: Symbols::default(),
        ids: HashMap::new(),
        calls: HashMap::new(),
    };
    // In the order of ids, so that looking up twice gives the same tables.
    let mut places: Vec<_> = at_places.iter().collect();
    places.sort_unstable_by_key(|(place, _)| **place);
    for (&place, frames) in places {
        let first = writer.symbols.frames.len() as i64 + 1;
        let count = frames.len() as i64;
        writer.symbols.frames.extend_from_slice(frames);
        writer.ids.insert(place, first..first + count);
    }
    let mut wanted: Vec<_> = stacks.iter().collect();
    wanted.sort_unstable_by_key(|(stack, _)| **stack);
    for (&stack, names) in wanted {
        // Without a name of its own the frame of the call would have that of another function.
        let name = match &names[..] {
            [only] => Some(only),
            _ => None,
        };
        let frames = writer.expand(tables, stack, name, shown);
        writer.symbols.stacks.push((stack, frames));
    }
    (writer.symbols, report)
}

/// The places of a stack, innermost first. A damaged tree ends where it turns back.
pub fn places_of(tables: &StackTables, stack: i64) -> Vec<i64> {
    let mut places = Vec::new();
    let mut node = stack;
    while let Some(found) = tables.nodes.get(&node) {
        places.push(found.place);
        if places.len() > tables.nodes.len() {
            break;
        }
        node = found.parent;
    }
    places
}

struct Writer {
    symbols: Symbols,
    /// Ids of the frames of places.
    ids: HashMap<i64, std::ops::Range<i64>>,
    /// Ids of the frames that stand for calls, by place and name.
    calls: HashMap<(i64, Option<Arc<str>>), i64>,
}

impl Writer {
    fn expand(
        &mut self,
        tables: &StackTables,
        stack: i64,
        name: Option<&Arc<str>>,
        shown: ShownFrames,
    ) -> Vec<i64> {
        let places = places_of(tables, stack);
        let Some(&innermost) = places.first() else {
            return Vec::new();
        };
        let kind = |place: &i64| tables.places.get(place).map(|place| place.kind);
        let role_of = |place: &i64| module_role(tables, tables.places.get(place));
        let is_hidden = |place: &i64| match role_of(place) {
            Some(Role::Profiler) => true,
            Some(Role::Runtime) => !shown.runtime,
            _ => false,
        };
        let mut skipped = places.iter().take_while(|place| is_hidden(place)).count();
        // The call stands at the outermost frame that is hidden: where the program entered the runtime.
        let is_runtime = |place: Option<&i64>| {
            place.is_some_and(|place| {
                role_of(place) == Some(Role::Runtime) || kind(place) == Some(PlaceKind::Api)
            })
        };
        let entry = if shown.runtime && is_runtime(places.get(skipped)) {
            skipped += 1;
            places[skipped - 1]
        } else if is_runtime(places.get(skipped)) {
            // The collector has told of the call itself.
            skipped += 1;
            places[skipped - 1]
        } else {
            match skipped {
                0 => innermost,
                count => places[count - 1],
            }
        };
        let has_address = skipped > 0;
        let mut frames = vec![self.call(entry, name, has_address)];
        let has_python = places
            .iter()
            .any(|place| kind(place) == Some(PlaceKind::Python));
        for place in &places[skipped..] {
            match role_of(place) {
                Some(Role::Profiler) => continue,
                Some(Role::Interpreter) if has_python && !shown.interpreter => continue,
                _ => {}
            }
            if let Some(ids) = self.ids.get(place) {
                frames.extend(ids.clone());
            }
        }
        frames
    }

    /// The frame that stands for a call.
    fn call(&mut self, place: i64, name: Option<&Arc<str>>, has_address: bool) -> i64 {
        let key = (place, name.cloned());
        if let Some(&known) = self.calls.get(&key) {
            return known;
        }
        // Where the runtime has debug information, the function that has the code is the one that was called.
        let own = self.ids.get(&place).filter(|_| has_address);
        let own = own.and_then(|ids| self.symbols.frames.get(usize::try_from(ids.end - 2).ok()?));
        let frame = StackFrame {
            place,
            inline_depth: if has_address { -1 } else { -2 },
            function: name.cloned(),
            file: own.and_then(|own| own.file.clone()),
            line: own.and_then(|own| own.line),
            column: own.and_then(|own| own.column),
            evidence: Some(Arc::from(CALL)),
        };
        self.symbols.frames.push(frame);
        let id = self.symbols.frames.len() as i64;
        self.calls.insert(key, id);
        id
    }
}

fn module_role(tables: &StackTables, place: Option<&Place>) -> Option<Role> {
    let place = place.filter(|place| place.kind == PlaceKind::Native)?;
    let module = tables.modules.get(&place.module?)?;
    Some(role(&module.path))
}

/// The frames of every place, innermost first.
fn frames_of_places(
    tables: &StackTables,
    symbolizer: &mut Symbolizer,
    report: &mut Report,
) -> HashMap<i64, Vec<StackFrame>> {
    let mut found: HashMap<i64, Vec<StackFrame>> = HashMap::new();
    // A module that was loaded twice is one file.
    let mut native: HashMap<Module, Vec<(i64, u64)>> = HashMap::new();
    for (&id, place) in &tables.places {
        let module = place.module.and_then(|module| tables.modules.get(&module));
        match (place.kind, module, place.address) {
            (PlaceKind::Native, Some(module), Some(address)) => {
                let file = Module {
                    path: module.path.to_string(),
                    build_id: module.build_id.clone(),
                };
                native.entry(file).or_default().push((id, address));
            }
            _ => {
                found.insert(id, vec![plain(tables, id, place, report)]);
            }
        }
    }
    for (module, mut places) in native {
        places.sort_unstable_by_key(|&(id, address)| (address, id));
        let addresses: Vec<u64> = places.iter().map(|&(_, address)| address).collect();
        let answers = symbolizer.frames(&module, &addresses);
        for ((id, _), frames) in places.into_iter().zip(answers) {
            report.addresses += 1;
            if frames.iter().any(|frame| frame.line.is_some()) {
                report.with_lines += 1;
            } else if frames.iter().any(|frame| frame.function.is_some()) {
                report.with_names += 1;
            }
            let rows = (0_i64..).zip(frames).map(|(depth, frame)| StackFrame {
                place: id,
                inline_depth: depth,
                function: frame.function.map(Arc::from),
                file: frame.file.map(Arc::from),
                line: frame.line.map(i64::from),
                column: frame.column.map(i64::from),
                evidence: Some(Arc::from(frame.evidence.text())),
            });
            found.insert(id, rows.collect());
        }
        if let Some(problem) = symbolizer.problem(&module) {
            report.problems.push((module.path, problem));
        }
    }
    report.problems.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    found
}

/// The frame of a place without native code in a file.
fn plain(tables: &StackTables, id: i64, place: &Place, report: &mut Report) -> StackFrame {
    let mut frame = StackFrame {
        place: id,
        ..StackFrame::default()
    };
    if let Some(code) = place.code.and_then(|code| tables.codes.get(&code)) {
        let (line, column) = python::position(code, place.lasti);
        report.python += 1;
        frame.function = Some(Arc::from(shorten(&code.name)));
        frame.file = Some(Arc::from(shorten(&code.file)));
        frame.line = line.map(i64::from);
        frame.column = column.map(i64::from);
        frame.evidence = Some(Arc::from(place.kind.name()));
    } else if matches!(place.kind, PlaceKind::Native | PlaceKind::Jit) {
        frame.evidence = Some(Arc::from("none"));
    }
    frame
}
