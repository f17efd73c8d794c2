//! Counts, grouped by the block that counts them.

use crate::isa::{MatrixElement, Valu};

/// Ports through which a SIMD issues instructions, one each a quad-cycle.
pub(super) const PORTS: usize = 5;

/// Ports of a SIMD.
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

/// One shader engine: its sequencers, scalar and instruction caches, and its part of the dispatcher.
#[derive(Debug, Clone, Default)]
pub(super) struct Engine {
    /// Cycles of the whole dispatch.
    pub(super) cycles: u64,
    /// Cycles with waves.
    pub(super) busy: u64,
    /// Quad-cycles with waves, of its compute units.
    pub(super) busy_units: u64,
    pub(super) groups: u64,
    pub(super) waves: u64,
    /// Waves with fewer than 16, 32, 48 and 64 work-items, and with 64.
    pub(super) waves_below: [u64; 4],
    pub(super) waves_full: u64,
    pub(super) items: u64,
    pub(super) instructions: u64,
    pub(super) valu: u64,
    pub(super) valu_kinds: [u64; Valu::COUNT],
    /// Matrix instructions by element, and their multiplications and additions.
    pub(super) matrices: [u64; MatrixElement::COUNT],
    pub(super) matrix_operations: [u64; MatrixElement::COUNT],
    /// Cycles of the matrix units.
    pub(super) matrix_cycles: u64,
    pub(super) gds: u64,
    pub(super) salu: u64,
    pub(super) smem: u64,
    /// Scalar loads of 1, 2, 4, 8 and 16 dwords.
    pub(super) smem_loads: [u64; 5],
    pub(super) vmem_reads: u64,
    pub(super) vmem_writes: u64,
    pub(super) flat: u64,
    pub(super) flat_lds_only: u64,
    /// LDS instructions proper.
    pub(super) lds: u64,
    pub(super) branches: u64,
    pub(super) messages: u64,
    /// Quad-cycles in which instructions were issued, by port; flat ones apart from buffer ones.
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
    pub(super) fetches: u64,
    pub(super) fetch_hits: u64,
    pub(super) fetch_misses: u64,
    pub(super) scalar_requests: u64,
    pub(super) scalar_hits: u64,
    pub(super) scalar_misses: u64,
    /// Cycles that instructions were in flight, summed.
    pub(super) vmem_level: u64,
    pub(super) smem_level: u64,
    pub(super) lds_level: u64,
    pub(super) fetch_level: u64,
}

/// One compute unit: its address, data and first-level cache blocks.
#[derive(Debug, Clone, Default)]
pub(super) struct Unit {
    pub(super) address_busy: u64,
    pub(super) buffer: Accesses,
    pub(super) flat: Accesses,
    pub(super) buffer_cycles: u64,
    pub(super) buffer_coalesced_reads: u64,
    pub(super) buffer_coalesced_writes: u64,
    pub(super) coalescable: u64,
    /// Requests of at most four lanes in one cache line.
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
}

/// Instructions of waves by what they do.
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

/// One channel of the second-level cache, and its way to memory.
#[derive(Debug, Clone, Default)]
pub(super) struct Channel {
    pub(super) cycles: u64,
    /// Cycles that each request to memory takes.
    pub(super) memory_cycles: u64,
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) atomics: u64,
    pub(super) hits: u64,
    pub(super) misses: u64,
    pub(super) evictions: u64,
    /// Lines written back to make room, and at the end of the dispatch.
    pub(super) writebacks: u64,
    pub(super) final_writebacks: u64,
    pub(super) memory_reads: u64,
    pub(super) memory_reads_32: u64,
    pub(super) local_reads: u64,
    pub(super) memory_writes: u64,
    pub(super) memory_writes_64: u64,
    pub(super) local_writes: u64,
}

/// The device as a whole.
#[derive(Debug, Clone, Default)]
pub(super) struct Device {
    pub(super) cycles: u64,
    pub(super) busy: u64,
}
