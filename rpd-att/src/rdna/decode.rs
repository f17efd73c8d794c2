//! Decoder of streams of GFX10, GFX11 and GFX12.

use std::collections::HashMap;
use std::io::Read;

use super::batch::Batch;
use super::ops::{Op, Ops, ops};
use super::token::{RdnaKind, RdnaToken, TimeStamp, Tokens, bits};
use super::wave::RunningWave;
use crate::header::{Generation, Header};
use crate::output::Output;
use crate::pending::{KEEP, MAX_PENDING, Pending, SpareLists};
use crate::record::{Event, EventKind, Occupancy, OtherSimd, Pc, Realtime, ShaderData};
use crate::registers::{Registers, Write};
use crate::window::Window;

/// Number of slots that a token can name.
const SLOTS: usize = 32;

/// Range of the counts of WAVE_START that stand for saved and restored waves.
const CONTEXT_COUNTS: std::ops::Range<u64> = 66..90;
/// Counts of [`CONTEXT_COUNTS`], a bit each from the first on, that stand for a saved wave.
const SAVES: u32 = 0b00_0011_0011;
/// Counts of [`CONTEXT_COUNTS`], a bit each from the first on, that stand for a restored wave.
const RESTORES: u32 = 0b11_1100_1100;

struct Decoder<'a> {
    generation: Generation,
    version: u8,
    target: u8,
    simd: u8,
    ops: Box<Ops>,
    registers: Registers,
    output: Output<'a>,
    /// Waves that run, and waves that ended and may still get an address: one for each slot.
    waves: [Option<Box<RunningWave>>; SLOTS],
    spare: SpareLists,
    running: HashMap<u32, Pc>,
    saved: HashMap<u32, Pc>,
    /// The last reading of the clocks, which the next reading may change, with the offset of its token.
    last_clock: Option<(Realtime, u64)>,
}

/// Location of a starting wave, and the kind of its start.
#[derive(Debug, Clone, Copy)]
struct Start {
    cu: u8,
    simd: u8,
    slot: u8,
    me: u8,
    pipe: u8,
    count: u64,
    workgroup: Option<u8>,
}

fn cu(sa: u64, wgp: u64) -> u8 {
    (sa << 7 | wgp) as u8
}

fn key(cu: u8, simd: u8, slot: u8) -> u32 {
    u32::from(cu) << 8 | u32::from(simd) << 6 | u32::from(slot)
}

/// Decodes the stream with its header.
pub(crate) fn decode<R: Read>(
    window: &mut Window<R>,
    header: &Header,
    mut output: Output<'_>,
) -> crate::Diagnosis {
    output.gfx(header.generation.major());
    let mut decoder = Decoder {
        generation: header.generation,
        version: header.version,
        target: header.target,
        simd: header.simds,
        ops: ops(header),
        registers: Registers::new(header.version),
        output,
        waves: [const { None }; SLOTS],
        spare: SpareLists::default(),
        running: HashMap::new(),
        saved: HashMap::new(),
        last_clock: None,
    };
    let mut tokens = Tokens::new(window, header.generation);
    let mut batch = Batch::default();
    loop {
        let more = tokens.fill(&mut batch);
        // Tokens of GFX12 are in order. Earlier generations write WAVE_READY after instructions of the cycle that
        // follows.
        let count = match header.generation {
            Generation::Gfx12 => batch.tokens().len(),
            _ => batch.put_ready_first(more),
        };
        let ready = &batch.tokens()[..count];
        // Decides on the generation once for a batch: fields differ in many tokens.
        match header.generation {
            Generation::Gfx12 => decoder.handle_all::<true>(ready),
            _ => decoder.handle_all::<false>(ready),
        }
        batch.remove(count);
        decoder.limit_pending();
        if !more {
            break;
        }
    }
    let diagnosis = &mut decoder.output.diagnosis;
    diagnosis.tokens = tokens.count;
    diagnosis.truncated = tokens.truncated;
    diagnosis.invalid += tokens.unknown;
    // Unknown tokens are found when the stream is cut, invalid ones afterwards: the first of either counts.
    if let Some(first) = tokens.first_unknown {
        let known = diagnosis.first_invalid.get_or_insert(first);
        *known = first.min(*known);
    }
    decoder.finish()
}

