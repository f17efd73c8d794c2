//! The agents, as the provider describes them: the raw structs, so that a later reader may use more of their fields.

use std::ffi::c_void;
use std::sync::OnceLock;

use rocprofiler_sdk_sys::{
    Functions, rocprofiler_agent_type_t, rocprofiler_agent_v0_t, rocprofiler_agent_version_t,
    rocprofiler_status_t,
};

use super::payload::sized;
use super::query::visit3;
use crate::agent;
use crate::recording::meta;

/// Handles of the GPUs, in the order of their topology nodes.
static GPUS: OnceLock<Vec<u64>> = OnceLock::new();

/// Handles of the GPUs; the index of one is the number that users select it by.
pub(super) fn gpus() -> &'static [u64] {
    GPUS.get().map_or(&[], Vec::as_slice)
}

/// Sizes of the agent struct to query with: this build's, then that of the first releases that had one.
const SIZES: [usize; 2] = [size_of::<rocprofiler_agent_v0_t>(), 296];

pub(super) fn record(functions: &Functions) {
    let mut status = rocprofiler_status_t::SUCCESS;
    for size in SIZES {
        status = visit3(
            |_: rocprofiler_agent_version_t, agents: *mut *const c_void, count: usize| {
                // SAFETY: the provider's array of that many agents, of the version requested.
                unsafe { write_all(agents, count) };
            },
            // SAFETY: callback and data belong together.
            |visit, data| unsafe {
                (functions.rocprofiler_query_available_agents)(
                    rocprofiler_agent_version_t::VERSION_0,
                    visit,
                    size,
                    data,
                )
            },
        );
        if status != rocprofiler_status_t::ERROR_INCOMPATIBLE_ABI {
            break;
        }
    }
    if status != rocprofiler_status_t::SUCCESS {
        meta::note("the provider does not describe its agents");
    }
}

/// # Safety
///
/// `agents` is null or an array of `count` pointers to agent structs of version 0.
unsafe fn write_all(agents: *mut *const c_void, count: usize) {
    if agents.is_null() {
        return;
    }
    let mut gpus = Vec::new();
    // SAFETY: as this function demands.
    for agent in unsafe { std::slice::from_raw_parts(agents, count) } {
        // SAFETY: as this function demands.
        let Some(known) = (unsafe { write(*agent) }) else {
            continue;
        };
        if known.r#type == rocprofiler_agent_type_t::GPU {
            gpus.push((known.node_id, known.id.handle));
        }
    }
    gpus.sort_by_key(|&(node, _)| node);
    GPUS.get_or_init(|| gpus.into_iter().map(|(_, handle)| handle).collect());
}

/// # Safety
///
/// `agent` is null or points to an agent struct of version 0.
unsafe fn write(agent: *const c_void) -> Option<rocprofiler_agent_v0_t> {
    // SAFETY: as this function demands.
    unsafe {
        let known = sized::<rocprofiler_agent_v0_t>(agent)?;
        agent::record(agent, &known);
        Some(known)
    }
}
