//! Agents: the CPUs and GPUs of the machine.

use core::ffi::{c_char, c_void};

use crate::hardware::{
    HSA_CAPABILITY, HSA_ENGINE_ID, HSA_ENGINE_VERSION, HSA_HEAPTYPE, HSA_IOLINKTYPE,
    HSA_LINKPROPERTY, HSA_MEMORYPROPERTY, HsaCacheType, rocprofiler_agent_runtime_visiblity_t,
};
use crate::ids::{rocprofiler_agent_id_t, rocprofiler_dim3_t, rocprofiler_uuid_t};
use crate::macros::{c_enum, c_struct};
use crate::status::rocprofiler_status_t;

c_enum! {
    /// Version of the agent struct that a query delivers.
    rocprofiler_agent_version_t: u32 {
        /// No value.
        VERSION_NONE = 0 => c"ROCPROFILER_AGENT_INFO_VERSION_NONE",
        /// The struct `rocprofiler_agent_v0_t`.
        VERSION_0 = 1 => c"ROCPROFILER_AGENT_INFO_VERSION_0",
        /// End marker of this version of the list.
        VERSION_LAST = 2 => c"ROCPROFILER_AGENT_INFO_VERSION_LAST",
    }
}

c_enum! {
    /// Whether an agent is a CPU or a GPU.
    rocprofiler_agent_type_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_AGENT_TYPE_NONE",
        /// A NUMA node of the host with its cores and memory.
        CPU = 1 => c"ROCPROFILER_AGENT_TYPE_CPU",
        /// A GPU, or one partition of it.
        GPU = 2 => c"ROCPROFILER_AGENT_TYPE_GPU",
        /// End marker of this version of the list.
        LAST = 3 => c"ROCPROFILER_AGENT_TYPE_LAST",
    }
}

c_struct! {
    /// An agent: a CPU or a GPU. Read only fields that `size` covers.
    struct rocprofiler_agent_v0_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Handle of the agent.
        pub id: rocprofiler_agent_id_t,
        /// CPU or GPU.
        pub r#type: rocprofiler_agent_type_t,
        /// Number of CPU cores, 0 for a GPU.
        pub cpu_cores_count: u32,
        /// Number of SIMDs, 0 for a CPU.
        pub simd_count: u32,
        /// Number of entries that `mem_banks` points to.
        pub mem_banks_count: u32,
        /// Number of entries that `caches` points to.
        pub caches_count: u32,
        /// Number of entries that `io_links` points to.
        pub io_links_count: u32,
        /// Lowest processor number of the cores of the node, 0 for a GPU.
        pub cpu_core_id_base: u32,
        /// Lowest processor number of the SIMDs of the node, 0 for a CPU.
        pub simd_id_base: u32,
        /// Number of waves that a SIMD can hold.
        pub max_waves_per_simd: u32,
        /// LDS per compute unit in KiB.
        pub lds_size_in_kb: u32,
        /// GDS in KiB.
        pub gds_size_in_kb: u32,
        /// Number of barriers for global wave sync.
        pub num_gws: u32,
        /// Lanes of a wave: 64 or 32, 0 for a CPU.
        pub wave_front_size: u32,
        /// Number of accelerator complex dies (XCC), 1 for a GPU of one die.
        pub num_xcc: u32,
        /// Number of compute units of the whole GPU.
        pub cu_count: u32,
        /// Number of shader arrays of the whole GPU.
        pub array_count: u32,
        /// Number of shader engines of the whole GPU.
        pub num_shader_banks: u32,
        /// Shader arrays in each shader engine.
        pub simd_arrays_per_engine: u32,
        /// Compute units per array.
        pub cu_per_simd_array: u32,
        /// SIMDs per compute unit.
        pub simd_per_cu: u32,
        /// Waves of a compute unit that may use scratch at one time; 0 where the hardware sets no limit.
        pub max_slots_scratch_cu: u32,
        /// Target as `10000*major + 100*minor + stepping`: 90010 for gfx90a.
        pub gfx_target_version: u32,
        /// PCI vendor id, 0x1002 for AMD; 0 for a CPU.
        pub vendor_id: u16,
        /// PCI device id; 0 for a CPU.
        pub device_id: u16,
        /// PCI bus, device and function: bus in bits 8 to 15, device in 3 to 7, function in 0 to 2.
        pub location_id: u32,
        /// PCI domain (segment) of the GPU.
        pub domain: u32,
        /// N of the device file `/dev/dri/renderDN`; 0 for a CPU.
        pub drm_render_minor: u32,
        /// Number of copy engines (SDMA) for transfers over PCIe.
        pub num_sdma_engines: u32,
        /// Number of copy engines for transfers over xGMI links.
        pub num_sdma_xgmi_engines: u32,
        /// Number of queues that one copy engine serves.
        pub num_sdma_queues_per_engine: u32,
        /// Number of compute queues that the command processor serves.
        pub num_cp_queues: u32,
        /// Highest CPU clock in MHz.
        pub max_engine_clk_ccompute: u32,
        /// Highest GPU clock in MHz.
        pub max_engine_clk_fcompute: u32,
        /// Version of the firmware of the copy engines; 0 for a CPU.
        pub sdma_fw_version: HSA_ENGINE_VERSION,
        /// Version of the firmware of the compute engine; 0 for a CPU.
        pub fw_version: HSA_ENGINE_ID,
        /// Capabilities of driver and GPU, as the KFD reports them; 0 for a CPU.
        pub capability: HSA_CAPABILITY,
        /// Compute units in each shader engine.
        pub cu_per_engine: u32,
        /// Waves a compute unit can hold.
        pub max_waves_per_cu: u32,
        /// Family of the chip, as the amdgpu driver numbers families (`AMDGPU_FAMILY_*`).
        pub family_id: u32,
        /// Most work items in a workgroup.
        pub workgroup_max_size: u32,
        /// Most work items in a grid.
        pub grid_max_size: u32,
        /// Device memory in bytes.
        pub local_mem_size: u64,
        /// Id of the group of GPUs linked by xGMI that the GPU is in; 0 for none.
        pub hive_id: u64,
        /// Number by which the KFD names the GPU in its calls; 0 for a CPU.
        pub gpu_id: u64,
        /// Most work items of a workgroup in each dimension.
        pub workgroup_max_dim: rocprofiler_dim3_t,
        /// Most work items of a grid in each dimension.
        pub grid_max_dim: rocprofiler_dim3_t,
        /// Array of `mem_banks_count` memory banks; null when there are none.
        pub mem_banks: *const rocprofiler_agent_mem_bank_t,
        /// Array of `caches_count` caches; null when there are none.
        pub caches: *const rocprofiler_agent_cache_t,
        /// Array of `io_links_count` links to other agents; null when there are none.
        pub io_links: *const rocprofiler_agent_io_link_t,
        /// Target of a GPU, such as `gfx90a`; model of a CPU.
        pub name: *const c_char,
        /// Vendor of the chip, such as `AMD` or `CPU`.
        pub vendor_name: *const c_char,
        /// Name under which the product is sold.
        pub product_name: *const c_char,
        /// Model of a GPU as the driver names it; empty for a CPU.
        pub model_name: *const c_char,
        /// Number of the node in the KFD topology (`/sys/class/kfd/kfd/topology/nodes`).
        pub node_id: u32,
        /// Position among all agents, from 0.
        pub logical_node_id: i32,
        /// Position among the agents of the same type, from 0.
        pub logical_node_type_id: i32,
        /// Runtimes that are expected to see the agent, by the variables such as `ROCR_VISIBLE_DEVICES`.
        pub runtime_visibility: rocprofiler_agent_runtime_visiblity_t,
        /// Unique id of the device.
        pub uuid: rocprofiler_uuid_t,
    }
}

