//! Which passes there are, and what was given for each: command line and jobs together.

use super::counters::{self, CounterGroup};
use super::given::{Conflict, Named};
use super::jobs::Input;
use super::plan::DirectoryStem;
use super::replay;
use super::table::Given;
use crate::failure::Failure;

/// A pass before it is resolved.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    /// All but the counters of `pmc`.
    pub(super) given: Given,
    /// Counters that `pmc` requests.
    pub(super) counters: CounterGroup,
    /// Number of what requests it: 0 for the command line, then the jobs.
    pub(super) origin: usize,
}

/// All passes before they are resolved.
#[derive(Debug)]
pub(super) struct Drafts {
    pub(super) list: Vec<Draft>,
    /// As in [`super::plan::Plan`].
    pub(super) stem: Option<DirectoryStem>,
    cause: Option<&'static str>,
}

/// Makes the passes: one for each group of the command line, with the settings of the first job, and one for each job. A
/// single job without counters is settings alone where the command line has groups.
///
/// # Errors
/// Command line and job give one option different values, or a group is empty or holds an element that is no counter.
pub(super) fn drafts(mut given: Given, input: Option<Input>) -> Result<Drafts, Failure> {
    let groups = flags(&mut given)?;
    let (jobs, stem) = match input {
        // Directories of a run that is more than its text file are called as those of all others.
        Some(input) if !groups.is_empty() => (input.jobs, Some(DirectoryStem::Pass)),
        Some(input) => (input.jobs, Some(input.stem)),
        None => (vec![Given::default()], None),
    };
    let jobs = jobs
        .into_iter()
        .zip(1..)
        .map(|(job, origin)| merge(&given, job, origin))
        .collect::<Result<Vec<Draft>, _>>()?;
    let combined = jobs
        .first()
        .is_some_and(|job| !groups.is_empty() && !job.counters.counters.is_empty());
    let cause = cause(groups.len(), jobs.len(), combined);
    let settings_alone = jobs.len() == 1 && !groups.is_empty() && !combined;
    let mut list = Vec::with_capacity(groups.len() + jobs.len());
    if let Some(first) = jobs.first() {
        list.extend(groups.into_iter().map(|counters| Draft {
            given: first.given.clone(),
            counters,
            origin: 0,
        }));
    }
    if !settings_alone {
        list.extend(jobs);
    }
    Ok(Drafts { list, stem, cause })
}

/// Reason for several passes: counter groups on the command line, jobs, or one of each.
fn cause(groups: usize, jobs: usize, combined: bool) -> Option<&'static str> {
    if groups > 1 {
        Some("multiple --pmc flags")
    } else if jobs > 1 {
        Some("multiple input-file jobs")
    } else if combined {
        Some("--pmc combined with input-file pmc")
    } else {
        None
    }
}

impl Drafts {
    /// Refuses what cannot be repeated pass for pass.
    pub(super) fn check_passes(&self) -> Result<(), Failure> {
        let counts = |draft: &Draft| {
            !draft.counters.counters.is_empty() || draft.given.pmc_groups.is_given()
        };
        let auto = self.list.iter().any(|draft| draft.counters.auto);
        let cause = match self.cause {
            Some(cause) if self.list.iter().any(counts) => cause,
            _ if auto => "--pmc auto: may make several",
            _ => return Ok(()),
        };
        // The groups of one origin are one run.
        let first = self.list.first();
        let is_one_run = first.is_some_and(|first| {
            let mut all = self.list.iter();
            all.all(|draft| replay::is_required(&draft.given) && draft.origin == first.origin)
        });
        if is_one_run {
            return Ok(());
        }
        let refuse = |option: &Named, what: &str| {
            Err(Failure::failed(format!(
                "{}: collecting counters in several passes ({cause}) is not compatible with {what}",
                option.name()
            )))
        };
        let mut all = self.list.iter().map(|draft| &draft.given);
        if let Some(given) = all.clone().find(|given| given.pid.is_given()) {
            return refuse(&given.pid, "attach mode");
        }
        if let Some(given) = all.find(|given| given.collection_period.is_given()) {
            return refuse(&given.collection_period, "--collection-period");
        }
        Ok(())
    }
}

/// Takes the groups of `--pmc`.
fn flags(given: &mut Given) -> Result<Vec<CounterGroup>, Failure> {
    let Some(flags) = given.pmc.take() else {
        return Ok(Vec::new());
    };
    let several = flags.len() > 1;
    let mut groups = Vec::new();
    for (words, number) in flags.iter().zip(1..) {
        let group = counters::group(words)
            .map_err(|message| Failure::failed(format!("argument --pmc: {message}")))?;
        if !group.counters.is_empty() {
            groups.push(group);
        } else if several {
            return Err(Failure::failed(format!(
                "Empty counter group in --pmc flag {number}"
            )));
        }
    }
    Ok(groups)
}

/// Puts the command line and a job together. Neither has priority: an option that both give must have the same value.
fn merge(given: &Given, mut job: Given, origin: usize) -> Result<Draft, Failure> {
    let counters = match job.pmc.list() {
        [words, ..] => counters::group(words).map_err(|message| job.pmc.refused(message))?,
        [] => CounterGroup::default(),
    };
    job.pmc.take();
    let mut conflicts = given.conflicts(&job);
    conflicts.sort_by_key(|conflict| (conflict.place.line, conflict.place.column));
    if let Some(Conflict { place, message }) = conflicts.first() {
        return Err(Failure::failed(format!("{place}: {message}")));
    }
    let mut merged = given.clone();
    merged.merge(job);
    Ok(Draft {
        given: merged,
        counters,
        origin,
    })
}

#[cfg(test)]
mod tests {
    use super::cause;

    #[test]
    fn cause_of_several_passes_is_the_first_that_holds() {
        // The reasons of several passes: command-line-216.
        for (groups, jobs, combined, expected) in [
            (2, 1, false, Some("multiple --pmc flags")),
            (0, 2, false, Some("multiple input-file jobs")),
            (1, 1, true, Some("--pmc combined with input-file pmc")),
            (2, 3, true, Some("multiple --pmc flags")),
            (1, 2, true, Some("multiple input-file jobs")),
            (1, 1, false, None),
            (0, 1, false, None),
        ] {
            assert_eq!(cause(groups, jobs, combined), expected);
        }
    }
}
