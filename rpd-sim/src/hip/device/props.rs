//! Device properties in the layouts of both API generations, and the attributes read from them.

use core::ffi::c_char;

use crate::hip::error::{HipResult, code};
use crate::hip::hsa;
use rpd_gfx::device::{self as gfx, Layout};

/// Properties of an agent, as the driver reports them.
#[derive(Debug, Clone)]
pub(crate) struct Figures {
    /// Marketing name.
    pub(crate) product: String,
    /// Target with its features, such as `gfx90a:sramecc+:xnack-`.
    pub(crate) target: String,
    /// Universally unique id, `GPU-` and 16 hexadecimal digits.
    pub(crate) uuid: String,
    pub(crate) compute_units: u32,
    /// Clock of the compute units in MHz.
    pub(crate) clock: u32,
    /// Highest clock of the device memory in MHz.
    pub(crate) memory_clock: u32,
    /// Width of the memory bus in bits.
    pub(crate) memory_width: u32,
    pub(crate) wavefront: u32,
    pub(crate) waves_per_cu: u32,
    pub(crate) workgroup_max: u32,
    pub(crate) bdf: u32,
    pub(crate) domain: u32,
    pub(crate) l2: u32,
    /// Frequency of the timestamp counter in kHz.
    pub(crate) timestamp: u32,
    pub(crate) asic_revision: u32,
    /// Properties of the compute units.
    pub(crate) layout: &'static Layout,
    /// Whether the device has instructions for images.
    pub(crate) images: bool,
}

impl Figures {
    pub(crate) fn read(agent: u64) -> HipResult<Self> {
        const WAVEFRONT_SIZE: u32 = 6;
        const WORKGROUP_MAX_SIZE: u32 = 8;
        const CACHE_SIZE: u32 = 18;
        const COMPUTE_UNITS: u32 = 0xA002;
        const MAX_CLOCK: u32 = 0xA003;
        const BDF: u32 = 0xA006;
        const MEMORY_WIDTH: u32 = 0xA007;
        const MEMORY_CLOCK: u32 = 0xA008;
        const PRODUCT_NAME: u32 = 0xA009;
        const WAVES_PER_CU: u32 = 0xA00A;
        const DOMAIN: u32 = 0xA00F;
        const UUID: u32 = 0xA011;
        const ASIC_REVISION: u32 = 0xA012;
        const TIMESTAMP_FREQUENCY: u32 = 0xA016;
        let number =
            |attribute, otherwise| hsa::agent_info::<u32>(agent, attribute).unwrap_or(otherwise);
        let isa = hsa::agent_isas(agent)?
            .into_iter()
            .next()
            .ok_or(code::NO_DEVICE)?;
        let target = isa
            .rsplit_once("--")
            .map_or(isa.as_str(), |(_, id)| id)
            .to_owned();
        let processor = target.split(':').next().unwrap_or_default();
        let device = gfx::Device::find(processor).ok_or(code::NO_DEVICE)?;
        let caches: [u32; 4] = hsa::agent_info(agent, CACHE_SIZE).unwrap_or_default();
        Ok(Self {
            product: hsa::agent_text(agent, PRODUCT_NAME)?,
            target,
            uuid: hsa::agent_text(agent, UUID).unwrap_or_default(),
            compute_units: number(COMPUTE_UNITS, 1),
            clock: number(MAX_CLOCK, 0),
            memory_clock: number(MEMORY_CLOCK, 0),
            memory_width: number(MEMORY_WIDTH, 0),
            wavefront: number(WAVEFRONT_SIZE, 64),
            waves_per_cu: number(WAVES_PER_CU, 32),
            workgroup_max: number(WORKGROUP_MAX_SIZE, 1024),
            bdf: number(BDF, 0),
            domain: number(DOMAIN, 0),
            l2: caches[1],
            timestamp: hsa::agent_info::<u64>(agent, TIMESTAMP_FREQUENCY)
                .map_or(100_000, |hz| (hz / 1000) as u32),
            asic_revision: number(ASIC_REVISION, 0),
            layout: &device.layout,
            images: device.code.images,
        })
    }

