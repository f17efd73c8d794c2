//! `rocpd`: the database commands under rocprofv3's names and with its defaults.

use std::ffi::OsString;

use anyhow::Result;
use rpd_core::compat::{Compat, Difference};

use super::{convert, summary};
use crate::called::RocpdTool;
use crate::failure::Failure;
use crate::sub_commands::{ROCPD, SubCommand, rocpd_names, rocpd_usage};

fn help() -> String {
    let commands: String = ROCPD
        .iter()
        .map(|(command, help)| format!("  {:<7}  {help}\n", command.name()))
        .collect();
    format!(
        "Aggregates and analyses databases of profiles (rocpd), as rpd does it\n\n\
         Usage: rocpd {}\n\n\
         Commands:\n{commands}\n\
         Options:\n  \
           -h, --help     Print this help; after a command, that of the command\n  \
           -v, --version  Print version information\n",
        rocpd_usage()
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

/// Runs one of the commands, by `run_command`.
pub(crate) fn run(
    arguments: &[OsString],
    compat: Compat,
    run_command: impl Fn(SubCommand, &[OsString], Compat) -> Result<u8>,
) -> Result<u8> {
    let Some((word, rest)) = arguments.split_first() else {
        return crate::print(&help());
    };
    match word.to_str() {
        Some("-h" | "--help") => return crate::print(&help()),
        Some("-v" | "--version") => return crate::print(&crate::version::text()),
        _ => {}
    }
    let mut commands = ROCPD.iter().map(|(command, _)| *command);
    let Some(command) = commands.find(|command| word == command.name()) else {
        return Err(Failure::usage(format!(
            "argument command: invalid choice: '{}' (choose from {})",
            word.display(),
            rocpd_names(", ")
        ))
        .into());
    };
    let status = run_command(command, rest, compat)?;
    let is_help = rest.iter().any(|word| word == "-h" || word == "--help");
    if status == 0 && !is_help && compat.has(Difference::RocpdWords) {
        crate::print("Done. Exiting...\n")?;
    }
    Ok(status)
}
