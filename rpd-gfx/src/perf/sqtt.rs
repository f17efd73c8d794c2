//! Thread traces: the token stream that the sequencers of a GFX9 shader engine write, from the timelines of its compute units.
//!
//! Tokens are little-endian, their low four bits are the type, and they carry the time since the one before in quads. Waves
//! of all compute units have their start and end; those of the target unit on the selected SIMDs every instruction.

use super::record::spread;
use super::timeline::{Issued, Pipe, Reason, Timeline, WaveTimeline};
use crate::isa::{Kind, Operation};

/// Trace settings of a shader engine.
#[derive(Debug, Clone)]
pub struct TraceSettings {
    /// The shader engine.
    pub engine: u32,
    /// The compute unit whose waves have their instructions.
    pub target: u32,
    /// SIMDs of it, a bit each.
    pub simds: u32,
    /// Bytes that the buffer has room for.
    pub capacity: usize,
    /// Generation of the format: 4 for MI200, 5 for MI300, 6 for MI350.
    pub generation: u32,
    /// Counters in the trace.
    pub counters: Option<TraceCounters>,
}

/// Counters in a trace.
#[derive(Debug, Clone)]
pub struct TraceCounters {
    /// Quads between two readings.
    pub interval: u64,
    /// The counters, eight at most, each with the SIMDs that it counts on.
    pub list: Vec<(TraceCounter, u32)>,
}

/// A counter that can be read in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceCounter {
    /// Waves that started.
    Waves,
    /// Quads in which the unit had waves.
    Busy,
    /// Instructions of a pipe.
    Instructions(Pipe),
    /// Quads in which vector memory instructions of both kinds were issued.
    Vmem,
    /// All instructions.
    All,
    /// Cycles of matrix instructions.
    MatrixCycles,
}

impl TraceCounter {
    /// The counter of a name; `None` where the timelines lack what it counts.
    pub fn find(name: &str) -> Option<Self> {
        Some(match name {
            "SQ_WAVES" => Self::Waves,
            "SQ_BUSY_CU_CYCLES" => Self::Busy,
            "SQ_INSTS" => Self::All,
            "SQ_INSTS_VALU" | "SQ_ACTIVE_INST_VALU" => Self::Instructions(Pipe::Valu),
            "SQ_INSTS_MFMA" => Self::Instructions(Pipe::Matrix),
            "SQ_INSTS_SALU" | "SQ_ACTIVE_INST_SCA" => Self::Instructions(Pipe::Scalar),
            "SQ_INSTS_LDS" | "SQ_ACTIVE_INST_LDS" => Self::Instructions(Pipe::Lds),
            "SQ_INSTS_FLAT" | "SQ_ACTIVE_INST_FLAT" => Self::Instructions(Pipe::Flat),
            "SQ_INSTS_VMEM" | "SQ_ACTIVE_INST_VMEM" => Self::Vmem,
            "SQ_ACTIVE_INST_MISC" | "SQ_INSTS_BRANCH" => Self::Instructions(Pipe::Misc),
            "SQ_VALU_MFMA_BUSY_CYCLES" => Self::MatrixCycles,
            _ => return None,
        })
    }
}

/// A code object as packets in the trace announce it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracedObject {
    /// Id of the code object.
    pub id: u64,
    /// Lowest device address.
    pub address: u64,
    /// Bytes in device memory.
    pub size: u64,
}

/// Registers of a dispatch as the command processor writes them.
#[derive(Debug, Clone, Copy, Default)]
pub struct TracedDispatch {
    /// Address of the first instruction.
    pub entry: u64,
    /// Address of the program, from which offsets of instructions count.
    pub base: u64,
    /// Address of the packet.
    pub packet: u64,
    /// Work-items of a workgroup in each dimension.
    pub workgroup: [u32; 3],
    /// `COMPUTE_PGM_RSRC1` to `3`.
    pub resources: [u32; 3],
    /// Pipe of the micro-engine.
    pub pipe: u32,
}

/// The trace of a shader engine while it grows.
#[derive(Debug)]
pub struct Trace {
    settings: TraceSettings,
    bytes: Vec<u8>,
    /// Quads of the last token.
    now: u64,
    full: bool,
}

/// Register to which packets with data for the reader are written.
const USER_DATA: u16 = 0xc342;
/// Words that begin a trace.
const MAGIC: [u32; 2] = [0x434f_5200, 524_801];
/// The micro-engine as register tokens have it; wave tokens have 0 for it.
const ENGINE: u64 = 1;
/// Quads from the registers of a dispatch to its first wave.
const LAUNCH: u64 = 8;

