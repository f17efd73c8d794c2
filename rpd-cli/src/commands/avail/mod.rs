//! `rpd avail`: lists the counters and PC sampling configurations of the provider.

mod check;
mod json;
mod nvidia;
mod show;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::{Args, Parser, Subcommand};
use rpd_core::compat::{Compat, Difference};
use rpd_core::options::{Backend, Options};

use super::parse;
use crate::counters::protocol::Sampling;
use crate::counters::{ProviderCounters, extra};
use crate::failure::Failure;
use crate::options::extra_counters;
use crate::options::plan::Plan;

const NAME: &str = "avail";

/// Versions of the SDK's library to try, as for a run without options.
const SUFFIXES: [&str; 2] = [".1", ""];

/// List what the GPUs can count and sample
#[derive(Debug, Parser)]
#[command(
    infer_long_args = true,
    after_help = "Without a command it lists the counters of every GPU. The provider is loaded in a child process; \
    counters that a GPU has but cannot collect are listed separately."
)]
struct Arguments {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Option<Action>,
}

/// Options of all subcommands, before or after the subcommand's name.
#[derive(Debug, Clone, Default, Args)]
struct Common {
    /// Number of the GPU to describe, among the GPUs from 0 [default: all]
    #[arg(short, long, value_name = "N", global = true)]
    device: Option<u32>,
    /// Text in names or descriptions of the counters to list; case does not matter [default: all]
    #[arg(long, value_name = "TEXT", global = true)]
    filter: Option<String>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    /// Source of the information: the ROCm installation (rocm), the simulated GPU (sim), NVIDIA's driver (cuda), or the one that a run would use (auto)
    #[arg(long, value_name = "NAME", value_parser = ["auto", "rocm", "sim", "cuda"], default_value = "auto", global = true)]
    backend: String,
    /// Root of the ROCm installation
    #[arg(long, value_name = "DIR", global = true)]
    rocm_root: Option<PathBuf>,
    /// YAML file that defines further counters
    #[arg(short = 'E', long, value_name = "FILE", global = true)]
    extra_counters: Option<PathBuf>,
    /// The tool whose listings are printed.
    #[arg(skip)]
    compat: Compat,
}

#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// List names of counters, agents, and GPUs that can sample program counters
    #[command(infer_long_args = true)]
    List {
        /// List names of counters [the default]
        #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", value_parser = truth)]
        pmc: Option<bool>,
        /// List properties of agents
        #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", value_parser = truth)]
        agent: Option<bool>,
        /// List GPUs that can sample program counters
        #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", value_parser = truth)]
        pc_sampling: Option<bool>,
        /// Counters for the streaming performance monitor
        #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", value_parser = truth)]
        spm: Option<bool>,
    },
    /// Describe counters and PC sampling; without arguments, list agents and names of counters
    #[command(infer_long_args = true)]
    Info {
        /// Names of counters to describe
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// Describe these counters, or all
        #[arg(long, value_name = "NAME", num_args = 0..)]
        pmc: Option<Vec<String>>,
        /// Configurations for sampling program counters
        #[arg(long, value_name = "...", num_args = 0..)]
        pc_sampling: Option<Vec<String>>,
        /// Counters for the streaming performance monitor
        #[arg(long, alias = "spm-config", value_name = "NAME", num_args = 0..)]
        spm: Option<Vec<String>>,
    },
    /// Check whether counters can be collected in one pass
    #[command(infer_long_args = true)]
    PmcCheck {
        /// Names of counters; NAME:device=N checks one GPU
        #[arg(value_name = "NAME")]
        names: Vec<String>,
    },
}

fn truth(word: &str) -> Result<bool, String> {
    crate::options::truth(word).ok_or_else(|| "yes or no".to_owned())
}

/// The content of the listing.
#[derive(Debug, Default)]
struct ListingContent {
    agents: bool,
    /// Names in columns, or descriptions.
    names: bool,
    described: bool,
    /// Counters to describe; none is all.
    only: Vec<String>,
    spm: bool,
    sampling: Option<Detail>,
}

/// The level of detail about PC sampling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    Gpus,
    Configurations,
}

