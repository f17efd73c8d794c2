//! Selection of the counters that are collected on each GPU, group by group.
//!
//! The provider is given one configuration per GPU and group, with the counters in the order of their names: on a device
//! whose values depend on how often its registers are read, every further one would change what is counted.

#![expect(
    clippy::disallowed_types,
    reason = "a lock that is not held over a fork"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicPtr, Ordering};

use rocprofiler_sdk_sys::{
    Functions, rocprofiler_agent_id_t, rocprofiler_counter_config_id_t, rocprofiler_counter_id_t,
    rocprofiler_status_t,
};
use rpd_spool::options::{CounterOptions, CounterRequest};
use rpd_spool::writer::ForkLock;

use super::facts;
use super::turns::Turns;
use crate::recording::fork::ForkHook;
use crate::recording::meta;
use crate::sdk::provider::describe;
use crate::sdk::query::visit3;

/// Held, once, by the thread that has the provider make the configurations.
static MAKING: ForkLock = ForkLock::new();
/// The lock is open in a forked child. It is not held over the fork, because the provider may take long.
static FORK: ForkHook = ForkHook::new().in_child(|| MAKING.reset());

/// The provider's configurations of each GPU, in the order of [`Configs::gpus`].
type DeviceConfigs = Vec<Vec<rocprofiler_counter_config_id_t>>;

/// Counter configurations by agent.
pub(super) struct Configs {
    groups: Vec<Vec<CounterRequest>>,
    /// Dispatches of a GPU after which the next group has its turn.
    interval: u64,
    /// Handles of the GPUs; the index of one is the number that `device=` means.
    gpus: Vec<u64>,
    turns: Turns,
    /// Null until the first dispatch is selected; never freed.
    made: AtomicPtr<DeviceConfigs>,
}

