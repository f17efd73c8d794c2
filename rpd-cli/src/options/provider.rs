//! Choice of the provider: rocprofiler-sdk, or the runtimes' own dispatch tables.

use rpd_core::options::{CounterOptions, ProviderChoice, Traces};

use super::given::OptionValues;
use crate::failure::Failure;

/// Options whose events only the SDK has, and what they are for.
const NEED_SDK: [(&str, &str); 4] = [
    ("pc-sampling-beta-enabled", "PC sampling"),
    ("advanced-thread-trace", "thread trace"),
    ("spm", "streaming counters"),
    ("kernel-replay-beta-enabled", "kernel replay"),
];

/// Options that need the SDK: the option and its purpose.
fn needs_sdk(
    given: &OptionValues,
    traces: &Traces,
    counters: &CounterOptions,
) -> Option<(&'static str, &'static str)> {
    if counters.any() {
        // Groups of `pmc` are passes by now.
        let groups = given.groups("pmc-groups").unwrap_or_default();
        let option = if groups.is_empty() {
            "pmc"
        } else {
            "pmc-groups"
        };
        return Some((option, "counters"));
    }
    // Without `..`, so that a new trace is decided on.
    let Traces {
        scratch_memory,
        hip_runtime: _,
        hip_compiler: _,
        hsa_core: _,
        hsa_amd: _,
        hsa_image: _,
        hsa_finalizer: _,
        marker: _,
        kernel: _,
        memory_copy: _,
        memory_allocation: _,
        rccl: _,
        rocdecode: _,
        rocjpeg: _,
    } = *traces;
    if scratch_memory {
        return Some(("scratch-memory-trace", "scratch memory"));
    }
    NEED_SDK
        .into_iter()
        .find(|(option, _)| given.bool(option) == Some(true))
}

/// The provider to use, of what was given.
///
/// # Errors
/// The provider was selected by name, and lacks something that other options need.
pub(super) fn resolve(
    given: &OptionValues,
    traces: &Traces,
    counters: &CounterOptions,
) -> Result<ProviderChoice, Failure> {
    let choice = given
        .text("provider")
        .and_then(ProviderChoice::of_word)
        .unwrap_or_default();
    match (choice, needs_sdk(given, traces, counters)) {
        (ProviderChoice::Direct, Some((option, what))) => Err(given.refused(
            "provider",
            format!(
                "`direct` has no {what}, which --{option} asks for: leave that out (aggregates such as --sys-trace include \
                 --scratch-memory-trace; --scratch-memory-trace=no takes it out), or use --provider sdk"
            ),
        )),
        (ProviderChoice::Auto, Some(_)) => Ok(ProviderChoice::Sdk),
        _ => Ok(choice),
    }
}
