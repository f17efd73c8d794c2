//! The agents of the simulated machine: one CPU, and GPUs.

use rpd_gfx::device::{Device, Link};
use std::sync::OnceLock;

/// Processor type of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentKind {
    /// The host's processor.
    Cpu,
    /// A simulated GPU.
    Gpu,
}

/// A cache of an agent, as the topology reports it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cache {
    /// 1 for the caches next to the cores.
    pub(crate) level: u32,
    /// Capacity in bytes.
    pub(crate) bytes: u32,
    /// Name in the runtime's description.
    pub(crate) name: &'static str,
}

/// Location and coherence of a pool's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PoolKind {
    /// System memory, coherent while kernels run.
    SystemFine,
    /// System memory meant for kernel arguments.
    SystemKernarg,
    /// System memory, coherent at kernel boundaries.
    SystemCoarse,
    /// Device memory, coherent at kernel boundaries.
    DeviceCoarse,
    /// Device memory, coherent while kernels run.
    DeviceFine,
    /// LDS; nothing can be allocated from it.
    Group,
}

/// A memory pool; its address is its HSA handle.
#[derive(Debug)]
pub(crate) struct Pool {
    /// Index of the agent to which the pool belongs.
    pub(crate) agent: usize,
    /// Location of the pool's memory, and when writes to it become visible.
    pub(crate) kind: PoolKind,
    /// Capacity in bytes, shared with the agent's other pools of the same memory.
    pub(crate) bytes: u64,
}

impl Pool {
    /// Handle by which the HSA runtime names the pool.
    pub(crate) fn handle(&'static self) -> u64 {
        std::ptr::from_ref(self) as u64
    }

    /// Whether the runtime allocates from the pool.
    pub(crate) fn allocatable(&self) -> bool {
        self.kind != PoolKind::Group
    }

    /// Whether the pool is host memory.
    pub(crate) fn is_system(&self) -> bool {
        matches!(
            self.kind,
            PoolKind::SystemFine | PoolKind::SystemKernarg | PoolKind::SystemCoarse
        )
    }

    /// Whether the pool's memory is coherent while kernels run.
    pub(crate) fn is_fine_grained(&self) -> bool {
        self.global_flags() & 2 != 0
    }

    /// Flags of the pool, `HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_*`; zero for LDS.
    pub(crate) fn global_flags(&self) -> u32 {
        match self.kind {
            PoolKind::SystemFine | PoolKind::DeviceFine => 2,
            PoolKind::SystemKernarg => 3,
            PoolKind::SystemCoarse | PoolKind::DeviceCoarse => 4,
            PoolKind::Group => 0,
        }
    }
}