impl ListingContent {
    fn from_action(action: &Action) -> ListingContent {
        match action {
            Action::List {
                pmc,
                agent,
                pc_sampling,
                spm,
            } => {
                let plain = [pmc, agent, pc_sampling, spm]
                    .iter()
                    .all(|one| one.is_none());
                ListingContent {
                    agents: *agent == Some(true),
                    names: plain || *pmc == Some(true),
                    spm: *spm == Some(true),
                    sampling: (*pc_sampling == Some(true)).then_some(Detail::Gpus),
                    ..ListingContent::default()
                }
            }
            Action::Info {
                names,
                pmc,
                pc_sampling,
                spm,
            } => {
                let described = pmc.is_some() || !names.is_empty();
                let plain = !described && pc_sampling.is_none() && spm.is_none();
                let mut only = names.clone();
                only.extend(pmc.iter().flatten().cloned());
                ListingContent {
                    agents: plain,
                    names: plain,
                    described,
                    only,
                    spm: spm.is_some(),
                    sampling: pc_sampling.is_some().then_some(Detail::Configurations),
                }
            }
            Action::PmcCheck { .. } => ListingContent::default(),
        }
    }
}

/// Counters of one GPU that are listed.
#[derive(Debug)]
struct Listed {
    /// Index among the provider's GPUs.
    gpu: usize,
    /// Counters that pass the filter, as indices, with the reason why one cannot be collected.
    counters: Vec<(usize, Option<String>)>,
}

/// Runs `rpd avail`; returns the exit status.
pub(crate) fn run(arguments: &[OsString], compat: Compat) -> Result<u8> {
    let Some(mut given) = parse::<Arguments>(NAME, arguments)? else {
        return Ok(0);
    };
    if given.command.is_none() && compat.has(Difference::AvailDefault) {
        return Ok(0);
    }
    given.common.compat = compat;
    let common = &given.common;
    let action = given.command.unwrap_or(Action::List {
        pmc: None,
        agent: None,
        pc_sampling: None,
        spm: None,
    });
    if let Action::PmcCheck { names } = &action {
        // Errors in the arguments are reported without a query to the provider.
        let requests = check::requests(names)?;
        let mut provider = open_provider(common)?;
        return check::run(&mut provider, &requests, common);
    }
    if let Some(listing) = nvidia::listing(common) {
        return crate::print(&listing);
    }
    let wanted = ListingContent::from_action(&action);
    let mut provider = open_provider(common)?;
    crate::print(&text(&mut provider, &wanted, common)?)
}

/// `--list-avail` of the main command: PC sampling, then all counters.
pub(crate) fn list_avail(plan: &Plan) -> Result<()> {
    let Some(pass) = plan.passes.first() else {
        return Ok(());
    };
    let mut provider = ProviderCounters::open(&pass.options, &pass.sdk_suffixes)?;
    warn_of_fallback(&provider);
    let common = Common {
        compat: pass.options.compat,
        ..Common::default()
    };
    let sampling = ListingContent {
        sampling: Some(Detail::Configurations),
        ..ListingContent::default()
    };
    let described = ListingContent {
        described: true,
        ..ListingContent::default()
    };
    let mut parts = [sampling, described];
    if common.compat.has(Difference::ListOrder) && !pass.options.command.is_empty() {
        parts.reverse();
    }
    for wanted in &parts {
        crate::print(&text(&mut provider, wanted, &common)?)?;
    }
    Ok(())
}

fn warn_of_fallback(provider: &ProviderCounters) {
    if let Some(reason) = &provider.fallback {
        eprintln!("rpd: {reason}: this is the simulated GPU");
    }
}

fn open_provider(common: &Common) -> Result<ProviderCounters> {
    let extra_counters = match &common.extra_counters {
        None => String::new(),
        Some(file) => {
            let text = extra_counters::read(file)
                .with_context(|| format!("--extra-counters {}", file.display()))?;
            let checked = extra::check(text)?;
            for warning in &checked.warnings {
                eprintln!("rpd: {warning}");
            }
            checked.text
        }
    };
    let options = Options {
        backend: match common.backend.as_str() {
            "rocm" => Backend::Rocm,
            "sim" => Backend::Sim,
            "cuda" => Backend::Cuda,
            _ => Backend::Auto,
        },
        rocm_root: common
            .rocm_root
            .as_ref()
            .map(|root| std::env::current_dir().map(|cwd| cwd.join(root)))
            .transpose()?,
        extra_counters,
        ..Options::default()
    };
    let open = |options: &Options| ProviderCounters::open(options, &SUFFIXES.map(str::to_owned));
    let provider = open(&options).map_err(|failure| {
        let mut plain = options.clone();
        plain.extra_counters.clear();
        extra::explain_refusal(failure, &options.extra_counters, || open(&plain))
    })?;
    warn_of_fallback(&provider);
    Ok(provider)
}

