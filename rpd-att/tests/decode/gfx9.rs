//! Streams of GFX9.

use rpd_att::{Category, Gfx9Token, Info, Misc, Pc, Place, State, Token, tokens};

use crate::collect::{Listing, all, all_with, short_code};
use crate::encoder::inst::{SALU, SMEM, VALU, VMEM};
use crate::encoder::{BASE, Gfx9, Random};

/// Checks thread-trace-27.
#[test]
fn random_gfx9_sequences_decode_to_themselves() {
    let mut random = Random::new(27);
    for sequence in 0..10_000 {
        let mut stream = Gfx9::new(random.below(16));
        let mut expected = Vec::new();
        let mut time = 0i64;
        for _ in 0..1 + random.below(40) {
            let delta = random.below(2);
            let field = |bits: u32, random: &mut Random| random.next() >> 8 & ((1 << bits) - 1);
            let (sh, cu) = (field(1, &mut random), field(4, &mut random));
            let (slot, simd) = (random.below(10), field(2, &mut random));
            let place = Place {
                sh: sh as u8,
                cu: cu as u8,
                simd: simd as u8,
                slot: slot as u8,
            };
            let wave = sh << 5 | cu << 6 | slot << 10 | simd << 14;
            let (pipe, me) = (field(2, &mut random), field(2, &mut random));
            let data = field(32, &mut random);
            let kind = random.below(16);
            let low = kind | delta << 4;
            let mut passes = delta;
            let (word, bytes, token) = match kind {
                0 => {
                    // All kinds but the reset, which changes the time.
                    let (kinds, names) = (
                        [0, 2, 3, 4, 5, 6, 7],
                        [
                            Misc::Time,
                            Misc::PacketLost,
                            Misc::SurfSync,
                            Misc::StallBegin,
                            Misc::StallEnd,
                            Misc::SaveContext,
                            Misc::ShootDown,
                        ],
                    );
                    let which = random.below(7) as usize;
                    passes = field(8, &mut random);
                    let word = passes << 4 | sh << 12 | kinds[which] << 13;
                    (word, 2, Gfx9Token::Misc(names[which]))
                }
                1 => {
                    passes = 0;
                    let stamp = field(48, &mut random);
                    (1 | stamp << 16, 8, Gfx9Token::Timestamp(stamp))
                }
                2 => {
                    let (dropped, address) = (field(1, &mut random), field(16, &mut random));
                    let word =
                        low | pipe << 5 | me << 7 | dropped << 9 | address << 16 | data << 32;
                    let token = Gfx9Token::Register {
                        me: me as u8,
                        pipe: pipe as u8,
                        dropped: dropped == 1,
                        address: address as u16,
                        data: data as u32,
                    };
                    (word, 8, token)
                }
                3 => {
                    let count = field(7, &mut random);
                    let token = Gfx9Token::WaveStart {
                        place,
                        me: me as u8,
                        pipe: pipe as u8,
                        count: count as u8,
                    };
                    (low | wave | pipe << 16 | me << 18 | count << 22, 4, token)
                }
                4 => (low | wave, 2, Gfx9Token::WaveAlloc(place)),
                5 | 15 => {
                    let address = field(7, &mut random);
                    let token = Gfx9Token::Compute {
                        me: me as u8,
                        pipe: pipe as u8,
                        address: address as u8,
                        data: data as u32,
                    };
                    (
                        low | pipe << 5 | me << 7 | address << 9 | data << 16,
                        6,
                        token,
                    )
                }
                6 => (low | wave, 2, Gfx9Token::WaveEnd(place)),
                7..=9 => (low | field(11, &mut random) << 5, 2, Gfx9Token::Event),
                10 => {
                    let number = field(5, &mut random);
                    let token = Gfx9Token::Inst {
                        slot: slot as u8,
                        simd: simd as u8,
                        kind: number as u8,
                    };
                    (low | slot << 5 | simd << 9 | number << 11, 2, token)
                }
                11 => {
                    let words = field(48, &mut random);
                    let token = Gfx9Token::InstPc {
                        slot: slot as u8,
                        simd: simd as u8,
                        address: words * 4,
                    };
                    (low | slot << 5 | simd << 9 | words << 16, 8, token)
                }
                12 => {
                    let token = Gfx9Token::ShaderData {
                        place,
                        data: data as u32,
                    };
                    (low | wave | data << 16, 6, token)
                }
                13 => {
                    let states = field(20, &mut random);
                    let token = Gfx9Token::Issue {
                        simd: simd as u8,
                        states: states as u32,
                    };
                    (low | simd << 5 | states << 8, 4, token)
                }
                _ => {
                    let bank = field(2, &mut random);
                    let values = [0; 4].map(|_: u16| field(13, &mut random) as u16);
                    let [a, b, c, d] = values.map(u64::from);
                    let word = low | sh << 5 | cu << 6 | bank << 10;
                    let token = Gfx9Token::Perf {
                        sh: sh as u8,
                        cu: cu as u8,
                        bank: bank as u8,
                        values,
                    };
                    (word | a << 12 | b << 25 | c << 38 | d << 51, 8, token)
                }
            };
            time += passes as i64 * 4;
            expected.push((time, stream.bytes.len() as u64, Token::Gfx9(token)));
            stream.raw(word, bytes);
        }
        let mut got = Vec::new();
        tokens(&stream.bytes[..], &mut |time, offset, token| {
            got.push((time, offset, token));
        })
        .expect("a header");
        assert_eq!(got, expected, "sequence {sequence}");
        // The whole decoder takes it as well.
        let decoded = all(&stream.bytes);
        assert_eq!(decoded.diagnosis.tokens, expected.len() as u64);
        assert_eq!(decoded.diagnosis.truncated, None);
    }
}

