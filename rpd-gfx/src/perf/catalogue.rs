//! The hardware events for which the simulator yields values, with the computation of each. Events have the numbers of
//! gfx90a; [`super::numbering`] translates those of other devices.

use super::pages::{MemoryType, Owner};
use super::tally::{Accesses, Channel, Device, Engine, Port, Unit};
use crate::isa::{MatrixElement, Valu};

/// An event for which the simulator yields values.
pub(super) struct Event<T> {
    /// Number of the event in its block.
    pub(super) number: u32,
    /// Name of the counter.
    pub(super) name: &'static str,
    /// Computes the value in one instance of the block.
    pub(super) read: fn(&T) -> u64,
}

const fn event<T>(number: u32, name: &'static str, read: fn(&T) -> u64) -> Event<T> {
    Event { number, name, read }
}

/// Whether the simulator yields a value for an event, by its number on gfx90a.
pub(super) fn has(block: &str, event: u32) -> bool {
    later_events().any(|(b, number, _)| b == block && number == event)
        || determined_events().any(|(b, number, _)| b == block && number == event)
}

/// Whether the simulator yields the accumulated level of an event, by its number on gfx90a.
pub(super) fn has_level(block: &str, event: u32) -> bool {
    block == "SQ" && SQ_LEVELS.iter().any(|level| level.number == event)
}

/// Blocks with events for which the simulator yields values.
pub(super) const BLOCKS: [&str; 10] = [
    "SQ", "SPI", "TA", "TD", "TCP", "TCC", "TCA", "GRBM", "CPC", "CPF",
];

/// All events of gfx90a for which the simulator yields values: block, number and name of the counter.
pub fn determined_events() -> impl Iterator<Item = (&'static str, u32, &'static str)> {
    all("SQ", SQ)
        .chain(all("SPI", SPI))
        .chain(all("TA", TA))
        .chain(all("TD", TD))
        .chain(all("TCP", TCP))
        .chain(all("TCC", TCC))
        .chain(all("TCA", TCA))
        .chain(all("GRBM", GRBM))
        .chain(all("CPC", CPC))
        .chain(all("CPF", CPF))
}

/// All events that gfx90a does not have: block, number and name of the counter.
pub(super) fn later_events() -> impl Iterator<Item = (&'static str, u32, &'static str)> {
    all("SQ", SQ_LATER).chain(all("TCC", TCC_LATER))
}

fn all<T>(
    block: &'static str,
    events: &'static [Event<T>],
) -> impl Iterator<Item = (&'static str, u32, &'static str)> {
    events.iter().map(move |e| (block, e.number, e.name))
}

fn kind(engine: &Engine, kind: Valu) -> u64 {
    engine.valu_kinds[kind as usize]
}

fn matrices(engine: &Engine, element: MatrixElement) -> u64 {
    engine.matrices[element as usize]
}

/// Multiplications and additions in units of 512, as the counters of matrix operations have them.
fn operations(engine: &Engine, element: MatrixElement) -> u64 {
    engine.matrix_operations[element as usize] / 512
}

fn active(engine: &Engine, port: Port) -> u64 {
    engine.active[port as usize]
}

/// Requests of a compute unit to memory of a type.
fn typed(unit: &Unit, kind: MemoryType) -> &Accesses {
    &unit.l2_types[kind as usize]
}

/// Requests to a channel for memory of a type.
fn requests(channel: &Channel, kind: MemoryType) -> u64 {
    channel.types[kind as usize]
}

