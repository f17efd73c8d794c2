//! A sink that keeps all records of a decoder.

use std::collections::HashMap;

use rpd_att::{
    Code, Diagnosis, Dispatch, Event, Info, Instruction as Executed, NoCode, Occupancy, OtherSimd,
    Pc, PerfEvent, Realtime, Record, ShaderData, Span, decode,
};

use rpd_gfx::disasm::Instruction;

/// A wave with its own copies of the lists.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OwnedWave {
    pub(crate) cu: u8,
    pub(crate) simd: u8,
    pub(crate) slot: u8,
    pub(crate) contexts: u8,
    pub(crate) part: u32,
    pub(crate) complete: bool,
    pub(crate) begin: i64,
    pub(crate) end: i64,
    pub(crate) timeline: Vec<Span>,
    pub(crate) instructions: Vec<Executed>,
}

/// All records of a stream, in lists by kind.
#[derive(Debug, Default)]
pub(crate) struct All {
    pub(crate) order: Vec<&'static str>,
    pub(crate) gfx: u32,
    pub(crate) occupancy: Vec<Occupancy>,
    pub(crate) perf: Vec<PerfEvent>,
    pub(crate) waves: Vec<OwnedWave>,
    pub(crate) infos: Vec<Info>,
    pub(crate) events: Vec<Event>,
    pub(crate) shader_data: Vec<ShaderData>,
    pub(crate) realtime: Vec<Realtime>,
    pub(crate) frequency: u64,
    pub(crate) other: Vec<OtherSimd>,
    pub(crate) dispatches: Vec<Dispatch>,
    pub(crate) diagnosis: Diagnosis,
}

impl All {
    pub(crate) fn take(&mut self, record: Record<'_>) {
        self.order.push(match record {
            Record::Gfx(major) => {
                self.gfx = major;
                "gfx"
            }
            Record::Occupancy(list) => {
                self.occupancy.extend_from_slice(list);
                "occupancy"
            }
            Record::Perf(list) => {
                self.perf.extend_from_slice(list);
                "perf"
            }
            Record::Wave(wave) => {
                self.waves.push(OwnedWave {
                    cu: wave.cu,
                    simd: wave.simd,
                    slot: wave.slot,
                    contexts: wave.contexts,
                    part: wave.part,
                    complete: wave.complete,
                    begin: wave.begin,
                    end: wave.end,
                    timeline: wave.timeline.to_vec(),
                    instructions: wave.instructions.to_vec(),
                });
                "wave"
            }
            Record::Info(info) => {
                self.infos.push(info);
                "info"
            }
            Record::Events(list) => {
                self.events.extend_from_slice(list);
                "event"
            }
            Record::ShaderData(list) => {
                self.shader_data.extend_from_slice(list);
                "shader data"
            }
            Record::Realtime(list) => {
                self.realtime.extend_from_slice(list);
                "realtime"
            }
            Record::RealtimeFrequency(hertz) => {
                self.frequency = hertz;
                "frequency"
            }
            Record::OtherSimd(list) => {
                self.other.extend_from_slice(list);
                "other simd"
            }
            Record::Dispatches(list) => {
                self.dispatches.extend_from_slice(list);
                "dispatch"
            }
        });
    }
}

/// Decodes a stream with code; returns all records.
pub(crate) fn all_with(stream: &[u8], code: &mut dyn Code) -> All {
    let mut all = All::default();
    let mut sink = |record: Record<'_>| all.take(record);
    let diagnosis = decode(stream, code, &mut sink).expect("a header");
    all.diagnosis = diagnosis;
    all
}

/// Instructions that all match nothing but scalar arithmetic, vector arithmetic and scalar reads, in this order.
pub(crate) fn short_code() -> Listing {
    let lines = [
        "s_mov_b32 s0, s1",
        "v_mov_b32_e32 v0, v1",
        "s_load_dword s0, s[0:1], 0x0",
        "s_endpgm",
    ];
    Listing::new(3, 0x1000, &lines)
}

/// Decodes a stream without code; returns all records.
pub(crate) fn all(stream: &[u8]) -> All {
    all_with(stream, &mut NoCode)
}

/// Code as a list of lines, and the addresses that were requested.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    lines: HashMap<Pc, (String, u32)>,
    pub(crate) asked: Vec<Pc>,
}

impl Listing {
    /// Lines of 4 bytes; ones that access memory have 8, unless a size is given.
    pub(crate) fn new(code_object: u64, from: u64, lines: &[&str]) -> Self {
        let mut listing = Self::default();
        listing.add(code_object, from, lines);
        listing
    }

    pub(crate) fn add(&mut self, code_object: u64, from: u64, lines: &[&str]) {
        let mut address = from;
        for line in lines {
            let eight = [
                "s_load", "global_", "flat_", "ds_", "buffer_", "v_mfma", "image_",
            ]
            .iter()
            .any(|start| line.starts_with(start));
            let size = if eight { 8 } else { 4 };
            let pc = Pc {
                address,
                code_object,
            };
            self.lines.insert(pc, ((*line).to_owned(), size));
            address += u64::from(size);
        }
    }
}

impl Code for Listing {
    fn instruction(&mut self, pc: Pc) -> Option<Instruction> {
        self.asked.push(pc);
        let (text, bytes) = self.lines.get(&pc)?;
        Some(Instruction::from_text(text, *bytes, pc.address))
    }
}
