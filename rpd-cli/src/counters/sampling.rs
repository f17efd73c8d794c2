//! Checks PC sampling against what the GPUs offer, before the first pass runs.

use rpd_core::compat::Difference;
use rpd_core::options::{Backend, Options, SamplingMethod, SamplingOptions, SamplingUnit};

use super::protocol::{ProviderStatus, Sampling};
use super::provider_counters::ProviderCounters;
use crate::failure::Failure;
use crate::options::plan::{Pass, Plan};
use crate::process::backend;

/// Checks all passes that sample. GPUs that lack the configuration are named in a warning, when others have it.
///
/// # Errors
/// No GPU can be sampled in this way; the error lists the configurations that they have.
pub(crate) fn validate(plan: &mut Plan) -> Result<(), Failure> {
    let open = |pass: &Pass| ProviderCounters::open(&pass.options, &pass.sdk_suffixes);
    let mut warnings = Vec::new();
    let mut checked: Vec<(SamplingOptions, _)> = Vec::new();
    for pass in &plan.passes {
        let Some(wanted) = pass.options.collector.sampling else {
            continue;
        };
        let key = (
            wanted,
            (
                pass.options.backend,
                &pass.options.rocm_root,
                &pass.sdk_suffixes,
            ),
        );
        if is_cuda(&pass.options) {
            check_cuda(wanted)?;
            continue;
        }
        // The provider is asked once for each configuration.
        if pass.unprofiled.is_some() || checked.contains(&key) {
            continue;
        }
        let mut provider = open(pass)?;
        let checked_here = check(&mut provider, wanted).map_err(|failure| {
            if pass.options.compat.has(Difference::Diagnostics) {
                // Scripts look for these words.
                Failure::new(
                    failure.status,
                    format!(
                        "Given PC sampling configuration is not supported on any of the agents: {}",
                        failure.message
                    ),
                )
            } else {
                failure
            }
        });
        warnings.extend(checked_here?);
        checked.push(key);
    }
    plan.warnings.extend(warnings);
    Ok(())
}

/// Whether the only GPUs that the target can use are NVIDIA's.
fn is_cuda(options: &Options) -> bool {
    match options.backend {
        Backend::Cuda => true,
        Backend::Auto => backend::has_nvidia_only(),
        Backend::Rocm | Backend::Sim => false,
    }
}

/// Checks a configuration of NVIDIA GPUs: all that can be sampled have the same.
fn check_cuda(wanted: SamplingOptions) -> Result<(), Failure> {
    let offered = Sampling {
        method: SamplingMethod::Stochastic.word().to_owned(),
        unit: "cycle".to_owned(),
        min_interval: 32,
        max_interval: 1 << 31,
        power_of_two: true,
    };
    match refusal(wanted, &[offered]) {
        None => Ok(()),
        Some(refusal) => Err(Failure::failed(format!(
            "no NVIDIA GPU can be sampled with method {}, unit {} and interval {}: {refusal}",
            wanted.method.word(),
            wanted.unit.word(),
            wanted.interval
        ))),
    }
}

/// Checks one configuration; a warning when some GPUs lack it.
pub(super) fn check(
    provider: &mut ProviderCounters,
    wanted: SamplingOptions,
) -> Result<Option<String>, Failure> {
    if provider.gpus.is_empty() {
        return Err(Failure::failed(format!(
            "{} finds no GPU to sample; --backend sim needs none",
            provider.library.display()
        )));
    }
    let mut refusals = Vec::new();
    let mut sampled = 0;
    for gpu in 0..provider.gpus.len() {
        let (verdict, offered) = provider.sampling(gpu)?;
        let refusal = if verdict.is_success() {
            refusal(wanted, &offered)
        } else {
            Some(unanswered(&verdict))
        };
        match refusal {
            None => sampled += 1,
            Some(refusal) => {
                refusals.push(format!("{}: {refusal}", provider.gpus[gpu].agent.label()));
            }
        }
    }
    // One GPU that can be sampled is enough: a machine may have GPUs of several kinds.
    if sampled == 0 {
        return Err(Failure::failed(format!(
            "no GPU can be sampled with method {}, unit {} and interval {}: {} (rpd avail info --pc-sampling lists what they \
             offer)",
            wanted.method.word(),
            wanted.unit.word(),
            wanted.interval,
            refusals.join("; ")
        )));
    }
    if refusals.is_empty() {
        return Ok(None);
    }
    Ok(Some(format!("not sampled: {}", refusals.join("; "))))
}

/// Text for a provider that gives no answer about a GPU.
fn unanswered(verdict: &ProviderStatus) -> String {
    let said = format!("{}, status {}", verdict.text, verdict.status);
    match verdict.status {
        ProviderStatus::FAILED => {
            format!("the kernel driver refused the query, as those without PC sampling do ({said})")
        }
        _ => said,
    }
}

/// The word of a unit in the provider's list.
fn listed(unit: SamplingUnit) -> &'static str {
    match unit {
        SamplingUnit::Cycles => "cycle",
        other => other.word(),
    }
}

