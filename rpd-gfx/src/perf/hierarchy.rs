//! The model of the caches and of the requests to them.

use super::cache::Cache;
use super::pages::{Address, Pages};
use super::tally::{Channel, Unit};
use crate::device::{CacheShape, Cycles, Device};
use crate::isa::{Operation, Space, Transfer};

/// Line size of the first-level, scalar and instruction caches, and size of a request to the second level, in bytes.
const LINE: u64 = 64;
/// Line size of the second-level cache in bytes.
const L2_LINE: u64 = 128;
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

/// What a vector access cost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Access {
    /// Number of requests: different cache lines in each quad of lanes, added up.
    pub(super) requests: u64,
    /// Whether the lanes of each quad accessed a single line.
    pub(super) coalescable: bool,
    /// The farthest level that served a request.
    pub(super) served: ServingLevel,
}

/// State of a line of the second-level cache, with one bit for each byte.
#[derive(Debug, Clone, Copy, Default)]
struct Bytes {
    /// Bytes that are valid.
    valid: u128,
    /// Bytes that have not been written back.
    dirty: u128,
}

/// All caches of the device. They are empty at the begin of each dispatch.
pub(super) struct Hierarchy<'a> {
    device: &'static Device,
    pages: Pages<'a>,
    /// First-level cache of each compute unit.
    vector: Vec<Option<Cache<()>>>,
    /// Scalar cache of each group of compute units that share one.
    scalar: Vec<Option<Cache<()>>>,
    /// Instruction cache of each of these groups.
    code: Vec<Option<Cache<()>>>,
    /// Second-level cache of each channel.
    second: Vec<Option<Cache<Bytes>>>,
    /// Events of each channel.
    pub(super) channels: Vec<Channel>,
    lookups: Vec<(u64, u64)>,
}

impl<'a> Hierarchy<'a> {
    /// The empty caches of a device. `local` returns whether a host address is in the device's own memory.
    pub(super) fn new(device: &'static Device, local: &'a (dyn Fn(u64) -> bool + Sync)) -> Self {
        let none = || (0..device.layout.unit_slots()).map(|_| None).collect();
        let channels = device.caches.channels as usize;
        let channel = Channel {
            memory_cycles: device.cycles.memory,
            ..Channel::default()
        };
        Self {
            device,
            pages: Pages::new(local),
            vector: none(),
            scalar: none(),
            code: none(),
            second: (0..channels).map(|_| None).collect(),
            channels: vec![channel; channels],
            lookups: Vec::new(),
        }
    }

