//! The agents: their properties from the HSA runtime and the kernel driver, in the SDK's struct.

use std::ffi::{CStr, c_void};
use std::sync::OnceLock;

use rocprofiler_sdk_sys::{
    HSA_HEAPTYPE, rocprofiler_agent_cache_t as Cache, rocprofiler_agent_mem_bank_t as Bank,
    rocprofiler_agent_type_t as AgentType, rocprofiler_agent_v0_t as Agent,
    rocprofiler_dim3_t as Dim3, rocprofiler_uuid_t as Uuid,
};

use super::hsa::{self, MISSING, SUCCESS, runtime};
use super::topology::TopologyNode;
use crate::agent;

/// An agent, as records refer to it.
#[derive(Debug, Clone)]
pub(super) struct KnownAgent {
    /// Handle of the agent in the HSA runtime.
    handle: u64,
    /// Handle of the agent in records.
    pub(super) id: u64,
    pub(super) is_gpu: bool,
    /// Name of the agent's architecture, such as `gfx90a`.
    pub(super) name: Box<str>,
    /// Pools and regions of the runtime that are its own.
    pools: Vec<u64>,
    described: Described,
}

/// An agent's properties. What they point to is never freed.
#[derive(Debug, Clone)]
struct Described(Box<Agent>);

// SAFETY: nothing is changed once it is described.
unsafe impl Send for Described {}
// SAFETY: as above.
unsafe impl Sync for Described {}

static AGENTS: OnceLock<Vec<KnownAgent>> = OnceLock::new();

/// The agent with a handle of the runtime.
#[inline]
pub(super) fn known(handle: u64) -> Option<&'static KnownAgent> {
    AGENTS.get()?.iter().find(|agent| agent.handle == handle)
}

/// The runtime's handle of the first CPU; 0 when there is none.
pub(super) fn host() -> u64 {
    let cpu = AGENTS
        .get()
        .and_then(|agents| agents.iter().find(|agent| !agent.is_gpu));
    cpu.map_or(0, |agent| agent.handle)
}

/// The agent in records that owns a pool or region; 0 when it is unknown.
pub(super) fn of_pool(pool: u64) -> u64 {
    let owner = AGENTS
        .get()
        .and_then(|agents| agents.iter().find(|agent| agent.pools.contains(&pool)));
    owner.map_or(0, |agent| agent.id)
}

/// The runtime's handle of the GPU whose memory an address is in.
pub(super) fn gpu_of(address: u64) -> Option<u64> {
    /// Struct `hsa_amd_pointer_info_t` of the runtime.
    #[repr(C)]
    #[derive(Default)]
    struct Info {
        size: u32,
        kind: u32,
        agent_base: u64,
        host_base: u64,
        bytes: usize,
        user_data: u64,
        owner: u64,
        global_flags: u32,
        registered: bool,
    }
    let mut info = Info {
        size: size_of::<Info>() as u32,
        ..Info::default()
    };
    let place = &raw mut info;
    let none = std::ptr::null_mut::<c_void>();
    let status = runtime!(
        HSA_AMD_EXT_API::hsa_amd_pointer_info(
            u64,
            *mut Info,
            *mut c_void,
            *mut c_void,
            *mut c_void,
        ) -> u32,
        (address, place, none, none, none),
        MISSING
    );
    (status == SUCCESS && known(info.owner)?.is_gpu).then_some(info.owner)
}

/// Reads an attribute of an agent; the default when the runtime lacks it.
///
/// # Safety
///
/// `T` is the attribute's type.
unsafe fn get<T: Default>(agent: u64, attribute: u32) -> T {
    let mut value = T::default();
    // SAFETY: as this function demands.
    unsafe { hsa::agent_info(agent, attribute, &mut value) };
    value
}

/// Reads an attribute that is text.
fn text(agent: u64, attribute: u32) -> &'static CStr {
    // Room for the longest, and the terminating zero.
    let mut bytes = [0_u8; 129];
    // SAFETY: texts have at most 64 bytes.
    unsafe { hsa::agent_info(agent, attribute, &mut bytes) };
    let text = CStr::from_bytes_until_nul(&bytes).unwrap_or_default();
    Box::leak(text.to_owned().into_boxed_c_str())
}

