//! Validates the counters of all passes before the first pass runs, and packs `auto:` groups into passes.

use std::collections::BTreeSet;
use std::path::PathBuf;

use rpd_core::options::{Backend, CounterRequest};

use super::derived::{self, ComputedMetric};
use super::extra;
use super::pack::{self, FitCache};
use super::protocol::ProviderStatus;
use super::provider_counters::ProviderCounters;
use crate::failure::Failure;
use crate::options::plan::{Pass, Plan};

/// The options that select a provider and its counters.
type ProviderKey = (Backend, Option<PathBuf>, Vec<String>, String);

fn provider_key(pass: &Pass) -> ProviderKey {
    let options = &pass.options;
    (
        options.backend,
        options.rocm_root.clone(),
        pass.sdk_suffixes.clone(),
        options.extra_counters.clone(),
    )
}

/// Checks the counters of all passes against the provider, and replaces each `auto:` pass by the passes it needs. Warnings
/// are added to the plan's. A plan without counters starts no query process. Returns the metrics that no pass can collect,
/// to be computed from their parts after all passes.
///
/// # Errors
/// No GPU has or can count a name, a set does not fit into one pass, or the provider failed.
pub(crate) fn validate_and_pack(plan: &mut Plan) -> Result<Vec<ComputedMetric>, Failure> {
    let open = |pass: &Pass| ProviderCounters::open(&pass.options, &pass.sdk_suffixes);
    validate_and_pack_with(plan, &open)
}

