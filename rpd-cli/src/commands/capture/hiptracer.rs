//! HIPTracer's variables, and its switches when rpd is called by its name.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use clap::Parser as _;

use super::choices::DataChoice;
use super::run::{self, Arguments};
use crate::failure::Failure;

const NAME: &str = "hiptracer";

/// Options of `rpd capture` for the switches of hiptracer.
const OPTIONS: [&str; 3] = ["--data=none", "--quiet", "--trace=mem"];

/// Name of HIPTracer's database when nothing names it.
const DATABASE: &str = "tracer-default.db";

/// Output of `hiptracer --help`.
const USAGE: &str = "Records a program's GPU calls with their data, as HIPTracer does\n\n\
    Usage: hiptracer [-t capture|memtrace] [-o DATABASE] [-l LIBRARY] [-s] [-d] [-p] -- PROGRAM [ARGUMENT...]\n\n\
    Options:\n  \
    -o DATABASE  Database to write [default: tracer-default.db]; the capture is DATABASE.capture beside it\n  \
    -t TOOL      capture, or memtrace, which records what kernels access as well (simulated GPU)\n  \
    -m MODE      capture, or binint, which is -t memtrace\n  \
    -l LIBRARY   Accepted; rpd brings its own library\n  \
    -s           Take no host data\n  \
    -d           Accepted; without effect, as in HIPTracer\n  \
    -p           Print no progress\n  \
    -h           Print help\n";

/// Applies `HIPTRACER_EVENTDB` and `HIPTRACER_SKIPHOSTDATA` where no option decides; the name of the database, if the
/// variable gave it.
pub(super) fn apply_variables(given: &mut Arguments) -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let is_on = |name: &str| {
        variable(name).is_some_and(|value| !matches!(value.to_str(), Some("0" | "false" | "off")))
    };
    if is_on("HIPTRACER_SKIPHOSTDATA") && given.data == DataChoice::Full {
        given.data = DataChoice::None;
    }
    if given.output.is_some() {
        return None;
    }
    let database = PathBuf::from(variable("HIPTRACER_EVENTDB")?);
    given.output = Some(directory(&database));
    Some(database)
}

/// The tool that a word names: HIPTracer takes the file of its library as well.
fn tool(word: &str) -> &str {
    let file = word.rsplit('/').next().unwrap_or(word);
    let library = file
        .strip_prefix("lib")
        .and_then(|name| name.strip_suffix(".so"));
    match library {
        Some("hipcapture" | "hiptracer") => "capture",
        Some(name) => name,
        None => word,
    }
}

/// The directory of the capture whose database has this name.
fn directory(database: &std::path::Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".capture");
    PathBuf::from(name)
}

/// Runs rpd under the name `hiptracer`; returns the exit status.
pub(crate) fn run(arguments: &[OsString]) -> Result<u8> {
    let mut database = None;
    let mut words = Vec::new();
    let mut given = arguments.iter();
    while let Some(word) = given.next() {
        let text = word.to_str().unwrap_or_default();
        // Options with a value may have it in the same word.
        let (option, attached) = match text.get(..2) {
            Some(option @ ("-o" | "-t" | "-m" | "-l")) => (option, &text[2..]),
            _ => (text, ""),
        };
        let mut value = || match attached {
            "" => given.next().cloned().ok_or_else(|| {
                Failure::usage(format!("{NAME}: {option} needs a value (see {NAME} -h)"))
            }),
            attached => Ok(OsString::from(attached)),
        };
        match option {
            "--" => {
                words.extend(given.by_ref().cloned());
                break;
            }
            "-h" | "--help" => return crate::print(USAGE),
            "-o" => database = Some(PathBuf::from(value()?)),
            "-l" => drop(value()?),
            "-t" | "-m" => {
                let given = value()?;
                match given.to_str().map(tool) {
                    Some("capture") => {}
                    Some("memtrace" | "binint") => {
                        // Both options may say so.
                        words.retain(|word| word != "--trace=mem");
                        words.push("--trace=mem".into());
                    }
                    _ => {
                        return Err(Failure::usage(format!(
                            "{NAME}: {option} {}: expected capture or memtrace",
                            given.display()
                        ))
                        .into());
                    }
                }
            }
            "-s" => words.push("--data=none".into()),
            "-p" => words.push("--quiet".into()),
            "-d" => {}
            _ if text.starts_with('-') => {
                return Err(Failure::usage(format!(
                    "{NAME}: unrecognized arguments: {text} (see {NAME} -h)"
                ))
                .into());
            }
            // The program may stand without `--`.
            _ => {
                words.push("--".into());
                words.push(word.clone());
                words.extend(given.by_ref().cloned());
                break;
            }
        }
        if text == "--" {
            break;
        }
    }
    let separator = words.iter().position(|word| word == "--");
    let at = separator.unwrap_or_else(|| {
        let first = words
            .iter()
            .position(|word| !OPTIONS.iter().any(|option| word == option));
        first.unwrap_or(words.len())
    });
    if separator.is_none() {
        words.insert(at, "--".into());
    }
    let program = OsString::from(NAME);
    let mut given = Arguments::try_parse_from(std::iter::once(program).chain(words))
        .map_err(|error| Failure::usage(format!("{NAME}: {}", error.kind())))?;
    let from_variables = apply_variables(&mut given);
    let database = database
        .or(from_variables)
        .unwrap_or_else(|| PathBuf::from(DATABASE));
    given.output = Some(directory(&database));
    // HIPTracer replaces what is there.
    given.overwrite = true;
    run::capture(&given, Some(&database))
}
