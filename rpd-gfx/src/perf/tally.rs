//! Sums of events, grouped by the block that counts them.

use super::pages::MemoryType;
use crate::isa::{MatrixElement, Valu};

/// Number of ports of a SIMD. Each issues one instruction in a quad-cycle.
pub(super) const PORTS: usize = 5;

/// Ports through which a SIMD issues instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Port {
    /// Vector arithmetic.
    Valu,
    /// Scalar arithmetic and memory.
    Scalar,
    /// Vector memory.
    Vmem,
    /// LDS.
    Lds,
    /// Branches and messages.
    Misc,
}

/// Events of a shader engine: sequencers, scalar and instruction caches, and its part of the dispatcher.
#[derive(Debug, Clone, Default)]
pub(super) struct Engine {
    /// Duration of the dispatch in cycles.
    pub(super) cycles: u64,
    /// Cycles in which the engine had waves.
    pub(super) busy: u64,
    /// Quad-cycles in which a compute unit had waves, added up over the units.
    pub(super) busy_units: u64,
    pub(super) groups: u64,
    pub(super) waves: u64,
    /// Number of waves with fewer than 16, 32, 48 and 64 work-items.
    pub(super) waves_below: [u64; 4],
    pub(super) waves_full: u64,
    pub(super) items: u64,
    pub(super) instructions: u64,
    pub(super) valu: u64,
    pub(super) valu_kinds: [u64; Valu::COUNT],
    /// Number of matrix instructions, and of the multiplications and additions in them, by type of the elements.
    pub(super) matrices: [u64; MatrixElement::COUNT],
    pub(super) matrix_operations: [u64; MatrixElement::COUNT],
    /// Cycles in which matrix units were busy.
    pub(super) matrix_cycles: u64,
    pub(super) gds: u64,
    pub(super) salu: u64,
    pub(super) smem: u64,
    /// Number of scalar loads of 1, 2, 4, 8 and 16 dwords.
    pub(super) smem_loads: [u64; 5],
    pub(super) vmem_reads: u64,
    pub(super) vmem_writes: u64,
    pub(super) flat: u64,
    pub(super) flat_lds_only: u64,
    /// Number of LDS instructions, without flat instructions that access LDS.
    pub(super) lds: u64,
    pub(super) branches: u64,
    pub(super) messages: u64,
    /// Quad-cycles in which instructions were issued, by port. Flat instructions are not counted with buffer
    /// instructions.
    pub(super) active: [u64; PORTS],
    pub(super) active_flat: u64,
    pub(super) thread_quads: u64,
    pub(super) send_read_quads: u64,
    pub(super) send_write_quads: u64,
    pub(super) wave_quads: u64,
    pub(super) wait_quads: u64,
    pub(super) issue_wait_quads: u64,
    pub(super) lds_wait_quads: u64,
    pub(super) lds_active: u64,
    pub(super) lds_bank_conflict: u64,
    pub(super) lds_address_conflict: u64,
    pub(super) lds_atomic_return: u64,
    /// Cycles that accesses of LDS took longer because lanes' data were not aligned.
    pub(super) lds_unaligned: u64,
    /// Number of lanes' accesses outside of the workgroup's LDS.
    pub(super) lds_violations: u64,
    pub(super) fetches: u64,
    pub(super) fetch_hits: u64,
    pub(super) fetch_misses: u64,
    /// Number of fetches of lines that others had requested and that had not arrived.
    pub(super) fetch_duplicates: u64,
    /// Cycles in which instruction caches had lookups under way, and cycles by which they kept lookups waiting.
    pub(super) fetch_busy: u64,
    pub(super) fetch_held: u64,
    pub(super) scalar_requests: u64,
    pub(super) scalar_hits: u64,
    pub(super) scalar_misses: u64,
    pub(super) scalar_duplicates: u64,
    pub(super) scalar_busy: u64,
    pub(super) scalar_held: u64,
    /// Cycles by which the paths of scalar and instruction caches to the second level kept requests waiting.
    pub(super) shared_request_stall: u64,
    /// Cycles in which workgroups waited for room on a compute unit.
    pub(super) no_room: u64,
    /// Cycles in which workgroups waited for room on a compute unit, added up over the units, by the resource that was
    /// used up.
    pub(super) units_without: Room<u64>,
    /// Number of registers that were written before waves started.
    pub(super) initial_sgprs: u64,
    pub(super) initial_vgprs: u64,
    /// Cycles that vector memory instructions were outstanding, added up.
    pub(super) vmem_level: u64,
    pub(super) smem_level: u64,
    pub(super) lds_level: u64,
    pub(super) fetch_level: u64,
}

