//! Settling what is counted, for all passes, before the first of them runs.

use std::collections::BTreeSet;
use std::path::PathBuf;

use rpd_core::options::{Backend, CounterRequest};

use super::census::Census;
use super::derived::{self, Computed};
use super::extra;
use super::pack::{self, Oracle};
use super::wire::Verdict;
use crate::failure::Failure;
use crate::options::plan::{Pass, Plan};

/// What was settled beside the passes themselves.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    /// Metrics that no pass can collect: computed from their parts afterwards.
    pub(crate) computed: Vec<Computed>,
}

/// What decides which provider is asked.
type Key = (Backend, Option<PathBuf>, Vec<String>, String);

fn key(pass: &Pass) -> Key {
    let options = &pass.options;
    (
        options.backend,
        options.rocm_root.clone(),
        pass.sdk_suffixes.clone(),
        options.extra_counters.clone(),
    )
}

/// Checks the counters of all passes with the provider, and spreads those that need it over several passes. What the
/// user should know goes to the plan's warnings. A plan without counters asks nobody.
///
/// # Errors
/// Names that no GPU has or can count, sets that do not fit into a pass, or a provider that cannot be asked.
pub(crate) fn settle(plan: &mut Plan) -> Result<Settled, Failure> {
    let open = |pass: &Pass| Census::open(&pass.options, &pass.sdk_suffixes);
    settle_with(plan, &open)
}

pub(super) fn settle_with(
    plan: &mut Plan,
    open: &dyn Fn(&Pass) -> Result<Census, Failure>,
) -> Result<Settled, Failure> {
    check_definitions(plan)?;
    let mut asked: Vec<(Key, Census)> = Vec::new();
    let mut settled = Settled::default();
    let mut warnings = Vec::new();
    let several = plan.passes.len() > 1;
    let mut spread = Vec::new();
    for (index, pass) in plan.passes.iter().enumerate() {
        if pass.bare.is_some() || !pass.options.collector.counters.any() {
            continue;
        }
        let key = key(pass);
        let at = match asked.iter().position(|(known, _)| *known == key) {
            Some(at) => at,
            None => {
                let census = open(pass).map_err(|failure| {
                    let mut plain = pass.clone();
                    plain.options.extra_counters.clear();
                    extra::refused(failure, &pass.options.extra_counters, || open(&plain))
                })?;
                extra::check_names(&pass.options.extra_counters, &census)?;
                asked.push((key, census));
                asked.len() - 1
            }
        };
        let census = &mut asked[at].1;
        let named = |failure: Failure| match several {
            true => Failure::new(
                failure.status,
                format!("pass {}: {}", index + 1, failure.message),
            ),
            false => failure,
        };
        if census.gpus.is_empty() {
            return Err(named(Failure::failed(format!(
                "{} finds no GPU to count on; --backend sim needs none",
                census.library.display()
            ))));
        }
        for group in &pass.options.collector.counters.groups {
            let mut notes = Vec::new();
            check_names(census, group, &mut notes).map_err(named)?;
            if pass.auto {
                let found = spread_group(census, group).map_err(named)?;
                settled.computed.extend(found.computed);
                spread.push(found.groups);
            } else {
                check_set(census, group).map_err(named)?;
            }
            warnings.extend(
                notes
                    .into_iter()
                    .map(|note| named(Failure::failed(note)).message),
            );
        }
    }
    let mut spread = spread.into_iter();
    // Passes that are not counted at all keep their names.
    plan.spread(|pass| {
        Ok::<_, Failure>(match pass.bare {
            Some(_) => pass.options.collector.counters.groups.clone(),
            None => spread.next().unwrap_or_default(),
        })
    })?;
    plan.warnings.extend(warnings);
    Ok(settled)
}

fn check_definitions(plan: &mut Plan) -> Result<(), Failure> {
    for pass in &mut plan.passes {
        let text = &mut pass.options.extra_counters;
        if !text.is_empty() {
            let checked = extra::check(std::mem::take(text))?;
            *text = checked.text;
            for warning in checked.warnings {
                if !plan.warnings.contains(&warning) {
                    plan.warnings.push(warning);
                }
            }
        }
    }
    Ok(())
}