/// Events of the sequencers, with the scalar and instruction caches.
pub(super) const SQ: &[Event<Engine>] = &[
    event(2, "SQ_CYCLES", |e| e.cycles),
    event(3, "SQ_BUSY_CYCLES", |e| e.busy),
    event(4, "SQ_WAVES", |e| e.waves),
    // Levels are read when the dispatch has ended and nothing is under way.
    event(5, "SQ_LEVEL_WAVES", |_| 0),
    event(6, "SQ_WAVES_EQ_64", |e| e.waves_full),
    event(7, "SQ_WAVES_LT_64", |e| e.waves_below[3]),
    event(8, "SQ_WAVES_LT_48", |e| e.waves_below[2]),
    event(9, "SQ_WAVES_LT_32", |e| e.waves_below[1]),
    event(10, "SQ_WAVES_LT_16", |e| e.waves_below[0]),
    event(13, "SQ_BUSY_CU_CYCLES", |e| e.busy_units),
    event(14, "SQ_ITEMS", |e| e.items),
    event(25, "SQ_INSTS", |e| e.instructions),
    event(26, "SQ_INSTS_VALU", |e| e.valu),
    event(27, "SQ_INSTS_VALU_ADD_F16", |e| kind(e, Valu::AddF16)),
    event(28, "SQ_INSTS_VALU_MUL_F16", |e| kind(e, Valu::MulF16)),
    event(29, "SQ_INSTS_VALU_FMA_F16", |e| kind(e, Valu::FmaF16)),
    event(30, "SQ_INSTS_VALU_TRANS_F16", |e| kind(e, Valu::TransF16)),
    event(31, "SQ_INSTS_VALU_ADD_F32", |e| kind(e, Valu::AddF32)),
    event(32, "SQ_INSTS_VALU_MUL_F32", |e| kind(e, Valu::MulF32)),
    event(33, "SQ_INSTS_VALU_FMA_F32", |e| kind(e, Valu::FmaF32)),
    event(34, "SQ_INSTS_VALU_TRANS_F32", |e| kind(e, Valu::TransF32)),
    event(35, "SQ_INSTS_VALU_ADD_F64", |e| kind(e, Valu::AddF64)),
    event(36, "SQ_INSTS_VALU_MUL_F64", |e| kind(e, Valu::MulF64)),
    event(37, "SQ_INSTS_VALU_FMA_F64", |e| kind(e, Valu::FmaF64)),
    event(38, "SQ_INSTS_VALU_TRANS_F64", |e| kind(e, Valu::TransF64)),
    event(39, "SQ_INSTS_VALU_INT32", |e| kind(e, Valu::Int32)),
    event(40, "SQ_INSTS_VALU_INT64", |e| kind(e, Valu::Int64)),
    event(41, "SQ_INSTS_VALU_CVT", |e| kind(e, Valu::Convert)),
    event(42, "SQ_INSTS_VALU_MFMA_I8", |e| {
        matrices(e, MatrixElement::I8)
    }),
    event(43, "SQ_INSTS_VALU_MFMA_F16", |e| {
        matrices(e, MatrixElement::F16)
    }),
    event(44, "SQ_INSTS_VALU_MFMA_BF16", |e| {
        matrices(e, MatrixElement::Bf16)
    }),
    event(45, "SQ_INSTS_VALU_MFMA_F32", |e| {
        matrices(e, MatrixElement::F32)
    }),
    event(46, "SQ_INSTS_VALU_MFMA_F64", |e| {
        matrices(e, MatrixElement::F64)
    }),
    event(47, "SQ_INSTS_VALU_MFMA_MOPS_I8", |e| {
        operations(e, MatrixElement::I8)
    }),
    event(48, "SQ_INSTS_VALU_MFMA_MOPS_F16", |e| {
        operations(e, MatrixElement::F16)
    }),
    event(49, "SQ_INSTS_VALU_MFMA_MOPS_BF16", |e| {
        operations(e, MatrixElement::Bf16)
    }),
    event(50, "SQ_INSTS_VALU_MFMA_MOPS_F32", |e| {
        operations(e, MatrixElement::F32)
    }),
    event(51, "SQ_INSTS_VALU_MFMA_MOPS_F64", |e| {
        operations(e, MatrixElement::F64)
    }),
    event(52, "SQ_INSTS_MFMA", |e| e.matrices.iter().sum()),
    event(53, "SQ_INSTS_VMEM_WR", |e| e.vmem_writes),
    event(54, "SQ_INSTS_VMEM_RD", |e| e.vmem_reads),
    event(55, "SQ_INSTS_VMEM", |e| e.vmem_reads + e.vmem_writes),
    event(56, "SQ_INSTS_SALU", |e| e.salu),
    event(57, "SQ_INSTS_SMEM", |e| e.smem),
    event(58, "SQ_INSTS_FLAT", |e| e.flat),
    event(59, "SQ_INSTS_FLAT_LDS_ONLY", |e| e.flat_lds_only),
    event(60, "SQ_INSTS_LDS", |e| e.lds + e.flat_lds_only),
    // The interpreter ends a dispatch that executes an export.
    event(61, "SQ_INSTS_GDS", |e| e.gds),
    event(63, "SQ_INSTS_EXP_GDS", |e| e.gds),
    event(64, "SQ_INSTS_BRANCH", |e| e.branches),
    event(65, "SQ_INSTS_SENDMSG", |e| e.messages),
    event(66, "SQ_INSTS_VSKIPPED", |_| 0),
    event(67, "SQ_INST_LEVEL_VMEM", |_| 0),
    event(68, "SQ_INST_LEVEL_SMEM", |_| 0),
    event(69, "SQ_INST_LEVEL_LDS", |_| 0),
    event(72, "SQ_VALU_MFMA_BUSY_CYCLES", |e| e.matrix_cycles),
    event(74, "SQ_WAVE_CYCLES", |e| e.wave_quads),
    event(85, "SQ_WAIT_ANY", |e| e.wait_quads),
    event(88, "SQ_WAIT_INST_ANY", |e| e.issue_wait_quads),
    event(91, "SQ_WAIT_INST_LDS", |e| e.lds_wait_quads),
    event(96, "SQ_ACTIVE_INST_ANY", |e| e.active.iter().sum()),
    event(97, "SQ_ACTIVE_INST_VMEM", |e| {
        active(e, Port::Vmem) - e.active_flat
    }),
    event(98, "SQ_ACTIVE_INST_LDS", |e| active(e, Port::Lds)),
    event(99, "SQ_ACTIVE_INST_VALU", |e| active(e, Port::Valu)),
    event(100, "SQ_ACTIVE_INST_SCA", |e| active(e, Port::Scalar)),
    event(101, "SQ_ACTIVE_INST_EXP_GDS", |e| e.gds),
    event(102, "SQ_ACTIVE_INST_MISC", |e| active(e, Port::Misc)),
    event(103, "SQ_ACTIVE_INST_FLAT", |e| e.active_flat),
    event(104, "SQ_INST_CYCLES_VMEM_WR", |e| e.send_write_quads),
    event(105, "SQ_INST_CYCLES_VMEM_RD", |e| e.send_read_quads),
    event(111, "SQ_INST_CYCLES_SMEM", |e| e.smem),
    event(112, "SQ_INST_CYCLES_SALU", |e| e.salu),
    event(113, "SQ_THREAD_CYCLES_VALU", |e| e.thread_quads),
    event(115, "SQ_IFETCH", |e| e.fetches),
    event(116, "SQ_IFETCH_LEVEL", |_| 0),
    event(121, "SQ_LDS_BANK_CONFLICT", |e| e.lds_bank_conflict),
    event(122, "SQ_LDS_ADDR_CONFLICT", |e| e.lds_address_conflict),
    event(123, "SQ_LDS_UNALIGNED_STALL", |e| e.lds_unaligned),
    event(124, "SQ_LDS_MEM_VIOLATIONS", |e| e.lds_violations),
    event(125, "SQ_LDS_ATOMIC_RETURN", |e| e.lds_atomic_return),
    event(126, "SQ_LDS_IDX_ACTIVE", |e| e.lds_active),
    // The simulator never saves and restores waves.
    event(186, "SQ_WAVES_RESTORED", |_| 0),
    event(187, "SQ_WAVES_SAVED", |_| 0),
    event(188, "SQ_INSTS_SMEM_NORM", |e| e.smem),
    event(260, "SQC_DCACHE_INPUT_VALID_READYB", |e| e.scalar_held),
    event(262, "SQC_TC_REQ", |e| e.fetch_misses + e.scalar_misses),
    event(263, "SQC_TC_INST_REQ", |e| e.fetch_misses),
    event(264, "SQC_TC_DATA_READ_REQ", |e| e.scalar_misses),
    // The interpreter ends a dispatch that executes a scalar store or scalar atomic.
    event(265, "SQC_TC_DATA_WRITE_REQ", |_| 0),
    event(266, "SQC_TC_DATA_ATOMIC_REQ", |_| 0),
    event(267, "SQC_TC_STALL", |e| e.shared_request_stall),
    event(270, "SQC_ICACHE_REQ", |e| e.fetches),
    event(271, "SQC_ICACHE_HITS", |e| e.fetch_hits),
    event(272, "SQC_ICACHE_MISSES", |e| e.fetch_misses),
    event(273, "SQC_ICACHE_MISSES_DUPLICATE", |e| e.fetch_duplicates),
    event(290, "SQC_DCACHE_REQ", |e| e.scalar_requests),
    event(291, "SQC_DCACHE_HITS", |e| e.scalar_hits),
    event(292, "SQC_DCACHE_MISSES", |e| e.scalar_misses),
    event(293, "SQC_DCACHE_MISSES_DUPLICATE", |e| e.scalar_duplicates),
    event(298, "SQC_DCACHE_ATOMIC", |_| 0),
    event(323, "SQC_DCACHE_REQ_READ_1", |e| e.smem_loads[0]),
    event(324, "SQC_DCACHE_REQ_READ_2", |e| e.smem_loads[1]),
    event(325, "SQC_DCACHE_REQ_READ_4", |e| e.smem_loads[2]),
    event(326, "SQC_DCACHE_REQ_READ_8", |e| e.smem_loads[3]),
    event(327, "SQC_DCACHE_REQ_READ_16", |e| e.smem_loads[4]),
];

