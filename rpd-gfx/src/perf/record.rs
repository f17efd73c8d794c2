//! Recording what waves execute, for the timing model: which instructions, with which lanes, and what their accesses cost.
//!
//! A [`Recorder`] follows some workgroups of a dispatch. Of long waves it records windows of [`WINDOW`] instructions at equal
//! distances, so that a part of the execution stands for all of it at a bounded cost.

use std::collections::HashMap;

use super::hierarchy::Hierarchy;
use super::lds;
use super::model::{resident, unit_of};
use super::tally::Unit as Tally;
use crate::device::{Device, Layout};
use crate::isa::{Dispatch, Kind, Probe, Space, Step, Workgroup};

/// Instructions of a window.
const WINDOW: u64 = 256;
/// Costs of recording that a traced dispatch may have without regard to its size; an instruction is 1.
const FREE: u64 = 1 << 17;
/// One part of this many of what was executed may be recorded beyond that.
const PART: u64 = 256;
/// Largest distance of windows.
const FARTHEST: u64 = 1 << 32;
/// Cost of a vector memory instruction, whose accesses go through the model of the caches.
const MEMORY: u64 = 16;

/// A number that spreads what is counted (SplitMix64's last step).
pub(super) fn spread(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Which parts of a dispatch are recorded.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Shader engines whose workgroups are all recorded, a bit each.
    pub engines: u32,
    /// Compute unit of these engines whose waves are recorded without gaps.
    pub target: Option<u32>,
    /// Whether workgroups of all compute units are recorded, one after the other as many as run together, and what that may cost
    /// without regard to the dispatch's size, in recorded instructions.
    pub samples: Option<u64>,
}

impl Selection {
    /// Whether nothing is recorded.
    pub fn is_empty(&self) -> bool {
        self.engines == 0 && self.samples.is_none()
    }
}

/// A recorded instruction, or the release of a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    /// Offset in the program in bytes; [`RELEASED`] for a barrier's release.
    pub(super) offset: u32,
    /// Dynamic detail: for branches 1 when taken; for vector memory the latency in cycles and, above bit 16,
    /// requests; LDS cycles; scalar memory the latency; releases the number of the barrier.
    pub(super) detail: u32,
    /// Lanes that were active.
    pub(super) exec: u64,
}

/// Offset of a release.
pub(super) const RELEASED: u32 = u32::MAX;

/// Instructions that a wave executed.
#[derive(Debug, Clone, Default)]
pub(super) struct WaveRecord {
    /// Numbers of the recorded windows, with the first entry of each.
    pub(super) windows: Vec<(u64, usize)>,
    /// The executed instructions, in order.
    pub(super) entries: Vec<Entry>,
}

impl WaveRecord {
    /// Keeps the windows of a distance.
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

/// Waves that a workgroup executed.
#[derive(Debug, Clone)]
pub(super) struct GroupRecord {
    /// Number of the workgroup in the dispatch.
    pub(super) id: u64,
    /// The waves of the workgroup.
    pub(super) waves: Vec<WaveRecord>,
    /// Releases of barriers, and ends of windows while waves waited.
    barriers: u32,
    /// The window in which its waves record.
    open: Option<u64>,
    /// Instructions of each wave that were counted so far.
    seen: Vec<u64>,
    /// Of each wave, the barrier at which it waits.
    waiting: Vec<Option<Entry>>,
    detailed: bool,
    /// Offset of the windows.
    phase: u64,
}

/// Workgroups recorded on a compute unit.
#[derive(Debug, Clone, Default)]
pub(super) struct UnitRecord {
    /// The workgroups in the order of their numbers.
    pub(super) groups: Vec<GroupRecord>,
    /// Times that the unit executes as many workgroups as run together.
    pub(super) batches: u64,
}

/// Merged recording of a dispatch.
#[derive(Debug)]
pub struct Record {
    pub(super) units: Vec<(usize, UnitRecord)>,
    /// Workgroups that a compute unit has room for.
    pub(super) resident: u64,
}

/// Which workgroups are recorded: shared by the recorders of a dispatch.
#[derive(Debug, Clone)]
struct Choice {
    selection: Selection,
    groups: u64,
    resident: u64,
    /// Moves windows, so that several dispatches of a kernel have different ones.
    shift: u64,
}

impl Choice {
    /// What recording may cost without regard to the dispatch's size.
    fn free(&self) -> u64 {
        match self.selection.samples {
            Some(effort) if self.selection.engines == 0 => effort,
            _ => FREE,
        }
    }
}

/// Records a part of the workgroups of a dispatch; one for each of its threads.
pub struct Recorder<'a> {
    device: &'static Device,
    choice: Choice,
    caches: Hierarchy<'a>,
    tally: Tally,
    groups: Vec<GroupRecord>,
    index: HashMap<u64, usize>,
    /// Index in `groups` of the last one that was looked up.
    recent: usize,
    /// Distance of windows, a power of two.
    distance: u64,
    cost: u64,
    executed: u64,
    /// Workgroups of the dispatch for each one that is followed.
    share: u64,
}

