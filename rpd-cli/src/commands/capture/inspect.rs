//! `rpd capture info|ls|show|check|export|diff`: works on captures and capsules, without a GPU.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Parser;
use rpd_capture::{Capture, CaptureError, ExcerptOf, Manifest};
use rpd_core::compat::Compat;
use rpd_core::text::foreign::shown;

use rpd_formats::table::shortened;

use super::progress::bytes;
use super::{Opened, failure, output};
use crate::commands::tables::RowOptions;
use crate::commands::write_output;
use crate::exit_status::{DAMAGED, DIFFERS, SUCCESS};
use crate::wording::count;

/// Letters that the name of a kernel keeps, however narrow the terminal is.
const NAME_LEAST: usize = 16;

/// An action on captures.
pub(super) type Action = fn(&[OsString]) -> Result<u8>;

/// The action of this name.
pub(super) fn action(name: &str) -> Option<Action> {
    Some(match name {
        "info" => info,
        "ls" => list,
        "show" => show,
        "check" => check,
        "diff" => diff,
        "export" => export,
        _ => return None,
    })
}

/// A capture to work on.
#[derive(Debug, Parser)]
struct CaptureArgument {
    /// Capture: a directory, or a capsule (a file of rpd capture pack)
    #[arg(value_name = "CAPTURE")]
    capture: PathBuf,
}

/// Show what a capture contains
#[derive(Debug, Parser)]
struct InfoArguments {
    #[command(flatten)]
    argument: CaptureArgument,
    #[command(flatten)]
    rows: RowOptions,
}

fn info(arguments: &[OsString]) -> Result<u8> {
    let Some(given) = crate::commands::parse::<InfoArguments>("capture info", arguments)? else {
        return Ok(SUCCESS);
    };
    let path = &given.argument.capture;
    if let Some(foreign) = rpd_capture::foreign(path).map_err(failure)? {
        let mut text = format!(
            "{}: a database of HIPTracer, not a capture; rpd replay cannot play it\n",
            path.display()
        );
        for (table, rows) in foreign.tables {
            text += &format!("  {table}: {rows} rows\n");
        }
        return crate::print(&text);
    }
    let opened = Opened::new(path)?;
    let capture = opened.capture()?;
    crate::print(&described(path, &capture, &given.rows)?)
}

