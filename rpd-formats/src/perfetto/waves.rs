//! A Perfetto trace of the waves of a thread trace: a track for each slot of a SIMD, its instructions below its waves.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use super::proto::{field, nested, text, uint};
use crate::WriteError;
use crate::file::TextFile;

/// Number of the sequence of packets, of which a trace has one.
const SEQUENCE: u64 = 1;
/// Value `SEQ_INCREMENTAL_STATE_CLEARED`.
const CLEARED: u64 = 1;
/// Value `SEQ_NEEDS_INCREMENTAL_STATE`.
const CONTINUED: u64 = 2;
/// Value `TYPE_SLICE_BEGIN`.
const BEGIN: u64 = 1;
/// Value `TYPE_SLICE_END`.
const END: u64 = 2;

/// Location of a wave: shader engine, compute unit, SIMD and slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WavePlace {
    /// Number of the shader engine.
    pub engine: u32,
    /// Number of the compute unit.
    pub cu: u8,
    /// SIMD that the wave ran on.
    pub simd: u8,
    /// Slot in the SIMD.
    pub slot: u8,
}

/// A span of a wave's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaveSpan<'a> {
    /// Name of the slice.
    pub name: &'a str,
    /// First cycle of the span.
    pub begin: u64,
    /// The cycle after the last of the span.
    pub end: u64,
}

/// A trace in the making. One nanosecond stands for one cycle of the shader clock.
pub struct WaveTrace {
    file: TextFile,
    names: HashMap<String, u64>,
    tracks: BTreeSet<u64>,
}

/// Numbers of tracks: shader engines, their SIMDs, slots; 0 is none.
fn track(place: WavePlace, level: u64) -> u64 {
    let simd = u64::from(place.cu) << 4 | u64::from(place.simd);
    let within = match level {
        0 => 0,
        1 => simd << 8,
        _ => simd << 8 | u64::from(place.slot),
    };
    1 << 40 | u64::from(place.engine) << 24 | level << 20 | within
}

