//! `rpd capture trim|pack`: makes a smaller capture of a part of another one, by playing what comes before it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Parser;
use rpd_capture::Marker;
use rpd_core::options::Backend;
use rpd_core::storage::temporary::TemporaryDirectory;
use rpd_formats::destination::Destination;
use rpd_replay::{Excerpt, KernelChoice, KernelName, Options, Part, Verify};

use super::directory::CaptureDirectory;
use super::inspect::Action;
use super::progress::bytes;
use super::replay::{self, Addresses, Runtime};
use super::{Opened, failure, output};
use crate::exit_status::SUCCESS;
use crate::failure::Failure;

/// The action of this name.
pub(super) fn action(name: &str) -> Option<Action> {
    Some(match name {
        "trim" => trim,
        "pack" => pack,
        _ => return None,
    })
}

/// Name of a new capture in its temporary directory.
const PART: &str = "capture";

/// Options for playing the calls before the part.
#[derive(Debug, Parser)]
struct Playing {
    /// Leave out calls that cannot be replayed
    #[arg(long)]
    force: bool,
    /// Addresses of memory while they are played
    #[arg(long, value_enum, default_value = "auto")]
    va: Addresses,
    /// Platform to play the calls before the part on: rocm, sim or auto
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = super::parse_backend)]
    backend: Backend,
    /// Print nothing but errors
    #[arg(short, long)]
    quiet: bool,
}

impl Playing {
    fn options(&self, runtime: &Runtime) -> Options {
        Options {
            library: runtime.library.clone(),
            from: None,
            until: None,
            placement: self.va.placement(),
            serial: false,
            verify: Verify::Exact,
            repeat: None,
            devices: Default::default(),
            force: self.force,
            deep: false,
            guess: true,
            kernel: None,
            replace: Vec::new(),
            print_note: replay::notes(self.quiet),
        }
    }

    /// Writes the part of the capture that `given` names into `target`.
    fn excerpt(&self, given: &Path, part: &Part, target: &Path) -> Result<Excerpt> {
        let opened = Opened::new(given)?;
        rpd_capture::Manifest::read(opened.path()).map_err(failure)?;
        let runtime = Runtime::choose(self.backend, self.quiet)?;
        let options = self.options(&runtime);
        Ok(rpd_replay::excerpt(opened.path(), options, part, target).map_err(replay::failure)?)
    }

    /// Writes the part into the directory [`PART`] of a temporary one beside `output`.
    fn beside(
        &self,
        output: &Path,
        given: &Path,
        part: &Part,
    ) -> Result<(TemporaryDirectory, Excerpt)> {
        let parent = std::path::absolute(output)?;
        let parent = parent.parent().unwrap_or(Path::new("/"));
        let directory = TemporaryDirectory::in_directory(parent)
            .with_context(|| format!("{} cannot be made", output.display()))?;
        // Temporary directories are for their owner alone, captures are not.
        let fresh = directory.path().join(PART);
        std::fs::create_dir(&fresh)?;
        let made = self.excerpt(given, part, &fresh)?;
        Ok((directory, made))
    }
}

/// Make a capture of some calls of another one, with the memory that they use
///
/// The calls before them are played once; those that the part needs (allocations, streams, graphs) stay in it. Calls keep
/// their numbers.
#[derive(Debug, Parser)]
struct TrimArguments {
    /// The capture
    #[arg(value_name = "CAPTURE")]
    capture: PathBuf,
    /// Directory to write, which must not exist
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// First call of the part
    #[arg(long, value_name = "N", default_value_t = 1)]
    from: u64,
    /// Last call of the part [default: the last]
    #[arg(long, value_name = "N")]
    until: Option<u64>,
    #[command(flatten)]
    playing: Playing,
}