pub(super) fn validate_and_pack_with(
    plan: &mut Plan,
    open: &dyn Fn(&Pass) -> Result<ProviderCounters, Failure>,
) -> Result<Vec<ComputedMetric>, Failure> {
    check_definitions(plan)?;
    // Queries start a process each: passes with the same provider share one.
    let mut providers: Vec<(ProviderKey, ProviderCounters)> = Vec::new();
    let mut computed = Vec::new();
    let mut warnings = Vec::new();
    let several = plan.passes.len() > 1;
    let mut packed = Vec::new();
    let mut without_replay = Vec::new();
    for (index, pass) in plan.passes.iter().enumerate() {
        // Passes without counters, or without a collector, need no provider.
        if pass.unprofiled.is_some() || !pass.options.collector.counters.any() {
            continue;
        }
        let key = provider_key(pass);
        let at = match providers.iter().position(|(known, _)| *known == key) {
            Some(at) => at,
            None => {
                // A refusal may come from the user's definitions: the provider is asked once more without them to tell.
                let provider = open(pass).map_err(|failure| {
                    let mut without = pass.clone();
                    without.options.extra_counters.clear();
                    extra::explain_refusal(failure, &pass.options.extra_counters, || open(&without))
                })?;
                extra::check_names(&pass.options.extra_counters, &provider)?;
                providers.push((key, provider));
                providers.len() - 1
            }
        };
        let provider = &mut providers[at].1;
        let named = |failure: Failure| {
            if several {
                Failure::new(
                    failure.status,
                    format!("pass {}: {}", index + 1, failure.message),
                )
            } else {
                failure
            }
        };
        if provider.gpus.is_empty() {
            return Err(named(Failure::failed(format!(
                "{} finds no GPU to count on; --backend sim needs none",
                provider.library.display()
            ))));
        }
        if let Some(replay) = pass.replay.filter(|_| !provider.replays) {
            if replay.is_required {
                let [major, minor, patch] = provider.version;
                return Err(Failure::failed(format!(
                    "--replay-mode kernel: {} (ROCprofiler-SDK {major}.{minor}.{patch}) cannot replay kernels; \
                     ROCprofiler-SDK 1.4 (ROCm 10.1) and later can, and --replay-mode application runs the program again",
                    provider.library.display()
                )));
            }
            without_replay.push(index);
        }
        for group in &pass.options.collector.counters.groups {
            let mut notes = Vec::new();
            check_names(provider, group, &mut notes).map_err(named)?;
            // Only counters that may be spread over passes can be split; other groups were given as they are.
            if pass.auto {
                let found = split_and_pack(provider, group).map_err(named)?;
                computed.extend(found.computed);
                packed.push(found.groups);
            } else {
                check_set(provider, group).map_err(named)?;
            }
            warnings.extend(
                notes
                    .into_iter()
                    .map(|note| named(Failure::failed(note)).message),
            );
        }
    }
    for index in without_replay {
        plan.passes[index].replay = None;
    }
    let mut packed = packed.into_iter();
    // A pass of a rank that is not profiled keeps its one group, unchecked.
    plan.spread(|pass| {
        Ok::<_, Failure>(match pass.unprofiled {
            Some(_) => pass.options.collector.counters.groups.clone(),
            None => packed.next().unwrap_or_default(),
        })
    })?;
    plan.warnings.extend(warnings);
    Ok(computed)
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

/// Checks that every name is a counter of a GPU that its request selects. A request for a missing GPU adds a note.
fn check_names(
    provider: &ProviderCounters,
    group: &[CounterRequest],
    notes: &mut Vec<String>,
) -> Result<(), Failure> {
    let mut problems = Vec::new();
    for request in group {
        let selected = provider.gpus_of(request);
        if selected.is_empty() {
            let all: Vec<usize> = (0..provider.gpus.len()).collect();
            notes.push(format!(
                "{request} counts nothing: there is no such GPU, only {}",
                provider.labels(&all)
            ));
            continue;
        }
        let has = |gpu: &usize| provider.gpus[*gpu].counter(&request.name).is_some();
        if selected.iter().any(has) {
            continue;
        }
        let near = provider.similar_names(&selected, &request.name);
        let near = match near.as_slice() {
            [] => String::new(),
            near => format!(" (did you mean {}?)", near.join(", ")),
        };
        let problem = format!(
            "{} is not a counter of {}{near}",
            request.name,
            provider.labels(&selected)
        );
        // Requests for several GPUs may have the same problem.
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(Failure::failed(format!(
        "{}; rpd avail lists all",
        problems.join("; ")
    )))
}

/// The names of a group that select a GPU and are counters of it, in the order of the group: some counters add up what the
/// one before them counts.
fn names_on<'a>(
    provider: &ProviderCounters,
    gpu: usize,
    group: &'a [CounterRequest],
) -> Vec<&'a str> {
    let known = &provider.gpus[gpu];
    let mut names = Vec::new();
    for request in group.iter().filter(|request| known.is_selected_by(request)) {
        let name = request.name.as_str();
        if known.counter(name).is_some() && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Verdict of each GPU on the group as one set.
fn group_verdicts(
    provider: &mut ProviderCounters,
    group: &[CounterRequest],
) -> Result<Vec<ProviderStatus>, Failure> {
    let mut verdicts = Vec::new();
    for gpu in 0..provider.gpus.len() {
        let names = names_on(provider, gpu, group);
        verdicts.extend(provider.check_sets(gpu, [names])?);
    }
    Ok(verdicts)
}

/// Requests of a group that cannot be collected even as sets of one, as indices.
struct SingleFailures {
    /// Requests that a GPU cannot count, with the reason.
    unavailable: Vec<(usize, String)>,
    /// Requests that need more than one pass.
    too_large: Vec<usize>,
}

fn check_singly(
    provider: &mut ProviderCounters,
    group: &[CounterRequest],
) -> Result<SingleFailures, Failure> {
    let mut found = SingleFailures {
        unavailable: Vec::new(),
        too_large: Vec::new(),
    };
    let mut verdicts: Vec<Vec<(usize, ProviderStatus)>> = vec![Vec::new(); group.len()];
    for gpu in 0..provider.gpus.len() {
        let known = &provider.gpus[gpu];
        let here: Vec<usize> = (0..group.len())
            .filter(|index| {
                known.is_selected_by(&group[*index]) && known.counter(&group[*index].name).is_some()
            })
            .collect();
        let sets = here.iter().map(|index| vec![group[*index].name.as_str()]);
        let answers = provider.check_sets(gpu, sets.collect::<Vec<_>>())?;
        for (index, verdict) in here.into_iter().zip(answers) {
            verdicts[index].push((gpu, verdict));
        }
    }
    for (index, verdicts) in verdicts.iter().enumerate() {
        // A counter that needs several passes is split, not refused.
        if verdicts
            .iter()
            .any(|(_, verdict)| verdict.status == ProviderStatus::TOO_MANY)
        {
            found.too_large.push(index);
        } else if let Some((gpu, verdict)) =
            verdicts.iter().find(|(_, verdict)| !verdict.is_success())
        {
            let label = provider.gpus[*gpu].agent.label();
            let name = &group[index].name;
            let why = match verdict.status {
                ProviderStatus::NOT_ON_AGENT => {
                    format!(
                        "{label} has {name}, but cannot count it (the provider's error: {})",
                        verdict.text
                    )
                }
                status => format!("{name} on {label}: {} (status {status})", verdict.text),
            };
            // The user can restrict the counter to a GPU that counts it.
            let able = verdicts.iter().find(|(_, verdict)| verdict.is_success());
            let able = able.and_then(|(gpu, _)| provider.gpus[*gpu].agent.number());
            let why = match able {
                Some(device) => format!("{why} ({name}:device={device} can be counted)"),
                None => why,
            };
            found.unavailable.push((index, why));
        }
    }
    Ok(found)
}

fn refuse_unavailable(found: &SingleFailures) -> Result<(), Failure> {
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

/// Checks that a group fits into one pass. If not, the error has the options that split it.
fn check_set(provider: &mut ProviderCounters, group: &[CounterRequest]) -> Result<(), Failure> {
    let verdicts = group_verdicts(provider, group)?;
    let Some(gpu) = verdicts.iter().position(|verdict| !verdict.is_success()) else {
        return Ok(());
    };
    // Splitting the group helps only where each counter alone can be counted.
    let found = check_singly(provider, group)?;
    refuse_unavailable(&found)?;
    let label = provider.gpus[gpu].agent.label();
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
    let groups = pack_group(provider, group)?;
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

/// Splits a group into groups that each fit into one pass on every GPU.
fn pack_group(
    provider: &mut ProviderCounters,
    group: &[CounterRequest],
) -> Result<Vec<Vec<CounterRequest>>, Failure> {
    let sizes: Vec<usize> = group
        .iter()
        .map(|request| derived::size(provider, &request.name))
        .collect();
    let mut fits = |set: &[usize]| {
        let part: Vec<CounterRequest> = set.iter().map(|index| group[*index].clone()).collect();
        let verdicts = group_verdicts(provider, &part)?;
        Ok(verdicts.iter().all(ProviderStatus::is_success))
    };
    let groups = pack::pack(&sizes, &mut FitCache::new(&mut fits))?;
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

/// The passes of an `auto:` group.
struct PackedGroup {
    /// The counters of each pass.
    groups: Vec<Vec<CounterRequest>>,
    /// Metrics to compute from parts in several passes.
    computed: Vec<ComputedMetric>,
}

fn split_and_pack(
    provider: &mut ProviderCounters,
    group: &[CounterRequest],
) -> Result<PackedGroup, Failure> {
    let found = check_singly(provider, group)?;
    refuse_unavailable(&found)?;
    let mut wanted: BTreeSet<CounterRequest> = BTreeSet::new();
    let mut computed = Vec::new();
    for (index, request) in group.iter().enumerate() {
        if !found.too_large.contains(&index) {
            wanted.insert(request.clone());
            continue;
        }
        let metric = derived::split(provider, request)?;
        wanted.extend(metric.parts.iter().map(|name| CounterRequest {
            name: name.clone(),
            device: request.device,
        }));
        computed.push(metric);
    }
    let wanted: Vec<CounterRequest> = wanted.into_iter().collect();
    let found = check_singly(provider, &wanted)?;
    refuse_unavailable(&found)?;
    if let Some(index) = found.too_large.first() {
        return Err(Failure::failed(format!(
            "{} cannot be counted even alone",
            wanted[*index].name
        )));
    }
    Ok(PackedGroup {
        groups: pack_group(provider, &wanted)?,
        computed,
    })
}
