//! Decoder of streams of GFX9.

use std::collections::HashMap;
use std::io::Read;

use super::token::{Gfx9Token, Misc, Place, SLOTS, delta, token_length};
use super::wave::RunningWave;
use crate::header::Header;
use crate::output::Output;
use crate::pending::{KEEP, MAX_PENDING, Pending, SpareLists};
use crate::record::{Event, EventKind, Occupancy, Pc, PerfEvent, ShaderData};
use crate::registers::{CS_PARTIAL_FLUSH, DISPATCH_INITIATOR, NOWHERE, Registers, Write};
use crate::window::Window;

/// Largest distance in bytes from a clock reset to the time stamp that belongs to it.
const LOOK_AHEAD: usize = 1 << 20;

/// Phase of the issue logic at the beginning of a stream, which holds until overlapping instructions show another
/// phase.
const START_PHASE: i64 = 15;

/// A wave start with a greater count is the save or restore of a wave's context.
const CONTEXT_COUNT: u8 = 64;

/// Counter samples of one compute unit and bank.
#[derive(Debug, Clone, Copy, Default)]
struct Sampled {
    last: i64,
}

/// Shader clock of a stream, put together from the cycles in its tokens.
#[derive(Debug, Default)]
struct Clock {
    /// Cycles since the begin of the stream.
    time: i64,
    /// Origin of time stamps.
    base: Option<i64>,
}

impl Clock {
    /// Adds the time that passes before a token.
    #[inline]
    fn pass(&mut self, word: u64) {
        self.time = self.time.saturating_add(delta(word));
    }

    /// Handles a reset of the clock, whose token has `length` bytes: the clock jumps to the next time stamp, never
    /// back.
    fn reset<R: Read>(&mut self, window: &mut Window<R>, length: usize) {
        let Some(stamp) = next_timestamp(window, length) else {
            return;
        };
        let stamp = stamp as i64;
        let base = *self.base.get_or_insert(stamp - self.time + 4);
        if stamp > base {
            self.time = self.time.max((stamp - base) & !3);
        }
    }
}

/// Passes each token with its time and its offset to `visit`, for tools that show streams.
pub(crate) fn tokens<R: Read>(window: &mut Window<R>, visit: &mut dyn FnMut(i64, u64, Gfx9Token)) {
    let mut clock = Clock::default();
    loop {
        window.has(8);
        let word = window.word(0);
        let length = token_length(word as u8);
        if window.available() < length {
            return;
        }
        clock.pass(word);
        let token = Gfx9Token::parse(word);
        if token == Gfx9Token::Misc(Misc::TimeReset) {
            clock.reset(window, length);
        }
        visit(clock.time, window.offset(), token);
        window.advance(length);
    }
}

struct Decoder<'a> {
    target: u8,
    /// SIMDs of which instructions are traced, one bit for each.
    simds: u8,
    clock: Clock,
    start_phase: i64,
    registers: Registers,
    output: Output<'a>,
    waves: [Option<Box<RunningWave>>; 4 * SLOTS],
    /// Number of instructions in all of `waves`.
    pending: usize,
    spare: SpareLists,
    /// Entry points of all running waves, by place.
    running: HashMap<u32, Pc>,
    samples: [[Sampled; 4]; 16],
}

/// Decodes the stream after its header.
pub(crate) fn decode<R: Read>(
    window: &mut Window<R>,
    header: &Header,
    mut output: Output<'_>,
) -> crate::Diagnosis {
    output.gfx(header.generation.major());
    let mut decoder = Decoder {
        target: header.target,
        simds: header.simds,
        clock: Clock::default(),
        start_phase: START_PHASE,
        registers: Registers::new(0),
        output,
        waves: [const { None }; 4 * SLOTS],
        pending: 0,
        spare: SpareLists::default(),
        running: HashMap::new(),
        samples: Default::default(),
    };
    let mut tokens = 0;
    loop {
        // The last token may be shorter than a word: only the end of the data ends the loop.
        if !window.has(8) && window.available() == 0 {
            break;
        }
        let word = window.word(0);
        let length = token_length(word as u8);
        if window.available() < length {
            decoder.output.diagnosis.truncated = Some(window.offset());
            window.advance(length);
            break;
        }
        tokens += 1;
        decoder.clock.pass(word);
        decoder.token(word, length, window);
        window.advance(length);
    }
    decoder.output.diagnosis.tokens = tokens;
    decoder.finish()
}