/// A token in the order of time.
enum Event<'t> {
    Start(&'t Timeline, &'t WaveTimeline),
    End(&'t Timeline, &'t WaveTimeline),
    /// Of a wave: 1 stalls, 2 issues an instruction, 3 has executed one in the sequencer.
    Issue(u8, u8, u8),
    /// Wave, SIMD, type, and the address at which the wave continues if that does not follow from the code.
    Instruction(u8, u8, u8, Option<u64>),
    Counters(u32, u8, [u64; 4]),
}

impl Event<'_> {
    /// Order at one time. A wave may start in a slot when the one before ends, and its first instruction comes later.
    fn rank(&self) -> (u8, u8) {
        match self {
            Self::Issue(simd, ..) => (0, *simd),
            Self::Instruction(..) => (1, 0),
            Self::End(..) => (2, 0),
            Self::Start(..) => (3, 0),
            Self::Counters(..) => (4, 0),
        }
    }
}

impl Trace {
    /// An empty trace; `clock` is the time of its start.
    pub fn new(settings: TraceSettings, clock: u64) -> Self {
        let mut trace = Self {
            bytes: Vec::new(),
            now: 0,
            full: false,
            settings,
        };
        let s = &trace.settings;
        let header = 0x11
            | u64::from(s.generation & 7) << 13
            | u64::from(s.simds & 15) << 16
            | u64::from(s.target & 31) << 20
            | u64::from(s.engine & 63) << 26;
        trace.bytes.extend_from_slice(&header.to_le_bytes());
        trace.token(1 << 13, 2);
        trace.token(1 | clock << 16, 8);
        for word in MAGIC {
            trace.user_data(word);
        }
        trace
    }

    /// Whether tokens were lost because the buffer was full.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// The bytes of the trace.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }

    /// Appends a token, unless the buffer is full: it ends with what had room.
    fn token(&mut self, value: u64, bytes: usize) {
        if self.full || self.bytes.len() + bytes > self.settings.capacity {
            self.full = true;
            return;
        }
        self.bytes.extend_from_slice(&value.to_le_bytes()[..bytes]);
    }

    /// Appends a token at a time. Its own time field has one bit; longer times have tokens of their own.
    fn at(&mut self, quad: u64, value: u64, bytes: usize) {
        let mut since = quad.saturating_sub(self.now);
        while since > 1 && !self.full {
            let part = (since - 1).min(255);
            self.token(part << 4, 2);
            since -= part;
        }
        self.token(value | since.min(1) << 4, bytes);
        self.now = self.now.max(quad);
    }

    fn user_data(&mut self, word: u32) {
        let token = 2 | ENGINE << 7 | u64::from(USER_DATA) << 16 | u64::from(word) << 32;
        self.token(token, 8);
    }

    /// Announces a code object: loaded before the trace began, while it runs, or unloaded.
    pub fn object(&mut self, object: &TracedObject, unloads: bool, from_start: bool) {
        let mut field = |kind: u32, data: u32| {
            self.user_data(4 | kind << 8);
            self.user_data(data);
        };
        field(2, object.address as u32);
        field(3, (object.address >> 32) as u32);
        field(1, object.size as u32);
        field(4, (object.size >> 32) as u32);
        if object.id >= 1 << 30 {
            field(5, object.id as u32);
            field(6, (object.id >> 32) as u32);
        }
        let id = (object.id & 0x3fff_ffff) as u32;
        field(0, u32::from(unloads) | u32::from(from_start) << 1 | id << 2);
    }

    fn compute_register(&mut self, pipe: u32, register: u64, data: u32) {
        let token = 15 | u64::from(pipe & 3) << 5 | ENGINE << 7 | register << 9;
        self.token(token | u64::from(data) << 16, 6);
    }