impl WaveTrace {
    /// Begins a file.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(path: PathBuf) -> Result<WaveTrace, WriteError> {
        let mut trace = WaveTrace {
            file: TextFile::create(path)?,
            names: HashMap::new(),
            tracks: BTreeSet::new(),
        };
        nested(&mut trace.file.buffer, field::PACKET, |out| {
            uint(out, field::packet::SEQUENCE, SEQUENCE);
            uint(out, field::packet::SEQUENCE_FLAGS, CLEARED);
            uint(out, field::packet::FIRST_ON_SEQUENCE, 1);
        });
        Ok(trace)
    }

    fn packet(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> Result<(), WriteError> {
        nested(&mut self.file.buffer, field::PACKET, |out| {
            uint(out, field::packet::SEQUENCE, SEQUENCE);
            uint(out, field::packet::SEQUENCE_FLAGS, CONTINUED);
            fill(out);
        });
        self.file.flush_if_full()
    }

    /// The track of a slot; it and those above it are described when they are first seen.
    fn track(&mut self, place: WavePlace) -> Result<u64, WriteError> {
        let names = [
            format!("SE {}", place.engine),
            format!("CU {} SIMD {}", place.cu, place.simd),
            format!("slot {}", place.slot),
        ];
        let mut parent = None;
        for (level, name) in (0..).zip(&names) {
            let uuid = track(place, level);
            if self.tracks.insert(uuid) {
                self.packet(|out| {
                    nested(out, field::packet::TRACK_DESCRIPTOR, |out| {
                        uint(out, field::track::UUID, uuid);
                        if let Some(parent) = parent {
                            uint(out, field::track::PARENT, parent);
                        }
                        text(out, field::track::NAME, name);
                    });
                })?;
            }
            parent = Some(uuid);
        }
        Ok(track(place, 2))
    }

    fn begin(&mut self, track: u64, span: WaveSpan<'_>) -> Result<(), WriteError> {
        let known = self.names.get(span.name).copied();
        let number = known.unwrap_or(self.names.len() as u64 + 1);
        if known.is_none() {
            self.names.insert(span.name.to_owned(), number);
        }
        self.packet(|out| {
            if known.is_none() {
                nested(out, field::packet::INTERNED_DATA, |out| {
                    nested(out, field::interned::EVENT_NAMES, |out| {
                        uint(out, field::interned::ID, number);
                        text(out, field::interned::TEXT, span.name);
                    });
                });
            }
            uint(out, field::packet::TIMESTAMP, span.begin);
            nested(out, field::packet::TRACK_EVENT, |out| {
                uint(out, field::event::TYPE, BEGIN);
                uint(out, field::event::NAME, number);
                uint(out, field::event::TRACK, track);
            });
        })
    }

    fn end(&mut self, track: u64, at: u64) -> Result<(), WriteError> {
        self.packet(|out| {
            uint(out, field::packet::TIMESTAMP, at);
            nested(out, field::packet::TRACK_EVENT, |out| {
                uint(out, field::event::TYPE, END);
                uint(out, field::event::TRACK, track);
            });
        })
    }

    /// Adds a wave with its instructions, which are in order and may overlap: one ends where the next begins.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn wave<'a>(
        &mut self,
        place: WavePlace,
        wave: WaveSpan<'_>,
        instructions: impl IntoIterator<Item = WaveSpan<'a>>,
    ) -> Result<(), WriteError> {
        let track = self.track(place)?;
        self.begin(track, wave)?;
        let mut instructions = instructions.into_iter().peekable();
        let mut from = wave.begin;
        while let Some(instruction) = instructions.next() {
            let begin = instruction.begin.clamp(from, wave.end);
            let until = instructions.peek().map_or(wave.end, |next| next.begin);
            let end = instruction.end.min(until).clamp(begin, wave.end);
            self.begin(
                track,
                WaveSpan {
                    begin,
                    ..instruction
                },
            )?;
            self.end(track, end)?;
            from = end;
        }
        self.end(track, wave.end)
    }

    /// Completes the file.
    ///
    /// # Errors
    /// When it cannot be written; nothing is left under its name then.
    pub fn finish(self) -> Result<PathBuf, WriteError> {
        self.file.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields of a message: number and value or bytes.
    fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, &[u8])> {
        fn varint(bytes: &mut &[u8]) -> u64 {
            let mut value = 0;
            for shift in (0..).step_by(7) {
                let (first, rest) = bytes.split_first().expect("a byte");
                *bytes = rest;
                value |= u64::from(first & 0x7F) << shift;
                if first & 0x80 == 0 {
                    break;
                }
            }
            value
        }
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let value = varint(&mut bytes);
            let mut content: &[u8] = &[];
            if tag & 7 == 2 {
                (content, bytes) = bytes.split_at(value as usize);
            }
            fields.push((tag >> 3, value, content));
        }
        fields
    }

    fn find<'a>(of: &[(u64, u64, &'a [u8])], number: u64) -> Option<(u64, &'a [u8])> {
        of.iter()
            .find(|field| field.0 == number)
            .map(|field| (field.1, field.2))
    }

    #[test]
    fn wave_trace_has_slices_of_waves_on_tracks_of_slots() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut trace = WaveTrace::create(directory.path().join("waves.pftrace")).expect("a file");
        let place = WavePlace {
            engine: 4,
            cu: 1,
            simd: 2,
            slot: 3,
        };
        let span = |name, begin, end| WaveSpan { name, begin, end };
        // The second instruction begins before the first one's end.
        let instructions = [span("SMEM", 50, 70), span("VALU", 60, 80)];
        trace
            .wave(place, span("wave", 40, 100), instructions)
            .expect("written");
        trace
            .wave(place, span("wave", 200, 240), [])
            .expect("written");
        let path = trace.finish().expect("a file");
        let bytes = std::fs::read(path).expect("a file");
        let (mut events, mut tracks) = (Vec::new(), Vec::new());
        let mut names = HashMap::new();
        for (number, _, packet) in fields(&bytes) {
            assert_eq!(number, 1);
            let packet = fields(packet);
            if let Some((_, data)) = find(&packet, 12) {
                let name = fields(find(&fields(data), 2).expect("a name").1);
                let text = find(&name, 2).expect("a text").1;
                let text = std::str::from_utf8(text).expect("UTF-8").to_owned();
                names.insert(find(&name, 1).expect("a number").0, text);
            }
            if let Some((_, track)) = find(&packet, 60) {
                let track = fields(track);
                let name = find(&track, 2).expect("a name").1;
                let parent = find(&track, 5).map(|parent| parent.0);
                let uuid = find(&track, 1).expect("a number").0;
                tracks.push((
                    std::str::from_utf8(name).expect("UTF-8").to_owned(),
                    uuid,
                    parent,
                ));
            }
            if let Some((_, event)) = find(&packet, 11) {
                let event = fields(event);
                let name = find(&event, 10).map(|name| names[&name.0].clone());
                events.push((
                    find(&packet, 8).expect("a time").0,
                    name,
                    find(&event, 11).expect("a track").0,
                ));
            }
        }
        let shown: Vec<_> = tracks.iter().map(|track| track.0.as_str()).collect();
        assert_eq!(shown, ["SE 4", "CU 1 SIMD 2", "slot 3"]);
        assert_eq!(tracks[1].2, Some(tracks[0].1));
        assert_eq!(tracks[2].2, Some(tracks[1].1));
        assert!(events.iter().all(|event| event.2 == tracks[2].1));
        let events: Vec<_> = (events.iter())
            .map(|event| (event.0, event.1.as_deref()))
            .collect();
        assert_eq!(
            events,
            [
                (40, Some("wave")),
                (50, Some("SMEM")),
                (60, None),
                (60, Some("VALU")),
                (80, None),
                (100, None),
                (200, Some("wave")),
                (240, None),
            ]
        );
    }
}