/// Levels of the sequencers: numbers of outstanding operations, added up over all cycles.
pub(super) const SQ_LEVELS: &[Event<Engine>] = &[
    event(5, "SQ_LEVEL_WAVES", |e| 4 * e.wave_quads),
    event(67, "SQ_INST_LEVEL_VMEM", |e| e.vmem_level),
    event(68, "SQ_INST_LEVEL_SMEM", |e| e.smem_level),
    event(69, "SQ_INST_LEVEL_LDS", |e| e.lds_level),
    event(116, "SQ_IFETCH_LEVEL", |e| e.fetch_level),
];

/// Events of the sequencers that gfx90a lacks. It does not use their numbers.
pub(super) const SQ_LATER: &[Event<Engine>] = &[
    event(1048, "SQ_INSTS_VALU_MFMA_F8", |e| {
        matrices(e, MatrixElement::F8)
    }),
    event(1055, "SQ_INSTS_VALU_MFMA_MOPS_F8", |e| {
        operations(e, MatrixElement::F8)
    }),
    event(1257, "SQC_ICACHE_INPUT_VALID_READYB", |e| e.fetch_held),
    event(1269, "SQC_ICACHE_BUSY_CYCLES", |e| e.fetch_busy),
    event(1289, "SQC_DCACHE_BUSY_CYCLES", |e| e.scalar_busy),
];

