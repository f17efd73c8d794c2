//! Generates thread traces: the token stream that the sequencers of a GFX9 shader engine write, from the timelines of
//! its compute units.
//!
//! Tokens are little-endian. Their low four bits are the type. They contain the time since the token before, in
//! quads. The start and end of waves of all compute units are in the trace, and for the target unit every instruction
//! on the selected SIMDs.

use super::record::spread;
use super::timeline::{Issued, Pipe, Reason, Timeline, WaveTimeline};
use crate::isa::{Kind, Operation};

/// Settings of the trace of a shader engine.
#[derive(Debug, Clone)]
pub struct TraceSettings {
    /// Number of the shader engine.
    pub engine: u32,
    /// Number of the compute unit whose instructions are traced.
    pub target: u32,
    /// SIMDs of the target compute unit that are traced, one bit for each.
    pub simds: u32,
    /// Size of the buffer in bytes.
    pub capacity: usize,
    /// Generation of the token format: 4 for MI200, 5 for MI300, 6 for MI350.
    pub generation: u32,
    /// Counters in the trace, if any.
    pub counters: Option<TraceCounters>,
}

/// Counters that are read at intervals during a trace.
#[derive(Debug, Clone)]
pub struct TraceCounters {
    /// Number of quads between two readings.
    pub interval: u64,
    /// The counters, at most eight, each with a mask of the SIMDs that it counts on.
    pub list: Vec<(TraceCounter, u32)>,
}

/// An event that a trace can count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceCounter {
    /// Start of a wave.
    Waves,
    /// Quad in which the compute unit had waves.
    Busy,
    /// Instruction of a pipe.
    Instructions(Pipe),
    /// Quad in which a vector memory instruction was issued, flat or not.
    Vmem,
    /// Instruction of any pipe.
    All,
    /// Cycle in which a matrix instruction was executed.
    MatrixCycles,
}

impl TraceCounter {
    /// The event with this name; `None` for events that timelines do not contain.
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

/// A code object, as packets in the trace describe it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracedObject {
    /// Id of the code object.
    pub id: u64,
    /// Lowest address in device memory.
    pub address: u64,
    /// Size in device memory, in bytes.
    pub size: u64,
}

/// Register values that the command processor writes to start a dispatch.
#[derive(Debug, Clone, Copy, Default)]
pub struct TracedDispatch {
    /// Address of the first instruction.
    pub entry: u64,
    /// Address from which the offsets of instructions count.
    pub base: u64,
    /// Address of the dispatch packet.
    pub packet: u64,
    /// Work-items of a workgroup: x, y, z.
    pub workgroup: [u32; 3],
    /// Values of `COMPUTE_PGM_RSRC1` to `3`.
    pub resources: [u32; 3],
    /// Number of the pipe of the micro-engine.
    pub pipe: u32,
}

/// The trace of a shader engine, to which dispatches are appended.
#[derive(Debug)]
pub struct Trace {
    settings: TraceSettings,
    bytes: Vec<u8>,
    /// Time of the last token in quads.
    now: u64,
    full: bool,
}

/// Number of the register to which packets for the reader of the trace are written.
const USER_DATA: u16 = 0xc342;
/// Words at the start of a trace.
const MAGIC: [u32; 2] = [0x434f_5200, 524_801];
/// Number of the micro-engine in register tokens. Wave tokens have 0.
const ENGINE: u64 = 1;
/// Number of quads from the register writes of a dispatch to its first wave.
const LAUNCH: u64 = 8;

/// The event that a token describes.
enum Event<'t> {
    Start(&'t Timeline, &'t WaveTimeline),
    End(&'t Timeline, &'t WaveTimeline),
    /// SIMD, wave slot and state of a wave: 1 stalled, 2 issued an instruction, 3 executed an instruction in the
    /// sequencer.
    Issue(u8, u8, u8),
    /// Wave slot, SIMD, type of instruction, and the address at which the wave continues where that does not follow
    /// from the code.
    Instruction(u8, u8, u8, Option<u64>),
    Counters(u32, u8, [u64; 4]),
}