fn place_key(place: Place) -> u32 {
    u32::from(place.sh) << 16
        | u32::from(place.cu) << 8
        | u32::from(place.simd) << 4
        | u32::from(place.slot)
}

fn index(simd: u8, slot: u8) -> Option<usize> {
    (usize::from(slot) < SLOTS).then(|| usize::from(simd & 3) * SLOTS + usize::from(slot))
}

impl Decoder<'_> {
    /// Whether instructions of a SIMD of the target are traced.
    fn is_selected(&self, simd: u8) -> bool {
        self.simds >> (simd & 3) & 1 != 0
    }

    /// Whether instructions of a wave are traced.
    fn is_traced(&self, place: Place) -> bool {
        place.cu == self.target && place.sh == 0 && self.is_selected(place.simd)
    }

    #[inline]
    fn token<R: Read>(&mut self, word: u64, length: usize, window: &mut Window<R>) {
        let time = self.clock.time;
        match Gfx9Token::parse(word) {
            Gfx9Token::Issue { simd, states } => {
                let mut states = states;
                let mut slot = 0;
                while states != 0 {
                    // Two bits for each slot, most of them 0: goes from one slot with a state to the next.
                    let zeros = states.trailing_zeros() / 2;
                    slot += zeros as usize;
                    states >>= 2 * zeros;
                    let at = usize::from(simd) * SLOTS + slot;
                    if let Some(wave) = &mut self.waves[at] {
                        let before = wave.wave.instructions.len();
                        wave.issue(states & 3, time);
                        self.pending += wave.wave.instructions.len() - before;
                    }
                    states >>= 2;
                    slot += 1;
                }
                // A wave that runs for long would keep its instructions in memory until its end.
                if self.pending > MAX_PENDING {
                    self.report_part();
                }
            }
            Gfx9Token::Inst { slot, simd, kind } => {
                let Some(at) = index(simd, slot).filter(|_| self.is_selected(simd)) else {
                    self.output.diagnosis.invalid_token(window.offset());
                    return;
                };
                let (target, spare) = (self.target, &mut self.spare);
                // The start of this wave was lost.
                let wave = self.waves[at].get_or_insert_with(|| {
                    let wave = Pending::new(target, simd, slot, Pc::default(), time, spare);
                    Box::new(RunningWave::new(wave))
                });
                // A completion may remove instructions: one that was issued again, or none at all.
                let before = wave.wave.instructions.len();
                wave.complete(kind, time, &mut self.start_phase);
                self.pending -= before - wave.wave.instructions.len();
            }
            Gfx9Token::Misc(kind) => self.misc(kind, length, window),
            Gfx9Token::Timestamp(_) | Gfx9Token::Event | Gfx9Token::WaveAlloc(_) => {}
            Gfx9Token::WaveStart {
                place,
                me,
                pipe,
                count,
            } => {
                if usize::from(place.slot) >= SLOTS {
                    self.output.diagnosis.invalid_token(window.offset());
                    return;
                }
                self.start(place, me & 1, pipe, count);
            }
            Gfx9Token::WaveEnd(place) => {
                if usize::from(place.slot) >= SLOTS {
                    self.output.diagnosis.invalid_token(window.offset());
                    return;
                }
                self.end(place);
            }
            Gfx9Token::InstPc {
                slot,
                simd,
                address,
            } => match index(simd, slot) {
                Some(at) => {
                    if let Some(wave) = &mut self.waves[at] {
                        wave.pc(self.registers.pc(address));
                    }
                }
                None => self.output.diagnosis.invalid_token(window.offset()),
            },
            Gfx9Token::Register { dropped: true, .. } => {}
            Gfx9Token::Register {
                me,
                pipe,
                address,
                data,
                ..
            } => {
                let address = u32::from(address);
                // The host writes its readings of the clocks into a register of their own.
                if Registers::is_clock(address) {
                    if let Some(clocks) = self.registers.write_clock(time, data) {
                        self.output.realtime(clocks, window.offset());
                    }
                    return;
                }
                let me = engine(me);
                let written = self.registers.write_userdata(Write {
                    me,
                    pipe,
                    address,
                    data,
                });
                if let Some((kind, payload)) = written.event() {
                    self.output.event(Event {
                        time,
                        kind,
                        me,
                        pipe,
                        per_pipe: true,
                        bottom: false,
                        payload,
                        offset: window.offset(),
                    });
                }
            }
            Gfx9Token::Compute {
                me,
                pipe,
                address,
                data,
            } => self.compute(engine(me), pipe, u32::from(address), data, window.offset()),
            Gfx9Token::ShaderData { place, data } => {
                if usize::from(place.slot) >= SLOTS {
                    self.output.diagnosis.invalid_token(window.offset());
                    return;
                }
                self.output.shader_data(ShaderData {
                    time,
                    value: u64::from(data),
                    cu: place.cu,
                    simd: place.simd,
                    slot: place.slot,
                    immediate: false,
                    privileged: false,
                });
            }
            Gfx9Token::Perf {
                sh: 0,
                cu,
                bank,
                values,
            } => self.sample(cu, bank, values),
            // Samples of the second array would look like those of the first, which has the target.
            Gfx9Token::Perf { .. } => {}
        }
    }

    fn misc<R: Read>(&mut self, kind: Misc, length: usize, window: &mut Window<R>) {
        let (time, offset) = (self.clock.time, window.offset());
        match kind {
            Misc::TimeReset => self.clock.reset(window, length),
            Misc::PacketLost => self.output.lost(time, offset),
            Misc::SaveContext => {
                self.output
                    .plain_event(EventKind::SaveContext, time, offset);
                // The tokens of the handler that saves the waves are not the program's.
                for wave in self.waves.iter_mut().flatten() {
                    wave.request_save();
                }
            }
            Misc::StallBegin => self.output.plain_event(EventKind::StallBegin, time, offset),
            Misc::StallEnd => self.output.plain_event(EventKind::StallEnd, time, offset),
            Misc::Time | Misc::SurfSync | Misc::ShootDown => {}
        }
    }

    fn compute(&mut self, me: u8, pipe: u8, address: u32, data: u32, offset: u64) {
        self.registers.write_compute(Write {
            me,
            pipe,
            address,
            data,
        });
        if address == DISPATCH_INITIATOR && data & 1 == 1 {
            let dispatch = self.registers.dispatch(self.clock.time, me, pipe, offset);
            self.output.dispatch(dispatch);
        } else if address == NOWHERE && data == CS_PARTIAL_FLUSH {
            self.output.event(Event {
                time: self.clock.time,
                kind: EventKind::CsPartialFlush,
                me,
                pipe,
                per_pipe: false,
                bottom: false,
                payload: 0,
                offset,
            });
        }
    }

    fn start(&mut self, place: Place, me: u8, pipe: u8, count: u8) {
        let time = self.clock.time;
        let pc = self.registers.entry(me, pipe);
        if self.is_traced(place) {
            let at = usize::from(place.simd) * SLOTS + usize::from(place.slot);
            if count > CONTEXT_COUNT {
                if let Some(wave) = &mut self.waves[at] {
                    let before = wave.wave.instructions.len();
                    wave.switch_context(time);
                    self.pending += wave.wave.instructions.len() - before;
                }
                return;
            }
            if self.waves[at].is_none() {
                let Place { cu, simd, slot, .. } = place;
                let mut wave = Pending::new(cu, simd, slot, pc, time, &mut self.spare);
                wave.me = me;
                wave.pipe = pipe;
                self.waves[at] = Some(Box::new(RunningWave::new(wave)));
            }
        }
        if self.running.insert(place_key(place), pc).is_none() {
            self.occupancy(place, pc, time, true, me, pipe);
        }
    }

    fn end(&mut self, place: Place) {
        let time = self.clock.time;
        if self.is_traced(place) {
            let at = usize::from(place.simd) * SLOTS + usize::from(place.slot);
            if self.waves[at].as_ref().is_some_and(|wave| wave.in_trap()) {
                return;
            }
            // Without a start, and without an instruction, nothing is known of it but that.
            let Some(mut wave) = self.waves[at].take() else {
                self.output.diagnosis.ends_without_start += 1;
                return;
            };
            self.pending -= wave.wave.instructions.len();
            wave.end(time);
            let count = wave.wave.instructions.len();
            self.output
                .wave(&mut wave.wave, count, true, &mut self.registers);
            self.spare.keep(wave.wave);
        }
        match self.running.remove(&place_key(place)) {
            Some(pc) => {
                let pc = self.registers.late(pc);
                self.occupancy(place, pc, time, false, 0, 0);
            }
            // With lost tokens the start of this wave is unknown; otherwise it ran when the trace began.
            None if self.output.diagnosis.lost > 0 => {}
            // Where it ran before the trace is not counted.
            None => {
                self.output.diagnosis.ends_without_start += 1;
                self.occupancy(place, Pc::default(), 0, true, 0, 0);
                self.occupancy(place, Pc::default(), 0, false, 0, 0);
            }
        }
    }

    fn occupancy(&mut self, place: Place, pc: Pc, time: i64, start: bool, me: u8, pipe: u8) {
        let record = Occupancy {
            pc,
            time,
            cu: place.cu,
            simd: place.simd,
            slot: place.slot,
            start,
            me,
            pipe,
            extended: true,
            workgroup: 0,
        };
        self.output.occupancy(record, &mut self.registers);
    }

    fn sample(&mut self, cu: u8, bank: u8, values: [u16; 4]) {
        // Counters are sampled one compute unit after the other.
        let time = self.clock.time - 4 * i64::from(cu);
        let sampled = &mut self.samples[usize::from(cu & 15)][usize::from(bank & 3)];
        let last = std::mem::replace(&mut sampled.last, time);
        let interval = self.registers.counter_interval;
        if interval > 0 && last > 0 && time > last + interval {
            // Samples without a count are not in the stream.
            self.output.perf(PerfEvent {
                time: last + interval,
                values: [0; 4],
                cu,
                bank,
            });
        }
        self.output.perf(PerfEvent {
            time,
            values,
            cu,
            bank,
        });
    }

    /// Reports the first instructions of the longest wave, so that memory stays bounded.
    fn report_part(&mut self) {
        let longest =
            (self.waves.iter_mut().flatten()).max_by_key(|wave| wave.wave.instructions.len());
        let Some(wave) = longest else {
            return;
        };
        let settled = wave.settled();
        if settled < KEEP {
            return;
        }
        let count = self
            .output
            .wave(&mut wave.wave, settled, false, &mut self.registers);
        wave.drop_front(count);
        self.pending -= count;
    }

    fn finish(mut self) -> crate::Diagnosis {
        let interval = self.registers.counter_interval;
        for cu in 0..16u8 {
            for bank in 0..4u8 {
                let last = self.samples[usize::from(cu)][usize::from(bank)].last;
                if interval > 0 && last > 0 {
                    self.output.perf(PerfEvent {
                        time: last + interval,
                        values: [0; 4],
                        cu,
                        bank,
                    });
                }
            }
        }
        for wave in &mut self.waves {
            if let Some(mut wave) = wave.take() {
                wave.note_unfinished();
                let count = wave.wave.instructions.len();
                self.output
                    .wave(&mut wave.wave, count, true, &mut self.registers);
            }
        }
        self.output.finish(&mut self.registers)
    }
}

/// Number of a micro engine, whose field in register writes differs from that of waves.
fn engine(me: u8) -> u8 {
    (me + 1) & 1
}

/// The value of the next TIMESTAMP after the first `from` bytes; `None` if another reset comes before it.
fn next_timestamp<R: Read>(window: &mut Window<R>, from: usize) -> Option<u64> {
    let mut at = from;
    while at < LOOK_AHEAD {
        window.has(at + 8);
        if at >= window.available() {
            return None;
        }
        let word = window.word(at);
        let length = token_length(word as u8);
        if at + length > window.available() {
            return None;
        }
        match Gfx9Token::parse(word) {
            Gfx9Token::Timestamp(stamp) => return Some(stamp),
            Gfx9Token::Misc(Misc::TimeReset) => return None,
            _ => at += length,
        }
    }
    None
}
