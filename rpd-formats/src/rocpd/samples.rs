//! Rows of PC samples and of the code that they are at; the statements of their tables are in `samples.sql`.

use std::collections::BTreeSet;

use rpd_core::ids::{CodeObjectId, StringId};
use rpd_core::number_map::NumberMap;
use rpd_core::session::Session;
use rpd_core::session::samples::Issue;
use rpd_core::session::totals::{Place, Totals};
use rpd_core::spool::format::sample_flag;
use rusqlite::{Connection, Result, params};

use super::bulk::Bulk;
use super::info::Ids;
use super::names::Names;
use super::rows::BATCH;
use crate::progress;

const TABLES: &str = include_str!("samples.sql");
pub(super) const VIEWS: &str = include_str!("samples_views.sql");
/// Views that join the tables, for queries.
pub(super) const DATA_VIEWS: &str = include_str!("samples_data_views.sql");
/// The view that only databases with PC samples have.
pub(super) const SAMPLE: &str = "rpd_pc_sample";
const INDICES: &str = "CREATE INDEX rpd_instruction_line_instruction%suffix% ON rpd_instruction_line%suffix% (instruction_id);";

/// Bytes of code in one row: readers refuse values that are much longer.
const PART: usize = 16 << 20;

/// Decision of the issue logic, as in the database.
pub(super) fn issue_text(issue: Issue) -> Option<&'static str> {
    match issue {
        Issue::ISSUED => Some(ISSUED),
        other => other.stall(),
    }
}

/// The text of [`Issue::ISSUED`].
pub(super) const ISSUED: &str = "issued";

/// Writes samples, their sums and the code, if there are any. Returns the rows of instructions.
pub(super) fn write(
    connection: &Connection,
    names: &Names,
    ids: &Ids,
    session: &Session,
) -> Result<Places> {
    let traced = !session.thread_traces.summaries.is_empty();
    if session.samples.is_empty() && session.code.is_empty() && !traced {
        return Ok(Places::default());
    }
    connection.execute_batch(&names.fill_in(TABLES))?;
    let writer = Writer {
        connection,
        names,
        ids,
        session,
    };
    writer.sampling()?;
    writer.images()?;
    let totals = Totals::of(session);
    let places = writer.instructions(&totals)?;
    writer.sources()?;
    writer.samples(&places)?;
    writer.totals(&totals, &places)?;
    connection.execute_batch(&names.fill_in(INDICES))?;
    connection.execute_batch(&names.fill_in(VIEWS))?;
    Ok(places)
}

