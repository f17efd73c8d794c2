//! `rocpd`: the database commands under rocprofv3's names and with its defaults.

use std::ffi::OsString;

use anyhow::Result;
use rpd_core::compat::{Compat, Difference};

use super::{convert, merge, query, summary};
use crate::called::RocpdTool;
use crate::failure::Failure;

const HELP: &str = "\
Aggregates and analyses databases of profiles (rocpd), as rpd does it

Usage: rocpd [-h] [-v] {convert,query,summary,merge} ...

Commands:
  convert  Write databases in other formats
  query    Run SQL over databases
  summary  Sum up durations
  merge    Put databases into one

Options:
  -h, --help     Print this help; after a command, that of the command
  -v, --version  Print version information
";

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
        return crate::print(HELP);
    };
    let command: fn(&[OsString], Compat) -> Result<u8> = match word.to_str() {
        Some("-h" | "--help") => return crate::print(HELP),
        Some("-v" | "--version") => return crate::print(&crate::version::text()),
        Some("convert") => convert::run,
        Some("query") => query::run,
        Some("summary") => summary::run,
        Some("merge") => merge::run,
        _ => {
            return Err(Failure::usage(format!(
                "argument command: invalid choice: '{}' (choose from convert, query, summary, merge)",
                word.display()
            ))
            .into());
        }
    };
    let status = command(rest, compat)?;
    let is_help = rest.iter().any(|word| word == "-h" || word == "--help");
    if status == 0 && !is_help && compat.has(Difference::RocpdWords) {
        crate::print("Done. Exiting...\n")?;
    }
    Ok(status)
}
