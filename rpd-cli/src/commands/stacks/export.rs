//! `rpd export`: recordings as files of other tools.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;
use rpd_core::session::LoadOptions;
use rpd_core::session::shown::expand;
use rpd_formats::rpd_file::RpdFile;
use rpd_symbols::{is_looked_up, look_up};

use super::super::window::WindowOptions;
use super::super::{Inputs, Naming, destination, each_recording, parse};
use super::FrameOptions;

const NAME: &str = "export";

/// Write recordings as a file of RPD (ROCm/rocmProfileData), call stacks included
#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    inputs: Inputs,
    /// The file to write, with the tables and views of RPD's schema 3; its tools expect names that end in .rpd
    #[arg(long, value_name = "FILE", required = true)]
    rpd: PathBuf,
    #[command(flatten)]
    frames: FrameOptions,
    #[command(flatten)]
    naming: Naming,
    #[command(flatten)]
    window: WindowOptions,
}

/// Runs `rpd export` with its arguments; returns the exit status.
pub(crate) fn run(arguments: &[OsString]) -> Result<u8> {
    let Some(given) = parse::<Arguments>(NAME, arguments)? else {
        return Ok(0);
    };
    let paths = given.inputs.paths(NAME)?;
    let output = destination(NAME, Some(&given.rpd), &paths)?;
    let is_standard_output = output.is_standard_output();
    let window = given.window.resolve(NAME, &paths)?;
    let mut symbolizer = given.frames.symbolizer()?;
    let mut file = RpdFile::create(output)?;
    let load = LoadOptions {
        args: true,
        ..LoadOptions::default()
    };
    let mut frames = 0;
    each_recording(
        &paths,
        load,
        window.as_ref(),
        |_, _, mut session, settings| {
            if !session.stacks.is_empty() && !is_looked_up(&session) {
                look_up(&mut session, &mut symbolizer);
            }
            let expanded = expand(&session, given.frames.shown(settings.shown_frames));
            let counts = file.add(&session, given.naming.over(&settings), &expanded)?;
            frames += counts.frames;
            Ok(())
        },
    )?;
    let path = file.finish()?;
    if !is_standard_output {
        notice!(
            "rpd: wrote {} with {frames} rows of stack frames",
            crate::report::shown(&path)
        );
    }
    for note in symbolizer.notes() {
        eprintln!("rpd: {NAME}: {note}");
    }
    Ok(0)
}
