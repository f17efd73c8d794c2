//! The agents as the SDK describes them.

use core::{ffi::c_void, ptr};
use std::sync::OnceLock;

use rocprofiler_sdk_sys::{
    HSA_CAPABILITY, HSA_ENGINE_ID, HSA_ENGINE_VERSION, HSA_HEAPTYPE, HSA_IOLINKTYPE, HsaCacheType,
    rocprofiler_agent_cache_t as Cache, rocprofiler_agent_id_t as AgentId,
    rocprofiler_agent_io_link_t as Link, rocprofiler_agent_mem_bank_t as Bank,
    rocprofiler_agent_runtime_visiblity_t as Visibility, rocprofiler_agent_type_t as AgentType,
    rocprofiler_agent_v0_t as Agent, rocprofiler_agent_version_t as AgentVersion,
    rocprofiler_dim3_t as Dim3, rocprofiler_query_available_agents_cb_t as QueryFn,
    rocprofiler_status_t as Status, rocprofiler_uuid_t as Uuid,
};

use super::context::random_offset;
use super::kept::keep;
use crate::gpu::agents::{self as device, AgentKind};

fn offset() -> u64 {
    static OFFSET: OnceLock<u64> = OnceLock::new();
    *OFFSET.get_or_init(|| random_offset(3))
}

fn id(index: usize) -> AgentId {
    AgentId {
        handle: offset() + index as u64,
    }
}

/// SDK id of the agent with an HSA handle; 0 if there is none.
pub(crate) fn of_handle(handle: u64) -> AgentId {
    device::agent(handle).map_or(AgentId::default(), |agent| id(agent.index))
}

/// Index of the agent with an SDK id.
pub(crate) fn index_of(agent: AgentId) -> Option<usize> {
    let index = usize::try_from(agent.handle.checked_sub(offset())?).ok()?;
    (index < device::agents().len()).then_some(index)
}

/// The SDK's description of an agent.
pub(crate) fn description(index: usize) -> Option<&'static Agent> {
    all().get(index).map(|agent| agent.0)
}

/// SDK id of the agent that owns a pool, or a region.
pub(crate) fn of_pool(handle: u64) -> AgentId {
    device::pool(handle).map_or(AgentId::default(), |pool| id(pool.agent))
}

/// Makes a C string that lives as long as the process.
fn text(s: &str) -> *const core::ffi::c_char {
    keep(s).as_ptr()
}

/// The 16 bytes of a UUID that the driver has for `GPU-` and hexadecimal digits; zero for a CPU.
fn uuid(text: &str) -> Uuid {
    let mut bytes = [0; 16];
    if let Some(n) = text
        .strip_prefix("GPU-")
        .and_then(|d| u64::from_str_radix(d, 16).ok())
    {
        bytes[..8].copy_from_slice(&n.to_le_bytes());
    }
    Uuid { bytes }
}

