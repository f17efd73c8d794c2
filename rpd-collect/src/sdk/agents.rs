//! The agents, as the provider describes them: raw, so that nothing is lost that a later reader understands.

use std::ffi::c_void;
use std::sync::OnceLock;

use rocprofiler_sdk_sys::{
    Functions, rocprofiler_agent_cache_t, rocprofiler_agent_io_link_t,
    rocprofiler_agent_mem_bank_t, rocprofiler_agent_type_t, rocprofiler_agent_v0_t,
    rocprofiler_agent_version_t, rocprofiler_status_t,
};
use rpd_spool::format::{AgentRecord, tag};

use crate::recording::guard::Service;
use crate::recording::process::header;

static SERVICE: Service = Service::new("agents");

/// Handles of the GPUs, in the order of their topology nodes.
static GPUS: OnceLock<Vec<u64>> = OnceLock::new();

/// Handles of the GPUs; the place of one is the number that users know it by.
pub(crate) fn gpus() -> &'static [u64] {
    GPUS.get().map_or(&[], Vec::as_slice)
}

/// Sizes of the agent struct to ask with: this build's, then that of the first releases that had one.
const SIZES: [usize; 2] = [size_of::<rocprofiler_agent_v0_t>(), 296];

/// No agent struct is this large; a size beyond it is not believed.
const LARGEST: usize = 4096;

pub(crate) fn record(functions: &Functions) {
    let mut status = rocprofiler_status_t::SUCCESS;
    for size in SIZES {
        // SAFETY: the callback matches the version asked for.
        status = unsafe {
            (functions.rocprofiler_query_available_agents)(
                rocprofiler_agent_version_t::VERSION_0,
                Some(on_agents),
                size,
                std::ptr::null_mut(),
            )
        };
        if status != rocprofiler_status_t::ERROR_INCOMPATIBLE_ABI {
            break;
        }
    }
    if status != rocprofiler_status_t::SUCCESS {
        crate::recording::meta::note("the provider does not describe its agents");
    }
}

unsafe extern "C" fn on_agents(
    _version: rocprofiler_agent_version_t,
    agents: *mut *const c_void,
    count: usize,
    _data: *mut c_void,
) -> rocprofiler_status_t {
    SERVICE.run(|| {
        if agents.is_null() {
            return;
        }
        let mut gpus = Vec::new();
        // SAFETY: the provider's array of `count` pointers.
        for agent in unsafe { std::slice::from_raw_parts(agents, count) } {
            // SAFETY: each points to an agent struct.
            let Some(known) = (unsafe { write(*agent) }) else {
                continue;
            };
            if known.r#type == rocprofiler_agent_type_t::GPU {
                gpus.push((known.node_id, known.id.handle));
            }
        }
        gpus.sort_by_key(|&(node, _)| node);
        GPUS.get_or_init(|| gpus.into_iter().map(|(_, handle)| handle).collect());
    });
    rocprofiler_status_t::SUCCESS
}

/// # Safety
///
/// `agent` is null or points to an agent struct of version 0.
unsafe fn write(agent: *const c_void) -> Option<rocprofiler_agent_v0_t> {
    // SAFETY: as this function demands.
    let known = unsafe { crate::recording::text::sized::<rocprofiler_agent_v0_t>(agent) }?;
    let mut tail = Vec::new();
    let mut put = |bytes: &[u8]| {
        tail.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        tail.extend_from_slice(bytes);
    };
    let size = usize::try_from(known.size).unwrap_or(0).min(LARGEST);
    // SAFETY: the struct has as many bytes as its size says; the arrays have the lengths that stand beside them; texts
    // are valid like the struct. Fields that the size does not cover are null or 0 in `known`.
    unsafe {
        put(bytes_of(agent.cast::<u8>(), size));
        put(bytes_of(known.mem_banks, known.mem_banks_count as usize));
        put(bytes_of(known.caches, known.caches_count as usize));
        put(bytes_of(known.io_links, known.io_links_count as usize));
        for text in [
            known.name,
            known.vendor_name,
            known.product_name,
            known.model_name,
        ] {
            put(crate::recording::text::text(text));
        }
    }
    let agent = AgentRecord {
        header: header(0, 0),
        handle: known.id.handle,
    };
    crate::recording::meta::write(tag::AGENT, 0, &agent, &tail);
    Some(known)
}

const _: () = {
    // The arrays are stored as bytes; these are the sizes their readers expect.
    assert!(size_of::<rocprofiler_agent_mem_bank_t>() == 24);
    assert!(size_of::<rocprofiler_agent_cache_t>() == 40);
    assert!(size_of::<rocprofiler_agent_io_link_t>() == 48);
};

/// The bytes of an array.
///
/// # Safety
///
/// `array` is null or points to `count` elements without padding.
unsafe fn bytes_of<'a, T>(array: *const T, count: usize) -> &'a [u8] {
    if array.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: as this function demands.
    unsafe { std::slice::from_raw_parts(array.cast(), count * size_of::<T>()) }
}
