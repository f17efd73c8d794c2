//! Call stacks, stored as a tree: nodes, the code locations that they stand for, and the symbols and lines of these.

use std::collections::{BTreeSet, HashMap};

use crate::ids::{Nanoseconds, StringId};
use crate::spool::format::location_kind;
pub use crate::spool::format::{StackRef, stack_flag};
pub use crate::spool::hidden_frames::{is_interpreter, is_profiler, is_runtime};

pub use crate::options::ShownFrames;

/// A file with machine code that was mapped into the process: the program, or a shared library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackModule {
    /// Id, from 1. A file that was unloaded and loaded again has two.
    pub id: u32,
    /// Path of the file, as escaped text: [`crate::text::os_text`].
    pub path: StringId,
    /// GNU build id in hexadecimal digits; empty when the file has none.
    pub build_id: String,
    /// Address in memory minus address in the ELF file (load bias).
    pub base: u64,
    /// Lowest mapped address of the module.
    pub start: u64,
    /// End of the mapped addresses, exclusive.
    pub end: u64,
    /// Time at which it was first found on a stack.
    pub seen_from: Nanoseconds,
    /// Time at which another module was first found at its addresses; `None` when none was.
    pub seen_to: Option<Nanoseconds>,
}

/// A Python code object: the compiled body of a function, a class or a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PythonCode {
    /// Id of the module, from 1.
    pub id: u32,
    /// Path of the source file, from `co_filename`.
    pub file: StringId,
    /// Name of the function, from `co_name`.
    pub name: StringId,
    /// Qualified name, from `co_qualname`; 0 for interpreters before 3.11.
    pub qualname: StringId,
    /// Line of the source file at which the function begins.
    pub first_line: i32,
    /// Version of the interpreter in the form of `PY_VERSION_HEX`.
    pub version: u32,
    /// Line table in the interpreter's encoding, which depends on the version.
    pub lines: Vec<u8>,
}

/// An ELF object that the program registered with GDB's JIT interface to describe code that it generated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JitObject {
    /// Id, from 1. An object that was registered later at the same address has another.
    pub id: u32,
    /// Type of the ELF file, `e_type` in its header.
    pub kind: u16,
    /// Section headers of the registered object, as in its file.
    pub sections: Vec<u8>,
    /// Symbol table of the registered object.
    pub symbols: Vec<u8>,
    /// String table for the names in `symbols`.
    pub names: Vec<u8>,
}

macro_rules! location_kinds {
    ($($(#[$doc:meta])* $kind:ident = $constant:ident $word:literal,)*) => {
        /// Kind of code that a location is in.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum LocationKind {
            $($(#[$doc])* $kind,)*
        }

        impl LocationKind {
            /// Every kind.
            pub const ALL: &'static [LocationKind] = &[$(LocationKind::$kind,)*];

            /// Number of the kind in recordings, [`crate::spool::format::location_kind`].
            pub const fn number(self) -> u16 {
                match self {
                    $(LocationKind::$kind => location_kind::$constant,)*
                }
            }

            /// Word for the kind in databases.
            pub const fn word(self) -> &'static str {
                match self {
                    $(LocationKind::$kind => $word,)*
                }
            }
        }
    };
}

location_kinds! {
    /// A machine instruction in a mapped file.
    Native = NATIVE "native",
    /// An instruction of a Python code object.
    Python = PYTHON "python",
    /// A machine instruction in generated code, which no file contains.
    Jit = JIT "jit",
    /// The entry of a traced function.
    Api = API "api",
    /// A frame of TorchScript.
    Script = SCRIPT "script",
    /// Source from which TorchInductor generated Python code.
    Inductor = INDUCTOR "inductor",
    /// Not code: the Python frames that follow could not be placed among the native frames.
    UnplacedMarker = UNPLACED_MARKER "unplaced-marker",
    /// Not code: the stack walk ended here, before the outermost frame.
    TruncatedMarker = TRUNCATED_MARKER "truncated-marker",
    /// Not code: frames were left out here, because there are more than the limit.
    GapMarker = GAP_MARKER "gap-marker",
    /// A machine instruction in a mapped file, whose frame was found by following the frame pointer through code without
    /// unwind information: it may be the wrong one, and frames may be missing before it.
    Guessed = GUESSED "guessed",
}

impl LocationKind {
    /// The kind with this number in recordings; `None` for numbers of a newer collector.
    pub fn from_number(number: u16) -> Option<LocationKind> {
        let mut kinds = LocationKind::ALL.iter().copied();
        kinds.find(|kind| kind.number() == number)
    }

    /// The kind with this word in databases.
    pub fn from_word(word: &str) -> Option<LocationKind> {
        let mut kinds = LocationKind::ALL.iter().copied();
        kinds.find(|kind| kind.word() == word)
    }

    /// The text that is shown for a marker; `None` for code.
    pub const fn marker(self) -> Option<&'static str> {
        match self {
            LocationKind::UnplacedMarker => Some("[frames without a known place]"),
            LocationKind::TruncatedMarker => Some("[outer frames are not known]"),
            LocationKind::GapMarker => Some("[frames left out]"),
            LocationKind::Native
            | LocationKind::Guessed
            | LocationKind::Python
            | LocationKind::Jit
            | LocationKind::Api
            | LocationKind::Script
            | LocationKind::Inductor => None,
        }
    }
}

/// A code location at which a thread was found: a machine instruction or one of Python.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackLocation {
    /// Id of the location, from 1.
    pub id: u32,
    /// Kind of code that the location is in.
    pub kind: LocationKind,
    /// Id of the module, Python code object or JIT object, by `kind`; 0 when there is none.
    pub owner: u32,
    /// Native: address in the ELF file; without a module, address in memory. Python: offset of the instruction in the
    /// code object, in bytes.
    pub offset: u64,
}

