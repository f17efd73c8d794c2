//! The model of the second-level cache, and of its requests to memory.

use super::activity::Activity;
use super::cache::Cache;
use super::hierarchy::{LINE, ServingLevel, cache};
use super::pages::{Address, MemoryType, Owner, PageMemory};
use super::tally::Channel;
use crate::device::{CacheShape, Device};

/// Line size of the second-level cache in bytes.
pub(super) const L2_LINE: u64 = 128;
/// Bytes of a request to memory for a whole line of the first-level caches.
const FULL: u64 = 64;

/// State of a line of the second-level cache, with one bit for each byte.
#[derive(Debug, Clone, Copy)]
struct Bytes {
    /// Bytes that are valid.
    valid: u128,
    /// Bytes that have not been written back.
    dirty: u128,
    /// Owner of the memory of the line.
    owner: Owner,
}

/// A request to the second-level cache.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    /// Address of the 64 bytes.
    pub(super) address: Address,
    /// Memory that the address belongs to.
    pub(super) memory: PageMemory,
    /// The cycle in which it arrives.
    pub(super) at: u64,
    /// Whether the data will not be used again soon.
    pub(super) streaming: bool,
}

/// Times at which a channel was busy.
#[derive(Debug)]
struct ChannelTimes {
    /// Requests under way; a channel looks up one in a cycle.
    requests: Activity,
    /// Bytes that are read from memory, by owner.
    reads: [Activity; 3],
    /// Bytes that are written to memory, by owner.
    writes: [Activity; 3],
}

/// Times at which the cache was busy.
#[derive(Debug)]
pub(super) struct Times {
    channels: Vec<ChannelTimes>,
    /// Requests to memory under way.
    pub(super) memory: Activity,
}

impl Times {
    /// An idle cache.
    pub(super) fn new(device: &Device) -> Self {
        let channels = f64::from(device.caches.channels);
        let clock = f64::from(device.clocks.shader_mhz);
        let own = &device.memory;
        let local = f64::from(own.bus_bits / 8) * 2.0 * f64::from(own.clock_mhz);
        let links = &device.links;
        let rates = [
            local,
            f64::from(links.peer.megabytes_per_second),
            f64::from(links.host.megabytes_per_second),
        ];
        let by_owner = || rates.map(|rate| Activity::with_rate(rate / clock / channels));
        let channel = || ChannelTimes {
            requests: Activity::default(),
            reads: by_owner(),
            writes: by_owner(),
        };
        Self {
            channels: (0..device.caches.channels).map(|_| channel()).collect(),
            memory: Activity::default(),
        }
    }
}

/// The second-level cache, which is empty at the begin of each dispatch.
pub(super) struct SecondLevel {
    device: &'static Device,
    /// The cache of each channel.
    caches: Vec<Option<Cache<Bytes>>>,
    /// Events of each channel.
    pub(super) channels: Vec<Channel>,
    /// Times of requests; `None` where they do not matter.
    times: Option<Times>,
}

impl SecondLevel {
    /// The empty cache of a device. `timed`: whether requests have times.
    pub(super) fn new(device: &'static Device, timed: bool) -> Self {
        let channels = device.caches.channels as usize;
        let channel = Channel {
            memory_cycles: device.cycles.memory,
            ..Channel::default()
        };
        Self {
            device,
            caches: (0..channels).map(|_| None).collect(),
            channels: vec![channel; channels],
            times: timed.then(|| Times::new(device)),
        }
    }

    /// Reads 64 bytes. A miss fetches the whole line; memory that is not cached is read each time.
    pub(super) fn read(&mut self, request: &Request) -> ServingLevel {
        let (channel, number, shift) = self.place(request.address);
        self.channels[channel].reads += 1;
        self.arrive(channel, request);
        let served = if is_cached(request) {
            self.demand(request, channel, number, u128::from(u64::MAX) << shift)
        } else {
            self.channels[channel].misses += 1;
            self.channels[channel].uncached_reads_32 += FULL / 32;
            self.read_memory(channel, request.memory.owner, request.at, u64::MAX);
            ServingLevel::Memory
        };
        self.depart(channel, request, served);
        served
    }

    /// Writes bytes of a 64-byte half of a line, which need not be fetched before.
    pub(super) fn write(&mut self, request: &Request, bytes: u64) {
        let (channel, number, shift) = self.place(request.address);
        let mask = u128::from(bytes) << shift;
        self.channels[channel].writes += 1;
        self.arrive(channel, request);
        self.depart(channel, request, ServingLevel::Second);
        if !is_cached(request) {
            self.channels[channel].misses += 1;
            let halves = [bytes as u32, (bytes >> 32) as u32];
            let written = halves.iter().filter(|half| **half != 0).count();
            self.channels[channel].uncached_writes_32 += written as u64;
            self.write_memory(channel, request.memory.owner, Some(request.at), bytes);
        } else if let Some(line) = self.second(channel).get(number) {
            line.valid |= mask;
            line.dirty |= mask;
            self.channels[channel].hits += 1;
        } else {
            self.channels[channel].misses += 1;
            let line = Bytes {
                valid: mask,
                dirty: mask,
                owner: request.memory.owner,
            };
            self.insert(channel, number, line, request.at);
        }
    }