/// Reason why a GPU with these configurations cannot be sampled as requested; `None` when it can.
fn refusal(wanted: SamplingOptions, offered: &[Sampling]) -> Option<String> {
    // From the method to the interval: each message assumes that what comes before it is right.
    let of_method: Vec<&Sampling> = offered
        .iter()
        .filter(|offer| offer.method == wanted.method.word())
        .collect();
    if of_method.is_empty() {
        let mut methods: Vec<&str> = offered.iter().map(|offer| &*offer.method).collect();
        methods.dedup();
        return Some(match (methods.is_empty(), wanted.method) {
            (true, _) => "it cannot be sampled".to_owned(),
            (_, SamplingMethod::Stochastic) => format!(
                "its hardware has no stochastic sampling (gfx942 and later have it), only {}",
                methods.join(", ")
            ),
            (_, SamplingMethod::HostTrap) => format!("it has {} only", methods.join(", ")),
        });
    }
    let of_unit: Vec<&&Sampling> = of_method
        .iter()
        .filter(|offer| offer.unit == listed(wanted.unit))
        .collect();
    if of_unit.is_empty() {
        let units: Vec<&str> = of_method
            .iter()
            .map(|offer| match &*offer.unit {
                // The provider's word is a singular, the option's a plural.
                "cycle" => "cycles",
                other => other,
            })
            .collect();
        return Some(format!(
            "{} goes with --pc-sampling-unit {}, not {}",
            wanted.method.word(),
            units.join(" or "),
            wanted.unit.word()
        ));
    }
    let mut problem = None;
    for offer in of_unit {
        let (min, max) = (offer.min_interval, offer.max_interval);
        if !(min..=max).contains(&wanted.interval) {
            let most = match max {
                u64::MAX => String::new(),
                max => format!(" and at most {max}"),
            };
            let noun = wanted.unit.noun();
            problem = Some(match (min == max, most) {
                // The provider offers a single interval while another process samples.
                (true, _) => format!(
                    "it is being sampled by another process, and allows an interval of {min} {noun} only"
                ),
                (_, most) => format!("the interval must be at least {min}{most} {noun}"),
            });
        } else if offer.power_of_two && !wanted.interval.is_power_of_two() {
            let below = 1_u64 << wanted.interval.ilog2();
            // The nearest powers on both sides are named only where both are allowed.
            let above = below.checked_mul(2).filter(|above| *above <= max);
            let near = match above {
                Some(above) => format!("{below} or {above}"),
                None => below.to_string(),
            };
            problem = Some(format!(
                "the interval must be a power of two, such as {near}"
            ));
        } else {
            // One configuration that fits is enough.
            return None;
        }
    }
    problem
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offers(stochastic: bool) -> Vec<Sampling> {
        let mut offers = vec![Sampling {
            method: "host_trap".to_owned(),
            unit: "time".to_owned(),
            min_interval: 1,
            max_interval: u64::MAX,
            power_of_two: false,
        }];
        if stochastic {
            offers.insert(
                0,
                Sampling {
                    method: "stochastic".to_owned(),
                    unit: "cycle".to_owned(),
                    min_interval: 256,
                    max_interval: 1 << 31,
                    power_of_two: true,
                },
            );
        }
        offers
    }

    #[test]
    fn sampling_check_names_a_driver_without_pc_sampling() {
        let said = |status, text: &str| {
            let text = text.to_owned();
            unanswered(&ProviderStatus { status, text })
        };
        assert_eq!(
            said(1, "General error"),
            "the kernel driver refused the query, as those without PC sampling do (General error, status 1)"
        );
        assert_eq!(said(28, "Too old"), "Too old, status 28");
    }

    #[test]
    fn nvidia_gpus_are_sampled_stochastically_by_powers_of_two_of_cycles() {
        let check = |method, unit, interval| {
            let wanted = SamplingOptions {
                method,
                unit,
                interval,
            };
            check_cuda(wanted).map_err(|failure| failure.message)
        };
        use SamplingMethod::{HostTrap, Stochastic};
        use SamplingUnit::{Cycles, Time};
        assert_eq!(check(Stochastic, Cycles, 32), Ok(()));
        assert_eq!(check(Stochastic, Cycles, 1 << 31), Ok(()));
        for (method, unit, interval, expected) in [
            (HostTrap, Time, 100, "it has stochastic only"),
            (Stochastic, Time, 128, "goes with --pc-sampling-unit cycles"),
            (Stochastic, Cycles, 16, "at least 32"),
            (
                Stochastic,
                Cycles,
                1000,
                "a power of two, such as 512 or 1024",
            ),
        ] {
            let refused = check(method, unit, interval).expect_err("it is refused");
            assert!(refused.contains(expected), "{refused}");
        }
    }

    #[test]
    fn sampling_refusal_lists_the_configurations() {
        let refused = |method, unit, interval, stochastic| {
            let wanted = SamplingOptions {
                method,
                unit,
                interval,
            };
            refusal(wanted, &offers(stochastic)).unwrap_or_default()
        };
        use SamplingMethod::{HostTrap, Stochastic};
        use SamplingUnit::{Cycles, Instructions, Time};
        assert_eq!(refused(HostTrap, Time, 1, false), "");
        assert_eq!(refused(Stochastic, Cycles, 1 << 20, true), "");
        assert_eq!(
            refused(Stochastic, Cycles, 1 << 20, false),
            "its hardware has no stochastic sampling (gfx942 and later have it), only host_trap"
        );
        assert_eq!(
            refused(HostTrap, Cycles, 1, true),
            "host_trap goes with --pc-sampling-unit time, not cycles"
        );
        assert_eq!(
            refused(Stochastic, Instructions, 256, true),
            "stochastic goes with --pc-sampling-unit cycles, not instructions"
        );
        assert_eq!(
            refused(Stochastic, Cycles, 255, true),
            "the interval must be at least 256 and at most 2147483648 cycles"
        );
        assert_eq!(
            refused(Stochastic, Cycles, 1000, true),
            "the interval must be a power of two, such as 512 or 1024"
        );
        assert_eq!(
            refused(Stochastic, Cycles, (1 << 31) - 1, true),
            "the interval must be a power of two, such as 1073741824 or 2147483648"
        );
    }
}