/// A node of the call tree: a frame with all its callers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackNode {
    /// Id, from 1. The id of a stack is that of its innermost frame's node.
    pub id: u32,
    /// Id of the calling frame's node; 0 for the outermost frame.
    pub parent: u32,
    /// Id of the frame's location.
    pub location: u32,
    /// Number of nodes between this one and the outermost frame: 0 for the outermost.
    pub depth: u32,
}

/// A symbolized frame of a location. When a location has several, each is inlined into the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackFrame {
    /// Id of the frame's location.
    pub location: u32,
    /// Depth of inlining: 0 for the innermost function, the greatest for the function that contains the code.
    pub inline_depth: u32,
    /// Name of the function; 0 when it is not known.
    pub function: StringId,
    /// Source file; 0 when it is not known.
    pub file: StringId,
    /// Line number from 1; 0 when it is not known.
    pub line: u32,
    /// Column number from 1; 0 when it is not known.
    pub column: u32,
    /// Source of the name: `dwarf`, `symtab`, `dynsym`, `none` and others, or [`StackFrame::SOURCE`]; empty when it is
    /// not known.
    pub evidence: String,
}

impl StackFrame {
    /// [`StackFrame::evidence`] of a frame that names the source line from which generated code was made. It follows
    /// the frame of the generated code.
    pub const SOURCE: &'static str = "source";

    /// Whether the frame is source from which the code of its location was generated.
    pub fn is_source(&self) -> bool {
        self.evidence == StackFrame::SOURCE
    }
}

/// Lines of a generated Python file, with one of the source lines that they were made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedLines {
    /// Path of the generated file.
    pub file: StringId,
    /// First line of the range in the generated file, from 1.
    pub first: u32,
    /// Last line of the range in the generated file.
    pub last: u32,
    /// Position among the source frames of the range: 0 for the innermost.
    pub depth: u32,
    /// Name of the source function; 0 when it is not known.
    pub function: StringId,
    /// Path of the source file.
    pub source: StringId,
    /// Line number in the source file.
    pub line: u32,
}

/// A generated Python file, whose text is kept because the file may be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedFile {
    /// Path of the file, as Python code objects have it.
    pub file: StringId,
    /// Content of the file.
    pub text: String,
}

/// Parts of the recorded stacks that contradict each other or are missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StackDefects {
    /// Number of nodes that were removed because their location or their caller's node is missing.
    pub nodes: usize,
}

