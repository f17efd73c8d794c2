//! Names of code that was made at run time and is in no file.

use std::path::Path;

use rpd_core::session::Session;
use rpd_core::session::stacks::{LocationKind, StackFrame};

use crate::jit_object;
use crate::native::{readable, shorten};
use crate::perf_map::{self, PerfMap};

/// Names the frames of the session that are in no file: from what the program registered with debuggers and, where that
/// names nothing, from the map that it wrote for perf, in `maps`. Maps are to be read where and when the process ran: later,
/// another may have its number. Returns how many frames have a name.
pub fn name_jit(session: &mut Session, maps: Option<&Path>) -> usize {
    let mut named = Vec::new();
    let mut others = Vec::new();
    let stacks = &session.stacks;
    let is_jit = |kind| kind == LocationKind::Jit;
    // What the program registered names the code exactly; the map is a text that may be older than the code.
    for location in stacks.locations.iter().filter(|own| is_jit(own.kind)) {
        let object = stacks.object_of(location);
        match object.and_then(|object| jit_object::name_at(object, location.offset)) {
            Some(name) => named.push((location.id, readable(&name), jit_object::EVIDENCE)),
            None => others.push((location.id, location.offset)),
        }
    }
    let map = maps.filter(|_| !others.is_empty());
    if let Some(map) = map.and_then(|directory| PerfMap::from_process(&session.process, directory))
    {
        let addresses: Vec<u64> = others.iter().map(|(_, address)| *address).collect();
        for ((location, _), name) in others.iter().zip(map.names(&addresses)) {
            named.extend(name.map(|name| (*location, name.to_owned(), perf_map::EVIDENCE)));
        }
    }
    for (location, name, evidence) in &named {
        let frame = StackFrame {
            location: *location,
            inline_depth: 0,
            function: session.strings.intern(&shorten(name)),
            file: rpd_core::ids::StringId(0),
            line: 0,
            column: 0,
            evidence: (*evidence).to_owned(),
        };
        let frames = &mut session.stacks.frames;
        // Frames are ordered by location, which look-ups rely on.
        let at = frames.partition_point(|frame| frame.location < *location);
        match frames.get_mut(at) {
            Some(own) if own.location == *location => *own = frame,
            _ => frames.insert(at, frame),
        }
    }
    named.len()
}

/// Whether the symbols of a session were looked up: it has frames with evidence other than that of [`name_jit`]. A database has
/// rows without evidence for frames whose symbols were not looked up.
pub fn is_looked_up(session: &Session) -> bool {
    let frames = &session.stacks.frames;
    frames
        .iter()
        .any(|frame| !frame.evidence.is_empty() && !is_named(frame))
}

/// Whether a frame has its name from [`name_jit`].
pub(crate) fn is_named(frame: &StackFrame) -> bool {
    [jit_object::EVIDENCE, perf_map::EVIDENCE].contains(&&*frame.evidence)
}
