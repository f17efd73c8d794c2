//! Expands recorded call stacks to the frames that reports and files show.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::Session;
use super::stacks::{
    LocationKind, ShownFrames, StackFrame, StackNode, is_interpreter, is_profiler, is_runtime,
};
use crate::ids::StringId;

/// Kind of code that a shown frame stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FrameKind {
    /// The traced call. Its location is the address where the program entered the runtime, if a native frame of the
    /// runtime was recorded.
    Call {
        /// Whether the frame's location is that address.
        has_address: bool,
    },
    /// The function that contains the code of the location.
    Physical,
    /// A function that was inlined into the function of the next frame.
    Inlined,
    /// The source line from which the generated code of the frame before was made.
    Source,
}

/// A frame as it is shown. One location can have several: functions that were inlined there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ShownFrame {
    /// Kind of code that the frame stands for.
    pub kind: FrameKind,
    /// Id of the frame's location: [`Stacks::location`](super::Stacks::location).
    pub location: u32,
    /// Depth of inlining: 0 for the innermost function at the location.
    pub inline_depth: u32,
    /// Name of the function, of the traced call for [`FrameKind::Call`]; 0 when it is not known.
    pub function: StringId,
    /// Source file; 0 when it is not known.
    pub file: StringId,
    /// Line number from 1; 0 when it is not known.
    pub line: u32,
    /// Column number from 1; 0 when it is not known.
    pub column: u32,
}

/// The shown frames of all stacks of a session.
#[derive(Debug, Clone, Default)]
pub struct Expanded {
    /// The frames, each once.
    pub frames: Vec<ShownFrame>,
    /// Frames of each stack, innermost first, as indices into `frames`, by id of the stack.
    pub stacks: HashMap<u32, Vec<u32>>,
}

/// The texts that are shown for a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameText<'a> {
    /// Name of the function; where it is not known, module and offset (`libfoo.so+0x1234`), an address, or a remark
    /// in brackets.
    pub function: Cow<'a, str>,
    /// Source file; empty when it is not known.
    pub file: &'a str,
    /// Line number from 1; 0 when it is not known.
    pub line: u32,
    /// Column number from 1; 0 when it is not known.
    pub column: u32,
}

impl Session {
    /// The texts that are shown for a frame.
    pub fn frame_text(&self, frame: &ShownFrame) -> FrameText<'_> {
        let known = |function: Cow<'static, str>| FrameText {
            function,
            file: "",
            line: 0,
            column: 0,
        };
        // A symbolized frame has all there is.
        if frame.function != StringId(0) {
            return FrameText {
                function: self.strings.get(frame.function).into(),
                file: self.strings.get(frame.file),
                line: frame.line,
                column: frame.column,
            };
        }
        // The traced function has no name where several functions share the stack.
        if matches!(frame.kind, FrameKind::Call { .. }) {
            return known("[the call]".into());
        }
        let Some(location) = self.stacks.location(frame.location) else {
            return known("[unknown]".into());
        };
        // Python code has its names from the interpreter, and needs no lookup.
        if let Some(code) = self.stacks.code_of(location) {
            let name = match code.qualname {
                StringId(0) => code.name,
                qualname => qualname,
            };
            return FrameText {
                function: self.strings.get(name).into(),
                file: self.strings.get(code.file),
                line: u32::try_from(code.first_line).unwrap_or(0),
                column: 0,
            };
        }
        if let Some(marker) = location.kind.marker() {
            return known(marker.into());
        }
        // Without symbols, module and offset are what `addr2line` takes.
        match self.stacks.module_of(location) {
            Some(module) => {
                let path = self.strings.get(module.path);
                let name = path.rsplit('/').next().unwrap_or(path);
                known(format!("{name}+{:#x}", location.offset).into())
            }
            None => known(format!("{:#x}", location.offset).into()),
        }
    }
}

/// Expands the stacks of calls, markers and allocations.
pub fn expand(session: &Session, shown: ShownFrames) -> Expanded {
    let mut expander = Expander {
        session,
        shown,
        expanded: Expanded::default(),
        at: HashMap::new(),
        calls: HashMap::new(),
    };
    for (stack, function) in stacks_of(session) {
        let frames = expander.frames(stack, function);
        expander.expanded.stacks.insert(stack, frames);
    }
    expander.expanded
}

/// Ids of all stacks, ascending, with the function that was called. It is 0 when several functions were called with
/// the same stack, or when the stack is that of an allocation.
fn stacks_of(session: &Session) -> Vec<(u32, StringId)> {
    let mut functions: HashMap<u32, Option<StringId>> = HashMap::new();
    let calls = &session.calls;
    for (reference, &operation) in calls.stack.iter().zip(&calls.operation) {
        if reference.stack != 0 {
            let function = session.operations[operation].name;
            functions
                // A stack that several functions share gets none of their names: one name would be wrong for the
                // others.
                .entry(reference.stack)
                .and_modify(|known| *known = known.filter(|known| *known == function))
                .or_insert(Some(function));
        }
    }
    let mut others: HashSet<u32> = HashSet::new();
    others.extend(session.allocations.stack.iter().map(|found| found.stack));
    for stack in others {
        if stack != 0 {
            functions.entry(stack).or_insert(None);
        }
    }
    let mut all: Vec<(u32, StringId)> = functions
        .into_iter()
        .map(|(stack, function)| (stack, function.unwrap_or(StringId(0))))
        .collect();
    // By id, because the map's order differs from run to run and outputs must not.
    all.sort_unstable_by_key(|(stack, _)| *stack);
    all
}