/// The whole listing, as text or as JSON.
fn text(
    provider: &mut ProviderCounters,
    wanted: &ListingContent,
    common: &Common,
) -> Result<String> {
    let listed = listed(provider, wanted, common)?;
    let mut sampling: Vec<(usize, Vec<Sampling>)> = Vec::new();
    let mut refused = String::new();
    if wanted.sampling.is_some() {
        // For all GPUs, as rocprofv3-avail does.
        for gpu in 0..provider.gpus.len() {
            let (verdict, configurations) = provider.sampling(gpu)?;
            if configurations.is_empty() {
                refused = verdict.text
            } else {
                sampling.push((gpu, configurations))
            }
        }
    }
    if common.json {
        return json::text(provider, wanted, &listed, &sampling);
    }
    let mut text = String::new();
    if provider.gpus.is_empty() {
        text += &format!("No GPU: {} finds none\n", provider.library.display());
    }
    for of in &listed {
        show::gpu(provider, wanted, of, common, &mut text);
    }
    let whole = !common.compat.has(Difference::AvailCounters);
    if wanted.agents && !wanted.names && common.device.is_none() && whole {
        show::cpus(provider, &mut text);
    }
    if wanted.spm {
        text += "The streaming performance monitor is not supported: SDK 1.0 has no such service\n";
    }
    if let Some(detail) = wanted.sampling {
        show::sampling(
            provider,
            detail,
            &sampling,
            whole.then_some(&*refused),
            &mut text,
        );
    }
    Ok(text)
}

/// The selected GPUs with their selected counters, each checked.
fn listed(
    provider: &mut ProviderCounters,
    wanted: &ListingContent,
    common: &Common,
) -> Result<Vec<Listed>> {
    let mut all = Vec::new();
    let only: BTreeSet<&str> = wanted.only.iter().map(String::as_str).collect();
    for gpu in 0..provider.gpus.len() {
        let known = &provider.gpus[gpu];
        if common.device.is_some() && common.device != known.agent.number() {
            continue;
        }
        let needle = common.filter.as_deref().unwrap_or_default().to_lowercase();
        let indices: Vec<usize> = if wanted.names || wanted.described {
            (0..known.counters.len())
                .filter(|index| {
                    let counter = &known.counters[*index];
                    (only.is_empty() || only.contains(counter.name.as_str()))
                        && (counter.name.to_lowercase().contains(&needle)
                            || counter.description.to_lowercase().contains(&needle))
                })
                .collect()
        } else {
            Vec::new()
        };
        if common.compat.has(Difference::AvailCounters) {
            let counters = indices.into_iter().map(|index| (index, None)).collect();
            all.push(Listed { gpu, counters });
            continue;
        }
        let names: Vec<String> = indices
            .iter()
            .map(|index| known.counters[*index].name.clone())
            .collect();
        let sets = names.iter().map(|name| vec![name.as_str()]);
        let verdicts = provider.check_sets(gpu, sets)?;
        let counters = indices
            .into_iter()
            .zip(verdicts)
            .map(|(index, verdict)| {
                let constant = provider.gpus[gpu].counters[index].constant;
                let available = constant || verdict.can_be_counted();
                (index, (!available).then_some(verdict.text))
            })
            .collect();
        all.push(Listed { gpu, counters });
    }
    if !common.compat.has(Difference::AvailUnknown) {
        unknown(provider, &only, common)?;
    }
    Ok(all)
}

/// Refuses names that no GPU has: an empty listing would not differ from that of a counter without a description.
fn unknown(
    provider: &ProviderCounters,
    only: &BTreeSet<&str>,
    common: &Common,
) -> Result<(), Failure> {
    let gpus: Vec<usize> = (0..provider.gpus.len())
        .filter(|gpu| {
            common.device.is_none() || common.device == provider.gpus[*gpu].agent.number()
        })
        .collect();
    if let (Some(device), true) = (common.device, gpus.is_empty()) {
        return Err(no_device(provider, device));
    }
    for name in only {
        if !gpus.is_empty()
            && gpus
                .iter()
                .all(|gpu| provider.gpus[*gpu].counter(name).is_none())
        {
            return Err(invalid_name(provider, &gpus, name));
        }
    }
    Ok(())
}

fn invalid_name(provider: &ProviderCounters, gpus: &[usize], name: &str) -> Failure {
    let near = match provider.similar_names(gpus, name).as_slice() {
        [] => String::new(),
        near => format!(" (did you mean {}?)", near.join(", ")),
    };
    Failure::failed(format!(
        "{NAME}: Invalid counter name: {name} is not a counter of {}{near}",
        provider.labels(gpus)
    ))
}

fn no_device(provider: &ProviderCounters, device: u32) -> Failure {
    let all: Vec<usize> = (0..provider.gpus.len()).collect();
    let there = match all.as_slice() {
        [] => "there is no GPU".to_owned(),
        all => format!("there is {}", provider.labels(all)),
    };
    Failure::failed(format!("{NAME}: Invalid device id: {device}: {there}"))
}

#[cfg(test)]
mod tests;