    /// A vector access to global memory or scratch by a compute unit. `slot` is that of the workgroup.
    pub(super) fn vector(
        &mut self,
        unit: usize,
        slot: u64,
        transfer: &Transfer,
        coherent: bool,
        tally: &mut Unit,
    ) -> Access {
        let mut lookups = std::mem::take(&mut self.lookups);
        lookups.clear();
        let (requests, coalescable) = self.coalesce(slot, transfer, &mut lookups);
        match transfer.operation {
            Operation::Load => tally.reads += requests,
            Operation::Store => tally.writes += requests,
            Operation::Atomic(true) => tally.atomics_returning += requests,
            Operation::Atomic(false) => tally.atomics += requests,
        }
        tally.lookups += lookups.len() as u64;
        let mut served = ServingLevel::First;
        for &(line, bytes) in &lookups {
            served = served.max(self.look_up(unit, line, bytes, transfer, coherent, tally));
        }
        self.lookups = lookups;
        Access {
            requests,
            coalescable,
            served,
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
        unit: usize,
        line: u64,
        bytes: u64,
        transfer: &Transfer,
        coherent: bool,
        tally: &mut Unit,
    ) -> ServingLevel {
        let shape = &self.device.caches.vector;
        let cache = self.vector[unit].get_or_insert_with(|| cache(shape, LINE));
        let address = Address(line * LINE);
        match transfer.operation {
            Operation::Load => {
                if cache.get(line).is_some() {
                    if !coherent {
                        return ServingLevel::First;
                    }
                } else {
                    cache.insert(line, ());
                }
                let served = self.read(address);
                tally.l2_reads += 1;
                tally.l2_read_latency += served.latency(&self.device.cycles);
                served
            }
            Operation::Store => {
                self.write(address, bytes);
                tally.l2_writes += 1;
                tally.l2_write_latency += ServingLevel::Second.latency(&self.device.cycles);
                ServingLevel::Second
            }
            Operation::Atomic(returns) => {
                cache.remove(line);
                let served = self.modify(address, bytes);
                if returns {
                    tally.l2_atomics_returning += 1;
                    tally.l2_read_latency += served.latency(&self.device.cycles);
                } else {
                    tally.l2_atomics += 1;
                    tally.l2_write_latency += served.latency(&self.device.cycles);
                }
                served
            }
        }
    }

    /// A scalar load of these ranges (address and bytes). Returns the level that served each line.
    pub(super) fn scalar(&mut self, unit: usize, ranges: &[(u64, u64)]) -> Vec<ServingLevel> {
        let mut lines: Vec<u64> = Vec::new();
        for &(start, bytes) in ranges {
            for at in (start / LINE..=(start + bytes.max(1) - 1) / LINE).map(|n| n * LINE) {
                let line = self.pages.global(at).0 / LINE;
                if lines.last() != Some(&line) {
                    lines.push(line);
                }
            }
        }
        let at = self.shared(unit);
        let shape = &self.device.caches.scalar;
        let look_up = |line| {
            let cache = self.scalar[at].get_or_insert_with(|| cache(shape, LINE));
            if cache.get(line).is_some() {
                return ServingLevel::First;
            }
            cache.insert(line, ());
            self.read(Address(line * LINE))
        };
        lines.into_iter().map(look_up).collect()
    }

    /// An instruction fetch at an offset in the code.
    pub(super) fn fetch(&mut self, unit: usize, offset: u64) -> ServingLevel {
        let line = self.pages.code(offset).0 / LINE;
        let at = self.shared(unit);
        let shape = &self.device.caches.instruction;
        let cache = self.code[at].get_or_insert_with(|| cache(shape, LINE));
        if cache.get(line).is_some() {
            return ServingLevel::First;
        }
        cache.insert(line, ());
        self.read(Address(line * LINE))
    }

    /// Reads 64 bytes from the second-level cache. A miss fetches the whole line.
    fn read(&mut self, address: Address) -> ServingLevel {
        let (channel, number, shift) = self.place(address);
        self.channels[channel].reads += 1;
        self.demand(address, channel, number, u128::from(u64::MAX) << shift)
    }

    /// Writes bytes of a 64-byte half of a line, which need not be fetched before.
    fn write(&mut self, address: Address, bytes: u64) {
        let (channel, number, shift) = self.place(address);
        let mask = u128::from(bytes) << shift;
        self.channels[channel].writes += 1;
        if let Some(line) = self.second(channel).get(number) {
            line.valid |= mask;
            line.dirty |= mask;
            self.channels[channel].hits += 1;
        } else {
            self.channels[channel].misses += 1;
            let line = Bytes {
                valid: mask,
                dirty: mask,
            };
            self.insert(channel, number, line);
        }
    }

    /// An atomic operation on bytes of a 64-byte half of a line.
    fn modify(&mut self, address: Address, bytes: u64) -> ServingLevel {
        let (channel, number, shift) = self.place(address);
        let mask = u128::from(bytes) << shift;
        self.channels[channel].atomics += 1;
        let served = self.demand(address, channel, number, mask);
        if let Some(line) = self.second(channel).get(number) {
            line.dirty |= mask;
        }
        served
    }

    fn demand(
        &mut self,
        address: Address,
        channel: usize,
        number: u64,
        mask: u128,
    ) -> ServingLevel {
        let found = self.second(channel).get(number);
        let (there, valid) = found.map_or((false, 0), |line| {
            let valid = line.valid;
            if valid & mask != mask {
                line.valid = u128::MAX;
            }
            (true, valid)
        });
        if valid & mask == mask {
            self.channels[channel].hits += 1;
            return ServingLevel::Second;
        }
        self.channels[channel].misses += 1;
        let local = self.pages.is_local(address);
        for half in [0, 64] {
            let missing = !(valid >> half) as u64;
            if missing != 0 {
                let tally = &mut self.channels[channel];
                tally.memory_reads += 1;
                tally.memory_reads_32 += u64::from(is_half(missing));
                tally.local_reads += u64::from(local);
            }
        }
        if !there {
            let line = Bytes {
                valid: u128::MAX,
                dirty: 0,
            };
            self.insert(channel, number, line);
        }
        ServingLevel::Memory
    }

    fn second(&mut self, channel: usize) -> &mut Cache<Bytes> {
        let (shape, channels) = (&self.device.caches.second, self.second.len());
        self.second[channel].get_or_insert_with(|| {
            let bytes = shape.bytes / channels as u32;
            cache(&CacheShape { bytes, ..*shape }, L2_LINE)
        })
    }

    fn insert(&mut self, channel: usize, number: u64, line: Bytes) {
        if let Some((number, old)) = self.second(channel).insert(number, line) {
            self.channels[channel].evictions += 1;
            self.channels[channel].writebacks += u64::from(old.dirty != 0);
            self.write_back(channel, number, old);
        }
    }

    fn write_back(&mut self, channel: usize, number: u64, line: Bytes) {
        let local = self.pages.is_local(self.address_of(channel, number));
        for dirty in [line.dirty as u64, (line.dirty >> 64) as u64] {
            if dirty != 0 {
                let tally = &mut self.channels[channel];
                tally.memory_writes += 1;
                tally.memory_writes_64 += u64::from(!is_half(dirty));
                tally.local_writes += u64::from(local);
            }
        }
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

    /// Channel of an address, number of its line in the channel, and position of its 64 bytes in the line.
    fn place(&self, address: Address) -> (usize, u64, u32) {
        let (at, channels) = (address.0, self.second.len() as u64);
        let interleave = u64::from(self.device.caches.interleave);
        let lines = interleave / L2_LINE;
        let number = at / (interleave * channels) * lines + at / L2_LINE % lines;
        (
            (at / interleave % channels) as usize,
            number,
            (at % L2_LINE / LINE * LINE) as u32,
        )
    }

    /// Address of a line of a channel.
    fn address_of(&self, channel: usize, number: u64) -> Address {
        let interleave = u64::from(self.device.caches.interleave);
        let lines = interleave / L2_LINE;
        let block = number / lines * self.second.len() as u64 + channel as u64;
        Address(block * interleave + number % lines * L2_LINE)
    }

    /// Writes back all changed lines, as at the end of a dispatch.
    pub(super) fn release(&mut self) {
        for channel in 0..self.second.len() {
            let Some(mut cache) = self.second[channel].take() else {
                continue;
            };
            for (number, line) in cache.drain() {
                self.channels[channel].final_writebacks += u64::from(line.dirty != 0);
                self.write_back(channel, number, line);
            }
        }
    }
}

/// If the lanes of a quad access a single line, an address in the line and the accessed bytes.
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

/// The lowest `n` bits set, `n` at most 64.
fn ones(n: u64) -> u64 {
    u64::MAX >> (64 - n.clamp(1, 64))
}

/// Whether all these bytes of a 64-byte line are in the same half.
fn is_half(bytes: u64) -> bool {
    bytes >> 32 == 0 || bytes as u32 == 0
}

/// An empty cache with this size and line size.
fn cache<T>(shape: &CacheShape, line: u64) -> Cache<T> {
    let lines = u64::from(shape.bytes) / line;
    Cache::new(lines as usize / shape.ways as usize, shape.ways as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caches<'a>(local: &'a (dyn Fn(u64) -> bool + Sync)) -> Hierarchy<'a> {
        Hierarchy::new(Device::find("gfx90a").expect("a device"), local)
    }

    #[test]
    fn place_and_address_of_a_line_are_inverse() {
        let caches = caches(&|_| true);
        for at in (0..1 << 20).step_by(L2_LINE as usize) {
            let (channel, number, shift) = caches.place(Address(at + LINE));
            assert_eq!((caches.address_of(channel, number).0, shift), (at, 64));
        }
    }

    #[test]
    fn a_half_line_that_was_written_completely_is_not_fetched() {
        let mut caches = caches(&|_| true);
        caches.write(Address(0), u64::MAX);
        caches.write(Address(64), ones(32));
        // The written half is there; of the other, 32 bytes are missing.
        assert_eq!(caches.read(Address(0)), ServingLevel::Second);
        assert_eq!(caches.read(Address(64)), ServingLevel::Memory);
        assert_eq!(caches.read(Address(64)), ServingLevel::Second);
        caches.release();
        let tally = &caches.channels[0];
        assert_eq!((tally.hits, tally.misses), (3, 2));
        assert_eq!((tally.memory_reads, tally.memory_reads_32), (1, 1));
        assert_eq!((tally.memory_writes, tally.memory_writes_64), (2, 1));
        assert_eq!((tally.writebacks, tally.final_writebacks), (0, 1));
    }

    #[test]
    fn channels_take_turns_and_sets_overflow() {
        let mut caches = caches(&|_| false);
        // 17 lines of one set of one channel: 128 sets of lines 8 KiB apart in pairs.
        for n in 0..17 {
            caches.write(Address(n * 64 * 8192), 1);
        }
        caches.read(Address(256));
        assert_eq!(caches.channels[0].evictions, 1);
        assert_eq!(caches.channels[0].writebacks, 1);
        assert_eq!(caches.channels[1].reads, 1);
        assert_eq!(
            caches.channels[0].local_writes, 1,
            "unknown pages are local"
        );
    }
}