impl Event<'_> {
    /// Order of events with the same time. A wave may start in a slot at the time at which the one before ends; its
    /// first instruction comes after both.
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
    /// An empty trace. `clock` is the time at which it starts.
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

    /// The bytes of the buffer.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }

    /// Appends a token, unless the buffer is full. The trace ends with the last token that fits.
    fn token(&mut self, value: u64, bytes: usize) {
        // A token that is cut off would make the reader misread the rest.
        if self.full || self.bytes.len() + bytes > self.settings.capacity {
            self.full = true;
            return;
        }
        self.bytes.extend_from_slice(&value.to_le_bytes()[..bytes]);
    }

    /// Appends a token with a time. The token's own time field has one bit; longer distances are written as tokens of
    /// their own before it.
    fn at(&mut self, quad: u64, value: u64, bytes: usize) {
        let mut since = quad.saturating_sub(self.now);
        // The field of a time token has eight bits.
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

    /// Appends a packet about a code object: it was loaded before the trace began (`from_start`) or during the trace,
    /// or was unloaded (`unloads`).
    pub fn object(&mut self, object: &TracedObject, unloads: bool, from_start: bool) {
        let mut field = |kind: u32, data: u32| {
            self.user_data(4 | kind << 8);
            self.user_data(data);
        };
        field(2, object.address as u32);
        field(3, (object.address >> 32) as u32);
        field(1, object.size as u32);
        field(4, (object.size >> 32) as u32);
        // Readers that know only 30 bits of an id find it in the last field; the others come before.
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

    /// Appends a dispatch, given as the timelines of the engine's compute units.
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
        // In the order in which the command processor writes them: the initiator (register 0) is last and starts the
        // dispatch.
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
        // A trace has the units of one shader engine.
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
        // The tokens of a stream have no times going back.
        events.sort_by_key(|(quad, event)| (*quad, event.rank()));
        // Register writes come before the first wave, as on hardware.
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
                    // Waves of a SIMD with the same time share a token.
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
                    // The address where a wave goes on cannot be found in the code after an indirect branch.
                    if let Some(target) = target {
                        self.at(time, 11 | whose | target >> 2 << 16, 8);
                    }
                }
                Event::Counters(cu, bank, values) => {
                    let mut token = 14 | u64::from(cu & 15) << 6 | u64::from(bank) << 10;
                    // Counters of the hardware stop at their greatest value.
                    for (n, value) in values.into_iter().enumerate() {
                        token |= value.min(0x1fff) << (12 + 13 * n);
                    }
                    self.at(time, token, 8);
                }
            }
        }
    }

    /// Collects the events of a compute unit.
    fn collect<'t>(
        &self,
        timeline: &'t Timeline,
        cu: u32,
        dispatch: &TracedDispatch,
        events: &mut Vec<(u64, Event<'t>)>,
    ) {
        let target = cu == self.settings.target;
        // For units other than the target, the recorded instructions may be a part of all; and units do not start at
        // the same time.
        let stretch = if timeline.end == 0 {
            1.0
        } else {
            // Not less than 1, so that a slot is free before the next wave starts in it.
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
                    // The sequencer has completed the instruction when the next one is at the head.
                    let waits = matches!(issued.kind, Kind::Barrier | Kind::Sleep(_));
                    let end = next
                        .filter(|_| waits)
                        .map_or(issued.issue, |next| next.head - 1);
                    issue(end, 3);
                    continue;
                }
                // A wave without a fetched instruction has nothing that could stall.
                let stalls = if issued.reason == Reason::Fetch {
                    issued.ready
                } else {
                    issued.head
                };
                if stalls < issued.issue {
                    issue(stalls, 1);
                }
                // The instruction after an indirect branch.
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

/// The fields of a token with the compute unit, SIMD and slot of a wave.
fn place(cu: u32, wave: &WaveTimeline) -> u64 {
    u64::from(cu & 15) << 6 | u64::from(wave.slot) << 10 | u64::from(wave.simd) << 14
}

/// Whether the sequencer executes an instruction itself. Cache control is not among these: it has the tokens of the
/// memory that it is sent to.
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

/// Type of the token of an instruction.
pub(super) fn token_type(issued: &Issued) -> u8 {
    match issued.kind {
        // AMD's decoder expects the type of scalar arithmetic for clock reads.
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

/// Appends the readings of the counters of a compute unit. A token has four values.
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
    // Counters are not instructions: those of each are added up over all waves of the selected SIMDs.
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
                    // Matrix instructions are issued through the port of vector arithmetic, and counted with it.
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
        // Busy quads are split at the readings, because one wave may last over several.
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
            // Compute units write their readings one after the other.
            let quad = (reading as u64 + 1) * interval + u64::from(cu);
            events.push((time(quad), Event::Counters(cu, bank as u8, values)));
        }
    }
}
