//! Choice of the provider: rocprofiler-sdk, or the runtimes' own dispatch tables.

use rpd_core::options::{ProviderChoice, Traces};
use rpd_spool::options::CollectorOptions;

use super::given::OptionValues;
use super::light;
use super::sampling::BETA;
use super::thread_trace::THREAD_TRACE;
use crate::failure::Failure;

/// Options that need the SDK: the option and its purpose.
fn needs_sdk(
    given: &OptionValues,
    options: &CollectorOptions,
) -> Option<(&'static str, &'static str)> {
    // Without `..`, so that a new option is decided on.
    let CollectorOptions {
        traces,
        counters,
        sampling,
        thread_trace,
        periods: _,
        selected_regions: _,
        selected_regions_ref_count: _,
        hip_args: _,
        annotate_args: _,
        argument_results: _,
        kernel_rename: _,
        streams: _,
        disable_signal_handlers: _,
        kokkos: _,
        original_semantics: _,
        environment: _,
        variables: _,
        stacks: _,
        capture: _,
        check_kernels: _,
        provider: _,
        recent_bytes: _,
    } = options;
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
    if given.bool(BETA) == Some(true) {
        return Some((BETA, "PC sampling"));
    }
    if thread_trace.is_some() {
        return Some((THREAD_TRACE, "thread trace"));
    }
    // A variable allows sampling as well as its switch.
    sampling
        .is_some()
        .then_some(("pc-sampling-method", "PC sampling"))
}

/// The provider to use, of what was given.
///
/// # Errors
/// The provider was selected by name or is that of light recordings, and lacks something that other options need.
pub(super) fn resolve(
    given: &OptionValues,
    options: &CollectorOptions,
) -> Result<ProviderChoice, Failure> {
    let needed = needs_sdk(given, options);
    // A light recording is made without the SDK.
    if options.recent_bytes.is_some() {
        return match needed {
            Some((option, _)) => Err(light::refused(given, option)),
            None => Ok(ProviderChoice::Direct),
        };
    }
    let choice = given
        .text("provider")
        .and_then(ProviderChoice::of_word)
        .unwrap_or_default();
    match (choice, needed) {
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
