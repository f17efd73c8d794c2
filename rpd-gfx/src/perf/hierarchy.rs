//! The model of the first-level caches and of the requests to them.

use super::activity::Activity;
use super::cache::Cache;
use super::pages::{Address, MemoryOf, PAGE, Pages};
use super::second_level::{Request, SecondLevel};
use super::tally::{Device as DeviceTally, Engine, Unit};
use crate::device::{CacheShape, Cycles, Device};
use crate::isa::{Operation, Space, Transfer, Vmem};

/// Line size of the first-level, scalar and instruction caches, and size of a request to the second level, in bytes.
pub(super) const LINE: u64 = 64;
/// Number of pages of which a compute unit knows the translation.
const TRANSLATIONS: usize = 32;
/// Number of lanes whose addresses are coalesced.
const QUAD: usize = 4;
/// Size of an instruction fetch in bytes.
pub(super) const FETCH: u64 = 32;

/// The level that served an access, or the farthest one for several requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ServingLevel {
    /// The first cache: vector, scalar or instruction cache.
    First,
    /// The second-level cache.
    Second,
    /// Memory.
    Memory,
}

impl ServingLevel {
    /// Additional cycles for the levels after the first cache.
    pub(super) fn latency(self, cycles: &Cycles) -> u64 {
        match self {
            Self::First => 0,
            Self::Second => cycles.second,
            Self::Memory => cycles.second + cycles.memory,
        }
    }
}

/// Cost of a vector access.
#[derive(Debug, Clone, Copy)]
pub(super) struct AccessCost {
    /// Number of requests: different cache lines in each quad of lanes, added up.
    pub(super) requests: u64,
    /// Whether the lanes of each quad accessed a single line.
    pub(super) coalescable: bool,
    /// Cycles until all data have come to the first-level cache.
    pub(super) latency: u64,
}

/// Times at which a line of a first-level cache was requested and arrived, in cycles.
#[derive(Debug, Clone, Copy)]
struct Fill {
    requested: u64,
    ready: u64,
}

impl Fill {
    /// Cycles that an access has to wait for the line. Waves are executed one after the other, so that the line may
    /// have been requested by an access that is later than this one; the result is 0 then.
    fn wait(self, at: u64) -> u64 {
        if self.requested <= at {
            self.ready.saturating_sub(at)
        } else {
            0
        }
    }
}

/// Result of a lookup in a first-level cache.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lookup {
    /// The level that serves the access.
    pub(super) served: ServingLevel,
    /// Cycles until the arrival of a line that another access requested; 0 for all other accesses.
    pub(super) wait: u64,
}

impl Lookup {
    /// Cycles until the data have come to the first cache.
    pub(super) fn latency(self, cycles: &Cycles) -> u64 {
        self.served.latency(cycles).max(self.wait)
    }
}

/// A vector memory instruction of a compute unit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Access<'t> {
    /// Index of the compute unit.
    pub(super) unit: usize,
    /// Slot of the workgroup, which selects its scratch memory.
    pub(super) slot: u64,
    /// The lanes' accesses.
    pub(super) transfer: &'t Transfer,
    /// The memory instruction of the access.
    pub(super) instruction: Vmem,
    /// Cycle in which the instruction is issued.
    pub(super) at: u64,
}

/// Times at which the parts of a compute unit's memory path were busy.
#[derive(Debug, Default)]
struct UnitTimes {
    /// Accesses under way; the cache looks up one line in a cycle.
    accesses: Activity,
    /// Results that the data unit returns, 64 bytes in a cycle.
    results: Activity,
    /// Requests on the path to the second level, which takes one in a cycle.
    requests: Activity,
    /// Data of stores on the path to the second level, which takes those of one in a cycle.
    stores: Activity,
    /// Waits for lines that other accesses requested.
    pending: Activity,
    /// Waits of loads, stores and atomics for lines that they cannot replace or change yet.
    conflicts: [Activity; 3],
}

/// Times at which a scalar or instruction cache was busy.
#[derive(Debug, Default)]
struct SharedTimes {
    /// Lookups under way; the cache begins one in a cycle.
    lookups: Activity,
    /// Requests on the path to the second level, which takes one in a cycle.
    requests: Activity,
}