/// Row ids of instructions.
pub(super) type Places = NumberMap<(CodeObjectId, u64), i64>;

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

    fn text(&self, id: StringId) -> Option<i64> {
        (id != StringId(0)).then(|| self.ids.string(id))
    }

    fn sampling(&self) -> Result<()> {
        let columns = ["agent_id", "method", "unit", "interval"];
        let mut bulk = self.bulk("rpd_pc_sampling", &columns)?;
        for sampling in &self.session.sampling {
            bulk.optional(self.ids.agent(sampling.agent))
                .text(sampling.method.word())
                .text(sampling.unit.word())
                .bits(sampling.interval)
                .end_row()?;
        }
        bulk.finish()
    }

    fn images(&self) -> Result<()> {
        let code = &self.session.code;
        let name = |content: [u64; 2]| format!("{:016x}{:016x}", content[0], content[1]);
        let mut insert = self.connection.prepare(&format!(
            "INSERT INTO {} (content, bytes) VALUES (?, ?)",
            self.names.table("rpd_code_bytes")
        ))?;
        for image in &code.images {
            for part in image.bytes.chunks(PART) {
                insert.execute(params![name(image.content), part])?;
            }
            image.bytes.release();
        }
        let mut objects: Vec<(i64, String)> = code
            .image_of
            .iter()
            .filter_map(|(object, image)| {
                let image = code.images.get(*image as usize)?;
                Some((object.0.cast_signed(), name(image.content)))
            })
            .collect();
        objects.sort_unstable();
        let mut bulk = self.bulk("rpd_code_object", &["id", "content"])?;
        for (object, content) in &objects {
            bulk.integer(*object).text(content).end_row()?;
        }
        bulk.finish()
    }

    fn instructions(&self, totals: &Totals) -> Result<Places> {
        let code = &self.session.code;
        let mut places = Places::default();
        let columns = [
            "id",
            "code_object_id",
            "offset",
            "length",
            "text_id",
            "function_id",
        ];
        let mut bulk = self.bulk("rpd_instruction", &columns)?;
        let mut id = 0;
        for instruction in &code.instructions {
            id += 1;
            places.insert((instruction.object, instruction.offset), id);
            bulk.integer(id)
                .bits(instruction.object.0)
                .bits(instruction.offset)
                .integer(instruction.length.into())
                .optional(self.text(instruction.text))
                .optional(self.text(instruction.function))
                .end_row()?;
        }
        // Places of samples and of traced lines that no instruction is known at.
        let sampled = totals
            .places
            .keys()
            .map(|place| (place.object, place.offset));
        let traced = self.session.thread_traces.lines.iter();
        let unknown: BTreeSet<(CodeObjectId, u64)> = sampled
            .chain(traced.map(|line| (line.object, line.offset)))
            .filter(|place| !places.contains_key(place))
            .collect();
        for (object, offset) in unknown {
            id += 1;
            places.insert((object, offset), id);
            bulk.integer(id)
                .bits(object.0)
                .bits(offset)
                .integer(0)
                .null()
                .null()
                .end_row()?;
        }
        bulk.finish()?;
        let columns = [
            "instruction_id",
            "depth",
            "function_id",
            "file_id",
            "line",
            "col",
        ];
        let mut bulk = self.bulk("rpd_instruction_line", &columns)?;
        for (id, instruction) in (1..).zip(&code.instructions) {
            for (depth, line) in (0..).zip(code.lines_of(instruction)) {
                bulk.integer(id)
                    .integer(depth)
                    .optional(self.text(line.function))
                    .optional(self.text(line.file))
                    .integer(line.line.into())
                    .integer(line.column.into())
                    .end_row()?;
            }
        }
        bulk.finish()?;
        Ok(places)
    }

    fn sources(&self) -> Result<()> {
        let mut bulk = self.bulk("rpd_source", &["path_id", "text"])?;
        for source in &self.session.code.sources {
            bulk.integer(self.ids.string(source.path))
                .text(&source.text)
                .end_row()?;
        }
        bulk.finish()
    }

    fn samples(&self, places: &Places) -> Result<()> {
        // SQLite numbers the rows from 1 faster than it takes numbers.
        let columns = [
            "timestamp",
            "instruction_id",
            "dispatch_id",
            "correlation_id",
            "exec_mask",
            "hardware",
            "workgroup_x",
            "workgroup_y",
            "workgroup_z",
            "state",
            "region_id",
            "snapshot",
            "memory",
        ];
        let mut bulk = self.bulk(SAMPLE, &columns)?;
        let table = &self.session.samples;
        let mut last = ((CodeObjectId(0), u64::MAX), 0);
        for index in table.indices() {
            let place = (table.object[index], table.offset[index]);
            if last.0 != place {
                last = (place, places.get(&place).copied().unwrap_or(0));
            }
            let flags = table.flags[index];
            let state = i64::from(flags)
                | i64::from(table.class[index]) << 8
                | i64::from(table.wave[index]) << 16
                | i64::from(table.waves[index]) << 24;
            let [x, y, z] = table.workgroup[index];
            let region = table.region[index].checked_sub(1);
            let region = region.and_then(|region| self.session.regions.get(region as usize));
            bulk.bits(table.start[index].0)
                .integer(last.1)
                .bits(table.dispatch[index].0)
                .bits(table.correlation[index].0)
                .bits(table.exec[index])
                .bits(table.hardware[index])
                .integer(x.into())
                .integer(y.into())
                .integer(z.into())
                .integer(state)
                .optional(region.map(|region| self.ids.string(region.message)));
            if flags & sample_flag::STOCHASTIC != 0 {
                bulk.integer(table.snapshot[index].into());
            } else {
                bulk.null();
            }
            if flags & sample_flag::MEMORY != 0 {
                bulk.integer(table.memory[index].into());
            } else {
                bulk.null();
            }
            bulk.end_row()?;
            if (index as i64 + 1) % BATCH == 0 {
                progress::advance(BATCH.unsigned_abs());
            }
        }
        bulk.finish()
    }

    fn totals(&self, totals: &Totals, places: &Places) -> Result<()> {
        let mut sums: Vec<(&Place, _)> = totals.places.iter().collect();
        sums.sort_unstable_by_key(|(place, _)| **place);
        let row = |place: &Place| {
            places
                .get(&(place.object, place.offset))
                .copied()
                .unwrap_or(0)
        };
        let columns = [
            "kernel_id",
            "instruction_id",
            "issue",
            "samples",
            "lanes",
            "waves",
        ];
        let mut bulk = self.bulk("rpd_pc_total", &columns)?;
        for (place, sum) in &sums {
            for (issue, count) in &sum.counts {
                bulk.bits(place.kernel.0)
                    .integer(row(place))
                    .optional_text(issue_text(*issue))
                    .bits(count.samples)
                    .bits(count.lanes)
                    .bits(count.waves)
                    .end_row()?;
            }
        }
        bulk.finish()?;
        let mut insert = self.connection.prepare(&format!(
            "INSERT INTO {} (kernel_id, instruction_id, counts) VALUES (?, ?, ?)",
            self.names.table("rpd_pc_replicate")
        ))?;
        for (place, sum) in &sums {
            let counts: Vec<u8> = sum
                .replicates
                .0
                .iter()
                .flat_map(|count| count.to_le_bytes())
                .collect();
            insert.execute(params![place.kernel.0.cast_signed(), row(place), counts])?;
        }
        Ok(())
    }
}
