//! Thread traces on the page: waves over time, how busy compute units were, and the waves of each slot of a SIMD.

use std::collections::BTreeMap;

use rpd_core::ids::AgentHandle;
use rpd_core::options::Options;
use rpd_core::session::traces::TracedWave;
use rpd_core::session::{KernelLabels, Session};

use super::timeline::base64;
use crate::json::Object;

/// Traces that are shown.
const TRACES: usize = 8;
/// Greatest number of waves of a trace that are shown one by one; of more there are sums over parts of the time.
const EXACT: usize = 20_000;
/// Number of the parts of the time, more than a wide screen has columns.
const BINS: usize = 2048;
/// Slots that are shown: browsers limit the height of a canvas.
const SLOTS: usize = 640;

/// Location of a wave: index of its stream in the trace, compute unit, SIMD and slot.
type Slot = (usize, u8, u8, u8);

/// A JSON object for each trace.
pub(super) fn all(session: &Session, options: &Options) -> Vec<String> {
    let labels = KernelLabels::new(session, options.kernel_names);
    let numbers = session.thread_traces.numbers().into_iter().take(TRACES);
    numbers
        .filter_map(|(agent, trace)| {
            Trace::from_session(session, agent, trace)?.object(session, &labels)
        })
        .collect()
}

/// The streams and waves of a trace, and its time in cycles.
struct Trace<'a> {
    agent: AgentHandle,
    number: u64,
    /// Index of the first stream in the session, and how many there are.
    streams: std::ops::Range<u32>,
    slots: BTreeMap<Slot, Vec<&'a TracedWave>>,
    waves: usize,
    begin: i64,
    end: i64,
}

impl<'a> Trace<'a> {
    fn from_session(session: &'a Session, agent: AgentHandle, number: u64) -> Option<Self> {
        let traces = &session.thread_traces;
        let is_own = |(_, found): &(usize, &rpd_core::session::traces::TraceSummary)| {
            (found.agent, found.trace) == (agent, number)
        };
        // The streams of a trace are one after the other.
        let mut own = traces.summaries.iter().enumerate().filter(is_own);
        let first = own.next()?.0 as u32;
        let streams = first..first + 1 + own.count() as u32;
        let mut trace = Self {
            agent,
            number,
            slots: BTreeMap::new(),
            waves: 0,
            begin: i64::MAX,
            end: i64::MIN,
            streams,
        };
        for wave in &traces.waves {
            if trace.streams.contains(&wave.stream) {
                let engine = (wave.stream - first) as usize;
                let slot = (engine, wave.cu, wave.simd, wave.slot);
                trace.slots.entry(slot).or_default().push(wave);
                trace.waves += 1;
                trace.include(wave.begin, wave.end);
            }
        }
        for part in &traces.occupied_times {
            if trace.streams.contains(&part.stream) {
                trace.include(part.begin, part.end);
            }
        }
        Some(trace)
    }

    fn include(&mut self, begin: i64, end: i64) {
        self.begin = self.begin.min(begin);
        self.end = self.end.max(end);
    }

    fn length(&self) -> i64 {
        (self.end - self.begin).max(1)
    }

    /// `None` for a trace without waves.
    fn object(&self, session: &Session, labels: &KernelLabels<'_>) -> Option<String> {
        // Without a wave the trace has no times to show.
        if self.begin > self.end {
            return None;
        }
        let summaries = &session.thread_traces.summaries;
        let mut own = summaries[self.streams.start as usize..self.streams.end as usize].iter();
        // A trace of several dispatches has no kernel of its own.
        let name = match own.find(|found| found.kernel.0 != 0) {
            Some(found) => labels.formatted(found.kernel),
            None => "several kernels",
        };
        let engines: Vec<String> = (self.streams.clone())
            .map(|stream| engine_name(session, self.agent, summaries[stream as usize].engine))
            .collect();
        // The page would become too large with all slots; it says how many are left out.
        let slots = self.slots.iter().take(SLOTS).map(|(slot, waves)| {
            let &(engine, cu, simd, number) = slot;
            let name = format!("{} CU {cu} SIMD {simd} slot {number}", engines[engine]);
            self.slot(&name, waves)
        });
        let objects = self.streams.clone().zip(&engines);
        let objects = objects.map(|(stream, name)| self.engine(session, stream, name));
        Some(
            Object::new()
                .number("trace", self.number)
                .text("kernel", name)
                .number("total", self.waves)
                .number("length", self.length())
                .array("engines", objects)
                .number("left", self.slots.len().saturating_sub(SLOTS))
                .array("slots", slots)
                .end(),
        )
    }

    /// Waves over time and by compute unit.
    fn engine(&self, session: &Session, stream: u32, name: &str) -> String {
        let traces = &session.thread_traces;
        let times = traces.occupied_times.iter();
        let times = times.filter(|part| part.stream == stream).map(|part| {
            let (begin, end) = (part.begin - self.begin, part.end - self.begin);
            format!("{begin},{end},{}", part.wave_cycles)
        });
        let units = traces.occupied_units.iter();
        let units = units
            .filter(|unit| unit.stream == stream)
            .map(|unit| format!("[{},{},{}]", unit.cu, unit.waves, unit.wave_cycles));
        Object::new()
            .text("name", name)
            .array("occupancy", times)
            .array("units", units)
            .end()
    }

    /// The waves of a slot, or, of a trace with many, how busy and how stalled it was.
    fn slot(&self, name: &str, waves: &[&TracedWave]) -> String {
        let object = Object::new().text("name", name);
        if self.waves <= EXACT {
            let waves = waves.iter().map(|wave| {
                let (begin, length) = (wave.begin - self.begin, wave.end - wave.begin);
                format!("{begin},{length},{},{}", wave.latency, wave.stall)
            });
            return object.array("waves", waves).end();
        }
        let width = self.length() as f64 / BINS as f64;
        let (mut busy, mut stall) = (vec![0.0; BINS], vec![0.0; BINS]);
        for wave in waves {
            let length = (wave.end - wave.begin).max(1) as f64;
            let stalled = (wave.stall as f64 / length).min(1.0);
            let from = (wave.begin - self.begin) as f64 / width;
            let to = (wave.end - self.begin) as f64 / width;
            for bin in from as usize..=(to as usize).min(BINS - 1) {
                let inside = to.min((bin + 1) as f64) - from.max(bin as f64);
                busy[bin] += inside.max(0.0);
                stall[bin] += inside.max(0.0) * stalled;
            }
        }
        // Anything at all is to be seen.
        let shares = |sums: Vec<f64>| -> Vec<u8> {
            let byte = |sum: f64| {
                if sum > 0.0 {
                    (sum * 255.0).clamp(1.0, 255.0) as u8
                } else {
                    0
                }
            };
            sums.into_iter().map(byte).collect()
        };
        object
            .text("busy", &base64(&shares(busy)))
            .text("stall", &base64(&shares(stall)))
            .end()
    }
}

/// `SE 4`, or, for GPUs of several dies, `XCC 1 SE 0`: shader engines are numbered through all of them.
pub(super) fn engine_name(session: &Session, agent: AgentHandle, engine: u32) -> String {
    let of_die = session.agent(agent).and_then(|agent| {
        let dies = (agent.num_xcc > 1).then_some(agent.num_xcc)?;
        Some(agent.num_shader_banks / dies).filter(|engines| *engines > 0)
    });
    match of_die {
        Some(engines) => format!("XCC {} SE {}", engine / engines, engine % engines),
        None => format!("SE {engine}"),
    }
}
