//! Records of waves for the timing model: executed instructions, active lanes, and cost of memory accesses.
//!
//! A [`Recorder`] records some workgroups of a dispatch. Of long waves it records windows of [`WINDOW`] instructions
//! at equal distances: they represent the whole execution at a bounded cost.

use std::collections::HashMap;

use super::hierarchy::{Access, Hierarchy};
use super::lds;
use super::model::{resident, unit_of};
use super::pages::PageMemory;
use super::tally::Unit as Tally;
use crate::device::{Device, Layout};
use crate::isa::{Dispatch, Kind, Probe, Space, Step, Workgroup};

/// Number of instructions in a window.
const WINDOW: u64 = 256;
/// Cost up to which a traced dispatch is recorded whatever its size. The cost of an instruction is 1.
const FREE: u64 = 1 << 17;
/// Number of executed instructions for one recorded instruction, at least, of a dispatch that costs more than [`FREE`].
const PART: u64 = 256;
/// Greatest distance of two windows in instructions.
const FARTHEST: u64 = 1 << 32;
/// Cost of recording a vector memory instruction, whose accesses pass through the model of the caches.
const MEMORY: u64 = 16;

/// A hash of a number: the last step of SplitMix64.
pub(super) fn spread(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Set of workgroups that are recorded.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Shader engines of which all workgroups are recorded, one bit for each.
    pub engines: u32,
    /// Number of the compute unit, in these engines, whose waves are recorded without gaps.
    pub target: Option<u32>,
    /// Cost up to which workgroups are recorded for PC samples whatever the dispatch's size, in recorded
    /// instructions; `None` for no samples. Workgroups of all compute units are chosen, as many on each as run at the
    /// same time.
    pub samples: Option<u64>,
}

impl Selection {
    /// Whether nothing is selected.
    pub fn is_empty(&self) -> bool {
        self.engines == 0 && self.samples.is_none()
    }
}

/// A recorded instruction, or the release of a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    /// Offset in the program in bytes; [`RELEASED`] for the release of a barrier.
    pub(super) offset: u32,
    /// Cost of the execution. Branch: 1 when taken. Vector memory: latency in cycles, and number of requests from bit
    /// 16 on. LDS: cycles. Scalar memory: latency in cycles. Release: number of the barrier.
    pub(super) detail: u32,
    /// Lanes that were active, one bit for each.
    pub(super) exec: u64,
}

/// Value of [`Entry::offset`] for the release of a barrier.
pub(super) const RELEASED: u32 = u32::MAX;

/// Recorded instructions of a wave.
#[derive(Debug, Clone, Default)]
pub(super) struct WaveRecord {
    /// Number of each recorded window, and the index of its first entry.
    pub(super) windows: Vec<(u64, usize)>,
    /// Recorded instructions, in the order of execution.
    pub(super) entries: Vec<Entry>,
}

impl WaveRecord {
    /// Removes the windows whose number `keeps` does not accept.
    fn thin(&mut self, keeps: impl Fn(u64) -> bool) {
        let windows = std::mem::take(&mut self.windows);
        let entries = std::mem::take(&mut self.entries);
        for (n, &(number, first)) in windows.iter().enumerate() {
            if keeps(number) {
                let end = windows.get(n + 1).map_or(entries.len(), |next| next.1);
                self.windows.push((number, self.entries.len()));
                self.entries.extend_from_slice(&entries[first..end]);
            }
        }
    }
}

/// Recorded waves of a workgroup.
#[derive(Debug, Clone)]
pub(super) struct GroupRecord {
    /// Number of the workgroup in the dispatch.
    pub(super) id: u64,
    /// The waves of the workgroup.
    pub(super) waves: Vec<WaveRecord>,
    /// Number of barriers that were released, plus number of windows that ended while waves waited.
    barriers: u32,
    /// Number of the window that is being recorded; `None` between windows.
    open: Option<u64>,
    /// Number of instructions that each wave has executed.
    seen: Vec<u64>,
    /// For each wave, the barrier at which it waits.
    waiting: Vec<Option<Entry>>,
    detailed: bool,
    /// Offset of the first window, so that windows of different workgroups differ.
    phase: u64,
}

/// Recorded workgroups of a compute unit.
#[derive(Debug, Clone, Default)]
pub(super) struct UnitRecord {
    /// The workgroups, ordered by number.
    pub(super) groups: Vec<GroupRecord>,
    /// Number of times that the unit executes as many workgroups as it can hold.
    pub(super) batches: u64,
}