/// Times at which the first-level caches were busy.
#[derive(Debug)]
struct Times {
    units: Vec<UnitTimes>,
    scalar: Vec<SharedTimes>,
    code: Vec<SharedTimes>,
    /// Time in which any address unit was busy.
    addressing: Activity,
    /// Time in which any cache was busy.
    caches: Activity,
    /// Translations that are looked up in the second level.
    translation: Activity,
}

/// All caches of the device, which are empty at the begin of each dispatch.
pub(super) struct Hierarchy<'a> {
    device: &'static Device,
    pages: Pages<'a>,
    /// First-level cache of each compute unit.
    vector: Vec<Option<Cache<Fill>>>,
    /// Pages of which each compute unit knows the translation.
    translations: Vec<Option<Cache<()>>>,
    /// Scalar cache of each group of compute units that share one.
    scalar: Vec<Option<Cache<Fill>>>,
    /// Instruction cache of each group of compute units that share one.
    code: Vec<Option<Cache<Fill>>>,
    second: SecondLevel,
    /// Times of accesses; `None` where they do not matter.
    times: Option<Times>,
    lookups: Vec<(u64, u64)>,
}

impl<'a> Hierarchy<'a> {
    /// The empty caches of a device. `memory` returns the memory of a host address. `timed`: whether accesses have
    /// times; without, no access waits for a line that another one requested.
    pub(super) fn new(device: &'static Device, memory: &'a MemoryOf<'a>, timed: bool) -> Self {
        let units = device.layout.unit_slots() as usize;
        let none = || (0..units).map(|_| None).collect();
        let shared = || {
            let caches = 0..units;
            caches.map(|_| SharedTimes::default()).collect()
        };
        Self {
            device,
            pages: Pages::new(memory),
            vector: none(),
            translations: (0..units).map(|_| None).collect(),
            scalar: none(),
            code: none(),
            second: SecondLevel::new(device, timed),
            times: timed.then(|| Times {
                units: (0..units).map(|_| UnitTimes::default()).collect(),
                scalar: shared(),
                code: shared(),
                addressing: Activity::default(),
                caches: Activity::default(),
                translation: Activity::default(),
            }),
            lookups: Vec::new(),
        }
    }

    /// Makes a vector access to global memory or scratch; returns its cost.
    pub(super) fn vector(&mut self, access: &Access<'_>, tally: &mut Unit) -> AccessCost {
        let transfer = access.transfer;
        // The list is kept between accesses: allocating it for each would take longer than the lookups.
        let mut lookups = std::mem::take(&mut self.lookups);
        lookups.clear();
        let (requests, coalescable) = self.coalesce(access.slot, transfer, &mut lookups);
        match transfer.operation {
            Operation::Load => tally.reads += requests,
            Operation::Store => tally.writes += requests,
            Operation::Atomic(true) => tally.atomics_returning += requests,
            Operation::Atomic(false) => tally.atomics += requests,
        }
        tally.lookups += lookups.len() as u64;
        let mut latency = 0;
        for (n, &(line, bytes)) in lookups.iter().enumerate() {
            // The cache looks up one line in a cycle.
            let at = access.at + n as u64;
            self.translate(access.unit, line, at, tally);
            let found = self.look_up(access, line, bytes, at, tally);
            // The instruction is complete when its last line is.
            latency = latency.max(found.latency(&self.device.cycles));
        }
        let cost = AccessCost {
            requests,
            coalescable,
            latency,
        };
        self.note(access, lookups.len() as u64, &cost);
        self.lookups = lookups;
        cost
    }

    /// Notes the times at which parts of a compute unit were busy with an access.
    fn note(&mut self, access: &Access<'_>, lookups: u64, cost: &AccessCost) {
        let Some(times) = &mut self.times else {
            return;
        };
        let (at, transfer) = (access.at, access.transfer);
        let unit = &mut times.units[access.unit];
        let cycles = self.device.cycles.vector + cost.latency + cost.requests;
        unit.accesses.occupy(at, cycles);
        unit.accesses.demand(at, lookups);
        times.caches.occupy(at, cycles);
        times.addressing.occupy(at, cost.requests);
        match transfer.operation {
            Operation::Load | Operation::Atomic(true) => {
                let bytes = u64::from(transfer.lanes.count_ones()) * u64::from(transfer.bytes);
                // Results come back 64 bytes in a cycle, at least one cycle for each line.
                let returned = lookups.max(bytes.div_ceil(LINE));
                unit.results
                    .occupy((at + cycles).saturating_sub(returned), returned);
                unit.results.demand(at, returned);
            }
            Operation::Store => unit.stores.demand(at, lookups),
            Operation::Atomic(false) => {}
        }
    }