/// Number of SIMDs of a compute unit, on all devices.
const SIMDS: u64 = 4;

/// Events of the part of the dispatcher in each engine.
pub(super) const SPI: &[Event<Engine>] = &[
    event(47, "SPI_CSN_WINDOW_VALID", |e| e.cycles),
    event(48, "SPI_CSN_BUSY", |e| e.busy),
    event(49, "SPI_CSN_NUM_THREADGROUPS", |e| e.groups),
    event(52, "SPI_CSN_WAVE", |e| e.waves),
    event(79, "SPI_RA_REQ_NO_ALLOC", |e| e.no_room),
    event(85, "SPI_RA_REQ_NO_ALLOC_CSN", |e| e.no_room),
    event(91, "SPI_RA_RES_STALL_CSN", |e| e.no_room),
    // All waves that a compute unit holds have scratch memory.
    event(97, "SPI_RA_TMP_STALL_CSN", |_| 0),
    event(103, "SPI_RA_WAVE_SIMD_FULL_CSN", |e| {
        SIMDS * e.units_without.wave_slots
    }),
    event(109, "SPI_RA_VGPR_SIMD_FULL_CSN", |e| {
        SIMDS * e.units_without.registers
    }),
    // There are as many scalar registers as all wave slots need.
    event(115, "SPI_RA_SGPR_SIMD_FULL_CSN", |_| 0),
    event(120, "SPI_RA_LDS_CU_FULL_CSN", |e| e.units_without.lds),
    event(123, "SPI_RA_BAR_CU_FULL_CSN", |e| e.units_without.barriers),
    // No workgroup needs a slot of its own kind, and nothing limits their number or that of waves.
    event(125, "SPI_RA_BULKY_CU_FULL_CSN", |_| 0),
    event(127, "SPI_RA_TGLIM_CU_FULL_CSN", |_| 0),
    event(133, "SPI_RA_WVLIM_STALL_CSN", |_| 0),
    // In units of four cycles: a scalar register takes one, a vector register four.
    event(189, "SPI_SWC_CSC_WR", |e| e.initial_sgprs.div_ceil(4)),
    event(195, "SPI_VWC_CSC_WR", |e| e.initial_vgprs),
];