    /// Major, minor and stepping of the target, as in gfx90a: 9, 0, 10.
    pub(crate) fn version(&self) -> (i32, i32, i32) {
        let digits = self
            .target
            .split(':')
            .next()
            .unwrap_or_default()
            .trim_start_matches("gfx");
        let Some(split) = digits.len().checked_sub(2) else {
            return (0, 0, 0);
        };
        let hex = |text: &str| i32::from_str_radix(text, 16).unwrap_or(0);
        (
            digits[..split].parse().unwrap_or(0),
            hex(&digits[split..=split]),
            hex(&digits[split + 1..]),
        )
    }

    pub(crate) fn bus(&self) -> i32 {
        (self.bdf >> 8 & 0xff) as i32
    }

    pub(crate) fn slot(&self) -> i32 {
        (self.bdf >> 3 & 0x1f) as i32
    }

    /// The 16 bytes of a device's UUID that programs get: the digits after `GPU-`.
    pub(crate) fn uuid_bytes(&self) -> [c_char; 16] {
        let digits = self.uuid.strip_prefix("GPU-").unwrap_or(&self.uuid);
        let mut bytes = [0; 16];
        for (byte, &digit) in bytes.iter_mut().zip(digits.as_bytes()) {
            *byte = digit as c_char;
        }
        bytes
    }
}

