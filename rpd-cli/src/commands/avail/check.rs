//! `rpd avail pmc-check`: whether counters can be collected in one pass.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::json;

use super::{Common, NAME, invalid_name, no_device};
use crate::counters::ProviderCounters;
use crate::counters::protocol::ProviderStatus;
use crate::failure::Failure;

/// A counter and the GPUs to check it on; an empty list selects the default ones.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) name: String,
    pub(super) devices: Vec<u32>,
}

/// Parses the arguments; names may be separated by commas.
pub(super) fn requests(words: &[String]) -> Result<Vec<Request>, Failure> {
    if words.is_empty() {
        return Err(Failure::failed(format!("{NAME}: Provide counter to check")));
    }
    // Behind a colon, commas separate devices.
    let names = |word: &'_ str| -> Vec<String> {
        if word.contains(':') {
            vec![word.to_owned()]
        } else {
            word.split(',').map(str::to_owned).collect()
        }
    };
    let names = words.iter().flat_map(|word| names(word));
    names.map(|name| request(&name)).collect()
}

fn request(word: &str) -> Result<Request, Failure> {
    let mut parts = word.split(':');
    let name = parts.next().unwrap_or_default().to_owned();
    let qualifiers = parts.next();
    if parts.next().is_some() || name.is_empty() {
        return Err(Failure::failed(format!(
            "{NAME}: Invalid format for pmc-check: {word} (NAME or NAME:device=N)"
        )));
    }
    let device = |qualifier: &str| {
        qualifier
            .strip_prefix("device=")
            .and_then(|digits| digits.parse().ok())
            .ok_or_else(|| {
                Failure::failed(format!(
                    "{NAME}: Incorrect input format for device index: {word} (NAME:device=N)"
                ))
            })
    };
    let devices = match qualifiers {
        None => Vec::new(),
        Some(list) => list.split(',').map(device).collect::<Result<_, _>>()?,
    };
    Ok(Request { name, devices })
}

/// Checks the set on each GPU and prints the result; at the first set that does not fit, returns status 1.
pub(super) fn run(
    provider: &mut ProviderCounters,
    requests: &[Request],
    common: &Common,
) -> Result<u8> {
    let find = |device: u32| {
        provider
            .gpus
            .iter()
            .position(|gpu| gpu.agent.number() == Some(device))
            .ok_or_else(|| no_device(provider, device))
    };
    // Requests without a device are about all GPUs, as counters of a run are.
    let usual: Vec<usize> = match common.device {
        Some(device) => vec![find(device)?],
        None => (0..provider.gpus.len()).collect(),
    };
    if usual.is_empty() {
        return Err(Failure::failed(format!("{NAME}: there is no GPU")).into());
    }
    // One set for each GPU: that is what the hardware has to count at the same time.
    let mut sets: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for request in requests {
        let gpus = match request.devices.as_slice() {
            [] => usual.clone(),
            devices => devices
                .iter()
                .map(|device| find(*device))
                .collect::<Result<_, _>>()?,
        };
        for gpu in gpus {
            if provider.gpus[gpu].counter(&request.name).is_none() {
                return Err(invalid_name(provider, &[gpu], &request.name).into());
            }
            let set = sets.entry(gpu).or_default();
            if !set.contains(&request.name.as_str()) {
                set.push(&request.name);
            }
        }
    }
    let mut text = String::new();
    let mut answers = Vec::new();
    // All GPUs are asked before anything is printed: the original prints nothing where one refuses.
    let mut refused = None;
    for (gpu, set) in sets {
        let verdict = provider
            .check_sets(gpu, [set.clone()])?
            .pop()
            .unwrap_or_default();
        let agent = &provider.gpus[gpu].agent;
        answers.push(json!({
            "gpu": agent.logical_node_type_id,
            "name": agent.name,
            "counters": set,
            "together": verdict.is_success(),
            "reason": verdict.text,
        }));
        if verdict.is_success() {
            text += &format!(
                "Following input counters can be collected together on GPU:{}\t{}\n",
                agent.logical_node_type_id,
                set.join("\t")
            );
        } else if refused.is_none() {
            refused = Some(refusal(provider, gpu, &set, &verdict)?);
        }
    }
    if common.json {
        crate::print(&(serde_json::to_string_pretty(&answers)? + "\n"))?;
    } else if refused.is_none() {
        crate::print(&text)?;
    }
    match refused {
        Some(message) => Err(Failure::failed(message).into()),
        None => Ok(0),
    }
}

/// Text for a set that cannot be collected on a GPU: it names the counters that cannot be counted even alone, or says
/// that together they are too many.
fn refusal(
    provider: &mut ProviderCounters,
    gpu: usize,
    set: &[&str],
    verdict: &ProviderStatus,
) -> Result<String, Failure> {
    let alone = provider.check_sets(gpu, set.iter().map(|name| vec![*name]).collect::<Vec<_>>())?;
    let agent = &provider.gpus[gpu].agent;
    let place = format!("agent {} (GPU {})", agent.name, agent.logical_node_type_id);
    let impossible: Vec<(&str, &ProviderStatus)> = set
        .iter()
        .zip(&alone)
        .filter(|(_, alone)| !alone.is_success() && alone.status != ProviderStatus::TOO_MANY)
        .map(|(name, alone)| (*name, alone))
        .collect();
    if let [(_, first), ..] = impossible.as_slice() {
        let names: Vec<&str> = impossible.iter().map(|(name, _)| *name).collect();
        return Ok(format!(
            "{NAME}: {} cannot be collected on {place}: {}",
            names.join(" "),
            first.text
        ));
    }
    Ok(format!(
        "{NAME}: {} not collected on {place}: {}; --pmc auto:{} spreads them over passes",
        set.join(" "),
        verdict.text,
        set.join(",")
    ))
}
