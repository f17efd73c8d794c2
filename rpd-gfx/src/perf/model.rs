//! The model of the device that yields the counter values of a dispatch.

use std::collections::BTreeMap;

use super::counts::Counts;
use super::hierarchy::{self, Access, Hierarchy, Lookup, ServingLevel};
use super::lds;
use super::numbering::Numbering;
use super::pages::MemoryOf;
use super::tally::{Accesses, Device, Engine, Port, Room, Unit};
use super::timing::{Batch, WaveClock};
use crate::device;
use crate::isa::{Dispatch, Kind, Operation, Probe, Space, Step, Vmem, Workgroup};

/// Observes one dispatch and counts its events.
pub struct Model<'a> {
    layout: &'static device::Layout,
    cycles: &'static device::Cycles,
    /// Number of workgroups that a compute unit can hold at a time.
    resident: u64,
    /// Resources of which a full compute unit has no room for one more workgroup.
    limits: Room<bool>,
    /// Number of SGPRs that are written before a wave starts.
    initial_sgprs: u64,
    /// Size of the LDS of a workgroup in bytes.
    lds_bytes: u64,
    caches: Hierarchy<'a>,
    numbering: &'static Numbering,
    engines: Vec<Engine>,
    units: Vec<Unit>,
    /// Number of workgroups and waves that were assigned to each compute unit.
    dealt: Vec<(u64, usize)>,
    /// Quad-cycles in which each compute unit had waves.
    busy: Vec<u64>,
    /// Quad-cycles after which the last workgroups of each compute unit started.
    last: Vec<u64>,
    /// Workgroups in execution.
    groups: Vec<Group>,
    /// Index in `groups` of the workgroup that executed last.
    recent: usize,
    batches: BTreeMap<(usize, u64), Batch>,
}

/// A workgroup in execution.
struct Group {
    id: u64,
    unit: usize,
    /// Slot of the workgroup among those that share the compute unit.
    slot: u64,
    batch: u64,
    /// Quad-cycle in which the workgroup starts.
    start: u64,
    waves: Vec<WaveClock>,
    address_cycles: u64,
    lds_cycles: u64,
}

impl<'a> Model<'a> {
    /// A model for `dispatch`. `memory` returns the memory of a host address.
    pub fn new(dispatch: &Dispatch<'_>, memory: &'a MemoryOf<'a>) -> Self {
        let layout = &dispatch.device.layout;
        let units = layout.unit_slots() as usize;
        Self {
            layout,
            numbering: Numbering::from_device(dispatch.device),
            cycles: &dispatch.device.cycles,
            resident: resident(dispatch),
            limits: limits(dispatch),
            initial_sgprs: u64::from(dispatch.descriptor.initial_sgprs()),
            lds_bytes: u64::from(lds_of(dispatch)),
            caches: Hierarchy::new(dispatch.device, memory, true),
            engines: vec![Engine::default(); layout.engines as usize],
            units: vec![Unit::default(); units],
            dealt: vec![(0, 0); units],
            busy: vec![0; units],
            last: vec![0; units],
            groups: Vec::new(),
            recent: 0,
            batches: BTreeMap::new(),
        }
    }

    /// Ends the dispatch. Returns the counter values.
    pub fn finish(mut self) -> Counts {
        let units_per_engine = self.layout.units_per_engine as usize;
        // Batches that were never full are still open.
        for ((unit, _), batch) in std::mem::take(&mut self.batches) {
            self.close(unit, &batch);
        }
        let mut device = Device {
            groups: self.engines.iter().map(|engine| engine.groups).sum(),
            launch: self.cycles.launch,
            packet: self.cycles.second + self.cycles.memory,
            packet_translation: self.cycles.second,
            ..Device::default()
        };
        let waits = self.last.chunks(units_per_engine);
        let busy = self.busy.chunks(units_per_engine);
        // An engine is busy as long as its busiest unit; cycles are four times quads.
        for ((engine, busy), waits) in self.engines.iter_mut().zip(busy).zip(waits) {
            engine.busy = 4 * busy.iter().copied().max().unwrap_or(0);
            engine.busy_units = busy.iter().sum();
            engine.no_room = 4 * waits.iter().copied().max().unwrap_or(0);
            let all = 4 * waits.iter().sum::<u64>();
            let of = |limit: bool| if limit { all } else { 0 };
            engine.units_without = Room {
                registers: of(self.limits.registers),
                wave_slots: of(self.limits.wave_slots),
                lds: of(self.limits.lds),
                barriers: of(self.limits.barriers),
            };
            device.busy = device.busy.max(engine.busy);
            device.no_room = device.no_room.max(engine.no_room);
        }
        // The dispatch lasts as long as its busiest engine, from the reading of the packet on.
        device.cycles = self.cycles.launch + device.busy;
        for (unit, busy) in self.units.iter_mut().zip(&self.busy) {
            unit.busy = 4 * busy;
        }
        let (engines, units) = (&mut self.engines, &mut self.units);
        let mut channels = self.caches.finish(engines, units, &mut device);
        channels.iter_mut().for_each(|c| c.cycles = device.cycles);
        self.engines
            .iter_mut()
            .for_each(|e| e.cycles = device.cycles);
        Counts {
            numbering: self.numbering,
            units_per_engine,
            engines: self.engines,
            units: self.units,
            channels,
            device,
        }
    }