/// The version of the agent struct that these declarations describe.
pub type rocprofiler_agent_t = rocprofiler_agent_v0_t;

c_struct! {
    /// One entry of the array `caches` of an agent.
    struct rocprofiler_agent_cache_t {
        /// First processor that shares the cache.
        pub processor_id_low: u64,
        /// Size in KiB.
        pub size: u64,
        /// 1 for the caches next to the cores, larger for those further out.
        pub level: u32,
        /// Bytes per line.
        pub cache_line_size: u32,
        /// Number of cache lines that share one tag.
        pub cache_lines_per_tag: u32,
        /// Number of ways of a set.
        pub association: u32,
        /// Time of an access in ns; 0 when unknown.
        pub latency: u32,
        /// Type bits: data, instruction, CPU or GPU.
        pub r#type: HsaCacheType,
    }
}

c_struct! {
    /// One entry of the array `mem_banks` of an agent.
    struct rocprofiler_agent_mem_bank_t {
        /// Kind of the memory: of the system, of the device, LDS and others.
        pub heap_type: HSA_HEAPTYPE,
        /// Whether the bank can be plugged at run time, and whether it keeps its content.
        pub flags: HSA_MEMORYPROPERTY,
        /// Bus width in bits.
        pub width: u32,
        /// Highest clock in MHz.
        pub mem_clk_max: u32,
        /// Physical size of the bank.
        pub size_in_bytes: u64,
    }
}

c_struct! {
    /// One entry of the array `io_links` of an agent: a link to another agent.
    struct rocprofiler_agent_io_link_t {
        /// Kind of bus: PCI Express, xGMI and others.
        pub r#type: HSA_IOLINKTYPE,
        /// Major version of the bus's interface; 0 when unknown.
        pub version_major: u32,
        /// Minor version of the bus's interface; 0 when unknown.
        pub version_minor: u32,
        /// KFD node of the agent that owns this entry.
        pub node_from: u32,
        /// KFD node of the agent at the other end.
        pub node_to: u32,
        /// Cost of the link relative to others: the larger, the slower.
        pub weight: u32,
        /// Smallest latency in ns.
        pub min_latency: u32,
        /// Largest latency in ns.
        pub max_latency: u32,
        /// Smallest bandwidth in MB/s.
        pub min_bandwidth: u32,
        /// Largest bandwidth in MB/s.
        pub max_bandwidth: u32,
        /// Transfer size in bytes that suits the link.
        pub recommended_transfer_size: u32,
        /// Coherence, atomics and peer-to-peer access over the link.
        pub flags: HSA_LINKPROPERTY,
    }
}

/// Receives all agents: an array of pointers to structs of the given version.
pub type rocprofiler_query_available_agents_cb_t = Option<
    unsafe extern "C" fn(
        version: rocprofiler_agent_version_t,
        agents: *mut *const c_void,
        count: usize,
        data: *mut c_void,
    ) -> rocprofiler_status_t,
>;