fn trim(arguments: &[OsString]) -> Result<u8> {
    let Some(given) = crate::commands::parse::<TrimArguments>("capture trim", arguments)? else {
        return Ok(SUCCESS);
    };
    super::check_range("capture trim", given.from, given.until)?;
    let output = &given.output;
    if output.exists() {
        return Err(Failure::failed(format!(
            "{} exists; -o names another directory",
            output.display()
        ))
        .into());
    }
    // A directory beside the others of the capture would become a part of it.
    let _: Destination = super::output("capture trim", Some(output), &given.capture)?;
    let last = match given.until {
        Some(last) => last,
        None => {
            let opened = Opened::new(&given.capture)?;
            opened.capture()?.last()
        }
    };
    let part = Part::Calls(given.from, last);
    let (directory, made) = given.playing.beside(output, &given.capture, &part)?;
    std::fs::rename(directory.path().join(PART), output)
        .with_context(|| format!("{} cannot be made", output.display()))?;
    if !given.playing.quiet {
        eprintln!("{}", message(output, &made));
    }
    Ok(SUCCESS)
}

/// Pack one launch with its memory, code and arguments into one file (a capsule), for rpd replay
///
/// The file has data of the program: what is in the memory that the launch can reach, before and after it. Of the environment
/// it has the variables that the capture kept.
#[derive(Debug, Parser)]
struct PackArguments {
    /// The capture
    #[arg(value_name = "CAPTURE")]
    capture: PathBuf,
    /// Launch to pack: a kernel by its name, a part of it or a regular expression, and the number of the launch
    #[arg(long, value_name = "NAME|REGEX[#N]")]
    kernel: String,
    /// File to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Take all memory of the program, not only what can be reached from the arguments and variables
    #[arg(long)]
    all_memory: bool,
    #[command(flatten)]
    playing: Playing,
}

fn pack(arguments: &[OsString]) -> Result<u8> {
    let Some(given) = crate::commands::parse::<PackArguments>("capture pack", arguments)? else {
        return Ok(SUCCESS);
    };
    let (name, launch_number) = replay::kernel("capture pack", &given.kernel)?;
    let capsule = output("capture pack", Some(&given.output), &given.capture)?;
    let directory = TemporaryDirectory::new()?;
    let part = launch(name, launch_number, given.all_memory);
    let made = given
        .playing
        .excerpt(&given.capture, &part, directory.path())?;
    capsule.write(|out| -> Result<()> {
        Ok(rpd_capture::pack_capsule(directory.path(), out).map_err(failure)?)
    })?;
    if !given.playing.quiet {
        eprintln!("{}", message(&given.output, &made));
    }
    Ok(SUCCESS)
}

/// The part of a capture that is one launch of a kernel.
fn launch(name: KernelName, launch: u64, all_memory: bool) -> Part {
    Part::Launch {
        choice: KernelChoice {
            name,
            launch,
            iterations: 0,
            warmup: 0,
            seq: None,
        },
        all_memory,
    }
}

/// The part of a run that a capture is about.
#[derive(Debug, Clone)]
pub(super) enum Region {
    /// The whole run of the program.
    All,
    /// A part that is known before the program runs.
    Part(Part),
    /// The part that markers of the program enclose.
    Marked(Marked),
}

/// A part of a run that the program marks.
#[derive(Debug, Clone)]
pub(super) struct Marked {
    /// The message of a range; without one the part is between a resume and a pause.
    message: Option<String>,
    /// Number among the parts that the program marks so, from 1.
    number: u64,
}

/// The region of this text: `all`, `N..M`, `kernel:NAME[#N]`, `roctx[#N]` or `roctx:MESSAGE[#N]`.
pub(super) fn region(text: &str) -> Result<Region, String> {
    if text == "all" {
        return Ok(Region::All);
    }
    let calls = || {
        let (first, last) = text.split_once("..")?;
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        (1 <= first && first <= last).then_some(Part::Calls(first, last))
    };
    let found = match (text.strip_prefix("kernel:"), text.strip_prefix("roctx")) {
        (Some(text), _) => {
            replay::launch_of(text).map(|(name, number)| Region::Part(launch(name, number, false)))
        }
        (_, Some(rest)) => marked(rest).map(Region::Marked),
        _ => calls().map(Region::Part),
    };
    found.ok_or_else(|| {
        "expected all, the first and last call such as 100..200, kernel:NAME[#N], roctx[#N] or roctx:MESSAGE[#N]"
            .to_owned()
    })
}

