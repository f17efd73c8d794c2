//! Call stacks, which only databases of rpd have.

use rpd_core::ids::{CorrelationId, Nanoseconds};
use rpd_core::session::StackRef;
use rpd_core::session::stacks::{
    GeneratedFile, GeneratedLines, LocationKind, PythonCode, StackFrame, StackLocation,
    StackModule, StackNode,
};
use rpd_core::storage::column::Storage;
use rpd_core::storage::lookup::Lookup;
use rpd_core::storage::sorted::Keyed;
use rusqlite::Result;
use rusqlite::types::ValueRef;
use zerocopy::{Immutable, IntoBytes};

use super::info::Info;
use super::scan::{Source, bits, bytes, integer, text, word};

/// The stack of the record with this event.
#[derive(Debug, Clone, Copy, Immutable, IntoBytes)]
#[repr(C)]
struct StackOfEvent {
    event: i64,
    stack: StackRef,
}

impl Keyed for StackOfEvent {
    type Key = i64;

    fn key(&self) -> i64 {
        self.event
    }
}

/// The stacks of records by their events.
#[derive(Debug, Default)]
pub(super) struct StackOf(Lookup<StackOfEvent>);

impl StackOf {
    /// Whether no record has one.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The stack of the record with this event.
    pub(super) fn get(&self, event: i64) -> StackRef {
        let found = self.0.find(event);
        found.map_or(StackRef::default(), |found| found.stack)
    }
}

/// Reads what stacks refer to into `info.session`; the stacks of records are left to those.
pub(super) fn read(source: &Source<'_>, info: &mut Info, storage: &Storage) -> Result<StackOf> {
    let mut stack_of = StackOf::default();
    if !source.has("rpd_api_stack")? {
        return Ok(stack_of);
    }
    let columns = "id, path_id, build_id, base, start, \"end\", seen_from, seen_to";
    source.each(columns, "rpd_module", |row| {
        let module = StackModule {
            id: word(row, 0),
            path: info.string(word(row, 1)),
            build_id: text(row, 2),
            base: bits(row, 3),
            start: bits(row, 4),
            end: bits(row, 5),
            seen_from: Nanoseconds(bits(row, 6)),
            seen_to: match row.get_ref(7) {
                Ok(ValueRef::Integer(time)) => Some(Nanoseconds(time.cast_unsigned())),
                _ => None,
            },
        };
        info.session.stacks.modules.push(module);
        Ok(())
    })?;
    let columns = "id, filename_id, name_id, qualname_id, firstlineno, pyversion, linetable";
    source.each(columns, "rpd_pycode", |row| {
        let code = PythonCode {
            id: word(row, 0),
            file: info.string(word(row, 1)),
            name: info.string(word(row, 2)),
            qualname: info.string(word(row, 3)),
            first_line: i32::try_from(integer(row, 4)).unwrap_or(0),
            version: word(row, 5),
            lines: bytes(row, 6).to_vec(),
        };
        info.session.stacks.code.push(code);
        Ok(())
    })?;
    let stacks = &mut info.session.stacks;
    let columns = "id, kind, module_id, rel_pc, pycode_id, lasti";
    source.each(columns, "rpd_location", |row| {
        let Some(kind) = LocationKind::from_word(&text(row, 1)) else {
            return Ok(());
        };
        let is_python = kind == LocationKind::Python;
        stacks.locations.push(StackLocation {
            id: word(row, 0),
            kind,
            owner: word(row, if is_python { 4 } else { 2 }),
            offset: bits(row, if is_python { 5 } else { 3 }),
        });
        Ok(())
    })?;
    source.each("id, parent_id, location_id, depth", "rpd_stack", |row| {
        stacks.nodes.push(StackNode {
            id: word(row, 0),
            parent: word(row, 1),
            location: word(row, 2),
            depth: word(row, 3),
        });
        Ok(())
    })?;
    let columns = "id, location_id, inline_depth, function_id, file_id, line, col, evidence";
    source.each(columns, "rpd_frame", |row| {
        // Frames that stand for calls have negative depths, and are made again from the others.
        let Ok(inline_depth) = u32::try_from(integer(row, 2)) else {
            return Ok(());
        };
        let frame = StackFrame {
            location: word(row, 1),
            inline_depth,
            function: info.string(word(row, 3)),
            file: info.string(word(row, 4)),
            line: word(row, 5),
            column: word(row, 6),
            evidence: text(row, 7),
        };
        info.session.stacks.frames.push(frame);
        Ok(())
    })?;
    // Databases of earlier versions lack it.
    if source.has("rpd_captured_node")? {
        let columns = "graph_exec_id, graph_node_id, stack_id";
        source.each(columns, "rpd_captured_node", |row| {
            let call = CorrelationId(bits(row, 2));
            let node = (word(row, 0), word(row, 1));
            info.session.captured.insert(node, call);
            Ok(())
        })?;
    }
    if source.has("rpd_generated_line")? {
        read_generated(source, info)?;
    }
    source.each_by(
        "api_id",
        "api_id, stack_id, flags",
        "rpd_api_stack",
        |row| {
            let found = StackOfEvent {
                event: integer(row, 0),
                stack: StackRef {
                    stack: word(row, 1),
                    flags: word(row, 2),
                },
            };
            source.stored(stack_of.0.push(Some(storage), found))
        },
    )?;
    source.stored(stack_of.0.seal(Some(storage)))?;
    let missing = info.session.stacks.remove_defects();
    if missing.nodes > 0 {
        let notes = &mut info.session.ledger.notes;
        notes.push(format!(
            "{} parts of call stacks are left out: what they refer to is not in the database",
            missing.nodes
        ));
    }
    Ok(stack_of)
}

/// Generated files, which databases of older versions lack.
fn read_generated(source: &Source<'_>, info: &mut Info) -> Result<()> {
    let columns = "id, file_id, first_line, last_line, depth, function_id, source_id, source_line";
    source.each(columns, "rpd_generated_line", |row| {
        let range = GeneratedLines {
            file: info.string(word(row, 1)),
            first: word(row, 2),
            last: word(row, 3),
            depth: word(row, 4),
            function: info.string(word(row, 5)),
            source: info.string(word(row, 6)),
            line: word(row, 7),
        };
        info.session.stacks.generated.push(range);
        Ok(())
    })?;
    source.each_by("file_id", "file_id, text", "rpd_generated_file", |row| {
        let own = GeneratedFile {
            file: info.string(word(row, 0)),
            text: text(row, 1),
        };
        info.session.stacks.generated_files.push(own);
        Ok(())
    })
}