    fn close(&mut self, unit: usize, batch: &Batch) {
        let taken = batch.take();
        self.last[unit] = self.busy[unit];
        self.busy[unit] += taken.quads;
        let engine = self.engine_of(unit);
        let engine = &mut self.engines[engine];
        engine.wave_quads += taken.waves;
        engine.wait_quads += taken.waiting;
        engine.issue_wait_quads += taken.contention;
        engine.lds_wait_quads += taken.lds;
    }

    fn engine_of(&self, unit: usize) -> usize {
        unit / self.layout.units_per_engine as usize
    }

    fn find(&mut self, id: u64) -> Option<usize> {
        // Instructions of one workgroup follow each other, so that the last one found is nearly always the right one.
        if self
            .groups
            .get(self.recent)
            .is_none_or(|group| group.id != id)
        {
            self.recent = self.groups.iter().position(|group| group.id == id)?;
        }
        Some(self.recent)
    }
}

/// Number of workgroups for which a compute unit has room at a time, by resource. Registers and wave slots have the
/// same number.
fn rooms(dispatch: &Dispatch<'_>) -> Room<u32> {
    let items: u32 = dispatch.workgroup.iter().map(|&n| u32::from(n)).product();
    let waves = items.div_ceil(64).max(1);
    let layout = &dispatch.device.layout;
    let per_simd = layout.waves_by_registers(dispatch.descriptor.vgprs());
    let lds = match lds_of(dispatch).next_multiple_of(layout.lds_granule) {
        0 => u32::MAX,
        bytes => layout.lds_bytes / bytes,
    };
    // A workgroup of a single wave needs no barrier.
    let barriers = if waves > 1 {
        layout.barriers_per_unit
    } else {
        u32::MAX
    };
    Room {
        registers: per_simd * layout.simds_per_unit / waves,
        wave_slots: layout.waves_per_unit() / waves,
        lds,
        barriers,
    }
}

/// Size of the LDS of a workgroup in bytes.
fn lds_of(dispatch: &Dispatch<'_>) -> u32 {
    let segment = dispatch.group_segment_size;
    segment.max(dispatch.descriptor.group_segment_size)
}

/// Number of workgroups that a compute unit can hold at a time.
pub(super) fn resident(dispatch: &Dispatch<'_>) -> u64 {
    let rooms = rooms(dispatch);
    // Wave slots are no less than what registers have room for.
    let least = rooms.registers.min(rooms.lds).min(rooms.barriers);
    u64::from(least.max(1))
}

/// Resources of which a compute unit that holds as many workgroups as it can has no room for one more.
fn limits(dispatch: &Dispatch<'_>) -> Room<bool> {
    let rooms = rooms(dispatch);
    let resident = resident(dispatch);
    let full = |room: u32| u64::from(room) <= resident;
    Room {
        // As many registers as all wave slots need are never what is missing.
        registers: full(rooms.registers) && rooms.registers < rooms.wave_slots,
        wave_slots: full(rooms.wave_slots),
        lds: full(rooms.lds),
        barriers: full(rooms.barriers),
    }
}

