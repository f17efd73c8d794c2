//! Frames of stacks in RPD's words. The views of `rocpd/stacks_compat.sql` put the same texts together in SQL.

use rpd_core::ids::StringId;
use rpd_core::session::Session;
use rpd_core::session::shown::{Expanded, FrameKind, ShownFrame};
use rpd_core::session::stacks::LocationKind;

/// Characters of the column with the address or its replacement.
const HEAD: usize = 18;

/// The frames of a stack, innermost first, each with its number: `#2 0x00000000002055ae in main at main.hip:169:5`.
/// `function` is what was called.
pub fn frame_lines(
    session: &Session,
    expanded: &Expanded,
    stack: u32,
    function: &str,
) -> Vec<String> {
    let frames = expanded.stacks.get(&stack).map_or(&[][..], Vec::as_slice);
    let width = frames.len().saturating_sub(1).to_string().len();
    let line = |(depth, &frame): (usize, &u32)| {
        let frame = expanded.frames.get(frame as usize)?;
        let text = text(session, frame, function);
        Some(format!("#{depth:<width$} {text}"))
    };
    frames.iter().enumerate().filter_map(line).collect()
}

fn text(session: &Session, frame: &ShownFrame, function: &str) -> String {
    let known = |id: StringId| Some(session.strings.get(id)).filter(|text| !text.is_empty());
    let location = session.stacks.location(frame.location);
    let kind = location.map_or(LocationKind::Native, |location| location.kind);
    let module = location.and_then(|location| session.stacks.module_of(location));
    let is_code = matches!(
        kind,
        LocationKind::Native | LocationKind::Guessed | LocationKind::Jit
    );
    // The head takes the place of a number or address in frames that have none.
    let head = match frame.kind {
        FrameKind::Inlined => "(inlined)".to_owned(),
        FrameKind::Source => "(source)".to_owned(),
        FrameKind::Call { has_address: false } => "(api)".to_owned(),
        FrameKind::Call { .. } | FrameKind::Physical if is_code => {
            let base = module.map_or(0, |module| module.base);
            let offset = location.map_or(0, |location| location.offset);
            format!("{:#018x}", base.wrapping_add(offset))
        }
        FrameKind::Call { .. } | FrameKind::Physical => {
            let word = kind.word();
            format!("({})", word.strip_suffix("-marker").unwrap_or(word))
        }
    };
    let mut text = format!("{head:<HEAD$}");
    let is_call = matches!(frame.kind, FrameKind::Call { .. });
    // Markers are sentences for the reader, and have no place in code.
    match kind {
        LocationKind::GapMarker if !is_call => return text + " frames left out",
        LocationKind::TruncatedMarker if !is_call => {
            return text + " the stack could not be followed further";
        }
        LocationKind::UnplacedMarker if !is_call => {
            return text + " the Python frames above have no place among the native ones";
        }
        LocationKind::Native
        | LocationKind::Guessed
        | LocationKind::Python
        | LocationKind::Jit
        | LocationKind::Api
        | LocationKind::Script
        | LocationKind::Inductor
        | LocationKind::UnplacedMarker
        | LocationKind::TruncatedMarker
        | LocationKind::GapMarker => {}
    }
    match known(frame.function) {
        // The traced call is known by its function, whose frame may have no name.
        _ if is_call => text += &format!(" in {function}()"),
        Some(name) => text += &format!(" in {name}"),
        None => {}
    }
    if let Some(file) = known(frame.file) {
        text += &format!(" at {file}");
        if frame.line > 0 {
            text += &format!(":{}", frame.line);
            if frame.column > 0 {
                text += &format!(":{}", frame.column);
            }
        }
    // Without a line, the module is what tools for symbols need.
    } else if let Some(module) = module {
        text += &format!(" at {}", session.strings.get(module.path));
    } else if kind == LocationKind::Jit {
        text += " at [anon]";
    }
    text
}
