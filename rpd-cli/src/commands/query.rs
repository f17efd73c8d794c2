//! `rpd query`: runs SQL over databases.

use std::ffi::OsString;
use std::io::Write;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Parser;
use rpd_core::compat::{Compat, Difference};
use rpd_core::stats::Unit;
use rpd_formats::rocpd::query::{Combined, Limit, QueryError};
use rpd_formats::table::{Column, ColumnKind, Printer, TableFormat, View};
use rpd_spool::regular_file;

use super::tables::{TableOptions, explained, note};
use super::window::WindowOptions;
use super::{
    Form, ROCPD_FILE, destination, expand, inherited, output_directory, parse, with_ending,
    write_output,
};
use crate::failure::Failure;

const NAME: &str = "query";

/// Largest size of a file of SQL, in bytes.
const LARGEST_SQL: u64 = 16 << 20;

/// Run SQL over databases, seen as one
#[derive(Debug, Parser)]
#[command(
    after_help = "Databases are opened for reading only. Views such as kernels, regions, memory_copies, top_kernels and busy \
    join the tables; `rpd query DB \"SELECT name FROM sqlite_temp_master\"` lists all. A file of RPD \
    (ROCm/rocmProfileData), one at a time, has its own tables and views."
)]
struct Arguments {
    /// Databases (files ending in _results.db) or directories that hold some; the last word is the SQL unless --query
    /// or --file gives it
    #[arg(value_name = "DB... SQL")]
    words: Vec<PathBuf>,
    /// Database or directory to read, given as an option
    #[arg(short, long = "input", value_name = "DB", num_args = 1..)]
    input: Vec<PathBuf>,
    /// SQL to run
    #[arg(short, long, value_name = "SQL", conflicts_with = "file")]
    query: Option<String>,
    /// File with the SQL
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// File with SQL to run first, for temporary views and the like
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Output format of the result
    #[arg(short = 'f', long, value_enum, default_value = "table")]
    format: Form,
    /// Name of the file DIR/NAME.ending to write instead of standard output, which - is
    #[arg(short = 'o', long, value_name = "NAME")]
    output_file: Option<OsString>,
    /// Directory of that file [default: the current directory]
    #[arg(short = 'd', long = "output-path", value_name = "DIR")]
    output_path: Option<PathBuf>,
    /// Seconds of processor time after which SQL is stopped; 0 sets no limit [default: 60, and 10 for each MiB of the databases]
    #[arg(long, value_name = "SECONDS")]
    time_limit: Option<u64>,
    #[command(flatten)]
    window: WindowOptions,
    #[command(flatten)]
    tables: TableOptions,
}

/// Runs `rpd query`; returns the exit status.
pub(crate) fn run(arguments: &[OsString], compat: Compat) -> Result<u8> {
    let Some(given) = parse::<Arguments>(NAME, arguments)? else {
        return Ok(0);
    };
    let mut databases: Vec<&PathBuf> = given.words.iter().chain(&given.input).collect();
    let sql = match (&given.query, &given.file) {
        (Some(sql), _) => sql.clone(),
        (None, Some(file)) => text(file)?,
        (None, None) => {
            let Some(last) = given.words.last() else {
                return Err(usage("expected databases and then the SQL"));
            };
            // A word that names a file is a database, behind which the SQL was forgotten.
            if last.exists() {
                return Err(usage(&format!(
                    "{} is a file, so the SQL is missing: it is the last word, or after --query",
                    last.display()
                )));
            }
            databases.remove(given.words.len() - 1);
            match last.to_str() {
                Some(sql) => sql.to_owned(),
                None => return Err(usage("the SQL is not valid UTF-8")),
            }
        }
    };
    if databases.is_empty() {
        return Err(usage(
            "expected at least one database (a file ending in _results.db) and then the SQL",
        ));
    }
    let paths = expand(&databases)?;
    let window = given.window.resolve(NAME, &paths)?;
    let mut database = Combined::open(&paths).map_err(explain)?;
    if let Some(seconds) = given.time_limit {
        database.set_limit(NonZeroU64::new(seconds).map_or(Limit::None, Limit::Seconds));
    }
    if let Some(window) = &window {
        database.set_window(window).map_err(explain)?;
    }
    if let Some(script) = &given.script {
        database.run(&text(script)?).map_err(explain)?;
    }
    let look = given.format.table_format();
    let output_file = if !compat.has(Difference::RocpdTables) {
        given.output_file.clone()
    } else if given.format == Form::Table {
        // The original prints tables to the terminal and writes only the other formats into a file.
        None
    } else {
        (given.output_file.clone())
            .or_else(|| inherited("ROCPD_OUTPUT_NAME"))
            .or_else(|| Some(ROCPD_FILE.into()))
    };
    let path = output_file.map(|name| {
        let directory = output_directory(given.output_path.as_deref(), compat);
        with_ending(&directory, &name, &format!(".{}", look.extension()))
    });
    let mut rows = None;
    let output = destination(NAME, path.as_deref(), &paths)?;
    // What SQL returns has no unit that is known here.
    let view = (given.tables).view(look, Unit::Nsec, compat, &output, None);
    write_output(output, compat, |out| {
        rows = Some(print(&database, &sql, &view, out)?);
        Ok(())
    })?;
    if rows == Some(0) {
        eprintln!("rpd: query: no results");
    }
    Ok(0)
}

fn usage(message: &str) -> anyhow::Error {
    Failure::usage(format!("{NAME}: {message}")).into()
}

fn text(path: &Path) -> Result<String> {
    regular_file::read_text(path, LARGEST_SQL).with_context(|| path.display().to_string())
}

/// Prints the result and returns its number of rows.
fn print(database: &Combined, sql: &str, view: &View, out: &mut dyn Write) -> Result<u64> {
    let cell = std::cell::RefCell::new((Some(out), None));
    database
        .query(
            sql,
            |columns| {
                let (out, printer) = &mut *cell.borrow_mut();
                if let Some(out) = out.take() {
                    let columns = columns.into_iter();
                    let columns = columns.map(|name| Column::new(ColumnKind::Any, name));
                    *printer = Some(Printer::new(view, columns.collect(), out)?);
                }
                Ok(())
            },
            |row| match &mut cell.borrow_mut().1 {
                Some(printer) => printer.row(row),
                None => Ok(()),
            },
        )
        .map_err(explain)?;
    match cell.into_inner().1 {
        Some(printer) => {
            let rows = printer.rows();
            if rows > 0 || view.format != TableFormat::Console {
                note(NAME, view.format, &printer.finish()?);
            }
            Ok(rows)
        }
        None => Ok(0),
    }
}

fn explain(error: QueryError) -> anyhow::Error {
    match error {
        QueryError::Output(error) => explained(NAME, error),
        QueryError::Sql { .. } => Failure::failed(format!("{NAME}: {error}")).into(),
        other => other.into(),
    }
}
