//! Rows of thread traces; the statements of their tables are in `traces.sql`.

use std::io;

use rpd_core::session::Session;
use rusqlite::Connection;

use super::names::Names;
use super::rows::Writer;
use super::samples::{Places, issue_text};

const TABLES: &str = include_str!("traces.sql");
pub(super) const VIEWS: &str = include_str!("traces_views.sql");
/// Views that join the tables, for queries.
pub(super) const DATA_VIEWS: &str = include_str!("traces_data_views.sql");
/// Table, and view in merged databases, that only databases with thread traces have.
pub(super) const STREAM: &str = "rpd_trace_stream";
/// Table, and view in merged databases, of waves over time. Databases of earlier versions lack it.
pub(super) const OCCUPANCY: &str = "rpd_trace_occupancy";
const INDICES: &str = "CREATE INDEX rpd_trace_stall_instruction%suffix% ON rpd_trace_stall%suffix% (trace_instruction_id);";

/// Makes the tables, if there is something in thread traces.
pub(super) fn create(
    connection: &Connection,
    names: &Names,
    session: &Session,
) -> rusqlite::Result<()> {
    if session.thread_traces.summaries.is_empty() {
        return Ok(());
    }
    for statements in [TABLES, INDICES, VIEWS] {
        connection.execute_batch(&names.fill_in(statements))?;
    }
    Ok(())
}

/// Writes what was found in thread traces, if there are any. `places`: rows of instructions.
pub(super) fn write(writer: &Writer<'_>, places: &Places) -> io::Result<()> {
    let ids = writer.ids;
    let traces = &writer.session.thread_traces;
    if traces.summaries.is_empty() {
        return Ok(());
    }
    let columns = [
        "id",
        "agent_id",
        "trace",
        "kernel_id",
        "shader_engine",
        "bytes",
        "capacity",
        "is_full",
        "started",
        "waves",
        "instructions",
        "unmatched",
        "lost",
        "incomplete_waves",
    ];
    let mut streams = writer.rows(STREAM, &columns)?;
    for (id, found) in (1..).zip(&traces.summaries) {
        streams
            .integer(id)
            .optional(ids.agent(found.agent))
            .bits(found.trace)
            .bits(found.kernel.0)
            .integer(found.engine.into())
            .bits(found.bytes)
            .bits(found.capacity)
            .integer(found.full.into())
            .bits(found.started)
            .bits(found.waves)
            .bits(found.instructions)
            .bits(found.unmatched)
            .bits(found.lost)
            .bits(found.incomplete_waves)
            .end_row()?;
    }
    streams.finish()?;
    let columns = [
        "stream_id",
        "cu",
        "simd",
        "slot",
        "start",
        "end",
        "instructions",
        "latency",
        "stall",
        "is_complete",
    ];
    let mut waves = writer.rows("rpd_trace_wave", &columns)?;
    for wave in &traces.waves {
        waves
            .integer(i64::from(wave.stream) + 1)
            .integer(wave.cu.into())
            .integer(wave.simd.into())
            .integer(wave.slot.into())
            .integer(wave.begin)
            .integer(wave.end)
            .bits(wave.instructions)
            .bits(wave.latency)
            .bits(wave.stall)
            .integer(wave.complete.into())
            .end_row()?;
    }
    waves.finish()?;
    let columns = ["stream_id", "start", "end", "wave_cycles"];
    let mut times = writer.rows(OCCUPANCY, &columns)?;
    for part in &traces.occupied_times {
        times
            .integer(i64::from(part.stream) + 1)
            .integer(part.begin)
            .integer(part.end)
            .bits(part.wave_cycles)
            .end_row()?;
    }
    times.finish()?;
    let columns = ["stream_id", "cu", "waves", "wave_cycles"];
    let mut units = writer.rows("rpd_trace_unit", &columns)?;
    for unit in &traces.occupied_units {
        units
            .integer(i64::from(unit.stream) + 1)
            .integer(unit.cu.into())
            .bits(unit.waves)
            .bits(unit.wave_cycles)
            .end_row()?;
    }
    units.finish()?;
    let columns = [
        "id",
        "agent_id",
        "trace",
        "kernel_id",
        "instruction_id",
        "hits",
        "latency",
        "idle",
    ];
    let mut lines = writer.rows("rpd_trace_instruction", &columns)?;
    for (id, line) in (1..).zip(&traces.lines) {
        let place = places.get(&(line.object, line.offset));
        lines
            .integer(id)
            .optional(ids.agent(line.agent))
            .bits(line.trace)
            .bits(line.kernel.0)
            .integer(place.copied().unwrap_or(0))
            .bits(line.hits)
            .bits(line.latency)
            .bits(line.idle)
            .end_row()?;
    }
    lines.finish()?;
    let mut stalls = writer.rows(
        "rpd_trace_stall",
        &["trace_instruction_id", "reason", "cycles"],
    )?;
    for (id, line) in (1..).zip(&traces.lines) {
        for (issue, cycles) in &line.stalls {
            stalls
                .integer(id)
                .text(issue_text(*issue).unwrap_or_default())
                .bits(*cycles)
                .end_row()?;
        }
    }
    stalls.finish()
}