fn engine_of(layout: &Layout, unit: usize) -> u32 {
    (unit / layout.units_per_engine as usize) as u32
}

fn local(_: u64) -> bool {
    true
}

impl Recorder<'_> {
    /// Recorders for this many threads.
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
        let share = groups.div_ceil(units * choice.resident).max(1);
        (0..threads.max(1))
            .map(|_| Self {
                device: dispatch.device,
                choice: choice.clone(),
                caches: Hierarchy::new(dispatch.device, &local),
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

    /// Merges the recordings of a dispatch.
    pub fn merge(recorders: Vec<Self>) -> Record {
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
                // Where all workgroups are recorded, they follow each other as they end.
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

    /// Whether all workgroups of a unit are to be recorded, and all of their instructions.
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

    /// Moves the windows if none that was recorded would be left at twice the distance: a dispatch of few windows has samples as well.
    fn keep_a_window(&mut self) {
        let is_left = |group: &GroupRecord| {
            let mut windows = group.waves.iter().flat_map(|wave| &wave.windows);
            windows.any(|window| is_recorded(window.0, group.phase, 2 * self.distance))
        };
        let mut groups = self.groups.iter().filter(|group| !group.detailed);
        if groups.any(is_left) {
            return;
        }
        self.choice.shift = self.choice.shift.wrapping_add(self.distance);
        for group in &mut self.groups {
            group.phase = group.phase.wrapping_add(self.distance);
        }
    }

    /// Doubles the distance of windows when too much is recorded.
    fn restrain(&mut self) {
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
    /// Instructions that its waves executed, and those of them that were recorded.
    pub(super) fn instructions(&self) -> (u64, u64) {
        let executed = self.groups.iter().flat_map(|group| &group.seen).sum();
        let waves = self.groups.iter().flat_map(|group| &group.waves);
        (executed, waves.map(|wave| wave.entries.len() as u64).sum())
    }
}

impl GroupRecord {
    /// A window begins. Waves that wait at a barrier do so in it.
    fn open(&mut self, number: u64) {
        self.open = Some(number);
        for (wave, waiting) in self.waves.iter_mut().zip(&self.waiting) {
            wave.windows.push((number, wave.entries.len()));
            wave.entries.extend(*waiting);
        }
    }

    /// Ends the open turn: waves that wait at the barrier go on when the others have reached it.
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
        // The rest of a dropped window is not recorded.
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
        // Of those that run together on a unit one after the other, one by chance: full ones only.
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
        // Waves wait for each other, so a window is a part of what the workgroup executes.
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
        // To the next window that is, if no other wave executes anything.
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
                let lines = self.caches.scalar(unit, step.scalar);
                let farthest = lines.into_iter().max();
                cycles.scalar + farthest.map_or(0, |served| served.latency(cycles))
            }
            Kind::Vmem(instruction) => {
                cost = MEMORY;
                let slot = unit as u64 * 32 + step.group % 32;
                let (mut latency, mut requests) = (0, 0);
                for transfer in step.transfers.iter().filter(|t| t.space != Space::Lds) {
                    let coherent = instruction.coherent;
                    let tally = &mut self.tally;
                    let access = self.caches.vector(unit, slot, transfer, coherent, tally);
                    requests += access.requests;
                    latency = latency.max(cycles.vector + access.served.latency(cycles));
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

/// Cycles of the LDS accesses of an instruction.
fn lds_cycles(step: &Step<'_>) -> u64 {
    let shared = step.transfers.iter().filter(|t| t.space == Space::Lds);
    shared.map(|transfer| lds::cost(transfer).active).sum()
}