    /// Looks up the translation of a line's page.
    fn translate(&mut self, unit: usize, line: u64, at: u64, tally: &mut Unit) {
        let page = line * LINE / PAGE;
        tally.translations += 1;
        // Translations are kept for whole pages, by LRU.
        let known = self.translations[unit].get_or_insert_with(|| Cache::new(1, TRANSLATIONS));
        if known.get(page).is_none() {
            known.insert(page, ());
            tally.translation_misses += 1;
            if let Some(times) = &mut self.times {
                times.translation.occupy(at, self.device.cycles.second);
            }
        }
    }

    /// Splits an access into requests, and into lookups of cache lines with the accessed bytes. Consecutive requests
    /// for the same line share a lookup.
    fn coalesce(
        &mut self,
        slot: u64,
        transfer: &Transfer,
        lookups: &mut Vec<(u64, u64)>,
    ) -> (u64, bool) {
        let mut requests = 0;
        let mut coalescable = true;
        let mut quad: Vec<(u64, u64)> = Vec::new();
        for first in (0..64).step_by(QUAD) {
            quad.clear();
            match one_line(transfer, first) {
                // The usual case: the four lanes access one line.
                Some((at, bytes)) => quad.push((self.address(slot, transfer, at).0 / LINE, bytes)),
                None => self.lines_of_quad(slot, transfer, first, &mut quad),
            }
            requests += quad.len() as u64;
            coalescable &= quad.len() <= 1;
            for &(line, bytes) in &quad {
                match lookups.last_mut() {
                    Some(last) if last.0 == line => last.1 |= bytes,
                    _ => lookups.push((line, bytes)),
                }
            }
        }
        (requests, coalescable)
    }

    /// The lines that the lanes of a quad access, with the accessed bytes of each.
    fn lines_of_quad(
        &mut self,
        slot: u64,
        transfer: &Transfer,
        first: usize,
        quad: &mut Vec<(u64, u64)>,
    ) {
        for l in (first..first + QUAD).filter(|l| transfer.lanes >> l & 1 != 0) {
            let mut at = transfer.addresses[l];
            let end = at + u64::from(transfer.bytes);
            // An unaligned access may extend into the next line.
            while at < end {
                let stop = end.min(at - at % LINE + LINE);
                let address = self.address(slot, transfer, at);
                let bytes = ones(stop - at) << (address.0 % LINE);
                let line = address.0 / LINE;
                match quad.iter_mut().find(|known| known.0 == line) {
                    Some(known) => known.1 |= bytes,
                    None => quad.push((line, bytes)),
                }
                at = stop;
            }
        }
    }

    /// The model's address of a host address.
    fn address(&mut self, slot: u64, transfer: &Transfer, at: u64) -> Address {
        match transfer.space {
            Space::Scratch => self.pages.scratch(slot, at),
            _ => self.pages.global(at),
        }
    }

