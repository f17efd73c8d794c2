//! Counters as options and job files give them: words, names, groups.

use rpd_core::compat::Difference;
use rpd_core::options::{CounterOptions, CounterRequest};

use super::filters;
use super::merge::Draft;
use super::resolve::Resolver;
use super::table::Given;
use super::thread_trace;
use crate::failure::Failure;

/// Marks a group whose names are spread over as few passes as possible.
const AUTO: &str = "auto:";

/// Separators of names besides blanks.
const SEPARATORS: &str = "!@#$%&(),*+-./;<>?{}^`~|";

/// Counters that are collected in one pass.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct CounterGroup {
    /// In alphabetical order, each once.
    pub(crate) counters: Vec<CounterRequest>,
    /// To be spread over as few passes as possible.
    pub(crate) auto: bool,
}

impl Resolver<'_> {
    /// Counter options without names of kernels, and whether the counters still have to be packed into passes.
    ///
    /// # Errors
    /// A group is empty or holds what is no counter, or groups are requested in two ways.
    pub(super) fn counters(&mut self, draft: &Draft) -> Result<(CounterOptions, bool), Failure> {
        let given = &draft.given;
        let mut auto = false;
        let groups = if draft.counters.counters.is_empty() {
            groups_that_take_turns(given)?
        } else {
            if !given.pmc_groups.list().is_empty() {
                return Err((given.pmc_groups).refused("Cannot specify both pmc and pmc_groups"));
            }
            auto = draft.counters.auto;
            vec![draft.counters.counters.clone()]
        };
        let interval = &given.pmc_group_interval;
        let group_interval = interval.value().unwrap_or(0);
        if group_interval > 1 && groups.len() < 2 {
            self.warn(format!(
                "{}: no effect, since no groups of counters take turns",
                interval.name()
            ));
        }
        if groups.is_empty()
            && !thread_trace::is_requested(given)
            && let Some(filter) = filters::kernel_filter(given)
        {
            self.warn(format!(
                "{}: no effect, since it picks dispatches to count or to thread trace, and nothing is counted or thread traced",
                filter.name()
            ));
        }
        let range = &given.kernel_iteration_range;
        let mut iterations =
            filters::iterations(range.list()).map_err(|message| range.refused(message))?;
        if let Some(empty) = iterations.iter().find(|range| range.first > range.last) {
            self.warn(format!(
                "{}: {}-{} is empty",
                range.name(),
                empty.first,
                empty.last
            ));
        }
        if iterations.is_empty()
            && thread_trace::is_requested(given)
            && self.environment.compat.has(Difference::CountersWithTraces)
        {
            iterations.push(filters::FIRST);
        }
        let options = CounterOptions {
            groups,
            group_interval: u64::try_from(group_interval).unwrap_or(0),
            iterations,
            ..CounterOptions::default()
        };
        Ok((options, auto))
    }
}

/// Groups of counters that take turns in one pass.
fn groups_that_take_turns(given: &Given) -> Result<Vec<Vec<CounterRequest>>, Failure> {
    // `pmc` that is still here comes from a variable, and has priority over the other one.
    let option = if given.pmc.is_given() {
        &given.pmc
    } else {
        &given.pmc_groups
    };
    let mut groups = Vec::new();
    for (words, number) in option.list().iter().zip(1..) {
        let CounterGroup { counters, auto } =
            group(words).map_err(|message| option.refused(message))?;
        if auto {
            return Err(option.refused("auto: can be used in groups of --pmc and pmc only"));
        }
        if counters.is_empty() {
            return Err(option.refused(format_args!("Empty counter group, number {number}")));
        }
        groups.push(counters);
    }
    Ok(groups)
}