/// A value for each resource in which a workgroup needs room.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Room<T> {
    pub(super) registers: T,
    pub(super) wave_slots: T,
    pub(super) lds: T,
    pub(super) barriers: T,
}

/// Events of a compute unit: its address unit, data unit and first-level cache.
#[derive(Debug, Clone, Default)]
pub(super) struct Unit {
    pub(super) address_busy: u64,
    pub(super) buffer: Accesses,
    pub(super) flat: Accesses,
    pub(super) buffer_cycles: u64,
    pub(super) buffer_coalesced_reads: u64,
    pub(super) buffer_coalesced_writes: u64,
    pub(super) coalescable: u64,
    /// Number of read requests. A request is for the data of at most four lanes in one cache line.
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) atomics_returning: u64,
    pub(super) atomics: u64,
    pub(super) lookups: u64,
    pub(super) latency: u64,
    pub(super) l2_reads: u64,
    pub(super) l2_writes: u64,
    pub(super) l2_atomics_returning: u64,
    pub(super) l2_atomics: u64,
    pub(super) l2_read_latency: u64,
    pub(super) l2_write_latency: u64,
    /// Number of requests to the second level, by the type of the memory.
    pub(super) l2_types: [Accesses; MemoryType::COUNT],
    pub(super) invalidations: u64,
    /// Number of loads that bypass the first level.
    pub(super) volatile: u64,
    pub(super) translations: u64,
    pub(super) translation_misses: u64,
    /// Cycles in which the unit had waves.
    pub(super) busy: u64,
    /// Cycles in which accesses were under way, and in which results were returned.
    pub(super) under_way: u64,
    pub(super) returning: u64,
    /// Cycles in which accesses waited for lines that others had requested.
    pub(super) pending: u64,
    /// Cycles in which loads, stores and atomics waited for lines in their way.
    pub(super) conflicts: [u64; 3],
    /// Cycles by which the cache, the data unit, the path to the second level and that for the data of stores needed
    /// longer than accesses came.
    pub(super) lookup_stall: u64,
    pub(super) result_stall: u64,
    pub(super) request_stall: u64,
    pub(super) store_stall: u64,
}

/// Number of instructions by the kind of their access.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Accesses {
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) atomics: u64,
}

impl Accesses {
    pub(super) fn all(&self) -> u64 {
        self.reads + self.writes + self.atomics
    }
}

/// Events of a channel of the second-level cache, and of its requests to memory.
#[derive(Debug, Clone, Default)]
pub(super) struct Channel {
    pub(super) cycles: u64,
    /// Cycles of all requests to memory, added up.
    pub(super) memory_cycles: u64,
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) atomics: u64,
    pub(super) hits: u64,
    pub(super) misses: u64,
    pub(super) evictions: u64,
    /// Number of lines that were written back, to make room or at the end of the dispatch.
    pub(super) writebacks: u64,
    pub(super) final_writebacks: u64,
    pub(super) memory_reads: u64,
    pub(super) memory_reads_32: u64,
    pub(super) local_reads: u64,
    pub(super) memory_writes: u64,
    pub(super) memory_writes_64: u64,
    pub(super) local_writes: u64,
    /// Number of atomics that memory executes.
    pub(super) memory_atomics: u64,
    /// Number of blocks of 32 bytes that are not cached.
    pub(super) uncached_reads_32: u64,
    pub(super) uncached_writes_32: u64,
    /// Number of requests by the type of the memory.
    pub(super) types: [u64; MemoryType::COUNT],
    pub(super) streaming: u64,
    /// Cycles in which requests were under way, and by which the channel kept requests waiting.
    pub(super) busy: u64,
    pub(super) tag_stall: u64,
    /// Cycles by which memory and links needed longer than requests came, by [`super::pages::Owner`].
    pub(super) read_stalls: [u64; 3],
    pub(super) write_stalls: [u64; 3],
}

/// Events of the device as a whole.
#[derive(Debug, Clone, Default)]
pub(super) struct Device {
    pub(super) cycles: u64,
    pub(super) busy: u64,
    pub(super) groups: u64,
    /// Cycles in which workgroups waited for room.
    pub(super) no_room: u64,
    /// Cycles before waves: all, and those in which the packet is read, and its address translated.
    pub(super) launch: u64,
    pub(super) packet: u64,
    pub(super) packet_translation: u64,
    /// Cycles in which any address unit was busy, any first-level cache had accesses under way, any channel requests
    /// to memory, and translations were looked up.
    pub(super) addressing: u64,
    pub(super) caches: u64,
    pub(super) memory: u64,
    pub(super) translation: u64,
}