/// The recorded part of a dispatch.
#[derive(Debug)]
pub struct Record {
    pub(super) units: Vec<(usize, UnitRecord)>,
    /// Number of workgroups that a compute unit can hold at a time.
    pub(super) resident: u64,
}

/// Workgroups that are recorded; the same for all recorders of a dispatch.
#[derive(Debug, Clone)]
struct Choice {
    selection: Selection,
    groups: u64,
    resident: u64,
    /// Offset of windows, which differs between dispatches of a kernel.
    shift: u64,
}

impl Choice {
    /// Cost up to which workgroups are recorded whatever the size of the dispatch.
    fn free(&self) -> u64 {
        match self.selection.samples {
            Some(effort) if self.selection.engines == 0 => effort,
            _ => FREE,
        }
    }
}

/// Records some of the workgroups that one thread executes.
pub struct Recorder<'a> {
    device: &'static Device,
    choice: Choice,
    caches: Hierarchy<'a>,
    tally: Tally,
    groups: Vec<GroupRecord>,
    index: HashMap<u64, usize>,
    /// Index in `groups` of the workgroup that was looked up last.
    recent: usize,
    /// Distance of two windows in instructions, a power of two.
    distance: u64,
    cost: u64,
    executed: u64,
    /// Number of workgroups of the dispatch for each recorded one.
    share: u64,
}

fn engine_of(layout: &Layout, unit: usize) -> u32 {
    (unit / layout.units_per_engine as usize) as u32
}

fn local(_: u64) -> PageMemory {
    PageMemory::LOCAL
}

impl Recorder<'_> {
    /// Recorders for the threads of a dispatch.
    pub fn for_threads(
        dispatch: &Dispatch<'_>,
        selection: &Selection,
        threads: usize,
    ) -> Vec<Self> {
        let groups = (0..3)
            .map(|n| u64::from(dispatch.grid[n].div_ceil(u32::from(dispatch.workgroup[n]))))
            .product::<u64>();
        let choice = Choice {
            selection: selection.clone(),
            groups,
            resident: resident(dispatch),
            shift: spread(dispatch.dispatch_id),
        };
        let units = u64::from(dispatch.device.layout.units());
        // Workgroups that run at the same time on all units are one of this many sets.
        let share = groups.div_ceil(units * choice.resident).max(1);
        (0..threads.max(1))
            // Each thread has caches of its own, because threads execute workgroups at the same time.
            .map(|_| Self {
                device: dispatch.device,
                choice: choice.clone(),
                caches: Hierarchy::new(dispatch.device, &local, false),
                tally: Tally::default(),
                groups: Vec::new(),
                index: HashMap::new(),
                recent: usize::MAX,
                distance: 1,
                cost: 0,
                executed: 0,
                share,
            })
            .collect()
    }

    /// Merges the records of the threads of a dispatch.
    pub fn merge(recorders: Vec<Self>) -> Record {
        // Threads may have thinned their records differently; all get the greatest distance.
        let distance = recorders.iter().map(|r| r.distance).max().unwrap_or(1);
        let mut units: HashMap<usize, UnitRecord> = HashMap::new();
        let mut resident = 1;
        for recorder in recorders {
            let layout = &recorder.device.layout;
            resident = recorder.choice.resident;
            let per_unit = recorder.choice.groups.div_ceil(u64::from(layout.units()));
            let engines = recorder.choice.selection.engines;
            for mut group in recorder.groups {
                if !group.detailed && recorder.distance != distance {
                    group.thin(distance);
                }
                let number = unit_of(layout, group.id);
                let unit = units.entry(number).or_default();
                // Workgroups that are all recorded are in the order in which they ended.
                let all = engines >> engine_of(layout, number) & 1 != 0;
                unit.batches = if all { 1 } else { per_unit.div_ceil(resident) };
                unit.groups.push(group);
            }
        }
        let mut units: Vec<_> = units.into_iter().collect();
        units.sort_by_key(|unit| unit.0);
        for (_, unit) in &mut units {
            unit.groups.sort_by_key(|group| group.id);
        }
        Record { units, resident }
    }

    /// Whether all workgroups of a compute unit are recorded, and whether they are recorded without gaps.
    fn traced(&self, unit: usize) -> (bool, bool) {
        let selection = &self.choice.selection;
        let all = selection.engines >> engine_of(&self.device.layout, unit) & 1 != 0;
        let place = unit as u32 % self.device.layout.units_per_engine;
        (all, all && selection.target == Some(place))
    }

    fn find(&mut self, id: u64) -> Option<usize> {
        if self
            .groups
            .get(self.recent)
            .is_none_or(|group| group.id != id)
        {
            self.recent = *self.index.get(&id)?;
        }
        Some(self.recent)
    }

    /// Moves the windows if doubling the distance would leave none, so that a dispatch with few windows has samples
    /// as well.
    fn keep_a_window(&mut self) {
        let is_left = |group: &GroupRecord| {
            let mut windows = group.waves.iter().flat_map(|wave| &wave.windows);
            windows.any(|window| is_recorded(window.0, group.phase, 2 * self.distance))
        };
        // Detailed records are complete.
        let mut groups = self.groups.iter().filter(|group| !group.detailed);
        if groups.any(is_left) {
            return;
        }
        self.choice.shift = self.choice.shift.wrapping_add(self.distance);
        for group in &mut self.groups {
            group.phase = group.phase.wrapping_add(self.distance);
        }
    }

    /// Doubles the distance of windows when recording has cost too much.
    fn restrain(&mut self) {
        // What may be recorded grows with what was executed, so that large dispatches are not slowed down more than
        // small ones.
        let allowed = self.choice.free() + self.executed.saturating_mul(self.share) / PART;
        if self.cost <= allowed || self.distance >= FARTHEST {
            return;
        }
        self.keep_a_window();
        self.distance *= 2;
        self.cost /= 2;
        for group in self.groups.iter_mut().filter(|group| !group.detailed) {
            group.thin(self.distance);
        }
    }
}

