//! Parquet tables of thread traces.

use rpd_core::ids::StringId;
use rpd_core::session::code::CodeLine;

use super::records::Result;
use super::table::Rows;
use super::{Context, Table};

pub(super) const TABLES: [Table; 2] = [
    (
        "thread_trace_instructions",
        |session| session.thread_traces.lines.len(),
        instructions,
    ),
    (
        "thread_trace_waves",
        |session| session.thread_traces.waves.len(),
        waves,
    ),
];

fn instructions<'p>(context: &Context<'_>, rows: Rows<'p>) -> Result<'p> {
    let session = context.session;
    let code = &session.code;
    let lines = &session.thread_traces.lines;
    let instruction = |row: usize| {
        let found = code.find(lines[row].object, lines[row].offset)?;
        Some(&code.instructions[found])
    };
    let line =
        |row: usize| -> Option<CodeLine> { code.lines_of(instruction(row)?).first().copied() };
    let known = |id: StringId| (id != StringId(0)).then_some(id.0);
    let reasons = |row: usize| {
        let reasons = lines[row].stalls.iter();
        let texts =
            reasons.filter_map(|(issue, cycles)| Some(format!("{}={cycles}", issue.stall()?)));
        texts.collect::<Vec<_>>().join(" ")
    };
    Ok(rows
        .texts("guid", |_| Some(context.guid_text))?
        .integers("trace", |row| lines[row].trace)
        .integers("kernel_id", |row| lines[row].kernel.0)
        .integers("code_object_id", |row| lines[row].object.0)
        .integers("code_object_offset", |row| lines[row].offset)
        .texts("instruction", |row| known(instruction(row)?.text))?
        .texts("file", |row| known(line(row)?.file))?
        .optional_integers("line", |row| line(row).map(|line| line.line.into()))
        .integers("hits", |row| lines[row].hits)
        .integers("latency", |row| lines[row].latency)
        .integers("stall", |row| lines[row].stall())
        .integers("idle", |row| lines[row].idle)
        .own_texts("stall_reasons", reasons))
}

fn waves<'p>(context: &Context<'_>, rows: Rows<'p>) -> Result<'p> {
    let traces = &context.session.thread_traces;
    let waves = &traces.waves;
    let stream = |row: usize| traces.summaries.get(waves[row].stream as usize);
    Ok(rows
        .texts("guid", |_| Some(context.guid_text))?
        .integers("trace", |row| stream(row).map_or(0, |stream| stream.trace))
        .integers("shader_engine", |row| {
            stream(row).map_or(0, |stream| stream.engine.into())
        })
        .integers("cu", |row| waves[row].cu.into())
        .integers("simd", |row| waves[row].simd.into())
        .integers("slot", |row| waves[row].slot.into())
        .optional_integers("start", |row| Some(waves[row].begin))
        .optional_integers("end", |row| Some(waves[row].end))
        .integers("instructions", |row| waves[row].instructions)
        .integers("latency", |row| waves[row].latency)
        .integers("stall", |row| waves[row].stall)
        .integers("is_complete", |row| waves[row].complete.into()))
}
