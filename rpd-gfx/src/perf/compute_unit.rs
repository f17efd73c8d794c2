//! The model of a compute unit: the times at which it issues the recorded instructions of its waves.

use std::collections::{HashSet, VecDeque};

use super::record::{Entry, GroupRecord, RELEASED, UnitRecord};
use super::timeline::{Issued, PORTS, Pipe, QUAD, Reason, Timeline, WaveTimeline};
use crate::device::Device;
use crate::isa::{Facts, Kind, Program, Registers};

/// Number of quads from the issue of vector arithmetic until an instruction that needs the result can be issued.
const ARITHMETIC: u64 = 2;
/// Number of quads until the instructions after a taken branch have been fetched.
const BRANCH: u64 = 4;
/// Number of quads from the start of a wave to its first instruction.
const START: u64 = 4;
/// Number of quads of vector memory requests that the address unit can queue.
const ADDRESS_QUEUE: u64 = 16;
/// Greatest number of outstanding LDS accesses.
const LDS_QUEUE: u64 = 8;
/// Line size of the instruction cache in bytes.
const CODE_LINE: u64 = 64;

/// Cache of facts about instructions, indexed by their offset.
pub(super) struct FactsCache<'p> {
    program: &'p Program,
    known: Vec<Option<(u32, Facts)>>,
}

impl<'p> FactsCache<'p> {
    const PLACES: usize = 4096;

    /// An empty cache for the instructions of `program`.
    pub(super) fn new(program: &'p Program) -> Self {
        Self {
            program,
            known: Vec::new(),
        }
    }

    fn get(&mut self, offset: u32) -> Option<Facts> {
        let at = (offset >> 2) as usize % Self::PLACES;
        if at >= self.known.len() {
            self.known.resize((at + 1).next_multiple_of(64), None);
        }
        let place = &mut self.known[at];
        if place.is_none_or(|known| known.0 != offset) {
            *place = self
                .program
                .facts(u64::from(offset))
                .map(|facts| (offset, facts));
        }
        place.map(|known| known.1)
    }
}

/// A wave in execution.
struct RunningWave<'r> {
    group: usize,
    number: u32,
    simd: usize,
    slot: u8,
    entries: &'r [Entry],
    /// Number and first entry of each window that is still to be executed, in reverse order.
    windows: Vec<(u64, usize)>,
    /// Number of the current window.
    window: u64,
    next: usize,
    start: u64,
    head: u64,
    state: WavePhase,
    /// The instruction at the head of the wave; `None` after its end.
    current: Option<Current>,
    /// Index of an entry before which there is no further release of a barrier.
    release: usize,
    /// For each register, the quad from which on it can be read.
    registers: Vec<u64>,
    vector: VecDeque<u64>,
    scalar: VecDeque<u64>,
    /// Quad in which the next instruction is fetched.
    fetched: u64,
    /// Line of code that was fetched last.
    line: u64,
    issued: Vec<Issued>,
}

impl RunningWave<'_> {
    /// Quad in which the wave ends.
    fn end(&self) -> u64 {
        self.head.max(self.start + 1)
    }

    /// Number of the barrier at which the wave will wait next.
    fn next_barrier(&mut self) -> Option<u32> {
        self.release = self.release.max(self.next);
        loop {
            let entry = self.entries.get(self.release)?;
            if entry.offset == RELEASED {
                return Some(entry.detail);
            }
            self.release += 1;
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WavePhase {
    Running,
    /// The wave waits at the barrier with this number.
    Barrier(u32),
    Ended,
}

#[derive(Debug, Clone, Copy)]
struct Current {
    head: u64,
    facts: Facts,
    entry: Entry,
    pipe: Pipe,
    ready: u64,
    reason: Reason,
}

/// A workgroup in execution.
struct Resident<'r> {
    record: &'r GroupRecord,
    slot: u32,
    waves: Vec<usize>,
}

/// A compute unit in execution.
pub(super) struct Machine<'d> {
    device: &'d Device,
    resident: usize,
    /// For each port of each SIMD: the quad in which it can issue next, and the quad in which it issued last.
    ports: Vec<[(u64, u64); PORTS]>,
    address: u64,
    lds: u64,
    code: HashSet<u64>,
    /// Whether a wave has reached the end of a window since the last query.
    passed: bool,
}

