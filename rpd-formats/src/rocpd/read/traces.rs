//! Reads decoded thread traces, which only databases of rpd have.

use std::collections::HashMap;

use rpd_core::ids::KernelId;
use rpd_core::session::traces::{OccupiedTime, OccupiedUnit, TraceSummary, TracedLine, TracedWave};
use rusqlite::Result;

use super::super::traces::{OCCUPANCY, STREAM};
use super::info::Info;
use super::samples::{Places, reason_of};
use super::scan::{Source, bits, integer, text, word};

/// Reads streams, waves and instructions into `info.session`. `places`: instructions by the ids of their rows.
pub(super) fn read(source: &Source<'_>, info: &mut Info, places: &Places) -> Result<()> {
    // Only databases with thread traces have the tables.
    if !source.has(STREAM)? {
        return Ok(());
    }
    let mut streams: HashMap<i64, u32> = HashMap::new();
    let columns = "id, agent_id, trace, kernel_id, shader_engine, bytes, capacity, is_full, started, waves, instructions, \
        unmatched, lost, incomplete_waves";
    source.each(columns, STREAM, |row| {
        let agent = info.agent(integer(row, 1));
        let summaries = &mut info.session.thread_traces.summaries;
        streams.insert(integer(row, 0), summaries.len() as u32);
        summaries.push(TraceSummary {
            agent,
            trace: bits(row, 2),
            kernel: KernelId(bits(row, 3)),
            engine: word(row, 4),
            bytes: bits(row, 5),
            capacity: bits(row, 6),
            full: word(row, 7) != 0,
            started: bits(row, 8),
            waves: bits(row, 9),
            instructions: bits(row, 10),
            unmatched: bits(row, 11),
            lost: bits(row, 12),
            incomplete_waves: bits(row, 13),
        });
        Ok(())
    })?;
    let columns =
        "stream_id, cu, simd, slot, start, \"end\", instructions, latency, stall, is_complete";
    source.each(columns, "rpd_trace_wave", |row| {
        // Only a damaged database has waves without a stream.
        if let Some(stream) = streams.get(&integer(row, 0)) {
            info.session.thread_traces.waves.push(TracedWave {
                stream: *stream,
                cu: word(row, 1) as u8,
                simd: word(row, 2) as u8,
                slot: word(row, 3) as u8,
                begin: integer(row, 4),
                end: integer(row, 5),
                instructions: bits(row, 6),
                latency: bits(row, 7),
                stall: bits(row, 8),
                complete: word(row, 9) != 0,
            });
        }
        Ok(())
    })?;
    // Earlier versions of rpd stored no waves over time.
    if source.has(OCCUPANCY)? {
        read_occupancy(source, info, &streams)?;
    }
    // Stalls refer to instructions by the ids of their rows.
    let mut lines: HashMap<i64, usize> = HashMap::new();
    let columns = "id, agent_id, trace, kernel_id, instruction_id, hits, latency, idle";
    source.each(columns, "rpd_trace_instruction", |row| {
        let (object, offset) = places.get(&integer(row, 4)).copied().unwrap_or_default();
        let agent = info.agent(integer(row, 1));
        let all = &mut info.session.thread_traces.lines;
        lines.insert(integer(row, 0), all.len());
        all.push(TracedLine {
            kernel: KernelId(bits(row, 3)),
            agent,
            trace: bits(row, 2),
            object,
            offset,
            hits: bits(row, 5),
            latency: bits(row, 6),
            idle: bits(row, 7),
            stalls: Vec::new(),
        });
        Ok(())
    })?;
    source.each(
        "trace_instruction_id, reason, cycles",
        "rpd_trace_stall",
        |row| {
            if let Some(line) = lines.get(&integer(row, 0)) {
                let stall = (reason_of(&text(row, 1)), bits(row, 2));
                info.session.thread_traces.lines[*line].stalls.push(stall);
            }
            Ok(())
        },
    )
}

/// Reads waves over time and by compute unit. `streams`: indices of summaries by the ids of their rows.
fn read_occupancy(source: &Source<'_>, info: &mut Info, streams: &HashMap<i64, u32>) -> Result<()> {
    let traces = &mut info.session.thread_traces;
    source.each("stream_id, start, \"end\", wave_cycles", OCCUPANCY, |row| {
        if let Some(&stream) = streams.get(&integer(row, 0)) {
            traces.occupied_times.push(OccupiedTime {
                stream,
                begin: integer(row, 1),
                end: integer(row, 2),
                wave_cycles: bits(row, 3),
            });
        }
        Ok(())
    })?;
    source.each(
        "stream_id, cu, waves, wave_cycles",
        "rpd_trace_unit",
        |row| {
            if let Some(&stream) = streams.get(&integer(row, 0)) {
                traces.occupied_units.push(OccupiedUnit {
                    stream,
                    cu: word(row, 1) as u8,
                    waves: bits(row, 2),
                    wave_cycles: bits(row, 3),
                });
            }
            Ok(())
        },
    )
}
