//! Places of managed memory: each page is in host memory or in that of a GPU, and moves when the program asks for it. With
//! `HSA_XNACK=1`, as with the real driver, a GPU that has not mapped a page faults when a kernel touches it, and the page moves there.
//!
//! The memory itself is the same at every place, so contents need not be copied, and accesses of the host, which the simulator does
//! not see, move nothing.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::agents::{self, Agent};
use super::clock;
use super::machine::machine;
use super::observe::{self, DriverEvent, Migration};

/// Bytes of a page.
const PAGE: usize = 4096;
/// Pages that move together when one of them is touched: 2 MiB, the driver's default, at a multiple of that.
const BLOCK: usize = 512;
/// Bytes behind an address that one access may touch.
const ACCESS: usize = 256;
/// Most pages that are looked at on each side of a page for its neighbours in the same state.
const NEIGHBOURS: usize = 1 << 16;

/// Index of the agent in whose memory a page is; 0 is the CPU.
type Place = u8;

/// A range of managed memory.
#[derive(Debug)]
struct Managed {
    /// Number of the first page.
    first: usize,
    places: Vec<Place>,
    /// For each page the agents that have mapped it, a bit each.
    mapped: Vec<u16>,
    /// Agent that the program prefers as the place.
    preferred: Option<Place>,
    /// Agent that the program prefetched to last.
    prefetched: Option<Place>,
}

impl Managed {
    fn contains(&self, page: usize) -> bool {
        (self.first..self.first + self.places.len()).contains(&page)
    }

    /// The part of some pages that is in the range, as indices.
    fn indices(&self, pages: Range<usize>) -> Range<usize> {
        let end = self.first + self.places.len();
        let start = pages.start.clamp(self.first, end);
        start - self.first..pages.end.clamp(start, end) - self.first
    }

    /// Addresses of pages with these indices.
    fn addresses(&self, indices: &Range<usize>) -> Range<u64> {
        let address = |index: usize| ((self.first + index) * PAGE) as u64;
        address(indices.start)..address(indices.end)
    }
}

/// What moves pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The program requested it.
    Prefetch,
    /// A kernel touched a page that its GPU had not mapped.
    GpuFault,
}

/// The managed memory of a process, by first page.
#[derive(Default)]
pub(crate) struct ManagedMemory {
    ranges: Mutex<BTreeMap<usize, Managed>>,
    /// Whether there was any range.
    any: AtomicBool,
}

fn ranges() -> MutexGuard<'static, BTreeMap<usize, Managed>> {
    let ranges = &machine().managed.ranges;
    ranges.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether GPUs retry accesses that fault, so that pages move when kernels touch them.
pub(crate) fn retries_faults() -> bool {
    static XNACK: OnceLock<bool> = OnceLock::new();
    *XNACK.get_or_init(|| std::env::var_os("HSA_XNACK").is_some_and(|value| value == "1"))
}

fn pages(address: usize, size: usize) -> Range<usize> {
    address / PAGE..(address + size).div_ceil(PAGE)
}

/// Handle of the agent with an index.
fn handle(place: Place) -> u64 {
    agents::agents()
        .get(usize::from(place))
        .map_or(0, Agent::handle)
}

/// The range that contains a page.
fn find(ranges: &mut BTreeMap<usize, Managed>, page: usize) -> Option<&mut Managed> {
    let (_, found) = ranges.range_mut(..=page).next_back()?;
    found.contains(page).then_some(found)
}

/// Makes memory managed. Its pages are in host memory.
pub(crate) fn register(base: usize, size: usize) {
    let of = pages(base, size);
    // Without faults the driver maps the pages for all GPUs at once.
    let mapped = if retries_faults() { 0 } else { u16::MAX };
    let range = Managed {
        first: of.start,
        places: vec![0; of.len()],
        mapped: vec![mapped; of.len()],
        preferred: None,
        prefetched: None,
    };
    ranges().insert(of.start, range);
    machine().managed.any.store(true, Ordering::Release);
}

