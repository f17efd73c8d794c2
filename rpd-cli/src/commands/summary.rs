//! `rpd summary`: durations by domain, by rank, by region.

mod by;
mod graphs;
mod ready;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Parser;
use rpd_core::compat::{Compat, Difference};
use rpd_core::session::LoadOptions;
use rpd_formats::destination::Destination;
use rpd_formats::rocpd::read::InputFile;
use rpd_formats::table::{Cell, Column, ColumnKind, View};
use rpd_summary::database::{DatabaseSums, SummaryRow, SummaryTable};

use super::tables::{TableOptions, TimeOptions, note, printer};
use super::window::WindowOptions;
use super::{
    Form, Inputs, Naming, destination, each_recording_of, inherited, note_left_out,
    output_directory, parse, spread, with_ending, write_output,
};
use crate::failure::Failure;

const NAME: &str = "summary";

/// Sum up durations of kernels, copies, allocations, calls and markers
#[derive(Debug, Parser)]
#[command(
    after_help = "Files of RPD (ROCm/rocmProfileData) are read as well, without a time window."
)]
struct Arguments {
    #[command(flatten)]
    inputs: Inputs,
    /// Format of the tables; all but table go into files DIR/NAME_table.ending
    #[arg(short = 'f', long, value_enum, default_value = "table")]
    format: Form,
    /// Prefix of the files' names; - is standard output
    #[arg(short = 'o', long, value_name = "NAME")]
    output_file: Option<OsString>,
    /// Directory of the files [default: the current directory]
    #[arg(short = 'd', long = "output-path", value_name = "DIR")]
    output_path: Option<PathBuf>,
    /// Add a table with one row for each of the others
    #[arg(long)]
    domain_summary: bool,
    /// Repeat each table with a row for each process
    #[arg(long)]
    summary_by_rank: bool,
    /// One row for each rank or host instead of one for each process, with the ranks that are missing or were killed, what is
    /// unequal among them, those that take longer than the others, and who waits for whom in collective operations
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        conflicts_with = "summary_by_rank"
    )]
    by: Option<by::GroupBy>,
    /// Instead of the usual tables, those of HIP and CUDA graphs: sums of each graph, and of each of its nodes
    #[arg(long, conflicts_with_all = ["summary_by_rank", "by", "domain_summary", "region_categories"])]
    graphs: bool,
    /// Message of ROCTx ranges in which all ranks wait for one another; may be given several times [default: MPI_Barrier]
    #[arg(long, value_name = "MESSAGE")]
    barrier: Vec<String>,
    /// Calls to include, by the first word of their category, such as HIP, HSA, MARKER; NONE for none [default: all]
    #[arg(long, value_name = "NAME")]
    region_categories: Option<Vec<String>>,
    #[command(flatten)]
    naming: Naming,
    #[command(flatten)]
    window: WindowOptions,
    #[command(flatten)]
    tables: TableOptions,
    #[command(flatten)]
    times: TimeOptions,
}

/// The name of a recording in tables by rank.
struct Rank {
    pid: u64,
    hostname: String,
}