/// An agent; its address is its HSA handle.
#[derive(Debug)]
pub(crate) struct Agent {
    /// Position among all agents, also the topology's node id.
    pub(crate) index: usize,
    /// CPU or GPU.
    pub(crate) kind: AgentKind,
    /// Device description of a GPU; `None` for the CPU.
    pub(crate) device: Option<&'static Device>,
    /// Short name: the processor's model, or the GPU's architecture.
    pub(crate) name: String,
    /// `CPU` or `AMD`.
    pub(crate) vendor: &'static str,
    /// Marketing name.
    pub(crate) product: String,
    /// Code name of the chip.
    pub(crate) model: &'static str,
    /// Unique id, `GPU-` and 16 hexadecimal digits for GPUs.
    pub(crate) uuid: String,
    /// Number of CPU cores; 0 for a GPU.
    pub(crate) cpu_cores: u32,
    /// SIMD units of the whole agent; 0 for the CPU.
    pub(crate) simds: u32,
    /// Lowest processor number of the SIMDs in the topology; 0 for the CPU.
    pub(crate) simd_id_base: u32,
    /// Number of waves that a SIMD can hold.
    pub(crate) max_waves_per_simd: u32,
    /// LDS of each compute unit in KiB; 0 for the CPU.
    pub(crate) lds_kib: u32,
    /// Counters for global wave synchronisation (GWS) that the GPU has.
    pub(crate) gws: u32,
    /// Lanes of a wave: 32 or 64.
    pub(crate) wave_size: u32,
    /// Number of accelerator complex dies (XCC); 0 for the CPU.
    pub(crate) xccs: u32,
    /// Compute units (of a CPU: cores).
    pub(crate) cus: u32,
    /// Number of shader arrays of the whole GPU.
    pub(crate) arrays: u32,
    /// Number of shader engines of the whole GPU.
    pub(crate) shader_banks: u32,
    /// Shader arrays in each shader engine.
    pub(crate) arrays_per_engine: u32,
    /// Compute units of each shader array.
    pub(crate) cus_per_array: u32,
    /// SIMD units of each compute unit.
    pub(crate) simds_per_cu: u32,
    /// Waves of each compute unit that can have scratch memory at a time.
    pub(crate) scratch_slots_per_cu: u32,
    /// `10000*major + 100*minor + stepping`.
    pub(crate) gfx_version: u32,
    /// PCI vendor id, 0x1002 for AMD; 0 for the CPU.
    pub(crate) vendor_id: u32,
    /// PCI device id; 0 for the CPU.
    pub(crate) device_id: u32,
    /// PCI bus, device and function.
    pub(crate) location_id: u32,
    /// PCI domain (segment).
    pub(crate) domain: u32,
    /// N of `/dev/dri/renderDN`; 0 for the CPU.
    pub(crate) drm_render_minor: u32,
    /// Number of copy engines (SDMA).
    pub(crate) sdma_engines: u32,
    /// Copy engines for links between GPUs.
    pub(crate) sdma_xgmi_engines: u32,
    /// Number of queues that one copy engine serves.
    pub(crate) sdma_queues_per_engine: u32,
    /// Compute queues of the command processor.
    pub(crate) cp_queues: u32,
    /// Highest core clock, MHz.
    pub(crate) cpu_clock_mhz: u32,
    /// Highest shader clock, MHz.
    pub(crate) gpu_clock_mhz: u32,
    /// Firmware of the copy engines.
    pub(crate) sdma_fw: u32,
    /// Firmware of the command processor.
    pub(crate) cp_fw: u32,
    /// Capability bits as the topology in `/sys` reports them.
    pub(crate) capability: u32,
    /// Number of compute units of a shader engine.
    pub(crate) cus_per_engine: u32,
    /// Waves that each compute unit can hold.
    pub(crate) max_waves_per_cu: u32,
    /// Family of the chip, as the amdgpu driver numbers families.
    pub(crate) family_id: u32,
    /// Largest number of work-items of a workgroup.
    pub(crate) workgroup_max_size: u32,
    /// Largest number of work-items of a grid.
    pub(crate) grid_max_size: u32,
    /// Limits of a workgroup by dimension.
    pub(crate) workgroup_max_dim: [u32; 3],
    /// Limits of a grid by dimension.
    pub(crate) grid_max_dim: [u32; 3],
    /// Width of the memory bus in bits.
    pub(crate) memory_width: u32,
    /// Highest memory clock, MHz.
    pub(crate) memory_clock_mhz: u32,
    /// Bytes of memory the agent's pools share.
    pub(crate) memory_bytes: u64,
    /// Driver's id of the GPU.
    pub(crate) gpu_id: u64,
    /// Caches, innermost first.
    pub(crate) caches: Vec<Cache>,
}

impl Agent {
    /// Handle by which the HSA runtime names the agent.
    pub(crate) fn handle(&'static self) -> u64 {
        std::ptr::from_ref(self) as u64
    }

    /// Bit of the agent in access masks.
    pub(crate) fn bit(&self) -> u64 {
        1 << self.index
    }

    pub(crate) fn is_gpu(&self) -> bool {
        self.kind == AgentKind::Gpu
    }

    /// The number in the UUID of a GPU.
    pub(crate) fn unique_id(&self) -> u64 {
        let digits = self.uuid.trim_start_matches("GPU-");
        u64::from_str_radix(digits, 16).unwrap_or(0)
    }

    /// The number of a GPU's architecture, in hexadecimal digits as in its name.
    pub(crate) fn target_digits(&self) -> u64 {
        let digits = self.name.trim_start_matches("gfx");
        u64::from_str_radix(digits, 16).unwrap_or(u64::MAX)
    }

    /// The link to another agent, from the device's description. Hosts have none to each other.
    pub(crate) fn link_to(&self, other: &Agent) -> Option<Link> {
        let links = &self.device.or(other.device)?.links;
        Some(if self.is_gpu() && other.is_gpu() {
            links.peer
        } else {
            links.host
        })
    }
}

/// Most GPUs the simulator offers.
pub(crate) const MAX_GPUS: usize = 8;
/// Processor of the simulated GPUs, unless `RPD_SIM_GPU` names another.
const PROCESSOR: &str = "gfx90a";

/// Description of the simulated device; all GPUs of the machine are of this one model.
pub(crate) fn device() -> &'static Device {
    static DEVICE: OnceLock<&Device> = OnceLock::new();
    DEVICE.get_or_init(|| {
        let asked = std::env::var_os("RPD_SIM_GPU").filter(|name| !name.is_empty());
        let found = asked
            .as_ref()
            .and_then(|name| Device::simulated(name.to_str()?));
        if let (Some(name), None) = (&asked, found) {
            eprintln!(
                "rpd-sim: RPD_SIM_GPU={}: there is no such device, only {}; simulating {PROCESSOR}",
                name.display(),
                Device::simulated_names().join(", ")
            );
        }
        match found.or_else(|| Device::simulated(PROCESSOR)) {
            Some(device) => device,
            None => unreachable!("{PROCESSOR} is described in rpd-gfx/data"),
        }
    })
}