/// Ends the management of memory that is freed.
pub(crate) fn forget(base: usize) {
    let Some(range) = ranges().remove(&(base / PAGE)) else {
        return;
    };
    let time = clock::host_ns();
    for gpu in agents::gpus() {
        let bit = gpu.bit() as u16;
        for run in runs(0..range.mapped.len(), |index| {
            (range.mapped[index] & bit != 0).then_some(())
        }) {
            report(&DriverEvent::Unmapped {
                agent: gpu.handle(),
                range: range.addresses(&run.0),
                time,
                migrates: false,
            });
        }
    }
}

/// Sets the place that the program prefers for the range of an address; `None` for no place.
pub(crate) fn prefer(address: usize, place: Option<usize>) {
    if let Some(range) = find(&mut ranges(), address / PAGE) {
        range.preferred = place.map(|place| place as Place);
    }
}

/// Index of the agent that the program prefers for the range of an address.
pub(crate) fn preferred(address: usize) -> Option<usize> {
    let mut ranges = ranges();
    let place = find(&mut ranges, address / PAGE)?.preferred?;
    Some(place.into())
}

/// Index of the agent that the range of an address was prefetched to last.
pub(crate) fn prefetched(address: usize) -> Option<usize> {
    let mut ranges = ranges();
    let place = find(&mut ranges, address / PAGE)?.prefetched?;
    Some(place.into())
}

/// Neighbours with the same key, for those indices that have one.
fn runs<K: PartialEq>(
    indices: Range<usize>,
    key: impl Fn(usize) -> Option<K>,
) -> Vec<(Range<usize>, K)> {
    let mut runs: Vec<(Range<usize>, K)> = Vec::new();
    for index in indices {
        let Some(key) = key(index) else { continue };
        match runs.last_mut() {
            Some((run, known)) if run.end == index && *known == key => run.end += 1,
            _ => runs.push((index..index + 1, key)),
        }
    }
    runs
}

/// Moves those of some pages of a range that are elsewhere. What happened is added to `events`. Returns whether a GPU lost pages.
fn migrate(
    range: &mut Managed,
    indices: Range<usize>,
    to: Place,
    cause: Cause,
    events: &mut Vec<DriverEvent>,
) -> bool {
    let elsewhere = |index: usize| Some(range.places[index]).filter(|place| *place != to);
    let mut lost = false;
    for (run, from) in runs(indices, elsewhere) {
        let start = clock::host_ns();
        let addresses = range.addresses(&run);
        if from != 0 && (!retries_faults() || range.mapped[run.start] & 1 << from != 0) {
            lost = true;
            events.push(DriverEvent::Unmapped {
                agent: handle(from),
                range: addresses.clone(),
                time: start,
                migrates: true,
            });
        }
        range.places[run.clone()].fill(to);
        if retries_faults() {
            range.mapped[run].fill(if to == 0 { 0 } else { 1 << to });
        }
        events.push(DriverEvent::Migrated(Migration {
            range: addresses,
            start,
            end: clock::host_ns(),
            from: handle(from),
            to: handle(to),
            prefetch: range.prefetched.map_or(0, handle),
            preferred: range.preferred.map_or(0, handle),
            cause,
        }));
    }
    lost
}

/// Moves pages to the memory of the agent with this index, because the program requests it. GPUs that lose pages execute nothing
/// meanwhile, unless they retry faults.
pub(crate) fn prefetch(address: usize, size: usize, place: usize) {
    let to = place as Place;
    let mut events = Vec::new();
    let of = pages(address, size);
    let gates = &machine().gates;
    let mut evicted = Vec::new();
    if !retries_faults() {
        let losers = {
            let mut ranges = ranges();
            let Some(range) = find(&mut ranges, of.start) else {
                return;
            };
            let indices = range.indices(of.clone());
            range.places[indices]
                .iter()
                .filter(|&&from| from != 0 && from != to)
                .fold(0_u16, |losers, from| losers | 1 << from)
        };
        let gpus = agents::gpus().iter().enumerate();
        evicted = gpus
            .filter(|(_, gpu)| losers & gpu.bit() as u16 != 0)
            .map(|(ordinal, gpu)| (gpu.handle(), clock::host_ns(), gates[ordinal].evict()))
            .collect();
    }
    let mut lost = false;
    if let Some(range) = find(&mut ranges(), of.start) {
        range.prefetched = Some(to);
        let indices = range.indices(of);
        lost = migrate(range, indices, to, Cause::Prefetch, &mut events);
    }
    if lost {
        machine().memory.invalidate();
    }
    for (agent, start, eviction) in evicted {
        drop(eviction);
        let end = clock::host_ns();
        events.push(DriverEvent::Evicted { agent, start, end });
    }
    events.iter().for_each(report);
}