/// Compute unit that executes workgroup `group`: workgroups are assigned to engines in turn, and in each engine to
/// units in turn.
pub(super) fn unit_of(layout: &device::Layout, group: u64) -> usize {
    let engines = u64::from(layout.engines);
    let units = u64::from(layout.units_per_engine);
    let engine = group % engines;
    let used = units - u64::from(engine < u64::from(layout.short_engines));
    (engine * units + group / engines % used) as usize
}

impl Probe for Model<'_> {
    fn started(&mut self, group: &Workgroup) {
        let unit = unit_of(self.layout, group.id);
        let count = group.items.div_ceil(64) as usize;
        let (groups, waves) = &mut self.dealt[unit];
        let first = *waves;
        let simds = self.layout.simds_per_unit as usize;
        self.groups.push(Group {
            id: group.id,
            unit,
            // Workgroups that run at the same time have different scratch memory, those that follow each other may have
            // the same.
            slot: unit as u64 * 32 + *groups % self.resident,
            batch: *groups / self.resident,
            start: self.busy[unit],
            waves: (0..count)
                .map(|n| WaveClock::new((first + n) % simds))
                .collect(),
            address_cycles: 0,
            lds_cycles: 0,
        });
        *groups += 1;
        *waves += count;
        let engine = self.engine_of(unit);
        let engine = &mut self.engines[engine];
        engine.groups += 1;
        engine.waves += count as u64;
        engine.items += u64::from(group.items);
        engine.initial_sgprs += count as u64 * self.initial_sgprs;
        // The coordinates of a work-item are packed into one register.
        engine.initial_vgprs += count as u64;
        for n in 0..count as u32 {
            let items = (group.items - 64 * n).min(64);
            engine.waves_full += u64::from(items == 64);
            for (below, limit) in engine.waves_below.iter_mut().zip([16, 32, 48, 64]) {
                *below += u64::from(items < limit);
            }
        }
    }

    fn executed(&mut self, step: &Step<'_>) {
        let Some(at) = self.find(step.group) else {
            return;
        };
        let engine = self.engine_of(self.groups[at].unit);
        let group = &mut self.groups[at];
        let mut now = Now {
            cycles: self.cycles,
            unit: group.unit,
            slot: group.slot,
            start: group.start,
            lds_bytes: self.lds_bytes,
            caches: &mut self.caches,
            engine: &mut self.engines[engine],
            tally: &mut self.units[group.unit],
            wave: &mut group.waves[step.wave],
            address_cycles: &mut group.address_cycles,
            lds_cycles: &mut group.lds_cycles,
        };
        now.fetch(step);
        now.execute(step);
    }

    fn released(&mut self, group: u64) {
        if let Some(at) = self.find(group) {
            let waves = &mut self.groups[at].waves;
            let waiting = || waves.iter().filter(|wave| wave.at_barrier);
            // The waves go on when the last of them has come.
            let last = waiting().map(|wave| wave.clock).max().unwrap_or(0);
            for wave in waves.iter_mut().filter(|wave| wave.at_barrier) {
                wave.clock = last;
                wave.at_barrier = false;
            }
        }
    }

    fn ended(&mut self, group: u64) {
        let Some(at) = self.find(group) else {
            return;
        };
        let group = self.groups.swap_remove(at);
        let engine = self.engine_of(group.unit);
        let engine = &mut self.engines[engine];
        for wave in &group.waves {
            for (sum, part) in engine.active.iter_mut().zip(wave.ports) {
                *sum += part;
            }
        }
        let key = (group.unit, group.batch);
        let simds = self.layout.simds_per_unit as usize;
        let batch = self.batches.entry(key).or_insert_with(|| Batch::new(simds));
        batch.add(&group.waves, group.address_cycles, group.lds_cycles);
        // A full batch is closed at once, so that memory does not grow with the dispatch.
        if batch.ended == self.resident
            && let Some(batch) = self.batches.remove(&key)
        {
            self.close(group.unit, &batch);
        }
    }
}

/// The sums to which an instruction in execution may add.
struct Now<'m, 'a> {
    cycles: &'static device::Cycles,
    unit: usize,
    slot: u64,
    /// Quad-cycle in which the workgroup started.
    start: u64,
    /// Size of the workgroup's LDS in bytes.
    lds_bytes: u64,
    caches: &'m mut Hierarchy<'a>,
    engine: &'m mut Engine,
    tally: &'m mut Unit,
    wave: &'m mut WaveClock,
    address_cycles: &'m mut u64,
    lds_cycles: &'m mut u64,
}

