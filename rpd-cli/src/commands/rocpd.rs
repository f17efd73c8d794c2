//! `rocpd`: the database commands under rocprofv3's names and with its defaults.

use std::ffi::OsString;

use anyhow::Result;
use rpd_core::compat::{Compat, Difference};

use super::table::{self, SubCommand};
use super::{convert, summary};
use crate::called::RocpdTool;
use crate::failure::Failure;

/// The commands of `rocpd`, each with its help.
fn commands() -> impl Iterator<Item = (&'static SubCommand, &'static str)> {
    table::all().filter_map(|command| Some((command, command.rocpd?)))
}

/// The names of the commands.
fn names(separator: &str) -> String {
    let names: Vec<&str> = commands().map(|(command, _)| command.name).collect();
    names.join(separator)
}

/// What follows the name of the program in its usage.
pub(crate) fn usage() -> String {
    format!("[-h] [-v] {{{}}} ...", names(","))
}

fn help() -> String {
    let commands: String = commands()
        .map(|(command, help)| format!("  {:<7}  {help}\n", command.name))
        .collect();
    format!(
        "Aggregates and analyses databases of profiles (rocpd), as rpd does it\n\n\
         Usage: rocpd {}\n\n\
         Commands:\n{commands}\n\
         Options:\n  \
           -h, --help     Print this help; after a command, that of the command\n  \
           -v, --version  Print version information\n",
        usage()
    )
}

/// Runs a program that does one thing with databases: `rocpd2csv` and others.
pub(crate) fn tool(tool: RocpdTool, arguments: &[OsString], compat: Compat) -> Result<u8> {
    match tool {
        RocpdTool::Convert(format) => {
            let format = ["--output-format", format].map(OsString::from);
            convert::run(&[&format, arguments].concat(), compat)
        }
        RocpdTool::Summary => summary::run(arguments, compat),
    }
}

/// Runs one of the commands.
pub(crate) fn run(arguments: &[OsString], compat: Compat) -> Result<u8> {
    let Some((word, rest)) = arguments.split_first() else {
        return crate::print(&help());
    };
    match word.to_str() {
        Some("-h" | "--help") => return crate::print(&help()),
        Some("-v" | "--version") => return crate::print(&crate::version::text()),
        _ => {}
    }
    let Some((command, _)) = commands().find(|(command, _)| word == command.name) else {
        return Err(Failure::usage(format!(
            "argument command: invalid choice: '{}' (choose from {})",
            word.display(),
            names(", ")
        ))
        .into());
    };
    let status = (command.run)(rest, compat)?;
    let is_help = rest.iter().any(|word| word == "-h" || word == "--help");
    if status == 0 && !is_help && compat.has(Difference::RocpdWords) {
        crate::print("Done. Exiting...\n")?;
    }
    Ok(status)
}
