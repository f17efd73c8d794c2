//! Sub-commands that work on results or on the provider, and their common parts.

pub(crate) mod att;
pub(crate) mod attach;
pub(crate) mod avail;
pub(crate) mod capture;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod control;
pub(crate) mod convert;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod estimate;
mod flame_format;
pub(crate) mod hot;
pub(crate) mod idle;
pub(crate) mod live;
pub(crate) mod merge;
pub(crate) mod query;
pub(crate) mod record_rpd_file;
pub(crate) mod rocpd;
pub(crate) mod stacks;
pub(crate) mod summary;
pub(crate) mod tables;
pub(crate) mod top;
pub(crate) mod window;

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::error::ErrorKind;
use clap::{Args, Command, Parser, ValueEnum};
use rpd_core::compat::{Compat, Difference};
use rpd_core::options::KernelNames;
use rpd_core::session::{LoadOptions, Session, Window};
use rpd_formats::destination::{Destination, Refusal, is_stream_path};
use rpd_formats::rocpd::read::{Database, Settings};
use rpd_formats::table::TableFormat;

use crate::failure::Failure;
use crate::notices;

/// Parses the arguments of a sub-command; `None` after `--help`, whose text is printed.
pub(crate) fn parse<T: Parser>(name: &str, arguments: &[OsString]) -> Result<Option<T>> {
    let program = OsString::from(format!("rpd {name}"));
    let words = std::iter::once(program).chain(arguments.iter().cloned());
    let mut command = with_quiet(T::command());
    if completions::take_definition(&command) {
        return Ok(None);
    }
    let matches = command.try_get_matches_from_mut(words);
    let parsed = matches.and_then(|mut matches| {
        if matches
            .try_get_one(notices::OPTION)
            .is_ok_and(|is_quiet| is_quiet == Some(&true))
        {
            notices::silence();
        }
        T::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
    });
    match parsed {
        Ok(parsed) => Ok(Some(parsed)),
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {
            crate::print(&error.render().to_string())?;
            Ok(None)
        }
        Err(error) => {
            let text = error.render().to_string();
            // The first paragraph is the error; usage and tips take further ones.
            let lines: Vec<&str> = text
                .lines()
                .map(str::trim)
                .take_while(|line| !line.is_empty())
                .collect();
            let message = lines.join(" ");
            let message = message.strip_prefix("error: ").unwrap_or(&message);
            Err(Failure::usage(format!("{name}: {message} (see rpd {name} --help)")).into())
        }
    }
}

/// The command with `--quiet`, unless it has an option of this name itself.
fn with_quiet(command: Command) -> Command {
    let has_quiet = |command: &Command| {
        let mut arguments = command.get_arguments();
        arguments.any(|argument| argument.get_long() == Some(notices::OPTION))
    };
    if has_quiet(&command) || command.get_subcommands().any(has_quiet) {
        return command;
    }
    let option = notices::option();
    // The original's `query -q` gives a query.
    let is_taken = command
        .get_arguments()
        .any(|argument| argument.get_short() == Some(notices::SHORT));
    let option = if is_taken {
        option
    } else {
        option.short(notices::SHORT)
    };
    command.arg(option)
}

/// Says how many records of a file are in no statistics.
fn note_left_out(path: &Path, count: u64) {
    if let Some(words) = crate::report::times_left_out(count) {
        eprintln!("rpd: {}: {words}", path.display());
    }
}

/// Options that take several words would take inputs that follow too. Each word after one of `flags` that `is_value`
/// knows gets the flag of its own.
fn spread(
    arguments: &[OsString],
    flags: &[&str],
    is_value: impl Fn(&str) -> bool,
) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    let mut flag: Option<&OsString> = None;
    let mut values = 0;
    for word in arguments {
        let text = word.to_str();
        if text.is_some_and(|text| flags.contains(&text)) {
            flag = Some(word);
            values = 0;
            words.push(word.clone());
            continue;
        }
        match (flag, text) {
            (Some(_), _) if values == 0 => values = 1,
            (Some(given), Some(text)) if is_value(text) => words.push(given.clone()),
            _ => flag = None,
        }
        words.push(word.clone());
    }
    words
}

/// Databases to read.
#[derive(Debug, Args)]
pub(crate) struct Inputs {
    /// Databases (files ending in _results.db), or directories that hold some
    #[arg(value_name = "DB")]
    databases: Vec<PathBuf>,
    /// Database or directory to read, given as an option
    #[arg(short, long = "input", value_name = "DB", num_args = 1..)]
    input: Vec<PathBuf>,
}

impl Inputs {
    /// A database or directory alone.
    pub(crate) fn from_path(path: PathBuf) -> Inputs {
        Inputs {
            databases: vec![path],
            input: Vec::new(),
        }
    }