/// The call stacks of a session; empty when none were recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stacks {
    /// Mapped files, ordered by id.
    pub modules: Vec<StackModule>,
    /// Python code objects, ordered by id.
    pub code: Vec<PythonCode>,
    /// Objects that describe generated machine code, ordered by id. Databases contain only what symbolizing with them
    /// yielded.
    pub objects: Vec<JitObject>,
    /// Code locations, ordered by id.
    pub locations: Vec<StackLocation>,
    /// Nodes of the call tree, ordered by id.
    pub nodes: Vec<StackNode>,
    /// Symbolized frames, ordered by location, then inline depth; empty until symbols are looked up.
    pub frames: Vec<StackFrame>,
    /// Source lines of generated Python files, ordered by file, first line and depth. Ranges of different source
    /// lines do not overlap.
    pub generated: Vec<GeneratedLines>,
    /// Texts of generated Python files, ordered by file.
    pub generated_files: Vec<GeneratedFile>,
}

/// Finds the item with this id among items that are ordered by id. Ids are nearly dense from 1.
fn find<T>(items: &[T], id: u32, id_of: impl Fn(&T) -> u32) -> Option<&T> {
    let guess = (id as usize).checked_sub(1)?;
    match items.get(guess) {
        Some(item) if id_of(item) == id => Some(item),
        _ => {
            let index = items.binary_search_by_key(&id, &id_of).ok()?;
            items.get(index)
        }
    }
}

impl Stacks {
    /// Whether there are no stacks.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The node with this id; `None` for 0 and for ids that are not in the recording.
    pub fn node(&self, id: u32) -> Option<&StackNode> {
        find(&self.nodes, id, |node| node.id)
    }

    /// The location with this id; `None` when it is not in the recording.
    pub fn location(&self, id: u32) -> Option<&StackLocation> {
        find(&self.locations, id, |location| location.id)
    }

    /// The module with this id; `None` for 0 and for ids that are not in the recording.
    pub fn module(&self, id: u32) -> Option<&StackModule> {
        find(&self.modules, id, |module| module.id)
    }

    /// The module that a native location is in; `None` for other locations.
    pub fn module_of(&self, location: &StackLocation) -> Option<&StackModule> {
        match location.kind {
            LocationKind::Native | LocationKind::Guessed => self.module(location.owner),
            _ => None,
        }
    }

    /// The Python code object that a Python location is in; `None` for other locations.
    pub fn code_of(&self, location: &StackLocation) -> Option<&PythonCode> {
        match location.kind {
            LocationKind::Python => find(&self.code, location.owner, |code| code.id),
            _ => None,
        }
    }

    /// The object that describes the generated code of a location; `None` for other locations.
    pub fn object_of(&self, location: &StackLocation) -> Option<&JitObject> {
        match location.kind {
            LocationKind::Jit => find(&self.objects, location.owner, |object| object.id),
            _ => None,
        }
    }

    /// Symbolized frames of a location, innermost first; empty before symbols are looked up.
    pub fn frames_at(&self, location: u32) -> &[StackFrame] {
        let first = self
            .frames
            .partition_point(|frame| frame.location < location);
        let rest = &self.frames[first..];
        let count = rest.partition_point(|frame| frame.location == location);
        &rest[..count]
    }

    /// Source lines of a line of a generated file, innermost first; empty when there are none.
    pub fn sources_of(&self, file: StringId, line: u32) -> &[GeneratedLines] {
        let place = |range: &GeneratedLines| (range.file, range.first);
        let end = self
            .generated
            .partition_point(|range| place(range) <= (file, line));
        let Some(last) = self.generated[..end].last() else {
            return &[];
        };
        if last.file != file || line > last.last {
            return &[];
        }
        let first = self.generated[..end].partition_point(|range| place(range) < place(last));
        &self.generated[first..end]
    }

    /// Nodes of a stack, innermost first.
    pub fn walk(&self, stack: u32) -> impl Iterator<Item = &StackNode> {
        std::iter::successors(self.node(stack), |node| self.node(node.parent))
    }