impl UnitRecord {
    /// Number of instructions that the waves executed, and number of recorded ones.
    pub(super) fn instructions(&self) -> (u64, u64) {
        let executed = self.groups.iter().flat_map(|group| &group.seen).sum();
        let waves = self.groups.iter().flat_map(|group| &group.waves);
        (executed, waves.map(|wave| wave.entries.len() as u64).sum())
    }
}

impl GroupRecord {
    /// Begins a window. Waves that wait at a barrier wait in it.
    fn open(&mut self, number: u64) {
        self.open = Some(number);
        for (wave, waiting) in self.waves.iter_mut().zip(&self.waiting) {
            wave.windows.push((number, wave.entries.len()));
            wave.entries.extend(*waiting);
        }
    }

    /// Ends the window. Waves that wait at the barrier continue when the others have reached it.
    fn close(&mut self) {
        if self.open.take().is_some() && self.waiting.iter().any(Option::is_some) {
            self.barriers += 1;
            let end = self.release();
            self.waves
                .iter_mut()
                .for_each(|wave| wave.entries.push(end));
        }
    }

    fn release(&self) -> Entry {
        Entry {
            offset: RELEASED,
            detail: self.barriers,
            exec: 0,
        }
    }

    fn thin(&mut self, distance: u64) {
        let phase = self.phase;
        for wave in &mut self.waves {
            wave.thin(|number| is_recorded(number, phase, distance));
        }
        // If the window was removed meanwhile, its rest is not recorded.
        self.open = self
            .open
            .filter(|&number| is_recorded(number, phase, distance));
    }
}

fn is_recorded(window: u64, phase: u64, distance: u64) -> bool {
    window.wrapping_add(phase) & (distance - 1) == 0
}