/// Called when a kernel on a GPU is about to touch an address. The addresses around it that the GPU has mapped; `None` for memory that
/// is not managed, or when GPUs do not retry faults. A page that is not mapped faults.
pub(crate) fn touch(gpu: &'static Agent, address: u64, write: bool) -> Option<Range<u64>> {
    if !machine().managed.any.load(Ordering::Acquire) || !retries_faults() {
        return None;
    }
    let bit = gpu.bit() as u16;
    let mut events = Vec::new();
    let mut lost = false;
    let mut ranges = ranges();
    let range = find(&mut ranges, address as usize / PAGE)?;
    // An access may reach into the next block.
    for page in [address as usize / PAGE, (address as usize + ACCESS) / PAGE] {
        if !range.contains(page) || range.mapped[page - range.first] & bit != 0 {
            continue;
        }
        let start = clock::host_ns();
        let block = page / BLOCK * BLOCK;
        let indices = range.indices(block..block + BLOCK);
        // What the program wants elsewhere stays there and is mapped from there.
        let stays = range
            .preferred
            .is_some_and(|place| usize::from(place) != gpu.index);
        let place = gpu.index as Place;
        let migrated = !stays && range.places[page - range.first] != place;
        if migrated {
            lost |= migrate(range, indices.clone(), place, Cause::GpuFault, &mut events);
        }
        range.mapped[indices]
            .iter_mut()
            .for_each(|mask| *mask |= bit);
        events.push(DriverEvent::Faulted {
            agent: gpu.handle(),
            address: (page * PAGE) as u64,
            start,
            end: clock::host_ns(),
            write,
            migrated,
        });
    }
    let page = address as usize / PAGE - range.first;
    let is_mapped = |index: &usize| range.mapped[*index] & bit != 0;
    let before = (page.saturating_sub(NEIGHBOURS)..page)
        .rev()
        .take_while(is_mapped);
    let behind = (page..range.places.len().min(page + NEIGHBOURS)).take_while(is_mapped);
    let run = page - before.count()..page + behind.count();
    let addresses = range.addresses(&run);
    drop(ranges);
    if lost {
        machine().memory.invalidate();
    }
    events.iter().for_each(report);
    Some(addresses)
}

fn report(event: &DriverEvent) {
    if let Some(observer) = observe::get() {
        observer.driver_event(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_in_the_same_state_are_one_run() {
        let keys = [Some(1), Some(1), None, Some(1), Some(2), Some(2)];
        let found = runs(0..keys.len(), |index| keys[index]);
        assert_eq!(found, [(0..2, 1), (3..4, 1), (4..6, 2)]);
    }

    #[test]
    fn pages_are_moved_once_and_each_run_is_one_migration() {
        let mut range = Managed {
            first: 16,
            places: vec![0; 4],
            mapped: vec![u16::MAX; 4],
            preferred: None,
            prefetched: Some(1),
        };
        let mut events = Vec::new();
        assert!(!migrate(&mut range, 1..3, 1, Cause::Prefetch, &mut events));
        assert!(!migrate(&mut range, 0..4, 1, Cause::Prefetch, &mut events));
        let moved: Vec<Range<u64>> = events
            .iter()
            .filter_map(|event| match event {
                DriverEvent::Migrated(migration) => Some(migration.range.clone()),
                _ => None,
            })
            .collect();
        let page = |page: u64| page * PAGE as u64;
        assert_eq!(
            moved,
            [page(17)..page(19), page(16)..page(17), page(19)..page(20)]
        );
        events.clear();
        // Back to the host, which unmaps them from the GPU.
        assert!(migrate(&mut range, 0..4, 0, Cause::Prefetch, &mut events));
        assert!(matches!(
            events[0],
            DriverEvent::Unmapped { migrates: true, .. }
        ));
        assert_eq!(events.len(), 2);
    }
}
