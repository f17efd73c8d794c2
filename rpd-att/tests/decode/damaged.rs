//! Streams that lack something, or of which parts are damaged.

use rpd_att::{Info, Pc, tokens};

use crate::collect::{Listing, all, all_with};
use crate::encoder::inst::{SALU, VALU};
use crate::encoder::{BASE, Gfx9, Random, Rdna};

#[test]
fn a_trace_without_code_objects_is_diagnosed() {
    let mut stream = Gfx9::new(1);
    stream
        .kernel(BASE + 0x1000)
        .wave_start(40, 1, 0, 0)
        .run(60, SALU)
        .run(80, VALU)
        .wave_end(100, 1, 0, 0);
    let got = all_with(&stream.bytes, &mut Listing::new(3, 0x1000, &["s_nop 0"]));
    assert_eq!(got.waves[0].instructions[0].pc, Pc::default());
    assert_eq!(got.infos, [Info::StitchIncomplete]);
    assert_eq!(
        got.diagnosis.to_string(),
        "instructions that have a kind and no address, because the trace names no code object: 2 of 2\n"
    );
}

#[test]
fn waves_of_untraced_simds_are_not_counted_as_missing() {
    let mut stream = Gfx9::with_code();
    // SIMD 0 alone.
    stream.bytes[2] &= 0xF1;
    stream
        .wave_start(40, 1, 0, 0)
        .wave_start(40, 1, 1, 0)
        .wave_start(44, 1, 2, 3)
        .run(60, SALU)
        .wave_end(80, 1, 0, 0)
        .wave_end(80, 1, 1, 0)
        .wave_end(84, 1, 2, 3);
    let got = all(&stream.bytes);
    assert_eq!((got.waves.len(), got.diagnosis.waves), (1, 1));
    assert_eq!((got.waves[0].simd, got.waves[0].slot), (0, 0));
    assert_eq!(got.diagnosis.ends_without_start, 0);
    assert_eq!(got.diagnosis.incomplete_waves, 0);
    // All of them are in the occupancy.
    assert_eq!(got.occupancy.len(), 6);
}

/// Streams of every generation, with bytes that have no meaning.
fn damaged(random: &mut Random) -> Vec<Vec<u8>> {
    let mut streams = vec![Gfx9::with_code().bytes];
    streams.extend((1..=4).map(|version| Rdna::new(version).bytes()));
    for stream in &mut streams {
        for _ in 0..64 {
            // Bytes of ones make the largest time stamps.
            let ones = random.below(4) == 0;
            let word = if ones { u64::MAX } else { random.next() };
            stream.extend_from_slice(&word.to_le_bytes());
            // The first byte of a time stamp of GFX12 and of the others.
            stream.push([0x01, 0x81, 0x31, 0x10][random.below(4) as usize]);
        }
    }
    streams
}

#[test]
fn times_of_damaged_streams_never_go_back() {
    let mut random = Random::new(212);
    for _ in 0..500 {
        for stream in damaged(&mut random) {
            let mut before = 0;
            let mut visit = |time, offset, _| {
                assert!(
                    time >= before,
                    "{time} after {before} at {offset}: {stream:02x?}"
                );
                before = time;
            };
            tokens(&stream[..], &mut visit).expect("a header");
            let got = all(&stream);
            let in_order = |times: &mut dyn Iterator<Item = i64>, what: &str| {
                let times: Vec<i64> = times.collect();
                assert!(times.is_sorted(), "{what}: {times:?}: {stream:02x?}");
            };
            // A wave that ran when the trace began has the time 0.
            let known = got.occupancy.iter().filter(|record| record.time != 0);
            in_order(&mut known.map(|record| record.time), "occupancy");
            in_order(&mut got.events.iter().map(|event| event.time), "events");
            in_order(
                &mut got.shader_data.iter().map(|data| data.time),
                "shader data",
            );
            in_order(
                &mut got.realtime.iter().map(|clocks| clocks.shader_clock),
                "clocks",
            );
            let ticks = got.realtime.iter().map(|clocks| clocks.realtime_clock);
            assert!(ticks.is_sorted(), "{stream:02x?}");
            for wave in &got.waves {
                assert!(wave.begin <= wave.end, "{wave:?}");
                in_order(
                    &mut wave.instructions.iter().map(|i| i.time),
                    "instructions",
                );
            }
        }
    }
}
