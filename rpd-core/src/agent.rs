//! Agents: CPUs and GPUs as the provider describes them.

use crate::ids::AgentHandle;
use crate::options::AgentIndex;
use crate::spool::reader::Counted;

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

/// Reads numbers of a provider's struct, as far as it goes: fields that an older provider lacks are 0.
#[derive(Clone, Copy)]
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn bytes<const N: usize>(self, offset: usize) -> [u8; N] {
        self.0
            .get(offset..)
            .and_then(|rest| rest.first_chunk())
            .copied()
            .unwrap_or([0; N])
    }

    fn half(self, offset: usize) -> u16 {
        u16::from_le_bytes(self.bytes(offset))
    }

    fn word(self, offset: usize) -> u32 {
        u32::from_le_bytes(self.bytes(offset))
    }

    fn long(self, offset: usize) -> u64 {
        u64::from_le_bytes(self.bytes(offset))
    }

    fn dim3(self, offset: usize) -> [u32; 3] {
        [0, 4, 8].map(|step| self.word(offset + step))
    }
}

impl Agent {
    /// Reads what the collector keeps of an agent: `tail` is that of a [`crate::spool::format::AgentRecord`]. Parts
    /// that are missing are empty.
    pub fn parse(handle: AgentHandle, tail: &[u8]) -> Agent {
        let mut parts = Counted(tail).map(Option::unwrap_or_default);
        let mut part = || parts.next().unwrap_or_default();
        let raw = part();
        let at = Fields(raw);
        // Never more than the struct says it has.
        let at = Fields(raw.get(..at.long(0) as usize).unwrap_or(raw));
        let mem_banks = part()
            .chunks_exact(24)
            .map(Fields)
            .map(|at| MemoryBank {
                heap_type: at.word(0),
                flags: at.word(4),
                width: at.word(8),
                mem_clk_max: at.word(12),
                size_in_bytes: at.long(16),
            })
            .collect();
        let caches = part()
            .chunks_exact(40)
            .map(Fields)
            .map(|at| Cache {
                processor_id_low: at.long(0),
                size: at.long(8),
                level: at.word(16),
                cache_line_size: at.word(20),
                cache_lines_per_tag: at.word(24),
                association: at.word(28),
                latency: at.word(32),
                kind: at.word(36),
            })
            .collect();
        let io_links = part()
            .chunks_exact(48)
            .map(Fields)
            .map(|at| IoLink {
                kind: at.word(0),
                version_major: at.word(4),
                version_minor: at.word(8),
                node_from: at.word(12),
                node_to: at.word(16),
                weight: at.word(20),
                min_latency: at.word(24),
                max_latency: at.word(28),
                min_bandwidth: at.word(32),
                max_bandwidth: at.word(36),
                recommended_transfer_size: at.word(40),
                flags: at.word(44),
            })
            .collect();
        let mut text = || String::from_utf8_lossy(part()).into_owned();
        Agent {
            handle,
            agent_type: match at.word(16) {
                1 => AgentType::Cpu,
                2 => AgentType::Gpu,
                _ => AgentType::Unknown,
            },
            name: text(),
            vendor_name: text(),
            product_name: text(),
            model_name: text(),
            size: at.long(0),
            cpu_cores_count: at.word(20),
            simd_count: at.word(24),
            mem_banks_count: at.word(28),
            caches_count: at.word(32),
            io_links_count: at.word(36),
            cpu_core_id_base: at.word(40),
            simd_id_base: at.word(44),
            max_waves_per_simd: at.word(48),
            lds_size_in_kb: at.word(52),
            gds_size_in_kb: at.word(56),
            num_gws: at.word(60),
            wave_front_size: at.word(64),
            num_xcc: at.word(68),
            cu_count: at.word(72),
            array_count: at.word(76),
            num_shader_banks: at.word(80),
            simd_arrays_per_engine: at.word(84),
            cu_per_simd_array: at.word(88),
            simd_per_cu: at.word(92),
            max_slots_scratch_cu: at.word(96),
            gfx_target_version: at.word(100),
            location_id: at.word(108),
            domain: at.word(112),
            drm_render_minor: at.word(116),
            num_sdma_engines: at.word(120),
            num_sdma_xgmi_engines: at.word(124),
            num_sdma_queues_per_engine: at.word(128),
            num_cp_queues: at.word(132),
            max_engine_clk_ccompute: at.word(136),
            max_engine_clk_fcompute: at.word(140),
            sdma_fw_version: at.word(144),
            fw_version: at.word(148),
            capability: at.word(152),
            cu_per_engine: at.word(156),
            max_waves_per_cu: at.word(160),
            family_id: at.word(164),
            workgroup_max_size: at.word(168),
            grid_max_size: at.word(172),
            node_id: at.word(280),
            runtime_visibility: at.word(292),
            vendor_id: at.half(104),
            device_id: at.half(106),
            local_mem_size: at.long(176),
            hive_id: at.long(184),
            gpu_id: at.long(192),
            workgroup_max_dim: at.dim3(200),
            grid_max_dim: at.dim3(212),
            logical_node_id: at.word(284).cast_signed(),
            logical_node_type_id: at.word(288).cast_signed(),
            uuid: at.bytes(296),
            mem_banks,
            caches,
            io_links,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(parts: &[&[u8]]) -> Vec<u8> {
        let mut tail = Vec::new();
        for part in parts {
            tail.extend((part.len() as u32).to_le_bytes());
            tail.extend(*part);
        }
        tail
    }

    fn raw(size: usize) -> Vec<u8> {
        let mut raw = vec![0; size];
        raw[0..8].copy_from_slice(&(size as u64).to_le_bytes());
        raw[16] = 2;
        raw[72] = 104;
        raw[106..108].copy_from_slice(&29704_u16.to_le_bytes());
        if size > 288 {
            raw[280] = 1;
            raw[284..288].copy_from_slice(&(-1_i32).to_le_bytes());
        }
        raw
    }

    #[test]
    fn an_agent_is_read() {
        let bank = [7; 24];
        let agent = Agent::parse(
            AgentHandle(9),
            &counted(&[
                &raw(312),
                &bank,
                &[],
                &[1; 48],
                b"gfx90a",
                b"AMD",
                b"\xff",
                b"",
            ]),
        );
        assert_eq!(agent.agent_type, AgentType::Gpu);
        assert_eq!((agent.cu_count, agent.device_id), (104, 29704));
        assert_eq!((agent.node_id, agent.logical_node_id), (1, -1));
        assert_eq!((&*agent.name, &*agent.product_name), ("gfx90a", "\u{fffd}"));
        assert_eq!(
            (
                agent.mem_banks.len(),
                agent.caches.len(),
                agent.io_links.len()
            ),
            (1, 0, 1)
        );
    }

    #[test]
    fn shorter_structs_and_lies_leave_fields_zero() {
        let agent = Agent::parse(AgentHandle(9), &counted(&[&raw(200), &[], &[], &[], b"x"]));
        assert_eq!((agent.cu_count, agent.node_id), (104, 0));
        assert_eq!((&*agent.name, &*agent.model_name), ("x", ""));
        let mut lying = raw(312);
        lying[0..8].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(Agent::parse(AgentHandle(9), &counted(&[&lying])).node_id, 1);
        lying[0..8].copy_from_slice(&100_u64.to_le_bytes());
        assert_eq!(Agent::parse(AgentHandle(9), &counted(&[&lying])).node_id, 0);
        assert_eq!(Agent::parse(AgentHandle(9), &[]).name, "");
    }
}