/// Events of the address units.
pub(super) const TA: &[Event<Unit>] = &[
    event(15, "TA_TA_BUSY", |u| u.address_busy),
    event(32, "TA_TOTAL_WAVEFRONTS", |u| u.buffer.all() + u.flat.all()),
    event(44, "TA_BUFFER_WAVEFRONTS", |u| u.buffer.all()),
    event(45, "TA_BUFFER_READ_WAVEFRONTS", |u| u.buffer.reads),
    event(46, "TA_BUFFER_WRITE_WAVEFRONTS", |u| u.buffer.writes),
    event(47, "TA_BUFFER_ATOMIC_WAVEFRONTS", |u| u.buffer.atomics),
    event(49, "TA_BUFFER_TOTAL_CYCLES", |u| u.buffer_cycles),
    event(52, "TA_BUFFER_COALESCED_READ_CYCLES", |u| {
        u.buffer_coalesced_reads
    }),
    event(53, "TA_BUFFER_COALESCED_WRITE_CYCLES", |u| {
        u.buffer_coalesced_writes
    }),
    event(54, "TA_ADDR_STALLED_BY_TC_CYCLES", |u| u.lookup_stall),
    event(55, "TA_ADDR_STALLED_BY_TD_CYCLES", |u| u.result_stall),
    event(56, "TA_DATA_STALLED_BY_TC_CYCLES", |u| u.store_stall),
    event(100, "TA_FLAT_WAVEFRONTS", |u| u.flat.all()),
    event(101, "TA_FLAT_READ_WAVEFRONTS", |u| u.flat.reads),
    event(102, "TA_FLAT_WRITE_WAVEFRONTS", |u| u.flat.writes),
    event(103, "TA_FLAT_ATOMIC_WAVEFRONTS", |u| u.flat.atomics),
];

/// Events of the data units.
pub(super) const TD: &[Event<Unit>] = &[
    event(1, "TD_TD_BUSY", |u| u.returning),
    event(15, "TD_TC_STALL", |u| {
        u.under_way.saturating_sub(u.returning)
    }),
    // Registers take results at once.
    event(18, "TD_SPI_STALL", |_| 0),
    event(25, "TD_LOAD_WAVEFRONT", |u| {
        u.buffer.reads + u.flat.reads + u.buffer.atomics + u.flat.atomics
    }),
    event(26, "TD_ATOMIC_WAVEFRONT", |u| {
        u.buffer.atomics + u.flat.atomics
    }),
    event(27, "TD_STORE_WAVEFRONT", |u| {
        u.buffer.writes + u.flat.writes
    }),
    event(32, "TD_COALESCABLE_WAVEFRONT", |u| u.coalescable),
];

