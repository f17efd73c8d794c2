//! Generated thread traces, read by a reader that only the tests use.

#![expect(clippy::unwrap_used, reason = "a test ends where something is missing")]

use super::sample_tests::{device, simple_recorded};
use super::sqtt::{is_immediate, token_type};
use super::*;
use crate::isa::Kind;
use std::collections::HashMap;

/// A token: type, time in quads, and its bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Token {
    kind: u64,
    time: u64,
    bits: u64,
}

impl Token {
    fn field(&self, first: u32, width: u32) -> u64 {
        self.bits >> first & ((1 << width) - 1)
    }
}

/// Reads the tokens after the header, by section 6 of the format's description.
fn read(bytes: &[u8]) -> Vec<Token> {
    const LENGTHS: [usize; 16] = [2, 8, 8, 4, 2, 6, 2, 2, 2, 2, 2, 8, 6, 4, 8, 6];
    let (mut at, mut time, mut tokens) = (8, 0, Vec::new());
    while at < bytes.len() {
        let kind = usize::from(bytes[at] & 15);
        let length = LENGTHS[kind];
        let mut word = [0; 8];
        word[..length].copy_from_slice(&bytes[at..at + length]);
        let bits = u64::from_le_bytes(word);
        time += match kind {
            0 => bits >> 4 & 255,
            1 => 0,
            _ => bits >> 4 & 1,
        };
        tokens.push(Token {
            kind: kind as u64,
            time,
            bits,
        });
        at += length;
    }
    tokens
}

const OBJECT: TracedObject = TracedObject {
    id: 3,
    address: 0x7f00_0000_0000,
    size: 0x1_0000,
};

fn settings() -> TraceSettings {
    TraceSettings {
        engine: 0,
        target: 1,
        simds: 0xf,
        capacity: 1 << 24,
        generation: 5,
        counters: None,
    }
}

fn dispatch() -> TracedDispatch {
    TracedDispatch {
        entry: 0x7f00_0000_1000,
        base: 0x7f00_0000_0000,
        workgroup: [256, 1, 1],
        ..TracedDispatch::default()
    }
}

/// The trace of a kernel on one engine, with the timelines that it was generated from.
fn traced(
    kernel: &str,
    groups: u32,
    rounds: i32,
    settings: TraceSettings,
) -> (Vec<u8>, Vec<Timeline>, bool) {
    let selection = Selection {
        engines: 1,
        target: Some(settings.target),
        samples: None,
    };
    let timelines = simple_recorded(kernel, groups, 256, rounds, &selection);
    let mut trace = Trace::new(settings, 0x1000);
    trace.object(&OBJECT, false, true);
    trace.dispatch(&dispatch(), &timelines, device().layout.units_per_engine);
    let full = trace.is_full();
    (trace.finish(), timelines, full)
}

#[test]
fn a_thread_trace_begins_like_one_of_the_hardware() {
    let mut trace = Trace::new(settings(), 0x1000);
    trace.object(&OBJECT, false, true);
    let hex: String = trace
        .finish()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(
        hex,
        "11a01f000000000000200100001000000000820042c300524f43820042c30102\
         0800820042c304020000820042c300000000820042c304030000820042c3007f\
         0000820042c304010000820042c300000100820042c304040000820042c30000\
         0000820042c304000000820042c30e000000"
    );
}

#[test]
fn code_object_ids_beyond_30_bits_have_packets_of_their_own() {
    let mut trace = Trace::new(settings(), 0);
    let id = 5 << 32 | 1 << 30 | 77;
    trace.object(&TracedObject { id, ..OBJECT }, true, false);
    let words: Vec<u64> = read(&trace.finish())
        .iter()
        .skip(4)
        .map(|t| t.field(32, 32))
        .collect();
    let fields: HashMap<u64, u64> = words
        .chunks(2)
        .map(|pair| (pair[0] >> 8, pair[1]))
        .collect();
    assert!(words.chunks(2).all(|pair| pair[0] & 255 == 4));
    assert_eq!(fields[&5] | fields[&6] << 32, id);
    assert_eq!(fields[&0] & 3, 1);
}

#[test]
fn a_thread_trace_has_all_waves_and_the_instructions_of_the_target() {
    let (bytes, timelines, full) = traced("divergent_branch", 416, 2, settings());
    assert!(!full);
    let tokens = read(&bytes);
    let waves: usize = timelines.iter().map(|t| t.waves.len()).sum();
    assert_eq!(tokens.iter().filter(|t| t.kind == 3).count(), waves);
    assert_eq!(tokens.iter().filter(|t| t.kind == 6).count(), waves);
    // Register tokens with the address of the kernel come before the first wave starts.
    let first = tokens.iter().position(|t| t.kind == 3).unwrap();
    let registers: HashMap<u64, u64> = tokens[..first]
        .iter()
        .filter(|t| t.kind == 15)
        .map(|t| (t.field(9, 7), t.field(16, 32)))
        .collect();
    assert_eq!(
        registers[&0xd] << 40 | registers[&0xc] << 8,
        0x7f00_0000_1000
    );
    assert_eq!(registers[&7], 256);
    // Compares the tokens of a slot with the timeline of its wave.
    let target = timelines.iter().find(|t| t.unit == 1).unwrap();
    let begin = tokens[first].time;
    let mut seen: HashMap<(u64, u64), Vec<Token>> = HashMap::new();
    for token in tokens.iter().filter(|t| t.kind == 10) {
        seen.entry((token.field(9, 2), token.field(5, 4)))
            .or_default()
            .push(*token);
    }
    let mut expected: HashMap<(u64, u64), Vec<&Issued>> = HashMap::new();
    for wave in &target.waves {
        let list = expected
            .entry((wave.simd.into(), wave.slot.into()))
            .or_default();
        let has_token = |i: &&Issued| {
            !matches!(
                i.kind,
                Kind::Barrier | Kind::Wait(..) | Kind::Sleep(_) | Kind::End | Kind::Other
            )
        };
        list.extend(wave.issued.iter().filter(has_token));
    }
    assert_eq!(seen.len(), expected.len());
    for (slot, issued) in expected {
        let tokens = &seen[&slot];
        assert_eq!(tokens.len(), issued.len());
        for pair in tokens.windows(2).zip(issued.windows(2)) {
            assert_eq!(
                pair.0[1].time - pair.0[0].time,
                pair.1[1].issue - pair.1[0].issue
            );
        }
        for (token, issued) in tokens.iter().zip(issued) {
            let jumps = [12, 13].contains(&token.field(11, 5));
            assert_eq!(jumps, issued.kind == Kind::Branch, "{issued:?}");
            assert!(token.time >= begin);
        }
    }
}

