//! Rows of call stacks; the statements of their tables are in `stacks.sql`.

use std::io;

use rpd_core::ids::StringId;
use rpd_core::options::Options;
use rpd_core::session::shown::expand;
use rpd_core::session::stacks::LocationKind;
use rpd_core::session::{Session, StackRef};
use rusqlite::Connection;

use super::names::Names;
use super::rows::{Events, Writer};
use super::symbols::{self, Symbols};

const TABLES: &str = include_str!("stacks.sql");
pub(super) const VIEWS: &str = include_str!("stacks_views.sql");
/// Views for people.
pub(super) const ANSWERS: &str = include_str!("stacks_answers.sql");
const INDICES: &str = include_str!("stacks_indices.sql");

/// Metadata: which frames stacks have.
const MODE: &str = "stacks";

/// Whether the database has tables of stacks: when they were requested too, so that SQL about stacks finds no rows, not no table.
pub(super) fn has_tables(session: &Session, options: &Options) -> bool {
    !session.stacks.is_empty() || options.collector.stacks.any()
}

/// Makes the tables, if the database has them.
pub(super) fn create(
    connection: &Connection,
    names: &Names,
    session: &Session,
    options: &Options,
) -> rusqlite::Result<()> {
    if !has_tables(session, options) {
        return Ok(());
    }
    for statements in [TABLES, INDICES, VIEWS] {
        connection.execute_batch(&names.fill_in(statements))?;
    }
    let mut insert = connection.prepare(&format!(
        "INSERT INTO {} (tag, value) VALUES (?, ?)",
        names.table("rocpd_metadata")
    ))?;
    let truth = |value: bool| if value { "1" } else { "0" };
    let shown = options.stacks.shown;
    insert.execute([MODE, options.collector.stacks.mode.word()])?;
    insert.execute([symbols::RUNTIME_FRAMES, truth(shown.runtime)])?;
    insert.execute([symbols::INTERPRETER_FRAMES, truth(shown.interpreter)])?;
    Ok(())
}

/// Writes stacks, and what they refer to.
pub(super) fn write(writer: &Writer<'_>, events: &Events) -> io::Result<()> {
    let writer = StackWriter {
        writer,
        session: writer.session,
    };
    writer.records(events)?;
    writer.captured()?;
    writer.modules()?;
    writer.code()?;
    writer.locations()?;
    writer.nodes()?;
    writer.generated()
}

/// Writes the symbols of stacks, if they were looked up. Texts that are new are added to those in the database.
pub(super) fn write_symbols(
    connection: &Connection,
    names: &Names,
    session: &Session,
    options: &Options,
) -> rusqlite::Result<()> {
    let expanded = expand(session, options.stacks.shown);
    symbols::insert(
        connection,
        &names.suffix,
        &Symbols::from_session(session, &expanded),
    )
}

struct StackWriter<'a> {
    writer: &'a Writer<'a>,
    session: &'a Session,
}