/// `hipDeviceProp_tR0600`.
#[repr(C)]
#[derive(Debug, Clone)]
pub(crate) struct Properties {
    pub(crate) name: [c_char; 256],
    pub(crate) uuid: [c_char; 16],
    pub(crate) luid: [c_char; 8],
    pub(crate) luid_device_node_mask: u32,
    pub(crate) total_global_mem: usize,
    pub(crate) shared_mem_per_block: usize,
    pub(crate) regs_per_block: i32,
    pub(crate) warp_size: i32,
    pub(crate) mem_pitch: usize,
    pub(crate) max_threads_per_block: i32,
    pub(crate) max_threads_dim: [i32; 3],
    pub(crate) max_grid_size: [i32; 3],
    pub(crate) clock_rate: i32,
    pub(crate) total_const_mem: usize,
    pub(crate) major: i32,
    pub(crate) minor: i32,
    pub(crate) texture_alignment: usize,
    pub(crate) texture_pitch_alignment: usize,
    pub(crate) device_overlap: i32,
    pub(crate) multi_processor_count: i32,
    pub(crate) kernel_exec_timeout_enabled: i32,
    pub(crate) integrated: i32,
    pub(crate) can_map_host_memory: i32,
    pub(crate) compute_mode: i32,
    pub(crate) max_texture_1d: i32,
    pub(crate) max_texture_1d_mipmap: i32,
    pub(crate) max_texture_1d_linear: i32,
    pub(crate) max_texture_2d: [i32; 2],
    pub(crate) max_texture_2d_mipmap: [i32; 2],
    pub(crate) max_texture_2d_linear: [i32; 3],
    pub(crate) max_texture_2d_gather: [i32; 2],
    pub(crate) max_texture_3d: [i32; 3],
    pub(crate) max_texture_3d_alt: [i32; 3],
    pub(crate) max_texture_cubemap: i32,
    pub(crate) max_texture_1d_layered: [i32; 2],
    pub(crate) max_texture_2d_layered: [i32; 3],
    pub(crate) max_texture_cubemap_layered: [i32; 2],
    pub(crate) max_surface_1d: i32,
    pub(crate) max_surface_2d: [i32; 2],
    pub(crate) max_surface_3d: [i32; 3],
    pub(crate) max_surface_1d_layered: [i32; 2],
    pub(crate) max_surface_2d_layered: [i32; 3],
    pub(crate) max_surface_cubemap: i32,
    pub(crate) max_surface_cubemap_layered: [i32; 2],
    pub(crate) surface_alignment: usize,
    pub(crate) concurrent_kernels: i32,
    pub(crate) ecc_enabled: i32,
    pub(crate) pci_bus_id: i32,
    pub(crate) pci_device_id: i32,
    pub(crate) pci_domain_id: i32,
    pub(crate) tcc_driver: i32,
    pub(crate) async_engine_count: i32,
    pub(crate) unified_addressing: i32,
    pub(crate) memory_clock_rate: i32,
    pub(crate) memory_bus_width: i32,
    pub(crate) l2_cache_size: i32,
    pub(crate) persisting_l2_cache_max_size: i32,
    pub(crate) max_threads_per_multi_processor: i32,
    pub(crate) stream_priorities_supported: i32,
    pub(crate) global_l1_cache_supported: i32,
    pub(crate) local_l1_cache_supported: i32,
    pub(crate) shared_mem_per_multiprocessor: usize,
    pub(crate) regs_per_multiprocessor: i32,
    pub(crate) managed_memory: i32,
    pub(crate) is_multi_gpu_board: i32,
    pub(crate) multi_gpu_board_group_id: i32,
    pub(crate) host_native_atomic_supported: i32,
    pub(crate) single_to_double_precision_perf_ratio: i32,
    pub(crate) pageable_memory_access: i32,
    pub(crate) concurrent_managed_access: i32,
    pub(crate) compute_preemption_supported: i32,
    pub(crate) can_use_host_pointer_for_registered_mem: i32,
    pub(crate) cooperative_launch: i32,
    pub(crate) cooperative_multi_device_launch: i32,
    pub(crate) shared_mem_per_block_optin: usize,
    pub(crate) pageable_memory_access_uses_host_page_tables: i32,
    pub(crate) direct_managed_mem_access_from_host: i32,
    pub(crate) max_blocks_per_multi_processor: i32,
    pub(crate) access_policy_max_window_size: i32,
    pub(crate) reserved_shared_mem_per_block: usize,
    pub(crate) host_register_supported: i32,
    pub(crate) sparse_hip_array_supported: i32,
    pub(crate) host_register_read_only_supported: i32,
    pub(crate) timeline_semaphore_interop_supported: i32,
    pub(crate) memory_pools_supported: i32,
    pub(crate) gpu_direct_rdma_supported: i32,
    pub(crate) gpu_direct_rdma_flush_writes_options: u32,
    pub(crate) gpu_direct_rdma_writes_ordering: i32,
    pub(crate) memory_pool_supported_handle_types: u32,
    pub(crate) deferred_mapping_hip_array_supported: i32,
    pub(crate) ipc_event_supported: i32,
    pub(crate) cluster_launch: i32,
    pub(crate) unified_function_pointers: i32,
    pub(crate) reserved: [i32; 63],
    pub(crate) hip_reserved: [i32; 32],
    pub(crate) gcn_arch_name: [c_char; 256],
    pub(crate) max_shared_memory_per_multi_processor: usize,
    pub(crate) clock_instruction_rate: i32,
    pub(crate) arch: u32,
    pub(crate) hdp_mem_flush_cntl: *mut u32,
    pub(crate) hdp_reg_flush_cntl: *mut u32,
    pub(crate) cooperative_multi_device_unmatched_func: i32,
    pub(crate) cooperative_multi_device_unmatched_grid_dim: i32,
    pub(crate) cooperative_multi_device_unmatched_block_dim: i32,
    pub(crate) cooperative_multi_device_unmatched_shared_mem: i32,
    pub(crate) is_large_bar: i32,
    pub(crate) asic_revision: i32,
}

// SAFETY: the two pointers are always null.
unsafe impl Send for Properties {}
// SAFETY: as above.
unsafe impl Sync for Properties {}

