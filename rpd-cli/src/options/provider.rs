//! Choice of the provider: rocprofiler-sdk, or the runtimes' own dispatch tables.

use rpd_core::options::{ProviderChoice, Traces};
use rpd_spool::options::CollectorOptions;

use super::given::{Named, Setting};
use super::light;
use super::table::Given;
use crate::failure::Failure;

/// The traces that newer SDKs have or that only some kernel drivers have, and that were requested by their own options.
pub(super) fn newer_requested(given: &Given) -> impl Iterator<Item = &Named> {
    let newer: [&Setting<bool>; 9] = [
        &given.hip_graph_trace,
        &given.hip_event_trace,
        &given.kfd_trace,
        &given.kfd_page_migration_trace,
        &given.kfd_page_mapping_trace,
        &given.kfd_queue_trace,
        &given.kfd_dropped_events_trace,
        &given.rocshmem_trace,
        &given.hipfile_trace,
    ];
    let requested = newer
        .into_iter()
        .filter(|trace| trace.is_on() && !trace.is_included());
    requested.map(|trace| -> &Named { trace })
}

/// Options that need the SDK: the option and its purpose.
pub(super) fn needs_sdk<'a>(
    given: &'a Given,
    options: &CollectorOptions,
) -> Option<(&'a Named, &'static str)> {
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
        cuda_api_all: _,
        cuda_graphs: _,
        recent_bytes: _,
        spool_limit: _,
        in_pieces: _,
        newer_sdk: _,
    } = options;
    if counters.any() {
        // Groups of `pmc` are passes by now.
        let option: &Named = if given.pmc_groups.list().is_empty() {
            &given.pmc
        } else {
            &given.pmc_groups
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
        cuda: _,
        cuda_driver: _,
        hip_graph: _,
        hip_event: _,
        kfd_page_migration: _,
        kfd_page_mapping: _,
        kfd_queue: _,
        kfd_dropped_events: _,
        rocshmem: _,
        hipfile: _,
    } = *traces;
    // The traces that need the SDK. Aggregates include them.
    if scratch_memory {
        return Some((&given.scratch_memory_trace, "scratch memory"));
    }
    // SDKs in use lack them: an aggregate alone is no reason for one.
    let graphs = given.hip_graph_trace.key();
    let newer = newer_requested(given).find(|option| option.key() != graphs);
    if let Some(option) = newer {
        let what = match option.key() {
            "hip_event_trace" => "HIP events",
            "rocshmem_trace" => "rocSHMEM calls",
            "hipfile_trace" => "hipFile calls",
            _ => "events of the kernel driver",
        };
        return Some((option, what));
    }
    if given.pc_sampling_beta_enabled.is_on() {
        return Some((&given.pc_sampling_beta_enabled, "PC sampling"));
    }
    if thread_trace.is_some() {
        return Some((&given.advanced_thread_trace, "thread trace"));
    }
    // A variable allows sampling as well as its switch.
    sampling
        .is_some()
        .then_some((&given.pc_sampling_method, "PC sampling"))
}

/// Sets the provider to use, of what was given. What it lacks of an aggregate is left out; the warning says so.
///
/// # Errors
/// The provider was selected by name or is that of light recordings, and lacks something that other options need.
pub(super) fn resolve(
    given: &Given,
    options: &mut CollectorOptions,
) -> Result<Option<String>, Failure> {
    let choice = given.provider.value().unwrap_or_default();
    let mut warning = None;
    if choice == ProviderChoice::Direct
        && options.traces.scratch_memory
        && given.scratch_memory_trace.is_included()
    {
        options.traces.scratch_memory = false;
        warning = Some(format!(
            "{}: `direct` has no scratch memory, which is left out (--provider sdk has it)",
            given.provider.name()
        ));
    }
    let needed = needs_sdk(given, options);
    // A light recording is made without the SDK.
    if options.recent_bytes.is_some() {
        if let Some((option, _)) = needed {
            return Err(light::refused(given, option));
        }
        options.provider = ProviderChoice::Direct;
        return Ok(warning);
    }
    options.provider = match (choice, needed) {
        (ProviderChoice::Direct, Some((option, what))) => {
            return Err(given.provider.refused(format_args!(
                "`direct` has no {what}, which {} asks for: leave that out, or use --provider sdk",
                option.flag()
            )));
        }
        (ProviderChoice::Auto, Some(_)) => ProviderChoice::Sdk,
        _ => choice,
    };
    Ok(warning)
}
