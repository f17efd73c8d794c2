//! Rows of call stacks; the statements of their tables are in `stacks.sql`.

use rpd_core::ids::StringId;
use rpd_core::options::Options;
use rpd_core::session::shown::expand;
use rpd_core::session::stacks::LocationKind;
use rpd_core::session::{Session, StackRef};
use rusqlite::{Connection, Result, params};

use super::bulk::Bulk;
use super::info::Ids;
use super::names::Names;
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

/// Stacks of records, one row each, in the order of their events.
pub(super) struct Records<'c>(Option<Bulk<'c>>);

impl<'c> Records<'c> {
    /// Makes the tables if the database has some.
    pub(super) fn new(
        connection: &'c Connection,
        names: &Names,
        session: &Session,
        options: &Options,
    ) -> Result<Records<'c>> {
        if !has_tables(session, options) {
            return Ok(Records(None));
        }
        connection.execute_batch(&names.fill_in(TABLES))?;
        let bulk = Bulk::new(
            connection,
            &names.table("rpd_api_stack"),
            &["api_id", "stack_id", "flags"],
        )?;
        Ok(Records(Some(bulk)))
    }

    /// The stack of the record with this event; `None` and an empty one have no row.
    #[inline]
    pub(super) fn add(&mut self, event: i64, own: Option<&StackRef>) -> Result<()> {
        if let Some(bulk) = &mut self.0
            && let Some(own) = own.filter(|own| own.stack != 0)
        {
            bulk.integer(event)
                .integer(own.stack.into())
                .integer(own.flags.into())
                .end_row()?;
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<()> {
        self.0.map_or(Ok(()), Bulk::finish)
    }
}

/// Writes what stacks refer to, and makes indices and views.
pub(super) fn write(
    connection: &Connection,
    names: &Names,
    ids: &Ids,
    session: &Session,
    options: &Options,
) -> Result<()> {
    if !has_tables(session, options) {
        return Ok(());
    }
    let writer = Writer {
        connection,
        names,
        ids,
        session,
    };
    writer.modules()?;
    writer.code()?;
    writer.locations()?;
    writer.nodes()?;
    writer.generated()?;
    writer.metadata(options)?;
    if !session.stacks.frames.is_empty() {
        let expanded = expand(session, options.stacks.shown);
        symbols::insert(connection, &names.suffix, &Symbols::of(session, &expanded))?;
    }
    connection.execute_batch(&names.fill_in(INDICES))?;
    connection.execute_batch(&names.fill_in(VIEWS))
}

struct Writer<'a> {
    connection: &'a Connection,
    names: &'a Names,
    ids: &'a Ids,
    session: &'a Session,
}

impl Writer<'_> {
    fn bulk(&self, table: &str, columns: &[&str]) -> Result<Bulk<'_>> {
        Bulk::new(self.connection, &self.names.table(table), columns)
    }

    fn modules(&self) -> Result<()> {
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
        let mut bulk = self.bulk("rpd_module", &columns)?;
        for module in &self.session.stacks.modules {
            let build_id = Some(&*module.build_id).filter(|id| !id.is_empty());
            bulk.integer(module.id.into())
                .integer(self.ids.string(module.path))
                .optional_text(build_id)
                .bits(module.base)
                .bits(module.start)
                .bits(module.end)
                .bits(module.seen_from.0)
                .optional(module.seen_to.map(|time| time.0.cast_signed()))
                .end_row()?;
        }
        bulk.finish()
    }

    fn code(&self) -> Result<()> {
        let mut insert = self.connection.prepare(&format!(
            "INSERT INTO {} (id, filename_id, name_id, qualname_id, firstlineno, pyversion, linetable)
                VALUES (?, ?, ?, ?, ?, ?, ?)",
            self.names.table("rpd_pycode")
        ))?;
        for code in &self.session.stacks.code {
            let known = Some(code.qualname).filter(|name| *name != StringId(0));
            insert.execute(params![
                code.id,
                self.ids.string(code.file),
                self.ids.string(code.name),
                known.map(|name| self.ids.string(name)),
                code.first_line,
                code.version,
                code.lines,
            ])?;
        }
        Ok(())
    }

    fn locations(&self) -> Result<()> {
        let columns = ["id", "kind", "module_id", "rel_pc", "pycode_id", "lasti"];
        let mut bulk = self.bulk("rpd_location", &columns)?;
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
            bulk.integer(location.id.into())
                .text(location.kind.word())
                .optional(module)
                .optional(address)
                .optional(code)
                .optional(lasti)
                .end_row()?;
        }
        bulk.finish()
    }

    fn nodes(&self) -> Result<()> {
        let mut bulk = self.bulk("rpd_stack", &["id", "parent_id", "location_id", "depth"])?;
        for node in &self.session.stacks.nodes {
            bulk.integer(node.id.into())
                .optional(Some(node.parent.into()).filter(|parent| *parent != 0))
                .integer(node.location.into())
                .integer(node.depth.into())
                .end_row()?;
        }
        bulk.finish()
    }

    fn generated(&self) -> Result<()> {
        let stacks = &self.session.stacks;
        let mut insert = self.connection.prepare(&format!(
            "INSERT INTO {} (file_id, first_line, last_line, depth, function_id, source_id, source_line)
                VALUES (?, ?, ?, ?, ?, ?, ?)",
            self.names.table("rpd_generated_line")
        ))?;
        let known = |id: StringId| (id != StringId(0)).then(|| self.ids.string(id));
        for range in &stacks.generated {
            insert.execute(params![
                self.ids.string(range.file),
                range.first,
                range.last,
                range.depth,
                known(range.function),
                known(range.source),
                range.line,
            ])?;
        }
        let mut insert = self.connection.prepare(&format!(
            "INSERT INTO {} (file_id, text) VALUES (?, ?)",
            self.names.table("rpd_generated_file")
        ))?;
        for own in &stacks.generated_files {
            insert.execute(params![self.ids.string(own.file), own.text])?;
        }
        Ok(())
    }

    fn metadata(&self, options: &Options) -> Result<()> {
        let mut insert = self.connection.prepare(&format!(
            "INSERT INTO {} (tag, value) VALUES (?, ?)",
            self.names.table("rocpd_metadata")
        ))?;
        let truth = |value: bool| if value { "1" } else { "0" };
        let shown = options.stacks.shown;
        insert.execute([MODE, options.collector.stacks.mode.word()])?;
        insert.execute([symbols::RUNTIME_FRAMES, truth(shown.runtime)])?;
        insert.execute([symbols::INTERPRETER_FRAMES, truth(shown.interpreter)])?;
        Ok(())
    }
}
