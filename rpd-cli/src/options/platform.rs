//! What the target runs on: the simulator or an installation, and the libraries of that.

use std::path::PathBuf;

use rpd_core::options::Backend;

use super::given::Named;
use super::resolve::Environment;
use super::table::Given;
use crate::failure::Failure;

/// The platform that was requested.
///
/// # Errors
/// A simulated GPU, or what only AMD's GPUs have, is requested on another platform.
pub(super) fn backend(given: &Given) -> Result<Backend, Failure> {
    let simulates = given.sim_gpu.is_given();
    match given.backend.value() {
        Some(Backend::Rocm) if simulates => Err(given
            .sim_gpu
            .refused("names a simulated GPU, and --backend rocm selects the ROCm installation")),
        Some(Backend::Cuda) if simulates => Err(given
            .sim_gpu
            .refused("names a simulated GPU, and --backend cuda selects NVIDIA GPUs")),
        Some(Backend::Cuda) => match without_place(given) {
            Some((option, instead)) => Err(option.refused(format_args!(
                "it is for AMD GPUs, and --backend cuda selects NVIDIA GPUs: leave it out{instead}"
            ))),
            None => Ok(Backend::Cuda),
        },
        None | Some(Backend::Auto) if simulates => Ok(Backend::Sim),
        other => Ok(other.unwrap_or_default()),
    }
}

/// The first option that requests what only AMD's GPUs have, and how to have something like it on NVIDIA's.
fn without_place(given: &Given) -> Option<(&Named, &'static str)> {
    const COUNTERS: &str = "; ncu --metrics counts on NVIDIA GPUs";
    const SAMPLES: &str = "; --pc-sampling-method stochastic samples on NVIDIA GPUs";
    let options: [(&Named, &str); 5] = [
        (&given.pmc, COUNTERS),
        (&given.pmc_groups, COUNTERS),
        (&given.extra_counters, COUNTERS),
        (&given.advanced_thread_trace, SAMPLES),
        (&given.scratch_memory_trace, ""),
    ];
    options
        .into_iter()
        .find(|(option, _)| option.is_requested() && !option.is_included())
}

/// Libraries to preload before those that are inherited.
pub(super) fn preload(given: &Given, environment: &Environment) -> Vec<PathBuf> {
    let paths: Vec<&str> = match given.preload.get() {
        Some(list) => list.iter().map(String::as_str).collect(),
        None => environment
            .get("ROCPROF_PRELOAD")
            .unwrap_or_default()
            .split(':')
            .collect(),
    };
    paths
        .into_iter()
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
        .collect()
}

/// Warnings about options of an installation where the target runs on the simulator.
pub(super) fn unused_installation(given: &Given) -> Vec<String> {
    if given.backend.value() != Some(Backend::Sim) && !given.sim_gpu.is_given() {
        return Vec::new();
    }
    let options: [&Named; 3] = [&given.rocm_root, &given.sdk_soversion, &given.sdk_version];
    let unused = options.into_iter().filter(|option| option.is_requested());
    unused
        .map(|option| {
            format!(
                "{}: no effect, since the simulated GPU needs no installation",
                option.name()
            )
        })
        .collect()
}

/// What follows `.so` in the names of the SDK library that are tried when no option gives it.
pub(crate) fn default_sdk_suffixes() -> Vec<String> {
    sdk_suffixes(&Given::default())
}

/// What follows `.so` in the names of the SDK library that are tried.
pub(super) fn sdk_suffixes(given: &Given) -> Vec<String> {
    let (major, version) = (given.sdk_soversion.value(), given.sdk_version.text());
    let mut suffixes = Vec::new();
    suffixes.extend(version.map(|version| format!(".{version}")));
    suffixes.push(format!(".{}", major.unwrap_or(1)));
    if major.is_none() && version.is_none() {
        suffixes.push(String::new());
    }
    suffixes
}
