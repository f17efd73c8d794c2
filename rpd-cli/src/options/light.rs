//! Light recordings: kernels and copies of programs that run for long.

use rpd_core::options::{CollectorOptions, ProviderChoice};
use rpd_spool::writer::SMALLEST_BOUND;

use super::given::Named;
use super::size::size;
use super::table::Given;
use crate::failure::Failure;

/// Bytes that are kept for each process, unless others are requested.
const USUAL: u64 = 64 << 20;

/// Options that request what a light recording does not have. Aggregates first: a message names the first.
pub(super) fn without_place(given: &Given) -> [&Named; 33] {
    [
        &given.sys_trace,
        &given.runtime_trace,
        &given.hip_trace,
        &given.hsa_trace,
        &given.kokkos_trace,
        &given.marker_trace,
        &given.memory_allocation_trace,
        &given.scratch_memory_trace,
        &given.rccl_trace,
        &given.rocdecode_trace,
        &given.rocjpeg_trace,
        &given.cuda_trace,
        &given.cuda_driver_trace,
        &given.hip_runtime_trace,
        &given.hip_compiler_trace,
        &given.hip_graph_trace,
        &given.hip_event_trace,
        &given.kfd_trace,
        &given.kfd_page_migration_trace,
        &given.kfd_page_mapping_trace,
        &given.kfd_queue_trace,
        &given.kfd_dropped_events_trace,
        &given.rocshmem_trace,
        &given.hipfile_trace,
        &given.hsa_core_trace,
        &given.hsa_amd_trace,
        &given.hsa_image_trace,
        &given.hsa_finalizer_trace,
        &given.annotate_args,
        &given.kernel_rename,
        &given.pc_sampling_beta_enabled,
        &given.advanced_thread_trace,
        &given.extra_counters,
    ]
}

/// The failure of an option that requests what a light recording does not have.
pub(super) fn refused(given: &Given, option: &Named) -> Failure {
    option.refused(format_args!(
        "a light recording has kernel dispatches and copies only: leave out this or {}",
        given.light.name()
    ))
}

/// Bytes that a light recording keeps for each process; `None` when the recording is not a light one.
///
/// # Errors
/// Another option requests what a light recording does not have.
pub(super) fn resolve(given: &Given, options: &CollectorOptions) -> Result<Option<u64>, Failure> {
    if !given.light.is_on() {
        return Ok(None);
    }
    let refused = |option: &Named| Err(refused(given, option));
    let requested = |option: &&Named| option.is_requested();
    if let Some(option) = without_place(given).into_iter().find(requested) {
        return refused(option);
    }
    if options.counters.any() {
        let groups_alone = !given.pmc.is_requested() && given.pmc_groups.is_requested();
        return refused(if groups_alone {
            &given.pmc_groups
        } else {
            &given.pmc
        });
    }
    if options.stacks.any() {
        return refused(&given.stacks);
    }
    if given.provider.value() == Some(ProviderChoice::Sdk) {
        return Err(given.provider.refused(format_args!(
            "`sdk` has the cost that {} avoids: leave it out, or record with --kernel-trace --memory-copy-trace",
            given.light.name()
        )));
    }
    if !options.traces.any() {
        return Err(given
            .light
            .refused("both --kernel-trace and --memory-copy-trace are off: leave one of them on"));
    }
    let keep = &given.light_keep;
    let Some(text) = keep.text() else {
        return Ok(Some(USUAL));
    };
    let bytes = size(text).map_err(|message| keep.misused(format_args!("{text}: {message}")))?;
    if bytes < SMALLEST_BOUND {
        return Err(keep.misused(format_args!(
            "{text}: at least {}K is needed",
            SMALLEST_BOUND >> 10
        )));
    }
    Ok(Some(bytes))
}

/// A warning about an option that has no effect without `--light`.
pub(super) fn without_effect(given: &Given) -> Option<String> {
    let (keep, light) = (&given.light_keep, &given.light);
    (keep.is_requested() && !light.is_on())
        .then(|| format!("{}: no effect without {}", keep.name(), light.flag()))
}
