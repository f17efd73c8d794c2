//! Memory accesses of kernels in a capture: recording them, and the tables of what each line of source code did.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Args;
use rpd_core::compat::Compat;
use rpd_core::stats::Unit;
use rpd_formats::table::{Cell, Column, ColumnKind, TableFormat, View};
use rpd_gfx::access::{FILE, KernelChoice, Problem, Stride};
use rpd_spool::access_trace::{AccessTrace, DIRECTORY, KERNELS_FILE};
use rpd_spool::demangle::demangle_any;
use rpd_symbols::code::{AccessReport, LineAccesses, access_report};

use crate::commands::tables::{TableOptions, note, printer};
use crate::commands::{Form, write_output};
use crate::exit_status::{DAMAGED, FAILED, SUCCESS};
use crate::failure::Failure;
use crate::process::backend;
use crate::wording::count;
use rpd_formats::parquet::write_cells;

/// Name of the action that shows accesses.
const NAME: &str = "capture show";

/// Options for recording memory accesses of kernels.
#[derive(Debug, Default, Args)]
pub(super) struct TraceOptions {
    /// Accesses of kernels to record, on the simulated GPU: mem (instructions that access memory, with all addresses) or inst (all
    /// instructions)
    #[arg(long, value_name = "WHAT", value_parser = trace_word)]
    pub(super) trace: Option<AccessTrace>,
    /// Kernels whose accesses are recorded, by name or a part of it; NAME#N is the Nth dispatch of it [default: all]
    #[arg(long, value_name = "NAME[#N]", requires = "trace", value_parser = kernel_word)]
    pub(super) kernel: Vec<String>,
}

fn trace_word(text: &str) -> Result<AccessTrace, String> {
    AccessTrace::from_word(text)
        .filter(|choice| *choice != AccessTrace::Off)
        .ok_or_else(|| "expected mem or inst".to_owned())
}

fn kernel_word(text: &str) -> Result<String, String> {
    match KernelChoice::parse(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err(
            "expected a name, or a name and the number of a dispatch such as scale#3".to_owned(),
        ),
    }
}

impl TraceOptions {
    /// The instructions that the collector records.
    pub(super) fn choice(&self) -> AccessTrace {
        self.trace.unwrap_or_default()
    }

    /// Checks that the provider can record accesses, and puts the choice of kernels where the collector reads it.
    #[expect(clippy::disallowed_methods, reason = "in the directory of a run")]
    pub(super) fn prepare(&self, provider: &backend::Provider, spool: &Path) -> Result<()> {
        if self.trace.is_none() {
            return Ok(());
        }
        if !provider.simulated {
            return Err(Failure::failed(
                "capture: --trace needs the simulated GPU (--backend sim): a GPU does not report what instructions access. Capture \
                 without it, and play a kernel there: rpd capture --trace mem --backend sim -- rpd replay DIR --backend sim \
                 --kernel NAME",
            )
            .into());
        }
        let path = spool.join(KERNELS_FILE);
        std::fs::write(&path, self.kernel.join("\n"))
            .with_context(|| format!("{} cannot be written", path.display()))
    }
}

/// Moves the recording of a process into its capture.
pub(super) fn keep(process: &Path, capture: &Path) -> Result<()> {
    let from = process.join(DIRECTORY);
    if !from.is_dir() {
        return Ok(());
    }
    let to = capture.join(DIRECTORY);
    std::fs::rename(&from, &to).with_context(|| format!("{} cannot be made", to.display()))
}

/// Removes a recording, and its directory if there is nothing else in it.
pub(super) fn remove(directory: &Path) -> Result<()> {
    if !directory
        .symlink_metadata()
        .is_ok_and(|found| found.is_dir())
    {
        return Ok(());
    }
    for entry in std::fs::read_dir(directory)?.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name == FILE || name.starts_with("object-") && name.ends_with(".co") {
            std::fs::remove_file(entry.path())
                .with_context(|| format!("{} cannot be removed", entry.path().display()))?;
        }
    }
    let _ = std::fs::remove_dir(directory);
    Ok(())
}

/// Bytes of the recording in a capture, if it has one.
pub(super) fn recorded(capture: &Path) -> Option<u64> {
    let found = std::fs::metadata(capture.join(DIRECTORY).join(FILE)).ok()?;
    Some(found.len())
}