fn described(path: &Path, capture: &Capture, rows: &RowOptions) -> Result<String> {
    let Manifest {
        command,
        host,
        simulated,
        clean,
        ended,
        status,
        calls,
        data,
        distinct,
        stored,
        stalled,
        rpd,
        excerpt,
        ..
    } = capture.manifest();
    let mut text = format!("{}\n", shown(&path.to_string_lossy()));
    let mut row = |name: &str, value: String| {
        text += &format!("  {name:<12} {}\n", shown(&value));
    };
    row("program", command.join(" "));
    if let Some(excerpt) = excerpt {
        row("excerpt of", excerpt_of(excerpt));
    }
    row("made by", format!("rpd {rpd} on {host}"));
    let place = if *simulated {
        "the simulated GPU"
    } else {
        "ROCm"
    };
    // The code tells the GPU: the description has those of the machine, which may be more.
    let codes = capture.codes().map_err(failure)?;
    let mut targets: Vec<&str> = codes.iter().map(|row| row.triple.as_str()).collect();
    targets.sort_unstable();
    targets.dedup();
    row(
        "ran on",
        format!("{place}, code for {}", targets.join(", ")),
    );
    // An end before the program's is no damage, but a replay stops there.
    let end = match (clean, status) {
        (true, Some(status)) => format!("complete; the program's exit status was {status}"),
        (true, None) => "complete".to_owned(),
        (false, _) if !ended.is_empty() => format!("ended before the program: {ended}"),
        (false, _) => "unclean: the program was killed or ended without its exit handlers; it replays up to its last \
                       complete call"
            .to_owned(),
    };
    row("end", end);
    row("calls", calls.to_string());
    let launches = capture.launches().map_err(failure)?;
    row("launches", launches.len().to_string());
    let memory = capture.memory().map_err(failure)?;
    let total: u64 = memory.iter().map(|one| one.size).sum();
    row(
        "memory",
        format!("{}, {}", count(memory.len(), "allocation"), bytes(total)),
    );
    let ratio = *data as f64 / (*distinct).max(1) as f64;
    row(
        "data",
        format!(
            "{}, {} distinct ({ratio:.1} times each), {} stored",
            bytes(*data),
            bytes(*distinct),
            bytes(*stored)
        ),
    );
    // Most captures never wait, and a row of zeros would raise questions.
    if stalled.1 > 0 {
        row(
            "stalls",
            format!(
                "{}, {:.1} ms",
                count(stalled.1, "call"),
                stalled.0 as f64 / 1e6
            ),
        );
    }
    let mut kernels = capture.kernels().map_err(failure)?;
    kernels.retain(|kernel| kernel.launches > 0);
    for kernel in kernels.iter().take(rows.limit()) {
        let launches = format!(" ({})", count(kernel.launches, "launch"));
        // The lines begin with two blanks, the word and a blank.
        let room = rows
            .width()
            .map(|width| width.saturating_sub(15 + launches.len()));
        let name = match room {
            Some(room) => shortened(&shown(&kernel.name), room.max(NAME_LEAST)),
            None => kernel.name.clone(),
        };
        row("kernel", name + &launches);
    }
    if let left @ 1.. = kernels.len().saturating_sub(rows.limit()) {
        row("kernel", format!("{left} more; --limit 0 shows all"));
    }
    let unsupported = capture.unsupported().map_err(failure)?;
    for (name, calls) in &unsupported {
        let calls = count(*calls, "call");
        row(
            "unsupported",
            format!("{name}: {calls}, which a replay leaves out (--force)"),
        );
    }
    for (seq, severity, note) in capture.notes().map_err(failure)? {
        row(
            "note",
            match seq {
                0 => note,
                _ => format!("call {seq}: {severity}: {note}"),
            },
        );
    }
    Ok(text)
}

/// Describes the source of an excerpt, and warns that it holds data of the program.
fn excerpt_of(excerpt: &ExcerptOf) -> String {
    let ExcerptOf { calls, all, launch } = excerpt;
    let (first, last) = calls;
    let part = match launch {
        Some(launch) => format!("launch {launch} (call {first} of {all})"),
        None => format!("calls {first} to {last} of {all}"),
    };
    format!("{part}, with the program's data in memory before it")
}

/// List the calls of a capture
#[derive(Debug, Parser)]
struct ListArguments {
    #[command(flatten)]
    argument: CaptureArgument,
    /// First call to list
    #[arg(long, value_name = "N", default_value_t = 1)]
    from: u64,
    /// Last call
    #[arg(long, value_name = "N")]
    until: Option<u64>,
    #[command(flatten)]
    rows: RowOptions,
}

fn list(arguments: &[OsString]) -> Result<u8> {
    let Some(given) = crate::commands::parse::<ListArguments>("capture ls", arguments)? else {
        return Ok(SUCCESS);
    };
    let opened = Opened::new(&given.argument.capture)?;
    let capture = opened.capture()?;
    let mut text = String::new();
    let last = given.until.unwrap_or(u64::MAX);
    let width = given.rows.width();
    let mut left = given.rows.limit();
    let mut is_whole = true;
    capture
        .calls(
            given.from,
            last,
            |call| -> Result<bool, rpd_capture::CaptureError> {
                if left == 0 {
                    is_whole = false;
                    return Ok(false);
                }
                left -= 1;
                let line = rpd_capture::describe(&call, false);
                match width {
                    Some(width) => text += &shortened(&shown(&line), width),
                    None => text += &line,
                }
                text.push('\n');
                Ok(true)
            },
        )
        .map_err(failure)?;
    crate::print(&text)?;
    if !is_whole {
        eprintln!("rpd: more calls follow; --limit 0 shows all");
    }
    Ok(SUCCESS)
}