/// The region whose text goes on like this after `roctx`. Messages may have `#` in them: only a number after it is one.
fn marked(text: &str) -> Option<Marked> {
    let (text, number) = match text.rsplit_once('#') {
        Some((before, number)) => match number.parse() {
            Ok(number) => (before, number),
            Err(_) => (text, 1),
        },
        None => (text, 1),
    };
    let message = match text.strip_prefix(':') {
        Some(message) => Some(message.to_owned()),
        None if text.is_empty() => None,
        None => return None,
    };
    let is_named = message.as_deref() != Some("");
    (number > 0 && is_named).then_some(Marked { message, number })
}

impl Marked {
    /// The part of a run of `calls` calls with these markers.
    pub(super) fn find(&self, markers: &[Marker], calls: u64, quiet: bool) -> Result<Part> {
        let (text, name) = match &self.message {
            Some(message) => (
                format!("roctx:{message}"),
                format!("ROCTx range \"{message}\""),
            ),
            None => (
                "roctx".to_owned(),
                "region between roctxProfilerResume and roctxProfilerPause".to_owned(),
            ),
        };
        let found = rpd_capture::regions(markers, self.message.as_deref(), calls);
        let index = usize::try_from(self.number - 1).unwrap_or(usize::MAX);
        let failed = |what: String| -> anyhow::Error {
            Failure::failed(format!("--region {text}#{}: {what}", self.number)).into()
        };
        match found.get(index) {
            None => Err(failed(match found.len() {
                0 => format!("the program has no {name}"),
                1 => format!("the program has one {name}"),
                count => format!("the program has {count} such parts"),
            })),
            Some((first, last)) if first > last => {
                Err(failed("the program makes no call in it".to_owned()))
            }
            Some((first, last)) => {
                if found.len() > 1 && !quiet {
                    eprintln!(
                        "rpd: the program has {} such parts; the one that is kept is {text}#{}",
                        found.len(),
                        self.number
                    );
                }
                Ok(Part::Calls(*first, *last))
            }
        }
    }
}

/// Replaces a capture by a part of it. Where that fails it stays as it is.
pub(super) fn keep_part(
    directory: &CaptureDirectory,
    part: &Part,
    backend: Backend,
    quiet: bool,
) -> Result<()> {
    let output = &directory.work;
    let playing = Playing {
        force: false,
        va: Addresses::Auto,
        backend,
        quiet,
    };
    let (excerpt, made) = playing.beside(output, output, part)?;
    let shown = directory.output.display();
    let part = excerpt.path().join(PART);
    let replaced =
        rpd_capture::remove_files(output).and_then(|()| rpd_capture::move_files(&part, output));
    if let Err(error) = replaced {
        let mut kept = directory.output.clone().into_os_string();
        kept.push(".part");
        let is_kept = excerpt.persist(Path::new(&kept)).is_ok();
        return Err(failure(error)).with_context(|| {
            if is_kept {
                format!(
                    "{shown} cannot be replaced by its part, which is in {}",
                    Path::new(&kept).display()
                )
            } else {
                format!("{shown} cannot be replaced by its part")
            }
        });
    }
    if !quiet {
        notice!("{}", message(&directory.output, &made));
    }
    Ok(())
}

fn message(output: &Path, made: &Excerpt) -> String {
    let (first, last) = made.calls;
    let (pieces, size) = made.memory;
    let part = match &made.launch {
        Some(launch) => format!("launch {launch} (call {first})"),
        None => format!("calls {first} to {last}"),
    };
    format!(
        "rpd: wrote {}: {part}, {} calls in all, {pieces} pieces of memory with {}, {} stored; it has data of the program",
        output.display(),
        made.summary.calls,
        bytes(size),
        bytes(made.summary.data.1)
    )
}