    /// The paths as they were given: directories do not stand for what is in them yet.
    pub(crate) fn given(&self) -> Vec<PathBuf> {
        self.databases.iter().chain(&self.input).cloned().collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.databases.is_empty() && self.input.is_empty()
    }

    /// The path that was given, where it is one.
    pub(crate) fn single(&self) -> Option<&Path> {
        let mut given = self.databases.iter().chain(&self.input);
        let first = given.next()?;
        given.next().is_none().then_some(first)
    }

    pub(crate) fn paths(&self, name: &str) -> Result<Vec<PathBuf>> {
        let given: Vec<&PathBuf> = self.databases.iter().chain(&self.input).collect();
        if given.is_empty() {
            return Err(Failure::usage(format!(
                "{name}: expected at least one database (a file ending in _results.db)"
            ))
            .into());
        }
        expand(&given)
    }
}

/// Levels below a given directory that are searched for databases: an output directory has those of passes in it, and in them
/// the directory of the machine.
const DEEPEST: usize = 3;

/// Directories stand for the databases in them.
fn expand(given: &[&PathBuf]) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for path in given {
        if !path.is_dir() {
            paths.push((*path).clone());
            continue;
        }
        let found = databases(path, ".db", DEEPEST)
            .with_context(|| format!("{} cannot be read", path.display()))?;
        if found.is_empty() {
            return Err(Failure::failed(format!("{} holds no .db file", path.display())).into());
        }
        paths.extend(found);
    }
    Ok(paths)
}

/// The files in a directory that end so; where it has none, the databases of runs in its directories, pass by pass.
fn databases(directory: &Path, ending: &str, depth: usize) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut directories = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path();
        if name.starts_with('.') {
            continue;
        }
        if entry.file_type()?.is_dir() {
            // `pass_2` comes before `pass_10`.
            let number = name.rsplit_once('_').and_then(|(_, end)| end.parse().ok());
            directories.push((number.unwrap_or(u64::MAX), path));
        } else if name.ends_with(ending) {
            found.push(path);
        }
    }
    found.sort();
    if found.is_empty() && depth > 0 {
        directories.sort();
        for (_, directory) in directories {
            found.extend(databases(&directory, "_results.db", depth - 1)?);
        }
    }
    Ok(found)
}

/// Messages of ROCTx ranges in which all ranks wait for one another: those given, or that of MPI's barrier.
fn barriers(given: &[String]) -> Vec<String> {
    if given.is_empty() {
        vec!["MPI_Barrier".to_owned()]
    } else {
        given.to_vec()
    }
}

/// Options for names of kernels.
#[derive(Debug, Default, Clone, Args)]
pub(crate) struct Naming {
    /// Name kernels after the innermost ROCTx range they were launched in
    #[arg(long)]
    kernel_rename: bool,
    /// Show the bare function name of kernels
    #[arg(short = 'T', long)]
    truncate_kernels: bool,
    /// Show kernel names as registered
    #[arg(short = 'M', long)]
    mangled_kernels: bool,
}

impl Naming {
    /// The setting of the command line, or else that of the database.
    pub(crate) fn over(&self, settings: &Settings) -> KernelNames {
        let stored = settings.kernel_names;
        let is_given = self.truncate_kernels || self.mangled_kernels;
        KernelNames {
            rename: self.kernel_rename || stored.rename,
            truncate: if is_given {
                self.truncate_kernels
            } else {
                stored.truncate
            },
            mangled: if is_given {
                self.mangled_kernels
            } else {
                stored.mangled
            },
            original: stored.original,
        }
    }
}

/// Format of tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Aligned columns
    #[value(alias = "console")]
    Table,
    /// Comma-separated values
    Csv,
    /// An array of objects
    Json,
    /// A markdown table
    #[value(alias = "md")]
    Markdown,
    /// A page with one table
    Html,
}

impl Form {
    const fn table_format(self) -> TableFormat {
        match self {
            Form::Table => TableFormat::Console,
            Form::Csv => TableFormat::Csv,
            Form::Json => TableFormat::Json,
            Form::Markdown => TableFormat::Markdown,
            Form::Html => TableFormat::Html,
        }
    }
}

/// The error of options that cut a window out of a file of RPD.
fn file_of_rpd_is_whole(name: &str, path: &Path) -> anyhow::Error {
    Failure::usage(format!(
        "{name}: --start, --end and markers cut databases of rpd, and {} is a file of RPD; leave them out",
        path.display()
    ))
    .into()
}

/// Calls `take` with each recording of the databases, one at a time.
fn each_recording(
    paths: &[PathBuf],
    load: LoadOptions,
    window: Option<&Window>,
    mut take: impl FnMut(&Path, usize, Session, Settings) -> Result<()>,
) -> Result<()> {
    for path in paths {
        let database = Database::open(path)?;
        each_recording_of(&database, load, window, |index, session, settings| {
            take(path, index, session, settings)
        })?;
    }
    Ok(())
}