/// Checks thread-trace-29.
#[test]
fn a_cut_off_gfx9_token_ends_the_decoding() {
    let mut stream = Gfx9::with_code();
    stream.wave_start(40, 1, 0, 0).run(60, SALU).run(72, VALU);
    let whole = all(&stream.bytes);
    let length = stream.bytes.len();
    stream.perf(100, 1, 0, [1, 2, 3, 4]);
    for bytes in length + 3..stream.bytes.len() {
        let cut = all(&stream.bytes[..bytes]);
        assert_eq!(cut.waves, whole.waves, "{bytes}");
        assert_eq!(cut.occupancy, whole.occupancy);
        assert!(cut.perf.is_empty());
        assert_eq!(cut.diagnosis.truncated, Some(length as u64 + 2));
    }
    let text = all_with(&stream.bytes[..length + 5], &mut short_code())
        .diagnosis
        .to_string();
    let expected = format!(
        "the trace ends inside the token at byte {}; everything before it was decoded\n\
         waves whose end is not in the trace: 1 of 1\n",
        length + 2
    );
    assert_eq!(text, expected);
}

/// Checks thread-trace-30.
#[test]
fn random_bytes_behind_a_gfx9_header_are_decoded_without_a_panic() {
    let mut random = Random::new(30);
    for _ in 0..300 {
        let mut stream = Gfx9::new(1).bytes;
        for _ in 0..random.below(20_000) {
            stream.push(random.next() as u8);
        }
        let got = all(&stream);
        assert!(got.diagnosis.tokens > 0 || stream.len() < 16);
        for wave in &got.waves {
            assert!(wave.end >= wave.begin);
        }
    }
}

/// Checks thread-trace-31.
#[test]
fn a_gfx9_wave_without_an_end_is_incomplete() {
    let mut stream = Gfx9::with_code();
    stream.wave_start(40, 1, 0, 0).run(60, SALU);
    let got = all_with(&stream.bytes, &mut short_code());
    assert_eq!(got.infos, [Info::WaveIncomplete]);
    assert_eq!(got.occupancy.len(), 1);
    assert!(got.occupancy[0].start);
    assert_eq!(got.waves.len(), 1);
    assert!(!got.waves[0].complete);
    assert_eq!(got.waves[0].instructions.len(), 1);
}

/// Checks thread-trace-32.
#[test]
fn lost_gfx9_packets_are_reported_once() {
    let mut stream = Gfx9::with_code();
    stream.misc(3, 2).misc(1, 2).wave_end(400, 1, 0, 3);
    let got = all(&stream.bytes);
    assert_eq!(got.infos, [Info::DataLost]);
    assert_eq!(got.diagnosis.lost, 2);
    let offset = stream.bytes.len() as u64;
    let (first, time) = got.diagnosis.first_lost.expect("one");
    assert!(first < offset && time == 12, "{first} {time}");
    // What ends without having begun is not a surprise then.
    assert!(got.occupancy.is_empty());
}