impl<'d> Machine<'d> {
    /// An idle unit with room for `resident` workgroups.
    pub(super) fn new(device: &'d Device, resident: u64) -> Self {
        Self {
            device,
            resident: resident as usize,
            ports: vec![[(0, 0); PORTS]; device.layout.simds_per_unit as usize],
            address: 0,
            lds: 0,
            code: HashSet::new(),
            passed: false,
        }
    }

    /// Executes the record of a compute unit. Returns the waves with their times.
    pub(super) fn run(
        mut self,
        unit: usize,
        recorded: &UnitRecord,
        facts: &mut FactsCache<'_>,
    ) -> Timeline {
        let simds = self.device.layout.simds_per_unit as usize;
        let mut waiting: VecDeque<&GroupRecord> = recorded.groups.iter().collect();
        let mut residents: Vec<Option<Resident<'_>>> = Vec::new();
        residents.resize_with(self.resident.max(1), || None);
        let mut waves: Vec<RunningWave<'_>> = Vec::new();
        let mut running: Vec<Vec<usize>> = vec![Vec::new(); simds];
        // Cached result for each SIMD: the wave that issues next.
        let mut first: Vec<Option<(u64, u64, usize)>> = vec![None; simds];
        let (mut now, mut dealt, mut done) = (0, 0, Vec::new());
        loop {
            // Starts workgroups in free slots.
            for (slot, resident) in residents.iter_mut().enumerate() {
                if resident.is_some() {
                    continue;
                }
                let Some(record) = waiting.pop_front() else {
                    break;
                };
                let mut group = Resident {
                    record,
                    slot: slot as u32,
                    waves: Vec::new(),
                };
                for (number, wave) in record.waves.iter().enumerate() {
                    // Waves are dealt to the SIMDs in turn, over all workgroups.
                    let simd = dealt % simds;
                    dealt += 1;
                    // A wave takes the first free slot of its SIMD, as the hardware does.
                    let mut used = 0u64;
                    for &other in &running[simd] {
                        used |= 1 << waves[other].slot;
                    }
                    group.waves.push(waves.len());
                    running[simd].push(waves.len());
                    let mut windows = wave.windows.clone();
                    // Reversed, so that the next window is taken from the end.
                    windows.reverse();
                    waves.push(RunningWave {
                        group: slot,
                        number: number as u32,
                        simd,
                        slot: (!used).trailing_zeros() as u8,
                        entries: &wave.entries,
                        windows,
                        window: 0,
                        next: 0,
                        start: now,
                        head: now,
                        state: WavePhase::Running,
                        current: None,
                        registers: vec![0; Registers::COUNT],
                        release: 0,
                        vector: VecDeque::new(),
                        scalar: VecDeque::new(),
                        // The first instruction has to be fetched.
                        fetched: now + START,
                        line: u64::MAX,
                        issued: Vec::with_capacity(wave.entries.len()),
                    });
                }
                *resident = Some(group);
            }
            let best = self.choose(&running, &mut waves, &mut first, facts);
            // A wave has got further in its record: waves at a barrier may be free to go.
            if std::mem::take(&mut self.passed) {
                for resident in residents.iter().flatten() {
                    release(resident, &mut waves);
                }
                first.fill(None);
                continue;
            }
            let Some((time, at)) = best else {
                // Waves wait at a barrier whose release the others did not record.
                if !resume(&residents, &mut waves, now) {
                    break;
                }
                first.fill(None);
                continue;
            };
            // Waves are chosen in the order of their times, except that a barrier may let an earlier one continue.
            now = now.max(time);
            let slot = waves[at].group;
            self.issue(&mut waves[at], time);
            // Only this SIMD's choice has changed, unless a barrier was released.
            first[waves[at].simd] = None;
            match waves[at].state {
                WavePhase::Running => {}
                WavePhase::Barrier(_) => {
                    if let Some(resident) = &residents[slot] {
                        release(resident, &mut waves);
                        first.fill(None);
                    }
                }
                WavePhase::Ended => {
                    let simd = waves[at].simd;
                    running[simd].retain(|&other| other != at);
                    // The next wave in the slot starts after the end of this one.
                    now = now.max(waves[at].end());
                    // The end of a wave may be what the others at the barrier waited for.
                    if let Some(resident) = &residents[slot] {
                        release(resident, &mut waves);
                        let left = resident
                            .waves
                            .iter()
                            .any(|&w| waves[w].state != WavePhase::Ended);
                        if !left {
                            finish(resident, &mut waves, &mut done);
                            residents[slot] = None;
                        }
                        first.fill(None);
                    }
                }
            }
        }
        // Readers of timelines look waves up by their start.
        done.sort_by_key(|wave: &WaveTimeline| (wave.start, wave.group, wave.number));
        Timeline {
            unit,
            busy: 0.0,
            batches: recorded.batches.max(1),
            end: done.iter().map(|wave| wave.end).max().unwrap_or(0),
            waves: done,
        }
    }

