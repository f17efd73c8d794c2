//! Checks thread traces against the GPUs and their counters, before the first pass runs.

use rpd_core::options::ThreadTraceOptions;

use super::provider_counters::ProviderCounters;
use crate::failure::Failure;
use crate::options::plan::{Pass, Plan};

/// Version of the SDK from which on waves can be traced without their instructions, and counters on one compute unit.
const LATER_SETTINGS_VERSION: [u32; 2] = [1, 1];

/// Checks all passes that trace. GPUs and counters that do not exist are named in warnings, when others do.
///
/// # Errors
/// Nothing that was requested exists, or the provider cannot do what was requested.
pub(crate) fn validate(plan: &mut Plan) -> Result<(), Failure> {
    let open = |pass: &Pass| ProviderCounters::open(&pass.options, &pass.sdk_suffixes);
    let mut warnings = Vec::new();
    for pass in &plan.passes {
        let Some(wanted) = &pass.options.collector.thread_trace else {
            continue;
        };
        if pass.unprofiled.is_some() {
            continue;
        }
        for warning in check(&open(pass)?, wanted)? {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
    }
    plan.warnings.extend(warnings);
    Ok(())
}

/// Checks one pass; warnings.
pub(super) fn check(
    provider: &ProviderCounters,
    wanted: &ThreadTraceOptions,
) -> Result<Vec<String>, Failure> {
    let library = provider.library.display();
    if provider.gpus.is_empty() {
        return Err(Failure::failed(format!(
            "{library} finds no GPU to trace; --backend sim needs none"
        )));
    }
    let [major, minor, _] = provider.version;
    // The provider refuses unknown parameters without a word about which.
    for (name, is_wanted) in [
        ("--att-no-detail", wanted.no_detail),
        ("--att-perfcounter-target-only", wanted.target_counters),
    ] {
        if is_wanted && [major, minor] < LATER_SETTINGS_VERSION {
            return Err(Failure::failed(format!(
                "{name}: {library} is version {major}.{minor}, and this came with 1.1"
            )));
        }
    }
    let mut warnings = Vec::new();
    let all: Vec<usize> = (0..provider.gpus.len()).collect();
    let gpus: Vec<usize> = if wanted.gpus.is_empty() {
        all.clone()
    } else {
        (wanted.gpus.iter())
            .filter_map(|gpu| usize::try_from(*gpu).ok())
            .filter(|gpu| *gpu < provider.gpus.len())
            .collect()
    };
    // The original warns and goes on with the GPUs that exist.
    for gpu in &wanted.gpus {
        if *gpu as usize >= provider.gpus.len() {
            warnings.push(format!(
                "--att-gpu-index: Invalid GPU Device Index: {gpu}: there is only {}",
                provider.labels(&all)
            ));
        }
    }
    if gpus.is_empty() {
        return Err(Failure::failed(format!(
            "--att-gpu-index: no such GPU, only {}",
            provider.labels(&all)
        )));
    }
    let mut known = 0;
    // A counter that one GPU has is traced there.
    for counter in &wanted.counters {
        let has = |gpu: &usize| provider.gpus[*gpu].counter(&counter.name).is_some();
        if gpus.iter().any(has) {
            known += 1;
            continue;
        }
        let near = provider.similar_names(&gpus, &counter.name);
        let hint = match near.as_slice() {
            [] => String::new(),
            near => format!("; similar names: {}", near.join(", ")),
        };
        warnings.push(format!(
            "--att-perfcounters: {} has no counter {}{hint}",
            provider.labels(&gpus),
            counter.name
        ));
    }
    // With no counter left the trace would lack what it was made for.
    if !wanted.counters.is_empty() && known == 0 {
        return Err(Failure::failed(warnings.pop().unwrap_or_default()));
    }
    Ok(warnings)
}