    /// Sorts everything by id, removes repeated ids, and removes what refers to missing parts.
    pub fn remove_defects(&mut self) -> StackDefects {
        self.modules.sort_by_key(|module| module.id);
        self.modules.dedup_by_key(|module| module.id);
        self.code.sort_by_key(|code| code.id);
        self.code.dedup_by_key(|code| code.id);
        self.objects.sort_by_key(|object| object.id);
        self.objects.dedup_by_key(|object| object.id);
        self.locations.sort_by_key(|location| location.id);
        self.locations.dedup_by_key(|location| location.id);
        self.frames
            .sort_by_key(|frame| (frame.location, frame.inline_depth));
        self.settle_generated();
        self.set_ends();
        self.nodes.sort_by_key(|node| node.id);
        self.nodes.dedup_by_key(|node| node.id);
        let mut by_depth: Vec<usize> = (0..self.nodes.len()).collect();
        by_depth.sort_by_key(|&index| self.nodes[index].depth);
        // Callers are checked before their callees, and the depth must grow by one with each call, so the tree has no
        // cycles.
        let mut good: HashMap<u32, u32> = HashMap::with_capacity(self.nodes.len());
        for index in by_depth {
            let node = &self.nodes[index];
            let is_placed = match node.parent {
                0 => node.depth == 0,
                parent => good
                    .get(&parent)
                    .is_some_and(|depth| depth.checked_add(1) == Some(node.depth)),
            };
            if node.id != 0 && is_placed && self.location(node.location).is_some() {
                good.insert(node.id, node.depth);
            }
        }
        let before = self.nodes.len();
        self.nodes.retain(|node| good.contains_key(&node.id));
        StackDefects {
            nodes: before - self.nodes.len(),
        }
    }

    /// Removes ranges of generated lines that overlap an earlier range, or whose depths are not consecutive.
    fn settle_generated(&mut self) {
        self.generated
            .sort_by_key(|range| (range.file, range.first, range.last, range.depth));
        let mut last: Option<(StringId, u32, u32, u32)> = None;
        self.generated.retain(|range| {
            let is_good = match last {
                Some((file, first, end, depth)) if file == range.file && range.first <= end => {
                    (range.first, range.last, range.depth) == (first, end, depth + 1)
                }
                _ => range.depth == 0 && range.first <= range.last,
            };
            if is_good {
                last = Some((range.file, range.first, range.last, range.depth));
            }
            is_good
        });
        self.generated_files.sort_by_key(|own| own.file);
        self.generated_files.dedup_by_key(|own| own.file);
    }

    /// Sets the time at which a module was replaced: when another module was first found at its addresses.
    fn set_ends(&mut self) {
        for index in 0..self.modules.len() {
            let module = &self.modules[index];
            if module.seen_to.is_some() {
                continue;
            }
            let replaced = |other: &&StackModule| {
                other.id != module.id
                    && (other.seen_from, other.id) > (module.seen_from, module.id)
                    && other.start < module.end
                    && module.start < other.end
            };
            let by = self.modules.iter().filter(replaced);
            let end = by.map(|other| other.seen_from).min();
            self.modules[index].seen_to = end;
        }
    }
}

impl super::Session {
    /// Removes from [`super::Session::stacks`] the nodes, locations and modules that no record refers to. Their
    /// records were removed, or never recorded.
    pub(super) fn drop_unused_stacks(&mut self) {
        let stacks = &self.stacks;
        let (mut nodes, mut locations) = (BTreeSet::new(), BTreeSet::new());
        let mut last = 0;
        for column in [&self.calls.stack, &self.allocations.stack] {
            for own in column.iter() {
                // Calls in a row often have the same stack. Looking only at changes saves a walk a call.
                if own.stack == last {
                    continue;
                }
                last = own.stack;
                // Behind a node that is already known all further ones are known, too: stacks share their outer frames.
                for node in stacks.walk(own.stack) {
                    if !nodes.insert(node.id) {
                        break;
                    }
                    locations.insert(node.location);
                }
            }
        }
        let (mut modules, mut code) = (BTreeSet::new(), BTreeSet::new());
        let mut objects = BTreeSet::new();
        for location in locations.iter().filter_map(|id| stacks.location(*id)) {
            modules.extend(stacks.module_of(location).map(|module| module.id));
            code.extend(stacks.code_of(location).map(|code| code.id));
            objects.extend(stacks.object_of(location).map(|object| object.id));
        }
        let stacks = &mut self.stacks;
        stacks.nodes.retain(|node| nodes.contains(&node.id));
        stacks
            .locations
            .retain(|location| locations.contains(&location.id));
        stacks
            .frames
            .retain(|frame| locations.contains(&frame.location));
        stacks.modules.retain(|module| modules.contains(&module.id));
        stacks.code.retain(|found| code.contains(&found.id));
        stacks.objects.retain(|object| objects.contains(&object.id));
        // Generated code has no module: it is kept by the file name that Python gave it.
        let files: BTreeSet<StringId> = stacks.code.iter().map(|code| code.file).collect();
        stacks.generated.retain(|range| files.contains(&range.file));
        stacks
            .generated_files
            .retain(|own| files.contains(&own.file));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: u32, parent: u32, location: u32, depth: u32) -> StackNode {
        StackNode {
            id,
            parent,
            location,
            depth,
        }
    }