struct Hardware {
    agents: Vec<Agent>,
    pools: Vec<Pool>,
}

static HARDWARE: OnceLock<Hardware> = OnceLock::new();

fn hardware() -> &'static Hardware {
    HARDWARE.get_or_init(|| {
        let gpus = gpu_count();
        let mut agents = vec![cpu()];
        agents.extend((0..gpus).map(|ordinal| gpu(ordinal, device())));
        let system = agents[0].memory_bytes;
        let pool = |agent, kind, bytes| Pool { agent, kind, bytes };
        let mut pools = vec![
            pool(0, PoolKind::SystemFine, system),
            pool(0, PoolKind::SystemKernarg, system),
            pool(0, PoolKind::SystemCoarse, system),
        ];
        for agent in &agents[1..] {
            let i = agent.index;
            pools.push(pool(i, PoolKind::DeviceCoarse, agent.memory_bytes));
            pools.push(pool(i, PoolKind::DeviceFine, agent.memory_bytes));
            pools.push(pool(i, PoolKind::Group, u64::from(agent.lds_kib) * 1024));
        }
        Hardware { agents, pools }
    })
}

/// All agents, the CPU first.
pub(crate) fn agents() -> &'static [Agent] {
    &hardware().agents
}

/// All GPUs, in order.
pub(crate) fn gpus() -> &'static [Agent] {
    &hardware().agents[1..]
}

/// The agents that the runtimes show to the program: the CPU, and the GPUs in the order of `ROCR_VISIBLE_DEVICES`.
pub(crate) fn visible() -> &'static [&'static Agent] {
    static VISIBLE: OnceLock<Vec<&'static Agent>> = OnceLock::new();
    VISIBLE.get_or_init(|| {
        let ids: Vec<String> = gpus().iter().map(|gpu| gpu.uuid.clone()).collect();
        let chosen = super::visible::from_environment(&["ROCR_VISIBLE_DEVICES"], &ids);
        let places = chosen.unwrap_or_else(|| (0..ids.len()).collect());
        std::iter::once(cpu_agent())
            .chain(places.into_iter().map(|place| &gpus()[place]))
            .collect()
    })
}

/// The agent of the CPU, which every machine has.
pub(crate) fn cpu_agent() -> &'static Agent {
    &hardware().agents[0]
}

/// All pools, the CPU's first.
pub(crate) fn pools() -> &'static [Pool] {
    &hardware().pools
}

/// The agent of an HSA handle.
pub(crate) fn agent(handle: u64) -> Option<&'static Agent> {
    agents().iter().find(|agent| agent.handle() == handle)
}

/// The pool of an HSA handle.
pub(crate) fn pool(handle: u64) -> Option<&'static Pool> {
    pools().iter().find(|pool| pool.handle() == handle)
}

/// The pool of this kind of the agent with this index; `None` where the agent lacks it.
pub(crate) fn pool_of(agent: usize, kind: PoolKind) -> Option<&'static Pool> {
    pools()
        .iter()
        .find(|pool| pool.agent == agent && pool.kind == kind)
}

fn gpu_count() -> usize {
    let Some(text) = std::env::var_os("RPD_SIM_GPUS") else {
        return 1;
    };
    match text.to_str().and_then(|text| text.parse::<usize>().ok()) {
        Some(count) if (1..=MAX_GPUS).contains(&count) => count,
        _ => {
            eprintln!(
                "rpd-sim: RPD_SIM_GPUS={} is not a number from 1 to {MAX_GPUS}; simulating one GPU",
                text.display()
            );
            1
        }
    }
}

fn cpu() -> Agent {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let name = cpu_model().unwrap_or_else(|| "CPU".to_owned());
    Agent {
        index: 0,
        kind: AgentKind::Cpu,
        device: None,
        product: name.clone(),
        name,
        vendor: "CPU",
        model: "",
        uuid: "CPU-XX".to_owned(),
        cpu_cores: cores,
        simds: 0,
        simd_id_base: 0,
        max_waves_per_simd: 0,
        lds_kib: 0,
        gws: 0,
        wave_size: 0,
        xccs: 1,
        cus: cores,
        arrays: 0,
        shader_banks: 0,
        arrays_per_engine: 0,
        cus_per_array: 0,
        simds_per_cu: 0,
        scratch_slots_per_cu: 0,
        gfx_version: 0,
        vendor_id: 0,
        device_id: 0,
        location_id: 0,
        domain: 0,
        drm_render_minor: 0,
        sdma_engines: 0,
        sdma_xgmi_engines: 0,
        sdma_queues_per_engine: 0,
        cp_queues: 0,
        cpu_clock_mhz: 2500,
        gpu_clock_mhz: 0,
        sdma_fw: 0,
        cp_fw: 0,
        capability: 0,
        cus_per_engine: 0,
        max_waves_per_cu: 0,
        family_id: 26,
        workgroup_max_size: 0,
        grid_max_size: 0,
        workgroup_max_dim: [0; 3],
        grid_max_dim: [0; 3],
        memory_width: 0,
        memory_clock_mhz: 0,
        memory_bytes: system_memory(),
        gpu_id: 0,
        caches: vec![Cache {
            level: 1,
            bytes: 32 * 1024,
            name: "L1",
        }],
    }
}