impl Now<'_, '_> {
    /// Cycle of the wave's clock, from the start of the dispatch.
    fn cycle(&self) -> u64 {
        4 * (self.start + self.wave.clock)
    }

    /// Fetches the part of the instruction that the previous fetch did not contain.
    fn fetch(&mut self, step: &Step<'_>) {
        let last = (step.offset + step.length - 1) / hierarchy::FETCH;
        for window in step.offset / hierarchy::FETCH..=last {
            if self.wave.window == Some(window) {
                continue;
            }
            self.wave.window = Some(window);
            let offset = window * hierarchy::FETCH;
            let found = self.caches.fetch(self.unit, offset, self.cycle());
            self.engine.fetches += 1;
            *match Found::from_lookup(found) {
                Found::Hit => &mut self.engine.fetch_hits,
                Found::Miss => &mut self.engine.fetch_misses,
                Found::Duplicate => &mut self.engine.fetch_duplicates,
            } += 1;
            let latency = found.latency(self.cycles);
            self.engine.fetch_level += self.cycles.fetch + latency;
            // A hit does not delay the wave.
            self.wave.stall(latency);
        }
    }

    fn execute(&mut self, step: &Step<'_>) {
        self.engine.instructions += 1;
        match step.kind {
            Kind::Valu(kind) => {
                let quads = if kind.is_transcendental() { 4 } else { 1 };
                self.wave.issue(Port::Valu, quads);
                self.engine.valu += 1;
                self.engine.valu_kinds[kind as usize] += 1;
                self.engine.thread_quads += quads * u64::from(step.lanes);
            }
            Kind::Matrix(matrix) => {
                let quads = u64::from(matrix.cycles / 4);
                self.wave.issue(Port::Valu, quads);
                self.engine.valu += 1;
                let element = matrix.element as usize;
                self.engine.matrices[element] += 1;
                self.engine.matrix_operations[element] += u64::from(matrix.operations);
                self.engine.matrix_cycles += u64::from(matrix.cycles);
                // Matrix instructions use all lanes.
                self.engine.thread_quads += 64 * quads;
            }
            Kind::Gds => {
                self.wave.issue(Port::Misc, 1);
                self.engine.gds += 1;
            }
            Kind::Salu => {
                self.wave.issue(Port::Scalar, 1);
                self.engine.salu += 1;
            }
            Kind::Smem(dwords) => self.scalar(step, dwords),
            Kind::Vmem(instruction) => self.vector(step, instruction),
            Kind::Lds => {
                self.wave.issue(Port::Lds, 1);
                self.engine.lds += 1;
                let cycles = self.lds(step);
                self.wave.start_scalar(cycles);
            }
            Kind::Branch => {
                self.wave.issue(Port::Misc, 1);
                self.engine.branches += 1;
            }
            Kind::Message | Kind::End => {
                self.wave.issue(Port::Misc, 1);
                self.engine.messages += 1;
            }
            Kind::Barrier => self.wave.at_barrier = true,
            Kind::Wait(vector, scalar) => self.wave.wait(vector, scalar),
            Kind::Sleep(units) => self.wave.stall(64 * u64::from(units)),
            Kind::Invalidate => {
                self.caches.invalidate(self.unit);
                self.tally.invalidations += 1;
            }
            Kind::WriteBack | Kind::Other => {}
        }
    }

    fn scalar(&mut self, step: &Step<'_>, dwords: u32) {
        self.wave.issue(Port::Scalar, 1);
        self.engine.smem += 1;
        if dwords != 0 {
            self.engine.smem_loads[dwords.ilog2().min(4) as usize] += 1;
        }
        let lines = self.caches.scalar(self.unit, step.scalar, self.cycle());
        let mut latency = 0;
        for line in lines {
            self.engine.scalar_requests += 1;
            *match Found::from_lookup(line) {
                Found::Hit => &mut self.engine.scalar_hits,
                Found::Miss => &mut self.engine.scalar_misses,
                Found::Duplicate => &mut self.engine.scalar_duplicates,
            } += 1;
            latency = latency.max(line.latency(self.cycles));
        }
        let cycles = self.cycles.scalar + latency;
        self.engine.smem_level += cycles;
        self.wave.start_scalar(cycles);
    }