/// `hipDeviceProp_tR0000`, the layout before HIP 6.
#[repr(C)]
#[derive(Debug, Clone)]
pub(crate) struct OldProperties {
    pub(crate) name: [c_char; 256],
    pub(crate) total_global_mem: usize,
    pub(crate) shared_mem_per_block: usize,
    pub(crate) regs_per_block: i32,
    pub(crate) warp_size: i32,
    pub(crate) max_threads_per_block: i32,
    pub(crate) max_threads_dim: [i32; 3],
    pub(crate) max_grid_size: [i32; 3],
    pub(crate) clock_rate: i32,
    pub(crate) memory_clock_rate: i32,
    pub(crate) memory_bus_width: i32,
    pub(crate) total_const_mem: usize,
    pub(crate) major: i32,
    pub(crate) minor: i32,
    pub(crate) multi_processor_count: i32,
    pub(crate) l2_cache_size: i32,
    pub(crate) max_threads_per_multi_processor: i32,
    pub(crate) compute_mode: i32,
    pub(crate) clock_instruction_rate: i32,
    pub(crate) arch: u32,
    pub(crate) concurrent_kernels: i32,
    pub(crate) pci_domain_id: i32,
    pub(crate) pci_bus_id: i32,
    pub(crate) pci_device_id: i32,
    pub(crate) max_shared_memory_per_multi_processor: usize,
    pub(crate) is_multi_gpu_board: i32,
    pub(crate) can_map_host_memory: i32,
    pub(crate) gcn_arch: i32,
    pub(crate) gcn_arch_name: [c_char; 256],
    pub(crate) integrated: i32,
    pub(crate) cooperative_launch: i32,
    pub(crate) cooperative_multi_device_launch: i32,
    pub(crate) max_texture_1d_linear: i32,
    pub(crate) max_texture_1d: i32,
    pub(crate) max_texture_2d: [i32; 2],
    pub(crate) max_texture_3d: [i32; 3],
    pub(crate) hdp_mem_flush_cntl: *mut u32,
    pub(crate) hdp_reg_flush_cntl: *mut u32,
    pub(crate) mem_pitch: usize,
    pub(crate) texture_alignment: usize,
    pub(crate) texture_pitch_alignment: usize,
    pub(crate) kernel_exec_timeout_enabled: i32,
    pub(crate) ecc_enabled: i32,
    pub(crate) tcc_driver: i32,
    pub(crate) cooperative_multi_device_unmatched_func: i32,
    pub(crate) cooperative_multi_device_unmatched_grid_dim: i32,
    pub(crate) cooperative_multi_device_unmatched_block_dim: i32,
    pub(crate) cooperative_multi_device_unmatched_shared_mem: i32,
    pub(crate) is_large_bar: i32,
    pub(crate) asic_revision: i32,
    pub(crate) managed_memory: i32,
    pub(crate) direct_managed_mem_access_from_host: i32,
    pub(crate) concurrent_managed_access: i32,
    pub(crate) pageable_memory_access: i32,
    pub(crate) pageable_memory_access_uses_host_page_tables: i32,
}

/// Atomics, doubles, votes and shuffles: the `hipDeviceArch_t` of CDNA.
const ARCH: u32 = 0x7ff | 1 << 12 | 1 << 15;

fn text<const N: usize>(value: &str) -> [c_char; N] {
    let mut out = [0; N];
    for (to, &from) in out[..N - 1].iter_mut().zip(value.as_bytes()) {
        *to = from as c_char;
    }
    out
}

fn clamp(value: usize) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