/// Options of the table of accesses.
#[derive(Debug, Args)]
pub(super) struct AccessOptions {
    /// Kernels whose memory accesses are shown, by name or a part of it; NAME#N is the Nth dispatch of it [default: all]
    #[arg(long, value_name = "NAME[#N]", conflicts_with = "call", value_parser = kernel_word)]
    kernel: Vec<String>,
    /// Output format of the table of memory accesses
    #[arg(
        short = 'f',
        long,
        value_enum,
        default_value = "table",
        conflicts_with = "call"
    )]
    format: Form,
    /// File to write the table to [default: standard output]
    #[arg(short, long, value_name = "FILE", conflicts_with = "call")]
    output: Option<PathBuf>,
    /// File to write the table to as Parquet
    #[arg(long, value_name = "FILE", conflicts_with = "call")]
    parquet: Option<PathBuf>,
    #[command(flatten)]
    pub(super) tables: TableOptions,
}

/// Shows the memory accesses of the lines of kernels; returns the exit status. `named`: the capture as the user named
/// it, whose directory is `capture`.
pub(super) fn show(named: &Path, capture: &Path, options: &AccessOptions) -> Result<u8> {
    let output = super::output(NAME, options.output.as_deref(), named)?;
    let parquet = match &options.parquet {
        Some(path) => Some(super::output(NAME, Some(path), named)?),
        None => None,
    };
    let directory = capture.join(DIRECTORY);
    if !directory.join(FILE).is_file() {
        return Err(Failure::failed(format!(
            "{}: no memory accesses were recorded (rpd capture --trace mem); a number shows a call",
            capture.display()
        ))
        .into());
    }
    let choices: Vec<KernelChoice> = options
        .kernel
        .iter()
        .filter_map(|text| KernelChoice::parse(text))
        .collect();
    let report = access_report(&directory, |dispatch| {
        let takes = |choice: &KernelChoice| choice.takes(&dispatch.kernel, dispatch.nth);
        choices.is_empty() || choices.iter().any(takes)
    })
    .map_err(|problem| damaged(&directory, &problem))?;
    for note in &report.notes {
        eprintln!("rpd: {}: {note}", capture.display());
    }
    if report.lines.is_empty() {
        eprintln!("rpd: {}: no accesses of such kernels", capture.display());
        return Ok(FAILED);
    }
    let look = options.format.table_format();
    let view = (options.tables).view(look, Unit::Nsec, Compat::None, &output, None);
    if let Some(parquet) = parquet {
        let is_standard_output = parquet.is_standard_output();
        let path = write_cells(parquet, &columns(), &rows(&report))?;
        if !is_standard_output {
            notice!("rpd: wrote {}", crate::report::shown(&path));
        }
    }
    if options.output.is_some() || options.parquet.is_none() {
        write_output(output, Compat::None, |out| print(&report, &view, out))?;
    }
    Ok(SUCCESS)
}

fn damaged(directory: &Path, problem: &Problem) -> Failure {
    let status = match problem {
        Problem::Damaged { .. } => DAMAGED,
        Problem::Io(_) => FAILED,
    };
    Failure::new(
        status,
        format!("{}: {problem}", directory.join(FILE).display()),
    )
}

/// The columns of tables for programs.
fn columns() -> Vec<Column> {
    use ColumnKind::{Name, Number, Word};
    [
        (Name, "kernel"),
        (Number, "dispatches"),
        (Name, "file"),
        (Number, "line"),
        (Word, "space"),
        (Word, "access"),
        (Number, "instructions"),
        (Number, "executions"),
        (Number, "lanes"),
        (Number, "bytes"),
        (Number, "cache_lines"),
        (Number, "ideal_cache_lines"),
        (Number, "distinct_cache_lines"),
        (Number, "coalescing"),
        (Number, "lds_cycles"),
        (Number, "conflict_cycles"),
        (Number, "stride"),
        (Number, "stride_share"),
    ]
    .map(|(kind, name)| Column::new(kind, name))
    .to_vec()
}