impl StackWriter<'_> {
    /// The stacks of records, in the order of their events.
    fn records(&self, events: &Events) -> io::Result<()> {
        let columns = ["api_id", "stack_id", "flags"];
        let mut rows = self.writer.rows("rpd_api_stack", &columns)?;
        let (table, allocations) = (&self.session.calls, &self.session.allocations);
        let calls = table.indices();
        let calls = calls.map(|index| (events.call(index), table.stack.get(index)));
        let others = allocations.indices();
        let others = others.map(|index| (events.allocation(index), allocations.stack.get(index)));
        for (event, stack) in calls.chain(others) {
            // An empty stack has no row.
            let Some(StackRef {
                stack: node @ 1..,
                flags,
                ..
            }) = stack
            else {
                continue;
            };
            rows.integer(event)
                .integer((*node).into())
                .integer((*flags).into())
                .end_row()?;
        }
        rows.finish()
    }

    /// The calls that added nodes to graphs.
    fn captured(&self) -> io::Result<()> {
        let columns = ["graph_exec_id", "graph_node_id", "stack_id"];
        let mut rows = self.writer.rows("rpd_captured_node", &columns)?;
        let mut nodes: Vec<_> = self.session.captured.iter().collect();
        nodes.sort_unstable();
        for ((exec, node), correlation) in nodes {
            rows.integer((*exec).into())
                .integer((*node).into())
                .bits(correlation.0)
                .end_row()?;
        }
        rows.finish()
    }

    fn modules(&self) -> io::Result<()> {
        let columns = [
            "id",
            "path_id",
            "build_id",
            "base",
            "start",
            "end",
            "seen_from",
            "seen_to",
        ];
        let mut rows = self.writer.rows("rpd_module", &columns)?;
        for module in &self.session.stacks.modules {
            let build_id = Some(&*module.build_id).filter(|id| !id.is_empty());
            rows.integer(module.id.into())
                .integer(self.writer.ids.string(module.path))
                .optional_text(build_id)
                .bits(module.base)
                .bits(module.start)
                .bits(module.end)
                .bits(module.seen_from.0)
                .optional(module.seen_to.map(|time| time.0.cast_signed()))
                .end_row()?;
        }
        rows.finish()
    }

    fn code(&self) -> io::Result<()> {
        let columns = [
            "id",
            "filename_id",
            "name_id",
            "qualname_id",
            "firstlineno",
            "pyversion",
            "linetable",
        ];
        let mut rows = self.writer.rows("rpd_pycode", &columns)?;
        for code in &self.session.stacks.code {
            let known = Some(code.qualname).filter(|name| *name != StringId(0));
            rows.integer(code.id.into())
                .integer(self.writer.ids.string(code.file))
                .integer(self.writer.ids.string(code.name))
                .optional(known.map(|name| self.writer.ids.string(name)))
                .integer(code.first_line.into())
                .integer(code.version.into())
                .blob(&code.lines)
                .end_row()?;
        }
        rows.finish()
    }

    fn locations(&self) -> io::Result<()> {
        let columns = ["id", "kind", "module_id", "rel_pc", "pycode_id", "lasti"];
        let mut rows = self.writer.rows("rpd_location", &columns)?;
        let stacks = &self.session.stacks;
        for location in &stacks.locations {
            let module = stacks.module_of(location).map(|module| module.id.into());
            let code = stacks.code_of(location).map(|code| code.id.into());
            let offset = Some(location.offset.cast_signed());
            // Positions in Python code are instructions of its bytecode, not addresses.
            let (address, lasti) = match location.kind {
                LocationKind::Native
                | LocationKind::Guessed
                | LocationKind::Jit
                | LocationKind::Api => (offset, None),
                LocationKind::Python => (None, offset),
                LocationKind::Script
                | LocationKind::Inductor
                | LocationKind::UnplacedMarker
                | LocationKind::TruncatedMarker
                | LocationKind::GapMarker => (None, None),
            };
            rows.integer(location.id.into())
                .text(location.kind.word())
                .optional(module)
                .optional(address)
                .optional(code)
                .optional(lasti)
                .end_row()?;
        }
        rows.finish()
    }

    fn nodes(&self) -> io::Result<()> {
        let mut rows = self
            .writer
            .rows("rpd_stack", &["id", "parent_id", "location_id", "depth"])?;
        for node in &self.session.stacks.nodes {
            rows.integer(node.id.into())
                .optional(Some(node.parent.into()).filter(|parent| *parent != 0))
                .integer(node.location.into())
                .integer(node.depth.into())
                .end_row()?;
        }
        rows.finish()
    }

    fn generated(&self) -> io::Result<()> {
        let stacks = &self.session.stacks;
        let columns = [
            "file_id",
            "first_line",
            "last_line",
            "depth",
            "function_id",
            "source_id",
            "source_line",
        ];
        let mut rows = self.writer.rows("rpd_generated_line", &columns)?;
        let known = |id: StringId| (id != StringId(0)).then(|| self.writer.ids.string(id));
        for range in &stacks.generated {
            rows.integer(self.writer.ids.string(range.file))
                .integer(range.first.into())
                .integer(range.last.into())
                .integer(range.depth.into())
                .optional(known(range.function))
                .optional(known(range.source))
                .integer(range.line.into())
                .end_row()?;
        }
        rows.finish()?;
        let mut rows = self
            .writer
            .rows("rpd_generated_file", &["file_id", "text"])?;
        let mut files: Vec<_> = stacks.generated_files.iter().collect();
        files.sort_by_key(|own| self.writer.ids.string(own.file));
        for own in files {
            rows.integer(self.writer.ids.string(own.file))
                .text(&own.text)
                .end_row()?;
        }
        rows.finish()
    }
}