impl Properties {
    pub(crate) fn from_figures(figures: &Figures, total: usize) -> Self {
        // SAFETY: numbers, characters and pointers that may be null: all zeroes is a value.
        let mut p: Self = unsafe { std::mem::zeroed() };
        let (major, minor, _) = figures.version();
        p.name = text(&figures.product);
        p.uuid = figures.uuid_bytes();
        p.total_global_mem = total;
        let lds_bytes = figures.layout.lds_bytes as usize;
        // 32-bit registers of the architected half of a compute unit's vector register files.
        let layout = figures.layout;
        let registers = layout.simds_per_unit * layout.vector_registers * figures.wavefront / 2;
        // Attributes that the real runtime gives for this hardware, in the order of the struct; all that it leaves 0 is
        // left out.
        p.shared_mem_per_block = lds_bytes;
        p.shared_mem_per_block_optin = lds_bytes;
        p.shared_mem_per_multiprocessor = lds_bytes * figures.compute_units as usize;
        p.max_shared_memory_per_multi_processor = lds_bytes;
        p.regs_per_block = registers as i32;
        p.regs_per_multiprocessor = registers as i32;
        p.warp_size = figures.wavefront as i32;
        p.max_threads_per_block = figures.workgroup_max as i32;
        p.max_threads_dim = [figures.workgroup_max as i32; 3];
        // The real runtime reports 16 bits for y and z, although packets have 32.
        p.max_grid_size = [i32::MAX, 65535, 65535];
        p.clock_rate = figures.clock as i32 * 1000;
        p.memory_clock_rate = figures.memory_clock as i32 * 1000;
        p.memory_bus_width = figures.memory_width as i32;
        // Constants are ordinary device memory, so that there is no limit of their own.
        p.total_const_mem = i32::MAX as usize;
        p.major = major;
        p.minor = minor;
        p.multi_processor_count = figures.compute_units as i32;
        p.l2_cache_size = figures.l2 as i32;
        p.persisting_l2_cache_max_size = figures.l2 as i32;
        p.max_threads_per_multi_processor = (figures.waves_per_cu * figures.wavefront) as i32;
        p.max_blocks_per_multi_processor =
            p.max_threads_per_multi_processor / p.max_threads_per_block.max(1);
        p.clock_instruction_rate = figures.timestamp as i32;
        p.arch = ARCH;
        p.concurrent_kernels = 1;
        p.pci_domain_id = figures.domain as i32;
        p.pci_bus_id = figures.bus();
        p.pci_device_id = figures.slot();
        p.can_map_host_memory = 1;
        p.gcn_arch_name = text(&figures.target);
        // Workgroups of different devices can wait for each other in host memory, whatever the kernels and sizes are.
        p.cooperative_launch = 1;
        p.cooperative_multi_device_launch = 1;
        p.cooperative_multi_device_unmatched_func = 1;
        p.cooperative_multi_device_unmatched_grid_dim = 1;
        p.cooperative_multi_device_unmatched_block_dim = 1;
        p.cooperative_multi_device_unmatched_shared_mem = 1;
        // Compute devices without image instructions report no sizes, by which programs find out.
        if figures.images {
            p.max_texture_1d = 16384;
            p.max_surface_1d = 16384;
            p.max_texture_1d_linear = i32::MAX;
            p.max_texture_1d_mipmap = i32::MAX;
            p.max_texture_2d = [16384; 2];
            p.max_surface_2d = [16384; 2];
            p.max_texture_3d = [16384, 16384, 8192];
            p.max_surface_3d = [16384, 16384, 8192];
            p.max_texture_1d_layered = [16384, 8192];
            p.max_surface_1d_layered = [16384, 8192];
            p.max_texture_2d_layered = [16384, 16384, 8192];
            p.max_surface_2d_layered = [16384, 16384, 8192];
        }
        // Descriptors have the address in units of 256 bytes.
        p.texture_alignment = 256;
        p.surface_alignment = 256;
        p.texture_pitch_alignment = 256;
        p.mem_pitch = i32::MAX as usize;
        // The host reaches all device memory, which is memory of the process.
        p.is_large_bar = 1;
        p.asic_revision = figures.asic_revision as i32;
        p.ipc_event_supported = 1;
        p.stream_priorities_supported = 1;
        p.multi_gpu_board_group_id = figures.slot();
        // One engine for each direction, see `ENGINES_PER_GPU`.
        p.async_engine_count = 2;
        p.device_overlap = 1;
        p.unified_addressing = 1;
        p.managed_memory = 1;
        p.concurrent_managed_access = 1;
        p.direct_managed_mem_access_from_host = 1;
        p.host_register_supported = 1;
        p.memory_pools_supported = 1;
        p.global_l1_cache_supported = 1;
        p.local_l1_cache_supported = 1;
        p
    }

