//! Records of call stacks, and the check that all parts of a stack are in the recording.

use std::io;

use super::super::stacks::{
    GeneratedLines, JitObject, LocationKind, PythonCode, StackLocation, StackModule, StackNode,
};
use super::super::{Session, StackRef};
use super::note_damage;
use crate::ids::Nanoseconds;
use crate::spool::format::{self, stack_flag};
use crate::spool::reader::Record;
use crate::storage::column::Storage;
use crate::text::os_text;

/// Size in bytes up to which a name is kept. Compilers generate names of any length.
const MAX_NAME: usize = 16 << 10;

/// Splits the next `len` bytes off a tail.
fn part<'a>(tail: &mut &'a [u8], len: u32) -> Option<&'a [u8]> {
    let (part, rest) = tail.split_at_checked(len as usize)?;
    *tail = rest;
    Some(part)
}

/// The text of a name. A name that is too long is cut off and ends in `...`.
fn name(bytes: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_NAME)]).into_owned();
    if bytes.len() > MAX_NAME {
        text.push_str("...");
    }
    text
}

pub(super) fn load_module(record: &Record<'_>, session: &mut Session) -> Option<()> {
    let (fixed, mut tail) = record.parse::<format::StackModule>()?;
    let path = part(&mut tail, fixed.path_len)?;
    let build_id = part(&mut tail, fixed.build_id_len)?;
    let path = session.strings.intern(&os_text::escape_bytes(path));
    session.stacks.modules.push(StackModule {
        id: fixed.id,
        path,
        build_id: build_id.iter().map(|byte| format!("{byte:02x}")).collect(),
        base: fixed.base,
        start: fixed.start,
        end: fixed.end,
        seen_from: Nanoseconds(fixed.time),
        seen_to: None,
    });
    Some(())
}

pub(super) fn load_code(record: &Record<'_>, session: &mut Session) -> Option<()> {
    let (fixed, mut tail) = record.parse::<format::StackCode>()?;
    let mut text = |len: u32| Some(session.strings.intern(&name(part(&mut tail, len)?)));
    let file = text(fixed.file_len)?;
    let function = text(fixed.name_len)?;
    let qualname = text(fixed.qualname_len)?;
    let lines = part(&mut tail, fixed.lines_len)?;
    session.stacks.code.push(PythonCode {
        id: fixed.id,
        file,
        name: function,
        qualname,
        first_line: fixed.first_line,
        version: fixed.version,
        lines: lines.to_vec(),
    });
    Some(())
}

pub(super) fn load_object(record: &Record<'_>, session: &mut Session) -> Option<()> {
    let (fixed, mut tail) = record.parse::<format::StackObject>()?;
    let mut bytes = |len| Some(part(&mut tail, len)?.to_vec());
    session.stacks.objects.push(JitObject {
        id: fixed.id,
        kind: record.header.aux,
        sections: bytes(fixed.sections_len)?,
        symbols: bytes(fixed.symbols_len)?,
        names: bytes(fixed.names_len)?,
    });
    Some(())
}

pub(super) fn load_location(record: &Record<'_>, session: &mut Session) -> Option<()> {
    let (fixed, _) = record.parse::<format::StackLocation>()?;
    // Locations of a kind that only a newer collector writes are left out. Nodes that refer to them are defects.
    if let Some(kind) = LocationKind::from_number(record.header.aux) {
        session.stacks.locations.push(StackLocation {
            id: fixed.id,
            kind,
            owner: fixed.owner,
            offset: fixed.offset,
        });
    }
    Some(())
}

pub(super) fn load_node(record: &Record<'_>, session: &mut Session) -> Option<()> {
    let (fixed, _) = record.parse::<format::StackNode>()?;
    session.stacks.nodes.push(StackNode {
        id: fixed.id,
        parent: fixed.parent,
        location: fixed.location,
        depth: fixed.depth,
    });
    Some(())
}

pub(super) fn load_source(record: &Record<'_>, session: &mut Session) -> Option<()> {
    let (fixed, mut tail) = record.parse::<format::StackSource>()?;
    let file = session
        .strings
        .intern(&name(part(&mut tail, fixed.file_len)?));
    let mut frames = part(&mut tail, fixed.frames_len)?;
    let mut depth = 0;
    // The frames are packed: three numbers, then the two texts whose lengths are the last two of them.
    while !frames.is_empty() {
        let mut number = || Some(u32::from_le_bytes(part(&mut frames, 4)?.try_into().ok()?));
        let (line, function_len, source_len) = (number()?, number()?, number()?);
        let mut text = |len| Some(session.strings.intern(&name(part(&mut frames, len)?)));
        let function = text(function_len)?;
        let source = text(source_len)?;
        session.stacks.generated.push(GeneratedLines {
            file,
            first: fixed.first,
            last: fixed.last,
            depth,
            function,
            source,
            line,
        });
        depth += 1;
    }
    Some(())
}

/// Sorts the parts of the stacks. Calls whose stack is not in the recording have no stack, and are reported as
/// damage.
pub(super) fn finish(session: &mut Session, storage: &Storage) -> io::Result<()> {
    // A node that is removed here is counted below if a call refers to it.
    session.stacks.remove_defects();
    let stacks = &session.stacks;
    // A call must not point at a stack that is not there: writers take the id as a key of another table.
    let (mut missing, mut lost) = (0_u64, 0_u64);
    let is_good = |own: StackRef| own.stack == 0 || stacks.node(own.stack).is_some();
    let good = |own: StackRef| {
        if is_good(own) {
            own
        } else {
            StackRef {
                stack: 0,
                flags: own.flags | stack_flag::LOST,
            }
        }
    };
    for column in [&mut session.calls.stack, &mut session.allocations.stack] {
        let mut bad = 0;
        for own in column.iter() {
            bad += u64::from(!is_good(*own));
            lost += u64::from(own.flags & stack_flag::LOST != 0);
        }
        // Rewriting copies the column to a new file, so it is done only where there is a defect.
        if bad > 0 {
            column.rewrite(storage, good)?;
        }
        missing += bad;
    }
    // Modules and code that no stack uses would be looked up by symbolizing, which takes time.
    session.drop_unused_stacks();
    let damage = &mut session.ledger.damage;
    if missing > 0 {
        note_damage(
            damage,
            format!(
                "{} calls refer to stacks that are not in the recording; they are shown without stacks",
                missing
            ),
        );
    }
    if lost > 0 {
        note_damage(
            damage,
            format!("{} stacks could not be stored by the collector", lost),
        );
    }
    Ok(())
}