/// Every name must be a counter of a GPU that it is meant for.
fn check_names(
    census: &Census,
    group: &[CounterRequest],
    notes: &mut Vec<String>,
) -> Result<(), Failure> {
    let mut problems = Vec::new();
    for request in group {
        let meant = census.meant(request);
        if meant.is_empty() {
            let all: Vec<usize> = (0..census.gpus.len()).collect();
            notes.push(format!(
                "{request} counts nothing: there is no such GPU, only {}",
                census.labels(&all)
            ));
            continue;
        }
        let has = |gpu: &usize| census.gpus[*gpu].counter(&request.name).is_some();
        if meant.iter().any(has) {
            continue;
        }
        let near = census.near(&meant, &request.name);
        let near = match near.as_slice() {
            [] => String::new(),
            near => format!(" (did you mean {}?)", near.join(", ")),
        };
        problems.push(format!(
            "{} is no counter of {}{near}",
            request.name,
            census.labels(&meant)
        ));
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(Failure::failed(format!(
        "{}; rpd avail lists all",
        problems.join("; ")
    )))
}

/// The names of a group that count on a GPU.
fn names_on<'a>(census: &Census, gpu: usize, group: &'a [CounterRequest]) -> Vec<&'a str> {
    let known = &census.gpus[gpu];
    let names: BTreeSet<&str> = group
        .iter()
        .filter(|request| known.is_meant(request))
        .map(|request| request.name.as_str())
        .filter(|name| known.counter(name).is_some())
        .collect();
    names.into_iter().collect()
}

/// How each GPU judges the group as a whole.
fn judged(census: &mut Census, group: &[CounterRequest]) -> Result<Vec<Verdict>, Failure> {
    let mut verdicts = Vec::new();
    for gpu in 0..census.gpus.len() {
        let names = names_on(census, gpu, group);
        verdicts.extend(census.together(gpu, [names])?);
    }
    Ok(verdicts)
}

/// How the requests of a group do one by one.
struct Alone {
    /// Requests that a GPU cannot count at all, with the reason.
    unavailable: Vec<(usize, String)>,
    /// Requests that need more than one pass by themselves.
    too_large: Vec<usize>,
}

fn alone(census: &mut Census, group: &[CounterRequest]) -> Result<Alone, Failure> {
    let mut found = Alone {
        unavailable: Vec::new(),
        too_large: Vec::new(),
    };
    let mut verdicts: Vec<Vec<(usize, Verdict)>> = vec![Vec::new(); group.len()];
    for gpu in 0..census.gpus.len() {
        let known = &census.gpus[gpu];
        let here: Vec<usize> = (0..group.len())
            .filter(|index| {
                known.is_meant(&group[*index]) && known.counter(&group[*index].name).is_some()
            })
            .collect();
        let sets = here.iter().map(|index| vec![group[*index].name.as_str()]);
        let answers = census.together(gpu, sets.collect::<Vec<_>>())?;
        for (index, verdict) in here.into_iter().zip(answers) {
            verdicts[index].push((gpu, verdict));
        }
    }
    for (index, verdicts) in verdicts.iter().enumerate() {
        if verdicts
            .iter()
            .any(|(_, verdict)| verdict.status == Verdict::TOO_MANY)
        {
            found.too_large.push(index);
        } else if let Some((gpu, verdict)) =
            verdicts.iter().find(|(_, verdict)| !verdict.is_success())
        {
            let label = census.gpus[*gpu].agent.label();
            let name = &group[index].name;
            let why = match verdict.status {
                Verdict::NOT_ON_AGENT => {
                    format!(
                        "{label} knows {name}, but cannot count it (the provider says: {})",
                        verdict.text
                    )
                }
                status => format!("{name} on {label}: {} (status {status})", verdict.text),
            };
            let able = verdicts.iter().find(|(_, verdict)| verdict.is_success());
            let able = able.and_then(|(gpu, _)| census.gpus[*gpu].agent.number());
            let why = match able {
                Some(device) => format!("{why} ({name}:device={device} can be counted)"),
                None => why,
            };
            found.unavailable.push((index, why));
        }
    }
    Ok(found)
}