/// Checks thread-trace-33.
#[test]
fn gfx9_time_stamps_set_the_clock() {
    let mut stream = Gfx9::new(1);
    let shader_data = |stream: &mut Gfx9| {
        let time = stream.time;
        stream.shader_data(time, 1, 0, 7);
    };
    // The first pair only sets what time stamps count from: 1000 - 0 + 4.
    stream.misc(0, 1).timestamp(1000);
    shader_data(&mut stream);
    stream.misc(10, 1);
    // Between the reset and its time stamp time has jumped already.
    shader_data(&mut stream);
    stream.timestamp(1510);
    // Two resets: the second takes the time stamp.
    stream.misc(0, 1).misc(0, 1).timestamp(3004);
    shader_data(&mut stream);
    // A time stamp that is behind does not turn the clock back.
    stream.misc(0, 1).timestamp(1100);
    shader_data(&mut stream);
    let got = all(&stream.bytes);
    let times: Vec<_> = got.shader_data.iter().map(|data| data.time).collect();
    assert_eq!(times, [0, (1510 - 1004) & !3, 2000, 2000]);
    // Time stamps are not delivered as anything.
    assert_eq!(got.order, ["gfx", "shader data"]);
}

/// Checks thread-trace-34.
#[test]
fn large_ids_of_code_objects_are_put_together() {
    for id in [1, (1 << 30) - 1, 1 << 30, 0x1234_5678_9ABC] {
        let mut stream = Gfx9::new(1);
        stream
            .start_words()
            .code_object(id, BASE, 0x10000, 2)
            .kernel(BASE + 0x1000)
            .wave_start(8, 2, 0, 0);
        let got = all(&stream.bytes);
        let pc = Pc {
            address: 0x1000,
            code_object: id,
        };
        assert_eq!(got.occupancy[0].pc, pc);
    }
}

/// Checks thread-trace-35.
#[test]
fn an_entry_outside_every_code_object_keeps_its_address() {
    let mut stream = Gfx9::with_code();
    stream
        .kernel(0x5000_0000)
        .wave_start(40, 1, 0, 0)
        .run(60, SALU)
        .wave_end(80, 1, 0, 0);
    let got = all_with(&stream.bytes, &mut Listing::new(3, 0x1000, &["s_nop 0"]));
    assert_eq!(
        got.occupancy[0].pc,
        Pc {
            address: 0x5000_0000,
            code_object: 0
        }
    );
    assert_eq!(got.waves[0].instructions[0].pc, Pc::default());
    // Nothing to stitch with is not a failure to stitch.
    assert!(got.infos.is_empty());
    assert_eq!(got.diagnosis.without_code, 1);
}

/// Checks thread-trace-36.
#[test]
fn code_objects_that_follow_one_another_at_an_address_are_distinguished() {
    let mut stream = Gfx9::with_code();
    stream.wave_start(40, 2, 0, 0);
    // Unloaded while the wave runs.
    stream
        .code_object(3, BASE, 0x10000, 1)
        .code_object(4, BASE, 0x8000, 0);
    stream
        .wave_start(80, 2, 0, 1)
        .wave_end(100, 2, 0, 0)
        .wave_end(104, 2, 0, 1);
    let got = all(&stream.bytes);
    let ids: Vec<_> = (got.occupancy.iter())
        .map(|o| (o.slot, o.start, o.pc.code_object, o.pc.address))
        .collect();
    assert_eq!(
        ids,
        [
            (0, true, 3, 0x1000),
            (1, true, 4, 0x1000),
            (0, false, 3, 0x1000),
            (1, false, 4, 0x1000),
        ]
    );
}