/// Events of the first-level caches.
pub(super) const TCP: &[Event<Unit>] = &[
    event(0, "TCP_GATE_EN1", |u| u.busy),
    event(1, "TCP_GATE_EN2", |u| u.under_way.min(u.busy)),
    event(6, "TCP_TCP_TA_DATA_STALL_CYCLES", |u| u.store_stall),
    event(7, "TCP_TD_TCP_STALL_CYCLES", |u| u.result_stall),
    event(8, "TCP_TCR_TCP_STALL_CYCLES", |u| u.request_stall),
    event(11, "TCP_READ_TAGCONFLICT_STALL_CYCLES", |u| u.conflicts[0]),
    event(12, "TCP_WRITE_TAGCONFLICT_STALL_CYCLES", |u| u.conflicts[1]),
    event(13, "TCP_ATOMIC_TAGCONFLICT_STALL_CYCLES", |u| {
        u.conflicts[2]
    }),
    event(22, "TCP_PENDING_STALL_CYCLES", |u| u.pending),
    event(27, "TCP_TA_TCP_STATE_READ", |u| {
        u.buffer.all() + u.flat.all()
    }),
    event(28, "TCP_VOLATILE", |u| u.volatile),
    event(29, "TCP_TOTAL_ACCESSES", |u| {
        u.reads + u.writes + u.atomics + u.atomics_returning
    }),
    event(30, "TCP_TOTAL_READ", |u| u.reads),
    event(32, "TCP_TOTAL_WRITE", |u| u.writes),
    event(38, "TCP_TOTAL_ATOMIC_WITH_RET", |u| u.atomics_returning),
    event(39, "TCP_TOTAL_ATOMIC_WITHOUT_RET", |u| u.atomics),
    event(45, "TCP_TOTAL_WRITEBACK_INVALIDATES", |u| u.invalidations),
    event(47, "TCP_UTCL1_REQUEST", |u| u.translations),
    event(48, "TCP_UTCL1_TRANSLATION_MISS", |u| u.translation_misses),
    event(49, "TCP_UTCL1_TRANSLATION_HIT", |u| {
        u.translations - u.translation_misses
    }),
    // An access without permission ends the dispatch.
    event(50, "TCP_UTCL1_PERMISSION_MISS", |_| 0),
    event(60, "TCP_TOTAL_CACHE_ACCESSES", |u| u.lookups),
    event(65, "TCP_TCP_LATENCY", |u| u.latency),
    event(66, "TCP_TCC_READ_REQ_LATENCY", |u| u.l2_read_latency),
    event(67, "TCP_TCC_WRITE_REQ_LATENCY", |u| u.l2_write_latency),
    event(69, "TCP_TCC_READ_REQ", |u| u.l2_reads),
    event(70, "TCP_TCC_WRITE_REQ", |u| u.l2_writes),
    event(71, "TCP_TCC_ATOMIC_WITH_RET_REQ", |u| {
        u.l2_atomics_returning
    }),
    event(72, "TCP_TCC_ATOMIC_WITHOUT_RET_REQ", |u| u.l2_atomics),
    event(75, "TCP_TCC_NC_READ_REQ", |u| {
        typed(u, MemoryType::NonCoherent).reads
    }),
    event(76, "TCP_TCC_NC_WRITE_REQ", |u| {
        typed(u, MemoryType::NonCoherent).writes
    }),
    event(77, "TCP_TCC_NC_ATOMIC_REQ", |u| {
        typed(u, MemoryType::NonCoherent).atomics
    }),
    event(78, "TCP_TCC_UC_READ_REQ", |u| {
        typed(u, MemoryType::Uncached).reads
    }),
    event(79, "TCP_TCC_UC_WRITE_REQ", |u| {
        typed(u, MemoryType::Uncached).writes
    }),
    event(80, "TCP_TCC_UC_ATOMIC_REQ", |u| {
        typed(u, MemoryType::Uncached).atomics
    }),
    event(81, "TCP_TCC_CC_READ_REQ", |u| {
        typed(u, MemoryType::Coherent).reads
    }),
    event(82, "TCP_TCC_CC_WRITE_REQ", |u| {
        typed(u, MemoryType::Coherent).writes
    }),
    event(83, "TCP_TCC_CC_ATOMIC_REQ", |u| {
        typed(u, MemoryType::Coherent).atomics
    }),
    event(85, "TCP_TCC_RW_READ_REQ", |u| {
        typed(u, MemoryType::ReadWrite).reads
    }),
    event(86, "TCP_TCC_RW_WRITE_REQ", |u| {
        typed(u, MemoryType::ReadWrite).writes
    }),
    event(87, "TCP_TCC_RW_ATOMIC_REQ", |u| {
        typed(u, MemoryType::ReadWrite).atomics
    }),
];

