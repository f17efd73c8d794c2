//! Call stacks of slices. Frames and mappings are written before the first slice that refers to them.

use std::collections::{HashMap, HashSet};

use rpd_core::options::Options;
use rpd_core::session::shown::{Expanded, expand};
use rpd_core::session::{Session, StackRef};

use super::proto::{field, nested, uint};
use super::trace::Trace;

/// Stacks of a session, and the part of them that a trace has.
pub(super) struct Callstacks<'a> {
    session: &'a Session,
    expanded: Expanded,
    /// Whether the trace has a frame, by its number.
    written_frames: Vec<bool>,
    /// Whether anything is known of a stack that the trace was to have, by its id.
    written_stacks: HashMap<u32, bool>,
    functions: Interned,
    sources: Interned,
    mappings: HashSet<u32>,
}

/// Numbers of texts, from 1.
#[derive(Default)]
struct Interned(HashMap<String, u64>);

impl Interned {
    /// The number of a text, and whether it is new.
    fn number(&mut self, text: &str) -> (u64, bool) {
        if let Some(&number) = self.0.get(text) {
            return (number, false);
        }
        let number = self.0.len() as u64 + 1;
        self.0.insert(text.to_owned(), number);
        (number, true)
    }
}

impl<'a> Callstacks<'a> {
    pub(super) fn new(session: &'a Session, options: &Options) -> Callstacks<'a> {
        let expanded = if session.stacks.is_empty() {
            Expanded::default()
        } else {
            expand(session, options.stacks.shown)
        };
        Callstacks {
            session,
            written_frames: vec![false; expanded.frames.len()],
            written_stacks: HashMap::new(),
            expanded,
            functions: Interned::default(),
            sources: Interned::default(),
            mappings: HashSet::new(),
        }
    }

    /// The number by which a slice refers to its stack; `None` when it has none.
    #[inline]
    pub(super) fn number(&mut self, trace: &mut Trace, own: Option<&StackRef>) -> Option<u64> {
        let stack = own.map_or(0, |own| own.stack);
        if stack == 0 {
            return None;
        }
        let is_there = match self.written_stacks.get(&stack) {
            Some(&is_there) => is_there,
            None => self.write_stack(trace, stack),
        };
        is_there.then_some(u64::from(stack))
    }

    /// Writes the frames and mappings of a stack into the trace; false when nothing is known of the stack.
    #[cold]
    fn write_stack(&mut self, trace: &mut Trace, stack: u32) -> bool {
        let frames = self.expanded.stacks.get(&stack).cloned();
        let frames = frames.unwrap_or_default();
        for &frame in &frames {
            self.write_frame(trace, frame);
        }
        let is_there = !frames.is_empty();
        if is_there {
            trace.intern(|out| {
                nested(out, field::interned::CALLSTACKS, |out| {
                    uint(out, field::callstack::ID, stack.into());
                    // Outermost first.
                    for &frame in frames.iter().rev() {
                        uint(out, field::callstack::FRAMES, u64::from(frame) + 1);
                    }
                });
            });
        }
        self.written_stacks.insert(stack, is_there);
        is_there
    }

    fn write_frame(&mut self, trace: &mut Trace, number: u32) {
        let Some(is_written) = self.written_frames.get_mut(number as usize) else {
            return;
        };
        // A frame is interned once; later packets of the sequence refer to it.
        if std::mem::replace(is_written, true) {
            return;
        }
        let session = self.session;
        let frame = &self.expanded.frames[number as usize];
        let said = session.frame_text(frame);
        let (function, is_new) = self.functions.number(&said.function);
        if is_new {
            trace.intern_text(field::interned::FUNCTION_NAMES, function, &said.function);
        }
        let source = match said.file {
            "" => None,
            file => {
                let (source, is_new) = self.sources.number(file);
                if is_new {
                    trace.intern_text(field::interned::SOURCE_PATHS, source, file);
                }
                Some(source)
            }
        };
        let location = session.stacks.location(frame.location);
        let module = location.and_then(|location| session.stacks.module_of(location));
        let mapping = module.map(|module| module.id);
        if let Some(id) = mapping {
            self.write_mapping(trace, id);
        }
        trace.intern(|out| {
            nested(out, field::interned::FRAMES, |out| {
                // Readers take the id 0 for none.
                uint(out, field::frame::ID, u64::from(number) + 1);
                uint(out, field::frame::FUNCTION, function);
                // An address means nothing without its mapping.
                if let (Some(mapping), Some(location)) = (mapping, location) {
                    uint(out, field::frame::MAPPING, mapping.into());
                    uint(out, field::frame::ADDRESS, location.offset);
                }
                if let Some(source) = source {
                    uint(out, field::frame::SOURCE_PATH, source);
                }
                if said.line != 0 {
                    uint(out, field::frame::LINE, said.line.into());
                }
            });
        });
    }

    fn write_mapping(&mut self, trace: &mut Trace, id: u32) {
        let Some(module) = self.session.stacks.module(id) else {
            return;
        };
        if !self.mappings.insert(id) {
            return;
        }
        let number = u64::from(id);
        let path = self.session.strings.get(module.path);
        // Readers put a slash before each part of a path.
        let path = path.strip_prefix('/').unwrap_or(path);
        trace.intern_text(field::interned::MAPPING_PATHS, number, path);
        if !module.build_id.is_empty() {
            trace.intern_text(field::interned::BUILD_IDS, number, &module.build_id);
        }
        trace.intern(|out| {
            nested(out, field::interned::MAPPINGS, |out| {
                uint(out, field::mapping::ID, number);
                if !module.build_id.is_empty() {
                    uint(out, field::mapping::BUILD_ID, number);
                }
                uint(out, field::mapping::START, module.start);
                uint(out, field::mapping::END, module.end);
                uint(out, field::mapping::LOAD_BIAS, module.base);
                uint(out, field::mapping::PATH, number);
            });
        });
    }
}