/// Describes the agents and records them. To be called when the HSA runtime is initialised, once for each recording.
pub(super) fn prepare() {
    for known in AGENTS.get_or_init(describe_all) {
        let described = &*known.described.0;
        let raw = std::ptr::from_ref(described).cast::<c_void>();
        // SAFETY: the struct has the size that it states; what it points to is never freed.
        unsafe { agent::record(raw, described) };
    }
}

fn describe_all() -> Vec<KnownAgent> {
    // The driver's files describe the machine's GPUs. A runtime with another device must not get a real one's
    // properties.
    let handles = hsa::agents();
    let has_driver = handles
        .iter()
        .all(|&handle| !is_gpu(handle) || is_of_driver(handle));
    let mut per_type = [0; 2];
    handles
        .into_iter()
        .enumerate()
        .map(|(index, handle)| {
            let is_gpu = is_gpu(handle);
            let of_type = &mut per_type[usize::from(is_gpu)];
            let described = describe(handle, is_gpu, has_driver, index as u32, *of_type);
            *of_type += 1;
            let mut pools = hsa::pools(handle);
            pools.extend(hsa::regions(handle));
            KnownAgent {
                handle,
                id: described.id.handle,
                is_gpu,
                name: text(handle, 0).to_string_lossy().into(),
                pools,
                described: Described(Box::new(described)),
            }
        })
        .collect()
}

fn is_gpu(handle: u64) -> bool {
    // SAFETY: the attribute has this type: the type of the device.
    unsafe { get::<u32>(handle, 17) == 1 }
}

/// Whether the driver's topology has the GPU under the number that the runtime gives it: not so on a simulated GPU.
fn is_of_driver(gpu: u64) -> bool {
    // SAFETY: the attributes have this type: number of the node, device and location.
    let [node, device, location] =
        [0xA004, 0xA000, 0xA006].map(|attribute| unsafe { get::<u32>(gpu, attribute) });
    TopologyNode::read(node).is_gpu(device, location)
}

/// The family in a text like that of `/proc/cpuinfo`; 0 when it names none.
fn cpu_family(text: &str) -> u32 {
    let value = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.trim() == "cpu family")
        .map(|(_, value)| value.trim().parse().unwrap_or(0));
    value.unwrap_or(0)
}

/// The architecture `gfx90a` as the number `90010`: major, minor and stepping, two digits each.
fn target_version(name: &str) -> u32 {
    let digits = name.strip_prefix("gfx").unwrap_or_default();
    if digits.len() < 3 || !digits.is_ascii() {
        return 0;
    }
    let (major, rest) = digits.split_at(digits.len() - 2);
    let hexadecimal = |text: &str| u32::from_str_radix(text, 16).unwrap_or(0);
    let major: u32 = major.parse().unwrap_or(0);
    major * 10_000 + hexadecimal(&rest[..1]) * 100 + hexadecimal(&rest[1..])
}

