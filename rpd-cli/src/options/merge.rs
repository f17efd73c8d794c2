//! Which passes there are, and what was given for each: command line and jobs together.

use super::counters::{self, CounterGroup};
use super::given::{OptionValues, Origin, Place, Value};
use super::jobs::Input;
use super::plan::DirectoryStem;
use super::table;
use crate::failure::Failure;

/// A pass before it is resolved.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    /// All but the counters of `pmc`.
    pub(super) given: OptionValues,
    /// Counters that `pmc` requests.
    pub(super) counters: CounterGroup,
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
pub(super) fn drafts(mut given: OptionValues, input: Option<Input>) -> Result<Drafts, Failure> {
    let groups = flags(&mut given)?;
    let (jobs, stem) = match input {
        // Directories of a run that is more than its text file are called as those of all others.
        Some(input) if !groups.is_empty() => (input.jobs, Some(DirectoryStem::Pass)),
        Some(input) => (input.jobs, Some(input.stem)),
        None => (vec![OptionValues::default()], None),
    };
    let jobs = jobs
        .into_iter()
        .map(|job| merge(&given, job))
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
            !draft.counters.counters.is_empty() || draft.given.values.contains_key("pmc-groups")
        };
        let auto = self.list.iter().any(|draft| draft.counters.auto);
        let cause = match self.cause {
            Some(cause) if self.list.iter().any(counts) => cause,
            _ if auto => "--pmc auto: may make several",
            _ => return Ok(()),
        };
        let with = |long: &str| {
            let mut all = self.list.iter().map(|draft| &draft.given);
            all.find(|given| given.values.contains_key(long))
        };
        let refuse = |name: String, what: &str| {
            Err(Failure::failed(format!(
                "{name}: collecting counters in several passes ({cause}) is not compatible with {what}"
            )))
        };
        if let Some(given) = with("pid") {
            return refuse(given.name("pid"), "attach mode");
        }
        if let Some(given) = with("collection-period") {
            return refuse(given.name("collection-period"), "--collection-period");
        }
        Ok(())
    }
}

/// Takes the groups of `--pmc`.
fn flags(given: &mut OptionValues) -> Result<Vec<CounterGroup>, Failure> {
    let Some(Value::Groups(flags)) = given.values.remove("pmc") else {
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
fn merge(given: &OptionValues, mut job: OptionValues) -> Result<Draft, Failure> {
    let counters = match job.values.remove("pmc") {
        Some(Value::List(words)) => {
            counters::group(&words).map_err(|message| job.refused("pmc", message))?
        }
        _ => CounterGroup::default(),
    };
    job.origins.remove("pmc");
    let first = |place: &Place| (place.line, place.column);
    let conflict = job
        .values
        .iter()
        .filter(|(long, value)| given.values.get(*long).is_some_and(|other| other != *value))
        .filter_map(|(long, value)| match job.origins.get(long) {
            Some(Origin::Job(place)) => Some((*long, value, place)),
            _ => None,
        })
        .min_by_key(|(_, _, place)| first(place));
    if let Some((long, value, place)) = conflict {
        let source = match given.variable(long) {
            Some(variable) => format!("{variable} (set in the environment)"),
            None => table::find(long).map_or_else(|| format!("--{long}"), |spec| spec.display()),
        };
        let other = given.values.get(long).map(ToString::to_string);
        return Err(Failure::failed(format!(
            "{place}: conflicting values for {}: {value} here, {} by {source}",
            long.replace('-', "_"),
            other.unwrap_or_default(),
        )));
    }
    let mut merged = given.clone();
    merged.values.extend(job.values);
    for (long, origin) in job.origins {
        // Options that are on the command line too are named in its syntax.
        if !given.values.contains_key(long) {
            merged.origins.insert(long, origin);
        }
    }
    Ok(Draft {
        given: merged,
        counters,
    })
}

#[cfg(test)]
mod tests {
    use super::cause;

    #[test]
    fn the_first_named_cause_wins() {
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
