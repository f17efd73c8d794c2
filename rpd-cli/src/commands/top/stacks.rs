//! The stacks of calls: which one of a function takes most time, and its frames.

use std::collections::HashMap;

use rpd_spool::format::{self, location_kind};
use rpd_spool::record::RecordKind;
use rpd_symbols::{Module, Search, Symbolizer};
use zerocopy::FromBytes as _;

/// Entries of each table of a process that are kept. Frames of further stacks are not shown.
const MOST: usize = 1 << 18;
/// Stacks of each function whose time is added up.
const MOST_STACKS: usize = 256;
/// Frames of a stack that are shown.
const MOST_FRAMES: usize = 64;

/// What stacks of a process refer to.
#[derive(Default)]
pub(super) struct CallTree {
    /// Parent and location by node.
    nodes: HashMap<u32, (u32, u32)>,
    /// Kind, owner and offset by location.
    locations: HashMap<u32, (u16, u32, u64)>,
    modules: HashMap<u32, Module>,
    /// Function and file of Python code.
    codes: HashMap<u32, (String, String)>,
    /// Time of calls by function and stack.
    calls: HashMap<(u16, u32), HashMap<u32, u64>>,
}

impl CallTree {
    /// Takes a fact about stacks; other facts are none of its business.
    pub(super) fn take(&mut self, kind: RecordKind, bytes: &[u8]) {
        match kind {
            RecordKind::StackNode => {
                if let Ok((node, _)) = format::StackNode::read_from_prefix(bytes)
                    && self.nodes.len() < MOST
                {
                    self.nodes.insert(node.id, (node.parent, node.location));
                }
            }
            RecordKind::StackLocation => {
                if let Ok((place, _)) = format::StackLocation::read_from_prefix(bytes)
                    && self.locations.len() < MOST
                {
                    let location = (place.header.aux, place.owner, place.offset);
                    self.locations.insert(place.id, location);
                }
            }
            RecordKind::StackModule => {
                if let Ok((module, tail)) = format::StackModule::read_from_prefix(bytes)
                    && self.modules.len() < MOST
                {
                    let [path, build_id] = texts(tail, [module.path_len, module.build_id_len]);
                    let digits: String =
                        build_id.iter().map(|byte| format!("{byte:02x}")).collect();
                    let found = Module {
                        path: String::from_utf8_lossy(path).into_owned(),
                        build_id: (!digits.is_empty()).then_some(digits),
                    };
                    self.modules.insert(module.id, found);
                }
            }
            RecordKind::StackCode => {
                if let Ok((code, tail)) = format::StackCode::read_from_prefix(bytes)
                    && self.codes.len() < MOST
                {
                    let [file, name] = texts(tail, [code.file_len, code.name_len])
                        .map(|text| String::from_utf8_lossy(text).into_owned());
                    self.codes.insert(code.id, (name, file));
                }
            }
            _ => {}
        }
    }

    /// Adds a call of a function with a stack.
    pub(super) fn add_call(&mut self, function: (u16, u32), stack: u32, time: u64) {
        let stacks = self.calls.entry(function).or_default();
        if stack != 0 && (stacks.len() < MOST_STACKS || stacks.contains_key(&stack)) {
            let sum = stacks.entry(stack).or_default();
            *sum = sum.saturating_add(time);
        }
    }

    /// The stack of a function that takes most time, with this time; `None` without stacks.
    pub(super) fn hottest(&self, function: (u16, u32)) -> Option<(u64, u32)> {
        let stacks = self.calls.get(&function)?;
        stacks.iter().map(|(stack, time)| (*time, *stack)).max()
    }

    /// The frames of a stack for people, innermost first. Looks native ones up in their files.
    pub(super) fn frames(&self, stack: u32) -> Vec<String> {
        let mut symbols = Symbolizer::new(Search::default());
        let mut frames = Vec::new();
        let mut node = stack;
        while node != 0 && frames.len() < MOST_FRAMES {
            let Some(&(parent, location)) = self.nodes.get(&node) else {
                break;
            };
            if let Some(&(kind, owner, offset)) = self.locations.get(&location) {
                frames.push(self.frame(kind, owner, offset, &mut symbols));
            }
            // Parents have smaller numbers: damaged ones would make a circle.
            if parent >= node {
                break;
            }
            node = parent;
        }
        frames
    }

    fn frame(&self, kind: u16, owner: u32, offset: u64, symbols: &mut Symbolizer) -> String {
        match kind {
            location_kind::PYTHON => match self.codes.get(&owner) {
                Some((name, file)) => format!("{name} ({file})"),
                None => "Python".to_owned(),
            },
            location_kind::NATIVE | location_kind::GUESSED => {
                let Some(module) = self.modules.get(&owner) else {
                    return format!("{offset:#x}");
                };
                // The address behind the call.
                let found = symbols.frames(module, &[offset.saturating_sub(1)]);
                let function = found.into_iter().flatten().find_map(|frame| frame.function);
                let file = module.path.rsplit('/').next().unwrap_or_default();
                match function {
                    Some(function) => format!("{function} ({file})"),
                    None => format!("{file}+{offset:#x}"),
                }
            }
            location_kind::API => "(the call)".to_owned(),
            location_kind::GAP_MARKER => "(frames were left out)".to_owned(),
            location_kind::TRUNCATED_MARKER => "(the outer frames are not known)".to_owned(),
            location_kind::UNPLACED_MARKER => "(Python frames:)".to_owned(),
            _ => format!("generated code at {offset:#x}"),
        }
    }
}

/// The texts at the begin of a tail, by their lengths; shorter where the tail ends before.
fn texts<const N: usize>(tail: &[u8], lens: [u32; N]) -> [&[u8]; N] {
    let mut rest = tail;
    lens.map(|len| {
        let (text, behind) = rest.split_at((len as usize).min(rest.len()));
        rest = behind;
        text
    })
}
