//! Structs of the library's interface, version 26.

use core::ffi::c_char;

/// A text with its terminating zero.
pub(crate) type Text = [u8; 256];

/// A text as a field of a struct, cut to the room in the field.
pub(super) fn text(text: &str) -> Text {
    let mut bytes = [0; 256];
    let kept = text.len().min(bytes.len() - 1);
    bytes[..kept].copy_from_slice(&text.as_bytes()[..kept]);
    bytes
}

/// `amdsmi_version_t`.
#[repr(C)]
pub struct Version {
    pub(super) major: u32,
    pub(super) minor: u32,
    pub(super) release: u32,
    pub(super) build: *const c_char,
}

/// `amdsmi_enumeration_info_t`.
#[repr(C)]
pub struct EnumerationInfo {
    pub(super) drm_render: u32,
    pub(super) drm_card: u32,
    pub(super) hsa_id: u32,
    pub(super) hip_id: u32,
    pub(super) hip_uuid: Text,
}

/// `amdsmi_asic_info_t`.
#[repr(C)]
pub struct AsicInfo {
    pub(super) market_name: Text,
    pub(super) vendor_id: u32,
    pub(super) vendor_name: Text,
    pub(super) subvendor_id: u32,
    pub(super) device_id: u64,
    pub(super) rev_id: u32,
    pub(super) asic_serial: Text,
    pub(super) oam_id: u32,
    pub(super) num_of_compute_units: u32,
    pub(super) target_graphics_version: u64,
    pub(super) subsystem_id: u32,
    pub(super) reserved: [u32; 21],
}

/// `amdsmi_kfd_info_t`.
#[repr(C)]
pub struct KfdInfo {
    pub(super) kfd_id: u64,
    pub(super) node_id: u32,
    pub(super) current_partition_id: u32,
    pub(super) reserved: [u32; 12],
}

/// `amdsmi_vram_info_t`; the size in MiB, bandwidth in GB/s.
#[repr(C)]
pub struct VramInfo {
    pub(super) kind: u32,
    pub(super) vendor: Text,
    pub(super) size: u64,
    pub(super) bit_width: u32,
    pub(super) max_bandwidth: u64,
    pub(super) reserved: [u64; 37],
}

/// `amdsmi_vram_usage_t`, in MiB.
#[repr(C)]
pub struct VramUsage {
    pub(super) total: u32,
    pub(super) used: u32,
    pub(super) reserved: [u32; 2],
}

/// `amdsmi_driver_info_t`.
#[repr(C)]
pub struct DriverInfo {
    pub(super) version: Text,
    pub(super) date: Text,
    pub(super) name: Text,
}

/// `amdsmi_board_info_t`.
#[repr(C)]
pub struct BoardInfo {
    pub(super) model_number: Text,
    pub(super) product_serial: Text,
    pub(super) fru_id: Text,
    pub(super) product_name: Text,
    pub(super) manufacturer_name: Text,
    pub(super) reserved: [u64; 64],
}

/// `amdsmi_clk_info_t`, in MHz.
#[repr(C)]
pub struct ClockInfo {
    pub(super) now: u32,
    pub(super) least: u32,
    pub(super) most: u32,
    pub(super) locked: u8,
    pub(super) deep_sleep: u8,
    pub(super) reserved: [u32; 4],
}

/// A cache of [`CacheInfo`]; the size in KiB.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Cache {
    pub(super) properties: u32,
    pub(super) size: u32,
    pub(super) level: u32,
    pub(super) most_units: u32,
    pub(super) instances: u32,
    pub(super) reserved: [u32; 3],
}

/// `amdsmi_gpu_cache_info_t`.
#[repr(C)]
pub struct CacheInfo {
    pub(super) count: u32,
    pub(super) caches: [Cache; 10],
    pub(super) reserved: [u32; 15],
}

/// Id and version of one firmware, an entry of [`FirmwareInfo`].
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Firmware {
    pub(super) block: u32,
    pub(super) version: u64,
    pub(super) reserved: [u64; 2],
}

/// `amdsmi_fw_info_t`.
#[repr(C)]
pub struct FirmwareInfo {
    pub(super) count: u8,
    pub(super) list: [Firmware; 80],
    pub(super) reserved: [u32; 7],
}

/// `amdsmi_proc_info_t`; memory in bytes.
#[repr(C)]
pub struct ProcessInfo {
    pub(super) name: Text,
    pub(super) id: u32,
    pub(super) memory: u64,
    pub(super) engines: [u64; 2],
    pub(super) reserved_engines: [u32; 12],
    /// Bytes of memory in use: of the host that the GPU accesses (GTT), of the host (CPU), and of the GPU (VRAM).
    pub(super) memories: [u64; 3],
    pub(super) reserved_memories: [u32; 10],
    pub(super) container: Text,
    pub(super) occupancy: u32,
    pub(super) evicted_time: u32,
    pub(super) reserved: [u32; 10],
}

/// `amdsmi_process_info_t`; memory in bytes.
#[repr(C)]
pub struct ComputeProcess {
    pub(super) id: u32,
    pub(super) memory: u64,
    pub(super) copy_time: u64,
    pub(super) occupancy: u32,
    pub(super) evicted_time: u32,
}

/// `amdsmi_p2p_capability_t`.
#[repr(C)]
pub struct PeerCapability {
    pub(super) coherent: u8,
    pub(super) atomics_32: u8,
    pub(super) atomics_64: u8,
    pub(super) dma: u8,
    pub(super) both_ways: u8,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    #[test]
    fn amd_smi_types_have_the_layout_of_the_header() {
        assert_eq!(size_of::<Version>(), 24);
        assert_eq!(size_of::<EnumerationInfo>(), 272);
        assert_eq!(size_of::<AsicInfo>(), 896);
        assert_eq!(offset_of!(AsicInfo, device_id), 520);
        assert_eq!(offset_of!(AsicInfo, asic_serial), 532);
        assert_eq!(offset_of!(AsicInfo, target_graphics_version), 800);
        assert_eq!(size_of::<KfdInfo>(), 64);
        assert_eq!(size_of::<VramInfo>(), 584);
        assert_eq!(offset_of!(VramInfo, size), 264);
        assert_eq!(size_of::<VramUsage>(), 16);
        assert_eq!(size_of::<DriverInfo>(), 768);
        assert_eq!(size_of::<BoardInfo>(), 1792);
        assert_eq!(size_of::<ClockInfo>(), 32);
        assert_eq!(size_of::<CacheInfo>(), 384);
        assert_eq!(size_of::<FirmwareInfo>(), 2600);
        assert_eq!(size_of::<ProcessInfo>(), 704);
        assert_eq!(offset_of!(ProcessInfo, memories), 336);
        assert_eq!(offset_of!(ProcessInfo, container), 400);
        assert_eq!(size_of::<ComputeProcess>(), 32);
        assert_eq!(size_of::<PeerCapability>(), 5);
    }
}