/// Events of the channels of the second-level cache.
pub(super) const TCC: &[Event<Channel>] = &[
    event(1, "TCC_CYCLE", |c| c.cycles),
    event(2, "TCC_BUSY", |c| c.busy),
    event(3, "TCC_REQ", |c| c.reads + c.writes + c.atomics),
    event(4, "TCC_STREAMING_REQ", |c| c.streaming),
    event(5, "TCC_NC_REQ", |c| requests(c, MemoryType::NonCoherent)),
    event(6, "TCC_UC_REQ", |c| requests(c, MemoryType::Uncached)),
    event(7, "TCC_CC_REQ", |c| requests(c, MemoryType::Coherent)),
    event(8, "TCC_RW_REQ", |c| requests(c, MemoryType::ReadWrite)),
    // Nothing else accesses the memory of the device while a dispatch is counted.
    event(9, "TCC_PROBE", |_| 0),
    event(10, "TCC_PROBE_ALL", |_| 0),
    event(12, "TCC_READ", |c| c.reads),
    event(13, "TCC_WRITE", |c| c.writes),
    event(14, "TCC_ATOMIC", |c| c.atomics),
    event(17, "TCC_HIT", |c| c.hits),
    event(19, "TCC_MISS", |c| c.misses),
    event(22, "TCC_WRITEBACK", |c| c.writebacks + c.final_writebacks),
    event(26, "TCC_EA_WRREQ", |c| c.memory_writes),
    event(27, "TCC_EA_WRREQ_64B", |c| c.memory_writes_64),
    event(29, "TCC_EA_WR_UNCACHED_32B", |c| c.uncached_writes_32),
    event(30, "TCC_EA_WRREQ_STALL", |c| c.write_stalls.iter().sum()),
    event(31, "TCC_EA_WRREQ_IO_CREDIT_STALL", |c| {
        c.write_stalls[Owner::Host as usize]
    }),
    event(32, "TCC_EA_WRREQ_GMI_CREDIT_STALL", |c| {
        c.write_stalls[Owner::Peer as usize]
    }),
    event(33, "TCC_EA_WRREQ_DRAM_CREDIT_STALL", |c| {
        c.write_stalls[Owner::Device as usize]
    }),
    // The number of writes under way has no limit.
    event(34, "TCC_TOO_MANY_EA_WRREQS_STALL", |_| 0),
    event(35, "TCC_EA_WRREQ_LEVEL", |c| {
        c.memory_cycles * c.memory_writes
    }),
    event(36, "TCC_EA_ATOMIC", |c| c.memory_atomics),
    event(37, "TCC_EA_ATOMIC_LEVEL", |c| {
        c.memory_cycles * c.memory_atomics
    }),
    event(38, "TCC_EA_RDREQ", |c| c.memory_reads),
    event(39, "TCC_EA_RDREQ_32B", |c| c.memory_reads_32),
    event(40, "TCC_EA_RD_UNCACHED_32B", |c| c.uncached_reads_32),
    event(41, "TCC_EA_RDREQ_IO_CREDIT_STALL", |c| {
        c.read_stalls[Owner::Host as usize]
    }),
    event(42, "TCC_EA_RDREQ_GMI_CREDIT_STALL", |c| {
        c.read_stalls[Owner::Peer as usize]
    }),
    event(43, "TCC_EA_RDREQ_DRAM_CREDIT_STALL", |c| {
        c.read_stalls[Owner::Device as usize]
    }),
    event(44, "TCC_EA_RDREQ_LEVEL", |c| {
        c.memory_cycles * c.memory_reads
    }),
    event(45, "TCC_TAG_STALL", |c| c.tag_stall),
    // Lines are read in halves, never as 128 bytes.
    event(56, "TCC_BUBBLE", |_| 0),
    event(68, "TCC_NORMAL_WRITEBACK", |c| c.writebacks),
    event(73, "TCC_ALL_TC_OP_WB_WRITEBACK", |c| c.final_writebacks),
    event(74, "TCC_NORMAL_EVICT", |c| c.evictions),
    // The cache is empty when a dispatch begins, and no instruction invalidates it.
    event(80, "TCC_ALL_TC_OP_INV_EVICT", |_| 0),
    event(102, "TCC_EA_RDREQ_DRAM", |c| c.local_reads),
    event(103, "TCC_EA_WRREQ_DRAM", |c| c.local_writes),
];