/// Show one call of a capture with its arguments and data, or what its kernels accessed in memory
#[derive(Debug, Parser)]
struct ShowArguments {
    #[command(flatten)]
    argument: CaptureArgument,
    /// Number of the call; without it recorded memory accesses (rpd capture --trace) are summed up by line of source code
    #[arg(value_name = "N")]
    call: Option<u64>,
    #[command(flatten)]
    table: super::accesses::AccessOptions,
}

fn show(arguments: &[OsString]) -> Result<u8> {
    let Some(given) = crate::commands::parse::<ShowArguments>("capture show", arguments)? else {
        return Ok(SUCCESS);
    };
    let opened = Opened::new(&given.argument.capture)?;
    let capture = opened.capture()?;
    let Some(call) = given.call else {
        return super::accesses::show(&given.argument.capture, capture.path(), &given.table);
    };
    (given.table.tables).refuse_without_table("capture show", "leave the number of a call out")?;
    let call = capture.call(call).map_err(failure)?;
    crate::print(&format!("{}\n", rpd_capture::describe(&call, true)))
}

/// Check the data of a capture against their hashes
#[derive(Debug, Parser)]
struct CheckArguments {
    #[command(flatten)]
    argument: CaptureArgument,
}

fn check(arguments: &[OsString]) -> Result<u8> {
    let Some(given) = crate::commands::parse::<CheckArguments>("capture check", arguments)? else {
        return Ok(SUCCESS);
    };
    let opened = Opened::new(&given.argument.capture)?;
    let capture = opened.capture()?;
    let problems = rpd_capture::check(&capture).map_err(failure)?;
    for problem in &problems {
        eprintln!("rpd: {}", problem.text);
    }
    if problems.is_empty() {
        eprintln!(
            "rpd: {}: all data are as they were stored",
            given.argument.capture.display()
        );
        return Ok(SUCCESS);
    }
    Ok(DAMAGED)
}

/// Find the first launch after which two captures of a program differ
#[derive(Debug, Parser)]
struct DiffArguments {
    /// First capture
    #[arg(value_name = "DIR")]
    left: PathBuf,
    /// Second capture
    #[arg(value_name = "OTHER")]
    right: PathBuf,
}

fn diff(arguments: &[OsString]) -> Result<u8> {
    let Some(given) = crate::commands::parse::<DiffArguments>("capture diff", arguments)? else {
        return Ok(SUCCESS);
    };
    let (left, right) = (Opened::new(&given.left)?, Opened::new(&given.right)?);
    match rpd_capture::diff(&left.capture()?, &right.capture()?).map_err(failure)? {
        None => {
            crate::print("no difference\n")?;
            Ok(SUCCESS)
        }
        Some(difference) => {
            crate::print(&format!("{difference}\n"))?;
            Ok(DIFFERS)
        }
    }
}

/// Write the calls of a capture as JSON lines
#[derive(Debug, Parser)]
struct ExportArguments {
    #[command(flatten)]
    argument: CaptureArgument,
    /// File to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

fn export(arguments: &[OsString]) -> Result<u8> {
    let Some(given) = crate::commands::parse::<ExportArguments>("capture export", arguments)?
    else {
        return Ok(SUCCESS);
    };
    let opened = Opened::new(&given.argument.capture)?;
    let output = output(
        "capture export",
        given.output.as_deref(),
        &given.argument.capture,
    )?;
    let capture = opened.capture()?;
    let written = write_output(output, Compat::None, |out| {
        Ok(rpd_capture::export(&capture, out)?)
    });
    written.map_err(|error| match error.downcast::<CaptureError>() {
        Ok(error) => failure(error).into(),
        Err(error) => error,
    })?;
    Ok(SUCCESS)
}