/// Calls `take` with each recording of a database, one at a time.
fn each_recording_of(
    database: &Database,
    load: LoadOptions,
    window: Option<&Window>,
    mut take: impl FnMut(usize, Session, Settings) -> Result<()>,
) -> Result<()> {
    let path = database.path().display();
    for (index, recording) in database.recordings().iter().enumerate() {
        let (mut session, settings) = database.session(recording, load)?;
        if let Some(window) = window {
            session
                .retain(window)
                .with_context(|| format!("{path}: cannot store records"))?;
        }
        for note in &session.ledger.notes {
            eprintln!("rpd: {path}: {note}");
        }
        take(index, session, settings)?;
    }
    Ok(())
}

/// The destination that an option of the sub-command `name` gives; standard output without one. `inputs`: as of
/// [`Destination::named`].
pub(crate) fn destination<P: AsRef<Path>>(
    name: &str,
    given: Option<&Path>,
    inputs: impl IntoIterator<Item = P>,
) -> Result<Destination, Failure> {
    let Some(path) = given else {
        return Ok(Destination::standard_output());
    };
    Destination::named(path, inputs).map_err(|refusal| {
        let text = format!("{name}: {refusal}");
        match refusal {
            Refusal::IsInput(_) | Refusal::IsInInput { .. } => Failure::usage(text),
            _ => Failure::failed(text),
        }
    })
}

/// Writes a result to its destination, which is then named on standard error unless it is standard output.
pub(crate) fn write_output(
    destination: Destination,
    compat: Compat,
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    let is_standard_output = destination.is_standard_output();
    let path = destination.path().to_owned();
    destination.write(write)?;
    if is_standard_output {
        return Ok(());
    }
    print_written(&path, compat)
}

/// Reports that a file was written, in the form of the tool whose behaviour is selected.
fn print_written(path: &Path, compat: Compat) -> Result<()> {
    if compat.has(Difference::RocpdWords) {
        let path = std::path::absolute(path)?;
        crate::print(&format!("Exported to: {}\n\n", path.display()))?;
    } else {
        notice!("rpd: wrote {}", crate::report::shown(path));
    }
    Ok(())
}

/// Name of the files of the original's database commands when no option gives one.
const ROCPD_FILE: &str = "out";
/// The original's default for the directory of files that its database commands write.
const ROCPD_DIRECTORY: &str = "rocpd-output-data";

/// Default directory for files of `query` and `summary`.
fn output_directory(given: Option<&Path>, compat: Compat) -> PathBuf {
    match given {
        Some(given) => given.to_owned(),
        None if compat.has(Difference::RocpdTables) => inherited("ROCPD_OUTPUT_PATH")
            .map_or_else(|| PathBuf::from(ROCPD_DIRECTORY), PathBuf::from),
        None => PathBuf::new(),
    }
}

/// A variable that is set to something.
fn inherited(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// A file of a directory: `name` with `ending` after it. What is written as a stream has the name that was given.
fn with_ending(directory: &Path, name: &OsStr, ending: &str) -> PathBuf {
    if name == "-" {
        return PathBuf::from(name);
    }
    let plain = directory.join(name);
    if is_stream_path(&plain) {
        return plain;
    }
    let mut file = name.to_owned();
    file.push(ending);
    directory.join(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_repeats_the_flag_before_each_of_its_values() {
        let words: Vec<OsString> = ["a.db", "-f", "csv", "json", "b.db", "rocpd"]
            .map(OsString::from)
            .to_vec();
        let spread = spread(&words, &["-f"], |word| !word.ends_with(".db"));
        assert_eq!(spread, ["a.db", "-f", "csv", "-f", "json", "b.db", "rocpd"]);
    }

    #[test]
    fn expand_replaces_directories_by_their_databases() {
        let directory = tempfile::tempdir().expect("a directory");
        let make = |path: &str| {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            std::fs::write(path, "").expect("written");
        };
        let found = || {
            let found = expand(&[&directory.path().to_owned()])?;
            let name = |path: PathBuf| {
                let path = path.strip_prefix(directory.path()).expect("below");
                path.display().to_string()
            };
            Ok::<_, anyhow::Error>(found.into_iter().map(name).collect::<Vec<_>>())
        };
        make("pass_1/other.db");
        make(".rpd/run-1/x_results.db");
        assert!(found().is_err());
        for path in [
            "pass_10/n/7_results.db",
            "pass_2/n/6_results.db",
            "a/b/c/d/x_results.db",
        ] {
            make(path);
        }
        assert_eq!(
            found().expect("some"),
            ["pass_2/n/6_results.db", "pass_10/n/7_results.db"]
        );
        make("mine.db");
        assert_eq!(found().expect("some"), ["mine.db"]);
    }
}
