//! Counting: which counters, in which groups, of which dispatches.

use rpd_core::compat::Difference;
use rpd_core::options::{CounterOptions, CounterRequest};

use super::counters::{self, CounterGroup};
use super::filters;
use super::merge::Draft;
use super::resolve::Resolver;
use super::table::Given;
use super::thread_trace;
use crate::failure::Failure;

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
                return Err(given
                    .pmc_groups
                    .refused("Cannot specify both pmc and pmc_groups"));
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
            counters::group(words).map_err(|message| option.refused(message))?;
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
