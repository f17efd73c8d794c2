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
    /// Which agent struct a query delivers.
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
    /// Sort of an agent.
    rocprofiler_agent_type_t: u32 {
        /// No value.
        NONE = 0 => c"ROCPROFILER_AGENT_TYPE_NONE",
        /// A CPU.
        CPU = 1 => c"ROCPROFILER_AGENT_TYPE_CPU",
        /// A GPU.
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
        /// CPU cores, 0 for a GPU.
        pub cpu_cores_count: u32,
        /// SIMDs, 0 for a CPU.
        pub simd_count: u32,
        /// Entries of `mem_banks`.
        pub mem_banks_count: u32,
        /// Entries of `caches`.
        pub caches_count: u32,
        /// Entries of `io_links`.
        pub io_links_count: u32,
        /// First CPU core id.
        pub cpu_core_id_base: u32,
        /// First SIMD id.
        pub simd_id_base: u32,
        /// Waves a SIMD can hold.
        pub max_waves_per_simd: u32,
        /// LDS per compute unit in KiB.
        pub lds_size_in_kb: u32,
        /// GDS in KiB.
        pub gds_size_in_kb: u32,
        /// Global wave sync resources.
        pub num_gws: u32,
        /// Lanes of a wave.
        pub wave_front_size: u32,
        /// Accelerator complexes.
        pub num_xcc: u32,
        /// Compute units.
        pub cu_count: u32,
        /// Shader arrays in all.
        pub array_count: u32,
        /// Shader engines.
        pub num_shader_banks: u32,
        /// Shader arrays per engine.
        pub simd_arrays_per_engine: u32,
        /// Compute units per array.
        pub cu_per_simd_array: u32,
        /// SIMDs per compute unit.
        pub simd_per_cu: u32,
        /// Waves with scratch per compute unit.
        pub max_slots_scratch_cu: u32,
        /// `10000*major + 100*minor + stepping`.
        pub gfx_target_version: u32,
        /// PCI vendor.
        pub vendor_id: u16,
        /// PCI device.
        pub device_id: u16,
        /// PCI bus, device and function.
        pub location_id: u32,
        /// PCI domain.
        pub domain: u32,
        /// Number of the render node.
        pub drm_render_minor: u32,
        /// Copy engines.
        pub num_sdma_engines: u32,
        /// Copy engines for links.
        pub num_sdma_xgmi_engines: u32,
        /// Queues of a copy engine.
        pub num_sdma_queues_per_engine: u32,
        /// Compute queues.
        pub num_cp_queues: u32,
        /// Highest CPU clock in MHz.
        pub max_engine_clk_ccompute: u32,
        /// Highest GPU clock in MHz.
        pub max_engine_clk_fcompute: u32,
        /// Firmware of the copy engines.
        pub sdma_fw_version: HSA_ENGINE_VERSION,
        /// Firmware of the compute engine.
        pub fw_version: HSA_ENGINE_ID,
        /// Capability bits.
        pub capability: HSA_CAPABILITY,
        /// Compute units per engine.
        pub cu_per_engine: u32,
        /// Waves a compute unit can hold.
        pub max_waves_per_cu: u32,
        /// Family number of the driver.
        pub family_id: u32,
        /// Largest workgroup.
        pub workgroup_max_size: u32,
        /// Largest grid.
        pub grid_max_size: u32,
        /// Device memory in bytes.
        pub local_mem_size: u64,
        /// Link hive the GPU is in.
        pub hive_id: u64,
        /// Id of the GPU in the driver.
        pub gpu_id: u64,
        /// Largest workgroup per dimension.
        pub workgroup_max_dim: rocprofiler_dim3_t,
        /// Largest grid per dimension.
        pub grid_max_dim: rocprofiler_dim3_t,
        /// Memory banks.
        pub mem_banks: *const rocprofiler_agent_mem_bank_t,
        /// Caches.
        pub caches: *const rocprofiler_agent_cache_t,
        /// Links to other agents.
        pub io_links: *const rocprofiler_agent_io_link_t,
        /// Like `gfx90a` for a GPU, the model for a CPU.
        pub name: *const c_char,
        /// Vendor.
        pub vendor_name: *const c_char,
        /// Marketing name.
        pub product_name: *const c_char,
        /// Model name.
        pub model_name: *const c_char,
        /// Node number of the driver.
        pub node_id: u32,
        /// Counts all agents from 0.
        pub logical_node_id: i32,
        /// Counts agents of this type from 0.
        pub logical_node_type_id: i32,
        /// Which runtimes can use the agent.
        pub runtime_visibility: rocprofiler_agent_runtime_visiblity_t,
        /// Unique id of the device.
        pub uuid: rocprofiler_uuid_t,
    }
}

/// The agent struct of this version.
pub type rocprofiler_agent_t = rocprofiler_agent_v0_t;

c_struct! {
    /// A cache of an agent.
    struct rocprofiler_agent_cache_t {
        /// First processor that shares the cache.
        pub processor_id_low: u64,
        /// Size in KiB.
        pub size: u64,
        /// Cache level.
        pub level: u32,
        /// Bytes per line.
        pub cache_line_size: u32,
        /// Lines per tag.
        pub cache_lines_per_tag: u32,
        /// Associativity.
        pub association: u32,
        /// Latency in ns.
        pub latency: u32,
        /// Type bits: data, instruction, CPU or GPU.
        pub r#type: HsaCacheType,
    }
}

c_struct! {
    /// A memory bank of an agent.
    struct rocprofiler_agent_mem_bank_t {
        /// Kind of memory.
        pub heap_type: HSA_HEAPTYPE,
        /// Properties.
        pub flags: HSA_MEMORYPROPERTY,
        /// Bus width in bits.
        pub width: u32,
        /// Highest clock in MHz.
        pub mem_clk_max: u32,
        /// Size in bytes.
        pub size_in_bytes: u64,
    }
}

c_struct! {
    /// A link between two agents.
    struct rocprofiler_agent_io_link_t {
        /// Kind of link.
        pub r#type: HSA_IOLINKTYPE,
        /// Major version of the link.
        pub version_major: u32,
        /// Minor version of the link.
        pub version_minor: u32,
        /// Node at one end.
        pub node_from: u32,
        /// Node at the other end.
        pub node_to: u32,
        /// Relative cost.
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
        /// Properties.
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
