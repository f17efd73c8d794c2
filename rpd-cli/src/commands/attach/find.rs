//! `rpd attach --find`: the processes of this machine that could be attached to, and how.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use rpd_core::compat::Compat;
use rpd_core::procfs;
use rpd_core::stats::Unit;
use rpd_formats::table::{Cell, Column, ColumnKind};
use rpd_spool::idle;

use super::NAME;
use super::target::{Reason, Way, user_of, way};
use crate::commands::tables::{TableOptions, note, printer};
use crate::commands::{Form, destination, write_output};
use crate::exit_status::SUCCESS;

fn columns() -> Vec<Column> {
    use ColumnKind::{Name, Word};
    [
        (Word, "Process"),
        (Word, "User"),
        (Word, "Attach"),
        (Word, "State"),
        (Name, "Command"),
    ]
    .map(|(kind, name)| Column::new(kind, name))
    .to_vec()
}

/// The command line of a process, or the name of one without.
#[expect(clippy::disallowed_methods, reason = "files of the kernel")]
fn command(pid: u32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<String> = line
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    if words.is_empty() {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        return name.trim_end().to_owned();
    }
    words.join(" ")
}

/// Prints the table.
pub(super) fn run(
    form: Form,
    output: Option<&std::path::Path>,
    tables: &TableOptions,
) -> Result<u8> {
    let inputs: [PathBuf; 0] = [];
    let output = destination(NAME, output, &inputs)?;
    let (mut rows, mut foreign) = (Vec::new(), 0_usize);
    for pid in procfs::processes().filter(|pid| *pid != std::process::id()) {
        let (how, state) = match way(pid) {
            Way::Ours(page) => {
                let state = match idle::look(&page.here) {
                    Ok((true, Some(rpd))) => format!("attached to by process {rpd}"),
                    Ok((true, None)) => "attached to".to_owned(),
                    Ok((false, _)) => "waits".to_owned(),
                    Err(error) => format!("its control page cannot be opened: {error}"),
                };
                ("rpd idle", state)
            }
            Way::Upstream => ("ROCP_TOOL_ATTACH=1", "waits".to_owned()),
            Way::Refused(reason) => {
                let state = reason.to_string();
                match reason {
                    Reason::Foreign(_) => {
                        foreign += 1;
                        continue;
                    }
                    // Programs that use no GPU are not listed.
                    Reason::Missing | Reason::Unprepared { gpu: false } => continue,
                    Reason::Recorded
                    | Reason::NoPage
                    | Reason::Cuda
                    | Reason::Unprepared { gpu: true } => ("no", state),
                }
            }
        };
        rows.push(vec![
            Cell::from(u64::from(pid)),
            Cell::from(u64::from(user_of(pid).unwrap_or(0))),
            Cell::from(how),
            Cell::Text(state),
            Cell::Text(command(pid)),
        ]);
    }
    let look = form.table_format();
    let view = tables.view(look, Unit::Nsec, Compat::None, &output, None);
    write_output(output, Compat::None, |out| {
        let mut table = printer(NAME, &view, columns(), out as &mut dyn Write)?;
        for row in rows {
            table.row(row)?;
        }
        note(NAME, look, &table.finish()?);
        Ok(())
    })?;
    if foreign > 0 {
        eprintln!("rpd: {NAME}: {foreign} processes of other users cannot be looked at");
    }
    Ok(SUCCESS)
}
