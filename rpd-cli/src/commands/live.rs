//! `rpd live`: what the light recordings of running programs add up to.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;
use rpd_core::compat::Compat;
use rpd_core::naming::clock_time;
use rpd_core::session::{DeviceTotal, Session};
use rpd_formats::table::{Cell, Column, ColumnKind};

use super::tables::{TableOptions, TimeOptions, note, printer};
use super::{Form, destination, write_output};
use crate::exit_status::SUCCESS;
use crate::failure::Failure;
use crate::report::process_name;
use crate::run_directory::find_runs;

const NAME: &str = "live";

/// Show the sums so far of light recordings (rpd --light) of running programs
///
/// The programs run on; nothing in them changes.
#[derive(Debug, Parser)]
#[command(disable_version_flag = true)]
struct Arguments {
    /// Output directories of the runs [default: the current directory]
    #[arg(value_name = "DIR")]
    directories: Vec<PathBuf>,
    /// Format of tables
    #[arg(short, long, value_enum, default_value_t = Form::Table)]
    format: Form,
    /// File to write instead of standard output; it appears when it is complete
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    tables: TableOptions,
    #[command(flatten)]
    times: TimeOptions,
}

fn columns() -> Vec<Column> {
    use ColumnKind::{Name, Number, Time, Word};
    [
        (Word, "Process", 0),
        (Word, "Domain", 4),
        (Name, "Name", 0),
        (Number, "Count", 0),
        (Time, "Total", 0),
        (Time, "Average", 1),
        (Time, "Min", 3),
        (Time, "Median", 2),
        (Time, "P90", 3),
        (Time, "P99", 2),
        (Time, "Max", 3),
        (Number, "Bytes", 4),
        (Word, "Last", 4),
    ]
    .map(|(kind, name, level)| Column::new(kind, name).detail(level))
    .to_vec()
}

/// Runs `rpd live [options] [DIR...]`; returns the exit status.
pub(crate) fn run(arguments: &[OsString]) -> Result<u8> {
    let Some(mut given) = super::parse::<Arguments>(NAME, arguments)? else {
        return Ok(SUCCESS);
    };
    if given.directories.is_empty() {
        given.directories.push(PathBuf::from("."));
    }
    let (mut sessions, mut inputs) = (Vec::new(), Vec::new());
    for directory in &given.directories {
        let runs = find_runs(directory).runs;
        if runs.is_empty() {
            let problem = if directory.is_dir() {
                "holds no run that is not finished"
            } else {
                "No such directory"
            };
            return Err(Failure::failed(format!("{}: {problem}", directory.display())).into());
        }
        let mut light = false;
        for run in runs {
            let run = run?;
            let options = run.options()?;
            if options.collector.recent_bytes.is_none() {
                continue;
            }
            light = true;
            inputs.push(run.path().to_owned());
            for recording in run.recordings()? {
                let descriptor = run.open_recording(&recording)?;
                let session = Session::open_facts_at(descriptor, &run.path_of(&recording))?;
                sessions.push((session, options.kernel_names));
            }
        }
        if !light {
            return Err(Failure::failed(format!(
                "{}: no run in it is a light recording (rpd --light); a run that has all dispatches one by one has no sums",
                directory.display()
            ))
            .into());
        }
    }
    let output = destination(NAME, given.output.as_deref(), &inputs)?;
    let look = given.format.table_format();
    let units = given.times.units;
    let view = (given.tables).view(look, units, Compat::None, &output, None);
    write_output(output, Compat::None, |out| {
        let mut table = printer(NAME, &view, columns(), out as &mut dyn Write)?;
        for (session, names) in &sessions {
            let process = process_name(&session.process);
            for (name, total) in session.named_totals(*names) {
                table.row(row(session, &process, name, &total))?;
            }
        }
        note(NAME, look, &table.finish()?);
        Ok(())
    })?;
    Ok(SUCCESS)
}

fn row(session: &Session, process: &str, name: String, total: &DeviceTotal) -> Vec<Cell> {
    let quantile = |part| Cell::from(total.quantile(part).round() as u64);
    vec![
        process.into(),
        total.domain().label().into(),
        Cell::Text(name),
        total.count.into(),
        total.total.into(),
        (total.average().round() as u64).into(),
        total.min.into(),
        quantile(0.5),
        quantile(0.9),
        quantile(0.99),
        total.max.into(),
        total.bytes.into(),
        Cell::Text(clock_time(session.process.real_at(total.last))),
    ]
}