    fn location(id: u32, kind: LocationKind, owner: u32) -> StackLocation {
        StackLocation {
            id,
            kind,
            owner,
            offset: u64::from(id) * 16,
        }
    }

    #[test]
    fn generated_lines_are_found_by_file_and_line() {
        let range = |file, first, last, depth, line| GeneratedLines {
            file: StringId(file),
            first,
            last,
            depth,
            function: StringId(9),
            source: StringId(8),
            line,
        };
        let mut stacks = Stacks {
            generated: vec![
                range(2, 5, 9, 1, 52),
                range(2, 5, 9, 0, 51),
                range(1, 5, 5, 0, 15),
                range(2, 12, 12, 0, 60),
                // Overlaps, has no innermost frame, ends before it begins.
                range(2, 8, 11, 0, 1),
                range(2, 20, 20, 1, 1),
                range(2, 30, 29, 0, 1),
            ],
            ..Stacks::default()
        };
        stacks.remove_defects();
        let lines = |file, line| -> Vec<u32> {
            let found = stacks.sources_of(StringId(file), line).iter();
            found.map(|range| range.line).collect()
        };
        for line in [5, 7, 9] {
            assert_eq!(lines(2, line), [51, 52], "{line}");
        }
        assert_eq!(lines(2, 12), [60]);
        assert_eq!(lines(1, 5), [15]);
        for (file, line) in [(2, 4), (2, 10), (2, 20), (2, 30), (1, 6), (3, 5), (0, 1)] {
            assert!(lines(file, line).is_empty(), "{file} {line}");
        }
    }

    #[test]
    fn remove_defects_removes_nodes_with_missing_parts() {
        let mut stacks = Stacks {
            locations: vec![
                location(2, LocationKind::Native, 0),
                location(1, LocationKind::Native, 0),
            ],
            nodes: vec![
                node(3, 2, 1, 2),
                node(1, 0, 1, 0),
                node(2, 1, 2, 1),
                // No such location, no such caller, a circle, a wrong depth.
                node(4, 1, 9, 1),
                node(5, 77, 1, 1),
                node(6, 7, 1, 5),
                node(7, 6, 1, 5),
                node(8, 2, 1, 7),
                // Called by one that is left out.
                node(9, 4, 1, 2),
            ],
            ..Stacks::default()
        };
        assert_eq!(stacks.remove_defects(), StackDefects { nodes: 6 });
        let ids: Vec<u32> = stacks.walk(3).map(|node| node.id).collect();
        assert_eq!(ids, [3, 2, 1]);
        assert_eq!(stacks.walk(4).count(), 0);
        assert_eq!(stacks.walk(0).count(), 0);
    }

    #[test]
    fn module_ends_when_another_takes_its_addresses() {
        let module = |id: u32, start: u64, from: u64| StackModule {
            id,
            path: StringId(0),
            build_id: String::new(),
            base: start,
            start,
            end: start + 10,
            seen_from: Nanoseconds(from),
            seen_to: None,
        };
        let mut stacks = Stacks {
            modules: vec![module(1, 100, 5), module(2, 200, 6), module(3, 105, 7)],
            ..Stacks::default()
        };
        stacks.remove_defects();
        let ends: Vec<_> = stacks.modules.iter().map(|module| module.seen_to).collect();
        assert_eq!(ends, [Some(Nanoseconds(7)), None, None]);
    }

    #[test]
    fn location_kinds_are_found_by_number_and_word() {
        for kind in LocationKind::ALL {
            assert_eq!(LocationKind::from_number(kind.number()), Some(*kind));
            assert_eq!(LocationKind::from_word(kind.word()), Some(*kind));
        }
        assert_eq!(LocationKind::from_number(0), None);
    }
}
