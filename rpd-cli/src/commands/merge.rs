//! `rpd merge`: merges several databases into one.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;
use rpd_core::compat::Compat;

use super::{Inputs, destination, output_directory, parse, with_ending};

const NAME: &str = "merge";

/// Merge databases into one
#[derive(Debug, Parser)]
#[command(
    after_help = "Every table is kept; the views are made over all of them, so that every reader sees one database. \
    A single database is copied with its views made again."
)]
struct Arguments {
    #[command(flatten)]
    inputs: Inputs,
    /// Database to write; .db is appended where it is missing; - is standard output
    #[arg(
        short = 'o',
        long = "output-file",
        value_name = "FILE",
        default_value = "merged"
    )]
    output: PathBuf,
    /// Directory of that file [default: the current directory]
    #[arg(short = 'd', long = "output-path", value_name = "DIR")]
    output_path: Option<PathBuf>,
}

/// Runs `rpd merge`; returns the exit status.
pub(crate) fn run(arguments: &[OsString], compat: Compat) -> Result<u8> {
    let Some(given) = parse::<Arguments>(NAME, arguments)? else {
        return Ok(0);
    };
    let paths = given.inputs.paths(NAME)?;
    let directory = output_directory(given.output_path.as_deref(), compat);
    let ending = match given.output.extension() {
        Some(extension) if extension == "db" => "",
        _ => ".db",
    };
    let output = with_ending(&directory, given.output.as_os_str(), ending);
    let output = destination(NAME, Some(&output), &paths)?;
    let is_standard_output = output.is_standard_output();
    let path = rpd_formats::rocpd::merge(&paths, output)?;
    if is_standard_output {
        return Ok(0);
    }
    let word = if paths.len() == 1 {
        "database"
    } else {
        "databases"
    };
    notice!(
        "rpd: wrote {} from {} {word}",
        crate::report::shown(&path),
        paths.len()
    );
    Ok(0)
}
