//! Batches of records on their way to a sink, and the stitching of waves.

use crate::diagnosis::Diagnosis;
use crate::pending::Pending;
use crate::record::{
    Dispatch, Event, EventKind, Info, Occupancy, OtherSimd, PerfEvent, Realtime, Record,
    ShaderData, Sink,
};
use crate::registers::Registers;
use crate::stitch::{Stitched, Stitcher};

/// Number of records of one kind that are passed on together.
const BATCH: usize = 1 << 16;

/// Destination of decoded records.
pub(crate) struct Output<'a> {
    sink: &'a mut dyn Sink,
    pub(crate) stitcher: Stitcher<'a>,
    pub(crate) diagnosis: Diagnosis,
    occupancy: Vec<Occupancy>,
    perf: Vec<PerfEvent>,
    shader_data: Vec<ShaderData>,
    realtime: Vec<Realtime>,
    other: Vec<OtherSimd>,
    /// The last readings of the shader clock and of the real-time clock.
    clocks: (i64, u64),
}

macro_rules! batched {
    ($method:ident, $field:ident, $type:ty, $record:ident) => {
        #[inline]
        pub(crate) fn $method(&mut self, record: $type) {
            self.$field.push(record);
            if self.$field.len() >= BATCH {
                self.sink.record(Record::$record(&self.$field));
                self.$field.clear();
            }
        }
    };
}

impl<'a> Output<'a> {
    pub(crate) fn new(sink: &'a mut dyn Sink, stitcher: Stitcher<'a>) -> Self {
        Self {
            sink,
            stitcher,
            diagnosis: Diagnosis::default(),
            occupancy: Vec::new(),
            perf: Vec::new(),
            shader_data: Vec::new(),
            realtime: Vec::new(),
            other: Vec::new(),
            clocks: (i64::MIN, 0),
        }
    }

    batched!(perf, perf, PerfEvent, Perf);
    batched!(shader_data, shader_data, ShaderData, ShaderData);
    batched!(keep_realtime, realtime, Realtime, Realtime);
    batched!(other_simd, other, OtherSimd, OtherSimd);

    /// Adds a reading of the clocks, from the token that ends at an offset. Both clocks only go on: a reading in which
    /// one goes back is damaged.
    pub(crate) fn realtime(&mut self, clocks: Realtime, offset: u64) {
        let (shader, real) = self.clocks;
        if clocks.shader_clock < shader || clocks.realtime_clock < real {
            self.diagnosis.invalid_token(offset);
            return;
        }
        self.clocks = (clocks.shader_clock, clocks.realtime_clock);
        self.keep_realtime(clocks);
    }

    pub(crate) fn gfx(&mut self, major: u32) {
        self.sink.record(Record::Gfx(major));
    }

    pub(crate) fn occupancy(&mut self, record: Occupancy, registers: &mut Registers) {
        self.occupancy.push(record);
        if self.occupancy.len() >= BATCH {
            self.flush_occupancy(registers);
        }
    }

    fn flush_occupancy(&mut self, registers: &mut Registers) {
        if self.occupancy.is_empty() {
            return;
        }
        for record in &mut self.occupancy {
            record.pc = registers.late(record.pc);
        }
        self.sink.record(Record::Occupancy(&self.occupancy));
        self.occupancy.clear();
    }

    pub(crate) fn event(&mut self, event: Event) {
        self.sink.record(Record::Events(&[event]));
    }

    /// Adds an event that belongs to no pipe.
    pub(crate) fn plain_event(&mut self, kind: EventKind, time: i64, offset: u64) {
        self.event(Event {
            time,
            kind,
            me: 0,
            pipe: 0,
            per_pipe: false,
            bottom: false,
            payload: 0,
            offset,
        });
    }

    /// Notes that the hardware dropped tokens before the one at `offset`.
    pub(crate) fn lost(&mut self, time: i64, offset: u64) {
        self.diagnosis.lost += 1;
        self.diagnosis.first_lost.get_or_insert((offset, time));
        self.plain_event(EventKind::PacketLoss, time, offset);
    }

    pub(crate) fn dispatch(&mut self, dispatch: Dispatch) {
        self.sink.record(Record::Dispatches(&[dispatch]));
    }

    /// Reports a wave, or its first `count` instructions; returns the number of reported instructions.
    pub(crate) fn wave(
        &mut self,
        wave: &mut Pending,
        count: usize,
        last: bool,
        registers: &mut Registers,
    ) -> usize {
        for anchor in &mut wave.anchors {
            anchor.pc = registers.late(anchor.pc);
        }
        wave.entry = registers.late(wave.entry);
        if last && !wave.complete {
            if !wave.trapped {
                self.diagnosis.incomplete_waves += 1;
            }
            // At least four cycles after its last instruction.
            let ends = wave
                .instructions
                .iter()
                .map(|i| i.time + i64::from(i.duration) + 4);
            wave.end = wave
                .end
                .max(ends.max().unwrap_or(wave.since))
                .max(wave.since);
            wave.enter(wave.state, wave.end);
        }
        let Stitched { count, missing } = self.stitcher.stitch(wave, count);
        let missing = missing as u64;
        self.diagnosis.instructions += count as u64;
        // A wave without an entry point, or one outside all code objects, has nothing to be matched with.
        if missing > 0 && wave.entry.code_object != 0 {
            self.diagnosis.unmatched += missing;
        } else {
            self.diagnosis.without_code += missing;
        }
        if wave.part == 0 {
            self.diagnosis.waves += 1;
        }
        self.sink.record(Record::Wave(wave.record(count, last)));
        count
    }

    /// Reports the remaining records. Must be called once, at the end.
    pub(crate) fn finish(mut self, registers: &mut Registers) -> Diagnosis {
        self.flush_occupancy(registers);
        if !self.perf.is_empty() {
            self.sink.record(Record::Perf(&self.perf));
        }
        if !self.shader_data.is_empty() {
            self.sink.record(Record::ShaderData(&self.shader_data));
        }
        if !self.realtime.is_empty() {
            self.sink.record(Record::Realtime(&self.realtime));
        }
        if !self.other.is_empty() {
            self.sink.record(Record::OtherSimd(&self.other));
        }
        if registers.realtime_frequency != 0 {
            self.sink
                .record(Record::RealtimeFrequency(registers.realtime_frequency));
        }
        self.diagnosis.code_objects = registers.named;
        for info in self.diagnosis.infos() {
            self.sink.record(Record::Info(info));
        }
        self.diagnosis
    }
}

impl Diagnosis {
    /// The notes of the trace decoder's interface for this diagnosis.
    fn infos(&self) -> impl Iterator<Item = Info> {
        [
            (self.lost > 0, Info::DataLost),
            // A wave outside of all code objects is no failure; a trace that names none has nothing to match with.
            (
                self.unmatched > 0 || self.without_code > 0 && self.code_objects == 0,
                Info::StitchIncomplete,
            ),
            (self.incomplete_waves > 0, Info::WaveIncomplete),
        ]
        .into_iter()
        .filter_map(|(applies, info)| applies.then_some(info))
    }
}