impl Configs {
    /// Configurations for the GPUs with these handles, in the order of their topology nodes. `counts_all`: every
    /// dispatch is selected.
    pub(super) fn new(options: &CounterOptions, gpus: &[u64], counts_all: bool) -> Configs {
        FORK.register();
        Configs {
            groups: options.groups.iter().map(|group| sorted(group)).collect(),
            interval: options.group_interval.max(1),
            gpus: gpus.to_vec(),
            turns: Turns::new(gpus.len(), counts_all),
            made: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// Counters of the selected dispatch with this number on `agent`; `None` when none can be counted.
    pub(super) fn of_dispatch(
        &self,
        functions: &Functions,
        agent: u64,
        dispatch: u64,
    ) -> Option<rocprofiler_counter_config_id_t> {
        let place = self.gpus.iter().position(|gpu| *gpu == agent);
        let configs = match place {
            Some(place) => self.made(functions)?.get(place)?.as_slice(),
            None => &[],
        };
        if self.groups.len() < 2 {
            return configs.first().copied();
        }
        let place = place.filter(|_| !configs.is_empty());
        self.turns.note(dispatch, place);
        let turn = self.turns.turn(dispatch, place?, self.interval);
        configs.get((turn % configs.len() as u64) as usize).copied()
    }

    /// The configurations of a GPU, one for each group that it counts.
    pub(super) fn of_agent(
        &self,
        functions: &Functions,
        agent: u64,
    ) -> &[rocprofiler_counter_config_id_t] {
        let place = self.gpus.iter().position(|gpu| *gpu == agent);
        let configs = place.and_then(|place| self.made(functions)?.get(place));
        configs.map_or(&[], Vec::as_slice)
    }

    /// Notes that the dispatch with this number is not counted.
    pub(super) fn pass_over(&self, dispatch: u64) {
        if self.groups.len() > 1 {
            self.turns.note(dispatch, None);
        }
    }

    /// The configurations, which one thread makes while the others wait for it: the SDK's counter tables are not
    /// thread-safe, and two threads that make configurations at the same time crash the target. The provider calls no
    /// function of the collector meanwhile.
    fn made(&self, functions: &Functions) -> Option<&DeviceConfigs> {
        // SAFETY: either null or a leaked box.
        let known = || unsafe { self.made.load(Ordering::Acquire).as_ref() };
        if let Some(made) = known() {
            return Some(made);
        }
        let _guard = MAKING.lock()?;
        if let Some(made) = known() {
            return Some(made);
        }
        let (made, notes) = self.make(functions);
        for note in notes {
            meta::note(&note);
        }
        let made: &DeviceConfigs = Box::leak(Box::new(made));
        self.made
            .store(std::ptr::from_ref(made).cast_mut(), Ordering::Release);
        Some(made)
    }

    /// Makes the provider make all configurations. Returns them with notes for the user.
    fn make(&self, functions: &Functions) -> (DeviceConfigs, Vec<String>) {
        let mut notes = Vec::new();
        let mut missing: BTreeSet<&str> = self
            .groups
            .iter()
            .flatten()
            .map(|request| request.name.as_str())
            .collect();
        let wanted = missing.clone();
        let mut complete = true;
        let mut made: DeviceConfigs = Vec::new();
        for (number, &agent) in self.gpus.iter().enumerate() {
            let available = match available(functions, agent, &wanted) {
                Ok(available) => available,
                Err(status) => {
                    complete = false;
                    let says = describe(functions, status);
                    notes.push(format!(
                        "nothing is counted on GPU {number}: the provider reports: {says}"
                    ));
                    // The GPU gets empty configurations, so that the list still has one entry for each GPU.
                    BTreeMap::new()
                }
            };
            missing.retain(|name| !available.contains_key(*name));
            let groups = self.groups.iter();
            let configs = groups.filter_map(|group| {
                let chosen = chosen(group, number, &available);
                if chosen.is_empty() {
                    return None;
                }
                let ids = chosen.iter().map(|&(_, id)| id).collect();
                match create(functions, agent, ids) {
                    Ok(config) => Some(config),
                    Err(status) => {
                        let names: Vec<&str> = chosen.iter().map(|&(name, _)| name).collect();
                        let (names, says) = (names.join(" "), describe(functions, status));
                        notes.push(format!(
                            "{names} is not counted on GPU {number}: the provider reports: {says}"
                        ));
                        None
                    }
                }
            });
            made.push(configs.collect());
        }
        // A counter is unknown only if no GPU has it, and that is known only if all could be asked.
        if complete && !missing.is_empty() {
            let names: Vec<&str> = missing.into_iter().collect();
            notes.push(format!(
                "{} is not counted: no GPU here has a counter of that name",
                names.join(" ")
            ));
        }
        (made, notes)
    }
}

/// A group in the order in which the provider is given it, without repeats.
fn sorted(group: &[CounterRequest]) -> Vec<CounterRequest> {
    let mut group = group.to_vec();
    group.sort_by_cached_key(ToString::to_string);
    group.dedup();
    group
}

/// Counters of a group that GPU `number` counts, with the provider's ids.
fn chosen<'a>(
    group: &'a [CounterRequest],
    number: usize,
    available: &BTreeMap<String, u64>,
) -> Vec<(&'a str, u64)> {
    let mut chosen: Vec<(&str, u64)> = Vec::new();
    for request in group {
        if request.device.is_some_and(|only| only as usize != number) {
            continue;
        }
        if let Some(&id) = available.get(&request.name)
            && !chosen.iter().any(|&(_, known)| known == id)
        {
            chosen.push((&request.name, id));
        }
    }
    chosen
}

/// The wanted counters that an agent has.
pub(in crate::sdk) fn available(
    functions: &Functions,
    agent: u64,
    wanted: &BTreeSet<&str>,
) -> Result<BTreeMap<String, u64>, rocprofiler_status_t> {
    let Some(iterate) = functions.rocprofiler_iterate_agent_supported_counters else {
        return Err(rocprofiler_status_t::ERROR_NOT_IMPLEMENTED);
    };
    let mut ids: Vec<u64> = Vec::new();
    let status = visit3(
        |_: rocprofiler_agent_id_t, counters: *mut rocprofiler_counter_id_t, count: usize| {
            if !counters.is_null() {
                // SAFETY: the provider's array during this call.
                let counters = unsafe { std::slice::from_raw_parts(counters, count) };
                ids.extend(counters.iter().map(|counter| counter.handle));
            }
        },
        // SAFETY: callback and data belong together.
        |visit, data| unsafe { iterate(rocprofiler_agent_id_t { handle: agent }, visit, data) },
    );
    if status != rocprofiler_status_t::SUCCESS {
        return Err(status);
    }
    let mut available = BTreeMap::new();
    for id in ids {
        let Some(Ok(name)) = facts::name(functions, id).map(std::str::from_utf8) else {
            continue;
        };
        if wanted.contains(name) {
            available.entry(name.to_owned()).or_insert(id);
        }
    }
    Ok(available)
}

/// Makes the provider make a configuration, and records the descriptions of its counters.
fn create(
    functions: &Functions,
    agent: u64,
    ids: Vec<u64>,
) -> Result<rocprofiler_counter_config_id_t, rocprofiler_status_t> {
    let Some(create) = functions.rocprofiler_create_counter_config else {
        return Err(rocprofiler_status_t::ERROR_NOT_IMPLEMENTED);
    };
    let mut counters: Vec<rocprofiler_counter_id_t> = ids
        .iter()
        .map(|&handle| rocprofiler_counter_id_t { handle })
        .collect();
    let mut config = rocprofiler_counter_config_id_t::default();
    // SAFETY: the array lives through the call, which copies it; the handle is 0, so nothing is merged.
    let status = unsafe {
        create(
            rocprofiler_agent_id_t { handle: agent },
            counters.as_mut_ptr(),
            counters.len(),
            &mut config,
        )
    };
    if status != rocprofiler_status_t::SUCCESS {
        return Err(status);
    }
    for id in ids {
        facts::counter(functions, id, agent);
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> CounterRequest {
        let (name, device) = match text.split_once(":device=") {
            Some((name, device)) => (name, Some(device.parse().expect("a number"))),
            None => (text, None),
        };
        CounterRequest {
            name: name.to_owned(),
            device,
        }
    }

    fn group(texts: &[&str]) -> Vec<CounterRequest> {
        texts.iter().map(|text| request(text)).collect()
    }

    #[test]
    fn counter_group_is_ordered_by_text_without_repeats() {
        // A digit comes before the colon, a capital letter after it.
        let ordered = sorted(&group(&["AB", "A:device=1", "A1", "AB", "A"]));
        let texts: Vec<String> = ordered.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["A", "A1", "A:device=1", "AB"]);
    }

    #[test]
    fn chosen_counters_are_those_that_the_gpu_has_and_that_name_it() {
        let available = BTreeMap::from([("A".to_owned(), 11), ("B".to_owned(), 12)]);
        let group = sorted(&group(&["B", "A:device=1", "A", "C", "B:device=1"]));
        assert_eq!(chosen(&group, 1, &available), [("A", 11), ("B", 12)]);
        assert_eq!(chosen(&group, 0, &available), [("A", 11), ("B", 12)]);
        let group = sorted(&self::group(&["A:device=1", "C"]));
        assert_eq!(chosen(&group, 0, &available), []);
    }
}