    /// Executes an atomic operation on bytes of a 64-byte half of a line. Memory that is not cached is changed in
    /// place.
    pub(super) fn modify(&mut self, request: &Request, bytes: u64) -> ServingLevel {
        let (channel, number, shift) = self.place(request.address);
        let mask = u128::from(bytes) << shift;
        self.channels[channel].atomics += 1;
        self.arrive(channel, request);
        let served = if is_cached(request) {
            let served = self.demand(request, channel, number, mask);
            if let Some(line) = self.second(channel).get(number) {
                line.dirty |= mask;
            }
            served
        } else {
            self.channels[channel].misses += 1;
            self.channels[channel].memory_atomics += 1;
            ServingLevel::Memory
        };
        self.depart(channel, request, served);
        served
    }

    /// Counts a request that arrives.
    fn arrive(&mut self, channel: usize, request: &Request) {
        let tally = &mut self.channels[channel];
        let kind = request.memory.memory_type();
        tally.types[kind as usize] += 1;
        tally.streaming += u64::from(request.streaming);
        if let Some(times) = &mut self.times {
            times.channels[channel].requests.demand(request.at, 1);
        }
    }

    /// Notes for how long a request was under way.
    fn depart(&mut self, channel: usize, request: &Request, served: ServingLevel) {
        let Some(times) = &mut self.times else {
            return;
        };
        let cycles = served.latency(&self.device.cycles);
        times.channels[channel].requests.occupy(request.at, cycles);
        if served == ServingLevel::Memory {
            let first = request.at + self.device.cycles.second;
            times.memory.occupy(first, self.device.cycles.memory);
        }
    }

    fn demand(
        &mut self,
        request: &Request,
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
        let owner = request.memory.owner;
        for half in [0, 64] {
            let missing = !(valid >> half) as u64;
            if missing != 0 {
                self.read_memory(channel, owner, request.at, missing);
            }
        }
        if !there {
            let line = Bytes {
                valid: u128::MAX,
                dirty: 0,
                owner,
            };
            self.insert(channel, number, line, request.at);
        }
        ServingLevel::Memory
    }

    /// Counts a read of some bytes of 64 from memory.
    fn read_memory(&mut self, channel: usize, owner: Owner, at: u64, bytes: u64) {
        let tally = &mut self.channels[channel];
        tally.memory_reads += 1;
        tally.memory_reads_32 += u64::from(is_half(bytes));
        tally.local_reads += u64::from(owner == Owner::Device);
        if let Some(times) = &mut self.times {
            let size = if is_half(bytes) { FULL / 2 } else { FULL };
            times.channels[channel].reads[owner as usize].demand(at, size);
        }
    }

    /// Counts a write of some bytes of 64 to memory. `at` is `None` for lines that are written when the dispatch has
    /// ended.
    fn write_memory(&mut self, channel: usize, owner: Owner, at: Option<u64>, bytes: u64) {
        let tally = &mut self.channels[channel];
        tally.memory_writes += 1;
        tally.memory_writes_64 += u64::from(!is_half(bytes));
        tally.local_writes += u64::from(owner == Owner::Device);
        if let (Some(times), Some(at)) = (&mut self.times, at) {
            let size = if is_half(bytes) { FULL / 2 } else { FULL };
            times.channels[channel].writes[owner as usize].demand(at, size);
        }
    }

    fn second(&mut self, channel: usize) -> &mut Cache<Bytes> {
        let (shape, channels) = (&self.device.caches.second, self.caches.len());
        self.caches[channel].get_or_insert_with(|| {
            let bytes = shape.bytes / channels as u32;
            cache(&CacheShape { bytes, ..*shape }, L2_LINE)
        })
    }

    fn insert(&mut self, channel: usize, number: u64, line: Bytes, at: u64) {
        if let Some((_, old)) = self.second(channel).insert(number, line) {
            self.channels[channel].evictions += 1;
            self.channels[channel].writebacks += u64::from(old.dirty != 0);
            self.write_back(channel, &old, Some(at));
        }
    }

    fn write_back(&mut self, channel: usize, line: &Bytes, at: Option<u64>) {
        for dirty in [line.dirty as u64, (line.dirty >> 64) as u64] {
            if dirty != 0 {
                self.write_memory(channel, line.owner, at, dirty);
            }
        }
    }

    /// Channel of an address, number of its line in the channel, and position of its 64 bytes in the line.
    fn place(&self, address: Address) -> (usize, u64, u32) {
        let (at, channels) = (address.0, self.caches.len() as u64);
        let interleave = u64::from(self.device.caches.interleave);
        let lines = interleave / L2_LINE;
        let number = at / (interleave * channels) * lines + at / L2_LINE % lines;
        (
            (at / interleave % channels) as usize,
            number,
            (at % L2_LINE / LINE * LINE) as u32,
        )
    }