fn describe(handle: u64, is_gpu: bool, has_driver: bool, index: u32, of_type: i32) -> Agent {
    // SAFETY: each attribute is read with its type in `hsa.h` and `hsa_ext_amd.h`.
    unsafe {
        // Numbers of attributes from 0xA000 on are those of `hsa_amd_agent_info_t`, smaller ones of `hsa_agent_info_t`.
        let number = |attribute: u32| get::<u32>(handle, attribute);
        let node = number(0xA004);
        let (cus, simds_per_cu) = (number(0xA002), number(0xA00B));
        let (engines, arrays_per_engine) = (number(0xA00C), number(0xA00D));
        let name = text(handle, 0);
        let caches = caches(handle, is_gpu);
        let banks = banks(handle, is_gpu);
        let workgroup: [u16; 3] = get(handle, 7);
        let grid: [u32; 3] = get(handle, 9);
        let clock = number(0xA003);
        let waves = number(0xA00A);
        // The runtime has no attribute for some fields; they are computed from others.
        let arrays = engines * arrays_per_engine;
        let uuid_text = text(handle, 0xA011);
        let mut agent = Agent {
            size: size_of::<Agent>() as u64,
            r#type: if is_gpu {
                AgentType::GPU
            } else {
                AgentType::CPU
            },
            cpu_cores_count: if is_gpu { 0 } else { cus },
            simd_count: if is_gpu { cus * simds_per_cu } else { 0 },
            mem_banks_count: banks.len() as u32,
            caches_count: caches.len() as u32,
            max_waves_per_simd: waves.checked_div(simds_per_cu).unwrap_or(0),
            lds_size_in_kb: if is_gpu {
                group_memory(handle) / 1024
            } else {
                0
            },
            wave_front_size: number(6),
            num_xcc: number(0xA111),
            cu_count: cus,
            array_count: arrays,
            num_shader_banks: engines,
            simd_arrays_per_engine: arrays_per_engine,
            cu_per_simd_array: cus.checked_div(arrays).unwrap_or(0),
            simd_per_cu: simds_per_cu,
            gfx_target_version: target_version(&name.to_string_lossy()),
            vendor_id: if is_gpu { 0x1002 } else { 0 },
            device_id: number(0xA000) as u16,
            location_id: number(0xA006),
            domain: number(0xA00F),
            num_sdma_engines: number(0xA10A),
            num_sdma_xgmi_engines: number(0xA10B),
            max_engine_clk_fcompute: if is_gpu { clock } else { 0 },
            max_engine_clk_ccompute: if is_gpu { 0 } else { clock },
            cu_per_engine: cus.checked_div(engines).unwrap_or(0),
            max_waves_per_cu: waves,
            family_id: number(0xA107),
            workgroup_max_size: number(8),
            grid_max_size: number(10),
            local_mem_size: if is_gpu {
                banks.first().map_or(0, |bank| bank.size_in_bytes)
            } else {
                0
            },
            gpu_id: number(0xA112).into(),
            workgroup_max_dim: Dim3 {
                x: workgroup[0].into(),
                y: workgroup[1].into(),
                z: workgroup[2].into(),
            },
            grid_max_dim: Dim3 {
                x: grid[0],
                y: grid[1],
                z: grid[2],
            },
            mem_banks: banks.as_ptr(),
            caches: caches.as_ptr(),
            name: name.as_ptr(),
            vendor_name: text(handle, 1).as_ptr(),
            product_name: text(handle, 0xA009).as_ptr(),
            node_id: node,
            logical_node_id: index as i32,
            logical_node_type_id: of_type,
            uuid: uuid(&uuid_text.to_string_lossy()),
            ..Agent::default()
        };
        // Handle 0 stands for no agent in records, and nodes are numbered from 0.
        agent.id.handle = u64::from(node) + 1;
        agent.fw_version.bits = number(0xA108);
        agent.sdma_fw_version.bits = number(0xA109);
        agent.runtime_visibility.bits = 0b1111;
        // The address of an empty list is dangling, and the record's writer would take it for an array.
        if agent.mem_banks_count == 0 {
            agent.mem_banks = std::ptr::null();
        }
        if agent.caches_count == 0 {
            agent.caches = std::ptr::null();
        }
        agent.model_name = c"".as_ptr();
        // The runtime does not tell a CPU's family.
        if !is_gpu {
            let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
            agent.family_id = cpu_family(&text);
        }
        // The driver knows more than the runtime, and is where the SDK has these numbers from.
        if has_driver {
            TopologyNode::read(node).fill_in(&mut agent);
        }
        // A driver without this property supports no device with several.
        agent.num_xcc = agent.num_xcc.max(1);
        agent
    }
}

/// `GPU-` and hexadecimal digits as the 16 bytes of the driver; zero for a device without such a number.
fn uuid(text: &str) -> Uuid {
    let mut bytes = [0; 16];
    let digits = text.strip_prefix("GPU-");
    if let Some(number) = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()) {
        bytes[..8].copy_from_slice(&number.to_le_bytes());
    }
    Uuid { bytes }
}