/// Checks thread-trace-44.
#[test]
fn gfx9_timelines_add_up_and_instructions_do_not_overlap() {
    let mut random = Random::new(44);
    for _ in 0..500 {
        let mut stream = Gfx9::with_code();
        let mut time = 40;
        let mut running = [false; 10];
        for _ in 0..random.below(200) {
            time += 4 * (1 + random.below(6) as i64);
            let slot = random.below(10);
            if !running[slot as usize] {
                stream.wave_start(time, 1, 0, slot);
                running[slot as usize] = true;
                continue;
            }
            match random.below(8) {
                0 => {
                    stream.wave_end(time, 1, 0, slot);
                    running[slot as usize] = false;
                }
                1 | 2 => {
                    stream.issue(time, 0, &[(slot, 1)]);
                }
                3 => {
                    stream.issue(time, 0, &[(slot, 3)]);
                }
                _ => {
                    stream.issue(time, 0, &[(slot, 2)]);
                    time += 4 * random.below(8) as i64;
                    let kind = [SMEM, SALU, VMEM, 6, VALU, 12][random.below(6) as usize];
                    stream.inst(time, 0, slot, kind);
                }
            }
        }
        let got = all(&stream.bytes);
        for wave in &got.waves {
            let sum: i64 = wave.timeline.iter().map(|s| i64::from(s.duration)).sum();
            assert_eq!(sum, wave.end - wave.begin, "{wave:?}");
            for pair in wave.instructions.windows(2) {
                let end = pair[0].time + i64::from(pair[0].duration);
                assert!(end <= pair[1].time, "{pair:?}");
            }
            for instruction in &wave.instructions {
                assert!(instruction.stall as i32 <= instruction.duration);
                assert!(instruction.time >= wave.begin);
            }
        }
        // thread-trace-50: every start has its end, unless the wave is incomplete.
        for slot in 0..10 {
            let of_slot = got.occupancy.iter().filter(|o| o.slot == slot);
            let mut expected = true;
            for record in of_slot {
                assert_eq!(record.start, expected);
                expected = !expected;
            }
            assert_eq!(expected, !running[usize::from(slot)]);
        }
    }
}

/// Checks thread-trace-61.
#[test]
fn counters_in_a_gfx9_stream_have_their_times_and_order() {
    let mut stream = Gfx9::with_code();
    let time = stream.time;
    // 100 cycles between samples.
    stream.register(time, 0xC342, 6 | 1 << 8 | 100 << 12);
    stream
        .perf(200, 3, 0, [1, 2, 3, 0x1FFF])
        .perf(204, 3, 1, [5, 6, 7, 8]);
    stream.perf(520, 3, 0, [9, 10, 11, 12]);
    let got = all(&stream.bytes);
    let of_bank = |bank| {
        (got.perf.iter())
            .filter(|event| event.bank == bank)
            .map(|event| (event.time, event.values))
            .collect::<Vec<_>>()
    };
    // Compute unit 3 is sampled 12 cycles after compute unit 0; samples without a count are not in the stream.
    assert_eq!(
        of_bank(0),
        [
            (188, [1, 2, 3, 0x1FFF]),
            (288, [0; 4]),
            (508, [9, 10, 11, 12]),
            (608, [0; 4]),
        ]
    );
    assert_eq!(of_bank(1), [(192, [5, 6, 7, 8]), (292, [0; 4])]);
    assert!(got.perf.iter().all(|event| event.cu == 3));
}

#[test]
fn tokens_with_a_slot_that_does_not_exist_are_skipped_and_counted() {
    let mut stream = Gfx9::with_code();
    let at = stream.bytes.len() as u64;
    stream.raw(3 | 1 << 6 | 12 << 10, 4);
    stream
        .wave_start(40, 1, 0, 0)
        .run(60, SALU)
        .wave_end(80, 1, 0, 0);
    let got = all(&stream.bytes);
    assert_eq!(
        (got.diagnosis.invalid, got.diagnosis.first_invalid),
        (1, Some(at))
    );
    assert_eq!(got.waves.len(), 1);
}

#[test]
fn a_wave_end_without_a_start_counts_as_running_since_the_beginning() {
    let mut stream = Gfx9::with_code();
    stream.wave_end(40, 5, 2, 7);
    // One on the traced compute unit as well.
    stream.wave_end(44, 1, 2, 7);
    let got = all(&stream.bytes);
    let times: Vec<_> = (got.occupancy.iter())
        .map(|o| (o.cu, o.time, o.start))
        .collect();
    assert_eq!(times, [(5, 0, true), (5, 0, false)]);
    assert_eq!(got.diagnosis.ends_without_start, 2);
}

#[test]
fn a_repetition_after_a_page_fault_extends_the_first_issue() {
    let mut stream = Gfx9::with_code();
    stream.wave_start(40, 1, 0, 0).run(60, VMEM).run(80, SALU);
    // Issued again and completed as a repetition of the vector read.
    stream
        .issue(400, 0, &[(0, 2)])
        .inst(404, 0, 0, 21)
        .wave_end(500, 1, 0, 0);
    let got = all(&stream.bytes);
    let wave = &got.waves[0];
    let list: Vec<_> = (wave.instructions.iter())
        .map(|i| (i.category, i.time, i.duration, i.stall))
        .collect();
    assert_eq!(
        list,
        [(Category::Vmem, 60, 348, 340), (Category::Salu, 80, 4, 0),]
    );
}

