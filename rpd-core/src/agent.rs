//! Agents: CPUs and GPUs as the provider describes them.

use crate::ids::AgentHandle;
use crate::options::AgentIndex;

/// CPU or GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AgentType {
    /// Neither.
    #[default]
    Unknown,
    /// CPU.
    Cpu,
    /// GPU.
    Gpu,
}

impl AgentType {
    /// `CPU`, `GPU` or `UNK`.
    pub const fn label(self) -> &'static str {
        match self {
            AgentType::Unknown => "UNK",
            AgentType::Cpu => "CPU",
            AgentType::Gpu => "GPU",
        }
    }
}

/// An agent. Field meanings and units are those of the driver's topology tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the fields are the topology properties of the same name"
)]
pub struct Agent {
    pub handle: AgentHandle,
    pub agent_type: AgentType,
    pub node_id: u32,
    pub logical_node_id: i32,
    pub logical_node_type_id: i32,
    pub name: String,
    pub vendor_name: String,
    pub product_name: String,
    pub model_name: String,
    pub size: u64,
    pub cpu_cores_count: u32,
    pub simd_count: u32,
    pub mem_banks_count: u32,
    pub caches_count: u32,
    pub io_links_count: u32,
    pub cpu_core_id_base: u32,
    pub simd_id_base: u32,
    pub max_waves_per_simd: u32,
    pub lds_size_in_kb: u32,
    pub gds_size_in_kb: u32,
    pub num_gws: u32,
    pub wave_front_size: u32,
    pub num_xcc: u32,
    pub cu_count: u32,
    pub array_count: u32,
    pub num_shader_banks: u32,
    pub simd_arrays_per_engine: u32,
    pub cu_per_simd_array: u32,
    pub simd_per_cu: u32,
    pub max_slots_scratch_cu: u32,
    pub gfx_target_version: u32,
    pub vendor_id: u16,
    pub device_id: u16,
    pub location_id: u32,
    pub domain: u32,
    pub drm_render_minor: u32,
    pub num_sdma_engines: u32,
    pub num_sdma_xgmi_engines: u32,
    pub num_sdma_queues_per_engine: u32,
    pub num_cp_queues: u32,
    pub max_engine_clk_ccompute: u32,
    pub max_engine_clk_fcompute: u32,
    pub sdma_fw_version: u32,
    pub fw_version: u32,
    pub capability: u32,
    pub cu_per_engine: u32,
    pub max_waves_per_cu: u32,
    pub family_id: u32,
    pub workgroup_max_size: u32,
    pub grid_max_size: u32,
    pub local_mem_size: u64,
    pub hive_id: u64,
    pub gpu_id: u64,
    pub workgroup_max_dim: [u32; 3],
    pub grid_max_dim: [u32; 3],
    pub runtime_visibility: u32,
    pub uuid: [u8; 16],
    pub mem_banks: Vec<MemoryBank>,
    pub caches: Vec<Cache>,
    pub io_links: Vec<IoLink>,
}

/// A memory bank of an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the fields are the topology properties of the same name"
)]
pub struct MemoryBank {
    pub heap_type: u32,
    pub flags: u32,
    pub width: u32,
    pub mem_clk_max: u32,
    pub size_in_bytes: u64,
}

/// A cache of an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the fields are the topology properties of the same name"
)]
pub struct Cache {
    pub processor_id_low: u64,
    pub size: u64,
    pub level: u32,
    pub cache_line_size: u32,
    pub cache_lines_per_tag: u32,
    pub association: u32,
    pub latency: u32,
    pub kind: u32,
}

/// A link between two agents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the fields are the topology properties of the same name"
)]
pub struct IoLink {
    pub kind: u32,
    pub version_major: u32,
    pub version_minor: u32,
    pub node_from: u32,
    pub node_to: u32,
    pub weight: u32,
    pub min_latency: u32,
    pub max_latency: u32,
    pub min_bandwidth: u32,
    pub max_bandwidth: u32,
    pub recommended_transfer_size: u32,
    pub flags: u32,
}

impl Agent {
    /// Label and number as `--agent-index` asks for them.
    pub fn label(&self, index: AgentIndex) -> (&'static str, i64) {
        match index {
            AgentIndex::Absolute => ("Agent", i64::from(self.node_id)),
            AgentIndex::Relative => ("Agent", i64::from(self.logical_node_id)),
            AgentIndex::TypeRelative => (
                self.agent_type.label(),
                i64::from(self.logical_node_type_id),
            ),
        }
    }
}
