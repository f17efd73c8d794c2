//! Memory formats the packet processors share with the runtime: AQL packets, queues and signals.
//!
//! Layouts are those of `hsa.h`, `amd_hsa_queue.h` and `amd_hsa_signal.h`; tests check their offsets.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64};

/// `hsa_dim3_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Dim3 {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) z: u32,
}

/// Bytes of every AQL packet.
pub(crate) const PACKET_BYTES: usize = 64;

/// Packet types in the low byte of a header.
pub(crate) mod packet_type {
    pub(crate) const VENDOR_SPECIFIC: u16 = 0;
    pub(crate) const INVALID: u16 = 1;
    pub(crate) const KERNEL_DISPATCH: u16 = 2;
    pub(crate) const BARRIER_AND: u16 = 3;
    pub(crate) const AGENT_DISPATCH: u16 = 4;
    pub(crate) const BARRIER_OR: u16 = 5;
}

/// Header bit that makes a packet wait for all earlier ones of its queue.
pub(crate) const HEADER_BARRIER: u16 = 1 << 8;
/// Position of the acquire fence scope in a header (2 bits).
pub(crate) const HEADER_ACQUIRE_SHIFT: u16 = 9;
/// Position of the release fence scope in a header (2 bits).
pub(crate) const HEADER_RELEASE_SHIFT: u16 = 11;
/// Format byte of the vendor packet that waits for a signal's value.
pub(crate) const AMD_FORMAT_BARRIER_VALUE: u8 = 2;

/// `hsa_kernel_dispatch_packet_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KernelDispatchPacket {
    pub(crate) header: u16,
    pub(crate) setup: u16,
    pub(crate) workgroup_size_x: u16,
    pub(crate) workgroup_size_y: u16,
    pub(crate) workgroup_size_z: u16,
    pub(crate) reserved0: u16,
    pub(crate) grid_size_x: u32,
    pub(crate) grid_size_y: u32,
    pub(crate) grid_size_z: u32,
    pub(crate) private_segment_size: u32,
    pub(crate) group_segment_size: u32,
    pub(crate) kernel_object: u64,
    pub(crate) kernarg_address: u64,
    pub(crate) reserved2: u64,
    pub(crate) completion_signal: u64,
}

/// `hsa_barrier_and_packet_t` and `hsa_barrier_or_packet_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BarrierPacket {
    pub(crate) header: u16,
    pub(crate) reserved0: u16,
    pub(crate) reserved1: u32,
    pub(crate) dep_signal: [u64; 5],
    pub(crate) reserved2: u64,
    pub(crate) completion_signal: u64,
}

/// `hsa_amd_barrier_value_packet_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BarrierValuePacket {
    pub(crate) header: u16,
    pub(crate) format: u8,
    pub(crate) reserved: u8,
    pub(crate) reserved0: u32,
    pub(crate) signal: u64,
    pub(crate) value: i64,
    pub(crate) mask: i64,
    pub(crate) cond: u32,
    pub(crate) reserved1: u32,
    pub(crate) reserved2: u64,
    pub(crate) reserved3: u64,
    pub(crate) completion_signal: u64,
}

/// `hsa_queue_t`: the part of a queue that programs see.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct HsaQueue {
    pub(crate) kind: u32,
    pub(crate) features: u32,
    pub(crate) base_address: u64,
    pub(crate) doorbell_signal: u64,
    pub(crate) size: u32,
    pub(crate) reserved1: u32,
    pub(crate) id: u64,
}

/// `amd_queue_t`: an `hsa_queue_t` and what the packet processor and debuggers need besides.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct AmdQueue {
    pub(crate) hsa_queue: HsaQueue,
    pub(crate) caps: u32,
    pub(crate) reserved1: [u32; 3],
    pub(crate) write_dispatch_id: AtomicU64,
    pub(crate) group_segment_aperture_base_hi: u32,
    pub(crate) private_segment_aperture_base_hi: u32,
    pub(crate) max_cu_id: u32,
    pub(crate) max_wave_id: u32,
    pub(crate) max_legacy_doorbell_dispatch_id_plus_1: u64,
    pub(crate) legacy_doorbell_lock: u32,
    pub(crate) reserved2: [u32; 9],
    pub(crate) read_dispatch_id: AtomicU64,
    pub(crate) read_dispatch_id_field_base_byte_offset: u32,
    pub(crate) compute_tmpring_size: u32,
    pub(crate) scratch_resource_descriptor: [u32; 4],
    pub(crate) scratch_backing_memory_location: AtomicU64,
    pub(crate) scratch_backing_memory_byte_size: AtomicU64,
    pub(crate) scratch_wave64_lane_byte_size: u32,
    pub(crate) queue_properties: AtomicU32,
    pub(crate) scratch_last_used_index: u64,
    pub(crate) queue_inactive_signal: u64,
    pub(crate) reserved4: [u32; 2],
    pub(crate) alt_scratch_last_used_index: u64,
    pub(crate) alt_scratch_backing_memory_location: u64,
    pub(crate) alt_scratch_backing_memory_byte_size: u64,
    pub(crate) alt_scratch_dispatch_limit: [u32; 3],
    pub(crate) alt_scratch_wave64_lane_byte_size: u32,
    pub(crate) alt_compute_tmpring_size: u32,
    pub(crate) reserved5: u32,
}

/// Values of `AmdSignal::kind`.
pub(crate) mod signal_kind {
    pub(crate) const INVALID: i64 = 0;
    pub(crate) const USER: i64 = 1;
    pub(crate) const DOORBELL: i64 = -1;
}

/// `amd_signal_t`: the memory that a signal's handle is the address of.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct AmdSignal {
    pub(crate) kind: AtomicI64,
    pub(crate) value: AtomicI64,
    pub(crate) event_mailbox_ptr: u64,
    pub(crate) event_id: u32,
    pub(crate) reserved1: u32,
    pub(crate) start_ts: AtomicU64,
    pub(crate) end_ts: AtomicU64,
    pub(crate) queue_ptr: AtomicU64,
    pub(crate) reserved3: [u32; 2],
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    #[test]
    fn aql_packets_have_the_layout_of_the_headers() {
        assert_eq!(size_of::<KernelDispatchPacket>(), PACKET_BYTES);
        assert_eq!(offset_of!(KernelDispatchPacket, kernel_object), 32);
        assert_eq!(offset_of!(KernelDispatchPacket, kernarg_address), 40);
        assert_eq!(offset_of!(KernelDispatchPacket, completion_signal), 56);
        assert_eq!(size_of::<BarrierPacket>(), PACKET_BYTES);
        assert_eq!(offset_of!(BarrierPacket, completion_signal), 56);
        assert_eq!(size_of::<BarrierValuePacket>(), PACKET_BYTES);
        assert_eq!(offset_of!(BarrierValuePacket, signal), 8);
        assert_eq!(offset_of!(BarrierValuePacket, completion_signal), 56);
        assert_eq!(size_of::<HsaQueue>(), 40);
        assert_eq!(offset_of!(AmdQueue, write_dispatch_id), 56);
        assert_eq!(offset_of!(AmdQueue, read_dispatch_id), 128);
        assert_eq!(offset_of!(AmdQueue, scratch_backing_memory_location), 160);
        assert_eq!(offset_of!(AmdQueue, queue_properties), 180);
        assert_eq!(offset_of!(AmdQueue, queue_inactive_signal), 192);
        assert_eq!(size_of::<AmdSignal>(), 64);
        assert_eq!(offset_of!(AmdSignal, start_ts), 32);
        assert_eq!(offset_of!(AmdSignal, queue_ptr), 48);
    }
}