    /// Counts the LDS accesses of an instruction. Returns the cycles until its result is available.
    fn lds(&mut self, step: &Step<'_>) -> u64 {
        let mut active = 0;
        for transfer in step.transfers.iter().filter(|t| t.space == Space::Lds) {
            let cost = lds::cost(transfer);
            active += cost.active;
            self.engine.lds_bank_conflict += cost.bank_conflict;
            self.engine.lds_address_conflict += cost.address_conflict;
            self.engine.lds_atomic_return += cost.atomic_return;
            self.engine.lds_unaligned += cost.unaligned;
            let last = self.lds_bytes.saturating_sub(u64::from(transfer.bytes));
            let lanes = (0..64).filter(|l| transfer.lanes >> l & 1 != 0);
            let outside = lanes.filter(|&l| transfer.addresses[l] > last);
            self.engine.lds_violations += outside.count() as u64;
        }
        self.engine.lds_active += active;
        *self.lds_cycles += active;
        self.engine.lds_level += self.cycles.lds + active;
        self.cycles.lds + active
    }

    fn vector(&mut self, step: &Step<'_>, instruction: Vmem) {
        self.wave.issue(Port::Vmem, 1);
        let engine = &mut *self.engine;
        let send_address = self.cycles.send_address / 4;
        let sent = send_address + u64::from(instruction.dwords);
        if instruction.operation == Operation::Load {
            engine.vmem_reads += 1;
            engine.send_read_quads += send_address;
        } else {
            engine.vmem_writes += 1;
            engine.send_write_quads += sent;
        }
        engine.flat += u64::from(instruction.flat);
        engine.active_flat += u64::from(instruction.flat);
        let in_lds = |space| space == Space::Lds;
        let some = step.transfers.iter().any(|t| in_lds(t.space));
        let all = step.transfers.iter().all(|t| in_lds(t.space));
        let mut cycles = 0;
        if some {
            self.engine.flat_lds_only += u64::from(all);
            cycles = self.lds(step);
        }
        if !(some && all) {
            cycles = cycles.max(self.memory(step, instruction));
        }
        self.engine.vmem_level += cycles;
        self.wave.start_vector(cycles);
    }

    /// Counts the memory accesses of a vector instruction. Returns the cycles until all are complete.
    fn memory(&mut self, step: &Step<'_>, instruction: Vmem) -> u64 {
        let at = self.cycle();
        let tally = &mut *self.tally;
        let count = |accesses: &mut Accesses| match instruction.operation {
            Operation::Load => accesses.reads += 1,
            Operation::Store => accesses.writes += 1,
            Operation::Atomic(_) => accesses.atomics += 1,
        };
        count(if instruction.flat {
            &mut tally.flat
        } else {
            &mut tally.buffer
        });
        let mut requests = 0;
        let mut coalescable = true;
        tally.volatile += u64::from(instruction.coherent);
        let mut latency = 0;
        for transfer in step.transfers.iter().filter(|t| t.space != Space::Lds) {
            let access = Access {
                unit: self.unit,
                slot: self.slot,
                transfer,
                instruction,
                at,
            };
            let cost = self.caches.vector(&access, tally);
            requests += cost.requests;
            coalescable &= cost.coalescable;
            latency = latency.max(cost.latency);
        }
        tally.coalescable += u64::from(coalescable);
        tally.address_busy += requests;
        *self.address_cycles += requests;
        if !instruction.flat {
            tally.buffer_cycles += requests;
            if coalescable && instruction.operation == Operation::Load {
                tally.buffer_coalesced_reads += requests;
            } else if coalescable && instruction.operation == Operation::Store {
                tally.buffer_coalesced_writes += requests;
            }
        }
        let cycles = self.cycles.vector + latency + requests;
        tally.latency += cycles;
        cycles
    }
}

/// Result of a lookup in a scalar or instruction cache.
enum Found {
    /// The line was in the cache.
    Hit,
    /// The line was requested from the second level.
    Miss,
    /// The line had been requested and had not arrived.
    Duplicate,
}

impl Found {
    fn from_lookup(lookup: Lookup) -> Self {
        match (lookup.served, lookup.wait) {
            (ServingLevel::First, 0) => Self::Hit,
            (ServingLevel::First, _) => Self::Duplicate,
            (ServingLevel::Second | ServingLevel::Memory, _) => Self::Miss,
        }
    }
}