/// A row for each line; its cells are those of [`columns`].
fn rows(report: &AccessReport) -> Vec<Vec<Cell>> {
    let row = |line: &LineAccesses| {
        let totals = &line.totals;
        let (is_memory, is_lds) = (!line.space.is_empty(), line.space == "lds");
        let number = |shown: bool, value: u64| if shown { value.into() } else { Cell::Null };
        let text = |text: &str| {
            if text.is_empty() {
                Cell::Null
            } else {
                text.into()
            }
        };
        let stride = totals.stride();
        let dispatches = report.dispatches.get(&line.kernel).copied();
        vec![
            Cell::Text(demangle_any(&line.kernel).into_owned()),
            dispatches.unwrap_or(0).into(),
            line.file.as_str().into(),
            number(line.line > 0, line.line.into()),
            text(line.space),
            text(line.access),
            (line.instructions as u64).into(),
            totals.executions.into(),
            totals.lanes.into(),
            number(is_memory, totals.bytes),
            number(is_memory && !is_lds, totals.lines),
            number(is_memory && !is_lds, totals.ideal_lines),
            number(is_memory && !is_lds, totals.unique_lines()),
            totals.coalescing().map_or(Cell::Null, Cell::Float),
            number(is_lds, totals.lds_cycles),
            number(is_lds, totals.conflict_cycles),
            match stride {
                Some((Stride::Constant(bytes), _)) => Cell::Integer(bytes),
                _ => Cell::Null,
            },
            stride.map_or(Cell::Null, |(_, share)| Cell::Float(share)),
        ]
    };
    report.lines.iter().map(row).collect()
}

fn print(report: &AccessReport, view: &View, out: &mut dyn Write) -> Result<()> {
    if view.format == TableFormat::Console {
        return print_for_people(report, view, out);
    }
    let mut table = printer(NAME, view, columns(), out)?;
    for row in rows(report) {
        table.row(row)?;
    }
    table.finish()?;
    Ok(())
}

/// A table for each kernel.
fn print_for_people(report: &AccessReport, view: &View, out: &mut dyn Write) -> Result<()> {
    for (nth, lines) in report
        .lines
        .chunk_by(|a, b| a.kernel == b.kernel)
        .enumerate()
    {
        let kernel = &lines[0].kernel;
        let dispatches = report.dispatches.get(kernel).copied().unwrap_or(0);
        let gap = if nth > 0 { "\n" } else { "" };
        writeln!(
            out,
            "{gap}{}: {}",
            demangle_any(kernel),
            count(dispatches, "dispatch")
        )?;
        let columns = [
            (ColumnKind::Name, "source", 0),
            (ColumnKind::Word, "access", 0),
            (ColumnKind::Number, "executed", 0),
            (ColumnKind::Number, "lanes", 1),
            (ColumnKind::Number, "bytes", 2),
            (ColumnKind::Number, "cache lines", 1),
            (ColumnKind::Number, "distinct", 2),
            (ColumnKind::Word, "coalesced", 0),
            (ColumnKind::Word, "bank conflicts", 2),
            (ColumnKind::Word, "stride", 1),
        ];
        let columns = columns.map(|(kind, name, level)| Column::new(kind, name).detail(level));
        let mut table = printer(NAME, view, columns.to_vec(), &mut *out)?;
        for line in lines {
            table.row(shown(line))?;
        }
        note(NAME, view.format, &table.finish()?);
    }
    Ok(())
}

fn shown(line: &LineAccesses) -> Vec<Cell> {
    let totals = &line.totals;
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let is_lds = line.space == "lds";
    let cached = |value: u64| {
        let shown = !line.space.is_empty() && !is_lds;
        if shown {
            value.into()
        } else {
            Cell::Text("-".to_owned())
        }
    };
    let or_dash = |text: Option<String>| Cell::Text(text.unwrap_or_else(|| "-".to_owned()));
    let conflicts = is_lds.then(|| {
        let share = totals.conflict_cycles as f64 / totals.lds_cycles.max(1) as f64;
        format!(
            "{} of {} cycles ({})",
            totals.conflict_cycles,
            totals.lds_cycles,
            percent(share)
        )
    });
    let stride = totals.stride().map(|(stride, share)| match stride {
        Stride::Constant(0) => format!("same address ({})", percent(share)),
        Stride::Constant(bytes) => format!("{bytes} bytes ({})", percent(share)),
        Stride::Irregular => format!("irregular ({})", percent(share)),
    });
    let place = match line.line {
        0 => line.file.clone(),
        number => format!("{}:{number}", line.file),
    };
    vec![
        Cell::Text(place),
        or_dash((!line.space.is_empty()).then(|| format!("{} {}", line.space, line.access))),
        totals.executions.into(),
        totals.lanes.into(),
        if line.space.is_empty() {
            or_dash(None)
        } else {
            totals.bytes.into()
        },
        cached(totals.lines),
        cached(totals.unique_lines()),
        or_dash(totals.coalescing().map(percent)),
        or_dash(conflicts),
        or_dash(stride),
    ]
}
