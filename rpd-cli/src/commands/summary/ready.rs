//! Tables of a summary that are ready to be printed, to one place or each to a file.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use rpd_core::compat::Compat;
use rpd_formats::table::{Cell, Column, Printer, View};

use super::super::tables::{note, printer};
use super::super::{Form, destination, with_ending, write_output};
use super::{Arguments, NAME, file_prefix};

/// Destination of tables in files.
pub(super) struct Files {
    pub(super) directory: PathBuf,
    pub(super) prefix: Option<OsString>,
}

/// A table that is ready to be printed.
pub(super) struct Table {
    pub(super) name: String,
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Vec<Cell>>,
}

/// Writes the tables: as text below one another, in the other forms each to a file of its own.
///
/// # Errors
/// When no table has the column that is to order the rows, before anything is written; when a file cannot be written.
pub(super) fn write(
    tables: Vec<Table>,
    given: &Arguments,
    files: &Files,
    paths: &[PathBuf],
    compat: Compat,
) -> Result<()> {
    let form = given.format;
    if form == Form::Table {
        let path = files.prefix.as_ref();
        let path = path.map(|name| with_ending(&files.directory, name, ".txt"));
        let output = destination(NAME, path.as_deref(), paths)?;
        let view = given.view(compat, &output);
        check_sort(&tables, &view)?;
        return write_output(output, compat, |out| {
            for table in tables {
                writeln!(out, "\n{}:", table.name.to_uppercase())?;
                print(table, &view, out)?;
            }
            Ok(())
        });
    }
    let prefix = file_prefix(files.prefix.clone())?;
    let usual = destination::<&Path>(NAME, None, [])?;
    check_sort(&tables, &given.view(compat, &usual))?;
    for table in tables {
        let ending = format!("{}.{}", table.name, form.table_format().extension());
        let path = with_ending(&files.directory, &prefix, &ending);
        let output = destination(NAME, Some(&path), paths)?;
        let view = given.view(compat, &output);
        write_output(output, compat, |out| print(table, &view, out))?;
    }
    Ok(())
}

fn print(table: Table, view: &View, out: &mut dyn Write) -> Result<()> {
    let mut printer = printer(NAME, &view_for(&table, view), table.columns, out)?;
    for row in table.rows {
        printer.row(row)?;
    }
    note(NAME, view.format, &printer.finish()?);
    Ok(())
}

/// Whether a table has the column that is to order the rows.
fn can_be_sorted(table: &Table, view: &View) -> bool {
    Printer::new(view, table.columns.clone(), std::io::sink()).is_ok()
}

/// The view of a table: one that does not have the column keeps its order, because others have it.
fn view_for(table: &Table, view: &View) -> View {
    let sort = view.sort.clone();
    View {
        sort: sort.filter(|_| can_be_sorted(table, view)),
        ..view.clone()
    }
}

/// Refuses a column that no table has.
fn check_sort(tables: &[Table], view: &View) -> Result<()> {
    let any = tables.iter().any(|table| can_be_sorted(table, view));
    match tables.first().filter(|_| !any) {
        Some(first) => printer(NAME, view, first.columns.clone(), std::io::sink()).map(drop),
        None => Ok(()),
    }
}
