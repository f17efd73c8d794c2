//! Input files: one job per run of the program, each a set of options by their long names.

mod json;
mod text;
mod typed;
mod yaml;

use std::path::Path;
use std::sync::Arc;

use rpd_spool::regular_file;

use super::given::Place;
use super::node::{Content, Node};
use super::plan::DirectoryStem;
use super::table::Given;
use crate::failure::Failure;

/// Largest size of an input file, in bytes: some ten thousand jobs with several counters each.
const LARGEST: u64 = 4 << 20;

/// Jobs of an input file. Each is a run of the program.
const MOST_JOBS: usize = 1 << 14;

/// The content of an input file.
#[derive(Debug)]
pub(crate) struct Input {
    /// In the order of the file; at least one. `pmc` has one group, the counters of the job.
    pub(crate) jobs: Vec<Given>,
    /// Stem of the names of pass directories.
    pub(crate) stem: DirectoryStem,
    /// Warnings to print.
    pub(crate) warnings: Vec<String>,
}

/// Reads the file that `--input` names.
///
/// # Errors
/// One line: the file has an unknown suffix, cannot be read, has a syntax error or no job, or a value has
/// the wrong type for its key.
pub(crate) fn read(name: &str, cwd: &Path) -> Result<Input, Failure> {
    let kind = Kind::named(name)?;
    let source = regular_file::read_text(&cwd.join(name), LARGEST)
        .map_err(|error| Failure::failed(format!("--input {name}: {error}")))?;
    parse(kind, name, &source)
}

/// Reads the jobs of a file with this name and text.
///
/// # Errors
/// One line: the name has an unknown suffix, the text has a syntax error or no job, or a value has the wrong type for
/// its key.
pub(crate) fn parse_named(name: &str, source: &str) -> Result<Input, Failure> {
    parse(Kind::named(name)?, name, source)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Yaml,
    Json,
}

impl Kind {
    /// The kind of the file that `--input` names.
    fn named(name: &str) -> Result<Kind, Failure> {
        Kind::from_name(name).ok_or_else(|| {
            Failure::failed(format!(
                "--input {name}: no recognized extension (known are .txt, .text, .yaml, .yml, .json)"
            ))
        })
    }

    fn from_name(name: &str) -> Option<Kind> {
        let file = name.rsplit('/').next()?;
        Some(match file.rsplit_once('.')?.1 {
            "txt" | "text" => Kind::Text,
            "yaml" | "yml" => Kind::Yaml,
            "json" => Kind::Json,
            _ => return None,
        })
    }
}

fn parse(kind: Kind, name: &str, source: &str) -> Result<Input, Failure> {
    let source = source.strip_prefix('\u{feff}').unwrap_or(source);
    let file: Arc<str> = Arc::from(name);
    let input = match kind {
        Kind::Text => text::jobs(source, &file),
        Kind::Yaml => documented(&yaml::parse(source, &file)?, &file)?,
        Kind::Json => documented(&json::parse(source, &file)?, &file)?,
    };
    if input.jobs.is_empty() {
        let missing = match kind {
            Kind::Text => "no line has counters after `pmc:`",
            _ => "the list 'jobs' is empty",
        };
        return Err(Failure::failed(format!("{name}: no job: {missing}")));
    }
    if input.jobs.len() > MOST_JOBS {
        return Err(Failure::failed(format!(
            "{name}: too many jobs: a file may have {MOST_JOBS}; use several files"
        )));
    }
    Ok(input)
}

/// An error at a line and column.
fn wrong(file: &Arc<str>, line: usize, column: usize, message: impl std::fmt::Display) -> Failure {
    let place = Place {
        file: file.clone(),
        line,
        column,
    };
    Failure::failed(format!("{place}: {message}"))
}

/// The jobs of a YAML or JSON document.
fn documented(root: &Node, file: &Arc<str>) -> Result<Input, Failure> {
    let at = |node: &Node, message: &str| wrong(file, node.line, node.column, message);
    const SHAPE: &str = "a mapping with the key 'jobs', a list of jobs, is needed";
    let Content::Map(entries) = &root.content else {
        return Err(at(root, SHAPE));
    };
    let mut jobs = None;
    let mut remarks = typed::Remarks::default();
    for (key, value) in entries {
        match key.text.as_str() {
            "jobs" => {
                if jobs.replace(value).is_some() {
                    remarks.again(key);
                }
            }
            "job_replay_mode" | "job-replay-mode" => match value.scalar() {
                Some("application") => {}
                Some("kernel") => {
                    return Err(at(
                        value,
                        "job_replay_mode: this build of rpd lacks kernel replay",
                    ));
                }
                _ => {
                    let message =
                        "job_replay_mode: invalid choice (choose from application, kernel)";
                    return Err(at(value, message));
                }
            },
            _ => remarks.unknown(key, ["jobs"].into_iter()),
        }
    }
    let jobs = jobs.ok_or_else(|| at(root, SHAPE))?;
    let Content::List(items) = &jobs.content else {
        return Err(at(jobs, "'jobs' must be a list of jobs"));
    };
    let jobs = items
        .iter()
        // One job more than allowed is enough for the error.
        .take(MOST_JOBS + 1)
        .map(|item| typed::job(item, file, &mut remarks))
        .collect::<Result<_, _>>()?;
    Ok(Input {
        jobs,
        stem: DirectoryStem::Pass,
        warnings: remarks.warnings(file),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A document that is truncated or has a wrong letter is a job file or an error; parsing ends in both cases.
    #[test]
    fn damaged_job_files_are_jobs_or_errors() {
        let yaml = "base: &b {output_format: [csv]}\njobs:\n  - <<: *b\n    pmc: [\"A\", 'B'] # c\n    \
                    kernel_iteration_range: \"[1-2]\"\n  - pmc_groups: [[A], [B]]\n    output_file: >\n      x\n";
        let json = r#"{"jobs": [{"pmc": ["A\u0041"], "hip_trace": true}, {"pmc_groups": [["ä"], ["B"]], "x": -1.5e3}]}"#;
        let text = "# c\npmc: A B\n pmc:C,D\n";
        for (kind, sample) in [(Kind::Yaml, yaml), (Kind::Json, json), (Kind::Text, text)] {
            assert!(parse(kind, "f", sample).is_ok(), "{sample}");
            for (at, letter) in sample.char_indices() {
                let _ = parse(kind, "f", &sample[..at]);
                let rest = &sample[at + letter.len_utf8()..];
                for wrong in [
                    "", "{", "}", "[", "]", "\"", "\\", ":", "\n", "\t", "&", "*", "ö",
                ] {
                    let _ = parse(kind, "f", &format!("{}{wrong}{rest}", &sample[..at]));
                }
            }
        }
    }
}