fn caches(agent: u64, is_gpu: bool) -> &'static [Cache] {
    let described = hsa::caches(agent).into_iter().map(|cache| {
        let (mut level, mut bytes) = (0_u8, 0_u32);
        for (attribute, place) in [
            (2, (&raw mut level).cast::<c_void>()),
            (3, (&raw mut bytes).cast::<c_void>()),
        ] {
            runtime!(
                HSA_CORE_API::hsa_cache_get_info(u64, u32, *mut c_void) -> u32,
                (cache, attribute, place),
                MISSING
            );
        }
        let mut described = Cache {
            size: u64::from(bytes / 1024),
            level: level.into(),
            cache_line_size: 64,
            cache_lines_per_tag: 1,
            ..Cache::default()
        };
        // Data cache of the CPU or of a compute unit.
        described.r#type.bits = 1 | if is_gpu { 8 } else { 4 };
        described
    });
    Vec::leak(described.collect())
}

/// Attributes of a memory pool: segment, flags, size.
const POOL_SEGMENT: u32 = 0;
const POOL_SIZE: u32 = 2;
/// Segments of memory pools: global, group.
const GLOBAL: u32 = 0;
const GROUP: u32 = 3;

fn pool_info<T: Default>(pool: u64, attribute: u32) -> T {
    let mut value = T::default();
    let place = (&raw mut value).cast::<c_void>();
    runtime!(
        HSA_AMD_EXT_API::hsa_amd_memory_pool_get_info(u64, u32, *mut c_void) -> u32,
        (pool, attribute, place),
        MISSING
    );
    value
}

/// Bytes of group memory of a compute unit.
fn group_memory(agent: u64) -> u32 {
    let pools = hsa::pools(agent).into_iter();
    let group = pools
        .filter(|pool| pool_info::<u32>(*pool, POOL_SEGMENT) == GROUP)
        .map(|pool| pool_info::<u64>(pool, POOL_SIZE) as u32);
    group.max().unwrap_or(0)
}

fn banks(agent: u64, is_gpu: bool) -> &'static [Bank] {
    let pools = hsa::pools(agent).into_iter();
    let largest = pools
        .filter(|pool| pool_info::<u32>(*pool, POOL_SEGMENT) == GLOBAL)
        .map(|pool| pool_info::<u64>(pool, POOL_SIZE))
        .max();
    let Some(size_in_bytes) = largest else {
        return &[];
    };
    // SAFETY: both attributes have this type.
    let (width, mem_clk_max) = unsafe { (get(agent, 0xA007), get(agent, 0xA008)) };
    Vec::leak(vec![Bank {
        heap_type: if is_gpu {
            HSA_HEAPTYPE::FRAME_BUFFER_PUBLIC
        } else {
            HSA_HEAPTYPE::SYSTEM
        },
        width,
        mem_clk_max,
        size_in_bytes,
        ..Bank::default()
    }])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_version_numbers_architectures_by_major_minor_and_stepping() {
        for (name, number) in [
            ("gfx90a", 90_010),
            ("gfx1030", 100_300),
            ("gfx942", 90_402),
            ("gfx1201", 120_001),
            ("AMD EPYC", 0),
            ("gfx", 0),
        ] {
            assert_eq!(target_version(name), number, "{name}");
        }
    }

    #[test]
    fn cpu_family_is_read_from_cpuinfo() {
        let text = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\n";
        assert_eq!(cpu_family(text), 25);
        assert_eq!(cpu_family("processor : 0"), 0);
    }

    #[test]
    fn uuid_is_zero_for_devices_without_a_number() {
        assert_eq!(uuid("GPU-0100").bytes[..2], [0, 1]);
        assert_eq!(uuid("GPU-XX").bytes, [0; 16]);
        assert_eq!(uuid("CPU-XX").bytes, [0; 16]);
    }
}