    /// Looks up a line. Loads fill the first-level cache; stores and atomics are written through to the second level.
    fn look_up(
        &mut self,
        access: &Access<'_>,
        line: u64,
        bytes: u64,
        at: u64,
        tally: &mut Unit,
    ) -> Lookup {
        let shape = &self.device.caches.vector;
        let cache = self.vector[access.unit].get_or_insert_with(|| cache(shape, LINE));
        let operation = access.transfer.operation;
        let mut times = self.times.as_mut().map(|t| &mut t.units[access.unit]);
        // Loads that bypass the cache (`glc`) are looked up in the second level.
        if operation == Operation::Load
            && !access.instruction.coherent
            && let Some(fill) = cache.get(line)
        {
            let wait = times.as_ref().map_or(0, |_| fill.wait(at));
            if let Some(times) = &mut times {
                times.pending.occupy(at, wait);
            }
            return Lookup {
                served: ServingLevel::First,
                wait,
            };
        }
        let address = Address(line * LINE);
        let memory = self.pages.memory(address);
        let request = Request {
            address,
            memory,
            at,
            streaming: access.instruction.streaming,
        };
        let kind = memory.memory_type() as usize;
        // What of the cache is in the way of the access.
        let cycles = &self.device.cycles;
        let (served, conflict, before) = match operation {
            Operation::Load => {
                let served = self.second.read(&request);
                let latency = served.latency(cycles);
                let fill = Fill {
                    requested: at,
                    ready: at + latency,
                };
                tally.l2_reads += 1;
                tally.l2_read_latency += latency;
                tally.l2_types[kind].reads += 1;
                // A bypassing load refreshes a line that is there.
                let before = match cache.get(line) {
                    Some(known) => Some(std::mem::replace(known, fill)),
                    None => cache.insert(line, fill).map(|(_, old)| old),
                };
                (served, 0, before)
            }
            // Stores do not allocate a line; they are written through.
            Operation::Store => {
                self.second.write(&request, bytes);
                tally.l2_writes += 1;
                tally.l2_write_latency += ServingLevel::Second.latency(cycles);
                tally.l2_types[kind].writes += 1;
                (ServingLevel::Second, 1, cache.peek(line).copied())
            }
            Operation::Atomic(returns) => {
                let served = self.second.modify(&request, bytes);
                if returns {
                    tally.l2_atomics_returning += 1;
                    tally.l2_read_latency += served.latency(cycles);
                } else {
                    tally.l2_atomics += 1;
                    tally.l2_write_latency += served.latency(cycles);
                }
                tally.l2_types[kind].atomics += 1;
                // Atomics are executed in the second level, so that the line must not stay here.
                (served, 2, cache.remove(line))
            }
        };
        if let Some(times) = &mut times {
            times.requests.demand(at, 1);
            // The line in the way must have arrived before it can be replaced or changed.
            if let Some(before) = before {
                times.conflicts[conflict].occupy(at, before.wait(at));
            }
        }
        Lookup { served, wait: 0 }
    }

    /// Makes a scalar load of ranges (address and bytes) in the cycle `at`. Returns the result for each line.
    pub(super) fn scalar(&mut self, unit: usize, ranges: &[(u64, u64)], at: u64) -> Vec<Lookup> {
        let mut lines: Vec<u64> = Vec::new();
        for &(start, bytes) in ranges {
            for at in (start / LINE..=(start + bytes.max(1) - 1) / LINE).map(|n| n * LINE) {
                let line = self.pages.global(at).0 / LINE;
                // A load of several dwords looks each line up once.
                if lines.last() != Some(&line) {
                    lines.push(line);
                }
            }
        }
        let place = self.shared(unit);
        let shape = &self.device.caches.scalar;
        let look_up = |line| {
            let times = self.times.as_mut();
            shared_look_up(
                self.scalar[place].get_or_insert_with(|| cache(shape, LINE)),
                times.map(|times| (&mut times.scalar[place], &mut times.caches)),
                &mut self.second,
                &self.pages,
                &self.device.cycles,
                (line, at),
            )
        };
        lines.into_iter().map(look_up).collect()
    }

    /// Fetches instructions at an offset in the code, in the cycle `at`.
    pub(super) fn fetch(&mut self, unit: usize, offset: u64, at: u64) -> Lookup {
        let line = self.pages.code(offset).0 / LINE;
        let place = self.shared(unit);
        let shape = &self.device.caches.instruction;
        let times = self.times.as_mut();
        shared_look_up(
            self.code[place].get_or_insert_with(|| cache(shape, LINE)),
            times.map(|times| (&mut times.code[place], &mut times.caches)),
            &mut self.second,
            &self.pages,
            &self.device.cycles,
            (line, at),
        )
    }

    /// Invalidates the first-level cache of a compute unit.
    pub(super) fn invalidate(&mut self, unit: usize) {
        self.vector[unit] = None;
    }