fn unavailable(found: &Alone) -> Result<(), Failure> {
    if found.unavailable.is_empty() {
        return Ok(());
    }
    let texts: Vec<&str> = found
        .unavailable
        .iter()
        .map(|(_, why)| why.as_str())
        .collect();
    Err(Failure::failed(format!(
        "{}; rpd avail lists what can be counted",
        texts.join("; ")
    )))
}

/// A group must fit into one pass. When it does not, the refusal says how to split it.
fn check_set(census: &mut Census, group: &[CounterRequest]) -> Result<(), Failure> {
    let verdicts = judged(census, group)?;
    let Some(gpu) = verdicts.iter().position(|verdict| !verdict.is_success()) else {
        return Ok(());
    };
    let found = alone(census, group)?;
    unavailable(&found)?;
    let label = census.gpus[gpu].agent.label();
    let verdict = &verdicts[gpu];
    let shown: Vec<String> = group.iter().map(ToString::to_string).collect();
    if !found.too_large.is_empty() {
        let large: Vec<&str> = found
            .too_large
            .iter()
            .map(|index| group[*index].name.as_str())
            .collect();
        return Err(Failure::failed(format!(
            "{} cannot be counted in one pass on {label} even alone: {}; --pmc auto:{} counts the parts in several passes",
            large.join(" "),
            verdict.text,
            shown.join(",")
        )));
    }
    let groups = packed(census, group)?;
    let flags: Vec<String> = groups
        .iter()
        .map(|group| {
            let names: Vec<String> = group.iter().map(ToString::to_string).collect();
            format!("--pmc {}", names.join(" "))
        })
        .collect();
    Err(Failure::failed(format!(
        "{} cannot be counted in one pass on {label}: {}; these passes can: {} (or --pmc auto:{})",
        shown.join(" "),
        verdict.text,
        flags.join(" "),
        shown.join(",")
    )))
}

/// The group, in groups that each fit on every GPU.
fn packed(
    census: &mut Census,
    group: &[CounterRequest],
) -> Result<Vec<Vec<CounterRequest>>, Failure> {
    let sizes: Vec<usize> = group
        .iter()
        .map(|request| derived::size(census, &request.name))
        .collect();
    let mut ask = |set: &[usize]| {
        let part: Vec<CounterRequest> = set.iter().map(|index| group[*index].clone()).collect();
        let verdicts = judged(census, &part)?;
        Ok(verdicts.iter().all(Verdict::is_success))
    };
    let groups = pack::pack(&sizes, &mut Oracle::new(&mut ask))?;
    Ok(groups
        .into_iter()
        .map(|indices| {
            indices
                .into_iter()
                .map(|index| group[index].clone())
                .collect()
        })
        .collect())
}

/// What `auto:` makes of a group.
struct Spread {
    groups: Vec<Vec<CounterRequest>>,
    computed: Vec<Computed>,
}

fn spread_group(census: &mut Census, group: &[CounterRequest]) -> Result<Spread, Failure> {
    let found = alone(census, group)?;
    unavailable(&found)?;
    let mut wanted: BTreeSet<CounterRequest> = BTreeSet::new();
    let mut computed = Vec::new();
    for (index, request) in group.iter().enumerate() {
        if !found.too_large.contains(&index) {
            wanted.insert(request.clone());
            continue;
        }
        let metric = derived::split(census, request)?;
        wanted.extend(metric.parts.iter().map(|name| CounterRequest {
            name: name.clone(),
            device: request.device,
        }));
        computed.push(metric);
    }
    let wanted: Vec<CounterRequest> = wanted.into_iter().collect();
    let found = alone(census, &wanted)?;
    unavailable(&found)?;
    if let Some(index) = found.too_large.first() {
        return Err(Failure::failed(format!(
            "{} cannot be counted even alone",
            wanted[*index].name
        )));
    }
    Ok(Spread {
        groups: packed(census, &wanted)?,
        computed,
    })
}