/// Reads the words of a group.
///
/// # Errors
/// One line, when what is left between the separators cannot be the name of a counter, or when nothing is to be spread.
pub(crate) fn group(words: &[String]) -> Result<CounterGroup, String> {
    let mut auto = false;
    let words: Vec<&str> = words
        .iter()
        .map(|word| match word.trim_start().strip_prefix(AUTO) {
            Some(rest) => {
                auto = true;
                rest
            }
            None => word,
        })
        .collect();
    let line = words.join(" ");
    let line = line.split('#').next().unwrap_or_default();
    let mut tokens: Vec<&str> = line
        .split(|letter: char| letter.is_whitespace() || SEPARATORS.contains(letter))
        .filter(|token| token.contains(|letter: char| letter.is_alphanumeric() || letter == '_'))
        .collect();
    tokens.sort_unstable();
    tokens.dedup();
    let counters = tokens
        .into_iter()
        .map(request)
        .collect::<Result<Vec<_>, String>>()?;
    if auto && counters.is_empty() {
        return Err("auto: names no counter; write auto:NAME,NAME,...".to_owned());
    }
    Ok(CounterGroup { counters, auto })
}

fn request(token: &str) -> Result<CounterRequest, String> {
    let (name, qualifier) = match token.split_once(':') {
        Some((name, qualifier)) => (name, Some(qualifier)),
        None => (token, None),
    };
    if name.contains('[') {
        return Err(format!(
            "'{token}': instances of a counter cannot be selected; json has the values of all"
        ));
    }
    let letters = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    if name.is_empty() || !name.chars().all(letters) {
        return Err(format!("'{token}' is not the name of a counter"));
    }
    let device = match qualifier {
        None => None,
        Some(text) => {
            let digits = text
                .strip_prefix("device=")
                .filter(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
                .ok_or_else(|| {
                    format!("'{token}': what may follow the name is :device=N, N a number of a GPU")
                })?;
            // No machine has that many: as any other number without a GPU it matches none.
            Some(digits.parse().unwrap_or(u32::MAX))
        }
    };
    Ok(CounterRequest {
        name: name.to_owned(),
        device,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(words: &[&str]) -> Result<String, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let group = group(&words)?;
        let names: Vec<String> = group.counters.iter().map(ToString::to_string).collect();
        Ok(format!(
            "{}{}",
            if group.auto { AUTO } else { "" },
            names.join(" ")
        ))
    }

    #[test]
    fn counter_words_become_sorted_names() {
        for (words, expected) in [
            (&["SQ_WAVES", "GRBM_COUNT"][..], "GRBM_COUNT SQ_WAVES"),
            (&["SQ_WAVES,GRBM_COUNT"], "GRBM_COUNT SQ_WAVES"),
            // A counter that is named twice is counted once, and a comment is ignored: command-line-105.
            (&["B", "A", "A", "#", "C"], "A B"),
            (&["B", "A#x", "C"], "A B"),
            (&["A B", " C;D "], "A B C D"),
            (&["\\", "--", ","], ""),
            (
                &["A:device=1", "A:device=0", "A"],
                "A A:device=0 A:device=1",
            ),
            // A counter of a GPU that is not there is accepted: command-line-104.
            (&["SQ_CYCLES:device=16384"], "SQ_CYCLES:device=16384"),
            (&["A:device=99999999999"], "A:device=4294967295"),
            (&["auto:B,A", "C"], "auto:A B C"),
            (&["auto:", "B"], "auto:B"),
            (&[], ""),
        ] {
            assert_eq!(shown(words).as_deref(), Ok(expected), "{words:?}");
        }
    }

    #[test]
    fn words_that_name_no_counter_are_refused() {
        for (word, fragment) in [
            ("A:device=x", "'A:device=x'"),
            ("A:device=", ":device=N"),
            ("A:instance=3", ":device=N"),
            ("TCC_HIT[3]", "json has the values of all"),
            ("A=B", "'A=B' is not the name of a counter"),
            ("'A'", "is not the name of a counter"),
            (":device=3", "is not the name of a counter"),
            ("auto:,", "auto: names no counter"),
        ] {
            let message = shown(&[word]).expect_err(word);
            assert!(message.contains(fragment), "{word}: {message}");
        }
    }
}