fn gpu(ordinal: usize, device: &'static Device) -> Agent {
    let (layout, identity, queues) = (&device.layout, &device.identity, &device.queues);
    let cache = |level, bytes, name| Cache { level, bytes, name };
    Agent {
        index: ordinal + 1,
        kind: AgentKind::Gpu,
        device: Some(device),
        name: device.name.to_owned(),
        vendor: "AMD",
        product: device.product.to_owned(),
        model: device.model,
        uuid: format!("GPU-{:016x}", 0x7270_6473_696d_0000_u64 + ordinal as u64),
        cpu_cores: 0,
        simds: layout.simds(),
        simd_id_base: 0x8000_1000 + ordinal as u32 * 0x1000,
        max_waves_per_simd: layout.waves_per_simd,
        lds_kib: layout.lds_bytes / 1024,
        gws: layout.global_wave_syncs,
        wave_size: device.code.wave_size,
        xccs: layout.dies,
        cus: layout.units(),
        arrays: layout.engines * layout.arrays_per_engine,
        shader_banks: layout.engines,
        arrays_per_engine: layout.arrays_per_engine,
        cus_per_array: layout.unit_slots_per_array,
        simds_per_cu: layout.simds_per_unit,
        scratch_slots_per_cu: layout.scratch_waves_per_unit,
        gfx_version: device.code.version,
        vendor_id: identity.vendor,
        device_id: identity.device,
        location_id: 768 + ordinal as u32 * 256,
        domain: 0,
        drm_render_minor: 128 + ordinal as u32,
        sdma_engines: queues.copy_engines,
        sdma_xgmi_engines: queues.link_copy_engines,
        sdma_queues_per_engine: queues.queues_per_copy_engine,
        cp_queues: queues.command_queues,
        cpu_clock_mhz: device.clocks.host_mhz,
        gpu_clock_mhz: device.clocks.shader_mhz,
        sdma_fw: identity.copy_firmware,
        cp_fw: identity.command_firmware,
        capability: identity.capability,
        cus_per_engine: layout.units_per_engine,
        max_waves_per_cu: layout.waves_per_unit(),
        family_id: identity.family,
        workgroup_max_size: device.code.max_work_items,
        grid_max_size: device.limits.grid,
        workgroup_max_dim: [device.code.max_work_items; 3],
        grid_max_dim: device.limits.grid_dimensions,
        memory_width: device.memory.bus_bits,
        memory_clock_mhz: device.memory.clock_mhz,
        memory_bytes: device.memory.bytes,
        gpu_id: 1 + ordinal as u64,
        caches: vec![
            cache(1, device.caches.vector.bytes, "L1"),
            cache(2, device.caches.second.bytes, "L2"),
        ],
    }
}

fn cpu_model() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    let (_, name) = line.split_once(':')?;
    Some(name.trim().to_owned())
}

fn system_memory() -> u64 {
    // SAFETY: sysconf takes no pointers.
    let (pages, size) = unsafe {
        (
            libc::sysconf(libc::_SC_PHYS_PAGES),
            libc::sysconf(libc::_SC_PAGESIZE),
        )
    };
    if pages > 0 && size > 0 {
        pages as u64 * size as u64
    } else {
        1 << 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_and_pools_are_found_by_handle() {
        for agent_ in agents() {
            assert_eq!(
                agent(agent_.handle()).map(|found| found.index),
                Some(agent_.index)
            );
        }
        for pool_ in pools() {
            let found = pool(pool_.handle()).expect("every pool is found");
            assert!(std::ptr::eq(found, pool_));
        }
        assert!(agent(0).is_none());
        assert!(pool(1).is_none());
        assert!(pool_of(1, PoolKind::DeviceCoarse).is_some());
    }

    #[test]
    fn the_first_gpu_has_the_figures_of_the_golden_agent_table() {
        let gpu = &gpus()[0];
        assert_eq!(gpu.simd_id_base, 2_147_487_744);
        assert_eq!((gpu.cus, gpu.simds, gpu.gfx_version), (104, 416, 90010));
        assert_eq!(gpu.simds, gpu.cus * gpu.simds_per_cu);
    }
}