impl Probe for Recorder<'_> {
    fn follows(&mut self, group: &Workgroup) -> bool {
        let layout = &self.device.layout;
        let unit = unit_of(layout, group.id);
        if self.traced(unit).0 {
            return true;
        }
        if self.choice.selection.samples.is_none() {
            return false;
        }
        // Of the workgroups that run one after the other in the same slot of a unit, one is chosen at random; only
        // full workgroups.
        let nth = group.id / u64::from(layout.units());
        let resident = self.choice.resident;
        let full = (self.choice.groups / u64::from(layout.units()) / resident).max(1);
        nth / resident == spread(unit as u64) % full
    }

    fn window(&mut self, group: u64, wave: usize, executed: u64) -> (bool, u64) {
        let distance = self.distance;
        let Some(at) = self.find(group) else {
            return (false, u64::MAX);
        };
        let record = &mut self.groups[at];
        let before = std::mem::replace(&mut record.seen[wave], executed);
        self.executed += executed - before;
        let record = &mut self.groups[at];
        if record.detailed {
            return (true, u64::MAX);
        }
        // Waves wait for each other, so the window is a part of the execution of the whole workgroup.
        let length = WINDOW * record.waves.len() as u64;
        let progress: u64 = record.seen.iter().sum();
        let (number, left) = (progress / length, length - progress % length);
        if is_recorded(number, record.phase, distance) {
            if record.open != Some(number) {
                record.close();
                record.open(number);
            }
            return (true, left.min(WINDOW));
        }
        record.close();
        // Number of instructions to the next window, if no other wave executes any.
        let to_next = distance - (number.wrapping_add(record.phase) & (distance - 1));
        (false, left + (to_next - 1) * length)
    }

    fn started(&mut self, group: &Workgroup) {
        let layout = &self.device.layout;
        let unit = unit_of(layout, group.id);
        let waves = group.items.div_ceil(64) as usize;
        let detailed = self.traced(unit).1;
        let mut record = GroupRecord {
            id: group.id,
            waves: vec![WaveRecord::default(); waves],
            barriers: 0,
            open: detailed.then_some(0),
            seen: vec![0; waves],
            waiting: vec![None; waves],
            detailed,
            phase: spread(!(unit as u64)).wrapping_add(self.choice.shift),
        };
        if detailed {
            record.waves.iter_mut().for_each(|w| w.windows.push((0, 0)));
        }
        self.index.insert(group.id, self.groups.len());
        self.groups.push(record);
    }

    fn executed(&mut self, step: &Step<'_>) {
        let Some(at) = self.find(step.group) else {
            return;
        };
        if self.groups[at].open.is_none() {
            return;
        }
        let unit = unit_of(&self.device.layout, step.group);
        let cycles = &self.device.cycles;
        let mut cost = 1;
        let detail = match step.kind {
            Kind::Branch => u64::from(step.next != step.offset + step.length),
            Kind::Lds => lds_cycles(step),
            Kind::Smem(_) => {
                let lines = self.caches.scalar(unit, step.scalar, 0);
                let latency = lines.iter().map(|line| line.latency(cycles)).max();
                cycles.scalar + latency.unwrap_or(0)
            }
            Kind::Vmem(instruction) => {
                cost = MEMORY;
                let slot = unit as u64 * 32 + step.group % 32;
                let (mut latency, mut requests) = (0, 0);
                for transfer in step.transfers.iter().filter(|t| t.space != Space::Lds) {
                    let access = Access {
                        unit,
                        slot,
                        transfer,
                        instruction,
                        at: 0,
                    };
                    let cost = self.caches.vector(&access, &mut self.tally);
                    requests += cost.requests;
                    latency = latency.max(cycles.vector + cost.latency);
                }
                let shared = lds_cycles(step);
                if shared != 0 {
                    latency = latency.max(cycles.lds + shared);
                }
                latency.min(0xffff) | requests.min(0xffff) << 16
            }
            _ => 0,
        };
        let record = &mut self.groups[at];
        if !record.detailed {
            self.cost += cost;
        }
        record.waves[step.wave].entries.push(Entry {
            offset: step.offset as u32,
            detail: detail as u32,
            exec: step.exec,
        });
        if self.cost > self.choice.free() {
            self.restrain();
        }
    }

    fn released(&mut self, group: u64) {
        let Some(at) = self.find(group) else {
            return;
        };
        let record = &mut self.groups[at];
        record.barriers += 1;
        let release = record.release();
        let recorded = record.open.is_some();
        for (wave, waiting) in record.waves.iter_mut().zip(&mut record.waiting) {
            if waiting.take().is_some() && recorded {
                wave.entries.push(release);
            }
        }
    }

    fn waits(&mut self, group: u64, wave: usize, offset: u64, exec: u64) {
        if let Some(at) = self.find(group) {
            self.groups[at].waiting[wave] = Some(Entry {
                offset: offset as u32,
                detail: 0,
                exec,
            });
        }
    }

    fn retired(&mut self, group: u64, wave: usize, executed: u64) {
        if let Some(at) = self.find(group) {
            let record = &mut self.groups[at];
            self.executed += executed - record.seen[wave];
            record.seen[wave] = executed;
        }
    }

    fn ended(&mut self, _group: u64) {}
}

/// Cycles that the LDS accesses of an instruction take.
fn lds_cycles(step: &Step<'_>) -> u64 {
    let shared = step.transfers.iter().filter(|t| t.space == Space::Lds);
    shared.map(|transfer| lds::cost(transfer).active).sum()
}
