//! Text files: a line `pmc: NAME NAME` is a job.

use std::sync::Arc;

use super::super::counters;
use super::super::given::{Place, Source};
use super::super::plan::DirectoryStem;
use super::super::table::Given;
use super::{Input, MOST_JOBS};

const MARK: &str = "pmc:";

/// Reads the jobs. Other lines, and text after `#`, are ignored.
pub(super) fn jobs(source: &str, file: &Arc<str>) -> Input {
    let mut input = Input {
        jobs: Vec::new(),
        stem: DirectoryStem::Pmc,
        warnings: vec![format!(
            "{file}: text files are a deprecated kind of input; in YAML this is `jobs:` with a list of `- pmc: [NAME, NAME]`"
        )],
    };
    for (line, number) in source.lines().zip(1..) {
        let line = line.split('#').next().unwrap_or_default();
        if !line.contains(MARK) {
            continue;
        }
        if input.jobs.len() > MOST_JOBS {
            break;
        }
        let words: Vec<String> = line
            .replace(MARK, " ")
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        let place = Place {
            file: file.clone(),
            line: number,
            column: 0,
        };
        if counters::group(&words).is_ok_and(|group| group.counters.is_empty()) {
            input.warnings.push(format!(
                "{place}: no counter is named after `{MARK}` (no line continues another)"
            ));
        }
        let mut job = Given::default();
        job.pmc.set(vec![words], Source::Job(place));
        input.jobs.push(job);
    }
    input
}