#[test]
fn cache_controls_and_clocks_have_the_tokens_that_their_lines_are_matched_with() {
    let (_, timelines, _) = traced("divergent_branch", 416, 2, settings());
    let target = timelines.iter().find(|t| t.unit == 1).unwrap();
    let any = &target.waves[0].issued[0];
    let token = |kind, clock| {
        let issued = Issued {
            kind,
            clock,
            ..*any
        };
        (!is_immediate(kind)).then(|| token_type(&issued))
    };
    // The token of vector memory, as for every `buffer_` instruction.
    assert_eq!(token(Kind::Invalidate, false), Some(2));
    assert_eq!(token(Kind::WriteBack, false), Some(3));
    assert_eq!(token(Kind::Smem(0), false), Some(0));
    assert_eq!(token(Kind::Smem(0), true), Some(1));
    assert_eq!(token(Kind::End, false), None);
    assert_eq!(token(Kind::Wait(0, 0), false), None);
    assert_eq!(token(Kind::Other, false), None);
}

#[test]
fn a_wave_starts_in_a_slot_after_the_one_before_has_ended() {
    let (bytes, timelines, full) = traced("divergent_branch", 4096, 2, settings());
    assert!(!full);
    let mut busy: HashMap<u64, bool> = HashMap::new();
    let mut reused = 0;
    for token in read(&bytes) {
        // Compute unit, slot and SIMD.
        let slot = token.field(6, 10);
        match token.kind {
            3 => {
                if let Some(before) = busy.insert(slot, true) {
                    assert!(!before, "slot {slot:#x} at {}", token.time);
                    reused += 1;
                }
            }
            6 => assert_eq!(busy.insert(slot, false), Some(true), "slot {slot:#x}"),
            _ => {}
        }
    }
    let waves: usize = timelines.iter().map(|t| t.waves.len()).sum();
    assert_eq!(reused + busy.len(), waves);
    assert!(reused > 0);
}

#[test]
fn a_thread_trace_has_instructions_of_selected_simds_only() {
    let settings = TraceSettings {
        simds: 0b0101,
        ..settings()
    };
    let (bytes, ..) = traced("dependent_chain", 104, 1, settings);
    assert_eq!(
        u64::from_le_bytes(*bytes.first_chunk().unwrap()) >> 16 & 15,
        5
    );
    let tokens = read(&bytes);
    let simds: std::collections::BTreeSet<u64> = tokens
        .iter()
        .filter(|t| t.kind == 10)
        .map(|t| t.field(9, 2))
        .collect();
    assert_eq!(simds.into_iter().collect::<Vec<_>>(), [0, 2]);
}

#[test]
fn a_full_thread_trace_buffer_ends_with_a_whole_token() {
    let settings = TraceSettings {
        capacity: 4001,
        ..settings()
    };
    let (bytes, _, full) = traced("dependent_chain", 104, 20, settings);
    assert!(full && bytes.len() <= 4001 && bytes.len() > 3990);
    read(&bytes);
}

#[test]
fn counters_in_a_thread_trace_add_up_to_those_of_the_dispatch() {
    let counters = TraceCounters {
        interval: 128,
        list: [
            "SQ_INSTS_VALU",
            "SQ_WAVES",
            "SQ_INSTS_SALU",
            "SQ_BUSY_CU_CYCLES",
            "SQ_INSTS",
        ]
        .map(|name| (TraceCounter::find(name).unwrap(), 0xf))
        .to_vec(),
    };
    let settings = TraceSettings {
        counters: Some(counters),
        ..settings()
    };
    let (bytes, timelines, _) = traced("dependent_chain", 104, 10, settings);
    let mut sums: HashMap<(u64, u64), u64> = HashMap::new();
    for token in read(&bytes).iter().filter(|t| t.kind == 14) {
        for (n, first) in [12, 25, 38, 51].into_iter().enumerate() {
            let key = (token.field(6, 4), token.field(10, 2) * 4 + n as u64);
            *sums.entry(key).or_default() += token.field(first, 13);
        }
    }
    for timeline in &timelines {
        let issued = || timeline.waves.iter().flat_map(|w| &w.issued);
        let of = |pipe: Pipe| issued().filter(|i| i.pipe == pipe).count() as u64;
        let sum = |counter| sums[&(timeline.unit as u64, counter)];
        assert_eq!(sum(0), of(Pipe::Valu));
        assert_eq!(sum(1), timeline.waves.len() as u64);
        assert_eq!(sum(2), of(Pipe::Scalar));
        assert_eq!(sum(3), timeline.end);
        assert_eq!(sum(4), issued().count() as u64);
    }
    assert!(TraceCounter::find("TCC_HIT").is_none());
}