impl Decoder<'_> {
    /// Applies `act` to the wave in a slot, if one runs there.
    #[inline(always)]
    fn wave(&mut self, slot: u64, act: impl FnOnce(&mut RunningWave)) {
        if let Some(wave) = &mut self.waves[slot as usize % SLOTS]
            && !wave.wave.complete
        {
            act(wave);
        }
    }

    /// Handles tokens of GFX12, or of an earlier generation.
    #[inline(never)]
    fn handle_all<const TWELVE: bool>(&mut self, tokens: &[RdnaToken]) {
        for token in tokens {
            self.handle::<TWELVE>(token);
        }
    }

    #[inline(always)]
    fn handle<const TWELVE: bool>(&mut self, token: &RdnaToken) {
        let RdnaToken {
            kind,
            word,
            time,
            offset,
        } = *token;
        let field = |low, count| bits(word, low, count);
        match kind {
            RdnaKind::Inst => {
                let (slot, op) = if TWELVE {
                    (field(7, 5), field(12, 8))
                } else {
                    (field(8, 5), field(13, 7))
                };
                match self.ops[op as usize] {
                    Op::Other(category, cycles) => self.output.other_simd(OtherSimd {
                        time,
                        cycles: cycles as u16,
                        wgp: self.target,
                        category,
                    }),
                    // Nearly all.
                    Op::Is(category, cycles) => {
                        self.wave(slot, |wave| wave.execute(category, cycles, time));
                    }
                    op => self.wave(slot, |wave| wave.op(op, time, !TWELVE)),
                }
            }
            RdnaKind::ValuInst => {
                self.wave(field(7, 5), |wave| {
                    wave.execute(crate::Category::Valu, 1, time)
                });
            }
            RdnaKind::ImmOne => self.wave(field(7, 5), |wave| wave.immediate(time)),
            RdnaKind::Immediate => self.each(field(8, 16), |wave| wave.immediate(time)),
            RdnaKind::WaveReady => self.each(field(8, 16), |wave| wave.ready(time)),
            RdnaKind::NewPc => {
                // The word of GFX12 begins after the first eight bits.
                let (slot, address) = if TWELVE {
                    (field(3, 5), field(8, 55))
                } else {
                    (field(11, 5), field(16, 46))
                };
                let pc = self.registers.pc(address << 2);
                // Also for a wave that ended: its last address may come after its end.
                if let Some(wave) = &mut self.waves[slot as usize % SLOTS] {
                    wave.pc(pc, time);
                }
            }
            RdnaKind::WaveStart | RdnaKind::WaveStartExt => self.start(word, time),
            RdnaKind::WaveEnd => {
                let (wgp, slot) = (field(11, if TWELVE { 4 } else { 3 }), field(15, 5));
                self.end(cu(field(8, 1), wgp), field(9, 2) as u8, slot as u8, time);
            }
            RdnaKind::Misc => self.misc(word, time, offset),
            RdnaKind::Event => self.event(word, time, offset),
            RdnaKind::Register => self.register(word, time, offset),
            RdnaKind::RegisterInit => {
                if field(18, 2) == 2 && field(20, 1) == 1 {
                    let (me, pipe) = (field(16, 2) as u8, field(14, 2) as u8);
                    let dispatch = self.registers.dispatch(time, me, pipe, offset);
                    self.output.dispatch(dispatch);
                }
            }
            RdnaKind::ShaderData => self.shader_data(word, time, false),
            RdnaKind::ShaderDataShort => self.shader_data(word, time, true),
            RdnaKind::Timestamp => match TimeStamp::parse(self.generation, word) {
                TimeStamp::Lost(_) => self.output.lost(time, offset),
                TimeStamp::Realtime(clock) => self.clock(time, clock, offset),
                TimeStamp::Delta(_) | TimeStamp::Other => {}
            },
            RdnaKind::WaveAlloc
            | RdnaKind::UtilCounter
            | RdnaKind::Time
            | RdnaKind::Nop
            | RdnaKind::EventSync
            | RdnaKind::Header
            | RdnaKind::ExecPopcount1
            | RdnaKind::ExecPopcount3
            | RdnaKind::VmemExec
            | RdnaKind::AluExec => {}
        }
    }

    fn each(&mut self, mask: u64, act: impl Fn(&mut RunningWave)) {
        let mut mask = mask;
        while mask != 0 {
            let slot = u64::from(mask.trailing_zeros());
            mask &= mask - 1;
            self.wave(slot, &act);
        }
    }

    fn read_start(&self, word: u64) -> Start {
        let field = |low, count| bits(word, low, count);
        if self.generation == Generation::Gfx12 {
            let extended = field(4, 1) == 1 && field(32, 1) == 0;
            Start {
                cu: cu(field(7, 1), field(10, 4)),
                simd: field(8, 2) as u8,
                slot: field(15, 5) as u8,
                pipe: field(20, 2) as u8,
                me: field(22, 1) as u8,
                count: field(25, 7),
                workgroup: extended.then(|| field(33, 5) as u8),
            }
        } else {
            Start {
                cu: cu(field(7, 1), field(10, 3)),
                simd: field(8, 2) as u8,
                slot: field(13, 5) as u8,
                pipe: field(21, 2) as u8,
                me: field(23, 1) as u8,
                count: field(25, 7),
                workgroup: None,
            }
        }
    }

    fn start(&mut self, word: u64, time: i64) {
        let start = self.read_start(word);
        let target = start.cu == self.target && start.simd == self.simd;
        let place = key(start.cu, start.simd, start.slot);
        let at = usize::from(start.slot) % SLOTS;
        // No number of waves, but a marker: the hardware saves or restores the wave in this slot.
        if CONTEXT_COUNTS.contains(&start.count) {
            let bit = 1u32 << (start.count - CONTEXT_COUNTS.start);
            if SAVES & bit != 0 {
                if target {
                    self.wave(start.slot.into(), |wave| wave.save(time));
                }
                // Kept for the restore, which has no entry point.
                if let Some(pc) = self.running.remove(&place) {
                    self.saved.insert(place, pc);
                    self.occupancy(start, pc, time, false);
                }
            } else if RESTORES & bit != 0 {
                if target {
                    // The wave began before the recording did, or its start was lost.
                    if self.waves[at]
                        .as_ref()
                        .is_none_or(|wave| wave.wave.complete)
                    {
                        self.retire(at);
                        self.begin(start, Pc::default(), time);
                    }
                    self.wave(start.slot.into(), |wave| wave.restore(time));
                }
                let pc = self.saved.remove(&place).unwrap_or_default();
                self.running.insert(place, pc);
                self.occupancy(start, pc, time, true);
            }
            return;
        }
        let pc = self.registers.entry(start.me, start.pipe);
        if self.running.insert(place, pc).is_some() {
            // The end of the wave that was in the slot was lost.
            self.occupancy(start, Pc::default(), time, false);
        }
        self.occupancy(start, pc, time, true);
        if target {
            self.retire(at);
            self.begin(start, pc, time);
        }
    }

    fn begin(&mut self, start: Start, pc: Pc, time: i64) {
        let Start { cu, simd, slot, .. } = start;
        let mut wave = Pending::new(cu, simd, slot, pc, time, &mut self.spare);
        wave.me = start.me;
        wave.pipe = start.pipe;
        wave.workgroup = start.workgroup.unwrap_or(0);
        self.waves[usize::from(start.slot) % SLOTS] = Some(Box::new(RunningWave::new(wave)));
    }

    /// Reports the wave of a slot. This is not done when the wave ends, because its last address can come after the
    /// end.
    fn retire(&mut self, at: usize) {
        if let Some(mut wave) = self.waves[at].take() {
            let count = wave.wave.instructions.len();
            self.output
                .wave(&mut wave.wave, count, true, &mut self.registers);
            self.spare.keep(wave.wave);
        }
    }

    fn end(&mut self, cu: u8, simd: u8, slot: u8, time: i64) {
        if cu == self.target && simd == self.simd {
            self.wave(slot.into(), |wave| wave.end(time));
        }
        let start = Start {
            cu,
            simd,
            slot,
            me: 0,
            pipe: 0,
            count: 0,
            workgroup: None,
        };
        let pc = match self.running.remove(&key(cu, simd, slot)) {
            Some(pc) => self.registers.late(pc),
            None => {
                self.output.diagnosis.ends_without_start += 1;
                self.occupancy(start, Pc::default(), 0, true);
                Pc::default()
            }
        };
        self.occupancy(start, pc, time, false);
    }

    fn occupancy(&mut self, at: Start, pc: Pc, time: i64, start: bool) {
        let record = Occupancy {
            pc,
            time,
            cu: at.cu,
            simd: at.simd,
            slot: at.slot,
            start,
            me: at.me,
            pipe: at.pipe,
            extended: at.workgroup.is_some(),
            workgroup: at.workgroup.unwrap_or(0),
        };
        self.output.occupancy(record, &mut self.registers);
    }

    fn misc(&mut self, word: u64, time: i64, offset: u64) {
        let flag = |at| bits(word, at, 1) == 1;
        if flag(16) {
            if self.version <= 2 {
                self.output.lost(time, offset);
            } else {
                self.output.plain_event(EventKind::SpmSample, time, offset);
            }
        }
        if flag(19) {
            self.output
                .plain_event(EventKind::SaveContext, time, offset);
            for wave in self.waves.iter_mut().flatten() {
                wave.request_save();
            }
        }
        for (at, kind) in [
            (17, EventKind::CacheRinse),
            (20, EventKind::StallBegin),
            (21, EventKind::StallEnd),
            (22, EventKind::ThrottleBegin),
            (23, EventKind::ThrottleEnd),
        ] {
            if flag(at) {
                self.output.plain_event(kind, time, offset);
            }
        }
    }

    fn event(&mut self, word: u64, time: i64, offset: u64) {
        let kind = match bits(word, 18, 6) {
            0x07 => EventKind::CsPartialFlush,
            0x04 | 0x06 | 0x14 | 0x16 => EventKind::CacheFlush,
            0x28 => EventKind::BottomOfPipe,
            0x36 => EventKind::Flush,
            _ => return,
        };
        self.output.event(Event {
            time,
            kind,
            me: bits(word, 16, 2) as u8,
            pipe: bits(word, 14, 2) as u8,
            per_pipe: true,
            bottom: bits(word, 11, 1) == 1,
            payload: 0,
            offset,
        });
    }

    fn register(&mut self, word: u64, time: i64, offset: u64) {
        let field = |low, count| bits(word, low, count);
        let write = Write {
            pipe: field(7, 2) as u8,
            me: field(9, 2) as u8,
            address: field(16, 16) as u32,
            data: (word >> 32) as u32,
        };
        let compute = field(15, 1) == 1;
        if compute {
            self.registers.write_compute(write);
        }
        // GFX10 marks writes of the host's packets as compute writes.
        if !compute || self.version <= 2 {
            let written = self.registers.write_userdata(write);
            if let Some((kind, payload)) = written.event() {
                self.output.event(Event {
                    time,
                    kind,
                    me: write.me,
                    pipe: write.pipe,
                    per_pipe: false,
                    bottom: false,
                    payload,
                    offset,
                });
            }
        }
    }

    fn shader_data(&mut self, word: u64, time: i64, short: bool) {
        let field = |low, count| bits(word, low, count);
        let data = if short { 8 } else { 32 };
        let record = if self.generation == Generation::Gfx12 {
            ShaderData {
                time,
                value: field(22, data),
                cu: cu(field(10, 1), field(13, 4)),
                simd: field(11, 2) as u8,
                slot: field(17, 5) as u8,
                immediate: short,
                privileged: field(22 + data, 2) != 0,
            }
        } else {
            // Written without active lanes.
            if field(14, 1) == 1 && self.version > 2 {
                return;
            }
            ShaderData {
                time,
                value: field(20, data),
                cu: cu(field(8, 1), field(11, 3)),
                simd: field(9, 2) as u8,
                slot: field(15, 5) as u8,
                immediate: short,
                privileged: false,
            }
        };
        self.output.shader_data(record);
    }

    fn clock(&mut self, time: i64, clock: u64, offset: u64) {
        if let Some((last, at)) = &mut self.last_clock {
            // Both clocks only go on: readings that are too close are one, in their middle.
            if last.shader_clock >= time || last.realtime_clock >= clock {
                last.shader_clock = last.shader_clock.midpoint(time);
                last.realtime_clock = last.realtime_clock.midpoint(clock);
                return;
            }
            self.output.realtime(*last, *at);
        }
        let clocks = Realtime {
            shader_clock: time,
            realtime_clock: clock,
        };
        self.last_clock = Some((clocks, offset));
    }

    /// Reports the longest wave, or a part of it, when there are too many instructions in memory.
    fn limit_pending(&mut self) {
        let pending = |wave: &RunningWave| wave.wave.instructions.len();
        let waves = self.waves.iter_mut().flatten();
        if waves.map(|wave| pending(wave)).sum::<usize>() <= MAX_PENDING {
            return;
        }
        let waves = self.waves.iter_mut().flatten();
        let Some(wave) = waves.max_by_key(|wave| pending(wave)) else {
            return;
        };
        if wave.wave.complete {
            let slot = usize::from(wave.wave.slot) % SLOTS;
            self.retire(slot);
            return;
        }
        let settled = wave.settled();
        if settled < KEEP {
            return;
        }
        // A state that goes on has a span in each part.
        if let Some(last) = wave.wave.instructions.get(settled) {
            wave.wave.enter(wave.wave.state, last.time);
        }
        let count = self
            .output
            .wave(&mut wave.wave, settled, false, &mut self.registers);
        wave.wave.drop_front(count);
    }

    fn finish(mut self) -> crate::Diagnosis {
        for at in 0..SLOTS {
            self.retire(at);
        }
        if let Some((last, at)) = self.last_clock.take() {
            self.output.realtime(last, at);
        }
        self.output.finish(&mut self.registers)
    }
}