fn describe(agent: &'static device::Agent, per_type: usize) -> Agent {
    let mut visible = device::visible().iter();
    let is_visible = !agent.is_gpu() || visible.any(|seen| seen.index == agent.index);
    // Figures that the device's description lacks stay 0, which means unknown in the KFD topology.
    let caches: Vec<Cache> = agent
        .caches
        .iter()
        .map(|cache| Cache {
            processor_id_low: 0,
            size: u64::from(cache.bytes / 1024),
            level: cache.level,
            cache_line_size: 64,
            cache_lines_per_tag: 1,
            association: 0,
            latency: 0,
            // Data cache of the CPU or of a compute unit.
            r#type: HsaCacheType {
                bits: 1 | if agent.is_gpu() { 8 } else { 4 },
            },
        })
        .collect();
    let banks = vec![Bank {
        heap_type: if agent.is_gpu() {
            HSA_HEAPTYPE::FRAME_BUFFER_PUBLIC
        } else {
            HSA_HEAPTYPE::SYSTEM
        },
        width: agent.memory_width,
        mem_clk_max: agent.memory_clock_mhz,
        size_in_bytes: agent.memory_bytes,
        ..Bank::default()
    }];
    let links: Vec<Link> = device::agents()
        .iter()
        .filter(|other| other.index != agent.index)
        .filter_map(|other| {
            let link = agent.link_to(other)?;
            Some(Link {
                r#type: if link.xgmi {
                    HSA_IOLINKTYPE(11)
                } else {
                    HSA_IOLINKTYPE::PCIEXPRESS
                },
                node_from: agent.index as u32,
                node_to: other.index as u32,
                weight: link.weight,
                ..Link::default()
            })
        })
        .collect();
    // Tools keep pointers to the lists and texts until the process ends.
    let (banks, caches, links) = (
        Vec::leak(banks) as &[Bank],
        Vec::leak(caches) as &[Cache],
        Vec::leak(links) as &[Link],
    );
    let dim = |d: [u32; 3]| Dim3 {
        x: d[0],
        y: d[1],
        z: d[2],
    };
    // An empty list has no address: tools test the pointer as well as the count.
    let first = |present: bool, at: *const c_void| if present { at } else { ptr::null() };
    Agent {
        size: size_of::<Agent>() as u64,
        id: id(agent.index),
        r#type: match agent.kind {
            AgentKind::Cpu => AgentType::CPU,
            AgentKind::Gpu => AgentType::GPU,
        },
        cpu_cores_count: agent.cpu_cores,
        simd_count: agent.simds,
        mem_banks_count: banks.len() as u32,
        caches_count: caches.len() as u32,
        io_links_count: links.len() as u32,
        cpu_core_id_base: 0,
        simd_id_base: agent.simd_id_base,
        max_waves_per_simd: agent.max_waves_per_simd,
        lds_size_in_kb: agent.lds_kib,
        gds_size_in_kb: 0,
        num_gws: agent.gws,
        wave_front_size: agent.wave_size,
        num_xcc: agent.xccs,
        cu_count: agent.cus,
        array_count: agent.arrays,
        num_shader_banks: agent.shader_banks,
        simd_arrays_per_engine: agent.arrays_per_engine,
        cu_per_simd_array: agent.cus_per_array,
        simd_per_cu: agent.simds_per_cu,
        max_slots_scratch_cu: agent.scratch_slots_per_cu,
        gfx_target_version: agent.gfx_version,
        vendor_id: agent.vendor_id as u16,
        device_id: agent.device_id as u16,
        location_id: agent.location_id,
        domain: agent.domain,
        drm_render_minor: agent.drm_render_minor,
        num_sdma_engines: agent.sdma_engines,
        num_sdma_xgmi_engines: agent.sdma_xgmi_engines,
        num_sdma_queues_per_engine: agent.sdma_queues_per_engine,
        num_cp_queues: agent.cp_queues,
        max_engine_clk_ccompute: agent.cpu_clock_mhz,
        max_engine_clk_fcompute: agent.gpu_clock_mhz,
        sdma_fw_version: HSA_ENGINE_VERSION {
            bits: agent.sdma_fw,
        },
        fw_version: HSA_ENGINE_ID { bits: agent.cp_fw },
        capability: HSA_CAPABILITY {
            bits: agent.capability,
        },
        cu_per_engine: agent.cus_per_engine,
        max_waves_per_cu: agent.max_waves_per_cu,
        family_id: agent.family_id,
        workgroup_max_size: agent.workgroup_max_size,
        grid_max_size: agent.grid_max_size,
        // The size of a GPU's own memory, which a host does not have.
        local_mem_size: if agent.is_gpu() {
            agent.memory_bytes
        } else {
            0
        },
        hive_id: 0,
        gpu_id: agent.gpu_id,
        workgroup_max_dim: dim(agent.workgroup_max_dim),
        grid_max_dim: dim(agent.grid_max_dim),
        mem_banks: first(!banks.is_empty(), banks.as_ptr().cast()).cast(),
        caches: first(!caches.is_empty(), caches.as_ptr().cast()).cast(),
        io_links: first(!links.is_empty(), links.as_ptr().cast()).cast(),
        name: text(&agent.name),
        vendor_name: text(agent.vendor),
        product_name: text(&agent.product),
        model_name: text(agent.model),
        node_id: agent.index as u32,
        logical_node_id: agent.index as i32,
        logical_node_type_id: per_type as i32,
        // One bit for each runtime (HSA, HIP, ...): hidden devices are hidden from all of them here.
        runtime_visibility: Visibility {
            bits: if is_visible { 0b1111 } else { 0 },
        },
        uuid: uuid(&agent.uuid),
    }
}

/// The SDK's description of an agent, which is never changed or freed.
struct Fixed(&'static Agent);
// SAFETY: immutable, and so is what its pointers lead to.
unsafe impl Sync for Fixed {}
// SAFETY: as above.
unsafe impl Send for Fixed {}

fn all() -> &'static [Fixed] {
    static ALL: OnceLock<Vec<Fixed>> = OnceLock::new();
    ALL.get_or_init(|| {
        let agents = device::agents();
        let kind = |n: usize| agents[n].kind;
        (0..agents.len())
            .map(|n| {
                let before = (0..n).filter(|&m| kind(m) == kind(n)).count();
                Fixed(Box::leak(Box::new(describe(&agents[n], before))))
            })
            .collect()
    })
}

/// `rocprofiler_query_available_agents`.
///
/// # Safety
/// The callback can be called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_query_available_agents(
    version: AgentVersion,
    callback: QueryFn,
    agent_size: usize,
    user_data: *mut c_void,
) -> Status {
    let Some(callback) = callback else {
        return Status::ERROR_INVALID_ARGUMENT;
    };
    if version != AgentVersion::VERSION_0 {
        return Status::ERROR_INVALID_ARGUMENT;
    }
    if agent_size > size_of::<Agent>() {
        return Status::ERROR_INCOMPATIBLE_ABI;
    }
    let mut pointers: Vec<*const c_void> =
        all().iter().map(|a| ptr::from_ref(a.0).cast()).collect();
    // SAFETY: the caller gave the function for this; the descriptions are never freed.
    unsafe { callback(version, pointers.as_mut_ptr(), pointers.len(), user_data) }
}