#[test]
fn a_saved_and_restored_wave_has_one_context_and_its_own_instructions() {
    let mut stream = Gfx9::with_code();
    stream.wave_start(40, 1, 0, 0).run(60, SALU).misc(10, 6);
    stream.wave_start_counted(200, 1, 0, 0, 65).run(220, SALU);
    stream.wave_start_counted(300, 1, 0, 0, 65).run(320, SALU);
    // The handler ends: a write of the program counter, with its address.
    stream
        .inst(400, 0, 0, 7)
        .inst_pc(400, 0, 0, BASE + 0x1004)
        .run(420, VALU);
    stream.wave_end(500, 1, 0, 0);
    let mut code = Listing::new(3, 0x1000, &["s_mov_b32 s0, s1", "v_add_u32_e32 v0, v0, v0"]);
    let got = all_with(&stream.bytes, &mut code);
    let wave = &got.waves[0];
    assert_eq!(wave.contexts, 1);
    let list: Vec<_> = (wave.instructions.iter())
        .map(|i| (i.category, i.time, i.pc.address))
        .collect();
    assert_eq!(
        list,
        [
            (Category::Salu, 60, 0x1000),
            (Category::Context, 200, 0),
            (Category::Valu, 420, 0x1004),
        ]
    );
    assert!(got.infos.is_empty(), "{:?}", got.diagnosis);
}

#[test]
fn readings_of_the_host_s_clock_are_put_together_from_their_halves() {
    let mut stream = Gfx9::with_code();
    let mut clock = |time, words: &[u64]| {
        stream.register(time, 0xC343, 5 | (words.len() as u64) << 12);
        for word in words {
            stream.register(time, 0xC343, *word);
        }
    };
    clock(100, &[0xFFFF_FF00, 0x12, 0xFFFF_FF40]);
    // Between the two readings the low half began anew.
    clock(200, &[0xFFFF_FFF0, 0x12, 0x10]);
    // Only the low half.
    clock(300, &[0x900]);
    // The same in a packet of its own kind, without a count.
    stream.register(320, 0xC343, 7).register(320, 0xC343, 0x800);
    stream.register(320, 0xC342, 6 | 100_000 << 12);
    let got = all(&stream.bytes);
    let pairs: Vec<_> = (got.realtime.iter())
        .map(|pair| (pair.shader_clock, pair.realtime_clock))
        .collect();
    assert_eq!(
        pairs,
        [
            (100, 0x12_FFFF_FF40),
            (200, 0x13_0000_0010),
            (300, 0x13_0000_0900),
            (320, 0x14_0000_0800)
        ]
    );
    assert_eq!(got.frequency, 100_000_000);
}

#[test]
fn waves_of_other_compute_units_have_occupancy_and_no_instructions() {
    let mut stream = Gfx9::with_code();
    stream.wave_start(40, 2, 1, 3).wave_end(80, 2, 1, 3);
    let got = all(&stream.bytes);
    assert!(got.waves.is_empty());
    assert_eq!(got.occupancy.len(), 2);
    assert_eq!(
        (
            got.occupancy[0].cu,
            got.occupancy[0].simd,
            got.occupancy[0].slot
        ),
        (2, 1, 3)
    );
}

#[test]
fn a_very_long_gfx9_wave_is_reported_in_parts() {
    let mut stream = Gfx9::with_code();
    stream.wave_start(40, 1, 0, 0);
    let count = 2_500_000i64;
    for at in 0..count {
        stream.run(60 + at * 8, SALU);
    }
    stream.wave_end(60 + count * 8, 1, 0, 0);
    let lines = vec!["s_mov_b32 s0, s1"; 1];
    let mut code = Listing::new(3, 0x1000, &lines);
    let got = all_with(&stream.bytes, &mut code);
    assert!(got.waves.len() > 1);
    let total: usize = got.waves.iter().map(|wave| wave.instructions.len()).sum();
    assert_eq!(total as i64, count);
    for (part, wave) in got.waves.iter().enumerate() {
        assert_eq!(wave.part as usize, part);
        let sum: i64 = wave.timeline.iter().map(|s| i64::from(s.duration)).sum();
        assert_eq!(sum, wave.end - wave.begin, "part {part}");
    }
    assert_eq!(got.waves[0].begin, 40);
    assert!(
        got.waves
            .iter()
            .all(|wave| wave.timeline.iter().all(|s| s.state != State::Empty))
    );
}