    /// Ends the dispatch. Adds sums of times to the events of engines, compute units and the device, and returns the
    /// events of the channels.
    pub(super) fn finish(
        self,
        engines: &mut [Engine],
        units: &mut [Unit],
        device: &mut DeviceTally,
    ) -> Vec<super::tally::Channel> {
        let layout = &self.device.layout;
        let (channels, memory) = self.second.finish();
        device.memory = memory.busy();
        let Some(times) = self.times else {
            return channels;
        };
        for (tally, times) in units.iter_mut().zip(&times.units) {
            tally.under_way = times.accesses.busy();
            tally.returning = times.results.busy();
            tally.pending = times.pending.busy();
            tally.conflicts = times.conflicts.each_ref().map(Activity::busy);
            tally.lookup_stall = times.accesses.excess();
            tally.result_stall = times.results.excess();
            tally.request_stall = times.requests.excess();
            tally.store_stall = times.stores.excess();
        }
        let units = layout.units_per_engine as usize;
        // Compute units of an engine share caches in groups, the last of which may be smaller.
        let caches = units.div_ceil(layout.units_per_scalar_cache as usize);
        for (n, tally) in engines.iter_mut().enumerate() {
            let own = n * caches..(n + 1) * caches;
            for (scalar, code) in own.map(|at| (&times.scalar[at], &times.code[at])) {
                tally.scalar_busy += scalar.lookups.busy();
                tally.scalar_held += scalar.lookups.excess();
                tally.fetch_busy += code.lookups.busy();
                tally.fetch_held += code.lookups.excess();
                tally.shared_request_stall += scalar.requests.excess() + code.requests.excess();
            }
        }
        device.addressing = times.addressing.busy();
        device.caches = times.caches.busy();
        device.translation = times.translation.busy();
        channels
    }

    /// Index of the scalar and instruction caches of a compute unit.
    fn shared(&self, unit: usize) -> usize {
        let layout = &self.device.layout;
        let (units, sharing) = (
            layout.units_per_engine as usize,
            layout.units_per_scalar_cache as usize,
        );
        unit / units * units.div_ceil(sharing) + unit % units / sharing
    }
}

/// Looks up a line in a scalar or instruction cache in a cycle. `times`: those of the cache, and of all caches.
fn shared_look_up(
    cache: &mut Cache<Fill>,
    mut times: Option<(&mut SharedTimes, &mut Activity)>,
    second: &mut SecondLevel,
    pages: &Pages<'_>,
    cycles: &Cycles,
    (line, at): (u64, u64),
) -> Lookup {
    let found = match cache.get(line) {
        Some(fill) => Lookup {
            served: ServingLevel::First,
            wait: times.as_ref().map_or(0, |_| fill.wait(at)),
        },
        None => {
            let address = Address(line * LINE);
            let served = second.read(&Request {
                address,
                memory: pages.memory(address),
                at,
                streaming: false,
            });
            let ready = at + served.latency(cycles);
            cache.insert(
                line,
                Fill {
                    requested: at,
                    ready,
                },
            );
            if let Some((times, _)) = &mut times {
                times.requests.demand(at, 1);
            }
            Lookup { served, wait: 0 }
        }
    };
    if let Some((times, caches)) = times {
        let busy = found.latency(cycles).max(1);
        times.lookups.occupy(at, busy);
        times.lookups.demand(at, 1);
        caches.occupy(at, busy);
    }
    found
}

/// An address in the line and the accessed bytes, if the lanes of a quad access a single line; `None` otherwise.
fn one_line(transfer: &Transfer, first: usize) -> Option<(u64, u64)> {
    let lanes = (transfer.lanes >> first) as usize & ((1 << QUAD) - 1);
    let width = u64::from(transfer.bytes);
    if lanes == 0 || !(1..=LINE).contains(&width) {
        return None;
    }
    let addresses = &transfer.addresses[first..first + QUAD];
    let at = addresses[lanes.trailing_zeros() as usize];
    let (line, mut bytes) = (at - at % LINE, 0);
    for (lane, address) in addresses.iter().enumerate() {
        if lanes >> lane & 1 != 0 {
            let offset = address.wrapping_sub(line);
            if offset > LINE - width {
                return None;
            }
            bytes |= ones(width) << offset;
        }
    }
    Some((at, bytes))
}

/// A number with the lowest `n` bits set, `n` at most 64.
fn ones(n: u64) -> u64 {
    u64::MAX >> (64 - n.clamp(1, 64))
}

/// An empty cache with this size and line size.
pub(super) fn cache<T>(shape: &CacheShape, line: u64) -> Cache<T> {
    let lines = u64::from(shape.bytes) / line;
    Cache::new(lines as usize / shape.ways as usize, shape.ways as usize)
}