struct Expander<'a> {
    session: &'a Session,
    shown: ShownFrames,
    expanded: Expanded,
    /// Frames of each location, as indices into `expanded.frames`, by location.
    at: HashMap<u32, std::ops::Range<u32>>,
    /// Frames of calls, by location, function and whether the location is the entry address.
    calls: HashMap<(u32, StringId, bool), u32>,
}

impl Expander<'_> {
    fn path(&self, node: &StackNode) -> Option<&str> {
        let stacks = &self.session.stacks;
        let module = stacks.module_of(stacks.location(node.location)?)?;
        Some(self.session.strings.get(module.path))
    }

    fn frames(&mut self, stack: u32, function: StringId) -> Vec<u32> {
        let session = self.session;
        let all: Vec<&StackNode> = session.stacks.walk(stack).collect();
        let Some(innermost) = all.first() else {
            return Vec::new();
        };
        let kind_of = |node: &StackNode| {
            let location = session.stacks.location(node.location);
            location.map(|location| location.kind)
        };
        let is_own = |node: &&&StackNode| self.path(node).is_some_and(is_profiler);
        let is_entry = |node: &&&StackNode| {
            kind_of(node) == Some(LocationKind::Api) || self.path(node).is_some_and(is_runtime)
        };
        let inner = all.iter().take_while(is_own).count();
        let entered = all.iter().take_while(is_entry).count();
        // The frame of the call takes the place of the runtime's outermost frame, where the program entered the
        // runtime. Where frames of the runtime are shown, it takes the place of the innermost.
        let (entry, rest) = if !self.shown.runtime {
            (entered.checked_sub(1).and_then(|at| all.get(at)), entered)
        } else if inner < entered {
            (all.get(inner), inner + 1)
        } else {
            (None, inner)
        };
        let has_address = entry.is_some_and(|node| {
            matches!(
                kind_of(node),
                Some(LocationKind::Native | LocationKind::Guessed | LocationKind::Jit)
            )
        });
        let entry = entry.unwrap_or(innermost);
        let mut frames = vec![self.call(entry.location, function, has_address)];
        let has_python = all
            .iter()
            .any(|node| kind_of(node) == Some(LocationKind::Python));
        let hides_interpreter = has_python && !self.shown.interpreter;
        for node in &all[rest..] {
            let is_hidden = self.path(node).is_some_and(|path| {
                is_profiler(path) || (hides_interpreter && is_interpreter(path))
            });
            if !is_hidden {
                frames.extend(self.at(node.location));
            }
        }
        frames
    }

    /// The frames at a location, as indices; made at the first request.
    fn at(&mut self, location: u32) -> std::ops::Range<u32> {
        if let Some(known) = self.at.get(&location) {
            return known.clone();
        }
        let found = self.session.stacks.frames_at(location);
        let first = self.expanded.frames.len() as u32;
        let sources = found.iter().filter(|frame| frame.is_source()).count();
        for (index, frame) in found.iter().enumerate() {
            let kind = match index + 1 + sources {
                _ if frame.is_source() => FrameKind::Source,
                end if end == found.len() => FrameKind::Physical,
                _ => FrameKind::Inlined,
            };
            self.expanded.frames.push(shown(frame, kind));
        }
        if found.is_empty() {
            self.expanded.frames.push(unknown(location));
        }
        let range = first..self.expanded.frames.len() as u32;
        self.at.insert(location, range.clone());
        range
    }

    /// The frame of a traced call, made at the first request.
    fn call(&mut self, location: u32, function: StringId, has_address: bool) -> u32 {
        let key = (location, function, has_address);
        if let Some(&known) = self.calls.get(&key) {
            return known;
        }
        let kind = FrameKind::Call { has_address };
        let mut frame = unknown(location);
        // Where the runtime has debug information, the outermost function at the location is the one that the program
        // called.
        if has_address && let Some(own) = self.session.stacks.frames_at(location).last() {
            frame = shown(own, kind);
        }
        frame.kind = kind;
        frame.function = function;
        let index = self.expanded.frames.len() as u32;
        self.expanded.frames.push(frame);
        self.calls.insert(key, index);
        index
    }
}

fn shown(frame: &StackFrame, kind: FrameKind) -> ShownFrame {
    ShownFrame {
        kind,
        location: frame.location,
        inline_depth: frame.inline_depth,
        function: frame.function,
        file: frame.file,
        line: frame.line,
        column: frame.column,
    }
}

fn unknown(location: u32) -> ShownFrame {
    ShownFrame {
        kind: FrameKind::Physical,
        location,
        inline_depth: 0,
        function: StringId(0),
        file: StringId(0),
        line: 0,
        column: 0,
    }
}