/// Events of the channels of the second-level cache that gfx90a lacks. It does not use their numbers.
pub(super) const TCC_LATER: &[Event<Channel>] = &[
    // Coherence with others costs a probe of the cache's own lines; others send none.
    event(1011, "TCC_INTERNAL_PROBE", |c| {
        requests(c, MemoryType::Coherent)
    }),
    event(1028, "TCC_EA_WRREQ_PROBE_COMMAND", |_| 0),
    event(1081, "TCC_PROBE_EVICT", |_| 0),
];

/// Events of the arbiters in front of the channels.
pub(super) const TCA: &[Event<Device>] = &[
    event(1, "TCA_CYCLE", |d| d.cycles),
    event(2, "TCA_BUSY", |d| d.caches.min(d.cycles)),
];

/// Events of the device as a whole.
pub(super) const GRBM: &[Event<Device>] = &[
    event(0, "GRBM_COUNT", |d| d.cycles),
    event(2, "GRBM_GUI_ACTIVE", |d| d.cycles),
    event(3, "GRBM_CP_BUSY", |d| d.cycles),
    event(11, "GRBM_SPI_BUSY", |d| d.busy),
    event(13, "GRBM_TA_BUSY", |d| d.addressing),
    event(28, "GRBM_TC_BUSY", |d| d.caches),
    event(30, "GRBM_CPC_BUSY", |d| d.cycles),
    event(31, "GRBM_CPF_BUSY", |d| d.cycles),
    event(34, "GRBM_UTCL2_BUSY", |d| {
        d.translation + 2 * d.packet_translation
    }),
    event(35, "GRBM_EA_BUSY", |d| d.memory),
];

/// Events of the compute processor: it reads the kernel's descriptor, and stays busy until the dispatch has ended.
pub(super) const CPC: &[Event<Device>] = &[
    event(13, "CPC_ME1_BUSY_FOR_PACKET_DECODE", |d| {
        d.launch - d.packet
    }),
    event(24, "CPC_UTCL1_STALL_ON_TRANSLATION", |d| {
        d.packet_translation
    }),
    event(25, "CPC_CPC_STAT_BUSY", |d| d.cycles),
    event(26, "CPC_CPC_STAT_IDLE", |_| 0),
    event(27, "CPC_CPC_STAT_STALL", |d| d.no_room),
    event(28, "CPC_CPC_TCIU_BUSY", |d| d.packet),
    event(29, "CPC_CPC_TCIU_IDLE", |d| d.cycles - d.packet),
    event(30, "CPC_CPC_UTCL2IU_BUSY", |d| d.packet_translation),
    event(31, "CPC_CPC_UTCL2IU_IDLE", |d| {
        d.cycles - d.packet_translation
    }),
    // One translation at a time.
    event(32, "CPC_CPC_UTCL2IU_STALL", |_| 0),
    event(33, "CPC_ME1_DC0_SPI_BUSY", |d| d.groups.max(d.no_room)),
];

/// Events of the fetcher of the command processor: it reads the packet, and keeps it until the dispatch has ended.
pub(super) const CPF: &[Event<Device>] = &[
    event(20, "CPF_CMP_UTCL1_STALL_ON_TRANSLATION", |d| {
        d.packet_translation
    }),
    event(23, "CPF_CPF_STAT_BUSY", |d| d.cycles),
    event(24, "CPF_CPF_STAT_IDLE", |_| 0),
    event(25, "CPF_CPF_STAT_STALL", |d| d.packet),
    event(26, "CPF_CPF_TCIU_BUSY", |d| d.packet),
    event(27, "CPF_CPF_TCIU_IDLE", |d| d.cycles - d.packet),
    // One packet at a time.
    event(28, "CPF_CPF_TCIU_STALL", |_| 0),
];