    /// Writes back all changed lines, as at the end of a dispatch.
    pub(super) fn release(&mut self) {
        for channel in 0..self.caches.len() {
            let Some(mut cache) = self.caches[channel].take() else {
                continue;
            };
            for (_, line) in cache.drain() {
                self.channels[channel].final_writebacks += u64::from(line.dirty != 0);
                self.write_back(channel, &line, None);
            }
        }
    }

    /// Ends the dispatch: returns the events of the channels, and the times at which requests to memory were under way.
    pub(super) fn finish(mut self) -> (Vec<Channel>, Activity) {
        self.release();
        let Some(times) = self.times else {
            return (self.channels, Activity::default());
        };
        for (tally, times) in self.channels.iter_mut().zip(&times.channels) {
            tally.busy = times.requests.busy();
            tally.tag_stall = times.requests.excess();
            tally.read_stalls = times.reads.each_ref().map(Activity::excess);
            tally.write_stalls = times.writes.each_ref().map(Activity::excess);
        }
        (self.channels, times.memory)
    }
}

fn is_cached(request: &Request) -> bool {
    request.memory.memory_type() != MemoryType::Uncached
}

/// Whether all these bytes of a 64-byte line are in the same half.
fn is_half(bytes: u64) -> bool {
    bytes >> 32 == 0 || bytes as u32 == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caches() -> SecondLevel {
        SecondLevel::new(Device::find("gfx90a").expect("a device"), true)
    }

    fn at(address: u64) -> Request {
        Request {
            address: Address(address),
            memory: PageMemory::LOCAL,
            at: 0,
            streaming: false,
        }
    }

    #[test]
    fn each_line_of_memory_has_its_own_place_in_the_second_level_cache() {
        let caches = caches();
        let mut seen = std::collections::HashSet::new();
        for address in (0..1 << 20).step_by(L2_LINE as usize) {
            let (channel, number, shift) = caches.place(Address(address + LINE));
            assert_eq!(shift, 64);
            assert_eq!(channel as u64, address / 256 % 32);
            assert!(seen.insert((channel, number)), "{address}");
        }
    }

    #[test]
    fn a_completely_written_half_line_is_not_fetched_from_memory() {
        let mut caches = caches();
        caches.write(&at(0), u64::MAX);
        caches.write(&at(64), u64::from(u32::MAX));
        // The written half is there; of the other, 32 bytes are missing.
        assert_eq!(caches.read(&at(0)), ServingLevel::Second);
        assert_eq!(caches.read(&at(64)), ServingLevel::Memory);
        assert_eq!(caches.read(&at(64)), ServingLevel::Second);
        let (channels, _) = caches.finish();
        let tally = &channels[0];
        assert_eq!((tally.hits, tally.misses), (3, 2));
        assert_eq!((tally.memory_reads, tally.memory_reads_32), (1, 1));
        assert_eq!((tally.memory_writes, tally.memory_writes_64), (2, 1));
        assert_eq!((tally.writebacks, tally.final_writebacks), (0, 1));
    }

    #[test]
    fn addresses_alternate_between_cache_channels_and_full_sets_evict() {
        let mut caches = caches();
        // 17 lines of one set of one channel: 128 sets of lines 8 KiB apart in pairs.
        for n in 0..17 {
            caches.write(&at(n * 64 * 8192), 1);
        }
        caches.read(&at(256));
        assert_eq!(caches.channels[0].evictions, 1);
        assert_eq!(caches.channels[0].writebacks, 1);
        assert_eq!(caches.channels[1].reads, 1);
        assert_eq!(caches.channels[0].local_writes, 1);
    }

    #[test]
    fn uncached_memory_is_accessed_each_time() {
        let mut caches = caches();
        let host = Request {
            memory: PageMemory {
                owner: Owner::Host,
                fine_grained: true,
            },
            ..at(0)
        };
        for _ in 0..3 {
            assert_eq!(caches.read(&host), ServingLevel::Memory);
        }
        caches.write(&host, 0xff);
        caches.modify(&host, 0xf);
        let (channels, _) = caches.finish();
        let tally = &channels[0];
        assert_eq!((tally.hits, tally.misses), (0, 5));
        assert_eq!((tally.memory_reads, tally.uncached_reads_32), (3, 6));
        assert_eq!((tally.memory_writes, tally.uncached_writes_32), (1, 1));
        assert_eq!((tally.memory_atomics, tally.local_reads), (1, 0));
        assert_eq!(tally.types, [0, 5, 0, 0]);
    }

    #[test]
    fn requests_beyond_the_bandwidth_of_memory_wait_for_credits() {
        let mut caches = caches();
        // 30 bytes a cycle for each channel: 8 KiB at once take longer than 256 cycles.
        for line in 0..64 {
            caches.read(&at(line * 32 * 256));
        }
        let (channels, memory) = caches.finish();
        assert_eq!(channels[0].read_stalls[Owner::Host as usize], 0);
        let stall = channels[0].read_stalls[Owner::Device as usize];
        assert!((15..20).contains(&stall), "{stall}");
        assert_eq!((channels[0].busy, memory.busy()), (480, 352));
    }
}