/// Runs `rpd summary`; returns the exit status.
pub(crate) fn run(arguments: &[OsString], compat: Compat) -> Result<u8> {
    let words = spread(arguments, &["--region-categories"], |word| {
        !word.starts_with('-') && !Path::new(word).exists()
    });
    let Some(given) = parse::<Arguments>(NAME, &words)? else {
        return Ok(0);
    };
    let has_defaults = compat.has(Difference::RocpdTables);
    let output_file = given.output_file.clone();
    let output_file =
        output_file.or_else(|| inherited("ROCPD_OUTPUT_NAME").filter(|_| has_defaults));
    let directory = output_directory(given.output_path.as_deref(), compat);
    let paths = given.inputs.paths(NAME)?;
    let window = given.window.resolve(NAME, &paths)?;
    if let Some(group_by) = given.by {
        let files = ready::Files {
            directory,
            prefix: output_file.filter(|name| !name.is_empty()),
        };
        by::run(&given, group_by, &paths, window.as_ref(), &files, compat)?;
        return Ok(0);
    }
    if given.graphs {
        let files = ready::Files {
            directory,
            prefix: output_file.filter(|name| !name.is_empty()),
        };
        graphs::run(&given, &paths, window.as_ref(), &files, compat)?;
        return Ok(0);
    }
    let mut sums = DatabaseSums::new(compat);
    let mut ranks = Vec::new();
    // Arguments of calls take the most memory, and no table shows them.
    let load = LoadOptions {
        args: false,
        ..LoadOptions::default()
    };
    for path in &paths {
        match InputFile::open(path)? {
            InputFile::Database(database) => {
                each_recording_of(&database, load, window.as_ref(), |_, session, settings| {
                    note_left_out(path, sums.add(&session, given.naming.over(&settings))?);
                    ranks.push(Rank {
                        pid: session.process.pid.0.into(),
                        hostname: session
                            .origin
                            .map_or_else(String::new, |origin| origin.hostname),
                    });
                    Ok(())
                })?;
            }
            InputFile::Rpd(file) => {
                let found = file.sums()?;
                note_left_out(path, found.left_out);
                for (pid, of_process) in found.of_process {
                    sums.add_sums(pid, of_process)?;
                    ranks.push(Rank {
                        pid,
                        hostname: String::new(),
                    });
                }
            }
        }
    }
    let summary = sums.finish()?;
    let mut sets = vec![("Summary files:", false)];
    if given.summary_by_rank {
        sets.push(("Summary files by rank:", true));
    }
    let tables = |by_rank| -> Result<Vec<SummaryTable<'_>>> {
        let mut tables = summary.tables(by_rank, given.region_categories.as_deref())?;
        if given.domain_summary {
            tables.push(summary.domains(&tables, by_rank, compat));
        }
        tables.retain(|table| !table.is_empty());
        Ok(tables)
    };
    let output_file = output_file.filter(|name| !name.is_empty());
    if given.format == Form::Table {
        let path = output_file.filter(|_| !has_defaults);
        let path = path.map(|name| with_ending(&directory, &name, ".txt"));
        let output = destination(NAME, path.as_deref(), &paths)?;
        let view = given.view(compat, &output);
        write_output(output, compat, |out| {
            for (title, by_rank) in sets {
                writeln!(out, "\n{title}")?;
                for table in tables(by_rank)? {
                    writeln!(out, "\n{}:", table.name.to_uppercase())?;
                    print(&table, by_rank, &ranks, &view, out)?;
                }
            }
            Ok(())
        })?;
        return Ok(0);
    }
    let look = given.format.table_format();
    let prefix = file_prefix(output_file)?;
    for (_, by_rank) in sets {
        for table in tables(by_rank)? {
            let ending = format!("{}.{}", table.name, look.extension());
            let path = with_ending(&directory, &prefix, &ending);
            let output = destination(NAME, Some(&path), &paths)?;
            let view = given.view(compat, &output);
            write_output(output, compat, |out| {
                print(&table, by_rank, &ranks, &view, out)
            })?;
        }
    }
    Ok(0)
}

/// What stands before the names of tables in those of files.
fn file_prefix(output_file: Option<OsString>) -> Result<OsString> {
    let mut prefix = output_file.unwrap_or_default();
    if prefix == "-" {
        return Err(Failure::usage(
            "summary: several tables in this format are several files: -o - needs --format table",
        )
        .into());
    }
    if !prefix.is_empty() {
        prefix.push("_");
    }
    Ok(prefix)
}

impl Arguments {
    /// Messages of ranges in which all ranks wait for one another.
    fn barriers(&self) -> Vec<String> {
        super::barriers(&self.barrier)
    }

    fn view(&self, compat: Compat, output: &Destination) -> View {
        let look = self.format.table_format();
        (self.tables).view(look, self.times.units, compat, output, None)
    }
}

/// The columns; a table of several processes says in each row which one it is of.
fn columns(by_rank: bool) -> Vec<Column> {
    use ColumnKind::{Deviation, Name, Number, Time, Word};
    let of_rank = [(Number, "ProcessID", 0), (Word, "Hostname", 1)];
    let of_rank = of_rank.into_iter().filter(|_| by_rank);
    let figures = [
        (Name, "Name", 0),
        (Number, "Calls", 0),
        (Time, "DURATION", 0),
        (Time, "AVERAGE", 2),
        (Number, "PERCENT (INC)", 0),
        (Time, "MIN", 3),
        (Time, "MAX", 3),
        (Deviation, "STD_DEV", 4),
    ];
    of_rank
        .chain(figures)
        .map(|(kind, name, level)| Column::new(kind, name).detail(level))
        .collect()
}

/// The cells of a row behind those that say which process it is of.
fn figures(row: &SummaryRow<'_>) -> [Cell; 8] {
    [
        Cell::from(&*row.name),
        row.calls.into(),
        row.total.into(),
        row.average.into(),
        row.percentage.into(),
        row.min.into(),
        row.max.into(),
        // One record has no deviation; the column keeps its numeric type.
        row.std_dev.unwrap_or(f64::NAN).into(),
    ]
}

fn print(
    table: &SummaryTable<'_>,
    by_rank: bool,
    ranks: &[Rank],
    view: &View,
    out: &mut dyn std::io::Write,
) -> Result<()> {
    let mut printer = printer(NAME, view, columns(by_rank), out)?;
    for row in table.rows() {
        let mut cells = Vec::new();
        if by_rank {
            let rank = &ranks[row.rank];
            cells.extend([Cell::from(rank.pid), Cell::from(&*rank.hostname)]);
        }
        cells.extend(figures(&row));
        printer.row(cells)?;
    }
    note(NAME, view.format, &printer.finish()?);
    Ok(())
}