    /// The properties in the layout before HIP 6.
    pub(crate) fn old(&self, figures: &Figures) -> OldProperties {
        // SAFETY: as in `of`.
        let mut p: OldProperties = unsafe { std::mem::zeroed() };
        let (major, minor, stepping) = figures.version();
        p.name = self.name;
        p.total_global_mem = self.total_global_mem;
        p.shared_mem_per_block = self.shared_mem_per_block;
        p.regs_per_block = self.regs_per_block;
        p.warp_size = self.warp_size;
        p.max_threads_per_block = self.max_threads_per_block;
        p.max_threads_dim = self.max_threads_dim;
        p.max_grid_size = self.max_grid_size;
        p.clock_rate = self.clock_rate;
        p.memory_clock_rate = self.memory_clock_rate;
        p.memory_bus_width = self.memory_bus_width;
        p.total_const_mem = self.total_const_mem;
        p.major = self.major;
        p.minor = self.minor;
        p.multi_processor_count = self.multi_processor_count;
        p.l2_cache_size = self.l2_cache_size;
        p.max_threads_per_multi_processor = self.max_threads_per_multi_processor;
        p.clock_instruction_rate = self.clock_instruction_rate;
        p.arch = self.arch;
        p.concurrent_kernels = 1;
        p.pci_domain_id = self.pci_domain_id;
        p.pci_bus_id = self.pci_bus_id;
        p.pci_device_id = self.pci_device_id;
        p.max_shared_memory_per_multi_processor = self.max_shared_memory_per_multi_processor;
        p.can_map_host_memory = 1;
        p.gcn_arch = major * 100 + minor * 10 + stepping;
        p.gcn_arch_name = self.gcn_arch_name;
        p.cooperative_launch = self.cooperative_launch;
        p.max_texture_1d_linear = self.max_texture_1d_linear;
        p.max_texture_1d = self.max_texture_1d;
        p.max_texture_2d = self.max_texture_2d;
        p.max_texture_3d = self.max_texture_3d;
        p.mem_pitch = self.mem_pitch;
        p.texture_alignment = self.texture_alignment;
        p.texture_pitch_alignment = self.texture_pitch_alignment;
        p.is_large_bar = self.is_large_bar;
        p.asic_revision = self.asic_revision;
        p.managed_memory = self.managed_memory;
        p.direct_managed_mem_access_from_host = self.direct_managed_mem_access_from_host;
        p.concurrent_managed_access = self.concurrent_managed_access;
        p
    }

