//! Traces: what aggregates include, and what is recorded.

use rpd_core::compat::{Compat, Difference};
use rpd_core::options::Traces;

use super::given::Setting;
use super::resolve::Environment;
use super::summary;
use super::table::Given;
use super::value::variable_truth;
use crate::failure::Failure;

/// A switch of the options.
type Switch = fn(&mut Given) -> &mut Setting<bool>;

/// Declares aggregates with their members.
macro_rules! aggregates {
    ($($aggregate:ident: $($member:ident)*;)*) => {
        &[$((|given| &mut given.$aggregate, &[$(|given| &mut given.$member,)*]),)*]
    };
}

/// Members of the aggregates, in the order in which these are evaluated: an aggregate comes before those it includes.
pub(super) const AGGREGATES: &[(Switch, &[Switch])] = aggregates! {
    kokkos_trace: marker_trace kernel_rename;
    sys_trace: hip_trace hsa_trace marker_trace kernel_trace memory_copy_trace memory_allocation_trace
        scratch_memory_trace rccl_trace rocdecode_trace rocjpeg_trace cuda_trace cuda_driver_trace
        kfd_trace rocshmem_trace hipfile_trace;
    runtime_trace: hip_runtime_trace marker_trace kernel_trace memory_copy_trace memory_allocation_trace
        scratch_memory_trace rccl_trace rocdecode_trace rocjpeg_trace cuda_trace
        kfd_trace rocshmem_trace hipfile_trace;
    light: kernel_trace memory_copy_trace;
    hip_trace: hip_compiler_trace hip_runtime_trace;
    hip_runtime_trace: hip_graph_trace hip_event_trace;
    kfd_trace: kfd_page_migration_trace kfd_page_mapping_trace kfd_queue_trace kfd_dropped_events_trace;
    hsa_trace: hsa_core_trace hsa_amd_trace hsa_image_trace hsa_finalizer_trace;
};

/// Turns the members of aggregates on that were not given themselves.
pub(super) fn include_members(given: &mut Given) {
    for (aggregate, members) in AGGREGATES {
        if aggregate(given).is_on() {
            for member in *members {
                member(given).include();
            }
        }
    }
}

/// The traces that are on.
pub(super) fn resolve(given: &Given, compat: Compat) -> Traces {
    // The version of the original that is followed has none of them.
    let without_newer = compat.has(Difference::GraphTraces);
    let is_on = |trace: &Setting<bool>| trace.is_on() && !(without_newer && trace.is_included());
    let driver = is_on(&given.kfd_trace);
    let of_driver = |trace: &Setting<bool>| is_on(trace) || trace.is_on() && driver;
    Traces {
        hip_runtime: given.hip_runtime_trace.is_on(),
        hip_compiler: given.hip_compiler_trace.is_on(),
        hsa_core: given.hsa_core_trace.is_on(),
        hsa_amd: given.hsa_amd_trace.is_on(),
        hsa_image: given.hsa_image_trace.is_on(),
        hsa_finalizer: given.hsa_finalizer_trace.is_on(),
        marker: given.marker_trace.is_on(),
        kernel: given.kernel_trace.is_on(),
        memory_copy: given.memory_copy_trace.is_on(),
        memory_allocation: given.memory_allocation_trace.is_on(),
        scratch_memory: given.scratch_memory_trace.is_on(),
        hip_graph: is_on(&given.hip_graph_trace),
        hip_event: is_on(&given.hip_event_trace),
        kfd_page_migration: of_driver(&given.kfd_page_migration_trace),
        kfd_page_mapping: of_driver(&given.kfd_page_mapping_trace),
        kfd_queue: of_driver(&given.kfd_queue_trace),
        kfd_dropped_events: of_driver(&given.kfd_dropped_events_trace),
        rocshmem: is_on(&given.rocshmem_trace),
        hipfile: is_on(&given.hipfile_trace),
        rccl: given.rccl_trace.is_on(),
        rocdecode: given.rocdecode_trace.is_on(),
        rocjpeg: given.rocjpeg_trace.is_on(),
        cuda: given.cuda_trace.is_on(),
        cuda_driver: given.cuda_driver_trace.is_on(),
    }
}

/// Checks that something is recorded, and that tables that were requested have a content; a warning otherwise.
/// `others`: something is recorded besides traces.
///
/// # Errors
/// Nothing is recorded, and an option or `ROCPROFILER_CI` requires that something is.
pub(super) fn check_any(
    given: &Given,
    environment: &Environment,
    traces: &Traces,
    others: bool,
) -> Result<Option<String>, Failure> {
    let queue_is_trace =
        given.group_by_queue.is_on() && environment.compat.has(Difference::QueueIsTrace);
    let needed_by = summary::needs_traces(given);
    if traces.any() || others || queue_is_trace {
        let in_vain = needed_by.filter(|_| !traces.any());
        return Ok(in_vain.map(|option| {
            format!(
                "{}: counters and samples have no durations, so there is nothing to show; --kernel-trace records those of kernels",
                option.flag()
            )
        }));
    }
    if let Some(option) = needed_by {
        return Err(Failure::failed(format!(
            "No tracing options were enabled for {} option",
            option.flag()
        )));
    }
    if let Some(value) = environment.get("ROCPROFILER_CI")
        && variable_truth(value)
    {
        return Err(Failure::failed(format!(
            "No tracing options were enabled (an error because of ROCPROFILER_CI={value})"
        )));
    }
    Ok(Some(
        "No tracing options were enabled: nothing will be recorded (try --sys-trace)".to_owned(),
    ))
}
