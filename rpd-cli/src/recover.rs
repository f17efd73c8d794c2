//! `rpd recover DIR`: finishes runs whose front end was killed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rpd_core::naming::{self, Namer};
use rpd_core::options::Options;
use rpd_core::storage::temporary::remove_abandoned;

use crate::exit_status::{FAILED, SUCCESS};
use crate::failure::{Failure, line};
use crate::report::{self, ConfinedDirectory};
use crate::run_directory::{FoundRuns, RunDirectory, find_runs};

const USAGE: &str = "Write the outputs of runs whose rpd was killed\n\n\
    Usage: rpd recover [--force] [--output-directory OUT] DIR...\n\n\
    DIR is an output directory (with the pass_N below it), its .rpd directory, one run-* directory in there, or the\n\
    directory of a capture. Runs of processes that still run are reported and left as they are.\n\n\
    Files are written inside the output directory that holds the run, whatever the run's own options say. Runs that\n\
    belong to another user, and directories that others may change, are refused.\n\n\
    Options:\n  \
    -d, --output-directory OUT  Write to OUT instead; needed for a run whose files went elsewhere, or that was moved\n  \
        --force                 Write also what processes recorded that may still run, as in a PID namespace (a container)\n  \
                              that is not seen from here; what they do from then on is lost\n  \
    -h, --help                  Print help\n";

/// The parsed arguments of `rpd recover`.
#[derive(Debug, Default)]
struct RecoverArguments {
    directories: Vec<PathBuf>,
    output: Option<String>,
    /// Take all processes for ended.
    force: bool,
}

/// Parses the arguments; `None` when help was requested.
fn parse(arguments: &[OsString]) -> Result<Option<RecoverArguments>, Failure> {
    let mut given = RecoverArguments::default();
    let mut words = arguments.iter();
    let mut only_directories = false;
    while let Some(word) = words.next() {
        // After `--` every word is a directory, whatever it begins with.
        let text = word.to_str().filter(|_| !only_directories);
        let value = match text {
            Some("-h" | "--help") => return Ok(None),
            Some("--") => {
                only_directories = true;
                continue;
            }
            Some("--force") => {
                given.force = true;
                continue;
            }
            Some("-d" | "--output-directory") => words.next().map(|value| value.to_str()),
            Some(long) if long.starts_with("--output-directory=") => {
                Some(long.strip_prefix("--output-directory="))
            }
            Some(other) if other.starts_with('-') => {
                return Err(Failure::usage(format!(
                    "recover: unrecognized arguments: {other}"
                )));
            }
            _ => {
                given.directories.push(PathBuf::from(word));
                continue;
            }
        };
        let directory = value.flatten().filter(|directory| !directory.is_empty());
        given.output = Some(directory.map(str::to_owned).ok_or_else(|| {
            Failure::usage(
                "recover: --output-directory: expected the name of a directory, in UTF-8",
            )
        })?);
    }
    if given.directories.is_empty() {
        return Err(Failure::usage(
            "recover: expected at least one argument: the output directory of the run",
        ));
    }
    Ok(Some(given))
}

/// Runs `rpd recover`; returns the exit status.
pub(crate) fn run(arguments: &[OsString]) -> Result<u8> {
    let Some(given) = parse(arguments)? else {
        return crate::print(USAGE);
    };
    let mut status = SUCCESS;
    let mut found = Vec::new();
    for directory in &given.directories {
        // A directory may be a capture, which is recovered in its own way.
        match crate::commands::capture::recover(directory)? {
            Some(true) => continue,
            Some(false) => {
                status = FAILED;
                continue;
            }
            None => {}
        }
        let FoundRuns { runs, cleaned } = find_runs(directory);
        // Temporary files of killed commands lie beside their outputs.
        remove_abandoned(directory);
        if runs.is_empty() && cleaned {
            eprintln!(
                "rpd: {}: nothing is left to write; what finished runs had left is removed",
                directory.display()
            );
        } else if runs.is_empty() && directory.is_dir() {
            eprintln!(
                "rpd: {}: nothing to recover: it holds no unfinished run",
                directory.display()
            );
        } else if runs.is_empty() {
            let problem = format!("{}: No such directory", directory.display());
            return Err(Failure::failed(problem).into());
        }
        found.extend(runs.into_iter().map(|run| (directory, run)));
    }
    // All directories are looked through before anything is written: one run may be named twice.
    for (directory, run) in found {
        let finished = run.and_then(|mut run| {
            if given.force {
                run.take_for_ended();
            // Two processes that write the same outputs would overwrite each other.
            } else if let Some(who) = run.front_end() {
                eprintln!(
                    "rpd: {}: {who} still runs and will finish it",
                    run.path().display()
                );
                return Ok(true);
            }
            finish(&run, directory, given.output.as_deref())
        });
        match finished {
            Ok(true) => {}
            Ok(false) => status = FAILED,
            Err(error) => {
                // A run that cannot be finished does not keep the others from being written.
                eprintln!("rpd: {}", line(&error));
                status = FAILED;
            }
        }
    }
    Ok(status)
}

fn finish(run: &RunDirectory, given: &Path, output: Option<&str>) -> Result<bool> {
    let mut options = run.options()?;
    // A library named in a file is not loaded: it would run with the user's rights.
    options.otf2_library = None;
    options.thread_trace_library = None;
    remove_abandoned(&run.output()?);
    let confined = match output {
        Some(directory) => elsewhere(&mut options, directory)?,
        None => {
            let own = run.output()?;
            // The directory of all passes, if that was given.
            let given = std::fs::canonicalize(given).unwrap_or_else(|_| own.clone());
            ConfinedDirectory::to(if own.starts_with(&given) {
                &given
            } else {
                &own
            })?
        }
    };
    eprintln!(
        "rpd: {}: files are written to {}",
        run.path().display(),
        confined.root().display()
    );
    report::finish(
        run,
        &options,
        None,
        None,
        &mut Namer::default(),
        Some(&confined),
    )
}

/// Redirects the outputs to another directory, whose name may have placeholders.
fn elsewhere(options: &mut Options, directory: &str) -> Result<ConfinedDirectory> {
    naming::check(directory)
        .map_err(|error| Failure::usage(format!("recover: --output-directory: {error}")))?;
    let cwd = crate::options::resolve::current_directory()?;
    let directory = cwd.join(directory);
    let text = directory.to_str().ok_or_else(|| {
        Failure::failed("the name of the current directory is not UTF-8; change to another")
    })?;
    let root = naming::literal_parent(text);
    std::fs::create_dir_all(&root)
        .with_context(|| format!("the output directory {} cannot be made", root.display()))?;
    let confined = ConfinedDirectory::to(&root)?;
    options.output_directory = text.to_owned();
    // Of a prefix that leads out of a directory, only the last component is used.
    let leads_out = |prefix: &str| prefix.split('/').any(|part| part == "..");
    let prefix = &options.output_file;
    if prefix.starts_with('/') || leads_out(prefix) {
        let last = prefix.rsplit('/').next().unwrap_or_default();
        options.output_file = last.to_owned();
    }
    Ok(confined)
}