    /// The wave that issues next, and its time. Of several that can issue at the same time, the one that has waited
    /// longest.
    fn choose(
        &mut self,
        running: &[Vec<usize>],
        waves: &mut [RunningWave<'_>],
        first: &mut [Option<(u64, u64, usize)>],
        facts: &mut FactsCache<'_>,
    ) -> Option<(u64, usize)> {
        loop {
            // Only SIMDs whose last choice is no longer valid are looked at again.
            for (simd, first) in first.iter_mut().enumerate().filter(|f| f.1.is_none()) {
                for &at in &running[simd] {
                    let wave = &mut waves[at];
                    if wave.state != WavePhase::Running {
                        continue;
                    }
                    if wave.current.is_none() {
                        self.prepare(wave, facts);
                    }
                    let found = (self.issue_time(wave), wave.head, at);
                    // At equal times the wave that is longest at its head, then the oldest one.
                    if first.is_none_or(|known| found < known) {
                        *first = Some(found);
                    }
                }
            }
            let (time, _, at) = first.iter().flatten().min().copied()?;
            // Other SIMDs may occupy units that the SIMDs share.
            let wave = &waves[at];
            if self.issue_time(wave) == time {
                return Some((time, at));
            }
            first[wave.simd] = None;
        }
    }

    /// Moves the next instruction to the head of the wave.
    fn prepare(&mut self, wave: &mut RunningWave<'_>, facts: &mut FactsCache<'_>) {
        loop {
            while let Some(&(number, first)) = wave.windows.last()
                && first <= wave.next
            {
                wave.windows.pop();
                // Instructions between two windows were not recorded; outstanding accesses have completed meanwhile.
                if number > wave.window + 1 {
                    wave.vector.clear();
                    wave.scalar.clear();
                    wave.fetched = 0;
                }
                wave.window = number;
            }
            let Some(&entry) = wave.entries.get(wave.next) else {
                wave.current = None;
                return;
            };
            wave.next += 1;
            if entry.offset == RELEASED {
                // Other waves may have waited for this wave to get here.
                self.passed = true;
                continue;
            }
            let Some(facts) = facts.get(entry.offset) else {
                continue;
            };
            let (mut ready, mut reason) = (wave.head, Reason::Fetch);
            let fetched = self.fetch(wave, &entry, &facts);
            if fetched > ready {
                ready = fetched;
            }
            let mut later = |time: u64, why: Reason| {
                if time > ready {
                    (ready, reason) = (time, why);
                }
            };
            for register in facts.reads {
                for number in register.numbers() {
                    later(wave.registers[number], Reason::Dependency);
                }
            }
            if let Kind::Wait(vector, scalar) = facts.kind {
                for (queue, most) in [(&mut wave.vector, vector), (&mut wave.scalar, scalar)] {
                    while queue.len() > most as usize
                        && let Some(end) = queue.pop_front()
                    {
                        later(end, Reason::Counter);
                    }
                }
            }
            let pipe = Pipe::from_kind(facts.kind);
            wave.current = Some(Current {
                head: wave.head,
                facts,
                entry,
                pipe,
                ready,
                reason,
            });
            return;
        }
    }

    /// Quad in which an instruction has been fetched. Fetches take time after taken branches, and when the unit
    /// executes a line of code for the first time; the latter only at the start, because the unit may have executed
    /// the line between two windows.
    fn fetch(&mut self, wave: &mut RunningWave<'_>, entry: &Entry, facts: &Facts) -> u64 {
        let mut there = wave.fetched;
        let (first, last) = (
            u64::from(entry.offset),
            u64::from(entry.offset + facts.length - 1),
        );
        for line in first / CODE_LINE..=last / CODE_LINE {
            if std::mem::replace(&mut wave.line, line) != line
                && self.code.insert(line)
                && wave.window == 0
            {
                let cycles = self.device.cycles.fetch + self.device.cycles.second;
                there = there.max(wave.head + cycles / QUAD);
            }
        }
        there
    }

    /// Quad in which the instruction at the head of a wave can be issued.
    fn issue_time(&self, wave: &RunningWave<'_>) -> u64 {
        let Some(current) = &wave.current else {
            return wave.head;
        };
        let mut time = current.ready;
        if current.pipe != Pipe::Internal {
            // The port may be busy with an earlier instruction, for several quads.
            time = time.max(self.ports[wave.simd][current.pipe.port()].0);
            time = match current.pipe {
                // Shared by the SIMDs: a queue of requests that is full holds instructions of all of them back.
                Pipe::Vmem | Pipe::Flat => time.max(self.address.saturating_sub(ADDRESS_QUEUE)),
                Pipe::Lds => time.max(self.lds.saturating_sub(LDS_QUEUE)),
                _ => time,
            };
        }
        time
    }

    fn issue(&mut self, wave: &mut RunningWave<'_>, time: u64) {
        let Some(current) = wave.current.take() else {
            wave.state = WavePhase::Ended;
            return;
        };
        let Current {
            head,
            facts,
            entry,
            pipe,
            ready,
            reason,
        } = current;
        let port = &mut self.ports[wave.simd][pipe.port()];
        // The last issue through this port, from which on the arbiter can have chosen this wave.
        let since = port.1;
        let cycles = &self.device.cycles;
        let detail = u64::from(entry.detail);
        let mut taken = false;
        let mut busy = 1;
        // The next instruction is at the head in the quad after.
        wave.head = time + 1;
        wave.fetched = 0;
        match facts.kind {
            // Transcendental functions have a quarter of the rate.
            Kind::Valu(kind) => {
                busy = if kind.is_transcendental() { 4 } else { 1 };
                write(&mut wave.registers, &facts, time + busy - 1 + ARITHMETIC);
            }
            Kind::Matrix(matrix) => {
                busy = u64::from(matrix.cycles) / QUAD;
                // The matrix unit is occupied for all of the operation.
                write(&mut wave.registers, &facts, time + busy - 1 + ARITHMETIC);
            }
            Kind::Salu => write(&mut wave.registers, &facts, time + 1),
            Kind::Smem(_) => later(&mut wave.scalar, time + detail.div_ceil(QUAD)),
            Kind::Vmem(_) => {
                // The detail of a record has both, see `Entry::detail`.
                let (latency, requests) = (detail & 0xffff, detail >> 16);
                self.address = self.address.max(time) + requests.div_ceil(QUAD);
                later(&mut wave.vector, self.address + latency.div_ceil(QUAD));
            }
            Kind::Lds | Kind::Gds => {
                self.lds = self.lds.max(time) + detail.div_ceil(QUAD);
                later(&mut wave.scalar, self.lds + cycles.lds.div_ceil(QUAD));
            }
            Kind::Branch => {
                taken = entry.detail != 0;
                if taken {
                    wave.fetched = time + 1 + BRANCH;
                }
            }
            Kind::Barrier => {
                // A release that was not recorded lies outside of the windows: the wave goes on.
                let release = wave.entries.get(wave.next).filter(|e| e.offset == RELEASED);
                if let Some(release) = release {
                    wave.state = WavePhase::Barrier(release.detail);
                }
            }
            Kind::Sleep(units) => wave.head = time + 1 + 64 * u64::from(units) / QUAD,
            Kind::End => wave.state = WavePhase::Ended,
            Kind::Message | Kind::Wait(..) | Kind::Invalidate | Kind::WriteBack | Kind::Other => {}
        }
        let mut chosen = time;
        if pipe != Pipe::Internal {
            // No other wave has issued through the port since then.
            chosen = ready.max(since).min(time);
            *port = (time + busy, time + 1);
        }
        wave.issued.push(Issued {
            head,
            ready,
            chosen,
            issue: time,
            offset: entry.offset,
            reason,
            pipe,
            taken,
            indirect: facts.indirect,
            wide: facts.wide,
            clock: facts.clock,
            kind: facts.kind,
            exec: entry.exec,
        });
    }
}

fn write(registers: &mut [u64], facts: &Facts, time: u64) {
    for register in facts.writes {
        registers[register.numbers()].fill(time);
    }
}

/// Adds an outstanding operation. The operations of a queue complete in order.
fn later(queue: &mut VecDeque<u64>, end: u64) {
    let last = queue.back().copied().unwrap_or(0);
    queue.push_back(last.max(end));
    // The hardware's counters of outstanding operations have no greater values.
    if queue.len() > 64 {
        queue.pop_front();
    }
}

/// Releases the waves of a workgroup that wait at a barrier, if no other wave has to reach it.
fn release(resident: &Resident<'_>, waves: &mut [RunningWave<'_>]) {
    let barriers = resident
        .waves
        .iter()
        .filter_map(|&at| match waves[at].state {
            WavePhase::Barrier(barrier) => Some(barrier),
            _ => None,
        });
    // Waves pass barriers in the order of their numbers.
    let Some(barrier) = barriers.min() else {
        return;
    };
    for &at in &resident.waves {
        let wave = &mut waves[at];
        let next = if wave.state == WavePhase::Running {
            wave.next_barrier()
        } else {
            None
        };
        // A wave has still to reach the barrier.
        if next.is_some_and(|next| next <= barrier) {
            return;
        }
    }
    let here = |wave: &&usize| waves[**wave].state == WavePhase::Barrier(barrier);
    let all: Vec<usize> = resident.waves.iter().filter(here).copied().collect();
    // All continue in the quad after the last one came.
    let last = all.iter().map(|&at| waves[at].head).max().unwrap_or(0);
    for at in all {
        waves[at].state = WavePhase::Running;
        waves[at].head = last + 1;
    }
}

/// Releases all waves that wait at barriers. Returns whether there were any.
fn resume(residents: &[Option<Resident<'_>>], waves: &mut [RunningWave<'_>], now: u64) -> bool {
    let mut some = false;
    for &at in residents
        .iter()
        .flatten()
        .flat_map(|resident| &resident.waves)
    {
        if let WavePhase::Barrier(_) = waves[at].state {
            waves[at].state = WavePhase::Running;
            waves[at].head = waves[at].head.max(now + 1);
            some = true;
        }
    }
    some
}

/// Collects the waves of a workgroup that has ended.
fn finish(resident: &Resident<'_>, waves: &mut [RunningWave<'_>], done: &mut Vec<WaveTimeline>) {
    for &at in &resident.waves {
        let wave = &mut waves[at];
        done.push(WaveTimeline {
            group: resident.record.id,
            group_slot: resident.slot,
            number: wave.number,
            simd: wave.simd as u8,
            slot: wave.slot,
            start: wave.start,
            end: wave.end(),
            issued: std::mem::take(&mut wave.issued),
        });
        // The registers of ended waves are large, and waves are kept until the unit is done.
        wave.registers = Vec::new();
    }
}
