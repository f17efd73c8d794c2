//! Rows of PC samples and of the code that they are at; the statements of their tables are in `samples.sql`.

use std::collections::BTreeSet;
use std::io;

use rpd_core::ids::{CodeObjectId, StringId};
use rpd_core::session::Session;
use rpd_core::session::samples::Issue;
use rpd_core::session::totals::{InstructionTotals, Place};
use rpd_core::spool::format::sample_flag;
use rpd_core::storage::number_map::NumberMap;
use rusqlite::Connection;

use super::names::Names;
use super::rows::{BATCH, Writer};
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

fn has_tables(session: &Session) -> bool {
    let traced = !session.thread_traces.summaries.is_empty();
    session.has_samples() || !session.code.is_empty() || traced
}

/// Makes the tables, if the database has them.
pub(super) fn create(
    connection: &Connection,
    names: &Names,
    session: &Session,
) -> rusqlite::Result<()> {
    if !has_tables(session) {
        return Ok(());
    }
    for statements in [TABLES, INDICES, VIEWS] {
        connection.execute_batch(&names.fill_in(statements))?;
    }
    Ok(())
}

/// Writes samples, their sums and the code, if there are any. Returns the rows of instructions.
pub(super) fn write(writer: &Writer<'_>) -> io::Result<Places> {
    let session = writer.session;
    if !has_tables(session) {
        return Ok(Places::default());
    }
    let writer = SampleWriter { writer, session };
    writer.sampling()?;
    writer.images()?;
    let totals = InstructionTotals::from_session(session);
    let places = writer.instructions(&totals)?;
    writer.sources()?;
    writer.samples(&places)?;
    writer.totals(&totals, &places)?;
    Ok(places)
}

/// Row ids of instructions.
pub(super) type Places = NumberMap<(CodeObjectId, u64), i64>;

struct SampleWriter<'a> {
    writer: &'a Writer<'a>,
    session: &'a Session,
}

impl SampleWriter<'_> {
    fn text(&self, id: StringId) -> Option<i64> {
        (id != StringId(0)).then(|| self.writer.ids.string(id))
    }

    fn sampling(&self) -> io::Result<()> {
        let columns = ["agent_id", "method", "unit", "interval"];
        let mut rows = self.writer.rows("rpd_pc_sampling", &columns)?;
        for sampling in &self.session.sampling {
            rows.optional(self.writer.ids.agent(sampling.agent))
                .text(sampling.method.word())
                .text(sampling.unit.word())
                .bits(sampling.interval)
                .end_row()?;
        }
        rows.finish()
    }

    fn images(&self) -> io::Result<()> {
        let code = &self.session.code;
        let name = |content: [u64; 2]| format!("{:016x}{:016x}", content[0], content[1]);
        let mut rows = self.writer.rows("rpd_code_bytes", &["content", "bytes"])?;
        for image in &code.images {
            for part in image.bytes.chunks(PART) {
                rows.text(&name(image.content)).blob(part).end_row()?;
            }
            image.bytes.release();
        }
        rows.finish()?;
        let mut objects: Vec<(i64, String)> = code
            .image_of
            .iter()
            .filter_map(|(object, image)| {
                let image = code.images.get(*image as usize)?;
                Some((object.0.cast_signed(), name(image.content)))
            })
            .collect();
        objects.sort_unstable();
        let mut rows = self.writer.rows("rpd_code_object", &["id", "content"])?;
        for (object, content) in &objects {
            rows.integer(*object).text(content).end_row()?;
        }
        rows.finish()
    }

    fn instructions(&self, totals: &InstructionTotals) -> io::Result<Places> {
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
        let mut rows = self.writer.rows("rpd_instruction", &columns)?;
        let mut id = 0;
        for instruction in &code.instructions {
            id += 1;
            places.insert((instruction.object, instruction.offset), id);
            rows.integer(id)
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
            rows.integer(id)
                .bits(object.0)
                .bits(offset)
                .integer(0)
                .null()
                .null()
                .end_row()?;
        }
        rows.finish()?;
        let columns = [
            "instruction_id",
            "depth",
            "function_id",
            "file_id",
            "line",
            "col",
        ];
        let mut rows = self.writer.rows("rpd_instruction_line", &columns)?;
        for (id, instruction) in (1..).zip(&code.instructions) {
            for (depth, line) in (0..).zip(code.lines_of(instruction)) {
                rows.integer(id)
                    .integer(depth)
                    .optional(self.text(line.function))
                    .optional(self.text(line.file))
                    .integer(line.line.into())
                    .integer(line.column.into())
                    .end_row()?;
            }
        }
        rows.finish()?;
        Ok(places)
    }

    fn sources(&self) -> io::Result<()> {
        let mut rows = self.writer.rows("rpd_source", &["path_id", "text"])?;
        for source in &self.session.code.sources {
            rows.integer(self.writer.ids.string(source.path))
                .text(&source.text)
                .end_row()?;
        }
        rows.finish()
    }

    fn samples(&self, places: &Places) -> io::Result<()> {
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
        let mut rows = self.writer.rows(SAMPLE, &columns)?;
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
            rows.bits(table.start[index].0)
                .integer(last.1)
                .bits(table.dispatch[index].0)
                .bits(table.correlation[index].0)
                .bits(table.exec[index])
                .bits(table.hardware[index])
                .integer(x.into())
                .integer(y.into())
                .integer(z.into())
                .integer(state)
                .optional(region.map(|region| self.writer.ids.string(region.message)));
            if flags & sample_flag::STOCHASTIC != 0 {
                rows.integer(table.snapshot[index].into());
            } else {
                rows.null();
            }
            if flags & sample_flag::MEMORY != 0 {
                rows.integer(table.memory[index].into());
            } else {
                rows.null();
            }
            rows.end_row()?;
            if (index as u64 + 1).is_multiple_of(BATCH) {
                progress::advance(BATCH);
            }
        }
        rows.finish()
    }

    fn totals(&self, totals: &InstructionTotals, places: &Places) -> io::Result<()> {
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
        let mut rows = self.writer.rows("rpd_pc_total", &columns)?;
        for (place, sum) in &sums {
            for (issue, count) in &sum.counts {
                rows.bits(place.kernel.0)
                    .integer(row(place))
                    .optional_text(issue_text(*issue))
                    .bits(count.samples)
                    .bits(count.lanes)
                    .bits(count.waves)
                    .end_row()?;
            }
        }
        rows.finish()?;
        let columns = ["kernel_id", "instruction_id", "counts"];
        let mut rows = self.writer.rows("rpd_pc_replicate", &columns)?;
        for (place, sum) in &sums {
            let counts: Vec<u8> = sum
                .replicates
                .0
                .iter()
                .flat_map(|count| count.to_le_bytes())
                .collect();
            rows.bits(place.kernel.0)
                .integer(row(place))
                .blob(&counts)
                .end_row()?;
        }
        rows.finish()
    }
}