    /// Appends a dispatch: the timelines of the engine's compute units.
    pub fn dispatch(
        &mut self,
        dispatch: &TracedDispatch,
        timelines: &[Timeline],
        units_per_engine: u32,
    ) {
        let pipe = dispatch.pipe;
        let (program, packet) = (dispatch.entry >> 8, dispatch.packet);
        let [x, y, z] = dispatch.workgroup;
        let [first, second, third] = dispatch.resources;
        for (register, data) in [
            (0x07, x),
            (0x08, y),
            (0x09, z),
            (0x12, first),
            (0x13, second),
            (0x2d, third),
            (0x0e, packet as u32),
            (0x0f, (packet >> 32) as u32),
            (0x0c, program as u32),
            (0x0d, (program >> 32) as u32),
            (0x00, 1),
        ] {
            self.compute_register(pipe, register, data);
        }
        let own = |t: &&Timeline| t.unit as u32 / units_per_engine == self.settings.engine;
        let own: Vec<&Timeline> = timelines.iter().filter(own).collect();
        let mut events = Vec::new();
        for timeline in own {
            self.collect(
                timeline,
                timeline.unit as u32 % units_per_engine,
                dispatch,
                &mut events,
            );
        }
        events.sort_by_key(|(quad, event)| (*quad, event.rank()));
        let begin = self.now + LAUNCH;
        let mut events = events.into_iter().peekable();
        while let Some((quad, event)) = events.next() {
            if self.full {
                return;
            }
            let time = begin + quad;
            match event {
                Event::Start(timeline, wave) => {
                    let cu = timeline.unit as u32 % units_per_engine;
                    let lanes = wave.issued.first().map_or(64, |i| i.exec.count_ones());
                    let token = 3 | place(cu, wave) | u64::from(pipe & 3) << 16;
                    self.at(time, token | u64::from(lanes) << 22, 4);
                }
                Event::End(timeline, wave) => {
                    let cu = timeline.unit as u32 % units_per_engine;
                    self.at(time, 6 | place(cu, wave), 2);
                }
                Event::Issue(simd, slot, state) => {
                    let mut token = 13 | u64::from(simd) << 5 | u64::from(state) << (8 + 2 * slot);
                    // One token has all waves of a SIMD.
                    while let Some((next, Event::Issue(other, slot, state))) = events.peek()
                        && (*next, *other) == (quad, simd)
                    {
                        token |= u64::from(*state) << (8 + 2 * *slot);
                        events.next();
                    }
                    self.at(time, token, 4);
                }
                Event::Instruction(simd, slot, kind, target) => {
                    let whose = u64::from(slot) << 5 | u64::from(simd) << 9;
                    self.at(time, 10 | whose | u64::from(kind) << 11, 2);
                    if let Some(target) = target {
                        self.at(time, 11 | whose | target >> 2 << 16, 8);
                    }
                }
                Event::Counters(cu, bank, values) => {
                    let mut token = 14 | u64::from(cu & 15) << 6 | u64::from(bank) << 10;
                    for (n, value) in values.into_iter().enumerate() {
                        token |= value.min(0x1fff) << (12 + 13 * n);
                    }
                    self.at(time, token, 8);
                }
            }
        }
    }

    /// The tokens of a compute unit.
    fn collect<'t>(
        &self,
        timeline: &'t Timeline,
        cu: u32,
        dispatch: &TracedDispatch,
        events: &mut Vec<(u64, Event<'t>)>,
    ) {
        let target = cu == self.settings.target;
        // Of other units a part of the instructions may stand for all; and they do not start in step.
        let stretch = if timeline.end == 0 {
            1.0
        } else {
            // Not less than 1: a slot is free before the next wave starts in it.
            (timeline.busy / timeline.end as f64).max(1.0)
        };
        let apart = spread(timeline.unit as u64) % 8;
        let time = |quad: u64| {
            apart
                + if target {
                    quad
                } else {
                    (quad as f64 * stretch) as u64
                }
        };
        for wave in &timeline.waves {
            events.push((time(wave.start), Event::Start(timeline, wave)));
            events.push((time(wave.end), Event::End(timeline, wave)));
            if !target || self.settings.simds >> wave.simd & 1 == 0 {
                continue;
            }
            for (n, issued) in wave.issued.iter().enumerate() {
                let next = wave.issued.get(n + 1);
                let mut issue = |quad, state| {
                    events.push((time(quad), Event::Issue(wave.simd, wave.slot, state)));
                };
                if is_immediate(issued.kind) {
                    // The sequencer is done with it when the next comes to the head.
                    let waits = matches!(issued.kind, Kind::Barrier | Kind::Sleep(_));
                    let end = next
                        .filter(|_| waits)
                        .map_or(issued.issue, |next| next.head - 1);
                    issue(end, 3);
                    continue;
                }
                let stalls = if issued.reason == Reason::Fetch {
                    issued.ready
                } else {
                    issued.head
                };
                if stalls < issued.issue {
                    issue(stalls, 1);
                }
                issue(issued.issue, 2);
                let goes_on = next.filter(|_| issued.indirect);
                let goes_on = goes_on.map(|next| dispatch.base + u64::from(next.offset));
                events.push((
                    time(issued.issue),
                    Event::Instruction(wave.simd, wave.slot, token_type(issued), goes_on),
                ));
            }
        }
        if let Some(counters) = &self.settings.counters {
            count(timeline, cu, counters, &time, events);
        }
    }
}

