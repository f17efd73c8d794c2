//! Handling of untrusted texts and files, callable without a process. Fuzz targets and their tests call
//! these; a panic in them is a mistake in rpd.

use std::path::Path;

use rpd_core::naming::Target;
use rpd_core::options::{Format, Options};
use rpd_core::session::LoadOptions;
use rpd_formats::Output;
use rpd_formats::rocpd::read::Database;
use rpd_summary::Statistics;

use crate::counters::extra;
use crate::options::jobs;
use crate::options::resolve::{Environment, resolve_with};
use crate::options::table::Given;

/// Number of output formats that [`database`] can write.
pub const OUTPUT_FORMATS: usize = Format::ALL.len();

/// Reads a job file of this name and text, and resolves the options of its jobs as for a run; the number of passes.
///
/// # Errors
/// The message, one line.
pub fn job_file(name: &str, text: &str) -> Result<usize, String> {
    let line = |failure: crate::failure::Failure| failure.message;
    let input = jobs::parse_named(name, text).map_err(line)?;
    let environment = Environment {
        cwd: "/".into(),
        ..Environment::default()
    };
    let command = vec!["program".to_owned()];
    let plan = resolve_with(Given::default(), Some(input), command, &environment).map_err(line)?;
    Ok(plan.passes.len())
}

/// Checks the text of a file with counter definitions, as for `--extra-counters`; the text that the provider is given.
///
/// # Errors
/// The message, one line.
pub fn counter_definitions(text: &str) -> Result<String, String> {
    match extra::check(text.to_owned()) {
        Ok(checked) => Ok(checked.text),
        Err(failure) => Err(failure.message),
    }
}

/// Reads every recording of a rocpd database, computes its statistics and writes it to `directory` in one output format
/// (a number below [`OUTPUT_FORMATS`]); the number of recordings. A database that was written must be readable.
///
/// # Errors
/// Why the database could not be read, or the output not be written.
pub fn database(path: &Path, format: usize, directory: &Path) -> Result<usize, String> {
    let format = Format::ALL[format % OUTPUT_FORMATS];
    let database = Database::open(path).map_err(|error| error.to_string())?;
    for (index, recording) in database.recordings().iter().enumerate() {
        let load = LoadOptions {
            args: true,
            ..LoadOptions::default()
        };
        let (session, settings) = database
            .session(recording, load)
            .map_err(|error| error.to_string())?;
        let stats = Statistics::new(&session, settings.kernel_names)
            .and_then(|statistics| statistics.session_stats())
            .map_err(|error| error.to_string())?;
        let options = Options {
            formats: vec![format],
            stats: true,
            kernel_names: settings.kernel_names,
            group_by_queue: settings.group_by_queue,
            ..Options::default()
        };
        let target = Target {
            directory: directory.to_owned(),
            prefix: format!("recording{index}"),
        };
        let output = Output {
            session: &session,
            stats: Some(&stats),
            options: &options,
            target: &target,
        };
        let written = rpd_formats::write(format, &output).map_err(|error| error.to_string())?;
        if format == Format::Rocpd {
            for file in written {
                let again = Database::open(&file).expect("what was written can be opened");
                for recording in again.recordings() {
                    let read = again.session(recording, load);
                    read.expect("what was written can be read");
                }
            }
        }
    }
    Ok(database.recordings().len())
}
