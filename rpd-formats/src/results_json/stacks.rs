//! `call_stacks`: the frames of the stacks that records refer to with `stack_id`. Files of runs without stacks lack it.

use rpd_core::options::Options;
use rpd_core::session::Session;
use rpd_core::session::shown::expand;

use super::records::{Out, separate};
use crate::WriteError;
use crate::file::TextFile;
use crate::json::Object;

/// Writes the key and its value, if there are stacks.
pub(super) fn write(
    file: &mut TextFile,
    session: &Session,
    options: &Options,
) -> Result<(), WriteError> {
    if session.stacks.is_empty() {
        return Ok(());
    }
    let expanded = expand(session, options.stacks.shown);
    Out(&mut file.buffer).text(",\"call_stacks\":{\"frames\":[");
    let mut first = true;
    for frame in &expanded.frames {
        separate(file, &mut first);
        let said = session.frame_text(frame);
        let location = session.stacks.location(frame.location);
        let mut object = Object::new().text("function", &said.function);
        // Unknown facts have no key.
        if !said.file.is_empty() {
            object = object.text("file", said.file);
        }
        for (key, number) in [("line", said.line), ("column", said.column)] {
            if number != 0 {
                object = object.number(key, number);
            }
        }
        if let Some(location) = location {
            object = object.text("kind", location.kind.word());
            if let Some(module) = session.stacks.module_of(location) {
                object = object
                    .text("module", session.strings.get(module.path))
                    .text("offset", &format!("{:#x}", location.offset));
            }
        }
        Out(&mut file.buffer).text(&object.end());
        file.flush_if_full()?;
    }
    Out(&mut file.buffer).text("],\"stacks\":[");
    let mut stacks: Vec<_> = expanded.stacks.iter().collect();
    // The order of a map changes from run to run; files of one recording are to be equal.
    stacks.sort_unstable_by_key(|(id, _)| **id);
    let mut first = true;
    for (id, frames) in stacks {
        separate(file, &mut first);
        let frames = frames.iter().map(u32::to_string);
        let object = Object::new().number("id", id).array("frames", frames);
        Out(&mut file.buffer).text(&object.end());
        file.flush_if_full()?;
    }
    Out(&mut file.buffer).text("]}");
    Ok(())
}