    /// The value of a `hipDeviceAttribute_t`.
    pub(crate) fn attribute(&self, attribute: u32) -> HipResult<i32> {
        // Numbers of `hipDeviceAttribute_t` from HIP 6 on. Gaps are attributes of other vendors, which the real runtime
        // refuses as well; from 10000 on they are AMD's.
        Ok(match attribute {
            0 => self.ecc_enabled,
            1 => self.access_policy_max_window_size,
            2 => self.async_engine_count,
            3 => self.can_map_host_memory,
            4 => self.can_use_host_pointer_for_registered_mem,
            5 => self.clock_rate,
            6 => self.compute_mode,
            7 => self.compute_preemption_supported,
            8 => self.concurrent_kernels,
            9 => self.concurrent_managed_access,
            10 => self.cooperative_launch,
            11 => self.cooperative_multi_device_launch,
            12 => self.device_overlap,
            13 => self.direct_managed_mem_access_from_host,
            14 => self.global_l1_cache_supported,
            15 => self.host_native_atomic_supported,
            16 => self.integrated,
            17 => self.is_multi_gpu_board,
            18 => self.kernel_exec_timeout_enabled,
            19 => self.l2_cache_size,
            20 => self.local_l1_cache_supported,
            22 => self.luid_device_node_mask as i32,
            23 => self.major,
            24 => self.managed_memory,
            25 => self.max_blocks_per_multi_processor,
            26..=28 => self.max_threads_dim[attribute as usize - 26],
            29..=31 => self.max_grid_size[attribute as usize - 29],
            32 => self.max_surface_1d,
            37 => self.max_surface_cubemap,
            39 => self.max_texture_1d,
            41 => self.max_texture_1d_linear,
            42 => self.max_texture_1d_mipmap,
            43 | 44 => self.max_texture_2d[attribute as usize - 43],
            49..=51 => self.max_texture_3d[attribute as usize - 49],
            53 => self.max_texture_cubemap,
            56 => self.max_threads_per_block,
            57 => self.max_threads_per_multi_processor,
            58 => clamp(self.mem_pitch),
            59 => self.memory_bus_width,
            60 => self.memory_clock_rate,
            61 => self.minor,
            62 => self.multi_gpu_board_group_id,
            63 => self.multi_processor_count,
            65 => self.pageable_memory_access,
            66 => self.pageable_memory_access_uses_host_page_tables,
            67 => self.pci_bus_id,
            68 => self.pci_device_id,
            69 => self.pci_domain_id,
            70 => self.persisting_l2_cache_max_size,
            71 => self.regs_per_block,
            72 => self.regs_per_multiprocessor,
            73 => clamp(self.reserved_shared_mem_per_block),
            74 => clamp(self.shared_mem_per_block),
            75 => clamp(self.shared_mem_per_block_optin),
            76 => clamp(self.shared_mem_per_multiprocessor),
            77 => self.single_to_double_precision_perf_ratio,
            78 => self.stream_priorities_supported,
            79 => clamp(self.surface_alignment),
            80 => self.tcc_driver,
            81 => clamp(self.texture_alignment),
            82 => clamp(self.texture_pitch_alignment),
            83 => clamp(self.total_const_mem),
            84 => clamp(self.total_global_mem),
            85 => self.unified_addressing,
            87 => self.warp_size,
            88 => self.memory_pools_supported,
            89 => 0,
            90 => self.host_register_supported,
            91 => self.memory_pool_supported_handle_types as i32,
            10000 | 10017 => self.clock_instruction_rate,
            10002 => clamp(self.max_shared_memory_per_multi_processor),
            10007 => self.cooperative_multi_device_unmatched_func,
            10008 => self.cooperative_multi_device_unmatched_grid_dim,
            10009 => self.cooperative_multi_device_unmatched_block_dim,
            10010 => self.cooperative_multi_device_unmatched_shared_mem,
            10011 => self.is_large_bar,
            10012 => self.asic_revision,
            10013 => 1,
            10014 => self.max_texture_2d[0].min(1),
            10015 => self.multi_processor_count,
            10016 => 1,
            _ => return Err(code::INVALID_VALUE),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    #[test]
    fn device_properties_have_the_layout_of_the_headers() {
        assert_eq!(size_of::<Properties>(), 1472);
        assert_eq!(offset_of!(Properties, total_global_mem), 288);
        assert_eq!(offset_of!(Properties, multi_processor_count), 388);
        assert_eq!(offset_of!(Properties, max_texture_1d), 408);
        assert_eq!(offset_of!(Properties, surface_alignment), 568);
        assert_eq!(offset_of!(Properties, pci_bus_id), 584);
        assert_eq!(offset_of!(Properties, shared_mem_per_block_optin), 696);
        assert_eq!(offset_of!(Properties, gcn_arch_name), 1160);
        assert_eq!(offset_of!(Properties, arch), 1428);
        assert_eq!(offset_of!(Properties, asic_revision), 1468);
        assert_eq!(size_of::<OldProperties>(), 792);
    }
}