/// The fields of a wave's place.
fn place(cu: u32, wave: &WaveTimeline) -> u64 {
    u64::from(cu & 15) << 6 | u64::from(wave.slot) << 10 | u64::from(wave.simd) << 14
}

/// Whether the sequencer executes an instruction itself. Cache controls have the tokens of the memory that they are sent to.
pub(super) fn is_immediate(kind: Kind) -> bool {
    match kind {
        Kind::Barrier | Kind::Wait(..) | Kind::Sleep(_) | Kind::End | Kind::Other => true,
        Kind::Valu(_)
        | Kind::Matrix(_)
        | Kind::Salu
        | Kind::Smem(_)
        | Kind::Vmem(_)
        | Kind::Lds
        | Kind::Gds
        | Kind::Branch
        | Kind::Message
        | Kind::Invalidate
        | Kind::WriteBack => false,
    }
}

/// Type of an instruction token.
pub(super) fn token_type(issued: &Issued) -> u8 {
    match issued.kind {
        // AMD's decoder expects the token of scalar arithmetic for the clock.
        Kind::Smem(_) if issued.clock => 1,
        Kind::Smem(_) => 0,
        Kind::Salu => 1,
        Kind::Vmem(vmem) => match (vmem.flat, vmem.operation) {
            (false, Operation::Load) => 2,
            (false, _) => 3,
            (true, Operation::Load) => 14,
            (true, _) => 4,
        },
        Kind::Valu(_) if issued.wide => 18,
        Kind::Valu(_) => 5,
        Kind::Lds => 6,
        Kind::Branch if issued.indirect => 7,
        Kind::Gds => 8,
        Kind::Branch if issued.taken => 12,
        Kind::Branch => 13,
        Kind::Matrix(_) => 28,
        Kind::Invalidate => 2,
        Kind::WriteBack => 3,
        Kind::Message
        | Kind::End
        | Kind::Barrier
        | Kind::Wait(..)
        | Kind::Sleep(_)
        | Kind::Other => 15,
    }
}

/// Readings of the counters of a compute unit: four in a token.
fn count(
    timeline: &Timeline,
    cu: u32,
    counters: &TraceCounters,
    time: &impl Fn(u64) -> u64,
    events: &mut Vec<(u64, Event<'_>)>,
) {
    let interval = counters.interval.max(1);
    let readings = (timeline.end / interval + 1) as usize;
    let mut values = vec![vec![0u64; counters.list.len()]; readings];
    let mut add = |quad: u64, counter: usize, value: u64| {
        if let Some(row) = values.get_mut((quad / interval) as usize) {
            row[counter] += value;
        }
    };
    for (n, &(counter, simds)) in counters.list.iter().enumerate() {
        for wave in timeline
            .waves
            .iter()
            .filter(|wave| simds >> wave.simd & 1 != 0)
        {
            if counter == TraceCounter::Waves {
                add(wave.start, n, 1);
            }
            for issued in &wave.issued {
                let value = match (counter, issued.kind) {
                    (TraceCounter::All, _) => 1,
                    (TraceCounter::Instructions(Pipe::Valu), _) => {
                        u64::from(matches!(issued.pipe, Pipe::Valu | Pipe::Matrix))
                    }
                    (TraceCounter::Instructions(pipe), _) => u64::from(issued.pipe == pipe),
                    (TraceCounter::Vmem, _) => {
                        u64::from(matches!(issued.pipe, Pipe::Vmem | Pipe::Flat))
                    }
                    (TraceCounter::MatrixCycles, Kind::Matrix(matrix)) => matrix.cycles.into(),
                    (TraceCounter::MatrixCycles | TraceCounter::Waves | TraceCounter::Busy, _) => 0,
                };
                if value != 0 {
                    add(issued.issue, n, value);
                }
            }
        }
        if counter == TraceCounter::Busy {
            for quad in (0..timeline.end).step_by(interval as usize) {
                let end = timeline.end.min(quad + interval);
                let here = |w: &WaveTimeline| w.start < end && w.end > quad;
                if timeline.waves.iter().any(here) {
                    add(quad, n, end - quad);
                }
            }
        }
    }
    for (reading, row) in values.iter().enumerate() {
        for (bank, four) in row.chunks(4).enumerate() {
            let values = std::array::from_fn(|n| four.get(n).copied().unwrap_or(0));
            // Units write one after the other.
            let quad = (reading as u64 + 1) * interval + u64::from(cu);
            events.push((time(quad), Event::Counters(cu, bank as u8, values)));
        }
    }
}
