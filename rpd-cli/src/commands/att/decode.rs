//! `rpd att decode`: decodes trace files.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use rpd_att::{CodeLine, Library, PluginError, find_library};
use rpd_core::compat::Compat;
use rpd_core::stats::Unit;
use rpd_formats::destination::Destination;
use rpd_formats::table::{Cell, Column, ColumnKind, Printer, TableFormat, View};

use super::super::parse;
use super::super::tables::{TableOptions, explained, note};
use crate::exit_status;
use crate::failure::Failure;
use crate::thread_trace::decode::{Decoded, Decoding, RequestedFiles, decode_dispatch};
use crate::thread_trace::files::{TraceKey, Traces};

/// Lines that are printed for each dispatch unless `--limit` is given.
const HOTTEST: u64 = 10;

/// Format of decoded traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// `stats_*.csv`: lines of code with hits, latency, stall and idle cycles
    Csv,
    /// `ui_*`: the directory that the ROCprof Compute Viewer opens
    Json,
    /// `ui_*.pftrace`: waves and their instructions on a track for each slot of a SIMD, for the Perfetto UI; a nanosecond
    /// there is a cycle
    Pftrace,
}

/// Decode thread traces: the .att files of a run, with the code objects (.out) beside them
#[derive(Debug, Parser)]
#[command(
    after_help = "Directories are searched for <prefix>_<agent>_shader_engine_<number>_<dispatch>.att and \
    <prefix>_<processor>_code_object_id_<number>.out, as rpd and rocprofv3 write them. Trace files that are named alone use the \
    code objects beside them. No GPU is needed."
)]
struct Arguments {
    /// Directories, trace files and code objects
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Directory for the results [default: that of each trace]
    #[arg(short = 'd', long, value_name = "DIR")]
    output_directory: Option<PathBuf>,
    /// Output formats
    #[arg(short = 'f', long, value_enum, num_args = 1.., value_delimiter = ',', default_values = ["csv", "json"])]
    format: Vec<Format>,
    /// Names of the counters in the trace, in the order of the request
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "NAME")]
    counters: Vec<String>,
    /// Directories with the librocprof-trace-decoder.so to decode with, or the file itself [default: rpd's own decoder]
    #[arg(long, num_args = 1.., value_name = "DIR")]
    att_library_path: Vec<PathBuf>,
    #[command(flatten)]
    tables: TableOptions,
}

/// Runs the action `rpd att decode`.
pub(super) fn run(arguments: &[OsString]) -> Result<u8> {
    let Some(given) = parse::<Arguments>("att decode", arguments)? else {
        return Ok(0);
    };
    let traces = Traces::find(&given.paths)?;
    let library = if given.att_library_path.is_empty() {
        None
    } else {
        let failed = |error: PluginError| {
            Failure::failed(format!("att decode: --att-library-path: {error}"))
        };
        let path = find_library(&given.att_library_path).map_err(failed)?;
        Some(Library::open(&path).map_err(failed)?)
    };
    let wanted = RequestedFiles {
        csv: given.format.contains(&Format::Csv),
        json: given.format.contains(&Format::Json),
        pftrace: given.format.contains(&Format::Pftrace),
        sources: true,
    };
    let output = Destination::standard_output();
    let look = TableFormat::Console;
    let mut view = (given.tables).view(look, Unit::Nsec, Compat::None, &output, None);
    view.limit = given.tables.limit_or(Some(HOTTEST));
    let mut complete = true;
    for (key, files) in &traces.traces {
        let into = given.output_directory.as_ref().unwrap_or(&key.directory);
        let mut decoding = Decoding {
            wanted,
            counters: &given.counters,
            library: library.as_ref(),
            wave: &mut |_, _| {},
        };
        let decoded = decode_dispatch(&traces, key, into, &mut decoding)?;
        complete &= decoded.engines.len() == files.len();
        for note in &decoded.notes {
            eprintln!("rpd: {note}");
        }
        crate::print(&report(key, &decoded, &view)?)?;
        for path in &decoded.written {
            notice!("rpd: wrote {}", path.display());
        }
    }
    Ok(exit_status::from_complete(complete))
}

/// The dispatch, its shader engines and its hottest lines.
fn report(key: &TraceKey, decoded: &Decoded, view: &View) -> Result<String> {
    let mut out = Vec::new();
    let head = format!("Dispatch {} on agent {}\n\n", key.dispatch, key.agent);
    out.extend_from_slice(head.as_bytes());
    let columns = [
        "Shader engine",
        "GFX",
        "Bytes",
        "Waves",
        "Traced waves",
        "Instructions",
    ];
    let columns = columns.map(|name| Column::new(ColumnKind::Number, name));
    let whole = View {
        width: view.width,
        ..View::from(TableFormat::Console)
    };
    let mut table = Printer::new(&whole, columns.to_vec(), &mut out)?;
    for engine in &decoded.engines {
        let found = &engine.diagnosis;
        let numbers = [
            u64::from(engine.engine),
            u64::from(engine.gfx),
            found.bytes,
            engine.occupancy.started(),
            found.waves,
            found.instructions,
        ];
        table.row(numbers.map(|number| Cell::Integer(number as i64)).to_vec())?;
    }
    // A trace of compute units on which no wave ran has an occupancy and no lines.
    table.finish()?;
    let mut lines: Vec<&CodeLine> = (decoded.listing.lines().iter())
        .filter(|line| line.hits > 0)
        .collect();
    if lines.is_empty() {
        return Ok(String::from_utf8(out)?);
    }
    // By cycles, then address: equal sums come in the same order in every run.
    lines.sort_by_key(|line| (std::cmp::Reverse(line.latency), line.pc));
    let total: u64 = lines.iter().map(|line| line.latency).sum();
    out.extend_from_slice(b"\nLines with the most cycles\n\n");
    let columns = [
        (ColumnKind::Number, "Latency"),
        (ColumnKind::Word, "%"),
        (ColumnKind::Number, "Stall"),
        (ColumnKind::Number, "Idle"),
        (ColumnKind::Number, "Hits"),
        (ColumnKind::Word, "Address"),
        (ColumnKind::Name, "Instruction"),
    ];
    let columns = columns.map(|(kind, name)| Column::new(kind, name));
    let new = Printer::new(view, columns.to_vec(), &mut out);
    let mut table = new.map_err(|error| explained("att decode", error))?;
    for line in lines {
        let share = 100.0 * line.latency as f64 / total.max(1) as f64;
        table.row(vec![
            Cell::Integer(line.latency as i64),
            Cell::Text(format!("{share:.1}")),
            Cell::Integer(line.stall as i64),
            Cell::Integer(line.idle as i64),
            Cell::Integer(line.hits as i64),
            Cell::Text(format!("{}:{:#x}", line.pc.code_object, line.pc.address)),
            Cell::Text(line.text.clone()),
        ])?;
    }
    let left_out = table.finish()?;
    note("att decode", view.format, &left_out);
    out.push(b'\n');
    Ok(String::from_utf8(out)?)
}
